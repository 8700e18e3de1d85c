//! What a run would do and why; made by `decide`, used by render, commit, attest and report. A Plan always
//! covers every Order: an input error becomes a row of it.

use crate::error::Failure;
use crate::model::environment::OnDelete;
use crate::model::evidence::SealOf;
use crate::model::id::{
    ApplicationName, Artifact, ClusterName, CommitId, Digest, EnvironmentName, Namespace, OrderRef,
    PreparationName,
};
use crate::model::order::{ApprovalPolicy, Mode};
use crate::model::reason::Approved;
use crate::model::serving::{RequestedBy, ServingStatus, VoteStatus};
use crate::model::time::Time;
use crate::model::verdict::{GateName, Verdict};
use crate::model::world::Origin;
use std::sync::Arc;

/// All decisions of one run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The instant it was decided for.
    pub at: Time,
    /// The commit it was decided on.
    pub head: Option<CommitId>,
    /// One per Order, and one per Serving without one, sorted by Order.
    pub rows: Vec<PlanRow>,
    /// Set when the removal guard stops the run.
    pub guard: Option<GuardStop>,
    /// Problems that belong to no single Order: reported, exit 1.
    pub problems: Vec<Failure>,
    /// Warnings that belong to no single Order.
    pub notices: Vec<Failure>,
}

impl Plan {
    /// The row of this Order, if it has one.
    #[must_use]
    pub fn find_row(&self, order: &OrderRef) -> Option<&PlanRow> {
        self.rows.binary_search_by(|row| row.order.cmp(order)).ok().map(|index| &self.rows[index])
    }
}

#[derive(Debug, Clone)]
pub struct PlanRow {
    pub order: OrderRef,
    /// Where its object is; `None`: it does not exist any more, or cannot be read.
    pub origin: Option<Origin>,
    pub environment: Option<EnvironmentName>,
    pub mode: Mode,
    /// What could be promoted, judged by `verdicts`.
    pub candidate: Option<Candidate>,
    /// The gates' answers for the candidate, in order; empty without one.
    pub verdicts: Vec<Verdict>,
    pub decision: Decision,
    /// This Order's own errors: reported, exit 1.
    pub errors: Vec<Failure>,
    pub warnings: Vec<Failure>,
    /// The Serving as it should be in the repository after this run.
    pub serving: ServingPlan,
    /// One per Cluster, and one per Application that is removed.
    pub applications: Vec<ApplicationPlan>,
    /// A seal of votes that has to be attached before the run decides again.
    pub seal: Option<SealRequest>,
}

/// A seal that has to be made; its bytes depend only on this (`docs/design/evidence.md#what-is-written`).
#[derive(Debug, Clone, PartialEq)]
pub struct SealRequest {
    /// Of which Order and Preparation.
    pub of: SealOf,
    /// What it is attached to.
    pub artifact: Artifact,
    /// The strictest policy, which the votes were judged by.
    pub policy: ApprovalPolicy,
    /// `Approved`, or `ChangesRequested` where a veto voids an earlier seal.
    pub result: Approved,
    /// The later of the last counted vote and the moment of becoming the target; never a run's clock.
    pub sealed_time: Time,
    pub votes: Vec<VoteStatus>,
}

/// A Preparation that could be promoted.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub name: PreparationName,
    pub artifact: Artifact,
    /// What it was rendered from.
    pub base_digest: Option<Digest>,
    /// The namespace that its objects are deployed to.
    pub target_namespace: Namespace,
    pub uid: Option<String>,
    /// Foreign text.
    pub commit_message: Option<String>,
    pub created: Option<Time>,
}

/// What happens to one Order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Nothing to promote: what is deployed stays (or there is nothing).
    Keep,
    /// The candidate is promoted now.
    Promote(Promotion),
    /// The candidate waits; `Row::waits_for` names the gate.
    Hold,
    /// This Order's input is wrong: what is deployed stays.
    Broken,
    /// The Order does not exist any more: its Applications and Serving are removed.
    Remove(String),
}

/// A promotion that happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promotion {
    /// What was deployed before.
    pub previous: Option<(PreparationName, Digest)>,
    pub requested_by: RequestedBy,
    /// A digest that ran here before.
    pub rollback: bool,
}

/// What happens to the Serving's file.
#[derive(Debug, Clone)]
pub enum ServingPlan {
    /// Left as it is (also when it is broken).
    Keep,
    /// Written: created from the template when there is none, else `status` (and `spec.preparationName`) replaced in place.
    Write(Box<ServingState>),
    Remove,
}

/// A Serving as it should be.
#[derive(Debug, Clone, PartialEq)]
pub struct ServingState {
    /// `spec.preparationName`; `None` is written as `""`.
    pub preparation_name: Option<PreparationName>,
    /// `metadata.creationTimestamp` for a new one.
    pub created: Time,
    pub status: ServingStatus,
}

#[derive(Debug, Clone)]
pub struct ApplicationPlan {
    pub cluster: ClusterName,
    pub name: ApplicationName,
    pub path: String,
    pub action: ApplicationAction,
}

/// What happens to one Application's file.
#[derive(Debug, Clone)]
pub enum ApplicationAction {
    /// Its file is exactly the rendering of this (created, changed or restored when it differs).
    Pin(Arc<Pin>),
    /// Left as it is, and why: `OptInRequired`, a missing Cluster, nothing deployed.
    Hold {
        /// A CamelCase word.
        reason: String,
        message: String,
    },
    /// Written again without the cascade finalizer: another Application takes over the workload, and this one
    /// is removed once that is observed (`docs/design/gitops-repository.md#removal-guard`).
    Detach(String),
    /// Removed; the text says why.
    Remove(String),
}

/// Everything that an Application is rendered from: pinned values, not live objects.
#[derive(Debug, Clone, PartialEq)]
pub struct Pin {
    pub order: OrderRef,
    pub preparation: PreparationName,
    pub artifact: Artifact,
    /// The namespace that its objects are deployed to.
    pub target_namespace: Namespace,
    pub environment: EnvironmentName,
    /// Argo CD's AppProject.
    pub project: String,
    /// Whether the workload is deleted with the Application.
    pub on_delete: OnDelete,
    pub cluster: ClusterName,
    pub server: String,
    pub name: ApplicationName,
    pub argocd_namespace: String,
    /// Finalizers of an opted-in Application that only the cluster has: its file gets them as they are,
    /// whatever `on_delete` says (`docs/design/gitops-repository.md#applications`).
    pub found_finalizers: Option<Vec<String>>,
}

/// When a waiting promotion can deploy, if nothing else changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forecast {
    /// By any run at or after this instant.
    At(Time),
    /// Once the gate passes, and not before this instant.
    NotBefore {
        /// The earliest instant that is known: soak, windows and freezes, along the chain of upstreams.
        time: Time,
        gate: GateName,
        /// Who has to do what.
        message: String,
    },
    /// Not without another input.
    Never { gate: GateName, message: String },
}

/// What `explain` shows of an Order in addition to its row.
#[derive(Debug, Clone, Default)]
pub struct Explained {
    /// The current state of the Applications in Argo CD's own words, which is never committed.
    pub observed: Option<String>,
    /// Every vote on the candidate, judged.
    pub votes: Vec<VoteStatus>,
    /// Who has to do what, for every gate that does not pass.
    pub steps: Vec<NextStep>,
    /// Why there is no candidate, if there is none and no error says why.
    pub idle: Option<String>,
}

/// What makes one gate pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextStep {
    pub gate: GateName,
    pub what: String,
}

/// A promotion that a person can act on (`open`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenPromotion {
    pub order: OrderRef,
    /// Where it would deploy.
    pub environment: Option<EnvironmentName>,
    pub preparation: PreparationName,
    pub digest: Digest,
    /// What can be done next.
    pub step: PromotionStep,
}

/// The next action of one viewer on a promotion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromotionStep {
    /// Look at it and vote.
    Review,
    Promote,
    /// Nothing that this viewer can do; the text is the gate's message.
    Waits(String),
}

/// The removal guard stops the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardStop {
    /// How many are allowed.
    pub allowed: usize,
    /// The files that would be removed: (path, why).
    pub removals: Vec<(String, String)>,
}

impl PlanRow {
    /// The gate that the candidate waits for.
    #[must_use]
    pub fn find_waiting_gate(&self) -> Option<&Verdict> {
        Verdict::find_first_holding(&self.verdicts)
    }
}
