//! What must hold for any bytes at all, beyond not panicking: one function per fuzz target. Each says whether
//! the bytes were accepted, so that a corpus that is only ever refused shows.
//!
//! Taken in by the fuzz targets and by `tests/it/fuzz_corpus.rs`.

// Each target uses its own function.
#![allow(dead_code)]
#![allow(clippy::unwrap_used, clippy::panic)]

use expedite::evidence::archive::{ABOUT, Archive};
use expedite::evidence::artifact;
use expedite::evidence::envelope::{self, IN_TOTO, encode_pae};
use expedite::evidence::keys::KeyRing;
use expedite::evidence::scans;
use expedite::evidence::simple_signing;
use expedite::evidence::statement;
use expedite::model::id::{Artifact, Digest, OciRepository, OrderRef};
use expedite::model::kitchen::{KitchenSpec, Role, TrustedKey};
use expedite::verbs::verify::about::About;
use oci_registry::index::{self, Listing};
use oci_registry::{challenge, link};
use p256::ecdsa::signature::Verifier as _;
use p256::pkcs8::DecodePublicKey as _;
use serde_json::Value;
use std::sync::OnceLock;

/// The key that signed what is good in the corpus.
const KEY: &str = include_str!("key.pub");
/// The artifact it is about.
const ARTIFACT: &str = include_str!("artifact.digest");

fn ring() -> &'static KeyRing {
    static RING: OnceLock<KeyRing> = OnceLock::new();
    RING.get_or_init(|| {
        let mut spec = KitchenSpec::default();
        spec.trust.keys.push(TrustedKey {
            name: "corpus".into(),
            public_key: Some(KEY.into()),
            public_key_file: None,
            roles: vec![Role::Signature],
        });
        let ring = KeyRing::from_kitchen(&spec);
        assert_eq!(ring.keys().len(), 1, "{:?}", ring.state());
        ring
    })
}

fn artifact_digest() -> Digest {
    Digest::parse(ARTIFACT.trim()).unwrap()
}

/// Another implementation of ECDSA agrees that `key.pub` signed `message`.
fn second_opinion(message: &[u8], signatures: &[String]) {
    let key = p256::ecdsa::VerifyingKey::from_public_key_pem(KEY).unwrap();
    let one = |text: &String| {
        let raw = envelope::decode_base64(text)?;
        let signature = p256::ecdsa::DerSignature::from_bytes(&raw).ok()?;
        key.verify(message, &signature).ok()
    };
    assert!(signatures.iter().any(|s| one(s).is_some()), "accepted what p256 refuses");
}

fn opened(bytes: &[u8], opened: Result<envelope::OpenedEnvelope<'_>, String>, at: &str) -> bool {
    let Ok(envelope::OpenedEnvelope { payload, signer: Ok(_) }) = opened else { return false };
    // What passed the strict reading reads the same to an ordinary reader.
    let whole: Value = serde_json::from_slice(bytes).unwrap();
    let signatures = whole.pointer(&format!("{at}/signatures")).and_then(Value::as_array).unwrap();
    let signatures: Vec<String> =
        signatures.iter().filter_map(|s| Some(s["sig"].as_str()?.to_owned())).collect();
    second_opinion(&encode_pae(IN_TOTO, &payload), &signatures);
    true
}

pub fn envelope(bytes: &[u8]) -> bool {
    opened(bytes, envelope::open_envelope(bytes, ring()), "")
}

pub fn bundle(bytes: &[u8]) -> bool {
    opened(bytes, envelope::open_bundle(bytes, ring()), "/dsseEnvelope")
}

pub fn statement(bytes: &[u8]) -> bool {
    let digest = artifact_digest();
    let Ok(parsed) = statement::parse(bytes, &digest) else { return false };
    let whole: Value = serde_json::from_slice(bytes).unwrap();
    assert_eq!(whole["predicateType"], parsed.predicate_type.as_str());
    let names_it =
        whole["subject"].as_array().unwrap().iter().any(|s| s["digest"]["sha256"] == digest.format_hex());
    assert_eq!(parsed.about.is_ok(), names_it);
    let predicate: Value = serde_json::from_str(&parsed.predicate).unwrap();
    if !whole["predicate"].is_null() {
        assert_eq!(predicate, whole["predicate"]);
    }
    names_it
}

pub fn simple_signing(bytes: &[u8]) -> bool {
    let digest = artifact_digest();
    if simple_signing::check_subject(bytes, &digest).is_err() {
        return false;
    }
    let whole: Value = serde_json::from_slice(bytes).unwrap();
    assert_eq!(whole["critical"]["image"]["docker-manifest-digest"], digest.to_string());
    assert_eq!(whole["critical"]["type"], simple_signing::TYPE);
    true
}

pub fn index(bytes: &[u8]) -> bool {
    match index::parse_index(bytes) {
        Listing::Index(entries) => {
            // Every digest that comes out is one that stands in the bytes.
            let text = String::from_utf8_lossy(bytes);
            let whole: Value = serde_json::from_slice(bytes).unwrap();
            let listed = whole["manifests"].as_array().map_or(0, Vec::len);
            assert_eq!(entries.len(), listed);
            let good: Vec<_> = entries.into_iter().flatten().collect();
            assert!(good.iter().all(|d| text.contains(&d.digest.format_hex()) || text.contains('\\')));
            !good.is_empty()
        }
        Listing::Other(_) | Listing::Broken(_) => false,
    }
}

pub fn reference(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let mut accepted = false;
    if let Ok(repository) = OciRepository::parse(text) {
        assert_eq!(OciRepository::parse(&repository.format_url()).unwrap(), repository);
        assert_eq!(format!("{}/{}", repository.registry(), repository.path()), repository.to_string());
        accepted = true;
    }
    if let Ok(artifact) = Artifact::parse(text) {
        assert_eq!(Artifact::parse(&artifact.format_oci_ref()).unwrap(), artifact);
        accepted = true;
    }
    if let Ok(order) = OrderRef::parse(text) {
        assert_eq!(OrderRef::parse(&order.to_string()).unwrap(), order);
        accepted = true;
    }
    accepted
}

/// `WWW-Authenticate` and `Link`, one header a line.
pub fn challenge(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let asked = challenge::choose_challenge(text.lines());
    let next = link::find_next_link(text.lines());
    asked.is_some() || next.is_some()
}

pub fn scan(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    // As it comes from a statement: already read strictly.
    if expedite::evidence::json::check_strict(bytes).is_err() {
        return false;
    }
    let parsed = statement::ParsedStatement {
        predicate_type: scans::COSIGN_VULN.into(),
        subject: None,
        about: Ok(()),
        predicate: text.into(),
    };
    let Ok(scan) = scans::parse_scan(&parsed) else { return false };
    if let (Some(all), Some(fixable)) = (scan.counts, scan.fixable) {
        let sum =
            |c: expedite::model::evidence::ScanCounts| c.critical + c.high + c.medium + c.low + c.unknown;
        assert!(sum(fixable) <= sum(all));
    }
    scan.counts.is_some()
}

pub fn layer(bytes: &[u8]) -> bool {
    let cap = 1 << 20;
    let [plain, gzip] = artifact::LAYER_TYPES else { panic!("two types are known here") };
    artifact::check_unpacks(plain, bytes, cap).is_ok() || artifact::check_unpacks(gzip, bytes, cap).is_ok()
}

/// An evidence bundle: what is taken is exactly what would be written of it.
pub fn archive(bytes: &[u8]) -> bool {
    let Ok(archive) = Archive::read_from(&mut &bytes[..]) else { return false };
    let mut again = Vec::new();
    archive.write_to(&mut again).unwrap();
    assert_eq!(again, bytes);
    About::parse(archive.find_file(ABOUT).unwrap()).is_ok()
}
