//! The stages of a run, called one by one with a clock between them, and the run itself.

use crate::objects::{Shape, write};
use crate::setup::setup;
use expedite::evidence::keys::KeyRing;
use expedite::load::folder::DiskFolder;
use expedite::load::{self, Input};
use expedite::model::evidence::{
    ArtifactFacts, ArtifactProof, Ask, Claim, Evidence, Facts, Proof, ProvenanceProof,
};
use expedite::model::id::Digest;
use expedite::model::plan::Decision;
use expedite::model::time::{Span, Time};
use expedite::policy::decide::{self, PlanOptions};
use expedite::policy::gates::{self, Context};
use expedite::policy::resolve;
use expedite::run::{Setup, Writing};
use expedite::{render, run};
use git_commits::identity::Given;
use git_commits::{Environment, Repository, RepositoryTarget};
use git_commits::{Identity, Proposal, WriteOutcome};
use oci_registry::Registries;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What each stage took.
pub type Times = Vec<(&'static str, Duration)>;

/// A fleet on disk: its objects, and a repository in which it is deployed.
pub struct Fleet {
    folder: tempfile::TempDir,
    /// Files of objects.
    pub files: usize,
    orders: usize,
}

/// The branch of every repository here.
const BRANCH: &str = "main";

fn now() -> Time {
    Time::parse("2026-02-01T12:00:00Z").unwrap()
}

impl Fleet {
    /// Writes the objects.
    pub fn new(shape: Shape) -> Self {
        let folder = tempfile::Builder::new().prefix("expedite-bench-").tempdir().unwrap();
        let files = write(&folder.path().join("objects"), shape);
        Self { folder, files, orders: shape.orders }
    }

    fn deployed(&self) -> PathBuf {
        self.folder.path().join("gitops.git")
    }

    fn open(&self) -> Repository {
        let options = git_commits::RepositoryOptions {
            create: true,
            branch: Some(BRANCH.into()),
            ..git_commits::RepositoryOptions::default()
        };
        Repository::open_target(&RepositoryTarget::Path(self.deployed()), options).unwrap()
    }

    /// Promotes every Order into an empty repository.
    pub fn first_run(&self) -> Times {
        if self.deployed().exists() {
            std::fs::remove_dir_all(self.deployed()).unwrap();
        }
        let (times, promoted, pushed) = self.stages();
        assert_eq!(promoted, self.orders, "the first run promotes every Order");
        assert!(pushed, "the first run commits");
        times
    }

    /// Finds nothing to do. After a first run.
    pub fn idle_run(&self) -> Times {
        // The first run's time stands in what it wrote; a state that settles only now is not the idle run.
        let (times, promoted, pushed) = self.stages();
        assert_eq!((promoted, pushed), (0, false), "the second run finds nothing to do");
        times
    }

    /// One run, stage by stage: its times, how many Orders it promoted, and whether it made a commit.
    fn stages(&self) -> (Times, usize, bool) {
        let mut times = Times::new();
        let mut clock = Instant::now();
        let mut lap = |name: &'static str| {
            times.push((name, clock.elapsed()));
            clock = Instant::now();
        };
        let repository = self.open();
        let snapshot = repository.read_snapshot(BRANCH).unwrap();
        let gitops = load::read_gitops(&snapshot, snapshot.head.clone());
        lap("load: repository");
        let objects = DiskFolder::new("objects", self.folder.path().join("objects"));
        let input =
            Input { name: "path:objects".into(), files: &objects, kinds: None, namespaces: None, skip: &[] };
        let world = load::read_world(&[input], None);
        assert_eq!(world.problems, []);
        lap("load: objects");
        let cases = resolve::resolve_cases(&world, &gitops, "argocd");
        lap("resolve");
        let ring = KeyRing::from_kitchen(&world.kitchen.as_ref().unwrap().object.spec);
        let kitchen = world.kitchen.as_ref().map(|k| &k.object.spec);
        let context = Context { trust: ring.state().fingerprint, ..Context::new(now(), kitchen) };
        let asks = gates::collect_asks(&cases, &context);
        lap("gates: what to ask");
        let facts = proven(&asks, &ring);
        lap("(evidence is handed in)");
        let plan = decide::decide_plan(&cases, &facts, &world, &gitops, &context, &PlanOptions::default());
        lap("gates and decide");
        let rendered = render::render_files(&plan, &gitops, "argocd");
        assert_eq!(rendered.failures, []);
        lap("render");
        let identity =
            Identity::resolve(&Given::default(), &Environment::default(), &Given::default(), &repository);
        let proposal = Proposal { message: "Promote the fleet", identity: &identity, at: now().unix() };
        let outcome =
            git_commits::write_changes(&repository, &snapshot, &rendered.changes, proposal).unwrap();
        lap("commit");
        let promoted = plan.rows.iter().filter(|r| matches!(r.decision, Decision::Promote(_))).count();
        (times, promoted, matches!(outcome, WriteOutcome::Pushed(_)))
    }

    /// The same idle run through [`run::run`], which is what the verb calls.
    pub fn whole_idle_run(&self) -> Duration {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let registries = Registries::default();
        let start = Instant::now();
        let repository = self.open();
        let identity =
            Identity::resolve(&Given::default(), &Environment::default(), &Given::default(), &repository);
        let setup = Setup {
            // The look at what is deployed that is due once a day asks a registry.
            rescan: Span::from_seconds(3_000_000_000),
            ..setup(&repository, &registries, &runtime, self.folder.path(), now())
        };
        let writing = Writing { identity: &identity, tries: 1, check: false, tellers: Vec::new() };
        let ran = run::perform_run(&setup, &writing, &mut |_| {})
            .unwrap_or_else(|(failure, _)| panic!("{failure}"));
        assert_eq!(ran.commit, None, "nothing is left to do");
        start.elapsed()
    }
}

/// Every claim that is asked for, proven.
fn proven(asks: &[Ask], ring: &KeyRing) -> Facts {
    let key = &ring.keys()[0];
    let mut facts = Facts { keys: ring.state().clone(), ..Facts::default() };
    for ask in asks {
        let proof = Proof {
            key: key.pick_name().to_owned(),
            fingerprint: String::new(),
            digest: ask.artifact.digest,
            blob: ask.artifact.digest,
            place: "referrers API".into(),
            statement: None,
        };
        let mut found = ArtifactFacts::default();
        for claim in &ask.claims {
            match claim {
                Claim::Artifact => {
                    found.artifact = Some(Evidence::Proven(ArtifactProof {
                        media_type: "application/vnd.oci.image.manifest.v1+json".into(),
                        size: 600,
                        layer: Digest::hash_bytes(b"layer"),
                        layer_media_type: "application/vnd.oci.image.layer.v1.tar+gzip".into(),
                    }));
                }
                Claim::Signature => found.signature = Some(Evidence::Proven(proof.clone())),
                Claim::Provenance(order) => {
                    let provenance = ProvenanceProof {
                        proof: proof.clone(),
                        finished_on: None,
                        dependencies: [].into(),
                        builder: None,
                    };
                    found.provenance.insert(order.clone(), Evidence::Proven(provenance));
                }
                Claim::Approvals(_) | Claim::Attestation(_) | Claim::Scans | Claim::Records => {
                    panic!("the fleet has no gate that asks for {claim:?}")
                }
            }
        }
        facts.artifacts.insert(ask.artifact.clone(), found);
    }
    facts
}
