//! One Order's fold: its gates as a table, when it deploys, its Applications, and what changes inside its artifact.

use super::summary::{clip_text, describe_inside};
use crate::compare::ResourceChange;
use crate::model::plan::{ApplicationAction, PlanRow};
use crate::model::verdict::{EvidenceRef, GateOutcome, Verdict};
use crate::report::diff::{self, Mark};
use crate::report::escape::{
    self, escape_markdown as text, escape_markdown_html, format_markdown_code as code,
};
use crate::report::plan::describe_row;
use crate::report::view::describe_forecast;
use crate::report::view::{self, View, format_count};
use std::fmt::Write as _;

/// Longest line of a block, in columns: a file on one line is not readable.
const WIDEST: usize = 400;

/// Longest message in a cell, in columns.
const MESSAGE: usize = 400;

/// Most pieces of evidence in a cell.
const PIECES: usize = 6;

/// A fold in pieces: the resources are added while they fit.
pub struct Fold {
    head: String,
    resources: Vec<String>,
    command: String,
}

const END: &str = "\n</details>\n";

impl Fold {
    pub fn new(view: &View<'_>, row: &PlanRow) -> Self {
        let mut head = format!(
            "\n<details><summary>{}: {}</summary>\n",
            code(&row.order.to_string()),
            escape_markdown_html(&describe_row(view, row))
        );
        if let Some(without) = view.preview.base.as_ref().and_then(|base| base.without.get(&row.order)) {
            let _ = write!(head, "\nWithout this change: {}\n", clip_text(without, MESSAGE));
        }
        push_artifact(&mut head, view, row);
        push_gates(&mut head, row);
        let more = view.preview.more.get(&row.order);
        if let Some(forecast) = more.and_then(|more| more.forecast.as_ref()) {
            let _ = write!(head, "\nDeploys {}.\n", text(&describe_forecast(forecast, view.plan.at)));
        }
        push_lines(&mut head, view, row);
        let mut resources = Vec::new();
        match more.and_then(|more| more.inside.as_ref()) {
            Some(Ok(comparison)) => {
                let _ = write!(head, "\n**Inside:** {}\n", describe_inside(view, row));
                for remark in diff::collect_remarks(comparison) {
                    let _ = write!(head, "\n- {}\n", clip_text(&remark, 1_000));
                }
                let mut changes: Vec<&ResourceChange> = comparison.changes.iter().collect();
                // Risks come first and are left out last.
                changes.sort_by_key(|change| change.risks.is_empty());
                resources = changes.into_iter().map(format_resource).collect();
            }
            Some(Err(failure)) => {
                let why = clip_text(&failure.to_string(), MESSAGE);
                let _ = write!(head, "\n**Inside:** unknown: {why}\n");
            }
            None => {}
        }
        Self { head, resources, command: format!("expedite diff {}", row.order) }
    }

    /// Bytes without any resource.
    pub fn len(&self) -> usize {
        self.head.len()
            + END.len()
            + if self.resources.is_empty() { 0 } else { self.format_rest(usize::MAX).len() }
    }

    /// Bytes of all resources.
    pub fn measure_resources(&self) -> usize {
        self.resources.iter().map(String::len).sum()
    }

    /// The fold, with as many whole resources as fit into `room`.
    pub fn format_fold(&self, room: usize) -> String {
        let mut out = self.head.clone();
        let (mut used, mut left) = (0, 0);
        for resource in &self.resources {
            if used + resource.len() <= room {
                used += resource.len();
                out.push_str(resource);
            } else {
                left += 1;
            }
        }
        if left > 0 {
            out.push_str(&self.format_rest(left));
        }
        out + END
    }

    fn format_rest(&self, left: usize) -> String {
        let what = format_count(left, "resource is", "resources are");
        format!("\n{what} left out here for length; {} shows all.\n", code(&self.command))
    }
}

/// The full references of what is deployed and of the candidate, so that a reader can look them up.
fn push_artifact(out: &mut String, view: &View<'_>, row: &PlanRow) {
    let Some(candidate) = &row.candidate else { return };
    let deployed = view.find_serving(row).and_then(|s| s.status.deployed_digest);
    let from = match deployed {
        Some(digest) if digest == candidate.artifact.digest => return,
        Some(digest) => format!("{} → ", code(&digest.to_string())),
        None => String::new(),
    };
    let _ = write!(out, "\n{from}{}\n", code(&candidate.artifact.to_string()));
    if let Some(message) = candidate.commit_message.as_deref().and_then(|m| m.lines().next()) {
        let _ = write!(out, "\n“{}”\n", clip_text(message, MESSAGE));
    }
}

fn push_gates(out: &mut String, row: &PlanRow) {
    if row.verdicts.is_empty() {
        return;
    }
    out.push_str("\n| Gate | Answer | Why | Evidence |\n|---|---|---|---|\n");
    for verdict in &row.verdicts {
        let _ = writeln!(
            out,
            "| **{}** | {} | {} | {} |",
            verdict.gate,
            format_answer(verdict),
            clip_text(&verdict.message, MESSAGE),
            format_evidence(&verdict.evidence)
        );
    }
}

fn format_answer(verdict: &Verdict) -> String {
    let mark = match (&verdict.outcome, verdict.unread) {
        (_, true) => "❓",
        (GateOutcome::Passed, false) => "✅",
        (GateOutcome::Waiting(_), false) => "⏳",
        (GateOutcome::Failed, false) => "❌",
    };
    format!("{mark} {}", clip_text(&view::describe_outcome(verdict), 120))
}

/// `signature sha256:7506f4d79a25 by renderer`, one below the other.
fn format_evidence(pieces: &[EvidenceRef]) -> String {
    let mut lines: Vec<String> = pieces
        .iter()
        .take(PIECES)
        .map(|piece| {
            let mut line = clip_text(&piece.kind, 40);
            if !piece.name.is_empty() {
                let _ = write!(line, " {}", clip_text(&piece.name, 60));
            }
            if let Some(digest) = &piece.digest {
                let _ = write!(line, " {}", code(&format!("sha256:{}", &digest.format_hex()[..12])));
            }
            if !piece.key.is_empty() {
                let _ = write!(line, " by {}", clip_text(&piece.key, 60));
            }
            line
        })
        .collect();
    if pieces.len() > PIECES {
        lines.push(format!("and {} more", pieces.len() - PIECES));
    }
    lines.join("<br>")
}

fn push_lines(out: &mut String, view: &View<'_>, row: &PlanRow) {
    let mut list = String::new();
    for application in &row.applications {
        let Some(action) = view.describe_action(application) else { continue };
        let why = match &application.action {
            ApplicationAction::Pin(_) => String::new(),
            ApplicationAction::Hold { reason, message } => format!(": {reason}: {message}"),
            ApplicationAction::Detach(why) | ApplicationAction::Remove(why) => format!(": {why}"),
        };
        let cluster = code(application.cluster.as_str());
        let _ =
            writeln!(list, "- {cluster}: {action} {}{}", code(&application.path), clip_text(&why, MESSAGE));
    }
    for error in &row.errors {
        let _ = writeln!(list, "- **error:** {}", clip_text(&error.to_string(), 1_000));
    }
    for warning in &row.warnings {
        let _ = writeln!(list, "- **warning:** {}", clip_text(&warning.to_string(), 1_000));
    }
    if !list.is_empty() {
        let _ = write!(out, "\n{list}");
    }
}

/// One resource: its title, and its lines in a block that their content cannot close.
fn format_resource(change: &ResourceChange) -> String {
    let mut out = format!(
        "\n**{}** {}",
        clip_text(&change.id.to_string(), 200),
        clip_text(&diff::describe_change(change), 200)
    );
    if !change.risks.is_empty() {
        let risks: Vec<String> = change.risks.iter().map(ToString::to_string).collect();
        let _ = write!(out, " ⚠️ **{}**", clip_text(&risks.join(", "), 200));
    }
    out.push('\n');
    let lines = diff::build_lines(change, false);
    if lines.is_empty() {
        return out;
    }
    let longest = lines.iter().map(|(_, line)| find_longest_run(line)).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let _ = writeln!(out, "\n{fence}diff");
    for (mark, line) in lines {
        let shown = escape::truncate_text(&line, WIDEST);
        let end = if mark == Mark::Path { " @@" } else { "" };
        let _ = writeln!(out, "{}", format!("{} {shown}{end}", mark.character()).trim_end());
    }
    let _ = writeln!(out, "{fence}");
    out
}

fn find_longest_run(line: &str) -> usize {
    line.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}
