//! The reports inside a scan: Trivy, Grype, SARIF, CycloneDX and in-toto's own list, recognised by their structure.
//! Read row by row into [`Finding`]s; nothing else of a report is kept in memory.

use super::{ScanFinding, Severity};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::BTreeMap;

/// The findings of a report; `None` if it has no data: an unknown structure, or one without a list of findings (an
/// empty object, a Trivy report without results, a SARIF run without results, a plain SBOM).
pub(super) fn parse_findings(report: &str) -> Option<Vec<ScanFinding>> {
    if report.trim_start().starts_with('[') {
        return parse_in_toto(report);
    }
    let shape: ReportShape = serde_json::from_str(report).ok()?;
    match shape {
        ReportShape { matches: Some(_), .. } => parse_grype(report),
        ReportShape { runs: Some(_), .. } => parse_sarif(report),
        ReportShape { bom_format: Some(format), .. } if format == "CycloneDX" => parse_cyclonedx(report),
        ReportShape { results: Some(_), .. } => parse_trivy(report),
        ReportShape { .. } => None,
    }
}

/// The members by which a report is recognised.
#[derive(Deserialize)]
struct ReportShape {
    matches: Option<IgnoredAny>,
    runs: Option<IgnoredAny>,
    #[serde(rename = "bomFormat")]
    bom_format: Option<String>,
    #[serde(rename = "Results")]
    results: Option<IgnoredAny>,
}

fn parse_trivy(report: &str) -> Option<Vec<ScanFinding>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Report {
        results: Vec<Target>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Target {
        class: Option<String>,
        vulnerabilities: Option<Vec<Vulnerability>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Vulnerability {
        #[serde(rename = "VulnerabilityID")]
        id: String,
        #[serde(default)]
        pkg_name: String,
        #[serde(default)]
        installed_version: String,
        #[serde(default)]
        fixed_version: String,
        #[serde(default)]
        severity: String,
    }
    let report: Report = serde_json::from_str(report).ok()?;
    // A scan for misconfigurations, secrets or licences did not look for vulnerabilities.
    let other = |t: &Target| {
        t.vulnerabilities.is_none()
            && t.class.as_deref().is_some_and(|c| !matches!(c, "os-pkgs" | "lang-pkgs"))
    };
    if !report.results.is_empty() && report.results.iter().all(other) {
        return None;
    }
    let rows = report.results.into_iter().filter_map(|t| t.vulnerabilities).flatten();
    Some(
        rows.map(|v| ScanFinding {
            id: v.id,
            package: v.pkg_name,
            version: v.installed_version,
            severity: Severity::from_text(&v.severity),
            fixable: Some(!v.fixed_version.is_empty()),
        })
        .collect(),
    )
}

fn parse_grype(report: &str) -> Option<Vec<ScanFinding>> {
    #[derive(Deserialize)]
    struct Report {
        matches: Vec<Match>,
    }
    #[derive(Deserialize)]
    struct Match {
        vulnerability: Vulnerability,
        #[serde(default)]
        artifact: Package,
    }
    #[derive(Deserialize)]
    struct Vulnerability {
        id: String,
        #[serde(default)]
        severity: String,
        fix: Option<Fix>,
    }
    #[derive(Deserialize)]
    struct Fix {
        #[serde(default)]
        versions: Option<Vec<String>>,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Package {
        name: String,
        version: String,
    }
    let report: Report = serde_json::from_str(report).ok()?;
    Some(
        report
            .matches
            .into_iter()
            .map(|m| ScanFinding {
                id: m.vulnerability.id,
                package: m.artifact.name,
                version: m.artifact.version,
                severity: Severity::from_text(&m.vulnerability.severity),
                fixable: m.vulnerability.fix.map(|f| f.versions.is_some_and(|v| !v.is_empty())),
            })
            .collect(),
    )
}

/// A result's `level` does not distinguish critical from high, so the rule's `security-severity` counts.
fn parse_sarif(report: &str) -> Option<Vec<ScanFinding>> {
    #[derive(Deserialize)]
    struct Report {
        runs: Vec<Run>,
    }
    #[derive(Deserialize)]
    struct Run {
        tool: Tool,
        results: Option<Vec<Row>>,
    }
    #[derive(Deserialize)]
    struct Tool {
        driver: Driver,
    }
    #[derive(Deserialize)]
    struct Driver {
        #[serde(default)]
        rules: Vec<Rule>,
    }
    #[derive(Deserialize)]
    struct Rule {
        id: String,
        #[serde(default)]
        properties: BTreeMap<String, Value>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Row {
        rule_id: Option<String>,
        rule_index: Option<usize>,
        #[serde(default)]
        rule: RuleRef,
        kind: Option<String>,
        #[serde(default)]
        suppressions: Vec<Suppression>,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct RuleRef {
        id: Option<String>,
        index: Option<usize>,
    }
    #[derive(Deserialize)]
    struct Suppression {
        status: Option<String>,
    }
    let report: Report = serde_json::from_str(report).ok()?;
    if report.runs.is_empty() {
        return None;
    }
    let mut findings = Vec::new();
    for run in report.runs {
        let rules = &run.tool.driver.rules;
        for row in run.results? {
            let accepted = |s: &Suppression| s.status.as_deref().is_none_or(|s| s == "accepted");
            let fails = row.kind.as_deref().is_none_or(|k| k == "fail");
            if !fails || row.suppressions.iter().any(accepted) {
                continue;
            }
            let id = row.rule_id.or(row.rule.id);
            let rule = row
                .rule_index
                .or(row.rule.index)
                .and_then(|n| rules.get(n))
                .or_else(|| rules.iter().find(|r| Some(&r.id) == id.as_ref()));
            let severity = rule.and_then(|r| r.properties.get("security-severity"));
            findings.push(ScanFinding {
                id: id.or_else(|| rule.map(|r| r.id.clone()))?,
                package: String::new(),
                version: String::new(),
                severity: severity.map_or(Severity::Unknown, rate_score),
                fixable: None,
            });
        }
    }
    Some(findings)
}

fn parse_cyclonedx(report: &str) -> Option<Vec<ScanFinding>> {
    #[derive(Deserialize)]
    struct Bom {
        vulnerabilities: Vec<Vulnerability>,
    }
    #[derive(Deserialize)]
    struct Vulnerability {
        id: String,
        #[serde(default)]
        ratings: Vec<Rating>,
        #[serde(default)]
        affects: Vec<Affected>,
    }
    #[derive(Deserialize)]
    struct Rating {
        severity: Option<String>,
        score: Option<f64>,
    }
    #[derive(Deserialize)]
    struct Affected {
        #[serde(rename = "ref")]
        component: String,
    }
    let bom: Bom = serde_json::from_str(report).ok()?;
    let mut findings = Vec::new();
    for v in bom.vulnerabilities {
        let words = v.ratings.iter().filter_map(|r| r.severity.as_deref()).map(Severity::from_text).max();
        let scores = v.ratings.iter().filter_map(|r| r.score).map(Severity::from_score).max();
        let severity = match words {
            Some(Severity::Unknown) | None => scores.unwrap_or(Severity::Unknown),
            Some(word) => word,
        };
        let mut packages: Vec<String> = v.affects.into_iter().map(|a| a.component).collect();
        if packages.is_empty() {
            packages.push(String::new());
        }
        findings.extend(packages.into_iter().map(|package| ScanFinding {
            id: v.id.clone(),
            package,
            version: String::new(),
            severity,
            fixable: None,
        }));
    }
    Some(findings)
}

/// v0.2 entries are `{id, severity[]}`; the text of v0.1 nests them under `vulnerability`, its example does
/// not, and `severity` occurs as one object: all are read.
fn parse_in_toto(report: &str) -> Option<Vec<ScanFinding>> {
    let rows: Vec<Value> = serde_json::from_str(report).ok()?;
    let mut findings = Vec::new();
    for row in rows {
        let row = row.get("vulnerability").filter(|v| v.is_object()).unwrap_or(&row);
        let severities = match row.get("severity") {
            Some(Value::Array(list)) => list.as_slice(),
            Some(one @ Value::Object(_)) => std::slice::from_ref(one),
            Some(_) | None => &[],
        };
        findings.push(ScanFinding {
            id: row.get("id")?.as_str()?.to_owned(),
            package: String::new(),
            version: String::new(),
            severity: severities
                .iter()
                .filter_map(|s| s.get("score"))
                .map(rate_score)
                .max()
                .unwrap_or(Severity::Unknown),
            fixable: None,
        });
    }
    Some(findings)
}

/// A score as a number, or as text.
fn rate_score(score: &Value) -> Severity {
    match score {
        Value::String(text) => Severity::from_text(text),
        Value::Number(number) => number.as_f64().map_or(Severity::Unknown, Severity::from_score),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => Severity::Unknown,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::super::count_findings;
    use super::*;
    use crate::model::evidence::ScanCounts;

    fn counts(report: &str) -> Option<ScanCounts> {
        parse_findings(report).map(|f| count_findings(f.iter()))
    }

    #[test]
    fn only_zero_findings_are_zero() {
        for zero in [
            r#"{"Results":[]}"#,
            r#"{"SchemaVersion":2,"Results":[{"Target":"a","Vulnerabilities":null},{"Target":"b"}]}"#,
            r#"{"matches":[],"ignoredMatches":[{"vulnerability":{"id":"CVE-1","severity":"High"}}]}"#,
            r#"{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"x"}},"results":[]}]}"#,
            r#"{"bomFormat":"CycloneDX","vulnerabilities":[]}"#,
            "[]",
        ] {
            assert_eq!(counts(zero), Some(ScanCounts::default()), "{zero}");
        }
        for nothing in [
            "{}",
            "null",
            "\"none\"",
            "7",
            r#"{"SchemaVersion":2,"ArtifactName":"x"}"#,
            r#"{"Results":null}"#,
            r#"{"Results":{}}"#,
            r#"{"matches":null}"#,
            r#"{"Results":[{"Class":"config"},{"Class":"secret"}]}"#,
            r#"{"matches":[{"vulnerability":{}}]}"#,
            r#"{"runs":[]}"#,
            r#"{"runs":[{"tool":{"driver":{}}}]}"#,
            r#"{"bomFormat":"CycloneDX","components":[]}"#,
            r#"[{"severity":[]}]"#,
        ] {
            assert_eq!(counts(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn rows_are_counted_once_per_id_package_and_version() {
        let trivy = r#"{"Results":[
            {"Vulnerabilities":[
                {"VulnerabilityID":"CVE-1","PkgName":"ssl","InstalledVersion":"1","Severity":"CRITICAL","FixedVersion":"2"},
                {"VulnerabilityID":"CVE-1","PkgName":"crypto","InstalledVersion":"1","Severity":"CRITICAL"},
                {"VulnerabilityID":"CVE-2","PkgName":"ssl","InstalledVersion":"1","Severity":"UNKNOWN"}]},
            {"Vulnerabilities":[
                {"VulnerabilityID":"CVE-1","PkgName":"ssl","InstalledVersion":"1","Severity":"critical","FixedVersion":"2"},
                {"VulnerabilityID":"CVE-3","PkgName":"zlib","InstalledVersion":"1"}]}]}"#;
        assert_eq!(counts(trivy), Some(ScanCounts { critical: 2, unknown: 2, ..ScanCounts::default() }));
        let grype = r#"{"matches":[
            {"vulnerability":{"id":"GHSA-1","severity":"Negligible","fix":{"versions":["2"],"state":"fixed"}},"artifact":{"name":"a","version":"1"}},
            {"vulnerability":{"id":"GHSA-1","severity":"Medium","fix":{"versions":[]}},"artifact":{"name":"a","version":"1"}}]}"#;
        assert_eq!(counts(grype), Some(ScanCounts { medium: 1, ..ScanCounts::default() }));
        let fixable: Vec<_> = parse_findings(grype).unwrap().into_iter().map(|f| f.fixable).collect();
        assert_eq!(fixable, [Some(true), Some(false)]);
    }

    #[test]
    fn sarif_is_rated_by_its_rules() {
        let sarif = r#"{"runs":[{"tool":{"driver":{"rules":[
              {"id":"CVE-1","properties":{"security-severity":"9.8"}},
              {"id":"CVE-2","properties":{"security-severity":"5.0"}},
              {"id":"CVE-3","properties":{"security-severity":"0.0"}},
              {"id":"LINT"}]}},
            "results":[
              {"ruleId":"CVE-1","ruleIndex":0,"level":"error"},
              {"ruleId":"CVE-1","level":"error"},
              {"rule":{"index":1}},
              {"ruleId":"CVE-3","level":"error"},
              {"ruleId":"LINT","level":"error"},
              {"ruleId":"CVE-9","kind":"pass"},
              {"ruleId":"CVE-8","suppressions":[{"kind":"external"}]}]}]}"#;
        assert_eq!(
            counts(sarif),
            Some(ScanCounts { critical: 1, medium: 1, unknown: 2, ..ScanCounts::default() })
        );
    }

    #[test]
    fn cyclonedx_and_in_toto() {
        let bom = r#"{"bomFormat":"CycloneDX","vulnerabilities":[
            {"id":"CVE-1","ratings":[{"severity":"low","score":9.9},{"severity":"high"}],"affects":[{"ref":"a"},{"ref":"b"}]},
            {"id":"CVE-2","ratings":[{"severity":"unknown"},{"score":7.5}]},
            {"id":"CVE-3"}]}"#;
        assert_eq!(counts(bom), Some(ScanCounts { high: 3, unknown: 1, ..ScanCounts::default() }));
        let list = r#"[{"id":"CVE-1","severity":[{"method":"nvd","score":"medium"},{"method":"cvss","score":"9.1"}]},
            {"vulnerability":{"id":"CVE-2","severity":{"method":"x","score":5.2}}},
            {"id":"CVE-1"}]"#;
        assert_eq!(counts(list), Some(ScanCounts { critical: 1, medium: 1, ..ScanCounts::default() }));
    }
}
