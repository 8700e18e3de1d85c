//! Files, expected head → Pushed | Unchanged | Moved | Refused. Knows nothing of what the files mean.
//!
//! A write is a compare-and-swap against the head that the decisions were made on: it happens on top of
//! exactly that head or not at all. Nothing is ever forced.

use crate::CommitId;
use crate::error::GitError;
use crate::files::FileChange;
use crate::{Identity, Repository, Snapshot, push, tree};
use std::collections::BTreeMap;

/// What became of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The branch's head is this commit, or a later one that holds it: read back, not assumed.
    Pushed(CommitId),
    /// The files are as they should be; no commit was made.
    Unchanged,
    /// Somebody else moved the branch: read again, decide again. Nothing of ours is in it.
    Moved,
    /// The head did not move and the commit was not taken; the server's own words.
    Refused(String),
}

/// A commit as it is to be made.
#[derive(Debug, Clone, Copy)]
pub struct Proposal<'a> {
    /// As [`build_message`](crate::build_message) builds it.
    pub message: &'a str,
    /// Author and committer.
    pub identity: &'a Identity,
    /// Date of author and committer: seconds since 1970, in UTC.
    pub at: i64,
}

/// Commits `changes` on top of the snapshot's head and makes that the branch's head, if it still is where
/// the snapshot was read.
///
/// # Errors
/// A change has no place in the tree (`path-clash`), a checkout is not clean (`checkout-not-clean`), or
/// the repository cannot be read or written. Nothing of ours is in the branch then.
pub fn write_changes(
    repository: &Repository,
    base: &Snapshot,
    changes: &BTreeMap<String, FileChange>,
    proposal: Proposal<'_>,
) -> Result<WriteOutcome, GitError> {
    push::push_changes(repository, base, changes, proposal)
}

/// The changes that have no place in the snapshot's tree, each with its reason; [`write_changes()`] refuses them.
///
/// # Errors
/// The tree could not be read.
pub fn find_clashes(
    base: &Snapshot,
    changes: &BTreeMap<String, FileChange>,
) -> Result<BTreeMap<String, GitError>, GitError> {
    tree::find_clashes(&base.lock_git(), base.tree, changes)
}
