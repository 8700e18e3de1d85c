//! DSSE and statements (cases 23 to 32), B43.

use super::provenance::of as provenance;
use super::{ask, invalid, missing, proven, signature, unread};
use crate::support::shelf::{PREDICATE, Shelf};
use crate::support::signing::*;
use expedite::evidence::gather::{GatherOptions, gather_blocking, make_runtime};
use expedite::model::evidence::{Ask, Claim};
use expedite::model::id::{Artifact, Digest};
use serde_json::{Value, json};

const VULN: &str = "https://cosign.sigstore.dev/attestation/vuln/v1";

fn start() -> (Shelf, Artifact, Key) {
    let shelf = Shelf::new();
    let artifact = shelf.artifact("kind: A");
    (shelf, artifact, Key::p256())
}

/// Attaches a bundle over exact payload bytes, hinted as provenance.
fn raw(shelf: &Shelf, artifact: &Artifact, key: &Key, payload: &str) -> Digest {
    let signed = envelope_of(
        IN_TOTO,
        payload.as_bytes(),
        vec![crate::support::signing::signature(key, IN_TOTO, payload.as_bytes())],
    );
    let bundle = bundle_of(signed, &key.hint());
    shelf.bundle_bytes(artifact, bundle.to_string().as_bytes(), json!({PREDICATE: SLSA}))
}

fn good(artifact: &Artifact) -> Value {
    statement(&artifact.digest, SLSA, slsa("shop", "podinfo"))
}

#[test]
fn case_23_the_payload_type_is_exact() {
    let (shelf, artifact, key) = start();
    let payload = good(&artifact).to_string().into_bytes();
    let other = "application/json";
    let signed =
        envelope_of(other, &payload, vec![crate::support::signing::signature(&key, other, &payload)]);
    let attached =
        shelf.bundle_bytes(&artifact, bundle_of(signed, "").to_string().as_bytes(), json!({PREDICATE: SLSA}));
    invalid(provenance(&shelf, &ring(&key), &artifact), "payload type is \"application/json\"");
    shelf.forget(&attached);
    let swapped =
        envelope_of(IN_TOTO, &payload, vec![crate::support::signing::signature(&key, other, &payload)]);
    shelf.bundle(&artifact, &bundle_of(swapped, &key.hint()));
    invalid(provenance(&shelf, &ring(&key), &artifact), "its signature is wrong");
}

#[test]
fn case_25_the_statement_type() {
    let (shelf, artifact, key) = start();
    for kind in [json!("bogus"), json!(null), json!("https://in-toto.io/Statement/v0.2")] {
        let mut odd = good(&artifact);
        odd["_type"] = kind;
        let attached = shelf.bundle(&artifact, &bundle(&key, &odd));
        invalid(provenance(&shelf, &ring(&key), &artifact), "in-toto statement");
        shelf.forget(&attached);
    }
    let mut none = good(&artifact);
    none.as_object_mut().unwrap().remove("_type");
    shelf.bundle(&artifact, &bundle(&key, &none));
    invalid(provenance(&shelf, &ring(&key), &artifact), "_type");
}

#[test]
fn case_26_annotations_decide_nothing() {
    let (shelf, artifact, key) = start();
    let other = bundle(&key, &statement(&artifact.digest, "https://example.com/x", slsa("shop", "podinfo")));
    let lying = shelf.bundle_bytes(&artifact, other.to_string().as_bytes(), json!({PREDICATE: SLSA}));
    missing(provenance(&shelf, &ring(&key), &artifact));
    shelf.forget(&lying);
    let right = bundle(&key, &good(&artifact));
    shelf.bundle_bytes(&artifact, right.to_string().as_bytes(), json!({PREDICATE: "https://example.com/x"}));
    proven(provenance(&shelf, &ring(&key), &artifact));
    let (shelf, artifact, key) = start();
    let signed = envelope(&key, &good(&artifact));
    shelf.tagged(&artifact, "att", &[shelf.attested(&signed, "https://example.com/x")]);
    proven(provenance(&shelf, &ring(&key), &artifact));
}

#[test]
fn case_27_no_name_twice_anywhere() {
    let (shelf, artifact, key) = start();
    let text = good(&artifact).to_string();
    let twice = [
        text.replacen(r#""predicateType""#, r#""predicateType":"https://example.com/x","predicateType""#, 1),
        text.replacen(r#""subject""#, r#""subject":[],"subject""#, 1),
        text.replacen(r#""name":"podinfo""#, r#""name":"other","name":"podinfo""#, 1),
        text.replacen(r#""name":"podinfo""#, r#""name":"other","n\u0061me":"podinfo""#, 1),
    ];
    for payload in twice {
        assert_ne!(payload, text);
        let attached = raw(&shelf, &artifact, &key, &payload);
        invalid(provenance(&shelf, &ring(&key), &artifact), "twice in one object");
        shelf.forget(&attached);
    }
    let bundle = bundle(&key, &good(&artifact)).to_string();
    let twice = bundle.replacen(r#""payload""#, r#""payload":"e30=","payload""#, 1);
    let attached = shelf.bundle_bytes(&artifact, twice.as_bytes(), json!({PREDICATE: SLSA}));
    invalid(provenance(&shelf, &ring(&key), &artifact), "twice in one object");
    shelf.forget(&attached);
    let envelope = envelope(&key, &good(&artifact)).to_string();
    let twice = envelope.replacen(r#""payload""#, r#""payload":"e30=","payload""#, 1);
    let layer =
        shelf.layer(crate::support::shelf::ENVELOPE, twice.as_bytes(), json!({"predicateType": SLSA}));
    shelf.tagged(&artifact, "att", &[layer]);
    invalid(provenance(&shelf, &ring(&key), &artifact), "twice in one object");
}

#[test]
fn case_29_unknown_members_are_ignored() {
    let (shelf, artifact, key) = start();
    let mut odd = good(&artifact);
    odd["future"] = json!({"a": [1, 2]});
    odd["predicate"]["future"] = json!(1.5);
    odd["subject"][0]["future"] = json!(null);
    let mut odd = bundle(&key, &odd);
    odd["future"] = json!(true);
    odd["verificationMaterial"]["tlogEntries"] = json!([]);
    shelf.bundle(&artifact, &odd);
    proven(provenance(&shelf, &ring(&key), &artifact));
}

#[test]
fn case_30_a_predicate_that_is_no_object() {
    let (shelf, artifact, key) = start();
    for predicate in [json!(null), json!("text"), json!([]), json!(7)] {
        let odd = statement(&artifact.digest, SLSA, predicate);
        let attached = shelf.bundle(&artifact, &bundle(&key, &odd));
        invalid(provenance(&shelf, &ring(&key), &artifact), "");
        shelf.forget(&attached);
    }
    let mut none = good(&artifact);
    none.as_object_mut().unwrap().remove("predicate");
    shelf.bundle(&artifact, &bundle(&key, &none));
    invalid(provenance(&shelf, &ring(&key), &artifact), "names no Order");
}

#[test]
fn case_31_and_b43_a_subject_is_exact() {
    let (shelf, artifact, key) = start();
    let hex = artifact.digest.format_hex();
    let upper = hex.to_uppercase();
    let prefixed = format!("sha256:{hex}");
    let digests = [
        (json!({"sha256": upper}), upper.as_str()),
        (json!({"sha256": prefixed}), prefixed.as_str()),
        (json!({"sha256": &hex[1..]}), "not 64 lower-case hex digits"),
        (json!({"sha512": hex}), "no sha256 digest"),
        (json!({"SHA256": hex}), "no sha256 digest"),
    ];
    for (digest, why) in digests {
        let mut odd = good(&artifact);
        odd["subject"][0]["digest"] = digest;
        let attached = shelf.bundle(&artifact, &bundle(&key, &odd));
        invalid(provenance(&shelf, &ring(&key), &artifact), why);
        shelf.forget(&attached);
    }
    let other = Digest::hash_bytes(b"x").format_hex();
    let mut three = good(&artifact);
    three["subject"] = json!([
        {"digest": {"sha256": other}}, {"digest": {"sha1": "00", "sha256": hex}}, {"name": "no digest"},
    ]);
    shelf.bundle(&artifact, &bundle(&key, &three));
    proven(provenance(&shelf, &ring(&key), &artifact));
}

#[test]
fn b43_copied_evidence_does_not_count() {
    let (shelf, p1, key) = start();
    let p2 = shelf.artifact("kind: B");
    for (kind, predicate) in [(SIGN, json!({})), (SLSA, slsa("shop", "podinfo"))] {
        // Attached to P2 with the manifest's subject rewritten.
        shelf.bundle(&p2, &bundle(&key, &statement(&p1.digest, kind, predicate)));
    }
    let ring = ring(&key);
    invalid(signature(&shelf, &ring, &p2), "not about this artifact");
    invalid(provenance(&shelf, &ring, &p2), "not about this artifact");
}

#[test]
fn case_32_too_many_and_too_deep() {
    let (shelf, artifact, key) = start();
    let mut many = good(&artifact);
    let subject = many["subject"][0].clone();
    many["subject"] = json!(vec![subject; 1025]);
    let mut digests = good(&artifact);
    for n in 0..32 {
        digests["subject"][0]["digest"][format!("a{n}")] = json!("00");
    }
    let mut deep = json!(1);
    for _ in 0..100 {
        deep = json!([deep]);
    }
    let mut nested = good(&artifact);
    nested["predicate"]["deep"] = deep;
    for (odd, why) in [
        (many, "too many subjects: 1025"),
        (digests, "too many digests: 33"),
        (nested, "nested more than 64"),
    ] {
        let attached = shelf.bundle(&artifact, &bundle(&key, &odd));
        invalid(provenance(&shelf, &ring(&key), &artifact), why);
        shelf.forget(&attached);
    }
    let payload = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
    raw(&shelf, &artifact, &key, &payload);
    invalid(provenance(&shelf, &ring(&key), &artifact), "not an in-toto statement");
}

#[test]
fn attestations_are_listed_newest_first_by_their_own_time() {
    let (shelf, artifact, key) = start();
    let kind = "https://in-toto.io/attestation/test-result/v0.1";
    for (result, time) in [("PASSED", "2026-11-01T00:00:00Z"), ("FAILED", "2026-11-03T00:00:00+01:00")] {
        let predicate = json!({"result": result, "metadata": {"finishedOn": time}});
        shelf.bundle(&artifact, &bundle(&key, &statement(&artifact.digest, kind, predicate)));
    }
    let stranger = bundle(&Key::p256(), &statement(&artifact.digest, kind, json!({"result": "PASSED"})));
    shelf.bundle(&artifact, &stranger);
    let claim = Claim::Attestation(kind.into());
    let facts = ask(&shelf, &ring(&key), &artifact, &[claim]);
    let found = proven(facts.attestations[kind].clone());
    let results: Vec<_> =
        found.iter().map(|p| p.statement.as_ref().unwrap().predicate["result"].clone()).collect();
    assert_eq!(results, [json!("FAILED"), json!("PASSED")]);
}

/// The newest one decides: one that is too large to be read is not left out in favour of an older one.
#[test]
fn a_newest_statement_that_is_too_large_is_unread_where_the_newest_decides() {
    let (shelf, artifact, key) = start();
    let test = "https://in-toto.io/attestation/test-result/v0.1";
    let at = |time: &str, padding: usize| {
        let metadata = json!({"scanStartedOn": time, "scanFinishedOn": time, "finishedOn": time});
        let scanner = json!({"uri": "https://scanner.example", "result": {"padding": "x".repeat(padding)}});
        json!({"result": "PASSED", "scanner": scanner, "metadata": metadata})
    };
    for kind in [VULN, test] {
        shelf.bundle(
            &artifact,
            &bundle(&key, &statement(&artifact.digest, kind, at("2026-11-01T00:00:00Z", 0))),
        );
    }
    shelf.bundle(&artifact, &bundle(&key, &statement(&artifact.digest, SIGN, json!({}))));
    let claims = [Claim::Signature, Claim::Scans, Claim::Attestation(test.into())];
    let with = |caps: u64| {
        let asks = [Ask { artifact: artifact.clone(), claims: claims.iter().cloned().collect() }];
        let options = GatherOptions { evidence_cap: caps, scan_cap: caps, ..GatherOptions::default() };
        let facts =
            gather_blocking(&make_runtime().unwrap(), &asks, &ring(&key), &shelf.registries(), &options);
        facts.artifacts[&artifact].clone()
    };
    assert_eq!(proven(with(8_000).scans.unwrap()).len(), 1);
    for kind in [VULN, test] {
        let newer = statement(&artifact.digest, kind, at("2026-11-02T00:00:00Z", 8_000));
        let large = shelf.bundle(&artifact, &bundle(&key, &newer));
        let facts = with(8_000);
        let told = match kind {
            VULN => unread(facts.scans.unwrap()),
            _ => unread(facts.attestations[test].clone()),
        };
        assert!(told.why.contains("at most 8000 are read") && !told.retryable, "{told:?}");
        assert!(told.request.contains(&large.to_string()), "{told:?}");
        // What any piece proves is not kept from it.
        proven(facts.signature.unwrap());
        let read = with(80_000);
        let newest = match kind {
            VULN => proven(read.scans.unwrap())[0].finished_on,
            _ => proven(read.attestations[test].clone())[0].statement.as_ref().unwrap().time.unwrap(),
        };
        assert_eq!(newest.to_string(), "2026-11-02T00:00:00Z");
        shelf.forget(&large);
    }
}
