//! What `kubectl get` shows of each kind, besides the name.

use crate::model::kind::Kind;
use serde_json::{Value, json};

/// Shown by `-o wide` only.
const WIDE: bool = true;

/// The columns of a kind, as a definition lists them.
pub fn of(kind: Kind) -> Vec<Value> {
    let mut columns = match kind {
        Kind::Order => vec![
            text("Environment", ".spec.environment", !WIDE),
            text("Mode", ".spec.promotion.mode", !WIDE),
            condition("Ready", "Ready", "status"),
            condition("Reason", "Ready", "reason"),
            text("Latest Preparation", ".status.latestPreparationName", !WIDE),
            text("Menu", ".spec.menuRef.name", WIDE),
            text("Source", ".spec.source.oci", WIDE),
            text("Version", ".spec.source.version", WIDE),
            text("Auto Deploy", ".spec.autoDeploy", WIDE),
        ],
        Kind::Preparation => vec![
            text("Order", ".spec.orderName", !WIDE),
            condition("Ready", "Ready", "status"),
            condition("Reason", "Ready", "reason"),
            text("Digest", ".spec.artifact.digest", WIDE),
            column("Signed", ".spec.artifact.signed", "boolean", WIDE),
        ],
        Kind::Approval => vec![
            text("Preparation", ".spec.preparationRef.name", !WIDE),
            text("Decision", ".spec.decision", !WIDE),
            text("Approver", ".spec.approver.username", !WIDE),
            text("Comment", ".spec.comment", WIDE),
            text("Digest", ".spec.preparationRef.artifactDigest", WIDE),
            text("Subject", ".spec.approver.subject", WIDE),
        ],
        Kind::Serving => vec![
            text("Order", ".spec.orderName", !WIDE),
            text("Target", ".status.targetPreparationName", !WIDE),
            condition("Ready", "Ready", "status"),
            condition("Reason", "Ready", "reason"),
            condition("Approved", "Approved", "reason"),
            condition("Verified", "Verified", "reason"),
            text("Queued", ".status.queued.preparationName", WIDE),
            text("Waits For", ".status.queued.waitsFor", WIDE),
        ],
        Kind::Environment => vec![
            text("Project", ".spec.argocdProject", !WIDE),
            text("Clusters", ".spec.clusters", !WIDE),
            text("On Delete", ".spec.onDelete", !WIDE),
        ],
        Kind::Cluster => vec![
            text("Server", ".spec.server", !WIDE),
            condition("Ready", "Ready", "status"),
            condition("Reason", "Ready", "reason"),
        ],
        Kind::Kitchen => vec![
            text("Approval Trust", ".spec.approvalTrust", !WIDE),
            condition("Ready", "Ready", "status"),
            condition("Reason", "Ready", "reason"),
            text("Argo CD URL", ".spec.argoCDURL", WIDE),
        ],
    };
    // Last of what is always shown; the wide ones come behind it, as in `expedite get`.
    let always = columns.iter().take_while(|column| column.get("priority").is_none()).count();
    columns.insert(always, column("Age", ".metadata.creationTimestamp", "date", !WIDE));
    columns
}

fn condition(name: &str, of: &str, member: &str) -> Value {
    text(name, &format!(".status.conditions[?(@.type=='{of}')].{member}"), !WIDE)
}

fn text(name: &str, path: &str, wide: bool) -> Value {
    column(name, path, "string", wide)
}

fn column(name: &str, path: &str, kind: &str, wide: bool) -> Value {
    let mut column = json!({"name": name, "type": kind, "jsonPath": path});
    if wide {
        column["priority"] = 1.into();
    }
    column
}
