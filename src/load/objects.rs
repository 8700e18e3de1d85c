//! Turns trees into objects: their kind, validity and origin, and which Orders a broken one holds back.

use crate::error::Failure;
use crate::files::Files;
use crate::load::check::{self, Report};
use crate::load::{strict, strip_line};
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
use kube_yaml::spelling::find_misspelt;
use kube_yaml::{Error, de};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Which objects may come from a source.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter<'s> {
    /// `None`: every kind.
    pub kinds: Option<&'s BTreeSet<Kind>>,
    /// `None`: every namespace.
    pub namespaces: Option<&'s BTreeSet<Namespace>>,
}

/// Position of a document.
pub struct DocumentPlace<'f> {
    /// As in [`Origin::source`].
    pub source: Arc<str>,
    /// As in [`Origin::file`].
    pub file: Arc<str>,
    /// The file's path below its source's root.
    pub path: &'f str,
    /// As in [`Origin::document`].
    pub document: u32,
    /// The source's files, for key files next to an object; `None` if it has none (a cluster).
    pub files: Option<&'f dyn Files>,
}

/// Which Orders a problem affects, as far as known before everything is read.
enum Bears {
    Holds(Holds),
    /// The Order of a Preparation that may be read later.
    OrderOf(Namespace, PreparationName),
}

/// Identity of an object: two with the same identity are an error.
type ObjectIdentity = (Kind, Option<Namespace>, String);

/// A World under construction.
#[derive(Default)]
pub struct WorldReading {
    pub(in crate::load) world: World,
    /// Number of objects of our kinds so far, including broken ones.
    pub(in crate::load) objects: usize,
    pub(in crate::load) sources: Vec<SourceState>,
    problems: Vec<(Failure, Bears)>,
    seen: BTreeMap<ObjectIdentity, Origin>,
    twice: BTreeSet<ObjectIdentity>,
    /// Orders that Preparations name, including broken Preparations.
    belongs: BTreeMap<(Namespace, PreparationName), BTreeSet<OrderRef>>,
}

impl WorldReading {
    /// Removes lines and columns from the problems from number `first` on, because they did not come from a file.
    pub fn strip_lines(&mut self, first: usize) {
        for (failure, _) in self.problems.iter_mut().skip(first) {
            *failure = strip_line(failure.clone());
        }
    }

    /// Number of problems so far.
    #[must_use]
    pub fn count_problems(&self) -> usize {
        self.problems.len()
    }

    /// Adds a problem.
    pub fn add_problem(&mut self, failure: Failure, holds: Holds) {
        self.problems.push((failure, Bears::Holds(holds)));
    }

    /// Adds the objects of a completely parsed document; `false`: a part of it could not be read.
    pub fn take_document(
        &mut self,
        document: &Document,
        place: &DocumentPlace<'_>,
        filter: Filter<'_>,
    ) -> bool {
        match &document.node {
            Some(node) => self.take_node(node, &document.errors, place, filter, None, None),
            None => true,
        }
    }

    /// Adds an object or a list of objects. `errors` are those of its keys; `fallback` is the apiVersion and kind that a
    /// typed list gives its items.
    fn take_node(
        &mut self,
        node: &Node,
        errors: &[Error],
        place: &DocumentPlace<'_>,
        filter: Filter<'_>,
        item: Option<u32>,
        fallback: Option<(&str, &str)>,
    ) -> bool {
        let said = |key: &str| node.get(key).and_then(Node::as_text);
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
            Some("") => return self.take_list(node, errors, place, filter, None),
            Some(inner) if parse_group(api_version) == GROUP => {
                return self.take_list(node, errors, place, filter, api_version.map(|v| (v, inner)));
            }
            Some(_) | None => {}
        }
        let bare_list = matches!(node.value, Value::Sequence(_))
            && node.items().iter().any(|i| parse_group(i.get("apiVersion").and_then(Node::as_text)) == GROUP);
        if bare_list {
            let failure = Failure::new_input("bare-list", "the objects are in a bare list")
                .with_place(origin.make_place())
                .with_hint("put them into items of a kind: List, or separate them with ---");
            self.add_problem(failure, Holds::Everything);
            return false;
        }
        match resolve_kind(api_version, kind) {
            Which::Ours(kind) => return self.take_object(kind, node, errors, place, filter, origin),
            // Foreign objects, above all Secrets, are not read.
            Which::Foreign => return true,
            Which::Unread(kind) => {
                let cause = format!("the kind {kind} of {GROUP} is not known and is ignored");
                self.add_problem(
                    Failure::new_input("unknown-kind", cause).with_place(origin.make_place()),
                    Holds::Nothing,
                );
            }
            Which::Wrong(kind, cause, hint) => {
                let mut failure = Failure::new_input("unknown-kind", cause).with_place(origin.make_place());
                failure.hints.extend(hint);
                let bears = kind.map_or(Bears::Holds(Holds::Everything), |k| judge_bearing(k, node));
                self.objects += 1;
                let known = kind != Some(Kind::Order) || has_known_order(&bears);
                self.problems.push((failure, bears));
                return known;
            }
        }
        true
    }

    fn take_list(
        &mut self,
        node: &Node,
        errors: &[Error],
        place: &DocumentPlace<'_>,
        filter: Filter<'_>,
        fallback: Option<(&str, &str)>,
    ) -> bool {
        let mut whole = true;
        let at = crate::error::At { file: place.file.to_string(), line: Some(node.at.line), column: None };
        let items = match node.get("items") {
            Some(Node { value: Value::Sequence(items), .. }) => items,
            Some(other) if !other.is_null() => {
                let failure = Failure::new_input(
                    "wrong-type",
                    format!("wanted a list, found {}", other.describe_kind()),
                );
                self.add_problem(failure.with_field("items").with_place(at), Holds::Everything);
                return false;
            }
            Some(_) | None => &Vec::new(),
        };
        if node.find_value(&["metadata", "continue"]).and_then(Node::as_text).is_some_and(|t| !t.is_empty()) {
            let failure =
                Failure::new_input("cut-list", "is one page of a longer list (metadata.continue is set)")
                    .with_place(at)
                    .with_hint("write the complete list (kubectl get does this without --chunk-size)");
            self.add_problem(failure, Holds::Everything);
            whole = false;
        }
        // An error at a key belongs to the last item that starts before it.
        for (index, object) in items.iter().enumerate() {
            let end = items.get(index + 1).map(|next| next.at);
            let own: Vec<Error> = errors
                .iter()
                .filter(|e| e.at >= object.at && end.is_none_or(|end| e.at < end))
                .cloned()
                .collect();
            let item = u32::try_from(index).ok();
            whole &= self.take_node(object, &own, place, filter, item, fallback);
        }
        for error in errors.iter().filter(|e| items.first().is_none_or(|first| e.at < first.at)) {
            self.add_problem(Failure::from_yaml(error, &place.file), Holds::Everything);
            whole = false;
        }
        whole
    }

    /// Adds one object of our kinds; `false`: it is an Order whose name cannot be read.
    fn take_object(
        &mut self,
        kind: Kind,
        node: &Node,
        errors: &[Error],
        place: &DocumentPlace<'_>,
        filter: Filter<'_>,
        origin: Origin,
    ) -> bool {
        self.objects += 1;
        let name = node.find_value(&["metadata", "name"]).and_then(Node::as_text).unwrap_or_default();
        let namespace =
            node.find_value(&["metadata", "namespace"]).and_then(Node::as_text).unwrap_or_default();
        let what = match (kind.is_namespaced(), namespace, name) {
            (_, _, "") => kind.to_string(),
            (true, namespace, name) if !namespace.is_empty() => format!("{kind} {namespace}/{name}"),
            (_, _, name) => format!("{kind} {name}"),
        };
        if let Some(refusal) = check_filter(kind, namespace, filter) {
            let failure =
                Failure::new_input("refused", refusal).with_object(what).with_place(origin.make_place());
            // A refused object holds no Order back; otherwise a source could stop Orders that it may not decide about.
            self.add_problem(failure, Holds::Orders(BTreeSet::new()));
            return true;
        }
        let identity: ObjectIdentity =
            (kind, Namespace::parse(namespace).ok().filter(|_| kind.is_namespaced()), name.to_owned());
        let bears = judge_bearing(kind, node);
        if kind == Kind::Preparation
            && let (Bears::Holds(Holds::Orders(orders)), Some(namespace), Ok(name)) =
                (&bears, &identity.1, PreparationName::parse(name))
        {
            self.belongs.entry((namespace.clone(), name)).or_default().extend(orders.iter().cloned());
        }
        if kind != Kind::Serving && !name.is_empty() {
            if let Some(first) = self.seen.get(&identity) {
                let cause = format!("is also at {}; an object may exist only once", first.make_place());
                let failure = Failure::new_input("seen-twice", cause)
                    .with_object(what.clone())
                    .with_place(origin.make_place());
                self.problems.push((failure, clone_bearing(&bears)));
                self.twice.insert(identity.clone());
            } else {
                self.seen.insert(identity.clone(), origin.clone());
            }
        }
        let mut report = Report::new(node);
        for error in errors {
            report.add_error(error.clone());
        }
        match kind {
            Kind::Order => {
                let read = decode_object::<Order>(node, kind, &mut report);
                if let (Some(order), Some(id)) = (read, make_order_ref(&identity)) {
                    check::check_order(&order, &id, &mut report);
                    keep_object(&report, &mut self.world.orders, id, order, &origin);
                }
            }
            Kind::Preparation => {
                let read = decode_object::<Preparation>(node, kind, &mut report);
                if let (Some(it), Some(namespace), Ok(name)) =
                    (read, identity.1.clone(), PreparationName::parse(name))
                {
                    check::check_preparation(&it, &mut report);
                    keep_object(&report, &mut self.world.preparations, (namespace, name), it, &origin);
                }
            }
            Kind::Approval => {
                let read = decode_object::<Approval>(node, kind, &mut report);
                if let (Some(it), Some(namespace)) = (read, identity.1.clone()) {
                    check::check_approval(&it, &mut report);
                    keep_object(
                        &report,
                        &mut self.world.approvals,
                        (namespace, name.to_owned()),
                        it,
                        &origin,
                    );
                }
            }
            Kind::Serving => {
                let read = decode_object::<Serving>(node, kind, &mut report);
                if let (Some(it), Some(id)) = (read, make_order_ref(&identity)) {
                    keep_object(&report, &mut self.world.stray_servings, id, it, &origin);
                }
            }
            Kind::Environment => {
                let read = decode_object::<Environment>(node, kind, &mut report);
                if let (Some(it), Ok(name)) = (read, EnvironmentName::parse(name)) {
                    check::check_environment(&it, &mut report);
                    keep_object(&report, &mut self.world.environments, name, it, &origin);
                }
            }
            Kind::Cluster => {
                let read = decode_object::<Cluster>(node, kind, &mut report);
                if let (Some(it), Ok(name)) = (read, ClusterName::parse(name)) {
                    check::check_cluster(&it, &mut report);
                    keep_object(&report, &mut self.world.clusters, name, it, &origin);
                }
            }
            Kind::Kitchen => {
                if let Some(mut it) = decode_object::<Kitchen>(node, kind, &mut report) {
                    check::check_kitchen(&mut it, place, &mut report);
                    if report.errors.is_empty() && self.world.kitchen.is_none() {
                        self.world.kitchen = Some(Loaded { object: Arc::new(it), origin: origin.clone() });
                    }
                }
            }
        }
        for error in report.errors {
            let to_failure = Failure::from_yaml(&error, &origin.file).with_object(what.clone());
            self.problems.push((to_failure, clone_bearing(&bears)));
        }
        for warning in report.warnings {
            self.add_problem(
                Failure::from_yaml(&warning, &origin.file).with_object(what.clone()),
                Holds::Nothing,
            );
        }
        kind != Kind::Order || has_known_order(&bears)
    }

    /// Removes objects that were seen twice, and decides which Orders each problem holds back.
    #[must_use]
    pub fn build_world(self) -> World {
        let Self { mut world, sources, problems, twice, belongs, .. } = self;
        for identity in &twice {
            remove_object(&mut world, identity);
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

/// Meaning of an apiVersion and a kind.
enum Which {
    Ours(Kind),
    Foreign,
    /// A kind of our group that no decision uses.
    Unread(String),
    /// Probably one of our kinds, but wrong: the kind if it is clear, the cause, a hint.
    Wrong(Option<Kind>, String, Option<String>),
}

/// Kinds of the group that only the renderer reads.
const RENDERERS: &[&str] = &["Menu", "Pantry", "Recipe"];

fn resolve_kind(api_version: Option<&str>, kind: Option<&str>) -> Which {
    let names: Vec<&str> = Kind::ALL.into_iter().map(Kind::as_str).collect();
    let known = kind.and_then(Kind::parse);
    let group = parse_group(api_version);
    if group != GROUP {
        return match (known, api_version) {
            (Some(kind), None) => Which::Wrong(
                Some(kind),
                "apiVersion is missing".into(),
                Some(format!("write apiVersion: {API_VERSION}")),
            ),
            (Some(kind), Some(text)) if find_misspelt(group, &[GROUP]).is_some() => Which::Wrong(
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
        None => match find_misspelt(word, &names) {
            Some(meant) => {
                let cause = format!("kind is {word:?}, which is not a known kind");
                Which::Wrong(None, cause, Some(format!("did you mean {meant}?")))
            }
            None => Which::Unread(word.to_owned()),
        },
    }
}

/// The group of an apiVersion.
fn parse_group(api_version: Option<&str>) -> &str {
    api_version.and_then(|text| text.split('/').next()).unwrap_or_default()
}

fn check_filter(kind: Kind, namespace: &str, filter: Filter<'_>) -> Option<String> {
    if let Some(kinds) = filter.kinds.filter(|kinds| !kinds.contains(&kind)) {
        let list: Vec<&str> = kinds.iter().map(|k| k.as_str()).collect();
        return Some(format!("is refused: this source may only contain {}", list.join(", ")));
    }
    let namespaces = filter.namespaces.filter(|_| kind.is_namespaced())?;
    if namespaces.iter().any(|n| n.as_str() == namespace) {
        return None;
    }
    let list: Vec<&str> = namespaces.iter().map(Namespace::as_str).collect();
    Some(format!("is refused: this source may only contain objects of the namespaces {}", list.join(", ")))
}

/// Whether it is known which Order a broken object affects.
fn has_known_order(bears: &Bears) -> bool {
    !matches!(bears, Bears::Holds(Holds::Orders(orders)) if orders.is_empty())
}

/// The Orders that a broken object of `kind` affects, from its readable part. An Order or Preparation that names an
/// impossible Order stops no other Order, but nothing may look deleted because it is missing.
fn judge_bearing(kind: Kind, node: &Node) -> Bears {
    let text = |keys: &[&str]| node.find_value(keys).and_then(Node::as_text);
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

fn clone_bearing(bears: &Bears) -> Bears {
    match bears {
        Bears::Holds(holds) => Bears::Holds(holds.clone()),
        Bears::OrderOf(namespace, name) => Bears::OrderOf(namespace.clone(), name.clone()),
    }
}

/// Reads a typed object and checks what is common to all kinds.
fn decode_object<T: DeserializeOwned>(node: &Node, kind: Kind, report: &mut Report<'_>) -> Option<T> {
    let mut unknown = Vec::new();
    let read = de::from_node::<T>(node, &mut unknown);
    for key in &unknown {
        let path = if key.path.is_empty() { key.key.clone() } else { format!("{}.{}", key.path, key.key) };
        let mut error = Error::new("unknown-field", key.at, "is not a known field");
        error.path = path;
        match strict::judge_key(kind, key) {
            strict::Unmet::Free => {}
            strict::Unmet::Warning => {
                report.warnings.push(error.with_hint("it is ignored"));
            }
            strict::Unmet::Error(meant) => {
                error.hint = match meant {
                    // A key of the spec that was written at the top level.
                    Some(meant) if key.path.is_empty() && !strict::TOP.contains(&meant) => {
                        Some(format!("did you mean spec.{meant}?"))
                    }
                    Some(meant) => Some(format!("did you mean {meant}?")),
                    None => Some(format!("known fields: {}", key.known.join(", "))),
                };
                report.add_error(error);
            }
        }
    }
    let read = read.map_err(|error| report.add_error(error)).ok();
    check::check_metadata(node, kind, report);
    read
}

fn make_order_ref(identity: &ObjectIdentity) -> Option<OrderRef> {
    let (_, namespace, name) = identity;
    Some(OrderRef { namespace: namespace.clone()?, name: OrderName::parse(name).ok()? })
}

/// Adds an object without errors to the World.
fn keep_object<K: Ord, T>(
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

fn remove_object(world: &mut World, identity: &ObjectIdentity) {
    let (kind, namespace, name) = identity;
    match kind {
        Kind::Order => {
            make_order_ref(identity).and_then(|id| world.orders.remove(&id));
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
