//! Reads a mapping key by key, so that one wrong value does not hide others. The keys that were read are the known
//! keys: any other key is an error with the nearest of them as a hint.

use kube_yaml::node::{Node, Value, locate_field};
use kube_yaml::spelling::find_nearest;
use kube_yaml::{Error, Position, de};
use serde::de::DeserializeOwned;
use std::cell::RefCell;
use std::rc::Rc;

/// All problems.
#[derive(Debug, Clone, Default)]
pub struct Problems(Rc<RefCell<Vec<Error>>>);

impl Problems {
    /// All problems, in the order of the text.
    pub fn sort_errors(&self) -> Vec<Error> {
        let mut all = self.0.borrow().clone();
        all.sort_by_key(|error| error.at);
        all
    }
}

/// A mapping of the settings, which may be absent.
pub struct Section<'n> {
    node: Option<&'n Node>,
    path: String,
    asked: Vec<String>,
    problems: Problems,
}

impl<'n> Section<'n> {
    /// The mapping `node` at `path`; anything else is a problem and counts as an empty mapping.
    pub fn new(node: Option<&'n Node>, path: impl Into<String>, problems: &Problems) -> Self {
        let mut section =
            Self { node: None, path: path.into(), asked: Vec::new(), problems: problems.clone() };
        match node {
            Some(node) if matches!(node.value, Value::Mapping(_)) => section.node = Some(node),
            Some(node) if !node.is_null() => {
                section.add_error(
                    node.at,
                    &section.path,
                    format!("wanted a mapping, found {}", node.describe_kind()),
                );
            }
            Some(_) | None => {}
        }
        section
    }

    fn add_error(&self, at: Position, path: &str, cause: impl Into<String>) {
        let mut error = Error::new("invalid-value", at, cause);
        error.path = path.to_owned();
        self.problems.0.borrow_mut().push(error);
    }

    fn join_path(&self, key: &str) -> String {
        match (self.path.as_str(), key) {
            (path, "") => path.to_owned(),
            ("", key) => key.to_owned(),
            (path, key) => format!("{path}.{key}"),
        }
    }

    fn find_value(&mut self, key: &str) -> Option<&'n Node> {
        self.asked.push(key.to_owned());
        self.node.and_then(|node| node.get(key)).filter(|node| !node.is_null())
    }

    /// Whether the key exists, even with a null value.
    pub fn has_key(&self, key: &str) -> bool {
        self.node.is_some_and(|node| node.get(key).is_some())
    }

    /// The value of a key; `None` when it is absent, null or wrong.
    pub fn take_value<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        let node = self.find_value(key)?;
        match de::from_node_at(&self.join_path(key), node, &mut Vec::new()) {
            Ok(value) => Some(value),
            Err(error) => {
                self.problems.0.borrow_mut().push(error);
                None
            }
        }
    }

    /// The value of a required key.
    pub fn require_value<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        if self.node.is_some_and(|node| node.get(key).is_none_or(Node::is_null)) {
            self.report_wrong(key, "is required and missing");
        }
        self.take_value(key)
    }

    /// The mapping of a key.
    pub fn take_section(&mut self, key: &str) -> Section<'n> {
        let path = self.join_path(key);
        Section::new(self.find_value(key), path, &self.problems)
    }

    /// The mappings in the list of a key.
    pub fn take_items(&mut self, key: &str) -> Vec<Section<'n>> {
        let path = self.join_path(key);
        let Some(node) = self.find_value(key) else { return Vec::new() };
        let Value::Sequence(items) = &node.value else {
            self.add_error(node.at, &path, format!("wanted a list, found {}", node.describe_kind()));
            return Vec::new();
        };
        let each = |(index, item)| Section::new(Some(item), format!("{path}[{index}]"), &self.problems);
        items.iter().enumerate().map(each).collect()
    }

    /// The mappings of a mapping with free keys.
    pub fn take_entries(&mut self, key: &str) -> Vec<(String, Section<'n>)> {
        let own = self.take_section(key);
        let pairs = own.node.map_or(&[][..], Node::pairs);
        let each = |pair: &'n kube_yaml::node::Pair| {
            let path = format!("{}[\"{}\"]", own.path, pair.key);
            (pair.key.clone(), Section::new(Some(&pair.value), path, &own.problems))
        };
        pairs.iter().map(each).collect()
    }

    /// Reports that the value of `key` (`""`: of this section itself) is wrong.
    pub fn report_wrong(&self, key: &str, cause: impl Into<String>) {
        let Some(node) = self.node else { return };
        self.add_error(locate_field(node, key).unwrap_or(node.at), &self.join_path(key), cause);
    }

    /// Ends the section: every key that was not read is an error.
    pub fn end_section(self) {
        let known: Vec<&str> = self.asked.iter().map(String::as_str).collect();
        for pair in self.node.map_or(&[][..], Node::pairs) {
            if known.contains(&pair.key.as_str()) {
                continue;
            }
            let mut error = Error::new("unknown-field", pair.at, "is not a known setting");
            error.path = self.join_path(&pair.key);
            error.hint = Some(match find_nearest(&pair.key, &known) {
                Some(meant) => format!("did you mean {meant}?"),
                None => format!("known fields: {}", known.join(", ")),
            });
            self.problems.0.borrow_mut().push(error);
        }
    }
}
