//! Serving: which Preparation of an Order is promoted, and what is deployed.

use crate::model::approval::{Approver, Ballot};
use crate::model::evidence::ScanCounts;
use crate::model::id::{
    ApplicationName, ClusterName, CommitId, Digest, EnvironmentName, Namespace, OciRepository, OrderName,
    PreparationName,
};
use crate::model::meta::{Condition, Meta};
use crate::model::reason::{Ended, Vote};
use crate::model::renderer;
use crate::model::schema;
use crate::model::time::Time;
use crate::model::verdict::{GateName, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A Serving as read from the GitOps repository.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Serving {
    /// Name and namespace: those of the Order.
    pub metadata: Meta,
    /// Intent.
    pub spec: ServingSpec,
    /// State; the product's.
    #[serde(default)]
    pub status: ServingStatus,
    /// `status` exactly as read, so that what an older or newer build wrote is kept
    /// (set by the loader; scalars other than bool and null are strings, plain integers numbers).
    #[serde(skip)]
    pub raw_status: Option<serde_json::Value>,
}

/// `Serving.spec`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServingSpec {
    /// The Order, in the Serving's namespace.
    pub order_name: OrderName,
    /// The Preparation a person asked for (Manual), or what was last promoted (Automatic). Written as
    /// `""` while an Automatic Order has not promoted anything, so that a switch to Manual asks for nothing.
    #[serde(default, deserialize_with = "empty_is_none")]
    #[schemars(with = "Option<schema::PreparationNameOrNone>")]
    pub preparation_name: Option<PreparationName>,
    /// Who requested it, and when: stored here, so that git's history is not needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<Requested>,
    /// The published August 2026 field: read, not used (`Order.spec.promotion.mode` decides).
    #[serde(default)]
    #[schemars(with = "Option<renderer::PreparationPolicy>")]
    pub preparation_policy: Option<serde::de::IgnoredAny>,
}

fn empty_is_none<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<PreparationName>, D::Error> {
    match Option::<String>::deserialize(from)?.as_deref() {
        None | Some("") => Ok(None),
        Some(text) => PreparationName::parse(text).map(Some).map_err(serde::de::Error::custom),
    }
}

/// A person's intent, with the time it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requested {
    /// A git author, which is not proven.
    pub name: String,
    /// When.
    pub time: Time,
    /// `promote`, `rollback` or `withdraw`.
    #[serde(default)]
    pub verb: String,
    /// The Preparation that was requested. If `preparationName` differs, it is not known who requested that.
    /// Absent if an older build wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preparation_name: Option<PreparationName>,
}

impl Requested {
    /// Whether this is the request for `name`, as far as known: older builds did not store the name.
    #[must_use]
    pub fn has_asked_for(&self, name: &PreparationName) -> bool {
        self.preparation_name.as_ref().is_none_or(|asked| asked == name)
    }
}

/// `Serving.status` (`docs/design/promotion.md#serving-status`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ServingStatus {
    /// What approvals are sealed for, or what is deployed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_preparation_name: Option<PreparationName>,
    /// When it became the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_since: Option<Time>,
    /// What the Applications are pinned to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_preparation_name: Option<PreparationName>,
    /// Its digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployed_digest: Option<Digest>,
    /// The rest of what is pinned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployed: Option<Deployed>,
    /// Manual: a promotion that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued: Option<Queued>,
    /// Ready, Approved, Verified, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Votes and seal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalStatus>,
    /// Kept verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<VerifiedStatus>,
    /// One per Cluster.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<ClusterStatus>,
    /// At most 16, newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryEntry>,
    /// Newest scan of what is deployed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployed_vulnerabilities: Option<DeployedVulnerabilities>,
}

/// Most entries that a history keeps.
pub const HISTORY: usize = 16;

impl ServingStatus {
    /// The condition of this type.
    #[must_use]
    pub fn find_condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|c| c.kind == kind)
    }
    /// Which Preparation waits for which gate: what is queued, else the candidate that condition Ready speaks
    /// of, in the words of [`format_wait`].
    #[must_use]
    pub fn find_wait(&self) -> Option<(PreparationName, GateName)> {
        if let Some(queued) = &self.queued {
            return Some((queued.preparation_name.clone(), GateName::parse(&queued.waits_for)?));
        }
        self.find_condition("Ready")?.message.split("; ").find_map(|part| {
            let (name, rest) = part.split_once(" waits for ")?;
            let (gate, _) = rest.split_once(": ")?;
            Some((PreparationName::parse(name).ok()?, GateName::parse(gate)?))
        })
    }
}

/// What condition Ready says of a candidate that waits; [`ServingStatus::find_wait`] reads it.
#[must_use]
pub fn format_wait(candidate: &PreparationName, verdict: &Verdict) -> String {
    format!("{candidate} waits for {}: {}", verdict.gate, verdict.message)
}

/// What the Applications are pinned to, in addition to name and digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deployed {
    /// The Environment that it was promoted in.
    pub environment: EnvironmentName,
    /// As written in `ociRef`.
    pub repository: OciRepository,
    /// The namespace that its objects are deployed to.
    pub target_namespace: Namespace,
    /// The input source the Order came from.
    pub source: String,
}

/// Manual: a promotion that waits, and its gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Queued {
    /// What waits.
    pub preparation_name: PreparationName,
    /// The gate's name.
    #[serde(default)]
    pub waits_for: String,
    /// Its message.
    #[serde(default)]
    pub message: String,
    /// Since when it is queued.
    pub since: Time,
}

/// Votes and seal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApprovalStatus {
    /// For which Preparation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preparation_name: Option<PreparationName>,
    /// At most 64.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub votes: Vec<VoteStatus>,
    /// When it was sealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sealed_time: Option<Time>,
    /// Digest of the attached seal's manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attestation: Option<Digest>,
    /// SHA-256 of the seal's bundle: its name in `records/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<Digest>,
}

/// Most votes kept in a status.
pub const VOTES: usize = 64;

/// One vote, as seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VoteStatus {
    /// The Approval's name.
    pub name: String,
    /// Its uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Who.
    pub approver: Approver,
    /// What.
    pub decision: Ballot,
    /// Foreign text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// The digest voted on.
    pub digest: Digest,
    /// The time that the voter states.
    pub submitted_time: Time,
    /// The time that the API server states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creation_time: Option<Time>,
    /// Its SSH signature, so that a vote counts even if its file was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Whether it counts.
    pub counted: bool,
    /// Why, or why not.
    pub reason: Vote,
}

/// Kept verdict of artifact, signature and provenance: for display and while waiting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerifiedStatus {
    /// The artifact.
    pub digest: Digest,
    /// Hash of keys, roles, identities, roots and allow-lists it was judged by.
    pub keys: Digest,
    /// When it was read.
    pub time: Time,
    /// Names of the keys that proved it, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
}

/// The state of one Cluster. Contains only what decisions use; live health is never committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// The Cluster.
    pub name: ClusterName,
    /// The server it was promoted to; a changed one is held until promoted again.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// Our Application for it.
    pub application: ApplicationName,
    /// `Pinned`, `OptInRequired`, `NotReady`, `Missing`, …
    #[serde(default)]
    pub reason: String,
    /// For a person.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// One promotion that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// What.
    pub preparation_name: PreparationName,
    /// Its artifact.
    pub digest: Digest,
    /// What it was rendered from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_digest: Option<Digest>,
    /// Where; absent in entries of older builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvironmentName>,
    /// When it was decided.
    pub promoted_time: Time,
    /// Who asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<RequestedBy>,
    /// Healthy on every Ready Cluster since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_healthy_time: Option<Time>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_time: Option<Time>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_reason: Option<Ended>,
    /// When what was superseded was last seen healthy, by the run that superseded it; absent in entries of
    /// older builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthy_until: Option<Time>,
    /// SHA-256 of the bundle of the seal that it was promoted under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_record: Option<Digest>,
    /// SHA-256 of the promotion record's bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion_record: Option<Digest>,
    /// SHA-256 of the deployment record's bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_record: Option<Digest>,
}

/// Who requested a promotion; a git author is not proven (`docs/design/gitops-repository.md#nothing-lost`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestedBy {
    /// Name and address, or `automatic`.
    pub name: String,
    /// The commit that holds the intent, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::CommitIdText>")]
    pub commit: Option<CommitId>,
    /// `unsigned`, or the fingerprint of the key that signed that commit.
    #[serde(default = "unsigned")]
    pub signed_by: String,
}

fn unsigned() -> String {
    "unsigned".into()
}

/// Newest scan of what is deployed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeployedVulnerabilities {
    /// Counts by severity.
    #[serde(default)]
    pub critical: u64,
    /// Counts by severity.
    #[serde(default)]
    pub high: u64,
    /// Counts by severity.
    #[serde(default)]
    pub medium: u64,
    /// Counts by severity.
    #[serde(default)]
    pub low: u64,
    /// Counts by severity.
    #[serde(default)]
    pub unknown: u64,
    /// When the scan finished.
    pub scanned_time: Time,
    /// Digest of the scan's manifest.
    pub attestation: Digest,
}

impl DeployedVulnerabilities {
    #[must_use]
    pub fn to_counts(&self) -> ScanCounts {
        ScanCounts {
            critical: self.critical,
            high: self.high,
            medium: self.medium,
            low: self.low,
            unknown: self.unknown,
        }
    }
}
