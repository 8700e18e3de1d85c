//! What a folder tells of the repository around it, before anything of ours is in it.

use crate::git::{Environment, libgit2};
use std::path::{Path, PathBuf};

/// A repository that was found by going up from a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// Where its files are; `None`: it is bare.
    pub root: Option<PathBuf>,
    /// The branch that HEAD names, which need not exist yet.
    pub branch: Option<String>,
    /// URL of the remote `origin`, as it is configured.
    pub origin: Option<String>,
}

/// The repository around `folder`; `None`: there is none that can be opened.
#[must_use]
pub fn around(folder: &Path, environment: &Environment) -> Option<Checkout> {
    let repository = libgit2::open_around(folder, environment).ok()?;
    let head = repository.find_reference("HEAD").ok();
    let branch = head
        .as_ref()
        .and_then(|h| h.symbolic_target().ok().flatten())
        .and_then(|t| t.strip_prefix("refs/heads/"))
        .map(str::to_owned);
    let origin = repository.find_remote("origin").ok().and_then(|r| r.url().ok().map(str::to_owned));
    Some(Checkout { root: repository.workdir().map(Path::to_owned), branch, origin })
}
