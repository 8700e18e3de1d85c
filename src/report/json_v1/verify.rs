//! Kind `Verification`: every claim on one artifact, with its evidence, or why it is not proven.

use super::{API_VERSION, FailureJson, format_document, make_failure};
use crate::error;
use crate::model::evidence::{Evidence, EvidenceCandidate, Unread};
use crate::model::verification as model;
use crate::model::verification::{ClaimKind, ClaimReport, ReadFrom, Whose};
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Verification")]
pub(super) struct VerificationDocument {
    api_version: &'static str,
    kind: &'static str,
    /// The instant that it was judged for.
    at: String,
    repository: String,
    digest: String,
    /// The tag that named it; null where a digest did.
    tag: Option<String>,
    order: VerifiedOrderJson,
    /// Null where none is known.
    preparation_name: Option<String>,
    /// Of all required claims: `Proven`, `Missing`, `Invalid` or `Unread`.
    outcome: &'static str,
    /// Where evidence was read.
    read_from: From,
    trust: TrustJson,
    /// Null: the Order was not read, so it is unknown.
    demands: Option<DemandsJson>,
    claims: Vec<ClaimJson>,
    /// What could not be read of the inputs, and may change the answer.
    problems: Vec<FailureJson>,
    warnings: Vec<FailureJson>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Order")]
struct VerifiedOrderJson {
    namespace: String,
    name: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct From {
    /// `Registry` or `Bundle`.
    kind: &'static str,
    /// Of `Bundle`.
    file: Option<String>,
    /// SHA-256 of the file; of `Bundle`.
    digest: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Trust")]
struct TrustJson {
    /// `Own` or `Bundled`.
    whose: &'static str,
    /// Where the Kitchen is written; null: there is none.
    origin: Option<String>,
    /// Hash over keys, roles, identities, roots and allow-lists.
    fingerprint: Option<String>,
    keys: Vec<KeyJson>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Key")]
struct KeyJson {
    name: String,
    /// base64 SHA-256 of its SubjectPublicKeyInfo.
    fingerprint: String,
    roles: Vec<&'static str>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Demands")]
struct DemandsJson {
    environment: Option<String>,
    /// Null: no approval is needed.
    approvals: Option<Approvals>,
    /// Names of the checks.
    checks: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Approvals {
    required_approvals: u32,
    allowed_groups: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Claim")]
struct ClaimJson {
    /// `artifact`, `admission`, `signature`, `provenance`, `approvals`, `check`, `promotion`, `deployment`.
    name: &'static str,
    /// Of `check`: its name.
    check: Option<String>,
    /// Of `check`: `Environment` or `Order`.
    check_of: Option<String>,
    required: bool,
    /// `Proven`, `Missing`, `Invalid` or `Unread`.
    outcome: &'static str,
    /// Condition Verified's word; null where there is none, and of `Proven`.
    reason: Option<&'static str>,
    /// For a person.
    message: String,
    /// What proves it; of `Proven`.
    evidence: Vec<PieceJson>,
    /// What was examined and did not count.
    candidates: Vec<LookedJson>,
    /// The request that failed; of `Unread`.
    unread: Option<Failed>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Piece")]
struct PieceJson {
    /// Of its manifest, or of its layer under a `.sig` or `.att` tag.
    digest: String,
    /// Of the signed file itself.
    blob: String,
    place: String,
    /// Null where nothing is signed.
    key: Option<String>,
    /// base64 SHA-256 of the key's SubjectPublicKeyInfo.
    fingerprint: Option<String>,
    predicate_type: Option<String>,
    /// When it was made, according to its signed content.
    time: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Looked")]
struct LookedJson {
    place: String,
    digest: Option<String>,
    /// Why it did not count.
    message: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Failed {
    request: String,
    /// HTTP status.
    status: Option<u16>,
    message: String,
    /// Whether a later attempt may succeed without any action.
    retryable: bool,
}

#[must_use]
pub fn format_verification(
    found: &model::Verification,
    problems: &[error::Failure],
    warnings: &[error::Failure],
) -> String {
    let (kind, file, digest) = match &found.from {
        ReadFrom::Registry => ("Registry", None, None),
        ReadFrom::Bundle { file, digest } => ("Bundle", Some(file.clone()), Some(digest.to_string())),
    };
    format_document(&VerificationDocument {
        api_version: API_VERSION,
        kind: "Verification",
        at: found.at.to_string(),
        repository: found.artifact.repository.to_string(),
        digest: found.artifact.digest.to_string(),
        tag: found.tag.clone(),
        order: VerifiedOrderJson {
            namespace: found.order.namespace.to_string(),
            name: found.order.name.to_string(),
        },
        preparation_name: found.preparation.as_ref().map(ToString::to_string),
        outcome: found.judge_outcome().as_str(),
        read_from: From { kind, file, digest },
        trust: make_trust(&found.trust),
        demands: found.demanded.as_ref().map(make_demands),
        claims: found.claims.iter().map(make_claim).collect(),
        problems: problems.iter().map(make_failure).collect(),
        warnings: warnings.iter().map(make_failure).collect(),
    })
}

fn make_trust(trust: &model::TrustUsed) -> TrustJson {
    TrustJson {
        whose: match trust.whose {
            Whose::Own => "Own",
            Whose::Bundled => "Bundled",
        },
        origin: trust.origin.clone(),
        fingerprint: trust.fingerprint.map(|d| d.to_string()),
        keys: trust
            .keys
            .iter()
            .map(|key| KeyJson {
                name: key.name.clone(),
                fingerprint: key.fingerprint.clone(),
                roles: key.roles.iter().map(|r| r.as_str()).collect(),
            })
            .collect(),
    }
}

fn make_demands(demanded: &model::Demanded) -> DemandsJson {
    DemandsJson {
        environment: demanded.environment.as_ref().map(ToString::to_string),
        approvals: demanded.approvals.as_ref().map(|policy| Approvals {
            required_approvals: policy.required_approvals,
            allowed_groups: policy.allowed_groups.clone(),
        }),
        checks: demanded.checks.iter().map(|c| c.check.name.clone()).collect(),
    }
}

fn make_claim(claim: &ClaimReport) -> ClaimJson {
    let (check, check_of) = match &claim.kind {
        ClaimKind::Check { name, of } => (Some(name.clone()), Some(of.clone())),
        ClaimKind::Artifact
        | ClaimKind::Admission
        | ClaimKind::Signature
        | ClaimKind::Provenance
        | ClaimKind::Approvals
        | ClaimKind::Promotion
        | ClaimKind::Deployment => (None, None),
    };
    let mut shown = ClaimJson {
        name: claim.kind.as_str(),
        check,
        check_of,
        required: claim.required,
        outcome: claim.outcome().as_str(),
        reason: None,
        message: claim.says.clone(),
        evidence: Vec::new(),
        candidates: Vec::new(),
        unread: None,
    };
    match &claim.found {
        Evidence::Proven(pieces) => shown.evidence = pieces.iter().map(make_piece).collect(),
        Evidence::Missing(looked) | Evidence::Invalid(looked) => {
            shown.reason = looked.reason.map(|r| r.as_str());
            shown.candidates = looked.candidates.iter().map(make_looked).collect();
        }
        Evidence::Unread(why) => {
            shown.reason = Some(why.reason.as_str());
            shown.unread = Some(make_failed(why));
        }
    }
    shown
}

fn make_piece(piece: &model::ProofPiece) -> PieceJson {
    let some = |text: &String| Some(text.clone()).filter(|t| !t.is_empty());
    PieceJson {
        digest: piece.digest.to_string(),
        blob: piece.blob.to_string(),
        place: piece.place.clone(),
        key: some(&piece.key),
        fingerprint: some(&piece.fingerprint),
        predicate_type: piece.predicate_type.clone(),
        time: piece.time.map(|t| t.to_string()),
    }
}

fn make_looked(candidate: &EvidenceCandidate) -> LookedJson {
    LookedJson {
        place: candidate.place.clone(),
        digest: candidate.digest.map(|d| d.to_string()),
        message: candidate.why.clone(),
    }
}

fn make_failed(why: &Unread) -> Failed {
    Failed {
        request: why.request.clone(),
        status: why.status,
        message: why.why.clone(),
        retryable: why.retryable,
    }
}
