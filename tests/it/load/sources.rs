//! Where objects may come from, and when a source was read whole.

use super::*;

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
    let files = DiskFolder::new("team", dir.path());
    let world = world_of(&[Input {
        kinds: Some(BTreeSet::from([Kind::Order, Kind::Approval])),
        namespaces: Some(BTreeSet::from([Namespace::parse("shop").unwrap()])),
        ..input(&files)
    }]);
    assert_eq!(
        said(&world),
        [
            " | team/b.yaml:1: Order other/b: is refused: this source may only contain objects of the namespaces shop | ",
            " | team/kitchen.yaml:1: Kitchen default: is refused: this source may only contain Order, Approval | ",
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
    let files = DiskFolder::new(".", dir.path());
    let world = world_of(&[Input { name: "repository".into(), skip: OURS, ..input(&files) }]);
    assert_eq!(said(&world), Vec::<String>::new());
    assert_eq!((world.orders.len(), world.stray_servings.len()), (1, 1));
    assert_eq!(&*world.orders[&order_ref("shop/a")].origin.file, "orders/a.yaml");
    assert!(world.sources[0].whole && world.applications.is_none());
}

#[test]
fn sources_that_are_not_whole_say_why() {
    let gone = DiskFolder::new("gone", "/nonexistent/folder");
    let world = world_of(&[input(&gone)]);
    assert!(!world.sources[0].whole);
    assert!(said(&world)[0].starts_with("everything | gone: there is no such folder"), "{:?}", said(&world));

    let empty = load(&[("README.md", "x")]);
    assert_eq!(empty.sources[0].why.as_deref(), Some("it holds no object of a known kind"));

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
    assert!(messages[0].starts_with("everything | objects/dangling.yaml: is a broken link"));
    assert!(messages[1].starts_with("everything | objects/evil.yaml: is a link out of the folder"));
    assert!(messages[2].starts_with("everything | objects/evils: is a link out of the folder"));
    assert!(!world.sources[0].whole && world.orders.len() == 3);
    let files = DiskFolder::new("objects", root);
    assert!(
        files.read_file("evil.yaml").is_err()
            && files.read_file("../x").is_err()
            && files.read_file("nothing.yaml").unwrap().is_none()
    );
}

#[test]
fn one_file_is_a_source_too() {
    let dir = folder(&[("a.yaml", &order("shop/a", "  environment: e\n"))]);
    let files = DiskFolder::new("a.yaml", dir.path().join("a.yaml"));
    let world = world_of(&[input(&files)]);
    assert_eq!((said(&world), world.orders.len()), (vec![], 1));
    assert_eq!(&*world.orders[&order_ref("shop/a")].origin.file, "a.yaml");
}
