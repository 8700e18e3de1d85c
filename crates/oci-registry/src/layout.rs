//! Image layout folders as a registry: one OCI image layout per repository, in the sub-folder of its path
//! (`DIR/shop/podinfo/oci-layout`, `index.json`, `blobs/sha256/…`).
//!
//! The same rules as over HTTP apply: bytes are hashed, limits apply, and "does not exist" and "cannot be read" are
//! distinguished. Tags are `org.opencontainers.image.ref.name`: `v1`, or a full reference that ends in `:v1`. A
//! layout's list names no subjects, so the listed manifests are opened to see what they refer to.

use crate::answer::Unread;
use crate::answer::UnreadReason;
use crate::answer::{Answer, Descriptor, EvidencePlace, Manifest, Reference, Referrers};
use crate::config::RegistryLimits;
use crate::fault::{make_broken_unread, make_integrity_unread, make_unread};
use crate::id::{Digest, OciRepository};
use crate::index::{self, Listing};
use crate::read::{check_blob, format_fallback_tag, is_tag, parse_media_type};
use crate::referrers::Gathered;
use bytes::Bytes;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Annotation with a tag (image-spec, "Pre-Defined Annotation Keys").
pub(crate) const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// A folder of image layouts that is one registry.
#[derive(Debug)]
pub(crate) struct Layouts {
    root: PathBuf,
    pub(crate) limits: RegistryLimits,
    /// The subject of each manifest, from bytes with the right hash, whose content cannot change.
    subjects: Mutex<HashMap<Digest, Referrer>>,
    /// Each repository's list, as long as its file does not change.
    lists: Mutex<HashMap<PathBuf, (Stamp, Arc<IndexEntries>)>>,
}

/// The entries of an `index.json`: each, or why it cannot be used.
type IndexEntries = Vec<Result<Descriptor, String>>;

/// A value that changes when a file is replaced or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    length: u64,
    modified: (i64, i64),
}

/// The members of a manifest that listing needs.
#[derive(Debug, Clone)]
struct Referrer {
    subject: Option<Digest>,
    artifact_type: Option<String>,
}

/// Why a file was not read.
enum Trouble {
    NotThere,
    Unread(Unread),
}

impl Layouts {
    pub(crate) fn new(root: PathBuf, limits: RegistryLimits) -> Arc<Self> {
        Arc::new(Self { root, limits, subjects: Mutex::default(), lists: Mutex::default() })
    }

    pub(crate) fn resolve_folder(&self, repository: &OciRepository) -> PathBuf {
        self.root.join(repository.path())
    }

    /// A manifest by digest or tag.
    pub(crate) fn read_manifest(
        &self,
        repository: &OciRepository,
        reference: &Reference,
    ) -> Answer<Manifest> {
        make_answer(self.find_manifest(repository, reference))
    }

    fn find_manifest(&self, repository: &OciRepository, reference: &Reference) -> Result<Manifest, Trouble> {
        let listed = self.load_index(repository)?;
        let (digest, entry) = match reference {
            Reference::Digest(digest) => (*digest, listed.iter().flatten().find(|d| d.digest == *digest)),
            Reference::Tag(tag) => {
                let entry = find_tagged(&listed, tag).map_err(|why| match why {
                    Some(why) => {
                        Trouble::Unread(make_broken_unread(&format_line(repository, "index.json"), None, why))
                    }
                    None => Trouble::NotThere,
                })?;
                (entry.digest, Some(entry))
            }
        };
        let bytes = self.read_hashed(repository, &digest, self.limits.manifest)?;
        // A layout keeps blobs and manifests together: content that is not a JSON object is not a manifest.
        let own = parse_media_type(&bytes).ok_or(Trouble::NotThere)?;
        let listed_type = || entry.map(|e| e.media_type.clone()).unwrap_or_default();
        Ok(Manifest { digest, media_type: own.unwrap_or_else(listed_type), bytes })
    }

    /// Whether this blob exists (its bytes are hashed, which is cheap in a folder).
    pub(crate) fn holds_blob(&self, repository: &OciRepository, digest: &Digest) -> Answer<()> {
        make_answer(self.load_index(repository).and_then(|_| self.hash_file(repository, digest)))
    }

    /// A blob of exactly the descriptor's size and digest.
    pub(crate) fn read_blob(&self, repository: &OciRepository, blob: &Descriptor) -> Answer<Bytes> {
        let path = build_blob_path(&blob.digest);
        let bytes = self.load_index(repository).and_then(|_| self.read_file(repository, &path, blob.size));
        make_answer(bytes.and_then(|b| {
            check_blob(&format_line(repository, &path), None, blob, b).map_err(Trouble::Unread)
        }))
    }

    /// Every listed entry whose manifest names `digest` as its subject, and a fallback tag if one was copied.
    pub(crate) fn read_referrers(&self, repository: &OciRepository, digest: &Digest) -> Referrers {
        let mut found = Gathered::new(&self.limits, Referrers::default());
        let listed = match self.load_index(repository) {
            Ok(listed) => listed,
            Err(Trouble::NotThere) => return found.finish_referrers(None),
            Err(Trouble::Unread(why)) => {
                found.note_unread(why);
                return found.finish_referrers(None);
            }
        };
        let at = format_line(repository, "index.json");
        let mut entries = Vec::new();
        for entry in listed.iter() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(why) => {
                    found.note_unread(make_broken_unread(&at, None, why.clone()));
                    continue;
                }
            };
            match self.read_referrer(repository, &entry.digest) {
                Ok(referrer) if referrer.subject == Some(*digest) => {
                    let artifact_type = referrer.artifact_type.or_else(|| entry.artifact_type.clone());
                    entries.push(Ok(Descriptor { artifact_type, ..entry.clone() }));
                }
                Ok(_) => {}
                Err(Trouble::NotThere) => {
                    found.add_warning(format!("{at}: lists {}, which is not there", entry.digest));
                }
                Err(Trouble::Unread(why)) => found.note_unread(why),
            }
        }
        found.add_entries(EvidencePlace::Layout, &at, None, entries);
        match self.read_manifest(repository, &Reference::Tag(format_fallback_tag(digest))) {
            Answer::Found(manifest) => found.add_fallback(&at, &manifest.bytes),
            Answer::Absent => {}
            Answer::Unread(why) => found.note_unread(why),
        }
        found.finish_referrers(None)
    }

    fn read_referrer(&self, repository: &OciRepository, digest: &Digest) -> Result<Referrer, Trouble> {
        let known = self.subjects.lock().unwrap_or_else(PoisonError::into_inner).get(digest).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let bytes = self.read_hashed(repository, digest, self.limits.manifest)?;
        let referrer = parse_subject(&bytes);
        let mut subjects = self.subjects.lock().unwrap_or_else(PoisonError::into_inner);
        subjects.insert(*digest, referrer.clone());
        Ok(referrer)
    }

    /// The entries of `index.json`, read again when the file has changed.
    fn load_index(&self, repository: &OciRepository) -> Result<Arc<IndexEntries>, Trouble> {
        let at = format_line(repository, "index.json");
        match fs::metadata(&self.root) {
            Ok(root) if root.is_dir() => {}
            Ok(_) => {
                return Err(Trouble::Unread(make_unreachable_unread(
                    &at,
                    "the image layout root is not a folder",
                )));
            }
            Err(e) => {
                let why = format!("the image layout root cannot be read: {}", e.kind());
                return Err(Trouble::Unread(make_unreachable_unread(&at, why)));
            }
        }
        let folder = self.resolve_folder(repository);
        let stamp = read_stamp(&folder.join("index.json"));
        let known = self.lists.lock().unwrap_or_else(PoisonError::into_inner).get(&folder).cloned();
        if let (Some(now), Some((then, list))) = (stamp, known)
            && now == then
        {
            return Ok(list);
        }
        let list = Arc::new(self.read_index(repository, &at)?);
        if let Some(stamp) = stamp {
            let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
            lists.insert(folder, (stamp, Arc::clone(&list)));
        }
        Ok(list)
    }

    fn read_index(&self, repository: &OciRepository, at: &str) -> Result<IndexEntries, Trouble> {
        let bytes = match self.read_file(repository, "index.json", self.limits.manifest) {
            Err(Trouble::NotThere) if self.resolve_folder(repository).join("oci-layout").exists() => {
                return Err(Trouble::Unread(make_broken_unread(
                    at,
                    None,
                    "the image layout has no index.json",
                )));
            }
            other => other?,
        };
        self.check_version(repository)?;
        match index::parse_index(&bytes) {
            Listing::Index(entries) => Ok(entries),
            Listing::Other(what) => {
                Err(Trouble::Unread(make_broken_unread(at, None, format!("index.json is {what}"))))
            }
            Listing::Broken(why) => {
                Err(Trouble::Unread(make_broken_unread(at, None, format!("index.json is broken: {why}"))))
            }
        }
    }

    fn check_version(&self, repository: &OciRepository) -> Result<(), Trouble> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Marker {
            image_layout_version: String,
        }
        let at = format_line(repository, "oci-layout");
        let wrong = |why: &str| Trouble::Unread(make_broken_unread(&at, None, why));
        let bytes = match self.read_file(repository, "oci-layout", 4096) {
            Err(Trouble::NotThere) => return Err(wrong("the image layout has no file oci-layout")),
            other => other?,
        };
        let marker: Marker =
            serde_json::from_slice(&bytes).map_err(|_| wrong("oci-layout holds no imageLayoutVersion"))?;
        match marker.image_layout_version.as_str() {
            "1.0.0" => Ok(()),
            _ => Err(wrong("imageLayoutVersion is not 1.0.0")),
        }
    }

    fn read_hashed(&self, repository: &OciRepository, digest: &Digest, cap: u64) -> Result<Bytes, Trouble> {
        let path = build_blob_path(digest);
        let bytes = self.read_file(repository, &path, cap)?;
        if Digest::hash_bytes(&bytes) != *digest {
            return Err(Trouble::Unread(make_mismatch_unread(repository, &path)));
        }
        Ok(bytes)
    }

    /// Hashes a blob without holding it in memory.
    fn hash_file(&self, repository: &OciRepository, digest: &Digest) -> Result<(), Trouble> {
        let path = build_blob_path(digest);
        let mut file = self.open_file(repository, &path)?;
        let mut hash = Sha256::new();
        let mut piece = vec![0; 1 << 16];
        loop {
            match file.read(&mut piece).map_err(|e| self.make_trouble(repository, &path, &e))? {
                0 => break,
                n => hash.update(&piece[..n]),
            }
        }
        match Digest::from_bytes(hash.finalize().into()) == *digest {
            true => Ok(()),
            false => Err(Trouble::Unread(make_mismatch_unread(repository, &path))),
        }
    }

    /// A file of a repository's layout, read at most up to `cap`.
    fn read_file(&self, repository: &OciRepository, path: &str, cap: u64) -> Result<Bytes, Trouble> {
        let mut bytes = Vec::new();
        let file = self.open_file(repository, path)?;
        let read = file.take(cap.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|e| self.make_trouble(repository, path, &e))?;
        if bytes.len() as u64 > cap {
            let why = format!("longer than {cap} bytes");
            return Err(Trouble::Unread(make_broken_unread(&format_line(repository, path), None, why)));
        }
        Ok(bytes.into())
    }

    fn open_file(&self, repository: &OciRepository, path: &str) -> Result<File, Trouble> {
        let file = self.resolve_folder(repository).join(path);
        // Its type is checked before it is opened, because opening a pipe would wait without end.
        let meta = fs::metadata(&file).map_err(|e| self.make_trouble(repository, path, &e))?;
        if !meta.is_file() {
            return Err(Trouble::Unread(make_broken_unread(
                &format_line(repository, path),
                None,
                "not a regular file",
            )));
        }
        File::open(&file).map_err(|e| self.make_trouble(repository, path, &e))
    }

    fn make_trouble(&self, repository: &OciRepository, path: &str, error: &io::Error) -> Trouble {
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Trouble::NotThere,
            kind => Trouble::Unread(make_unreachable_unread(
                &format_line(repository, path),
                format!("cannot be read: {kind}"),
            )),
        }
    }
}

fn make_answer<T>(found: Result<T, Trouble>) -> Answer<T> {
    match found {
        Ok(there) => Answer::Found(there),
        Err(Trouble::NotThere) => Answer::Absent,
        Err(Trouble::Unread(why)) => Answer::Unread(why),
    }
}

fn make_mismatch_unread(repository: &OciRepository, path: &str) -> Unread {
    make_integrity_unread(&format_line(repository, path), None, "the bytes do not hash to the digest")
}

/// The form for reports, without the folder, so that it is the same on every machine.
pub(crate) fn format_line(repository: &OciRepository, path: &str) -> String {
    format!("READ {repository}/{path}")
}

fn build_blob_path(digest: &Digest) -> String {
    format!("blobs/sha256/{}", digest.format_hex())
}

fn make_unreachable_unread(line: &str, why: impl Into<String>) -> Unread {
    make_unread(UnreadReason::Unreachable, line, None, why, false)
}

fn read_stamp(file: &Path) -> Option<Stamp> {
    let meta = fs::metadata(file).ok()?;
    Some(Stamp { inode: meta.ino(), length: meta.len(), modified: (meta.mtime(), meta.mtime_nsec()) })
}

/// The entry with this tag; the last one if several have it, as in other tools.
///
/// # Errors
/// It does not exist; `Err(Some)`: an unusable entry may have been it.
fn find_tagged<'a>(listed: &'a IndexEntries, tag: &str) -> Result<&'a Descriptor, Option<String>> {
    if !is_tag(tag) {
        return Err(Some(format!("{tag:?} is no tag")));
    }
    let found = listed.iter().flatten().rfind(|entry| {
        entry.annotations.get(REF_NAME).is_some_and(|name| {
            name == tag || name.strip_suffix(tag).is_some_and(|before| before.ends_with(':'))
        })
    });
    found.ok_or_else(|| listed.iter().find_map(|entry| entry.as_ref().err().cloned()))
}

/// The subject of a manifest. Bytes that are not a manifest have no subject.
fn parse_subject(bytes: &[u8]) -> Referrer {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Partial {
        subject: Option<serde_json::Value>,
        artifact_type: Option<String>,
    }
    let partial: Partial = serde_json::from_slice(bytes).unwrap_or_default();
    let subject = partial.subject.as_ref().and_then(|s| s.get("digest")).and_then(|d| d.as_str());
    Referrer { subject: subject.and_then(|d| Digest::parse(d).ok()), artifact_type: partial.artifact_type }
}
