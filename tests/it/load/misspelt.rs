//! A misspelt gate is no missing gate: case B04.

use super::*;

#[test]
fn b04_a_misspelt_gate_is_no_missing_gate() {
    let cases = [
        (
            order("shop/a", "  promotion:\n    aprovals: {requiredApprovals: 2}\n"),
            "shop/a | objects/a.yaml:6:5: Order shop/a: spec.promotion.aprovals: is not a known field | did you mean approvals?",
        ),
        (
            order("shop/a", "  promotion:\n    upstream:\n    - {order: b, saok: 1h}\n"),
            "shop/a | objects/a.yaml:7:18: Order shop/a: spec.promotion.upstream[0].saok: is not a known field | did you mean soak?",
        ),
        (
            order("shop/a", "  promotoin: {mode: Manual}\n"),
            "shop/a | objects/a.yaml:5:3: Order shop/a: spec.promotoin: is not a known field | did you mean promotion?",
        ),
        (
            order("shop/a", "  enviroment: production\n"),
            "shop/a | objects/a.yaml:5:3: Order shop/a: spec.enviroment: is not a known field | did you mean environment?",
        ),
        (
            order("shop/a", "  wholeNewThing: {a: 1}\n"),
            "nothing | objects/a.yaml:5:3: Order shop/a: spec.wholeNewThing: is not a known field | it is ignored",
        ),
        (
            order("shop/a", "  promotion: {windows: [], somethingElse: 1}\n"),
            "shop/a | objects/a.yaml:5:28: Order shop/a: spec.promotion.somethingElse: is not a known field | known fields: mode, approvals, upstream, checks, windows",
        ),
        (
            format!(
                "{HEAD}kind: Environment\nmetadata: {{name: e}}\nspec:\n  promotion:\n    upstream: [{{order: a/b, soka: 1h}}]\n"
            ),
            "everything | objects/a.yaml:6:29: Environment e: spec.promotion.upstream[0].soka: is not a known field | did you mean soak?",
        ),
        (
            format!("{}  aproval: 1\n", preparation("p", "a", "")),
            "nothing | objects/a.yaml:7:3: Preparation shop/p: spec.aproval: is not a known field | it is ignored",
        ),
        (
            format!("{}  approvalPolcy: {{requiredApprovals: 1}}\n", preparation("p", "a", "")),
            "shop/a | objects/a.yaml:7:3: Preparation shop/p: spec.approvalPolcy: is not a known field | did you mean approvalPolicy?",
        ),
        (
            format!("{}extra: 1\n", preparation("p", "a", "")),
            "nothing | objects/a.yaml:7:1: Preparation shop/p: extra: is not a known field | it is ignored",
        ),
        (
            format!("{}sepc: 1\n", preparation("p", "a", "")),
            "shop/a | objects/a.yaml:7:1: Preparation shop/p: sepc: is not a known field | did you mean spec?",
        ),
    ];
    for (text, want) in cases {
        assert_eq!(said(&one(&text)), [want], "{text}");
    }
    // A gate that slipped out of its place is not missing either.
    for (text, want) in [
        (
            order("shop/a", "  promotion: {}\n  approvals: {requiredApprovals: 2}\n"),
            "shop/a | objects/a.yaml:6:3: Order shop/a: spec.approvals: is not a known field | did you mean promotion.approvals?",
        ),
        (
            format!("{}promotion: {{}}\n", order("shop/a", "  environment: e\n")),
            "shop/a | objects/a.yaml:6:1: Order shop/a: promotion: is not a known field | did you mean spec.promotion?",
        ),
        (
            format!("{HEAD}kind: Environment\nmetadata: {{name: e}}\npromotion:\n  freezes: []\n"),
            "everything | objects/a.yaml:4:1: Environment e: promotion: is not a known field | known fields: metadata, spec",
        ),
    ] {
        assert_eq!(said(&one(&text)), [want], "{text}");
    }
    let free = one(&format!(
        "{HEAD}kind: Order\nmetadata:\n  name: a\n  namespace: shop\n  labels: {{promotoin: x}}\n  managedFields: []\n\
         status: {{conditons: [], any: thing}}\nspec: {{}}\n"
    ));
    assert_eq!(said(&free), Vec::<String>::new());
    assert_eq!(free.orders.len(), 1);
}

#[test]
fn b04_a_known_field_of_the_wrong_type_is_an_error_with_path_and_line() {
    let cases = [
        (
            "  promotion: {mode: {a: 1}}\n",
            "5:21",
            "spec.promotion.mode: wanted one of Manual, Automatic, found a mapping",
        ),
        (
            "  promotion: {mode: automatic}\n",
            "5:21",
            "spec.promotion.mode: wanted one of Manual, Automatic, found automatic",
        ),
        ("  promotion: [a]\n", "5:14", "spec.promotion: wanted a mapping, found a list"),
        ("  environment: [a]\n", "5:16", "spec.environment: wanted text, found a list"),
        (
            "  promotion: {approvals: {requiredApprovals: two, allowedGroups: [g]}}\n",
            "5:46",
            "spec.promotion.approvals.requiredApprovals: wanted a whole number from 0 to 4294967295, found two",
        ),
        (
            "  promotion: {approvals: {allowedGroups: [g]}}\n",
            "5:26",
            "spec.promotion.approvals.requiredApprovals: is required and missing",
        ),
        ("  autoDeploy: true\n", "5:15", "spec.autoDeploy: wanted one of Enabled, Disabled, found true"),
    ];
    for (spec, place, want) in cases {
        let world = one(&order("shop/a", spec));
        let failure = &world.problems[0].failure;
        assert_eq!(failure.to_string(), format!("objects/a.yaml:{place}: Order shop/a: {want}"));
        assert!(world.orders.is_empty());
    }
}

/// What is left of a gate whose lines were commented out is no gate, and no absence of one.
#[test]
fn a_gate_with_nothing_in_it_is_an_error() {
    for gate in ["mode", "upstream", "checks", "approvals", "windows"] {
        let world =
            one(&order("shop/a", &format!("  environment: e\n  promotion:\n    {gate}:\n    #  lost: 1\n")));
        let messages = said(&world);
        assert!(messages.len() == 1 && messages[0].starts_with("shop/a | objects/a.yaml:"), "{messages:#?}");
        assert!(messages[0].contains(&format!("spec.promotion.{gate}: is empty")), "{messages:#?}");
        assert!(world.orders.is_empty());
    }
    let all = format!(
        "{HEAD}kind: Environment\nmetadata: {{name: e}}\nspec:\n  clusters: [c]\n  promotion:\n    freezes:\n"
    );
    assert!(said(&one(&all))[0].contains("spec.promotion.freezes: is empty"));
    let kitchen = format!("{HEAD}kind: Kitchen\nmetadata: {{name: default}}\nspec:\n  reject:\n");
    assert!(said(&one(&kitchen))[0].contains("spec.reject: is empty"));
    let kitchen = format!("{HEAD}kind: Kitchen\nmetadata: {{name: default}}\nspec: {{registries: []}}\n");
    assert!(
        said(&one(&kitchen))[0]
            .contains("spec.registries: is an empty list, which would allow every registry")
    );
}
