//! The files in the repository: what they are, who may change them, and who writes at once.

use super::*;
use crate::support::crd::Crd;
use crate::support::forge::Renderer;
use crate::support::harness::Place;
use std::collections::BTreeSet;

#[test]
fn argo_cd_takes_every_application() {
    let place = Place::with_shop();
    run(&place).ok();
    let crd = Crd::application();
    let mut seen = 0;
    for (path, text) in tree(&place).iter().filter(|(path, _)| path.starts_with("applications/")) {
        let application: serde_json::Value = serde_yaml::from_str(text).unwrap();
        assert_eq!(crd.errors(&application), Vec::<String>::new(), "{path}");
        let spec = &application["spec"];
        assert_eq!(
            spec["source"].as_object().unwrap().keys().collect::<Vec<_>>(),
            ["repoURL", "targetRevision", "path"]
        );
        assert_eq!(spec["source"]["path"], ".");
        assert!(spec["source"]["targetRevision"].as_str().unwrap().starts_with("sha256:"));
        seen += 1;
    }
    assert!(seen >= 5, "{seen} Applications");
}

#[test]
fn a_hand_edit_is_restored_and_a_check_refuses_it() {
    let place = Place::with_shop();
    run(&place).ok();
    let before = tree(&place);
    let path = before.keys().find(|path| path.starts_with("applications/shop-dev/")).unwrap().clone();
    place.git(&["clone", "-q", "shop.git", "checkout"]);
    let file = format!("checkout/{path}");
    let text = place.read(&file);
    place.write(&file, text.replace("prune: true", "prune: false"));
    place.git(&["-C", "checkout", "commit", "-q", "-a", "-m", "Do not prune"]);
    place.git(&["-C", "checkout", "push", "-q", "origin", "main"]);
    let edited = head(&place);
    for arguments in [&["run", "--check"][..], &["run", "--check", "--dry-run"]] {
        let said = verb(&place, arguments);
        said.exits(5);
        assert_eq!(head(&place), edited);
        // The edit itself, and the file.
        for line in [&format!("  --- a/{path}"), "  -      prune: true", "  +      prune: false"] {
            assert!(said.stdout.lines().any(|l| l == line), "no {line:?} in {}", said.transcript("run"));
        }
        assert!(said.stderr.contains(&format!("error: {path}: edited by hand")), "{}", said.stderr);
    }
    let json: serde_json::Value =
        serde_json::from_str(verb(&place, &["run", "--check", "-o", "json"]).exits(5)).unwrap();
    let diff = json["drift"][0]["diff"].as_str().unwrap();
    assert!(diff.contains("\n-      prune: true\n+      prune: false\n"), "{diff}");
    let said = run(&place);
    said.ok();
    assert!(said.stderr.contains(&path) || said.stdout.contains(&path), "{}", said.transcript("run"));
    assert_eq!(tree(&place), before);
}

/// Puts a file into the shop's repository, as a person does.
fn commit(place: &Place, path: &str, text: &str) {
    let _ = std::fs::remove_dir_all(place.path("person"));
    place.git(&["clone", "-q", "shop.git", "person"]);
    place.write(&format!("person/{path}"), text);
    place.git(&["-C", "person", "add", "-A"]);
    place.git(&["-C", "person", "commit", "-q", "-m", "By hand"]);
    place.git(&["-C", "person", "push", "-q", "origin", "HEAD:main"]);
}

#[test]
fn a_removed_file_is_shown_and_a_foreign_application_fails_the_check_alone() {
    let place = Place::with_shop();
    run(&place).ok();
    let path = tree(&place).keys().find(|path| path.starts_with("applications/shop-dev/")).unwrap().clone();
    place.git(&["clone", "-q", "shop.git", "checkout"]);
    place.git(&["-C", "checkout", "rm", "-q", &path]);
    place.git(&["-C", "checkout", "commit", "-q", "-m", "Not needed"]);
    place.git(&["-C", "checkout", "push", "-q", "origin", "main"]);
    let said = verb(&place, &["run", "--check"]);
    said.exits(5);
    assert!(said.stdout.lines().any(|l| l == "  +++ /dev/null"), "{}", said.transcript("run"));
    run(&place).ok();
    verb(&place, &["run", "--check"]).ok();
    let theirs = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: other, namespace: argocd}\n\
                  spec:\n  project: default\n  source: {repoURL: \"https://git.example/x.git\", path: ., targetRevision: main}\n\
                  \x20 destination: {server: \"https://kubernetes.default.svc\", namespace: other}\n";
    commit(&place, "applications/shop/other.yaml", theirs);
    let before = head(&place);
    for arguments in [&["run", "--check"][..], &["run", "--check", "--dry-run"]] {
        let said = verb(&place, arguments);
        said.exits(5);
        assert!(said.stderr.contains("error: applications/shop/other.yaml: not ours"), "{}", said.stderr);
        assert!(said.stderr.contains("hint:"), "{}", said.stderr);
    }
    // Without the check it is reported and left alone.
    let said = run(&place);
    said.ok();
    assert!(said.stderr.contains("warning: applications/shop/other.yaml"), "{}", said.stderr);
    assert_eq!(tree(&place)["applications/shop/other.yaml"], theirs);
    assert_eq!(head(&place), before);
}

#[test]
fn what_is_not_ours_is_never_touched() {
    let place = Place::with_shop();
    run(&place).ok();
    place.git(&["clone", "-q", "shop.git", "checkout"]);
    place.write("checkout/README.md", "Ours.\r\n");
    place.write("checkout/apps/other.yaml", "a:   1\n");
    place.git(&["-C", "checkout", "add", "-A"]);
    place.git(&["-C", "checkout", "commit", "-q", "-m", "Say what this is"]);
    place.git(&["-C", "checkout", "push", "-q", "origin", "main"]);
    place.edit("objects/orders/shop-dev.yaml", "mode: Automatic\n---", "mode: Manual\n---");
    let basket = artifact(&place, "shop/basket", "2.1.0");
    verb(&place, &["promote", "shop/basket", &format!("basket-{}", &basket[7..19])]).ok();
    run(&place).ok();
    let tree = tree(&place);
    assert_eq!(tree["README.md"], "Ours.\r\n");
    assert_eq!(tree["apps/other.yaml"], "a:   1\n");
}

/// Puts a template into the shop's repository.
fn template(place: &Place, text: &str) {
    place.git(&["clone", "-q", "shop.git", "checkout"]);
    place.write("checkout/templates/application.yaml", text);
    place.git(&["-C", "checkout", "add", "-A"]);
    place.git(&["-C", "checkout", "commit", "-q", "-m", "Our own template"]);
    place.git(&["-C", "checkout", "push", "-q", "origin", "HEAD:main"]);
}

#[test]
fn a_template_that_unpins_the_digest_or_adds_a_source_is_refused() {
    let builtin =
        std::fs::read_to_string(crate::support::harness::package().join("templates/application.yaml"))
            .unwrap();
    let revision = builtin.lines().find(|line| line.trim_start().starts_with("targetRevision:")).unwrap();
    let indent = &revision[..revision.len() - revision.trim_start().len()];
    let spec = builtin.lines().find(|line| line.starts_with("spec:")).unwrap();
    for (name, changed) in [
        ("un-pins", builtin.replace(revision, &format!("{indent}targetRevision: latest"))),
        (
            "adds a source",
            builtin.replace(spec, "spec:\n  sources: [{repoURL: \"https://git.example/x.git\", path: .}]"),
        ),
        ("adds an operation", format!("{builtin}\noperation: {{sync: {{}}}}\n")),
    ] {
        let place = Place::with_shop();
        run(&place).ok();
        let before = tree(&place);
        template(&place, &changed);
        let basket = artifact(&place, "shop/basket", "2.1.0");
        verb(&place, &["promote", "shop/basket", &format!("basket-{}", &basket[7..19])]).ok();
        let said = run(&place);
        said.exits(1);
        assert!(said.stderr.contains("templates/application.yaml:"), "{name}: {}", said.stderr);
        let after = tree(&place);
        for (path, text) in before.iter().filter(|(path, _)| path.starts_with("applications/")) {
            assert_eq!(after.get(path), Some(text), "{name}: {path}");
        }
        assert_eq!(pinned(&place, "shop/basket"), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_template_may_add_labels() {
    let builtin =
        std::fs::read_to_string(crate::support::harness::package().join("templates/application.yaml"))
            .unwrap();
    let labels = builtin.lines().find(|line| line.trim() == "labels:").unwrap();
    let indent = " ".repeat(labels.len() - labels.trim_start().len() + 2);
    let place = Place::with_shop();
    run(&place).ok();
    template(&place, &builtin.replace(labels, &format!("{labels}\n{indent}team: {{{{ order.name }}}}")));
    run(&place).ok();
    assert_eq!(applications(&place, "shop/catalog")[0]["metadata"]["labels"]["team"], "catalog");
}

/// A fleet of its own: Orders by their names in one Environment, all Automatic, all proven.
fn fleet(orders: &[&str]) -> Place {
    let place = Place::new();
    let renderer = Renderer::new(7);
    let indented = |pem: &str| pem.lines().map(|line| format!("        {line}\n")).collect::<String>();
    let key = indented(&renderer.public_key());
    let keys = crate::support::harness::shop().join("keys");
    std::fs::copy(keys.join("test-job.key"), place.path("test-job.key")).unwrap();
    let job = indented(&std::fs::read_to_string(keys.join("test-job.pub")).unwrap());
    let head = "apiVersion: delivery.kokumi.dev/v1alpha1\nkind:";
    place.write(
        "expedite.yaml",
        "sources: [{path: ./objects}]\nrepository: {url: ./shop.git, branch: main, create: true}\n\
         registries:\n  registry.shop.example:5000: {layout: ./registry}\nsigning: {keyFile: test-job.key}\n",
    );
    place.write(
        "objects/all.yaml",
        format!(
            "{head} Kitchen\nmetadata: {{name: default}}\nspec:\n  trust:\n    keys:\n    - name: renderer\n      publicKey: |\n{key}    - name: job\n      roles: [approvals, records]\n      publicKey: |\n{job}---\n\
             {head} Cluster\nmetadata: {{name: c}}\nspec: {{server: \"https://c.example\"}}\n---\n\
             {head} Environment\nmetadata: {{name: e}}\nspec: {{clusters: [c]}}\n"
        ),
    );
    for order in orders {
        let digest = renderer.prepare(&place.path("registry"), order, order);
        let (namespace, name) = order.split_once('/').unwrap();
        place.write(
            &format!("objects/{order}.yaml"),
            format!(
                "{head} Order\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec: {{environment: e, promotion: {{mode: Automatic}}}}\n---\n\
                 {head} Preparation\nmetadata: {{name: {name}-1, namespace: {namespace}, creationTimestamp: \"2026-01-01T00:00:00Z\"}}\n\
                 spec:\n  orderName: {name}\n  artifact:\n    ociRef: oci://registry.shop.example:5000/{order}@{digest}\n    digest: {digest}\n    signed: true\n"
            ),
        );
    }
    place
}

#[test]
fn names_that_collide_by_hyphens_get_two_applications() {
    let orders = ["a-b/c", "a/b-c", "foo-bar/baz", "foo/bar-baz"];
    let place = fleet(&orders);
    run(&place).ok();
    let names: BTreeSet<String> = orders
        .iter()
        .flat_map(|order| applications(&place, order))
        .map(|a| a["metadata"]["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names.len(), orders.len(), "{names:?}");
    for order in orders {
        assert_eq!(pinned(&place, order).len(), 1, "{order}");
    }
}

#[test]
fn names_that_other_readers_take_for_values_stay_names() {
    let orders = ["on/no", "y/012e4", "n/1e3", "off/0x10"];
    let place = fleet(&orders);
    // In the objects they are quoted as kubectl quotes them.
    for order in orders {
        let (namespace, name) = order.split_once('/').unwrap();
        let path = format!("objects/{order}.yaml");
        let text = place.read(&path);
        let text = text.replace(&format!("name: {name},"), &format!("name: \"{name}\","));
        let text = text.replace(&format!("namespace: {namespace}"), &format!("namespace: \"{namespace}\""));
        place
            .write(&path, text.replace(&format!("orderName: {name}\n"), &format!("orderName: \"{name}\"\n")));
    }
    run(&place).ok();
    for order in orders {
        let (namespace, name) = order.split_once('/').unwrap();
        let serving = serving(&place, order);
        assert_eq!(serving["metadata"]["namespace"], namespace);
        assert_eq!(serving["spec"]["orderName"], name);
        let application = &applications(&place, order)[0];
        assert_eq!(application["spec"]["destination"]["namespace"], namespace);
    }
    crate::e2e::inputs::read_alike(&place);
}

#[test]
fn eight_runs_at_once_lose_nothing() {
    let orders: Vec<String> = (0..8).map(|n| format!("team-{n}/service")).collect();
    let place = fleet(&orders.iter().map(String::as_str).collect::<Vec<_>>());
    place.git(&["init", "-q", "--bare", "shop.git"]);
    let children: Vec<_> = orders
        .iter()
        .map(|order| {
            let mut command =
                place.binary(&["run", "--config", "expedite.yaml", "--at", AT, "--only", order]);
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    for order in &orders {
        assert_eq!(pinned(&place, order).len(), 1, "{order}");
        let history = serving(&place, order)["status"]["history"].clone();
        assert_eq!(history.as_array().unwrap().len(), 1, "{order}: {history}");
    }
    let commits = place.git(&["-C", "shop.git", "rev-list", "--count", "main"]);
    assert_eq!(commits.trim(), "8");
    // With one scope, one commit in all.
    let settled = head(&place);
    run(&place).ok();
    assert_eq!(head(&place), settled);
}
