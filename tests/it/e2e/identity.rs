//! Who commits, and who signs it (B82).

use super::*;
use crate::support::harness::Place;
use crate::support::peers::peer;

/// Author and committer of the newest commit.
fn who(place: &Place) -> String {
    place.git(&["-C", "shop.git", "log", "-1", "--format=%an <%ae>, %cn <%ce>", "main"]).trim().to_owned()
}

#[test]
fn b82_flags_then_variables_then_settings_then_configuration_then_a_default() {
    let mut place = Place::with_shop();
    place.git(&["init", "-q", "--bare", "-b", "main", "shop.git"]);
    place.git(&["-C", "shop.git", "config", "user.name", ""]);
    let only = |place: &Place, order: &str, more: &[&str]| {
        verb(place, &[&["run", "--only", order][..], more].concat()).ok();
    };
    only(&place, "shop-dev/catalog", &[]);
    assert_eq!(who(&place), "Expedite <expedite@localhost>, Expedite <expedite@localhost>");

    place.git(&["-C", "shop.git", "config", "user.name", "Conny"]);
    place.git(&["-C", "shop.git", "config", "user.email", "conny@shop.example"]);
    only(&place, "shop-dev/storefront", &[]);
    assert_eq!(who(&place), "Conny <conny@shop.example>, Conny <conny@shop.example>");

    place.edit(
        "expedite.yaml",
        "  branch: main\n",
        "  branch: main\n  author: {name: Set, email: set@shop.example}\n",
    );
    only(&place, "shop-staging/catalog", &[]);
    assert_eq!(who(&place), "Set <set@shop.example>, Set <set@shop.example>");

    for (variable, value) in [
        ("GIT_AUTHOR_NAME", "Ann"),
        ("GIT_AUTHOR_EMAIL", "ann@shop.example"),
        ("GIT_COMMITTER_NAME", "Robot"),
        ("GIT_COMMITTER_EMAIL", "robot@shop.example"),
    ] {
        place.set(variable, value);
    }
    only(&place, "shop/catalog", &[]);
    assert_eq!(who(&place), "Ann <ann@shop.example>, Robot <robot@shop.example>");

    only(&place, "shop/storefront", &["--author", "Flo <flo@shop.example>"]);
    assert_eq!(who(&place), "Flo <flo@shop.example>, Flo <flo@shop.example>");
    assert!(place.expedite(&["run", "--author", "Flo"]).exits(64).is_empty());
}

#[test]
fn b82_signing_that_was_asked_for_and_cannot_be_done_commits_nothing() {
    let place = Place::with_shop();
    place.git(&["init", "-q", "--bare", "-b", "main", "shop.git"]);
    place.git(&["-C", "shop.git", "config", "commit.gpgsign", "true"]);
    place.git(&["-C", "shop.git", "config", "gpg.format", "ssh"]);
    for arguments in [&["run"][..], &["promote", "shop/basket", "basket-b49b09790c53"]] {
        let said = verb(&place, arguments);
        said.exits(1);
        assert!(said.stderr.contains("names no user.signingkey"), "{}", said.stderr);
        assert_eq!(head(&place), "", "an unsigned commit was made");
    }
    verb(&place, &["plan"]).ok();
    place.edit("expedite.yaml", "  branch: main\n", "  branch: main\n  signCommits: ./absent\n");
    let said = run(&place);
    said.exits(1);
    assert!(said.stderr.contains("cannot read the signing key"), "{}", said.stderr);
    assert_eq!(head(&place), "");
}

#[test]
fn b82_a_signed_commit_is_verified_by_git() {
    let Some(keygen) = peer("ssh-keygen") else { return };
    let place = Place::with_shop();
    let made = place.finish({
        let mut command = place.command(keygen);
        command.args(["-q", "-t", "ed25519", "-N", "", "-C", "job", "-f", "job"]);
        command
    });
    made.ok();
    place.edit("expedite.yaml", "  branch: main\n", "  branch: main\n  signCommits: ./job\n");
    run(&place).ok();
    place.write("allowed", format!("* {}", place.read("job.pub")));
    let allowed = format!("gpg.ssh.allowedSignersFile={}", place.path("allowed").display());
    place.git(&["-C", "shop.git", "-c", &allowed, "verify-commit", "main"]);
}
