//! Moves a reference of a repository here by compare-and-swap, so that a run which is killed in the middle
//! leaves nothing that stops the next one.
//!
//! git locks a reference by a file beside it, which stays when whoever made it is killed. So what is about
//! to be locked, and for which commit, is noted first, in a file that is held meanwhile and is free again
//! the moment its holder ends. A lock that the note of a run which is gone accounts for is taken away; every
//! other one is somebody else's and is waited for.

use crate::error::make_error;
use crate::error::{GitError, GitErrorKind};
use git2::{ErrorCode, Oid};
use std::fs::{File, Permissions};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// File in the git directory that is held while a reference is moved: `<reference> <commit>`, or empty.
const MOVING: &str = "expedite-moving";

/// How long another writer may hold a reference.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long an empty lock is looked at before it counts as left behind: whoever makes one fills it at once.
const EMPTY: Duration = Duration::from_secs(1);

/// Points `reference` to `new` if it still is `expected` (absent: if there is none). False when it is not.
pub(crate) fn swap_reference(
    git: &git2::Repository,
    reference: &str,
    expected: Option<Oid>,
    new: Oid,
    log: &str,
) -> Result<bool, GitError> {
    // The zero id means "must not exist", checked under the reference's lock like every other value.
    let old = expected.unwrap_or(Oid::ZERO_SHA1);
    let moved =
        run_under_note(git, reference, new, || git.reference_matching(reference, new, true, old, log))?;
    Ok(moved.is_some())
}

/// Points `reference` to `new`, whatever it is.
pub(crate) fn set_reference(
    git: &git2::Repository,
    reference: &str,
    new: Oid,
    log: &str,
) -> Result<(), GitError> {
    run_under_note(git, reference, new, || git.reference(reference, new, true, log)).map(drop)
}

/// Takes away the lock that a killed run left, if there is one.
pub(crate) fn remove_stale_lock(git: &git2::Repository) -> Result<(), GitError> {
    let path = git.commondir().join(MOVING);
    if std::fs::metadata(&path).is_ok_and(|m| m.len() > 0) {
        hold_note(git)?;
    }
    Ok(())
}

/// Runs `work`, which moves `reference` to `new`, with that noted. None: it is not where it was expected.
fn run_under_note<T>(
    git: &git2::Repository,
    reference: &str,
    new: Oid,
    work: impl Fn() -> Result<T, git2::Error>,
) -> Result<Option<T>, GitError> {
    let mut held = hold_note(git)?;
    write_note(&mut held, &format!("{reference} {new}\n"))?;
    let until = Instant::now() + PATIENCE;
    let done = loop {
        match work() {
            Ok(done) => break Ok(Some(done)),
            Err(e) if e.code() == ErrorCode::Modified || e.code() == ErrorCode::NotFound => break Ok(None),
            // Another writer holds the lock for a moment.
            Err(e) if e.code() == ErrorCode::Locked && Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(e) if e.code() == ErrorCode::Locked => {
                let locked = format!("{reference} stays locked");
                break Err(GitError::new(GitErrorKind::Repository, "reference-locked", locked).with_hint(
                    format!("if no git process is running, remove {reference}.lock in the repository"),
                ));
            }
            Err(e) => {
                break Err(make_error("repository-unwritable", &format!("cannot update {reference}"), &e));
            }
        }
    };
    write_note(&mut held, "")?;
    done
}

/// Takes the note for this run, and takes away what the one before it left behind.
fn hold_note(git: &git2::Repository) -> Result<File, GitError> {
    let path = git.commondir().join(MOVING);
    let failed = |e: std::io::Error| make_unwritable(&format!("cannot open {}: {e}", path.display()));
    let mut file = open_lock_file(&path).map_err(failed)?;
    let until = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(std::fs::TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(e) => return Err(make_unwritable(&format!("another run holds {} ({e})", path.display()))),
        }
    }
    let mut noted = String::new();
    file.read_to_string(&mut noted).map_err(failed)?;
    if let Some((reference, commit)) = noted.trim().split_once(' ')
        && git2::Reference::is_valid_name(reference)
    {
        free_lock(&git.commondir().join(format!("{reference}.lock")), commit);
    }
    if !noted.is_empty() {
        write_note(&mut file, "")?;
    }
    Ok(file)
}

/// Opens the file `path`, which runs hold in turn. Whoever may write beside it may write it: a repository
/// that several users share is one for all of them.
pub(crate) fn open_lock_file(path: &Path) -> std::io::Result<File> {
    let mut how = File::options();
    how.read(true).write(true);
    match how.clone().create_new(true).open(path) {
        Ok(file) => {
            let folder = path.parent().unwrap_or(Path::new("."));
            let mode = std::fs::metadata(folder)?.permissions().mode() & 0o666;
            // Where it cannot be set, whoever made it is alone with it.
            let _ = file.set_permissions(Permissions::from_mode(mode));
            Ok(file)
        }
        Err(e) if e.kind() == ErrorKind::AlreadyExists => how.open(path),
        Err(e) => Err(e),
    }
}

fn write_note(held: &mut File, text: &str) -> Result<(), GitError> {
    let noted = if text.is_empty() {
        held.set_len(0)
    } else {
        held.seek(SeekFrom::Start(0)).and_then(|_| held.write_all(text.as_bytes()))
    };
    noted.map_err(|e| make_unwritable(&format!("cannot write {MOVING}: {e}")))
}

/// Removes the lock file `path` if it is for `commit`, or is empty and stays so.
fn free_lock(path: &Path, commit: &str) {
    let read = || std::fs::read_to_string(path).ok();
    let until = Instant::now() + EMPTY;
    let mut text = read();
    while text.as_deref() == Some("") && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
        text = read();
    }
    if text.is_some_and(|text| text.is_empty() || text.trim() == commit) {
        // Whoever else removed it did the same.
        let _ = std::fs::remove_file(path);
    }
}

fn make_unwritable(why: &str) -> GitError {
    GitError::new(GitErrorKind::Repository, "repository-unwritable", why)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use std::fs;

    fn repository() -> (tempfile::TempDir, git2::Repository, Oid, Oid) {
        let dir = tempfile::tempdir().unwrap();
        let git = git2::Repository::init_bare(dir.path()).unwrap();
        let commit = |text: &str| {
            let me = git2::Signature::new("a", "a@x", &git2::Time::new(0, 0)).unwrap();
            let tree = git.find_tree(git.treebuilder(None).unwrap().write().unwrap()).unwrap();
            git.commit(None, &me, &me, text, &tree, &[]).unwrap()
        };
        let (one, two) = (commit("one"), commit("two"));
        (dir, git, one, two)
    }

    #[test]
    fn a_lock_that_a_killed_run_left_is_taken_away() {
        let (dir, git, one, two) = repository();
        let lock = dir.path().join("refs/heads/main.lock");
        for left in [format!("{one}\n"), String::new()] {
            fs::write(dir.path().join(MOVING), format!("refs/heads/main {one}\n")).unwrap();
            fs::write(&lock, &left).unwrap();
            remove_stale_lock(&git).unwrap();
            assert!(!lock.exists(), "{left:?}");
            assert_eq!(fs::read_to_string(dir.path().join(MOVING)).unwrap(), "");
        }
        assert!(swap_reference(&git, "refs/heads/main", None, one, "x").unwrap());
        assert!(!swap_reference(&git, "refs/heads/main", None, two, "x").unwrap());
        assert!(swap_reference(&git, "refs/heads/main", Some(one), two, "x").unwrap());
        assert!(!lock.exists());
    }

    #[test]
    fn somebody_elses_lock_is_waited_for_and_stays() {
        let (dir, git, one, two) = repository();
        let lock = dir.path().join("refs/heads/main.lock");
        fs::write(dir.path().join(MOVING), format!("refs/heads/main {one}\n")).unwrap();
        fs::write(&lock, format!("{two}\n")).unwrap();
        remove_stale_lock(&git).unwrap();
        assert!(lock.exists(), "its commit is not the one that was noted");
        let held = lock.clone();
        let releasing = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            fs::remove_file(held).unwrap();
        });
        assert!(swap_reference(&git, "refs/heads/main", None, one, "x").unwrap());
        releasing.join().unwrap();
    }
}
