//! A clock that is not the machine's, for the binary alone: libfaketime is loaded into it and into what it starts,
//! not into the servers that it talks to.

use expedite::model::time::Time;
use std::env;
use std::path::PathBuf;

/// The variable that puts every run of the binary at an instant: `2026-12-05T23:30:00Z`.
pub const EVERY_RUN: &str = "EXPEDITE_TESTS_CLOCK";

/// The instant that [`EVERY_RUN`] gives.
pub fn every_run() -> Option<String> {
    env::var(EVERY_RUN).ok().filter(|at| !at.is_empty())
}

/// The library, where Debian's package `faketime` puts it.
pub fn library() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?.flatten().map(|entry| entry.path());
    folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1")).find(|library| library.is_file())
}

/// The variables under which a program starts at the instant `at`, from where its clock goes on. `None`: the library
/// is missing, which is written to stderr.
///
/// # Panics
/// It is missing although peers are required.
#[track_caller]
pub fn variables(at: &str) -> Option<Vec<(String, String)>> {
    let Some(library) = library() else {
        super::peers::left_out("libfaketime is missing; `tests/peers.sh` installs it");
        return None;
    };
    // Seconds since 1970, because libfaketime reads a date in the program's time zone.
    let seconds = Time::parse(at).unwrap().unix();
    let variables = [
        ("LD_PRELOAD", library.to_str().unwrap()),
        ("FAKETIME", &format!("@{seconds}")),
        ("FAKETIME_FMT", "%s"),
        // Time-outs go by the monotonic clock.
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ("DONT_FAKE_MONOTONIC", "1"),
    ];
    Some(variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into())
}
