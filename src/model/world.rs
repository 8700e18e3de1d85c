//! What was read: objects with their origin, and the problems while reading.

use crate::error::{At, Failure};
use crate::model::application::Application;
use crate::model::approval::Approval;
use crate::model::cluster::Cluster;
use crate::model::environment::Environment;
use crate::model::id::{ClusterName, CommitId, EnvironmentName, Namespace, OrderRef, PreparationName};
use crate::model::kitchen::Kitchen;
use crate::model::order::Order;
use crate::model::preparation::Preparation;
use crate::model::serving::Serving;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Begins the name of every source that is an API server: there, an absent condition means "not Ready", and
/// objects are not in files.
pub const CLUSTER: &str = "cluster:";

/// Whether the source of this name is an API server.
#[must_use]
pub fn is_cluster(source: &str) -> bool {
    source.starts_with(CLUSTER)
}

/// Where an object came from, as names and indices.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The source's stable name (remembered in `Serving.status.deployed.source`): `path:<as written in the
    /// settings>`, `repository` or `cluster:<context>`.
    pub source: Arc<str>,
    /// The file as a user would name it; `cluster <context>` for a cluster.
    pub file: Arc<str>,
    /// Which YAML document of the file, from 0.
    pub document: u32,
    /// Which item of a `List`, from 0.
    pub item: Option<u32>,
    /// Line of the object's first key, from 1; 0 where there are no lines (a cluster).
    pub line: u32,
}

impl Origin {
    /// The place of the whole object, for a message.
    #[must_use]
    pub fn make_place(&self) -> At {
        At { file: self.file.to_string(), line: (self.line > 0).then_some(self.line), column: None }
    }
}

/// An object and where it came from.
#[derive(Debug, Clone)]
pub struct Loaded<T> {
    pub object: Arc<T>,
    /// Where it came from.
    pub origin: Origin,
}

/// What a problem of reading affects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holds {
    /// Nothing; the problem is only a warning.
    Nothing,
    /// These Orders: each keeps what it deploys and reports the problem as its own.
    Orders(BTreeSet<OrderRef>),
    /// Every new promotion (what could not be read may be a Reject, a freeze or a policy).
    Everything,
}

/// A problem while reading the sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub failure: Failure,
    /// What it affects.
    pub holds: Holds,
}

/// How one source was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceState {
    /// As in [`Origin::source`].
    pub name: Arc<str>,
    /// Whether every file and every page of every list was read. If not, no object of it is treated as
    /// deleted.
    pub whole: bool,
    /// Why not, if so.
    pub why: Option<String>,
    /// How many objects of our kinds it gave.
    pub objects: usize,
}

/// Everything that was read. A broken object is not included; `problems` names it.
#[derive(Debug, Clone, Default)]
pub struct World {
    pub orders: BTreeMap<OrderRef, Loaded<Order>>,
    pub preparations: BTreeMap<(Namespace, PreparationName), Loaded<Preparation>>,
    /// Approvals, in the order of (namespace, name).
    pub approvals: BTreeMap<(Namespace, String), Loaded<Approval>>,
    pub environments: BTreeMap<EnvironmentName, Loaded<Environment>>,
    pub clusters: BTreeMap<ClusterName, Loaded<Cluster>>,
    pub kitchen: Option<Loaded<Kitchen>>,
    /// Servings found outside the GitOps repository, used only to warn if they differ.
    pub stray_servings: BTreeMap<OrderRef, Loaded<Serving>>,
    /// Applications by (namespace, name); `None`: Argo CD was not asked, so their state is unknown.
    pub applications: Option<BTreeMap<(String, String), Loaded<Application>>>,
    pub problems: Vec<Problem>,
    /// How each source was read, in the settings' order.
    pub sources: Vec<SourceState>,
}

/// The GitOps repository at one commit, as far as Expedite uses it.
#[derive(Debug, Clone, Default)]
pub struct GitOps {
    /// The commit that everything was decided on; `None`: the branch does not exist yet.
    pub head: Option<CommitId>,
    /// Servings by Order (by path: `servings/<namespace>/<order>.yaml`).
    pub servings: BTreeMap<OrderRef, ServingFile>,
    /// Every file below `applications/`, by path.
    pub applications: BTreeMap<String, ApplicationFile>,
    /// Text of `templates/application.yaml`, where the repository has one.
    pub application_template: Option<String>,
    /// Text of `templates/serving.yaml`, where the repository has one.
    pub serving_template: Option<String>,
    /// Opted-in Applications that cannot be taken over, by path, and what would be lost (set once `render` has
    /// compared them with their rendering).
    pub losses: BTreeMap<String, String>,
    /// SHA-256 (hex) of the records in `records/<namespace>/<order>/`, by Order; the bytes are read when needed.
    pub records: BTreeMap<OrderRef, BTreeSet<String>>,
    /// Problems in the folders that Expedite uses.
    pub problems: Vec<Problem>,
}

#[derive(Debug, Clone)]
pub struct ServingFile {
    pub path: String,
    /// Exactly as committed.
    pub text: Arc<str>,
    /// The parsed Serving; a broken one keeps its text and is an error of that Order.
    pub serving: Result<Arc<Serving>, Failure>,
}

/// One file below `applications/`.
#[derive(Debug, Clone)]
pub struct ApplicationFile {
    /// Exactly as committed.
    pub text: Arc<str>,
    /// The Order its labels name (`delivery.kokumi.dev/serving` and `…/serving-namespace`); `None`: foreign.
    pub owner: Option<OrderRef>,
    /// The parsed Application, if the file is one.
    pub application: Result<Arc<Application>, Failure>,
}
