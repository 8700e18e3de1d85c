//! The bodies of statements: what today's records say and what the ledger says besides; and those that only the ledger
//! has: a further Cluster, a removal, a state that a person accepted.

use crate::ledger::past::Pinned;
use crate::ledger::record::{
    ApprovalsPredicate, Deployment, NamedOrder, NamedPreparation, PromotionPredicate, RecordRef,
};
use crate::model::id::{ClusterName, Digest, EnvironmentName, Namespace};
use crate::model::serving::{ApprovalStatus, HistoryEntry, RequestedBy};
use crate::model::time::Time;
use crate::model::verdict::EvidenceRef;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Predicate type of placements.
pub const PLACEMENT: &str = "https://kokumi.dev/attestations/placement/v1";
/// Predicate type of removals.
pub const REMOVAL: &str = "https://kokumi.dev/attestations/removal/v1";
/// Predicate type of accepted states.
pub const ACCEPTED: &str = "https://kokumi.dev/attestations/accepted/v1";

/// The published JSON Schemas of predicates that only the ledger has: file name, predicate type, text.
pub const SCHEMAS: &[(&str, &str, &str)] = &[
    ("accepted-v1.json", ACCEPTED, include_str!("schemas/accepted-v1.json")),
    ("placement-v1.json", PLACEMENT, include_str!("schemas/placement-v1.json")),
    ("removal-v1.json", REMOVAL, include_str!("schemas/removal-v1.json")),
];

/// A Cluster and its API server, as something was pinned for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// The Cluster.
    pub name: ClusterName,
    /// Its API server.
    pub server: String,
}

/// Why something was promoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Why {
    /// A person asked for it.
    Asked,
    /// It was the newest, under mode Automatic.
    Automatic,
    /// A person asked for what ran here before.
    Rollback,
    /// What was deployed ended Degraded, and the Order asks to go back by itself.
    AutomaticRollback,
    /// A person moved git back, and this follows it.
    Reverted,
}

/// Something was promoted: a promotion record, and what the ledger says besides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Promoted {
    /// The record.
    #[serde(flatten)]
    pub record: PromotionPredicate,
    /// Why.
    pub reason: Why,
    /// The input source that the Order came from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// When it was built, as its signed provenance says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_on: Option<Time>,
    /// The seal that it was promoted under, where one was needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_record: Option<Digest>,
}

/// A deployment was seen healthy, ended Degraded or recovered: a deployment record, and what the ledger says besides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observed {
    /// The record.
    #[serde(flatten)]
    pub record: Deployment,
    /// Until when it was seen healthy, where that is all that is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_until: Option<Time>,
}

/// Votes were sealed: a seal, and what the ledger says besides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VotesSealed {
    /// The seal.
    #[serde(flatten)]
    pub record: ApprovalsPredicate,
    /// The Environment for which the votes were counted.
    pub environment: EnvironmentName,
    /// The target namespace for which the votes were counted.
    pub target_namespace: Namespace,
    /// What vouches for the votes, by the Approval's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub vouchers: BTreeMap<String, Voucher>,
}

/// What vouches for a vote.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Voucher {
    /// The voter's own signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// The groups that the vote names: they count where an API server vouches for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
}

/// What is deployed was pinned on further Clusters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Placed {
    /// The Order.
    pub order: NamedOrder,
    /// Where.
    pub environment: EnvironmentName,
    /// What.
    pub preparation: NamedPreparation,
    /// The promotion that it belongs to.
    pub promotion_record: RecordRef,
    /// When.
    pub placed_time: Time,
    /// The Clusters that are new.
    pub clusters: Vec<Place>,
    /// The wave that they are of, where there are waves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wave: Option<u32>,
    /// What was read for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EvidenceRef>,
}

/// The Order is gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Removal {
    /// The Order.
    pub order: NamedOrder,
    /// When.
    pub removed_time: Time,
    /// Why.
    pub reason: String,
}

/// A state that is taken as it is: by a person, or once from the records of before the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    /// The Order.
    pub order: NamedOrder,
    /// Who accepted it.
    pub accepted_by: RequestedBy,
    /// Why.
    pub reason: String,
    /// When.
    pub accepted_time: Time,
    /// What is pinned.
    pub deployed: Pinned,
    /// What signed records of before the ledger prove; absent where a person accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Carried>,
    /// What of the state nothing proves, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unproven: Vec<String>,
}

/// What signed records of before the ledger prove.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Carried {
    /// Promotions that their records prove, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryEntry>,
    /// Votes and their seal, where a signed seal proves them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalStatus>,
}
