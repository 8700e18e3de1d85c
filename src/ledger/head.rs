//! An Order's head: two files, the names in its folder and a witness say what happened, or why that cannot be said.

use crate::evidence::envelope;
use crate::evidence::judge;
use crate::evidence::keys::KeyRing;
use crate::ledger::chain;
use crate::ledger::name::{FILE_CAP, FileName, KEPT, PAST};
use crate::ledger::past::{self, Past};
use crate::ledger::statement::{Statement, Unread};
use crate::model::id::{Digest, OrderRef};
use crate::model::kitchen::Role;
use crate::model::time::{SKEW, Time};
use std::collections::BTreeSet;

/// Reads a file of the folder by its name; `None`: it is not there.
pub type ReadFile<'f> = dyn Fn(&str) -> Result<Option<Vec<u8>>, String> + 'f;

/// An Order's folder below `records/`.
#[derive(Clone, Copy)]
pub struct Folder<'f> {
    /// Whose.
    pub order: &'f OrderRef,
    /// The names in it.
    pub names: &'f BTreeSet<String>,
    /// Reads one.
    pub read: &'f ReadFile<'f>,
}

/// What every statement is held against.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'e> {
    /// Whom the Kitchen trusts.
    pub ring: &'e KeyRing,
    /// The branch, a full reference.
    pub branch: &'e str,
    /// The real clock.
    pub now: Time,
}

/// What the side reference keeps of an Order's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// The name of the newest statement.
    pub name: FileName,
    /// `past.json` as that statement signs it.
    pub past: Vec<u8>,
}

impl Witness {
    /// Reads what [`Witness::to_bytes`] wrote; `None`: it is something else.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let end = bytes.iter().position(|b| *b == b'\n')?;
        let name = FileName::parse(std::str::from_utf8(&bytes[..end]).ok()?)?;
        Some(Self { name, past: bytes[end + 1..].to_vec() })
    }

    /// The name on a line of its own, then `past.json`.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        [format!("{}\n", self.name).as_bytes(), &self.past].concat()
    }
}

/// The kind of what is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Git was moved back: somebody knows a newer statement, or another one under a sequence that git holds.
    Behind,
    /// Two statements of one sequence.
    Forked,
    /// A hash, a signature, a name, an Order or a branch that does not match.
    Broken,
    /// There are no statements, and somebody knows that there were.
    Gone,
    /// A newer build wrote it.
    Newer,
    /// It was signed by a clock that is ahead.
    ClockAhead,
    /// A file could not be read.
    Unread,
}

impl Trouble {
    /// The code of the failure.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Behind => "ledger-behind",
            Self::Forked => "ledger-forked",
            Self::Broken => "ledger-broken",
            Self::Gone => "ledger-gone",
            Self::Newer => "ledger-newer",
            Self::ClockAhead => "ledger-clock",
            Self::Unread => "ledger-unread",
        }
    }
}

/// What is wrong with an Order's ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Its kind.
    pub trouble: Trouble,
    /// What was found and what was wanted.
    pub cause: String,
    /// Since which sequence, where that is known.
    pub since: Option<u64>,
}

impl Fault {
    /// A fault.
    #[must_use]
    pub fn new(trouble: Trouble, since: Option<u64>, cause: impl Into<String>) -> Self {
        Self { trouble, cause: cause.into(), since }
    }
}

/// A head that is proven.
#[derive(Debug, Clone, PartialEq)]
pub struct Proven {
    /// What happened so far.
    pub past: Past,
    /// The hash of the newest statement.
    pub hash: Digest,
    /// Its file.
    pub name: FileName,
    /// Name of the key that signed it.
    pub key: String,
    /// `past.json`, where the file in git is gone or is another: it is to be put back.
    pub put_back: Option<Vec<u8>>,
    /// Statements below the head, of the newest that stay in the tree, of which there is no file.
    pub missing: Vec<u64>,
}

/// What is known of an Order's ledger.
#[derive(Debug, Clone, PartialEq)]
pub enum Head {
    /// There is none, and nothing says that there was.
    None,
    /// It is proven.
    Proven(Box<Proven>),
    /// Why nothing can be said.
    Fault(Fault),
}

/// Reads an Order's head.
#[must_use]
pub fn read_head(folder: Folder<'_>, witness: Option<&Witness>, expected: Expected<'_>) -> Head {
    match prove_head(folder, witness, expected) {
        Ok(None) => Head::None,
        Ok(Some(proven)) => Head::Proven(Box::new(proven)),
        Err(fault) => Head::Fault(fault),
    }
}

fn prove_head(
    folder: Folder<'_>,
    witness: Option<&Witness>,
    expected: Expected<'_>,
) -> Result<Option<Proven>, Fault> {
    // Sequences are compared as numbers: the millionth has seven digits.
    let names: BTreeSet<FileName> = folder.names.iter().filter_map(|name| FileName::parse(name)).collect();
    let Some(newest) = names.last() else {
        return match witness {
            None => Ok(None),
            Some(witness) => Err(Fault::new(
                Trouble::Gone,
                Some(1),
                format!("git holds no statement of it, and {} is remembered as its newest", witness.name),
            )),
        };
    };
    check_fork(&names)?;
    if let Some(witness) = witness {
        check_witness(&names, newest, witness)?;
    }
    let (statement, hash, key) = read_statement(folder, newest, expected)?;
    let (past, put_back) = read_past(folder, &statement, hash, witness, expected)?;
    check_past(&past, &statement)?;
    let lowest = newest.sequence.saturating_sub(KEPT as u64 - 1).max(1);
    let held: BTreeSet<u64> = names.iter().map(|name| name.sequence).collect();
    let missing = (lowest..newest.sequence).filter(|sequence| !held.contains(sequence)).collect();
    Ok(Some(Proven { past, hash, name: newest.clone(), key, put_back, missing }))
}

/// Two files of one sequence.
fn check_fork(names: &BTreeSet<FileName>) -> Result<(), Fault> {
    let twice = names.iter().zip(names.iter().skip(1)).find(|(a, b)| a.sequence == b.sequence);
    match twice {
        None => Ok(()),
        Some((a, b)) => Err(Fault::new(
            Trouble::Forked,
            Some(a.sequence),
            format!("{a} and {b} are two statements of one sequence"),
        )),
    }
}

fn check_witness(names: &BTreeSet<FileName>, newest: &FileName, witness: &Witness) -> Result<(), Fault> {
    let known = &witness.name;
    if known.sequence > newest.sequence {
        let cause = format!("its newest statement in git is {newest}, and {known} is remembered");
        return Err(Fault::new(Trouble::Behind, Some(newest.sequence + 1), cause));
    }
    match names.iter().find(|name| name.sequence == known.sequence) {
        Some(other) if other != known => {
            let cause = format!("git holds {other}, and {known} is remembered under the same sequence");
            Err(Fault::new(Trouble::Behind, Some(known.sequence), cause))
        }
        Some(_) | None => Ok(()),
    }
}

/// One statement of a folder, verified by itself: signature, role, name, Order, branch and clock.
pub(super) fn read_statement(
    folder: Folder<'_>,
    name: &FileName,
    expected: Expected<'_>,
) -> Result<(Statement, Digest, String), Fault> {
    let broken = |cause: String| Fault::new(Trouble::Broken, Some(name.sequence), format!("{name}: {cause}"));
    let file = name.to_string();
    let bytes = match (folder.read)(&file) {
        Ok(Some(bytes)) if bytes.len() > FILE_CAP => {
            return Err(broken(format!("it has {} bytes; at most {FILE_CAP} are read", bytes.len())));
        }
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Err(broken("it cannot be found".into())),
        Err(why) => return Err(Fault::new(Trouble::Unread, Some(name.sequence), format!("{name}: {why}"))),
    };
    let opened = envelope::open_bundle(&bytes, expected.ring).map_err(broken)?;
    let signer = opened.signer.map_err(broken)?;
    let hash = Digest::hash_bytes(&opened.payload);
    let statement = match Statement::from_payload(&opened.payload) {
        Ok(statement) => statement,
        Err(Unread::Newer(why)) => {
            let cause = format!("{name} was written by a newer build: {why}");
            return Err(Fault::new(Trouble::Newer, Some(name.sequence), cause));
        }
        Err(Unread::Unlinked) => return Err(broken("it has no place in the ledger".into())),
        Err(Unread::Wrong(why)) => return Err(broken(why)),
    };
    let Some(key) = signer.find_name(Role::Records) else {
        let role = judge::format_role(Role::Records);
        return Err(broken(format!(
            "it is signed by {}, which is not trusted for {role}",
            signer.pick_name()
        )));
    };
    if !name.is_of(&hash) {
        return Err(broken(format!("its name is not of its statement {}", hash.format_short())));
    }
    let (link, order) = (&statement.link, statement.event.order());
    let differs = |what: &str, found: &dyn std::fmt::Display, wanted: &dyn std::fmt::Display| {
        Err(broken(format!("its {what} is {found}, and {wanted} was wanted")))
    };
    if order != *folder.order {
        return differs("Order", &order, folder.order);
    }
    if link.sequence != name.sequence {
        return differs("sequence", &link.sequence, &name.sequence);
    }
    if link.branch != expected.branch {
        return differs("branch", &link.branch, &expected.branch);
    }
    if link.time > expected.now.add_span(SKEW) {
        let cause = format!("{name} was signed at {}, which is ahead of the clock", link.time);
        return Err(Fault::new(Trouble::ClockAhead, Some(name.sequence), cause));
    }
    Ok((statement, hash, key.to_owned()))
}

/// The Past that the head signs: from its file, else from the witness, else folded again from the statements.
fn read_past(
    folder: Folder<'_>,
    head: &Statement,
    hash: Digest,
    witness: Option<&Witness>,
    expected: Expected<'_>,
) -> Result<(Past, Option<Vec<u8>>), Fault> {
    let wanted = head.link.past;
    let sequence = head.link.sequence;
    let parse = |bytes: &[u8]| match Past::from_json(bytes) {
        Ok(past) => Ok(past),
        Err(past::Unread::Newer(version)) => Err(Fault::new(
            Trouble::Newer,
            Some(sequence),
            format!("{PAST} was written by a newer build: its version is {version}"),
        )),
        Err(past::Unread::Wrong(why)) => {
            Err(Fault::new(Trouble::Broken, Some(sequence), format!("{PAST}: {why}")))
        }
    };
    let found = (folder.read)(PAST)
        .map_err(|why| Fault::new(Trouble::Unread, Some(sequence), format!("{PAST}: {why}")))?;
    if let Some(bytes) = found.as_ref().filter(|bytes| Digest::hash_bytes(bytes) == wanted) {
        return Ok((parse(bytes)?, None));
    }
    if let Some(witness) = witness.filter(|witness| Digest::hash_bytes(&witness.past) == wanted) {
        return Ok((parse(&witness.past)?, Some(witness.past.clone())));
    }
    if let Some(past) = chain::fold_again(folder, expected).filter(|(_, newest)| *newest == hash) {
        let bytes = past.0.to_json();
        if Digest::hash_bytes(&bytes) == wanted {
            return Ok((past.0, Some(bytes)));
        }
    }
    let what = if found.is_some() { "is not the one that" } else { "is gone, which" };
    let cause = format!("{PAST} {what} the statement of sequence {sequence} signs");
    Err(Fault::new(Trouble::Broken, Some(sequence), cause))
}

/// Whether the Past is of this statement: a signature over both says so, and a copy under another name does not.
fn check_past(past: &Past, head: &Statement) -> Result<(), Fault> {
    let link = &head.link;
    let same = past.order == head.event.order()
        && past.id == link.id
        && past.branch == link.branch
        && past.sequence == link.sequence;
    if same {
        return Ok(());
    }
    let cause =
        format!("{PAST} is of another Order, ledger, branch or sequence than the statement that signs it");
    Err(Fault::new(Trouble::Broken, Some(link.sequence), cause))
}

#[cfg(test)]
#[path = "head/tests.rs"]
mod tests;
