//! Cases, Facts and the clock → [`Plan`]. Pure: does not know YAML, git or OCI.
//!
//! An error of one Order becomes its row of the Plan and never stops another Order. What is deployed is
//! decided from the values pinned in the Serving, because a Preparation may have been edited or deleted.

pub mod access;
pub mod applications;
pub mod ballot;
pub mod forecast;
pub mod intent;
pub mod next;
pub mod open;
pub mod prepare;
pub mod removal;
pub mod status;
pub mod weakened;
pub mod verification;

use crate::error::Failure;
use crate::model::evidence::Facts;
use crate::model::id::{ClusterName, OrderRef, PreparationName};
use crate::model::order::Mode;
use crate::model::plan::{Decision, Plan, PlanRow, Promotion, ServingPlan, ServingState};
use crate::model::scope::Scope;
use crate::model::serving::RequestedBy;
use crate::model::time::{SKEW, Time};
use crate::model::verdict::{GateName, Verdict};
use crate::model::world::{GitOps, Holds, World};
use crate::policy::gates::{self, Context};
use crate::policy::resolve::{Case, Presence};
use std::collections::BTreeSet;

/// Limits and scope of one run.
#[derive(Debug, Clone, Default)]
pub struct PlanOptions {
    /// The part of the fleet that may be written.
    pub scope: Scope,
    /// `limits.maxRemovals`, if set.
    pub max_removals: Option<usize>,
    /// `--allow-removals`: the number of removals that this one run may make.
    pub allow_removals: Option<usize>,
    /// `limits.maxPromotions`, if set.
    pub max_promotions: Option<usize>,
    /// Orders whose promotion is known to fail when it is written. They do not count for `max_promotions`.
    pub unwritable: BTreeSet<OrderRef>,
}

/// Decides all Orders at one instant.
#[must_use]
pub fn decide_plan(
    cases: &[Case],
    facts: &Facts,
    world: &World,
    gitops: &GitOps,
    context: &Context,
    options: &PlanOptions,
) -> Plan {
    let clusters: BTreeSet<&ClusterName> = world.clusters.keys().collect();
    let mut judged: Vec<(&Case, Vec<Verdict>)> = cases
        .iter()
        .filter(|case| options.scope.admits_order(&case.order, case.labels.as_ref()))
        .map(|case| match case.presence {
            Presence::Present => (case, gates::judge_gates(case, facts, context)),
            Presence::Unreadable(_) | Presence::Gone(_) => (case, Vec::new()),
        })
        .collect();
    limit_promotions(&mut judged, facts, context, options);
    let mut rows: Vec<PlanRow> = judged
        .into_iter()
        .map(|(case, verdicts)| build_row(case, verdicts, facts, &clusters, context))
        .collect();
    removal::hand_over_applications(
        &mut rows,
        gitops,
        world,
        options.allow_removals.is_some(),
        &context.argocd_namespace,
    );
    removal::tell_workloads(&mut rows, gitops);
    let guard = removal::check_removals(&rows, gitops, options);
    let (mut problems, mut notices) = (Vec::new(), Vec::new());
    for problem in world.problems.iter().chain(&gitops.problems) {
        match problem.holds {
            Holds::Nothing => notices.push(problem.failure.clone()),
            Holds::Everything => problems.push(problem.failure.clone()),
            Holds::Orders(ref orders) if orders.is_empty() => problems.push(problem.failure.clone()),
            Holds::Orders(_) => {}
        }
    }
    problems.extend(find_unknown_orders(cases, options));
    notices.extend(access::collect_notices(&rows, gitops));
    notices.extend(facts.warnings.iter().cloned());
    if !context.records && !context.assumed {
        notices.push(
            Failure::new_input(
                "no-records",
                "no signed records are kept (--no-records): deployment history is trusted without proof, and where an approval policy applies nothing is promoted",
            )
            .with_hint("run with --key, and trust its public key with roles [approvals, records] in the Kitchen"),
        );
    }
    let approvers = context.electorate.warnings.iter();
    notices.extend(approvers.map(|w| Failure::new_input("approver", w.clone()).with_field("spec.approvers")));
    Plan { at: context.now, head: gitops.head.clone(), rows, guard, problems, notices }
}

/// Reports requested Orders that do not exist: with a misspelt name a run would never do anything.
fn find_unknown_orders(cases: &[Case], options: &PlanOptions) -> Vec<Failure> {
    let there = |order: &OrderRef| cases.binary_search_by(|case| case.order.cmp(order)).is_ok();
    let missing = options.scope.only.iter().filter(|order| !there(order));
    missing
        .map(|order| {
            Failure::new_input("no-order", "there is no such Order, neither read nor in the repository")
                .with_object(format!("Order {order}"))
                .with_hint("expedite get orders lists them")
        })
        .collect()
}

/// Holds promotions beyond `limits.maxPromotions`; a rollback is neither held nor counted. The Order that
/// waited longest goes first, so that every Order gets its turn.
fn limit_promotions(
    judged: &mut [(&Case, Vec<Verdict>)],
    facts: &Facts,
    context: &Context,
    options: &PlanOptions,
) {
    let Some(most) = options.max_promotions else { return };
    let counts = |(case, verdicts): &(&Case, Vec<Verdict>)| {
        matches!(decide_case(case, verdicts, context), Decision::Promote(_))
            && !options.unwritable.contains(&case.order)
            && gates::window::judge_rollback(case, facts, context).is_none()
    };
    let mut due: Vec<usize> = (0..judged.len()).filter(|&index| counts(&judged[index])).collect();
    // Equal times keep the order by name, because the sort is stable.
    due.sort_by_key(|&index| find_turn(judged[index].0, context));
    for index in due.into_iter().skip(most) {
        for verdict in judged[index].1.iter_mut().filter(|v| v.gate == GateName::Window) {
            *verdict = gates::window::hold_beyond_limit(most);
        }
    }
}

/// Since when the candidate is the target; Orders with the same time are ordered by their last promotion.
fn find_turn(case: &Case, context: &Context) -> (Time, Option<Time>) {
    let status = case.serving.as_ref().map(|serving| &serving.status);
    let candidate = case.candidate.as_ref().map(|candidate| &candidate.name);
    let target = status.filter(|status| status.target_preparation_name.as_ref() == candidate);
    let since = target.and_then(|status| status.target_since).unwrap_or(context.now);
    (since, status.and_then(|status| status.history.first()).map(|entry| entry.promoted_time))
}

fn build_row(
    case: &Case,
    verdicts: Vec<Verdict>,
    facts: &Facts,
    clusters: &BTreeSet<&ClusterName>,
    context: &Context,
) -> PlanRow {
    let mut decision = decide_case(case, &verdicts, context);
    let applications = applications::plan_applications(case, &decision, facts, clusters, context);
    let pin_error = applications::find_pin_error(case, &applications);
    if pin_error.is_some() && decision == Decision::Keep {
        decision = Decision::Broken;
    }
    // Manual edits of it are kept so that they can be reverted, unless its status must report a candidate.
    let serving = match (&pin_error, &decision) {
        (Some(_), Decision::Keep | Decision::Broken) => ServingPlan::Keep,
        _ => build_serving_plan(case, &decision, &verdicts, &applications, facts, context),
    };
    // No votes are sealed for an Order whose input is wrong.
    let seal = match decision {
        Decision::Hold if gates::is_target(&verdicts) => {
            gates::approvals::assess_votes(case, facts, context).due
        }
        Decision::Hold | Decision::Keep | Decision::Promote(_) | Decision::Broken | Decision::Remove(_) => {
            None
        }
    };
    let warnings = collect_warnings(case, &decision, &serving, facts, context);
    let mut errors = case.errors.clone();
    if case.presence == Presence::Present {
        errors.extend(check_clock(case, context));
        errors.extend(pin_error);
    }
    if let Presence::Unreadable(why) = &case.presence
        && errors.is_empty()
    {
        errors.push(
            Failure::new_input("order-unreadable", format!("{why}; nothing of this Order is changed"))
                .with_object(case.format_order()),
        );
    }
    PlanRow {
        order: case.order.clone(),
        origin: case.origin.clone(),
        environment: case.place.as_ref().map(|p| p.name.clone()),
        mode: case.mode,
        candidate: case.candidate.clone(),
        verdicts,
        decision,
        errors,
        warnings,
        serving,
        applications,
        seal,
    }
}

/// Warnings of the Order and its votes, and whether the deployed artifact is missing from the registry or has
/// more vulnerabilities than before.
fn collect_warnings(
    case: &Case,
    decision: &Decision,
    serving: &ServingPlan,
    facts: &Facts,
    context: &Context,
) -> Vec<Failure> {
    let mut all = case.warnings.clone();
    if case.candidate.is_some() && matches!(decision, Decision::Hold | Decision::Promote(_)) {
        let tally = gates::approvals::assess_votes(case, facts, context).tally;
        all.extend(
            tally
                .warnings
                .into_iter()
                .map(|w| Failure::new_input("vote", w).with_object(case.format_order())),
        );
    }
    if let (Decision::Promote(_), Some(candidate)) = (decision, &case.candidate)
        && let Some(base) = candidate.base_digest
        && gates::upstream::find_proven_base(case, candidate, facts).is_none()
    {
        let cause = format!(
            "Preparation {} claims to be rendered from {base}, but its signed provenance does not list that base; later stages cannot recognise the change by it",
            candidate.name
        );
        all.push(Failure::new_input("base-unlisted", cause).with_object(case.format_order()));
    }
    if let Some(deployed) = &case.deployed
        && !matches!(decision, Decision::Promote(_))
        && let Some(why) = gates::evidence::describe_vanished(facts, &deployed.artifact)
    {
        let gone = Failure::new_input("deployed-artifact-gone", format!("{why} ({})", deployed.artifact));
        let hint = "push the same bytes again from a copy, or promote another Preparation; it stays deployed";
        all.push(gone.with_object(case.format_order()).with_hint(hint));
    }
    all.extend(check_target_clock(case, context));
    let before = case.serving.as_ref().and_then(|s| s.status.deployed_vulnerabilities.as_ref());
    if let (Some(before), ServingPlan::Write(state)) = (before, serving)
        && !matches!(decision, Decision::Promote(_))
        && let Some(now) = &state.status.deployed_vulnerabilities
        && let Some(risen) = now.to_counts().describe_rise(&before.to_counts())
    {
        let cause = format!(
            "the scan of {} found more vulnerabilities in what is deployed: {risen}",
            now.scanned_time
        );
        all.push(Failure::new_input("vulnerabilities-rose", cause).with_object(case.format_order()));
    }
    all
}

/// Reports a target that was set by a clock ahead of this run's: it counts as the target from now on.
fn check_target_clock(case: &Case, context: &Context) -> Option<Failure> {
    let status = &case.serving.as_ref()?.status;
    let since = status.target_since.filter(|since| *since > context.now.add_span(SKEW))?;
    let cause = format!(
        "its status says that it became the target at {since}, which is ahead of this run's clock ({}); it counts as the target from now on",
        context.now
    );
    let hint = "check the clock of the machine whose run wrote that time";
    Some(
        Failure::new_input("clock-ahead", cause)
            .with_object(format!("Serving {}", case.order))
            .with_hint(hint),
    )
}

/// Reports a clock that is behind the times already stored for the Order: no decision that depends on time
/// would be right.
fn check_clock(case: &Case, context: &Context) -> Option<Failure> {
    let history = case.serving.iter().flat_map(|serving| &serving.status.history);
    let times = history.flat_map(|entry| {
        [Some(entry.promoted_time), entry.first_healthy_time, entry.ended_time].into_iter().flatten()
    });
    let newest = times.max().filter(|newest| *newest > context.now.add_span(SKEW))?;
    let cause = format!(
        "its history contains the time {newest}, which is ahead of this run's clock ({}); nothing of this Order is changed",
        context.now
    );
    let hint = "correct the clock of this machine, or remove the entry from the Serving's status in a reviewed commit";
    Some(
        Failure::new_input("clock-behind", cause)
            .with_object(format!("Serving {}", case.order))
            .with_hint(hint),
    )
}

fn decide_case(case: &Case, verdicts: &[Verdict], context: &Context) -> Decision {
    match &case.presence {
        Presence::Gone(why) => return Decision::Remove(why.clone()),
        Presence::Unreadable(_) => return Decision::Broken,
        Presence::Present => {}
    }
    if !case.errors.is_empty() || check_clock(case, context).is_some() {
        return Decision::Broken;
    }
    match &case.candidate {
        None => Decision::Keep,
        Some(_) if !verdicts.iter().all(Verdict::is_passed) || verdicts.is_empty() => Decision::Hold,
        Some(candidate) => Decision::Promote(Promotion {
            previous: case.deployed.as_ref().map(|d| (d.preparation.clone(), d.artifact.digest)),
            requested_by: find_requester(case, &candidate.name),
            rollback: case.has_run_before(&candidate.artifact),
        }),
    }
}

/// The person who requested the promotion, as the Serving claims; under Automatic there is none. Neither
/// commit nor key is given, because a commit cannot name itself, and a shallow clone may not contain it.
fn find_requester(case: &Case, candidate: &PreparationName) -> RequestedBy {
    let asked = case.serving.as_ref().and_then(|s| s.spec.requested.as_ref());
    let name = match (case.mode, asked) {
        (Mode::Automatic, _) => "automatic".to_owned(),
        (Mode::Manual, Some(requested)) if requested.has_asked_for(candidate) => requested.name.clone(),
        (Mode::Manual, Some(_)) => "unknown (the Serving was edited by hand)".to_owned(),
        (Mode::Manual, None) => "unknown".to_owned(),
    };
    RequestedBy { name, commit: None, signed_by: "unsigned".into() }
}

fn build_serving_plan(
    case: &Case,
    decision: &Decision,
    verdicts: &[Verdict],
    applications: &[crate::model::plan::ApplicationPlan],
    facts: &Facts,
    context: &Context,
) -> ServingPlan {
    match (&case.presence, decision) {
        (Presence::Gone(_), _) => return ServingPlan::Remove,
        (Presence::Unreadable(_), _) => return ServingPlan::Keep,
        (Presence::Present, _) if check_clock(case, context).is_some() => return ServingPlan::Keep,
        (Presence::Present, _) => {}
    }
    let promotes = matches!(decision, Decision::Promote(_));
    let absent = case.serving.is_none();
    // A Serving that exists but cannot be read must be corrected by a person.
    let unreadable =
        absent && case.errors.iter().any(|e| e.what.as_deref().is_some_and(|w| w.starts_with("Serving")));
    if unreadable || (absent && case.mode == Mode::Manual && !promotes) {
        return ServingPlan::Keep;
    }
    let old = case.serving.as_deref();
    let status = status::build_status(case, decision, verdicts, applications, facts, context);
    let asked = old.and_then(|s| s.spec.preparation_name.clone());
    let preparation_name = match (decision, &case.candidate, case.mode) {
        (Decision::Promote(_), Some(candidate), _) => Some(candidate.name.clone()),
        (_, _, Mode::Manual) => asked,
        // Kept equal to what was promoted last, so that switching to Manual alone changes nothing.
        (_, _, Mode::Automatic) => case.deployed.as_ref().map(|d| d.preparation.clone()),
    };
    let created = old.and_then(|s| s.metadata.creation_timestamp).unwrap_or(context.now);
    match old {
        Some(old) if old.status == status && old.spec.preparation_name == preparation_name => {
            ServingPlan::Keep
        }
        _ => ServingPlan::Write(Box::new(ServingState { preparation_name, created, status })),
    }
}
