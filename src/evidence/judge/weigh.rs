//! One piece against one claim: does it prove it, and if not, how near did it come?

use super::piece::{Content, Piece, is_of};
use super::{role_of, role_word};
use crate::evidence::approvals;
use crate::evidence::keys::TrustedKey;
use crate::evidence::provenance;
use crate::evidence::scans;
use crate::evidence::statement::{self, Parsed};
use crate::model::evidence::{Claim, Proof, ProvenanceProof, ScanProof, SealOf, SealProof, Statement};
use crate::model::id::OrderRef;
use crate::model::kitchen::{ProvenanceRules, Role};
use std::sync::Arc;

/// How near a piece came to proving a claim: the nearest one gives the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Near {
    Unreadable,
    Stranger,
    WrongRole,
    WrongSubject,
    WrongContent,
}

/// A statement by a key that may vouch for the claim, about this artifact.
pub(super) struct Found<'a> {
    parsed: &'a Parsed,
    proof: Proof,
}

impl Found<'_> {
    pub(super) fn with_statement(mut self) -> Result<Proof, (Near, String)> {
        let predicate = self.parsed.object().map_err(|why| (Near::WrongContent, why))?;
        self.proof.statement = Some(signed(self.parsed, predicate));
        Ok(self.proof)
    }

    pub(super) fn provenance(
        mut self,
        order: &OrderRef,
        rules: &ProvenanceRules,
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

    pub(super) fn seal(mut self, of: &SealOf) -> Result<SealProof, (Near, String)> {
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
    pub(super) fn scan(self) -> Result<ScanProof, (Near, String)> {
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
    let (predicate_type, subject) = (parsed.predicate_type.clone(), parsed.subject.clone());
    Arc::new(Statement { predicate_type, subject, predicate, time })
}

/// `None`: the piece has nothing to do with signatures.
pub(super) fn signature(piece: &Piece<'_>) -> Option<Result<Proof, (Near, String)>> {
    match &piece.content {
        Content::Simple { signer, about } => Some(vouches(piece, signer, about, Role::Signature)),
        Content::Statement { may_sign: false, .. } => None,
        Content::Statement { .. } | Content::Unreadable { .. } => {
            statement(piece, &Claim::Signature).map(|found| found.map(|f| f.proof))
        }
    }
}

/// `None`: the piece has nothing to do with this claim.
pub(super) fn statement<'a>(
    piece: &'a Piece<'_>,
    claim: &Claim,
) -> Option<Result<Found<'a>, (Near, String)>> {
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
