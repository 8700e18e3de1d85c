//! Writes the objects of clusters to a folder and reads them back, to repeat a decision without the clusters.
//!
//! Each object is its own file at a path made from its name, so that two snapshots differ only where the clusters
//! differed. `snapshot.yaml` maps folders to sources; objects that are read back mean exactly the same as objects
//! from the cluster.

use super::Fetched;
use crate::error::{At, Failure};
use crate::files::{EntryKind, Files};
use crate::load::{damage, format_file_name};
use crate::model::world::CLUSTER;
use kube_yaml::{de, emit, parse};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The file that makes a folder a snapshot.
pub const FILE: &str = "snapshot.yaml";

/// One source of a snapshot.
#[derive(Debug, Clone)]
pub struct SnapshotPart {
    /// Its name in Servings: `cluster:<context>`.
    pub source: Arc<str>,
    /// Its objects.
    pub fetched: Fetched,
}

/// Content of `snapshot.yaml`.
#[derive(Deserialize)]
struct SnapshotHeader {
    sources: Vec<WrittenSource>,
}

#[derive(Deserialize)]
struct WrittenSource {
    source: String,
    name: String,
    folder: String,
    applications: bool,
    #[serde(default, rename = "dropsPromotions")]
    drops_promotions: bool,
}

/// The files of a snapshot, by their paths below its folder.
#[must_use]
pub fn build_files(parts: &[SnapshotPart]) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut folders = BTreeSet::new();
    let mut sources = Vec::new();
    for SnapshotPart { source, fetched } in parts {
        let mut folder = super::format_segment(fetched.name.trim_start_matches("cluster "));
        while !folders.insert(folder.clone()) {
            folder.push('~');
        }
        let mut said = json!({
            "source": **source,
            "name": fetched.name,
            "folder": folder,
            "applications": fetched.applications().is_some(),
        });
        if fetched.drops_promotions {
            said["dropsPromotions"] = true.into();
        }
        sources.push(said);
        for (path, object) in &fetched.files {
            let object = serde_json::from_str(object).expect("it was written as JSON when it was fetched");
            files.insert(format!("{folder}/{path}"), emit::format_document(&object));
        }
        for application in fetched.applications().unwrap_or_default() {
            let part = |pointer: &str| {
                application
                    .pointer(pointer)
                    .and_then(Value::as_str)
                    .map_or("unnamed".into(), super::format_segment)
            };
            let path = format!("{}/{}", part("/metadata/namespace"), part("/metadata/name"));
            files.insert(format!("{folder}/applications/{path}.yaml"), emit::format_document(application));
        }
    }
    files.insert(FILE.to_owned(), emit::format_document(&json!({"sources": sources})));
    files
}

/// Reads a snapshot back.
///
/// # Errors
/// A file of it is missing or wrong: an incomplete snapshot is not used.
pub fn read_parts(folder: &dyn Files) -> Result<Vec<SnapshotPart>, Failure> {
    let unread = |path: &str, why: String| {
        Failure::new_input("snapshot", why)
            .with_object("the snapshot")
            .with_place(At::from_file(format_file_name(&folder.name(), path)))
    };
    let one = |path: &str| -> Result<kube_yaml::node::Node, Failure> {
        let bytes = folder.read_file(path).map_err(|lost| unread(&lost.path, lost.why))?;
        let bytes = bytes.ok_or_else(|| unread(path, "does not exist".into()))?;
        let text = damage::check_text(&bytes).and_then(parse::parse_one);
        text.map_err(|error| {
            Failure::from_yaml(&error, &format_file_name(&folder.name(), path)).with_object("the snapshot")
        })
    };
    let marker: SnapshotHeader = de::from_node(&one(FILE)?, &mut Vec::new()).map_err(|error| {
        Failure::from_yaml(&error, &format_file_name(&folder.name(), FILE)).with_object("the snapshot")
    })?;
    let mut parts = Vec::with_capacity(marker.sources.len());
    for WrittenSource { source, name, folder: below, applications, drops_promotions } in marker.sources {
        if !source.starts_with(CLUSTER) {
            return Err(unread(FILE, format!("{source:?} is not a cluster source")));
        }
        let mut fetched = Fetched {
            name,
            applications: applications.then(|| Ok(Vec::new())),
            drops_promotions,
            ..Fetched::default()
        };
        let (entries, lost) = folder.list_entries(&below);
        if let Some(lost) = lost.into_iter().next() {
            return Err(unread(&lost.path, lost.why));
        }
        for entry in entries.iter().filter(|entry| entry.kind == EntryKind::File) {
            let Some(path) = entry.path.strip_prefix(&below).and_then(|rest| rest.strip_prefix('/')) else {
                continue;
            };
            let object = one(&entry.path)?.to_json();
            match (path.starts_with("applications/"), &mut fetched.applications) {
                (true, Some(Ok(all))) => all.push(object),
                (true, Some(Err(_)) | None) => {
                    return Err(unread(
                        &entry.path,
                        "exists, although the snapshot was made without Argo CD".into(),
                    ));
                }
                (false, _) => {
                    fetched.files.insert(path.to_owned(), object.to_string());
                }
            }
        }
        parts.push(SnapshotPart { source: source.into(), fetched });
    }
    Ok(parts)
}
