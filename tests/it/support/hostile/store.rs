//! What the registry holds, and its honest answers.

use super::Hostile;
use super::tokens::{Accounts, Auth};
use super::wire::{Answer, Request};
use expedite::model::id::Digest;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

pub const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";

/// One repository.
#[derive(Debug, Clone, Default)]
pub struct Repository {
    /// Media type and bytes.
    pub manifests: BTreeMap<Digest, (String, Vec<u8>)>,
    pub blobs: BTreeMap<Digest, Vec<u8>>,
    pub tags: BTreeMap<String, Digest>,
}

/// How the registry differs from others, without lying.
#[derive(Clone)]
pub struct Behaviour {
    /// `None`: 404 as a registry without the route answers; else the most entries of one page.
    pub referrers_page: Option<usize>,
    /// Absolute `Link` targets, else relative ones.
    pub absolute_links: bool,
    /// Lists no referrer although the API is there.
    pub empty_referrers: bool,
    /// Answers `OCI-Subject` when a manifest with a subject is put.
    pub oci_subject: bool,
    /// As docker-registry 2.8: a stored type that is not in Accept is 404.
    pub strict_accept: bool,
    /// Where uploads go; `None`: here.
    pub upload_base: Option<String>,
    pub auth: Auth,
}

pub struct Store {
    pub repositories: BTreeMap<String, Repository>,
    pub behaviour: Behaviour,
    pub accounts: Accounts,
    base: String,
    uploads: usize,
}

impl Store {
    pub(super) fn new(address: SocketAddr, tls: bool) -> Self {
        let behaviour = Behaviour {
            referrers_page: Some(usize::MAX),
            absolute_links: false,
            empty_referrers: false,
            oci_subject: true,
            strict_accept: false,
            upload_base: None,
            auth: Auth::Open,
        };
        let base = format!("{}://{address}", if tls { "https" } else { "http" });
        Self { repositories: BTreeMap::new(), behaviour, accounts: Accounts::default(), base, uploads: 0 }
    }

    pub fn repository(&mut self, name: &str) -> &mut Repository {
        self.repositories.entry(name.to_owned()).or_default()
    }

    pub(super) fn answer(&mut self, request: &Request) -> Answer {
        if request.path == "/token" {
            return self.accounts.token(request);
        }
        let Some(rest) = request.path.strip_prefix("/v2/") else { return not_routed() };
        let Some((name, kind, reference)) = split(rest) else { return not_routed() };
        let action = match request.method.as_str() {
            "GET" | "HEAD" => "pull",
            _ => "push",
        };
        let auth = self.behaviour.auth.clone();
        if let Some(refusal) = self.accounts.refusal(&auth, &self.base, request, name, action) {
            return refusal;
        }
        match (request.method.as_str(), kind) {
            ("GET" | "HEAD", "manifests") => self.manifest(name, reference, request),
            ("GET" | "HEAD", "blobs") => self.blob(name, reference),
            ("GET", "referrers") => self.referrers(name, reference, request),
            ("PUT", "manifests") => self.put_manifest(name, reference, request),
            ("POST", "uploads") => {
                self.uploads += 1;
                let place = self.behaviour.upload_base.clone().unwrap_or_default();
                let place = format!("{place}/v2/{name}/blobs/uploads/{}?state=a%2Fb", self.uploads);
                Answer::new(202, "", "").with("Location", place)
            }
            ("PUT", "uploads") => self.put_blob(name, request),
            _ => Answer::error(405, "UNSUPPORTED"),
        }
    }

    fn manifest(&self, name: &str, reference: &str, request: &Request) -> Answer {
        let Some(repository) = self.repositories.get(name) else { return Answer::error(404, "NAME_UNKNOWN") };
        let digest = Digest::parse(reference).ok().or_else(|| repository.tags.get(reference).copied());
        let Some((digest, (kind, bytes))) = digest.and_then(|d| Some((d, repository.manifests.get(&d)?)))
        else {
            return Answer::error(404, "MANIFEST_UNKNOWN");
        };
        if self.behaviour.strict_accept
            && !request.header("accept").unwrap_or_default().contains(kind.as_str())
        {
            return Answer::error(404, "MANIFEST_UNKNOWN");
        }
        Answer::new(200, kind, bytes.clone()).with("Docker-Content-Digest", digest.to_string())
    }

    fn blob(&self, name: &str, reference: &str) -> Answer {
        let blobs = self.repositories.get(name).map(|r| &r.blobs);
        match Digest::parse(reference).ok().and_then(|d| blobs?.get(&d)) {
            Some(bytes) => Answer::new(200, "application/octet-stream", bytes.clone()),
            None => Answer::error(404, "BLOB_UNKNOWN"),
        }
    }

    fn referrers(&self, name: &str, reference: &str, request: &Request) -> Answer {
        let Some(page) = self.behaviour.referrers_page else { return not_routed() };
        let empty = Repository::default();
        let repository = self.repositories.get(name).unwrap_or(&empty);
        let mut entries: Vec<Value> = Vec::new();
        for (digest, (kind, bytes)) in &repository.manifests {
            let Ok(body) = serde_json::from_slice::<Value>(bytes) else { continue };
            if body["subject"]["digest"] != reference || self.behaviour.empty_referrers {
                continue;
            }
            let artifact_type = if body["artifactType"].is_null() {
                &body["config"]["mediaType"]
            } else {
                &body["artifactType"]
            };
            entries.push(json!({"mediaType": kind, "digest": digest, "size": bytes.len(),
                "artifactType": artifact_type, "annotations": body["annotations"]}));
        }
        let start: usize = request.query("from").first().and_then(|f| f.parse().ok()).unwrap_or(0);
        let end = start.saturating_add(page).min(entries.len());
        let body =
            json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": entries[start.min(end)..end]});
        let answer = Answer::new(200, OCI_INDEX, body.to_string());
        if end >= entries.len() {
            return answer;
        }
        let base = if self.behaviour.absolute_links { self.base.as_str() } else { "" };
        answer.with("Link", format!(r#"<{base}/v2/{name}/referrers/{reference}?from={end}>; rel="next""#))
    }

    fn put_manifest(&mut self, name: &str, reference: &str, request: &Request) -> Answer {
        let digest = Digest::hash_bytes(&request.body);
        let kind = request.header("content-type").unwrap_or_default().to_owned();
        let Ok(body) = serde_json::from_slice::<Value>(&request.body) else {
            return Answer::error(400, "MANIFEST_INVALID");
        };
        if reference.contains(':') && reference != digest.to_string() {
            return Answer::error(400, "DIGEST_INVALID");
        }
        let oci_subject = self.behaviour.oci_subject;
        let repository = self.repository(name);
        repository.manifests.insert(digest, (kind, request.body.clone()));
        if !reference.contains(':') {
            repository.tags.insert(reference.to_owned(), digest);
        }
        let answer = Answer::new(201, "", "").with("Location", format!("/v2/{name}/manifests/{digest}"));
        match body["subject"]["digest"].as_str() {
            Some(subject) if oci_subject => answer.with("OCI-Subject", subject),
            _ => answer,
        }
    }

    fn put_blob(&mut self, name: &str, request: &Request) -> Answer {
        let digest = Digest::hash_bytes(&request.body);
        if request.query("digest") != [digest.to_string()] {
            return Answer::error(400, "DIGEST_INVALID");
        }
        self.repository(name).blobs.insert(digest, request.body.clone());
        Answer::new(201, "", "").with("Location", format!("/v2/{name}/blobs/{digest}"))
    }
}

/// As a registry answers a path it does not know.
fn not_routed() -> Answer {
    Answer::new(404, "text/plain; charset=utf-8", "404 page not found\n")
}

/// `shop/podinfo/manifests/v1` → name, kind, reference; an upload's kind is `uploads`.
fn split(rest: &str) -> Option<(&str, &str, &str)> {
    if let Some((name, reference)) = rest.split_once("/blobs/uploads/") {
        return Some((name, "uploads", reference));
    }
    let (before, reference) = rest.rsplit_once('/')?;
    let (name, kind) = before.rsplit_once('/')?;
    Some((name, kind, reference))
}

impl Hostile {
    pub fn push_blob(&self, repository: &str, bytes: &[u8]) -> Digest {
        let digest = Digest::hash_bytes(bytes);
        self.store().repository(repository).blobs.insert(digest, bytes.to_vec());
        digest
    }

    pub fn push_manifest(&self, repository: &str, media_type: &str, bytes: &[u8]) -> Digest {
        let digest = Digest::hash_bytes(bytes);
        let entry = (media_type.to_owned(), bytes.to_vec());
        self.store().repository(repository).manifests.insert(digest, entry);
        digest
    }

    pub fn tag(&self, repository: &str, tag: &str, digest: Digest) {
        self.store().repository(repository).tags.insert(tag.to_owned(), digest);
    }

    /// An artifact as Kokumi pushes rendered manifests: one layer, a tar of these files.
    pub fn push_artifact(&self, repository: &str, files: &[(&str, &[u8])]) -> Digest {
        let mut tar =
            tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
        for (name, content) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            header.set_cksum();
            tar.append_data(&mut header, name, *content).unwrap();
        }
        let layer = tar.into_inner().unwrap().finish().unwrap();
        let config = self.push_blob(repository, b"{}");
        let layer_digest = self.push_blob(repository, &layer);
        let manifest = json!({
            "schemaVersion": 2, "mediaType": OCI_MANIFEST, "artifactType": "application/vnd.kokumi.manifests.v1",
            "config": {"mediaType": EMPTY, "digest": config, "size": 2},
            "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
                "digest": layer_digest, "size": layer.len()}],
        });
        self.push_manifest(repository, OCI_MANIFEST, manifest.to_string().as_bytes())
    }

    /// Something attached to `subject`: one layer with these bytes. Returns its manifest's digest.
    pub fn push_referrer(
        &self,
        repository: &str,
        subject: &Digest,
        artifact_type: &str,
        layer: &[u8],
    ) -> Digest {
        let manifest = self.referrer_manifest(repository, subject, artifact_type, layer);
        self.push_blob(repository, b"{}");
        self.push_blob(repository, layer);
        self.push_manifest(repository, OCI_MANIFEST, manifest.to_string().as_bytes())
    }

    /// The manifest of such an attachment, not pushed.
    pub fn referrer_manifest(
        &self,
        repository: &str,
        subject: &Digest,
        artifact_type: &str,
        layer: &[u8],
    ) -> Value {
        let size = self.store().repository(repository).manifests.get(subject).map_or(7, |(_, b)| b.len());
        json!({
            "schemaVersion": 2, "mediaType": OCI_MANIFEST, "artifactType": artifact_type,
            "config": {"mediaType": EMPTY, "digest": Digest::hash_bytes(b"{}"), "size": 2},
            "layers": [{"mediaType": artifact_type, "digest": Digest::hash_bytes(layer), "size": layer.len()}],
            "subject": {"mediaType": OCI_MANIFEST, "digest": subject, "size": size},
            "annotations": {"org.opencontainers.image.created": "2026-11-30T00:00:00Z"},
        })
    }

    /// Puts these manifests (digest, media type, size, and these extra members) into the fallback index of `subject`.
    pub fn push_fallback(&self, repository: &str, subject: &Digest, entries: &[Value]) -> Digest {
        let index = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": entries});
        let digest = self.push_manifest(repository, OCI_INDEX, index.to_string().as_bytes());
        self.tag(repository, &format!("sha256-{}", subject.format_hex()), digest);
        digest
    }

    /// The descriptor of a manifest that was pushed.
    pub fn descriptor(&self, repository: &str, digest: &Digest) -> Value {
        let mut store = self.store();
        let (kind, bytes) = &store.repository(repository).manifests[digest];
        json!({"mediaType": kind, "digest": digest, "size": bytes.len()})
    }

    /// Takes everything of an image layout folder into a repository: manifests, blobs, tags.
    pub fn push_layout(&self, repository: &str, layout: &Path) {
        let index: Value =
            serde_json::from_slice(&std::fs::read(layout.join("index.json")).unwrap()).unwrap();
        for file in std::fs::read_dir(layout.join("blobs/sha256")).unwrap() {
            self.push_blob(repository, &std::fs::read(file.unwrap().path()).unwrap());
        }
        for entry in index["manifests"].as_array().unwrap() {
            let digest = Digest::parse(entry["digest"].as_str().unwrap()).unwrap();
            let bytes = self.store().repository(repository).blobs.get(&digest).cloned();
            let Some(bytes) = bytes else { continue };
            self.push_manifest(repository, entry["mediaType"].as_str().unwrap(), &bytes);
            if let Some(tag) = entry["annotations"]["org.opencontainers.image.ref.name"].as_str() {
                let tag = tag.rsplit(':').next().unwrap();
                self.tag(repository, tag, digest);
            }
        }
    }
}
