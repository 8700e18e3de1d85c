//! The example installation, whose evidence real cosign wrote: proven, unsigned, a stranger's.

use super::{AT, claim, json, snapshot};
use crate::support::harness::Place;
use crate::support::layout::repository;

const HOST: &str = "registry.shop.example:5000";

fn verify(place: &Place, reference: &str, order: &str, more: &[&str]) -> crate::support::harness::Said {
    let own = ["verify", reference, "--order", order, "--config", "expedite.yaml", "--at", AT];
    place.expedite(&[&own, more].concat())
}

#[test]
fn a_tag_is_resolved_once_and_every_claim_says_what_it_rests_on() {
    let place = Place::with_shop();
    let reference = format!("{HOST}/shop/catalog:1.5.0");
    let said = verify(&place, &reference, "shop/catalog", &[]);
    said.ok();
    snapshot("shop-proven", "expedite verify …/shop/catalog:1.5.0 --order shop/catalog", &said);
    let said = verify(&place, &reference, "shop/catalog", &["-o", "json"]);
    said.ok();
    snapshot("shop-proven-json", "expedite verify …/shop/catalog:1.5.0 --order shop/catalog -o json", &said);
    let digest = repository(&place.path("registry"), "shop/catalog").tagged("1.5.0");
    assert_eq!(json(&said)["digest"], digest.as_str());
}

#[test]
fn both_families_of_evidence_count() {
    let place = Place::with_shop();
    let reference = format!("{HOST}/shop-staging/catalog:1.5.0");
    let said = verify(&place, &reference, "shop-staging/catalog", &["-o", "json"]);
    said.ok();
    let result = json(&said);
    assert_eq!(claim(&result, "signature")["evidence"][0]["place"], ".sig tag");
    assert_eq!(claim(&result, "provenance")["evidence"][0]["place"], ".att tag");
}

#[test]
fn what_is_missing_and_what_does_not_count_is_5() {
    let place = Place::with_shop();
    for (order, outcome) in [("shop/mailer", "Missing"), ("shop/search", "Invalid")] {
        let layout = repository(&place.path("registry"), order);
        let tag = "org.opencontainers.image.ref.name";
        let version = layout.entries().iter().find_map(|e| {
            let tag = e["annotations"][tag].as_str()?;
            (!tag.starts_with("sha256-")).then(|| tag.to_owned())
        });
        let reference = format!("{HOST}/{order}:{}", version.unwrap());
        let said = verify(&place, &reference, order, &[]);
        said.exits(5);
        let name = order.rsplit('/').next().unwrap();
        snapshot(&format!("shop-{name}"), &format!("expedite verify …/{order} --order {order}"), &said);
        let result = json(&verify(&place, &reference, order, &["-o", "json"]));
        assert_eq!(result["outcome"], outcome);
        assert_eq!(claim(&result, "artifact")["outcome"], "Proven");
        assert_eq!(claim(&result, "signature")["outcome"], outcome);
        assert_eq!(claim(&result, "provenance")["outcome"], outcome);
        let looked = claim(&result, "signature")["candidates"].as_array().unwrap().len();
        assert_eq!(looked, usize::from(outcome == "Invalid"));
    }
}

#[test]
fn what_cannot_be_read_is_1_and_never_missing() {
    let place = Place::with_shop();
    let layout = repository(&place.path("registry"), "shop/catalog");
    let digest = layout.tagged("1.5.0");
    let bundle = layout.bundle(&digest, "https://sigstore.dev/cosign/sign/v1");
    layout.flip(layout.manifest(&bundle)["layers"][0]["digest"].as_str().unwrap());
    let reference = format!("{HOST}/shop/catalog@{digest}");
    let said = verify(&place, &reference, "shop/catalog", &["-o", "json"]);
    said.exits(1);
    let result = json(&said);
    assert_eq!((&result["outcome"], &result["tag"]), (&"Unread".into(), &serde_json::Value::Null));
    assert_eq!(claim(&result, "signature")["reason"], "RegistryError");
    assert_eq!(claim(&result, "provenance")["outcome"], "Proven", "one good piece is enough");

    // Port 1 of this machine: nobody listens there.
    place.edit("expedite.yaml", "layout: ./registry", "mirror: http://127.0.0.1:1");
    for more in [&["-o", "json"][..], &["-o", "json", "--offline"]] {
        let said = verify(&place, &reference, "shop/catalog", more);
        said.exits(1);
        let result = json(&said);
        for name in ["artifact", "signature", "provenance"] {
            assert_eq!(claim(&result, name)["outcome"], "Unread", "{name}");
            assert_eq!(claim(&result, name)["reason"], "RegistryUnreachable", "{name}");
        }
    }
    verify(&place, &format!("{HOST}/shop/catalog:1.5.0"), "shop/catalog", &[]).exits(1);
}

#[test]
fn an_artifact_that_is_not_there_is_said_before_its_evidence() {
    let place = Place::with_shop();
    let reference = format!("{HOST}/shop/catalog@sha256:{}", "7".repeat(64));
    let said = verify(&place, &reference, "shop/catalog", &["-o", "json"]);
    said.exits(5);
    let result = json(&said);
    for name in ["artifact", "signature", "provenance"] {
        assert_eq!(claim(&result, name)["reason"], "ArtifactNotFound", "{name}");
    }
    let said = verify(&place, &format!("{HOST}/shop/catalog:9.9.9"), "shop/catalog", &[]);
    said.exits(5);
    assert!(said.stderr.contains("the registry has no such tag"), "{}", said.stderr);
}

#[test]
fn the_evidence_of_another_order_does_not_count() {
    let place = Place::with_shop();
    let said = verify(&place, &format!("{HOST}/shop/catalog:1.5.0"), "shop/basket", &["-o", "json"]);
    said.exits(5);
    let result = json(&said);
    assert_eq!(claim(&result, "signature")["outcome"], "Proven");
    let provenance = claim(&result, "provenance");
    assert_eq!(provenance["outcome"], "Invalid");
    assert!(provenance["message"].as_str().unwrap().contains("shop/catalog"), "{provenance}");
}

#[test]
fn wrong_usage_is_64() {
    let place = Place::with_shop();
    let digest = repository(&place.path("registry"), "shop/catalog").tagged("1.5.0");
    let good = format!("{HOST}/shop/catalog@{digest}");
    for arguments in [
        &["verify", &good][..],
        &["verify", "--order", "shop/catalog"],
        &["verify", &format!("{HOST}/shop/catalog"), "--order", "shop/catalog"],
        &["verify", "shop/catalog:1.5.0", "--order", "shop/catalog"],
        &["verify", &good, "--order", "catalog"],
        &["verify", &good, "--order", "shop/catalog", "--overwrite"],
        &["verify", &good, "--order", "shop/catalog", "--bundled-trust"],
        &["verify", &good, "--order", "shop/catalog", "--save", "a", "--bundle", "b"],
        &["verify", &format!("{HOST}/shop/catalog:1.5.0"), "--order", "shop/catalog", "--bundle", "b"],
    ] {
        let said = place.expedite(arguments);
        said.exits(64);
        assert_eq!(said.stdout, "", "{arguments:?}");
    }
    place.expedite(&["verify", &good, "-n", "shop", "--order", "catalog", "--config", "expedite.yaml"]).ok();
}

#[test]
fn no_repository_is_needed_where_the_trust_comes_from_elsewhere() {
    let place = Place::with_shop();
    let settings = place.read("expedite.yaml");
    let (before, rest) = settings.split_once("repository:\n").unwrap();
    let (_, after) = rest.split_once("registries:").unwrap();
    place.write("expedite.yaml", format!("{before}registries:{after}"));
    let reference = format!("{HOST}/shop/catalog:1.5.0");
    verify(&place, &reference, "shop/catalog", &[]).ok();
    // Only the Kitchen: then nobody knows what the Order demands, and that is said.
    let said = verify(&place, &reference, "shop/catalog", &["--from", "objects/kitchen.yaml"]);
    assert!(said.ok().contains("proven, as far as is known without the Order"), "{}", said.stdout);
    assert!(said.stderr.contains("warning: Order shop/catalog: it was not read"), "{}", said.stderr);
    let said = verify(&place, &reference, "shop/catalog", &["--from", "objects/kitchen.yaml", "-o", "json"]);
    assert_eq!(json(&said)["demands"], serde_json::Value::Null);
    // A repository that was named has to be there.
    verify(&place, &reference, "shop/catalog", &["--repo", "nowhere.git"]).exits(1);
}

#[test]
fn a_promotion_shows_its_record() {
    let place = Place::with_shop();
    place.expedite(&["run", "--config", "expedite.yaml", "--at", AT]).ok();
    let said = verify(&place, &format!("{HOST}/shop/catalog:1.5.0"), "shop/catalog", &["-o", "json"]);
    said.ok();
    let result = json(&said);
    let promotion = claim(&result, "promotion");
    assert_eq!(promotion["outcome"], "Proven", "{promotion}");
    assert_eq!(promotion["evidence"][0]["time"], AT);
    let message = promotion["message"].as_str().unwrap();
    assert!(message.contains(&format!("promoted to production at {AT}")), "{message}");
    assert_eq!(claim(&result, "deployment")["outcome"], "Missing");
    // It goes into the file, and is proven from there.
    let digest = result["digest"].as_str().unwrap();
    let reference = format!("{HOST}/shop/catalog@{digest}");
    verify(&place, &reference, "shop/catalog", &["--save", "catalog.tar"]).ok();
    std::fs::remove_dir_all(place.path("registry")).unwrap();
    std::fs::remove_dir_all(place.path("shop.git")).unwrap();
    let said = verify(&place, &reference, "shop/catalog", &["--bundle", "catalog.tar", "-o", "json"]);
    said.ok();
    assert_eq!(claim(&json(&said), "promotion")["outcome"], "Proven");
}
