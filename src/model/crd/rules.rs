//! What a type cannot express: bounds, defaults, how lists merge, and rules between members (CEL).
//!
//! Of Orders and Preparations nothing here is stricter than what was published in August 2026, but for the
//! members that are ours. Lists without a bound in decisions get a generous one, because an API server needs
//! it to calculate the maximum cost of a rule.

use crate::model::calendar::DAYS;
use crate::model::kind::Kind;
use crate::model::order::{MOST_APPROVALS, MOST_GROUPS};
use crate::model::serving::{HISTORY, VOTES};
use serde_json::{Value, json};

/// Maximum number of entries of a list without a bound in decisions.
const MANY: usize = 256;

/// More for the schema of a kind, by the path of the member (`spec.promotion.checks[].name`); null removes a
/// keyword.
pub fn list_rules(kind: Kind) -> Vec<(&'static str, Value)> {
    let mut all = match kind {
        Kind::Order => [list_order_rules(), list_promotion_rules()].concat(),
        Kind::Preparation => list_preparation_rules(),
        Kind::Approval => list_approval_rules(),
        Kind::Serving => list_serving_rules(),
        Kind::Environment => [list_environment_rules(), list_environment_gate_rules()].concat(),
        Kind::Cluster => list_cluster_rules(),
        Kind::Kitchen => list_kitchen_rules(),
    };
    if matches!(kind, Kind::Order | Kind::Preparation | Kind::Serving | Kind::Cluster | Kind::Kitchen) {
        all.push(("status.conditions", make_list_map(&["type"])));
        all.push(("status.conditions[].status", json!({"enum": ["True", "False", "Unknown"]})));
    }
    all
}

fn make_rule(rule: &str, message: &str) -> Value {
    json!({"x-kubernetes-validations": [{"rule": rule, "message": message}]})
}

/// A list in which no two entries agree in all of these members.
fn make_list_map(keys: &[&str]) -> Value {
    json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys})
}

fn extend_value(mut value: Value, more: Value) -> Value {
    if let (Some(members), Value::Object(more)) = (value.as_object_mut(), more) {
        members.extend(more);
    }
    value
}

fn limit_text(longest: usize) -> Value {
    json!({"minLength": 1, "maxLength": longest})
}

fn limit_items(items: usize) -> Value {
    json!({"maxItems": items})
}

fn list_order_rules() -> Vec<(&'static str, Value)> {
    let not_both = |a: &str, b: &str| {
        make_rule(
            &format!("!(has(self.{a}) && has(self.{b}))"),
            &format!("{a} and {b} are mutually exclusive"),
        )
    };
    let oci =
        make_rule("self == '' || (isURL(self) && url(self).getScheme() == 'oci')", "must be a valid OCI URL");
    vec![
        (
            "spec",
            json!({"x-kubernetes-validations": [
                {"rule": "!(has(self.source) && has(self.menuRef))", "message": "source and menuRef are mutually exclusive"},
                {
                    "rule": "!has(self.autoDeploy) || self.autoDeploy != 'Enabled' || !has(self.promotion) \
                             || !has(self.promotion.mode) || self.promotion.mode != 'Manual'",
                    "message": "autoDeploy is Enabled, and promotion.mode is Manual: remove autoDeploy",
                },
            ]}),
        ),
        ("spec.autoDeploy", json!({"default": "Disabled"})),
        (
            "spec.source",
            make_rule("has(self.oci) != has(self.pantryRef)", "exactly one of oci or pantryRef must be set"),
        ),
        ("spec.source.oci", oci.clone()),
        ("spec.destination", not_both("oci", "pantryRef")),
        ("spec.destination.oci", oci),
        ("spec.render", not_both("helm", "manifest")),
        ("spec.render.helm.includeCRDs", json!({"default": false})),
        ("spec.render.manifest.layout", json!({"default": "Single"})),
    ]
}

/// What an Order's `spec.promotion` has beside an Environment's.
fn list_promotion_rules() -> Vec<(&'static str, Value)> {
    let mut all = vec![
        ("spec.promotion.windows", limit_items(MANY)),
        ("spec.promotion.windows[].timezone", limit_text(64)),
        ("spec.promotion.windows[].days", limit_items(DAYS.len())),
        ("spec.promotion.windows[].days[]", json!({"enum": DAYS})),
        ("spec.promotion.windows[].from", json!({"pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$"})),
        ("spec.promotion.windows[].to", json!({"pattern": "^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$"})),
    ];
    all.extend(list_gate_rules());
    all
}

/// The gates that an Order and an Environment share.
fn list_gate_rules() -> Vec<(&'static str, Value)> {
    let one_of = "has(self.attestation) != has(self.vulnerabilities)";
    vec![
        ("spec.promotion.approvals.requiredApprovals", json!({"minimum": 1, "maximum": MOST_APPROVALS})),
        ("spec.promotion.approvals", json!({"required": ["allowedGroups", "requiredApprovals"]})),
        ("spec.promotion.approvals.allowedGroups", json!({"minItems": 1, "maxItems": MOST_GROUPS})),
        ("spec.promotion.approvals.allowedGroups[]", limit_text(256)),
        ("spec.promotion.upstream", limit_items(MANY)),
        (
            "spec.promotion.upstream[].order",
            json!({
                "minLength": 1, "maxLength": 317,
                "pattern": r"^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
            }),
        ),
        ("spec.promotion.checks", extend_value(make_list_map(&["name"]), limit_items(MANY))),
        (
            "spec.promotion.checks[]",
            make_rule(one_of, "exactly one of attestation and vulnerabilities must be set"),
        ),
        ("spec.promotion.checks[].name", limit_text(253)),
        ("spec.promotion.checks[].attestation.predicateType", limit_text(2048)),
    ]
}

fn list_environment_gate_rules() -> Vec<(&'static str, Value)> {
    let mut all = list_gate_rules();
    for (path, more) in &mut all {
        if *path == "spec.promotion.upstream[].order" {
            let says = "an Environment has no namespace: write <namespace>/<name>";
            *more = extend_value(more.clone(), make_rule("self.contains('/')", says));
        }
    }
    all
}

fn list_preparation_rules() -> Vec<(&'static str, Value)> {
    let digest = || json!({"maxLength": 71, "pattern": "^sha256:[a-f0-9]{64}$"});
    vec![
        ("spec", make_rule("self == oldSelf", "Preparation spec is immutable")),
        // As published: the reader checks whether an Order can have that name.
        ("spec.orderName", json!({"minLength": null, "pattern": null})),
        ("spec.artifact.ociRef", json!({"maxLength": 2048, "pattern": "^oci://.*@sha256:[a-f0-9]{64}$"})),
        ("spec.commitMessage", json!({"maxLength": 512})),
        ("spec.configHash", json!({"maxLength": 71, "pattern": "^sha256:[a-f0-9]+$"})),
        ("spec.gitSource.commitHash", json!({"maxLength": 64})),
        ("spec.gitSource.repo", json!({"maxLength": 2048})),
        ("spec.gitSource.tag", json!({"maxLength": 256})),
        ("spec.renderer.digest", digest()),
        ("spec.renderer.version", json!({"maxLength": 64})),
        (
            "spec.source.oci",
            extend_value(
                json!({"maxLength": 2048}),
                make_rule("isURL(self) && url(self).getScheme() == 'oci'", "must be a valid OCI URL"),
            ),
        ),
        ("spec.approvalPolicy.requiredApprovals", json!({"minimum": 1, "maximum": MOST_APPROVALS})),
        ("spec.approvalPolicy.allowedGroups", limit_items(MOST_GROUPS)),
        ("spec.approvalPolicy.allowedGroups[]", limit_text(256)),
    ]
}

fn list_approval_rules() -> Vec<(&'static str, Value)> {
    vec![
        ("spec", make_rule("self == oldSelf", "a vote cannot be changed: vote again with another Approval")),
        ("spec.approver.issuer", limit_text(2048)),
        ("spec.approver.subject", limit_text(1024)),
        ("spec.approver.username", json!({"maxLength": 1024})),
        ("spec.approver.email", json!({"maxLength": 320})),
        // All that an API server knows about a user.
        ("spec.approver.groups", limit_items(2048)),
        ("spec.approver.groups[]", limit_text(1024)),
        ("spec.comment", json!({"maxLength": 16384})),
        ("spec.preparationRef.uid", json!({"maxLength": 253})),
        ("spec.signature", json!({"maxLength": 16384})),
    ]
}

fn list_serving_rules() -> Vec<(&'static str, Value)> {
    vec![
        ("spec.preparationPolicy.type", json!({"default": "Manual"})),
        ("status.history", limit_items(HISTORY)),
        ("status.approval.votes", limit_items(VOTES)),
    ]
}

fn list_environment_rules() -> Vec<(&'static str, Value)> {
    let values = "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : \
                  !has(self.values) || size(self.values) == 0";
    vec![
        ("spec.argocdProject", limit_text(253)),
        ("spec.clusters", extend_value(json!({"x-kubernetes-list-type": "set"}), limit_items(MANY))),
        (
            "spec.clusterSelector.matchExpressions[]",
            make_rule(values, "In and NotIn need values, Exists and DoesNotExist take none"),
        ),
        ("spec.clusterSelector.matchExpressions", limit_items(64)),
        ("spec.promotion.freezes", limit_items(MANY)),
        ("spec.promotion.freezes[]", make_rule("self.from < self.to", "to is not after from")),
    ]
}

fn list_cluster_rules() -> Vec<(&'static str, Value)> {
    let url = "isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != '' \
               && !self.contains('@') && !self.contains('?') && !self.contains('#')";
    let says = "must be an API server's URL, as Argo CD knows it: https://host[:port]";
    vec![("spec.server", extend_value(limit_text(2048), make_rule(url, says)))]
}

fn list_kitchen_rules() -> Vec<(&'static str, Value)> {
    let exactly_one = |a: &str, b: &str| {
        make_rule(
            &format!("has(self.{a}) != has(self.{b})"),
            &format!("exactly one of {a} and {b} must be set"),
        )
    };
    let link = "self == '' || (isURL(self) && url(self).getScheme() in ['http', 'https'])";
    vec![
        ("spec.trust.keys", extend_value(make_list_map(&["name"]), limit_items(MANY))),
        ("spec.trust.keys[]", exactly_one("publicKey", "publicKeyFile")),
        ("spec.trust.keys[].name", limit_text(253)),
        ("spec.trust.keys[].roles", json!({"minItems": 1, "maxItems": 16})),
        ("spec.trust.identities", extend_value(make_list_map(&["name"]), limit_items(MANY))),
        ("spec.trust.identities[]", exactly_one("subject", "subjectPattern")),
        ("spec.trust.identities[].name", limit_text(253)),
        ("spec.trust.identities[].issuer", limit_text(2048)),
        ("spec.approvers", extend_value(make_list_map(&["issuer", "subject"]), limit_items(4096))),
        ("spec.approvers[].issuer", limit_text(2048)),
        ("spec.approvers[].subject", limit_text(1024)),
        ("spec.adminUser.enabled", json!({"default": true})),
        ("spec.adminUser.secretRef.name", json!({"default": ""})),
        ("spec.adminUser.username", json!({"maxLength": 253, "pattern": r"^[^/\s]+$"})),
        ("spec.argoCDURL", make_rule(link, "must be a valid http or https URL")),
    ]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn every_rule_finds_its_member() {
        for kind in Kind::ALL {
            let mut schema = super::super::build_schema(kind);
            for (path, _) in list_rules(kind) {
                assert!(
                    super::super::find_member(&mut schema, path).is_some(),
                    "{kind}: {path} is not a member"
                );
            }
        }
    }
}
