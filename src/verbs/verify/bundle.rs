//! Evidence bundles: all that proves one promotion, saved into one file, and verified from it without a network.

use super::about::About;
use super::artifact::{JudgingTrust, Subject, Verified, answer_question, build_question, find_problems};
use crate::error::{At, Failure, FailureKind};
use crate::evidence::archive::{ABOUT, Archive, ArchiveRefusal};
use crate::evidence::collect::{CollectOptions, collect_evidence};
use crate::evidence::judge;
use crate::evidence::keys::KeyRing;
use crate::model::evidence::SealOf;
use crate::model::id::{Artifact, Digest, OrderRef, PreparationName};
use crate::model::kitchen::KitchenSpec;
use crate::model::verification::{ClaimOutcome, ReadFrom, Whose};
use crate::policy::decide::verification::{ArtifactQuestion, KeptRecord};
use crate::policy::gates::evidence::describe_unread;
use crate::run::{Read, Setup};
use bytes::Bytes;
use oci_registry::{HostConfig, Registries, RegistriesConfig};
use sha2::{Digest as _, Sha256};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Where a bundle is written.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The file.
    pub file: &'a Path,
    /// Whether one that is there is replaced.
    pub overwrite: bool,
}

impl Target<'_> {
    /// Whether it may be written, as far as that can be told before the work is done.
    ///
    /// # Errors
    /// It is there, or its folder is not.
    pub fn check_writable(&self) -> Result<(), Failure> {
        if !self.overwrite && self.file.symlink_metadata().is_ok() {
            return Err(self.make_exists_failure());
        }
        match fs::metadata(self.find_folder()) {
            Ok(meta) if meta.is_dir() => Ok(()),
            Ok(_) => Err(self.make_io_failure(&io::Error::from(io::ErrorKind::NotADirectory))),
            Err(error) => Err(self.make_io_failure(&error)),
        }
    }

    fn find_folder(&self) -> &Path {
        match self.file.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            Some(_) | None => Path::new("."),
        }
    }

    fn make_exists_failure(&self) -> Failure {
        self.make_failure("it is there already, and is not replaced")
            .with_hint("name another file, or add --overwrite")
    }

    fn make_io_failure(&self, error: &io::Error) -> Failure {
        self.make_failure(&format!("cannot write it: {error}"))
    }

    fn make_failure(&self, cause: &str) -> Failure {
        Failure::new_input("bundle-file", cause)
            .with_object("the evidence bundle")
            .with_place(At::from_file(format_path(self.file)))
    }
}

fn format_path(file: &Path) -> String {
    file.display().to_string()
}

/// What was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// SHA-256 of the file.
    pub digest: Digest,
    /// Its length, bytes.
    pub size: u64,
    /// What was attached and left out, for people.
    pub left_out: Vec<String>,
}

/// Saves everything that is kept of the artifact of `question`, with the trust that judged it. The file is
/// there when it is whole, and only if it proves by itself what the registry proved: it is verified once
/// before it gets its name.
///
/// # Errors
/// Something could not be read, does not prove itself from the file alone, or cannot be written.
pub fn save_bundle(
    setup: &Setup<'_>,
    question: &ArtifactQuestion,
    kitchen: &KitchenSpec,
    records: &[Bytes],
    target: &Target<'_>,
) -> Result<Saved, Failure> {
    let of_artifact = |failure: Failure| failure.with_object(format!("artifact {}", question.artifact));
    let options = CollectOptions::default();
    let collected = setup.runtime.block_on(collect_evidence(&question.artifact, setup.registries, &options));
    let collected = collected.map_err(|why| {
        of_artifact(Failure::new(
            FailureKind::Unread,
            "not-saved",
            format!("nothing is saved: {}", describe_unread(&why)),
        ))
    })?;
    let about = About::new(question, kitchen);
    let archive = Archive::new(&question.artifact, &collected, about.to_bytes().into(), records);
    let failed = |error: io::Error| target.make_io_failure(&error);
    let file =
        tempfile::Builder::new().prefix(".expedite-").tempfile_in(target.find_folder()).map_err(failed)?;
    let mut sink = BufWriter::new(file.as_file());
    archive.write_to(&mut sink).and_then(|()| sink.flush()).map_err(failed)?;
    drop(sink);
    file.as_file().sync_all().map_err(failed)?;
    let size = file.as_file().metadata().map_err(failed)?.len();

    let bundle = Bundle::read_bundle(file.path())?;
    let named = question.seal_of.as_ref().filter(|_| question.asks_for_seal).map(|of| &of.preparation);
    let judged = Judged::Bundled { order: &question.order, preparation: named };
    let bundled = verify_bundle(setup, &bundle, judged)?;
    if bundled.verification.judge_outcome() != ClaimOutcome::Proven {
        let lacking: Vec<String> = bundled
            .verification
            .claims
            .iter()
            .filter(|c| c.required && c.outcome() != ClaimOutcome::Proven)
            .map(|c| format!("{}: {}", c.format_title(), c.says))
            .collect();
        let cause = format!(
            "nothing is saved: the file alone would not prove what the registry proved ({})",
            lacking.join("; ")
        );
        return Err(of_artifact(Failure::new(FailureKind::SaysNo, "not-saved", cause)));
    }
    // A temporary file is private; what is saved is for others.
    file.as_file().set_permissions(fs::Permissions::from_mode(0o644)).map_err(failed)?;
    let persisted = match target.overwrite {
        true => file.persist(target.file),
        false => file.persist_noclobber(target.file),
    };
    persisted.map_err(|e| match e.error.kind() {
        io::ErrorKind::AlreadyExists => target.make_exists_failure(),
        _ => target.make_io_failure(&e.error),
    })?;
    // The name is kept as safely as the bytes.
    File::open(target.find_folder()).and_then(|folder| folder.sync_all()).map_err(failed)?;
    Ok(Saved { digest: bundle.digest, size, left_out: collected.left_out })
}

/// An evidence bundle that was read whole and whose every byte is as it was written.
pub struct Bundle {
    /// As named.
    pub file: String,
    /// SHA-256 of the file.
    pub digest: Digest,
    /// What it says of itself.
    pub about: About,
    records: Vec<Bytes>,
    registries: Registries,
    /// Holds the image layout as long as it is read.
    _folder: tempfile::TempDir,
}

impl Bundle {
    /// Reads and checks it; nothing of it is believed yet.
    ///
    /// # Errors
    /// It cannot be read ([`FailureKind::Input`]), or is not as it was written ([`FailureKind::SaysNo`]).
    pub fn read_bundle(file: &Path) -> Result<Self, Failure> {
        let at = |failure: Failure| {
            failure.with_object("the evidence bundle").with_place(At::from_file(format_path(file)))
        };
        let unreadable = |error: &dyn std::fmt::Display| {
            at(Failure::new_input("bundle-unreadable", format!("cannot read it: {error}")))
        };
        let damaged = |why: String| {
            at(Failure::new(FailureKind::SaysNo, "bundle-damaged", why))
                .with_hint("it is not as it was saved; take it from where it came from again")
        };
        // Looked at before it is opened: opening a pipe would wait for ever.
        if !fs::metadata(file).map_err(|e| unreadable(&e))?.is_file() {
            return Err(unreadable(&"it is no regular file"));
        }
        let file_read = File::open(file).map_err(|e| unreadable(&e))?;
        let mut reader = Hashing { inner: BufReader::new(file_read), hash: Sha256::new() };
        let archive = Archive::read_from(&mut reader).map_err(|refused| match refused {
            ArchiveRefusal::Content(why) => damaged(why),
            ArchiveRefusal::Io(error) => unreadable(&error),
        })?;
        let digest = Digest::from_bytes(reader.hash.finalize().into());
        let about = archive.find_file(ABOUT).map(|bytes| About::parse(bytes)).transpose();
        let about = about.map_err(|why| damaged(format!("{ABOUT}: {why}")))?;
        let about = about.ok_or_else(|| damaged(format!("it has no {ABOUT}")))?;
        let temporary = |error: io::Error| {
            Failure::new(FailureKind::Internal, "temporary", format!("making a temporary folder: {error}"))
        };
        let folder = tempfile::tempdir().map_err(temporary)?;
        unpack_archive(&archive, &folder.path().join(about.repository.path())).map_err(temporary)?;
        Ok(Self {
            file: format_path(file),
            digest,
            records: archive.iter_records().cloned().collect(),
            registries: open_layout(&about.artifact(), folder.path())?,
            about,
            _folder: folder,
        })
    }

    /// Whether it is about this artifact.
    ///
    /// # Errors
    /// It is about another one.
    pub fn check_about(&self, artifact: &Artifact) -> Result<(), Failure> {
        let own = self.about.artifact();
        if own == *artifact {
            return Ok(());
        }
        let cause = format!("it holds the evidence of {own}, not of {artifact}");
        Err(Failure::new(FailureKind::SaysNo, "bundle-of-another", cause)
            .with_object("the evidence bundle")
            .with_place(At::from_file(self.file.clone())))
    }

    fn collect_kept(&self, ring: &KeyRing) -> Vec<KeptRecord> {
        let records = self.records.iter();
        records
            .map(|bytes| KeptRecord {
                place: "bundle",
                digest: Digest::hash_bytes(bytes),
                found: judge::judge_record(bytes, &self.about.digest, ring)
                    .map(|proof| crate::model::evidence::Proof { place: "bundle".into(), ..proof }),
            })
            .collect()
    }
}

/// By whose trust a bundle is judged.
pub enum Judged<'a> {
    /// By the reader's own.
    Own {
        /// The reader's sources.
        read: &'a Read,
        /// What is asked.
        subject: &'a Subject,
    },
    /// By the keys that it brought along.
    Bundled {
        /// For which Order.
        order: &'a OrderRef,
        /// The Preparation, where it was named.
        preparation: Option<&'a PreparationName>,
    },
}

/// Verifies from a bundle; nothing is asked of any registry.
///
/// # Errors
/// It is about another artifact, or what is asked contradicts itself.
pub fn verify_bundle(setup: &Setup<'_>, bundle: &Bundle, judged: Judged<'_>) -> Result<Verified, Failure> {
    let setup =
        Setup { registries: &bundle.registries, sources: Vec::new(), observed: None, ..copy_setup(setup) };
    let about = &bundle.about;
    let bundled = about.build_kitchen();
    let none = KitchenSpec::default();
    let mut verified = match judged {
        Judged::Own { read, subject } => {
            bundle.check_about(&subject.artifact)?;
            let loaded = read.world.kitchen.as_ref();
            let trust = JudgingTrust {
                kitchen: loaded.map_or(&none, |k| &k.object.spec),
                whose: Whose::Own,
                origin: loaded.map(|k| k.origin.make_place().to_string()),
            };
            let question = add_hints(build_question(&setup, read, subject, trust.kitchen)?, about);
            let ring = KeyRing::from_kitchen(trust.kitchen);
            let mut verified =
                answer_question(&setup, &question, &trust, &ring, &bundle.collect_kept(&ring), subject);
            verified.problems = find_problems(read, &subject.order);
            verified.warnings.extend(find_other_trust(&ring, &bundled, bundle));
            verified
        }
        Judged::Bundled { order, preparation } => {
            let trust = JudgingTrust { kitchen: &bundled, whose: Whose::Bundled, origin: None };
            let subject = Subject {
                artifact: about.artifact(),
                tag: None,
                order: order.clone(),
                preparation: preparation.cloned(),
            };
            let own = about.build_seal_of().filter(|of| of.order == *order);
            let named = preparation
                .filter(|name| own.as_ref().is_none_or(|of| of.preparation != **name))
                .map(|name| SealOf { order: order.clone(), preparation: name.clone(), uid: None });
            let question = ArtifactQuestion {
                artifact: about.artifact(),
                order: order.clone(),
                seal_of: named.or(own),
                asks_for_seal: preparation.is_some(),
                demanded: about.demands.clone().filter(|_| about.order == *order),
                remembered_seal: None,
                not_admitted: Vec::new(),
            };
            let ring = KeyRing::from_kitchen(&bundled);
            answer_question(&setup, &question, &trust, &ring, &bundle.collect_kept(&ring), &subject)
        }
    };
    verified.verification.from = ReadFrom::Bundle { file: bundle.file.clone(), digest: bundle.digest };
    Ok(verified)
}

/// What the bundle says of itself can only ask for more, never for less: which Preparation's seal to look for,
/// and that there has to be one where the Order itself was not read.
fn add_hints(mut question: ArtifactQuestion, about: &About) -> ArtifactQuestion {
    if question.order != about.order {
        return question;
    }
    if question.seal_of.is_none() {
        question.seal_of = about.build_seal_of();
    }
    let wanted = about.demands.as_ref().is_some_and(|d| d.approvals.is_some());
    question.asks_for_seal |= question.demanded.is_none() && wanted;
    question
}

fn find_other_trust(ring: &KeyRing, bundled: &KitchenSpec, bundle: &Bundle) -> Option<Failure> {
    let same = ring.state().fingerprint == KeyRing::from_kitchen(bundled).state().fingerprint;
    (!same).then(|| {
        let cause = "it was saved under another trust than yours; yours is what judges it here";
        Failure::new(FailureKind::Input, "other-trust", cause)
            .with_object("the evidence bundle")
            .with_place(At::from_file(bundle.file.clone()))
    })
}

/// The same setup again: all of it is borrowed or cheap.
fn copy_setup<'a>(setup: &Setup<'a>) -> Setup<'a> {
    Setup {
        sources: Vec::new(),
        observed: None,
        gather: setup.gather.clone(),
        explained: None,
        argocd_namespace: setup.argocd_namespace.clone(),
        options: setup.options.clone(),
        ..*setup
    }
}

/// The image layout of an archive, as files. Their names were checked: two fixed ones, and hashes.
fn unpack_archive(archive: &Archive, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder.join("blobs/sha256"))?;
    archive.iter_layout().try_for_each(|(name, bytes)| fs::write(folder.join(name), bytes))
}

/// The layout as the registry of its artifact, and no way to any other.
fn open_layout(artifact: &Artifact, root: &Path) -> Result<Registries, Failure> {
    let host = HostConfig { layout: Some(root.to_owned()), ..HostConfig::default() };
    let hosts = [(artifact.repository.registry().to_owned(), host)].into();
    Ok(Registries::new(RegistriesConfig { hosts, offline: true, ..RegistriesConfig::default() })?)
}

/// Hashes what is read through it.
struct Hashing<R> {
    inner: R,
    hash: Sha256,
}

impl<R: io::Read> io::Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.hash.update(&buffer[..n]);
        Ok(n)
    }
}
