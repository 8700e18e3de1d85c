//! The real binary, eight at once, with a person who pushes intents in between: every intent is honoured or
//! superseded by a newer one, no commit is lost, no history entry is there twice, and tries are bounded.

use crate::support::gitserver::{GitServer, Http};
use crate::support::harness::Place;
use crate::support::{fleet, gitserver};
use expedite::model::serving::Serving;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const ORDERS: [&str; 3] = ["shop/basket", "shop/catalog", "team/mailer"];
const RUN: [&str; 5] = ["run", "--config", "expedite.yaml", "--key", fleet::KEY];

/// `limits.maxTries` of these runs, as [`fleet::settings`] writes it.
const TRIES: usize = 40;

/// Runs the `git` program as a person.
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let out = tried(folder, arguments);
    assert!(out.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().trim_end().to_owned()
}

fn tried(folder: &Path, arguments: &[&str]) -> std::process::Output {
    Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .envs([("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null")])
        .envs([("GIT_AUTHOR_NAME", "Person"), ("GIT_AUTHOR_EMAIL", "person@x")])
        .envs([("GIT_COMMITTER_NAME", "Person"), ("GIT_COMMITTER_EMAIL", "person@x")])
        .output()
        .unwrap()
}

/// How hard it is made.
struct Race {
    runs: usize,
    intents: u32,
}

/// The repository at `bare`, which runs reach as `url`, and a person by its path.
fn race(place: &Place, bare: &Path, url: &str, how: &Race) {
    fleet::ground(place);
    fleet::settings(place, url, "{layout: ./registry}");
    for order in ORDERS {
        fleet::order(place, order, "{mode: Manual}");
        for version in 1..=how.intents {
            fleet::prepare(place, order, version, order);
        }
    }
    for order in ORDERS {
        let name = format!("{}-1", order.split_once('/').unwrap().1);
        place.expedite(&["promote", order, &name, "--config", "expedite.yaml"]).ok();
    }
    place.expedite(&RUN).ok();

    let finished = AtomicBool::new(false);
    let (pushed, said) = std::thread::scope(|threads| {
        let runners: Vec<_> = (0..how.runs).map(|_| threads.spawn(|| runs(place, &finished))).collect();
        let pushed = person(place, bare, how.intents);
        finished.store(true, Ordering::Relaxed);
        let said: Vec<Vec<String>> = runners.into_iter().map(|r| r.join().unwrap()).collect();
        (pushed, said.concat())
    });
    place.expedite(&RUN).ok();
    let settled = git(bare, &["rev-parse", "main"]);
    place.expedite(&RUN).ok();
    assert_eq!(git(bare, &["rev-parse", "main"]), settled, "there is nothing left to do");

    let all: Vec<String> = git(bare, &["rev-list", "main"]).lines().map(str::to_owned).collect();
    let lost = |commits: &[String]| commits.iter().filter(|c| !all.contains(c)).count();
    assert_eq!(lost(&pushed), 0, "a person's commit is lost");
    assert_eq!(lost(&said), 0, "a commit that a run reported is lost");
    assert!(git(bare, &["rev-list", "--merges", "main"]).is_empty());
    for order in ORDERS {
        honoured(bare, order, how.intents);
    }
}

/// Runs until the person is done, and once more; the commits that were reported.
fn runs(place: &Place, finished: &AtomicBool) -> Vec<String> {
    let mut commits = Vec::new();
    loop {
        let last = finished.load(Ordering::Relaxed);
        let mut command = place.binary(&RUN);
        let output = command.stdin(Stdio::null()).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
        assert!(err.matches("the branch moved").count() < TRIES, "{err}");
        let committed = out.lines().chain(err.lines()).filter_map(|line| line.strip_prefix("committed "));
        commits.extend(committed.map(|rest| rest.split(' ').next().unwrap().to_owned()));
        if last {
            return commits;
        }
    }
}

/// Asks for one version after the other of every Order; the commits that were pushed.
fn person(place: &Place, bare: &Path, intents: u32) -> Vec<String> {
    git(place.root(), &["clone", "-q", bare.to_str().unwrap(), "person"]);
    let work = place.path("person");
    let mut commits = Vec::new();
    for version in 2..=intents {
        for order in ORDERS {
            let name = order.split_once('/').unwrap().1;
            let mut tries = 0;
            loop {
                git(&work, &["fetch", "-q", "origin"]);
                git(&work, &["reset", "-q", "--hard", "origin/main"]);
                let file = work.join(format!("servings/{order}.yaml"));
                let text = std::fs::read_to_string(&file).unwrap();
                let now = text.lines().find(|l| l.starts_with("  preparationName: ")).unwrap();
                let wish = format!("  preparationName: {name}-{version}");
                std::fs::write(&file, text.replacen(now, &wish, 1)).unwrap();
                git(&work, &["commit", "-q", "-a", "-m", &format!("Ask for {order} {version}")]);
                if tried(&work, &["push", "-q", "origin", "HEAD:main"]).status.success() {
                    commits.push(git(&work, &["rev-parse", "HEAD"]));
                    break;
                }
                tries += 1;
                assert!(tries < 100, "the person never gets through");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    commits
}

/// The last intent is deployed, entries follow the intents in their order, none is there twice, and what an
/// entry says never changes or goes.
fn honoured(bare: &Path, order: &str, intents: u32) {
    let (_, name) = order.split_once('/').unwrap();
    let path = format!("servings/{order}.yaml");
    let commits = git(bare, &["rev-list", "--reverse", "main", "--", &path]);
    let mut before: Vec<(String, String)> = Vec::new();
    for commit in commits.lines() {
        let text = git(bare, &["show", &format!("{commit}:{path}")]);
        let serving: Serving = serde_yaml::from_str(&text).unwrap();
        let mut entries: Vec<(String, String)> = serving
            .status
            .history
            .iter()
            .map(|e| (e.preparation_name.to_string(), e.promoted_time.to_string()))
            .collect();
        entries.reverse();
        assert!(entries.starts_with(&before), "{commit}: {entries:?} after {before:?}");
        before = entries;
    }
    let deployed: Vec<u32> =
        before.iter().map(|(p, _)| p.strip_prefix(&format!("{name}-")).unwrap().parse().unwrap()).collect();
    assert!(
        deployed.is_sorted_by(|a, b| a < b),
        "{order}: {deployed:?}: an older intent came back, or one twice"
    );
    assert_eq!(deployed.last(), Some(&intents), "{order}: the last intent is not honoured: {deployed:?}");
    let files = git(bare, &["grep", "-l", "targetRevision", "main", "--", "applications"]);
    assert_eq!(files.lines().filter(|f| f.contains(&format!("-{name}-"))).count(), 1);
}

#[test]
fn over_http() {
    let Some(server) = gitserver::http(&Http::default()) else { return };
    let bare = server.create("gitops.git");
    let url = format!("http://127.0.0.1:{}/gitops.git", server.port);
    race(&Place::new(), &bare, &url, &Race { runs: 8, intents: 5 });
}

#[test]
fn in_a_bare_repository_here() {
    let place = Place::new();
    git(place.root(), &["init", "-q", "--bare", "-b", "main", "gitops.git"]);
    race(&place, &place.path("gitops.git"), "./gitops.git", &Race { runs: 8, intents: 5 });
}

#[test]
fn over_ssh() {
    let Some(server) = gitserver::ssh() else { return };
    let bare = server.create("gitops.git");
    let mut place = Place::new();
    let known = server.etc.join("known");
    std::fs::write(&known, server.known_host()).unwrap();
    place.set("EXPEDITE_SSH_KNOWN_HOSTS", known.to_str().unwrap());
    let key = server.etc.join("client");
    let ssh = "-o IdentitiesOnly=yes -o GlobalKnownHostsFile=/dev/null";
    place.set("GIT_SSH_COMMAND", &format!("ssh -F /dev/null -i {} {ssh}", key.display()));
    let user = String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
    let url = format!("ssh://{}@127.0.0.1:{}{}", user.trim(), server.port, bare.display());
    race(&place, &bare, &url, &Race { runs: 3, intents: 3 });
}

#[test]
fn b26_giving_up_says_how_often_it_was_tried() {
    let Some(server) = gitserver::http(&Http::default()) else { return };
    let bare = server.create("gitops.git");
    let place = Place::new();
    fleet::ground(&place);
    fleet::settings(&place, &format!("http://127.0.0.1:{}/gitops.git", server.port), "{layout: ./registry}");
    place.edit("expedite.yaml", "maxTries: 40", "maxTries: 3");
    fleet::order(&place, ORDERS[0], "{mode: Automatic}");
    fleet::prepare(&place, ORDERS[0], 1, ORDERS[0]);
    place.expedite(&RUN).ok();
    fleet::prepare(&place, ORDERS[0], 2, ORDERS[0]);
    // Somebody is faster, each time.
    GitServer::hook(
        &bare,
        "pre-receive",
        "echo . >> tried\nunset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES\n\
         export GIT_AUTHOR_NAME=P GIT_AUTHOR_EMAIL=p@x GIT_COMMITTER_NAME=P GIT_COMMITTER_EMAIL=p@x\n\
         git update-ref refs/heads/main $(git commit-tree -p main -m person 'main^{tree}') || exit 9",
    );
    let said = place.expedite(&RUN);
    assert_eq!(said.status, Some(4), "{}", said.transcript("run"));
    assert!(said.stderr.contains("3 tries"), "{}", said.stderr);
    assert_eq!(std::fs::read_to_string(bare.join("tried")).unwrap(), ".\n".repeat(3));
    assert_eq!(git(&bare, &["log", "--format=%s", "-3", "main"]), "person\nperson\nperson");
}
