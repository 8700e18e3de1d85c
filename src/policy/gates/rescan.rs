//! Scans of what is deployed are read again every `evidence.rescan`, spread over the fleet by hash, so that
//! no run reads them all. This needs no stored state, because a CI job starts with none.

use super::find_facts;
use crate::model::evidence::{Evidence, Facts, ScanProof};
use crate::model::id::{Artifact, Digest};
use crate::model::serving::DeployedVulnerabilities;
use crate::model::time::{SKEW, Span, Time};

/// The unit of time, in seconds: what is due in an hour is due in every run of that hour.
const HOUR: u64 = 3_600;

/// Whether this artifact's scans are due: in one hour of every span, and in a different hour each time, so
/// that a job that runs once a day at the same hour reaches all of them.
#[must_use]
pub fn is_due(artifact: &Digest, every: Span, now: Time) -> bool {
    let hours = (every.seconds() / HOUR).max(1);
    let hour = u64::try_from(now.unix()).unwrap_or(0) / HOUR;
    let hash = u64::from_str_radix(&artifact.format_hex()[..8], 16).unwrap_or(0);
    hour % hours == (hash + hour / hours) % hours
}

/// The newest signed scan of `artifact` that was read in this run and has data.
#[must_use]
pub fn find_newest_scan(facts: &Facts, artifact: &Artifact, now: Time) -> Option<DeployedVulnerabilities> {
    let Some(Evidence::Proven(scans)) = find_facts(facts, artifact).and_then(|f| f.scans.as_ref()) else {
        return None;
    };
    let has_data = |scan: &&ScanProof| scan.counts.is_some() && scan.finished_on <= now.add_span(SKEW);
    let scan = scans.iter().filter(has_data).max_by_key(|s| (s.finished_on, s.proof.digest))?;
    let counts = scan.counts?;
    Some(DeployedVulnerabilities {
        critical: counts.critical,
        high: counts.high,
        medium: counts.medium,
        low: counts.low,
        unknown: counts.unknown,
        scanned_time: scan.finished_on,
        attestation: scan.proof.digest,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn digests() -> impl Iterator<Item = Digest> {
        (0..200u32).map(|n| Digest::hash_bytes(&n.to_be_bytes()))
    }

    #[test]
    fn every_artifact_is_due_in_one_hour_of_a_day_and_they_are_spread() {
        let midnight = Time::parse("2026-03-01T00:00:00Z").unwrap();
        let day = Span::from_seconds(86_400);
        let mut busiest = 0;
        for hour in 0..24 {
            let now = midnight.add_span(Span::from_seconds(hour * HOUR));
            busiest = busiest.max(digests().filter(|d| is_due(d, day, now)).count());
        }
        assert!(busiest < 30, "{busiest} of 200 in one hour");
        for digest in digests() {
            let hours = |start: Time| {
                (0..24).filter(|h| is_due(&digest, day, start.add_span(Span::from_seconds(h * HOUR)))).count()
            };
            assert_eq!(hours(midnight), 1);
        }
    }

    #[test]
    fn a_job_that_runs_once_a_day_comes_to_all_of_them() {
        let noon = Time::parse("2026-03-01T12:30:00Z").unwrap();
        let day = Span::from_seconds(86_400);
        for digest in digests() {
            let days = (0..24)
                .filter(|d| is_due(&digest, day, noon.add_span(Span::from_seconds(d * 86_400))))
                .count();
            assert_eq!(days, 1, "in 24 days");
        }
    }

    #[test]
    fn a_short_span_is_due_always() {
        let now = Time::parse("2026-03-01T12:30:00Z").unwrap();
        assert!(digests().all(|d| is_due(&d, Span::from_seconds(HOUR), now)));
        assert!(digests().all(|d| is_due(&d, Span::ZERO, now)));
    }
}
