//! Brings a checkout along: after the branch moved, its index and files become those of the new commit,
//! for the changed paths only. Whatever else lies in it (a person's files, sparse folders, submodules,
//! LFS files) is neither read nor written.
//!
//! The branch moves first. What is left to do then is noted in the git directory before, so that the next
//! run finishes what a killed one began.

mod apply;
mod clean;
mod index;
mod turns;

use apply::apply_turns;
use clean::check_clean;
use turns::{Turn, collect_turns, find_staged, is_torn, read_from_disk};

use crate::error::make_error;
use crate::error::{GitError, GitErrorKind};
use crate::open::RefPlace;
use crate::swap::{self, swap_reference};
use crate::{Repository, Snapshot, libgit2};
use git2::Oid;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// File in the git directory that names an update under way: `<from> <to>`.
const UNFINISHED: &str = "expedite-unfinished";

/// File in the git directory that is locked while a checkout is brought along.
const LOCK: &str = "expedite.lock";

/// How long another run may hold the checkout.
const PATIENCE: Duration = Duration::from_secs(30);

/// What [`prepare`] found.
pub(super) enum CheckoutReady {
    /// There is nothing to bring along.
    Nothing,
    /// There is, and it can be.
    Checkout(Checkout),
    /// The branch is no longer where it was read.
    Moved,
}

/// A checkout that is clean where it will change, held until this value goes.
pub(super) struct Checkout {
    _lock: File,
    journal: PathBuf,
    branch: String,
    from: Option<Oid>,
    turns: BTreeMap<String, Turn>,
}

/// Finishes what a killed run left undone. `base` is what `store` has now.
pub(super) fn recover_checkout(
    repository: &Repository,
    store: &Repository,
    base: &Snapshot,
) -> Result<(), GitError> {
    if matches!(store.place, RefPlace::Here) {
        swap::remove_stale_lock(&store.lock_git())?;
    }
    let journal = {
        let git = repository.lock_git();
        swap::remove_stale_lock(&git)?;
        let journal = git.path().join(UNFINISHED);
        if git.is_bare() || !journal.exists() {
            return Ok(());
        }
        journal
    };
    let _lock = hold_checkout(repository)?;
    index::settle_folder(repository.lock_git().path());
    let noted = std::fs::read_to_string(&journal).unwrap_or_default();
    let mut ids = noted.split_whitespace().map(Oid::from_str);
    if let (Some(Ok(from)), Some(Ok(to))) = (ids.next(), ids.next()) {
        let from = (!from.is_zero()).then_some(from);
        // The remote has the commit, and the run ended before the checkout's own branch had it.
        let elsewhere = matches!(repository.place, RefPlace::Elsewhere { .. });
        let behind = find_head(&repository.lock_git(), &base.branch) == Some(from);
        if elsewhere && behind && is_part_of(&store.lock_git(), Some(to), base.commit) {
            follow_branch(repository, store, &base.branch, from, to)?;
        }
        let git = repository.lock_git();
        if git.head().ok().and_then(|h| h.target()) == Some(to) {
            if let RefPlace::Elsewhere { remote, .. } = &repository.place {
                let _ = swap_reference(
                    &git,
                    &format!("refs/remotes/{remote}/{}", base.branch),
                    from,
                    to,
                    "pushed",
                );
            }
            finish_checkout(&git, from, to)?;
        }
    }
    let _ = std::fs::remove_file(&journal);
    Ok(())
}

/// The commit of `branch`, if it is what is checked out.
fn find_head(git: &git2::Repository, branch: &str) -> Option<Option<Oid>> {
    let reference = format!("refs/heads/{branch}");
    let head = git.find_reference("HEAD").ok()?;
    let on = head.symbolic_target().ok().flatten() == Some(reference.as_str());
    on.then(|| git.refname_to_id(&reference).ok())
}

/// Brings index and files to `to`, where they are what they were in `from`.
fn finish_checkout(git: &git2::Repository, from: Option<Oid>, to: Oid) -> Result<(), GitError> {
    let unread =
        |e: git2::Error| make_error("checkout-unfinished", "cannot finish bringing the checkout along", &e);
    let tree = |commit: Oid| git.find_commit(commit).map(|c| c.tree_id());
    let from = from.map(tree).transpose().map_err(unread)?;
    let mut turns = collect_turns(git, from, tree(to).map_err(unread)?)?;
    let mut index = git.index().map_err(unread)?;
    index.read(true).map_err(unread)?;
    // What a person changed since stays as the person left it.
    turns.retain(|path, turn| {
        let staged = find_staged(&index, path);
        let file = read_from_disk(git, path);
        (staged == turn.from || staged == turn.to)
            && (file == turn.from || file == turn.to || file.is_none() || is_torn(git, path, turn.to))
    });
    apply_turns(git, to, &turns)
}

/// Checks that `repository`, if it is a checkout of the branch, can be brought to `tree`. `store` is where
/// the commit is written.
pub(super) fn prepare_checkout(
    repository: &Repository,
    store: &Repository,
    base: &Snapshot,
    tree: Oid,
) -> Result<CheckoutReady, GitError> {
    let reference = format!("refs/heads/{}", base.branch);
    let here = match &repository.place {
        RefPlace::Server { .. } => return Ok(CheckoutReady::Nothing),
        RefPlace::Here | RefPlace::Guarded(_) => true,
        RefPlace::Elsewhere { .. } => {
            refuse_checked_out(&store.lock_git(), &reference, true)?;
            false
        }
    };
    let (from, on_branch) = {
        let git = repository.lock_git();
        let head = git.find_reference("HEAD").ok();
        let on_branch = !git.is_bare()
            && head.and_then(|h| h.symbolic_target().ok().flatten().map(str::to_owned))
                == Some(reference.clone());
        if here && !on_branch {
            refuse_checked_out(&git, &reference, false)?;
        }
        (git.refname_to_id(&reference).ok(), on_branch)
    };
    // Not on the branch: only the reference moves. Moved meanwhile: the swap will say so.
    if !on_branch || (here && from != base.commit) {
        return Ok(CheckoutReady::Nothing);
    }
    if !here && repository.is_partial() {
        repository.add_note(
            GitError::new(
                GitErrorKind::Repository,
                "checkout-left",
                "the checkout is a partial clone and was left as it is",
            )
            .with_hint("bring it along with git pull"),
        );
        return Ok(CheckoutReady::Nothing);
    }
    if !here && !is_part_of(&store.lock_git(), from, base.commit) {
        // It may be ahead of what was read only because others have pushed since.
        if store.read_snapshot(&base.branch)?.commit != base.commit {
            return Ok(CheckoutReady::Moved);
        }
        return Err(make_ahead_failure(from));
    }
    let turns = {
        let git = store.lock_git();
        let old = from.map(|f| git.find_commit(f).map(|c| c.tree_id())).transpose();
        collect_turns(
            &git,
            old.map_err(|e| make_error("repository-unreadable", "cannot read the checkout's commit", &e))?,
            tree,
        )?
    };
    let lock = hold_checkout(repository)?;
    let git = repository.lock_git();
    check_clean(&git, &turns)?;
    Ok(CheckoutReady::Checkout(Checkout {
        _lock: lock,
        journal: git.path().join(UNFINISHED),
        branch: base.branch.clone(),
        from,
        turns,
    }))
}

impl Checkout {
    /// Notes what is about to happen.
    pub fn announce_move(&self, new: Oid) -> Result<(), GitError> {
        let from = self.from.unwrap_or(Oid::ZERO_SHA1);
        std::fs::write(&self.journal, format!("{from} {new}\n"))
            .map_err(|e| make_unwritable(&format!("cannot write {}: {e}", self.journal.display())))
    }

    /// The branch did not move after all.
    pub fn forget_move(self) {
        let _ = std::fs::remove_file(&self.journal);
    }

    /// The branch is at `new`: so are the index and the files, after this. What fails is left for the
    /// next run; the commit stands.
    pub fn bring_along(self, repository: &Repository, store: &Repository, new: Oid) -> Result<(), GitError> {
        if !follow_branch(repository, store, &self.branch, self.from, new)? {
            let _ = std::fs::remove_file(&self.journal);
            return Err(GitError::new(
                GitErrorKind::Repository,
                "checkout-moved",
                format!("{} of the checkout moved meanwhile; it was left as it is", self.branch),
            )
            .with_hint("bring it along with git pull"));
        }
        apply_turns(&repository.lock_git(), new, &self.turns)?;
        let _ = std::fs::remove_file(&self.journal);
        Ok(())
    }
}

/// Brings the checkout's own branch to what the one it follows has. False: it moved meanwhile.
fn follow_branch(
    repository: &Repository,
    store: &Repository,
    branch: &str,
    from: Option<Oid>,
    new: Oid,
) -> Result<bool, GitError> {
    let RefPlace::Elsewhere { remote, .. } = &repository.place else { return Ok(true) };
    copy_objects(&store.lock_git(), &repository.lock_git(), from, new)?;
    let git = repository.lock_git();
    if !swap_reference(&git, &format!("refs/heads/{branch}"), from, new, "pushed")? {
        return Ok(false);
    }
    // What a push by git would note, too; that it cannot is no harm.
    let _ = swap::set_reference(&git, &format!("refs/remotes/{remote}/{branch}"), new, "pushed");
    Ok(true)
}

fn make_unwritable(why: &str) -> GitError {
    GitError::new(GitErrorKind::Repository, "checkout-unwritable", why)
}

/// Takes the checkout for this run: two at once would see each other's half-written files.
fn hold_checkout(repository: &Repository) -> Result<File, GitError> {
    let path = repository.lock_git().path().join(LOCK);
    let file = swap::open_lock_file(&path)
        .map_err(|e| make_unwritable(&format!("cannot open {}: {e}", path.display())))?;
    let until = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(std::fs::TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(e) => return Err(make_unwritable(&format!("another run holds the checkout ({e})"))),
        }
    }
}

/// Refuses a branch that is checked out where this program does not bring files along: they would look
/// like the undoing of our commit. `own`: the repository's own work tree counts too.
pub(super) fn refuse_checked_out(git: &git2::Repository, reference: &str, own: bool) -> Result<(), GitError> {
    let named = |git: &git2::Repository| {
        git.find_reference("HEAD").ok().and_then(|h| h.symbolic_target().ok().flatten().map(str::to_owned))
    };
    let mut places: Vec<PathBuf> = Vec::new();
    if own && !git.is_bare() && named(git).as_deref() == Some(reference) {
        places.extend(git.workdir().map(Path::to_path_buf));
    }
    let trees =
        git.worktrees().map_err(|e| make_error("repository-unreadable", "cannot list work trees", &e))?;
    for name in trees.iter().flatten().flatten() {
        let Ok(tree) = git.find_worktree(name) else { continue };
        let Ok(other) = libgit2::open_named(tree.path(), &crate::Environment::default()) else {
            continue;
        };
        if other.path() != git.path() && named(&other).as_deref() == Some(reference) {
            places.push(tree.path().to_path_buf());
        }
    }
    if git.is_worktree()
        && let Ok(main) = libgit2::open_named(git.commondir(), &crate::Environment::default())
        && !main.is_bare()
        && named(&main).as_deref() == Some(reference)
    {
        places.extend(main.workdir().map(Path::to_path_buf));
    }
    match places.first() {
        None => Ok(()),
        Some(place) => {
            let branch = reference.strip_prefix("refs/heads/").unwrap_or(reference);
            Err(GitError::new(
                GitErrorKind::Repository,
                "branch-checked-out",
                format!("{branch} is checked out in {}", place.display()),
            )
            .with_hint("name that checkout as the repository, or a bare repository"))
        }
    }
}

/// Whether the checkout's commit is part of what the branch is, so that it can be brought along.
fn is_part_of(store: &git2::Repository, from: Option<Oid>, head: Option<Oid>) -> bool {
    let Some(from) = from else { return true };
    head == Some(from) || head.is_some_and(|head| store.graph_descendant_of(head, from).unwrap_or(false))
}

fn make_ahead_failure(from: Option<Oid>) -> GitError {
    let at = from.map_or_else(|| "no commit".to_owned(), |f| f.to_string());
    GitError::new(
        GitErrorKind::Repository,
        "checkout-ahead",
        format!("the checkout is at {at}, which is not part of the branch it follows"),
    )
    .with_hint(
        "push or drop its commits first (git status shows them), or name the remote's URL as the repository",
    )
}

/// Copies what `new` has and `from` has not from one object store to another.
fn copy_objects(
    store: &git2::Repository,
    into: &git2::Repository,
    from: Option<Oid>,
    new: Oid,
) -> Result<(), GitError> {
    let failed =
        |e: git2::Error| make_error("checkout-unwritable", "cannot copy the commit into the checkout", &e);
    let mut walk = store.revwalk().map_err(failed)?;
    walk.push(new).map_err(failed)?;
    if let Some(from) = from {
        walk.hide(from).map_err(failed)?;
    }
    let mut pack = store.packbuilder().map_err(failed)?;
    pack.insert_walk(&mut walk).map_err(failed)?;
    let odb = into.odb().map_err(failed)?;
    let mut sink = odb.packwriter().map_err(failed)?;
    let mut broken = None;
    pack.foreach(|chunk| sink.write_all(chunk).map_err(|e| broken = Some(e)).is_ok()).map_err(failed)?;
    if let Some(e) = broken {
        return Err(make_unwritable(&format!("cannot copy the commit into the checkout: {e}")));
    }
    sink.commit().map_err(failed)?;
    odb.refresh().map_err(failed)
}
