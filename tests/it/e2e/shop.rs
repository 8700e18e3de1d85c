//! The README's first command, and what comes after it.

use super::*;
use crate::support::harness::{Place, shop};
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

#[test]
fn the_first_run_deploys_what_is_proven_and_says_the_rest() {
    let place = Place::with_shop();
    let table = run(&place).ok().to_owned();
    let cell = |namespace: &str, name: &str, column: &str| row(&table, namespace, name)[column].clone();
    for column in ["NAME", "ORDER", "TARGET", "READY", "REASON", "APPROVED", "VERIFIED", "AGE"] {
        assert!(row(&table, "shop", "catalog").contains_key(column), "no {column}:\n{table}");
    }
    // Automatic, in three stages and both of cosign's layouts.
    for (namespace, version) in [("shop-dev", "1.6.0"), ("shop-staging", "1.5.0"), ("shop", "1.5.0")] {
        let order = format!("{namespace}/catalog");
        let digest = artifact(&place, &order, version);
        assert_eq!(pinned(&place, &order), std::slice::from_ref(&digest), "{order}");
        assert_eq!(cell(namespace, "catalog", "TARGET"), format!("catalog-{}", &digest[7..19]));
        assert_eq!(cell(namespace, "catalog", "VERIFIED"), "SignaturesVerified");
        assert_eq!(cell(namespace, "catalog", "REASON"), "NotObserved");
        assert_eq!(cell(namespace, "catalog", "APPROVED"), "ApprovalNotRequired");
    }
    assert_eq!(applications(&place, "shop/catalog").len(), 2, "production has two clusters");
    assert_eq!(applications(&place, "shop-dev/catalog").len(), 1);
    // Held, each by its own reason and alone.
    assert_eq!(cell("shop", "mailer", "VERIFIED"), "SignatureMissing");
    assert_eq!(cell("shop", "search", "VERIFIED"), "SignatureInvalid");
    for name in ["mailer", "search"] {
        assert_eq!(cell("shop", name, "REASON"), "Pending", "{table}");
        assert_eq!(pinned(&place, &format!("shop/{name}")), Vec::<String>::new());
    }
    // Tuesday, 13:00 in Zurich: inside its window.
    assert_eq!(pinned(&place, "shop/storefront"), [artifact(&place, "shop/storefront", "12.4.0")]);
    // Manual ones wait for a person.
    for order in ["shop/basket", "shop/checkout", "shop-staging/checkout"] {
        assert_eq!(pinned(&place, order), Vec::<String>::new());
    }
}

#[test]
fn a_second_run_commits_nothing() {
    let place = Place::with_shop();
    run(&place).ok();
    let first = head(&place);
    assert!(!first.is_empty());
    run(&place).ok();
    assert_eq!(head(&place), first);
    // Nor does one an hour later.
    place.expedite(&["run", "--config", "expedite.yaml", "--at", "2026-02-10T13:00:00Z"]).ok();
    assert_eq!(head(&place), first);
}

#[test]
fn the_readme_begins_with_the_command_that_this_tests() {
    let readme = std::fs::read_to_string(harness::package().join("README.md")).unwrap();
    let command = "cargo run --release --locked -- run --config fixtures/shop/expedite.yaml";
    assert!(readme.contains(command), "the README's first command changed: follow it here");
    // Here with another repository, by the flag: the settings' own lies in target/.
    let place = Place::new();
    let settings = shop().join("expedite.yaml");
    let arguments = ["run", "--config", settings.to_str().unwrap(), "--repo", "./elsewhere.git", "--at", AT];
    let git = place.path("elsewhere.git");
    place.git(&["init", "-q", "--bare", git.to_str().unwrap()]);
    place.expedite(&arguments).ok();
    assert!(!place.tree("elsewhere.git", "main").is_empty());
}

#[test]
fn a_plan_writes_nothing_anywhere() {
    let place = Place::with_shop();
    let before = place.git(&["hash-object", "expedite.yaml"]);
    let said = verb(&place, &["plan"]);
    assert_eq!(said.status, Some(0), "{}", said.transcript("plan"));
    assert!(!place.path("shop.git").join("refs/heads/main").exists(), "plan made a branch");
    assert_eq!(place.git(&["hash-object", "expedite.yaml"]), before);
    run(&place).ok();
    let committed = head(&place);
    verb(&place, &["plan"]).ok();
    verb(&place, &["run", "--dry-run"]).ok();
    assert_eq!(head(&place), committed);
}

#[test]
fn a_plan_with_changes_exits_2_when_asked() {
    let place = Place::with_shop();
    verb(&place, &["plan", "--detailed-exitcode"]).exits(2);
    run(&place).ok();
    verb(&place, &["plan", "--detailed-exitcode"]).exits(0);
}

#[test]
fn a_reader_that_leaves_ends_the_output_quietly() {
    let place = Place::with_shop();
    for arguments in [
        &["run", "--config", "expedite.yaml", "--at", AT][..],
        &["get", "servings", "--config", "expedite.yaml"],
    ] {
        let mut command = place.binary(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // As `| head -1` does: one line, then the pipe is closed.
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut String::new()).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!stderr.contains("panicked") && !stderr.contains("Broken pipe"), "{stderr}");
        assert!(output.status.success(), "{arguments:?}: {}\n{stderr}", output.status);
    }
}

#[test]
fn wrong_usage_is_64() {
    let place = Place::new();
    assert!(place.expedite(&["promot"]).exits(64).is_empty());
    assert!(place.expedite(&["run", "--no-such-flag"]).exits(64).is_empty());
}
