//! The history of promotions: at most 16 entries, newest first.

use crate::model::id::EnvironmentName;
use crate::model::plan::{Candidate, Promotion};
use crate::model::reason::Ended;
use crate::model::serving::{HISTORY, HistoryEntry};
use crate::model::time::Time;

/// The history after a promotion at `now`: what ran until now ended Superseded (unless it ended before).
#[must_use]
pub fn promoted(
    old: &[HistoryEntry],
    candidate: &Candidate,
    environment: &EnvironmentName,
    promotion: &Promotion,
    now: Time,
) -> Vec<HistoryEntry> {
    let mut entries = vec![HistoryEntry {
        preparation_name: candidate.name.clone(),
        digest: candidate.artifact.digest,
        base_digest: candidate.base_digest,
        environment: Some(environment.clone()),
        promoted_time: now,
        requested_by: Some(promotion.requested_by.clone()),
        first_healthy_time: None,
        ended_time: None,
        ended_reason: None,
        promotion_record: None,
        deployment_record: None,
    }];
    entries.extend(old.iter().cloned());
    if let Some(before) = entries.get_mut(1)
        && before.ended_time.is_none()
    {
        before.ended_time = Some(now);
        before.ended_reason = Some(Ended::Superseded);
    }
    shorten(&mut entries);
    entries
}

/// Cuts to 16: when full, older recoveries of one promotion (equal promotedTime) go first, then the oldest.
pub fn shorten(entries: &mut Vec<HistoryEntry>) {
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
