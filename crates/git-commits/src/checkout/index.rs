//! The checkout's index, taken for one change: locked against git, changed in a copy, put in place at once.
//!
//! The lock says whose it is. One that is ours, while nobody holds the checkout, was left by a run that was
//! killed, and is taken away; git's own locks are never touched.

use crate::error::{GitError, GitErrorKind};
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The lock that git and everything like it respects.
const LOCK: &str = "index.lock";

/// Where the lock is written before it becomes the lock.
const DRAFT: &str = "expedite-index.lock.new";

/// What our lock holds.
const OURS: &str = "held by expedite, which brings this checkout along\n";

/// The copy that is changed.
const COPY: &str = "expedite-index";

/// How long a git process may hold the index.
const PATIENCE: Duration = Duration::from_secs(3);

/// The index while it is ours; it is free again when this value goes.
pub(super) struct LockedIndex<'a> {
    git: &'a git2::Repository,
}

/// Locks the index, and makes `git` work on a copy of it. The caller holds the checkout.
pub(super) fn lock_index(git: &git2::Repository) -> Result<LockedIndex<'_>, GitError> {
    let folder = git.path();
    settle_folder(folder);
    let (draft, lock, copy) = (folder.join(DRAFT), folder.join(LOCK), folder.join(COPY));
    std::fs::write(&draft, OURS).map_err(|e| make_unwritable(&draft, &e))?;
    let until = Instant::now() + PATIENCE;
    loop {
        match std::fs::hard_link(&draft, &lock) {
            Ok(()) => break,
            Err(e) if e.kind() == ErrorKind::AlreadyExists && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                let _ = std::fs::remove_file(&draft);
                return Err(make_unwritable(&lock, &e)
                    .with_hint("another git process holds the index; the next run finishes"));
            }
            // A file system without links.
            Err(_) => {
                std::fs::copy(&draft, &lock).map_err(|e| make_unwritable(&lock, &e))?;
                break;
            }
        }
    }
    let _ = std::fs::remove_file(&draft);
    let taken = LockedIndex { git };
    let index = folder.join("index");
    match duplicate_index(&index, &copy) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(make_unwritable(&copy, &e)),
        Ok(()) | Err(_) => {}
    }
    taken.use_index(&copy)?;
    Ok(taken)
}

impl LockedIndex<'_> {
    /// Puts the changed copy in the index's place.
    pub fn put_back(self) -> Result<(), GitError> {
        let index = self.git.path().join("index");
        match std::fs::rename(self.git.path().join(COPY), &index) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(make_unwritable(&index, &e)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn use_index(&self, index: &Path) -> Result<(), GitError> {
        git2::Index::open(index).and_then(|mut index| self.git.set_index(&mut index)).map_err(|e| {
            crate::error::make_error("checkout-unreadable", &format!("cannot read {}", index.display()), &e)
        })
    }
}

impl Drop for LockedIndex<'_> {
    fn drop(&mut self) {
        // Nothing more can be done about any of it here; what stays is found by the next run.
        let _ = self.use_index(&self.git.path().join("index"));
        let _ = std::fs::remove_file(self.git.path().join(COPY));
        let _ = std::fs::remove_file(self.git.path().join(LOCK));
    }
}

/// Takes away what a killed run left in the git directory. The caller holds the checkout.
pub(super) fn settle_folder(folder: &Path) {
    let lock = folder.join(LOCK);
    if std::fs::read(&lock).is_ok_and(|text| text == OURS.as_bytes()) {
        let _ = std::fs::remove_file(lock);
    }
    for name in [DRAFT.to_owned(), COPY.to_owned(), format!("{COPY}.lock")] {
        let _ = std::fs::remove_file(folder.join(name));
    }
}

/// Copies the index with its time: git tells by it which files it must look into.
fn duplicate_index(index: &Path, copy: &PathBuf) -> std::io::Result<()> {
    std::fs::copy(index, copy)?;
    let time = std::fs::metadata(index)?.modified()?;
    File::options().write(true).open(copy)?.set_modified(time)
}

fn make_unwritable(path: &Path, error: &std::io::Error) -> GitError {
    GitError::new(
        GitErrorKind::Repository,
        "checkout-unwritable",
        format!(
            "the commit stands, but the checkout could not be brought along: {}: {error}",
            path.display()
        ),
    )
}
