//! Making a Preparation of an artifact that a pipeline pushed: its evidence is read as a promotion reads it, and what
//! is proven becomes the object.

use crate::error::{Failure, FailureKind};
use crate::evidence::artifact;
use crate::evidence::gather::gather_blocking;
use crate::evidence::keys::KeyRing;
use crate::evidence::provenance;
use crate::model::evidence::{Ask, Build, Evidence};
use crate::model::id::{Artifact, Digest, OciRepository, OrderRef, PreparationName};
use crate::model::kitchen::KitchenSpec;
use crate::model::preparation::Prepared;
use crate::model::verification::{ClaimKind, ClaimOutcome, ClaimReport};
use crate::policy::decide::prepare::{self as decided, PreparationInput};
use crate::policy::decide::verification::ArtifactQuestion;
use crate::policy::gates::evidence::{collect_basic_claims, describe_unread};
use crate::policy::gates::ready::collect_admission_faults;
use crate::policy::resolve::Case;
use crate::run::{Read, Setup};
use crate::verbs::verify::artifact::{self as verify, Named};
use oci_registry::{Answer, Reference};
use std::collections::BTreeMap;

/// What a person asks for.
#[derive(Debug, Clone)]
pub struct PrepareWish<'a> {
    /// Where the artifact is.
    pub repository: &'a OciRepository,
    /// Which one.
    pub named: Named,
    /// A name for the Preparation.
    pub name: Option<&'a PreparationName>,
    /// What it was rendered from.
    pub base: Option<Digest>,
    /// Verify nothing: everything is the caller's word.
    pub skip_evidence: bool,
}

/// A Preparation, and what is to be said besides.
#[derive(Debug, Clone)]
pub struct Made {
    /// What is written.
    pub prepared: Prepared,
    /// What was proven, for people who ask for more.
    pub proven: Vec<String>,
    /// What it lacks.
    pub warnings: Vec<Failure>,
}

/// Reads the registry, and makes a Preparation for the Order of `case`.
///
/// # Errors
/// Everything that speaks against it: the Kitchen does not let it in or was not read whole, a claim is not proven, or
/// could not be read.
pub fn make_preparation(
    setup: &Setup<'_>,
    read: &Read,
    case: &Case,
    wish: &PrepareWish<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Made, Vec<Failure>> {
    let one = |failure| vec![failure];
    let lost = verify::find_kitchen_problems(read);
    if !lost.is_empty() {
        // What did not parse may be the Kitchen, or reject this digest.
        return Err(lost);
    }
    progress("asking the registry");
    let artifact = verify::pin_artifact(setup, wish.repository, &wish.named).map_err(one)?;
    let none = KitchenSpec::default();
    let kitchen = read.world.kitchen.as_ref().map_or(&none, |k| &k.object.spec);
    check_admitted(&artifact, wish.base, case, kitchen)?;
    let (build, proven, mut warnings) = match wish.skip_evidence {
        true => (None, Vec::new(), Vec::new()),
        false => {
            progress("reading the evidence");
            let (build, proven, warnings) = read_evidence(setup, read, case, kitchen, &artifact)?;
            (Some(build), proven, warnings)
        }
    };
    let known = PreparationInput {
        artifact: &artifact,
        order: &case.order,
        annotations: &fetch_annotations(setup, &artifact).map_err(one)?,
        build: build.as_ref(),
        name: wish.name,
        base: wish.base,
        now: setup.now,
    };
    let (prepared, more) = decided::build_preparation(&known).map_err(one)?;
    warnings.extend(more);
    check_admitted(&artifact, prepared.base.as_ref().map(|base| base.digest), case, kitchen)?;
    Ok(Made { prepared, proven, warnings })
}

/// As gate Ready judges it.
fn check_admitted(
    artifact: &Artifact,
    base: Option<Digest>,
    case: &Case,
    kitchen: &KitchenSpec,
) -> Result<(), Vec<Failure>> {
    let why = collect_admission_faults(artifact, base, case.place.as_deref(), kitchen);
    if why.is_empty() {
        return Ok(());
    }
    let failure = Failure::new(FailureKind::SaysNo, "not-admitted", why.join("; "));
    Err(vec![failure.with_object(format!("artifact {artifact}"))])
}

/// What signed provenance says, once the artifact, its signature and its provenance are proven.
fn read_evidence(
    setup: &Setup<'_>,
    read: &Read,
    case: &Case,
    kitchen: &KitchenSpec,
    artifact: &Artifact,
) -> Result<(Build, Vec<String>, Vec<Failure>), Vec<Failure>> {
    let order = &case.order;
    let claims = collect_basic_claims(artifact, order).into_iter().map(|(_, claim)| claim).collect();
    let asks = [Ask { artifact: artifact.clone(), claims }];
    let ring = KeyRing::from_kitchen(kitchen);
    let facts = gather_blocking(setup.runtime, &asks, &ring, setup.registries, &setup.gather);
    let question = ArtifactQuestion {
        artifact: artifact.clone(),
        order: order.clone(),
        seal_of: None,
        asks_for_seal: false,
        demanded: None,
        remembered_seal: None,
        not_admitted: Vec::new(),
    };
    let reports = question.judge_claims(&facts, &[], setup.now);
    let required = || reports.iter().filter(|report| report.required);
    let trusted = read.world.kitchen.is_some();
    let lacking: Vec<Failure> =
        required().filter_map(|r| describe_lack(r, artifact, order, trusted)).collect();
    if !lacking.is_empty() {
        return Err(lacking);
    }
    let found = facts.artifacts.get(artifact).and_then(|facts| facts.provenance.get(order));
    let build = match found {
        Some(Evidence::Proven(proof)) => provenance::extract_build(proof),
        // Said above.
        Some(Evidence::Missing(_) | Evidence::Invalid(_) | Evidence::Unread(_)) | None => Build::default(),
    };
    let proven = required().map(|report| format!("{}: {}", report.format_title(), report.says)).collect();
    Ok((build, proven, facts.warnings))
}

/// A claim that does not stand: what it lacks says no, what could not be read says nothing.
fn describe_lack(
    report: &ClaimReport,
    artifact: &Artifact,
    order: &OrderRef,
    trusted: bool,
) -> Option<Failure> {
    let (kind, code) = match report.outcome() {
        ClaimOutcome::Proven => return None,
        ClaimOutcome::Missing => (FailureKind::SaysNo, "missing"),
        ClaimOutcome::Invalid => (FailureKind::SaysNo, "invalid"),
        ClaimOutcome::Unread => (FailureKind::Unread, "unread"),
    };
    let failure = Failure::new(kind, code, format!("{}: {}", report.format_title(), report.says));
    let failure = failure.with_object(format!("artifact {artifact}"));
    let missing = report.outcome() == ClaimOutcome::Missing;
    Some(match report.kind {
        ClaimKind::Signature if missing && !trusted => {
            failure.with_hint("no Kitchen was read: name the folder or repository that says whom you trust with --from or --repo")
        }
        ClaimKind::Signature if missing => failure.with_hint(format!("cosign sign --key KEY {artifact}")),
        ClaimKind::Provenance if missing && trusted => failure.with_hint(format!(
            "cosign attest --key KEY --type slsaprovenance1 --predicate FILE {artifact}, where \
             buildDefinition.externalParameters.order is {{\"namespace\": \"{}\", \"name\": \"{}\"}}",
            order.namespace, order.name
        )),
        ClaimKind::Artifact
        | ClaimKind::Admission
        | ClaimKind::Signature
        | ClaimKind::Provenance
        | ClaimKind::Approvals
        | ClaimKind::Check { .. }
        | ClaimKind::Promotion
        | ClaimKind::Deployment => failure,
    })
}

/// Annotations of the artifact's manifest: covered by its digest, and so by the signature.
fn fetch_annotations(setup: &Setup<'_>, artifact: &Artifact) -> Result<BTreeMap<String, String>, Failure> {
    let reference = Reference::Digest(artifact.digest);
    let failure =
        |kind, code, why: String| Failure::new(kind, code, why).with_object(format!("artifact {artifact}"));
    match setup.runtime.block_on(setup.registries.fetch_manifest(&artifact.repository, &reference)) {
        Answer::Found(manifest) => {
            let image = artifact::parse_image(&manifest)
                .map_err(|why| failure(FailureKind::SaysNo, "invalid", why))?;
            Ok(image.annotations.unwrap_or_default())
        }
        Answer::Absent => {
            Err(failure(FailureKind::SaysNo, "missing", "the registry does not have it".into()))
        }
        Answer::Unread(why) => Err(failure(FailureKind::Unread, "unread", describe_unread(&why.into()))),
    }
}
