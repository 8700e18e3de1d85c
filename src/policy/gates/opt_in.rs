//! Gate 7, Opt-in: per Cluster, no Application with the generated name exists that Expedite did not create,
//! unless it is annotated for exactly this Order. A held Cluster never holds the others.

use super::Context;
use crate::model::evidence::{Claim, Facts};
use crate::model::id::Artifact;
use crate::model::verdict::{EvidenceRef, For, GateName, Verdict};
use crate::policy::resolve::Case;
use crate::policy::resolve::slot::{Consent, Slot};

const GATE: GateName = GateName::OptIn;

/// Needs no evidence: git and the observed Applications decide.
#[must_use]
pub fn collect_claims(_case: &Case) -> Vec<(Artifact, Claim)> {
    Vec::new()
}

/// Whether the Application of one Cluster may be written: the reason for the record, or why not.
///
/// # Errors
/// The full message: Application, annotation, what was found and expected.
pub fn admit_slot(slot: &Slot, context: &Context) -> Result<&'static str, String> {
    if slot.observed.as_ref().is_some_and(|live| live.metadata.deletion_timestamp.is_some()) {
        return Err(format!(
            "Application {} is being deleted; it is written again once it is gone",
            slot.name
        ));
    }
    match &slot.consent {
        Consent::Ours => Ok("created"),
        Consent::Free { observed: true } => Ok("created"),
        Consent::Free { observed: false } if context.require_observation => Err(format!(
            "whether an Application {} exists was not observed, but argocd.requireObservation requires that",
            slot.name
        )),
        Consent::Free { observed: false } => Ok("not observed"),
        Consent::OptedIn => Ok("opted in"),
        Consent::Refused(why) => Err(why.clone()),
    }
}

/// Passes if at least one Cluster can be written.
#[must_use]
pub fn judge_opt_in(case: &Case, _facts: &Facts, context: &Context) -> Verdict {
    let mut open: Vec<(&Slot, &'static str)> = Vec::new();
    let mut held: Vec<String> = Vec::new();
    for slot in &case.slots {
        if slot.cluster.held.is_some() {
            continue;
        }
        match admit_slot(slot, context) {
            Ok(word) => open.push((slot, word)),
            Err(why) => held.push(format!("Cluster {}: {why}", slot.cluster.name)),
        }
    }
    if open.is_empty() {
        return Verdict::make_waiting(
            GATE,
            For::Person(vec!["the owner of the Application".into()]),
            if held.is_empty() { "no Cluster can receive it".into() } else { held.join("; ") },
        );
    }
    let mut message: Vec<String> =
        open.iter().map(|(slot, word)| format!("Cluster {}: {word}", slot.cluster.name)).collect();
    message.extend(held);
    let mut verdict = Verdict::make_passed(GATE, message.join("; "));
    verdict.evidence = open
        .iter()
        .map(|(slot, word)| EvidenceRef {
            kind: "application".into(),
            name: format!("{}: {word}", slot.cluster.name),
            digest: None,
            uri: slot.name.to_string(),
            key: String::new(),
        })
        .collect();
    verdict
}
