//! Files of a branch's commit that are remembered in a reference beside the branches: what has been done
//! with them outside git, which a commit on the branch would only disturb. They lie there at the same paths
//! with the same bytes, so that remembering costs a server no more than the folders on the way.

use super::{Identity, Proposal, push, tree};
use crate::error::make_error;
use crate::error::{GitError, GitErrorKind};
use crate::files::FileChange;
use crate::remote::Advance;
use crate::{Repository, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How often an update is tried again when another run was first.
const TRIES: u32 = 8;

/// What became of an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SideOutcome {
    /// The reference holds the files.
    Updated,
    /// It held them already.
    Unchanged,
    /// The server takes no such reference; its words. Whoever asked must do without.
    Refused(String),
}

/// The paths that `reference` holds; none when there is no such reference. On a server, as of the last
/// snapshot.
///
/// # Errors
/// The repository cannot be read.
pub fn read_paths(repository: &Repository, reference: &str) -> Result<BTreeSet<String>, GitError> {
    let store = repository.store();
    let head = store.resolve_side(reference, false)?;
    let git = store.lock_git();
    let Some(tree) = find_root(&git, head)? else { return Ok(BTreeSet::new()) };
    let mut paths = BTreeSet::new();
    git.find_tree(tree)
        .and_then(|tree| {
            tree.walk(git2::TreeWalkMode::PreOrder, |folder, entry| {
                if entry.kind() == Some(git2::ObjectType::Blob) {
                    let name = String::from_utf8_lossy(entry.name_bytes());
                    paths.insert(format!("{}{name}", String::from_utf8_lossy(folder.as_bytes())));
                }
                git2::TreeWalkResult::Ok
            })
        })
        .map_err(|e| make_unreadable(&e))?;
    Ok(paths)
}

/// The files below `folder` of `base` that `reference` does not hold with the same bytes. Folders that are
/// the same in both are not looked into, so that this costs what changed.
///
/// # Errors
/// The repository cannot be read.
pub fn find_lacking(
    repository: &Repository,
    reference: &str,
    base: &Snapshot,
    folder: &str,
) -> Result<Vec<String>, GitError> {
    let store = repository.store();
    let head = store.resolve_side(reference, false)?;
    let git = store.lock_git();
    let find = |tree: git2::Oid| git.find_tree(tree).map_err(|e| make_unreadable(&e));
    let there = find_root(&git, head)?.map(find).transpose()?;
    let wanted = base.tree.map(find).transpose()?;
    let mut only = git2::DiffOptions::new();
    only.pathspec(folder).disable_pathspec_match(true).skip_binary_check(true);
    let diff = git
        .diff_tree_to_tree(there.as_ref(), wanted.as_ref(), Some(&mut only))
        .map_err(|e| make_unreadable(&e))?;
    let lacks = diff.deltas().filter(|delta| match delta.status() {
        git2::Delta::Added | git2::Delta::Modified => delta.new_file().mode() == git2::FileMode::Blob,
        // In the reference alone, or no file of ours.
        _ => false,
    });
    Ok(lacks.filter_map(|d| Some(d.new_file().path()?.to_str()?.to_owned())).collect())
}

/// Makes `changes` to what `reference` holds, on top of what another run left meanwhile.
///
/// # Errors
/// The repository cannot be read or written, or the reference kept moving.
pub fn update_side(
    repository: &Repository,
    reference: &str,
    identity: &Identity,
    at: i64,
    changes: &BTreeMap<String, FileChange>,
) -> Result<SideOutcome, GitError> {
    let store = repository.store();
    for attempt in 1..=TRIES {
        let head = store.resolve_side(reference, true)?;
        let new = {
            let git = store.lock_git();
            let before = find_root(&git, head)?;
            if let Some(clash) = tree::find_clashes(&git, before, changes)?.into_values().next() {
                return Err(clash);
            }
            let after = tree::edit_tree(&git, before, changes)?;
            let nothing = before.is_none() && git.find_tree(after).is_ok_and(|t| t.is_empty());
            if before == Some(after) || nothing {
                return Ok(SideOutcome::Unchanged);
            }
            let proposal = Proposal { message: "Remember what was done\n", identity, at };
            push::write_commit(&git, head, after, proposal)?
        };
        match store.advance_reference(reference, new, head, "remembered")? {
            Advance::Done => return Ok(SideOutcome::Updated),
            Advance::Refused(words) => return Ok(SideOutcome::Refused(words)),
            Advance::Moved => std::thread::sleep(Duration::from_millis(u64::from(attempt) * 37)),
        }
    }
    Err(GitError::new(
        GitErrorKind::Moved,
        "kept-moving",
        format!("{reference} moved during each of {TRIES} tries"),
    )
    .with_object(format!("repository {}", repository.name())))
}

/// The tree of the reference's commit.
fn find_root(git: &git2::Repository, head: Option<git2::Oid>) -> Result<Option<git2::Oid>, GitError> {
    let tree = |head| git.find_commit(head).map(|commit| commit.tree_id()).map_err(|e| make_unreadable(&e));
    head.map(tree).transpose()
}

fn make_unreadable(error: &git2::Error) -> GitError {
    make_error("repository-unreadable", "cannot read what was remembered", error)
}
