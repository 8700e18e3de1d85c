//! Attaching (cases 72 and 73), and that real cosign, oras and crane find and verify what we attach.

use super::interop::{Cosign, compare, make_key, plain_http, push};
use super::records::{deployment, promotion};
use super::{ask, proven};
use crate::support::peers::peer;
use crate::support::servers::{self, Server};
use crate::support::signing::{ALL_ROLES, Key, kitchen, usable};
use expedite::attest::attach::{Attached, attach_record};
use expedite::attest::key::RecordSigner;
use expedite::attest::record::Record;
use expedite::attest::sign::{SignedRecord, sign_record};
use expedite::error::Failure;
use expedite::evidence::gather::{GatherOptions, gather_blocking, make_runtime};
use expedite::model::evidence::{Ask, Claim, Evidence};
use expedite::model::id::Artifact;
use oci_registry::{Registries, Writer};
use sigstore::crypto::SigningScheme;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

fn put(
    registries: &Registries,
    artifact: &Artifact,
    signed: &SignedRecord,
    signer: &RecordSigner,
) -> Result<Attached, Failure> {
    let writer = Writer::new(registries);
    make_runtime().unwrap().block_on(attach_record(
        &writer,
        registries,
        artifact,
        &signed.bundle,
        signer.public_key(),
    ))
}

fn two_servers() -> Option<[Server; 2]> {
    Some([servers::refreg()?, servers::docker_registry()?])
}

#[test]
fn case_72_attached_once_however_often_and_by_however_many() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(oras), Some(servers)) = (peer("oras"), two_servers()) else { return };
    let key = Key::p256();
    let signer = RecordSigner::from_pem(&key.private_pem(), None).unwrap();
    let ring = usable(&kitchen(&[("job", key.public_pem(), ALL_ROLES)]));
    for server in &servers {
        let (artifact, _) = push(&oras, folder.path(), server, "shop/podinfo");
        let registries = plain_http(server);
        let signed = sign_record(&promotion(), &artifact, &signer).unwrap();
        let first = put(&registries, &artifact, &signed, &signer).unwrap();
        assert!(matches!(first, Attached::New(_)));
        assert_eq!(put(&registries, &artifact, &signed, &signer).unwrap(), Attached::Already(first.digest()));

        // Another statement, by two runs at once; then both again.
        let mut other = promotion();
        let Record::Promotion(body) = &mut other else { panic!() };
        body.environment = expedite::model::id::EnvironmentName::parse("staging").unwrap();
        let other = sign_record(&other, &artifact, &signer).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| put(&plain_http(server), &artifact, &other, &signer).unwrap());
            }
        });
        let claims = [Claim::Records].into();
        let asks = [Ask { artifact: artifact.clone(), claims }];
        let registries = plain_http(server);
        let facts =
            gather_blocking(&make_runtime().unwrap(), &asks, &ring, &registries, &GatherOptions::default());
        let records = proven(facts.artifacts[&artifact].records.clone().unwrap());
        let mut found: Vec<_> = records.iter().map(|r| r.blob).collect();
        let mut written = vec![signed.digest, other.digest];
        found.sort();
        written.sort();
        assert_eq!(found, written);
        // Embedded in the descriptors: one request per record, and the list.
        let asked = registries.collect_requests().len();
        assert!(asked <= 5, "{asked} requests: {:?}", registries.collect_requests());
    }
}

/// B27: on a registry without the referrers API, two runs write the same list, fifty times.
#[test]
fn b27_fifty_rounds_of_two_records_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(oras), Some(server)) = (peer("oras"), servers::docker_registry()) else { return };
    let key = Key::p256();
    let signer = RecordSigner::from_pem(&key.private_pem(), None).unwrap();
    let ring = usable(&kitchen(&[("job", key.public_pem(), ALL_ROLES)]));
    let (artifact, _) = push(&oras, folder.path(), &server, "shop/podinfo");
    let mut written = Vec::new();
    for round in 0..50 {
        let promoted = renamed(promotion(), round);
        let promoted = sign_record(&promoted, &artifact, &signer).unwrap();
        let deployed = sign_record(&renamed(deployment(&promoted), round), &artifact, &signer).unwrap();
        std::thread::scope(|scope| {
            for record in [&promoted, &deployed] {
                scope.spawn(|| put(&plain_http(&server), &artifact, record, &signer).unwrap());
            }
        });
        written.extend([promoted.digest, deployed.digest]);
    }
    let asks = [Ask { artifact: artifact.clone(), claims: [Claim::Records].into() }];
    let facts = gather_blocking(
        &make_runtime().unwrap(),
        &asks,
        &ring,
        &plain_http(&server),
        &GatherOptions::default(),
    );
    let mut found: Vec<_> =
        proven(facts.artifacts[&artifact].records.clone().unwrap()).iter().map(|r| r.blob).collect();
    found.sort();
    written.sort();
    assert_eq!(found, written, "each is listed once");
}

/// The same record in another Environment.
fn renamed(mut record: Record, round: usize) -> Record {
    let name = expedite::model::id::EnvironmentName::parse(&format!("e{round}")).unwrap();
    match &mut record {
        Record::Promotion(body) => body.environment = name,
        Record::Deployment(body) => body.environment = name,
        Record::Approvals(_) => {}
    }
    record
}

#[test]
fn the_same_statement_with_another_signature_is_not_attached_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(oras), Some(server)) = (peer("oras"), servers::refreg()) else { return };
    let (artifact, _) = push(&oras, folder.path(), &server, "shop/podinfo");
    let key = Key::p256();
    let signer = RecordSigner::from_pem(&key.private_pem(), None).unwrap();
    let signed = sign_record(&promotion(), &artifact, &signer).unwrap();
    // As a KMS signs: with a new nonce each time.
    let payload = promotion().build_statement(&artifact).unwrap();
    let random = crate::support::signing::bundle_of(
        crate::support::signing::envelope_of(
            crate::support::signing::IN_TOTO,
            &payload,
            vec![crate::support::signing::signature(&key, crate::support::signing::IN_TOTO, &payload)],
        ),
        &key.hint(),
    );
    let random = random.to_string().into_bytes();
    assert_ne!(random, signed.bundle);
    let random = SignedRecord { digest: expedite::model::id::Digest::hash_bytes(&random), bundle: random };
    let registries = plain_http(&server);
    let first = put(&registries, &artifact, &random, &signer).unwrap();
    assert_eq!(put(&registries, &artifact, &signed, &signer).unwrap(), Attached::Already(first.digest()));
    // By another key it is another record.
    let other = RecordSigner::from_pem(&Key::p256().private_pem(), None).unwrap();
    let again = sign_record(&promotion(), &artifact, &other).unwrap();
    assert!(matches!(put(&registries, &artifact, &again, &other).unwrap(), Attached::New(_)));
}

/// A cleanup that removes manifests without a tag leaves them in the list of referrers.
#[test]
fn what_is_listed_and_not_there_is_attached_again() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(oras), Some(servers)) = (peer("oras"), two_servers()) else { return };
    let key = Key::p256();
    let signer = RecordSigner::from_pem(&key.private_pem(), None).unwrap();
    let ring = usable(&kitchen(&[("job", key.public_pem(), ALL_ROLES)]));
    let seal = crate::evidence::records::seal();
    let Record::Approvals(body) = &seal else { panic!() };
    let of = expedite::model::evidence::SealOf {
        order: expedite::model::id::OrderRef {
            namespace: body.preparation.namespace.clone(),
            name: body.order.clone(),
        },
        preparation: body.preparation.name.clone(),
        uid: body.preparation.uid.clone(),
    };
    let client = reqwest::blocking::Client::new();
    // Only the registry without the referrers API keeps a list of its own.
    let server = &servers[1];
    for record in [promotion(), seal.clone()] {
        let (artifact, _) = push(&oras, folder.path(), server, "shop/podinfo");
        let claim = match &record {
            Record::Approvals(_) => Claim::Approvals(of.clone()),
            Record::Promotion(_) | Record::Deployment(_) => Claim::Records,
        };
        let is_read = || {
            let asks = [Ask { artifact: artifact.clone(), claims: [claim.clone()].into() }];
            let registries = plain_http(server);
            let facts = gather_blocking(
                &make_runtime().unwrap(),
                &asks,
                &ring,
                &registries,
                &GatherOptions::default(),
            );
            let facts = &facts.artifacts[&artifact];
            match &claim {
                Claim::Approvals(of) => matches!(facts.approvals[of], Evidence::Proven(_)),
                _ => matches!(facts.records, Some(Evidence::Proven(_))),
            }
        };
        let signed = sign_record(&record, &artifact, &signer).unwrap();
        let first = put(&plain_http(server), &artifact, &signed, &signer).unwrap();
        assert!(matches!(first, Attached::New(_)) && is_read());
        let base = format!("http://{}/v2/shop/podinfo/manifests", server.address);
        let gone = client.delete(format!("{base}/{}", first.digest())).send().unwrap();
        assert!(gone.status().is_success(), "{}", gone.status());
        let tag = artifact.digest.to_string().replace(':', "-");
        let accept = "application/vnd.oci.image.index.v1+json";
        let list = client.get(format!("{base}/{tag}")).header("accept", accept).send().unwrap();
        assert!(list.text().unwrap().contains(&first.digest().to_string()), "the list still names it");
        assert!(!is_read());
        let again = put(&plain_http(server), &artifact, &signed, &signer).unwrap();
        assert_eq!(again, Attached::New(first.digest()));
        assert!(is_read());
    }
}

#[test]
fn case_73_an_artifact_that_is_gone() {
    let Some(servers) = two_servers() else { return };
    let key = Key::p256();
    let signer = RecordSigner::from_pem(&key.private_pem(), None).unwrap();
    for server in &servers {
        let text = format!("oci://{}/shop/podinfo@sha256:{}", server.address, "0".repeat(64));
        let artifact = Artifact::parse(&text).unwrap();
        let signed = sign_record(&promotion(), &artifact, &signer).unwrap();
        let why = put(&plain_http(server), &artifact, &signed, &signer).unwrap_err();
        assert_eq!(why.code, "artifact-gone", "{why}");
    }
}

#[test]
fn records_are_attached_to_image_layouts() {
    let shelf = crate::support::shelf::Shelf::new();
    let artifact = shelf.artifact("kind: A");
    let key = Key::p256();
    let signer = RecordSigner::from_pem(&key.private_pem(), None).unwrap();
    let ring = usable(&kitchen(&[("job", key.public_pem(), ALL_ROLES)]));
    let signed = sign_record(&promotion(), &artifact, &signer).unwrap();
    let registries = shelf.registries();
    assert!(matches!(put(&registries, &artifact, &signed, &signer).unwrap(), Attached::New(_)));
    assert!(matches!(put(&registries, &artifact, &signed, &signer).unwrap(), Attached::Already(_)));
    let records = proven(ask(&shelf, &ring, &artifact, &[Claim::Records]).records.unwrap());
    assert_eq!((records.len(), records[0].blob), (1, signed.digest));
}

/// Records by a key file that cosign made and by an Ed25519 key, read by both cosigns from both registries.
#[test]
fn cosign_oras_and_crane_read_what_we_write() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (Some(oras), Some(crane), Some(v3), Some(v2)) =
        (peer("oras"), peer("crane"), Cosign::new("cosign3", home), Cosign::new("cosign2", home))
    else {
        return;
    };
    let Some(servers) = two_servers() else { return };
    v3.run(&["trusted-root", "create", "--out", "root.json"]);
    let cosign_key = make_key(&v3, SigningScheme::ECDSA_P256_SHA256_ASN1);
    let ed25519 = Key::of(SigningScheme::ED25519);
    let signers = [
        (
            "p256",
            "ECDSA P-256, a file of cosign's",
            RecordSigner::from_pem(&fs::read_to_string(&cosign_key.file).unwrap(), Some("")).unwrap(),
            cosign_key.public,
        ),
        (
            "ed25519",
            "Ed25519, PKCS#8",
            RecordSigner::from_pem(&ed25519.private_pem(), None).unwrap(),
            ed25519.public_pem(),
        ),
    ];
    let mut text = String::from(
        "# What we write, cosign reads\n\nWritten by `tests/it/evidence/attached.rs` (`BLESS=1` writes it anew): how many of three records \
         (approvals, promotion, deployment) `verify-attestation` accepts. oras lists them and crane reads them in the same test.\n\n\
         | our key | read by | from | records |\n|---|---|---|---|\n",
    );
    for (server, lists_types) in servers.iter().zip([&false, &true]) {
        for (name, title, signer, public) in &signers {
            let (artifact, reference) = push(&oras, home, server, &format!("shop/{name}"));
            let promoted = sign_record(&promotion(), &artifact, signer).unwrap();
            let records = [
                crate::evidence::records::seal(),
                promotion(),
                crate::evidence::records::deployment(&promoted),
            ];
            let registries = plain_http(server);
            for record in &records {
                let signed = sign_record(record, &artifact, signer).unwrap();
                put(&registries, &artifact, &signed, signer).unwrap();
            }
            let key = home.join(format!("{name}.pub"));
            fs::write(&key, public).unwrap();
            for cosign in [&v3, &v2] {
                let read =
                    records.iter().map(|r| verify_attestation(cosign, &key, r.predicate_type(), &reference));
                let from = if *lists_types { "docker-registry 2.8" } else { "refreg" };
                writeln!(text, "| {title} | {} | {from} | {} of 3 |", cosign.name, read.count()).unwrap();
            }
            let listed = run(&oras, home, &["discover", "--plain-http", "--format", "json", &reference]);
            for record in &records {
                assert!(listed.contains(record.predicate_type()), "{listed}");
            }
            // refreg lists the config's type as the artifact's (case 47).
            let told = if *lists_types { records.len() } else { 0 };
            assert_eq!(listed.matches("\"application/vnd.kokumi.").count(), told, "{listed}");
            let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
            let digest = listed["referrers"][0]["digest"].as_str().unwrap();
            let place = format!("{}/shop/{name}@{digest}", server.address);
            let manifest = run(&crane, home, &["manifest", "--insecure", &place]);
            assert!(manifest.contains("dev.sigstore.bundle.predicateType"), "{manifest}");
        }
    }
    compare("interop-write.md", &text);
}

#[track_caller]
fn verify_attestation(cosign: &Cosign, key: &Path, kind: &str, reference: &str) {
    let mut arguments = vec!["verify-attestation", "--key", key.to_str().unwrap(), "--insecure-ignore-tlog"];
    arguments.extend(["--allow-http-registry", "--type", kind]);
    if cosign.name == "cosign2" {
        arguments.extend(["--trusted-root", "root.json"]);
    }
    arguments.push(reference);
    cosign.run(&arguments);
    // It says no where it should: another key.
    let stranger = key.with_file_name("stranger.pub");
    fs::write(&stranger, Key::p256().public_pem()).unwrap();
    arguments[2] = stranger.to_str().unwrap();
    assert!(!cosign.command(&arguments).output().unwrap().status.success(), "{} {arguments:?}", cosign.name);
}

#[track_caller]
fn run(program: &Path, home: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
