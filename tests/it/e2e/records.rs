//! Records: signed before the commit, attached after the push, once, whatever happens between.

use super::evidence::{over_http, through};
use super::*;
use crate::support::harness::{Place, Said, copy, shop};
use crate::support::hostile::{Fault, Hostile};
use crate::support::layout::repository;
use std::collections::BTreeSet;
use std::process::Stdio;

const PROMOTION: &str = "https://kokumi.dev/attestations/promotion/v1";
const ATTACHED: &str = "refs/expedite/attached";

/// Every Order of the shop's layouts.
const REPOSITORIES: [&str; 10] = [
    "shop-dev/catalog",
    "shop-dev/storefront",
    "shop-staging/catalog",
    "shop-staging/checkout",
    "shop/basket",
    "shop/catalog",
    "shop/checkout",
    "shop/mailer",
    "shop/search",
    "shop/storefront",
];

/// Records in the branch, by path, with the digest of the artifact that each is of.
fn committed(place: &Place) -> BTreeMap<String, String> {
    let records = tree(place).into_iter().filter(|(path, _)| path.starts_with("records/"));
    let of = |bundle: &str| -> String {
        let bundle: serde_json::Value = serde_json::from_str(bundle).unwrap();
        let payload = bundle["dsseEnvelope"]["payload"].as_str().unwrap();
        let payload = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, payload).unwrap();
        let statement: serde_json::Value = serde_json::from_slice(&payload).unwrap();
        format!("sha256:{}", statement["subject"][0]["digest"]["sha256"].as_str().unwrap())
    };
    records.map(|(path, text)| (path, of(&text))).collect()
}

/// What the reference beside the branch holds.
fn remembered(place: &Place) -> BTreeSet<String> {
    place.tree("shop.git", ATTACHED).into_iter().map(|(path, _)| path).collect()
}

/// Layers of the promotion records attached in the layouts, by the artifact's digest.
fn attached(place: &Place) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in REPOSITORIES {
        let layout = repository(&place.path("registry"), name);
        for entry in layout.entries() {
            if entry["artifactType"] == "application/vnd.kokumi.promotion.v1+json" {
                let manifest = layout.manifest(entry["digest"].as_str().unwrap());
                let subject = manifest["subject"]["digest"].as_str().unwrap().to_owned();
                let layer = manifest["layers"][0]["digest"].as_str().unwrap().to_owned();
                found.entry(subject).or_default().push(layer);
            }
        }
    }
    found
}

/// Every committed record is attached to its artifact once, nothing else is, and all of it is remembered.
#[track_caller]
fn all_attached_once(place: &Place) {
    let mut expected: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, artifact) in committed(place) {
        let hex = path.rsplit('/').next().unwrap().trim_end_matches(".json").to_owned();
        expected.entry(artifact).or_default().push(format!("sha256:{hex}"));
    }
    assert!(!expected.is_empty(), "nothing was promoted");
    assert_eq!(attached(place), expected);
    assert_eq!(remembered(place), committed(place).into_keys().collect());
}

/// A hook of the repository's server, run by the `update` of each reference.
fn hook(place: &Place, script: &str) {
    place.git(&["init", "-q", "--bare", "-b", "main", "shop.git"]);
    set_hook(place, script);
}

fn set_hook(place: &Place, script: &str) {
    let path = "shop.git/hooks/update";
    place.write(path, format!("#!/bin/sh\n{script}\n"));
    crate::support::executable::executable(&place.path(path));
}

/// The shop's artifacts in a registry of this process.
fn hostile(place: &Place) -> Hostile {
    let registry = Hostile::start();
    for name in REPOSITORIES {
        registry.push_layout(name, &place.path("registry").join(name));
    }
    through(place, &registry.url());
    registry
}

#[test]
fn every_promotion_has_its_record_on_the_artifact() {
    let place = Place::with_shop();
    let said = run(&place);
    said.ok();
    let warnings =
        said.stderr.lines().filter(|line| line.starts_with("warning") && !line.contains("repo-creds"));
    assert_eq!(warnings.count(), 0, "{}", said.stderr);
    all_attached_once(&place);
    for order in ["shop-dev/catalog", "shop/catalog", "shop/storefront"] {
        let record = serving(&place, order)["status"]["history"][0]["promotionRecord"].clone();
        let digest = &pinned(&place, order)[0];
        assert_eq!(attached(&place)[digest], [record.as_str().unwrap()], "{order}");
    }
    // A second run finds all of it remembered: it looks at nothing again.
    let before = head(&place);
    let commit = |place: &Place| place.git(&["-C", "shop.git", "rev-parse", ATTACHED]);
    let side = commit(&place);
    run(&place).ok();
    assert_eq!((head(&place), commit(&place)), (before, side));
    all_attached_once(&place);
}

#[test]
fn peers_list_and_verify_the_records() {
    for registry in
        [crate::support::servers::refreg(), crate::support::servers::docker_registry()].into_iter().flatten()
    {
        let Some((place, said)) = over_http(&registry) else { return };
        said.ok();
        let records = committed(&place);
        assert!(records.len() >= 5, "{records:?}");
        let Some(cosign) = crate::support::peers::peer("cosign3") else { return };
        let mut command = place.command(cosign);
        command.args(["trusted-root", "create", "--out", "root.json"]);
        place.finish(command).ok();
        for (path, digest) in &records {
            let order = path.strip_prefix("records/").unwrap().rsplit_once('/').unwrap().0;
            let reference = format!("{}/{order}@{digest}", registry.address);
            for cosign in ["cosign3", "cosign2"] {
                let Some(program) = crate::support::peers::peer(cosign) else { return };
                let mut command = place.command(program);
                command.args(["verify-attestation", "--key", "keys/test-job.pub", "--type", PROMOTION]);
                command.args(["--insecure-ignore-tlog", "--allow-http-registry", &reference]);
                if cosign == "cosign2" {
                    command.args(["--new-bundle-format", "--trusted-root", "root.json"]);
                }
                place.finish(command).ok();
            }
            let Some(oras) = crate::support::peers::peer("oras") else { return };
            let mut command = place.command(oras);
            command.args(["discover", "--plain-http", "--format", "json", &reference]);
            let listed = place.finish(command);
            let count = listed.ok().matches(&format!("predicateType\": \"{PROMOTION}\"")).count();
            assert_eq!(count, 1, "{reference}: {}", listed.stdout);
        }
    }
}

#[test]
fn a_registry_that_is_away_after_the_push_is_an_error_and_the_deployment_stands() {
    let place = Place::with_shop();
    hook(&place, &format!("mv {0}/registry {0}/away 2>/dev/null; exit 0", place.root().display()));
    let said = run(&place);
    let table = said.exits(1).to_owned();
    assert_eq!(pinned(&place, "shop/catalog").len(), 1, "{table}");
    assert_eq!(remembered(&place), BTreeSet::new());
    let wanted = "error: Order shop/catalog: records/shop/catalog/";
    assert!(said.stderr.contains(wanted), "{}", said.stderr);
    assert!(said.stderr.contains("hint: it is kept in the repository; the next run tries again"));
    // The registry is back: the next run commits nothing and attaches.
    std::fs::rename(place.path("away"), place.path("registry")).unwrap();
    set_hook(&place, "exit 0");
    let before = head(&place);
    run(&place).ok();
    assert_eq!(head(&place), before);
    all_attached_once(&place);
}

#[test]
fn what_is_not_in_git_is_on_no_artifact() {
    let place = Place::with_shop();
    hook(&place, "exit 1");
    let said = run(&place);
    said.exits(1);
    assert!(said.stderr.contains("the server refused the commit"), "{}", said.stderr);
    assert_eq!(head(&place), "");
    assert_eq!(attached(&place), BTreeMap::new());
}

#[test]
fn offline_says_what_it_cannot_attach_and_asks_nobody() {
    let place = Place::with_shop();
    let registry = hostile(&place);
    registry.fault(usize::MAX, |r| r.method == "POST" || r.method == "PUT", Fault::status(403));
    run(&place).exits(1);
    registry.heal();
    registry.clear_log();
    let said = verb(&place, &["run", "--offline"]);
    said.exits(1);
    assert!(said.stderr.contains("error: Order shop/catalog: records/shop/catalog/"), "{}", said.stderr);
    assert_eq!(registry.lines(), Vec::<String>::new());
    assert_eq!(pinned(&place, "shop/catalog").len(), 1);
}

#[test]
fn a_scoped_run_catches_up_with_its_own_orders() {
    let place = Place::with_shop();
    run(&place).ok();
    place.git(&["-C", "shop.git", "update-ref", "-d", ATTACHED]);
    verb(&place, &["run", "--only", "shop/catalog"]).ok();
    let remembered = remembered(&place);
    assert!(!remembered.is_empty());
    assert!(remembered.iter().all(|path| path.starts_with("records/shop/catalog/")), "{remembered:?}");
}

#[test]
fn what_a_killed_run_left_is_attached_once() {
    let place = Place::with_shop();
    run(&place).ok();
    // As if it had been killed after attaching, and before remembering.
    place.git(&["-C", "shop.git", "update-ref", "-d", ATTACHED]);
    run(&place).ok();
    all_attached_once(&place);
    // Before attaching: a registry as it was.
    place.git(&["-C", "shop.git", "update-ref", "-d", ATTACHED]);
    std::fs::remove_dir_all(place.path("registry")).unwrap();
    copy(&shop().join("registry"), &place.path("registry"));
    // Two that start at once, now.
    let arguments = ["run", "--config", "expedite.yaml", "--at", AT];
    let start = || place.binary(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let both = [start(), start()];
    for child in both {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    all_attached_once(&place);
}

#[test]
fn what_is_remembered_is_asked_of_no_registry() {
    let place = Place::with_shop();
    let registry = hostile(&place);
    run(&place).ok();
    let artifacts: BTreeSet<String> = committed(&place).into_values().collect();
    assert!(!artifacts.is_empty());
    registry.clear_log();
    run(&place).ok();
    let lines = registry.lines();
    let about = |line: &&String| artifacts.iter().any(|digest| line.contains(digest.as_str()));
    assert_eq!(lines.iter().filter(about).collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(lines.iter().all(|line| line.starts_with("GET") || line.starts_with("HEAD")), "{lines:?}");
}

#[test]
fn a_registry_that_takes_nothing_fails_each_order_by_name_and_no_promotion() {
    let place = Place::with_shop();
    let registry = hostile(&place);
    registry.fault(usize::MAX, |r| r.method == "POST" || r.method == "PUT", Fault::status(403));
    let said = run(&place);
    said.exits(1);
    let orders: BTreeSet<String> = committed(&place)
        .into_keys()
        .map(|path| path.strip_prefix("records/").unwrap().rsplit_once('/').unwrap().0.to_owned())
        .collect();
    assert!(orders.len() >= 5, "{orders:?}");
    for order in &orders {
        assert_eq!(pinned(&place, order).len(), 1, "{order}");
        let told = said.stderr.matches(&format!("error: Order {order}: records/{order}/")).count();
        assert_eq!(told, 1, "{order}:\n{}", said.stderr);
    }
    registry.heal();
    run(&place).ok();
    assert_eq!(remembered(&place), committed(&place).into_keys().collect());
}

#[test]
fn a_record_of_an_order_that_goes_stays_until_it_is_attached() {
    let place = Place::with_shop();
    let registry = hostile(&place);
    registry.fault(usize::MAX, |r| r.method == "POST" || r.method == "PUT", Fault::status(503));
    run(&place).exits(1);
    let of_dev = |place: &Place| -> Vec<String> {
        committed(place).into_keys().filter(|p| p.starts_with("records/shop-dev/storefront/")).collect()
    };
    let records = of_dev(&place);
    assert_eq!(records.len(), 1);
    let objects = place.read("objects/orders/shop-dev.yaml");
    let rest: Vec<&str> = objects.split("---\n").filter(|o| !o.contains("name: storefront")).collect();
    assert_eq!(rest.len() + 1, objects.split("---\n").count());
    place.write("objects/orders/shop-dev.yaml", rest.join("---\n"));
    run(&place).exits(1);
    assert!(!tree(&place).contains_key("servings/shop-dev/storefront.yaml"));
    assert_eq!(of_dev(&place), records, "it is not attached yet");
    registry.heal();
    run(&place).ok();
    assert_eq!(of_dev(&place), Vec::<String>::new());
    let wrote =
        registry.lines().iter().any(|l| l.starts_with("PUT /v2/shop-dev/storefront/manifests/sha256:"));
    assert!(wrote, "{:?}", registry.lines());
    let before = head(&place);
    run(&place).ok();
    assert_eq!(head(&place), before);
}

#[test]
fn what_cannot_be_read_of_what_is_attached_is_asked_of_the_registry() {
    let place = Place::with_shop();
    run(&place).ok();
    let before = attached(&place);
    // Somebody points it to something that is no commit.
    place.write("blob", "no commit");
    let blob = place.git(&["-C", "shop.git", "hash-object", "-w", place.path("blob").to_str().unwrap()]);
    place.git(&["-C", "shop.git", "update-ref", ATTACHED, blob.trim()]);
    let said = run(&place);
    said.ok();
    assert!(said.stderr.contains("warning:"), "{}", said.stderr);
    assert_eq!(attached(&place), before);
}

#[test]
fn a_server_that_keeps_no_side_reference_is_a_warning() {
    let place = Place::with_shop();
    hook(&place, "case $1 in refs/heads/*) exit 0;; esac; echo 'only branches here'; exit 1");
    for _ in 0..2 {
        let said = run(&place);
        said.ok();
        assert!(said.stderr.contains("warning:"), "{}", said.stderr);
        assert!(said.stderr.contains("the server does not keep refs/expedite/attached"), "{}", said.stderr);
        assert!(said.stderr.contains("only branches here"), "{}", said.stderr);
        let mut found = attached(&place).into_values().flatten().collect::<Vec<_>>();
        found.sort();
        let names = committed(&place).into_keys();
        let mut names: Vec<String> = names
            .map(|p| format!("sha256:{}", p.rsplit('/').next().unwrap().trim_end_matches(".json")))
            .collect();
        names.sort();
        assert_eq!(found, names);
    }
}

#[test]
fn a_read_only_registry_is_said_and_no_error() {
    let place = Place::with_shop();
    place.edit("expedite.yaml", "readOnly: false", "readOnly: true");
    for _ in 0..2 {
        let said = run(&place);
        said.ok();
        let wanted = "records are not attached: it is read-only by the settings";
        assert!(said.stderr.contains(wanted), "{}", said.stderr);
        assert_eq!(attached(&place), BTreeMap::new());
        assert_eq!(remembered(&place), BTreeSet::new());
    }
    assert!(committed(&place).len() >= 5);
    place.edit("expedite.yaml", "readOnly: true", "readOnly: false");
    run(&place).ok();
    all_attached_once(&place);
}

#[test]
fn the_readme_leaves_the_checkout_clean() {
    let place = Place::new();
    copy(&shop(), &place.path("clone/fixtures/shop"));
    place.write("clone/.gitignore", "/target/\n");
    place.git(&["init", "-q", "clone"]);
    place.git(&["-C", "clone", "add", "."]);
    place.git(&["-C", "clone", "commit", "-q", "-m", "All"]);
    let again = ["run", "--config", "clone/fixtures/shop/expedite.yaml", "--at", AT];
    place.expedite(&again).ok();
    place.expedite(&again).ok();
    assert_eq!(place.git(&["-C", "clone", "status", "--porcelain"]), "");
    let count = place.git(&["-C", "clone/target/shop-gitops.git", "rev-list", "--count", "main"]);
    assert_eq!(count, "1\n");
}

#[test]
fn no_key_is_said_before_anything_is_decided() {
    let place = Place::with_shop();
    place.edit("expedite.yaml", "  keyFile: keys/test-job.key", "  {}");
    let said = run(&place);
    assert_eq!(said.exits(1), "");
    assert!(said.stderr.contains("error: the signing key: there is no key"), "{}", said.stderr);
    for way in ["--key", "EXPEDITE_KEY", "signing.keyFile", "--signer", "--no-records"] {
        assert!(said.stderr.contains(way), "{way}: {}", said.stderr);
    }
    assert_eq!(head(&place), "");
    // A plan needs none, and says that the run will.
    for arguments in [&["plan"][..], &["run", "--dry-run"]] {
        let said = verb(&place, arguments);
        said.ok();
        assert!(said.stderr.contains("warning: the signing key: there is no key"), "{}", said.stderr);
        assert!(said.stderr.contains("a plan needs no key; the run will"), "{}", said.stderr);
    }
    // Nor does a run that is told to do without.
    let said = verb(&place, &["run", "--no-records"]);
    said.ok();
    assert_eq!(committed(&place), BTreeMap::new());
    assert_eq!(attached(&place), BTreeMap::new());
    assert_eq!(pinned(&place, "shop/catalog").len(), 1);
}

#[test]
fn a_key_that_is_not_there_fails_the_run_and_not_the_plan() {
    let place = Place::with_shop();
    std::fs::remove_file(place.path("keys/test-job.key")).unwrap();
    let said = run(&place);
    assert_eq!(said.exits(1), "");
    assert!(said.stderr.contains("test-job.key: the signing key: cannot read it"), "{}", said.stderr);
    let said = verb(&place, &["plan"]);
    said.ok();
    assert!(said.stderr.contains("a plan needs no key; the run will"), "{}", said.stderr);
    // Verbs that sign nothing need none.
    let newest = &artifact(&place, "shop/basket", "2.2.0")["sha256:".len()..][..12];
    verb(&place, &["promote", "shop/basket", &format!("basket-{newest}")]).ok();
}

#[test]
fn a_key_that_the_kitchen_does_not_trust_is_warned_of() {
    let place = Place::with_shop();
    let warned = |said: &Said| said.stderr.contains("the Kitchen does not trust this run's key");
    for verb_ in [&["plan"][..], &["run"]] {
        assert!(!warned(&verb(&place, verb_)), "{verb_:?}");
    }
    place.edit("objects/kitchen.yaml", "roles: [approvals, records]", "roles: [approvals]");
    for verb_ in [&["plan"][..], &["run"]] {
        let said = verb(&place, verb_);
        said.ok();
        assert!(warned(&said), "{}", said.stderr);
        assert!(said.stderr.contains("with roles [records]"), "{}", said.stderr);
    }
}

#[test]
fn what_no_trusted_key_signed_is_attached_nowhere() {
    let place = Place::with_shop();
    run(&place).ok();
    // Somebody who may write to the branch copies a bundle of another key, and bytes that are none.
    let layout = repository(&place.path("registry"), "shop/catalog");
    let bundle = layout.bundle(&layout.tagged("1.5.0"), "https://slsa.dev/provenance/v1");
    let layer = layout.manifest(&bundle)["layers"][0]["digest"].as_str().unwrap().to_owned();
    let copied = layout.bytes(&layer);
    let bytes = b"{}".to_vec();
    place.git(&["clone", "-q", "shop.git", "work"]);
    let before = attached(&place);
    for bytes in [copied, bytes] {
        let hex = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(&bytes));
        place.write(&format!("work/records/shop/catalog/{hex}.json"), &bytes);
    }
    place.write(&format!("work/records/shop/catalog/{}.json", "0".repeat(64)), "not of this name");
    place.git(&["-C", "work", "add", "."]);
    place.git(&["-C", "work", "commit", "-q", "-m", "By hand"]);
    place.git(&["-C", "work", "push", "-q", "origin", "HEAD:main"]);
    let by_hand = head(&place);
    let said = run(&place);
    said.ok();
    assert_eq!(said.stderr.matches("not attached").count(), 3, "{}", said.stderr);
    assert!(said.stderr.contains("it does not hash to its name"), "{}", said.stderr);
    assert_eq!(attached(&place), before);
    assert_eq!(head(&place), by_hand);
}

/// What somebody removed is told by every run, and a check says no; the state that it proves goes on.
#[test]
fn a_record_that_was_removed_is_told_and_a_check_says_no() {
    let place = Place::with_shop();
    run(&place).ok();
    let record =
        committed(&place).into_keys().find(|path| path.starts_with("records/shop-dev/catalog/")).unwrap();
    place.git(&["clone", "-q", "shop.git", "theirs"]);
    place.git(&["-C", "theirs", "rm", "-q", &record]);
    place.git(&["-C", "theirs", "commit", "-qm", "Tidy"]);
    place.git(&["-C", "theirs", "push", "-q"]);
    let said = run(&place);
    said.ok();
    let wanted = format!("warning: {record}: Order shop-dev/catalog: this record is gone");
    assert!(said.stderr.contains(&wanted), "{}", said.stderr);
    let check = verb(&place, &["run", "--check"]);
    check.exits(5);
    assert!(check.stderr.contains(&format!("gone: {record}")), "{}", check.stderr);
    place.git(&["-C", "theirs", "revert", "--no-edit", "HEAD"]);
    place.git(&["-C", "theirs", "push", "-q"]);
    let check = verb(&place, &["run", "--check"]);
    check.ok();
    assert!(!check.stderr.contains("is gone"), "{}", check.stderr);
}
