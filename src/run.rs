//! Calls every stage in order, and owns what repeats them: votes that were sealed and a branch that moved are read
//! again and decided again, and what was read is decided again, at most twice, where promotions under a limit cannot
//! be written. This is the table of contents; every stage's own file knows the rest.

pub mod attach;
pub mod message;
pub mod problems;
pub mod records;
pub mod seal;
pub mod signing;
pub mod tell;

use crate::attest::key::RecordSigner;
use crate::error::{At, Failure};
use crate::evidence::gather::{GatherOptions, gather_blocking};
use crate::evidence::keys::KeyRing;
use crate::load::cluster::{ClusterSource, Fetched};
use crate::load::folder::DiskFolder;
use crate::load::{self, Input, OURS, Observed};
use crate::model::evidence::{ArtifactFacts, Ask, Claim, Facts};
use crate::model::id::{Artifact, CommitId, Namespace, OrderName, OrderRef};
use crate::model::kind;
use crate::model::kitchen::KitchenSpec;
use crate::model::plan::{Decision, Plan, PlanRow};
use crate::model::time::{Span, Time};
use crate::model::world::{GitOps, World};
use crate::notify::{TellOutcome as Notified, Teller};
use crate::policy::decide::{self, PlanOptions};
use crate::policy::gates::{self, Context};
use crate::policy::resolve::{self, Case};
use crate::render::{self, RenderedFiles};
use attach::Attaching;
use git_commits::{Below, Repository, Snapshot};
use git_commits::{Identity, Proposal, WriteOutcome};
use oci_registry::Registries;
use records::Pen;
use seal::Seals;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tell::Listed;

/// Where objects are read.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its stable name, remembered in Servings: `path:<as written>`, `repository` or `cluster:<context>`.
    pub name: Arc<str>,
    /// Where it is.
    pub place: SourcePlace,
    /// Kinds that may come from it; `None`: all.
    pub kinds: Option<BTreeSet<kind::Kind>>,
    /// Namespaces whose objects may come from it; `None`: all.
    pub namespaces: Option<BTreeSet<Namespace>>,
}

impl Source {
    /// Whether it is the GitOps repository itself.
    #[must_use]
    pub fn is_repository(&self) -> bool {
        match self.place {
            SourcePlace::Repository => true,
            SourcePlace::Folder(..)
            | SourcePlace::Commit(_)
            | SourcePlace::Cluster(_)
            | SourcePlace::Snapshot(_) => false,
        }
    }
}

/// Where a source is.
#[derive(Debug, Clone)]
pub enum SourcePlace {
    /// A folder (or one file): its name for messages, and its path.
    Folder(String, PathBuf),
    /// The same folder as it is at a commit.
    Commit(Arc<Below>),
    /// The GitOps repository itself, at the commit that decisions are made on.
    Repository,
    /// An API server.
    Cluster(Arc<ClusterSource>),
    /// What an API server gave before.
    Snapshot(Arc<Fetched>),
}

/// All that a run reads from and depends on: handed in, nothing is looked up.
#[derive(Clone)]
pub struct Setup<'a> {
    /// The GitOps repository.
    pub repository: &'a Repository,
    /// Its branch.
    pub branch: &'a str,
    /// Where objects are read, in order.
    pub sources: Vec<Source>,
    /// A dump of Applications: its name for messages, and its path.
    pub observed: Option<(String, PathBuf)>,
    /// The registries.
    pub registries: &'a Registries,
    /// The threads that fetching runs on.
    pub runtime: &'a tokio::runtime::Runtime,
    /// What bounds the fetching.
    pub gather: GatherOptions,
    /// Verify nothing (`render --skip-evidence`): every claim is answered "not read".
    pub skip_evidence: bool,
    /// `argocd.namespace`.
    pub argocd_namespace: String,
    /// `argocd.requireObservation`.
    pub require_observation: bool,
    /// Signs records and seals; `None`: none are made (a dry run, or `--no-records`).
    pub signer: Option<&'a RecordSigner>,
    /// Whether history must be proven by signed records; not with `--no-records`.
    pub records: bool,
    /// `evidence.rescan`: how often what is deployed is looked at again, and its scans.
    pub rescan: Span,
    /// Limits and scope.
    pub options: PlanOptions,
    /// The run's clock.
    pub now: Time,
    /// `now` is ahead of the real clock (`plan --at`): what is healthy is taken to stay so.
    pub foreseen: bool,
    /// Orders of this name are explained: all that their gates ask for is read.
    pub explained: Option<OrderName>,
}

/// Everything that was read and decided, once.
pub struct Decided {
    /// The commit it was decided on.
    pub snapshot: Snapshot,
    /// What was read.
    pub world: World,
    /// What the repository holds.
    pub gitops: GitOps,
    /// One per Order.
    pub cases: Vec<Case>,
    /// What the gates were asked with.
    pub context: Context,
    /// What the registries proved.
    pub facts: Facts,
    /// What would be done, and why.
    pub plan: Plan,
    /// The files it means.
    pub rendered: RenderedFiles,
    /// What Servings in clusters say: for what is told them, and for nothing that is decided.
    pub listed: Listed,
}

/// What was read, before anything is decided.
pub struct Read {
    /// The commit that was read.
    pub snapshot: Snapshot,
    /// What the repository holds.
    pub gitops: GitOps,
    /// What the sources hold.
    pub world: World,
    /// What Servings in clusters say.
    pub listed: Listed,
}

/// Reads the repository and the sources; asks no registry.
///
/// # Errors
/// The repository cannot be read. Everything else is a problem of what was read.
pub fn read_inputs(setup: &Setup<'_>, progress: &mut dyn FnMut(&str)) -> Result<Read, Failure> {
    progress("reading the repository");
    let snapshot = setup.repository.read_snapshot(setup.branch)?;
    let gitops = load::read_gitops(&snapshot, snapshot.head.clone());
    progress("reading objects");
    let (world, listed) = read_world(setup, &snapshot, progress);
    Ok(Read { snapshot, gitops, world, listed })
}

/// Evidence that this run has read already: bytes under a digest do not change between two tries.
#[derive(Debug, Default)]
pub struct Known(BTreeMap<Artifact, (BTreeSet<Claim>, ArtifactFacts)>);

impl Known {
    /// Something was attached to this artifact: what was read of it is old.
    fn forget_artifact(&mut self, artifact: &Artifact) {
        self.0.remove(artifact);
    }
}

/// Reads, decides and renders; writes nothing anywhere.
///
/// # Errors
/// The repository cannot be read. Everything else is a row or a problem of the plan.
pub fn decide_run(
    setup: &Setup<'_>,
    known: &mut Known,
    progress: &mut dyn FnMut(&str),
) -> Result<Decided, Failure> {
    let read = read_inputs(setup, progress)?;
    decide_on(setup, read, known, progress)
}

/// Keys of the Kitchen that prove nothing, whatever they signed: an error, though it holds by itself.
fn find_unusable_keys(ring: &KeyRing, world: &World) -> Vec<Failure> {
    let Some(kitchen) = &world.kitchen else { return Vec::new() };
    let wrong = |why: &String| {
        Failure::new_input("trust-key", why.clone())
            .with_object("Kitchen default")
            .with_field("spec.trust")
            .with_place(kitchen.origin.make_place())
            .with_hint("nothing that this key signed counts until it is mended")
    };
    ring.state().errors.iter().map(wrong).collect()
}

/// Decides and renders on what was read.
pub(crate) fn decide_on(
    setup: &Setup<'_>,
    read: Read,
    known: &mut Known,
    progress: &mut dyn FnMut(&str),
) -> Result<Decided, Failure> {
    let Read { snapshot, mut gitops, world, listed } = read;
    let mut cases = resolve::resolve_cases(&world, &gitops, &setup.argocd_namespace);
    let ring =
        KeyRing::from_kitchen(world.kitchen.as_ref().map_or(&KitchenSpec::default(), |k| &k.object.spec));
    let context = Context {
        trust: ring.state().fingerprint,
        argocd_namespace: setup.argocd_namespace.clone(),
        require_observation: setup.require_observation,
        records: setup.records,
        foreseen: setup.foreseen,
        explained: setup.explained.clone(),
        rescan: Some(setup.rescan),
        ..Context::new(setup.now, world.kitchen.as_ref().map(|k| &k.object.spec))
    };
    let asks = gates::collect_asks(&cases, &context);
    if !asks.is_empty() {
        progress(&format!("reading the evidence of {} artifacts", asks.len()));
    }
    let mut facts = gather_facts(setup, &ring, asks, known);
    facts.records = records::read_records(gates::collect_record_asks(&cases, &context), &snapshot, &ring);
    facts.records.extend(records::find_proven(
        gates::find_pins_to_prove(&cases, &context),
        &gitops,
        &snapshot,
        &ring,
    ));
    let mut pen = setup.signer.filter(|_| setup.records).map(Pen::new);
    let mut unwritable = BTreeMap::new();
    let mut pass = |limit: Option<usize>, pen: Option<&mut Pen<'_>>, unwritable: &mut Unwritable| {
        let options = PlanOptions {
            max_promotions: limit,
            unwritable: unwritable.keys().cloned().collect(),
            ..setup.options.clone()
        };
        let mut plan =
            decide_until_settled(setup, &world, &facts, &context, &options, &mut cases, &mut gitops);
        plan.problems.extend(find_unusable_keys(&ring, &world));
        plan.notices.extend(records::find_gone(&gitops).map(|(order, path)| {
            Failure::new_input("record-gone", "this record is gone, and the Serving's history names it")
                .with_object(format!("Order {order}"))
                .with_place(crate::error::At::from_file(path))
                .with_hint(records::BRING_BACK)
        }));
        problems::refine_places(&mut plan, &|file| read_named(setup, &snapshot, file));
        let rendered = draft_files(setup, &mut plan, &cases, &gitops, &snapshot, pen, unwritable)?;
        let is_lost = |order: &OrderRef| {
            plan.find_row(order).is_some_and(|row| matches!(row.decision, Decision::Promote(_)))
        };
        let known = unwritable.len();
        for (order, failure) in rendered.failures.iter().filter(|(order, _)| is_lost(order)) {
            unwritable.entry(order.clone()).or_insert_with(|| failure.clone());
        }
        Ok::<_, Failure>((plan, rendered, unwritable.len() > known))
    };
    // Promotions that cannot be written take no place under `limits.maxPromotions`: then others are decided on, once.
    // A look without that limit finds all that cannot be rendered or has no place.
    let limit = setup.options.max_promotions;
    let (mut plan, mut rendered, lost) = pass(limit, pen.as_mut(), &mut unwritable)?;
    if lost && limit.is_some() {
        pass(None, pen.is_some().then(Pen::make_dry).as_mut(), &mut unwritable)?;
        (plan, rendered, _) = pass(limit, pen.as_mut(), &mut unwritable)?;
    }
    Ok(Decided { snapshot, world, gitops, cases, context, facts, plan, rendered, listed })
}

/// Decides until every loss is known that taking Applications over means: that shows once they are rendered, and
/// then holds their Clusters. Each round but the last finds a file more.
fn decide_until_settled(
    setup: &Setup<'_>,
    world: &World,
    facts: &Facts,
    context: &Context,
    options: &PlanOptions,
    cases: &mut Vec<Case>,
    gitops: &mut GitOps,
) -> Plan {
    loop {
        let plan = decide::decide_plan(cases, facts, world, gitops, context, options);
        let losses = render::collect_losses(&plan, gitops);
        if losses.keys().all(|path| gitops.losses.contains_key(path)) {
            return plan;
        }
        gitops.losses.extend(losses);
        *cases = resolve::resolve_cases(world, gitops, &setup.argocd_namespace);
    }
}

/// Orders of which nothing can be written, and why.
type Unwritable = BTreeMap<OrderRef, Failure>;

/// The files that a plan means, with its records. An Order of which something cannot be signed, rendered or put
/// where it belongs contributes nothing; nor does one that is `unwritable` already.
fn draft_files(
    setup: &Setup<'_>,
    plan: &mut Plan,
    cases: &[Case],
    gitops: &GitOps,
    snapshot: &Snapshot,
    pen: Option<&mut Pen<'_>>,
    unwritable: &Unwritable,
) -> Result<RenderedFiles, Failure> {
    let mut failures = unwritable.clone();
    let records = records::sign_all(plan, cases, gitops, pen, &mut failures);
    let mut rendered = render::render_files(plan, gitops, &setup.argocd_namespace);
    rendered.failures.iter().for_each(|(order, _)| drop(failures.remove(order)));
    for (order, changes) in records {
        if !rendered.has_failed(&order) {
            rendered.changes.extend(changes);
        }
    }
    for (order, failure) in failures {
        if let Some(row) = plan.find_row(&order) {
            leave_out(row, failure, &mut rendered);
        }
    }
    drop_clashes(snapshot, plan, &mut rendered)?;
    Ok(rendered)
}

/// The objects of every source, and what Servings in clusters say.
pub(crate) fn read_world(
    setup: &Setup<'_>,
    snapshot: &Snapshot,
    progress: &mut dyn FnMut(&str),
) -> (World, Listed) {
    let opened: Vec<OpenedSource> =
        setup.sources.iter().map(|source| OpenedSource::new(source, setup, progress)).collect();
    let inputs: Vec<Input<'_>> = setup
        .sources
        .iter()
        .zip(&opened)
        .map(|(source, opened)| Input {
            name: source.name.clone(),
            files: match opened {
                OpenedSource::Folder(folder) => folder,
                OpenedSource::Commit(below) => &**below,
                OpenedSource::Cluster(fetched) => &**fetched,
                OpenedSource::Repository => snapshot,
            },
            kinds: source.kinds.clone(),
            namespaces: source.namespaces.clone(),
            skip: match opened {
                OpenedSource::Repository => OURS,
                OpenedSource::Folder(_) | OpenedSource::Commit(_) | OpenedSource::Cluster(_) => &[],
            },
        })
        .collect();
    let dump = setup.observed.as_ref().map(|(name, path)| Observed {
        source: "observed".into(),
        file: name.as_str().into(),
        bytes: std::fs::read(path).map_err(|e| e.to_string()),
    });
    let live = setup.sources.iter().zip(&opened).filter_map(|(source, opened)| match opened {
        OpenedSource::Cluster(fetched) => fetched.build_observed(&source.name),
        OpenedSource::Folder(_) | OpenedSource::Commit(_) | OpenedSource::Repository => None,
    });
    let observed: Vec<Observed> = dump.into_iter().chain(live).collect();
    let listed = setup.sources.iter().zip(&opened).filter_map(|(source, opened)| match opened {
        OpenedSource::Cluster(fetched) => Some((source.name.clone(), fetched.servings().clone())),
        OpenedSource::Folder(_) | OpenedSource::Commit(_) | OpenedSource::Repository => None,
    });
    (load::read_world(&inputs, &observed), listed.collect())
}

/// A source, ready to be read.
enum OpenedSource {
    Folder(DiskFolder),
    Commit(Arc<Below>),
    Cluster(Arc<Fetched>),
    Repository,
}

impl OpenedSource {
    fn new(source: &Source, setup: &Setup<'_>, progress: &mut dyn FnMut(&str)) -> Self {
        match &source.place {
            SourcePlace::Folder(name, path) => Self::Folder(DiskFolder::new(name.clone(), path)),
            SourcePlace::Commit(below) => Self::Commit(below.clone()),
            SourcePlace::Repository => Self::Repository,
            SourcePlace::Cluster(cluster) => {
                progress(&format!("reading {}", cluster.name()));
                Self::Cluster(Arc::new(cluster.fetch_all(setup.runtime)))
            }
            SourcePlace::Snapshot(fetched) => Self::Cluster(fetched.clone()),
        }
    }
}

/// The bytes of a file that a message names, to find the line of a field.
fn read_named(setup: &Setup<'_>, snapshot: &Snapshot, file: &str) -> Option<Vec<u8>> {
    for source in &setup.sources {
        let root = match &source.place {
            SourcePlace::Folder(name, _) => name.clone(),
            SourcePlace::Commit(below) => below.name.clone(),
            SourcePlace::Repository => snapshot.name().to_owned(),
            SourcePlace::Cluster(_) | SourcePlace::Snapshot(_) => continue,
        };
        let Some(rest) = file.strip_prefix(root.as_str()) else { continue };
        let rest = rest.trim_start_matches('/');
        let bytes = match &source.place {
            SourcePlace::Folder(_, path) if rest.is_empty() => std::fs::read(path).ok(),
            SourcePlace::Folder(_, path) => std::fs::read(path.join(rest)).ok(),
            SourcePlace::Commit(below) => below.read_file(rest).ok().flatten(),
            SourcePlace::Repository => snapshot.read_file(rest).ok().flatten(),
            SourcePlace::Cluster(_) | SourcePlace::Snapshot(_) => None,
        };
        if bytes.is_some() {
            return bytes;
        }
    }
    // A Serving is read from the repository whatever the sources are.
    file.starts_with("servings/").then(|| snapshot.read_file(file).ok().flatten()).flatten()
}

fn gather_facts(setup: &Setup<'_>, ring: &KeyRing, asks: Vec<Ask>, known: &mut Known) -> Facts {
    if setup.skip_evidence {
        return Facts { keys: ring.state().clone(), ..Facts::default() };
    }
    let (have, want): (Vec<Ask>, Vec<Ask>) = asks.into_iter().partition(|ask| {
        known.0.get(&ask.artifact).is_some_and(|(claims, _)| claims.is_superset(&ask.claims))
    });
    let mut facts = gather_blocking(setup.runtime, &want, ring, setup.registries, &setup.gather);
    for ask in want {
        if let Some(found) = facts.artifacts.get(&ask.artifact)
            && found.is_whole()
        {
            known.0.insert(ask.artifact, (ask.claims, found.clone()));
        }
    }
    for ask in have {
        if let Some((_, found)) = known.0.get(&ask.artifact) {
            facts.artifacts.insert(ask.artifact, found.clone());
        }
    }
    facts
}

/// An Order whose files have no place in the tree contributes nothing; the others go on.
fn drop_clashes(snapshot: &Snapshot, plan: &Plan, rendered: &mut RenderedFiles) -> Result<(), Failure> {
    let clashes = git_commits::find_clashes(snapshot, &rendered.changes)?;
    if clashes.is_empty() {
        return Ok(());
    }
    for row in &plan.rows {
        let paths = problems::collect_paths(row, &rendered.changes);
        let Some((path, failure)) = clashes.iter().find(|(path, _)| paths.contains(*path)) else { continue };
        let failure = Failure::from(failure.clone())
            .with_place(At::from_file(path.clone()))
            .with_object(format!("Order {}", row.order));
        leave_out(row, failure, rendered);
    }
    Ok(())
}

/// Takes all that an Order contributes out of what is committed, and says why.
fn leave_out(row: &PlanRow, failure: Failure, rendered: &mut RenderedFiles) {
    let paths = problems::collect_paths(row, &rendered.changes);
    rendered.changes.retain(|path, _| !paths.contains(path));
    rendered.drift.retain(|edit| edit.order != row.order);
    rendered.failures.push((row.order.clone(), failure));
    rendered.failures.sort_by(|(a, _), (b, _)| a.cmp(b));
}

/// What a run did.
pub struct Ran {
    /// What it decided, in its last try.
    pub decided: Decided,
    /// The commit it made; `None`: nothing had to change.
    pub commit: Option<CommitId>,
    /// What became of telling the clusters.
    pub notified: Vec<Notified>,
}

/// How a run writes.
pub struct Writing<'a> {
    /// Author and committer.
    pub identity: &'a Identity,
    /// `limits.maxTries`: how often a moved branch is read again.
    pub tries: u32,
    /// Hand edits of our files are refused instead of restored (`--check`).
    pub check: bool,
    /// Who tells clusters what is in git (`--write-status`); nobody where nobody asked for it.
    pub tellers: Vec<Teller>,
}

/// Reads, decides, renders, commits, pushes, attaches and tells; on a branch that moved it begins again. What could
/// not be attached is an error of its Order in the plan: the commit stands, and the next run tries again.
///
/// # Errors
/// There is no key to sign records with, the repository cannot be read or written, the removal guard stops it,
/// the server refuses the commit, or the branch kept moving. Nothing of ours is in the branch then.
pub fn perform_run(
    setup: &Setup<'_>,
    writing: &Writing<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Ran, (Failure, Option<Box<Decided>>)> {
    if setup.records && setup.signer.is_none() {
        return Err((signing::make_no_key(), None));
    }
    let mut known = Known::default();
    let mut seals = Seals::default();
    let mut attaching = Attaching::default();
    for attempt in 1..=writing.tries.max(1) {
        let mut decided = decide_and_seal(setup, &mut known, &mut seals, progress).map_err(|f| (f, None))?;
        attaching.attach_leftovers(setup, writing.identity, &mut decided);
        let stopped = |mut decided: Decided, attaching: &mut Attaching, failure| {
            attaching.hand_over_failures(&mut decided);
            Err((failure, Some(Box::new(decided))))
        };
        if let Some(stop) = problems::find_stop(&decided, writing.check) {
            return stopped(decided, &mut attaching, stop);
        }
        progress("writing");
        let commit = match write_commit(setup, writing, &decided) {
            Ok(WriteOutcome::Pushed(commit)) => Some(commit),
            Ok(WriteOutcome::Unchanged) => None,
            Ok(WriteOutcome::Refused(words)) => {
                return stopped(decided, &mut attaching, problems::make_refused(setup.repository, &words));
            }
            Ok(WriteOutcome::Moved) => {
                progress(&format!("the branch moved; reading it again (try {attempt} of {})", writing.tries));
                pause_before_retry(attempt);
                continue;
            }
            Err(failure) => return stopped(decided, &mut attaching, failure),
        };
        if commit.is_some() {
            progress("attaching records");
            attaching.attach_committed(setup, writing.identity, &decided);
        }
        attaching.hand_over_failures(&mut decided);
        decided.plan.notices.extend(setup.signer.and_then(|s| signing::check_key(s.public_key(), &decided)));
        let notified = tell::tell_clusters(setup, &writing.tellers, &mut decided, progress);
        return Ok(Ran { decided, commit, notified });
    }
    Err((problems::make_kept_moving(setup.repository, writing.tries), None))
}

/// Decides, seals what is due, and decides again with the new seals. Each seal is tried once in a run.
fn decide_and_seal(
    setup: &Setup<'_>,
    known: &mut Known,
    seals: &mut Seals,
    progress: &mut dyn FnMut(&str),
) -> Result<Decided, Failure> {
    loop {
        let mut decided = decide_run(setup, known, progress)?;
        let again = seals.attach_seals(setup, &decided);
        if again.is_empty() {
            seals.add_bundles(setup, &mut decided)?;
            return Ok(decided);
        }
        progress(&format!("sealed the votes on {} artifacts; deciding again", again.len()));
        again.iter().for_each(|artifact| known.forget_artifact(artifact));
    }
}

fn write_commit(
    setup: &Setup<'_>,
    writing: &Writing<'_>,
    decided: &Decided,
) -> Result<WriteOutcome, Failure> {
    let text = message::format_message(decided, writing.identity);
    let proposal = Proposal { message: &text, identity: writing.identity, at: setup.now.unix() };
    let changes = &decided.rendered.changes;
    Ok(git_commits::write_changes(setup.repository, &decided.snapshot, changes, proposal)?)
}

/// Waits a random time that grows with each try, so that runs do not retry in step.
pub(crate) fn pause_before_retry(attempt: u32) {
    let top = 50_u64.saturating_mul(1 << attempt.min(6));
    std::thread::sleep(Duration::from_millis(rand::random_range(10..=top)));
}
