//! The artifact itself: B60, B68, and what Argo CD would find in it.

use super::{ask, invalid, missing, proven, signature, unread};
use crate::support::shelf::*;
use crate::support::signing::*;
use expedite::evidence::keys::KeyRing;
use expedite::model::evidence::{ArtifactProof, Claim, Evidence};
use expedite::model::id::{Artifact, Digest};
use expedite::model::reason::Verified;
use serde_json::json;
use std::fs;

fn of(shelf: &Shelf, artifact: &Artifact) -> Evidence<ArtifactProof> {
    ask(shelf, &KeyRing::default(), artifact, &[Claim::Artifact]).artifact.unwrap()
}

#[test]
fn b68_exactly_one_layer_that_is_unpacked() {
    let shelf = Shelf::new();
    let files = tar(&[("deploy.yaml", b"kind: A")]);
    let layer = |kind: &str, bytes: &[u8]| shelf.layer(kind, bytes, json!({}));
    let content = layer(TAR, &files);
    let provenance = layer("application/vnd.in-toto+json", b"{}");
    let good = shelf.artifact_with(&[content.clone(), provenance.clone()]);
    let proof = proven(of(&shelf, &good));
    assert_eq!((proof.layer, proof.layer_media_type.as_str()), (Digest::hash_bytes(&files), TAR));
    assert_eq!(proof.size, fs::read(shelf.blob_path(&good.digest)).unwrap().len() as u64);
    assert_eq!(proof.media_type, OCI_MANIFEST);

    let bad = [
        (vec![content.clone(), layer(TAR, &tar(&[("b.yaml", b"")]))], "2 tar layers"),
        (vec![layer("application/vnd.acme.tar+gzip", &files)], "application/vnd.acme.tar+gzip"),
        (vec![layer("application/yaml", b"kind: A")], "application/yaml"),
        (vec![], "none at all"),
        (vec![layer(TAR_GZIP, &files)], "not gzip data"),
        (vec![layer(TAR, &tar(&[("out/deploy.yaml", b"")]))], "at the top of the tar"),
    ];
    for (layers, why) in bad {
        let artifact = shelf.artifact_with(&layers);
        let looked = invalid(of(&shelf, &artifact), why);
        assert_eq!(looked.reason, Some(Verified::ArtifactInvalid));
    }
    let index = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": []});
    let index = shelf.at(shelf.manifest(&index, None));
    invalid(of(&shelf, &index), OCI_INDEX);
}

#[test]
fn b60_evidence_without_its_artifact() {
    let shelf = Shelf::new();
    let key = Key::p256();
    let artifact = shelf.artifact("kind: A");
    let payload = simple_payload(&artifact.digest);
    shelf.tagged(&artifact, "sig", &[shelf.signed(&payload, &key.sign_base64(payload.as_bytes()))]);
    let layer = proven(of(&shelf, &artifact)).layer;
    let bytes = fs::read(shelf.blob_path(&layer)).unwrap();

    fs::remove_file(shelf.blob_path(&layer)).unwrap();
    let looked = missing(of(&shelf, &artifact));
    assert_eq!(looked.reason, Some(Verified::ArtifactNotFound));
    assert!(looked.why.contains(&format!("layer {layer} is not in the registry")), "{}", looked.why);

    fs::write(shelf.blob_path(&layer), &bytes[1..]).unwrap();
    assert_eq!(unread(of(&shelf, &artifact)).reason, Verified::RegistryError);

    shelf.forget(&artifact.digest);
    let looked = missing(of(&shelf, &artifact));
    assert_eq!(
        (looked.reason, looked.why.as_str()),
        (Some(Verified::ArtifactNotFound), "the artifact is not in the registry")
    );
    proven(signature(&shelf, &ring(&key), &artifact));
}

#[test]
fn case_54_missing_evidence_of_an_artifact_that_is_not_there() {
    let shelf = Shelf::new();
    let nowhere = shelf.at(Digest::hash_bytes(b"nothing"));
    let key = Key::p256();
    let looked = missing(signature(&shelf, &ring(&key), &nowhere));
    assert_eq!(looked.reason, Some(Verified::ArtifactNotFound));
    let there = shelf.artifact("kind: A");
    assert_eq!(missing(signature(&shelf, &ring(&key), &there)).reason, Some(Verified::SignatureMissing));
}
