//! A Serving that somebody edited by hand: no run deploys what its status says because it says so.

use super::*;
use crate::support::fleet;
use crate::support::harness::Place;

const SERVING: &str = "servings/shop/catalog.yaml";

/// A shop after its first run, and a clone in which somebody works.
fn cloned() -> Place {
    let place = Place::with_shop();
    run(&place).ok();
    place.git(&["clone", "-q", "shop.git", "person"]);
    place
}

fn push(place: &Place) {
    place.git(&["-C", "person", "commit", "-q", "-a", "-m", "By hand"]);
    place.git(&["-C", "person", "push", "-q", "origin", "HEAD:main"]);
}

/// Its `applications/`.
fn rendered(place: &Place) -> BTreeMap<String, String> {
    tree(place).into_iter().filter(|(path, _)| path.starts_with("applications/")).collect()
}

#[test]
fn a_pin_that_was_written_by_hand_is_not_deployed() {
    let evil = format!("sha256:{}", "e".repeat(64));
    for (what, member) in
        [("the digest", "deployedDigest: "), ("the repository", "repository: "), ("all of it", "")]
    {
        let place = cloned();
        let before = rendered(&place);
        let file = format!("person/{SERVING}");
        let edited: String = place
            .read(&file)
            .lines()
            .map(|line| {
                let start = line.trim_start();
                let indent = &line[..line.len() - start.len()];
                let edited = match start.split_once(": ") {
                    Some(("deployedDigest", _)) => Some(format!("deployedDigest: {evil}")),
                    Some(("repository", _)) => Some("repository: evil.example/x".to_owned()),
                    Some(("preparationName", _)) if indent.len() == 2 => {
                        Some("preparationName: x".to_owned())
                    }
                    Some(("observedPreparationName", _)) => Some("observedPreparationName: x".to_owned()),
                    Some(("targetNamespace", _)) => Some("targetNamespace: argocd".to_owned()),
                    _ => None,
                };
                match edited.filter(|_| start.starts_with(member)) {
                    Some(edited) => format!("{indent}{edited}\n"),
                    None => format!("{line}\n"),
                }
            })
            .collect();
        assert_ne!(edited, place.read(&file), "{what}");
        place.write(&file, &edited);
        let line = edited.lines().position(|l| l.trim_start().starts_with("deployedDigest:")).unwrap() + 1;
        push(&place);
        for _ in 0..2 {
            let said = run(&place);
            said.exits(1);
            let wanted = format!("{SERVING}:{line}");
            assert!(
                said.stderr.contains(&wanted) && said.stderr.contains("that is not proven"),
                "{what}: no {wanted} in {}",
                said.transcript("run")
            );
            assert_eq!(rendered(&place), before, "{what}");
            assert_eq!(tree(&place)[SERVING], edited, "{what}: for whoever reverts it");
        }
        place.git(&["-C", "person", "revert", "--no-edit", "HEAD"]);
        place.git(&["-C", "person", "push", "-q", "origin", "HEAD:main"]);
        let head_before = head(&place);
        run(&place).ok();
        assert_eq!((rendered(&place), head(&place)), (before, head_before), "{what}");
    }
}

/// With a record, a file that was removed by hand comes back, and takes the record's word for it.
#[test]
fn an_application_that_was_removed_by_hand_comes_back_by_its_record() {
    let place = cloned();
    let before = rendered(&place);
    for path in before.keys() {
        std::fs::remove_file(place.path(&format!("person/{path}"))).unwrap();
    }
    push(&place);
    assert!(rendered(&place).is_empty());
    run(&place).ok();
    assert_eq!(rendered(&place), before);
}

/// The Serving of an earlier run, put back as it was: its record is there, and so is that of what came after it.
#[test]
fn a_serving_that_was_put_back_deploys_nothing_again() {
    const BASKET: &str = "servings/shop/basket.yaml";
    let place = Place::new();
    fleet::ground(&place);
    fleet::settings(&place, "./shop.git", "{layout: ./registry}");
    fleet::order(&place, "shop/basket", "{mode: Automatic}");
    fleet::prepare(&place, "shop/basket", 1, "shop/basket");
    let run =
        |at: &str| place.expedite(&["run", "--key", fleet::KEY, "--config", "expedite.yaml", "--at", at]);
    run("2026-11-30T09:00:00Z").ok();
    let first = tree(&place)[BASKET].clone();
    let second = fleet::prepare(&place, "shop/basket", 2, "shop/basket");
    run("2026-11-30T09:01:00Z").ok();
    assert_eq!(pinned(&place, "shop/basket"), [second]);
    let before = rendered(&place);
    fleet::order(&place, "shop/basket", "{mode: Manual}");
    place.git(&["clone", "-q", "shop.git", "person"]);
    place.write(&format!("person/{BASKET}"), first);
    push(&place);
    let said = run("2026-11-30T09:02:00Z");
    said.exits(1);
    assert!(said.stderr.contains("basket-2 was promoted later"), "{}", said.transcript("run"));
    assert_eq!(rendered(&place), before);
}
