//! What `kubectl get` shows of each kind, in addition to the name.

use crate::model::kind::Kind;
use serde_json::{Value, json};

/// Shown by `-o wide` only.
const WIDE: bool = true;

/// The columns of a kind, as a definition lists them.
pub fn list_columns(kind: Kind) -> Vec<Value> {
    let mut columns = match kind {
        Kind::Order => vec![
            make_text("Environment", ".spec.environment", !WIDE),
            make_text("Mode", ".spec.promotion.mode", !WIDE),
            make_condition("Ready", "Ready", "status"),
            make_condition("Reason", "Ready", "reason"),
            make_text("Latest Preparation", ".status.latestPreparationName", !WIDE),
            make_text("Menu", ".spec.menuRef.name", WIDE),
            make_text("Source", ".spec.source.oci", WIDE),
            make_text("Version", ".spec.source.version", WIDE),
            make_text("Auto Deploy", ".spec.autoDeploy", WIDE),
        ],
        Kind::Preparation => vec![
            make_text("Order", ".spec.orderName", !WIDE),
            make_condition("Ready", "Ready", "status"),
            make_condition("Reason", "Ready", "reason"),
            make_text("Digest", ".spec.artifact.digest", WIDE),
            make_column("Signed", ".spec.artifact.signed", "boolean", WIDE),
        ],
        Kind::Approval => vec![
            make_text("Preparation", ".spec.preparationRef.name", !WIDE),
            make_text("Decision", ".spec.decision", !WIDE),
            make_text("Approver", ".spec.approver.username", !WIDE),
            make_text("Comment", ".spec.comment", WIDE),
            make_text("Digest", ".spec.preparationRef.artifactDigest", WIDE),
            make_text("Subject", ".spec.approver.subject", WIDE),
        ],
        Kind::Serving => vec![
            make_text("Order", ".spec.orderName", !WIDE),
            make_text("Target", ".status.targetPreparationName", !WIDE),
            make_condition("Ready", "Ready", "status"),
            make_condition("Reason", "Ready", "reason"),
            make_condition("Approved", "Approved", "reason"),
            make_condition("Verified", "Verified", "reason"),
            make_text("Queued", ".status.queued.preparationName", WIDE),
            make_text("Waits For", ".status.queued.waitsFor", WIDE),
        ],
        Kind::Environment => vec![
            make_text("Project", ".spec.argocdProject", !WIDE),
            make_text("Clusters", ".spec.clusters", !WIDE),
            make_text("On Delete", ".spec.onDelete", !WIDE),
        ],
        Kind::Cluster => vec![
            make_text("Server", ".spec.server", !WIDE),
            make_condition("Ready", "Ready", "status"),
            make_condition("Reason", "Ready", "reason"),
        ],
        Kind::Kitchen => vec![
            make_text("Approval Trust", ".spec.approvalTrust", !WIDE),
            make_condition("Ready", "Ready", "status"),
            make_condition("Reason", "Ready", "reason"),
            make_text("Argo CD URL", ".spec.argoCDURL", WIDE),
        ],
    };
    // Last of what is always shown; the wide ones come behind it, as in `expedite get`.
    let always = columns.iter().take_while(|column| column.get("priority").is_none()).count();
    columns.insert(always, make_column("Age", ".metadata.creationTimestamp", "date", !WIDE));
    columns
}

fn make_condition(name: &str, of: &str, member: &str) -> Value {
    make_text(name, &format!(".status.conditions[?(@.type=='{of}')].{member}"), !WIDE)
}

fn make_text(name: &str, path: &str, wide: bool) -> Value {
    make_column(name, path, "string", wide)
}

fn make_column(name: &str, path: &str, kind: &str, wide: bool) -> Value {
    let mut column = json!({"name": name, "type": kind, "jsonPath": path});
    if wide {
        column["priority"] = 1.into();
    }
    column
}
