//! Records of the past: their files, and whether what they say is what the Serving says.

use super::{AuditStep, read_bytes, read_serving};
use crate::attest::record::{Deployment, PromotionPredicate};
use crate::error::Failure;
use crate::evidence::judge::{self, DEPLOYMENT, PROMOTION};
use crate::evidence::keys::KeyRing;
use crate::model::audit::AuditFinding;
use crate::model::evidence::{Proof, SealProof};
use crate::model::id::{Artifact, Digest, OciRepository, OrderRef};
use crate::model::naming::build_record_path;
use crate::model::reason::Ended;
use crate::model::serving::{HistoryEntry, ServingStatus};
use crate::model::time::Time;
use crate::policy::gates::again::{Past, RecordedGate};
use crate::run::records::collect_named;
use serde::de::DeserializeOwned;

/// What a commit did to a file below `records/`.
pub(super) fn judge_record(step: &AuditStep<'_>, path: &str) -> Result<Option<AuditFinding>, Failure> {
    let Some((order, digest)) = parse_path(path) else { return Ok(None) };
    let after = read_bytes(&step.visit.after, path)?;
    let before = match &step.visit.before {
        Some(before) => read_bytes(before, path)?,
        None => None,
    };
    let serving = read_serving(&step.visit.after, &order)?;
    let is_named = serving.as_ref().is_some_and(|s| collect_named(&s.status).contains(&digest));
    let said = |code, what: String| Ok(Some(step.make_finding(Some(&order), Some(digest), code, what)));
    match (before, after) {
        (_, Some(after)) if Digest::hash_bytes(&after) != digest => {
            said("record-edited", format!("{path} does not hash to its name"))
        }
        (None, Some(_)) if serving.is_some() && !is_named => {
            said("record-stray", format!("{path} was added, and the Serving does not name it"))
        }
        (Some(_), None) if is_named => {
            said("record-removed", format!("{path} was removed, and the Serving still names it"))
        }
        (Some(_) | None, Some(_) | None) => Ok(None),
    }
}

/// `records/<namespace>/<order>/<sha256>.json`.
fn parse_path(path: &str) -> Option<(OrderRef, Digest)> {
    let (order, file) = path.strip_prefix("records/")?.rsplit_once('/')?;
    Some((OrderRef::parse(order).ok()?, Digest::from_hex(file.strip_suffix(".json")?).ok()?))
}

fn parse_body<T: DeserializeOwned>(proof: &Proof, kind: &str) -> Result<T, String> {
    let statement = proof.statement.as_ref().filter(|s| s.predicate_type == kind);
    let statement = statement.ok_or("it is of another type")?;
    T::deserialize(&statement.predicate).map_err(|e| format!("it cannot be read: {e}"))
}

/// The body of a promotion record.
pub(super) fn parse_promotion(proof: &Proof) -> Result<PromotionPredicate, String> {
    parse_body(proof, PROMOTION)
}

/// In what a promotion record and the Serving of its commit do not say the same.
pub(super) fn compare_promotion(
    says: &PromotionPredicate,
    order: &OrderRef,
    after: &ServingStatus,
    index: usize,
) -> Vec<String> {
    let entry = &after.history[index];
    let before = after.history[index + 1..].iter().find(|e| e.promoted_time != entry.promoted_time);
    // What ran before may have left a full history; then nothing is there to compare with.
    let previous = match (&says.previous, before) {
        (Some(says), Some(before)) => {
            says.digest == before.digest && says.preparation == before.preparation_name
        }
        (None, Some(_)) => false,
        (Some(_) | None, None) => true,
    };
    let same = [
        ("Order", says.order.namespace == order.namespace && says.order.name == order.name),
        ("Environment", Some(&says.environment) == entry.environment.as_ref()),
        (
            "Preparation",
            says.preparation.name == entry.preparation_name && says.preparation.namespace == order.namespace,
        ),
        ("base digest", says.base_digest == entry.base_digest),
        ("time", says.promoted_time == entry.promoted_time),
        ("requester", Some(&says.requested_by) == entry.requested_by.as_ref()),
        ("promotion before it", previous),
    ];
    same.iter()
        .filter(|(_, same)| !same)
        .map(|(what, _)| format!("its promotion record names another {what} than the Serving"))
        .collect()
}

/// The artifact with its repository: as pinned in the Serving of the commit, else as the record's own evidence
/// names it.
pub(super) fn find_artifact(
    says: &PromotionPredicate,
    digest: Digest,
    after: &ServingStatus,
    index: usize,
) -> Option<Artifact> {
    let pinned = after.deployed.as_ref().filter(|_| index == 0).map(|d| d.repository.clone());
    let repository = pinned.or_else(|| {
        let evidence = says.gates.iter().flat_map(|gate| &gate.evidence);
        let named = evidence.into_iter().find(|e| e.kind == "artifact" && e.digest == Some(digest))?;
        OciRepository::parse(named.uri.strip_prefix("oci://")?).ok()
    })?;
    Some(Artifact { repository, digest })
}

/// The promotion as the gates judge it again, as of the Serving's own time.
pub(super) fn build_past(says: &PromotionPredicate, order: &OrderRef, artifact: Artifact, at: Time) -> Past {
    let gates = says.gates.iter().map(|gate| RecordedGate {
        name: gate.name.clone(),
        verdict: gate.verdict.clone(),
        parameters: gate.parameters.clone(),
        evidence: gate.evidence.clone(),
    });
    Past {
        order: order.clone(),
        environment: says.environment.clone(),
        preparation: says.preparation.name.clone(),
        artifact,
        base_digest: says.base_digest,
        at,
        gates: gates.collect(),
    }
}

/// The seal that was committed with a promotion.
pub(super) fn read_seal(
    step: &AuditStep<'_>,
    past: &Past,
    bundle: Digest,
    ring: &KeyRing,
) -> Result<Result<SealProof, String>, Failure> {
    let path = build_record_path(&past.order, &bundle.format_hex());
    let mut found = read_bytes(&step.visit.after, &path)?;
    if let (None, Some(before)) = (&found, &step.visit.before) {
        found = read_bytes(before, &path)?;
    }
    Ok(match found {
        None => Err(format!("{path} is not in the repository")),
        Some(bytes) if Digest::hash_bytes(&bytes) != bundle => {
            Err(format!("{path} does not hash to its name"))
        }
        Some(bytes) => judge::judge_seal(&bytes, &past.artifact.digest, &past.build_seal_of(), ring),
    })
}

/// Whether a deployment record says what the history entry that names it says.
pub(super) fn check_deployment(proof: &Proof, order: &OrderRef, entry: &HistoryEntry) -> Result<(), String> {
    let says: Deployment = parse_body(proof, DEPLOYMENT)?;
    let degraded = entry.ended_reason == Some(Ended::Degraded);
    let ended = entry.ended_time.filter(|_| degraded);
    let same = [
        ("Order", says.order.namespace == order.namespace && says.order.name == order.name),
        ("Environment", Some(&says.environment) == entry.environment.as_ref()),
        (
            "Preparation",
            says.preparation.name == entry.preparation_name && says.preparation.namespace == order.namespace,
        ),
        ("promotion record", Some(says.promotion_record.digest) == entry.promotion_record),
        ("time of health", Some(says.first_healthy_time) == entry.first_healthy_time),
        ("end", says.ended_time == ended && (says.ended_reason == Some(Ended::Degraded)) == degraded),
    ];
    match same.iter().find(|(_, same)| !same) {
        Some((what, _)) => Err(format!("it names another {what} than the Serving")),
        None => Ok(()),
    }
}
