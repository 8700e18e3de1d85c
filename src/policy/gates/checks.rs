//! Gate 3, Checks: every attestation and vulnerability check of the Environment and the Order passes.

use super::{Context, attestation, find_facts, vulnerabilities};
use crate::model::evidence::{Claim, Facts, Proof};
use crate::model::id::Artifact;
use crate::model::order::Check;
use crate::model::verdict::{EvidenceRef, For, GateName, GateOutcome, Verdict};
use crate::policy::resolve::Case;
use serde_json::{Value, json};

const GATE: GateName = GateName::Checks;

#[derive(Debug, Clone, PartialEq)]
pub struct CheckAnswer {
    /// Whether it passes, waits, or needs another artifact.
    pub outcome: GateOutcome,
    /// The message for a person; it does not change from run to run.
    pub message: String,
    /// What it rests on.
    pub evidence: Vec<EvidenceRef>,
    /// Whether something could not be read.
    pub unread: bool,
}

impl CheckAnswer {
    /// A check that passes, with its evidence `proofs`.
    pub(super) fn make_passed<'p>(
        message: String,
        proofs: impl Iterator<Item = &'p Proof>,
        kind: &str,
    ) -> Self {
        let evidence = proofs
            .map(|proof| EvidenceRef {
                kind: kind.into(),
                name: proof.place.clone(),
                digest: Some(proof.digest),
                uri: String::new(),
                key: proof.key.clone(),
            })
            .collect();
        Self { outcome: GateOutcome::Passed, message, evidence, unread: false }
    }
    /// A check that waits until evidence is signed and attached.
    pub(super) fn make_lacking(message: impl Into<String>) -> Self {
        let outcome = GateOutcome::Waiting(For::Evidence);
        Self { outcome, message: message.into(), evidence: Vec::new(), unread: false }
    }
    /// A check that was not read, because another gate holds.
    pub(super) fn make_not_read() -> Self {
        let outcome = GateOutcome::Waiting(For::AnotherGate);
        let message = "not read in this run: another gate holds".into();
        Self { outcome, message, evidence: Vec::new(), unread: false }
    }
    /// A check whose evidence does not pass.
    pub(super) fn make_failed(message: String) -> Self {
        Self { outcome: GateOutcome::Failed, message, evidence: Vec::new(), unread: false }
    }
    /// A check whose evidence could not be read.
    pub(super) fn make_unread(message: String) -> Self {
        let outcome = GateOutcome::Waiting(For::Registry);
        Self { outcome, message, evidence: Vec::new(), unread: true }
    }
}

/// The statements and scans that the checks need.
#[must_use]
pub fn collect_claims(case: &Case) -> Vec<(Artifact, Claim)> {
    let Some(candidate) = &case.candidate else { return Vec::new() };
    let mut all = Vec::new();
    for (_, check) in &case.demands.checks {
        if let Some(attestation) = &check.attestation {
            let claim = Claim::Attestation(attestation.predicate_type.clone());
            all.push((candidate.artifact.clone(), claim));
        }
        if check.vulnerabilities.is_some() {
            all.push((candidate.artifact.clone(), Claim::Scans));
        }
    }
    all
}

/// Judges every check, those of the Environment first; the message contains the state of each.
#[must_use]
pub fn judge_checks(case: &Case, facts: &Facts, context: &Context) -> Verdict {
    let Some(candidate) = &case.candidate else { return Verdict::make_failed(GATE, "there is no candidate") };
    if case.demands.checks.is_empty() {
        return Verdict::make_passed(GATE, "no checks");
    }
    let known = find_facts(facts, &candidate.artifact);
    let answers: Vec<(String, CheckAnswer)> = case
        .demands
        .checks
        .iter()
        .map(|(whose, check)| {
            let answer = match (&check.attestation, &check.vulnerabilities) {
                (Some(wanted), None) => attestation::judge_statements(
                    wanted,
                    known.and_then(|k| k.attestations.get(&wanted.predicate_type)),
                    context.now,
                ),
                (None, Some(wanted)) => {
                    vulnerabilities::judge_scans(wanted, known.and_then(|k| k.scans.as_ref()), context.now)
                }
                (Some(_), Some(_)) | (None, None) => CheckAnswer::make_failed(
                    "it must have exactly one of attestation and vulnerabilities".into(),
                ),
            };
            (format!("{} (of the {whose})", check.name), answer)
        })
        .collect();
    let message: Vec<String> =
        answers.iter().map(|(name, answer)| format!("{name}: {}", answer.message)).collect();
    let mut verdict = Verdict::make_passed(GATE, message.join("; "));
    verdict.outcome = sum_outcome(&answers);
    verdict.unread = answers.iter().any(|(_, a)| a.unread);
    verdict.evidence = answers.into_iter().flat_map(|(_, a)| a.evidence).collect();
    verdict.parameters =
        json!({"checks": case.demands.checks.iter().map(build_parameters).collect::<Vec<_>>()});
    verdict
}

/// A failed check decides first, because nothing that is read later can change it; then one that could not be
/// read.
fn sum_outcome(answers: &[(String, CheckAnswer)]) -> GateOutcome {
    let find = |wanted: fn(&CheckAnswer) -> bool| answers.iter().map(|(_, a)| a).find(|a| wanted(a));
    find(|a| a.outcome == GateOutcome::Failed)
        .or_else(|| find(|a| a.unread))
        .or_else(|| find(|a| a.outcome != GateOutcome::Passed))
        .map_or(GateOutcome::Passed, |a| a.outcome.clone())
}

fn build_parameters((whose, check): &(&'static str, Check)) -> Value {
    let mut all = json!({"name": check.name, "of": whose});
    if let Some(a) = &check.attestation {
        all["attestation"] =
            json!({"predicateType": a.predicate_type, "expression": a.expression, "maxAge": a.max_age});
    }
    if let Some(v) = &check.vulnerabilities {
        all["vulnerabilities"] = json!({
            "maxCritical": v.max_critical, "maxHigh": v.max_high, "maxMedium": v.max_medium,
            "maxLow": v.max_low, "fixableOnly": v.fixable_only, "maxAge": v.max_age,
        });
    }
    all
}

#[cfg(test)]
pub(super) mod tests {
    use crate::model::evidence::{Looked, Proof, Statement, Unread};
    use crate::model::id::Digest;
    use crate::model::reason::Verified;
    use crate::model::time::Time;
    use serde_json::Value;
    use std::sync::Arc;

    /// A statement by a trusted key, for the tests of both kinds of checks.
    pub(in crate::policy::gates) fn make_proof(predicate_type: &str, predicate: Value) -> Proof {
        let digest = Digest::hash_bytes(format!("{predicate_type} {predicate}").as_bytes());
        let time = predicate.get("finishedOn").and_then(|t| Time::parse(t.as_str()?).ok());
        Proof {
            key: "ci".into(),
            fingerprint: String::new(),
            digest,
            blob: digest,
            place: "referrers API".into(),
            statement: Some(Arc::new(Statement {
                predicate_type: predicate_type.into(),
                subject: None,
                predicate,
                time,
            })),
        }
    }
    pub(in crate::policy::gates) fn make_looked(why: &str) -> Looked {
        Looked { why: why.into(), ..Looked::default() }
    }
    pub(in crate::policy::gates) fn make_unread() -> Unread {
        Unread {
            reason: Verified::RegistryUnreachable,
            request: "GET /v2/shop/podinfo/referrers/sha256:0".into(),
            status: None,
            why: "connection refused".into(),
            retryable: true,
        }
    }
}
