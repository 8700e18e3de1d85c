//! The registry reader and writer: HTTP(S) and image layout folders behind one face.

use crate::evidence::answer::{Answer, Descriptor, Manifest, Reference, Referrers};
use crate::model::evidence::Unread;
use crate::model::id::{Digest, OciRepository};
use crate::model::reason::Verified;
use bytes::Bytes;

/// All registries of a run: one connection pool, tokens per repository and action, what each registry can
/// do is remembered. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Registries {}

fn not_built() -> Unread {
    Unread {
        reason: Verified::RegistryError,
        request: String::new(),
        status: None,
        why: "not built yet".into(),
        retryable: false,
    }
}

impl Registries {
    /// A manifest by digest (hashed, size-capped) or tag.
    pub async fn manifest(&self, _repository: &OciRepository, _reference: &Reference) -> Answer<Manifest> {
        Answer::Unread(not_built())
    }

    /// Whether the registry holds this manifest (`HEAD`, repeated as `GET` to learn why it fails).
    pub async fn holds_manifest(&self, _repository: &OciRepository, _digest: &Digest) -> Answer<()> {
        Answer::Unread(not_built())
    }

    /// Whether the registry holds this blob.
    pub async fn holds_blob(&self, _repository: &OciRepository, _digest: &Digest) -> Answer<()> {
        Answer::Unread(not_built())
    }

    /// A blob of exactly the descriptor's size and digest, never read past `cap` bytes; embedded `data` is
    /// used (after hashing) without a request.
    pub async fn blob(&self, _repository: &OciRepository, _blob: &Descriptor, _cap: u64) -> Answer<Bytes> {
        Answer::Unread(not_built())
    }

    /// All referrers of `digest`: the API with every page, and the fallback tag where the API is absent (or
    /// also present: both are listed).
    pub async fn referrers(&self, _repository: &OciRepository, _digest: &Digest) -> Referrers {
        Referrers { unread: Some(not_built()), ..Referrers::default() }
    }
}
