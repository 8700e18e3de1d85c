//! Application: what Argo CD is to deploy, and what it reports about it (argoproj.io/v1alpha1).

use crate::model::meta::Meta;
use crate::model::time::Time;
use serde::Deserialize;

/// An Application as read, as far as we use it.
#[derive(Debug, Clone, Deserialize)]
pub struct Application {
    /// Name, labels, annotations, finalizers.
    pub metadata: Meta,
    /// What Argo CD is to deploy.
    #[serde(default)]
    pub spec: ApplicationSpec,
    /// What Argo CD reports.
    pub status: Option<ApplicationStatus>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationSpec {
    pub source: Option<ApplicationSource>,
    /// How many there are in `sources`.
    pub sources: Vec<ApplicationSource>,
    pub destination: Destination,
    pub project: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationSource {
    /// `oci://…`.
    #[serde(rename = "repoURL")]
    pub repo_url: String,
    /// A digest, for ours.
    pub target_revision: Option<String>,
    /// `.`, for ours.
    pub path: Option<String>,
    /// Helm only.
    pub chart: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Destination {
    pub server: Option<String>,
    /// Or a name: never in ours.
    pub name: Option<String>,
    pub namespace: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationStatus {
    pub sync: SyncStatus,
    pub health: HealthStatus,
    pub operation_state: Option<OperationState>,
    /// ComparisonError, SyncError, …
    pub conditions: Vec<ApplicationCondition>,
    /// When Argo CD last compared.
    pub reconciled_at: Option<Time>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncStatus {
    /// Synced, OutOfSync, Unknown.
    pub status: String,
    /// What was compared.
    pub revision: Option<String>,
    /// What it was compared to.
    pub compared_to: Option<ComparedTo>,
}

/// `status.sync.comparedTo`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ComparedTo {
    pub source: Option<ApplicationSource>,
    pub destination: Destination,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HealthStatus {
    /// Healthy, Progressing, Degraded, Suspended, Missing, Unknown.
    pub status: String,
    /// When it became so.
    pub last_transition_time: Option<Time>,
    pub message: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OperationState {
    /// Running, Succeeded, Failed, Error, Terminating.
    pub phase: String,
    pub message: Option<String>,
    pub started_at: Option<Time>,
    pub finished_at: Option<Time>,
    /// What was synced.
    pub sync_result: Option<SyncResult>,
}

/// `status.operationState.syncResult`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncResult {
    pub revision: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationCondition {
    /// ComparisonError, …
    #[serde(rename = "type")]
    pub kind: String,
    pub message: String,
}
