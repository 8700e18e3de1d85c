//! Edits a tree without a work tree: only folders on the way to a changed path are read and written.

use crate::error::make_error;
use crate::error::{GitError, GitErrorKind};
use crate::files::FileChange;
use crate::{Environment, libgit2};
use git2::{ObjectType, Oid, TreeBuilder};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

const FILE: i32 = 0o100_644;
const FOLDER: i32 = 0o040_000;
const LINK: i32 = 0o120_000;

/// From this many new files on, objects go into one pack: loose ones cost four times as much.
const PACK_FROM: usize = 2_000;

/// Changes, as the folders they lie in.
#[derive(Default)]
struct ChangedFolder<'a> {
    files: BTreeMap<&'a str, (&'a str, &'a FileChange)>,
    folders: BTreeMap<&'a str, ChangedFolder<'a>>,
}

impl<'a> ChangedFolder<'a> {
    fn from_changes(changes: &'a BTreeMap<String, FileChange>) -> Self {
        let mut root = Self::default();
        for (path, change) in changes {
            let mut at = &mut root;
            let mut rest = path.as_str();
            while let Some((folder, below)) = rest.split_once('/') {
                at = at.folders.entry(folder).or_default();
                rest = below;
            }
            at.files.insert(rest, (path, change));
        }
        root
    }

    /// Whether any file is written at or below.
    fn has_writes(&self) -> bool {
        self.files.values().any(|(_, change)| matches!(change, FileChange::Write(_)))
            || self.folders.values().any(Self::has_writes)
    }

    /// Every path changed at or below, to name in an error.
    fn list_paths(&self) -> Vec<&'a str> {
        let mut paths: Vec<&str> = self.files.values().map(|(path, _)| *path).collect();
        paths.extend(self.folders.values().flat_map(Self::list_paths));
        paths
    }
}

/// Every change that `root` has no place for, with why: a file where a folder belongs, a folder where a
/// file belongs, a link or submodule in the way, a name that differs from another one in case only, a
/// path that git refuses.
///
/// # Errors
/// The tree could not be read.
pub(crate) fn find_clashes(
    git: &git2::Repository,
    root: Option<Oid>,
    changes: &BTreeMap<String, FileChange>,
) -> Result<BTreeMap<String, GitError>, GitError> {
    let mut found = BTreeMap::new();
    for path in changes.keys() {
        if let Some(why) = path.split('/').find_map(refuse_name) {
            found.insert(path.clone(), make_clash(path, why));
        }
    }
    if found.is_empty() {
        check_folder(git, root, &ChangedFolder::from_changes(changes), "", &mut found)?;
    }
    Ok(found)
}

fn make_clash(path: &str, why: impl Into<String>) -> GitError {
    GitError::new(GitErrorKind::Repository, "path-clash", why.into())
        .with_object(format!("file {path}"))
        .with_hint("move what is in the way, or leave that name to this program; nothing was written")
}

fn refuse_name(name: &str) -> Option<&'static str> {
    match name {
        "" | "." | ".." => Some("a part of its path is empty, . or .."),
        _ if name.eq_ignore_ascii_case(".git") => Some("git does not store .git"),
        _ if name.contains(['\0', '\\']) => Some("its path holds a character that git refuses"),
        _ => None,
    }
}

fn check_folder(
    git: &git2::Repository,
    tree: Option<Oid>,
    folder: &ChangedFolder<'_>,
    at: &str,
    found: &mut BTreeMap<String, GitError>,
) -> Result<(), GitError> {
    let tree = tree.map(|t| find_tree(git, t)).transpose()?;
    let existing = |name: &str| tree.as_ref().and_then(|t| t.get_name(name));
    let mut fresh = BTreeSet::new();
    for (name, (path, change)) in &folder.files {
        let entry = existing(name);
        let mode = entry.as_ref().map(git2::TreeEntry::filemode);
        let why = match (change, mode) {
            (_, Some(LINK)) => Some("there is a symbolic link at this path"),
            (_, Some(FOLDER)) => Some("there is a folder at this path"),
            (_, Some(_)) if entry.as_ref().and_then(git2::TreeEntry::kind) != Some(ObjectType::Blob) => {
                Some("there is a submodule at this path")
            }
            (FileChange::Write(_), None) => {
                fresh.insert(*name);
                None
            }
            (FileChange::Write(_) | FileChange::Delete, _) => None,
        };
        if let Some(why) = why {
            found.insert((*path).to_owned(), make_clash(path, why));
        }
    }
    for (name, below) in &folder.folders {
        let inside = if at.is_empty() { (*name).to_owned() } else { format!("{at}/{name}") };
        if let Some((path, FileChange::Write(_))) = folder.files.get(name)
            && below.has_writes()
        {
            found.insert(
                (*path).to_owned(),
                make_clash(path, "it is both a file and a folder among the changes"),
            );
            continue;
        }
        let why = match existing(name) {
            Some(entry) if entry.filemode() == FOLDER => {
                check_folder(git, Some(entry.id()), below, &inside, found)?;
                continue;
            }
            Some(_) if !below.has_writes() => continue,
            Some(entry) if entry.filemode() == LINK => format!("{inside} is a symbolic link"),
            Some(entry) if entry.kind() == Some(ObjectType::Commit) => format!("{inside} is a submodule"),
            Some(_) => format!("{inside} is a file, where a folder belongs"),
            None => {
                if below.has_writes() {
                    fresh.insert(*name);
                }
                check_folder(git, None, below, &inside, found)?;
                continue;
            }
        };
        for path in below.list_paths() {
            found.insert(path.to_owned(), make_clash(path, why.clone()));
        }
    }
    check_letter_case(tree.as_ref(), folder, &fresh, found);
    Ok(())
}

/// On file systems that ignore case two such names are one file: a checkout would lose one of them.
fn check_letter_case(
    tree: Option<&git2::Tree<'_>>,
    folder: &ChangedFolder<'_>,
    fresh: &BTreeSet<&str>,
    found: &mut BTreeMap<String, GitError>,
) {
    if fresh.is_empty() {
        return;
    }
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for entry in tree.iter().flat_map(|t| t.iter()) {
        let name = String::from_utf8_lossy(entry.name_bytes()).into_owned();
        let deleted = matches!(folder.files.get(name.as_str()), Some((_, FileChange::Delete)));
        if !deleted {
            names.insert(name.to_lowercase(), name);
        }
    }
    for name in fresh {
        let Some(other) = names.insert(name.to_lowercase(), (*name).to_owned()) else { continue };
        let why = format!("its name {name:?} and the existing {other:?} differ in case only");
        let file = folder.files.get(name).map(|(path, _)| vec![*path]);
        for path in
            file.or_else(|| folder.folders.get(name).map(ChangedFolder::list_paths)).unwrap_or_default()
        {
            found.insert(path.to_owned(), make_clash(path, why.clone()));
        }
    }
}

fn find_tree(git: &git2::Repository, tree: Oid) -> Result<git2::Tree<'_>, GitError> {
    git.find_tree(tree)
        .map_err(|e| make_error("repository-unreadable", "cannot read a folder of the repository", &e))
}

/// The tree that `root` becomes with `changes`, which fit (`clashes`). Folders that end up empty go, as
/// git has none. Modes of existing files stay.
///
/// # Errors
/// The repository could not be read or written; no reference has changed.
pub(crate) fn edit_tree(
    git: &git2::Repository,
    root: Option<Oid>,
    changes: &BTreeMap<String, FileChange>,
) -> Result<Oid, GitError> {
    let folder = ChangedFolder::from_changes(changes);
    if changes.len() < PACK_FROM {
        return TreeEdit { git, written: Vec::new() }.edit_root(root, &folder).map_err(make_unwritten);
    }
    let memory = libgit2::open_named(git.path(), &Environment::default()).map_err(make_unwritten)?;
    let odb = memory.odb().map_err(make_unwritten)?;
    let store = odb.add_new_mempack_backend(1_000).map_err(make_unwritten)?;
    let mut edit = TreeEdit { git: &memory, written: Vec::new() };
    let tree = edit.edit_root(root, &folder).map_err(make_unwritten)?;
    // Not `Mempack::dump`: it packs whole commits, and so files that nobody changed.
    let mut pack = memory.packbuilder().map_err(make_unwritten)?;
    for oid in &edit.written {
        pack.insert_object(*oid, None).map_err(make_unwritten)?;
    }
    let odb = git.odb().map_err(make_unwritten)?;
    let mut sink = odb.packwriter().map_err(make_unwritten)?;
    let mut failed = None;
    pack.foreach(|chunk| sink.write_all(chunk).map_err(|e| failed = Some(e)).is_ok())
        .map_err(make_unwritten)?;
    if let Some(e) = failed {
        return Err(GitError::new(
            GitErrorKind::Repository,
            "repository-unwritable",
            format!("cannot write objects: {e}"),
        ));
    }
    sink.commit().map_err(make_unwritten)?;
    store.reset().map_err(make_unwritten)?;
    Ok(tree)
}

fn make_unwritten(error: git2::Error) -> GitError {
    make_error("repository-unwritable", "cannot write objects", &error)
}

struct TreeEdit<'a> {
    git: &'a git2::Repository,
    written: Vec<Oid>,
}

impl TreeEdit<'_> {
    fn edit_root(&mut self, root: Option<Oid>, folder: &ChangedFolder<'_>) -> Result<Oid, git2::Error> {
        match self.edit_folder(root, folder)? {
            Some(tree) => Ok(tree),
            None => self.git.treebuilder(None)?.write(),
        }
    }

    /// The folder's new tree; `None` when nothing is left in it.
    fn edit_folder(
        &mut self,
        tree: Option<Oid>,
        folder: &ChangedFolder<'_>,
    ) -> Result<Option<Oid>, git2::Error> {
        let tree = tree.map(|t| self.git.find_tree(t)).transpose()?;
        let git = self.git;
        let mut builder = git.treebuilder(tree.as_ref())?;
        for (name, (_, change)) in &folder.files {
            if matches!(change, FileChange::Delete) && builder.get(name)?.is_some() {
                builder.remove(name)?;
            }
        }
        for (name, below) in &folder.folders {
            let old = builder.get(name)?.map(|e| (e.id(), e.filemode()));
            match old {
                Some((old, FOLDER)) => {
                    let new = self.edit_folder(Some(old), below)?;
                    place_folder(&mut builder, name, Some(old), new)?;
                }
                Some(_) => {}
                None => {
                    let new = self.edit_folder(None, below)?;
                    place_folder(&mut builder, name, None, new)?;
                }
            }
        }
        for (name, (_, change)) in &folder.files {
            let FileChange::Write(bytes) = change else { continue };
            let mode = builder.get(name)?.map_or(FILE, |e| e.filemode());
            let blob = self.git.blob(bytes)?;
            self.written.push(blob);
            builder.insert(name, blob, mode)?;
        }
        if builder.is_empty() {
            return Ok(None);
        }
        let new = builder.write()?;
        self.written.push(new);
        Ok(Some(new))
    }
}

fn place_folder(
    builder: &mut TreeBuilder<'_>,
    name: &str,
    old: Option<Oid>,
    new: Option<Oid>,
) -> Result<(), git2::Error> {
    match (old, new) {
        (_, Some(new)) if old != Some(new) => builder.insert(name, new, FOLDER).map(|_| ()),
        (Some(_), None) => builder.remove(name),
        (_, _) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn repository() -> (tempfile::TempDir, git2::Repository) {
        let dir = tempfile::tempdir().unwrap();
        let git = git2::Repository::init_bare(dir.path()).unwrap();
        (dir, git)
    }

    fn changes(of: &[(&str, Option<&str>)]) -> BTreeMap<String, FileChange> {
        of.iter()
            .map(|(p, b)| {
                let change = b.map_or(FileChange::Delete, |b| FileChange::Write(b.as_bytes().to_vec()));
                ((*p).to_owned(), change)
            })
            .collect()
    }

    fn listing(git: &git2::Repository, tree: Oid) -> Vec<String> {
        let mut names = Vec::new();
        git.find_tree(tree)
            .unwrap()
            .walk(git2::TreeWalkMode::PreOrder, |at, e| {
                if e.kind() != Some(ObjectType::Tree) {
                    names.push(format!("{at}{}", e.name().unwrap()));
                }
                0
            })
            .unwrap();
        names
    }

    /// A tree with a file, a link, a submodule and an executable.
    fn mixed(git: &git2::Repository) -> Oid {
        let blob = git.blob(b"x").unwrap();
        let mut b = git.treebuilder(None).unwrap();
        b.insert("file", blob, FILE).unwrap();
        b.insert("link", blob, LINK).unwrap();
        b.insert("script", blob, 0o100_755).unwrap();
        b.insert("sub", Oid::from_str("0123456789abcdef0123456789abcdef01234567").unwrap(), 0o160_000)
            .unwrap();
        let mut inner = git.treebuilder(None).unwrap();
        inner.insert("a.yaml", blob, FILE).unwrap();
        b.insert("applications", inner.write().unwrap(), FOLDER).unwrap();
        b.write().unwrap()
    }

    #[test]
    fn only_changed_paths_differ() {
        let (_dir, git) = repository();
        let root = mixed(&git);
        let edited = changes(&[("applications/shop/b.yaml", Some("b")), ("script", Some("new"))]);
        assert!(find_clashes(&git, Some(root), &edited).unwrap().is_empty());
        let tree = edit_tree(&git, Some(root), &edited).unwrap();
        assert_eq!(
            listing(&git, tree),
            ["applications/a.yaml", "applications/shop/b.yaml", "file", "link", "script", "sub"]
        );
        let found = git.find_tree(tree).unwrap();
        assert_eq!(found.get_name("script").unwrap().filemode(), 0o100_755);
        let back = changes(&[("applications/shop/b.yaml", None), ("script", Some("x"))]);
        assert_eq!(edit_tree(&git, Some(tree), &back).unwrap(), root, "emptied folders go");
    }

    #[test]
    fn what_has_no_place_is_named_and_the_rest_is_not() {
        let (_dir, git) = repository();
        let root = mixed(&git);
        let table = [
            ("file/a", "file is a file, where a folder belongs"),
            ("link/a", "link is a symbolic link"),
            ("link", "there is a symbolic link"),
            ("sub/a", "sub is a submodule"),
            ("sub", "there is a submodule"),
            ("applications", "there is a folder"),
            ("Applications/a", "differ in case only"),
            ("applications/A.yaml", "differ in case only"),
            ("a/.git/config", "does not store .git"),
            ("a/../b", "empty, . or .."),
        ];
        for (path, why) in table {
            let found = find_clashes(&git, Some(root), &changes(&[(path, Some("z"))])).unwrap();
            assert_eq!(found.len(), 1, "{path}");
            assert!(found[path].cause.contains(why), "{path}: {}", found[path].cause);
        }
        let both = changes(&[("link/a", Some("z")), ("applications/b.yaml", Some("z"))]);
        assert_eq!(find_clashes(&git, Some(root), &both).unwrap().keys().collect::<Vec<_>>(), ["link/a"]);
        let two = changes(&[("n/x.yaml", Some("1")), ("n/X.yaml", Some("2"))]);
        assert_eq!(find_clashes(&git, Some(root), &two).unwrap().len(), 1);
        let gone = changes(&[("file/never/there", None), ("applications/none", None)]);
        assert!(find_clashes(&git, Some(root), &gone).unwrap().is_empty());
        assert_eq!(edit_tree(&git, Some(root), &gone).unwrap(), root);
    }

    #[test]
    fn a_rename_in_case_only_is_no_clash() {
        let (_dir, git) = repository();
        let root = mixed(&git);
        let renamed = changes(&[("applications/a.yaml", None), ("applications/A.yaml", Some("z"))]);
        assert!(find_clashes(&git, Some(root), &renamed).unwrap().is_empty());
    }

    #[test]
    fn many_files_go_into_one_pack() {
        let (dir, git) = repository();
        let root = mixed(&git);
        let many: BTreeMap<String, FileChange> = (0..PACK_FROM)
            .map(|n| {
                (format!("applications/n{}/{n}.yaml", n % 7), FileChange::Write(format!("{n}").into_bytes()))
            })
            .collect();
        let tree = edit_tree(&git, Some(root), &many).unwrap();
        let fresh = git2::Repository::open_bare(dir.path()).unwrap();
        assert_eq!(listing(&fresh, tree).len(), PACK_FROM + 5);
        let packs = std::fs::read_dir(dir.path().join("objects/pack")).unwrap().count();
        assert_eq!(packs, 2, "one pack and its index");
    }
}
