//! Builds the commit and puts it where it belongs.

use super::checkout::Ready;
use super::{Outcome, Proposal, checkout, tree};
use crate::error::Failure;
use crate::files::Change;
use crate::git::remote::Advance;
use crate::git::snapshot::commit_id;
use crate::git::{Repository, Snapshot, failure};
use git2::{Oid, Signature};
use std::collections::BTreeMap;

pub(super) fn write(
    repository: &Repository,
    base: &Snapshot,
    changes: &BTreeMap<String, Change>,
    proposal: Proposal<'_>,
) -> Result<Outcome, Failure> {
    let named =
        |f: Failure| if f.what.is_none() { f.of(format!("repository {}", repository.name())) } else { f };
    write_named(repository, base, changes, proposal).map_err(named)
}

fn write_named(
    repository: &Repository,
    base: &Snapshot,
    changes: &BTreeMap<String, Change>,
    proposal: Proposal<'_>,
) -> Result<Outcome, Failure> {
    let store = repository.store();
    checkout::recover(repository, store, base)?;
    let tree = {
        let git = store.lock();
        if let Some(clash) = tree::clashes(&git, base.tree, changes)?.into_values().next() {
            return Err(clash);
        }
        let tree = tree::edit(&git, base.tree, changes)?;
        let nothing = base.tree.is_none() && git.find_tree(tree).is_ok_and(|t| t.is_empty());
        if base.tree == Some(tree) || nothing {
            return Ok(Outcome::Unchanged);
        }
        tree
    };
    let checkout = match checkout::prepare(repository, store, base, tree)? {
        Ready::Nothing => None,
        Ready::Checkout(checkout) => Some(checkout),
        Ready::Moved => return Ok(Outcome::Moved),
    };
    let new = commit(&store.lock(), base.commit, tree, proposal)?;
    let subject = proposal.message.lines().next().unwrap_or_default();
    let reference = format!("refs/heads/{}", base.branch);
    if let Some(checkout) = &checkout {
        checkout.announce(new)?;
    }
    let advanced = store.advance(&reference, new, base.commit, &format!("commit: {subject}"));
    if matches!(advanced, Ok(Advance::Done)) {
        // The commit stands, whatever becomes of the checkout.
        if let Some(checkout) = checkout
            && let Err(failure) = checkout.bring(repository, store, new)
        {
            repository.note(failure);
        }
        return Ok(Outcome::Pushed(commit_id(new)?));
    }
    if let Some(checkout) = checkout {
        checkout.forget();
    }
    match advanced? {
        Advance::Done => Ok(Outcome::Pushed(commit_id(new)?)),
        Advance::Moved => Ok(Outcome::Moved),
        Advance::Refused(words) => Ok(Outcome::Refused(words)),
    }
}

/// Writes a commit of `tree`; no reference points to it yet.
pub(super) fn commit(
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
    let Some(signer) = &proposal.identity.signer else {
        return git.commit(None, &author, &committer, proposal.message, &tree, &parents).map_err(failed);
    };
    let text =
        git.commit_create_buffer(&author, &committer, proposal.message, &tree, &parents).map_err(failed)?;
    let signature = signer.sign(&text)?;
    let text = text.as_str().map_err(failed)?;
    git.commit_signed(text, &signature, None).map_err(failed)
}
