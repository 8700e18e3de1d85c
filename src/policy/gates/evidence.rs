//! Gate 5, Evidence: artifact, signature and provenance, read from the registry again at the promotion.

use super::{Context, find_facts, ready};
use crate::model::evidence::{Claim, Evidence, Facts, KeyState, Looked, Unread};
use crate::model::id::{Artifact, Digest, OrderRef};
use crate::model::kitchen::Role;
use crate::model::order::Mode;
use crate::model::plan::Candidate;
use crate::model::reason::Verified;
use crate::model::time::Time;
use crate::model::verdict::{EvidenceRef, For, GateName, Verdict};
use crate::policy::resolve::Case;
use crate::policy::resolve::slot::Slot;
use std::fmt::Write as _;

const GATE: GateName = GateName::Evidence;

/// What must be proven of any artifact of this Order.
#[must_use]
pub fn collect_basic_claims(artifact: &Artifact, order: &OrderRef) -> Vec<(Artifact, Claim)> {
    [Claim::Artifact, Claim::Signature, Claim::Provenance(order.clone())]
        .into_iter()
        .map(|claim| (artifact.clone(), claim))
        .collect()
}

/// The candidate's artifact, signature and provenance; under Automatic also the provenance of what is
/// deployed, because the candidate must have a later build time.
#[must_use]
pub fn collect_claims(case: &Case) -> Vec<(Artifact, Claim)> {
    let Some(candidate) = &case.candidate else { return Vec::new() };
    let mut all = collect_basic_claims(&candidate.artifact, &case.order);
    if let (Mode::Automatic, Some(deployed)) = (case.mode, &case.deployed) {
        all.push((deployed.artifact.clone(), Claim::Provenance(case.order.clone())));
    }
    all
}

/// What the registry says of an artifact's signature and provenance.
#[derive(Debug, Clone, PartialEq)]
pub struct EvidenceVerdict {
    pub reason: Verified,
    /// The message for a person; it does not change from run to run.
    pub message: String,
    /// What it rests on.
    pub evidence: Vec<EvidenceRef>,
    /// Names of the keys.
    pub keys: Vec<String>,
    /// When the provenance says the build finished.
    pub built: Option<Time>,
}

/// Judges artifact, signature and provenance of one artifact for one Order; `None`: nothing was requested.
#[must_use]
pub fn verify_artifact(facts: &Facts, artifact: &Artifact, order: &OrderRef) -> Option<EvidenceVerdict> {
    let known = find_facts(facts, artifact);
    if let Some(why) = describe_missing_keys(facts) {
        return Some(make_verdict(Verified::SigningKeyNotReady, why));
    }
    let known = known?;
    let mut proven = make_verdict(Verified::SignaturesVerified, String::new());
    let mut unread: Option<EvidenceVerdict> = None;
    let mut lacking: Vec<(Verified, String)> = Vec::new();
    let mut sort = |outcome: EvidenceOutcome<'_>, claim: &str| match outcome {
        EvidenceOutcome::Fine => {}
        EvidenceOutcome::Lacks(fallback, looked) => {
            lacking.push((looked.reason.unwrap_or(fallback), describe_looked(claim, looked)))
        }
        EvidenceOutcome::Unread(u) => {
            let text = format!("{claim}: {}", describe_unread(u));
            unread.get_or_insert_with(|| make_verdict(u.reason, text));
        }
    };
    let artifact_outcome = known.artifact.as_ref()?;
    match artifact_outcome {
        Evidence::Proven(_) => {
            proven.evidence.push(EvidenceRef {
                kind: "artifact".into(),
                name: String::new(),
                digest: Some(artifact.digest),
                uri: artifact.repository.format_url(),
                key: String::new(),
            });
            sort(EvidenceOutcome::Fine, "artifact");
        }
        Evidence::Missing(l) => sort(EvidenceOutcome::Lacks(Verified::ArtifactNotFound, l), "artifact"),
        Evidence::Invalid(l) => sort(EvidenceOutcome::Lacks(Verified::ArtifactInvalid, l), "artifact"),
        Evidence::Unread(u) => sort(EvidenceOutcome::Unread(u), "artifact"),
    }
    match known.signature.as_ref()? {
        Evidence::Proven(proof) => {
            proven.evidence.push(make_reference("signature", proof, artifact));
            proven.keys.push(proof.key.clone());
        }
        Evidence::Missing(l) => sort(EvidenceOutcome::Lacks(Verified::SignatureMissing, l), "signature"),
        Evidence::Invalid(l) => sort(EvidenceOutcome::Lacks(Verified::SignatureInvalid, l), "signature"),
        Evidence::Unread(u) => sort(EvidenceOutcome::Unread(u), "signature"),
    }
    match known.provenance.get(order)? {
        Evidence::Proven(provenance) => {
            proven.evidence.push(make_reference("provenance", &provenance.proof, artifact));
            proven.keys.push(provenance.proof.key.clone());
            proven.built = provenance.finished_on;
        }
        Evidence::Missing(l) => sort(EvidenceOutcome::Lacks(Verified::SignatureMissing, l), "provenance"),
        Evidence::Invalid(l) => sort(EvidenceOutcome::Lacks(Verified::SignatureInvalid, l), "provenance"),
        Evidence::Unread(u) => sort(EvidenceOutcome::Unread(u), "provenance"),
    }
    if let Some((reason, _)) = lacking.first() {
        let reason = *reason;
        // Missing evidence is reported even if other evidence could not be read.
        let mut message: Vec<String> = lacking.iter().map(|(_, m)| m.clone()).collect();
        return Some(match unread {
            Some(unread) => {
                message.push(unread.message);
                make_verdict(unread.reason, message.join("; "))
            }
            None => make_verdict(reason, message.join("; ")),
        });
    }
    if let Some(unread) = unread {
        return Some(unread);
    }
    proven.keys.sort();
    proven.keys.dedup();
    proven.message = format!("signature and provenance verified with {}", proven.keys.join(", "));
    Some(proven)
}

enum EvidenceOutcome<'a> {
    Fine,
    Lacks(Verified, &'a Looked),
    Unread(&'a Unread),
}

fn make_verdict(reason: Verified, message: String) -> EvidenceVerdict {
    EvidenceVerdict { reason, message, evidence: Vec::new(), keys: Vec::new(), built: None }
}

fn describe_looked(claim: &str, looked: &Looked) -> String {
    let mut text = format!("{claim}: {}", looked.why);
    // If only one was examined, the sentence already describes it.
    if let [only] = looked.candidates.as_slice()
        && looked.why.contains(&only.why)
    {
        return text;
    }
    for candidate in looked.candidates.iter().take(3) {
        let digest = candidate.digest.map(|d| format!(" {}", d.format_short())).unwrap_or_default();
        let _ = write!(text, " [{}{digest}: {}]", candidate.place, candidate.why);
    }
    if looked.candidates.len() > 3 {
        let _ = write!(text, " [and {} more]", looked.candidates.len() - 3);
    }
    text
}

/// A failed request, for a message.
#[must_use]
pub fn describe_unread(unread: &Unread) -> String {
    let status = unread.status.map(|s| format!(" answered {s}")).unwrap_or_default();
    if unread.request.is_empty() {
        unread.why.clone()
    } else {
        format!("{}{status}: {}", unread.request, unread.why)
    }
}

fn make_reference(kind: &str, proof: &crate::model::evidence::Proof, artifact: &Artifact) -> EvidenceRef {
    EvidenceRef {
        kind: kind.into(),
        name: proof.place.clone(),
        digest: Some(proof.digest),
        uri: artifact.repository.format_url(),
        key: proof.key.clone(),
    }
}

/// Why no key can be used: then no registry is asked.
fn describe_missing_keys(facts: &Facts) -> Option<String> {
    if let Some(why) = describe_unusable_trust(&facts.keys) {
        return Some(why);
    }
    let state = &facts.keys;
    for (role, word) in [(Role::Signature, "signature"), (Role::Provenance, "provenance")] {
        if !state.usable.contains(&role) {
            return Some(format!("the Kitchen has no key with role {word} yet"));
        }
    }
    None
}

/// Why the Kitchen's trust as a whole cannot be used, whatever the roles of its keys.
#[must_use]
pub fn describe_unusable_trust(state: &KeyState) -> Option<String> {
    if !state.errors.is_empty() {
        return Some(format!("the Kitchen's trust cannot be used: {}", state.errors.join("; ")));
    }
    if !state.identities.is_empty() {
        return Some(format!(
            "the Kitchen trusts keyless identities ({}), which this build cannot verify yet: nothing passes",
            state.identities.join(", ")
        ));
    }
    None
}

/// Judges the candidate's evidence as it was read in this run.
#[must_use]
pub fn judge_evidence(case: &Case, facts: &Facts, _context: &Context) -> Verdict {
    let Some(candidate) = &case.candidate else { return Verdict::make_failed(GATE, "there is no candidate") };
    let Some(found) = verify_artifact(facts, &candidate.artifact, &case.order) else {
        return Verdict::make_waiting(
            GATE,
            For::AnotherGate,
            "not read in this run: another gate holds, and the last verdict is kept",
        );
    };
    let mut verdict = match found.reason {
        Verified::SignaturesVerified => Verdict::make_passed(GATE, found.message.clone()),
        Verified::ArtifactInvalid => Verdict::make_failed(GATE, found.message.clone()),
        Verified::RegistryUnauthorized
        | Verified::RegistryRateLimited
        | Verified::RegistryUnreachable
        | Verified::RegistryError => {
            Verdict::make_waiting(GATE, For::Registry, format!("{}: {}", found.reason, found.message))
        }
        Verified::SignatureMissing
        | Verified::SignatureInvalid
        | Verified::SigningKeyNotReady
        | Verified::ArtifactNotFound
        | Verified::NotVerified => {
            Verdict::make_waiting(GATE, For::Evidence, format!("{}: {}", found.reason, found.message))
        }
    };
    verdict.unread = found.reason.is_unread();
    verdict.evidence = found.evidence;
    if verdict.is_passed() {
        if let Some(held) = judge_origin(case, candidate, facts) {
            return held;
        }
        if let Some(held) = judge_build_time(case, facts, found.built) {
            return held;
        }
    }
    verdict
}

/// The base in an object may hide a rejected digest; signed provenance lists it.
fn judge_origin(case: &Case, candidate: &Candidate, facts: &Facts) -> Option<Verdict> {
    let kitchen = case.kitchen.as_ref()?;
    let provenance = find_facts(facts, &candidate.artifact)?.provenance.get(&case.order)?;
    let Evidence::Proven(provenance) = provenance else { return None };
    let bad = |digest: &Digest| provenance.dependencies.contains(digest);
    let wrong = ready::find_rejected(&kitchen.spec, case.place.as_deref(), bad);
    let what = "its signed provenance lists a rejected digest among what it was made from";
    (!wrong.is_empty()).then(|| Verdict::make_failed(GATE, format!("{what}: {}", wrong.join("; "))))
}

/// Object times are claims: an Automatic candidate whose signed build time is not later than that of what is
/// deployed is held.
fn judge_build_time(case: &Case, facts: &Facts, built: Option<Time>) -> Option<Verdict> {
    let (Mode::Automatic, Some(deployed), Some(built)) = (case.mode, &case.deployed, built) else {
        return None;
    };
    match find_facts(facts, &deployed.artifact)?.provenance.get(&case.order)? {
        Evidence::Proven(provenance) => {
            let running = provenance.finished_on?;
            (built <= running).then(|| {
                Verdict::make_failed(
                    GATE,
                    format!(
                        "its signed provenance says it was built at {built}, not later than what is deployed ({running}): an Automatic Order never promotes an older build"
                    ),
                )
            })
        }
        Evidence::Unread(unread) => {
            let mut verdict = Verdict::make_waiting(
                GATE,
                For::Registry,
                format!("{}: provenance of what is deployed: {}", unread.reason, describe_unread(unread)),
            );
            verdict.unread = true;
            Some(verdict)
        }
        // The deployed artifact may have lost its provenance; then there is no time to compare with.
        Evidence::Missing(_) | Evidence::Invalid(_) => None,
    }
}

/// The kept verdict of an artifact under the current trust: for display and while waiting, never for a
/// promotion.
#[must_use]
pub fn find_kept_verdict(
    case: &Case,
    artifact: &Artifact,
    trust: Option<Digest>,
) -> Option<(Time, Vec<String>)> {
    let kept = case.serving.as_ref()?.status.verified.as_ref()?;
    (kept.digest == artifact.digest && Some(kept.keys) == trust).then(|| (kept.time, kept.by.clone()))
}

/// Why what is deployed cannot be deployed again, if the registry says that the artifact does not exist: it
/// keeps running from Argo CD's cache while that lasts.
#[must_use]
pub fn describe_vanished(facts: &Facts, deployed: &Artifact) -> Option<String> {
    match find_facts(facts, deployed)?.artifact.as_ref()? {
        Evidence::Missing(looked) if looked.reason == Some(Verified::ArtifactNotFound) => {
            Some(format!("what is deployed is not recoverable: {}", looked.why))
        }
        Evidence::Missing(_) | Evidence::Proven(_) | Evidence::Invalid(_) | Evidence::Unread(_) => None,
    }
}

/// Whether a Cluster joins the deployment: it belongs to the Environment that the deployed Preparation was
/// promoted in, and has no Application yet.
#[must_use]
pub fn is_joining(case: &Case, slot: &Slot) -> bool {
    let Some(serving) = &case.serving else { return false };
    case.deployed.is_some()
        && case.is_at_home()
        && slot.cluster.held.is_none()
        && !serving
            .status
            .clusters
            .iter()
            .any(|c| c.name == slot.cluster.name && c.reason == crate::policy::resolve::PINNED)
}
