//! Chains of stages: how an upstream is named, whose demand it is, and what a chain that cannot work says.

use super::*;

/// Everything that is pinned is looked at and healthy.
fn step(sim: &mut Sim) {
    sim.run();
    Argo::healthy_since(at("09:00")).look(sim, &[]);
}

#[test]
fn a_bare_name_is_one_in_the_orders_own_namespace() {
    let mut sim = Sim::shop();
    sim.order("shop/first", "{environment: dev, promotion: {mode: Automatic}}");
    sim.order("other/first", "{environment: dev, promotion: {mode: Manual}}");
    sim.order(SHOP, &with("upstream: [{order: first}]"));
    for of in ["shop/first", "other/first", SHOP] {
        sim.preparation_of(of, &of.replace('/', "-"), 1, "same", "signed: true");
    }
    step(&mut sim);
    let plan = sim.run();
    assert!(upstream_says(&plan).starts_with("shop/first ran this change"), "{}", upstream_says(&plan));
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("shop-podinfo"));
}

#[test]
fn three_stages_in_three_namespaces_pass_it_on_one_after_the_other() {
    let mut sim = Sim::shop();
    sim.order("a/x", "{environment: dev, promotion: {mode: Automatic}}");
    sim.order("b/x", &with("upstream: [{order: a/x}]").replace("production", "dev"));
    sim.order("c/x", &with("upstream: [{order: b/x}]"));
    for of in ["a/x", "b/x", "c/x"] {
        sim.preparation_of(of, "p1", 1, "p1", "signed: true");
    }
    let deployed = |sim: &Sim| ["a/x", "b/x", "c/x"].map(|of| sim.deployed(of).is_some());
    for expected in [[true, false, false], [true, true, false], [true, true, true]] {
        step(&mut sim);
        assert_eq!(deployed(&sim), expected);
    }
}

#[test]
fn an_environments_own_stages_may_neither_be_unknown_nor_wait_for_each_other() {
    let errors = |upstream: &str| -> Vec<String> {
        let mut sim = Sim::shop();
        let promotion = format!("{{clusters: [eu-1], promotion: {{upstream: [{{order: {upstream}}}]}}}}");
        sim.environment("production", &promotion);
        sim.order("shop/web", "{environment: production, promotion: {mode: Automatic}}");
        sim.order(SHOP, "{environment: production, promotion: {mode: Automatic}}");
        sim.preparation(SHOP, "p1", 1);
        let plan = sim.run();
        assert_eq!(sim.deployed(SHOP), None);
        row(&plan, SHOP).errors.iter().map(|e| e.cause.clone()).collect()
    };
    assert_eq!(errors("shop/nobody"), ["its upstream Order shop/nobody does not exist"]);
    assert_eq!(
        errors("shop/podinfo"),
        ["its upstream stages wait for each other: shop/podinfo → shop/podinfo"],
        "whoever deploys there waits for itself"
    );
    assert_eq!(errors("shop/web"), Vec::<String>::new(), "it is shop/web that waits for itself");
}

/// A soak in one stage says nothing of another: each of them has to have had its own.
#[test]
fn each_upstream_has_its_own_soak_and_the_last_one_decides_when() {
    let mut sim = Sim::shop();
    for of in ["eu/x", "us/x"] {
        sim.order(of, "{environment: dev, promotion: {mode: Automatic}}");
    }
    sim.order(SHOP, &with("upstream: [{order: eu/x, soak: 10m}, {order: us/x, soak: 2h}]"));
    for of in ["eu/x", "us/x", SHOP] {
        sim.preparation_of(of, "p1", 1, "p1", "signed: true");
    }
    step(&mut sim);
    let plan = sim.run();
    assert_eq!(
        gate(&plan, SHOP, GateName::Upstream).outcome,
        GateOutcome::Waiting(For::Instant(at("11:00")))
    );
    sim.now = at("10:00");
    step(&mut sim);
    let plan = sim.run();
    assert_eq!(
        upstream_says(&plan),
        "eu/x ran this change as p1, healthy from 2026-11-30T09:00:00Z for 10m until 2026-11-30T09:10:00Z; us/x runs this change, healthy; its soak of 2h is over at 2026-11-30T11:00:00Z"
    );
    sim.now = at("11:00");
    step(&mut sim);
    sim.run();
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
}
