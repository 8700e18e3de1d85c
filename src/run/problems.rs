//! What a finished plan says about itself: which files belong to a row, what stops a run, and where exactly
//! a message's field is written.

use super::{Decided, records};
use crate::error::{At, Failure, FailureKind};
use crate::files::FileChange;
use crate::load;
use crate::model::naming::{ALLOWED_ORDER, build_serving_path};
use crate::model::plan::{Plan, PlanRow};
use git_commits::Repository;
use std::collections::{BTreeMap, BTreeSet};

/// Every path among `changes` that belongs to a row: its Serving, its Applications and its records.
#[must_use]
pub fn collect_paths(row: &PlanRow, changes: &BTreeMap<String, FileChange>) -> BTreeSet<String> {
    let applications = row.applications.iter().map(|a| a.path.clone());
    let folder = format!("records/{}/", row.order);
    let records =
        changes.range(folder.clone()..).map(|(path, _)| path).take_while(|p| p.starts_with(&folder));
    applications.chain([build_serving_path(&row.order)]).chain(records.cloned()).collect()
}

/// Finds line and column of the fields that the plan's messages name.
pub fn refine_places(plan: &mut Plan, read: &dyn Fn(&str) -> Option<Vec<u8>>) {
    load::refine_places(&mut plan.problems, read);
    load::refine_places(&mut plan.notices, read);
    for row in &mut plan.rows {
        load::refine_places(&mut row.errors, read);
        load::refine_places(&mut row.warnings, read);
    }
}

/// Why nothing may be written: the removal guard, or hand edits under `--check`.
#[must_use]
pub fn find_stop(decided: &Decided, check: bool) -> Option<Failure> {
    if let Some(guard) = &decided.plan.guard {
        let list: Vec<String> = guard.removals.iter().map(|(path, why)| format!("{path} ({why})")).collect();
        return Some(
            Failure::new(
                FailureKind::Guard,
                "removal-guard",
                format!(
                    "{} Applications would be removed, and {} may be: {}",
                    guard.removals.len(),
                    guard.allowed,
                    list.join("; ")
                ),
            )
            .with_hint(format!("if all of them should go: --allow-removals {}", guard.removals.len()))
            .with_hint("if not: look at the sources; nothing was written"),
        );
    }
    if check { find_hand_edits(decided) } else { None }
}

/// What `--check` says no to: files of ours that were edited by hand, records that somebody removed, and
/// Applications of others in our folder.
#[must_use]
pub fn find_hand_edits(decided: &Decided) -> Option<Failure> {
    let edited: Vec<&str> = decided.rendered.drift.iter().map(|edit| edit.path.as_str()).collect();
    let foreign: Vec<&str> = find_foreign(decided).collect();
    let gone: Vec<String> = records::find_gone(&decided.gitops).map(|(_, path)| path).collect();
    let mut said = Vec::new();
    if !edited.is_empty() {
        said.push(format!("edited by hand: {}", edited.join(", ")));
    }
    if !foreign.is_empty() {
        said.push(format!("not ours: {}", foreign.join(", ")));
    }
    if !gone.is_empty() {
        said.push(format!("gone: {}", gone.join(", ")));
    }
    if said.is_empty() {
        return None;
    }
    let mut failure = Failure::new(FailureKind::SaysNo, "hand-edits", said.join("; "));
    if let ([one], []) | ([], [one]) = (&edited[..], &foreign[..]) {
        failure = failure.with_place(At::from_file(*one));
    }
    if !gone.is_empty() {
        failure = failure.with_hint(records::BRING_BACK);
    }
    if !edited.is_empty() {
        failure = failure.with_hint("revert the edit, or run without --check to restore the files");
    }
    if !foreign.is_empty() {
        failure = failure.with_hint(format!(
            "move an Application of somebody else out of applications/, or give it to an Order: annotate it with {ALLOWED_ORDER}: <namespace>/<order>"
        ));
    }
    Some(failure)
}

/// Applications in our folder that are not ours, and that this plan takes over for no Order.
pub fn find_foreign(decided: &Decided) -> impl Iterator<Item = &str> {
    let files = decided.gitops.applications.iter();
    files
        .filter(|(_, file)| file.owner.is_none() && file.application.is_ok())
        .map(|(path, _)| path.as_str())
        .filter(|path| !decided.rendered.changes.contains_key(*path))
}

/// The server took no commit although the branch did not move: its own words.
#[must_use]
pub fn make_refused(repository: &Repository, words: &str) -> Failure {
    Failure::new(FailureKind::Repository, "push-refused", format!("the server refused the commit: {words}"))
        .with_object(format!("repository {}", repository.name()))
        .with_hint("look at the branch's protection and at who may push to it")
}

/// The branch was moved by others at every try.
#[must_use]
pub fn make_kept_moving(repository: &Repository, tries: u32) -> Failure {
    let cause = format!("the branch moved during each of {tries} tries; nothing was written");
    Failure::new(FailureKind::Moved, "kept-moving", cause)
        .with_object(format!("repository {}", repository.name()))
        .with_hint("run again when it is quieter, or raise limits.maxTries")
}
