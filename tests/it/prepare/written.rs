//! What is written, and where.

use super::{HOST, made, prepare, tagged};
use crate::support::harness::Place;
use serde_json::{Value, json};

fn yaml(text: &str) -> Value {
    serde_yaml::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn what_the_shop_has_is_made_again_field_by_field() {
    let place = Place::with_shop();
    let digest = tagged(&place, "shop/catalog", "1.5.0");
    let known = place.read("objects/preparations/shop-catalog.yaml");
    let known = known.split("---\n").map(yaml).find(|p| p["spec"]["artifact"]["digest"] == digest.as_str());
    let known = known.unwrap();
    let base = known["spec"]["source"]["baseDigest"].as_str().unwrap();
    let reference = format!("{HOST}/shop/catalog:1.5.0");
    let said = prepare(&place, &reference, "shop/catalog", &["--base-digest", base]);
    let object = yaml(said.ok());
    assert!(said.stderr.contains(&format!("{reference} is {digest} now")), "{}", said.stderr);
    for field in ["/apiVersion", "/kind", "/metadata", "/spec/orderName", "/spec/source", "/spec/artifact"] {
        assert_eq!(object.pointer(field), known.pointer(field), "{field}");
    }
    // Under -o json it is the same object, under -o name its name, and the pinned reference is as good as the tag.
    let pinned = format!("{HOST}/shop/catalog@{digest}");
    let more = |more: &[&str]| {
        let all = [&["--base-digest", base], more].concat();
        prepare(&place, &pinned, "shop/catalog", &all).ok().to_owned()
    };
    assert_eq!(more(&[]), said.stdout);
    assert_eq!(serde_json::from_str::<Value>(&more(&["-o", "json"])).unwrap(), object);
    let name = known["metadata"]["name"].as_str().unwrap();
    assert_eq!(more(&["-o", "name"]), format!("preparation.delivery.kokumi.dev/shop/{name}\n"));
    assert_eq!(more(&["-o", "name", "-n", "shop"]), format!("preparation.delivery.kokumi.dev/{name}\n"));
    assert_eq!(yaml(&more(&["--name", "first"]))["metadata"]["name"], "first");
}

#[test]
fn a_file_is_written_once_and_never_over_another() {
    let place = Place::with_shop();
    let digest = tagged(&place, "shop/catalog", "1.5.0");
    let reference = format!("{HOST}/shop/catalog@{digest}");
    let name = format!("catalog-{}", &digest["sha256:".len()..][..12]);
    let path = format!("elsewhere/shop/{name}.yaml");
    // Among the shop's objects already.
    let there = prepare(&place, &reference, "shop/catalog", &["--into", "elsewhere"]);
    assert_eq!(there.ok(), "./objects/preparations/shop-catalog.yaml\n");
    assert!(!place.path("elsewhere").exists());
    place.write("objects/preparations/shop-catalog.yaml", "");

    let written = prepare(&place, &reference, "shop/catalog", &["--into", "elsewhere"]);
    assert_eq!(written.ok(), format!("{path}\n"));
    let text = place.read(&path);
    assert_eq!(prepare(&place, &reference, "shop/catalog", &[]).ok(), text);
    let again = prepare(&place, &reference, "shop/catalog", &["--into", "elsewhere", "-o", "name"]);
    assert_eq!(again.ok(), format!("preparation.delivery.kokumi.dev/shop/{name}\n"));
    assert!(again.stderr.contains("and the same"), "{}", again.stderr);

    // Edited by hand, it is still this artifact's: left alone, and said. Of another artifact: refused.
    place.edit(&path, "orderName: catalog", "orderName: catalog # by hand");
    let edited = prepare(&place, &reference, "shop/catalog", &["--into", "elsewhere"]);
    assert_eq!(edited.ok(), format!("{path}\n"));
    assert!(edited.stderr.contains("warning: ") && edited.stderr.contains(&path), "{}", edited.stderr);
    assert!(place.read(&path).contains("by hand"));
    for other in [text.replace(&digest, &format!("sha256:{}", "0".repeat(64))), "no: Preparation\n".into()] {
        place.write(&path, &other);
        let refused = prepare(&place, &reference, "shop/catalog", &["--into", "elsewhere"]);
        assert_eq!(refused.exits(5), "");
        assert!(refused.stderr.contains("hint: "), "{}", refused.stderr);
        assert_eq!(place.read(&path), other);
    }
}

#[test]
fn what_is_written_is_what_a_run_promotes() {
    let place = Place::with_shop();
    place.write("objects/preparations/shop-catalog.yaml", "");
    let said = prepare(&place, &format!("{HOST}/shop/catalog:1.5.0"), "shop/catalog", &["--into", "objects"]);
    said.ok();
    let run = place.expedite(&["run", "--config", "expedite.yaml", "--at", "2026-02-10T12:00:00Z"]);
    assert!(run.stdout.contains("shop/catalog: promotes catalog-"), "{}", run.transcript("run"));
}

#[test]
fn annotations_are_read_and_neutralised() {
    let place = Place::with_shop();
    let base = format!("sha256:{}", "b".repeat(64));
    let hostile = "fix: a\u{1b}[31m \u{202e}txt\n---\nkind: Kitchen\n::error::x";
    let annotations = json!({
        "org.opencontainers.image.created": "2026-01-05T10:00:00Z",
        "org.opencontainers.image.description": hostile,
        "org.opencontainers.image.source": "https://git.shop.example/shop/search.git",
        "org.opencontainers.image.revision": "0123456789",
        "org.opencontainers.image.version": "v1",
        "org.opencontainers.image.base.digest": base,
        "org.opencontainers.image.base.name": format!("{HOST}/bases/search:1"),
        "kokumi.dev/parent": format!("sha256:{}", "a".repeat(64)),
    });
    let listed = json!([{"digest": {"sha256": "b".repeat(64)}}]);
    let digest = made(&place, "shop/search", &annotations, &listed);
    let reference = format!("{HOST}/shop/search@{digest}");
    let said = prepare(&place, &reference, "shop/search", &[]);
    let object = yaml(said.ok());
    assert!(!said.stdout.contains(['\u{1b}', '\u{202e}']), "{:?}", said.stdout);
    assert_eq!(serde_yaml::Deserializer::from_str(said.ok()).count(), 1);
    assert_eq!(object["metadata"]["creationTimestamp"], "2026-01-05T10:00:00Z");
    let spec = &object["spec"];
    assert_eq!(spec["commitMessage"], hostile);
    assert_eq!(spec["source"], json!({"oci": format!("oci://{HOST}/bases/search"), "baseDigest": base}));
    assert_eq!(spec["parentDigest"], format!("sha256:{}", "a".repeat(64)));
    let git = json!({
        "repo": "https://git.shop.example/shop/search.git", "commitHash": "0123456789", "tag": "v1",
    });
    assert_eq!(spec["gitSource"], git);
    assert!(spec["configHash"].as_str().unwrap().starts_with("sha256:"));
    // A runner's log gets the same bytes as the file, and no command in them.
    let path = prepare(&place, &reference, "shop/search", &["--into", "elsewhere"]);
    assert_eq!(place.read(path.ok().trim()), said.stdout);
    let own = ["prepare", &reference, "--order", "shop/search", "--config", "expedite.yaml"];
    let mut command = place.binary(&own);
    command.env("GITHUB_ACTIONS", "true");
    assert_eq!(place.finish(command).ok(), said.stdout);
    assert!(said.stdout.lines().all(|line| !line.trim_start().starts_with("::")), "{}", said.stdout);
}
