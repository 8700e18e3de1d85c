//! Compares one piece with one claim: whether it proves the claim, and if not, how close it is.

use super::piece::{Piece, PieceContent, speaks_to};
use super::{find_role, format_role};
use crate::evidence::approvals;
use crate::evidence::keys::RingKey;
use crate::evidence::provenance;
use crate::evidence::scans;
use crate::evidence::statement::{self, ParsedStatement};
use crate::model::evidence::{Claim, Proof, ProvenanceProof, ScanProof, SealOf, SealProof, Statement};
use crate::model::id::OrderRef;
use crate::model::kitchen::{ProvenanceRules, Role};
use std::sync::Arc;

/// How close a piece is to proving a claim: the closest one gives the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Near {
    Unreadable,
    Stranger,
    WrongRole,
    WrongSubject,
    WrongContent,
}

/// A statement about this artifact, by a key that is trusted for the claim.
pub(super) struct FoundStatement<'a> {
    parsed: &'a ParsedStatement,
    proof: Proof,
}

impl FoundStatement<'_> {
    pub(super) fn prove_statement(mut self) -> Result<Proof, (Near, String)> {
        let predicate = self.parsed.parse_object().map_err(|why| (Near::WrongContent, why))?;
        self.proof.statement = Some(make_statement(self.parsed, predicate));
        Ok(self.proof)
    }

    pub(super) fn prove_provenance(
        mut self,
        order: &OrderRef,
        rules: &ProvenanceRules,
    ) -> Result<ProvenanceProof, (Near, String)> {
        let read = provenance::parse_provenance(self.parsed, order, rules)
            .map_err(|why| (Near::WrongContent, why))?;
        self.proof.statement = Some(make_statement(self.parsed, read.predicate));
        Ok(ProvenanceProof {
            proof: self.proof,
            finished_on: read.finished_on,
            dependencies: read.dependencies,
            builder: read.builder,
        })
    }

    pub(super) fn prove_seal(mut self, of: &SealOf) -> Result<SealProof, (Near, String)> {
        let seal = approvals::read_seal(self.parsed, of).map_err(|why| (Near::WrongContent, why))?;
        self.proof.statement = Some(make_statement(self.parsed, seal.predicate));
        Ok(SealProof {
            proof: self.proof,
            sealed_time: seal.sealed_time,
            policy: seal.policy,
            result: seal.result,
        })
    }

    /// Drops the report itself, which may be large.
    pub(super) fn prove_scan(self) -> Result<ScanProof, (Near, String)> {
        let scan = scans::parse_scan(self.parsed).map_err(|why| (Near::WrongContent, why))?;
        Ok(ScanProof {
            proof: self.proof,
            scanner: scan.scanner,
            finished_on: scan.finished_on,
            counts: scan.counts,
            fixable: scan.fixable,
        })
    }
}

fn make_statement(parsed: &ParsedStatement, predicate: serde_json::Value) -> Arc<Statement> {
    let time = statement::find_time(&predicate);
    let (predicate_type, subject) = (parsed.predicate_type.clone(), parsed.subject.clone());
    Arc::new(Statement { predicate_type, subject, predicate, time })
}

/// `None`: the piece is not about signatures.
pub(super) fn weigh_signature(piece: &Piece<'_>) -> Option<Result<Proof, (Near, String)>> {
    match &piece.content {
        PieceContent::Simple { signer, about } => Some(check_vouching(piece, signer, about, Role::Signature)),
        PieceContent::Statement { may_sign: false, .. } => None,
        PieceContent::Statement { .. } | PieceContent::Unreadable { .. } => {
            weigh_statement(piece, &Claim::Signature).map(|found| found.map(|f| f.proof))
        }
    }
}

/// `None`: the piece is not about this claim.
pub(super) fn weigh_statement<'a>(
    piece: &'a Piece<'_>,
    claim: &Claim,
) -> Option<Result<FoundStatement<'a>, (Near, String)>> {
    let role = find_role(claim)?;
    match &piece.content {
        PieceContent::Simple { .. } => None,
        PieceContent::Unreadable { why, hint } => {
            hint.can_be(claim).then(|| Err((Near::Unreadable, why.clone())))
        }
        PieceContent::Statement { signer, parsed, .. } => {
            speaks_to(&parsed.predicate_type, claim).then(|| {
                Ok(FoundStatement { parsed, proof: check_vouching(piece, signer, &parsed.about, role)? })
            })
        }
    }
}

fn check_vouching(
    piece: &Piece<'_>,
    signer: &Result<&RingKey, String>,
    about: &Result<(), String>,
    role: Role,
) -> Result<Proof, (Near, String)> {
    let key = signer.as_ref().map_err(|why| (Near::Stranger, why.clone()))?;
    let name = key.find_name(role).ok_or_else(|| {
        let why = format!(
            "it is signed by key {:?}, which is not trusted for {}",
            key.pick_name(),
            format_role(role)
        );
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
