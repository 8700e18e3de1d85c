//! Keys (cases 14 to 17), B47.

use super::{ask, invalid, missing, proven, signature};
use crate::support::shelf::Shelf;
use crate::support::signing::*;
use expedite::evidence::gather::{GatherOptions, gather_blocking, make_runtime};
use expedite::evidence::keys::{KeyRing, PublicKey};
use expedite::model::evidence::{Ask, Claim};
use expedite::model::id::Artifact;
use expedite::model::kitchen::{Role, TrustedIdentity};
use expedite::model::reason::Verified;
use oci_registry::Registries;
use p256::ecdsa::signature::hazmat::PrehashSigner as _;
use p256::pkcs8::DecodePrivateKey as _;
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use sigstore::crypto::SigningScheme;

/// An RSA key of 1024 bits, the public half.
const RSA_1024: &str = "-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDEexXKLh+4q8f0aZIsBHoD2mxr
H4Pug9r3RDOKYOIp3OYdBFVmARIrSLdUNAZjZoZDmxUHjBhXAlFOvuvPuHKdZuAR
dNuJ6f7AzZQKzEJhVXSPzXZQ9qAXSXTGHxvfyg3WSWRVQTgVdW4PIEpNqVpRkAP3
BDQ8GLa7lBR6CGm7dQIDAQAB
-----END PUBLIC KEY-----
";

fn signed(shelf: &Shelf, artifact: &Artifact, signature: &[u8]) {
    let payload = simple_payload(&artifact.digest);
    let text = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, signature);
    shelf.tagged(artifact, "sig", &[shelf.signed(&payload, &text)]);
}

fn payload(artifact: &Artifact) -> Vec<u8> {
    simple_payload(&artifact.digest).into_bytes()
}

#[test]
fn every_key_type_verifies_its_own_signatures() {
    for scheme in [
        SigningScheme::ECDSA_P256_SHA256_ASN1,
        SigningScheme::ECDSA_P384_SHA384_ASN1,
        SigningScheme::ECDSA_P521_SHA512_ASN1,
        SigningScheme::RSA_PKCS1_SHA256(2048),
        SigningScheme::ED25519,
    ] {
        let shelf = Shelf::new();
        let artifact = shelf.artifact("kind: A");
        let key = Key::of(scheme);
        signed(&shelf, &artifact, &key.sign(&payload(&artifact)));
        proven(signature(&shelf, &ring(&key), &artifact));
        let mut wrong = key.sign(&payload(&artifact));
        let last = wrong.len() - 1;
        wrong[last] ^= 1;
        let other = shelf.artifact("kind: B");
        signed(&shelf, &other, &wrong);
        invalid(signature(&shelf, &ring(&key), &other), "not signed by a trusted key");
    }
}

#[test]
fn case_14_each_curve_with_its_hash_and_sha256_as_a_second_try() {
    let shelf = Shelf::new();
    let artifact = shelf.artifact("kind: A");
    let message = payload(&artifact);
    let try_it = |key: &Key, signature: &[u8]| {
        let public = PublicKey::from_pem(&key.public_pem()).unwrap().remove(0);
        public.has_signed(&message, signature)
    };
    let p256 = Key::of(SigningScheme::ECDSA_P256_SHA256_ASN1);
    let signer = p256::ecdsa::SigningKey::from_pkcs8_der(&p256.private_der()).unwrap();
    let with = |hash: &[u8]| -> p256::ecdsa::DerSignature { signer.sign_prehash(hash).unwrap() };
    assert!(try_it(&p256, with(&Sha256::digest(&message)).as_bytes()));
    assert!(!try_it(&p256, with(&Sha384::digest(&message)).as_bytes()), "P-256 with SHA-384");
    let raw: p256::ecdsa::Signature = signer.sign_prehash(&Sha256::digest(&message)).unwrap();
    assert!(!try_it(&p256, &raw.to_bytes()), "r and s without DER");
    let p384 = Key::of(SigningScheme::ECDSA_P384_SHA384_ASN1);
    let signer = p384::ecdsa::SigningKey::from_pkcs8_der(&p384.private_der()).unwrap();
    let with = |hash: &[u8]| -> p384::ecdsa::DerSignature { signer.sign_prehash(hash).unwrap() };
    assert!(try_it(&p384, with(&Sha384::digest(&message)).as_bytes()));
    assert!(try_it(&p384, with(&Sha256::digest(&message)).as_bytes()));
    assert!(!try_it(&p384, with(&Sha512::digest(&message)).as_bytes()));
    let p521 = Key::of(SigningScheme::ECDSA_P521_SHA512_ASN1);
    let signer = p521::ecdsa::SigningKey::from_pkcs8_der(&p521.private_der()).unwrap();
    let mut wide = [0; 66];
    wide[34..].copy_from_slice(&Sha256::digest(&message));
    let sha256: p521::ecdsa::DerSignature = signer.sign_prehash(&wide).unwrap();
    assert!(try_it(&p521, sha256.as_bytes()));
    let rsa = Key::of(SigningScheme::RSA_PSS_SHA256(2048));
    assert!(!try_it(&rsa, &rsa.sign(&message)), "RSA-PSS");
}

#[test]
fn case_15_ed25519_plain_and_prehashed() {
    let key = Key::of(SigningScheme::ED25519);
    let public = PublicKey::from_pem(&key.public_pem()).unwrap().remove(0);
    assert!(public.has_signed(b"message", &key.sign(b"message")));
    let signer = ed25519_dalek::SigningKey::from_pkcs8_der(&key.private_der()).unwrap();
    let prehashed = signer.sign_prehashed(Sha512::new().chain_update(b"message"), None).unwrap();
    assert!(public.has_signed(b"message", &prehashed.to_bytes()));
    assert!(!public.has_signed(b"another", &prehashed.to_bytes()));
}

#[test]
fn case_16_a_weak_key_is_refused_before_any_request() {
    let ring = KeyRing::from_kitchen(&kitchen(&[("old", RSA_1024.into(), ALL_ROLES)]));
    assert_eq!(
        ring.state().errors,
        ["trust.keys \"old\": it is RSA with 1024 bits; at least 2048 are required"]
    );
    assert!(ring.state().usable.is_empty());
    // A registry that would have to be asked over HTTP, on a port where nothing listens.
    let artifact =
        Artifact::parse(&format!("oci://127.0.0.1:9/shop/podinfo@sha256:{}", "0".repeat(64))).unwrap();
    let asks = [Ask { artifact: artifact.clone(), claims: [Claim::Artifact, Claim::Signature].into() }];
    let registries = Registries::default();
    let facts =
        gather_blocking(&make_runtime().unwrap(), &asks, &ring, &registries, &GatherOptions::default());
    let facts = &facts.artifacts[&artifact];
    let looked = missing(facts.signature.clone().unwrap());
    assert_eq!(looked.reason, Some(Verified::SigningKeyNotReady));
    assert!(looked.why.contains("1024 bits"), "{}", looked.why);
    assert_eq!(missing(facts.artifact.clone().unwrap()).reason, Some(Verified::SigningKeyNotReady));
    assert_eq!(registries.collect_requests().len(), 0);
}

#[test]
fn case_17_every_block_is_a_key_or_an_error() {
    let (a, b) = (Key::p256(), Key::p256());
    let shelf = Shelf::new();
    let artifact = shelf.artifact("kind: A");
    signed(&shelf, &artifact, &b.sign(&payload(&artifact)));
    let two = format!("# our keys\n{}\nand the second:\n{}", a.public_pem(), b.public_pem());
    let ring = usable(&kitchen(&[("both", two, ALL_ROLES)]));
    assert_eq!(ring.keys().len(), 2);
    assert_eq!(proven(signature(&shelf, &ring, &artifact)).key, "both");

    let pem = a.public_pem();
    let certificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    let errors = |text: String| {
        let ring = KeyRing::from_kitchen(&kitchen(&[("k", text, ALL_ROLES)]));
        assert!(ring.keys().is_empty() && ring.state().usable.is_empty());
        ring.state().errors.join("\n")
    };
    assert!(errors(format!("{pem}{certificate}")).contains("block 2 of 2: CERTIFICATE is not a public key"));
    assert!(errors(String::new()).contains("no PUBLIC KEY block"));
    assert!(errors("junk".into()).contains("no PUBLIC KEY block"));
    assert!(errors(pem.replace("END PUBLIC", "END PUBLI")).contains("properly"));
    assert!(errors(format!("{pem}-----BEGIN PUBLIC KEY----\n")).contains("properly"));
    assert!(errors(format!("{pem}-----BEGIN PUBLIC KEY-----\n")).contains("has no end"));
    assert!(errors(pem.replacen('M', "*", 1)).contains("not base64"));
    let private = errors(a.private_pem());
    assert!(private.contains("is a private key") && !private.contains("MIG"), "{private}");
    let broken = pem.lines().nth(1).unwrap();
    assert!(errors(pem.replace(broken, &broken[..60])).contains("does not parse"));
}

#[test]
fn other_curves_and_shapes_are_refused_by_name() {
    let secp256k1 = "-----BEGIN PUBLIC KEY-----
MFYwEAYHKoZIzj0CAQYFK4EEAAoDQgAEeb5mfvncu6xVoGKVzocLBwKb/NstzijZ
WfKBWxb4F5hIOtp3JqPEZV2k+/wOEQio/Re0SKaFVBmcR9CP+xDUuA==
-----END PUBLIC KEY-----\n";
    let why = PublicKey::from_pem(secp256k1).unwrap_err();
    assert!(why.contains("1.3.132.0.10") && why.contains("P-256, P-384 and P-521"), "{why}");
    // The identity point of Ed25519, under which anybody can sign anything.
    let weak = format!("302a300506032b6570032100{:0<64}", "01");
    let why = PublicKey::from_spki(&hex::decode(weak).unwrap()).unwrap_err();
    assert!(why.contains("small order"), "{why}");
    let key = Key::p256();
    let der = p256::pkcs8::Document::from_pem(&key.public_pem()).unwrap().1;
    let mut compressed = hex::decode("3039301306072a8648ce3d020106082a8648ce3d030107032200").unwrap();
    compressed.push(2 + (der.as_bytes()[90] & 1));
    compressed.extend_from_slice(&der.as_bytes()[27..59]);
    assert!(PublicKey::from_spki(&compressed).unwrap_err().contains("compressed"));
    let pkcs1 = Key::of(SigningScheme::RSA_PKCS1_SHA256(2048));
    let spki = p256::pkcs8::Document::from_pem(&pkcs1.public_pem()).unwrap().1;
    let body = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &spki.as_bytes()[24..]);
    let pem = format!("-----BEGIN RSA PUBLIC KEY-----\n{body}\n-----END RSA PUBLIC KEY-----\n");
    assert_eq!(PublicKey::from_pem(&pem).unwrap()[0].fingerprint(), pkcs1.hint(), "the same key");
}

#[test]
fn what_is_wrong_names_its_key() {
    let key = Key::p256();
    let mut spec = kitchen(&[
        ("a", key.public_pem(), ALL_ROLES),
        ("a", key.public_pem(), ALL_ROLES),
        ("b", key.public_pem(), &[]),
    ]);
    spec.trust.keys.push(expedite::model::kitchen::TrustedKey {
        name: "c".into(),
        public_key: None,
        public_key_file: None,
        roles: vec![Role::Signature],
    });
    let errors = KeyRing::from_kitchen(&spec).state().errors.clone();
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert!(errors[0].starts_with("trust.keys \"a\": the name occurs twice"));
    assert!(errors[1].starts_with("trust.keys \"b\": roles is empty"));
    assert!(errors[2].starts_with("trust.keys \"c\": it has neither"));
}

#[test]
fn a_keyless_identity_is_reported_by_name() {
    let key = Key::p256();
    let mut spec = kitchen(&[("renderer", key.public_pem(), ALL_ROLES)]);
    let before = KeyRing::from_kitchen(&spec).state().fingerprint;
    spec.trust.identities.push(TrustedIdentity {
        name: "ci".into(),
        issuer: "https://token.actions.githubusercontent.com".into(),
        subject: Some("x".into()),
        subject_pattern: None,
        roles: vec![Role::Signature],
        trusted_root: None,
    });
    let state = KeyRing::from_kitchen(&spec).state().clone();
    assert_eq!(state.identities, ["ci"]);
    assert_ne!(state.fingerprint, before);
}

#[test]
fn b47_a_key_rotation() {
    let shelf = Shelf::new();
    let (p1, p2) = (shelf.artifact("kind: A"), shelf.artifact("kind: B"));
    let (old, new) = (Key::p256(), Key::p256());
    signed(&shelf, &p1, &old.sign(&payload(&p1)));
    signed(&shelf, &p2, &new.sign(&payload(&p2)));
    let only_old = usable(&kitchen(&[("old", old.public_pem(), ALL_ROLES)]));
    proven(signature(&shelf, &only_old, &p1));
    let both =
        usable(&kitchen(&[("old", old.public_pem(), ALL_ROLES), ("new", new.public_pem(), ALL_ROLES)]));
    proven(signature(&shelf, &both, &p2));
    let only_new = usable(&kitchen(&[("new", new.public_pem(), ALL_ROLES)]));
    invalid(signature(&shelf, &only_new, &p1), "not signed by a trusted key");
    let none = usable(&kitchen(&[]));
    assert_eq!(missing(signature(&shelf, &none, &p1)).reason, Some(Verified::SigningKeyNotReady));
    proven(ask(&shelf, &none, &p1, &[Claim::Artifact]).artifact.unwrap());

    // What a kept verdict depends on: the set of keys and roles, not how it is written.
    let fingerprint = |ring: &KeyRing| ring.state().fingerprint.unwrap();
    let crlf = |key: &Key| key.public_pem().replace('\n', "\r\n");
    let same = usable(&kitchen(&[("x", crlf(&new), ALL_ROLES), ("y", crlf(&old), ALL_ROLES)]));
    assert_eq!(fingerprint(&both), fingerprint(&same));
    let in_one = format!("{}{}", new.public_pem(), old.public_pem());
    assert_eq!(fingerprint(&both), fingerprint(&usable(&kitchen(&[("z", in_one, ALL_ROLES)]))));
    let rings = [&only_old, &both, &only_new, &none].map(fingerprint);
    for (n, one) in rings.iter().enumerate() {
        assert!(!rings[n + 1..].contains(one));
    }
    let fewer = usable(&kitchen(&[("old", old.public_pem(), &[Role::Signature])]));
    assert_ne!(fingerprint(&only_old), fingerprint(&fewer));
    let mut rules = kitchen(&[("old", old.public_pem(), ALL_ROLES)]);
    rules.provenance.builder_ids = vec!["https://builder".into()];
    assert_ne!(fingerprint(&only_old), fingerprint(&usable(&rules)));
}
