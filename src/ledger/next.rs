//! What the next statement of an Order links to.

use crate::ledger::VERSION;
use crate::ledger::fold::{Position, fold_statement};
use crate::ledger::past::Past;
use crate::ledger::statement::{Event, Link, Statement};
use crate::model::id::{Artifact, CommitId, Digest, OrderRef};
use crate::model::time::{SKEW, Time};

/// The id of a new ledger: 32 hex digits over the commit, the branch and the time of its first statement.
#[must_use]
pub fn make_id(commit: Option<&CommitId>, branch: &str, time: Time) -> String {
    let commit = commit.map(ToString::to_string).unwrap_or_default();
    Digest::hash_bytes(format!("{commit}\n{branch}\n{time}").as_bytes()).format_hex()[..32].to_owned()
}

/// The end of an Order's chain, where the next statement is added.
#[derive(Debug, Clone, PartialEq)]
pub struct Tail {
    /// What happened so far.
    pub past: Past,
    /// The hash of the newest statement; `None`: there is none, or what was before is not known.
    pub head: Option<Digest>,
}

/// The run's clock is too far behind the newest statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockBehind {
    /// When the newest statement was signed.
    pub newest: Time,
    /// What the run's clock says.
    pub now: Time,
}

impl Tail {
    /// An Order's chain that has no statement yet.
    #[must_use]
    pub fn new(order: OrderRef, id: String, branch: String, now: Time) -> Self {
        Self { past: Past::new(order, id, branch, now), head: None }
    }

    /// The next statement, and the Past that it results in. A clock that runs behind takes the former's time.
    ///
    /// # Errors
    /// The clock is more than five minutes behind the newest statement.
    pub fn build_next(
        &self,
        artifact: Artifact,
        event: Event,
        now: Time,
    ) -> Result<(Statement, Past), ClockBehind> {
        let newest = self.past.time;
        if self.past.sequence > 0 && newest > now.add_span(SKEW) {
            return Err(ClockBehind { newest, now });
        }
        let position = Position {
            sequence: self.past.sequence + 1,
            previous: self.head,
            time: if self.past.sequence > 0 { newest.max(now) } else { now },
        };
        let past = fold_statement(&self.past, &artifact, &event, &position);
        let link = Link {
            version: VERSION,
            id: past.id.clone(),
            branch: past.branch.clone(),
            sequence: position.sequence,
            previous: position.previous,
            past: Digest::hash_bytes(&past.to_json()),
            time: position.time,
        };
        Ok((Statement { artifact, event, link }, past))
    }
}
