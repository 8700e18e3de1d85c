//! The frozen shape of `-o json`, version 1. Scripts rely on it: members are added, never renamed or removed;
//! another meaning needs another version. Its structs are its own, so that a change inside Expedite cannot
//! change it by accident.

pub mod audit;
pub mod explain;
pub mod get;
pub mod open;
pub mod schema;
pub mod verify;

use crate::error;
use crate::files::FileChange;
use crate::model::plan::{self as model, ApplicationAction};
use crate::model::verdict::{For, GateOutcome, Verdict};
use crate::report::view::{self, View, Written};
use schemars::JsonSchema;
use serde::Serialize;

/// `apiVersion` of every document.
pub const API_VERSION: &str = "expedite.kokumi.dev/v1";

/// Kind `Plan` or `Run`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Plan")]
pub struct PlanDocument {
    /// [`API_VERSION`].
    pub api_version: &'static str,
    /// `Plan` or `Run`.
    pub kind: &'static str,
    /// The instant it was decided for.
    pub at: String,
    /// The commit it was decided on; null for a branch that does not exist yet.
    pub head: Option<String>,
    /// The commit that was made; null where there was none.
    pub commit: Option<String>,
    /// Counts.
    pub summary: SummaryJson,
    /// One per Order, sorted.
    pub orders: Vec<PlanOrderJson>,
    /// Files that change, sorted.
    pub files: Vec<File>,
    /// Files in the generated folders that differ from what Expedite wrote.
    pub drift: Vec<DriftJson>,
    /// The removal guard's stop; null where it did not stop.
    pub guard: Option<Guard>,
    /// Problems of no single Order.
    pub problems: Vec<FailureJson>,
    /// Warnings of no single Order.
    pub warnings: Vec<FailureJson>,
    /// For `plan --expect`; null for a run.
    pub fingerprint: Option<String>,
    /// What the plan was compared with (`--base`); null where it was not.
    pub base: Option<BaseJson>,
}

/// What a plan was compared with: its Orders are those that the change affects.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Base")]
pub struct BaseJson {
    /// As it was requested.
    pub reference: String,
    /// The commit whose settings and trust count.
    pub commit: String,
    /// How many Orders move, wait or fail with and without the change alike.
    pub anyway: usize,
    /// Orders that the change removes and that deploy nothing.
    pub gone: Vec<String>,
    /// What the change makes easier to pass.
    pub weakened: Vec<String>,
    /// What else a reader must know.
    pub notes: Vec<String>,
}

/// How many of how many.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
#[schemars(rename = "Summary")]
pub struct SummaryJson {
    pub orders: usize,
    pub promoted: usize,
    pub held: usize,
    pub failed: usize,
    pub removed: usize,
    pub unchanged: usize,
    pub files: usize,
}

/// One Order's row.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Order")]
pub struct PlanOrderJson {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Where it deploys.
    pub environment: Option<String>,
    /// `Manual` or `Automatic`.
    pub mode: &'static str,
    /// What was deployed before.
    pub deployed: Option<DeployedJson>,
    /// What could be promoted.
    pub candidate: Option<CandidateJson>,
    /// `Keep`, `Promote`, `Rollback`, `Hold`, `Error` or `Remove`.
    pub decision: &'static str,
    /// Who requested the promotion; of `Promote` and `Rollback`.
    pub requested_by: Option<String>,
    /// The first gate that does not pass.
    pub waits_for: Option<&'static str>,
    /// When what waits can deploy; null of a run, and where nothing waits.
    pub forecast: Option<explain::ForecastJson>,
    /// Every gate's answer for the candidate, in order.
    pub gates: Vec<GateJson>,
    /// One per Cluster, and one per Application that is removed.
    pub applications: Vec<ApplicationJson>,
    /// This Order's errors.
    pub errors: Vec<FailureJson>,
    /// This Order's warnings.
    pub warnings: Vec<FailureJson>,
}

/// What is deployed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
#[schemars(rename = "Deployed")]
pub struct DeployedJson {
    pub preparation_name: String,
    pub digest: Option<String>,
}

/// What could be promoted.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
#[schemars(rename = "Candidate")]
pub struct CandidateJson {
    pub preparation_name: String,
    pub repository: String,
    pub digest: String,
    pub base_digest: Option<String>,
    pub target_namespace: String,
}

/// One gate's answer.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Gate")]
pub struct GateJson {
    /// Its name.
    pub name: &'static str,
    /// `Passed`, `Waiting` or `Failed`.
    pub outcome: &'static str,
    /// `Instant`, `Person`, `Evidence`, `Order`, `Registry` or `Build`; of `Waiting`.
    pub waiting_for: Option<&'static str>,
    /// RFC 3339; of `Instant`.
    pub until: Option<String>,
    /// People or groups; of `Person`.
    pub who: Vec<String>,
    /// For a person.
    pub message: String,
    /// Whether something it needs could not be read.
    pub unread: bool,
    /// What it rests on.
    pub evidence: Vec<EvidenceJson>,
}

/// One piece a gate's answer rests on.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
#[schemars(rename = "Evidence")]
pub struct EvidenceJson {
    pub kind: String,
    pub name: String,
    pub digest: Option<String>,
    pub uri: String,
    pub key: String,
}

/// One Application.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Application")]
pub struct ApplicationJson {
    /// For which Cluster.
    pub cluster: String,
    /// Its name.
    pub name: String,
    /// Its file.
    pub path: String,
    /// `keep`, `create`, `change`, `restore`, `hold`, `detach` or `remove`.
    pub action: &'static str,
    /// A CamelCase word; of `hold`.
    pub reason: Option<String>,
    /// For a person.
    pub message: Option<String>,
}

/// A file that changes.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct File {
    /// In the repository.
    pub path: String,
    /// `write` or `delete`.
    pub action: &'static str,
}

/// A file in the generated folders that differs from what Expedite wrote.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
#[schemars(rename = "Drift")]
pub struct DriftJson {
    pub path: String,
    pub message: String,
    /// The hand edit, as a unified diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// The removal guard's stop.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Guard {
    pub allowed: usize,
    pub removals: Vec<DriftJson>,
}

/// Something that is wrong.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Failure")]
pub struct FailureJson {
    /// Stable, for scripts.
    pub code: &'static str,
    /// The object or thing.
    pub object: Option<String>,
    /// Where it is written.
    pub file: Option<String>,
    /// From 1.
    pub line: Option<u32>,
    /// From 1.
    pub column: Option<u32>,
    /// The field's path.
    pub field: Option<String>,
    /// Why.
    pub cause: String,
    /// What to do next.
    pub hints: Vec<String>,
}

/// The plan (or run) as one JSON document, indented, with a line's end.
#[must_use]
pub fn format_plan(view: &View<'_>) -> String {
    let sum = view.count_rows();
    let commit = match view.written {
        Some(Written::Commit { id, .. }) => Some(id.to_string()),
        Some(Written::Nothing | Written::Stopped) | None => None,
    };
    format_document(&PlanDocument {
        api_version: API_VERSION,
        kind: if view.written.is_some() { "Run" } else { "Plan" },
        at: view.plan.at.to_string(),
        head: view.plan.head.as_ref().map(ToString::to_string),
        commit,
        summary: SummaryJson {
            orders: sum.orders,
            promoted: sum.promoted,
            held: sum.held,
            failed: sum.failed,
            removed: sum.removed,
            unchanged: sum.kept,
            files: sum.files,
        },
        orders: view.plan.rows.iter().map(|row| make_order(view, row)).collect(),
        files: view
            .changes
            .iter()
            .map(|(path, change)| File {
                path: path.clone(),
                action: match change {
                    FileChange::Write(_) => "write",
                    FileChange::Delete => "delete",
                },
            })
            .collect(),
        drift: view
            .drift
            .iter()
            .map(|d| DriftJson { diff: d.diff.clone(), ..make_drift(&d.path, &d.what) })
            .collect(),
        guard: view.plan.guard.as_ref().map(|stop| Guard {
            allowed: stop.allowed,
            removals: stop.removals.iter().map(|(path, why)| make_drift(path, why)).collect(),
        }),
        problems: view.plan.problems.iter().map(make_failure).collect(),
        warnings: view.plan.notices.iter().map(make_failure).collect(),
        fingerprint: view.preview.fingerprint.as_ref().map(ToString::to_string),
        base: view.preview.base.as_ref().map(|base| BaseJson {
            reference: base.reference.clone(),
            commit: base.commit.clone(),
            anyway: base.anyway,
            gone: base.gone.iter().map(ToString::to_string).collect(),
            weakened: base.weakened.clone(),
            notes: base.notes.clone(),
        }),
    })
}

fn make_drift(path: &str, message: &str) -> DriftJson {
    DriftJson { path: path.to_owned(), message: message.to_owned(), diff: None }
}

/// One Order's row in this shape.
#[must_use]
pub fn make_order(view: &View<'_>, row: &model::PlanRow) -> PlanOrderJson {
    let deployed = view.find_serving(row).and_then(|serving| {
        let digest = serving.status.deployed_digest.map(|d| d.to_string());
        let name = serving.status.observed_preparation_name.as_ref()?;
        Some(DeployedJson { preparation_name: name.to_string(), digest })
    });
    PlanOrderJson {
        namespace: row.order.namespace.to_string(),
        name: row.order.name.to_string(),
        environment: row.environment.as_ref().map(ToString::to_string),
        mode: super::plan::format_mode(row.mode),
        deployed,
        candidate: row.candidate.as_ref().map(|c| CandidateJson {
            preparation_name: c.name.to_string(),
            repository: c.artifact.repository.to_string(),
            digest: c.artifact.digest.to_string(),
            base_digest: c.base_digest.map(|d| d.to_string()),
            target_namespace: c.target_namespace.to_string(),
        }),
        decision: view::format_decision(row),
        requested_by: match &row.decision {
            model::Decision::Promote(promotion) => Some(promotion.requested_by.name.clone()),
            model::Decision::Keep
            | model::Decision::Hold
            | model::Decision::Broken
            | model::Decision::Remove(_) => None,
        },
        waits_for: super::plan::find_waited_gate(row).map(|v| v.gate.as_str()),
        forecast: view.find_forecast(row).map(explain::make_forecast),
        gates: row.verdicts.iter().map(make_gate).collect(),
        applications: row.applications.iter().map(|a| make_application(view, a)).collect(),
        errors: row.errors.iter().map(make_failure).collect(),
        warnings: row.warnings.iter().map(make_failure).collect(),
    }
}

fn make_gate(verdict: &Verdict) -> GateJson {
    let (outcome, waiting_for) = match &verdict.outcome {
        GateOutcome::Passed => ("Passed", None),
        GateOutcome::Failed => ("Failed", None),
        GateOutcome::Waiting(what) => ("Waiting", Some(what)),
    };
    let text = |text: &str| text.to_owned();
    GateJson {
        name: verdict.gate.as_str(),
        outcome,
        waiting_for: waiting_for.map(|what| match what {
            For::Instant(_) => "Instant",
            For::Person(_) => "Person",
            For::Evidence => "Evidence",
            For::Order(_) => "Order",
            For::Registry => "Registry",
            For::Build => "Build",
            For::AnotherGate => "AnotherGate",
            For::LaterRun => "LaterRun",
        }),
        until: match waiting_for {
            Some(For::Instant(until)) => Some(until.to_string()),
            Some(
                For::Person(_)
                | For::Evidence
                | For::Order(_)
                | For::Registry
                | For::Build
                | For::AnotherGate
                | For::LaterRun,
            )
            | None => None,
        },
        who: match waiting_for {
            Some(For::Person(who)) => who.clone(),
            Some(For::Order(order)) => vec![order.to_string()],
            Some(
                For::Instant(_)
                | For::Evidence
                | For::Registry
                | For::Build
                | For::AnotherGate
                | For::LaterRun,
            )
            | None => Vec::new(),
        },
        message: verdict.message.clone(),
        unread: verdict.unread,
        evidence: verdict
            .evidence
            .iter()
            .map(|e| EvidenceJson {
                kind: text(&e.kind),
                name: text(&e.name),
                digest: e.digest.map(|d| d.to_string()),
                uri: text(&e.uri),
                key: text(&e.key),
            })
            .collect(),
    }
}

fn make_application(view: &View<'_>, plan: &model::ApplicationPlan) -> ApplicationJson {
    let (reason, message) = match &plan.action {
        ApplicationAction::Pin(_) => (None, None),
        ApplicationAction::Hold { reason, message } => (Some(reason.clone()), Some(message.clone())),
        ApplicationAction::Detach(why) | ApplicationAction::Remove(why) => (None, Some(why.clone())),
    };
    ApplicationJson {
        cluster: plan.cluster.to_string(),
        name: plan.name.to_string(),
        path: plan.path.clone(),
        action: view.describe_action(plan).unwrap_or("keep"),
        reason,
        message,
    }
}

/// A failure in this shape.
#[must_use]
pub fn make_failure(from: &error::Failure) -> FailureJson {
    FailureJson {
        code: from.code,
        object: from.what.clone(),
        file: from.at.as_ref().map(|at| at.file.clone()),
        line: from.at.as_ref().and_then(|at| at.line),
        column: from.at.as_ref().and_then(|at| at.column),
        field: from.field.clone(),
        cause: from.cause.clone(),
        hints: from.hints.clone(),
    }
}

/// Indented, with a line's end. These structs hold nothing that JSON cannot say.
pub(super) fn format_document<T: Serialize>(document: &T) -> String {
    let mut text = serde_json::to_string_pretty(document)
        .unwrap_or_else(|error| format!("{{\"error\":{:?}}}", error.to_string()));
    text.push('\n');
    crate::report::escape::escape_json(&text).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::report::get::collect_servings;
    use crate::report::sample::{check_same, make_sample};

    #[test]
    fn the_shape_is_frozen() {
        let sample = make_sample();
        check_same("json_v1/expected-plan.json", &format_plan(&sample.make_view(None)));
        check_same(
            "json_v1/expected-servings.json",
            &get::format_servings(&collect_servings(&sample.before)[1..2]),
        );
        check_same(
            "json_v1/expected-history.json",
            &get::format_history(&collect_servings(&sample.before)[1..2]),
        );
    }
}
