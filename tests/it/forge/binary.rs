//! Through the real binary, as CI runs it.

use super::{ALL, HEAD, Pulls};
use crate::support::harness::{Place, Said};
use crate::support::pulls::{Fault, TOKEN};
use expedite::forge::Forge;
use serde_json::json;

const AT: &str = "2026-02-10T12:00:00Z";

/// The shop, in a run of CI for the commit `head`.
fn shop(pulls: &Pulls, head: &str) -> Place {
    let mut place = Place::with_shop();
    for (name, value) in pulls.variables(&place.path("event.json"), head) {
        place.set(name, &value);
    }
    place
}

/// Plans and comments; the token is never shown.
fn plan(place: &Place, forge: Forge, more: &[&str]) -> Said {
    let said = place.expedite(&[&["plan", "--at", AT, "--comment", forge.name()], more].concat());
    assert!(!format!("{said:?}").contains(TOKEN), "{said:?}");
    said
}

#[test]
fn a_plan_is_commented_once_and_kept_up_to_date() {
    for forge in ALL {
        let pulls = Pulls::start(forge);
        let place = shop(&pulls, HEAD);
        let said = plan(&place, forge, &[]);
        said.exits(0);
        assert!(
            said.stderr.contains("#3: commented") || said.stderr.contains("!3 of project 12: commented"),
            "{}",
            said.stderr
        );
        let [comment] = pulls.ours().try_into().unwrap();
        assert!(comment.body.starts_with("<!-- expedite:comment "), "{}", comment.body);
        assert!(
            comment.body.contains("## Expedite") && comment.body.contains("shop/catalog"),
            "{}",
            comment.body
        );
        assert!(comment.body.contains("<!-- expedite:fingerprint e1."), "{}", comment.body);
        let again = plan(&place, forge, &["-o", "json"]);
        again.exits(0);
        assert!(again.stderr.contains("says this already"), "{}", again.stderr);
        serde_json::from_str::<serde_json::Value>(&again.stdout).unwrap();
        // Something happens, and the same comment says so.
        place.expedite(&["run", "--at", AT]).ok();
        let later = plan(&place, forge, &[]);
        assert!(later.stderr.contains("updated the comment"), "{}", later.stderr);
        let [updated] = pulls.ours().try_into().unwrap();
        assert!(updated.id == comment.id && updated.body != comment.body);
        // Other flags, another pipeline.
        plan(&place, forge, &["-n", "shop"]).exits(0);
        assert_eq!(pulls.ours().len(), 2);
    }
}

#[test]
fn b62_a_long_plan_fits_what_the_forge_takes() {
    for forge in ALL {
        let pulls = Pulls::start(forge);
        let place = shop(&pulls, HEAD);
        for n in 0..400 {
            let message = format!("{} 🍲 @everyone </details> /merge", "long words ".repeat(80));
            let object = json!({
                "apiVersion": "delivery.kokumi.dev/v1alpha1",
                "kind": "Preparation",
                "metadata": {"name": format!("catalog-{n}"), "namespace": "shop", "creationTimestamp": "2026-02-09T00:00:00Z"},
                "spec": {"orderName": format!("app-{n}"), "commitMessage": message, "artifact": {
                    "ociRef": format!("oci://registry.shop.example:5000/shop/app-{n}@sha256:{n:064}"),
                    "digest": format!("sha256:{n:064}"), "signed": true,
                }},
            });
            place.write(&format!("objects/preparations/many-{n}.json"), object.to_string());
            let order = json!({
                "apiVersion": "delivery.kokumi.dev/v1alpha1", "kind": "Order",
                "metadata": {"name": format!("app-{n}"), "namespace": "shop"},
                "spec": {"source": {"oci": format!("oci://registry.shop.example:5000/shop/app-{n}")},
                    "environment": "staging", "promotion": {"mode": "Automatic"}},
            });
            place.write(&format!("objects/orders/many-{n}.json"), order.to_string());
        }
        let said = plan(&place, forge, &["-q"]);
        let [comment] = pulls.ours().try_into().unwrap_or_else(|_| panic!("{}", said.transcript("plan")));
        let most = if forge == Forge::Gitlab { 1_000_000 } else { 65_536 };
        assert!(comment.body.chars().count() <= most, "{}", comment.body.len());
        assert!(
            forge == Forge::Gitlab || comment.body.contains("left out here for length"),
            "{}",
            comment.body
        );
        assert_eq!(comment.body.matches("<details>").count(), comment.body.matches("</details>").count());
        // GitLab takes a line that begins with a slash for a command.
        assert!(!comment.body.lines().any(|line| line.trim_start().starts_with('/')), "{}", comment.body);
    }
}

#[test]
fn b64_a_fork_gets_its_preview_without_rights() {
    let fork = json!({"pull_request": {
        "number": 3, "head": {"sha": HEAD, "repo": {"full_name": "evil/gitops"}}, "base": {"repo": {"full_name": "acme/gitops"}},
    }});
    for token in [TOKEN, ""] {
        let pulls = Pulls::start(Forge::Github);
        let mut place = shop(&pulls, HEAD);
        place.write("event.json", fork.to_string());
        place.set("GITHUB_TOKEN", token);
        place.set("GITHUB_ACTIONS", "true");
        place.set("GITHUB_STEP_SUMMARY", place.path("summary.md").to_str().unwrap());
        let words = r#"{"message": "Resource not accessible by integration"}"#;
        pulls.fault(1, "POST /comments", Fault::Status(403, Vec::new(), words.into()));
        let said = plan(&place, Forge::Github, &[]);
        said.exits(0);
        assert!(said.stderr.contains("warning: pull request acme/gitops#3"), "{}", said.stderr);
        assert!(said.stderr.contains("in the step summary"), "{}", said.stderr);
        assert!(said.stdout.contains("shop/catalog") || said.stdout.contains("catalog"), "{}", said.stdout);
        assert!(place.read("summary.md").contains("## Expedite"));
        assert_eq!(pulls.comments(), []);
    }
    // Of one's own repository it is an error, with what to do.
    let pulls = Pulls::start(Forge::Github);
    let place = shop(&pulls, HEAD);
    pulls.fault(1, "POST /comments", Fault::status(403));
    let said = plan(&place, Forge::Github, &[]);
    said.exits(1);
    assert!(
        said.stderr.contains("hint: give the job permissions: {pull-requests: write}"),
        "{}",
        said.stderr
    );
}

#[test]
fn what_is_missing_is_said_before_anything_is_decided() {
    let place = Place::with_shop();
    for (forge, variable) in [
        (Forge::Github, "GITHUB_REPOSITORY"),
        (Forge::Gitlab, "CI_API_V4_URL"),
        (Forge::Gitea, "GITHUB_REPOSITORY"),
    ] {
        let said = plan(&place, forge, &[]);
        said.exits(64);
        assert!(said.stderr.contains(variable) && said.stdout.is_empty(), "{said:?}");
    }
    let pulls = Pulls::start(Forge::Gitlab);
    let mut place = shop(&pulls, HEAD);
    place.set("GITLAB_TOKEN", "");
    place.set("CI_JOB_TOKEN", "job");
    let said = plan(&place, Forge::Gitlab, &[]);
    said.exits(64);
    assert!(said.stderr.contains("hint: CI_JOB_TOKEN may not comment"), "{}", said.stderr);
    assert_eq!(pulls.asked(), Vec::<String>::new());
}

#[test]
fn the_lock_still_says_no_and_the_comment_stands() {
    let pulls = Pulls::start(Forge::Github);
    let place = shop(&pulls, HEAD);
    let said = plan(&place, Forge::Github, &["--expect", "e1.AAAAAAAAAAAAAAAAAAAAAAAAAAA"]);
    said.exits(5);
    assert_eq!(pulls.ours().len(), 1, "{}", said.stderr);
}

#[test]
fn what_was_commented_can_be_expected() {
    for forge in ALL {
        let pulls = Pulls::start(forge);
        let place = shop(&pulls, HEAD);
        let none = plan(&place, forge, &["--expect", "commented"]);
        none.exits(5);
        assert!(none.stderr.contains("there is no comment with a plan"), "{}", none.stderr);
        plan(&place, forge, &[]).exits(0);
        let comments = pulls.comments();
        pulls.forget();
        plan(&place, forge, &["--expect", "commented"]).exits(0);
        place.expedite(&["run", "--at", AT]).ok();
        let moved = plan(&place, forge, &["--expect", "commented"]);
        moved.exits(5);
        assert!(moved.stderr.contains("this is not the plan that was looked at"), "{}", moved.stderr);
        assert!(pulls.asked().iter().all(|asked| asked.starts_with("GET ")), "{:?}", pulls.asked());
        assert_eq!(pulls.comments(), comments, "it stays as it is");
    }
    let said = Place::with_shop().expedite(&["plan", "--expect", "commented"]);
    said.exits(64);
    assert!(said.stderr.contains("it needs --comment"), "{}", said.stderr);
}

#[test]
fn a_forge_that_is_down_fails_the_run_after_the_plan_is_shown() {
    let pulls = Pulls::start(Forge::Github);
    let place = shop(&pulls, HEAD);
    pulls.fault(99, "GET /comments", Fault::status(500));
    let said = plan(&place, Forge::Github, &[]);
    said.exits(1);
    assert!(said.stdout.contains("catalog") && said.stderr.contains("HTTP 500"), "{said:?}");
}

/// Every file below the place, with its bytes.
fn files(place: &Place) -> Vec<(String, Vec<u8>)> {
    let all = walkdir::WalkDir::new(place.root()).sort_by_file_name();
    all.into_iter()
        .map(|entry| entry.unwrap().into_path())
        .filter(|path| path.is_file())
        .map(|path| (path.display().to_string(), std::fs::read(&path).unwrap()))
        .collect()
}

#[test]
fn b64_a_preview_of_a_hostile_change_writes_nothing_and_runs_nothing_of_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let pulls = Pulls::start(Forge::Github);
    let place = shop(&pulls, HEAD);
    place.write(".gitignore", "home\nshop.git\nregistry\nkeys\n*.json\n!objects/**/*.json\n");
    place.git(&["init", "-q"]);
    place.git(&["add", "-A"]);
    place.git(&["commit", "-q", "-m", "main"]);
    place.expedite(&["run", "--at", AT]).ok();
    place.git(&["switch", "-q", "-c", "change"]);
    // A repository of its own that would be made, a source outside, another registry, hooks, and a filter.
    place.write(
        "expedite.yaml",
        "repository: {url: ./mine.git, create: true}\nsources: [{path: /etc}]\nevidence: {cacheDir: ./cache}\n",
    );
    place.write(".gitattributes", "* filter=evil diff=evil\n");
    place.edit("objects/orders/shop.yaml", "      requiredApprovals: 2\n", "      requiredApprovals: 1\n");
    place.git(&["add", "-A"]);
    place.git(&["commit", "-q", "-m", "change"]);
    let evil = format!("#!/bin/sh\ntouch '{}'\n", place.path("evil").display());
    for hook in
        ["post-checkout", "pre-commit", "post-index-change", "reference-transaction", "fsmonitor-watchman"]
    {
        place.write(&format!(".git/hooks/{hook}"), &evil);
        let path = place.path(&format!(".git/hooks/{hook}"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let fork = json!({"pull_request": {
        "number": 3, "head": {"sha": HEAD, "repo": {"full_name": "evil/gitops"}}, "base": {"repo": {"full_name": "acme/gitops"}},
    }});
    place.write("event.json", fork.to_string());
    pulls.fault(1, "POST /comments", Fault::status(403));
    let before = files(&place);
    let said = plan(&place, Forge::Github, &["--base", "main", "-o", "markdown"]);
    said.exits(0);
    assert!(said.stdout.contains("1 must approve instead of 2"), "{said:?}");
    assert!(said.stderr.contains("warning: pull request acme/gitops#3"), "{}", said.stderr);
    let after = files(&place);
    let paths = |all: &[(String, Vec<u8>)]| all.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
    assert_eq!(paths(&before), paths(&after));
    assert!(before == after, "a file has other bytes");
}
