//! Reads a list of referrers: an OCI image index, leniently if this is safe.
//!
//! Its entries are hints from unknown writers: the manifests that they name are read and judged.

use crate::answer::Descriptor;
use crate::id::Digest;
use serde::Deserialize;
use serde_json::Value;

/// Media type of an OCI image index.
pub const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Media type of an OCI image manifest.
pub const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of Docker's schema-2 manifest.
pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
/// Media type of Docker's manifest list.
pub const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";

/// What a body turned out to be that should be an index.
#[derive(Debug)]
pub enum Listing {
    /// An index: each entry, or why it cannot be used.
    Index(Vec<Result<Descriptor, String>>),
    /// Well-formed, but something else: its media type or a word for it.
    Other(String),
    /// Not well-formed.
    Broken(String),
}

/// Reads the body of a referrers response or of a fallback tag. Without `mediaType` it is an index if it looks like
/// one (case 48).
#[must_use]
pub fn parse_index(bytes: &[u8]) -> Listing {
    let Ok(Value::Object(body)) = serde_json::from_slice::<Value>(bytes) else {
        return Listing::Broken("not a JSON object".into());
    };
    match body.get("mediaType") {
        None | Some(Value::Null) => {
            if ["config", "layers", "fsLayers"].iter().any(|member| body.contains_key(*member)) {
                return Listing::Other("an image manifest".into());
            }
        }
        Some(Value::String(kind)) if kind == OCI_INDEX => {}
        Some(Value::String(kind)) => return Listing::Other(format_media_type(kind)),
        Some(_) => return Listing::Broken("its mediaType is not a text".into()),
    }
    if body.get("schemaVersion").is_some_and(|v| v.as_u64() != Some(2)) {
        return Listing::Broken("its schemaVersion is not 2".into());
    }
    match body.get("manifests") {
        Some(Value::Array(entries)) => {
            Listing::Index(entries.iter().enumerate().map(|(i, e)| parse_entry(i, e)).collect())
        }
        // Go writes an empty list in this way.
        Some(Value::Null) => Listing::Index(Vec::new()),
        Some(_) | None => Listing::Broken("it has no list of manifests".into()),
    }
}

/// An untrusted media type, prepared for a message.
fn format_media_type(kind: &str) -> String {
    kind.chars().filter(char::is_ascii_graphic).take(100).collect()
}

fn parse_entry(position: usize, value: &Value) -> Result<Descriptor, String> {
    let wrong = |why: &str| format!("entry {} {why}", position + 1);
    let digest = value.get("digest").and_then(Value::as_str).ok_or_else(|| wrong("has no digest"))?;
    Digest::parse(digest).map_err(|_| wrong("has a digest that is not sha256"))?;
    if value.get("size").and_then(Value::as_u64).is_none_or(|s| i64::try_from(s).is_err()) {
        return Err(wrong("has no usable size"));
    }
    Descriptor::deserialize(value).map_err(|_| wrong("is not a descriptor"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn entries(body: &str) -> Vec<Result<Descriptor, String>> {
        match parse_index(body.as_bytes()) {
            Listing::Index(entries) => entries,
            other => panic!("{other:?}"),
        }
    }

    const D: &str = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

    #[test]
    fn case_48_an_index_without_annotations_and_media_type_is_read() {
        let list = entries(&format!(
            r#"{{"schemaVersion":2,"manifests":[{{"mediaType":"application/vnd.oci.image.manifest.v1+json",
            "size":5,"digest":"{D}","artifactType":"application/vnd.oci.empty.v1+json"}},
            {{"digest":"{D}","size":5,"annotations":null,"artifactType":null,"mediaType":null,"x":1}}]}}"#
        ));
        assert_eq!(list.len(), 2);
        assert!(list.iter().all(Result::is_ok), "{list:?}");
        assert!(entries(r#"{"schemaVersion":2,"manifests":null}"#).is_empty());
    }

    #[test]
    fn case_49_something_else_is_told_from_something_broken() {
        for (body, other) in [
            (r#"{"schemaVersion":2,"config":{},"layers":[]}"#, true),
            (
                r#"{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.list.v2+json","manifests":[]}"#,
                true,
            ),
            (r#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json"}"#, true),
            ("<html></html>", false),
            ("", false),
            (r#"{"schemaVersion":2,"manifests":[{"dig"#, false),
            ("{}", false),
            ("[]", false),
            (r#"{"schemaVersion":1,"manifests":[]}"#, false),
            (r#"{"mediaType":7,"manifests":[]}"#, false),
        ] {
            match parse_index(body.as_bytes()) {
                Listing::Other(_) => assert!(other, "{body}"),
                Listing::Broken(_) => assert!(!other, "{body}"),
                Listing::Index(_) => panic!("{body} is no index"),
            }
        }
    }

    #[test]
    fn case_65_an_entry_of_absurd_size_spoils_itself_only() {
        let list = entries(&format!(
            r#"{{"schemaVersion":2,"manifests":[{{"size":-1,"digest":"{D}"}},{{"size":9223372036854775808,"digest":"{D}"}},
            {{"size":1.5,"digest":"{D}"}},{{"size":1,"digest":"sha512:00"}},{{"size":1}},7,{{"size":1,"digest":"{D}"}}]}}"#
        ));
        let good: Vec<bool> = list.iter().map(Result::is_ok).collect();
        assert_eq!(good, [false, false, false, false, false, false, true]);
        assert_eq!(list[0].as_ref().unwrap_err(), "entry 1 has no usable size");
    }
}
