//! What `deploy/` ships, without a server: it renders, its settings read, its container has what the binary needs.
//! `tests/it/cluster/inside.rs` applies it to a real API server.

use crate::support::harness::{Place, copy, package};
use crate::support::peers;
use crate::support::peers::peer;
use expedite::model::kind::Kind;
use serde::Deserialize as _;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

/// What kubectl renders of a folder of `deploy/`; `None`: it is missing, which has been said.
#[track_caller]
fn rendered(folder: &str) -> Option<Vec<Value>> {
    let place = Place::new();
    copy(&package().join("deploy"), &place.path("deploy"));
    let mut command = place.command(peer("kubectl")?);
    command.args(["kustomize", folder]).current_dir(place.path("deploy"));
    let said = place.finish(command);
    said.ok();
    let documents = serde_yaml::Deserializer::from_str(&said.stdout);
    Some(documents.map(|document| Value::deserialize(document).unwrap()).collect())
}

#[test]
fn the_base_renders_to_what_it_says() {
    let Some(objects) = rendered("base") else { return };
    let kinds: Vec<&str> = objects.iter().map(|o| o["kind"].as_str().unwrap()).collect();
    let mut sorted = kinds.clone();
    sorted.sort_unstable();
    let wanted = [
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "CronJob",
        "Namespace",
        "NetworkPolicy",
        "NetworkPolicy",
        "Role",
        "RoleBinding",
        "ServiceAccount",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ];
    assert_eq!(sorted, wanted);
    for role in objects.iter().filter(|o| o["kind"].as_str().unwrap().ends_with("Role")) {
        for rule in role["rules"].as_array().unwrap() {
            assert_eq!(rule["verbs"], serde_json::json!(["list"]), "{role}");
            assert!(
                !rule["resources"].as_array().unwrap().iter().any(|r| r == "*" || r == "secrets"),
                "{role}"
            );
        }
    }
    let reader = objects.iter().find(|o| o["kind"] == "ClusterRole").unwrap();
    let listed: BTreeSet<&str> =
        reader["rules"][0]["resources"].as_array().unwrap().iter().map(|r| r.as_str().unwrap()).collect();
    assert_eq!(listed, Kind::ALL.map(Kind::plural).into_iter().collect());

    let job = objects.iter().find(|o| o["kind"] == "CronJob").unwrap();
    assert_eq!(job["spec"]["concurrencyPolicy"], "Forbid");
    let pod = &job["spec"]["jobTemplate"]["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert!(container["resources"]["limits"]["memory"].is_string());
    let image = container["image"].as_str().unwrap();
    assert!(image.contains('/') && !image.ends_with(":latest"), "{image}");
    // The settings go in under a name that changes with them, so that a run has one version of them.
    let settings = objects.iter().find(|o| o["kind"] == "ConfigMap").unwrap();
    let name =
        pod["volumes"].as_array().unwrap().iter().find_map(|v| v["configMap"]["name"].as_str()).unwrap();
    assert_eq!(settings["metadata"]["name"], name);
    assert_ne!(name, "expedite");
}

#[test]
fn the_definitions_render_to_all_kinds() {
    let Some(objects) = rendered("crds") else { return };
    let names: BTreeSet<&str> =
        objects.iter().map(|o| o["spec"]["names"]["kind"].as_str().unwrap()).collect();
    assert_eq!(names, Kind::ALL.map(Kind::as_str).into_iter().collect());
}

#[test]
fn the_shipped_settings_read() {
    let place = Place::new();
    place.write(
        "expedite.yaml",
        std::fs::read_to_string(package().join("deploy/base/expedite.yaml")).unwrap(),
    );
    place.edit("expedite.yaml", "https://git.shop.example/shop/gitops.git", "./gitops.git");
    place.git(&["init", "-q", "--bare", "-b", "main", "gitops.git"]);
    let said = place.expedite(&["plan", "--config", "expedite.yaml"]);
    // As far as the cluster, which is not here.
    said.exits(1);
    assert!(said.stderr.contains("there is no kubeconfig, and this is not a Pod"), "{}", said.stderr);
    assert_eq!(said.stderr.matches("error: ").count(), 1, "{}", said.stderr);
}

/// No engine is asked for that builds it; what can be wrong without one is looked at.
#[test]
fn the_container_has_what_the_binary_needs_and_no_more() {
    let text = std::fs::read_to_string(package().join("deploy/Containerfile")).unwrap();
    let ignored = std::fs::read_to_string(package().join("deploy/Containerfile.dockerignore")).unwrap();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.starts_with('#')).collect();
    let stages: Vec<&str> = lines.iter().filter_map(|l| l.strip_prefix("FROM ")).collect();
    assert_eq!(stages.len(), 2);
    assert!(stages.iter().all(|image| image.contains(':') && !image.contains("latest")), "{stages:?}");
    // The toolchain that the package asks for.
    let manifest = std::fs::read_to_string(package().join("Cargo.toml")).unwrap();
    let wanted = manifest.lines().find_map(|l| l.strip_prefix("rust-version = ")).unwrap().trim_matches('"');
    assert!(stages[0].contains(&format!("rust:{wanted}-")), "{} is not {wanted}", stages[0]);
    // All that is copied is there and reaches the engine, and all that is built in is copied.
    let mut copied = BTreeSet::new();
    for line in lines.iter().filter_map(|l| l.strip_prefix("COPY ")).filter(|l| !l.starts_with("--from=")) {
        let parts: Vec<&str> = line.split(' ').collect();
        for from in &parts[..parts.len() - 1] {
            assert!(package().join(from).exists(), "{from} is not there");
            assert!(ignored.lines().any(|l| l == format!("!{from}")), "{from} is ignored");
            copied.insert((*from).to_owned());
        }
    }
    for part in walkdir::WalkDir::new(package().join("src")) {
        let path = part.unwrap().into_path();
        if path.extension().is_none_or(|e| e != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for piece in text.split("include_str!(\"").skip(1) {
            let file = path.parent().unwrap().join(piece.split('"').next().unwrap()).canonicalize().unwrap();
            let inside = file.strip_prefix(package()).unwrap().components().next().unwrap();
            let inside = inside.as_os_str().to_str().unwrap();
            assert!(copied.contains(inside), "{} is built in, and {inside} is not copied", file.display());
        }
    }
    let last = text.rsplit("FROM ").next().unwrap();
    assert!(last.contains("\nUSER 65532:65532\n"), "it does not run as nobody");
    assert!(last.contains("\nENTRYPOINT [\""), "a shell would start it, and there is none");
    assert!(!last.contains("\nRUN "), "there is no shell");

    // What the image of C programs has; zlib is linked in there.
    assert!(text.contains("ENV LIBZ_SYS_STATIC=1"));
    let has = ["linux-vdso", "libgcc_s", "libm", "libc", "ld-linux", "libdl", "libpthread", "librt", "libz"];
    let linked = Command::new("ldd").arg(env!("CARGO_BIN_EXE_expedite")).output();
    let Ok(linked) = linked.map(|o| String::from_utf8(o.stdout).unwrap()) else {
        return peers::left_out("ldd is missing");
    };
    for library in linked.lines() {
        let name = library.trim().rsplit('/').next().unwrap_or(library).trim();
        let name = if library.contains("=>") { library.trim() } else { name };
        assert!(has.iter().any(|h| name.starts_with(h)), "{library} is not in the image");
    }
}
