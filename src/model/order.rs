//! Order: what an application is and how it moves.

use crate::model::id::{EnvironmentName, OrderRef};
use crate::model::meta::{Meta, Status};
use crate::model::renderer;
use crate::model::time::Span;
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// An Order as read.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Order {
    /// Name and namespace.
    pub metadata: Meta,
    /// What is wanted.
    #[serde(default)]
    pub spec: OrderSpec,
    /// What a controller saw.
    pub status: Option<Status>,
}

/// `Order.spec`. Members that only the renderer reads are known by name and not looked into.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OrderSpec {
    /// Where it deploys; absent only while no Environment object exists.
    pub environment: Option<EnvironmentName>,
    /// The published August 2026 field; counts where `promotion.mode` is absent. `Enabled` beside `Manual`
    /// is an error. `Disabled` beside `Automatic` is none: the published CRD writes `Disabled` by default,
    /// so that a cluster has it beside every mode that a person wrote.
    pub auto_deploy: Option<AutoDeploy>,
    /// How it moves.
    pub promotion: Option<PromotionSpec>,
    /// The renderer's: what is rendered. Not beside `menuRef`.
    #[schemars(with = "Option<renderer::OrderSource>")]
    pub source: Option<IgnoredAny>,
    /// The renderer's: where Preparations are pushed.
    #[schemars(with = "Option<renderer::OrderDestination>")]
    pub destination: Option<IgnoredAny>,
    /// The renderer's: changes made last.
    #[schemars(with = "Option<Vec<renderer::Patch>>")]
    pub edits: Option<IgnoredAny>,
    /// The renderer's: changes to what the source has.
    #[schemars(with = "Option<Vec<renderer::Patch>>")]
    pub patches: Option<IgnoredAny>,
    /// The renderer's: the Menu that it is made from. Not beside `source`.
    #[schemars(with = "Option<renderer::NamedObject>")]
    pub menu_ref: Option<IgnoredAny>,
    /// The renderer's: how the source becomes manifests.
    #[schemars(with = "Option<renderer::Render>")]
    pub render: Option<IgnoredAny>,
    /// The renderer's: why the next Preparation is made.
    #[schemars(with = "Option<String>")]
    pub commit_message: Option<IgnoredAny>,
}

/// `Order.spec.autoDeploy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum AutoDeploy {
    /// Automatic.
    Enabled,
    /// Manual.
    Disabled,
}

/// Who chooses which Preparation is promoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, JsonSchema)]
pub enum Mode {
    /// A person, by the Serving's intent.
    #[default]
    Manual,
    /// The newest Ready one.
    Automatic,
}

/// `Order.spec.promotion`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "Promotion")]
pub struct PromotionSpec {
    /// Manual when absent (and `autoDeploy` is, too).
    pub mode: Option<Mode>,
    /// Absent: none needed.
    pub approvals: Option<ApprovalPolicy>,
    /// All of these must have run the change before.
    pub upstream: Vec<Upstream>,
    /// All must pass; unique names.
    pub checks: Vec<Check>,
    /// Deploys only inside one of them; empty: always.
    pub windows: Vec<Window>,
}

/// Most approvals that a policy may ask for.
pub const MOST_APPROVALS: u32 = 32;
/// Most groups that a policy may name.
pub const MOST_GROUPS: usize = 16;

/// How many must approve, and from which groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalPolicy {
    /// 1 to 32.
    pub required_approvals: u32,
    /// 1 to 16 group names; absent in a Preparation's policy of older controllers.
    #[serde(default)]
    pub allowed_groups: Vec<String>,
}

/// One upstream stage.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Upstream {
    /// `<namespace>/<name>`, or `<name>` in the Order's own namespace (an Environment's must have both).
    pub order: String,
    /// Healthy there for this long; 0 when absent.
    #[serde(default)]
    pub soak: Span,
}

/// One check: exactly one of `attestation` and `vulnerabilities`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// Unique in its list.
    pub name: String,
    /// A signed statement must be there.
    pub attestation: Option<AttestationCheck>,
    /// The newest signed scan must be good enough.
    pub vulnerabilities: Option<VulnerabilityCheck>,
}

/// A signed statement of a type, newer than `maxAge`, for which `expression` holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttestationCheck {
    /// Exactly this predicate type.
    pub predicate_type: String,
    /// minijinja's expression language over the predicate.
    pub expression: Option<String>,
    /// No age limit when absent.
    pub max_age: Option<Span>,
}

/// Limits on the newest signed scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VulnerabilityCheck {
    /// No limit when absent.
    pub max_critical: Option<u64>,
    /// No limit when absent.
    pub max_high: Option<u64>,
    /// No limit when absent.
    pub max_medium: Option<u64>,
    /// No limit when absent.
    pub max_low: Option<u64>,
    /// Count only those for which a fixed version is known.
    #[serde(default)]
    pub fixable_only: bool,
    /// Required: how old the scan may be.
    pub max_age: Span,
}

/// A recurring time of the week. Past midnight belongs to the day it starts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// IANA name.
    pub timezone: String,
    /// `Mon` … `Sun`; empty: every day.
    #[serde(default)]
    pub days: Vec<String>,
    /// `HH:MM`, first minute inside.
    pub from: String,
    /// `HH:MM`, first minute outside; not after `from` means the next day.
    pub to: String,
}

impl Order {
    /// Its reference; the loader has checked both names.
    ///
    /// # Errors
    /// Only for an Order that did not come through the loader.
    pub fn parse_reference(&self) -> Result<OrderRef, crate::model::id::IdError> {
        let namespace = self
            .metadata
            .namespace
            .clone()
            .ok_or_else(|| crate::model::id::IdError("an Order has a namespace".into()))?;
        Ok(OrderRef { namespace, name: crate::model::id::OrderName::parse(&self.metadata.name)? })
    }
}
