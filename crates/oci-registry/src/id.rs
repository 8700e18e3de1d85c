//! Digests, repositories, and pinned artifacts, which are both together.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Why a text is not a valid digest or reference. The message is for users and quotes the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(pub String);

/// Longest text quoted in a message; the rest is cut with `…`.
const QUOTED: usize = 80;

fn quote_text(text: &str) -> String {
    let cut: String = text.chars().take(QUOTED).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("{:?}", format!("{cut}{more}"))
}

/// SHA-256 of some bytes: `sha256:` and 64 lower-case hex digits, 71 characters
/// (OCI image-spec, "Digests"). Upper case is refused, as the specification obliges.
///
/// ```
/// use oci_registry::Digest;
/// let empty = Digest::hash_bytes(b"{}");
/// assert_eq!(empty.to_string(), "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
/// assert_eq!(Digest::parse(&empty.to_string()).unwrap(), empty);
/// assert!(Digest::parse("sha256:44136FA355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a").is_err());
/// assert!(Digest::parse("sha512:00").is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    /// Hashes `bytes`.
    #[must_use]
    pub fn hash_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// A digest from its 32 bytes, for hashes made piece by piece.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Parses `sha256:<64 lower-case hex digits>`.
    ///
    /// # Errors
    /// Says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let wrong = |why: &str| ParseError(format!("{} is not a valid digest: {why}", quote_text(text)));
        let digits = text.strip_prefix("sha256:").ok_or_else(|| wrong("it must begin with sha256:"))?;
        Self::from_hex(digits).map_err(|_| wrong("sha256: must be followed by 64 lower-case hex digits"))
    }

    /// Parses the 64 lower-case hex digits without the algorithm, as in in-toto subjects.
    ///
    /// # Errors
    /// Says what is wrong with the text.
    pub fn from_hex(digits: &str) -> Result<Self, ParseError> {
        let lower = digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let mut bytes = [0; 32];
        if digits.len() != 64 || !lower || hex::decode_to_slice(digits, &mut bytes).is_err() {
            return Err(ParseError(format!("{} is not 64 lower-case hex digits", quote_text(digits))));
        }
        Ok(Self(bytes))
    }

    /// The 64 hex digits.
    #[must_use]
    pub fn format_hex(&self) -> String {
        hex::encode(self.0)
    }

    /// The first 12 hex digits, for display.
    #[must_use]
    pub fn format_short(&self) -> String {
        hex::encode(&self.0[..6])
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("sha256:{}", self.format_hex()))
    }
}
impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest(sha256:{})", self.format_hex())
    }
}
impl FromStr for Digest {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}
impl TryFrom<String> for Digest {
    type Error = ParseError;
    fn try_from(text: String) -> Result<Self, ParseError> {
        Self::parse(&text)
    }
}
impl From<Digest> for String {
    fn from(value: Digest) -> String {
        value.to_string()
    }
}

/// An OCI repository as written in an `ociRef`, without scheme, tag or digest:
/// `registry.shop.example:5000/shop/podinfo`. The registry is always spelt out: no Docker Hub defaults.
///
/// ```
/// use oci_registry::OciRepository;
/// let r = OciRepository::parse("registry.shop.example:5000/shop/podinfo").unwrap();
/// assert_eq!((r.registry(), r.path()), ("registry.shop.example:5000", "shop/podinfo"));
/// assert_eq!(r.format_url(), "oci://registry.shop.example:5000/shop/podinfo");
/// assert!(OciRepository::parse("podinfo").is_err());
/// assert!(OciRepository::parse("shop/podinfo").is_err(), "a registry has a dot, a port or is localhost");
/// assert!(OciRepository::parse("r.example/Shop").is_err());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OciRepository {
    text: Arc<str>,
    slash: usize,
}

impl OciRepository {
    /// Parses `<registry>/<path>`; a leading `oci://` is accepted.
    ///
    /// # Errors
    /// Says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let bare = text.strip_prefix("oci://").unwrap_or(text);
        let wrong =
            |why: &str| ParseError(format!("{} is not a valid OCI repository: {why}", quote_text(text)));
        let (host, path) = bare.split_once('/').ok_or_else(|| wrong("it must be <registry>/<repository>"))?;
        if bare.contains('@') || path.contains(':') {
            return Err(wrong("a repository has no tag, digest or user"));
        }
        let named = host == "localhost" || host.contains(['.', ':']);
        if !named {
            return Err(wrong("its first part must be a registry host with a dot or a port"));
        }
        let parsed: oci_client::Reference =
            format!("{bare}:x").parse().map_err(|e: oci_client::ParseError| wrong(&e.to_string()))?;
        if parsed.registry() != host || parsed.repository() != path {
            return Err(wrong("it is not in normal form"));
        }
        if bare.len() > 255 {
            return Err(wrong("it is longer than 255 characters"));
        }
        Ok(Self { text: bare.into(), slash: host.len() })
    }

    /// `host` or `host:port`, as written.
    #[must_use]
    pub fn registry(&self) -> &str {
        &self.text[..self.slash]
    }

    /// The path in the registry, `shop/podinfo`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.text[self.slash + 1..]
    }

    /// `oci://<registry>/<path>`, the form of Argo CD's `repoURL`.
    #[must_use]
    pub fn format_url(&self) -> String {
        format!("oci://{}", self.text)
    }
}

impl fmt::Display for OciRepository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}
impl fmt::Debug for OciRepository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OciRepository({:?})", &*self.text)
    }
}
impl TryFrom<String> for OciRepository {
    type Error = ParseError;
    fn try_from(text: String) -> Result<Self, ParseError> {
        Self::parse(&text)
    }
}
impl From<OciRepository> for String {
    fn from(value: OciRepository) -> String {
        value.text.to_string()
    }
}

/// One pinned artifact: a repository and the digest of an image manifest in it. This type never contains a tag.
///
/// ```
/// use oci_registry::Artifact;
/// let text = format!("oci://r.example/shop/a@sha256:{}", "0".repeat(64));
/// let a = Artifact::parse(&text).unwrap();
/// assert_eq!(a.format_oci_ref(), text);
/// assert!(Artifact::parse("oci://r.example/shop/a:v1").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Artifact {
    /// Where it is.
    pub repository: OciRepository,
    /// What it is.
    pub digest: Digest,
}

impl Artifact {
    /// Parses `oci://<registry>/<path>[:tag]@sha256:<hex>`; a tag before the digest is dropped, because only the digest
    /// counts.
    ///
    /// # Errors
    /// Says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let wrong = |why: &str| {
            ParseError(format!("{} is not a valid pinned OCI reference: {why}", quote_text(text)))
        };
        let bare = text.strip_prefix("oci://").ok_or_else(|| wrong("it must begin with oci://"))?;
        let (place, digest) =
            bare.split_once('@').ok_or_else(|| wrong("it must end in @sha256:<64 hex digits>"))?;
        let digest = Digest::parse(digest)?;
        let slash = place.rfind('/').ok_or_else(|| wrong("it names no repository"))?;
        let place = match place[slash..].find(':') {
            Some(colon) => &place[..slash + colon],
            None => place,
        };
        Ok(Self { repository: OciRepository::parse(place)?, digest })
    }

    /// `oci://<registry>/<path>@<digest>`.
    #[must_use]
    pub fn format_oci_ref(&self) -> String {
        format!("{}@{}", self.repository.format_url(), self.digest)
    }
}

impl fmt::Display for Artifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.repository, self.digest)
    }
}
