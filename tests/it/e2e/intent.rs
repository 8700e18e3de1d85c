//! promote, withdraw, rollback and a switch of modes, and what the run makes of them.

use super::*;
use crate::support::harness::Place;

/// The name of a Preparation of the shop.
fn preparation(place: &Place, order: &str, version: &str) -> String {
    let digest = artifact(place, order, version);
    format!("{}-{}", order.split_once('/').unwrap().1, &digest["sha256:".len()..][..12])
}

#[track_caller]
fn promote(place: &Place, order: &str, version: &str) -> crate::support::harness::Said {
    verb(place, &["promote", order, &preparation(place, order, version)])
}

#[test]
fn a_person_promotes_and_the_run_deploys() {
    let place = Place::with_shop();
    run(&place).ok();
    promote(&place, "shop/basket", "2.1.0").ok();
    assert_eq!(
        serving(&place, "shop/basket")["spec"]["preparationName"],
        preparation(&place, "shop/basket", "2.1.0")
    );
    assert_eq!(pinned(&place, "shop/basket"), Vec::<String>::new(), "promote is intent; run deploys");
    let table = run(&place).ok().to_owned();
    assert_eq!(pinned(&place, "shop/basket"), [artifact(&place, "shop/basket", "2.1.0")]);
    assert_eq!(row(&table, "shop", "basket")["VERIFIED"], "SignaturesVerified");
    assert_eq!(applications(&place, "shop/basket").len(), 2);
    let log = place.git(&["-C", "shop.git", "log", "--format=%s", "main"]);
    let deployed =
        format!("Promote shop/basket to {} in production", preparation(&place, "shop/basket", "2.1.0"));
    assert!(log.lines().any(|line| line == deployed), "{log}");
}

#[test]
fn the_same_digest_again_is_never_refused_and_changes_nothing() {
    let place = Place::with_shop();
    promote(&place, "shop/basket", "2.1.0").ok();
    run(&place).ok();
    let before = head(&place);
    promote(&place, "shop/basket", "2.1.0").ok();
    run(&place).ok();
    assert_eq!(head(&place), before);
}

#[test]
fn a_rollback_takes_an_artifact_that_ran_before() {
    let place = Place::with_shop();
    for version in ["2.1.0", "2.2.0"] {
        promote(&place, "shop/basket", version).ok();
        run(&place).ok();
        assert_eq!(pinned(&place, "shop/basket"), [artifact(&place, "shop/basket", version)]);
    }
    // Nothing observed any health, so nothing can be chosen for the user …
    let unnamed = verb(&place, &["rollback", "shop/basket"]);
    assert_eq!(unnamed.status, Some(5), "{}", unnamed.transcript("rollback"));
    assert!(unnamed.stderr.contains("hint:"), "{}", unnamed.stderr);
    // … who names it.
    verb(&place, &["rollback", "shop/basket", &preparation(&place, "shop/basket", "2.1.0")]).ok();
    run(&place).ok();
    assert_eq!(pinned(&place, "shop/basket"), [artifact(&place, "shop/basket", "2.1.0")]);
    let history = serving(&place, "shop/basket")["status"]["history"].clone();
    let names: Vec<&str> =
        history.as_array().unwrap().iter().map(|e| e["preparationName"].as_str().unwrap()).collect();
    let expected = ["2.1.0", "2.2.0", "2.1.0"].map(|v| preparation(&place, "shop/basket", v));
    assert_eq!(names, expected);
    assert_eq!(history[1]["endedReason"], "Superseded");
}

#[test]
fn a_promotion_waits_behind_a_gate_and_is_withdrawn() {
    let place = Place::with_shop();
    run(&place).ok();
    promote(&place, "shop/checkout", "3.8.0").ok();
    run(&place).ok();
    let waiting = serving(&place, "shop/checkout");
    assert_eq!(waiting["status"]["queued"]["preparationName"], preparation(&place, "shop/checkout", "3.8.0"));
    assert_eq!(waiting["status"]["queued"]["waitsFor"], "Approvals");
    assert_eq!(pinned(&place, "shop/checkout"), Vec::<String>::new());
    verb(&place, &["withdraw", "shop/checkout"]).ok();
    run(&place).ok();
    // With nothing deployed, nothing is left of it.
    assert!(!tree(&place).contains_key("servings/shop/checkout.yaml"));
}

#[test]
fn promoting_replaces_what_waits() {
    let place = Place::with_shop();
    promote(&place, "shop/checkout", "3.7.2").ok();
    run(&place).ok();
    promote(&place, "shop/checkout", "3.8.0").ok();
    run(&place).ok();
    let waiting = serving(&place, "shop/checkout");
    assert_eq!(waiting["status"]["queued"]["preparationName"], preparation(&place, "shop/checkout", "3.8.0"));
}

#[test]
fn promote_refuses_with_what_was_found_and_what_to_do() {
    let place = Place::with_shop();
    run(&place).ok();
    let committed = head(&place);
    let other = preparation(&place, "shop/basket", "2.1.0");
    for (order, preparation, word) in [
        ("shop/catalog", preparation(&place, "shop/catalog", "1.4.0").as_str(), "Automatic"),
        ("shop/basket", "basket-000000000000", "basket-000000000000"),
        ("shop/checkout", other.as_str(), "shop/basket"),
    ] {
        let said = verb(&place, &["promote", order, preparation]);
        assert_eq!(said.status, Some(5), "{}", said.transcript("promote"));
        assert!(said.stderr.contains(word) && said.stderr.contains("hint:"), "{}", said.stderr);
    }
    assert_eq!(head(&place), committed);
}

#[test]
fn a_switch_to_manual_changes_nothing_by_itself() {
    let place = Place::with_shop();
    run(&place).ok();
    let before = tree(&place);
    place.edit("objects/orders/shop-dev.yaml", "mode: Automatic", "mode: Manual");
    run(&place).ok();
    let after = tree(&place);
    for order in ["shop-dev/catalog", "shop-dev/storefront"] {
        let path = format!("servings/{order}.yaml");
        let spec = |tree: &BTreeMap<String, String>| -> serde_json::Value {
            serde_yaml::from_str::<serde_json::Value>(&tree[&path]).unwrap()["spec"].clone()
        };
        assert_eq!(spec(&before), spec(&after), "{order}");
    }
    let applications = |tree: &BTreeMap<String, String>| -> BTreeMap<String, String> {
        tree.clone().into_iter().filter(|(path, _)| path.starts_with("applications/")).collect()
    };
    assert_eq!(applications(&before), applications(&after));
    // A newer Preparation is nobody's wish now.
    let table = run(&place).ok().to_owned();
    assert_eq!(
        row(&table, "shop-dev", "catalog")["TARGET"],
        preparation(&place, "shop-dev/catalog", "1.6.0")
    );
}
