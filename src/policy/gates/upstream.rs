//! Gate 2, Upstream: every upstream stage has run this change and was healthy for its soak.
//!
//! *The same change* is the same artifact digest; or the same base digest, where the candidate's signed
//! provenance lists that digest among what it was made from. What ran upstream is judged by signed records
//! and by what this run observes, never by history alone.

use super::proof::{self, Proven};
use super::soak::{Soak, judge_soak};
use super::{Context, evidence, find_facts};
use crate::model::evidence::{Claim, Evidence, Facts, Unread};
use crate::model::id::{Artifact, Digest};
use crate::model::plan::Candidate;
use crate::model::serving::HistoryEntry;
use crate::model::time::{Span, Time};
use crate::model::verdict::{EvidenceRef, For, GateName, GateOutcome, Verdict};
use crate::policy::resolve::Case;
use crate::policy::resolve::history;
use crate::policy::resolve::observe::{self, Health};
use crate::policy::resolve::stage::{Stage, is_claimed_same};

const GATE: GateName = GateName::Upstream;

/// The provenance that links a base digest to the candidate, and the records on the artifacts that ran
/// upstream: they still contain a Degraded end that was removed from the repository.
#[must_use]
pub fn collect_claims(case: &Case) -> Vec<(Artifact, Claim)> {
    let Some(candidate) = case.candidate.as_ref().filter(|_| !case.stages.is_empty()) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    if needs_base_link(case, candidate) {
        all.push((candidate.artifact.clone(), Claim::Provenance(case.order.clone())));
    }
    for stage in &case.stages {
        all.extend(stage.artifacts.values().map(|artifact| (artifact.clone(), Claim::Records)));
    }
    all.sort();
    all.dedup();
    all
}

fn get_entries(stage: &Stage) -> &[HistoryEntry] {
    stage.serving.as_deref().map_or(&[], |s| s.status.history.as_slice())
}

/// Whether a stage cannot pass even if records and provenance prove everything that is claimed.
#[must_use]
pub fn cannot_pass(case: &Case, context: &Context) -> bool {
    let Some(candidate) = &case.candidate else { return true };
    if case.has_run_before(&candidate.artifact) {
        return false;
    }
    let trusting = Context { records: false, ..context.clone() };
    case.stages.iter().any(|stage| {
        let answer = prove_stage(stage, candidate, candidate.base_digest, &Facts::default(), &trusting);
        !matches!(answer.soak, Soak::Passed { .. })
    })
}

/// Judges all stages; the message contains the state of each.
#[must_use]
pub fn judge_upstream(case: &Case, facts: &Facts, context: &Context) -> Verdict {
    let Some(candidate) = &case.candidate else { return Verdict::make_failed(GATE, "there is no candidate") };
    if case.stages.is_empty() && case.demands.upstream.is_empty() {
        return Verdict::make_passed(GATE, "no upstream stages");
    }
    if case.stages.len() < case.demands.upstream.len() {
        return Verdict::make_failed(
            GATE,
            "an upstream stage is an error of the input; see the Order's errors",
        );
    }
    if !context.records && !context.assumed && case.needs_approvals() {
        return Verdict::make_failed(
            GATE,
            "this repository keeps no signed records, and an approval policy applies: history alone does not pass this gate",
        );
    }
    if let Some((promoted, evidence)) = proof::prove_earlier_run(case, &candidate.artifact, facts, context) {
        let message = format!("this artifact ran here before, promoted at {promoted}");
        let mut verdict = Verdict::make_passed(GATE, message);
        verdict.evidence = evidence;
        verdict.parameters = build_parameters(case);
        return verdict;
    }
    let answers: Vec<JudgedStage> =
        case.stages.iter().map(|stage| judge_stage(case, candidate, stage, facts, context)).collect();
    let mut verdict = Verdict::make_passed(GATE, describe_answers(&answers, context));
    verdict.outcome = sum_outcome(&answers);
    verdict.unread = answers.iter().any(|a| a.unread);
    verdict.evidence = answers.into_iter().flat_map(|a| a.evidence).collect();
    verdict.parameters = build_parameters(case);
    verdict
}

/// The stages that do not pass, at the context's clock.
#[must_use]
pub fn find_holding_stages<'c>(case: &'c Case, facts: &Facts, context: &Context) -> Vec<&'c Stage> {
    let Some(candidate) = &case.candidate else { return Vec::new() };
    let holds =
        |stage: &&Stage| judge_stage(case, candidate, stage, facts, context).outcome != GateOutcome::Passed;
    case.stages.iter().filter(holds).collect()
}

/// Whether two candidates claim to be the same change.
#[must_use]
pub fn is_same_change(one: &Candidate, other: &Candidate) -> bool {
    one.artifact.digest == other.artifact.digest
        || (one.base_digest.is_some() && one.base_digest == other.base_digest)
}

struct JudgedStage {
    outcome: GateOutcome,
    message: String,
    evidence: Vec<EvidenceRef>,
    unread: bool,
}

/// The first stage that needs something other than time; else the one with the latest instant; else all pass.
fn sum_outcome(answers: &[JudgedStage]) -> GateOutcome {
    let waits = |a: &&JudgedStage| a.outcome != GateOutcome::Passed;
    let until = answers.iter().filter_map(|a| match &a.outcome {
        GateOutcome::Waiting(For::Instant(time)) => Some(*time),
        GateOutcome::Waiting(_) | GateOutcome::Passed | GateOutcome::Failed => None,
    });
    let other = answers
        .iter()
        .filter(waits)
        .find(|a| !matches!(a.outcome, GateOutcome::Waiting(For::Instant(_))))
        .map(|a| a.outcome.clone());
    other
        .or_else(|| until.max().map(|t| GateOutcome::Waiting(For::Instant(t))))
        .unwrap_or(GateOutcome::Passed)
}

fn describe_answers(answers: &[JudgedStage], context: &Context) -> String {
    let mut all: Vec<&str> = answers.iter().map(|a| a.message.as_str()).collect();
    if !context.records && !context.assumed {
        all.push("judged by history alone: this repository keeps no signed records");
    }
    all.join("; ")
}

fn build_parameters(case: &Case) -> serde_json::Value {
    let stages: Vec<_> =
        case.stages.iter().map(|s| serde_json::json!({"order": s.order, "soak": s.soak})).collect();
    serde_json::json!({"upstream": stages})
}

/// The state of the same change on one stage.
struct StageAnswer {
    soak: Soak,
    /// The deployment that decides, if one passed.
    run: Option<Proven>,
    /// Why deployments of the change, by history, did not count.
    unproven: Vec<String>,
}

/// `base`: a deployment with this base digest counts as the same change, too.
fn prove_stage(
    stage: &Stage,
    candidate: &Candidate,
    base: Option<Digest>,
    facts: &Facts,
    context: &Context,
) -> StageAnswer {
    let same =
        |run: &Proven| run.digest == candidate.artifact.digest || (base.is_some() && run.base_digest == base);
    let health = match &stage.deployed {
        Some(deployed) => {
            observe::observe_deployed(deployed, get_entries(stage), stage.seen.as_deref(), context.now)
        }
        None => Health::NotObserved,
    };
    let steady = match &health {
        Health::Deployed { now, .. } => *now,
        Health::Degraded { .. } | Health::Deploying { .. } | Health::NotObserved => None,
    };
    // What this run observes needs no proof, so it counts in this run.
    let history = history::record_observation(get_entries(stage), &health);
    let mut unproven = Vec::new();
    let mut runs = Vec::new();
    for at in 0..history.len() {
        match proof::prove_entry(&stage.order, &history, at, steady.map(|s| s.since), facts, context) {
            Ok(proven) if same(&proven) => runs.push(proven),
            Ok(_) => {}
            Err(why) if is_claimed_same(candidate, &history[at]) => unproven.push(why),
            Err(_) => {}
        }
    }
    let seen = steady.map(|s| if context.foreseen { s.reconciled.max(context.now) } else { s.reconciled });
    let answer = judge_soak(&runs.iter().map(|r| r.run).collect::<Vec<_>>(), stage.soak, seen, context.now);
    let run = runs.into_iter().find(|r| match answer {
        Soak::Passed { first_healthy, .. } => {
            r.run.first_healthy.map(|t| t.max(r.run.promoted)) == Some(first_healthy)
        }
        _ => false,
    });
    StageAnswer { soak: answer, run, unproven }
}

fn judge_stage(
    case: &Case,
    candidate: &Candidate,
    stage: &Stage,
    facts: &Facts,
    context: &Context,
) -> JudgedStage {
    let order = &stage.order;
    let waiting = |what: For, message: String| JudgedStage {
        outcome: GateOutcome::Waiting(what),
        message,
        evidence: Vec::new(),
        unread: false,
    };
    if let Some(why) = &stage.unreadable {
        return waiting(For::Order(order.clone()), format!("{order} cannot be read: {why}"));
    }
    let link = find_base_link(case, candidate, facts);
    let base = match link {
        Link::Listed(base) => Some(base),
        // It was not read, because the stage cannot pass anyway; the claims say why.
        Link::NotRead => candidate.base_digest,
        Link::Unlisted => None,
        Link::Unread(unread) => {
            return JudgedStage {
                unread: true,
                ..waiting(For::Registry, format!("provenance of the candidate: {}", describe_unread(unread)))
            };
        }
    };
    let claimed: Vec<&HistoryEntry> =
        get_entries(stage).iter().filter(|e| is_claimed_same(candidate, e)).collect();
    let found = prove_stage(stage, candidate, base, facts, context);
    let soaked = match stage.soak {
        Span::ZERO => String::new(),
        span => format!(" for {span}"),
    };
    match found.soak {
        Soak::Passed { first_healthy, complete } => {
            let Some(run) = found.run else {
                return waiting(For::Order(order.clone()), format!("{order}: no deployment to show"));
            };
            if run.digest != candidate.artifact.digest && matches!(link, Link::NotRead) {
                let message = "the candidate's provenance was not read in this run: another gate holds";
                return waiting(For::AnotherGate, format!("{order}: {message}"));
            }
            match find_forgotten_end(stage, &run, facts) {
                Ok(None) => make_passed(stage, run, first_healthy, complete),
                Ok(Some(ended)) => waiting(
                    For::Order(order.clone()),
                    format!(
                        "{order} ran this change, and a signed record on the artifact says that it ended Degraded at {ended}, which its history does not"
                    ),
                ),
                Err(unread) => JudgedStage {
                    unread: true,
                    ..waiting(For::Registry, format!("records of {order}: {}", describe_unread(unread)))
                },
            }
        }
        Soak::Until(time) => waiting(
            For::Instant(time),
            format!("{order} runs this change, healthy; its soak of {} is over at {time}", stage.soak),
        ),
        Soak::Unseen(time) => waiting(
            For::Order(order.clone()),
            format!("{order} runs this change; it must be observed healthy{soaked} at or after {time}"),
        ),
        Soak::NotHealthy => waiting(
            For::Order(order.clone()),
            match stage.seen {
                Some(_) => format!("{order} runs this change and is not healthy yet"),
                None => format!(
                    "{order} runs this change; its Applications were not observed, so its health is unknown"
                ),
            },
        ),
        Soak::ClockAhead(time) => waiting(
            For::Order(order.clone()),
            format!(
                "{order}: its times are ahead of this run's clock ({time}); one of the two clocks is wrong"
            ),
        ),
        _ if !found.unproven.is_empty() => waiting(
            For::Evidence,
            format!("{order} ran this change by its history, but that is not proven: {}", found.unproven[0]),
        ),
        _ if base.is_none() && claimed.iter().any(|e| e.digest != candidate.artifact.digest) => waiting(
            For::Evidence,
            format!(
                "{order} ran the same base {}, but the candidate's signed provenance does not list it among what it was made from",
                candidate.base_digest.map(|d| d.format_short()).unwrap_or_default()
            ),
        ),
        Soak::Degraded(time) => waiting(
            For::Order(order.clone()),
            format!("{order} ran this change, and it ended Degraded at {time}; it must run there again"),
        ),
        Soak::TooShort(time) => waiting(
            For::Order(order.clone()),
            format!(
                "{order} ran this change, and it was superseded at {time}, before it was healthy{soaked}; it must run there again"
            ),
        ),
        Soak::Unwatched { ended, seen } => waiting(
            For::Order(order.clone()),
            format!(
                "{order} ran this change, and it was superseded at {ended}; it was not observed healthy after {seen}, which is before its soak of {} was over; it must run there again",
                stage.soak
            ),
        ),
        Soak::Never => waiting(For::Order(order.clone()), describe_never_ran(stage)),
    }
}

fn make_passed(stage: &Stage, run: Proven, first_healthy: Time, complete: Time) -> JudgedStage {
    let message = match stage.soak {
        Span::ZERO => {
            format!("{} ran this change as {}, healthy since {first_healthy}", stage.order, run.preparation)
        }
        span => format!(
            "{} ran this change as {}, healthy from {first_healthy} for {span} until {complete}",
            stage.order, run.preparation
        ),
    };
    let mut evidence = vec![EvidenceRef {
        kind: "upstream".into(),
        name: format!("{} {} first healthy {first_healthy}", stage.order, run.preparation),
        digest: Some(run.digest),
        uri: String::new(),
        key: String::new(),
    }];
    evidence.extend(run.evidence);
    JudgedStage { outcome: GateOutcome::Passed, message, evidence, unread: false }
}

fn describe_never_ran(stage: &Stage) -> String {
    match &stage.deployed {
        Some(deployed) => format!(
            "{} has not run this change; it runs {} ({})",
            stage.order,
            deployed.preparation,
            deployed.artifact.digest.format_short()
        ),
        None => format!("{} has not run this change; nothing is deployed there", stage.order),
    }
}

/// Whether the candidate's signed provenance lists its base digest among what it was made from.
enum Link<'f> {
    Listed(Digest),
    /// It does not, or there is no valid provenance, or the candidate names no base.
    Unlisted,
    /// It could not be read, but is needed, because only the base digest links the two.
    Unread(&'f Unread),
    /// It was not asked for.
    NotRead,
}

fn find_base_link<'f>(case: &Case, candidate: &Candidate, facts: &'f Facts) -> Link<'f> {
    let Some(base) = candidate.base_digest else { return Link::Unlisted };
    let provenance = find_facts(facts, &candidate.artifact).and_then(|f| f.provenance.get(&case.order));
    match provenance {
        Some(Evidence::Proven(provenance)) if provenance.dependencies.contains(&base) => Link::Listed(base),
        Some(Evidence::Unread(unread)) if needs_base_link(case, candidate) => Link::Unread(unread),
        Some(Evidence::Proven(_) | Evidence::Unread(_) | Evidence::Missing(_) | Evidence::Invalid(_)) => {
            Link::Unlisted
        }
        None => Link::NotRead,
    }
}

/// The candidate's base digest, where its signed provenance lists it: an unproven base is not recorded,
/// because later stages would treat it as the same change.
#[must_use]
pub fn find_proven_base(case: &Case, candidate: &Candidate, facts: &Facts) -> Option<Digest> {
    match find_base_link(case, candidate, facts) {
        Link::Listed(base) => Some(base),
        Link::Unlisted | Link::Unread(_) | Link::NotRead => None,
    }
}

fn needs_base_link(case: &Case, candidate: &Candidate) -> bool {
    case.stages.iter().any(|stage| {
        let same = || get_entries(stage).iter().filter(|e| is_claimed_same(candidate, e));
        same().next().is_some() && !same().any(|e| e.digest == candidate.artifact.digest)
    })
}

/// A Degraded end of this deployment that a signed record on the artifact contains and the repository does
/// not.
fn find_forgotten_end<'f>(stage: &Stage, run: &Proven, facts: &'f Facts) -> Result<Option<Time>, &'f Unread> {
    let Some(artifact) = stage.artifacts.get(&run.digest) else { return Ok(None) };
    match find_facts(facts, artifact).and_then(|f| f.records.as_ref()) {
        Some(Evidence::Proven(records)) => Ok(proof::find_degraded_end(&stage.order, run, records)),
        Some(Evidence::Unread(unread)) => Err(unread),
        Some(Evidence::Missing(_) | Evidence::Invalid(_)) | None => Ok(None),
    }
}

fn describe_unread(unread: &Unread) -> String {
    format!("{}: {}", unread.reason, evidence::describe_unread(unread))
}
