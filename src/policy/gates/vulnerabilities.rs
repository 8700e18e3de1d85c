//! A vulnerability check: every signed scan that is new enough is within the limits.
//!
//! Of each scanner the newest scan counts (selected when evidence is read). Scans that are too old do not
//! count; if several scanners have a new one, each must be within the limits. A report without data counts as
//! missing, never as zero findings; findings without a rating are shown, never counted as low.

use super::checks::CheckAnswer;
use super::evidence::describe_unread;
use crate::model::evidence::{Evidence, ScanCounts, ScanProof};
use crate::model::order::VulnerabilityCheck;
use crate::model::time::{SKEW, Time};

/// Judges the signed scans of the artifact.
#[must_use]
pub fn judge_scans(
    check: &VulnerabilityCheck,
    known: Option<&Evidence<Vec<ScanProof>>>,
    now: Time,
) -> CheckAnswer {
    let scans = match known {
        None => return CheckAnswer::make_not_read(),
        Some(Evidence::Unread(unread)) => {
            return CheckAnswer::make_unread(format!("{}: {}", unread.reason, describe_unread(unread)));
        }
        Some(Evidence::Missing(looked) | Evidence::Invalid(looked)) => {
            return CheckAnswer::make_lacking(looked.why.clone());
        }
        Some(Evidence::Proven(scans)) => scans,
    };
    let mut young: Vec<(&ScanProof, ScanCounts)> = Vec::new();
    let mut lacks: Vec<String> = Vec::new();
    for scan in scans {
        let (name, made) = (&scan.scanner, scan.finished_on);
        let counts = if check.fixable_only { scan.fixable } else { scan.counts };
        if made > now.add_span(SKEW) {
            lacks.push(format!("the scan by {name} is dated {made}, ahead of this run's clock"));
        } else if made.add_span(check.max_age) < now {
            let until = made.add_span(check.max_age);
            lacks.push(format!("the scan by {name} is of {made}, valid for {} until {until}", check.max_age));
        } else if let Some(counts) = counts {
            young.push((scan, counts));
        } else if check.fixable_only && scan.counts.is_some() {
            lacks.push(format!("the scan by {name} of {made} does not say what is fixable"));
        } else {
            lacks.push(format!("the scan by {name} of {made} has no data"));
        }
    }
    if young.is_empty() {
        lacks.sort();
        let lacks = if lacks.is_empty() { "no scan".to_owned() } else { lacks.join("; ") };
        return CheckAnswer::make_lacking(format!("{lacks}; a newer scan is needed"));
    }
    young.sort_by(|a, b| (&a.0.scanner, a.0.finished_on).cmp(&(&b.0.scanner, b.0.finished_on)));
    let described: Vec<String> = young
        .iter()
        .map(|(scan, counts)| {
            let until = scan.finished_on.add_span(check.max_age);
            format!(
                "{} by {} at {}, valid until {until}",
                format_counts(counts),
                scan.scanner,
                scan.finished_on
            )
        })
        .collect();
    let over: Vec<String> = young
        .iter()
        .flat_map(|(scan, counts)| {
            find_excess(check, counts).into_iter().map(|t| format!("{t} ({})", scan.scanner))
        })
        .collect();
    if !over.is_empty() {
        return CheckAnswer::make_failed(format!("{}: {}", over.join(", "), described.join("; ")));
    }
    CheckAnswer::make_passed(described.join("; "), young.iter().map(|(scan, _)| &scan.proof), "scan")
}

fn find_excess(check: &VulnerabilityCheck, counts: &ScanCounts) -> Vec<String> {
    let limits = [
        ("critical", counts.critical, check.max_critical),
        ("high", counts.high, check.max_high),
        ("medium", counts.medium, check.max_medium),
        ("low", counts.low, check.max_low),
    ];
    let kind = if check.fixable_only { "fixable " } else { "" };
    limits
        .into_iter()
        .filter_map(|(word, found, limit)| limit.map(|limit| (word, found, limit)))
        .filter(|(_, found, limit)| found > limit)
        .map(|(word, found, limit)| format!("{found} {kind}{word}, at most {limit} allowed"))
        .collect()
}

fn format_counts(counts: &ScanCounts) -> String {
    let ScanCounts { critical, high, medium, low, unknown } = counts;
    let unknown = if *unknown == 0 { String::new() } else { format!(", {unknown} without a rating") };
    format!("{critical} critical, {high} high, {medium} medium, {low} low{unknown}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::model::time::Span;
    use crate::model::verdict::{For, GateOutcome};
    use crate::policy::gates::checks::tests::{make_looked, make_proof, make_unread};
    use serde_json::json;

    fn now() -> Time {
        Time::parse("2026-01-10T12:00:00Z").unwrap()
    }
    fn check() -> VulnerabilityCheck {
        VulnerabilityCheck {
            max_critical: Some(0),
            max_high: Some(5),
            max_medium: None,
            max_low: None,
            fixable_only: false,
            max_age: Span::parse("72h").unwrap(),
        }
    }
    fn scan(scanner: &str, made: &str, counts: Option<ScanCounts>) -> ScanProof {
        ScanProof {
            proof: make_proof("https://cosign.sigstore.dev/attestation/vuln/v1", json!({"scanner": scanner})),
            scanner: scanner.into(),
            finished_on: Time::parse(made).unwrap(),
            counts,
            fixable: None,
        }
    }
    fn counts(critical: u64, high: u64) -> Option<ScanCounts> {
        Some(ScanCounts { critical, high, ..ScanCounts::default() })
    }
    fn run(check: &VulnerabilityCheck, scans: &[ScanProof]) -> CheckAnswer {
        judge_scans(check, Some(&Evidence::Proven(scans.to_vec())), now())
    }
    const FRESH: &str = "2026-01-10T00:00:00Z";

    #[test]
    fn limits_are_inclusive_and_absent_ones_are_none() {
        assert_eq!(run(&check(), &[scan("trivy", FRESH, counts(0, 5))]).outcome, GateOutcome::Passed);
        let over = run(&check(), &[scan("trivy", FRESH, counts(1, 6))]);
        assert_eq!(over.outcome, GateOutcome::Failed);
        assert!(
            over.message
                .starts_with("1 critical, at most 0 allowed (trivy), 6 high, at most 5 allowed (trivy)"),
            "{}",
            over.message
        );
        let many = ScanCounts { medium: 900, low: 900, unknown: 7, ..ScanCounts::default() };
        let answer = run(&check(), &[scan("trivy", FRESH, Some(many))]);
        assert_eq!(answer.outcome, GateOutcome::Passed);
        assert!(answer.message.contains("7 without a rating"), "{}", answer.message);
        assert_eq!(answer.evidence[0].kind, "scan");
    }

    #[test]
    fn age_is_required_to_the_second_and_the_future_is_no_scan() {
        let at = |made: &str| run(&check(), &[scan("trivy", made, counts(0, 0))]).outcome;
        assert_eq!(at("2026-01-07T12:00:00Z"), GateOutcome::Passed);
        assert_eq!(at("2026-01-07T11:59:59Z"), GateOutcome::Waiting(For::Evidence));
        assert_eq!(at("2026-01-10T12:05:00Z"), GateOutcome::Passed);
        assert_eq!(at("2026-01-10T12:05:01Z"), GateOutcome::Waiting(For::Evidence));
    }

    #[test]
    fn no_data_is_never_zero() {
        let none = run(&check(), &[scan("trivy", FRESH, None)]);
        assert_eq!(none.outcome, GateOutcome::Waiting(For::Evidence));
        assert!(none.message.contains("has no data"), "{}", none.message);
        let fixable = VulnerabilityCheck { fixable_only: true, ..check() };
        let unknown = run(&fixable, &[scan("trivy", FRESH, counts(0, 0))]);
        assert_eq!(unknown.outcome, GateOutcome::Waiting(For::Evidence));
        assert!(unknown.message.contains("does not say what is fixable"), "{}", unknown.message);
        assert_eq!(run(&check(), &[]).outcome, GateOutcome::Waiting(For::Evidence));
    }

    #[test]
    fn fixable_ones_alone_count_where_that_is_asked() {
        let mut one = scan("trivy", FRESH, counts(3, 0));
        one.fixable = counts(0, 0);
        let fixable = VulnerabilityCheck { fixable_only: true, ..check() };
        assert_eq!(run(&fixable, &[one.clone()]).outcome, GateOutcome::Passed);
        assert_eq!(run(&check(), &[one.clone()]).outcome, GateOutcome::Failed);
        one.fixable = counts(1, 0);
        assert!(run(&fixable, &[one]).message.starts_with("1 fixable critical"));
    }

    #[test]
    fn every_young_scan_must_be_within_the_limits_in_any_order() {
        let good = scan("trivy", "2026-01-10T10:00:00Z", counts(0, 0));
        let bad = scan("grype", FRESH, counts(1, 0));
        let old_bad = scan("grype", "2026-01-01T00:00:00Z", counts(1, 0));
        let empty = scan("grype", FRESH, None);
        for (other, expected) in
            [(bad, GateOutcome::Failed), (old_bad, GateOutcome::Passed), (empty, GateOutcome::Passed)]
        {
            let one = run(&check(), &[good.clone(), other.clone()]);
            assert_eq!(one.outcome, expected);
            assert_eq!(run(&check(), &[other, good.clone()]), one);
        }
    }

    #[test]
    fn missing_invalid_and_unread_are_three_things() {
        let missing = judge_scans(&check(), Some(&Evidence::Missing(make_looked("no scan attached"))), now());
        assert_eq!((missing.outcome, missing.unread), (GateOutcome::Waiting(For::Evidence), false));
        let invalid =
            judge_scans(&check(), Some(&Evidence::Invalid(make_looked("not by a key for scans"))), now());
        assert_eq!(invalid.message, "not by a key for scans");
        let unread = judge_scans(&check(), Some(&Evidence::Unread(make_unread())), now());
        assert_eq!((unread.outcome, unread.unread), (GateOutcome::Waiting(For::Registry), true));
    }
}
