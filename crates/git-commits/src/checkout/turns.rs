//! What a checkout has at a path, and what it is to have.

use crate::error::GitError;
use crate::error::make_error;
use git2::{IndexEntry, IndexEntryExtendedFlag, Oid};
use std::collections::BTreeMap;
use std::path::Path;

/// Mode of a submodule in a tree.
pub(super) const SUBMODULE: i32 = 0o160_000;

/// A blob and its mode, if there is one.
pub(super) type StoredBlob = Option<(Oid, i32)>;

/// What one path was and becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    pub from: StoredBlob,
    pub to: StoredBlob,
}

/// Every path that differs between two trees.
pub(super) fn collect_turns(
    git: &git2::Repository,
    from: Option<Oid>,
    to: Oid,
) -> Result<BTreeMap<String, Turn>, GitError> {
    let unread = |e: git2::Error| make_error("repository-unreadable", "cannot compare commits", &e);
    let from = from.map(|t| git.find_tree(t)).transpose().map_err(unread)?;
    let to = git.find_tree(to).map_err(unread)?;
    let diff = git.diff_tree_to_tree(from.as_ref(), Some(&to), None).map_err(unread)?;
    let mut turns = BTreeMap::new();
    for delta in diff.deltas() {
        let side = |file: git2::DiffFile<'_>| {
            let content = file.exists().then(|| (file.id(), i32::from(file.mode())));
            (file.path_bytes().map(|p| String::from_utf8_lossy(p).into_owned()), content)
        };
        let ((old_path, from), (new_path, to)) = (side(delta.old_file()), side(delta.new_file()));
        if let Some(path) = new_path.or(old_path) {
            turns.insert(path, Turn { from, to });
        }
    }
    Ok(turns)
}

/// What the index has at `path`.
pub(super) fn find_staged(index: &git2::Index, path: &str) -> StoredBlob {
    index.get_path(Path::new(path), 0).map(|e| (e.id, i32::try_from(e.mode).unwrap_or_default()))
}

/// What the file at `path` would be stored as.
pub(super) fn read_from_disk(git: &git2::Repository, path: &str) -> StoredBlob {
    let full = git.workdir()?.join(path);
    let meta = std::fs::symlink_metadata(&full).ok().filter(|m| !m.is_dir())?;
    let blob = if meta.is_symlink() {
        git.blob(std::os::unix::ffi::OsStrExt::as_bytes(std::fs::read_link(&full).ok()?.as_os_str())).ok()?
    } else {
        // Applies the filters (line ends), as `git add` would.
        git.blob_path(&full).ok()?
    };
    let executable = std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o100 != 0;
    let mode = if meta.is_symlink() {
        0o120_000
    } else if executable {
        0o100_755
    } else {
        0o100_644
    };
    Some((blob, mode))
}

/// Whether the file at `path` is only a beginning of `to`: its writing was cut short.
pub(super) fn is_torn(git: &git2::Repository, path: &str, to: StoredBlob) -> bool {
    let Some((id, _)) = to else { return false };
    let file = git.workdir().and_then(|root| std::fs::read(root.join(path)).ok());
    file.is_some_and(|file| git.find_blob(id).is_ok_and(|blob| blob.content().starts_with(&file)))
}

/// Whether a sparse checkout keeps the entry's file out of the work tree.
pub(super) fn is_skipped(entry: &IndexEntry) -> bool {
    IndexEntryExtendedFlag::from_bits_truncate(entry.flags_extended)
        .contains(IndexEntryExtendedFlag::SKIP_WORKTREE)
}
