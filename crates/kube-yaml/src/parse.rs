//! Turns text into trees, one for each document. Each document has its own result: an error in one does not affect
//! the others.
//!
//! Strict where a lenient reader could lose a rule: a duplicate key is an error at the second one, merge keys are
//! expanded or refused, aliases are expanded within a budget, nesting is bounded.

use crate::node::Node;
use crate::tree::Tree;
use crate::{Error, Position, plain};
use granit_parser::{ErrorKind, Event, Marker, Parser, ScanError};
use std::ops::Range;

/// Deepest nesting of collections; real files have about ten.
pub const DEPTH: usize = 100;

/// One document that is not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The tree; after an error that ends the document, the part before it. `None`: nothing could be read.
    pub node: Option<Node>,
    /// Its errors; empty: the tree is complete.
    pub errors: Vec<Error>,
    /// Whether the text could be read to the document's end. If there are errors as well, each is about a key (a
    /// duplicate, an invalid merge), and the rest of the tree is complete.
    pub complete: bool,
    /// Its bytes in the text, up to where the next one begins.
    pub range: Range<usize>,
    /// Its index among the file's documents, including empty ones, from 0.
    pub index: u32,
}

/// The bytes of a file as text.
///
/// # Errors
/// It is not UTF-8, or contains a control character that YAML forbids.
pub fn decode_text(bytes: &[u8]) -> Result<&str, Error> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let at = find_position(&bytes[..e.valid_up_to()]);
        let error = Error::new("not-utf8", at, "is not UTF-8");
        match bytes {
            [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => error.with_hint("it looks like UTF-16; save it as UTF-8"),
            _ => error.with_hint("save it as UTF-8"),
        }
    })?;
    let control = |b: &u8| *b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r');
    match bytes.iter().position(control) {
        Some(place) => Err(Error::new(
            "control-character",
            find_position(&bytes[..place]),
            format!("contains the control character U+{:04X}, which YAML forbids", bytes[place]),
        )),
        None => Ok(text),
    }
}

/// Where the text after `before` begins.
fn find_position(before: &[u8]) -> Position {
    let line = before.iter().filter(|b| **b == b'\n').count() + 1;
    let start = before.iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
    let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
    Position { line: clamp_count(line), column: clamp_count(column) }
}

fn clamp_count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn make_position(mark: &Marker) -> Position {
    Position { line: clamp_count(mark.line()), column: clamp_count(mark.col() + 1) }
}

/// Every non-empty document of a text.
#[must_use]
pub fn parse_documents(text: &str) -> Vec<Document> {
    match plain::parse_documents(text) {
        Some(found) => set_ends(text, found.into_iter().map(Document::from).collect()),
        None => set_ends(text, scan_documents(text)),
    }
}

/// Each document ends where the next begins.
fn set_ends(text: &str, mut documents: Vec<Document>) -> Vec<Document> {
    let mut end = text.len();
    for document in documents.iter_mut().rev() {
        document.range.end = end;
        end = document.range.start;
    }
    documents
}

impl From<plain::Plain> for Document {
    fn from(plain: plain::Plain) -> Self {
        let plain::Plain { node, start, index } = plain;
        Self { node: Some(node), errors: Vec::new(), complete: true, range: start..start, index }
    }
}

/// Reads a text with the full scanner.
pub(crate) fn scan_documents(text: &str) -> Vec<Document> {
    let mut options = granit_parser::Options::default();
    options.set_emit_comments(false);
    options.flow_nesting_limit = DEPTH;
    options.block_nesting_limit = DEPTH;
    let mut parser = Parser::new_from_str_with_options(text, options);
    let mut documents: Vec<Document> = Vec::new();
    let mut tree = Tree::default();
    let mut index = 0;
    let mut start = 0;
    let mut add = |tree: &mut Tree, start, index| {
        let Tree { root, errors, broken, .. } = std::mem::take(tree);
        let node = root.filter(|node| !node.is_null());
        if node.is_some() || !errors.is_empty() {
            documents.push(Document { node, errors, complete: !broken, range: start..start, index });
        }
    };
    while let Some(event) = parser.next() {
        match event {
            Ok((Event::DocumentStart(..), span)) => start = span.start.byte_offset().unwrap_or(start),
            Ok((Event::DocumentEnd, _)) => {
                add(&mut tree, start, index);
                index += 1;
            }
            Ok((event, span)) => tree.take_event(event, make_position(&span.start)),
            Err(error) => {
                if !tree.broken {
                    tree.fail_with(make_syntax_error(&error));
                }
                add(&mut tree, start, index);
                index += 1;
                start = error.marker().byte_offset().unwrap_or(start).min(text.len());
                if !matches!(parser.proceed_next_document(), Ok(true)) {
                    break;
                }
            }
        }
    }
    documents
}

/// The one document of a text.
///
/// # Errors
/// There is none, there are several, or it has an error.
pub fn parse_one(text: &str) -> Result<Node, Error> {
    let mut documents = parse_documents(text).into_iter();
    let start = Position { line: 1, column: 1 };
    let mut first = documents.next().ok_or_else(|| Error::new("empty", start, "is empty"))?;
    if !first.errors.is_empty() {
        return Err(first.errors.swap_remove(0));
    }
    if let Some(second) = documents.next() {
        let place = find_position(&text.as_bytes()[..second.range.start]);
        return Err(Error::new(
            "second-document",
            place,
            "a second document starts here, but only one is allowed",
        ));
    }
    first.node.ok_or_else(|| Error::new("empty", start, "is empty"))
}

/// Turns the scanner's error into plain words.
fn make_syntax_error(error: &ScanError) -> Error {
    let place = make_position(error.marker());
    match error.kind() {
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart => {
            Error::new("syntax", place, "there is a tab where YAML requires spaces")
                .with_hint("indent with spaces")
        }
        ErrorKind::RecursionLimitExceeded => make_too_deep(place),
        ErrorKind::UnknownAnchor => Error::new("alias", place, "an alias names no earlier anchor"),
        _ => Error::new("syntax", place, format!("is not valid YAML: {}", error.info())),
    }
}

/// The error of nesting beyond [`DEPTH`].
pub(crate) fn make_too_deep(place: Position) -> Error {
    Error::new("too-deep", place, format!("is nested more than {DEPTH} levels deep"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::node::{Scalar, Style, Value};
    use proptest::prelude::*;

    fn tree(text: &str) -> Node {
        parse_one(text).unwrap_or_else(|e| panic!("{e}"))
    }

    fn error(text: &str) -> String {
        parse_one(text).map(|n| format!("{n:?}")).unwrap_err().to_string()
    }

    fn values(text: &str) -> Vec<String> {
        tree(text).pairs().iter().map(|p| p.value.as_text().unwrap_or("-").to_owned()).collect()
    }

    #[test]
    fn scalars_keep_their_characters() {
        let text = "a: 1.10\nb: 012e4\nc: 680841e1\nd: 0x1F\ne: 1_000\nf: 12:30:45\ng: no\nh: 2001-01-01\ni: 1.0e+3\n";
        let want = ["1.10", "012e4", "680841e1", "0x1F", "1_000", "12:30:45", "no", "2001-01-01", "1.0e+3"];
        assert_eq!(values(text), want);
        let json = r#"{"a": 1.10, "b": 1e400, "c": "\ud834\udd1e", "d": -0}"#;
        assert_eq!(values(json), ["1.10", "1e400", "\u{1d11e}", "-0"]);
    }

    #[test]
    fn a_key_written_twice_is_an_error_at_the_second() {
        assert_eq!(error("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n"), "5:3: the key \"c\" is written twice");
        assert_eq!(error("{\"a\": 1,\n \"a\": 2}"), "2:2: the key \"a\" is written twice");
        assert_eq!(error("a: 1\n\"a\": 2"), "2:1: the key \"a\" is written twice");
        let many: String = (0..100).map(|n| format!("k{n}: 1\n")).collect();
        assert_eq!(error(&format!("{many}k7: 2\n")), "101:1: the key \"k7\" is written twice");
        assert_eq!(error(&format!("{many}k77: 2\n")), "101:1: the key \"k77\" is written twice");
        // The rest of the tree is there, so that the object is known.
        let documents = parse_documents("a: 1\na: 2\nb: 3\n");
        assert!(documents[0].complete);
        assert_eq!(documents[0].node.as_ref().unwrap().get("b").unwrap().as_text(), Some("3"));
    }

    #[test]
    fn merge_keys_are_expanded_or_refused() {
        let text = "base: &b {x: 1, y: 2}\nmore: &m {y: 3, z: 4}\n";
        let merged = tree(&format!("{text}o:\n  y: 0\n  <<: [*b, *m]\n"));
        let keys: Vec<_> = merged
            .get("o")
            .unwrap()
            .pairs()
            .iter()
            .map(|p| (p.key.as_str(), p.value.as_text().unwrap()))
            .collect();
        assert_eq!(
            keys,
            [("y", "0"), ("x", "1"), ("z", "4")],
            "the mapping's own key wins, then the first merged one"
        );
        assert_eq!(
            tree(&format!("{text}o: {{<<: *b}}")).find_value(&["o", "x"]).unwrap().as_text(),
            Some("1")
        );
        for wrong in ["o: {<<: 1}", "o: {<<: [1]}", "o:\n  <<:\n", "o: {<<: null}"] {
            assert!(error(wrong).contains("the merge key << takes"), "{wrong}");
        }
        assert!(error(&format!("{text}o:\n  <<: *b\n  <<: *m\n")).contains("written twice"));
        assert_eq!(tree("\"<<\": 1").pairs()[0].key, "<<", "in quotes it is an ordinary key");
    }

    #[test]
    fn an_alias_bomb_is_refused() {
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for n in 1..9 {
            let row = vec![format!("*a{}", n - 1); 10].join(", ");
            text.push_str(&format!("a{n}: &a{n} [{row}]\n"));
        }
        assert!(error(&text).contains("16 MB"));
        // A long text behind many aliases, and anchors inside anchors.
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; 1000].join(","));
        assert!(error(&long).contains("16 MB"));
        assert!(error("a: &a [*a]").contains("inside the value"));
        assert!(error("a: *b").contains("names no earlier anchor"));
        assert_eq!(tree("a: &x no\nb: *x").get("b").unwrap().as_text(), Some("no"));
    }

    #[test]
    fn nesting_is_bounded() {
        for (open, close) in [("[", "]"), ("{a: ", "}")] {
            let deep = |n: usize| format!("{}1{}", open.repeat(n), close.repeat(n));
            assert!(parse_one(&deep(DEPTH)).is_ok());
            assert!(error(&deep(DEPTH + 1)).contains("100 levels"));
            assert!(error(&open.repeat(20_000)).contains("100 levels"));
        }
        let block: String = (0..500).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
        assert!(error(&block).contains("100 levels"));
        assert!(error(&"- ".repeat(5000)).contains("100 levels"));
        let mixed = format!("{}{}{}", "- ".repeat(60), "[".repeat(60), "]".repeat(60));
        assert!(error(&mixed).contains("100 levels"));
        let mut ladder = String::from("a0: &a0 [x]\n");
        for n in 1..300 {
            ladder.push_str(&format!("a{n}: &a{n} [*a{}]\n", n - 1));
        }
        assert!(error(&ladder).contains("100 levels"));
    }

    #[test]
    fn documents_stand_for_themselves() {
        let text = "\u{feff}---\r\n# nothing\r\n---\r\na: 1\r\n---\r\n---\r\nb: 2\r\n...\r\n---\r\n";
        let found = parse_documents(text);
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|d| d.errors.is_empty()));
        assert_eq!(found[0].node.as_ref().unwrap().at, Position { line: 4, column: 1 });
        assert_eq!(found[1].index, 3);
        assert!(
            parse_documents("").is_empty()
                && parse_documents("# a\n").is_empty()
                && parse_documents("---\n").is_empty()
        );
        assert!(parse_documents("\u{feff}").is_empty());
        assert_eq!(tree("\u{feff}a: 1").pairs()[0].key, "a");
    }

    #[test]
    fn a_broken_document_leaves_the_others() {
        let text = "a: 1\n---\nkind: Order\nmetadata: {name: x}\nb: [1, 2\nc: 3\n---\nd: 4\n";
        let found = parse_documents(text);
        assert_eq!(found.len(), 3);
        assert!(found[0].errors.is_empty() && found[2].errors.is_empty());
        assert!(!found[1].complete);
        assert!(text[found[1].range.clone()].starts_with("---\nkind: Order"));
        assert!(text[found[1].range.clone()].ends_with("c: 3\n"));
        let partial = found[1].node.as_ref().unwrap();
        assert_eq!(partial.find_value(&["metadata", "name"]).unwrap().as_text(), Some("x"));
    }

    #[test]
    fn tabs_tags_and_bytes() {
        let json = "{\n\t\"a\":1,\n\t\"b\\/\": [\n\t\t\"c\"\n\t]\n}\n";
        assert_eq!(
            tree(json).get("b/").unwrap().items()[0].as_text(),
            Some("c"),
            "JSON may be indented by tabs"
        );
        let broken = parse_documents("a: 1\na: 2\n? [b\n");
        assert_eq!(broken[0].errors.last().unwrap().code, "syntax", "the error that ends it is the last");
        assert!(error("a:\n\tb: 1\n").contains("tab"), "{}", error("a:\n\tb: 1\n"));
        assert_eq!(tree("!!str 1").value, Value::Scalar(Scalar { text: "1".into(), style: Style::Quoted }));
        assert_eq!(tree("! 1").value, Value::Scalar(Scalar { text: "1".into(), style: Style::Quoted }));
        assert_eq!(tree("!Ref a").value, Value::Scalar(Scalar { text: "a".into(), style: Style::Tagged }));
        assert_eq!(decode_text(b"a: \xff").unwrap_err().to_string(), "1:4: is not UTF-8");
        assert_eq!(decode_text(b"a: 1\nb: \0").unwrap_err().at, Position { line: 2, column: 4 });
        assert!(decode_text(b"\xff\xfea\0").unwrap_err().hint.unwrap().contains("UTF-16"));
        assert!(error("[a]: 1").contains("cannot be a key"));
        assert!(error("a: 1\n---\nb: 2").contains("second document"));
    }

    #[test]
    fn a_large_file_is_read() {
        // In a release build 10 MB of this (a million nodes) take about two seconds.
        let row = "- {name: a, value: \"b\", more: [1, 2, 3]}\n";
        let node = tree(&row.repeat(5_000));
        assert_eq!(node.items().len(), 5_000);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC*|[-:?#&*!|>'\"%@`{}\\[\\],a\\n\\t <~.0]{0,120}") {
            let found = parse_documents(&text);
            for document in &found {
                prop_assert!(document.node.is_some() || !document.errors.is_empty());
            }
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(text) = decode_text(&bytes) {
                let _ = parse_documents(text);
            }
        }

        #[test]
        fn quoted_text_comes_back(words in proptest::collection::vec("\\PC{0,20}", 1..6)) {
            let json = serde_json::to_string(&words).unwrap();
            let back = tree(&json).items().iter().map(|n| n.as_text().unwrap().to_owned()).collect::<Vec<_>>();
            prop_assert_eq!(back, words);
        }
    }
}
