//! YAML as Kubernetes users write it: parsed with positions and exact scalars, written so that 1.1 and 1.2 readers agree.
//!
//! [`parse`] turns text into a tree of [`node::Node`]s that keeps every scalar's characters and place; [`de`]
//! reads a tree into a typed value, with the field's path in every error and every unknown key reported;
//! [`emit`] writes values; [`layout`] reads one document with the byte range of every node, for an edit in place.
//! JSON is YAML: `.json` files are read in the same way.
//!
//! The crate must not know what the values mean: no kinds of objects, no files, no policy, no exit status.
//!
//! ```
//! use kube_yaml::{emit, parse};
//!
//! let text = "kind: Order\nspec:\n  image:\n    version: 1.10\n";
//! let tree = parse::parse_one(text).unwrap();
//! let version = tree.find_value(&["spec", "image", "version"]).unwrap();
//! assert_eq!(version.as_text(), Some("1.10"), "the characters, not the number 1.1");
//! assert_eq!((version.at.line, version.at.column), (4, 14));
//!
//! let error = parse::parse_one("a: 1\nb: 2\na: 3\n").unwrap_err();
//! assert_eq!(error.to_string(), "3:1: the key \"a\" is written twice");
//!
//! // Quoted, because a YAML 1.1 reader would read it as a boolean.
//! assert_eq!(emit::format_document(&serde_json::json!({"country": "no"})), "country: \"no\"\n");
//! ```

pub mod de;
pub mod emit;
pub mod layout;
pub mod node;
pub mod parse;
mod plain;
pub mod spelling;
mod tree;

use std::fmt;

/// A place in a text. Both count from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The character in the line.
    pub column: u32,
}

/// A problem with a text or a value in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Stable: `syntax`, `duplicate-key`, `merge-key`, `alias`, `too-deep`, `wrong-type`, …
    pub code: &'static str,
    /// Where.
    pub at: Position,
    /// The field, `spec.promotion.upstream[0].soak`; empty if it is not about a field.
    pub path: String,
    /// Why. Never quotes a value that no typed field reads, because it may be a secret.
    pub cause: String,
    /// What to do next.
    pub hint: Option<String>,
}

impl Error {
    /// An error without a field.
    #[must_use]
    pub fn new(code: &'static str, at: Position, cause: impl Into<String>) -> Self {
        Self { code, at, path: String::new(), cause: cause.into(), hint: None }
    }

    /// Adds what to do next.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.at.line, self.at.column)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.cause)
    }
}

impl std::error::Error for Error {}
