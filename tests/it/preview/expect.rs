//! A plan that is expected: the lock of a preview.

use super::{AT, BASKET, Place, prepare};
use serde_json::Value;

fn fingerprint(place: &Place, more: &[&str]) -> String {
    let said = place.expedite(&[&["plan", "-o", "json"], more].concat());
    let plan: Value =
        serde_json::from_str(&said.stdout).unwrap_or_else(|e| panic!("{e}: {}", said.transcript("plan")));
    plan["fingerprint"].as_str().unwrap().to_owned()
}

fn shop() -> Place {
    let place = Place::with_shop();
    place.expedite(&["run", "--only", "shop/catalog", "--at", AT]).ok();
    place.expedite(&["promote", "shop/basket", BASKET]).ok();
    place
}

#[test]
fn time_alone_moves_nothing() {
    let place = shop();
    let (now, later) =
        (fingerprint(&place, &["--at", AT]), fingerprint(&place, &["--at", "2026-02-10T13:37:00Z"]));
    assert_eq!(now, later);
    place.expedite(&["plan", "--at", AT, "--expect", &now]).exits(0);
    let page = place.expedite(&["plan", "--at", AT, "-o", "markdown"]);
    assert!(page.ok().contains(&format!("<!-- expedite:fingerprint {now} -->")), "{}", page.stdout);
    let told = place.expedite(&["plan", "--at", AT, "-v"]);
    assert!(told.ok().ends_with(&format!("fingerprint {now}\n")), "{}", told.stdout);
    // The short one, which a page shows to people.
    let short = now.rsplit_once('.').unwrap().0;
    assert!(page.stdout.contains(&format!("Fingerprint <code>{}", &short[..3])), "{}", page.stdout);
    place.expedite(&["plan", "--at", AT, "--expect", short]).exits(0);
}

#[test]
fn a_world_that_moved_is_told_apart() {
    let place = shop();
    let expected = fingerprint(&place, &["--at", AT]);
    let refused = |why: &[&str]| {
        let said = place.expedite(&["plan", "--at", AT, "--expect", &expected]);
        said.exits(5);
        for part in why {
            assert!(said.stderr.contains(part), "{part}: {}", said.stderr);
        }
        assert!(said.stdout.contains("ORDER"), "the plan itself is still shown");
    };
    // Another commit of somebody's: the promotion is taken back.
    let before = place.read("objects/environments.yaml");
    place.edit("objects/environments.yaml", "  onDelete: Orphan", "  promotion: {freezes: [{from: 2026-01-01T00:00:00Z, to: 2026-12-01T00:00:00Z, reason: year end}]}\n  onDelete: Orphan");
    refused(&["shop/basket: was to be promoted; now: basket-b49b09790c53 waits for Window"]);
    place.write("objects/environments.yaml", &before);
    place.expedite(&["plan", "--at", AT, "--expect", &expected]).exits(0);
    // A new Preparation changes nothing for a Manual Order, whose promotion stays pinned.
    prepare(&place, "shop/basket", "basket-new", "new", &[("a.yaml", "kind: A\n")]);
    place.expedite(&["plan", "--at", AT, "--expect", &expected]).exits(0);
    // A key more in the Kitchen is another trust.
    let kitchen = place.read("objects/kitchen.yaml");
    place.edit(
        "objects/kitchen.yaml",
        "roles: [signature, provenance]",
        "roles: [signature, provenance, checks]",
    );
    refused(&["the Kitchen's trust or the settings differ"]);
    place.write("objects/kitchen.yaml", &kitchen);
    // Another run was faster.
    place.expedite(&["withdraw", "shop/basket"]).ok();
    refused(&["shop/basket: was to be promoted"]);
    place.expedite(&["promote", "shop/basket", BASKET]).ok();
    place.expedite(&["plan", "--at", AT, "--expect", &expected]).exits(0);
    place.expedite(&["run", "--at", AT]).ok();
    refused(&["shop/basket: was to be promoted; now: keeps basket-b49b09790c53"]);
}

#[test]
fn what_is_no_fingerprint_is_wrong_usage() {
    let place = Place::new();
    for text in ["", "e1.AAAA", "sha256:00"] {
        let said = place.expedite(&["plan", "--expect", text]);
        said.exits(64);
        assert!(said.stderr.contains("is not a fingerprint of a plan"), "{}", said.stderr);
    }
}
