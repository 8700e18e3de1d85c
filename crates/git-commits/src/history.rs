//! The history of a branch along its first parents: which commits there are, and what each changed below
//! some folders. Cost follows what changed: a folder with the same object id is not looked into.

use crate::error::make_error;
use crate::error::{GitError, GitErrorKind};
use crate::open::RefPlace;
use crate::remote::format_fetched_ref;
use crate::{Repository, Snapshot};
use git2::{ObjectType, Oid, Sort};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Commits of a branch, oldest first.
pub struct History {
    git: Arc<Mutex<git2::Repository>>,
    name: String,
    commits: Vec<Oid>,
}

/// One commit of a [`History`], with the tree before it.
pub struct Visit {
    /// Its files; `after.head` names it.
    pub after: Snapshot,
    /// Those of its first parent; `None`: it has none.
    pub before: Option<Snapshot>,
    /// Files below the folders that it added, changed or removed, sorted.
    pub changed: Vec<String>,
}

impl Repository {
    /// The first-parent history of `branch`, or of `range` as `git log` reads it: `A..B`, `A..` (to the
    /// branch; in a checkout to `HEAD`), `REV^!` (that commit alone), or `REV` (everything up to it).
    ///
    /// A range is looked up where a person would: in the checkout. Without one, what counts is the branch of the
    /// repository that a checkout follows.
    ///
    /// # Errors
    /// The range names nothing, the clone is too shallow for it (with the command that mends that), or the
    /// repository cannot be read.
    pub fn read_history(&self, branch: &str, range: Option<&str>) -> Result<History, GitError> {
        let named = |f: GitError| {
            if f.what.is_none() { f.with_object(format!("repository {}", self.name)) } else { f }
        };
        self.resolve_history(branch, range).map_err(named)
    }

    fn resolve_history(&self, branch: &str, range: Option<&str>) -> Result<History, GitError> {
        let own = matches!(self.place, RefPlace::Elsewhere { .. }) && range.is_some();
        let store = if own { self } else { self.store() };
        let (start, end) = match range {
            None => (None, None),
            Some(range) => parse_range(range)?,
        };
        let head = if own {
            "HEAD".to_owned()
        } else {
            let snapshot = store.read_snapshot(branch)?;
            if snapshot.commit.is_none() && end.is_none() {
                return Ok(store.make_history(Vec::new()));
            }
            let mut head = format!("refs/heads/{}", snapshot.branch);
            if let RefPlace::Server { remote, depth, .. } = &store.place {
                // What is fetched one commit deep is ours alone: it is completed. The clone of a person, or of
                // a job, is theirs to complete.
                if *depth != 0 {
                    remote.deepen_reference(&store.git, &head)?;
                }
                head = format_fetched_ref(&head);
            }
            head
        };
        let commits = {
            let git = store.lock_git();
            let to = match &end {
                Some(rev) => resolve_revision(&git, rev)?,
                None => resolve_revision(&git, &head)?,
            };
            let from = match start {
                Some(Start::At(rev)) => Some(resolve_revision(&git, &rev)?),
                Some(Start::ParentOf(rev)) => find_parent(&git, resolve_revision(&git, &rev)?)?,
                None => None,
            };
            walk_commits(&git, from, to)?
        };
        Ok(store.make_history(commits))
    }

    fn make_history(&self, commits: Vec<Oid>) -> History {
        History { git: Arc::clone(&self.git), name: self.name.clone(), commits }
    }
}

/// Where a range begins.
enum Start {
    At(String),
    ParentOf(String),
}

fn parse_range(range: &str) -> Result<(Option<Start>, Option<String>), GitError> {
    let range = range.trim();
    let wrong = |why: &str| {
        GitError::new(GitErrorKind::Usage, "range", why)
            .with_object(format!("range {range:?}"))
            .with_hint("write A..B, A.., REV^! or REV, as git log takes them")
    };
    let rev = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    if range.is_empty() || range == ".." {
        return Err(wrong("it names nothing"));
    }
    if range.contains("...") {
        return Err(wrong("a symmetric difference is no history"));
    }
    if let Some(one) = range.strip_suffix("^!") {
        return Ok((Some(Start::ParentOf(one.to_owned())), rev(one)));
    }
    match range.split_once("..") {
        Some(("", _)) => Err(wrong("its beginning is missing")),
        Some((from, to)) => Ok((rev(from).map(Start::At), rev(to))),
        None => Ok((None, rev(range))),
    }
}

fn make_unreadable_failure(e: &git2::Error) -> GitError {
    make_error("repository-unreadable", "cannot read the history", e)
}

fn make_shallow_failure() -> GitError {
    GitError::new(GitErrorKind::Repository, "shallow", "this clone is shallow, and the history goes on behind its edge")
        .with_hint("fetch the rest (git fetch --unshallow; with actions/checkout: fetch-depth: 0), or name a RANGE within it")
}

fn resolve_revision(git: &git2::Repository, rev: &str) -> Result<Oid, GitError> {
    // Branches of a server are kept below a name of our own.
    let found = git
        .revparse_single(rev)
        .or_else(|e| git.revparse_single(&format_fetched_ref(&format!("refs/heads/{rev}"))).map_err(|_| e));
    match found.and_then(|object| object.peel_to_commit()) {
        Ok(commit) => Ok(commit.id()),
        Err(_) if git.is_shallow() => Err(make_shallow_failure().with_field(rev.to_owned())),
        Err(e) => Err(make_error("range", &format!("{rev:?} names no commit"), &e)),
    }
}

/// The first parent as the commit names it, whatever a shallow clone makes of it.
fn find_parent(git: &git2::Repository, commit: Oid) -> Result<Option<Oid>, GitError> {
    let commit = git.find_commit(commit).map_err(|e| make_unreadable_failure(&e))?;
    let header = String::from_utf8_lossy(commit.raw_header_bytes()).into_owned();
    Ok(header.lines().find_map(|line| Oid::from_str(line.strip_prefix("parent ")?).ok()))
}

/// The commits of `from..to` along first parents, oldest first.
fn walk_commits(git: &git2::Repository, from: Option<Oid>, to: Oid) -> Result<Vec<Oid>, GitError> {
    let walk = || -> Result<Vec<Oid>, git2::Error> {
        let mut walk = git.revwalk()?;
        walk.set_sorting(Sort::TOPOLOGICAL | Sort::REVERSE)?;
        walk.simplify_first_parent()?;
        walk.push(to)?;
        if let Some(from) = from {
            walk.hide(from)?;
        }
        walk.collect()
    };
    let commits = walk()
        .map_err(|e| if git.is_shallow() { make_shallow_failure() } else { make_unreadable_failure(&e) })?;
    if let Some(oldest) = commits.first()
        && let Some(before) = find_parent(git, *oldest)?
        && git.find_commit(before).is_err()
    {
        return Err(make_shallow_failure());
    }
    Ok(commits)
}

impl History {
    /// How many commits there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.commits.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.commits.is_empty()
    }

    /// The commits that change a file below `folders`, oldest first.
    pub fn walk_visits<'h>(
        &'h self,
        folders: &'h [&'h str],
    ) -> impl Iterator<Item = Result<Visit, GitError>> + 'h {
        self.commits.iter().filter_map(|commit| self.read_visit(*commit, folders).transpose())
    }

    /// The newest commit's files; `None`: there is no commit.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub fn read_newest(&self) -> Result<Option<Snapshot>, GitError> {
        self.commits.last().map(|commit| self.read_snapshot(*commit)).transpose()
    }

    fn read_snapshot(&self, commit: Oid) -> Result<Snapshot, GitError> {
        let tree = {
            let git = self.git.lock().unwrap_or_else(PoisonError::into_inner);
            git.find_commit(commit).map(|found| found.tree_id()).map_err(|e| make_unreadable_failure(&e))?
        };
        Snapshot::from_commit(&self.git, self.name.clone(), &shorten_commit(commit), (commit, tree))
    }

    fn read_visit(&self, commit: Oid, folders: &[&str]) -> Result<Option<Visit>, GitError> {
        let (before, changed) = {
            let git = self.git.lock().unwrap_or_else(PoisonError::into_inner);
            let before = find_parent(&git, commit)?;
            let tree = |commit: Oid| {
                git.find_commit(commit).and_then(|c| c.tree()).map_err(|e| make_unreadable_failure(&e))
            };
            let (old, new) = (before.map(tree).transpose()?, tree(commit)?);
            let mut changed = Vec::new();
            for folder in folders {
                let below = |tree: &git2::Tree<'_>| {
                    let entry = tree.get_path(Path::new(folder)).ok()?;
                    (entry.kind() == Some(ObjectType::Tree)).then(|| entry.id())
                };
                let (old, new) = (old.as_ref().and_then(below), below(&new));
                collect_changes(&git, old, new, folder, &mut changed)
                    .map_err(|e| make_unreadable_failure(&e))?;
            }
            (before, changed)
        };
        if changed.is_empty() {
            return Ok(None);
        }
        let before = before.map(|before| self.read_snapshot(before)).transpose()?;
        Ok(Some(Visit { after: self.read_snapshot(commit)?, before, changed }))
    }
}

fn shorten_commit(commit: Oid) -> String {
    commit.to_string().chars().take(12).collect()
}

/// Adds every file below `at` that is not the same in both trees.
fn collect_changes(
    git: &git2::Repository,
    old: Option<Oid>,
    new: Option<Oid>,
    at: &str,
    changed: &mut Vec<String>,
) -> Result<(), git2::Error> {
    if old == new {
        return Ok(());
    }
    let tree = |oid: Option<Oid>| oid.map(|oid| git.find_tree(oid)).transpose();
    let (old, new) = (tree(old)?, tree(new)?);
    let names: BTreeSet<Vec<u8>> =
        [&old, &new].into_iter().flatten().flat_map(|t| t.iter().map(|e| e.name_bytes().to_vec())).collect();
    for name in names {
        let entry = |tree: &Option<git2::Tree<'_>>| {
            let entry = tree.as_ref()?.get_name_bytes(&name)?;
            Some((entry.kind() == Some(ObjectType::Tree), entry.id(), entry.filemode()))
        };
        let (before, after) = (entry(&old), entry(&new));
        if before == after {
            continue;
        }
        let path = format!("{at}/{}", String::from_utf8_lossy(&name));
        let folder = |entry: Option<(bool, Oid, i32)>| entry.filter(|e| e.0).map(|e| e.1);
        let is_file = |entry: Option<(bool, Oid, i32)>| entry.is_some_and(|e| !e.0);
        collect_changes(git, folder(before), folder(after), &path, changed)?;
        if is_file(before) || is_file(after) {
            changed.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn ranges_are_read_as_git_log_reads_them() {
        let said = |range: &str| {
            let (start, end) = parse_range(range).unwrap();
            let start = start.map(|s| match s {
                Start::At(rev) => rev,
                Start::ParentOf(rev) => format!("{rev}^"),
            });
            (start.unwrap_or_default(), end.unwrap_or_default())
        };
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(said("v1..main\n"), pair("v1", "main"));
        assert_eq!(said("v1.."), pair("v1", ""));
        assert_eq!(said("main~3"), pair("", "main~3"));
        assert_eq!(said("abc^!"), pair("abc^", "abc"));
        for bad in ["", " ", "..", "..b", "a...b"] {
            assert_eq!(parse_range(bad).err().map(|f| f.kind), Some(GitErrorKind::Usage), "{bad:?}");
        }
    }
}
