//! Attaches bundles to artifacts as OCI referrers; attaching the same bundle again changes nothing.

use crate::attest::record::choose_artifact_type;
use crate::error::{Failure, FailureKind};
use crate::evidence::artifact;
use crate::evidence::envelope::{self, BUNDLE};
use crate::evidence::gather::PREDICATE_TYPE;
use crate::evidence::keys::{KeyRing, PublicKey};
use crate::evidence::statement;
use crate::model::evidence::Unread;
use crate::model::id::{Artifact, Digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use oci_registry::{Answer, Descriptor, Reference};
use oci_registry::{AttachError, Registries, Writer};
use serde_json::{Map, Value, json};

/// Annotation with the creation time; for a record, the time that the record itself states.
pub const CREATED: &str = "org.opencontainers.image.created";
/// Annotation with the kind of content in a bundle's manifest.
const CONTENT: &str = "dev.sigstore.bundle.content";
/// Media type of an image manifest.
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// The empty config that artifacts have (image-spec, "Guidance for an Empty Descriptor").
const EMPTY: &[u8] = b"{}";
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";
/// Bundles below this size are also embedded in the layer's descriptor, which saves readers a request.
const EMBED: usize = 64 << 10;
/// Largest record that is compared with ours.
const RECORD_CAP: u64 = 8 << 20;

/// The manifest that a referrer points to: media type, digest and size as they are in the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferrerSubject {
    /// Its media type.
    pub media_type: String,
    /// Its digest.
    pub digest: Digest,
    /// Its size, bytes.
    pub size: u64,
}

/// A bundle as it is stored in a registry: one manifest and its blobs, the same bytes each time.
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
    /// Wraps a bundle: a new one, or one that was read from `records/`.
    ///
    /// # Errors
    /// Input: it is not a bundle with a statement, or the statement is not about `subject`.
    pub fn wrap_bundle(bundle: &[u8], subject: &ReferrerSubject) -> Result<Self, Failure> {
        let wrong = |why: String| Failure::new_input("record-bundle", why).with_object("the record's bundle");
        // Only the subject of the statement is checked here, not whether a trusted key signed it.
        let no_keys = KeyRing::default();
        let payload = envelope::open_bundle(bundle, &no_keys).map_err(wrong)?.payload;
        let parsed = statement::parse(&payload, &subject.digest).map_err(wrong)?;
        parsed.about.clone().map_err(wrong)?;
        let predicate = parsed.parse_object().map_err(wrong)?;
        let mut annotations =
            vec![(CONTENT, "dsse-envelope".to_owned()), (PREDICATE_TYPE, parsed.predicate_type.clone())];
        if let Some(time) = statement::find_time(&predicate) {
            annotations.push((CREATED, time.to_string()));
        }
        let artifact_type = choose_artifact_type(&parsed.predicate_type);
        let mut layer = json!({
            "mediaType": BUNDLE,
            "digest": Digest::hash_bytes(bundle).to_string(),
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
            "config": {"mediaType": EMPTY_TYPE, "digest": Digest::hash_bytes(EMPTY).to_string(), "size": EMPTY.len()},
            "layers": [layer],
            "subject": {
                "mediaType": subject.media_type, "digest": subject.digest.to_string(), "size": subject.size,
            },
            "annotations": named,
        })
        .to_string()
        .into_bytes();
        Ok(Self {
            digest: Digest::hash_bytes(&manifest),
            manifest,
            artifact_type,
            annotations,
            blobs: vec![EMPTY.to_vec(), bundle.to_vec()],
        })
    }
}

/// Result of attaching a record. In both cases the artifact has the record afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attached {
    /// It was attached now; the digest of its manifest.
    New(Digest),
    /// An equal one was attached before: the same bytes, or the same statement signed by the same key.
    /// The digest of its manifest.
    Already(Digest),
}

impl Attached {
    /// The manifest that holds the record.
    #[must_use]
    pub fn digest(self) -> Digest {
        match self {
            Self::New(digest) | Self::Already(digest) => digest,
        }
    }
}

/// Attaches a bundle to `artifact`, unless an equal one is attached. `key` is the job's own key: a signer with
/// random signatures (a KMS) makes different bytes for the same statement, and these must not be attached
/// twice.
///
/// # Errors
/// Unread: the artifact is gone, or the registry refused the record or does not list it. Input: the bundle is
/// not about the artifact.
pub async fn attach_record(
    writer: &Writer,
    registries: &Registries,
    artifact: &Artifact,
    bundle: &[u8],
    key: &PublicKey,
) -> Result<Attached, Failure> {
    let failed = |code: &'static str, why: String| {
        Failure::new(FailureKind::Unread, code, why)
            .with_object(format!("record for {artifact}"))
            .with_hint("it is kept in the repository; the next run tries again")
    };
    let unread = |u: &Unread| failed("record-not-attached", format!("{}: {}", u.request, u.why));
    let reference = Reference::Digest(artifact.digest);
    let subject = match registries.fetch_manifest(&artifact.repository, &reference).await {
        Answer::Found(manifest) => ReferrerSubject {
            media_type: manifest.media_type,
            digest: manifest.digest,
            size: manifest.bytes.len() as u64,
        },
        Answer::Absent => {
            return Err(failed("artifact-gone", "the artifact no longer exists in the registry".into()));
        }
        Answer::Unread(why) => return Err(unread(&why.into())),
    };
    let attachment = Attachment::wrap_bundle(bundle, &subject)?;
    if let Some(digest) = find_equal(registries, artifact, bundle, &attachment, key).await {
        return Ok(Attached::Already(digest));
    }
    let blobs: Vec<_> =
        attachment.blobs.iter().map(|b| (Digest::hash_bytes(b), Bytes::copy_from_slice(b))).collect();
    let written = writer
        .attach_record(
            &artifact.repository,
            &artifact.digest,
            &attachment.manifest,
            &attachment.digest,
            &blobs,
        )
        .await;
    match written {
        Ok(oci_registry::AttachOutcome::New) => Ok(Attached::New(attachment.digest)),
        Ok(oci_registry::AttachOutcome::Already) => Ok(Attached::Already(attachment.digest)),
        Err(AttachError::SubjectGone(_)) => {
            Err(failed("artifact-gone", "the artifact no longer exists in the registry".into()))
        }
        Err(AttachError::Failed(why)) => Err(unread(&why.into())),
        Err(why @ AttachError::ReadOnly(_)) => Err(Failure::new_input("registry-read-only", why.to_string())
            .with_object(format!("record for {artifact}"))
            .with_hint("remove readOnly from the registry's settings to allow attaching")),
        Err(
            why
            @ (AttachError::NotListed(_) | AttachError::NotAnIndex { .. } | AttachError::Contended { .. }),
        ) => Err(failed("record-not-listed", why.to_string())),
        Err(why @ AttachError::Inconsistent(_)) => {
            Err(Failure::new(FailureKind::Internal, "record-manifest", why.to_string()))
        }
    }
}

/// Finds an attached record that is equal to this one. Annotations select which candidates are read. A candidate
/// that cannot be read counts as different; the worst result is a second copy.
async fn find_equal(
    registries: &Registries,
    artifact: &Artifact,
    bundle: &[u8],
    ours: &Attachment,
    key: &PublicKey,
) -> Option<Digest> {
    let listed = registries.fetch_referrers(&artifact.repository, &artifact.digest).await;
    let mut likely: Vec<&Descriptor> = listed.entries.iter().map(|(_, d)| d).collect();
    if likely.iter().any(|d| d.digest == ours.digest) {
        // A registry's cleanup may delete manifests without a tag and keep the index that lists them.
        let held = registries.holds_manifest(&artifact.repository, &ours.digest).await;
        return matches!(held, Answer::Found(())).then_some(ours.digest);
    }
    let ours_says = |name: &str| ours.annotations.iter().find(|(n, _)| *n == name).map(|(_, v)| v);
    likely.retain(|d| {
        let may = |name: &str| d.annotations.get(name).is_none_or(|v| Some(v) == ours_says(name));
        may(PREDICATE_TYPE) && may(CREATED)
    });
    likely.sort_by_key(|d| d.digest);
    let payload = envelope::read_signed_payload(bundle, key)?;
    for descriptor in likely {
        let reference = Reference::Digest(descriptor.digest);
        let Answer::Found(manifest) = registries.fetch_manifest(&artifact.repository, &reference).await
        else {
            continue;
        };
        let Some(layer) = artifact::find_only_bundle(&manifest) else { continue };
        let read = registries.fetch_blob(&artifact.repository, &layer, RECORD_CAP).await;
        if let Answer::Found(bytes) = read
            && envelope::read_signed_payload(&bytes, key).is_some_and(|p| p == payload)
        {
            return Some(descriptor.digest);
        }
    }
    None
}
