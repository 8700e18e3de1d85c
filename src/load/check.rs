//! Checks of a single typed object, beyond its types: numbers in range, names unique, exactly one of two fields.
//! Checks that need other objects (an Environment or an upstream that must exist) are in `resolve`.

use crate::load::objects::DocumentPlace;
use crate::load::{damage, format_file_name, join_path};
use crate::model::approval::Approval;
use crate::model::calendar::Calendar;
use crate::model::cluster::Cluster;
use crate::model::environment::{Environment, SelectorOperator};
use crate::model::id::{
    ClusterName, EnvironmentName, IdError, Namespace, OrderName, OrderRef, PreparationName,
};
use crate::model::kind::Kind;
use crate::model::kitchen::{Kitchen, TrustedKey};
use crate::model::order::{
    ApprovalPolicy, AutoDeploy, Check, MOST_APPROVALS, MOST_GROUPS, Mode, Order, Upstream,
};
use crate::model::preparation::Preparation;
use kube_yaml::Error;
use kube_yaml::node::{Node, locate_field};
use std::collections::BTreeSet;

/// Problems of one object.
pub struct Report<'n> {
    node: &'n Node,
    /// Errors: each makes the object broken.
    pub errors: Vec<Error>,
    /// Warnings: only reported.
    pub warnings: Vec<Error>,
}

impl<'n> Report<'n> {
    /// A report without problems.
    #[must_use]
    pub fn new(node: &'n Node) -> Self {
        Self { node, errors: Vec::new(), warnings: Vec::new() }
    }

    /// Adds an error.
    pub fn add_error(&mut self, error: Error) {
        self.errors.push(error);
    }

    /// Adds an error at the value of `path`.
    pub fn add_wrong(&mut self, path: impl Into<String>, cause: impl Into<String>) {
        self.add_wrong_with_hint(path, cause, None);
    }

    fn add_wrong_with_hint(&mut self, path: impl Into<String>, cause: impl Into<String>, hint: Option<&str>) {
        let path = path.into();
        let at = locate_field(self.node, &path).unwrap_or(self.node.at);
        let mut error = Error::new("invalid-value", at, cause);
        error.path = path;
        error.hint = hint.map(str::to_owned);
        self.errors.push(error);
    }
}

/// Reports gates with a name and no content, as commented-out lines leave them: such a gate would check nothing.
fn check_empty_gates(top: &str, names: &[&str], report: &mut Report<'_>) {
    for name in names {
        let path = format!("{top}.{name}");
        let keys: Vec<&str> = path.split('.').collect();
        if report.node.find_value(&keys).is_some_and(Node::is_null) {
            report.add_wrong_with_hint(path, "is empty", Some("write its content, or remove it"));
        }
    }
}

/// Checks name and namespace by the kind's rule. Uses the tree, so that it works even if the typed object cannot be
/// read.
pub fn check_metadata(node: &Node, kind: Kind, report: &mut Report<'_>) {
    let text = |key: &str| node.find_value(&["metadata", key]).and_then(Node::as_text);
    let rule: fn(&str) -> Result<(), IdError> = match kind {
        Kind::Order | Kind::Serving => |t| OrderName::parse(t).map(drop),
        Kind::Preparation | Kind::Approval => |t| PreparationName::parse(t).map(drop),
        Kind::Environment => |t| EnvironmentName::parse(t).map(drop),
        Kind::Cluster => |t| ClusterName::parse(t).map(drop),
        Kind::Kitchen => |t| match t {
            "default" => Ok(()),
            other => Err(IdError(format!("{other:?} is not used: the Kitchen must be called default"))),
        },
    };
    match text("name").map(rule) {
        None => report.add_wrong("metadata.name", "is required and missing"),
        Some(Err(error)) => report.add_wrong("metadata.name", error.to_string()),
        Some(Ok(())) => {}
    }
    if kind.is_namespaced() && text("namespace").is_none_or(str::is_empty) {
        let cause = format!("is missing, and every {kind} has one");
        report.add_wrong("metadata.namespace", cause);
    } else if let Some(Err(error)) = text("namespace").filter(|t| !t.is_empty()).map(Namespace::parse) {
        // The typed reading may have reported it already.
        if !report.errors.iter().any(|e| e.path == "metadata.namespace") {
            report.add_wrong("metadata.namespace", error.to_string());
        }
    }
}

/// Checks an Order without other objects.
pub fn check_order(order: &Order, id: &OrderRef, report: &mut Report<'_>) {
    check_empty_gates("spec", &["promotion"], report);
    check_empty_gates("spec.promotion", &["mode", "upstream", "checks", "approvals", "windows"], report);
    let promotion = order.spec.promotion.as_ref();
    let mode = promotion.and_then(|p| p.mode);
    // `Disabled` with Automatic is the default that an API server adds if a person wrote the mode only.
    if let (Some(AutoDeploy::Enabled), Some(Mode::Manual)) = (order.spec.auto_deploy, mode) {
        let cause = "is Enabled, and promotion.mode is Manual";
        report.add_wrong_with_hint("spec.autoDeploy", cause, Some("remove autoDeploy"));
    }
    let Some(promotion) = promotion else { return };
    let top = "spec.promotion";
    if let Some(approvals) = &promotion.approvals {
        check_policy(&format!("{top}.approvals"), approvals, true, report);
    }
    check_upstream(top, &promotion.upstream, Some(&id.namespace), report);
    check_check_list(top, &promotion.checks, report);
    if let Err(wrong) = Calendar::new(&promotion.windows, &[]) {
        wrong.into_iter().for_each(|e| report.add_wrong(format!("{top}.{}", e.field), e.cause));
    }
}

/// Checks a Preparation without other objects; `resolve` checks its `ociRef`.
pub fn check_preparation(preparation: &Preparation, report: &mut Report<'_>) {
    check_empty_gates("spec", &["approvalPolicy"], report);
    if let Some(approvals) = &preparation.spec.approval_policy {
        check_policy("spec.approvalPolicy", approvals, false, report);
    }
}

/// Checks an Approval without other objects.
pub fn check_approval(approval: &Approval, report: &mut Report<'_>) {
    for (field, value) in
        [("issuer", &approval.spec.approver.issuer), ("subject", &approval.spec.approver.subject)]
    {
        if value.is_empty() {
            report.add_wrong(
                format!("spec.approver.{field}"),
                "is empty; issuer and subject identify the voter",
            );
        }
    }
}

/// Checks an Environment without other objects.
pub fn check_environment(environment: &Environment, report: &mut Report<'_>) {
    let spec = &environment.spec;
    check_empty_gates("spec", &["promotion", "allowedNamespaces"], report);
    check_empty_gates("spec.promotion", &["upstream", "checks", "approvals", "freezes"], report);
    check_unique("spec.clusters", "", spec.clusters.iter().map(ClusterName::as_str), report);
    if spec.argocd_project.as_deref() == Some("") {
        report.add_wrong("spec.argocdProject", "is empty");
    }
    for (index, rule) in spec.cluster_selector.iter().flat_map(|s| &s.match_expressions).enumerate() {
        let wants_values = match rule.operator {
            SelectorOperator::In | SelectorOperator::NotIn => true,
            SelectorOperator::Exists | SelectorOperator::DoesNotExist => false,
        };
        if wants_values == rule.values.is_empty() {
            let verb = if wants_values { "needs" } else { "takes no" };
            let path = format!("spec.clusterSelector.matchExpressions[{index}].values");
            report.add_wrong(path, format!("{:?} {verb} values", rule.operator));
        }
    }
    let top = "spec.promotion";
    if let Some(approvals) = &spec.promotion.approvals {
        check_policy(&format!("{top}.approvals"), approvals, true, report);
    }
    check_upstream(top, &spec.promotion.upstream, None, report);
    check_check_list(top, &spec.promotion.checks, report);
    if let Err(wrong) = Calendar::new(&[], &spec.promotion.freezes) {
        wrong.into_iter().for_each(|e| report.add_wrong(format!("{top}.{}", e.field), e.cause));
    }
}

/// Checks a Cluster without other objects.
pub fn check_cluster(cluster: &Cluster, report: &mut Report<'_>) {
    let text = &cluster.spec.server;
    let right = url::Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    });
    if !right {
        // Not quoted, because the text may contain a password.
        report.add_wrong(
            "spec.server",
            "is not the URL of an API server: write https://host[:port], the same as in Argo CD",
        );
    }
}

/// Checks the Kitchen without other objects, and reads the key files next to it into it.
pub fn check_kitchen(kitchen: &mut Kitchen, place: &DocumentPlace<'_>, report: &mut Report<'_>) {
    check_empty_gates(
        "spec",
        &["trust", "provenance", "registries", "reject", "approvers", "approvalTrust"],
        report,
    );
    if report
        .node
        .find_value(&["spec", "registries"])
        .is_some_and(|list| list.items().is_empty() && !list.is_null())
    {
        let hint = "name the allowed registries; without this key, all are allowed";
        report.add_wrong_with_hint(
            "spec.registries",
            "is an empty list, which would allow every registry",
            Some(hint),
        );
    }
    let trust = &mut kitchen.spec.trust;
    check_unique("spec.trust.keys", ".name", trust.keys.iter().map(|k| k.name.as_str()), report);
    for (index, key) in trust.keys.iter_mut().enumerate() {
        check_public_key(&format!("spec.trust.keys[{index}]"), key, place, report);
    }
    if let Some(root) = &mut trust.trusted_root {
        *root = read_file_beside("spec.trust.trustedRoot", root, place, report);
    }
    check_unique("spec.trust.identities", ".name", trust.identities.iter().map(|i| i.name.as_str()), report);
    for (index, identity) in trust.identities.iter_mut().enumerate() {
        let path = format!("spec.trust.identities[{index}]");
        match (&identity.subject, &identity.subject_pattern) {
            (Some(_), Some(_)) => {
                report.add_wrong(path.clone(), "has subject and subjectPattern; write exactly one")
            }
            (None, None) => report.add_wrong(path.clone(), "has neither subject nor subjectPattern"),
            (Some(_), None) | (None, Some(_)) => {}
        }
        if identity.issuer.is_empty() {
            report.add_wrong(format!("{path}.issuer"), "is empty");
        }
        if let Some(root) = &mut identity.trusted_root {
            *root = read_file_beside(&format!("{path}.trustedRoot"), root, place, report);
        }
    }
    let mut people = BTreeSet::new();
    for (index, approver) in kitchen.spec.approvers.iter().enumerate() {
        let path = format!("spec.approvers[{index}]");
        if approver.issuer.is_empty() || approver.subject.is_empty() {
            report.add_wrong(path.clone(), "issuer and subject are both required; one is empty");
        }
        if !people.insert((&approver.issuer, &approver.subject)) {
            report.add_wrong(path, "repeats an issuer and subject from above");
        }
    }
}

/// Checks one trusted key: its PEM is in the object or in a file next to it.
fn check_public_key(path: &str, key: &mut TrustedKey, place: &DocumentPlace<'_>, report: &mut Report<'_>) {
    match (&key.public_key, &key.public_key_file) {
        (Some(_), Some(_)) => report.add_wrong(path, "has publicKey and publicKeyFile; write exactly one"),
        (None, None) => report.add_wrong(path, "has neither publicKey nor publicKeyFile"),
        (Some(_), None) => {}
        (None, Some(file)) => {
            key.public_key = Some(read_file_beside(&format!("{path}.publicKeyFile"), file, place, report));
        }
    }
    if key.roles.is_empty() {
        report.add_wrong(format!("{path}.roles"), "is empty: the key would not be trusted for anything");
    }
}

/// The text of a file next to the object; empty after an error.
fn read_file_beside(path: &str, file: &str, place: &DocumentPlace<'_>, report: &mut Report<'_>) -> String {
    let Some(files) = place.files else {
        report.add_wrong(path, "names a file, and a cluster has no files: write the content itself");
        return String::new();
    };
    let read = match join_path(place.path, file) {
        None => Err(format!("{file:?} is outside the source's folder")),
        Some(way) => match files.read_file(&way) {
            Ok(Some(bytes)) => {
                damage::check_text(&bytes).map(str::to_owned).map_err(|e| format!("{file:?} {}", e.cause))
            }
            Ok(None) => Err(format!("there is no file {}", format_file_name(&files.name(), &way))),
            Err(unreadable) => Err(format!("{file:?} {}", unreadable.why)),
        },
    };
    read.unwrap_or_else(|cause| {
        report.add_wrong(path, cause);
        String::new()
    })
}

fn check_policy(path: &str, policy: &ApprovalPolicy, needs_groups: bool, report: &mut Report<'_>) {
    if !(1..=MOST_APPROVALS).contains(&policy.required_approvals) {
        let cause = format!("is {}; a policy must ask for 1 to {MOST_APPROVALS}", policy.required_approvals);
        report.add_wrong_with_hint(
            format!("{path}.requiredApprovals"),
            cause,
            Some("remove approvals if none are needed"),
        );
    }
    let groups = policy.allowed_groups.len();
    if groups > MOST_GROUPS || (groups == 0 && needs_groups) {
        let cause = format!("names {groups} groups; a policy must name 1 to {MOST_GROUPS}");
        report.add_wrong(format!("{path}.allowedGroups"), cause);
    }
    for (index, group) in policy.allowed_groups.iter().enumerate() {
        if group.is_empty() {
            report.add_wrong(format!("{path}.allowedGroups[{index}]"), "is empty");
        }
    }
}

/// Checks upstream references; an Environment has no namespace of its own.
fn check_upstream(top: &str, stages: &[Upstream], own: Option<&Namespace>, report: &mut Report<'_>) {
    for (index, stage) in stages.iter().enumerate() {
        let parsed = match own {
            Some(namespace) => OrderRef::parse_in(&stage.order, namespace),
            None => OrderRef::parse(&stage.order),
        };
        if let Err(error) = parsed {
            report.add_wrong(format!("{top}.upstream[{index}].order"), error.to_string());
        }
    }
}

fn check_check_list(top: &str, checks: &[Check], report: &mut Report<'_>) {
    check_unique(&format!("{top}.checks"), ".name", checks.iter().map(|c| c.name.as_str()), report);
    for (index, check) in checks.iter().enumerate() {
        let path = format!("{top}.checks[{index}]");
        match (&check.attestation, &check.vulnerabilities) {
            (Some(_), Some(_)) => {
                report.add_wrong(path, "has attestation and vulnerabilities; write exactly one")
            }
            (None, None) => report.add_wrong(path, "has neither attestation nor vulnerabilities"),
            (Some(attestation), None) if attestation.predicate_type.is_empty() => {
                report.add_wrong(format!("{path}.attestation.predicateType"), "is empty");
            }
            (Some(_), None) | (None, Some(_)) => {}
        }
    }
}

/// Checks the names of a list: none may be empty or occur twice.
fn check_unique<'a>(list: &str, field: &str, names: impl Iterator<Item = &'a str>, report: &mut Report<'_>) {
    let mut seen = BTreeSet::new();
    for (index, name) in names.enumerate() {
        if name.is_empty() {
            report.add_wrong(format!("{list}[{index}]{field}"), "is empty");
        } else if !seen.insert(name) {
            report
                .add_wrong(format!("{list}[{index}]{field}"), format!("{name:?} occurs twice in this list"));
        }
    }
}
