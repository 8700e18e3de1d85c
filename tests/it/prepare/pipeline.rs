//! The documented pipeline and its GitHub workflow, step by step as a runner takes them, with real oras, cosign and
//! kubectl against a real registry: from a commit to the Application that a run commits.

use crate::support::crd::Crd;
use crate::support::executable::executable;
use crate::support::harness::{Place, package};
use crate::support::peers::peer;
use crate::support::servers::{self, Server};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Parser as _;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

/// The programs of the pipeline, as they are behind a registry without TLS.
fn shim(place: &Place, name: &str, script: &str) {
    place.write(&format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
    executable(&place.path(&format!("bin/{name}")));
}

struct Shop {
    place: Place,
    server: Server,
}

impl Shop {
    fn new(server: Server) -> Option<Self> {
        let mut place = Place::new();
        let (oras, cosign) = (peer("oras")?, peer("cosign3")?);
        peer("kubectl")?;
        let (oras, cosign) = (oras.display(), cosign.display());
        shim(&place, "oras", &format!(r#"verb=$1; shift; exec {oras} "$verb" --plain-http "$@""#));
        shim(
            &place,
            "cosign",
            &format!(r#"verb=$1; shift; exec {cosign} "$verb" --allow-http-registry "$@""#),
        );
        shim(&place, "expedite", &format!(r#"exec {} "$@""#, env!("CARGO_BIN_EXE_expedite")));
        let path = format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap());
        place.set("PATH", &path);
        place.set("COSIGN_PASSWORD", "");
        let mut keys = place.command(peer("cosign3")?);
        keys.args(["generate-key-pair"]);
        place.finish(keys).ok();
        let shop = Self { place, server };
        shop.application();
        shop.gitops();
        Some(shop)
    }

    /// The application's repository.
    fn application(&self) {
        let place = &self.place;
        place.write(
            "app/deploy/base/web.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {colour: blue}\n",
        );
        place.write("app/deploy/base/kustomization.yaml", "resources: [web.yaml]\n");
        for stage in ["staging", "production"] {
            place.write(
                &format!("app/deploy/{stage}/kustomization.yaml"),
                format!("resources: [../base]\ncommonAnnotations: {{stage: {stage}}}\n"),
            );
        }
        let script = fs::read_to_string(package().join("docs/prepare/pipeline.sh")).unwrap();
        place.write("app/pipeline.sh", script);
        executable(&place.path("app/pipeline.sh"));
        place.git(&["-C", "app", "init", "-q"]);
        // As a runner of GitLab checks it out.
        let origin = "https://gitlab-ci-token:glcbt-secret@git.shop.example/shop/web.git";
        place.git(&["-C", "app", "remote", "add", "origin", origin]);
        place.git(&["-C", "app", "add", "."]);
        place.git(&["-C", "app", "commit", "-q", "-m", "Paint it blue"]);
    }

    /// The GitOps repository: settings, whom to trust, two stages of which the second follows the first.
    fn gitops(&self) {
        let place = &self.place;
        let key: String = place.read("cosign.pub").lines().map(|l| format!("        {l}\n")).collect();
        place.write(
            "gitops/expedite.yaml",
            format!("registries: {{\"{}\": {{plainHttp: true}}}}\n", self.server.address),
        );
        place.write(
            "gitops/objects/shop.yaml",
            format!(
                "apiVersion: delivery.kokumi.dev/v1alpha1\nkind: Kitchen\nmetadata: {{name: default}}\nspec:\n  trust:\n    keys:\n    - name: pipeline\n      publicKey: |\n{key}---\n\
                 apiVersion: delivery.kokumi.dev/v1alpha1\nkind: Order\nmetadata: {{name: web, namespace: shop-staging}}\nspec: {{promotion: {{mode: Automatic}}}}\n---\n\
                 apiVersion: delivery.kokumi.dev/v1alpha1\nkind: Order\nmetadata: {{name: web, namespace: shop}}\n\
                 spec: {{promotion: {{mode: Automatic}}}}\n"
            ),
        );
        place.git(&["init", "-q", "--bare", "gitops.git"]);
        place.git(&["-C", "gitops", "init", "-q"]);
        place.git(&["-C", "gitops", "add", "."]);
        place.git(&["-C", "gitops", "commit", "-q", "-m", "Where the shop deploys"]);
        place.git(&["-C", "gitops", "push", "-q", "../gitops.git", "main"]);
        fs::remove_dir_all(place.path("gitops")).unwrap();
    }

    /// What `pipeline.sh STAGE ORDER` prints.
    #[track_caller]
    fn pipeline(&self, stage: &str, order: &str) -> String {
        let mut command = self.place.command("./pipeline.sh");
        command.args([stage, order]).current_dir(self.place.path("app"));
        command.env("REGISTRY", &self.server.address).env("VERSION", "v1");
        command.env("COSIGN_KEY", self.place.path("cosign.key"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// A fresh clone of the GitOps repository, as the next job has it.
    fn clone(&self) {
        let _ = fs::remove_dir_all(self.place.path("gitops"));
        self.place.git(&["clone", "-q", "gitops.git", "gitops"]);
    }

    #[track_caller]
    fn expedite(&self, arguments: &[&str]) -> crate::support::harness::Said {
        let mut command = self.place.binary(arguments);
        command.current_dir(self.place.path("gitops"));
        self.place.finish(command)
    }
}

#[test]
fn the_same_commit_is_the_same_preparation_and_both_stages_have_one_base() {
    for server in [servers::refreg(), servers::docker_registry()] {
        let Some(shop) = server.and_then(Shop::new) else { return };
        let staging = shop.pipeline("staging", "shop-staging/web");
        let production = shop.pipeline("production", "shop/web");
        assert_eq!(shop.pipeline("production", "shop/web"), production, "the same bytes");
        shop.clone();
        let prepare = |reference: &str, order: &str| {
            let mut command = shop.place.binary(&["prepare", reference, "--order", order]);
            let output = command.current_dir(shop.place.path("gitops")).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            // As it came: commits and ports are not masked.
            serde_yaml::from_slice::<Value>(&output.stdout).unwrap()
        };
        let (a, b) = (prepare(&staging, "shop-staging/web"), prepare(&production, "shop/web"));
        assert_ne!(a["spec"]["artifact"]["digest"], b["spec"]["artifact"]["digest"]);
        assert_eq!(a["spec"]["source"], b["spec"]["source"]);
        let base = a["spec"]["source"]["oci"].as_str().unwrap();
        assert_eq!(base, format!("oci://{}/bases/web", shop.server.address));
        // As the published CustomResourceDefinition takes it; its patterns are those of our digests.
        let published = fs::read_to_string(package().join("tests/data/kokumi/preparations.yaml")).unwrap();
        let (patterns, rest): (Vec<&str>, Vec<&str>) =
            published.lines().partition(|line| line.trim_start().starts_with("pattern: "));
        assert!(patterns.iter().all(|line| line.contains("sha256:[a-f0-9]") || line.contains("A-Za-z")));
        shop.place.write("published.yaml", rest.join("\n"));
        let published = Crd::read(&shop.place.path("published.yaml"));
        assert_eq!((published.errors(&a), published.errors(&b)), (vec![], vec![]), "{b:#}");
        assert_eq!(b["spec"]["renderer"]["renderType"], "Manifest");
        assert_eq!(b["spec"]["commitMessage"], "Paint it blue");
        let commit = shop.place.git(&["-C", "app", "rev-parse", "HEAD"]);
        assert_eq!(b["spec"]["gitSource"]["commitHash"], commit.trim());
        assert_eq!(b["spec"]["gitSource"]["repo"], "https://git.shop.example/shop/web.git");
        // Nor is the token in what was signed: `prepare` would have left it out, too.
        let mut download = shop.place.command(peer("cosign3").unwrap());
        download.args(["download", "attestation", "--allow-http-registry", &production]);
        let signed = download.output().unwrap();
        assert!(signed.status.success(), "{}", String::from_utf8_lossy(&signed.stderr));
        let statements = statements(&signed.stdout);
        assert!(statements.contains("git+https://git.shop.example/shop/web.git"), "{statements}");
        assert!(!statements.contains("glcbt-secret"), "{statements}");
        // Production's artifact is not staging's, whatever it is called.
        shop.expedite(&["prepare", &production, "--order", "shop-staging/web"]).exits(5);
    }
}

#[test]
fn the_workflow_ends_in_an_application() {
    let Some(shop) = servers::refreg().and_then(Shop::new) else { return };
    let place = &shop.place;
    let text = fs::read_to_string(package().join("docs/prepare/github.yml")).unwrap();
    let workflow: Value = serde_yaml::from_str(&text).unwrap();
    assert_eq!(workflow["permissions"], serde_json::json!({}), "no job has more than it asks for");
    let mut known: BTreeMap<String, String> = [
        ("vars.REGISTRY", shop.server.address.clone()),
        ("vars.EXPEDITE_SOURCE", "https://git.example/expedite.git".into()),
        ("vars.EXPEDITE_REV", "0123abc".into()),
        ("github.sha", "v1".into()),
        ("github.server_url", "https://forge.example".into()),
        ("github.repository", "shop/web".into()),
        ("secrets.COSIGN_PRIVATE_KEY", place.read("cosign.key")),
        ("secrets.COSIGN_PASSWORD", String::new()),
        ("secrets.REGISTRY_USER", "ci".into()),
        ("secrets.REGISTRY_PASSWORD", "secret".into()),
        ("secrets.REGISTRY_READER", "reader".into()),
        ("secrets.REGISTRY_READER_PASSWORD", "secret".into()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    shim(place, "docker", "[ \"$1\" = login ] && cat >/dev/null");
    shim(
        place,
        "cargo",
        "[ \"$*\" = \"install --locked --git https://git.example/expedite.git --rev 0123abc expedite\" ]",
    );
    let oras = place.read("bin/oras");
    place.write("bin/oras", oras.replace("verb=$1", "[ \"$1\" != login ] || exec cat >/dev/null\nverb=$1"));
    shop.clone();
    let before = place.git(&["-C", "gitops.git", "rev-parse", "main"]);
    for (job, folder) in [("render", "app"), ("prepare", "gitops")] {
        for step in workflow["jobs"][job]["steps"].as_array().unwrap() {
            if let Some(action) = step["uses"].as_str() {
                let (_, commit) = action.split_once('@').unwrap();
                assert!(commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit()), "{action}");
                continue;
            }
            let mut command = place.command("bash");
            command.args(["-e", "-c", step["run"].as_str().unwrap()]).current_dir(place.path(folder));
            for (name, value) in step["env"].as_object().into_iter().flatten() {
                command.env(name, resolved(value.as_str().unwrap(), &known));
            }
            let outputs = place.path("outputs");
            fs::write(&outputs, "").unwrap();
            command.env("GITHUB_OUTPUT", &outputs);
            assert!(!step["run"].as_str().unwrap().contains("${{"), "an expression in a script is a hole");
            let said = place.finish(command);
            assert_eq!(said.status, Some(0), "{}", said.transcript(&step["name"].to_string()));
            for line in fs::read_to_string(&outputs).unwrap().lines() {
                let (name, value) = line.split_once('=').unwrap();
                known.insert(format!("needs.{job}.outputs.{name}"), value.to_owned());
            }
        }
    }
    let after = place.git(&["-C", "gitops.git", "rev-parse", "main"]);
    assert_ne!(before, after, "the Preparation was pushed");

    shop.clone();
    let run = shop.expedite(&["run", "--no-records"]);
    run.ok();
    assert!(run.stdout.contains("shop/web: promotes web-"), "{}", run.transcript("run"));
    let applications = place.path("gitops/applications/shop");
    let files: Vec<_> = fs::read_dir(applications).unwrap().map(|e| e.unwrap().path()).collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    let application: Value = serde_yaml::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(application["spec"]["source"]["repoURL"], format!("oci://{}/shop/web", shop.server.address));
}

/// The statements in envelopes that cosign printed, one a line.
#[track_caller]
fn statements(printed: &[u8]) -> String {
    let lines = printed.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let decoded = lines.map(|line| {
        let printed: Value = serde_json::from_slice(line).unwrap();
        let envelope = if printed["dsseEnvelope"].is_object() { &printed["dsseEnvelope"] } else { &printed };
        let payload = STANDARD.decode(envelope["payload"].as_str().unwrap()).unwrap();
        String::from_utf8(payload).unwrap()
    });
    decoded.collect()
}

/// Expressions of a workflow replaced by what they are here.
#[track_caller]
fn resolved(text: &str, known: &BTreeMap<String, String>) -> String {
    let mut parts = text.split("${{");
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        let (expression, rest) = part.split_once("}}").unwrap();
        let value = known.get(expression.trim()).unwrap_or_else(|| panic!("what is {expression}?"));
        out.push_str(value);
        out.push_str(rest);
    }
    out
}

#[test]
fn the_documented_commands_are_commands() {
    let text = fs::read_to_string(package().join("docs/prepare.md")).unwrap();
    let commands: Vec<&str> = text.lines().filter(|line| line.starts_with("expedite ")).collect();
    assert!(!commands.is_empty());
    for command in commands {
        let parsed = expedite::verbs::Cli::try_parse_from(command.split_whitespace());
        parsed.unwrap_or_else(|e| panic!("{command}\n{e}"));
    }
}
