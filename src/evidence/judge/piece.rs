//! One piece of evidence without context: its content and its signer. The parent module decides what it proves.

use crate::evidence::approvals;
use crate::evidence::envelope;
use crate::evidence::judge::{DEPLOYMENT, PROMOTION};
use crate::evidence::keys::{KeyRing, RingKey};
use crate::evidence::provenance;
use crate::evidence::scans;
use crate::evidence::simple_signing;
use crate::evidence::statement::{self, COSIGN_SIGN, ParsedStatement};
use crate::model::evidence::Claim;
use crate::model::id::Digest;

/// The kind of a piece according to the registry: never proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// Unknown kind.
    Unknown,
    /// A cosign signature.
    Signature,
    /// A statement of any type, but not a signature: a piece from a `.att` manifest.
    Attestation,
    /// A statement of this predicate type.
    Type(String),
}

impl Hint {
    /// From a predicate type in an annotation.
    #[must_use]
    pub fn from_predicate_type(predicate_type: Option<&str>) -> Self {
        match predicate_type {
            None | Some("") => Self::Unknown,
            Some(COSIGN_SIGN) => Self::Signature,
            Some(other) => Self::Type(other.to_owned()),
        }
    }

    /// Whether a piece with this hint may be for `claim`.
    #[must_use]
    pub fn can_be(&self, claim: &Claim) -> bool {
        match self {
            Self::Unknown => !matches!(claim, Claim::Artifact),
            Self::Signature => *claim == Claim::Signature,
            Self::Attestation => !matches!(claim, Claim::Artifact | Claim::Signature),
            Self::Type(kind) => speaks_to(kind, claim),
        }
    }
}

/// Whether a statement of this predicate type belongs to `claim`.
pub(super) fn speaks_to(predicate_type: &str, claim: &Claim) -> bool {
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

/// The kind of a piece of evidence according to its content.
#[derive(Debug)]
pub enum PieceContent<'r> {
    /// A simple-signing payload.
    Simple {
        /// The trusted key that signed it, or why there is none.
        signer: Result<&'r RingKey, String>,
        /// Whether it is about the artifact.
        about: Result<(), String>,
    },
    /// An in-toto statement.
    Statement {
        /// The trusted key that signed it, or why there is none.
        signer: Result<&'r RingKey, String>,
        /// What it says.
        parsed: ParsedStatement,
        /// Whether it may count as a signature: a bundle may, an attestation in a `.att` manifest may not.
        may_sign: bool,
    },
    /// A piece that is neither.
    Unreadable {
        /// Why.
        why: String,
        /// Its probable kind.
        hint: Hint,
    },
}

impl<'r> PieceContent<'r> {
    /// Reads a `.sig` layer: its bytes and its signature annotation.
    #[must_use]
    pub fn from_simple(payload: &[u8], signature: &str, digest: &Digest, ring: &'r KeyRing) -> Self {
        Self::Simple {
            signer: simple_signing::find_signer(payload, signature, ring),
            about: simple_signing::check_subject(payload, digest),
        }
    }

    /// Reads a sigstore bundle.
    #[must_use]
    pub fn from_bundle(bytes: &[u8], hint: Hint, digest: &Digest, ring: &'r KeyRing) -> Self {
        Self::from_opened(envelope::open_bundle(bytes, ring), hint, true, digest)
    }

    /// Reads a DSSE envelope.
    #[must_use]
    pub fn from_envelope(bytes: &[u8], hint: Hint, digest: &Digest, ring: &'r KeyRing) -> Self {
        Self::from_opened(envelope::open_envelope(bytes, ring), hint, false, digest)
    }

    /// Reads a statement without envelope, as older controllers attach approvals: never proof.
    #[must_use]
    pub fn from_unsigned(bytes: Vec<u8>, hint: Hint, digest: &Digest) -> Self {
        let signer = Err("it is not signed".to_owned());
        Self::from_opened(Ok(envelope::OpenedEnvelope { payload: bytes, signer }), hint, false, digest)
    }

    fn from_opened(
        opened: Result<envelope::OpenedEnvelope<'r>, String>,
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

/// One piece of evidence: its place and its content.
#[derive(Debug)]
pub struct Piece<'r> {
    /// Its place, as text.
    pub place: &'static str,
    /// Its manifest (bundle referrer) or layer (`.sig`, `.att`).
    pub digest: Digest,
    /// The signed file itself.
    pub blob: Digest,
    /// Its content.
    pub content: PieceContent<'r>,
}
