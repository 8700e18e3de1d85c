//! The settings that apply: those of `--config`, or of the root of the GitOps repository.

use super::repository::{make_options, shorten_path};
use super::{Access, Outside};
use crate::error::{At, Failure, FailureKind};
use crate::settings;
use crate::settings::{FilePath, Location, Settings};
use crate::verbs::flags::Common;
use git_commits::{Repository, RepositoryTarget};
use std::path::{Path, PathBuf};

/// An empty variable counts as none.
pub fn strip_empty(text: Option<&str>) -> Option<&str> {
    text.filter(|t| !t.is_empty())
}

/// The repository that `--repo` names, and the one whose root may hold the settings.
pub(super) fn resolve_targets(
    common: &Common,
    outside: &Outside,
) -> Result<(Option<RepositoryTarget>, RepositoryTarget), Failure> {
    let flag = strip_empty(common.repo.as_deref())
        .map(|text| RepositoryTarget::parse(text, &outside.working))
        .transpose()?;
    let home = flag.clone().unwrap_or_else(|| RepositoryTarget::Around(outside.working.clone()));
    Ok((flag, home))
}

/// The settings that count: of `--config`, else of the GitOps repository's root.
///
/// # Errors
/// Everything that is wrong with them.
pub fn read_settings(common: &Common, outside: &Outside, access: Access) -> Result<Settings, Vec<Failure>> {
    if let Some(file) = strip_empty(common.config.as_deref()) {
        return Settings::read_file(Path::new(file), outside.environment.find_home().as_deref());
    }
    let (_, home) = resolve_targets(common, outside).map_err(|failure| vec![failure])?;
    if access.is_local() && matches!(home, RepositoryTarget::Url(_)) {
        return Ok(Settings::default());
    }
    read_home_settings(&home, common, outside)
}

/// The file that settings are read from, whether or not it is there; `None` where they are in no file.
///
/// # Errors
/// The flags name no repository.
pub fn find_settings_file(common: &Common, outside: &Outside) -> Result<Option<PathBuf>, Failure> {
    if let Some(file) = strip_empty(common.config.as_deref()) {
        return Ok(Some(PathBuf::from(file)));
    }
    let folder = match resolve_targets(common, outside)?.1 {
        RepositoryTarget::Around(folder) => match git_commits::find_around(&folder, &outside.environment) {
            Some(around) => around.root,
            None => Some(folder),
        },
        RepositoryTarget::Path(path) if path.join(".git").exists() => Some(path),
        RepositoryTarget::Path(_) | RepositoryTarget::Url(_) => None,
    };
    Ok(folder.map(|folder| shorten_path(&folder.join(settings::FILE), &outside.working)))
}

/// The settings in the root of the GitOps repository: a file of the checkout, or of the branch's commit
/// where there are no files.
pub(super) fn read_home_settings(
    target: &RepositoryTarget,
    common: &Common,
    outside: &Outside,
) -> Result<Settings, Vec<Failure>> {
    let home = outside.environment.find_home();
    let folder = match target {
        RepositoryTarget::Around(folder) => match git_commits::find_around(folder, &outside.environment) {
            Some(around) => match around.root {
                Some(root) => root,
                None => return read_committed_settings(target, common, outside),
            },
            // Opening the repository itself will say why; without one, this folder may hold settings that name it.
            None => folder.clone(),
        },
        RepositoryTarget::Path(path) if path.join(".git").exists() => path.clone(),
        RepositoryTarget::Path(path) if !path.exists() => return Ok(Settings::default()),
        RepositoryTarget::Path(_) | RepositoryTarget::Url(_) => {
            return read_committed_settings(target, common, outside);
        }
    };
    let file = shorten_path(&folder.join(settings::FILE), &outside.working);
    if file.is_file() { Settings::read_file(&file, home.as_deref()) } else { Ok(Settings::default()) }
}

/// Settings from a commit have no folder that paths could be relative to.
pub(super) fn read_committed_settings(
    target: &RepositoryTarget,
    common: &Common,
    outside: &Outside,
) -> Result<Settings, Vec<Failure>> {
    let branch = strip_empty(common.branch.as_deref()).unwrap_or("main");
    let one = |error: git_commits::GitError| vec![Failure::from(error)];
    let repository = Repository::open_target(target, make_options(outside, false, branch)).map_err(one)?;
    let snapshot = repository.read_snapshot(branch).map_err(one)?;
    let name = format!("{}:{}", snapshot.name(), settings::FILE);
    let unread = |lost: crate::files::Unreadable| {
        vec![
            Failure::new(FailureKind::Repository, "unreadable", lost.why)
                .with_place(At::from_file(name.clone())),
        ]
    };
    let Some(bytes) = snapshot.read_file(settings::FILE).map_err(unread)? else {
        return Ok(Settings::default());
    };
    let settings = Settings::parse(&bytes, &name, Path::new(""), outside.environment.find_home().as_deref())?;
    let relative: Vec<Failure> = list_paths(&settings)
        .into_iter()
        .filter(|path| path.path.is_relative())
        .map(|path| {
            let cause = format!("{:?} is a path in a commit, where there are no files", path.written);
            Failure::new_input("relative-path", cause)
                .with_place(At::from_file(name.clone()))
                .with_hint("run in a checkout, or name a settings file with --config")
        })
        .collect();
    if relative.is_empty() { Ok(settings) } else { Err(relative) }
}

/// Every path that settings name.
pub(super) fn list_paths(settings: &Settings) -> Vec<&FilePath> {
    let sources = settings.sources.iter().filter_map(|source| match source {
        settings::SourceSettings::Path { path, .. } => Some(path),
        settings::SourceSettings::Cluster { .. } => None,
    });
    let registries = settings.registries.values().flat_map(|r| r.layout.iter().chain(&r.ca_file));
    let url = settings.repository.url.iter().filter_map(|url| match url {
        Location::Path(path) => Some(path),
        Location::Url(_) => None,
    });
    sources
        .chain(&settings.observed)
        .chain(registries)
        .chain(url)
        .chain(&settings.signing_key_file)
        .chain(&settings.repository.sign_commits)
        .chain(&settings.evidence.cache_dir)
        .collect()
}
