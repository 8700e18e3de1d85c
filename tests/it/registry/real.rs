//! Real registries: one with the referrers API, one without.

use super::writing::Record;
use super::*;
use crate::support::peers::peer;
use crate::support::servers::{Server, docker_registry, refreg};
use oci_registry::AttachOutcome;
use oci_registry::{EvidencePlace, Reference};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const REPO: &str = "shop/podinfo";

fn at(server: &Server) -> (Registries, OciRepository) {
    let plain = HostConfig { plain_http: true, ..HostConfig::default() };
    let hosts = [(server.address.clone(), plain)].into();
    let registries =
        Registries::new(RegistriesConfig { hosts, limits: limits(), ..Default::default() }).unwrap();
    (registries, OciRepository::parse(&format!("{}/{REPO}", server.address)).unwrap())
}

/// Pushes a file as an artifact; its digest.
fn push(oras: &Path, server: &Server) -> Digest {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("app.yaml"), "kind: ConfigMap\n").unwrap();
    let target = format!("{}/{REPO}:v1", server.address);
    let run = Command::new(oras)
        .args(["push", "--plain-http", "--format", "json", &target, "app.yaml:text/yaml"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let said: Value = serde_json::from_slice(&run.stdout).unwrap();
    Digest::parse(said["digest"].as_str().unwrap()).unwrap()
}

/// What oras lists as attached to the artifact.
fn oras_lists(oras: &Path, server: &Server, subject: &Digest) -> Vec<Digest> {
    let target = format!("{}/{REPO}@{subject}", server.address);
    let run =
        Command::new(oras).args(["discover", "--plain-http", "--format", "json", &target]).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let said: Value = serde_json::from_slice(&run.stdout).unwrap();
    let list = said["referrers"].as_array().or_else(|| said["manifests"].as_array()).unwrap();
    let mut list: Vec<_> =
        list.iter().map(|e| Digest::parse(e["digest"].as_str().unwrap()).unwrap()).collect();
    list.sort();
    list
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b37_real_registries_with_and_without_the_api_are_read_and_written() {
    let Some(oras) = peer("oras") else { return };
    for (server, place) in [(refreg(), EvidencePlace::Api), (docker_registry(), EvidencePlace::FallbackTag)] {
        let Some(server) = server else { continue };
        let subject = push(&oras, &server);
        let (registries, name) = at(&server);
        assert_eq!(
            found(registries.fetch_manifest(&name, &Reference::Tag("v1".into())).await).digest,
            subject
        );
        found(registries.holds_manifest(&name, &subject).await);
        absent(registries.holds_manifest(&name, &Digest::hash_bytes(b"gone")).await);
        absent(registries.fetch_manifest(&name, &Reference::Tag("none".into())).await);
        absent(registries.holds_blob(&name, &Digest::hash_bytes(b"gone")).await);
        let other = OciRepository::parse(&format!("{}/not/there", server.address)).unwrap();
        absent(registries.holds_manifest(&other, &subject).await);
        assert_eq!(registries.fetch_referrers(&other, &subject).await.unread, None);

        // Six at once, each twice, as processes that know nothing of each other.
        let records: Vec<_> = (0..6).map(|n| Record::new(&subject, &format!("record {n}"))).collect();
        let attaching = records.iter().chain(&records).map(|record| {
            let (own, name) = at(&server);
            async move { record.attach(&own, &name, &subject).await }
        });
        let outcomes = futures::future::join_all(attaching).await;
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        let again = records[0].attach(&registries, &name, &subject).await;
        assert_eq!(again, Ok(AttachOutcome::Already));

        let listed = registries.fetch_referrers(&name, &subject).await;
        assert_eq!(listed.unread, None);
        assert!(listed.entries.iter().all(|(p, _)| *p == place));
        let mut wanted: Vec<_> = records.iter().map(|r| r.digest).collect();
        wanted.sort();
        assert_eq!(listed.entries.iter().map(|(_, d)| d.digest).collect::<Vec<_>>(), wanted);
        assert_eq!(oras_lists(&oras, &server, &subject), wanted);
        assert_eq!(&found(registries.fetch_blob(&name, &blob_of(b"record 3"), 100).await)[..], b"record 3");
    }
}
