//! What a preview adds to the rows of a plan: what is inside the artifacts, when what waits can deploy, what
//! the plan was compared with, and its fingerprint.

use crate::compare::Comparison;
use crate::error::Failure;
use crate::model::id::OrderRef;
use crate::model::plan::Forecast;
use crate::report::fingerprint::Fingerprint;
use std::collections::BTreeMap;

/// Everything that was requested; empty if nothing was.
#[derive(Debug, Clone, Default)]
pub struct Preview {
    pub more: BTreeMap<OrderRef, More>,
    /// What the plan was compared with (`--base`).
    pub base: Option<Against>,
    pub fingerprint: Option<Fingerprint>,
}

/// What is known of one Order.
#[derive(Debug, Clone, Default)]
pub struct More {
    /// When its candidate can deploy.
    pub forecast: Option<Forecast>,
    /// What changes inside the artifact, from what is deployed to the candidate; an error where one of them
    /// could not be read: unknown, not equal.
    pub inside: Option<Result<Comparison, Failure>>,
    /// Another namespace than what is deployed goes to: from, to.
    pub moves: Option<(String, String)>,
}

/// What a plan is compared with, so that only what a change causes is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Against {
    /// As the user wrote it.
    pub reference: String,
    /// The commit whose settings and trust count.
    pub commit: String,
    /// How many Orders move, wait or fail with and without the change alike: not its doing.
    pub anyway: usize,
    /// Of each Order that is shown: what would happen without the change.
    pub without: BTreeMap<OrderRef, String>,
    /// Orders that the change removes and that deploy nothing.
    pub gone: Vec<OrderRef>,
    /// What the change makes easier to pass: policies, keys, settings. Foreign text.
    pub weakened: Vec<String>,
    /// What else a reader must know. Foreign text.
    pub notes: Vec<String>,
}
