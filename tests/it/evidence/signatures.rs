//! Signatures: simple signing and bundles (cases 1 to 12, 19 to 22, 57; B48, B49).

use super::{invalid, missing, proven, signature, unread};
use crate::support::shelf::{PREDICATE, SIGNATURE, Shelf};
use crate::support::signing::*;
use expedite::model::id::Digest;
use expedite::model::reason::Verified;
use serde_json::json;
use std::fs;

/// A shelf with one artifact, and a key that is trusted for everything.
fn start() -> (Shelf, expedite::model::id::Artifact, Key) {
    let shelf = Shelf::new();
    let artifact = shelf.artifact("kind: A");
    (shelf, artifact, Key::p256())
}

#[test]
fn case_01_a_signature_of_another_digest_under_our_tag() {
    let (shelf, ours, key) = start();
    let other = shelf.artifact("kind: B");
    let payload = simple_payload(&other.digest);
    shelf.tagged(&ours, "sig", &[shelf.signed(&payload, &key.sign_base64(payload.as_bytes()))]);
    let looked = invalid(signature(&shelf, &ring(&key), &ours), "not about this artifact");
    assert_eq!(looked.reason, Some(Verified::SignatureInvalid));
    assert_eq!(looked.candidates.len(), 1);
    assert_eq!(looked.candidates[0].place, ".sig tag");
}

#[test]
fn case_02_a_bundle_for_another_digest_whose_subject_says_ours() {
    let (shelf, ours, key) = start();
    let other = shelf.artifact("kind: B");
    shelf.bundle(&ours, &bundle(&key, &statement(&other.digest, SIGN, json!({}))));
    invalid(signature(&shelf, &ring(&key), &ours), &format!("it is about {}", other.digest));
}

#[test]
fn case_03_two_subjects_the_second_is_ours() {
    let (shelf, ours, key) = start();
    let mut two = statement(&Digest::hash_bytes(b"x"), SIGN, json!({}));
    two["subject"].as_array_mut().unwrap().push(json!({"digest": {"sha256": ours.digest.format_hex()}}));
    let attached = shelf.bundle(&ours, &bundle(&key, &two));
    let proof = proven(signature(&shelf, &ring(&key), &ours));
    assert_eq!((proof.key.as_str(), proof.digest), ("renderer", attached));
    assert_eq!(proof.fingerprint, key.hint());
}

#[test]
fn case_04_an_attestation_is_no_signature() {
    let (shelf, ours, key) = start();
    for kind in [SLSA, APPROVAL, "https://cosign.sigstore.dev/attestation/vuln/v1"] {
        shelf.bundle(&ours, &bundle(&key, &statement(&ours.digest, kind, json!({}))));
    }
    let in_att = envelope(&key, &statement(&ours.digest, SLSA, json!({})));
    shelf.tagged(&ours, "att", &[shelf.attested(&in_att, SLSA)]);
    let looked = missing(signature(&shelf, &ring(&key), &ours));
    assert_eq!(looked.reason, Some(Verified::SignatureMissing));
}

#[test]
fn case_06_one_good_layer_among_three() {
    let (shelf, ours, key) = start();
    let good = simple_payload(&ours.digest);
    let spaced = format!("{good} ");
    let other = simple_payload(&Digest::hash_bytes(b"x"));
    let layers = [
        shelf.signed(&spaced, &key.sign_base64(b"something else")),
        shelf.signed(&other, &key.sign_base64(other.as_bytes())),
        shelf.signed(&good, &key.sign_base64(good.as_bytes())),
    ];
    shelf.tagged(&ours, "sig", &layers);
    let proof = proven(signature(&shelf, &ring(&key), &ours));
    assert_eq!(proof.digest, Digest::hash_bytes(good.as_bytes()));
}

#[test]
fn case_07_a_layer_without_its_annotation() {
    let (shelf, ours, key) = start();
    let good = simple_payload(&ours.digest);
    let mut bare = shelf.signed(&format!("{good}\n"), "");
    bare["annotations"] = json!({});
    let tag = shelf.tagged(&ours, "sig", std::slice::from_ref(&bare));
    invalid(signature(&shelf, &ring(&key), &ours), "no signature annotation");
    shelf.forget(&tag);
    shelf.tagged(&ours, "sig", &[bare, shelf.signed(&good, &key.sign_base64(good.as_bytes()))]);
    proven(signature(&shelf, &ring(&key), &ours));
}

#[test]
fn case_08_another_critical_type() {
    let (shelf, ours, key) = start();
    let good = simple_payload(&ours.digest);
    let bad = good.replace("cosign container image signature", "atomic container signature");
    let none = good.replace(r#","type":"cosign container image signature""#, "");
    let upper = good.replace("critical", "CRITICAL");
    let twice = good.replace(r#""optional":null"#, r#""critical":{},"optional":null"#);
    for (payload, why) in
        [(bad, "critical.type"), (none, "missing field `type`"), (upper, "missing field"), (twice, "twice")]
    {
        let tag = shelf.tagged(&ours, "sig", &[shelf.signed(&payload, &key.sign_base64(payload.as_bytes()))]);
        invalid(signature(&shelf, &ring(&key), &ours), why);
        shelf.forget(&tag);
    }
}

#[test]
fn case_10_base64_with_line_ends_and_in_other_alphabets() {
    let (shelf, ours, key) = start();
    let good = simple_payload(&ours.digest);
    let standard = key.sign_base64(good.as_bytes());
    let lines = format!("{}\n{}\r\n", &standard[..20], &standard[20..]);
    let url = standard.replace('+', "-").replace('/', "_");
    let unpadded = standard.trim_end_matches('=').to_owned();
    for text in [lines, url, unpadded] {
        let tag = shelf.tagged(&ours, "sig", &[shelf.signed(&good, &text)]);
        proven(signature(&shelf, &ring(&key), &ours));
        shelf.forget(&tag);
    }
    shelf.tagged(&ours, "sig", &[shelf.signed(&good, "this@is@none")]);
    invalid(signature(&shelf, &ring(&key), &ours), "not base64");
}

#[test]
fn case_11_url_safe_and_unpadded_base64_in_a_bundle() {
    let (shelf, ours, key) = start();
    let mut odd = bundle(&key, &statement(&ours.digest, SIGN, json!({"x": "ÿþý~~~???"})));
    let rewrite = |v: &serde_json::Value| {
        json!(v.as_str().unwrap().replace('+', "-").replace('/', "_").trim_end_matches('='))
    };
    odd["dsseEnvelope"]["payload"] = rewrite(&odd["dsseEnvelope"]["payload"]);
    odd["dsseEnvelope"]["signatures"][0]["sig"] = rewrite(&odd["dsseEnvelope"]["signatures"][0]["sig"]);
    shelf.bundle_bytes(&ours, odd.to_string().as_bytes(), json!({}));
    proven(signature(&shelf, &ring(&key), &ours));
}

#[test]
fn case_12_the_high_s_twin_never_counts_as_a_second_one() {
    let (shelf, ours, key) = start();
    let good = simple_payload(&ours.digest);
    let raw = key.sign(good.as_bytes());
    let parsed = p256::ecdsa::DerSignature::from_bytes(&raw).unwrap();
    let parsed = p256::ecdsa::Signature::try_from(parsed).unwrap();
    let (r, s) = parsed.split_scalars();
    let twin = p256::ecdsa::Signature::from_scalars(r.to_bytes(), (-*s).to_bytes()).unwrap();
    let twin = twin.to_der();
    assert_ne!(twin.as_bytes(), raw);
    let twin = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, twin.as_bytes());
    shelf.tagged(
        &ours,
        "sig",
        &[shelf.signed(&good, &key.sign_base64(good.as_bytes())), shelf.signed(&good, &twin)],
    );
    // One claim, one proof: nothing counts signatures.
    let proof = proven(signature(&shelf, &ring(&key), &ours));
    assert_eq!(proof.digest, Digest::hash_bytes(good.as_bytes()));
}

#[test]
fn case_19_a_certificate_is_no_key() {
    let (shelf, ours, key) = start();
    let mut keyless = bundle(&key, &statement(&ours.digest, SIGN, json!({})));
    keyless["verificationMaterial"] = json!({"certificate": {"rawBytes": "MIIB"}});
    let first = shelf.bundle(&ours, &keyless);
    invalid(signature(&shelf, &ring(&key), &ours), "certificate (keyless)");
    shelf.forget(&first);
    keyless["verificationMaterial"] = json!({"x509CertificateChain": {"certificates": [{"rawBytes": "MIIB"}]}, "publicKey": {"hint": key.hint()}});
    shelf.bundle(&ours, &keyless);
    invalid(signature(&shelf, &ring(&key), &ours), "certificate (keyless)");
}

#[test]
fn case_20_hints_are_only_hints() {
    let (shelf, ours, key) = start();
    let signed = envelope(&key, &statement(&ours.digest, SIGN, json!({})));
    let mut named = signed.clone();
    named["signatures"][0]["keyid"] = json!("nonsense");
    for odd in [bundle_of(signed.clone(), ""), bundle_of(signed, &Key::p256().hint()), bundle_of(named, "x")]
    {
        let attached = shelf.bundle(&ours, &odd);
        proven(signature(&shelf, &ring(&key), &ours));
        shelf.forget(&attached);
    }
}

#[test]
fn case_21_a_bundle_has_one_signature_an_envelope_may_have_several() {
    let (shelf, ours, key) = start();
    let payload = statement(&ours.digest, SIGN, json!({})).to_string().into_bytes();
    let good = signature_of(&key, &payload);
    for signatures in [vec![], vec![good.clone(), good.clone()]] {
        let n = signatures.len();
        let odd = bundle_of(envelope_of(IN_TOTO, &payload, signatures), &key.hint());
        let attached = shelf.bundle(&ours, &odd);
        invalid(signature(&shelf, &ring(&key), &ours), &format!("exactly one signature, this one has {n}"));
        shelf.forget(&attached);
    }
    let payload = statement(&ours.digest, SLSA, slsa("shop", "podinfo")).to_string().into_bytes();
    let bad = json!({"sig": "AAAA", "keyid": "x"});
    let both = envelope_of(IN_TOTO, &payload, vec![bad, json!({"sig": "!"}), signature_of(&key, &payload)]);
    shelf.tagged(&ours, "att", &[shelf.attested(&both, SLSA)]);
    proven(crate::evidence::provenance::of(&shelf, &ring(&key), &ours));
}

fn signature_of(key: &Key, payload: &[u8]) -> serde_json::Value {
    crate::support::signing::signature(key, IN_TOTO, payload)
}

#[test]
fn case_22_keyid_names_one_trusted_key_another_one_signed() {
    let (shelf, ours, a) = start();
    let b = Key::p256();
    let mut signed = envelope(&b, &statement(&ours.digest, SIGN, json!({})));
    signed["signatures"][0]["keyid"] = json!(a.hint());
    shelf.bundle(&ours, &bundle_of(signed, &a.hint()));
    let both = usable(&kitchen(&[("a", a.public_pem(), ALL_ROLES), ("b", b.public_pem(), ALL_ROLES)]));
    assert_eq!(proven(signature(&shelf, &both, &ours)).key, "b");
}

#[test]
fn case_57_evidence_for_the_index_is_none_for_its_child() {
    let (shelf, child, key) = start();
    let index = json!({
        "schemaVersion": 2, "mediaType": crate::support::shelf::OCI_INDEX,
        "manifests": [{"mediaType": crate::support::shelf::OCI_MANIFEST, "digest": child.digest.to_string(), "size": 1}],
    });
    let index = shelf.at(shelf.manifest(&index, None));
    let payload = simple_payload(&index.digest);
    shelf.tagged(&index, "sig", &[shelf.signed(&payload, &key.sign_base64(payload.as_bytes()))]);
    missing(signature(&shelf, &ring(&key), &child));
    proven(signature(&shelf, &ring(&key), &index));
    let (shelf, child, key) = start();
    let payload = simple_payload(&child.digest);
    shelf.tagged(&child, "sig", &[shelf.signed(&payload, &key.sign_base64(payload.as_bytes()))]);
    let index = json!({"schemaVersion": 2, "mediaType": crate::support::shelf::OCI_INDEX, "manifests": []});
    let index = shelf.at(shelf.manifest(&index, None));
    missing(signature(&shelf, &ring(&key), &index));
}

#[test]
fn b48_what_cannot_be_read_beside_what_is_good() {
    let (shelf, ours, key) = start();
    let stranger = Key::p256();
    let mut keyless = bundle(&stranger, &statement(&ours.digest, SIGN, json!({})));
    keyless["verificationMaterial"] = json!({"certificate": {"rawBytes": "MIIB"}});
    shelf.bundle(&ours, &keyless);
    shelf.bundle_bytes(&ours, b"{\"mediaType\":", json!({PREDICATE: SIGN}));
    let good = bundle(&key, &statement(&ours.digest, SIGN, json!({})));
    let attached = shelf.bundle(&ours, &good);
    proven(signature(&shelf, &ring(&key), &ours));
    let blob = shelf.blob_path(&Digest::hash_bytes(good.to_string().as_bytes()));
    let bytes = fs::read(&blob).unwrap();
    fs::write(&blob, "flipped").unwrap();
    let why = unread(signature(&shelf, &ring(&key), &ours));
    assert_eq!(why.reason, Verified::RegistryError);
    fs::write(&blob, bytes).unwrap();
    shelf.forget(&attached);
    let looked = invalid(signature(&shelf, &ring(&key), &ours), "certificate (keyless)");
    assert_eq!(looked.candidates.len(), 2, "{looked:?}");
}

#[test]
fn case_63_a_blob_of_listed_evidence_that_is_gone() {
    let (shelf, ours, key) = start();
    let good = bundle(&key, &statement(&ours.digest, SIGN, json!({})));
    shelf.bundle(&ours, &good);
    fs::remove_file(shelf.blob_path(&Digest::hash_bytes(good.to_string().as_bytes()))).unwrap();
    let why = unread(signature(&shelf, &ring(&key), &ours));
    assert!(why.why.contains("its blob is missing"), "{why:?}");
}

#[test]
fn b49_neither_family_hides_the_other() {
    let (shelf, ours, key) = start();
    let stranger = Key::p256();
    let payload = simple_payload(&ours.digest);
    shelf.tagged(&ours, "sig", &[shelf.signed(&payload, &stranger.sign_base64(payload.as_bytes()))]);
    invalid(signature(&shelf, &ring(&key), &ours), "not signed by a trusted key");
    shelf.bundle(&ours, &bundle(&key, &statement(&ours.digest, SIGN, json!({}))));
    assert_eq!(proven(signature(&shelf, &ring(&key), &ours)).place, "image layout");
}

/// cosign looks at the bundles alone where there is one, and fails.
#[test]
fn case_56_a_strangers_bundle_does_not_hide_a_good_sig_tag() {
    let (shelf, ours, key) = start();
    let payload = simple_payload(&ours.digest);
    shelf.tagged(&ours, "sig", &[shelf.signed(&payload, &key.sign_base64(payload.as_bytes()))]);
    shelf.bundle(&ours, &bundle(&Key::p256(), &statement(&ours.digest, SIGN, json!({}))));
    assert_eq!(proven(signature(&shelf, &ring(&key), &ours)).place, ".sig tag");
    invalid(signature(&shelf, &ring(&Key::p256()), &ours), "not signed by a trusted key");
}

#[test]
fn the_experimental_form_of_cosign_is_read_too() {
    let (shelf, ours, key) = start();
    let payload = simple_payload(&ours.digest);
    let layer = shelf.signed(&payload, &key.sign_base64(payload.as_bytes()));
    shelf.referrer(&ours, "application/vnd.dev.cosign.artifact.sig.v1+json", &[layer], json!({}));
    proven(signature(&shelf, &ring(&key), &ours));
}

#[test]
fn a_keyless_sig_layer_says_so() {
    let (shelf, ours, key) = start();
    let payload = simple_payload(&ours.digest);
    let mut layer = shelf.signed(&payload, &Key::p256().sign_base64(payload.as_bytes()));
    layer["annotations"] =
        json!({SIGNATURE: layer["annotations"][SIGNATURE], "dev.sigstore.cosign/certificate": "PEM"});
    shelf.tagged(&ours, "sig", &[layer]);
    invalid(signature(&shelf, &ring(&key), &ours), "certificate (keyless)");
}
