//! The commit message of a run: a subject people read in a log, one line per change, trailers for machines.

use super::Decided;
use crate::model::plan::{ApplicationAction, Decision, PlanRow, ServingPlan};
use git_commits::Identity;

/// The trailer that names an Order that a commit is about.
pub const ORDER_TRAILER: &str = "Order";

/// The message for what `decided` changes, in a commit by `identity`: whoever else asked is its co-author.
#[must_use]
pub fn format_message(decided: &Decided, identity: &Identity) -> String {
    let rows = decided.plan.rows.iter().filter(|row| !decided.rendered.has_failed(&row.order));
    let rows: Vec<&PlanRow> = rows.collect();
    let promoted: Vec<&PlanRow> =
        rows.iter().copied().filter(|r| matches!(r.decision, Decision::Promote(_))).collect();
    let removed: Vec<&PlanRow> =
        rows.iter().copied().filter(|r| matches!(r.decision, Decision::Remove(_))).collect();
    let mut lines = Vec::new();
    let mut trailers = Vec::new();
    let mut asked: Vec<&str> = Vec::new();
    for row in &rows {
        lines.extend(format_line(row));
        if let (Decision::Promote(promotion), Some(candidate)) = (&row.decision, &row.candidate) {
            trailers.push((ORDER_TRAILER.into(), row.order.to_string()));
            trailers.push(("Preparation".into(), format!("{}/{}", row.order.namespace, candidate.name)));
            trailers.push(("Digest".into(), candidate.artifact.digest.to_string()));
            if let ServingPlan::Write(state) = &row.serving
                && let Some(record) = state.status.history.first().and_then(|e| e.promotion_record)
            {
                trailers.push(("Promotion-Record".into(), record.to_string()));
            }
            trailers.push(("Requested-By".into(), promotion.requested_by.name.clone()));
            asked.push(&promotion.requested_by.name);
        }
    }
    for edit in &decided.rendered.drift {
        lines.push(format!("Restore {} of {}, which was edited by hand", edit.path, edit.order));
    }
    trailers.extend(identity.collect_co_authors(asked));
    git_commits::build_message(&format_subject(decided, &promoted, &removed), &lines, &trailers)
}

fn format_subject(decided: &Decided, promoted: &[&PlanRow], removed: &[&PlanRow]) -> String {
    match (promoted, removed) {
        ([row], []) => format_promotion(row, "Promote").unwrap_or_else(|| "Promote".into()),
        ([], [row]) => format!("Remove {}", row.order),
        ([], []) => match decided.rendered.changes.keys().next() {
            Some(only) if decided.rendered.changes.len() == 1 => format!("Update {only}"),
            _ => format!("Update {} files", decided.rendered.changes.len()),
        },
        (promoted, []) => format!("Promote {} Orders", promoted.len()),
        ([], removed) => format!("Remove {} Orders", removed.len()),
        (promoted, removed) => format!("Promote {} Orders, remove {}", promoted.len(), removed.len()),
    }
}

fn format_promotion(row: &PlanRow, verb: &str) -> Option<String> {
    let (candidate, environment) = (row.candidate.as_ref()?, row.environment.as_ref()?);
    Some(format!("{verb} {} to {} in {environment}", row.order, candidate.name))
}

fn format_line(row: &PlanRow) -> Option<String> {
    match &row.decision {
        Decision::Promote(p) => format_promotion(row, if p.rollback { "Roll back" } else { "Promote" }),
        Decision::Remove(why) => Some(format!("Remove {}: {why}", row.order)),
        Decision::Keep | Decision::Hold | Decision::Broken => {
            let gone =
                row.applications.iter().filter(|a| matches!(a.action, ApplicationAction::Remove(_))).count();
            match (&row.serving, gone) {
                (ServingPlan::Write(_), 0) => Some(format!("Update the state of {}", row.order)),
                (ServingPlan::Write(_) | ServingPlan::Keep | ServingPlan::Remove, 1..) => {
                    Some(format!("Remove {gone} Applications of {}", row.order))
                }
                (ServingPlan::Keep | ServingPlan::Remove, _) => None,
            }
        }
    }
}
