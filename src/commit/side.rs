//! A set of lines remembered in a reference beside the branches: what has been done outside git, which a
//! commit on the branch would only disturb. Kept by compare-and-swap like everything else.

use super::{Identity, Proposal, push};
use crate::error::{Failure, Kind};
use crate::files::Change;
use crate::git::remote::Advance;
use crate::git::{Repository, failure};
use crate::model::time::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The one file in the reference's tree.
const FILE: &str = "lines";

/// How often an update is tried again when another run was first.
const TRIES: u32 = 8;

/// What became of an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// The reference holds the lines.
    Updated,
    /// It held them already.
    Unchanged,
    /// The server takes no such reference; its words. Whoever asked must do without.
    Refused(String),
}

/// The lines in `reference`; none when there is no such reference. On a server, as of the last snapshot.
///
/// # Errors
/// The repository cannot be read.
pub fn read(repository: &Repository, reference: &str) -> Result<BTreeSet<String>, Failure> {
    let store = repository.store();
    let head = store.side(reference, false)?;
    lines(&store.lock(), head)
}

/// Changes the lines in `reference` by `edit`, which is done again on what another run left meanwhile.
/// Lines must not hold line ends; empty ones are dropped.
///
/// # Errors
/// The repository cannot be read or written, or the reference kept moving.
pub fn update(
    repository: &Repository,
    reference: &str,
    identity: &Identity,
    at: Time,
    edit: impl Fn(&mut BTreeSet<String>),
) -> Result<Kept, Failure> {
    let store = repository.store();
    for attempt in 1..=TRIES {
        let head = store.side(reference, true)?;
        let before = lines(&store.lock(), head)?;
        let mut after = before.clone();
        edit(&mut after);
        after.retain(|line| !line.is_empty() && !line.contains(['\n', '\r']));
        if after == before {
            return Ok(Kept::Unchanged);
        }
        let text: String = after.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        let changes = BTreeMap::from([(FILE.to_owned(), Change::Write(text.into_bytes()))]);
        let proposal = Proposal { message: "Remember what was done\n", identity, at };
        let new = {
            let git = store.lock();
            let tree = super::tree::edit(&git, None, &changes)?;
            push::commit(&git, head, tree, proposal)?
        };
        match store.advance(reference, new, head, "remembered")? {
            Advance::Done => return Ok(Kept::Updated),
            Advance::Refused(words) => return Ok(Kept::Refused(words)),
            Advance::Moved => std::thread::sleep(Duration::from_millis(u64::from(attempt) * 37)),
        }
    }
    Err(Failure::new(Kind::Moved, "kept-moving", format!("{reference} moved during each of {TRIES} tries"))
        .of(format!("repository {}", repository.name())))
}

fn lines(git: &git2::Repository, head: Option<git2::Oid>) -> Result<BTreeSet<String>, Failure> {
    let Some(head) = head else { return Ok(BTreeSet::new()) };
    let blob = git
        .find_commit(head)
        .and_then(|commit| commit.tree()?.get_path(std::path::Path::new(FILE)))
        .and_then(|entry| git.find_blob(entry.id()))
        .map_err(|e| failure("repository-unreadable", "cannot read what was remembered", &e))?;
    let text = String::from_utf8_lossy(blob.content());
    Ok(text.lines().map(str::to_owned).filter(|l| !l.is_empty()).collect())
}
