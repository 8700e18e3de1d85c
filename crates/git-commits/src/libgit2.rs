//! The one file with `unsafe`: libgit2's process-wide switches. Every repository is opened here, so
//! that nothing else is opened while a switch is thrown.
#![allow(unsafe_code)]

use crate::Environment;
use git2::{ConfigLevel, RepositoryOpenFlags, opts};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Held while a repository is opened or a process-wide switch is changed.
static SWITCHES: Mutex<()> = Mutex::new(());

/// Opens the repository at exactly `path` (a bare repository, a checkout or a git directory), whoever
/// owns it: it was named by the person who runs us. No other repository is trusted by that, and no
/// configuration is written.
///
/// # Errors
/// There is no repository, or it cannot be read.
pub fn open_named(path: &Path, environment: &Environment) -> Result<git2::Repository, git2::Error> {
    let _held = SWITCHES.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the switch is a plain process-wide flag of libgit2 that is read when a repository is
    // opened. All opening in this program happens under SWITCHES, and the flag is set back before
    // the lock is released.
    unsafe { opts::set_verify_owner_validation(false)? };
    let opened = open_repository(path, RepositoryOpenFlags::NO_SEARCH, environment);
    // SAFETY: as above.
    unsafe { opts::set_verify_owner_validation(true)? };
    opened
}

/// Opens the repository around `path`, found by going up; it must belong to whoever runs us, or be
/// named by `safe.directory`, as git demands.
///
/// # Errors
/// There is no repository, it belongs to somebody else, or it cannot be read.
pub fn open_around(path: &Path, environment: &Environment) -> Result<git2::Repository, git2::Error> {
    let _held = SWITCHES.lock().unwrap_or_else(PoisonError::into_inner);
    open_repository(path, RepositoryOpenFlags::empty(), environment)
}

/// Opens with the configuration files that `environment` points to, not those of the process, and loads
/// the configuration before the lock is released: the repository keeps it.
fn open_repository(
    path: &Path,
    flags: RepositoryOpenFlags,
    environment: &Environment,
) -> Result<git2::Repository, git2::Error> {
    let global = environment.find_home();
    let xdg = environment.get_path("XDG_CONFIG_HOME").or_else(|| global.as_ref().map(|h| h.join(".config")));
    let system = environment.get("GIT_CONFIG_NOSYSTEM").is_none().then(|| PathBuf::from("/etc"));
    // SAFETY: search paths are read when a configuration is loaded; in this program that happens here,
    // under SWITCHES, and nowhere else.
    unsafe {
        set_search_folder(ConfigLevel::Global, global)?;
        set_search_folder(ConfigLevel::XDG, xdg.map(|x| x.join("git")))?;
        set_search_folder(ConfigLevel::System, system)?;
    }
    // SAFETY: the list of extensions is read when a repository is opened, which happens under SWITCHES.
    // A partial clone's commits and trees are all there; that blobs are missing is said when one is read.
    unsafe { opts::set_extensions(&["partialclone"])? };
    let repository = git2::Repository::open_ext(path, flags, std::iter::empty::<&OsStr>())?;
    let mut config = repository.config()?;
    for (variable, level) in
        [("GIT_CONFIG_SYSTEM", ConfigLevel::System), ("GIT_CONFIG_GLOBAL", ConfigLevel::Global)]
    {
        if let Some(file) = environment.get_path(variable) {
            config.add_file(&file, level, true)?;
        }
    }
    Ok(repository)
}

/// Where files of `level` are looked for; nowhere, if there is no such folder.
///
/// # Safety
/// No other thread may read or write libgit2's search paths meanwhile.
unsafe fn set_search_folder(level: ConfigLevel, folder: Option<PathBuf>) -> Result<(), git2::Error> {
    // SAFETY: as the caller promises.
    unsafe { opts::set_search_path(level, folder.unwrap_or_default()) }
}

/// Registers a transport for `scheme` with libgit2, once in the life of the process.
///
/// # Errors
/// libgit2 refuses it.
pub(crate) fn register_transport<F>(scheme: &str, factory: F) -> Result<(), git2::Error>
where
    F: Fn(&git2::Remote<'_>) -> Result<git2::transport::Transport, git2::Error> + Send + Sync + 'static,
{
    static DONE: Mutex<bool> = Mutex::new(false);
    let _held = SWITCHES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
    if !*done {
        // SAFETY: libgit2's list of transports is written here only, once, before any thread of this
        // program connects to anything: every connection is made through `transport::over`, which comes
        // here first and waits for the lock.
        unsafe { git2::transport::register(scheme, factory)? };
        *done = true;
    }
    Ok(())
}
