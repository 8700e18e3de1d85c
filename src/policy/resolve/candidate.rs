//! Which Preparation could be promoted (`docs/design/promotion.md#which-preparation-is-promoted`).

use super::newest::{Newest, find_newest};
use super::{Case, DeployedNow, check_preparation, make_input_failure};
use crate::error::Failure;
use crate::model::id::{Artifact, Namespace, PreparationName};
use crate::model::order::{Mode, Order};
use crate::model::plan::Candidate;
use crate::model::preparation::Preparation;
use crate::model::world::{Loaded, World};
use std::collections::BTreeMap;

/// Sets `newest`, `candidate`, the candidate's problems, and errors of the request.
pub(super) fn choose_candidate(case: &mut Case, order: &Loaded<Order>, world: &World) {
    let ready: BTreeMap<&PreparationName, &Loaded<Preparation>> =
        case.preparations.iter().filter(|(_, l)| check_preparation(l).is_ok()).collect();
    let latest = order.object.status.as_ref().and_then(|s| s.latest_preparation_name.as_deref());
    case.newest = find_newest(&ready, latest);
    check_deployed(case);
    let name = match case.mode {
        Mode::Manual => choose_manual(case, world),
        Mode::Automatic => choose_automatic(case, order),
    };
    let Some(name) = name else { return };
    let Some(loaded) = case.preparations.get(&name).cloned() else { return };
    match build_candidate(&loaded, &case.order.namespace) {
        Ok(candidate) => {
            if let Err(why) = check_preparation(&loaded) {
                case.candidate_faults.push(format!("Preparation {name} is not Ready: {why}"));
            }
            if !loaded.object.spec.artifact.signed {
                case.candidate_faults.push(format!(
                    "Preparation {name} does not say artifact.signed: true; its renderer does not sign, or has not signed yet"
                ));
            }
            case.candidate = Some(candidate);
        }
        Err(failure) => case.errors.push(failure),
    }
}

/// Changed content under the same name is an error, because what is deployed is rendered from the Serving
/// only.
fn check_deployed(case: &mut Case) {
    let Some(deployed) = &case.deployed else { return };
    let Some(loaded) = case.preparations.get(&deployed.preparation) else { return };
    let artifact = &loaded.object.spec.artifact;
    if artifact.digest != deployed.artifact.digest {
        let failure = make_input_failure(
            loaded,
            format!("Preparation {}/{}", case.order.namespace, deployed.preparation),
            "changed-content",
            format!(
                "its artifact is now {}, but {} is deployed under this name; a Preparation never changes",
                artifact.digest, deployed.artifact.digest
            ),
        )
        .with_field("spec.artifact.digest")
        .with_hint("create a new Preparation for the new content");
        case.errors.push(failure);
    }
}

/// The one that the Serving names, unless it is what is deployed here.
fn choose_manual(case: &mut Case, world: &World) -> Option<PreparationName> {
    let serving = case.serving.clone()?;
    let wanted = serving.spec.preparation_name.as_ref()?;
    if case.is_at_home() && case.deployed.as_ref().is_some_and(|d| d.preparation == *wanted) {
        return None;
    }
    if case.preparations.contains_key(wanted) {
        return Some(wanted.clone());
    }
    let elsewhere = world.preparations.get(&(case.order.namespace.clone(), wanted.clone()));
    let failure = match elsewhere {
        Some(other) => Failure::new_input(
            "foreign-preparation",
            format!(
                "it asks for Preparation {wanted}, which belongs to Order {}",
                other.object.spec.order_name
            ),
        ),
        None if case.deployed.as_ref().is_some_and(|d| d.preparation == *wanted) => Failure::new_input(
            "unknown-preparation",
            format!(
                "the Order moved to another Environment, and Preparation {wanted}, which must be promoted anew there, does not exist any more"
            ),
        ),
        None => Failure::new_input(
            "unknown-preparation",
            format!("it asks for Preparation {wanted}, which does not exist"),
        ),
    };
    case.errors.push(
        failure
            .with_object(format!("Serving {}", case.order))
            .with_place(crate::error::At::from_file(crate::model::naming::build_serving_path(&case.order)))
            .with_field("spec.preparationName")
            .with_hint(format!("expedite withdraw {} takes the request back", case.order)),
    );
    None
}

/// The newest Ready Preparation, unless it is older than what is deployed or ran here before.
fn choose_automatic(case: &mut Case, order: &Loaded<Order>) -> Option<PreparationName> {
    let name = match &case.newest {
        Newest::None => return None,
        Newest::Unclear(names) => {
            let list: Vec<&str> = names.iter().map(PreparationName::as_str).collect();
            let failure = make_input_failure(
                order,
                case.format_order(),
                "newest-unclear",
                format!(
                    "cannot determine which Preparation is the newest: creation times are missing or equal, and parentDigest gives no single tip; candidates: {}",
                    list.join(", ")
                ),
            )
            .with_hint("give the Preparations creationTimestamps or a parentDigest chain, or switch the Order to Manual and promote one");
            case.errors.push(failure);
            return None;
        }
        Newest::One(name) => name.clone(),
    };
    let loaded = case.preparations.get(&name)?;
    if let Some(deployed) = &case.deployed
        && case.is_at_home()
    {
        if deployed.preparation == name || deployed.artifact.digest == loaded.object.spec.artifact.digest {
            return None;
        }
        let age = |l: &Loaded<Preparation>| l.object.metadata.creation_timestamp;
        if let Some(running) = case.preparations.get(&deployed.preparation)
            && let (Some(old), Some(new)) = (age(running), age(loaded))
            && new <= old
        {
            return None;
        }
        if let Some(why) = check_age(case, deployed, loaded) {
            case.warnings.push(why);
            return None;
        }
    }
    let ran = case.serving.iter().flat_map(|s| &s.status.history).any(|e| {
        let here = case.place.as_ref().map(|p| &p.name);
        (e.preparation_name == name || e.digest == loaded.object.spec.artifact.digest)
            && (e.environment.is_none() || e.environment.as_ref() == here)
    });
    (!ran).then_some(name)
}

/// If the Preparation of what is deployed does not exist any more, its age is unknown. Then the candidate is
/// newer if it was made from that Preparation, or after that was promoted.
fn check_age(case: &Case, deployed: &DeployedNow, candidate: &Loaded<Preparation>) -> Option<Failure> {
    if case.preparations.contains_key(&deployed.preparation) {
        return None;
    }
    let preparation = &candidate.object;
    let promoted = case.serving.as_ref()?.status.history.first().map(|entry| entry.promoted_time);
    let is_later = promoted.zip(preparation.metadata.creation_timestamp).is_some_and(|(p, c)| c > p);
    if is_later || preparation.spec.parent_digest == Some(deployed.artifact.digest) {
        return None;
    }
    let name = &preparation.metadata.name;
    let cause = format!(
        "Preparation {}, which is deployed, is gone, and nothing says that {name} is newer: it was not made from it, nor after it was promoted",
        deployed.preparation
    );
    let hint = format!("restore it, or switch to Manual and promote {name}");
    Some(make_input_failure(candidate, case.format_order(), "age-unknown", cause).with_hint(hint))
}

/// What a promotion of this Preparation would pin.
///
/// # Errors
/// `ociRef` is not a pinned reference, or its digest differs from `artifact.digest`.
pub fn build_candidate(loaded: &Loaded<Preparation>, namespace: &Namespace) -> Result<Candidate, Failure> {
    let preparation = &loaded.object;
    let what = || format!("Preparation {namespace}/{}", preparation.metadata.name);
    let spec = &preparation.spec;
    let wrong = |cause: String| {
        make_input_failure(loaded, what(), "bad-oci-ref", cause)
            .with_field("spec.artifact.ociRef")
            .with_hint("write oci://<registry>/<repository>@<artifact.digest>")
    };
    let artifact = Artifact::parse(&spec.artifact.oci_ref).map_err(|e| wrong(e.to_string()))?;
    if artifact.digest != spec.artifact.digest {
        return Err(wrong(format!(
            "it names {}, but artifact.digest is {}",
            artifact.digest, spec.artifact.digest
        )));
    }
    let name = PreparationName::parse(&preparation.metadata.name)
        .map_err(|e| make_input_failure(loaded, what(), "bad-name", e.to_string()))?;
    Ok(Candidate {
        name,
        artifact,
        base_digest: spec.source.as_ref().and_then(|s| s.base_digest),
        target_namespace: spec.target_namespace.clone().unwrap_or_else(|| namespace.clone()),
        uid: preparation.metadata.uid.clone(),
        commit_message: spec.commit_message.clone(),
        created: preparation.metadata.creation_timestamp,
    })
}
