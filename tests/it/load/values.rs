//! Values out of range, with their field; and fields found again in their file.

use super::*;

#[test]
fn values_out_of_range_are_named_with_their_field() {
    let cases = [
        (
            "Order",
            "  promotion: {approvals: {requiredApprovals: 0, allowedGroups: [g]}}\n",
            "spec.promotion.approvals.requiredApprovals: is 0",
        ),
        (
            "Order",
            "  promotion: {approvals: {requiredApprovals: 33, allowedGroups: [g]}}\n",
            "spec.promotion.approvals.requiredApprovals: is 33",
        ),
        (
            "Order",
            "  promotion: {approvals: {requiredApprovals: 1}}\n",
            "spec.promotion.approvals.allowedGroups: names 0 groups",
        ),
        (
            "Order",
            "  promotion: {approvals: {requiredApprovals: 1, allowedGroups: [\"\"]}}\n",
            "spec.promotion.approvals.allowedGroups[0]: is empty",
        ),
        (
            "Order",
            "  promotion: {checks: [{name: a}]}\n",
            "spec.promotion.checks[0]: has neither attestation nor vulnerabilities",
        ),
        (
            "Order",
            "  promotion: {checks: [{name: a, vulnerabilities: {maxHigh: 0}}]}\n",
            "spec.promotion.checks[0].vulnerabilities.maxAge: is required and missing",
        ),
        (
            "Order",
            "  promotion: {checks: [{name: a, attestation: {predicateType: t}}, {name: a, attestation: {predicateType: t}}]}\n",
            "spec.promotion.checks[1].name: \"a\" occurs twice",
        ),
        (
            "Order",
            "  promotion: {upstream: [{order: a/b/c}]}\n",
            "spec.promotion.upstream[0].order: \"b/c\" is not a valid Order name",
        ),
        (
            "Order",
            "  promotion: {windows: [{timezone: Mars/Base, from: \"09:00\", to: \"16:00\"}]}\n",
            "spec.promotion.windows[0].timezone: \"Mars/Base\" is not an IANA time zone",
        ),
        (
            "Order",
            "  promotion: {windows: [{timezone: UTC, days: [Monday], from: \"9\", to: \"16:00\"}]}\n",
            "spec.promotion.windows[0].from: \"9\" is not a time of day",
        ),
        (
            "Order",
            "  autoDeploy: Enabled\n  promotion: {mode: Manual}\n",
            "spec.autoDeploy: is Enabled, and promotion.mode is Manual",
        ),
        (
            "Environment",
            "  promotion: {upstream: [{order: b}]}\n",
            "spec.promotion.upstream[0].order: \"b\" is not a valid Order name",
        ),
        (
            "Environment",
            "  promotion: {freezes: [{from: 2026-02-01T00:00:00Z, to: 2026-01-01T00:00:00Z}]}\n",
            "spec.promotion.freezes[0].to: ",
        ),
        ("Environment", "  clusters: [a, a]\n", "spec.clusters[1]: \"a\" occurs twice"),
        ("Environment", "  onDelete: orphan\n", "spec.onDelete: wanted one of Cascade, Orphan, found orphan"),
        (
            "Environment",
            "  clusterSelector: {matchExpressions: [{key: a, operator: In}]}\n",
            "matchExpressions[0].values: In needs values",
        ),
        ("Cluster", "  server: kubernetes.default.svc\n", "spec.server: is not the URL of an API server"),
        (
            "Cluster",
            "  server: https://u:hunter2@k.example\n",
            "spec.server: is not the URL of an API server",
        ),
        ("Cluster", "  labels: {}\n", "spec.server: is required and missing"),
        (
            "Kitchen",
            "  trust: {keys: [{name: a}]}\n",
            "spec.trust.keys[0]: has neither publicKey nor publicKeyFile",
        ),
        (
            "Kitchen",
            "  trust: {keys: [{name: a, publicKeyFile: no.pub}]}\n",
            "spec.trust.keys[0].publicKeyFile: there is no file objects/no.pub",
        ),
        (
            "Kitchen",
            "  trust: {keys: [{name: a, publicKeyFile: ../../x}]}\n",
            "spec.trust.keys[0].publicKeyFile: \"../../x\" is outside the source's folder",
        ),
        (
            "Kitchen",
            "  trust: {keys: [{name: a, publicKey: x, roles: [sign]}]}\n",
            "spec.trust.keys[0].roles[0]: wanted one of signature, provenance",
        ),
        (
            "Kitchen",
            "  trust: {identities: [{name: a, issuer: i}]}\n",
            "spec.trust.identities[0]: has neither subject nor subjectPattern",
        ),
        ("Kitchen", "  trust: {keyz: []}\n", "spec.trust.keyz: is not a known field"),
        (
            "Kitchen",
            "  approvers: [{issuer: i, subject: s}, {issuer: i, subject: s}]\n",
            "spec.approvers[1]: repeats an issuer and subject",
        ),
    ];
    for (kind, spec, want) in cases {
        let name = if kind == "Kitchen" { "default" } else { "a" };
        let world =
            one(&format!("{HEAD}kind: {kind}\nmetadata: {{name: {name}, namespace: shop}}\nspec:\n{spec}"));
        let messages = said(&world);
        assert!(messages.iter().any(|m| m.contains(want)), "{spec}{messages:#?}");
        assert!(!messages.concat().contains("hunter2"));
        assert!(world.orders.is_empty() && world.environments.is_empty() && world.kitchen.is_none());
    }
    let published = one(&format!(
        "{HEAD}kind: Kitchen\nmetadata: {{name: default}}\nspec: {{adminUser: {{enabled: true}}, argoCDURL: \"https://argo.example\"}}\n"
    ));
    assert_eq!((said(&published), published.kitchen.is_some()), (vec![], true));
}

#[test]
fn a_key_file_is_read_from_beside_the_kitchen() {
    let kitchen = format!(
        "{HEAD}kind: Kitchen\nmetadata: {{name: default}}\nspec: {{trust: {{trustedRoot: root.json, keys: [{{name: a, publicKeyFile: ../keys/a.pub}}]}}}}\n"
    );
    let world = load(&[
        ("trust/kitchen.yaml", &kitchen),
        ("keys/a.pub", "PEM\n"),
        ("trust/root.json", "{\"a\": 1}\n"),
    ]);
    assert_eq!(said(&world), Vec::<String>::new());
    let trust = &world.kitchen.unwrap().object.spec.trust.clone();
    assert_eq!(trust.keys[0].public_key.as_deref(), Some("PEM\n"));
    assert_eq!(trust.trusted_root.as_deref(), Some("{\"a\": 1}\n"));
}

#[test]
fn a_field_is_found_again_in_its_file() {
    let text = format!(
        "# first\n---\n{}",
        order("shop/a", "  environment: e\n  promotion:\n    upstream:\n    - {order: b}\n")
    );
    let at = |line| expedite::error::At { file: "objects/a.yaml".into(), line: Some(line), column: None };
    let mut failures = vec![
        Failure::new_input("x", "x").with_place(at(3)).with_field("spec.promotion.upstream[0].order"),
        Failure::new_input("x", "x").with_place(at(3)).with_field("metadata.annotations[\"a.b/c\"]"),
        Failure::new_input("x", "x").with_place(at(9)).with_field("spec"),
        Failure::new_input("x", "x"),
    ];
    refine_places(&mut failures, &|_| Some(text.clone().into_bytes()));
    let places: Vec<_> = failures.iter().map(|f| f.at.as_ref().map(ToString::to_string)).collect();
    let place = |text: &str| Some(text.to_owned());
    assert_eq!(
        places,
        [place("objects/a.yaml:10:15"), place("objects/a.yaml:5:11"), place("objects/a.yaml:9"), None]
    );
}

#[test]
fn what_the_published_crd_writes_by_default_disagrees_with_no_mode() {
    for mode in ["Automatic", "Manual"] {
        let world =
            one(&order("shop/a", &format!("  autoDeploy: Disabled\n  promotion: {{mode: {mode}}}\n")));
        assert_eq!(said(&world), Vec::<String>::new(), "{mode}");
        assert!(world.orders.contains_key(&order_ref("shop/a")));
    }
}
