//! What the renderer's controllers and their UI read of the kinds that we share with them, as published in
//! August 2026. These members are never examined, only written (`prepare`): the types are named by the
//! members that hold it, so that a CustomResourceDefinition made from ours refuses and keeps what the
//! published one did.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// `Order.spec.source`: exactly one of `oci` and `pantryRef`.
#[derive(Debug, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrderSource {
    /// `oci://…`, without a version.
    pub oci: Option<String>,
    /// The Pantry that has it.
    pub pantry_ref: Option<NamedObject>,
    /// A tag or a semantic version.
    pub version: String,
}

/// `Order.spec.destination`: not both of `oci` and `pantryRef`.
#[derive(Debug, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrderDestination {
    /// `oci://…`.
    pub oci: Option<String>,
    /// The Pantry that it goes to.
    pub pantry_ref: Option<NamedObject>,
}

/// An object by its name.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "Named")]
pub struct NamedObject {
    /// Its name.
    pub name: String,
}

/// One change to a rendered object.
#[derive(Debug, JsonSchema)]
pub struct Patch {
    /// Values by JSONPath.
    pub set: BTreeMap<String, String>,
    /// Which object.
    pub target: PatchTarget,
}

/// The object that is changed.
#[derive(Debug, JsonSchema)]
pub struct PatchTarget {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its namespace; the Order's when absent.
    pub namespace: Option<String>,
}

/// `Order.spec.render`: not both of `helm` and `manifest`.
#[derive(Debug, JsonSchema)]
pub struct Render {
    /// The source is a Helm chart.
    pub helm: Option<HelmRender>,
    /// The source is a bundle of manifests.
    pub manifest: Option<ManifestRender>,
}

/// How a Helm chart is rendered.
#[derive(Debug, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmRender {
    /// With the chart's CustomResourceDefinitions.
    #[serde(rename = "includeCRDs")]
    pub include_crds: Option<bool>,
    /// The Order's when absent.
    pub namespace: Option<String>,
    /// The Order's name when absent.
    pub release_name: Option<String>,
    /// The last values.
    pub values: Option<Value>,
}

/// How a bundle of manifests is rendered.
#[derive(Debug, JsonSchema)]
pub struct ManifestRender {
    /// One file, or those of the source.
    pub layout: Option<ManifestLayout>,
}

/// One file, or those of the source.
#[derive(Debug, JsonSchema)]
pub enum ManifestLayout {
    /// `manifest.yaml`.
    Single,
    /// Those of the source.
    Multi,
}

/// `Preparation.spec.renderer`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Renderer {
    /// Of its image.
    pub digest: String,
    /// How it rendered.
    pub render_type: RenderType,
    /// Its version.
    pub version: String,
}

/// How a Preparation was rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RenderType {
    /// From manifests.
    Manifest,
    /// From a Helm chart.
    Helm,
}

/// `Kitchen.spec.adminUser`.
#[derive(Debug, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminUser {
    /// Whether it may log in.
    pub enabled: Option<bool>,
    /// The Secret with its password.
    pub secret_ref: Option<SecretRef>,
    /// Its name.
    pub username: Option<String>,
}

/// A Secret in the namespace of what names it.
#[derive(Debug, JsonSchema)]
pub struct SecretRef {
    /// Its name.
    pub name: Option<String>,
}

/// `Serving.spec.preparationPolicy`.
#[derive(Debug, JsonSchema)]
pub struct PreparationPolicy {
    /// Who chooses.
    #[serde(rename = "type")]
    pub kind: PolicyType,
}

/// Who chooses the Preparation of a Serving.
#[derive(Debug, JsonSchema)]
pub enum PolicyType {
    /// The controller.
    Automatic,
    /// A person.
    Manual,
}
