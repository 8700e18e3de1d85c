//! Only what a change causes.

use super::{AT, BASKET, Place, preparation};
use crate::support::forge::Renderer;
use crate::support::harness::Said;
use serde_json::Value;

const CHECKOUT: &str = "checkout-494826a3cb5e";

/// The shop's objects and settings in a checkout of their own, on `main`; everything ran once, and a promotion
/// waits for approvals. Then a branch for the change.
fn objects() -> Place {
    let place = Place::with_shop();
    place.write(".gitignore", "home\nshop.git\nregistry\nkeys\n");
    place.git(&["init", "-q"]);
    place.expedite(&["run", "--at", AT]).ok();
    place.expedite(&["promote", "shop/checkout", CHECKOUT]).ok();
    commit(&place, "main");
    place.git(&["switch", "-q", "-c", "change"]);
    place
}

fn commit(place: &Place, message: &str) {
    place.git(&["add", "-A"]);
    place.git(&["commit", "-q", "-m", message]);
}

fn plan(place: &Place, more: &[&str]) -> Said {
    place.expedite(&[&["plan", "--base", "main", "--at", AT], more].concat())
}

fn json(place: &Place) -> Value {
    let said = plan(place, &["-o", "json"]);
    serde_json::from_str(&said.stdout).unwrap_or_else(|e| panic!("{e}: {}", said.transcript("plan")))
}

fn orders(plan: &Value) -> Vec<String> {
    let name = |order: &Value| {
        format!(
            "{}/{} {}",
            order["namespace"].as_str().unwrap(),
            order["name"].as_str().unwrap(),
            order["decision"].as_str().unwrap()
        )
    };
    plan["orders"].as_array().unwrap().iter().map(name).collect()
}

fn texts(value: &Value) -> String {
    value.as_array().unwrap().iter().map(|v| format!("{}\n", v.as_str().unwrap())).collect()
}

#[test]
fn a_change_that_does_nothing_is_blamed_for_nothing() {
    let place = objects();
    place.edit("objects/orders/shop.yaml", "# A person chooses", "# A person decides");
    place.edit("objects/kitchen.yaml", "# Written by make.sh", "# Written");
    let plan = json(&place);
    assert_eq!(orders(&plan), Vec::<String>::new());
    assert!(plan["base"]["anyway"].as_u64().unwrap() >= 1, "a promotion waits anyway: {plan}");
    assert_eq!((texts(&plan["base"]["weakened"]).as_str(), texts(&plan["base"]["notes"]).as_str()), ("", ""));
}

#[test]
fn a_change_is_shown_with_what_it_weakens() {
    let place = objects();
    place.edit(
        "objects/orders/shop.yaml",
        "    approvals:\n      requiredApprovals: 2\n      allowedGroups: [payments]\n",
        "",
    );
    // On disk is enough for a folder; a commit changes nothing.
    for committed in [false, true] {
        if committed {
            commit(&place, "change");
        }
        let plan = json(&place);
        assert_eq!(orders(&plan), ["shop/checkout Promote"]);
        let weakened = texts(&plan["base"]["weakened"]);
        assert_eq!(weakened, "Order shop/checkout: does not require approvals any more; before: 2\n");
    }
    let page = plan(&place, &["-o", "markdown"]);
    let page = page.ok();
    assert!(page.contains("⚠️ **This change weakens what protects promotions, in 1 way:**"), "{page}");
    assert!(page.contains("Without this change: checkout-494826a3cb5e waits for Approvals"), "{page}");
    assert!(!page.contains("shop/basket"), "{page}");
    let table = plan(&place, &[]);
    assert!(table.ok().contains("only what changes since main ("), "{}", table.stdout);
    assert!(table.stderr.contains("weakens Order shop/checkout"), "{}", table.stderr);
}

#[test]
fn a_change_does_not_vouch_for_itself() {
    let place = objects();
    let own = Renderer::new(9);
    let digest = own.prepare(&place.path("registry"), "shop/basket", "evil");
    preparation(&place, "shop/basket", "basket-evil", "evil", &digest);
    let key: String = own.public_key().lines().map(|l| format!("        {l}\n")).collect();
    place.edit(
        "objects/kitchen.yaml",
        "    - name: job\n",
        &format!("    - name: mine\n      publicKey: |\n{key}    - name: job\n"),
    );
    place.edit("objects/orders/shop.yaml", "  name: basket\n", "  name: basket\n");
    let orders_file = place.read("objects/orders/shop.yaml");
    let (before, after) = orders_file.split_once("  name: basket\n").unwrap();
    let after = after.replacen("mode: Manual", "mode: Automatic", 1);
    place.write("objects/orders/shop.yaml", format!("{before}  name: basket\n{after}"));
    place.write("expedite.yaml", place.read("expedite.yaml") + "argocd: {namespace: elsewhere}\n");
    // Trusted as it asks for, it would be promoted.
    let trusting = place.expedite(&["plan", "--only", "shop/basket", "--at", AT]);
    assert!(
        trusting.stdout.contains("basket-evil") && trusting.stdout.contains("Promote"),
        "{}",
        trusting.transcript("plan")
    );
    let plan = json(&place);
    assert_eq!(orders(&plan), ["shop/basket Hold"]);
    assert_eq!(plan["orders"][0]["waitsFor"], "Evidence");
    let weakened = texts(&plan["base"]["weakened"]);
    assert!(weakened.contains("Kitchen: new key mine, trusted for signature, provenance\n"), "{weakened}");
    assert!(
        weakened.contains("Order shop/basket: promotes automatically instead of on request\n"),
        "{weakened}"
    );
    assert!(
        texts(&plan["base"]["notes"])
            .contains("expedite.yaml is another than that of main, which counts here")
    );
    // Settings that are broken by the change are not those that count.
    place.write("expedite.yaml", "sources: 7\n");
    assert_eq!(orders(&json(&place)), ["shop/basket Hold"]);
    // Nor are those that it links to, wherever they lie.
    let elsewhere = Place::new();
    elsewhere.write("expedite.yaml", "argocd: {requireObservation: true}\n");
    std::fs::remove_file(place.path("expedite.yaml")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path("expedite.yaml"), place.path("expedite.yaml")).unwrap();
    assert_eq!(orders(&json(&place)), ["shop/basket Hold"]);
}

#[test]
fn what_the_base_did_since_is_not_the_change() {
    let place = objects();
    place.edit("objects/orders/shop.yaml", "      requiredApprovals: 2\n", "      requiredApprovals: 1\n");
    commit(&place, "change");
    place.git(&["switch", "-q", "main"]);
    place.edit("objects/environments.yaml", "  onDelete: Orphan", "  promotion: {freezes: [{from: 2026-01-01T00:00:00Z, to: 2026-12-01T00:00:00Z}]}\n  onDelete: Orphan");
    commit(&place, "freeze");
    place.git(&["switch", "-q", "change"]);
    let plan = json(&place);
    assert_eq!(orders(&plan), ["shop/checkout Hold"], "one approval less is asked for");
    let told = texts(&plan["base"]["weakened"]);
    assert_eq!(told, "Order shop/checkout: 1 must approve instead of 2\n");
    assert!(texts(&plan["base"]["notes"]).contains("lacks 1 commits of main"), "{plan}");
}

#[test]
fn the_gitops_repository_itself_may_be_what_changes() {
    let place = Place::with_shop();
    let git = |arguments: &[&str]| place.git(&[&["-C", "work"], arguments].concat());
    let expedite = |arguments: &[&str]| {
        let mut command = place.binary(arguments);
        command.current_dir(place.path("work"));
        place.finish(command)
    };
    std::fs::create_dir(place.path("work")).unwrap();
    std::fs::rename(place.path("objects"), place.path("work/objects")).unwrap();
    place.write(
        "work/expedite.yaml",
        "registries:\n  registry.shop.example:5000: {layout: ../registry}\nsigning: {keyFile: ../keys/test-job.key}\n",
    );
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "objects"]);
    // The checkout follows another repository, as every clone of CI does.
    place.git(&["init", "-q", "--bare", "upstream.git"]);
    git(&["remote", "add", "origin", place.path("upstream.git").to_str().unwrap()]);
    git(&["push", "-q", "-u", "origin", "main"]);
    expedite(&["run", "--at", AT]).ok();
    git(&["pull", "-q", "--ff-only"]);
    git(&["switch", "-q", "-c", "change"]);
    git(&["push", "-q", "-u", "origin", "change"]);
    expedite(&["promote", "shop/basket", BASKET, "--branch", "change"]).ok();
    git(&["pull", "-q", "--ff-only"]);
    let said = expedite(&["plan", "--base", "origin/main", "-o", "json", "--at", AT]);
    let plan: Value =
        serde_json::from_str(&said.stdout).unwrap_or_else(|e| panic!("{e}: {}", said.transcript("plan")));
    assert_eq!(orders(&plan), ["shop/basket Promote"], "{}", said.transcript("plan"));
    // Detached, as a pull request's checkout is.
    git(&["switch", "-q", "--detach", "change"]);
    let said = expedite(&["plan", "--base", "main", "-o", "markdown", "--at", AT]);
    assert!(said.ok().contains("**1 to promote, 0 held"), "{}", said.stdout);
}

#[test]
fn a_base_that_is_not_there_is_an_error_with_a_way_out() {
    let place = objects();
    let said = place.expedite(&["plan", "--base", "origin/nowhere"]);
    said.exits(1);
    assert!(
        said.stderr.contains("names no commit of this clone") && said.stderr.contains("fetch-depth: 0"),
        "{}",
        said.stderr
    );
    let bare = Place::with_shop();
    let said = bare.expedite(&["plan", "--base", "main"]);
    said.exits(64);
    assert!(said.stderr.contains("lie in a checkout"), "{}", said.stderr);
}
