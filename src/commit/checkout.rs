//! Brings a checkout along: after the branch moved, its index and files become those of the new commit,
//! for the changed paths only. Whatever else lies in it (a person's files, sparse folders, submodules,
//! LFS files) is neither read nor written.
//!
//! The branch moves first. What is left to do then is noted in the git directory before, so that the next
//! run finishes what a killed one began.

use crate::error::{Failure, Kind};
use crate::git::advance::swap;
use crate::git::open::Place;
use crate::git::{Repository, Snapshot, failure, libgit2};
use git2::build::CheckoutBuilder;
use git2::{
    ErrorCode, IndexEntry, IndexEntryExtendedFlag, IndexTime, Oid, RepositoryState, Status, StatusOptions,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// File in the git directory that names an update under way: `<from> <to>`.
const UNFINISHED: &str = "expedite-unfinished";

/// File in the git directory that is locked while a checkout is brought along.
const LOCK: &str = "expedite.lock";

/// Most paths named in a message.
const NAMED: usize = 5;

/// How long another run may hold the checkout.
const PATIENCE: Duration = Duration::from_secs(30);

/// A blob and its mode; the zero id stands for no commit.
type Content = Option<(Oid, i32)>;

/// What one path was and becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turn {
    from: Content,
    to: Content,
}

/// What [`prepare`] found.
pub(super) enum Ready {
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

/// Finishes what a killed run left undone.
pub(super) fn recover(repository: &Repository) -> Result<(), Failure> {
    let journal = {
        let git = repository.lock();
        let journal = git.path().join(UNFINISHED);
        if git.is_bare() || !journal.exists() {
            return Ok(());
        }
        journal
    };
    let _lock = hold(repository)?;
    let git = repository.lock();
    let noted = std::fs::read_to_string(&journal).unwrap_or_default();
    let mut ids = noted.split_whitespace().map(Oid::from_str);
    if let (Some(Ok(from)), Some(Ok(to))) = (ids.next(), ids.next())
        && git.head().ok().and_then(|h| h.target()) == Some(to)
    {
        let unread =
            |e: git2::Error| failure("checkout-unfinished", "cannot finish bringing the checkout along", &e);
        let tree = |commit: Oid| git.find_commit(commit).map(|c| c.tree_id());
        let from = if from.is_zero() { None } else { Some(tree(from).map_err(unread)?) };
        let mut turns = turns(&git, from, tree(to).map_err(unread)?)?;
        let index = git.index().map_err(unread)?;
        // What a person changed since stays as the person left it.
        turns.retain(|path, turn| {
            let staged = staged(&index, path);
            let file = on_disk(&git, path);
            (staged == turn.from || staged == turn.to)
                && (file == turn.from || file == turn.to || file.is_none())
        });
        apply(&git, to, &turns)?;
    }
    let _ = std::fs::remove_file(&journal);
    Ok(())
}

/// Checks that `repository`, if it is a checkout of the branch, can be brought to `tree`. `store` is where
/// the commit is written.
pub(super) fn prepare(
    repository: &Repository,
    store: &Repository,
    base: &Snapshot,
    tree: Oid,
) -> Result<Ready, Failure> {
    let reference = format!("refs/heads/{}", base.branch);
    let here = match &repository.place {
        Place::Server { .. } => return Ok(Ready::Nothing),
        Place::Here | Place::Guarded(_) => true,
        Place::Elsewhere { .. } => {
            not_checked_out(&store.lock(), &reference, true)?;
            false
        }
    };
    let (from, on_branch) = {
        let git = repository.lock();
        let head = git.find_reference("HEAD").ok();
        let on_branch = !git.is_bare()
            && head.and_then(|h| h.symbolic_target().ok().flatten().map(str::to_owned))
                == Some(reference.clone());
        if here && !on_branch {
            not_checked_out(&git, &reference, false)?;
        }
        (git.refname_to_id(&reference).ok(), on_branch)
    };
    // Not on the branch: only the reference moves. Moved meanwhile: the swap will say so.
    if !on_branch || (here && from != base.commit) {
        return Ok(Ready::Nothing);
    }
    if !here && repository.is_partial() {
        repository.note(
            Failure::new(
                Kind::Repository,
                "checkout-left",
                "the checkout is a partial clone and was left as it is",
            )
            .hint("bring it along with git pull"),
        );
        return Ok(Ready::Nothing);
    }
    if !here && !part_of(&store.lock(), from, base.commit) {
        // It may be ahead of what was read only because others have pushed since.
        if store.snapshot(&base.branch)?.commit != base.commit {
            return Ok(Ready::Moved);
        }
        return Err(ahead(from));
    }
    let turns = {
        let git = store.lock();
        let old = from.map(|f| git.find_commit(f).map(|c| c.tree_id())).transpose();
        turns(
            &git,
            old.map_err(|e| failure("repository-unreadable", "cannot read the checkout's commit", &e))?,
            tree,
        )?
    };
    let lock = hold(repository)?;
    let git = repository.lock();
    clean(&git, &turns)?;
    Ok(Ready::Checkout(Checkout {
        _lock: lock,
        journal: git.path().join(UNFINISHED),
        branch: base.branch.clone(),
        from,
        turns,
    }))
}

impl Checkout {
    /// Notes what is about to happen.
    pub fn announce(&self, new: Oid) -> Result<(), Failure> {
        let from = self.from.unwrap_or(Oid::ZERO_SHA1);
        std::fs::write(&self.journal, format!("{from} {new}\n"))
            .map_err(|e| unwritable(&format!("cannot write {}: {e}", self.journal.display())))
    }

    /// The branch did not move after all.
    pub fn forget(self) {
        let _ = std::fs::remove_file(&self.journal);
    }

    /// The branch is at `new`: so are the index and the files, after this. What fails is left for the
    /// next run; the commit stands.
    pub fn bring(self, repository: &Repository, store: &Repository, new: Oid) -> Result<(), Failure> {
        if let Place::Elsewhere { remote, .. } = &repository.place {
            copy(&store.lock(), &repository.lock(), self.from, new)?;
            let git = repository.lock();
            let reference = format!("refs/heads/{}", self.branch);
            if !swap(&git, &reference, self.from, new, "pushed")? {
                let _ = std::fs::remove_file(&self.journal);
                return Err(Failure::new(
                    Kind::Repository,
                    "checkout-moved",
                    format!("{reference} of the checkout moved meanwhile; it was left as it is"),
                )
                .hint("bring it along with git pull"));
            }
            // What a push by git would note, too; that it cannot is no harm.
            let _ = git.reference(&format!("refs/remotes/{remote}/{}", self.branch), new, true, "pushed");
        }
        apply(&repository.lock(), new, &self.turns)?;
        let _ = std::fs::remove_file(&self.journal);
        Ok(())
    }
}

fn unwritable(why: &str) -> Failure {
    Failure::new(Kind::Repository, "checkout-unwritable", why)
}

/// Takes the checkout for this run: two at once would see each other's half-written files.
fn hold(repository: &Repository) -> Result<File, Failure> {
    let path = repository.lock().path().join(LOCK);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(|e| unwritable(&format!("cannot open {}: {e}", path.display())))?;
    let until = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(std::fs::TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(e) => return Err(unwritable(&format!("another run holds the checkout ({e})"))),
        }
    }
}

/// Refuses a branch that is checked out where this program does not bring files along: they would look
/// like the undoing of our commit. `own`: the repository's own work tree counts too.
fn not_checked_out(git: &git2::Repository, reference: &str, own: bool) -> Result<(), Failure> {
    let named = |git: &git2::Repository| {
        git.find_reference("HEAD").ok().and_then(|h| h.symbolic_target().ok().flatten().map(str::to_owned))
    };
    let mut places: Vec<PathBuf> = Vec::new();
    if own && !git.is_bare() && named(git).as_deref() == Some(reference) {
        places.extend(git.workdir().map(Path::to_path_buf));
    }
    let trees =
        git.worktrees().map_err(|e| failure("repository-unreadable", "cannot list work trees", &e))?;
    for name in trees.iter().flatten().flatten() {
        let Ok(tree) = git.find_worktree(name) else { continue };
        let Ok(other) = libgit2::open_named(tree.path(), &crate::git::Environment::default()) else {
            continue;
        };
        if other.path() != git.path() && named(&other).as_deref() == Some(reference) {
            places.push(tree.path().to_path_buf());
        }
    }
    if git.is_worktree()
        && let Ok(main) = libgit2::open_named(git.commondir(), &crate::git::Environment::default())
        && !main.is_bare()
        && named(&main).as_deref() == Some(reference)
    {
        places.extend(main.workdir().map(Path::to_path_buf));
    }
    match places.first() {
        None => Ok(()),
        Some(place) => {
            let branch = reference.strip_prefix("refs/heads/").unwrap_or(reference);
            Err(Failure::new(
                Kind::Repository,
                "branch-checked-out",
                format!("{branch} is checked out in {}", place.display()),
            )
            .hint("name that checkout as the repository, or a bare repository"))
        }
    }
}

/// Whether the checkout's commit is part of what the branch is, so that it can be brought along.
fn part_of(store: &git2::Repository, from: Option<Oid>, head: Option<Oid>) -> bool {
    let Some(from) = from else { return true };
    head == Some(from) || head.is_some_and(|head| store.graph_descendant_of(head, from).unwrap_or(false))
}

fn ahead(from: Option<Oid>) -> Failure {
    let at = from.map_or_else(|| "no commit".to_owned(), |f| f.to_string());
    Failure::new(
        Kind::Repository,
        "checkout-ahead",
        format!("the checkout is at {at}, which is not part of the branch it follows"),
    )
    .hint(
        "push or drop its commits first (git status shows them), or name the remote's URL as the repository",
    )
}

/// Every path that differs between two trees.
fn turns(git: &git2::Repository, from: Option<Oid>, to: Oid) -> Result<BTreeMap<String, Turn>, Failure> {
    let unread = |e: git2::Error| failure("repository-unreadable", "cannot compare commits", &e);
    let from = from.map(|t| git.find_tree(t)).transpose().map_err(unread)?;
    let to = git.find_tree(to).map_err(unread)?;
    let diff = git.diff_tree_to_tree(from.as_ref(), Some(&to), None).map_err(unread)?;
    let mut turns = BTreeMap::new();
    for delta in diff.deltas() {
        let side = |file: git2::DiffFile<'_>| {
            let content = file.exists().then(|| (file.id(), i32::from(file.mode())));
            (file.path_bytes().map(|p| String::from_utf8_lossy(p).into_owned()), content)
        };
        let ((old_path, from), (new_path, to)) = (side(delta.old_file()), side(delta.new_file()));
        if let Some(path) = new_path.or(old_path) {
            turns.insert(path, Turn { from, to });
        }
    }
    Ok(turns)
}

const SUBMODULE: i32 = 0o160_000;

/// What the index has at `path`.
fn staged(index: &git2::Index, path: &str) -> Content {
    index.get_path(Path::new(path), 0).map(|e| (e.id, i32::try_from(e.mode).unwrap_or_default()))
}

/// What the file at `path` would be stored as.
fn on_disk(git: &git2::Repository, path: &str) -> Content {
    let full = git.workdir()?.join(path);
    let meta = std::fs::symlink_metadata(&full).ok().filter(|m| !m.is_dir())?;
    let blob = if meta.is_symlink() {
        git.blob(std::os::unix::ffi::OsStrExt::as_bytes(std::fs::read_link(&full).ok()?.as_os_str())).ok()?
    } else {
        // Applies the filters (line ends), as `git add` would.
        git.blob_path(&full).ok()?
    };
    let executable = std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o100 != 0;
    let mode = if meta.is_symlink() {
        0o120_000
    } else if executable {
        0o100_755
    } else {
        0o100_644
    };
    Some((blob, mode))
}

/// Refuses unless index and files are those of the commit, at every path that will change.
fn clean(git: &git2::Repository, turns: &BTreeMap<String, Turn>) -> Result<(), Failure> {
    let unread = |e: git2::Error| {
        let failed = failure("checkout-unreadable", "cannot read the checkout", &e);
        if e.message().contains("extension") {
            return failed.hint("libgit2 cannot read this index; run git sparse-checkout reapply --no-sparse-index, or name the URL");
        }
        failed
    };
    if git.state() != RepositoryState::Clean {
        return Err(not_clean("a merge, rebase or cherry-pick is under way"));
    }
    let mut index = git.index().map_err(unread)?;
    index.read(true).map_err(unread)?;
    if index.has_conflicts() {
        return Err(not_clean("its index holds conflicts"));
    }
    let mut dirty: Vec<&str> = Vec::new();
    let mut options = StatusOptions::new();
    options.disable_pathspec_match(true).include_untracked(true).recurse_untracked_dirs(true);
    options.include_ignored(true).recurse_ignored_dirs(true).include_unmodified(false);
    let workdir = git.workdir().unwrap_or(Path::new("."));
    for (path, turn) in turns {
        if staged(&index, path) != turn.from || blocked(workdir, path, turn) {
            dirty.push(path);
        }
        options.pathspec(path);
    }
    if dirty.is_empty() {
        let statuses = git.statuses(Some(&mut options)).map_err(unread)?;
        let changed = Status::WT_NEW
            | Status::WT_MODIFIED
            | Status::WT_DELETED
            | Status::WT_RENAMED
            | Status::WT_TYPECHANGE
            | Status::WT_UNREADABLE
            | Status::IGNORED;
        for entry in statuses.iter().filter(|e| e.status().intersects(changed)) {
            let Ok(path) = entry.path() else { continue };
            let Some((path, turn)) = turns.get_key_value(path) else { continue };
            let submodule = turn.from.is_some_and(|(_, mode)| mode == SUBMODULE);
            if !submodule && !hidden(&index, path) {
                dirty.push(path);
            }
        }
    }
    if dirty.is_empty() {
        return Ok(());
    }
    let more = if dirty.len() > NAMED { format!(" and {} more", dirty.len() - NAMED) } else { String::new() };
    dirty.truncate(NAMED);
    Err(not_clean(&format!("{}{more} changed and not committed", dirty.join(", "))))
}

fn not_clean(why: &str) -> Failure {
    Failure::new(Kind::Repository, "checkout-not-clean", format!("the checkout is not clean: {why}"))
        .hint("commit, stash or remove that, then run again; nothing was changed")
}

/// Whether something that git does not report is in the way: a link or file where a folder belongs, a
/// folder where the file belongs.
fn blocked(workdir: &Path, path: &str, turn: &Turn) -> bool {
    let mut at = workdir.to_path_buf();
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        at.push(part);
        let Ok(meta) = std::fs::symlink_metadata(&at) else { return false };
        let last = parts.peek().is_none();
        let submodule = [turn.from, turn.to].into_iter().flatten().any(|(_, mode)| mode == SUBMODULE);
        if !last && !meta.is_dir() || last && meta.is_dir() && !submodule {
            return true;
        }
    }
    false
}

/// Whether the path is kept out of the work tree by a sparse checkout.
fn hidden(index: &git2::Index, path: &str) -> bool {
    index.get_path(Path::new(path), 0).is_some_and(|e| skipped(&e))
}

fn skipped(entry: &IndexEntry) -> bool {
    IndexEntryExtendedFlag::from_bits_truncate(entry.flags_extended)
        .contains(IndexEntryExtendedFlag::SKIP_WORKTREE)
}

/// Whether a new file at `path` belongs outside the work tree: it does where everything in the nearest
/// folder that has files is kept out.
fn beside_hidden(index: &git2::Index, path: &str) -> bool {
    let mut folder = path;
    while let Some((parent, _)) = folder.rsplit_once('/') {
        folder = parent;
        let prefix = format!("{parent}/");
        let Ok(first) = index.find_prefix(Path::new(&prefix)) else { continue };
        return (first..index.len())
            .map_while(|n| index.get(n).filter(|e| e.path.starts_with(prefix.as_bytes())))
            .all(|e| skipped(&e));
    }
    false
}

/// Makes index and files of the paths in `turns` those of commit `to`.
fn apply(git: &git2::Repository, to: Oid, turns: &BTreeMap<String, Turn>) -> Result<(), Failure> {
    let failed = |e: git2::Error| {
        let failed = failure(
            "checkout-unwritable",
            "the commit stands, but the checkout could not be brought along",
            &e,
        );
        if e.code() == ErrorCode::Locked {
            return failed.hint("another git process holds the index; the next run finishes");
        }
        failed.hint("the next run finishes, or: git checkout -- the paths")
    };
    let Some(workdir) = git.workdir() else { return Ok(()) };
    let sparse = git.config().and_then(|c| c.get_bool("core.sparsecheckout")).unwrap_or(false);
    let mut index = git.index().map_err(failed)?;
    index.read(false).map_err(failed)?;
    let mut builder = CheckoutBuilder::new();
    builder.force().disable_pathspec_match(true).update_index(true);
    let mut writes: Vec<&str> = Vec::new();
    for (path, turn) in turns {
        let Some((id, mode)) = turn.to else {
            index.remove_path(Path::new(path)).map_err(failed)?;
            if turn.from.is_none_or(|(_, mode)| mode != SUBMODULE) {
                remove(workdir, path);
            }
            continue;
        };
        let known = index.get_path(Path::new(path), 0);
        let out = match &known {
            Some(entry) => skipped(entry),
            None => sparse && beside_hidden(&index, path),
        };
        if out || mode == SUBMODULE {
            index.add(&entry(path, id, mode, out)).map_err(failed)?;
        } else {
            builder.path(path.as_str());
            writes.push(path);
        }
    }
    index.write().map_err(failed)?;
    if writes.is_empty() {
        return Ok(());
    }
    let object = git.find_object(to, None).map_err(failed)?;
    git.checkout_tree(&object, Some(&mut builder)).map_err(failed)?;
    // A file that had its content already was left alone, and the index with it.
    let mut left = false;
    for path in writes {
        if staged(&index, path) != turns.get(path).and_then(|turn| turn.to) {
            index.add_path(Path::new(path)).map_err(failed)?;
            left = true;
        }
    }
    if left { index.write().map_err(failed) } else { Ok(()) }
}

/// An index entry without a file.
fn entry(path: &str, id: Oid, mode: i32, out: bool) -> IndexEntry {
    let flags_extended = if out { IndexEntryExtendedFlag::SKIP_WORKTREE.bits() } else { 0 };
    IndexEntry {
        ctime: IndexTime::new(0, 0),
        mtime: IndexTime::new(0, 0),
        dev: 0,
        ino: 0,
        mode: u32::try_from(mode).unwrap_or(0o100_644),
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended,
        path: path.as_bytes().to_vec(),
    }
}

/// Removes a file and the folders that are empty then, as git does.
fn remove(workdir: &Path, path: &str) {
    let _ = std::fs::remove_file(workdir.join(path));
    let mut folder = Path::new(path).parent();
    while let Some(at) = folder.filter(|f| !f.as_os_str().is_empty()) {
        // Fails, and ends this, where something is left.
        if std::fs::remove_dir(workdir.join(at)).is_err() {
            break;
        }
        folder = at.parent();
    }
}

/// Copies what `new` has and `from` has not from one object store to another.
fn copy(
    store: &git2::Repository,
    into: &git2::Repository,
    from: Option<Oid>,
    new: Oid,
) -> Result<(), Failure> {
    let failed =
        |e: git2::Error| failure("checkout-unwritable", "cannot copy the commit into the checkout", &e);
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
        return Err(unwritable(&format!("cannot copy the commit into the checkout: {e}")));
    }
    sink.commit().map_err(failed)?;
    odb.refresh().map_err(failed)
}
