//! Real registries over HTTP, artifacts that real cosign signed: verified, saved, verified again without them.

use super::{claim, json};
use crate::support::harness::Place;
use crate::support::peers::peer;
use crate::support::servers::{self, Server};
use std::fs;
use std::path::Path;

const TAR: &str = "application/vnd.oci.image.layer.v1.tar";

fn cosign(place: &Place, program: &Path, arguments: &[&str]) {
    let mut command = place.command(program);
    command.args(arguments).env("COSIGN_PASSWORD", "");
    place.finish(command).ok();
}

/// Pushes an artifact, signs it and attests its provenance in this layout. Gives its digest.
fn push(place: &Place, server: &Server, name: &str, path: &str, bundles: bool) -> Option<String> {
    let (oras, program) = (peer("oras")?, peer(name)?);
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(path.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, "deploy.yaml", path.as_bytes()).unwrap();
    place.write("artifact.tar", tar.into_inner().unwrap());
    let reference = format!("{}/{path}", server.address);
    let mut command = place.command(&oras);
    command.args(["push", "--plain-http", "--no-tty", "--format", "go-template={{.digest}}"]);
    command.args([&format!("{reference}:v1"), &format!("artifact.tar:{TAR}")]);
    let digest = place.finish(command).ok().trim().to_owned();
    place.write(
        "slsa.json",
        format!(
            r#"{{"buildDefinition": {{"buildType": "https://ci.example/render", "externalParameters": {{"order": {{"namespace": "shop", "name": "podinfo"}}}}, "resolvedDependencies": []}}, "runDetails": {{"builder": {{"id": "https://ci.example/{name}"}}, "metadata": {{"finishedOn": "2026-01-01T00:00:00Z"}}}}}}"#
        ),
    );
    let mut flags = vec!["--key", "cosign.key", "--yes", "--tlog-upload=false", "--allow-http-registry"];
    match (name, bundles) {
        ("cosign3", true) => flags.push("--use-signing-config=false"),
        ("cosign3", false) => flags.extend(["--use-signing-config=false", "--new-bundle-format=false"]),
        (_, true) => flags.push("--new-bundle-format"),
        (_, false) => {}
    }
    let pinned = format!("{reference}@{digest}");
    cosign(place, &program, &[&["sign"], &flags[..], &[&pinned]].concat());
    let more = ["--type", "slsaprovenance1", "--predicate", "slsa.json"];
    cosign(place, &program, &[&["attest"], &flags[..], &more, &[&pinned]].concat());
    Some(digest)
}

fn kitchen(place: &Place) {
    let key: String = place.read("cosign.pub").lines().map(|l| format!("        {l}\n")).collect();
    place.write(
        "objects/kitchen.yaml",
        format!(
            "apiVersion: delivery.kokumi.dev/v1alpha1\nkind: Kitchen\nmetadata: {{name: default}}\nspec:\n  trust:\n    keys:\n    - name: renderer\n      publicKey: |\n{key}"
        ),
    );
    place.write(
        "objects/order.yaml",
        "apiVersion: delivery.kokumi.dev/v1alpha1\nkind: Order\nmetadata: {name: podinfo, namespace: shop}\nspec: {}\n",
    );
}

#[test]
fn what_cosign_signed_is_verified_saved_and_verified_from_the_file() {
    let place = Place::new();
    let Some(cosign3) = peer("cosign3") else { return };
    let (Some(refreg), Some(docker)) = (servers::refreg(), servers::docker_registry()) else { return };
    cosign(&place, &cosign3, &["generate-key-pair"]);
    kitchen(&place);
    for (registry, server) in [("refreg", &refreg), ("docker", &docker)] {
        for name in ["cosign3", "cosign2"] {
            for bundles in [true, false] {
                let path = format!("shop/{name}-{bundles}");
                let Some(digest) = push(&place, server, name, &path, bundles) else { return };
                place.write(
                    "expedite.yaml",
                    format!(
                        "sources: [{{path: ./objects}}]\nregistries: {{\"{}\": {{plainHttp: true}}}}\n",
                        server.address
                    ),
                );
                let tagged = format!("{}/{path}:v1", server.address);
                let pinned = format!("{}/{path}@{digest}", server.address);
                let file = format!("{registry}-{name}-{bundles}.tar");
                let verify = |reference: &str, more: &[&str]| {
                    let own = ["verify", reference, "--order", "shop/podinfo", "-o", "json"];
                    place.expedite(&[&own, more].concat())
                };
                let said = verify(&tagged, &["--save", &file]);
                said.ok();
                assert!(said.stderr.contains(&format!(":v1 is {digest} now")), "{}", said.stderr);
                let online = json(&said);
                let where_found = claim(&online, "signature")["evidence"][0]["place"].as_str().unwrap();
                let expected = match (bundles, registry) {
                    (false, _) => ".sig tag",
                    (true, "refreg") => "referrers API",
                    (true, _) => "fallback tag",
                };
                assert_eq!(where_found, expected, "{path}");
                // No registry is known any more: the same digests prove the same claims.
                place.write("expedite.yaml", "sources: [{path: ./objects}]\n");
                let said = verify(&pinned, &["--bundle", &file]);
                said.ok();
                let offline = json(&said);
                for name in ["artifact", "signature", "provenance"] {
                    let (before, after) = (claim(&online, name), claim(&offline, name));
                    assert_eq!(after["outcome"], "Proven");
                    for member in ["digest", "blob", "key"] {
                        assert_eq!(
                            after["evidence"][0][member], before["evidence"][0][member],
                            "{path} {name}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_tag_that_moves_is_read_once_and_the_cache_can_only_miss() {
    let place = Place::new();
    let Some(cosign3) = peer("cosign3") else { return };
    let Some(server) = servers::refreg() else { return };
    cosign(&place, &cosign3, &["generate-key-pair"]);
    kitchen(&place);
    place.write(
        "expedite.yaml",
        format!(
            "sources: [{{path: ./objects}}]\nregistries: {{\"{}\": {{plainHttp: true}}}}\nevidence: {{cacheDir: ./cache}}\n",
            server.address
        ),
    );
    let Some(digest) = push(&place, &server, "cosign3", "shop/podinfo", true) else { return };
    let pinned = format!("{}/shop/podinfo@{digest}", server.address);
    let verify = || place.expedite(&["verify", &pinned, "--order", "shop/podinfo", "-v", "-o", "json"]);
    let first = verify();
    first.ok();
    let blobs = |said: &crate::support::harness::Said| {
        said.stderr.lines().filter(|l| l.starts_with("GET ") && l.contains("/blobs/")).count()
    };
    assert!(blobs(&first) >= 3, "layer, signature, provenance: {}", first.stderr);
    let second = verify();
    second.ok();
    assert_eq!(blobs(&second), 0, "{}", second.stderr);
    assert_eq!(json(&second)["claims"], json(&first)["claims"]);
    // Poisoned, as a shared CI cache may be: fetched again, and nothing else.
    let kept: Vec<_> = fs::read_dir(place.path("cache/sha256")).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(kept.len() >= 3, "{kept:?}");
    for file in &kept {
        let length = fs::read(file).unwrap().len();
        fs::write(file, vec![b'x'; length]).unwrap();
    }
    let third = verify();
    third.ok();
    assert_eq!(blobs(&third), blobs(&first), "{}", third.stderr);
    assert_eq!(json(&third)["claims"], json(&first)["claims"]);
    for file in &kept {
        let hash = Digest::hash_bytes(&fs::read(file).unwrap()).format_hex();
        assert_eq!(hash, file.file_name().unwrap().to_str().unwrap(), "it is mended");
    }
}

use expedite::model::id::Digest;
