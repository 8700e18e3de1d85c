//! What goes, what must not go, and the guard between.

use crate::harness::Place;
use crate::*;

fn files(place: &Place) -> Vec<String> {
    tree(place).into_keys().filter(|path| path.starts_with("applications/")).collect()
}

#[test]
fn an_order_that_is_deleted_takes_its_applications_and_its_serving_along() {
    let place = Place::with_shop();
    run(&place).ok();
    let before = files(&place);
    let orders = place.read("objects/orders/shop-staging.yaml");
    let (_, checkout) = orders.split_once("---\n").unwrap();
    place.write("objects/orders/shop-staging.yaml", checkout);
    run(&place).ok();
    assert_eq!(files(&place).len(), before.len() - 1);
    assert_eq!(applications(&place, "shop-staging/catalog").len(), 0);
    assert!(!tree(&place).contains_key("servings/shop-staging/catalog.yaml"));
}

#[test]
fn more_removals_than_the_guard_allows_stop_the_run_before_the_commit() {
    let place = Place::with_shop();
    place.edit("expedite.yaml", "registries:", "limits: {maxRemovals: 1}\nregistries:");
    run(&place).ok();
    let (committed, before) = (head(&place), files(&place));
    let orders = place.read("objects/orders/shop-dev.yaml");
    let (_, storefront) = orders.split_once("---\n").unwrap();
    place.write("objects/orders/shop-dev.yaml", storefront);
    let orders = place.read("objects/orders/shop-staging.yaml");
    let (_, checkout) = orders.split_once("---\n").unwrap();
    place.write("objects/orders/shop-staging.yaml", checkout);
    let said = run(&place);
    said.exits(3);
    assert_eq!(head(&place), committed);
    for order in ["shop-dev", "shop-staging"] {
        assert!(said.stdout.contains(&format!("applications/{order}/")), "not listed: {}", said.stdout);
    }
    assert!(said.stderr.contains("--allow-removals 2"), "{}", said.stderr);
    verb(&place, &["run", "--allow-removals", "2"]).ok();
    assert_eq!(files(&place).len(), before.len() - 2);
    // The permission was for once.
    verb(&place, &["run"]).ok();
}

#[test]
fn a_scope_limits_what_is_written() {
    let place = Place::with_shop();
    verb(&place, &["run", "-n", "shop-dev"]).ok();
    let paths: Vec<String> = tree(&place).into_keys().collect();
    assert!(paths.iter().any(|p| p.starts_with("applications/shop-dev/")), "{paths:?}");
    assert!(paths.iter().all(|p| p.split('/').nth(1) == Some("shop-dev")), "{paths:?}");
}
