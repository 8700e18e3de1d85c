//! The bodies of records. Pure: equal events give equal bytes. Records are made only for what has happened.

use crate::evidence::statement::STATEMENT_V1;
use crate::model::approval::Ballot;
use crate::model::id::{
    ApplicationName, Artifact, ClusterName, Digest, EnvironmentName, Namespace, OrderName, OrderRef,
    PreparationName,
};
use crate::model::order::{ApprovalPolicy, Mode};
use crate::model::reason::{Ended, Vote};
use crate::model::serving::{RequestedBy, VoteStatus};
use crate::model::time::Time;
use crate::model::verdict::{EvidenceRef, GateOutcome, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use crate::evidence::approvals::APPROVAL;
pub use crate::evidence::judge::{DEPLOYMENT, PROMOTION};

/// A record: one of the three kinds.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// A seal: the counted votes.
    Approvals(ApprovalsPredicate),
    /// A promotion that is committed in git.
    Promotion(PromotionPredicate),
    /// A deployment that was observed healthy.
    Deployment(Deployment),
}

/// The predicate of a seal, with the members that Kokumi's controllers write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalsPredicate {
    /// The Order's bare name; its namespace is the Preparation's.
    pub order: OrderName,
    /// What was approved.
    pub preparation: SealedPreparation,
    /// The policy that the votes met.
    pub policy: ApprovalPolicy,
    /// `Approved`, or another reason of the Approved condition.
    pub result: String,
    /// The later of the last counted vote and the time of becoming the target; never a run's clock, so that the
    /// record is the same in each run.
    pub sealed_time: Time,
    /// Every vote that was considered, counted or not.
    pub submissions: Vec<Submission>,
}

/// A Preparation in a seal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedPreparation {
    /// Its namespace, which is the Order's.
    pub namespace: Namespace,
    /// Its name.
    pub name: PreparationName,
    /// Its uid, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// One vote in a seal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Submission {
    /// The Approval's name.
    pub name: String,
    /// Its uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Who voted.
    pub approver: Voter,
    /// For or against.
    pub decision: Ballot,
    /// Untrusted text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Time of the vote as the voter states it.
    pub submitted_time: Time,
    /// Time of the vote as the API server states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creation_time: Option<Time>,
    /// Whether it counted.
    pub counted: bool,
    /// Why, or why not.
    pub reason: Vote,
}

/// Who voted: issuer and subject are the identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Voter {
    /// The identity provider.
    pub issuer: String,
    /// The identity there.
    pub subject: String,
    /// Display name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub username: String,
}

impl From<&VoteStatus> for Submission {
    fn from(vote: &VoteStatus) -> Self {
        Self {
            name: vote.name.clone(),
            uid: vote.uid.clone(),
            approver: Voter {
                issuer: vote.approver.issuer.clone(),
                subject: vote.approver.subject.clone(),
                username: vote.approver.username.clone(),
            },
            decision: vote.decision,
            comment: vote.comment.clone(),
            submitted_time: vote.submitted_time,
            creation_time: vote.creation_time,
            counted: vote.counted,
            reason: vote.reason,
        }
    }
}

/// The predicate of a promotion record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromotionPredicate {
    /// The Order.
    pub order: NamedOrder,
    /// Where.
    pub environment: EnvironmentName,
    /// What.
    pub preparation: NamedPreparation,
    /// The source that it was rendered from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_digest: Option<Digest>,
    /// Namespace of its objects; absent in records of older builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_namespace: Option<Namespace>,
    /// Promotion mode: who chooses what is promoted.
    pub mode: Mode,
    /// What was deployed before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Previous>,
    /// When it was decided.
    pub promoted_time: Time,
    /// Who requested it.
    pub requested_by: RequestedBy,
    /// Result of every gate, with the parameters that are needed to check it again.
    pub gates: Vec<GateRecord>,
    /// The Clusters that it was promoted to.
    pub clusters: Vec<PromotedCluster>,
    /// The build that decided.
    pub promoter: Promoter,
}

/// An Order as an object, as provenance writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedOrder {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its name.
    pub name: OrderName,
}

impl From<&OrderRef> for NamedOrder {
    fn from(order: &OrderRef) -> Self {
        Self { namespace: order.namespace.clone(), name: order.name.clone() }
    }
}

/// A Preparation in a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedPreparation {
    /// Its namespace, which is the Order's.
    pub namespace: Namespace,
    /// Its name.
    pub name: PreparationName,
}

/// What was deployed before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Previous {
    /// Its name.
    pub preparation: PreparationName,
    /// Its artifact.
    pub digest: Digest,
    /// Since when it was healthy, if it still was; absent in records of older builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_healthy_time: Option<Time>,
    /// When it was last observed healthy, if it still was: the end of its soak time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthy_until: Option<Time>,
}

/// Result of one gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateRecord {
    /// Its name.
    pub name: String,
    /// `Passed`, `Waiting` or `Failed`.
    pub verdict: String,
    /// Its own parameters.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub parameters: Value,
    /// The evidence for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EvidenceRef>,
}

impl From<&Verdict> for GateRecord {
    fn from(verdict: &Verdict) -> Self {
        let word = match &verdict.outcome {
            GateOutcome::Passed => "Passed",
            GateOutcome::Waiting(_) => "Waiting",
            GateOutcome::Failed => "Failed",
        };
        Self {
            name: verdict.gate.as_str().into(),
            verdict: word.into(),
            parameters: verdict.parameters.clone(),
            evidence: verdict.evidence.clone(),
        }
    }
}

/// One Cluster of a promotion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromotedCluster {
    /// Its name.
    pub name: ClusterName,
    /// Why Expedite was allowed to write the Application there.
    pub opt_in: OptIn,
    /// Its API server; absent in records of older builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// Why Expedite was allowed to write an Application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OptIn {
    /// There was no Application of that name, or Expedite had written it.
    Created,
    /// An existing Application of another owner has the annotation that allows this Order.
    OptedIn,
    /// The cluster's Applications were not observed.
    NotObserved,
}

/// Which build decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promoter {
    /// Its version.
    pub version: String,
}

impl Promoter {
    /// This build.
    #[must_use]
    pub fn from_this_build() -> Self {
        Self { version: env!("CARGO_PKG_VERSION").into() }
    }
}

/// The predicate of a deployment record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deployment {
    /// The Order.
    pub order: NamedOrder,
    /// Where.
    pub environment: EnvironmentName,
    /// What.
    pub preparation: NamedPreparation,
    /// The promotion it came from.
    pub promotion_record: RecordRef,
    /// Healthy on every Ready Cluster since.
    pub first_healthy_time: Time,
    /// When it ended, if it ended Degraded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_time: Option<Time>,
    /// How it ended, if it ended Degraded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_reason: Option<Ended>,
    /// The Ready Clusters that run it.
    pub clusters: Vec<DeployedCluster>,
}

/// A record, named by its bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordRef {
    /// SHA-256 of the bundle's bytes.
    pub digest: Digest,
}

/// One Cluster of a deployment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeployedCluster {
    /// Its name.
    pub name: ClusterName,
    /// Its API server.
    pub server: String,
    /// The Application that Expedite wrote.
    pub application: ApplicationName,
    /// The revision that Argo CD reports as synced.
    pub sync_revision: String,
}

impl Record {
    /// The predicate's type.
    #[must_use]
    pub fn predicate_type(&self) -> &'static str {
        match self {
            Self::Approvals(_) => APPROVAL,
            Self::Promotion(_) => PROMOTION,
            Self::Deployment(_) => DEPLOYMENT,
        }
    }

    /// The in-toto statement about `artifact`: the payload bytes that are signed. Members of the predicate are sorted
    /// by name, so that equal records have equal bytes.
    ///
    /// # Errors
    /// Serialisation fails, which cannot happen for these types.
    pub fn build_statement(&self, artifact: &Artifact) -> Result<Vec<u8>, serde_json::Error> {
        let mut predicate = match self {
            Self::Approvals(body) => serde_json::to_value(body)?,
            Self::Promotion(body) => serde_json::to_value(body)?,
            Self::Deployment(body) => serde_json::to_value(body)?,
        };
        predicate.sort_all_objects();
        serde_json::to_vec(&json!({
            "_type": STATEMENT_V1,
            "subject": [{"name": artifact.format_oci_ref(), "digest": {"sha256": artifact.digest.format_hex()}}],
            "predicateType": self.predicate_type(),
            "predicate": predicate,
        }))
    }
}

/// What the statement of a record is of (as [`Record::build_statement`] names it), and its predicate type. Does
/// not check the signature.
///
/// # Errors
/// It is not a statement about one pinned artifact.
pub fn parse_subject(payload: &[u8]) -> Result<(Artifact, String), String> {
    #[derive(Deserialize)]
    struct Statement {
        subject: Vec<Subject>,
        #[serde(rename = "predicateType")]
        predicate_type: String,
    }
    #[derive(Deserialize)]
    struct Subject {
        name: String,
        digest: Sha256,
    }
    #[derive(Deserialize)]
    struct Sha256 {
        sha256: String,
    }
    let statement: Statement = serde_json::from_slice(payload)
        .map_err(|e| format!("it is not a statement about an artifact: {e}"))?;
    let [subject] = &statement.subject[..] else { return Err("it is not about exactly one artifact".into()) };
    let artifact = Artifact::parse(&subject.name).map_err(|e| e.to_string())?;
    if artifact.digest.format_hex() != subject.digest.sha256 {
        return Err("its subject's name and digest do not agree".into());
    }
    Ok((artifact, statement.predicate_type))
}

/// The artifact type for attached records of a predicate type; for others the bundle's own type.
#[must_use]
pub fn choose_artifact_type(predicate_type: &str) -> &'static str {
    match predicate_type {
        APPROVAL => "application/vnd.kokumi.approvals.v1+json",
        PROMOTION => "application/vnd.kokumi.promotion.v1+json",
        DEPLOYMENT => "application/vnd.kokumi.deployment.v1+json",
        _ => crate::evidence::envelope::BUNDLE,
    }
}
