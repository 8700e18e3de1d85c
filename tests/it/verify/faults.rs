//! A registry that fails at any request, and one behind a private authority: nothing looks missing that could
//! not be read, and a file holds all of it or is not there.

use super::bench::Bench;
use super::{claim, json};
use crate::support::authority::Authority;
use crate::support::hostile::{Fault, Hostile};
use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

/// Serves what the bench has in its folder from now on.
fn serve(bench: &Bench, registry: &Hostile, more: &str) {
    registry.push_layout("shop/podinfo", &bench.place.path("registry/shop/podinfo"));
    bench.place.write(
        "expedite.yaml",
        format!(
            "sources: [{{path: ./objects}}]\nregistries: {{r.example: {{mirror: \"{}\"{more}}}}}\n\
             repository: {{url: ./gitops.git, branch: main, create: true}}\n",
            registry.url()
        ),
    );
}

#[test]
fn each_request_refused_or_forged_in_turn_never_looks_like_missing_evidence() {
    let bench = Bench::whole();
    let registry = Hostile::start();
    serve(&bench, &registry, "");
    let good = bench.saved("good.tar");
    let targets: BTreeSet<String> = registry.log().iter().map(|s| s.request.target.clone()).collect();
    assert!(targets.len() > 15, "{targets:?}");
    let (mut refused, mut stood) = (0, 0);
    for target in &targets {
        for fault in [Fault::status(403), Fault::Flip] {
            let wanted = target.clone();
            registry.fault(usize::MAX, move |r| r.target == wanted, fault);
            let said = bench.verify(&["--save", "file.tar", "-o", "json"]);
            registry.heal();
            let result = json(&said);
            for claim in result["claims"].as_array().unwrap() {
                let outcome = claim["outcome"].as_str().unwrap();
                assert!(outcome == "Proven" || outcome == "Unread", "{target}: {claim:#}");
            }
            let file = bench.place.path("file.tar");
            match said.status {
                Some(0) => {
                    assert_eq!(fs::read(&file).unwrap(), good, "{target}");
                    fs::remove_file(&file).unwrap();
                    stood += 1;
                }
                Some(1) => {
                    assert!(!file.exists(), "{target}");
                    refused += 1;
                }
                other => panic!("{target}: {other:?} {}", said.transcript("verify")),
            }
        }
    }
    assert!(refused > 25, "{refused} refused, {stood} stood");
}

#[test]
fn a_registry_behind_a_private_authority_is_read_by_its_certificate() {
    let authority = Authority::new();
    let registry = Hostile::start_tls(Arc::clone(&authority.server));
    let bench = Bench::whole();
    serve(&bench, &registry, &format!(", caFile: {}", authority.ca_file().display()));
    let said = bench.verify(&["-o", "json", "--save", "podinfo.tar"]);
    said.ok();
    assert_eq!(claim(&json(&said), "signature")["evidence"][0]["place"], "referrers API");
    bench.verify(&["--bundle", "podinfo.tar"]).ok();
    // Without it nothing is believed, and nothing is missing.
    serve(&bench, &registry, "");
    let said = bench.verify(&["-o", "json"]);
    said.exits(1);
    assert_eq!(claim(&json(&said), "signature")["reason"], "RegistryUnreachable");
}
