//! Where objects are read: what the flags name, or the settings, or the GitOps repository itself.

use super::{Access, Outside, format_path};
use crate::error::{At, Failure, FailureKind};
use crate::load::cluster::connect as cluster;
use crate::load::cluster::{ClusterSource, Selection, snapshot};
use crate::load::folder::DiskFolder;
use crate::run::{Source, SourcePlace};
use crate::settings;
use crate::settings::{FilePath, Settings};
use crate::verbs::flags::Common;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::runtime::Runtime;

/// What the flags name, else the settings, else the GitOps repository itself.
pub(super) fn open_sources(
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
pub(super) fn replay_snapshot(written: &str, access: Access) -> Result<Vec<Source>, Failure> {
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

pub(super) fn open_source(
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
