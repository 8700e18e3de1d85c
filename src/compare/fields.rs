//! Two objects → the fields in which they differ. Values of Secrets are not included.

use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashMap};

/// One field that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldChange {
    /// `spec.template.spec.containers[podinfo].image`; foreign text.
    pub path: String,
    pub what: FieldWhat,
}

/// How a field differs.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldWhat {
    /// Another value; `None`: not there.
    Value { before: Option<Value>, after: Option<Value> },
    /// A value that is not shown.
    Hidden(Hidden),
    /// The same items of a list in another order, by their keys.
    Order { before: Vec<String>, after: Vec<String> },
}

/// What happened to a value that is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hidden {
    /// The key is new.
    Added,
    /// The key is gone.
    Removed,
    /// The key has another value.
    Changed,
}

/// Replaces a value that is not shown.
pub const MASK: &str = "***";

/// The annotation in which kubectl keeps the whole object, Secrets' values included.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Members of a Secret that hold no secret.
const OPEN: &[&str] = &["apiVersion", "kind", "metadata", "type", "immutable"];

/// Members that identify the items of a list, the most likely first.
const KEYS: &[&str] = &["name", "mountPath", "containerPort", "port", "key", "host", "path", "topologyKey"];

/// The fields in which two objects differ, in the order of their keys.
pub fn compare_fields(before: &Value, after: &Value) -> Vec<FieldChange> {
    let mut out = Vec::new();
    walk_fields("", Some(before), Some(after), &mut out);
    out
}

/// The value, with the contents of every Secret in it hidden.
pub fn mask_secrets(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let secret = is_secret(map);
            let member = |(key, value): (&String, &Value)| {
                let shown = match (secret && !OPEN.contains(&key.as_str()), value) {
                    (true, Value::Object(inner)) => {
                        Value::Object(inner.keys().map(|k| (k.clone(), MASK.into())).collect())
                    }
                    (true, _) => MASK.into(),
                    (false, _) if key == LAST_APPLIED => MASK.into(),
                    (false, value) => mask_secrets(value),
                };
                (key.clone(), shown)
            };
            Value::Object(map.iter().map(member).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(mask_secrets).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn is_secret(map: &Map<String, Value>) -> bool {
    map.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.eq_ignore_ascii_case("secret"))
}

fn walk_fields(path: &str, before: Option<&Value>, after: Option<&Value>, out: &mut Vec<FieldChange>) {
    if before == after {
        return;
    }
    match (before, after) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let secret = is_secret(a) || is_secret(b);
            for key in a.keys().chain(b.keys().filter(|k| !a.contains_key(*k))) {
                let (at, x, y) = (join_path(path, key), a.get(key), b.get(key));
                if secret && !OPEN.contains(&key.as_str()) {
                    compare_hidden_members(&at, x, y, out);
                } else if key == LAST_APPLIED {
                    push_hidden(at, x, y, out);
                } else {
                    walk_fields(&at, x, y, out);
                }
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => match KEYS.iter().find(|k| can_tell_apart(k, a, b))
        {
            Some(key) => compare_items(path, key, a, b, out),
            None => push_change(path, before, after, out),
        },
        (before, after) => push_change(path, before, after, out),
    }
}

fn push_change(path: &str, before: Option<&Value>, after: Option<&Value>, out: &mut Vec<FieldChange>) {
    let what = FieldWhat::Value { before: before.map(mask_secrets), after: after.map(mask_secrets) };
    out.push(FieldChange { path: path.to_owned(), what });
}

/// `data` of a Secret: which of its keys, never a value.
fn compare_hidden_members(
    path: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    out: &mut Vec<FieldChange>,
) {
    let none = Value::Object(Map::new());
    let (Value::Object(a), Value::Object(b)) = (before.unwrap_or(&none), after.unwrap_or(&none)) else {
        return push_hidden(path.to_owned(), before, after, out);
    };
    for key in a.keys().chain(b.keys().filter(|k| !a.contains_key(*k))) {
        push_hidden(join_path(path, key), a.get(key), b.get(key), out);
    }
}

fn push_hidden(path: String, before: Option<&Value>, after: Option<&Value>, out: &mut Vec<FieldChange>) {
    let what = match (before, after) {
        (a, b) if a == b => return,
        (None, _) => Hidden::Added,
        (_, None) => Hidden::Removed,
        (Some(_), Some(_)) => Hidden::Changed,
    };
    out.push(FieldChange { path, what: FieldWhat::Hidden(what) });
}

/// Whether `key` names every item of both lists, and none twice.
fn can_tell_apart(key: &str, a: &[Value], b: &[Value]) -> bool {
    let unique = |items: &[Value]| {
        let mut seen = BTreeSet::new();
        items.iter().all(|item| find_name(item, key).is_some_and(|name| seen.insert(name)))
    };
    !(a.is_empty() && b.is_empty()) && unique(a) && unique(b)
}

fn find_name(item: &Value, key: &str) -> Option<String> {
    match item.get(key)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn compare_items(path: &str, key: &str, a: &[Value], b: &[Value], out: &mut Vec<FieldChange>) {
    let named = |items: &[Value]| -> Vec<String> { items.iter().filter_map(|i| find_name(i, key)).collect() };
    let (old, new) = (named(a), named(b));
    // Lists may be long, and each name is looked for in both.
    let places = |names: &[String]| -> HashMap<String, usize> {
        names.iter().enumerate().map(|(place, name)| (name.clone(), place)).collect()
    };
    let (in_old, in_new) = (places(&old), places(&new));
    for name in old.iter().chain(new.iter().filter(|n| !in_old.contains_key(*n))) {
        let (x, y) = (in_old.get(name).and_then(|i| a.get(*i)), in_new.get(name).and_then(|i| b.get(*i)));
        walk_fields(&format!("{path}[{name}]"), x, y, out);
    }
    let before: Vec<String> = old.iter().filter(|n| in_new.contains_key(*n)).cloned().collect();
    let after: Vec<String> = new.iter().filter(|n| in_old.contains_key(*n)).cloned().collect();
    if before != after {
        out.push(FieldChange { path: path.to_owned(), what: FieldWhat::Order { before, after } });
    }
}

/// A path and one more key; keys with characters that a field name cannot have are quoted.
fn join_path(path: &str, key: &str) -> String {
    let plain = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    match (path.is_empty(), plain) {
        (true, true) => key.to_owned(),
        (false, true) => format!("{path}.{key}"),
        (_, false) => format!("{path}[{key:?}]"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use serde_json::json;

    fn paths(before: &Value, after: &Value) -> Vec<String> {
        compare_fields(before, after).into_iter().map(|f| f.path).collect()
    }

    #[test]
    fn the_order_of_keys_is_no_change_and_that_of_a_list_is() {
        assert_eq!(compare_fields(&json!({"a": 1, "b": 2}), &json!({"b": 2, "a": 1})), []);
        let list =
            |names: &[&str]| json!({"l": names.iter().map(|n| json!({"name": n})).collect::<Vec<_>>()});
        let change = compare_fields(&list(&["a", "b", "c"]), &list(&["b", "a", "d"]));
        assert_eq!(change.len(), 3, "{change:?}");
        assert_eq!(
            change[2].what,
            FieldWhat::Order { before: vec!["a".into(), "b".into()], after: vec!["b".into(), "a".into()] }
        );
        assert_eq!(change[0].path, "l[c]");
        assert_eq!(change[1].path, "l[d]");
    }

    #[test]
    fn items_are_told_apart_by_what_names_them() {
        let mounts = |sub: &str| {
            json!({"volumeMounts": [
                {"name": "v", "mountPath": "/a", "subPath": "x"}, {"name": "v", "mountPath": "/b", "subPath": sub},
            ]})
        };
        assert_eq!(paths(&mounts("y"), &mounts("z")), ["volumeMounts[/b].subPath"]);
        assert_eq!(paths(&json!({"args": ["a", "b"]}), &json!({"args": ["a"]})), ["args"]);
        let rules = |verb: &str| json!({"rules": [{"verbs": [verb]}]});
        assert_eq!(paths(&rules("get"), &rules("*")), ["rules"]);
        assert_eq!(paths(&json!({"l": []}), &json!({"l": [{"name": "a"}]})), ["l[a]"]);
    }

    #[test]
    fn keys_of_other_characters_are_quoted() {
        let label = |v: &str| json!({"metadata": {"labels": {"app.kubernetes.io/name": v}}});
        assert_eq!(paths(&label("a"), &label("b")), ["metadata.labels[\"app.kubernetes.io/name\"]"]);
    }

    #[test]
    fn values_of_secrets_are_not_handed_on() {
        let secret = |data: Value| json!({"kind": "Secret", "metadata": {"name": "db"}, "type": "Opaque", "data": data});
        let found = compare_fields(
            &secret(json!({"a": "QQ==", "b": "Qg=="})),
            &secret(json!({"a": "QUE=", "c": "Qw=="})),
        );
        let found_fields: Vec<(&str, &FieldWhat)> =
            found.iter().map(|f| (f.path.as_str(), &f.what)).collect();
        assert_eq!(
            found_fields,
            [
                ("data.a", &FieldWhat::Hidden(Hidden::Changed)),
                ("data.b", &FieldWhat::Hidden(Hidden::Removed)),
                ("data.c", &FieldWhat::Hidden(Hidden::Added)),
            ]
        );
        assert!(!format!("{found:?}").contains("=="));
        // Under a name of its own, in no mapping, inside another object, in kubectl's copy: hidden all the same.
        let odd = |v: &str| json!({"kind": "secret", "data": v, "hunter": [v]});
        let inside = |v: &str| json!({"kind": "Composition", "spec": {"base": {"kind": "Secret", "stringData": {"a": v}}}});
        let copy = |v: &str| json!({"kind": "ConfigMap", "metadata": {"annotations": {LAST_APPLIED: v}}});
        let list = |v: &str| json!({"items": [{"kind": "Secret", "data": {"a": v}}]});
        for make in [&odd as &dyn Fn(&str) -> Value, &inside, &copy, &list] {
            let found = format!("{:?}", compare_fields(&make("hunter2"), &make("hunter3")));
            assert!(found.len() > 10 && !found.contains("hunter2") && !found.contains("hunter3"), "{found}");
            assert!(!mask_secrets(&make("hunter2")).to_string().contains("hunter2"));
        }
    }
}
