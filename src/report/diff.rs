//! What changes inside two artifacts, resource by resource. Values of Secrets are never shown, only whether
//! they change.

use crate::model::resource::Resource;
use crate::report::escape;
use crate::yaml::emit;
use serde_json::Value;
use similar::TextDiff;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Lines around a change.
const CONTEXT: usize = 3;
/// The annotation in which kubectl keeps the whole object, Secrets' values included.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A unified diff per resource, the names sorted, and a line that counts them.
#[must_use]
pub fn text(old: &[Resource], new: &[Resource]) -> String {
    let by_name = |all: &'_ [Resource]| -> BTreeMap<String, Vec<Value>> {
        let mut map: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for resource in all {
            map.entry(resource.name.clone()).or_default().push(resource.object.clone());
        }
        map
    };
    let (old, new) = (by_name(old), by_name(new));
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let (mut added, mut removed, mut changed) = (0, 0, 0);
    let mut out = String::new();
    for name in names {
        let none = Vec::new();
        let (before, after) = (old.get(name).unwrap_or(&none), new.get(name).unwrap_or(&none));
        if before == after {
            continue;
        }
        let what = match (before.is_empty(), after.is_empty()) {
            (true, _) => {
                added += 1;
                "added"
            }
            (_, true) => {
                removed += 1;
                "removed"
            }
            (false, false) => {
                changed += 1;
                "changed"
            }
        };
        let _ = writeln!(out, "{} {what}", escape::line(name));
        let (before, after) = (masked(before, after, "before"), masked(after, before, "after"));
        let (before, after) = (documents(&before), documents(&after));
        let diff = TextDiff::from_lines(&before, &after);
        for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
            for line in hunk.to_string().lines() {
                let _ = writeln!(out, "  {}", escape::line(line));
            }
        }
    }
    let total = added + removed + changed;
    if total == 0 {
        return "No resource changes.\n".to_owned();
    }
    let _ = writeln!(out, "{added} added, {changed} changed, {removed} removed");
    out
}

fn documents(objects: &[Value]) -> String {
    objects.iter().map(emit::document).collect::<Vec<_>>().join("---\n")
}

/// The objects with the values of Secrets hidden, so that two that differ still read differently from `other`.
fn masked(objects: &[Value], other: &[Value], word: &str) -> Vec<Value> {
    objects
        .iter()
        .enumerate()
        .map(|(index, object)| match object.get("kind").and_then(Value::as_str) {
            Some("Secret") => hidden(object, other.get(index), word),
            Some(_) | None => object.clone(),
        })
        .collect()
}

fn hidden(secret: &Value, other: Option<&Value>, word: &str) -> Value {
    let mut copy = secret.clone();
    let places = ["/data", "/stringData", "/metadata/annotations"];
    for place in places {
        let Some(Value::Object(entries)) = copy.pointer_mut(place) else { continue };
        for (name, value) in entries.iter_mut() {
            if place == "/metadata/annotations" && name != LAST_APPLIED {
                continue;
            }
            let same = other.and_then(|o| o.pointer(place)).and_then(|e| e.get(name)) == Some(&*value);
            *value = Value::String(if same { "***".to_owned() } else { format!("*** ({word})") });
        }
    }
    copy
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use serde_json::json;

    fn resources(objects: &[Value]) -> Vec<Resource> {
        objects.iter().map(|o| Resource::of(o.clone(), "x.yaml")).collect()
    }
    fn deployment(image: &str) -> Value {
        json!({
            "kind": "Deployment", "metadata": {"name": "podinfo", "namespace": "shop"},
            "spec": {"replicas": 2, "image": image},
        })
    }

    #[test]
    fn resources_are_compared_by_kind_and_name() {
        let old = resources(&[deployment("a:1"), json!({"kind": "Service", "metadata": {"name": "old"}})]);
        let new = resources(&[json!({"kind": "Service", "metadata": {"name": "new"}}), deployment("a:2")]);
        assert_eq!(
            text(&old, &new),
            "Deployment shop/podinfo changed\n\
             \x20 @@ -4,4 +4,4 @@\n\
             \x20    namespace: shop\n\
             \x20  spec:\n\
             \x20    replicas: 2\n\
             \x20 -  image: a:1\n\
             \x20 +  image: a:2\n\
             Service new added\n\
             \x20 @@ -0,0 +1,3 @@\n\
             \x20 +kind: Service\n\
             \x20 +metadata:\n\
             \x20 +  name: new\n\
             Service old removed\n\
             \x20 @@ -1,3 +0,0 @@\n\
             \x20 -kind: Service\n\
             \x20 -metadata:\n\
             \x20 -  name: old\n\
             1 added, 1 changed, 1 removed\n"
        );
        assert_eq!(text(&old, &old), "No resource changes.\n");
    }

    #[test]
    fn values_of_secrets_are_never_shown() {
        let secret = |password: &str, user: &str| {
            json!({
                "kind": "Secret",
                "metadata": {"name": "db", "annotations": {
                    LAST_APPLIED: format!("{{\"data\":{{\"password\":\"{password}\"}}}}"), "note": "kept",
                }},
                "data": {"password": password, "user": user},
                "stringData": {"token": format!("t-{password}")},
            })
        };
        let said =
            text(&resources(&[secret("aG9yc2U=", "YW5u")]), &resources(&[secret("YmF0dGVyeQ==", "YW5u")]));
        for value in ["aG9yc2U=", "YmF0dGVyeQ==", "YW5u", "t-aG"] {
            assert!(!said.contains(value), "{said}");
        }
        assert!(said.contains("-  password: \"*** (before)\""), "{said}");
        assert!(said.contains("+  password: \"*** (after)\""), "{said}");
        assert!(said.contains("   user: \"***\""), "{said}");
        let only_new = text(&[], &resources(&[secret("aG9yc2U=", "YW5u")]));
        assert!(!only_new.contains("aG9yc2U="), "{only_new}");
    }

    #[test]
    fn text_of_manifests_cannot_act() {
        let evil = json!({"kind": "ConfigMap", "metadata": {"name": "x\u{1b}[2J"}, "data": {"a": "\u{1b}]0;x\u{7}"}});
        let said = text(&[], &resources(&[evil]));
        assert!(!said.contains('\u{1b}'), "{said:?}");
    }
}
