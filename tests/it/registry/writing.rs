//! Attaching records: once, found afterwards, and loud when not.

use super::*;
use crate::support::hostile::{Answer as Wire, Auth, Fault, Hostile};
use ::bytes::Bytes;
use oci_registry::UnreadReason;
use oci_registry::{AttachError, AttachOutcome, RegistryEnvironment, Writer};
use oci_registry::{EvidencePlace, Referrers};
use serde_json::{Value, json};
use std::sync::Arc;

const REPO: &str = "shop/podinfo";

/// A record as it is handed to the writer.
pub struct Record {
    pub manifest: Vec<u8>,
    pub digest: Digest,
    pub blobs: Vec<(Digest, Bytes)>,
}

impl Record {
    /// About `subject`, with this text.
    pub fn new(subject: &Digest, text: &str) -> Self {
        Self::sized(subject, 7, text)
    }

    /// About a `subject` of this size; only tools that walk a layout look at it.
    pub fn sized(subject: &Digest, size: usize, text: &str) -> Self {
        let layer = Bytes::copy_from_slice(text.as_bytes());
        let (empty, layer_digest) = (Digest::hash_bytes(b"{}"), Digest::hash_bytes(&layer));
        let manifest = json!({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "artifactType": "application/vnd.kokumi.promotion.v1+json",
            "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": empty, "size": 2},
            "layers": [{"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "digest": layer_digest, "size": layer.len()}],
            "subject": {"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": subject, "size": size},
            "annotations": {"org.opencontainers.image.created": "2026-11-30T00:00:00Z"},
        })
        .to_string()
        .into_bytes();
        let digest = Digest::hash_bytes(&manifest);
        Self { manifest, digest, blobs: vec![(empty, Bytes::from_static(b"{}")), (layer_digest, layer)] }
    }

    pub async fn attach(
        &self,
        registries: &Registries,
        name: &OciRepository,
        subject: &Digest,
    ) -> Result<AttachOutcome, AttachError> {
        Writer::new(registries).attach_record(name, subject, &self.manifest, &self.digest, &self.blobs).await
    }
}

fn with_artifact(api: bool) -> (Hostile, Digest) {
    let registry = Hostile::start();
    let subject = registry.push_artifact(REPO, &[("app.yaml", b"kind: ConfigMap\n")]);
    if !api {
        registry.behave(|b| (b.referrers_page, b.oci_subject) = (None, false));
    }
    (registry, subject)
}

async fn list(registry: &Hostile, subject: &Digest) -> Referrers {
    registries(registry).fetch_referrers(&repository(registry, REPO), subject).await
}

fn fallback_entries(registry: &Hostile, subject: &Digest) -> Vec<Value> {
    let mut store = registry.store();
    let repository = store.repository(REPO);
    let digest = repository.tags[&format!("sha256-{}", subject.format_hex())];
    let index: Value = serde_json::from_slice(&repository.manifests[&digest].1).unwrap();
    index["manifests"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_registry_that_is_read_only_by_the_settings_is_not_written_nor_asked() {
    let (registry, subject) = with_artifact(true);
    let name = repository(&registry, REPO);
    let mut config = config(&registry);
    config.hosts.get_mut(&registry.host()).unwrap().read_only = true;
    let registries = Registries::new(config).unwrap();
    assert!(registries.is_read_only(&name));
    let refused = Record::new(&subject, "one").attach(&registries, &name, &subject).await;
    assert_eq!(refused, Err(AttachError::ReadOnly(registry.host())));
    assert_eq!(registry.lines(), Vec::<String>::new());
}

#[tokio::test]
async fn case_72_a_record_is_attached_once() {
    for api in [true, false] {
        let (registry, subject) = with_artifact(api);
        let name = repository(&registry, REPO);
        let record = Record::new(&subject, "one");
        assert_eq!(record.attach(&registries(&registry), &name, &subject).await, Ok(AttachOutcome::New));
        let written =
            registry.log().iter().filter(|s| s.request.method != "GET" && s.request.method != "HEAD").count();
        assert_eq!(record.attach(&registries(&registry), &name, &subject).await, Ok(AttachOutcome::Already));
        let now =
            registry.log().iter().filter(|s| s.request.method != "GET" && s.request.method != "HEAD").count();
        assert_eq!(written, now, "the second time nothing is written");
        let listed = list(&registry, &subject).await;
        assert_eq!(listed.unread, None);
        assert_eq!(listed.entries.len(), 1);
        let (place, entry) = &listed.entries[0];
        assert_eq!(*place, if api { EvidencePlace::Api } else { EvidencePlace::FallbackTag });
        assert_eq!(entry.digest, record.digest);
        assert_eq!(entry.artifact_type.as_deref(), Some("application/vnd.kokumi.promotion.v1+json"));
        assert_eq!(entry.annotations["org.opencontainers.image.created"], "2026-11-30T00:00:00Z");
        assert_eq!(&found(registries(&registry).fetch_blob(&name, &blob_of(b"one"), 10).await)[..], b"one");
        // The list says so, and the manifest is gone: attached anew.
        registry.store().repository(REPO).manifests.remove(&record.digest);
        assert_eq!(record.attach(&registries(&registry), &name, &subject).await, Ok(AttachOutcome::New));
        if !api {
            assert_eq!(fallback_entries(&registry, &subject).len(), 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn case_72_b27_many_at_once_on_a_fallback_registry_lose_nothing() {
    let (registry, subject) = with_artifact(false);
    let name = repository(&registry, REPO);
    let records: Vec<_> = (0..8).map(|n| Record::new(&subject, &format!("record {}", n / 2))).collect();
    let mut config = config(&registry);
    config.limits.settle = Duration::from_millis(100);
    config.limits.index_tries = 30;
    // Each a process of its own, as far as the registry sees; every record twice.
    let writers: Vec<_> = records.iter().map(|_| Registries::new(config.clone()).unwrap()).collect();
    let attaching = records.iter().zip(&writers).map(|(record, own)| record.attach(own, &name, &subject));
    let outcomes = futures::future::join_all(attaching).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    let listed = list(&registry, &subject).await;
    let mut wanted: Vec<_> = records.iter().map(|r| r.digest).collect();
    wanted.sort();
    wanted.dedup();
    assert_eq!(listed.entries.iter().map(|(_, e)| e.digest).collect::<Vec<_>>(), wanted);
    assert_eq!(fallback_entries(&registry, &subject).len(), 4);
}

#[tokio::test]
async fn a_lost_update_is_noticed_and_made_good_or_reported() {
    let (registry, subject) = with_artifact(false);
    let name = repository(&registry, REPO);
    let record = Record::new(&subject, "one");
    let swallowed = Fault::Answer(Wire::new(201, "", ""));
    let is_index =
        |r: &crate::support::hostile::Request| r.method == "PUT" && r.path.contains("/manifests/sha256-");
    registry.fault(2, is_index, swallowed.clone());
    assert_eq!(record.attach(&registries(&registry), &name, &subject).await, Ok(AttachOutcome::New));
    assert_eq!(fallback_entries(&registry, &subject).len(), 1);

    let (registry, subject) = with_artifact(false);
    let name = repository(&registry, REPO);
    let record = Record::new(&subject, "one");
    registry.fault(99, is_index, swallowed);
    let mut config = config(&registry);
    config.limits.settle = Duration::from_millis(1);
    config.limits.index_tries = 3;
    let error = record.attach(&Registries::new(config).unwrap(), &name, &subject).await.unwrap_err();
    assert_eq!(error, AttachError::Contended { tag: format!("sha256-{}", subject.format_hex()), tries: 3 });
    assert!(error.to_string().contains("cannot be found"));

    // A registry that does know conditions.
    let (registry, subject) = with_artifact(false);
    let name = repository(&registry, REPO);
    registry.fault(1, is_index, Fault::status(412));
    let record = Record::new(&subject, "one");
    assert_eq!(record.attach(&registries(&registry), &name, &subject).await, Ok(AttachOutcome::New));
}

#[tokio::test]
async fn foreign_entries_and_unknown_members_of_the_index_stay() {
    let (registry, subject) = with_artifact(false);
    let foreign = json!({"mediaType": "application/x", "digest": "sha512:ab", "size": 1, "later": [1, {"b": 2, "a": 1}]});
    let index =
        json!({"schemaVersion": 2, "manifests": [foreign], "annotations": {"kept": "yes"}, "extra": null});
    let digest =
        registry.push_manifest(REPO, "application/vnd.oci.image.index.v1+json", index.to_string().as_bytes());
    let tag = format!("sha256-{}", subject.format_hex());
    registry.tag(REPO, &tag, digest);
    let record = Record::new(&subject, "one");
    record.attach(&registries(&registry), &repository(&registry, REPO), &subject).await.unwrap();
    let mut store = registry.store();
    let repository = store.repository(REPO);
    let (kind, bytes) = &repository.manifests[&repository.tags[&tag]];
    let new: Value = serde_json::from_slice(bytes).unwrap();
    assert_eq!(kind, "application/vnd.oci.image.index.v1+json");
    assert_eq!(
        (&new["manifests"][0], &new["annotations"], &new["extra"]),
        (&foreign, &index["annotations"], &Value::Null)
    );
    assert_eq!(new["manifests"][1]["digest"], json!(record.digest));
    assert_eq!(new["mediaType"], "application/vnd.oci.image.index.v1+json");
}

#[tokio::test]
async fn case_49_what_is_no_index_is_never_overwritten() {
    for body in [
        json!({"schemaVersion": 2, "config": {}, "layers": []}),
        json!({"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.list.v2+json", "manifests": []}),
        json!({"hello": "world"}),
    ] {
        let (registry, subject) = with_artifact(false);
        let digest = registry.push_manifest(REPO, "application/json", body.to_string().as_bytes());
        let tag = format!("sha256-{}", subject.format_hex());
        registry.tag(REPO, &tag, digest);
        let record = Record::new(&subject, "one");
        let outcome = record.attach(&registries(&registry), &repository(&registry, REPO), &subject).await;
        assert!(matches!(outcome, Err(AttachError::NotAnIndex { .. })), "{outcome:?}");
        assert_eq!(registry.store().repository(REPO).tags[&tag], digest);
    }
}

#[tokio::test]
async fn case_73_a_subject_that_is_gone_gets_nothing() {
    let (registry, subject) = with_artifact(true);
    registry.store().repository(REPO).manifests.clear();
    let record = Record::new(&subject, "one");
    let name = repository(&registry, REPO);
    let outcome = record.attach(&registries(&registry), &name, &subject).await;
    assert_eq!(outcome, Err(AttachError::SubjectGone(subject)));
    assert!(registry.log().iter().all(|s| matches!(s.request.method.as_str(), "GET" | "HEAD")));
    registry.fault(99, |_| true, Fault::status(503));
    let outcome = record.attach(&registries(&registry), &name, &subject).await;
    assert!(matches!(outcome, Err(AttachError::Failed(why)) if why.status == Some(503)));
}

#[tokio::test]
async fn case_73_an_oci_subject_of_another_digest_is_taken_as_absent_and_reported() {
    let (registry, subject) = with_artifact(true);
    registry.fault(
        99,
        |r| r.method == "PUT" && r.path.contains("/manifests/sha256:"),
        Fault::change(|_, a| {
            a.headers.retain(|(n, _)| n != "OCI-Subject");
            a.headers.push(("OCI-Subject".into(), Digest::hash_bytes(b"another").to_string()));
        }),
    );
    let registries = registries(&registry);
    let record = Record::new(&subject, "one");
    let name = repository(&registry, REPO);
    assert_eq!(record.attach(&registries, &name, &subject).await, Ok(AttachOutcome::New));
    assert_eq!(fallback_entries(&registry, &subject)[0]["digest"], json!(record.digest));
    assert_eq!(registries.collect_warnings().len(), 1, "{:?}", registries.collect_warnings());
}

#[tokio::test]
async fn case_74_an_index_that_is_refused_is_reported_as_not_attached() {
    for (status, reason) in [
        (400, UnreadReason::Error),
        (403, UnreadReason::Unauthorized),
        (413, UnreadReason::Error),
        (404, UnreadReason::Error),
        (500, UnreadReason::Error),
    ] {
        let (registry, subject) = with_artifact(false);
        registry.fault(
            99,
            |r| r.method == "PUT" && r.path.contains("/manifests/sha256-"),
            Fault::status(status),
        );
        let record = Record::new(&subject, "one");
        let error =
            record.attach(&registries(&registry), &repository(&registry, REPO), &subject).await.unwrap_err();
        let AttachError::NotListed(why) = &error else { panic!("{error:?}") };
        assert_eq!((why.status, why.reason), (Some(status), reason));
        assert!(error.to_string().starts_with("the record is stored but cannot be found: PUT "), "{error}");
    }
}

/// docker-registry 2.8 answers 400 while another run puts the same bytes: that is no refusal.
#[tokio::test]
async fn a_write_that_meets_the_same_one_is_made_again() {
    for place in ["/blobs/uploads/", "/manifests/sha256:", "/manifests/sha256-"] {
        let (registry, subject) = with_artifact(false);
        registry.fault(1, move |r| r.method == "PUT" && r.path.contains(place), Fault::status(400));
        let record = Record::new(&subject, "one");
        let (registries, name) = (registries(&registry), repository(&registry, REPO));
        assert_eq!(record.attach(&registries, &name, &subject).await, Ok(AttachOutcome::New), "{place}");
        let listed = registries.fetch_referrers(&name, &subject).await;
        assert_eq!(
            listed.entries.iter().map(|(_, d)| d.digest).collect::<Vec<_>>(),
            [record.digest],
            "{place}"
        );
        assert!(registry.log().iter().any(|l| l.request.method == "PUT" && l.request.path.contains(place)));
    }
}

#[tokio::test]
async fn case_70_an_upload_elsewhere_gets_no_credentials() {
    let storage = Hostile::start();
    let (registry, subject) = with_artifact(true);
    registry.behave(|b| (b.auth, b.upload_base) = (Auth::Basic, Some(storage.url())));
    registry.store().accounts.users.insert("cook".into(), "secret".into());
    let folder = tempfile::tempdir().unwrap();
    let auths = json!({"auths": { registry.host(): {"username": "cook", "password": "secret"} }});
    std::fs::write(folder.path().join("config.json"), auths.to_string()).unwrap();
    let environment = RegistryEnvironment {
        docker_config: Some(folder.path().to_owned()),
        ..RegistryEnvironment::default()
    };
    let registries = Registries::new(RegistriesConfig { environment, ..config(&registry) }).unwrap();
    let record = Record::new(&subject, "one");
    assert_eq!(
        record.attach(&registries, &repository(&registry, REPO), &subject).await,
        Ok(AttachOutcome::New)
    );
    assert_eq!(storage.log().len(), 1, "the empty config is there already");
    assert!(storage.log().iter().all(|s| s.request.header("authorization").is_none()));
    assert!(storage.lines()[0].contains("?state=a%2Fb&digest=sha256%3A"), "{:?}", storage.lines());
    // It asks for them: still none.
    storage.fault(
        99,
        |_| true,
        Fault::Answer(Wire::error(401, "UNAUTHORIZED").with("WWW-Authenticate", "Basic realm=x")),
    );
    let record = Record::new(&subject, "two");
    record.attach(&registries, &repository(&registry, REPO), &subject).await.unwrap_err();
    assert!(storage.log().iter().all(|s| s.request.header("authorization").is_none()));
}

#[tokio::test]
async fn b35_writing_where_only_reading_is_allowed_fails_by_name_and_reading_goes_on() {
    let registry = Hostile::start();
    let subjects: Vec<_> =
        ["shop/a", "shop/b"].map(|r| registry.push_artifact(r, &[("a.yaml", r.as_bytes())])).into();
    registry.behave(|b| b.auth = Auth::Bearer { realm: None });
    registry.store().accounts.grants = Arc::new(|_, repo, action| action == "pull" || repo == "shop/a");
    let registries = registries(&registry);
    for (path, subject) in ["shop/a", "shop/b"].iter().zip(&subjects) {
        let name = repository(&registry, path);
        found(registries.holds_manifest(&name, subject).await);
        let outcome = Record::new(subject, "one").attach(&registries, &name, subject).await;
        match *path {
            "shop/a" => assert_eq!(outcome, Ok(AttachOutcome::New)),
            _ => {
                let error = outcome.unwrap_err().to_string();
                assert!(error.contains("push to shop/b") && error.contains("is denied (401)"), "{error}");
            }
        }
        found(registries.holds_manifest(&name, subject).await);
        assert_eq!(registries.fetch_referrers(&name, subject).await.unread, None);
    }
    // A token endpoint that refuses the larger scope outright.
    let name = repository(&registry, "shop/b");
    let registries = self::registries(&registry);
    registry.fault(99, |r| r.path == "/token" && r.query.contains("push"), Fault::status(403));
    let error = Record::new(&subjects[1], "two")
        .attach(&registries, &name, &subjects[1])
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("a token for repository:shop/b:pull,push is denied (403)"), "{error}");
    found(registries.holds_manifest(&name, &subjects[1]).await);
}

#[tokio::test]
async fn an_upload_that_breaks_off_is_begun_anew() {
    for fault in [Fault::Reset, Fault::status(500), Fault::status(404)] {
        let (registry, subject) = with_artifact(true);
        registry.fault(4, |r| r.method == "PUT" && r.path.contains("/uploads/1"), fault);
        let record = Record::new(&subject, "one");
        let name = repository(&registry, REPO);
        assert_eq!(record.attach(&registries(&registry), &name, &subject).await, Ok(AttachOutcome::New));
    }
    // No Location, an odd one, an answer that is no acceptance.
    for answer in [
        Wire::new(202, "", ""),
        Wire::new(202, "", "").with("Location", "http://"),
        Wire::new(200, "", ""),
        Wire::error(403, "DENIED"),
    ] {
        let (registry, subject) = with_artifact(true);
        registry.fault(9, |r| r.method == "POST", Fault::Answer(answer));
        let record = Record::new(&subject, "one");
        let outcome = record.attach(&registries(&registry), &repository(&registry, REPO), &subject).await;
        assert!(matches!(outcome, Err(AttachError::Failed(_))), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_record_that_does_not_fit_together_is_refused_before_any_request() {
    let (registry, subject) = with_artifact(true);
    let name = repository(&registry, REPO);
    let writer = Writer::new(&registries(&registry));
    let r = Record::new(&subject, "one");
    let other = Digest::hash_bytes(b"other");
    let bad_blob = [(other, Bytes::from_static(b"{}"))];
    for outcome in [
        writer.attach_record(&name, &other, &r.manifest, &r.digest, &r.blobs).await,
        writer.attach_record(&name, &subject, &r.manifest, &other, &r.blobs).await,
        writer.attach_record(&name, &subject, &r.manifest, &r.digest, &bad_blob).await,
        writer.attach_record(&name, &subject, b"no json", &Digest::hash_bytes(b"no json"), &[]).await,
    ] {
        assert!(matches!(outcome, Err(AttachError::Inconsistent(_))), "{outcome:?}");
    }
    assert!(registry.log().is_empty());
}

/// Killed or failed at any request, the next run completes it.
#[tokio::test]
async fn attaching_that_fails_at_any_request_is_completed_by_the_next_run() {
    for api in [true, false] {
        for n in 0.. {
            let (registry, subject) = with_artifact(api);
            let name = repository(&registry, REPO);
            registry.fault_after(n, usize::MAX, |_| true, Fault::status(500));
            let record = Record::new(&subject, "one");
            let mut config = config(&registry);
            config.limits.tries = 1;
            let first = record.attach(&Registries::new(config).unwrap(), &name, &subject).await;
            registry.heal();
            let finished = first == Ok(AttachOutcome::New);
            let second = record.attach(&registries(&registry), &name, &subject).await;
            assert!(second.is_ok(), "request {n}, API {api}: {second:?}");
            assert_eq!(list(&registry, &subject).await.entries.len(), 1, "request {n}, API {api}");
            if finished {
                assert_eq!(second, Ok(AttachOutcome::Already));
                assert!(n > 6);
                break;
            }
        }
    }
}
