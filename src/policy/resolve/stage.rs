//! Upstream stages: each Order's demands looked up among the other Orders. A missing upstream and a cycle of
//! Orders are input errors, so that no Order waits without end.

use super::{Case, DeployedNow, Presence};
use crate::error::Failure;
use crate::model::id::{Artifact, Digest, OrderRef};
use crate::model::plan::Candidate;
use crate::model::serving::{HistoryEntry, Serving};
use crate::model::time::Span;
use crate::policy::resolve::observe::Seen;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// What the gate needs to know of an upstream Order.
#[derive(Debug, Clone)]
pub struct Stage {
    pub order: OrderRef,
    /// How long the change must have been healthy there.
    pub soak: Span,
    /// Why its state is unknown, if so: its object or Serving cannot be read.
    pub unreadable: Option<String>,
    pub serving: Option<Arc<Serving>>,
    /// What is deployed there.
    pub deployed: Option<DeployedNow>,
    /// What Argo CD reports about its Applications, if it was asked.
    pub seen: Option<Arc<[Seen]>>,
    /// Artifacts of its history that claim to contain the candidate's change; their records are read there.
    pub artifacts: BTreeMap<Digest, Artifact>,
}

/// Whether a promotion was of the candidate's change, as far as history and Preparations claim.
#[must_use]
pub fn is_claimed_same(candidate: &Candidate, entry: &HistoryEntry) -> bool {
    entry.digest == candidate.artifact.digest
        || (candidate.base_digest.is_some() && entry.base_digest == candidate.base_digest)
}

/// Fills `stages` of every Case, once all Cases are there.
pub(super) fn fill_stages(cases: &mut [Case]) {
    let rings = find_rings(cases);
    let index: BTreeMap<OrderRef, usize> =
        cases.iter().enumerate().map(|(at, case)| (case.order.clone(), at)).collect();
    for at in 0..cases.len() {
        let mut stages = Vec::new();
        let mut errors = Vec::new();
        for (order, upstream) in &cases[at].demands.upstream {
            match index.get(order).map(|i| &cases[*i]) {
                Some(case) if !matches!(case.presence, Presence::Gone(_)) => {
                    stages.push(build_stage(case, upstream.soak, cases[at].candidate.as_ref()));
                }
                Some(_) | None => errors.push(make_unknown_failure(&cases[at], order)),
            }
        }
        errors.extend(rings.get(&cases[at].order).map(|ring| make_cycle_failure(&cases[at], ring)));
        cases[at].stages = stages;
        cases[at].errors.extend(errors);
    }
}

fn build_stage(case: &Case, soak: Span, candidate: Option<&Candidate>) -> Stage {
    let unreadable = match &case.presence {
        Presence::Unreadable(why) => Some(why.clone()),
        Presence::Present | Presence::Gone(_) => {
            let serving = |f: &&Failure| f.what.as_deref().is_some_and(|w| w.starts_with("Serving"));
            let broken = case.errors.iter().find(serving).filter(|_| case.deployed.is_none());
            broken.map(Failure::format_sentence)
        }
    };
    Stage {
        order: case.order.clone(),
        soak,
        unreadable,
        serving: case.serving.clone(),
        deployed: case.deployed.clone(),
        seen: case.seen.clone(),
        artifacts: candidate.map_or_else(BTreeMap::new, |candidate| collect_artifacts(case, candidate)),
    }
}

/// Taken from what is deployed, or from the Preparation of that name, or else from the repository that it
/// deploys from now.
fn collect_artifacts(case: &Case, candidate: &Candidate) -> BTreeMap<Digest, Artifact> {
    let history = case.serving.iter().flat_map(|serving| &serving.status.history);
    let place = |entry: &HistoryEntry| {
        let deployed = case.deployed.as_ref().map(|deployed| &deployed.artifact);
        let prepared = || {
            let spec = &case.preparations.get(&entry.preparation_name)?.object.spec;
            Artifact::parse(&spec.artifact.oci_ref).ok()
        };
        let is = |artifact: &Artifact| artifact.digest == entry.digest;
        let known = deployed.filter(|a| is(a)).cloned().or_else(|| prepared().filter(is));
        known.or_else(|| Some(Artifact { digest: entry.digest, ..deployed?.clone() }))
    };
    let same = history.filter(|entry| is_claimed_same(candidate, entry));
    same.filter_map(|entry| Some((entry.digest, place(entry)?))).collect()
}

fn make_unknown_failure(case: &Case, order: &OrderRef) -> Failure {
    let failure =
        Failure::new_input("unknown-upstream", format!("its upstream Order {order} does not exist"))
            .with_object(case.format_order())
            .with_field("spec.promotion.upstream")
            .with_hint(format!(
                "write <namespace>/<name>, or <name> for an Order in {}",
                case.order.namespace
            ));
    match &case.origin {
        Some(origin) => failure.with_place(origin.make_place()),
        None => failure,
    }
}

fn make_cycle_failure(case: &Case, ring: &[OrderRef]) -> Failure {
    let path: Vec<String> = ring.iter().map(ToString::to_string).collect();
    let failure = Failure::new_input(
        "upstream-cycle",
        format!("its upstream stages wait for each other: {}", path.join(" → ")),
    )
    .with_object(case.format_order())
    .with_field("spec.promotion.upstream")
    .with_hint(
        "remove one of these stages from spec.promotion.upstream (of the Order, or of its Environment)",
    );
    match &case.origin {
        Some(origin) => failure.with_place(origin.make_place()),
        None => failure,
    }
}

/// For each Order that waits for itself, the way back to it: `[a, b, a]`.
fn find_rings(cases: &[Case]) -> BTreeMap<OrderRef, Vec<OrderRef>> {
    let mut edges: BTreeMap<&OrderRef, BTreeSet<&OrderRef>> = BTreeMap::new();
    for case in cases {
        edges.insert(&case.order, case.demands.upstream.iter().map(|(order, _)| order).collect());
    }
    // An Order that waits for none of the remaining Orders, or that none of them waits for, is in no cycle.
    loop {
        let waited_for: BTreeSet<&OrderRef> = edges.values().flatten().copied().collect();
        let before = edges.len();
        let there: BTreeSet<&OrderRef> = edges.keys().copied().collect();
        edges.retain(|order, ups| {
            ups.retain(|up| there.contains(up));
            !ups.is_empty() && waited_for.contains(order)
        });
        if edges.len() == before {
            break;
        }
    }
    edges.keys().filter_map(|order| find_way_back(order, &edges).map(|way| ((*order).clone(), way))).collect()
}

/// The shortest way from an Order along its upstreams back to itself.
fn find_way_back(
    start: &OrderRef,
    edges: &BTreeMap<&OrderRef, BTreeSet<&OrderRef>>,
) -> Option<Vec<OrderRef>> {
    let mut came_from: BTreeMap<&OrderRef, &OrderRef> = BTreeMap::new();
    let mut next = VecDeque::from([start]);
    while let Some(order) = next.pop_front() {
        for up in edges.get(order).into_iter().flatten().copied() {
            if came_from.contains_key(up) {
                continue;
            }
            came_from.insert(up, order);
            if up != start {
                next.push_back(up);
                continue;
            }
            let mut way = vec![start.clone()];
            let mut back = order;
            while back != start {
                way.push(back.clone());
                back = came_from.get(back)?;
            }
            way.push(start.clone());
            way.reverse();
            return Some(way);
        }
    }
    None
}
