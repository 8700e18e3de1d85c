//! Kept verdicts: what is deployed is shown as it was verified and asks nothing; what is promoted is read afresh,
//! whatever stands in git; what does not prove is never kept.

use crate::evidence::{over_http, through};
use crate::harness::{Place, Said};
use crate::*;
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
    let Some(registry) = crate::servers::refreg() else { return };
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
    let Some(registry) = crate::servers::refreg() else { return };
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
