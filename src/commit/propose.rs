//! Commits onto a branch of our own, for a pull request: always one commit on top of what the base branch
//! is now.
//!
//! Such a branch is rebuilt when the base has moved, which is no fast-forward. It is replaced only where it
//! still is the commit that was looked at, and only if that is ours or merged already: a person's commit on
//! it is never taken away. The base branch is only ever moved forward, by [`super::write`].

use super::{Outcome, Proposal, checkout, push, tree};
use crate::error::{Failure, Kind};
use crate::files::Change;
use crate::git::remote::Advance;
use crate::git::snapshot::commit_id;
use crate::git::{Repository, Snapshot, failure};
use git2::Oid;
use std::collections::BTreeMap;

/// The trailer by which a proposal of ours is known again; its value is the branch.
pub const TRAILER: &str = "Proposal";

/// Puts `changes` on top of the snapshot's head as the one commit of `branch`.
///
/// [`Outcome::Unchanged`]: the branch proposes exactly that already, or there is nothing to propose.
///
/// # Errors
/// `branch` is the snapshot's own or no valid name, holds somebody else's commit (`proposal-taken`), a
/// change has no place in the tree, or the repository cannot be read or written.
pub fn propose(
    repository: &Repository,
    base: &Snapshot,
    branch: &str,
    changes: &BTreeMap<String, Change>,
    proposal: Proposal<'_>,
) -> Result<Outcome, Failure> {
    let branch = branch.trim();
    let reference = format!("refs/heads/{branch}");
    let wrong = |why: &str| Failure::input("branch-name", why).of(format!("branch {branch}"));
    if !git2::Reference::is_valid_name(&reference) {
        return Err(wrong("it is no valid branch name"));
    }
    if branch == base.branch {
        return Err(wrong("a proposal needs a branch of its own, not the one that it is for"));
    }
    let Some(head) = base.commit else {
        return Err(wrong("there is nothing to propose a change to: the repository is empty"));
    };
    let store = repository.store();
    let there = store.side(&reference, true)?;
    let (tree, proposed) = {
        let git = store.lock();
        checkout::not_checked_out(&git, &reference, true)?;
        if let Some(clash) = tree::clashes(&git, base.tree, changes)?.into_values().next() {
            return Err(clash);
        }
        let tree = tree::edit(&git, base.tree, changes)?;
        (tree, there.map(|tip| Proposed::read(&git, tip, branch)).transpose()?)
    };
    if base.tree == Some(tree) {
        return Ok(Outcome::Unchanged);
    }
    if let (Some(proposed), Some(tip)) = (proposed, there) {
        if proposed.ours && proposed.parents == [head] && proposed.tree == tree {
            return Ok(Outcome::Unchanged);
        }
        if !proposed.ours && !store.merged(tip, &base.branch)? {
            return Err(Failure::new(
                Kind::Repository,
                "proposal-taken",
                format!("branch {branch} holds the commit {tip}, which is not ours and not merged"),
            )
            .of(format!("repository {}", repository.name()))
            .hint("merge or delete the branch, or propose on another one"));
        }
    }
    let message = format!("{}{TRAILER}: {branch}\n", with_trailers(proposal.message));
    let new = push::commit(&store.lock(), Some(head), tree, Proposal { message: &message, ..proposal })?;
    match store.replace(&reference, new, there, "proposed")? {
        Advance::Done => Ok(Outcome::Pushed(commit_id(new)?)),
        Advance::Moved => Ok(Outcome::Moved),
        Advance::Refused(words) => Ok(Outcome::Refused(words)),
    }
}

/// What a proposal's branch holds.
struct Proposed {
    ours: bool,
    parents: Vec<Oid>,
    tree: Oid,
}

impl Proposed {
    fn read(git: &git2::Repository, tip: Oid, branch: &str) -> Result<Self, Failure> {
        let commit = git
            .find_commit(tip)
            .map_err(|e| failure("repository-unreadable", "cannot read the proposal", &e))?;
        let message = String::from_utf8_lossy(commit.message_bytes()).into_owned();
        let trailers = git2::message_trailers_strs(&message)
            .map_err(|e| failure("repository-unreadable", "cannot read the proposal", &e))?;
        let ours = trailers.iter().any(|(key, value)| key == TRAILER && value == branch);
        // As written in the commit: what was fetched one commit deep has no parents otherwise.
        let header = String::from_utf8_lossy(commit.raw_header_bytes()).into_owned();
        let parents = header.lines().filter_map(|l| Oid::from_str(l.strip_prefix("parent ")?).ok()).collect();
        Ok(Self { ours, parents, tree: commit.tree_id() })
    }
}

/// The message, ending where a trailer may follow.
fn with_trailers(message: &str) -> String {
    let message = message.trim_end();
    let has = git2::message_trailers_strs(&format!("{message}\n")).is_ok_and(|t| t.iter().next().is_some());
    format!("{message}{}", if has { "\n" } else { "\n\n" })
}
