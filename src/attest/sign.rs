//! Turns a record into the bundle that is committed and attached: sigstore bundle v0.3 with a DSSE envelope.

use crate::attest::key::RecordSigner;
use crate::attest::record::Record;
use crate::error::{Failure, FailureKind};
use crate::evidence::envelope::{BUNDLE, IN_TOTO, encode_pae};
use crate::ledger::Statement;
use crate::model::id::{Artifact, Digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

/// A signed record, ready to be committed and attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedRecord {
    /// The bundle's bytes: what `records/<namespace>/<order>/<sha256>.json` holds.
    pub bundle: Vec<u8>,
    /// SHA-256 of the bundle: its name.
    pub digest: Digest,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenBundle<'a> {
    media_type: &'a str,
    verification_material: WrittenMaterial<'a>,
    dsse_envelope: WrittenEnvelope<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenMaterial<'a> {
    public_key: WrittenKeyHint<'a>,
}

#[derive(Serialize)]
struct WrittenKeyHint<'a> {
    hint: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenEnvelope<'a> {
    payload: String,
    payload_type: &'a str,
    signatures: [WrittenSignature; 1],
}

/// Has no keyid, because cosign refuses bundles that have one.
#[derive(Serialize)]
struct WrittenSignature {
    sig: String,
}

/// Signs `record` for `artifact`. With a key file the bundle is the same bytes each time (ECDSA after RFC 6979,
/// Ed25519); with a signer command they may differ.
///
/// # Errors
/// The signer command fails, or its output is not a signature by its own key.
pub fn sign_record(
    record: &Record,
    artifact: &Artifact,
    signer: &RecordSigner,
) -> Result<SignedRecord, Failure> {
    sign_payload(record.build_statement(artifact).map_err(|e| make_internal_failure(&e))?, signer)
}

/// Signs a statement of the ledger; its hash, which is that of the payload, and the bundle.
///
/// # Errors
/// As [`sign_record`].
pub fn sign_statement(
    statement: &Statement,
    signer: &RecordSigner,
) -> Result<(Digest, SignedRecord), Failure> {
    let payload = statement.to_payload().map_err(|e| make_internal_failure(&e))?;
    Ok((Digest::hash_bytes(&payload), sign_payload(payload, signer)?))
}

fn make_internal_failure(error: &serde_json::Error) -> Failure {
    Failure::new(FailureKind::Internal, "record-json", error.to_string())
}

fn sign_payload(payload: Vec<u8>, signer: &RecordSigner) -> Result<SignedRecord, Failure> {
    let signature = signer.sign(&encode_pae(IN_TOTO, &payload))?;
    let bundle = WrittenBundle {
        media_type: BUNDLE,
        verification_material: WrittenMaterial {
            public_key: WrittenKeyHint { hint: signer.public_key().fingerprint() },
        },
        dsse_envelope: WrittenEnvelope {
            payload: STANDARD.encode(payload),
            payload_type: IN_TOTO,
            signatures: [WrittenSignature { sig: STANDARD.encode(signature) }],
        },
    };
    let bundle = serde_json::to_vec(&bundle).map_err(|e| make_internal_failure(&e))?;
    Ok(SignedRecord { digest: Digest::hash_bytes(&bundle), bundle })
}
