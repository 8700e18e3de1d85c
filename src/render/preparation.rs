//! A Preparation as an object: the published fields, in the order of the published examples.

use crate::model::naming::API_VERSION;
use crate::model::preparation::Prepared;
use kube_yaml::emit;
use serde_json::{Map, Value, json};

#[must_use]
pub fn build_object(prepared: &Prepared) -> Value {
    let mut metadata = Map::new();
    metadata.insert("name".into(), json!(prepared.name));
    metadata.insert("namespace".into(), json!(prepared.order.namespace));
    if let Some(created) = prepared.created {
        metadata.insert("creationTimestamp".into(), json!(created));
    }
    let mut spec = Map::new();
    let mut add = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            spec.insert(key.to_owned(), value);
        }
    };
    add("orderName", Some(json!(prepared.order.name)));
    add(
        "source",
        prepared.base.as_ref().map(|base| {
            let mut source = Map::new();
            if let Some(oci) = &base.oci {
                source.insert("oci".into(), json!(oci));
            }
            source.insert("baseDigest".into(), json!(base.digest));
            Value::Object(source)
        }),
    );
    add("renderer", prepared.renderer.as_ref().map(|renderer| json!(renderer)));
    add("configHash", prepared.config_hash.map(|hash| json!(hash)));
    let artifact = &prepared.artifact;
    add(
        "artifact",
        Some(json!({"ociRef": artifact.format_oci_ref(), "digest": artifact.digest, "signed": true})),
    );
    add("parentDigest", prepared.parent.map(|digest| json!(digest)));
    add("commitMessage", prepared.commit_message.as_ref().map(|message| json!(message)));
    let git =
        [("repo", &prepared.git.repo), ("commitHash", &prepared.git.commit_hash), ("tag", &prepared.git.tag)];
    let git: Map<String, Value> =
        git.into_iter().filter_map(|(key, text)| Some((key.to_owned(), json!(text.as_ref()?)))).collect();
    add("gitSource", (!git.is_empty()).then_some(Value::Object(git)));
    json!({"apiVersion": API_VERSION, "kind": "Preparation", "metadata": metadata, "spec": spec})
}

/// The same as a file's text.
#[must_use]
pub fn format_preparation(prepared: &Prepared) -> String {
    emit::format_document(&build_object(prepared))
}
