//! Commits onto a branch of our own, for a pull request: always one commit on top of what the base branch
//! is now.
//!
//! Such a branch is rebuilt when the base has moved, which is no fast-forward. It is replaced only where it
//! still is the commit that was looked at, and only if that is ours or merged already: a person's commit on
//! it is never taken away. The base branch is only ever moved forward, by [`super::write_changes`].

use super::{Proposal, WriteOutcome, checkout, push, tree};
use crate::error::make_error;
use crate::error::{GitError, GitErrorKind};
use crate::files::FileChange;
use crate::remote::Advance;
use crate::snapshot::make_commit_id;
use crate::{Repository, Snapshot};
use git2::Oid;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The trailer by which a proposal of ours is known again; its value is the branch.
pub const TRAILER: &str = "Proposal";

/// A branch of our own, for one proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProposalBranch<'a> {
    /// Without `refs/heads/`.
    pub name: &'a str,
    /// Key of the trailer that names what a commit is about: a proposal about something else than the new
    /// one is not replaced by it.
    pub about: &'a str,
}

/// Changes as of an instant (seconds since 1970).
pub type Changes<'a, E> = dyn Fn(i64) -> Result<BTreeMap<String, FileChange>, E> + 'a;

/// Puts `changes` on top of the snapshot's head as the one commit of `branch`. They are made as of
/// `proposal.at`; where the branch proposes the same as of an earlier instant, it stays as it is.
///
/// [`WriteOutcome::Unchanged`]: the branch proposes exactly that already, or there is nothing to propose.
///
/// # Errors
/// `branch` is the snapshot's own or no valid name, holds somebody else's commit or a proposal about something
/// else (`proposal-taken`), a change cannot be made or has no place in the tree, or the repository cannot be
/// read or written.
pub fn propose_changes<E: From<GitError>>(
    repository: &Repository,
    base: &Snapshot,
    branch: ProposalBranch<'_>,
    changes: &Changes<'_, E>,
    proposal: Proposal<'_>,
) -> Result<WriteOutcome, E> {
    let ProposalBranch { name: branch, about } = branch;
    let branch = branch.trim();
    let reference = format!("refs/heads/{branch}");
    let wrong = |why: &str| GitError::new_input("branch-name", why).with_object(format!("branch {branch}"));
    if !git2::Reference::is_valid_name(&reference) {
        return Err(wrong("it is no valid branch name").into());
    }
    if branch == base.branch {
        return Err(wrong("a proposal needs a branch of its own, not the one that it is for").into());
    }
    let Some(head) = base.commit else {
        return Err(wrong("there is nothing to propose a change to: the repository is empty").into());
    };
    let store = repository.store();
    let there = store.resolve_side(&reference, true)?;
    let proposed = {
        let git = store.lock_git();
        checkout::refuse_checked_out(&git, &reference, true)?;
        there.map(|tip| Proposed::read_proposed(&git, tip, branch, about)).transpose()?
    };
    let tree = |at: i64| -> Result<Oid, E> {
        let changes = changes(at)?;
        let git = store.lock_git();
        match tree::find_clashes(&git, base.tree, &changes)?.into_values().next() {
            Some(clash) => Err(clash.into()),
            None => Ok(tree::edit_tree(&git, base.tree, &changes)?),
        }
    };
    if let Some(proposed) = proposed.as_ref().filter(|p| p.ours && p.parents == [head])
        && tree(proposed.at)? == proposed.tree
    {
        return Ok(WriteOutcome::Unchanged);
    }
    let tree = tree(proposal.at)?;
    if base.tree == Some(tree) {
        return Ok(WriteOutcome::Unchanged);
    }
    if let (Some(proposed), Some(tip)) = (proposed, there) {
        let taken = |cause: String, hint: &str| {
            Err(GitError::new(GitErrorKind::Repository, "proposal-taken", cause)
                .with_object(format!("repository {}", repository.name()))
                .with_hint(hint)
                .into())
        };
        let others =
            proposed.about.difference(&parse_subjects(proposal.message, about)?).cloned().collect::<Vec<_>>();
        if !proposed.ours && !store.is_merged(tip, &base.branch)? {
            return taken(
                format!("branch {branch} holds the commit {tip}, which is not ours and not merged"),
                "merge or delete the branch, or propose on another one",
            );
        }
        if proposed.ours && !others.is_empty() && !store.is_merged(tip, &base.branch)? {
            let git = store.lock_git();
            if !proposed.is_part_of(&git, base.tree)? {
                return taken(
                    format!(
                        "branch {branch} proposes something for {}, which is not merged",
                        others.join(", ")
                    ),
                    "merge or delete that branch first, or propose on another one",
                );
            }
        }
    }
    let message = format!("{}{TRAILER}: {branch}\n", prepare_trailers(proposal.message));
    let new =
        push::write_commit(&store.lock_git(), Some(head), tree, Proposal { message: &message, ..proposal })?;
    match store.replace_reference(&reference, new, there, "proposed")? {
        Advance::Done => Ok(WriteOutcome::Pushed(make_commit_id(new)?)),
        Advance::Moved => Ok(WriteOutcome::Moved),
        Advance::Refused(words) => Ok(WriteOutcome::Refused(words)),
    }
}

/// What a proposal's branch holds.
struct Proposed {
    ours: bool,
    parents: Vec<Oid>,
    tree: Oid,
    at: i64,
    about: BTreeSet<String>,
}

impl Proposed {
    fn read_proposed(git: &git2::Repository, tip: Oid, branch: &str, about: &str) -> Result<Self, GitError> {
        let commit = git
            .find_commit(tip)
            .map_err(|e| make_error("repository-unreadable", "cannot read the proposal", &e))?;
        let message = String::from_utf8_lossy(commit.message_bytes()).into_owned();
        let trailers = git2::message_trailers_strs(&message)
            .map_err(|e| make_error("repository-unreadable", "cannot read the proposal", &e))?;
        let ours = trailers.iter().any(|(key, value)| key == TRAILER && value == branch);
        // As written in the commit: what was fetched one commit deep has no parents otherwise.
        let header = String::from_utf8_lossy(commit.raw_header_bytes()).into_owned();
        let parents = header.lines().filter_map(|l| Oid::from_str(l.strip_prefix("parent ")?).ok()).collect();
        let at = commit.author().when().seconds();
        Ok(Self { ours, parents, tree: commit.tree_id(), at, about: parse_subjects(&message, about)? })
    }

    /// Whether `base` holds its change already, as after a squash: merging it there would change nothing.
    fn is_part_of(&self, git: &git2::Repository, base: Option<Oid>) -> Result<bool, GitError> {
        let ([parent], Some(base)) = (&self.parents[..], base) else { return Ok(false) };
        // A parent that a shallow clone lacks tells nothing.
        let Ok(parent) = git.find_commit(*parent).and_then(|p| p.tree()) else { return Ok(false) };
        let merged = git.find_tree(base).and_then(|ours| merge_trees(git, &parent, &ours, self.tree));
        let merged =
            merged.map_err(|e| make_error("repository-unreadable", "cannot compare the proposal", &e))?;
        Ok(merged == Some(base))
    }
}

/// The tree that `ours` becomes with what `theirs` changed; `None` where they do not agree. A file that both
/// added agrees where ours has every line of theirs: a Serving that was proposed and got its state since.
fn merge_trees(
    git: &git2::Repository,
    parent: &git2::Tree<'_>,
    ours: &git2::Tree<'_>,
    theirs: Oid,
) -> Result<Option<Oid>, git2::Error> {
    /// Where an index entry says that it is a side of a conflict.
    const STAGE: u16 = 0x3000;
    let mut index = git.merge_trees(parent, ours, &git.find_tree(theirs)?, None)?;
    let conflicts: Vec<git2::IndexConflict> = index.conflicts()?.collect::<Result<_, _>>()?;
    let mut settled = Vec::new();
    for conflict in conflicts {
        let (None, Some(our), Some(their)) = (conflict.ancestor, conflict.our, conflict.their) else {
            return Ok(None);
        };
        let (ours, theirs) = (git.find_blob(our.id)?, git.find_blob(their.id)?);
        let mut lines = ours.content().split(|b| *b == b'\n');
        if !theirs.content().trim_ascii_end().split(|b| *b == b'\n').all(|line| lines.any(|l| l == line)) {
            return Ok(None);
        }
        settled.push(our);
    }
    for mut our in settled {
        index.conflict_remove(Path::new(OsStr::from_bytes(&our.path)))?;
        our.flags &= !STAGE;
        index.add(&our)?;
    }
    index.write_tree_to(git).map(Some)
}

/// What a message says that its commit is about.
fn parse_subjects(message: &str, about: &str) -> Result<BTreeSet<String>, GitError> {
    let trailers = git2::message_trailers_strs(message)
        .map_err(|e| make_error("repository-unreadable", "cannot read the proposal", &e))?;
    Ok(trailers.iter().filter(|(key, _)| *key == about).map(|(_, value)| value.to_owned()).collect())
}

/// The message, ending where a trailer may follow.
fn prepare_trailers(message: &str) -> String {
    let message = message.trim_end();
    let has = git2::message_trailers_strs(&format!("{message}\n")).is_ok_and(|t| t.iter().next().is_some());
    format!("{message}{}", if has { "\n" } else { "\n\n" })
}
