//! Repositories on this machine.

use crate::harness::{self, Place};
use crate::{AT, BEFORE, Scene, fleet, git, state, survives};

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
fn a_bare_repository_that_the_run_creates() {
    let base = base("./gitops.git");
    let scene =
        Scene { place: &|| again(&base), arguments: &RUN, state: &|place| state::exact(place, "gitops.git") };
    survives(&scene);
}

#[test]
fn a_bare_repository() {
    let base = base("./gitops.git");
    go_on(&base);
    let scene =
        Scene { place: &|| again(&base), arguments: &RUN, state: &|place| state::exact(place, "gitops.git") };
    survives(&scene);
}

#[test]
fn a_checkout() {
    let base = base("./work");
    std::fs::create_dir(base.path("work")).unwrap();
    git(&base.path("work"), &["init", "-q", "-b", "main", "."]);
    base.write("work/README", "mine\n");
    git(&base.path("work"), &["add", "."]);
    git(&base.path("work"), &["commit", "-qm", "first"]);
    go_on(&base);
    let scene =
        Scene { place: &|| again(&base), arguments: &RUN, state: &|place| state::checkout(place, "work") };
    survives(&scene);
}

#[test]
fn a_checkout_that_follows_another_repository() {
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
