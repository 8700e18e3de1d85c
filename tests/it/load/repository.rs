//! What the GitOps repository itself holds.

use super::*;

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
    let files = DiskFolder::new("repo", dir.path());
    let read = read_gitops(&files, None);
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
        error("shop/c").contains("c.yaml:1:1: Serving shop/c: contains the marks of an unresolved merge"),
        "{}",
        error("shop/c")
    );
    assert!(error("shop/d").contains("spec.praparationName: is not a known field"), "{}", error("shop/d"));
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
    assert!(
        read_gitops(&DiskFolder::new("none", dir.path().join("servings/shop")), None).servings.is_empty()
    );
}
