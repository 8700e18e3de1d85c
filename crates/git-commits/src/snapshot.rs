//! One commit's files, read in place: what decisions are made on.

use crate::CommitId;
use crate::Repository;
use crate::error::make_error;
use crate::error::{GitError, GitErrorKind};
use crate::files::{EntryKind, FileEntry, Unreadable};
use crate::open::RefPlace;
use crate::remote::format_fetched_ref;
use git2::{ObjectType, Oid};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The reference in which attached records are remembered; read along with every branch.
pub const ATTACHED: &str = "refs/expedite/attached";

/// The files of a branch's commit.
pub struct Snapshot {
    /// The commit; `None` for an empty repository.
    pub head: Option<CommitId>,
    /// The branch it was read from, without `refs/heads/`.
    pub branch: String,
    name: String,
    git: Arc<Mutex<git2::Repository>>,
    pub(crate) commit: Option<Oid>,
    pub(crate) tree: Option<Oid>,
    /// Filled by `walk`: a folder of 40,000 files is not searched once per file.
    known: Mutex<HashMap<String, Oid>>,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("name", &self.name).field("head", &self.head).finish()
    }
}

impl Repository {
    /// Reads the head of `branch`.
    ///
    /// An empty repository, or one without any branch, has no head and no files: the first write makes
    /// the root commit on `branch`. A repository that has commits but not this branch is refused: an
    /// orphan branch is never made by accident.
    ///
    /// # Errors
    /// The branch is not a valid name or not there, or the repository cannot be read.
    pub fn read_snapshot(&self, branch: &str) -> Result<Snapshot, GitError> {
        let branch = branch.trim();
        let reference = format!("refs/heads/{branch}");
        if !git2::Reference::is_valid_name(&reference) {
            return Err(GitError::new_input("branch-name", format!("{branch:?} is no valid branch name"))
                .with_object(format!("repository {}", self.name)));
        }
        match &self.place {
            RefPlace::Here | RefPlace::Guarded(_) => self.read_commit(branch, &reference, &reference),
            RefPlace::Server { remote, depth, read, .. } => {
                let wanted = [reference.clone(), ATTACHED.to_owned()];
                let heads = remote.fetch_references(&self.git, &wanted, *depth)?;
                read.store(true, Ordering::Relaxed);
                if !heads.contains_key(&reference) {
                    let names = heads.keys().filter_map(|h| h.strip_prefix("refs/heads/")).map(str::to_owned);
                    refuse_absent_branch(&self.name, branch, &names.collect::<Vec<_>>())?;
                }
                self.read_commit(branch, &reference, &format_fetched_ref(&reference))
            }
            RefPlace::Elsewhere { upstream, .. } => {
                let snapshot = upstream.read_snapshot(branch)?;
                if snapshot.head.is_none() && self.lock_git().head().is_ok() {
                    return Err(self.make_not_pushed(upstream, branch));
                }
                Ok(snapshot)
            }
        }
    }

    /// The checkout holds commits, and the server that it follows holds none yet: what is meant is not there to read.
    fn make_not_pushed(&self, upstream: &Repository, branch: &str) -> GitError {
        GitError::new(
            GitErrorKind::Repository,
            "not-pushed",
            format!(
                "the checkout's commits are not on {} yet, and that is where runs read and write",
                upstream.name()
            ),
        )
        .with_object(format!("repository {}", self.name))
        .with_hint(format!("push them first: git push -u origin HEAD:{branch}"))
    }

    /// The commit of a reference beside the branches; on a server as of the last snapshot, or of now
    /// where `fresh`.
    pub(crate) fn resolve_side(&self, reference: &str, fresh: bool) -> Result<Option<Oid>, GitError> {
        let mut kept = reference.to_owned();
        if let RefPlace::Server { remote, depth, read, .. } = &self.place {
            if fresh || reference != ATTACHED || !read.load(Ordering::Relaxed) {
                remote.fetch_references(&self.git, &[reference.to_owned()], *depth)?;
            }
            kept = format_fetched_ref(reference);
        }
        match self.lock_git().refname_to_id(&kept) {
            Ok(oid) => Ok(Some(oid)),
            Err(e) if e.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(e) => Err(make_error("repository-unreadable", &format!("cannot read {reference}"), &e)),
        }
    }

    /// Reads the commit that `kept` points to, which is the repository's `reference`.
    fn read_commit(&self, branch: &str, reference: &str, kept: &str) -> Result<Snapshot, GitError> {
        let git = self.lock_git();
        let commit = match git.find_reference(kept) {
            Ok(found) => Some(
                found
                    .peel_to_commit()
                    .map_err(|e| make_error("repository-unreadable", "cannot read the branch", &e))?,
            ),
            Err(e) if e.code() == git2::ErrorCode::NotFound => {
                if kept == reference {
                    self.check_empty(&git, branch)?;
                }
                None
            }
            Err(e) => return Err(make_error("repository-unreadable", "cannot read the branch", &e)),
        };
        let (commit, tree) = match &commit {
            Some(commit) => (Some(commit.id()), Some(commit.tree_id())),
            None => (None, None),
        };
        Ok(Snapshot {
            head: commit.map(make_commit_id).transpose()?,
            branch: branch.to_owned(),
            name: format!("{}@{branch}", self.name),
            git: Arc::clone(&self.git),
            commit,
            tree,
            known: Mutex::default(),
        })
    }

    /// The branch to use where none was named: the checkout's, else the one that the repository itself
    /// names as its first; `None` when it has none or HEAD is detached.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub fn find_default_branch(&self) -> Result<Option<String>, GitError> {
        match &self.place {
            RefPlace::Here | RefPlace::Guarded(_) | RefPlace::Elsewhere { .. } => {
                let git = self.lock_git();
                let head = git
                    .find_reference("HEAD")
                    .map_err(|e| make_error("repository-unreadable", "cannot read HEAD", &e))?;
                let target = head.symbolic_target().ok().flatten().map(str::to_owned);
                Ok(target.and_then(|t| t.strip_prefix("refs/heads/").map(str::to_owned)))
            }
            RefPlace::Server { remote, .. } => remote.fetch_default_branch(&self.git),
        }
    }

    fn check_empty(&self, git: &git2::Repository, branch: &str) -> Result<(), GitError> {
        let unreadable = |e: git2::Error| make_error("repository-unreadable", "cannot list branches", &e);
        let mut names = Vec::new();
        for found in git.branches(Some(git2::BranchType::Local)).map_err(unreadable)? {
            let (found, _) = found.map_err(unreadable)?;
            names.push(String::from_utf8_lossy(found.name_bytes().map_err(unreadable)?).into_owned());
        }
        refuse_absent_branch(&self.name, branch, &names)
    }
}

/// Refuses a branch that is not among the repository's; none at all is an empty repository.
pub(crate) fn refuse_absent_branch(repository: &str, branch: &str, names: &[String]) -> Result<(), GitError> {
    if names.is_empty() {
        return Ok(());
    }
    let shown: Vec<&str> = names.iter().take(5).map(String::as_str).collect();
    let more = if names.len() > shown.len() { ", …" } else { "" };
    Err(GitError::new(
        GitErrorKind::Repository,
        "branch-absent",
        format!("it has no branch {branch:?} (it has {}{more})", shown.join(", ")),
    )
    .with_object(format!("repository {repository}"))
    .with_hint(format!(
        "name another branch with --branch, or create it: git push <remote> {}:refs/heads/{branch}",
        shown[0]
    )))
}

/// A git object id as ours.
pub(crate) fn make_commit_id(oid: Oid) -> Result<CommitId, GitError> {
    CommitId::parse(&oid.to_string())
        .map_err(|e| GitError::new(GitErrorKind::Internal, "commit-id", e.to_string()))
}

impl Snapshot {
    /// The files of one commit of a repository that is open.
    pub(crate) fn from_commit(
        git: &Arc<Mutex<git2::Repository>>,
        name: String,
        branch: &str,
        (commit, tree): (Oid, Oid),
    ) -> Result<Self, GitError> {
        Ok(Self {
            head: Some(make_commit_id(commit)?),
            branch: branch.to_owned(),
            name: format!("{name}@{branch}"),
            git: Arc::clone(git),
            commit: Some(commit),
            tree: Some(tree),
            known: Mutex::default(),
        })
    }

    /// The same commit once more.
    #[must_use]
    pub fn copy_fresh(&self) -> Self {
        Self {
            head: self.head.clone(),
            branch: self.branch.clone(),
            name: self.name.clone(),
            git: Arc::clone(&self.git),
            commit: self.commit,
            tree: self.tree,
            known: Mutex::default(),
        }
    }

    pub(crate) fn lock_git(&self) -> MutexGuard<'_, git2::Repository> {
        self.git.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Snapshot {
    /// As a user would name it: the repository and the branch.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Every entry at or below `prefix` (`""`: all), sorted by path, and what could not be listed. Hidden
    /// folders are left out.
    #[must_use]
    pub fn list_entries(&self, prefix: &str) -> (Vec<FileEntry>, Vec<Unreadable>) {
        let mut walk = Walk { git: &self.lock_git(), entries: Vec::new(), unreadable: Vec::new() };
        let prefix = prefix.trim_matches('/');
        if let Some(root) = self.tree {
            walk.walk_below(root, prefix);
        }
        let Walk { mut entries, unreadable, .. } = walk;
        entries.sort_by(|a, b| a.0.path.cmp(&b.0.path));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for (entry, oid) in &entries {
            if entry.kind == EntryKind::File {
                known.insert(entry.path.clone(), *oid);
            }
        }
        (entries.into_iter().map(|(entry, _)| entry).collect(), unreadable)
    }

    /// The bytes of one file; `None` when there is none.
    ///
    /// # Errors
    /// The file is there and could not be read.
    pub fn read_file(&self, path: &str) -> Result<Option<Vec<u8>>, Unreadable> {
        let unreadable = |e: &git2::Error| Unreadable { path: path.to_owned(), why: format_reason(e) };
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(path).copied();
        let git = self.lock_git();
        let oid = match (known, self.tree) {
            (Some(oid), _) => oid,
            (None, None) => return Ok(None),
            (None, Some(tree)) => {
                let tree = git.find_tree(tree).map_err(|e| unreadable(&e))?;
                match tree.get_path(std::path::Path::new(path)) {
                    Ok(entry) if entry.kind() == Some(ObjectType::Blob) && entry.filemode() != LINK => {
                        entry.id()
                    }
                    Ok(_) => return Ok(None),
                    Err(e) if e.code() == git2::ErrorCode::NotFound => return Ok(None),
                    Err(e) => return Err(unreadable(&e)),
                }
            }
        };
        let odb = git.odb().map_err(|e| unreadable(&e))?;
        let object = odb.read(oid).map_err(|e| unreadable(&e))?;
        Ok(Some(object.data().to_vec()))
    }
}

/// Mode of a symbolic link in a tree.
pub(crate) const LINK: i32 = 0o120_000;

fn format_reason(error: &git2::Error) -> String {
    if error.code() == git2::ErrorCode::NotFound {
        "its content is not in this clone (a partial clone lacks blobs); name the repository's URL".to_owned()
    } else {
        error.message().to_owned()
    }
}

struct Walk<'a> {
    git: &'a git2::Repository,
    entries: Vec<(FileEntry, Oid)>,
    unreadable: Vec<Unreadable>,
}

impl Walk<'_> {
    /// Everything at or below `prefix`.
    fn walk_below(&mut self, root: Oid, prefix: &str) {
        if prefix.is_empty() {
            return self.walk_tree(root, "");
        }
        let found = self.git.find_tree(root).and_then(|t| t.get_path(std::path::Path::new(prefix)));
        match found {
            Ok(entry) => self.take_entry(entry.kind(), entry.filemode(), entry.id(), prefix.to_owned()),
            Err(e) if e.code() == git2::ErrorCode::NotFound && self.git.find_tree(root).is_ok() => {}
            Err(e) => self.unreadable.push(Unreadable { path: prefix.to_owned(), why: format_reason(&e) }),
        }
    }

    fn walk_tree(&mut self, oid: Oid, path: &str) {
        let tree = match self.git.find_tree(oid) {
            Ok(tree) => tree,
            Err(e) => {
                return self.unreadable.push(Unreadable { path: path.to_owned(), why: format_reason(&e) });
            }
        };
        for entry in &tree {
            let at = match std::str::from_utf8(entry.name_bytes()) {
                Ok(name) if path.is_empty() => name.to_owned(),
                Ok(name) => format!("{path}/{name}"),
                Err(_) => {
                    let name = String::from_utf8_lossy(entry.name_bytes());
                    let why = "its name is not UTF-8".to_owned();
                    self.unreadable.push(Unreadable { path: format!("{path}/{name}"), why });
                    continue;
                }
            };
            let hidden = entry.name_bytes().starts_with(b".");
            if hidden && entry.kind() == Some(ObjectType::Tree) {
                continue;
            }
            self.take_entry(entry.kind(), entry.filemode(), entry.id(), at);
        }
    }

    fn take_entry(&mut self, kind: Option<ObjectType>, mode: i32, oid: Oid, path: String) {
        let kind = match kind {
            Some(ObjectType::Tree) => return self.walk_tree(oid, &path),
            Some(ObjectType::Commit) => EntryKind::Submodule,
            Some(ObjectType::Blob) if mode == LINK => EntryKind::Link,
            Some(ObjectType::Blob) => EntryKind::File,
            Some(ObjectType::Any | ObjectType::Tag) | None => {
                let why = "it is neither a file, a folder, a link nor a submodule".to_owned();
                return self.unreadable.push(Unreadable { path, why });
            }
        };
        self.entries.push((FileEntry { path, kind, id: Some(oid.to_string()) }, oid));
    }
}
