//! The example installation by our own judgement: every Preparation has the evidence that `make.sh` says it has.

use super::{invalid, missing, proven};
use crate::support::harness::shop;
use expedite::evidence::gather::{GatherOptions, gather_blocking, make_runtime};
use expedite::evidence::keys::KeyRing;
use expedite::model::evidence::{Ask, Claim};
use expedite::model::id::{Artifact, Digest, OciRepository, OrderRef};
use expedite::model::kitchen::Kitchen;
use oci_registry::{HostConfig, Registries, RegistriesConfig};
use serde_json::Value;
use std::fs;

const HOST: &str = "registry.shop.example:5000";

/// `shop-dev/catalog`, the artifact, and how it is signed.
fn table() -> Vec<(OrderRef, Artifact, String)> {
    let script = fs::read_to_string(shop().join("make.sh")).unwrap();
    let table = script.split("\ntable='\n").nth(1).unwrap().split("\n'\n").next().unwrap();
    let rows = table.lines().map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let path = format!("{}/{}", words[0], words[1]);
        let index = fs::read(shop().join("registry").join(&path).join("index.json")).unwrap();
        let index: Value = serde_json::from_slice(&index).unwrap();
        let entries = index["manifests"].as_array().unwrap();
        let tag = "org.opencontainers.image.ref.name";
        let entry = entries.iter().find(|e| e["annotations"][tag] == words[2]).unwrap();
        let artifact = Artifact {
            repository: OciRepository::parse(&format!("{HOST}/{path}")).unwrap(),
            digest: Digest::parse(entry["digest"].as_str().unwrap()).unwrap(),
        };
        (OrderRef::parse(&path).unwrap(), artifact, words[4].to_owned())
    });
    rows.collect()
}

#[test]
fn each_preparation_has_the_evidence_that_was_made_for_it() {
    let kitchen = fs::read_to_string(shop().join("objects/kitchen.yaml")).unwrap();
    let kitchen: Kitchen = serde_yaml::from_str(&kitchen).unwrap();
    let ring = KeyRing::from_kitchen(&kitchen.spec);
    let layout = HostConfig { layout: Some(shop().join("registry")), ..HostConfig::default() };
    let hosts = [(HOST.to_owned(), layout)].into();
    let registries = Registries::new(RegistriesConfig { hosts, ..RegistriesConfig::default() }).unwrap();
    let table = table();
    let asks: Vec<Ask> = table
        .iter()
        .map(|(order, artifact, _)| Ask {
            artifact: artifact.clone(),
            claims: [Claim::Artifact, Claim::Signature, Claim::Provenance(order.clone())].into(),
        })
        .collect();
    let facts =
        gather_blocking(&make_runtime().unwrap(), &asks, &ring, &registries, &GatherOptions::default());
    for (order, artifact, evidence) in &table {
        let found = &facts.artifacts[artifact];
        proven(found.artifact.clone().unwrap());
        let (signature, provenance) = (found.signature.clone().unwrap(), found.provenance[order].clone());
        match evidence.as_str() {
            "bundles" | "bundles-v02" | "tags" | "tags-v02" => {
                let place = if evidence.starts_with("tags") { "tag" } else { "image layout" };
                assert!(proven(signature).place.ends_with(place), "{artifact}");
                let provenance = proven(provenance);
                assert!(provenance.proof.place.ends_with(place), "{artifact}");
                assert!(provenance.finished_on.is_some(), "{artifact}");
            }
            "unsigned" => {
                missing(signature);
                missing(provenance);
            }
            "stranger" => {
                let looked = invalid(signature, "not signed by a trusted key");
                assert_eq!(looked.candidates.len(), 1);
                invalid(provenance, "not signed by a trusted key");
            }
            other => panic!("{other}"),
        }
    }
}
