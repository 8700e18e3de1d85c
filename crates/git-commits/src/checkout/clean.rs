//! Whether a checkout may be changed at some paths: nothing of a person's may be lost.

use super::turns::{SUBMODULE, Turn, find_staged, is_skipped};
use crate::error::make_error;
use crate::error::{GitError, GitErrorKind};
use git2::{RepositoryState, Status, StatusOptions};
use std::collections::BTreeMap;
use std::path::Path;

/// Most paths named in a message.
const NAMED: usize = 5;

/// Refuses unless index and files are those of the commit, at every path that will change.
pub(super) fn check_clean(git: &git2::Repository, turns: &BTreeMap<String, Turn>) -> Result<(), GitError> {
    let unread = |e: git2::Error| {
        let failed = make_error("checkout-unreadable", "cannot read the checkout", &e);
        if e.message().contains("extension") {
            return failed.with_hint("libgit2 cannot read this index; run git sparse-checkout reapply --no-sparse-index, or name the URL");
        }
        failed
    };
    if git.state() != RepositoryState::Clean {
        return Err(make_unclean_failure("a merge, rebase or cherry-pick is under way"));
    }
    let mut index = git.index().map_err(unread)?;
    index.read(true).map_err(unread)?;
    if index.has_conflicts() {
        return Err(make_unclean_failure("its index holds conflicts"));
    }
    let mut dirty: Vec<&str> = Vec::new();
    let mut options = StatusOptions::new();
    options.disable_pathspec_match(true).include_untracked(true).recurse_untracked_dirs(true);
    options.include_ignored(true).recurse_ignored_dirs(true).include_unmodified(false);
    let workdir = git.workdir().unwrap_or(Path::new("."));
    for (path, turn) in turns {
        if find_staged(&index, path) != turn.from || is_blocked(workdir, path, turn) {
            dirty.push(path);
        }
        options.pathspec(path);
    }
    if dirty.is_empty() {
        let statuses = git.statuses(Some(&mut options)).map_err(unread)?;
        let changed = Status::WT_NEW
            | Status::WT_MODIFIED
            | Status::WT_DELETED
            | Status::WT_RENAMED
            | Status::WT_TYPECHANGE
            | Status::WT_UNREADABLE
            | Status::IGNORED;
        for entry in statuses.iter().filter(|e| e.status().intersects(changed)) {
            let Ok(path) = entry.path() else { continue };
            let Some((path, turn)) = turns.get_key_value(path) else { continue };
            let submodule = turn.from.is_some_and(|(_, mode)| mode == SUBMODULE);
            if !submodule && !is_hidden(&index, path) {
                dirty.push(path);
            }
        }
    }
    if dirty.is_empty() {
        return Ok(());
    }
    let more = if dirty.len() > NAMED { format!(" and {} more", dirty.len() - NAMED) } else { String::new() };
    dirty.truncate(NAMED);
    Err(make_unclean_failure(&format!("{}{more} changed and not committed", dirty.join(", "))))
}

fn make_unclean_failure(why: &str) -> GitError {
    GitError::new(GitErrorKind::Repository, "checkout-not-clean", format!("the checkout is not clean: {why}"))
        .with_hint("commit, stash or remove that, then run again; nothing was changed")
}

/// Whether something that git does not report is in the way: a link or file where a folder belongs, a
/// folder where the file belongs.
fn is_blocked(workdir: &Path, path: &str, turn: &Turn) -> bool {
    let mut at = workdir.to_path_buf();
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        at.push(part);
        let Ok(meta) = std::fs::symlink_metadata(&at) else { return false };
        let last = parts.peek().is_none();
        let submodule = [turn.from, turn.to].into_iter().flatten().any(|(_, mode)| mode == SUBMODULE);
        if !last && !meta.is_dir() || last && meta.is_dir() && !submodule {
            return true;
        }
    }
    false
}

/// Whether the path is kept out of the work tree by a sparse checkout.
fn is_hidden(index: &git2::Index, path: &str) -> bool {
    index.get_path(Path::new(path), 0).is_some_and(|e| is_skipped(&e))
}
