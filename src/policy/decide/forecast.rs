//! When a waiting promotion can deploy, along the whole chain: soak, windows, freezes, the upstream's own
//! forecast; or who has to act, and what the promotion waits for.
//!
//! The gates are judged again at the instants that they name, on the same facts, assuming that what is
//! healthy stays healthy. So the forecast agrees with the gates: a plan for that instant promotes, one for a
//! second earlier does not.

use crate::model::calendar::{Calendar, CalendarState};
use crate::model::evidence::Facts;
use crate::model::id::OrderRef;
use crate::model::plan::{Explained, Forecast};
use crate::model::time::Time;
use crate::model::verdict::{For, GateName, GateOutcome, Verdict};
use crate::policy::decide::next;
use crate::policy::gates::{self, Context, approvals, upstream};
use crate::policy::resolve::Case;
use crate::policy::resolve::observe::{self, Health};
use crate::policy::resolve::stage::Stage;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Maximum number of instants that are tried for one promotion, each later than the one before.
const STEPS: usize = 1_000;

/// Forecasts over one run's Cases and Facts.
pub struct Forecasts<'a> {
    cases: &'a [Case],
    facts: &'a Facts,
    context: &'a Context,
    /// `None` while it is being computed: a cycle of Orders is an input error and has no forecast.
    known: RefCell<BTreeMap<OrderRef, Option<Forecast>>>,
}

impl<'a> Forecasts<'a> {
    /// `cases` are sorted by Order, as `resolve` gives them.
    #[must_use]
    pub fn new(cases: &'a [Case], facts: &'a Facts, context: &'a Context) -> Self {
        Self { cases, facts, context, known: RefCell::default() }
    }

    /// The forecast of this Order's candidate; `None`: there is none, or the Order's input is wrong.
    #[must_use]
    pub fn find_forecast(&self, order: &OrderRef) -> Option<Forecast> {
        if let Some(known) = self.known.borrow().get(order) {
            return known.clone();
        }
        self.known.borrow_mut().insert(order.clone(), None);
        let index = self.cases.binary_search_by(|case| case.order.cmp(order)).ok()?;
        let forecast = self.compute_forecast(&self.cases[index]);
        self.known.borrow_mut().insert(order.clone(), forecast.clone());
        forecast
    }

    fn compute_forecast(&self, case: &Case) -> Option<Forecast> {
        if case.candidate.is_none() || !case.errors.is_empty() {
            return None;
        }
        let mut at = self.context.now;
        for _ in 0..STEPS {
            let verdicts = self.judge_at(case, at);
            let (mut until, mut lasting) = (None, None);
            for verdict in verdicts.iter().filter(|v| is_holding(v)) {
                match verdict.outcome {
                    GateOutcome::Waiting(For::Instant(time)) => until = until.max(Some(time)),
                    GateOutcome::Waiting(_) | GateOutcome::Failed | GateOutcome::Passed => {
                        lasting = lasting.or(Some(verdict));
                    }
                }
            }
            match (until.filter(|time| *time > at), lasting) {
                (Some(next), _) => at = next,
                (None, Some(verdict)) => return Some(self.forecast_wait(case, verdict, at)),
                (None, None) => return Some(Forecast::At(at)),
            }
        }
        None
    }

    fn make_context_at(&self, at: Time) -> Context {
        let then = at > self.context.now;
        Context { now: at, foreseen: self.context.foreseen || then, ..self.context.clone() }
    }

    fn judge_at(&self, case: &Case, at: Time) -> Vec<Verdict> {
        let context = self.make_context_at(at);
        let mut verdicts = gates::judge_gates(case, self.facts, &context);
        // The run itself attaches a missing seal, so no promotion has to wait for it.
        if approvals::assess_votes(case, self.facts, &context).due.is_some() {
            for verdict in verdicts.iter_mut().filter(|v| v.gate == GateName::Approvals) {
                *verdict = Verdict::make_passed(GateName::Approvals, verdict.message.clone());
            }
        }
        verdicts
    }

    /// A wait that time alone does not end, with the earliest known instant.
    fn forecast_wait(&self, case: &Case, verdict: &Verdict, at: Time) -> Forecast {
        let (gate, message) = (verdict.gate, verdict.message.clone());
        if verdict.outcome == GateOutcome::Failed {
            return Forecast::Never { gate, message };
        }
        // An upstream that has yet to run the change soaks after that, at the earliest.
        let context = self.make_context_at(at);
        let held = match gate {
            GateName::Upstream => upstream::find_holding_stages(case, self.facts, &context),
            _ => Vec::new(),
        };
        let upstream =
            held.into_iter().filter_map(|stage| Some(self.find_run_time(case, stage)?.add_span(stage.soak)));
        let time = upstream.max().map_or(at, |time| time.max(at));
        Forecast::NotBefore { time: find_opening(case, time), gate, message }
    }
}

impl Forecasts<'_> {
    /// When a stage runs the change at the earliest: since when it does, or when it will.
    fn find_run_time(&self, case: &Case, stage: &Stage) -> Option<Time> {
        let wanted = case.candidate.as_ref()?;
        let index = self.cases.binary_search_by(|case| case.order.cmp(&stage.order)).ok()?;
        let there = self.cases[index].candidate.as_ref();
        if there.is_some_and(|candidate| upstream::is_same_change(wanted, candidate)) {
            return match self.find_forecast(&stage.order)? {
                Forecast::At(time) | Forecast::NotBefore { time, .. } => Some(time),
                Forecast::Never { .. } => None,
            };
        }
        let newest = stage.serving.as_deref().and_then(|serving| serving.status.history.first())?;
        let same = newest.digest == wanted.artifact.digest
            || (wanted.base_digest.is_some() && newest.base_digest == wanted.base_digest);
        (same && newest.ended_time.is_none()).then_some(newest.promoted_time)
    }
}

/// What `explain` shows of an Order in addition to its row, which contains `verdicts`.
#[must_use]
pub fn explain_order(
    cases: &[Case],
    order: &OrderRef,
    verdicts: &[Verdict],
    facts: &Facts,
    context: &Context,
) -> Explained {
    let Ok(index) = cases.binary_search_by(|case| case.order.cmp(order)) else { return Explained::default() };
    let case = &cases[index];
    let health = case.deployed.as_ref().zip(case.serving.as_ref()).map(|(deployed, serving)| {
        observe::observe_deployed(deployed, &serving.status.history, case.seen.as_deref(), context.now)
    });
    Explained {
        observed: health.map(|health| match health {
            Health::NotObserved => "its Applications were not observed".to_owned(),
            Health::Degraded { why, .. } => format!("degraded: {why}"),
            Health::Deploying { why } => format!("not yet healthy: {why}"),
            Health::Deployed { now: Some(steady), .. } => {
                format!("healthy since {}, last observed {}", steady.since, steady.reconciled)
            }
            Health::Deployed { now: None, .. } => "healthy before, and changing now".to_owned(),
        }),
        votes: match case.candidate {
            Some(_) => approvals::assess_votes(case, facts, context).tally.votes,
            None => Vec::new(),
        },
        steps: next::collect_steps(case, verdicts, context),
        idle: next::describe_idle(case),
    }
}

/// Whether this verdict would still hold a run. A kept verdict, a seal that the run makes, and what a later
/// run does by itself do not hold; checks and provenance that were not read in this run may.
fn is_holding(verdict: &Verdict) -> bool {
    match &verdict.outcome {
        GateOutcome::Passed | GateOutcome::Waiting(For::LaterRun) => false,
        GateOutcome::Waiting(For::AnotherGate) => {
            matches!(verdict.gate, GateName::Upstream | GateName::Checks)
        }
        GateOutcome::Failed
        | GateOutcome::Waiting(
            For::Instant(_) | For::Person(_) | For::Evidence | For::Order(_) | For::Registry | For::Build,
        ) => true,
    }
}

/// The first instant from `time` on at which the Order's windows and freezes allow a promotion.
fn find_opening(case: &Case, time: Time) -> Time {
    match Calendar::new(&case.demands.windows, &case.demands.freezes).map(|c| c.judge_open_at(time)) {
        Ok(CalendarState::No { next: Some(next), .. }) => next,
        Ok(CalendarState::No { next: None, .. } | CalendarState::Yes(_)) | Err(_) => time,
    }
}
