//! `-o name` through the real binary: what kubectl prints beside one `-n`, the namespace without; sorted, and taken
//! back by the other verbs.

use crate::support::harness::Place;

fn place() -> Place {
    let place = Place::with_shop();
    expedite(&place, &["run"]);
    place
}

/// What it prints; whatever its status.
fn expedite(place: &Place, arguments: &[&str]) -> String {
    let own = ["--config", "expedite.yaml", "--at", "2026-02-10T12:00:00Z"];
    let said = place.expedite(&[arguments, &own].concat());
    assert!(said.status.is_some_and(|s| s <= 1), "{}", said.transcript("expedite"));
    said.stdout
}

#[test]
fn a_line_says_which_object_it_is() {
    let place = place();
    let get = |arguments: &[&str]| expedite(&place, &[&["get"], arguments, &["-o", "name"]].concat());
    let orders = get(&["orders"]);
    let lines: Vec<&str> = orders.lines().collect();
    assert_eq!(lines.len(), 10, "{orders}");
    assert_eq!(lines[0], "order.delivery.kokumi.dev/shop/basket");
    let by_namespace = lines.iter().map(|line| line.split('/').collect::<Vec<_>>());
    assert!(by_namespace.is_sorted(), "{orders}");
    assert!(lines.contains(&"order.delivery.kokumi.dev/shop-dev/catalog"), "{orders}");
    assert_eq!(
        get(&["orders", "-n", "shop-dev"]),
        "order.delivery.kokumi.dev/catalog\norder.delivery.kokumi.dev/storefront\n"
    );
    assert!(get(&["servings"]).contains("serving.delivery.kokumi.dev/shop/storefront\n"));
    let preparations = get(&["preparations", "-n", "shop-staging"]);
    assert!(
        preparations.lines().all(|l| l.starts_with("preparation.delivery.kokumi.dev/c")),
        "{preparations}"
    );
    assert_eq!(preparations.lines().count(), 4);
    assert_eq!(
        get(&["history", "shop/catalog"]),
        "preparation.delivery.kokumi.dev/shop/catalog-509862e439e0\n"
    );
    assert_eq!(get(&["orders", "-l", "team=nobody"]), "");
}

#[test]
fn open_and_plan_name_orders() {
    let place = Place::with_shop();
    let plan = expedite(&place, &["plan", "-o", "name"]);
    assert!(plan.contains("order.delivery.kokumi.dev/shop/catalog\n"), "{plan}");
    assert!(!plan.contains("mailer"), "what waits does not move: {plan}");
    assert!(plan.lines().all(|line| line.starts_with("order.delivery.kokumi.dev/")), "{plan}");
    expedite(&place, &["run"]);
    assert_eq!(expedite(&place, &["plan", "-o", "name"]), "");
    let open = expedite(&place, &["open", "-o", "name"]);
    assert!(open.contains("order.delivery.kokumi.dev/shop/basket\n"), "{open}");
}

#[test]
fn what_is_printed_is_taken_back() {
    let place = place();
    for kind in ["orders", "servings", "preparations"] {
        for asked in [&[][..], &["-n", "shop"]] {
            let names = expedite(&place, &[&["get", kind, "-o", "name"], asked].concat());
            for name in names.lines() {
                let again = expedite(&place, &[&["get", kind, name, "-o", "name"], asked].concat());
                assert_eq!(again, format!("{name}\n"), "{kind} {asked:?}");
            }
        }
    }
    let preparation = "preparation.delivery.kokumi.dev/basket-b49b09790c53";
    let promoted = expedite(&place, &["promote", "order.delivery.kokumi.dev/shop/basket", preparation]);
    assert!(promoted.contains("asks for basket-b49b09790c53"), "{promoted}");
}
