//! Damage in the repository: a clear error for the Order it is about, the rest goes on, and nothing of a
//! person's is overwritten.

use super::*;
use crate::support::fleet;
use crate::support::harness::{Place, Said};
use expedite::model::time::Time;
use std::os::unix::fs::symlink;

/// A shop after its first run, with a promotion that is due, and a clone in which somebody works.
fn shop_at_work() -> Place {
    let place = Place::with_shop();
    run(&place).ok();
    let digest = artifact(&place, "shop/basket", "2.1.0");
    verb(&place, &["promote", "shop/basket", &format!("basket-{}", &digest[7..19])]).ok();
    place.git(&["clone", "-q", "shop.git", "person"]);
    place
}

fn push(place: &Place) {
    place.git(&["-C", "person", "add", "-A"]);
    place.git(&["-C", "person", "commit", "-q", "-m", "By hand"]);
    place.git(&["-C", "person", "push", "-q", "origin", "HEAD:main"]);
}

fn basket_is_promoted(place: &Place) -> bool {
    pinned(place, "shop/basket") == [artifact(place, "shop/basket", "2.1.0")]
}

/// Edits an Application of shop-dev by hand, so that a run has something of another Order to do.
fn something_else_to_do(place: &Place) -> (String, String) {
    let tree = tree(place);
    let (path, text) = tree.into_iter().find(|(path, _)| path.starts_with("applications/shop-dev/")).unwrap();
    place.edit(&format!("person/{path}"), "prune: true", "prune: false");
    (path, text)
}

/// Where basket's Applications will stand.
fn places_of_basket() -> Vec<String> {
    let place = shop_at_work();
    run(&place).ok();
    let of = |(path, text): &(String, String)| {
        path.starts_with("applications/shop/") && text.contains("delivery.kokumi.dev/serving: basket")
    };
    tree(&place).into_iter().filter(of).map(|(path, _)| path).collect()
}

/// What is wrong with basket does not keep the others, and is said with the file.
#[track_caller]
fn basket_fails_alone(place: &Place, other: &(String, String), path: &str, why: &str) -> Said {
    let said = run(place);
    said.exits(1);
    assert!(said.stderr.contains(path) && said.stderr.contains(why), "{}", said.transcript("run"));
    assert_eq!(tree(place)[&other.0], other.1, "the others go on");
    place.git(&["-C", "shop.git", "fsck", "--strict"]);
    said
}

#[test]
fn a_serving_that_is_no_serving_any_more_is_its_orders_error_alone() {
    let path = "servings/shop-dev/catalog.yaml";
    for (what, why) in [
        ("conflict", "unresolved merge"),
        ("no yaml", path),
        ("other kind", "is not a Serving"),
        ("other name", "the file's path says"),
        ("misspelt", "did you mean preparationName?"),
        ("wrong type", "status"),
    ] {
        let place = shop_at_work();
        let file = format!("person/{path}");
        let text = place.read(&file);
        let damaged = match what {
            "conflict" => format!("{text}<<<<<<< HEAD\nx: 1\n=======\nx: 2\n>>>>>>> theirs\n"),
            "no yaml" => format!("{text}  }}{{ : - [\n"),
            "other kind" => text.replace("kind: Serving", "kind: Severing"),
            "other name" => text.replace("  name: catalog", "  name: other"),
            "misspelt" => text.replacen("preparationName:", "preparationNam:", 1),
            _ => format!("{}status: nonsense\n", &text[..text.find("status:").unwrap()]),
        };
        assert_ne!(text, damaged, "{what}");
        place.write(&file, &damaged);
        push(&place);
        let said = run(&place);
        said.exits(1);
        assert!(
            said.stderr.contains(path) && said.stderr.contains(why),
            "{what}: {}",
            said.transcript("run")
        );
        assert!(basket_is_promoted(&place), "{what}: the rest goes on");
        assert_eq!(tree(&place)[path], damaged, "{what}: it is a person's to mend");
    }
}

#[test]
fn a_link_in_a_servings_place_is_its_orders_error_alone() {
    let place = shop_at_work();
    let path = "servings/shop-dev/catalog.yaml";
    std::fs::remove_file(place.path(&format!("person/{path}"))).unwrap();
    symlink("/etc/passwd", place.path(&format!("person/{path}"))).unwrap();
    push(&place);
    let said = run(&place);
    said.exits(1);
    assert!(said.stderr.contains(path) && said.stderr.contains("is a link"), "{}", said.transcript("run"));
    assert!(!said.stderr.contains("root:"), "nothing outside is read");
    assert!(basket_is_promoted(&place));
    assert_eq!(tree(&place)[path], "/etc/passwd", "the link stays");
}

#[test]
fn what_stands_in_the_way_of_a_generated_file_is_never_replaced() {
    let paths = places_of_basket();
    let first = paths.first().unwrap();
    // A link at the very path, out of the repository.
    let place = shop_at_work();
    let other = something_else_to_do(&place);
    symlink("../../../outside", place.path(&format!("person/{first}"))).unwrap();
    push(&place);
    basket_fails_alone(&place, &other, first, "symbolic link");
    assert_eq!(tree(&place)[first], "../../../outside");
    assert!(!place.path("outside").exists());
    // A name that differs in case only: on a Mac the two would be one file.
    let place = shop_at_work();
    let other = something_else_to_do(&place);
    let upper = first.replace("kokumi-", "Kokumi-");
    place.write(&format!("person/{upper}"), "a: 1\n");
    push(&place);
    basket_fails_alone(&place, &other, first, "differ in case only");
    assert_eq!(tree(&place)[&upper], "a: 1\n");
    // A folder where the file belongs, and a file where the folder of records belongs.
    let place = shop_at_work();
    let other = something_else_to_do(&place);
    place.write(&format!("person/{first}/note"), "mine\n");
    push(&place);
    basket_fails_alone(&place, &other, first, "there is a folder");
    assert_eq!(tree(&place)[&format!("{first}/note")], "mine\n");
    let place = shop_at_work();
    let other = something_else_to_do(&place);
    place.write("person/records/shop/basket", "mine\n");
    push(&place);
    basket_fails_alone(&place, &other, "records/shop/basket", "where a folder belongs");
    assert_eq!(tree(&place)["records/shop/basket"], "mine\n");
}

/// A fleet with two Orders that deploy by themselves: basket by `promotion`, catalog as it comes.
fn two(promotion: &str) -> (Place, String) {
    let place = Place::new();
    fleet::ground(&place);
    fleet::settings(&place, "./shop.git", "{layout: ./registry}");
    fleet::order(&place, "shop/basket", promotion);
    let basket = fleet::prepare(&place, "shop/basket", 1, "shop/basket");
    fleet::order(&place, "shop/catalog", "{mode: Automatic}");
    fleet::prepare(&place, "shop/catalog", 1, "shop/catalog");
    (place, basket)
}

#[test]
fn a_file_where_records_belong_keeps_a_seal_from_one_order_alone() {
    let approvals = "approvals: {requiredApprovals: 1, allowedGroups: [platform]}";
    let night = "windows: [{timezone: Europe/Zurich, days: [Sat], from: \"09:00\", to: \"16:00\"}]";
    for promotion in [
        format!("{{mode: Automatic, {approvals}}}"),
        // Sealed, and not promoted yet.
        format!("{{mode: Automatic, {approvals}, {night}}}"),
    ] {
        let (place, basket) = two(&promotion);
        let run = || verb(&place, &["run", "--key", fleet::KEY]);
        run().ok();
        fleet::approve(&place, "shop/basket", 1, &basket, Time::parse("2026-02-10T11:30:00Z").unwrap());
        let newer = fleet::prepare(&place, "shop/catalog", 2, "shop/catalog");
        place.git(&["clone", "-q", "shop.git", "person"]);
        place.write("person/records/shop/basket", "mine\n");
        push(&place);
        for _ in 0..2 {
            let said = run();
            said.exits(1);
            let named = said.stderr.contains("records/shop/basket");
            assert!(named && said.stderr.contains("where a folder belongs"), "{}", said.transcript("run"));
            assert_eq!(pinned(&place, "shop/catalog"), std::slice::from_ref(&newer), "the others go on");
            assert_eq!(pinned(&place, "shop/basket"), Vec::<String>::new());
            assert_eq!(tree(&place)["records/shop/basket"], "mine\n");
        }
        place.git(&["-C", "person", "pull", "-q"]);
        std::fs::remove_file(place.path("person/records/shop/basket")).unwrap();
        push(&place);
        run().ok();
        let approval = &serving(&place, "shop/basket")["status"]["approval"];
        let record = approval["record"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        assert!(tree(&place).contains_key(&format!("records/shop/basket/{record}.json")), "{approval}");
    }
}

#[test]
fn a_signature_that_fails_keeps_its_order_alone() {
    let Some(openssl) = crate::support::peers::peer("openssl") else { return };
    let (place, _) = two("{mode: Automatic}");
    let script = format!(
        "#!/bin/sh\nset -e\ncase $1 in\npublic-key) '{0}' pkey -in {1} -pubout ;;\n\
         sign) cat > message.bin; if grep -q basket message.bin; then exit 1; fi; '{0}' dgst -sha256 -sign {1} message.bin ;;\nesac\n",
        openssl.display(),
        fleet::KEY,
    );
    place.write("signer.sh", script);
    let run = || verb(&place, &["run", "--signer", "sh signer.sh"]);
    for _ in 0..2 {
        let said = run();
        said.exits(1);
        assert!(said.stderr.contains("signer command"), "{}", said.transcript("run"));
        assert_eq!(pinned(&place, "shop/catalog").len(), 1, "{}", said.transcript("run"));
        let tree = tree(&place);
        let of = |path: &&String| path.contains("basket");
        assert_eq!(tree.keys().filter(of).count(), 0, "nothing is promoted without its record");
    }
    place.edit("signer.sh", "grep -q basket", "grep -q somebody");
    run().ok();
    assert_eq!(pinned(&place, "shop/basket").len(), 1);
}

#[test]
fn a_signer_that_fails_each_time_is_not_asked_for_every_order() {
    let (place, _) = two("{mode: Automatic}");
    for i in 0..8 {
        let order = format!("shop/more-{i}");
        fleet::order(&place, &order, "{mode: Automatic}");
        fleet::prepare(&place, &order, 1, &order);
    }
    let Some(openssl) = crate::support::peers::peer("openssl") else { return };
    let script = format!(
        "case $1 in\npublic-key) '{}' pkey -in {} -pubout ;;\nsign) cat > /dev/null; echo asked >> asked; exit 1 ;;\nesac\n",
        openssl.display(),
        fleet::KEY,
    );
    place.write("signer.sh", script);
    let said = verb(&place, &["run", "--signer", "sh signer.sh"]);
    said.exits(1);
    assert_eq!(place.read("asked").lines().count(), 5);
    assert!(said.stderr.contains("5 signatures in a row failed"), "{}", said.transcript("run"));
    assert_eq!(head(&place), "");
    // Under a limit others are decided on instead, once.
    for (limit, asks) in [(1, 2), (3, 5)] {
        place.write("asked", "");
        place.edit("expedite.yaml", "limits: {", &format!("limits: {{maxPromotions: {limit}, "));
        let said = verb(&place, &["run", "--signer", "sh signer.sh"]);
        said.exits(1);
        assert_eq!(place.read("asked").lines().count(), asks, "{}", said.transcript("run"));
        assert_eq!(tree(&place).keys().filter(|path| !path.starts_with("servings/")).count(), 0);
        place.edit("expedite.yaml", &format!("maxPromotions: {limit}, "), "");
    }
}

#[test]
fn orders_that_cannot_be_written_take_nobodys_place_under_a_limit() {
    let (place, _) = two("{mode: Automatic}");
    for order in ["shop/alpha", "shop/beta"] {
        fleet::order(&place, order, "{mode: Automatic}");
        fleet::prepare(&place, order, 1, order);
    }
    place.edit("expedite.yaml", "limits: {", "limits: {maxPromotions: 1, ");
    place.git(&["init", "-q", "--bare", "-b", "main", "shop.git"]);
    place.git(&["clone", "-q", "shop.git", "person"]);
    // Where no record of theirs can stand.
    for order in ["alpha", "basket"] {
        place.write(&format!("person/records/shop/{order}"), "mine\n");
    }
    push(&place);
    let run = || verb(&place, &["run", "--key", fleet::KEY]);
    run().exits(1);
    assert_eq!(pinned(&place, "shop/beta").len(), 1, "the first that can be written");
    assert_eq!(pinned(&place, "shop/catalog").len(), 0, "and no second");
    run().exits(1);
    assert_eq!(pinned(&place, "shop/catalog").len(), 1);
    assert_eq!(pinned(&place, "shop/alpha").len() + pinned(&place, "shop/basket").len(), 0);
}

#[test]
fn a_foreign_application_of_the_same_name_is_left_alone_and_its_cluster_held() {
    let paths = places_of_basket();
    let place = shop_at_work();
    let theirs = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: theirs, namespace: argocd}\n\
                  spec: {project: default, source: {repoURL: \"https://git.example/x.git\", path: ., targetRevision: main}}\n";
    for path in &paths {
        place.write(&format!("person/{path}"), theirs);
    }
    push(&place);
    let said = run(&place);
    assert!(said.stdout.contains("Opt-in") || said.stdout.contains("OptIn"), "{}", said.transcript("run"));
    let explained = verb(&place, &["explain", "shop/basket"]);
    assert!(
        explained.stdout.contains("delivery.kokumi.dev/allowed-order"),
        "{}",
        explained.transcript("explain")
    );
    for path in &paths {
        assert_eq!(tree(&place)[path], theirs);
    }
    verb(&place, &["run", "--check"]).exits(5);
}

#[test]
fn comments_and_order_of_a_persons_spec_are_kept() {
    let place = shop_at_work();
    run(&place).ok();
    place.git(&["-C", "person", "pull", "-q"]);
    let path = "servings/shop/basket.yaml";
    let file = format!("person/{path}");
    let text = place.read(&file);
    let (head, status) = text.split_at(text.find("status:").unwrap());
    let name = head.lines().find(|l| l.trim_start().starts_with("preparationName:")).unwrap().to_owned();
    // Comments above, beside and below, another order of keys, another indentation of values.
    let ours = head.replacen(&format!("{name}\n"), "", 1);
    let ours = ours.replace(
        "  orderName:",
        &format!("  # asked for by the shop\n{name}   # see ticket 7\n  orderName:"),
    );
    place.write(&file, format!("# the basket\n{ours}# what runs:\n{status}"));
    push(&place);
    let digest = artifact(&place, "shop/basket", "2.2.0");
    let next = format!("basket-{}", &digest[7..19]);
    verb(&place, &["promote", "shop/basket", &next]).ok();
    run(&place).ok();
    assert_eq!(pinned(&place, "shop/basket"), [digest]);
    let after = tree(&place)[path].clone();
    for line in ["# the basket", "  # asked for by the shop", "# what runs:"] {
        assert!(after.lines().any(|l| l == line), "no {line:?} in\n{after}");
    }
    assert!(after.contains(&format!("preparationName: {next}   # see ticket 7\n  orderName:")), "{after}");
}
