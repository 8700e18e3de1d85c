//! What a Serving says is deployed is a claim: no run deploys it past the gates because somebody wrote it there.

use super::*;
use expedite::model::serving::{ClusterStatus, ServingStatus};

const MANUAL: &str = "{environment: production, promotion: {mode: Manual}}";
const EVIL: &str = "evil.example/x";

/// `shop/podinfo` runs p2 in production after p1, promoted and signed; `us-2` is a Cluster of nobody.
fn signed() -> Sim {
    let mut sim = Sim::shop();
    sim.records = true;
    sim.cluster("us-2", "https://us-2.example");
    sim.order(SHOP, MANUAL);
    for (name, minute) in [("p1", 1), ("p2", 2)] {
        sim.preparation(SHOP, name, minute);
        sim.promote(SHOP, name);
        sim.run();
        sim.sign_history(SHOP);
        sim.later(60);
    }
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p2"));
    sim
}

fn paste(sim: &mut Sim, change: impl FnOnce(&mut ServingStatus)) {
    let mut serving = (*sim.serving(SHOP).unwrap()).clone();
    change(&mut serving.status);
    serving.spec.preparation_name.clone_from(&serving.status.observed_preparation_name);
    sim.put_serving(&order(SHOP), serving);
}

fn repository(text: &str) -> OciRepository {
    OciRepository::parse(text).unwrap()
}

fn us_2() -> ClusterStatus {
    ClusterStatus {
        name: ClusterName::parse("us-2").unwrap(),
        server: "https://us-2.example".into(),
        application: expedite::model::naming::build_application_name(
            &order(SHOP),
            &ClusterName::parse("us-2").unwrap(),
        )
        .unwrap(),
        reason: "Pinned".into(),
        message: String::new(),
    }
}

fn applications(sim: &Sim) -> Vec<String> {
    sim.gitops.applications.iter().map(|(path, file)| format!("{path} {:?}", file.application)).collect()
}

fn codes(plan: &Plan) -> Vec<&'static str> {
    row(plan, SHOP).errors.iter().map(|e| e.code).collect()
}

#[test]
fn while_git_holds_what_it_says_nothing_is_read_and_nothing_has_to_be_proven() {
    let mut sim = signed();
    sim.signed.clear();
    let (cases, _, context) = sim.judged();
    assert!(expedite::policy::gates::collect_record_asks(&cases, &context).is_empty());
    let before = applications(&sim);
    let plan = sim.run();
    assert_eq!((codes(&plan), &row(&plan, SHOP).decision), (vec![], &Decision::Keep));
    assert_eq!(applications(&sim), before);
    assert!(row(&plan, SHOP).applications.iter().all(|a| matches!(a.action, ApplicationAction::Pin(_))));
}

/// Everything that somebody with push rights and no key may write.
#[test]
fn a_pasted_pin_changes_no_application() {
    type Forgery = fn(&mut ServingStatus);
    let forgeries: [(&str, Forgery); 8] = [
        ("another artifact altogether", |s| {
            s.observed_preparation_name = Some(preparation("x"));
            s.deployed_digest = Some(digest("evil"));
            let deployed = s.deployed.as_mut().unwrap();
            deployed.repository = repository(EVIL);
            deployed.target_namespace = Namespace::parse("argocd").unwrap();
        }),
        ("with a history to go with it", |s| {
            s.observed_preparation_name = Some(preparation("x"));
            s.deployed_digest = Some(digest("evil"));
            let mut entry = s.history[0].clone();
            entry.preparation_name = preparation("x");
            entry.digest = digest("evil");
            s.history.insert(0, entry);
        }),
        ("the digest alone", |s| s.deployed_digest = Some(digest("evil"))),
        ("the repository alone", |s| s.deployed.as_mut().unwrap().repository = repository(EVIL)),
        ("the target namespace alone", |s| {
            s.deployed.as_mut().unwrap().target_namespace = Namespace::parse("argocd").unwrap();
        }),
        ("the one before, by its own record", |s| {
            s.observed_preparation_name = Some(preparation("p1"));
            s.deployed_digest = Some(digest("p1"));
            let before = s.history[1].clone();
            s.history.insert(0, before);
        }),
        ("another digest, and no Cluster has it yet", |s| {
            s.deployed_digest = Some(digest("evil"));
            s.clusters.clear();
        }),
        ("no history", |s| {
            s.deployed_digest = Some(digest("evil"));
            s.history.clear();
        }),
    ];
    for (what, forge) in forgeries {
        let mut sim = signed();
        let before = applications(&sim);
        paste(&mut sim, forge);
        let pasted = sim.serving(SHOP).unwrap();
        for _ in 0..2 {
            let plan = sim.run();
            assert!(codes(&plan).contains(&"pin-unproven"), "{what}: {:?}", codes(&plan));
            let errors = &row(&plan, SHOP).errors;
            let error = errors.iter().find(|e| e.code == "pin-unproven").unwrap();
            assert_eq!(error.at.as_ref().unwrap().file, "servings/shop/podinfo.yaml", "{what}");
            assert!(!error.hints.is_empty(), "{what}");
            assert_eq!(row(&plan, SHOP).decision, Decision::Broken, "{what}");
            assert_eq!(applications(&sim), before, "{what}");
            assert_eq!(sim.serving(SHOP).unwrap().status, pasted.status, "{what}: for whoever reverts it");
        }
    }
}

/// p1 was promoted once, and its record is as good as ever: only what came after it says that it is over.
fn cut(s: &mut ServingStatus) {
    s.history.remove(0);
    s.history[0].ended_time = None;
    s.history[0].ended_reason = None;
    s.observed_preparation_name = Some(preparation("p1"));
    s.deployed_digest = Some(digest("p1"));
}

fn pin_error(plan: &Plan) -> String {
    let errors = &row(plan, SHOP).errors;
    errors.iter().find(|e| e.code == "pin-unproven").map(|e| e.cause.clone()).unwrap_or_default()
}

#[test]
fn a_history_that_was_cut_brings_nothing_back() {
    let mut sim = signed();
    let before = applications(&sim);
    paste(&mut sim, cut);
    for _ in 0..2 {
        let plan = sim.run();
        assert!(pin_error(&plan).contains("p2 was promoted later"), "{:?}", codes(&plan));
        assert_eq!(applications(&sim), before);
    }
    // An end that was left standing says so itself.
    let mut sim = signed();
    paste(&mut sim, |s| {
        let ended = (s.history[1].ended_time, s.history[1].ended_reason);
        assert!(ended.1.is_some());
        cut(s);
        (s.history[0].ended_time, s.history[0].ended_reason) = ended;
    });
    let later = digest("p2");
    sim.signed.retain(|ask, _| ask.artifact != later);
    let plan = sim.run();
    assert!(pin_error(&plan).contains("says that it ended: Superseded"), "{}", pin_error(&plan));
    assert_eq!(applications(&sim), before);
}

/// Whoever removes the later record as well goes back to nothing that was withdrawn since.
#[test]
fn what_is_rejected_comes_back_by_no_record() {
    let reject = format!("reject: [{{digest: \"{}\", reason: stolen}}]", digest("p1"));
    for (kitchen, comes_back) in [("{}".to_owned(), true), (format!("{{{reject}}}"), false)] {
        let mut sim = signed();
        let before = applications(&sim);
        sim.kitchen(&kitchen);
        assert_eq!(codes(&sim.run()), Vec::<&str>::new());
        paste(&mut sim, cut);
        let later = digest("p2");
        sim.signed.retain(|ask, _| ask.artifact != later);
        let plan = sim.run();
        assert_eq!(applications(&sim) != before, comes_back, "{:?}", codes(&plan));
        assert_eq!(pin_error(&plan).contains("stolen"), !comes_back, "{}", pin_error(&plan));
    }
}

#[test]
fn a_promotion_through_all_gates_heals_a_pasted_pin() {
    let mut sim = signed();
    paste(&mut sim, |s| {
        s.observed_preparation_name = Some(preparation("x"));
        s.deployed_digest = Some(digest("evil"));
    });
    sim.preparation(SHOP, "p3", 3);
    sim.facts.insert(digest("p3"), ArtifactFacts::default());
    sim.promote(SHOP, "p3");
    let before = applications(&sim);
    let plan = sim.run();
    assert_eq!((codes(&plan), applications(&sim)), (vec!["pin-unproven"], before), "it waits");
    assert_eq!(row(&plan, SHOP).decision, Decision::Hold);
    sim.facts.clear();
    let plan = sim.run();
    assert_eq!(codes(&plan), Vec::<&str>::new());
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p3"));
    let pinned: Vec<String> = sim.pinned(SHOP).into_iter().map(|(_, digest)| digest).collect();
    assert_eq!(pinned, vec![digest("p3").to_string(); 2]);
    sim.sign_history(SHOP);
    assert_eq!(codes(&sim.run()), Vec::<&str>::new());
}

#[test]
fn an_application_that_was_edited_or_removed_by_hand_comes_back_by_its_record() {
    for how in ["edited", "removed"] {
        let mut sim = signed();
        let before = applications(&sim);
        let path = sim.gitops.applications.keys().next().unwrap().clone();
        let spoil = |sim: &mut Sim| match how {
            "edited" => {
                let file = sim.gitops.applications.get_mut(&path).unwrap();
                let mut object = (**file.application.as_ref().unwrap()).clone();
                object.spec.source.as_mut().unwrap().target_revision = Some(digest("evil").to_string());
                file.application = Ok(Arc::new(object));
            }
            _ => drop(sim.gitops.applications.remove(&path)),
        };
        spoil(&mut sim);
        let plan = sim.run();
        assert_eq!((codes(&plan), applications(&sim)), (vec![], before.clone()), "{how}");
        // Without its record nobody knows which of the two is right.
        spoil(&mut sim);
        let spoilt = applications(&sim);
        let mut known = std::mem::take(&mut sim.signed);
        let plan = sim.run();
        assert_eq!((codes(&plan), applications(&sim)), (vec!["pin-unproven"], spoilt), "{how}");
        // A repository that keeps no records takes the Serving at its word, as all of it.
        sim.records = false;
        let plan = sim.run();
        assert_eq!((codes(&plan), applications(&sim)), (vec![], before.clone()), "{how}");
        // A record of another Order proves nothing.
        sim.records = true;
        spoil(&mut sim);
        for proof in known.values_mut() {
            let mut statement = (**proof.statement.as_ref().unwrap()).clone();
            statement.predicate["order"]["name"] = json!("other");
            proof.statement = Some(Arc::new(statement));
        }
        sim.signed = known;
        assert_eq!(codes(&sim.run()), ["pin-unproven"], "{how}");
    }
}

/// A Cluster that the promotion did not go to gets what is deployed after a fresh look, outside freezes.
#[test]
fn a_pasted_cluster_joins_as_any_other() {
    let three = |more: &str| format!("{{clusters: [eu-1, us-1, us-2]{more}}}");
    let freeze =
        ", promotion: {freezes: [{from: 2026-11-30T00:00:00Z, to: 2026-12-30T00:00:00Z, reason: year end}]}";
    let held = |plan: &Plan| {
        let applications = &row(plan, SHOP).applications;
        let found = applications.iter().find(|a| a.cluster.as_str() == "us-2").unwrap();
        match &found.action {
            ApplicationAction::Hold { reason, .. } => reason.clone(),
            other => format!("{other:?}"),
        }
    };
    let mut sim = signed();
    sim.environment("production", &three(freeze));
    paste(&mut sim, |s| s.clusters.push(us_2()));
    let plan = sim.run();
    assert_eq!((held(&plan).as_str(), sim.pinned(SHOP).len()), ("Frozen", 2));

    let mut sim = signed();
    sim.environment("production", &three(""));
    let nothing = || Looked { why: "nothing is attached".into(), ..Looked::default() };
    let mut unsigned = ArtifactFacts {
        artifact: Some(Evidence::Missing(nothing())),
        signature: Some(Evidence::Missing(nothing())),
        ..ArtifactFacts::default()
    };
    unsigned.provenance.insert(order(SHOP), Evidence::Missing(nothing()));
    sim.facts.insert(digest("p2"), unsigned);
    paste(&mut sim, |s| s.clusters.push(us_2()));
    let plan = sim.run();
    assert_eq!((held(&plan).as_str(), sim.pinned(SHOP).len()), ("ArtifactNotFound", 2));

    // With its evidence it joins, stays, and comes back when somebody removes it.
    sim.facts.clear();
    sim.run();
    assert_eq!(sim.pinned(SHOP).len(), 3);
    let joined = applications(&sim);
    sim.environment("production", &three(freeze));
    let plan = sim.run();
    assert_eq!((codes(&plan), applications(&sim)), (vec![], joined.clone()), "a freeze takes nothing away");
    sim.environment("production", &three(""));
    let path =
        row(&plan, SHOP).applications.iter().find(|a| a.cluster.as_str() == "us-2").unwrap().path.clone();
    sim.gitops.applications.remove(&path);
    let plan = sim.run();
    assert_eq!((codes(&plan), applications(&sim)), (vec![], joined));
}

/// What is not proven is not given to a Cluster that joins either; that is nobody's error yet.
#[test]
fn nothing_unproven_joins() {
    let mut sim = signed();
    sim.signed.clear();
    sim.environment("production", "{clusters: [eu-1, us-1, us-2]}");
    let plan = sim.run();
    assert_eq!((codes(&plan), sim.pinned(SHOP).len()), (vec![], 2));
    let status = sim.serving(SHOP).unwrap().status.clone();
    assert_eq!(status.clusters.iter().find(|c| c.name.as_str() == "us-2").unwrap().reason, "PinUnproven");
    sim.run();
    assert_eq!(sim.serving(SHOP).unwrap().status, status);
}

/// The API server that it was promoted to is signed, too.
#[test]
fn a_cluster_that_moved_is_held_whatever_the_serving_says() {
    let mut sim = signed();
    sim.cluster("us-1", "https://elsewhere.example");
    let before = applications(&sim);
    paste(&mut sim, |s| {
        let us = s.clusters.iter_mut().find(|c| c.name.as_str() == "us-1").unwrap();
        us.server = "https://elsewhere.example".into();
    });
    for _ in 0..2 {
        let plan = sim.run();
        let us = row(&plan, SHOP).applications.iter().find(|a| a.cluster.as_str() == "us-1").unwrap();
        assert!(
            matches!(&us.action, ApplicationAction::Hold { reason, .. } if reason == "ServerChanged"),
            "{:?}",
            us.action
        );
        assert_eq!(applications(&sim), before);
    }
}

/// Nothing of it is anywhere, and git says that it runs: that is no deployment, and no reason to be quiet.
#[test]
fn a_deployment_that_never_was_is_the_orders_error() {
    let mut sim = signed();
    sim.gitops.applications.clear();
    sim.gitops.records.clear();
    paste(&mut sim, |s| {
        s.clusters.clear();
        s.history.truncate(1);
        s.history[0].promotion_record = None;
    });
    let plan = sim.run();
    assert_eq!(codes(&plan), ["pin-unproven"]);
    assert_eq!(applications(&sim), Vec::<String>::new());
}
