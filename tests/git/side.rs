//! The reference beside the branches.

use crate::gitserver::{self, GitServer, Http};
use crate::{changes, fsck, git, identity, open, proposal};
use expedite::commit::side::{self, Kept};
use expedite::commit::{self, Outcome};
use expedite::git::{ATTACHED, Options, Repository, Target};
use expedite::model::time::Time;
use std::collections::BTreeSet;

fn add(repository: &Repository, line: &str) -> Kept {
    side::update(repository, ATTACHED, &identity(), Time::from_unix(1_790_000_000), |lines| {
        lines.insert(line.to_owned());
    })
    .unwrap()
}

fn set(lines: &[&str]) -> BTreeSet<String> {
    lines.iter().map(|l| (*l).to_owned()).collect()
}

#[test]
fn lines_are_remembered_beside_the_branches() {
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &["init", "-q", "--bare", "-b", "main", "."]);
    let repository = open(dir.path());
    assert_eq!(side::read(&repository, ATTACHED).unwrap(), set(&[]));
    assert_eq!(add(&repository, "a"), Kept::Updated);
    assert_eq!(add(&repository, "b"), Kept::Updated);
    assert_eq!(add(&repository, "a"), Kept::Unchanged);
    assert_eq!(side::read(&open(dir.path()), ATTACHED).unwrap(), set(&["a", "b"]));
    assert_eq!(git(dir.path(), &["for-each-ref", "--format=%(refname)"]), ATTACHED);
    fsck(dir.path());
}

#[test]
fn eight_runs_over_http_remember_all_of_it() {
    let Some(server) = gitserver::http(&Http::default()) else { return };
    let path = server.create("gitops.git");
    let target = Target::Url(format!("http://127.0.0.1:{}/gitops.git", server.port));
    let runs: Vec<_> = (0..8)
        .map(|n| {
            let target = target.clone();
            std::thread::spawn(move || {
                let repository = Repository::open(&target, Options::default()).unwrap();
                add(&repository, &format!("line {n}"))
            })
        })
        .collect();
    for run in runs {
        assert_eq!(run.join().unwrap(), Kept::Updated);
    }
    let repository = Repository::open(&target, Options::default()).unwrap();
    let base = repository.snapshot("main").unwrap();
    assert_eq!(side::read(&repository, ATTACHED).unwrap().len(), 8);
    // It is read along with the branch, and a write to the branch does not touch it.
    let done =
        commit::write(&repository, &base, &changes([("a", Some("a"))]), proposal("a", &identity())).unwrap();
    assert!(matches!(done, Outcome::Pushed(_)));
    assert_eq!(git(&path, &["for-each-ref"]).lines().count(), 2);
    fsck(&path);
}

#[test]
fn a_server_that_takes_no_such_reference_says_so() {
    let Some(server) = gitserver::http(&Http::default()) else { return };
    let path = server.create("gitops.git");
    GitServer::hook(&path, "update", "case $1 in refs/heads/*) exit 0;; esac; echo 'only branches'; exit 1");
    let target = Target::Url(format!("http://127.0.0.1:{}/gitops.git", server.port));
    let repository = Repository::open(&target, Options::default()).unwrap();
    let Kept::Refused(words) = add(&repository, "a") else { panic!("not refused") };
    assert!(words.contains("only branches"), "{words}");
    assert_eq!(side::read(&repository, ATTACHED).unwrap(), set(&[]));
}
