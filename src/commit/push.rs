//! The compare-and-swap itself.

use super::{Outcome, Proposal, tree};
use crate::error::{Failure, Kind};
use crate::files::Change;
use crate::git::snapshot::commit_id;
use crate::git::{Repository, Snapshot, failure};
use git2::{ErrorCode, Oid, Signature};
use std::collections::BTreeMap;
use std::time::Duration;

pub(super) fn write(
    repository: &Repository,
    base: &Snapshot,
    changes: &BTreeMap<String, Change>,
    proposal: Proposal<'_>,
) -> Result<Outcome, Failure> {
    let git = repository.lock();
    if !git.is_bare() {
        return Err(Failure::new(Kind::Repository, "checkout", "a checkout cannot be written by this build")
            .of(format!("repository {}", repository.name()))
            .hint("name a bare repository"));
    }
    let named =
        |f: Failure| if f.what.is_none() { f.of(format!("repository {}", repository.name())) } else { f };
    if let Some(clash) = tree::clashes(&git, base.tree, changes).map_err(named)?.into_values().next() {
        return Err(clash);
    }
    let tree = tree::edit(&git, base.tree, changes).map_err(named)?;
    if base.tree == Some(tree) || (base.tree.is_none() && git.find_tree(tree).is_ok_and(|t| t.is_empty())) {
        return Ok(Outcome::Unchanged);
    }
    let commit = commit(&git, base.commit, tree, proposal).map_err(named)?;
    let reference = format!("refs/heads/{}", base.branch);
    let subject = proposal.message.lines().next().unwrap_or_default();
    match swap(&git, &reference, base.commit, commit, subject).map_err(named)? {
        true => Ok(Outcome::Pushed(commit_id(commit)?)),
        false => Ok(Outcome::Moved),
    }
}

fn commit(
    git: &git2::Repository,
    parent: Option<Oid>,
    tree: Oid,
    proposal: Proposal<'_>,
) -> Result<Oid, Failure> {
    let failed = |e: git2::Error| failure("repository-unwritable", "cannot write the commit", &e);
    let when = git2::Time::new(proposal.at.unix(), 0);
    let signature = |p: &super::Person| Signature::new(&p.name, &p.email, &when).map_err(failed);
    let author = signature(&proposal.identity.author)?;
    let committer = signature(&proposal.identity.committer)?;
    let tree = git.find_tree(tree).map_err(failed)?;
    let parent = parent.map(|p| git.find_commit(p)).transpose().map_err(failed)?;
    let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
    git.commit(None, &author, &committer, proposal.message, &tree, &parents).map_err(failed)
}

/// Points `reference` to `new` if it still is `expected` (absent: if there is none). False when it is not.
fn swap(
    git: &git2::Repository,
    reference: &str,
    expected: Option<Oid>,
    new: Oid,
    subject: &str,
) -> Result<bool, Failure> {
    // The zero id means "must not exist", checked under the reference's lock like every other value.
    let old = expected.unwrap_or(Oid::ZERO_SHA1);
    let log = format!("commit: {subject}");
    let mut tries = 0;
    loop {
        match git.reference_matching(reference, new, true, old, &log) {
            Ok(_) => return Ok(true),
            Err(e) if e.code() == ErrorCode::Modified || e.code() == ErrorCode::NotFound => return Ok(false),
            // Another writer holds the lock for a moment.
            Err(e) if e.code() == ErrorCode::Locked && tries < 200 => {
                tries += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(e) if e.code() == ErrorCode::Locked => {
                return Err(Failure::new(
                    Kind::Repository,
                    "reference-locked",
                    format!("{reference} stays locked"),
                )
                .hint(format!("if no git process is running, remove {reference}.lock in the repository")));
            }
            Err(e) => {
                return Err(failure("repository-unwritable", &format!("cannot update {reference}"), &e));
            }
        }
    }
}
