//! What history has to show for itself: signed records, and forgeries of it.

use super::*;

const GATES: &str = "upstream: [{order: staging/podinfo, soak: 1h}]";

/// Staging ran p1 for two hours, seen healthy, with its records signed.
fn soaked() -> Sim {
    let mut sim = chain(GATES);
    sim.records = true;
    same_artifact(&mut sim, "p1", 1);
    sim.run();
    sim.now = at("09:20");
    Argo::healthy_since(at("09:10")).look(&mut sim, &[]);
    sim.run();
    sim.now = at("11:00");
    Argo::healthy_since(at("09:10")).look(&mut sim, &[STAGING]);
    sim
}

#[test]
fn signed_records_pass_and_are_named() {
    let mut sim = soaked();
    sim.sign_history(STAGING);
    let plan = sim.run();
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"), "{:?}", row(&plan, SHOP).verdicts);
    let evidence = &gate(&plan, SHOP, GateName::Upstream).evidence;
    let kinds: Vec<&str> = evidence.iter().map(|e| e.kind.as_str()).collect();
    assert_eq!(kinds, ["upstream", "record", "record"]);
}

#[test]
fn history_alone_passes_nothing() {
    let mut sim = soaked();
    let plan = sim.run();
    let message = &gate(&plan, SHOP, GateName::Upstream).message;
    assert!(
        message.starts_with("staging/podinfo ran this change by its history, but that is not proven"),
        "{message}"
    );
    assert_eq!(gate(&plan, SHOP, GateName::Upstream).outcome, GateOutcome::Waiting(For::Evidence));
}

/// Everything that someone with push rights and no key may try.
#[test]
fn pasted_history_passes_nothing() {
    type Forgery = fn(&mut expedite::model::serving::ServingStatus);
    let forgeries: [(&str, Forgery); 5] = [
        ("an earlier first healthy time", |s| s.history[0].first_healthy_time = Some(at("09:05"))),
        ("another promotion time", |s| s.history[0].promoted_time = at("08:00")),
        ("another Environment", |s| s.history[0].environment = EnvironmentName::parse("production").ok()),
        ("no records", |s| s.history[0].promotion_record = None),
        ("an end that never was", |s| {
            s.history[0].ended_time = Some(at("10:30"));
            s.history[0].ended_reason = Some(Ended::Superseded);
        }),
    ];
    for (what, forge) in forgeries {
        let mut sim = soaked();
        sim.sign_history(STAGING);
        // Nobody has seen it since: only the claim speaks for it.
        sim.world.applications = None;
        let mut serving = (*sim.serving(STAGING).unwrap()).clone();
        forge(&mut serving.status);
        sim.put_serving(&order(STAGING), serving);
        let plan = sim.run();
        assert!(!gate(&plan, SHOP, GateName::Upstream).is_passed(), "{what}");
        assert_eq!(sim.deployed(SHOP), None, "{what}");
    }
}

#[test]
fn a_whole_pasted_entry_passes_nothing() {
    let mut sim = chain(GATES);
    sim.records = true;
    same_artifact(&mut sim, "p1", 1);
    sim.preparation(STAGING, "p2", 2);
    sim.run();
    let mut serving = (*sim.serving(STAGING).unwrap()).clone();
    let mut pasted = serving.status.history[0].clone();
    pasted.digest = digest("p1");
    pasted.preparation_name = preparation("p1");
    pasted.promoted_time = at("01:00");
    pasted.first_healthy_time = Some(at("01:01"));
    pasted.ended_time = Some(serving.status.history[0].promoted_time);
    pasted.ended_reason = Some(Ended::Superseded);
    pasted.promotion_record = Some(Digest::hash_bytes(b"a record of something else"));
    pasted.deployment_record = Some(Digest::hash_bytes(b"another"));
    serving.status.history.push(pasted);
    sim.put_serving(&order(STAGING), serving);
    sim.order(SHOP, "{environment: production, promotion: {mode: Manual, upstream: [{order: staging/podinfo, soak: 1h}]}}");
    sim.promote(SHOP, "p1");
    let plan = sim.run();
    let message = &gate(&plan, SHOP, GateName::Upstream).message;
    assert!(message.contains("is not in records/"), "{message}");
    assert_eq!(sim.deployed(SHOP), None);
}

#[test]
fn a_superseded_entry_is_proven_by_the_record_of_the_next_promotion() {
    let mut sim = soaked();
    sim.order(SHOP, "{environment: production, promotion: {mode: Manual, upstream: [{order: staging/podinfo, soak: 1h}]}}");
    sim.preparation(STAGING, "p2", 2);
    sim.run();
    assert_eq!(sim.deployed(STAGING).as_deref(), Some("p2"));
    sim.sign_history(STAGING);
    sim.promote(SHOP, "p1");
    let plan = sim.run();
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"), "{:?}", row(&plan, SHOP).verdicts);
    assert_eq!(gate(&plan, SHOP, GateName::Upstream).evidence.len(), 4, "its two records and the next one");
}

#[test]
fn a_degraded_end_that_the_repository_forgot_is_on_the_artifact() {
    let mut sim = soaked();
    sim.sign_history(STAGING);
    let entry = sim.serving(STAGING).unwrap().status.history[0].clone();
    let says = json!({
        "order": {"namespace": "staging", "name": "podinfo"}, "environment": "dev",
        "preparation": {"namespace": "staging", "name": "p1"},
        "promotionRecord": {"digest": entry.promotion_record}, "firstHealthyTime": entry.first_healthy_time,
        "endedTime": at("10:00"), "endedReason": "Degraded",
    });
    sim.attached.insert(digest("p1"), vec![statement("deployment", says)]);
    let plan = sim.run();
    let message = &gate(&plan, SHOP, GateName::Upstream).message;
    assert!(message.contains("says that it ended Degraded at 2026-11-30T10:00:00Z"), "{message}");
    assert_eq!(sim.deployed(SHOP), None);
}

/// The stage has a repository of its own, and went on: its Degraded end is on the artifact that it ran.
#[test]
fn a_degraded_end_that_was_rewritten_as_superseded_is_on_the_artifact() {
    let source = |base: &str| format!("signed: true}}, source: {{baseDigest: \"{}\"", digest(base));
    let manual = "{environment: production, promotion: {mode: Manual, upstream: [{order: staging/podinfo, soak: 1h}]}}";
    let superseded = || {
        let mut sim = chain("");
        sim.records = true;
        sim.order(SHOP, manual);
        sim.dependencies.insert(digest("base"));
        sim.preparation_with(STAGING, "s1", 1, &source("base"));
        sim.preparation_with(SHOP, "p1", 1, &source("base"));
        sim.run();
        sim.now = at("09:20");
        Argo::healthy_since(at("09:10")).look(&mut sim, &[STAGING]);
        sim.run();
        sim.now = at("11:00");
        Argo::healthy_since(at("09:10")).look(&mut sim, &[STAGING]);
        sim.preparation(STAGING, "s2", 2);
        sim.run();
        assert_eq!(sim.deployed(STAGING).as_deref(), Some("s2"));
        sim.sign_history(STAGING);
        sim.promote(SHOP, "p1");
        sim
    };
    let mut sim = superseded();
    let plan = sim.run();
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"), "{:?}", row(&plan, SHOP).verdicts);

    let mut sim = superseded();
    let entry = sim.serving(STAGING).unwrap().status.history[1].clone();
    assert_eq!(entry.digest, digest("s1"));
    let says = json!({
        "order": {"namespace": "staging", "name": "podinfo"}, "environment": "dev",
        "preparation": {"namespace": "staging", "name": "s1"},
        "promotionRecord": {"digest": entry.promotion_record}, "firstHealthyTime": entry.first_healthy_time,
        "endedTime": at("09:30"), "endedReason": "Degraded",
    });
    sim.attached.insert(digest("s1"), vec![statement("deployment", says)]);
    let plan = sim.run();
    let message = &gate(&plan, SHOP, GateName::Upstream).message;
    assert!(message.contains("says that it ended Degraded at 2026-11-30T09:30:00Z"), "{message}");
    assert_eq!(sim.deployed(SHOP), None);
    // A registry that does not show them is not one that has none.
    sim.attached.clear();
    sim.facts.insert(digest("s1"), unread_records());
    let plan = sim.run();
    assert!(gate(&plan, SHOP, GateName::Upstream).unread);
    assert_eq!(sim.deployed(SHOP), None);
}

/// The same where no registry took the record of its Degraded end: what superseded it does not say that it was
/// healthy until then, nor since when somebody rewrote it to have been.
#[test]
fn a_degraded_end_that_was_rewritten_as_superseded_passes_nothing_without_a_registry() {
    for recovers in [false, true] {
        let mut sim = chain("");
        sim.records = true;
        sim.order(SHOP, "{environment: production, promotion: {mode: Manual, upstream: [{order: staging/podinfo, soak: 1h}]}}");
        same_artifact(&mut sim, "p1", 1);
        sim.run();
        sim.now = at("09:20");
        Argo::healthy_since(at("09:10")).look(&mut sim, &[STAGING]);
        sim.run();
        // What was signed then is in git's history for whoever looks for it.
        sim.sign_history(STAGING);
        let healthy = sim.serving(STAGING).unwrap().status.history[0].clone();
        sim.now = at("10:15");
        Argo::degraded_since(at("10:15")).look(&mut sim, &[STAGING]);
        sim.run();
        sim.now = at("10:50");
        if recovers {
            Argo::healthy_since(at("10:40")).look(&mut sim, &[STAGING]);
            sim.run();
        }
        sim.now = at("11:00");
        sim.preparation(STAGING, "p2", 2);
        sim.run();
        assert_eq!(sim.deployed(STAGING).as_deref(), Some("p2"));
        sim.sign_history(STAGING);

        let mut serving = (*sim.serving(STAGING).unwrap()).clone();
        let history = &mut serving.status.history;
        assert_eq!(history.len(), if recovers { 3 } else { 2 });
        let promotion_record = history[1].promotion_record;
        history.truncate(1);
        history.push(expedite::model::serving::HistoryEntry {
            ended_time: Some(history[0].promoted_time),
            ended_reason: Some(Ended::Superseded),
            healthy_until: Some(at("10:59")),
            promotion_record,
            ..healthy
        });
        sim.put_serving(&order(STAGING), serving);
        sim.promote(SHOP, "p1");
        let plan = sim.run();
        let verdict = gate(&plan, SHOP, GateName::Upstream);
        assert_eq!(verdict.outcome, GateOutcome::Waiting(For::Evidence), "{}", verdict.message);
        let why = if recovers {
            "was healthy since 2026-11-30T10:40:00Z"
        } else {
            "does not say that it was healthy"
        };
        assert!(verdict.message.contains(why), "{}", verdict.message);
        assert_eq!(sim.deployed(SHOP), None);
    }
}

fn unread_records() -> ArtifactFacts {
    let unread = Unread {
        reason: Verified::RegistryUnreachable,
        request: "GET /v2/".into(),
        status: None,
        why: "connection refused".into(),
        retryable: true,
    };
    ArtifactFacts { records: Some(Evidence::Unread(unread)), ..ArtifactFacts::default() }
}

/// How long it was seen healthy is signed by the run that superseded it.
#[test]
fn history_cannot_lengthen_what_was_seen() {
    for forged in [Some(at("13:00")), None] {
        let mut sim = soaked();
        sim.order(SHOP, "{environment: production, promotion: {mode: Manual, upstream: [{order: staging/podinfo, soak: 3h}]}}");
        // Nobody has looked since eleven.
        sim.preparation(STAGING, "p2", 2);
        sim.now = at("13:00");
        sim.run();
        assert_eq!(sim.deployed(STAGING).as_deref(), Some("p2"));
        sim.sign_history(STAGING);
        let mut serving = (*sim.serving(STAGING).unwrap()).clone();
        assert_eq!(serving.status.history[1].healthy_until, Some(at("11:00")));
        serving.status.history[1].healthy_until = forged;
        sim.put_serving(&order(STAGING), serving);
        sim.promote(SHOP, "p1");
        let plan = sim.run();
        let message = &gate(&plan, SHOP, GateName::Upstream).message;
        assert!(message.contains("it was not observed healthy after 2026-11-30T11:00:00Z"), "{message}");
        assert_eq!(sim.deployed(SHOP), None);
    }
}

#[test]
fn ran_here_before_is_proven_too() {
    let mut sim = soaked();
    sim.sign_history(STAGING);
    sim.run();
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
    sim.order(SHOP, "{environment: production, promotion: {mode: Manual, upstream: [{order: staging/podinfo, soak: 1h}]}}");
    let mut pasted = (*sim.serving(SHOP).unwrap()).clone();
    let mut entry = pasted.status.history[0].clone();
    entry.digest = digest("never");
    entry.preparation_name = preparation("never");
    pasted.status.history.push(entry);
    sim.put_serving(&order(SHOP), pasted);
    sim.preparation(SHOP, "never", 9);
    sim.promote(SHOP, "never");
    let plan = sim.run();
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"), "{:?}", row(&plan, SHOP).verdicts);
}

#[test]
fn without_records_an_approval_policy_refuses_history() {
    let mut sim = chain(&format!("{GATES}, approvals: {{requiredApprovals: 1, allowedGroups: [platform]}}"));
    same_artifact(&mut sim, "p1", 1);
    sim.run();
    let plan = sim.run();
    let verdict = gate(&plan, SHOP, GateName::Upstream);
    assert_eq!(verdict.outcome, GateOutcome::Failed);
    assert!(verdict.message.contains("keeps no signed records"), "{}", verdict.message);
}
