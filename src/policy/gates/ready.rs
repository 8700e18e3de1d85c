//! Gate 1, Ready: the candidate is Ready and signed, everything it names exists and is allowed, and its
//! digest is not rejected.

use super::Context;
use crate::model::environment::OnDelete;
use crate::model::evidence::{Claim, Facts};
use crate::model::id::{Artifact, Digest, Namespace};
use crate::model::kitchen::{KitchenSpec, Rejection};
use crate::model::plan::Candidate;
use crate::model::verdict::{EvidenceRef, GateName, Verdict};
use crate::policy::resolve::place::{Held, Place};
use crate::policy::resolve::{Case, DeployedNow};
use wildmatch::WildMatch;

const GATE: GateName = GateName::Ready;

/// Needs no evidence: only objects decide.
#[must_use]
pub fn collect_claims(_case: &Case) -> Vec<(Artifact, Claim)> {
    Vec::new()
}

/// Reports all problems at once.
#[must_use]
pub fn judge_ready(case: &Case, _facts: &Facts, context: &Context) -> Verdict {
    let Some(candidate) = &case.candidate else {
        return Verdict::make_failed(GATE, "there is no candidate");
    };
    let mut wrong: Vec<String> = Vec::new();
    wrong.extend(case.errors.iter().map(crate::error::Failure::format_sentence));
    wrong.extend(case.holds.iter().map(|f| format!("held until this is corrected: {}", f.format_sentence())));
    wrong.extend(case.candidate_faults.iter().cloned());
    if let Some(place) = &case.place {
        wrong.extend(collect_place_faults(case, candidate, place, context));
    }
    if let Some(kitchen) = &case.kitchen {
        let place = case.place.as_deref();
        wrong.extend(collect_kitchen_faults(candidate, place, &kitchen.spec));
    }
    if !wrong.is_empty() {
        return Verdict::make_failed(GATE, wrong.join("; "));
    }
    let mut verdict =
        Verdict::make_passed(GATE, format!("Preparation {} is Ready and signed", candidate.name));
    verdict.evidence.push(EvidenceRef {
        kind: "artifact".into(),
        name: candidate.name.to_string(),
        digest: Some(candidate.artifact.digest),
        uri: candidate.artifact.repository.format_url(),
        key: String::new(),
    });
    verdict.parameters = build_parameters(case);
    verdict
}

fn build_parameters(case: &Case) -> serde_json::Value {
    let place = case.place.as_deref();
    serde_json::json!({
        "environment": place.map(|p| p.name.as_str()),
        "clusters": place.map(|p| p.clusters.iter().map(|c| c.name.as_str()).collect::<Vec<_>>()),
        "onDelete": match place.map(|p| p.on_delete) {
            Some(OnDelete::Orphan) => "Orphan",
            Some(OnDelete::Cascade) | None => "Cascade",
        },
    })
}

fn collect_place_faults(case: &Case, candidate: &Candidate, place: &Place, context: &Context) -> Vec<String> {
    let mut wrong =
        collect_namespace_faults(&case.order.namespace, &candidate.target_namespace, place, context);
    if place.clusters.is_empty() {
        wrong.push(format!("Environment {} has no Cluster", place.name));
    }
    for cluster in &place.clusters {
        if cluster.held == Some(Held::Missing) {
            wrong.push(format!(
                "Cluster {}, which Environment {} names, does not exist",
                cluster.name, place.name
            ));
        }
    }
    wrong
}

fn collect_namespace_faults(
    own: &Namespace,
    target: &Namespace,
    place: &Place,
    context: &Context,
) -> Vec<String> {
    let mut wrong = Vec::new();
    if !place.allowed_namespaces.is_empty() && !place.allowed_namespaces.contains(own) {
        wrong.push(format!(
            "namespace {own} may not deploy to Environment {}; its allowedNamespaces: {}",
            place.name,
            format_list(&place.allowed_namespaces)
        ));
    }
    if target.as_str() == context.argocd_namespace {
        wrong.push(format!("target namespace {target} is Argo CD's own"));
    } else if target != own && !place.allowed_target_namespaces.contains(target) {
        wrong.push(format!(
            "target namespace {target} is not the Preparation's own ({own}), and Environment {} does not admit it; its allowedTargetNamespaces: {}",
            place.name,
            format_list(&place.allowed_target_namespaces)
        ));
    }
    wrong
}

/// Why the Kitchen does not allow this artifact: its registries, its reject list.
#[must_use]
pub fn collect_kitchen_faults(
    candidate: &Candidate,
    place: Option<&Place>,
    kitchen: &KitchenSpec,
) -> Vec<String> {
    collect_admission_faults(&candidate.artifact, candidate.base_digest, place, kitchen)
}

/// The same for an artifact that is not a candidate. `base`: what it was rendered from, if known.
#[must_use]
pub fn collect_admission_faults(
    artifact: &Artifact,
    base: Option<Digest>,
    place: Option<&Place>,
    kitchen: &KitchenSpec,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let repository = &artifact.repository;
    let admits = |glob: &String| {
        let glob = WildMatch::new(glob.strip_prefix("oci://").unwrap_or(glob));
        glob.matches(repository.registry()) || glob.matches(&repository.to_string())
    };
    if !kitchen.registries.is_empty() && !kitchen.registries.iter().any(admits) {
        wrong.push(format!(
            "repository {repository} is not in any of the Kitchen's registries: {}",
            kitchen.registries.join(", ")
        ));
    }
    let is_bad = |digest: &Digest| *digest == artifact.digest || Some(*digest) == base;
    wrong.extend(find_rejected(kitchen, place, is_bad));
    wrong
}

/// Why what was deployed may not be deployed again, if git does not contain it any more.
#[must_use]
pub fn collect_readmission_faults(
    case: &Case,
    place: &Place,
    deployed: &DeployedNow,
    base: Option<Digest>,
    context: &Context,
) -> Vec<String> {
    let kitchen = case.kitchen.as_ref().map(|kitchen| &kitchen.spec);
    let mut wrong = kitchen
        .map(|k| collect_admission_faults(&deployed.artifact, base, Some(place), k))
        .unwrap_or_default();
    wrong.extend(collect_namespace_faults(&case.order.namespace, &deployed.target_namespace, place, context));
    wrong
}

/// Every digest on the Kitchen's reject list, for this Environment, that `is_meant`.
#[must_use]
pub fn find_rejected(
    kitchen: &KitchenSpec,
    place: Option<&Place>,
    is_meant: impl Fn(&Digest) -> bool,
) -> Vec<String> {
    let here = |rejected: &&Rejection| {
        let globs = &rejected.environments;
        let names = |glob: &String| place.is_none_or(|p| WildMatch::new(glob).matches(p.name.as_str()));
        globs.is_empty() || globs.iter().any(names)
    };
    let said = |rejected: &Rejection| {
        let reason = if rejected.reason.is_empty() { "no reason given" } else { &rejected.reason };
        format!("{} is on the Kitchen's reject list: {reason}", rejected.digest)
    };
    kitchen.reject.iter().filter(here).filter(|r| is_meant(&r.digest)).map(said).collect()
}

fn format_list<T: ToString>(all: &[T]) -> String {
    if all.is_empty() { "none".into() } else { all.iter().map(T::to_string).collect::<Vec<_>>().join(", ") }
}
