//! The current content of a cluster's Servings, so that only changes are written to them.
//!
//! No decision uses it. Deployments, votes and observations are kept in git only, and changes that others made to
//! a cluster's Serving are overwritten.

use crate::model::evidence::ScanCounts;
use crate::model::id::{Digest, OrderRef};
use crate::model::serving::ServingStatus;
use crate::model::time::Time;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The members of `Serving.status` that Expedite writes; all other members belong to other writers.
pub const MEMBERS: [&str; 12] = [
    "targetPreparationName",
    "targetSince",
    "observedPreparationName",
    "deployedDigest",
    "deployed",
    "queued",
    "conditions",
    "approval",
    "verified",
    "clusters",
    "history",
    "deployedVulnerabilities",
];

/// The conditions that are written.
const CONDITIONS: [&str; 3] = ["Ready", "Approved", "Verified"];

/// The Servings of one cluster.
#[derive(Debug, Clone, Default)]
pub struct Servings {
    /// Servings by Order.
    pub told: BTreeMap<OrderRef, Told>,
    /// The cluster has no such kind.
    pub undefined: bool,
}

/// The parts of one Serving that are needed to overwrite its status and to find the news that it does not have yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Its uid.
    pub uid: String,
    /// Its resource version.
    pub version: String,
    /// [`hash_status`] of its status.
    pub hash: Digest,
    /// Time of the newest promotion in it.
    pub promoted: Option<Time>,
    /// Its deployed artifact, and the counts of its newest scan.
    pub scan: Option<(Digest, ScanCounts)>,
}

impl Told {
    /// Reads an item of a list; `None` if its name cannot be the name of an Order.
    #[must_use]
    pub fn from_item(item: &Value) -> Option<(OrderRef, Self)> {
        let text = |name: &str| item.pointer(&format!("/metadata/{name}")).and_then(Value::as_str);
        let order = OrderRef::parse(&format!("{}/{}", text("namespace")?, text("name")?)).ok()?;
        let status = item.get("status").unwrap_or(&Value::Null);
        // A status that cannot be parsed counts as empty and is overwritten.
        let read = serde_json::from_value::<ServingStatus>(extract_status(status)).unwrap_or_default();
        let told = Self {
            uid: text("uid").unwrap_or_default().to_owned(),
            version: text("resourceVersion").unwrap_or_default().to_owned(),
            hash: hash_status(status),
            promoted: read.history.iter().map(|entry| entry.promoted_time).max(),
            scan: read.deployed_digest.zip(read.deployed_vulnerabilities.map(|scan| scan.to_counts())),
        };
        Some((order, told))
    }
}

/// Our part of a status: the members and conditions that Expedite writes.
#[must_use]
pub fn extract_status(status: &Value) -> Value {
    let mut kept = Map::new();
    for member in MEMBERS {
        let Some(value) = status.get(member) else { continue };
        let value = match value {
            Value::Array(all) if member == "conditions" => {
                let written = |c: &&Value| c["type"].as_str().is_some_and(|kind| CONDITIONS.contains(&kind));
                Value::Array(all.iter().filter(written).cloned().collect())
            }
            value => value.clone(),
        };
        kept.insert(member.to_owned(), value);
    }
    Value::Object(kept)
}

/// SHA-256 of our part of a status, independent of the order of its members.
#[must_use]
pub fn hash_status(status: &Value) -> Digest {
    let mut status = extract_status(status);
    if let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) {
        // A server that merges them by type may change their order.
        conditions.sort_by(|a, b| a["type"].as_str().cmp(&b["type"].as_str()));
    }
    status.sort_all_objects();
    Digest::hash_bytes(status.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use serde_json::json;

    fn serving(status: &Value) -> Value {
        json!({"metadata": {"name": "podinfo", "namespace": "shop", "uid": "u", "resourceVersion": "7"}, "status": status})
    }

    #[test]
    fn the_order_of_members_and_what_is_not_ours_make_no_difference() {
        let ready = json!({"type": "Ready", "status": "True", "reason": "Deployed", "message": ""});
        let verified = json!({"type": "Verified", "status": "True", "reason": "x", "message": ""});
        let theirs = json!({"type": "Synced", "status": "True"});
        let a = json!({"targetSince": "t", "deployedDigest": "d", "conditions": [ready, verified]});
        let b = json!({"conditions": [theirs, verified, ready], "observedGeneration": 3, "deployedDigest": "d", "targetSince": "t"});
        assert_eq!(hash_status(&a), hash_status(&b));
        assert_ne!(
            hash_status(&a),
            hash_status(&json!({"targetSince": "t", "deployedDigest": "e", "conditions": [ready, verified]}))
        );
        assert_eq!(hash_status(&Value::Null), hash_status(&json!({})));
        // A removed member is also a difference.
        assert_ne!(
            hash_status(&a),
            hash_status(&json!({"deployedDigest": "d", "conditions": [ready, verified]}))
        );
    }

    #[test]
    fn what_a_serving_has_heard_is_read_and_nonsense_has_heard_nothing() {
        let digest = Digest::hash_bytes(b"x");
        let entry = |time: &str| json!({"preparationName": "a", "digest": digest, "promotedTime": time});
        let (order, told) = Told::from_item(&serving(&json!({
            "deployedDigest": digest,
            "history": [entry("2026-01-02T00:00:00Z"), entry("2026-01-01T00:00:00Z")],
            "deployedVulnerabilities": {"critical": 2, "scannedTime": "2026-01-02T00:00:00Z", "attestation": digest},
        })))
        .unwrap();
        assert_eq!(order.to_string(), "shop/podinfo");
        assert_eq!((told.uid.as_str(), told.version.as_str()), ("u", "7"));
        assert_eq!(told.promoted, Some(Time::parse("2026-01-02T00:00:00Z").unwrap()));
        assert_eq!(told.scan, Some((digest, ScanCounts { critical: 2, ..ScanCounts::default() })));
        for nonsense in [json!("text"), json!({"history": 5}), json!({"deployedDigest": "x"}), Value::Null] {
            let (_, told) = Told::from_item(&serving(&nonsense)).unwrap();
            assert_eq!((told.promoted, told.scan), (None, None), "{nonsense}");
        }
        assert_eq!(Told::from_item(&json!({"metadata": {"name": "podinfo"}})), None);
        assert_eq!(Told::from_item(&json!("text")), None);
    }
}
