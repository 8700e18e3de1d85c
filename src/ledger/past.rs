//! Past: what an Order did so far, as all of its statements say together; and `past.json`, its canonical JSON.

use crate::ledger::VERSION;
use crate::ledger::event::Place;
use crate::model::approval::Ballot;
use crate::model::id::{
    Artifact, Digest, EnvironmentName, Namespace, OciRepository, OrderRef, PreparationName,
};
use crate::model::reason::Ended;
use crate::model::serving::{HistoryEntry, RequestedBy, VoteStatus};
use crate::model::time::Time;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What an Order did so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Past {
    /// Of this form.
    pub version: u32,
    /// The Order: a folder that was copied is not another Order's past.
    pub order: OrderRef,
    /// The repository's ledger.
    pub id: String,
    /// The branch, a full reference.
    pub branch: String,
    /// The statement that it was folded up to.
    pub sequence: u64,
    /// When that was signed.
    pub time: Time,
    /// How often the Order was made anew after a removal.
    pub life: u32,
    /// How often the Order came to an Environment.
    pub stay: u32,
    /// Where the Order is, since it came there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvironmentName>,
    /// When it was removed, where it was not made anew since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<Time>,
    /// What is deployed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployed: Option<Pinned>,
    /// The newest promotions, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Entry>,
    /// Every digest that ran, by Environment and digest: never cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ran: Vec<Ran>,
    /// The newest seal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Sealed>,
    /// Votes that were sealed: the newest by approver, digest and place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub votes: Vec<SealedVote>,
}

/// What is pinned, and where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pinned {
    /// What.
    pub preparation: PreparationName,
    /// Its digest.
    pub digest: Digest,
    /// As written in `ociRef`.
    pub repository: OciRepository,
    /// Where.
    pub environment: EnvironmentName,
    /// Where its objects go.
    pub target_namespace: Namespace,
    /// The input source that the Order came from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// When it was promoted.
    pub promoted_time: Time,
    /// When it was built, as its signed provenance said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_on: Option<Time>,
    /// What it was rendered from, as its signed provenance said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_digest: Option<Digest>,
    /// Where it was pinned, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<Place>,
    /// Nothing proves that it was promoted: it stays, and nothing new is promoted until its evidence was read.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unproven: bool,
}

impl Pinned {
    /// Repository and digest.
    #[must_use]
    pub fn artifact(&self) -> Artifact {
        Artifact { repository: self.repository.clone(), digest: self.digest }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(value: &bool) -> bool {
    !*value
}

/// One promotion, or a recovery of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The sequence of its promotion. The hash of a statement is known only to the one after it: `said` has it from
    /// then on.
    pub promotion: u64,
    /// The sequence of the newest deployment statement of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<u64>,
    /// As a Serving's history has it.
    pub said: HistoryEntry,
}

/// One digest that ran in one Environment: one line, never cut.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ran {
    /// Where.
    pub environment: EnvironmentName,
    /// What.
    pub digest: Digest,
    /// The Preparations that it ran as, in the stay in which it ran last.
    pub preparations: Vec<PreparationName>,
    /// When it was first promoted here.
    pub first_promoted: Time,
    /// When its last deployment ended; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_ended: Option<Time>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// Whether it was healthy in the Order's life in which it ran last.
    #[serde(default, skip_serializing_if = "is_false")]
    pub healthy: bool,
    /// When it last ended Degraded: never forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<Time>,
    /// Since when it was healthy again after that, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered: Option<Time>,
    /// The Order's life in which it ran last.
    pub life: u32,
    /// The stay in which it ran last.
    pub stay: u32,
}

/// A seal of votes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sealed {
    /// The sequence of its statement.
    pub sequence: u64,
    /// The statement's hash, once the next statement named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<Digest>,
    /// What was voted on.
    pub preparation: PreparationName,
    /// Its digest.
    pub digest: Digest,
    /// `Approved`, or another of the Approved condition's words.
    pub result: String,
    /// When.
    pub sealed_time: Time,
}

/// A vote that was sealed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SealedVote {
    /// The Preparation voted on.
    pub preparation: PreparationName,
    /// The Environment for which it was first counted; absent in seals of before the ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvironmentName>,
    /// The target namespace for which it was first counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_namespace: Option<Namespace>,
    /// The vote.
    pub vote: VoteStatus,
}

impl SealedVote {
    /// Whether it is a veto.
    #[must_use]
    pub fn is_veto(&self) -> bool {
        self.vote.decision == Ballot::Reject
    }
}

/// Why bytes are not a Past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unread {
    /// A newer build wrote it.
    Newer(u64),
    /// It is not canonical JSON of a Past.
    Wrong(String),
}

impl Past {
    /// Nothing happened yet.
    #[must_use]
    pub fn new(order: OrderRef, id: String, branch: String, time: Time) -> Self {
        Self {
            version: VERSION,
            order,
            id,
            branch,
            sequence: 0,
            time,
            life: 1,
            stay: 0,
            environment: None,
            removed: None,
            deployed: None,
            history: Vec::new(),
            ran: Vec::new(),
            seal: None,
            votes: Vec::new(),
        }
    }

    /// The line of a digest in an Environment.
    #[must_use]
    pub fn find_line(&self, environment: &EnvironmentName, digest: &Digest) -> Option<&Ran> {
        self.ran.iter().find(|ran| ran.environment == *environment && ran.digest == *digest)
    }

    /// Whether this digest ran in this Environment, in any stay since the Order was last made anew.
    #[must_use]
    pub fn has_run(&self, environment: &EnvironmentName, digest: &Digest) -> bool {
        self.find_line(environment, digest).is_some_and(|ran| ran.life == self.life)
    }

    /// Whether this digest was healthy in this Environment, in any stay since the Order was last made anew.
    #[must_use]
    pub fn has_been_healthy(&self, environment: &EnvironmentName, digest: &Digest) -> bool {
        self.find_line(environment, digest).is_some_and(|ran| ran.life == self.life && ran.healthy)
    }

    /// `past.json`: members sorted by name, each on a line of its own, and so is each element of a list.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut value = serde_json::to_value(self).unwrap_or(Value::Null);
        value.sort_all_objects();
        let mut text = String::from("{");
        for (index, (name, member)) in value.as_object().into_iter().flatten().enumerate() {
            text.push_str(if index == 0 { "\n" } else { ",\n" });
            text.push_str(&format!("{}:", Value::from(name.as_str())));
            match member {
                Value::Array(items) if !items.is_empty() => {
                    let lines: Vec<String> = items.iter().map(ToString::to_string).collect();
                    text.push_str(&format!("[\n{}\n]", lines.join(",\n")));
                }
                other => text.push_str(&other.to_string()),
            }
        }
        text.push_str("\n}\n");
        text.into_bytes()
    }

    /// Reads `past.json`, exactly as [`Past::to_json`] writes it.
    ///
    /// # Errors
    /// A newer build wrote it, or it is something else.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Unread> {
        let value: Value = crate::evidence::json::parse_strict(bytes).map_err(Unread::Wrong)?;
        match value.get("version").and_then(Value::as_u64) {
            Some(version) if version == u64::from(VERSION) => {}
            Some(version) if version > u64::from(VERSION) => return Err(Unread::Newer(version)),
            Some(_) | None => return Err(Unread::Wrong("it names no version that is known".into())),
        }
        let past: Self = serde_json::from_value(value).map_err(|e| Unread::Wrong(e.to_string()))?;
        if past.to_json() == bytes {
            Ok(past)
        } else {
            Err(Unread::Wrong("it was formatted by another program".into()))
        }
    }
}

/// Who asked, where nothing else is known.
#[must_use]
pub fn unknown_requester() -> RequestedBy {
    RequestedBy { name: "unknown".into(), commit: None, signed_by: "unsigned".into() }
}
