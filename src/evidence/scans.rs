//! Vulnerability scans: the number of findings for each severity in a signed report.
//!
//! No report, an unreadable report, an empty report and "0 findings" are four different cases; only the last one counts
//! as zero. Findings are counted once per (id, package, version): Trivy repeats an id for each target, Grype for each
//! location. Without a known package they are counted by id.

mod reports;

use crate::evidence::envelope::clip_text;
use crate::evidence::statement::ParsedStatement;
use crate::model::evidence::{ScanCounts, ScanProof};
use crate::model::time::Time;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Predicate type of cosign's vulnerability attestations; the report inside is the scanner's own.
pub const COSIGN_VULN: &str = "https://cosign.sigstore.dev/attestation/vuln/v1";
/// Predicate type of in-toto's first vulnerability predicate.
pub const VULNS_V01: &str = "https://in-toto.io/attestation/vulns/v0.1";
/// Predicate type of in-toto's second vulnerability predicate.
pub const VULNS_V02: &str = "https://in-toto.io/attestation/vulns/v0.2";

/// Whether this module reads statements of this type.
#[must_use]
pub fn is_scan(predicate_type: &str) -> bool {
    matches!(predicate_type, COSIGN_VULN | VULNS_V01 | VULNS_V02)
}

/// Content of one signed scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// The scanner's uri without the version of a package URL, so that the report of a newer scanner version replaces an
    /// older one.
    pub scanner: String,
    /// When it finished.
    pub finished_on: Time,
    /// All findings; `None`: no data.
    pub counts: Option<ScanCounts>,
    /// Findings with a known fix; `None`: the report does not say.
    pub fixable: Option<ScanCounts>,
}

#[derive(Deserialize)]
struct ScanPredicate<'a> {
    #[serde(borrow)]
    scanner: Scanner<'a>,
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Scanner<'a> {
    #[serde(default)]
    uri: String,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    scan_finished_on: Time,
}

/// Reads a scan. An unreadable report has no data, which is not an error here: the gate reports it.
///
/// # Errors
/// The predicate names no scanner or does not say when the scan finished.
pub fn parse_scan(statement: &ParsedStatement) -> Result<Scan, String> {
    let predicate: ScanPredicate<'_> = serde_json::from_str(&statement.predicate)
        .map_err(|e| format!("its predicate does not parse: {e}"))?;
    let uri = predicate.scanner.uri.as_str();
    let scanner = match uri.rsplit_once('@') {
        Some((package, _)) if uri.starts_with("pkg:") => package,
        Some(_) | None => uri,
    };
    let findings = predicate.scanner.result.and_then(|r| reports::parse_findings(r.get()));
    Ok(Scan {
        scanner: clip_text(scanner),
        finished_on: predicate.metadata.scan_finished_on,
        counts: findings.as_ref().map(|f| count_findings(f.iter())),
        fixable: findings.as_ref().and_then(|all| {
            let told = all.iter().all(|f| f.fixable.is_some());
            told.then(|| count_findings(all.iter().filter(|f| f.fixable == Some(true))))
        }),
    })
}

/// Severity of a finding. If reports disagree on one finding, the higher one in this order counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// No rating.
    Unknown,
    /// CVSS > 0, and negligible.
    Low,
    /// CVSS ≥ 4.0.
    Medium,
    /// CVSS ≥ 7.0.
    High,
    /// CVSS ≥ 9.0.
    Critical,
}

impl Severity {
    /// Parses a scanner's word or a CVSS score as text; ignores case.
    ///
    /// ```
    /// use expedite::evidence::scans::Severity;
    /// assert_eq!(Severity::from_text("HIGH"), Severity::High);
    /// assert_eq!(Severity::from_text("9.8"), Severity::Critical);
    /// assert_eq!(Severity::from_text("Negligible"), Severity::Low);
    /// assert_eq!(Severity::from_text("soon"), Severity::Unknown);
    /// assert_eq!(Severity::from_text("0.0"), Severity::Unknown);
    /// ```
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        match text.trim().to_ascii_lowercase().as_str() {
            "critical" => Self::Critical,
            "high" => Self::High,
            "medium" | "moderate" => Self::Medium,
            "low" | "negligible" | "none" | "info" => Self::Low,
            number => number.parse().map_or(Self::Unknown, Self::from_score),
        }
    }

    /// Parses a CVSS v3 score. Scanners write zero for "not rated".
    #[must_use]
    pub fn from_score(score: f64) -> Self {
        match score {
            s if !(s > 0.0 && s <= 10.0) => Self::Unknown,
            s if s >= 9.0 => Self::Critical,
            s if s >= 7.0 => Self::High,
            s if s >= 4.0 => Self::Medium,
            _ => Self::Low,
        }
    }
}

/// One row of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanFinding {
    id: String,
    package: String,
    version: String,
    severity: Severity,
    /// `None`: the report does not say.
    fixable: Option<bool>,
}

fn count_findings<'a>(findings: impl Iterator<Item = &'a ScanFinding>) -> ScanCounts {
    let mut worst: BTreeMap<(&str, &str, &str), Severity> = BTreeMap::new();
    for f in findings {
        let seen = worst.entry((&f.id, &f.package, &f.version)).or_insert(f.severity);
        *seen = (*seen).max(f.severity);
    }
    let mut counts = ScanCounts::default();
    for severity in worst.values() {
        let slot = match severity {
            Severity::Critical => &mut counts.critical,
            Severity::High => &mut counts.high,
            Severity::Medium => &mut counts.medium,
            Severity::Low => &mut counts.low,
            Severity::Unknown => &mut counts.unknown,
        };
        *slot += 1;
    }
    counts
}

/// The newest scan of each scanner, sorted by scanner. Among several with the same time one without data, otherwise the
/// one with more findings.
#[must_use]
pub fn select_newest(scans: Vec<ScanProof>) -> Vec<ScanProof> {
    let rank = |s: &ScanProof| {
        let found = s.counts.map(|c| [c.critical, c.high, c.medium, c.low, c.unknown]);
        (s.finished_on, found.is_none(), found, Reverse(s.proof.blob))
    };
    let mut by_scanner: BTreeMap<String, ScanProof> = BTreeMap::new();
    for scan in scans {
        match by_scanner.get(&scan.scanner) {
            Some(known) if rank(known) >= rank(&scan) => {}
            Some(_) | None => {
                by_scanner.insert(scan.scanner.clone(), scan);
            }
        }
    }
    by_scanner.into_values().collect()
}
