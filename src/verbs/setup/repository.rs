//! The GitOps repository, or an empty one in its place where it may be absent.

use super::{Access, Outside};
use crate::error::{Failure, FailureKind};
use crate::settings::Settings;
use git_commits::{Repository, RepositoryTarget};
use std::path::{Path, PathBuf};

/// Whether an empty repository stands in for the one that is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lack {
    No,
    IfAbsent,
    Yes,
}

pub(super) fn refuse_network(repository: &Repository) -> Failure {
    Failure::new(
        FailureKind::Usage,
        "needs-network",
        "its objects are on a server, and no network is used here",
    )
    .with_object(format!("repository {}", repository.name()))
    .with_hint("name a folder that holds your Kitchen with --from")
}

pub(super) fn make_options(outside: &Outside, create: bool, branch: &str) -> git_commits::RepositoryOptions {
    git_commits::RepositoryOptions {
        create,
        branch: Some(branch.to_owned()),
        environment: outside.environment.clone(),
        working: Some(outside.working.clone()),
        ..git_commits::RepositoryOptions::default()
    }
}

pub(super) fn open_repository(
    target: &RepositoryTarget,
    settings: &Settings,
    branch: &str,
    outside: &Outside,
    access: Access,
    lack: Lack,
) -> Result<(Repository, Option<tempfile::TempDir>), Failure> {
    let create = settings.repository.create;
    let absent = match target {
        RepositoryTarget::Path(path) if create => {
            !path.exists() || path.read_dir().is_ok_and(|mut entries| entries.next().is_none())
        }
        RepositoryTarget::Around(folder) if lack == Lack::IfAbsent => {
            git_commits::find_around(folder, &outside.environment).is_none()
        }
        RepositoryTarget::Path(_) | RepositoryTarget::Around(_) | RepositoryTarget::Url(_) => false,
    };
    let absent = absent || lack == Lack::Yes;
    if access != Access::Write && absent {
        let folder = tempfile::tempdir().map_err(|error| {
            Failure::new(FailureKind::Repository, "temporary", format!("making a temporary folder: {error}"))
        })?;
        let stand_in = RepositoryTarget::Path(folder.path().join("empty.git"));
        return Ok((Repository::open_target(&stand_in, make_options(outside, true, branch))?, Some(folder)));
    }
    Ok((Repository::open_target(target, make_options(outside, create, branch))?, None))
}

/// Relative to the working directory, where it lies below it.
pub(super) fn shorten_path(path: &Path, working: &Path) -> PathBuf {
    let inside = working.canonicalize().ok().zip(path.canonicalize().ok());
    match inside.as_ref().and_then(|(working, path)| path.strip_prefix(working).ok()) {
        Some(relative) => relative.to_owned(),
        None => path.to_owned(),
    }
}
