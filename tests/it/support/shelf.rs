//! A registry on a shelf: image layout folders made by hand, to put evidence of every kind into.

use expedite::model::id::{Artifact, Digest, OciRepository};
use oci_registry::{HostConfig, Registries, RegistriesConfig};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

pub const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub const TAR: &str = "application/vnd.oci.image.layer.v1.tar";
pub const TAR_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
pub const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
pub const PAYLOAD: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
pub const ENVELOPE: &str = "application/vnd.dsse.envelope.v1+json";
pub const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
pub const PREDICATE: &str = "dev.sigstore.bundle.predicateType";

/// One repository, `r.example/shop/podinfo`, in an image layout folder.
pub struct Shelf {
    root: tempfile::TempDir,
    repository: OciRepository,
}

impl Default for Shelf {
    fn default() -> Self {
        Self::new()
    }
}

impl Shelf {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let shelf = Self { root, repository: OciRepository::parse("r.example/shop/podinfo").unwrap() };
        fs::create_dir_all(shelf.folder().join("blobs/sha256")).unwrap();
        fs::write(shelf.folder().join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
        shelf.write_index(&[]);
        shelf
    }

    pub fn folder(&self) -> PathBuf {
        self.root.path().join("shop/podinfo")
    }

    pub fn registries(&self) -> Registries {
        let layout = HostConfig { layout: Some(self.root.path().into()), ..HostConfig::default() };
        let hosts = [("r.example".to_owned(), layout)].into();
        Registries::new(RegistriesConfig { hosts, ..RegistriesConfig::default() }).unwrap()
    }

    fn write_index(&self, manifests: &[Value]) {
        let index = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": manifests});
        fs::write(self.folder().join("index.json"), index.to_string()).unwrap();
    }

    fn index(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.folder().join("index.json")).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["manifests"].as_array().unwrap().clone()
    }

    pub fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.folder().join("blobs/sha256").join(digest.format_hex())
    }

    pub fn blob(&self, bytes: &[u8]) -> Digest {
        let digest = Digest::hash_bytes(bytes);
        fs::write(self.blob_path(&digest), bytes).unwrap();
        digest
    }

    /// A descriptor of a blob that is stored with it.
    pub fn layer(&self, media_type: &str, bytes: &[u8], annotations: Value) -> Value {
        json!({
            "mediaType": media_type, "digest": self.blob(bytes).to_string(), "size": bytes.len(),
            "annotations": annotations,
        })
    }

    /// Stores a manifest and lists it, under a tag where one is given.
    pub fn manifest(&self, manifest: &Value, tag: Option<&str>) -> Digest {
        let bytes = manifest.to_string();
        let digest = self.blob(bytes.as_bytes());
        let mut entry = json!({
            "mediaType": manifest["mediaType"], "digest": digest.to_string(), "size": bytes.len(),
        });
        if let Some(tag) = tag {
            entry["annotations"] = json!({"org.opencontainers.image.ref.name": tag});
        }
        let mut index = self.index();
        index.push(entry);
        self.write_index(&index);
        digest
    }

    /// Takes the list's order back to front.
    pub fn reverse(&self) {
        let mut index = self.index();
        index.reverse();
        self.write_index(&index);
    }

    /// Forgets a manifest: neither listed nor stored.
    pub fn forget(&self, digest: &Digest) {
        let index: Vec<Value> =
            self.index().into_iter().filter(|m| m["digest"] != digest.to_string()).collect();
        self.write_index(&index);
        fs::remove_file(self.blob_path(digest)).unwrap();
    }

    /// An artifact with these layers.
    pub fn artifact_with(&self, layers: &[Value]) -> Artifact {
        let config = self.layer("application/vnd.oci.empty.v1+json", b"{}", json!({}));
        let manifest = json!({
            "schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": layers,
        });
        Artifact { repository: self.repository.clone(), digest: self.manifest(&manifest, None) }
    }

    /// An artifact as a renderer makes it; different `content`, different digest.
    pub fn artifact(&self, content: &str) -> Artifact {
        let layer = self.layer(TAR, &tar(&[("deploy.yaml", content.as_bytes())]), json!({}));
        self.artifact_with(&[layer])
    }

    pub fn at(&self, digest: Digest) -> Artifact {
        Artifact { repository: self.repository.clone(), digest }
    }

    /// Attaches a manifest with these layers as a referrer.
    pub fn referrer(
        &self,
        artifact: &Artifact,
        artifact_type: &str,
        layers: &[Value],
        annotations: Value,
    ) -> Digest {
        let config = self.layer("application/vnd.oci.empty.v1+json", b"{}", json!({}));
        let manifest = json!({
            "schemaVersion": 2, "mediaType": OCI_MANIFEST, "artifactType": artifact_type,
            "config": config, "layers": layers, "annotations": annotations,
            "subject": {"mediaType": OCI_MANIFEST, "digest": artifact.digest.to_string(), "size": 1},
        });
        self.manifest(&manifest, None)
    }

    /// Attaches a bundle, with the annotation that cosign writes.
    pub fn bundle(&self, artifact: &Artifact, bundle: &Value) -> Digest {
        let payload = bundle["dsseEnvelope"]["payload"].as_str().unwrap_or_default();
        let kind = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, payload)
            .ok()
            .and_then(|p| serde_json::from_slice::<Value>(&p).ok())
            .and_then(|s| Some(s["predicateType"].as_str()?.to_owned()));
        let annotations = kind.map_or(json!({}), |k| json!({PREDICATE: k}));
        self.bundle_bytes(artifact, bundle.to_string().as_bytes(), annotations)
    }

    pub fn bundle_bytes(&self, artifact: &Artifact, bundle: &[u8], annotations: Value) -> Digest {
        let layer = self.layer(BUNDLE, bundle, json!({}));
        self.referrer(artifact, BUNDLE, &[layer], annotations)
    }

    /// Puts these layers under the artifact's `.sig` or `.att` tag.
    pub fn tagged(&self, artifact: &Artifact, suffix: &str, layers: &[Value]) -> Digest {
        let config = self.layer("application/vnd.oci.image.config.v1+json", b"{}", json!({}));
        let manifest = json!({
            "schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": layers,
        });
        let tag = format!("sha256-{}.{suffix}", artifact.digest.format_hex());
        self.manifest(&manifest, Some(&tag))
    }

    /// A `.sig` layer.
    pub fn signed(&self, payload: &str, signature: &str) -> Value {
        self.layer(PAYLOAD, payload.as_bytes(), json!({SIGNATURE: signature}))
    }

    /// A `.att` layer.
    pub fn attested(&self, envelope: &Value, predicate_type: &str) -> Value {
        let annotations = json!({SIGNATURE: "", "predicateType": predicate_type});
        self.layer(ENVELOPE, envelope.to_string().as_bytes(), annotations)
    }
}

/// A tar of regular files.
pub fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, path, *content).unwrap();
    }
    builder.into_inner().unwrap()
}
