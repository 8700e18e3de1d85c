//! Reads from the observed Applications whether what was written is deployed and healthy, and since when.
//!
//! Each field of an Application's status alone is misleading (measured): right after a change the old
//! version's health is still there; an Application that cannot be compared is Healthy and shows the new
//! digest; one whose sync failed has no resources and is Healthy. Therefore an Application counts as healthy
//! or degraded only once Argo CD finished an operation with this digest and compared again afterwards. It is
//! identified by the digest, never by a commit of the GitOps repository.

use crate::model::application::{Application, ApplicationSource, ApplicationStatus, Destination};
use crate::model::id::{Artifact, ClusterName, Namespace};
use crate::model::serving::HistoryEntry;
use crate::model::time::{SKEW, Time};
use crate::policy::resolve::DeployedNow;
use std::sync::Arc;

/// What we wrote into one Application.
#[derive(Debug, Clone, Copy)]
pub struct WantedApplication<'a> {
    pub artifact: &'a Artifact,
    /// The Cluster's API server.
    pub server: &'a str,
    /// Where the objects go.
    pub namespace: &'a Namespace,
    /// When it was promoted.
    pub promoted: Time,
}

/// What one Application reports about what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApplicationState {
    Healthy {
        /// The latest of health transition, operation end and promotion.
        since: Time,
        /// When Argo CD last compared.
        reconciled: Time,
    },
    /// Health Degraded or Missing, or the sync failed, of this digest.
    Degraded {
        /// The latest of health transition (or failed operation's end), operation end and promotion.
        since: Time,
        /// Which of the three: `its sync failed`, `its health is Missing`.
        what: String,
        /// Argo CD's own message, which changes between observations.
        words: String,
    },
    /// Neither: it reports nothing about this digest yet, or nothing final.
    NotYet {
        /// Which of the reasons.
        because: NotYet,
        /// Whether an operation with this digest succeeded: if it was Healthy before, it still counts as
        /// healthy.
        ran: bool,
        /// When Argo CD last compared, if it reports that.
        reconciled: Option<Time>,
        why: String,
    },
}

/// Why an Application counts as neither healthy nor degraded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotYet {
    /// Argo CD has no Application of that name.
    NoApplication,
    /// It is being deleted.
    Deleting,
    /// Its spec differs from what was written.
    OtherSpec,
    /// It has no status at all.
    NoStatus,
    /// Argo CD has compared something else so far.
    OtherComparison,
    /// A ComparisonError or another condition that is an error.
    ComparisonError,
    /// Its sync status is Unknown.
    SyncUnknown,
    /// It was compared with another digest.
    OtherRevision,
    /// No operation at all (an artifact without manifests at its top).
    NoOperation,
    /// An operation is running.
    OperationRunning,
    /// The last operation was of another digest.
    OtherOperation,
    /// Nothing was compared since the operation ended.
    NotReconciled,
    Progressing,
    Suspended,
    /// Health Unknown, or none.
    HealthUnknown,
    /// One of its times is ahead of the run's clock.
    ClockAhead,
}

/// Judges one Application; `None`: Argo CD has no Application of that name.
#[must_use]
pub fn judge_application(
    application: Option<&Application>,
    wanted: &WantedApplication,
    now: Time,
) -> ApplicationState {
    let Some(application) = application else {
        return make_not_yet(NotYet::NoApplication, false, "Argo CD has no such Application yet");
    };
    if application.metadata.deletion_timestamp.is_some() {
        return make_not_yet(NotYet::Deleting, false, "the Application is being deleted");
    }
    let spec = &application.spec;
    if let Some(why) =
        describe_difference(spec.source.as_ref(), spec.sources.len(), &spec.destination, wanted)
    {
        return make_not_yet(
            NotYet::OtherSpec,
            false,
            format!("the Application is not what was written: {why}"),
        );
    }
    match &application.status {
        None => make_not_yet(NotYet::NoStatus, false, "Argo CD has not processed the Application yet"),
        Some(status) => judge_status(status, wanted, now),
    }
}

fn make_not_yet(because: NotYet, ran: bool, why: impl Into<String>) -> ApplicationState {
    ApplicationState::NotYet { because, ran, reconciled: None, why: why.into() }
}

fn describe_difference(
    source: Option<&ApplicationSource>,
    sources: usize,
    destination: &Destination,
    wanted: &WantedApplication,
) -> Option<String> {
    let Some(source) = source else { return Some("it has no source".into()) };
    if sources > 0 {
        return Some("it has several sources".into());
    }
    let digest = wanted.artifact.digest.to_string();
    let found = |field: &str, found: Option<&str>, wanted: &str| {
        (found != Some(wanted)).then(|| match found {
            Some(found) => format!("{field} is {found}, not {wanted}"),
            None => format!("{field} is absent, not {wanted}"),
        })
    };
    found("repoURL", Some(&source.repo_url), &wanted.artifact.repository.format_url())
        .or_else(|| found("targetRevision", source.target_revision.as_deref(), &digest))
        .or_else(|| found("path", source.path.as_deref(), "."))
        .or_else(|| source.chart.as_ref().map(|chart| format!("it has a chart, {chart}")))
        .or_else(|| found("destination.server", destination.server.as_deref(), wanted.server))
        .or_else(|| {
            found("destination.namespace", destination.namespace.as_deref(), wanted.namespace.as_str())
        })
}

fn judge_status(status: &ApplicationStatus, wanted: &WantedApplication, now: Time) -> ApplicationState {
    let digest = wanted.artifact.digest.to_string();
    let operation = status.operation_state.as_ref();
    let revision = operation.and_then(|o| o.sync_result.as_ref()).and_then(|r| r.revision.as_deref());
    let of_this = revision == Some(digest.as_str());
    let ran = of_this && operation.is_some_and(|o| o.phase == "Succeeded");
    let reconciled = status.reconciled_at;
    let not_yet = |because, why: String| ApplicationState::NotYet { because, ran, reconciled, why };

    let Some(compared) = &status.sync.compared_to else {
        return not_yet(NotYet::OtherComparison, "Argo CD has compared nothing yet".into());
    };
    if let Some(why) = describe_difference(compared.source.as_ref(), 0, &compared.destination, wanted) {
        return not_yet(NotYet::OtherComparison, format!("Argo CD still compares something else: {why}"));
    }
    if let Some(error) = status.conditions.iter().find(|c| c.kind.ends_with("Error")) {
        return not_yet(NotYet::ComparisonError, format!("{}: {}", error.kind, error.message));
    }
    match status.sync.status.as_str() {
        // OutOfSync after a successful operation is drift in a field that is ignored or that another
        // controller changes.
        "Synced" | "OutOfSync" => {}
        "" => return not_yet(NotYet::SyncUnknown, "its sync status is absent".into()),
        other => return not_yet(NotYet::SyncUnknown, format!("its sync status is {other}")),
    }
    if status.sync.revision.as_deref() != Some(digest.as_str()) {
        let found = status.sync.revision.as_deref().unwrap_or("nothing");
        return not_yet(NotYet::OtherRevision, format!("it is compared to {found}, not to {digest}"));
    }
    let Some(operation) = operation else {
        return not_yet(
            NotYet::NoOperation,
            "there was no sync; an artifact without manifests at its top looks like this".into(),
        );
    };
    let failed = match operation.phase.as_str() {
        "Succeeded" => false,
        "Failed" | "Error" => true,
        phase => return not_yet(NotYet::OperationRunning, format!("its sync is {phase}")),
    };
    if !of_this {
        let found = revision.unwrap_or("an unnamed revision");
        return not_yet(
            NotYet::OtherOperation,
            format!("the last sync ({}) was of {found}, not of {digest}", operation.phase),
        );
    }
    let Some(ended) = operation.finished_at else {
        return not_yet(NotYet::NotReconciled, "the time when its sync ended is missing".into());
    };
    let Some(reconciled) = status.reconciled_at else {
        return not_yet(NotYet::NotReconciled, "the time when Argo CD last compared it is missing".into());
    };
    if reconciled < ended {
        return not_yet(
            NotYet::NotReconciled,
            format!("Argo CD compared it at {reconciled}, before the sync ended at {ended}"),
        );
    }
    // A health without a time is only known for the moment of the observation.
    let changed = status.health.last_transition_time.unwrap_or(reconciled);
    let since = if failed { ended } else { changed.max(ended) }.max(wanted.promoted);
    if let Some(ahead) = [reconciled, since].into_iter().find(|t| *t > now.add_span(SKEW)) {
        return not_yet(
            NotYet::ClockAhead,
            format!(
                "it contains the time {ahead}, which is ahead of this run's clock; one of the two clocks is wrong"
            ),
        );
    }
    let said = |what: &str, message: Option<&str>| match message {
        Some(message) if !message.is_empty() => format!("{what}: {message}"),
        Some(_) | None => what.to_owned(),
    };
    if failed {
        let what = match operation.phase.as_str() {
            "Error" => "its sync ended in an error",
            _ => "its sync failed",
        };
        let words = operation.message.clone().unwrap_or_default();
        return ApplicationState::Degraded { since, what: what.into(), words };
    }
    let message = status.health.message.as_deref();
    match status.health.status.as_str() {
        "Healthy" => ApplicationState::Healthy { since, reconciled },
        bad @ ("Degraded" | "Missing") => {
            let words = status.health.message.clone().unwrap_or_default();
            ApplicationState::Degraded { since, what: format!("its health is {bad}"), words }
        }
        "Progressing" => not_yet(NotYet::Progressing, said("its health is Progressing", message)),
        "Suspended" => not_yet(NotYet::Suspended, said("its health is Suspended", message)),
        "" => not_yet(NotYet::HealthUnknown, "its health is absent".into()),
        other => not_yet(NotYet::HealthUnknown, said(&format!("its health is {other}"), message)),
    }
}

/// The combined state of what is pinned on all Clusters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// No observation was given.
    NotObserved,
    /// On at least one Ready Cluster.
    Degraded {
        since: Time,
        /// Which Clusters, and why; does not change while the state lasts.
        what: String,
        /// The same with Argo CD's own message.
        why: String,
    },
    /// Not yet healthy on every Ready Cluster, or none is Ready.
    Deploying {
        /// Which Clusters, and why.
        why: String,
    },
    /// Healthy on every Ready Cluster.
    Deployed {
        /// Set if every Cluster is healthy now: since when all are, and the oldest observation. `None`: it
        /// was healthy before, and the current observations do not change that.
        now: Option<Steady>,
        /// The time of the oldest observation, whatever it showed; `None`: one of them has no time.
        looked: Option<Time>,
    },
}

/// Healthy on every Ready Cluster, as of now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steady {
    /// The latest of the Clusters' `since`.
    pub since: Time,
    /// The earliest of the Clusters' `reconciled`.
    pub reconciled: Time,
}

/// One Cluster that the pinned artifact was written for.
#[derive(Debug, Clone)]
pub struct Pinned {
    pub cluster: ClusterName,
    /// Whether its health counts.
    pub ready: bool,
    /// The state of its Application.
    pub state: ApplicationState,
}

/// One observed Application that the deployed artifact was written to.
#[derive(Debug, Clone)]
pub struct Seen {
    pub cluster: ClusterName,
    /// The API server that was written into the Application.
    pub server: String,
    /// Whether its health counts.
    pub ready: bool,
    /// `None`: Argo CD has no Application of that name.
    pub application: Option<Arc<Application>>,
}

/// What the observed Applications report about what is deployed; `seen` is `None` if Argo CD was not asked.
#[must_use]
pub fn observe_deployed(
    deployed: &DeployedNow,
    history: &[HistoryEntry],
    seen: Option<&[Seen]>,
    now: Time,
) -> Health {
    let Some(seen) = seen else { return Health::NotObserved };
    let Some(entry) = history.first().filter(|e| e.digest == deployed.artifact.digest) else {
        return Health::Deploying { why: "its history has no time of the promotion".into() };
    };
    let clusters: Vec<Pinned> = seen
        .iter()
        .map(|seen| {
            let wanted = WantedApplication {
                artifact: &deployed.artifact,
                server: &seen.server,
                namespace: &deployed.target_namespace,
                promoted: entry.promoted_time,
            };
            Pinned {
                cluster: seen.cluster.clone(),
                ready: seen.ready,
                state: judge_application(seen.application.as_deref(), &wanted, now),
            }
        })
        .collect();
    let was_healthy = entry.first_healthy_time.is_some() && entry.ended_time.is_none();
    sum_health(&clusters, was_healthy)
}

/// Combines the Clusters. `was_healthy`: what is pinned was healthy on all of them before and has not ended
/// since; then an Application in transition (Progressing, Suspended, Unknown, not comparable) does not change
/// the result.
#[must_use]
pub fn sum_health(clusters: &[Pinned], was_healthy: bool) -> Health {
    let ready: Vec<&Pinned> = clusters.iter().filter(|c| c.ready).collect();
    if ready.is_empty() {
        let why = match clusters {
            [] => "no Cluster has it yet".to_owned(),
            _ => "no Cluster that has it is Ready".to_owned(),
        };
        return Health::Deploying { why };
    }
    let mut degraded: Vec<(Time, String, String)> = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut healthy: Vec<Steady> = Vec::new();
    let mut looked: Vec<Option<Time>> = Vec::new();
    for pinned in &ready {
        let named = |why: &str| format!("Cluster {}: {why}", pinned.cluster);
        match &pinned.state {
            ApplicationState::Healthy { since, reconciled } => {
                healthy.push(Steady { since: *since, reconciled: *reconciled });
                looked.push(Some(*reconciled));
            }
            ApplicationState::Degraded { since, what, words } => {
                let all = if words.is_empty() { what.clone() } else { format!("{what}: {words}") };
                degraded.push((*since, named(what), named(&all)));
            }
            ApplicationState::NotYet { because, ran, reconciled, why } => {
                looked.push(*reconciled);
                let settled = was_healthy && (*ran || *because == NotYet::OperationRunning);
                if !settled {
                    open.push(named(why));
                }
            }
        }
    }
    let join = |texts: Vec<String>| texts.join("; ");
    if let Some(since) = degraded.iter().map(|(since, ..)| *since).min() {
        let (what, why) = degraded.into_iter().map(|(_, what, why)| (what, why)).unzip();
        return Health::Degraded { since, what: join(what), why: join(why) };
    }
    if !open.is_empty() {
        return Health::Deploying { why: join(open) };
    }
    let all = healthy.len() == ready.len();
    let steady = healthy
        .into_iter()
        .reduce(|a, b| Steady { since: a.since.max(b.since), reconciled: a.reconciled.min(b.reconciled) });
    // `None` is less than any time, so a Cluster without a time makes the result `None`.
    let looked = looked.into_iter().min().flatten();
    Health::Deployed { now: steady.filter(|_| all), looked }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::model::id::Digest;
    use serde_json::{Value, json};

    const NOW: &str = "2026-03-01T12:00:00Z";

    fn time(text: &str) -> Time {
        Time::parse(text).unwrap()
    }
    fn artifact(content: &str) -> Artifact {
        Artifact::parse(&format!("oci://r.example/shop/podinfo@{}", Digest::hash_bytes(content.as_bytes())))
            .unwrap()
    }
    /// An Application that synced `content` and is healthy, as `kubectl get -o json` shows it.
    fn deployed(content: &str) -> Value {
        let digest = artifact(content).digest.to_string();
        let source =
            json!({"repoURL": "oci://r.example/shop/podinfo", "targetRevision": digest, "path": "."});
        let destination = json!({"server": "https://eu-1.example", "namespace": "shop"});
        json!({
            "metadata": {"name": "kokumi-shop-podinfo", "namespace": "argocd"},
            "spec": {"project": "default", "source": source, "destination": destination},
            "status": {
                "sync": {
                    "status": "Synced", "revision": digest,
                    "comparedTo": {"source": source, "destination": destination}
                },
                "health": {"status": "Healthy", "lastTransitionTime": "2026-03-01T10:02:00Z"},
                "operationState": {
                    "phase": "Succeeded", "message": "successfully synced",
                    "startedAt": "2026-03-01T10:00:50Z", "finishedAt": "2026-03-01T10:01:00Z",
                    "syncResult": {"revision": digest}
                },
                "reconciledAt": "2026-03-01T11:00:00Z"
            }
        })
    }
    fn read(value: &Value) -> Application {
        serde_json::from_value(value.clone()).unwrap()
    }
    fn state_at(value: &Value, promoted: &str, now: &str) -> ApplicationState {
        let artifact = artifact("two");
        let namespace = Namespace::parse("shop").unwrap();
        let wanted = WantedApplication {
            artifact: &artifact,
            server: "https://eu-1.example",
            namespace: &namespace,
            promoted: time(promoted),
        };
        judge_application(Some(&read(value)), &wanted, time(now))
    }
    fn judged(value: &Value) -> ApplicationState {
        state_at(value, "2026-03-01T10:00:00Z", NOW)
    }
    fn because(value: &Value) -> NotYet {
        match judged(value) {
            ApplicationState::NotYet { because, .. } => because,
            other => panic!("{other:?}"),
        }
    }
    /// The healthy Application of the wanted digest, with one thing changed.
    fn with(pointer: &str, value: Value) -> Value {
        let mut application = deployed("two");
        let (parent, last) = pointer.rsplit_once('/').unwrap();
        let parent = application.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        if value.is_null() {
            parent.remove(last);
        } else {
            parent.insert(last.to_owned(), value);
        }
        application
    }
    fn old_digest() -> Value {
        json!(artifact("one").digest.to_string())
    }

    #[test]
    fn a_synced_and_healthy_one_is_healthy_since_the_latest_of_three() {
        let since =
            |s: &str| ApplicationState::Healthy { since: time(s), reconciled: time("2026-03-01T11:00:00Z") };
        assert_eq!(judged(&deployed("two")), since("2026-03-01T10:02:00Z"), "the health transition");
        let early = with("/status/health/lastTransitionTime", json!("2026-02-01T00:00:00Z"));
        assert_eq!(judged(&early), since("2026-03-01T10:01:00Z"), "the operation's end");
        let late = state_at(&deployed("two"), "2026-03-01T10:30:00Z", NOW);
        assert_eq!(late, since("2026-03-01T10:30:00Z"), "the promotion");
        let unknown = with("/status/health/lastTransitionTime", Value::Null);
        assert_eq!(judged(&unknown), since("2026-03-01T11:00:00Z"), "when it was looked at");
    }

    /// Right after a change the old version's health is still there.
    #[test]
    fn b51_only_the_last_of_four_looks_counts() {
        let mut first = deployed("one");
        first["spec"]["source"]["targetRevision"] =
            deployed("two")["spec"]["source"]["targetRevision"].clone();
        assert_eq!(because(&first), NotYet::OtherComparison, "spec is new, all else is old");
        let mut second = with("/status/operationState/finishedAt", json!("2026-03-01T11:59:59Z"));
        assert_eq!(because(&second), NotYet::NotReconciled, "looked at before the sync ended");
        second["status"]["reconciledAt"] = json!("2026-03-01T11:59:59Z");
        second["status"]["health"]["status"] = json!("Progressing");
        assert_eq!(because(&second), NotYet::Progressing);
        second["status"]["health"]["status"] = json!("Healthy");
        assert!(matches!(judged(&second), ApplicationState::Healthy { .. }));
    }

    #[test]
    fn b52_a_failed_sync_is_degraded_and_drift_is_not() {
        let mut failed = with("/status/operationState/phase", json!("Failed"));
        failed["status"]["operationState"]["message"] = json!("one or more objects failed to apply");
        assert_eq!(
            judged(&failed),
            ApplicationState::Degraded {
                since: time("2026-03-01T10:01:00Z"),
                what: "its sync failed".into(),
                words: "one or more objects failed to apply".into()
            }
        );
        let drift = with("/status/sync/status", json!("OutOfSync"));
        assert!(matches!(judged(&drift), ApplicationState::Healthy { .. }));
    }

    #[test]
    fn bad_health_counts_only_of_this_digest() {
        for bad in ["Degraded", "Missing"] {
            let app = with("/status/health/status", json!(bad));
            let ApplicationState::Degraded { what, .. } = judged(&app) else { panic!() };
            assert_eq!(what, format!("its health is {bad}"));
            let mut before = app.clone();
            before["status"]["operationState"]["syncResult"]["revision"] = old_digest();
            assert_eq!(because(&before), NotYet::OtherOperation, "the old version is degraded");
            before["status"]["operationState"]["phase"] = json!("Failed");
            assert_eq!(because(&before), NotYet::OtherOperation, "the old version's sync failed");
        }
    }

    #[test]
    fn b52_everything_else_has_a_reason_of_its_own() {
        let cases = [
            (with("/metadata/deletionTimestamp", json!("2026-03-01T11:00:00Z")), NotYet::Deleting),
            (with("/spec/source/targetRevision", old_digest()), NotYet::OtherSpec),
            (with("/spec/source/path", json!("sub")), NotYet::OtherSpec),
            (with("/spec/source/chart", json!("podinfo")), NotYet::OtherSpec),
            (with("/spec/source/repoURL", json!("oci://r.example/shop/other")), NotYet::OtherSpec),
            (with("/spec/sources", json!([{"repoURL": "oci://r.example/x"}])), NotYet::OtherSpec),
            (with("/spec/destination/server", json!("https://us-1.example")), NotYet::OtherSpec),
            (with("/spec/destination/namespace", json!("shop-2")), NotYet::OtherSpec),
            (with("/spec/source", Value::Null), NotYet::OtherSpec),
            (with("/status", Value::Null), NotYet::NoStatus),
            (with("/status/sync/comparedTo", Value::Null), NotYet::OtherComparison),
            (with("/status/sync/status", json!("Unknown")), NotYet::SyncUnknown),
            (with("/status/sync/revision", old_digest()), NotYet::OtherRevision),
            (with("/status/operationState", Value::Null), NotYet::NoOperation),
            (with("/status/operationState/phase", json!("Running")), NotYet::OperationRunning),
            (with("/status/operationState/syncResult", Value::Null), NotYet::OtherOperation),
            (with("/status/operationState/finishedAt", Value::Null), NotYet::NotReconciled),
            (with("/status/reconciledAt", Value::Null), NotYet::NotReconciled),
            (with("/status/health/status", json!("Suspended")), NotYet::Suspended),
            (with("/status/health/status", json!("Unknown")), NotYet::HealthUnknown),
            (with("/status/health", json!({})), NotYet::HealthUnknown),
            (
                with("/status/conditions", json!([{"type": "ComparisonError", "message": "no such digest"}])),
                NotYet::ComparisonError,
            ),
            (
                with("/status/conditions", json!([{"type": "SyncError", "message": "would wipe out"}])),
                NotYet::ComparisonError,
            ),
        ];
        let mut reasons = std::collections::BTreeSet::new();
        for (application, expected) in &cases {
            assert_eq!(because(application), *expected, "{application}");
            let ApplicationState::NotYet { why, .. } = judged(application) else { panic!() };
            reasons.insert(why);
        }
        assert_eq!(reasons.len(), cases.len(), "each says something of its own: {reasons:#?}");
        let warned = with("/status/conditions", json!([{"type": "OrphanedResourceWarning", "message": "x"}]));
        assert!(matches!(judged(&warned), ApplicationState::Healthy { .. }), "a warning is not an error");
    }

    #[test]
    fn clocks_that_are_ahead_make_nothing_count() {
        let ahead = with("/status/health/lastTransitionTime", json!("2026-03-01T12:10:00Z"));
        assert_eq!(because(&ahead), NotYet::ClockAhead);
        let within = with("/status/health/lastTransitionTime", json!("2026-03-01T12:04:00Z"));
        assert!(matches!(judged(&within), ApplicationState::Healthy { .. }), "five minutes are tolerated");
        let observed = with("/status/reconciledAt", json!("2028-03-01T12:00:00Z"));
        assert_eq!(
            because(&observed),
            NotYet::ClockAhead,
            "an observation of the future keeps nothing alive"
        );
        let ApplicationState::NotYet { because, .. } =
            state_at(&deployed("two"), "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z")
        else {
            panic!()
        };
        assert_eq!(because, NotYet::ClockAhead, "a run's clock at 1970");
    }

    fn pinned(name: &str, ready: bool, state: ApplicationState) -> Pinned {
        Pinned { cluster: ClusterName::parse(name).unwrap(), ready, state }
    }
    fn healthy(since: &str, reconciled: &str) -> ApplicationState {
        ApplicationState::Healthy { since: time(since), reconciled: time(reconciled) }
    }

    #[test]
    fn every_ready_cluster_must_be_healthy_and_the_last_one_says_since_when() {
        let a = healthy("2026-03-01T10:00:00Z", "2026-03-01T11:30:00Z");
        let b = healthy("2026-03-01T10:05:00Z", "2026-03-01T11:00:00Z");
        let both = [pinned("eu-1", true, a.clone()), pinned("us-1", true, b)];
        let steady = Steady { since: time("2026-03-01T10:05:00Z"), reconciled: time("2026-03-01T11:00:00Z") };
        assert_eq!(
            sum_health(&both, false),
            Health::Deployed { now: Some(steady), looked: Some(steady.reconciled) }
        );
        let one = [pinned("eu-1", true, a.clone()), pinned("us-1", true, state_of_nothing())];
        assert_eq!(
            sum_health(&one, false),
            Health::Deploying { why: "Cluster us-1: Argo CD has no such Application yet".into() }
        );
        let not_ready = [pinned("eu-1", true, a.clone()), pinned("us-1", false, state_of_nothing())];
        assert!(matches!(sum_health(&not_ready, false), Health::Deployed { now: Some(_), .. }));
        let none = [pinned("eu-1", false, a)];
        assert_eq!(
            sum_health(&none, true),
            Health::Deploying { why: "no Cluster that has it is Ready".into() }
        );
    }

    fn state_of_nothing() -> ApplicationState {
        let artifact = artifact("two");
        let namespace = Namespace::parse("shop").unwrap();
        let wanted =
            WantedApplication { artifact: &artifact, server: "", namespace: &namespace, promoted: time(NOW) };
        judge_application(None, &wanted, time(NOW))
    }

    #[test]
    fn one_degraded_cluster_is_degraded_whatever_the_others_say() {
        let bad = |since: &str| ApplicationState::Degraded {
            since: time(since),
            what: "its health is Missing".into(),
            words: since.into(),
        };
        let all = [
            pinned("eu-1", true, bad("2026-03-01T10:09:00Z")),
            pinned("eu-2", true, bad("2026-03-01T10:08:00Z")),
            pinned("us-1", true, state_of_nothing()),
        ];
        assert_eq!(
            sum_health(&all, true),
            Health::Degraded {
                since: time("2026-03-01T10:08:00Z"),
                what: "Cluster eu-1: its health is Missing; Cluster eu-2: its health is Missing".into(),
                why: "Cluster eu-1: its health is Missing: 2026-03-01T10:09:00Z; Cluster eu-2: its health is Missing: 2026-03-01T10:08:00Z".into()
            }
        );
        let unready =
            [pinned("eu-1", false, bad("2026-03-01T10:09:00Z")), pinned("eu-2", true, healthy(NOW, NOW))];
        assert!(matches!(sum_health(&unready, true), Health::Deployed { .. }));
    }

    #[test]
    fn on_its_way_after_healthy_changes_nothing() {
        let restless = [
            with("/status/health/status", json!("Progressing")),
            with("/status/health/status", json!("Suspended")),
            with("/status/health/status", json!("Unknown")),
            with("/status/sync/status", json!("Unknown")),
            with("/status/operationState/phase", json!("Running")),
            with("/status/conditions", json!([{"type": "ComparisonError", "message": "registry down"}])),
        ];
        for application in restless {
            let seen = [pinned("eu-1", true, judged(&application))];
            assert!(matches!(sum_health(&seen, true), Health::Deployed { now: None, .. }), "{application}");
            assert!(matches!(sum_health(&seen, false), Health::Deploying { .. }), "{application}");
        }
        let elsewhere = [pinned("eu-1", true, judged(&deployed("one")))];
        assert!(matches!(sum_health(&elsewhere, true), Health::Deploying { .. }), "a Cluster that joined");
    }
}
