//! Whether what was fetched proves what was asked. Pure: bytes and keys in, verdicts out.
//!
//! Each piece of evidence is read once ([`Piece`]) and weighed for every claim. Only signed content
//! decides; the hints of a registry at most say for which claim something that cannot be read counts as
//! "there, but wrong". One good piece wins over any number of bad ones. Where the newest of several
//! decides (seals, scans, statements, records), nothing is proven while a piece could not be read.

use crate::evidence::approvals;
use crate::evidence::envelope;
use crate::evidence::keys::{KeyRing, TrustedKey};
use crate::evidence::provenance;
use crate::evidence::scans;
use crate::evidence::simple_signing;
use crate::evidence::statement::{self, COSIGN_SIGN, Parsed};
use crate::model::evidence::{
    ArtifactFacts, Candidate, Claim, Evidence, Looked, Proof, ProvenanceProof, ScanProof, SealOf, SealProof,
    Statement, Unread,
};
use crate::model::id::{Digest, OrderRef};
use crate::model::kitchen::Role;
use crate::model::reason::Verified;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Predicate type of promotion records.
pub const PROMOTION: &str = "https://kokumi.dev/attestations/promotion/v1";
/// Predicate type of deployment records.
pub const DEPLOYMENT: &str = "https://kokumi.dev/attestations/deployment/v1";

/// The role a key needs to vouch for a claim; none is needed for the artifact itself.
#[must_use]
pub fn role_of(claim: &Claim) -> Option<Role> {
    match claim {
        Claim::Artifact => None,
        Claim::Signature => Some(Role::Signature),
        Claim::Provenance(_) => Some(Role::Provenance),
        Claim::Approvals(_) => Some(Role::Approvals),
        Claim::Attestation(_) => Some(Role::Checks),
        Claim::Scans => Some(Role::Scans),
        Claim::Records => Some(Role::Records),
    }
}

/// Whether every piece has to be read, because the newest (or all) count and not just any.
#[must_use]
pub fn needs_all(claim: &Claim) -> bool {
    match claim {
        Claim::Artifact | Claim::Signature | Claim::Provenance(_) => false,
        Claim::Approvals(_) | Claim::Attestation(_) | Claim::Scans | Claim::Records => true,
    }
}

/// What a registry says that something is: never proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// Nothing that helps.
    Unknown,
    /// A cosign signature.
    Signature,
    /// A statement of whatever type, but no signature: what stands in a `.att` manifest.
    Attestation,
    /// A statement of this predicate type.
    Type(String),
}

impl Hint {
    /// From a predicate type in an annotation.
    #[must_use]
    pub fn of(predicate_type: Option<&str>) -> Self {
        match predicate_type {
            None | Some("") => Self::Unknown,
            Some(COSIGN_SIGN) => Self::Signature,
            Some(other) => Self::Type(other.to_owned()),
        }
    }

    /// Whether something with this hint may be meant for `claim`.
    #[must_use]
    pub fn may_be(&self, claim: &Claim) -> bool {
        match self {
            Self::Unknown => !matches!(claim, Claim::Artifact),
            Self::Signature => *claim == Claim::Signature,
            Self::Attestation => !matches!(claim, Claim::Artifact | Claim::Signature),
            Self::Type(kind) => is_of(kind, claim),
        }
    }
}

/// Whether a statement of this predicate type speaks to `claim`.
fn is_of(predicate_type: &str, claim: &Claim) -> bool {
    match claim {
        Claim::Artifact => false,
        Claim::Signature => predicate_type == COSIGN_SIGN,
        Claim::Provenance(_) => provenance::is_provenance(predicate_type),
        Claim::Approvals(_) => predicate_type == approvals::APPROVAL,
        Claim::Attestation(wanted) => predicate_type == wanted,
        Claim::Scans => scans::is_scan(predicate_type),
        Claim::Records => predicate_type == PROMOTION || predicate_type == DEPLOYMENT,
    }
}

/// What a piece of evidence turned out to be, by its own content.
#[derive(Debug)]
pub enum Content<'r> {
    /// A simple-signing payload.
    Simple {
        /// Who signed it, or why nobody whom we trust.
        signer: Result<&'r TrustedKey, String>,
        /// Whether it is about the artifact.
        about: Result<(), String>,
    },
    /// An in-toto statement.
    Statement {
        /// Who signed it, or why nobody whom we trust.
        signer: Result<&'r TrustedKey, String>,
        /// What it says.
        parsed: Parsed,
        /// Whether it may stand for a signature: a bundle may, an attestation in a `.att` manifest may not.
        may_sign: bool,
    },
    /// Something that could not be read as either.
    Unreadable {
        /// Why.
        why: String,
        /// What it may have been meant to be.
        hint: Hint,
    },
}

impl<'r> Content<'r> {
    /// Reads a `.sig` layer: its bytes and its signature annotation.
    #[must_use]
    pub fn simple(payload: &[u8], signature: &str, digest: &Digest, ring: &'r KeyRing) -> Self {
        Self::Simple {
            signer: simple_signing::signer(payload, signature, ring),
            about: simple_signing::is_about(payload, digest),
        }
    }

    /// Reads a sigstore bundle.
    #[must_use]
    pub fn bundle(bytes: &[u8], hint: Hint, digest: &Digest, ring: &'r KeyRing) -> Self {
        Self::opened(envelope::open_bundle(bytes, ring), hint, true, digest)
    }

    /// Reads a DSSE envelope.
    #[must_use]
    pub fn envelope(bytes: &[u8], hint: Hint, digest: &Digest, ring: &'r KeyRing) -> Self {
        Self::opened(envelope::open_envelope(bytes, ring), hint, false, digest)
    }

    /// Reads a bare statement, as older controllers attach approvals: never proof.
    #[must_use]
    pub fn unsigned(bytes: Vec<u8>, hint: Hint, digest: &Digest) -> Self {
        let signer = Err("it is not signed".to_owned());
        Self::opened(Ok(envelope::Opened { payload: bytes, signer }), hint, false, digest)
    }

    fn opened(
        opened: Result<envelope::Opened<'r>, String>,
        hint: Hint,
        may_sign: bool,
        digest: &Digest,
    ) -> Self {
        let read = opened.and_then(|o| Ok((o.signer, statement::parse(&o.payload, digest)?)));
        match read {
            Ok((signer, parsed)) => Self::Statement { signer, parsed, may_sign },
            Err(why) => Self::Unreadable { why, hint },
        }
    }
}

/// One piece of evidence: where it was found, and what it is.
#[derive(Debug)]
pub struct Piece<'r> {
    /// Where, in words.
    pub place: &'static str,
    /// Its manifest (bundle referrer) or layer (`.sig`, `.att`).
    pub digest: Digest,
    /// The signed file itself.
    pub blob: Digest,
    /// What it is.
    pub content: Content<'r>,
}

/// How near a piece came to proving a claim: the nearest one gives the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Near {
    Unreadable,
    Stranger,
    WrongRole,
    WrongSubject,
    WrongContent,
}

#[derive(Debug)]
struct Tally<P> {
    proven: Vec<P>,
    refused: Vec<(Near, Candidate)>,
}

impl<P> Tally<P> {
    fn new() -> Self {
        Self { proven: Vec::new(), refused: Vec::new() }
    }

    fn add(&mut self, piece: &Piece<'_>, outcome: Result<P, (Near, String)>) {
        match outcome {
            Ok(proof) => self.proven.push(proof),
            Err((near, why)) => self
                .refused
                .push((near, Candidate { place: piece.place.into(), digest: Some(piece.digest), why })),
        }
    }
}

/// What is known at the end besides the pieces themselves.
#[derive(Debug, Clone)]
pub enum Existence {
    /// The pinned manifest is there.
    There,
    /// It is not.
    Gone,
    /// That could not be told.
    Unread(Unread),
}

/// All signed claims on one artifact, with what was found for each so far.
#[derive(Debug)]
pub struct Tallies<'r> {
    ring: &'r KeyRing,
    signature: Option<Tally<Proof>>,
    provenance: BTreeMap<OrderRef, Tally<ProvenanceProof>>,
    approvals: BTreeMap<SealOf, Tally<SealProof>>,
    attestations: BTreeMap<String, Tally<Proof>>,
    scans: Option<Tally<ScanProof>>,
    records: Option<Tally<Proof>>,
}

impl<'r> Tallies<'r> {
    /// Nothing found yet for `claims`; the artifact claim is not one of these.
    #[must_use]
    pub fn new(claims: &BTreeSet<Claim>, ring: &'r KeyRing) -> Self {
        let mut all = Self {
            ring,
            signature: None,
            provenance: BTreeMap::new(),
            approvals: BTreeMap::new(),
            attestations: BTreeMap::new(),
            scans: None,
            records: None,
        };
        for claim in claims {
            match claim {
                Claim::Artifact => {}
                Claim::Signature => all.signature = Some(Tally::new()),
                Claim::Provenance(order) => {
                    all.provenance.insert(order.clone(), Tally::new());
                }
                Claim::Approvals(of) => {
                    all.approvals.insert(of.clone(), Tally::new());
                }
                Claim::Attestation(kind) => {
                    all.attestations.insert(kind.clone(), Tally::new());
                }
                Claim::Scans => all.scans = Some(Tally::new()),
                Claim::Records => all.records = Some(Tally::new()),
            }
        }
        all
    }

    /// Claims for which reading on may still change the answer.
    #[must_use]
    pub fn open(&self) -> Vec<Claim> {
        let mut open = Vec::new();
        if self.signature.as_ref().is_some_and(|t| t.proven.is_empty()) {
            open.push(Claim::Signature);
        }
        let provenance = self.provenance.iter().filter(|(_, t)| t.proven.is_empty());
        open.extend(provenance.map(|(order, _)| Claim::Provenance(order.clone())));
        open.extend(self.approvals.keys().cloned().map(Claim::Approvals));
        open.extend(self.attestations.keys().cloned().map(Claim::Attestation));
        open.extend(self.scans.as_ref().map(|_| Claim::Scans));
        open.extend(self.records.as_ref().map(|_| Claim::Records));
        open
    }

    /// Whether nothing is proven for at least one claim.
    #[must_use]
    pub fn lacks(&self) -> bool {
        fn empty<P>(tally: &Tally<P>) -> bool {
            tally.proven.is_empty()
        }
        self.signature.as_ref().is_some_and(empty)
            || self.provenance.values().any(empty)
            || self.approvals.values().any(empty)
            || self.attestations.values().any(empty)
            || self.scans.as_ref().is_some_and(empty)
            || self.records.as_ref().is_some_and(empty)
    }

    /// Weighs one piece for every claim.
    pub fn weigh(&mut self, piece: &Piece<'_>) {
        if let Some(tally) = &mut self.signature
            && let Some(outcome) = signature(piece)
        {
            tally.add(piece, outcome);
        }
        let rules = self.ring.provenance();
        for (order, tally) in &mut self.provenance {
            let claim = Claim::Provenance(order.clone());
            if let Some(outcome) = statement(piece, &claim) {
                tally.add(piece, outcome.and_then(|f| f.provenance(order, rules)));
            }
        }
        for (of, tally) in &mut self.approvals {
            if let Some(outcome) = statement(piece, &Claim::Approvals(of.clone())) {
                tally.add(piece, outcome.and_then(|f| f.seal(of)));
            }
        }
        for (kind, tally) in &mut self.attestations {
            if let Some(outcome) = statement(piece, &Claim::Attestation(kind.clone())) {
                tally.add(piece, outcome.and_then(Found::with_statement));
            }
        }
        if let Some(tally) = &mut self.scans
            && let Some(outcome) = statement(piece, &Claim::Scans)
        {
            tally.add(piece, outcome.and_then(Found::scan));
        }
        if let Some(tally) = &mut self.records
            && let Some(outcome) = statement(piece, &Claim::Records)
        {
            tally.add(piece, outcome.and_then(Found::with_statement));
        }
    }

    /// Adds the answers to `facts`. `unread`: what could not be read, in any order; `existence`: of the pinned
    /// manifest.
    pub fn finish(self, unread: &[Unread], existence: &Existence, facts: &mut ArtifactFacts) {
        let unread =
            unread.iter().min_by(|a, b| (a.reason, &a.request, &a.why).cmp(&(b.reason, &b.request, &b.why)));
        let end = End { unread, existence };
        if let Some(tally) = self.signature {
            facts.signature = Some(end.any("signature", tally, first));
        }
        for (order, tally) in self.provenance {
            let noun = format!("provenance for Order {order}");
            let found = end.any(&noun, tally, |all| all.into_iter().min_by_key(|p| p.proof.blob));
            facts.provenance.insert(order, found);
        }
        for (of, tally) in self.approvals {
            let noun = format!("seal of approvals for Preparation {}", of.preparation);
            let found = end.all(&noun, tally, approvals::deciding);
            facts.approvals.insert(of, found);
        }
        for (kind, tally) in self.attestations {
            let noun = format!("statement of type {}", envelope::clip(&kind));
            let found = end.all(&noun, tally, newest_first);
            facts.attestations.insert(kind, found);
        }
        if let Some(tally) = self.scans {
            let pick = |all| Some(scans::newest(all)).filter(|s| !s.is_empty());
            facts.scans = Some(end.all("vulnerability scan", tally, pick));
        }
        if let Some(tally) = self.records {
            facts.records = Some(end.all("promotion or deployment record", tally, newest_first));
        }
    }
}

/// What holds for all claims at the end.
struct End<'a> {
    unread: Option<&'a Unread>,
    existence: &'a Existence,
}

impl End<'_> {
    /// Any good piece is enough.
    fn any<P, Q>(&self, noun: &str, tally: Tally<P>, pick: impl Fn(Vec<P>) -> Option<Q>) -> Evidence<Q> {
        match pick(tally.proven) {
            Some(proof) => Evidence::Proven(proof),
            None => self.lacking(noun, tally.refused),
        }
    }

    /// Every piece has to be read before one counts.
    fn all<P, Q>(&self, noun: &str, tally: Tally<P>, pick: impl Fn(Vec<P>) -> Option<Q>) -> Evidence<Q> {
        match self.unread {
            Some(unread) => Evidence::Unread(unread.clone()),
            None => self.any(noun, tally, pick),
        }
    }

    fn lacking<Q>(&self, noun: &str, mut refused: Vec<(Near, Candidate)>) -> Evidence<Q> {
        if let Some(unread) = self.unread {
            return Evidence::Unread(unread.clone());
        }
        refused.sort_by(|(_, a), (_, b)| (&a.place, a.digest, &a.why).cmp(&(&b.place, b.digest, &b.why)));
        refused.dedup();
        match self.existence {
            Existence::Unread(unread) => return Evidence::Unread(unread.clone()),
            Existence::Gone => {
                return Evidence::Missing(Looked {
                    why: "the artifact is not in the registry".into(),
                    reason: Some(Verified::ArtifactNotFound),
                    candidates: refused.into_iter().map(|(_, c)| c).collect(),
                });
            }
            Existence::There => {}
        }
        // Of equally near ones the first in the stable order.
        let best = refused.iter().rev().max_by_key(|(near, _)| *near).map(|(_, c)| c.clone());
        let candidates: Vec<Candidate> = refused.into_iter().map(|(_, c)| c).collect();
        match best {
            None => Evidence::Missing(Looked {
                why: format!("no {noun} is attached"),
                reason: Some(Verified::SignatureMissing),
                candidates,
            }),
            Some(best) => {
                let digest = best.digest.map(|d| format!(", {d}")).unwrap_or_default();
                let more = match candidates.len() - 1 {
                    0 => String::new(),
                    n => format!("; {n} more did not count either"),
                };
                Evidence::Invalid(Looked {
                    why: format!("no {noun} counts: {} ({}{digest}){more}", best.why, best.place),
                    reason: Some(Verified::SignatureInvalid),
                    candidates,
                })
            }
        }
    }
}

fn first(all: Vec<Proof>) -> Option<Proof> {
    all.into_iter().min_by_key(|p| (p.blob, p.digest))
}

fn newest_first(mut all: Vec<Proof>) -> Option<Vec<Proof>> {
    all.sort_by_key(|p| (std::cmp::Reverse(p.statement.as_ref().and_then(|s| s.time)), p.blob, p.digest));
    all.dedup_by_key(|p| p.blob);
    Some(all).filter(|a| !a.is_empty())
}

/// A statement by a key that may vouch for the claim, about this artifact.
struct Found<'a> {
    parsed: &'a Parsed,
    proof: Proof,
}

impl Found<'_> {
    fn with_statement(mut self) -> Result<Proof, (Near, String)> {
        let predicate = self.parsed.object().map_err(|why| (Near::WrongContent, why))?;
        self.proof.statement = Some(signed(self.parsed, predicate));
        Ok(self.proof)
    }

    fn provenance(
        mut self,
        order: &OrderRef,
        rules: &crate::model::kitchen::ProvenanceRules,
    ) -> Result<ProvenanceProof, (Near, String)> {
        let read = provenance::read(self.parsed, order, rules).map_err(|why| (Near::WrongContent, why))?;
        self.proof.statement = Some(signed(self.parsed, read.predicate));
        Ok(ProvenanceProof {
            proof: self.proof,
            finished_on: read.finished_on,
            dependencies: read.dependencies,
            builder: read.builder,
        })
    }

    fn seal(mut self, of: &SealOf) -> Result<SealProof, (Near, String)> {
        let seal = approvals::read(self.parsed, of).map_err(|why| (Near::WrongContent, why))?;
        self.proof.statement = Some(signed(self.parsed, seal.predicate));
        Ok(SealProof {
            proof: self.proof,
            sealed_time: seal.sealed_time,
            policy: seal.policy,
            result: seal.result,
        })
    }

    /// The report itself may be large and is not kept.
    fn scan(self) -> Result<ScanProof, (Near, String)> {
        let scan = scans::read(self.parsed).map_err(|why| (Near::WrongContent, why))?;
        Ok(ScanProof {
            proof: self.proof,
            scanner: scan.scanner,
            finished_on: scan.finished_on,
            counts: scan.counts,
            fixable: scan.fixable,
        })
    }
}

fn signed(parsed: &Parsed, predicate: serde_json::Value) -> Arc<Statement> {
    let time = statement::time_of(&predicate);
    Arc::new(Statement { predicate_type: parsed.predicate_type.clone(), predicate, time })
}

/// `None`: the piece has nothing to do with signatures.
fn signature(piece: &Piece<'_>) -> Option<Result<Proof, (Near, String)>> {
    match &piece.content {
        Content::Simple { signer, about } => Some(vouches(piece, signer, about, Role::Signature)),
        Content::Statement { may_sign: false, .. } => None,
        Content::Statement { .. } | Content::Unreadable { .. } => {
            statement(piece, &Claim::Signature).map(|found| found.map(|f| f.proof))
        }
    }
}

/// `None`: the piece has nothing to do with this claim.
fn statement<'a>(piece: &'a Piece<'_>, claim: &Claim) -> Option<Result<Found<'a>, (Near, String)>> {
    let role = role_of(claim)?;
    match &piece.content {
        Content::Simple { .. } => None,
        Content::Unreadable { why, hint } => hint.may_be(claim).then(|| Err((Near::Unreadable, why.clone()))),
        Content::Statement { signer, parsed, .. } => is_of(&parsed.predicate_type, claim)
            .then(|| Ok(Found { parsed, proof: vouches(piece, signer, &parsed.about, role)? })),
    }
}

fn vouches(
    piece: &Piece<'_>,
    signer: &Result<&TrustedKey, String>,
    about: &Result<(), String>,
    role: Role,
) -> Result<Proof, (Near, String)> {
    let key = signer.as_ref().map_err(|why| (Near::Stranger, why.clone()))?;
    let name = key.name_for(role).ok_or_else(|| {
        let why =
            format!("it is signed by key {:?}, which is not trusted for {}", key.any_name(), role_word(role));
        (Near::WrongRole, why)
    })?;
    about.clone().map_err(|why| (Near::WrongSubject, why))?;
    Ok(Proof {
        key: name.to_owned(),
        fingerprint: key.key.fingerprint().to_owned(),
        digest: piece.digest,
        blob: piece.blob,
        place: piece.place.into(),
        statement: None,
    })
}

/// A role as it is written in a Kitchen.
#[must_use]
pub fn role_word(role: Role) -> &'static str {
    match role {
        Role::Signature => "signature",
        Role::Provenance => "provenance",
        Role::Approvals => "approvals",
        Role::Checks => "checks",
        Role::Scans => "scans",
        Role::Records => "records",
    }
}

/// What a record in the repository (`records/…json`, a bundle) says of `digest`, when a key trusted for
/// records signed it. The same judging as for records on the artifact, without a registry.
///
/// # Errors
/// Says why it does not count.
pub fn record(bundle: &[u8], digest: &Digest, ring: &KeyRing) -> Result<Proof, String> {
    let piece = committed_piece(bundle, digest, ring);
    match statement(&piece, &Claim::Records) {
        Some(found) => found.and_then(Found::with_statement).map_err(|(_, why)| why),
        None => Err(no(&piece, "promotion or deployment record")),
    }
}

/// The same for a seal of approvals that was committed.
///
/// # Errors
/// Says why it does not count.
pub fn seal(bundle: &[u8], digest: &Digest, of: &SealOf, ring: &KeyRing) -> Result<SealProof, String> {
    let piece = committed_piece(bundle, digest, ring);
    match statement(&piece, &Claim::Approvals(of.clone())) {
        Some(found) => found.and_then(|f| f.seal(of)).map_err(|(_, why)| why),
        None => Err(no(&piece, "seal of approvals")),
    }
}

fn committed_piece<'r>(bundle: &[u8], digest: &Digest, ring: &'r KeyRing) -> Piece<'r> {
    let blob = Digest::of(bundle);
    let content = Content::bundle(bundle, Hint::Unknown, digest, ring);
    Piece { place: "repository", digest: blob, blob, content }
}

fn no(piece: &Piece<'_>, wanted: &str) -> String {
    match &piece.content {
        Content::Statement { parsed, .. } => {
            format!("it is no {wanted} but of type {}", envelope::clip(&parsed.predicate_type))
        }
        Content::Unreadable { why, .. } => why.clone(),
        Content::Simple { .. } => format!("it is no {wanted}"),
    }
}
