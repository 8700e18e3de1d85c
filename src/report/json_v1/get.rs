//! What `get -o json` prints: one `List` of items per kind.

use crate::model::id::{Namespace, OrderRef, PreparationName};
use crate::model::meta;
use crate::model::order;
use crate::model::preparation;
use crate::model::serving::ServingStatus;
use crate::model::time::Time;
use crate::model::world::{GitOps, Loaded};
use crate::report::get::{self, ServingLine};
use crate::report::json_v1::{API_VERSION, format_document};
use schemars::JsonSchema;
use serde::Serialize;

/// What every `get` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct List<T> {
    api_version: &'static str,
    kind: &'static str,
    items: Vec<T>,
}

fn format_list<T: Serialize>(kind: &'static str, items: impl Iterator<Item = T>) -> String {
    format_document(&List { api_version: API_VERSION, kind, items: items.collect() })
}

/// One Serving.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
#[schemars(rename = "Serving")]
pub struct ServingJson {
    pub namespace: String,
    pub name: String,
    pub order_name: String,
    pub target_preparation_name: Option<String>,
    pub observed_preparation_name: Option<String>,
    pub deployed_digest: Option<String>,
    pub environment: Option<String>,
    pub queued: Option<QueuedJson>,
    pub conditions: Vec<ConditionJson>,
    pub clusters: Vec<ClusterJson>,
    pub creation_timestamp: Option<String>,
    /// Whether the file parses as a Serving.
    pub readable: bool,
}

/// A promotion that waits.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
#[schemars(rename = "Queued")]
pub struct QueuedJson {
    pub preparation_name: String,
    pub waits_for: String,
    pub message: String,
    pub since: String,
}

/// One condition.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
#[schemars(rename = "Condition")]
pub struct ConditionJson {
    pub r#type: String,
    pub status: String,
    pub reason: String,
    pub message: String,
    pub last_transition_time: Option<String>,
}

/// One Cluster's state.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
#[schemars(rename = "Cluster")]
pub struct ClusterJson {
    pub name: String,
    pub application: String,
    pub reason: String,
    pub message: String,
}

/// One Order.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
#[schemars(rename = "Order")]
pub struct OrderJson {
    pub namespace: String,
    pub name: String,
    pub environment: Option<String>,
    pub mode: &'static str,
    pub deployed_preparation_name: Option<String>,
    pub deployed_digest: Option<String>,
    pub queued: Option<QueuedJson>,
    /// What is queued, or under Automatic the newest one, and the gate that holds it.
    pub waiting: Option<Waiting>,
    pub creation_timestamp: Option<String>,
}

/// A Preparation that waits for a gate.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Waiting {
    pub preparation_name: String,
    pub waits_for: String,
}

/// One Preparation.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
#[schemars(rename = "Preparation")]
pub struct PreparationJson {
    pub namespace: String,
    pub name: String,
    pub order_name: String,
    pub ready: &'static str,
    pub oci_ref: String,
    pub digest: String,
    pub signed: bool,
    pub commit_message: Option<String>,
    pub queued: Option<QueuedJson>,
    pub creation_timestamp: Option<String>,
}

/// One promotion that happened.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
#[schemars(rename = "HistoryEntry")]
pub struct HistoryEntryJson {
    pub namespace: String,
    pub order_name: String,
    pub preparation_name: String,
    pub digest: String,
    pub base_digest: Option<String>,
    pub environment: Option<String>,
    pub promoted_time: String,
    pub first_healthy_time: Option<String>,
    pub ended_time: Option<String>,
    pub ended_reason: Option<String>,
    pub requested_by: Option<String>,
    pub promotion_record: Option<String>,
    pub deployment_record: Option<String>,
}

/// Kind `ServingList`.
#[must_use]
pub fn format_servings(lines: &[ServingLine<'_>]) -> String {
    format_list("ServingList", lines.iter().map(make_serving))
}

/// One Serving in this shape.
#[must_use]
pub fn make_serving(line: &ServingLine<'_>) -> ServingJson {
    let unread = ServingStatus::default();
    let status = line.status.unwrap_or(&unread);
    ServingJson {
        namespace: line.order.namespace.to_string(),
        name: line.order.name.to_string(),
        order_name: line.order.name.to_string(),
        target_preparation_name: format_text(status.target_preparation_name.as_ref()),
        observed_preparation_name: format_text(status.observed_preparation_name.as_ref()),
        deployed_digest: format_text(status.deployed_digest.as_ref()),
        environment: status.deployed.as_ref().map(|d| d.environment.to_string()),
        queued: make_queued(status, None),
        conditions: status.conditions.iter().map(make_condition).collect(),
        clusters: status
            .clusters
            .iter()
            .map(|c| ClusterJson {
                name: c.name.to_string(),
                application: c.application.to_string(),
                reason: c.reason.clone(),
                message: c.message.clone(),
            })
            .collect(),
        creation_timestamp: format_text(line.created.as_ref()),
        readable: line.status.is_some(),
    }
}

/// Kind `OrderList`.
#[must_use]
pub fn format_orders<'a>(
    orders: impl IntoIterator<Item = (&'a OrderRef, &'a Loaded<order::Order>)>,
    gitops: &GitOps,
) -> String {
    format_list(
        "OrderList",
        orders.into_iter().map(|(name, loaded)| {
            let status = get::find_status(gitops, name);
            OrderJson {
                namespace: name.namespace.to_string(),
                name: name.name.to_string(),
                environment: format_text(loaded.object.spec.environment.as_ref()),
                mode: crate::report::plan::format_mode(get::find_mode(&loaded.object)),
                deployed_preparation_name: status
                    .and_then(|s| format_text(s.observed_preparation_name.as_ref())),
                deployed_digest: status.and_then(|s| format_text(s.deployed_digest.as_ref())),
                queued: status.and_then(|s| make_queued(s, None)),
                waiting: status.and_then(ServingStatus::find_wait).map(|(name, gate)| Waiting {
                    preparation_name: name.to_string(),
                    waits_for: gate.to_string(),
                }),
                creation_timestamp: format_time(loaded.object.metadata.creation_timestamp),
            }
        }),
    )
}

/// Kind `PreparationList`.
#[must_use]
pub fn format_preparations<'a>(
    preparations: impl IntoIterator<
        Item = (&'a (Namespace, PreparationName), &'a Loaded<preparation::Preparation>),
    >,
    gitops: &GitOps,
) -> String {
    format_list(
        "PreparationList",
        preparations.into_iter().map(|((namespace, name), loaded)| {
            let spec = &loaded.object.spec;
            let order = OrderRef { namespace: namespace.clone(), name: spec.order_name.clone() };
            PreparationJson {
                namespace: namespace.to_string(),
                name: name.to_string(),
                order_name: spec.order_name.to_string(),
                ready: get::format_ready(loaded),
                oci_ref: spec.artifact.oci_ref.clone(),
                digest: spec.artifact.digest.to_string(),
                signed: spec.artifact.signed,
                commit_message: spec.commit_message.clone(),
                queued: get::find_status(gitops, &order).and_then(|s| make_queued(s, Some(name))),
                creation_timestamp: format_time(loaded.object.metadata.creation_timestamp),
            }
        }),
    )
}

/// Kind `HistoryList`, newest first within an Order.
#[must_use]
pub fn format_history(lines: &[ServingLine<'_>]) -> String {
    let entries = lines.iter().flat_map(|line| {
        line.status.into_iter().flat_map(|s| &s.history).map(|entry| HistoryEntryJson {
            namespace: line.order.namespace.to_string(),
            order_name: line.order.name.to_string(),
            preparation_name: entry.preparation_name.to_string(),
            digest: entry.digest.to_string(),
            base_digest: format_text(entry.base_digest.as_ref()),
            environment: format_text(entry.environment.as_ref()),
            promoted_time: entry.promoted_time.to_string(),
            first_healthy_time: format_time(entry.first_healthy_time),
            ended_time: format_time(entry.ended_time),
            ended_reason: format_text(entry.ended_reason.as_ref()),
            requested_by: entry.requested_by.as_ref().map(|r| r.name.clone()),
            promotion_record: format_text(entry.promotion_record.as_ref()),
            deployment_record: format_text(entry.deployment_record.as_ref()),
        })
    });
    format_list("HistoryList", entries)
}

/// The queued promotion, of this Preparation where one is given.
fn make_queued(status: &ServingStatus, only: Option<&PreparationName>) -> Option<QueuedJson> {
    let queued = status.queued.as_ref().filter(|q| only.is_none_or(|name| q.preparation_name == *name))?;
    Some(QueuedJson {
        preparation_name: queued.preparation_name.to_string(),
        waits_for: queued.waits_for.clone(),
        message: queued.message.clone(),
        since: queued.since.to_string(),
    })
}

fn make_condition(from: &meta::Condition) -> ConditionJson {
    ConditionJson {
        r#type: from.kind.clone(),
        status: from.status.clone(),
        reason: from.reason.clone(),
        message: from.message.clone(),
        last_transition_time: format_time(from.last_transition_time),
    }
}

fn format_text(value: Option<&impl ToString>) -> Option<String> {
    value.map(ToString::to_string)
}

fn format_time(value: Option<Time>) -> Option<String> {
    format_text(value.as_ref())
}
