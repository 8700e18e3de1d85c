//! The example installation is what it says it is: real artifacts with real evidence, by the judgement of
//! the programs that made them.

use crate::support::harness::{Place, Said, shop};
use crate::support::{peers, servers};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::path::Path;

/// What the shop's table says of the evidence of its Preparations, `shop-dev/catalog 1.4.0` → `bundles`.
fn table() -> Vec<(String, String, String)> {
    let script = fs::read_to_string(shop().join("make.sh")).unwrap();
    let table = script.split("\ntable='\n").nth(1).unwrap().split("\n'\n").next().unwrap();
    let rows = table.lines().map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (format!("{}/{}", words[0], words[1]), words[2].to_owned(), words[4].to_owned())
    });
    rows.collect()
}

/// The digest under a tag of a layout.
fn tagged(repository: &str, tag: &str) -> Option<String> {
    let index = fs::read(shop().join("registry").join(repository).join("index.json")).unwrap();
    let index: serde_json::Value = serde_json::from_slice(&index).unwrap();
    let entries = index["manifests"].as_array().unwrap();
    let entry = entries.iter().find(|e| e["annotations"]["org.opencontainers.image.ref.name"] == tag)?;
    Some(entry["digest"].as_str().unwrap().to_owned())
}

#[test]
fn every_blob_has_the_hash_that_it_is_called_by() {
    let mut blobs = 0;
    for entry in walkdir::WalkDir::new(shop().join("registry")) {
        let entry = entry.unwrap();
        if entry.path().parent().unwrap().ends_with("blobs/sha256") {
            let hash = hex::encode(Sha256::digest(fs::read(entry.path()).unwrap()));
            assert_eq!(hash, entry.file_name().to_str().unwrap(), "{}", entry.path().display());
            blobs += 1;
        }
    }
    assert!(blobs > 100, "{blobs} blobs");
}

#[test]
fn it_stays_small() {
    let files = walkdir::WalkDir::new(shop()).into_iter().map(Result::unwrap);
    let bytes: u64 = files.filter(|e| e.file_type().is_file()).map(|e| e.metadata().unwrap().len()).sum();
    assert!(bytes < 2_000_000, "{bytes} bytes");
}

#[test]
fn names_and_digests_of_the_preparations_are_those_of_the_artifacts() {
    let table = table();
    assert!(table.len() >= 15, "{} Preparations", table.len());
    for (order, version, _) in table {
        let digest = tagged(&order, &version).unwrap_or_else(|| panic!("{order} {version}: no such tag"));
        let (namespace, name) = order.split_once('/').unwrap();
        let objects =
            fs::read_to_string(shop().join(format!("objects/preparations/{namespace}-{name}.yaml"))).unwrap();
        let preparation = format!("name: {name}-{}\n", &digest["sha256:".len()..][..12]);
        assert!(objects.contains(&preparation), "{order} {version}: no {preparation}");
        assert!(objects.contains(&format!("ociRef: oci://registry.shop.example:5000/{order}@{digest}\n")));
    }
}

/// Runs cosign on what a registry holds.
fn cosign(place: &Place, arguments: &[&str]) -> Option<Said> {
    let mut command = place.command(peers::peer("cosign3")?);
    command.args(arguments).args(["--insecure-ignore-tlog", "--allow-http-registry"]);
    Some(place.finish(command))
}

/// The artifact of a row, with everything that refers to it, from the layout into a registry.
fn upload(place: &Place, oras: &Path, repository: &str, version: &str, registry: &str) {
    let digest = tagged(repository, version).unwrap();
    let layout = shop().join("registry").join(repository);
    let tag = digest.replace(':', "-");
    let tags =
        [format!("{tag}.sig"), format!("{tag}.att")].into_iter().filter(|t| tagged(repository, t).is_some());
    for tag in tags.chain([version.to_owned()]) {
        let mut command = place.command(oras);
        command.args(["copy", "-r", "--no-tty", "--from-oci-layout", &format!("{}:{tag}", layout.display())]);
        command.args(["--to-plain-http", &format!("{registry}/{repository}:{tag}")]);
        place.finish(command).ok();
    }
}

#[test]
fn cosign_judges_the_evidence_as_the_table_says() {
    let (Some(registry), Some(oras)) = (servers::refreg(), peers::peer("oras")) else { return };
    let place = Place::new();
    let key = shop().join("keys/test-renderer.pub");
    let key = key.to_str().unwrap();
    for (order, version, evidence) in table() {
        upload(&place, &oras, &order, &version, &registry.address);
        let reference = format!("{}/{order}@{}", registry.address, tagged(&order, &version).unwrap());
        let Some(signature) = cosign(&place, &["verify", "--key", key, &reference]) else { return };
        let kind = if evidence.ends_with("-v02") { "v0.2" } else { "v1" };
        let kind = format!("https://slsa.dev/provenance/{kind}");
        let verify = ["verify-attestation", "--key", key, "--type", &kind, &reference];
        let Some(provenance) = cosign(&place, &verify) else { return };
        let proven = (signature.status == Some(0), provenance.status == Some(0));
        let expected = !["unsigned", "stranger"].contains(&evidence.as_str());
        let said =
            format!("{}{}", signature.transcript("verify"), provenance.transcript("verify-attestation"));
        assert_eq!(proven, (expected, expected), "{order} {version} ({evidence})\n{said}");
    }
}
