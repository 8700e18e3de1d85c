//! Cluster: an API server that Argo CD deploys to.

use crate::model::meta::{Meta, Status};
use schemars::JsonSchema;
use serde::Deserialize;

/// The server Argo CD itself runs in.
pub const IN_CLUSTER: &str = "https://kubernetes.default.svc";

/// A Cluster as read.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Cluster {
    /// Name and labels.
    pub metadata: Meta,
    /// Where it is.
    pub spec: ClusterSpec,
    /// Ready, or not.
    pub status: Option<Status>,
}

/// `Cluster.spec`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpec {
    /// The API server's URL, as Argo CD knows it.
    pub server: String,
}
