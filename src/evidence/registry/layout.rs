//! Image layout folders as a registry: one OCI image layout per repository, in the sub-folder of its path
//! (`DIR/shop/podinfo/oci-layout`, `index.json`, `blobs/sha256/…`).
//!
//! The same rules as over HTTP hold: bytes are hashed, caps apply, "not there" and "cannot be read" are kept
//! apart. Tags are `org.opencontainers.image.ref.name`: `v1`, or a full reference that ends in `:v1`. A
//! layout's list names no subjects, so the listed manifests are opened to see what they refer to.

use crate::evidence::answer::{Answer, Descriptor, Manifest, Place, Reference, Referrers};
use crate::evidence::registry::config::Limits;
use crate::evidence::registry::fault::{broken, integrity, unread};
use crate::evidence::registry::index::{self, Listing};
use crate::evidence::registry::read::{check, fallback_tag, is_tag, media_type};
use crate::evidence::registry::referrers::Gathered;
use crate::model::evidence::Unread;
use crate::model::id::{Digest, OciRepository};
use crate::model::reason::Verified;
use bytes::Bytes;
use serde::Deserialize;
use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Annotation that carries a tag (image-spec, "Pre-Defined Annotation Keys").
pub(super) const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// A folder of image layouts that is one registry.
#[derive(Debug)]
pub(super) struct Layouts {
    root: PathBuf,
    limits: Limits,
    /// What each manifest refers to, learnt from bytes that hashed right: content does not change.
    subjects: Mutex<HashMap<Digest, Referrer>>,
}

/// A manifest as far as listing needs it.
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
    pub(super) fn new(root: PathBuf, limits: Limits) -> Arc<Self> {
        Arc::new(Self { root, limits, subjects: Mutex::default() })
    }

    pub(super) fn folder(&self, repository: &OciRepository) -> PathBuf {
        self.root.join(repository.path())
    }

    /// A manifest by digest or tag.
    pub(super) fn manifest(&self, repository: &OciRepository, reference: &Reference) -> Answer<Manifest> {
        let listed = match self.index(repository) {
            Ok(listed) => listed,
            Err(Trouble::NotThere) => return Answer::Absent,
            Err(Trouble::Unread(why)) => return Answer::Unread(why),
        };
        let entry = match reference {
            Reference::Digest(digest) => listed.iter().flatten().find(|d| d.digest == *digest),
            Reference::Tag(tag) if is_tag(tag) => match tagged(&listed, tag) {
                Some(entry) => Some(entry),
                None => return Answer::Absent,
            },
            Reference::Tag(tag) => {
                return Answer::Unread(broken(
                    &line(repository, "index.json"),
                    None,
                    format!("{tag:?} is no tag"),
                ));
            }
        };
        let digest = match (reference, entry) {
            (Reference::Digest(digest), _) => *digest,
            (Reference::Tag(_), Some(entry)) => entry.digest,
            (Reference::Tag(_), None) => return Answer::Absent,
        };
        let bytes = match self.hashed(repository, &digest, self.limits.manifest) {
            Ok(bytes) => bytes,
            Err(Trouble::NotThere) => return Answer::Absent,
            Err(Trouble::Unread(why)) => return Answer::Unread(why),
        };
        // A layout keeps blobs and manifests together: what is no JSON object is no manifest.
        let Some(own) = media_type(&bytes) else { return Answer::Absent };
        let listed_type = || entry.map(|e| e.media_type.clone()).unwrap_or_default();
        Answer::Found(Manifest { digest, media_type: own.unwrap_or_else(listed_type), bytes })
    }

    /// Whether this blob is there (its bytes are hashed: in a folder that costs little).
    pub(super) fn holds_blob(&self, repository: &OciRepository, digest: &Digest) -> Answer<()> {
        match self.hashed(repository, digest, u64::MAX) {
            Ok(_) => Answer::Found(()),
            Err(Trouble::NotThere) => Answer::Absent,
            Err(Trouble::Unread(why)) => Answer::Unread(why),
        }
    }

    /// A blob of exactly the descriptor's size and digest.
    pub(super) fn blob(&self, repository: &OciRepository, blob: &Descriptor) -> Answer<Bytes> {
        let path = blob_path(&blob.digest);
        match self.read(repository, &path, blob.size) {
            Ok(bytes) => match check(&line(repository, &path), None, blob, bytes) {
                Ok(bytes) => Answer::Found(bytes),
                Err(why) => Answer::Unread(why),
            },
            Err(Trouble::NotThere) => Answer::Absent,
            Err(Trouble::Unread(why)) => Answer::Unread(why),
        }
    }

    /// Everything listed whose manifest names `digest` as its subject, and a fallback tag where one was copied.
    pub(super) fn referrers(&self, repository: &OciRepository, digest: &Digest) -> Referrers {
        let mut found = Gathered::new(&self.limits, Referrers::default());
        let listed = match self.index(repository) {
            Ok(listed) => listed,
            Err(Trouble::NotThere) => return found.finish(None),
            Err(Trouble::Unread(why)) => {
                found.unread(why);
                return found.finish(None);
            }
        };
        let at = line(repository, "index.json");
        let mut entries = Vec::new();
        for entry in &listed {
            let entry = match entry {
                Ok(entry) => entry,
                Err(why) => {
                    found.unread(broken(&at, None, why.clone()));
                    continue;
                }
            };
            match self.referrer(repository, &entry.digest) {
                Ok(referrer) if referrer.subject == Some(*digest) => {
                    let artifact_type = referrer.artifact_type.or_else(|| entry.artifact_type.clone());
                    entries.push(Ok(Descriptor { artifact_type, ..entry.clone() }));
                }
                Ok(_) => {}
                Err(Trouble::NotThere) => {
                    found.warn(format!("{at}: lists {}, which is not there", entry.digest));
                }
                Err(Trouble::Unread(why)) => found.unread(why),
            }
        }
        found.add_entries(Place::Layout, &at, None, entries);
        match self.manifest(repository, &Reference::Tag(fallback_tag(digest))) {
            Answer::Found(manifest) => found.add_fallback(&at, &manifest.bytes),
            Answer::Absent => {}
            Answer::Unread(why) => found.unread(why),
        }
        found.finish(None)
    }

    fn referrer(&self, repository: &OciRepository, digest: &Digest) -> Result<Referrer, Trouble> {
        let known = self.subjects.lock().unwrap_or_else(PoisonError::into_inner).get(digest).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let bytes = self.hashed(repository, digest, self.limits.manifest)?;
        let referrer = subject_of(&bytes);
        let mut subjects = self.subjects.lock().unwrap_or_else(PoisonError::into_inner);
        subjects.insert(*digest, referrer.clone());
        Ok(referrer)
    }

    /// The entries of `index.json`.
    fn index(&self, repository: &OciRepository) -> Result<Vec<Result<Descriptor, String>>, Trouble> {
        let at = line(repository, "index.json");
        let folder = self.folder(repository);
        match std::fs::metadata(&self.root) {
            Ok(root) if root.is_dir() => {}
            Ok(_) => return Err(Trouble::Unread(unreachable(&at, "the image layout root is not a folder"))),
            Err(e) => {
                let why = format!("the image layout root cannot be read: {}", io_words(&e));
                return Err(Trouble::Unread(unreachable(&at, why)));
            }
        }
        let bytes = match self.read(repository, "index.json", self.limits.manifest) {
            Err(Trouble::NotThere) if folder.join("oci-layout").exists() => {
                return Err(Trouble::Unread(broken(&at, None, "the image layout has no index.json")));
            }
            other => other?,
        };
        self.check_version(repository)?;
        match index::read(&bytes) {
            Listing::Index(entries) => Ok(entries),
            Listing::Other(what) => Err(Trouble::Unread(broken(&at, None, format!("index.json is {what}")))),
            Listing::Broken(why) => {
                Err(Trouble::Unread(broken(&at, None, format!("index.json is broken: {why}"))))
            }
        }
    }

    fn check_version(&self, repository: &OciRepository) -> Result<(), Trouble> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Marker {
            image_layout_version: String,
        }
        let at = line(repository, "oci-layout");
        let wrong = |why: &str| Trouble::Unread(broken(&at, None, why));
        let bytes = match self.read(repository, "oci-layout", 4096) {
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

    fn hashed(&self, repository: &OciRepository, digest: &Digest, cap: u64) -> Result<Bytes, Trouble> {
        let path = blob_path(digest);
        let bytes = self.read(repository, &path, cap)?;
        if Digest::of(&bytes) != *digest {
            let why = integrity(&line(repository, &path), None, "the bytes do not hash to the digest");
            return Err(Trouble::Unread(why));
        }
        Ok(bytes)
    }

    /// A file of a repository's layout, never read past `cap`.
    fn read(&self, repository: &OciRepository, path: &str, cap: u64) -> Result<Bytes, Trouble> {
        let at = line(repository, path);
        let file = self.folder(repository).join(path);
        let failed = |e: std::io::Error| match e.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Trouble::NotThere,
            _ => Trouble::Unread(unreachable(&at, format!("cannot be read: {}", io_words(&e)))),
        };
        let meta = std::fs::metadata(&file).map_err(failed)?;
        if !meta.is_file() {
            return Err(Trouble::Unread(broken(&at, None, "not a regular file")));
        }
        let mut bytes = Vec::new();
        let source = File::open(&file).map_err(failed)?;
        source.take(cap.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > cap {
            return Err(Trouble::Unread(broken(&at, None, format!("longer than {cap} bytes"))));
        }
        Ok(bytes.into())
    }
}

/// As reports name it: stable from machine to machine, so without the folder.
fn line(repository: &OciRepository, path: &str) -> String {
    format!("READ {repository}/{path}")
}

fn blob_path(digest: &Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

fn unreachable(line: &str, why: impl Into<String>) -> Unread {
    unread(Verified::RegistryUnreachable, line, None, why, false)
}

/// Without the number that `io::Error` appends.
fn io_words(error: &std::io::Error) -> String {
    error.kind().to_string()
}

/// The entry with this tag; the last one where several carry it, as tools read it.
fn tagged<'a>(listed: &'a [Result<Descriptor, String>], tag: &str) -> Option<&'a Descriptor> {
    listed.iter().flatten().rfind(|entry| {
        entry.annotations.get(REF_NAME).is_some_and(|name| {
            name == tag || name.strip_suffix(tag).is_some_and(|before| before.ends_with(':'))
        })
    })
}

/// What a manifest refers to. Bytes that are no manifest refer to nothing.
fn subject_of(bytes: &[u8]) -> Referrer {
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
