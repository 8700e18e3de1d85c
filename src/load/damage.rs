//! Files that cannot be parsed, and the Orders that a damaged text may affect.
//!
//! A text that does not parse may contain a Reject, a freeze or a policy. Its readable part decides what it holds
//! back: if it shows only Orders and Preparations, those; if it shows only foreign kinds and never our group,
//! nothing; otherwise every new promotion.

use crate::model::id::{Namespace, OrderName, OrderRef};
use crate::model::kind::Kind;
use crate::model::naming::GROUP;
use crate::model::world::Holds;
use kube_yaml::node::Node;
use kube_yaml::spelling::find_misspelt;
use kube_yaml::{Error, Position, parse};
use std::collections::BTreeSet;

/// The bytes of a file as text for the YAML parser.
///
/// # Errors
/// It is a Git LFS pointer, contains the marks of an unresolved merge, or is not text.
pub fn check_text(bytes: &[u8]) -> Result<&str, Error> {
    let start = Position { line: 1, column: 1 };
    if bytes.starts_with(b"version https://git-lfs") {
        let cause = "is a Git LFS pointer instead of the file itself";
        return Err(Error::new("lfs-pointer", start, cause)
            .with_hint("fetch it (git lfs pull; with actions/checkout: lfs: true)"));
    }
    let text = parse::decode_text(bytes)?;
    let line_of = |mark: &str| text.lines().position(|line| line.starts_with(mark));
    if text.contains("<<<<<<< ")
        && let (Some(ours), Some(theirs)) = (line_of("<<<<<<< "), line_of(">>>>>>> "))
        && ours < theirs
    {
        let line = u32::try_from(ours + 1).unwrap_or(u32::MAX);
        let cause = "contains the marks of an unresolved merge (<<<<<<<)";
        return Err(Error::new("merge-conflict", Position { line, column: 1 }, cause)
            .with_hint("resolve the conflict and commit the result"));
    }
    Ok(text)
}

/// The Orders that a text that does not parse holds back; `partial` is the tree before the error.
#[must_use]
pub fn judge_holds(text: &str, partial: Option<&Node>) -> Holds {
    let mut orders = BTreeSet::new();
    let mut foreign = false;
    for document in split_documents(text) {
        let says_nothing = |l: &str| l.is_empty() || l.starts_with('#') || l == "---" || l == "...";
        if document.lines().all(|line| says_nothing(line.trim())) {
            continue;
        }
        let kinds = collect_kinds(document);
        if kinds.iter().any(|kind| can_be_policy(kind)) {
            return Holds::Everything;
        }
        if kinds.contains("Order") || kinds.contains("Preparation") {
            let mut found = collect_named_orders(document);
            found.extend(partial.and_then(find_order_in_tree));
            if found.is_empty() {
                return Holds::Everything;
            }
            orders.extend(found);
        } else if kinds.is_empty() || document.contains(GROUP) {
            return Holds::Everything;
        } else {
            foreign = true;
        }
    }
    match (orders.is_empty(), foreign) {
        (false, _) => Holds::Orders(orders),
        (true, true) => Holds::Nothing,
        (true, false) => Holds::Everything,
    }
}

/// Whether an object of this kind, or of the one it is a misspelling of, can change more than one Order.
fn can_be_policy(kind: &str) -> bool {
    if matches!(kind, "Order" | "Preparation" | "Serving") {
        return false;
    }
    let policies: Vec<&str> = Kind::ALL
        .into_iter()
        .filter(|k| !matches!(k, Kind::Order | Kind::Preparation | Kind::Serving))
        .map(Kind::as_str)
        .collect();
    kind.ends_with("List") || find_misspelt(kind, &policies).is_some()
}

/// The documents of a text, by their marks.
fn split_documents(text: &str) -> Vec<&str> {
    let mut documents = Vec::new();
    let mut start = 0;
    let mut place = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with("---") && place > start {
            documents.push(&text[start..place]);
            start = place;
        }
        place += line.len();
    }
    documents.push(&text[start..]);
    documents
}

/// Every word that is the value of a `kind`, at any level.
fn collect_kinds(text: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for (place, word) in text.match_indices("kind") {
        if text[..place].chars().next_back().is_some_and(char::is_alphanumeric) {
            continue;
        }
        let rest = text[place + word.len()..].trim_start_matches(['"', '\'']).trim_start();
        let Some(value) = rest.strip_prefix(':') else { continue };
        let value = value.trim_start().trim_start_matches(['"', '\'']);
        let end = value.find(|c: char| !c.is_alphanumeric()).unwrap_or(value.len());
        if end > 0 {
            found.insert(&value[..end]);
        }
    }
    found
}

/// The Orders that a damaged document names: an Order in its metadata, a Preparation in `orderName`.
fn collect_named_orders(document: &str) -> BTreeSet<OrderRef> {
    let mut section = "";
    let (mut kind, mut names, mut namespaces, mut order_names) = ("", vec![], vec![], vec![]);
    for line in document.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let (key, value) = (key.trim_matches(['"', '\'', ' ']), strip_scalar(value));
        if !line.starts_with([' ', '\t']) {
            section = match key {
                "metadata" | "spec" => key,
                _ => "",
            };
            if key == "kind" {
                kind = value;
            }
            for part in value.trim_matches(['{', '}']).split(',') {
                let Some((key, value)) = part.split_once(':') else { continue };
                take_value(
                    section,
                    key.trim(),
                    strip_scalar(value),
                    &mut names,
                    &mut namespaces,
                    &mut order_names,
                );
            }
        } else {
            take_value(section, key, value, &mut names, &mut namespaces, &mut order_names);
        }
    }
    if kind == "Preparation" {
        names = order_names;
    } else if kind != "Order" {
        return BTreeSet::new();
    }
    let pairs = namespaces.iter().flat_map(|namespace| names.iter().map(move |name| (*namespace, *name)));
    pairs.filter_map(|(namespace, name)| parse_reference(namespace, name)).collect()
}

fn take_value<'t>(
    section: &str,
    key: &str,
    value: &'t str,
    names: &mut Vec<&'t str>,
    namespaces: &mut Vec<&'t str>,
    order_names: &mut Vec<&'t str>,
) {
    match (section, key) {
        ("metadata", "name") => names.push(value),
        ("metadata", "namespace") => namespaces.push(value),
        ("spec", "orderName") => order_names.push(value),
        _ => {}
    }
}

/// A simple scalar without its quotes and comment.
fn strip_scalar(text: &str) -> &str {
    let text = text.split(" #").next().unwrap_or_default();
    text.trim().trim_matches(['"', '\''])
}

fn parse_reference(namespace: &str, name: &str) -> Option<OrderRef> {
    let namespace = Namespace::parse(namespace).ok()?;
    Some(OrderRef { namespace, name: OrderName::parse(name).ok()? })
}

/// The Order that a tree names: an Order itself, or the Order of a Preparation.
#[must_use]
pub fn find_order_in_tree(node: &Node) -> Option<OrderRef> {
    let namespace = node.find_value(&["metadata", "namespace"])?.as_text()?;
    match node.get("kind")?.as_text()? {
        "Order" => parse_reference(namespace, node.find_value(&["metadata", "name"])?.as_text()?),
        "Preparation" => parse_reference(namespace, node.find_value(&["spec", "orderName"])?.as_text()?),
        _ => None,
    }
}
