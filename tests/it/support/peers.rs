//! Finds the real programs that tests run against (cosign, oras, registries, sshd …).
//!
//! `tests/peers.sh` installs them. A machine without one runs every other test and says, loudly, which
//! were left out; where all must be there (CI, or `EXPEDITE_TESTS_REQUIRE_PEERS=1`) a missing one fails.

use std::env;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Folder into which `tests/peers.sh` installs: `$EXPEDITE_TESTS_CACHE`, else `~/.cache/expedite-tests`.
pub fn cache() -> Option<PathBuf> {
    match env::var_os("EXPEDITE_TESTS_CACHE") {
        Some(folder) if !folder.is_empty() => Some(PathBuf::from(folder)),
        _ => env::var_os("HOME").map(|home| Path::new(&home).join(".cache/expedite-tests")),
    }
}

/// Whether a missing peer is a failure instead of a test left out.
pub fn required() -> bool {
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|v| v == value);
    is("CI", "true") || is("EXPEDITE_TESTS_REQUIRE_PEERS", "1")
}

/// The program `name`: from the cache folder, else from `PATH` or a folder of daemons.
///
/// `None` means: leave the test out. It has been said on stderr.
///
/// # Panics
/// It is missing although peers are required.
#[track_caller]
pub fn peer(name: &str) -> Option<PathBuf> {
    if let Some(found) = find(name) {
        return Some(found);
    }
    left_out(&format!("the peer program {name} is missing; `tests/peers.sh` installs it"));
    None
}

/// Says that a test, or a part of one, is left out.
///
/// # Panics
/// Peers are required.
#[track_caller]
pub fn left_out(why: &str) {
    assert!(!required(), "{why}");
    let place = std::panic::Location::caller();
    // Not by eprintln: the test runner keeps that to itself where a test passes.
    let _ = writeln!(std::io::stderr(), "LEFT OUT at {place}: {why}");
}

/// Where `name` is, if anywhere.
pub fn find(name: &str) -> Option<PathBuf> {
    let cached = cache().map(|folder| folder.join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    let daemons = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    cached
        .into_iter()
        .chain(env::split_paths(&path))
        .chain(daemons)
        .map(|folder| folder.join(name))
        .find(|p| p.is_file())
}
