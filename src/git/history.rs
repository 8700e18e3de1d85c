//! The history of a branch along its first parents: which commits there are, and what each changed below
//! some folders. Cost follows what changed: a folder with the same object id is not looked into.

use crate::error::{Failure, Kind};
use crate::git::open::Place;
use crate::git::remote::fetched;
use crate::git::{Repository, Snapshot, failure};
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
    pub fn history(&self, branch: &str, range: Option<&str>) -> Result<History, Failure> {
        let named = |f: Failure| if f.what.is_none() { f.of(format!("repository {}", self.name)) } else { f };
        self.history_of(branch, range).map_err(named)
    }

    fn history_of(&self, branch: &str, range: Option<&str>) -> Result<History, Failure> {
        let own = matches!(self.place, Place::Elsewhere { .. }) && range.is_some();
        let store = if own { self } else { self.store() };
        let (start, end) = match range {
            None => (None, None),
            Some(range) => parse(range)?,
        };
        let head = if own {
            "HEAD".to_owned()
        } else {
            let snapshot = store.snapshot(branch)?;
            if snapshot.commit.is_none() && end.is_none() {
                return Ok(store.along(Vec::new()));
            }
            let mut head = format!("refs/heads/{}", snapshot.branch);
            if let Place::Server { remote, depth, .. } = &store.place {
                // What is fetched one commit deep is ours alone: it is completed. The clone of a person, or of
                // a job, is theirs to complete.
                if *depth != 0 {
                    remote.deepen(&store.git, &head)?;
                }
                head = fetched(&head);
            }
            head
        };
        let commits = {
            let git = store.lock();
            let to = match &end {
                Some(rev) => resolve(&git, rev)?,
                None => resolve(&git, &head)?,
            };
            let from = match start {
                Some(Start::At(rev)) => Some(resolve(&git, &rev)?),
                Some(Start::ParentOf(rev)) => parent(&git, resolve(&git, &rev)?)?,
                None => None,
            };
            walked(&git, from, to)?
        };
        Ok(store.along(commits))
    }

    fn along(&self, commits: Vec<Oid>) -> History {
        History { git: Arc::clone(&self.git), name: self.name.clone(), commits }
    }
}

/// Where a range begins.
enum Start {
    At(String),
    ParentOf(String),
}

fn parse(range: &str) -> Result<(Option<Start>, Option<String>), Failure> {
    let range = range.trim();
    let wrong = |why: &str| {
        Failure::new(Kind::Usage, "range", why)
            .of(format!("range {range:?}"))
            .hint("write A..B, A.., REV^! or REV, as git log takes them")
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

fn unreadable(e: &git2::Error) -> Failure {
    failure("repository-unreadable", "cannot read the history", e)
}

fn too_shallow() -> Failure {
    Failure::new(Kind::Repository, "shallow", "this clone is shallow, and the history goes on behind its edge")
        .hint("fetch the rest (git fetch --unshallow; with actions/checkout: fetch-depth: 0), or name a RANGE within it")
}

fn resolve(git: &git2::Repository, rev: &str) -> Result<Oid, Failure> {
    // Branches of a server are kept below a name of our own.
    let found = git
        .revparse_single(rev)
        .or_else(|e| git.revparse_single(&fetched(&format!("refs/heads/{rev}"))).map_err(|_| e));
    match found.and_then(|object| object.peel_to_commit()) {
        Ok(commit) => Ok(commit.id()),
        Err(_) if git.is_shallow() => Err(too_shallow().field(rev.to_owned())),
        Err(e) => Err(failure("range", &format!("{rev:?} names no commit"), &e)),
    }
}

/// The first parent as the commit names it, whatever a shallow clone makes of it.
fn parent(git: &git2::Repository, commit: Oid) -> Result<Option<Oid>, Failure> {
    let commit = git.find_commit(commit).map_err(|e| unreadable(&e))?;
    let header = String::from_utf8_lossy(commit.raw_header_bytes()).into_owned();
    Ok(header.lines().find_map(|line| Oid::from_str(line.strip_prefix("parent ")?).ok()))
}

/// The commits of `from..to` along first parents, oldest first.
fn walked(git: &git2::Repository, from: Option<Oid>, to: Oid) -> Result<Vec<Oid>, Failure> {
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
    let commits = walk().map_err(|e| if git.is_shallow() { too_shallow() } else { unreadable(&e) })?;
    if let Some(oldest) = commits.first()
        && let Some(before) = parent(git, *oldest)?
        && git.find_commit(before).is_err()
    {
        return Err(too_shallow());
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
    pub fn visits<'h>(&'h self, folders: &'h [&'h str]) -> impl Iterator<Item = Result<Visit, Failure>> + 'h {
        self.commits.iter().filter_map(|commit| self.visit(*commit, folders).transpose())
    }

    /// The newest commit's files; `None`: there is no commit.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub fn newest(&self) -> Result<Option<Snapshot>, Failure> {
        self.commits.last().map(|commit| self.snapshot(*commit)).transpose()
    }

    fn snapshot(&self, commit: Oid) -> Result<Snapshot, Failure> {
        let tree = {
            let git = self.git.lock().unwrap_or_else(PoisonError::into_inner);
            git.find_commit(commit).map(|found| found.tree_id()).map_err(|e| unreadable(&e))?
        };
        Snapshot::of(&self.git, self.name.clone(), &short(commit), (commit, tree))
    }

    fn visit(&self, commit: Oid, folders: &[&str]) -> Result<Option<Visit>, Failure> {
        let (before, changed) = {
            let git = self.git.lock().unwrap_or_else(PoisonError::into_inner);
            let before = parent(&git, commit)?;
            let tree =
                |commit: Oid| git.find_commit(commit).and_then(|c| c.tree()).map_err(|e| unreadable(&e));
            let (old, new) = (before.map(tree).transpose()?, tree(commit)?);
            let mut changed = Vec::new();
            for folder in folders {
                let below = |tree: &git2::Tree<'_>| {
                    let entry = tree.get_path(Path::new(folder)).ok()?;
                    (entry.kind() == Some(ObjectType::Tree)).then(|| entry.id())
                };
                let (old, new) = (old.as_ref().and_then(below), below(&new));
                differ(&git, old, new, folder, &mut changed).map_err(|e| unreadable(&e))?;
            }
            (before, changed)
        };
        if changed.is_empty() {
            return Ok(None);
        }
        let before = before.map(|before| self.snapshot(before)).transpose()?;
        Ok(Some(Visit { after: self.snapshot(commit)?, before, changed }))
    }
}

fn short(commit: Oid) -> String {
    commit.to_string().chars().take(12).collect()
}

/// Adds every file below `at` that is not the same in both trees.
fn differ(
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
        differ(git, folder(before), folder(after), &path, changed)?;
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
            let (start, end) = parse(range).unwrap();
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
            assert_eq!(parse(bad).err().map(|f| f.kind), Some(Kind::Usage), "{bad:?}");
        }
    }
}
