//! Each gate, passing and holding, in scenarios of `promotion.md`: without git, YAML or a registry.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/argo.rs"]
mod argo;
#[path = "support/sim.rs"]
mod sim;

use argo::{Argo, at, edit};
use expedite::model::evidence::*;
use expedite::model::id::*;
use expedite::model::plan::*;
use expedite::model::reason::{Ended, Verified};
use expedite::model::time::Span;
use expedite::model::verdict::{For, GateName, Outcome, Verdict};
use serde_json::{Value, json};
use sim::*;
use std::sync::Arc;

const SHOP: &str = "shop/podinfo";
const STAGING: &str = "staging/podinfo";

fn row<'p>(plan: &'p Plan, of: &str) -> &'p Row {
    plan.rows.iter().find(|r| r.order == order(of)).unwrap()
}

fn gate<'p>(plan: &'p Plan, of: &str, gate: GateName) -> &'p Verdict {
    row(plan, of).verdicts.iter().find(|v| v.gate == gate).expect("there is a candidate")
}

fn with(gates: &str) -> String {
    format!("{{environment: production, promotion: {{mode: Automatic, {gates}}}}}")
}

/// What the Upstream gate says, without the reminder that history was taken at its word.
fn upstream_says(plan: &Plan) -> String {
    let told = "; judged by history alone: this repository keeps no signed records";
    let message = &gate(plan, SHOP, GateName::Upstream).message;
    message.strip_suffix(told).expect("it is said").to_owned()
}

/// `staging/podinfo` in dev, and `shop/podinfo` in production behind it.
fn chain(gates: &str) -> Sim {
    let mut sim = Sim::shop();
    sim.order(STAGING, "{environment: dev, promotion: {mode: Automatic}}");
    sim.order(SHOP, &with(gates));
    sim
}

/// The same artifact rendered for both Orders of [`chain`].
fn same_artifact(sim: &mut Sim, name: &str, minute: u64) {
    let artifact = format!("signed: true}}, source: {{baseDigest: \"{}\"", digest("base"));
    for of in [STAGING, SHOP] {
        sim.preparation_of(of, name, minute, name, &artifact);
    }
}

mod window {
    use super::*;

    #[test]
    fn inside_it_passes_and_outside_it_waits_for_the_next_opening() {
        // 2026-11-30 is a Monday, 09:00Z is 10:00 in Zurich.
        let gates = "windows: [{timezone: Europe/Zurich, days: [Mon], from: \"09:00\", to: \"10:30\"}]";
        let mut sim = Sim::shop();
        sim.order(SHOP, &with(gates));
        sim.preparation(SHOP, "p1", 1);
        sim.now = at("07:59");
        let plan = sim.run();
        let held = gate(&plan, SHOP, GateName::Window);
        assert_eq!(held.outcome, Outcome::Waiting(For::Instant(at("08:00"))));
        assert_eq!(
            held.message,
            "outside the window Mon 09:00 to 10:30 Europe/Zurich; open from 2026-11-30T08:00:00Z"
        );
        sim.now = at("08:00");
        let plan = sim.run();
        assert!(gate(&plan, SHOP, GateName::Window).is_passed());
        assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
    }

    #[test]
    fn an_environments_freeze_holds_every_order_there_and_a_cluster_that_joins() {
        let mut sim = Sim::shop();
        sim.order(SHOP, &with(""));
        sim.preparation(SHOP, "p1", 1);
        sim.run();
        let freeze = "freezes: [{from: 2026-11-30T10:00:00Z, to: 2026-11-30T12:00:00Z, reason: sale}]";
        sim.cluster("ap-1", "https://ap-1.example");
        sim.environment("production", &format!("{{clusters: [ap-1, eu-1, us-1], promotion: {{{freeze}}}}}"));
        sim.preparation(SHOP, "p2", 2);
        sim.now = at("10:00");
        let plan = sim.run();
        assert_eq!(
            gate(&plan, SHOP, GateName::Window).message,
            "a freeze from 2026-11-30T10:00:00Z to 2026-11-30T12:00:00Z (sale); open from 2026-11-30T12:00:00Z"
        );
        assert_eq!(sim.pinned(SHOP).len(), 2, "a Cluster does not join in a freeze");
        sim.now = at("12:00");
        sim.run();
        assert_eq!(sim.pinned(SHOP).len(), 3);
        assert_eq!(sim.deployed(SHOP).as_deref(), Some("p2"));
    }

    #[test]
    fn a_cluster_joins_outside_the_windows_of_promotions() {
        let mut sim = Sim::shop();
        sim.order(SHOP, &with("windows: [{timezone: UTC, from: \"09:00\", to: \"10:00\"}]"));
        sim.preparation(SHOP, "p1", 1);
        sim.run();
        sim.cluster("ap-1", "https://ap-1.example");
        sim.environment("production", "{clusters: [ap-1, eu-1, us-1]}");
        sim.now = at("13:00");
        sim.run();
        assert_eq!(sim.pinned(SHOP).len(), 3);
    }

    #[test]
    fn a_rollback_to_what_was_healthy_here_is_not_held() {
        let manual = "{environment: production, promotion: {mode: Manual, windows: [{timezone: UTC, from: \"09:00\", to: \"10:00\"}]}}";
        let mut sim = Sim::shop();
        sim.order(SHOP, manual);
        for (name, minute) in [("p1", 1), ("p2", 2), ("p3", 3)] {
            sim.preparation(SHOP, name, minute);
        }
        sim.promote(SHOP, "p1");
        sim.run();
        sim.now = at("09:05");
        Argo::healthy_since(at("09:01")).look(&mut sim, &[]);
        sim.run();
        sim.promote(SHOP, "p2");
        sim.run();
        assert_eq!(sim.deployed(SHOP).as_deref(), Some("p2"));
        sim.now = at("20:00");
        sim.promote(SHOP, "p1");
        let plan = sim.run();
        assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"), "{:?}", row(&plan, SHOP).verdicts);
        sim.promote(SHOP, "p3");
        sim.run();
        assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"), "what never ran here waits for the window");
        sim.promote(SHOP, "p2");
        sim.run();
        assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"), "p2 was never seen healthy here");
    }

    #[test]
    fn a_run_promotes_no_more_than_it_may() {
        let mut sim = Sim::shop();
        for name in ["a", "b", "c"] {
            sim.order(&format!("shop/{name}"), &with(""));
            sim.preparation(&format!("shop/{name}"), &format!("{name}1"), 1);
        }
        sim.options.max_promotions = Some(2);
        let plan = sim.run();
        assert!(sim.deployed("shop/a").is_some() && sim.deployed("shop/b").is_some());
        assert_eq!(sim.deployed("shop/c"), None);
        let held = gate(&plan, "shop/c", GateName::Window);
        assert_eq!(held.outcome, Outcome::Waiting(For::LaterRun));
        assert_eq!(
            held.message,
            "limits.maxPromotions allows 2 promotions a run; it is promoted by a later run"
        );
        sim.run();
        assert!(sim.deployed("shop/c").is_some());
    }
}

mod upstream {
    use super::*;

    #[test]
    fn a_soak_is_waited_for_to_the_minute_and_must_be_seen_to_end() {
        let mut sim = chain("upstream: [{order: staging/podinfo, soak: 1h}]");
        same_artifact(&mut sim, "p1", 1);
        let plan = sim.run();
        assert_eq!(sim.deployed(STAGING).as_deref(), Some("p1"), "the start of the chain goes first");
        assert_eq!(
            upstream_says(&plan),
            "staging/podinfo has not run this change; nothing is deployed there"
        );
        sim.now = at("09:10");
        Argo::healthy_since(at("09:10")).look(&mut sim, &[]);
        let plan = sim.run();
        let waits = gate(&plan, SHOP, GateName::Upstream);
        assert_eq!(waits.outcome, Outcome::Waiting(For::Instant(at("10:10"))));
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
            Outcome::Waiting(For::Instant(at("11:20"))),
            "its recovery soaks anew"
        );
        let history = sim.serving(STAGING).unwrap().status.history.clone();
        assert_eq!(history.len(), 2);
        assert_eq!(history[0].promoted_time, history[1].promoted_time);
        assert_eq!(history[0].first_healthy_time, Some(at("10:20")));
        assert_eq!(
            (history[1].ended_reason, history[1].ended_time),
            (Some(Ended::Degraded), Some(at("10:00")))
        );
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
        sim.preparation_with(STAGING, "s1", 1, &source("base"));
        sim.preparation_with(SHOP, "p1", 1, &source("base"));
        sim.run();
        Argo::healthy_since(at("09:00")).look(&mut sim, &[]);
        let plan = sim.run();
        let message = upstream_says(&plan);
        assert!(
            message
                .ends_with("the candidate's signed provenance does not list it among what it was made from"),
            "a base digest pasted into a Preparation passes nothing: {message}"
        );
        sim.dependencies.insert(digest("base"));
        sim.run();
        assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
    }

    #[test]
    fn an_unread_provenance_is_not_a_missing_one() {
        let source = |base: &str| format!("signed: true}}, source: {{baseDigest: \"{}\"", digest(base));
        let mut sim = chain("upstream: [{order: staging/podinfo}]");
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
        assert_eq!(verdict.outcome, Outcome::Waiting(For::Registry));
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
        assert_eq!(verdict.outcome, Outcome::Waiting(For::Order(order("eu/podinfo"))));
        assert!(verdict.message.contains("us/podinfo ran this change"), "{}", verdict.message);
        sim.now = at("09:30");
        Argo::healthy_since(at("09:30")).look(&mut sim, &["eu/podinfo"]);
        let plan = sim.run();
        assert_eq!(
            gate(&plan, SHOP, GateName::Upstream).outcome,
            Outcome::Waiting(For::Instant(at("10:30")))
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
        sim.environment(
            "production",
            "{clusters: [us-1], promotion: {upstream: [{order: staging/podinfo}]}}",
        );
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
        assert_eq!(
            errors(&mut sim, "b/x"),
            ["its upstream stages wait for each other: b/x → c/x → a/x → b/x"]
        );
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
            Outcome::Waiting(For::Instant(at("09:15"))),
            "within five minutes it is told"
        );
        assert_eq!(sim.deployed(SHOP), None);
    }
}

mod proof_of_upstream {
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
        assert_eq!(gate(&plan, SHOP, GateName::Upstream).outcome, Outcome::Waiting(For::Evidence));
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
        pasted.promotion_record = Some(Digest::of(b"a record of something else"));
        pasted.deployment_record = Some(Digest::of(b"another"));
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
        assert_eq!(
            gate(&plan, SHOP, GateName::Upstream).evidence.len(),
            4,
            "its two records and the next one"
        );
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
        let mut sim =
            chain(&format!("{GATES}, approvals: {{requiredApprovals: 1, allowedGroups: [platform]}}"));
        same_artifact(&mut sim, "p1", 1);
        sim.run();
        let plan = sim.run();
        let verdict = gate(&plan, SHOP, GateName::Upstream);
        assert_eq!(verdict.outcome, Outcome::Failed);
        assert!(verdict.message.contains("keeps no signed records"), "{}", verdict.message);
    }
}

mod checks {
    use super::*;

    fn attested(sim: &mut Sim, of: &str, kind: &str, predicate: Value) {
        let mut proof = statement("x", predicate);
        let old = proof.statement.take().unwrap();
        proof.statement = Some(Arc::new(Statement { predicate_type: kind.into(), ..(*old).clone() }));
        let known = sim.extra.entry(digest(of)).or_default();
        known.attestations.insert(kind.into(), Evidence::Proven(vec![proof]));
    }

    #[test]
    fn an_attestation_is_waited_for_and_passes() {
        let kind = expedite::gates::attestation::TEST_RESULT;
        let gates = format!(
            "checks: [{{name: e2e, attestation: {{predicateType: \"{kind}\", expression: \"result == 'PASSED'\"}}}}]"
        );
        let mut sim = Sim::shop();
        sim.order(SHOP, &with(&gates));
        sim.preparation(SHOP, "p1", 1);
        let known = sim.extra.entry(digest("p1")).or_default();
        let nothing = Looked { why: "no attestation".into(), ..Looked::default() };
        known.attestations.insert(kind.into(), Evidence::Missing(nothing));
        let plan = sim.run();
        let verdict = gate(&plan, SHOP, GateName::Checks);
        assert_eq!(verdict.outcome, Outcome::Waiting(For::Evidence));
        assert_eq!(verdict.message, format!("e2e (of the Order): no attestation ({kind})"));
        assert_eq!(sim.serving(SHOP).unwrap().status.target_preparation_name, None, "not the target yet");
        attested(&mut sim, "p1", kind, json!({"result": "FAILED"}));
        let plan = sim.run();
        assert_eq!(gate(&plan, SHOP, GateName::Checks).outcome, Outcome::Failed);
        attested(&mut sim, "p1", kind, json!({"result": "PASSED"}));
        sim.run();
        assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
    }

    #[test]
    fn an_environments_checks_come_first_and_the_same_name_does_not_replace() {
        let check = |max: u64| {
            format!("checks: [{{name: scan, vulnerabilities: {{maxCritical: {max}, maxAge: 24h}}}}]")
        };
        let mut sim = Sim::shop();
        sim.environment("production", &format!("{{clusters: [eu-1], promotion: {{{}}}}}", check(0)));
        sim.order(SHOP, &with(&check(9)));
        sim.preparation(SHOP, "p1", 1);
        let scan = |critical: u64| {
            Evidence::Proven(vec![ScanProof {
                proof: statement("scan", json!({})),
                scanner: "trivy".into(),
                finished_on: at("08:00"),
                counts: Some(Counts { critical, ..Counts::default() }),
                fixable: None,
            }])
        };
        sim.extra.entry(digest("p1")).or_default().scans = Some(scan(1));
        let plan = sim.run();
        let verdict = gate(&plan, SHOP, GateName::Checks);
        assert_eq!(verdict.outcome, Outcome::Failed);
        assert!(
            verdict.message.starts_with("scan (of the Environment): 1 critical, at most 0 allowed"),
            "{}",
            verdict.message
        );
        sim.extra.entry(digest("p1")).or_default().scans = Some(scan(0));
        sim.run();
        assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
    }

    #[test]
    fn what_could_not_be_read_is_told_and_waits() {
        let mut sim = Sim::shop();
        sim.order(SHOP, &with("checks: [{name: scan, vulnerabilities: {maxAge: 24h}}]"));
        sim.preparation(SHOP, "p1", 1);
        let unread = Unread {
            reason: Verified::RegistryRateLimited,
            request: "GET /v2/x".into(),
            status: Some(429),
            why: "too many requests".into(),
            retryable: true,
        };
        sim.extra.entry(digest("p1")).or_default().scans = Some(Evidence::Unread(unread));
        let plan = sim.run();
        let verdict = gate(&plan, SHOP, GateName::Checks);
        assert!(verdict.unread);
        assert_eq!(verdict.outcome, Outcome::Waiting(For::Registry));
    }
}

mod deployed_scans {
    use super::*;

    fn scan(critical: u64, clock: &str) -> Option<Evidence<Vec<ScanProof>>> {
        Some(Evidence::Proven(vec![ScanProof {
            proof: statement("scan", json!({"at": clock})),
            scanner: "trivy".into(),
            finished_on: at(clock),
            counts: Some(Counts { critical, ..Counts::default() }),
            fixable: None,
        }]))
    }

    #[test]
    fn the_newest_scan_of_what_is_deployed_is_kept_and_a_rise_warns() {
        let mut sim = Sim::shop();
        sim.rescan = Some(Span::ZERO);
        sim.order(SHOP, &with(""));
        sim.preparation(SHOP, "p1", 1);
        sim.run();
        sim.extra.entry(digest("p1")).or_default().scans = scan(1, "08:00");
        let plan = sim.run();
        let found = sim.serving(SHOP).unwrap().status.deployed_vulnerabilities.clone().unwrap();
        assert_eq!((found.critical, found.scanned_time), (1, at("08:00")));
        assert!(row(&plan, SHOP).warnings.is_empty(), "the first is no rise");
        let plan = sim.run();
        assert!(matches!(row(&plan, SHOP).serving, ServingPlan::Keep));
        sim.extra.entry(digest("p1")).or_default().scans = scan(3, "08:30");
        let plan = sim.run();
        let causes: Vec<&str> = row(&plan, SHOP).warnings.iter().map(|w| w.cause.as_str()).collect();
        assert_eq!(
            causes,
            [
                "vulnerabilities of what is deployed rose by the scan of 2026-11-30T08:30:00Z: critical from 1 to 3"
            ]
        );
        assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"), "what is deployed stays");
        sim.extra.entry(digest("p1")).or_default().scans = scan(0, "07:00");
        sim.run();
        let kept = sim.serving(SHOP).unwrap().status.deployed_vulnerabilities.clone().unwrap();
        assert_eq!(kept.critical, 3, "an older scan takes nothing back");
        sim.preparation(SHOP, "p2", 2);
        sim.run();
        assert_eq!(sim.serving(SHOP).unwrap().status.deployed_vulnerabilities, None, "of another artifact");
    }
}

mod observed {
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
}
