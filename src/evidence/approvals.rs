//! Seals of votes: signed statements that say who approved one Preparation of one Order.

use crate::evidence::envelope::clip_text;
use crate::evidence::statement::ParsedStatement;
use crate::model::evidence::{SealOf, SealProof};
use crate::model::order::ApprovalPolicy;
use crate::model::time::Time;
use serde::Deserialize;
use serde_json::Value;
use std::cmp::Reverse;

/// Predicate type of a seal.
pub const APPROVAL: &str = "https://kokumi.dev/attestations/approval/v1";
/// The only result that approves.
pub const APPROVED: &str = "Approved";

/// The content of a seal for a Preparation.
#[derive(Debug, Clone, PartialEq)]
pub struct Seal {
    /// When.
    pub sealed_time: Time,
    /// Under which policy.
    pub policy: ApprovalPolicy,
    /// [`APPROVED`], or another result.
    pub result: String,
    /// The whole predicate.
    pub predicate: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SealPredicate {
    order: String,
    preparation: SealPreparation,
    policy: ApprovalPolicy,
    result: String,
    sealed_time: Time,
}

#[derive(Deserialize)]
struct SealPreparation {
    namespace: String,
    name: String,
    #[serde(default)]
    uid: String,
}

/// Reads a seal for `of`. Two Orders that render the same bytes share a digest: without this comparison the approval
/// of one Order would deploy the other. The uid is compared if both sides have one.
///
/// # Errors
/// Says which Preparation it is for instead, or what is wrong with it.
pub fn read_seal(statement: &ParsedStatement, of: &SealOf) -> Result<Seal, String> {
    let predicate = statement.parse_object()?;
    let seal: SealPredicate = serde_json::from_str(&statement.predicate)
        .map_err(|e| format!("its predicate does not parse: {e}"))?;
    if seal.preparation.namespace != of.order.namespace.as_str() || seal.order != of.order.name.as_str() {
        let (namespace, name) = (clip_text(&seal.preparation.namespace), clip_text(&seal.order));
        return Err(format!("it is a seal for Order {namespace}/{name}, not for {}", of.order));
    }
    if seal.preparation.name != of.preparation.as_str() {
        let name = clip_text(&seal.preparation.name);
        return Err(format!("it is a seal for Preparation {name}, not for {}", of.preparation));
    }
    match &of.uid {
        Some(uid) if !seal.preparation.uid.is_empty() && seal.preparation.uid != *uid => {
            let other = clip_text(&seal.preparation.uid);
            return Err(format!(
                "it is a seal for another Preparation of that name (uid {other}, not {uid})"
            ));
        }
        Some(_) | None => {}
    }
    Ok(Seal { sealed_time: seal.sealed_time, policy: seal.policy, result: seal.result, predicate })
}

/// The seal that decides: the newest; among several with the same time one that does not approve, otherwise the one
/// with the strictest policy.
#[must_use]
pub fn pick_deciding(seals: Vec<SealProof>) -> Option<SealProof> {
    seals.into_iter().max_by_key(|s| {
        (
            s.sealed_time,
            s.result != APPROVED,
            s.policy.required_approvals,
            // No group list means no restriction.
            !s.policy.allowed_groups.is_empty(),
            Reverse(s.policy.allowed_groups.len()),
            Reverse(s.proof.blob),
        )
    })
}
