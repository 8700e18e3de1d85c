//! The Checks gate: attestations and vulnerability scans.

use super::*;

fn attested(sim: &mut Sim, of: &str, kind: &str, predicate: Value) {
    let mut proof = statement("x", predicate);
    let old = proof.statement.take().unwrap();
    proof.statement = Some(Arc::new(Statement { predicate_type: kind.into(), ..(*old).clone() }));
    let known = sim.extra.entry(digest(of)).or_default();
    known.attestations.insert(kind.into(), Evidence::Proven(vec![proof]));
}

#[test]
fn an_attestation_is_waited_for_and_passes() {
    let kind = expedite::policy::gates::attestation::TEST_RESULT;
    let gates = format!(
        "checks: [{{name: e2e, attestation: {{predicateType: \"{kind}\", expression: \"result == 'PASSED'\"}}}}]"
    );
    let mut sim = Sim::shop();
    sim.order(SHOP, &with(&gates));
    sim.preparation(SHOP, "p1", 1);
    let known = sim.extra.entry(digest("p1")).or_default();
    let nothing = Looked { why: "no attestation".into(), ..Looked::default() };
    known.attestations.insert(kind.into(), Evidence::Missing(nothing));
    let plan = sim.run();
    let verdict = gate(&plan, SHOP, GateName::Checks);
    assert_eq!(verdict.outcome, GateOutcome::Waiting(For::Evidence));
    assert_eq!(verdict.message, format!("e2e (of the Order): no attestation ({kind})"));
    assert_eq!(sim.serving(SHOP).unwrap().status.target_preparation_name, None, "not the target yet");
    attested(&mut sim, "p1", kind, json!({"result": "FAILED"}));
    let plan = sim.run();
    assert_eq!(gate(&plan, SHOP, GateName::Checks).outcome, GateOutcome::Failed);
    attested(&mut sim, "p1", kind, json!({"result": "PASSED"}));
    sim.run();
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
}

#[test]
fn an_environments_checks_come_first_and_the_same_name_does_not_replace() {
    let check =
        |max: u64| format!("checks: [{{name: scan, vulnerabilities: {{maxCritical: {max}, maxAge: 24h}}}}]");
    let mut sim = Sim::shop();
    sim.environment("production", &format!("{{clusters: [eu-1], promotion: {{{}}}}}", check(0)));
    sim.order(SHOP, &with(&check(9)));
    sim.preparation(SHOP, "p1", 1);
    let scan = |critical: u64| {
        Evidence::Proven(vec![ScanProof {
            proof: statement("scan", json!({})),
            scanner: "trivy".into(),
            finished_on: at("08:00"),
            counts: Some(ScanCounts { critical, ..ScanCounts::default() }),
            fixable: None,
        }])
    };
    sim.extra.entry(digest("p1")).or_default().scans = Some(scan(1));
    let plan = sim.run();
    let verdict = gate(&plan, SHOP, GateName::Checks);
    assert_eq!(verdict.outcome, GateOutcome::Failed);
    assert!(
        verdict.message.starts_with("scan (of the Environment): 1 critical, at most 0 allowed"),
        "{}",
        verdict.message
    );
    sim.extra.entry(digest("p1")).or_default().scans = Some(scan(0));
    sim.run();
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
}

#[test]
fn what_could_not_be_read_is_told_and_waits() {
    let mut sim = Sim::shop();
    sim.order(SHOP, &with("checks: [{name: scan, vulnerabilities: {maxAge: 24h}}]"));
    sim.preparation(SHOP, "p1", 1);
    let unread = Unread {
        reason: Verified::RegistryRateLimited,
        request: "GET /v2/x".into(),
        status: Some(429),
        why: "too many requests".into(),
        retryable: true,
    };
    sim.extra.entry(digest("p1")).or_default().scans = Some(Evidence::Unread(unread));
    let plan = sim.run();
    let verdict = gate(&plan, SHOP, GateName::Checks);
    assert!(verdict.unread);
    assert_eq!(verdict.outcome, GateOutcome::Waiting(For::Registry));
}
