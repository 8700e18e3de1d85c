//! What is refused, with which status and words; nothing is written then.

use super::{HOST, made, prepare, tagged};
use crate::support::harness::{Place, Said};
use serde_json::json;

#[track_caller]
fn refused(said: &Said, status: i32, words: &[&str]) {
    assert_eq!(said.exits(status), "", "{}", said.transcript("prepare"));
    for word in words {
        assert!(said.stderr.contains(word), "no {word:?} in {}", said.transcript("prepare"));
    }
}

#[test]
fn evidence_that_is_missing_or_invalid_is_5_unless_it_is_skipped() {
    let place = Place::with_shop();
    let unsigned = format!("{HOST}/shop/mailer:0.9.4");
    let said = prepare(&place, &unsigned, "shop/mailer", &["--into", "objects"]);
    refused(
        &said,
        5,
        &["signature: no signature", "hint: cosign sign", "provenance: ", "hint: cosign attest"],
    );
    assert!(!place.path("objects/shop").exists());
    let stranger = prepare(&place, &format!("{HOST}/shop/search:5.0.0"), "shop/search", &[]);
    refused(&stranger, 5, &["signature: ", "provenance: "]);
    let other = prepare(&place, &format!("{HOST}/shop/catalog:1.5.0"), "shop/basket", &[]);
    refused(&other, 5, &["it names Order shop/catalog, not shop/basket"]);

    let skipped = prepare(&place, &unsigned, "shop/mailer", &["--skip-evidence"]);
    let object: serde_json::Value = serde_yaml::from_str(skipped.ok()).unwrap();
    assert_eq!(object["spec"]["artifact"]["signed"], true);
    assert_eq!(object["metadata"]["creationTimestamp"], "2026-01-30T17:58:31Z");
    assert!(skipped.stderr.contains("nothing was verified"), "{}", skipped.stderr);
}

#[test]
fn an_order_a_tag_or_a_repository_that_is_not_there() {
    let place = Place::with_shop();
    let reference = format!("{HOST}/shop/catalog:1.5.0");
    refused(
        &prepare(&place, &reference, "shop/nothing", &[]),
        5,
        &["Order shop/nothing", "there is no Order"],
    );
    refused(&prepare(&place, &format!("{HOST}/shop/catalog:9"), "shop/catalog", &[]), 5, &["no such tag"]);
    refused(&prepare(&place, "catalog", "shop/catalog", &[]), 64, &["<REF>"]);
    place.edit(
        "objects/kitchen.yaml",
        &format!("registries: [\"{HOST}\"]"),
        "registries: [\"other.example\"]",
    );
    let said = prepare(&place, &reference, "shop/catalog", &["--skip-evidence"]);
    refused(&said, 5, &["is not in any of the Kitchen's registries: other.example"]);
}

#[test]
fn a_digest_that_is_rejected_itself_or_by_its_base() {
    let place = Place::with_shop();
    let base = format!("sha256:{}", "b".repeat(64));
    let listed = json!([{"digest": {"sha256": "b".repeat(64)}}]);
    let annotations = json!({"org.opencontainers.image.base.digest": base});
    let digest = made(&place, "shop/search", &annotations, &listed);
    let reference = format!("{HOST}/shop/search@{digest}");
    prepare(&place, &reference, "shop/search", &[]).ok();
    for rejected in [&digest, &base] {
        let kitchen = place.read("objects/kitchen.yaml");
        place.write(
            "objects/kitchen.yaml",
            format!("{kitchen}  reject: [{{digest: \"{rejected}\", reason: loses orders}}]\n"),
        );
        refused(&prepare(&place, &reference, "shop/search", &[]), 5, &["reject list: loses orders"]);
        place.write("objects/kitchen.yaml", kitchen);
    }
}

#[test]
fn a_base_that_provenance_does_not_list() {
    let place = Place::with_shop();
    let reference = format!("{HOST}/shop/catalog:1.5.0");
    let base = format!("sha256:{}", "b".repeat(64));
    let said = prepare(&place, &reference, "shop/catalog", &["--base-digest", &base]);
    refused(&said, 5, &["does not list", "oci://registry.shop.example:5000/bases/catalog"]);
    let annotations = json!({"org.opencontainers.image.base.digest": base});
    let digest = made(&place, "shop/search", &annotations, &json!([]));
    let said = prepare(&place, &format!("{HOST}/shop/search@{digest}"), "shop/search", &[]);
    assert!(!said.ok().contains("baseDigest"), "{}", said.stdout);
    assert!(said.stderr.contains("warning: ") && said.stderr.contains("left out"), "{}", said.stderr);
}

#[test]
fn what_could_not_be_read_is_1_and_says_nothing_of_the_evidence() {
    let place = Place::with_shop();
    let digest = tagged(&place, "shop/catalog", "1.5.0");
    let reference = format!("{HOST}/shop/catalog@{digest}");
    // A registry that nobody answers for.
    place.edit("expedite.yaml", "layout: ./registry ", "mirror: http://127.0.0.1:9 ");
    let said = prepare(&place, &reference, "shop/catalog", &[]);
    refused(&said, 1, &["could not be read"].map(|_| "signature: "));
    assert!(!said.stderr.contains("no signature"), "{}", said.stderr);
    // A file that may be the Kitchen.
    let place = Place::with_shop();
    place.write("objects/torn.yaml", "kind: [\n");
    refused(&prepare(&place, &reference, "shop/catalog", &[]), 1, &["objects/torn.yaml"]);
}
