//! A plan as a diff: of each Order that moves, waits or changes, its Applications' files as they are committed, and
//! the objects inside its artifact.

use super::{format_comparison, paint_line};
use crate::files::FileChange;
use crate::model::plan::PlanRow;
use crate::report::escape;
use crate::report::plan::describe_row;
use crate::report::view::View;
use similar::TextDiff;
use std::fmt::Write as _;

const BOLD: &str = "\u{1b}[1m";
const OLD: &str = "\u{1b}[31m";
const NEW: &str = "\u{1b}[32m";
const PLACE: &str = "\u{1b}[36m";

/// All of it; in colour every line resets what it set.
#[must_use]
pub fn format_plan(view: &View<'_>, colour: bool) -> String {
    let mut out = String::new();
    for row in view.iter_shown_rows() {
        let title = format!("{}: {}", row.order, describe_row(view, row));
        let _ = writeln!(out, "{}", paint_line(BOLD, &escape::escape_line(&title), colour));
        push_files(&mut out, view, row, colour);
        match view.preview.more.get(&row.order).and_then(|more| more.inside.as_ref()) {
            Some(Ok(comparison)) => out.push_str(&format_comparison(comparison, colour)),
            Some(Err(failure)) => {
                let _ = writeln!(out, "inside: unknown, {}", escape::escape_line(&failure.to_string()));
            }
            None => {}
        }
        out.push('\n');
    }
    let counts = view.count_rows().format_summary(false);
    let _ = writeln!(out, "{counts}");
    out
}

fn push_files(out: &mut String, view: &View<'_>, row: &PlanRow, colour: bool) {
    for application in &row.applications {
        let before = view.before.applications.get(&application.path).map(|file| &*file.text);
        let after = match view.changes.get(&application.path) {
            Some(FileChange::Write(bytes)) => Some(String::from_utf8_lossy(bytes)),
            Some(FileChange::Delete) => None,
            None => continue,
        };
        let header = |there: bool, side: &str| match there {
            true => format!("{side}/{}", application.path),
            false => "/dev/null".to_owned(),
        };
        let diff = TextDiff::from_lines(before.unwrap_or_default(), after.as_deref().unwrap_or_default());
        let (old, new) = (header(before.is_some(), "a"), header(after.is_some(), "b"));
        let unified = diff.unified_diff().context_radius(3).header(&old, &new).to_string();
        for line in unified.lines() {
            let code = match line.as_bytes().first() {
                _ if line.starts_with("---") || line.starts_with("+++") => BOLD,
                Some(b'-') => OLD,
                Some(b'+') => NEW,
                Some(b'@') => PLACE,
                Some(_) | None => "",
            };
            let _ = writeln!(out, "{}", paint_line(code, &escape::escape_line(line), colour));
        }
    }
}
