//! A chain with a past, made by the real binary: staging soaks under a check and a window, Ann votes, the run
//! seals, production follows; every promotion and deployment with its record.

use super::forge::Renderer;
use super::harness::{Place, Said, copy};
use super::layout::{self, Layout};
use expedite::attest::key::RecordSigner;
use expedite::model::approval::Ballot;
use expedite::model::id::{ClusterName, Digest, Namespace, OrderRef, PreparationName};
use expedite::model::naming::build_application_name;
use expedite::model::time::Time;
use expedite::policy::gates::ssh_vote;
use p256::pkcs8::{EncodePrivateKey as _, EncodePublicKey as _, LineEnding};
use serde_json::{Value, json};
use ssh_key::private::{Ed25519Keypair, KeypairData};
use std::sync::OnceLock;

pub const STAGING: &str = "staging/podinfo";
pub const SHOP: &str = "shop/podinfo";
const TEST_RESULT: &str = "https://in-toto.io/attestation/test-result/v0.1";

/// A moment of the day on which all of it happens.
pub fn at(clock: &str) -> String {
    format!("2026-02-10T{clock}:00Z")
}

fn job_pem() -> String {
    let secret = p256::SecretKey::from_slice(&[9; 32]).unwrap();
    secret.to_pkcs8_pem(LineEnding::LF).unwrap().to_string()
}

fn ann() -> ssh_key::PrivateKey {
    ssh_key::PrivateKey::new(KeypairData::Ed25519(Ed25519Keypair::from_seed(&[7; 32])), "ann").unwrap()
}

/// The place, and who acts in it.
pub struct Past {
    pub place: Place,
    pub digest: String,
    renderer: Renderer,
}

impl Past {
    /// Objects, an artifact with its evidence, and settings; nothing has run yet.
    pub fn new() -> Self {
        let mut place = Place::new();
        let renderer = Renderer::new(1);
        let registry = place.path("registry");
        let digests = [STAGING, SHOP].map(|order| renderer.prepare(&registry, order, "hello"));
        assert_eq!(digests[0], digests[1], "both stages run the same artifact");
        place.set("EXPEDITE_KEY", &job_pem());
        place.write(
            "expedite.yaml",
            "sources: [{path: ./objects}]\nobserved: ./applications.yaml\n\
             repository: {url: ./gitops.git, branch: main, create: true}\n\
             registries:\n  r.example: {layout: ./registry}\n",
        );
        place.write("applications.yaml", r#"{"apiVersion": "v1", "kind": "List", "items": []}"#);
        let past = Self { place, digest: digests[0].clone(), renderer };
        past.kitchen(true);
        for (cluster, environment) in [("dev-1", "dev"), ("eu-1", "production")] {
            past.object("Cluster", None, cluster, json!({"server": format!("https://{cluster}.example")}));
            past.object("Environment", None, environment, json!({"clusters": [cluster]}));
        }
        let tests = json!({"predicateType": TEST_RESULT, "expression": "coverage >= 80", "maxAge": "168h"});
        let window = json!({"timezone": "UTC", "days": ["Mon", "Tue"], "from": "06:00", "to": "22:00"});
        past.object(
            "Order",
            Some("staging"),
            "podinfo",
            json!({"environment": "dev", "promotion": {
                "mode": "Automatic", "checks": [{"name": "e2e", "attestation": tests}], "windows": [window],
            }}),
        );
        past.object(
            "Order",
            Some("shop"),
            "podinfo",
            json!({"environment": "production", "promotion": {
                "mode": "Automatic",
                "upstream": [{"order": STAGING, "soak": "1h"}],
                "approvals": {"requiredApprovals": 1, "allowedGroups": ["platform"]},
                "windows": [window],
            }}),
        );
        past.prepare("podinfo-1", &past.digest, "2026-02-01T00:00:00Z");
        past.attest(&past.digest, 81, "2026-02-09T09:00:00Z");
        past
    }

    pub fn layout(&self, order: &str) -> Layout {
        layout::repository(&self.place.path("registry"), order)
    }

    /// A test result of an artifact of staging.
    pub fn attest(&self, digest: &str, coverage: u32, when: &str) {
        let predicate = json!({"result": "PASSED", "coverage": coverage, "metadata": {"finishedOn": when}, "finishedOn": when});
        self.renderer.attest(&self.layout(STAGING), digest, TEST_RESULT, predicate);
    }

    /// Preparations of both stages.
    pub fn prepare(&self, name: &str, digest: &str, created: &str) {
        for order in [STAGING, SHOP] {
            let (namespace, _) = order.split_once('/').unwrap();
            let object = json!({
                "apiVersion": "delivery.kokumi.dev/v1alpha1", "kind": "Preparation",
                "metadata": {"name": name, "namespace": namespace, "creationTimestamp": created},
                "spec": {"orderName": "podinfo", "artifact": {
                    "ociRef": format!("oci://r.example/{order}@{digest}"), "digest": digest, "signed": true,
                }},
            });
            self.place.write(&format!("objects/preparation-{namespace}-{name}.yaml"), object.to_string());
        }
    }

    /// The Kitchen, with or without the job's key.
    pub fn kitchen(&self, job: bool) {
        let secret = p256::SecretKey::from_slice(&[9; 32]).unwrap();
        let other = p256::SecretKey::from_slice(&[8; 32]).unwrap();
        let secret = if job { secret } else { other };
        let pem = secret.public_key().to_public_key_pem(LineEnding::LF).unwrap();
        let spec = json!({
            "trust": {"keys": [
                {"name": "renderer", "publicKey": self.renderer.public_key(),
                 "roles": ["signature", "provenance", "checks"]},
                {"name": "job", "publicKey": pem, "roles": ["approvals", "records"]},
            ]},
            "approvers": [{
                "issuer": "https://idp.example", "subject": "4711", "username": "ann", "groups": ["platform"],
                "sshKeys": [ann().public_key().to_openssh().unwrap()],
            }],
        });
        self.object("Kitchen", None, "default", spec);
    }

    pub fn object(&self, kind: &str, namespace: Option<&str>, name: &str, spec: Value) {
        let metadata = match namespace {
            Some(namespace) => json!({"name": name, "namespace": namespace}),
            None => json!({"name": name}),
        };
        let object = json!({
            "apiVersion": "delivery.kokumi.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec,
        });
        let file = format!("objects/{kind}-{}-{name}.yaml", namespace.unwrap_or("")).to_lowercase();
        self.place.write(&file, object.to_string());
    }

    /// Ann's signed vote on the first Preparation of production.
    pub fn vote(&self, when: &str) {
        let namespace = Namespace::parse("shop").unwrap();
        let preparation = PreparationName::parse("podinfo-1").unwrap();
        let digest = Digest::parse(&self.digest).unwrap();
        let time = Time::parse(when).unwrap();
        let message = ssh_vote::build_vote_bytes(&namespace, &preparation, digest, Ballot::Approve, time);
        let signature = ann().sign(ssh_vote::NAMESPACE, ssh_key::HashAlg::Sha512, &message).unwrap();
        self.object(
            "Approval",
            Some("shop"),
            "ann-1",
            json!({
                "preparationRef": {"name": "podinfo-1", "artifactDigest": self.digest},
                "approver": {"issuer": "https://idp.example", "subject": "4711", "username": "ann"},
                "decision": "Approve",
                "submittedTime": when,
                "signature": signature.to_pem(ssh_key::LineEnding::LF).unwrap(),
            }),
        );
    }

    /// What Argo CD says of staging.
    pub fn observe(&self, digest: &str, health: &str, since: &str, reconciled: &str) {
        let order = OrderRef::parse(STAGING).unwrap();
        let name = build_application_name(&order, &ClusterName::parse("dev-1").unwrap()).unwrap();
        let source =
            json!({"repoURL": format!("oci://r.example/{STAGING}"), "targetRevision": digest, "path": "."});
        let destination = json!({"server": "https://dev-1.example", "namespace": "staging"});
        let application = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {
                "name": name, "namespace": "argocd",
                "labels": {
                    "delivery.kokumi.dev/serving": "podinfo",
                    "delivery.kokumi.dev/serving-namespace": "staging",
                },
            },
            "spec": {"project": "default", "source": source, "destination": destination},
            "status": {
                "sync": {
                    "status": "Synced", "revision": digest,
                    "comparedTo": {"source": source, "destination": destination},
                },
                "health": {"status": health, "lastTransitionTime": since},
                "operationState": {
                    "phase": "Succeeded", "startedAt": since, "finishedAt": since,
                    "syncResult": {"revision": digest},
                },
                "reconciledAt": reconciled,
            },
        });
        let dump = json!({"apiVersion": "v1", "kind": "List", "items": [application]});
        self.place.write("applications.yaml", dump.to_string());
    }

    #[track_caller]
    pub fn run(&self, clock: &str) -> Said {
        let said = self.verb(&["run", "--at", &at(clock)]);
        said.ok();
        said
    }

    pub fn verb(&self, arguments: &[&str]) -> Said {
        self.place.expedite(&[arguments, &["--config", "expedite.yaml"]].concat())
    }

    /// All of it: staging promoted at nine, healthy, soaked; a vote; production promoted at half past eleven.
    /// Lived once and copied for each test.
    pub fn lived() -> Self {
        static LIVED: OnceLock<Past> = OnceLock::new();
        let lived = LIVED.get_or_init(Self::live);
        let mut place = Place::new();
        for part in ["objects", "registry", "gitops.git"] {
            copy(&lived.place.path(part), &place.path(part));
        }
        for part in ["expedite.yaml", "applications.yaml"] {
            place.write(part, lived.place.read(part));
        }
        place.set("EXPEDITE_KEY", &job_pem());
        Self { place, digest: lived.digest.clone(), renderer: Renderer::new(1) }
    }

    fn live() -> Self {
        let past = Self::new();
        past.run("09:00");
        past.observe(&past.digest, "Healthy", &at("09:05"), &at("09:10"));
        past.run("09:10");
        past.observe(&past.digest, "Healthy", &at("09:05"), &at("11:00"));
        past.run("11:00");
        past.vote(&at("11:20"));
        past.run("11:30");
        let status = past.serving(SHOP)["status"].clone();
        assert_eq!(status["deployedDigest"], past.digest.as_str(), "{status:#}");
        past
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        self.place.git(&[&["-C", "gitops.git"], arguments].concat())
    }

    pub fn head(&self) -> String {
        self.git(&["rev-parse", "main"]).trim().to_owned()
    }

    #[track_caller]
    pub fn serving(&self, order: &str) -> Value {
        serde_yaml::from_str(&self.git(&["show", &format!("main:servings/{order}.yaml")])).unwrap()
    }

    /// A clone in which a person (or a thief of push rights) works.
    pub fn person(&self) {
        let _ = std::fs::remove_dir_all(self.place.path("person"));
        self.place.git(&["clone", "-q", "gitops.git", "person"]);
    }

    /// Commits what was changed in the clone, and pushes it.
    pub fn push(&self, how: &[&str]) {
        self.place.git(&["-C", "person", "add", "-A"]);
        self.place.git(&[&["-C", "person", "commit", "-q", "-m", "By hand"], how].concat());
        self.place.git(&["-C", "person", "push", "-q", "-f", "origin", "HEAD:main"]);
    }

    /// The job's key.
    pub fn job(&self) -> RecordSigner {
        RecordSigner::from_pem(&job_pem(), None).unwrap()
    }
}
