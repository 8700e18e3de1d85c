//! The gates in their order; each asks for evidence, then judges. Pure: a gate sees values that were read,
//! and knows nothing of how.
//!
//! Adding a gate: its file (`ask` and `judge`), its row in [`GATES`], a passing and a holding case, a row in
//! the README's table.

pub mod again;
pub mod approvals;
pub mod attestation;
pub mod checks;
pub mod evidence;
pub mod expression;
pub mod opt_in;
pub mod pin;
pub mod policy;
pub mod proof;
pub mod ready;
pub mod rescan;
pub mod soak;
pub mod ssh_vote;
pub mod upstream;
pub mod votes;
pub mod vulnerabilities;
pub mod window;

use crate::model::evidence::{ArtifactFacts, Ask, Claim, Facts, RecordAsk};
use crate::model::id::{Artifact, Digest, OrderName, OrderRef};
use crate::model::kitchen::KitchenSpec;
use crate::model::time::{Span, Time};
use crate::model::verdict::{GateName, Verdict};
use crate::policy::resolve::Case;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use votes::Electorate;

/// One gate: what it needs to know, and what it says.
pub struct Gate {
    pub name: GateName,
    /// The claims it needs, per artifact, for the candidate of this Case.
    pub ask: fn(&Case) -> Vec<(Artifact, Claim)>,
    /// Judges the candidate of this Case.
    pub judge: fn(&Case, &Facts, &Context) -> Verdict,
    /// Whether it cannot pass in this run, whatever a registry answers: then no registry is asked.
    pub hopeless: fn(&Case, &Context) -> bool,
}

/// The gates, in the order in which a promotion passes them (`docs/design/promotion.md#gates`).
pub const GATES: [Gate; 7] = [
    Gate {
        name: GateName::Ready,
        ask: ready::collect_claims,
        judge: ready::judge_ready,
        hopeless: cannot_pass_ready,
    },
    Gate {
        name: GateName::Upstream,
        ask: upstream::collect_claims,
        judge: upstream::judge_upstream,
        hopeless: upstream::cannot_pass,
    },
    Gate {
        name: GateName::Checks,
        ask: checks::collect_claims,
        judge: checks::judge_checks,
        hopeless: deny_nothing,
    },
    Gate {
        name: GateName::Approvals,
        ask: approvals::collect_claims,
        judge: approvals::judge_approvals,
        hopeless: approvals::cannot_pass,
    },
    Gate {
        name: GateName::Evidence,
        ask: evidence::collect_claims,
        judge: evidence::judge_evidence,
        hopeless: deny_nothing,
    },
    Gate {
        name: GateName::Window,
        ask: window::collect_claims,
        judge: window::judge_window,
        hopeless: window::cannot_pass,
    },
    Gate {
        name: GateName::OptIn,
        ask: opt_in::collect_claims,
        judge: opt_in::judge_opt_in,
        hopeless: cannot_pass_opt_in,
    },
];

/// For a gate that cannot be judged without a registry.
fn deny_nothing(_case: &Case, _context: &Context) -> bool {
    false
}

fn cannot_pass_ready(case: &Case, context: &Context) -> bool {
    !ready::judge_ready(case, &Facts::default(), context).is_passed()
}

fn cannot_pass_opt_in(case: &Case, context: &Context) -> bool {
    !opt_in::judge_opt_in(case, &Facts::default(), context).is_passed()
}

/// What every gate may read in addition to the Case and the Facts.
#[derive(Debug, Clone)]
pub struct Context {
    pub now: Time,
    /// Hash of the trust in force; part of a kept verdict's key.
    pub trust: Option<Digest>,
    /// `argocd.namespace`: no target namespace is ever this one.
    pub argocd_namespace: String,
    /// `argocd.requireObservation`.
    pub require_observation: bool,
    /// Whether the repository keeps signed records; without them (`--no-records`) history is trusted without
    /// proof.
    pub records: bool,
    /// History is given by the test case (`expedite test`): it needs no proof.
    pub assumed: bool,
    /// `evidence.rescan`: how often the deployed artifact and its scans are read again.
    pub rescan: Option<Span>,
    /// `now` is ahead of the real clock (a forecast): what is healthy is assumed to stay healthy until then,
    /// and enough votes are assumed to be sealed by the runs in between.
    pub foreseen: bool,
    /// Orders that `explain` shows: the evidence of every gate is read, even if another gate holds or a
    /// verdict is kept.
    pub explained: Option<OrderName>,
    pub electorate: Arc<Electorate>,
}

impl Context {
    /// The settings' defaults, at `now`, with the Kitchen's approvers.
    #[must_use]
    pub fn new(now: Time, kitchen: Option<&KitchenSpec>) -> Self {
        let electorate = match kitchen {
            Some(kitchen) => Electorate::new(kitchen.approval_trust, &kitchen.approvers),
            None => Electorate::default(),
        };
        Self {
            now,
            trust: None,
            argocd_namespace: "argocd".into(),
            require_observation: false,
            records: true,
            assumed: false,
            rescan: None,
            foreseen: false,
            explained: None,
            electorate: Arc::new(electorate),
        }
    }
}

/// Everything that has to be fetched, each artifact once. An artifact that is deployed or waits and has a
/// kept verdict under the current trust is not read again; one that could be promoted in this run always is.
#[must_use]
pub fn collect_asks(cases: &[Case], context: &Context) -> Vec<Ask> {
    let mut all: BTreeMap<Artifact, BTreeSet<Claim>> = BTreeMap::new();
    for case in cases {
        for (artifact, claim) in
            collect_case_claims(case, context).into_iter().chain(collect_deployed_claims(case, context))
        {
            all.entry(artifact).or_default().insert(claim);
        }
    }
    all.into_iter().map(|(artifact, claims)| Ask { artifact, claims }).collect()
}

/// The records of the repository that have to be read and verified: those of upstream stages, those of this
/// Order's earlier runs of the candidate, and that of what is deployed where rendering it would change git.
#[must_use]
pub fn collect_record_asks(cases: &[Case], context: &Context) -> BTreeSet<RecordAsk> {
    if !context.records {
        return BTreeSet::new();
    }
    let mut all: BTreeSet<RecordAsk> =
        cases.iter().filter_map(|case| pin::find_record_ask(case, context)).collect();
    for case in cases.iter().filter(|case| case.candidate.is_some()) {
        let own = case.serving.iter().map(|serving| (&case.order, serving));
        let stages = case.stages.iter().filter_map(|s| s.serving.as_ref().map(|serving| (&s.order, serving)));
        for (order, serving) in own.chain(stages) {
            all.extend(proof::collect_history_asks(order, &serving.status.history));
        }
    }
    all
}

/// Orders whose pin has to be proven. Every record of these in the repository is read, because their history
/// may have been shortened.
#[must_use]
pub fn find_pins_to_prove<'a>(cases: &'a [Case], context: &Context) -> Vec<&'a OrderRef> {
    cases
        .iter()
        .filter(|case| pin::find_record_ask(case, context).is_some())
        .map(|case| &case.order)
        .collect()
}

/// What is read again about the deployed artifact: whether it still exists, and what scanners have found
/// since.
fn collect_deployed_claims(case: &Case, context: &Context) -> Vec<(Artifact, Claim)> {
    let (Some(every), Some(deployed)) = (context.rescan, &case.deployed) else { return Vec::new() };
    if !rescan::is_due(&deployed.artifact.digest, every, context.now) {
        return Vec::new();
    }
    [Claim::Artifact, Claim::Scans].map(|claim| (deployed.artifact.clone(), claim)).into()
}

fn collect_case_claims(case: &Case, context: &Context) -> Vec<(Artifact, Claim)> {
    let explained = context.explained.as_ref() == Some(&case.order.name);
    let Some(candidate) = &case.candidate else {
        let Some(deployed) = &case.deployed else { return Vec::new() };
        let joins = case
            .slots
            .iter()
            .any(|slot| evidence::is_joining(case, slot) || pin::is_gone(case, slot, context));
        if evidence::find_kept_verdict(case, &deployed.artifact, context.trust).is_some()
            && !joins
            && !explained
        {
            return Vec::new();
        }
        return evidence::collect_basic_claims(&deployed.artifact, &case.order);
    };
    let kept = evidence::find_kept_verdict(case, &candidate.artifact, context.trust).is_some();
    let hopeless: Vec<GateName> =
        GATES.iter().filter(|gate| (gate.hopeless)(case, context)).map(|gate| gate.name).collect();
    // Only signature and provenance have a kept verdict. The evidence that makes a candidate the target, and
    // its seal, are read in every run, unless an earlier gate already prevents it from being the target.
    let is_no_target = hopeless.iter().any(|name| *name <= GateName::Upstream);
    let asked = |gate: &&Gate| match gate.name {
        _ if explained => true,
        GateName::Evidence => !kept || hopeless.is_empty(),
        GateName::Ready
        | GateName::Upstream
        | GateName::Checks
        | GateName::Approvals
        | GateName::Window
        | GateName::OptIn => !kept || !is_no_target,
    };
    GATES.iter().filter(asked).flat_map(|gate| (gate.ask)(case)).collect()
}

/// The verdict of every gate on the candidate, in order; empty without a candidate.
#[must_use]
pub fn judge_gates(case: &Case, facts: &Facts, context: &Context) -> Vec<Verdict> {
    if case.candidate.is_none() {
        return Vec::new();
    }
    GATES.iter().map(|gate| (gate.judge)(case, facts, context)).collect()
}

/// Whether gates 1 to 3 pass: then the candidate is the target, and its votes are sealed.
#[must_use]
pub fn is_target(verdicts: &[Verdict]) -> bool {
    !verdicts.is_empty() && verdicts.iter().filter(|v| v.gate <= GateName::Checks).all(Verdict::is_passed)
}

/// The facts about one artifact; empty if none were requested.
pub(crate) fn find_facts<'a>(facts: &'a Facts, artifact: &Artifact) -> Option<&'a ArtifactFacts> {
    facts.artifacts.get(artifact)
}
