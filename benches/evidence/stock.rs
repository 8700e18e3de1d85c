//! Signed artifacts in a registry, many and fast.

use crate::shelf::{BUNDLE, OCI_MANIFEST, PREDICATE, TAR, tar};
use crate::signing::{APPROVAL, Key, SIGN, SLSA, bundle, slsa, statement};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use expedite::evidence::gather::make_runtime;
use expedite::model::evidence::SealOf;
use expedite::model::id::{Artifact, Digest, OciRepository, OrderRef, PreparationName};
use futures::StreamExt as _;
use serde_json::{Value, json};

/// Where a bundle's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layers {
    /// In a blob of their own, as cosign puts them.
    Separate,
    /// In the manifest too, as our writer puts them.
    Embedded,
}

/// One artifact and its Order.
pub struct Item {
    pub order: OrderRef,
    pub digest: Digest,
    path: String,
}

impl Item {
    pub fn artifact(&self, address: &str) -> Artifact {
        let repository = OciRepository::parse(&format!("{address}/{}", self.path)).unwrap();
        Artifact { repository, digest: self.digest }
    }

    /// Whose seal it carries.
    pub fn seal(&self) -> SealOf {
        SealOf { order: self.order.clone(), preparation: preparation(&self.order), uid: None }
    }

    /// `address/path@digest`.
    pub fn reference(&self, address: &str) -> String {
        format!("{address}/{}@{}", self.path, self.digest)
    }
}

/// The Preparation of an Order.
fn preparation(order: &OrderRef) -> PreparationName {
    PreparationName::parse(&format!("{}-1", order.name)).unwrap()
}

/// Pushes that many artifacts, each with a signature, provenance and a seal of approvals by `key`.
pub fn fill(address: &str, prefix: &str, key: &Key, artifacts: usize, layers: Layers) -> Vec<Item> {
    let client = reqwest::Client::new();
    let jobs = (0..artifacts).map(|n| {
        let (item, blobs, manifests) = make(prefix, key, n, layers);
        let (client, base) = (client.clone(), format!("http://{address}/v2/{}", item.path));
        async move {
            for blob in blobs {
                let place = format!("{base}/blobs/uploads/?digest={}", Digest::hash_bytes(&blob));
                send(client.post(place).body(blob)).await;
            }
            for manifest in manifests {
                let place = format!("{base}/manifests/{}", Digest::hash_bytes(&manifest));
                send(client.put(place).header("Content-Type", OCI_MANIFEST).body(manifest)).await;
            }
            item
        }
    });
    make_runtime().unwrap().block_on(futures::stream::iter(jobs).buffered(16).collect())
}

async fn send(request: reqwest::RequestBuilder) {
    let answer = request.send().await.unwrap();
    let status = answer.status();
    assert!(status.is_success(), "{status}: {}", answer.text().await.unwrap());
}

/// An artifact with the blobs and manifests it takes, in the order of pushing.
fn make(prefix: &str, key: &Key, n: usize, layers: Layers) -> (Item, Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let (namespace, name) = (format!("team-{:03}", n / 100), format!("service-{:02}", n % 100));
    let text =
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\n");
    let mut blobs = vec![b"{}".to_vec(), tar(&[("deploy.yaml", text.as_bytes())])];
    let content = descriptor(TAR, &blobs[1]);
    let manifest = json!({
        "schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config(), "layers": [content],
    });
    let manifest = manifest.to_string().into_bytes();
    let (digest, subject) = (Digest::hash_bytes(&manifest), descriptor(OCI_MANIFEST, &manifest));
    let mut manifests = vec![manifest];
    let order = OrderRef::parse(&format!("{namespace}/{name}")).unwrap();
    let evidence = [(SIGN, json!({})), (SLSA, slsa(&namespace, &name)), (APPROVAL, seal(&order))];
    for (kind, predicate) in evidence {
        let bytes = bundle(key, &statement(&digest, kind, predicate)).to_string().into_bytes();
        let mut layer = descriptor(BUNDLE, &bytes);
        if layers == Layers::Embedded {
            layer["data"] = json!(STANDARD.encode(&bytes));
        }
        let referrer = json!({
            "schemaVersion": 2, "mediaType": OCI_MANIFEST, "artifactType": BUNDLE, "config": config(),
            "layers": [layer], "subject": subject, "annotations": {PREDICATE: kind},
        });
        manifests.push(referrer.to_string().into_bytes());
        blobs.push(bytes);
    }
    (Item { order, digest, path: format!("{prefix}/{namespace}/{name}") }, blobs, manifests)
}

fn seal(order: &OrderRef) -> Value {
    json!({
        "order": order.name,
        "preparation": {"namespace": order.namespace, "name": preparation(order)},
        "policy": {"requiredApprovals": 1, "allowedGroups": ["platform"]},
        "result": "Approved",
        "sealedTime": "2026-11-01T11:00:00Z",
        "submissions": [],
    })
}

fn config() -> Value {
    descriptor("application/vnd.oci.empty.v1+json", b"{}")
}

fn descriptor(media_type: &str, bytes: &[u8]) -> Value {
    json!({"mediaType": media_type, "digest": Digest::hash_bytes(bytes).to_string(), "size": bytes.len()})
}
