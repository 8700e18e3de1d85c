//! Attaches a record in an image layout folder, safely with other processes that do the same.
//!
//! Blobs appear complete under their name. `index.json` is replaced in one step while `oci-layout` is locked, so that no
//! entry of two writers is lost; the file is read again to detect tools that do not lock.

use crate::answer::Unread;
use crate::answer::UnreadReason;
use crate::answer::{Answer, Reference};
use crate::attach::{AttachError, AttachOutcome, AttachedRecord};
use crate::fault::{make_broken_unread, make_unread};
use crate::id::{Digest, OciRepository};
use crate::index_entry::{Entered, NotEntered, build_descriptor, enter_descriptor};
use crate::layout::{Layouts, format_line};
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest wait for another writer. Writing takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

impl Layouts {
    /// Attaches.
    pub(crate) fn attach_record(
        &self,
        repository: &OciRepository,
        record: &AttachedRecord<'_>,
    ) -> Result<AttachOutcome, AttachError> {
        match self.read_manifest(repository, &Reference::Digest(*record.subject)) {
            Answer::Found(_) => {}
            Answer::Absent => return Err(AttachError::SubjectGone(*record.subject)),
            Answer::Unread(why) => return Err(AttachError::Failed(why)),
        }
        let folder = self.resolve_folder(repository);
        let failed = |path: &str, e: &io::Error| {
            let why = format!("cannot be written: {}", e.kind());
            make_unread(UnreadReason::Unreachable, &format_line(repository, path), None, why, false)
        };
        let _lock = lock_file(&folder.join("oci-layout"))
            .map_err(|e| AttachError::Failed(failed("oci-layout", &e)))?;

        let manifest = (*record.digest, record.manifest);
        let blobs = record.blobs.iter().map(|(digest, bytes)| (*digest, bytes.as_ref()));
        let stored =
            blobs.chain([manifest]).try_for_each(|(digest, bytes)| store_blob(&folder, &digest, bytes));
        stored.map_err(|e| AttachError::Failed(failed("blobs/sha256", &e)))?;

        let not_listed = |e: io::Error| AttachError::NotListed(failed("index.json", &e));
        let entry = build_descriptor(record.manifest, record.digest);
        let mut outcome = AttachOutcome::Already;
        let tries = self.limits.index_tries;
        for round in 0..=tries {
            let list = fs::read(folder.join("index.json")).map_err(not_listed)?;
            let bytes = match enter_descriptor(Some(&list), &entry) {
                Ok(Entered::Already) => return Ok(outcome),
                Ok(Entered::Changed(_)) if round == tries => break,
                Ok(Entered::Changed(bytes)) => bytes,
                Err(NotEntered::NotAnIndex(what)) => {
                    return Err(AttachError::NotListed(self.make_index_unread(repository, &what)));
                }
            };
            replace_file(&folder, "index.json", &bytes).map_err(not_listed)?;
            outcome = AttachOutcome::New;
        }
        Err(AttachError::Contended { tag: "index.json".into(), tries })
    }

    fn make_index_unread(&self, repository: &OciRepository, what: &str) -> Unread {
        make_broken_unread(&format_line(repository, "index.json"), None, format!("index.json is {what}"))
    }
}

/// The lock ends with the file handle, also when the process is killed.
fn lock_file(file: &Path) -> io::Result<File> {
    let file = File::open(file)?;
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if start.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::TimedOut.into()),
            Err(TryLockError::Error(e)) => return Err(e),
        }
    }
}

/// Stores a blob under its digest; an existing one with the right bytes is kept, a broken one is replaced.
fn store_blob(folder: &Path, digest: &Digest, bytes: &[u8]) -> io::Result<()> {
    let blobs = folder.join("blobs/sha256");
    if fs::read(blobs.join(digest.format_hex())).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    fs::create_dir_all(&blobs)?;
    replace_file(&blobs, &digest.format_hex(), bytes)
}

/// Replaces a file in one step: it has all of the new bytes, or its old content.
fn replace_file(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(".expedite-").tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    // A temporary file is private, but other users may read layouts.
    file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
    let target = folder.join(name);
    file.persist(target).map_err(|e| e.error)?;
    Ok(())
}
