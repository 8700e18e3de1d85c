//! The GitOps repository at one commit: Servings, Applications, templates, and the list of records.
//!
//! A broken file keeps its text and its error, so that its object does not look deleted and foreign files are not
//! touched. Every run reads all files, so they are parsed on all cores.

use crate::error::{At, Failure, FailureKind};
use crate::files::{EntryKind, FileEntry, Files, Unreadable};
use crate::load::folder::is_manifest;
use crate::load::parallel::parse_on_all_cores;
use crate::load::{damage, format_file_name, observed};
use crate::model::application::Application;
use crate::model::id::{CommitId, Namespace, OrderName, OrderRef};
use crate::model::naming::{API_VERSION, LABEL_SERVING, LABEL_SERVING_NAMESPACE};
use crate::model::serving::Serving;
use crate::model::world::{ApplicationFile, GitOps, Holds, Problem, ServingFile};
use kube_yaml::node::Node;
use kube_yaml::spelling::find_nearest;
use kube_yaml::{Error, de, parse};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Path and text of each file that was read.
type Texts = Vec<(String, Vec<u8>)>;
/// Path of each file that could not be read, and why.
type RefusedPaths = Vec<(String, Failure)>;

/// Reads `servings/`, `applications/` and `templates/`, and lists `records/`, of the commit `head`.
#[must_use]
pub fn read_gitops(files: &dyn Files, head: Option<CommitId>) -> GitOps {
    let mut reading = GitOpsReading { files, read: GitOps { head, ..GitOps::default() } };
    reading.read_servings();
    reading.read_applications();
    reading.read.application_template = reading.read_template("templates/application.yaml");
    reading.read.serving_template = reading.read_template("templates/serving.yaml");
    reading.list_records();
    reading.read
}

/// Reads one Serving's file of any commit.
#[must_use]
pub fn parse_serving_at(root: &str, path: &str, bytes: &[u8]) -> Option<(OrderRef, ServingFile)> {
    parse_owner(path, "servings/").map(|order| (order, parse_serving_file(root, path, bytes)))
}

/// Reads one file below `applications/` of any commit.
#[must_use]
pub fn parse_application_at(root: &str, path: &str, bytes: &[u8]) -> ApplicationFile {
    parse_application_file(root, path, bytes)
}

struct GitOpsReading<'f> {
    files: &'f dyn Files,
    read: GitOps,
}

impl GitOpsReading<'_> {
    fn add_problem(&mut self, failure: Failure, holds: Holds) {
        self.read.problems.push(Problem { failure, holds });
    }

    fn add_unreadable(&mut self, unreadable: &Unreadable) {
        let file = format_file_name(&self.files.name(), &unreadable.path);
        let failure = Failure::new(FailureKind::Unread, "unreadable", unreadable.why.clone())
            .with_place(At::from_file(file));
        self.add_problem(failure, Holds::Everything);
    }

    /// Every file below `folder` with a path that Expedite could write, with its bytes; and the paths that are not files,
    /// each with its failure. Such a path only blocks the Order whose file belongs there.
    fn read_manifests(&mut self, folder: &str) -> (Texts, RefusedPaths) {
        let (entries, lost) = self.files.list_entries(folder);
        lost.iter().for_each(|l| self.add_unreadable(l));
        let mut found = Vec::with_capacity(entries.len());
        let mut no_files = Vec::new();
        for FileEntry { path, kind, .. } in entries {
            match kind {
                EntryKind::File if is_manifest(&path) => match self.files.read_file(&path) {
                    Ok(Some(bytes)) => found.push((path, bytes)),
                    Ok(None) => {}
                    Err(unreadable) => self.add_unreadable(&unreadable),
                },
                EntryKind::File => {}
                EntryKind::Link | EntryKind::Submodule => {
                    let failure = make_no_file(&self.files.name(), &path);
                    no_files.push((path, failure));
                }
            }
        }
        (found, no_files)
    }

    fn read_servings(&mut self) {
        let root = self.files.name();
        let (files, no_files) = self.read_manifests("servings");
        for (path, failure) in no_files {
            match parse_owner(&path, "servings/") {
                Some(order) => {
                    let serving = Err(failure.with_object(format!("Serving {order}")));
                    self.read.servings.insert(order, ServingFile { path, text: "".into(), serving });
                }
                None => self.add_problem(failure, Holds::Orders(BTreeSet::new())),
            }
        }
        for (path, file) in parse_on_all_cores(files, |path, bytes| parse_serving_file(&root, path, bytes)) {
            match parse_owner(&path, "servings/") {
                Some(order) => {
                    self.read.servings.insert(order, file);
                }
                None => {
                    // Ignored if it is not a Serving, and never read as one, because the path is a Serving's identity.
                    if let Ok(serving) = &file.serving {
                        let cause = "a Serving must be at servings/<namespace>/<order>.yaml";
                        let failure = Failure::new_input("stray-serving", cause)
                            .with_object(format!("Serving {}", serving.metadata.name))
                            .with_place(At::from_file(format_file_name(&root, &path)));
                        self.add_problem(failure, Holds::Orders(BTreeSet::new()));
                    }
                }
            }
        }
    }

    fn read_applications(&mut self) {
        let root = self.files.name();
        let (files, no_files) = self.read_manifests("applications");
        for (_, failure) in no_files {
            self.add_problem(failure, Holds::Orders(BTreeSet::new()));
        }
        self.read.applications =
            parse_on_all_cores(files, |path, bytes| parse_application_file(&root, path, bytes))
                .into_iter()
                .collect();
    }

    fn read_template(&mut self, path: &str) -> Option<String> {
        // An override that cannot be read must not count as absent.
        let (entries, _) = self.files.list_entries(path);
        if entries.iter().any(|entry| entry.path == path && entry.kind != EntryKind::File) {
            self.add_problem(make_no_file(&self.files.name(), path), Holds::Everything);
            return None;
        }
        let bytes = match self.files.read_file(path) {
            Ok(bytes) => bytes?,
            Err(unreadable) => {
                self.add_unreadable(&unreadable);
                return None;
            }
        };
        match damage::check_text(&bytes) {
            Ok(text) => Some(text.to_owned()),
            Err(error) => {
                self.add_problem(
                    Failure::from_yaml(&error, &format_file_name(&self.files.name(), path)),
                    Holds::Everything,
                );
                None
            }
        }
    }

    fn list_records(&mut self) {
        let (entries, lost) = self.files.list_entries("records");
        lost.iter().for_each(|l| self.add_unreadable(l));
        for entry in entries.iter().filter(|e| e.kind == EntryKind::File) {
            let Some((folder, name)) = entry.path.rsplit_once('/') else { continue };
            let order = folder.strip_prefix("records/").and_then(|text| OrderRef::parse(text).ok());
            let hash = name.strip_suffix(".json").filter(|n| n.len() == 64);
            if let (Some(order), Some(hash)) = (order, hash) {
                self.read.records.entry(order).or_default().insert(hash.to_owned());
            }
        }
    }
}

fn make_no_file(root: &str, path: &str) -> Failure {
    let cause = "is a link or a submodule, and only regular files are read and written here";
    Failure::new(FailureKind::Unread, "no-file", cause)
        .with_place(At::from_file(format_file_name(root, path)))
        .with_hint("replace it with a file, or remove it")
}

/// `<folder><namespace>/<order>.yaml`.
fn parse_owner(path: &str, folder: &str) -> Option<OrderRef> {
    let (namespace, name) = path.strip_prefix(folder)?.strip_suffix(".yaml")?.split_once('/')?;
    Some(OrderRef { namespace: Namespace::parse(namespace).ok()?, name: OrderName::parse(name).ok()? })
}

fn parse_serving_file(root: &str, path: &str, bytes: &[u8]) -> ServingFile {
    let file = format_file_name(root, path);
    let order = parse_owner(path, "servings/");
    let what = order.as_ref().map_or("a Serving".to_owned(), |o| format!("Serving {o}"));
    let serving = parse_serving(bytes, order.as_ref())
        .map(Arc::new)
        .map_err(|e| Failure::from_yaml(&e, &file).with_object(what));
    ServingFile { path: path.to_owned(), text: String::from_utf8_lossy(bytes).into(), serving }
}

/// Reads a Serving that should be this Order's.
fn parse_serving(bytes: &[u8], order: Option<&OrderRef>) -> Result<Serving, Error> {
    let node = parse::parse_one(damage::check_text(bytes)?)?;
    let text = |key: &str| node.get(key).and_then(Node::as_text).unwrap_or_default();
    if (text("apiVersion"), text("kind")) != (API_VERSION, "Serving") {
        let cause = format!("is not a Serving of {API_VERSION}");
        return Err(Error::new("wrong-kind", node.at, cause));
    }
    let mut unknown = Vec::new();
    let mut serving: Serving = de::from_node(&node, &mut unknown)?;
    if let Some(key) = unknown.iter().find(|u| u.path == "spec" || u.path.starts_with("spec.")) {
        let mut error = Error::new("unknown-field", key.at, "is not a known field");
        error.path = format!("{}.{}", key.path, key.key);
        error.hint = find_nearest(&key.key, key.known).map(|meant| format!("did you mean {meant}?"));
        return Err(error);
    }
    if let Some(order) = order {
        let namespace = serving.metadata.namespace.as_ref().map_or("", Namespace::as_str);
        let said = [
            ("metadata.namespace", namespace, order.namespace.as_str()),
            ("metadata.name", serving.metadata.name.as_str(), order.name.as_str()),
            ("spec.orderName", serving.spec.order_name.as_str(), order.name.as_str()),
        ];
        if let Some((field, found, wanted)) = said.into_iter().find(|(_, found, wanted)| found != wanted) {
            let at = kube_yaml::node::locate_field(&node, field).unwrap_or(node.at);
            let mut error =
                Error::new("wrong-place", at, format!("is {found:?}, and the file's path says {wanted:?}"));
            error.path = field.to_owned();
            return Err(error);
        }
    }
    serving.raw_status = node.get("status").filter(|s| !s.is_null()).map(Node::to_json);
    Ok(serving)
}

fn parse_application_file(root: &str, path: &str, bytes: &[u8]) -> ApplicationFile {
    let file = format_file_name(root, path);
    let text: Arc<str> = String::from_utf8_lossy(bytes).into();
    let read = damage::check_text(bytes).and_then(parse::parse_one);
    let owner = match &read {
        Ok(node) => find_owner_by_labels(node),
        Err(_) => find_owner_by_lines(&text),
    };
    let application = read
        .and_then(|node| parse_application(&node))
        .map(Arc::new)
        .map_err(|e| Failure::from_yaml(&e, &file).with_object("an Application"));
    ApplicationFile { text, owner, application }
}

fn parse_application(node: &Node) -> Result<Application, Error> {
    let text = |key: &str| node.get(key).and_then(Node::as_text).unwrap_or_default();
    if !text("apiVersion").starts_with("argoproj.io/") || text("kind") != "Application" {
        return Err(Error::new("wrong-kind", node.at, "is not an Application of argoproj.io"));
    }
    observed::parse_application(node).map(|(_, application)| application)
}

fn find_owner_by_labels(node: &Node) -> Option<OrderRef> {
    let labels = node.find_value(&["metadata", "labels"])?;
    let text = |key: &str| labels.get(key).and_then(Node::as_text);
    parse_reference(text(LABEL_SERVING_NAMESPACE)?, text(LABEL_SERVING)?)
}

/// The owner of a file that does not parse, by lines that look like our labels: a damaged file still belongs to its
/// Order.
fn find_owner_by_lines(text: &str) -> Option<OrderRef> {
    let value = |label: &str| {
        text.lines().find_map(|line| {
            let rest = line.trim_start().trim_start_matches('"').strip_prefix(label)?;
            let value = rest.trim_start_matches('"').strip_prefix(':')?;
            Some(value.trim().trim_matches('"'))
        })
    };
    parse_reference(value(LABEL_SERVING_NAMESPACE)?, value(LABEL_SERVING)?)
}

fn parse_reference(namespace: &str, name: &str) -> Option<OrderRef> {
    Some(OrderRef { namespace: Namespace::parse(namespace).ok()?, name: OrderName::parse(name).ok()? })
}
