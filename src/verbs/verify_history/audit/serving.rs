//! What a commit did to a Serving's state: what a run may do to it, and what only a hand does. Pure.

use crate::model::id::Digest;
use crate::model::reason::Ended;
use crate::model::serving::{HISTORY, HistoryEntry, ServingStatus};

/// One thing that a run does not do: artifact, code, what.
pub type Odd = (Option<Digest>, &'static str, String);

/// What two states of a Serving have between them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// What a run does not do.
    pub findings: Vec<Odd>,
    /// Places in the new history of promotions that are new, newest first.
    pub promotions: Vec<usize>,
    /// Places in the new history of entries whose health or Degraded end is new.
    pub deployments: Vec<usize>,
}

/// Compares two states, one commit apart.
#[must_use]
pub fn compare_statuses(before: &ServingStatus, after: &ServingStatus) -> Compared {
    let mut compared = Compared::default();
    if before == after {
        return compared;
    }
    let pairs = pair_entries(&before.history, &after.history);
    for (index, entry) in after.history.iter().enumerate() {
        match pairs[index].map(|old| &before.history[old]) {
            Some(old) => compared.compare_kept(old, entry, index, after),
            None => {
                // A recovery has its promotion's time and record, which came with the promotion.
                let older = after.history[index + 1..].iter().chain(&before.history);
                if !older.into_iter().any(|other| {
                    make_promotion_key(other) == make_promotion_key(entry)
                        && other.promotion_record == entry.promotion_record
                }) {
                    compared.promotions.push(index);
                }
                if entry.first_healthy_time.is_some() {
                    compared.deployments.push(index);
                }
            }
        }
    }
    let fresh = pairs.iter().filter(|pair| pair.is_none()).count();
    let gone: Vec<&HistoryEntry> = (0..before.history.len())
        .filter(|old| !pairs.contains(&Some(*old)))
        .map(|old| &before.history[old])
        .collect();
    // A full history lets as many go as come.
    let full = after.history.len() >= HISTORY && gone.len() <= fresh;
    for entry in gone.iter().filter(|_| !full) {
        compared.add_odd(entry, "history-removed", "is gone");
    }
    compared.compare_deployed(before, after);
    compared
}

/// What makes two entries of one promotion.
fn make_promotion_key(entry: &HistoryEntry) -> impl PartialEq + use<> {
    (entry.promoted_time, entry.digest, entry.preparation_name.clone())
}

/// For each entry of `after` the one of `before` that it was.
fn pair_entries(before: &[HistoryEntry], after: &[HistoryEntry]) -> Vec<Option<usize>> {
    let mut taken = vec![false; before.len()];
    let mut take = |entry: &HistoryEntry, same: &dyn Fn(&HistoryEntry) -> bool| {
        let found = (0..before.len()).find(|&old| {
            !taken[old] && make_promotion_key(&before[old]) == make_promotion_key(entry) && same(&before[old])
        })?;
        taken[found] = true;
        Some(found)
    };
    let mut pairs: Vec<Option<usize>> = after
        .iter()
        .map(|entry| take(entry, &|old| old.first_healthy_time == entry.first_healthy_time))
        .collect();
    for (pair, entry) in pairs.iter_mut().zip(after) {
        if pair.is_none() {
            *pair = take(entry, &|old| old.first_healthy_time.is_none());
        }
    }
    pairs
}

impl Compared {
    fn add_odd(&mut self, entry: &HistoryEntry, code: &'static str, what: &str) {
        let what = format!(
            "the history entry of {}, promoted at {}, {what}",
            entry.preparation_name, entry.promoted_time
        );
        self.findings.push((Some(entry.digest), code, what));
    }

    /// An entry that was there before: it may become healthy once, and end once.
    fn compare_kept(&mut self, old: &HistoryEntry, new: &HistoryEntry, index: usize, after: &ServingStatus) {
        let fixed = [
            ("baseDigest", old.base_digest == new.base_digest),
            ("environment", old.environment == new.environment),
            ("requestedBy", old.requested_by == new.requested_by),
            ("approvalRecord", old.approval_record == new.approval_record),
            ("promotionRecord", old.promotion_record == new.promotion_record),
            (
                "firstHealthyTime",
                old.first_healthy_time.is_none() || old.first_healthy_time == new.first_healthy_time,
            ),
            ("endedTime", old.ended_time.is_none() || old.ended_time == new.ended_time),
            ("endedReason", old.ended_reason.is_none() || old.ended_reason == new.ended_reason),
            ("healthyUntil", old.ended_time.is_none() || old.healthy_until == new.healthy_until),
            ("deploymentRecord", old.deployment_record.is_none() || new.deployment_record.is_some()),
        ];
        for (field, _) in fixed.iter().filter(|(_, same)| !same) {
            self.add_odd(new, "history-edited", &format!("has another {field} than before"));
        }
        let ended = |how| old.ended_reason.is_none() && new.ended_reason == Some(how);
        if old.first_healthy_time != new.first_healthy_time
            || old.deployment_record != new.deployment_record
            || ended(Ended::Degraded)
        {
            self.deployments.push(index);
        }
        if ended(Ended::Superseded) {
            let newer = after.history[..index].iter().rev();
            let next = newer.into_iter().find(|e| make_promotion_key(e) != make_promotion_key(new));
            if next.map(|e| e.promoted_time) != new.ended_time {
                self.add_odd(new, "history-edited", "is said to be superseded, and no promotion did that");
            }
        }
    }

    /// What is deployed changes by a promotion, and by nothing else.
    fn compare_deployed(&mut self, before: &ServingStatus, after: &ServingStatus) {
        let what = |status: &ServingStatus| {
            (status.deployed_digest, status.observed_preparation_name.clone(), status.deployed.clone())
        };
        if what(before) == what(after) && self.promotions.is_empty() {
            return;
        }
        let told = after.history.first().is_some_and(|entry| {
            Some(entry.digest) == after.deployed_digest
                && Some(&entry.preparation_name) == after.observed_preparation_name.as_ref()
                && entry.environment == after.deployed.as_ref().map(|d| d.environment.clone())
        });
        if self.promotions.contains(&0) && told {
            return;
        }
        let name = after.observed_preparation_name.as_ref().map_or("nothing", |name| name.as_str());
        let what = format!("{name} is said to be deployed, and no promotion of this commit says so");
        self.findings.push((after.deployed_digest, "deployed-without-promotion", what));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::model::id::{EnvironmentName, Namespace, OciRepository, PreparationName};
    use crate::model::serving::Deployed;
    use crate::model::time::Time;

    fn at(minute: i64) -> Time {
        Time::from_unix(1_700_000_000 + minute * 60)
    }

    fn entry(name: &str, minute: i64) -> HistoryEntry {
        HistoryEntry {
            preparation_name: PreparationName::parse(name).unwrap(),
            digest: Digest::hash_bytes(name.as_bytes()),
            base_digest: None,
            environment: Some(EnvironmentName::parse("e").unwrap()),
            promoted_time: at(minute),
            requested_by: None,
            first_healthy_time: None,
            ended_time: None,
            ended_reason: None,
            healthy_until: None,
            approval_record: None,
            promotion_record: Some(Digest::hash_bytes(format!("{name} {minute}").as_bytes())),
            deployment_record: None,
        }
    }

    fn status(history: Vec<HistoryEntry>) -> ServingStatus {
        let newest = &history[0];
        ServingStatus {
            observed_preparation_name: Some(newest.preparation_name.clone()),
            deployed_digest: Some(newest.digest),
            deployed: Some(Deployed {
                environment: EnvironmentName::parse("e").unwrap(),
                repository: OciRepository::parse("r.example/a").unwrap(),
                target_namespace: Namespace::parse("n").unwrap(),
                source: "path:x".into(),
            }),
            history,
            ..ServingStatus::default()
        }
    }

    fn superseded(name: &str, minute: i64, end: i64) -> HistoryEntry {
        HistoryEntry {
            ended_time: Some(at(end)),
            ended_reason: Some(Ended::Superseded),
            ..entry(name, minute)
        }
    }

    fn codes(before: &ServingStatus, after: &ServingStatus) -> Vec<&'static str> {
        compare_statuses(before, after).findings.into_iter().map(|(_, code, _)| code).collect()
    }

    #[test]
    fn a_life_as_runs_write_it_is_no_finding() {
        let empty = ServingStatus::default();
        let first = status(vec![entry("a", 0)]);
        let compared = compare_statuses(&empty, &first);
        assert_eq!((compared.promotions, compared.findings), (vec![0], vec![]));
        let mut healthy = first.clone();
        healthy.history[0].first_healthy_time = Some(at(5));
        healthy.history[0].deployment_record = Some(Digest::hash_bytes(b"d"));
        let compared = compare_statuses(&first, &healthy);
        assert_eq!((compared.promotions, compared.deployments, compared.findings), (vec![], vec![0], vec![]));
        let mut degraded = healthy.clone();
        degraded.history[0].ended_time = Some(at(9));
        degraded.history[0].ended_reason = Some(Ended::Degraded);
        degraded.history[0].deployment_record = Some(Digest::hash_bytes(b"e"));
        assert_eq!(compare_statuses(&healthy, &degraded).deployments, [0]);
        let mut recovered = degraded.clone();
        let again = HistoryEntry {
            first_healthy_time: Some(at(12)),
            deployment_record: Some(Digest::hash_bytes(b"f")),
            ..entry("a", 0)
        };
        recovered.history.insert(0, again);
        let compared = compare_statuses(&degraded, &recovered);
        assert_eq!((compared.promotions, compared.deployments, compared.findings), (vec![], vec![0], vec![]));
        let next = status(vec![entry("b", 20), superseded("a", 0, 20)]);
        let compared = compare_statuses(&first, &next);
        assert_eq!((compared.promotions, compared.findings), (vec![0], vec![]));
    }

    #[test]
    fn a_full_history_lets_as_many_go_as_come() {
        let long = |from: i64| {
            let mut all = vec![entry(&format!("p-{}", from + 15), from + 15)];
            all.extend((from..from + 15).rev().map(|n| superseded(&format!("p-{n}"), n, n + 1)));
            status(all)
        };
        assert_eq!(codes(&long(0), &long(1)), Vec::<&str>::new());
        let mut cut = long(0);
        cut.history.pop();
        assert_eq!(codes(&long(0), &cut), ["history-removed"]);
    }

    #[test]
    fn what_only_a_hand_does_is_found() {
        let first = status(vec![entry("a", 0)]);
        let next = status(vec![entry("b", 20), superseded("a", 0, 20)]);
        // Back to the state before, as `git revert` does.
        assert_eq!(
            codes(&next, &first),
            ["history-edited", "history-edited", "history-removed", "deployed-without-promotion"]
        );
        let mut other = first.clone();
        other.deployed_digest = Some(Digest::hash_bytes(b"evil"));
        assert_eq!(codes(&first, &other), ["deployed-without-promotion"]);
        let mut moved = first.clone();
        if let Some(deployed) = &mut moved.deployed {
            deployed.repository = OciRepository::parse("r.example/evil").unwrap();
        }
        assert_eq!(codes(&first, &moved), ["deployed-without-promotion"]);
        let mut ended = first.clone();
        ended.history[0].ended_time = Some(at(3));
        ended.history[0].ended_reason = Some(Ended::Superseded);
        assert_eq!(codes(&first, &ended), ["history-edited"]);
        for edit in [
            (|e: &mut HistoryEntry| e.promotion_record = None) as fn(&mut HistoryEntry),
            |e| e.base_digest = Some(Digest::hash_bytes(b"x")),
            |e| e.environment = None,
        ] {
            let mut edited = next.clone();
            edit(&mut edited.history[1]);
            assert_eq!(codes(&next, &edited), ["history-edited"]);
        }
        // A promoted time that was changed is another entry, and the old one is gone.
        let mut earlier = next.clone();
        earlier.history[1].promoted_time = at(-9);
        let compared = compare_statuses(&next, &earlier);
        assert_eq!(compared.promotions, [1]);
        assert!(compared.findings.iter().any(|(_, code, _)| *code == "history-removed"), "{compared:?}");
    }
}
