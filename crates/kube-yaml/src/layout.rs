//! Positions in a YAML text: nodes with their byte ranges, for an edit in place.
//!
//! It reads one document of plain structure. Anchors, aliases, merge keys and tags are refused with their line,
//! because there an edited byte could change a value somewhere else. Must not know what the values mean.

use crate::Position;
use crate::node::{self, Style};
use granit_parser::{Event, Options, Parser, ScalarStyle, Span, StructureStyle};
use serde_json::{Map, Value};

/// One node of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct LayoutNode {
    /// What it is.
    pub kind: LayoutKind,
    /// First byte; of a literal or folded scalar, of its content.
    pub start: usize,
    /// First byte after it.
    pub end: usize,
    /// Line of the first byte, from 1.
    pub line: u32,
    /// Column of the first byte in characters, from 0.
    pub column: usize,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub enum LayoutKind {
    /// A scalar's text and whether it has neither quotes nor a block indicator.
    Scalar {
        /// After escapes and folding.
        text: String,
        /// Without quotes or block indicator: only then it can be another type than a string.
        plain: bool,
    },
    /// A sequence.
    Sequence {
        /// In `[ ]`.
        flow: bool,
        /// In order.
        items: Vec<LayoutNode>,
    },
    /// A mapping.
    Mapping {
        /// In `{ }`.
        flow: bool,
        /// In order; keys are scalars and differ.
        entries: Vec<(LayoutNode, LayoutNode)>,
    },
}

/// Why a text cannot be edited in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutRefusal {
    /// From 1.
    pub line: u32,
    /// For a person.
    pub why: String,
}

/// A text as read.
#[derive(Debug, Clone)]
pub struct TextLayout {
    /// The one document; a null scalar for an empty text.
    pub root: LayoutNode,
    /// Lines that hold a comment.
    pub comments: Vec<u32>,
}

/// Deepest nesting.
const DEPTH: usize = 64;

/// Reads one document.
///
/// # Errors
/// It is not YAML, contains more than one document, an anchor, alias, merge key or tag, a duplicate key, a key that
/// is not a scalar, or nests deeper than 64 levels.
pub fn parse_layout(text: &str) -> Result<TextLayout, LayoutRefusal> {
    let mut options = Options::default();
    options.strict_indentation = true;
    let mut reader =
        Reader { parser: Parser::new_from_str_with_options(text, options), comments: Vec::new() };
    let mut root = None;
    loop {
        let (event, span) = reader.next()?;
        match event {
            Event::StreamEnd => break,
            Event::StreamStart | Event::DocumentEnd => {}
            Event::DocumentStart(..) if root.is_some() => {
                return Err(make_refusal(&span, "a second document starts here"));
            }
            Event::DocumentStart(..) => {}
            event => root = Some(reader.parse_node(event, span, 0)?),
        }
    }
    let root = root.unwrap_or(LayoutNode {
        kind: LayoutKind::Scalar { text: String::new(), plain: true },
        start: 0,
        end: 0,
        line: 1,
        column: 0,
    });
    Ok(TextLayout { root, comments: reader.comments })
}

fn make_refusal(span: &Span, why: impl Into<String>) -> LayoutRefusal {
    LayoutRefusal { line: u32::try_from(span.start.line()).unwrap_or(u32::MAX), why: why.into() }
}

struct Reader<'a> {
    parser: Parser<'a, granit_parser::StrInput<'a>>,
    comments: Vec<u32>,
}

impl<'a> Reader<'a> {
    /// The next event that is not a comment.
    fn next(&mut self) -> Result<(Event<'a>, Span), LayoutRefusal> {
        loop {
            match self.parser.next_event() {
                Some(Ok((Event::Comment(..), span))) => self.comments.push(make_refusal(&span, "").line),
                Some(Ok(found)) => return Ok(found),
                Some(Err(error)) => {
                    let line = u32::try_from(error.marker().line()).unwrap_or(u32::MAX);
                    return Err(LayoutRefusal { line, why: error.info() });
                }
                None => return Ok((Event::StreamEnd, Span::default())),
            }
        }
    }

    fn parse_node(
        &mut self,
        event: Event<'a>,
        span: Span,
        depth: usize,
    ) -> Result<LayoutNode, LayoutRefusal> {
        if event.anchor_id().is_some() || event.is_alias() {
            return Err(make_refusal(&span, "it contains an anchor or alias; write the values themselves"));
        }
        if event.tag().is_some() {
            return Err(make_refusal(&span, "it contains a tag (!…); write the value without one"));
        }
        if depth > DEPTH {
            return Err(make_refusal(&span, format!("it nests deeper than {DEPTH} levels")));
        }
        let range = span.byte_range().unwrap_or_default();
        let mut node = LayoutNode {
            kind: LayoutKind::Scalar { text: String::new(), plain: true },
            start: range.start,
            end: range.end,
            line: make_refusal(&span, "").line,
            column: span.start.col(),
        };
        match event {
            Event::Scalar(text, style, ..) => {
                node.kind =
                    LayoutKind::Scalar { text: text.into_owned(), plain: style == ScalarStyle::Plain };
            }
            Event::SequenceStart(style, ..) => {
                let mut items: Vec<LayoutNode> = Vec::new();
                loop {
                    let (event, span) = self.next()?;
                    if event == Event::SequenceEnd {
                        node.end = find_collection_end(style, &span, items.last(), node.end);
                        break;
                    }
                    items.push(self.parse_node(event, span, depth + 1)?);
                }
                node.kind = LayoutKind::Sequence { flow: style == StructureStyle::Flow, items };
            }
            Event::MappingStart(style, ..) => {
                let mut entries: Vec<(LayoutNode, LayoutNode)> = Vec::new();
                loop {
                    let (event, span) = self.next()?;
                    if event == Event::MappingEnd {
                        node.end = find_collection_end(style, &span, entries.last().map(|e| &e.1), node.end);
                        break;
                    }
                    let key = self.parse_node(event, span, depth + 1)?;
                    self.check_key(&key, &entries)?;
                    let (event, span) = self.next()?;
                    let value = self.parse_node(event, span, depth + 1)?;
                    entries.push((key, value));
                }
                node.kind = LayoutKind::Mapping { flow: style == StructureStyle::Flow, entries };
            }
            _ => return Err(make_refusal(&span, "it is not a plain YAML structure")),
        }
        Ok(node)
    }

    fn check_key(&self, key: &LayoutNode, entries: &[(LayoutNode, LayoutNode)]) -> Result<(), LayoutRefusal> {
        let LayoutKind::Scalar { text, plain } = &key.kind else {
            return Err(LayoutRefusal { line: key.line, why: "a key must be a scalar".into() });
        };
        if *plain && text == "<<" {
            return Err(LayoutRefusal {
                line: key.line,
                why: "it contains a merge key (<<); write the values themselves".into(),
            });
        }
        if entries.iter().any(|(k, _)| k.text() == Some(text)) {
            return Err(LayoutRefusal { line: key.line, why: format!("the key {text:?} is repeated here") });
        }
        Ok(())
    }
}

/// A flow collection ends with its bracket, a block collection with its last child.
fn find_collection_end(style: StructureStyle, end: &Span, last: Option<&LayoutNode>, start: usize) -> usize {
    match style {
        StructureStyle::Flow => end.byte_range().map_or(start, |r| r.end),
        StructureStyle::Block => last.map_or(start, |n| n.end.max(start)),
    }
}

impl LayoutNode {
    /// A scalar's text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            LayoutKind::Scalar { text, .. } => Some(text),
            LayoutKind::Sequence { .. } | LayoutKind::Mapping { .. } => None,
        }
    }

    /// The entries of a mapping; none for anything else.
    #[must_use]
    pub fn entries(&self) -> &[(LayoutNode, LayoutNode)] {
        match &self.kind {
            LayoutKind::Mapping { entries, .. } => entries,
            LayoutKind::Scalar { .. } | LayoutKind::Sequence { .. } => &[],
        }
    }

    /// The entry of this key.
    #[must_use]
    pub fn find_entry(&self, key: &str) -> Option<&(LayoutNode, LayoutNode)> {
        self.entries().iter().find(|(k, _)| k.text() == Some(key))
    }

    /// The value, the same as from [`node::Node::to_json`].
    #[must_use]
    pub fn to_value(&self) -> Value {
        match &self.kind {
            LayoutKind::Scalar { text, plain } => parse_scalar(text, *plain),
            LayoutKind::Sequence { items, .. } => Value::Array(items.iter().map(Self::to_value).collect()),
            LayoutKind::Mapping { entries, .. } => {
                let mut map = Map::with_capacity(entries.len());
                for (key, value) in entries {
                    map.insert(key.text().unwrap_or_default().to_owned(), value.to_value());
                }
                Value::Object(map)
            }
        }
    }
}

/// Uses the reader's rule for the meaning of a scalar, so that there is only one.
fn parse_scalar(text: &str, plain: bool) -> Value {
    let style = if plain { Style::Plain } else { Style::Quoted };
    let scalar = node::Value::Scalar(node::Scalar { text: text.to_owned(), style });
    node::Node { value: scalar, at: Position { line: 1, column: 1 } }.to_json()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn ranges_are_bytes() {
        let text = "\u{feff}# é\na: \"é\" # c\nb:\n  c: |\n    x\n    y\n  d: [1, {e: 2}]\nf: x\n";
        let layout = parse_layout(text).unwrap();
        let of = |n: &LayoutNode| text[n.start..n.end].to_owned();
        assert_eq!(of(&layout.root.find_entry("a").unwrap().1), "\"é\"");
        let b = &layout.root.find_entry("b").unwrap().1;
        assert_eq!((b.line, b.column), (4, 2));
        assert_eq!(of(&b.find_entry("c").unwrap().1).trim_end(), "x\n    y", "after the indicator");
        assert_eq!(of(&b.find_entry("d").unwrap().1), "[1, {e: 2}]");
        assert!(of(b).starts_with("c:") && of(b).ends_with("{e: 2}]"));
        assert_eq!(of(&layout.root.find_entry("f").unwrap().1), "x");
        assert_eq!(layout.comments, [1, 2]);
    }

    #[test]
    fn values_are_exact() {
        let text = "a: 1.10\nb: 012\nc: no\nd: ~\ne: 7\nf: -0\ng: '7'\nh:\ni: true\nj: 0x1\nk: +1\nl: 18446744073709551615\nm: 99999999999999999999\n";
        let value = parse_layout(text).unwrap().root.to_value();
        assert_eq!(
            value,
            serde_json::json!({"a": "1.10", "b": "012", "c": "no", "d": null, "e": 7, "f": "-0", "g": "7", "h": null,
                "i": true, "j": "0x1", "k": "+1", "l": 18_446_744_073_709_551_615_u64, "m": "99999999999999999999"})
        );
    }

    #[test]
    fn what_hides_values_is_refused_by_line() {
        for (text, line) in [
            ("a: &x 1\nb: *x\n", 1),
            ("a: 1\nb: *x\n", 2),
            ("a: 1\n<<: {b: 1}\n", 2),
            ("a: !!str 1\n", 1),
            ("a: 1\nb: 2\na: 3\n", 3),
            ("a: 1\n---\nb: 1\n", 2),
            ("a: 1\n? [x]\n: 2\n", 2),
            ("a: [1\nb: 2\n", 2),
        ] {
            let refused = parse_layout(text).unwrap_err();
            assert_eq!(refused.line, line, "{text:?}: {}", refused.why);
        }
        assert!(parse_layout(&"[".repeat(80)).is_err());
        assert_eq!(parse_layout("").unwrap().root.to_value(), Value::Null);
    }
}
