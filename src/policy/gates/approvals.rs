//! Gate 4, Approvals: the strictest policy is met by eligible votes, no eligible approver rejects, and a
//! signed seal of those votes is attached to the artifact.
//!
//! The gate passes by the seal, which is read from the registry at the promotion; the votes decide whether a
//! seal has to be made. A seal under a weaker policy than the current one is void, and the votes count again.
//! A Reject after the seal also voids it, and is sealed itself.

use super::evidence::describe_unread;
use super::policy::{find_strictest, is_as_strict};
use super::votes::{self, Paper, Tally, VoteQuestion};
use super::{Context, find_facts};
use crate::model::evidence::{Claim, Evidence, Facts, SealOf, SealProof};
use crate::model::id::Artifact;
use crate::model::kitchen::ApprovalTrust;
use crate::model::order::ApprovalPolicy;
use crate::model::plan::{Candidate, SealRequest};
use crate::model::reason::Approved;
use crate::model::serving::{ApprovalStatus, VoteStatus};
use crate::model::time::{SKEW, Span, Time};
use crate::model::verdict::{EvidenceRef, For, GateName, Verdict};
use crate::model::world::is_cluster;
use crate::policy::resolve::Case;

const GATE: GateName = GateName::Approvals;

const NOT_NEEDED: &str = "no approval is needed";

/// Without signed records a person with push rights could write who approved what, and that it ran here
/// before.
const UNSIGNED: &str = "an approval policy applies, and this repository keeps no signed records (--no-records): nothing is promoted; run with a key that signs records, or remove the policy from the Order, its Environment and the Preparation";

/// The only result of a seal that passes.
const APPROVED: &str = "Approved";

/// The seal of this candidate, if a policy applies.
#[must_use]
pub fn collect_claims(case: &Case) -> Vec<(Artifact, Claim)> {
    match (&case.candidate, resolve_policy(case)) {
        (Some(candidate), Ok(Some(_))) => {
            vec![(candidate.artifact.clone(), Claim::Approvals(build_seal_of(case, candidate)))]
        }
        (Some(_) | None, _) => Vec::new(),
    }
}

fn build_seal_of(case: &Case, candidate: &Candidate) -> SealOf {
    SealOf { order: case.order.clone(), preparation: candidate.name.clone(), uid: candidate.uid.clone() }
}

/// The strictest of Order, Environment and the candidate's Preparation; `None`: no approval is needed.
///
/// # Errors
/// No group may approve, or a policy is out of bounds.
pub fn resolve_policy(case: &Case) -> Result<Option<ApprovalPolicy>, String> {
    let preparation = case.candidate.as_ref().and_then(|c| case.preparations.get(&c.name));
    find_strictest(
        case.demands.order_approvals.as_ref(),
        case.demands.environment_approvals.as_ref(),
        preparation.and_then(|p| p.object.spec.approval_policy.as_ref()),
    )
}

/// Whether it cannot pass, whatever the registry answers: too few votes, and no seal was ever made.
#[must_use]
pub fn cannot_pass(case: &Case, context: &Context) -> bool {
    let assessed = assess_votes(case, &Facts::default(), context);
    match assessed.policy {
        None => assessed.reason != Approved::ApprovalNotRequired,
        Some(_) => {
            is_refused(context)
                || !assessed.tally.vetoes.is_empty()
                || (!assessed.tally.met && find_remembered_seal(case).is_none())
        }
    }
}

/// Whether no policy can be met, whatever the votes are: the repository has no signed records.
fn is_refused(context: &Context) -> bool {
    !context.records && !context.assumed
}

/// All that is known of the candidate's approval.
#[derive(Debug, Clone)]
pub struct Assessment {
    /// The strictest policy; `None`: no approval is required, or no policy can be met.
    pub policy: Option<ApprovalPolicy>,
    /// The votes, judged; empty without a policy.
    pub tally: Tally,
    pub reason: Approved,
    pub verdict: Verdict,
    /// The seal that holds.
    pub seal: Option<SealProof>,
    /// The seal that is due.
    pub due: Option<SealRequest>,
}

#[must_use]
pub fn judge_approvals(case: &Case, facts: &Facts, context: &Context) -> Verdict {
    assess_votes(case, facts, context).verdict
}

/// Judges votes and seal of the candidate.
#[must_use]
pub fn assess_votes(case: &Case, facts: &Facts, context: &Context) -> Assessment {
    let simple = |reason, verdict| Assessment {
        policy: None,
        tally: Tally::default(),
        reason,
        verdict,
        seal: None,
        due: None,
    };
    let Some(candidate) = &case.candidate else {
        return simple(Approved::AwaitingApprovals, Verdict::make_failed(GATE, "there is no candidate"));
    };
    let policy = match resolve_policy(case) {
        Ok(None) => {
            return simple(Approved::ApprovalNotRequired, Verdict::make_passed(GATE, NOT_NEEDED));
        }
        Err(why) => return simple(Approved::AwaitingApprovals, Verdict::make_failed(GATE, why)),
        Ok(Some(policy)) => policy,
    };
    let found = find_seal(case, candidate, facts);
    let (newest, holds) = match &found {
        FoundSeal::Seal(seal) => (Some(seal), is_seal_valid(seal, &policy, context.now)),
        FoundSeal::None | FoundSeal::NotAsked | FoundSeal::Unread(_) => (None, false),
    };
    let tally =
        count_votes(case, candidate, &policy, newest.filter(|_| holds).map(|s| s.sealed_time), context);
    let due = find_due_seal(case, candidate, &policy, &tally, &found, holds, context)
        .filter(|_| !is_refused(context));
    let (reason, mut verdict) = if is_refused(context) {
        (Approved::AwaitingApprovals, Verdict::make_failed(GATE, UNSIGNED))
    } else if let FoundSeal::Unread(why) = &found {
        let mut verdict = Verdict::make_waiting(GATE, For::Registry, why.clone());
        verdict.unread = true;
        (Approved::SealingApprovals, verdict)
    } else if !tally.vetoes.is_empty() {
        let who = tally.vetoes.join(", ");
        let message = format!("{who} rejects it; the same approver may vote again");
        (Approved::ChangesRequested, Verdict::make_waiting(GATE, For::Person(tally.vetoes.clone()), message))
    } else if let Some(seal) = newest.filter(|_| holds) {
        (Approved::Approved, judge_sealed(seal, candidate, &tally))
    } else if tally.met && (context.assumed || context.foreseen) {
        let by = collect_voters(&tally.votes).join(", ");
        // In a forecast, earlier runs have made it the target and sealed its votes.
        let seal = if context.assumed { "their seal is assumed" } else { "their seal is made by then" };
        (Approved::Approved, Verdict::make_passed(GATE, format!("enough approvals (by {by}); {seal}")))
    } else if tally.met {
        (Approved::SealingApprovals, judge_sealing(&tally, due.as_ref(), &found))
    } else {
        (Approved::AwaitingApprovals, judge_awaiting(&policy, &tally, newest))
    };
    verdict.message.push_str(describe_trust(context));
    verdict.parameters = serde_json::json!({"policy": policy, "approvalTrust": match context.electorate.trust() {
        ApprovalTrust::Signed => "Signed",
        ApprovalTrust::Cluster => "Cluster",
        ApprovalTrust::Repository => "Repository",
    }});
    let seal = newest.filter(|_| holds).cloned();
    Assessment { policy: Some(policy), tally, reason, verdict, seal, due }
}

enum FoundSeal {
    Seal(SealProof),
    None,
    NotAsked,
    Unread(String),
}

fn find_seal(case: &Case, candidate: &Candidate, facts: &Facts) -> FoundSeal {
    let known = find_facts(facts, &candidate.artifact)
        .and_then(|known| known.approvals.get(&build_seal_of(case, candidate)));
    match known {
        None => FoundSeal::NotAsked,
        Some(Evidence::Proven(seal)) => FoundSeal::Seal(seal.clone()),
        Some(Evidence::Unread(unread)) => {
            FoundSeal::Unread(format!("{}: seal of the votes: {}", unread.reason, describe_unread(unread)))
        }
        // A seal was attached, so a registry without it is not simply without a seal: it may be hiding one.
        Some(Evidence::Missing(looked) | Evidence::Invalid(looked)) => match find_remembered_seal(case) {
            Some(time) => FoundSeal::Unread(format!(
                "the votes were sealed at {time}, but the registry does not list that seal any more: {}",
                looked.why
            )),
            None => FoundSeal::None,
        },
    }
}

/// When the candidate's votes were sealed, according to the Serving.
fn find_remembered_seal(case: &Case) -> Option<Time> {
    find_remembered(case)?.sealed_time
}

fn find_remembered(case: &Case) -> Option<&ApprovalStatus> {
    let approval = case.serving.as_ref()?.status.approval.as_ref()?;
    let candidate = case.candidate.as_ref()?;
    (approval.preparation_name.as_ref() == Some(&candidate.name)).then_some(approval)
}

fn is_seal_valid(seal: &SealProof, policy: &ApprovalPolicy, now: Time) -> bool {
    seal.result == APPROVED && is_as_strict(&seal.policy, policy) && seal.sealed_time <= now.add_span(SKEW)
}

fn count_votes(
    case: &Case,
    candidate: &Candidate,
    policy: &ApprovalPolicy,
    sealed: Option<Time>,
    context: &Context,
) -> Tally {
    let question = VoteQuestion {
        namespace: &case.order.namespace,
        preparation: &candidate.name,
        digest: candidate.artifact.digest,
        uid: candidate.uid.as_deref(),
        policy,
        target_since: find_target_since(case, candidate),
        sealed,
        deployed: false,
    };
    let on_this = case.approvals.iter().filter(|a| {
        let named = &a.object.spec.preparation_ref;
        named.name == candidate.name
            || (named.artifact_digest == candidate.artifact.digest
                && !case.preparations.contains_key(&named.name))
    });
    let on_this = on_this
        .map(|a| Paper { approval: &a.object, by_server: context.assumed || is_cluster(&a.origin.source) });
    let seen: &[VoteStatus] = find_remembered(case).map_or(&[], |a| a.votes.as_slice());
    votes::tally_votes(&question, &context.electorate, on_this, seen, context.now)
}

/// Since when the candidate is the target, according to the repository: a seal never depends on the clock of
/// one run.
fn find_target_since(case: &Case, candidate: &Candidate) -> Option<Time> {
    let status = &case.serving.as_ref()?.status;
    if status.target_preparation_name.as_ref() != Some(&candidate.name) {
        return None;
    }
    status.target_since
}

/// A seal has to be made if the votes are enough and no seal is valid, or if a veto must void one that
/// approves.
fn find_due_seal(
    case: &Case,
    candidate: &Candidate,
    policy: &ApprovalPolicy,
    tally: &Tally,
    found: &FoundSeal,
    holds: bool,
    context: &Context,
) -> Option<SealRequest> {
    let (result, before) = match found {
        FoundSeal::Unread(_) | FoundSeal::NotAsked => return None,
        FoundSeal::None if tally.met => (Approved::Approved, None),
        FoundSeal::Seal(seal) if tally.met && !holds => (Approved::Approved, Some(seal)),
        FoundSeal::Seal(seal) if !tally.vetoes.is_empty() && seal.result == APPROVED => {
            (Approved::ChangesRequested, Some(seal))
        }
        FoundSeal::None | FoundSeal::Seal(_) => return None,
    };
    let votes_time = tally.seal_time?;
    // The newest seal decides, so a seal that replaces another must be newer.
    let sealed_time = match before {
        Some(seal) => votes_time.max(seal.sealed_time.add_span(Span::from_seconds(1))),
        None => votes_time,
    };
    (sealed_time <= context.now.add_span(SKEW)).then(|| SealRequest {
        of: build_seal_of(case, candidate),
        artifact: candidate.artifact.clone(),
        policy: policy.clone(),
        result,
        sealed_time,
        votes: tally.votes.clone(),
    })
}

fn judge_sealed(seal: &SealProof, candidate: &Candidate, tally: &Tally) -> Verdict {
    let mut verdict = Verdict::make_passed(GATE, describe_seal(seal.sealed_time, &tally.votes));
    verdict.evidence.push(EvidenceRef {
        kind: "approval".into(),
        name: collect_voters(&tally.votes).join(", "),
        digest: Some(seal.proof.digest),
        uri: candidate.artifact.repository.format_url(),
        key: seal.proof.key.clone(),
    });
    verdict
}

fn describe_seal(time: Time, votes: &[VoteStatus]) -> String {
    let voters = collect_voters(votes);
    let by = if voters.is_empty() { String::new() } else { format!(", by {}", voters.join(", ")) };
    format!("approved and sealed at {time}{by}")
}

/// Added to the message if Expedite does not authenticate the votes itself.
fn describe_trust(context: &Context) -> &'static str {
    match context.electorate.trust() {
        ApprovalTrust::Repository => {
            "; votes are trusted because they are in the repository (approvalTrust: Repository)"
        }
        ApprovalTrust::Signed | ApprovalTrust::Cluster => "",
    }
}

/// Condition Approved of what is deployed, as it was at the promotion.
#[must_use]
pub fn judge_deployed(case: &Case, context: &Context) -> (Approved, String) {
    let remembered = case.serving.as_ref().and_then(|s| s.status.approval.as_ref());
    let deployed = case.deployed.as_ref().map(|d| &d.preparation);
    match remembered.filter(|a| a.preparation_name.as_ref() == deployed && deployed.is_some()) {
        Some(ApprovalStatus { sealed_time: Some(time), votes, .. }) => {
            (Approved::Approved, format!("{}{}", describe_seal(*time, votes), describe_trust(context)))
        }
        Some(_) | None => (Approved::ApprovalNotRequired, NOT_NEEDED.into()),
    }
}

fn collect_voters(votes: &[VoteStatus]) -> Vec<String> {
    votes
        .iter()
        .filter(|v| v.counted)
        .map(|v| if v.approver.username.is_empty() { &v.approver.subject } else { &v.approver.username })
        .cloned()
        .collect()
}

fn judge_sealing(tally: &Tally, due: Option<&SealRequest>, found: &FoundSeal) -> Verdict {
    let voters = collect_voters(&tally.votes).join(", ");
    let (what, next) = match (due, found) {
        (Some(_), _) => (For::Evidence, "their seal is missing, and the run attaches it"),
        (None, FoundSeal::NotAsked) => {
            (For::AnotherGate, "the seal was not read in this run: another gate holds")
        }
        (None, _) if tally.seal_time.is_none() => (
            For::AnotherGate,
            "they are sealed once gates 1 to 3 have made it the target and that is committed",
        ),
        (None, _) => (For::Evidence, "the seal is not attached yet"),
    };
    Verdict::make_waiting(GATE, what, format!("enough approvals (by {voters}); {next}"))
}

fn judge_awaiting(policy: &ApprovalPolicy, tally: &Tally, void: Option<&SealProof>) -> Verdict {
    let groups = match policy.allowed_groups.as_slice() {
        [] => "any approver".to_owned(),
        groups => groups.join(", "),
    };
    let voters = collect_voters(&tally.votes);
    let by = if voters.is_empty() { String::new() } else { format!(" (by {})", voters.join(", ")) };
    let mut message =
        format!("{} of {} approvals from {groups}{by}", tally.approvals, policy.required_approvals);
    if void.is_some_and(|s| s.result == APPROVED) {
        message.push_str("; the seal that is there was made under a weaker policy and is void");
    }
    let ignored: Vec<String> = tally
        .votes
        .iter()
        .filter(|v| !v.counted)
        .take(5)
        .map(|v| format!("{} by {} ({})", v.name, v.approver.username, v.reason))
        .collect();
    if !ignored.is_empty() {
        message.push_str(&format!("; not counted: {}", ignored.join(", ")));
    }
    let person = tally.may_vote.clone();
    if person.is_empty() {
        message.push_str("; the Kitchen lists no other approver in these groups");
    } else {
        message.push_str(&format!("; may vote: {}", person.join(", ")));
    }
    Verdict::make_waiting(GATE, For::Person(person), message)
}

/// `status.approval` of the candidate after this run.
#[must_use]
pub fn build_status(case: &Case, assessed: &Assessment) -> Option<ApprovalStatus> {
    let candidate = case.candidate.as_ref()?;
    assessed.policy.as_ref()?;
    let before = find_remembered(case);
    let mut status = before.cloned().unwrap_or_default();
    status.preparation_name = Some(candidate.name.clone());
    status.votes.clone_from(&assessed.tally.votes);
    if let Some(seal) = &assessed.seal {
        status.sealed_time = Some(seal.sealed_time);
        status.attestation = Some(seal.proof.digest);
        status.record = Some(seal.proof.blob);
    }
    Some(status)
}
