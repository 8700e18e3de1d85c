//! Real cosign, both versions: we read what they write, they read what we write. The counts make the tables
//! in `docs/interop-read.md` and `docs/interop-write.md`; `BLESS=1` writes it anew.

use super::{order, proven};
use crate::support::harness::{blessing, package, same};
use crate::support::peers::peer;
use crate::support::servers::{self, Server};
use crate::support::shelf::{TAR, tar};
use crate::support::signing::{ALL_ROLES, Key, kitchen, slsa, usable};
use expedite::evidence::gather::{GatherOptions, gather_blocking, make_runtime};
use expedite::evidence::keys::KeyRing;
use expedite::model::evidence::{ArtifactFacts, Ask, Claim};
use expedite::model::id::{Artifact, Digest, OciRepository};
use oci_registry::{HostConfig, Registries, RegistriesConfig};
use sigstore::crypto::SigningScheme;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One cosign, with the flags that make it work without a network.
#[derive(Clone)]
pub struct Cosign {
    pub name: &'static str,
    program: PathBuf,
    home: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    Bundles,
    Tags,
}

impl Cosign {
    pub fn new(name: &'static str, home: &Path) -> Option<Self> {
        Some(Self { name, program: peer(name)?, home: home.to_owned() })
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(&self.home).env_clear();
        command.env("HOME", &self.home).env("COSIGN_PASSWORD", "");
        command
    }

    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{} {arguments:?}: {said}", self.name);
        said + &String::from_utf8_lossy(&output.stdout)
    }

    /// `sign` or `attest` in this layout.
    #[track_caller]
    pub fn write(&self, verb: &str, layout: Layout, key: &str, more: &[&str], reference: &str) {
        let mut all = vec![verb, "--key", key, "--yes", "--tlog-upload=false", "--allow-http-registry"];
        match (self.name, layout) {
            ("cosign3", Layout::Bundles) => all.push("--use-signing-config=false"),
            ("cosign3", Layout::Tags) => {
                all.extend(["--use-signing-config=false", "--new-bundle-format=false"]);
            }
            (_, Layout::Bundles) => all.push("--new-bundle-format"),
            (_, Layout::Tags) => {}
        }
        all.extend(more);
        all.push(reference);
        self.run(&all);
    }
}

/// A key as cosign keeps it, and its public half.
pub struct CosignKey {
    pub file: String,
    pub public: String,
}

/// The key types that cosign can sign with.
const KEYS: &[(&str, SigningScheme)] = &[
    ("ECDSA P-256", SigningScheme::ECDSA_P256_SHA256_ASN1),
    ("ECDSA P-384", SigningScheme::ECDSA_P384_SHA384_ASN1),
    ("ECDSA P-521", SigningScheme::ECDSA_P521_SHA512_ASN1),
    ("RSA 2048", SigningScheme::RSA_PKCS1_SHA256(2048)),
    ("Ed25519", SigningScheme::ED25519),
];

/// A new key that cosign has imported.
pub fn make_key(cosign: &Cosign, scheme: SigningScheme) -> CosignKey {
    let key = Key::of(scheme);
    let folder = tempfile::Builder::new().prefix("key").tempdir_in(&cosign.home).unwrap().keep();
    let pem = folder.join("plain.pem");
    fs::write(&pem, key.private_pem()).unwrap();
    let prefix = folder.join("cosign").to_str().unwrap().to_owned();
    cosign.run(&["import-key-pair", "--key", pem.to_str().unwrap(), "--output-key-prefix", &prefix]);
    let public = fs::read_to_string(format!("{prefix}.pub")).unwrap();
    CosignKey { file: format!("{prefix}.key"), public }
}

/// Pushes an artifact as a renderer does, and gives it with its reference.
pub fn push(oras: &Path, home: &Path, server: &Server, path: &str) -> (Artifact, String) {
    let file = format!("{}.tar", path.replace('/', "-"));
    fs::write(home.join(&file), tar(&[("deploy.yaml", path.as_bytes())])).unwrap();
    let place = format!("{}/{path}", server.address);
    let output = Command::new(oras)
        .args(["push", "--plain-http", "--no-tty", "--format", "go-template={{.digest}}"])
        .args([&format!("{place}:v1"), &format!("{file}:{TAR}")])
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let digest = Digest::parse(String::from_utf8(output.stdout).unwrap().trim()).unwrap();
    let artifact = Artifact { repository: OciRepository::parse(&place).unwrap(), digest };
    (artifact, format!("{place}@{digest}"))
}

pub fn plain_http(server: &Server) -> Registries {
    let host = HostConfig { plain_http: true, ..HostConfig::default() };
    let hosts = [(server.address.clone(), host)].into();
    Registries::new(RegistriesConfig { hosts, ..RegistriesConfig::default() }).unwrap()
}

fn gather(registries: &Registries, ring: &KeyRing, artifact: &Artifact, claims: &[Claim]) -> ArtifactFacts {
    let asks = [Ask { artifact: artifact.clone(), claims: claims.iter().cloned().collect() }];
    let options = GatherOptions::default();
    let facts = gather_blocking(&make_runtime().unwrap(), &asks, ring, registries, &options);
    facts.artifacts[artifact].clone()
}

fn basics() -> BTreeSet<Claim> {
    [Claim::Artifact, Claim::Signature, Claim::Provenance(order())].into()
}

pub fn predicate_file(home: &Path) -> String {
    let file = home.join("slsa.json");
    fs::write(&file, slsa("shop", "podinfo").to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// How many of the claims of one cell are proven, and by how many requests at most.
type Cells = BTreeMap<(String, &'static str, &'static str, &'static str), usize>;

#[test]
fn we_read_what_cosign_writes() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (Some(oras), Some(v3), Some(v2)) =
        (peer("oras"), Cosign::new("cosign3", home), Cosign::new("cosign2", home))
    else {
        return;
    };
    let (Some(refreg), Some(docker)) = (servers::refreg(), servers::docker_registry()) else { return };
    let keys: Vec<CosignKey> = KEYS.iter().map(|(_, scheme)| make_key(&v3, *scheme)).collect();
    let predicate = predicate_file(home);
    let cell = |registry: &'static str, server: &Server, cosign: &Cosign| {
        let mut cells = Cells::new();
        for (n, key) in keys.iter().enumerate() {
            let ring = usable(&kitchen(&[("renderer", key.public.clone(), ALL_ROLES)]));
            for layout in [Layout::Bundles, Layout::Tags] {
                let path = format!("{}/{layout:?}/{n}", cosign.name).to_lowercase();
                let (artifact, reference) = push(&oras, home, server, &path);
                cosign.write("sign", layout, &key.file, &[], &reference);
                let more = ["--type", "slsaprovenance1", "--predicate", &predicate];
                cosign.write("attest", layout, &key.file, &more, &reference);
                let registries = plain_http(server);
                let claims: Vec<Claim> = basics().into_iter().collect();
                let facts = gather(&registries, &ring, &artifact, &claims);
                proven(facts.artifact.unwrap());
                proven(facts.signature.unwrap());
                let provenance = proven(facts.provenance[&order()].clone());
                assert!(provenance.dependencies.contains(&Digest::hash_bytes(b"base")));
                let asked = registries.collect_requests().len();
                assert!(asked <= 11 + usize::from(registry != "refreg"), "{path}: {asked} requests");
                let layout = match layout {
                    Layout::Bundles => "bundles",
                    Layout::Tags => ".sig/.att",
                };
                cells.insert((KEYS[n].0.to_owned(), cosign.name, layout, registry), claims.len());
            }
        }
        cells
    };
    let cells = std::thread::scope(|scope| {
        let jobs = [
            scope.spawn(|| cell("refreg", &refreg, &v3)),
            scope.spawn(|| cell("refreg", &refreg, &v2)),
            scope.spawn(|| cell("docker-registry 2.8", &docker, &v3)),
            scope.spawn(|| cell("docker-registry 2.8", &docker, &v2)),
        ];
        jobs.into_iter().flat_map(|j| j.join().unwrap()).collect::<Cells>()
    });
    let mut text = String::from(
        "# What cosign writes, we read\n\nWritten by `tests/it/evidence/interop.rs` (`BLESS=1` writes it anew): how many of three claims \
         (artifact, signature, SLSA provenance for one Order) are proven from what each cosign wrote.\n\n\
         | key | written by | as | refreg (referrers API) | docker-registry 2.8 (fallback tag) |\n|---|---|---|---|---|\n",
    );
    for (key, _) in KEYS {
        for cosign in ["cosign3", "cosign2"] {
            for layout in ["bundles", ".sig/.att"] {
                let count = |registry| cells[&((*key).to_owned(), cosign, layout, registry)];
                let (api, fallback) = (count("refreg"), count("docker-registry 2.8"));
                writeln!(text, "| {key} | {cosign} | {layout} | {api} of 3 | {fallback} of 3 |").unwrap();
            }
        }
    }
    compare("interop-read.md", &text);
}

pub fn compare(name: &str, text: &str) {
    let file = package().join("docs").join(name);
    if blessing() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
    }
    if let Err(difference) = same(&file, text) {
        panic!("{difference}");
    }
}

#[test]
fn what_oras_copies_into_an_image_layout_proves_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (Some(oras), Some(cosign), Some(server)) =
        (peer("oras"), Cosign::new("cosign3", home), servers::refreg())
    else {
        return;
    };
    let key = make_key(&cosign, KEYS[0].1);
    let ring = usable(&kitchen(&[("renderer", key.public.clone(), ALL_ROLES)]));
    let predicate = predicate_file(home);
    let copy = |arguments: &[&str]| {
        let output = Command::new(&oras).args(arguments).env_clear().env("HOME", home).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    for layout in [Layout::Bundles, Layout::Tags] {
        let path = format!("shop/{layout:?}").to_lowercase();
        let (artifact, reference) = push(&oras, home, &server, &path);
        cosign.write("sign", layout, &key.file, &[], &reference);
        let more = ["--type", "slsaprovenance1", "--predicate", &predicate];
        cosign.write("attest", layout, &key.file, &more, &reference);
        let to = home.join("layouts").join(&path);
        let to = to.to_str().unwrap();
        let digest = artifact.digest;
        copy(&["copy", "-r", "--from-plain-http", &reference, "--to-oci-layout", &format!("{to}@{digest}")]);
        for suffix in ["sig", "att"] {
            if layout == Layout::Tags {
                let tag = format!("sha256-{}.{suffix}", digest.format_hex());
                let from = format!("{}/{path}:{tag}", server.address);
                copy(&["copy", "--from-plain-http", &from, "--to-oci-layout", &format!("{to}:{tag}")]);
            }
        }
        let host = HostConfig { layout: Some(home.join("layouts")), ..HostConfig::default() };
        let hosts = [("r.example".to_owned(), host)].into();
        let registries = Registries::new(RegistriesConfig { hosts, ..RegistriesConfig::default() }).unwrap();
        let repository = OciRepository::parse(&format!("r.example/{path}")).unwrap();
        let claims: Vec<Claim> = basics().into_iter().collect();
        let facts = gather(&registries, &ring, &Artifact { repository, digest }, &claims);
        proven(facts.artifact.unwrap());
        proven(facts.signature.unwrap());
        proven(facts.provenance[&order()].clone());
    }
}

#[test]
fn case_55_docker_media_types_and_the_experimental_form() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (Some(oras), Some(cosign)) = (peer("oras"), Cosign::new("cosign3", home)) else { return };
    let (Some(refreg), Some(docker)) = (servers::refreg(), servers::docker_registry()) else { return };
    let key = make_key(&cosign, KEYS[0].1);
    let ring = usable(&kitchen(&[("renderer", key.public.clone(), ALL_ROLES)]));
    let flags = ["sign", "--key", &key.file, "--yes", "--tlog-upload=false", "--use-signing-config=false"];
    let sign = |more: &[&str], variable: &str, reference: &str| {
        let mut command = cosign.command(&flags);
        let output = command.args(more).arg(reference).env(variable, "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    for server in [&refreg, &docker] {
        let (artifact, reference) = push(&oras, home, server, "shop/docker-types");
        sign(&["--new-bundle-format=false"], "COSIGN_DOCKER_MEDIA_TYPES", &reference);
        let proof =
            proven(gather(&plain_http(server), &ring, &artifact, &[Claim::Signature]).signature.unwrap());
        assert_eq!(proof.place, ".sig tag");
    }
    let (artifact, reference) = push(&oras, home, &refreg, "shop/experimental");
    let more = ["--new-bundle-format=false", "--registry-referrers-mode=oci-1-1"];
    sign(&more, "COSIGN_EXPERIMENTAL", &reference);
    let proof =
        proven(gather(&plain_http(&refreg), &ring, &artifact, &[Claim::Signature]).signature.unwrap());
    assert_eq!(proof.place, "referrers API");
}

#[test]
fn a_scan_that_cosign_attested_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (Some(oras), Some(server)) = (peer("oras"), servers::refreg()) else { return };
    for name in ["cosign3", "cosign2"] {
        let Some(cosign) = Cosign::new(name, home) else { return };
        let key = make_key(&cosign, KEYS[0].1);
        let ring = usable(&kitchen(&[("scanner", key.public.clone(), ALL_ROLES)]));
        let report = r#"{"invocation":{"parameters":"","uri":"","event_id":"","builder.id":""},
            "scanner":{"uri":"pkg:github/aquasecurity/trivy@0.60.0","version":"0.60.0","db":{"uri":"","version":""},
              "result":{"SchemaVersion":2,"Results":[{"Target":"a","Class":"os-pkgs","Vulnerabilities":[
                {"VulnerabilityID":"CVE-1","PkgName":"ssl","InstalledVersion":"1","Severity":"HIGH"}]}]}},
            "metadata":{"scanStartedOn":"2026-11-01T10:00:00Z","scanFinishedOn":"2026-11-01T10:01:00Z"}}"#;
        fs::write(home.join("vuln.json"), report).unwrap();
        let (artifact, reference) = push(&oras, home, &server, &format!("shop/scan-{name}"));
        for layout in [Layout::Bundles, Layout::Tags] {
            cosign.write(
                "attest",
                layout,
                &key.file,
                &["--type", "vuln", "--predicate", "vuln.json"],
                &reference,
            );
        }
        let scans = proven(gather(&plain_http(&server), &ring, &artifact, &[Claim::Scans]).scans.unwrap());
        assert_eq!(scans.len(), 1, "one scanner");
        assert_eq!(
            (scans[0].scanner.as_str(), scans[0].counts.unwrap().high),
            ("pkg:github/aquasecurity/trivy", 1)
        );
        assert_eq!(scans[0].fixable.unwrap().high, 0);
        assert_eq!(scans[0].finished_on.to_string(), "2026-11-01T10:01:00Z");
    }
}
