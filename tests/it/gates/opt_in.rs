//! The Opt-in gate: whose an Application of our name is.

use super::*;
use expedite::model::naming::ALLOWED_ORDER;

/// An Application that somebody else made, with our name for the Cluster.
fn foreign(sim: &mut Sim, cluster: &str, annotation: Option<&str>) -> String {
    let plan = sim.plan();
    let planned = row(&plan, SHOP).applications.iter().find(|a| a.cluster.as_str() == cluster).unwrap();
    let ApplicationAction::Pin(pin) = &planned.action else { panic!("{planned:?}") };
    let mut live = (**file(pin).application.as_ref().unwrap()).clone();
    live.metadata.labels.clear();
    live.metadata.annotations.extend(annotation.map(|a| (ALLOWED_ORDER.to_owned(), a.to_owned())));
    let name = live.metadata.name.clone();
    let mut all = sim.world.applications.take().unwrap_or_default();
    all.insert(("argocd".to_owned(), name.clone()), loaded(live, "live"));
    sim.world.applications = Some(all);
    name
}

fn shop() -> Sim {
    let mut sim = Sim::shop();
    sim.order(SHOP, &with(""));
    sim.preparation(SHOP, "p1", 1);
    sim
}

#[test]
fn the_whole_error_names_application_annotation_found_and_wanted() {
    for (annotation, found) in [
        (None, "none"),
        (Some("shop/podinfo-extra"), "\"shop/podinfo-extra\""),
        (Some("shop/podinfo "), "\"shop/podinfo \""),
        (Some("shop/podinfo, shop/other"), "\"shop/podinfo, shop/other\""),
        (Some("*"), "\"*\""),
    ] {
        let mut sim = shop();
        let name = foreign(&mut sim, "us-1", annotation);
        let plan = sim.run();
        let said = format!(
            "Application {name} in the cluster was not created by us; annotation delivery.kokumi.dev/allowed-order: found {found}, wanted \"shop/podinfo\""
        );
        assert_eq!(
            gate(&plan, SHOP, GateName::OptIn).message,
            format!("Cluster eu-1: created; Cluster us-1: {said}")
        );
        assert_eq!(sim.pinned(SHOP).len(), 1, "the other Cluster goes on");
        assert_eq!(sim.reason(SHOP, "Ready"), "OptInRequired");
        let held = &sim.serving(SHOP).unwrap().status.clusters[1];
        assert_eq!((held.reason.as_str(), &held.message), ("OptInRequired", &said));
    }
    let mut sim = shop();
    foreign(&mut sim, "us-1", Some("shop/podinfo"));
    sim.run();
    assert_eq!(sim.pinned(SHOP).len(), 2);
}

#[test]
fn with_every_cluster_held_it_waits_and_one_that_opens_is_enough() {
    let mut sim = shop();
    foreign(&mut sim, "eu-1", None);
    foreign(&mut sim, "us-1", None);
    let plan = sim.run();
    let verdict = gate(&plan, SHOP, GateName::OptIn);
    assert_eq!(
        verdict.outcome,
        GateOutcome::Waiting(For::Person(vec!["the owner of the Application".into()]))
    );
    assert!(verdict.message.contains("Cluster eu-1") && verdict.message.contains("Cluster us-1"));
    assert_eq!(sim.deployed(SHOP), None);
    let all = sim.world.applications.as_mut().unwrap();
    let eu = all
        .values_mut()
        .find(|l| l.object.spec.destination.server.as_deref() == Some("https://eu-1.example"));
    let eu = eu.unwrap();
    let mut opened = (*eu.object).clone();
    opened.metadata.annotations.insert(ALLOWED_ORDER.into(), SHOP.into());
    eu.object = Arc::new(opened);
    sim.run();
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
    assert_eq!(sim.pinned(SHOP), [("https://eu-1.example".into(), digest("p1").to_string())]);
}

#[test]
fn what_was_not_observed_is_said_and_may_be_asked_for() {
    let mut sim = shop();
    let plan = sim.plan();
    assert_eq!(
        gate(&plan, SHOP, GateName::OptIn).message,
        "Cluster eu-1: not observed; Cluster us-1: not observed"
    );
    let (cases, facts, mut context) = sim.judged();
    context.require_observation = true;
    let plan = expedite::policy::decide::decide_plan(
        &cases,
        &facts,
        &sim.world,
        &sim.gitops,
        &context,
        &sim.options,
    );
    let verdict = gate(&plan, SHOP, GateName::OptIn);
    assert!(!verdict.is_passed());
    assert!(verdict.message.contains("was not observed, but argocd.requireObservation requires that"));
}
