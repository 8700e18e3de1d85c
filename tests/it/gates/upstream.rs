//! The Upstream gate: soaks, the same change, chains of stages (B53, B56).

use super::*;

#[test]
fn a_soak_is_waited_for_to_the_minute_and_must_be_seen_to_end() {
    let mut sim = chain("upstream: [{order: staging/podinfo, soak: 1h}]");
    same_artifact(&mut sim, "p1", 1);
    let plan = sim.run();
    assert_eq!(sim.deployed(STAGING).as_deref(), Some("p1"), "the start of the chain goes first");
    assert_eq!(upstream_says(&plan), "staging/podinfo has not run this change; nothing is deployed there");
    sim.now = at("09:10");
    Argo::healthy_since(at("09:10")).look(&mut sim, &[]);
    let plan = sim.run();
    let waits = gate(&plan, SHOP, GateName::Upstream);
    assert_eq!(waits.outcome, GateOutcome::Waiting(For::Instant(at("10:10"))));
    assert_eq!(
        upstream_says(&plan),
        "staging/podinfo runs this change, healthy; its soak of 1h is over at 2026-11-30T10:10:00Z"
    );
    sim.now = at("10:09");
    let plan = sim.run();
    assert!(matches!(row(&plan, SHOP).serving, ServingPlan::Keep), "the message is stable");

    sim.now = at("10:10");
    let plan = sim.run();
    assert_eq!(
        upstream_says(&plan),
        "staging/podinfo runs this change; it must be observed healthy for 1h at or after 2026-11-30T10:10:00Z",
        "what was last looked at an hour ago may be dead"
    );
    Argo::healthy_since(at("09:10")).look(&mut sim, &[]);
    let plan = sim.run();
    let passed = gate(&plan, SHOP, GateName::Upstream);
    assert_eq!(
        upstream_says(&plan),
        "staging/podinfo ran this change as p1, healthy from 2026-11-30T09:10:00Z for 1h until 2026-11-30T10:10:00Z"
    );
    assert_eq!(passed.evidence[0].kind, "upstream");
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
}

#[test]
fn a_degraded_end_starts_the_soak_again() {
    let mut sim = chain("upstream: [{order: staging/podinfo, soak: 1h}]");
    same_artifact(&mut sim, "p1", 1);
    sim.run();
    sim.now = at("09:10");
    Argo::healthy_since(at("09:10")).look(&mut sim, &[]);
    sim.run();
    sim.now = at("10:05");
    Argo::degraded_since(at("10:00")).look(&mut sim, &[STAGING]);
    let plan = sim.run();
    assert_eq!(sim.reason(STAGING, "Ready"), "Degraded");
    assert_eq!(
        upstream_says(&plan),
        "staging/podinfo ran this change, and it ended Degraded at 2026-11-30T10:00:00Z; it must run there again"
    );
    sim.now = at("10:30");
    Argo::healthy_since(at("10:20")).look(&mut sim, &[STAGING]);
    let plan = sim.run();
    assert_eq!(
        gate(&plan, SHOP, GateName::Upstream).outcome,
        GateOutcome::Waiting(For::Instant(at("11:20"))),
        "its recovery soaks anew"
    );
    let history = sim.serving(STAGING).unwrap().status.history.clone();
    assert_eq!(history.len(), 2);
    assert_eq!(history[0].promoted_time, history[1].promoted_time);
    assert_eq!(history[0].first_healthy_time, Some(at("10:20")));
    assert_eq!((history[1].ended_reason, history[1].ended_time), (Some(Ended::Degraded), Some(at("10:00"))));
    sim.now = at("11:20");
    Argo::healthy_since(at("10:20")).look(&mut sim, &[STAGING]);
    sim.run();
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
}

#[test]
fn a_superseded_one_counts_once_its_soak_was_complete() {
    for (superseded, passes) in [("10:09", false), ("10:10", true)] {
        let mut sim = chain("upstream: [{order: staging/podinfo, soak: 1h}]");
        // Production asks for p1 and stays with it.
        sim.order(
            SHOP,
            "{environment: production, promotion: {mode: Manual, upstream: [{order: staging/podinfo, soak: 1h}]}}",
        );
        same_artifact(&mut sim, "p1", 1);
        sim.run();
        sim.promote(SHOP, "p1");
        sim.now = at("09:10");
        Argo::healthy_since(at("09:10")).look(&mut sim, &[]);
        sim.run();
        sim.preparation(STAGING, "p2", 2);
        sim.now = at(superseded);
        Argo::healthy_since(at("09:10")).look(&mut sim, &[STAGING]);
        sim.run();
        sim.now = at("15:00");
        let plan = sim.run();
        assert_eq!(sim.deployed(SHOP).is_some(), passes, "{:?}", row(&plan, SHOP).verdicts);
        if !passes {
            assert_eq!(
                upstream_says(&plan),
                "staging/podinfo ran this change, and it was superseded at 2026-11-30T10:09:00Z, before it was healthy for 1h; it must run there again"
            );
        }
    }
}

/// What nobody looked at any more does not soak, not even by being superseded.
#[test]
fn a_dead_upstream_does_not_soak_by_being_superseded() {
    for (last_look, passes) in [("10:09", false), ("10:10", true)] {
        let mut sim = chain("");
        sim.order(
            SHOP,
            "{environment: production, promotion: {mode: Manual, upstream: [{order: staging/podinfo, soak: 1h}]}}",
        );
        same_artifact(&mut sim, "p1", 1);
        sim.run();
        sim.promote(SHOP, "p1");
        for clock in ["09:10", last_look] {
            sim.now = at(clock);
            Argo::healthy_since(at("09:10")).look(&mut sim, &[STAGING]);
            sim.run();
        }
        // Argo CD hangs, and hours later the next one comes.
        sim.preparation(STAGING, "p2", 2);
        sim.now = at("15:00");
        sim.run();
        assert_eq!(sim.deployed(STAGING).as_deref(), Some("p2"));
        let plan = sim.run();
        if passes {
            assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"), "{:?}", row(&plan, SHOP).verdicts);
            continue;
        }
        assert_eq!(sim.deployed(SHOP), None);
        assert_eq!(
            upstream_says(&plan),
            "staging/podinfo ran this change, and it was superseded at 2026-11-30T15:00:00Z; it was not observed healthy after 2026-11-30T10:09:00Z, which is before its soak of 1h was over; it must run there again"
        );
    }
}

/// On its way after Healthy is no end; but Argo CD has to be there to say so.
#[test]
fn what_was_progressing_when_it_was_superseded_soaked_as_long_as_argo_cd_looked() {
    for (last_look, until) in [("14:55", "14:55"), ("09:30", "09:30")] {
        let mut sim = chain("");
        same_artifact(&mut sim, "p1", 1);
        sim.run();
        sim.now = at("09:10");
        Argo::healthy_since(at("09:10")).look(&mut sim, &[STAGING]);
        sim.run();
        sim.now = at(last_look);
        Argo { health: "Progressing", ..Argo::healthy_since(at("09:10")) }.look(&mut sim, &[STAGING]);
        sim.run();
        sim.preparation(STAGING, "p2", 2);
        sim.now = at("15:00");
        sim.run();
        let entry = sim.serving(STAGING).unwrap().status.history[1].clone();
        assert_eq!((entry.ended_reason, entry.healthy_until), (Some(Ended::Superseded), Some(at(until))));
    }
}

#[test]
fn only_the_same_change_counts() {
    let mut sim = chain("upstream: [{order: staging/podinfo}]");
    sim.preparation(STAGING, "other", 1);
    sim.preparation(SHOP, "p1", 1);
    sim.run();
    Argo::healthy_since(at("09:00")).look(&mut sim, &[]);
    let plan = sim.run();
    let message = &gate(&plan, SHOP, GateName::Upstream).message;
    assert!(message.starts_with("staging/podinfo has not run this change; it runs other ("), "{message}");
}

/// Two stages render their own artifacts from one base; the base counts when signed provenance names it.
#[test]
fn a_base_digest_counts_when_the_signed_provenance_lists_it() {
    let source = |base: &str| format!("signed: true}}, source: {{baseDigest: \"{}\"", digest(base));
    let mut sim = chain("upstream: [{order: staging/podinfo}]");
    sim.dependencies.insert(digest("base"));
    sim.preparation_with(STAGING, "s1", 1, &source("base"));
    sim.run();
    sim.dependencies.clear();
    sim.preparation_with(SHOP, "p1", 1, &source("base"));
    Argo::healthy_since(at("09:00")).look(&mut sim, &[]);
    let plan = sim.run();
    let message = upstream_says(&plan);
    assert!(
        message.ends_with("the candidate's signed provenance does not list it among what it was made from"),
        "a base digest pasted into a Preparation passes nothing: {message}"
    );
    sim.dependencies.insert(digest("base"));
    sim.run();
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
}

/// The stage's own Preparation claims the base of something else, and would soak in its place.
#[test]
fn a_base_digest_pasted_upstream_is_not_recorded() {
    let source = |base: &str| format!("signed: true}}, source: {{baseDigest: \"{}\"", digest(base));
    let mut sim = chain("upstream: [{order: staging/podinfo}]");
    sim.preparation_with(STAGING, "s1", 1, &source("base"));
    let plan = sim.run();
    assert_eq!(sim.deployed(STAGING).as_deref(), Some("s1"));
    assert_eq!(sim.serving(STAGING).unwrap().status.history[0].base_digest, None);
    let codes: Vec<_> = row(&plan, STAGING).warnings.iter().map(|w| w.code).collect();
    assert_eq!(codes, ["base-unlisted"]);
    sim.dependencies.insert(digest("base"));
    sim.preparation_with(SHOP, "p1", 1, &source("base"));
    Argo::healthy_since(at("09:00")).look(&mut sim, &[]);
    let plan = sim.run();
    assert!(upstream_says(&plan).starts_with("staging/podinfo has not run this change; it runs s1 ("));
    assert_eq!(sim.deployed(SHOP), None);
}

/// While the stage cannot pass anyway, the provenance is not read again; nothing says then that it lacks.
#[test]
fn a_provenance_that_nobody_read_is_not_told_as_lacking() {
    let source = |base: &str| format!("signed: true}}, source: {{baseDigest: \"{}\"", digest(base));
    let mut sim = chain("upstream: [{order: staging/podinfo, soak: 1h}]");
    sim.dependencies.insert(digest("base"));
    sim.preparation_with(STAGING, "s1", 1, &source("base"));
    sim.preparation_with(SHOP, "p1", 1, &source("base"));
    sim.run();
    for _ in 0..2 {
        let plan = sim.run();
        assert_eq!(
            upstream_says(&plan),
            "staging/podinfo runs this change; its Applications were not observed, so its health is unknown"
        );
    }
    Argo::healthy_since(at("09:00")).look(&mut sim, &[]);
    for _ in 0..2 {
        let plan = sim.run();
        assert_eq!(
            upstream_says(&plan),
            "staging/podinfo runs this change, healthy; its soak of 1h is over at 2026-11-30T10:00:00Z"
        );
    }
    sim.now = at("10:00");
    Argo::healthy_since(at("09:00")).look(&mut sim, &[]);
    sim.run();
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
}

#[test]
fn an_unread_provenance_is_not_a_missing_one() {
    let source = |base: &str| format!("signed: true}}, source: {{baseDigest: \"{}\"", digest(base));
    let mut sim = chain("upstream: [{order: staging/podinfo}]");
    sim.dependencies.insert(digest("base"));
    sim.preparation_with(STAGING, "s1", 1, &source("base"));
    sim.preparation_with(SHOP, "p1", 1, &source("base"));
    sim.run();
    Argo::healthy_since(at("09:00")).look(&mut sim, &[]);
    let unread = Unread {
        reason: Verified::RegistryUnreachable,
        request: String::new(),
        status: None,
        why: "connection refused".into(),
        retryable: true,
    };
    let mut facts = ArtifactFacts::default();
    facts.provenance.insert(order(SHOP), Evidence::Unread(unread));
    sim.facts.insert(digest("p1"), facts);
    let plan = sim.run();
    let verdict = gate(&plan, SHOP, GateName::Upstream);
    assert!(verdict.unread);
    assert_eq!(verdict.outcome, GateOutcome::Waiting(For::Registry));
}

/// B56: all of them, each with its own soak.
#[test]
fn b56_all_stages_must_have_passed() {
    let gates = "upstream: [{order: eu/podinfo, soak: 1h}, {order: us/podinfo}]";
    let mut sim = Sim::shop();
    for of in ["eu/podinfo", "us/podinfo"] {
        sim.order(of, "{environment: dev, promotion: {mode: Automatic}}");
    }
    sim.order(SHOP, &with(gates));
    for of in ["eu/podinfo", "us/podinfo", SHOP] {
        sim.preparation_of(of, "p1", 1, "p1", "signed: true");
    }
    sim.run();
    Argo::healthy_since(at("09:00")).look(&mut sim, &["us/podinfo"]);
    let plan = sim.run();
    let verdict = gate(&plan, SHOP, GateName::Upstream);
    assert_eq!(verdict.outcome, GateOutcome::Waiting(For::Order(order("eu/podinfo"))));
    assert!(verdict.message.contains("us/podinfo ran this change"), "{}", verdict.message);
    sim.now = at("09:30");
    Argo::healthy_since(at("09:30")).look(&mut sim, &["eu/podinfo"]);
    let plan = sim.run();
    assert_eq!(
        gate(&plan, SHOP, GateName::Upstream).outcome,
        GateOutcome::Waiting(For::Instant(at("10:30")))
    );
    sim.now = at("10:30");
    Argo::healthy_since(at("09:30")).look(&mut sim, &["eu/podinfo"]);
    sim.run();
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
}

#[test]
fn b56_an_environments_stages_come_on_top_and_healthy_on_one_cluster_is_not_healthy() {
    let mut sim = chain("");
    sim.environment("dev", "{clusters: [dev-1, eu-1]}");
    sim.environment("production", "{clusters: [us-1], promotion: {upstream: [{order: staging/podinfo}]}}");
    same_artifact(&mut sim, "p1", 1);
    sim.run();
    Argo::healthy_since(at("09:00")).look(&mut sim, &[]);
    edit(&mut sim, STAGING, |live| {
        if live.spec.destination.server.as_deref() == Some("https://eu-1.example") {
            live.status.as_mut().unwrap().health.status = "Progressing".into();
        }
    });
    let plan = sim.run();
    assert_eq!(upstream_says(&plan), "staging/podinfo runs this change and is not healthy yet");
    Argo::healthy_since(at("09:00")).look(&mut sim, &[]);
    sim.run();
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
}

#[test]
fn b56_rings_and_unknown_stages_are_errors_that_print_the_way() {
    let errors = |sim: &mut Sim, of: &str| -> Vec<String> {
        sim.preparation(of, "p1", 1);
        let plan = sim.run();
        assert_eq!(row(&plan, of).decision, Decision::Broken);
        row(&plan, of).errors.iter().map(|e| e.cause.clone()).collect()
    };
    let mut sim = Sim::shop();
    sim.order(SHOP, &with("upstream: [{order: podinfo}]"));
    assert_eq!(
        errors(&mut sim, SHOP),
        ["its upstream stages wait for each other: shop/podinfo → shop/podinfo"]
    );
    let mut sim = Sim::shop();
    sim.order("a/x", &with("upstream: [{order: b/x}]"));
    sim.order("b/x", &with("upstream: [{order: c/x}, {order: d/x}]"));
    sim.order("c/x", &with("upstream: [{order: a/x}]"));
    sim.order("d/x", &with(""));
    sim.order("e/x", &with("upstream: [{order: a/x}]"));
    assert_eq!(errors(&mut sim, "b/x"), ["its upstream stages wait for each other: b/x → c/x → a/x → b/x"]);
    sim.preparation("e/x", "p1", 1);
    let plan = sim.run();
    assert!(row(&plan, "e/x").errors.is_empty(), "who waits for a ring is in none");
    assert!(row(&plan, "d/x").errors.is_empty());
    let mut sim = Sim::shop();
    sim.order(SHOP, &with("upstream: [{order: stagin/podinfo}]"));
    assert_eq!(errors(&mut sim, SHOP), ["its upstream Order stagin/podinfo does not exist"]);
}

#[test]
fn a_diamond_is_no_ring() {
    let mut sim = Sim::shop();
    sim.order("a/x", &with(""));
    sim.order("b/x", &with("upstream: [{order: a/x}]"));
    sim.order("c/x", &with("upstream: [{order: a/x}]"));
    sim.order("d/x", &with("upstream: [{order: b/x}, {order: c/x}]"));
    for of in ["a/x", "b/x", "c/x", "d/x"] {
        sim.preparation_of(of, "p1", 1, "p1", "signed: true");
    }
    for deployed in [1, 3, 4] {
        sim.run();
        Argo::healthy_since(at("09:00")).look(&mut sim, &[]);
        let count = ["a/x", "b/x", "c/x", "d/x"].iter().filter(|o| sim.deployed(o).is_some()).count();
        assert_eq!(count, deployed);
    }
}

#[test]
fn a_digest_that_ran_here_before_passes_without_asking() {
    let mut sim = chain("upstream: [{order: staging/podinfo}]");
    sim.order(
        SHOP,
        "{environment: production, promotion: {mode: Manual, upstream: [{order: staging/podinfo}]}}",
    );
    for (name, minute) in [("p1", 1), ("p2", 2)] {
        same_artifact(&mut sim, name, minute);
        sim.run();
        Argo::healthy_since(at("09:00")).look(&mut sim, &[]);
        sim.promote(SHOP, name);
        sim.run();
        assert_eq!(sim.deployed(SHOP).as_deref(), Some(name));
    }
    // Staging forgets everything.
    sim.gitops.servings.remove(&order(STAGING));
    sim.world.orders.remove(&order(STAGING));
    sim.order(STAGING, "{environment: dev}");
    sim.promote(SHOP, "p1");
    let plan = sim.run();
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"), "{:?}", row(&plan, SHOP).verdicts);
    let message = &gate(&plan, SHOP, GateName::Upstream).message;
    assert!(message.starts_with("this artifact ran here before, promoted at"), "{message}");
}

/// B53: clocks that disagree make nothing pass.
#[test]
fn b53_health_from_the_future_does_not_soak() {
    let mut sim = chain("upstream: [{order: staging/podinfo, soak: 5m}]");
    same_artifact(&mut sim, "p1", 1);
    sim.run();
    Argo { since: Some(at("09:10")), ..Argo::default() }.look(&mut sim, &[]);
    let plan = sim.run();
    assert_eq!(sim.reason(STAGING, "Ready"), "Deploying");
    assert!(!gate(&plan, SHOP, GateName::Upstream).is_passed());
    sim.now = at("09:09");
    let plan = sim.run();
    let until = gate(&plan, SHOP, GateName::Upstream);
    assert_eq!(
        until.outcome,
        GateOutcome::Waiting(For::Instant(at("09:15"))),
        "within five minutes it is told"
    );
    assert_eq!(sim.deployed(SHOP), None);
}
