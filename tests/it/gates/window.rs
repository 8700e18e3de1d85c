//! The Window gate: windows, freezes, the number of promotions a run may make.

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
    assert_eq!(held.outcome, GateOutcome::Waiting(For::Instant(at("08:00"))));
    assert_eq!(
        held.message,
        "outside the window Mon 09:00 to 10:30 Europe/Zurich; open from 2026-11-30T08:00:00Z"
    );
    sim.now = at("08:00");
    let plan = sim.run();
    assert!(gate(&plan, SHOP, GateName::Window).is_passed());
    assert_eq!(sim.deployed(SHOP).as_deref(), Some("p1"));
}

/// Zurich, 2027: on 28 March the clock goes from 02:00 to 03:00, on 31 October from 03:00 back to 02:00.
#[test]
fn over_both_switches_of_the_clock() {
    for (window, open) in [
        ("days: [Sun], from: \"02:30\", to: \"03:30\"", [("03-28T01:00:00Z", "03-28T01:30:00Z")].as_slice()),
        // What starts on Saturday ends at a time that the clock skips.
        ("days: [Sat], from: \"23:00\", to: \"02:30\"", &[("03-27T22:00:00Z", "03-28T01:00:00Z")]),
        ("days: [Sun], from: \"02:00\", to: \"03:00\"", &[("10-31T00:00:00Z", "10-31T02:00:00Z")]),
        (
            "days: [Sun], from: \"02:15\", to: \"02:45\"",
            &[("10-31T00:15:00Z", "10-31T00:45:00Z"), ("10-31T01:15:00Z", "10-31T01:45:00Z")],
        ),
        (
            "days: [Sat], from: \"23:00\", to: \"02:30\"",
            &[("10-30T21:00:00Z", "10-31T00:30:00Z"), ("10-31T01:00:00Z", "10-31T01:30:00Z")],
        ),
    ] {
        let mut sim = Sim::shop();
        sim.order(SHOP, &with(&format!("windows: [{{timezone: Europe/Zurich, {window}}}]")));
        sim.preparation(SHOP, "p1", 1);
        let instant = |text: &str| time(&format!("2027-{text}"));
        let a_second_before = |time: Time| Time::from_unix(time.unix() - 1);
        let mut says = |now: Time| {
            sim.now = now;
            let plan = sim.plan();
            let promotes = matches!(row(&plan, SHOP).decision, Decision::Promote(_));
            let verdict = gate(&plan, SHOP, GateName::Window).clone();
            assert_eq!(verdict.is_passed(), promotes);
            (promotes, verdict.outcome)
        };
        for (from, to) in open {
            let (from, to) = (instant(from), instant(to));
            let waits = GateOutcome::Waiting(For::Instant(from));
            assert_eq!(says(a_second_before(from)), (false, waits), "{window}");
            assert!(says(from).0 && says(a_second_before(to)).0, "{window}: from {from} to {to}");
            assert!(!says(to).0, "{window}: at {to}");
        }
    }
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
    assert_eq!(held.outcome, GateOutcome::Waiting(For::LaterRun));
    assert_eq!(held.message, "limits.maxPromotions allows 2 promotions a run; it is promoted by a later run");
    sim.run();
    assert!(sim.deployed("shop/c").is_some());
}

#[test]
fn who_waited_longest_is_promoted_first() {
    let mut sim = Sim::shop();
    sim.options.max_promotions = Some(2);
    let name = |name: &str| format!("shop/{name}");
    for order in ["a", "b", "c", "d"] {
        sim.order(&name(order), &with(""));
    }
    // The first two have something new every minute; so has the last one. The third one is quiet.
    sim.preparation("shop/c", "c0", 1);
    let mut last = std::collections::BTreeMap::new();
    for minute in 1..=12 {
        for busy in ["a", "b", "d"] {
            sim.preparation(&name(busy), &format!("{busy}{minute}"), minute);
        }
        let plan = sim.run();
        let promoted = plan.rows.iter().filter(|row| matches!(row.decision, Decision::Promote(_)));
        let promoted: Vec<String> = promoted.map(|row| row.order.to_string()).collect();
        assert_eq!(promoted.len(), 2, "{minute}: {promoted:?}");
        last.extend(promoted.into_iter().map(|order| (order, minute)));
        sim.later(1);
    }
    assert_eq!(last.get("shop/c"), Some(&2), "it was the second run's first");
    for busy in ["a", "b", "d"] {
        assert!(last[&name(busy)] >= 11, "nobody waits for good: {last:?}");
    }
}

#[test]
fn an_order_that_cannot_be_written_takes_no_place() {
    let mut sim = Sim::shop();
    for name in ["a", "b", "c"] {
        sim.order(&format!("shop/{name}"), &with(""));
        sim.preparation(&format!("shop/{name}"), &format!("{name}1"), 1);
    }
    sim.options.max_promotions = Some(1);
    sim.options.unwritable.insert(order("shop/a"));
    let plan = sim.plan();
    let decided: Vec<bool> =
        plan.rows.iter().map(|row| matches!(row.decision, Decision::Promote(_))).collect();
    assert_eq!(decided, [true, true, false], "the first one fails when it is written, whatever is decided");
}

#[test]
fn a_limit_of_none_says_that_no_later_run_helps() {
    let mut sim = Sim::shop();
    sim.order(SHOP, &with(""));
    sim.preparation(SHOP, "p1", 1);
    sim.options.max_promotions = Some(0);
    let plan = sim.run();
    let held = gate(&plan, SHOP, GateName::Window);
    assert_eq!(held.outcome, GateOutcome::Failed);
    assert_eq!(held.message, "limits.maxPromotions is 0: no run promotes anything until it is raised");
    assert_eq!(sim.deployed(SHOP), None);
}
