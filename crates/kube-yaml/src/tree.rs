//! Builds a document's tree from the scanner's events: keys are unique, merge keys and aliases are expanded, nesting
//! and expansion are bounded.

use crate::node::{Node, Pair, Scalar, Style, Value};
use crate::parse::{DEPTH, make_too_deep};
use crate::{Error, Position};
use granit_parser::{Event, ScalarStyle, Tag};
use std::collections::{HashMap, HashSet};

/// Total size of all expanded aliases of a document, measured by [`weight`]: about sixteen megabytes of tree.
const ALIAS_BUDGET: usize = 16 << 20;

/// A mapping with this many keys keeps them in a set; with fewer keys, comparing each is faster.
const MANY_KEYS: usize = 16;

/// A collection whose end has not been read yet.
enum OpenCollection {
    Sequence { at: Position, anchor: usize, items: Vec<Node> },
    Mapping { at: Position, anchor: usize, entries: MappingDraft },
}

/// A mapping under construction.
#[derive(Default)]
struct MappingDraft {
    pairs: Vec<Pair>,
    /// All keys, if there are many.
    keys: HashSet<String>,
    /// A key that waits for its value.
    key: Option<EntryKey>,
    /// The value of `<<`, with the key's position.
    merge: Option<(Position, Node)>,
}

struct EntryKey {
    text: String,
    at: Position,
    is_merge: bool,
}

/// The result of one document so far.
#[derive(Default)]
pub struct Tree {
    /// The complete tree, after the document's end.
    pub root: Option<Node>,
    open: Vec<OpenCollection>,
    anchors: HashMap<usize, Node>,
    /// What is wrong with it.
    pub errors: Vec<Error>,
    spent: usize,
    /// Set by an error after which all events are ignored.
    pub broken: bool,
}

impl Tree {
    /// Takes the next event of the document.
    pub fn take_event(&mut self, event: Event<'_>, at: Position) {
        if self.broken {
            return;
        }
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let scalar = Scalar { text: text.into_owned(), style: decide_style(style, tag.as_deref()) };
                self.place_node(Node { value: Value::Scalar(scalar), at }, anchor);
            }
            Event::SequenceStart(_, anchor, _) => {
                self.push_open(OpenCollection::Sequence { at, anchor, items: Vec::new() }, at);
            }
            Event::MappingStart(_, anchor, _) => {
                self.push_open(OpenCollection::Mapping { at, anchor, entries: MappingDraft::default() }, at);
            }
            Event::SequenceEnd | Event::MappingEnd => self.close_innermost(),
            Event::Alias(id) => self.expand_alias(id, at),
            // The caller handles markers of documents; comments, anchors as events and unresolved aliases are not
            // requested.
            _ => {}
        }
    }

    fn push_open(&mut self, open: OpenCollection, at: Position) {
        if self.open.len() >= DEPTH {
            self.fail_with(make_too_deep(at));
        } else {
            self.open.push(open);
        }
    }

    /// Ends the innermost collection.
    fn close_innermost(&mut self) {
        match self.open.pop() {
            Some(OpenCollection::Sequence { at, anchor, items }) => {
                self.place_node(Node { value: Value::Sequence(items), at }, anchor);
            }
            Some(OpenCollection::Mapping { at, anchor, mut entries }) => {
                if let Some((place, merged)) = entries.merge.take() {
                    self.merge_pairs(&mut entries.pairs, place, merged);
                }
                self.place_node(Node { value: Value::Mapping(entries.pairs), at }, anchor);
            }
            None => {}
        }
    }

    /// Adds a finished value to its parent.
    fn place_node(&mut self, node: Node, anchor: usize) {
        if anchor != 0 {
            // Counted like an alias, so that anchors inside anchors cannot multiply a text either.
            if !self.spend_budget(&node) {
                return;
            }
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(OpenCollection::Sequence { items, .. }) => items.push(node),
            Some(OpenCollection::Mapping { entries, .. }) => {
                if let Err(error) = entries.add_node(node) {
                    self.errors.push(error);
                }
            }
        }
    }

    fn expand_alias(&mut self, id: usize, at: Position) {
        let Some(node) = self.anchors.get(&id).cloned() else {
            return self.fail_with(Error::new("alias", at, "an alias is inside the value that it names"));
        };
        if self.open.len() + measure_height(&node) > DEPTH {
            return self.fail_with(make_too_deep(at));
        }
        if self.spend_budget(&node) {
            self.place_node(node, 0);
        }
    }

    fn spend_budget(&mut self, node: &Node) -> bool {
        self.spent = self.spent.saturating_add(measure_weight(node));
        if self.spent > ALIAS_BUDGET {
            let cause = "its anchors and aliases expand to more than 16 MB, which is not allowed";
            self.fail_with(Error::new("alias-bomb", node.at, cause));
        }
        !self.broken
    }

    /// Ends the tree at an error after which parsing cannot continue.
    pub fn fail_with(&mut self, error: Error) {
        // Closing a collection early may cause more errors: the error that matters must stay the last one.
        let before = self.errors.len();
        self.break_off();
        self.errors.truncate(before);
        self.errors.push(error);
    }

    /// Ends every open collection with its items so far.
    fn break_off(&mut self) {
        while !self.open.is_empty() {
            if let Some(OpenCollection::Mapping { entries, .. }) = self.open.last_mut() {
                entries.key = None;
            }
            self.close_innermost();
        }
        self.broken = true;
    }

    /// Adds the keys of `<<` that the mapping does not have itself; of several merged mappings, the first one wins.
    fn merge_pairs(&mut self, pairs: &mut Vec<Pair>, place: Position, merged: Node) {
        let sources = match merged.value {
            Value::Mapping(pairs) => vec![pairs],
            Value::Sequence(items) if items.iter().all(|i| matches!(i.value, Value::Mapping(_))) => {
                items.iter().map(|i| i.pairs().to_vec()).collect()
            }
            Value::Sequence(_) | Value::Scalar(_) => {
                let cause = "the merge key << takes a mapping or a list of mappings";
                self.errors.push(Error::new("merge-key", place, cause));
                return;
            }
        };
        let mut said: HashSet<String> = pairs.iter().map(|p| p.key.clone()).collect();
        for pair in sources.into_iter().flatten() {
            if said.insert(pair.key.clone()) {
                pairs.push(pair);
            }
        }
    }
}

impl MappingDraft {
    /// Takes a key or the value of the key before.
    fn add_node(&mut self, node: Node) -> Result<(), Error> {
        let Some(EntryKey { text, at, is_merge }) = self.key.take() else {
            let Value::Scalar(scalar) = node.value else {
                self.key = Some(EntryKey { text: String::new(), at: node.at, is_merge: false });
                return Err(Error::new("complex-key", node.at, "a mapping or a list cannot be a key"));
            };
            let is_merge = scalar.style == Style::Plain && scalar.text == "<<";
            self.key = Some(EntryKey { text: scalar.text, at: node.at, is_merge });
            return Ok(());
        };
        let twice = || Error::new("duplicate-key", at, format!("the key {text:?} is written twice"));
        if is_merge {
            if self.merge.is_some() {
                return Err(twice());
            }
            self.merge = Some((at, node));
            return Ok(());
        }
        let known = if self.pairs.len() < MANY_KEYS {
            self.pairs.iter().any(|p| p.key == text)
        } else {
            if self.keys.is_empty() {
                self.keys = self.pairs.iter().map(|p| p.key.clone()).collect();
            }
            !self.keys.insert(text.clone())
        };
        if known {
            return Err(twice());
        }
        self.pairs.push(Pair { key: text, at, value: node });
        Ok(())
    }
}

/// What a scalar's style and tag say about its meaning.
fn decide_style(style: ScalarStyle, tag: Option<&Tag>) -> Style {
    let bare = match style {
        ScalarStyle::Plain => Style::Plain,
        _ => Style::Quoted,
    };
    let Some(tag) = tag else { return bare };
    match tag.core_suffix() {
        Some("str") => Style::Quoted,
        Some("null" | "bool" | "int" | "float" | "timestamp" | "merge") => bare,
        Some(_) => Style::Tagged,
        None if tag.original() == "!" => Style::Quoted,
        None => Style::Tagged,
    }
}

/// Roughly the bytes a tree takes.
fn measure_weight(node: &Node) -> usize {
    64 + match &node.value {
        Value::Scalar(s) => s.text.len(),
        Value::Sequence(items) => items.iter().map(measure_weight).sum(),
        Value::Mapping(pairs) => pairs.iter().map(|p| 32 + p.key.len() + measure_weight(&p.value)).sum(),
    }
}

/// Levels of collections in a tree.
fn measure_height(node: &Node) -> usize {
    match &node.value {
        Value::Scalar(_) => 0,
        Value::Sequence(items) => 1 + items.iter().map(measure_height).max().unwrap_or(0),
        Value::Mapping(pairs) => 1 + pairs.iter().map(|p| measure_height(&p.value)).max().unwrap_or(0),
    }
}
