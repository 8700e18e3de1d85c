//! Risks of a change that a reader must see.

use crate::compare::fields::FieldChange;
use crate::model::resource::ResourceId;
use serde_json::Value;
use std::fmt;

/// One risk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Risk {
    Deletion,
    /// Its content may be deleted with it: a Namespace, a claim, a definition with all its objects.
    DataLoss,
    /// A definition of kinds.
    CustomResourceDefinition,
    /// Who may do what.
    AccessControl,
    /// An object moves to another namespace: it is deleted and created again.
    NamespaceMove,
    /// An API server rejects another value here: the object must be deleted first.
    ImmutableField(String),
    /// A claim for storage.
    PersistentVolumeClaim,
    /// No Pod of it runs afterwards.
    ScaledToZero,
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deletion => f.write_str("deletion"),
            Self::DataLoss => f.write_str("its data may be deleted with it"),
            Self::CustomResourceDefinition => f.write_str("CRD"),
            Self::AccessControl => f.write_str("RBAC"),
            Self::NamespaceMove => f.write_str("namespace move"),
            Self::ImmutableField(field) => write!(f, "immutable field {field}"),
            Self::PersistentVolumeClaim => f.write_str("PVC"),
            Self::ScaledToZero => f.write_str("replicas to 0"),
        }
    }
}

impl Risk {
    /// The word for a summary, without the field.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Deletion => "deletions",
            Self::DataLoss => "data may be deleted",
            Self::CustomResourceDefinition => "CRDs",
            Self::AccessControl => "RBAC",
            Self::NamespaceMove => "namespace moves",
            Self::ImmutableField(_) => "immutable fields",
            Self::PersistentVolumeClaim => "PVCs",
            Self::ScaledToZero => "replicas to 0",
        }
    }
}

/// Kinds whose deletion also deletes other things.
const HOLDS_DATA: &[&str] = &[
    "/Namespace",
    "/PersistentVolumeClaim",
    "/PersistentVolume",
    "apps/StatefulSet",
    "apiextensions.k8s.io/CustomResourceDefinition",
];

/// Kinds and the beginnings of paths that cannot change; what follows `except` can. Taken from the API
/// reference's validation of updates.
const IMMUTABLE: &[(&str, &[&str], &[&str])] = &[
    ("apps/Deployment", &["spec.selector"], &[]),
    ("apps/DaemonSet", &["spec.selector"], &[]),
    ("apps/ReplicaSet", &["spec.selector"], &[]),
    (
        "apps/StatefulSet",
        &["spec"],
        &[
            "spec.replicas",
            "spec.ordinals",
            "spec.template",
            "spec.updateStrategy",
            "spec.persistentVolumeClaimRetentionPolicy",
            "spec.minReadySeconds",
            "spec.revisionHistoryLimit",
        ],
    ),
    ("batch/Job", &["spec.selector", "spec.template", "spec.completionMode"], &[]),
    ("/PersistentVolumeClaim", &["spec"], &["spec.resources", "spec.volumeAttributesClassName"]),
    ("/Service", &["spec.clusterIP", "spec.clusterIPs"], &[]),
    ("/Secret", &["type"], &[]),
    ("rbac.authorization.k8s.io/RoleBinding", &["roleRef"], &[]),
    ("rbac.authorization.k8s.io/ClusterRoleBinding", &["roleRef"], &[]),
    (
        "storage.k8s.io/StorageClass",
        &["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"],
        &[],
    ),
    ("networking.k8s.io/IngressClass", &["spec.controller"], &[]),
    ("scheduling.k8s.io/PriorityClass", &["value", "preemptionPolicy"], &[]),
    (
        "apiextensions.k8s.io/CustomResourceDefinition",
        &["spec.group", "spec.scope", "spec.names.kind", "spec.names.plural"],
        &[],
    ),
];

/// Risks of an object that is added or removed.
pub fn judge_whole(id: &ResourceId, removed: bool) -> Vec<Risk> {
    let mut risks = judge_kind(id);
    if removed {
        risks.push(Risk::Deletion);
        risks.extend(HOLDS_DATA.contains(&format_kind(id).as_str()).then_some(Risk::DataLoss));
    }
    risks.sort();
    risks
}

/// Risks of an object that exists before and after, maybe under another name.
pub fn judge_change(
    old: &ResourceId,
    new: &ResourceId,
    moved: bool,
    (before, after): (&Value, &Value),
    fields: &[FieldChange],
) -> Vec<Risk> {
    let mut risks = judge_kind(new);
    let made_anew = moved || old.name != new.name;
    risks.extend(moved.then_some(Risk::NamespaceMove));
    risks.extend((made_anew && HOLDS_DATA.contains(&format_kind(old).as_str())).then_some(Risk::DataLoss));
    if fields.iter().any(|f| f.path.starts_with("spec.volumeClaimTemplates")) {
        risks.push(Risk::PersistentVolumeClaim);
    }
    let replicas = |object: &Value| object.pointer("/spec/replicas").and_then(Value::as_u64);
    if replicas(after) == Some(0) && replicas(before) != Some(0) {
        risks.push(Risk::ScaledToZero);
    }
    if !made_anew {
        risks.extend(fields.iter().find(|f| is_immutable(old, before, &f.path)).map(|f| {
            let path = f.path.split('[').next().unwrap_or_default();
            Risk::ImmutableField(path.to_owned())
        }));
    }
    risks.sort();
    risks.dedup();
    risks
}

fn judge_kind(id: &ResourceId) -> Vec<Risk> {
    match (id.group.as_str(), id.kind.as_str()) {
        ("apiextensions.k8s.io", "CustomResourceDefinition") => vec![Risk::CustomResourceDefinition],
        ("rbac.authorization.k8s.io", _) => vec![Risk::AccessControl],
        ("", "PersistentVolumeClaim") => vec![Risk::PersistentVolumeClaim],
        _ => Vec::new(),
    }
}

fn is_immutable(id: &ResourceId, before: &Value, path: &str) -> bool {
    let kind = format_kind(id);
    let within = |field: &&str| {
        path.strip_prefix(*field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    // A ConfigMap or Secret with `immutable: true`.
    if matches!(kind.as_str(), "/ConfigMap" | "/Secret")
        && before.get("immutable") == Some(&Value::Bool(true))
    {
        return ["data", "binaryData", "immutable"].iter().any(within);
    }
    IMMUTABLE
        .iter()
        .any(|(k, fields, except)| *k == kind && fields.iter().any(within) && !except.iter().any(within))
}

/// `apps/Deployment`, `/Service`.
pub fn format_kind(id: &ResourceId) -> String {
    format!("{}/{}", id.group, id.kind)
}
