//! Provenance: case 34 to 36, B45.

use super::{ask, invalid, missing, order, proven};
use crate::support::shelf::Shelf;
use crate::support::signing::*;
use expedite::evidence::keys::KeyRing;
use expedite::model::evidence::{Claim, Evidence, ProvenanceProof};
use expedite::model::id::{Artifact, Digest};
use expedite::model::kitchen::Role;
use expedite::model::reason::Verified;
use serde_json::json;

pub fn of(shelf: &Shelf, ring: &KeyRing, artifact: &Artifact) -> Evidence<ProvenanceProof> {
    let facts = ask(shelf, ring, artifact, &[Claim::Provenance(order())]);
    facts.provenance[&order()].clone()
}

#[test]
fn case_34_provenance_that_names_another_order() {
    for (namespace, name) in [("other", "podinfo"), ("shop", "podinfo2"), ("podinfo", "shop")] {
        let shelf = Shelf::new();
        let artifact = shelf.artifact("kind: A");
        let key = Key::p256();
        shelf.bundle(&artifact, &bundle(&key, &statement(&artifact.digest, SLSA, slsa(namespace, name))));
        let looked = invalid(of(&shelf, &ring(&key), &artifact), &format!("names Order {namespace}/{name}"));
        assert_eq!(looked.reason, Some(Verified::SignatureInvalid));
        assert!(looked.why.contains("no provenance for Order shop/podinfo counts"), "{}", looked.why);
    }
}

#[test]
fn case_36_two_orders_share_a_digest() {
    let shelf = Shelf::new();
    let artifact = shelf.artifact("kind: A");
    let key = Key::p256();
    for name in ["aaa", "podinfo", "zzz"] {
        shelf.bundle(&artifact, &bundle(&key, &statement(&artifact.digest, SLSA, slsa("shop", name))));
    }
    for reversed in [false, true] {
        if reversed {
            shelf.reverse();
        }
        let proof = proven(of(&shelf, &ring(&key), &artifact));
        assert_eq!(proof.finished_on.unwrap().to_string(), "2026-11-01T10:00:00Z");
        assert!(proof.dependencies.contains(&Digest::hash_bytes(b"base")));
        let statement = proof.proof.statement.unwrap();
        assert_eq!(statement.predicate["buildDefinition"]["externalParameters"]["order"]["name"], "podinfo");
        assert_eq!(statement.time, proof.finished_on);
    }
}

#[test]
fn both_predicate_versions_in_both_layouts() {
    let v02 = json!({
        "builder": {"id": "b"}, "buildType": "t",
        "invocation": {"parameters": {"order": {"namespace": "shop", "name": "podinfo"}}},
        "metadata": {"buildFinishedOn": "2026-11-01T10:00:00Z"},
        "materials": [{"uri": "x", "digest": {"sha256": Digest::hash_bytes(b"base").format_hex()}}],
    });
    let key = Key::p256();
    for (kind, predicate) in [(SLSA, slsa("shop", "podinfo")), ("https://slsa.dev/provenance/v0.2", v02)] {
        for kind_of_statement in [V1, V01] {
            let shelf = Shelf::new();
            let artifact = shelf.artifact("kind: A");
            let mut said = statement(&artifact.digest, kind, predicate.clone());
            said["_type"] = json!(kind_of_statement);
            let att = shelf.tagged(&artifact, "att", &[shelf.attested(&envelope(&key, &said), kind)]);
            assert_eq!(proven(of(&shelf, &ring(&key), &artifact)).proof.place, ".att tag");
            shelf.forget(&att);
            shelf.bundle(&artifact, &bundle(&key, &said));
            assert_eq!(proven(of(&shelf, &ring(&key), &artifact)).proof.place, "image layout");
        }
    }
}

#[test]
fn a_scanners_key_cannot_vouch_for_provenance() {
    let shelf = Shelf::new();
    let artifact = shelf.artifact("kind: A");
    let (renderer, scanner) = (Key::p256(), Key::p256());
    shelf.bundle(&artifact, &bundle(&scanner, &statement(&artifact.digest, SLSA, slsa("shop", "podinfo"))));
    let ring = usable(&kitchen(&[
        ("renderer", renderer.public_pem(), &[Role::Provenance]),
        ("scanner", scanner.public_pem(), &[Role::Scans]),
    ]));
    invalid(of(&shelf, &ring, &artifact), "key \"scanner\", which is not trusted for provenance");
    let none = usable(&kitchen(&[("scanner", scanner.public_pem(), &[Role::Scans])]));
    assert_eq!(missing(of(&shelf, &none, &artifact)).reason, Some(Verified::SigningKeyNotReady));
}

#[test]
fn the_allow_lists_hold_provenance() {
    let shelf = Shelf::new();
    let artifact = shelf.artifact("kind: A");
    let key = Key::p256();
    shelf.bundle(&artifact, &bundle(&key, &statement(&artifact.digest, SLSA, slsa("shop", "podinfo"))));
    let mut spec = kitchen(&[("renderer", key.public_pem(), ALL_ROLES)]);
    spec.provenance.builder_ids = vec!["https://example.com/renderer".into()];
    proven(of(&shelf, &usable(&spec), &artifact));
    spec.provenance.build_types = vec!["https://example.com/render/v2".into()];
    invalid(of(&shelf, &usable(&spec), &artifact), "provenance.buildTypes");
}
