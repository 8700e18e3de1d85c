//! Attaching bundles to artifacts as OCI referrers, once however often it is asked.

use crate::attest::record::artifact_type;
use crate::error::Failure;
use crate::evidence::envelope::{self, BUNDLE};
use crate::evidence::gather::PREDICATE_TYPE;
use crate::evidence::keys::KeyRing;
use crate::evidence::statement;
use crate::model::id::Digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// Annotation that says when something was made; for a record, by its own word.
pub const CREATED: &str = "org.opencontainers.image.created";
/// Annotation that says what a bundle's manifest holds.
const CONTENT: &str = "dev.sigstore.bundle.content";
/// Media type of an image manifest.
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// The empty config that artifacts have (image-spec, "Guidance for an Empty Descriptor").
const EMPTY: &[u8] = b"{}";
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";
/// Bundles below this size are embedded in the layer's descriptor as well, which spares readers a request.
const EMBED: usize = 64 << 10;

/// The manifest that a referrer points to: media type, digest and size as they are in the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Its media type.
    pub media_type: String,
    /// Its digest.
    pub digest: Digest,
    /// Its size, bytes.
    pub size: u64,
}

/// A bundle as it lies in a registry: one manifest and its blobs, the same bytes each time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The manifest's bytes.
    pub manifest: Vec<u8>,
    /// Its digest.
    pub digest: Digest,
    /// Its artifact type.
    pub artifact_type: &'static str,
    /// Its annotations, which a fallback index repeats.
    pub annotations: Vec<(&'static str, String)>,
    /// The blobs it needs.
    pub blobs: Vec<Vec<u8>>,
}

impl Attachment {
    /// Wraps a bundle, one of ours or one that was read from `records/`.
    ///
    /// # Errors
    /// Input: it is no bundle with a statement, or the statement is about something else than `subject`.
    pub fn of(bundle: &[u8], subject: &Subject) -> Result<Self, Failure> {
        let wrong = |why: String| Failure::input("record-bundle", why).of("the record's bundle");
        // Whether a trusted key signed it does not matter here, only what it is about.
        let no_keys = KeyRing::default();
        let payload = envelope::open_bundle(bundle, &no_keys).map_err(wrong)?.payload;
        let parsed = statement::parse(&payload, &subject.digest).map_err(wrong)?;
        parsed.about.clone().map_err(wrong)?;
        let predicate = parsed.object().map_err(wrong)?;
        let mut annotations =
            vec![(CONTENT, "dsse-envelope".to_owned()), (PREDICATE_TYPE, parsed.predicate_type.clone())];
        if let Some(time) = statement::time_of(&predicate) {
            annotations.push((CREATED, time.to_string()));
        }
        let artifact_type = artifact_type(&parsed.predicate_type);
        let mut layer = json!({
            "mediaType": BUNDLE,
            "digest": Digest::of(bundle).to_string(),
            "size": bundle.len(),
        });
        if bundle.len() < EMBED {
            layer["data"] = Value::String(STANDARD.encode(bundle));
        }
        let named: Map<String, Value> =
            annotations.iter().map(|(k, v)| ((*k).to_owned(), Value::String(v.clone()))).collect();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": artifact_type,
            "config": {"mediaType": EMPTY_TYPE, "digest": Digest::of(EMPTY).to_string(), "size": EMPTY.len()},
            "layers": [layer],
            "subject": {
                "mediaType": subject.media_type, "digest": subject.digest.to_string(), "size": subject.size,
            },
            "annotations": named,
        })
        .to_string()
        .into_bytes();
        Ok(Self {
            digest: Digest::of(&manifest),
            manifest,
            artifact_type,
            annotations,
            blobs: vec![EMPTY.to_vec(), bundle.to_vec()],
        })
    }
}
