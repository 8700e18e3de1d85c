//! B18: a branch of our own, for a pull request.

use super::{changes, fsck, git, identity, proposal};
use crate::support::gitserver::{self, Http};
use git_commits::GitError;
use git_commits::WriteOutcome;
use git_commits::{ProposalBranch, Repository, RepositoryOptions, RepositoryTarget};
use std::path::Path;

const BRANCH: &str = "promote/shop";

fn propose(target: &RepositoryTarget, content: &str) -> Result<WriteOutcome, GitError> {
    let repository = Repository::open_target(target, RepositoryOptions::default())?;
    let base = repository.read_snapshot("main")?;
    let changed = changes([("applications/a.yaml", Some(content))]);
    let text = git_commits::build_message("Promote", &[], &[("Digest".to_owned(), "sha256:00".to_owned())]);
    git_commits::propose_changes(
        &repository,
        &base,
        ProposalBranch { name: BRANCH, about: "Order" },
        &|_| Ok(changed.clone()),
        proposal(&text, &identity()),
    )
}

/// A person's commits, pushed to `branch` of `bare`.
fn person(bare: &Path, branch: &str, files: &[(&str, &str)]) {
    let dir = crate::git::folder();
    let work = dir.path().join("work");
    git(dir.path(), &["clone", "-q", bare.to_str().unwrap(), "work"]);
    git(&work, &["checkout", "-q", "-B", "mine", &format!("origin/{branch}")]);
    for (file, text) in files {
        let file = work.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
        git(&work, &["add", "."]);
        git(&work, &["commit", "-qm", "person"]);
    }
    git(&work, &["push", "-q", "origin", &format!("HEAD:refs/heads/{branch}")]);
}

fn b18(bare: &Path, target: &RepositoryTarget) {
    let start = Repository::open_target(target, RepositoryOptions::default()).unwrap();
    let base = start.read_snapshot("main").unwrap();
    git_commits::write_changes(
        &start,
        &base,
        &changes([("README", Some("x"))]),
        proposal("first", &identity()),
    )
    .unwrap();
    // Run 1 opens the branch; again, nothing.
    assert!(matches!(propose(target, "one"), Ok(WriteOutcome::Pushed(_))));
    assert_eq!(propose(target, "one").unwrap(), WriteOutcome::Unchanged);
    assert_eq!(git(bare, &["rev-list", "--count", &format!("main..{BRANCH}")]), "1");
    // The base goes on, by a change of the same file too; run 2 rebuilds on its tip.
    person(
        bare,
        "main",
        &[
            ("b", "1"),
            ("b", "2"),
            ("applications/a.yaml", "theirs"),
            ("b", "3"),
            ("applications/c.yaml", "c"),
        ],
    );
    let tip = git(bare, &["rev-parse", "main"]);
    assert!(matches!(propose(target, "two"), Ok(WriteOutcome::Pushed(_))));
    assert_eq!(git(bare, &["rev-parse", &format!("{BRANCH}^")]), tip);
    assert_eq!(git(bare, &["diff", "--name-only", "main", BRANCH]), "applications/a.yaml");
    assert_eq!(
        git(
            bare,
            &[
                "log",
                "-1",
                "--format=%(trailers:key=Proposal,valueonly)%(trailers:key=Digest,valueonly)",
                BRANCH
            ]
        ),
        format!("{BRANCH}\nsha256:00")
    );
    // Merged and left there; run 3 starts anew.
    git(bare, &["update-ref", "refs/heads/main", BRANCH]);
    assert_eq!(propose(target, "two").unwrap(), WriteOutcome::Unchanged);
    assert!(matches!(propose(target, "three"), Ok(WriteOutcome::Pushed(_))));
    assert_eq!(git(bare, &["rev-list", "--count", &format!("main..{BRANCH}")]), "1");
    // A person's commit on it; run 4 holds.
    person(bare, BRANCH, &[("note", "mine")]);
    let theirs = git(bare, &["rev-parse", BRANCH]);
    let held = propose(target, "four").unwrap_err();
    assert_eq!(held.code, "proposal-taken");
    assert!(held.cause.contains(&theirs), "{held}");
    assert_eq!(git(bare, &["rev-parse", BRANCH]), theirs);
    // That, too, is merged: the branch is free again.
    git(bare, &["update-ref", "refs/heads/main", BRANCH]);
    person(bare, "main", &[("b", "4")]);
    assert!(matches!(propose(target, "four"), Ok(WriteOutcome::Pushed(_))));
    assert_eq!(git(bare, &["rev-list", "--count", &format!("main..{BRANCH}")]), "1");
    // Never the base itself.
    let repository = Repository::open_target(target, RepositoryOptions::default()).unwrap();
    let base = repository.read_snapshot("main").unwrap();
    let changed = |_| Ok(changes([("x", Some("x"))]));
    let same = git_commits::propose_changes::<GitError>(
        &repository,
        &base,
        ProposalBranch { name: "main", about: "Order" },
        &changed,
        proposal("x", &identity()),
    );
    assert_eq!(same.unwrap_err().code, "branch-name");
    fsck(bare);
}

#[test]
fn b18_here() {
    let dir = crate::git::folder();
    git(dir.path(), &["init", "-q", "--bare", "-b", "main", "."]);
    b18(dir.path(), &RepositoryTarget::Path(dir.path().to_path_buf()));
}

#[test]
fn b18_over_http() {
    let Some(server) = gitserver::http(&Http::default()) else { return };
    let path = server.create("gitops.git");
    b18(&path, &RepositoryTarget::Url(format!("http://127.0.0.1:{}/gitops.git", server.port)));
}
