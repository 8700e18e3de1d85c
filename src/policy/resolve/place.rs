//! Where an Order deploys: its Environment with Clusters looked up.

use crate::error::Failure;
use crate::model::cluster::{Cluster, IN_CLUSTER};
use crate::model::environment::{Environment, EnvironmentPromotion, OnDelete};
use crate::model::id::{ClusterName, EnvironmentName, Namespace};
use crate::model::meta::{Readiness, Status};
use crate::model::order::Order;
use crate::model::world::{Loaded, Origin, World, is_cluster};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Name of the implicit Environment that all Orders use while no Environment object exists, and of its one
/// Cluster.
pub const IMPLICIT: &str = "in-cluster";

/// One Cluster of a [`Place`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceCluster {
    pub name: ClusterName,
    /// Its API server as written; empty for a missing one.
    pub server: String,
    /// Whether its health counts.
    pub ready: bool,
    /// Why nothing is deployed there, if so.
    pub held: Option<Held>,
}

/// Why nothing new is deployed to a Cluster of an Environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// The Environment names it, but no Cluster object has that name.
    Missing,
    /// Another Cluster of this name order has the same API server.
    SameServer(ClusterName),
}

/// An Environment with its Clusters looked up.
#[derive(Debug, Clone)]
pub struct Place {
    pub name: EnvironmentName,
    /// Argo CD's AppProject.
    pub project: String,
    /// Whether a workload goes with its Application.
    pub on_delete: OnDelete,
    /// Sorted by name.
    pub clusters: Vec<PlaceCluster>,
    /// Whether Clusters are also selected by label. If so, a Cluster whose object is missing was not removed
    /// on purpose.
    pub by_selector: bool,
    /// Target namespaces allowed in addition to the Preparation's own.
    pub allowed_target_namespaces: Vec<Namespace>,
    /// Namespaces whose Orders may deploy here; empty: all.
    pub allowed_namespaces: Vec<Namespace>,
    /// What every Order here must pass.
    pub promotion: EnvironmentPromotion,
}

impl Place {
    /// Whether a Cluster with an Application was removed from this Environment on purpose: the Environment
    /// does not name it any more, and no label selector can explain its absence.
    #[must_use]
    pub fn has_dropped(&self, cluster: &ClusterName, cluster_exists: bool) -> bool {
        !self.clusters.iter().any(|c| c.name == *cluster) && (cluster_exists || !self.by_selector)
    }
}

/// All Environments of a World.
pub struct Places {
    places: BTreeMap<EnvironmentName, Arc<Place>>,
    implicit: Option<Arc<Place>>,
}

impl Places {
    /// Looks every Environment's Clusters up, once for all Orders.
    #[must_use]
    pub fn from_world(world: &World) -> Self {
        let places = world
            .environments
            .iter()
            .map(|(name, loaded)| {
                (name.clone(), Arc::new(resolve_place(name, &loaded.object, &world.clusters)))
            })
            .collect();
        // A broken Environment counts as one: the implicit Environment never replaces it.
        let broken = world
            .problems
            .iter()
            .any(|p| p.failure.what.as_deref().is_some_and(|w| w.starts_with("Environment")));
        let implicit = (world.environments.is_empty() && !broken).then(make_implicit_place).flatten();
        Self { places, implicit }
    }

    /// Where this Order deploys.
    ///
    /// # Errors
    /// The Order names no Environment, or one that does not exist.
    pub fn find_place(&self, order: &Order) -> Result<Arc<Place>, Failure> {
        let names = || {
            let known: Vec<&str> = self.places.keys().map(EnvironmentName::as_str).collect();
            if known.is_empty() {
                "no Environment object was read; remove spec.environment to deploy to the cluster of Argo CD"
                    .to_owned()
            } else {
                format!("Environments that exist: {}", known.join(", "))
            }
        };
        match (&order.spec.environment, &self.implicit) {
            (None, Some(implicit)) => Ok(implicit.clone()),
            (None, None) => Err(Failure::new_input(
                "no-environment",
                "it names no Environment; once an Environment object exists, every Order must name one",
            )
            .with_field("spec.environment")
            .with_hint(names())),
            (Some(name), _) => self.places.get(name).cloned().ok_or_else(|| {
                Failure::new_input("unknown-environment", format!("Environment {name} does not exist"))
                    .with_field("spec.environment")
                    .with_hint(names())
            }),
        }
    }
}

fn make_implicit_place() -> Option<Arc<Place>> {
    Some(Arc::new(Place {
        name: EnvironmentName::parse(IMPLICIT).ok()?,
        project: "default".into(),
        on_delete: OnDelete::default(),
        clusters: vec![PlaceCluster {
            name: ClusterName::parse(IMPLICIT).ok()?,
            server: IN_CLUSTER.into(),
            ready: true,
            held: None,
        }],
        by_selector: false,
        allowed_target_namespaces: Vec::new(),
        allowed_namespaces: Vec::new(),
        promotion: EnvironmentPromotion::default(),
    }))
}

fn resolve_place(
    name: &EnvironmentName,
    environment: &Environment,
    clusters: &BTreeMap<ClusterName, Loaded<Cluster>>,
) -> Place {
    let spec = &environment.spec;
    let mut names: BTreeSet<ClusterName> = spec.clusters.iter().cloned().collect();
    if let Some(selector) = &spec.cluster_selector {
        names.extend(
            clusters
                .iter()
                .filter(|(_, loaded)| selector.admits_labels(&loaded.object.metadata.labels))
                .map(|(name, _)| name.clone()),
        );
    }
    let mut servers: BTreeMap<String, ClusterName> = BTreeMap::new();
    let clusters = names
        .into_iter()
        .map(|name| match clusters.get(&name) {
            None => PlaceCluster { name, server: String::new(), ready: false, held: Some(Held::Missing) },
            Some(loaded) => {
                let server = loaded.object.spec.server.clone();
                let held = match servers.entry(normalize_server(&server)) {
                    std::collections::btree_map::Entry::Occupied(first) => {
                        Some(Held::SameServer(first.get().clone()))
                    }
                    std::collections::btree_map::Entry::Vacant(free) => {
                        free.insert(name.clone());
                        None
                    }
                };
                PlaceCluster { name, server, ready: is_cluster_ready(loaded), held }
            }
        })
        .collect();
    Place {
        name: name.clone(),
        project: spec.argocd_project.clone().unwrap_or_else(|| "default".into()),
        on_delete: spec.on_delete.unwrap_or_default(),
        clusters,
        by_selector: spec.cluster_selector.is_some(),
        allowed_target_namespaces: spec.allowed_target_namespaces.clone(),
        allowed_namespaces: spec.allowed_namespaces.clone(),
        promotion: spec.promotion.clone(),
    }
}

/// Whether an object came from an API server, where an absent condition means "not Ready".
pub(crate) fn is_from_cluster(origin: &Origin) -> bool {
    is_cluster(&origin.source)
}

/// Whether the health of this Cluster counts; one whose object is missing does not.
pub(crate) fn is_ready(name: &ClusterName, world: &World) -> bool {
    match world.clusters.get(name) {
        Some(loaded) => is_cluster_ready(loaded),
        None => name.as_str() == IMPLICIT && world.environments.is_empty(),
    }
}

fn is_cluster_ready(loaded: &Loaded<Cluster>) -> bool {
    match Status::judge_readiness(loaded.object.status.as_ref(), loaded.object.metadata.generation) {
        Readiness::Ready => true,
        Readiness::NoStatus | Readiness::NoCondition => !is_from_cluster(&loaded.origin),
        Readiness::NotReady(_) | Readiness::NotYetKnown(_) => false,
    }
}

/// Normalizes the URL of an API server: scheme and host in lower case, no default port, no trailing slash.
///
/// ```
/// use expedite::policy::resolve::place::normalize_server;
/// assert_eq!(normalize_server("https://EU-1.example:443/"), normalize_server("https://eu-1.example"));
/// assert_ne!(normalize_server("https://eu-1.example:6443"), normalize_server("https://eu-1.example"));
/// ```
#[must_use]
pub fn normalize_server(server: &str) -> String {
    match url::Url::parse(server.trim()) {
        Ok(url) => url.as_str().trim_end_matches('/').to_owned(),
        Err(_) => server.trim().trim_end_matches('/').to_ascii_lowercase(),
    }
}
