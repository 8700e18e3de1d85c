//! The name of a commit.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A git commit: 40 lower-case hex digits (SHA-1 object names; SHA-256 repositories have 64).
///
/// ```
/// use git_commits::CommitId;
/// assert!(CommitId::parse("0123456789abcdef0123456789abcdef01234567").is_ok());
/// assert!(CommitId::parse("0123").is_err());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommitId(Arc<str>);

/// Why a text is not a commit id; the message quotes the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitIdError(String);

/// Longest text quoted in a message; the rest is cut with `…`.
const QUOTED: usize = 80;

impl CommitId {
    /// Checks the rule.
    ///
    /// # Errors
    /// Says the rule and quotes the text.
    pub fn parse(text: &str) -> Result<Self, CommitIdError> {
        let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if matches!(text.len(), 40 | 64) && text.bytes().all(is_hex) {
            return Ok(Self(text.into()));
        }
        let cut: String = text.chars().take(QUOTED).collect();
        let more = if cut.len() < text.len() { "…" } else { "" };
        let quoted = format!("{cut}{more}");
        Err(CommitIdError(format!("{quoted:?} is no commit id: 40 or 64 lower-case hex digits")))
    }

    /// The text itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommitId({:?})", &*self.0)
    }
}

impl FromStr for CommitId {
    type Err = CommitIdError;
    fn from_str(text: &str) -> Result<Self, CommitIdError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for CommitId {
    type Error = CommitIdError;
    fn try_from(text: String) -> Result<Self, CommitIdError> {
        Self::parse(&text)
    }
}

impl From<CommitId> for String {
    fn from(id: CommitId) -> Self {
        id.0.to_string()
    }
}

impl fmt::Display for CommitIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CommitIdError {}
