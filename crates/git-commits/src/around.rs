//! What stands around a folder, before anything is opened for work: where a checkout's files begin, and
//! what it calls its branch and its origin.

use crate::{Environment, libgit2};
use std::path::{Path, PathBuf};

/// The repository around a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Around {
    /// The root of its files; `None`: it is bare.
    pub root: Option<PathBuf>,
    /// The branch that HEAD names, also one without commits.
    pub branch: Option<String>,
    /// The URL of the remote `origin`, as configured: it may carry a secret.
    pub origin: Option<String>,
}

/// Looks around `folder`; `None` where there is no repository that may be read.
#[must_use]
pub fn find_around(folder: &Path, environment: &Environment) -> Option<Around> {
    let git = libgit2::open_around(folder, environment).ok()?;
    let head = git.find_reference("HEAD").ok();
    let target = head.as_ref().and_then(|head| head.symbolic_target().ok().flatten());
    let origin = git.find_remote("origin").ok();
    Some(Around {
        root: git.workdir().map(Path::to_path_buf),
        branch: target.and_then(|name| name.strip_prefix("refs/heads/")).map(str::to_owned),
        origin: origin.and_then(|origin| origin.url().ok().map(str::to_owned)),
    })
}
