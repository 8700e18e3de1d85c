//! Reading a mapping key by key, so that one wrong value hides no other. What was asked for is what is known:
//! any other key is an error with the nearest of those.

use kube_yaml::node::{Node, Value, locate};
use kube_yaml::spelling::nearest;
use kube_yaml::{Error, Position, de};
use serde::de::DeserializeOwned;
use std::cell::RefCell;
use std::rc::Rc;

/// Everything that was found wrong.
#[derive(Debug, Clone, Default)]
pub struct Problems(Rc<RefCell<Vec<Error>>>);

impl Problems {
    /// All of it, in the order of the text.
    pub fn sorted(&self) -> Vec<Error> {
        let mut all = self.0.borrow().clone();
        all.sort_by_key(|error| error.at);
        all
    }
}

/// A mapping of the settings, or the absence of one.
pub struct Section<'n> {
    node: Option<&'n Node>,
    path: String,
    asked: Vec<String>,
    problems: Problems,
}

impl<'n> Section<'n> {
    /// The mapping `node` at `path`; anything but a mapping is a problem and reads as an empty one.
    pub fn new(node: Option<&'n Node>, path: impl Into<String>, problems: &Problems) -> Self {
        let mut section =
            Self { node: None, path: path.into(), asked: Vec::new(), problems: problems.clone() };
        match node {
            Some(node) if matches!(node.value, Value::Mapping(_)) => section.node = Some(node),
            Some(node) if !node.is_null() => {
                section.add(node.at, &section.path, format!("wanted a mapping, found {}", node.describe()));
            }
            Some(_) | None => {}
        }
        section
    }

    fn add(&self, at: Position, path: &str, cause: impl Into<String>) {
        let mut error = Error::new("invalid-value", at, cause);
        error.path = path.to_owned();
        self.problems.0.borrow_mut().push(error);
    }

    fn below(&self, key: &str) -> String {
        match (self.path.as_str(), key) {
            (path, "") => path.to_owned(),
            ("", key) => key.to_owned(),
            (path, key) => format!("{path}.{key}"),
        }
    }

    fn value(&mut self, key: &str) -> Option<&'n Node> {
        self.asked.push(key.to_owned());
        self.node.and_then(|node| node.get(key)).filter(|node| !node.is_null())
    }

    /// Whether the key is there, be it null.
    pub fn has(&self, key: &str) -> bool {
        self.node.is_some_and(|node| node.get(key).is_some())
    }

    /// The value of a key; `None` when it is absent, null or wrong.
    pub fn take<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        let node = self.value(key)?;
        match de::below(&self.below(key), node, &mut Vec::new()) {
            Ok(value) => Some(value),
            Err(error) => {
                self.problems.0.borrow_mut().push(error);
                None
            }
        }
    }

    /// The value of a key that must be there.
    pub fn require<T: DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        if self.node.is_some_and(|node| node.get(key).is_none_or(Node::is_null)) {
            self.wrong(key, "is required and missing");
        }
        self.take(key)
    }

    /// The mapping of a key.
    pub fn section(&mut self, key: &str) -> Section<'n> {
        let path = self.below(key);
        Section::new(self.value(key), path, &self.problems)
    }

    /// The mappings in the list of a key.
    pub fn items(&mut self, key: &str) -> Vec<Section<'n>> {
        let path = self.below(key);
        let Some(node) = self.value(key) else { return Vec::new() };
        let Value::Sequence(items) = &node.value else {
            self.add(node.at, &path, format!("wanted a list, found {}", node.describe()));
            return Vec::new();
        };
        let each = |(index, item)| Section::new(Some(item), format!("{path}[{index}]"), &self.problems);
        items.iter().enumerate().map(each).collect()
    }

    /// The mappings of a mapping with free keys.
    pub fn entries(&mut self, key: &str) -> Vec<(String, Section<'n>)> {
        let own = self.section(key);
        let pairs = own.node.map_or(&[][..], Node::pairs);
        let each = |pair: &'n kube_yaml::node::Pair| {
            let path = format!("{}[\"{}\"]", own.path, pair.key);
            (pair.key.clone(), Section::new(Some(&pair.value), path, &own.problems))
        };
        pairs.iter().map(each).collect()
    }

    /// Says that the value of `key` (of this section itself: `""`) is wrong.
    pub fn wrong(&self, key: &str, cause: impl Into<String>) {
        let Some(node) = self.node else { return };
        self.add(locate(node, key).unwrap_or(node.at), &self.below(key), cause);
    }

    /// Ends the section: every key that was not asked for is an error.
    pub fn done(self) {
        let known: Vec<&str> = self.asked.iter().map(String::as_str).collect();
        for pair in self.node.map_or(&[][..], Node::pairs) {
            if known.contains(&pair.key.as_str()) {
                continue;
            }
            let mut error = Error::new("unknown-field", pair.at, "is no setting");
            error.path = self.below(&pair.key);
            error.hint = Some(match nearest(&pair.key, &known) {
                Some(meant) => format!("did you mean {meant}?"),
                None => format!("known here: {}", known.join(", ")),
            });
            self.problems.0.borrow_mut().push(error);
        }
    }
}
