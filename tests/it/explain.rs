//! What `explain` adds to a plan: all that holds is read and told at once, with who has to do what.

use crate::support::sim::*;
use expedite::model::evidence::{ArtifactFacts, Evidence, Looked};
use expedite::model::id::OrderName;
use expedite::model::plan::{Explained, Plan};
use expedite::model::verdict::{GateName, GateOutcome};
use expedite::policy::decide::forecast::explain_order;
use expedite::policy::gates;

const SHOP: &str = "shop/podinfo";

/// What a person gets to see: every verdict's gate and outcome, and what is known besides.
fn explain(sim: &mut Sim) -> (Plan, Explained) {
    let (cases, mut facts, mut context) = sim.judged();
    context.explained = Some(OrderName::parse("podinfo").unwrap());
    facts.artifacts.clear();
    for ask in gates::collect_asks(&cases, &context) {
        let known = sim.known(&ask);
        facts.artifacts.insert(ask.artifact, known);
    }
    let plan = expedite::policy::decide::decide_plan(
        &cases,
        &facts,
        &sim.world,
        &sim.gitops,
        &context,
        &sim.options,
    );
    let row = plan.rows.iter().find(|r| r.order == order(SHOP)).unwrap();
    let more = explain_order(&cases, &order(SHOP), &row.verdicts, &facts, &context);
    (plan, more)
}

fn steps(more: &Explained) -> Vec<(GateName, &str)> {
    more.steps.iter().map(|s| (s.gate, s.what.as_str())).collect()
}

#[test]
fn every_gate_answers_at_once_though_the_first_one_holds() {
    let mut sim = Sim::shop();
    sim.order("staging/podinfo", "{environment: dev, promotion: {mode: Manual}}");
    sim.order(SHOP, "{environment: production, promotion: {mode: Automatic, upstream: [{order: staging/podinfo}], approvals: {requiredApprovals: 1, allowedGroups: [platform]}, checks: [{name: scan, vulnerabilities: {maxAge: 24h}}], windows: [{timezone: UTC, from: \"20:00\", to: \"21:00\"}]}}");
    sim.kitchen("{approvalTrust: Repository, approvers: [{issuer: i, subject: \"1\", username: ann, groups: [platform]}]}");
    sim.records = true;
    sim.preparation(SHOP, "p1", 1);
    sim.run();
    let plan = sim.run();
    let not_read = |plan: &Plan| {
        let row = plan.rows.iter().find(|r| r.order == order(SHOP)).unwrap();
        let unread = |o: &GateOutcome| *o == GateOutcome::Waiting(expedite::model::verdict::For::AnotherGate);
        row.verdicts.iter().filter(|v| unread(&v.outcome)).map(|v| v.gate).collect::<Vec<_>>()
    };
    assert_eq!(not_read(&plan), [GateName::Checks, GateName::Evidence], "a plan saves the requests");
    let (plan, more) = explain(&mut sim);
    assert_eq!(not_read(&plan), [], "whoever asks gets the whole answer");
    let said = steps(&more);
    assert_eq!(said.len(), 4, "{said:?}");
    assert_eq!(
        said[0],
        (
            GateName::Upstream,
            "the owner of staging/podinfo: `expedite explain staging/podinfo` shows what it waits for"
        )
    );
    assert!(said[1].1.starts_with("the operator of these checks: sign and attach"), "{said:?}");
    assert_eq!(said[2], (GateName::Approvals, "ann: `expedite approve shop/podinfo p1 --as NAME`"));
    assert_eq!(said[3], (GateName::Window, "no action needed: it passes at 2026-11-30T20:00:00Z"));
    assert_eq!(more.idle, None);
}

/// Under Automatic nothing is queued; `get` says all the same what the newest one waits for.
#[test]
fn what_waits_is_read_back_from_what_was_committed() {
    let upstream = "upstream: [{order: staging/podinfo}]";
    for (gates, waits_for) in [
        ("", "Evidence"),
        (upstream, "Upstream"),
        ("checks: [{name: scan, vulnerabilities: {maxAge: 24h}}]", "Checks"),
        ("approvals: {requiredApprovals: 1, allowedGroups: [platform]}", "Approvals"),
        ("windows: [{timezone: UTC, from: \"20:00\", to: \"21:00\"}]", "Window"),
        ("signed", "Ready"),
    ] {
        for (mode, deployed) in
            [("Automatic", true), ("Automatic", false), ("Manual", true), ("Manual", false)]
        {
            let mut sim = Sim::shop();
            sim.order("staging/podinfo", "{environment: dev, promotion: {mode: Manual}}");
            let open = |mode: &str, gates: &str| {
                format!("{{environment: production, promotion: {{mode: {mode}, {gates}}}}}")
            };
            sim.order(SHOP, &open("Automatic", ""));
            if deployed {
                sim.preparation(SHOP, "p1", 1);
                sim.run();
            }
            sim.preparation_with(SHOP, "p2", 2, &format!("signed: {}", gates != "signed"));
            if gates.is_empty() {
                sim.facts.insert(digest("p2"), missing());
            }
            sim.order(SHOP, &open(mode, if gates == "signed" { "" } else { gates }));
            if mode == "Manual" {
                sim.promote(SHOP, "p2");
            }
            let plan = sim.run();
            let row = plan.rows.iter().find(|r| r.order == order(SHOP)).unwrap();
            let held = row.find_waiting_gate().map(|v| v.gate.to_string());
            if let Some(serving) = sim.serving(SHOP) {
                let waits = serving.status.find_wait();
                let waits = waits.map(|(name, gate)| (name.to_string(), gate.to_string()));
                assert_eq!(waits, Some(("p2".to_owned(), waits_for.to_owned())), "{mode} {deployed}");
            }
            assert_eq!(held.as_deref(), Some(waits_for));
        }
    }
    let mut sim = Sim::shop();
    sim.order(SHOP, "{environment: production, promotion: {mode: Automatic}}");
    sim.preparation(SHOP, "p1", 1);
    sim.run();
    assert_eq!(sim.serving(SHOP).unwrap().status.find_wait(), None);
}

fn missing() -> ArtifactFacts {
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
fn where_nothing_is_a_candidate_it_says_why() {
    let idle = |sim: &mut Sim| explain(sim).1.idle.unwrap();
    let mut sim = Sim::shop();
    sim.order(SHOP, "{environment: production, promotion: {mode: Manual}}");
    assert_eq!(idle(&mut sim), "it has no Ready Preparation");
    sim.preparation(SHOP, "p1", 1);
    assert_eq!(
        idle(&mut sim),
        "the newest Ready Preparation, p1, was not requested: `expedite promote shop/podinfo p1`"
    );
    sim.promote(SHOP, "p1");
    sim.run();
    assert_eq!(idle(&mut sim), "p1, the newest Ready Preparation, is already deployed");
    sim.preparation(SHOP, "p2", 2);
    sim.promote(SHOP, "p2");
    sim.run();
    sim.promote(SHOP, "p1");
    sim.run();
    sim.order(SHOP, "{environment: production, promotion: {mode: Automatic}}");
    assert_eq!(
        idle(&mut sim),
        "p2, the newest Ready Preparation, ran here before, and Automatic never promotes the same one twice"
    );
}
