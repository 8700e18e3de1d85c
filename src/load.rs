//! Sources → World; a GitOps commit → GitOps. Reads the disk and API servers; knows nothing of gates and registries.
//!
//! Every object is checked here once, as far as this needs no other object. A broken object is absent from the World
//! and named in its problems, together with the Orders that it holds back. Nothing is skipped silently.

pub mod check;
pub mod cluster;
pub mod damage;
pub mod folder;
pub mod gitops;
pub mod objects;
pub mod observed;
pub mod origin;
mod parallel;
pub mod strict;

use crate::error::{At, Failure};
use crate::files::{EntryKind, FileEntry, Files, Unreadable};
use crate::load::folder::is_manifest;
use crate::load::objects::{DocumentPlace, Filter, WorldReading};
use crate::load::parallel::parse_on_all_cores;
use crate::model::id::Namespace;
use crate::model::kind::Kind;
use crate::model::naming::GROUP;
use crate::model::world::{Holds, SourceState, World, is_cluster};
use kube_yaml::parse::Document;
use kube_yaml::{Error, parse};
use std::collections::BTreeSet;
use std::sync::Arc;

pub use gitops::read_gitops;
pub use observed::Observed;
pub use origin::refine_places;

/// Number of files that are in memory at once.
const BATCH: usize = 4096;

/// Folders of the GitOps repository that contain no input objects.
pub const OURS: &[&str] = &["applications/", "servings/", "records/", "templates/"];

/// A tree of files to read objects from.
pub struct Input<'f> {
    /// The source's stable name: `path:<as written in the settings>`, `repository`, or `cluster:<context>`, whose
    /// files exist in memory only.
    pub name: Arc<str>,
    /// Its files.
    pub files: &'f dyn Files,
    /// Kinds that may come from it; objects of other kinds are refused. `None`: all.
    pub kinds: Option<BTreeSet<Kind>>,
    /// Namespaces whose objects may come from it; objects of other namespaces are refused. `None`: all.
    pub namespaces: Option<BTreeSet<Namespace>>,
    /// Prefixes of paths that are left out ([`OURS`], if the GitOps repository itself is the source).
    pub skip: &'f [&'f str],
}

/// Reads every source, in the given order, and every observation.
#[must_use]
pub fn read_world<'o>(inputs: &[Input<'_>], observed: impl IntoIterator<Item = &'o Observed>) -> World {
    let mut reading = WorldReading::default();
    for input in inputs {
        read_source(&mut reading, input);
    }
    observed::add_observations(&mut reading, observed);
    reading.build_world()
}

/// Removes the position from a failure in an object of a cluster, which never was a file.
fn strip_line(mut failure: Failure) -> Failure {
    if let Some(at) = &mut failure.at {
        (at.line, at.column) = (None, None);
    }
    failure
}

/// A file of a source in the user's terms; a cluster has none.
fn format_place(input: &Input<'_>, path: &str) -> String {
    let path = if is_cluster(&input.name) { "" } else { path };
    format_file_name(&input.files.name(), path)
}

/// A file in the user's terms: the root's name, then the path below it.
#[must_use]
pub fn format_file_name(root: &str, path: &str) -> String {
    match (root.trim_end_matches('/'), path) {
        (root, "") => root.to_owned(),
        ("" | ".", path) => path.to_owned(),
        (root, path) => format!("{root}/{path}"),
    }
}

fn read_source(reading: &mut WorldReading, input: &Input<'_>) {
    let (entries, lost) = input.files.list_entries("");
    let kept = |path: &str| !input.skip.iter().any(|skip| path.starts_with(skip));
    let paths: BTreeSet<&str> = entries.iter().filter(|e| kept(&e.path)).map(|e| e.path.as_str()).collect();
    let before = reading.objects;
    let problems = reading.count_problems();
    let mut whole = Whole::default();
    for unreadable in lost.iter().filter(|l| kept(&l.path)) {
        whole.add_lost(reading, input, unreadable);
    }
    let entries: Vec<&FileEntry> = entries.iter().filter(|e| kept(&e.path)).collect();
    for batch in entries.chunks(BATCH) {
        let mut files = Vec::with_capacity(batch.len());
        for entry in batch {
            match read_bytes(input, entry, &paths) {
                Ok(Some(bytes)) => files.push((entry.path.clone(), bytes)),
                Ok(None) => {}
                Err(unreadable) => whole.add_lost(reading, input, &unreadable),
            }
        }
        // A full disk or a failed renderer leaves an empty file: not an error (B06), but also not a deletion.
        if let Some((path, _)) = files.iter().find(|(_, bytes)| bytes.is_empty()) {
            whole.mark_partial(format!("{} is an empty file", format_place(input, path)));
        }
        for (path, parsed) in parse_on_all_cores(files, |_, bytes| ParsedFile::from_bytes(bytes)) {
            if !take_file(reading, input, &path, parsed) {
                whole.mark_partial(format!("{} cannot be read", format_place(input, &path)));
            }
        }
    }
    for remark in input.files.collect_remarks() {
        reading.add_problem(remark, Holds::Nothing);
    }
    if is_cluster(&input.name) {
        reading.strip_lines(problems);
    }
    let objects = reading.objects - before;
    if objects == 0 {
        whole.mark_partial("it holds no object of a known kind".into());
    }
    let why = whole.0;
    reading.sources.push(SourceState { name: input.name.clone(), whole: why.is_none(), why, objects });
}

/// Records that a source was not read completely; the first reason is kept.
#[derive(Default)]
struct Whole(Option<String>);

impl Whole {
    fn mark_partial(&mut self, why: String) {
        self.0.get_or_insert(why);
    }

    fn add_lost(&mut self, reading: &mut WorldReading, input: &Input<'_>, unreadable: &Unreadable) {
        let file = format_place(input, &unreadable.path);
        self.mark_partial(format!("{file} {}", unreadable.why));
        let failure = Failure::new(crate::error::FailureKind::Unread, "unreadable", unreadable.why.clone());
        reading.add_problem(failure.with_place(At::from_file(file)), Holds::Everything);
    }
}

/// Checks a link in a commit: its target must be among the files that are read.
fn check_link(files: &dyn Files, entry: &FileEntry, paths: &BTreeSet<&str>) -> Result<(), String> {
    let target = match files.read_file(&entry.path) {
        Ok(Some(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
        Ok(None) => String::new(),
        Err(unreadable) => return Err(unreadable.why),
    };
    let Some(path) = join_path(&entry.path, &target) else {
        return Err("is a link out of the repository, which is not followed".into());
    };
    let folder = format!("{path}/");
    let read_anyway = paths.contains(path.as_str())
        || path.is_empty()
        || paths.range(folder.as_str()..).next().is_some_and(|p| p.starts_with(&folder));
    let bears = is_manifest(&entry.path) || !entry.path.rsplit('/').next().unwrap_or_default().contains('.');
    if read_anyway || !bears {
        Ok(())
    } else {
        Err(format!("is a link to {target:?}, which is not among the files that are read"))
    }
}

/// Resolves `path`, written in the file `from`, to a path below the root; `None` if it leaves the root.
#[must_use]
pub fn join_path(from: &str, path: &str) -> Option<String> {
    if path.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The bytes of an entry that may contain objects; `None`: it may not.
fn read_bytes(
    input: &Input<'_>,
    entry: &FileEntry,
    paths: &BTreeSet<&str>,
) -> Result<Option<Vec<u8>>, Unreadable> {
    let lost = |why: String| Unreadable { path: entry.path.clone(), why };
    match entry.kind {
        EntryKind::Submodule => Err(lost("is a submodule, whose files are not here".into())),
        EntryKind::Link => check_link(input.files, entry, paths).map(|()| None).map_err(lost),
        // A source that is a single file is read with any name.
        EntryKind::File if is_manifest(&entry.path) || entry.path.is_empty() => {
            match input.files.read_file(&entry.path)? {
                Some(bytes) => Ok(Some(bytes)),
                None => Err(lost("was removed while the folder was read".into())),
            }
        }
        EntryKind::File => Ok(None),
    }
}

/// The result of parsing one file, before anything is decided about it.
enum ParsedFile {
    /// The text is damaged; with the Orders that it affects.
    Damaged(Error, Holds),
    /// Its documents; damaged ones with their text.
    Documents(Vec<(Document, Option<String>)>),
}

impl ParsedFile {
    fn from_bytes(bytes: &[u8]) -> Self {
        match damage::check_text(bytes) {
            Ok(text) => {
                let own_text =
                    |d: &Document| (!d.errors.is_empty()).then(|| text[d.range.clone()].to_owned());
                let documents = parse::parse_documents(text).into_iter();
                Self::Documents(
                    documents
                        .map(|d| {
                            let own = own_text(&d);
                            (d, own)
                        })
                        .collect(),
                )
            }
            Err(error) if error.code == "lfs-pointer" => Self::Damaged(error, Holds::Everything),
            Err(error) => {
                let holds = damage::judge_holds(&String::from_utf8_lossy(bytes), None);
                Self::Damaged(error, holds)
            }
        }
    }
}

/// Adds the objects of one file; `false`: a part of it could not be read.
fn take_file(reading: &mut WorldReading, input: &Input<'_>, path: &str, parsed: ParsedFile) -> bool {
    let name: Arc<str> = format_place(input, path).into();
    let documents = match parsed {
        ParsedFile::Documents(documents) => documents,
        ParsedFile::Damaged(error, holds) => {
            let harmless = holds == Holds::Nothing;
            reading.add_problem(Failure::from_yaml(&error, &name), holds);
            return harmless;
        }
    };
    let filter = Filter { kinds: input.kinds.as_ref(), namespaces: input.namespaces.as_ref() };
    let mut whole = true;
    for (document, text) in documents {
        let text = text.unwrap_or_default();
        if !document.complete {
            let holds = damage::judge_holds(&text, document.node.as_ref());
            whole &= holds == Holds::Nothing;
            // The last error ended the document. Earlier ones may quote keys of a foreign kind, whose content
            // must not be shown.
            if let Some(error) = document.errors.last() {
                reading.add_problem(Failure::from_yaml(error, &name), holds);
            }
            continue;
        }
        let place = DocumentPlace {
            source: input.name.clone(),
            file: name.clone(),
            path,
            document: document.index,
            files: Some(input.files).filter(|_| !is_cluster(&input.name)),
        };
        let before = reading.objects;
        whole &= reading.take_document(&document, &place, filter);
        // Of two apiVersions the second may be the intended one.
        let unclear = reading.objects == before && text.contains(GROUP);
        if let Some(error) = document.errors.first().filter(|_| unclear) {
            let error = Error::new(error.code, error.at, "has an error at one of its keys");
            reading.add_problem(Failure::from_yaml(&error, &name), Holds::Everything);
            whole = false;
        }
    }
    whole
}
