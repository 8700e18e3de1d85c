//! Sealing: what `decide` asks to be sealed is signed and attached, and then the run decides again.
//!
//! A seal that is attached and whose run is then killed is found by the next run and not made again; its bundle
//! goes into `records/` then.

use super::{Decided, Setup, without_clashes};
use crate::attest::attach::attach;
use crate::attest::key::Signer;
use crate::attest::record::{Approvals, Record, SealedPreparation, Submission};
use crate::attest::sign::{Signed, sign};
use crate::error::{Failure, Kind};
use crate::evidence::answer::{Answer, Reference};
use crate::evidence::artifact::only_bundle;
use crate::evidence::registry::Writer;
use crate::files::Change;
use crate::model::evidence::Evidence;
use crate::model::id::{Artifact, Digest, OrderRef};
use crate::model::naming::record_path;
use crate::model::plan::{Row, SealRequest, ServingPlan};
use futures::StreamExt as _;
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
    bundles: BTreeMap<OrderRef, Vec<Signed>>,
    /// What could not be sealed.
    failures: Vec<Failure>,
    /// Votes that wait for a run with a key: held, which is no error.
    without_key: Vec<Failure>,
}

impl Seals {
    /// Signs and attaches every seal that is due and was not tried; the artifacts whose evidence is to be
    /// read again. None: there is nothing to decide again.
    pub fn attach(&mut self, setup: &Setup<'_>, decided: &Decided) -> BTreeSet<Artifact> {
        let due: Vec<SealRequest> = decided
            .plan
            .rows
            .iter()
            .filter_map(|row| row.seal.clone())
            .filter(|request| !self.tried.contains(request))
            .collect();
        let Some(signer) = setup.signer else {
            let waits = due.iter().map(|request| {
                Failure::input(
                    "no-signing-key",
                    "its votes are enough, and there is no key to seal them with",
                )
                .of(format!("Order {}", request.of.order))
                .hint("give the run a key: --key FILE, EXPEDITE_KEY or signing.keyFile")
            });
            self.without_key = waits.collect();
            return BTreeSet::new();
        };
        self.tried.extend(due.iter().cloned());
        let writer = Writer::new(setup.registries);
        let attached = setup.runtime.block_on(async {
            let all = due.iter().map(|request| one(request, signer, &writer, setup));
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
    pub fn finish(&mut self, setup: &Setup<'_>, decided: &mut Decided) -> Result<(), Failure> {
        for row in &decided.plan.rows {
            if decided.rendered.failed(&row.order) {
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
                let path = record_path(&row.order, &record.hex());
                if let Some(signed) = new.iter().find(|signed| signed.digest == record) {
                    decided.rendered.changes.insert(path, Change::Write(signed.bundle.clone()));
                } else if let Some((artifact, manifest)) = attached_before(row, record, decided) {
                    let bundle = setup.runtime.block_on(read(setup, artifact, manifest, record));
                    decided.rendered.changes.extend(bundle.map(|bundle| (path, Change::Write(bundle))));
                }
            }
        }
        decided.plan.problems.append(&mut self.failures);
        decided.plan.notices.append(&mut self.without_key);
        without_clashes(&decided.snapshot, &decided.plan, &mut decided.rendered)
    }
}

/// Where the seal is that counts for the candidate and is not in the repository: a run that was killed after
/// attaching it, or another program, sealed it.
fn attached_before<'d>(row: &'d Row, record: Digest, decided: &'d Decided) -> Option<(&'d Artifact, Digest)> {
    if decided.gitops.records.get(&row.order).is_some_and(|known| known.contains(&record.hex())) {
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
async fn read(setup: &Setup<'_>, artifact: &Artifact, manifest: Digest, record: Digest) -> Option<Vec<u8>> {
    let reference = Reference::Digest(manifest);
    let Answer::Found(manifest) = setup.registries.manifest(&artifact.repository, &reference).await else {
        return None;
    };
    let layer = only_bundle(&manifest).filter(|layer| layer.digest == record)?;
    match setup.registries.blob(&artifact.repository, &layer, BUNDLE_CAP).await {
        Answer::Found(bytes) => Some(bytes.to_vec()),
        Answer::Absent | Answer::Unread(_) => None,
    }
}

async fn one(
    request: &SealRequest,
    signer: &Signer,
    writer: &Writer,
    setup: &Setup<'_>,
) -> Result<Signed, Failure> {
    let signed = sign(&body(request), &request.artifact, signer)?;
    attach(writer, setup.registries, &request.artifact, &signed.bundle, signer.public_key()).await.map_err(
        |failure| Failure { kind: Kind::Unread, ..failure }.of(format!("the seal of {}", request.of.order)),
    )?;
    Ok(signed)
}

fn body(request: &SealRequest) -> Record {
    Record::Approvals(Approvals {
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
