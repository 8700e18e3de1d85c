//! Claims that are not proof: what somebody with push rights and no key may write into a Serving, and what was
//! said of something else or of an earlier state (B55).

use super::*;
use expedite::model::meta::Condition;
use expedite::model::serving::{ServingStatus, VerifiedStatus};

const POLICY: &str = "approvals: {requiredApprovals: 1, allowedGroups: [platform]}";

fn paste(sim: &mut Sim, of: &str, change: impl FnOnce(&mut ServingStatus)) {
    let mut serving = (*sim.serving(of).unwrap()).clone();
    change(&mut serving.status);
    sim.put_serving(&order(of), serving);
}

fn condition(kind: &str, reason: &str, generation: i64) -> Condition {
    Condition {
        kind: kind.into(),
        status: "True".into(),
        reason: reason.into(),
        message: String::new(),
        last_transition_time: Some(at("08:00")),
        observed_generation: Some(generation),
    }
}

fn unsigned() -> ArtifactFacts {
    let nothing = || Looked { why: "nothing is attached".into(), ..Looked::default() };
    let mut facts = ArtifactFacts {
        artifact: Some(Evidence::Missing(nothing())),
        signature: Some(Evidence::Missing(nothing())),
        ..ArtifactFacts::default()
    };
    facts.provenance.insert(order(SHOP), Evidence::Missing(nothing()));
    facts
}

#[test]
fn a_pasted_verdict_promotes_nothing() {
    let mut sim = Sim::shop();
    sim.order(SHOP, &with(""));
    sim.preparation(SHOP, "p1", 1);
    sim.run();
    sim.preparation(SHOP, "p2", 2);
    sim.facts.insert(digest("p2"), unsigned());
    let trust = sim.trust;
    paste(&mut sim, SHOP, |status| {
        let by = vec!["renderer".to_owned()];
        status.verified = Some(VerifiedStatus { digest: digest("p2"), keys: trust, time: at("08:00"), by });
        status.target_preparation_name = Some(preparation("p2"));
        status.conditions.retain(|c| c.kind != "Verified");
        status.conditions.push(condition("Verified", "SignaturesVerified", 1));
    });
    for _ in 0..2 {
        let plan = sim.run();
        assert!(!gate(&plan, SHOP, GateName::Evidence).is_passed());
        assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
        assert_eq!(sim.reason(SHOP, "Verified"), "ArtifactNotFound");
    }
}

#[test]
fn a_pasted_seal_and_a_pasted_condition_approve_nothing() {
    let mut sim = Sim::shop();
    sim.records = true;
    sim.kitchen("{approvers: [{issuer: i, subject: ann, username: ann, groups: [platform]}]}");
    sim.order(SHOP, &with(POLICY));
    sim.preparation(SHOP, "p1", 1);
    sim.run();
    paste(&mut sim, SHOP, |status| {
        let approval = status.approval.as_mut().unwrap();
        approval.sealed_time = Some(at("08:30"));
        approval.attestation = Some(Digest::hash_bytes(b"a seal"));
        approval.record = Some(Digest::hash_bytes(b"its bundle"));
        status.target_since = Some(at("08:00"));
        status.conditions.retain(|c| c.kind != "Approved");
        status.conditions.push(condition("Approved", "Approved", 1));
    });
    for _ in 0..2 {
        let plan = sim.run();
        let verdict = gate(&plan, SHOP, GateName::Approvals);
        assert_eq!(verdict.outcome, GateOutcome::Waiting(For::Registry), "{}", verdict.message);
        assert_eq!(row(&plan, SHOP).seal, None);
        assert_eq!(sim.deployed(SHOP), None);
    }
}

/// B55: upstream says of an earlier generation, or of nothing at all, that it is Deployed.
#[test]
fn b55_conditions_of_an_upstream_say_nothing_of_what_it_ran() {
    let mut sim = chain("upstream: [{order: staging/podinfo}]");
    same_artifact(&mut sim, "p1", 1);
    sim.run();
    paste(&mut sim, STAGING, |status| {
        status.conditions =
            vec![condition("Ready", "Deployed", 1), condition("Verified", "SignaturesVerified", 1)];
    });
    let mut serving = (*sim.serving(STAGING).unwrap()).clone();
    serving.metadata.generation = Some(2);
    sim.put_serving(&order(STAGING), serving);
    let plan = sim.run();
    assert_eq!(
        upstream_says(&plan),
        "staging/podinfo runs this change; its Applications were not observed, so its health is unknown"
    );
    assert_eq!(sim.deployed(SHOP), None);
}

/// B55: the health of what upstream ran before it was given this one.
#[test]
fn b55_health_of_an_earlier_state_is_not_the_candidates() {
    let mut sim = chain("upstream: [{order: staging/podinfo}]");
    same_artifact(&mut sim, "p1", 1);
    sim.run();
    Argo::healthy_since(at("09:00")).look(&mut sim, &[]);
    sim.run();
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
    same_artifact(&mut sim, "p2", 2);
    sim.now = at("09:30");
    sim.run();
    assert_eq!(sim.deployed(STAGING).as_deref(), Some("p2"));
    let held = |sim: &mut Sim, what: &str| {
        let plan = sim.run();
        assert_eq!(upstream_says(&plan), "staging/podinfo runs this change and is not healthy yet", "{what}");
        assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"), "{what}");
    };
    held(&mut sim, "Argo CD has not read the new one");
    let p2 = Some(digest("p2").to_string());
    edit(&mut sim, STAGING, |live| {
        live.spec.source.as_mut().unwrap().target_revision.clone_from(&p2);
    });
    held(&mut sim, "it has, and its status is of the old spec");
    edit(&mut sim, STAGING, |live| {
        let status = live.status.as_mut().unwrap();
        status.sync.revision.clone_from(&p2);
        status.sync.compared_to.as_mut().unwrap().source.clone_from(&live.spec.source);
    });
    held(&mut sim, "compared, and not synced");
    Argo::healthy_since(at("09:30")).look(&mut sim, &[STAGING]);
    sim.run();
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p2"));
}

/// B55: a check's result is of the artifact that it was signed for.
#[test]
fn b55_a_check_that_another_digest_passed_is_not_this_ones() {
    let kind = expedite::policy::gates::attestation::TEST_RESULT;
    let mut sim = Sim::shop();
    sim.order(SHOP, &with(&format!("checks: [{{name: e2e, attestation: {{predicateType: \"{kind}\"}}}}]")));
    sim.preparation(SHOP, "p1", 1);
    let mut proof = statement("x", json!({"result": "PASSED"}));
    let old = proof.statement.take().unwrap();
    proof.statement = Some(Arc::new(Statement { predicate_type: kind.into(), ..(*old).clone() }));
    let known = sim.extra.entry(digest("p1")).or_default();
    known.attestations.insert(kind.into(), Evidence::Proven(vec![proof]));
    sim.run();
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
    sim.preparation(SHOP, "p2", 2);
    for _ in 0..2 {
        let plan = sim.run();
        assert_eq!(gate(&plan, SHOP, GateName::Checks).outcome, GateOutcome::Waiting(For::Evidence));
        assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
    }
}

/// B53: a run whose clock is two years ahead: no time passes because of it, and the next run says what it did.
#[test]
fn b53_a_clock_two_years_ahead_soaks_nothing_and_is_found_out() {
    let mut sim = chain(
        "upstream: [{order: staging/podinfo, soak: 1h}], checks: [{name: scan, vulnerabilities: {maxAge: 72h}}]",
    );
    same_artifact(&mut sim, "p1", 1);
    sim.run();
    sim.now = at("09:20");
    Argo::healthy_since(at("09:10")).look(&mut sim, &[STAGING]);
    let scan = ScanProof {
        proof: statement("scan", json!({})),
        scanner: "trivy".into(),
        finished_on: at("09:00"),
        counts: Some(ScanCounts::default()),
        fixable: None,
    };
    sim.extra.entry(digest("p1")).or_default().scans = Some(Evidence::Proven(vec![scan]));
    sim.run();
    let right = sim.now;
    sim.now = time("2028-11-30T09:20:00Z");
    let plan = sim.run();
    assert_eq!(
        upstream_says(&plan),
        "staging/podinfo runs this change; it must be observed healthy for 1h at or after 2026-11-30T10:10:00Z"
    );
    assert!(!gate(&plan, SHOP, GateName::Checks).is_passed(), "evidence is too old for such a clock");
    assert_eq!(sim.deployed(SHOP), None);
    // What it does promote carries its time.
    same_artifact(&mut sim, "p2", 2);
    sim.run();
    assert_eq!(sim.deployed(STAGING).as_deref(), Some("p2"));
    sim.now = right;
    let plan = sim.run();
    let error = &row(&plan, STAGING).errors[0];
    assert_eq!(error.code, "clock-behind");
    assert!(error.cause.contains("2028-11-30T09:20:00Z"), "{error:?}");
    assert!(!gate(&plan, SHOP, GateName::Upstream).is_passed());
    assert_eq!(sim.deployed(SHOP), None);
}
