//! Kitchen: the keys and people that this installation trusts. A singleton called `default`.

use crate::model::id::Digest;
use crate::model::meta::Meta;
use crate::model::renderer;
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// A Kitchen as read.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Kitchen {
    /// Its name is `default`.
    pub metadata: Meta,
    /// Trust.
    #[serde(default)]
    pub spec: KitchenSpec,
}

/// `Kitchen.spec` (`docs/design/evidence.md#keys-and-roles`, `docs/design/promotion.md#votes`).
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KitchenSpec {
    /// Keys and identities.
    pub trust: Trust,
    /// Optional allow-lists for provenance.
    pub provenance: ProvenanceRules,
    /// Who may vote, and with which keys.
    pub approvers: Vec<KnownApprover>,
    /// How a vote is authenticated; Signed when absent.
    pub approval_trust: ApprovalTrust,
    /// Globs of `registry[/path]`; absent: any.
    pub registries: Vec<String>,
    /// Known-bad digests.
    pub reject: Vec<Rejection>,
    /// The built-in account of the UI; not ours.
    #[schemars(with = "Option<renderer::AdminUser>")]
    pub admin_user: Option<IgnoredAny>,
    /// Where the UI links to; not ours.
    #[serde(rename = "argoCDURL")]
    #[schemars(with = "Option<String>")]
    pub argocd_url: Option<IgnoredAny>,
}

/// `Kitchen.spec.trust`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Trust {
    /// Public keys.
    pub keys: Vec<TrustedKey>,
    /// Keyless identities.
    pub identities: Vec<TrustedIdentity>,
    /// A file with a sigstore trusted root.
    pub trusted_root: Option<String>,
}

/// One trusted public key, with what it may vouch for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrustedKey {
    /// Unique.
    pub name: String,
    /// PEM, one or more PUBLIC KEY blocks. The loader puts a `publicKeyFile`'s content here.
    pub public_key: Option<String>,
    /// A file beside the object's.
    pub public_key_file: Option<String>,
    /// `[signature, provenance]` when absent.
    #[serde(default = "default_roles")]
    pub roles: Vec<Role>,
}

/// One keyless identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrustedIdentity {
    /// Unique.
    pub name: String,
    /// OIDC issuer.
    pub issuer: String,
    /// Exactly this subject.
    pub subject: Option<String>,
    /// A glob over the subject.
    pub subject_pattern: Option<String>,
    /// `[signature, provenance]` when absent.
    #[serde(default = "default_roles")]
    pub roles: Vec<Role>,
    /// An identity may name its own root.
    pub trusted_root: Option<String>,
}

fn default_roles() -> Vec<Role> {
    vec![Role::Signature, Role::Provenance]
}

/// What a key may vouch for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// That an artifact is ours.
    Signature,
    /// What an artifact was made from, and for which Order.
    Provenance,
    /// Seals of votes.
    Approvals,
    /// Attestation checks.
    Checks,
    /// Vulnerability scans.
    Scans,
    /// Promotion and deployment records.
    Records,
}

impl Role {
    pub const ALL: [Self; 6] =
        [Self::Signature, Self::Provenance, Self::Approvals, Self::Checks, Self::Scans, Self::Records];

    /// As it is written in a Kitchen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Signature => "signature",
            Self::Provenance => "provenance",
            Self::Approvals => "approvals",
            Self::Checks => "checks",
            Self::Scans => "scans",
            Self::Records => "records",
        }
    }
}

/// `Kitchen.spec.provenance`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ProvenanceRules {
    /// Exact builder ids; empty: any.
    pub builder_ids: Vec<String>,
    /// Exact build types; empty: any.
    pub build_types: Vec<String>,
}

/// How a vote is authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default, JsonSchema)]
pub enum ApprovalTrust {
    /// By the voter's SSH signature.
    #[default]
    Signed,
    /// By the API server.
    Cluster,
    /// By the repository's merge rules.
    Repository,
}

/// One person who may vote.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KnownApprover {
    /// The identity provider.
    pub issuer: String,
    /// The identity there.
    pub subject: String,
    /// For people.
    #[serde(default)]
    pub username: String,
    /// The groups that count under `approvalTrust: Signed`.
    #[serde(default)]
    pub groups: Vec<String>,
    /// OpenSSH public keys, one a line.
    #[serde(default)]
    pub ssh_keys: Vec<String>,
}

/// A digest that must not be promoted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rejection {
    /// The artifact (or base) digest.
    pub digest: Digest,
    /// For people.
    #[serde(default)]
    pub reason: String,
    /// Globs of Environment names; absent: all.
    #[serde(default)]
    pub environments: Vec<String>,
}
