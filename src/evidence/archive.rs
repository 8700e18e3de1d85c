//! The file with all evidence of one promotion: a tar that is an OCI image layout, with additional files in the
//! folder `expedite/`.
//!
//! ```text
//! blobs/sha256/<hex>             every manifest and blob, by its hash
//! expedite/SHA256SUMS            the hash of every other file, as sha256sum writes and checks it
//! expedite/bundle.json           its subject, and the trust and requirements at the time of saving
//! expedite/records/<hex>.json    signed records from the GitOps repository, by their hash
//! index.json, oci-layout         of the image layout
//! ```
//! The same content gives the same bytes: files in order, no times, no owners. Reading accepts only the exact form
//! that writing produces, so that every changed byte is detected. Links, folders and unknown names are refused, so that
//! a hostile archive cannot use them.

mod tar;

use crate::evidence::collect::Collected;
use crate::model::id::{Artifact, Digest};
use bytes::Bytes;
use oci_registry::index::OCI_INDEX;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Read, Write};

/// The file that describes the archive.
pub const ABOUT: &str = "expedite/bundle.json";
const SUMS: &str = "expedite/SHA256SUMS";
const RECORDS: &str = "expedite/records/";
const BLOBS: &str = "blobs/sha256/";
const INDEX: &str = "index.json";
const LAYOUT: &str = "oci-layout";
/// Annotation that carries a tag (image-spec, "Pre-Defined Annotation Keys").
const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// Largest archive that is read, in bytes of content.
pub const WHOLE_CAP: u64 = 512 << 20;
/// Largest file in it.
pub const FILE_CAP: u64 = 64 << 20;
/// Most files in it.
pub const FILES: usize = 8192;

/// The files of an archive, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    files: BTreeMap<String, Bytes>,
}

impl Archive {
    /// Packs the collected evidence of an artifact; `about`: the content of [`ABOUT`].
    #[must_use]
    pub fn new(artifact: &Artifact, collected: &Collected, about: Bytes, records: &[Bytes]) -> Self {
        let mut files = BTreeMap::new();
        for (digest, bytes) in &collected.blobs {
            files.insert(format!("{BLOBS}{}", digest.format_hex()), bytes.clone());
        }
        for record in records {
            files
                .insert(format!("{RECORDS}{}.json", Digest::hash_bytes(record).format_hex()), record.clone());
        }
        files.insert(ABOUT.to_owned(), about);
        files.insert(INDEX.to_owned(), build_index(artifact, collected));
        files.insert(LAYOUT.to_owned(), Bytes::from_static(br#"{"imageLayoutVersion":"1.0.0"}"#));
        let mut sums = String::new();
        for (name, bytes) in &files {
            let _ = writeln!(sums, "{}  {name}", Digest::hash_bytes(bytes).format_hex());
        }
        files.insert(SUMS.to_owned(), sums.into());
        Self { files }
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// Writing to the sink fails.
    pub fn write_to(&self, to: &mut dyn Write) -> io::Result<()> {
        tar::write_tar(&self.files, to)
    }

    /// Reads all of it, and checks every hash.
    ///
    /// # Errors
    /// Says what was changed, or that it cannot be read.
    pub fn read_from(from: &mut dyn Read) -> Result<Self, ArchiveRefusal> {
        let caps = tar::Caps { file: FILE_CAP, whole: WHOLE_CAP, files: FILES };
        let files = tar::read_tar(from, &is_name, &caps)?;
        let archive = Self { files };
        archive.check_hashes()?;
        Ok(archive)
    }

    /// A file's bytes.
    #[must_use]
    pub fn find_file(&self, name: &str) -> Option<&Bytes> {
        self.files.get(name)
    }

    /// The records, in the order of their hashes.
    pub fn iter_records(&self) -> impl Iterator<Item = &Bytes> {
        self.files.iter().filter(|(name, _)| name.starts_with(RECORDS)).map(|(_, bytes)| bytes)
    }

    /// The files of the image layout.
    pub fn iter_layout(&self) -> impl Iterator<Item = (&str, &Bytes)> {
        let of_layout = |name: &str| name == INDEX || name == LAYOUT || name.starts_with(BLOBS);
        self.files.iter().map(|(n, b)| (n.as_str(), b)).filter(move |(name, _)| of_layout(name))
    }

    fn check_hashes(&self) -> Result<(), ArchiveRefusal> {
        for name in [ABOUT, SUMS, INDEX, LAYOUT] {
            if !self.files.contains_key(name) {
                return Err(ArchiveRefusal::Content(format!("it has no {name}")));
            }
        }
        let mut sums = String::new();
        for (name, bytes) in self.files.iter().filter(|(name, _)| *name != SUMS) {
            let hex = Digest::hash_bytes(bytes).format_hex();
            let called =
                name.strip_prefix(BLOBS).or_else(|| name.strip_prefix(RECORDS)?.strip_suffix(".json"));
            if called.is_some_and(|called| called != hex) {
                return Err(ArchiveRefusal::Content(format!("{name} does not hash to its name")));
            }
            let _ = writeln!(sums, "{hex}  {name}");
        }
        let written = self.files.get(SUMS).map(|s| s.as_ref()).unwrap_or_default();
        if written == sums.as_bytes() {
            return Ok(());
        }
        let written = String::from_utf8_lossy(written);
        let other = sums.lines().find(|line| !written.lines().any(|w| w == *line));
        Err(ArchiveRefusal::Content(match other.and_then(|line| line.split_once("  ")) {
            Some((_, name)) => format!("{name} does not match its hash in {SUMS}"),
            None => format!("{SUMS} names files that are missing"),
        }))
    }
}

/// Why an archive was refused.
#[derive(Debug)]
pub enum ArchiveRefusal {
    /// Its content is not valid.
    Content(String),
    /// It cannot be read.
    Io(io::Error),
}

impl From<io::Error> for ArchiveRefusal {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Whether a file may be in an archive.
fn is_name(name: &str) -> bool {
    let is_hash = |text: &str| Digest::from_hex(text).is_ok();
    [ABOUT, SUMS, INDEX, LAYOUT].contains(&name)
        || name.strip_prefix(BLOBS).is_some_and(is_hash)
        || name.strip_prefix(RECORDS).and_then(|n| n.strip_suffix(".json")).is_some_and(is_hash)
}

/// The layout's index: the artifact, then the attached manifests.
fn build_index(artifact: &Artifact, collected: &Collected) -> Bytes {
    let entries: Vec<Value> = collected
        .manifests
        .iter()
        .map(|listed| {
            let manifest = &listed.manifest;
            let mut entry = json!({
                "mediaType": manifest.media_type,
                "digest": manifest.digest,
                "size": manifest.bytes.len(),
            });
            let name = match &listed.tag {
                Some(tag) => Some(tag.clone()),
                // Other tools need a name to extract it.
                None => (manifest.digest == artifact.digest).then(|| artifact.digest.format_hex()),
            };
            if let Some(name) = name {
                entry["annotations"] = json!({REF_NAME: name});
            }
            entry
        })
        .collect();
    json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": entries}).to_string().into()
}
