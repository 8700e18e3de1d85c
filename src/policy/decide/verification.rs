//! What one artifact has to prove for one Order, and whether it does: the gates' own judgement of evidence,
//! claim by claim, for an artifact that need not be a candidate.

mod judged;

use crate::error::Failure;
use crate::model::evidence::{Claim, Facts, Proof, SealOf};
use crate::model::id::{Artifact, Digest, OrderRef, PreparationName};
use crate::model::kitchen::KitchenSpec;
use crate::model::order::ApprovalPolicy;
use crate::model::preparation::Preparation;
use crate::model::time::Time;
use crate::model::verification::{ClaimReport, Demanded, DemandedCheck};
use crate::policy::gates::{policy, ready};
use crate::policy::resolve::Case;
use std::collections::BTreeSet;

/// What is to be verified about one artifact.
#[derive(Debug, Clone, PartialEq)]
pub struct ArtifactQuestion {
    pub artifact: Artifact,
    pub order: OrderRef,
    /// The Preparation whose seal is looked for; `None`: no Preparation has this digest, and none was named.
    pub seal_of: Option<SealOf>,
    /// Whether a person named the Preparation: then its seal is looked for even if no policy requires it.
    pub asks_for_seal: bool,
    /// What the Order requires; `None`: the Order was not read, so it is unknown.
    pub demanded: Option<Demanded>,
    /// When a seal was attached, according to the Serving.
    pub remembered_seal: Option<Time>,
    /// Why the Kitchen does not allow the artifact.
    pub not_admitted: Vec<String>,
}

/// A record that is stored outside the registry (in the GitOps repository or an evidence bundle): its place,
/// its SHA-256, and what it proves about the artifact.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptRecord {
    pub place: &'static str,
    pub digest: Digest,
    /// The proof by a key that is trusted for records, or why the record does not count.
    pub found: Result<Proof, String>,
}

impl ArtifactQuestion {
    /// What has to be verified according to the Order. `named`: the Preparation, if a person named it.
    ///
    /// # Errors
    /// The named Preparation is of another digest, several have this one and the votes on each may differ, or
    /// the policies contradict each other.
    pub fn from_case(
        case: Option<&Case>,
        kitchen: &KitchenSpec,
        artifact: &Artifact,
        order: &OrderRef,
        named: Option<&PreparationName>,
    ) -> Result<Self, Failure> {
        let read = case.filter(|case| case.origin.is_some() && case.place.is_some());
        let preparation = match (named, read) {
            (Some(name), _) => Some(name.clone()),
            (None, Some(case)) => find_preparation(case, artifact)?,
            (None, None) => None,
        };
        let loaded = preparation.as_ref().and_then(|name| case?.preparations.get(name)).map(|l| &*l.object);
        if let Some(loaded) = loaded.filter(|p| p.spec.artifact.digest != artifact.digest) {
            let cause = format!(
                "its artifact is {}, but {} was to be verified",
                loaded.spec.artifact.digest, artifact
            );
            return Err(Failure::new(crate::error::FailureKind::SaysNo, "other-digest", cause)
                .with_object(format!("Preparation {}/{}", order.namespace, loaded.metadata.name)));
        }
        let demanded = match read {
            Some(case) => Some(collect_demanded(case, loaded)?),
            None => None,
        };
        let remembered = case.and_then(|c| c.serving.as_ref()).and_then(|s| s.status.approval.as_ref());
        let remembered = remembered.filter(|a| a.preparation_name == preparation && preparation.is_some());
        let base = loaded.and_then(|p| p.spec.source.as_ref()).and_then(|s| s.base_digest);
        let place = case.and_then(|c| c.place.as_deref());
        Ok(Self {
            artifact: artifact.clone(),
            order: order.clone(),
            asks_for_seal: named.is_some(),
            remembered_seal: remembered.and_then(|a| a.sealed_time),
            seal_of: preparation.map(|preparation| SealOf {
                order: order.clone(),
                preparation,
                uid: loaded.and_then(|p| p.metadata.uid.clone()),
            }),
            demanded,
            not_admitted: ready::collect_admission_faults(artifact, base, place, kitchen),
        })
    }

    /// What has to be read.
    #[must_use]
    pub fn collect_claims(&self) -> BTreeSet<Claim> {
        let mut all = BTreeSet::from([
            Claim::Artifact,
            Claim::Signature,
            Claim::Provenance(self.order.clone()),
            Claim::Records,
        ]);
        all.extend(self.find_wanted_seal().cloned().map(Claim::Approvals));
        for DemandedCheck { check, .. } in self.demanded.iter().flat_map(|d| &d.checks) {
            all.extend(check.attestation.as_ref().map(|a| Claim::Attestation(a.predicate_type.clone())));
            all.extend(check.vulnerabilities.as_ref().map(|_| Claim::Scans));
        }
        all
    }

    /// Every claim's answer, in a stable order.
    #[must_use]
    pub fn judge_claims(&self, facts: &Facts, kept: &[KeptRecord], now: Time) -> Vec<ClaimReport> {
        judged::judge_claims(self, facts, kept, now)
    }

    /// The seal that is looked for: if a policy applies, or if a person asked for it.
    fn find_wanted_seal(&self) -> Option<&SealOf> {
        self.seal_of.as_ref().filter(|_| self.asks_for_seal || self.policy().is_some())
    }

    /// The current policy, if known.
    fn policy(&self) -> Option<&ApprovalPolicy> {
        self.demanded.as_ref()?.approvals.as_ref()
    }
}

/// The Order's Preparation of this digest; if it does not exist any more, the one that the history names.
fn find_preparation(case: &Case, artifact: &Artifact) -> Result<Option<PreparationName>, Failure> {
    let all = case.preparations.iter();
    let of_digest = all.filter(|(_, loaded)| loaded.object.spec.artifact.digest == artifact.digest);
    let mut names: BTreeSet<&PreparationName> = of_digest.map(|(name, _)| name).collect();
    if names.is_empty() {
        let history = case.serving.iter().flat_map(|s| &s.status.history);
        names = history.filter(|e| e.digest == artifact.digest).map(|e| &e.preparation_name).collect();
    }
    let list = names.iter().map(|n| n.as_str()).collect::<Vec<_>>().join(", ");
    let mut names = names.into_iter();
    match (names.next(), names.next()) {
        (Some(_), Some(_)) => Err(Failure::new(
            crate::error::FailureKind::Usage,
            "several-preparations",
            format!("{list} have this digest, and each has its own votes"),
        )
        .with_object(case.format_order())
        .with_hint("choose one: --preparation NAME")),
        (only, _) => Ok(only.cloned()),
    }
}

fn collect_demanded(case: &Case, preparation: Option<&Preparation>) -> Result<Demanded, Failure> {
    let approvals = policy::find_strictest(
        case.demands.order_approvals.as_ref(),
        case.demands.environment_approvals.as_ref(),
        preparation.and_then(|p| p.spec.approval_policy.as_ref()),
    );
    let checks = case.demands.checks.iter();
    Ok(Demanded {
        environment: case.place.as_ref().map(|p| p.name.clone()),
        approvals: approvals
            .map_err(|why| Failure::new_input("policy", why).with_object(case.format_order()))?,
        checks: checks
            .map(|(of, check)| DemandedCheck { of: (*of).to_owned(), check: check.clone() })
            .collect(),
    })
}
