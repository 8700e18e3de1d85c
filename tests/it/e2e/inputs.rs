//! Objects that are wrong, and what they must not lead to.

use super::*;
use crate::support::harness::Place;

#[test]
fn a_misspelt_gate_holds() {
    let place = Place::with_shop();
    place.edit(
        "objects/orders/shop-dev.yaml",
        "    mode: Automatic\n---",
        "    mode: Automatic\n    aprovals: {requiredApprovals: 2}\n---",
    );
    let said = run(&place);
    said.exits(1);
    let line =
        said.stderr.lines().find(|l| l.contains("aprovals")).unwrap_or_else(|| panic!("{}", said.stderr));
    assert!(line.contains("objects/orders/shop-dev.yaml:"), "{line}");
    assert!(said.stderr.contains("approvals"), "no nearest name: {}", said.stderr);
    assert_eq!(pinned(&place, "shop-dev/catalog"), Vec::<String>::new());
    assert_eq!(pinned(&place, "shop-dev/storefront").len(), 1, "the others go on");
}

#[test]
fn a_gate_that_does_not_pass_holds_by_name() {
    let place = Place::with_shop();
    // Saturday.
    let said = place.expedite(&["run", "--config", "expedite.yaml", "--at", "2026-02-07T12:00:00Z"]);
    assert_eq!(row(said.ok(), "shop", "storefront")["REASON"], "Pending");
    let serving = serving(&place, "shop/storefront");
    let ready =
        serving["status"]["conditions"].as_array().unwrap().iter().find(|c| c["type"] == "Ready").unwrap();
    let message = ready["message"].as_str().unwrap();
    assert!(message.contains("waits for Window") && message.contains("2026-02-09T"), "{message}");
    assert_eq!(pinned(&place, "shop/storefront"), Vec::<String>::new());
    run(&place).ok();
    assert_eq!(pinned(&place, "shop/storefront").len(), 1, "Tuesday");
}

#[test]
fn a_key_that_is_written_twice_is_refused_at_the_second() {
    let place = Place::with_shop();
    place.edit(
        "objects/orders/shop-dev.yaml",
        "  promotion:\n    mode: Automatic\n---",
        "  promotion:\n    approvals: {requiredApprovals: 2}\n  promotion:\n    mode: Automatic\n---",
    );
    let second = 1 + place
        .read("objects/orders/shop-dev.yaml")
        .lines()
        .enumerate()
        .filter(|(_, l)| *l == "  promotion:")
        .nth(1)
        .unwrap()
        .0;
    let said = run(&place);
    said.exits(1);
    let at = format!("objects/orders/shop-dev.yaml:{second}:3");
    assert!(said.stderr.contains(&at), "no {at} in {}", said.stderr);
    assert_eq!(pinned(&place, "shop-dev/catalog"), Vec::<String>::new());
}

#[test]
fn a_broken_file_removes_nothing_and_holds_what_it_may_bear_on() {
    let place = Place::with_shop();
    run(&place).ok();
    let before = tree(&place);
    place.write("objects/orders/shop.yaml", "kind: Order\nmetadata: {name: [\n");
    let said = run(&place);
    said.exits(1);
    assert!(said.stderr.contains("objects/orders/shop.yaml:"), "{}", said.stderr);
    let after = tree(&place);
    for (path, text) in before.iter().filter(|(path, _)| path.starts_with("applications/")) {
        assert_eq!(after.get(path), Some(text), "{path}");
    }
}

#[test]
fn an_empty_folder_and_a_vanished_one_remove_nothing() {
    for vanished in [false, true] {
        let place = Place::with_shop();
        run(&place).ok();
        let before = tree(&place);
        let objects = place.path("objects");
        std::fs::remove_dir_all(&objects).unwrap();
        if !vanished {
            std::fs::create_dir(&objects).unwrap();
        }
        let said = run(&place);
        assert_ne!(said.status, Some(0), "{}", said.transcript("run"));
        let after = tree(&place);
        for path in before.keys() {
            assert!(after.contains_key(path), "{path} went (vanished: {vanished})");
        }
    }
}

/// Every YAML file of the repository means the same to a reader of YAML 1.1 as to ours.
pub fn read_alike(place: &Place) {
    for (path, text) in tree(place).iter().filter(|(path, _)| path.ends_with(".yaml")) {
        assert!(!text.is_empty(), "{path}");
        assert_alike(place, text);
    }
}

/// PyYAML follows YAML 1.1, as the readers of Argo CD and kubectl do.
fn assert_alike(place: &Place, text: &str) {
    let python = "/usr/bin/python3";
    let known = place.command(python).args(["-c", "import yaml"]).output().is_ok_and(|o| o.status.success());
    if !known {
        return crate::support::peers::left_out("python3-yaml is missing; `tests/peers.sh` installs it");
    }
    place.write("text.yaml", text);
    // Times become objects there; as JSON everything must be what it is here.
    let script = "import json, sys, yaml\nprint(json.dumps(yaml.safe_load(open('text.yaml')), default=lambda o: 'NOT TEXT: ' + repr(o)))";
    let mut command = place.command(python);
    command.args(["-c", script]);
    let theirs: serde_json::Value = serde_json::from_str(place.finish(command).ok()).unwrap();
    let ours: serde_json::Value = serde_yaml::from_str(text).unwrap();
    assert_eq!(theirs, ours, "{text}");
}

#[test]
fn all_that_the_shop_commits_means_the_same_to_yaml_1_1() {
    let place = Place::with_shop();
    run(&place).ok();
    read_alike(&place);
}

/// B34: a name from a variable may end in a newline.
#[test]
fn b34_the_branch_of_a_variable_is_trimmed() {
    let mut place = Place::with_shop();
    place.edit("expedite.yaml", "branch: main", "branch: other");
    place.set("EXPEDITE_BRANCH", "main\n");
    run(&place).ok();
    assert!(!tree(&place).is_empty(), "it is main");
    let branches = place.git(&["-C", "shop.git", "for-each-ref", "--format=%(refname)", "refs/heads"]);
    assert_eq!(branches, "refs/heads/main\n");
}

#[test]
fn an_order_that_nobody_can_name_stops_nobody() {
    let place = Place::with_shop();
    place.write(
        "objects/orders/bad.yaml",
        "apiVersion: delivery.kokumi.dev/v1alpha1\nkind: Order\nmetadata: {name: Bad_Name, namespace: shop}\nspec: {environment: production}\n",
    );
    let said = run(&place);
    said.exits(1);
    assert!(said.stderr.contains("objects/orders/bad.yaml:3:18"), "{}", said.stderr);
    assert_eq!(pinned(&place, "shop-dev/catalog").len(), 1, "{}", said.stdout);
}

#[test]
fn a_key_that_cannot_be_used_is_an_error_of_the_kitchen() {
    let place = Place::with_shop();
    place.edit("objects/kitchen.yaml", "MFkwEw", "XXXXXX");
    let said = run(&place);
    said.exits(1);
    assert!(said.stderr.contains("error: ./objects/kitchen.yaml:"), "{}", said.stderr);
    assert!(said.stderr.contains("trust.keys \"renderer\": it does not parse"), "{}", said.stderr);
    assert!(said.stderr.contains("hint: nothing that this key signed counts"), "{}", said.stderr);
}

#[test]
fn an_order_that_is_asked_for_and_not_there_is_an_error() {
    let place = Place::with_shop();
    for verbs in [&["plan"][..], &["run"]] {
        let said = verb(&place, &[verbs, &["--only", "shop/typo"]].concat());
        said.exits(1);
        assert!(said.stderr.contains("error: Order shop/typo: there is no such Order"), "{}", said.stderr);
    }
}
