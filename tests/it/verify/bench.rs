//! One Order with everything that can be demanded: approvals, an attestation check, a scan; all of it signed
//! with keys that follow from a number, so that digests are the same in every run.

use super::AT;
use crate::support::forge::Renderer;
use crate::support::harness::{Place, Said};
use crate::support::layout::{Layout, repository};
use serde_json::{Value, json};
use std::fs;

pub const APPROVAL: &str = "https://kokumi.dev/attestations/approval/v1";
pub const PROMOTION: &str = "https://kokumi.dev/attestations/promotion/v1";
pub const DEPLOYMENT: &str = "https://kokumi.dev/attestations/deployment/v1";
pub const TEST_RESULT: &str = "https://in-toto.io/attestation/test-result/v0.1";
pub const SCAN: &str = "https://in-toto.io/attestation/vulns/v0.2";
pub const REPOSITORY: &str = "r.example/shop/podinfo";

pub struct Bench {
    pub place: Place,
    pub layout: Layout,
    /// Of the artifact.
    pub digest: String,
    pub renderer: Renderer,
    pub job: Renderer,
}

impl Bench {
    /// The artifact is signed and has provenance; nothing else is attached.
    pub fn bare() -> Self {
        let place = Place::new();
        let (renderer, job) = (Renderer::new(1), Renderer::new(2));
        let digest = renderer.prepare(&place.path("registry"), "shop/podinfo", "hello");
        let layout = repository(&place.path("registry"), "shop/podinfo");
        let bench = Self { place, layout, digest, renderer, job };
        bench.place.write(
            "expedite.yaml",
            "sources: [{path: ./objects}]\nregistries: {r.example: {layout: ./registry}}\n\
             repository: {url: ./gitops.git, branch: main, create: true}\n",
        );
        bench.kitchen(&bench.renderer.public_key(), &bench.job.public_key());
        bench.place.write("objects/order.yaml", ORDER);
        bench.place.write("objects/environment.yaml", ENVIRONMENT);
        bench.preparation("podinfo-1");
        bench
    }

    /// Everything that is demanded is attached, and the records of a promotion and a deployment.
    pub fn whole() -> Self {
        let bench = Self::bare();
        bench.attach(APPROVAL, seal("Approved", "2026-02-09T10:00:00Z", 2));
        bench.attach(TEST_RESULT, json!({"result": "PASSED", "finishedOn": "2026-02-08T09:00:00Z"}));
        bench.attach(SCAN, scan(&[], "2026-02-09T08:00:00Z"));
        bench.attach(PROMOTION, promotion("shop", "podinfo"));
        bench.attach(DEPLOYMENT, deployment());
        bench
    }

    pub fn attach(&self, predicate_type: &str, predicate: Value) {
        self.job.attest(&self.layout, &self.digest, predicate_type, predicate);
    }

    /// Whom the reader trusts.
    pub fn kitchen(&self, renderer: &str, job: &str) {
        let block = |pem: &str| pem.lines().map(|l| format!("        {l}\n")).collect::<String>();
        let text = format!(
            "apiVersion: delivery.kokumi.dev/v1alpha1\nkind: Kitchen\nmetadata:\n  name: default\nspec:\n  trust:\n    keys:\n    - name: renderer\n      roles: [signature, provenance]\n      publicKey: |\n{}    - name: job\n      roles: [approvals, checks, scans, records]\n      publicKey: |\n{}",
            block(renderer),
            block(job),
        );
        self.place.write("objects/kitchen.yaml", text);
    }

    pub fn preparation(&self, name: &str) {
        let digest = &self.digest;
        self.place.write(
            &format!("objects/{name}.yaml"),
            format!(
                "apiVersion: delivery.kokumi.dev/v1alpha1\nkind: Preparation\nmetadata:\n  name: {name}\n  namespace: shop\n  uid: u-1\n  creationTimestamp: \"2026-02-01T00:00:00Z\"\nspec:\n  orderName: podinfo\n  artifact:\n    ociRef: oci://{REPOSITORY}@{digest}\n    digest: {digest}\n    signed: true\n"
            ),
        );
    }

    pub fn reference(&self) -> String {
        format!("{REPOSITORY}@{}", self.digest)
    }

    /// `verify` the artifact for its Order.
    pub fn verify(&self, more: &[&str]) -> Said {
        let reference = self.reference();
        let own = ["verify", &reference, "--order", "shop/podinfo", "--at", AT];
        self.place.expedite(&[&own, more].concat())
    }

    /// A way to the file that `--save` made; whole bytes.
    pub fn saved(&self, name: &str) -> Vec<u8> {
        self.verify(&["--save", name]).ok();
        fs::read(self.place.path(name)).unwrap()
    }

    /// From here on there is no registry, and nothing that says where one is.
    pub fn forget_registry(&self) {
        fs::remove_dir_all(self.place.path("registry")).unwrap();
        self.place.write("expedite.yaml", "sources: [{path: ./objects}]\n");
    }
}

const ORDER: &str = "\
apiVersion: delivery.kokumi.dev/v1alpha1
kind: Order
metadata: {name: podinfo, namespace: shop}
spec:
  environment: production
  promotion:
    mode: Manual
    approvals: {requiredApprovals: 2, allowedGroups: [platform]}
    checks:
    - name: scan
      vulnerabilities: {maxCritical: 0, maxAge: 7d}
";

const ENVIRONMENT: &str = "\
apiVersion: delivery.kokumi.dev/v1alpha1
kind: Environment
metadata: {name: production}
spec:
  clusters: [eu-1]
  promotion:
    checks:
    - name: tests
      attestation: {predicateType: \"https://in-toto.io/attestation/test-result/v0.1\", maxAge: 30d}
---
apiVersion: delivery.kokumi.dev/v1alpha1
kind: Cluster
metadata: {name: eu-1}
spec: {server: \"https://eu-1.example\"}
";

pub fn seal(result: &str, time: &str, required: u32) -> Value {
    let vote = |name: &str, subject: &str| {
        json!({
            "name": format!("{name}-1"), "decision": "Approve", "submittedTime": "2026-02-09T09:00:00Z",
            "approver": {"issuer": "https://idp.example", "subject": subject, "username": name},
            "counted": true, "reason": "Counted",
        })
    };
    json!({
        "order": "podinfo",
        "preparation": {"namespace": "shop", "name": "podinfo-1", "uid": "u-1"},
        "policy": {"requiredApprovals": required, "allowedGroups": ["platform"]},
        "result": result, "sealedTime": time,
        "submissions": [vote("ann", "1"), vote("bob", "2")],
    })
}

pub fn scan(critical: &[&str], time: &str) -> Value {
    let results: Vec<Value> = critical
        .iter()
        .map(|id| json!({"id": id, "severity": [{"method": "CVSS_V3", "score": "9.8"}]}))
        .collect();
    json!({
        "scanner": {"uri": "https://scan.example", "version": "1", "db": {}, "result": results},
        "metadata": {"scanStartedOn": time, "scanFinishedOn": time},
    })
}

pub fn promotion(namespace: &str, name: &str) -> Value {
    json!({
        "order": {"namespace": namespace, "name": name}, "environment": "production",
        "preparation": {"namespace": namespace, "name": "podinfo-1"}, "mode": "Manual",
        "promotedTime": "2026-02-09T11:00:00Z",
        "requestedBy": {"name": "Ann <ann@shop.example>", "commit": null, "signedBy": "unsigned"},
        "gates": [], "clusters": [{"name": "eu-1", "optIn": "Created"}], "promoter": {"version": "0.1.0"},
    })
}

pub fn deployment() -> Value {
    json!({
        "order": {"namespace": "shop", "name": "podinfo"}, "environment": "production",
        "preparation": {"namespace": "shop", "name": "podinfo-1"},
        "promotionRecord": {"digest": format!("sha256:{}", "1".repeat(64))},
        "firstHealthyTime": "2026-02-09T11:05:00Z", "clusters": [],
    })
}
