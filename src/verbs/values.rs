//! Values of arguments that are more than a name: Orders, artifacts, people.

use crate::model::id::{Digest, IdError, Namespace, OciRepository, OrderName, PreparationName};
use crate::model::naming::GROUP;
use crate::report::fingerprint::Fingerprint;
use crate::report::names;
use std::fmt;

/// The plan that somebody looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpectedPlan {
    /// Of this fingerprint.
    Plan(Fingerprint),
    /// The one in the comment on the pull request.
    Commented,
}

impl ExpectedPlan {
    /// Parses a fingerprint, or `commented`.
    ///
    /// # Errors
    /// Says what a fingerprint is.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "commented" => Ok(Self::Commented),
            text => Fingerprint::parse(text).map(Self::Plan),
        }
    }
}

/// An Order (or another namespaced object) as a person names it: `NAMESPACE/NAME`, or `NAME` where `-n`
/// or the objects leave one namespace for it; either may stand behind its kind, as `-o name` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderArg {
    /// Where it is, if said.
    pub namespace: Option<Namespace>,
    /// Its name.
    pub name: OrderName,
}

impl OrderArg {
    /// Parses `NAMESPACE/NAME` or `NAME`.
    ///
    /// # Errors
    /// Quotes the text and says the rule.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let text = strip_kind(text);
        match text.split_once('/') {
            Some((namespace, name)) => {
                Ok(Self { namespace: Some(Namespace::parse(namespace)?), name: OrderName::parse(name)? })
            }
            None => Ok(Self { namespace: None, name: OrderName::parse(text)? }),
        }
    }
}

/// What stands behind the kind that `-o name` writes. A namespace has no dot, so nothing is taken for two things.
fn strip_kind(text: &str) -> &str {
    let behind =
        |kind: &&str| text.strip_prefix(*kind)?.strip_prefix('.')?.strip_prefix(GROUP)?.strip_prefix('/');
    [names::ORDER, names::PREPARATION, names::SERVING].iter().find_map(behind).unwrap_or(text)
}

/// A Preparation as a person names it, or as `-o name` prints it beside one `-n`: its namespace is the Order's.
///
/// # Errors
/// Says the rule.
pub fn parse_preparation_arg(text: &str) -> Result<PreparationName, IdError> {
    PreparationName::parse(strip_kind(text))
}

/// An artifact as a person names it: `[oci://]HOST/REPOSITORY`, then `:TAG`, `@sha256:…`, or both (the digest
/// counts).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactArg {
    /// Where it is.
    pub repository: OciRepository,
    /// Its tag, if said.
    pub tag: Option<String>,
    /// Its digest, if said.
    pub digest: Option<Digest>,
}

impl ArtifactArg {
    /// Parses a reference with a digest or a tag; nothing stands in for either.
    ///
    /// # Errors
    /// Says the rule.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let bare = text.strip_prefix("oci://").unwrap_or(text);
        let (place, digest) = match bare.split_once('@') {
            Some((place, digest)) => (place, Some(Digest::parse(digest)?)),
            None => (bare, None),
        };
        let path = place.find('/').unwrap_or(place.len());
        let (place, tag) = match place[path..].split_once(':') {
            Some((head, tag)) => (&place[..path + head.len()], Some(tag.to_owned())),
            None => (place, None),
        };
        let repository = OciRepository::parse(place)?;
        let is_tag = |tag: &String| {
            let first = tag.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            first && tag.len() <= 128 && tag.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
        };
        match (&tag, digest) {
            (Some(tag), _) if !is_tag(tag) => Err(IdError(format!(
                "{tag:?} is no tag: letters, digits, '_', '.' and '-', at most 128, not beginning with '.' or '-'"
            ))),
            (None, None) => Err(IdError(
                "it names neither a digest nor a tag: write …@sha256:<64 hex digits> or …:<tag>".into(),
            )),
            (Some(_), _) | (None, Some(_)) => Ok(Self { repository, tag, digest }),
        }
    }
}

/// Who commits, as git writes it: `NAME <EMAIL>`.
///
/// ```
/// use expedite::verbs::values::AuthorArg;
/// let ann = AuthorArg::parse("Ann <ann@shop.example>").unwrap();
/// assert_eq!((ann.name.as_str(), ann.email.as_str()), ("Ann", "ann@shop.example"));
/// assert!(AuthorArg::parse("Ann").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorArg {
    /// For people.
    pub name: String,
    /// Between `<` and `>`.
    pub email: String,
}

impl AuthorArg {
    /// Parses `NAME <EMAIL>`.
    ///
    /// # Errors
    /// Either is empty, or the form is another one.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts = text.trim().strip_suffix('>').and_then(|rest| rest.split_once('<'));
        let parts = parts.map(|(name, email)| (name.trim(), email.trim()));
        match parts {
            Some((name, email)) if !name.is_empty() && !email.is_empty() && !email.contains(['<', '>']) => {
                Ok(Self { name: name.to_owned(), email: email.to_owned() })
            }
            Some(_) | None => Err("wanted 'NAME <EMAIL>', both of them".to_owned()),
        }
    }
}

impl fmt::Display for OrderArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => write!(f, "{}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn an_artifact_is_named_by_digest_or_tag() {
        let hex = "0".repeat(64);
        let parse = |text: &str| {
            ArtifactArg::parse(text).map(|a| (a.repository.to_string(), a.tag, a.digest.is_some()))
        };
        let repository = || "r.example:5000/shop/a".to_owned();
        assert_eq!(parse("r.example:5000/shop/a:1.5").unwrap(), (repository(), Some("1.5".into()), false));
        assert_eq!(
            parse(&format!("oci://r.example:5000/shop/a@sha256:{hex}")).unwrap(),
            (repository(), None, true)
        );
        assert_eq!(
            parse(&format!("r.example:5000/shop/a:v1@sha256:{hex}")).unwrap(),
            (repository(), Some("v1".into()), true)
        );
        for bad in [
            "",
            "a",
            "shop/a:v1",
            "r.example:5000/shop/a",
            "r.example/a:",
            "r.example/a:-x",
            "r.example/a:b:c",
            "r.example/a@sha256:00",
            "r.example/a@v1",
            "r.example/a:x/y",
            "r.example/A:v1",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_order_is_named_with_or_without_its_namespace() {
        assert_eq!(OrderArg::parse("shop/podinfo").unwrap().to_string(), "shop/podinfo");
        assert_eq!(OrderArg::parse("podinfo").unwrap().namespace, None);
        for bad in ["", "/", "a/", "/a", "a/b/c", "A", "order.example/a/b", "order.delivery.kokumi.dev/"] {
            assert!(OrderArg::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_o_name_prints_is_taken_back() {
        let shop = Namespace::parse("shop").unwrap();
        for kind in [names::ORDER, names::PREPARATION, names::SERVING] {
            let back = |asked: &[Namespace]| {
                let line = names::format_line(kind, &shop, "a.b", asked);
                OrderArg::parse(line.trim_end()).unwrap().to_string()
            };
            assert_eq!((back(&[]), back(std::slice::from_ref(&shop))), ("shop/a.b".into(), "a.b".into()));
        }
        assert_eq!(
            OrderArg::parse("order/web").unwrap().to_string(),
            "order/web",
            "a namespace called order"
        );
        assert_eq!(OrderArg::parse("order.delivery.kokumi.dev").unwrap().namespace, None);
        assert_eq!(parse_preparation_arg("preparation.delivery.kokumi.dev/a-1").unwrap().as_str(), "a-1");
        assert!(parse_preparation_arg("preparation.delivery.kokumi.dev/shop/a-1").is_err());
    }
}
