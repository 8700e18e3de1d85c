//! What an unknown key means (`docs/design/promotion.md#a-misspelt-gate-is-not-a-missing-gate`).
//!
//! In our own kinds, below `spec.promotion` of an Order and in a Preparation's `approvalPolicy` it is an error, with
//! the nearest name as a hint. Elsewhere in the spec of an Order or a Preparation, where the controllers' API may
//! change, it is an error if it is within two edits of a key that decisions use, otherwise a warning. Labels,
//! annotations and status may have any key.

use crate::model::kind::Kind;
use kube_yaml::de::Unknown;
use kube_yaml::spelling::{find_misspelt, find_nearest};

/// Consequence of an unknown key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmet {
    /// None: any key is allowed here.
    Free,
    /// A warning.
    Warning,
    /// The object is broken; with the key that was probably meant.
    Error(Option<&'static str>),
}

/// Keys at the top of every object.
pub const TOP: &[&str] = &["apiVersion", "kind", "metadata", "spec", "status"];

/// Kubernetes' own keys of `metadata` that we do not read.
const METADATA: &[&str] = &[
    "generateName",
    "selfLink",
    "resourceVersion",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "managedFields",
    "clusterName",
    "initializers",
];

/// Keys of an Order's or a Preparation's spec on which decisions depend.
const ORDER: &[&str] = &["environment", "promotion", "autoDeploy"];
/// Gates, which wrong indentation puts next to `promotion`.
const GATES: &[(&str, &str)] = &[
    ("approvals", "promotion.approvals"),
    ("upstream", "promotion.upstream"),
    ("checks", "promotion.checks"),
    ("windows", "promotion.windows"),
];
const PREPARATION: &[&str] =
    &["orderName", "artifact", "source", "parentDigest", "approvalPolicy", "targetNamespace"];
const ARTIFACT: &[&str] = &["ociRef", "digest", "signed"];
const SOURCE: &[&str] = &["oci", "baseDigest"];

/// Judges one unknown key of an object of `kind`.
#[must_use]
pub fn judge_key(kind: Kind, unknown: &Unknown) -> Unmet {
    let key = unknown.key.as_str();
    let moving = |matter: &[&'static str]| match find_misspelt(key, matter) {
        Some(meant) => Unmet::Error(Some(meant)),
        None => Unmet::Warning,
    };
    let own = match kind {
        Kind::Order | Kind::Preparation => false,
        Kind::Approval | Kind::Serving | Kind::Environment | Kind::Cluster | Kind::Kitchen => true,
    };
    match unknown.path.as_str() {
        "" if TOP.contains(&key) => Unmet::Free,
        // People use these keys for YAML anchors.
        "" if key.starts_with("x-") => Unmet::Free,
        "" if own => Unmet::Error(find_nearest(key, TOP)),
        "" => moving(&[TOP, ORDER, PREPARATION].concat()),
        "metadata" if METADATA.contains(&key) => Unmet::Free,
        "metadata" => match find_misspelt(key, unknown.known) {
            Some(meant) => Unmet::Error(Some(meant)),
            None => Unmet::Free,
        },
        path if is_below(path, "status") || is_below(path, "metadata") => Unmet::Free,
        path => match kind {
            Kind::Order if path == "spec" => {
                match GATES.iter().find(|(gate, _)| find_misspelt(key, &[gate]).is_some()) {
                    Some((_, place)) => Unmet::Error(Some(place)),
                    None => moving(ORDER),
                }
            }
            Kind::Order if !is_below(path, "spec.promotion") => moving(&[]),
            Kind::Preparation if !is_below(path, "spec.approvalPolicy") => moving(match path {
                "spec" => PREPARATION,
                "spec.artifact" => ARTIFACT,
                "spec.source" => SOURCE,
                _ => &[],
            }),
            Kind::Order
            | Kind::Preparation
            | Kind::Approval
            | Kind::Serving
            | Kind::Environment
            | Kind::Cluster
            | Kind::Kitchen => Unmet::Error(find_nearest(key, unknown.known)),
        },
    }
}

fn is_below(path: &str, top: &str) -> bool {
    path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}
