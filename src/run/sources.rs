//! Where objects are read, and opening it.

use super::Setup;
use super::tell::Listed;
use crate::load::cluster::{ClusterSource, Fetched};
use crate::load::folder::DiskFolder;
use crate::load::{self, Input, OURS, Observed};
use crate::model::id::Namespace;
use crate::model::kind;
use crate::model::world::World;
use git_commits::{Below, Snapshot};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// Where objects are read.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its stable name, remembered in Servings: `path:<as written>`, `repository` or `cluster:<context>`.
    pub name: Arc<str>,
    /// Where it is.
    pub place: SourcePlace,
    /// Kinds that may come from it; `None`: all.
    pub kinds: Option<BTreeSet<kind::Kind>>,
    /// Namespaces whose objects may come from it; `None`: all.
    pub namespaces: Option<BTreeSet<Namespace>>,
}

impl Source {
    /// Whether it is the GitOps repository itself.
    #[must_use]
    pub fn is_repository(&self) -> bool {
        match self.place {
            SourcePlace::Repository => true,
            SourcePlace::Folder(..)
            | SourcePlace::Commit(_)
            | SourcePlace::Cluster(_)
            | SourcePlace::Snapshot(_) => false,
        }
    }
}

/// Where a source is.
#[derive(Debug, Clone)]
pub enum SourcePlace {
    /// A folder (or one file): its name for messages, and its path.
    Folder(String, PathBuf),
    /// The same folder as it is at a commit.
    Commit(Arc<Below>),
    /// The GitOps repository itself, at the commit that decisions are made on.
    Repository,
    /// An API server.
    Cluster(Arc<ClusterSource>),
    /// What an API server gave before.
    Snapshot(Arc<Fetched>),
}

/// The objects of every source, and what Servings in clusters say.
pub(crate) fn read_world(
    setup: &Setup<'_>,
    snapshot: &Snapshot,
    progress: &mut dyn FnMut(&str),
) -> (World, Listed) {
    let opened: Vec<OpenedSource> =
        setup.sources.iter().map(|source| OpenedSource::new(source, setup, progress)).collect();
    let inputs: Vec<Input<'_>> = setup
        .sources
        .iter()
        .zip(&opened)
        .map(|(source, opened)| Input {
            name: source.name.clone(),
            files: match opened {
                OpenedSource::Folder(folder) => folder,
                OpenedSource::Commit(below) => &**below,
                OpenedSource::Cluster(fetched) => &**fetched,
                OpenedSource::Repository => snapshot,
            },
            kinds: source.kinds.clone(),
            namespaces: source.namespaces.clone(),
            skip: match opened {
                OpenedSource::Repository => OURS,
                OpenedSource::Folder(_) | OpenedSource::Commit(_) | OpenedSource::Cluster(_) => &[],
            },
        })
        .collect();
    let dump = setup.observed.as_ref().map(|(name, path)| Observed {
        source: "observed".into(),
        file: name.as_str().into(),
        bytes: std::fs::read(path).map_err(|e| e.to_string()),
    });
    let live = setup.sources.iter().zip(&opened).filter_map(|(source, opened)| match opened {
        OpenedSource::Cluster(fetched) => fetched.build_observed(&source.name),
        OpenedSource::Folder(_) | OpenedSource::Commit(_) | OpenedSource::Repository => None,
    });
    let observed: Vec<Observed> = dump.into_iter().chain(live).collect();
    let listed = setup.sources.iter().zip(&opened).filter_map(|(source, opened)| match opened {
        OpenedSource::Cluster(fetched) => Some((source.name.clone(), fetched.servings().clone())),
        OpenedSource::Folder(_) | OpenedSource::Commit(_) | OpenedSource::Repository => None,
    });
    (load::read_world(&inputs, &observed), listed.collect())
}

/// A source, ready to be read.
enum OpenedSource {
    Folder(DiskFolder),
    Commit(Arc<Below>),
    Cluster(Arc<Fetched>),
    Repository,
}

impl OpenedSource {
    fn new(source: &Source, setup: &Setup<'_>, progress: &mut dyn FnMut(&str)) -> Self {
        match &source.place {
            SourcePlace::Folder(name, path) => Self::Folder(DiskFolder::new(name.clone(), path)),
            SourcePlace::Commit(below) => Self::Commit(below.clone()),
            SourcePlace::Repository => Self::Repository,
            SourcePlace::Cluster(cluster) => {
                progress(&format!("reading {}", cluster.name()));
                Self::Cluster(Arc::new(cluster.fetch_all(setup.runtime)))
            }
            SourcePlace::Snapshot(fetched) => Self::Cluster(fetched.clone()),
        }
    }
}
