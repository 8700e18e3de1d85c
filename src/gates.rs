//! The gates in their order; each asks for evidence, then judges. Pure: a gate sees values that were read,
//! and knows nothing of how.
//!
//! Adding a gate: its file (`ask` and `judge`), its row in [`GATES`], a passing and a holding case, a row in
//! the README's table.

pub mod evidence;
pub mod opt_in;
pub mod policy;
pub mod ready;
pub mod soak;
pub mod ssh_vote;
pub mod unsupported;
pub mod votes;

use crate::model::evidence::{ArtifactFacts, Ask, Claim, Facts};
use crate::model::id::{Artifact, Digest};
use crate::model::time::Time;
use crate::model::verdict::{GateName, Verdict};
use crate::resolve::Case;
use std::collections::{BTreeMap, BTreeSet};

/// One gate: what it needs to know, and what it says.
pub struct Gate {
    /// Its name.
    pub name: GateName,
    /// The claims it needs, per artifact, for the candidate of this Case.
    pub ask: fn(&Case) -> Vec<(Artifact, Claim)>,
    /// Its answer for the candidate of this Case.
    pub judge: fn(&Case, &Facts, &Context) -> Verdict,
}

/// The gates, in the order in which a promotion passes them (`promotion.md`).
pub const GATES: [Gate; 7] = [
    Gate { name: GateName::Ready, ask: ready::ask, judge: ready::judge },
    Gate { name: GateName::Upstream, ask: unsupported::ask, judge: unsupported::upstream },
    Gate { name: GateName::Checks, ask: unsupported::ask, judge: unsupported::checks },
    Gate { name: GateName::Approvals, ask: unsupported::ask, judge: unsupported::approvals },
    Gate { name: GateName::Evidence, ask: evidence::ask, judge: evidence::judge },
    Gate { name: GateName::Window, ask: unsupported::ask, judge: unsupported::window },
    Gate { name: GateName::OptIn, ask: opt_in::ask, judge: opt_in::judge },
];

/// What every gate may look at besides the Case and the Facts.
#[derive(Debug, Clone)]
pub struct Context {
    /// The run's clock.
    pub now: Time,
    /// Hash of the trust in force; part of a kept verdict's key.
    pub trust: Option<Digest>,
    /// `argocd.namespace`: no target namespace is ever this one.
    pub argocd_namespace: String,
    /// `argocd.requireObservation`.
    pub require_observation: bool,
}

/// Everything that has to be fetched, each artifact once. What is deployed or waits, and has a kept verdict
/// under the trust in force, is not asked for again; what could be promoted in this run always is.
#[must_use]
pub fn asks(cases: &[Case], context: &Context) -> Vec<Ask> {
    let mut all: BTreeMap<Artifact, BTreeSet<Claim>> = BTreeMap::new();
    for case in cases {
        for (artifact, claim) in claims(case, context) {
            all.entry(artifact).or_default().insert(claim);
        }
    }
    all.into_iter().map(|(artifact, claims)| Ask { artifact, claims }).collect()
}

fn claims(case: &Case, context: &Context) -> Vec<(Artifact, Claim)> {
    let Some(candidate) = &case.candidate else {
        let Some(deployed) = &case.deployed else { return Vec::new() };
        let joins = case.slots.iter().any(|slot| evidence::joins(case, slot));
        if evidence::kept(case, &deployed.artifact, context.trust).is_some() && !joins {
            return Vec::new();
        }
        return evidence::basics(&deployed.artifact, &case.order);
    };
    let held_anyway = GATES
        .iter()
        .filter(|gate| (gate.ask)(case).is_empty())
        .any(|gate| !(gate.judge)(case, &Facts::default(), context).is_passed());
    if held_anyway && evidence::kept(case, &candidate.artifact, context.trust).is_some() {
        return Vec::new();
    }
    GATES.iter().flat_map(|gate| (gate.ask)(case)).collect()
}

/// Every gate's answer for the candidate, in order; none without a candidate.
#[must_use]
pub fn judge(case: &Case, facts: &Facts, context: &Context) -> Vec<Verdict> {
    if case.candidate.is_none() {
        return Vec::new();
    }
    GATES.iter().map(|gate| (gate.judge)(case, facts, context)).collect()
}

/// What is known of one artifact; nothing where nothing was asked.
pub(crate) fn facts_of<'a>(facts: &'a Facts, artifact: &Artifact) -> Option<&'a ArtifactFacts> {
    facts.artifacts.get(artifact)
}
