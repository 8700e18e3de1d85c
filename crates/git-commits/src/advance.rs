//! Moves a reference by compare-and-swap, wherever it is.

use crate::Repository;
use crate::error::GitError;
use crate::error::make_error;
use crate::open::RefPlace;
use crate::remote::{Advance, PushStep, format_fetched_ref};
use crate::swap::swap_reference;
use git2::Oid;

impl Repository {
    /// Moves `reference` forward to `new`, which is a descendant of it, if it still is `expected` (none: if
    /// there is none). A reference on a server is read back.
    ///
    /// # Errors
    /// The repository cannot be written, or a server cannot be reached or refuses us.
    pub(crate) fn advance_reference(
        &self,
        reference: &str,
        new: Oid,
        expected: Option<Oid>,
        log: &str,
    ) -> Result<Advance, GitError> {
        self.move_reference(reference, new, expected, log, PushStep::Forward)
    }

    /// The same for a branch of our own, whose commit `expected` may be left behind. Still nothing but
    /// `expected` is replaced.
    pub(crate) fn replace_reference(
        &self,
        reference: &str,
        new: Oid,
        expected: Option<Oid>,
        log: &str,
    ) -> Result<Advance, GitError> {
        self.move_reference(reference, new, expected, log, PushStep::Anywhere)
    }

    fn move_reference(
        &self,
        reference: &str,
        new: Oid,
        expected: Option<Oid>,
        log: &str,
        step: PushStep,
    ) -> Result<Advance, GitError> {
        let named = |f: GitError| {
            if f.what.is_none() { f.with_object(format!("repository {}", self.name)) } else { f }
        };
        match &self.place {
            RefPlace::Here => {
                let swapped =
                    swap_reference(&self.lock_git(), reference, expected, new, log).map_err(named)?;
                Ok(if swapped { Advance::Done } else { Advance::Moved })
            }
            RefPlace::Guarded(remote) | RefPlace::Server { remote, .. } => {
                remote.push_reference(&self.git, reference, new, expected, step).map_err(named)
            }
            RefPlace::Elsewhere { upstream, .. } => {
                upstream.move_reference(reference, new, expected, log, step)
            }
        }
    }

    /// Whether `commit` is part of `branch` as it is now.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub(crate) fn is_merged(&self, commit: Oid, branch: &str) -> Result<bool, GitError> {
        let reference = format!("refs/heads/{branch}");
        let mut kept = reference.clone();
        if let RefPlace::Server { remote, .. } = &self.place {
            // The whole history: seldom asked for, and nothing less can tell.
            remote.deepen_reference(&self.git, &reference)?;
            kept = format_fetched_ref(&reference);
        }
        let git = self.lock_git();
        let compared = git
            .refname_to_id(&kept)
            .and_then(|head| Ok(head == commit || git.graph_descendant_of(head, commit)?));
        compared.map_err(|e| make_error("repository-unreadable", "cannot compare commits", &e))
    }
}
