//! An OCI image layout that a test damages or extends.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

/// Where descriptors keep their tag.
const TAG: &str = "org.opencontainers.image.ref.name";

/// One image layout folder: one repository.
pub struct Layout(PathBuf);

impl Layout {
    /// The layout at `path`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The layout at `path`, made empty where there is none.
    pub fn create(path: impl Into<PathBuf>) -> Self {
        let layout = Self::at(path);
        if !layout.0.join("oci-layout").exists() {
            fs::create_dir_all(layout.0.join("blobs/sha256")).unwrap();
            fs::write(layout.0.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
            layout.set_entries(&[]);
        }
        layout
    }

    /// Where the bytes of `digest` are.
    pub fn blob(&self, digest: &str) -> PathBuf {
        self.0.join("blobs").join(digest.replace(':', "/"))
    }

    /// The bytes of `digest`.
    pub fn bytes(&self, digest: &str) -> Vec<u8> {
        fs::read(self.blob(digest)).unwrap()
    }

    /// The manifest `digest`.
    pub fn manifest(&self, digest: &str) -> Value {
        serde_json::from_slice(&self.bytes(digest)).unwrap()
    }

    /// The layout's list.
    pub fn entries(&self) -> Vec<Value> {
        let index: Value = serde_json::from_slice(&fs::read(self.0.join("index.json")).unwrap()).unwrap();
        index["manifests"].as_array().unwrap().clone()
    }

    /// Replaces the layout's list.
    pub fn set_entries(&self, entries: &[Value]) {
        let index = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": entries});
        fs::write(self.0.join("index.json"), serde_json::to_vec(&index).unwrap()).unwrap();
    }

    /// The digest under a tag.
    #[track_caller]
    pub fn tagged(&self, tag: &str) -> String {
        let entry = self.entries().into_iter().find(|entry| entry["annotations"][TAG] == tag);
        let entry = entry.unwrap_or_else(|| panic!("{}: no tag {tag}", self.0.display()));
        entry["digest"].as_str().unwrap().to_owned()
    }

    /// Adds bytes and gives their digest.
    pub fn add(&self, bytes: &[u8]) -> String {
        let digest = format!("sha256:{}", hex::encode(Sha256::digest(bytes)));
        fs::write(self.blob(&digest), bytes).unwrap();
        digest
    }

    /// The manifest that is a bundle of this predicate type on `subject`.
    #[track_caller]
    pub fn bundle(&self, subject: &str, predicate_type: &str) -> String {
        let digests = self.entries().into_iter().map(|e| e["digest"].as_str().unwrap().to_owned());
        let found = digests.into_iter().find(|digest| {
            let manifest = self.manifest(digest);
            let annotations = &manifest["annotations"];
            manifest["subject"]["digest"] == subject
                && annotations["dev.sigstore.bundle.predicateType"] == predicate_type
        });
        found.unwrap_or_else(|| panic!("{}: no bundle of {predicate_type} on {subject}", self.0.display()))
    }

    /// Puts other bytes into the first layer of the manifest `digest`, with every hash and size on the way
    /// to the list made right again. Gives the new manifest's digest.
    pub fn replace_layer(&self, digest: &str, layer: &[u8]) -> String {
        let mut manifest = self.manifest(digest);
        manifest["layers"][0]["digest"] = self.add(layer).into();
        manifest["layers"][0]["size"] = layer.len().into();
        let bytes = serde_json::to_vec(&manifest).unwrap();
        let new = self.add(&bytes);
        let mut entries = self.entries();
        for entry in entries.iter_mut().filter(|entry| entry["digest"] == digest) {
            entry["digest"] = new.clone().into();
            entry["size"] = bytes.len().into();
        }
        self.set_entries(&entries);
        new
    }

    /// Changes one bit in the middle of a blob that stays under its name.
    pub fn flip(&self, digest: &str) {
        let mut bytes = self.bytes(digest);
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(self.blob(digest), bytes).unwrap();
    }
}

/// The layout of a repository below a folder of layouts.
pub fn repository(registry: &Path, repository: &str) -> Layout {
    Layout::at(registry.join(repository))
}
