//! Holds an object against a CustomResourceDefinition, as an API server does with unknown fields refused
//! (`kubectl apply --validate=strict`).

use serde_json::Value;
use std::path::Path;

/// The members of ObjectMeta; a CRD leaves them to the API server.
const METADATA: &[&str] = &[
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// A CustomResourceDefinition.
pub struct Crd(Value);

impl Crd {
    /// Argo CD's Application, from `tests/data`.
    pub fn application() -> Self {
        Self::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/argocd/application-crd.yaml"))
    }

    /// Reads one.
    pub fn read(path: &Path) -> Self {
        Self(serde_yaml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap())
    }

    /// What is wrong with `object`; empty where an API server would take it.
    pub fn errors(&self, object: &Value) -> Vec<String> {
        let spec = &self.0["spec"];
        let mut errors = Vec::new();
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let versions = spec["versions"].as_array().unwrap();
        let group = spec["group"].as_str().unwrap();
        let known = versions.iter().find(|v| version == format!("{group}/{}", v["name"].as_str().unwrap()));
        if object["kind"] != spec["names"]["kind"] {
            errors.push(format!("kind: {} is not {}", object["kind"], spec["names"]["kind"]));
        }
        match known {
            Some(known) => check(&known["schema"]["openAPIV3Schema"], object, "", &mut errors),
            None => errors.push(format!("apiVersion: {version:?} is not served")),
        }
        metadata(object, &mut errors);
        errors
    }
}

fn metadata(object: &Value, errors: &mut Vec<String>) {
    let Some(members) = object["metadata"].as_object() else { return };
    for name in members.keys().filter(|name| !METADATA.contains(&name.as_str())) {
        errors.push(format!(".metadata.{name}: unknown field"));
    }
    for map in ["labels", "annotations"] {
        for (key, value) in members.get(map).and_then(Value::as_object).into_iter().flatten() {
            if !value.is_string() {
                errors.push(format!(".metadata.{map}.{key}: {value} is no string"));
            } else if map == "labels" && value.as_str().unwrap().len() > 63 {
                errors.push(format!(".metadata.labels.{key}: longer than 63 characters"));
            }
        }
    }
    if let Some(finalizers) = members.get("finalizers")
        && !finalizers.as_array().is_some_and(|list| list.iter().all(Value::is_string))
    {
        errors.push(".metadata.finalizers: not a list of strings".into());
    }
}

fn check(schema: &Value, value: &Value, path: &str, errors: &mut Vec<String>) {
    let flag = |name: &str| schema[name].as_bool().unwrap_or(false);
    if value.is_null() {
        if !flag("nullable") {
            errors.push(format!("{path}: null"));
        }
        return;
    }
    if flag("x-kubernetes-int-or-string") {
        if !value.is_string() && !value.is_i64() {
            errors.push(format!("{path}: {value} is neither integer nor string"));
        }
        return;
    }
    let wrong = |errors: &mut Vec<String>| errors.push(format!("{path}: {value} is no {}", schema["type"]));
    match schema["type"].as_str() {
        Some("object") => match value.as_object() {
            Some(members) => object(schema, members, path, errors),
            None => wrong(errors),
        },
        Some("array") => match value.as_array() {
            Some(items) => {
                for (i, item) in items.iter().enumerate() {
                    check(&schema["items"], item, &format!("{path}[{i}]"), errors);
                }
            }
            None => wrong(errors),
        },
        Some("string") => match value.as_str() {
            Some(text) => string(schema, text, path, errors),
            None => wrong(errors),
        },
        Some("boolean") if value.is_boolean() => {}
        Some("integer") if value.is_i64() => {}
        Some("number") if value.is_number() => {}
        Some(_) => wrong(errors),
        None if flag("x-kubernetes-preserve-unknown-fields") => {}
        None => panic!("{path}: a schema without type is not understood: {schema}"),
    }
}

fn object(schema: &Value, members: &serde_json::Map<String, Value>, path: &str, errors: &mut Vec<String>) {
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !members.contains_key(name) {
            errors.push(format!("{path}.{name}: missing"));
        }
    }
    let free = schema["x-kubernetes-preserve-unknown-fields"].as_bool().unwrap_or(false);
    // ObjectMeta is written as a bare object.
    let open = path == ".metadata";
    for (name, value) in members {
        let below = format!("{path}.{name}");
        match (&schema["properties"][name], &schema["additionalProperties"]) {
            (Value::Null, Value::Null) if free || open => {}
            (Value::Null, Value::Null) => errors.push(format!("{below}: unknown field")),
            (Value::Null, rest) => check(rest, value, &below, errors),
            (known, _) => check(known, value, &below, errors),
        }
    }
}

fn string(schema: &Value, text: &str, path: &str, errors: &mut Vec<String>) {
    assert!(
        schema["pattern"].is_null(),
        "{path}: patterns are not understood, and {text:?} has to match one"
    );
    if (text.chars().count() as u64) < schema["minLength"].as_u64().unwrap_or(0) {
        errors.push(format!("{path}: {text:?} is too short"));
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.iter().any(|word| word == text)
    {
        errors.push(format!("{path}: {text:?} is none of {words:?}"));
    }
}
