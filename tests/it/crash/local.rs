//! Repositories on this machine.

use super::{AT, BEFORE, Scene, git, state, survives};
use crate::support::fleet;
use crate::support::harness::{self, Place};
use expedite::model::naming::FINALIZER;
use serde_json::{Value, json};

const RUN: [&str; 7] = ["run", "--config", "expedite.yaml", "--at", AT, "--key", fleet::KEY];

/// One Order that is about to change and one that is new; another is as it was.
pub fn base(url: &str) -> Place {
    let place = Place::new();
    fleet::ground(&place);
    fleet::settings(&place, url, "{layout: ./registry}");
    for order in ["shop/basket", "shop/catalog"] {
        fleet::order(&place, order, "{mode: Automatic}");
        fleet::prepare(&place, order, 1, order);
    }
    place
}

fn go_on(place: &Place) {
    place.expedite(&["run", "--config", "expedite.yaml", "--at", BEFORE, "--key", fleet::KEY]).ok();
    change(place);
}

/// A newer Preparation for one Order, and a new Order.
pub fn change(place: &Place) {
    fleet::prepare(place, "shop/basket", 2, "shop/basket");
    fleet::order(place, "shop/mailer", "{mode: Automatic}");
    fleet::prepare(place, "shop/mailer", 1, "shop/mailer");
}

/// A copy of a place, with a folder of its own for temporary files.
pub fn again(of: &Place) -> Place {
    let mut place = Place::new();
    harness::copy(of.root(), place.root());
    std::fs::create_dir_all(place.path("tmp")).unwrap();
    place.set("TMPDIR", place.path("tmp").to_str().unwrap());
    place
}

#[test]
fn b28_a_bare_repository_that_the_run_creates() {
    let base = base("./gitops.git");
    let scene =
        Scene { place: &|| again(&base), arguments: &RUN, state: &|place| state::exact(place, "gitops.git") };
    survives(&scene);
}

/// What Argo CD says at noon of an Order that was promoted before: it is healthy.
fn observe(place: &Place, order: &str) {
    let repository = place.path("gitops.git");
    let files = git(&repository, &["ls-tree", "-r", "--name-only", "main", "applications"]);
    let path = files.lines().find(|path| path.contains(&order.replace('/', "-"))).unwrap();
    let text = git(&repository, &["show", &format!("main:{path}")]);
    let mut application: Value = serde_yaml::from_str(&text).unwrap();
    let (source, destination) =
        (application["spec"]["source"].clone(), application["spec"]["destination"].clone());
    let (revision, since) = (source["targetRevision"].clone(), "2026-02-10T11:05:00Z");
    application["status"] = json!({
        "sync": {
            "status": "Synced", "revision": revision,
            "comparedTo": {"source": source, "destination": destination},
        },
        "health": {"status": "Healthy", "lastTransitionTime": since},
        "operationState": {
            "phase": "Succeeded", "startedAt": since, "finishedAt": since, "syncResult": {"revision": revision},
        },
        "reconciledAt": "2026-02-10T11:50:00Z",
    });
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [application]});
    place.write("applications.yaml", list.to_string());
    place.write("expedite.yaml", format!("{}observed: ./applications.yaml\n", place.read("expedite.yaml")));
}

/// One Order was seen healthy: its deployment record is signed, committed and attached, too.
#[test]
fn b28_a_bare_repository() {
    let base = base("./gitops.git");
    go_on(&base);
    observe(&base, "shop/catalog");
    let state = |place: &Place| state::exact(place, "gitops.git") + &state::layouts(place);
    survives(&Scene { place: &|| again(&base), arguments: &RUN, state: &state });
    let whole = again(&base);
    whole.expedite(&RUN).ok();
    let record = git(&whole.path("gitops.git"), &["grep", "deploymentRecord", "main", "--", "servings"]);
    assert!(record.contains("catalog.yaml"), "{record}");
}

/// Two Orders are deleted. Of one all goes; the workload of the other passes to the new Order in its namespace.
#[test]
fn b28_a_checkout() {
    let base = base("./work");
    std::fs::create_dir(base.path("work")).unwrap();
    git(&base.path("work"), &["init", "-q", "-b", "main", "."]);
    base.write("work/README", "mine\n");
    git(&base.path("work"), &["add", "."]);
    git(&base.path("work"), &["commit", "-qm", "first"]);
    let gone = ["other/leaving", "shop/renamed"];
    for order in gone {
        fleet::order(&base, order, "{mode: Automatic}");
        fleet::prepare(&base, order, 1, order);
    }
    go_on(&base);
    for order in gone {
        std::fs::remove_dir_all(base.path("objects").join(order)).unwrap();
    }
    let scene =
        Scene { place: &|| again(&base), arguments: &RUN, state: &|place| state::checkout(place, "work") };
    survives(&scene);
    let files = |place: &Place, name: &str| git(&place.path("work"), &["ls-files"]).matches(name).count();
    let finalizers =
        |place: &Place| git(&place.path("work"), &["grep", "-c", FINALIZER, "main"]).lines().count();
    assert_eq!((files(&base, "leaving"), files(&base, "renamed"), finalizers(&base)), (3, 3, 4));
    let whole = again(&base);
    whole.expedite(&RUN).ok();
    // basket, catalog, mailer.
    assert_eq!((files(&whole, "leaving"), files(&whole, "renamed"), finalizers(&whole)), (0, 3, 3));
}

#[test]
fn b28_a_checkout_that_follows_another_repository() {
    let base = base("./work");
    git(base.root(), &["init", "-q", "--bare", "-b", "main", "origin.git"]);
    git(base.root(), &["clone", "-q", "origin.git", "work"]);
    let work = base.path("work");
    // A path that holds wherever the whole is copied to.
    git(&work, &["config", "remote.origin.url", "../origin.git"]);
    base.write("work/README", "mine\n");
    git(&work, &["add", "."]);
    git(&work, &["commit", "-qm", "first"]);
    git(&work, &["push", "-q", "origin", "main"]);
    go_on(&base);
    let scene = Scene {
        place: &|| again(&base),
        arguments: &RUN,
        state: &|place| {
            let (origin, work) = (state::exact(place, "origin.git"), state::checkout(place, "work"));
            origin + &work + &state::layouts(place)
        },
    };
    survives(&scene);
}
