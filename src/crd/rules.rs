//! What a type cannot say of itself: bounds, defaults, how lists merge, and rules between members (CEL).
//!
//! Of Orders and Preparations nothing here is stricter than what was published in August 2026, but for the
//! members that are ours. Bounds of lists that decisions do not have are generous: an API server wants them to
//! know what a rule costs at most.

use crate::model::calendar::DAYS;
use crate::model::kind::Kind;
use crate::model::order::{MOST_APPROVALS, MOST_GROUPS};
use crate::model::serving::{HISTORY, VOTES};
use serde_json::{Value, json};

/// Most entries of a list that decisions bound by nothing.
const MANY: usize = 256;

/// More for the schema of a kind, by the path of the member (`spec.promotion.checks[].name`); null takes a word out.
pub fn of(kind: Kind) -> Vec<(&'static str, Value)> {
    let mut all = match kind {
        Kind::Order => [order(), promotion()].concat(),
        Kind::Preparation => preparation(),
        Kind::Approval => approval(),
        Kind::Serving => serving(),
        Kind::Environment => [environment(), gates_of_environment()].concat(),
        Kind::Cluster => cluster(),
        Kind::Kitchen => kitchen(),
    };
    if matches!(kind, Kind::Order | Kind::Preparation | Kind::Serving | Kind::Cluster | Kind::Kitchen) {
        all.push(("status.conditions", list_map(&["type"])));
        all.push(("status.conditions[].status", json!({"enum": ["True", "False", "Unknown"]})));
    }
    all
}

fn rule(rule: &str, message: &str) -> Value {
    json!({"x-kubernetes-validations": [{"rule": rule, "message": message}]})
}

/// A list in which no two entries agree in all of these members.
fn list_map(keys: &[&str]) -> Value {
    json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys})
}

fn with(mut value: Value, more: Value) -> Value {
    if let (Some(members), Value::Object(more)) = (value.as_object_mut(), more) {
        members.extend(more);
    }
    value
}

fn text(longest: usize) -> Value {
    json!({"minLength": 1, "maxLength": longest})
}

fn most(items: usize) -> Value {
    json!({"maxItems": items})
}

fn order() -> Vec<(&'static str, Value)> {
    let not_both = |a: &str, b: &str| {
        rule(&format!("!(has(self.{a}) && has(self.{b}))"), &format!("{a} and {b} are mutually exclusive"))
    };
    let oci =
        rule("self == '' || (isURL(self) && url(self).getScheme() == 'oci')", "must be a valid OCI URL");
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
            rule("has(self.oci) != has(self.pantryRef)", "exactly one of oci or pantryRef must be set"),
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
fn promotion() -> Vec<(&'static str, Value)> {
    let mut all = vec![
        ("spec.promotion.windows", most(MANY)),
        ("spec.promotion.windows[].timezone", text(64)),
        ("spec.promotion.windows[].days", most(DAYS.len())),
        ("spec.promotion.windows[].days[]", json!({"enum": DAYS})),
        ("spec.promotion.windows[].from", json!({"pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$"})),
        ("spec.promotion.windows[].to", json!({"pattern": "^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$"})),
    ];
    all.extend(gates());
    all
}

/// The gates that an Order and an Environment share.
fn gates() -> Vec<(&'static str, Value)> {
    let one_of = "has(self.attestation) != has(self.vulnerabilities)";
    vec![
        ("spec.promotion.approvals.requiredApprovals", json!({"minimum": 1, "maximum": MOST_APPROVALS})),
        ("spec.promotion.approvals", json!({"required": ["allowedGroups", "requiredApprovals"]})),
        ("spec.promotion.approvals.allowedGroups", json!({"minItems": 1, "maxItems": MOST_GROUPS})),
        ("spec.promotion.approvals.allowedGroups[]", text(256)),
        ("spec.promotion.upstream", most(MANY)),
        (
            "spec.promotion.upstream[].order",
            json!({
                "minLength": 1, "maxLength": 317,
                "pattern": r"^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
            }),
        ),
        ("spec.promotion.checks", with(list_map(&["name"]), most(MANY))),
        ("spec.promotion.checks[]", rule(one_of, "exactly one of attestation and vulnerabilities is wanted")),
        ("spec.promotion.checks[].name", text(253)),
        ("spec.promotion.checks[].attestation.predicateType", text(2048)),
    ]
}

fn gates_of_environment() -> Vec<(&'static str, Value)> {
    let mut all = gates();
    for (path, more) in &mut all {
        if *path == "spec.promotion.upstream[].order" {
            let says = "an Environment has no namespace: write <namespace>/<name>";
            *more = with(more.clone(), rule("self.contains('/')", says));
        }
    }
    all
}

fn preparation() -> Vec<(&'static str, Value)> {
    let digest = || json!({"maxLength": 71, "pattern": "^sha256:[a-f0-9]{64}$"});
    vec![
        ("spec", rule("self == oldSelf", "Preparation spec is immutable")),
        // As published: whether an Order of that name can be is for who reads it.
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
            with(
                json!({"maxLength": 2048}),
                rule("isURL(self) && url(self).getScheme() == 'oci'", "must be a valid OCI URL"),
            ),
        ),
        ("spec.approvalPolicy.requiredApprovals", json!({"minimum": 1, "maximum": MOST_APPROVALS})),
        ("spec.approvalPolicy.allowedGroups", most(MOST_GROUPS)),
        ("spec.approvalPolicy.allowedGroups[]", text(256)),
    ]
}

fn approval() -> Vec<(&'static str, Value)> {
    vec![
        ("spec", rule("self == oldSelf", "a vote is cast once: vote again by another Approval")),
        ("spec.approver.issuer", text(2048)),
        ("spec.approver.subject", text(1024)),
        ("spec.approver.username", json!({"maxLength": 1024})),
        ("spec.approver.email", json!({"maxLength": 320})),
        // All that an API server knows of a user.
        ("spec.approver.groups", most(2048)),
        ("spec.approver.groups[]", text(1024)),
        ("spec.comment", json!({"maxLength": 16384})),
        ("spec.preparationRef.uid", json!({"maxLength": 253})),
        ("spec.signature", json!({"maxLength": 16384})),
    ]
}

fn serving() -> Vec<(&'static str, Value)> {
    vec![
        ("spec.preparationPolicy.type", json!({"default": "Manual"})),
        ("status.history", most(HISTORY)),
        ("status.approval.votes", most(VOTES)),
    ]
}

fn environment() -> Vec<(&'static str, Value)> {
    let values = "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : \
                  !has(self.values) || size(self.values) == 0";
    vec![
        ("spec.argocdProject", text(253)),
        ("spec.clusters", with(json!({"x-kubernetes-list-type": "set"}), most(MANY))),
        (
            "spec.clusterSelector.matchExpressions[]",
            rule(values, "In and NotIn need values, Exists and DoesNotExist take none"),
        ),
        ("spec.clusterSelector.matchExpressions", most(64)),
        ("spec.promotion.freezes", most(MANY)),
        ("spec.promotion.freezes[]", rule("self.from < self.to", "to is not after from")),
    ]
}

fn cluster() -> Vec<(&'static str, Value)> {
    let url = "isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != '' \
               && !self.contains('@') && !self.contains('?') && !self.contains('#')";
    let says = "must be an API server's URL, as Argo CD knows it: https://host[:port]";
    vec![("spec.server", with(text(2048), rule(url, says)))]
}

fn kitchen() -> Vec<(&'static str, Value)> {
    let exactly_one = |a: &str, b: &str| {
        rule(&format!("has(self.{a}) != has(self.{b})"), &format!("exactly one of {a} and {b} is wanted"))
    };
    let link = "self == '' || (isURL(self) && url(self).getScheme() in ['http', 'https'])";
    vec![
        ("spec.trust.keys", with(list_map(&["name"]), most(MANY))),
        ("spec.trust.keys[]", exactly_one("publicKey", "publicKeyFile")),
        ("spec.trust.keys[].name", text(253)),
        ("spec.trust.keys[].roles", json!({"minItems": 1, "maxItems": 16})),
        ("spec.trust.identities", with(list_map(&["name"]), most(MANY))),
        ("spec.trust.identities[]", exactly_one("subject", "subjectPattern")),
        ("spec.trust.identities[].name", text(253)),
        ("spec.trust.identities[].issuer", text(2048)),
        ("spec.approvers", with(list_map(&["issuer", "subject"]), most(4096))),
        ("spec.approvers[].issuer", text(2048)),
        ("spec.approvers[].subject", text(1024)),
        ("spec.adminUser.enabled", json!({"default": true})),
        ("spec.adminUser.secretRef.name", json!({"default": ""})),
        ("spec.adminUser.username", json!({"maxLength": 253, "pattern": r"^[^/\s]+$"})),
        ("spec.argoCDURL", rule(link, "must be a valid http or https URL")),
    ]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn every_rule_finds_its_member() {
        for kind in Kind::ALL {
            let mut schema = super::super::schema(kind);
            for (path, _) in of(kind) {
                assert!(super::super::at(&mut schema, path).is_some(), "{kind}: {path} is no member");
            }
        }
    }
}
