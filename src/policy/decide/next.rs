//! The next step for one Order, as a sentence that a person can act on: who has to do what so that a gate
//! passes, or why there is no candidate.

use crate::model::kitchen::ApprovalTrust;
use crate::model::order::Mode;
use crate::model::plan::{Candidate, NextStep};
use crate::model::verdict::{For, GateName, GateOutcome, Verdict};
use crate::policy::gates::Context;
use crate::policy::resolve::newest::Newest;
use crate::policy::resolve::{Case, Presence, check_preparation};

/// Maximum number of Preparations that are named as not Ready.
const NAMED: usize = 3;

/// Who has to do what, for every gate that does not pass; no step for a gate that was only not read.
#[must_use]
pub fn collect_steps(case: &Case, verdicts: &[Verdict], context: &Context) -> Vec<NextStep> {
    let Some(candidate) = &case.candidate else { return Vec::new() };
    let all = verdicts.iter().filter_map(|verdict| {
        let what = describe_step(case, candidate, verdict, context)?;
        Some(NextStep { gate: verdict.gate, what })
    });
    all.collect()
}

fn describe_step(case: &Case, candidate: &Candidate, verdict: &Verdict, context: &Context) -> Option<String> {
    let order = &case.order;
    // cosign expects the reference without the scheme.
    let pinned = candidate.artifact.format_oci_ref();
    let artifact = pinned.strip_prefix("oci://").unwrap_or(&pinned);
    match &verdict.outcome {
        GateOutcome::Passed | GateOutcome::Waiting(For::AnotherGate) => None,
        GateOutcome::Failed => Some(describe_other_input(case, candidate, verdict.gate)),
        GateOutcome::Waiting(For::Instant(until)) => Some(format!("no action needed: it passes at {until}")),
        GateOutcome::Waiting(For::LaterRun) => Some("no action needed: a later run promotes it".into()),
        GateOutcome::Waiting(For::Build) => Some("install a build of expedite that has this gate".into()),
        GateOutcome::Waiting(For::Order(other)) => {
            Some(format!("the owner of {other}: `expedite explain {other}` shows what it waits for"))
        }
        GateOutcome::Waiting(For::Registry) => Some(format!(
            "no action needed if the failure is temporary (the next run retries); otherwise contact the operator of {}",
            candidate.artifact.repository.registry()
        )),
        GateOutcome::Waiting(For::Person(people)) => {
            let who = if people.is_empty() {
                "a person with the right to do it".to_owned()
            } else {
                people.join(" or ")
            };
            Some(match verdict.gate {
                GateName::Approvals => {
                    let key = match context.electorate.trust() {
                        ApprovalTrust::Signed => "--sign-key KEY",
                        ApprovalTrust::Cluster | ApprovalTrust::Repository => "--as NAME",
                    };
                    format!("{who}: `expedite approve {order} {} {key}`", candidate.name)
                }
                GateName::OptIn => format!(
                    "{who}: annotate it with delivery.kokumi.dev/allowed-order: \"{order}\", or remove it"
                ),
                GateName::Ready
                | GateName::Upstream
                | GateName::Checks
                | GateName::Evidence
                | GateName::Window => who,
            })
        }
        GateOutcome::Waiting(For::Evidence) => Some(match verdict.gate {
            GateName::Checks => format!(
                "the operator of these checks: sign and attach the result, for example with `cosign attest --key KEY --type TYPE --predicate FILE {artifact}`"
            ),
            GateName::Approvals => {
                "no action needed: the next run with a key that is trusted for approvals attaches the seal"
                    .into()
            }
            GateName::Upstream => format!(
                "the operators of the renderer and of expedite: this gate needs signed records and provenance; `expedite verify {artifact} --order {order}` shows which exist"
            ),
            GateName::Ready | GateName::Evidence | GateName::Window | GateName::OptIn => format!(
                "the operator of the renderer: sign {artifact} and attest its provenance for {order} with a key that the Kitchen trusts; `expedite verify {artifact} --order {order}` shows what exists"
            ),
        }),
    }
}

/// The step for a gate that passes neither by time nor by a vote, but needs another input.
fn describe_other_input(case: &Case, candidate: &Candidate, gate: GateName) -> String {
    match gate {
        GateName::Ready => format!("the owner of {}: correct the problems that this gate names", case.order),
        GateName::Upstream => format!("the owner of {}: correct its upstream stages", case.order),
        GateName::Checks => {
            format!(
                "the producer of {}: provide a new artifact, or a newer result of these checks",
                candidate.name
            )
        }
        GateName::Approvals => "the owner of the policies: allow at least one common group to approve".into(),
        GateName::Evidence => {
            format!("the operator of the renderer: render a new artifact to replace {}", candidate.name)
        }
        GateName::Window => {
            "the owner of the windows and freezes: change them so that they allow a promotion".into()
        }
        GateName::OptIn => "the owner of the Application of that name".into(),
    }
}

/// Why there is no candidate; `None` if there is one, or if errors already say why.
#[must_use]
pub fn describe_idle(case: &Case) -> Option<String> {
    if case.candidate.is_some() || !case.errors.is_empty() || case.presence != Presence::Present {
        return None;
    }
    let mut said = match (&case.newest, case.mode) {
        (Newest::None, _) => "it has no Ready Preparation".to_owned(),
        (Newest::Unclear(names), _) => {
            let names: Vec<&str> = names.iter().map(|n| n.as_str()).collect();
            format!("cannot determine which Preparation is the newest: {}", names.join(", "))
        }
        (Newest::One(name), mode) => {
            let artifact = case.preparations.get(name).map(|p| p.object.spec.artifact.digest);
            let runs = case.is_at_home()
                && case
                    .deployed
                    .as_ref()
                    .is_some_and(|d| d.preparation == *name || Some(d.artifact.digest) == artifact);
            let ran = case
                .serving
                .iter()
                .flat_map(|s| &s.status.history)
                .any(|entry| entry.preparation_name == *name || Some(entry.digest) == artifact);
            match mode {
                _ if runs => format!("{name}, the newest Ready Preparation, is already deployed"),
                Mode::Manual => format!(
                    "the newest Ready Preparation, {name}, was not requested: `expedite promote {} {name}`",
                    case.order
                ),
                Mode::Automatic if ran => format!(
                    "{name}, the newest Ready Preparation, ran here before, and Automatic never promotes the same one twice"
                ),
                Mode::Automatic => {
                    format!("{name}, the newest Ready Preparation, is not newer than what is deployed")
                }
            }
        }
    };
    let waiting = case.preparations.iter().filter_map(|(name, loaded)| {
        check_preparation(loaded).err().map(|why| format!("; {name} is not Ready: {why}"))
    });
    said.extend(waiting.take(NAMED));
    Some(said)
}
