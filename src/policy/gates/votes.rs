//! Votes: which of them count, whether they are enough, and what a seal of them contains.
//!
//! A vote counts for the exact digest it names (and uid, where both sides have one). Per approver (issuer and
//! subject) the latest authentic vote counts, so a person cannot replace the vote of another by writing a
//! newer one in that name. A vote that was seen once counts until the same approver votes again, even if its
//! file was deleted or edited. The current groups decide who is eligible.
//!
//! Under `Cluster` only an API server authenticates a vote: a vote in a file does not prove who wrote it, nor
//! does a Serving, which is in git. An Approve counts while the API server lists it. A Reject that was seen
//! stays a veto, because unproven votes may hold a promotion but never allow one.
//!
//! Votes are ordered by the time that their authentication covers: under `Signed` the signed `submittedTime`
//! (then Reject over Approve, then the name); otherwise creationTimestamp, submittedTime, name. A vote dated
//! ahead of the run's clock never allows a promotion: such an Approve does not count, such a Reject is still
//! a veto.
//!
//! Does not know Orders, registries or how a seal is written.

use crate::model::approval::{Approval, Approver, Ballot};
use crate::model::id::{Digest, Namespace, PreparationName};
use crate::model::kitchen::{ApprovalTrust, KnownApprover};
use crate::model::order::ApprovalPolicy;
use crate::model::reason::Vote;
use crate::model::serving::{VOTES, VoteStatus};
use crate::model::time::{SKEW, Time};
use crate::policy::gates::ssh_vote;
use sha2::{Digest as _, Sha256};
use ssh_key::PublicKey;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

/// Who may vote, and how a vote is authenticated, as the Kitchen says; read once per run.
#[derive(Debug, Clone, Default)]
pub struct Electorate {
    trust: ApprovalTrust,
    known: BTreeMap<(String, String), KnownVoter>,
    /// Results of signature checks: a gate is judged several times in a run, and the result for the same
    /// bytes and keys never changes.
    verified: Arc<Mutex<HashMap<[u8; 32], bool>>>,
    /// Errors in the Kitchen's list; the entries concerned are already ignored.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone)]
struct KnownVoter {
    name: String,
    groups: BTreeSet<String>,
    keys: Vec<PublicKey>,
}

impl Electorate {
    /// Reads `Kitchen.spec.approvers`. An identity that is listed twice is ignored, and so is a key that two
    /// identities share, because one person could vote twice.
    #[must_use]
    pub fn new(trust: ApprovalTrust, approvers: &[KnownApprover]) -> Self {
        let mut warnings = Vec::new();
        let mut known: BTreeMap<(String, String), KnownVoter> = BTreeMap::new();
        let mut twice = BTreeSet::new();
        let mut owners: BTreeMap<String, (String, String)> = BTreeMap::new();
        let mut shared = BTreeSet::new();
        for approver in approvers {
            let identity = (approver.issuer.clone(), approver.subject.clone());
            let name = describe_voter(&approver.username, &identity);
            let mut keys = Vec::new();
            for (index, line) in approver.ssh_keys.iter().enumerate() {
                match ssh_vote::parse_key(line) {
                    Ok(key) => {
                        let fingerprint = key.fingerprint(ssh_key::HashAlg::Sha256).to_string();
                        let owner = owners.entry(fingerprint.clone()).or_insert_with(|| identity.clone());
                        if *owner != identity && shared.insert(fingerprint.clone()) {
                            warnings.push(format!(
                                "Kitchen approver {name}: sshKeys[{index}] ({fingerprint}) is another approver's key too; it counts for neither of them"
                            ));
                        }
                        keys.push(key);
                    }
                    Err(why) => warnings.push(format!("Kitchen approver {name}: sshKeys[{index}]: {why}")),
                }
            }
            let entry =
                KnownVoter { name: name.clone(), groups: approver.groups.iter().cloned().collect(), keys };
            if known.insert(identity.clone(), entry).is_some() && twice.insert(identity) {
                warnings.push(format!(
                    "Kitchen approver {name} is listed twice; votes of that identity do not count until one is removed"
                ));
            }
        }
        for identity in &twice {
            known.remove(identity);
        }
        for known in known.values_mut() {
            known.keys.retain(|k| !shared.contains(&k.fingerprint(ssh_key::HashAlg::Sha256).to_string()));
        }
        Self { trust, known, verified: Arc::default(), warnings }
    }

    /// Whether `signature` is over `message` by a key of this approver.
    fn is_signed(&self, known: &KnownVoter, who: &(String, String), signature: &str, message: &[u8]) -> bool {
        let mut hash = Sha256::new();
        for part in [who.0.as_bytes(), who.1.as_bytes(), message, signature.as_bytes()] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let key: [u8; 32] = hash.finalize().into();
        let remembered = self.verified.lock().ok().and_then(|all| all.get(&key).copied());
        remembered.unwrap_or_else(|| {
            let verifies = ssh_vote::verify_signature(signature, message, &known.keys).is_ok();
            if let Ok(mut all) = self.verified.lock() {
                all.insert(key, verifies);
            }
            verifies
        })
    }

    /// How votes are authenticated.
    #[must_use]
    pub fn trust(&self) -> ApprovalTrust {
        self.trust
    }

    /// The groups that count for this approver: those in the Kitchen, or those in the vote if the API server
    /// authenticates it (`Cluster`), or if the merge rules do and the Kitchen lists no approvers
    /// (`Repository`).
    fn find_groups(&self, approver: &Approver) -> Option<BTreeSet<String>> {
        let own = || Some(approver.groups.iter().cloned().collect());
        match self.trust {
            ApprovalTrust::Cluster => own(),
            ApprovalTrust::Repository if self.known.is_empty() && self.warnings.is_empty() => own(),
            ApprovalTrust::Signed | ApprovalTrust::Repository => {
                self.known.get(&make_identity(approver)).map(|k| k.groups.clone())
            }
        }
    }

    fn is_eligible(&self, approver: &Approver, policy: &ApprovalPolicy) -> bool {
        self.find_groups(approver).is_some_and(|groups| is_allowed(&groups, policy))
    }

    /// Known people who may vote under `policy`, sorted: (issuer, subject) and a name for messages.
    #[must_use]
    pub fn collect_eligible(&self, policy: &ApprovalPolicy) -> Vec<(&(String, String), &str)> {
        self.known
            .iter()
            .filter(|(_, known)| is_allowed(&known.groups, policy))
            .map(|(identity, known)| (identity, known.name.as_str()))
            .collect()
    }
}

fn is_allowed(groups: &BTreeSet<String>, policy: &ApprovalPolicy) -> bool {
    policy.allowed_groups.is_empty() || policy.allowed_groups.iter().any(|group| groups.contains(group))
}

fn make_identity(approver: &Approver) -> (String, String) {
    (approver.issuer.clone(), approver.subject.clone())
}

fn describe_voter(username: &str, identity: &(String, String)) -> String {
    if username.is_empty() { format!("{} at {}", identity.1, identity.0) } else { username.to_owned() }
}

/// What is voted on, and its state.
#[derive(Debug, Clone)]
pub struct VoteQuestion<'a> {
    pub namespace: &'a Namespace,
    pub preparation: &'a PreparationName,
    pub digest: Digest,
    /// Its uid, if it has one.
    pub uid: Option<&'a str>,
    pub policy: &'a ApprovalPolicy,
    /// When it became the target; `None`: it is not the target, so no votes are sealed.
    pub target_since: Option<Time>,
    /// Time of a valid seal (`Approved`, under a policy at least as strict as the current one).
    pub sealed: Option<Time>,
    /// It is deployed already, so later votes change nothing.
    pub deployed: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// At most 64, by approver and time: what `status.approval.votes` and a seal hold.
    pub votes: Vec<VoteStatus>,
    /// Eligible approvers whose latest vote is Approve.
    pub approvals: u32,
    /// Names of eligible approvers whose latest vote is Reject: each is a veto.
    pub vetoes: Vec<String>,
    /// Whether there are enough approvals and no veto.
    pub met: bool,
    /// The time in a seal of these votes: the later of the last counted vote and the time of becoming the
    /// target. `None` while it is not the target.
    pub seal_time: Option<Time>,
    /// Known people who may still vote, by name; without a list of approvers, the groups.
    pub may_vote: Vec<String>,
    /// How many counted votes are only stored in the Serving: their file or object does not exist any more.
    pub remembered: usize,
    pub warnings: Vec<String>,
}

/// An Approval as it was read.
#[derive(Debug, Clone, Copy)]
pub struct Paper<'a> {
    pub approval: &'a Approval,
    /// Whether it came from an API server, which knows who wrote it; a file does not.
    pub by_server: bool,
}

/// One vote while it is judged.
struct Cast {
    vote: VoteStatus,
    /// Whether it names this Preparation (and its uid, if both have one).
    on_preparation: bool,
    on_uid: bool,
    in_hand: bool,
    by_server: bool,
}

/// Judges every vote on one candidate. `approvals` are those whose `preparationRef` names the candidate, or
/// its digest with the name of a Preparation that does not exist; `remembered` is `status.approval.votes` if
/// that belongs to this candidate.
#[must_use]
pub fn tally_votes<'a>(
    question: &VoteQuestion,
    electorate: &Electorate,
    approvals: impl IntoIterator<Item = Paper<'a>>,
    remembered: &[VoteStatus],
    now: Time,
) -> Tally {
    let mut warnings = Vec::new();
    let mut casts = collect_casts(question, approvals, remembered);
    for cast in casts.iter().filter(|cast| cast.in_hand && !cast.by_server) {
        if electorate.trust == ApprovalTrust::Cluster {
            warnings.push(format!(
                "Approval {} comes from a file, which does not prove who wrote it; it does not count under approvalTrust: Cluster",
                cast.vote.name
            ));
        }
    }
    let latest_clock = now.add_span(SKEW);
    casts.retain(|cast| {
        let vote = &cast.vote;
        let stated = vote.creation_time.map_or(vote.submitted_time, |c| c.max(vote.submitted_time));
        if stated <= latest_clock {
            return true;
        }
        let effect = match vote.decision {
            Ballot::Approve => "it does not count",
            Ballot::Reject => "it still counts as a veto",
        };
        warnings
            .push(format!("Approval {} is dated {stated}, ahead of this run's clock; {effect}", vote.name));
        vote.decision == Ballot::Reject
    });

    let mut rest = Vec::new();
    let mut by_approver: BTreeMap<(String, String), Vec<Cast>> = BTreeMap::new();
    for mut cast in casts {
        match check_authenticity(question, electorate, &cast) {
            Ok(()) => by_approver.entry(make_identity(&cast.vote.approver)).or_default().push(cast),
            Err(reason) => {
                cast.vote.reason = reason;
                // A stored vote that is not authentic and has no object any more is dropped.
                if cast.in_hand {
                    rest.push(cast.vote);
                }
            }
        }
    }

    let mut tally = Tally { warnings, ..Tally::default() };
    let mut counted = Vec::new();
    for casts in by_approver.into_values() {
        for (cast, reason) in judge_casts(question, electorate, casts) {
            let mut vote = cast.vote;
            vote.reason = reason;
            if reason == Vote::Counted {
                vote.counted = true;
                tally.remembered += usize::from(!cast.in_hand);
                counted.push(vote);
            } else {
                rest.push(vote);
            }
        }
    }
    count_votes(&mut tally, question, electorate, &counted);
    tally.votes = keep_votes(electorate.trust, counted, rest);
    tally
}

fn collect_casts<'a>(
    question: &VoteQuestion,
    approvals: impl IntoIterator<Item = Paper<'a>>,
    remembered: &[VoteStatus],
) -> Vec<Cast> {
    let mut casts: Vec<Cast> = approvals
        .into_iter()
        .map(|Paper { approval, by_server }| {
            let spec = &approval.spec;
            let uids = (question.uid, spec.preparation_ref.uid.as_deref());
            Cast {
                vote: VoteStatus {
                    name: approval.metadata.name.clone(),
                    uid: approval.metadata.uid.clone(),
                    approver: spec.approver.clone(),
                    decision: spec.decision,
                    comment: spec.comment.clone(),
                    digest: spec.preparation_ref.artifact_digest,
                    submitted_time: spec.submitted_time,
                    creation_time: approval.metadata.creation_timestamp,
                    signature: spec.signature.clone(),
                    counted: false,
                    reason: Vote::Counted,
                },
                on_preparation: spec.preparation_ref.name == *question.preparation,
                on_uid: !matches!(uids, (Some(ours), Some(theirs)) if ours != theirs),
                in_hand: true,
                by_server,
            }
        })
        .collect();
    for vote in remembered {
        let same = |cast: &Cast| {
            let other = &cast.vote;
            cast.on_preparation
                && cast.on_uid
                && other.name == vote.name
                && make_identity(&other.approver) == make_identity(&vote.approver)
                && (other.decision, other.digest, other.submitted_time)
                    == (vote.decision, vote.digest, vote.submitted_time)
                && other.signature == vote.signature
        };
        // A vote on a Preparation that does not exist would be stored under the name of another one.
        if vote.reason != Vote::PreparationNotFound && !casts.iter().any(same) {
            let vote = VoteStatus { counted: false, ..vote.clone() };
            casts.push(Cast { vote, on_preparation: true, on_uid: true, in_hand: false, by_server: false });
        }
    }
    casts
}

/// Whether the vote is on this candidate, and who it claims to be from.
fn check_authenticity(question: &VoteQuestion, electorate: &Electorate, cast: &Cast) -> Result<(), Vote> {
    if !cast.on_preparation {
        return Err(Vote::PreparationNotFound);
    }
    if cast.vote.digest != question.digest || !cast.on_uid {
        return Err(Vote::DigestMismatch);
    }
    match electorate.trust {
        ApprovalTrust::Repository => Ok(()),
        ApprovalTrust::Cluster => {
            let seen_veto = !cast.in_hand && cast.vote.decision == Ballot::Reject;
            if cast.by_server || seen_veto { Ok(()) } else { Err(Vote::SignatureMissing) }
        }
        ApprovalTrust::Signed => {
            let who = make_identity(&cast.vote.approver);
            let known = electorate.known.get(&who).ok_or(Vote::NotEligible)?;
            let signature = cast.vote.signature.as_deref().filter(|s| !s.trim().is_empty());
            let signature = signature.ok_or(Vote::SignatureMissing)?;
            let message = ssh_vote::build_vote_bytes(
                question.namespace,
                question.preparation,
                question.digest,
                cast.vote.decision,
                cast.vote.submitted_time,
            );
            if electorate.is_signed(known, &who, signature, &message) {
                Ok(())
            } else {
                Err(Vote::SignatureInvalid)
            }
        }
    }
}

/// When a vote was cast, as far as its authentication covers the time.
fn find_cast_time(trust: ApprovalTrust, vote: &VoteStatus) -> Time {
    match trust {
        ApprovalTrust::Signed => vote.submitted_time,
        ApprovalTrust::Cluster | ApprovalTrust::Repository => {
            vote.creation_time.unwrap_or(vote.submitted_time)
        }
    }
}

/// One approver's votes with their reasons: the latest one counts, the others are superseded or too late.
fn judge_casts(question: &VoteQuestion, electorate: &Electorate, mut casts: Vec<Cast>) -> Vec<(Cast, Vote)> {
    let trust = electorate.trust;
    casts.sort_by_cached_key(|cast| {
        let vote = &cast.vote;
        let rejects = vote.decision == Ballot::Reject;
        match trust {
            ApprovalTrust::Signed => {
                (vote.submitted_time, vote.submitted_time, rejects, vote.name.clone(), rejects)
            }
            ApprovalTrust::Cluster | ApprovalTrust::Repository => {
                (find_cast_time(trust, vote), vote.submitted_time, false, vote.name.clone(), rejects)
            }
        }
    });
    let is_late =
        |cast: &Cast| question.sealed.is_some_and(|sealed| find_cast_time(trust, &cast.vote) > sealed);
    // A seal is valid until the latest vote of an eligible approver is Reject; once deployed it stays valid.
    let latest_reopens = casts.last().is_some_and(|last| {
        is_late(last)
            && !question.deployed
            && last.vote.decision == Ballot::Reject
            && electorate.is_eligible(&last.vote.approver, question.policy)
    });
    let counts = casts.iter().rposition(|cast| latest_reopens || !is_late(cast));
    casts
        .into_iter()
        .enumerate()
        .map(|(index, cast)| {
            let reason = match counts {
                Some(latest) if index < latest => Vote::Superseded,
                Some(latest) if index == latest => {
                    if electorate.is_eligible(&cast.vote.approver, question.policy) {
                        Vote::Counted
                    } else {
                        Vote::NotEligible
                    }
                }
                Some(_) | None => Vote::SubmittedAfterSeal,
            };
            (cast, reason)
        })
        .collect()
}

fn count_votes(tally: &mut Tally, question: &VoteQuestion, electorate: &Electorate, counted: &[VoteStatus]) {
    let mut approved = BTreeSet::new();
    for vote in counted {
        let who = make_identity(&vote.approver);
        match vote.decision {
            Ballot::Approve => {
                approved.insert(who);
            }
            Ballot::Reject => {
                let known = electorate.known.get(&who).map(|k| k.name.clone());
                tally.vetoes.push(known.unwrap_or_else(|| describe_voter(&vote.approver.username, &who)));
            }
        }
    }
    tally.vetoes.sort();
    tally.approvals = u32::try_from(approved.len()).unwrap_or(u32::MAX);
    tally.met = tally.vetoes.is_empty() && tally.approvals >= question.policy.required_approvals;
    let last = counted.iter().map(|vote| find_cast_time(electorate.trust, vote)).max();
    tally.seal_time = question.target_since.map(|since| last.map_or(since, |last| last.max(since)));
    tally.may_vote = match electorate.collect_eligible(question.policy) {
        empty if empty.is_empty() => {
            question.policy.allowed_groups.iter().map(|group| format!("group {group}")).collect()
        }
        people => people
            .into_iter()
            .filter(|(who, _)| !approved.contains(*who))
            .map(|(_, name)| name.to_owned())
            .collect(),
    };
}

/// The votes that are kept, 64 at most: vetoes, then counted approvals from the first on (those that
/// reached the number), then the newest of the rest. In the order of approver and time, so that the same
/// votes are the same bytes.
fn keep_votes(
    trust: ApprovalTrust,
    mut counted: Vec<VoteStatus>,
    mut rest: Vec<VoteStatus>,
) -> Vec<VoteStatus> {
    counted.sort_by_cached_key(|v| (v.decision == Ballot::Approve, find_cast_time(trust, v), v.name.clone()));
    rest.sort_by_cached_key(|v| (Reverse(find_cast_time(trust, v)), v.name.clone()));
    counted.extend(rest);
    counted.truncate(VOTES);
    counted.sort_by_cached_key(|v| {
        (make_identity(&v.approver), find_cast_time(trust, v), v.submitted_time, v.name.clone(), v.reason)
    });
    counted
}

#[cfg(test)]
mod tests;
