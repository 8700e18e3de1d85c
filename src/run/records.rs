//! Records of what a run does: signed before the commit, so that git holds them with the state they prove.

use crate::attest::key::Signer;
use crate::attest::record::{
    self, NamedOrder, NamedPreparation, OptIn, Previous, PromotedCluster, Promoter, Record,
};
use crate::attest::sign::sign;
use crate::error::Failure;
use crate::files::Change;
use crate::model::id::{Digest, OrderRef};
use crate::model::naming::record_path;
use crate::model::plan::{ApplicationAction, Decision, Plan, Row, ServingPlan};
use crate::model::serving::ServingStatus;
use crate::model::world::GitOps;
use crate::resolve::Case;
use crate::resolve::slot::Consent;
use std::collections::{BTreeMap, BTreeSet};

/// Changes below `records/`, by Order.
pub type RecordFiles = BTreeMap<OrderRef, BTreeMap<String, Change>>;

/// Signs a promotion record for every promotion of the plan, and names it in the new history entry. Records
/// that left the history leave the tree (git and the artifact keep them).
///
/// # Errors
/// The signer fails: then nothing of the plan may be written.
pub fn sign_all(
    plan: &mut Plan,
    cases: &[Case],
    gitops: &GitOps,
    signer: Option<&Signer>,
) -> Result<RecordFiles, Failure> {
    let mut files = RecordFiles::new();
    for row in &mut plan.rows {
        // Cases are sorted by Order.
        let Ok(index) = cases.binary_search_by(|c| c.order.cmp(&row.order)) else { continue };
        let case = &cases[index];
        let mut changes = BTreeMap::new();
        if let (Some(signer), Some(record)) = (signer, promotion(row, case, plan.at))
            && let Some(candidate) = &row.candidate
        {
            let signed = sign(&record, &candidate.artifact, signer)?;
            if let ServingPlan::Write(state) = &mut row.serving
                && let Some(entry) = state.status.history.first_mut()
            {
                entry.promotion_record = Some(signed.digest);
                changes.insert(record_path(&row.order, &signed.digest.hex()), Change::Write(signed.bundle));
            }
        }
        for digest in left(row, case) {
            if gitops.records.get(&row.order).is_some_and(|known| known.contains(&digest.hex())) {
                changes.insert(record_path(&row.order, &digest.hex()), Change::Delete);
            }
        }
        if matches!(row.serving, ServingPlan::Remove) {
            for hex in gitops.records.get(&row.order).into_iter().flatten() {
                changes.insert(record_path(&row.order, hex), Change::Delete);
            }
        }
        if !changes.is_empty() {
            files.insert(row.order.clone(), changes);
        }
    }
    Ok(files)
}

fn promotion(row: &Row, case: &Case, at: crate::model::time::Time) -> Option<Record> {
    let Decision::Promote(promotion) = &row.decision else { return None };
    let candidate = row.candidate.as_ref()?;
    let name = |name: &crate::model::id::PreparationName| NamedPreparation {
        namespace: row.order.namespace.clone(),
        name: name.clone(),
    };
    Some(Record::Promotion(record::Promotion {
        order: NamedOrder::from(&row.order),
        environment: row.environment.clone()?,
        preparation: name(&candidate.name),
        base_digest: candidate.base_digest,
        mode: row.mode,
        previous: promotion
            .previous
            .as_ref()
            .map(|(preparation, digest)| Previous { preparation: preparation.clone(), digest: *digest }),
        promoted_time: at,
        requested_by: promotion.requested_by.clone(),
        gates: row.verdicts.iter().map(record::Gate::from).collect(),
        clusters: clusters(row, case),
        promoter: Promoter::this(),
    }))
}

fn clusters(row: &Row, case: &Case) -> Vec<PromotedCluster> {
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
        })
        .collect()
}

fn named(status: &ServingStatus) -> BTreeSet<Digest> {
    status.history.iter().flat_map(|e| [e.promotion_record, e.deployment_record]).flatten().collect()
}

/// Records that the old history names and the new one does not.
fn left(row: &Row, case: &Case) -> Vec<Digest> {
    let (ServingPlan::Write(state), Some(old)) = (&row.serving, &case.serving) else { return Vec::new() };
    let kept = named(&state.status);
    named(&old.status).into_iter().filter(|digest| !kept.contains(digest)).collect()
}
