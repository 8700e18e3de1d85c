//! Approval: one vote on one digest.

use crate::model::id::{Digest, PreparationName};
use crate::model::meta::Meta;
use crate::model::time::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An Approval as read.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Approval {
    /// Name and namespace.
    pub metadata: Meta,
    /// The vote.
    pub spec: ApprovalSpec,
}

/// `Approval.spec`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalSpec {
    /// What is voted on.
    pub preparation_ref: PreparationRef,
    /// Who votes.
    pub approver: Approver,
    /// Approve or Reject.
    pub decision: Ballot,
    /// Foreign text.
    pub comment: Option<String>,
    /// When, by the voter's word.
    pub submitted_time: Time,
    /// An armored SSH signature over what the vote says.
    pub signature: Option<String>,
}

/// The exact thing that was voted on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreparationRef {
    /// Its name, in the Approval's namespace.
    pub name: PreparationName,
    /// Its uid, where the voter knew one.
    pub uid: Option<String>,
    /// Its artifact.
    pub artifact_digest: Digest,
}

/// Who votes: issuer and subject are the identity, the rest is for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approver {
    /// The identity provider.
    pub issuer: String,
    /// The identity there.
    pub subject: String,
    /// For people.
    #[serde(default)]
    pub username: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// What the vote claims; counts only under `approvalTrust: Cluster`.
    #[serde(default)]
    pub groups: Vec<String>,
}

/// Approve or Reject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Ballot {
    /// In favour.
    Approve,
    /// Against: one eligible one is a veto.
    Reject,
}
