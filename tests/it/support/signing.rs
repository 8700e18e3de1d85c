//! Test keys, and evidence made by hand with them: simple-signing payloads, statements, envelopes, bundles.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use expedite::evidence::keys::{KeyRing, compute_fingerprint};
use expedite::model::id::Digest;
use expedite::model::kitchen::{KitchenSpec, Role, TrustedKey};
use serde_json::{Value, json};
use sigstore::crypto::SigningScheme;
use sigstore::crypto::signing_key::SigStoreSigner;

pub const SIGN: &str = "https://sigstore.dev/cosign/sign/v1";
pub const SLSA: &str = "https://slsa.dev/provenance/v1";
pub const APPROVAL: &str = "https://kokumi.dev/attestations/approval/v1";
pub const V1: &str = "https://in-toto.io/Statement/v1";
pub const V01: &str = "https://in-toto.io/Statement/v0.1";
pub const IN_TOTO: &str = "application/vnd.in-toto+json";

/// A key pair of a test.
pub struct Key {
    signer: SigStoreSigner,
}

impl Key {
    pub fn p256() -> Self {
        Self::of(SigningScheme::ECDSA_P256_SHA256_ASN1)
    }

    pub fn of(scheme: SigningScheme) -> Self {
        Self { signer: scheme.create_signer().unwrap() }
    }

    pub fn public_pem(&self) -> String {
        self.signer.to_sigstore_keypair().unwrap().public_key_to_pem().unwrap()
    }

    pub fn private_der(&self) -> Vec<u8> {
        self.signer.to_sigstore_keypair().unwrap().private_key_to_der().unwrap().to_vec()
    }

    pub fn private_pem(&self) -> String {
        self.signer.to_sigstore_keypair().unwrap().private_key_to_pem().unwrap().to_string()
    }

    /// As a bundle's hint names it.
    pub fn hint(&self) -> String {
        compute_fingerprint(&self.signer.to_sigstore_keypair().unwrap().public_key_to_der().unwrap())
    }

    /// Raw signature bytes; DER for ECDSA.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.signer.sign(message).unwrap()
    }

    pub fn sign_base64(&self, message: &[u8]) -> String {
        STANDARD.encode(self.sign(message))
    }
}

/// A Kitchen's spec that trusts these keys.
pub fn kitchen(keys: &[(&str, String, &[Role])]) -> KitchenSpec {
    let mut spec = KitchenSpec::default();
    for (name, pem, roles) in keys {
        spec.trust.keys.push(TrustedKey {
            name: (*name).into(),
            public_key: Some(pem.clone()),
            public_key_file: None,
            roles: roles.to_vec(),
        });
    }
    spec
}

pub const ALL_ROLES: &[Role] =
    &[Role::Signature, Role::Provenance, Role::Approvals, Role::Checks, Role::Scans, Role::Records];

/// A ring that trusts one key for everything.
#[track_caller]
pub fn ring(key: &Key) -> KeyRing {
    usable(&kitchen(&[("renderer", key.public_pem(), ALL_ROLES)]))
}

#[track_caller]
pub fn usable(spec: &KitchenSpec) -> KeyRing {
    let ring = KeyRing::from_kitchen(spec);
    assert_eq!(ring.state().errors, Vec::<String>::new());
    ring
}

/// A simple-signing payload, as cosign writes it.
pub fn simple_payload(digest: &Digest) -> String {
    format!(
        r#"{{"critical":{{"identity":{{"docker-reference":"r.example/shop/podinfo"}},"image":{{"docker-manifest-digest":"{digest}"}},"type":"cosign container image signature"}},"optional":null}}"#
    )
}

/// A statement about `digest`.
pub fn statement(digest: &Digest, predicate_type: &str, predicate: Value) -> Value {
    json!({
        "_type": V1,
        "subject": [{"name": "r.example/shop/podinfo", "digest": {"sha256": digest.format_hex()}}],
        "predicateType": predicate_type,
        "predicate": predicate,
    })
}

/// Provenance v1 for an Order.
pub fn slsa(namespace: &str, name: &str) -> Value {
    json!({
        "buildDefinition": {
            "buildType": "https://example.com/render/v1",
            "externalParameters": {"order": {"namespace": namespace, "name": name}},
            "resolvedDependencies": [{"uri": "oci://base", "digest": {"sha256": Digest::hash_bytes(b"base").format_hex()}}],
        },
        "runDetails": {
            "builder": {"id": "https://example.com/renderer"},
            "metadata": {"finishedOn": "2026-11-01T10:00:00Z"},
        },
    })
}

pub fn pae(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len()).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

/// One signature of an envelope.
pub fn signature(key: &Key, payload_type: &str, payload: &[u8]) -> Value {
    json!({"sig": key.sign_base64(&pae(payload_type, payload))})
}

/// An envelope over exact payload bytes.
pub fn envelope_of(payload_type: &str, payload: &[u8], signatures: Vec<Value>) -> Value {
    json!({
        "payload": STANDARD.encode(payload), "payloadType": payload_type, "signatures": signatures,
    })
}

/// An envelope over a statement, signed by `key`.
pub fn envelope(key: &Key, statement: &Value) -> Value {
    let payload = statement.to_string().into_bytes();
    envelope_of(IN_TOTO, &payload, vec![signature(key, IN_TOTO, &payload)])
}

/// A bundle around an envelope.
pub fn bundle_of(envelope: Value, hint: &str) -> Value {
    json!({
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": {"publicKey": {"hint": hint}},
        "dsseEnvelope": envelope,
    })
}

/// A bundle over a statement, signed by `key`.
pub fn bundle(key: &Key, statement: &Value) -> Value {
    bundle_of(envelope(key, statement), &key.hint())
}
