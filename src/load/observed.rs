//! Argo CD's Applications, from a dump (`kubectl get applications.argoproj.io -n argocd -o yaml`).
//!
//! A dump that cannot be read completely counts as no observation: an unseen Application must not look as if it did
//! not exist, because then it could be overwritten without its owner's permission.

use crate::error::{At, Failure, FailureKind};
use crate::load::objects::WorldReading;
use crate::load::{damage, strip_line};
use crate::model::application::Application;
use crate::model::world::{Holds, Loaded, Origin, is_cluster};
use kube_yaml::node::{Node, Value};
use kube_yaml::{Error, de, parse};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A dump of Applications.
#[derive(Debug, Clone)]
pub struct Observed {
    /// As in [`Origin::source`]: `observed` for a dump.
    pub source: Arc<str>,
    /// The file in the user's terms.
    pub file: Arc<str>,
    /// Its bytes, or why they could not be read.
    pub bytes: Result<Vec<u8>, String>,
}

type Applications = BTreeMap<(String, String), Loaded<Application>>;

/// Adds the Applications of every dump. If one dump cannot be read completely, nothing counts as observed, because
/// a part would look like the whole.
pub fn add_observations<'o>(reading: &mut WorldReading, all: impl IntoIterator<Item = &'o Observed>) {
    let mut found: Option<Applications> = None;
    let mut whole = true;
    for observed in all {
        let mut failures = match parse_applications(observed) {
            Ok(more) => join_applications(found.get_or_insert_default(), more),
            Err(failures) => failures,
        };
        whole &= failures.is_empty();
        if is_cluster(&observed.source) {
            failures = failures.into_iter().map(strip_line).collect();
        }
        failures.into_iter().for_each(|failure| reading.add_problem(failure, Holds::Everything));
    }
    reading.world.applications = found.filter(|_| whole);
}

/// Reports two Argo CDs with an Application of the same name: it is unclear which one is meant.
fn join_applications(found: &mut Applications, more: Applications) -> Vec<Failure> {
    let mut failures = Vec::new();
    for (key, application) in more {
        match found.get(&key) {
            Some(first) => {
                let cause = format!(
                    "is also at {}; an Application may be in one dump only",
                    first.origin.make_place()
                );
                let failure = Failure::new_input("seen-twice", cause)
                    .with_object(format!("Application {}/{}", key.0, key.1));
                failures.push(failure.with_place(application.origin.make_place()));
            }
            None => {
                found.insert(key, application);
            }
        }
    }
    failures
}

fn parse_applications(observed: &Observed) -> Result<Applications, Vec<Failure>> {
    let whole = |code, cause: &str| {
        Failure::new(FailureKind::Unread, code, cause)
            .with_object("the observation")
            .with_place(At::from_file(&*observed.file))
    };
    let bytes = observed.bytes.as_ref().map_err(|why| vec![whole("unreadable", why)])?;
    let text = damage::check_text(bytes).map_err(|e| vec![Failure::from_yaml(&e, &observed.file)])?;
    let documents = parse::parse_documents(text);
    let mut failures: Vec<Failure> = documents
        .iter()
        .flat_map(|d| d.errors.first())
        .map(|e| Failure::from_yaml(e, &observed.file))
        .collect();
    let mut found = Applications::new();
    for document in &documents {
        let Some(node) = &document.node else { continue };
        let (items, is_list) = match node.get("items") {
            Some(Node { value: Value::Sequence(items), .. }) => (items.as_slice(), true),
            Some(_) | None => (std::slice::from_ref(node), false),
        };
        if node.find_value(&["metadata", "continue"]).and_then(Node::as_text).is_some_and(|t| !t.is_empty()) {
            failures.push(whole("cut-list", "it is one page of a longer list (metadata.continue is set)"));
        }
        // kubectl leaves kind out of the items of a typed list.
        let typed = node.get("kind").and_then(Node::as_text) == Some("ApplicationList");
        for (index, item) in items.iter().enumerate() {
            if !typed && item.get("kind").and_then(Node::as_text) != Some("Application") {
                continue;
            }
            let origin = Origin {
                source: observed.source.clone(),
                file: observed.file.clone(),
                document: document.index,
                item: is_list.then(|| u32::try_from(index).unwrap_or(u32::MAX)),
                line: if is_cluster(&observed.source) { 0 } else { item.at.line },
            };
            match parse_application(item) {
                Ok((key, object)) => {
                    if found
                        .insert(key.clone(), Loaded { object: Arc::new(object), origin: origin.clone() })
                        .is_some()
                    {
                        let cause = format!("Application {}/{} occurs twice", key.0, key.1);
                        failures
                            .push(Failure::new_input("seen-twice", cause).with_place(origin.make_place()));
                    }
                }
                Err(error) => failures
                    .push(Failure::from_yaml(&error, &observed.file).with_object("an observed Application")),
            }
        }
    }
    if documents.is_empty() {
        failures.push(whole("empty", "it is empty: no list of Applications was written"));
    }
    if failures.is_empty() { Ok(found) } else { Err(failures) }
}

/// Reads one Application; fields that are not used are not checked.
///
/// # Errors
/// A used field has a wrong type, or the name is missing.
pub fn parse_application(node: &Node) -> Result<((String, String), Application), Error> {
    let object: Application = de::from_node(node, &mut Vec::new())?;
    if object.metadata.name.is_empty() {
        let mut error = Error::new("missing-field", node.at, "is required and missing");
        error.path = "metadata.name".into();
        return Err(error);
    }
    let namespace = object.metadata.namespace.as_ref().map(ToString::to_string).unwrap_or_default();
    Ok(((namespace, object.metadata.name.clone()), object))
}
