//! An object says what it is, and stands in one place.

use super::*;

#[test]
fn an_object_that_stands_twice_is_an_error_at_both_places() {
    let a = order("shop/a", "  environment: e\n");
    let world = load(&[("x.yaml", &a), ("y/z.yaml", &a), ("b.yaml", &order("shop/b", "  environment: e\n"))]);
    assert_eq!(
        said(&world),
        [
            "shop/a | objects/y/z.yaml:1: Order shop/a: is also at objects/x.yaml:1; an object may exist only once | "
        ]
    );
    assert_eq!(world.orders.keys().map(ToString::to_string).collect::<Vec<_>>(), ["shop/b"]);
    // Across sources, and when one of the two is broken.
    let (one_dir, other_dir) =
        (folder(&[("x.yaml", &a)]), folder(&[("x.yaml", &order("shop/a", "  environment: [1]\n"))]));
    let (one_files, other_files) =
        (DiskFolder::new("one", one_dir.path()), DiskFolder::new("other", other_dir.path()));
    let world = world_of(&[input(&one_files), input(&other_files)]);
    assert!(world.orders.is_empty());
    assert!(said(&world).iter().any(|m| m.contains("is also at one/x.yaml:1")), "{:?}", said(&world));

    let kitchen =
        |extra: &str| format!("{HEAD}kind: Kitchen\nmetadata: {{name: default{extra}}}\nspec: {{}}\n");
    let two = one(&format!("{}---\n{}", kitchen(""), kitchen(", namespace: kokumi")));
    assert!(two.kitchen.is_none());
    assert!(
        said(&two)[0].starts_with("everything | objects/a.yaml:6: Kitchen default: is also at"),
        "{:?}",
        said(&two)
    );
    assert!(one(&kitchen(", namespace: kokumi")).kitchen.is_some(), "with a namespace or without");
    let named = one(&kitchen("").replace("default", "other"));
    assert!(
        said(&named)[0].starts_with("everything | objects/a.yaml:3:18: Kitchen other: metadata.name: "),
        "{:?}",
        said(&named)
    );
}

#[test]
fn an_object_must_say_what_it_is() {
    let cases = [
        (
            format!("{HEAD}kind: Order\nmetadata: {{name: a}}\nspec: {{}}\n"),
            "",
            "metadata.namespace: is missing, and every Order has one",
        ),
        (
            format!("{HEAD}kind: Order\nmetadata: {{name: A, namespace: shop}}\nspec: {{}}\n"),
            "",
            "metadata.name: \"A\" is not a valid Order name",
        ),
        (
            format!("{HEAD}kind: Order\nmetadata: {{name: a, namespace: Shop}}\nspec: {{}}\n"),
            "",
            "metadata.namespace: \"Shop\" is not a valid namespace",
        ),
        (format!("{HEAD}kind: Order\nspec: {{}}\n"), "", "metadata: is required and missing"),
        (
            order("shop/a", "  environment: e\n").replace("v1alpha1", "v1beta2"),
            "shop/a",
            "apiVersion is delivery.kokumi.dev/v1beta2; this build reads",
        ),
        (
            order("shop/a", "  environment: e\n").replace("kokumi.dev", "kokumi.dv"),
            "shop/a",
            "apiVersion is delivery.kokumi.dv/v1alpha1",
        ),
        (order("shop/a", "  environment: e\n").replace(HEAD, ""), "shop/a", "apiVersion is missing"),
        (format!("{HEAD}metadata: {{name: a}}\n"), "everything", "kind is missing"),
        (
            format!("{HEAD}kind: Aproval\nmetadata: {{name: a}}\n"),
            "everything",
            "kind is \"Aproval\", which is not a known kind",
        ),
        (
            format!("{HEAD}kind: Banquet\nmetadata: {{name: a}}\n"),
            "nothing",
            "the kind Banquet of delivery.kokumi.dev is not known",
        ),
        (format!("- {HEAD}  kind: Order\n"), "everything", "the objects are in a bare list"),
        (
            "apiVersion: v1\nkind: List\nmetadata: {continue: abc}\nitems: []\n".into(),
            "everything",
            "is one page of a longer list",
        ),
        (
            "apiVersion: v1\nkind: List\nitems: {a: 1}\n".into(),
            "everything",
            "items: wanted a list, found a mapping",
        ),
        (
            approval("v", "2026-01-01T00:00:00Z", "Rejct"),
            "everything",
            "spec.decision: wanted one of Approve, Reject, found Rejct",
        ),
    ];
    for (text, holds, want) in cases {
        let messages = said(&one(&text));
        assert!(
            messages.iter().any(|m| m.starts_with(&format!("{holds} | ")) && m.contains(want)),
            "{text}\n{messages:#?}"
        );
    }
    for kind in ["Menu", "Pantry", "Recipe"] {
        assert_eq!(said(&one(&format!("{HEAD}kind: {kind}\nmetadata: {{name: a}}\n"))), Vec::<String>::new());
    }
    // A wrong vote holds the Order of its Preparation, where that is known.
    let vote = approval("v", "2026-01-01T00:00:00Z", "Rejct");
    let messages = said(&one(&format!("{vote}---\n{}", preparation("p", "a", ""))));
    assert!(messages[0].starts_with("shop/a | "), "{messages:?}");
}

#[test]
fn a_typed_list_gives_its_items_their_kind() {
    let world = one(&format!(
        "{HEAD}kind: OrderList\nmetadata: {{resourceVersion: \"7\"}}\nitems:\n- metadata: {{name: a, namespace: shop}}\n  spec: {{environment: e}}\n"
    ));
    assert_eq!((said(&world), world.orders.len()), (vec![], 1));
}
