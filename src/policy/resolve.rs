//! World → one [`Case`] per Order, or that Order's input error. Pure: does not depend on time or network.
//!
//! A Case holds everything the gates and `decide` look at for one Order: what it asks for, where it
//! deploys, what is deployed, which Preparation could come next, and what is wrong with its input.

pub mod candidate;
pub mod history;
pub mod newest;
pub mod observe;
pub mod place;
pub mod slot;
pub mod stage;

use crate::error::{Failure, FailureKind};
use crate::model::approval::Approval;
use crate::model::id::{Artifact, Digest, EnvironmentName, Namespace, OrderRef, PreparationName};
use crate::model::kitchen::Kitchen;
use crate::model::meta::Status;
use crate::model::order::{ApprovalPolicy, AutoDeploy, Check, Mode, Order, PromotionSpec, Upstream, Window};
use crate::model::plan::Candidate;
use crate::model::preparation::Preparation;
use crate::model::serving::Serving;
use crate::model::world::{ApplicationFile, GitOps, Holds, Loaded, Origin, SourceState, World};
use newest::Newest;
use observe::Seen;
use place::Place;
use slot::Slot;
use stage::Stage;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// `clusters[].reason` of a Cluster whose Application is pinned to what is deployed.
pub const PINNED: &str = "Pinned";

/// Whether the Order is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    Present,
    /// It exists but is broken, or a source that could not be read may contain it: it must not be treated as
    /// deleted.
    Unreadable(String),
    /// Its source is configured and was read completely, and does not contain it.
    Gone(String),
}

/// What the Applications of an Order are pinned to, from its Serving only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeployedNow {
    pub preparation: PreparationName,
    pub artifact: Artifact,
    /// The namespace that its objects are deployed to.
    pub target_namespace: Namespace,
    /// The Environment that it was promoted in.
    pub environment: EnvironmentName,
}

/// What an Order and its Environment require before a promotion.
#[derive(Debug, Clone, Default)]
pub struct Demands {
    /// The Order's own policy.
    pub order_approvals: Option<ApprovalPolicy>,
    pub environment_approvals: Option<ApprovalPolicy>,
    /// The Environment's upstream stages, then the Order's.
    pub upstream: Vec<(OrderRef, Upstream)>,
    /// The checks of the Environment, then those of the Order, each with its owner.
    pub checks: Vec<(&'static str, Check)>,
    pub windows: Vec<Window>,
    pub freezes: Vec<crate::model::environment::Freeze>,
}

/// Decisions about one Order depend only on this, on Facts and on the clock.
#[derive(Debug, Clone)]
pub struct Case {
    pub order: OrderRef,
    /// Where its object is.
    pub origin: Option<Origin>,
    pub labels: Option<BTreeMap<String, String>>,
    /// Whether it is there.
    pub presence: Presence,
    pub mode: Mode,
    /// Where it deploys; `None` with an error in `errors`.
    pub place: Option<Arc<Place>>,
    pub demands: Demands,
    pub serving: Option<Arc<Serving>>,
    pub deployed: Option<DeployedNow>,
    pub preparations: BTreeMap<PreparationName, Loaded<Preparation>>,
    /// The newest Ready one.
    pub newest: Newest,
    /// What could be promoted.
    pub candidate: Option<Candidate>,
    /// Problems of the candidate that gate Ready reports.
    pub candidate_faults: Vec<String>,
    /// Errors of this Order: what is deployed stays, nothing new is promoted, exit status 1.
    pub errors: Vec<Failure>,
    /// Problems while reading the sources that block every new promotion of this Order.
    pub holds: Vec<Failure>,
    pub warnings: Vec<Failure>,
    /// The keys and people that this installation trusts.
    pub kitchen: Option<Arc<Kitchen>>,
    /// Files below `applications/` with the labels of this Order, by path.
    pub owned: BTreeMap<String, ApplicationFile>,
    /// One per Cluster of `place`, in the same order: its Application, and who owns that now.
    pub slots: Vec<Slot>,
    /// What Argo CD reports about every Application that the deployed artifact was written to; `None`: Argo
    /// CD was not asked.
    pub seen: Option<Arc<[Seen]>>,
    /// The upstream stages of `demands`, looked up.
    pub stages: Vec<Stage>,
    /// Votes on Preparations of this Order, and votes on their digests that name a Preparation that does not
    /// exist.
    pub approvals: Vec<Loaded<Approval>>,
}

impl Case {
    /// Whether this digest ran in this Environment before, according to the Serving's history.
    #[must_use]
    pub fn has_run_before(&self, artifact: &Artifact) -> bool {
        let here = self.place.as_ref().map(|p| &p.name);
        self.serving.iter().flat_map(|s| &s.status.history).any(|entry| {
            entry.digest == artifact.digest
                && entry.environment.as_ref().is_none_or(|e| here.is_none_or(|h| h == e))
        })
    }

    /// Whether this digest was healthy here before, according to the Serving's history, which the gates have
    /// to prove.
    #[must_use]
    pub fn has_been_healthy(&self, artifact: &Artifact) -> bool {
        let here = self.place.as_ref().map(|p| &p.name);
        self.serving.iter().flat_map(|s| &s.status.history).any(|entry| {
            entry.digest == artifact.digest
                && entry.first_healthy_time.is_some()
                && entry.environment.as_ref().is_none_or(|e| Some(e) == here)
        })
    }

    /// Whether what is deployed was promoted in the Environment that the Order names now.
    #[must_use]
    pub fn is_at_home(&self) -> bool {
        match (&self.deployed, &self.place) {
            (Some(deployed), Some(place)) => deployed.environment == place.name,
            (Some(_), None) => false,
            (None, _) => true,
        }
    }

    /// Whether the Order, its Environment or the candidate's Preparation has an approval policy.
    #[must_use]
    pub fn needs_approvals(&self) -> bool {
        let preparation = self.candidate.as_ref().and_then(|c| self.preparations.get(&c.name));
        self.demands.order_approvals.is_some()
            || self.demands.environment_approvals.is_some()
            || preparation.is_some_and(|p| p.object.spec.approval_policy.is_some())
    }

    /// `Order shop/podinfo`, for messages.
    #[must_use]
    pub fn format_order(&self) -> String {
        format!("Order {}", self.order)
    }
}

/// One Case per Order that was read, that is known to exist, or that has a Serving; sorted.
#[must_use]
pub fn resolve_cases(world: &World, gitops: &GitOps, argocd_namespace: &str) -> Vec<Case> {
    let places = place::Places::from_world(world);
    let mut preparations = group_by_order(world);
    let owned = collect_owned(gitops);
    let in_git = slot::collect_named_files(gitops);
    let mut held_orders: BTreeMap<&OrderRef, Vec<&Failure>> = BTreeMap::new();
    let mut everything: Vec<Failure> = Vec::new();
    for problem in world.problems.iter().chain(&gitops.problems) {
        match &problem.holds {
            Holds::Nothing => {}
            Holds::Orders(orders) => {
                orders.iter().for_each(|o| held_orders.entry(o).or_default().push(&problem.failure));
            }
            Holds::Everything => everything.push(problem.failure.clone()),
        }
    }
    // What is committed of them must not depend on their position in the files.
    everything.sort_by_cached_key(Failure::format_sentence);
    held_orders.values_mut().for_each(|all| all.sort_by_cached_key(|failure| failure.format_sentence()));
    let all: BTreeSet<&OrderRef> = world
        .orders
        .keys()
        .chain(gitops.servings.keys())
        .chain(held_orders.keys().copied())
        .chain(owned.keys())
        .collect();
    let mut cases: Vec<Case> = all
        .into_iter()
        .map(|order| {
            let mut case = Case {
                order: order.clone(),
                origin: world.orders.get(order).map(|l| l.origin.clone()),
                labels: world.orders.get(order).map(|l| l.object.metadata.labels.clone()),
                presence: judge_presence(
                    order,
                    world,
                    gitops,
                    held_orders.contains_key(order),
                    owned.contains_key(order),
                ),
                mode: Mode::Manual,
                place: None,
                demands: Demands::default(),
                serving: None,
                deployed: None,
                preparations: preparations.remove(order).unwrap_or_default(),
                newest: Newest::None,
                candidate: None,
                candidate_faults: Vec::new(),
                errors: held_orders.get(order).into_iter().flatten().map(|f| (*f).clone()).collect(),
                holds: everything.clone(),
                warnings: Vec::new(),
                kitchen: world.kitchen.as_ref().map(|k| k.object.clone()),
                owned: owned.get(order).cloned().unwrap_or_default(),
                slots: Vec::new(),
                seen: None,
                stages: Vec::new(),
                approvals: Vec::new(),
            };
            read_serving(&mut case, gitops);
            if let Some(loaded) = world.orders.get(order) {
                read_order(&mut case, loaded, &places);
                candidate::choose_candidate(&mut case, loaded, world);
                slot::fill_slots(&mut case, world, gitops, &in_git, argocd_namespace);
            }
            read_observed(&mut case, world, argocd_namespace);
            warn_of_stray_serving(&mut case, world);
            case
        })
        .collect();
    stage::fill_stages(&mut cases);
    give_votes(&mut cases, world);
    cases
}

fn read_observed(case: &mut Case, world: &World, argocd_namespace: &str) {
    let Some(applications) = &world.applications else { return };
    let written = case.serving.iter().flat_map(|s| &s.status.clusters).filter(|c| c.reason == PINNED);
    let seen = written.map(|cluster| Seen {
        cluster: cluster.name.clone(),
        server: cluster.server.clone(),
        ready: place::is_ready(&cluster.name, world),
        application: applications
            .get(&(argocd_namespace.to_owned(), cluster.application.to_string()))
            .map(|loaded| loaded.object.clone()),
    });
    case.seen = Some(seen.collect());
}

/// Assigns every vote to the Order whose Preparation it names, or else to the Order whose digest it names.
fn give_votes(cases: &mut [Case], world: &World) {
    let mut by_digest: BTreeMap<(Namespace, Digest), BTreeSet<usize>> = BTreeMap::new();
    let mut by_name: BTreeMap<(Namespace, PreparationName), usize> = BTreeMap::new();
    for (at, case) in cases.iter().enumerate() {
        for (name, loaded) in &case.preparations {
            let digest = loaded.object.spec.artifact.digest;
            by_name.insert((case.order.namespace.clone(), name.clone()), at);
            by_digest.entry((case.order.namespace.clone(), digest)).or_default().insert(at);
        }
    }
    for ((namespace, _), vote) in &world.approvals {
        let reference = &vote.object.spec.preparation_ref;
        let named = by_name.get(&(namespace.clone(), reference.name.clone()));
        let meant = by_digest.get(&(namespace.clone(), reference.artifact_digest));
        let to: BTreeSet<usize> = match named {
            Some(at) => BTreeSet::from([*at]),
            None => meant.cloned().unwrap_or_default(),
        };
        to.into_iter().for_each(|at| cases[at].approvals.push(vote.clone()));
    }
}

fn group_by_order(world: &World) -> BTreeMap<OrderRef, BTreeMap<PreparationName, Loaded<Preparation>>> {
    let mut all: BTreeMap<OrderRef, BTreeMap<_, _>> = BTreeMap::new();
    for ((namespace, name), loaded) in &world.preparations {
        let order = OrderRef { namespace: namespace.clone(), name: loaded.object.spec.order_name.clone() };
        all.entry(order).or_default().insert(name.clone(), loaded.clone());
    }
    all
}

fn collect_owned(gitops: &GitOps) -> BTreeMap<OrderRef, BTreeMap<String, ApplicationFile>> {
    let mut all: BTreeMap<OrderRef, BTreeMap<_, _>> = BTreeMap::new();
    for (path, file) in &gitops.applications {
        if let Some(owner) = &file.owner {
            all.entry(owner.clone()).or_default().insert(path.clone(), file.clone());
        }
    }
    all
}

/// `deploys`: the repository has Applications of it.
fn judge_presence(
    order: &OrderRef,
    world: &World,
    gitops: &GitOps,
    named_broken: bool,
    deploys: bool,
) -> Presence {
    if world.orders.contains_key(order) {
        return Presence::Present;
    }
    if named_broken {
        return Presence::Unreadable("its object cannot be read".into());
    }
    let serving = gitops.servings.get(order).and_then(|f| f.serving.as_ref().ok());
    let Some(deployed) = serving.and_then(|s| s.status.deployed.as_ref()) else {
        // A run wrote this Serving while its Order was held. Nothing is deployed, so nothing can be lost, and
        // no single source is known, so all of them are asked.
        let ours = serving.is_some_and(|s| !s.status.conditions.is_empty() && s.status.history.is_empty());
        let whole = world.sources.iter().all(|source| source.whole) && !world.orders.is_empty();
        if ours && whole && !deploys {
            return Presence::Gone(
                "the Order is not in any source any more, and it never deployed anything".into(),
            );
        }
        return Presence::Unreadable(
            "no Order of this name was read, and its Serving does not say which source it came from".into(),
        );
    };
    let unread = |source: &SourceState| {
        let why = source.why.as_ref().map(|w| format!(": {w}")).unwrap_or_default();
        format!("{} could not be read whole{why}", source.name)
    };
    match world.sources.iter().find(|s| *s.name == *deployed.source) {
        None => Presence::Unreadable(format!(
            "it came from the source {}, which is no longer configured",
            deployed.source
        )),
        Some(source) if !source.whole => Presence::Unreadable(format!("its source {}", unread(source))),
        Some(_) if world.orders.is_empty() => {
            Presence::Unreadable("no source has any Order, but the repository has Servings".into())
        }
        // The source is stored at a promotion; the Order may have moved to another source since.
        Some(source) => match world.sources.iter().find(|other| !other.whole) {
            Some(other) => Presence::Unreadable(format!(
                "the Order is not in {} any more; it may have moved to {}",
                source.name,
                unread(other)
            )),
            None => Presence::Gone(format!("the Order is gone from {}", source.name)),
        },
    }
}

fn read_serving(case: &mut Case, gitops: &GitOps) {
    let Some(file) = gitops.servings.get(&case.order) else {
        if !case.owned.is_empty() {
            case.warnings.push(
                Failure::new_input(
                    "serving-gone",
                    format!(
                        "it has {} Application(s) but no Serving; the Applications are not changed",
                        case.owned.len()
                    ),
                )
                .with_object(case.format_order())
                .with_hint("restore the Serving with git revert, or promote again"),
            );
        }
        return;
    };
    match &file.serving {
        Err(failure) => case.errors.push(failure.clone()),
        Ok(serving) => {
            let status = &serving.status;
            case.deployed = match (
                &status.observed_preparation_name,
                status.deployed_digest,
                &status.deployed,
            ) {
                (Some(preparation), Some(digest), Some(pinned)) => Some(DeployedNow {
                    preparation: preparation.clone(),
                    artifact: Artifact { repository: pinned.repository.clone(), digest },
                    target_namespace: pinned.target_namespace.clone(),
                    environment: pinned.environment.clone(),
                }),
                (None, None, None) => None,
                _ => {
                    case.errors.push(
                        Failure::new_input(
                            "serving-incomplete",
                            "status names only a part of what is deployed (observedPreparationName, deployedDigest and deployed belong together)",
                        )
                        .with_object(format!("Serving {}", case.order))
                        .with_place(crate::error::At::from_file(file.path.clone()))
                        .with_hint("restore the last committed state with git revert"),
                    );
                    None
                }
            };
            case.serving = Some(serving.clone());
        }
    }
}

fn read_order(case: &mut Case, loaded: &Loaded<Order>, places: &place::Places) {
    let order = &loaded.object;
    let promotion = order.spec.promotion.clone().unwrap_or_default();
    case.mode = promotion.mode.unwrap_or(match order.spec.auto_deploy {
        Some(AutoDeploy::Enabled) => Mode::Automatic,
        Some(AutoDeploy::Disabled) | None => Mode::Manual,
    });
    match places.find_place(order) {
        Ok(place) => {
            read_demands(case, &promotion, &place, loaded);
            case.place = Some(place);
        }
        Err(failure) => {
            case.errors.push(failure.with_object(case.format_order()).with_place(loaded.origin.make_place()))
        }
    }
    let longest = case.order.name.as_str().len();
    if longest > 63 {
        case.errors.push(
            Failure::new_input(
                "label-too-long",
                format!("its name has {longest} characters; it becomes a label value, which holds 63"),
            )
            .with_object(case.format_order())
            .with_place(loaded.origin.make_place())
            .with_field("metadata.name"),
        );
    }
}

fn read_demands(case: &mut Case, promotion: &PromotionSpec, place: &Place, loaded: &Loaded<Order>) {
    let mut upstream = Vec::new();
    for (list, own) in [(&place.promotion.upstream, false), (&promotion.upstream, true)] {
        for stage in list {
            match OrderRef::parse_in(&stage.order, &case.order.namespace) {
                Ok(order) => upstream.push((order, stage.clone())),
                Err(why) => case.errors.push(
                    Failure::new_input("bad-upstream", why.to_string())
                        .with_object(if own {
                            case.format_order()
                        } else {
                            format!("Environment {}", place.name)
                        })
                        .with_place(loaded.origin.make_place())
                        .with_field("spec.promotion.upstream"),
                ),
            }
        }
    }
    let checks = place
        .promotion
        .checks
        .iter()
        .map(|c| ("Environment", c.clone()))
        .chain(promotion.checks.iter().map(|c| ("Order", c.clone())))
        .collect();
    case.demands = Demands {
        order_approvals: promotion.approvals.clone(),
        environment_approvals: place.promotion.approvals.clone(),
        upstream,
        checks,
        windows: promotion.windows.clone(),
        freezes: place.promotion.freezes.clone(),
    };
}

fn warn_of_stray_serving(case: &mut Case, world: &World) {
    let Some(stray) = world.stray_servings.get(&case.order) else { return };
    let here = case.serving.as_ref().and_then(|s| s.spec.preparation_name.as_ref());
    if stray.object.spec.preparation_name.as_ref() != here {
        case.warnings.push(
            Failure::new_input(
                "stray-serving",
                format!(
                    "this Serving asks for {}, the one in the GitOps repository for {}; only the latter counts",
                    stray.object.spec.preparation_name.as_ref().map_or("nothing", |n| n.as_str()),
                    here.map_or("nothing", |n| n.as_str()),
                ),
            )
            .with_object(format!("Serving {}", case.order))
            .with_place(stray.origin.make_place()),
        );
    }
}

/// Whether a Preparation is Ready, as far as its source can know
/// (`docs/design/promotion.md#two-sources-one-meaning`). `Ok` or why not.
///
/// # Errors
/// Why it is not Ready, for a message.
pub fn check_preparation(loaded: &Loaded<Preparation>) -> Result<(), String> {
    use crate::model::meta::Readiness;
    let from_cluster = place::is_from_cluster(&loaded.origin);
    match Status::judge_readiness(loaded.object.status.as_ref(), loaded.object.metadata.generation) {
        Readiness::Ready => Ok(()),
        Readiness::NoStatus if !from_cluster => Ok(()),
        Readiness::NoStatus | Readiness::NoCondition => Err("it has no Ready condition".into()),
        Readiness::NotReady(why) | Readiness::NotYetKnown(why) => Err(why),
    }
}

/// A failure of kind Input for an object that was loaded.
pub(crate) fn make_input_failure<T>(
    loaded: &Loaded<T>,
    what: String,
    code: &'static str,
    cause: String,
) -> Failure {
    Failure::new(FailureKind::Input, code, cause).with_object(what).with_place(loaded.origin.make_place())
}
