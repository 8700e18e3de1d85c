//! What happens to each Application of one Order.

use crate::error::{At, Failure};
use crate::model::evidence::Facts;
use crate::model::id::{ApplicationName, ClusterName};
use crate::model::naming::{build_application_name, build_serving_path};
use crate::model::plan::{ApplicationAction, ApplicationPlan, Decision, Pin};
use crate::model::reason::Verified;
use crate::model::serving::ClusterStatus;
use crate::policy::gates::pin::{self, PIN_UNPROVEN, Word};
use crate::policy::gates::{self, Context, opt_in, ready, window};
use crate::policy::resolve::place::{Held, Place, normalize_server};
use crate::policy::resolve::slot::{Consent, Slot};
use crate::policy::resolve::{Case, DeployedNow, PINNED};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The reason of a Cluster that needs an opt-in: in `clusters[].reason`, and of condition Ready.
pub const OPT_IN_REQUIRED: &str = "OptInRequired";

/// One plan per Cluster of the Environment, and one per Application that is removed or left over.
#[must_use]
pub fn plan_applications(
    case: &Case,
    decision: &Decision,
    facts: &Facts,
    clusters: &BTreeSet<&ClusterName>,
    context: &Context,
) -> Vec<ApplicationPlan> {
    let mut plans = match decision {
        Decision::Remove(why) => {
            return plan_leftovers(case, &[], clusters, |_, _| ApplicationAction::Remove(why.clone()));
        }
        Decision::Promote(_) => plan_promoted(case, context),
        Decision::Keep | Decision::Hold | Decision::Broken => plan_kept(case, facts, context),
    };
    let left = match (decision, &case.place) {
        (Decision::Promote(_), Some(place)) if !case.is_at_home() => {
            plan_leftovers(case, &plans, clusters, |_, _| {
                ApplicationAction::Remove(format!("the Order is promoted in Environment {} now", place.name))
            })
        }
        (_, Some(place)) if case.is_at_home() && case.deployed.is_some() => {
            plan_leftovers(case, &plans, clusters, |cluster, exists| decide_dropped(place, cluster, exists))
        }
        _ => plan_leftovers(case, &plans, clusters, |_, _| ApplicationAction::Hold {
            reason: "LeftAsItIs".into(),
            message: describe_leave(case),
        }),
    };
    plans.extend(left);
    plans
}

fn describe_leave(case: &Case) -> String {
    if !case.errors.is_empty() || case.place.is_none() {
        "the Order's input is wrong; what is deployed stays".into()
    } else if case.deployed.is_none() {
        "the Serving says that nothing is deployed; what is there stays".into()
    } else {
        "the Order moved to another Environment; what is deployed stays until it is promoted there".into()
    }
}

fn decide_dropped(place: &Place, cluster: &ClusterName, exists: bool) -> ApplicationAction {
    if place.has_dropped(cluster, exists) {
        ApplicationAction::Remove(format!("Cluster {cluster} was dropped from Environment {}", place.name))
    } else {
        ApplicationAction::Hold {
            reason: "ClusterMissing".into(),
            message: format!(
                "Cluster {cluster} does not exist any more, and nothing says that it was dropped on purpose"
            ),
        }
    }
}

fn make_pin(
    case: &Case,
    place: &Place,
    slot: &Slot,
    deployed: &DeployedNow,
    context: &Context,
) -> ApplicationAction {
    ApplicationAction::Pin(Arc::new(Pin {
        order: case.order.clone(),
        preparation: deployed.preparation.clone(),
        artifact: deployed.artifact.clone(),
        target_namespace: deployed.target_namespace.clone(),
        environment: place.name.clone(),
        project: place.project.clone(),
        on_delete: place.on_delete,
        cluster: slot.cluster.name.clone(),
        server: slot.cluster.server.clone(),
        name: slot.name.clone(),
        argocd_namespace: context.argocd_namespace.clone(),
        found_finalizers: match (&slot.consent, &slot.observed) {
            (Consent::OptedIn, Some(live)) => Some(live.metadata.finalizers.clone()),
            (Consent::OptedIn | Consent::Ours | Consent::Free { .. } | Consent::Refused(_), _) => None,
        },
    }))
}

fn make_plan(slot: &Slot, action: ApplicationAction) -> ApplicationPlan {
    ApplicationPlan {
        cluster: slot.cluster.name.clone(),
        name: slot.name.clone(),
        path: slot.path.clone(),
        action,
    }
}

fn make_hold(reason: &str, message: impl Into<String>) -> ApplicationAction {
    ApplicationAction::Hold { reason: reason.into(), message: message.into() }
}

fn find_cluster_hold(slot: &Slot) -> Option<ApplicationAction> {
    let name = &slot.cluster.name;
    slot.cluster.held.as_ref().map(|held| match held {
        Held::Missing => make_hold("ClusterMissing", format!("Cluster {name} is named by the Environment and does not exist")),
        Held::SameServer(first) => make_hold(
            "SameServer",
            format!("Cluster {name} has the API server of Cluster {first}; only one Application may own the objects there"),
        ),
    })
}

/// Writes the candidate to every Cluster that allows it.
fn plan_promoted(case: &Case, context: &Context) -> Vec<ApplicationPlan> {
    let (Some(place), Some(candidate)) = (&case.place, &case.candidate) else { return Vec::new() };
    let values = DeployedNow {
        preparation: candidate.name.clone(),
        artifact: candidate.artifact.clone(),
        target_namespace: candidate.target_namespace.clone(),
        environment: place.name.clone(),
    };
    case.slots
        .iter()
        .map(|slot| {
            let action = find_cluster_hold(slot).unwrap_or_else(|| match opt_in::admit_slot(slot, context) {
                Ok(_) => make_pin(case, place, slot, &values, context),
                Err(why) => make_hold(OPT_IN_REQUIRED, why),
            });
            make_plan(slot, action)
        })
        .collect()
}

/// What is deployed stays pinned; a Cluster that joins gets it after its evidence was read again.
fn plan_kept(case: &Case, facts: &Facts, context: &Context) -> Vec<ApplicationPlan> {
    let (Some(place), Some(deployed)) = (&case.place, &case.deployed) else { return Vec::new() };
    if !case.is_at_home() {
        return Vec::new();
    }
    case.slots
        .iter()
        .map(|slot| {
            let action =
                find_cluster_hold(slot).unwrap_or_else(|| match find_remembered(case, &slot.cluster.name) {
                    Some(entry) if is_written(case, slot) && has_moved(entry, slot) => {
                        make_elsewhere_hold(slot, &entry.server)
                    }
                    entry => match pin::judge_pin(case, slot, facts, context) {
                        Word::Unproven(why) => make_hold(PIN_UNPROVEN, describe_unproven(case, &why)),
                        Word::Elsewhere(server) => make_elsewhere_hold(slot, &server),
                        Word::Good if entry.is_some_and(|e| e.reason == PINNED) => {
                            make_pin(case, place, slot, deployed, context)
                        }
                        Word::Proven(base) if entry.is_some_and(|e| e.reason == PINNED) => {
                            match ready::collect_readmission_faults(case, place, deployed, base, context)
                                .as_slice()
                            {
                                [] => make_pin(case, place, slot, deployed, context),
                                bad => make_hold(PIN_UNPROVEN, describe_refusal(deployed, bad)),
                            }
                        }
                        Word::Good | Word::Proven(_) | Word::Joins => {
                            decide_joining(case, place, slot, deployed, facts, context)
                        }
                    },
                });
            make_plan(slot, action)
        })
        .collect()
}

fn make_elsewhere_hold(slot: &Slot, server: &str) -> ApplicationAction {
    make_hold(
        "ServerChanged",
        format!(
            "Cluster {} was at {server} when this was promoted and is at {} now; promote again to deploy there",
            slot.cluster.name, slot.cluster.server
        ),
    )
}

fn describe_unproven(case: &Case, why: &str) -> String {
    let what =
        case.deployed.as_ref().map(|d| format!("{} ({})", d.preparation, d.artifact.digest.format_short()));
    let what = what.unwrap_or_default();
    format!("its status says that {what} is deployed, but that is not proven: {why}")
}

fn describe_refusal(deployed: &DeployedNow, bad: &[String]) -> String {
    let (preparation, digest) = (&deployed.preparation, deployed.artifact.digest.format_short());
    format!(
        "its status says that {preparation} ({digest}) is deployed, but the Applications in git do not say so, and it may not be deployed again: {}",
        bad.join("; ")
    )
}

/// The Order's error if the Applications do not contain what the Serving says, and no record proves that they
/// should: they are not changed.
#[must_use]
pub fn find_pin_error(case: &Case, plans: &[ApplicationPlan]) -> Option<Failure> {
    let message = plans.iter().find_map(|plan| match &plan.action {
        ApplicationAction::Hold { reason, message } if reason == PIN_UNPROVEN => {
            let slot = case.slots.iter().find(|slot| slot.path == plan.path)?;
            // If no Application exists, there is no deployment that a Cluster could join.
            let nowhere = case.owned.is_empty();
            let was_there = nowhere || is_written(case, slot) || pin::find_remembered(case, slot).is_some();
            was_there.then_some(message)
        }
        ApplicationAction::Hold { .. }
        | ApplicationAction::Pin(_)
        | ApplicationAction::Detach(_)
        | ApplicationAction::Remove(_) => None,
    })?;
    Some(
        Failure::new_input("pin-unproven", format!("{message}; its Applications are left as they are"))
            .with_object(format!("Serving {}", case.order))
            .with_place(At::from_file(build_serving_path(&case.order)))
            .with_field("status.deployedDigest")
            .with_hint("revert the commit that edited the Serving or the Application, or promote another Preparation")
            .with_hint("if it was promoted with --no-records, run once with --no-records to render it"),
    )
}

fn find_remembered<'a>(case: &'a Case, cluster: &ClusterName) -> Option<&'a ClusterStatus> {
    case.serving.as_ref()?.status.clusters.iter().find(|c| c.name == *cluster)
}

fn is_written(case: &Case, slot: &Slot) -> bool {
    case.owned.contains_key(&slot.path)
}

fn has_moved(entry: &ClusterStatus, slot: &Slot) -> bool {
    !entry.server.is_empty() && normalize_server(&entry.server) != normalize_server(&slot.cluster.server)
}

fn decide_joining(
    case: &Case,
    place: &Place,
    slot: &Slot,
    deployed: &DeployedNow,
    facts: &Facts,
    context: &Context,
) -> ApplicationAction {
    if !case.errors.is_empty() || !case.holds.is_empty() {
        return make_hold("InvalidInput", "what is deployed is written there once the input is correct");
    }
    if let Err(why) = opt_in::admit_slot(slot, context) {
        return make_hold(OPT_IN_REQUIRED, why);
    }
    if let Some(why) = window::describe_freeze(case, context.now) {
        return make_hold("Frozen", why);
    }
    let base = case.serving.as_ref().and_then(|s| s.status.history.first()).and_then(|e| e.base_digest);
    let kitchen = case.kitchen.as_ref().map(|kitchen| &kitchen.spec);
    let bad = kitchen
        .map(|k| ready::collect_admission_faults(&deployed.artifact, base, Some(place), k))
        .unwrap_or_default();
    if !bad.is_empty() {
        return make_hold("NotAdmitted", format!("before it joins: {}", bad.join("; ")));
    }
    match gates::evidence::verify_artifact(facts, &deployed.artifact, &case.order) {
        Some(found) if found.reason == Verified::SignaturesVerified => {
            make_pin(case, place, slot, deployed, context)
        }
        Some(found) => make_hold(found.reason.as_str(), format!("before it joins: {}", found.message)),
        None => make_hold(
            "AwaitingEvidence",
            "what is deployed is written there after its evidence was read again",
        ),
    }
}

/// Applications with this Order's labels that are in no plan yet.
fn plan_leftovers(
    case: &Case,
    planned: &[ApplicationPlan],
    clusters: &BTreeSet<&ClusterName>,
    action: impl Fn(&ClusterName, bool) -> ApplicationAction,
) -> Vec<ApplicationPlan> {
    let known: BTreeSet<&str> = planned.iter().map(|p| p.path.as_str()).collect();
    let status = case.serving.iter().flat_map(|s| &s.status.clusters);
    let listed: Vec<(&ApplicationName, &ClusterName)> = status.map(|c| (&c.application, &c.name)).collect();
    case.owned
        .keys()
        .filter(|path| !known.contains(path.as_str()))
        .filter_map(|path| {
            let name = path.rsplit('/').next()?.strip_suffix(".yaml")?;
            let name = ApplicationName::parse(name).ok()?;
            let cluster = listed
                .iter()
                .find(|(application, _)| **application == name)
                .map(|(_, cluster)| (*cluster).clone())
                .or_else(|| {
                    clusters
                        .iter()
                        .find(|c| build_application_name(&case.order, c).is_ok_and(|n| n == name))
                        .map(|c| (*c).clone())
                });
            let exists = cluster.as_ref().is_some_and(|c| clusters.contains(c));
            let cluster = match cluster {
                Some(cluster) => cluster,
                None => ClusterName::parse("unlisted").ok()?,
            };
            let action = action(&cluster, exists);
            Some(ApplicationPlan { cluster, name, path: path.clone(), action })
        })
        .collect()
}
