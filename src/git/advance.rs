//! Moves a reference by compare-and-swap, wherever it is.

use crate::error::{Failure, Kind};
use crate::git::open::Place;
use crate::git::remote::Advance;
use crate::git::{Repository, failure};
use git2::{ErrorCode, Oid};
use std::time::Duration;

impl Repository {
    /// Points `reference` to `new` if it still is `expected` (none: if there is none). A reference on a
    /// server is read back.
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
        let named = |f: Failure| if f.what.is_none() { f.of(format!("repository {}", self.name)) } else { f };
        match &self.place {
            Place::Here => {
                let swapped = swap(&self.lock(), reference, expected, new, log).map_err(named)?;
                Ok(if swapped { Advance::Done } else { Advance::Moved })
            }
            Place::Guarded(remote) | Place::Server { remote, .. } => {
                remote.push(&self.git, reference, new, expected).map_err(named)
            }
            Place::Elsewhere { upstream, .. } => upstream.advance(reference, new, expected, log),
        }
    }
}

/// Points `reference` to `new` if it still is `expected` (absent: if there is none). False when it is not.
pub(crate) fn swap(
    git: &git2::Repository,
    reference: &str,
    expected: Option<Oid>,
    new: Oid,
    log: &str,
) -> Result<bool, Failure> {
    // The zero id means "must not exist", checked under the reference's lock like every other value.
    let old = expected.unwrap_or(Oid::ZERO_SHA1);
    let mut tries = 0;
    loop {
        match git.reference_matching(reference, new, true, old, log) {
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
