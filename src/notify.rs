//! Writes to the Servings of a cluster what git contains: their status, and Events for news.
//!
//! It writes only `servings/status` (server-side apply, field manager `expedite`) and Events, and creates only
//! Events. A Serving that Argo CD has not created yet gets its status in a later run. Knows nothing of why anything
//! was decided: everything that it writes is already in git, and the next run repeats what fails here.

pub mod news;
mod pace;
mod patience;
mod send;

use crate::error::{Failure, FailureKind};
use crate::load::cluster::connect::Connection;
use crate::load::cluster::told::{self, Told};
use crate::model::id::{Digest, OrderRef};
use crate::model::serving::ServingStatus;
use crate::model::time::Time;
use futures::StreamExt as _;
use news::News;
use pace::RequestPace;
use patience::Patience;
use send::{Done, Sender};
use serde_json::Value;
use std::cell::RefCell;
use std::sync::Arc;

/// Servings of one cluster that are written at once.
const CONCURRENT: usize = 8;

/// Failures that a message names one by one.
const NAMED: usize = 3;

/// The right to write to one cluster. Only `run --write-status` makes one.
pub struct Teller {
    /// The source's name in Servings: `cluster:<context>`.
    pub source: Arc<str>,
    connection: Connection,
}

/// The update of one Serving.
#[derive(Debug, Clone)]
pub struct Telling {
    /// Which.
    pub order: OrderRef,
    /// Its current content in the cluster.
    pub told: Told,
    /// Its whole status in git.
    pub status: Value,
    /// [`told::hash_status`] of `status`.
    pub hash: Digest,
    /// The news that it does not have yet.
    pub news: Vec<News>,
}

/// The result for one cluster.
#[derive(Debug, Default)]
pub struct TellOutcome {
    /// The cluster's name in messages.
    pub cluster: String,
    /// Number of written statuses.
    pub statuses: usize,
    /// Number of created Events; one that existed already also counts.
    pub events: usize,
    /// A line for each Serving, for verbose output (untrusted text is not neutralised).
    pub lines: Vec<String>,
    /// The failures; the commit remains valid.
    pub failures: Vec<Failure>,
    /// Warnings.
    pub notices: Vec<Failure>,
}

/// The update that a Serving needs from a run at `now`, if it differs from git. `before` is its status in git before
/// this run.
#[must_use]
pub fn make_telling(
    order: &OrderRef,
    told: &Told,
    before: Option<&ServingStatus>,
    status: &ServingStatus,
    now: Time,
) -> Option<Telling> {
    // It holds strings, numbers and maps with text keys, which JSON can always express.
    let value = serde_json::to_value(status).unwrap_or_default();
    let hash = told::hash_status(&value);
    (hash != told.hash).then(|| Telling {
        order: order.clone(),
        told: told.clone(),
        status: told::extract_status(&value),
        hash,
        news: news::collect_news(order, told, before, status, now),
    })
}

impl Teller {
    /// For the cluster source of this name.
    #[must_use]
    pub fn new(source: Arc<str>, connection: Connection) -> Self {
        Self { source, connection }
    }

    /// The cluster's name in messages: `cluster <context>`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.connection.name
    }

    /// Writes all updates, in any order.
    #[must_use]
    pub fn tell_all(&self, runtime: &tokio::runtime::Runtime, tellings: &[Telling]) -> TellOutcome {
        let mut outcome = TellOutcome { cluster: self.connection.name.clone(), ..TellOutcome::default() };
        let sender = &Sender { client: &self.connection.client, pace: RequestPace::new() };
        let patience = &RefCell::new(Patience::default());
        let mut failed: Vec<(&OrderRef, String)> = Vec::new();
        let mut unknown: Vec<String> = Vec::new();
        runtime.block_on(async {
            let all = tellings.iter().map(|telling| async move {
                let tries = patience.borrow_mut().allows_try(&telling.order);
                if tries { Some((telling, sender.tell_serving(telling).await)) } else { None }
            });
            let mut all = futures::stream::iter(all).buffer_unordered(CONCURRENT);
            // Wait for the requests in flight, so that every result is reported.
            while let Some(tried) = all.next().await {
                let Some((telling, sent)) = tried else { continue };
                let order = &telling.order;
                patience.borrow_mut().note_outcome(order, &sent.done);
                outcome.events += sent.events.len();
                outcome.lines.extend(sent.events.iter().map(|event| format!("{order}: Event {event}")));
                failed.extend(sent.refused.into_iter().map(|why| (order, why)));
                match sent.done {
                    Ok(Done::Written { lost }) => {
                        outcome.statuses += 1;
                        outcome.lines.push(format!("{order}: status written"));
                        unknown.extend(
                            lost.into_iter().filter(|member| !unknown.contains(member)).collect::<Vec<_>>(),
                        );
                    }
                    Ok(Done::Gone) => {
                        outcome.lines.push(format!("{order}: its Serving is gone; nothing written"))
                    }
                    Ok(Done::Overtaken) => outcome.lines.push(format!(
                        "{order}: another writer changed its status meanwhile; the next run checks it again"
                    )),
                    Err(untold) => failed.push((order, untold.why)),
                }
            }
        });
        outcome.lines.sort();
        failed.sort();
        outcome.failures.extend(make_not_written(&self.connection.name, &failed, &patience.borrow()));
        outcome.notices.extend(make_unknown_members(&self.connection.name, &unknown));
        outcome
    }
}

/// One failure for the whole cluster, for any number of Servings.
fn make_not_written(
    cluster: &str,
    failed: &[(&OrderRef, String)],
    patience: &Patience<'_>,
) -> Option<Failure> {
    let (_, first) = failed.first()?;
    let mut parts: Vec<String> =
        failed.iter().take(NAMED).map(|(order, why)| format!("{order}: {why}")).collect();
    if failed.len() > NAMED {
        parts.push(format!("and {} more", failed.len() - NAMED));
    }
    parts.extend(patience.skipped.iter().map(|(namespace, skipped)| {
        format!("{skipped} more in namespace {namespace} were not tried because the namespace refused the previous ones")
    }));
    if patience.left > 0 {
        parts.push(format!("{} more were not tried", patience.left));
    }
    let cause = format!("the status in git was not written to all Servings: {}", parts.join("; "));
    let failure = Failure::new(FailureKind::Unread, "status-not-written", cause).with_object(cluster);
    let hint = if first.contains("(HTTP 403)") {
        "allow its user to patch servings/status, and to create events of events.k8s.io, in the Orders' namespaces"
    } else if first.contains("field not declared in schema") {
        "its CustomResourceDefinition of Serving is older than this version: install the newer one"
    } else {
        "no action needed for the commit, which is complete; the next run writes the status"
    };
    Some(failure.with_hint(hint))
}

/// The cluster has Orders but no definition of Serving.
#[must_use]
pub fn make_no_definition(cluster: &str) -> Failure {
    Failure::new_input("no-definition", "it has no CustomResourceDefinition of Serving, so no status can be written")
        .with_object(cluster)
        .with_hint("install the CustomResourceDefinitions, and let Argo CD sync servings/ (expedite init --sync-servings)")
}

/// The server dropped members that its definition does not have.
fn make_unknown_members(cluster: &str, members: &[String]) -> Option<Failure> {
    let cause = format!("its CustomResourceDefinition of Serving drops {}", members.join(", "));
    let failure = Failure::new_input("old-definition", cause).with_object(cluster);
    (!members.is_empty()).then(|| {
        failure.with_hint(
            "install the CustomResourceDefinitions of this version; until then each run writes again",
        )
    })
}
