//! What Argo CD says of the Applications, and what of it goes into git (B80).

use super::*;

fn deployed() -> Sim {
    let mut sim = Sim::shop();
    sim.order(SHOP, &with(""));
    sim.preparation(SHOP, "p1", 1);
    sim.world.applications = Some(Default::default());
    sim.run();
    sim.now = at("09:05");
    sim
}

#[test]
fn ready_follows_what_argo_cd_says_of_this_digest() {
    let mut sim = deployed();
    assert_eq!(sim.reason(SHOP, "Ready"), "Deploying");
    Argo::healthy_since(at("09:03")).look(&mut sim, &[]);
    sim.run();
    assert_eq!(sim.reason(SHOP, "Ready"), "Deployed");
    let entry = sim.serving(SHOP).unwrap().status.history[0].clone();
    assert_eq!(entry.first_healthy_time, Some(at("09:03")));
    sim.now = at("09:30");
    Argo { health: "Progressing", ..Argo::healthy_since(at("09:03")) }.look(&mut sim, &[]);
    let plan = sim.run();
    assert!(matches!(row(&plan, SHOP).serving, ServingPlan::Keep), "a flap is no commit");
    Argo { phase: "Failed", ..Argo::healthy_since(at("09:20")) }.look(&mut sim, &[]);
    sim.run();
    assert_eq!(sim.reason(SHOP, "Ready"), "Degraded");
    sim.world.applications = None;
    sim.run();
    assert_eq!(sim.reason(SHOP, "Ready"), "NotObserved");
}

#[test]
fn argo_cds_own_words_stay_out_of_git() {
    let mut sim = deployed();
    Argo::degraded_since(at("09:03")).look(&mut sim, &[]);
    sim.run();
    sim.now = at("09:40");
    Argo::degraded_since(at("09:03")).look(&mut sim, &[]);
    let plan = sim.run();
    assert!(matches!(row(&plan, SHOP).serving, ServingPlan::Keep));
}

#[test]
fn a_run_without_changes_after_healthy_is_no_commit() {
    let mut sim = deployed();
    Argo::healthy_since(at("09:03")).look(&mut sim, &[]);
    sim.run();
    for minute in ["10:00", "11:00", "12:00"] {
        sim.now = at(minute);
        Argo::healthy_since(at("09:03")).look(&mut sim, &[]);
        let plan = sim.run();
        assert!(matches!(row(&plan, SHOP).serving, ServingPlan::Keep));
    }
}

#[test]
fn a_cluster_that_is_not_ready_is_not_counted() {
    let mut sim = deployed();
    let object = serde_yaml::from_str(
        "{metadata: {name: us-1}, spec: {server: \"https://us-1.example\"}, status: {conditions: [{type: Ready, status: \"False\"}]}}",
    )
    .unwrap();
    sim.world.clusters.insert(ClusterName::parse("us-1").unwrap(), loaded(object, "clusters.yaml"));
    Argo::healthy_since(at("09:03")).look(&mut sim, &[]);
    edit(&mut sim, SHOP, |live| {
        if live.spec.destination.server.as_deref() == Some("https://us-1.example") {
            live.status = None;
        }
    });
    sim.run();
    assert_eq!(sim.reason(SHOP, "Ready"), "Deployed");
}

/// B80: what other Orders and people commit says nothing of this one.
#[test]
fn b80_the_digest_decides_and_not_a_commit() {
    let mut sim = deployed();
    Argo::healthy_since(at("09:03")).look(&mut sim, &[]);
    sim.run();
    sim.order("shop/other", &with(""));
    for n in 0..5u64 {
        sim.preparation("shop/other", &format!("o{n}"), n);
        sim.gitops.head = CommitId::parse(&format!("{n:040}")).ok();
        sim.later(1);
        sim.run();
        assert_eq!(sim.reason(SHOP, "Ready"), "Deployed");
    }
}
