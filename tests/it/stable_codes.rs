//! Programs read codes, not messages: each wrong input of an Order and each refusal has its code (`docs/codes.md`).

use crate::support::sim::*;
use expedite::policy::decide::intent::{Wish, judge_wish};
use expedite::policy::resolve;
use std::collections::BTreeSet;

const SHOP: &str = "shop/podinfo";

/// A shop with one Order, changed by `change`, and the codes of that Order's errors.
fn errors(spec: &str, change: impl FnOnce(&mut Sim)) -> BTreeSet<&'static str> {
    let mut sim = Sim::shop();
    sim.order(SHOP, spec);
    change(&mut sim);
    let plan = sim.plan();
    let row = plan.rows.iter().find(|row| row.order == order(SHOP)).unwrap();
    row.errors.iter().map(|error| error.code).collect()
}

#[test]
fn each_wrong_input_of_an_order_has_its_code() {
    let automatic = "{environment: production, promotion: {mode: Automatic}}";
    let upstream =
        |name: &str| format!("{{environment: production, promotion: {{upstream: [{{order: {name}}}]}}}}");
    assert_eq!(errors("{}", |_| {}), ["no-environment"].into());
    assert_eq!(errors("{environment: moon}", |_| {}), ["unknown-environment"].into());
    assert_eq!(errors(&upstream("shop/none"), |_| {}), ["unknown-upstream"].into());
    assert_eq!(errors(&upstream(SHOP), |_| {}), ["upstream-cycle"].into());
    assert_eq!(errors(&upstream("Not/A/Name"), |_| {}), ["bad-upstream"].into());
    let unclear = errors(automatic, |sim| {
        sim.preparation(SHOP, "p1", 1);
        sim.preparation(SHOP, "p2", 1);
    });
    assert_eq!(unclear, ["newest-unclear"].into());
    let other = errors(automatic, |sim| {
        sim.preparation(SHOP, "p1", 1);
        let key = (order(SHOP).namespace, preparation("p1"));
        let loaded = sim.world.preparations.get_mut(&key).unwrap();
        let mut object = (*loaded.object).clone();
        object.spec.artifact.digest = digest("other");
        loaded.object = object.into();
    });
    assert_eq!(other, ["bad-oci-ref"].into());
}

#[test]
fn each_refusal_has_its_code() {
    let mut sim = Sim::shop();
    sim.order(SHOP, "{environment: production, promotion: {mode: Manual}}");
    sim.preparation(SHOP, "good", 1);
    sim.preparation_with(SHOP, "unsigned", 2, "signed: false");
    let not_ready = "signed: true}}, status: {conditions: [{type: Ready, status: \"False\"}], more: {a: 1";
    sim.preparation_with(SHOP, "early", 3, not_ready);
    sim.preparation(SHOP, "bad", 4);
    sim.kitchen(&format!("{{reject: [{{digest: \"{}\", reason: loses orders}}]}}", digest("bad")));
    let refused = |wish: Wish| {
        let cases = resolve::resolve_cases(&sim.world, &sim.gitops, "argocd");
        judge_wish(cases.iter().find(|case| case.order == order(SHOP)).unwrap(), &wish, &sim.world)
            .unwrap_err()
            .code
    };
    let promoted = |name: &str| refused(Wish::Promote(preparation(name)));
    assert_eq!(promoted("none"), "unknown-preparation");
    assert_eq!(promoted("unsigned"), "not-signed");
    assert_eq!(promoted("early"), "not-ready");
    assert_eq!(promoted("bad"), "rejected");
    assert_eq!(refused(Wish::Rollback(None)), "nothing-healthy");
}
