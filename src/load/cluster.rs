//! A Kubernetes API server as a source: complete lists, as files in memory.
//!
//! Fetched objects are loaded like a folder's files, so that an object means the same from each kind of source.
//! Nothing is decided about an object here. Secrets are never requested, nothing is written, and one list that
//! could not be read to its end makes the source incomplete.

pub mod ask;
pub mod connect;
mod generation;
mod kept;
mod list;
pub mod snapshot;
pub mod told;

use crate::error::Failure;
use crate::files::{EntryKind, FileEntry, Files, Unreadable};
use crate::load::observed::Observed;
use crate::model::id::Namespace;
use crate::model::kind::Kind;
use crate::model::naming::GROUP;
use connect::Connection;
use list::{Lists, Missing};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use told::{Servings, Told};

/// Kinds in the order of listing. Kinds that could hold a promotion come last, so that they are never older than
/// the objects that they are about.
const KINDS: [Kind; 7] = [
    Kind::Order,
    Kind::Preparation,
    Kind::Serving,
    Kind::Cluster,
    Kind::Environment,
    Kind::Kitchen,
    Kind::Approval,
];

/// Which objects of a cluster are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only these kinds, and each must exist; `None`: all kinds, and Orders and Preparations must exist.
    pub kinds: Option<BTreeSet<Kind>>,
    /// Namespaced kinds are listed in these; `None`: in all at once.
    pub namespaces: Option<BTreeSet<Namespace>>,
    /// Label selector for Orders, as `kubectl -l` takes it.
    pub selector: Option<String>,
    /// Argo CD's namespace, whose Applications are observed; `None`: they are not.
    pub argocd: Option<Namespace>,
}

/// A cluster to read.
pub struct ClusterSource {
    connection: Connection,
    selection: Selection,
}

impl fmt::Debug for ClusterSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cluster").field(&self.connection.name).field(&self.selection).finish()
    }
}

impl ClusterSource {
    /// Reads `selection` through `connection`.
    #[must_use]
    pub fn new(connection: Connection, selection: Selection) -> Self {
        Self { connection, selection }
    }

    /// Its name in messages: `cluster <context>`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.connection.name
    }

    /// The client for requests.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Whether it lists objects of this kind, if the cluster has it.
    #[must_use]
    pub fn can_list(&self, kind: Kind) -> bool {
        self.selection.kinds.as_ref().is_none_or(|kinds| kinds.contains(&kind))
    }

    /// Lists everything, page by page. [`Fetched`] also says what could not be read.
    #[must_use]
    pub fn fetch_all(&self, runtime: &tokio::runtime::Runtime) -> Fetched {
        let mut fetched = Fetched { name: self.connection.name.clone(), ..Fetched::default() };
        runtime.block_on(async {
            let mut ours = Lists::new(&self.connection.client, GROUP).await;
            for kind in KINDS {
                self.fetch_objects(kind, &mut ours, &mut fetched).await;
            }
            // If one Order has a promotion, all may have one.
            if fetched.orders == Some(Promotions::None) {
                fetched.drops_promotions =
                    generation::fetch_drops_promotions(&self.connection.client).await.unwrap_or_default();
            }
            if let Some(namespace) = &self.selection.argocd {
                let mut argo = Lists::new(&self.connection.client, "argoproj.io").await;
                fetched.applications = match argo.fetch_list("applications", Some(namespace), None).await {
                    Ok(items) => Some(Ok(items.iter().map(kept::keep_application).collect())),
                    // Argo CD runs elsewhere.
                    Err((_, Missing::Kind)) => None,
                    Err((_, Missing::Unread(why))) => Some(Err(why)),
                };
            }
        });
        fetched
    }

    async fn fetch_objects(&self, kind: Kind, lists: &mut Lists<'_>, fetched: &mut Fetched) {
        let wanted = self.selection.kinds.as_ref().map(|kinds| kinds.contains(&kind));
        if wanted == Some(false) {
            return;
        }
        let required = wanted == Some(true) || matches!(kind, Kind::Order | Kind::Preparation);
        let selector = self.selection.selector.as_deref().filter(|_| kind == Kind::Order);
        let each: Vec<Option<&Namespace>> = match &self.selection.namespaces {
            Some(namespaces) if kind.is_namespaced() => namespaces.iter().map(Some).collect(),
            Some(_) | None => vec![None],
        };
        for namespace in each {
            let (items, missing) = match lists.fetch_list(kind.plural(), namespace, selector).await {
                Ok(items) => (items, None),
                Err((items, missing)) => (items, Some(missing)),
            };
            items.into_iter().for_each(|item| fetched.keep_object(kind, item));
            match missing {
                Some(Missing::Unread(why)) => fetched.add_lost(why),
                Some(Missing::Kind) if required => fetched.add_lost(format!(
                    "does not serve {}.{GROUP} in v1alpha1; are the CustomResourceDefinitions installed?",
                    kind.plural()
                )),
                Some(Missing::Kind) if kind == Kind::Serving => fetched.servings.undefined = true,
                Some(Missing::Kind) | None => {}
            }
        }
    }
}

/// The objects of a cluster as files, one object in each.
#[derive(Debug, Clone, Default)]
pub struct Fetched {
    name: String,
    /// JSON by path: text needs less memory than trees, and a fleet has tens of thousands of objects.
    files: BTreeMap<String, String>,
    lost: Vec<Unreadable>,
    /// `None`: not requested, or the cluster has no Argo CD.
    applications: Option<Result<Vec<Value>, String>>,
    servings: Servings,
    /// Whether its Orders have promotions; `None`: there are no Orders.
    orders: Option<Promotions>,
    /// Its definition of Orders does not have `spec.promotion`, so the API server drops it.
    drops_promotions: bool,
}

/// Whether any Order has `spec.promotion`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Promotions {
    Some,
    None,
}

impl Fetched {
    fn keep_object(&mut self, kind: Kind, item: Value) {
        if kind == Kind::Serving
            && let Some((order, told)) = Told::from_item(&item)
        {
            self.servings.told.insert(order, told);
        }
        if kind == Kind::Order && self.orders != Some(Promotions::Some) {
            let says = item.pointer("/spec/promotion").is_some();
            self.orders = Some(if says { Promotions::Some } else { Promotions::None });
        }
        let object = kept::keep_object(kind, item);
        let text = |key: &str| object.pointer(key).and_then(Value::as_str).map(format_segment);
        let name = text("/metadata/name").unwrap_or_else(|| "unnamed".to_owned());
        let mut path = match text("/metadata/namespace") {
            Some(namespace) => format!("{}/{namespace}/{name}", kind.plural()),
            None => format!("{}/{name}", kind.plural()),
        };
        // The loader reports two objects of one name; both must be kept here.
        while self.files.contains_key(&format!("{path}.yaml")) {
            path.push('~');
        }
        self.files.insert(format!("{path}.yaml"), object.to_string());
    }

    fn add_lost(&mut self, why: String) {
        self.lost.push(Unreadable { path: String::new(), why });
    }

    /// Its Applications, as a dump from `source`; `None` if there is no Argo CD, or they were not requested.
    #[must_use]
    pub fn build_observed(&self, source: &Arc<str>) -> Option<Observed> {
        let list = |items: &Vec<Value>| json!({"kind": "List", "items": items}).to_string().into_bytes();
        let bytes = self.applications.as_ref()?.as_ref().map(list).map_err(|why| format!("of it, {why}"));
        Some(Observed { source: source.clone(), file: self.name.as_str().into(), bytes })
    }

    /// The cluster's name in messages: `cluster <context>`.
    #[must_use]
    pub fn display_name(&self) -> &str {
        &self.name
    }

    /// Every object by its path, in order, as JSON.
    #[must_use]
    pub fn objects(&self) -> &BTreeMap<String, String> {
        &self.files
    }

    /// The Applications that were read, in order of their names.
    #[must_use]
    pub fn applications(&self) -> Option<&[Value]> {
        self.applications.as_ref()?.as_ref().ok().map(Vec::as_slice)
    }

    /// The current content of its Servings, for the writer of their status.
    #[must_use]
    pub fn servings(&self) -> &Servings {
        &self.servings
    }

    /// Why it is incomplete, if it is.
    pub fn failures(&self) -> impl Iterator<Item = &str> {
        let observation = self.applications.as_ref().and_then(|a| a.as_ref().err());
        self.lost.iter().map(|lost| &lost.why).chain(observation).map(String::as_str)
    }
}

/// A name as a part of a path. Valid names of Kubernetes objects stay unchanged.
fn format_segment(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let name: String = name.chars().map(|c| if plain(c) { c } else { '_' }).collect();
    match name.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None => name,
    }
}

impl Files for Fetched {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn list_entries(&self, prefix: &str) -> (Vec<FileEntry>, Vec<Unreadable>) {
        let entry = |path: &String| FileEntry { path: path.clone(), kind: EntryKind::File, id: None };
        let below = self.files.keys().filter(|path| path.starts_with(prefix));
        (below.map(entry).collect(), self.lost.clone())
    }

    fn read_file(&self, path: &str) -> Result<Option<Vec<u8>>, Unreadable> {
        // JSON is YAML.
        Ok(self.files.get(path).map(|object| object.clone().into_bytes()))
    }

    fn collect_remarks(&self) -> Vec<Failure> {
        let cause = "its definition of Orders is that of August 2026: the API server silently drops spec.promotion, \
                     so gates that are written there have no effect";
        let remark = Failure::new_input("drops-promotions", cause).with_object(self.name.clone()).with_hint(
            "expedite crds | kubectl apply --server-side -f - installs a definition that keeps it",
        );
        if self.drops_promotions { vec![remark] } else { Vec::new() }
    }
}
