//! Forecasts and open promotions: when, who, and what it waits for.

use crate::support::argo::{Argo, at};
use crate::support::sim::*;
use expedite::model::plan::*;
use expedite::model::time::{Span, Time};
use expedite::model::verdict::GateName;
use expedite::policy::decide::forecast::Forecasts;
use expedite::policy::decide::open::collect_open;
use proptest::prelude::*;

const SHOP: &str = "shop/podinfo";
const STAGING: &str = "staging/podinfo";

fn forecast(sim: &mut Sim, of: &str) -> Option<Forecast> {
    let (cases, facts, context) = sim.judged();
    Forecasts::new(&cases, &facts, &context).find_forecast(&order(of))
}

fn promotes(plan: &Plan, of: &str) -> bool {
    let row = plan.rows.iter().find(|r| r.order == order(of)).unwrap();
    matches!(row.decision, Decision::Promote(_))
}

fn with(gates: &str) -> String {
    format!("{{environment: production, promotion: {{mode: Automatic, {gates}}}}}")
}

/// Staging runs `p1`, healthy since 09:00; production waits behind it.
fn soaking(gates: &str, freezes: &str) -> Sim {
    let mut sim = Sim::shop();
    sim.environment("production", &format!("{{clusters: [eu-1], promotion: {{freezes: [{freezes}]}}}}"));
    sim.order(STAGING, "{environment: dev, promotion: {mode: Automatic}}");
    sim.preparation_of(STAGING, "p1", 1, "p1", "signed: true");
    sim.run();
    Argo::healthy_since(at("09:00")).look(&mut sim, &[]);
    sim.run();
    sim.order(SHOP, &with(gates));
    sim.preparation_of(SHOP, "p1", 1, "p1", "signed: true");
    sim.run();
    sim
}

#[test]
fn a_soak_and_then_a_window() {
    let mut sim = soaking("upstream: [{order: staging/podinfo, soak: 90m}]", "");
    assert_eq!(forecast(&mut sim, SHOP), Some(Forecast::At(at("10:30"))));
    let gates = "upstream: [{order: staging/podinfo, soak: 90m}], windows: [{timezone: UTC, from: \"09:00\", to: \"10:00\"}, {timezone: UTC, from: \"11:00\", to: \"12:00\"}]";
    let mut sim = soaking(gates, "");
    assert_eq!(forecast(&mut sim, SHOP), Some(Forecast::At(at("11:00"))), "09:00 to 10:00 is too early");
    let mut sim = soaking(gates, "{from: 2026-11-30T11:00:00Z, to: 2026-11-30T11:30:00Z}");
    assert_eq!(forecast(&mut sim, SHOP), Some(Forecast::At(at("11:30"))));
}

#[test]
fn what_waits_for_a_person_says_whom_and_not_before_when() {
    let gates = "upstream: [{order: staging/podinfo, soak: 1h}], approvals: {requiredApprovals: 1, allowedGroups: [platform]}";
    let mut sim = soaking(gates, "");
    // Without records an approval policy would refuse the upstream gate altogether.
    let Some(Forecast::Never { gate, .. }) = forecast(&mut sim, SHOP) else { panic!() };
    assert_eq!(gate, GateName::Upstream);
    let gates = "windows: [{timezone: UTC, from: \"20:00\", to: \"21:00\"}], approvals: {requiredApprovals: 1, allowedGroups: [platform]}";
    let mut sim = soaking(gates, "");
    sim.records = true;
    assert_eq!(
        forecast(&mut sim, SHOP),
        Some(Forecast::NotBefore {
            time: at("20:00"),
            gate: GateName::Approvals,
            message: "0 of 1 approvals from platform; may vote: group platform".into(),
        })
    );
}

#[test]
fn a_chain_counts_the_upstreams_own_forecast() {
    let mut sim = Sim::shop();
    sim.order(STAGING, "{environment: dev, promotion: {mode: Automatic, windows: [{timezone: UTC, from: \"12:00\", to: \"13:00\"}]}}");
    sim.order(SHOP, &with("upstream: [{order: staging/podinfo, soak: 2h}], windows: [{timezone: UTC, from: \"16:00\", to: \"17:00\"}]"));
    for of in [STAGING, SHOP] {
        sim.preparation_of(of, "p1", 1, "p1", "signed: true");
    }
    sim.run();
    assert_eq!(forecast(&mut sim, STAGING), Some(Forecast::At(at("12:00"))));
    let Some(Forecast::NotBefore { time, gate, .. }) = forecast(&mut sim, SHOP) else { panic!() };
    assert_eq!((time, gate), (at("16:00"), GateName::Upstream), "12:00, two hours of soak, the next window");
}

#[test]
fn nothing_to_promote_and_wrong_input_have_no_forecast() {
    let mut sim = soaking("", "");
    assert!(sim.deployed(SHOP).is_some());
    assert_eq!(forecast(&mut sim, SHOP), None);
    sim.order(SHOP, &with("upstream: [{order: shop/podinfo}]"));
    sim.preparation(SHOP, "p2", 2);
    assert_eq!(forecast(&mut sim, SHOP), None, "a ring");
    sim.order(SHOP, &with(""));
    assert_eq!(forecast(&mut sim, SHOP), Some(Forecast::At(sim.now)));
}

fn any_window() -> impl Strategy<Value = String> {
    let zone = prop_oneof![Just("UTC"), Just("Europe/Zurich"), Just("Australia/Lord_Howe")];
    let days = proptest::sample::subsequence(vec!["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], 0..4);
    (zone, days, 0u32..24, 0u32..24).prop_map(|(zone, days, from, to)| {
        format!(
            "{{timezone: {zone}, days: [{}], from: \"{from:02}:00\", to: \"{to:02}:30\"}}",
            days.join(", ")
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// A plan for the forecast instant promotes, one for a second earlier does not.
    #[test]
    fn a_plan_for_that_instant_promotes_and_one_a_second_earlier_does_not(
        soak in 0u64..100,
        windows in proptest::collection::vec(any_window(), 0..3),
        freezes in proptest::collection::vec((0u64..100, 1u64..60), 0..3),
    ) {
        let freezes: Vec<String> = freezes
            .iter()
            .map(|(from, length)| {
                let from = at("09:00").add_span(Span::from_seconds(from * 3_600));
                format!("{{from: \"{from}\", to: \"{}\"}}", from.add_span(Span::from_seconds(length * 3_600)))
            })
            .collect();
        let gates = format!(
            "upstream: [{{order: staging/podinfo, soak: {soak}h}}], windows: [{}]", windows.join(", ")
        )
        .replace("soak: 0h", "soak: \"0\"");
        let mut sim = soaking(&gates, &freezes.join(", "));
        if sim.deployed(SHOP).is_none() {
            let Some(Forecast::At(time)) = forecast(&mut sim, SHOP) else { panic!("{gates}") };
            prop_assert!(time > sim.now);
            let plan = sim.plan_at(time);
            prop_assert!(promotes(&plan, SHOP), "{} at {}", gates, time);
            let before = Time::from_unix(time.unix() - 1);
            let plan = sim.plan_at(before);
            prop_assert!(!promotes(&plan, SHOP), "{} at {}", gates, before);
        }
    }
}

/// A stage that waits for its own window, and one behind it with a soak, a window and a freeze.
fn waiting_chain(first: &str, soak: u64, second: &str, freeze: &str) -> Sim {
    let mut sim = Sim::shop();
    sim.environment("production", &format!("{{clusters: [eu-1], promotion: {{freezes: [{freeze}]}}}}"));
    sim.order(STAGING, &format!("{{environment: dev, promotion: {{mode: Automatic, windows: [{first}]}}}}"));
    let upstream = format!("upstream: [{{order: staging/podinfo, soak: {soak}h}}], windows: [{second}]");
    sim.order(SHOP, &with(&upstream));
    for of in [STAGING, SHOP] {
        sim.preparation_of(of, "p1", 1, "p1", "signed: true");
    }
    sim.run();
    sim
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Along a chain: what is foreseen before the first stage moves is what comes, where everything is
    /// healthy at once, and a second before it nothing is promoted.
    #[test]
    fn along_a_chain_the_forecast_comes_true_to_the_second(
        first in any_window(),
        soak in 1u64..50,
        second in any_window(),
        freeze in (0u64..100, 1u64..60),
    ) {
        let from = at("09:00").add_span(Span::from_seconds(freeze.0 * 3_600));
        let to = from.add_span(Span::from_seconds(freeze.1 * 3_600));
        let mut sim = waiting_chain(&first, soak, &second, &format!("{{from: \"{from}\", to: \"{to}\"}}"));
        let Some(Forecast::NotBefore { time: foreseen, gate, .. }) = forecast(&mut sim, SHOP) else {
            panic!("{first} {second}")
        };
        prop_assert_eq!(gate, GateName::Upstream);
        if sim.deployed(STAGING).is_none() {
            let Some(Forecast::At(opens)) = forecast(&mut sim, STAGING) else { panic!("{first}") };
            let early = sim.plan_at(Time::from_unix(opens.unix() - 1));
            prop_assert!(!promotes(&early, STAGING));
            sim.now = opens;
            sim.run();
        }
        prop_assert_eq!(sim.deployed(STAGING), Some("p1".to_owned()));
        Argo::healthy_since(sim.now).look(&mut sim, &[STAGING]);
        sim.run();
        prop_assert_eq!(sim.deployed(SHOP), None, "it soaks for an hour at least");
        prop_assert_eq!(forecast(&mut sim, SHOP), Some(Forecast::At(foreseen)), "{} {}", first, second);
        let plan = sim.plan_at(foreseen);
        prop_assert!(promotes(&plan, SHOP), "at {}", foreseen);
        let plan = sim.plan_at(Time::from_unix(foreseen.unix() - 1));
        prop_assert!(!promotes(&plan, SHOP), "a second before {}", foreseen);
    }
}

const PEOPLE: &str = "{approvalTrust: Repository, approvers: [{issuer: i, subject: ann, groups: [platform]}, {issuer: i, subject: bob, groups: [platform]}]}";

fn vote(sim: &mut Sim, number: usize, who: &str, approve: bool) {
    let object = serde_yaml::from_str(&format!(
        "{{metadata: {{name: v{number}, namespace: shop}}, spec: {{preparationRef: {{name: p1, artifactDigest: \"{}\"}}, approver: {{issuer: i, subject: {who}, username: {who}}}, decision: {}, submittedTime: \"2026-11-30T08:{number:02}:00Z\"}}}}",
        digest("p1"),
        if approve { "Approve" } else { "Reject" },
    ))
    .unwrap();
    let key = (expedite::model::id::Namespace::parse("shop").unwrap(), format!("v{number}"));
    sim.world.approvals.insert(key, loaded(object, "approvals.yaml"));
}

/// One run as it really goes: seals are attached, records are signed.
fn sealing_run(sim: &mut Sim) {
    let plan = sim.plan();
    sim.seal(&plan);
    sim.run();
    for of in [STAGING, SHOP] {
        sim.sign_history(of);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// With every gate in use: what is promised comes to the second, nothing comes before, and what no clock
    /// brings is no promise.
    #[test]
    fn with_votes_and_checks_a_promise_comes_true_and_nothing_comes_before_it(
        soak in 0u64..60,
        windows in proptest::collection::vec(any_window(), 0..3),
        freezes in proptest::collection::vec((0u64..60, 1u64..40), 0..2),
        required in 0usize..3,
        votes in proptest::collection::vec((0usize..2, prop_oneof![5 => Just(true), 1 => Just(false)]), 0..5),
        scan_age in prop_oneof![1 => Just(None), 2 => (1u64..200).prop_map(Some)],
        earlier in proptest::collection::vec(0.0f64..1.0, 8),
    ) {
        let mut sim = Sim::shop();
        sim.records = true;
        sim.kitchen(PEOPLE);
        let freezes: Vec<String> = freezes
            .iter()
            .map(|(from, length)| {
                let from = at("09:00").add_span(Span::from_seconds(from * 3_600));
                format!("{{from: \"{from}\", to: \"{}\"}}", from.add_span(Span::from_seconds(length * 3_600)))
            })
            .collect();
        let promotion = format!("{{clusters: [eu-1], promotion: {{freezes: [{}]}}}}", freezes.join(", "));
        sim.environment("production", &promotion);
        sim.order(STAGING, "{environment: dev, promotion: {mode: Automatic}}");
        let mut gates = format!(
            "upstream: [{{order: staging/podinfo, soak: {}}}], windows: [{}]",
            if soak == 0 { "\"0\"".to_owned() } else { format!("{soak}h") },
            windows.join(", ")
        );
        if required > 0 {
            gates += &format!(", approvals: {{requiredApprovals: {required}, allowedGroups: [platform]}}");
        }
        if let Some(hours) = scan_age {
            gates += &format!(", checks: [{{name: scan, vulnerabilities: {{maxCritical: 0, maxAge: {hours}h}}}}]");
            let scan = expedite::model::evidence::ScanProof {
                proof: statement("scan", serde_json::json!({})),
                scanner: "trivy".into(),
                finished_on: at("08:00"),
                counts: Some(Default::default()),
                fixable: None,
            };
            let known = sim.extra.entry(digest("p1")).or_default();
            known.scans = Some(expedite::model::evidence::Evidence::Proven(vec![scan]));
        }
        sim.order(SHOP, &with(&gates));
        for of in [STAGING, SHOP] {
            sim.preparation_of(of, "p1", 1, "p1", "signed: true");
        }
        let people = ["ann", "bob"];
        for (number, (who, approve)) in votes.iter().enumerate() {
            vote(&mut sim, number, people[*who], *approve);
        }
        let latest = |who| votes.iter().rev().find(|(w, _)| *w == who).map(|v| v.1);
        let words = [latest(0), latest(1)];
        let approved = required == 0
            || words.iter().filter(|w| **w == Some(true)).count() >= required && !words.contains(&Some(false));
        sealing_run(&mut sim);
        Argo::healthy_since(at("09:00")).look(&mut sim, &[STAGING]);
        sealing_run(&mut sim);
        sealing_run(&mut sim);
        if sim.deployed(SHOP).is_some() {
            prop_assert!(approved);
            return Ok(());
        }
        let now = sim.now;
        let until = match forecast(&mut sim, SHOP) {
            Some(Forecast::At(time)) => {
                prop_assert!(approved && time > now, "{} {:?}", gates, votes);
                let plan = sim.plan_at(time);
                prop_assert!(promotes(&plan, SHOP), "{} at {}: {:?}", gates, time, plan.rows);
                let plan = sim.plan_at(Time::from_unix(time.unix() - 1));
                prop_assert!(!promotes(&plan, SHOP), "{} a second before {}", gates, time);
                time
            }
            Some(Forecast::NotBefore { time, gate, .. }) => {
                prop_assert!(
                    gate == GateName::Approvals && !approved || gate == GateName::Checks && scan_age.is_some(),
                    "{} {:?} {}", gates, votes, gate
                );
                // Checks that nobody read yet may pass by then.
                let plan = sim.plan_at(time);
                prop_assert!(gate == GateName::Checks || !promotes(&plan, SHOP), "{} at {}", gates, time);
                time
            }
            Some(Forecast::Never { gate, .. }) => panic!("{gates}: {gate}"),
            None => panic!("{gates}"),
        };
        for share in earlier {
            let span = (until.unix() - now.unix()) as f64;
            let then = Time::from_unix(now.unix() + (span * share) as i64);
            if then < until {
                let plan = sim.plan_at(then);
                prop_assert!(!promotes(&plan, SHOP), "{} at {}, before {}", gates, then, until);
            }
        }
    }
}

/// A stage that passed, or that moves on to something else, postpones nothing.
#[test]
fn only_stages_that_hold_count() {
    let mut sim = soaking("upstream: [{order: staging/podinfo}, {order: us/podinfo, soak: 1h}]", "");
    sim.order(
        "us/podinfo",
        "{environment: dev, promotion: {mode: Automatic, windows: [{timezone: UTC, from: \"12:00\", to: \"13:00\"}]}}",
    );
    sim.preparation_of("us/podinfo", "p1", 1, "p1", "signed: true");
    // Staging ran the change and goes on to the next one in the evening.
    sim.order(
        STAGING,
        "{environment: dev, promotion: {mode: Automatic, windows: [{timezone: UTC, from: \"20:00\", to: \"21:00\"}]}}",
    );
    sim.preparation_of(STAGING, "p2", 2, "p2", "signed: true");
    sim.run();
    let Some(Forecast::NotBefore { time, .. }) = forecast(&mut sim, SHOP) else { panic!() };
    assert_eq!(time, at("13:00"), "12:00 and an hour of soak");
}

#[test]
fn checks_that_nobody_read_are_no_promise() {
    let scan = "checks: [{name: scan, vulnerabilities: {maxCritical: 0, maxAge: 24h}}]";
    let mut sim = soaking(&format!("upstream: [{{order: staging/podinfo, soak: 90m}}], {scan}"), "");
    sim.run();
    let Some(Forecast::NotBefore { time, gate, .. }) = forecast(&mut sim, SHOP) else { panic!() };
    assert_eq!((time, gate), (at("10:30"), GateName::Checks));
}

mod opened {
    use super::*;

    fn list(sim: &mut Sim, viewer: Option<&str>) -> Vec<(String, String, PromotionStep)> {
        let (cases, facts, context) = sim.judged();
        collect_open(&cases, &facts, &context, viewer)
            .into_iter()
            .map(|o| (o.order.to_string(), o.preparation.to_string(), o.step))
            .collect()
    }

    const POLICY: &str = "approvals: {requiredApprovals: 1, allowedGroups: [platform]}";

    fn shop(mode: &str) -> Sim {
        let mut sim = Sim::shop();
        sim.records = true;
        sim.order(SHOP, mode);
        sim.preparation(SHOP, "p1", 1);
        sim.kitchen(
            "{approvalTrust: Repository, approvers: [{issuer: i, subject: \"1\", username: ann, groups: [platform]}, {issuer: i, subject: \"2\", username: eve, groups: [interns]}]}",
        );
        sim
    }

    fn manual(policy: &str) -> String {
        format!("{{environment: production, promotion: {{mode: Manual, {policy}}}}}")
    }

    fn approve(sim: &mut Sim, of: &str) {
        let object = serde_yaml::from_str(&format!(
            "{{metadata: {{name: v1, namespace: shop}}, spec: {{preparationRef: {{name: {of}, artifactDigest: \"{}\"}}, approver: {{issuer: i, subject: \"1\", username: ann}}, decision: Approve, submittedTime: \"2026-11-30T09:00:00Z\"}}}}",
            digest(of)
        ))
        .unwrap();
        let key = (expedite::model::id::Namespace::parse("shop").unwrap(), "v1".to_owned());
        sim.world.approvals.insert(key, loaded(object, "approvals.yaml"));
    }

    #[test]
    fn under_a_policy_whoever_may_vote_reviews_and_the_others_wait() {
        let mut sim = shop(&with(POLICY));
        sim.run();
        let p1 = |step| vec![(SHOP.to_owned(), "p1".to_owned(), step)];
        assert_eq!(list(&mut sim, Some("ann")), p1(PromotionStep::Review));
        assert_eq!(list(&mut sim, Some("1")), p1(PromotionStep::Review));
        assert_eq!(list(&mut sim, None), p1(PromotionStep::Review));
        let eve = list(&mut sim, Some("eve"));
        let PromotionStep::Waits(why) = &eve[0].2 else { panic!("{eve:?}") };
        assert!(why.starts_with("0 of 1 approvals from platform"), "{why}");
        approve(&mut sim, "p1");
        assert_eq!(list(&mut sim, Some("ann")), [], "enough votes: the run seals and promotes");
    }

    #[test]
    fn under_manual_the_newest_is_reviewed_then_promoted_then_gone() {
        let mut sim = shop(&manual(POLICY));
        sim.run();
        let p1 = |step| vec![(SHOP.to_owned(), "p1".to_owned(), step)];
        assert_eq!(list(&mut sim, Some("ann")), p1(PromotionStep::Review));
        assert_eq!(
            list(&mut sim, Some("eve")),
            p1(PromotionStep::Promote),
            "who may not vote may ask for it"
        );
        approve(&mut sim, "p1");
        assert_eq!(list(&mut sim, Some("ann")), p1(PromotionStep::Promote));
        sim.promote(SHOP, "p1");
        assert_eq!(list(&mut sim, Some("ann")), [], "it is queued and has its votes");
    }

    #[test]
    fn a_queued_one_that_lacks_votes_stays_and_one_held_by_its_gates_leaves() {
        let mut sim = shop(&manual(POLICY));
        sim.promote(SHOP, "p1");
        sim.run();
        assert_eq!(list(&mut sim, Some("ann"))[0].2, PromotionStep::Review);
        let mut sim = shop(&manual("windows: [{timezone: UTC, from: \"20:00\", to: \"21:00\"}]"));
        assert_eq!(list(&mut sim, Some("ann"))[0].2, PromotionStep::Promote);
        sim.promote(SHOP, "p1");
        sim.run();
        assert_eq!(list(&mut sim, Some("ann")), []);
    }

    #[test]
    fn what_is_deployed_or_older_is_not_open() {
        let mut sim = shop(&manual(""));
        sim.preparation(SHOP, "p0", 0);
        sim.promote(SHOP, "p1");
        sim.run();
        assert_eq!(list(&mut sim, None), []);
        sim.preparation(SHOP, "p2", 2);
        assert_eq!(list(&mut sim, None), [(SHOP.to_owned(), "p2".to_owned(), PromotionStep::Promote)]);
    }
}
