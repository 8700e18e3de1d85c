//! Gathering from a registry that fails: at every single request in turn, and in the ways that have been seen.
//! Also how many requests an honest one is asked.

use super::{missing, order, proven, unread};
use crate::support::hostile::{Answer, Fault, Hostile, Request};
use crate::support::shelf::{BUNDLE, PREDICATE, Shelf};
use crate::support::signing::*;
use expedite::evidence::gather::{GatherOptions, gather_blocking, make_runtime};
use expedite::evidence::keys::KeyRing;
use expedite::model::evidence::{ArtifactFacts, Ask, Claim, Evidence, Facts, SealOf};
use expedite::model::id::{Artifact, Digest, OciRepository, PreparationName};
use expedite::model::reason::Verified;
use oci_registry::{HostConfig, Registries, RegistriesConfig, RegistryLimits};
use serde_json::{Value, json};
use std::time::Duration;

const REPOSITORY: &str = "shop/podinfo";

fn limits() -> RegistryLimits {
    RegistryLimits {
        backoff: Duration::from_millis(1),
        hold_off: Duration::ZERO,
        idle: Duration::from_secs(2),
        ..RegistryLimits::default()
    }
}

fn registries(registry: &Hostile) -> Registries {
    let plain = HostConfig { plain_http: true, ..HostConfig::default() };
    let hosts = [(registry.host(), plain)].into();
    Registries::new(RegistriesConfig { hosts, limits: limits(), ..RegistriesConfig::default() }).unwrap()
}

fn seal_of() -> SealOf {
    SealOf { order: order(), preparation: PreparationName::parse("podinfo-1").unwrap(), uid: None }
}

fn all_claims() -> Vec<Claim> {
    vec![Claim::Artifact, Claim::Signature, Claim::Provenance(order()), Claim::Approvals(seal_of())]
}

fn gather(registries: &Registries, ring: &KeyRing, artifact: &Artifact) -> Facts {
    let asks = [Ask { artifact: artifact.clone(), claims: all_claims().into_iter().collect() }];
    gather_blocking(&make_runtime().unwrap(), &asks, ring, registries, &GatherOptions::default())
}

fn seal() -> Value {
    json!({
        "order": "podinfo", "preparation": {"namespace": "shop", "name": "podinfo-1"},
        "policy": {"requiredApprovals": 1, "allowedGroups": ["platform"]},
        "result": "Approved", "sealedTime": "2026-11-01T10:00:00Z", "submissions": [],
    })
}

fn statements(digest: &Digest) -> [Value; 3] {
    [
        statement(digest, SIGN, json!({})),
        statement(digest, SLSA, slsa("shop", "podinfo")),
        statement(digest, APPROVAL, seal()),
    ]
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Bundles,
    Embedded,
    Tags,
}

/// A registry with one artifact that has everything, in this form.
fn start(form: Form, key: &Key) -> (Hostile, Artifact) {
    let shelf = Shelf::new();
    let artifact = shelf.artifact("kind: A");
    let said = statements(&artifact.digest);
    match form {
        Form::Bundles => {
            for s in &said {
                shelf.bundle(&artifact, &bundle(key, s));
            }
        }
        Form::Embedded => {
            for s in &said {
                let bytes = bundle(key, s).to_string();
                let mut layer = shelf.layer(BUNDLE, bytes.as_bytes(), json!({}));
                let data = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &bytes);
                layer["data"] = json!(data);
                shelf.referrer(&artifact, BUNDLE, &[layer], json!({PREDICATE: s["predicateType"]}));
            }
        }
        Form::Tags => {
            let payload = simple_payload(&artifact.digest);
            let signature = key.sign_base64(payload.as_bytes());
            shelf.tagged(&artifact, "sig", &[shelf.signed(&payload, &signature)]);
            let layers: Vec<Value> = said[1..]
                .iter()
                .map(|s| shelf.attested(&envelope(key, s), s["predicateType"].as_str().unwrap()))
                .collect();
            shelf.tagged(&artifact, "att", &layers);
        }
    }
    let registry = Hostile::start();
    registry.push_layout(REPOSITORY, &shelf.folder());
    let repository = OciRepository::parse(&format!("{}/{REPOSITORY}", registry.host())).unwrap();
    (registry, Artifact { repository, digest: artifact.digest })
}

/// The registry loses its referrers API, and gets a fallback index with these annotations kept or not.
fn fall_back(registry: &Hostile, artifact: &Artifact) {
    let referrers: Vec<Digest> = {
        let mut store = registry.store();
        let manifests = &store.repository(REPOSITORY).manifests;
        let refers = |bytes: &[u8]| {
            serde_json::from_slice::<Value>(bytes)
                .is_ok_and(|m| m["subject"]["digest"] == artifact.digest.to_string())
        };
        manifests.iter().filter(|(_, (_, bytes))| refers(bytes)).map(|(d, _)| *d).collect()
    };
    let entries: Vec<Value> = referrers.iter().map(|d| registry.descriptor(REPOSITORY, d)).collect();
    registry.push_fallback(REPOSITORY, &artifact.digest, &entries);
    registry.behave(|b| b.referrers_page = None);
}

fn four(facts: &ArtifactFacts) -> [&'static str; 4] {
    fn word<P>(evidence: &Evidence<P>) -> &'static str {
        match evidence {
            Evidence::Proven(_) => "proven",
            Evidence::Missing(_) => "missing",
            Evidence::Invalid(_) => "invalid",
            Evidence::Unread(_) => "unread",
        }
    }
    [
        word(facts.artifact.as_ref().unwrap()),
        word(facts.signature.as_ref().unwrap()),
        word(&facts.provenance[&order()]),
        word(&facts.approvals[&seal_of()]),
    ]
}

#[test]
fn an_honest_registry_is_asked_no_more_than_it_takes() {
    let key = Key::p256();
    let ring = ring(&key);
    for (form, api, fallback) in [(Form::Bundles, 11, 12), (Form::Embedded, 8, 9), (Form::Tags, 9, 9)] {
        let (registry, artifact) = start(form, &key);
        let facts = gather(&registries(&registry), &ring, &artifact);
        assert_eq!(four(&facts.artifacts[&artifact]), ["proven"; 4]);
        assert!(registry.lines().len() <= api, "{form:?}: {:#?}", registry.lines());
        fall_back(&registry, &artifact);
        registry.clear_log();
        let facts = gather(&registries(&registry), &ring, &artifact);
        assert_eq!(four(&facts.artifacts[&artifact]), ["proven"; 4]);
        assert!(registry.lines().len() <= fallback, "{form:?}, fallback: {:#?}", registry.lines());
    }
}

#[test]
fn a_signature_alone_costs_one_piece() {
    // Six bundles by two keys; one claim: the list, the tag, and one manifest with its blob.
    let key = Key::p256();
    let (registry, artifact) = start(Form::Bundles, &key);
    let shelf = Shelf::new();
    let same = shelf.artifact("kind: A");
    for n in 0..3 {
        let other = statement(&same.digest, &format!("https://example.com/{n}"), json!({}));
        shelf.bundle(&same, &bundle(&Key::p256(), &other));
    }
    registry.push_layout(REPOSITORY, &shelf.folder());
    let asks = [Ask { artifact: artifact.clone(), claims: [Claim::Signature].into() }];
    let registries = registries(&registry);
    let facts =
        gather_blocking(&make_runtime().unwrap(), &asks, &ring(&key), &registries, &GatherOptions::default());
    proven(facts.artifacts[&artifact].signature.clone().unwrap());
    assert_eq!(registry.lines().len(), 4, "{:#?}", registry.lines());
}

fn faults() -> Vec<(&'static str, Fault)> {
    let challenge = Answer::error(401, "UNAUTHORIZED").with("WWW-Authenticate", "Basic realm=\"x\"");
    vec![
        // Without a challenge it is how old Harbor says that it has no referrers API (case 52).
        ("401", Fault::Answer(challenge)),
        ("403", Fault::status(403)),
        ("429", Fault::status(429)),
        ("500", Fault::status(500)),
        ("503", Fault::status(503)),
        ("closed", Fault::Close),
        ("cut", Fault::Cut(5)),
        ("flipped", Fault::Flip),
    ]
}

#[test]
fn no_fault_at_any_request_looks_like_missing_or_proves_anything() {
    let key = Key::p256();
    let (good, stranger) = (ring(&key), ring(&Key::p256()));
    for form in [Form::Bundles, Form::Embedded, Form::Tags] {
        let (registry, artifact) = start(form, &key);
        let honest = gather(&registries(&registry), &good, &artifact);
        let mut targets: Vec<String> = registry.log().into_iter().map(|s| s.request.target).collect();
        targets.sort();
        targets.dedup();
        for target in targets {
            for (name, fault) in faults() {
                registry.heal();
                let failing = target.clone();
                registry.fault(usize::MAX, move |r| r.target == failing, fault);
                let facts = gather(&registries(&registry), &good, &artifact);
                let facts = &facts.artifacts[&artifact];
                let at = format!("{form:?}, {target} {name}");
                for word in four(facts) {
                    assert!(["proven", "unread"].contains(&word), "{at}: {facts:#?}");
                }
                if let Evidence::Proven(proof) = facts.signature.as_ref().unwrap() {
                    assert_eq!(Some(proof), proof_of(&honest, &artifact).as_ref(), "{at}");
                }
                // A key that signed nothing here: never proven.
                let facts = gather(&registries(&registry), &stranger, &artifact);
                let words = four(&facts.artifacts[&artifact]);
                assert!(!words[1..].contains(&"proven"), "{at}: {words:?}");
            }
        }
    }
}

fn proof_of(facts: &Facts, artifact: &Artifact) -> Option<expedite::model::evidence::Proof> {
    match facts.artifacts[artifact].signature.clone()? {
        Evidence::Proven(proof) => Some(proof),
        Evidence::Missing(_) | Evidence::Invalid(_) | Evidence::Unread(_) => None,
    }
}

#[test]
fn on_an_unsigned_artifact_a_fault_of_a_list_is_not_absence() {
    let registry = Hostile::start();
    let digest = registry.push_artifact(REPOSITORY, &[("a.yaml", b"kind: A")]);
    let repository = OciRepository::parse(&format!("{}/{REPOSITORY}", registry.host())).unwrap();
    let artifact = Artifact { repository, digest };
    let ring = ring(&Key::p256());
    let facts = gather(&registries(&registry), &ring, &artifact);
    assert_eq!(four(&facts.artifacts[&artifact]), ["proven", "missing", "missing", "missing"]);
    // Each list holds for the claims that could stand in it.
    for (part, words) in [
        ("/referrers/", ["proven", "unread", "unread", "unread"]),
        (".sig", ["proven", "unread", "unread", "unread"]),
        (".att", ["proven", "unread", "unread", "unread"]),
    ] {
        for (name, fault) in faults() {
            // There is no body to cut or flip in "not found".
            if name == "cut" || name == "flipped" {
                continue;
            }
            registry.heal();
            registry.fault(usize::MAX, move |r| r.path.contains(part), fault);
            let facts = gather(&registries(&registry), &ring, &artifact);
            assert_eq!(four(&facts.artifacts[&artifact]), words, "{part} {name}");
        }
    }
}

#[test]
fn case_45_a_page_that_fails_behind_what_proves_the_claim() {
    let key = Key::p256();
    let (registry, artifact) = start(Form::Bundles, &key);
    registry.behave(|b| b.referrers_page = Some(1));
    let facts = gather(&registries(&registry), &ring(&key), &artifact);
    assert_eq!(four(&facts.artifacts[&artifact]), ["proven"; 4], "case 42: three pages");
    // Two of the three bundles stand on the first page: at least one of signature and provenance.
    registry.behave(|b| b.referrers_page = Some(2));
    registry.fault(usize::MAX, |r| r.path.contains("/referrers/") && !r.query.is_empty(), Fault::status(500));
    let facts = gather(&registries(&registry), &ring(&key), &artifact);
    let words = four(&facts.artifacts[&artifact]);
    assert!(words[1..3].contains(&"proven"), "{words:?}");
    assert!(words[1..3].iter().all(|w| ["proven", "unread"].contains(w)), "{words:?}");
    assert_eq!(words[3], "unread", "a newer seal may stand on the page that failed");
}

#[test]
fn case_50_dangling_entries_of_a_fallback_index() {
    let key = Key::p256();
    let (registry, artifact) = start(Form::Bundles, &key);
    let gone = json!({"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": Digest::hash_bytes(b"gone"), "size": 9});
    fall_back(&registry, &artifact);
    let index = {
        let mut store = registry.store();
        let repository = store.repository(REPOSITORY);
        let tag = repository.tags[&format!("sha256-{}", artifact.digest.format_hex())];
        serde_json::from_slice::<Value>(&repository.manifests[&tag].1).unwrap()
    };
    let mut entries = index["manifests"].as_array().unwrap().clone();
    entries.push(gone.clone());
    registry.push_fallback(REPOSITORY, &artifact.digest, &entries);
    let facts = gather(&registries(&registry), &ring(&key), &artifact);
    assert_eq!(four(&facts.artifacts[&artifact]), ["proven"; 4]);
    registry.push_fallback(REPOSITORY, &artifact.digest, &[gone]);
    let facts = gather(&registries(&registry), &ring(&key), &artifact);
    let looked = missing(facts.artifacts[&artifact].signature.clone().unwrap());
    assert_eq!(looked.reason, Some(Verified::SignatureMissing));
    let told = |w: &expedite::error::Failure| w.cause.contains(&Digest::hash_bytes(b"gone").to_string());
    assert!(facts.warnings.iter().any(told), "{:?}", facts.warnings);
}

#[test]
fn evidence_beside_the_api_in_an_old_fallback_index_is_found_before_missing_is_said() {
    let key = Key::p256();
    let (registry, artifact) = start(Form::Bundles, &key);
    let shelf = Shelf::new();
    let same = shelf.artifact("kind: A");
    let other = statement(&same.digest, "https://example.com/x", json!({}));
    shelf.bundle(&same, &bundle(&key, &other));
    // The API lists only what came after it was switched on.
    fall_back(&registry, &artifact);
    let listed = shelf.folder();
    registry.push_layout(REPOSITORY, &listed);
    registry.behave(|b| b.referrers_page = Some(usize::MAX));
    let only_new = move |_: &Request, answer: &mut Answer| {
        let mut index: Value = serde_json::from_slice(&answer.body).unwrap();
        let entries = index["manifests"].as_array_mut().unwrap();
        entries.retain(|e| e["annotations"][PREDICATE] == "https://example.com/x");
        assert_eq!(entries.len(), 1);
        answer.body = index.to_string().into_bytes();
    };
    registry.fault(usize::MAX, |r| r.path.contains("/referrers/"), Fault::change(only_new));
    let facts = gather(&registries(&registry), &ring(&key), &artifact);
    assert_eq!(four(&facts.artifacts[&artifact]), ["proven"; 4]);
}

#[test]
fn case_65_what_is_too_large_is_not_read() {
    let key = Key::p256();
    let (registry, artifact) = start(Form::Bundles, &key);
    let options = GatherOptions { evidence_cap: 100, ..GatherOptions::default() };
    let asks = [Ask { artifact: artifact.clone(), claims: [Claim::Signature].into() }];
    let registries = registries(&registry);
    let facts = gather_blocking(&make_runtime().unwrap(), &asks, &ring(&key), &registries, &options);
    crate::evidence::invalid(facts.artifacts[&artifact].signature.clone().unwrap(), "at most 100 are read");
    assert!(!registry.lines().iter().any(|l| l.contains("/blobs/")), "{:?}", registry.lines());
    let few = GatherOptions { candidates: 1, ..GatherOptions::default() };
    let stranger = ring(&Key::p256());
    let facts = gather_blocking(&make_runtime().unwrap(), &asks, &stranger, &registries, &few);
    let why = unread(facts.artifacts[&artifact].signature.clone().unwrap());
    assert!(why.why.contains("more than 1 pieces"), "{why:?}");
}

#[test]
fn many_artifacts_share_what_can_be_shared() {
    let key = Key::p256();
    let shelf = Shelf::new();
    let artifacts: Vec<Artifact> = (0..40)
        .map(|n| {
            let artifact = shelf.artifact(&format!("kind: A{n}"));
            for s in &statements(&artifact.digest) {
                shelf.bundle(&artifact, &bundle(&key, s));
            }
            artifact
        })
        .collect();
    let registry = Hostile::start();
    registry.push_layout(REPOSITORY, &shelf.folder());
    let repository = OciRepository::parse(&format!("{}/{REPOSITORY}", registry.host())).unwrap();
    let asks: Vec<Ask> = artifacts
        .iter()
        .map(|a| Ask {
            artifact: Artifact { repository: repository.clone(), digest: a.digest },
            claims: all_claims().into_iter().collect(),
        })
        .collect();
    let registries = registries(&registry);
    let facts =
        gather_blocking(&make_runtime().unwrap(), &asks, &ring(&key), &registries, &GatherOptions::default());
    assert_eq!(facts.artifacts.len(), 40);
    assert!(facts.artifacts.values().all(|f| four(f) == ["proven"; 4]));
    assert!(registry.lines().len() <= 40 * 11, "{}", registry.lines().len());
}
