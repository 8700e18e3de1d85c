//! Evidence bundles: saved, verified without the registry, by whose keys.

use super::bench::{self, APPROVAL, Bench};
use super::{AT, claim, json, snapshot};
use crate::support::forge::Renderer;
use crate::support::peers::peer;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;

/// The files of a tar.
pub fn files(tar: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut archive = tar::Archive::new(tar);
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        (entry.path().unwrap().to_str().unwrap().to_owned(), bytes)
    });
    entries.collect()
}

#[test]
fn one_file_proves_without_a_registry_what_the_registry_proved() {
    let bench = Bench::whole();
    let online = json(&bench.verify(&["-o", "json"]));
    let said = bench.verify(&["--save", "podinfo.tar"]);
    said.ok();
    snapshot(
        "save",
        "expedite verify r.example/shop/podinfo@sha256:… --order shop/podinfo --save podinfo.tar",
        &said,
    );
    bench.forget_registry();
    let said = bench.verify(&["--bundle", "podinfo.tar"]);
    said.ok();
    snapshot(
        "bundle",
        "expedite verify r.example/shop/podinfo@sha256:… --order shop/podinfo --bundle podinfo.tar",
        &said,
    );
    let said = bench.verify(&["--bundle", "podinfo.tar", "-o", "json"]);
    said.ok();
    let offline = json(&said);
    assert_eq!(offline["claims"], online["claims"], "claim by claim the same");
    assert_eq!((&offline["trust"], &offline["demands"]), (&online["trust"], &online["demands"]));
    assert_eq!(offline["readFrom"]["kind"], "Bundle");
    assert_eq!(offline["readFrom"]["file"], "podinfo.tar");
}

#[test]
fn the_same_evidence_is_the_same_bytes() {
    let bench = Bench::whole();
    let first = bench.saved("first.tar");
    assert_eq!(first, bench.saved("second.tar"));
    // In whatever order the registry lists it.
    let mut entries = bench.layout.entries();
    entries.reverse();
    bench.layout.set_entries(&entries);
    assert_eq!(first, bench.saved("third.tar"));
    let mut archive = tar::Archive::new(&first[..]);
    for entry in archive.entries().unwrap() {
        let header = entry.unwrap().header().clone();
        assert_eq!((header.mtime().unwrap(), header.uid().unwrap(), header.gid().unwrap()), (0, 0, 0));
        assert_eq!(header.mode().unwrap(), 0o644);
    }
    let mode = fs::metadata(bench.place.path("first.tar")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    let said = bench.verify(&["--bundle", "first.tar", "-o", "json"]);
    assert_eq!(
        json(&said)["readFrom"]["digest"],
        expedite::model::id::Digest::hash_bytes(&first).to_string()
    );
}

#[test]
fn it_is_an_image_layout_that_others_read() {
    let Some(oras) = peer("oras") else { return };
    let Some(tar) = peer("tar") else { return };
    let Some(sums) = peer("sha256sum") else { return };
    let bench = Bench::whole();
    let bytes = bench.saved("podinfo.tar");
    let files = files(&bytes);
    let manifest = &files[&format!("blobs/{}", bench.digest.replace(':', "/"))];
    let mut command = bench.place.command(&oras);
    command.args(["manifest", "fetch", "--oci-layout", &format!("podinfo.tar@{}", bench.digest)]);
    assert_eq!(bench.place.finish(command).ok().as_bytes(), manifest);
    let mut command = bench.place.command(&oras);
    command.args(["discover", "--oci-layout", "--format", "json", &format!("podinfo.tar@{}", bench.digest)]);
    let found: serde_json::Value = serde_json::from_str(bench.place.finish(command).ok()).unwrap();
    assert_eq!(found["referrers"].as_array().unwrap().len(), 7, "{found:#}");
    // And whoever unpacks it can check it by hand.
    fs::create_dir(bench.place.path("out")).unwrap();
    let mut command = bench.place.command(&tar);
    command.args(["-xf", "../podinfo.tar"]).current_dir(bench.place.path("out"));
    bench.place.finish(command).ok();
    let mut command = bench.place.command(&sums);
    command.args(["--check", "--strict", "expedite/SHA256SUMS"]).current_dir(bench.place.path("out"));
    assert_eq!(bench.place.finish(command).ok().lines().count(), files.len() - 1);
}

#[test]
fn no_network_is_used() {
    let Some(strace) = peer("strace") else { return };
    let bench = Bench::whole();
    bench.saved("podinfo.tar");
    for more in [&[][..], &["--bundled-trust", "--repo", "https://git.example/gitops.git"]] {
        let mut command = bench.place.command(&strace);
        command.args(["-f", "-qq", "-e", "trace=socket,connect", "-o", "trace.txt"]);
        command.arg(env!("CARGO_BIN_EXE_expedite")).args([
            "verify",
            &bench.reference(),
            "--order",
            "shop/podinfo",
        ]);
        command.args(["--at", AT, "--bundle", "podinfo.tar"]).args(more);
        let said = bench.place.finish(command);
        if said.stderr.contains("ptrace") {
            assert!(!crate::support::peers::required(), "strace may not trace here: {}", said.stderr);
            eprintln!("LEFT OUT: strace may not trace here");
            return;
        }
        said.ok();
        let trace = bench.place.read("trace.txt");
        assert!(!trace.contains("AF_INET"), "{trace}");
    }
}

#[test]
fn the_readers_own_keys_judge_and_the_files_only_when_asked() {
    let bench = Bench::whole();
    bench.saved("podinfo.tar");
    bench.forget_registry();
    let stranger = Renderer::new(9);
    bench.kitchen(&stranger.public_key(), &stranger.public_key());
    let said = bench.verify(&["--bundle", "podinfo.tar"]);
    said.exits(5);
    snapshot("bundle-stranger", "expedite verify … --bundle podinfo.tar", &said);
    let said = bench.verify(&["--bundle", "podinfo.tar", "--bundled-trust"]);
    said.ok();
    snapshot("bundle-bundled-trust", "expedite verify … --bundle podinfo.tar --bundled-trust", &said);
    let result = json(&bench.verify(&["--bundle", "podinfo.tar", "--bundled-trust", "-o", "json"]));
    assert_eq!(result["trust"]["whose"], "Bundled");
    // No Kitchen at all: nobody is trusted, and the file's keys do not step in.
    fs::remove_file(bench.place.path("objects/kitchen.yaml")).unwrap();
    let result = json(&bench.verify(&["--bundle", "podinfo.tar", "-o", "json"]));
    assert_eq!((&result["outcome"], &result["trust"]["whose"]), (&"Missing".into(), &"Own".into()));
}

#[test]
fn an_auditor_needs_a_folder_with_a_kitchen_and_nothing_else() {
    let bench = Bench::whole();
    bench.saved("podinfo.tar");
    let auditor = crate::support::harness::Place::new();
    fs::copy(bench.place.path("podinfo.tar"), auditor.path("podinfo.tar")).unwrap();
    auditor.write("mine/kitchen.yaml", bench.place.read("objects/kitchen.yaml"));
    let reference = bench.reference();
    let own = [
        "verify",
        &reference,
        "--order",
        "shop/podinfo",
        "--at",
        AT,
        "--bundle",
        "podinfo.tar",
        "--from",
        "mine",
    ];
    let said = auditor.expedite(&own);
    assert!(said.ok().contains("proven, as far as is known without the Order"), "{}", said.stdout);
    assert!(said.stderr.contains("which approvals and checks it demands is not known"), "{}", said.stderr);
    // The file says that approvals were demanded: that can only ask for more.
    let result = json(&auditor.expedite(&[&own[..], &["-o", "json"]].concat()));
    assert_eq!(claim(&result, "approvals")["outcome"], "Proven");
    assert_eq!(claim(&result, "approvals")["required"], true);
    // Without any source there is no repository to take a Kitchen from.
    let said = auditor.expedite(&own[..own.len() - 2]);
    said.exits(1);
    auditor.expedite(&[&own[..own.len() - 2], &["--bundled-trust"]].concat()).ok();
    // One on a server is not asked: that would be a network.
    let said =
        auditor.expedite(&[&own[..own.len() - 2], &["--repo", "https://git.example/gitops.git"]].concat());
    said.exits(64);
    assert!(
        said.stderr.contains("no network is used here") && said.stderr.contains("--from"),
        "{}",
        said.stderr
    );
    // One on this machine is read as it stands.
    auditor.git(&["init", "-q", "gitops"]);
    auditor.write("gitops/kitchen.yaml", bench.place.read("objects/kitchen.yaml"));
    auditor.git(&["-C", "gitops", "add", "."]);
    auditor.git(&["-C", "gitops", "commit", "-qm", "trust"]);
    let said = auditor.expedite(&[&own[..own.len() - 2], &["--repo", "gitops", "-o", "json"]].concat());
    said.ok();
    assert!(json(&said)["trust"]["origin"].as_str().unwrap().contains("kitchen.yaml:1"), "{}", said.stdout);
}

#[test]
fn a_file_is_never_written_over_silently_and_never_half() {
    let bench = Bench::whole();
    bench.place.write("podinfo.tar", "precious");
    let said = bench.verify(&["--save", "podinfo.tar"]);
    said.exits(1);
    assert!(said.stderr.contains("it is there already"), "{}", said.stderr);
    assert_eq!(bench.place.read("podinfo.tar"), "precious");
    assert_eq!(said.stdout, "", "told before anything is done");
    bench.verify(&["--save", "podinfo.tar", "--overwrite"]).ok();
    assert_eq!(fs::read(bench.place.path("podinfo.tar")).unwrap(), bench.saved("other.tar"));
    std::os::unix::fs::symlink("/nowhere/at/all", bench.place.path("link.tar")).unwrap();
    bench.verify(&["--save", "link.tar"]).exits(1);
    bench.verify(&["--save", "no/such/folder.tar"]).exits(1);
    let hidden = fs::read_dir(bench.place.root()).unwrap().map(|e| e.unwrap().file_name());
    let hidden: Vec<_> = hidden.filter(|n| n.to_str().unwrap().starts_with(".expedite-")).collect();
    assert_eq!(hidden, Vec::<std::ffi::OsString>::new(), "nothing half is left");
}

#[test]
fn what_is_not_proven_or_not_whole_is_not_saved() {
    let bench = Bench::bare();
    let said = bench.verify(&["--save", "podinfo.tar"]);
    said.exits(5);
    assert!(said.stderr.contains("nothing is saved"), "{}", said.stderr);
    // Proven, and one more piece is listed whose blob is gone.
    let bench = Bench::whole();
    bench.place.write("objects/order.yaml", PLAIN);
    bench.place.write("objects/environment.yaml", "");
    bench.verify(&[]).ok();
    let seal = bench.layout.bundle(&bench.digest, APPROVAL);
    let layer = bench.layout.manifest(&seal)["layers"][0]["digest"].as_str().unwrap().to_owned();
    fs::remove_file(bench.layout.blob(&layer)).unwrap();
    bench.verify(&[]).ok();
    let said = bench.verify(&["--save", "podinfo.tar"]);
    said.exits(1);
    assert!(said.stderr.contains(&layer) && said.stderr.contains("nothing is saved"), "{}", said.stderr);
    assert!(!bench.place.path("podinfo.tar").exists());
}

pub const PLAIN: &str = "apiVersion: delivery.kokumi.dev/v1alpha1\nkind: Order\nmetadata: {name: podinfo, namespace: shop}\nspec: {}\n";

#[test]
fn a_bundle_is_about_one_artifact() {
    let bench = Bench::whole();
    bench.saved("podinfo.tar");
    let other = format!("{}@sha256:{}", bench::REPOSITORY, "7".repeat(64));
    let said =
        bench.place.expedite(&["verify", &other, "--order", "shop/podinfo", "--bundle", "podinfo.tar"]);
    said.exits(5);
    assert!(said.stderr.contains("it holds the evidence of r.example/shop/podinfo@"), "{}", said.stderr);
    let elsewhere = bench.reference().replace("r.example", "other.example");
    bench
        .place
        .expedite(&["verify", &elsewhere, "--order", "shop/podinfo", "--bundle", "podinfo.tar"])
        .exits(5);
    // Another Order's question is not answered by this one's demands.
    let own =
        ["verify", &bench.reference(), "--order", "shop/other", "--bundle", "podinfo.tar", "-o", "json"];
    let said = bench.place.expedite(&[&own[..], &["--bundled-trust"]].concat());
    said.exits(5);
    assert_eq!(json(&said)["demands"], serde_json::Value::Null);
    for missing in ["nothing.tar", "objects"] {
        let said = bench.verify(&["--bundle", missing]);
        said.exits(1);
        assert!(said.stderr.contains("cannot read it"), "{}", said.stderr);
    }
}

#[test]
fn what_is_attached_and_no_evidence_is_left_out_and_a_long_layer_is_not() {
    let bench = Bench::bare();
    bench.place.write("objects/order.yaml", PLAIN);
    bench.place.write("objects/environment.yaml", "");
    // Longer than what is looked into: then its presence is what counts.
    let mut random = 1_u64;
    let text = std::iter::repeat_with(|| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b' ' + (random >> 57) as u8 % 95)
    });
    let digest = bench.renderer.prepare(
        &bench.place.path("registry"),
        "shop/podinfo",
        &text.take(11 << 20).collect::<String>(),
    );
    let layer = bench.layout.manifest(&digest)["layers"][0].clone();
    assert!(layer["size"].as_u64().unwrap() > 8 << 20, "{layer}");
    // A list of parts that nobody signed, and a bundle that says it is 40 MiB long.
    let attach = |media_type: &str, size: u64| {
        let blob = bench.layout.add(b"parts");
        let subject = serde_json::json!({"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest, "size": 1});
        let manifest = serde_json::json!({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "artifactType": media_type,
            "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": bench.layout.add(b"{}"), "size": 2},
            "layers": [{"mediaType": media_type, "digest": blob, "size": size}], "subject": subject,
        });
        let bytes = serde_json::to_vec(&manifest).unwrap();
        let digest = bench.layout.add(&bytes);
        let mut entries = bench.layout.entries();
        entries.push(
            serde_json::json!({"mediaType": manifest["mediaType"], "digest": digest, "size": bytes.len()}),
        );
        bench.layout.set_entries(&entries);
        digest
    };
    let parts = attach("application/spdx+json", 5);
    let long = attach("application/vnd.dev.sigstore.bundle.v0.3+json", 40 << 20);
    let reference = format!("{}@{digest}", bench::REPOSITORY);
    let verify = |more: &[&str]| {
        bench.place.expedite(&[&["verify", &reference, "--order", "shop/podinfo", "--at", AT], more].concat())
    };
    let said = verify(&["--save", "podinfo.tar", "-v"]);
    said.ok();
    assert!(
        said.stderr.contains(&format!("left out: {parts}: attached, but it holds no signed evidence")),
        "{}",
        said.stderr
    );
    assert!(
        said.stderr
            .contains(&format!("left out: {long}: attached, but it is longer than the limit for evidence")),
        "{}",
        said.stderr
    );
    let held = files(&fs::read(bench.place.path("podinfo.tar")).unwrap());
    assert!(held.contains_key(&format!("blobs/{}", layer["digest"].as_str().unwrap().replace(':', "/"))));
    bench.forget_registry();
    verify(&["--bundle", "podinfo.tar"]).ok();
}
