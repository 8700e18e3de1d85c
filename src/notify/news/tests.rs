#![allow(clippy::unwrap_used, clippy::panic)]
use super::*;
use crate::model::evidence::ScanCounts;
use crate::model::id::{Digest, PreparationName};
use crate::model::serving::{DeployedVulnerabilities, RequestedBy};
use proptest::prelude::*;

fn time(text: &str) -> Time {
    Time::parse(text).unwrap()
}

fn order() -> OrderRef {
    OrderRef::parse("shop/podinfo").unwrap()
}

fn now() -> Time {
    time("2026-03-02T12:00:00Z")
}

fn told(promoted: Option<&str>, scan: Option<(Digest, ScanCounts)>) -> Told {
    let hash = Digest::hash_bytes(b"status");
    Told { uid: "u".into(), version: "7".into(), hash, promoted: promoted.map(time), scan }
}

fn entry(name: &str, promoted: &str) -> HistoryEntry {
    let digest = Digest::hash_bytes(name.as_bytes());
    serde_json::from_value(json!({
        "preparationName": name, "digest": digest, "promotedTime": promoted, "requestedBy": {"name": "automatic"},
    }))
    .unwrap()
}

fn status(history: Vec<HistoryEntry>) -> ServingStatus {
    ServingStatus { history, ..ServingStatus::default() }
}

fn notes(told: &Told, before: Option<&ServingStatus>, status: &ServingStatus) -> Vec<String> {
    collect_news(&order(), told, before, status, now()).into_iter().map(|news| news.note).collect()
}

#[test]
fn promotions_that_were_not_heard_are_told_oldest_first() {
    let status = status(vec![
        entry("c", "2026-03-02T11:00:00Z"),
        // A recovery of it, and what ran before.
        entry("c", "2026-03-02T11:00:00Z"),
        entry("b", "2026-03-02T10:00:00Z"),
        entry("a", "2026-01-01T00:00:00Z"),
    ]);
    let said = |name: &str| format!("promoted {name} ({})", Digest::hash_bytes(name.as_bytes()));
    assert_eq!(notes(&told(Some("2026-01-01T00:00:00Z"), None), None, &status), [said("b"), said("c")]);
    assert_eq!(notes(&told(Some("2026-03-02T10:00:00Z"), None), None, &status), [said("c")]);
    assert_eq!(notes(&told(Some("2026-03-02T11:00:00Z"), None), None, &status), Vec::<String>::new());
    // A new Serving does not get old news.
    assert_eq!(notes(&told(None, None), None, &status), [said("b"), said("c")]);
}

#[test]
fn a_name_says_what_is_told_and_another_try_says_the_same() {
    let name = |entry: HistoryEntry| {
        collect_news(&order(), &told(None, None), None, &status(vec![entry]), now())[0].name.clone()
    };
    let first = name(entry("a", "2026-03-02T11:00:00Z"));
    assert_eq!(first, name(entry("a", "2026-03-02T11:00:00Z")));
    assert!(first.starts_with("podinfo.") && first.len() == "podinfo.".len() + 16, "{first}");
    assert_ne!(first, name(entry("b", "2026-03-02T11:00:00Z")));
    assert_ne!(first, name(entry("a", "2026-03-02T11:30:00Z")), "promoted again is news again");
    // Additional facts of a later run do not make it different news.
    let healthy = HistoryEntry { first_healthy_time: Some(now()), ..entry("a", "2026-03-02T11:00:00Z") };
    assert_eq!(first, name(healthy));
}

#[test]
fn an_order_with_the_longest_name_has_events_too() {
    let order = OrderRef::parse(&format!("shop/{}.{}", "a".repeat(199), "b".repeat(53))).unwrap();
    let news = collect_news(
        &order,
        &told(None, None),
        None,
        &status(vec![entry("a", "2026-03-02T11:00:00Z")]),
        now(),
    );
    // Cut after the dot, because a name must not contain two dots in a row.
    assert_eq!(news[0].name.len(), 199 + 1 + 16);
    assert!(!news[0].name.contains(".."), "{}", news[0].name);
}

#[test]
fn a_rise_is_told_against_what_was_heard_last() {
    let artifact = Digest::hash_bytes(b"artifact");
    let counts = |critical| ScanCounts { critical, high: 3, ..ScanCounts::default() };
    let scanned = |digest: Digest, critical| ServingStatus {
        deployed_digest: Some(digest),
        observed_preparation_name: Some(PreparationName::parse("podinfo-1").unwrap()),
        deployed_vulnerabilities: Some(DeployedVulnerabilities {
            critical,
            high: 3,
            medium: 0,
            low: 0,
            unknown: 0,
            scanned_time: time("2026-03-02T11:00:00Z"),
            attestation: Digest::hash_bytes(&[u8::try_from(critical).unwrap()]),
        }),
        ..ServingStatus::default()
    };
    let heard = |digest, critical| told(None, Some((digest, counts(critical))));
    let said = format!(
        "vulnerabilities of podinfo-1 rose by the scan of 2026-03-02T11:00:00Z: critical from 1 to 4 ({artifact})"
    );
    assert_eq!(notes(&heard(artifact, 1), None, &scanned(artifact, 4)), [said.as_str()]);
    assert_eq!(notes(&heard(artifact, 4), None, &scanned(artifact, 4)), Vec::<String>::new());
    assert_eq!(notes(&heard(artifact, 4), None, &scanned(artifact, 1)), Vec::<String>::new());
    // Without an earlier scan of this artifact in the cluster, the scan in git before this run counts.
    let other = Digest::hash_bytes(b"other");
    assert_eq!(notes(&heard(other, 1), None, &scanned(artifact, 4)), Vec::<String>::new());
    assert_eq!(notes(&heard(other, 9), Some(&scanned(artifact, 1)), &scanned(artifact, 4)), [said.as_str()]);
    assert_eq!(notes(&told(None, None), Some(&scanned(artifact, 1)), &scanned(artifact, 4)), [said.as_str()]);
    assert_eq!(
        notes(&told(None, None), Some(&scanned(other, 1)), &scanned(artifact, 4)),
        Vec::<String>::new()
    );
    // The scan in the cluster takes precedence over git, because an earlier run may have failed to write.
    assert_eq!(
        notes(&heard(artifact, 1), Some(&scanned(artifact, 4)), &scanned(artifact, 4)),
        [said.as_str()]
    );
    let name = |before, after| {
        collect_news(&order(), &heard(artifact, before), None, &scanned(artifact, after), now())[0]
            .name
            .clone()
    };
    assert_eq!(name(1, 4), name(2, 4), "one scan is told once");
    assert_ne!(name(1, 4), name(1, 5));
}

#[test]
fn an_event_is_as_an_api_server_wants_it() {
    let all = collect_news(
        &order(),
        &told(None, None),
        None,
        &status(vec![entry("a", "2026-03-02T11:00:00.5Z")]),
        now(),
    );
    let event = all[0].build_event(&order(), "the-uid");
    assert_eq!(event["eventTime"], "2026-03-02T11:00:00.000000Z");
    assert_eq!(event["metadata"]["namespace"], "shop");
    assert_eq!(event["regarding"]["uid"], "the-uid");
    assert_eq!((&event["type"], &event["reason"]), (&json!("Normal"), &json!("Promoted")));
    assert_eq!(event["reportingController"], "delivery.kokumi.dev/expedite");
}

proptest! {
    #[test]
    fn a_note_is_one_harmless_line_of_at_most_1024_bytes(name in "\\PC{0,40}|(?s).{0,2000}") {
        let by = RequestedBy { name, commit: None, signed_by: "unsigned".into() };
        let entry = HistoryEntry { requested_by: Some(by), ..entry("a", "2026-03-02T11:00:00Z") };
        let all = collect_news(&order(), &told(None, None), None, &status(vec![entry]), now());
        let note = &all[0].note;
        prop_assert!(note.len() <= 1024 && note.starts_with("promoted a"));
        prop_assert!(!note.chars().any(char::is_control));
        prop_assert_eq!(escape::escape_line(note).into_owned(), note.clone());
    }
}
