//! A Serving's status as Past has it: what is written, and what a status that says otherwise is restored to.

use crate::ledger::fold::fill_head;
use crate::ledger::past::Past;
use crate::model::id::Digest;
use crate::model::serving::{ApprovalStatus, Deployed, HistoryEntry, ServingStatus, VoteStatus};

/// A status with all that comes from Past, and which of its members said otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct Restored {
    /// The status.
    pub status: ServingStatus,
    /// Members that said otherwise, in their order.
    pub differed: Vec<&'static str>,
}

/// Writes into `status` what comes from Past and from nowhere else. `head`: the hash of the newest statement.
#[must_use]
pub fn restore_status(past: &Past, head: Digest, status: &ServingStatus) -> Restored {
    let past = fill_head(past, head);
    let mut new = status.clone();
    let deployed = past.deployed.as_ref();
    new.observed_preparation_name = deployed.map(|pin| pin.preparation.clone());
    new.deployed_digest = deployed.map(|pin| pin.digest);
    new.deployed = deployed.map(|pin| Deployed {
        environment: pin.environment.clone(),
        repository: pin.repository.clone(),
        target_namespace: pin.target_namespace.clone(),
        source: pin.source.clone(),
    });
    new.history = build_history(&past);
    new.approval = build_approval(&past, status.approval.as_ref());
    let differs = [
        ("observedPreparationName", new.observed_preparation_name != status.observed_preparation_name),
        ("deployedDigest", new.deployed_digest != status.deployed_digest),
        ("deployed", new.deployed != status.deployed),
        ("history", new.history != status.history),
        ("approval", new.approval != status.approval),
    ];
    let differed = differs.into_iter().filter(|(_, differs)| *differs).map(|(member, _)| member).collect();
    Restored { status: new, differed }
}

/// The newest promotions, as a Serving has them.
#[must_use]
pub fn build_history(past: &Past) -> Vec<HistoryEntry> {
    past.history.iter().map(|entry| entry.said.clone()).collect()
}

/// Votes and seal, with every vote that was sealed for the same digest: a veto that was sealed holds until the same
/// approver votes anew, whatever a file says.
fn build_approval(past: &Past, status: Option<&ApprovalStatus>) -> Option<ApprovalStatus> {
    let Some(seal) = &past.seal else { return status.cloned() };
    let said = status.cloned().unwrap_or_default();
    if said.preparation_name.as_ref().is_some_and(|name| *name != seal.preparation) {
        // Of another Preparation, of which nothing is sealed.
        return Some(said);
    }
    let mut votes = said.votes.clone();
    for sealed in
        past.votes.iter().filter(|v| v.vote.digest == seal.digest && v.preparation == seal.preparation)
    {
        if !votes.iter().any(|vote| is_as_new(vote, &sealed.vote)) {
            votes.push(sealed.vote.clone());
        }
    }
    Some(ApprovalStatus {
        preparation_name: Some(seal.preparation.clone()),
        votes,
        sealed_time: Some(seal.sealed_time),
        record: seal.record,
        attestation: said.attestation,
    })
}

/// Whether a vote is the same approver's on the same digest, as new as the sealed one or newer.
fn is_as_new(vote: &VoteStatus, sealed: &VoteStatus) -> bool {
    let who = |v: &VoteStatus| (v.approver.issuer.clone(), v.approver.subject.clone(), v.digest);
    who(vote) == who(sealed) && vote.submitted_time >= sealed.submitted_time
}
