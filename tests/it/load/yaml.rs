//! Text that must be read right: cases B02, B03, B05, B06, B08, B09.

use super::*;

#[test]
fn b02_names_that_yaml_1_1_reads_as_booleans_are_names() {
    let world = one(&format!(
        "{HEAD}kind: Order\nmetadata: {{name: no, namespace: on}}\nspec: {{environment: y}}\n---\n\
         {HEAD}kind: Environment\nmetadata: {{name: y}}\nspec: {{clusters: [off, 1e3]}}\n---\n\
         {HEAD}kind: Cluster\nmetadata: {{name: off, labels: {{tier: 012, on: 1.10}}}}\nspec: {{server: https://off.example}}\n"
    ));
    assert_eq!(said(&world), Vec::<String>::new());
    let order = &world.orders[&order_ref("on/no")];
    assert_eq!(order.object.spec.environment.as_ref().unwrap().as_str(), "y");
    let environment = world.environments.values().next().unwrap();
    let clusters: Vec<_> = environment.object.spec.clusters.iter().map(|c| c.as_str()).collect();
    assert_eq!(clusters, ["off", "1e3"]);
    let labels = &world.clusters.values().next().unwrap().object.metadata.labels;
    assert_eq!((labels["tier"].as_str(), labels["on"].as_str()), ("012", "1.10"));
}

#[test]
fn b03_a_key_written_twice_holds_the_order_and_is_named_at_the_second() {
    let twice = order(
        "shop/a",
        "  promotion:\n    approvals: {requiredApprovals: 2, allowedGroups: [g]}\n  promotion:\n    mode: Automatic\n",
    );
    let world = one(&format!("{twice}---\n{}", order("shop/b", "  environment: e\n")));
    assert_eq!(
        said(&world),
        ["shop/a | objects/a.yaml:7:3: Order shop/a: the key \"promotion\" is written twice | "]
    );
    assert!(!world.orders.contains_key(&order_ref("shop/a")), "never as an Order without approvals");
    assert!(world.orders.contains_key(&order_ref("shop/b")), "the other one is read");
    assert!(world.sources[0].whole, "the Order is known to exist, and every file was read");

    let annotations = one(&format!(
        "{HEAD}kind: Order\nmetadata:\n  name: a\n  namespace: shop\n  annotations:\n    x: 1\n    x: 1\nspec: {{}}\n"
    ));
    assert!(said(&annotations)[0].starts_with("shop/a | objects/a.yaml:8:5: "), "{:?}", said(&annotations));
    let json = load(&[(
        "a.json",
        r#"{"apiVersion": "delivery.kokumi.dev/v1alpha1", "kind": "Order", "metadata": {"name": "a", "namespace": "shop"},
 "spec": {"promotion": {"mode": "Manual"}, "promotion": {}}}"#,
    )]);
    assert!(said(&json)[0].starts_with("shop/a | objects/a.json:2:44: "), "{:?}", said(&json));
}

#[test]
fn b03_in_a_list_only_the_item_is_broken() {
    let item = |text: String| format!("- {}", text.trim_end().replace('\n', "\n  "));
    let world = one(&format!(
        "apiVersion: v1\nkind: List\nitems:\n{}\n{}\n{}\n",
        item(order("shop/a", "  environment: e\n")),
        item(order("shop/b", "  environment: e\n  environment: f\n")),
        item(order("shop/c", "  environment: e\n")),
    ));
    let names: Vec<_> = world.orders.keys().map(ToString::to_string).collect();
    assert_eq!(names, ["shop/a", "shop/c"]);
    assert!(said(&world)[0].starts_with("shop/b | objects/a.yaml:14:5: "), "{:?}", said(&world));
    assert_eq!(world.orders[&order_ref("shop/c")].origin.item, Some(2));
}

#[test]
fn b05_merge_keys_and_aliases() {
    let merged = "x-base: &base\n  approvals: {requiredApprovals: 2, allowedGroups: [g]}\n";
    let head = order("shop/a", "  promotion:\n    <<: *base\n    mode: Automatic\n");
    let world = one(&format!("{merged}{head}"));
    let promotion = world.orders[&order_ref("shop/a")].object.spec.promotion.clone().unwrap();
    assert_eq!(
        promotion.approvals.unwrap().required_approvals,
        2,
        "expanded, never an Order without approvals"
    );
    assert_eq!(promotion.mode, Some(Mode::Automatic));

    let alias = one(&order("shop/a", "  environment: &e production\n  commitMessage: *e\n"));
    assert_eq!(said(&alias), Vec::<String>::new());

    let refused = one(&order("shop/a", "  promotion:\n    <<: nothing\n"));
    assert_eq!(
        said(&refused),
        [
            "shop/a | objects/a.yaml:6:5: Order shop/a: the merge key << takes a mapping or a list of mappings | "
        ]
    );

    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for n in 1..9 {
        bomb.push_str(&format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(", ")));
    }
    let world = load(&[("bomb.yaml", &bomb), ("order.yaml", &order("shop/a", "  environment: e\n"))]);
    assert_eq!(world.orders.len(), 1, "the other file is read");
    assert!(said(&world)[0].contains("everything | objects/bomb.yaml:"), "{:?}", said(&world));
}

#[test]
fn b06_empty_documents_lists_and_neighbours() {
    let cluster = |name: &str| {
        format!(
            "- apiVersion: delivery.kokumi.dev/v1alpha1\n  kind: Cluster\n  metadata: {{name: {name}}}\n  spec: {{server: \"https://{name}.example\"}}\n"
        )
    };
    let text = format!(
        "\u{feff}---\n# a comment alone\n---\n{}---\n---\n{}---\napiVersion: v1\nkind: List\nitems:\n{}{}---\n",
        order("shop/a", "  environment: e\n"),
        approval("v", "2026-01-01T00:00:00Z", "Approve"),
        cluster("eu-1"),
        cluster("eu-2"),
    )
    .replace('\n', "\r\n");
    let world = load(&[
        ("a.yaml", &text),
        ("empty.yaml", ""),
        ("README.md", "# Orders\n"),
        (
            "kustomization.yaml",
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n",
        ),
        ("values.yaml", "- a\n- b\n"),
        (".git/config.yaml", "{{{"),
    ]);
    assert_eq!(said(&world), Vec::<String>::new());
    assert_eq!((world.orders.len(), world.approvals.len(), world.clusters.len()), (1, 1, 2));
    let origin = &world.orders[&order_ref("shop/a")].origin;
    assert_eq!((origin.document, origin.line, &*origin.source), (1, 4, "path:objects"));
    // Nothing is broken; but what the empty file held before is not deleted for it.
    assert_eq!(world.sources[0].why.as_deref(), Some("objects/empty.yaml is an empty file"));
    assert_eq!(world.sources[0].objects, 4);
}

#[test]
fn b08_a_soak_is_exact_or_an_error() {
    let soak = |text: &str| {
        one(&order("shop/a", &format!("  promotion:\n    upstream:\n    - {{order: b, soak: \"{text}\"}}\n")))
    };
    for (text, seconds) in [
        ("1d", 86_400),
        ("24h", 86_400),
        ("90m", 5400),
        ("1h30m", 5400),
        ("1d12h", 129_600),
        ("1.5h", 5400),
        ("0", 0),
    ] {
        let world = soak(text);
        let promotion = world.orders[&order_ref("shop/a")].object.spec.promotion.clone().unwrap();
        assert_eq!(promotion.upstream[0].soak, Span::from_seconds(seconds), "{text}");
    }
    for text in ["86400", "P1D", "-1h", " 24h ", "24H", "0.3s", ""] {
        let world = soak(text);
        assert!(world.orders.is_empty(), "{text:?} never means no soak");
        let message = &said(&world)[0];
        let want = "shop/a | objects/a.yaml:7:24: Order shop/a: spec.promotion.upstream[0].soak: ";
        assert!(message.starts_with(want) && message.contains("is not a duration"), "{message}");
    }
}

#[test]
fn b09_times_are_instants() {
    let a = preparation("p", "a", ", creationTimestamp: 2026-01-02T00:00:00-05:00");
    let b = preparation("q", "a", ", creationTimestamp: 2026-01-02T04:30:00Z");
    let world = one(&format!("{a}---\n{b}"));
    let created = |name: &str| {
        let key = world.preparations.keys().find(|k| k.1.as_str() == name).unwrap();
        world.preparations[key].object.metadata.creation_timestamp.unwrap()
    };
    assert!(created("p") > created("q"));

    let votes = one(&format!(
        "{}---\n{}",
        approval("v1", "2026-01-01T10:00:00Z", "Reject"),
        approval("v2", "2026-01-01T10:00:00.5Z", "Approve")
    ));
    let times: Vec<Time> = votes.approvals.values().map(|v| v.object.spec.submitted_time).collect();
    assert!(times[1] > times[0]);

    let wrong = one(&approval("v", "2026-01-01 10:00", "Approve"));
    assert!(said(&wrong)[0].contains("spec.submittedTime"), "{:?}", said(&wrong));
    let leap = one(&approval("v", "2016-12-31T23:59:60Z", "Approve"));
    assert_eq!(leap.approvals.len(), 1);
}
