//! Files that cannot be read, and what each of them holds: case B07 and its kin.

use super::*;

#[test]
fn b07_an_lfs_pointer_is_named_and_nothing_is_whole() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n";
    let world = load(&[("a.yaml", &order("shop/b", "  environment: e\n")), ("podinfo.yaml", pointer)]);
    assert_eq!(
        said(&world),
        [
            "everything | objects/podinfo.yaml:1:1: is a Git LFS pointer instead of the file itself | fetch it (git lfs pull; with actions/checkout: lfs: true)"
        ]
    );
    assert_eq!((world.sources[0].whole, world.orders.len()), (false, 1));
    assert_eq!(world.sources[0].why.as_deref(), Some("objects/podinfo.yaml cannot be read"));
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

/// An Order that is called what no Order can be called stops no other; nor does a Preparation of one.
#[test]
fn who_cannot_be_named_holds_nobody_and_nothing_looks_deleted() {
    let good = order("shop/a", "  environment: e\n");
    let spec = "spec: {environment: e}\n";
    let bad =
        |kind: &str, metadata: &str, spec: &str| format!("{HEAD}kind: {kind}\nmetadata: {metadata}\n{spec}");
    for (text, is_order) in [
        (bad("Order", "{name: Bad_Name, namespace: shop}", spec), true),
        (bad("Order", "{name: b}", spec), true),
        (bad("Order", "{name: b, namespace: Shop}", spec), true),
        (bad("Order", "{generateName: b-, namespace: shop}", spec), true),
        (bad("Preparation", "{name: p, namespace: shop}", "spec: {orderName: NOPE}\n"), false),
        (bad("Preparation", "{name: p, namespace: shop}", "spec: []\n"), false),
        (preparation("p", "a", "").replace(", namespace: shop", ""), false),
    ] {
        let world = load(&[("a.yaml", &good), ("b.yaml", &text)]);
        let messages = said(&world);
        assert!(!messages.is_empty(), "{text}");
        for message in &messages {
            assert!(message.starts_with(" | objects/b.yaml:"), "{text}\n{messages:#?}");
        }
        assert_eq!(world.orders.len(), 1, "{text}");
        assert_eq!(world.sources[0].whole, !is_order, "{text}");
    }
    // A vote that cannot be read may be a Reject.
    let vote = approval("v", "2026-01-01T00:00:00Z", "Reject").replace(", namespace: shop", "");
    assert!(said(&load(&[("a.yaml", &good), ("b.yaml", &vote)]))[0].starts_with("everything | "));
}

#[test]
fn beside_an_empty_file_nothing_looks_deleted() {
    let good = order("shop/a", "  environment: e\n");
    let world = load(&[("a.yaml", &good), ("b.yaml", ""), ("c.yaml", "# nothing yet\n")]);
    assert_eq!(said(&world), Vec::<String>::new());
    assert_eq!(world.sources[0].why.as_deref(), Some("objects/b.yaml is an empty file"));
    assert!(load(&[("a.yaml", &good), ("c.yaml", "# nothing yet\n")]).sources[0].whole);
}

#[test]
fn a_name_that_is_no_text_is_told_as_that() {
    use std::os::unix::ffi::OsStrExt as _;
    let dir = folder(&[("a.yaml", &order("shop/a", "  environment: e\n"))]);
    let name = std::ffi::OsStr::from_bytes(b"b\xff.yaml");
    fs::write(dir.path().join(name), order("shop/b", "  environment: e\n")).unwrap();
    let world = load_dir(&dir);
    let messages = said(&world);
    assert_eq!(messages.len(), 1, "{messages:#?}");
    assert!(messages[0].contains("its name is not UTF-8; rename it"), "{messages:#?}");
    assert!(!world.sources[0].whole);
}
