//! Seals, scans and records: cases 37 to 41, B44, B45.

use super::{ask, invalid, missing, order, proven, signature, unread};
use crate::support::shelf::{PREDICATE, Shelf};
use crate::support::signing::*;
use expedite::evidence::judge;
use expedite::evidence::keys::KeyRing;
use expedite::model::evidence::{Claim, Evidence, ScanProof, SealOf, SealProof};
use expedite::model::id::{Artifact, Digest, PreparationName};
use serde_json::{Value, json};
use std::fs;

fn seal(result: &str, time: &str) -> Value {
    json!({
        "order": "podinfo",
        "preparation": {"namespace": "shop", "name": "podinfo-1", "uid": "u-1"},
        "policy": {"requiredApprovals": 2, "allowedGroups": ["platform"]},
        "result": result,
        "sealedTime": time,
        "submissions": [],
    })
}

fn seal_of(uid: Option<&str>) -> SealOf {
    SealOf {
        order: order(),
        preparation: PreparationName::parse("podinfo-1").unwrap(),
        uid: uid.map(str::to_owned),
    }
}

fn of(shelf: &Shelf, ring: &KeyRing, artifact: &Artifact, of: SealOf) -> Evidence<SealProof> {
    ask(shelf, ring, artifact, &[Claim::Approvals(of.clone())]).approvals[&of].clone()
}

fn start() -> (Shelf, Artifact, Key) {
    let shelf = Shelf::new();
    let artifact = shelf.artifact("kind: A");
    (shelf, artifact, Key::p256())
}

fn attach(shelf: &Shelf, artifact: &Artifact, key: &Key, predicate: Value) -> Digest {
    shelf.bundle(artifact, &bundle(key, &statement(&artifact.digest, APPROVAL, predicate)))
}

#[test]
fn case_37_only_the_exact_word_approves() {
    for result in ["AwaitingApprovals", "ChangesRequested", "approved", "Approved ", "Approved"] {
        let (shelf, artifact, key) = start();
        attach(&shelf, &artifact, &key, seal(result, "2026-11-01T10:00:00Z"));
        let proof = proven(of(&shelf, &ring(&key), &artifact, seal_of(None)));
        assert_eq!(proof.result, result, "the word is handed on as it is");
        assert_eq!(proof.policy.required_approvals, 2);
    }
}

#[test]
fn case_27_a_result_twice() {
    let (shelf, artifact, key) = start();
    let said = statement(&artifact.digest, APPROVAL, seal("ChangesRequested", "2026-11-01T10:00:00Z"));
    let payload = said.to_string().replacen(r#""result""#, r#""result":"Approved","result""#, 1).into_bytes();
    let signed =
        envelope_of(IN_TOTO, &payload, vec![crate::support::signing::signature(&key, IN_TOTO, &payload)]);
    shelf.bundle(&artifact, &bundle_of(signed, &key.hint()));
    invalid(of(&shelf, &ring(&key), &artifact, seal_of(None)), "twice in one object");
}

#[test]
fn case_38_a_seal_for_somebody_else() {
    let (shelf, artifact, key) = start();
    attach(&shelf, &artifact, &key, seal("Approved", "2026-11-01T10:00:00Z"));
    let ring = ring(&key);
    proven(of(&shelf, &ring, &artifact, seal_of(Some("u-1"))));
    invalid(of(&shelf, &ring, &artifact, seal_of(Some("u-2"))), "another Preparation of that name");
    let other = SealOf { preparation: PreparationName::parse("podinfo-2").unwrap(), ..seal_of(None) };
    invalid(of(&shelf, &ring, &artifact, other), "a seal for Preparation podinfo-1");
    let (shelf, artifact, key) = start();
    let mut elsewhere = seal("Approved", "2026-11-01T10:00:00Z");
    elsewhere["preparation"]["namespace"] = json!("staging");
    attach(&shelf, &artifact, &key, elsewhere);
    invalid(
        of(&shelf, &crate::support::signing::ring(&key), &artifact, seal_of(None)),
        "a seal for Order staging/podinfo",
    );
}

#[test]
fn case_39_an_unsigned_seal() {
    let (shelf, artifact, key) = start();
    let bare = statement(&artifact.digest, APPROVAL, seal("Approved", "2026-11-01T10:00:00Z"));
    let layer = shelf.layer(IN_TOTO, bare.to_string().as_bytes(), json!({}));
    shelf.referrer(&artifact, "application/vnd.kokumi.approvals.v1+json", &[layer], json!({}));
    invalid(of(&shelf, &ring(&key), &artifact, seal_of(None)), "it is not signed");
    missing(signature(&shelf, &ring(&key), &artifact));
}

#[test]
fn case_41_the_artifact_type_decides_nothing() {
    let (shelf, artifact, key) = start();
    let kokumi = "application/vnd.kokumi.approvals.v1+json";
    let attach_as = |artifact_type: &str, said: &Value, hint: &str| {
        let bundle = bundle(&key, said).to_string();
        let layer = shelf.layer(crate::support::shelf::BUNDLE, bundle.as_bytes(), json!({}));
        shelf.referrer(&artifact, artifact_type, &[layer], json!({PREDICATE: hint}))
    };
    let sign = statement(&artifact.digest, SIGN, json!({}));
    let first = attach_as(kokumi, &sign, APPROVAL);
    missing(of(&shelf, &ring(&key), &artifact, seal_of(None)));
    proven(signature(&shelf, &ring(&key), &artifact));
    shelf.forget(&first);
    let sealed = statement(&artifact.digest, APPROVAL, seal("Approved", "2026-11-01T10:00:00Z"));
    attach_as(crate::support::shelf::BUNDLE, &sealed, SIGN);
    missing(signature(&shelf, &ring(&key), &artifact));
    proven(of(&shelf, &ring(&key), &artifact, seal_of(None)));
}

#[test]
fn b44_the_newest_seal_decides_in_every_order() {
    let (shelf, artifact, key) = start();
    attach(&shelf, &artifact, &key, seal("Approved", "2026-11-01T10:00:00Z"));
    attach(&shelf, &artifact, &key, seal("ChangesRequested", "2026-11-01T11:00:00Z"));
    attach(&shelf, &artifact, &Key::p256(), seal("Approved", "2026-11-01T12:00:00Z"));
    shelf.bundle_bytes(&artifact, b"junk", json!({PREDICATE: APPROVAL}));
    for reversed in [false, true] {
        if reversed {
            shelf.reverse();
        }
        let proof = proven(of(&shelf, &ring(&key), &artifact, seal_of(None)));
        assert_eq!(proof.result, "ChangesRequested");
        assert_eq!(proof.sealed_time.to_string(), "2026-11-01T11:00:00Z");
    }
}

#[test]
fn a_tie_does_not_approve_and_the_strictest_policy_counts() {
    let (shelf, artifact, key) = start();
    attach(&shelf, &artifact, &key, seal("Approved", "2026-11-01T12:00:00+01:00"));
    attach(&shelf, &artifact, &key, seal("ChangesRequested", "2026-11-01T11:00:00Z"));
    assert_eq!(proven(of(&shelf, &ring(&key), &artifact, seal_of(None))).result, "ChangesRequested");
    let (shelf, artifact, key) = start();
    for required in [1, 3, 2] {
        let mut one = seal("Approved", "2026-11-01T11:00:00Z");
        one["policy"]["requiredApprovals"] = json!(required);
        attach(&shelf, &artifact, &key, one);
    }
    let proof = proven(of(&shelf, &ring(&key), &artifact, seal_of(None)));
    assert_eq!(proof.policy.required_approvals, 3);
}

#[test]
fn a_seal_that_cannot_be_read_may_be_the_newest() {
    let (shelf, artifact, key) = start();
    attach(&shelf, &artifact, &key, seal("Approved", "2026-11-01T10:00:00Z"));
    let veto = bundle(
        &key,
        &statement(&artifact.digest, APPROVAL, seal("ChangesRequested", "2026-11-01T11:00:00Z")),
    );
    shelf.bundle(&artifact, &veto);
    fs::write(shelf.blob_path(&Digest::hash_bytes(veto.to_string().as_bytes())), "flipped").unwrap();
    unread(of(&shelf, &ring(&key), &artifact, seal_of(None)));
}

#[test]
fn a_predicate_that_is_no_seal() {
    for (member, value) in [
        ("sealedTime", json!("yesterday")),
        ("sealedTime", json!(null)),
        ("policy", json!({})),
        ("order", json!({"name": "podinfo"})),
        ("result", json!(true)),
    ] {
        let (shelf, artifact, key) = start();
        let mut odd = seal("Approved", "2026-11-01T10:00:00Z");
        odd[member] = value;
        attach(&shelf, &artifact, &key, odd);
        invalid(of(&shelf, &ring(&key), &artifact, seal_of(None)), "predicate does not parse");
    }
}

const VULN: &str = "https://cosign.sigstore.dev/attestation/vuln/v1";

fn scan(time: &str, uri: &str, result: Value) -> Value {
    json!({
        "scanner": {"uri": uri, "version": "1", "result": result},
        "metadata": {"scanStartedOn": time, "scanFinishedOn": time},
    })
}

fn scans(shelf: &Shelf, key: &Key, artifact: &Artifact) -> Evidence<Vec<ScanProof>> {
    ask(shelf, &ring(key), artifact, &[Claim::Scans]).scans.unwrap()
}

#[test]
fn b44_the_newest_scan_of_each_scanner_counts() {
    let (shelf, artifact, key) = start();
    let found = json!({"Results": [{"Vulnerabilities": [
        {"VulnerabilityID": "CVE-1", "PkgName": "a", "InstalledVersion": "1", "Severity": "CRITICAL", "FixedVersion": "2"},
    ]}]});
    let trivy = "pkg:github/aquasecurity/trivy";
    for (time, uri, result) in [
        ("2026-11-01T10:00:00Z", format!("{trivy}@0.1"), json!({"Results": []})),
        ("2026-11-02T10:00:00Z", format!("{trivy}@0.2"), found),
        ("2026-11-01T10:00:00Z", "https://grype".to_owned(), json!({})),
    ] {
        let said = statement(&artifact.digest, VULN, scan(time, &uri, result));
        shelf.bundle(&artifact, &bundle(&key, &said));
    }
    for reversed in [false, true] {
        if reversed {
            shelf.reverse();
        }
        let all = proven(scans(&shelf, &key, &artifact));
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].scanner.as_str(), all[0].counts), ("https://grype", None), "no data is no zero");
        assert_eq!(all[1].scanner, trivy);
        assert_eq!(all[1].counts.unwrap().critical, 1);
        assert_eq!(all[1].fixable.unwrap().critical, 1);
        assert_eq!(all[1].finished_on.to_string(), "2026-11-02T10:00:00Z");
    }
}

#[test]
fn a_scan_says_when_and_by_what() {
    let (shelf, artifact, key) = start();
    assert!(missing(scans(&shelf, &key, &artifact)).why.contains("no vulnerability scan is attached"));
    let mut odd = scan("2026-11-01T10:00:00Z", "x", json!([]));
    odd["metadata"] = json!({});
    let said = statement(&artifact.digest, "https://in-toto.io/attestation/vulns/v0.2", odd);
    shelf.bundle(&artifact, &bundle(&key, &said));
    invalid(scans(&shelf, &key, &artifact), "scanFinishedOn");
}

#[test]
fn records_are_found_on_the_artifact_and_judged_alike_from_the_repository() {
    let (shelf, artifact, key) = start();
    let promotion = |time: &str| {
        let predicate = json!({"order": {"namespace": "shop", "name": "podinfo"}, "promotedTime": time});
        bundle(&key, &statement(&artifact.digest, judge::PROMOTION, predicate))
    };
    let (older, newer) = (promotion("2026-11-01T10:00:00Z"), promotion("2026-11-02T10:00:00Z"));
    shelf.bundle(&artifact, &older);
    shelf.bundle(&artifact, &newer);
    let ring = ring(&key);
    let all = proven(ask(&shelf, &ring, &artifact, &[Claim::Records]).records.unwrap());
    let blobs: Vec<_> = all.iter().map(|p| p.blob).collect();
    let named = |b: &Value| Digest::hash_bytes(b.to_string().as_bytes());
    assert_eq!(blobs, [named(&newer), named(&older)]);

    let committed = judge::judge_record(newer.to_string().as_bytes(), &artifact.digest, &ring).unwrap();
    assert_eq!((committed.blob, &committed.statement), (all[0].blob, &all[0].statement));
    let why =
        judge::judge_record(newer.to_string().as_bytes(), &Digest::hash_bytes(b"x"), &ring).unwrap_err();
    assert!(why.contains("not about this artifact"), "{why}");
    let stranger = crate::support::signing::ring(&Key::p256());
    assert!(judge::judge_record(newer.to_string().as_bytes(), &artifact.digest, &stranger).is_err());
    let sealed =
        bundle(&key, &statement(&artifact.digest, APPROVAL, seal("Approved", "2026-11-01T10:00:00Z")));
    let sealed = sealed.to_string();
    assert!(judge::judge_record(sealed.as_bytes(), &artifact.digest, &ring).unwrap_err().contains(APPROVAL));
    assert_eq!(
        judge::judge_seal(sealed.as_bytes(), &artifact.digest, &seal_of(None), &ring).unwrap().result,
        "Approved"
    );
}
