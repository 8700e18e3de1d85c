//! The command line as a person and a script meet it, through the real binary.

use crate::support::harness;
use crate::support::harness::Place;
use std::fs;
use std::process::Stdio;

#[test]
fn help_and_version_are_results() {
    let place = Place::new();
    assert_eq!(place.expedite(&["--version"]).ok(), "expedite [VERSION]\n");
    let help = place.expedite(&["--help"]);
    assert!(help.ok().contains("Exit status:"), "{help:?}");
    assert_eq!(help.stderr, "");
    assert!(place.expedite(&["init", "--help"]).ok().contains("Examples:\n"));
}

#[test]
fn wrong_usage_is_64() {
    let place = Place::new();
    for arguments in [
        &[][..],
        &["frobnicate"],
        &["init", "--colour"],
        &["init", "-q", "-v"],
        &["init", "--at", "yesterday"],
        &["init", "--shard", "3/3"],
        &["init", "-l", "a in b"],
        &["init", "-n", "Shop"],
        &["init", "--color", "sometimes"],
    ] {
        let said = place.expedite(arguments);
        said.exits(64);
        assert_eq!(said.stdout, "", "{arguments:?}");
        assert!(!said.stderr.is_empty(), "{arguments:?}");
    }
    let said = place.expedite(&["init", "--shard", "3/3"]);
    assert!(said.stderr.contains("they count from 0"), "{}", said.stderr);
}

#[test]
fn an_argument_cannot_steer_the_terminal() {
    let said = Place::new().expedite(&["\u{1b}[2Jx"]);
    said.exits(64);
    assert!(!said.stderr.contains('\u{1b}'), "{:?}", said.stderr);
}

#[test]
fn help_shows_no_value_of_the_environment() {
    let mut place = Place::new();
    place.set("EXPEDITE_REPO", "https://ann:s3cret@git.example/x.git");
    assert!(!place.expedite(&["init", "--help"]).ok().contains("s3cret"));
}

#[test]
fn init_writes_what_a_repository_needs() {
    let place = Place::new();
    place.git(&["init", "-q", "gitops"]);
    place.git(&["-C", "gitops", "remote", "add", "origin", "https://ann:s3cret@git.example/shop/gitops.git"]);
    let said = place.expedite(&["init", "--repo", "gitops", "--registry", "registry.shop.example:5000"]);
    let secret = said.ok();
    assert!(secret.contains("secret-type: repo-creds\n"), "{secret}");
    assert!(secret.contains("  type: oci\n  url: \"oci://registry.shop.example:5000\"\n"), "{secret}");
    assert_eq!(
        said.stderr,
        "wrote apps.yaml\nwrote expedite.yaml\nwrote .github/workflows/expedite.yml\n\
         wrote .github/workflows/expedite-preview.yml\n"
    );

    let apps = place.read("gitops/apps.yaml");
    for line in [
        "    repoURL: \"https://git.example/shop/gitops.git\"\n",
        "    targetRevision: \"main\"\n",
        "      recurse: true\n",
        "      include: \"applications/*\"\n",
        "      prune: true\n",
        "      selfHeal: true\n",
    ] {
        assert!(apps.contains(line), "{line}{apps}");
    }
    let parsed: serde_yaml::Value = serde_yaml::from_str(&apps).unwrap();
    assert!(parsed["metadata"].get("finalizers").is_none());
    assert!(parsed["spec"]["syncPolicy"]["automated"].get("allowEmpty").is_none());
    let workflows = [".github/workflows/expedite.yml", ".github/workflows/expedite-preview.yml"];
    for file in ["apps.yaml", "expedite.yaml"].into_iter().chain(workflows) {
        let text = place.read(&format!("gitops/{file}"));
        assert!(!text.contains("s3cret"), "{file}");
        let parsed: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
        assert!(parsed.is_mapping(), "{file}");
        // `${{ … }}` is the runner's; every other pair of braces was one of ours.
        assert!(!text.replace("${{", "").contains("{{"), "{file} has a value left out");
    }
}

#[test]
fn init_never_overwrites() {
    let place = Place::new();
    place.git(&["init", "-q", "gitops"]);
    place.write("gitops/apps.yaml", "mine\n");
    fs::create_dir_all(place.path("gitops/.github/workflows")).unwrap();
    std::os::unix::fs::symlink("/nowhere/at/all", place.path("gitops/.github/workflows/expedite.yml"))
        .unwrap();
    let said = place.expedite(&["init", "--repo", "gitops", "--url", "https://git.example/x.git"]);
    said.ok();
    assert_eq!(
        said.stderr,
        "kept apps.yaml: it is there already\nwrote expedite.yaml\n\
         kept .github/workflows/expedite.yml: it is there already\n\
         wrote .github/workflows/expedite-preview.yml\n"
    );
    assert_eq!(place.read("gitops/apps.yaml"), "mine\n");
    let first = place.read("gitops/expedite.yaml");
    place.expedite(&["init", "--repo", "gitops", "--branch", "other"]).ok();
    assert_eq!(place.read("gitops/expedite.yaml"), first);
}

#[test]
fn init_writes_the_first_objects_with_the_keys_that_are_trusted() {
    let place = Place::new();
    for key in ["test-renderer.pub", "test-job.pub", "test-job.key"] {
        fs::copy(harness::shop().join("keys").join(key), place.path(key)).unwrap();
    }
    let init = |more: &[&str]| {
        place.expedite(
            &[&["init", "--ci", "none", "--registry", "r.example:5000", "--order", "shop/web"], more]
                .concat(),
        )
    };
    // A private key is no public one, and nothing is written then.
    let wrong = init(&["--trust", "test-job.key"]);
    assert_eq!(wrong.exits(1), "");
    assert!(
        wrong.stderr.contains("test-job.key: --trust: ") && wrong.stderr.contains("hint: "),
        "{}",
        wrong.stderr
    );
    assert!(!place.path("apps.yaml").exists());
    place.expedite(&["init", "--order", "web"]).exits(64);

    init(&["--trust", "test-renderer.pub", "--key", "test-job.key"]).ok();
    let kitchen: serde_json::Value = serde_yaml::from_str(&place.read("objects/kitchen.yaml")).unwrap();
    assert_eq!(kitchen["spec"]["registries"], serde_json::json!(["r.example:5000"]));
    let keys = kitchen["spec"]["trust"]["keys"].as_array().unwrap();
    let file = |name: &str| place.read(name).replace("\r\n", "\n");
    let [renderer, job] = &keys[..] else { panic!("{keys:?}") };
    assert_eq!(renderer["publicKey"], file("test-renderer.pub"));
    assert_eq!(renderer["roles"], serde_json::json!(["signature", "provenance"]));
    assert_eq!(job["publicKey"], file("test-job.pub"));
    assert_eq!(job["roles"], serde_json::json!(["approvals", "records"]));
    assert!(!place.read("objects/kitchen.yaml").contains("PRIVATE"));
    // What is written is what is read.
    place.git(&["init", "-q"]);
    place.git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    let orders = place.expedite(&["get", "orders", "--from", "objects", "-o", "name"]);
    assert_eq!((orders.ok(), orders.stderr.as_str()), ("order.delivery.kokumi.dev/shop/web\n", ""));
    place.write("objects/shop/web.yaml", "mine: true\n");
    let again = init(&["--trust", "test-renderer.pub"]);
    assert!(again.stderr.contains("kept objects/shop/web.yaml"), "{}", again.stderr);
    assert_eq!(place.read("objects/shop/web.yaml"), "mine: true\n");
}

#[test]
fn init_says_what_it_could_not_know() {
    let place = Place::new();
    let said = place.expedite(&["init", "--ci", "none"]);
    said.ok();
    assert!(said.stderr.contains("warning: apps.yaml: spec.source.repoURL: "), "{}", said.stderr);
    assert!(said.stderr.contains("hint: "), "{}", said.stderr);
    assert!(!place.path(".github").exists());
    assert!(place.read("apps.yaml").contains("https://git.invalid/"));

    let mut place = Place::new();
    place.git(&["init", "-q", "gitops"]);
    place.git(&["-C", "gitops", "remote", "add", "origin", "/srv/gitops.git"]);
    place.set("EXPEDITE_REPO", "gitops");
    place.set("EXPEDITE_BRANCH", "");
    let said = place.expedite(&["init", "--sync-servings"]);
    said.ok();
    let apps = place.read("gitops/apps.yaml");
    assert!(apps.contains("https://git.invalid/"), "Argo CD cannot read a path of this machine: {apps}");
    assert!(apps.contains("include: \"{applications/*,servings/*}\"\n"), "{apps}");
}

#[test]
fn init_wants_a_registrys_host() {
    let place = Place::new();
    for registry in ["http://registry.example:5000", "ghcr.io/shop"] {
        let said = place.expedite(&["init", "--registry", registry]);
        said.exits(64);
        assert!(said.stderr.contains("is no host: wanted HOST or HOST:PORT"), "{}", said.stderr);
        assert!(!place.path("apps.yaml").exists());
    }
}

#[test]
fn init_wants_a_folder_with_files() {
    let place = Place::new();
    place.git(&["init", "-q", "--bare", "bare.git"]);
    let said = place.expedite(&["init", "--repo", "bare.git"]);
    said.exits(1);
    assert!(said.stderr.starts_with("error: bare.git: this is a bare repository"), "{}", said.stderr);
    let said = place.expedite(&["init", "--repo", "nowhere"]);
    said.exits(1);
    assert!(said.stderr.starts_with("error: nowhere: --repo: there is no such folder"), "{}", said.stderr);
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let place = Place::new();
    let mut command = place.command("sh");
    let binary = env!("CARGO_BIN_EXE_expedite");
    // The reader is gone before anything is written; the status of the writer is what is printed.
    command.args(["-c", &format!("{{ sleep 0.3; {binary} --help; echo \"status $?\" >&2; }} | true")]);
    command.stdout(Stdio::null());
    let said = place.finish(command);
    assert_eq!(said.stderr, "status 0\n");
}

#[test]
fn a_full_disk_is_told() {
    let place = Place::new();
    let mut command = place.command("sh");
    command.args(["-c", &format!("{} --help > /dev/full", env!("CARGO_BIN_EXE_expedite"))]);
    let said = place.finish(command);
    said.exits(1);
    assert!(said.stderr.starts_with("error: writing the result: "), "{}", said.stderr);
}

#[test]
fn colour_follows_the_usual_variables() {
    let coloured = |variables: &[(&str, &str)], arguments: &[&str]| {
        let mut place = Place::new();
        for (name, value) in variables {
            place.set(name, value);
        }
        let said = place.expedite(&[&["init", "--repo", "nowhere"], arguments].concat());
        said.exits(1);
        said.stderr.contains('\u{1b}')
    };
    assert!(!coloured(&[], &[]), "a pipe has no colour");
    assert!(coloured(&[("CLICOLOR_FORCE", "1")], &[]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "0")], &[]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], &[]));
    assert!(coloured(&[("NO_COLOR", "")], &["--color", "always"]));
    assert!(coloured(&[("NO_COLOR", "1")], &["--color", "always"]), "a flag wins over a variable");
    assert!(!coloured(&[("CLICOLOR_FORCE", "1")], &["--color", "never"]));
}

#[test]
fn a_runner_gets_an_annotation() {
    let mut place = Place::new();
    place.set("GITHUB_ACTIONS", "true");
    let said = place.expedite(&["init", "--repo", "no%where"]);
    said.exits(1);
    assert!(
        said.stderr.contains("\n::error file=no%25where,title=--repo::--repo: there is no such folder\n"),
        "{}",
        said.stderr
    );
}
