//! Which Preparation is the newest (`docs/design/promotion.md#newest`): decided neither by file order nor by
//! name.

use crate::model::id::{Digest, PreparationName};
use crate::model::preparation::Preparation;
use crate::model::time::Time;
use crate::model::world::Loaded;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Newest {
    /// No Preparation is Ready.
    None,
    One(PreparationName),
    /// No rule gives exactly one; these are the possible ones.
    Unclear(Vec<PreparationName>),
}

/// Ready Preparations and, where a controller observed it, the Order's latest.
pub(crate) fn find_newest(
    ready: &BTreeMap<&PreparationName, &Loaded<Preparation>>,
    observed_latest: Option<&str>,
) -> Newest {
    match ready.len() {
        0 => return Newest::None,
        1 => return ready.keys().next().map_or(Newest::None, |n| Newest::One((*n).clone())),
        _ => {}
    }
    if let Some(name) = find_newest_by_time(ready).or_else(|| find_newest_by_chain(ready)) {
        return Newest::One(name);
    }
    if let Some(latest) = observed_latest
        && let Some(name) = ready.keys().find(|n| n.as_str() == latest)
    {
        return Newest::One((*name).clone());
    }
    Newest::Unclear(ready.keys().map(|n| (*n).clone()).collect())
}

/// By creationTimestamp, if all have one and only one has the latest.
fn find_newest_by_time(ready: &BTreeMap<&PreparationName, &Loaded<Preparation>>) -> Option<PreparationName> {
    let mut times: Vec<(Time, &PreparationName)> = Vec::with_capacity(ready.len());
    for (name, loaded) in ready {
        times.push((loaded.object.metadata.creation_timestamp?, name));
    }
    times.sort();
    let (top, name) = times.last()?;
    let shared = times.iter().filter(|(t, _)| t.cut_to_second() == top.cut_to_second()).count() > 1;
    (!shared).then(|| (*name).clone())
}

/// The tip of the `parentDigest` chain: the one digest that is not the parent of another, from which every
/// other one is reached.
fn find_newest_by_chain(ready: &BTreeMap<&PreparationName, &Loaded<Preparation>>) -> Option<PreparationName> {
    let parents: BTreeMap<Digest, Option<Digest>> =
        ready.values().map(|l| (l.object.spec.artifact.digest, l.object.spec.parent_digest)).collect();
    if parents.len() != ready.len() {
        return None;
    }
    let named: BTreeSet<Digest> = parents.values().flatten().copied().collect();
    let mut tips = ready.iter().filter(|(_, l)| !named.contains(&l.object.spec.artifact.digest));
    let (name, tip) = tips.next()?;
    if tips.next().is_some() {
        return None;
    }
    let mut seen = BTreeSet::new();
    let mut at = Some(tip.object.spec.artifact.digest);
    while let Some(digest) = at {
        if !seen.insert(digest) {
            return None;
        }
        at = parents.get(&digest).copied().flatten();
        if at.is_some_and(|d| !parents.contains_key(&d)) {
            break;
        }
    }
    (seen.len() == ready.len()).then(|| (*name).clone())
}
