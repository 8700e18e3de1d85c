//! Each kind of damage has its stable code, which programs read (`docs/codes.md`).

use super::*;

/// The codes of what is wrong in one file.
fn codes(bytes: &[u8]) -> BTreeSet<&'static str> {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a.yaml", bytes);
    load_dir(&dir).problems.iter().map(|problem| problem.failure.code).collect()
}

#[test]
fn each_kind_of_damage_has_its_code() {
    let deep = format!("{HEAD}kind: Order\nspec: {}\n", "[".repeat(200));
    let bomb: String =
        (1..12).map(|n| format!("x{n}: &x{n} [{}]\n", vec![format!("*x{}", n - 1); 10].join(", "))).collect();
    let listed = |rest: &str| format!("apiVersion: v1\nkind: List\n{rest}\n");
    for (code, text) in [
        ("syntax", "a: [1\nb: }".to_owned()),
        ("alias", order("shop/a", "  environment: *none\n")),
        ("alias-bomb", format!("x0: &x0 [a, a]\n{bomb}{}", order("shop/a", "  environment: e\n"))),
        ("complex-key", order("shop/a", "  ? [a, b]\n  : c\n")),
        ("control-character", order("shop/a", "  environment: \"a\u{1}\"\n")),
        ("duplicate-key", order("shop/a", "  environment: e\n  environment: f\n")),
        ("merge-key", order("shop/a", "  promotion:\n    <<: text\n")),
        ("merge-conflict", "<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> other\n".to_owned()),
        ("lfs-pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n".to_owned()),
        ("too-deep", deep),
        ("wrong-type", order("shop/a", "  environment: [e]\n")),
        ("invalid-value", order("shop/a", "  environment: Not_A_Name\n")),
        ("missing-field", preparation("p", "a", "").replace("orderName", "x")),
        ("unknown-field", order("shop/a", "  promotion: {aprovals: {}}\n")),
        (
            "unknown-kind",
            format!(
                "{}kind: Order\nmetadata: {{name: a, namespace: s}}\nspec: {{}}\n",
                HEAD.replace("v1alpha1", "v9")
            ),
        ),
        (
            "seen-twice",
            format!(
                "{}---\n{}",
                order("shop/a", "  environment: e\n"),
                order("shop/a", "  environment: e\n")
            ),
        ),
        (
            "bare-list",
            format!("- {}", order("shop/a", "  environment: e\n").trim_end().replace('\n', "\n  ")),
        ),
        ("cut-list", listed("metadata: {continue: more}\nitems: []")),
    ] {
        assert!(codes(text.as_bytes()).contains(code), "{code}: {:?} of\n{text}", codes(text.as_bytes()));
    }
    assert!(codes(b"kind: \xFF\n").contains("not-utf8"));
}

#[test]
fn what_may_not_come_from_a_source_is_refused_by_its_code() {
    let dir = folder(&[("a.yaml", &order("shop/a", "  environment: e\n"))]);
    let files = DiskFolder::new("objects", dir.path());
    let world = world_of(&[Input { kinds: Some(BTreeSet::from([Kind::Approval])), ..input(&files) }]);
    assert_eq!(world.problems.iter().map(|problem| problem.failure.code).collect::<Vec<_>>(), ["refused"]);
}
