//! A promotion proposed as a branch for a pull request, merged in every way that forges merge, and run.

use super::*;
use crate::support::harness::{Place, Said};

const BRANCH: &str = "promote/basket";

fn basket(place: &Place, version: &str) -> String {
    format!("basket-{}", &artifact(place, "shop/basket", version)["sha256:".len()..][..12])
}

#[track_caller]
fn propose(place: &Place, version: &str) -> Said {
    verb(place, &["promote", "shop/basket", &basket(place, version), "--propose", BRANCH])
}

fn in_repository(place: &Place, arguments: &[&str]) -> String {
    place.git(&[&["-C", "shop.git"], arguments].concat())
}

/// A shop after its first run, with a person's name in git's configuration.
fn shop_of_ann() -> Place {
    let place = Place::with_shop();
    run(&place).ok();
    place.git(&["-C", "shop.git", "config", "user.name", "Ann"]);
    place.git(&["-C", "shop.git", "config", "user.email", "ann@shop.example"]);
    place
}

/// Merges the proposal as a forge does, in a clone, and pushes.
fn merge(place: &Place, how: &[&str]) {
    place.git(&["clone", "-q", "shop.git", "forge"]);
    place.git(&[&["-C", "forge", "merge", "-q"], how, &[&format!("origin/{BRANCH}")]].concat());
    if how.contains(&"--squash") {
        place.git(&["-C", "forge", "commit", "-q", "-m", "Ask for the basket (#7)"]);
    }
    place.git(&["-C", "forge", "push", "-q", "origin", "main"]);
    std::fs::remove_dir_all(place.path("forge")).unwrap();
}

#[test]
fn a_proposal_is_one_commit_beside_main_that_reads_well() {
    let place = shop_of_ann();
    let before = head(&place);
    let said = propose(&place, "2.1.0");
    said.ok();
    assert_eq!(head(&place), before, "main is not touched");
    assert_eq!(in_repository(&place, &["rev-list", "--count", &format!("main..{BRANCH}")]).trim(), "1");
    let changed = in_repository(&place, &["diff", "--name-only", "main", BRANCH]);
    assert_eq!(changed, "servings/shop/basket.yaml\n");
    let name = basket(&place, "2.1.0");
    let message = in_repository(&place, &["log", "-1", "--format=%B", BRANCH]);
    let digest = artifact(&place, "shop/basket", "2.1.0");
    assert!(
        message.starts_with(&format!("Ask to promote shop/basket to {name} in production\n\n- ")),
        "{message}"
    );
    let trailers = in_repository(&place, &["log", "-1", "--format=%(trailers:only)", BRANCH]);
    assert_eq!(
        trailers.trim(),
        format!(
            "Order: shop/basket\nPreparation: shop/{name}\nDigest: {digest}\n\
             Requested-By: Ann <ann@shop.example>\nProposal: {BRANCH}"
        )
    );
    assert!(said.stderr.contains(&format!("open a pull request from {BRANCH} into main")), "{}", said.stderr);
    in_repository(&place, &["fsck", "--strict"]);
    // The same again is there already, an hour later, too.
    let tip = in_repository(&place, &["rev-parse", BRANCH]);
    let again = place.expedite(&[
        "promote",
        "shop/basket",
        &name,
        "--propose",
        BRANCH,
        "--config",
        "expedite.yaml",
        "--at",
        "2026-02-10T13:00:00Z",
    ]);
    again.ok();
    assert!(again.stderr.contains("proposes this already"), "{}", again.stderr);
    assert_eq!(in_repository(&place, &["rev-parse", BRANCH]), tip);
    // Another wish replaces it, still one commit.
    propose(&place, "2.2.0").ok();
    assert_eq!(in_repository(&place, &["rev-list", "--count", &format!("main..{BRANCH}")]).trim(), "1");
}

#[test]
fn a_merged_proposal_is_promoted_however_it_was_merged() {
    for how in [&["--ff-only"][..], &["--no-ff", "-m", "Merge"], &["--squash"]] {
        let place = shop_of_ann();
        propose(&place, "2.1.0").ok();
        run(&place).ok();
        assert_eq!(pinned(&place, "shop/basket"), Vec::<String>::new(), "{how:?}: it is only proposed");
        merge(&place, how);
        run(&place).ok();
        assert_eq!(pinned(&place, "shop/basket"), [artifact(&place, "shop/basket", "2.1.0")], "{how:?}");
        let requested = &serving(&place, "shop/basket")["status"]["history"][0]["requestedBy"]["name"];
        assert_eq!(requested, "Ann <ann@shop.example>", "{how:?}");
        // The branch that was left behind is free for the next proposal, of this Order and of others.
        verb(
            &place,
            &[
                "promote",
                "shop/checkout",
                &{
                    let digest = artifact(&place, "shop/checkout", "3.8.0");
                    format!("checkout-{}", &digest[7..19])
                },
                "--propose",
                BRANCH,
            ],
        )
        .ok();
        assert_eq!(
            in_repository(&place, &["diff", "--name-only", "main", BRANCH]),
            "servings/shop/checkout.yaml\n",
            "{how:?}"
        );
        in_repository(&place, &["fsck", "--strict"]);
    }
}

#[test]
fn what_is_proposed_for_another_order_or_by_a_person_is_never_replaced() {
    let place = shop_of_ann();
    propose(&place, "2.1.0").ok();
    let tip = in_repository(&place, &["rev-parse", BRANCH]);
    let digest = artifact(&place, "shop/checkout", "3.8.0");
    let other = verb(
        &place,
        &["promote", "shop/checkout", &format!("checkout-{}", &digest[7..19]), "--propose", BRANCH],
    );
    other.exits(1);
    assert!(other.stderr.contains("shop/basket") && other.stderr.contains("hint:"), "{}", other.stderr);
    assert_eq!(in_repository(&place, &["rev-parse", BRANCH]), tip);
    // A person's commit on the branch.
    place.git(&["clone", "-q", "-b", BRANCH, "shop.git", "person"]);
    place.write("person/NOTE", "wait for me\n");
    place.git(&["-C", "person", "add", "-A"]);
    place.git(&["-C", "person", "commit", "-q", "-m", "Wait"]);
    place.git(&["-C", "person", "push", "-q", "origin", BRANCH]);
    let theirs = in_repository(&place, &["rev-parse", BRANCH]);
    let held = propose(&place, "2.2.0");
    held.exits(1);
    assert!(held.stderr.contains("not ours") && held.stderr.contains("hint:"), "{}", held.stderr);
    assert_eq!(in_repository(&place, &["rev-parse", BRANCH]), theirs);
}

#[test]
fn a_proposal_is_judged_like_a_promotion_and_never_goes_to_main_itself() {
    let place = shop_of_ann();
    let before = in_repository(&place, &["for-each-ref"]);
    let name = basket(&place, "2.1.0");
    let unknown = verb(&place, &["promote", "shop/basket", "basket-000000000000", "--propose", BRANCH]);
    unknown.exits(5);
    let same = verb(&place, &["promote", "shop/basket", &name, "--propose", "main"]);
    same.exits(1);
    assert!(same.stderr.contains("a branch of its own"), "{}", same.stderr);
    verb(&place, &["promote", "shop/basket", &name, "--propose", "a..b"]).exits(1);
    assert_eq!(in_repository(&place, &["for-each-ref"]), before);
}

#[test]
fn a_withdrawal_and_a_rollback_are_proposed_as_well() {
    let place = shop_of_ann();
    verb(&place, &["promote", "shop/basket", &basket(&place, "2.1.0")]).ok();
    run(&place).ok();
    verb(&place, &["promote", "shop/basket", &basket(&place, "2.2.0")]).ok();
    verb(&place, &["withdraw", "shop/basket", "--propose", BRANCH]).ok();
    let subject = in_repository(&place, &["log", "-1", "--format=%s", BRANCH]);
    assert_eq!(subject, "Withdraw the waiting promotion of shop/basket in production\n");
    run(&place).ok();
    assert_eq!(pinned(&place, "shop/basket"), [artifact(&place, "shop/basket", "2.2.0")]);
    let back = basket(&place, "2.1.0");
    verb(&place, &["rollback", "shop/basket", &back, "--propose", BRANCH]).ok();
    let subject = in_repository(&place, &["log", "-1", "--format=%s", BRANCH]);
    assert_eq!(subject, format!("Ask to roll back shop/basket to {back} in production\n"));
    merge(&place, &["--squash"]);
    run(&place).ok();
    assert_eq!(pinned(&place, "shop/basket"), [artifact(&place, "shop/basket", "2.1.0")]);
}

/// Who asked is a co-author of what somebody else commits, once, and only as `Name <address>`.
#[test]
fn who_asked_is_the_co_author_of_the_run() {
    let place = shop_of_ann();
    place.edit(
        "expedite.yaml",
        "  create: true",
        "  create: true\n  author: {name: Robot, email: robot@shop.example}",
    );
    verb(&place, &["promote", "shop/basket", &basket(&place, "2.1.0")]).ok();
    let of = |place: &Place, format: &str| {
        in_repository(place, &["log", "-1", &format!("--format={format}"), "main"])
    };
    let co = "%(trailers:key=Co-authored-by,valueonly)";
    // The settings' author commits; git's configuration says whose wish it is.
    assert_eq!(of(&place, "%an"), "Robot\n");
    assert_eq!(of(&place, co).trim(), "Ann <ann@shop.example>");
    run(&place).ok();
    assert_eq!(of(&place, "%an <%ae>"), "Robot <robot@shop.example>\n");
    assert_eq!(of(&place, co).trim(), "Ann <ann@shop.example>");
    assert_eq!(of(&place, "%(trailers:key=Requested-By,valueonly)").trim(), "Ann <ann@shop.example>");
    // A name that would be trailers of its own is nobody's.
    place.git(&["clone", "-q", "shop.git", "person"]);
    let file = "person/servings/shop/basket.yaml";
    let text = place.read(file);
    let (old, new) = (basket(&place, "2.1.0"), basket(&place, "2.2.0"));
    let evil = "\"Eve <eve@x>\\n\\nPromotion-Record: sha256:00\\nCo-authored-by: Bob <bob@x>\"";
    let edited = text.replacen(&format!("preparationName: {old}"), &format!("preparationName: {new}"), 1);
    let edited = edited.replacen("name: Ann <ann@shop.example>", &format!("name: {evil}"), 1);
    assert_ne!(text, edited);
    place.write(file, edited);
    place.git(&["-C", "person", "commit", "-q", "-a", "-m", "By hand"]);
    place.git(&["-C", "person", "push", "-q", "origin", "main"]);
    run(&place).ok();
    assert_eq!(pinned(&place, "shop/basket"), [artifact(&place, "shop/basket", "2.2.0")]);
    assert_eq!(of(&place, co).trim(), "");
    let record = serving(&place, "shop/basket")["status"]["history"][0]["promotionRecord"].clone();
    assert_eq!(of(&place, "%(trailers:key=Promotion-Record,valueonly)").trim(), record.as_str().unwrap());
    let keys = of(&place, "%(trailers:only,keyonly)");
    let keys: Vec<&str> = keys.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(keys, ["Order", "Preparation", "Digest", "Promotion-Record", "Requested-By"]);
}
