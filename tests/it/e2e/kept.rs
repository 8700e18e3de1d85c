//! Kept verdicts: what is deployed is shown as it was verified and asks nothing; what is promoted is read afresh,
//! whatever stands in git; what does not prove is never kept.

use super::evidence::{over_http, through};
use super::*;
use crate::support::fleet;
use crate::support::harness::{Place, Said};
use serde_json::Value;
use std::collections::BTreeSet;

/// `expedite run -v`: every request is said.
fn told(place: &Place) -> Said {
    place.expedite(&["run", "-v", "--config", "expedite.yaml", "--at", AT])
}

/// The repositories that were asked about anything.
fn asked(said: &Said) -> BTreeSet<String> {
    let lines = said.stderr.lines().filter(|l| l.starts_with("GET ") || l.starts_with("HEAD "));
    let path = |line: &str| Some(line.split_once("/v2/")?.1.split('/').take(2).collect::<Vec<_>>().join("/"));
    lines.filter_map(path).collect()
}

fn kept(place: &Place, order: &str) -> Value {
    serving(place, order)["status"]["verified"].clone()
}

/// Rewrites a Serving in the repository, as somebody who may push can.
fn forge(place: &Place, order: &str, change: impl FnOnce(&mut Value)) {
    let mut object = serving(place, order);
    change(&mut object);
    let _ = std::fs::remove_dir_all(place.path("forger"));
    place.git(&["clone", "-q", "shop.git", "forger"]);
    place.write(&format!("forger/servings/{order}.yaml"), serde_yaml::to_string(&object).unwrap());
    place.git(&["-C", "forger", "commit", "-qam", "forge"]);
    place.git(&["-C", "forger", "push", "-q", "origin", "HEAD:main"]);
}

#[test]
fn what_is_deployed_asks_nothing_and_what_does_not_prove_is_asked_again() {
    let Some(registry) = crate::support::servers::refreg() else { return };
    let Some((place, said)) = over_http(&registry) else { return };
    said.ok();
    let before = kept(&place, "shop/catalog");
    assert_eq!(before["digest"], artifact(&place, "shop/catalog", "1.5.0"));
    assert_eq!(before["by"], serde_json::json!(["renderer"]));
    assert_eq!(before["time"], AT);
    for order in ["shop/mailer", "shop/search"] {
        assert_eq!(kept(&place, order), Value::Null, "{order}: a negative verdict is never kept");
    }
    let said = told(&place);
    said.ok();
    let failing: BTreeSet<String> = ["shop/mailer", "shop/search"].map(str::to_owned).into();
    assert_eq!(asked(&said), failing, "{}", said.stderr);
    assert_eq!(kept(&place, "shop/catalog"), before);
    assert_eq!(condition(&serving(&place, "shop/catalog"), "Verified").1, "SignaturesVerified");

    // Another trust: everything is read again, once.
    place.edit(
        "objects/kitchen.yaml",
        "roles: [signature, provenance]",
        "roles: [signature, provenance, checks]",
    );
    let said = told(&place);
    said.ok();
    assert!(asked(&said).contains("shop/catalog"), "{}", said.stderr);
    let after = kept(&place, "shop/catalog");
    assert_ne!(after["keys"], before["keys"]);
    assert_eq!(after["digest"], before["digest"]);
    assert_eq!(asked(&told(&place)), failing);
}

#[test]
fn a_registry_that_is_down_takes_no_kept_verdict_and_gives_none() {
    let place = Place::with_shop();
    run(&place).ok();
    let before = kept(&place, "shop/catalog");
    through(&place, "http://127.0.0.1:1");
    run(&place);
    assert_eq!(kept(&place, "shop/catalog"), before);
    assert_eq!(condition(&serving(&place, "shop/catalog"), "Verified").1, "SignaturesVerified");
    place.edit(
        "objects/kitchen.yaml",
        "roles: [signature, provenance]",
        "roles: [signature, provenance, checks]",
    );
    run(&place).exits(1);
    assert_eq!(kept(&place, "shop/catalog"), before, "of another trust, and not thrown away for a fault");
    assert_eq!(condition(&serving(&place, "shop/catalog"), "Verified").1, "RegistryUnreachable");
}

#[test]
fn a_forged_verdict_in_git_buys_nothing() {
    let place = Place::with_shop();
    run(&place).ok();
    let keys = kept(&place, "shop/catalog")["keys"].clone();
    for (order, version, reason) in
        [("shop/search", "5.0.0", "SignatureInvalid"), ("shop/mailer", "0.9.4", "SignatureMissing")]
    {
        let digest = artifact(&place, order, version);
        forge(&place, order, |serving| {
            serving["status"]["verified"] =
                serde_json::json!({"digest": digest, "keys": keys, "time": AT, "by": ["renderer"]});
            for condition in serving["status"]["conditions"].as_array_mut().unwrap() {
                if condition["type"] == "Verified" {
                    condition["status"] = "True".into();
                    condition["reason"] = "SignaturesVerified".into();
                }
            }
        });
        assert_eq!(kept(&place, order)["digest"], digest, "the forger did write it");
        run(&place).ok();
        assert_eq!(pinned(&place, order), Vec::<String>::new(), "{order}");
        assert_eq!(condition(&serving(&place, order), "Verified").1, reason);
        assert_eq!(kept(&place, order), Value::Null, "{order}: what the registry says ends it");
    }
}

#[test]
fn a_cache_that_cannot_be_written_is_said_and_costs_nothing_else() {
    let Some(registry) = crate::support::servers::refreg() else { return };
    let Some((place, said)) = over_http(&registry) else { return };
    said.ok();
    let plain = place.expedite(&["plan", "--config", "expedite.yaml", "--at", AT]);
    place.write("file", "");
    let settings = place.read("expedite.yaml");
    place.write("expedite.yaml", format!("{settings}evidence: {{cacheDir: ./file/below}}\n"));
    let said = place.expedite(&["plan", "--config", "expedite.yaml", "--at", AT]);
    assert_eq!(said.ok(), plain.ok());
    let warnings = said.stderr.lines().filter(|l| l.starts_with("warning: blob cache ")).count();
    assert_eq!(warnings, 1, "{}", said.stderr);
}

/// A cleanup of untagged manifests takes what is deployed: it runs on, and a run says so within `evidence.rescan`.
#[test]
fn b60_a_deployed_artifact_that_vanished_is_said_and_stays() {
    let place = Place::new();
    fleet::ground(&place);
    fleet::settings(&place, "./shop.git", "{layout: ./registry}");
    fleet::order(&place, "shop/basket", "{mode: Automatic}");
    let digest = fleet::prepare(&place, "shop/basket", 1, "shop/basket");
    let run =
        |at: &str| place.expedite(&["run", "--config", "expedite.yaml", "--key", fleet::KEY, "--at", at]);
    run("2026-02-10T12:00:00Z").ok();
    let layout = layout::repository(&place.path("registry"), "shop/basket");
    let (bytes, entries) = (layout.bytes(&digest), layout.entries());
    std::fs::remove_file(layout.blob(&digest)).unwrap();
    let rest: Vec<Value> = entries.iter().filter(|e| e["digest"] != digest.as_str()).cloned().collect();
    layout.set_entries(&rest);
    // In one hour of a day it is looked at; from then on it is looked for in every run.
    let mut found = 0;
    for hour in 0..24 {
        let before = head(&place);
        let said = run(&format!("2026-02-11T{hour:02}:30:00Z"));
        said.ok();
        match said.stderr.contains("what is deployed is not recoverable: the artifact is not in the registry")
        {
            true => found += 1,
            false => assert_eq!((found, head(&place)), (0, before), "{}", said.stderr),
        }
        assert_eq!(pinned(&place, "shop/basket"), std::slice::from_ref(&digest));
    }
    assert!(found > 0, "it was looked at within a day");
    let said = condition(&serving(&place, "shop/basket"), "Verified");
    assert_eq!(said, ("False".to_owned(), "ArtifactNotFound".to_owned()));
    let stable = head(&place);
    run("2026-02-12T00:30:00Z").ok();
    assert_eq!(head(&place), stable, "the message is stable");
    std::fs::write(layout.blob(&digest), bytes).unwrap();
    layout.set_entries(&entries);
    run("2026-02-12T01:30:00Z").ok();
    assert_eq!(condition(&serving(&place, "shop/basket"), "Verified").1, "SignaturesVerified");
}
