//! An Order gets another name: its workload changes hands and is not torn down.

use super::*;
use crate::support::fleet;

use crate::support::harness::{Place, Said};
use expedite::model::naming::FINALIZER;

const OLD: &str = "shop/basket";
const NEW: &str = "shop/cart";

fn at(place: &Place, clock: &str, more: &[&str]) -> Said {
    let run = ["run", "--config", "expedite.yaml", "--key", fleet::KEY, "--at", clock];
    place.expedite(&[&run[..], more].concat())
}

/// The committed Applications of an Order: server, and whether Argo CD would delete what they deployed.
fn committed(place: &Place, order: &str) -> Vec<(String, bool)> {
    let of = |a: &serde_json::Value| {
        let server = a["spec"]["destination"]["server"].as_str().unwrap().to_owned();
        let finalizers = a["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        (server, finalizers.iter().any(|f| f == FINALIZER))
    };
    applications(place, order).iter().map(of).collect()
}

/// What `kubectl get applications -o yaml` says after Argo CD has synced every file.
fn observe(place: &Place) {
    let items: Vec<serde_json::Value> =
        [OLD, NEW].iter().flat_map(|order| applications(place, order)).collect();
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": items});
    place.write("applications.yaml", serde_yaml::to_string(&list).unwrap());
}

#[test]
fn the_workload_changes_hands_and_the_old_file_goes_once_that_is_seen() {
    let place = Place::new();
    fleet::ground(&place);
    fleet::settings(&place, "./shop.git", "{layout: ./registry}");
    place.write("expedite.yaml", format!("{}observed: ./applications.yaml\n", place.read("expedite.yaml")));
    place.write("applications.yaml", "apiVersion: v1\nkind: List\nitems: []\n");
    fleet::order(&place, OLD, "{mode: Automatic}");
    fleet::prepare(&place, OLD, 1, OLD);
    at(&place, "2026-02-10T12:00:00Z", &[]).ok();
    observe(&place);
    let server = "https://c.example".to_owned();
    assert_eq!(committed(&place, OLD), [(server.clone(), true)]);

    std::fs::remove_dir_all(place.path("objects").join(OLD)).unwrap();
    fleet::order(&place, NEW, "{mode: Automatic}");
    fleet::prepare(&place, NEW, 1, NEW);
    let said = at(&place, "2026-02-10T12:10:00Z", &[]);
    said.ok();
    assert!(said.stdout.contains("c: detach applications/shop/kokumi-shop-basket"), "{}", said.stdout);
    assert_eq!(committed(&place, NEW), [(server.clone(), true)], "the new one is there");
    assert_eq!(
        committed(&place, OLD),
        [(server.clone(), false)],
        "the old one stays, and deletes nothing any more"
    );

    // Argo CD has not synced that yet: nothing moves, however often it is run.
    let before = head(&place);
    let said = at(&place, "2026-02-10T12:20:00Z", &[]);
    assert!(
        said.ok().contains(
            "its workload moves to the new Application, and this one is removed once it is observed"
        ),
        "{}",
        said.stdout
    );
    assert_eq!(head(&place), before);
    assert_eq!(committed(&place, OLD).len(), 1);

    // It has.
    observe(&place);
    at(&place, "2026-02-10T12:30:00Z", &[]).ok();
    assert_eq!(committed(&place, OLD), []);
    assert_eq!(committed(&place, NEW), [(server, true)]);
    let left =
        tree(&place).into_keys().filter(|path| path.contains("basket") && !path.starts_with("records/"));
    assert_eq!(left.collect::<Vec<_>>(), Vec::<String>::new());
    // What happened stays in git's history.
    let log = place.git(&["-C", "shop.git", "log", "--format=%s%n%b", "main"]);
    assert!(log.contains(OLD) && log.contains(NEW), "{log}");
}
