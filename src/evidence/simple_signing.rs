//! cosign's older signature format: a small JSON payload (the layer's bytes) and a signature over it (the
//! layer's annotation).

use crate::evidence::envelope::{clip_text, decode_base64};
use crate::evidence::json;
use crate::evidence::keys::{KeyRing, RingKey};
use crate::model::id::Digest;
use serde::Deserialize;

/// Layer annotation with the signature, base64. Both versions of cosign also require it on `.att` layers, where it is
/// empty.
pub const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
/// Layer annotation with a certificate: unsigned, used only to report that a signature is keyless.
pub const CERTIFICATE: &str = "dev.sigstore.cosign/certificate";
/// Media type of a payload layer.
pub const PAYLOAD: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// The only supported `critical.type`.
pub const TYPE: &str = "cosign container image signature";

#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    image: SignedImage,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct SignedImage {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

/// The trusted key that signed exactly these bytes.
///
/// # Errors
/// Says why there is none.
pub fn find_signer<'r>(payload: &[u8], signature: &str, ring: &'r KeyRing) -> Result<&'r RingKey, String> {
    let raw = decode_base64(signature).ok_or("its signature is not base64")?;
    ring.find_signer(payload, &raw, None).ok_or_else(|| "it is not signed by a trusted key".into())
}

/// Checks that a payload is about `digest`. `identity.docker-reference` is the signer's name of the repository and is
/// not compared, because a copied image keeps the old one.
///
/// # Errors
/// Says what it is, or what it is about instead.
pub fn check_subject(payload: &[u8], digest: &Digest) -> Result<(), String> {
    let payload: Payload =
        json::parse_strict(payload).map_err(|e| format!("it is not a simple-signing payload: {e}"))?;
    if payload.critical.kind != TYPE {
        return Err(format!("its critical.type is {:?}, not {TYPE:?}", clip_text(&payload.critical.kind)));
    }
    let said = &payload.critical.image.digest;
    if *said != digest.to_string() {
        return Err(format!("it is about {}, not about this artifact", clip_text(said)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn only_the_exact_payload_counts() {
        let digest = Digest::hash_bytes(b"artifact");
        let payload = |kind: &str, digest: &str| {
            format!(
                r#"{{"critical":{{"identity":{{"docker-reference":"r.example/a"}},"image":{{"docker-manifest-digest":"{digest}"}},"type":"{kind}"}},"optional":null}}"#
            )
        };
        let hex = digest.to_string();
        assert_eq!(check_subject(payload(TYPE, &hex).as_bytes(), &digest), Ok(()));
        let why = |text: &str| check_subject(text.as_bytes(), &digest).unwrap_err();
        assert!(why(&payload("Cosign container image signature", &hex)).contains("critical.type"));
        assert!(why(&payload(TYPE, &hex.to_uppercase())).contains("not about this artifact"));
        assert!(
            why(&payload(TYPE, &Digest::hash_bytes(b"other").to_string()))
                .contains("not about this artifact")
        );
        assert!(why(&payload(TYPE, &hex).replace("critical", "CRITICAL")).contains("missing field"));
        assert!(why(&payload(TYPE, &hex).replace("\"type\"", "\"kind\"")).contains("missing field"));
        assert!(why(&payload(TYPE, &hex).replace("\"optional\":null", "\"critical\":{}")).contains("twice"));
        assert!(why(&(payload(TYPE, &hex) + "x")).contains("not a simple-signing payload"));
    }
}
