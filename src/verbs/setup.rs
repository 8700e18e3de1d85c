//! Flags, environment and settings → everything a verb works with, opened.
//!
//! Flags win over variables, those over the settings file. What a setting asks for and this build cannot do
//! is refused here: nothing that somebody configured is passed over.

pub mod signer;

use crate::attest::key::RecordSigner;
use crate::error::{At, Failure, FailureKind};
use crate::evidence::gather::{self, GatherOptions};
use crate::load::cluster::connect as cluster;
use crate::load::cluster::{ClusterSource, Selection, snapshot};
use crate::load::folder::DiskFolder;
use crate::model::id::{OrderName, OrderRef};
use crate::model::kind;
use crate::model::scope::{Scope, Shard};
use crate::model::time::Time;
use crate::notify::Teller;
use crate::policy::decide::PlanOptions;
use crate::policy::resolve::Case;
use crate::run::{Setup, Source, SourcePlace};
use crate::settings::{self, FilePath, Location, Settings};
use crate::verbs::flags::Common;
use crate::verbs::values::OrderArg;
use git_commits::identity::Given;
use git_commits::{Environment, Repository, RepositoryTarget};
use git_commits::{Identity, Person};
use oci_registry::{HostConfig, Registries, RegistriesConfig};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
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

/// Whether an empty repository stands in for the one that is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lack {
    No,
    IfAbsent,
    Yes,
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

fn refuse_network(repository: &Repository) -> Failure {
    Failure::new(
        FailureKind::Usage,
        "needs-network",
        "its objects are on a server, and no network is used here",
    )
    .with_object(format!("repository {}", repository.name()))
    .with_hint("name a folder that holds your Kitchen with --from")
}

fn parse_author(common: &Common) -> Given {
    let author = common.author.as_ref();
    Given { name: author.map(|a| a.name.clone()), email: author.map(|a| a.email.clone()) }
}

/// An empty variable counts as none.
pub fn strip_empty(text: Option<&str>) -> Option<&str> {
    text.filter(|t| !t.is_empty())
}

/// The repository that `--repo` names, and the one whose root may hold the settings.
fn resolve_targets(
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
fn read_home_settings(
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
fn read_committed_settings(
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
fn list_paths(settings: &Settings) -> Vec<&FilePath> {
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

/// `--at`, or the clock. What is written is of no time ahead of the clock, and of a past one only in a
/// repository on this machine (`docs/design/promotion.md#clocks-lie`).
fn resolve_clock(
    common: &Common,
    outside: &Outside,
    access: Access,
    repository: &Repository,
) -> Result<Time, Failure> {
    let Some(at) = common.at else { return Ok(outside.clock) };
    let wrong = |cause: &str| Failure::new(FailureKind::Usage, "at", cause).with_object("--at");
    match access {
        Access::Read | Access::ReadIfThere | Access::SourcesOnly | Access::SettingsOnly => Ok(at),
        Access::Write if at > outside.clock => {
            Err(wrong("it is ahead of the clock").with_hint("expedite plan --at foresees"))
        }
        Access::Write if repository.is_remote() => {
            Err(wrong("what is written over the network is of the clock's time"))
        }
        Access::Write => Ok(at),
    }
}

fn make_options(outside: &Outside, create: bool, branch: &str) -> git_commits::RepositoryOptions {
    git_commits::RepositoryOptions {
        create,
        branch: Some(branch.to_owned()),
        environment: outside.environment.clone(),
        working: Some(outside.working.clone()),
        ..git_commits::RepositoryOptions::default()
    }
}

fn open_repository(
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

fn configure_registries(settings: &Settings, offline: bool, outside: &Outside) -> RegistriesConfig {
    let hosts = settings.registries.iter().map(|(host, registry)| {
        let config = HostConfig {
            plain_http: registry.plain_http,
            mirror: registry.mirror.clone(),
            layout: registry.layout.as_ref().map(|p| p.path.clone()),
            ca_file: registry.ca_file.as_ref().map(|p| p.path.clone()),
            concurrency: registry.concurrency,
            read_only: registry.read_only,
        };
        (host.clone(), config)
    });
    RegistriesConfig {
        hosts: hosts.collect(),
        cache_dir: settings.evidence.cache_dir.as_ref().map(|p| p.path.clone()),
        offline,
        environment: oci_registry::RegistryEnvironment::from_vars(|name| {
            outside.environment.get_path(name).map(PathBuf::into_os_string)
        }),
        agent: concat!("expedite/", env!("CARGO_PKG_VERSION")).to_owned(),
        ..RegistriesConfig::default()
    }
}

/// What the flags name, else the settings, else the GitOps repository itself.
fn open_sources(
    settings: &Settings,
    common: &Common,
    outside: &Outside,
    access: Access,
    runtime: &Runtime,
) -> Result<Vec<Source>, Vec<Failure>> {
    let from = || common.from.iter().filter(|from| !from.is_empty());
    let is_snapshot = |written: &&String| Path::new(written).join(snapshot::FILE).is_file();
    let folders = from().filter(|from| !is_snapshot(from)).map(|written| settings::SourceSettings::Path {
        path: FilePath { written: written.clone(), path: PathBuf::from(written) },
        kinds: None,
        namespaces: None,
    });
    let cluster = |context| settings::SourceSettings::Cluster {
        context,
        namespaces: None,
        selector: None,
        kinds: None,
        applications: true,
    };
    let clusters = common.list_contexts().map(|context| cluster(context.map(str::to_owned)));
    let flags: Vec<settings::SourceSettings> = folders.chain(clusters).collect();
    let mut all = Vec::new();
    for written in from().filter(is_snapshot) {
        all.extend(replay_snapshot(written, access).map_err(|failure| vec![failure])?);
    }
    let named = if flags.is_empty() && all.is_empty() { &settings.sources } else { &flags };
    if named.is_empty() && all.is_empty() {
        let name = Arc::from("repository");
        return Ok(vec![Source { name, place: SourcePlace::Repository, kinds: None, namespaces: None }]);
    }
    let mut failures = Vec::new();
    for source in named {
        match open_source(source, settings, outside, access, runtime) {
            Ok(source) => all.push(source),
            Err(failure) => failures.push(failure),
        }
    }
    if failures.is_empty() { Ok(all) } else { Err(failures) }
}

/// The clusters of a snapshot, as they were. Nothing is written on the word of the past.
fn replay_snapshot(written: &str, access: Access) -> Result<Vec<Source>, Failure> {
    let path = Path::new(written);
    if access == Access::Write {
        let cause = "it is a snapshot: a decision is replayed from it, and nothing is written";
        return Err(Failure::new_input("snapshot", cause)
            .with_place(At::from_file(format_path(path)))
            .with_hint("expedite plan, explain and get read it"));
    }
    let parts = snapshot::read_parts(&DiskFolder::new(format_path(path), path))?;
    let source = |part: snapshot::SnapshotPart| Source {
        name: part.source,
        place: SourcePlace::Snapshot(Arc::new(part.fetched)),
        kinds: None,
        namespaces: None,
    };
    Ok(parts.into_iter().map(source).collect())
}

fn open_source(
    from: &settings::SourceSettings,
    settings: &Settings,
    outside: &Outside,
    access: Access,
    runtime: &Runtime,
) -> Result<Source, Failure> {
    let (place, kinds, namespaces) = match from {
        settings::SourceSettings::Path { path, kinds, namespaces } => {
            (SourcePlace::Folder(format_path(&path.path), path.path.clone()), kinds, namespaces)
        }
        settings::SourceSettings::Cluster { .. } if access.is_local() => {
            return Err(Failure::new(
                FailureKind::Usage,
                "needs-network",
                "it is a cluster, and no network is used here",
            )
            .with_object(format!("source {}", from.name()))
            .with_hint("name a folder that holds your Kitchen with --from"));
        }
        settings::SourceSettings::Cluster { context, namespaces, selector, kinds, applications } => {
            let access = cluster::ClusterAccess {
                environment: outside.environment.clone(),
                working: outside.working.clone(),
                account: cluster::SERVICE_ACCOUNT.into(),
                timeout: None,
            };
            let connection = runtime.block_on(access.open_connection(context.as_deref()))?;
            let selection = Selection {
                kinds: kinds.clone(),
                namespaces: namespaces.clone(),
                selector: selector.clone(),
                argocd: applications.then(|| settings.argocd.namespace.clone()),
            };
            (SourcePlace::Cluster(Arc::new(ClusterSource::new(connection, selection))), kinds, namespaces)
        }
    };
    let (kinds, namespaces) = (kinds.clone(), namespaces.clone());
    Ok(Source { name: from.name().into(), place, kinds, namespaces })
}

/// A path as a message names it, without `./` inside.
pub fn format_path(path: &Path) -> String {
    path.components().collect::<PathBuf>().display().to_string()
}

/// Relative to the working directory, where it lies below it.
fn shorten_path(path: &Path, working: &Path) -> PathBuf {
    let inside = working.canonicalize().ok().zip(path.canonicalize().ok());
    match inside.as_ref().and_then(|(working, path)| path.strip_prefix(working).ok()) {
        Some(relative) => relative.to_owned(),
        None => path.to_owned(),
    }
}

fn resolve_scope(common: &Common, outside: &Outside) -> Result<Scope, Failure> {
    let only = common.only.iter().map(|order| parse_order(order, common)).collect::<Result<_, _>>()?;
    Ok(Scope {
        namespaces: common.namespace.iter().cloned().collect(),
        selector: common.selector.clone(),
        only,
        shard: match common.shard {
            Some(shard) => Some(shard),
            None => parse_job_shard(&outside.environment)?,
        },
    })
}

/// The part of an Indexed Job: its index comes from Kubernetes, its count from the Job's author.
fn parse_job_shard(environment: &Environment) -> Result<Option<Shard>, Failure> {
    let Some(count) = environment.get("JOB_COMPLETION_COUNT") else { return Ok(None) };
    let index = environment.get("JOB_COMPLETION_INDEX").unwrap_or_default();
    Shard::parse(&format!("{index}/{count}")).map(Some).map_err(|error| {
        Failure::new(FailureKind::Usage, "shard", error.to_string())
            .with_object("JOB_COMPLETION_INDEX and JOB_COMPLETION_COUNT")
    })
}

/// The Order that an argument names.
///
/// # Errors
/// It names no namespace, and `-n` does not name one.
pub fn parse_order(order: &OrderArg, common: &Common) -> Result<OrderRef, Failure> {
    let namespace = match (&order.namespace, &common.namespace[..]) {
        (Some(namespace), _) | (None, [namespace]) => namespace.clone(),
        (None, _) => {
            return Err(Failure::new(FailureKind::Usage, "namespace", "its namespace is not given")
                .with_object(format!("Order {order}"))
                .with_hint(format!("write <namespace>/{}, or give one -n", order.name)));
        }
    };
    Ok(OrderRef { namespace, name: order.name.clone() })
}

/// The Order that an argument names; a bare name will do where only one of `known` has it.
///
/// # Errors
/// The name alone is of several Orders.
pub fn find_order<'a>(
    order: &OrderArg,
    common: &Common,
    known: impl Iterator<Item = &'a OrderRef>,
) -> Result<OrderRef, Failure> {
    if order.namespace.is_some() || !common.namespace.is_empty() {
        return parse_order(order, common);
    }
    let same = |name: &OrderName| *name == order.name;
    let mut candidates: Vec<&OrderRef> = known.filter(|k| same(&k.name)).collect();
    candidates.sort();
    candidates.dedup();
    match &candidates[..] {
        [one] => Ok((*one).clone()),
        [] => Err(refuse_order(&order.to_string())),
        many => {
            let names: Vec<String> = many.iter().map(ToString::to_string).collect();
            Err(Failure::new(FailureKind::Usage, "namespace", format!("it could be {}", names.join(" or ")))
                .with_object(format!("Order {order}")))
        }
    }
}

/// The Case of the Order that an argument names.
///
/// # Errors
/// As [`find_order`], or there is no such Order.
pub fn find_case<'a>(cases: &'a [Case], order: &OrderArg, common: &Common) -> Result<&'a Case, Failure> {
    let order = find_order(order, common, cases.iter().map(|case| &case.order))?;
    cases.iter().find(|case| case.order == order).ok_or_else(|| refuse_order(&order.to_string()))
}

/// An Order that was asked for is not there.
pub fn refuse_order(name: &str) -> Failure {
    Failure::new(FailureKind::SaysNo, "no-such-order", "there is no Order of this name")
        .with_object(format!("Order {name}"))
        .with_hint("expedite get orders lists them")
}

/// A failure as a list of one.
pub fn wrap_failure(failure: Failure) -> Vec<Failure> {
    vec![failure]
}
