//! What went wrong, for a person: one struct with a stable code.
//!
//! The caller decides what a kind means for its exit status, and where a message is printed. Text that
//! came from outside is kept as it came.

use std::fmt;

/// What went wrong, as far as a caller branches on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GitErrorKind {
    /// A name, URL, token or setting is wrong.
    Input,
    /// The repository could not be read or written.
    Repository,
    /// Something that this crate did not expect.
    Internal,
    /// A reference kept moving.
    Moved,
    /// What a person asked for is not written as it must be.
    Usage,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitError {
    /// What kind of fault it is.
    pub kind: GitErrorKind,
    /// Stable, for scripts and docs: `branch-absent`, `path-clash`, …
    pub code: &'static str,
    /// The thing, `repository ../gitops.git`.
    pub what: Option<String>,
    /// A part of the thing, as a revision of a range.
    pub field: Option<String>,
    /// Why.
    pub cause: String,
    /// What to do next.
    pub hints: Vec<String>,
}

impl GitError {
    /// An error of `kind` with a stable `code` and its cause.
    #[must_use]
    pub fn new(kind: GitErrorKind, code: &'static str, cause: impl Into<String>) -> Self {
        Self { kind, code, what: None, field: None, cause: cause.into(), hints: Vec::new() }
    }

    /// Wrong input.
    #[must_use]
    pub fn new_input(code: &'static str, cause: impl Into<String>) -> Self {
        Self::new(GitErrorKind::Input, code, cause)
    }

    /// Names the thing.
    #[must_use]
    pub fn with_object(mut self, what: impl Into<String>) -> Self {
        self.what = Some(what.into());
        self
    }

    /// Names a part of the thing.
    #[must_use]
    pub fn with_field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Adds what to do next.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl fmt::Display for GitError {
    /// `repository ../gitops.git: main: cause`, without hints.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [&self.what, &self.field].into_iter().flatten() {
            write!(f, "{part}: ")?;
        }
        f.write_str(&self.cause)
    }
}

impl std::error::Error for GitError {}

/// An error of the repository, with libgit2's own words.
pub(crate) fn make_error(code: &'static str, doing: &str, error: &git2::Error) -> GitError {
    let words = error.message().trim();
    let words = if words.is_empty() { "no reason given" } else { words };
    GitError::new(GitErrorKind::Repository, code, format!("{doing}: {words}"))
}
