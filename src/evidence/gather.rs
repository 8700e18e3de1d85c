//! Fetches evidence for all claims of all artifacts at once, with no more requests than needed.
//!
//! For each artifact the listings are requested together (referrers, `.sig`, `.att`: always both families, so that
//! neither hides the other). Hints then order the fetching: first one likely piece per open claim, then the other
//! likely ones, then everything else in the lists. It ends as soon as no unread piece could change an answer. `judge`
//! decides what the bytes mean.

mod candidates;

use crate::error::{Failure, FailureKind};
use crate::evidence::artifact;
use crate::evidence::judge::{self, Existence, Piece, Tallies};
use crate::evidence::keys::KeyRing;
use crate::model::evidence::{ArtifactFacts, ArtifactProof, Ask, Claim, Evidence, Facts, Looked, Unread};
use crate::model::id::{Artifact, Digest};
use crate::model::reason::Verified;
use candidates::CandidateEntry;
use oci_registry::Registries;
use oci_registry::{Answer, Manifest, Reference};

pub(crate) use candidates::PREDICATE_TYPE;
use futures::StreamExt as _;
use std::collections::{BTreeMap, BTreeSet};

/// Limits for fetching.
#[derive(Debug, Clone)]
pub struct GatherOptions {
    /// Layer media types that Argo CD unpacks.
    pub layer_types: Vec<String>,
    /// Largest content layer that is fetched and examined, in bytes; for a larger one only its presence is checked.
    pub layer_cap: u64,
    /// Largest unpacked size of a content layer, bytes.
    pub unpacked_cap: u64,
    /// Largest bundle, envelope or payload, bytes.
    pub evidence_cap: u64,
    /// The same limit if scans are requested, because their reports are long.
    pub scan_cap: u64,
    /// Most pieces of evidence that are read for one artifact.
    pub candidates: usize,
    /// How many artifacts are fetched at once.
    pub artifacts: usize,
    /// Only these pieces of evidence count, as if nothing else were attached: a record is checked again with the evidence
    /// that it was based on. `None`: all.
    pub only: Option<BTreeSet<Digest>>,
}

impl Default for GatherOptions {
    fn default() -> Self {
        Self {
            layer_types: artifact::LAYER_TYPES.iter().map(|t| (*t).to_owned()).collect(),
            layer_cap: 8 << 20,
            unpacked_cap: 256 << 20,
            evidence_cap: 8 << 20,
            scan_cap: 32 << 20,
            candidates: 1000,
            artifacts: 64,
            only: None,
        }
    }
}

/// The runtime for fetching; one per process, because connections belong to it.
///
/// # Errors
/// The operating system cannot start threads.
pub fn make_runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|e| {
        Failure::new(FailureKind::Internal, "no-runtime", format!("starting the I/O threads: {e}"))
    })
}

/// [`gather_evidence`], from code that is not async.
#[must_use]
pub fn gather_blocking(
    runtime: &tokio::runtime::Runtime,
    asks: &[Ask],
    ring: &KeyRing,
    registries: &Registries,
    options: &GatherOptions,
) -> Facts {
    runtime.block_on(gather_evidence(asks, ring, registries, options))
}

/// Answers every ask. If anything is wrong with the Kitchen's trust, no request is sent at all; a claim for which no
/// key is trusted is answered without a request.
pub async fn gather_evidence(
    asks: &[Ask],
    ring: &KeyRing,
    registries: &Registries,
    options: &GatherOptions,
) -> Facts {
    let mut wanted: BTreeMap<&Artifact, BTreeSet<Claim>> = BTreeMap::new();
    for ask in asks {
        wanted.entry(&ask.artifact).or_default().extend(ask.claims.iter().cloned());
    }
    let one = |(artifact, claims): (&Artifact, BTreeSet<Claim>)| {
        let artifact = artifact.clone();
        async move {
            let (facts, warnings) = gather_artifact(&artifact, &claims, ring, registries, options).await;
            (artifact, facts, warnings)
        }
    };
    let mut answers: Vec<_> = futures::stream::iter(wanted.into_iter().map(one))
        .buffer_unordered(options.artifacts)
        .collect()
        .await;
    answers.sort_by(|(a, ..), (b, ..)| a.cmp(b));
    let mut facts = Facts { keys: ring.state().clone(), ..Facts::default() };
    for (artifact, found, warnings) in answers {
        facts.artifacts.insert(artifact, found);
        facts.warnings.extend(warnings);
    }
    facts
}

async fn gather_artifact(
    artifact: &Artifact,
    claims: &BTreeSet<Claim>,
    ring: &KeyRing,
    registries: &Registries,
    options: &GatherOptions,
) -> (ArtifactFacts, Vec<Failure>) {
    let mut facts = ArtifactFacts::default();
    let errors = &ring.state().errors;
    if !errors.is_empty() {
        let why = format!("the Kitchen's trust is wrong, so no registry was asked: {}", errors.join("; "));
        refuse_claims(claims.iter(), &why, &mut facts);
        return (facts, Vec::new());
    }
    let (askable, keyless): (BTreeSet<_>, BTreeSet<_>) = claims
        .iter()
        .cloned()
        .partition(|c| judge::find_role(c).is_none_or(|r| ring.state().usable.contains(&r)));
    for claim in &keyless {
        if let Some(role) = judge::find_role(claim) {
            let why = format!("the Kitchen trusts no key for {}", judge::format_role(role));
            refuse_claims(std::iter::once(claim), &why, &mut facts);
        }
    }
    let signed: BTreeSet<Claim> = askable.iter().filter(|c| **c != Claim::Artifact).cloned().collect();
    let registries = &registries.with_artifact_budget();
    let mut search = Search::new(artifact, &signed, ring);
    let itself = async {
        match askable.contains(&Claim::Artifact) {
            true => Some(check_artifact(artifact, registries, options).await),
            false => None,
        }
    };
    let (itself, ()) = futures::join!(itself, search.run_search(registries, options));
    let existence = match itself {
        Some((_, ref existence)) => existence.clone(),
        None if search.tallies.has_unproven() && search.unread.is_empty() => {
            match registries.holds_manifest(&artifact.repository, &artifact.digest).await {
                Answer::Found(()) => Existence::There,
                Answer::Absent => Existence::Gone,
                Answer::Unread(unread) => Existence::Unread(unread.into()),
            }
        }
        None => Existence::There,
    };
    facts.artifact = facts.artifact.or(itself.map(|(evidence, _)| evidence));
    let warnings = search.warnings.into_iter().map(|w| {
        Failure::new(FailureKind::Unread, "evidence-warning", w).with_object(format!("artifact {artifact}"))
    });
    let warnings = warnings.collect();
    search.tallies.finish_facts(&search.unread, &existence, &mut facts);
    (facts, warnings)
}

/// Answers claims without a request.
fn refuse_claims<'a>(claims: impl Iterator<Item = &'a Claim>, why: &str, facts: &mut ArtifactFacts) {
    let looked =
        Looked { why: why.to_owned(), reason: Some(Verified::SigningKeyNotReady), candidates: Vec::new() };
    for claim in claims {
        match claim {
            Claim::Artifact => facts.artifact = Some(Evidence::Missing(looked.clone())),
            Claim::Signature => facts.signature = Some(Evidence::Missing(looked.clone())),
            Claim::Provenance(order) => {
                facts.provenance.insert(order.clone(), Evidence::Missing(looked.clone()));
            }
            Claim::Approvals(of) => {
                facts.approvals.insert(of.clone(), Evidence::Missing(looked.clone()));
            }
            Claim::Attestation(kind) => {
                facts.attestations.insert(kind.clone(), Evidence::Missing(looked.clone()));
            }
            Claim::Scans => facts.scans = Some(Evidence::Missing(looked.clone())),
            Claim::Records => facts.records = Some(Evidence::Missing(looked.clone())),
        }
    }
}

/// The artifact claim, and whether the pinned manifest exists at all. `Missing` means that the manifest or its layer
/// is gone.
async fn check_artifact(
    artifact: &Artifact,
    registries: &Registries,
    options: &GatherOptions,
) -> (Evidence<ArtifactProof>, Existence) {
    let reference = Reference::Digest(artifact.digest);
    match registries.fetch_manifest(&artifact.repository, &reference).await {
        Answer::Found(manifest) => {
            (check_content(artifact, &manifest, registries, options).await, Existence::There)
        }
        Answer::Absent => (make_gone("the artifact is not in the registry".into()), Existence::Gone),
        Answer::Unread(unread) => {
            let unread = Unread::from(unread);
            (Evidence::Unread(unread.clone()), Existence::Unread(unread))
        }
    }
}

async fn check_content(
    artifact: &Artifact,
    manifest: &Manifest,
    registries: &Registries,
    options: &GatherOptions,
) -> Evidence<ArtifactProof> {
    let invalid = |why: String| {
        let why = format!("the artifact cannot be deployed: {why}");
        Evidence::Invalid(Looked { why, reason: Some(Verified::ArtifactInvalid), candidates: Vec::new() })
    };
    let layer = match artifact::find_content_layer(manifest, &options.layer_types) {
        Ok(layer) => layer,
        Err(why) => return invalid(why),
    };
    let held = if layer.size > options.layer_cap {
        registries.holds_blob(&artifact.repository, &layer.digest).await
    } else {
        match registries.fetch_blob(&artifact.repository, &layer, options.layer_cap).await {
            Answer::Found(bytes) => {
                match artifact::check_unpacks(&layer.media_type, &bytes, options.unpacked_cap) {
                    Ok(()) => Answer::Found(()),
                    Err(why) => return invalid(why),
                }
            }
            Answer::Absent => Answer::Absent,
            Answer::Unread(unread) => Answer::Unread(unread),
        }
    };
    match held {
        Answer::Found(()) => Evidence::Proven(ArtifactProof {
            media_type: manifest.media_type.clone(),
            size: manifest.bytes.len() as u64,
            layer: layer.digest,
            layer_media_type: layer.media_type,
        }),
        Answer::Absent => make_gone(format!(
            "the artifact's layer {} is not in the registry, only its manifest",
            layer.digest
        )),
        Answer::Unread(unread) => Evidence::Unread(unread.into()),
    }
}

fn make_gone<P>(why: String) -> Evidence<P> {
    Evidence::Missing(Looked { why, reason: Some(Verified::ArtifactNotFound), candidates: Vec::new() })
}

/// One artifact's search for signed evidence.
struct Search<'a> {
    artifact: &'a Artifact,
    claims: &'a BTreeSet<Claim>,
    ring: &'a KeyRing,
    tallies: Tallies<'a>,
    unread: Vec<Unread>,
    warnings: Vec<String>,
    /// How many pieces were read.
    read: usize,
}

impl<'a> Search<'a> {
    fn new(artifact: &'a Artifact, claims: &'a BTreeSet<Claim>, ring: &'a KeyRing) -> Self {
        let tallies = Tallies::new(claims, ring);
        Self { artifact, claims, ring, tallies, unread: Vec::new(), warnings: Vec::new(), read: 0 }
    }

    async fn run_search(&mut self, registries: &Registries, options: &GatherOptions) {
        if self.claims.is_empty() {
            return;
        }
        let listed = candidates::list_candidates(self.artifact, self.claims, registries).await;
        listed.pieces.iter().for_each(|p| self.weigh_piece(p, options));
        self.unread.extend(listed.unread);
        self.read_all(listed.entries, registries, options).await;
        if self.tallies.has_unproven() && listed.referrers.left_out.is_some() {
            let more = candidates::list_left_out(self.artifact, listed.referrers, registries).await;
            self.unread.extend(more.unread);
            self.warnings.extend(more.warnings);
            self.read_all(more.entries, registries, options).await;
        } else {
            self.unread.extend(listed.referrers.unread.map(Unread::from));
            self.warnings.extend(listed.referrers.warnings);
        }
        self.warnings.sort();
        self.warnings.dedup();
    }

    fn weigh_piece(&mut self, piece: &Piece<'_>, options: &GatherOptions) {
        if options.only.as_ref().is_none_or(|only| only.contains(&piece.digest)) {
            self.tallies.weigh_piece(piece);
        }
    }

    /// Reads entries, the likely ones first, until no remaining entry could change an answer.
    async fn read_all(
        &mut self,
        mut entries: Vec<CandidateEntry>,
        registries: &Registries,
        options: &GatherOptions,
    ) {
        let cap = if self.claims.contains(&Claim::Scans) { options.scan_cap } else { options.evidence_cap };
        let fetch = candidates::Fetch {
            artifact: self.artifact,
            registries,
            ring: self.ring,
            claims: self.claims,
            cap,
            only: options.only.as_ref(),
        };
        let room = options.candidates.saturating_sub(self.read);
        if entries.len() > room {
            entries.truncate(room);
            self.unread.push(Unread {
                reason: Verified::RegistryError,
                request: self.artifact.to_string(),
                status: None,
                why: format!(
                    "more than {} pieces of evidence are attached; the rest was not read",
                    options.candidates
                ),
                retryable: false,
            });
        }
        self.read += entries.len();
        let mut round = 0;
        while !entries.is_empty() {
            let open = self.tallies.collect_open();
            if open.is_empty() {
                return;
            }
            let batch = take_batch(&mut entries, &open, round);
            round += 1;
            // Also within a batch, fetching stops when no claim is open. Responses are weighed in a stable order, so
            // that the same registry content always gives the same proof.
            let mut answers =
                futures::stream::iter(batch.into_iter().map(|e| fetch.read_entry(e))).buffered(AT_ONCE);
            while let Some(read) = answers.next().await {
                read.pieces.iter().for_each(|p: &Piece<'_>| self.weigh_piece(p, options));
                self.unread.extend(read.unread);
                self.warnings.extend(read.warnings);
                if self.tallies.collect_open().is_empty() {
                    break;
                }
            }
        }
    }
}

/// Most pieces of one artifact that are fetched at once; the registry's own limit applies as well.
const AT_ONCE: usize = 16;

/// Entries to read next. Round 0: one likely entry per open claim; round 1: all likely ones; then the rest. If every
/// piece must be read anyway, there is one round.
fn take_batch(entries: &mut Vec<CandidateEntry>, open: &[Claim], round: u32) -> Vec<CandidateEntry> {
    if round >= 2 || open.iter().any(judge::needs_all) {
        return std::mem::take(entries);
    }
    let mut batch = Vec::new();
    let mut rest = Vec::new();
    let mut served: Vec<&Claim> = Vec::new();
    for entry in std::mem::take(entries) {
        let for_claims: Vec<&Claim> = open.iter().filter(|c| entry.is_likely(c)).collect();
        let take = match round {
            0 => for_claims.iter().any(|c| !served.contains(c)),
            _ => !for_claims.is_empty(),
        };
        if take {
            served.extend(for_claims);
            batch.push(entry);
        } else {
            rest.push(entry);
        }
    }
    *entries = rest;
    if batch.is_empty() { std::mem::take(entries) } else { batch }
}
