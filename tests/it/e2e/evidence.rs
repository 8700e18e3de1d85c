//! What the registry holds, and what it does not: each fault holds its Order alone.

use super::*;
use crate::support::harness::Place;
use crate::support::layout::{Layout, repository};

const SIGNATURE: &str = "https://sigstore.dev/cosign/sign/v1";
const PROVENANCE: &str = "https://slsa.dev/provenance/v1";

/// The layout of shop-dev/catalog, and the digest of its newest artifact.
fn newest(place: &Place) -> (Layout, String) {
    let layout = repository(&place.path("registry"), "shop-dev/catalog");
    let digest = layout.tagged("1.6.0");
    (layout, digest)
}

/// The layer of a bundle's manifest.
fn layer(layout: &Layout, manifest: &str) -> String {
    layout.manifest(manifest)["layers"][0]["digest"].as_str().unwrap().to_owned()
}

/// shop-dev/catalog is held for `reason`, and nothing but it.
#[track_caller]
fn held_alone(place: &Place, reason: &str, status: i32) {
    let said = run(place);
    let table = said.exits(status);
    assert_eq!(row(table, "shop-dev", "catalog")["VERIFIED"], reason, "{table}");
    assert_eq!(pinned(place, "shop-dev/catalog"), Vec::<String>::new());
    let reason = (condition(&serving(place, "shop-dev/catalog"), "Verified").1, reason.to_owned());
    assert_eq!(reason.0, reason.1);
    for order in ["shop/catalog", "shop-staging/catalog", "shop-dev/storefront"] {
        assert_eq!(pinned(place, order).len(), 1, "{order} goes on");
    }
}

#[test]
fn an_unsigned_artifact_is_signature_missing() {
    let place = Place::with_shop();
    let (layout, digest) = newest(&place);
    let signature = layout.bundle(&digest, SIGNATURE);
    let entries: Vec<_> =
        layout.entries().into_iter().filter(|e| e["digest"] != signature.as_str()).collect();
    layout.set_entries(&entries);
    held_alone(&place, "SignatureMissing", 0);
}

#[test]
fn an_artifact_without_provenance_is_held() {
    let place = Place::with_shop();
    let (layout, digest) = newest(&place);
    let provenance = layout.bundle(&digest, PROVENANCE);
    let entries: Vec<_> =
        layout.entries().into_iter().filter(|e| e["digest"] != provenance.as_str()).collect();
    layout.set_entries(&entries);
    held_alone(&place, "SignatureMissing", 0);
}

#[test]
fn provenance_of_another_order_does_not_count() {
    // The same service in another stage: signed by the right key, for another digest and another Order.
    let place = Place::with_shop();
    let (layout, digest) = newest(&place);
    let other = repository(&place.path("registry"), "shop/catalog");
    let foreign = other.bundle(&other.tagged("1.5.0"), PROVENANCE);
    let bytes = other.bytes(&layer(&other, &foreign));
    layout.replace_layer(&layout.bundle(&digest, PROVENANCE), &bytes);
    held_alone(&place, "SignatureInvalid", 0);
}

#[test]
fn a_strangers_key_is_signature_invalid() {
    let place = Place::with_shop();
    let stranger =
        std::fs::read_to_string(crate::support::harness::shop().join("keys/test-stranger.pub")).unwrap();
    let ours =
        std::fs::read_to_string(crate::support::harness::shop().join("keys/test-renderer.pub")).unwrap();
    let indented = |pem: &str| pem.lines().map(|l| format!("        {l}\n")).collect::<String>();
    place.edit("objects/kitchen.yaml", &indented(&ours), &indented(&stranger));
    let table = run(&place).ok().to_owned();
    assert_eq!(row(&table, "shop-dev", "catalog")["VERIFIED"], "SignatureInvalid", "{table}");
    // Who was the stranger is the one who is trusted now.
    assert_eq!(row(&table, "shop", "search")["VERIFIED"], "SignaturesVerified", "{table}");
    assert_eq!(pinned(&place, "shop/search").len(), 1);
}

#[test]
fn a_flipped_byte_of_the_evidence_is_a_registry_error() {
    let place = Place::with_shop();
    let (layout, digest) = newest(&place);
    layout.flip(&layer(&layout, &layout.bundle(&digest, SIGNATURE)));
    held_alone(&place, "RegistryError", 1);
}

#[test]
fn a_flipped_byte_of_the_artifact_is_a_registry_error() {
    let place = Place::with_shop();
    let (layout, digest) = newest(&place);
    layout.flip(&digest);
    held_alone(&place, "RegistryError", 1);
}

#[test]
fn an_artifact_that_is_not_there_is_artifact_not_found() {
    let place = Place::with_shop();
    let (layout, digest) = newest(&place);
    std::fs::remove_file(layout.blob(&digest)).unwrap();
    let entries: Vec<_> = layout.entries().into_iter().filter(|e| e["digest"] != digest.as_str()).collect();
    layout.set_entries(&entries);
    held_alone(&place, "ArtifactNotFound", 0);
}

#[test]
fn a_wrong_signature_that_hashes_right_is_signature_invalid() {
    let place = Place::with_shop();
    let (layout, digest) = newest(&place);
    let manifest = layout.bundle(&digest, SIGNATURE);
    let mut bundle: serde_json::Value =
        serde_json::from_slice(&layout.bytes(&layer(&layout, &manifest))).unwrap();
    let statement = repository(&place.path("registry"), "shop-dev/storefront");
    let other = statement.bundle(&statement.tagged("12.4.0"), SIGNATURE);
    let other: serde_json::Value =
        serde_json::from_slice(&statement.bytes(&layer(&statement, &other))).unwrap();
    bundle["dsseEnvelope"]["signatures"] = other["dsseEnvelope"]["signatures"].clone();
    layout.replace_layer(&manifest, &serde_json::to_vec(&bundle).unwrap());
    held_alone(&place, "SignatureInvalid", 0);
}

#[test]
fn a_registry_that_is_down_changes_nothing_that_is_deployed() {
    let place = Place::with_shop();
    // shop-dev/catalog deploys 1.5.0 first: its newest Preparation comes later.
    let all = place.read("objects/preparations/shop-dev-catalog.yaml");
    let (before, _) = all.rsplit_once("---\n").unwrap();
    place.write("objects/preparations/shop-dev-catalog.yaml", before);
    run(&place).ok();
    let deployed = tree(&place).into_iter().filter(|(path, _)| path.starts_with("applications/"));
    let deployed: BTreeMap<_, _> = deployed.collect();
    assert_eq!(pinned(&place, "shop-dev/catalog"), [artifact(&place, "shop-dev/catalog", "1.5.0")]);

    place.write("objects/preparations/shop-dev-catalog.yaml", all);
    // Port 1 of this machine: nobody listens there.
    through(&place, "http://127.0.0.1:1");
    let table = run(&place).exits(1).to_owned();
    assert_eq!(row(&table, "shop-dev", "catalog")["VERIFIED"], "RegistryUnreachable", "{table}");
    let now = tree(&place).into_iter().filter(|(path, _)| path.starts_with("applications/"));
    assert_eq!(now.collect::<BTreeMap<_, _>>(), deployed);
}

/// From now on the shop's registry is the one at `url`.
pub fn through(place: &Place, url: &str) {
    place.edit("expedite.yaml", "layout: ./registry", &format!("mirror: {url}"));
}

/// Pushes the shop's layouts into `registry` and runs against it instead of the folder.
pub fn over_http(
    registry: &crate::support::servers::Server,
) -> Option<(Place, crate::support::harness::Said)> {
    let oras = crate::support::peers::peer("oras")?;
    let place = Place::with_shop();
    for order in [
        "shop-dev/catalog",
        "shop-dev/storefront",
        "shop-staging/catalog",
        "shop/catalog",
        "shop/mailer",
        "shop/search",
        "shop/storefront",
    ] {
        let layout = repository(&place.path("registry"), order);
        for entry in layout.entries() {
            let Some(tag) = entry["annotations"]["org.opencontainers.image.ref.name"].as_str() else {
                continue;
            };
            let mut command = place.command(&oras);
            command.args(["copy", "-r", "--no-tty", "--from-oci-layout", &format!("registry/{order}:{tag}")]);
            command.args(["--to-plain-http", &format!("{}/{order}:{tag}", registry.address)]);
            place.finish(command).ok();
        }
    }
    through(&place, &format!("http://{}", registry.address));
    let said = run(&place);
    Some((place, said))
}

#[test]
fn registries_with_and_without_the_referrers_api_prove_what_the_folder_proves() {
    let reference = Place::with_shop();
    run(&reference).ok();
    for registry in
        [crate::support::servers::refreg(), crate::support::servers::docker_registry()].into_iter().flatten()
    {
        let Some((place, said)) = over_http(&registry) else { return };
        said.ok();
        let applications = |place: &Place| -> BTreeMap<String, String> {
            tree(place).into_iter().filter(|(path, _)| path.starts_with("applications/")).collect()
        };
        assert_eq!(applications(&place), applications(&reference));
        for (order, reason) in [("shop/mailer", "SignatureMissing"), ("shop/search", "SignatureInvalid")] {
            assert_eq!(condition(&serving(&place, order), "Verified").1, reason, "{order}");
        }
    }
}
