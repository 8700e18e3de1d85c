//! Turns what was read for each claim into one of the four outcomes, with its evidence.

use super::{ArtifactQuestion, KeptRecord};
use crate::model::evidence::{
    ArtifactFacts, Evidence, EvidenceCandidate, Facts, Looked, Proof, ScanProof, SealProof, Unread,
};
use crate::model::order::ApprovalPolicy;
use crate::model::reason::{Approved, Verified};
use crate::model::time::{SKEW, Time};
use crate::model::verdict::GateOutcome;
use crate::model::verification::{ClaimKind, ClaimReport, DemandedCheck, ProofPiece};
use crate::policy::gates::checks::CheckAnswer;
use crate::policy::gates::evidence::describe_unusable_trust;
use crate::policy::gates::policy::is_as_strict;
use crate::policy::gates::proof::{DEPLOYMENT, PROMOTION};
use crate::policy::gates::{attestation, vulnerabilities};
use serde_json::Value;

/// An outcome and its sentence.
type Answered = (Evidence<Vec<ProofPiece>>, String);

pub(super) fn judge_claims(
    question: &ArtifactQuestion,
    facts: &Facts,
    kept: &[KeptRecord],
    now: Time,
) -> Vec<ClaimReport> {
    let nothing = ArtifactFacts::default();
    let known = facts.artifacts.get(&question.artifact).unwrap_or(&nothing);
    let mut all = Vec::new();
    let mut add = |kind, required, (found, says): Answered| {
        all.push(ClaimReport { kind, required, found, says });
    };
    add(ClaimKind::Artifact, true, answer_artifact(question, known));
    if !question.not_admitted.is_empty() {
        let why = question.not_admitted.join("; ");
        add(ClaimKind::Admission, true, answer_invalid(why));
    }
    add(ClaimKind::Signature, true, answer_found(known.signature.as_ref(), describe_signature));
    let provenance = answer_found(known.provenance.get(&question.order), |p| {
        let built = p.finished_on.map(|t| format!(", built at {t}")).unwrap_or_default();
        let builder = p.builder.as_ref().map(|b| format!(" by {b}")).unwrap_or_default();
        let says = format!("signed by {}, names Order {}{built}{builder}", p.proof.key, question.order);
        (vec![make_piece(&p.proof)], says)
    });
    add(ClaimKind::Provenance, true, provenance);
    if let Some(of) = question.find_wanted_seal() {
        // The policy could not be read, so an approval may be required: then a requested seal is required.
        let required = question.policy().is_some() || question.demanded.is_none();
        add(ClaimKind::Approvals, required, answer_seal(question, known.approvals.get(of), now));
    } else if question.policy().is_some() {
        let why = format!(
            "an approval is needed, and no Preparation of Order {} is known by this digest: name it with --preparation",
            question.order
        );
        add(ClaimKind::Approvals, true, answer_missing(why));
    }
    for DemandedCheck { of, check } in question.demanded.iter().flat_map(|d| &d.checks) {
        let kind = ClaimKind::Check { name: check.name.clone(), of: of.clone() };
        let answered = match (&check.attestation, &check.vulnerabilities) {
            (Some(wanted), None) => {
                let read = known.attestations.get(&wanted.predicate_type);
                answer_check(attestation::judge_statements(wanted, read, now), read, make_piece)
            }
            (None, Some(wanted)) => {
                let read = known.scans.as_ref();
                answer_check(vulnerabilities::judge_scans(wanted, read, now), read, make_scan_piece)
            }
            (Some(_), Some(_)) | (None, None) => {
                answer_invalid("it must have exactly one of attestation and vulnerabilities".into())
            }
        };
        add(kind, true, answered);
    }
    for (kind, predicate) in [(ClaimKind::Promotion, PROMOTION), (ClaimKind::Deployment, DEPLOYMENT)] {
        add(kind, false, answer_records(question, known.records.as_ref(), kept, predicate));
    }
    if let Some(why) = describe_unusable_trust(&facts.keys) {
        // As gate Evidence reports it: with such trust nothing passes.
        for claim in all.iter_mut().filter(|c| c.kind != ClaimKind::Artifact) {
            let looked = Looked { reason: Some(Verified::SigningKeyNotReady), ..make_looked(why.clone()) };
            (claim.found, claim.says) = (Evidence::Missing(looked), why.clone());
        }
    }
    all
}

fn make_looked(why: String) -> Looked {
    Looked { why, ..Looked::default() }
}

fn answer_missing(why: String) -> Answered {
    (Evidence::Missing(make_looked(why.clone())), why)
}

fn answer_invalid(why: String) -> Answered {
    (Evidence::Invalid(make_looked(why.clone())), why)
}

fn answer_unread(why: Unread) -> Answered {
    let says = crate::policy::gates::evidence::describe_unread(&why);
    (Evidence::Unread(why), says)
}

/// A claim that was not asked for is reported as not read, never as another outcome.
fn answer_not_read() -> Answered {
    answer_unread(Unread {
        reason: Verified::NotVerified,
        request: String::new(),
        status: None,
        why: "it was not read".into(),
        retryable: false,
    })
}

fn answer_found<P>(
    found: Option<&Evidence<P>>,
    proves: impl Fn(&P) -> (Vec<ProofPiece>, String),
) -> Answered {
    match found {
        None => answer_not_read(),
        Some(Evidence::Proven(proof)) => {
            let (pieces, says) = proves(proof);
            (Evidence::Proven(pieces), says)
        }
        Some(Evidence::Missing(looked)) => (Evidence::Missing(looked.clone()), looked.why.clone()),
        Some(Evidence::Invalid(looked)) => (Evidence::Invalid(looked.clone()), looked.why.clone()),
        Some(Evidence::Unread(why)) => answer_unread(why.clone()),
    }
}

fn answer_artifact(question: &ArtifactQuestion, known: &ArtifactFacts) -> Answered {
    answer_found(known.artifact.as_ref(), |proof| {
        let piece = ProofPiece {
            digest: question.artifact.digest,
            blob: proof.layer,
            place: "pinned digest".into(),
            key: String::new(),
            fingerprint: String::new(),
            predicate_type: None,
            time: None,
        };
        (vec![piece], format!("{} bytes of {}, its layer is there", proof.size, proof.media_type))
    })
}

fn describe_signature(proof: &Proof) -> (Vec<ProofPiece>, String) {
    (vec![make_piece(proof)], format!("signed by {}", proof.key))
}

fn make_piece(proof: &Proof) -> ProofPiece {
    ProofPiece {
        digest: proof.digest,
        blob: proof.blob,
        place: proof.place.clone(),
        key: proof.key.clone(),
        fingerprint: proof.fingerprint.clone(),
        predicate_type: proof.statement.as_ref().map(|s| s.predicate_type.clone()),
        time: proof.statement.as_ref().and_then(|s| s.time),
    }
}

fn answer_seal(question: &ArtifactQuestion, found: Option<&Evidence<SealProof>>, now: Time) -> Answered {
    let answered = match found {
        Some(Evidence::Proven(seal)) => match describe_void(seal, question.policy(), now) {
            Some(why) => {
                let candidate = EvidenceCandidate {
                    place: seal.proof.place.clone(),
                    digest: Some(seal.proof.digest),
                    why,
                };
                let why = candidate.why.clone();
                let looked = Looked {
                    why: why.clone(),
                    reason: Some(Verified::SignatureInvalid),
                    candidates: vec![candidate],
                };
                return (Evidence::Invalid(looked), why);
            }
            None => return (Evidence::Proven(vec![make_piece(&seal.proof)]), describe_approval(seal)),
        },
        other => answer_found(other, |_| (Vec::new(), String::new())),
    };
    // A seal was attached, so a registry without it is not simply without a seal: it may be hiding one.
    match (question.remembered_seal, &answered.0) {
        (Some(time), Evidence::Missing(looked) | Evidence::Invalid(looked)) => answer_unread(Unread {
            reason: Verified::RegistryError,
            request: String::new(),
            status: None,
            why: format!(
                "the votes were sealed at {time}, but the registry does not list that seal any more: {}",
                looked.why
            ),
            retryable: false,
        }),
        (_, Evidence::Proven(_) | Evidence::Missing(_) | Evidence::Invalid(_) | Evidence::Unread(_)) => {
            answered
        }
    }
}

/// Why a seal does not approve.
fn describe_void(seal: &SealProof, policy: Option<&ApprovalPolicy>, now: Time) -> Option<String> {
    if seal.result != Approved::Approved.as_str() {
        return Some(format!("the newest seal (of {}) says {}", seal.sealed_time, seal.result));
    }
    if seal.sealed_time > now.add_span(SKEW) {
        return Some(format!("the seal is dated {}, which is ahead of this clock", seal.sealed_time));
    }
    let today = policy.filter(|today| !is_as_strict(&seal.policy, today))?;
    Some(format!(
        "it was sealed under a policy of {}; today's policy requires {}",
        format_policy(&seal.policy),
        format_policy(today)
    ))
}

fn format_policy(policy: &ApprovalPolicy) -> String {
    let groups = match policy.allowed_groups.as_slice() {
        [] => "anybody".to_owned(),
        groups => groups.join(", "),
    };
    format!("{} from {groups}", policy.required_approvals)
}

fn describe_approval(seal: &SealProof) -> String {
    let submissions = seal.proof.statement.as_ref().and_then(|s| s.predicate.get("submissions")?.as_array());
    let voters: Vec<&str> = submissions
        .into_iter()
        .flatten()
        .filter(|vote| vote.get("counted").and_then(Value::as_bool) == Some(true))
        .filter_map(|vote| {
            let who = vote.get("approver")?;
            let text = |name: &str| who.get(name)?.as_str().filter(|t| !t.is_empty());
            text("username").or_else(|| text("subject"))
        })
        .collect();
    let by = if voters.is_empty() { String::new() } else { format!(" by {}", voters.join(", ")) };
    let (time, policy) = (seal.sealed_time, format_policy(&seal.policy));
    format!("approved{by}, sealed at {time} under a policy of {policy}, signed by {}", seal.proof.key)
}

fn make_scan_piece(scan: &ScanProof) -> ProofPiece {
    ProofPiece { time: Some(scan.finished_on), ..make_piece(&scan.proof) }
}

/// The outcome of a check: evidence that exists but does not pass is Invalid.
fn answer_check<P>(
    answer: CheckAnswer,
    read: Option<&Evidence<Vec<P>>>,
    piece: impl Fn(&P) -> ProofPiece,
) -> Answered {
    let says = answer.message;
    let found = match (answer.outcome, read) {
        (_, None) => return answer_not_read(),
        (_, Some(Evidence::Unread(why))) => Evidence::Unread(why.clone()),
        (_, Some(Evidence::Missing(looked))) => {
            Evidence::Missing(Looked { why: says.clone(), ..looked.clone() })
        }
        (_, Some(Evidence::Invalid(looked))) => {
            Evidence::Invalid(Looked { why: says.clone(), ..looked.clone() })
        }
        (GateOutcome::Passed, Some(Evidence::Proven(read))) => {
            let rests = |p: &ProofPiece| answer.evidence.iter().any(|e| e.digest == Some(p.digest));
            Evidence::Proven(read.iter().map(piece).filter(rests).collect())
        }
        (GateOutcome::Failed | GateOutcome::Waiting(_), Some(Evidence::Proven(read))) => {
            let candidate = |p: ProofPiece| EvidenceCandidate {
                place: p.place,
                digest: Some(p.digest),
                why: format!("signed by {}; the check does not pass", p.key),
            };
            let candidates = read.iter().map(|p| candidate(piece(p))).collect();
            Evidence::Invalid(Looked { why: says.clone(), reason: None, candidates })
        }
    };
    (found, says)
}

/// Records of this kind for this Order, from all places. An artifact without records may simply never have
/// been promoted.
fn answer_records(
    question: &ArtifactQuestion,
    attached: Option<&Evidence<Vec<Proof>>>,
    kept: &[KeptRecord],
    predicate: &str,
) -> Answered {
    let mut proven: Vec<&Proof> = Vec::new();
    let mut candidates: Vec<EvidenceCandidate> = Vec::new();
    let noun = if predicate == PROMOTION { "promotion" } else { "deployment" };
    let attached_proofs = match attached {
        None => return answer_not_read(),
        Some(Evidence::Proven(proofs)) => proofs.as_slice(),
        Some(Evidence::Missing(looked) | Evidence::Invalid(looked)) => {
            candidates.extend(looked.candidates.iter().cloned());
            &[]
        }
        Some(Evidence::Unread(_)) => &[],
    };
    for proof in attached_proofs.iter().chain(kept.iter().filter_map(|k| k.found.as_ref().ok())) {
        let Some(statement) = proof.statement.as_ref().filter(|s| s.predicate_type == predicate) else {
            continue;
        };
        match describe_mismatch(&statement.predicate, question) {
            None if proven.iter().any(|p| p.blob == proof.blob) => {}
            None => proven.push(proof),
            Some(why) => {
                candidates.push(EvidenceCandidate {
                    place: proof.place.clone(),
                    digest: Some(proof.digest),
                    why,
                });
            }
        }
    }
    for record in kept {
        if let Err(why) = &record.found {
            candidates.push(EvidenceCandidate {
                place: record.place.to_owned(),
                digest: Some(record.digest),
                why: why.clone(),
            });
        }
    }
    if !proven.is_empty() {
        let time = |p: &Proof| p.statement.as_ref().and_then(|s| s.time);
        proven.sort_by_key(|p| (std::cmp::Reverse(time(p)), p.blob));
        let says: Vec<String> = proven.iter().map(|p| describe_record(p)).collect();
        return (Evidence::Proven(proven.into_iter().map(make_piece).collect()), says.join("; "));
    }
    if let Some(Evidence::Unread(why)) = attached {
        return answer_unread(why.clone());
    }
    let keyless = match attached {
        Some(Evidence::Missing(looked)) => looked.reason == Some(Verified::SigningKeyNotReady),
        Some(Evidence::Proven(_) | Evidence::Invalid(_) | Evidence::Unread(_)) | None => false,
    };
    if keyless {
        return answer_found(attached, |_| (Vec::new(), String::new()));
    }
    candidates.sort_by(|a, b| (&a.place, a.digest, &a.why).cmp(&(&b.place, b.digest, &b.why)));
    let why = match candidates.first() {
        None => format!("no {noun} record for Order {} is kept", question.order),
        Some(first) => {
            format!("no {noun} record for Order {} counts: {} ({})", question.order, first.why, first.place)
        }
    };
    let looked = Looked { why: why.clone(), reason: None, candidates };
    let found =
        if looked.candidates.is_empty() { Evidence::Missing(looked) } else { Evidence::Invalid(looked) };
    (found, why)
}

/// Why a record is not about this Order.
fn describe_mismatch(predicate: &Value, question: &ArtifactQuestion) -> Option<String> {
    let part = |name: &str| predicate.get("order").and_then(|o| o.get(name)).and_then(Value::as_str);
    match (part("namespace"), part("name")) {
        (Some(namespace), Some(name))
            if namespace == question.order.namespace.as_str() && name == question.order.name.as_str() =>
        {
            None
        }
        (Some(namespace), Some(name)) => Some(format!("it is of Order {namespace}/{name}")),
        _ => Some("it names no Order".into()),
    }
}

/// Summarizes a record.
fn describe_record(proof: &Proof) -> String {
    let Some(statement) = &proof.statement else { return String::new() };
    let text = |path: &[&str]| {
        let found = path.iter().try_fold(&statement.predicate, |value, name| value.get(name));
        found.and_then(Value::as_str).filter(|t| !t.is_empty()).map(str::to_owned)
    };
    let environment = text(&["environment"]).unwrap_or_default();
    let (what, time) = if statement.predicate_type == PROMOTION {
        ("promoted to", text(&["promotedTime"]))
    } else {
        ("healthy in", text(&["firstHealthyTime"]))
    };
    let at = time.map(|t| format!(" at {t}")).unwrap_or_default();
    let ended = text(&["endedTime"])
        .map(|t| {
            format!(", ended {}at {t}", text(&["endedReason"]).map(|r| format!("{r} ")).unwrap_or_default())
        })
        .unwrap_or_default();
    let asked = text(&["requestedBy", "name"]).map(|who| format!(", asked for by {who}")).unwrap_or_default();
    format!("{what} {environment}{at}{ended}{asked}, signed by {}", proof.key)
}
