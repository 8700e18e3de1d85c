//! Makes artifacts with evidence, in an image layout, for any Order: for cases that need others than the
//! shop's. Signs by itself, in cosign's bundle layout; that cosign's own evidence passes is the shop's matter.

use super::layout::Layout;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{DerSignature, SigningKey};
use p256::pkcs8::{EncodePublicKey as _, LineEnding};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::path::Path;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
const CREATED: &str = "2026-01-01T00:00:00Z";

/// Who renders, signs and attests.
pub struct Renderer(SigningKey);

impl Renderer {
    /// The one whose key follows from `seed`, not zero.
    pub fn new(seed: u8) -> Self {
        Self(SigningKey::from_slice(&[seed; 32]).unwrap())
    }

    /// Its public key, as a Kitchen holds it.
    pub fn public_key(&self) -> String {
        self.0.verifying_key().to_public_key_pem(LineEnding::LF).unwrap()
    }

    /// An artifact that holds one ConfigMap with `text`, signed, with provenance that names `order`
    /// (`<namespace>/<name>`), in the layout of the repository of that name. Gives its digest.
    pub fn prepare(&self, registry: &Path, order: &str, text: &str) -> String {
        self.prepare_at(registry, order, text, CREATED)
    }

    /// The same, built at this instant.
    pub fn prepare_at(&self, registry: &Path, order: &str, text: &str, finished: &str) -> String {
        let layout = Layout::create(registry.join(order));
        let digest = artifact(&layout, text);
        let (namespace, name) = order.split_once('/').unwrap();
        self.attest(&layout, &digest, "https://sigstore.dev/cosign/sign/v1", json!({}));
        let provenance = json!({
            "buildDefinition": {
                "buildType": "https://ci.shop.example/render/v1",
                "externalParameters": {"order": {"namespace": namespace, "name": name}},
                "resolvedDependencies": [],
            },
            "runDetails": {"builder": {"id": "https://ci.shop.example/renderer"}, "metadata": {"finishedOn": finished}},
        });
        self.attest(&layout, &digest, "https://slsa.dev/provenance/v1", provenance);
        digest
    }

    /// Attaches a signed statement to the artifact `subject`.
    pub fn attest(&self, layout: &Layout, subject: &str, predicate_type: &str, predicate: Value) {
        let statement = json!({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"digest": {"sha256": &subject["sha256:".len()..]}}],
            "predicateType": predicate_type,
            "predicate": predicate,
        });
        let payload = serde_json::to_vec(&statement).unwrap();
        let kind = "application/vnd.in-toto+json";
        let mut signed = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).into_bytes();
        signed.extend(&payload);
        let signature: DerSignature = self.0.sign(&signed);
        let key = self.0.verifying_key().to_public_key_der().unwrap();
        let bundle = json!({
            "mediaType": BUNDLE,
            "verificationMaterial": {"publicKey": {"hint": BASE64_STANDARD.encode(Sha256::digest(key.as_bytes()))}},
            "dsseEnvelope": {
                "payload": BASE64_STANDARD.encode(&payload),
                "payloadType": kind,
                "signatures": [{"sig": BASE64_STANDARD.encode(signature.as_bytes())}],
            },
        });
        let bundle = serde_json::to_vec(&bundle).unwrap();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": BUNDLE,
            "config": descriptor(layout, EMPTY, b"{}"),
            "layers": [descriptor(layout, BUNDLE, &bundle)],
            "subject": {"mediaType": MANIFEST, "digest": subject, "size": layout.bytes(subject).len()},
            "annotations": {
                "dev.sigstore.bundle.content": "dsse-envelope",
                "dev.sigstore.bundle.predicateType": predicate_type,
                "org.opencontainers.image.created": CREATED,
            },
        });
        list(layout, &manifest);
    }
}

/// An artifact that Argo CD unpacks: one layer, one manifest at its top.
fn artifact(layout: &Layout, text: &str) -> String {
    let object =
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: text}}\ndata: {{text: {text:?}}}\n");
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    let mut header = tar::Header::new_gnu();
    header.set_size(object.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, "text.yaml", object.as_bytes()).unwrap();
    let bytes = tar.into_inner().unwrap().finish().unwrap();
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": "application/vnd.shop.manifests.v1",
        "config": descriptor(layout, EMPTY, b"{}"),
        "layers": [descriptor(layout, "application/vnd.oci.image.layer.v1.tar+gzip", &bytes)],
        "annotations": {"org.opencontainers.image.created": CREATED},
    });
    list(layout, &manifest)
}

fn descriptor(layout: &Layout, media_type: &str, bytes: &[u8]) -> Value {
    json!({"mediaType": media_type, "digest": layout.add(bytes), "size": bytes.len()})
}

/// Adds a manifest to the layout's list.
fn list(layout: &Layout, manifest: &Value) -> String {
    let bytes = serde_json::to_vec(manifest).unwrap();
    let digest = layout.add(&bytes);
    let mut entries = layout.entries();
    entries.push(json!({"mediaType": MANIFEST, "digest": digest, "size": bytes.len()}));
    layout.set_entries(&entries);
    digest
}
