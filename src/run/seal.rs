//! Sealing: what `decide` asks to be sealed is signed and attached, and then the run decides again.
//!
//! A seal that is attached and whose run is then killed is found by the next run and not made again.

use super::{Decided, Setup};
use crate::attest::attach::attach;
use crate::attest::key::Signer;
use crate::attest::record::{Approvals, Record, SealedPreparation, Submission};
use crate::attest::sign::{Signed, sign};
use crate::error::{Failure, Kind};
use crate::evidence::registry::Writer;
use crate::files::Change;
use crate::model::id::{Artifact, OrderRef};
use crate::model::naming::record_path;
use crate::model::plan::{SealRequest, ServingPlan};
use futures::StreamExt as _;
use std::collections::{BTreeMap, BTreeSet};

/// Seals that are attached at once.
const CONCURRENT: usize = 8;

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

    /// Adds the bundles that the new Servings name to what is committed, and what failed to the plan.
    pub fn finish(&mut self, decided: &mut Decided) {
        for row in &decided.plan.rows {
            let ServingPlan::Write(state) = &row.serving else { continue };
            let status = &state.status;
            let named = [
                status.approval.as_ref().and_then(|a| a.record),
                status.history.first().and_then(|e| e.approval_record),
            ];
            for signed in self.bundles.get(&row.order).into_iter().flatten() {
                if named.contains(&Some(signed.digest)) {
                    let path = record_path(&row.order, &signed.digest.hex());
                    decided.rendered.changes.insert(path, Change::Write(signed.bundle.clone()));
                }
            }
        }
        decided.plan.problems.append(&mut self.failures);
        decided.plan.notices.append(&mut self.without_key);
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
