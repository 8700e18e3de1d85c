//! The support files themselves.

use crate::support::{crd, forge, fsck, harness, peers, servers};

#[test]
fn a_program_that_is_nowhere_is_not_found() {
    assert_eq!(peers::find("no-such-program-of-this-name"), None);
}

#[test]
fn a_program_on_the_path_is_found() {
    assert!(peers::find("git").is_some(), "git is a prerequisite of the tests");
}

#[test]
fn what_differs_from_place_to_place_is_masked() {
    let place = harness::Place::new();
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let digest = format!("sha256:{}", "ab".repeat(32));
    let text =
        format!("{}: {commit} {digest} {commit}0 127.0.0.1:4711/x 127.0.0.1:", place.path("a").display());
    let masked = format!("[PLACE]/a: [COMMIT] {digest} {commit}0 127.0.0.1:[PORT]/x 127.0.0.1:");
    assert_eq!(place.masked(&text), masked);
}

#[test]
fn a_command_sees_nothing_of_the_caller() {
    let place = harness::Place::new();
    let said = place.finish(place.command("env"));
    let names: Vec<&str> =
        said.ok().lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    for name in &names {
        let ours = ["PATH", "HOME", "TMPDIR", "TZ", "LC_ALL"].contains(name) || name.starts_with("GIT_");
        assert!(ours, "{name} reached the command");
    }
    assert!(said.stdout.contains("HOME=[PLACE]/home\n"), "{}", said.stdout);
}

#[test]
fn a_transcript_holds_both_streams_and_the_status() {
    let place = harness::Place::new();
    let mut command = place.command("sh");
    command.args(["-c", "echo out; echo err >&2; printf cut; exit 3"]);
    assert_eq!(
        place.finish(command).transcript("x"),
        "$ x\n[stdout]\nout\ncut[no newline]\n[stderr]\nerr\n[exit 3]\n"
    );
}

#[test]
fn a_snapshot_that_differs_is_an_error() {
    let place = harness::Place::new();
    place.write("expected", "a\nb\n");
    assert_eq!(harness::same(&place.path("expected"), "a\nb\n"), Ok(()));
    if !harness::blessing() {
        let error = harness::same(&place.path("expected"), "a\nc\n").unwrap_err();
        assert!(error.contains("-b\n") && error.contains("+c\n"), "{error}");
    }
}

#[test]
fn registries_answer_and_end_with_their_value() {
    for server in [servers::refreg(), servers::docker_registry()].into_iter().flatten() {
        let address = server.address.clone();
        let connects = || std::net::TcpStream::connect(&address).is_ok();
        servers::until("the registry answers", connects);
        drop(server);
        assert!(!connects(), "{address} still answers");
    }
}

#[test]
fn a_crd_refuses_what_an_api_server_refuses() {
    let crd = crd::Crd::application();
    let good = serde_json::json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "a", "labels": {"x": "no"}, "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
        "spec": {
            "project": "default",
            "source": {"repoURL": "oci://r.example/a", "targetRevision": "sha256:00", "path": "."},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "a"},
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}, "syncOptions": ["ServerSideApply=true"]},
        },
    });
    assert_eq!(crd.errors(&good), Vec::<String>::new());
    let after = |pointer: &str, member: &str, value: serde_json::Value| {
        let mut bad = good.clone();
        bad.pointer_mut(pointer).unwrap()[member] = value;
        crd.errors(&bad)
    };
    assert_eq!(after("/spec/source", "repoUrl", "x".into()), [".spec.source.repoUrl: unknown field"]);
    assert_eq!(after("/spec/syncPolicy/automated", "prune", "true".into()).len(), 1);
    assert_eq!(after("/spec/destination", "namespace", 1.into()).len(), 1);
    assert_eq!(after("/metadata/labels", "x", false.into()).len(), 1);
    assert_eq!(after("/metadata", "finalisers", "x".into()), [".metadata.finalisers: unknown field"]);
    assert_eq!(after("/spec/syncPolicy", "syncOptions", "x".into()).len(), 1);
    assert_eq!(after("", "kind", "AppProject".into()).len(), 1);
    let mut bad = good.clone();
    bad["spec"].as_object_mut().unwrap().remove("project");
    assert_eq!(crd.errors(&bad), [".spec.project: missing"]);
}

#[test]
fn what_the_forge_signs_is_what_cosign_takes() {
    let place = harness::Place::new();
    let renderer = forge::Renderer::new(7);
    let digest = renderer.prepare(&place.path("registry"), "shop/made", "text");
    place.write("made.pub", renderer.public_key());
    let (Some(registry), Some(oras), Some(cosign)) =
        (servers::refreg(), peers::peer("oras"), peers::peer("cosign3"))
    else {
        return;
    };
    let reference = format!("{}/shop/made@{digest}", registry.address);
    let mut command = place.command(oras);
    command.args(["copy", "-r", "--no-tty", "--from-oci-layout", &format!("registry/shop/made@{digest}")]);
    command.args(["--to-plain-http", &reference]);
    place.finish(command).ok();
    for verify in [&["verify"][..], &["verify-attestation", "--type", "https://slsa.dev/provenance/v1"]] {
        let mut command = place.command(&cosign);
        command.args(verify).args([
            "--key",
            "made.pub",
            "--insecure-ignore-tlog",
            "--allow-http-registry",
            &reference,
        ]);
        place.finish(command).ok();
    }
}

#[test]
#[should_panic(expected = "fsck")]
fn a_repository_that_is_not_whole_fails_its_test() {
    let place = harness::Place::new();
    place.git(&["init", "-q", "shop"]);
    place.git(&["-C", "shop", "commit", "-q", "--allow-empty", "-m", "first"]);
    assert_eq!(fsck::every(place.root()), 1);
    let commit = place.git(&["-C", "shop", "rev-parse", "HEAD"]);
    let (folder, file) = commit.trim().split_at(2);
    std::fs::remove_file(place.path(&format!("shop/.git/objects/{folder}/{file}"))).unwrap();
}
