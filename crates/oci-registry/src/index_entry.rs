//! Updates a list of referrers: a fallback index, or a layout's `index.json`. Pure: bytes in, bytes out.
//!
//! Entries of other writers are kept, including unknown members.

use crate::id::Digest;
use crate::index::{Listing, OCI_INDEX, OCI_MANIFEST, parse_index};
use serde_json::{Map, Value, json};

/// Result of adding a manifest to a list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Entered {
    /// The list names it already.
    Already,
    /// The new bytes of the list, which name it.
    Changed(Vec<u8>),
}

/// Why a list is not changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotEntered {
    /// It is something else, or broken; says what it is.
    NotAnIndex(String),
}

/// The descriptor of a manifest in lists: artifactType (the config's type if the manifest has none)
/// and annotations copied (distribution-spec, "Pushing Manifests with Subject").
pub(crate) fn build_descriptor(manifest: &[u8], digest: &Digest) -> Value {
    let body: Value = serde_json::from_slice(manifest).unwrap_or_default();
    let text = |value: &Value| value.as_str().filter(|t| !t.is_empty()).map(str::to_owned);
    let mut entry = Map::new();
    entry.insert("mediaType".into(), json!(text(&body["mediaType"]).as_deref().unwrap_or(OCI_MANIFEST)));
    entry.insert("digest".into(), json!(digest));
    entry.insert("size".into(), json!(manifest.len()));
    if let Some(annotations) = body["annotations"].as_object().filter(|a| !a.is_empty()) {
        entry.insert("annotations".into(), Value::Object(annotations.clone()));
    }
    if let Some(kind) = text(&body["artifactType"]).or_else(|| text(&body["config"]["mediaType"])) {
        entry.insert("artifactType".into(), json!(kind));
    }
    Value::Object(entry)
}

/// Adds a descriptor to a list; `None`: there is no list yet.
///
/// # Errors
/// The existing content is not an OCI index; it is not changed.
pub(crate) fn enter_descriptor(list: Option<&[u8]>, entry: &Value) -> Result<Entered, NotEntered> {
    let Some(bytes) = list else {
        let fresh = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [entry]});
        return Ok(Entered::Changed(fresh.to_string().into_bytes()));
    };
    match parse_index(bytes) {
        Listing::Index(_) => {}
        Listing::Other(what) | Listing::Broken(what) => return Err(NotEntered::NotAnIndex(what)),
    }
    let Ok(Value::Object(mut index)) = serde_json::from_slice::<Value>(bytes) else {
        return Err(NotEntered::NotAnIndex("not a JSON object".into()));
    };
    let mut entries = match index.get("manifests") {
        Some(Value::Array(entries)) => entries.clone(),
        _ => Vec::new(),
    };
    if entries.iter().any(|e| e["digest"] == entry["digest"]) {
        return Ok(Entered::Already);
    }
    entries.push(entry.clone());
    index.insert("manifests".into(), Value::Array(entries));
    // Other writers refuse to extend an index that does not say what it is.
    index.insert("mediaType".into(), json!(OCI_INDEX));
    index.entry("schemaVersion").or_insert(json!(2));
    Ok(Entered::Changed(Value::Object(index).to_string().into_bytes()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn changed(list: Option<&str>, entry: &Value) -> Value {
        match enter_descriptor(list.map(str::as_bytes), entry).unwrap() {
            Entered::Changed(bytes) => serde_json::from_slice(&bytes).unwrap(),
            Entered::Already => panic!("already"),
        }
    }

    #[test]
    fn what_others_wrote_stays() {
        let entry = json!({"digest": Digest::hash_bytes(b"new"), "size": 3});
        let old = r#"{"custom":{"b":1,"a":[2]},"manifests":[{"digest":"sha512:ab","size":1,"x":null}],"schemaVersion":2,"annotations":{"k":"v"}}"#;
        let new = changed(Some(old), &entry);
        assert_eq!(new["custom"].to_string(), r#"{"b":1,"a":[2]}"#);
        assert_eq!(new["manifests"][0], json!({"digest": "sha512:ab", "size": 1, "x": null}));
        assert_eq!(new["manifests"][1], entry);
        assert_eq!((&new["mediaType"], &new["annotations"]["k"]), (&json!(OCI_INDEX), &json!("v")));
        assert_eq!(enter_descriptor(Some(new.to_string().as_bytes()), &entry), Ok(Entered::Already));
        assert_eq!(
            changed(Some(r#"{"schemaVersion":2,"manifests":null}"#), &entry)["manifests"],
            json!([entry])
        );
        assert_eq!(changed(None, &entry)["schemaVersion"], 2);
    }

    #[test]
    fn what_is_no_index_is_left_alone() {
        let entry = json!({"digest": Digest::hash_bytes(b"new"), "size": 3});
        for list in [
            "",
            "{}",
            "<html>",
            r#"{"schemaVersion":2,"config":{},"layers":[]}"#,
            r#"{"mediaType":"application/vnd.docker.distribution.manifest.list.v2+json","manifests":[]}"#,
        ] {
            assert!(
                matches!(enter_descriptor(Some(list.as_bytes()), &entry), Err(NotEntered::NotAnIndex(_))),
                "{list}"
            );
        }
    }

    #[test]
    fn an_entry_copies_type_and_annotations() {
        let manifest = br#"{"mediaType":"application/vnd.oci.image.manifest.v1+json","artifactType":"application/x","config":{"mediaType":"c"},"annotations":{"a":"b"}}"#;
        let entry = build_descriptor(manifest, &Digest::hash_bytes(manifest));
        assert_eq!(
            (&entry["artifactType"], &entry["annotations"]["a"]),
            (&json!("application/x"), &json!("b"))
        );
        assert_eq!(entry["size"], manifest.len());
        let bare = build_descriptor(br#"{"config":{"mediaType":"c"}}"#, &Digest::hash_bytes(b""));
        assert_eq!((&bare["artifactType"], bare.get("annotations")), (&json!("c"), None));
        assert_eq!(bare["mediaType"], OCI_MANIFEST);
    }
}
