//! Application: what Argo CD was told, and what it says of it (argoproj.io/v1alpha1).

use crate::model::meta::Meta;
use crate::model::time::Time;
use serde::Deserialize;

/// An Application as read, as far as we use it.
#[derive(Debug, Clone, Deserialize)]
pub struct Application {
    /// Name, labels, annotations, finalizers.
    pub metadata: Meta,
    /// What it was told.
    #[serde(default)]
    pub spec: ApplicationSpec,
    /// What Argo CD says.
    pub status: Option<ApplicationStatus>,
}

/// `Application.spec`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationSpec {
    /// The one source.
    pub source: Option<ApplicationSource>,
    /// How many there are in `sources`.
    pub sources: Vec<ApplicationSource>,
    /// Where it deploys.
    pub destination: Destination,
    /// AppProject.
    pub project: String,
}

/// A source.
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

/// A destination.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Destination {
    /// API server.
    pub server: Option<String>,
    /// Or a name: never in ours.
    pub name: Option<String>,
    /// Namespace.
    pub namespace: Option<String>,
}

/// `Application.status`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationStatus {
    /// Sync.
    pub sync: SyncStatus,
    /// Health.
    pub health: HealthStatus,
    /// The last operation.
    pub operation_state: Option<OperationState>,
    /// ComparisonError, SyncError, …
    pub conditions: Vec<ApplicationCondition>,
    /// When Argo CD last compared.
    pub reconciled_at: Option<Time>,
}

/// `status.sync`.
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
    /// The source.
    pub source: Option<ApplicationSource>,
    /// The destination.
    pub destination: Destination,
}

/// `status.health`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HealthStatus {
    /// Healthy, Progressing, Degraded, Suspended, Missing, Unknown.
    pub status: String,
    /// When it became so.
    pub last_transition_time: Option<Time>,
    /// For people.
    pub message: Option<String>,
}

/// `status.operationState`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OperationState {
    /// Running, Succeeded, Failed, Error, Terminating.
    pub phase: String,
    /// For people.
    pub message: Option<String>,
    /// Start.
    pub started_at: Option<Time>,
    /// End.
    pub finished_at: Option<Time>,
    /// What was synced.
    pub sync_result: Option<SyncResult>,
}

/// `status.operationState.syncResult`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncResult {
    /// The digest.
    pub revision: Option<String>,
}

/// One of `status.conditions`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationCondition {
    /// ComparisonError, …
    #[serde(rename = "type")]
    pub kind: String,
    /// For people.
    pub message: String,
}
