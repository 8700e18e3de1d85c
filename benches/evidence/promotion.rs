//! The same artifacts as Orders of a fleet, promoted by the run that the verb calls.

use crate::registries;
use crate::setup::setup;
use crate::signing::Key;
use crate::stock::Item;
use expedite::evidence::gather::make_runtime;
use expedite::model::plan::Decision;
use expedite::model::time::{Span, Time};
use expedite::run::{self, Setup, Writing};
use git_commits::Identity;
use git_commits::identity::Given;
use git_commits::{Environment, Repository, RepositoryTarget};
use std::fs;
use std::time::{Duration, Instant};

const BRANCH: &str = "main";

/// Objects on disk, and the repository that they are promoted into.
pub struct Fleet {
    folder: tempfile::TempDir,
    address: String,
}

impl Fleet {
    pub fn new(address: &str, key: &Key, items: &[Item]) -> Self {
        let folder = tempfile::Builder::new().prefix("expedite-bench-").tempdir().unwrap();
        let objects = folder.path().join("objects");
        fs::create_dir(&objects).unwrap();
        let pem: String = key.public_pem().lines().map(|line| format!("        {line}\n")).collect();
        fs::write(objects.join("all.yaml"), format!("{ALL}{pem}")).unwrap();
        for (n, item) in items.iter().enumerate() {
            fs::write(objects.join(format!("{n}.yaml")), order(address, item)).unwrap();
        }
        Self { folder, address: address.to_owned() }
    }

    /// One run of a new process, which promotes that many: how long it took.
    pub fn run(&self, promoted: usize) -> Duration {
        let start = Instant::now();
        let (runtime, registries) = (make_runtime().unwrap(), registries(&self.address));
        let options = git_commits::RepositoryOptions {
            create: true,
            branch: Some(BRANCH.into()),
            ..git_commits::RepositoryOptions::default()
        };
        let place = RepositoryTarget::Path(self.folder.path().join("gitops.git"));
        let repository = Repository::open_target(&place, options).unwrap();
        let identity =
            Identity::resolve(&Given::default(), &Environment::default(), &Given::default(), &repository);
        let now = Time::parse("2026-11-30T12:00:00Z").unwrap();
        let setup = Setup {
            // The look at what is deployed that is due once a day is another run's.
            rescan: Span::from_seconds(3_000_000_000),
            ..setup(&repository, &registries, &runtime, self.folder.path(), now)
        };
        let writing = Writing { identity: &identity, tries: 1, check: false, tellers: Vec::new() };
        let ran = run::perform_run(&setup, &writing, &mut |_| {})
            .unwrap_or_else(|(failure, _)| panic!("{failure}"));
        let took = start.elapsed();
        let rows = &ran.decided.plan.rows;
        let done = rows.iter().filter(|r| matches!(r.decision, Decision::Promote(_))).count();
        assert_eq!(done, promoted, "Orders promoted");
        took
    }
}

const ALL: &str = "\
apiVersion: delivery.kokumi.dev/v1alpha1
kind: Cluster
metadata: {name: eu-1}
spec: {server: \"https://eu-1.example\"}
---
apiVersion: delivery.kokumi.dev/v1alpha1
kind: Environment
metadata: {name: production}
spec: {clusters: [eu-1]}
---
apiVersion: delivery.kokumi.dev/v1alpha1
kind: Kitchen
metadata: {name: default}
spec:
  trust:
    keys:
    - name: renderer
      publicKey: |
";

fn order(address: &str, item: &Item) -> String {
    let (namespace, name) = (&item.order.namespace, &item.order.name);
    let (digest, reference) = (item.digest, item.reference(address));
    format!(
        "apiVersion: delivery.kokumi.dev/v1alpha1\nkind: Order\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
         spec: {{environment: production, promotion: {{mode: Automatic}}}}\n---\n\
         apiVersion: delivery.kokumi.dev/v1alpha1\nkind: Preparation\n\
         metadata: {{name: {name}-1, namespace: {namespace}, creationTimestamp: \"2026-11-01T08:00:00Z\"}}\n\
         spec:\n  orderName: {name}\n  artifact:\n    ociRef: oci://{reference}\n    digest: {digest}\n    signed: true\n"
    )
}
