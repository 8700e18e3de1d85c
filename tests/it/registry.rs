//! The registry room against registries: a hostile one in this process, and real ones.
//!
//! Numbers in names are those of the evidence cases and field reports that the test covers.

mod auth;
mod bytes;
mod discovery;
mod faults;

mod layout;
mod network;
mod real;
mod writing;

use crate::support::hostile::Hostile;
use expedite::model::id::{Digest, OciRepository};
use oci_registry::Unread;
use oci_registry::{Answer, Descriptor};
use oci_registry::{HostConfig, Registries, RegistriesConfig, RegistryLimits};
use std::time::Duration;

/// Times short enough for tests.
fn limits() -> RegistryLimits {
    RegistryLimits {
        backoff: Duration::from_millis(1),
        hold_off: Duration::ZERO,
        idle: Duration::from_secs(5),
        settle: Duration::from_millis(20),
        ..RegistryLimits::default()
    }
}

/// Plain HTTP for this registry, with short times.
fn config(registry: &Hostile) -> RegistriesConfig {
    let plain = HostConfig { plain_http: true, ..HostConfig::default() };
    RegistriesConfig { hosts: [(registry.host(), plain)].into(), limits: limits(), ..Default::default() }
}

fn registries(registry: &Hostile) -> Registries {
    Registries::new(config(registry)).unwrap()
}

fn repository(registry: &Hostile, path: &str) -> OciRepository {
    OciRepository::parse(&format!("{}/{path}", registry.host())).unwrap()
}

fn blob_of(bytes: &[u8]) -> Descriptor {
    let json = serde_json::json!({"digest": Digest::hash_bytes(bytes), "size": bytes.len()});
    serde_json::from_value(json).unwrap()
}

#[track_caller]
fn found<T: std::fmt::Debug>(answer: Answer<T>) -> T {
    match answer {
        Answer::Found(there) => there,
        other => panic!("not found: {other:?}"),
    }
}

#[track_caller]
fn unread<T: std::fmt::Debug>(answer: Answer<T>) -> Unread {
    match answer {
        Answer::Unread(why) => why,
        other => panic!("was read: {other:?}"),
    }
}

#[track_caller]
fn absent<T: std::fmt::Debug>(answer: Answer<T>) {
    assert!(matches!(answer, Answer::Absent), "not absent: {answer:?}");
}
