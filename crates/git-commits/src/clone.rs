//! A repository on a server, kept in a private folder while the program runs; and the one that a checkout
//! follows.

use crate::error::make_error;
use crate::error::{GitError, GitErrorKind};
use crate::open::{RefPlace, Repository, RepositoryOptions};
use crate::remote::Remote;
use crate::{Config, libgit2};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// The repository that a checkout follows.
pub(crate) struct GitUpstream {
    /// The remote's name, `origin`.
    pub remote: String,
    /// Where it is fetched from.
    pub url: String,
    /// Where it is pushed to, if elsewhere.
    pub push: Option<String>,
}

/// What `git` follows: the remote of its branch, else `origin`, else its only remote. A bare repository
/// follows nothing.
pub(crate) fn find_upstream(
    git: &git2::Repository,
    config: &Config,
) -> Result<Option<GitUpstream>, GitError> {
    if git.is_bare() {
        return Ok(None);
    }
    let branch = git.find_reference("HEAD").ok().and_then(|head| {
        let target = head.symbolic_target().ok().flatten()?;
        target.strip_prefix("refs/heads/").map(str::to_owned)
    });
    let url = |name: &str| config.get(&format!("remote.{name}.url")).filter(|u| !u.is_empty());
    let named = branch.and_then(|b| config.get(&format!("branch.{b}.remote")).map(str::to_owned));
    let remote = match named {
        Some(here) if here == "." => return Ok(None),
        Some(name) => Some(name),
        None if url("origin").is_some() => Some("origin".to_owned()),
        None => {
            let names: Vec<&str> =
                config.list_below("remote.").filter_map(|(k, _)| k.strip_suffix(".url")).collect();
            match names.as_slice() {
                [only] => Some((*only).to_owned()),
                [] | [_, ..] => None,
            }
        }
    };
    let Some(remote) = remote else { return Ok(None) };
    let Some(url) = url(&remote) else {
        return Err(GitError::new(
            GitErrorKind::Repository,
            "remote-absent",
            format!("its branch follows the remote {remote:?}, which has no URL"),
        )
        .with_object(format!("repository {}", git.path().display())));
    };
    let push = config.get(&format!("remote.{remote}.pushurl")).filter(|u| !u.is_empty()).map(str::to_owned);
    Ok(Some(GitUpstream { url: url.to_owned(), push, remote }))
}

/// A server's repository that shares nothing with one here: fetched one commit deep.
pub(crate) fn clone_apart(
    url: &str,
    push: Option<&str>,
    config: Option<Config>,
    options: RepositoryOptions,
) -> Result<Repository, GitError> {
    let (folder, git) = create_empty_repository(&options)?;
    let config = match config {
        Some(config) => config,
        None => Config::from_repository(&git, &options.environment)
            .map_err(|e| make_error("git-config", "cannot read git's configuration", &e))?,
    };
    let remote = Remote::new(url, push, &config, &options, options.working.clone())?;
    Ok(build_repository(remote, 1, folder, git, config))
}

/// A server's repository that a checkout follows: what the checkout has already is not fetched again.
pub(crate) fn clone_server(
    url: &str,
    push: Option<&str>,
    checkout: &git2::Repository,
    config: &Config,
    mut options: RepositoryOptions,
) -> Result<Repository, GitError> {
    options.working = checkout.workdir().map(Path::to_path_buf);
    // A partial clone lacks objects, and the server would leave them out as ours.
    let partial = is_partial(config);
    let head = checkout.head().and_then(|h| h.peel_to_commit()).ok().filter(|_| !partial);
    let Some(head) = head else { return clone_apart(url, push, Some(config.clone()), options) };
    let (folder, git) = create_empty_repository(&options)?;
    let unwritten = |e: std::io::Error| make_temporary_failure(folder.path(), &e.to_string());
    let objects = checkout.commondir().join("objects");
    std::fs::write(git.path().join("objects/info/alternates"), format!("{}\n", objects.display()))
        .map_err(unwritten)?;
    let shallow = checkout.commondir().join("shallow");
    if shallow.is_file() {
        std::fs::copy(shallow, git.path().join("shallow")).map_err(unwritten)?;
    }
    let path = git.path().to_path_buf();
    drop(git);
    let again = |e: git2::Error| make_temporary_failure(folder.path(), e.message());
    let git = libgit2::open_named(&path, &options.environment).map_err(again)?;
    // So that the server learns what we have.
    git.reference("refs/checkout/head", head.id(), true, "checkout").map_err(again)?;
    let remote = Remote::new(url, push, config, &options, options.working.clone())?;
    Ok(build_repository(remote, 0, folder, git, config.clone()))
}

/// Whether the configuration is that of a partial clone.
pub(crate) fn is_partial(config: &Config) -> bool {
    config.get("extensions.partialclone").is_some()
        || config
            .list_below("remote.")
            .any(|(key, _)| key.ends_with(".promisor") || key.ends_with(".partialclonefilter"))
}

fn build_repository(
    remote: Remote,
    depth: i32,
    folder: tempfile::TempDir,
    git: git2::Repository,
    config: Config,
) -> Repository {
    Repository {
        name: remote.name.clone(),
        git: Arc::new(Mutex::new(git)),
        config,
        place: RefPlace::Server { remote, depth, read: AtomicBool::new(false), _folder: folder },
        notes: Mutex::default(),
    }
}

/// An empty bare repository in the folder for temporary files.
fn create_empty_repository(
    options: &RepositoryOptions,
) -> Result<(tempfile::TempDir, git2::Repository), GitError> {
    let base = options.environment.get_path("TMPDIR").unwrap_or_else(std::env::temp_dir);
    let temporary = |why: &str| make_temporary_failure(&base, why);
    let folder = tempfile::Builder::new()
        .prefix("expedite-")
        .tempdir_in(&base)
        .map_err(|e| temporary(&e.to_string()))?;
    let mut how = git2::RepositoryInitOptions::new();
    how.bare(true).external_template(false);
    git2::Repository::init_opts(folder.path(), &how).map_err(|e| temporary(e.message()))?;
    let git = libgit2::open_named(folder.path(), &options.environment).map_err(|e| temporary(e.message()))?;
    Ok((folder, git))
}

fn make_temporary_failure(folder: &Path, why: &str) -> GitError {
    GitError::new(
        GitErrorKind::Repository,
        "temporary-folder",
        format!("cannot prepare a temporary repository in {}: {why}", folder.display()),
    )
    .with_hint("TMPDIR must name a folder that can be written, with room for one commit of the repository")
}
