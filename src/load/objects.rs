//! Trees into objects: which they are, whether they are right, where they came from, and what a wrong one holds.

use crate::error::Failure;
use crate::files::Files;
use crate::load::check::{self, Report};
use crate::load::{strict, without_line};
use crate::model::approval::Approval;
use crate::model::cluster::Cluster;
use crate::model::environment::Environment;
use crate::model::id::{ClusterName, EnvironmentName, Namespace, OrderName, OrderRef, PreparationName};
use crate::model::kind::Kind;
use crate::model::kitchen::Kitchen;
use crate::model::naming::{API_VERSION, GROUP};
use crate::model::order::Order;
use crate::model::preparation::Preparation;
use crate::model::serving::Serving;
use crate::model::world::{Holds, Loaded, Origin, Problem, SourceState, World, is_cluster};
use kube_yaml::node::{Node, Value};
use kube_yaml::parse::Document;
use kube_yaml::spelling::misspelt;
use kube_yaml::{Error, de};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What may come from a source.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter<'s> {
    /// `None`: every kind.
    pub kinds: Option<&'s BTreeSet<Kind>>,
    /// `None`: every namespace.
    pub namespaces: Option<&'s BTreeSet<Namespace>>,
}

/// Where a document stands.
pub struct Place<'f> {
    /// As in [`Origin::source`].
    pub source: Arc<str>,
    /// As in [`Origin::file`].
    pub file: Arc<str>,
    /// The file's path below its source's root.
    pub path: &'f str,
    /// As in [`Origin::document`].
    pub document: u32,
    /// The source's files, for key files beside an object; `None` where there are none (a cluster).
    pub files: Option<&'f dyn Files>,
}

/// What a problem bears on, as far as it is known before everything is read.
enum Bears {
    Holds(Holds),
    /// On the Order of a Preparation that may come later.
    OrderOf(Namespace, PreparationName),
}

/// Which object: two with one identity are an error.
type Identity = (Kind, Option<Namespace>, String);

/// A World in the making.
#[derive(Default)]
pub struct Reading {
    pub(in crate::load) world: World,
    /// Objects of our kinds met so far, broken ones counted.
    pub(in crate::load) objects: usize,
    pub(in crate::load) sources: Vec<SourceState>,
    problems: Vec<(Failure, Bears)>,
    seen: BTreeMap<Identity, Origin>,
    twice: BTreeSet<Identity>,
    /// Orders that Preparations say they belong to, broken ones included.
    belongs: BTreeMap<(Namespace, PreparationName), BTreeSet<OrderRef>>,
}

impl Reading {
    /// Takes lines and columns out of the problems from number `first` on: they came from no file.
    pub fn without_lines(&mut self, first: usize) {
        for (failure, _) in self.problems.iter_mut().skip(first) {
            *failure = without_line(failure.clone());
        }
    }

    /// How many problems there are so far.
    #[must_use]
    pub fn problems(&self) -> usize {
        self.problems.len()
    }

    /// Adds a problem.
    pub fn problem(&mut self, failure: Failure, holds: Holds) {
        self.problems.push((failure, Bears::Holds(holds)));
    }

    /// Takes one document that could be read to its end; `false`: not all of it could be.
    pub fn document(&mut self, document: &Document, place: &Place<'_>, filter: Filter<'_>) -> bool {
        match &document.node {
            Some(node) => self.node(node, &document.errors, place, filter, None, None),
            None => true,
        }
    }

    /// Takes an object or a list of them. `errors` are those of its keys; `fallback` is what a typed list
    /// says its items are.
    fn node(
        &mut self,
        node: &Node,
        errors: &[Error],
        place: &Place<'_>,
        filter: Filter<'_>,
        item: Option<u32>,
        fallback: Option<(&str, &str)>,
    ) -> bool {
        let said = |key: &str| node.get(key).and_then(Node::text);
        let api_version = said("apiVersion").or(fallback.map(|f| f.0));
        let kind = said("kind").or(fallback.map(|f| f.1));
        let origin = Origin {
            source: place.source.clone(),
            file: place.file.clone(),
            document: place.document,
            item,
            line: if is_cluster(&place.source) { 0 } else { node.at.line },
        };
        match kind.and_then(|k| k.strip_suffix("List")) {
            Some("") => return self.list(node, errors, place, filter, None),
            Some(inner) if group(api_version) == GROUP => {
                return self.list(node, errors, place, filter, api_version.map(|v| (v, inner)));
            }
            Some(_) | None => {}
        }
        let bare_list = matches!(node.value, Value::Sequence(_))
            && node.items().iter().any(|i| group(i.get("apiVersion").and_then(Node::text)) == GROUP);
        if bare_list {
            let failure = Failure::input("bare-list", "objects stand in a bare list")
                .at(origin.at())
                .hint("put them into items of a kind: List, or separate them by ---");
            self.problem(failure, Holds::Everything);
            return false;
        }
        match which(api_version, kind) {
            Which::Ours(kind) => return self.ours(kind, node, errors, place, filter, origin),
            // What is not ours is nobody's business here; a Secret least of all.
            Which::Foreign => return true,
            Which::Unread(kind) => {
                let cause = format!("the kind {kind} of {GROUP} is not known and not read");
                self.problem(Failure::input("unknown-kind", cause).at(origin.at()), Holds::Nothing);
            }
            Which::Wrong(kind, cause, hint) => {
                let mut failure = Failure::input("unknown-kind", cause).at(origin.at());
                failure.hints.extend(hint);
                let bears = kind.map_or(Bears::Holds(Holds::Everything), |k| bears(k, node));
                self.objects += 1;
                let known = kind != Some(Kind::Order) || names_an_order(&bears);
                self.problems.push((failure, bears));
                return known;
            }
        }
        true
    }

    fn list(
        &mut self,
        node: &Node,
        errors: &[Error],
        place: &Place<'_>,
        filter: Filter<'_>,
        fallback: Option<(&str, &str)>,
    ) -> bool {
        let mut whole = true;
        let at = crate::error::At { file: place.file.to_string(), line: Some(node.at.line), column: None };
        let items = match node.get("items") {
            Some(Node { value: Value::Sequence(items), .. }) => items,
            Some(other) if !other.is_null() => {
                let failure =
                    Failure::input("wrong-type", format!("wanted a list, found {}", other.describe()));
                self.problem(failure.field("items").at(at), Holds::Everything);
                return false;
            }
            Some(_) | None => &Vec::new(),
        };
        if node.find(&["metadata", "continue"]).and_then(Node::text).is_some_and(|t| !t.is_empty()) {
            let failure =
                Failure::input("cut-list", "is one page of a longer list (metadata.continue is set)")
                    .at(at)
                    .hint("write the whole list (kubectl get does, without --chunk-size)");
            self.problem(failure, Holds::Everything);
            whole = false;
        }
        // An error at a key belongs to the last item that begins before it.
        for (index, object) in items.iter().enumerate() {
            let end = items.get(index + 1).map(|next| next.at);
            let own: Vec<Error> = errors
                .iter()
                .filter(|e| e.at >= object.at && end.is_none_or(|end| e.at < end))
                .cloned()
                .collect();
            let item = u32::try_from(index).ok();
            whole &= self.node(object, &own, place, filter, item, fallback);
        }
        for error in errors.iter().filter(|e| items.first().is_none_or(|first| e.at < first.at)) {
            self.problem(Failure::from_yaml(error, &place.file), Holds::Everything);
            whole = false;
        }
        whole
    }

    /// Takes one object of our kinds; `false`: it is an Order, and which one cannot be read.
    fn ours(
        &mut self,
        kind: Kind,
        node: &Node,
        errors: &[Error],
        place: &Place<'_>,
        filter: Filter<'_>,
        origin: Origin,
    ) -> bool {
        self.objects += 1;
        let name = node.find(&["metadata", "name"]).and_then(Node::text).unwrap_or_default();
        let namespace = node.find(&["metadata", "namespace"]).and_then(Node::text).unwrap_or_default();
        let what = match (kind.is_namespaced(), namespace, name) {
            (_, _, "") => kind.to_string(),
            (true, namespace, name) if !namespace.is_empty() => format!("{kind} {namespace}/{name}"),
            (_, _, name) => format!("{kind} {name}"),
        };
        if let Some(refusal) = refusal(kind, namespace, filter) {
            let failure = Failure::input("refused", refusal).of(what).at(origin.at());
            // What may not come from here holds nobody either: else a source could stop what it may not decide.
            self.problem(failure, Holds::Orders(BTreeSet::new()));
            return true;
        }
        let identity: Identity =
            (kind, Namespace::parse(namespace).ok().filter(|_| kind.is_namespaced()), name.to_owned());
        let bears = bears(kind, node);
        if kind == Kind::Preparation
            && let (Bears::Holds(Holds::Orders(orders)), Some(namespace), Ok(name)) =
                (&bears, &identity.1, PreparationName::parse(name))
        {
            self.belongs.entry((namespace.clone(), name)).or_default().extend(orders.iter().cloned());
        }
        if kind != Kind::Serving && !name.is_empty() {
            if let Some(first) = self.seen.get(&identity) {
                let cause = format!("is also at {}; one object has one place", first.at());
                let failure = Failure::input("seen-twice", cause).of(what.clone()).at(origin.at());
                self.problems.push((failure, again(&bears)));
                self.twice.insert(identity.clone());
            } else {
                self.seen.insert(identity.clone(), origin.clone());
            }
        }
        let mut report = Report::new(node);
        for error in errors {
            report.error(error.clone());
        }
        match kind {
            Kind::Order => {
                let read = typed::<Order>(node, kind, &mut report);
                if let (Some(order), Some(id)) = (read, order_ref(&identity)) {
                    check::order(&order, &id, &mut report);
                    keep(&report, &mut self.world.orders, id, order, &origin);
                }
            }
            Kind::Preparation => {
                let read = typed::<Preparation>(node, kind, &mut report);
                if let (Some(it), Some(namespace), Ok(name)) =
                    (read, identity.1.clone(), PreparationName::parse(name))
                {
                    check::preparation(&it, &mut report);
                    keep(&report, &mut self.world.preparations, (namespace, name), it, &origin);
                }
            }
            Kind::Approval => {
                let read = typed::<Approval>(node, kind, &mut report);
                if let (Some(it), Some(namespace)) = (read, identity.1.clone()) {
                    check::approval(&it, &mut report);
                    keep(&report, &mut self.world.approvals, (namespace, name.to_owned()), it, &origin);
                }
            }
            Kind::Serving => {
                let read = typed::<Serving>(node, kind, &mut report);
                if let (Some(it), Some(id)) = (read, order_ref(&identity)) {
                    keep(&report, &mut self.world.stray_servings, id, it, &origin);
                }
            }
            Kind::Environment => {
                let read = typed::<Environment>(node, kind, &mut report);
                if let (Some(it), Ok(name)) = (read, EnvironmentName::parse(name)) {
                    check::environment(&it, &mut report);
                    keep(&report, &mut self.world.environments, name, it, &origin);
                }
            }
            Kind::Cluster => {
                let read = typed::<Cluster>(node, kind, &mut report);
                if let (Some(it), Ok(name)) = (read, ClusterName::parse(name)) {
                    check::cluster(&it, &mut report);
                    keep(&report, &mut self.world.clusters, name, it, &origin);
                }
            }
            Kind::Kitchen => {
                if let Some(mut it) = typed::<Kitchen>(node, kind, &mut report) {
                    check::kitchen(&mut it, place, &mut report);
                    if report.errors.is_empty() && self.world.kitchen.is_none() {
                        self.world.kitchen = Some(Loaded { object: Arc::new(it), origin: origin.clone() });
                    }
                }
            }
        }
        for error in report.errors {
            let failure = Failure::from_yaml(&error, &origin.file).of(what.clone());
            self.problems.push((failure, again(&bears)));
        }
        for warning in report.warnings {
            self.problem(Failure::from_yaml(&warning, &origin.file).of(what.clone()), Holds::Nothing);
        }
        kind != Kind::Order || names_an_order(&bears)
    }

    /// Takes out what was seen twice, and settles what each problem holds.
    #[must_use]
    pub fn finish(self) -> World {
        let Self { mut world, sources, problems, twice, belongs, .. } = self;
        for identity in &twice {
            remove(&mut world, identity);
        }
        world.sources = sources;
        world.problems = problems
            .into_iter()
            .map(|(failure, bears)| {
                let holds = match bears {
                    Bears::Holds(holds) => holds,
                    Bears::OrderOf(namespace, name) => match belongs.get(&(namespace, name)) {
                        Some(orders) => Holds::Orders(orders.clone()),
                        None => Holds::Everything,
                    },
                };
                Problem { failure, holds }
            })
            .collect();
        world
    }
}

/// What an apiVersion and a kind come to.
enum Which {
    Ours(Kind),
    Foreign,
    /// Of our group, and nothing decisions use.
    Unread(String),
    /// Meant as ours and wrong: the kind where that is clear, the cause, a hint.
    Wrong(Option<Kind>, String, Option<String>),
}

/// Kinds of the group that only the renderer reads.
const RENDERERS: &[&str] = &["Menu", "Pantry", "Recipe"];

fn which(api_version: Option<&str>, kind: Option<&str>) -> Which {
    let names: Vec<&str> = Kind::ALL.into_iter().map(Kind::as_str).collect();
    let known = kind.and_then(Kind::parse);
    let group = group(api_version);
    if group != GROUP {
        return match (known, api_version) {
            (Some(kind), None) => Which::Wrong(
                Some(kind),
                "apiVersion is missing".into(),
                Some(format!("write apiVersion: {API_VERSION}")),
            ),
            (Some(kind), Some(text)) if misspelt(group, &[GROUP]).is_some() => Which::Wrong(
                Some(kind),
                format!("apiVersion is {text}"),
                Some(format!("did you mean {API_VERSION}?")),
            ),
            _ => Which::Foreign,
        };
    }
    let Some(word) = kind else {
        return Which::Wrong(None, "kind is missing".into(), Some(format!("one of {}", names.join(", "))));
    };
    match known {
        Some(kind) if api_version == Some(API_VERSION) => Which::Ours(kind),
        Some(kind) => {
            let found = api_version.unwrap_or_default();
            let cause = format!("apiVersion is {found}; this build reads {API_VERSION}");
            Which::Wrong(Some(kind), cause, None)
        }
        None if RENDERERS.contains(&word) => Which::Foreign,
        None => match misspelt(word, &names) {
            Some(meant) => {
                let cause = format!("kind is {word:?}, which is none of ours");
                Which::Wrong(None, cause, Some(format!("did you mean {meant}?")))
            }
            None => Which::Unread(word.to_owned()),
        },
    }
}

/// The group of an apiVersion.
fn group(api_version: Option<&str>) -> &str {
    api_version.and_then(|text| text.split('/').next()).unwrap_or_default()
}

fn refusal(kind: Kind, namespace: &str, filter: Filter<'_>) -> Option<String> {
    if let Some(kinds) = filter.kinds.filter(|kinds| !kinds.contains(&kind)) {
        let list: Vec<&str> = kinds.iter().map(|k| k.as_str()).collect();
        return Some(format!("is refused: this source is for {} only", list.join(", ")));
    }
    let namespaces = filter.namespaces.filter(|_| kind.is_namespaced())?;
    if namespaces.iter().any(|n| n.as_str() == namespace) {
        return None;
    }
    let list: Vec<&str> = namespaces.iter().map(Namespace::as_str).collect();
    Some(format!("is refused: this source is for the namespaces {} only", list.join(", ")))
}

/// Whether it is known which Order a wrong object bears on.
fn names_an_order(bears: &Bears) -> bool {
    !matches!(bears, Bears::Holds(Holds::Orders(orders)) if orders.is_empty())
}

/// What a wrong object of `kind` bears on, by what of it can be read. An Order, or a Preparation of one, that names no
/// Order that could exist is nobody's: it stops no other, though nothing may look deleted for want of it.
fn bears(kind: Kind, node: &Node) -> Bears {
    let text = |keys: &[&str]| node.find(keys).and_then(Node::text);
    let namespace = text(&["metadata", "namespace"]).and_then(|t| Namespace::parse(t).ok());
    let order = |keys: &[&str]| text(keys).and_then(|t| OrderName::parse(t).ok());
    let those = |name: Option<OrderName>| match (namespace.clone(), name) {
        (Some(namespace), Some(name)) => Holds::Orders(BTreeSet::from([OrderRef { namespace, name }])),
        (None, _) | (_, None) => Holds::Orders(BTreeSet::new()),
    };
    match kind {
        Kind::Order => Bears::Holds(those(order(&["metadata", "name"]))),
        Kind::Preparation => Bears::Holds(those(order(&["spec", "orderName"]))),
        Kind::Approval => {
            let preparation = text(&["spec", "preparationRef", "name"]);
            match (namespace, preparation.and_then(|t| PreparationName::parse(t).ok())) {
                (Some(namespace), Some(name)) => Bears::OrderOf(namespace, name),
                _ => Bears::Holds(Holds::Everything),
            }
        }
        Kind::Serving => Bears::Holds(Holds::Nothing),
        Kind::Environment | Kind::Cluster | Kind::Kitchen => Bears::Holds(Holds::Everything),
    }
}

fn again(bears: &Bears) -> Bears {
    match bears {
        Bears::Holds(holds) => Bears::Holds(holds.clone()),
        Bears::OrderOf(namespace, name) => Bears::OrderOf(namespace.clone(), name.clone()),
    }
}

/// Reads a typed object and judges what is common to all kinds.
fn typed<T: DeserializeOwned>(node: &Node, kind: Kind, report: &mut Report<'_>) -> Option<T> {
    let mut unknown = Vec::new();
    let read = de::from_node::<T>(node, &mut unknown);
    for key in &unknown {
        let path = if key.path.is_empty() { key.key.clone() } else { format!("{}.{}", key.path, key.key) };
        let mut error = Error::new("unknown-field", key.at, "is no field that is known here");
        error.path = path;
        match strict::judge(kind, key) {
            strict::Unmet::Free => {}
            strict::Unmet::Warning => {
                report.warnings.push(error.hint("it is not looked at"));
            }
            strict::Unmet::Error(meant) => {
                error.hint = match meant {
                    // A key of the spec that slipped to the top.
                    Some(meant) if key.path.is_empty() && !strict::TOP.contains(&meant) => {
                        Some(format!("did you mean spec.{meant}?"))
                    }
                    Some(meant) => Some(format!("did you mean {meant}?")),
                    None => Some(format!("known here: {}", key.known.join(", "))),
                };
                report.error(error);
            }
        }
    }
    let read = read.map_err(|error| report.error(error)).ok();
    check::metadata(node, kind, report);
    read
}

fn order_ref(identity: &Identity) -> Option<OrderRef> {
    let (_, namespace, name) = identity;
    Some(OrderRef { namespace: namespace.clone()?, name: OrderName::parse(name).ok()? })
}

/// Keeps an object that has no error.
fn keep<K: Ord, T>(
    report: &Report<'_>,
    map: &mut BTreeMap<K, Loaded<T>>,
    key: K,
    object: T,
    origin: &Origin,
) {
    if report.errors.is_empty() {
        map.insert(key, Loaded { object: Arc::new(object), origin: origin.clone() });
    }
}

fn remove(world: &mut World, identity: &Identity) {
    let (kind, namespace, name) = identity;
    match kind {
        Kind::Order => {
            order_ref(identity).and_then(|id| world.orders.remove(&id));
        }
        Kind::Preparation => {
            let name = PreparationName::parse(name).ok();
            namespace.clone().zip(name).and_then(|key| world.preparations.remove(&key));
        }
        Kind::Approval => {
            namespace.clone().and_then(|n| world.approvals.remove(&(n, name.clone())));
        }
        Kind::Serving => {}
        Kind::Environment => {
            EnvironmentName::parse(name).ok().and_then(|n| world.environments.remove(&n));
        }
        Kind::Cluster => {
            ClusterName::parse(name).ok().and_then(|n| world.clusters.remove(&n));
        }
        Kind::Kitchen => world.kitchen = None,
    }
}
