//! A checkout's own commits, by any name that git knows (`plan --base`): read where they are, nothing is fetched.

use crate::CommitId;
use crate::error::make_error;
use crate::error::{GitError, GitErrorKind};
use crate::files::{FileEntry, Unreadable};
use crate::snapshot::make_commit_id;
use crate::{Environment, Snapshot, libgit2};
use git2::Oid;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The repository of a checkout's files, whatever it follows.
pub struct Local {
    root: PathBuf,
    git: Arc<Mutex<git2::Repository>>,
}

/// What a change is compared with.
#[derive(Debug, Clone)]
pub struct Points {
    /// The commit that the reference names: its settings and trust count.
    pub tip: CommitId,
    /// Where the change begins: the newest commit that both have; the tip where none is known.
    pub fork: CommitId,
    /// The checkout's commit.
    pub head: CommitId,
    /// How many commits the tip has that the checkout lacks; `None`: they have no commit in common here.
    pub behind: Option<usize>,
}

impl Local {
    /// The checkout around a folder; `None` where there is none that may be read.
    #[must_use]
    pub fn open_around(folder: &Path, environment: &Environment) -> Option<Self> {
        let folder = folder.canonicalize().ok()?;
        // A checkout that was named is read whoever owns it, one found by going up is not: as everywhere.
        let git =
            libgit2::open_named(&folder, environment).or_else(|_| libgit2::open_around(&folder, environment));
        let git = git.ok()?;
        let root = git.workdir()?.canonicalize().ok()?;
        Some(Self { root, git: Arc::new(Mutex::new(git)) })
    }

    /// Where its files begin; canonical.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path of this machine as one of the repository's, with `/`; `None`: it lies outside. As it is written, if
    /// that is inside: a change that puts a link in its place does not move it out.
    #[must_use]
    pub fn resolve_inside(&self, path: &Path) -> Option<String> {
        let written = std::path::absolute(path).ok().map(|path| strip_dots(&path));
        let below = written.iter().find_map(|path| path.strip_prefix(&self.root).ok().map(Path::to_path_buf));
        let below = below
            .or_else(|| path.canonicalize().ok()?.strip_prefix(&self.root).ok().map(Path::to_path_buf))?;
        let parts: Option<Vec<&str>> = below.components().map(|c| c.as_os_str().to_str()).collect();
        Some(parts?.join("/"))
    }

    /// What a change is compared with.
    ///
    /// # Errors
    /// The reference names no commit of this clone, or there is no commit at all.
    pub fn resolve_points(&self, reference: &str) -> Result<Points, GitError> {
        let git = self.lock_repository();
        let unread = |e: git2::Error| make_error("repository-unreadable", "cannot read the checkout", &e);
        let commit = |name: &str| git.revparse_single(name).and_then(|o| o.peel_to_commit()).map(|c| c.id());
        let tip = commit(reference).or_else(|e| commit(&format!("origin/{reference}")).map_err(|_| e));
        let tip = tip.map_err(|e| {
            GitError::new(GitErrorKind::Repository, "unknown-ref", format!("it names no commit of this clone: {}", e.message()))
                .with_object(format!("--base {reference}"))
                .with_hint("git fetch origin <branch> brings it; in GitHub Actions: actions/checkout with fetch-depth: 0")
        })?;
        let head = commit("HEAD").map_err(unread)?;
        let (fork, behind) = match git.merge_base(tip, head) {
            Ok(fork) => (fork, Some(git.graph_ahead_behind(tip, head).map_err(unread)?.0)),
            Err(e) if e.code() == git2::ErrorCode::NotFound => (tip, None),
            Err(e) => return Err(unread(e)),
        };
        Ok(Points {
            tip: make_commit_id(tip)?,
            fork: make_commit_id(fork)?,
            head: make_commit_id(head)?,
            behind,
        })
    }

    /// Whether a file of the checkout is not as it is committed; untracked ones count.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        let git = self.lock_repository();
        let mut options = git2::StatusOptions::new();
        options.include_untracked(true);
        git.statuses(Some(&mut options)).is_ok_and(|statuses| !statuses.is_empty())
    }

    /// The files of a commit.
    ///
    /// # Errors
    /// It is not in this clone.
    pub fn read_snapshot(&self, commit: &CommitId, branch: &str) -> Result<Snapshot, GitError> {
        let unread =
            |e: git2::Error| make_error("repository-unreadable", &format!("cannot read {commit}"), &e);
        let git = self.lock_repository();
        let oid = Oid::from_str(&commit.to_string()).map_err(unread)?;
        let tree = git.find_commit(oid).map_err(unread)?.tree_id();
        Snapshot::from_commit(&self.git, self.root.display().to_string(), branch, (oid, tree))
    }

    fn lock_repository(&self) -> MutexGuard<'_, git2::Repository> {
        self.git.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Without `.` and `..`, by the letters alone.
fn strip_dots(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(part),
        }
    }
    out
}

/// A folder (or a file) of a commit, as a source that is read under the name of the one on disk.
#[derive(Debug)]
pub struct Below {
    /// The commit.
    pub snapshot: Snapshot,
    /// In the repository, with `/`; empty: all of it.
    pub prefix: String,
    /// As a user names the one on disk.
    pub name: String,
}

impl Below {
    /// The path of the repository for one below the folder.
    fn join_folder(&self, path: &str) -> String {
        let parts: Vec<&str> = [self.prefix.as_str(), path].into_iter().filter(|p| !p.is_empty()).collect();
        parts.join("/")
    }

    fn strip_folder(&self, path: &str) -> String {
        path.strip_prefix(&self.prefix).unwrap_or(path).trim_start_matches('/').to_owned()
    }
}

impl Below {
    /// Every entry at or below `prefix`, as [`Snapshot::list_entries`] gives them.
    #[must_use]
    pub fn list_entries(&self, prefix: &str) -> (Vec<FileEntry>, Vec<Unreadable>) {
        let (entries, lost) = self.snapshot.list_entries(&self.join_folder(prefix));
        let entries =
            entries.into_iter().map(|entry| FileEntry { path: self.strip_folder(&entry.path), ..entry });
        let lost = lost.into_iter().map(|lost| Unreadable { path: self.strip_folder(&lost.path), ..lost });
        (entries.collect(), lost.collect())
    }

    /// The bytes of one file; `None` when there is none.
    ///
    /// # Errors
    /// The file is there and could not be read.
    pub fn read_file(&self, path: &str) -> Result<Option<Vec<u8>>, Unreadable> {
        let lost = |lost: Unreadable| Unreadable { path: path.to_owned(), ..lost };
        self.snapshot.read_file(&self.join_folder(path)).map_err(lost)
    }
}
