//! What `verify` examines about one artifact, and what it found; used by its reports.

use crate::model::evidence::Evidence;
use crate::model::id::{Artifact, Digest, EnvironmentName, OrderRef, PreparationName};
use crate::model::kitchen::Role;
use crate::model::order::{ApprovalPolicy, Check};
use crate::model::time::Time;
use serde::{Deserialize, Serialize};

/// What an Order and its Environment require of an artifact, as far as signed evidence can show it. Stored in
/// an evidence bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Demanded {
    /// Where the Order deploys.
    pub environment: Option<EnvironmentName>,
    /// The strictest policy; absent: no approval is needed.
    pub approvals: Option<ApprovalPolicy>,
    /// The Environment's, then the Order's.
    pub checks: Vec<DemandedCheck>,
}

/// One check and its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DemandedCheck {
    /// `Environment` or `Order`.
    pub of: String,
    pub check: Check,
}

/// The four outcomes without their evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimOutcome {
    /// Signed content proves it.
    Proven,
    Missing,
    /// Evidence exists, but none of it proves the claim.
    Invalid,
    /// A necessary answer could not be read or trusted.
    Unread,
}

impl ClaimOutcome {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Proven => "Proven",
            Self::Missing => "Missing",
            Self::Invalid => "Invalid",
            Self::Unread => "Unread",
        }
    }
}

/// What a claim is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimKind {
    /// The artifact exists, is complete, and Argo CD can unpack it.
    Artifact,
    /// The Kitchen's registries and reject list allow it.
    Admission,
    /// Signed by a trusted key.
    Signature,
    /// Signed provenance names the Order.
    Provenance,
    /// The newest seal of votes approves.
    Approvals,
    /// A check of this name passes.
    Check {
        name: String,
        /// `Environment` or `Order`.
        of: String,
    },
    /// Records of its promotions.
    Promotion,
    /// Records of its deployments.
    Deployment,
}

impl ClaimKind {
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Artifact => "artifact",
            Self::Admission => "admission",
            Self::Signature => "signature",
            Self::Provenance => "provenance",
            Self::Approvals => "approvals",
            Self::Check { .. } => "check",
            Self::Promotion => "promotion",
            Self::Deployment => "deployment",
        }
    }
}

/// One piece that proves a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProofPiece {
    /// Digest of its manifest (bundle referrer) or layer (`.sig`, `.att`), or of the artifact itself.
    pub digest: Digest,
    /// Of the signed file itself, or of the content layer.
    pub blob: Digest,
    /// Where it was found.
    pub place: String,
    /// Name of the trusted key; empty where nothing is signed.
    pub key: String,
    /// base64 SHA-256 of the key's SubjectPublicKeyInfo.
    pub fingerprint: String,
    /// Of a statement.
    pub predicate_type: Option<String>,
    /// When it was made, according to its signed content.
    pub time: Option<Time>,
}

/// What was found for one claim.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimReport {
    pub kind: ClaimKind,
    /// Whether the Order requires it.
    pub required: bool,
    /// The outcome with its evidence.
    pub found: Evidence<Vec<ProofPiece>>,
    /// One sentence, for a person.
    pub says: String,
}

impl ClaimReport {
    #[must_use]
    pub fn outcome(&self) -> ClaimOutcome {
        match &self.found {
            Evidence::Proven(_) => ClaimOutcome::Proven,
            Evidence::Missing(_) => ClaimOutcome::Missing,
            Evidence::Invalid(_) => ClaimOutcome::Invalid,
            Evidence::Unread(_) => ClaimOutcome::Unread,
        }
    }

    /// `signature`, or `check tests (of the Order)`.
    #[must_use]
    pub fn format_title(&self) -> String {
        match &self.kind {
            ClaimKind::Check { name, of } => format!("check {name} (of the {of})"),
            ClaimKind::Artifact
            | ClaimKind::Admission
            | ClaimKind::Signature
            | ClaimKind::Provenance
            | ClaimKind::Approvals
            | ClaimKind::Promotion
            | ClaimKind::Deployment => self.kind.as_str().to_owned(),
        }
    }
}

/// Where evidence was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadFrom {
    /// The registry, or an image layout folder.
    Registry,
    Bundle {
        file: String,
        /// SHA-256 of all its bytes.
        digest: Digest,
    },
}

/// Whose trust was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The reader's own Kitchen.
    Own,
    /// What the evidence bundle carries.
    Bundled,
}

/// The trust that was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustUsed {
    pub whose: Whose,
    /// Where the Kitchen is written; `None`: there is none.
    pub origin: Option<String>,
    /// Hash over keys, roles, identities, roots and allow-lists.
    pub fingerprint: Option<Digest>,
    pub keys: Vec<UsedKey>,
}

/// One trusted key under one of its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedKey {
    /// As the Kitchen names it.
    pub name: String,
    /// base64 SHA-256 of its SubjectPublicKeyInfo.
    pub fingerprint: String,
    /// What it may vouch for under this name.
    pub roles: Vec<Role>,
}

/// All that was found about one artifact.
#[derive(Debug, Clone, PartialEq)]
pub struct Verification {
    /// The instant that it was judged for.
    pub at: Time,
    pub artifact: Artifact,
    /// The tag that it was named by, resolved once.
    pub tag: Option<String>,
    pub order: OrderRef,
    /// Which Preparation it is, where known.
    pub preparation: Option<PreparationName>,
    /// Where evidence was read.
    pub from: ReadFrom,
    pub trust: TrustUsed,
    /// What is required; `None`: the Order was not read, so it is unknown.
    pub demanded: Option<Demanded>,
    /// Every claim, in a stable order.
    pub claims: Vec<ClaimReport>,
}

impl Verification {
    /// Of all required claims: missing evidence comes before evidence that could not be read.
    #[must_use]
    pub fn judge_outcome(&self) -> ClaimOutcome {
        let is = |wanted: ClaimOutcome| self.claims.iter().any(|c| c.required && c.outcome() == wanted);
        let order = [ClaimOutcome::Invalid, ClaimOutcome::Missing, ClaimOutcome::Unread];
        order.into_iter().find(|outcome| is(*outcome)).unwrap_or(ClaimOutcome::Proven)
    }
}
