//! What goes, what must not go, and the guard between.

use super::*;
use crate::support::harness::Place;

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

#[test]
fn an_order_that_was_held_and_goes_takes_its_serving_along() {
    let place = Place::with_shop();
    run(&place).ok();
    let before = files(&place);
    assert_eq!(pinned(&place, "shop/search"), Vec::<String>::new(), "it is held");
    let orders = place.read("objects/orders/shop.yaml");
    let left: Vec<&str> = orders.split("---\n").filter(|order| !order.contains("  name: search\n")).collect();
    place.write("objects/orders/shop.yaml", left.join("---\n"));
    std::fs::remove_file(place.path("objects/preparations/shop-search.yaml")).unwrap();
    // While a source may hide it, nothing of it goes.
    place.edit("expedite.yaml", "sources:", "sources:\n- path: ./away");
    run(&place).exits(1);
    assert!(tree(&place).contains_key("servings/shop/search.yaml"));
    place.edit("expedite.yaml", "- path: ./away\n", "");
    run(&place).ok();
    assert!(!tree(&place).contains_key("servings/shop/search.yaml"));
    assert_eq!(files(&place), before);
    run(&place).ok();
}

#[test]
fn a_serving_that_a_person_wrote_for_no_order_is_an_error_and_stays() {
    let place = Place::with_shop();
    run(&place).ok();
    place.git(&["clone", "-q", "shop.git", "work"]);
    let text = "apiVersion: delivery.kokumi.dev/v1alpha1\nkind: Serving\nmetadata: {name: serch, namespace: shop}\n\
                spec: {orderName: serch, preparationName: serch-1}\n";
    place.write("work/servings/shop/serch.yaml", text);
    place.git(&["-C", "work", "add", "."]);
    place.git(&["-C", "work", "commit", "-qm", "By hand"]);
    place.git(&["-C", "work", "push", "-q", "origin", "HEAD:main"]);
    run(&place).exits(1);
    assert_eq!(tree(&place)["servings/shop/serch.yaml"], text);
}
