//! DSSE envelopes and the sigstore bundles that hold them: which bytes were signed, and by whom.
//! Nothing here looks inside the payload.

use crate::evidence::json;
use crate::evidence::keys::{KeyRing, PublicKey, RingKey};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// The only payload type that is read: an in-toto statement.
pub const IN_TOTO: &str = "application/vnd.in-toto+json";
/// Media type of a bundle in its current form.
pub const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// Media type of a bundle in its first form.
pub const BUNDLE_OLD_FORM: &str = "application/vnd.dev.sigstore.bundle+json;version=0.3";
/// Prefix of the media type of every bundle layer.
pub const BUNDLE_PREFIX: &str = "application/vnd.dev.sigstore.bundle";
/// Media type of a DSSE envelope layer in a `.att` manifest.
pub const ENVELOPE: &str = "application/vnd.dsse.envelope.v1+json";
/// Most signatures of one envelope that are tried.
pub const SIGNATURES: usize = 64;

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Decodes base64 as DSSE requires of verifiers: standard or URL-safe, padded or not; line ends are skipped.
#[must_use]
pub fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let plain: Vec<u8> = text
        .bytes()
        .filter(|b| !matches!(b, b'\r' | b'\n'))
        .map(|b| match b {
            b'-' => b'+',
            b'_' => b'/',
            other => other,
        })
        .collect();
    LENIENT.decode(plain).ok()
}

/// DSSE v1 pre-authentication encoding: the bytes that are signed. Lengths are in bytes.
///
/// ```
/// use expedite::evidence::envelope::encode_pae;
/// assert_eq!(encode_pae("http://example.com/HelloWorld", b"hello world"),
///     b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
/// ```
#[must_use]
pub fn encode_pae(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len()).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

/// The content of an envelope, and the trusted key that signed it.
#[derive(Debug)]
pub struct OpenedEnvelope<'r> {
    /// The payload, decoded once, so that the verified bytes are the parsed bytes.
    pub payload: Vec<u8>,
    /// The trusted key, or why there is none.
    pub signer: Result<&'r RingKey, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload: String,
    payload_type: String,
    signatures: Vec<Signature>,
}

#[derive(Deserialize)]
struct Signature {
    sig: String,
    #[serde(default)]
    keyid: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SigstoreBundle {
    media_type: String,
    verification_material: SigstoreMaterial,
    dsse_envelope: Option<Envelope>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SigstoreMaterial {
    public_key: Option<KeyHint>,
    certificate: Option<IgnoredAny>,
    #[serde(rename = "x509CertificateChain")]
    chain: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct KeyHint {
    #[serde(default)]
    hint: String,
}

/// Opens a sigstore bundle v0.3 that holds a DSSE envelope with exactly one signature by a key.
///
/// # Errors
/// Says why it is not such a bundle; then nothing in it can be used.
pub fn open_bundle<'r>(bytes: &[u8], ring: &'r KeyRing) -> Result<OpenedEnvelope<'r>, String> {
    let bundle: SigstoreBundle = json::parse_strict(bytes).map_err(|e| format!("it is not a bundle: {e}"))?;
    if bundle.media_type != BUNDLE && bundle.media_type != BUNDLE_OLD_FORM {
        return Err(format!(
            "it is a bundle of type {:?}, and only v0.3 is supported",
            clip_text(&bundle.media_type)
        ));
    }
    let envelope = bundle.dsse_envelope.ok_or("the bundle holds no DSSE envelope")?;
    let material = bundle.verification_material;
    if material.certificate.is_some() || material.chain.is_some() {
        let payload = decode_payload(&envelope)?;
        let why = "it is signed with a certificate (keyless), not with a trusted key".to_owned();
        return Ok(OpenedEnvelope { payload, signer: Err(why) });
    }
    let hint = material.public_key.ok_or("the bundle names no key")?.hint;
    match envelope.signatures.len() {
        1 => open_signed(envelope, Some(&hint), ring),
        n => Err(format!("a bundle must have exactly one signature, this one has {n}")),
    }
}

/// The payload of a bundle that `key` signed; `None`: it is not such a bundle.
#[must_use]
pub fn read_signed_payload(bundle: &[u8], key: &PublicKey) -> Option<Vec<u8>> {
    let bundle: SigstoreBundle = json::parse_strict(bundle).ok()?;
    let envelope = bundle.dsse_envelope?;
    let payload = decode_payload(&envelope).ok()?;
    let message = encode_pae(&envelope.payload_type, &payload);
    let [signature] = envelope.signatures.as_slice() else { return None };
    key.has_signed(&message, &decode_base64(&signature.sig)?).then_some(payload)
}

/// Opens a DSSE envelope as in a `.att` layer: any of its signatures may be by the trusted key.
///
/// # Errors
/// Says why it is not such an envelope.
pub fn open_envelope<'r>(bytes: &[u8], ring: &'r KeyRing) -> Result<OpenedEnvelope<'r>, String> {
    let envelope: Envelope =
        json::parse_strict(bytes).map_err(|e| format!("it is not a DSSE envelope: {e}"))?;
    match envelope.signatures.len() {
        0 => Err("the envelope has no signature".into()),
        n if n > SIGNATURES => Err(format!("too many signatures: {n}; at most {SIGNATURES} are tried")),
        _ => open_signed(envelope, None, ring),
    }
}

fn decode_payload(envelope: &Envelope) -> Result<Vec<u8>, String> {
    if envelope.payload_type != IN_TOTO {
        return Err(format!("its payload type is {:?}, not {IN_TOTO}", clip_text(&envelope.payload_type)));
    }
    decode_base64(&envelope.payload).ok_or_else(|| "its payload is not base64".into())
}

fn open_signed<'r>(
    envelope: Envelope,
    hint: Option<&str>,
    ring: &'r KeyRing,
) -> Result<OpenedEnvelope<'r>, String> {
    let payload = decode_payload(&envelope)?;
    let message = encode_pae(&envelope.payload_type, &payload);
    let signer = envelope.signatures.iter().find_map(|s| {
        let hint = hint.filter(|h| !h.is_empty()).or(s.keyid.as_deref());
        ring.find_signer(&message, &decode_base64(&s.sig)?, hint)
    });
    let signer = signer.ok_or_else(|| match hint.filter(|h| is_fingerprint(h)) {
        Some(hint) if ring.keys().iter().any(|k| k.key.fingerprint() == hint) => {
            format!("its signature is wrong, although it names the trusted key {hint}")
        }
        Some(hint) => format!("it is not signed by a trusted key (it names {hint})"),
        None => "it is not signed by a trusted key".to_owned(),
    });
    Ok(OpenedEnvelope { payload, signer })
}

/// Whether an unsigned hint looks like a fingerprint and may be shown to a user.
fn is_fingerprint(hint: &str) -> bool {
    hint.len() == 44 && decode_base64(hint).is_some_and(|b| b.len() == 32)
}

/// Untrusted text for a message: the first 100 characters.
pub(crate) fn clip_text(text: &str) -> String {
    let cut: String = text.chars().take(100).collect();
    if cut.len() < text.len() { cut + "…" } else { cut }
}
