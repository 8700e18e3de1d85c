//! Moves a reference by compare-and-swap, wherever it is.

use crate::error::Failure;
use crate::git::open::Place;
use crate::git::remote::{Advance, Step, fetched};
use crate::git::swap::swap;
use crate::git::{Repository, failure};
use git2::Oid;

impl Repository {
    /// Moves `reference` forward to `new`, which is a descendant of it, if it still is `expected` (none: if
    /// there is none). A reference on a server is read back.
    ///
    /// # Errors
    /// The repository cannot be written, or a server cannot be reached or refuses us.
    pub(crate) fn advance(
        &self,
        reference: &str,
        new: Oid,
        expected: Option<Oid>,
        log: &str,
    ) -> Result<Advance, Failure> {
        self.point(reference, new, expected, log, Step::Forward)
    }

    /// The same for a branch of our own, whose commit `expected` may be left behind. Still nothing but
    /// `expected` is replaced.
    pub(crate) fn replace(
        &self,
        reference: &str,
        new: Oid,
        expected: Option<Oid>,
        log: &str,
    ) -> Result<Advance, Failure> {
        self.point(reference, new, expected, log, Step::Anywhere)
    }

    fn point(
        &self,
        reference: &str,
        new: Oid,
        expected: Option<Oid>,
        log: &str,
        step: Step,
    ) -> Result<Advance, Failure> {
        let named = |f: Failure| if f.what.is_none() { f.of(format!("repository {}", self.name)) } else { f };
        match &self.place {
            Place::Here => {
                let swapped = swap(&self.lock(), reference, expected, new, log).map_err(named)?;
                Ok(if swapped { Advance::Done } else { Advance::Moved })
            }
            Place::Guarded(remote) | Place::Server { remote, .. } => {
                remote.push(&self.git, reference, new, expected, step).map_err(named)
            }
            Place::Elsewhere { upstream, .. } => upstream.point(reference, new, expected, log, step),
        }
    }

    /// Whether `commit` is part of `branch` as it is now.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub(crate) fn merged(&self, commit: Oid, branch: &str) -> Result<bool, Failure> {
        let reference = format!("refs/heads/{branch}");
        let mut kept = reference.clone();
        if let Place::Server { remote, .. } = &self.place {
            // The whole history: seldom asked for, and nothing less can tell.
            remote.deepen(&self.git, &reference)?;
            kept = fetched(&reference);
        }
        let git = self.lock();
        let compared = git
            .refname_to_id(&kept)
            .and_then(|head| Ok(head == commit || git.graph_descendant_of(head, commit)?));
        compared.map_err(|e| failure("repository-unreadable", "cannot compare commits", &e))
    }
}
