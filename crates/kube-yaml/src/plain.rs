//! A fast parser for YAML as tools write it: block mappings and sequences of one-line scalars.
//!
//! Most files of a fleet have this shape, and the full scanner takes ten times as long for them. Nothing is guessed:
//! anything else (a comment after a value, a flow collection, an escape, an anchor, a tag, a tab, a text of several
//! lines, a null, a duplicate key) gives `None`, and [`super::parse`] uses the full scanner. Both parsers give the
//! same trees and positions; a property test checks this.

use crate::Position;
use crate::node::{Node, Pair, Scalar, Style, Value};

/// Deepest nesting taken here.
const DEPTH: usize = 40;
/// Most keys of a mapping taken here, because each is compared with all previous ones.
const KEYS: usize = 64;
/// Longest key taken here; YAML's own limit is 1024.
const KEY: usize = 200;

/// One document and the line it begins in.
pub struct Plain {
    /// Its tree.
    pub node: Node,
    /// The byte of its first key, or of the `---` before it.
    pub start: usize,
    /// Its index among the documents, including empty ones.
    pub index: u32,
}

/// A line with content.
#[derive(Clone, Copy)]
struct PlainLine<'t> {
    /// From 1.
    number: u32,
    /// Of `text`, in the whole text.
    byte: usize,
    /// Columns before `text`, from 0. There are only spaces and dashes before it, so a column is a byte.
    indent: usize,
    text: &'t str,
}

/// Every document of `text`, if all of them have the plain shape.
#[must_use]
pub fn parse_documents(text: &str) -> Option<Vec<Plain>> {
    let mut found = Vec::new();
    let mut lines: Vec<PlainLine<'_>> = Vec::new();
    let mut marker = None;
    let mut index = 0;
    let mut next = 0;
    for (line, number) in text.split_terminator('\n').zip(1..) {
        let byte = next;
        next += line.len() + 1;
        if line == "---" {
            if marker.is_some() || !lines.is_empty() {
                close_document(&mut lines, marker, index, &mut found)?;
                index += 1;
            }
            marker = Some(byte);
            continue;
        }
        let text = line.trim_start_matches(' ');
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        // A line that ends in spaces or contains special characters is left to the full scanner.
        if text.ends_with(' ')
            || !text.chars().all(is_ordinary)
            || line.starts_with("...")
            || line.starts_with("---")
        {
            return None;
        }
        let indent = line.len() - text.len();
        lines.push(PlainLine { number, byte: byte + indent, indent, text });
    }
    if marker.is_some() || !lines.is_empty() {
        close_document(&mut lines, marker, index, &mut found)?;
    }
    Some(found)
}

/// Characters that every YAML reader treats as one ordinary character of a line.
fn is_ordinary(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

fn close_document(
    lines: &mut Vec<PlainLine<'_>>,
    marker: Option<usize>,
    index: u32,
    found: &mut Vec<Plain>,
) -> Option<()> {
    let Some(first) = lines.first().copied() else { return Some(()) };
    let mut block = Block { lines, next: 0 };
    let node = block.read_block(first.indent, 0)?;
    // An indented root, or remaining lines, are left to the full scanner.
    if first.indent != 0 || block.next != block.lines.len() {
        return None;
    }
    found.push(Plain { node, start: marker.unwrap_or(first.byte), index });
    lines.clear();
    Some(())
}

struct Block<'b, 't> {
    lines: &'b mut Vec<PlainLine<'t>>,
    next: usize,
}

impl<'t> Block<'_, 't> {
    fn peek(&self) -> Option<PlainLine<'t>> {
        self.lines.get(self.next).copied()
    }

    /// The mapping or sequence whose lines begin at this column.
    fn read_block(&mut self, indent: usize, depth: usize) -> Option<Node> {
        if depth > DEPTH {
            return None;
        }
        if self.peek()?.text.starts_with("- ") {
            self.read_sequence(indent, depth)
        } else {
            self.read_mapping(indent, depth)
        }
    }

    fn read_sequence(&mut self, indent: usize, depth: usize) -> Option<Node> {
        let at = make_position(self.peek()?);
        let mut items = Vec::new();
        while let Some(line) = self.peek() {
            let Some(rest) = line.text.strip_prefix("- ").filter(|_| line.indent == indent) else {
                if line.indent > indent {
                    return None;
                }
                break;
            };
            let inner = PlainLine { indent: indent + 2, text: rest, ..line };
            if rest.starts_with([' ', '-']) {
                return None;
            }
            if split_key(rest).is_some() {
                // The item is a mapping whose first key is after the dash.
                self.lines[self.next] = inner;
                items.push(self.read_mapping(indent + 2, depth + 1)?);
            } else {
                self.next += 1;
                items.push(self.read_scalar(inner, indent)?);
            }
        }
        Some(Node { value: Value::Sequence(items), at })
    }

    fn read_mapping(&mut self, indent: usize, depth: usize) -> Option<Node> {
        let at = make_position(self.peek()?);
        let mut pairs: Vec<Pair> = Vec::new();
        while let Some(line) = self.peek() {
            if line.indent < indent {
                break;
            }
            // After an indentless sequence comes the next key; a dash here ends the mapping of a sequence's item.
            let (name, rest) = split_key(line.text).filter(|_| line.indent == indent)?;
            if pairs.len() >= KEYS || pairs.iter().any(|p| p.key == name) {
                return None;
            }
            self.next += 1;
            let value = if rest.is_empty() {
                let below = self.peek()?;
                let deeper = below.indent > indent;
                let indentless = below.indent == indent && below.text.starts_with("- ");
                if !deeper && !indentless {
                    return None;
                }
                let mut node = self.read_block(below.indent, depth + 1)?;
                if let (true, Some(first)) = (indentless, node.items().first().map(|item| item.at)) {
                    // As in the scanner: a sequence whose dashes are not indented begins at its first item.
                    node.at = first;
                }
                node
            } else {
                let column = indent + (line.text.len() - rest.len());
                self.read_scalar(PlainLine { indent: column, text: rest, ..line }, indent)?
            };
            pairs.push(Pair { key: name.to_owned(), at: make_position(line), value });
        }
        Some(Node { value: Value::Mapping(pairs), at })
    }

    /// A one-line scalar inside a collection at `indent`; a deeper line after it could continue it.
    fn read_scalar(&self, line: PlainLine<'_>, indent: usize) -> Option<Node> {
        if self.peek().is_some_and(|next| next.indent > indent) {
            return None;
        }
        let value = match line.text.as_bytes() {
            b"{}" => Value::Mapping(Vec::new()),
            b"[]" => Value::Sequence(Vec::new()),
            [quote @ (b'"' | b'\''), .., end] if quote == end => {
                let text = line.text.get(1..line.text.len() - 1)?;
                if text.contains([char::from(*quote), '\\']) {
                    return None;
                }
                Value::Scalar(Scalar { text: text.to_owned(), style: Style::Quoted })
            }
            _ if is_plain(line.text) => {
                Value::Scalar(Scalar { text: line.text.to_owned(), style: Style::Plain })
            }
            _ => return None,
        };
        Some(Node { value, at: make_position(line) })
    }
}

fn make_position(line: PlainLine<'_>) -> Position {
    let column = u32::try_from(line.indent + 1).unwrap_or(u32::MAX);
    Position { line: line.number, column }
}

/// An unquoted key and the text after its colon.
fn split_key(text: &str) -> Option<(&str, &str)> {
    let letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'/' | b'-');
    let end = text.bytes().position(|b| !letter(b))?;
    let (name, rest) = text.split_at(end);
    let rest = rest.strip_prefix(':')?;
    if name.is_empty() || name.len() > KEY || !name.as_bytes()[0].is_ascii_alphanumeric() {
        return None;
    }
    match rest.strip_prefix(' ') {
        Some(value) if value.starts_with(' ') => None,
        Some(value) => Some((name, value)),
        None => rest.is_empty().then_some((name, rest)),
    }
}

/// Whether this text can be unquoted on its line without another meaning.
fn is_plain(text: &str) -> bool {
    let start = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'/');
    text.as_bytes().first().is_some_and(|b| start(*b))
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with(':')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::parse::{Document, scan_documents};
    use proptest::prelude::*;

    /// Checks that the fast parser gives the same result as the full one, or none.
    fn agree(text: &str) -> bool {
        match parse_documents(text) {
            Some(found) => {
                let quick: Vec<Document> = found.into_iter().map(Document::from).collect();
                assert_eq!(quick, scan_documents(text), "{text:?}");
                true
            }
            None => false,
        }
    }

    #[test]
    fn the_quick_way_reads_what_tools_write() {
        let taken = [
            "a: 1\n",
            "---\na: b c\n",
            "a:\n  b: {}\n  c: []\n",
            "a:\n- b\n- c: 1\n  d: \"x y\"\ne: 'f'\n",
            "# c\na:\n  # d\n\n  - b: c\n    d:\n    - e\n  - f\n",
            "---\n---\na: 1\n---\n# x\n---\nb: 1\n---\n",
            "a: x#y\nb: http://c:80/d\nc: sha256:0a\nd: 12:30\ne: aö…\n",
            "- a\n- b: c\n",
            "a/b.c-d_e: 1",
            "",
        ];
        for text in taken {
            assert!(agree(text), "{text:?}");
        }
        let left = [
            "a: 1\na: 2\n",
            "a:\n",
            "a: \n",
            "a: b\n  c\n",
            "a: b # c\n",
            "a: {b: c}\n",
            "a: |\n  b\n",
            "a: &b c\n",
            "a: \"\\n\"\n",
            "a: 'it''s'\n",
            "a: b: c\n",
            "? a\n",
            "a:\tb\n",
            "a: b\r\n",
            " a: 1\n",
            "a:\n - b\n  - c\n",
            "--- a\n",
            "a: 1\n...\n",
            "<<: a\n",
            "- - a\n",
            "-\n  a: 1\n",
            "a: \u{2028}\n",
            "\u{feff}a: 1\n",
            "a\n",
            "\"a\": 1\n",
            "- a\nb: 1\n",
            "a: - b\n",
            "a: [\n",
        ];
        for text in left {
            assert!(!agree(text), "{text:?}");
        }
    }

    /// Values in the form of our own writer.
    fn writable() -> impl Strategy<Value = serde_json::Value> {
        let text = "[a-z0-9 :#'\"\\\\-]{0,8}|sha256:[0-9a-f]{8}|no|\\PC{0,6}|a\nb";
        let leaf = prop_oneof![
            text.prop_map(serde_json::Value::from),
            any::<bool>().prop_map(serde_json::Value::from),
            any::<i32>().prop_map(serde_json::Value::from),
            Just(serde_json::Value::Null),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
                proptest::collection::btree_map("[a-zA-Z./-]{1,8}", inner, 0..4)
                    .prop_map(|m| serde_json::Value::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_quick_way_agrees_on_what_we_write(values in proptest::collection::vec(writable(), 1..3)) {
            let texts: Vec<String> = values.iter().map(crate::emit::format_document).collect();
            agree(&texts.join("---\n"));
        }

        #[test]
        fn the_quick_way_agrees_on_near_misses(
            lines in proptest::collection::vec(
                "( {0,4}|- | {2}- )(([a-c]|a/b): ?)?([a-c.0-9/]{0,3}|\"a\"|'b'|\\{\\}|\\[\\]|---|a: b|#x| #y|- z|: |\\|)[ :]?",
                0..7,
            ),
            end in any::<bool>(),
        ) {
            agree(&(lines.join("\n") + if end { "\n" } else { "" }));
        }
    }
}
