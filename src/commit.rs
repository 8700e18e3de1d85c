//! Files, expected head → Pushed | Unchanged | Moved | Refused. Knows nothing of what the files mean.
//!
//! A write is a compare-and-swap against the head that the decisions were made on: it happens on top of
//! exactly that head or not at all. Nothing is ever forced.

mod checkout;
mod push;
mod tree;

pub mod identity;
pub mod message;
pub mod propose;
pub mod side;
pub mod sign;

pub use identity::{Identity, Person};
pub use message::build_message;
pub use propose::propose_changes;
pub use sign::CommitSigner;

use crate::error::Failure;
use crate::files::FileChange;
use crate::git::{Repository, Snapshot};
use crate::model::id::CommitId;
use crate::model::time::Time;
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
    /// As [`build_message()`] builds it.
    pub message: &'a str,
    /// Author and committer.
    pub identity: &'a Identity,
    /// Date of author and committer, in UTC.
    pub at: Time,
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
) -> Result<WriteOutcome, Failure> {
    push::push_changes(repository, base, changes, proposal)
}

/// The changes that have no place in the snapshot's tree, each with its reason; [`write_changes()`] refuses them.
///
/// # Errors
/// The tree could not be read.
pub fn find_clashes(
    base: &Snapshot,
    changes: &BTreeMap<String, FileChange>,
) -> Result<BTreeMap<String, Failure>, Failure> {
    tree::find_clashes(&base.lock_git(), base.tree, changes)
}
