//! A plan as Markdown, for a step's summary or a pull request: the counts first, then the table, then one
//! fold per Order that moves, waits or fails. It keeps to a budget and says what it left out.

use crate::model::plan::{ApplicationAction, Row};
use crate::report::escape::{markdown as text, markdown_code as code, markdown_html};
use crate::report::plan::{headline, mode, waits_for};
use crate::report::view::{self, View, Written, counted};
use std::fmt::Write as _;

/// The plan in at most `budget` bytes (where that leaves room for the counts): rows of the table and folds are
/// added while they fit, whole; the counts are always exact.
#[must_use]
pub fn plan(view: &View<'_>, budget: usize) -> String {
    let mut out = format!(
        "## Expedite\n\n**{}**\n",
        text(&view.summary().text(view.written.is_some_and(Written::is_done)))
    );
    if let Some(stop) = &view.plan.guard {
        let _ = write!(
            out,
            "\n**Stopped by the removal guard:** {} would go, {} may.\n",
            counted(stop.removals.len(), "Application", "Applications"),
            stop.allowed
        );
    }
    for failure in &view.plan.problems {
        push_whole(&mut out, &format!("\n- **error:** {}\n", text(&failure.to_string())), budget);
    }
    table(&mut out, view, budget);

    let mut left_out = 0;
    for row in view.plan.rows.iter().filter(|row| view.speaks(row)) {
        left_out += usize::from(!push_whole(&mut out, &fold(view, row), budget));
    }
    if left_out > 0 {
        let what = counted(left_out, "Order is", "Orders are");
        let _ = write!(out, "\n{what} left out here for length; `expedite plan` shows all.\n");
    }
    for drift in view.drift {
        push_whole(&mut out, &format!("\n- {}: {}\n", code(&drift.path), text(&drift.what)), budget);
    }
    out
}

/// Bytes kept free for what is said about what was left out.
const RESERVE: usize = 400;

fn push_whole(out: &mut String, part: &str, budget: usize) -> bool {
    let fits = out.len() + part.len() + RESERVE <= budget;
    if fits {
        out.push_str(part);
    }
    fits
}

/// Half of the budget at most: the folds say more.
fn table(out: &mut String, view: &View<'_>, budget: usize) {
    if view.plan.rows.is_empty() {
        return;
    }
    out.push_str(
        "\n| Order | Mode | Deployed | Candidate | Decision | Waits for |\n|---|---|---|---|---|---|\n",
    );
    let mut shown = 0;
    for row in &view.plan.rows {
        let cell = |name: Option<String>| name.map(|n| code(&n)).unwrap_or_default();
        let line = format!(
            "| {} | {} | {} | {} | {} | {} |\n",
            code(&row.order.to_string()),
            mode(row.mode),
            cell(view.deployed(row).map(ToString::to_string)),
            cell(row.candidate.as_ref().map(|c| c.name.to_string())),
            view::decision(row),
            waits_for(row).map(|v| v.gate.as_str()).unwrap_or_default(),
        );
        if !push_whole(out, &line, budget / 2) {
            break;
        }
        shown += 1;
    }
    let rest = view.plan.rows.len() - shown;
    if rest > 0 {
        let _ = write!(out, "\n{} more in `expedite plan`.\n", counted(rest, "Order", "Orders"));
    }
}

fn fold(view: &View<'_>, row: &Row) -> String {
    let mut out = format!(
        "\n<details><summary>{}: {}</summary>\n\n",
        code(&row.order.to_string()),
        markdown_html(&headline(view, row))
    );
    for verdict in &row.verdicts {
        let mark = if verdict.is_passed() { "passed".to_owned() } else { view::outcome(verdict) };
        let _ = writeln!(out, "- **{}** {}: {}", verdict.gate, text(&mark), text(&verdict.message));
    }
    for application in &row.applications {
        let Some(action) = view.action(application) else { continue };
        let why = match &application.action {
            ApplicationAction::Pin(_) => String::new(),
            ApplicationAction::Hold { reason, message } => format!(": {reason}: {message}"),
            ApplicationAction::Detach(why) | ApplicationAction::Remove(why) => format!(": {why}"),
        };
        let cluster = code(application.cluster.as_str());
        let _ = writeln!(out, "- {cluster}: {action} {}{}", code(&application.path), text(&why));
    }
    for error in &row.errors {
        let _ = writeln!(out, "- **error:** {}", text(&error.to_string()));
    }
    for warning in &row.warnings {
        let _ = writeln!(out, "- **warning:** {}", text(&warning.to_string()));
    }
    out.push_str("\n</details>\n");
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::error::Failure;
    use crate::model::order::Mode;
    use crate::model::plan::Decision;
    use crate::model::verdict::{For, GateName, Verdict};
    use crate::report::sample::{row, same, sample};

    #[test]
    fn a_plan_reads_as_a_page() {
        let sample = sample();
        let page = plan(&sample.view(None), 60_000);
        same("markdown/expected.md", &page);
    }

    #[test]
    fn the_budget_holds_and_the_counts_survive() {
        let mut sample = sample();
        sample.plan.rows = (0..400)
            .map(|n| {
                let mut held = row(&format!("shop/app-{n}"), Mode::Manual, Some("x-1"), Decision::Hold);
                let message = format!("{} 🍲", "long words ".repeat(80));
                held.verdicts = vec![Verdict::waiting(GateName::Window, For::Evidence, message)];
                held
            })
            .collect();
        for budget in [3_000, 10_000, 65_536, 100_000] {
            let page = plan(&sample.view(None), budget);
            assert!(page.len() <= budget, "{} of {budget}", page.len());
            assert!(page.contains("400 held"), "the counts are exact");
            assert!(page.contains("are left out here for length"), "{budget}");
            assert_eq!(page.matches("<details>").count(), page.matches("</details>").count());
            let table = page.lines().filter(|l| l.starts_with('|'));
            assert!(table.clone().all(|l| l.ends_with('|')), "no row is cut");
        }
        let whole = plan(&sample.view(None), 1_000_000);
        assert_eq!(whole.matches("<details>").count(), 400);
        assert!(!whole.contains("left out"));
    }

    #[test]
    fn one_order_too_long_for_the_page_leaves_the_others() {
        let mut sample = sample();
        let all = plan(&sample.view(None), 60_000).matches("<details>").count();
        sample.plan.rows[0].errors.push(Failure::input("x", "y".repeat(70_000)));
        let page = plan(&sample.view(None), 65_536);
        assert_eq!(page.matches("<details>").count(), all - 1);
        assert!(page.contains("1 Order is left out here"), "{page}");
    }

    #[test]
    fn foreign_text_closes_no_fold_and_calls_nobody() {
        let mut sample = sample();
        sample.plan.rows.retain(|r| r.order.name.as_str() == "cart");
        sample.plan.rows[0].verdicts[1].message =
            "</details>\n\n# all good\n@everyone | [x](https://evil.example) ``` <!-- --> #12".into();
        let page = plan(&sample.view(None), 60_000);
        assert_eq!(page.matches("</details>").count(), 1, "{page}");
        assert!(
            !page.contains("\n# all") && !page.contains("@everyone") && !page.contains("https://evil"),
            "{page}"
        );
    }
}
