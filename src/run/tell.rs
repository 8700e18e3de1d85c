//! Telling clusters what is in git: after the push, and never before it. Nothing that fails here undoes
//! anything, and the next run makes up for it.

use super::{Decided, Setup};
use crate::files::FileChange;
use crate::load::cluster::told::Servings;
use crate::load::gitops::parse_serving_at;
use crate::model::id::OrderRef;
use crate::model::naming::build_serving_path;
use crate::model::serving::Serving;
use crate::model::world::is_cluster;
use crate::notify::{self, TellOutcome, Teller, Telling};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What every cluster source listed, by the source's name.
pub type Listed = BTreeMap<Arc<str>, Servings>;

/// Writes to each cluster what its Servings do not say yet; what failed is a problem of the plan.
pub fn tell_clusters(
    setup: &Setup<'_>,
    tellers: &[Teller],
    decided: &mut Decided,
    progress: &mut dyn FnMut(&str),
) -> Vec<TellOutcome> {
    let mut outcomes = Vec::new();
    for teller in tellers {
        let (tellings, absent) = collect_due(setup, decided, &teller.source);
        let mut outcome = if tellings.is_empty() {
            TellOutcome { cluster: teller.name().to_owned(), ..TellOutcome::default() }
        } else {
            progress(&format!("telling {} of {} Servings", teller.name(), tellings.len()));
            teller.tell_all(setup.runtime, &tellings)
        };
        let undefined = decided.listed.get(&teller.source).is_some_and(|servings| servings.undefined);
        if undefined && !absent.is_empty() {
            outcome.notices.push(notify::make_no_definition(teller.name()));
        }
        outcome
            .lines
            .extend(absent.iter().map(|order| format!("{order}: its Serving is not in the cluster yet")));
        decided.plan.problems.append(&mut outcome.failures);
        decided.plan.notices.append(&mut outcome.notices);
        outcomes.push(outcome);
    }
    outcomes
}

/// What the Servings of one cluster have not heard, and the Orders from there whose Serving it does not have.
fn collect_due(setup: &Setup<'_>, decided: &Decided, source: &Arc<str>) -> (Vec<Telling>, Vec<OrderRef>) {
    let (mut tellings, mut absent) = (Vec::new(), Vec::new());
    let Some(listed) = decided.listed.get(source) else { return (tellings, absent) };
    for order in collect_orders(decided) {
        let case =
            decided.cases.binary_search_by(|case| case.order.cmp(order)).ok().map(|i| &decided.cases[i]);
        let Some(origin) = case.and_then(|case| case.origin.as_ref()) else { continue };
        let from_here = origin.source == *source;
        // Of an Order from a folder the Serving may be in any cluster; of one from a cluster, only there.
        if !from_here && is_cluster(&origin.source) {
            continue;
        }
        if !setup.options.scope.admits_order(order, case.and_then(|case| case.labels.as_ref())) {
            continue;
        }
        let before = decided.gitops.servings.get(order).and_then(|file| file.serving.as_ref().ok());
        let Some(serving) = find_serving(decided, order, before) else { continue };
        match listed.told.get(order) {
            Some(told) => {
                let before = before.map(|serving| &serving.status);
                tellings.extend(notify::make_telling(order, told, before, &serving.status, setup.now));
            }
            None if from_here => absent.push(order.clone()),
            None => {}
        }
    }
    (tellings, absent)
}

/// Every Order that has a Serving in git, before or after this run.
fn collect_orders(decided: &Decided) -> BTreeSet<&OrderRef> {
    let rows = decided.plan.rows.iter().map(|row| &row.order);
    decided.gitops.servings.keys().chain(rows).collect()
}

/// The Serving as it is in git now: what this run wrote, else what it found.
fn find_serving(decided: &Decided, order: &OrderRef, before: Option<&Arc<Serving>>) -> Option<Arc<Serving>> {
    let path = build_serving_path(order);
    match decided.rendered.changes.get(&path) {
        Some(FileChange::Write(bytes)) => {
            parse_serving_at("", &path, bytes).and_then(|(_, file)| file.serving.ok())
        }
        Some(FileChange::Delete) => None,
        None => before.cloned(),
    }
}
