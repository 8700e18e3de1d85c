//! YAML as Kubernetes users write it: parsed with positions and exact scalars, written so that 1.1 and 1.2 readers agree.
//!
//! [`parse`] turns text into a tree of [`node::Node`]s that keeps every scalar's characters and place; [`de`]
//! reads a tree into a typed value, with the field's path in every error and every unknown key reported.
//! JSON is YAML: `.json` files go the same way. This room knows nothing of Kubernetes, files or policy.

pub mod de;
pub mod emit;
pub mod node;
pub mod parse;
mod plain;
pub mod spelling;
mod tree;

use crate::error::{At, Failure};
use std::fmt;

/// A place in a text. Both count from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The character in the line.
    pub column: u32,
}

/// What is wrong with a text or a value in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Stable: `syntax`, `duplicate-key`, `merge-key`, `alias`, `too-deep`, `wrong-type`, …
    pub code: &'static str,
    /// Where.
    pub at: Position,
    /// The field, `spec.promotion.upstream[0].soak`; empty for what is no field.
    pub path: String,
    /// Why. Never quotes a value that was not asked for by type.
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
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// As a person sees it, in `file`.
    #[must_use]
    pub fn failure(&self, file: &str) -> Failure {
        let at = At { file: file.to_owned(), line: Some(self.at.line), column: Some(self.at.column) };
        let mut failure = Failure::input(self.code, self.cause.clone()).at(at);
        if !self.path.is_empty() {
            failure = failure.field(self.path.clone());
        }
        failure.hints.extend(self.hint.clone());
        failure
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
