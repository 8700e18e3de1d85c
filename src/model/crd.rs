//! What an API server must know of our kinds: their CustomResourceDefinitions, made from the types of [`crate::model`].
//!
//! The types give names, requirements, words and descriptions; `rules` adds bounds, defaults and the rules
//! between members, `structural` writes it as apiextensions demands, `columns` says what `kubectl get` shows.
//! Knows nothing of how objects are read or what is decided about them.
//!
//! **Nothing is pruned.** An API server drops the keys that a definition does not name, so that a misspelt
//! gate would be missing without an error. These definitions keep them, and the reader of the object rejects
//! them by name.

mod columns;
mod rules;
mod structural;

use crate::model::approval::Approval;
use crate::model::cluster::Cluster;
use crate::model::environment::Environment;
use crate::model::kind::Kind;
use crate::model::kitchen::Kitchen;
use crate::model::meta::Status;
use crate::model::naming::GROUP;
use crate::model::order::Order;
use crate::model::preparation::Preparation;
use crate::model::serving::Serving;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};

/// The one version that is served and stored.
const VERSION: &str = "v1alpha1";

/// The CustomResourceDefinition of a kind (`apiextensions.k8s.io/v1`).
///
/// ```
/// use expedite::model::{crd, kind::Kind};
/// let definition = crd::build_definition(Kind::Serving);
/// assert_eq!(definition["metadata"]["name"], "servings.delivery.kokumi.dev");
/// let columns = definition["spec"]["versions"][0]["additionalPrinterColumns"].as_array().unwrap();
/// assert_eq!(columns[1]["name"], "Target");
/// ```
#[must_use]
pub fn build_definition(kind: Kind) -> Value {
    let schema = build_schema(kind);
    let has_status = schema.pointer("/properties/status").is_some();
    let mut version = json!({
        "name": VERSION,
        "served": true,
        "storage": true,
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": columns::list_columns(kind),
    });
    if has_status {
        version["subresources"] = json!({"status": {}});
    }
    let mut names = json!({
        "kind": kind.as_str(),
        "listKind": format!("{kind}List"),
        "plural": kind.plural(),
        "singular": kind.as_str().to_lowercase(),
        "categories": ["kokumi"],
    });
    if let Some(short) = find_short_name(kind) {
        names["shortNames"] = json!([short]);
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{GROUP}", kind.plural())},
        "spec": {
            "group": GROUP,
            "scope": if is_namespaced(kind) { "Namespaced" } else { "Cluster" },
            "names": names,
            "versions": [version],
        },
    })
}

/// A Kitchen has a namespace in a cluster, as published; in files it may be absent.
fn is_namespaced(kind: Kind) -> bool {
    kind.is_namespaced() || kind == Kind::Kitchen
}

/// The short name for `kubectl get`. None if another common API uses that name.
fn find_short_name(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Preparation => Some("prep"),
        Kind::Approval => Some("appr"),
        Kind::Serving => Some("srv"),
        Kind::Environment => Some("env"),
        Kind::Order | Kind::Cluster | Kind::Kitchen => None,
    }
}

/// The structural schema of a kind's objects.
#[must_use]
pub fn build_schema(kind: Kind) -> Value {
    let mut schema = match kind {
        Kind::Order => generate_schema::<Order>(),
        Kind::Preparation => generate_schema::<Preparation>(),
        Kind::Approval => generate_schema::<Approval>(),
        Kind::Serving => generate_schema::<Serving>(),
        Kind::Environment => generate_schema::<Environment>(),
        Kind::Cluster => generate_schema::<Cluster>(),
        Kind::Kitchen => generate_schema::<Kitchen>(),
    };
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.insert("apiVersion".into(), json!({"type": "string"}));
        properties.insert("kind".into(), json!({"type": "string"}));
        // An API server knows what metadata is.
        properties.insert("metadata".into(), json!({"type": "object"}));
        if kind == Kind::Kitchen {
            // Its controller writes one, as published; decisions do not look at it.
            properties.insert("status".into(), generate_schema::<Status>());
        }
    }
    schema["description"] = describe_kind(kind).into();
    for (path, more) in rules::list_rules(kind) {
        let Value::Object(more) = more else { continue };
        let Some(node) = find_member(&mut schema, path) else { continue };
        for (word, value) in more {
            // null: the type has a keyword that is not wanted here.
            if value.is_null() {
                node.remove(&word);
            } else {
                node.insert(word, value);
            }
        }
    }
    sort_keys(schema)
}

/// What a kind is, for `kubectl explain`.
fn describe_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Order => "An application: what it is rendered from, where it deploys and how it is promoted.",
        Kind::Preparation => "One rendering of an Order: an OCI artifact, pinned by its digest.",
        Kind::Approval => "One vote on one digest. It cannot be changed: to change a vote, cast a new one.",
        Kind::Serving => "Which Preparation of an Order is promoted, and what is deployed.",
        Kind::Environment => {
            "Where Orders deploy, and what every one of them must pass there in addition to its own gates."
        }
        Kind::Cluster => "An API server that Argo CD deploys to.",
        Kind::Kitchen => "Whom this installation trusts. The one that counts is called default.",
    }
}

fn generate_schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
    let mut schema =
        structural::make_structural(settings.into_generator().into_root_schema_for::<T>().to_value());
    // metadata is not listed as required: every object has it.
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| name != "metadata");
        if required.is_empty() {
            schema.as_object_mut().and_then(|members| members.remove("required"));
        }
    }
    schema
}

/// The schema of the member at `spec.promotion.checks[].name`.
fn find_member<'s>(schema: &'s mut Value, path: &str) -> Option<&'s mut Map<String, Value>> {
    let mut node = schema;
    for step in path.split('.').filter(|step| !step.is_empty()) {
        let name = step.trim_end_matches("[]");
        node = node.get_mut("properties")?.get_mut(name)?;
        for _ in 0..(step.len() - name.len()) / 2 {
            node = node.get_mut("items")?;
        }
    }
    node.as_object_mut()
}

/// Sorts the keys of every object, so that the text is always the same.
fn sort_keys(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.into_iter().map(|(key, value)| (key, sort_keys(value))).collect();
            members.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(members.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sort_keys).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}
