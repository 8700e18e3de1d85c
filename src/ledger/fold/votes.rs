//! Votes that were sealed: the newest by approver, digest and place.

use crate::ledger::event::{VotesSealed, Voucher};
use crate::ledger::fold::Position;
use crate::ledger::past::{Past, Sealed, SealedVote};
use crate::ledger::record::Submission;
use crate::model::approval::Approver;
use crate::model::id::{Artifact, Digest};
use crate::model::serving::VoteStatus;

/// Most sealed votes that are kept: of more, the oldest Approve goes first.
const VOTES: usize = 256;

pub(super) fn fold_seal(past: &mut Past, artifact: &Artifact, body: &VotesSealed, at: &Position) {
    let record = &body.record;
    past.seal = Some(Sealed {
        sequence: at.sequence,
        record: None,
        preparation: record.preparation.name.clone(),
        digest: artifact.digest,
        result: record.result.clone(),
        sealed_time: record.sealed_time,
    });
    for submission in record.submissions.iter().filter(|submission| submission.counted) {
        keep_vote(
            past,
            SealedVote {
                preparation: record.preparation.name.clone(),
                environment: Some(body.environment.clone()),
                target_namespace: Some(body.target_namespace.clone()),
                vote: build_vote(submission, body.vouchers.get(&submission.name), artifact.digest),
            },
        );
    }
}

fn build_vote(submission: &Submission, voucher: Option<&Voucher>, digest: Digest) -> VoteStatus {
    VoteStatus {
        name: submission.name.clone(),
        uid: submission.uid.clone(),
        approver: Approver {
            issuer: submission.approver.issuer.clone(),
            subject: submission.approver.subject.clone(),
            username: submission.approver.username.clone(),
            email: None,
            groups: voucher.map(|voucher| voucher.groups.clone()).unwrap_or_default(),
        },
        decision: submission.decision,
        comment: submission.comment.clone(),
        digest,
        submitted_time: submission.submitted_time,
        creation_time: submission.creation_time,
        signature: voucher.and_then(|voucher| voucher.signature.clone()),
        counted: submission.counted,
        reason: submission.reason,
    }
}

/// The newest by approver, digest and place is kept.
pub(super) fn keep_vote(past: &mut Past, new: SealedVote) {
    let key = |v: &SealedVote| {
        let who = (v.vote.approver.issuer.clone(), v.vote.approver.subject.clone());
        (who, v.vote.digest, v.environment.clone(), v.target_namespace.clone())
    };
    past.votes.retain(|known| key(known) != key(&new));
    past.votes.push(new);
    while past.votes.len() > VOTES {
        let oldest = past.votes.iter().position(|vote| !vote.is_veto()).unwrap_or(0);
        past.votes.remove(oldest);
    }
}
