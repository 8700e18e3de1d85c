//! Writes index and files of a checkout at some paths.

use super::index;
use super::turns::{SUBMODULE, Turn, find_staged, is_skipped};
use crate::error::GitError;
use crate::error::make_error;
use git2::build::CheckoutBuilder;
use git2::{IndexEntry, IndexEntryExtendedFlag, IndexTime, Oid};
use std::collections::BTreeMap;
use std::path::Path;

/// Makes index and files of the paths in `turns` those of commit `to`. The caller holds the checkout.
pub(super) fn apply_turns(
    git: &git2::Repository,
    to: Oid,
    turns: &BTreeMap<String, Turn>,
) -> Result<(), GitError> {
    let taken = index::lock_index(git)?;
    write_turns(git, to, turns)?;
    taken.put_back()
}

fn write_turns(git: &git2::Repository, to: Oid, turns: &BTreeMap<String, Turn>) -> Result<(), GitError> {
    let failed = |e: git2::Error| {
        let doing = "the commit stands, but the checkout could not be brought along";
        make_error("checkout-unwritable", doing, &e)
            .with_hint("the next run finishes, or: git checkout -- the paths")
    };
    let Some(workdir) = git.workdir() else { return Ok(()) };
    let sparse = git.config().and_then(|c| c.get_bool("core.sparsecheckout")).unwrap_or(false);
    let mut index = git.index().map_err(failed)?;
    index.read(false).map_err(failed)?;
    let mut builder = CheckoutBuilder::new();
    builder.force().disable_pathspec_match(true).update_index(true);
    let mut writes: Vec<&str> = Vec::new();
    // Writing the index costs as much as the checkout has files: only when it is needed.
    let mut changed = false;
    for (path, turn) in turns {
        let Some((id, mode)) = turn.to else {
            index.remove_path(Path::new(path)).map_err(failed)?;
            changed = true;
            if turn.from.is_none_or(|(_, mode)| mode != SUBMODULE) {
                remove_file(workdir, path);
            }
            continue;
        };
        let known = index.get_path(Path::new(path), 0);
        let out = match &known {
            Some(entry) => is_skipped(entry),
            None => sparse && is_beside_hidden(&index, path),
        };
        if out || mode == SUBMODULE {
            index.add(&make_entry(path, id, mode, out)).map_err(failed)?;
            changed = true;
        } else {
            builder.path(path.as_str());
            writes.push(path);
        }
    }
    if changed {
        index.write().map_err(failed)?;
    }
    if writes.is_empty() {
        return Ok(());
    }
    let object = git.find_object(to, None).map_err(failed)?;
    git.checkout_tree(&object, Some(&mut builder)).map_err(failed)?;
    // A file that had its content already was left alone, and the index with it.
    let mut left = false;
    for path in writes {
        let to = turns.get(path).and_then(|turn| turn.to);
        if let Some((id, mode)) = to.filter(|_| find_staged(&index, path) != to) {
            index.add(&make_entry(path, id, mode, false)).map_err(failed)?;
            left = true;
        }
    }
    if left { index.write().map_err(failed) } else { Ok(()) }
}

/// An index entry without a file.
fn make_entry(path: &str, id: Oid, mode: i32, out: bool) -> IndexEntry {
    let flags_extended = if out { IndexEntryExtendedFlag::SKIP_WORKTREE.bits() } else { 0 };
    IndexEntry {
        ctime: IndexTime::new(0, 0),
        mtime: IndexTime::new(0, 0),
        dev: 0,
        ino: 0,
        mode: u32::try_from(mode).unwrap_or(0o100_644),
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended,
        path: path.as_bytes().to_vec(),
    }
}

/// Removes a file and the folders that are empty then, as git does.
fn remove_file(workdir: &Path, path: &str) {
    let _ = std::fs::remove_file(workdir.join(path));
    let mut folder = Path::new(path).parent();
    while let Some(at) = folder.filter(|f| !f.as_os_str().is_empty()) {
        // Fails, and ends this, where something is left.
        if std::fs::remove_dir(workdir.join(at)).is_err() {
            break;
        }
        folder = at.parent();
    }
}

/// Whether a new file at `path` belongs outside the work tree: it does where everything in the nearest
/// folder that has files is kept out.
fn is_beside_hidden(index: &git2::Index, path: &str) -> bool {
    let mut folder = path;
    while let Some((parent, _)) = folder.rsplit_once('/') {
        folder = parent;
        let prefix = format!("{parent}/");
        let Ok(first) = index.find_prefix(Path::new(&prefix)) else { continue };
        return (first..index.len())
            .map_while(|n| index.get(n).filter(|e| e.path.starts_with(prefix.as_bytes())))
            .all(|e| is_skipped(&e));
    }
    false
}
