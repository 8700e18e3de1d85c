//! Making a Preparation of an artifact that a pipeline pushed: its evidence is read as a promotion reads it, and what
//! is proven becomes the object.

use super::verify::{self, Named};
use super::{Read, Setup};
use crate::error::{Failure, Kind};
use crate::evidence::answer::{Answer, Reference};
use crate::evidence::artifact;
use crate::evidence::gather::gather_blocking;
use crate::evidence::keys::KeyRing;
use crate::evidence::provenance;
use crate::model::evidence::{Ask, Build, Evidence};
use crate::model::id::{Artifact, Digest, OciRepository, OrderRef, PreparationName};
use crate::model::kitchen::KitchenSpec;
use crate::model::preparation::Prepared;
use crate::model::verification::{ClaimKind, ClaimReport, Outcome};
use crate::policy::decide::prepare::{self as decided, Known};
use crate::policy::decide::verification::Question;
use crate::policy::gates::evidence::{basics, unread_text};
use crate::policy::gates::ready::not_admitted;
use crate::policy::resolve::Case;
use std::collections::BTreeMap;

/// What a person asks for.
#[derive(Debug, Clone)]
pub struct Wish<'a> {
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
pub fn prepare(
    setup: &Setup<'_>,
    read: &Read,
    case: &Case,
    wish: &Wish<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Made, Vec<Failure>> {
    let one = |failure| vec![failure];
    let lost = verify::kitchen_problems(read);
    if !lost.is_empty() {
        // What did not parse may be the Kitchen, or reject this digest.
        return Err(lost);
    }
    progress("asking the registry");
    let artifact = verify::pin(setup, wish.repository, &wish.named).map_err(one)?;
    let none = KitchenSpec::default();
    let kitchen = read.world.kitchen.as_ref().map_or(&none, |k| &k.object.spec);
    admitted(&artifact, wish.base, case, kitchen)?;
    let (build, proven, mut warnings) = match wish.skip_evidence {
        true => (None, Vec::new(), Vec::new()),
        false => {
            progress("reading the evidence");
            let (build, proven, warnings) = evidence(setup, read, case, kitchen, &artifact)?;
            (Some(build), proven, warnings)
        }
    };
    let known = Known {
        artifact: &artifact,
        order: &case.order,
        annotations: &annotations(setup, &artifact).map_err(one)?,
        build: build.as_ref(),
        name: wish.name,
        base: wish.base,
        now: setup.now,
    };
    let (prepared, more) = decided::preparation(&known).map_err(one)?;
    warnings.extend(more);
    admitted(&artifact, prepared.base.as_ref().map(|base| base.digest), case, kitchen)?;
    Ok(Made { prepared, proven, warnings })
}

/// As gate Ready judges it.
fn admitted(
    artifact: &Artifact,
    base: Option<Digest>,
    case: &Case,
    kitchen: &KitchenSpec,
) -> Result<(), Vec<Failure>> {
    let why = not_admitted(artifact, base, case.place.as_deref(), kitchen);
    if why.is_empty() {
        return Ok(());
    }
    let failure = Failure::new(Kind::SaysNo, "not-admitted", why.join("; "));
    Err(vec![failure.of(format!("artifact {artifact}"))])
}

/// What signed provenance says, once the artifact, its signature and its provenance are proven.
fn evidence(
    setup: &Setup<'_>,
    read: &Read,
    case: &Case,
    kitchen: &KitchenSpec,
    artifact: &Artifact,
) -> Result<(Build, Vec<String>, Vec<Failure>), Vec<Failure>> {
    let order = &case.order;
    let claims = basics(artifact, order).into_iter().map(|(_, claim)| claim).collect();
    let asks = [Ask { artifact: artifact.clone(), claims }];
    let ring = KeyRing::read(kitchen);
    let facts = gather_blocking(setup.runtime, &asks, &ring, setup.registries, &setup.gather);
    let question = Question {
        artifact: artifact.clone(),
        order: order.clone(),
        seal_of: None,
        asks_for_seal: false,
        demanded: None,
        remembered_seal: None,
        not_admitted: Vec::new(),
    };
    let reports = question.judge(&facts, &[], setup.now);
    let required = || reports.iter().filter(|report| report.required);
    let trusted = read.world.kitchen.is_some();
    let lacking: Vec<Failure> = required().filter_map(|r| lacks(r, artifact, order, trusted)).collect();
    if !lacking.is_empty() {
        return Err(lacking);
    }
    let found = facts.artifacts.get(artifact).and_then(|facts| facts.provenance.get(order));
    let build = match found {
        Some(Evidence::Proven(proof)) => provenance::build(proof),
        // Said above.
        Some(Evidence::Missing(_) | Evidence::Invalid(_) | Evidence::Unread(_)) | None => Build::default(),
    };
    let proven = required().map(|report| format!("{}: {}", report.title(), report.says)).collect();
    Ok((build, proven, facts.warnings))
}

/// A claim that does not stand: what it lacks says no, what could not be read says nothing.
fn lacks(report: &ClaimReport, artifact: &Artifact, order: &OrderRef, trusted: bool) -> Option<Failure> {
    let (kind, code) = match report.outcome() {
        Outcome::Proven => return None,
        Outcome::Missing => (Kind::SaysNo, "missing"),
        Outcome::Invalid => (Kind::SaysNo, "invalid"),
        Outcome::Unread => (Kind::Unread, "unread"),
    };
    let failure = Failure::new(kind, code, format!("{}: {}", report.title(), report.says));
    let failure = failure.of(format!("artifact {artifact}"));
    let missing = report.outcome() == Outcome::Missing;
    Some(match report.kind {
        ClaimKind::Signature if missing && !trusted => {
            failure.hint("no Kitchen was read: name the folder or repository that says whom you trust with --from or --repo")
        }
        ClaimKind::Signature if missing => failure.hint(format!("cosign sign --key KEY {artifact}")),
        ClaimKind::Provenance if missing && trusted => failure.hint(format!(
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
fn annotations(setup: &Setup<'_>, artifact: &Artifact) -> Result<BTreeMap<String, String>, Failure> {
    let reference = Reference::Digest(artifact.digest);
    let failure = |kind, code, why: String| Failure::new(kind, code, why).of(format!("artifact {artifact}"));
    match setup.runtime.block_on(setup.registries.manifest(&artifact.repository, &reference)) {
        Answer::Found(manifest) => {
            let image = artifact::image(&manifest).map_err(|why| failure(Kind::SaysNo, "invalid", why))?;
            Ok(image.annotations.unwrap_or_default())
        }
        Answer::Absent => Err(failure(Kind::SaysNo, "missing", "the registry does not have it".into())),
        Answer::Unread(why) => Err(failure(Kind::Unread, "unread", unread_text(&why))),
    }
}
