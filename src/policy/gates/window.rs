//! Gate 6, Window: inside one of the Order's windows and outside every freeze of its Environment. It comes
//! after Evidence, so that approvals are sealed at any time, and the result does not alternate at the edge of
//! a window.

use super::{Context, proof};
use crate::model::calendar::{Calendar, CalendarState, HORIZON};
use crate::model::evidence::{Claim, Facts};
use crate::model::id::Artifact;
use crate::model::time::Time;
use crate::model::verdict::{EvidenceRef, For, GateName, Verdict};
use crate::policy::resolve::Case;

const GATE: GateName = GateName::Window;

/// Needs no evidence: the calendar decides.
#[must_use]
pub fn collect_claims(_case: &Case) -> Vec<(Artifact, Claim)> {
    Vec::new()
}

/// Whether it is closed, whatever the evidence says. An artifact that was healthy here, according to history,
/// may still pass.
#[must_use]
pub fn cannot_pass(case: &Case, context: &Context) -> bool {
    let claims_rollback = case.candidate.as_ref().is_some_and(|c| case.has_been_healthy(&c.artifact));
    !claims_rollback && !judge_window(case, &Facts::default(), context).is_passed()
}

/// Judges by the calendar; a rollback to what was healthy here always passes.
#[must_use]
pub fn judge_window(case: &Case, facts: &Facts, context: &Context) -> Verdict {
    let demands = &case.demands;
    if demands.windows.is_empty() && demands.freezes.is_empty() {
        return Verdict::make_passed(GATE, "no windows and no freezes");
    }
    let calendar = match Calendar::new(&demands.windows, &demands.freezes) {
        Ok(calendar) => calendar,
        Err(wrong) => {
            let all: Vec<String> = wrong.iter().map(ToString::to_string).collect();
            return Verdict::make_failed(GATE, all.join("; "));
        }
    };
    let mut verdict = match calendar.judge_open_at(context.now) {
        CalendarState::Yes(window) => {
            let text = window.map_or("outside every freeze".to_owned(), |w| format!("inside {w}"));
            let mut verdict = Verdict::make_passed(GATE, text.clone());
            verdict.evidence.push(make_reference(text));
            verdict
        }
        CalendarState::No { next, why } => match judge_rollback(case, facts, context) {
            Some(rollback) => rollback,
            None => make_closed(next, &why),
        },
    };
    verdict.parameters = build_parameters(case);
    verdict
}

fn make_closed(next: Option<Time>, why: &str) -> Verdict {
    match next {
        Some(next) => Verdict::make_waiting(GATE, For::Instant(next), format!("{why}; open from {next}")),
        None => {
            let days = HORIZON.seconds() / 86_400;
            Verdict::make_failed(GATE, format!("{why}; it does not open within {days} days"))
        }
    }
}

/// Passes if the candidate was healthy here before.
#[must_use]
pub fn judge_rollback(case: &Case, facts: &Facts, context: &Context) -> Option<Verdict> {
    let candidate = case.candidate.as_ref()?;
    let before = proof::prove_healthy_run(case, &candidate.artifact, facts, context)?;
    let since = before.run.first_healthy?;
    let message = format!("a rollback: this artifact was healthy here at {since}");
    let mut verdict = Verdict::make_passed(GATE, message);
    verdict.evidence = before.evidence;
    Some(verdict)
}

/// The verdict on a promotion beyond `limits.maxPromotions` of this run.
#[must_use]
pub fn hold_beyond_limit(limit: usize) -> Verdict {
    if limit == 0 {
        return Verdict::make_failed(
            GATE,
            "limits.maxPromotions is 0: no run promotes anything until it is raised",
        );
    }
    let message =
        format!("limits.maxPromotions allows {limit} promotions a run; it is promoted by a later run");
    Verdict::make_waiting(GATE, For::LaterRun, message)
}

/// Whether the Environment is frozen now: then a Cluster that joins waits, too. Windows hold only promotions.
#[must_use]
pub fn describe_freeze(case: &Case, now: Time) -> Option<String> {
    match Calendar::new(&[], &case.demands.freezes).map(|c| c.judge_open_at(now)) {
        Ok(CalendarState::Yes(_)) => None,
        Ok(CalendarState::No { why, .. }) => Some(why),
        Err(wrong) => wrong.first().map(ToString::to_string),
    }
}

fn make_reference(name: String) -> EvidenceRef {
    EvidenceRef { kind: "window".into(), name, digest: None, uri: String::new(), key: String::new() }
}

fn build_parameters(case: &Case) -> serde_json::Value {
    let windows: Vec<_> = case
        .demands
        .windows
        .iter()
        .map(|w| serde_json::json!({"timezone": w.timezone, "days": w.days, "from": w.from, "to": w.to}))
        .collect();
    let freezes: Vec<_> = case
        .demands
        .freezes
        .iter()
        .map(|f| serde_json::json!({"from": f.from, "to": f.to, "reason": f.reason}))
        .collect();
    serde_json::json!({"windows": windows, "freezes": freezes})
}
