//! A folder (or a single file) on disk as [`Files`]: only what is inside the root.
//!
//! Links are followed if they end inside the root, and each file is read once: a link to a file or folder that is
//! read anyway adds nothing, a link into a hidden folder (as Kubernetes mounts ConfigMaps) adds the files there. A
//! link out of the root is refused. There are no endless loops, because a folder that is read anyway is not entered
//! again through a link.

use crate::files::{EntryKind, FileEntry, Files, Unreadable};
use std::collections::BTreeSet;
use std::io;
use std::path::{Component, Path, PathBuf};
use walkdir::WalkDir;

/// Largest file that is read, in bytes.
const LARGEST: u64 = 64 << 20;

/// A folder or a file on disk.
#[derive(Debug, Clone)]
pub struct DiskFolder {
    name: String,
    root: PathBuf,
}

impl DiskFolder {
    /// The folder (or file) at `root`, called `name` in messages.
    #[must_use]
    pub fn new(name: impl Into<String>, root: impl Into<PathBuf>) -> Self {
        Self { name: name.into(), root: root.into() }
    }

    /// `linked`: `start` is the real path of a folder that is the target of a link.
    fn walk_below(&self, start: &Path, found: &mut FoundFiles, real_root: &Path, linked: bool) {
        let walk = WalkDir::new(start).sort_by_file_name().into_iter();
        let visible = |e: &walkdir::DirEntry| {
            e.depth() == 0 || !(e.file_type().is_dir() && is_hidden(e.file_name().as_encoded_bytes()))
        };
        for entry in walk.filter_entry(visible) {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    let path = error.path().unwrap_or(start).to_path_buf();
                    let why = error.io_error().map_or_else(|| error.to_string(), format_reason);
                    found.add_lost(self.format_relative(&path), why);
                    continue;
                }
            };
            let kind = entry.file_type();
            let path = self.format_relative(entry.path());
            if entry.path().to_str().is_none() {
                // Nothing below it can be addressed by name, so objects in it cannot be read.
                if kind.is_dir() || is_manifest(&path) {
                    found.add_lost(path, "its name is not UTF-8; rename it".into());
                }
                continue;
            }
            if kind.is_dir() {
                if is_uninitialised(entry.path()) {
                    found.add_lost(path, "is a submodule that was not fetched".into());
                }
            } else if kind.is_file() {
                if !linked || found.targets.insert(entry.path().to_owned()) {
                    found.add_file(path);
                }
            } else if kind.is_symlink() {
                self.follow_link(entry.path(), path, found, real_root);
            } else if is_manifest(&path) {
                found.add_lost(path, "is not a regular file".into());
            }
        }
    }

    fn follow_link(&self, place: &Path, path: String, found: &mut FoundFiles, real_root: &Path) {
        let bears = is_manifest(&path) || Path::new(&path).extension().is_none();
        let hidden = place.file_name().is_some_and(|name| is_hidden(name.as_encoded_bytes()));
        match place.canonicalize() {
            Err(error) if bears => {
                found.add_lost(path, format!("is a broken link: {}", format_reason(&error)))
            }
            Err(_) => {}
            Ok(target) if hidden && target.is_dir() => {}
            Ok(target) if !target.starts_with(real_root) => {
                if bears || target.is_dir() {
                    found.add_lost(path, "is a link out of the folder, which is not followed".into());
                }
            }
            Ok(target) => {
                let inside = target.strip_prefix(real_root).unwrap_or(&target);
                let folder = if target.is_dir() { Some(inside) } else { inside.parent() };
                let walked_anyway = folder.is_none_or(|folder| {
                    folder.components().all(|c| !is_hidden(c.as_os_str().as_encoded_bytes()))
                });
                if walked_anyway || !found.targets.insert(target.clone()) {
                    return;
                }
                if target.is_dir() {
                    self.walk_below(&target, found, real_root, true);
                } else {
                    found.add_file(path);
                }
            }
        }
    }

    /// The path below the root, with `/`.
    fn format_relative(&self, path: &Path) -> String {
        let real;
        let below = match path.strip_prefix(&self.root) {
            Ok(below) => below,
            Err(_) => {
                real = self.root.canonicalize().unwrap_or_default();
                path.strip_prefix(&real).unwrap_or(path)
            }
        };
        let parts: Vec<_> = below.components().map(|c| c.as_os_str().to_string_lossy()).collect();
        parts.join("/")
    }
}

#[derive(Default)]
struct FoundFiles {
    files: Vec<FileEntry>,
    lost: Vec<Unreadable>,
    targets: BTreeSet<PathBuf>,
}

impl FoundFiles {
    fn add_file(&mut self, path: String) {
        self.files.push(FileEntry { path, kind: EntryKind::File, id: None });
    }
    fn add_lost(&mut self, path: String, why: String) {
        self.lost.push(Unreadable { path, why });
    }
}

/// Whether a file of this name can contain objects.
#[must_use]
pub fn is_manifest(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    [".yaml", ".yml", ".json"].iter().any(|end| name.len() > end.len() && name.ends_with(end))
}

fn is_hidden(name: &[u8]) -> bool {
    name.starts_with(b".") && name != b"." && name != b".."
}

/// The reason without the operating system's error number.
fn format_reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

/// Whether this is an empty folder that is a submodule by the `.gitmodules` of its checkout.
fn is_uninitialised(folder: &Path) -> bool {
    if std::fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_some()) {
        return false;
    }
    let Ok(folder) = folder.canonicalize() else { return false };
    let Some(checkout) = folder.ancestors().skip(1).find(|a| a.join(".git").exists()) else { return false };
    let modules = std::fs::read_to_string(checkout.join(".gitmodules")).unwrap_or_default();
    let inside = folder.strip_prefix(checkout).unwrap_or(&folder);
    modules
        .lines()
        .filter_map(|line| line.split_once('='))
        .any(|(key, value)| key.trim() == "path" && Path::new(value.trim()) == inside)
}

impl Files for DiskFolder {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn list_entries(&self, prefix: &str) -> (Vec<FileEntry>, Vec<Unreadable>) {
        let mut found = FoundFiles::default();
        let start = if prefix.is_empty() { self.root.clone() } else { self.root.join(prefix) };
        match (self.root.canonicalize(), start.symlink_metadata()) {
            (Err(error), _) => {
                found.add_lost(String::new(), format!("there is no such folder: {}", format_reason(&error)))
            }
            (Ok(_), Err(error)) if error.kind() == io::ErrorKind::NotFound && !prefix.is_empty() => {}
            (Ok(_), Err(error)) => found.add_lost(prefix.to_owned(), format_reason(&error)),
            (Ok(root), Ok(_)) if root.is_file() => found.add_file(String::new()),
            (Ok(root), Ok(_)) => {
                // If the root itself is a link, its target is read.
                let start = if prefix.is_empty() { root.clone() } else { start };
                self.walk_below(&start, &mut found, &root, false);
            }
        }
        found.files.sort_by(|a, b| a.path.cmp(&b.path));
        found.lost.sort_by(|a, b| a.path.cmp(&b.path));
        (found.files, found.lost)
    }

    fn read_file(&self, path: &str) -> Result<Option<Vec<u8>>, Unreadable> {
        let lost = |why: String| Unreadable { path: path.to_owned(), why };
        let below = Path::new(path);
        if below.components().any(|c| !matches!(c, Component::Normal(_) | Component::CurDir)) {
            return Err(lost("is outside the folder".into()));
        }
        let place = if path.is_empty() { self.root.clone() } else { self.root.join(below) };
        let (root, real) = match (self.root.canonicalize(), place.canonicalize()) {
            (Ok(root), Ok(real)) => (root, real),
            (Err(error), _) | (_, Err(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            (Err(error), _) | (_, Err(error)) => return Err(lost(format_reason(&error))),
        };
        if !real.starts_with(&root) {
            return Err(lost("is a link out of the folder, which is not followed".into()));
        }
        let size = real.metadata().map_err(|error| lost(format_reason(&error)))?;
        if !size.is_file() {
            return Err(lost("is not a regular file".into()));
        }
        if size.len() > LARGEST {
            return Err(lost(format!("is larger than {} MB", LARGEST >> 20)));
        }
        std::fs::read(&real).map(Some).map_err(|error| lost(format_reason(&error)))
    }
}
