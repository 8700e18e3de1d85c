//! Four runs at once, each with its part of the fleet, against one repository: together they commit what one
//! run would have, none starves, and a fifth takes over no more than its part.

use crate::support::fleet;
use crate::support::harness::Place;
use std::collections::BTreeSet;
use std::process::{Child, Stdio};

const ORDERS: u32 = 24;

fn orders() -> Vec<String> {
    (0..ORDERS).map(|n| format!("team-{}/order-{n:02}", n % 3)).collect()
}

/// A fleet with an empty repository, whose runs try as often as there can be others: each run commits once, so
/// that nobody meets a moved branch more often than there are others.
fn installation(tries: u32) -> Place {
    let place = Place::new();
    fleet::ground(&place);
    fleet::settings(&place, "./gitops.git", "{layout: ./registry}");
    place.edit("expedite.yaml", "maxTries: 40", &format!("maxTries: {tries}"));
    place.git(&["init", "-q", "--bare", "gitops.git"]);
    for order in orders() {
        fleet::order(&place, &order, "{mode: Automatic}");
        fleet::prepare(&place, &order, 1, &order);
    }
    place
}

fn next(place: &Place) {
    orders().iter().for_each(|order| {
        fleet::prepare(place, order, 2, order);
    });
    // Two are gone: what is theirs goes with them, in whoever's part they were.
    for order in &orders()[..2] {
        std::fs::remove_dir_all(place.path(&format!("objects/{order}"))).unwrap();
    }
}

const RUN: [&str; 6] = ["run", "--config", "expedite.yaml", "--key", fleet::KEY, "--at"];

/// All parts at once, half of them as an Indexed Job would tell them; what each said.
fn shards(place: &Place, count: usize, at: &str) -> Vec<String> {
    let start = |index: usize| -> Child {
        let shard = format!("{index}/{count}");
        let mut arguments = RUN.to_vec();
        arguments.push(at);
        if index.is_multiple_of(2) {
            arguments.extend(["--shard", &shard]);
        }
        let mut command = place.binary(&arguments);
        if !index.is_multiple_of(2) {
            command.env("JOB_COMPLETION_INDEX", index.to_string());
            command.env("JOB_COMPLETION_COUNT", count.to_string());
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<Child> = (0..count).map(start).collect();
    let said = children.into_iter().map(|child| {
        let output = child.wait_with_output().unwrap();
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        assert!(output.status.success(), "{}\n{said}", output.status);
        said
    });
    said.collect()
}

/// Paths that each commit of `range` touched.
fn touched(place: &Place, range: &str) -> Vec<BTreeSet<String>> {
    let commits = place.git(&["-C", "gitops.git", "rev-list", range]);
    let paths = |commit: &str| {
        let all = place.git(&[
            "-C",
            "gitops.git",
            "diff-tree",
            "--root",
            "--no-commit-id",
            "--name-only",
            "-r",
            commit,
        ]);
        all.lines().map(str::to_owned).collect()
    };
    commits.lines().map(paths).collect()
}

#[track_caller]
fn disjoint(commits: &[BTreeSet<String>]) {
    let all: BTreeSet<&String> = commits.iter().flatten().collect();
    assert_eq!(all.len(), commits.iter().map(BTreeSet::len).sum::<usize>(), "two shards wrote one path");
}

#[test]
fn four_shards_at_once_commit_what_one_run_would() {
    let (one, four) = (installation(1), installation(4));
    let first = "2026-03-01T12:00:00Z";
    let alone = |at: &str| one.expedite(&[&RUN[..], &[at]].concat()).ok().to_owned();
    alone(first);
    shards(&four, 4, first);
    let expected = one.tree("gitops.git", "main");
    // An Application, a Serving and a record of each.
    assert_eq!(expected.len(), 3 * usize::try_from(ORDERS).unwrap());
    assert_eq!(four.tree("gitops.git", "main"), expected);
    let commits = touched(&four, "main");
    assert!((2..=4).contains(&commits.len()), "each shard commits once: {}", commits.len());
    disjoint(&commits);
    let before = four.git(&["-C", "gitops.git", "rev-parse", "main"]);
    shards(&four, 4, first);
    assert_eq!(four.git(&["-C", "gitops.git", "rev-parse", "main"]), before, "there is nothing left to do");

    // The fleet goes on, in five parts.
    next(&one);
    next(&four);
    four.edit("expedite.yaml", "maxTries: 4", "maxTries: 5");
    let second = "2026-03-01T13:00:00Z";
    alone(second);
    shards(&four, 5, second);
    let expected = one.tree("gitops.git", "main");
    assert_eq!(four.tree("gitops.git", "main"), expected);
    assert!(expected.iter().all(|(path, _)| !path.contains("team-0/order-00")), "what went is gone");
    let commits = touched(&four, &format!("{}..main", before.trim()));
    assert!((3..=5).contains(&commits.len()), "{}", commits.len());
    disjoint(&commits);
}

#[test]
fn a_part_that_does_not_exist_is_refused() {
    let place = installation(1);
    let mut command = place.binary(&["plan", "--config", "expedite.yaml"]);
    command.env("JOB_COMPLETION_INDEX", "4").env("JOB_COMPLETION_COUNT", "4");
    let said = place.finish(command);
    said.exits(64);
    assert!(said.stderr.contains("JOB_COMPLETION_INDEX and JOB_COMPLETION_COUNT"), "{}", said.stderr);
    // An Indexed Job always sets the index; without the count it is no part.
    let mut command = place.binary(&["plan", "--config", "expedite.yaml"]);
    command.env("JOB_COMPLETION_INDEX", "4");
    let said = place.finish(command);
    assert!(said.ok().contains(&format!("of {ORDERS} Orders")), "{}", said.stdout);
}
