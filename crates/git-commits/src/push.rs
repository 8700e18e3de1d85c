//! Builds the commit and puts it where it belongs.

use super::checkout::CheckoutReady;
use super::{Proposal, WriteOutcome, checkout, tree};
use crate::error::GitError;
use crate::error::make_error;
use crate::files::FileChange;
use crate::remote::Advance;
use crate::snapshot::make_commit_id;
use crate::{Repository, Snapshot};
use git2::{Oid, Signature};
use std::collections::BTreeMap;

pub(super) fn push_changes(
    repository: &Repository,
    base: &Snapshot,
    changes: &BTreeMap<String, FileChange>,
    proposal: Proposal<'_>,
) -> Result<WriteOutcome, GitError> {
    let named = |f: GitError| {
        if f.what.is_none() { f.with_object(format!("repository {}", repository.name())) } else { f }
    };
    push_commit(repository, base, changes, proposal).map_err(named)
}

fn push_commit(
    repository: &Repository,
    base: &Snapshot,
    changes: &BTreeMap<String, FileChange>,
    proposal: Proposal<'_>,
) -> Result<WriteOutcome, GitError> {
    let store = repository.store();
    checkout::recover_checkout(repository, store, base)?;
    let tree = {
        let git = store.lock_git();
        if let Some(clash) = tree::find_clashes(&git, base.tree, changes)?.into_values().next() {
            return Err(clash);
        }
        let tree = tree::edit_tree(&git, base.tree, changes)?;
        let nothing = base.tree.is_none() && git.find_tree(tree).is_ok_and(|t| t.is_empty());
        if base.tree == Some(tree) || nothing {
            return Ok(WriteOutcome::Unchanged);
        }
        tree
    };
    let checkout = match checkout::prepare_checkout(repository, store, base, tree)? {
        CheckoutReady::Nothing => None,
        CheckoutReady::Checkout(checkout) => Some(checkout),
        CheckoutReady::Moved => return Ok(WriteOutcome::Moved),
    };
    let new = write_commit(&store.lock_git(), base.commit, tree, proposal)?;
    let subject = proposal.message.lines().next().unwrap_or_default();
    let reference = format!("refs/heads/{}", base.branch);
    if let Some(checkout) = &checkout {
        checkout.announce_move(new)?;
    }
    let advanced = store.advance_reference(&reference, new, base.commit, &format!("commit: {subject}"));
    let not_pushed = match advanced {
        Ok(Advance::Done) => {
            // The commit stands, whatever becomes of the checkout.
            if let Some(checkout) = checkout
                && let Err(error) = checkout.bring_along(repository, store, new)
            {
                repository.add_note(error);
            }
            return Ok(WriteOutcome::Pushed(make_commit_id(new)?));
        }
        Ok(Advance::Moved) => Ok(WriteOutcome::Moved),
        Ok(Advance::Refused(words)) => Ok(WriteOutcome::Refused(words)),
        Err(error) => Err(error),
    };
    if let Some(checkout) = checkout {
        checkout.forget_move();
    }
    not_pushed
}

/// Writes a commit of `tree`; no reference points to it yet.
pub(super) fn write_commit(
    git: &git2::Repository,
    parent: Option<Oid>,
    tree: Oid,
    proposal: Proposal<'_>,
) -> Result<Oid, GitError> {
    let failed = |e: git2::Error| make_error("repository-unwritable", "cannot write the commit", &e);
    let when = git2::Time::new(proposal.at, 0);
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
    let signature = signer.sign_commit(&text)?;
    let text = text.as_str().map_err(failed)?;
    git.commit_signed(text, &signature, None).map_err(failed)
}
