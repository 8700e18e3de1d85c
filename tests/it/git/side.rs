//! The reference beside the branches.

use super::{changes, fsck, git, identity, open, proposal};
use crate::support::gitserver::{self, GitServer, Http};
use git_commits::WriteOutcome;
use git_commits::side::{self, SideOutcome};
use git_commits::{ATTACHED, Repository, RepositoryOptions, RepositoryTarget};
use std::collections::BTreeSet;

fn add(repository: &Repository, path: &str) -> SideOutcome {
    let changes = changes([(path, Some(path))]);
    side::update_side(repository, ATTACHED, &identity(), 1_790_000_000, &changes).unwrap()
}

fn set(lines: &[&str]) -> BTreeSet<String> {
    lines.iter().map(|l| (*l).to_owned()).collect()
}

#[test]
fn files_are_remembered_beside_the_branches() {
    let dir = crate::git::folder();
    git(dir.path(), &["init", "-q", "--bare", "-b", "main", "."]);
    let repository = open(dir.path());
    assert_eq!(side::read_paths(&repository, ATTACHED).unwrap(), set(&[]));
    assert_eq!(add(&repository, "a"), SideOutcome::Updated);
    assert_eq!(add(&repository, "b"), SideOutcome::Updated);
    assert_eq!(add(&repository, "a"), SideOutcome::Unchanged);
    assert_eq!(side::read_paths(&open(dir.path()), ATTACHED).unwrap(), set(&["a", "b"]));
    let gone = changes([("a", None), ("never/there", None)]);
    let at = 1_790_000_000;
    assert_eq!(
        side::update_side(&repository, ATTACHED, &identity(), at, &gone).unwrap(),
        SideOutcome::Updated
    );
    assert_eq!(
        side::update_side(&repository, ATTACHED, &identity(), at, &gone).unwrap(),
        SideOutcome::Unchanged
    );
    assert_eq!(side::read_paths(&open(dir.path()), ATTACHED).unwrap(), set(&["b"]));
    assert_eq!(git(dir.path(), &["for-each-ref", "--format=%(refname)"]), ATTACHED);
    fsck(dir.path());
}

#[test]
fn eight_runs_over_http_remember_all_of_it() {
    let Some(server) = gitserver::http(&Http::default()) else { return };
    let path = server.create("gitops.git");
    let target = RepositoryTarget::Url(format!("http://127.0.0.1:{}/gitops.git", server.port));
    let runs: Vec<_> = (0..8)
        .map(|n| {
            let target = target.clone();
            std::thread::spawn(move || {
                let repository = Repository::open_target(&target, RepositoryOptions::default()).unwrap();
                add(&repository, &format!("folder {}/file {n}", n % 3))
            })
        })
        .collect();
    for run in runs {
        assert_eq!(run.join().unwrap(), SideOutcome::Updated);
    }
    let repository = Repository::open_target(&target, RepositoryOptions::default()).unwrap();
    let base = repository.read_snapshot("main").unwrap();
    assert_eq!(side::read_paths(&repository, ATTACHED).unwrap().len(), 8);
    // It is read along with the branch, and a write to the branch does not touch it.
    let done = git_commits::write_changes(
        &repository,
        &base,
        &changes([("a", Some("a"))]),
        proposal("a", &identity()),
    )
    .unwrap();
    assert!(matches!(done, WriteOutcome::Pushed(_)));
    assert_eq!(git(&path, &["for-each-ref"]).lines().count(), 2);
    fsck(&path);
}

#[test]
fn what_a_branch_has_and_the_reference_lacks_is_told_apart_by_its_bytes() {
    let dir = crate::git::folder();
    git(dir.path(), &["init", "-q", "--bare", "-b", "main", "."]);
    let repository = open(dir.path());
    let lacking = || {
        let base = repository.read_snapshot("main").unwrap();
        side::find_lacking(&repository, ATTACHED, &base, "records").unwrap()
    };
    assert_eq!(lacking(), Vec::<String>::new(), "an empty repository lacks nothing");
    let base = repository.read_snapshot("main").unwrap();
    let files = [
        ("records/a/1", Some("1")),
        ("records/a/2", Some("2")),
        ("records/b/1", Some("1")),
        ("records.txt", Some("x")),
        ("servings/a", Some("x")),
    ];
    git_commits::write_changes(&repository, &base, &changes(files), proposal("a", &identity())).unwrap();
    assert_eq!(lacking(), ["records/a/1", "records/a/2", "records/b/1"]);
    let kept = changes([
        ("records/a/1", Some("1")),
        ("records/a/2", Some("other bytes")),
        ("records/b/1", Some("1")),
        ("records/gone", Some("x")),
    ]);
    let at = 1_790_000_000;
    side::update_side(&repository, ATTACHED, &identity(), at, &kept).unwrap();
    assert_eq!(lacking(), ["records/a/2"]);
}

#[test]
fn a_server_that_takes_no_such_reference_says_so() {
    let Some(server) = gitserver::http(&Http::default()) else { return };
    let path = server.create("gitops.git");
    GitServer::hook(&path, "update", "case $1 in refs/heads/*) exit 0;; esac; echo 'only branches'; exit 1");
    let target = RepositoryTarget::Url(format!("http://127.0.0.1:{}/gitops.git", server.port));
    let repository = Repository::open_target(&target, RepositoryOptions::default()).unwrap();
    let SideOutcome::Refused(words) = add(&repository, "a") else { panic!("not refused") };
    assert!(words.contains("only branches"), "{words}");
    assert_eq!(side::read_paths(&repository, ATTACHED).unwrap(), set(&[]));
}
