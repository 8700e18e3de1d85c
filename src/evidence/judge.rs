//! Decides whether the fetched bytes prove the claims. Pure: bytes and keys in, verdicts out.
//!
//! Each piece of evidence is read once ([`Piece`]) and compared with every claim. Only signed content decides; a
//! registry's hints only select the claim for which an unreadable piece counts as "there, but wrong". One good piece
//! wins over any number of bad ones. For claims where the newest piece decides (seals, scans, statements, records),
//! nothing is proven while a piece could not be read.

mod piece;
mod weigh;

pub use piece::{Hint, Piece, PieceContent};

use crate::evidence::approvals;
use crate::evidence::envelope;
use crate::evidence::keys::KeyRing;
use crate::evidence::scans;
use crate::model::evidence::{
    ArtifactFacts, Claim, Evidence, EvidenceCandidate, Looked, Proof, ProvenanceProof, ScanProof, SealOf,
    SealProof, Unread,
};
use crate::model::id::{Digest, OrderRef};
use crate::model::kitchen::Role;
use crate::model::reason::Verified;
use std::collections::{BTreeMap, BTreeSet};
use weigh::{FoundStatement, Near, weigh_signature, weigh_statement};

/// Predicate type of promotion records.
pub const PROMOTION: &str = "https://kokumi.dev/attestations/promotion/v1";
/// Predicate type of deployment records.
pub const DEPLOYMENT: &str = "https://kokumi.dev/attestations/deployment/v1";

/// The role that a key needs for a claim; the artifact itself needs none.
#[must_use]
pub fn find_role(claim: &Claim) -> Option<Role> {
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

/// Whether every piece must be read, because the newest piece (or all of them) decides.
#[must_use]
pub fn needs_all(claim: &Claim) -> bool {
    match claim {
        Claim::Artifact | Claim::Signature | Claim::Provenance(_) => false,
        Claim::Approvals(_) | Claim::Attestation(_) | Claim::Scans | Claim::Records => true,
    }
}

/// A role in the spelling of the Kitchen.
#[must_use]
pub fn format_role(role: Role) -> &'static str {
    role.as_str()
}

#[derive(Debug)]
struct ClaimTally<P> {
    proven: Vec<P>,
    refused: Vec<(Near, EvidenceCandidate)>,
}

impl<P> ClaimTally<P> {
    fn new() -> Self {
        Self { proven: Vec::new(), refused: Vec::new() }
    }

    fn add_outcome(&mut self, piece: &Piece<'_>, outcome: Result<P, (Near, String)>) {
        match outcome {
            Ok(proof) => self.proven.push(proof),
            Err((near, why)) => self.refused.push((
                near,
                EvidenceCandidate { place: piece.place.into(), digest: Some(piece.digest), why },
            )),
        }
    }
}

/// Additional facts after all pieces were read.
#[derive(Debug, Clone)]
pub enum Existence {
    /// The pinned manifest exists.
    There,
    /// It does not exist.
    Gone,
    /// It is unknown.
    Unread(Unread),
}

/// All signed claims on one artifact, with the findings for each so far.
#[derive(Debug)]
pub struct Tallies<'r> {
    ring: &'r KeyRing,
    signature: Option<ClaimTally<Proof>>,
    provenance: BTreeMap<OrderRef, ClaimTally<ProvenanceProof>>,
    approvals: BTreeMap<SealOf, ClaimTally<SealProof>>,
    attestations: BTreeMap<String, ClaimTally<Proof>>,
    scans: Option<ClaimTally<ScanProof>>,
    records: Option<ClaimTally<Proof>>,
}

impl<'r> Tallies<'r> {
    /// No findings yet for `claims`, which do not include the artifact claim.
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
                Claim::Signature => all.signature = Some(ClaimTally::new()),
                Claim::Provenance(order) => {
                    all.provenance.insert(order.clone(), ClaimTally::new());
                }
                Claim::Approvals(of) => {
                    all.approvals.insert(of.clone(), ClaimTally::new());
                }
                Claim::Attestation(kind) => {
                    all.attestations.insert(kind.clone(), ClaimTally::new());
                }
                Claim::Scans => all.scans = Some(ClaimTally::new()),
                Claim::Records => all.records = Some(ClaimTally::new()),
            }
        }
        all
    }

    /// Claims whose answer may still change if more is read.
    #[must_use]
    pub fn collect_open(&self) -> Vec<Claim> {
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
    pub fn has_unproven(&self) -> bool {
        fn is_unproven<P>(tally: &ClaimTally<P>) -> bool {
            tally.proven.is_empty()
        }
        self.signature.as_ref().is_some_and(is_unproven)
            || self.provenance.values().any(is_unproven)
            || self.approvals.values().any(is_unproven)
            || self.attestations.values().any(is_unproven)
            || self.scans.as_ref().is_some_and(is_unproven)
            || self.records.as_ref().is_some_and(is_unproven)
    }

    /// Compares one piece with every claim.
    pub fn weigh_piece(&mut self, piece: &Piece<'_>) {
        if let Some(tally) = &mut self.signature
            && let Some(outcome) = weigh_signature(piece)
        {
            tally.add_outcome(piece, outcome);
        }
        let rules = self.ring.provenance();
        for (order, tally) in &mut self.provenance {
            let claim = Claim::Provenance(order.clone());
            if let Some(outcome) = weigh_statement(piece, &claim) {
                tally.add_outcome(piece, outcome.and_then(|f| f.prove_provenance(order, rules)));
            }
        }
        for (of, tally) in &mut self.approvals {
            if let Some(outcome) = weigh_statement(piece, &Claim::Approvals(of.clone())) {
                tally.add_outcome(piece, outcome.and_then(|f| f.prove_seal(of)));
            }
        }
        for (kind, tally) in &mut self.attestations {
            if let Some(outcome) = weigh_statement(piece, &Claim::Attestation(kind.clone())) {
                tally.add_outcome(piece, outcome.and_then(FoundStatement::prove_statement));
            }
        }
        if let Some(tally) = &mut self.scans
            && let Some(outcome) = weigh_statement(piece, &Claim::Scans)
        {
            tally.add_outcome(piece, outcome.and_then(FoundStatement::prove_scan));
        }
        if let Some(tally) = &mut self.records
            && let Some(outcome) = weigh_statement(piece, &Claim::Records)
        {
            tally.add_outcome(piece, outcome.and_then(FoundStatement::prove_statement));
        }
    }

    /// Adds the answers to `facts`. `unread`: what could not be read, in any order; `existence`: whether the pinned
    /// manifest exists.
    pub fn finish_facts(self, unread: &[Unread], existence: &Existence, facts: &mut ArtifactFacts) {
        let unread =
            unread.iter().min_by(|a, b| (a.reason, &a.request, &a.why).cmp(&(b.reason, &b.request, &b.why)));
        let end = End { unread, existence };
        if let Some(tally) = self.signature {
            facts.signature = Some(end.judge_any("signature", tally, pick_first));
        }
        for (order, tally) in self.provenance {
            let noun = format!("provenance for Order {order}");
            let found = end.judge_any(&noun, tally, |all| all.into_iter().min_by_key(|p| p.proof.blob));
            facts.provenance.insert(order, found);
        }
        for (of, tally) in self.approvals {
            let noun = format!("seal of approvals for Preparation {}", of.preparation);
            let found = end.judge_all(&noun, tally, approvals::pick_deciding);
            facts.approvals.insert(of, found);
        }
        for (kind, tally) in self.attestations {
            let noun = format!("statement of type {}", envelope::clip_text(&kind));
            let found = end.judge_all(&noun, tally, sort_newest_first);
            facts.attestations.insert(kind, found);
        }
        if let Some(tally) = self.scans {
            let pick = |all| Some(scans::select_newest(all)).filter(|s| !s.is_empty());
            facts.scans = Some(end.judge_all("vulnerability scan", tally, pick));
        }
        if let Some(tally) = self.records {
            facts.records = Some(end.judge_all("promotion or deployment record", tally, sort_newest_first));
        }
    }
}

/// Facts that apply to all claims at the end.
struct End<'a> {
    unread: Option<&'a Unread>,
    existence: &'a Existence,
}

impl End<'_> {
    /// Any good piece is enough.
    fn judge_any<P, Q>(
        &self,
        noun: &str,
        tally: ClaimTally<P>,
        pick: impl Fn(Vec<P>) -> Option<Q>,
    ) -> Evidence<Q> {
        match pick(tally.proven) {
            Some(proof) => Evidence::Proven(proof),
            None => self.judge_lacking(noun, tally.refused),
        }
    }

    /// Every piece must be read before one counts.
    fn judge_all<P, Q>(
        &self,
        noun: &str,
        tally: ClaimTally<P>,
        pick: impl Fn(Vec<P>) -> Option<Q>,
    ) -> Evidence<Q> {
        match self.unread {
            Some(unread) => Evidence::Unread(unread.clone()),
            None => self.judge_any(noun, tally, pick),
        }
    }

    fn judge_lacking<Q>(&self, noun: &str, mut refused: Vec<(Near, EvidenceCandidate)>) -> Evidence<Q> {
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
        // Among equally close ones the first in the stable order.
        let best = refused.iter().rev().max_by_key(|(near, _)| *near).map(|(_, c)| c.clone());
        let candidates: Vec<EvidenceCandidate> = refused.into_iter().map(|(_, c)| c).collect();
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

fn pick_first(all: Vec<Proof>) -> Option<Proof> {
    all.into_iter().min_by_key(|p| (p.blob, p.digest))
}

fn sort_newest_first(mut all: Vec<Proof>) -> Option<Vec<Proof>> {
    all.sort_by_key(|p| (std::cmp::Reverse(p.statement.as_ref().and_then(|s| s.time)), p.blob, p.digest));
    all.dedup_by_key(|p| p.blob);
    Some(all).filter(|a| !a.is_empty())
}

/// The content of a record in the repository (`records/…json`, a bundle) about `digest`, if a key that is trusted for
/// records signed it. The same rules as for records on the artifact, without a registry.
///
/// # Errors
/// Says why it does not count.
pub fn judge_record(bundle: &[u8], digest: &Digest, ring: &KeyRing) -> Result<Proof, String> {
    let piece = make_committed_piece(bundle, digest, ring);
    match weigh_statement(&piece, &Claim::Records) {
        Some(found) => found.and_then(FoundStatement::prove_statement).map_err(|(_, why)| why),
        None => Err(describe_mismatch(&piece, "promotion or deployment record")),
    }
}

/// The same for a seal of approvals that was committed.
///
/// # Errors
/// Says why it does not count.
pub fn judge_seal(bundle: &[u8], digest: &Digest, of: &SealOf, ring: &KeyRing) -> Result<SealProof, String> {
    let piece = make_committed_piece(bundle, digest, ring);
    match weigh_statement(&piece, &Claim::Approvals(of.clone())) {
        Some(found) => found.and_then(|f| f.prove_seal(of)).map_err(|(_, why)| why),
        None => Err(describe_mismatch(&piece, "seal of approvals")),
    }
}

fn make_committed_piece<'r>(bundle: &[u8], digest: &Digest, ring: &'r KeyRing) -> Piece<'r> {
    let blob = Digest::hash_bytes(bundle);
    let content = PieceContent::from_bundle(bundle, Hint::Unknown, digest, ring);
    Piece { place: "repository", digest: blob, blob, content }
}

fn describe_mismatch(piece: &Piece<'_>, wanted: &str) -> String {
    match &piece.content {
        PieceContent::Statement { parsed, .. } => {
            format!("it is not a {wanted} but of type {}", envelope::clip_text(&parsed.predicate_type))
        }
        PieceContent::Unreadable { why, .. } => why.clone(),
        PieceContent::Simple { .. } => format!("it is not a {wanted}"),
    }
}
