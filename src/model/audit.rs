//! What `verify-history` found.

use crate::model::id::{CommitId, Digest, OrderRef};

/// One problem, or something that could not be examined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditFinding {
    /// The commit that brought it.
    pub commit: CommitId,
    pub order: Option<OrderRef>,
    /// Of which artifact or record.
    pub digest: Option<Digest>,
    /// Stable, for scripts.
    pub code: &'static str,
    pub what: String,
}

#[derive(Debug, Clone, Default)]
pub struct Audit {
    /// Commits of the history.
    pub commits: usize,
    /// Those that changed Servings, Applications or records.
    pub touched: usize,
    /// Promotions that were judged again.
    pub promotions: usize,
    /// Deployment records that were judged again.
    pub deployments: usize,
    /// Promotions that are only known from history, in a repository that keeps no records.
    pub unrecorded: usize,
    /// The problems, oldest commit first.
    pub findings: Vec<AuditFinding>,
    /// What could not be examined.
    pub unread: Vec<AuditFinding>,
    /// No registry was asked.
    pub offline: bool,
    /// The repository keeps no records, as the user said (`--no-records`).
    pub no_records: bool,
}
