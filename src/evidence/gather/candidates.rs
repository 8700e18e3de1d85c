//! The listed entries of an artifact, and how each one is fetched.

use crate::evidence::artifact::{self, ImageManifest};
use crate::evidence::envelope::{self, BUNDLE_PREFIX, ENVELOPE};
use crate::evidence::judge::{self, Hint, Piece, PieceContent};
use crate::evidence::keys::KeyRing;
use crate::evidence::simple_signing::{CERTIFICATE, PAYLOAD, SIGNATURE};
use crate::model::evidence::{Claim, Unread};
use crate::model::id::{Artifact, Digest};
use crate::model::reason::Verified;
use oci_registry::Registries;
use oci_registry::{Answer, Descriptor, EvidencePlace, Manifest, Reference, Referrers};
use std::collections::{BTreeMap, BTreeSet};

/// Annotation of a bundle's manifest with its predicate type. A hint.
pub(crate) const PREDICATE_TYPE: &str = "dev.sigstore.bundle.predicateType";
/// Artifact type of cosign's OCI 1.1 experimental signatures.
const EXPERIMENTAL: &str = "application/vnd.dev.cosign.artifact.sig.v1+json";
/// Most different layers of one manifest that are read.
const LAYERS: usize = 64;

/// A listed entry that is not fetched yet.
pub(super) struct CandidateEntry {
    place: EvidencePlace,
    hint: Hint,
    what: What,
}

enum What {
    /// A manifest that refers to the artifact.
    Referrer(Descriptor),
    /// Layers with the same bytes: one fetch, judged once per use.
    Layer { blob: Descriptor, uses: Vec<Use> },
}

/// One layer's annotations.
struct Use {
    form: Form,
    signature: String,
    keyless: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Simple,
    Envelope,
    Bundle,
    Bare,
}

impl CandidateEntry {
    /// Whether its hints say that it is for `claim`.
    pub(super) fn is_likely(&self, claim: &Claim) -> bool {
        match self.hint {
            Hint::Unknown | Hint::Attestation => false,
            Hint::Signature | Hint::Type(_) => self.hint.can_be(claim),
        }
    }

    /// A stable order: the cheaper tags first, then by digest.
    fn rank_entry(&self) -> (bool, EvidencePlace, Digest) {
        match &self.what {
            What::Layer { blob, .. } => (false, self.place, blob.digest),
            What::Referrer(d) => (true, self.place, d.digest),
        }
    }
}

/// All listed entries.
#[derive(Default)]
pub(super) struct Candidates {
    pub(super) entries: Vec<CandidateEntry>,
    /// Pieces that are broken already in the list, so that they need no fetching.
    pub(super) pieces: Vec<Piece<'static>>,
    /// Tags that could not be read.
    pub(super) unread: Vec<Unread>,
    /// The list of referrers itself.
    pub(super) referrers: Referrers,
}

/// Asks all places at once: referrers always, `.sig` for a signature, `.att` for a statement.
pub(super) async fn list_candidates(
    artifact: &Artifact,
    claims: &BTreeSet<Claim>,
    registries: &Registries,
) -> Candidates {
    let tag = |suffix: &str| Reference::Tag(format!("sha256-{}.{suffix}", artifact.digest.format_hex()));
    let (sig, att) = (tag("sig"), tag("att"));
    let by_tag = |wanted: bool, reference| async move {
        match wanted {
            true => registries.fetch_manifest(&artifact.repository, reference).await,
            false => Answer::Absent,
        }
    };
    let statements = claims.iter().any(|c| !matches!(c, Claim::Signature | Claim::Artifact));
    let (referrers, sig, att) = futures::join!(
        registries.fetch_referrers(&artifact.repository, &artifact.digest),
        by_tag(claims.contains(&Claim::Signature), &sig),
        by_tag(statements, &att),
    );
    let entries = referrers.entries.iter().cloned().map(make_referrer).collect();
    let mut all = Candidates { entries, referrers, ..Candidates::default() };
    all.add_tagged(EvidencePlace::SigTag, sig);
    all.add_tagged(EvidencePlace::AttTag, att);
    all.entries.sort_by_key(CandidateEntry::rank_entry);
    all
}

/// The entries that are not in the list because their place was left out.
pub(super) struct LeftOut {
    pub(super) entries: Vec<CandidateEntry>,
    pub(super) unread: Option<Unread>,
    pub(super) warnings: Vec<String>,
}

/// Reads the place that was left out.
pub(super) async fn list_left_out(
    artifact: &Artifact,
    listed: Referrers,
    registries: &Registries,
) -> LeftOut {
    let known: BTreeSet<Digest> = listed.entries.iter().map(|(_, d)| d.digest).collect();
    let all = registries.fetch_left_out_referrers(&artifact.repository, &artifact.digest, listed).await;
    let more = all.entries.into_iter().filter(|(_, d)| !known.contains(&d.digest));
    let mut entries: Vec<CandidateEntry> = more.map(make_referrer).collect();
    entries.sort_by_key(CandidateEntry::rank_entry);
    LeftOut { entries, unread: all.unread.map(Unread::from), warnings: all.warnings }
}

fn make_referrer((place, descriptor): (EvidencePlace, Descriptor)) -> CandidateEntry {
    let hint = match descriptor.artifact_type.as_deref() {
        Some(EXPERIMENTAL) => Hint::Signature,
        Some(_) | None => {
            Hint::from_predicate_type(descriptor.annotations.get(PREDICATE_TYPE).map(String::as_str))
        }
    };
    CandidateEntry { place, hint, what: What::Referrer(descriptor) }
}

impl Candidates {
    fn add_tagged(&mut self, place: EvidencePlace, answer: Answer<Manifest>) {
        let manifest = match answer {
            Answer::Absent => return,
            Answer::Unread(unread) => return self.unread.push(unread.into()),
            Answer::Found(manifest) => manifest,
        };
        let (form, hint) = match place {
            EvidencePlace::SigTag => (Form::Simple, Hint::Signature),
            EvidencePlace::AttTag
            | EvidencePlace::Api
            | EvidencePlace::FallbackTag
            | EvidencePlace::Layout => (Form::Envelope, Hint::Attestation),
        };
        let image = match artifact::parse_image(&manifest) {
            Ok(image) => image,
            Err(why) => {
                return self.pieces.push(make_broken(
                    place,
                    manifest.digest,
                    format!("the tag: {why}"),
                    hint,
                ));
            }
        };
        let (layers, more) = group_distinct(image.layers.unwrap_or_default());
        if more {
            self.unread.push(refuse_layer_count(manifest.digest));
        }
        for (blob, same) in layers {
            let hint = match blob.annotations.get("predicateType") {
                Some(kind) if form == Form::Envelope => Hint::Type(kind.clone()),
                Some(_) | None => hint.clone(),
            };
            let mut uses = Vec::new();
            for layer in same {
                match find_usage(form, &layer) {
                    Some(one) => uses.push(one),
                    None => self.pieces.push(make_unsigned(place, layer.digest)),
                }
            }
            if !uses.is_empty() {
                self.entries.push(CandidateEntry { place, hint, what: What::Layer { blob, uses } });
            }
        }
    }
}

/// `None`: a payload layer without its signature annotation.
fn find_usage(form: Form, layer: &Descriptor) -> Option<Use> {
    let signature = layer.annotations.get(SIGNATURE).cloned();
    let keyless = layer.annotations.contains_key(CERTIFICATE);
    match form {
        Form::Simple => Some(Use { form, signature: signature?, keyless }),
        Form::Envelope | Form::Bundle | Form::Bare => {
            Some(Use { form, signature: String::new(), keyless: false })
        }
    }
}

fn make_unsigned(place: EvidencePlace, digest: Digest) -> Piece<'static> {
    make_broken(place, digest, "the layer has no signature annotation".into(), Hint::Signature)
}

fn make_broken(place: EvidencePlace, digest: Digest, why: String, hint: Hint) -> Piece<'static> {
    Piece { place: place.as_str(), digest, blob: digest, content: PieceContent::Unreadable { why, hint } }
}

fn refuse_layer_count(manifest: Digest) -> Unread {
    Unread {
        reason: Verified::RegistryError,
        request: manifest.to_string(),
        status: None,
        why: format!("it has more than {LAYERS} different layers; the rest was not read"),
        retryable: false,
    }
}

fn refuse_size(place: EvidencePlace, named: Digest, why: String) -> Unread {
    Unread {
        reason: Verified::RegistryError,
        request: format!("{named} ({})", place.as_str()),
        status: None,
        why,
        retryable: false,
    }
}

/// Layers grouped by digest, and whether there were more different ones than the limit.
fn group_distinct(layers: Vec<Descriptor>) -> (Vec<(Descriptor, Vec<Descriptor>)>, bool) {
    let mut groups: BTreeMap<Digest, (Descriptor, Vec<Descriptor>)> = BTreeMap::new();
    let mut more = false;
    for layer in layers {
        if groups.len() == LAYERS && !groups.contains_key(&layer.digest) {
            more = true;
            continue;
        }
        groups.entry(layer.digest).or_insert_with(|| (layer.clone(), Vec::new())).1.push(layer);
    }
    (groups.into_values().collect(), more)
}

/// How entries of one artifact are fetched.
pub(super) struct Fetch<'a, 'r> {
    pub(super) artifact: &'a Artifact,
    pub(super) registries: &'a Registries,
    pub(super) ring: &'r KeyRing,
    /// The requested claims.
    pub(super) claims: &'a BTreeSet<Claim>,
    pub(super) cap: u64,
    /// As in `GatherOptions`.
    pub(super) only: Option<&'a BTreeSet<Digest>>,
}

/// The result of fetching one entry.
#[derive(Default)]
pub(super) struct FetchedEntry<'r> {
    pub(super) pieces: Vec<Piece<'r>>,
    pub(super) unread: Vec<Unread>,
    pub(super) warnings: Vec<String>,
}

impl<'r> Fetch<'_, 'r> {
    pub(super) async fn read_entry(&self, entry: CandidateEntry) -> FetchedEntry<'r> {
        let mut read = FetchedEntry::default();
        match entry.what {
            What::Layer { blob, uses } => {
                let named = blob.digest;
                self.read_layer(entry.place, named, &blob, &uses, &entry.hint, &mut read).await;
            }
            What::Referrer(descriptor) => {
                self.read_referrer(entry.place, &descriptor, entry.hint, &mut read).await
            }
        }
        read
    }

    async fn read_referrer(
        &self,
        place: EvidencePlace,
        descriptor: &Descriptor,
        hint: Hint,
        read: &mut FetchedEntry<'r>,
    ) {
        let reference = Reference::Digest(descriptor.digest);
        let manifest = match self.registries.fetch_manifest(&self.artifact.repository, &reference).await {
            Answer::Found(manifest) => manifest,
            Answer::Absent => {
                read.warnings.push(format!(
                    "the {} lists {}, which is not in the registry",
                    place.as_str(),
                    descriptor.digest
                ));
                return;
            }
            Answer::Unread(unread) => return read.unread.push(unread.into()),
        };
        if hint == Hint::Unknown && !artifact::is_image(&manifest) {
            return; // An index or a newer format: it has no layer that we can read.
        }
        let image = match artifact::parse_image(&manifest) {
            Ok(image) => image,
            Err(why) => return read.pieces.push(make_broken(place, manifest.digest, why, hint)),
        };
        let annotations = image.annotations.clone().unwrap_or_default();
        let hint = match annotations.get(PREDICATE_TYPE) {
            Some(kind) => Hint::from_predicate_type(Some(kind)),
            None => hint,
        };
        let is_bundle = |d: &Descriptor| d.media_type.starts_with(BUNDLE_PREFIX);
        let bundles = image.layers.iter().flatten().filter(|d| is_bundle(d)).count();
        if bundles > 1 {
            let why = format!("its manifest has {bundles} bundle layers, but only one is allowed");
            return read.pieces.push(make_broken(place, manifest.digest, why, hint));
        }
        if bundles == 0 && has_bundle_type(&image) {
            let why = "its manifest has the type of a bundle but contains none".to_owned();
            read.pieces.push(make_broken(place, manifest.digest, why, hint.clone()));
        }
        let (layers, more) = group_distinct(image.layers.unwrap_or_default());
        if more {
            read.unread.push(refuse_layer_count(manifest.digest));
        }
        for (blob, same) in layers {
            let form = match blob.media_type.as_str() {
                t if t.starts_with(BUNDLE_PREFIX) => Form::Bundle,
                PAYLOAD => Form::Simple,
                ENVELOPE => Form::Envelope,
                envelope::IN_TOTO => Form::Bare,
                _ => continue,
            };
            let uses: Vec<Use> = same.iter().filter_map(|l| find_usage(form, l)).collect();
            if uses.len() < same.len() {
                read.pieces.push(make_unsigned(place, blob.digest));
            }
            if !uses.is_empty() {
                self.read_layer(place, manifest.digest, &blob, &uses, &hint, read).await;
            }
        }
    }

    /// `named`: the digest by which a user can find the piece.
    async fn read_layer(
        &self,
        place: EvidencePlace,
        named: Digest,
        blob: &Descriptor,
        uses: &[Use],
        hint: &Hint,
        read: &mut FetchedEntry<'r>,
    ) {
        if blob.size > self.cap {
            let why = format!("it is {} bytes long; at most {} are read", blob.size, self.cap);
            // For claims where the newest piece decides, this may be the newest, so the others prove nothing.
            let decides = |claim: &Claim| judge::needs_all(claim) && hint.can_be(claim);
            let counts = self.only.is_none_or(|only| only.contains(&named));
            if counts && self.claims.iter().any(decides) {
                read.unread.push(refuse_size(place, named, why.clone()));
            }
            return read.pieces.push(make_broken(place, named, why, hint.clone()));
        }
        let bytes = match self.registries.fetch_blob(&self.artifact.repository, blob, self.cap).await {
            Answer::Found(bytes) => bytes,
            Answer::Unread(unread) => return read.unread.push(unread.into()),
            Answer::Absent => {
                return read.unread.push(Unread {
                    reason: Verified::RegistryError,
                    request: format!("blob {}", blob.digest),
                    status: None,
                    why: format!("the evidence is listed ({}), but its blob is missing", place.as_str()),
                    retryable: false,
                });
            }
        };
        let digest = &self.artifact.digest;
        for one in uses {
            let content = match one.form {
                Form::Simple => match PieceContent::from_simple(&bytes, &one.signature, digest, self.ring) {
                    PieceContent::Simple { signer: Err(_), about } if one.keyless => {
                        let why = "it is signed with a certificate (keyless), not with a trusted key";
                        PieceContent::Simple { signer: Err(why.into()), about }
                    }
                    other => other,
                },
                Form::Envelope => PieceContent::from_envelope(&bytes, hint.clone(), digest, self.ring),
                Form::Bundle => PieceContent::from_bundle(&bytes, hint.clone(), digest, self.ring),
                Form::Bare => PieceContent::from_unsigned(bytes.to_vec(), hint.clone(), digest),
            };
            read.pieces.push(Piece { place: place.as_str(), digest: named, blob: blob.digest, content });
        }
    }
}

fn has_bundle_type(image: &ImageManifest) -> bool {
    image.artifact_type.as_deref().is_some_and(|t| t.starts_with(BUNDLE_PREFIX))
}
