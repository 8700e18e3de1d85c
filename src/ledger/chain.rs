//! Every statement of a folder, verified and folded again from nothing.

use crate::ledger::fold::{Position, fold_statement};
use crate::ledger::head::{Expected, Fault, Folder, Trouble, read_statement};
use crate::ledger::name::{FileName, KEPT, PAST};
use crate::ledger::past::Past;
use crate::ledger::statement::{Event, Statement};
use crate::model::id::Digest;
use std::collections::BTreeSet;

/// What was found in a folder.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Checked {
    /// How many statements verified.
    pub statements: usize,
    /// What is wrong.
    pub faults: Vec<Fault>,
    /// What the statements say together, where nothing is wrong with them.
    pub past: Option<Past>,
}

/// Verifies every statement of a folder, each link between them, and `past.json`.
#[must_use]
pub fn verify_folder(folder: Folder<'_>, expected: Expected<'_>) -> Checked {
    let mut checked = Checked::default();
    let mut before: Option<Verified> = None;
    for name in folder.names.iter().filter(|name| !is_known(name)) {
        let cause = format!("{name} is no file of the ledger");
        checked.faults.push(Fault::new(Trouble::Broken, None, cause));
    }
    let names: BTreeSet<FileName> = folder.names.iter().filter_map(|name| FileName::parse(name)).collect();
    for name in &names {
        match read_statement(folder, name, expected) {
            Err(fault) => {
                checked.faults.push(fault);
                before = None;
            }
            Ok((statement, hash, _)) => {
                checked.statements += 1;
                let (verified, faults) = follow_link(before.take(), statement, hash, name);
                checked.faults.extend(faults);
                before = Some(verified);
            }
        }
    }
    if let (Some(lowest), Some(highest)) = (names.first(), names.last()) {
        let kept = highest.sequence.saturating_sub(KEPT as u64 - 1).max(1);
        let restarts = read_statement(folder, lowest, expected).is_ok_and(|(s, ..)| is_restart(&s));
        if lowest.sequence > kept && !restarts {
            let cause = format!("the statements of the sequences {kept} to {} are gone", lowest.sequence - 1);
            checked.faults.push(Fault::new(Trouble::Broken, Some(kept), cause));
        }
    }
    let found = (folder.read)(PAST);
    match (&before, found) {
        (_, Err(why)) => {
            checked.faults.push(Fault::new(Trouble::Unread, None, format!("{PAST}: {why}")));
        }
        (Some(newest), Ok(bytes)) => {
            if bytes.as_deref().map(Digest::hash_bytes) != Some(newest.statement.link.past) {
                let what = if bytes.is_some() { "is not the one" } else { "is gone" };
                let sequence = newest.statement.link.sequence;
                let cause = format!("{PAST} {what} that the statement of sequence {sequence} signs");
                checked.faults.push(Fault::new(Trouble::Broken, Some(sequence), cause));
            }
        }
        (None, Ok(Some(_))) if names.is_empty() => {
            let cause = format!("there is a {PAST} and no statement");
            checked.faults.push(Fault::new(Trouble::Gone, None, cause));
        }
        (None, Ok(_)) => {}
    }
    checked.past = before.and_then(|newest| newest.past).filter(|_| checked.faults.is_empty());
    checked
}

/// What the statements in the tree say together, and the hash of the newest, where they go back to a first one.
#[must_use]
pub fn fold_again(folder: Folder<'_>, expected: Expected<'_>) -> Option<(Past, Digest)> {
    let names: BTreeSet<FileName> = folder.names.iter().filter_map(|name| FileName::parse(name)).collect();
    let mut before: Option<Verified> = None;
    for name in &names {
        let (statement, hash, _) = read_statement(folder, name, expected).ok()?;
        let (verified, faults) = follow_link(before.take(), statement, hash, name);
        if !faults.is_empty() {
            return None;
        }
        before = Some(verified);
    }
    let newest = before?;
    Some((newest.past?, newest.hash))
}

/// A statement that verified, and what all up to it say, where that is known.
pub struct Verified {
    /// The statement.
    pub statement: Statement,
    /// Its hash.
    pub hash: Digest,
    /// What happened so far.
    pub past: Option<Past>,
}

/// Puts a statement behind the one before it.
#[must_use]
pub fn follow_link(
    before: Option<Verified>,
    statement: Statement,
    hash: Digest,
    name: &FileName,
) -> (Verified, Vec<Fault>) {
    let link = &statement.link;
    let mut faults = Vec::new();
    let mut broken = |cause: String| {
        faults.push(Fault::new(Trouble::Broken, Some(link.sequence), format!("{name}: {cause}")));
    };
    let is_restart = is_restart(&statement);
    if let Some(before) = &before {
        let former = &before.statement.link;
        if former.sequence == link.sequence {
            let cause = format!("{name}: there is another statement of sequence {}", link.sequence);
            faults.push(Fault::new(Trouble::Forked, Some(link.sequence), cause));
            return (Verified { past: None, statement, hash }, faults);
        }
        if !is_restart {
            if former.sequence + 1 != link.sequence {
                broken(format!("the statement of sequence {} is gone", former.sequence + 1));
            } else if link.previous != Some(before.hash) {
                broken("it does not link to the statement before it".into());
            }
        }
        if former.id != link.id {
            broken(format!("it is of the ledger {}, and the one before it of {}", link.id, former.id));
        }
        if former.time > link.time {
            broken(format!("it was signed at {}, before the one before it", link.time));
        }
    } else if link.sequence == 1 && link.previous.is_some() {
        broken("it is the first, and links to another".into());
    }
    let base = if link.sequence == 1 || is_restart {
        let order = statement.event.order();
        Some(Past::new(order, link.id.clone(), link.branch.clone(), link.time))
    } else {
        before.and_then(|before| before.past)
    };
    let at = Position { sequence: link.sequence, previous: link.previous, time: link.time };
    let past = base.map(|base| fold_statement(&base, &statement.artifact, &statement.event, &at));
    if let Some(past) = &past
        && Digest::hash_bytes(&past.to_json()) != link.past
    {
        broken(format!("it signs another {PAST} than its statements result in"));
    }
    let past = past.filter(|_| faults.is_empty());
    (Verified { statement, hash, past }, faults)
}

/// Whether a statement begins anew: a person accepted a state, and what was before is not known.
fn is_restart(statement: &Statement) -> bool {
    statement.link.previous.is_none() && matches!(statement.event, Event::Accepted(_))
}

/// Files that stand in a folder of the ledger: its own, and records of before it.
fn is_known(name: &str) -> bool {
    name == PAST
        || FileName::parse(name).is_some()
        || name.strip_suffix(".json").is_some_and(|hex| Digest::from_hex(hex).is_ok())
}
