//! One Order in full: what it deploys, what could be promoted, and every gate's answer with its evidence.

use crate::model::approval::Ballot;
use crate::model::plan::{Explained, PlanRow};
use crate::model::serving::VoteStatus;
use crate::model::verdict::Verdict;
use crate::report::escape;
use crate::report::plan::{describe_row, format_mode};
use crate::report::view::{self, View};

/// The explanation as lines of text.
#[must_use]
pub fn format_explanation(view: &View<'_>, row: &PlanRow, more: &Explained) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        out.push_str(escape::escape_line(&text).trim_end());
        out.push('\n');
    };
    line(format!("{}: {}", row.order, describe_row(view, row)));
    let none = || "<none>".to_owned();
    line(format!("  environment  {}", row.environment.as_ref().map_or_else(none, ToString::to_string)));
    line(format!("  mode         {}", format_mode(row.mode)));
    let serving = view.find_serving(row);
    let deployed = view.find_deployed(row).map_or_else(none, |name| {
        let digest =
            serving.and_then(|s| s.status.deployed_digest).map(|d| format!(" {d}")).unwrap_or_default();
        format!("{name}{digest}")
    });
    line(format!("  deployed     {deployed}"));
    let candidate =
        row.candidate.as_ref().map_or_else(none, |c| format!("{} {}", c.name, c.artifact.format_oci_ref()));
    if let Some(observed) = &more.observed {
        line(format!("  observed     {observed}"));
    }
    line(format!("  candidate    {candidate}"));
    if let Some(why) = &more.idle {
        line(format!("  no candidate {why}"));
    }
    if let Some(forecast) = view.find_forecast(row) {
        line(format!("  promotes     {}", view::describe_forecast(forecast, view.plan.at)));
    }
    for (number, verdict) in row.verdicts.iter().enumerate() {
        if number == 0 {
            line(String::new());
        }
        line(format!("  {:<10} {}: {}", verdict.gate, view::describe_outcome(verdict), verdict.message));
        for evidence in format_evidence(verdict) {
            line(format!("             {evidence}"));
        }
        for step in more.steps.iter().filter(|step| step.gate == verdict.gate) {
            line(format!("             next: {}", step.what));
        }
    }
    for (number, vote) in more.votes.iter().enumerate() {
        if number == 0 {
            line(String::new());
            line("  votes".to_owned());
        }
        line(format!("    {}", format_vote(vote)));
    }
    let problems: Vec<String> = row
        .errors
        .iter()
        .map(|e| format!("  error: {e}"))
        .chain(row.warnings.iter().map(|w| format!("  warning: {w}")))
        .collect();
    if !problems.is_empty() {
        line(String::new());
        problems.into_iter().for_each(line);
    }
    out
}

fn format_vote(vote: &VoteStatus) -> String {
    let decision = match vote.decision {
        Ballot::Approve => "approves",
        Ballot::Reject => "rejects",
    };
    let who =
        if vote.approver.username.is_empty() { &vote.approver.subject } else { &vote.approver.username };
    let comment = vote.comment.as_ref().map(|c| format!(": {c}")).unwrap_or_default();
    format!("{who} {decision} at {} ({}, {}){comment}", vote.submitted_time, vote.name, vote.reason)
}

fn format_evidence(verdict: &Verdict) -> impl Iterator<Item = String> {
    verdict.evidence.iter().map(|e| {
        let digest = e.digest.map(|d| d.to_string()).unwrap_or_default();
        let key = if e.key.is_empty() { String::new() } else { format!("by {}", e.key) };
        let parts = [e.kind.as_str(), e.name.as_str(), &digest, e.uri.as_str(), &key];
        parts.iter().filter(|p| !p.is_empty()).copied().collect::<Vec<_>>().join(" ")
    })
}
