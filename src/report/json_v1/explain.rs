//! Kind `Explanation`: one Order's row, and more details of it.

use super::{API_VERSION, PlanOrderJson, format_document, make_order};
use crate::model::approval::Ballot;
use crate::model::plan as model;
use crate::model::serving::VoteStatus;
use crate::report::view::View;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Explanation {
    api_version: &'static str,
    kind: &'static str,
    at: String,
    #[serde(flatten)]
    order: PlanOrderJson,
    /// The current state of the Applications; null if nothing is deployed.
    observed: Option<String>,
    /// Who has to do what, for every gate that does not pass.
    next: Vec<Next>,
    /// Why there is no candidate.
    idle: Option<String>,
    /// On the candidate.
    votes: Vec<Vote>,
}

/// When the candidate can deploy.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Forecast")]
pub struct ForecastJson {
    /// `At`, `NotBefore` or `Never`.
    kind: &'static str,
    /// RFC 3339; not of `Never`.
    time: Option<String>,
    /// The gate that has to pass first; not of `At`.
    gate: Option<&'static str>,
    /// Its message; not of `At`.
    message: Option<String>,
}

/// What makes one gate pass.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Next {
    gate: &'static str,
    /// Who, and what.
    what: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Vote {
    name: String,
    issuer: String,
    subject: String,
    username: String,
    decision: &'static str,
    digest: String,
    submitted_time: String,
    counted: bool,
    reason: &'static str,
    comment: Option<String>,
}

#[must_use]
pub fn format_explanation(view: &View<'_>, row: &model::PlanRow, more: &model::Explained) -> String {
    format_document(&Explanation {
        api_version: API_VERSION,
        kind: "Explanation",
        at: view.plan.at.to_string(),
        order: make_order(view, row),
        observed: more.observed.clone(),
        next: more.steps.iter().map(|s| Next { gate: s.gate.as_str(), what: s.what.clone() }).collect(),
        idle: more.idle.clone(),
        votes: more.votes.iter().map(make_vote).collect(),
    })
}

pub(super) fn make_forecast(forecast: &model::Forecast) -> ForecastJson {
    let (kind, time, held) = match forecast {
        model::Forecast::At(time) => ("At", Some(*time), None),
        model::Forecast::NotBefore { time, gate, message } => {
            ("NotBefore", Some(*time), Some((*gate, message.clone())))
        }
        model::Forecast::Never { gate, message } => ("Never", None, Some((*gate, message.clone()))),
    };
    let (gate, message) = held.map(|(gate, message)| (gate.as_str(), message)).unzip();
    ForecastJson { kind, time: time.map(|t| t.to_string()), gate, message }
}

fn make_vote(vote: &VoteStatus) -> Vote {
    Vote {
        name: vote.name.clone(),
        issuer: vote.approver.issuer.clone(),
        subject: vote.approver.subject.clone(),
        username: vote.approver.username.clone(),
        decision: match vote.decision {
            Ballot::Approve => "Approve",
            Ballot::Reject => "Reject",
        },
        digest: vote.digest.to_string(),
        submitted_time: vote.submitted_time.to_string(),
        counted: vote.counted,
        reason: vote.reason.as_str(),
        comment: vote.comment.clone(),
    }
}
