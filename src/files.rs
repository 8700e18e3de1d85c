//! A tree of files that can be listed and read: a folder, or a commit. The one shape in which sources
//! and the GitOps repository reach `load`.

use crate::error::Failure;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A symbolic link (in a commit; a folder source has resolved it or refused it).
    Link,
    /// A submodule (its files are not here).
    Submodule,
}

/// One entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// Relative to the root, with `/`.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
    /// Changes when the content changes (a git blob id), where the tree knows one.
    pub id: Option<String>,
}

/// Something that could not be listed or read, with the path it concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Relative to the root.
    pub path: String,
    /// Why, for a person.
    pub why: String,
}

/// A tree of files.
pub trait Files {
    /// As a user would name the root (`./objects`, `../gitops.git@main`).
    fn name(&self) -> String;

    /// Every entry at or below `prefix` (`""`: all), sorted by path, and what could not be listed.
    /// Hidden folders are left out.
    fn list_entries(&self, prefix: &str) -> (Vec<FileEntry>, Vec<Unreadable>);

    /// The bytes of one file; `None` when there is none.
    ///
    /// # Errors
    /// The file is there and could not be read.
    fn read_file(&self, path: &str) -> Result<Option<Vec<u8>>, Unreadable>;

    /// What whoever reads the tree should know of where it comes from, though all of it could be read.
    fn collect_remarks(&self) -> Vec<Failure> {
        Vec::new()
    }
}

/// What happens to one path of the GitOps repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileChange {
    /// The file has exactly these bytes afterwards.
    Write(Vec<u8>),
    /// The file is gone afterwards.
    Delete,
}
