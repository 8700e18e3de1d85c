//! Loading, from text on disk to objects and problems: the cases of section 1 (B02 to B09), sources that
//! cannot be read whole, misspellings, duplicates and isolation.

#![allow(clippy::unwrap_used, clippy::panic)]

use expedite::error::Failure;
use expedite::files::{Entry, EntryKind, Files, Unreadable};
use expedite::load::folder::Folder;
use expedite::load::{Input, OURS, Observed, gitops, refine, world};
use expedite::model::id::{Namespace, OrderRef};
use expedite::model::kind::Kind;
use expedite::model::order::Mode;
use expedite::model::time::{Span, Time};
use expedite::model::world::{Holds, World};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use tempfile::TempDir;

fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        write(dir.path(), path, text.as_bytes());
    }
    dir
}

fn write(root: &Path, path: &str, bytes: &[u8]) {
    let file = root.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, bytes).unwrap();
}

fn input(files: &dyn Files) -> Input<'_> {
    Input { name: "path:objects".into(), files, kinds: None, namespaces: None, skip: &[] }
}

fn load_dir(dir: &TempDir) -> World {
    let files = Folder::new("objects", dir.path());
    world(&[input(&files)], None)
}

fn load(files: &[(&str, &str)]) -> World {
    load_dir(&folder(files))
}

fn one(text: &str) -> World {
    load(&[("a.yaml", text)])
}

/// Every problem as `holds | message | hints`.
fn said(world: &World) -> Vec<String> {
    world
        .problems
        .iter()
        .map(|p| {
            let holds = match &p.holds {
                Holds::Nothing => "nothing".to_owned(),
                Holds::Everything => "everything".to_owned(),
                Holds::Orders(orders) => orders.iter().map(OrderRef::to_string).collect::<Vec<_>>().join(","),
            };
            format!("{holds} | {} | {}", p.failure, p.failure.hints.join("; "))
        })
        .collect()
}

fn order_ref(text: &str) -> OrderRef {
    OrderRef::parse(text).unwrap()
}

const HEAD: &str = "apiVersion: delivery.kokumi.dev/v1alpha1\n";

fn order(name: &str, spec: &str) -> String {
    let (namespace, name) = name.split_once('/').unwrap();
    format!("{HEAD}kind: Order\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec:\n{spec}")
}

fn preparation(name: &str, order: &str, more: &str) -> String {
    let zeros = "0".repeat(64);
    format!(
        "{HEAD}kind: Preparation\nmetadata: {{name: {name}, namespace: shop{more}}}\nspec:\n  orderName: {order}\n  \
         artifact: {{ociRef: \"oci://r.example/shop/a@sha256:{zeros}\", digest: \"sha256:{zeros}\", signed: true}}\n"
    )
}

fn approval(name: &str, submitted: &str, decision: &str) -> String {
    let zeros = "0".repeat(64);
    format!(
        "{HEAD}kind: Approval\nmetadata: {{name: {name}, namespace: shop}}\nspec:\n  preparationRef: {{name: p, \
         artifactDigest: \"sha256:{zeros}\"}}\n  approver: {{issuer: i, subject: s}}\n  decision: {decision}\n  \
         submittedTime: {submitted}\n"
    )
}

#[test]
fn the_shop_loads_without_a_problem() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/shop/objects");
    let files = Folder::new("objects", root);
    let world = world(&[input(&files)], None);
    assert_eq!(said(&world), Vec::<String>::new());
    assert!(world.sources[0].whole, "{:?}", world.sources[0].why);
    assert!(world.orders.len() >= 6 && world.environments.len() >= 3 && world.kitchen.is_some());
    let kitchen = world.kitchen.unwrap();
    assert!(kitchen.object.spec.trust.keys.iter().all(|k| k.public_key.is_some()));
    let origin = &world.orders[&order_ref("shop/catalog")].origin;
    assert!(origin.at().to_string().starts_with("objects/orders/shop.yaml:"), "{origin:?}");
}

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
fn b04_a_misspelt_gate_is_no_missing_gate() {
    let cases = [
        (
            order("shop/a", "  promotion:\n    aprovals: {requiredApprovals: 2}\n"),
            "shop/a | objects/a.yaml:6:5: Order shop/a: spec.promotion.aprovals: is no field that is known here | did you mean approvals?",
        ),
        (
            order("shop/a", "  promotion:\n    upstream:\n    - {order: b, saok: 1h}\n"),
            "shop/a | objects/a.yaml:7:18: Order shop/a: spec.promotion.upstream[0].saok: is no field that is known here | did you mean soak?",
        ),
        (
            order("shop/a", "  promotoin: {mode: Manual}\n"),
            "shop/a | objects/a.yaml:5:3: Order shop/a: spec.promotoin: is no field that is known here | did you mean promotion?",
        ),
        (
            order("shop/a", "  enviroment: production\n"),
            "shop/a | objects/a.yaml:5:3: Order shop/a: spec.enviroment: is no field that is known here | did you mean environment?",
        ),
        (
            order("shop/a", "  wholeNewThing: {a: 1}\n"),
            "nothing | objects/a.yaml:5:3: Order shop/a: spec.wholeNewThing: is no field that is known here | it is not looked at",
        ),
        (
            order("shop/a", "  promotion: {windows: [], somethingElse: 1}\n"),
            "shop/a | objects/a.yaml:5:28: Order shop/a: spec.promotion.somethingElse: is no field that is known here | known here: mode, approvals, upstream, checks, windows",
        ),
        (
            format!(
                "{HEAD}kind: Environment\nmetadata: {{name: e}}\nspec:\n  promotion:\n    upstream: [{{order: a/b, soka: 1h}}]\n"
            ),
            "everything | objects/a.yaml:6:29: Environment e: spec.promotion.upstream[0].soka: is no field that is known here | did you mean soak?",
        ),
        (
            format!("{}  aproval: 1\n", preparation("p", "a", "")),
            "nothing | objects/a.yaml:7:3: Preparation shop/p: spec.aproval: is no field that is known here | it is not looked at",
        ),
        (
            format!("{}  approvalPolcy: {{requiredApprovals: 1}}\n", preparation("p", "a", "")),
            "shop/a | objects/a.yaml:7:3: Preparation shop/p: spec.approvalPolcy: is no field that is known here | did you mean approvalPolicy?",
        ),
        (
            format!("{}extra: 1\n", preparation("p", "a", "")),
            "nothing | objects/a.yaml:7:1: Preparation shop/p: extra: is no field that is known here | it is not looked at",
        ),
        (
            format!("{}sepc: 1\n", preparation("p", "a", "")),
            "shop/a | objects/a.yaml:7:1: Preparation shop/p: sepc: is no field that is known here | did you mean spec?",
        ),
    ];
    for (text, want) in cases {
        assert_eq!(said(&one(&text)), [want], "{text}");
    }
    // A gate that slipped out of its place is not missing either.
    for (text, want) in [
        (
            order("shop/a", "  promotion: {}\n  approvals: {requiredApprovals: 2}\n"),
            "shop/a | objects/a.yaml:6:3: Order shop/a: spec.approvals: is no field that is known here | did you mean promotion.approvals?",
        ),
        (
            format!("{}promotion: {{}}\n", order("shop/a", "  environment: e\n")),
            "shop/a | objects/a.yaml:6:1: Order shop/a: promotion: is no field that is known here | did you mean spec.promotion?",
        ),
        (
            format!("{HEAD}kind: Environment\nmetadata: {{name: e}}\npromotion:\n  freezes: []\n"),
            "everything | objects/a.yaml:4:1: Environment e: promotion: is no field that is known here | known here: metadata, spec",
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
    assert!(world.sources[0].whole);
    assert_eq!(world.sources[0].objects, 4);
}

#[test]
fn b07_an_lfs_pointer_is_named_and_nothing_is_whole() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n";
    let world = load(&[("a.yaml", &order("shop/b", "  environment: e\n")), ("podinfo.yaml", pointer)]);
    assert_eq!(
        said(&world),
        [
            "everything | objects/podinfo.yaml:1:1: is a Git LFS pointer: the file itself is not here | fetch it (git lfs pull; with actions/checkout: lfs: true)"
        ]
    );
    assert_eq!((world.sources[0].whole, world.orders.len()), (false, 1));
    assert_eq!(world.sources[0].why.as_deref(), Some("objects/podinfo.yaml cannot be read"));
}

#[test]
fn what_the_published_crd_writes_by_default_disagrees_with_no_mode() {
    for mode in ["Automatic", "Manual"] {
        let world =
            one(&order("shop/a", &format!("  autoDeploy: Disabled\n  promotion: {{mode: {mode}}}\n")));
        assert_eq!(said(&world), Vec::<String>::new(), "{mode}");
        assert!(world.orders.contains_key(&order_ref("shop/a")));
    }
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
        assert_eq!(promotion.upstream[0].soak, Span::of_seconds(seconds), "{text}");
    }
    for text in ["86400", "P1D", "-1h", " 24h ", "24H", "0.3s", ""] {
        let world = soak(text);
        assert!(world.orders.is_empty(), "{text:?} never means no soak");
        let message = &said(&world)[0];
        let want = "shop/a | objects/a.yaml:7:24: Order shop/a: spec.promotion.upstream[0].soak: ";
        assert!(message.starts_with(want) && message.contains("is no duration"), "{message}");
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

#[test]
fn a_file_that_does_not_parse_holds_what_it_may_bear_on() {
    let good = order("shop/a", "  environment: e\n");
    let broken = "  promotion: [1, 2\n  x: }\n";
    let order_b = order("shop/b", broken);
    let vote = approval("v", "2026-01-01T00:00:00Z", "Reject");
    let cases: &[(String, &str)] = &[
        (order_b.clone(), "shop/b"),
        (format!("{good}---\n{order_b}---\n{vote}"), "shop/b"),
        (format!("{}  x: [\n", preparation("p", "c", "")), "shop/c"),
        (
            format!("{HEAD}kind: Order\nmetadata:\n  name: b # its name\n  namespace: \"shop\"\nspec: [\n"),
            "shop/b",
        ),
        // The rest may be a vote, a policy, or anything.
        (format!("{vote}  x: [\n"), "everything"),
        (format!("{HEAD}kind: Environment\nmetadata: {{name: e}}\nspec: [\n"), "everything"),
        (format!("{HEAD}kind: Order\nspec: [\n"), "everything"),
        (format!("{HEAD}kind: Oder\nspec: [\n"), "everything"),
        ("apiVersion: v1\nkind: List\nitems:\n- kind: Order\n  metadata: [\n".to_owned(), "everything"),
        ("{{ what: ever }\n".to_owned(), "everything"),
        ("a:\n\tb: 1\n".to_owned(), "everything"),
        ("- a: [\n".to_owned(), "everything"),
        ("--- [\n".to_owned(), "everything"),
        // Line ends that editors of long ago wrote do not hide what follows.
        (format!("{HEAD}kind: Approval\nspec: [\n").replace('\n', "\r"), "everything"),
        // A kind of somebody else, as in a Helm template: ours are not in it.
        ("apiVersion: apps/v1\nkind: Deployment\nspec: {{ .Values.spec }\n".to_owned(), "nothing"),
        ("kind: Secret\nstringData: {password: hunter2\n".to_owned(), "nothing"),
        // Conflict marks, with both sides' words.
        (format!("<<<<<<< HEAD\n{good}=======\n{good}>>>>>>> other\n"), "shop/a"),
        (format!("<<<<<<< HEAD\n{vote}=======\n>>>>>>> other\n"), "everything"),
    ];
    for (text, holds) in cases {
        let world = one(text);
        let messages = said(&world);
        assert!(messages[0].starts_with(&format!("{holds} | objects/a.yaml:")), "{text}\n{messages:#?}");
        assert!(!world.sources[0].whole || *holds == "nothing", "{text}");
        assert!(!messages.concat().contains("hunter2"));
    }
    let world = one(&cases[1].0);
    assert!(
        world.orders.contains_key(&order_ref("shop/a")) && world.approvals.len() == 1,
        "neighbours are read"
    );
    assert!(said(&one("<<<<<<< HEAD\n=======\n>>>>>>> x\n"))[0].contains("<<<<<<<"));
}

#[test]
fn a_secret_is_not_looked_into() {
    let secret =
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData:\n  hunter2: a\n  hunter2: b\n";
    let world = one(&format!("{secret}---\n{}", order("shop/a", "  environment: e\n")));
    assert_eq!((said(&world), world.orders.len()), (vec![], 1));
    let list = format!("apiVersion: v1\nkind: List\nitems:\n- {}\n", secret.trim_end().replace('\n', "\n  "));
    assert_eq!(said(&one(&list)), Vec::<String>::new());
    // Which apiVersion was meant is not clear: said, without its words.
    let unclear = format!("{secret}apiVersion: delivery.kokumi.dev/v1alpha1\n");
    let messages = said(&one(&unclear)).concat();
    assert!(messages.contains("everything | ") && !messages.contains("hunter2"), "{messages}");
}

#[test]
fn an_object_that_stands_twice_is_an_error_at_both_places() {
    let a = order("shop/a", "  environment: e\n");
    let world = load(&[("x.yaml", &a), ("y/z.yaml", &a), ("b.yaml", &order("shop/b", "  environment: e\n"))]);
    assert_eq!(
        said(&world),
        [
            "shop/a | objects/y/z.yaml:1: Order shop/a: is also at objects/x.yaml:1; one object has one place | "
        ]
    );
    assert_eq!(world.orders.keys().map(ToString::to_string).collect::<Vec<_>>(), ["shop/b"]);
    // Across sources, and when one of the two is broken.
    let (one_dir, other_dir) =
        (folder(&[("x.yaml", &a)]), folder(&[("x.yaml", &order("shop/a", "  environment: [1]\n"))]));
    let (one_files, other_files) =
        (Folder::new("one", one_dir.path()), Folder::new("other", other_dir.path()));
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

fn world_of(inputs: &[Input<'_>]) -> World {
    world(inputs, None)
}

#[test]
fn an_object_must_say_what_it_is() {
    let cases = [
        (
            format!("{HEAD}kind: Order\nmetadata: {{name: a}}\nspec: {{}}\n"),
            "everything",
            "metadata.namespace: is missing, and every Order has one",
        ),
        (
            format!("{HEAD}kind: Order\nmetadata: {{name: A, namespace: shop}}\nspec: {{}}\n"),
            "everything",
            "metadata.name: \"A\" is no Order name",
        ),
        (
            format!("{HEAD}kind: Order\nmetadata: {{name: a, namespace: Shop}}\nspec: {{}}\n"),
            "everything",
            "metadata.namespace: \"Shop\" is no namespace",
        ),
        (format!("{HEAD}kind: Order\nspec: {{}}\n"), "everything", "metadata: is required and missing"),
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
            "kind is \"Aproval\", which is none of ours",
        ),
        (
            format!("{HEAD}kind: Banquet\nmetadata: {{name: a}}\n"),
            "nothing",
            "the kind Banquet of delivery.kokumi.dev is not known",
        ),
        (format!("- {HEAD}  kind: Order\n"), "everything", "objects stand in a bare list"),
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

#[test]
fn values_out_of_range_are_named_with_their_field() {
    let cases = [
        (
            "Order",
            "  promotion: {approvals: {requiredApprovals: 0, allowedGroups: [g]}}\n",
            "spec.promotion.approvals.requiredApprovals: is 0",
        ),
        (
            "Order",
            "  promotion: {approvals: {requiredApprovals: 33, allowedGroups: [g]}}\n",
            "spec.promotion.approvals.requiredApprovals: is 33",
        ),
        (
            "Order",
            "  promotion: {approvals: {requiredApprovals: 1}}\n",
            "spec.promotion.approvals.allowedGroups: names 0 groups",
        ),
        (
            "Order",
            "  promotion: {approvals: {requiredApprovals: 1, allowedGroups: [\"\"]}}\n",
            "spec.promotion.approvals.allowedGroups[0]: is empty",
        ),
        (
            "Order",
            "  promotion: {checks: [{name: a}]}\n",
            "spec.promotion.checks[0]: has neither attestation nor vulnerabilities",
        ),
        (
            "Order",
            "  promotion: {checks: [{name: a, vulnerabilities: {maxHigh: 0}}]}\n",
            "spec.promotion.checks[0].vulnerabilities.maxAge: is required and missing",
        ),
        (
            "Order",
            "  promotion: {checks: [{name: a, attestation: {predicateType: t}}, {name: a, attestation: {predicateType: t}}]}\n",
            "spec.promotion.checks[1].name: \"a\" stands twice",
        ),
        (
            "Order",
            "  promotion: {upstream: [{order: a/b/c}]}\n",
            "spec.promotion.upstream[0].order: \"b/c\" is no Order name",
        ),
        (
            "Order",
            "  promotion: {windows: [{timezone: Mars/Base, from: \"09:00\", to: \"16:00\"}]}\n",
            "spec.promotion.windows[0].timezone: \"Mars/Base\" is no IANA time zone",
        ),
        (
            "Order",
            "  promotion: {windows: [{timezone: UTC, days: [Monday], from: \"9\", to: \"16:00\"}]}\n",
            "spec.promotion.windows[0].from: \"9\" is no time of day",
        ),
        (
            "Order",
            "  autoDeploy: Enabled\n  promotion: {mode: Manual}\n",
            "spec.autoDeploy: is Enabled, and promotion.mode is Manual",
        ),
        (
            "Environment",
            "  promotion: {upstream: [{order: b}]}\n",
            "spec.promotion.upstream[0].order: \"b\" is no Order",
        ),
        (
            "Environment",
            "  promotion: {freezes: [{from: 2026-02-01T00:00:00Z, to: 2026-01-01T00:00:00Z}]}\n",
            "spec.promotion.freezes[0].to: ",
        ),
        ("Environment", "  clusters: [a, a]\n", "spec.clusters[1]: \"a\" stands twice"),
        ("Environment", "  onDelete: orphan\n", "spec.onDelete: wanted one of Cascade, Orphan, found orphan"),
        (
            "Environment",
            "  clusterSelector: {matchExpressions: [{key: a, operator: In}]}\n",
            "matchExpressions[0].values: In needs values",
        ),
        ("Cluster", "  server: kubernetes.default.svc\n", "spec.server: is no API server's URL"),
        ("Cluster", "  server: https://u:hunter2@k.example\n", "spec.server: is no API server's URL"),
        ("Cluster", "  labels: {}\n", "spec.server: is required and missing"),
        (
            "Kitchen",
            "  trust: {keys: [{name: a}]}\n",
            "spec.trust.keys[0]: has neither publicKey nor publicKeyFile",
        ),
        (
            "Kitchen",
            "  trust: {keys: [{name: a, publicKeyFile: no.pub}]}\n",
            "spec.trust.keys[0].publicKeyFile: there is no file objects/no.pub",
        ),
        (
            "Kitchen",
            "  trust: {keys: [{name: a, publicKeyFile: ../../x}]}\n",
            "spec.trust.keys[0].publicKeyFile: \"../../x\" leaves the source's folder",
        ),
        (
            "Kitchen",
            "  trust: {keys: [{name: a, publicKey: x, roles: [sign]}]}\n",
            "spec.trust.keys[0].roles[0]: wanted one of signature, provenance",
        ),
        (
            "Kitchen",
            "  trust: {identities: [{name: a, issuer: i}]}\n",
            "spec.trust.identities[0]: has neither subject nor subjectPattern",
        ),
        ("Kitchen", "  trust: {keyz: []}\n", "spec.trust.keyz: is no field"),
        (
            "Kitchen",
            "  approvers: [{issuer: i, subject: s}, {issuer: i, subject: s}]\n",
            "spec.approvers[1]: the same issuer and subject",
        ),
    ];
    for (kind, spec, want) in cases {
        let name = if kind == "Kitchen" { "default" } else { "a" };
        let world =
            one(&format!("{HEAD}kind: {kind}\nmetadata: {{name: {name}, namespace: shop}}\nspec:\n{spec}"));
        let messages = said(&world);
        assert!(messages.iter().any(|m| m.contains(want)), "{spec}{messages:#?}");
        assert!(!messages.concat().contains("hunter2"));
        assert!(world.orders.is_empty() && world.environments.is_empty() && world.kitchen.is_none());
    }
    let published = one(&format!(
        "{HEAD}kind: Kitchen\nmetadata: {{name: default}}\nspec: {{adminUser: {{enabled: true}}, argoCDURL: \"https://argo.example\"}}\n"
    ));
    assert_eq!((said(&published), published.kitchen.is_some()), (vec![], true));
}

#[test]
fn a_key_file_is_read_from_beside_the_kitchen() {
    let kitchen = format!(
        "{HEAD}kind: Kitchen\nmetadata: {{name: default}}\nspec: {{trust: {{trustedRoot: root.json, keys: [{{name: a, publicKeyFile: ../keys/a.pub}}]}}}}\n"
    );
    let world = load(&[
        ("trust/kitchen.yaml", &kitchen),
        ("keys/a.pub", "PEM\n"),
        ("trust/root.json", "{\"a\": 1}\n"),
    ]);
    assert_eq!(said(&world), Vec::<String>::new());
    let trust = &world.kitchen.unwrap().object.spec.trust.clone();
    assert_eq!(trust.keys[0].public_key.as_deref(), Some("PEM\n"));
    assert_eq!(trust.trusted_root.as_deref(), Some("{\"a\": 1}\n"));
}

#[test]
fn what_a_source_may_not_bring_is_refused() {
    let dir = folder(&[
        ("a.yaml", &order("shop/a", "  environment: e\n")),
        ("b.yaml", &order("other/b", "  environment: e\n")),
        (
            "kitchen.yaml",
            &format!(
                "{HEAD}kind: Kitchen\nmetadata: {{name: default}}\nspec: {{approvalTrust: Repository}}\n"
            ),
        ),
    ]);
    let files = Folder::new("team", dir.path());
    let world = world_of(&[Input {
        kinds: Some(BTreeSet::from([Kind::Order, Kind::Approval])),
        namespaces: Some(BTreeSet::from([Namespace::parse("shop").unwrap()])),
        ..input(&files)
    }]);
    assert_eq!(
        said(&world),
        [
            " | team/b.yaml:1: Order other/b: is refused: this source is for the namespaces shop only | ",
            " | team/kitchen.yaml:1: Kitchen default: is refused: this source is for Order, Approval only | ",
        ],
        "an error that holds nobody"
    );
    assert_eq!((world.orders.len(), world.kitchen.is_some()), (1, false));
}

#[test]
fn the_gitops_repository_as_a_source_leaves_its_own_folders_out() {
    let serving =
        format!("{HEAD}kind: Serving\nmetadata: {{name: a, namespace: shop}}\nspec: {{orderName: a}}\n");
    let dir = folder(&[
        ("orders/a.yaml", &order("shop/a", "  environment: e\n")),
        ("applications/shop/x.yaml", "{{{"),
        ("templates/application.yaml", "{{ application.name }}: ["),
        ("servings/shop/a.yaml", &serving),
        ("apps.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: root}\n"),
        ("expedite.yaml", "limits: {maxRemovals: 3}\n"),
        ("stray.yaml", &serving),
    ]);
    let files = Folder::new(".", dir.path());
    let world = world_of(&[Input { name: "repository".into(), skip: OURS, ..input(&files) }]);
    assert_eq!(said(&world), Vec::<String>::new());
    assert_eq!((world.orders.len(), world.stray_servings.len()), (1, 1));
    assert_eq!(&*world.orders[&order_ref("shop/a")].origin.file, "orders/a.yaml");
    assert!(world.sources[0].whole && world.applications.is_none());
}

#[test]
fn sources_that_are_not_whole_say_why() {
    let gone = Folder::new("gone", "/nonexistent/folder");
    let world = world_of(&[input(&gone)]);
    assert!(!world.sources[0].whole);
    assert!(said(&world)[0].starts_with("everything | gone: there is no such folder"), "{:?}", said(&world));

    let empty = load(&[("README.md", "x")]);
    assert_eq!(empty.sources[0].why.as_deref(), Some("it holds no object of our kinds"));

    let dir = folder(&[("a.yaml", &order("shop/a", "  environment: e\n"))]);
    write(dir.path(), "latin.yaml", b"kind: Order\nname: \xe9\n");
    let world = load_dir(&dir);
    assert!(said(&world)[0].contains("objects/latin.yaml:2:7: is not UTF-8"), "{:?}", said(&world));
    assert!(!world.sources[0].whole);

    let dir = folder(&[
        ("a.yaml", &order("shop/a", "  environment: e\n")),
        (".gitmodules", "[submodule \"more\"]\n\tpath = deep/more\n"),
    ]);
    fs::create_dir_all(dir.path().join(".git")).unwrap();
    fs::create_dir_all(dir.path().join("deep/more")).unwrap();
    let world = load_dir(&dir);
    assert!(
        said(&world)[0].contains("objects/deep/more: is a submodule that was not fetched"),
        "{:?}",
        said(&world)
    );
    assert!(!world.sources[0].whole);
}

#[test]
fn links_are_followed_inside_and_refused_outside() {
    let outside =
        folder(&[("secret.yaml", &order("shop/evil", "  environment: e\n")), ("sub/x.yaml", "a: 1\n")]);
    let dir = folder(&[
        ("orders/a.yaml", &order("shop/a", "  environment: e\n")),
        ("..2026/b.yaml", &order("shop/b", "  environment: e\n")),
        (".hidden/deep/c.yaml", &order("shop/c", "  environment: e\n")),
    ]);
    let root = dir.path();
    symlink("orders/a.yaml", root.join("again.yaml")).unwrap();
    symlink("orders", root.join("same")).unwrap();
    symlink("..", root.join("orders/loop")).unwrap();
    symlink("..2026", root.join("..data")).unwrap();
    symlink("..data/b.yaml", root.join("b.yaml")).unwrap();
    symlink("../.hidden", root.join("orders/more")).unwrap();
    let world = load_dir(&dir);
    assert_eq!(said(&world), Vec::<String>::new(), "each file is read once, loops end");
    let names: Vec<_> = world.orders.keys().map(ToString::to_string).collect();
    assert_eq!(names, ["shop/a", "shop/b", "shop/c"]);
    assert!(world.sources[0].whole);

    symlink(outside.path().join("secret.yaml"), root.join("evil.yaml")).unwrap();
    symlink(outside.path().join("sub"), root.join("evils")).unwrap();
    symlink("nowhere.yaml", root.join("dangling.yaml")).unwrap();
    symlink("nowhere.txt", root.join("dangling.txt")).unwrap();
    let world = load_dir(&dir);
    let messages = said(&world);
    assert_eq!(messages.len(), 3, "{messages:#?}");
    assert!(messages[0].starts_with("everything | objects/dangling.yaml: is a link to nothing"));
    assert!(messages[1].starts_with("everything | objects/evil.yaml: is a link that leaves the folder"));
    assert!(messages[2].starts_with("everything | objects/evils: is a link that leaves the folder"));
    assert!(!world.sources[0].whole && world.orders.len() == 3);
    let files = Folder::new("objects", root);
    assert!(
        files.read("evil.yaml").is_err()
            && files.read("../x").is_err()
            && files.read("nothing.yaml").unwrap().is_none()
    );
}

#[test]
fn one_file_is_a_source_too() {
    let dir = folder(&[("a.yaml", &order("shop/a", "  environment: e\n"))]);
    let files = Folder::new("a.yaml", dir.path().join("a.yaml"));
    let world = world_of(&[input(&files)]);
    assert_eq!((said(&world), world.orders.len()), (vec![], 1));
    assert_eq!(&*world.orders[&order_ref("shop/a")].origin.file, "a.yaml");
}

const APPLICATION: &str = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: kokumi-shop-a-00000000\n  namespace: argocd\n  \
labels:\n    delivery.kokumi.dev/serving: a\n    delivery.kokumi.dev/serving-namespace: shop\nspec:\n  project: default\n  source: {repoURL: \
\"oci://r.example/a\", targetRevision: \"sha256:0\", path: .}\n  destination: {server: https://kubernetes.default.svc, namespace: shop}\n";

#[test]
fn observed_applications() {
    let observe = |text: &str| {
        let observed = Observed {
            source: "observed".into(),
            file: "applications.yaml".into(),
            bytes: Ok(text.as_bytes().to_vec()),
        };
        world(&[], Some(&observed))
    };
    let item = |name: &str| {
        format!(
            "- {}\n  status: {{sync: {{status: Synced}}, reconciledAt: 2026-01-01T00:00:00Z}}\n",
            APPLICATION.trim_end().replace("a-00000000", name).replace('\n', "\n  ")
        )
    };
    let list = format!("apiVersion: v1\nkind: List\nitems:\n{}{}", item("a-1"), item("a-2"));
    let world = observe(&list);
    assert_eq!(said(&world), Vec::<String>::new());
    let applications = world.applications.unwrap();
    assert_eq!(applications.len(), 2);
    let one = &applications[&("argocd".to_owned(), "kokumi-shop-a-1".to_owned())];
    assert_eq!((one.object.status.as_ref().unwrap().sync.status.as_str(), one.origin.line), ("Synced", 4));
    assert_eq!(observe("apiVersion: v1\nkind: List\nitems: []\n").applications.map(|a| a.len()), Some(0));

    for (text, want) in [
        ("", "it is empty"),
        ("kind: List\nitems: [", "is no YAML"),
        ("kind: List\nmetadata: {continue: x}\nitems: []\n", "one page of a longer list"),
        (
            "kind: List\nitems:\n- kind: Application\n  metadata: {name: a}\n  status: {sync: [1]}\n",
            "status.sync: wanted a mapping",
        ),
        (&format!("kind: List\nitems:\n{}{}", item("a-1"), item("a-1")), "is there twice"),
    ] {
        let world = observe(text);
        let messages = said(&world);
        assert!(messages[0].starts_with("everything | ") && messages[0].contains(want), "{messages:?}");
        assert!(world.applications.is_none(), "what was not read in full observes nothing");
    }
    let lost = Observed {
        source: "observed".into(),
        file: "applications.yaml".into(),
        bytes: Err("no such file".into()),
    };
    assert!(expedite::load::world(&[], Some(&lost)).applications.is_none());
    assert!(one_application_in_a_folder_is_ignored());
}

fn one_application_in_a_folder_is_ignored() -> bool {
    let world = one(APPLICATION);
    said(&world).is_empty() && world.applications.is_none()
}

#[test]
fn the_gitops_repository() {
    let hash = "0".repeat(64);
    let serving = format!(
        "{HEAD}kind: Serving\nmetadata: {{name: a, namespace: shop}}\nspec: {{orderName: a, preparationName: p}}\nstatus:\n  \
         targetPreparationName: p\n  later: {{version: 1.10, count: 3, on: true}}\n"
    );
    let damaged = format!("{APPLICATION}  x: [\n");
    let dir = folder(&[
        ("servings/shop/a.yaml", &serving),
        ("servings/shop/b.yaml", &serving),
        ("servings/shop/c.yaml", "<<<<<<< HEAD\na: 1\n=======\n>>>>>>> x\n"),
        (
            "servings/shop/d.yaml",
            &serving.replace("name: a,", "name: d,").replace("orderName: a, prep", "orderName: d, prap"),
        ),
        ("servings/a.yaml", &serving),
        ("servings/README.yaml", "a: 1\n"),
        ("applications/shop/ours.yaml", APPLICATION),
        ("applications/shop/damaged.yaml", &damaged),
        ("applications/shop/foreign.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"),
        ("applications/shop/two.yaml", &format!("{APPLICATION}---\n{APPLICATION}")),
        ("templates/application.yaml", "{{ a }}"),
        (&format!("records/shop/a/{hash}.json"), "{}"),
        ("records/shop/a/notes.json", "{}"),
    ]);
    let files = Folder::new("repo", dir.path());
    let read = gitops(&files, None);
    let error = |order: &str| read.servings[&order_ref(order)].serving.as_ref().unwrap_err().to_string();
    let a = read.servings[&order_ref("shop/a")].serving.as_ref().unwrap();
    assert_eq!(a.status.target_preparation_name.as_ref().unwrap().as_str(), "p");
    assert_eq!(
        a.raw_status,
        Some(
            serde_json::json!({"targetPreparationName": "p", "later": {"version": "1.10", "count": 3, "on": true}})
        )
    );
    assert_eq!(&*read.servings[&order_ref("shop/a")].text, serving);
    assert_eq!(
        error("shop/b"),
        "repo/servings/shop/b.yaml:3:18: Serving shop/b: metadata.name: is \"a\", and the file's path says \"b\""
    );
    assert!(
        error("shop/c").contains("c.yaml:1:1: Serving shop/c: holds the marks of a merge"),
        "{}",
        error("shop/c")
    );
    assert!(
        error("shop/d").contains("spec.praparationName: is no field that is known here"),
        "{}",
        error("shop/d")
    );
    assert_eq!(read.problems.len(), 1);
    assert!(read.problems[0].failure.to_string().starts_with("repo/servings/a.yaml: Serving a: "));

    let application = |name: &str| &read.applications[&format!("applications/shop/{name}.yaml")];
    assert_eq!(application("ours").owner, Some(order_ref("shop/a")));
    assert!(application("ours").application.is_ok());
    assert_eq!(application("damaged").owner, Some(order_ref("shop/a")), "a damaged file of ours is ours");
    assert!(application("damaged").application.is_err());
    assert_eq!(application("foreign").owner, None);
    assert!(application("two").application.as_ref().unwrap_err().to_string().contains("second document"));
    assert_eq!(read.application_template.as_deref(), Some("{{ a }}"));
    assert_eq!(read.serving_template, None);
    assert_eq!(read.records[&order_ref("shop/a")], BTreeSet::from([hash]));
    assert!(gitops(&Folder::new("none", dir.path().join("servings/shop")), None).servings.is_empty());
}

#[test]
fn a_field_is_found_again_in_its_file() {
    let text = format!(
        "# first\n---\n{}",
        order("shop/a", "  environment: e\n  promotion:\n    upstream:\n    - {order: b}\n")
    );
    let at = |line| expedite::error::At { file: "objects/a.yaml".into(), line: Some(line), column: None };
    let mut failures = vec![
        Failure::input("x", "x").at(at(3)).field("spec.promotion.upstream[0].order"),
        Failure::input("x", "x").at(at(3)).field("metadata.annotations[\"a.b/c\"]"),
        Failure::input("x", "x").at(at(9)).field("spec"),
        Failure::input("x", "x"),
    ];
    refine(&mut failures, &|_| Some(text.clone().into_bytes()));
    let places: Vec<_> = failures.iter().map(|f| f.at.as_ref().map(ToString::to_string)).collect();
    let place = |text: &str| Some(text.to_owned());
    assert_eq!(
        places,
        [place("objects/a.yaml:10:15"), place("objects/a.yaml:5:11"), place("objects/a.yaml:9"), None]
    );
}

/// One file in memory.
struct Memory(Vec<u8>);

impl Files for Memory {
    fn name(&self) -> String {
        "memory".into()
    }
    fn walk(&self, prefix: &str) -> (Vec<Entry>, Vec<Unreadable>) {
        let path = if prefix.is_empty() { "a.yaml".into() } else { format!("{prefix}/shop/a.yaml") };
        (vec![Entry { path, kind: EntryKind::File, id: None }], Vec::new())
    }
    fn read(&self, _: &str) -> Result<Option<Vec<u8>>, Unreadable> {
        Ok(Some(self.0.clone()))
    }
}

proptest! {
    /// A text is read, or something is said about it and the source is not whole; never a panic.
    #[test]
    fn no_text_is_lost(pieces in proptest::collection::vec(
        prop_oneof![
            Just(HEAD.to_owned()),
            Just(order("shop/a", "  environment: e\n")),
            Just(preparation("p", "a", "")),
            Just(approval("v", "2026-01-01T00:00:00Z", "Reject")),
            Just("---\n".to_owned()),
            "kind: (Order|Approval|Secret|List|Kitchen|Oder)\n",
            "(metadata|spec|items|status|labels): ?(\\{|\\[|\n|&a |\\*a|<<: )?",
            "[ \\t]{0,4}- ?",
            "[ -~\\n]{0,12}",
            "\\PC{0,6}",
        ],
        0..8,
    )) {
        let text = pieces.concat();
        let files = Memory(text.clone().into_bytes());
        let world = world(&[input(&files)], None);
        let whole = world.sources[0].whole;
        prop_assert!(whole || world.sources[0].why.is_some());
        // Whatever stands before it, a vote is read, or something says that it may not have been.
        let vote = format!("{text}\n---\n{}", approval("last", "2026-01-01T00:00:00Z", "Reject"));
        let after = expedite::load::world(&[input(&Memory(vote.into_bytes()))], None);
        let held = after.problems.iter().any(|p| p.holds != Holds::Nothing);
        prop_assert!(held || after.approvals.keys().any(|(_, name)| name == "last"));
        let read = gitops(&files, None);
        prop_assert_eq!(read.servings.len() + read.applications.len(), 2);
        let observed = Observed { source: "observed".into(), file: "o".into(), bytes: Ok(text.into_bytes()) };
        let seen = expedite::load::world(&[], Some(&observed));
        prop_assert!(seen.applications.is_some() != seen.problems.iter().any(|p| p.holds == Holds::Everything));
    }

    #[test]
    fn no_bytes_of_a_file_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        let files = Memory(bytes);
        let world = world(&[input(&files)], None);
        prop_assert!(!world.sources[0].whole, "it holds no object");
        let _ = gitops(&files, None);
    }
}
