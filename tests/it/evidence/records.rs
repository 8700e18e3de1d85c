//! What we write: bodies, keys, bundles (case 75), and that it is read again as it was written.

use super::order;
use crate::support::signing::{ALL_ROLES, Key, kitchen, usable};
use expedite::attest::SCHEMAS;
use expedite::attest::attach::{Attachment, ReferrerSubject};
use expedite::attest::key::RecordSigner;
use expedite::attest::record::{
    ApprovalsPredicate, DeployedCluster, Deployment, GateRecord, NamedPreparation, OptIn, Previous,
    PromotedCluster, Promoter, PromotionPredicate, Record, RecordRef, SealedPreparation, Submission,
};
use expedite::attest::sign::{SignedRecord, sign_record};
use expedite::evidence::judge;
use expedite::model::approval::{Approver, Ballot};
use expedite::model::evidence::SealOf;
use expedite::model::id::{
    ApplicationName, Artifact, ClusterName, Digest, EnvironmentName, OciRepository, PreparationName,
};
use expedite::model::order::{ApprovalPolicy, Mode};
use expedite::model::reason::{Ended, Vote};
use expedite::model::serving::{RequestedBy, VoteStatus};
use expedite::model::time::Time;
use expedite::model::verdict::{EvidenceRef, GateName, Verdict};
use serde_json::{Value, json};
use sigstore::crypto::SigningScheme;
use std::path::Path;

pub fn artifact() -> Artifact {
    Artifact {
        repository: OciRepository::parse("r.example/shop/podinfo").unwrap(),
        digest: Digest::hash_bytes(b"artifact"),
    }
}

fn time(text: &str) -> Time {
    Time::parse(text).unwrap()
}

fn preparation() -> NamedPreparation {
    NamedPreparation {
        namespace: order().namespace,
        name: PreparationName::parse("podinfo-d7ce0c46a686").unwrap(),
    }
}

pub fn promotion() -> Record {
    let mut gate = Verdict::make_passed(GateName::Evidence, "verified");
    gate.parameters = json!({"z": 1, "a": {"c": [1, 2], "b": "x"}});
    gate.evidence = vec![EvidenceRef {
        kind: "signature".into(),
        name: ".sig tag".into(),
        digest: Some(Digest::hash_bytes(b"sig")),
        uri: "oci://r.example/shop/podinfo".into(),
        key: "renderer".into(),
    }];
    Record::Promotion(PromotionPredicate {
        order: (&order()).into(),
        environment: EnvironmentName::parse("production").unwrap(),
        preparation: preparation(),
        base_digest: Some(Digest::hash_bytes(b"base")),
        target_namespace: expedite::model::id::Namespace::parse("shop").ok(),
        mode: Mode::Manual,
        previous: Some(Previous {
            preparation: PreparationName::parse("podinfo-1").unwrap(),
            digest: Digest::hash_bytes(b"before"),
            first_healthy_time: Some(time("2026-11-30T01:00:00Z")),
            healthy_until: Some(time("2026-11-30T01:59:00Z")),
        }),
        promoted_time: time("2026-11-30T02:00:00Z"),
        requested_by: RequestedBy {
            name: "Ann <ann@shop.example>".into(),
            commit: None,
            signed_by: "unsigned".into(),
        },
        gates: vec![GateRecord::from(&gate)],
        clusters: vec![PromotedCluster {
            name: ClusterName::parse("eu-1").unwrap(),
            opt_in: OptIn::OptedIn,
            server: Some("https://eu-1.example".into()),
        }],
        promoter: Promoter::from_this_build(),
    })
}

pub fn deployment(promotion: &SignedRecord) -> Record {
    Record::Deployment(Deployment {
        order: (&order()).into(),
        environment: EnvironmentName::parse("production").unwrap(),
        preparation: preparation(),
        promotion_record: RecordRef { digest: promotion.digest },
        first_healthy_time: time("2026-11-30T02:05:00Z"),
        ended_time: Some(time("2026-11-30T03:00:00Z")),
        ended_reason: Some(Ended::Degraded),
        clusters: vec![DeployedCluster {
            name: ClusterName::parse("eu-1").unwrap(),
            server: "https://eu-1.example".into(),
            application: ApplicationName::parse("kokumi-shop-podinfo-9b1944a4").unwrap(),
            sync_revision: artifact().digest.to_string(),
        }],
    })
}

pub fn seal() -> Record {
    let vote = VoteStatus {
        name: "ann-1".into(),
        uid: Some("u-9".into()),
        approver: Approver {
            issuer: "https://idp.example".into(),
            subject: "4711".into(),
            username: "ann".into(),
            email: Some("ann@shop.example".into()),
            groups: vec!["platform".into()],
        },
        decision: Ballot::Approve,
        comment: Some("go".into()),
        digest: artifact().digest,
        submitted_time: time("2026-11-30T01:00:00Z"),
        creation_time: Some(time("2026-11-30T01:00:01Z")),
        signature: None,
        counted: true,
        reason: Vote::Counted,
    };
    Record::Approvals(ApprovalsPredicate {
        order: order().name,
        preparation: SealedPreparation {
            namespace: order().namespace,
            name: preparation().name,
            uid: Some("u-1".into()),
        },
        policy: ApprovalPolicy { required_approvals: 1, allowed_groups: vec!["platform".into()] },
        result: "Approved".into(),
        sealed_time: time("2026-11-30T01:00:01Z"),
        submissions: vec![Submission::from(&vote)],
    })
}

fn signer(key: &Key) -> RecordSigner {
    RecordSigner::from_pem(&key.private_pem(), None).unwrap()
}

#[test]
fn case_75_the_same_record_is_the_same_bytes() {
    for scheme in [SigningScheme::ECDSA_P256_SHA256_ASN1, SigningScheme::ED25519] {
        let key = Key::of(scheme);
        let first = sign_record(&promotion(), &artifact(), &signer(&key)).unwrap();
        let mut other = promotion();
        let Record::Promotion(body) = &mut other else { panic!() };
        body.gates[0].parameters = json!({"a": {"b": "x", "c": [1, 2]}, "z": 1});
        assert_eq!(sign_record(&other, &artifact(), &signer(&key)).unwrap(), first, "order of members");
        let subject = ReferrerSubject { media_type: "m".into(), digest: artifact().digest, size: 7 };
        let attached = Attachment::wrap_bundle(&first.bundle, &subject).unwrap();
        assert_eq!(Attachment::wrap_bundle(&first.bundle, &subject).unwrap(), attached);
        let manifest: Value = serde_json::from_slice(&attached.manifest).unwrap();
        assert_eq!(manifest["artifactType"], "application/vnd.kokumi.promotion.v1+json");
        assert_eq!(manifest["annotations"]["org.opencontainers.image.created"], "2026-11-30T02:00:00Z");
        assert_eq!(manifest["layers"][0]["digest"], first.digest.to_string());
        assert_eq!(manifest["subject"]["size"], 7);
        let data = manifest["layers"][0]["data"].as_str().unwrap();
        let data = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, data).unwrap();
        assert_eq!(data, first.bundle);
    }
}

#[test]
fn a_record_is_read_back_as_it_was_written() {
    let key = Key::p256();
    let ring = usable(&kitchen(&[("job", key.public_pem(), ALL_ROLES)]));
    let promoted = sign_record(&promotion(), &artifact(), &signer(&key)).unwrap();
    let proof = judge::judge_record(&promoted.bundle, &artifact().digest, &ring).unwrap();
    assert_eq!((proof.key.as_str(), proof.blob), ("job", promoted.digest));
    let statement = proof.statement.unwrap();
    let body: PromotionPredicate = serde_json::from_value(statement.predicate.clone()).unwrap();
    assert_eq!(Record::Promotion(body), promotion());
    assert_eq!(statement.time, Some(time("2026-11-30T02:00:00Z")));
    assert_eq!(statement.predicate["order"], json!({"namespace": "shop", "name": "podinfo"}));

    let deployed = sign_record(&deployment(&promoted), &artifact(), &signer(&key)).unwrap();
    let proof = judge::judge_record(&deployed.bundle, &artifact().digest, &ring).unwrap();
    assert_eq!(proof.statement.unwrap().predicate["promotionRecord"]["digest"], promoted.digest.to_string());

    let sealed = sign_record(&seal(), &artifact(), &signer(&key)).unwrap();
    let of = SealOf { order: order(), preparation: preparation().name, uid: Some("u-1".into()) };
    let proof = judge::judge_seal(&sealed.bundle, &artifact().digest, &of, &ring).unwrap();
    assert_eq!((proof.result.as_str(), proof.policy.required_approvals), ("Approved", 1));
    let vote = &proof.proof.statement.unwrap().predicate["submissions"][0];
    assert_eq!(
        vote["approver"],
        json!({"issuer": "https://idp.example", "subject": "4711", "username": "ann"})
    );
}

#[test]
fn a_record_for_another_artifact_is_not_wrapped() {
    let signed = sign_record(&promotion(), &artifact(), &signer(&Key::p256())).unwrap();
    let other = ReferrerSubject { media_type: "m".into(), digest: Digest::hash_bytes(b"other"), size: 1 };
    let why = Attachment::wrap_bundle(&signed.bundle, &other).unwrap_err();
    assert!(why.cause.contains("not about this artifact"), "{why}");
}

#[test]
fn the_bundle_is_what_cosign_takes() {
    let key = Key::p256();
    let signed = sign_record(&promotion(), &artifact(), &signer(&key)).unwrap();
    let bundle: Value = serde_json::from_slice(&signed.bundle).unwrap();
    let names: Vec<&String> = bundle.as_object().unwrap().keys().collect();
    assert_eq!(names, ["mediaType", "verificationMaterial", "dsseEnvelope"]);
    assert_eq!(bundle["verificationMaterial"], json!({"publicKey": {"hint": key.hint()}}));
    let signature = bundle["dsseEnvelope"]["signatures"][0].as_object().unwrap();
    assert_eq!(signature.keys().collect::<Vec<_>>(), ["sig"], "cosign refuses a keyid");
}

/// Every member we write is in the published schema, and everything the schema requires is written.
#[track_caller]
fn fits(schema: &Value, root: &Value, value: &Value, at: &str) {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        return fits(root.pointer(&name[1..]).unwrap(), root, value, at);
    }
    match value {
        Value::Object(members) => {
            let Some(known) = schema.get("properties") else { return };
            assert_eq!(schema["type"], "object", "{at}");
            for (name, value) in members {
                fits(
                    known.get(name).unwrap_or_else(|| panic!("{at}.{name}")),
                    root,
                    value,
                    &format!("{at}.{name}"),
                );
            }
            for name in schema["required"].as_array().unwrap() {
                assert!(members.contains_key(name.as_str().unwrap()), "{at} lacks {name}");
            }
        }
        Value::Array(items) => {
            assert_eq!(schema["type"], "array", "{at}");
            items.iter().for_each(|i| fits(&schema["items"], root, i, at));
        }
        Value::String(text) => {
            assert_eq!(schema["type"], "string", "{at}");
            if let Some(words) = schema.get("enum").and_then(Value::as_array) {
                assert!(words.contains(&json!(text)), "{at}: {text}");
            }
        }
        Value::Number(_) => assert_eq!(schema["type"], "integer", "{at}"),
        Value::Bool(_) => assert_eq!(schema["type"], "boolean", "{at}"),
        Value::Null => panic!("{at} is null"),
    }
}

#[test]
fn the_published_schemas_describe_what_is_written() {
    let signed = sign_record(&promotion(), &artifact(), &signer(&Key::p256())).unwrap();
    let records = [seal(), promotion(), deployment(&signed)];
    assert_eq!(SCHEMAS.len(), records.len());
    for (record, (_, predicate_type, text)) in records.iter().zip(SCHEMAS) {
        assert_eq!(record.predicate_type(), *predicate_type);
        let schema: Value = serde_json::from_str(text).unwrap();
        assert_eq!(schema["$id"], *predicate_type);
        let statement: Value = serde_json::from_slice(&record.build_statement(&artifact()).unwrap()).unwrap();
        fits(&schema, &schema, &statement["predicate"], predicate_type);
    }
}

#[test]
fn key_files_that_are_read_and_those_that_are_not() {
    let key = Key::p256();
    let pair =
        sigstore::crypto::signing_key::SigStoreKeyPair::from_pem(key.private_pem().as_bytes()).unwrap();
    let encrypted = pair.private_key_to_encrypted_pem(b"secret").unwrap().to_string();
    let read = RecordSigner::from_pem(&encrypted, Some("secret")).unwrap();
    assert_eq!(read.public_key().fingerprint(), key.hint());
    assert_eq!(format!("{read:?}"), format!("Signer(P-256 ***, {})", key.hint()));
    let why = |pem: &str, password| RecordSigner::from_pem(pem, password).unwrap_err().cause;
    assert!(why(&encrypted, Some("wrong")).contains("COSIGN_PASSWORD does not decrypt"));
    assert!(why(&encrypted, None).contains("COSIGN_PASSWORD is not set"));
    assert!(why("text", None).contains("not a PEM"));
    assert!(why(&key.public_pem(), None).contains("PUBLIC KEY"));
    assert!(why("-----BEGIN EC PRIVATE KEY-----\n", None).contains("SEC1"));
    assert!(why("-----BEGIN ENCRYPTED PRIVATE KEY-----\n", None).contains("encrypted PKCS#8"));
    let rsa = Key::of(SigningScheme::RSA_PKCS1_SHA256(2048)).private_pem();
    assert!(why(&rsa, None).contains("neither ECDSA P-256 nor Ed25519"));
    let other_curve = Key::of(SigningScheme::ECDSA_P384_SHA384_ASN1).private_pem();
    assert!(why(&other_curve, None).contains("neither ECDSA P-256 nor Ed25519"));
}

fn script(folder: &Path, name: &str, text: &str) -> String {
    let file = folder.join(name);
    std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
    crate::support::executable::executable(&file);
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_command_signs() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let key = Key::p256();
    std::fs::write(dir.join("public.pem"), key.public_pem()).unwrap();
    let record = promotion();
    let message = expedite::evidence::envelope::encode_pae(
        "application/vnd.in-toto+json",
        &record.build_statement(&artifact()).unwrap(),
    );
    std::fs::write(dir.join("der"), key.sign(&message)).unwrap();
    std::fs::write(dir.join("base64"), key.sign_base64(&message) + "\n").unwrap();
    std::fs::write(dir.join("wrong"), key.sign_base64(b"something else")).unwrap();
    let public = format!("[ \"$2\" = public-key ] && exec cat {}/public.pem", dir.display());
    for answer in ["der", "base64"] {
        let body = format!("{public}\ncat > {0}/seen\ncat {0}/{answer}", dir.display());
        let command = format!("{} an-argument", script(dir, &format!("signer-{answer}"), &body));
        let signer = RecordSigner::from_command(&command).unwrap();
        let signed = sign_record(&record, &artifact(), &signer).unwrap();
        assert_eq!(std::fs::read(dir.join("seen")).unwrap(), message);
        let ring = usable(&kitchen(&[("job", key.public_pem(), ALL_ROLES)]));
        judge::judge_record(&signed.bundle, &artifact().digest, &ring).unwrap();
    }
    let failing = |body: &str| {
        let command = format!("{} x", script(dir, "failing", &format!("{public}\n{body}")));
        let signer = RecordSigner::from_command(&command).unwrap();
        sign_record(&record, &artifact(), &signer).unwrap_err().to_string()
    };
    assert!(failing(&format!("cat {}/wrong", dir.display())).contains("does not verify"));
    assert!(failing("echo '#'").contains("not a signature by its public key"));
    assert!(failing("exit 3").contains("exit status: 3"));
    assert!(failing("exec head -c 100000 /dev/zero").contains("printed more than"));
    let why = |command: &str| RecordSigner::from_command(command).unwrap_err().to_string();
    assert!(why("").contains("it is empty"));
    assert!(why("/nowhere/at-all").contains("was not found"));
    assert!(why(&script(dir, "mute", "exit 0")).contains("did not print a public key"));
    let two = script(dir, "two", &format!("cat {0}/public.pem {0}/public.pem", dir.display()));
    assert!(why(&two).contains("more than one key"));
}

#[test]
fn the_trusted_name_of_a_record_is_its_role() {
    let key = Key::p256();
    let signed = sign_record(&promotion(), &artifact(), &signer(&key)).unwrap();
    let ring =
        usable(&kitchen(&[("renderer", key.public_pem(), &[expedite::model::kitchen::Role::Signature])]));
    let why = judge::judge_record(&signed.bundle, &artifact().digest, &ring).unwrap_err();
    assert!(why.contains("not trusted for records"), "{why}");
}
