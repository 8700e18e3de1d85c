//! `verify` through the real binary: claims and outcomes, evidence bundles and what is done to them, real
//! registries with real cosign.

mod bench;
mod bundles;
mod claims;
mod faults;
mod tampered;
mod registries;
mod shop;

use crate::support::harness::{Said, package, same};

/// The clock of these tests.
const AT: &str = "2026-02-10T12:00:00Z";

/// Compares all that a command said with the file `tests/it/verify/expected/<name>.txt`.
#[track_caller]
fn snapshot(name: &str, command: &str, said: &Said) {
    let expected = package().join("tests/it/verify/expected").join(format!("{name}.txt"));
    same(&expected, &said.transcript(command)).unwrap_or_else(|difference| panic!("{difference}"));
}

/// The result as JSON.
#[track_caller]
fn json(said: &Said) -> serde_json::Value {
    serde_json::from_str(&said.stdout).unwrap_or_else(|e| panic!("{e}: {}", said.transcript("verify")))
}

/// A claim of a result.
#[track_caller]
fn claim<'a>(result: &'a serde_json::Value, name: &str) -> &'a serde_json::Value {
    let found = result["claims"].as_array().unwrap().iter().find(|c| c["name"] == name || c["check"] == name);
    found.unwrap_or_else(|| panic!("no claim {name}: {result:#}"))
}
