//! Sealing: what `decide` asks to be sealed is signed and attached, and then the run decides again.
//!
//! A seal that is attached and whose run is then killed is found by the next run and not made again; its bundle
//! goes into `records/` then.

use super::decider::drop_clashes;
use super::{Decided, Setup};
use crate::attest::attach::attach_record;
use crate::attest::key::RecordSigner;
use crate::attest::record::{ApprovalsPredicate, Record, SealedPreparation, Submission};
use crate::attest::sign::{SignedRecord, sign_record};
use crate::error::{Failure, FailureKind};
use crate::evidence::artifact::find_only_bundle;
use crate::files::FileChange;
use crate::model::evidence::Evidence;
use crate::model::id::{Artifact, Digest, OrderRef};
use crate::model::naming::build_record_path;
use crate::model::plan::{PlanRow, SealRequest, ServingPlan};
use futures::StreamExt as _;
use oci_registry::Writer;
use oci_registry::{Answer, Reference};
use std::collections::{BTreeMap, BTreeSet};

/// Seals that are attached at once.
const CONCURRENT: usize = 8;
/// Largest bundle that is taken into the repository, bytes.
const BUNDLE_CAP: u64 = 8 << 20;

/// The seals of one run.
#[derive(Default)]
pub struct Seals {
    /// What was tried already, so that the run never goes round.
    tried: Vec<SealRequest>,
    /// Bundles that were attached, for `records/`.
    bundles: BTreeMap<OrderRef, Vec<SignedRecord>>,
    /// What could not be sealed.
    failures: Vec<Failure>,
    /// Votes that wait for a run with a key: held, which is no error.
    without_key: Vec<Failure>,
}

impl Seals {
    /// Signs and attaches every seal that is due and was not tried; the artifacts whose evidence is to be
    /// read again. None: there is nothing to decide again.
    pub fn attach_seals(&mut self, setup: &Setup<'_>, decided: &Decided) -> BTreeSet<Artifact> {
        let due: Vec<SealRequest> = decided
            .plan
            .rows
            .iter()
            .filter_map(|row| row.seal.clone())
            .filter(|request| !self.tried.contains(request))
            .collect();
        let Some(signer) = setup.signer else {
            let waits = due.iter().map(|request| {
                Failure::new_input(
                    "no-signing-key",
                    "its votes are enough, and there is no key to seal them with",
                )
                .with_object(format!("Order {}", request.of.order))
                .with_hint("give the run a key: --key FILE, EXPEDITE_KEY or signing.keyFile")
            });
            self.without_key = waits.collect();
            return BTreeSet::new();
        };
        self.tried.extend(due.iter().cloned());
        let writer = Writer::new(setup.registries);
        let attached = setup.runtime.block_on(async {
            let all = due.iter().map(|request| attach_seal(request, signer, &writer, setup));
            futures::stream::iter(all).buffered(CONCURRENT).collect::<Vec<_>>().await
        });
        let mut again = BTreeSet::new();
        for (request, result) in due.iter().zip(attached) {
            match result {
                Ok(signed) => {
                    self.bundles.entry(request.of.order.clone()).or_default().push(signed);
                    again.insert(request.artifact.clone());
                }
                Err(failure) => self.failures.push(failure),
            }
        }
        again
    }

    /// Adds the bundles that the new Servings name to what is committed, and what failed to the plan. An Order
    /// that contributes nothing gets none, and one whose bundle has no place in the tree contributes nothing.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub fn add_bundles(&mut self, setup: &Setup<'_>, decided: &mut Decided) -> Result<(), Failure> {
        for row in &decided.plan.rows {
            if decided.rendered.has_failed(&row.order) {
                continue;
            }
            let ServingPlan::Write(state) = &row.serving else { continue };
            let status = &state.status;
            let named: BTreeSet<Digest> = [
                status.approval.as_ref().and_then(|a| a.record),
                status.history.first().and_then(|e| e.approval_record),
            ]
            .into_iter()
            .flatten()
            .collect();
            let new = self.bundles.get(&row.order).map_or(&[][..], Vec::as_slice);
            for record in named {
                let path = build_record_path(&row.order, &record.format_hex());
                if let Some(signed) = new.iter().find(|signed| signed.digest == record) {
                    decided.rendered.changes.insert(path, FileChange::Write(signed.bundle.clone()));
                } else if let Some((artifact, manifest)) = find_attached(row, record, decided) {
                    let bundle = setup.runtime.block_on(read_seal(setup, artifact, manifest, record));
                    decided.rendered.changes.extend(bundle.map(|bundle| (path, FileChange::Write(bundle))));
                }
            }
        }
        decided.plan.problems.append(&mut self.failures);
        decided.plan.notices.append(&mut self.without_key);
        drop_clashes(&decided.snapshot, &decided.plan, &mut decided.rendered)
    }
}

/// Where the seal is that counts for the candidate and is not in the repository: a run that was killed after
/// attaching it, or another program, sealed it.
fn find_attached<'d>(
    row: &'d PlanRow,
    record: Digest,
    decided: &'d Decided,
) -> Option<(&'d Artifact, Digest)> {
    if decided.gitops.records.get(&row.order).is_some_and(|known| known.contains(&record.format_hex())) {
        return None;
    }
    let artifact = &row.candidate.as_ref()?.artifact;
    let seals = decided.facts.artifacts.get(artifact)?.approvals.values();
    let digests = seals.filter_map(|evidence| match evidence {
        Evidence::Proven(seal) => (seal.proof.blob == record).then_some(seal.proof.digest),
        Evidence::Missing(_) | Evidence::Invalid(_) | Evidence::Unread(_) => None,
    });
    digests.min().map(|digest| (artifact, digest))
}

/// The seal's bundle, as it is attached. None where it is no bundle (an `.att` tag), or cannot be read a second
/// time: the artifact keeps it.
async fn read_seal(
    setup: &Setup<'_>,
    artifact: &Artifact,
    manifest: Digest,
    record: Digest,
) -> Option<Vec<u8>> {
    let reference = Reference::Digest(manifest);
    let Answer::Found(manifest) = setup.registries.fetch_manifest(&artifact.repository, &reference).await
    else {
        return None;
    };
    let layer = find_only_bundle(&manifest).filter(|layer| layer.digest == record)?;
    match setup.registries.fetch_blob(&artifact.repository, &layer, BUNDLE_CAP).await {
        Answer::Found(bytes) => Some(bytes.to_vec()),
        Answer::Absent | Answer::Unread(_) => None,
    }
}

async fn attach_seal(
    request: &SealRequest,
    signer: &RecordSigner,
    writer: &Writer,
    setup: &Setup<'_>,
) -> Result<SignedRecord, Failure> {
    let signed = sign_record(&build_record(request), &request.artifact, signer)?;
    attach_record(writer, setup.registries, &request.artifact, &signed.bundle, signer.public_key())
        .await
        .map_err(|failure| {
            Failure { kind: FailureKind::Unread, ..failure }
                .with_object(format!("the seal of {}", request.of.order))
        })?;
    Ok(signed)
}

fn build_record(request: &SealRequest) -> Record {
    Record::Approvals(ApprovalsPredicate {
        order: request.of.order.name.clone(),
        preparation: SealedPreparation {
            namespace: request.of.order.namespace.clone(),
            name: request.of.preparation.clone(),
            uid: request.of.uid.clone(),
        },
        policy: request.policy.clone(),
        result: request.result.to_string(),
        sealed_time: request.sealed_time,
        submissions: request.votes.iter().map(Submission::from).collect(),
    })
}
