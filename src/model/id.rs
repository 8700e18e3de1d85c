//! Names and digests: each a type of its own, with its rule, its length and an example.
//!
//! Names of different things do not convert into each other:
//!
//! ```compile_fail
//! use expedite::model::id::{ClusterName, EnvironmentName};
//! let cluster: ClusterName = ClusterName::parse("eu-1").unwrap();
//! let environment: EnvironmentName = cluster;
//! ```

pub use git_commits::CommitId;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Why a text is not the name, digest or reference it should be. The message is for a person and
/// quotes the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct IdError(pub String);

/// Longest text quoted in a message; the rest is cut with `…`.
const QUOTED: usize = 80;

fn quote_text(text: &str) -> String {
    let cut: String = text.chars().take(QUOTED).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("{:?}", format!("{cut}{more}"))
}

/// RFC 1123 label rule: lower-case letters, digits and `-`, beginning and ending with a letter or digit.
fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edge = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    !bytes.is_empty()
        && bytes.len() <= 63
        && edge(bytes[0])
        && edge(bytes[bytes.len() - 1])
        && bytes.iter().all(|&b| edge(b) || b == b'-')
}

/// RFC 1123 subdomain rule as Kubernetes applies it: up to 253 characters of labels joined by dots
/// (a single part may be longer than 63, as the API server allows).
fn is_subdomain(text: &str) -> bool {
    let edge = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    !text.is_empty()
        && text.len() <= 253
        && text.split('.').all(|part| {
            let b = part.as_bytes();
            !b.is_empty() && edge(b[0]) && edge(b[b.len() - 1]) && b.iter().all(|&c| edge(c) || c == b'-')
        })
}

macro_rules! text_type {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:expr, $words:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks the rule.
            ///
            /// # Errors
            /// Says the rule and quotes the text.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                let rule: fn(&str) -> bool = $rule;
                if rule(text) {
                    Ok(Self(text.into()))
                } else {
                    Err(IdError(format!("{} is no {}: {}", quote_text(text), $what, $words)))
                }
            }

            /// The text itself.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({:?})", stringify!($name), &*self.0)
            }
        }
        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::parse(text)
            }
        }
        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                Self::parse(&text)
            }
        }
        impl From<$name> for String {
            fn from(value: $name) -> String {
                value.0.to_string()
            }
        }
    };
}

text_type!(
    /// A Kubernetes namespace: an RFC 1123 label of up to 63 characters.
    ///
    /// ```
    /// use expedite::model::id::Namespace;
    /// assert!(Namespace::parse("shop-staging").is_ok());
    /// assert!(Namespace::parse("Shop").is_err());
    /// assert!(Namespace::parse("a.b").is_err());
    /// ```
    Namespace, "namespace", is_label,
    "lower-case letters, digits and '-', at most 63 characters, beginning and ending with a letter or digit"
);
text_type!(
    /// The name of an Order: an RFC 1123 subdomain of up to 253 characters.
    ///
    /// ```
    /// use expedite::model::id::OrderName;
    /// assert!(OrderName::parse("podinfo").is_ok());
    /// assert!(OrderName::parse("no").is_ok());
    /// assert!(OrderName::parse("-podinfo").is_err());
    /// ```
    OrderName, "Order name", is_subdomain,
    "lower-case letters, digits, '-' and '.', at most 253 characters, each part beginning and ending with a letter or digit"
);
text_type!(
    /// The name of a Preparation: an RFC 1123 subdomain of up to 253 characters.
    ///
    /// ```
    /// use expedite::model::id::PreparationName;
    /// assert!(PreparationName::parse("podinfo-d7ce0c46a686").is_ok());
    /// assert!(PreparationName::parse("a..b").is_err());
    /// ```
    PreparationName, "Preparation name", is_subdomain,
    "lower-case letters, digits, '-' and '.', at most 253 characters, each part beginning and ending with a letter or digit"
);
text_type!(
    /// The name of an Environment: an RFC 1123 subdomain of up to 253 characters.
    ///
    /// ```
    /// use expedite::model::id::EnvironmentName;
    /// assert!(EnvironmentName::parse("production").is_ok());
    /// assert!(EnvironmentName::parse("").is_err());
    /// ```
    EnvironmentName, "Environment name", is_subdomain,
    "lower-case letters, digits, '-' and '.', at most 253 characters, each part beginning and ending with a letter or digit"
);
text_type!(
    /// The name of a Cluster: an RFC 1123 subdomain of up to 253 characters.
    ///
    /// ```
    /// use expedite::model::id::ClusterName;
    /// assert!(ClusterName::parse("eu-1").is_ok());
    /// assert!(ClusterName::parse("eu_1").is_err());
    /// ```
    ClusterName, "Cluster name", is_subdomain,
    "lower-case letters, digits, '-' and '.', at most 253 characters, each part beginning and ending with a letter or digit"
);
text_type!(
    /// The name of an Argo CD Application: an RFC 1123 subdomain of up to 253 characters.
    ///
    /// ```
    /// use expedite::model::id::ApplicationName;
    /// assert!(ApplicationName::parse("kokumi-shop-podinfo-0123abcd").is_ok());
    /// ```
    ApplicationName, "Application name", is_subdomain,
    "lower-case letters, digits, '-' and '.', at most 253 characters, each part beginning and ending with a letter or digit"
);
/// SHA-256 of some bytes: `sha256:` and 64 lower-case hex digits, 71 characters
/// (OCI image-spec, "Digests"). Upper case is refused, as the specification obliges.
///
/// ```
/// use expedite::model::id::Digest;
/// let empty = Digest::of(b"{}");
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
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let wrong = |why: &str| IdError(format!("{} is no digest: {why}", quote_text(text)));
        let digits = text.strip_prefix("sha256:").ok_or_else(|| wrong("it must begin with sha256:"))?;
        Self::from_hex(digits).map_err(|_| wrong("sha256: must be followed by 64 lower-case hex digits"))
    }

    /// Parses the 64 lower-case hex digits without the algorithm, as in-toto subjects carry them.
    ///
    /// # Errors
    /// Says what is wrong with the text.
    pub fn from_hex(digits: &str) -> Result<Self, IdError> {
        let lower = digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let mut bytes = [0; 32];
        if digits.len() != 64 || !lower || hex::decode_to_slice(digits, &mut bytes).is_err() {
            return Err(IdError(format!("{} is not 64 lower-case hex digits", quote_text(digits))));
        }
        Ok(Self(bytes))
    }

    /// The 64 hex digits.
    #[must_use]
    pub fn format_hex(&self) -> String {
        hex::encode(self.0)
    }

    /// The first 12 hex digits, for people.
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
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        Self::parse(text)
    }
}
impl TryFrom<String> for Digest {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
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
/// use expedite::model::id::OciRepository;
/// let r = OciRepository::parse("registry.shop.example:5000/shop/podinfo").unwrap();
/// assert_eq!((r.registry(), r.path()), ("registry.shop.example:5000", "shop/podinfo"));
/// assert_eq!(r.url(), "oci://registry.shop.example:5000/shop/podinfo");
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
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let bare = text.strip_prefix("oci://").unwrap_or(text);
        let wrong = |why: &str| IdError(format!("{} is no OCI repository: {why}", quote_text(text)));
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

    /// `oci://<registry>/<path>`, as Argo CD wants it in `repoURL`.
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
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        Self::parse(&text)
    }
}
impl From<OciRepository> for String {
    fn from(value: OciRepository) -> String {
        value.text.to_string()
    }
}

/// One artifact, pinned: a repository and the digest of an image manifest in it. A tag never survives
/// to this type.
///
/// ```
/// use expedite::model::id::Artifact;
/// let text = format!("oci://r.example/shop/a@sha256:{}", "0".repeat(64));
/// let a = Artifact::parse(&text).unwrap();
/// assert_eq!(a.oci_ref(), text);
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
    /// Parses `oci://<registry>/<path>[:tag]@sha256:<hex>`; a tag before the digest is dropped, the
    /// digest is what counts.
    ///
    /// # Errors
    /// Says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let wrong = |why: &str| IdError(format!("{} is no pinned OCI reference: {why}", quote_text(text)));
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

/// An Order in its namespace, written `<namespace>/<name>`. Neither part can hold a slash, so the
/// written form is unique.
///
/// ```
/// use expedite::model::id::OrderRef;
/// let order = OrderRef::parse("shop/podinfo").unwrap();
/// assert_eq!(order.to_string(), "shop/podinfo");
/// assert!(OrderRef::parse("podinfo").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OrderRef {
    /// The Order's namespace.
    pub namespace: Namespace,
    /// The Order's name.
    pub name: OrderName,
}

impl OrderRef {
    /// Parses `<namespace>/<name>`.
    ///
    /// # Errors
    /// Says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let (namespace, name) = text
            .split_once('/')
            .ok_or_else(|| IdError(format!("{} is no Order: write <namespace>/<name>", quote_text(text))))?;
        Ok(Self { namespace: Namespace::parse(namespace)?, name: OrderName::parse(name)? })
    }

    /// Parses `<namespace>/<name>`, or a bare name in `namespace`.
    ///
    /// # Errors
    /// Says what is wrong with the text.
    pub fn parse_in(text: &str, namespace: &Namespace) -> Result<Self, IdError> {
        if text.contains('/') {
            return Self::parse(text);
        }
        Ok(Self { namespace: namespace.clone(), name: OrderName::parse(text)? })
    }
}

impl fmt::Display for OrderRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.namespace, self.name))
    }
}
impl TryFrom<String> for OrderRef {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        Self::parse(&text)
    }
}
impl From<OrderRef> for String {
    fn from(value: OrderRef) -> String {
        value.to_string()
    }
}
