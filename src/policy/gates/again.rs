//! Judges a past promotion again by what its record contains: the parameters of the gates, the same pieces of
//! evidence, the time of the promotion. Pure, and with the same functions that judged it then.
//!
//! What only that run could observe (the health of an upstream at that moment, the owner of an Application in
//! a cluster) is taken from the record; everything else has to pass again.

use super::policy::is_as_strict;
use super::proof::{self, Proven};
use super::soak::{Soak, judge_soak};
use super::{Context, attestation, checks, vulnerabilities};
use crate::model::approval::Ballot;
use crate::model::calendar::{Calendar, CalendarState};
use crate::model::environment::Freeze;
use crate::model::evidence::{
    ArtifactFacts, Claim, Evidence, Facts, Looked, Proof, ScanProof, SealOf, SealProof, Unread,
};
use crate::model::id::{Artifact, Digest, EnvironmentName, OrderRef, PreparationName};
use crate::model::order::{ApprovalPolicy, Check, Window};
use crate::model::serving::HistoryEntry;
use crate::model::time::{SKEW, Span, Time};
use crate::model::verdict::{EvidenceRef, GateName, GateOutcome};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;

#[derive(Debug, Clone)]
pub struct Past {
    pub order: OrderRef,
    pub environment: EnvironmentName,
    pub preparation: PreparationName,
    pub artifact: Artifact,
    /// What it was rendered from, according to the record.
    pub base_digest: Option<Digest>,
    pub at: Time,
    /// The answer of each gate, in the record's order.
    pub gates: Vec<RecordedGate>,
}

/// What one gate said.
#[derive(Debug, Clone)]
pub struct RecordedGate {
    pub name: String,
    /// `Passed`, or another word, which does not allow a promotion.
    pub verdict: String,
    pub parameters: Value,
    /// Its evidence.
    pub evidence: Vec<EvidenceRef>,
}

/// What git held when it was promoted.
#[derive(Debug, Clone, Default)]
pub struct Then {
    /// Histories of the Order itself, this promotion first, and of its upstream stages, by Order.
    pub histories: Vec<(OrderRef, Vec<HistoryEntry>)>,
    /// What the records that these histories name prove.
    pub records: Facts,
    /// The seal that was committed with it, judged; none if none is named.
    pub seal: Option<Result<SealProof, String>>,
}

/// Why a gate is not confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    /// It does not hold.
    Not(String),
    /// That could not be read.
    Unread(String),
}

use Doubt::Not;

type Confirmed = Result<(), Doubt>;

impl Past {
    fn find_gate(&self, gate: GateName) -> Option<&RecordedGate> {
        self.gates.iter().find(|said| said.name == gate.as_str())
    }

    /// What has to be read from the registry to judge it again.
    #[must_use]
    pub fn collect_claims(&self) -> BTreeSet<Claim> {
        let mut all =
            BTreeSet::from([Claim::Artifact, Claim::Signature, Claim::Provenance(self.order.clone())]);
        if self.find_gate(GateName::Approvals).is_some_and(|said| !said.parameters.is_null()) {
            all.insert(Claim::Approvals(self.build_seal_of()));
        }
        let checks = self.find_gate(GateName::Checks).map(parse_checks);
        for check in checks.into_iter().flatten().flatten() {
            all.extend(check.attestation.map(|a| Claim::Attestation(a.predicate_type)));
            all.extend(check.vulnerabilities.map(|_| Claim::Scans));
        }
        all
    }

    /// The pieces of evidence that it used: others may have been added since.
    #[must_use]
    pub fn collect_pieces(&self) -> BTreeSet<Digest> {
        self.gates.iter().flat_map(|said| &said.evidence).filter_map(|e| e.digest).collect()
    }

    /// The Order and Preparation whose seal it was promoted under.
    #[must_use]
    pub fn build_seal_of(&self) -> SealOf {
        SealOf { order: self.order.clone(), preparation: self.preparation.clone(), uid: None }
    }

    /// The upstream stages whose histories are needed.
    #[must_use]
    pub fn collect_stages(&self) -> Vec<OrderRef> {
        let stages = self.find_gate(GateName::Upstream).map(parse_stages);
        stages.into_iter().flatten().flatten().map(|stage| stage.order).collect()
    }

    /// Judges every gate again, with what git contained then and what the registry contains now (`None`: the
    /// registry was not asked).
    #[must_use]
    pub fn judge_again(&self, then: &Then, now: Option<&ArtifactFacts>) -> Vec<(GateName, Doubt)> {
        let named: Vec<&str> = self.gates.iter().map(|said| said.name.as_str()).collect();
        let mut doubts = Vec::new();
        for gate in GateName::ALL {
            let doubt = match self.find_gate(gate) {
                None => Some(Not("the record does not mention this gate".into())),
                Some(_) if named.iter().filter(|n| **n == gate.as_str()).count() > 1 => {
                    Some(Not("the record mentions this gate twice".into()))
                }
                Some(said) if said.verdict != "Passed" => {
                    Some(Not(format!("the record says {}, but only Passed allows a promotion", said.verdict)))
                }
                Some(said) => self.confirm_gate(gate, said, then, now).err(),
            };
            doubts.extend(doubt.map(|doubt| (gate, doubt)));
        }
        doubts
    }

    fn confirm_gate(
        &self,
        gate: GateName,
        said: &RecordedGate,
        then: &Then,
        now: Option<&ArtifactFacts>,
    ) -> Confirmed {
        match gate {
            GateName::Ready => self.confirm_ready(said),
            GateName::Upstream => self.confirm_upstream(said, then, now),
            GateName::Checks => self.confirm_checks(said, now),
            GateName::Approvals => self.confirm_approvals(said, then, now),
            GateName::Evidence => self.confirm_evidence(said, now),
            GateName::Window => self.confirm_window(said, then),
            GateName::OptIn => Ok(()),
        }
    }

    fn confirm_ready(&self, said: &RecordedGate) -> Confirmed {
        let names = find_pieces(said, "artifact").any(|e| {
            e.digest == Some(self.artifact.digest) && e.uri == self.artifact.repository.format_url()
        });
        if !names {
            return Err(Not(format!("its evidence is not the artifact {}", self.artifact)));
        }
        let environment = said.parameters.get("environment").and_then(Value::as_str);
        if environment != Some(self.environment.as_str()) {
            return Err(Not(format!("its Environment is not {}", self.environment)));
        }
        Ok(())
    }

    fn find_history<'t>(&self, then: &'t Then, order: &OrderRef) -> &'t [HistoryEntry] {
        then.histories.iter().find(|(of, _)| of == order).map_or(&[], |(_, history)| history.as_slice())
    }

    fn make_context(&self) -> Context {
        Context::new(self.at, None)
    }

    /// The entries of a history that records prove, and why the others are not proven.
    fn prove_history(&self, then: &Then, order: &OrderRef) -> (Vec<Proven>, Vec<String>) {
        let (history, context) = (self.find_history(then, order), self.make_context());
        let mut all = (Vec::new(), Vec::new());
        for at in 0..history.len() {
            match proof::prove_entry(order, history, at, None, &then.records, &context) {
                Ok(proven) => all.0.push(proven),
                Err(why) if history[at].digest == self.artifact.digest => all.1.push(why),
                Err(_) => {}
            }
        }
        all
    }

    /// Whether a proven entry of the Order's own history is of this artifact, here, and of an earlier promotion.
    fn has_run(&self, proven: &Proven) -> bool {
        proven.digest == self.artifact.digest
            && proven.environment.as_ref() == Some(&self.environment)
            && proven.run.promoted < self.at
    }

    fn confirm_upstream(&self, said: &RecordedGate, then: &Then, now: Option<&ArtifactFacts>) -> Confirmed {
        let stages = parse_stages(said).map_err(Not)?;
        if stages.is_empty() {
            return Ok(());
        }
        // It ran here before, so no stage was required.
        if find_pieces(said, "upstream").next().is_none() {
            let before = find_pieces(said, "record").any(|e| e.name == self.order.to_string());
            let (proven, _) = self.prove_history(then, &self.order);
            return if before && proven.iter().any(|p| self.has_run(p)) {
                Ok(())
            } else {
                Err(Not("no record proves that it ran here before, nor any that it ran upstream".into()))
            };
        }
        for stage in stages {
            self.confirm_stage(&stage, then, now)?;
        }
        Ok(())
    }

    fn confirm_stage(&self, stage: &RecordedStage, then: &Then, now: Option<&ArtifactFacts>) -> Confirmed {
        let (proven, unproven) = self.prove_history(then, &stage.order);
        let by_base = |p: &Proven| self.base_digest.is_some() && p.base_digest == self.base_digest;
        let same = |p: &&Proven| p.digest == self.artifact.digest || by_base(p);
        let runs: Vec<&Proven> = proven.iter().filter(same).collect();
        let spans: Vec<_> = runs.iter().map(|p| p.run).collect();
        let order = &stage.order;
        // The run itself observed that it was healthy at the promotion.
        match judge_soak(&spans, stage.soak, Some(self.at), self.at) {
            Soak::Passed { .. } => {}
            Soak::Until(time) | Soak::Unseen(time) => {
                return Err(Not(format!(
                    "according to the records, the soak of {} in {order} was over at {time}, after the promotion at {}",
                    stage.soak, self.at
                )));
            }
            Soak::Degraded(time)
            | Soak::TooShort(time)
            | Soak::ClockAhead(time)
            | Soak::Unwatched { seen: time, .. } => {
                return Err(Not(format!(
                    "according to the records, {order} was not healthy with this change for {}; it ended at {time}",
                    stage.soak
                )));
            }
            Soak::NotHealthy | Soak::Never => {
                let why = unproven.first().map(|why| format!(" ({why})")).unwrap_or_default();
                return Err(Not(format!("no record proves that {order} ran this change, healthy{why}")));
            }
        }
        if runs.iter().any(|p| p.digest == self.artifact.digest) {
            return Ok(());
        }
        // Linked by the base alone: the candidate's provenance must list it.
        match now.and_then(|facts| facts.provenance.get(&self.order)) {
            Some(Evidence::Proven(p)) if self.base_digest.is_some_and(|b| p.dependencies.contains(&b)) => {
                Ok(())
            }
            Some(Evidence::Proven(_)) => Err(Not(format!(
                "{order} ran the same base, and the signed provenance does not list it among what this was made from"
            ))),
            // Gate Evidence reports problems of the provenance itself.
            Some(Evidence::Missing(_) | Evidence::Invalid(_) | Evidence::Unread(_)) | None => Ok(()),
        }
    }

    fn confirm_checks(&self, said: &RecordedGate, now: Option<&ArtifactFacts>) -> Confirmed {
        let wanted = parse_checks(said).map_err(Not)?;
        let Some(facts) = now else { return Ok(()) };
        for check in wanted {
            let answer = if let Some(attestation) = &check.attestation {
                let known = facts.attestations.get(&attestation.predicate_type);
                let known = known.map(|known| keep_named(known, |p: &Proof| p.digest, said, "attestation"));
                attestation::judge_statements(attestation, known.as_ref(), self.at)
            } else if let Some(limits) = &check.vulnerabilities {
                let known = facts.scans.as_ref();
                let known =
                    known.map(|known| keep_named(known, |s: &ScanProof| s.proof.digest, said, "scan"));
                vulnerabilities::judge_scans(limits, known.as_ref(), self.at)
            } else {
                checks::CheckAnswer::make_failed("it asks for nothing".into())
            };
            if answer.outcome != GateOutcome::Passed {
                let text = format!("{}: {}", check.name, answer.message);
                return Err(if answer.unread { Doubt::Unread(text) } else { Not(text) });
            }
        }
        Ok(())
    }

    fn confirm_approvals(&self, said: &RecordedGate, then: &Then, now: Option<&ArtifactFacts>) -> Confirmed {
        if said.parameters.is_null() {
            return Ok(());
        }
        let policy: ApprovalPolicy = parse_part(&said.parameters, "policy").map_err(Not)?;
        let Some(named) = find_pieces(said, "approval").find_map(|e| e.digest) else {
            return Err(Not("a policy applied, but the record names no seal".into()));
        };
        match &then.seal {
            Some(Ok(seal)) => {
                self.check_seal(seal, &policy).map_err(|why| Not(format!("the seal in git: {why}")))?
            }
            Some(Err(why)) => return Err(Not(format!("the seal in git: {why}"))),
            None => return Err(Not("its history entry names no seal".into())),
        }
        let Some(facts) = now else { return Ok(()) };
        match facts.approvals.get(&self.build_seal_of()) {
            Some(Evidence::Proven(seal)) if seal.proof.digest == named => self
                .check_seal(seal, &policy)
                .map_err(|why| Not(format!("the seal {}: {why}", named.format_short()))),
            Some(Evidence::Proven(seal)) => {
                Err(Not(format!("the registry holds the seal {}, not {named}", seal.proof.digest)))
            }
            Some(Evidence::Missing(l) | Evidence::Invalid(l)) => Err(make_gone("the seal", Some(named), l)),
            Some(Evidence::Unread(unread)) => Err(make_unread(unread)),
            None => Err(Doubt::Unread("the seal was not read".into())),
        }
    }

    /// Whether a seal allows this promotion: enough distinct votes, under that policy, early enough.
    fn check_seal(&self, seal: &SealProof, policy: &ApprovalPolicy) -> Result<(), String> {
        if seal.result != "Approved" {
            return Err(format!("its result is {:?}", seal.result));
        }
        if !is_as_strict(&seal.policy, policy) {
            return Err("it was made under a weaker policy than the record's".into());
        }
        if seal.sealed_time > self.at.add_span(SKEW) {
            return Err(format!("it was sealed at {}, after the promotion at {}", seal.sealed_time, self.at));
        }
        let predicate = seal.proof.statement.as_ref().map(|s| &s.predicate);
        let votes: Vec<RecordedVote> = match predicate {
            Some(predicate) => parse_part(predicate, "submissions")?,
            None => return Err("it holds no statement".into()),
        };
        let counted = || votes.iter().filter(|vote| vote.counted);
        if let Some(veto) = counted().find(|vote| vote.decision == Ballot::Reject) {
            return Err(format!("{} rejected it", veto.approver.subject));
        }
        let voters: BTreeSet<(&str, &str)> =
            counted().map(|v| (v.approver.issuer.as_str(), v.approver.subject.as_str())).collect();
        let wanted = usize::try_from(policy.required_approvals).unwrap_or(usize::MAX);
        if voters.len() < wanted {
            return Err(format!("it holds {} approvals, and {wanted} were required", voters.len()));
        }
        Ok(())
    }

    fn confirm_evidence(&self, said: &RecordedGate, now: Option<&ArtifactFacts>) -> Confirmed {
        for kind in ["artifact", "signature", "provenance"] {
            if find_pieces(said, kind).next().is_none() {
                return Err(Not(format!("the record names no {kind}")));
            }
        }
        let Some(facts) = now else { return Ok(()) };
        let named = |kind: &str| find_pieces(said, kind).find_map(|e| e.digest);
        confirm_held(facts.artifact.as_ref(), "the artifact", Some(self.artifact.digest))?;
        confirm_held(facts.signature.as_ref(), "the signature", named("signature"))?;
        confirm_held(facts.provenance.get(&self.order), "the provenance", named("provenance"))
    }

    fn confirm_window(&self, said: &RecordedGate, then: &Then) -> Confirmed {
        if said.parameters.is_null() {
            return Ok(());
        }
        let windows: Vec<Window> = parse_part(&said.parameters, "windows").map_err(Not)?;
        let freezes: Vec<Freeze> = parse_part(&said.parameters, "freezes").map_err(Not)?;
        let calendar = Calendar::new(&windows, &freezes)
            .map_err(|wrong| Not(wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
        let why = match calendar.judge_open_at(self.at) {
            CalendarState::Yes(_) => return Ok(()),
            CalendarState::No { why, .. } => why,
        };
        let (proven, _) = self.prove_history(then, &self.order);
        let healthy_here = proven
            .iter()
            .any(|p| self.has_run(p) && p.run.first_healthy.is_some_and(|since| since <= self.at));
        if healthy_here { Ok(()) } else { Err(Not(format!("at {} it was closed: {why}", self.at))) }
    }
}

/// One stage as the gate's parameters have it.
#[derive(Debug, Deserialize)]
struct RecordedStage {
    order: OrderRef,
    soak: Span,
}

#[derive(Debug, Deserialize)]
struct RecordedVote {
    approver: RecordedVoter,
    decision: Ballot,
    counted: bool,
}

#[derive(Debug, Deserialize)]
struct RecordedVoter {
    issuer: String,
    subject: String,
}

fn parse_part<T: DeserializeOwned>(parameters: &Value, name: &str) -> Result<T, String> {
    let value = parameters.get(name).cloned().unwrap_or_default();
    serde_json::from_value(value).map_err(|e| format!("its {name} cannot be read: {e}"))
}

fn parse_stages(said: &RecordedGate) -> Result<Vec<RecordedStage>, String> {
    if said.parameters.is_null() { Ok(Vec::new()) } else { parse_part(&said.parameters, "upstream") }
}

fn parse_checks(said: &RecordedGate) -> Result<Vec<Check>, String> {
    if said.parameters.is_null() { Ok(Vec::new()) } else { parse_part(&said.parameters, "checks") }
}

fn find_pieces<'s>(said: &'s RecordedGate, kind: &'s str) -> impl Iterator<Item = &'s EvidenceRef> {
    said.evidence.iter().filter(move |e| e.kind == kind)
}

/// Only the pieces that the gate used; if none of them is left, that is an error.
fn keep_named<P: Clone>(
    known: &Evidence<Vec<P>>,
    digest: impl Fn(&P) -> Digest,
    said: &RecordedGate,
    kind: &str,
) -> Evidence<Vec<P>> {
    let Evidence::Proven(all) = known else { return known.clone() };
    let named: BTreeSet<Digest> = find_pieces(said, kind).filter_map(|e| e.digest).collect();
    let kept: Vec<P> = all.iter().filter(|p| named.contains(&digest(p))).cloned().collect();
    if kept.is_empty() {
        let why = format!("no {kind} that the record names is in the registry any more");
        return Evidence::Missing(Looked { why, ..Looked::default() });
    }
    Evidence::Proven(kept)
}

/// Whether what a record names is still there and still proves its claim.
fn confirm_held<P>(known: Option<&Evidence<P>>, what: &str, named: Option<Digest>) -> Confirmed {
    match known {
        Some(Evidence::Proven(_)) => Ok(()),
        Some(Evidence::Missing(looked) | Evidence::Invalid(looked)) => Err(make_gone(what, named, looked)),
        Some(Evidence::Unread(unread)) => Err(make_unread(unread)),
        None => Err(Doubt::Unread(format!("{what} was not read"))),
    }
}

fn make_gone(what: &str, named: Option<Digest>, looked: &Looked) -> Doubt {
    let named = named.map(|digest| format!(" {}", digest.format_short())).unwrap_or_default();
    Not(format!("{what}{named} is not in the registry any more, or does not verify: {}", looked.why))
}

fn make_unread(unread: &Unread) -> Doubt {
    Doubt::Unread(format!("{}: {}", unread.reason, super::evidence::describe_unread(unread)))
}
