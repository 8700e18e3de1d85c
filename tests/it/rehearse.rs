//! `test DIR`: a team's own cases for its gates, through the real binary.

use crate::support::harness::Place;

const OBJECTS: &str = r#"
apiVersion: delivery.kokumi.dev/v1alpha1
kind: Kitchen
metadata: {name: default}
spec:
  approvalTrust: Repository
  approvers: [{issuer: idp, subject: "1", username: ann, groups: [platform]}]
---
apiVersion: delivery.kokumi.dev/v1alpha1
kind: Cluster
metadata: {name: eu-1}
spec: {server: "https://eu-1.example"}
---
apiVersion: delivery.kokumi.dev/v1alpha1
kind: Environment
metadata: {name: production}
spec:
  clusters: [eu-1]
  promotion: {freezes: [{from: 2026-12-20T00:00:00Z, to: 2027-01-04T06:00:00Z, reason: year end}]}
---
apiVersion: delivery.kokumi.dev/v1alpha1
kind: Order
metadata: {name: podinfo, namespace: shop}
spec:
  environment: production
  promotion:
    mode: Automatic
    approvals: {requiredApprovals: 1, allowedGroups: [platform]}
    checks:
    - {name: e2e, attestation: {predicateType: "https://in-toto.io/attestation/test-result/v0.1", expression: "coverage >= 80"}}
    - {name: scan, vulnerabilities: {maxCritical: 0, maxAge: 72h}}
---
apiVersion: delivery.kokumi.dev/v1alpha1
kind: Preparation
metadata: {name: podinfo-1, namespace: shop}
spec:
  orderName: podinfo
  artifact:
    ociRef: oci://r.example/shop/podinfo@sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a
    digest: sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a
    signed: true
"#;

const CASE: &str = r#"
at: 2026-11-30T09:00:00Z
order: shop/podinfo
objects: [../objects]
attestations:
- preparation: podinfo-1
  predicateType: https://in-toto.io/attestation/test-result/v0.1
  predicate: '{"result": "PASSED", "coverage": 81.5}'
scans:
- {preparation: podinfo-1, time: 2026-11-29T09:00:00Z, high: 3}
expect:
  decision: Hold
  gates:
    Checks: Passed
    Window: Passed
    Approvals: {is: Waiting, says: "0 of 1 approvals from platform"}
"#;

fn place() -> Place {
    let place = Place::new();
    place.write("policy/objects/all.yaml", OBJECTS);
    place.write("policy/votes-are-needed/case.yaml", CASE);
    place
}

#[test]
fn cases_that_are_as_expected_pass() {
    let place = place();
    let frozen = CASE
        .replace("2026-11-30T09:00:00Z", "2026-12-24T09:00:00Z")
        .replace("Window: Passed", "Window: {is: Waiting, says: \"(year end)\"}")
        .replace("Checks: Passed", "Checks: {is: Waiting, says: \"a newer scan is needed\"}");
    place.write("policy/deep/er/frozen/case.yaml", frozen.replace("../objects", "../../../objects"));
    let said = place.expedite(&["test", "policy"]);
    assert_eq!(
        said.ok(),
        "ok   policy/deep/er/frozen/case.yaml (evidence taken as proven)\n\
         ok   policy/votes-are-needed/case.yaml (evidence taken as proven)\n\
         2 passed, 0 failed\n"
    );
}

#[test]
fn a_case_that_differs_says_how_and_exits_5() {
    let place = place();
    place.edit("policy/votes-are-needed/case.yaml", "decision: Hold", "decision: Promote");
    place.edit("policy/votes-are-needed/case.yaml", "coverage\": 81.5", "coverage\": 79.5");
    let said = place.expedite(&["test", "policy"]);
    said.exits(5);
    assert!(said.stdout.contains("decision: wanted Promote, found Hold"), "{}", said.stdout);
    assert!(said.stdout.contains("Checks: wanted Passed, found Failed: e2e"), "{}", said.stdout);
    assert!(said.stdout.contains("0 passed, 1 failed"), "{}", said.stdout);
}

#[test]
fn a_vote_in_the_case_counts() {
    let place = place();
    place.write(
        "policy/votes-are-needed/vote/vote.yaml",
        "apiVersion: delivery.kokumi.dev/v1alpha1\nkind: Approval\nmetadata: {name: v, namespace: shop}\nspec:\n  preparationRef: {name: podinfo-1, artifactDigest: \"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a\"}\n  approver: {issuer: idp, subject: \"1\"}\n  decision: Approve\n  submittedTime: 2026-11-30T08:00:00Z\n",
    );
    place.edit("policy/votes-are-needed/case.yaml", "[../objects]", "[../objects, ./vote]");
    place.edit(
        "policy/votes-are-needed/case.yaml",
        "{is: Waiting, says: \"0 of 1 approvals from platform\"}",
        "{is: Passed, says: enough approvals (by 1)}",
    );
    place.edit("policy/votes-are-needed/case.yaml", "decision: Hold", "decision: Promote");
    place.expedite(&["test", "policy/votes-are-needed"]).ok();
}

#[test]
fn a_case_that_cannot_be_read_says_where() {
    let place = place();
    place.edit(
        "policy/votes-are-needed/case.yaml",
        "order: shop/podinfo",
        "order: shop/podinfo\nexpected: {}",
    );
    let said = place.expedite(&["test", "policy"]);
    said.exits(1);
    assert!(said.stderr.contains("case.yaml:4:1") && said.stderr.contains("no expected"), "{}", said.stderr);
    place.write("policy/votes-are-needed/case.yaml", CASE.replace("Window: Passed", "Windows: Passed"));
    let said = place.expedite(&["test", "policy"]);
    said.exits(5);
    assert!(said.stdout.contains("Windows is no gate; they are Ready, Upstream"), "{}", said.stdout);
    let said = place.expedite(&["test", "nothing-here"]);
    said.exits(1);
    assert!(said.stderr.contains("no case.yaml"), "{}", said.stderr);
}
