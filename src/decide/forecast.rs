//! When a waiting promotion can deploy, along the whole chain: soak, windows, freezes, the upstream's own
//! forecast; or whom and what it waits for.
//!
//! The gates themselves are asked again at the instants that they name, on the same facts, with what is
//! healthy taken to stay so. So the answer is theirs: a plan for that instant promotes, one for a second
//! earlier does not.

use crate::gates::{self, Context, approvals};
use crate::model::calendar::{Calendar, Open};
use crate::model::evidence::Facts;
use crate::model::id::OrderRef;
use crate::model::plan::{Explained, Forecast};
use crate::model::time::Time;
use crate::model::verdict::{For, GateName, Outcome, Verdict};
use crate::resolve::Case;
use crate::resolve::observe::{self, Health};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Most instants that are tried for one promotion: each is later than the one before.
const STEPS: usize = 1_000;

/// Forecasts over one run's Cases and Facts.
pub struct Forecasts<'a> {
    cases: &'a [Case],
    facts: &'a Facts,
    context: &'a Context,
    /// `None` while it is being computed: a ring of Orders is an error of the input and forecasts nothing.
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
    pub fn of(&self, order: &OrderRef) -> Option<Forecast> {
        if let Some(known) = self.known.borrow().get(order) {
            return known.clone();
        }
        self.known.borrow_mut().insert(order.clone(), None);
        let index = self.cases.binary_search_by(|case| case.order.cmp(order)).ok()?;
        let forecast = self.compute(&self.cases[index]);
        self.known.borrow_mut().insert(order.clone(), forecast.clone());
        forecast
    }

    fn compute(&self, case: &Case) -> Option<Forecast> {
        if case.candidate.is_none() || !case.errors.is_empty() {
            return None;
        }
        let mut at = self.context.now;
        for _ in 0..STEPS {
            let verdicts = self.judge(case, at);
            let (mut until, mut lasting) = (None, None);
            for verdict in verdicts.iter().filter(|v| holds(v)) {
                match verdict.outcome {
                    Outcome::Waiting(For::Instant(time)) => until = until.max(Some(time)),
                    Outcome::Waiting(_) | Outcome::Failed | Outcome::Passed => {
                        lasting = lasting.or(Some(verdict));
                    }
                }
            }
            match (until.filter(|time| *time > at), lasting) {
                (Some(next), _) => at = next,
                (None, Some(verdict)) => return Some(self.waits(case, verdict, at)),
                (None, None) => return Some(Forecast::At(at)),
            }
        }
        None
    }

    fn judge(&self, case: &Case, at: Time) -> Vec<Verdict> {
        let then = at > self.context.now;
        let context = Context { now: at, foreseen: self.context.foreseen || then, ..self.context.clone() };
        let mut verdicts = gates::judge(case, self.facts, &context);
        // A seal that is due is the run's own doing: nobody has to wait for it.
        if approvals::assess(case, self.facts, &context).due.is_some() {
            for verdict in verdicts.iter_mut().filter(|v| v.gate == GateName::Approvals) {
                *verdict = Verdict::passed(GateName::Approvals, verdict.message.clone());
            }
        }
        verdicts
    }

    /// What no clock brings by itself: with the earliest instant that is known all the same.
    fn waits(&self, case: &Case, verdict: &Verdict, at: Time) -> Forecast {
        let (gate, message) = (verdict.gate, verdict.message.clone());
        if verdict.outcome == Outcome::Failed {
            return Forecast::Never { gate, message };
        }
        let upstream = case.stages.iter().filter_map(|stage| {
            // An upstream that promotes the change itself soaks after that, at the earliest.
            let own = match self.of(&stage.order)? {
                Forecast::At(time) | Forecast::NotBefore { time, .. } => time,
                Forecast::Never { .. } => return None,
            };
            Some(own.plus(stage.soak))
        });
        let time = upstream.max().map_or(at, |time| time.max(at));
        Forecast::NotBefore { time: opening(case, time), gate, message }
    }
}

/// What `explain` tells of an Order besides its row.
#[must_use]
pub fn explained(cases: &[Case], order: &OrderRef, facts: &Facts, context: &Context) -> Explained {
    let Ok(index) = cases.binary_search_by(|case| case.order.cmp(order)) else { return Explained::default() };
    let case = &cases[index];
    let health = case.deployed.as_ref().zip(case.serving.as_ref()).map(|(deployed, serving)| {
        observe::deployed(deployed, &serving.status.history, case.seen.as_deref(), context.now)
    });
    Explained {
        forecast: Forecasts::new(cases, facts, context).of(order),
        observed: health.map(|health| match health {
            Health::NotObserved => "nobody looked at its Applications".to_owned(),
            Health::Degraded { why, .. } => format!("degraded: {why}"),
            Health::Deploying { why } => format!("not yet healthy: {why}"),
            Health::Deployed { now: Some(steady) } => {
                format!("healthy since {}, looked at {}", steady.since, steady.reconciled)
            }
            Health::Deployed { now: None } => "healthy before, and on its way now".to_owned(),
        }),
        votes: match case.candidate {
            Some(_) => approvals::assess(case, facts, context).tally.votes,
            None => Vec::new(),
        },
    }
}

/// Whether a run would still be held by it. What only was not read, and what a later run does by itself,
/// holds nobody.
fn holds(verdict: &Verdict) -> bool {
    match &verdict.outcome {
        Outcome::Passed | Outcome::Waiting(For::AnotherGate | For::LaterRun) => false,
        Outcome::Failed
        | Outcome::Waiting(
            For::Instant(_) | For::Person(_) | For::Evidence | For::Order(_) | For::Registry | For::Build,
        ) => true,
    }
}

/// The first instant from `time` on at which the Order's windows and freezes let it.
fn opening(case: &Case, time: Time) -> Time {
    match Calendar::new(&case.demands.windows, &case.demands.freezes).map(|c| c.open_at(time)) {
        Ok(Open::No { next: Some(next), .. }) => next,
        Ok(Open::No { next: None, .. } | Open::Yes(_)) | Err(_) => time,
    }
}
