//! Blobs in a folder, kept between runs. Each is hashed before use, so that a manipulated folder only causes cache
//! misses; the registry is still asked whether it has the blob. A folder that cannot be written causes only a warning.

use crate::answer::Descriptor;
use crate::id::Digest;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

#[derive(Debug)]
pub(crate) struct BlobCache {
    folder: Option<PathBuf>,
    warnings: Mutex<BTreeSet<String>>,
}

impl BlobCache {
    pub(crate) fn new(folder: Option<PathBuf>) -> Self {
        Self { folder: folder.map(|f| f.join("sha256")), warnings: Mutex::default() }
    }

    /// The blob, if it exists and has the right hash.
    pub(crate) fn get(&self, blob: &Descriptor) -> Option<Bytes> {
        let path = self.folder.as_ref()?.join(blob.digest.format_hex());
        if !fs::metadata(&path).is_ok_and(|meta| meta.is_file() && meta.len() == blob.size) {
            return None;
        }
        let mut bytes = Vec::new();
        File::open(&path).ok()?.take(blob.size).read_to_end(&mut bytes).ok()?;
        (Digest::hash_bytes(&bytes) == blob.digest).then(|| bytes.into())
    }

    /// Keeps bytes that were hashed.
    pub(crate) fn store_blob(&self, digest: &Digest, bytes: &[u8]) {
        let Some(folder) = &self.folder else { return };
        let written = (|| {
            fs::create_dir_all(folder)?;
            // A file must never be partly written under its name, because another run may be reading it.
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            file.write_all(bytes)?;
            file.persist(folder.join(digest.format_hex())).map_err(|e| e.error)?;
            io::Result::Ok(())
        })();
        if let Err(error) = written {
            let why = format!("blob cache {}: {}", folder.display(), error.kind());
            self.warnings.lock().unwrap_or_else(PoisonError::into_inner).insert(why);
        }
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn blob(bytes: &[u8]) -> Descriptor {
        let json = serde_json::json!({"digest": Digest::hash_bytes(bytes), "size": bytes.len()});
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn what_is_kept_is_hashed_before_use() {
        let folder = tempfile::tempdir().unwrap();
        let cache = BlobCache::new(Some(folder.path().to_owned()));
        assert_eq!(cache.get(&blob(b"evidence")), None);
        cache.store_blob(&Digest::hash_bytes(b"evidence"), b"evidence");
        assert_eq!(cache.get(&blob(b"evidence")).as_deref(), Some(&b"evidence"[..]));
        let file = folder.path().join("sha256").join(Digest::hash_bytes(b"evidence").format_hex());
        for poison in [&b"evidencf"[..], b"evidence and more", b""] {
            fs::write(&file, poison).unwrap();
            assert_eq!(cache.get(&blob(b"evidence")), None);
        }
        cache.store_blob(&Digest::hash_bytes(b"evidence"), b"evidence");
        assert!(cache.get(&blob(b"evidence")).is_some(), "a poisoned file is replaced");
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        assert_eq!(cache.get(&blob(b"evidence")), None);
        assert!(cache.warnings().is_empty());
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_one_warning() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let cache = BlobCache::new(Some(file.path().join("below-a-file")));
        for bytes in [&b"a"[..], b"b"] {
            cache.store_blob(&Digest::hash_bytes(bytes), bytes);
            assert_eq!(cache.get(&blob(bytes)), None);
        }
        assert_eq!(cache.warnings().len(), 1, "{:?}", cache.warnings());
        BlobCache::new(None).store_blob(&Digest::hash_bytes(b"a"), b"a");
    }
}
