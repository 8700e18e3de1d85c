//! The only writer of YAML: block style, map order kept, and nothing that two readers could read as different values
//! (`docs/design/gitops-repository.md#files`: all that we write means the same under YAML 1.1 and 1.2).
//!
//! A string is written without quotes only if no resolver of any version could see a bool, null, number, time, merge
//! key or indicator in it; everything else is quoted. Text of several lines becomes a literal block if that is exact.
//! Must not know what the values mean.

use serde_json::{Map, Number, Value};
use std::fmt::Write as _;

/// Longest key written before a plain `:`; the YAML limit for such keys is 1024 characters, escapes included.
const SIMPLE_KEY: usize = 512;

/// The document of `value`, ending in exactly one newline.
///
/// ```
/// use kube_yaml::emit::format_document;
/// let value = serde_json::json!({"name": "no", "path": ".", "digest": "sha256:1f", "args": ["a", {"b": 1}]});
/// assert_eq!(format_document(&value), "name: \"no\"\npath: \".\"\ndigest: sha256:1f\nargs:\n- a\n- b: 1\n");
/// ```
#[must_use]
pub fn format_document(value: &Value) -> String {
    let mut out = String::with_capacity(1024);
    match value {
        Value::Object(map) if !map.is_empty() => push_entries(&mut out, map, 0),
        Value::Array(items) if !items.is_empty() => push_elements(&mut out, items, 0),
        Value::String(text) => {
            push_string(&mut out, text, None);
            out.push('\n');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) | Value::Array(_) => {
            push_after_colon(&mut out, value, 0);
        }
    }
    out
}

/// `key: value` and everything below it, each line indented by `indent` spaces, ending in a newline.
pub fn push_entry(out: &mut String, key: &str, value: &Value, indent: usize) {
    push_indent(out, indent);
    push_entry_here(out, key, value, indent);
}

/// `- value` and everything below it, with the dash at column `indent`, ending in a newline.
pub fn push_element(out: &mut String, value: &Value, indent: usize) {
    push_indent(out, indent);
    out.push('-');
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push(' ');
            for (i, (key, value)) in map.iter().enumerate() {
                if i > 0 {
                    push_indent(out, indent + 2);
                }
                push_entry_here(out, key, value, indent + 2);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            push_elements(out, items, indent + 2);
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Object(_)
        | Value::Array(_) => push_after_colon(out, value, indent),
    }
}

/// A string on one line, quoted if any reader could misread it; used for edits in place.
#[must_use]
pub fn format_scalar(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    push_string(&mut out, text, None);
    out
}

fn push_entries(out: &mut String, map: &Map<String, Value>, indent: usize) {
    for (key, value) in map {
        push_entry(out, key, value, indent);
    }
}

fn push_elements(out: &mut String, items: &[Value], indent: usize) {
    for item in items {
        push_element(out, item, indent);
    }
}

/// An entry whose line is already indented.
fn push_entry_here(out: &mut String, key: &str, value: &Value, indent: usize) {
    let start = out.len();
    push_string(out, key, None);
    if out.len() - start > SIMPLE_KEY {
        out.insert_str(start, "? ");
        out.push('\n');
        push_indent(out, indent);
    }
    out.push(':');
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            push_entries(out, map, indent + 2);
        }
        // As in kubectl: the dash is below the key's first letter.
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            push_elements(out, items, indent);
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Object(_)
        | Value::Array(_) => push_after_colon(out, value, indent),
    }
}

/// A scalar or an empty collection after `key:` or `-` (or alone, as a whole document).
fn push_after_colon(out: &mut String, value: &Value, indent: usize) {
    if !out.is_empty() {
        out.push(' ');
    }
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(n) => push_number(out, n),
        Value::String(text) => push_string(out, text, Some(indent + 2)),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
}

/// YAML 1.1 reads a float only with a dot and a signed exponent: `1e300` is a string there.
fn push_number(out: &mut String, n: &Number) {
    let text = n.to_string();
    match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            let dot = if mantissa.contains('.') { "" } else { ".0" };
            let sign = if exponent.starts_with(['-', '+']) { "" } else { "+" };
            let _ = write!(out, "{mantissa}{dot}e{sign}{exponent}");
        }
        None => out.push_str(&text),
    }
}

/// A string; as a literal block indented by `block` if possible. A block ends in its own newline.
fn push_string(out: &mut String, text: &str, block: Option<usize>) {
    if is_plain(text) {
        out.push_str(text);
    } else if let (Some(indent), true) = (block, is_literal(text)) {
        out.push_str(if text.ends_with('\n') { "|\n" } else { "|-\n" });
        for line in text.lines() {
            if !line.is_empty() {
                push_indent(out, indent);
                out.push_str(line);
            }
            out.push('\n');
        }
    } else {
        push_quoted(out, text);
    }
}

/// Whether a string needs no quotes: it begins with a letter or `/`, contains nothing that could end or structure it,
/// and is not a word that any YAML version reads as another type.
fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(&first), Some(&last)) = (bytes.first(), bytes.last()) else { return false };
    if !(first.is_ascii_alphabetic() || first == b'/') || last == b' ' || last == b':' {
        return false;
    }
    let simple = bytes.iter().enumerate().all(|(i, &b)| match b {
        b':' => bytes.get(i + 1) != Some(&b' '),
        b'#' => bytes[i - 1] != b' ',
        b' ' | b'_' | b'-' | b'.' | b'/' | b'@' | b'=' | b'+' | b'(' | b')' | b';' | b'\'' | b'<' | b'>'
        | b'*' | b'&' | b'!' | b'?' | b'%' | b'~' | b'$' | b'^' => true,
        _ => b.is_ascii_alphanumeric(),
    });
    simple && !is_word(text)
}

/// Words that some resolver reads as a bool, a null or a float.
fn is_word(text: &str) -> bool {
    const WORDS: [&str; 12] =
        ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nil", "nan", "inf"];
    text.len() <= 5 && WORDS.iter().any(|w| w.eq_ignore_ascii_case(text))
}

/// Whether a literal block can hold exactly this text: several lines, none beginning or ending with a space, at most
/// one newline at the end, nothing that needs an escape.
fn is_literal(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    body.contains('\n')
        && !body.ends_with('\n')
        && !body.starts_with('\n')
        && body.split('\n').all(|line| {
            !line.starts_with([' ', '\t']) && !line.ends_with([' ', '\t']) && !line.chars().any(needs_escape)
        })
}

fn push_quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if needs_escape(c) => {
                let code = u32::from(c);
                let _ = match code {
                    0..=0xFF => write!(out, "\\x{code:02X}"),
                    0x100..=0xFFFF => write!(out, "\\u{code:04X}"),
                    _ => write!(out, "\\U{code:08X}"),
                };
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Characters that a reader refuses, reads as a line break or drops, and those that show a reviewer something
/// different from the real content (bidirectional and zero-width marks).
fn needs_escape(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00AD}' | '\u{061C}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{E000}'..='\u{F8FF}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFF0}'..='\u{FFFF}'
            | '\u{E0000}'..='\u{10FFFF}')
}

fn push_indent(out: &mut String, indent: usize) {
    const SPACES: &str = "                                ";
    let mut left = indent;
    while left > 0 {
        let step = left.min(SPACES.len());
        out.push_str(&SPACES[..step]);
        left -= step;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use serde_json::json;

    #[test]
    fn what_any_reader_could_misread_is_quoted() {
        for text in [
            "no",
            "on",
            "y",
            "Y",
            "n",
            "N",
            "yes",
            "off",
            "NULL",
            "~",
            "true",
            "12:30:45",
            "1_000",
            "012e4",
            "0x1F",
            "1.10",
            "=",
            "<<",
            "2001-01-01",
            ".inf",
            ".",
            "-",
            "- a",
            "? a",
            ": a",
            "a: b",
            "a #b",
            "a:",
            " a",
            "a ",
            "",
            "#a",
            "[a",
            "{a",
            "*a",
            "&a",
            "!a",
            "|",
            ">",
            "%a",
            "@a",
            "`a",
            "'a",
            "\"a",
            "a\tb",
            "---",
            "...",
            "+1",
            "é",
            "a, b",
            "a]",
            "\u{feff}a",
        ] {
            assert!(format_scalar(text).starts_with('"'), "{text:?} is written {}", format_scalar(text));
        }
        for text in [
            "sha256:0f",
            "oci://r.example:5000/a",
            "https://k.svc",
            "ServerSideApply=true",
            "a b",
            "notes",
            "/a",
        ] {
            assert_eq!(format_scalar(text), text);
        }
    }

    #[test]
    fn what_readers_swallow_or_people_cannot_see_is_escaped() {
        assert_eq!(
            format_scalar("a\u{85}\u{2028}\u{7f}\u{feff}\u{202e}\0\u{e000}\u{10ffff}"),
            r#""a\x85\u2028\x7F\uFEFF\u202E\x00\uE000\U0010FFFF""#
        );
    }

    #[test]
    fn several_lines_are_a_block_where_that_is_exact() {
        assert_eq!(format_document(&json!({"a": "x\n\ny: z\n"})), "a: |\n  x\n\n  y: z\n");
        assert_eq!(format_document(&json!({"a": ["x\ny"]})), "a:\n- |-\n  x\n  y\n");
        for text in ["x\n", " x\ny", "x \ny", "x\ny\n\n", "\nx", "x\r\ny"] {
            assert!(format_document(&json!({"a": text})).starts_with("a: \""), "{text:?}");
        }
    }

    #[test]
    fn shapes() {
        let value =
            json!({"e": {}, "l": [], "n": null, "ll": [[1, [2]], {"a": {"b": [true]}, "c": -1}], "f": 1e300});
        assert_eq!(
            format_document(&value),
            "e: {}\nl: []\n\"n\": null\nll:\n-\n  - 1\n  -\n    - 2\n- a:\n    b:\n    - true\n  c: -1\nf: 1.0e+300\n"
        );
        assert_eq!(format_document(&json!("no")), "\"no\"\n");
        assert_eq!(format_document(&json!({})), "{}\n");
        let key = "k".repeat(2000);
        let long = format_document(&json!({ &key: {"a": 1} }));
        assert_eq!(long, format!("? {key}\n:\n  a: 1\n"));
    }
}
