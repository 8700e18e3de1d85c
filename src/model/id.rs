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
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Why a text is not the name, digest or reference it should be. The message is for a person and
/// quotes the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct IdError(pub String);

pub use oci_registry::{Artifact, Digest, OciRepository};

impl From<oci_registry::ParseError> for IdError {
    fn from(error: oci_registry::ParseError) -> Self {
        Self(error.0)
    }
}

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
                    Err(IdError(format!("{} is not a valid {}: {}", quote_text(text), $what, $words)))
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
        let (namespace, name) = text.split_once('/').ok_or_else(|| {
            IdError(format!("{} is not a valid Order name: write <namespace>/<name>", quote_text(text)))
        })?;
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
