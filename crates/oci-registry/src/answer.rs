//! Answers of a registry: the types between transport and judging.

use crate::id::Digest;
use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// An answer that distinguishes "does not exist" from "could not be read".
#[derive(Debug, Clone)]
pub enum Answer<T> {
    /// It exists and, if it is addressed by digest, its hash was checked.
    Found(T),
    /// The registry itself said that it does not exist.
    Absent,
    /// It could not be fetched, or the response cannot be trusted.
    Unread(Unread),
}

/// A needed answer that could not be fetched or trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// What kind of fault it is.
    pub reason: UnreadReason,
    /// Which request: `GET /v2/shop/podinfo/referrers/sha256:…`; never a credential.
    pub request: String,
    /// HTTP status, if there was one.
    pub status: Option<u16>,
    /// The cause, as text for users; the same in each run.
    pub why: String,
    /// Whether a later retry may succeed without any change by a person.
    pub retryable: bool,
}

/// Why an answer could not be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnreadReason {
    /// 401 or 403 after authentication.
    Unauthorized,
    /// 429.
    RateLimited,
    /// No connection or no response.
    Unreachable,
    /// Any other fault of the registry, including wrong hashes.
    Error,
}

/// What to ask for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reference {
    /// By digest: the bytes are hashed.
    Digest(Digest),
    /// By tag: the digest is computed from the bytes.
    Tag(String),
}

/// A manifest, exactly as served.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// Of `bytes`.
    pub digest: Digest,
    /// From the manifest's own `mediaType`, else from Content-Type (without parameters).
    pub media_type: String,
    /// Exactly as served.
    pub bytes: Bytes,
}

/// For optional members: `null` means the same as an absent member.
fn read_null_as_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// The members of an OCI descriptor that are used.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// A hint.
    #[serde(default, deserialize_with = "read_null_as_default")]
    pub media_type: String,
    /// What.
    pub digest: Digest,
    /// Bytes; a negative or absurd size does not parse.
    pub size: u64,
    /// A hint.
    #[serde(default)]
    pub artifact_type: Option<String>,
    /// Hints, never proof.
    #[serde(default, deserialize_with = "read_null_as_default")]
    pub annotations: BTreeMap<String, String>,
    /// The blob itself, base64 (image-spec, "Embedded content"); checked against digest and size before use.
    #[serde(default)]
    pub data: Option<String>,
}

/// Where a referrer was listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EvidencePlace {
    /// `GET /v2/<name>/referrers/<digest>`.
    Api,
    /// Tag `sha256-<hex>`.
    FallbackTag,
    /// Tag `sha256-<hex>.sig`.
    SigTag,
    /// Tag `sha256-<hex>.att`.
    AttTag,
    /// An image layout folder's own list.
    Layout,
}

impl EvidencePlace {
    /// Name for reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Api => "referrers API",
            Self::FallbackTag => "fallback tag",
            Self::SigTag => ".sig tag",
            Self::AttTag => ".att tag",
            Self::Layout => "image layout",
        }
    }
}

/// Everything that is listed as a referrer of one digest: API and fallback tag together, each digest once, in a
/// stable order.
#[derive(Debug, Clone, Default)]
pub struct Referrers {
    /// Descriptors with their place.
    pub entries: Vec<(EvidencePlace, Descriptor)>,
    /// A page or place that could not be read: the listed entries may still prove a claim, but while this is set
    /// nothing counts as "missing".
    pub unread: Option<Unread>,
    /// Warnings for users (a fallback tag that is not an index).
    pub warnings: Vec<String>,
    /// A place that was left out because it is almost always empty: the fallback tag if the API lists something, the
    /// API if this registry has shown that it has none. Before anything counts as "missing",
    /// `Registries::referrers_left_out` reads it.
    pub left_out: Option<EvidencePlace>,
}
