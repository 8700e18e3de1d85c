//! Finds the news for a Serving in a cluster, by comparing git with the Serving's current status.
//!
//! An Event's name depends only on its news, so that another run or another try does not create it twice.

use crate::load::cluster::told::Told;
use crate::model::id::OrderRef;
use crate::model::naming::{API_VERSION, MANAGER};
use crate::model::serving::{HistoryEntry, ServingStatus};
use crate::model::time::Time;
use crate::report::escape;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// Longest note that an API server accepts, in bytes.
const NOTE: usize = 1_024;

/// Longest part of an Order's name in the name of an Event, before the hash.
const NAME: usize = 200;

/// A promotion that is older than two days is not news, so that a new cluster does not get Events for the whole past
/// of its Orders.
const OLD: u64 = 2 * 86_400;

/// Why there is an Event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A Preparation was promoted.
    Promoted,
    /// A newer scan of the deployed artifact counts more vulnerabilities than the previous one.
    VulnerabilitiesIncreased,
}

impl Reason {
    /// `Normal`, or `Warning`.
    fn kind(self) -> &'static str {
        match self {
            Self::Promoted => "Normal",
            Self::VulnerabilitiesIncreased => "Warning",
        }
    }

    /// The action that led to it.
    fn action(self) -> &'static str {
        match self {
            Self::Promoted => "Promote",
            Self::VulnerabilitiesIncreased => "Scan",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Promoted => "Promoted",
            Self::VulnerabilitiesIncreased => "VulnerabilitiesIncreased",
        })
    }
}

/// One Event to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// Why.
    pub reason: Reason,
    /// The Event's name: the Order's name and a hash of the news.
    pub name: String,
    /// Text for users: one line, neutralised, at most 1,024 bytes.
    pub note: String,
    /// When it happened.
    pub time: Time,
}

/// The news that the Serving of `order` does not have yet. `before` is its status in git before this run.
#[must_use]
pub fn collect_news(
    order: &OrderRef,
    told: &Told,
    before: Option<&ServingStatus>,
    status: &ServingStatus,
    now: Time,
) -> Vec<News> {
    let heard = |entry: &HistoryEntry| told.promoted.is_some_and(|newest| entry.promoted_time <= newest);
    let mut promotions: Vec<&HistoryEntry> =
        status.history.iter().filter(|e| !heard(e) && now.seconds_since(e.promoted_time) <= OLD).collect();
    // A recovery is another entry of the same promotion.
    promotions.dedup_by_key(|entry| entry.promoted_time);
    let mut news: Vec<News> = promotions.iter().rev().map(|entry| make_promoted(order, entry)).collect();
    news.extend(make_increased(order, told, before, status));
    news
}

fn make_promoted(order: &OrderRef, entry: &HistoryEntry) -> News {
    let environment = entry.environment.as_ref().map(|e| format!(" in {e}")).unwrap_or_default();
    let asked = match &entry.requested_by {
        Some(by) if by.name != "automatic" => format!(", as {} asked", by.name),
        Some(_) | None => String::new(),
    };
    let text = format!("promoted {}{environment}{asked} ({})", entry.preparation_name, entry.digest);
    News::new(
        order,
        Reason::Promoted,
        &[
            entry.preparation_name.as_str(),
            &entry.digest.to_string(),
            &environment,
            &entry.promoted_time.to_string(),
        ],
        &text,
        entry.promoted_time,
    )
}

/// An increase since the scan in the cluster's Serving; if that scan is of another artifact, since the scan in git.
fn make_increased(
    order: &OrderRef,
    told: &Told,
    before: Option<&ServingStatus>,
    status: &ServingStatus,
) -> Option<News> {
    let (artifact, scan) = status.deployed_digest.zip(status.deployed_vulnerabilities.as_ref())?;
    let known = before
        .and_then(|b| b.deployed_digest.zip(b.deployed_vulnerabilities.as_ref().map(|v| v.to_counts())));
    let (_, counts) = [told.scan, known].into_iter().flatten().find(|(digest, _)| *digest == artifact)?;
    let risen = scan.to_counts().describe_rise(&counts)?;
    let preparation =
        status.observed_preparation_name.as_ref().map_or("what is deployed", |name| name.as_str());
    let text = format!(
        "vulnerabilities of {preparation} rose by the scan of {}: {risen} ({artifact})",
        scan.scanned_time
    );
    let attestation = scan.attestation.to_string();
    let what = [artifact.to_string(), attestation];
    let what: Vec<&str> = what.iter().map(String::as_str).collect();
    Some(News::new(order, Reason::VulnerabilitiesIncreased, &what, &text, scan.scanned_time))
}

impl News {
    fn new(order: &OrderRef, reason: Reason, what: &[&str], text: &str, time: Time) -> Self {
        let mut hash = Sha256::new();
        for part in [&reason.to_string(), &order.to_string() as &str].iter().chain(what) {
            hash.update(part.as_bytes());
            // No part can contain it, so that different parts never give the same text.
            hash.update([0]);
        }
        let mut head = order.name.to_string();
        head.truncate(NAME);
        let head = head.trim_end_matches(['-', '.']);
        let name = format!("{head}.{}", hex::encode(&hash.finalize()[..8]));
        Self { reason, name, note: cut_note(&escape::escape_line(text)), time }
    }

    /// The Event about the Serving of `order` with this uid.
    #[must_use]
    pub fn build_event(&self, order: &OrderRef, uid: &str) -> Value {
        json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": self.name, "namespace": order.namespace},
            "eventTime": format_micro(self.time),
            "reportingController": format!("delivery.kokumi.dev/{MANAGER}"),
            "reportingInstance": MANAGER,
            "action": self.reason.action(),
            "reason": self.reason.to_string(),
            "type": self.reason.kind(),
            "note": self.note,
            "regarding": {
                "apiVersion": API_VERSION, "kind": "Serving",
                "namespace": order.namespace, "name": order.name, "uid": uid,
            },
        })
    }
}

/// The time format of an Event: with exactly six digits after the second.
fn format_micro(time: Time) -> String {
    let text = time.cut_to_second().to_string();
    format!("{}.000000Z", text.trim_end_matches('Z'))
}

/// Cuts a text to [`NOTE`] bytes; the rest is replaced by `…`.
fn cut_note(text: &str) -> String {
    if text.len() <= NOTE {
        return text.to_owned();
    }
    let mut end = NOTE - '…'.len_utf8();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests;
