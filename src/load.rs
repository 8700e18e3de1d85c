//! Sources → World; a GitOps commit → GitOps. Reads disk and API server; knows nothing of gates and registries.
//!
//! Every object is checked once, here, as far as it can be by itself; a broken one is absent from the World
//! and named in its problems, together with what it holds. Nothing is skipped without a word.

pub mod check;
pub mod damage;
pub mod folder;
pub mod gitops;
pub mod objects;
pub mod observed;
pub mod origin;
pub mod strict;

use crate::error::{At, Failure};
use crate::files::{Entry, EntryKind, Files, Unreadable};
use crate::load::folder::is_manifest;
use crate::load::objects::{Filter, Place, Reading};
use crate::model::id::Namespace;
use crate::model::kind::Kind;
use crate::model::naming::GROUP;
use crate::model::world::{Holds, SourceState, World};
use crate::yaml::{Error, parse};
use std::collections::BTreeSet;
use std::sync::Arc;

pub use gitops::gitops;
pub use observed::Observed;
pub use origin::refine;

/// Folders of the GitOps repository that hold no input objects.
pub const OURS: &[&str] = &["applications/", "servings/", "records/", "templates/"];

/// A tree of files to read objects from.
pub struct Input<'f> {
    /// The source's stable name: `path:<as written in the settings>` or `repository`.
    pub name: Arc<str>,
    /// Its files.
    pub files: &'f dyn Files,
    /// Kinds that may come from it; objects of others found there are refused. `None`: all.
    pub kinds: Option<BTreeSet<Kind>>,
    /// Namespaces whose objects may come from it; objects of others found there are refused. `None`: all.
    pub namespaces: Option<BTreeSet<Namespace>>,
    /// Beginnings of paths that are left out ([`OURS`], where the GitOps repository itself is the source).
    pub skip: &'f [&'f str],
}

/// Reads every source, in their order.
#[must_use]
pub fn world(inputs: &[Input<'_>], observed: Option<&Observed>) -> World {
    let mut reading = Reading::default();
    for input in inputs {
        source(&mut reading, input);
    }
    if let Some(observed) = observed {
        observed::read(&mut reading, observed);
    }
    reading.finish()
}

/// A file as a user would name it: the root's name, then the path below it.
#[must_use]
pub fn file_name(root: &str, path: &str) -> String {
    match (root.trim_end_matches('/'), path) {
        (root, "") => root.to_owned(),
        ("" | ".", path) => path.to_owned(),
        (root, path) => format!("{root}/{path}"),
    }
}

fn source(reading: &mut Reading, input: &Input<'_>) {
    let (entries, lost) = input.files.walk("");
    let kept = |path: &str| !input.skip.iter().any(|skip| path.starts_with(skip));
    let paths: BTreeSet<&str> = entries.iter().filter(|e| kept(&e.path)).map(|e| e.path.as_str()).collect();
    let before = reading.objects;
    let mut whole = Whole::default();
    for unreadable in lost.iter().filter(|l| kept(&l.path)) {
        whole.lost(reading, input, unreadable);
    }
    for entry in entries.iter().filter(|e| kept(&e.path)) {
        match entry.kind {
            EntryKind::Submodule => {
                let why = "is a submodule: its files are not here".to_owned();
                whole.lost(reading, input, &Unreadable { path: entry.path.clone(), why });
            }
            EntryKind::Link => {
                if let Err(why) = link(input.files, entry, &paths) {
                    whole.lost(reading, input, &Unreadable { path: entry.path.clone(), why });
                }
            }
            EntryKind::File if is_manifest(&entry.path) || entry.path.is_empty() => {
                match input.files.read(&entry.path) {
                    Ok(Some(bytes)) => {
                        if !file(reading, input, &entry.path, &bytes) {
                            whole.not(format!(
                                "{} cannot be read",
                                file_name(&input.files.name(), &entry.path)
                            ));
                        }
                    }
                    Ok(None) => {
                        let why = "vanished while it was read".to_owned();
                        whole.lost(reading, input, &Unreadable { path: entry.path.clone(), why });
                    }
                    Err(unreadable) => whole.lost(reading, input, &unreadable),
                }
            }
            EntryKind::File => {}
        }
    }
    let objects = reading.objects - before;
    if objects == 0 {
        whole.not("it holds no object of our kinds".into());
    }
    let why = whole.0;
    reading.sources.push(SourceState { name: input.name.clone(), whole: why.is_none(), why, objects });
}

/// Why a source was not read whole: the first reason.
#[derive(Default)]
struct Whole(Option<String>);

impl Whole {
    fn not(&mut self, why: String) {
        self.0.get_or_insert(why);
    }

    fn lost(&mut self, reading: &mut Reading, input: &Input<'_>, unreadable: &Unreadable) {
        let file = file_name(&input.files.name(), &unreadable.path);
        self.not(format!("{file} {}", unreadable.why));
        let failure = Failure::new(crate::error::Kind::Unread, "unreadable", unreadable.why.clone());
        reading.problem(failure.at(At::file(file)), Holds::Everything);
    }
}

/// A link in a commit: it must lead to something that is read anyway.
fn link(files: &dyn Files, entry: &Entry, paths: &BTreeSet<&str>) -> Result<(), String> {
    let target = match files.read(&entry.path) {
        Ok(Some(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
        Ok(None) => String::new(),
        Err(unreadable) => return Err(unreadable.why),
    };
    let Some(path) = joined(&entry.path, &target) else {
        return Err("is a link that leaves the repository; it is not followed".into());
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

/// `path`, which stands in the file `from`, below the root; `None` when it leaves the root.
#[must_use]
pub fn joined(from: &str, path: &str) -> Option<String> {
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

/// Reads one file; `false`: not all of it could be read.
fn file(reading: &mut Reading, input: &Input<'_>, path: &str, bytes: &[u8]) -> bool {
    let name: Arc<str> = file_name(&input.files.name(), path).into();
    let text = match damage::sound(bytes) {
        Ok(text) => text,
        Err(error) => {
            let holds = match error.code {
                "lfs-pointer" => Holds::Everything,
                _ => damage::bears_on(&String::from_utf8_lossy(bytes), None),
            };
            let harmless = holds == Holds::Nothing;
            reading.problem(error.failure(&name), holds);
            return harmless;
        }
    };
    let filter = Filter { kinds: input.kinds.as_ref(), namespaces: input.namespaces.as_ref() };
    let mut whole = true;
    for document in parse::documents(text) {
        let place = Place {
            source: input.name.clone(),
            file: name.clone(),
            path,
            document: document.index,
            files: Some(input.files),
        };
        let region = lines(text, document.first_line, document.end_line);
        if document.complete {
            let before = reading.objects;
            whole &= reading.document(&document, &place, filter);
            // A second apiVersion may be the one that was meant.
            let unclear = reading.objects == before && region.contains(GROUP);
            if let Some(error) = document.errors.first().filter(|_| unclear) {
                let error = Error::new(error.code, error.at, "has an error at one of its keys");
                reading.problem(error.failure(&name), Holds::Everything);
                whole = false;
            }
        } else {
            let holds = damage::bears_on(region, document.node.as_ref());
            whole &= holds == Holds::Nothing;
            // The last error is the one that broke the document off; those before it may quote keys of a
            // kind that is not ours to look into.
            if let Some(error) = document.errors.last() {
                reading.problem(error.failure(&name), holds);
            }
        }
    }
    whole
}

/// The lines from `first` up to `end` (from 1, `end` excluded).
fn lines(text: &str, first: u32, end: u32) -> &str {
    let start_of = |line: u32| {
        let skip = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
        match skip {
            0 => 0,
            n => text.match_indices('\n').nth(n - 1).map_or(text.len(), |(place, _)| place + 1),
        }
    };
    let start = start_of(first);
    &text[start..start_of(end).max(start)]
}
