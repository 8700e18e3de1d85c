//! A plan for a person: one line per Order, below it what happens and why, at the end the counts.

use crate::model::order::Mode;
use crate::model::plan::{ApplicationAction, Decision, PlanRow};
use crate::model::verdict::Verdict;
use crate::report::escape;
use crate::report::table::Table;
use crate::report::view::{self, View, Written};
use std::fmt::Write as _;

/// The table, what it means for each Order that moves, waits or fails, and the counts.
#[must_use]
pub fn format_plan(view: &View<'_>, wide: bool) -> String {
    let mut out = String::new();
    if view.plan.rows.is_empty() {
        out.push_str("No Orders.\n");
    } else {
        out.push_str(&build_table(view, wide).format_table());
    }
    let details = format_details(view);
    if !details.is_empty() {
        let _ = write!(out, "\n{details}");
    }
    let _ = write!(out, "\n{}", format_ending(view));
    out
}

/// What a run did: what it means for each Order, the Servings as they are now (`servings`, a table), and the
/// counts with the commit.
#[must_use]
pub fn format_run(view: &View<'_>, servings: &str) -> String {
    let mut out = format_details(view);
    for part in [servings, &format_ending(view)] {
        if !out.is_empty() && !part.is_empty() {
            out.push('\n');
        }
        out.push_str(part);
    }
    out
}

fn format_ending(view: &View<'_>) -> String {
    let mut counts = view.count_rows().format_summary(view.written.is_some_and(Written::is_done));
    if let Some(base) = &view.preview.base {
        let commit = base.commit.get(..12).unwrap_or(&base.commit);
        let reference = escape::escape_line(&base.reference);
        let anyway =
            view::format_count(base.anyway, "other Order moves or waits", "other Orders move or wait");
        counts = format!("{counts}\nonly what changes since {reference} ({commit}) cause; {anyway} anyway");
    }
    match view.written {
        Some(Written::Commit { id, place }) => {
            format!("{counts}\ncommitted {id} to {}\n", escape::escape_line(place))
        }
        Some(Written::Nothing) => format!("{counts}\nnothing to commit\n"),
        Some(Written::Stopped) => format!("{counts}\nstopped; nothing was written\n"),
        None => format!("{counts}\n"),
    }
}

/// ORDER, MODE, DEPLOYED, CANDIDATE, DECISION, WAITS FOR; wide adds ENVIRONMENT and DIGEST.
#[must_use]
pub fn build_table(view: &View<'_>, wide: bool) -> Table {
    let mut header = vec!["ORDER", "MODE", "DEPLOYED", "CANDIDATE", "DECISION", "WAITS FOR"];
    if wide {
        header.extend(["ENVIRONMENT", "DIGEST"]);
    }
    let mut table = Table::new(&header);
    for row in &view.plan.rows {
        let mut cells = vec![
            row.order.to_string(),
            format_mode(row.mode).to_owned(),
            view.find_deployed(row).map(ToString::to_string).unwrap_or_default(),
            row.candidate.as_ref().map(|c| c.name.to_string()).unwrap_or_default(),
            view::format_decision(row).to_owned(),
            find_waited_gate(row).map(|v| v.gate.to_string()).unwrap_or_default(),
        ];
        if wide {
            cells.push(row.environment.as_ref().map(ToString::to_string).unwrap_or_default());
            cells.push(row.candidate.as_ref().map(|c| c.artifact.digest.to_string()).unwrap_or_default());
        }
        table.push_row(cells);
    }
    table
}

/// The gate that holds a row; what is promoted waits for none.
#[must_use]
pub fn find_waited_gate(row: &PlanRow) -> Option<&Verdict> {
    match row.decision {
        Decision::Promote(_) | Decision::Remove(_) => None,
        Decision::Keep | Decision::Hold | Decision::Broken => row.find_waiting_gate(),
    }
}

/// As written in `Order.spec.promotion.mode`.
#[must_use]
pub fn format_mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Manual => "Manual",
        Mode::Automatic => "Automatic",
    }
}

/// What happens, what is held and why, what goes, drift: a block of lines per Order.
#[must_use]
pub fn format_details(view: &View<'_>) -> String {
    let mut out = String::new();
    for row in view.plan.rows.iter().filter(|row| view.has_more_to_say(row)) {
        push_line(&mut out, &format!("{}: {}", row.order, describe_row(view, row)));
        for line in collect_lines(view, row) {
            push_line(&mut out, &format!("  {line}"));
        }
    }
    for drift in view.drift {
        push_line(&mut out, &format!("{}: {}", drift.path, drift.what));
        for line in drift.diff.iter().flat_map(|diff| diff.lines()) {
            push_line(&mut out, &format!("  {line}"));
        }
    }
    if let Some(stop) = &view.plan.guard {
        push_line(
            &mut out,
            &format!("stopped by the removal guard; at most {} may be removed:", stop.allowed),
        );
        for (path, why) in &stop.removals {
            push_line(&mut out, &format!("  remove {path}: {why}"));
        }
    }
    out
}

fn push_line(out: &mut String, line: &str) {
    out.push_str(escape::escape_line(line).trim_end());
    out.push('\n');
}

/// One Order in a few words, as in the text and in the Markdown.
#[must_use]
pub fn describe_row(view: &View<'_>, row: &PlanRow) -> String {
    let candidate = row.candidate.as_ref().map(|c| c.name.as_str()).unwrap_or_default();
    let deployed = view.find_deployed(row);
    let kept = match deployed {
        Some(name) => format!("keeps {name}"),
        None => "deploys nothing".to_owned(),
    };
    match &row.decision {
        Decision::Promote(promotion) => {
            let verb = if promotion.rollback { "rolls back to" } else { "promotes" };
            let place = row.environment.as_ref().map(|e| format!(" in {e}")).unwrap_or_default();
            let was = match &promotion.previous {
                Some((name, _)) => format!(" (was {name})"),
                None => " (the first)".to_owned(),
            };
            let by = match promotion.requested_by.name.as_str() {
                "automatic" => "automatically".to_owned(),
                name => format!("asked for by {name}"),
            };
            format!("{verb} {candidate}{place}{was}, {by}")
        }
        Decision::Hold => match row.find_waiting_gate() {
            Some(verdict) => format!("{candidate} waits for {}; {kept}", verdict.gate),
            None => format!("{candidate} waits; {kept}"),
        },
        Decision::Keep => kept,
        Decision::Broken => format!("its input is wrong; {kept}"),
        Decision::Remove(why) => format!("is removed: {why}"),
    }
}

/// Every gate that does not pass, every file that changes, every error and warning of one Order.
fn collect_lines(view: &View<'_>, row: &PlanRow) -> Vec<String> {
    let mut lines = Vec::new();
    match row.decision {
        Decision::Promote(_) | Decision::Remove(_) => {}
        Decision::Keep | Decision::Hold | Decision::Broken => {
            for verdict in row.verdicts.iter().filter(|v| view::needs_line(v)) {
                lines.push(format!(
                    "{} {}: {}",
                    verdict.gate,
                    view::describe_outcome(verdict),
                    verdict.message
                ));
            }
            let forecast = view.find_forecast(row).filter(|_| matches!(row.decision, Decision::Hold));
            lines.extend(
                forecast.map(|f| format!("can be promoted {}", view::describe_forecast(f, view.plan.at))),
            );
        }
    }
    for application in &row.applications {
        let Some(action) = view.describe_action(application) else { continue };
        let place = format!("{}: {action} {}", application.cluster, application.path);
        lines.push(match &application.action {
            ApplicationAction::Pin(_) => place,
            ApplicationAction::Hold { reason, message } => {
                format!("{}: held, {reason}: {message}", application.cluster)
            }
            ApplicationAction::Detach(why) | ApplicationAction::Remove(why) => format!("{place}: {why}"),
        });
    }
    lines.extend(row.errors.iter().map(|e| format!("error: {e}")));
    lines.extend(row.warnings.iter().map(|w| format!("warning: {w}")));
    lines
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::model::id::CommitId;
    use crate::model::plan::GuardStop;
    use crate::report::sample::{check_same, make_sample, parse_order};

    #[test]
    fn a_plan_says_what_moves_what_waits_and_why() {
        let sample = make_sample();
        let text = format_plan(&sample.make_view(None), false);
        check_same("plan/expected.txt", &text);
    }

    #[test]
    fn a_wide_plan_has_more_columns() {
        let sample = make_sample();
        let wide = build_table(&sample.make_view(None), true).format_table();
        assert!(wide.lines().next().unwrap().ends_with("ENVIRONMENT   DIGEST"), "{wide}");
        assert!(wide.contains("production    sha256:"), "{wide}");
    }

    #[test]
    fn a_run_speaks_of_what_was_done() {
        let sample = make_sample();
        let id = CommitId::parse(&"0".repeat(40)).unwrap();
        let written = Written::Commit { id, place: "../gitops.git main".into() };
        let text = format_run(&sample.make_view(Some(&written)), "NAME\nx\n");
        assert!(text.contains("\n\nNAME\nx\n\n1 promoted"), "{text}");
        let end = "4 files changed
committed 0000000000000000000000000000000000000000 to ../gitops.git main
";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn an_empty_plan_says_so() {
        let mut sample = make_sample();
        sample.plan.rows.clear();
        sample.changes.clear();
        sample.drift.clear();
        assert_eq!(
            format_plan(&sample.make_view(None), false),
            "No Orders.\n\n0 to promote, 0 held, 0 failed, 0 unchanged, of 0 Orders; 0 files to change\n"
        );
    }

    #[test]
    fn what_is_kept_without_a_change_is_a_line_of_the_table_only() {
        let mut sample = make_sample();
        sample.plan.rows.retain(|row| row.order == parse_order("shop/kept"));
        assert!(
            format_details(&sample.make_view(None)).contains("shop/kept: keeps kept-1\n  eu-1: restore ")
        );
        sample.changes.clear();
        sample.drift.clear();
        assert_eq!(format_details(&sample.make_view(None)), "");
    }

    #[test]
    fn the_guard_lists_what_would_go() {
        let mut sample = make_sample();
        let removals = vec![("applications/shop/a.yaml".to_owned(), "its Order is gone".to_owned())];
        sample.plan.guard = Some(GuardStop { allowed: 0, removals });
        let details = format_details(&sample.make_view(None));
        assert!(
            details.ends_with(
                "stopped by the removal guard; at most 0 may be removed:\n  remove applications/shop/a.yaml: its Order is gone\n"
            ),
            "{details}"
        );
    }
}
