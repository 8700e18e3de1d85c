//! Approvals in scenarios of `docs/design/promotion.md#votes`: votes, the target, seals that hold, void seals and vetoes.

use crate::support::sim::*;
use expedite::model::approval::*;
use expedite::model::evidence::*;
use expedite::model::id::Namespace;
use expedite::model::meta::Meta;
use expedite::model::plan::*;
use expedite::model::reason::{Approved, Vote};
use expedite::model::serving::ServingStatus;
use expedite::model::time::Time;
use expedite::model::verdict::{For, GateName, GateOutcome, Verdict};
use expedite::policy::gates::ssh_vote;
use ssh_key::private::{Ed25519Keypair, KeypairData};
use ssh_key::{HashAlg, LineEnding, PrivateKey};

const SHOP: &str = "shop/podinfo";

fn at(clock: &str) -> Time {
    time(&format!("2026-11-30T{clock}:00Z"))
}

fn key(person: &str) -> PrivateKey {
    let pair = Ed25519Keypair::from_seed(&[person.as_bytes()[0]; 32]);
    PrivateKey::new(KeypairData::Ed25519(pair), person).unwrap()
}

/// A policy of `required`, `ann`, `bob` and `cleo` in platform, `eve` in interns.
fn shop(required: u32, trust: &str) -> Sim {
    let mut sim = Sim::shop();
    sim.records = true;
    sim.order(SHOP, &order_with(required));
    sim.preparation(SHOP, "p1", 1);
    let approver = |name: &str, group: &str| {
        let line = key(name).public_key().to_openssh().unwrap();
        format!(
            "{{issuer: \"https://idp.example\", subject: {name}, username: {name}, groups: [{group}], sshKeys: [\"{line}\"]}}"
        )
    };
    let people = [
        approver("ann", "platform"),
        approver("bob", "platform"),
        approver("cleo", "platform"),
        approver("eve", "interns"),
    ];
    sim.kitchen(&format!("{{approvalTrust: {trust}, approvers: [{}]}}", people.join(", ")));
    sim
}

fn order_with(required: u32) -> String {
    format!(
        "{{environment: production, promotion: {{mode: Automatic, approvals: {{requiredApprovals: {required}, allowedGroups: [platform]}}}}}}"
    )
}

fn vote(sim: &mut Sim, name: &str, person: &str, decision: Ballot, of: &str, when: Time) {
    let mut approval = Approval {
        metadata: Meta {
            name: name.into(),
            namespace: Namespace::parse("shop").ok(),
            creation_timestamp: Some(when),
            ..Meta::default()
        },
        spec: ApprovalSpec {
            preparation_ref: PreparationRef { name: preparation(of), uid: None, artifact_digest: digest(of) },
            approver: Approver {
                issuer: "https://idp.example".into(),
                subject: person.into(),
                username: person.into(),
                email: None,
                groups: vec!["platform".into()],
            },
            decision,
            comment: None,
            submitted_time: when,
            signature: None,
        },
    };
    let namespace = Namespace::parse("shop").unwrap();
    let message = ssh_vote::build_vote_bytes(&namespace, &preparation(of), digest(of), decision, when);
    let signature = key(person).sign(ssh_vote::NAMESPACE, HashAlg::Sha512, &message).unwrap();
    approval.spec.signature = Some(signature.to_pem(LineEnding::LF).unwrap());
    sim.world.approvals.insert((namespace, name.into()), loaded(approval, "approvals.yaml"));
}

fn row(plan: &Plan) -> &PlanRow {
    plan.rows.iter().find(|r| r.order == order(SHOP)).unwrap()
}

fn gate(plan: &Plan) -> &Verdict {
    row(plan).verdicts.iter().find(|v| v.gate == GateName::Approvals).expect("there is a candidate")
}

fn status(sim: &Sim) -> ServingStatus {
    sim.serving(SHOP).unwrap().status.clone()
}

/// A run as it really goes: what is sealed is attached, and then it decides again.
fn run(sim: &mut Sim) -> Plan {
    let plan = sim.plan();
    if row(&plan).seal.is_some() {
        sim.seal(&plan);
    }
    sim.run()
}

#[test]
fn votes_are_counted_sealed_and_the_seal_passes() {
    let mut sim = shop(2, "Signed");
    let plan = run(&mut sim);
    let verdict = gate(&plan);
    assert_eq!(
        verdict.outcome,
        GateOutcome::Waiting(For::Person(vec!["ann".into(), "bob".into(), "cleo".into()]))
    );
    assert_eq!(verdict.message, "0 of 2 approvals from platform; may vote: ann, bob, cleo");
    assert_eq!(sim.reason(SHOP, "Approved"), "AwaitingApprovals");
    assert_eq!(status(&sim).target_preparation_name, Some(preparation("p1")));
    assert_eq!(status(&sim).target_since, Some(at("09:00")));

    sim.now = at("10:00");
    vote(&mut sim, "v1", "ann", Ballot::Approve, "p1", at("09:30"));
    let plan = run(&mut sim);
    assert_eq!(gate(&plan).message, "1 of 2 approvals from platform (by ann); may vote: bob, cleo");
    assert_eq!(row(&plan).seal, None);

    vote(&mut sim, "v2", "bob", Ballot::Approve, "p1", at("09:45"));
    let plan = sim.plan();
    assert_eq!(
        gate(&plan).message,
        "enough approvals (by ann, bob); their seal is missing, and the run attaches it"
    );
    let request = row(&plan).seal.clone().unwrap();
    assert_eq!((request.result, request.sealed_time), (Approved::Approved, at("09:45")));
    assert_eq!(request.votes.len(), 2);
    sim.now = at("10:30");
    assert_eq!(row(&sim.plan()).seal.clone().unwrap(), request, "its bytes are no function of the clock");

    let plan = run(&mut sim);
    assert_eq!(gate(&plan).message, "approved and sealed at 2026-11-30T09:45:00Z, by ann, bob");
    assert_eq!(gate(&plan).evidence[0].kind, "approval");
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
    assert_eq!(sim.reason(SHOP, "Approved"), "Approved");
    let approval = status(&sim).approval.unwrap();
    assert_eq!((approval.sealed_time, approval.votes.len()), (Some(at("09:45")), 2));

    sim.now = at("12:00");
    let plan = run(&mut sim);
    assert!(matches!(row(&plan).serving, ServingPlan::Keep), "nothing changes any more");
    assert_eq!(sim.reason(SHOP, "Approved"), "Approved");
}

/// Not only where there are upstream stages: who approved, and what was healthy here, would be anybody's word.
#[test]
fn without_records_no_policy_is_met_and_every_plan_says_so() {
    let mut sim = shop(1, "Signed");
    sim.records = false;
    run(&mut sim);
    sim.now = at("10:00");
    vote(&mut sim, "v1", "ann", Ballot::Approve, "p1", at("09:30"));
    let told = |plan: &Plan| plan.notices.iter().filter(|n| n.code == "no-records").count();
    for _ in 0..2 {
        let plan = run(&mut sim);
        assert_eq!(gate(&plan).outcome, GateOutcome::Failed);
        assert!(gate(&plan).message.contains("keeps no signed records"), "{}", gate(&plan).message);
        assert_eq!((row(&plan).seal.as_ref(), told(&plan)), (None, 1));
        assert_eq!(sim.deployed(SHOP), None);
    }
    sim.records = true;
    let plan = run(&mut sim);
    assert_eq!((sim.deployed(SHOP).as_deref(), told(&plan)), (Some("p1"), 0));
}

#[test]
fn votes_cast_before_it_is_the_target_are_sealed_once_that_is_committed() {
    let mut sim = shop(1, "Signed");
    vote(&mut sim, "v1", "ann", Ballot::Approve, "p1", at("08:00"));
    let plan = run(&mut sim);
    assert_eq!(row(&plan).seal, None, "a run's own clock seals nothing");
    assert_eq!(sim.reason(SHOP, "Approved"), "SealingApprovals");
    sim.now = at("09:10");
    let plan = sim.plan();
    assert_eq!(
        row(&plan).seal.as_ref().unwrap().sealed_time,
        at("09:00"),
        "the moment of becoming the target"
    );
    run(&mut sim);
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
}

/// A run whose clock was two years ahead made it the target: that keeps nobody waiting for two years.
#[test]
fn a_clock_two_years_ahead_keeps_no_votes_from_being_sealed() {
    let mut sim = shop(1, "Signed");
    let right = sim.now;
    sim.now = time("2028-11-30T09:00:00Z");
    run(&mut sim);
    assert_eq!(status(&sim).target_since, Some(sim.now));
    sim.now = right;
    vote(&mut sim, "v1", "ann", Ballot::Approve, "p1", at("08:00"));
    let ahead = |plan: &Plan| {
        let found: Vec<_> = row(plan).warnings.iter().filter(|w| w.code == "clock-ahead").cloned().collect();
        found
    };
    let plan = run(&mut sim);
    assert_eq!(row(&plan).seal, None, "nothing is sealed by a time to come");
    assert!(ahead(&plan)[0].cause.contains("2028-11-30T09:00:00Z"), "{:?}", ahead(&plan));
    assert_eq!(status(&sim).target_since, Some(right));
    sim.now = at("09:10");
    let plan = sim.plan();
    assert_eq!(row(&plan).seal.as_ref().unwrap().sealed_time, right);
    assert_eq!(ahead(&plan), []);
    run(&mut sim);
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
}

#[test]
fn nothing_is_sealed_that_is_not_the_target() {
    let mut sim = shop(1, "Signed");
    run(&mut sim);
    vote(&mut sim, "v1", "ann", Ballot::Approve, "p1", at("09:00"));
    sim.preparation(SHOP, "p2", 2);
    let plan = run(&mut sim);
    assert_eq!(row(&plan).candidate.as_ref().unwrap().name, preparation("p2"));
    assert_eq!(gate(&plan).message, "0 of 1 approvals from platform; may vote: ann, bob, cleo");
    assert_eq!(row(&plan).seal, None, "p1 stopped being the target");
    // Nor while an earlier gate does not pass.
    sim.preparation_with(SHOP, "p3", 3, "signed: false");
    vote(&mut sim, "v3", "ann", Ballot::Approve, "p3", at("09:00"));
    let plan = run(&mut sim);
    assert!(!row(&plan).verdicts[0].is_passed());
    assert_eq!(row(&plan).seal, None);
}

#[test]
fn a_seal_under_another_policy_is_newer_than_the_void_one() {
    let mut sim = shop(1, "Signed");
    let window = "mode: Automatic, windows: [{timezone: UTC, from: \"20:00\", to: \"21:00\"}]";
    let closed = order_with(1).replace("mode: Automatic", window);
    sim.order(SHOP, &closed.replace("[platform]", "[platform, interns]"));
    run(&mut sim);
    sim.now = at("09:30");
    vote(&mut sim, "v1", "ann", Ballot::Approve, "p1", at("09:20"));
    vote(&mut sim, "v2", "eve", Ballot::Approve, "p1", at("09:20"));
    assert!(gate(&run(&mut sim)).is_passed());
    // The same votes are enough under the new policy, at the same time: a tie would never be decided for it.
    sim.order(SHOP, &closed);
    let request = row(&sim.plan()).seal.clone().unwrap();
    assert_eq!(request.sealed_time, time("2026-11-30T09:20:01Z"));
    let plan = run(&mut sim);
    assert!(gate(&plan).is_passed(), "{:?}", gate(&plan));
    assert_eq!(row(&plan).seal, None);
}

#[test]
fn a_reject_between_seal_and_deployment_voids_the_seal_and_is_sealed() {
    let mut sim = shop(1, "Signed");
    sim.order(
        SHOP,
        &order_with(1).replace(
            "mode: Automatic",
            "mode: Automatic, windows: [{timezone: UTC, from: \"20:00\", to: \"21:00\"}]",
        ),
    );
    run(&mut sim);
    sim.now = at("09:30");
    vote(&mut sim, "v1", "ann", Ballot::Approve, "p1", at("09:20"));
    let plan = run(&mut sim);
    assert!(gate(&plan).is_passed(), "sealed, and held by the window: {:?}", row(&plan).verdicts);
    assert_eq!(sim.deployed(SHOP), None);
    sim.now = at("11:00");
    vote(&mut sim, "v2", "bob", Ballot::Reject, "p1", at("10:00"));
    let plan = sim.plan();
    let request = row(&plan).seal.clone().unwrap();
    assert_eq!((request.result, request.sealed_time), (Approved::ChangesRequested, at("10:00")));
    let plan = run(&mut sim);
    assert_eq!(gate(&plan).message, "bob rejects it; the same approver may vote again");
    assert_eq!(sim.reason(SHOP, "Approved"), "ChangesRequested");
    sim.now = at("20:30");
    let plan = run(&mut sim);
    assert_eq!((sim.deployed(SHOP), row(&plan).seal.clone()), (None, None));
    vote(&mut sim, "v3", "bob", Ballot::Approve, "p1", at("20:10"));
    run(&mut sim);
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
    assert_eq!(status(&sim).approval.unwrap().sealed_time, Some(at("20:10")));
}

#[test]
fn a_vote_after_the_seal_is_told_and_changes_nothing() {
    let mut sim = shop(1, "Signed");
    sim.order(
        SHOP,
        &order_with(1).replace(
            "mode: Automatic",
            "mode: Automatic, windows: [{timezone: UTC, from: \"20:00\", to: \"21:00\"}]",
        ),
    );
    run(&mut sim);
    vote(&mut sim, "v1", "ann", Ballot::Approve, "p1", at("09:00"));
    run(&mut sim);
    sim.now = at("11:00");
    vote(&mut sim, "v2", "bob", Ballot::Approve, "p1", at("10:00"));
    let plan = run(&mut sim);
    assert_eq!(row(&plan).seal, None);
    let votes = status(&sim).approval.unwrap().votes;
    let reasons: Vec<Vote> = votes.iter().map(|v| v.reason).collect();
    assert_eq!(reasons, [Vote::Counted, Vote::SubmittedAfterSeal]);
}

/// B45: a seal under a policy of 1 does not pass one of 2.
#[test]
fn b45_a_seal_under_a_weaker_policy_is_void_and_the_votes_count_again() {
    let mut sim = shop(1, "Signed");
    let closed = |required| {
        order_with(required).replace(
            "mode: Automatic",
            "mode: Automatic, windows: [{timezone: UTC, from: \"20:00\", to: \"21:00\"}]",
        )
    };
    sim.order(SHOP, &closed(1));
    run(&mut sim);
    vote(&mut sim, "v1", "ann", Ballot::Approve, "p1", at("09:00"));
    run(&mut sim);
    assert!(gate(&sim.plan()).is_passed());
    sim.order(SHOP, &closed(2));
    let plan = run(&mut sim);
    assert_eq!(
        gate(&plan).message,
        "1 of 2 approvals from platform (by ann); the seal that is there was made under a weaker policy and is void; may vote: bob, cleo"
    );
    sim.now = at("20:00");
    vote(&mut sim, "v2", "bob", Ballot::Approve, "p1", at("19:00"));
    run(&mut sim);
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
    // The other way round it holds: a stricter seal passes a weaker policy.
    let mut sim = shop(2, "Signed");
    sim.order(SHOP, &closed(2));
    run(&mut sim);
    vote(&mut sim, "v1", "ann", Ballot::Approve, "p1", at("09:00"));
    vote(&mut sim, "v2", "bob", Ballot::Approve, "p1", at("09:00"));
    run(&mut sim);
    sim.order(SHOP, &closed(1));
    assert!(gate(&run(&mut sim)).is_passed());
}

/// Whatever else a signed seal says: it passes by one word.
#[test]
fn case_37_a_seal_of_another_word_passes_nothing() {
    for (word, passes) in [
        ("Approved", true),
        ("approved", false),
        ("Approved ", false),
        ("AwaitingApprovals", false),
        ("ChangesRequested", false),
        ("ApprovalNotRequired", false),
    ] {
        let mut sim = shop(1, "Signed");
        run(&mut sim);
        vote(&mut sim, "v1", "ann", Ballot::Approve, "p1", at("09:00"));
        let plan = sim.plan();
        sim.seal(&plan);
        sim.world.approvals.clear();
        for facts in sim.extra.values_mut() {
            for seal in facts.approvals.values_mut() {
                let Evidence::Proven(seal) = seal else { panic!("{seal:?}") };
                word.clone_into(&mut seal.result);
            }
        }
        // The first of these runs finds the seal, the next reads the evidence, too.
        sim.run();
        let plan = sim.run();
        assert_eq!(gate(&plan).is_passed(), passes, "{word:?}: {}", gate(&plan).message);
        assert_eq!(sim.deployed(SHOP).is_some(), passes, "{word:?}");
    }
}

#[test]
fn the_strictest_policy_of_order_environment_and_preparation_counts() {
    let mut sim = shop(1, "Signed");
    let policy = |n: u32, groups: &str| format!("{{requiredApprovals: {n}, allowedGroups: [{groups}]}}");
    sim.environment(
        "production",
        &format!("{{clusters: [eu-1], promotion: {{approvals: {}}}}}", policy(2, "platform, interns")),
    );
    let plan = run(&mut sim);
    assert_eq!(gate(&plan).message, "0 of 2 approvals from platform; may vote: ann, bob, cleo");
    sim.environment(
        "production",
        &format!("{{clusters: [eu-1], promotion: {{approvals: {}}}}}", policy(1, "interns")),
    );
    let plan = run(&mut sim);
    assert_eq!(gate(&plan).outcome, GateOutcome::Failed);
    assert_eq!(
        gate(&plan).message,
        "no group may approve: the policies have none in common (Order: platform; Environment: interns)"
    );
}

#[test]
fn push_rights_without_a_key_approve_nothing() {
    let mut sim = shop(1, "Signed");
    run(&mut sim);
    vote(&mut sim, "v1", "eve", Ballot::Approve, "p1", at("09:00"));
    let stolen = sim.world.approvals.values().next().unwrap().object.clone();
    let mut forged = Approval::clone(&stolen);
    forged.metadata.name = "v2".into();
    forged.spec.approver.subject = "ann".into();
    let namespace = Namespace::parse("shop").unwrap();
    sim.world.approvals.insert((namespace, "v2".into()), loaded(forged, "approvals.yaml"));
    let plan = run(&mut sim);
    assert_eq!(
        gate(&plan).message,
        "0 of 1 approvals from platform; not counted: v2 by eve (SignatureInvalid), v1 by eve (NotEligible); may vote: ann, bob, cleo"
    );
    assert_eq!(sim.deployed(SHOP), None);
}

#[test]
fn a_vote_deleted_or_flipped_after_it_was_given_still_counts() {
    let mut sim = shop(2, "Signed");
    run(&mut sim);
    vote(&mut sim, "v1", "ann", Ballot::Approve, "p1", at("09:00"));
    run(&mut sim);
    sim.world.approvals.clear();
    vote(&mut sim, "v2", "bob", Ballot::Approve, "p1", at("09:00"));
    run(&mut sim);
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
}

#[test]
fn a_seal_that_the_registry_no_longer_shows_is_unread_and_not_absent() {
    let mut sim = shop(1, "Signed");
    sim.order(
        SHOP,
        &order_with(1).replace(
            "mode: Automatic",
            "mode: Automatic, windows: [{timezone: UTC, from: \"20:00\", to: \"21:00\"}]",
        ),
    );
    run(&mut sim);
    vote(&mut sim, "v1", "ann", Ballot::Approve, "p1", at("09:00"));
    run(&mut sim);
    sim.extra.clear();
    let plan = sim.run();
    let verdict = gate(&plan);
    assert!(verdict.unread);
    assert!(
        verdict.message.starts_with(
            "the votes were sealed at 2026-11-30T09:00:00Z, but the registry does not list that seal"
        ),
        "{}",
        verdict.message
    );
    assert_eq!(row(&plan).seal, None);
}

#[test]
fn under_repository_trust_every_plan_says_so() {
    let mut sim = shop(1, "Repository");
    run(&mut sim);
    let plan = run(&mut sim);
    assert!(
        gate(&plan)
            .message
            .ends_with("votes are trusted because they are in the repository (approvalTrust: Repository)"),
        "{}",
        gate(&plan).message
    );
}

#[test]
fn votes_are_not_asked_for_where_no_policy_is() {
    let mut sim = Sim::shop();
    sim.order(SHOP, "{environment: production, promotion: {mode: Automatic}}");
    sim.preparation(SHOP, "p1", 1);
    let plan = run(&mut sim);
    assert_eq!(gate(&plan).message, "no approval is needed");
    assert_eq!(sim.reason(SHOP, "Approved"), "ApprovalNotRequired");
}

/// The queue: what was asked for waits for its gate, and a policy that came later holds it, too.
#[test]
fn b61_a_queued_promotion_that_now_needs_approval_is_held_and_not_dropped() {
    let mut sim = shop(1, "Signed");
    let manual = "{environment: production, promotion: {mode: Manual, windows: [{timezone: UTC, from: \"20:00\", to: \"21:00\"}]}}";
    sim.order(SHOP, manual);
    sim.promote(SHOP, "p1");
    run(&mut sim);
    assert_eq!(status(&sim).queued.unwrap().waits_for, "Window");
    sim.order(SHOP, &order_with(1).replace("Automatic", "Manual"));
    run(&mut sim);
    let queued = status(&sim).queued.unwrap();
    assert_eq!((queued.preparation_name, queued.waits_for.as_str()), (preparation("p1"), "Approvals"));
    vote(&mut sim, "v1", "ann", Ballot::Approve, "p1", at("09:00"));
    run(&mut sim);
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
    assert_eq!(status(&sim).queued, None);
}

#[test]
fn an_unread_seal_waits_for_the_registry() {
    let mut sim = shop(1, "Signed");
    run(&mut sim);
    vote(&mut sim, "v1", "ann", Ballot::Approve, "p1", at("09:00"));
    let unread = Unread {
        reason: expedite::model::reason::Verified::RegistryUnreachable,
        request: "GET /v2/".into(),
        status: None,
        why: "connection refused".into(),
        retryable: true,
    };
    let of = SealOf { order: order(SHOP), preparation: preparation("p1"), uid: None };
    sim.extra.entry(digest("p1")).or_default().approvals.insert(of, Evidence::Unread(unread));
    let plan = sim.run();
    assert!(gate(&plan).unread);
    assert_eq!(gate(&plan).outcome, GateOutcome::Waiting(For::Registry));
    assert_eq!(row(&plan).seal, None);
}

/// With push rights one writes files and a Serving's memory; under `Cluster` neither is the API server's word.
#[test]
fn under_cluster_trust_a_vote_in_a_file_or_in_a_servings_memory_approves_nothing() {
    let mut sim = shop(1, "Cluster");
    run(&mut sim);
    vote(&mut sim, "v1", "ann", Ballot::Approve, "p1", at("09:00"));
    let plan = run(&mut sim);
    assert_eq!(
        gate(&plan).message,
        "0 of 1 approvals from platform; not counted: v1 by ann (SignatureMissing); may vote: ann, bob, cleo"
    );
    assert!(
        row(&plan).warnings.iter().any(|w| w.cause.contains("comes from a file")),
        "{:?}",
        row(&plan).warnings
    );
    let mut pasted = (*sim.serving(SHOP).unwrap()).clone();
    for vote in &mut pasted.status.approval.as_mut().unwrap().votes {
        (vote.counted, vote.reason) = (true, Vote::Counted);
    }
    sim.put_serving(&order(SHOP), pasted);
    sim.world.approvals.clear();
    run(&mut sim);
    assert_eq!(sim.deployed(SHOP), None);
    // The same vote, as an API server shows it.
    vote(&mut sim, "v1", "ann", Ballot::Approve, "p1", at("09:00"));
    for paper in sim.world.approvals.values_mut() {
        paper.origin.source = "cluster:prod".into();
    }
    run(&mut sim);
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
}
