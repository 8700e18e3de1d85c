//! Decides what a vote is on, and which Kitchen approver casts it. Pure: a vote that does not count is
//! refused before it is signed, with what was found, what was expected and the next step.

use crate::error::{Failure, FailureKind};
use crate::model::approval::{Approver, Ballot};
use crate::model::id::PreparationName;
use crate::model::kitchen::{ApprovalTrust, KnownApprover};
use crate::model::order::ApprovalPolicy;
use crate::model::plan::Candidate;
use crate::policy::gates::Context;
use crate::policy::gates::approvals;
use crate::policy::resolve::Case;
use crate::policy::resolve::candidate::build_candidate;
use crate::policy::resolve::newest::Newest;
use ssh_key::PublicKey;

/// How the voter identifies themselves.
#[derive(Debug, Clone)]
pub enum BallotVoter {
    Key(Box<PublicKey>),
    /// By name: a Kitchen approver's username or subject.
    Name(String),
}

/// A vote that is allowed.
#[derive(Debug, Clone)]
pub struct CastableVote {
    /// What is voted on.
    pub candidate: Candidate,
    /// The policy that it counts for; `None`: no approval is required now, and the vote counts once one is.
    pub policy: Option<ApprovalPolicy>,
    pub approver: Approver,
}

/// Decides whether a vote may be cast.
///
/// # Errors
/// [`FailureKind::SaysNo`]: there is nothing to vote on, or the voter may not vote.
pub fn judge_vote(
    case: &Case,
    preparation: Option<&PreparationName>,
    voter: &BallotVoter,
    approvers: &[KnownApprover],
    context: &Context,
) -> Result<CastableVote, Failure> {
    let no = |code, cause: String, hint: &str| {
        Failure::new(FailureKind::SaysNo, code, cause).with_object(case.format_order()).with_hint(hint)
    };
    let name = match (preparation, &case.candidate, &case.newest) {
        (Some(name), ..) => name.clone(),
        (None, Some(candidate), _) => candidate.name.clone(),
        (None, None, Newest::One(name)) => name.clone(),
        (None, None, Newest::None | Newest::Unclear(_)) => {
            return Err(no(
                "nothing-to-approve",
                "it is not clear which Preparation is meant".into(),
                "name it; expedite get preparations lists them",
            ));
        }
    };
    let Some(loaded) = case.preparations.get(&name) else {
        return Err(no(
            "unknown-preparation",
            format!("it has no Preparation {name}"),
            "expedite get preparations lists them",
        ));
    };
    let candidate = build_candidate(loaded, &case.order.namespace)?;
    let mut asked = case.clone();
    asked.candidate = Some(candidate.clone());
    let policy = approvals::resolve_policy(&asked)
        .map_err(|why| no("approval-policy", why, "correct the policies, then vote"))?;
    let approver = find_approver(voter, approvers, context, &no)?;
    if let Some(policy) = &policy {
        let allowed = approver.groups.iter().any(|g| policy.allowed_groups.contains(g));
        if !policy.allowed_groups.is_empty() && !allowed {
            let (wanted, found) = (policy.allowed_groups.join(", "), approver.groups.join(", "));
            let found = if found.is_empty() { "none".to_owned() } else { found };
            return Err(no(
                "not-eligible",
                format!("{} is in none of the groups {wanted}; found: {found}", approver.username),
                "only a vote of someone in one of these groups counts",
            ));
        }
    }
    Ok(CastableVote { candidate, policy, approver })
}

fn find_approver(
    voter: &BallotVoter,
    approvers: &[KnownApprover],
    context: &Context,
    no: &dyn Fn(&'static str, String, &str) -> Failure,
) -> Result<Approver, Failure> {
    let known = |k: &KnownApprover| match voter {
        BallotVoter::Key(key) => k.ssh_keys.iter().any(|line| {
            crate::policy::gates::ssh_vote::parse_key(line).is_ok_and(|k| k.key_data() == key.key_data())
        }),
        BallotVoter::Name(name) => k.username == *name || k.subject == *name,
    };
    let found: Vec<&KnownApprover> = approvers.iter().filter(|k| known(k)).collect();
    let said = match voter {
        BallotVoter::Key(key) => format!("the key {}", key.fingerprint(ssh_key::HashAlg::Sha256)),
        BallotVoter::Name(name) => name.clone(),
    };
    match found[..] {
        [one] => Ok(Approver {
            issuer: one.issuer.clone(),
            subject: one.subject.clone(),
            username: if one.username.is_empty() { one.subject.clone() } else { one.username.clone() },
            email: None,
            groups: one.groups.clone(),
        }),
        [] => Err(no(
            "unknown-approver",
            format!("{said} does not belong to an approver of the Kitchen"),
            match context.electorate.trust() {
                ApprovalTrust::Signed => "add issuer, subject, groups and sshKeys to Kitchen.spec.approvers",
                ApprovalTrust::Cluster | ApprovalTrust::Repository => "add it to Kitchen.spec.approvers",
            },
        )),
        _ => Err(no(
            "unclear-approver",
            format!("{said} belongs to several approvers of the Kitchen"),
            "give each approver an identity and keys of its own in Kitchen.spec.approvers",
        )),
    }
}

/// `Approve` or `Reject`, as it is written.
#[must_use]
pub fn format_ballot(decision: Ballot) -> &'static str {
    match decision {
        Ballot::Approve => "Approve",
        Ballot::Reject => "Reject",
    }
}
