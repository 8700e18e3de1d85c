//! promote, withdraw and rollback: what is refused, with what words, and what the Serving says afterwards.

use crate::support::sim::*;
use expedite::error::{Failure, FailureKind};
use expedite::policy::decide::intent::{Intent, Wish, judge_wish};
use expedite::policy::resolve;

fn shop() -> Sim {
    let mut sim = Sim::shop();
    sim.order("shop/podinfo", "{environment: production, promotion: {mode: Manual}}");
    for (name, minute) in [("p1", 1), ("p2", 2)] {
        sim.preparation("shop/podinfo", name, minute);
    }
    sim
}

fn ask(sim: &Sim, of: &str, wish: &Wish) -> Result<Intent, Failure> {
    let cases = resolve::resolve_cases(&sim.world, &sim.gitops, "argocd");
    judge_wish(cases.iter().find(|c| c.order == order(of)).unwrap(), wish, &sim.world)
}

fn promote(name: &str) -> Wish {
    Wish::Promote(preparation(name))
}

fn refusal(sim: &Sim, wish: &Wish) -> String {
    let failure = ask(sim, "shop/podinfo", wish).unwrap_err();
    assert_eq!(failure.kind, FailureKind::SaysNo);
    assert!(!failure.hints.is_empty(), "a refusal names the next step");
    format!("{failure}")
}

#[test]
fn each_refusal_says_what_was_found_and_wanted() {
    let mut sim = shop();
    sim.order("shop/other", "{environment: production}");
    sim.preparation("shop/other", "o1", 1);
    sim.preparation_with("shop/podinfo", "unsigned", 3, "signed: false");
    assert!(refusal(&sim, &promote("nope")).contains("found no Preparation nope"));
    assert!(refusal(&sim, &promote("o1")).contains("of Order other"));
    assert!(refusal(&sim, &promote("unsigned")).contains("artifact.signed"));
    sim.kitchen(&format!("{{reject: [{{digest: \"{}\", reason: loses orders}}]}}", digest("p2")));
    assert!(refusal(&sim, &promote("p2")).contains("loses orders"));
    sim.order("shop/podinfo", "{environment: production, promotion: {mode: Automatic}}");
    assert!(refusal(&sim, &promote("p1")).contains("Automatic"));
    assert!(refusal(&sim, &Wish::Rollback(Some(preparation("p1")))).contains("Automatic"));
}

#[test]
fn promoting_what_is_deployed_is_never_refused_and_withdraws() {
    let mut sim = shop();
    sim.promote("shop/podinfo", "p1");
    sim.run();
    sim.kitchen(&format!("{{reject: [{{digest: \"{}\"}}]}}", digest("p1")));
    sim.promote("shop/podinfo", "p2");
    assert_eq!(ask(&sim, "shop/podinfo", &promote("p1")).unwrap(), Intent::Ask(preparation("p1")));
    assert_eq!(ask(&sim, "shop/podinfo", &Wish::Withdraw).unwrap(), Intent::Ask(preparation("p1")));
    sim.promote("shop/podinfo", "p1");
    let already = Intent::Already(Some(preparation("p1")));
    assert_eq!(ask(&sim, "shop/podinfo", &promote("p1")).unwrap(), already);
}

#[test]
fn withdraw_with_nothing_deployed_removes_the_serving() {
    let mut sim = shop();
    assert_eq!(ask(&sim, "shop/podinfo", &Wish::Withdraw).unwrap(), Intent::Already(None));
    sim.promote("shop/podinfo", "p1");
    assert_eq!(ask(&sim, "shop/podinfo", &Wish::Withdraw).unwrap(), Intent::Remove);
}

#[test]
fn rollback_without_a_name_takes_the_newest_that_was_healthy() {
    let mut sim = shop();
    sim.preparation("shop/podinfo", "p3", 3);
    for name in ["p1", "p2", "p3"] {
        sim.promote("shop/podinfo", name);
        sim.later(10);
        sim.run();
    }
    assert!(refusal(&sim, &Wish::Rollback(None)).contains("observed healthy"));
    // p1 and p2 were healthy, p2 ended Degraded.
    let reference = order("shop/podinfo");
    let mut serving = (*sim.serving("shop/podinfo").unwrap()).clone();
    for entry in &mut serving.status.history[1..] {
        entry.first_healthy_time = Some(entry.promoted_time);
    }
    serving.status.history[1].ended_reason = Some(expedite::model::reason::Ended::Degraded);
    sim.gitops.servings.get_mut(&reference).unwrap().serving = Ok(std::sync::Arc::new(serving));
    assert_eq!(ask(&sim, "shop/podinfo", &Wish::Rollback(None)).unwrap(), Intent::Ask(preparation("p1")));
}

/// Who asked for p1 did not ask for p2, which somebody wrote over it: nobody is known to have, until a verb asks.
#[test]
fn what_was_written_over_a_request_is_nobodys_request() {
    let over = |name: &str, older: bool| {
        let mut sim = shop();
        sim.promote("shop/podinfo", "p1");
        let mut serving = (*sim.serving("shop/podinfo").unwrap()).clone();
        serving.spec.preparation_name = Some(preparation(name));
        if older {
            serving.spec.requested.as_mut().unwrap().preparation_name = None;
        }
        sim.put_serving(&order("shop/podinfo"), serving);
        sim
    };
    let by = |mut sim: Sim| {
        sim.run();
        let history = sim.serving("shop/podinfo").unwrap().status.history.clone();
        history[0].requested_by.clone().unwrap()
    };
    assert_eq!(by(over("p1", false)).name, "ann");
    assert_eq!(by(over("p2", false)).name, "unknown (the Serving was edited by hand)");
    assert_eq!(by(over("p2", true)).name, "ann", "an older build did not say for what");
    assert_eq!(by(over("p2", false)).signed_by, "unsigned");
    // Asking for what stands there already is a request like any other.
    let already = Intent::Already(Some(preparation("p1")));
    assert_eq!(ask(&over("p1", false), "shop/podinfo", &promote("p1")).unwrap(), already);
    let asked = ask(&over("p2", false), "shop/podinfo", &promote("p2")).unwrap();
    assert_eq!(asked, Intent::Ask(preparation("p2")));
}
