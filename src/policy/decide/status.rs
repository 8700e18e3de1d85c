//! `Serving.status` after this run: a function of the Case, the verdicts and the clock. It stays equal from
//! run to run while nothing changes.

use super::applications::OPT_IN_REQUIRED;
use crate::model::evidence::Facts;
use crate::model::id::{Artifact, PreparationName};
use crate::model::meta::Condition;
use crate::model::order::Mode;
use crate::model::plan::{ApplicationAction, ApplicationPlan, Decision};
use crate::model::reason::{Approved, Ready, Verified};
use crate::model::serving::{
    self, ApprovalStatus, ClusterStatus, Deployed, DeployedVulnerabilities, Queued, ServingStatus,
    VerifiedStatus,
};
use crate::model::time::SKEW;
use crate::model::verdict::{GateName, Verdict};
use crate::policy::gates::approvals::{self, Assessment};
use crate::policy::gates::pin::PIN_UNPROVEN;
use crate::policy::gates::{self, Context, rescan, upstream};
use crate::policy::resolve::observe::{self, Health};
use crate::policy::resolve::{Case, PINNED, history};

/// Longest message of a condition, in characters.
const MESSAGE: usize = 2_048;

#[must_use]
pub fn build_status(
    case: &Case,
    decision: &Decision,
    verdicts: &[Verdict],
    applications: &[ApplicationPlan],
    facts: &Facts,
    context: &Context,
) -> ServingStatus {
    let old = case.serving.as_ref().map(|s| s.status.clone()).unwrap_or_default();
    let mut new = old.clone();
    // Also stores what this run observed of the entry that it replaces, because later runs do not observe
    // that one.
    let seen = judge_seen(case, context);
    if let Some(seen) = &seen {
        new.history = history::record_observation(&new.history, seen);
    }
    set_pinned(&mut new, case, decision, seen.as_ref(), facts, context);
    let health = judge_health(case, decision, seen);
    set_target(&mut new, &old, case, decision, verdicts, context);
    new.queued = build_queued(&old, case, decision, verdicts, context);
    new.clusters = build_clusters(case, &old, applications);
    new.deployed_vulnerabilities = find_vulnerabilities(case, &old, decision, facts, context);
    let (verified, kept) = judge_verified(case, &old, facts, context);
    new.verified = kept;
    let assessed = case.candidate.as_ref().map(|_| approvals::assess_votes(case, facts, context));
    new.approval = build_approval(case, &old, assessed.as_ref());
    if matches!(decision, Decision::Promote(_))
        && let (Some(entry), Some(assessed)) = (new.history.first_mut(), &assessed)
    {
        entry.approval_record = assessed.seal.as_ref().map(|seal| seal.proof.blob);
    }
    let conditions = [
        judge_ready(case, decision, verdicts, &new, health.as_ref()),
        judge_approved(case, assessed.as_ref(), context),
        verified,
    ];
    new.conditions = conditions
        .into_iter()
        .map(|mut condition| {
            condition.message = cut_text(&condition.message);
            let before = old.find_condition(&condition.kind);
            let moved = before.is_none_or(|b| b.status != condition.status);
            condition.last_transition_time =
                if moved { Some(context.now) } else { before.and_then(|b| b.last_transition_time) };
            condition
        })
        .collect();
    // Conditions of other types belong to other programs.
    let ours = ["Ready", "Approved", "Verified"];
    new.conditions.extend(old.conditions.iter().filter(|c| !ours.contains(&c.kind.as_str())).cloned());
    new
}

fn cut_text(text: &str) -> String {
    if text.chars().count() <= MESSAGE {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(MESSAGE - 1).collect();
    short.push('…');
    short
}

fn set_pinned(
    new: &mut ServingStatus,
    case: &Case,
    decision: &Decision,
    seen: Option<&Health>,
    facts: &Facts,
    context: &Context,
) {
    let (Decision::Promote(promotion), Some(candidate), Some(place)) =
        (decision, &case.candidate, &case.place)
    else {
        return;
    };
    let base = upstream::find_proven_base(case, candidate, facts);
    new.history =
        history::record_promotion(&new.history, candidate, base, &place.name, promotion, seen, context.now);
    new.observed_preparation_name = Some(candidate.name.clone());
    new.deployed_digest = Some(candidate.artifact.digest);
    new.deployed = Some(Deployed {
        environment: place.name.clone(),
        repository: candidate.artifact.repository.clone(),
        target_namespace: candidate.target_namespace.clone(),
        source: case.origin.as_ref().map(|o| o.source.to_string()).unwrap_or_default(),
    });
}

/// A candidate is the target once gates 1 to 3 pass, until they fail or another candidate becomes the target.
/// What is deployed stays the target, whatever a gate says later.
fn set_target(
    new: &mut ServingStatus,
    old: &ServingStatus,
    case: &Case,
    decision: &Decision,
    verdicts: &[Verdict],
    context: &Context,
) {
    let passes = gates::is_target(verdicts);
    let target = match (decision, &case.candidate) {
        (Decision::Promote(_), Some(candidate)) => Some(candidate.name.clone()),
        (_, Some(candidate)) if passes => Some(candidate.name.clone()),
        _ => case.deployed.as_ref().map(|d| d.preparation.clone()),
    };
    new.target_since = match &target {
        None => None,
        Some(name) if old.target_preparation_name.as_ref() == Some(name) => {
            // A time in the future, written by a wrong clock, would block the sealing of votes until then.
            old.target_since.filter(|since| *since <= context.now.add_span(SKEW)).or(Some(context.now))
        }
        Some(_) => Some(context.now),
    };
    new.target_preparation_name = target;
}

/// Manual: what was requested and is not deployed, with the gate it waits for.
fn build_queued(
    old: &ServingStatus,
    case: &Case,
    decision: &Decision,
    verdicts: &[Verdict],
    context: &Context,
) -> Option<Queued> {
    if case.mode == Mode::Automatic || matches!(decision, Decision::Promote(_)) {
        return None;
    }
    let asked = case.serving.as_ref()?.spec.preparation_name.clone()?;
    let here = case.is_at_home() && case.deployed.as_ref().is_some_and(|d| d.preparation == asked);
    if here {
        return None;
    }
    let (waits_for, message) = match Verdict::find_first_holding(verdicts) {
        Some(verdict) => (verdict.gate, verdict.message.clone()),
        None => (
            GateName::Ready,
            case.errors.iter().map(crate::error::Failure::format_sentence).collect::<Vec<_>>().join("; "),
        ),
    };
    let since = match &old.queued {
        Some(queued) if queued.preparation_name == asked => queued.since,
        _ => case.serving.as_ref().and_then(|s| s.spec.requested.as_ref()).map_or(context.now, |r| r.time),
    };
    Some(Queued {
        preparation_name: asked,
        waits_for: waits_for.to_string(),
        message: cut_text(&message),
        since,
    })
}

fn build_clusters(case: &Case, old: &ServingStatus, applications: &[ApplicationPlan]) -> Vec<ClusterStatus> {
    let mut all = Vec::new();
    for plan in applications {
        let before = old.clusters.iter().find(|c| c.name == plan.cluster);
        let slot = case.slots.iter().find(|s| s.cluster.name == plan.cluster);
        let server = |fresh: bool| {
            let known = before.filter(|_| !fresh).map(|b| b.server.clone()).filter(|s| !s.is_empty());
            known.or_else(|| slot.map(|s| s.cluster.server.clone())).unwrap_or_default()
        };
        if let (ApplicationAction::Hold { reason, .. }, Some(before)) = (&plan.action, before)
            && reason == PIN_UNPROVEN
        {
            all.push(before.clone());
            continue;
        }
        let (server, reason, message) = match &plan.action {
            ApplicationAction::Pin(pin) => {
                (pin.server.clone(), PINNED.to_owned(), describe_not_ready(case, plan))
            }
            ApplicationAction::Hold { reason, message } => (server(false), reason.clone(), cut_text(message)),
            ApplicationAction::Detach(why) => (server(false), "HandingOver".into(), why.clone()),
            ApplicationAction::Remove(_) => continue,
        };
        all.push(ClusterStatus {
            name: plan.cluster.clone(),
            server,
            application: plan.name.clone(),
            reason,
            message,
        });
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

fn describe_not_ready(case: &Case, plan: &ApplicationPlan) -> String {
    let slot = case.slots.iter().find(|s| s.cluster.name == plan.cluster);
    match slot {
        Some(slot) if !slot.cluster.ready => "the Cluster is not Ready: it is listed but not counted".into(),
        Some(_) | None => String::new(),
    }
}

fn make_condition(kind: &str, status: &str, reason: &str, message: String) -> Condition {
    Condition {
        kind: kind.into(),
        status: status.into(),
        reason: reason.into(),
        message,
        last_transition_time: None,
        observed_generation: None,
    }
}

/// What still holds the candidate, for Ready's message.
fn describe_waiting(case: &Case, verdicts: &[Verdict]) -> Option<String> {
    let candidate = case.candidate.as_ref()?;
    let verdict = Verdict::find_first_holding(verdicts)?;
    Some(serving::format_wait(&candidate.name, verdict))
}

/// What the Applications report about what is deployed after this run.
fn judge_health(case: &Case, decision: &Decision, seen: Option<Health>) -> Option<Health> {
    match decision {
        Decision::Promote(_) => Some(match &case.seen {
            Some(_) => Health::Deploying { why: "it is pinned by this run".into() },
            None => Health::NotObserved,
        }),
        Decision::Keep | Decision::Hold | Decision::Broken | Decision::Remove(_) => seen,
    }
}

/// The health of what was deployed before this run.
fn judge_seen(case: &Case, context: &Context) -> Option<Health> {
    let deployed = case.deployed.as_ref()?;
    let history = case.serving.as_ref().map_or(&[][..], |s| s.status.history.as_slice());
    Some(observe::observe_deployed(deployed, history, case.seen.as_deref(), context.now))
}

fn judge_ready(
    case: &Case,
    decision: &Decision,
    verdicts: &[Verdict],
    new: &ServingStatus,
    health: Option<&Health>,
) -> Condition {
    let errors: Vec<String> = case.errors.iter().map(crate::error::Failure::format_sentence).collect();
    let Some(deployed) = &new.observed_preparation_name else {
        if !errors.is_empty() {
            return make_condition(
                "Ready",
                Ready::InvalidInput.status(),
                Ready::InvalidInput.as_str(),
                errors.join("; "),
            );
        }
        let message = describe_waiting(case, verdicts).unwrap_or_else(|| describe_nothing_yet(case));
        return make_condition("Ready", Ready::Pending.status(), Ready::Pending.as_str(), message);
    };
    let held: Vec<&str> =
        new.clusters.iter().filter(|c| c.reason == OPT_IN_REQUIRED).map(|c| c.message.as_str()).collect();
    // Argo CD's own messages change with every observation, so they are not committed.
    let (reason, said) = match health {
        Some(Health::Degraded { what, .. }) => (Ready::Degraded, format!("{deployed}: {what}")),
        _ if !held.is_empty() => (Ready::OptInRequired, held.join("; ")),
        Some(Health::Deploying { .. }) => {
            (Ready::Deploying, format!("{deployed} is pinned, and not yet healthy on every Ready Cluster"))
        }
        Some(Health::NotObserved) | None => (
            Ready::NotObserved,
            format!("{deployed} is pinned; no observation of its Applications was given"),
        ),
        Some(Health::Deployed { .. }) => {
            let since = new.history.first().and_then(|e| e.first_healthy_time);
            let since = since.map(|t| format!(" since {t}")).unwrap_or_default();
            (Ready::Deployed, format!("{deployed} is healthy on every Ready Cluster{since}"))
        }
    };
    let mut message = vec![said];
    if !matches!(decision, Decision::Promote(_)) {
        message.extend(describe_waiting(case, verdicts));
        message.extend(errors);
    }
    make_condition("Ready", reason.status(), reason.as_str(), message.join("; "))
}

fn describe_nothing_yet(case: &Case) -> String {
    match case.mode {
        Mode::Manual => "nothing was promoted yet".into(),
        Mode::Automatic => "there is no Ready Preparation yet".into(),
    }
}

/// The newest scan of what is deployed after this run; a scan of another artifact is dropped.
fn find_vulnerabilities(
    case: &Case,
    old: &ServingStatus,
    decision: &Decision,
    facts: &Facts,
    context: &Context,
) -> Option<DeployedVulnerabilities> {
    let before = old.deployed_vulnerabilities.clone();
    let (artifact, before) = match (decision, &case.candidate, &case.deployed) {
        (Decision::Promote(_), Some(candidate), _) => {
            let same = old.deployed_digest == Some(candidate.artifact.digest);
            (&candidate.artifact, before.filter(|_| same))
        }
        (_, _, Some(deployed)) => (&deployed.artifact, before),
        (_, _, None) => return None,
    };
    let found = rescan::find_newest_scan(facts, artifact, context.now);
    match (found, before) {
        (Some(found), Some(before)) if found.scanned_time < before.scanned_time => Some(before),
        (Some(found), _) => Some(found),
        (None, before) => before,
    }
}

/// Condition Approved: for the candidate if there is one, else for what is deployed.
fn judge_approved(case: &Case, assessed: Option<&Assessment>, context: &Context) -> Condition {
    let subject = find_subject_name(case);
    let (reason, message) = match (assessed, &case.deployed) {
        (Some(assessed), _) => (assessed.reason, assessed.verdict.message.clone()),
        (None, Some(_)) => approvals::judge_deployed(case, context),
        (None, None) if case.needs_approvals() => {
            (Approved::AwaitingApprovals, "there is nothing to approve yet".into())
        }
        (None, None) => (Approved::ApprovalNotRequired, "no policy applies".into()),
    };
    make_condition("Approved", reason.status(), reason.as_str(), add_subject(subject, message))
}

/// Votes and seal of the candidate; else those stored for what is deployed.
fn build_approval(case: &Case, old: &ServingStatus, assessed: Option<&Assessment>) -> Option<ApprovalStatus> {
    let fresh = assessed.and_then(|assessed| approvals::build_status(case, assessed));
    fresh.or_else(|| {
        let deployed = case.deployed.as_ref().map(|d| &d.preparation);
        old.approval
            .clone()
            .filter(|a| a.preparation_name.is_some() && a.preparation_name.as_ref() == deployed)
    })
}

fn find_subject_name(case: &Case) -> Option<&PreparationName> {
    case.candidate.as_ref().map(|c| &c.name).or(case.deployed.as_ref().map(|d| &d.preparation))
}

fn add_subject(subject: Option<&PreparationName>, message: String) -> String {
    match subject {
        Some(name) if !message.is_empty() => format!("{name}: {message}"),
        Some(name) => name.to_string(),
        None => message,
    }
}

/// Condition Verified, and the kept verdict: for the candidate if there is one, else for what is deployed.
fn judge_verified(
    case: &Case,
    old: &ServingStatus,
    facts: &Facts,
    context: &Context,
) -> (Condition, Option<VerifiedStatus>) {
    let subject: Option<(&PreparationName, &Artifact)> = case
        .candidate
        .as_ref()
        .map(|c| (&c.name, &c.artifact))
        .or(case.deployed.as_ref().map(|d| (&d.preparation, &d.artifact)));
    let make = |reason: Verified, message: String, name: Option<&PreparationName>| {
        make_condition("Verified", reason.status(), reason.as_str(), add_subject(name, message))
    };
    let Some((name, artifact)) = subject else {
        return (
            make(Verified::NotVerified, "there is nothing to verify yet".into(), None),
            old.verified.clone(),
        );
    };
    // Always the same text: while a verdict is kept only the artifact is read again, so a text that depends
    // on what was read would change.
    if case.candidate.is_none()
        && let Some(why) = gates::evidence::describe_vanished(facts, artifact)
    {
        let kept = old.verified.clone().filter(|v| v.digest != artifact.digest);
        return (make(Verified::ArtifactNotFound, why, Some(name)), kept);
    }
    if let Some(found) = gates::evidence::verify_artifact(facts, artifact, &case.order) {
        let kept = match (found.reason, context.trust) {
            (Verified::SignaturesVerified, Some(keys)) => {
                let same = old.verified.as_ref().filter(|v| v.digest == artifact.digest && v.keys == keys);
                Some(VerifiedStatus {
                    digest: artifact.digest,
                    keys,
                    time: same.map_or(context.now, |v| v.time),
                    by: found.keys.clone(),
                })
            }
            (reason, _) if reason.is_unread() => old.verified.clone(),
            // A negative verdict is never kept, and ends a kept one of the same artifact.
            _ => old.verified.clone().filter(|v| v.digest != artifact.digest),
        };
        return (make(found.reason, found.message, Some(name)), kept);
    }
    if let Some((_, by)) = gates::evidence::find_kept_verdict(case, artifact, context.trust) {
        let message = format!("signature and provenance verified with {}", by.join(", "));
        return (make(Verified::SignaturesVerified, message, Some(name)), old.verified.clone());
    }
    (make(Verified::NotVerified, "not read in this run".into(), Some(name)), old.verified.clone())
}
