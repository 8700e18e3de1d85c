//! A history of a thousand runs, walked from its first commit to its last and compared with what was decided.

use crate::support::harness::Place;
use crate::support::setup::setup;
use crate::support::{fleet, layout};
use expedite::attest::key::RecordSigner;
use expedite::evidence::gather;
use expedite::files::FileChange;
use expedite::model::id::{ClusterName, Digest, OrderRef};
use expedite::model::naming::{build_application_name, build_serving_path};
use expedite::model::plan::{Decision, PlanRow};
use expedite::model::serving::{HISTORY, HistoryEntry, Serving};
use expedite::model::time::Time;
use expedite::run::{self, Ran, Setup, Writing};
use git_commits::identity::Given;
use git_commits::{ATTACHED, Environment, Repository, RepositoryTarget};
use git_commits::{Identity, Proposal, WriteOutcome, side};
use oci_registry::{HostConfig, Registries, RegistriesConfig};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// Without optimisation that takes minutes.
const RUNS: u32 = if cfg!(debug_assertions) { 250 } else { 1000 };

/// Follows the newest, observed healthy; follows the newest, not observed; does what a person asks for.
const ORDERS: [&str; 3] = ["shop/basket", "shop/catalog", "team/mailer"];

/// What that person chooses from.
const POOL: u32 = 24;

/// A promotion: the Preparation, its digest, and when it was decided.
type Promoted = (String, String, Time);

struct Installation {
    place: Place,
    /// Digests by Order.
    pool: BTreeMap<&'static str, Vec<String>>,
    repository: Repository,
    identity: Identity,
    registries: Registries,
    runtime: tokio::runtime::Runtime,
    job: RecordSigner,
}

impl Installation {
    fn new() -> Self {
        let place = Place::new();
        fleet::ground(&place);
        let mut pool = BTreeMap::new();
        for order in ORDERS {
            let mode = if order == ORDERS[2] { "Manual" } else { "Automatic" };
            fleet::order(&place, order, &format!("{{mode: {mode}}}"));
            let versions = if order == ORDERS[2] { POOL } else { 1 };
            let digests: Vec<String> =
                (0..versions).map(|version| fleet::prepare(&place, order, version, order)).collect();
            pool.insert(order, digests);
        }
        let options =
            git_commits::RepositoryOptions { create: true, ..git_commits::RepositoryOptions::default() };
        let repository =
            Repository::open_target(&RepositoryTarget::Path(place.path("gitops.git")), options).unwrap();
        let none = Given::default();
        let identity = Identity::resolve(&none, &Environment::default(), &none, &repository);
        let host = HostConfig { layout: Some(place.path("registry")), ..HostConfig::default() };
        let config =
            RegistriesConfig { hosts: [(fleet::HOST.into(), host)].into(), ..RegistriesConfig::default() };
        let job = RecordSigner::from_pem(&place.read(fleet::KEY), None).unwrap();
        let (registries, runtime) = (Registries::new(config).unwrap(), gather::make_runtime().unwrap());
        Self { place, pool, repository, identity, registries, runtime, job }
    }

    fn run(&self, now: Time) -> Ran {
        let dump = self.place.path("applications.yaml");
        let setup = Setup {
            observed: dump.exists().then(|| ("applications.yaml".to_owned(), dump)),
            signer: Some(&self.job),
            records: true,
            ..setup(&self.repository, &self.registries, &self.runtime, self.place.root(), now)
        };
        let writing = Writing { identity: &self.identity, tries: 1, check: false, tellers: Vec::new() };
        let ran = run::perform_run(&setup, &writing, &mut |_| {})
            .unwrap_or_else(|(failure, _)| panic!("{failure}"));
        let problems: Vec<String> = ran.decided.plan.problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems, Vec::<String>::new());
        ran.decided.plan.rows.iter().for_each(|row| assert_eq!(row.errors, [], "{}", row.order));
        ran
    }

    /// A person asks for a version of the third Order.
    fn ask(&self, version: u32, now: Time) {
        let snapshot = self.repository.read_snapshot("main").unwrap();
        let path = build_serving_path(&OrderRef::parse(ORDERS[2]).unwrap());
        let text = String::from_utf8(snapshot.read_file(&path).unwrap().unwrap()).unwrap();
        let old = text.lines().find(|line| line.starts_with("  preparationName: ")).unwrap();
        let text = text.replacen(old, &format!("  preparationName: mailer-{version}"), 1);
        let changes = BTreeMap::from([(path, FileChange::Write(text.into_bytes()))]);
        let message = format!("Ask for {version}\n");
        let proposal = Proposal { message: &message, identity: &self.identity, at: now.unix() };
        let wrote = git_commits::write_changes(&self.repository, &snapshot, &changes, proposal).unwrap();
        assert!(matches!(wrote, WriteOutcome::Pushed(_)), "{wrote:?}");
    }

    /// What Argo CD says of the first Order: `digest` runs, healthy since `since`.
    fn observe(&self, digest: &str, since: Time, now: Time) {
        let order = OrderRef::parse(ORDERS[0]).unwrap();
        let name = build_application_name(&order, &ClusterName::parse("c").unwrap()).unwrap();
        let repository = format!("oci://{}/{}", fleet::HOST, ORDERS[0]);
        let source = json!({"repoURL": repository, "targetRevision": digest, "path": "."});
        let destination = json!({"server": "https://c.example", "namespace": "shop"});
        let labels =
            json!({"delivery.kokumi.dev/serving": "basket", "delivery.kokumi.dev/serving-namespace": "shop"});
        let application = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name, "namespace": "argocd", "labels": labels},
            "spec": {"project": "default", "source": source, "destination": destination},
            "status": {
                "sync": {
                    "status": "Synced", "revision": digest,
                    "comparedTo": {"source": source, "destination": destination},
                },
                "health": {"status": "Healthy", "lastTransitionTime": since},
                "operationState": {
                    "phase": "Succeeded", "startedAt": since, "finishedAt": since,
                    "syncResult": {"revision": digest},
                },
                "reconciledAt": now,
            },
        });
        self.place.write(
            "applications.yaml",
            json!({"apiVersion": "v1", "kind": "List", "items": [application]}).to_string(),
        );
    }
}

fn name(order: &str) -> &str {
    order.split_once('/').unwrap().1
}

/// Numbers that are the same in every run of this test.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(end)).unwrap()
    }
}

#[test]
fn every_commit_of_a_thousand_runs_says_what_was_decided() {
    let it = Installation::new();
    let minute = |n: u32| Time::from_unix(1_770_000_000 + i64::from(n) * 60);
    let mut dice = Dice(2026);
    let mut promoted: BTreeMap<&str, Vec<Promoted>> = BTreeMap::new();
    // How many promotions each Order had at each commit that there must be.
    let mut expected: Vec<(String, BTreeMap<&str, usize>)> = Vec::new();
    let (mut newest, mut wish, mut healthy) = ([0_u32; 2], 0_u32, BTreeSet::new());
    let counts = |promoted: &BTreeMap<&'static str, Vec<Promoted>>| {
        promoted.iter().map(|(order, all)| (*order, all.len())).collect::<BTreeMap<_, _>>()
    };
    it.place.write("expedite.yaml", "sources: [{path: ./objects}]\nrepository: {url: ./gitops.git}\n");
    it.place.expedite(&["promote", ORDERS[2], "mailer-0", "--at", &minute(0).to_string()]).ok();
    expected.push((it.repository.read_snapshot("main").unwrap().head.unwrap().to_string(), BTreeMap::new()));

    for n in 1..=RUNS {
        let now = minute(n);
        let mut due: Vec<(&'static str, String, String)> = Vec::new();
        if n == 1 {
            let first =
                |order: &'static str| (order, format!("{}-0", name(order)), it.pool[order][0].clone());
            due = ORDERS.map(first).into();
        }
        match dice.below(10) {
            choice @ 0..=4 if n > 1 => {
                let which = usize::from(choice > 2);
                let order = ORDERS[which];
                newest[which] += 1;
                let version = newest[which];
                let digest = fleet::prepare(&it.place, order, version, order);
                // Nobody keeps all of them; the few newest are enough.
                let old = it.place.path(&format!("objects/{order}/{}.yaml", version.saturating_sub(4)));
                if version >= 4 && old.exists() {
                    std::fs::remove_file(old).unwrap();
                }
                due.push((order, format!("{}-{version}", order.split_once('/').unwrap().1), digest.clone()));
            }
            5..=7 if n > 1 => {
                wish = (wish + 1 + dice.below(POOL - 1)) % POOL;
                it.ask(wish, now);
                expected.push((
                    it.repository.read_snapshot("main").unwrap().head.unwrap().to_string(),
                    counts(&promoted),
                ));
                due.push((
                    ORDERS[2],
                    format!("mailer-{wish}"),
                    it.pool[ORDERS[2]][usize::try_from(wish).unwrap()].clone(),
                ));
            }
            _ => {}
        }
        if let Some((_, digest, since)) = promoted.get(ORDERS[0]).and_then(|all| all.last())
            && dice.below(2) == 0
        {
            it.observe(digest, *since, now);
            healthy.insert(*since);
        }
        let ran = it.run(now);
        let mut decided = Vec::new();
        for row in &ran.decided.plan.rows {
            if let (Decision::Promote(_), Some(candidate)) = (&row.decision, &row.candidate) {
                let order = ORDERS.into_iter().find(|o| *o == row.order.to_string()).unwrap();
                decided.push((order, candidate.name.to_string(), candidate.artifact.digest.to_string()));
            }
        }
        let why = |row: &PlanRow| {
            format!("{}: {:?}", row.order, row.verdicts.iter().map(|v| &v.message).collect::<Vec<_>>())
        };
        let said: Vec<String> = ran.decided.plan.rows.iter().map(why).collect();
        assert_eq!(decided, due, "run {n}: {said:#?}");
        for (order, preparation, digest) in decided {
            promoted.entry(order).or_default().push((preparation, digest, now));
        }
        if let Some(commit) = ran.commit {
            expected.push((commit.to_string(), counts(&promoted)));
        }
    }
    walk(&it, &promoted, &expected);
    attached_once(&it, &promoted, healthy.len());
    assert!(promoted.values().all(|all| all.len() > 30), "the dice fell oddly");
    assert!(healthy.len() > 20, "{} were seen healthy", healthy.len());
}

/// Every commit, oldest first, holds what had been decided by then, and nothing else.
fn walk(
    it: &Installation,
    promoted: &BTreeMap<&'static str, Vec<Promoted>>,
    expected: &[(String, BTreeMap<&'static str, usize>)],
) {
    let git = git2::Repository::open_bare(it.place.path("gitops.git")).unwrap();
    let mut walk = git.revwalk().unwrap();
    walk.set_sorting(git2::Sort::TOPOLOGICAL | git2::Sort::REVERSE).unwrap();
    walk.push_ref("refs/heads/main").unwrap();
    let commits: Vec<git2::Oid> = walk.map(Result::unwrap).collect();
    let ids: Vec<String> = commits.iter().map(ToString::to_string).collect();
    assert_eq!(
        ids,
        expected.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>(),
        "a commit is lost, or one too many"
    );
    for (id, (_, counts)) in commits.iter().zip(expected) {
        let commit = git.find_commit(*id).unwrap();
        assert!(commit.parent_count() <= 1);
        let tree = commit.tree().unwrap();
        for order in ORDERS {
            let count = counts.get(order).copied().unwrap_or_default();
            let all = promoted.get(order).map(|all| &all[..count]).unwrap_or_default();
            let history = history(&git, &tree, order);
            let said: Vec<Promoted> = history
                .iter()
                .rev()
                .map(|e| (e.preparation_name.to_string(), e.digest.to_string(), e.promoted_time))
                .collect();
            assert_eq!(said, &all[count.saturating_sub(HISTORY)..], "{order} in {id}");
            for (newer, older) in history.iter().zip(history.iter().skip(1)) {
                assert_eq!(older.ended_time, Some(newer.promoted_time), "{order} in {id}");
            }
            let named: BTreeSet<Digest> = history
                .iter()
                .flat_map(|e| [e.approval_record, e.promotion_record, e.deployment_record])
                .flatten()
                .collect();
            assert!(history.iter().all(|e| e.promotion_record.is_some()), "{order} in {id}");
            assert_eq!(records(&git, &tree, order), named, "{order} in {id}");
        }
    }
}

fn history(git: &git2::Repository, tree: &git2::Tree<'_>, order: &str) -> Vec<HistoryEntry> {
    let Ok(entry) = tree.get_path(std::path::Path::new(&format!("servings/{order}.yaml"))) else {
        return Vec::new();
    };
    let blob = git.find_blob(entry.id()).unwrap();
    serde_yaml::from_slice::<Serving>(blob.content()).unwrap().status.history
}

/// The records of an Order in a tree, each of which hashes to its name.
fn records(git: &git2::Repository, tree: &git2::Tree<'_>, order: &str) -> BTreeSet<Digest> {
    let Ok(folder) = tree.get_path(std::path::Path::new(&format!("records/{order}"))) else {
        return BTreeSet::new();
    };
    let folder = git.find_tree(folder.id()).unwrap();
    let of = |entry: git2::TreeEntry<'_>| {
        let digest = Digest::hash_bytes(git.find_blob(entry.id()).unwrap().content());
        assert_eq!(entry.name().ok(), Some(format!("{}.json", digest.format_hex()).as_str()));
        digest
    };
    folder.iter().map(of).collect()
}

/// On the artifacts: one promotion record for each promotion, one deployment record for each that was seen
/// healthy, none of them twice.
fn attached_once(it: &Installation, promoted: &BTreeMap<&'static str, Vec<Promoted>>, healthy: usize) {
    for order in ORDERS {
        let layout = layout::repository(&it.place.path("registry"), order);
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        let mut bundles = BTreeSet::new();
        for entry in layout.entries() {
            let manifest = layout.manifest(entry["digest"].as_str().unwrap());
            let kind =
                manifest["annotations"]["dev.sigstore.bundle.predicateType"].as_str().unwrap_or_default();
            if kind.starts_with("https://kokumi.dev/") {
                *kinds.entry(kind.rsplit('/').nth(1).unwrap().to_owned()).or_default() += 1;
                let bundle = manifest["layers"][0]["digest"].as_str().unwrap().to_owned();
                assert_eq!(format!("sha256:{}", hex::encode(Sha256::digest(layout.bytes(&bundle)))), bundle);
                assert!(bundles.insert(bundle), "attached twice");
            }
        }
        assert_eq!(kinds.get("promotion"), Some(&promoted[order].len()), "{order}");
        let deployments = if order == ORDERS[0] { healthy } else { 0 };
        assert_eq!(kinds.get("deployment").copied().unwrap_or_default(), deployments, "{order}");
    }
    let remembered = side::read_paths(&it.repository, ATTACHED).unwrap();
    let snapshot = it.repository.read_snapshot("main").unwrap();
    let there: BTreeSet<String> = snapshot.list_entries("records").0.into_iter().map(|e| e.path).collect();
    assert_eq!(remembered, there);
}
