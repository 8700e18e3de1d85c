//! The top of the page: what a reader must know in ten seconds.

use crate::model::plan::{Decision, PlanRow};
use crate::model::verdict::Verdict;
use crate::report::escape::{escape_markdown, format_markdown_code as code};
use crate::report::plan::find_waited_gate;
use crate::report::view::describe_forecast;
use crate::report::view::{View, Written, format_count, has_failed};
use crate::report::{diff, escape};
use std::fmt::Write as _;

/// Rows in the order in which they are read: what moves, what is wrong, what waits, the rest.
pub fn sort_rows<'a>(view: &'a View<'_>) -> impl Iterator<Item = &'a PlanRow> {
    let mut rows: Vec<&PlanRow> = view.iter_shown_rows().collect();
    rows.sort_by_key(|row| Sort::from_row(row));
    rows.into_iter()
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum Sort {
    Moves,
    Failed,
    Held,
}

impl Sort {
    fn from_row(row: &PlanRow) -> Self {
        match row.decision {
            Decision::Promote(_) | Decision::Remove(_) => Self::Moves,
            Decision::Keep | Decision::Hold | Decision::Broken if has_failed(row) => Self::Failed,
            Decision::Hold => Self::Held,
            Decision::Keep | Decision::Broken => Self::Moves,
        }
    }
}

/// The counts, which are always included; then as much as fits into two fifths of `room`.
pub fn format_summary(view: &View<'_>, room: usize) -> String {
    let counts = view.count_rows().format_summary(view.written.is_some_and(Written::is_done));
    let mut out = format!("{}\n## Expedite\n\n**{}**\n", super::MARKER, escape_markdown(&counts));
    if let Some(stop) = &view.plan.guard {
        let _ = write!(
            out,
            "\n**Stopped by the removal guard:** {} would be removed, at most {} may be.\n",
            format_count(stop.removals.len(), "Application", "Applications"),
            stop.allowed
        );
    }
    let room = (room / 5 * 2).max(out.len());
    let mut left_out = Left::default();
    push_base(&mut out, view, room, &mut left_out);
    for failure in &view.plan.problems {
        left_out.push_part(
            &mut out,
            &format!("\n- **error:** {}\n", clip_text(&failure.to_string(), 1_000)),
            room,
        );
    }
    let rows: Vec<&PlanRow> = sort_rows(view).collect();
    let of = |sort: Sort| rows.iter().copied().filter(move |row| Sort::from_row(row) == sort);
    let tables: [(&str, &str, Vec<String>); 3] = [
        (
            "Moves",
            "| Order | Environment | From | To | Inside |\n|---|---|---|---|---|\n",
            of(Sort::Moves).map(|row| format_move(view, row)).collect(),
        ),
        ("Failed", "| Order | Why |\n|---|---|\n", of(Sort::Failed).map(format_failed).collect()),
        (
            "Held",
            "| Order | Candidate | Waits for | Deploys | Inside |\n|---|---|---|---|---|\n",
            of(Sort::Held).map(|row| format_held(view, row)).collect(),
        ),
    ];
    let mut orders = 0;
    for (title, header, lines) in tables.iter().filter(|(.., lines)| !lines.is_empty()) {
        let head = format!("\n**{title}**\n\n{header}");
        let mut shown = false;
        for line in lines {
            let part = if shown { line.clone() } else { format!("{head}{line}") };
            if out.len() + part.len() <= room {
                out.push_str(&part);
                shown = true;
            } else {
                orders += 1;
            }
        }
    }
    if orders > 0 {
        let _ = write!(out, "\n{} more in `expedite plan`.\n", format_count(orders, "Order", "Orders"));
    }
    if left_out.0 > 0 {
        let _ = write!(out, "\n{} more in `expedite plan`.\n", format_count(left_out.0, "line", "lines"));
    }
    out
}

/// Lines that did not fit.
#[derive(Default)]
struct Left(usize);

impl Left {
    fn push_part(&mut self, out: &mut String, part: &str, room: usize) {
        if out.len() + part.len() <= room {
            out.push_str(part);
        } else {
            self.0 += 1;
        }
    }
}

/// What the change makes easier to pass, and then what the plan was compared with.
fn push_base(out: &mut String, view: &View<'_>, room: usize, left_out: &mut Left) {
    let Some(base) = &view.preview.base else { return };
    if !base.weakened.is_empty() {
        let count = format_count(base.weakened.len(), "way", "ways");
        left_out.push_part(
            out,
            &format!("\n⚠️ **This change weakens what protects promotions, in {count}:**\n\n"),
            room,
        );
        for line in &base.weakened {
            left_out.push_part(out, &format!("- {}\n", clip_text(line, 300)), room);
        }
    }
    let anyway = match base.anyway {
        0 => String::new(),
        1 => "; 1 other Order moves or waits anyway".to_owned(),
        n => format!("; {n} other Orders move or wait anyway"),
    };
    let reference = code(&base.reference);
    let line = format!(
        "\nOnly what this change causes, compared with {reference} ({}), whose settings and trust count{anyway}.\n",
        code(base.commit.get(..12).unwrap_or(&base.commit))
    );
    left_out.push_part(out, &line, room);
    for order in &base.gone {
        let line = format!("\n- {} goes; it deploys nothing\n", code(&order.to_string()));
        left_out.push_part(out, &line, room);
    }
    for note in &base.notes {
        left_out.push_part(out, &format!("\n- {}\n", clip_text(note, 300)), room);
    }
}

fn format_move(view: &View<'_>, row: &PlanRow) -> String {
    let to = match &row.decision {
        Decision::Promote(promotion) => {
            let candidate = format_name(row.candidate.as_ref().map(|c| c.name.as_str()));
            if promotion.rollback { format!("{candidate} (rollback)") } else { candidate }
        }
        Decision::Remove(_) => "**removed**".to_owned(),
        Decision::Keep | Decision::Hold | Decision::Broken => "stays".to_owned(),
    };
    format!(
        "| {} | {} | {} | {to} | {} |\n",
        code(&row.order.to_string()),
        format_name(row.environment.as_ref().map(|e| e.as_str())),
        format_name(view.find_deployed(row).map(|d| d.as_str())),
        describe_inside(view, row),
    )
}

fn format_held(view: &View<'_>, row: &PlanRow) -> String {
    let waits = find_waited_gate(row).map(|v| format!("**{}**: {}", v.gate, clip_text(&v.message, 160)));
    let forecast = view.preview.more.get(&row.order).and_then(|more| more.forecast.as_ref());
    format!(
        "| {} | {} | {} | {} | {} |\n",
        code(&row.order.to_string()),
        format_name(row.candidate.as_ref().map(|c| c.name.as_str())),
        waits.unwrap_or_default(),
        forecast.map(|f| escape_markdown(&describe_forecast(f, view.plan.at))).unwrap_or_default(),
        describe_inside(view, row),
    )
}

fn format_failed(row: &PlanRow) -> String {
    let unread = |v: &&Verdict| v.unread;
    let error = row.errors.first().map(ToString::to_string);
    let why = error.or_else(|| row.verdicts.iter().find(unread).map(|v| v.message.clone()));
    format!("| {} | {} |\n", code(&row.order.to_string()), clip_text(&why.unwrap_or_default(), 300))
}

/// How many resources change inside, and their risks.
pub fn describe_inside(view: &View<'_>, row: &PlanRow) -> String {
    let Some(more) = view.preview.more.get(&row.order) else { return String::new() };
    let mut out = match &more.inside {
        Some(Ok(comparison)) => {
            let counts = comparison.count_resources();
            let nothing = comparison.changes.is_empty() && comparison.noise.is_empty();
            let mut out = if nothing { "nothing changes".to_owned() } else { diff::format_counts(&counts) };
            let risks: Vec<String> =
                comparison.count_risks().iter().map(|(w, n)| format!("{w} ({n})")).collect();
            if !risks.is_empty() {
                let _ = write!(out, " ⚠️ **{}**", risks.join(", "));
            }
            out
        }
        Some(Err(failure)) => format!("unknown: {}", clip_text(&failure.cause, 80)),
        None => String::new(),
    };
    if let Some((from, to)) = &more.moves {
        let _ = write!(out, " ⚠️ **namespace {} → {}**", escape_markdown(from), escape_markdown(to));
    }
    out
}

fn format_name(name: Option<&str>) -> String {
    name.map(code).unwrap_or_default()
}

/// Foreign text of at most so many columns.
pub fn clip_text(foreign: &str, columns: usize) -> String {
    escape_markdown(&escape::truncate_text(&escape::escape_line(foreign), columns))
}
