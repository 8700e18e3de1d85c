//! A whole chain, for real: objects in a folder, artifacts in image layouts, a bare repository, a dump of what
//! Argo CD says, a run's own key. Staging soaks, people vote, the run seals, production follows.

use crate::support::setup::setup;
use crate::support::{forge, fsck, layout};
use expedite::attest::key::RecordSigner;
use expedite::error::Failure;
use expedite::evidence::gather;
use expedite::model::approval::Ballot;
use expedite::model::id::{ClusterName, Digest, Namespace, OrderRef, PreparationName};
use expedite::model::naming::{build_application_name, build_record_path, build_serving_path};
use expedite::model::serving::Serving;
use expedite::model::time::Time;
use expedite::model::verdict::GateName;
use expedite::policy::gates::ssh_vote;
use expedite::run::{self, Ran, Setup, Writing};
use git_commits::Identity;
use git_commits::identity::Given;
use git_commits::{Environment, Repository, RepositoryTarget, Snapshot};
use oci_registry::{HostConfig, Registries, RegistriesConfig};
use p256::pkcs8::{EncodePrivateKey as _, EncodePublicKey as _, LineEnding};
use serde_json::{Value, json};
use ssh_key::private::{Ed25519Keypair, KeypairData};
use std::fs;
use std::path::PathBuf;

const STAGING: &str = "staging/podinfo";
const SHOP: &str = "shop/podinfo";

fn at(clock: &str) -> Time {
    Time::parse(&format!("2026-11-30T{clock}:00Z")).unwrap()
}

fn ann() -> ssh_key::PrivateKey {
    ssh_key::PrivateKey::new(KeypairData::Ed25519(Ed25519Keypair::from_seed(&[7; 32])), "ann").unwrap()
}

struct Chain {
    folder: fsck::Folder,
    digest: String,
    job: RecordSigner,
    registries: Registries,
    runtime: tokio::runtime::Runtime,
}

impl Chain {
    fn new() -> Self {
        let folder = fsck::folder();
        let renderer = forge::Renderer::new(1);
        let registry = folder.path().join("registry");
        let digests: Vec<String> =
            [STAGING, SHOP].iter().map(|order| renderer.prepare(&registry, order, "hello")).collect();
        assert_eq!(digests[0], digests[1], "both stages run the same artifact");
        let secret = p256::SecretKey::from_slice(&[9; 32]).unwrap();
        let job = RecordSigner::from_pem(&secret.to_pkcs8_pem(LineEnding::LF).unwrap(), None).unwrap();
        let hosts = HostConfig { layout: Some(registry), ..HostConfig::default() };
        let config =
            RegistriesConfig { hosts: [("r.example".into(), hosts)].into(), ..RegistriesConfig::default() };
        let chain = Self {
            digest: digests[0].clone(),
            job,
            registries: Registries::new(config).unwrap(),
            runtime: gather::make_runtime().unwrap(),
            folder,
        };
        let job_key = secret.public_key().to_public_key_pem(LineEnding::LF).unwrap();
        chain.write("kitchen", &json!({
            "apiVersion": "delivery.kokumi.dev/v1alpha1", "kind": "Kitchen", "metadata": {"name": "default"},
            "spec": {
                "trust": {"keys": [
                    {"name": "renderer", "publicKey": renderer.public_key()},
                    {"name": "job", "publicKey": job_key, "roles": ["approvals", "records"]},
                ]},
                "approvers": [{
                    "issuer": "https://idp.example", "subject": "4711", "username": "ann", "groups": ["platform"],
                    "sshKeys": [ann().public_key().to_openssh().unwrap()],
                }],
            },
        }));
        for (cluster, environment) in [("dev-1", "dev"), ("eu-1", "production")] {
            chain.object("Cluster", None, cluster, json!({"server": format!("https://{cluster}.example")}));
            chain.object("Environment", None, environment, json!({"clusters": [cluster]}));
        }
        chain.object(
            "Order",
            Some("staging"),
            "podinfo",
            json!({
                "environment": "dev", "promotion": {"mode": "Automatic"},
            }),
        );
        chain.object(
            "Order",
            Some("shop"),
            "podinfo",
            json!({
                "environment": "production",
                "promotion": {
                    "mode": "Automatic",
                    "upstream": [{"order": STAGING, "soak": "1h"}],
                    "approvals": {"requiredApprovals": 1, "allowedGroups": ["platform"]},
                },
            }),
        );
        for order in [STAGING, SHOP] {
            let (namespace, _) = order.split_once('/').unwrap();
            chain.object(
                "Preparation",
                Some(namespace),
                "podinfo-1",
                json!({
                    "orderName": "podinfo",
                    "artifact": {
                        "ociRef": format!("oci://r.example/{order}@{}", chain.digest),
                        "digest": chain.digest, "signed": true,
                    },
                }),
            );
        }
        chain
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, object: &Value) {
        fs::create_dir_all(self.path("objects")).unwrap();
        fs::write(self.path("objects").join(format!("{name}.yaml")), object.to_string()).unwrap();
    }

    fn object(&self, kind: &str, namespace: Option<&str>, name: &str, spec: Value) {
        let metadata = match namespace {
            Some(namespace) => json!({"name": name, "namespace": namespace}),
            None => json!({"name": name}),
        };
        let object = json!({
            "apiVersion": "delivery.kokumi.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec,
        });
        self.write(&format!("{kind}-{}-{name}", namespace.unwrap_or("")), &object);
    }

    /// Ann's signed vote on the Preparation of production.
    fn vote(&self, name: &str, decision: Ballot, when: Time) {
        let namespace = Namespace::parse("shop").unwrap();
        let preparation = PreparationName::parse("podinfo-1").unwrap();
        let digest = Digest::parse(&self.digest).unwrap();
        let message = ssh_vote::build_vote_bytes(&namespace, &preparation, digest, decision, when);
        let signature = ann().sign(ssh_vote::NAMESPACE, ssh_key::HashAlg::Sha512, &message).unwrap();
        self.object(
            "Approval",
            Some("shop"),
            name,
            json!({
                "preparationRef": {"name": "podinfo-1", "artifactDigest": self.digest},
                "approver": {"issuer": "https://idp.example", "subject": "4711", "username": "ann"},
                "decision": match decision { Ballot::Approve => "Approve", Ballot::Reject => "Reject" },
                "submittedTime": when.to_string(),
                "signature": signature.to_pem(ssh_key::LineEnding::LF).unwrap(),
            }),
        );
    }

    /// What Argo CD says of staging: healthy since then, looked at just now.
    fn observe(&self, since: Time, reconciled: Time) {
        let order = OrderRef::parse(STAGING).unwrap();
        let name = build_application_name(&order, &ClusterName::parse("dev-1").unwrap()).unwrap();
        let source = json!({"repoURL": format!("oci://r.example/{STAGING}"), "targetRevision": self.digest, "path": "."});
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
                    "status": "Synced", "revision": self.digest,
                    "comparedTo": {"source": source, "destination": destination},
                },
                "health": {"status": "Healthy", "lastTransitionTime": since},
                "operationState": {
                    "phase": "Succeeded", "startedAt": since, "finishedAt": since,
                    "syncResult": {"revision": self.digest},
                },
                "reconciledAt": reconciled,
            },
        });
        let dump = json!({"apiVersion": "v1", "kind": "List", "items": [application]});
        fs::write(self.path("applications.yaml"), dump.to_string()).unwrap();
    }

    fn repository(&self) -> Repository {
        let options =
            git_commits::RepositoryOptions { create: true, ..git_commits::RepositoryOptions::default() };
        Repository::open_target(&RepositoryTarget::Path(self.path("gitops.git")), options).unwrap()
    }

    fn run(&self, now: Time) -> Ran {
        let ran = self.try_run(now).unwrap_or_else(|failure| panic!("{failure}"));
        let problems: Vec<String> = ran.decided.plan.problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems, Vec::<String>::new());
        for row in &ran.decided.plan.rows {
            assert_eq!(row.errors, []);
        }
        ran
    }

    fn try_run(&self, now: Time) -> Result<Ran, Failure> {
        let repository = self.repository();
        let identity =
            Identity::resolve(&Given::default(), &Environment::default(), &Given::default(), &repository);
        let dump = self.path("applications.yaml");
        let setup = Setup {
            observed: dump.exists().then(|| ("applications.yaml".to_owned(), dump)),
            signer: Some(&self.job),
            records: true,
            ..setup(&repository, &self.registries, &self.runtime, &self.path("."), now)
        };
        let writing = Writing { identity: &identity, tries: 3, check: false, tellers: Vec::new() };
        run::perform_run(&setup, &writing, &mut |_| {}).map_err(|(failure, _)| failure)
    }

    fn snapshot(&self) -> Snapshot {
        self.repository().read_snapshot("main").unwrap()
    }

    fn serving(&self, of: &str) -> Serving {
        let bytes =
            self.snapshot().read_file(&build_serving_path(&OrderRef::parse(of).unwrap())).unwrap().unwrap();
        serde_yaml::from_slice(&bytes).unwrap()
    }

    /// Every record of an Order is on the artifact in its repository, each once.
    #[track_caller]
    fn all_attached(&self, of: &str) {
        let layout = layout::Layout::at(self.path("registry").join(of));
        let ours = |entry: &Value| {
            let kind = entry["artifactType"].as_str().unwrap_or_default();
            kind.starts_with("application/vnd.kokumi.")
                .then(|| layout.manifest(entry["digest"].as_str().unwrap()))
        };
        let manifests: Vec<Value> = layout.entries().iter().filter_map(ours).collect();
        let mut attached: Vec<String> = manifests
            .iter()
            .inspect(|manifest| assert_eq!(manifest["subject"]["digest"], self.digest))
            .map(|manifest| manifest["layers"][0]["digest"].as_str().unwrap()["sha256:".len()..].to_owned())
            .collect();
        attached.sort();
        let folder = format!("records/{of}");
        let (entries, _) = self.snapshot().list_entries(&folder);
        let name = |path: &str| path[folder.len() + 1..].trim_end_matches(".json").to_owned();
        let committed: Vec<String> = entries.iter().map(|entry| name(&entry.path)).collect();
        assert!(!committed.is_empty());
        assert_eq!(attached, committed, "{of}");
    }

    fn deployed(&self, of: &str) -> bool {
        let path = build_serving_path(&OrderRef::parse(of).unwrap());
        self.snapshot().read_file(&path).unwrap().is_some()
            && self.serving(of).status.deployed_digest.is_some()
    }

    /// Staging promoted, seen healthy, and soaked until eleven.
    fn soaked() -> Self {
        let chain = Self::new();
        chain.run(at("09:00"));
        assert!(chain.deployed(STAGING));
        chain.observe(at("09:05"), at("09:10"));
        chain.run(at("09:10"));
        chain.observe(at("09:05"), at("11:00"));
        chain
    }

    /// Commits a change to a file of the repository, as someone with push rights does.
    fn tamper(&self, path: &str, change: impl Fn(String) -> Option<String>) {
        let snapshot = self.snapshot();
        let before = String::from_utf8(snapshot.read_file(path).unwrap().unwrap()).unwrap();
        let change = match change(before.clone()) {
            Some(text) => {
                assert_ne!(text, before, "{path} is as it was:\n{before}");
                expedite::files::FileChange::Write(text.into_bytes())
            }
            None => expedite::files::FileChange::Delete,
        };
        let repository = self.repository();
        let identity =
            Identity::resolve(&Given::default(), &Environment::default(), &Given::default(), &repository);
        let proposal =
            git_commits::Proposal { message: "By hand", identity: &identity, at: at("10:30").unix() };
        let changes = [(path.to_owned(), change)].into();
        let outcome = git_commits::write_changes(&repository, &snapshot, &changes, proposal).unwrap();
        assert!(matches!(outcome, git_commits::WriteOutcome::Pushed(_)), "{outcome:?}");
    }
}

fn message(ran: &Ran, gate: GateName) -> String {
    let order = OrderRef::parse(SHOP).unwrap();
    let row = ran.decided.plan.rows.iter().find(|r| r.order == order).unwrap();
    row.verdicts.iter().find(|v| v.gate == gate).expect("there is a candidate").message.clone()
}

#[test]
fn staging_soaks_people_vote_the_run_seals_and_production_follows() {
    let chain = Chain::soaked();
    let staging = OrderRef::parse(STAGING).unwrap();
    let entry = chain.serving(STAGING).status.history[0].clone();
    assert_eq!(entry.first_healthy_time, Some(at("09:05")));
    for record in [entry.promotion_record, entry.deployment_record] {
        let path = build_record_path(&staging, &record.unwrap().format_hex());
        assert!(chain.snapshot().read_file(&path).unwrap().is_some(), "{path}");
    }
    chain.all_attached(STAGING);

    let ran = chain.run(at("11:00"));
    assert_eq!(
        message(&ran, GateName::Upstream),
        "staging/podinfo ran this change as podinfo-1, healthy from 2026-11-30T09:05:00Z for 1h until 2026-11-30T10:05:00Z"
    );
    assert_eq!(message(&ran, GateName::Approvals), "0 of 1 approvals from platform; may vote: ann");
    assert!(!chain.deployed(SHOP));

    chain.vote("ann-1", Ballot::Approve, at("11:20"));
    let ran = chain.run(at("11:30"));
    assert!(ran.commit.is_some());
    assert_eq!(
        message(&ran, GateName::Approvals),
        "approved and sealed at 2026-11-30T11:20:00Z, by ann",
        "sealed and promoted in one run"
    );
    let status = chain.serving(SHOP).status;
    assert!(status.deployed_digest.is_some());
    let seal = status.history[0].approval_record.unwrap();
    let path = build_record_path(&OrderRef::parse(SHOP).unwrap(), &seal.format_hex());
    let bundle = chain.snapshot().read_file(&path).unwrap().expect("the seal is in records/, too");
    assert_eq!(Digest::hash_bytes(&bundle), seal);
    assert_eq!(status.find_condition("Approved").unwrap().reason, "Approved");

    chain.observe(at("09:05"), at("12:00"));
    let ran = chain.run(at("12:00"));
    let commit = ran.commit;
    assert_eq!(chain.serving(SHOP).status.find_condition("Ready").unwrap().reason, "Deploying");
    let ran = chain.run(at("12:30"));
    assert_eq!(ran.commit, None, "after {commit:?} nothing is left to do");
    // The seal, the promotions and the deployments of both.
    chain.all_attached(STAGING);
    chain.all_attached(SHOP);
}

#[test]
fn a_seal_that_a_run_did_not_live_to_commit_is_reused_and_kept() {
    let chain = Chain::soaked();
    chain.run(at("11:00"));
    chain.vote("ann-1", Ballot::Approve, at("11:20"));
    let hook = chain.path("gitops.git/hooks/update");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let failure = chain.try_run(at("11:30")).err().unwrap();
    assert_eq!(failure.code, "push-refused", "{failure}");
    let seals = || {
        let entries = layout::Layout::at(chain.path("registry").join(SHOP)).entries();
        entries.iter().filter(|e| e["artifactType"] == "application/vnd.kokumi.approvals.v1+json").count()
    };
    assert_eq!(seals(), 1, "sealed, and nothing committed");
    fs::remove_file(hook).unwrap();
    chain.run(at("11:40"));
    assert!(chain.deployed(SHOP));
    assert_eq!(seals(), 1);
    let seal = chain.serving(SHOP).status.history[0].approval_record.unwrap();
    let path = build_record_path(&OrderRef::parse(SHOP).unwrap(), &seal.format_hex());
    assert_eq!(Digest::hash_bytes(&chain.snapshot().read_file(&path).unwrap().unwrap()), seal);
    chain.all_attached(SHOP);
}

/// With push rights and no key: every way to make history say what did not happen.
#[test]
fn history_that_was_edited_promotes_nothing() {
    type Edit = (&'static str, fn(String) -> Option<String>);
    let edits: [Edit; 2] = [
        ("an earlier health", |text| Some(text.replace("2026-11-30T09:05:00Z", "2026-11-30T08:00:00Z"))),
        ("an earlier promotion", |text| Some(text.replace("2026-11-30T09:00:00Z", "2026-11-30T08:00:00Z"))),
    ];
    for (what, edit) in edits {
        let chain = Chain::soaked();
        chain.vote("ann-1", Ballot::Approve, at("09:20"));
        chain.tamper(&build_serving_path(&OrderRef::parse(STAGING).unwrap()), edit);
        // Nobody looks at staging any more: only history speaks for it.
        fs::remove_file(chain.path("applications.yaml")).unwrap();
        let ran = chain.run(at("11:00"));
        chain.run(at("11:30"));
        assert!(!chain.deployed(SHOP), "{what}: {}", message(&ran, GateName::Upstream));
    }
}

#[test]
fn a_record_that_was_deleted_or_changed_proves_nothing() {
    for delete in [true, false] {
        let chain = Chain::soaked();
        chain.vote("ann-1", Ballot::Approve, at("09:20"));
        let record = chain.serving(STAGING).status.history[0].promotion_record.unwrap();
        let path = build_record_path(&OrderRef::parse(STAGING).unwrap(), &record.format_hex());
        chain.tamper(&path, |text| (!delete).then(|| format!("{text} ")));
        let ran = chain.run(at("11:00"));
        chain.run(at("11:30"));
        assert!(!chain.deployed(SHOP));
        let said = message(&ran, GateName::Upstream);
        let why = if delete { "is not in the repository" } else { "does not hash to its name" };
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn a_reject_holds_and_is_no_error() {
    let chain = Chain::soaked();
    chain.vote("ann-1", Ballot::Reject, at("09:20"));
    chain.run(at("11:00"));
    let ran = chain.run(at("11:30"));
    assert_eq!(message(&ran, GateName::Approvals), "ann rejects it; the same approver may vote again");
    assert_eq!(chain.serving(SHOP).status.find_condition("Approved").unwrap().reason, "ChangesRequested");
    assert!(!chain.deployed(SHOP));
}
