//! From a record to the bundle that is committed and attached: sigstore bundle v0.3 with a DSSE envelope.

use crate::attest::key::Signer;
use crate::attest::record::Record;
use crate::error::{Failure, Kind};
use crate::evidence::envelope::{BUNDLE, IN_TOTO, pae};
use crate::model::id::{Artifact, Digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

/// A signed record, ready to be committed and attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// The bundle's bytes: what `records/<namespace>/<order>/<sha256>.json` holds.
    pub bundle: Vec<u8>,
    /// SHA-256 of the bundle: its name.
    pub digest: Digest,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Bundle<'a> {
    media_type: &'a str,
    verification_material: Material<'a>,
    dsse_envelope: Envelope<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Material<'a> {
    public_key: KeyHint<'a>,
}

#[derive(Serialize)]
struct KeyHint<'a> {
    hint: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    payload: String,
    payload_type: &'a str,
    signatures: [Signature; 1],
}

/// Without a keyid: cosign refuses bundles that have one.
#[derive(Serialize)]
struct Signature {
    sig: String,
}

/// Signs `record` for `artifact`. With a key file the bundle is the same bytes each time (ECDSA after RFC 6979,
/// Ed25519); with a signer command that is up to the command.
///
/// # Errors
/// The signer command fails, or what it answers is no signature by its own key.
pub fn sign(record: &Record, artifact: &Artifact, signer: &Signer) -> Result<Signed, Failure> {
    let internal = |e: serde_json::Error| Failure::new(Kind::Internal, "record-json", e.to_string());
    let payload = record.statement(artifact).map_err(internal)?;
    let signature = signer.sign(&pae(IN_TOTO, &payload))?;
    let bundle = Bundle {
        media_type: BUNDLE,
        verification_material: Material { public_key: KeyHint { hint: signer.public_key().fingerprint() } },
        dsse_envelope: Envelope {
            payload: STANDARD.encode(payload),
            payload_type: IN_TOTO,
            signatures: [Signature { sig: STANDARD.encode(signature) }],
        },
    };
    let bundle = serde_json::to_vec(&bundle).map_err(internal)?;
    Ok(Signed { digest: Digest::of(&bundle), bundle })
}
