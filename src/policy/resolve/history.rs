//! The history of promotions: at most 16 entries, newest first. How a promotion and a look at what is
//! deployed change it.

use crate::model::id::{Digest, EnvironmentName};
use crate::model::plan::{Candidate, Promotion};
use crate::model::reason::Ended;
use crate::model::serving::{HISTORY, HistoryEntry};
use crate::model::time::Time;
use crate::policy::resolve::observe::Health;

/// The history after a promotion at `now`: what ran until now ended Superseded (unless it ended before).
/// `seen`: how this run sees it; nobody looks at it again. `base`: what the candidate was proven to be made from.
#[must_use]
pub fn record_promotion(
    old: &[HistoryEntry],
    candidate: &Candidate,
    base: Option<Digest>,
    environment: &EnvironmentName,
    promotion: &Promotion,
    seen: Option<&Health>,
    now: Time,
) -> Vec<HistoryEntry> {
    let mut entries = vec![HistoryEntry {
        preparation_name: candidate.name.clone(),
        digest: candidate.artifact.digest,
        base_digest: base,
        environment: Some(environment.clone()),
        promoted_time: now,
        requested_by: Some(promotion.requested_by.clone()),
        first_healthy_time: None,
        ended_time: None,
        ended_reason: None,
        healthy_until: None,
        approval_record: None,
        promotion_record: None,
        deployment_record: None,
    }];
    entries.extend(old.iter().cloned());
    if let Some(before) = entries.get_mut(1)
        && before.ended_time.is_none()
    {
        before.ended_time = Some(now);
        before.ended_reason = Some(Ended::Superseded);
        before.healthy_until = before.first_healthy_time.map(|since| find_healthy_until(since, seen, now));
    }
    shorten_history(&mut entries);
    entries
}

/// Until when what was healthy `since` is known to have been: an upstream that nobody could look at does not
/// soak, not even by being superseded.
fn find_healthy_until(since: Time, seen: Option<&Health>, now: Time) -> Time {
    match seen {
        // On its way after Healthy is no end, as long as Argo CD looks.
        Some(Health::Deployed { looked, .. }) => looked.unwrap_or(since).min(now).max(since),
        Some(Health::NotObserved | Health::Deploying { .. } | Health::Degraded { .. }) | None => since,
    }
}

/// The history after this run's look at what is deployed: first healthy, a Degraded end, and a recovery,
/// which opens an entry of its own with the promotion's time and record.
#[must_use]
pub fn record_observation(old: &[HistoryEntry], health: &Health) -> Vec<HistoryEntry> {
    let mut entries = old.to_vec();
    let Some(newest) = entries.first_mut() else { return entries };
    match health {
        Health::Deployed { now: Some(steady), .. } => match (newest.first_healthy_time, newest.ended_time) {
            (None, None) => newest.first_healthy_time = Some(steady.since),
            (_, Some(ended)) if newest.ended_reason == Some(Ended::Degraded) => {
                let recovered = HistoryEntry {
                    first_healthy_time: Some(steady.since.max(ended)),
                    ended_time: None,
                    ended_reason: None,
                    healthy_until: None,
                    deployment_record: None,
                    ..newest.clone()
                };
                entries.insert(0, recovered);
                shorten_history(&mut entries);
            }
            (Some(_), None) | (_, Some(_)) => {}
        },
        Health::Degraded { since, .. } => {
            if let (Some(first_healthy), None) = (newest.first_healthy_time, newest.ended_time) {
                newest.ended_time = Some((*since).max(first_healthy));
                newest.ended_reason = Some(Ended::Degraded);
            }
        }
        Health::Deployed { now: None, .. } | Health::Deploying { .. } | Health::NotObserved => {}
    }
    entries
}

/// Cuts to 16: when full, older recoveries of one promotion (equal promotedTime) go first, then the oldest.
pub fn shorten_history(entries: &mut Vec<HistoryEntry>) {
    while entries.len() > HISTORY {
        let recovery = (1..entries.len()).rev().find(|&i| {
            let same = |j: usize| {
                entries[j].promoted_time == entries[i].promoted_time && entries[j].digest == entries[i].digest
            };
            // An entry between the promotion's first and last one tells the least.
            same(i - 1) && i + 1 < entries.len() && same(i + 1)
        });
        match recovery {
            Some(index) => {
                entries.remove(index);
            }
            None => {
                entries.pop();
            }
        }
    }
}
