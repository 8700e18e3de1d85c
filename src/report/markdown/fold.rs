//! One Order's fold: its gates as a table, when it deploys, its Applications, and what changes inside its artifact.

use super::summary::{clipped, inside};
use crate::compare::ResourceChange;
use crate::model::plan::{ApplicationAction, Row};
use crate::model::verdict::{EvidenceRef, Outcome, Verdict};
use crate::report::diff::{self, Mark};
use crate::report::escape::{self, markdown as text, markdown_code as code, markdown_html};
use crate::report::plan::headline;
use crate::report::view::promotes;
use crate::report::view::{self, View, counted};
use std::fmt::Write as _;

/// Longest line of a block, in columns: a file on one line is no reading.
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
    /// Of one Order.
    pub fn new(view: &View<'_>, row: &Row) -> Self {
        let mut head = format!(
            "\n<details><summary>{}: {}</summary>\n",
            code(&row.order.to_string()),
            markdown_html(&headline(view, row))
        );
        if let Some(without) = view.preview.base.as_ref().and_then(|base| base.without.get(&row.order)) {
            let _ = write!(head, "\nWithout this change: {}\n", clipped(without, MESSAGE));
        }
        artifact(&mut head, view, row);
        gates(&mut head, row);
        let more = view.preview.more.get(&row.order);
        if let Some(forecast) = more.and_then(|more| more.forecast.as_ref()) {
            let _ = write!(head, "\nDeploys {}.\n", text(&promotes(forecast, view.plan.at)));
        }
        lines(&mut head, view, row);
        let mut resources = Vec::new();
        match more.and_then(|more| more.inside.as_ref()) {
            Some(Ok(comparison)) => {
                let _ = write!(head, "\n**Inside:** {}\n", inside(view, row));
                for remark in diff::remarks(comparison) {
                    let _ = write!(head, "\n- {}\n", clipped(&remark, 1_000));
                }
                let mut changes: Vec<&ResourceChange> = comparison.changes.iter().collect();
                // What not to miss comes first, and is the last to be left out.
                changes.sort_by_key(|change| change.risks.is_empty());
                resources = changes.into_iter().map(resource).collect();
            }
            Some(Err(failure)) => {
                let why = clipped(&failure.to_string(), MESSAGE);
                let _ = write!(head, "\n**Inside:** unknown: {why}\n");
            }
            None => {}
        }
        Self { head, resources, command: format!("expedite diff {}", row.order) }
    }

    /// Bytes without any resource.
    pub fn len(&self) -> usize {
        self.head.len() + END.len() + if self.resources.is_empty() { 0 } else { self.rest(usize::MAX).len() }
    }

    /// Bytes of all resources.
    pub fn need(&self) -> usize {
        self.resources.iter().map(String::len).sum()
    }

    /// The fold, with as many whole resources as fit into `room`.
    pub fn text(&self, room: usize) -> String {
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
            out.push_str(&self.rest(left));
        }
        out + END
    }

    fn rest(&self, left: usize) -> String {
        let what = counted(left, "resource is", "resources are");
        format!("\n{what} left out here for length; {} shows all.\n", code(&self.command))
    }
}

/// The whole names of what is deployed and of the candidate: by them anybody can look.
fn artifact(out: &mut String, view: &View<'_>, row: &Row) {
    let Some(candidate) = &row.candidate else { return };
    let deployed = view.serving(row).and_then(|s| s.status.deployed_digest);
    let from = match deployed {
        Some(digest) if digest == candidate.artifact.digest => return,
        Some(digest) => format!("{} → ", code(&digest.to_string())),
        None => String::new(),
    };
    let _ = write!(out, "\n{from}{}\n", code(&candidate.artifact.to_string()));
    if let Some(message) = candidate.commit_message.as_deref().and_then(|m| m.lines().next()) {
        let _ = write!(out, "\n“{}”\n", clipped(message, MESSAGE));
    }
}

fn gates(out: &mut String, row: &Row) {
    if row.verdicts.is_empty() {
        return;
    }
    out.push_str("\n| Gate | Answer | Why | Evidence |\n|---|---|---|---|\n");
    for verdict in &row.verdicts {
        let _ = writeln!(
            out,
            "| **{}** | {} | {} | {} |",
            verdict.gate,
            answer(verdict),
            clipped(&verdict.message, MESSAGE),
            evidence(&verdict.evidence)
        );
    }
}

fn answer(verdict: &Verdict) -> String {
    let mark = match (&verdict.outcome, verdict.unread) {
        (_, true) => "❓",
        (Outcome::Passed, false) => "✅",
        (Outcome::Waiting(_), false) => "⏳",
        (Outcome::Failed, false) => "❌",
    };
    format!("{mark} {}", clipped(&view::outcome(verdict), 120))
}

/// `signature sha256:7506f4d79a25 by renderer`, one below the other.
fn evidence(pieces: &[EvidenceRef]) -> String {
    let mut lines: Vec<String> = pieces
        .iter()
        .take(PIECES)
        .map(|piece| {
            let mut line = clipped(&piece.kind, 40);
            if !piece.name.is_empty() {
                let _ = write!(line, " {}", clipped(&piece.name, 60));
            }
            if let Some(digest) = &piece.digest {
                let _ = write!(line, " {}", code(&format!("sha256:{}", &digest.hex()[..12])));
            }
            if !piece.key.is_empty() {
                let _ = write!(line, " by {}", clipped(&piece.key, 60));
            }
            line
        })
        .collect();
    if pieces.len() > PIECES {
        lines.push(format!("and {} more", pieces.len() - PIECES));
    }
    lines.join("<br>")
}

fn lines(out: &mut String, view: &View<'_>, row: &Row) {
    let mut list = String::new();
    for application in &row.applications {
        let Some(action) = view.action(application) else { continue };
        let why = match &application.action {
            ApplicationAction::Pin(_) => String::new(),
            ApplicationAction::Hold { reason, message } => format!(": {reason}: {message}"),
            ApplicationAction::Detach(why) | ApplicationAction::Remove(why) => format!(": {why}"),
        };
        let cluster = code(application.cluster.as_str());
        let _ = writeln!(list, "- {cluster}: {action} {}{}", code(&application.path), clipped(&why, MESSAGE));
    }
    for error in &row.errors {
        let _ = writeln!(list, "- **error:** {}", clipped(&error.to_string(), 1_000));
    }
    for warning in &row.warnings {
        let _ = writeln!(list, "- **warning:** {}", clipped(&warning.to_string(), 1_000));
    }
    if !list.is_empty() {
        let _ = write!(out, "\n{list}");
    }
}

/// One resource: its title, and its lines in a block that nothing of theirs can close.
fn resource(change: &ResourceChange) -> String {
    let mut out =
        format!("\n**{}** {}", clipped(&change.id.to_string(), 200), clipped(&diff::how(change), 200));
    if !change.risks.is_empty() {
        let risks: Vec<String> = change.risks.iter().map(ToString::to_string).collect();
        let _ = write!(out, " ⚠️ **{}**", clipped(&risks.join(", "), 200));
    }
    out.push('\n');
    let lines = diff::lines(change, false);
    if lines.is_empty() {
        return out;
    }
    let longest = lines.iter().map(|(_, line)| longest_run(line)).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let _ = writeln!(out, "\n{fence}diff");
    for (mark, line) in lines {
        let shown = escape::truncate(&line, WIDEST);
        let end = if mark == Mark::Path { " @@" } else { "" };
        let _ = writeln!(out, "{}", format!("{} {shown}{end}", mark.character()).trim_end());
    }
    let _ = writeln!(out, "{fence}");
    out
}

fn longest_run(line: &str) -> usize {
    line.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}
