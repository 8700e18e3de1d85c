//! Cases from the field, through the real binary: what is deployed already stays as it is.

use super::*;
use crate::support::harness::Place;
use expedite::model::id::{ClusterName, OrderRef};
use expedite::model::naming::{build_application_name, build_application_path};

/// The Applications of the shop's repository, and their text.
fn all_applications(place: &Place) -> BTreeMap<String, String> {
    tree(place).into_iter().filter(|(path, _)| path.starts_with("applications/")).collect()
}

#[test]
fn b03_a_gate_written_twice_holds_and_removes_nothing() {
    let place = Place::with_shop();
    run(&place).ok();
    let before = all_applications(&place);
    place.edit(
        "objects/orders/shop-dev.yaml",
        "  promotion:\n    mode: Automatic\n---",
        "  promotion:\n    approvals: {requiredApprovals: 2, allowedGroups: [g]}\n  promotion: {mode: Automatic}\n---",
    );
    let said = run(&place);
    said.exits(1);
    assert!(said.stderr.contains("the key \"promotion\" is written twice"), "{}", said.stderr);
    assert_eq!(all_applications(&place), before);
    assert!(!tree(&place)["servings/shop-dev/catalog.yaml"].is_empty());
}

#[test]
fn b07_an_order_and_a_vote_that_are_lfs_pointers_change_nothing() {
    let place = Place::with_shop();
    run(&place).ok();
    let before = tree(&place);
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n";
    place.write("objects/orders/shop-dev.yaml", pointer);
    place.write("objects/approvals/ann.yaml", pointer);
    let said = run(&place);
    said.exits(1);
    for file in ["objects/orders/shop-dev.yaml", "objects/approvals/ann.yaml"] {
        assert!(said.stderr.contains(&format!("{file}:1:1: is a Git LFS pointer")), "{}", said.stderr);
    }
    let after = tree(&place);
    for (path, text) in before.iter().filter(|(path, _)| path.starts_with("applications/")) {
        assert_eq!(after.get(path), Some(text), "{path}");
    }
    assert!(after.contains_key("servings/shop-dev/catalog.yaml"));
    // What the vote says is not known, so that nobody is promoted past it.
    promote_basket(&place);
    run(&place).exits(1);
    assert_eq!(pinned(&place, "shop/basket"), Vec::<String>::new());
}

fn promote_basket(place: &Place) {
    let digest = artifact(place, "shop/basket", "2.1.0");
    verb(place, &["promote", "shop/basket", &format!("basket-{}", &digest[7..19])]).ok();
}

/// One thing is changed at a time, all on one repository.
#[test]
fn b13_no_change_renames_or_moves_an_application() {
    let place = Place::with_shop();
    run(&place).ok();
    let paths: Vec<String> = all_applications(&place).into_keys().collect();
    let clusters = "objects/clusters.yaml";
    place.edit(clusters, "https://dev-1.k8s.shop.example:6443", "https://dev-1.moved.shop.example");
    place.edit("objects/environments.yaml", "argocdProject: shop-staging", "argocdProject: other");
    place.edit(
        clusters,
        "labels: {stage: production, region: us}",
        "labels: {region: us-east, stage: production}",
    );
    place.edit(
        "objects/environments.yaml",
        "  clusterSelector:\n    matchLabels: {stage: production}\n",
        "  clusters: [us-1, eu-1, ap-1]\n",
    );
    let ap = "---\napiVersion: delivery.kokumi.dev/v1alpha1\nkind: Cluster\nmetadata: {name: ap-1}\nspec: {server: \"https://ap-1.shop.example\"}\n";
    place.write(clusters, format!("{}{ap}", place.read(clusters)));
    run(&place);
    let after: Vec<String> = all_applications(&place).into_keys().collect();
    for path in &paths {
        assert!(after.contains(path), "{path} is gone: {after:?}");
    }
    let order = OrderRef::parse("shop/catalog").unwrap();
    let name = build_application_name(&order, &ClusterName::parse("ap-1").unwrap()).unwrap();
    assert!(after.contains(&build_application_path(&order, &name)), "the new Cluster has its own: {after:?}");
    assert_eq!(after.len(), paths.len() + 2, "catalog and storefront, once more each");
}

#[test]
fn b60_a_rollback_to_an_artifact_that_is_gone_is_held_as_gone() {
    for whole in [true, false] {
        let place = Place::with_shop();
        promote_basket(&place);
        run(&place).ok();
        let deployed = all_applications(&place);
        let digest = artifact(&place, "shop/basket", "2.2.0");
        let layout = layout::repository(&place.path("registry"), "shop/basket");
        let blob = match whole {
            true => digest.clone(),
            false => layout.manifest(&digest)["layers"][0]["digest"].as_str().unwrap().to_owned(),
        };
        std::fs::remove_file(layout.blob(&blob)).unwrap();
        if whole {
            let left: Vec<_> =
                layout.entries().into_iter().filter(|e| e["digest"] != digest.as_str()).collect();
            layout.set_entries(&left);
        }
        verb(&place, &["promote", "shop/basket", &format!("basket-{}", &digest[7..19])]).ok();
        let table = run(&place).ok().to_owned();
        assert_eq!(row(&table, "shop", "basket")["VERIFIED"], "ArtifactNotFound", "{table}");
        assert_eq!(all_applications(&place), deployed, "what is deployed stays");
    }
}

#[test]
fn b74_a_dropped_cluster_is_shown_first_and_a_missing_one_is_held() {
    let place = Place::with_shop();
    place.edit(
        "objects/environments.yaml",
        "  clusterSelector:\n    matchLabels: {stage: production}\n",
        "  clusters: [eu-1, us-1]\n",
    );
    run(&place).ok();
    let before = all_applications(&place);
    // Its object is missing while the Environment names it.
    let clusters = place.read("objects/clusters.yaml");
    let (rest, _) = clusters.rsplit_once("---\n").unwrap();
    place.write("objects/clusters.yaml", rest);
    run(&place);
    assert_eq!(all_applications(&place), before);
    let held = serving(&place, "shop/catalog");
    let us = held["status"]["clusters"].as_array().unwrap().iter().find(|c| c["name"] == "us-1").unwrap();
    assert_eq!(us["reason"], "ClusterMissing");
    // Dropped on purpose.
    place.edit("objects/environments.yaml", "clusters: [eu-1, us-1]", "clusters: [eu-1]");
    let plan = verb(&place, &["plan"]);
    let gone: Vec<&String> =
        before.keys().filter(|path| plan.stdout.contains(&format!("remove {path}"))).collect();
    assert_eq!(gone.len(), 2, "{}", plan.stdout);
    run(&place).ok();
    let after = all_applications(&place);
    assert_eq!(after.len(), before.len() - 2);
    assert!(gone.iter().all(|path| !after.contains_key(*path)));
    // The Environment itself is gone: nothing is removed for it.
    let environments = place.read("objects/environments.yaml");
    let (rest, _) = environments.rsplit_once("---\n").unwrap();
    place.write("objects/environments.yaml", rest);
    run(&place).exits(1);
    assert_eq!(all_applications(&place), after);
}

#[test]
fn b78_only_the_cluster_whose_name_is_taken_is_held() {
    for (annotation, opens) in [
        ("", false),
        ("shop/basket-extra", false),
        ("\"shop/basket \"", false),
        ("shop/basket, shop/other", false),
        ("shop/basket", true),
    ] {
        let place = Place::with_shop();
        run(&place).ok();
        let order = OrderRef::parse("shop/basket").unwrap();
        let name = build_application_name(&order, &ClusterName::parse("eu-1").unwrap()).unwrap();
        let path = build_application_path(&order, &name);
        let annotations = match annotation {
            "" => String::new(),
            value => format!("  annotations:\n    delivery.kokumi.dev/allowed-order: {value}\n"),
        };
        let theirs = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: {name}\n  namespace: argocd\n{annotations}spec:\n  \
             project: shop\n  source:\n    repoURL: oci://registry.shop.example:5000/shop/basket\n    targetRevision: 2.0.0\n    \
             path: .\n  destination:\n    server: https://eu-1.k8s.shop.example:6443\n    namespace: shop\n"
        );
        place.git(&["clone", "-q", "shop.git", "checkout"]);
        place.write(&format!("checkout/{path}"), &theirs);
        place.git(&["-C", "checkout", "add", "-A"]);
        place.git(&["-C", "checkout", "commit", "-q", "-m", "Argo CD as we had it"]);
        place.git(&["-C", "checkout", "push", "-q", "origin", "HEAD:main"]);
        promote_basket(&place);
        run(&place);
        assert_eq!(tree(&place)[&path] != theirs, opens, "{annotation:?}");
        if !opens {
            assert_eq!(
                applications(&place, "shop/basket").len(),
                1,
                "{annotation:?}: the other Cluster goes on"
            );
            assert_eq!(condition(&serving(&place, "shop/basket"), "Ready").1, "OptInRequired");
        }
    }
}

#[test]
fn eight_equal_runs_at_once_make_one_commit() {
    let place = Place::with_shop();
    place.git(&["init", "-q", "--bare", "-b", "main", "shop.git"]);
    let children: Vec<_> = (0..8)
        .map(|_| {
            let mut command = place.binary(&["run", "--config", "expedite.yaml", "--at", AT]);
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(place.git(&["-C", "shop.git", "rev-list", "--count", "main"]).trim(), "1");
    let alone = Place::with_shop();
    run(&alone).ok();
    assert_eq!(all_applications(&place), all_applications(&alone));
    place.git(&["-C", "shop.git", "fsck", "--strict"]);
}
