//! A tree of files that can be listed and read: a folder, or a commit. The one shape in which sources
//! and the GitOps repository reach `load`.

use crate::error::Failure;
use git_commits::{Below, Snapshot};
pub use git_commits::{EntryKind, FileChange, FileEntry, Unreadable};

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

impl Files for Snapshot {
    fn name(&self) -> String {
        self.name().to_owned()
    }

    fn list_entries(&self, prefix: &str) -> (Vec<FileEntry>, Vec<Unreadable>) {
        self.list_entries(prefix)
    }

    fn read_file(&self, path: &str) -> Result<Option<Vec<u8>>, Unreadable> {
        self.read_file(path)
    }
}

impl Files for Below {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn list_entries(&self, prefix: &str) -> (Vec<FileEntry>, Vec<Unreadable>) {
        self.list_entries(prefix)
    }

    fn read_file(&self, path: &str) -> Result<Option<Vec<u8>>, Unreadable> {
        self.read_file(path)
    }
}
