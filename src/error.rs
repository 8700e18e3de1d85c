//! The error type that users see: one struct, and one place that decides the exit status.
//!
//! Every message says what failed, where, why and what to do next. Untrusted text is kept unchanged here;
//! `report::escape` neutralises it when it is printed.

use std::fmt;

/// Class of a failure: the only part that code branches on, and the only source of the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureKind {
    /// An object, file or setting is wrong.
    Input,
    /// A registry, cluster or source could not be read.
    Unread,
    /// The repository could not be read or written.
    Repository,
    /// A bug: something that Expedite did not expect.
    Internal,
    /// A requested check failed (`--check`, `verify`, a refused `promote`).
    SaysNo,
    /// The removal guard stopped the run.
    Guard,
    /// Other writers kept moving the branch.
    Moved,
    /// The command line is wrong.
    Usage,
}

impl FailureKind {
    /// The exit status (`docs/design/command-line.md#exit-status`); defined here only.
    #[must_use]
    pub fn exit_status(self) -> u8 {
        match self {
            Self::Input | Self::Unread | Self::Repository | Self::Internal => 1,
            Self::Guard => 3,
            Self::Moved => 4,
            Self::SaysNo => 5,
            Self::Usage => 64,
        }
    }
}

/// Exit status of `plan --detailed-exitcode` when there are changes.
pub const CHANGES: u8 = 2;

/// A place in a file. Line and column count from 1.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct At {
    /// Name of the file in the user's terms.
    pub file: String,
    /// Absent if only the file is known.
    pub line: Option<u32>,
    /// Absent if only the line is known.
    pub column: Option<u32>,
}

impl At {
    /// A whole file.
    #[must_use]
    pub fn from_file(file: impl Into<String>) -> Self {
        Self { file: file.into(), line: None, column: None }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
            if let Some(column) = self.column {
                write!(f, ":{column}")?;
            }
        }
        Ok(())
    }
}

/// One problem, described for a user. Callers that print warnings use it too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Decides the exit status.
    pub kind: FailureKind,
    /// Stable, for scripts and docs: `duplicate-key`, `unknown-field`, …
    pub code: &'static str,
    /// The object or thing, `Order shop/podinfo`.
    pub what: Option<String>,
    /// Position in a file.
    pub at: Option<At>,
    /// The field's path, `spec.promotion.mode`.
    pub field: Option<String>,
    /// Why.
    pub cause: String,
    /// What to do next.
    pub hints: Vec<String>,
}

impl Failure {
    /// A failure of `kind` with a stable `code` and its cause.
    #[must_use]
    pub fn new(kind: FailureKind, code: &'static str, cause: impl Into<String>) -> Self {
        Self { kind, code, what: None, at: None, field: None, cause: cause.into(), hints: Vec::new() }
    }

    /// Wrong input.
    #[must_use]
    pub fn new_input(code: &'static str, cause: impl Into<String>) -> Self {
        Self::new(FailureKind::Input, code, cause)
    }

    /// A problem with the YAML text of `file`, or with a value in it.
    #[must_use]
    pub fn from_yaml(error: &kube_yaml::Error, file: &str) -> Self {
        let at = At { file: file.to_owned(), line: Some(error.at.line), column: Some(error.at.column) };
        let mut failure = Self::new_input(error.code, error.cause.clone()).with_place(at);
        if !error.path.is_empty() {
            failure = failure.with_field(error.path.clone());
        }
        failure.hints.extend(error.hint.clone());
        failure
    }

    /// Names the object or thing.
    #[must_use]
    pub fn with_object(mut self, what: impl Into<String>) -> Self {
        self.what = Some(what.into());
        self
    }

    /// Names the place.
    #[must_use]
    pub fn with_place(mut self, at: At) -> Self {
        self.at = Some(at);
        self
    }

    /// Names the field.
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

    /// Object, field and cause without the position. Committed messages use it because it is the same on every machine.
    #[must_use]
    pub fn format_sentence(&self) -> String {
        let parts = [self.what.as_deref(), self.field.as_deref(), Some(self.cause.as_str())];
        parts.into_iter().flatten().collect::<Vec<_>>().join(": ")
    }
}

impl From<oci_registry::ConfigError> for Failure {
    fn from(error: oci_registry::ConfigError) -> Self {
        let failure =
            Self::new_input(error.code, error.cause).with_object(format!("registry {}", error.registry));
        Self {
            field: error.field.map(str::to_owned),
            hints: error.hint.map(str::to_owned).into_iter().collect(),
            ..failure
        }
    }
}

impl fmt::Display for Failure {
    /// `file:line:column: Order shop/podinfo: spec.environment: cause`, without hints.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = &self.at {
            write!(f, "{at}: ")?;
        }
        if let Some(what) = &self.what {
            write!(f, "{what}: ")?;
        }
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        write!(f, "{}", self.cause)
    }
}

impl std::error::Error for Failure {}

impl From<git_commits::GitError> for Failure {
    fn from(error: git_commits::GitError) -> Self {
        use git_commits::GitErrorKind;
        let kind = match error.kind {
            GitErrorKind::Input => FailureKind::Input,
            GitErrorKind::Repository => FailureKind::Repository,
            GitErrorKind::Internal => FailureKind::Internal,
            GitErrorKind::Moved => FailureKind::Moved,
            GitErrorKind::Usage => FailureKind::Usage,
        };
        let git_commits::GitError { code, what, field, cause, hints, kind: _ } = error;
        Self { kind, code, what, at: None, field, cause, hints }
    }
}
