//! `verify-history`: the past of a branch, judged again from git and the registry alone.
//!
//! Commit by commit along first parents: what each did to Servings (`serving`), Applications
//! (`application`) and records (`record`) has to be what a run does, and every promotion among it is judged
//! again by its record ([`crate::policy::gates::again`]). Keys are those of the Kitchen of today, so that a key that was
//! found to be stolen can be taken out, and one that was retired is to be kept there.

mod application;
mod record;
mod serving;

use crate::attest::record::PromotionPredicate;
use crate::error::{At, Failure, FailureKind};
use crate::evidence::gather::{GatherOptions, gather_blocking};
use crate::evidence::keys::KeyRing;
use crate::load::gitops::parse_serving_at;
use crate::model::audit::{Audit, AuditFinding};
use crate::model::evidence::{ArtifactFacts, Ask, Evidence, Facts, Proof, RecordAsk};
use crate::model::id::{Artifact, CommitId, Digest, OrderRef};
use crate::model::kind;
use crate::model::kitchen::{KitchenSpec, Role};
use crate::model::naming::build_serving_path;
use crate::model::serving::{Serving, ServingStatus};
use crate::model::world::Holds;
use crate::policy::gates::again::{Doubt, Past, Then};
use crate::run::{self, Setup, SourcePlace};
use git_commits::{Snapshot, Visit};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The folders that matter.
const FOLDERS: [&str; 3] = ["applications", "records", "servings"];

/// What is judged again, and how.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// As git's `A..B`; `None`: the whole branch.
    pub range: Option<&'a str>,
    /// Ask no registry.
    pub offline: bool,
}

/// Walks the history and judges it again.
///
/// # Errors
/// The history or the Kitchen cannot be read, or the Kitchen trusts no key for records.
pub fn audit_history(
    setup: &Setup<'_>,
    wanted: Wanted<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Audit, Failure> {
    let ring = read_ring(setup, progress)?;
    progress("reading the history");
    let history = setup.repository.read_history(setup.branch, wanted.range)?;
    let mut auditor = Auditor {
        setup,
        ring: &ring,
        audit: Audit {
            commits: history.len(),
            offline: wanted.offline,
            no_records: !setup.records,
            ..Audit::default()
        },
        known: BTreeMap::new(),
        servings: BTreeMap::new(),
        past: Vec::new(),
        visited: Vec::new(),
    };
    for visit in history.walk_visits(&FOLDERS) {
        let visit = visit?;
        auditor.audit.touched += 1;
        if auditor.audit.touched.is_multiple_of(100) {
            progress(&format!("judging commit {} of {}", auditor.audit.touched, history.len()));
        }
        auditor.visit_commit(&visit)?;
    }
    progress(&format!("judging {} promotions", auditor.past.len()));
    auditor.judge_promotions(wanted.offline);
    Ok(auditor.audit)
}

/// Whom the Kitchen trusts now. Nothing else of the sources counts: past inputs are not there any more.
fn read_ring(setup: &Setup<'_>, progress: &mut dyn FnMut(&str)) -> Result<KeyRing, Failure> {
    progress("reading the Kitchen");
    let snapshot = setup.repository.read_snapshot(setup.branch)?;
    let mut now = Setup { observed: None, ..setup.clone() };
    for source in &mut now.sources {
        let kitchen = source.kinds.as_ref().is_none_or(|kinds| kinds.contains(&kind::Kind::Kitchen));
        match source.place {
            SourcePlace::Cluster(_) => {
                source.kinds = Some(kitchen.then_some(kind::Kind::Kitchen).into_iter().collect());
            }
            SourcePlace::Folder(..)
            | SourcePlace::Repository
            | SourcePlace::Commit(_)
            | SourcePlace::Snapshot(_) => {}
        }
    }
    let (world, _) = run::read_world(&now, &snapshot, progress);
    if world.kitchen.is_none()
        && let Some(problem) = world.problems.iter().find(|p| p.holds == Holds::Everything)
    {
        return Err(problem.failure.clone());
    }
    let ring =
        KeyRing::from_kitchen(world.kitchen.as_ref().map_or(&KitchenSpec::default(), |k| &k.object.spec));
    let state = ring.state();
    if let Some(wrong) = state.errors.first() {
        return Err(Failure::new_input("kitchen", wrong.clone()).with_object("Kitchen default"));
    }
    if setup.records && !state.usable.contains(&Role::Records) {
        let cause = "it trusts no key for records: no promotion of the past can be judged";
        return Err(Failure::new_input("no-record-key", cause)
            .with_object("Kitchen default")
            .with_field("spec.trust.keys")
            .with_hint("give the run's public key the role records; a repository that keeps none on purpose: --no-records"));
    }
    Ok(ring)
}

/// A promotion of the past that awaits the registry's word.
struct Pending {
    commit: CommitId,
    past: Past,
    then: Then,
}

struct Auditor<'a> {
    setup: &'a Setup<'a>,
    ring: &'a KeyRing,
    audit: Audit,
    /// Records that were verified: the same bytes verify again.
    known: BTreeMap<RecordAsk, Evidence<Proof>>,
    /// The last state of each Order that could be read.
    servings: BTreeMap<OrderRef, ServingStatus>,
    past: Vec<Pending>,
    /// The commits that were judged, in their order.
    visited: Vec<CommitId>,
}

/// One commit as it is judged.
struct AuditStep<'v> {
    commit: CommitId,
    visit: &'v Visit,
}

impl AuditStep<'_> {
    fn make_finding(
        &self,
        order: Option<&OrderRef>,
        digest: Option<Digest>,
        code: &'static str,
        what: String,
    ) -> AuditFinding {
        AuditFinding { commit: self.commit.clone(), order: order.cloned(), digest, code, what }
    }
}

/// A file of a commit; what cannot be read is an error of the whole: git lacks an object.
fn read_bytes(snapshot: &Snapshot, path: &str) -> Result<Option<Vec<u8>>, Failure> {
    snapshot.read_file(path).map_err(|lost| {
        let what = format!("commit {}", snapshot.head.as_ref().map(ToString::to_string).unwrap_or_default());
        Failure::new(FailureKind::Repository, "repository-unreadable", lost.why)
            .with_object(what)
            .with_place(At::from_file(lost.path))
    })
}

/// The Serving of an Order at a commit; `None`: there is none, or it cannot be read.
fn read_serving(snapshot: &Snapshot, order: &OrderRef) -> Result<Option<Arc<Serving>>, Failure> {
    let path = build_serving_path(order);
    let Some(bytes) = read_bytes(snapshot, &path)? else { return Ok(None) };
    Ok(parse_serving_at(snapshot.name(), &path, &bytes).and_then(|(_, file)| file.serving.ok()))
}

impl Auditor<'_> {
    fn visit_commit(&mut self, visit: &Visit) -> Result<(), Failure> {
        let Some(commit) = visit.after.head.clone() else { return Ok(()) };
        self.visited.push(commit.clone());
        let step = AuditStep { commit, visit };
        for path in &visit.changed {
            if path.starts_with("servings/") {
                self.audit_serving(&step, path)?;
            } else if path.starts_with("applications/") {
                let found = application::judge_application(&step, path)?;
                self.audit.findings.extend(found);
            } else if self.setup.records {
                let found = record::judge_record(&step, path)?;
                self.audit.findings.extend(found);
            }
        }
        Ok(())
    }

    fn audit_serving(&mut self, step: &AuditStep<'_>, path: &str) -> Result<(), Failure> {
        let Some(order) = path.strip_prefix("servings/").and_then(|p| p.strip_suffix(".yaml")) else {
            return Ok(());
        };
        let Ok(order) = OrderRef::parse(order) else { return Ok(()) };
        let before = match &step.visit.before {
            Some(before) => read_serving(before, &order)?.map(|s| s.status.clone()),
            None => None,
        };
        let gone = read_bytes(&step.visit.after, path)?.is_none();
        let after = read_serving(&step.visit.after, &order)?.map(|s| s.status.clone());
        // What stood there in between and could not be read was nobody's state.
        let before = before.or_else(|| self.servings.get(&order).cloned()).unwrap_or_default();
        let Some(after) = after else {
            if gone {
                self.servings.remove(&order);
            } else {
                self.servings.insert(order, before);
            }
            return Ok(());
        };
        let compared = serving::compare_statuses(&before, &after);
        for (digest, code, what) in compared.findings {
            self.audit.findings.push(step.make_finding(Some(&order), digest, code, what));
        }
        // The oldest first: each is the one before the next.
        for &index in compared.promotions.iter().rev() {
            if self.setup.records {
                self.audit_promotion(step, &order, &after, index)?;
            } else {
                self.audit.unrecorded += 1;
            }
        }
        if self.setup.records {
            for &index in &compared.deployments {
                self.audit_deployment(step, &order, &after, index);
            }
        }
        self.servings.insert(order, after);
        Ok(())
    }

    /// What a record proves, from the tree of the commit or of the one before it.
    fn find_proof(&mut self, step: &AuditStep<'_>, ask: &RecordAsk) -> Evidence<Proof> {
        if let Some(known) = self.known.get(ask) {
            return known.clone();
        }
        let snapshots = [Some(&step.visit.after), step.visit.before.as_ref()];
        let mut found = None;
        for snapshot in snapshots.into_iter().flatten() {
            let read = run::records::read_records(BTreeSet::from([ask.clone()]), snapshot, self.ring);
            let read = read.into_values().next();
            let missing = matches!(read, Some(Evidence::Missing(_)) | None);
            if found.is_none() || !missing {
                found = read;
            }
            if !missing {
                break;
            }
        }
        let found = found.unwrap_or_else(|| Evidence::Missing(Default::default()));
        if matches!(found, Evidence::Proven(_)) {
            self.known.insert(ask.clone(), found.clone());
        }
        found
    }

    fn audit_promotion(
        &mut self,
        step: &AuditStep<'_>,
        order: &OrderRef,
        after: &ServingStatus,
        index: usize,
    ) -> Result<(), Failure> {
        let entry = &after.history[index];
        self.audit.promotions += 1;
        let digest = Some(entry.digest);
        let Some(bundle) = entry.promotion_record else {
            let what = format!("{} was promoted without a record", entry.preparation_name);
            self.audit.findings.push(step.make_finding(Some(order), digest, "no-record", what));
            return Ok(());
        };
        let Some(proof) = self.find_record(step, order, entry.digest, "promotion", bundle) else {
            return Ok(());
        };
        let says: PromotionPredicate = match record::parse_promotion(&proof) {
            Ok(says) => says,
            Err(why) => {
                let what = format!("its promotion record {}: {why}", bundle.format_short());
                self.audit.findings.push(step.make_finding(Some(order), digest, "record-invalid", what));
                return Ok(());
            }
        };
        for what in record::compare_promotion(&says, order, after, index) {
            self.audit.findings.push(step.make_finding(Some(order), digest, "record-differs", what));
        }
        let Some(artifact) = record::find_artifact(&says, entry.digest, after, index) else {
            let what = "its promotion record names no repository of the artifact".to_owned();
            self.audit.findings.push(step.make_finding(Some(order), digest, "record-differs", what));
            return Ok(());
        };
        let past = record::build_past(&says, order, artifact, entry.promoted_time);
        let then = self.gather_then(step, &past, after, index)?;
        self.past.push(Pending { commit: step.commit.clone(), past, then });
        Ok(())
    }

    /// What git held then: histories with their records, and the seal.
    fn gather_then(
        &mut self,
        step: &AuditStep<'_>,
        past: &Past,
        after: &ServingStatus,
        index: usize,
    ) -> Result<Then, Failure> {
        let mut histories = vec![(past.order.clone(), after.history[index..].to_vec())];
        for stage in past.collect_stages() {
            if let Some(serving) = read_serving(&step.visit.after, &stage)? {
                histories.push((stage, serving.status.history.clone()));
            }
        }
        let mut records = Facts::default();
        let asks: Vec<RecordAsk> = histories
            .iter()
            .flat_map(|(order, history)| crate::policy::gates::proof::collect_history_asks(order, history))
            .collect();
        for ask in asks {
            let proof = self.find_proof(step, &ask);
            records.records.insert(ask, proof);
        }
        let seal = match after.history[index].approval_record {
            None => None,
            Some(bundle) => Some(record::read_seal(step, past, bundle, self.ring)?),
        };
        Ok(Then { histories, records, seal })
    }

    fn audit_deployment(
        &mut self,
        step: &AuditStep<'_>,
        order: &OrderRef,
        after: &ServingStatus,
        index: usize,
    ) {
        let entry = &after.history[index];
        self.audit.deployments += 1;
        let digest = Some(entry.digest);
        let Some(bundle) = entry.deployment_record else {
            let what = format!("{} is said to be healthy without a record", entry.preparation_name);
            self.audit.findings.push(step.make_finding(Some(order), digest, "no-record", what));
            return;
        };
        let Some(proof) = self.find_record(step, order, entry.digest, "deployment", bundle) else { return };
        if let Err(why) = record::check_deployment(&proof, order, entry) {
            let what = format!("its deployment record {}: {why}", bundle.format_short());
            self.audit.findings.push(step.make_finding(Some(order), digest, "record-invalid", what));
        }
    }

    /// The record of this kind that a history entry names, where it is proven; what stands in its way is filed.
    fn find_record(
        &mut self,
        step: &AuditStep<'_>,
        order: &OrderRef,
        artifact: Digest,
        kind: &str,
        bundle: Digest,
    ) -> Option<Proof> {
        let ask = RecordAsk { order: order.clone(), bundle, artifact };
        let (list, code, why) = match self.find_proof(step, &ask) {
            Evidence::Proven(proof) => return Some(proof),
            Evidence::Missing(looked) | Evidence::Invalid(looked) => {
                (&mut self.audit.findings, "record-invalid", looked.why)
            }
            Evidence::Unread(unread) => (&mut self.audit.unread, "record-unread", unread.why),
        };
        let what = format!("its {kind} record {}: {why}", bundle.format_short());
        list.push(step.make_finding(Some(order), Some(artifact), code, what));
        None
    }

    /// Judges the gates of all promotions. One round asks for each artifact at most once: what counts is what
    /// that one promotion rested on.
    fn judge_promotions(&mut self, offline: bool) {
        let mut pending = std::mem::take(&mut self.past);
        while !pending.is_empty() {
            let mut round: BTreeMap<Artifact, Pending> = BTreeMap::new();
            let mut later = Vec::new();
            for one in pending {
                if offline {
                    self.file_doubts(&one, None);
                } else if round.contains_key(&one.past.artifact) {
                    later.push(one);
                } else {
                    round.insert(one.past.artifact.clone(), one);
                }
            }
            let facts = self.gather_facts(&round);
            for (artifact, one) in &round {
                let nothing = Default::default();
                self.file_doubts(one, Some(facts.artifacts.get(artifact).unwrap_or(&nothing)));
            }
            pending = later;
        }
        // As they came, not as they were judged.
        let place = |finding: &AuditFinding| self.visited.iter().position(|commit| *commit == finding.commit);
        self.audit.findings.sort_by_cached_key(place);
        self.audit.unread.sort_by_cached_key(place);
    }

    fn gather_facts(&self, round: &BTreeMap<Artifact, Pending>) -> Facts {
        if round.is_empty() {
            return Facts::default();
        }
        let asks: Vec<Ask> = round
            .iter()
            .map(|(artifact, one)| Ask { artifact: artifact.clone(), claims: one.past.collect_claims() })
            .collect();
        let options = GatherOptions {
            only: Some(round.values().flat_map(|one| one.past.collect_pieces()).collect()),
            ..self.setup.gather.clone()
        };
        gather_blocking(self.setup.runtime, &asks, self.ring, self.setup.registries, &options)
    }

    fn file_doubts(&mut self, one: &Pending, now: Option<&ArtifactFacts>) {
        for (gate, doubt) in one.past.judge_again(&one.then, now) {
            let (list, code, why) = match doubt {
                Doubt::Not(why) => (&mut self.audit.findings, "gate", why),
                Doubt::Unread(why) => (&mut self.audit.unread, "evidence-unread", why),
            };
            list.push(AuditFinding {
                commit: one.commit.clone(),
                order: Some(one.past.order.clone()),
                digest: Some(one.past.artifact.digest),
                code,
                what: format!("gate {gate} of {}: {why}", one.past.preparation),
            });
        }
    }
}
