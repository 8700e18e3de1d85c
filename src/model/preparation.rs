//! Preparation: one rendering of an Order, an OCI artifact pinned by digest.

use crate::model::id::{Artifact, Digest, Namespace, OrderName, OrderRef, PreparationName};
use crate::model::meta::{Meta, Status};
use crate::model::order::ApprovalPolicy;
use crate::model::renderer;
use crate::model::time::Time;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// A Preparation as read.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Preparation {
    /// Name and namespace.
    pub metadata: Meta,
    /// What it is.
    pub spec: PreparationSpec,
    /// What a controller saw; absent in files without one.
    pub status: Option<Status>,
}

/// `Preparation.spec`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreparationSpec {
    /// The Order it belongs to, in its own namespace.
    pub order_name: OrderName,
    /// The artifact.
    pub artifact: ArtifactSpec,
    /// What it was rendered from.
    pub source: Option<SourceSpec>,
    /// The artifact of the Preparation before it.
    pub parent_digest: Option<Digest>,
    /// Foreign text.
    pub commit_message: Option<String>,
    /// Where the base artifact's sources were.
    pub git_source: Option<GitSource>,
    /// The policy in force when it was made.
    pub approval_policy: Option<ApprovalPolicy>,
    /// Where its objects go; its own namespace when absent.
    pub target_namespace: Option<Namespace>,
    /// The renderer's: SHA-256 of the Order's configuration.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub config_hash: Option<IgnoredAny>,
    /// The renderer's: which one it was.
    #[serde(default)]
    #[schemars(with = "Option<renderer::Renderer>")]
    pub renderer: Option<IgnoredAny>,
}

/// `Preparation.spec.artifact`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactSpec {
    /// `oci://<registry>/<path>@sha256:…`; parsed in `resolve`, where a mismatch is that Order's error.
    pub oci_ref: String,
    /// Must equal the digest in `ociRef`.
    pub digest: Digest,
    /// What the renderer claims; the registry is always asked, too.
    #[serde(default)]
    pub signed: bool,
}

/// `Preparation.spec.source`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceSpec {
    /// `oci://…`.
    pub oci: Option<String>,
    /// The digest of the base artifact: two stages of one change share it.
    pub base_digest: Option<Digest>,
}

/// `Preparation.spec.gitSource`.
#[derive(Debug, Clone, Deserialize, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GitSource {
    /// Repository URL.
    pub repo: Option<String>,
    /// Commit.
    pub commit_hash: Option<String>,
    /// Tag.
    pub tag: Option<String>,
}

impl GitSource {
    /// A repository's URL without the user and password that one of `http(s)` or `git+http(s)` may carry:
    /// there they are a secret, and the result is committed. In other forms, like `git@host:path`, the user
    /// is part of the name.
    #[must_use]
    pub fn strip_user(url: &str) -> String {
        let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
        let lower = scheme.to_ascii_lowercase();
        if !matches!(lower.strip_prefix("git+").unwrap_or(&lower), "http" | "https") {
            return url.to_owned();
        }
        let host = &rest[..rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len())];
        let user = host.rfind('@').map_or(0, |at| at + 1);
        format!("{scheme}://{}", &rest[user..])
    }
}

/// A Preparation that is to be written: an artifact, and what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// The Order and namespace that it belongs to.
    pub order: OrderRef,
    pub name: PreparationName,
    /// When the artifact was built, in whole seconds.
    pub created: Option<Time>,
    pub artifact: Artifact,
    /// What it was rendered from.
    pub base: Option<Base>,
    /// The artifact of the Preparation before it.
    pub parent: Option<Digest>,
    /// Foreign text.
    pub commit_message: Option<String>,
    /// Where its sources were; foreign text.
    pub git: GitSource,
    /// SHA-256 over the parameters of the build.
    pub config_hash: Option<Digest>,
    pub renderer: Option<renderer::Renderer>,
}

/// What an artifact was rendered from: two stages of one change share its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// `oci://…` without tag and digest.
    pub oci: Option<String>,
    pub digest: Digest,
}
