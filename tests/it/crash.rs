//! The real binary killed at every effect it has on files and sockets, and run again: the end is that of a run
//! which nobody disturbed.
//!
//! In CI a bounded number of kills is spread over every kind of effect; `EXPEDITE_TESTS_LONG=1` does all.

mod local;
mod network;
mod state;

use crate::support::harness::Place;
use crate::support::strace::Site;
use crate::support::{fsck, peers, strace};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The clock of the run before the one that is killed, and of that one.
const BEFORE: &str = "2026-02-10T11:00:00Z";
/// See [`BEFORE`].
const AT: &str = "2026-02-10T12:00:00Z";

/// Kills in one test of CI.
const BOUND: usize = 40;
/// Asks for all of them.
const LONG: &str = "EXPEDITE_TESTS_LONG";

/// Runs the `git` program as somebody.
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let out = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .envs([("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null")])
        .envs([("GIT_AUTHOR_NAME", "Person"), ("GIT_AUTHOR_EMAIL", "person@x")])
        .envs([("GIT_COMMITTER_NAME", "Person"), ("GIT_COMMITTER_EMAIL", "person@x")])
        .output()
        .unwrap();
    assert!(out.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().trim_end().to_owned()
}

/// A situation that a run begins in, as often as it is needed.
pub struct Scene<'a> {
    /// Makes it anew.
    pub place: &'a (dyn Fn() -> Place + Sync),
    /// The run.
    pub arguments: &'a [&'a str],
    /// What must be the same in the end, however it was reached.
    pub state: &'a (dyn Fn(&Place) -> String + Sync),
}

/// Not what only the run itself sees (its output, its folder for temporary files), and no question to a server.
fn outside(place: &Place, line: &str) -> bool {
    let own = format!("{}/tmp/expedite-", place.root().display());
    let asks = line.contains("iov_base=\"GET /") || line.contains("iov_base=\"HEAD /");
    !asks && !line.contains(&own) && !line.starts_with("write(1<") && !line.starts_with("write(2<")
}

/// Kills the scene's run at every effect (or [`BOUND`] of them), runs it again, and compares. Gives how many
/// were killed.
fn survives(scene: &Scene<'_>) -> usize {
    let Some(strace) = peers::peer("strace") else { return 0 };
    let undisturbed = (scene.place)();
    let trace = undisturbed.path("trace");
    let ours = |line: &str| outside(&undisturbed, line);
    let sites = strace::sites(&strace, &undisturbed.binary(scene.arguments), &trace, ours);
    assert!(!sites.is_empty(), "a run without effects proves nothing");
    let expected = (scene.state)(&undisturbed);
    undisturbed.expedite(scene.arguments).ok();
    same(&expected, &(scene.state)(&undisturbed), "after a second run, which should change nothing");
    let long = std::env::var(LONG).is_ok_and(|v| v == "1");
    let chosen = if long { sites.clone() } else { strace::spread(&sites, BOUND) };
    let (next, killed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|threads| {
        let one = || {
            while let Some(site) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                killed
                    .fetch_add(usize::from(survives_at(scene, &strace, site, &expected)), Ordering::Relaxed);
            }
        };
        let workers: Vec<_> = (0..3).map(|_| threads.spawn(one)).collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
    let killed = killed.into_inner();
    eprintln!("killed at {killed} of {} effects", sites.len());
    killed
}

fn survives_at(scene: &Scene<'_>, strace: &Path, site: &Site, expected: &str) -> bool {
    let place = (scene.place)();
    let was = strace::killed(strace, &place.binary(scene.arguments), site);
    let said = place.expedite(scene.arguments);
    assert_eq!(said.status, Some(0), "after a kill at {site:?}:\n{}", said.transcript("run"));
    same(expected, &(scene.state)(&place), &format!("after a kill at {site:?}"));
    // More runs add nothing (B28).
    let long = std::env::var(LONG).is_ok_and(|v| v == "1");
    for _ in 0..if long { 5 } else { 1 } {
        place.expedite(scene.arguments).ok();
    }
    same(expected, &(scene.state)(&place), &format!("runs later, after a kill at {site:?}"));
    fsck::every(place.root());
    was
}

#[track_caller]
fn same(expected: &str, found: &str, when: &str) {
    let difference = similar::TextDiff::from_lines(expected, found).unified_diff().to_string();
    assert!(found == expected, "{when}:\n{difference}");
}
