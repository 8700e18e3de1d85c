//! What every object has: metadata and conditions.

use crate::model::id::Namespace;
use crate::model::time::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `metadata` of an object, as far as Expedite reads it. Unknown members are allowed.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    /// The object's name; its rule is checked by the loader, by kind.
    pub name: String,
    /// Absent for cluster-scoped kinds.
    pub namespace: Option<Namespace>,
    /// Set by an API server.
    pub uid: Option<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Finalizers, in their order.
    pub finalizers: Vec<String>,
    /// Set by an API server; grows with each change of `spec`.
    pub generation: Option<i64>,
    /// When the object was created.
    pub creation_timestamp: Option<Time>,
    /// Set while the object is being deleted.
    pub deletion_timestamp: Option<Time>,
}

/// One entry of `status.conditions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// `Ready`, `Approved`, `Verified`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// A CamelCase word.
    #[serde(default)]
    pub reason: String,
    /// For a person.
    #[serde(default)]
    pub message: String,
    /// Moves only when `status` changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// The generation this was judged for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// What a Ready condition says about its object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// `True`, for the object's own generation.
    Ready,
    /// `False`, with reason and message.
    NotReady(String),
    /// `Unknown`, or of an older generation than the object: not yet known.
    NotYetKnown(String),
    /// No Ready condition, but some status.
    NoCondition,
    /// No status at all (files without a controller).
    NoStatus,
}

/// `status` of an Order, Preparation or Cluster, as far as Expedite reads it.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// Conditions in their order.
    pub conditions: Vec<Condition>,
    /// The generation the controller last saw.
    pub observed_generation: Option<i64>,
    /// Orders only.
    pub latest_preparation_name: Option<String>,
}

impl Status {
    /// Judges the Ready condition of an object of `generation`; `status` is `None` where the object has none.
    #[must_use]
    pub fn judge_readiness(status: Option<&Status>, generation: Option<i64>) -> Readiness {
        let Some(status) = status else { return Readiness::NoStatus };
        let Some(ready) = status.conditions.iter().find(|c| c.kind == "Ready") else {
            return Readiness::NoCondition;
        };
        let seen = ready.observed_generation.or(status.observed_generation);
        if let (Some(seen), Some(now)) = (seen, generation)
            && seen < now
        {
            return Readiness::NotYetKnown(format!(
                "its Ready condition is of generation {seen}, the object is at {now}"
            ));
        }
        let said = match (ready.reason.as_str(), ready.message.as_str()) {
            ("", "") => "no reason given".to_owned(),
            (reason, "") => reason.to_owned(),
            ("", message) => message.to_owned(),
            (reason, message) => format!("{reason}: {message}"),
        };
        match ready.status.as_str() {
            "True" => Readiness::Ready,
            "False" => Readiness::NotReady(said),
            _ => Readiness::NotYetKnown(format!("its Ready condition is {} ({said})", ready.status)),
        }
    }
}
