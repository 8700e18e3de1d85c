//! Records of what a run does: signed before the commit, so that git holds them with the state they prove.

use crate::attest::key::RecordSigner;
use crate::attest::record::{
    self, DeployedCluster, NamedOrder, NamedPreparation, OptIn, Previous, PromotedCluster, Promoter, Record,
    RecordRef,
};
use crate::attest::sign::{SignedRecord, sign_record};
use crate::error::Failure;
use crate::evidence::envelope;
use crate::evidence::judge;
use crate::evidence::keys::KeyRing;
use crate::files::FileChange;
use crate::model::evidence::{Evidence, Looked, Proof, RecordAsk, Unread};
use crate::model::id::{Artifact, Digest, OrderRef};
use crate::model::naming::build_record_path;
use crate::model::plan::{ApplicationAction, Decision, Plan, PlanRow, ServingPlan};
use crate::model::reason::{Ended, Verified};
use crate::model::serving::{HistoryEntry, ServingStatus};
use crate::model::time::Time;
use crate::model::world::GitOps;
use crate::policy::resolve::Case;
use crate::policy::resolve::slot::Consent;
use git_commits::Snapshot;
use std::collections::{BTreeMap, BTreeSet};

/// Changes below `records/`, by Order.
pub type RecordFiles = BTreeMap<OrderRef, BTreeMap<String, FileChange>>;

/// What the repository's own records prove: each is read from `snapshot` and judged for the artifact that
/// the history entry which names it is of.
#[must_use]
pub fn read_records(
    asks: BTreeSet<RecordAsk>,
    snapshot: &Snapshot,
    ring: &KeyRing,
) -> BTreeMap<RecordAsk, Evidence<Proof>> {
    let looked = |why: String| Looked { why, ..Looked::default() };
    asks.into_iter()
        .map(|ask| {
            let path = build_record_path(&ask.order, &ask.bundle.format_hex());
            let found = match snapshot.read_file(&path) {
                Ok(None) => Evidence::Missing(looked(format!("{path} is not in the repository"))),
                Ok(Some(bytes)) if Digest::hash_bytes(&bytes) != ask.bundle => {
                    Evidence::Invalid(looked(format!("{path} does not hash to its name")))
                }
                Ok(Some(bytes)) => match judge::judge_record(&bytes, &ask.artifact, ring) {
                    Ok(proof) => Evidence::Proven(proof),
                    Err(why) => Evidence::Invalid(looked(why)),
                },
                Err(lost) => Evidence::Unread(Unread {
                    reason: Verified::NotVerified,
                    request: path,
                    status: None,
                    why: lost.why,
                    retryable: false,
                }),
            };
            (ask, found)
        })
        .collect()
}

/// Every record in the folders of these Orders that is proven, for the artifact that it is of itself.
#[must_use]
pub fn find_proven(
    orders: Vec<&OrderRef>,
    gitops: &GitOps,
    snapshot: &Snapshot,
    ring: &KeyRing,
) -> BTreeMap<RecordAsk, Evidence<Proof>> {
    let one = |order: &OrderRef, hex: &String| {
        let bytes = snapshot.read_file(&build_record_path(order, hex)).ok()??;
        let (artifact, _) = record::parse_subject(&envelope::open_bundle(&bytes, ring).ok()?.payload).ok()?;
        let proof = judge::judge_record(&bytes, &artifact.digest, ring).ok()?;
        let ask =
            RecordAsk { order: order.clone(), bundle: Digest::hash_bytes(&bytes), artifact: artifact.digest };
        Some((ask, Evidence::Proven(proof)))
    };
    orders
        .into_iter()
        .flat_map(|order| gitops.records.get(order).into_iter().flatten().map(move |hex| (order, hex)))
        .filter_map(|(order, hex)| one(order, hex))
        .collect()
}

/// How many signatures may fail one after the other before the signer is not asked again: one that hangs does not
/// hold a run up once per Order.
const FAILURES: usize = 5;

/// The signer, how many signatures failed since one did not, and what it signed: all that is decided on one state
/// of the repository is signed with one pen.
pub struct Pen<'a> {
    signer: Option<&'a RecordSigner>,
    failed: usize,
    signed: BTreeMap<Artifact, Vec<(Record, SignedRecord)>>,
}

impl<'a> Pen<'a> {
    /// A pen that signed nothing yet.
    #[must_use]
    pub fn new(signer: &'a RecordSigner) -> Self {
        Self { signer: Some(signer), failed: 0, signed: BTreeMap::new() }
    }

    /// A pen without a signer: its records are empty, for a look at whether there is a place for them.
    #[must_use]
    pub fn make_dry() -> Self {
        Self { signer: None, failed: 0, signed: BTreeMap::new() }
    }

    fn sign_record(&mut self, record: Record, artifact: &Artifact) -> Result<SignedRecord, Failure> {
        let Some(signer) = self.signer else {
            return Ok(SignedRecord { digest: Digest::hash_bytes(&[]), bundle: Vec::new() });
        };
        let mut of_it = self.signed.get(artifact).into_iter().flatten();
        if let Some((_, signed)) = of_it.find(|(known, _)| *known == record) {
            return Ok(signed.clone());
        }
        if self.failed >= FAILURES {
            let cause =
                format!("{FAILURES} signatures in a row failed; the signer is not asked again in this run");
            return Err(
                Failure::new_input("signer-failed", cause).with_hint("mend the signer, and run again")
            );
        }
        let signed = sign_record(&record, artifact, signer);
        self.failed = if signed.is_ok() { 0 } else { self.failed + 1 };
        let signed = signed?;
        self.signed.entry(artifact.clone()).or_default().push((record, signed.clone()));
        Ok(signed)
    }
}

/// Signs a promotion record for every promotion of the plan and a deployment record for every health and
/// Degraded end that this run saw, and names them in the history entries. What an earlier run saw is never
/// signed: by now it is only history's word. Records that left the history leave the tree (git and the
/// artifact keep them).
///
/// An Order for which the signer fails is added to `failures`: nothing of it may be written. Nothing is signed
/// for an Order that is there already.
pub fn sign_all(
    plan: &mut Plan,
    cases: &[Case],
    gitops: &GitOps,
    mut pen: Option<&mut Pen<'_>>,
    failures: &mut BTreeMap<OrderRef, Failure>,
) -> RecordFiles {
    let mut files = RecordFiles::new();
    for row in &mut plan.rows {
        if failures.contains_key(&row.order) {
            continue;
        }
        // Cases are sorted by Order.
        let Ok(index) = cases.binary_search_by(|c| c.order.cmp(&row.order)) else { continue };
        match sign_row(row, &cases[index], gitops, plan.at, pen.as_deref_mut()) {
            Ok(changes) if changes.is_empty() => {}
            Ok(changes) => drop(files.insert(row.order.clone(), changes)),
            Err(failure) => drop(failures.insert(row.order.clone(), failure)),
        }
    }
    files
}

/// Signs what is due for one Order, and lets go what nothing names any more.
fn sign_row(
    row: &mut PlanRow,
    case: &Case,
    gitops: &GitOps,
    at: Time,
    pen: Option<&mut Pen<'_>>,
) -> Result<BTreeMap<String, FileChange>, Failure> {
    let mut changes = BTreeMap::new();
    if let Some(pen) = pen {
        if let (Some(record), Some(candidate)) = (build_promotion(row, case, at), &row.candidate) {
            let signed = pen.sign_record(record, &candidate.artifact)?;
            if let ServingPlan::Write(state) = &mut row.serving
                && let Some(entry) = state.status.history.first_mut()
            {
                entry.promotion_record = Some(signed.digest);
                changes.insert(
                    build_record_path(&row.order, &signed.digest.format_hex()),
                    FileChange::Write(signed.bundle),
                );
            }
        }
        if let ServingPlan::Write(state) = &mut row.serving {
            for (digest, bundle) in sign_deployments(&row.order, &mut state.status, case, pen)? {
                changes
                    .insert(build_record_path(&row.order, &digest.format_hex()), FileChange::Write(bundle));
            }
        }
    }
    for digest in find_dropped(row, case) {
        if gitops.records.get(&row.order).is_some_and(|known| known.contains(&digest.format_hex())) {
            changes.insert(build_record_path(&row.order, &digest.format_hex()), FileChange::Delete);
        }
    }
    if matches!(row.serving, ServingPlan::Remove) {
        for hex in gitops.records.get(&row.order).into_iter().flatten() {
            changes.insert(build_record_path(&row.order, hex), FileChange::Delete);
        }
    }
    Ok(changes)
}

/// What to do about [`find_gone`].
pub const BRING_BACK: &str =
    "bring it back from the commit before it was removed; the artifact holds a copy, too";

/// Records that Servings name and the repository does not hold any more, by their Order: somebody removed them.
pub fn find_gone(gitops: &GitOps) -> impl Iterator<Item = (&OrderRef, String)> {
    gitops.servings.iter().flat_map(|(order, file)| {
        let known = gitops.records.get(order);
        let history = file.serving.as_ref().map_or(&[][..], |serving| &serving.status.history);
        let named = history.iter().flat_map(|e| [e.promotion_record, e.deployment_record, e.approval_record]);
        let missing =
            named.flatten().filter(move |d| known.is_none_or(|known| !known.contains(&d.format_hex())));
        missing.map(move |digest| (order, build_record_path(order, &digest.format_hex())))
    })
}

fn build_promotion(row: &PlanRow, case: &Case, at: Time) -> Option<Record> {
    let Decision::Promote(promotion) = &row.decision else { return None };
    let candidate = row.candidate.as_ref()?;
    let name = |name: &crate::model::id::PreparationName| NamedPreparation {
        namespace: row.order.namespace.clone(),
        name: name.clone(),
    };
    Some(Record::Promotion(record::PromotionPredicate {
        order: NamedOrder::from(&row.order),
        environment: row.environment.clone()?,
        preparation: name(&candidate.name),
        base_digest: find_promoted(row).and_then(|entry| entry.base_digest),
        target_namespace: Some(candidate.target_namespace.clone()),
        mode: row.mode,
        previous: promotion.previous.as_ref().map(|(preparation, digest)| Previous {
            preparation: preparation.clone(),
            digest: *digest,
            first_healthy_time: find_superseded(row).and_then(|entry| entry.first_healthy_time),
            healthy_until: find_superseded(row).and_then(|entry| entry.healthy_until),
        }),
        promoted_time: at,
        requested_by: promotion.requested_by.clone(),
        gates: row.verdicts.iter().map(record::GateRecord::from).collect(),
        clusters: collect_clusters(row, case),
        promoter: Promoter::from_this_build(),
    }))
}

/// The history entry that a promotion adds.
fn find_promoted(row: &PlanRow) -> Option<&HistoryEntry> {
    let ServingPlan::Write(state) = &row.serving else { return None };
    state.status.history.first()
}

/// The history entry of what a promotion takes the place of, where that is what ended it.
fn find_superseded(row: &PlanRow) -> Option<&HistoryEntry> {
    let ServingPlan::Write(state) = &row.serving else { return None };
    let [newest, before, ..] = state.status.history.as_slice() else { return None };
    (before.ended_time == Some(newest.promoted_time)).then_some(before)
}

fn collect_clusters(row: &PlanRow, case: &Case) -> Vec<PromotedCluster> {
    row.applications
        .iter()
        .filter(|plan| matches!(plan.action, ApplicationAction::Pin(_)))
        .filter_map(|plan| case.slots.iter().find(|slot| slot.cluster.name == plan.cluster))
        .map(|slot| PromotedCluster {
            name: slot.cluster.name.clone(),
            opt_in: match slot.consent {
                Consent::Ours | Consent::Free { observed: true } => OptIn::Created,
                Consent::Free { observed: false } => OptIn::NotObserved,
                Consent::OptedIn | Consent::Refused(_) => OptIn::OptedIn,
            },
            server: Some(slot.cluster.server.clone()),
        })
        .collect()
}

/// Deployment records of what this run saw for the first time.
fn sign_deployments(
    order: &OrderRef,
    status: &mut ServingStatus,
    case: &Case,
    pen: &mut Pen<'_>,
) -> Result<Vec<(Digest, Vec<u8>)>, Failure> {
    let (Some(deployed), Some(before)) = (&case.deployed, &case.serving) else { return Ok(Vec::new()) };
    let mut bundles = Vec::new();
    for entry in status.history.iter_mut().filter(|e| e.digest == deployed.artifact.digest) {
        let (Some(first_healthy_time), Some(promotion_record)) =
            (entry.first_healthy_time, entry.promotion_record)
        else {
            continue;
        };
        let old = before.status.history.iter().find(|old| {
            (old.promoted_time, old.digest, old.first_healthy_time)
                == (entry.promoted_time, entry.digest, entry.first_healthy_time)
        });
        let degraded = entry.ended_reason == Some(Ended::Degraded);
        let is_news = match old {
            None => true,
            Some(old) => degraded && old.ended_reason.is_none(),
        };
        let Some(environment) = entry.environment.clone().filter(|_| is_news) else { continue };
        let body = record::Deployment {
            order: NamedOrder::from(order),
            environment,
            preparation: NamedPreparation {
                namespace: order.namespace.clone(),
                name: entry.preparation_name.clone(),
            },
            promotion_record: RecordRef { digest: promotion_record },
            first_healthy_time,
            ended_time: entry.ended_time.filter(|_| degraded),
            ended_reason: entry.ended_reason.filter(|_| degraded),
            clusters: collect_running(case, &before.status),
        };
        let signed = pen.sign_record(Record::Deployment(body), &deployed.artifact)?;
        entry.deployment_record = Some(signed.digest);
        bundles.push((signed.digest, signed.bundle));
    }
    Ok(bundles)
}

/// The Ready Clusters that what is deployed was written for.
fn collect_running(case: &Case, status: &ServingStatus) -> Vec<DeployedCluster> {
    case.seen
        .iter()
        .flat_map(|seen| seen.iter())
        .filter(|seen| seen.ready)
        .filter_map(|seen| {
            let written = status.clusters.iter().find(|c| c.name == seen.cluster)?;
            let live = seen.application.as_ref()?.status.as_ref()?;
            Some(DeployedCluster {
                name: seen.cluster.clone(),
                server: seen.server.clone(),
                application: written.application.clone(),
                sync_revision: live.sync.revision.clone().unwrap_or_default(),
            })
        })
        .collect()
}

/// Every record that a status names.
#[must_use]
pub fn collect_named(status: &ServingStatus) -> BTreeSet<Digest> {
    let seal = status.approval.as_ref().and_then(|a| a.record);
    let of_entries =
        status.history.iter().flat_map(|e| [e.approval_record, e.promotion_record, e.deployment_record]);
    of_entries.chain([seal]).flatten().collect()
}

/// Records that the old history names and the new one does not.
fn find_dropped(row: &PlanRow, case: &Case) -> Vec<Digest> {
    let (ServingPlan::Write(state), Some(old)) = (&row.serving, &case.serving) else { return Vec::new() };
    let kept = collect_named(&state.status);
    collect_named(&old.status).into_iter().filter(|digest| !kept.contains(digest)).collect()
}
