//! Which fields of an object are kept: field managers, and fields that no decision uses, are dropped.

use crate::model::kind::Kind;
use crate::model::naming::API_VERSION;
use serde_json::{Map, Value};

/// The annotation in which kubectl keeps a copy of the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// An object of ours: all fields except the field managers, and with its kind, which a list may leave out. A Serving
/// loses its status: runs write it to clusters, and no decision reads it from there.
pub fn keep_object(kind: Kind, item: Value) -> Value {
    let Value::Object(item) = item else {
        // The loader reports what is wrong with it, and needs its kind.
        return add_kind(kind, Map::from_iter([("spec".to_owned(), item)]));
    };
    let mut object = add_kind(kind, item);
    if kind == Kind::Serving {
        object.as_object_mut().map(|object| object.shift_remove("status"));
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("managedFields");
        let emptied = metadata.get_mut("annotations").and_then(Value::as_object_mut).is_some_and(|all| {
            all.shift_remove(LAST_APPLIED);
            all.is_empty()
        });
        if emptied {
            metadata.shift_remove("annotations");
        }
    }
    object
}

fn add_kind(kind: Kind, mut item: Map<String, Value>) -> Value {
    let mut object = Map::new();
    let text = |value: Option<Value>, default: &str| value.unwrap_or_else(|| default.into());
    object.insert("apiVersion".into(), text(item.shift_remove("apiVersion"), API_VERSION));
    object.insert("kind".into(), text(item.shift_remove("kind"), kind.as_str()));
    object.append(&mut item);
    Value::Object(object)
}

/// Fields of an Application that decisions use. Its other content (Helm values, parameters of plugins, the state of
/// every resource) is not needed and may be confidential.
const APPLICATION: &[&str] = &[
    "metadata/name",
    "metadata/namespace",
    "metadata/uid",
    "metadata/generation",
    "metadata/creationTimestamp",
    "metadata/deletionTimestamp",
    "metadata/labels",
    "metadata/annotations/delivery.kokumi.dev~1allowed-order",
    "metadata/finalizers",
    "spec/project",
    "spec/source/repoURL",
    "spec/source/targetRevision",
    "spec/source/path",
    "spec/source/chart",
    "spec/destination",
    "status/sync/status",
    "status/sync/revision",
    "status/sync/comparedTo/source/repoURL",
    "status/sync/comparedTo/source/targetRevision",
    "status/sync/comparedTo/source/path",
    "status/sync/comparedTo/source/chart",
    "status/sync/comparedTo/destination",
    "status/health",
    "status/operationState/phase",
    "status/operationState/message",
    "status/operationState/startedAt",
    "status/operationState/finishedAt",
    "status/operationState/syncResult/revision",
    "status/conditions",
    "status/reconciledAt",
];

/// The fields of an Application that decisions use.
pub fn keep_application(item: &Value) -> Value {
    let mut object = Map::new();
    object.insert("apiVersion".into(), "argoproj.io/v1alpha1".into());
    object.insert("kind".into(), "Application".into());
    for pointer in APPLICATION {
        copy_value(item, pointer, &mut object);
    }
    // Only how many sources there are, and their URLs.
    let sources = item.pointer("/spec/sources").and_then(Value::as_array).filter(|all| !all.is_empty());
    if let (Some(sources), Some(spec)) = (sources, object.get_mut("spec").and_then(Value::as_object_mut)) {
        let urls = sources.iter().map(|source| {
            let mut one = Map::new();
            copy_value(source, "repoURL", &mut one);
            Value::Object(one)
        });
        spec.insert("sources".into(), urls.collect());
    }
    Value::Object(object)
}

/// Copies the value at `pointer`, and the objects above it if they exist. A value of a wrong type on the way is
/// copied unchanged, so that the loader reports it.
fn copy_value(from: &Value, pointer: &str, into: &mut Map<String, Value>) {
    let (first, rest) = pointer.split_once('/').map_or((pointer, None), |(first, rest)| (first, Some(rest)));
    let key = first.replace("~1", "/");
    let Some(value) = from.get(&key) else { return };
    match (rest, value) {
        (Some(rest), Value::Object(_)) => {
            let below = into.entry(key).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(below) = below {
                copy_value(value, rest, below);
            }
        }
        (_, value) => {
            into.insert(key, value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use serde_json::json;

    #[test]
    fn an_application_is_kept_without_what_may_be_secret() {
        let item = json!({
            "metadata": {"name": "a", "managedFields": [1], "annotations": {
                "delivery.kokumi.dev/allowed-order": "shop/a", LAST_APPLIED: "{\"password\": 1}"}},
            "spec": {"project": "p", "source": {"repoURL": "u", "helm": {"values": "password: x"}},
                "sources": [{"repoURL": "v", "helm": {"values": "password: x"}}]},
            "status": {"sync": "wrong", "operationState": {"phase": "Succeeded", "operation": {"x": "password"}},
                "resources": [{"password": 1}]},
        });
        assert_eq!(
            keep_application(&item),
            json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
                "metadata": {"name": "a", "annotations": {"delivery.kokumi.dev/allowed-order": "shop/a"}},
                "spec": {"project": "p", "source": {"repoURL": "u"}, "sources": [{"repoURL": "v"}]},
                "status": {"sync": "wrong", "operationState": {"phase": "Succeeded"}},
            })
        );
    }

    #[test]
    fn an_object_is_kept_without_who_wrote_it() {
        let item = json!({"metadata": {"name": "a", "managedFields": [1], "annotations": {LAST_APPLIED: "x"}},
            "spec": {"n": 1.10}});
        assert_eq!(
            keep_object(Kind::Order, item).to_string(),
            r#"{"apiVersion":"delivery.kokumi.dev/v1alpha1","kind":"Order","metadata":{"name":"a"},"spec":{"n":1.1}}"#
        );
        assert_eq!(keep_object(Kind::Approval, json!("x"))["kind"], "Approval");
        let serving =
            json!({"metadata": {"name": "a"}, "spec": {}, "status": {"deployedDigest": "sha256:00"}});
        assert_eq!(keep_object(Kind::Serving, serving.clone()).get("status"), None);
        assert!(keep_object(Kind::Cluster, serving).get("status").is_some());
    }
}
