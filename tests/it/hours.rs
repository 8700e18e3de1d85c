//! Tests of the binary at hours, days and years other than the machine's. A test that passes only at some of them
//! fails here, on whatever day it is run.
//!
//! The tests are those of this binary, run again by itself with [`clock::EVERY_RUN`]; libfaketime is needed.

use crate::support::clock;
use crate::support::harness::Place;
use std::process::Command;

/// What is run again: whatever promotes in a local place.
const AGAIN: [&str; 2] = ["cases::", "e2e::"];

/// Runs [`AGAIN`] at the instant `at`.
#[track_caller]
fn pass_at(at: &str) {
    // In such a run itself there is nothing to repeat.
    if clock::every_run().is_some() || clock::variables(at).is_none() {
        return;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args(AGAIN).env(clock::EVERY_RUN, at).env_remove("BLESS").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "at {at}:\n{text}");
    // A name that no test has would pass as well.
    for area in AGAIN {
        assert!(text.lines().any(|line| line.starts_with(&format!("test {area}"))), "{area} was not run");
    }
}

/// How many Applications a run of the shop by the clock commits. The window of `shop/storefront` is Monday to Thursday,
/// 09:00 to 16:00 in Zurich; the other Orders have none.
fn promoted_at(at: &str) -> Option<usize> {
    let place = Place::with_shop();
    let mut command = place.binary(&["run", "--config", "expedite.yaml"]);
    command.envs(clock::variables(at)?);
    place.finish(command);
    let tree = place.tree("shop.git", "main");
    Some(tree.iter().filter(|(path, _)| path.starts_with("applications/")).count())
}

#[test]
fn a_run_goes_by_the_clock_that_it_is_given() {
    let at_noon = promoted_at("2026-02-10T12:00:00Z");
    let (Some(open), Some(closed)) = (at_noon, promoted_at("2026-02-14T23:30:00Z")) else { return };
    assert!(open > closed && closed > 0, "{open} on a Tuesday at noon, {closed} in the night of a Saturday");
}

#[test]
fn on_a_weekend_night() {
    pass_at("2026-12-05T23:30:00Z");
}

#[test]
fn in_the_hour_that_a_switch_of_summer_time_leaves_out() {
    // Europe/Zurich goes from 02:00 to 03:00.
    pass_at("2027-03-28T00:59:58Z");
}

#[test]
fn on_a_leap_day() {
    pass_at("2028-02-29T12:00:00Z");
}
