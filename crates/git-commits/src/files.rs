//! The files of a commit, as they are listed and changed.

/// What an entry of a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A symbolic link.
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

/// What happens to one path of the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileChange {
    /// The file has exactly these bytes afterwards.
    Write(Vec<u8>),
    /// The file is gone afterwards.
    Delete,
}
