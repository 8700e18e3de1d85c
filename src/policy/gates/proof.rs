//! Proof of what ran where: history is a claim, signed records are proof (`docs/design/promotion.md#status-is-a-claim`).
//!
//! A history entry counts when the records that it names are in the repository, verify by a key trusted for
//! records, and say the same: Order, Environment, Preparation, digest and times. Where a repository keeps no
//! records (`--no-records`) history is taken at its word, and every answer says so.

use super::Context;
use super::soak::SoakRun;
use crate::model::evidence::{Evidence, Facts, Proof, RecordAsk};
use crate::model::id::{
    Artifact, ClusterName, Digest, EnvironmentName, Namespace, OrderName, OrderRef, PreparationName,
};
use crate::model::reason::Ended;
use crate::model::serving::HistoryEntry;
use crate::model::time::{SKEW, Time};
use crate::model::verdict::EvidenceRef;
use crate::policy::resolve::Case;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Predicate type of promotion records.
pub(crate) const PROMOTION: &str = "https://kokumi.dev/attestations/promotion/v1";
/// Predicate type of deployment records.
pub(crate) const DEPLOYMENT: &str = "https://kokumi.dev/attestations/deployment/v1";

/// What a promotion record says, as far as it is compared.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromotionSays {
    order: NamedRef<OrderName>,
    environment: EnvironmentName,
    preparation: NamedRef<PreparationName>,
    base_digest: Option<Digest>,
    previous: Option<PreviousSays>,
    promoted_time: Time,
    target_namespace: Option<Namespace>,
    #[serde(default)]
    clusters: Vec<PromotedTo>,
}

/// A Cluster that a promotion went to.
#[derive(Debug, Clone, Deserialize)]
pub struct PromotedTo {
    /// Its name.
    pub name: ClusterName,
    /// Its API server then; absent in records of older builds.
    pub server: Option<String>,
}

/// What a deployment record says, as far as it is compared.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeploymentSays {
    order: NamedRef<OrderName>,
    environment: EnvironmentName,
    preparation: NamedRef<PreparationName>,
    promotion_record: RecordSays,
    first_healthy_time: Time,
    ended_time: Option<Time>,
    ended_reason: Option<Ended>,
}

#[derive(Debug, Deserialize)]
struct NamedRef<N> {
    namespace: Namespace,
    name: N,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PreviousSays {
    digest: Digest,
    /// Absent in records of older builds.
    first_healthy_time: Option<Time>,
    healthy_until: Option<Time>,
}

#[derive(Debug, Deserialize)]
struct RecordSays {
    digest: Digest,
}

/// The records that an Order's history names, for [`Facts::records`].
pub fn collect_history_asks(order: &OrderRef, history: &[HistoryEntry]) -> Vec<RecordAsk> {
    let ask = |bundle: &Digest, entry: &HistoryEntry| RecordAsk {
        order: order.clone(),
        bundle: *bundle,
        artifact: entry.digest,
    };
    history
        .iter()
        .flat_map(|entry| {
            entry.promotion_record.iter().chain(&entry.deployment_record).map(move |b| ask(b, entry))
        })
        .collect()
}

/// One history entry, and what proves it.
#[derive(Debug, Clone, PartialEq)]
pub struct Proven {
    /// Its times, as the records say them.
    pub run: SoakRun,
    /// The Preparation.
    pub preparation: PreparationName,
    /// Its artifact.
    pub digest: Digest,
    /// What it was rendered from, as the promotion record says.
    pub base_digest: Option<Digest>,
    /// Where.
    pub environment: Option<EnvironmentName>,
    /// The records; none where history is taken at its word.
    pub evidence: Vec<EvidenceRef>,
}

/// Judges one entry of `history` (newest first). `observed`: since when this run itself sees the newest one
/// healthy, which is what is deployed; that is no claim.
///
/// # Errors
/// Why it is not proven.
pub fn prove_entry(
    order: &OrderRef,
    history: &[HistoryEntry],
    at: usize,
    observed: Option<Time>,
    facts: &Facts,
    context: &Context,
) -> Result<Proven, String> {
    let claim = &history[at];
    let ended = claim.ended_time.zip(claim.ended_reason);
    let newer = find_newer_promotion(history, at);
    let mut proven = Proven {
        run: SoakRun {
            promoted: claim.promoted_time,
            first_healthy: claim.first_healthy_time,
            ended,
            healthy_until: claim.healthy_until,
        },
        preparation: claim.preparation_name.clone(),
        digest: claim.digest,
        base_digest: claim.base_digest,
        environment: claim.environment.clone(),
        evidence: Vec::new(),
    };
    if let (None, Some(newer)) = (ended, newer) {
        // Only the newest can still run.
        proven.run.ended = Some((newer.promoted_time, Ended::Superseded));
    }
    if context.records {
        prove_records(order, history, at, facts, &mut proven)?;
    }
    if at == 0 && proven.run.ended.is_none() && proven.run.first_healthy.is_none() {
        proven.run.first_healthy = observed;
    }
    Ok(proven)
}

/// The promotion that came after that of `history[at]`: a recovery is no new promotion.
fn find_newer_promotion(history: &[HistoryEntry], at: usize) -> Option<&HistoryEntry> {
    let own = &history[at];
    history[..at].iter().rev().find(|e| e.promoted_time != own.promoted_time || e.digest != own.digest)
}

fn prove_records(
    order: &OrderRef,
    history: &[HistoryEntry],
    at: usize,
    facts: &Facts,
    proven: &mut Proven,
) -> Result<(), String> {
    let claim = &history[at];
    let (proof, promotion) = prove_promotion(order, claim, facts)?;
    proven.base_digest = promotion.base_digest;
    proven.evidence.push(make_reference(order, proof));
    let Some(promotion_bundle) = claim.promotion_record else { return Err("it names no record".into()) };

    // Every deployment record of this promotion that can be read: a Degraded end in one of them is an end,
    // whatever history says now.
    let mut healthy = None;
    for ask in history.iter().filter(|e| e.promotion_record == Some(promotion_bundle)) {
        let Some(bundle) = ask.deployment_record else { continue };
        let Ok((proof, says)) = find_record::<DeploymentSays>(order, bundle, claim.digest, DEPLOYMENT, facts)
        else {
            continue;
        };
        let same = says.order.namespace == order.namespace
            && says.order.name == order.name
            && Some(&says.environment) == claim.environment.as_ref()
            && says.preparation.name == claim.preparation_name
            && says.preparation.namespace == order.namespace
            && says.promotion_record.digest == promotion_bundle
            && Some(says.first_healthy_time) == claim.first_healthy_time;
        if !same {
            continue;
        }
        if says.ended_reason == Some(Ended::Degraded) {
            let ended = says.ended_time.unwrap_or(says.first_healthy_time);
            proven.run.ended = Some((ended, Ended::Degraded));
        }
        healthy = Some(make_reference(order, proof));
    }
    match healthy {
        Some(reference) => proven.evidence.push(reference),
        None if claim.first_healthy_time.is_some() && (at > 0 || proven.run.ended.is_some()) => {
            return Err("no signed deployment record says that it was healthy".into());
        }
        // What this run itself sees of it may stand in.
        None => proven.run.first_healthy = None,
    }
    if let Some((ended, Ended::Superseded)) = proven.run.ended {
        let Some(newer) = find_newer_promotion(history, at) else {
            return Err(format!("its history says that it was superseded at {ended}, by nothing"));
        };
        let (proof, next) = self::prove_promotion(order, newer, facts)
            .map_err(|why| format!("what superseded it at {ended} is not proven: {why}"))?;
        let before = next.previous.filter(|p| p.digest == claim.digest && next.promoted_time == ended);
        let Some(before) = before else {
            return Err(format!("the record of the next promotion does not say that it ended at {ended}"));
        };
        if let Some(since) = proven.run.first_healthy {
            // The run that signed it writes until when for everything healthy that it supersedes.
            if before.healthy_until.is_none() {
                return Err(format!(
                    "the record of the next promotion does not say that it was healthy when it ended at {ended}"
                ));
            }
            if let Some(signed) = before.first_healthy_time.filter(|signed| *signed != since) {
                return Err(format!(
                    "the record of the next promotion says that what ended at {ended} was healthy since {signed}, not since {since}"
                ));
            }
        }
        // How long it was seen healthy is the record's word, not history's.
        proven.run.healthy_until = before.healthy_until;
        proven.evidence.push(make_reference(order, proof));
    }
    Ok(())
}

fn prove_promotion<'f>(
    order: &OrderRef,
    claim: &HistoryEntry,
    facts: &'f Facts,
) -> Result<(&'f Proof, PromotionSays), String> {
    let Some(bundle) = claim.promotion_record else {
        return Err(format!("its entry of {} names no promotion record", claim.promoted_time));
    };
    let (proof, says) = find_record::<PromotionSays>(order, bundle, claim.digest, PROMOTION, facts)?;
    let differs = |what: &str| {
        Err(format!("the signed promotion record {} names another {what}", bundle.format_short()))
    };
    if says.order.namespace != order.namespace || says.order.name != order.name {
        return differs("Order");
    }
    if Some(&says.environment) != claim.environment.as_ref() {
        return differs("Environment");
    }
    if says.preparation.name != claim.preparation_name || says.preparation.namespace != order.namespace {
        return differs("Preparation");
    }
    if says.promoted_time != claim.promoted_time {
        return differs("time");
    }
    Ok((proof, says))
}

fn find_record<'f, T: DeserializeOwned>(
    order: &OrderRef,
    bundle: Digest,
    artifact: Digest,
    predicate_type: &str,
    facts: &'f Facts,
) -> Result<(&'f Proof, T), String> {
    let short = bundle.format_short();
    let ask = RecordAsk { order: order.clone(), bundle, artifact };
    let proof = match facts.records.get(&ask) {
        Some(Evidence::Proven(proof)) => proof,
        Some(Evidence::Missing(looked) | Evidence::Invalid(looked)) => {
            return Err(format!("record {short}: {}", looked.why));
        }
        Some(Evidence::Unread(unread)) => return Err(format!("record {short}: {}", unread.why)),
        None => return Err(format!("record {short} was not read")),
    };
    let statement = proof.statement.as_ref().filter(|s| s.predicate_type == predicate_type);
    let statement = statement.ok_or_else(|| format!("record {short} is of another type"))?;
    let says = T::deserialize(&statement.predicate).map_err(|e| format!("record {short}: {e}"))?;
    Ok((proof, says))
}

fn make_reference(order: &OrderRef, proof: &Proof) -> EvidenceRef {
    EvidenceRef {
        kind: "record".into(),
        name: order.to_string(),
        digest: Some(proof.digest),
        uri: String::new(),
        key: proof.key.clone(),
    }
}

/// What the signed record says of the promotion of what is deployed.
#[derive(Debug, Clone)]
pub struct Promoted {
    /// Where it went.
    pub clusters: Vec<PromotedTo>,
    /// What it was rendered from.
    pub base_digest: Option<Digest>,
}

/// Proves what the Serving says is deployed: the newest entry of its history names it, and that entry's signed
/// promotion record says the same of Order, Environment, Preparation, artifact and target namespace. An older
/// promotion has its record, too: no signed record in the Order's folder may be of a later one.
///
/// # Errors
/// Why it is not proven.
pub fn prove_deployed(case: &Case, facts: &Facts) -> Result<Promoted, String> {
    let Some(deployed) = &case.deployed else { return Err("nothing is deployed".into()) };
    let history = case.serving.as_deref().map_or(&[][..], |s| s.status.history.as_slice());
    let Some(newest) = history.first() else { return Err("its history has no entry of it".into()) };
    if newest.digest != deployed.artifact.digest
        || newest.preparation_name != deployed.preparation
        || newest.environment.as_ref() != Some(&deployed.environment)
    {
        return Err(format!(
            "the newest entry of its history is of {} ({})",
            newest.preparation_name,
            newest.digest.format_short()
        ));
    }
    if let Some(later) = history.iter().find(|e| e.promoted_time > newest.promoted_time.add_span(SKEW)) {
        return Err(format!(
            "its history is out of order: {} was promoted later, at {}",
            later.preparation_name, later.promoted_time
        ));
    }
    if let Some(ended) = newest.ended_reason.filter(|reason| *reason != Ended::Degraded) {
        return Err(format!("the newest entry of its history says that it ended: {}", ended.as_str()));
    }
    if let Some(later) = find_cut_promotion(&case.order, history, newest.promoted_time, facts) {
        return Err(format!(
            "its history was cut: a signed record says that {} was promoted later, at {}",
            later.preparation.name, later.promoted_time
        ));
    }
    let (proof, says) = prove_promotion(&case.order, newest, facts)?;
    let subject = proof.statement.as_ref().and_then(|s| s.subject.as_deref());
    let of = subject.map(Artifact::parse).and_then(Result::ok);
    if of.as_ref() != Some(&deployed.artifact) {
        return Err(format!(
            "its signed promotion record is of {}",
            subject.unwrap_or("an artifact without a repository")
        ));
    }
    let namespace = &deployed.target_namespace;
    let same_namespace = match &says.target_namespace {
        Some(signed) => signed == namespace,
        // By an older build: what the Applications in git say goes on, and nothing else is new.
        None => *namespace == case.order.namespace || is_in_git(case, namespace),
    };
    if !same_namespace {
        let signed = says.target_namespace.map_or("no".to_owned(), |n| n.to_string());
        return Err(format!("its signed promotion record names {signed} target namespace"));
    }
    Ok(Promoted { clusters: says.clusters, base_digest: says.base_digest })
}

/// A promotion of this Order that came after the newest of its `history`, by a signed record. One that history
/// names may be of a runner whose clock was ahead.
fn find_cut_promotion(
    order: &OrderRef,
    history: &[HistoryEntry],
    newest: Time,
    facts: &Facts,
) -> Option<PromotionSays> {
    let kept = facts.find_records(order).filter_map(|ask| {
        let (_, says) =
            find_record::<PromotionSays>(order, ask.bundle, ask.artifact, PROMOTION, facts).ok()?;
        let is_named = history.iter().any(|e| e.promotion_record == Some(ask.bundle));
        let is_later = says.promoted_time > if is_named { newest.add_span(SKEW) } else { newest };
        let is_own = says.order.namespace == order.namespace && says.order.name == order.name;
        (is_own && is_later).then_some(says)
    });
    kept.max_by_key(|says| says.promoted_time)
}

fn is_in_git(case: &Case, namespace: &Namespace) -> bool {
    let applications = case.owned.values().filter_map(|file| file.application.as_ref().ok());
    applications.filter_map(|a| a.spec.destination.namespace.as_deref()).any(|n| n == namespace.as_str())
}

/// When this Order promoted this artifact in this Environment before, and the record that proves it.
#[must_use]
pub fn prove_earlier_run(
    case: &Case,
    artifact: &Artifact,
    facts: &Facts,
    context: &Context,
) -> Option<(Time, Vec<EvidenceRef>)> {
    find_entries_here(case, artifact).find_map(|(_, entry)| {
        if !context.records {
            return Some((entry.promoted_time, Vec::new()));
        }
        let (proof, says) = prove_promotion(&case.order, entry, facts).ok()?;
        Some((says.promoted_time, vec![make_reference(&case.order, proof)]))
    })
}

/// Whether this artifact was healthy here before, proven.
#[must_use]
pub fn prove_healthy_run(
    case: &Case,
    artifact: &Artifact,
    facts: &Facts,
    context: &Context,
) -> Option<Proven> {
    let history = case.serving.as_deref().map_or(&[][..], |s| s.status.history.as_slice());
    find_entries_here(case, artifact)
        .filter_map(|(at, _)| prove_entry(&case.order, history, at, None, facts, context).ok())
        .find(|p| p.run.first_healthy.is_some_and(|since| since <= context.now))
}

fn find_entries_here<'a>(
    case: &'a Case,
    artifact: &'a Artifact,
) -> impl Iterator<Item = (usize, &'a HistoryEntry)> {
    let history = case.serving.as_deref().map_or(&[][..], |s| s.status.history.as_slice());
    let place = case.place.as_ref().map(|p| &p.name);
    history
        .iter()
        .enumerate()
        .filter(move |(_, e)| e.digest == artifact.digest && place.is_some())
        .filter(move |(_, e)| e.environment.as_ref().is_none_or(|name| Some(name) == place))
}

/// When this deployment ended Degraded, by a signed record among `records` (those on its artifact).
#[must_use]
pub fn find_degraded_end(order: &OrderRef, run: &Proven, records: &[Proof]) -> Option<Time> {
    records
        .iter()
        .filter_map(|proof| proof.statement.as_ref())
        .filter(|statement| statement.predicate_type == DEPLOYMENT)
        .filter_map(|statement| DeploymentSays::deserialize(&statement.predicate).ok())
        .filter(|says| {
            says.order.namespace == order.namespace
                && says.order.name == order.name
                && Some(&says.environment) == run.environment.as_ref()
                && Some(says.first_healthy_time) == run.run.first_healthy
                && says.ended_reason == Some(Ended::Degraded)
        })
        .map(|says| says.ended_time.unwrap_or(says.first_healthy_time))
        .max()
}
