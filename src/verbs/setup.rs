//! Flags, environment and settings → everything a verb works with, opened.
//!
//! Flags win over variables, those over the settings file. What a setting asks for and this build cannot do
//! is refused here: nothing that somebody configured is passed over.

mod author;
mod clock;
mod orders;
mod registries;
mod repository;
mod scope;
mod settings;
mod sources;
pub mod signer;

pub use orders::{find_case, find_order, parse_order, refuse_order};
pub use settings::{find_settings_file, read_settings, strip_empty};

use crate::attest::key::RecordSigner;
use crate::error::{Failure, FailureKind};
use crate::evidence::gather::{self, GatherOptions};
use crate::load::cluster::snapshot;
use crate::model::kind;
use crate::model::scope::Scope;
use crate::model::time::Time;
use crate::notify::Teller;
use crate::policy::decide::PlanOptions;
use crate::run::{Setup, Source, SourcePlace};
use crate::settings::{Location, Settings};
use crate::verbs::flags::Common;
use author::parse_author;
use clock::resolve_clock;
use git_commits::identity::Given;
use git_commits::{Environment, Repository, RepositoryTarget};
use git_commits::{Identity, Person};
use oci_registry::Registries;
use registries::configure_registries;
use repository::{Lack, open_repository, refuse_network};
use scope::resolve_scope;
use settings::resolve_targets;
use sources::open_sources;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tokio::runtime::Runtime;

/// What a verb may do to the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Nothing: an absent repository that the settings would create is taken as empty.
    Read,
    /// Nothing, and where objects come from elsewhere and no repository was named, there need not be one.
    ReadIfThere,
    /// Nothing, and no network is used: where objects come from elsewhere no repository is looked at.
    SourcesOnly,
    /// Nothing, and neither objects nor repository are looked at.
    SettingsOnly,
    /// Commits.
    Write,
}

impl Access {
    /// Whether it goes without a network.
    fn is_local(self) -> bool {
        match self {
            Self::SourcesOnly | Self::SettingsOnly => true,
            Self::Read | Self::ReadIfThere | Self::Write => false,
        }
    }
}

/// What comes from outside: handed in by `main`.
#[derive(Debug, Clone)]
pub struct Outside {
    /// The process's environment.
    pub environment: Environment,
    /// The real clock.
    pub clock: Time,
    /// The working directory.
    pub working: PathBuf,
}

/// Everything opened.
pub struct Opened {
    /// The settings that count.
    pub settings: Settings,
    /// The GitOps repository.
    pub repository: Repository,
    /// Its branch.
    pub branch: String,
    /// The registries.
    pub registries: Registries,
    /// The environment.
    pub environment: Environment,
    sources: Vec<Source>,
    observed: Option<(String, PathBuf)>,
    runtime: Runtime,
    scope: Scope,
    now: Time,
    /// `now` is ahead of the real clock.
    foreseen: bool,
    no_records: bool,
    /// `--author`.
    author: Given,
    signer: Option<RecordSigner>,
    /// Stands in for a repository that is not there yet.
    _stand_in: Option<tempfile::TempDir>,
}

impl Opened {
    /// Opens what the flags and the settings name.
    ///
    /// # Errors
    /// All that is wrong with the settings at once, or the first thing that cannot be opened.
    pub fn new(common: &Common, outside: &Outside, access: Access) -> Result<Self, Vec<Failure>> {
        Self::open_with(read_settings(common, outside, access)?, common, outside, access)
    }

    /// Opens what the flags and these settings name.
    ///
    /// # Errors
    /// The first thing that cannot be opened.
    pub fn open_with(
        settings: Settings,
        common: &Common,
        outside: &Outside,
        access: Access,
    ) -> Result<Self, Vec<Failure>> {
        let one = |failure| vec![failure];
        let (flag, _) = resolve_targets(common, outside).map_err(one)?;
        let target = match (flag, &settings.repository.url) {
            (Some(flag), _) => flag,
            (None, Some(Location::Path(path))) if path.written == "." => {
                RepositoryTarget::Around(path.path.clone())
            }
            (None, Some(Location::Path(path))) => RepositoryTarget::Path(path.path.clone()),
            (None, Some(Location::Url(url))) => {
                RepositoryTarget::parse(url, &outside.working).map_err(Failure::from).map_err(one)?
            }
            (None, None) => RepositoryTarget::Around(outside.working.clone()),
        };
        // Settings were checked where they were read.
        let branch = strip_empty(common.branch.as_deref()).unwrap_or(&settings.repository.branch).to_owned();
        if !git_commits::is_branch_name(branch.trim()) {
            let cause = format!("{branch:?} is not a valid git branch name");
            return Err(one(Failure::new_input("branch-name", cause).with_object("--branch")));
        }
        let runtime = gather::make_runtime().map_err(one)?;
        let sources = match access {
            Access::SettingsOnly => Vec::new(),
            Access::Read | Access::ReadIfThere | Access::SourcesOnly | Access::Write => {
                open_sources(&settings, common, outside, access, &runtime)?
            }
        };
        let from_elsewhere = !sources.iter().any(Source::is_repository);
        let lack = match access {
            Access::Read | Access::Write => Lack::No,
            Access::ReadIfThere | Access::SourcesOnly if !from_elsewhere => Lack::No,
            Access::ReadIfThere => Lack::IfAbsent,
            Access::SourcesOnly | Access::SettingsOnly => Lack::Yes,
        };
        let (repository, stand_in) =
            open_repository(&target, &settings, &branch, outside, access, lack).map_err(one)?;
        if access == Access::SourcesOnly && repository.is_remote() {
            return Err(one(refuse_network(&repository)));
        }
        let now = resolve_clock(common, outside, access, &repository).map_err(one)?;
        Ok(Self {
            registries: Registries::new(configure_registries(&settings, common.offline, outside))
                .map_err(|error| one(error.into()))?,
            sources,
            observed: settings.observed.as_ref().map(|o| (format_path(&o.path), o.path.clone())),
            runtime,
            scope: resolve_scope(common, outside).map_err(one)?,
            signer: None,
            environment: outside.environment.clone(),
            settings,
            repository,
            branch,
            now,
            foreseen: now > outside.clock,
            no_records: common.no_records,
            author: parse_author(common),
            _stand_in: stand_in,
        })
    }

    /// For the stages. `allow_removals` is the flag's.
    #[must_use]
    pub fn make_setup(&self, access: Access, allow_removals: Option<usize>) -> Setup<'_> {
        Setup {
            repository: &self.repository,
            branch: &self.branch,
            sources: self.sources.clone(),
            observed: self.observed.clone(),
            registries: &self.registries,
            runtime: &self.runtime,
            gather: GatherOptions {
                layer_types: self.settings.evidence.layer_media_types.clone(),
                ..GatherOptions::default()
            },
            skip_evidence: false,
            argocd_namespace: self.settings.argocd.namespace.to_string(),
            require_observation: self.settings.argocd.require_observation,
            signer: match access {
                Access::Read | Access::ReadIfThere | Access::SourcesOnly | Access::SettingsOnly => None,
                Access::Write => self.signer.as_ref(),
            },
            options: PlanOptions {
                scope: self.scope.clone(),
                max_removals: self.settings.limits.max_removals,
                allow_removals,
                max_promotions: self.settings.limits.max_promotions,
                unwritable: BTreeSet::new(),
            },
            records: !self.no_records,
            now: self.now,
            foreseen: self.foreseen,
            explained: None,
            rescan: self.settings.evidence.rescan,
        }
    }

    /// Reads the key that this run signs with, for [`Self::make_setup`]. Verbs that sign nothing need none, so it
    /// is no part of [`Self::new`].
    ///
    /// # Errors
    /// One is named and cannot be used, and records are to be signed. None named is no error here: the run itself
    /// says so.
    pub fn read_signer(&mut self, common: &Common, outside: &Outside) -> Result<(), Failure> {
        self.signer = match signer::read_signer(common, &self.settings, outside) {
            // Without records only votes are sealed, and whoever waits for that is told.
            Err(_) if self.no_records => None,
            read => read?,
        };
        Ok(())
    }

    /// The folder of a source, by its name; none for the repository itself and for a cluster.
    #[must_use]
    pub fn find_folder(&self, source: &str) -> Option<PathBuf> {
        let found = self.sources.iter().find(|s| *s.name == *source)?;
        match &found.place {
            SourcePlace::Folder(_, path) if path.is_dir() => Some(path.clone()),
            SourcePlace::Folder(_, path) => path.parent().map(Path::to_path_buf),
            SourcePlace::Commit(_)
            | SourcePlace::Repository
            | SourcePlace::Cluster(_)
            | SourcePlace::Snapshot(_) => None,
        }
    }

    /// What every cluster among the sources gives.
    #[must_use]
    pub fn fetch_clusters(&self, progress: &mut dyn FnMut(&str)) -> Vec<snapshot::SnapshotPart> {
        let mut parts = Vec::new();
        for source in &self.sources {
            if let SourcePlace::Cluster(cluster) = &source.place {
                progress(&format!("reading {}", cluster.name()));
                let fetched = cluster.fetch_all(&self.runtime);
                parts.push(snapshot::SnapshotPart { source: source.name.clone(), fetched });
            }
        }
        parts
    }

    /// Who may write to the clusters among the sources (`run --write-status`).
    ///
    /// # Errors
    /// None of them lists Servings, or one gives Orders and no Servings: nothing that was asked for is passed over.
    pub fn make_tellers(&self) -> Result<Vec<Teller>, Vec<Failure>> {
        let wrong = |cause: String| {
            Failure::new(FailureKind::Usage, "no-cluster", cause).with_object("--write-status")
        };
        let mut tellers = Vec::new();
        let mut failures = Vec::new();
        for source in &self.sources {
            let SourcePlace::Cluster(cluster) = &source.place else { continue };
            if cluster.can_list(kind::Kind::Serving) {
                tellers.push(Teller::new(source.name.clone(), cluster.connection().clone()));
            } else if cluster.can_list(kind::Kind::Order) {
                let cause = format!("{} gives Orders, and its Servings are not listed", cluster.name());
                failures.push(wrong(cause).with_hint("add Serving to the kinds of that source"));
            }
        }
        if tellers.is_empty() && failures.is_empty() {
            let cause = "no source is a cluster with Servings".to_owned();
            failures.push(
                wrong(cause).with_hint("give --from-cluster, or name a cluster in the settings' sources"),
            );
        }
        if failures.is_empty() { Ok(tellers) } else { Err(failures) }
    }

    /// Folders and files on disk that objects are read from.
    #[must_use]
    pub fn list_source_paths(&self) -> Vec<PathBuf> {
        let on_disk = |source: &Source| match &source.place {
            SourcePlace::Folder(_, path) => Some(path.clone()),
            SourcePlace::Commit(_)
            | SourcePlace::Repository
            | SourcePlace::Cluster(_)
            | SourcePlace::Snapshot(_) => None,
        };
        self.sources.iter().filter_map(on_disk).collect()
    }

    /// Whether objects are read from the GitOps repository itself.
    #[must_use]
    pub fn needs_repository(&self) -> bool {
        self.sources.iter().any(Source::is_repository)
    }

    /// The instant that everything is decided for.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// What is written, of all that is read.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Who commits, and who signs that, where somebody asked for signed commits.
    ///
    /// # Errors
    /// Signing is asked for, by the settings or git's configuration, and cannot be done.
    pub fn resolve_identity(&self) -> Result<Identity, Failure> {
        let author = self.settings.repository.author.as_ref();
        let settings = Given { name: author.map(|a| a.name.clone()), email: author.map(|a| a.email.clone()) };
        let key = self.settings.repository.sign_commits.as_ref().map(|key| key.path.as_path());
        let signer = git_commits::CommitSigner::resolve(key, &self.environment, &self.repository)?;
        Ok(Identity::resolve(&self.author, &self.environment, &settings, &self.repository)
            .with_signer(signer))
    }

    /// Whose wish it is: the person, as git knows them; `None`: whom `--author` names.
    #[must_use]
    pub fn find_requester(&self) -> Option<Person> {
        if self.author != Given::default() {
            return None;
        }
        Identity::find_requester(&self.environment, &self.repository)
    }

    /// The repository and its branch as a person would name them.
    #[must_use]
    pub fn describe_place(&self) -> String {
        format!("{} {}", self.repository.name(), self.branch)
    }
}

/// A path as a message names it, without `./` inside.
pub fn format_path(path: &Path) -> String {
    path.components().collect::<PathBuf>().display().to_string()
}

/// A failure as a list of one.
pub fn wrap_failure(failure: Failure) -> Vec<Failure> {
    vec![failure]
}
