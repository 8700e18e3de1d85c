//! Kind `HistoryVerification`: what `verify-history` found.

use super::{API_VERSION, format_document};
use crate::model::audit::{Audit, AuditFinding};
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct HistoryVerification<'a> {
    api_version: &'static str,
    kind: &'static str,
    /// As asked; null: the whole branch.
    range: Option<&'a str>,
    /// No registry was asked.
    offline: bool,
    /// The repository keeps no records, as the user said (`--no-records`).
    no_records: bool,
    commits: usize,
    touched: usize,
    promotions: usize,
    deployments: usize,
    /// Promotions that are only known from history.
    unrecorded: usize,
    findings: Vec<FindingItem<'a>>,
    unread: Vec<FindingItem<'a>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Item")]
struct FindingItem<'a> {
    commit: String,
    namespace: Option<&'a str>,
    name: Option<&'a str>,
    digest: Option<String>,
    /// Stable, for scripts.
    code: &'static str,
    message: &'a str,
}

#[must_use]
pub fn format_audit(audit: &Audit, range: Option<&str>) -> String {
    format_document(&HistoryVerification {
        api_version: API_VERSION,
        kind: "HistoryVerification",
        range,
        offline: audit.offline,
        no_records: audit.no_records,
        commits: audit.commits,
        touched: audit.touched,
        promotions: audit.promotions,
        deployments: audit.deployments,
        unrecorded: audit.unrecorded,
        findings: audit.findings.iter().map(make_item).collect(),
        unread: audit.unread.iter().map(make_item).collect(),
    })
}

fn make_item(finding: &AuditFinding) -> FindingItem<'_> {
    FindingItem {
        commit: finding.commit.to_string(),
        namespace: finding.order.as_ref().map(|o| o.namespace.as_str()),
        name: finding.order.as_ref().map(|o| o.name.as_str()),
        digest: finding.digest.map(|d| d.to_string()),
        code: finding.code,
        message: &finding.what,
    }
}
