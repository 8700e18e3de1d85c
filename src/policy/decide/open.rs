//! Open promotions: those that a person can act on, as one viewer sees them.
//!
//! An Order is listed if it waits for approvals; under Manual also if its newest Ready Preparation is newer
//! than what is deployed and was not requested yet. It is not listed while only gates without an action for a
//! person hold it.

use crate::model::evidence::Facts;
use crate::model::order::Mode;
use crate::model::plan::{Candidate, OpenPromotion, PromotionStep};
use crate::model::reason::Approved;
use crate::policy::gates::Context;
use crate::policy::gates::approvals::{self, Assessment};
use crate::policy::resolve::candidate::build_candidate;
use crate::policy::resolve::newest::Newest;
use crate::policy::resolve::{Case, Presence};

/// The open promotions, in the order of Orders. `viewer`: a Kitchen approver's username or subject; `None`:
/// any person.
#[must_use]
pub fn collect_open(
    cases: &[Case],
    facts: &Facts,
    context: &Context,
    viewer: Option<&str>,
) -> Vec<OpenPromotion> {
    let present = cases.iter().filter(|case| case.presence == Presence::Present && case.errors.is_empty());
    present.filter_map(|case| judge_case(case, facts, context, viewer)).collect()
}

fn judge_case(case: &Case, facts: &Facts, context: &Context, viewer: Option<&str>) -> Option<OpenPromotion> {
    if let Some(candidate) = &case.candidate {
        let assessed = approvals::assess_votes(case, facts, context);
        let lacks = assessed.policy.is_some() && needs_votes(&assessed);
        return lacks.then(|| make_row(case, candidate, decide_step(&assessed, context, viewer, None)));
    }
    let candidate = find_newer(case)?;
    let mut asked = case.clone();
    asked.candidate = Some(candidate.clone());
    let assessed = approvals::assess_votes(&asked, facts, context);
    let step = decide_step(&assessed, context, viewer, Some(PromotionStep::Promote));
    Some(make_row(case, &candidate, step))
}

/// Whether votes are missing or someone rejects (not whether a seal is missing or was not read).
fn needs_votes(assessed: &Assessment) -> bool {
    match assessed.reason {
        Approved::AwaitingApprovals | Approved::ChangesRequested => true,
        Approved::ApprovalNotRequired | Approved::SealingApprovals | Approved::Approved => false,
    }
}

/// Under Manual: the newest Ready Preparation, if it is newer than what is deployed.
fn find_newer(case: &Case) -> Option<Candidate> {
    let (Mode::Manual, Newest::One(name)) = (case.mode, &case.newest) else { return None };
    let loaded = case.preparations.get(name)?;
    if let Some(deployed) = case.deployed.as_ref().filter(|_| case.is_at_home()) {
        let age = |name| case.preparations.get(name)?.object.metadata.creation_timestamp;
        let older = matches!((age(&deployed.preparation), age(name)), (Some(old), Some(new)) if new <= old);
        let same =
            deployed.preparation == *name || deployed.artifact.digest == loaded.object.spec.artifact.digest;
        if same || older {
            return None;
        }
    }
    build_candidate(loaded, &case.order.namespace).ok()
}

fn make_row(case: &Case, candidate: &Candidate, step: PromotionStep) -> OpenPromotion {
    OpenPromotion {
        order: case.order.clone(),
        environment: case.place.as_ref().map(|p| p.name.clone()),
        preparation: candidate.name.clone(),
        digest: candidate.artifact.digest,
        step,
    }
}

/// Review if votes are missing and the viewer may vote but has not; else `otherwise`; else the gate that it
/// waits for.
fn decide_step(
    assessed: &Assessment,
    context: &Context,
    viewer: Option<&str>,
    otherwise: Option<PromotionStep>,
) -> PromotionStep {
    if let Some(policy) = &assessed.policy
        && needs_votes(assessed)
    {
        let mut eligible = context.electorate.collect_eligible(policy).into_iter();
        let may_review = match viewer {
            None => !assessed.tally.may_vote.is_empty(),
            Some(viewer) => eligible.any(|(identity, name)| {
                let voted = |v: &crate::model::serving::VoteStatus| {
                    v.counted && (&v.approver.issuer, &v.approver.subject) == (&identity.0, &identity.1)
                };
                (name == viewer || identity.1 == viewer) && !assessed.tally.votes.iter().any(voted)
            }),
        };
        if may_review {
            return PromotionStep::Review;
        }
    }
    otherwise.unwrap_or_else(|| PromotionStep::Waits(assessed.verdict.message.clone()))
}
