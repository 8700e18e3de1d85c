//! A JSON Schema as apiextensions demands it: every node has one type, no references, and only the keywords
//! that it knows.
//!
//! A member that may be absent is left out, not null, as everywhere in Kubernetes: an API server refuses a null
//! with its field's name.

use serde_json::{Map, Value, json};

/// The keywords that are kept; others are dropped.
const KEPT: &[&str] = &[
    "description",
    "enum",
    "format",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
    "required",
    "type",
    "x-kubernetes-int-or-string",
];

/// Formats that an API server checks or knows the range of.
const FORMATS: &[&str] = &["date-time", "int64"];

/// The structural schema that says the same.
pub fn make_structural(schema: Value) -> Value {
    let Value::Object(mut from) = schema else { return make_anything() };
    flatten_alternatives(&mut from);
    let mut to = Map::new();
    for (word, value) in &from {
        if KEPT.contains(&word.as_str()) {
            to.insert(word.clone(), value.clone());
        }
    }
    if let Some(Value::Array(types)) = from.get("type") {
        let one = types.iter().find(|t| *t != "null").cloned();
        to.insert("type".into(), one.unwrap_or(Value::Null));
    }
    if let Some(Value::Array(words)) = to.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    match to.get("format").and_then(Value::as_str) {
        // Every unsigned number that occurs here fits.
        Some("uint32" | "uint64") => {
            to.insert("format".into(), "int64".into());
        }
        Some(format) if !FORMATS.contains(&format) => {
            to.remove("format");
        }
        Some(_) | None => {}
    }
    if let Some(Value::Object(properties)) = from.remove("properties") {
        let properties = properties.into_iter().map(|(name, schema)| (name, make_structural(schema)));
        to.insert("properties".into(), Value::Object(properties.collect()));
        to.insert("x-kubernetes-preserve-unknown-fields".into(), true.into());
    } else if let Some(values) = from.remove("additionalProperties").filter(Value::is_object) {
        to.insert("additionalProperties".into(), make_structural(values));
    }
    if let Some(items) = from.remove("items") {
        to.insert("items".into(), make_structural(items));
    }
    if !to.contains_key("type") && !to.contains_key("x-kubernetes-int-or-string") {
        to.insert("x-kubernetes-preserve-unknown-fields".into(), true.into());
    }
    Value::Object(to)
}

/// A value that is not examined.
fn make_anything() -> Value {
    json!({"x-kubernetes-preserve-unknown-fields": true})
}

/// Simplifies alternatives: `null` is dropped, words with a description each are one enum, and a single one
/// left is the schema itself.
fn flatten_alternatives(schema: &mut Map<String, Value>) {
    for combination in ["anyOf", "oneOf"] {
        let Some(Value::Array(mut left)) = schema.remove(combination) else { continue };
        left.retain(|one| one.get("type").is_none_or(|t| t != "null"));
        let words: Vec<Value> = left
            .iter()
            .flat_map(|one| match (one.get("const"), one.get("enum")) {
                (Some(word), _) => vec![word.clone()],
                (None, Some(Value::Array(words))) => words.clone(),
                (None, Some(_) | None) => Vec::new(),
            })
            .collect();
        if words.len() >= left.len() && !words.is_empty() {
            schema.insert("type".into(), "string".into());
            schema.insert("enum".into(), Value::Array(words));
        } else if left.len() == 1
            && let Some(Value::Object(mut one)) = left.pop()
        {
            flatten_alternatives(&mut one);
            for (word, value) in one {
                schema.entry(word).or_insert(value);
            }
        }
    }
    // An enum of one word.
    if let Some(word) = schema.remove("const") {
        schema.insert("enum".into(), json!([word]));
    }
}
