//! `verify` through the real binary: claims and outcomes, evidence bundles and what is done to them, real
//! registries with real cosign.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

#[path = "support/authority.rs"]
mod authority;
#[path = "support/forge.rs"]
mod forge;
#[path = "support/harness.rs"]
mod harness;
#[path = "support/hostile.rs"]
mod hostile;
#[path = "support/layout.rs"]
mod layout;
#[path = "support/peers.rs"]
mod peers;
#[path = "support/servers.rs"]
mod servers;

#[path = "verify/bench.rs"]
mod bench;
#[path = "verify/bundles.rs"]
mod bundles;
#[path = "verify/claims.rs"]
mod claims;
#[path = "verify/faults.rs"]
mod faults;
#[path = "verify/tampered.rs"]
mod tampered;
#[path = "verify/registries.rs"]
mod registries;
#[path = "verify/shop.rs"]
mod shop;

use harness::{Said, package, same};

/// The clock of these tests.
const AT: &str = "2026-02-10T12:00:00Z";

/// Compares all that a command said with the file `tests/verify/expected/<name>.txt`.
#[track_caller]
fn snapshot(name: &str, command: &str, said: &Said) {
    let expected = package().join("tests/verify/expected").join(format!("{name}.txt"));
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
