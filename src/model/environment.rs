//! Environment: where Orders deploy, and what every Order there must pass on top of its own gates.

use crate::model::id::{ClusterName, Namespace};
use crate::model::meta::Meta;
use crate::model::order::{ApprovalPolicy, Check, Upstream};
use crate::model::time::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An Environment as read.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Environment {
    /// Name and labels.
    pub metadata: Meta,
    /// Clusters and rules.
    #[serde(default)]
    pub spec: EnvironmentSpec,
}

/// `Environment.spec`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvironmentSpec {
    /// Clusters by name; together with those that `clusterSelector` admits.
    pub clusters: Vec<ClusterName>,
    /// Clusters by label.
    pub cluster_selector: Option<Selector>,
    /// Argo CD's AppProject; `default` when absent.
    pub argocd_project: Option<String>,
    /// Namespaces whose Orders may name this Environment; absent or empty: all.
    pub allowed_namespaces: Vec<Namespace>,
    /// Target namespaces allowed in addition to the Preparation's own.
    pub allowed_target_namespaces: Vec<Namespace>,
    /// Whether the workload of a removed Application is deleted, too; Cascade when absent.
    pub on_delete: Option<OnDelete>,
    /// What every Order here must pass in addition to its own gates.
    pub promotion: EnvironmentPromotion,
}

/// Whether the workload of a removed Application is deleted, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, JsonSchema)]
pub enum OnDelete {
    /// It does: `resources-finalizer.argocd.argoproj.io` is set.
    #[default]
    Cascade,
    /// It does not.
    Orphan,
}

/// `Environment.spec.promotion`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvironmentPromotion {
    /// Stricter with the Order's.
    pub approvals: Option<ApprovalPolicy>,
    /// On top of the Order's.
    pub upstream: Vec<Upstream>,
    /// On top of the Order's, judged first.
    pub checks: Vec<Check>,
    /// No promotion inside one of them.
    pub freezes: Vec<Freeze>,
}

/// A time without promotions.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Freeze {
    /// First instant inside.
    pub from: Time,
    /// First instant outside.
    pub to: Time,
    /// For people.
    #[serde(default)]
    pub reason: String,
}

/// A Kubernetes label selector.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Selector {
    /// All of these must be there with exactly this value.
    pub match_labels: BTreeMap<String, String>,
    /// All of these must hold.
    pub match_expressions: Vec<SelectorRule>,
}

/// One rule of a selector.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelectorRule {
    /// The label.
    pub key: String,
    /// How it is compared.
    pub operator: SelectorOperator,
    /// For In and NotIn.
    #[serde(default)]
    pub values: Vec<String>,
}

/// How a label is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum SelectorOperator {
    /// The label is there with one of the values.
    In,
    /// The label is not there, or has none of the values.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is not there.
    DoesNotExist,
}

impl Selector {
    /// Whether `labels` satisfy every rule. An empty selector admits everything, as in Kubernetes.
    #[must_use]
    pub fn admits_labels(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(k, v)| labels.get(k) == Some(v))
            && self.match_expressions.iter().all(|rule| {
                let value = labels.get(&rule.key);
                match rule.operator {
                    SelectorOperator::In => value.is_some_and(|v| rule.values.contains(v)),
                    SelectorOperator::NotIn => value.is_none_or(|v| !rule.values.contains(v)),
                    SelectorOperator::Exists => value.is_some(),
                    SelectorOperator::DoesNotExist => value.is_none(),
                }
            })
    }
}
