//! What is decided: scenarios of `docs/design/promotion.md#which-preparation-is-promoted`, without git, YAML or a registry.

use crate::support::sim::*;
use expedite::model::evidence::*;
use expedite::model::plan::*;
use expedite::model::reason::Verified;
use expedite::model::verdict::GateName;
use expedite::model::world::*;
use expedite::policy::decide::intent::{Intent, Wish, judge_wish};

const MANUAL: &str = "{environment: production, promotion: {mode: Manual}}";
const AUTOMATIC: &str = "{environment: production, promotion: {mode: Automatic}}";

fn shop(mode: &str) -> Sim {
    let mut sim = Sim::shop();
    sim.order("shop/podinfo", mode);
    sim
}

fn row(plan: &Plan) -> &PlanRow {
    plan.rows.iter().find(|r| r.order == order("shop/podinfo")).unwrap()
}

fn waits(plan: &Plan) -> GateName {
    row(plan).find_waiting_gate().expect("something holds it").gate
}

#[test]
fn automatic_takes_the_newest_to_every_cluster() {
    let mut sim = shop(AUTOMATIC);
    sim.preparation("shop/podinfo", "p2", 2);
    sim.preparation("shop/podinfo", "p1", 1);
    sim.run();
    let p2 = digest("p2").to_string();
    assert_eq!(
        sim.pinned("shop/podinfo"),
        [("https://eu-1.example".into(), p2.clone()), ("https://us-1.example".into(), p2)]
    );
    assert_eq!(sim.reason("shop/podinfo", "Ready"), "NotObserved");
    assert_eq!(sim.reason("shop/podinfo", "Verified"), "SignaturesVerified");
}

/// B67: whether Argo CD has the Secret cannot be seen from here, so it is said once.
#[test]
fn b67_a_registry_that_argo_cd_is_new_to_is_named_once() {
    let told = |plan: &Plan| -> Vec<String> {
        let notices = plan.notices.iter().filter(|n| n.code == "registry-secret");
        notices.map(ToString::to_string).collect()
    };
    let mut sim = shop(AUTOMATIC);
    sim.preparation("shop/podinfo", "p1", 1);
    let first = told(&sim.run());
    assert_eq!(first.len(), 1, "two Clusters, one registry");
    assert!(first[0].contains("a repo-creds Secret of type oci"), "{first:?}");
    sim.preparation("shop/podinfo", "p2", 2);
    assert_eq!(told(&sim.run()), Vec::<String>::new(), "Applications name it already");
}

#[test]
fn a_second_run_changes_nothing_and_asks_nothing() {
    let mut sim = shop(AUTOMATIC);
    sim.preparation("shop/podinfo", "p1", 1);
    sim.run();
    sim.later(60);
    let plan = sim.run();
    assert!(matches!(row(&plan).serving, ServingPlan::Keep));
    assert_eq!(row(&plan).decision, Decision::Keep);
    assert_eq!(sim.asked, 0, "the kept verdict is shown");
}

#[test]
fn manual_waits_for_a_person_and_adopts_the_intent() {
    let mut sim = shop(MANUAL);
    sim.preparation("shop/podinfo", "p1", 1);
    sim.run();
    assert!(sim.serving("shop/podinfo").is_none(), "no Serving until the first promotion");
    sim.promote("shop/podinfo", "p1");
    sim.run();
    assert_eq!(sim.deployed("shop/podinfo").as_deref(), Some("p1"));
    let history = &sim.serving("shop/podinfo").unwrap().status.history;
    assert_eq!(history[0].requested_by.as_ref().unwrap().name, "ann");
}

#[test]
fn a_switch_of_the_mode_changes_nothing_by_itself() {
    let mut sim = shop(AUTOMATIC);
    sim.preparation("shop/podinfo", "p1", 1);
    sim.run();
    sim.order("shop/podinfo", MANUAL);
    sim.preparation("shop/podinfo", "p2", 2);
    sim.later(1);
    let plan = sim.run();
    assert_eq!(row(&plan).decision, Decision::Keep);
    assert!(matches!(row(&plan).serving, ServingPlan::Keep));
    // Nor does a switch before anything was promoted ask for something.
    let mut sim = shop(AUTOMATIC);
    sim.preparation_with("shop/podinfo", "p1", 1, "signed: false");
    sim.run();
    assert_eq!(sim.serving("shop/podinfo").unwrap().spec.preparation_name, None);
    sim.order("shop/podinfo", MANUAL);
    sim.preparation("shop/podinfo", "p1", 1);
    let plan = sim.run();
    assert_eq!(row(&plan).decision, Decision::Keep);
}

/// B58: a person rolls back, and automation leaves it alone until the mode is switched back.
#[test]
fn b58_a_rollback_stays_until_something_newer_comes_under_automatic() {
    let mut sim = shop(AUTOMATIC);
    for (name, minute) in [("p1", 1), ("p2", 2), ("p3", 3)] {
        sim.preparation("shop/podinfo", name, minute);
        sim.later(1);
        sim.run();
    }
    let asked = |sim: &mut Sim, name: &str| {
        let (cases, _, _) = sim.judged();
        judge_wish(&cases[0], &Wish::Promote(preparation(name)), &sim.world)
    };
    let refused = asked(&mut sim, "p1").unwrap_err();
    assert_eq!(refused.code, "automatic");
    assert!(refused.hints.iter().any(|h| h.contains("spec.promotion.mode: Manual")), "{refused:?}");

    let p3 = sim.pinned("shop/podinfo");
    sim.order("shop/podinfo", MANUAL);
    sim.later(1);
    let plan = sim.run();
    assert!(matches!(row(&plan).serving, ServingPlan::Keep), "switching the mode alone commits nothing");
    assert_eq!(sim.pinned("shop/podinfo"), p3);
    assert_eq!(asked(&mut sim, "p1").unwrap(), Intent::Ask(preparation("p1")));
    sim.promote("shop/podinfo", "p1");
    for _ in 0..3 {
        sim.later(10);
        sim.run();
        assert_eq!(sim.deployed("shop/podinfo").as_deref(), Some("p1"));
    }
    sim.preparation("shop/podinfo", "p4", 4);
    for _ in 0..3 {
        sim.later(10);
        let plan = sim.run();
        assert!(matches!(row(&plan).serving, ServingPlan::Keep));
        assert_eq!(sim.deployed("shop/podinfo").as_deref(), Some("p1"));
        let (cases, facts, context) = sim.judged();
        let open = expedite::policy::decide::open::collect_open(&cases, &facts, &context, None);
        assert_eq!(
            (open[0].preparation.as_str(), &open[0].step),
            ("p4", &PromotionStep::Promote),
            "only reported"
        );
    }
    sim.order("shop/podinfo", AUTOMATIC);
    sim.facts.insert(digest("p4"), missing());
    assert_eq!(waits(&sim.run()), GateName::Evidence, "through its gates");
    assert_eq!(sim.deployed("shop/podinfo").as_deref(), Some("p1"));
    sim.facts.clear();
    sim.run();
    assert_eq!(sim.deployed("shop/podinfo").as_deref(), Some("p4"));
}

#[test]
fn automatic_never_takes_what_ran_before_or_is_older() {
    let mut sim = shop(AUTOMATIC);
    sim.preparation("shop/podinfo", "p1", 1);
    sim.run();
    sim.preparation("shop/podinfo", "p2", 2);
    sim.run();
    sim.world.preparations.remove(&(order("shop/podinfo").namespace, preparation("p2")));
    sim.later(1);
    let plan = sim.run();
    assert_eq!(row(&plan).decision, Decision::Keep, "p1 is the newest that is left, and ran before");
    assert_eq!(sim.deployed("shop/podinfo").as_deref(), Some("p2"));
}

/// What is deployed is not Ready any more: an older one that never ran here is the newest Ready one.
#[test]
fn automatic_never_goes_back_when_what_is_deployed_is_no_longer_ready() {
    let mut sim = shop(MANUAL);
    for (name, minute) in [("p2", 2), ("p3", 3)] {
        sim.preparation("shop/podinfo", name, minute);
    }
    sim.promote("shop/podinfo", "p3");
    sim.run();
    sim.order("shop/podinfo", AUTOMATIC);
    let key = (order("shop/podinfo").namespace, preparation("p3"));
    let mut object = (*sim.world.preparations[&key].object).clone();
    object.status = serde_yaml::from_str("{conditions: [{type: Ready, status: \"False\"}]}").unwrap();
    sim.world.preparations.insert(key, loaded(object, "preparations.yaml"));
    let plan = sim.run();
    assert_eq!(row(&plan).decision, Decision::Keep);
    assert_eq!(sim.deployed("shop/podinfo").as_deref(), Some("p3"));
}

/// The object of what is deployed is gone: the next one must be known to be newer.
#[test]
fn automatic_never_goes_back_when_what_is_deployed_left_its_folder() {
    let mut sim = shop(AUTOMATIC);
    sim.preparation("shop/podinfo", "p3", 3);
    sim.run();
    assert_eq!(sim.deployed("shop/podinfo").as_deref(), Some("p3"));
    let gone = (order("shop/podinfo").namespace, preparation("p3"));
    sim.world.preparations.remove(&gone);
    sim.preparation("shop/podinfo", "p2", 2);
    let plan = sim.run();
    assert_eq!(sim.deployed("shop/podinfo").as_deref(), Some("p3"), "p2 may be older");
    assert!(row(&plan).warnings.iter().any(|w| w.code == "age-unknown"), "{:?}", row(&plan).warnings);
    // Made at ten o'clock, after the promotion at nine.
    sim.later(90);
    sim.preparation("shop/podinfo", "p4", 600);
    sim.run();
    assert_eq!(sim.deployed("shop/podinfo").as_deref(), Some("p4"));
}

#[test]
fn a_rejected_newest_holds_and_no_older_one_is_taken() {
    let mut sim = shop(AUTOMATIC);
    sim.preparation("shop/podinfo", "p1", 1);
    sim.preparation("shop/podinfo", "p2", 2);
    sim.kitchen(&format!("{{reject: [{{digest: \"{}\", reason: loses orders}}]}}", digest("p2")));
    let plan = sim.run();
    assert_eq!(waits(&plan), GateName::Ready);
    assert!(row(&plan).find_waiting_gate().unwrap().message.contains("loses orders"));
    assert_eq!(sim.deployed("shop/podinfo"), None);
}

#[test]
fn a_queue_is_replaced_and_withdrawn() {
    let mut sim = shop("{environment: production, promotion: {mode: Manual}}");
    for (name, minute) in [("p1", 1), ("p2", 2), ("p3", 3)] {
        sim.preparation("shop/podinfo", name, minute);
    }
    sim.promote("shop/podinfo", "p1");
    sim.run();
    sim.facts.insert(digest("p2"), missing());
    sim.facts.insert(digest("p3"), missing());
    sim.later(5);
    sim.promote("shop/podinfo", "p2");
    sim.run();
    let since = sim.now;
    sim.later(5);
    sim.run();
    let queued = sim.serving("shop/podinfo").unwrap().status.queued.clone().unwrap();
    assert_eq!((queued.preparation_name.as_str(), queued.waits_for.as_str()), ("p2", "Evidence"));
    assert_eq!(queued.since, since, "it waits since it was asked for");
    sim.preparation("shop/podinfo", "p4", 4);
    sim.run();
    assert_eq!(
        sim.serving("shop/podinfo").unwrap().status.queued.as_ref().unwrap().preparation_name.as_str(),
        "p2",
        "a queued one stays pinned however many newer ones appear"
    );
    sim.promote("shop/podinfo", "p3");
    sim.run();
    let queued = sim.serving("shop/podinfo").unwrap().status.queued.clone().unwrap();
    assert_eq!(queued.preparation_name.as_str(), "p3", "promoting replaces the queued one");
    sim.promote("shop/podinfo", "p1");
    let plan = sim.run();
    let status = &sim.serving("shop/podinfo").unwrap().status;
    assert_eq!(status.queued, None, "promoting the deployed one withdraws");
    assert_eq!(status.history.len(), 1);
    assert_eq!(row(&plan).decision, Decision::Keep);
}

fn missing() -> ArtifactFacts {
    let why = || Looked { why: "nothing is attached".into(), reason: None, candidates: Vec::new() };
    let mut facts = proven(&Ask {
        artifact: expedite::model::id::Artifact::parse(&format!(
            "oci://r.example/shop/podinfo@{}",
            digest("x")
        ))
        .unwrap(),
        claims: [Claim::Artifact].into(),
    });
    facts.signature = Some(Evidence::Missing(why()));
    facts.provenance.insert(order("shop/podinfo"), Evidence::Missing(why()));
    facts
}

#[test]
fn evidence_that_is_missing_invalid_or_unread_holds_by_its_own_name() {
    for (facts, reason, unread) in [
        (missing(), Verified::SignatureMissing, false),
        (
            ArtifactFacts {
                signature: Some(Evidence::Invalid(Looked {
                    why: "signed by a stranger".into(),
                    reason: None,
                    candidates: Vec::new(),
                })),
                ..missing()
            },
            Verified::SignatureInvalid,
            false,
        ),
        (
            ArtifactFacts {
                artifact: Some(Evidence::Unread(Unread {
                    reason: Verified::RegistryUnreachable,
                    request: "GET /v2/".into(),
                    status: None,
                    why: "connection refused".into(),
                    retryable: true,
                })),
                ..missing()
            },
            Verified::RegistryUnreachable,
            true,
        ),
    ] {
        let mut sim = shop(AUTOMATIC);
        sim.preparation("shop/podinfo", "p1", 1);
        sim.run();
        sim.preparation("shop/podinfo", "p2", 2);
        sim.facts.insert(digest("p2"), facts);
        let before = sim.pinned("shop/podinfo");
        let plan = sim.run();
        assert_eq!(waits(&plan), GateName::Evidence);
        assert_eq!(row(&plan).find_waiting_gate().unwrap().unread, unread);
        assert_eq!(sim.reason("shop/podinfo", "Verified"), reason.as_str());
        assert_eq!(sim.pinned("shop/podinfo"), before, "what is deployed stays");
        let plan = sim.run();
        assert!(matches!(row(&plan).serving, ServingPlan::Keep), "the message is stable");
    }
}

#[test]
fn a_configured_gate_without_what_it_asks_for_holds_by_name() {
    let gate = |order_spec: &str| {
        let mut sim = shop(order_spec);
        sim.preparation("shop/podinfo", "p1", 1);
        let plan = sim.run();
        (waits(&plan), sim.deployed("shop/podinfo"))
    };
    let with = |gate: &str| format!("{{environment: production, promotion: {{mode: Automatic, {gate}}}}}");
    let unknown = gate(&with("upstream: [{order: dev/podinfo}]"));
    assert_eq!(unknown, (GateName::Ready, None), "an upstream that does not exist is an input error");
    assert_eq!(
        gate(&with("approvals: {requiredApprovals: 1, allowedGroups: [platform]}")),
        (GateName::Approvals, None)
    );
    assert_eq!(
        gate(&with("checks: [{name: e2e, attestation: {predicateType: x}}]")),
        (GateName::Checks, None)
    );
}

#[test]
fn an_order_that_is_gone_loses_its_applications_only_when_its_source_was_read_whole() {
    let mut sim = shop(AUTOMATIC);
    sim.order("shop/other", AUTOMATIC);
    sim.preparation("shop/podinfo", "p1", 1);
    sim.run();
    let gone = sim.world.orders.remove(&order("shop/podinfo")).unwrap();
    let whole = sim.world.clone();

    sim.world.sources[0].whole = false;
    sim.run();
    assert_eq!(sim.pinned("shop/podinfo").len(), 2, "a source that is not whole deletes nothing");

    sim.world = whole.clone();
    sim.world.sources.clear();
    sim.run();
    assert_eq!(sim.pinned("shop/podinfo").len(), 2, "nor does one that is not configured any more");

    sim.world = whole.clone();
    sim.world.orders.clear();
    sim.run();
    assert_eq!(sim.pinned("shop/podinfo").len(), 2, "nor one without any Order");

    sim.world = whole;
    sim.run();
    assert_eq!(sim.pinned("shop/podinfo").len(), 0);
    assert!(sim.serving("shop/podinfo").is_none());
    sim.world.orders.insert(order("shop/podinfo"), gone);
}

/// The source is remembered at a promotion; the file of an Order may move to another one after that.
#[test]
fn an_order_that_moved_between_sources_goes_only_when_all_of_them_were_read_whole() {
    let mut sim = shop(AUTOMATIC);
    sim.order("shop/other", AUTOMATIC);
    let other = SourceState { name: "path:other".into(), whole: true, why: None, objects: 1 };
    sim.world.sources.push(other);
    sim.preparation("shop/podinfo", "p1", 1);
    sim.run();
    // It moves, and nothing is promoted after that.
    let moved = sim.world.orders.get_mut(&order("shop/podinfo")).unwrap();
    moved.origin.source = "path:other".into();
    sim.run();

    sim.world.orders.remove(&order("shop/podinfo"));
    for (whole, why) in [(false, Some("it is empty".to_owned())), (false, None)] {
        let state = &mut sim.world.sources[1];
        (state.whole, state.why) = (whole, why);
        let plan = sim.run();
        assert_eq!(sim.pinned("shop/podinfo").len(), 2, "the source that it moved to was not read whole");
        let row = plan.rows.iter().find(|row| row.order == order("shop/podinfo")).unwrap();
        assert!(row.errors[0].to_string().contains("may have moved to path:other"), "{}", row.errors[0]);
    }

    sim.world.sources[1].whole = true;
    sim.run();
    assert_eq!(sim.pinned("shop/podinfo").len(), 0);
}

#[test]
fn the_removal_guard_stops_and_lists() {
    let mut sim = Sim::shop();
    for i in 0..4 {
        let name = format!("shop/app-{i}");
        sim.order(&name, AUTOMATIC);
        sim.preparation(&name, &format!("app-{i}-p1"), 1);
    }
    sim.run();
    for i in 0..3 {
        sim.world.orders.remove(&order(&format!("shop/app-{i}")));
    }
    let plan = sim.run();
    let guard = plan.guard.expect("six removals are more than five");
    assert_eq!((guard.allowed, guard.removals.len()), (5, 6));
    sim.options.allow_removals = Some(6);
    assert!(sim.run().guard.is_none());
    assert_eq!(sim.pinned("shop/app-0").len(), 0);
    assert_eq!(sim.pinned("shop/app-3").len(), 2);
}

/// B73: two Clusters with one API server; only one Application may own the objects.
#[test]
fn b73_two_clusters_with_one_server_hold_the_second() {
    let mut sim = shop(AUTOMATIC);
    sim.cluster("us-1", "https://EU-1.example:443/");
    sim.preparation("shop/podinfo", "p1", 1);
    sim.run();
    assert_eq!(sim.pinned("shop/podinfo").len(), 1);
    let clusters = &sim.serving("shop/podinfo").unwrap().status.clusters;
    assert_eq!(clusters[1].reason, "SameServer");
}

/// B74: a Cluster that is missing is held; one that was dropped on purpose loses its Application.
#[test]
fn b74_missing_is_held_and_dropped_is_removed() {
    let mut sim = shop(AUTOMATIC);
    sim.preparation("shop/podinfo", "p1", 1);
    sim.run();
    let us = expedite::model::id::ClusterName::parse("us-1").unwrap();
    let kept = sim.world.clusters.remove(&us).unwrap();
    sim.run();
    assert_eq!(sim.pinned("shop/podinfo").len(), 2, "named but missing: its file stays");
    assert_eq!(sim.serving("shop/podinfo").unwrap().status.clusters[1].reason, "ClusterMissing");
    sim.preparation("shop/podinfo", "p2", 2);
    assert_eq!(waits(&sim.run()), GateName::Ready);
    sim.world.clusters.insert(us, kept);
    sim.environment("production", "{clusters: [eu-1]}");
    sim.run();
    assert_eq!(sim.pinned("shop/podinfo"), [("https://eu-1.example".into(), digest("p2").to_string())]);
    // The Environment itself is gone: nothing is deleted.
    sim.world.environments.remove(&expedite::model::id::EnvironmentName::parse("production").unwrap());
    let plan = sim.run();
    assert_eq!(sim.pinned("shop/podinfo").len(), 1);
    assert_eq!(row(&plan).decision, Decision::Broken);
}

#[test]
fn a_cluster_whose_server_changed_is_held_until_promoted_again() {
    let mut sim = shop(AUTOMATIC);
    sim.preparation("shop/podinfo", "p1", 1);
    sim.run();
    sim.cluster("us-1", "https://elsewhere.example");
    sim.run();
    sim.run();
    let held = &sim.serving("shop/podinfo").unwrap().status.clusters[1];
    assert_eq!((held.reason.as_str(), held.server.as_str()), ("ServerChanged", "https://us-1.example"));
    assert!(sim.pinned("shop/podinfo").iter().any(|(server, _)| server == "https://us-1.example"));
    sim.preparation("shop/podinfo", "p2", 2);
    sim.run();
    assert!(sim.pinned("shop/podinfo").iter().any(|(server, _)| server == "https://elsewhere.example"));
}

#[test]
fn a_cluster_that_joins_gets_what_is_deployed_after_a_fresh_look() {
    let mut sim = shop(AUTOMATIC);
    sim.preparation("shop/podinfo", "p1", 1);
    sim.run();
    sim.cluster("ap-1", "https://ap-1.example");
    sim.environment("production", "{clusters: [ap-1, eu-1, us-1]}");
    sim.facts.insert(digest("p1"), missing());
    sim.run();
    assert_eq!(sim.pinned("shop/podinfo").len(), 2);
    assert_eq!(sim.serving("shop/podinfo").unwrap().status.clusters[0].reason, "SignatureMissing");
    sim.facts.clear();
    sim.run();
    assert_eq!(sim.pinned("shop/podinfo").len(), 3);
    sim.run();
    assert_eq!(sim.asked, 0);
}

#[test]
fn another_environment_is_promoted_anew_and_the_old_clusters_stay_until_then() {
    let mut sim = shop("{environment: dev, promotion: {mode: Automatic}}");
    sim.preparation("shop/podinfo", "p1", 1);
    sim.run();
    sim.order("shop/podinfo", AUTOMATIC);
    sim.facts.insert(digest("p1"), missing());
    sim.run();
    assert_eq!(sim.pinned("shop/podinfo"), [("https://dev-1.example".into(), digest("p1").to_string())]);
    sim.facts.clear();
    sim.later(1);
    sim.run();
    assert_eq!(sim.pinned("shop/podinfo").len(), 2);
    assert!(!sim.pinned("shop/podinfo").iter().any(|(server, _)| server.contains("dev-1")));
}

#[test]
fn changed_content_under_one_name_is_an_error_and_changes_nothing() {
    let mut sim = shop(MANUAL);
    sim.preparation("shop/podinfo", "p1", 1);
    sim.promote("shop/podinfo", "p1");
    sim.run();
    let before = sim.pinned("shop/podinfo");
    let key = (order("shop/podinfo").namespace, preparation("p1"));
    let mut edited = (*sim.world.preparations[&key].object).clone();
    edited.spec.artifact.digest = digest("evil");
    edited.spec.artifact.oci_ref = format!("oci://r.example/shop/podinfo@{}", digest("evil"));
    sim.world.preparations.insert(key, loaded(edited, "preparations.yaml"));
    let plan = sim.run();
    assert_eq!(row(&plan).decision, Decision::Broken);
    assert_eq!(row(&plan).errors[0].code, "changed-content");
    assert_eq!(sim.pinned("shop/podinfo"), before);
}

#[test]
fn an_unreadable_file_holds_every_new_promotion() {
    let mut sim = shop(AUTOMATIC);
    sim.preparation("shop/podinfo", "p1", 1);
    sim.world.problems.push(Problem {
        failure: expedite::error::Failure::new_input("parse", "it does not parse").with_object("votes.yaml"),
        holds: Holds::Everything,
    });
    let plan = sim.run();
    assert_eq!(waits(&plan), GateName::Ready);
    assert_eq!(plan.problems.len(), 1);
}

#[test]
fn history_keeps_sixteen_and_ends_what_was_superseded() {
    let mut sim = shop(AUTOMATIC);
    for i in 0..20 {
        sim.preparation("shop/podinfo", &format!("p{i}"), i);
        sim.later(1);
        sim.run();
    }
    let history = &sim.serving("shop/podinfo").unwrap().status.history;
    assert_eq!(history.len(), 16);
    assert_eq!(history[0].preparation_name.as_str(), "p19");
    assert!(history[0].ended_time.is_none());
    assert!(history[1..].iter().all(|e| e.ended_reason == Some(expedite::model::reason::Ended::Superseded)));
}

#[test]
fn a_rename_hands_the_workload_over() {
    let mut sim = shop(AUTOMATIC);
    sim.order("shop/other", AUTOMATIC);
    sim.preparation("shop/podinfo", "p1", 1);
    sim.run();
    sim.world.orders.remove(&order("shop/podinfo"));
    sim.world.preparations.clear();
    sim.order("shop/renamed", AUTOMATIC);
    sim.preparation("shop/renamed", "r1", 2);
    sim.run();
    assert_eq!(sim.pinned("shop/renamed").len(), 2);
    assert_eq!(sim.pinned("shop/podinfo").len(), 2, "the first run only takes the finalizer off");
    sim.run();
    assert_eq!(sim.pinned("shop/podinfo").len(), 2, "it stays until that is observed");
    sim.world.applications = Some(std::collections::BTreeMap::new());
    sim.run();
    assert_eq!(sim.pinned("shop/podinfo").len(), 0);
}

#[test]
fn an_application_that_is_being_deleted_is_not_written() {
    let mut sim = shop(AUTOMATIC);
    sim.preparation("shop/podinfo", "p1", 1);
    sim.run();
    let p1 = digest("p1").to_string();
    let live: std::collections::BTreeMap<_, _> = sim
        .gitops
        .applications
        .values()
        .map(|file| {
            let mut application = (**file.application.as_ref().unwrap()).clone();
            if application.spec.destination.server.as_deref() == Some("https://eu-1.example") {
                application.metadata.deletion_timestamp = Some(sim.now);
            }
            (("argocd".to_owned(), application.metadata.name.clone()), loaded(application, "live"))
        })
        .collect();
    assert_eq!(live.len(), 2);
    sim.world.applications = Some(live);
    sim.preparation("shop/podinfo", "p2", 2);
    sim.later(10);
    sim.run();
    let p2 = digest("p2").to_string();
    assert_eq!(
        sim.pinned("shop/podinfo"),
        [("https://eu-1.example".into(), p1), ("https://us-1.example".into(), p2.clone())]
    );
    let held = sim.serving("shop/podinfo").unwrap();
    let eu = held.status.clusters.iter().find(|c| c.name.as_str() == "eu-1").unwrap();
    assert!(eu.message.contains("is being deleted"), "{eu:?}");
    // Once it is gone, it gets what is deployed.
    sim.world
        .applications
        .as_mut()
        .unwrap()
        .retain(|_, live| live.object.metadata.deletion_timestamp.is_none());
    sim.later(10);
    sim.run();
    assert!(sim.pinned("shop/podinfo").iter().all(|(_, digest)| *digest == p2));
}

#[test]
fn the_finalizers_of_an_opted_in_application_come_along() {
    let mut sim = shop(AUTOMATIC);
    sim.preparation("shop/podinfo", "p1", 1);
    let plan = sim.plan();
    let pins = |plan: &Plan| -> Vec<std::sync::Arc<Pin>> {
        let actions = row(plan).applications.iter().map(|a| &a.action);
        actions
            .filter_map(|a| if let ApplicationAction::Pin(pin) = a { Some(pin.clone()) } else { None })
            .collect()
    };
    assert!(pins(&plan).iter().all(|pin| pin.found_finalizers.is_none()));
    let mut live = (**file(&pins(&plan)[0]).application.as_ref().unwrap()).clone();
    live.metadata.labels.clear();
    live.metadata.annotations.insert("delivery.kokumi.dev/allowed-order".into(), "shop/podinfo".into());
    live.metadata.finalizers = vec!["example.com/mine".into()];
    let name = live.metadata.name.clone();
    sim.world.applications = Some([(("argocd".to_owned(), name.clone()), loaded(live, "live"))].into());
    let again = pins(&sim.plan());
    let taken = again.iter().find(|pin| pin.name.as_str() == name).unwrap();
    assert_eq!(taken.found_finalizers.as_deref(), Some(&["example.com/mine".to_owned()][..]));
    assert_eq!(again.iter().filter(|pin| pin.found_finalizers.is_some()).count(), 1);
}

/// B53: a clock behind the committed history is told, and changes nothing; one far ahead makes nothing older.
#[test]
fn b53_a_clock_behind_the_history_promotes_nothing_and_says_so() {
    let mut sim = shop(AUTOMATIC);
    sim.preparation("shop/podinfo", "p1", 1);
    sim.run();
    sim.preparation("shop/podinfo", "p2", 2);
    let right = sim.now;
    for wrong in ["1970-01-01T00:00:00Z", "2026-11-30T08:50:00Z"] {
        sim.now = time(wrong);
        let plan = sim.run();
        assert_eq!(row(&plan).decision, Decision::Broken, "{wrong}");
        let error = &row(&plan).errors[0];
        assert_eq!(error.code, "clock-behind");
        assert!(error.cause.contains("2026-11-30T09:00:00Z") && error.cause.contains(wrong), "{error:?}");
        assert!(matches!(row(&plan).serving, ServingPlan::Keep), "nothing is written by a wrong clock");
        assert_eq!(sim.deployed("shop/podinfo").as_deref(), Some("p1"));
    }
    sim.now = time("2026-11-30T08:56:00Z");
    assert!(sim.plan().rows[0].errors.is_empty(), "four minutes are tolerated");
    sim.now = right;
    sim.later(1);
    sim.run();
    assert_eq!(sim.deployed("shop/podinfo").as_deref(), Some("p2"));
}

/// B55: what was said of an older generation, or of no known state, is not yet known.
#[test]
fn b55_a_condition_of_another_generation_or_unknown_is_not_ready() {
    for (status, seen) in [("\"True\"", 1), ("Unknown", 2)] {
        let mut sim = shop(AUTOMATIC);
        sim.preparation("shop/podinfo", "p1", 1);
        let key = (order("shop/podinfo").namespace, preparation("p1"));
        let mut object = (*sim.world.preparations[&key].object).clone();
        object.metadata.generation = Some(2);
        object.status = serde_yaml::from_str(&format!(
            "{{conditions: [{{type: Ready, status: {status}, observedGeneration: {seen}}}]}}"
        ))
        .unwrap();
        sim.world.preparations.insert(key, loaded(object, "preparations.yaml"));
        sim.run();
        assert_eq!(sim.deployed("shop/podinfo"), None, "{status} of generation {seen}");
        sim.order("shop/podinfo", MANUAL);
        sim.promote("shop/podinfo", "p1");
        let plan = sim.run();
        assert_eq!(waits(&plan), GateName::Ready);
        let message = &row(&plan).verdicts[0].message;
        assert!(message.starts_with("Preparation p1 is not Ready: "), "{message}");
    }
}

/// B61: what a queued name stands for may go, or be another's: refused with the name, and nothing moves.
#[test]
fn b61_a_queued_preparation_that_is_gone_or_foreign_is_an_error_with_its_name() {
    let mut sim = shop(MANUAL);
    sim.preparation("shop/podinfo", "p1", 1);
    sim.preparation("shop/podinfo", "p2", 2);
    sim.promote("shop/podinfo", "p1");
    sim.run();
    sim.promote("shop/podinfo", "p2");
    sim.facts.insert(digest("p2"), missing());
    let plan = sim.run();
    assert_eq!(waits(&plan), GateName::Evidence, "a signature that is lost holds, and drops nothing");
    assert!(sim.serving("shop/podinfo").unwrap().status.queued.is_some());
    sim.world.preparations.remove(&(order("shop/podinfo").namespace, preparation("p2")));
    sim.order("shop/other", MANUAL);
    for stranger in [false, true] {
        if stranger {
            sim.preparation("shop/other", "p2", 2);
        }
        let plan = sim.run();
        let error = &row(&plan).errors[0];
        assert_eq!(error.code, if stranger { "foreign-preparation" } else { "unknown-preparation" });
        assert!(error.cause.contains("p2"), "{error:?}");
        assert_eq!(sim.deployed("shop/podinfo").as_deref(), Some("p1"));
    }
}
