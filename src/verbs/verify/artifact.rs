//! Verifying one artifact for one Order: the trust and the demands as `plan` reads them, the evidence as a
//! promotion reads it, and the records that the repository keeps.

use crate::error::{Failure, FailureKind};
use crate::evidence::gather::gather_blocking;
use crate::evidence::keys::KeyRing;
use crate::model::evidence::{Ask, Evidence, RecordAsk};
use crate::model::id::{Artifact, Digest, OciRepository, OrderRef, PreparationName};
use crate::model::kitchen::{KitchenSpec, Role};
use crate::model::naming::build_record_path;
use crate::model::verification::{ReadFrom, TrustUsed, UsedKey, Verification, Whose};
use crate::model::world::Holds;
use crate::policy::decide::verification::{ArtifactQuestion, KeptRecord};
use crate::policy::gates::evidence::describe_unread;
use crate::policy::gates::proof;
use crate::policy::resolve;
use crate::run::{Read, Setup, records};
use bytes::Bytes;
use oci_registry::{Answer, Reference};
use std::collections::BTreeSet;

/// What a person named: a repository, and a digest or a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// Pinned.
    Digest(Digest),
    /// To be resolved, once.
    Tag(String),
}

/// The artifact that is meant.
///
/// # Errors
/// The registry has no such tag ([`FailureKind::SaysNo`]), or cannot be read.
pub fn pin_artifact(
    setup: &Setup<'_>,
    repository: &OciRepository,
    named: &Named,
) -> Result<Artifact, Failure> {
    let tag = match named {
        Named::Digest(digest) => return Ok(Artifact { repository: repository.clone(), digest: *digest }),
        Named::Tag(tag) => tag,
    };
    let reference = Reference::Tag(tag.clone());
    let failure =
        |kind, why: String| Failure::new(kind, "tag", why).with_object(format!("{repository}:{tag}"));
    match setup.runtime.block_on(setup.registries.fetch_manifest(repository, &reference)) {
        Answer::Found(manifest) => Ok(Artifact { repository: repository.clone(), digest: manifest.digest }),
        Answer::Absent => Err(failure(FailureKind::SaysNo, "the registry has no such tag".into())),
        Answer::Unread(why) => Err(failure(FailureKind::Unread, describe_unread(&why.into()))),
    }
}

/// What is verified.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Which artifact.
    pub artifact: Artifact,
    /// The tag that named it.
    pub tag: Option<String>,
    /// For which Order.
    pub order: OrderRef,
    /// The Preparation, where it was named.
    pub preparation: Option<PreparationName>,
}

/// By whose trust.
pub struct JudgingTrust<'a> {
    /// What the Kitchen says.
    pub kitchen: &'a KitchenSpec,
    /// Whose it is.
    pub whose: Whose,
    /// Where it is written.
    pub origin: Option<String>,
}

/// What was found, and what is to be said besides.
pub struct Verified {
    /// What was asked.
    pub question: ArtifactQuestion,
    /// The answers.
    pub verification: Verification,
    /// What could not be read of the inputs, and may change the answer.
    pub problems: Vec<Failure>,
    /// For people.
    pub warnings: Vec<Failure>,
}

/// Verifies by the sources' own trust, against the registry.
///
/// # Errors
/// What is asked contradicts itself, or the policies do.
pub fn verify_subject(setup: &Setup<'_>, read: &Read, subject: &Subject) -> Result<Verified, Failure> {
    let none = KitchenSpec::default();
    let loaded = read.world.kitchen.as_ref();
    let trust = JudgingTrust {
        kitchen: loaded.map_or(&none, |k| &k.object.spec),
        whose: Whose::Own,
        origin: loaded.map(|k| k.origin.make_place().to_string()),
    };
    let question = build_question(setup, read, subject, trust.kitchen)?;
    let ring = KeyRing::from_kitchen(trust.kitchen);
    let kept = read_kept(setup, read, subject, &ring);
    let mut verified = answer_question(setup, &question, &trust, &ring, &kept, subject);
    verified.problems = find_problems(read, &subject.order);
    Ok(verified)
}

/// What the sources let us ask.
///
/// # Errors
/// As [`ArtifactQuestion::from_case`].
pub fn build_question(
    setup: &Setup<'_>,
    read: &Read,
    subject: &Subject,
    kitchen: &KitchenSpec,
) -> Result<ArtifactQuestion, Failure> {
    let cases = resolve::resolve_cases(&read.world, &read.gitops, &setup.argocd_namespace);
    let case = cases.iter().find(|case| case.order == subject.order);
    ArtifactQuestion::from_case(
        case,
        kitchen,
        &subject.artifact,
        &subject.order,
        subject.preparation.as_ref(),
    )
}

/// Reads the evidence and judges it.
#[must_use]
pub fn answer_question(
    setup: &Setup<'_>,
    question: &ArtifactQuestion,
    trust: &JudgingTrust<'_>,
    ring: &KeyRing,
    kept: &[KeptRecord],
    subject: &Subject,
) -> Verified {
    let asks = [Ask { artifact: question.artifact.clone(), claims: question.collect_claims() }];
    let facts = gather_blocking(setup.runtime, &asks, ring, setup.registries, &setup.gather);
    let mut warnings = facts.warnings.clone();
    if question.demanded.is_none() {
        let unknown = Failure::new(
            FailureKind::Input,
            "order-not-read",
            "it was not read, or not where it deploys: which approvals and checks it demands is not known",
        );
        let unknown = unknown.with_object(format!("Order {}", question.order));
        warnings.push(unknown.with_hint("name a source that has it and its Environment with --from"));
    }
    Verified {
        question: question.clone(),
        verification: Verification {
            at: setup.now,
            artifact: question.artifact.clone(),
            tag: subject.tag.clone(),
            order: question.order.clone(),
            preparation: question.seal_of.as_ref().map(|of| of.preparation.clone()),
            from: ReadFrom::Registry,
            trust: collect_used_trust(trust, ring),
            demanded: question.demanded.clone(),
            claims: question.judge_claims(&facts, kept, setup.now),
        },
        problems: Vec::new(),
        warnings,
    }
}

fn collect_used_trust(trust: &JudgingTrust<'_>, ring: &KeyRing) -> TrustUsed {
    let mut keys: Vec<UsedKey> = Vec::new();
    for key in ring.keys() {
        for role in Role::ALL {
            let Some(name) = key.find_name(role) else { continue };
            let fingerprint = key.key.fingerprint();
            match keys.iter_mut().find(|k| k.name == name && k.fingerprint == fingerprint) {
                Some(known) => known.roles.push(role),
                None => keys.push(UsedKey {
                    name: name.to_owned(),
                    fingerprint: fingerprint.to_owned(),
                    roles: vec![role],
                }),
            }
        }
    }
    keys.sort_by(|a, b| (&a.name, &a.fingerprint).cmp(&(&b.name, &b.fingerprint)));
    TrustUsed {
        whose: trust.whose,
        origin: trust.origin.clone(),
        fingerprint: ring.state().fingerprint,
        keys,
    }
}

/// What the repository keeps about this artifact: the records that the Order's history names for its digest.
fn read_kept(setup: &Setup<'_>, read: &Read, subject: &Subject, ring: &KeyRing) -> Vec<KeptRecord> {
    let asks = if setup.records { collect_record_asks(read, subject) } else { BTreeSet::new() };
    records::read_records(asks, &read.snapshot, ring)
        .into_iter()
        .map(|(ask, found)| KeptRecord {
            place: "repository",
            digest: ask.bundle,
            found: match found {
                Evidence::Proven(proof) => Ok(proof),
                Evidence::Missing(looked) | Evidence::Invalid(looked) => Err(looked.why),
                Evidence::Unread(unread) => Err(describe_unread(&unread)),
            },
        })
        .collect()
}

fn collect_record_asks(read: &Read, subject: &Subject) -> BTreeSet<RecordAsk> {
    let serving = read.gitops.servings.get(&subject.order).and_then(|file| file.serving.as_ref().ok());
    let history = serving.map_or(&[][..], |serving| &serving.status.history);
    let asks = proof::collect_history_asks(&subject.order, history).into_iter();
    asks.filter(|ask| ask.artifact == subject.artifact.digest).collect()
}

/// The same records as bytes, for an evidence bundle: those whose hash is their name.
#[must_use]
pub fn read_record_files(read: &Read, subject: &Subject) -> Vec<Bytes> {
    let asks = collect_record_asks(read, subject).into_iter();
    asks.filter_map(|ask| {
        let bytes =
            read.snapshot.read_file(&build_record_path(&ask.order, &ask.bundle.format_hex())).ok()??;
        (Digest::hash_bytes(&bytes) == ask.bundle).then(|| bytes.into())
    })
    .collect()
}

/// What was not read whole and may be the Kitchen, a policy or a check.
pub(super) fn find_problems(read: &Read, order: &OrderRef) -> Vec<Failure> {
    filter_problems(read, |holds| match holds {
        Holds::Nothing => false,
        Holds::Orders(orders) => orders.contains(order),
        Holds::Everything => true,
    })
}

/// What was not read whole and may be the Kitchen.
#[must_use]
pub fn find_kitchen_problems(read: &Read) -> Vec<Failure> {
    filter_problems(read, |holds| match holds {
        Holds::Nothing | Holds::Orders(_) => false,
        Holds::Everything => true,
    })
}

fn filter_problems(read: &Read, count: impl Fn(&Holds) -> bool) -> Vec<Failure> {
    let all = read.world.problems.iter().chain(&read.gitops.problems);
    all.filter(|problem| count(&problem.holds)).map(|problem| problem.failure.clone()).collect()
}
