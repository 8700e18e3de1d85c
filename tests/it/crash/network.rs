//! Servers: git over HTTP, and registries with and without the referrers API. Runs follow the clock here, so
//! times are left out of what is compared.

use super::{Scene, git, local, state, survives};
use crate::support::fleet;
use crate::support::fsck;
use crate::support::gitserver::{self, Http};
use crate::support::harness::{self, Place};
use crate::support::layout::{self, Layout};
use crate::support::servers::{self, Server};
use expedite::model::time::Time;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

const RUN: [&str; 5] = ["run", "--config", "expedite.yaml", "--key", fleet::KEY];
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Records and seals on an artifact, by their predicate type, each with the digest of its bundle.
type Attached = Vec<(String, String)>;

/// What is attached, by kind; each record is in git, and none is there twice.
fn told(attached: &Attached, repository: &std::path::Path) -> String {
    let distinct: BTreeSet<&String> = attached.iter().map(|(_, bundle)| bundle).collect();
    assert_eq!(distinct.len(), attached.len(), "attached twice: {attached:?}");
    let files = git(repository, &["ls-tree", "-r", "--name-only", "main", "records"]);
    let mut kinds = Vec::new();
    for (kind, bundle) in attached.iter().filter(|(kind, _)| kind.contains("kokumi.dev")) {
        let hex = bundle.strip_prefix("sha256:").unwrap();
        assert!(files.contains(hex), "{kind} {bundle} is attached and not in git:\n{files}");
        kinds.push(kind.as_str());
    }
    kinds.sort_unstable();
    kinds.join("\n") + "\n"
}

fn of_manifest(manifest: &Value) -> (String, String) {
    let kind = manifest["annotations"]["dev.sigstore.bundle.predicateType"].as_str().unwrap_or_default();
    (kind.to_owned(), manifest["layers"][0]["digest"].as_str().unwrap_or_default().to_owned())
}

/// What a layout holds on an artifact.
pub fn in_layout(layout: &Layout, digest: &str) -> Attached {
    let manifests = layout.entries().into_iter().map(|e| layout.manifest(e["digest"].as_str().unwrap()));
    manifests.filter(|m| m["subject"]["digest"] == digest).map(|m| of_manifest(&m)).collect()
}

#[test]
fn b28_git_over_http() {
    let Some(server) = gitserver::http(&Http::default()) else { return };
    let base = local::base(&format!("http://127.0.0.1:{}/SCENE.git", server.port));
    let seed = server.create("seed.git");
    let text = base.read("expedite.yaml");
    base.write("expedite.yaml", text.replace("SCENE", "seed"));
    base.expedite(&RUN).ok();
    base.write("expedite.yaml", text);
    local::change(&base);
    let scenes = AtomicUsize::new(0);
    let place = || {
        let place = local::again(&base);
        let name = format!("scene{}", scenes.fetch_add(1, Ordering::Relaxed));
        harness::copy(&seed, &server.root.join(format!("{name}.git")));
        place.edit("expedite.yaml", "SCENE", &name);
        place.write("scene", name);
        place
    };
    let state = |place: &Place| {
        let repository = server.root.join(format!("{}.git", place.read("scene")));
        let references = git(&repository, &["for-each-ref", "--format=%(refname)"]);
        let mut text = state::shape(&repository) + &references;
        for order in ["shop/basket", "shop/catalog", "shop/mailer"] {
            let layout = layout::repository(&place.path("registry"), order);
            for digest in state::pinned(&repository, order) {
                text += &format!("\n{order} {digest}:\n{}", told(&in_layout(&layout, &digest), &repository));
            }
        }
        fsck::every(&repository);
        text
    };
    survives(&Scene { place: &place, arguments: &RUN, state: &state });
}

/// One registry for many scenes, each with repositories of its own below its name.
struct Shelf {
    server: Server,
    client: reqwest::blocking::Client,
    referrers: bool,
}

impl Shelf {
    fn url(&self, repository: &str, rest: &str) -> String {
        format!("http://{}/v2/{repository}/{rest}", self.server.address)
    }

    /// Copies a layout into a repository, with the fallback tags that a registry without the referrers API needs.
    fn fill(&self, repository: &str, layout: &Layout, digests: &BTreeSet<String>) {
        let mut of: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        let manifests: BTreeSet<String> =
            layout.entries().iter().map(|e| e["digest"].as_str().unwrap().to_owned()).collect();
        for digest in digests.difference(&manifests) {
            let begun = self.client.post(self.url(repository, "blobs/uploads/")).send().unwrap();
            let at = begun.headers()["location"].to_str().unwrap().to_owned();
            let at = if at.starts_with('/') { format!("http://{}{at}", self.server.address) } else { at };
            let sign = if at.contains('?') { '&' } else { '?' };
            let put = self.client.put(format!("{at}{sign}digest={digest}")).body(layout.bytes(digest));
            assert!(put.send().unwrap().status().is_success());
        }
        for digest in &manifests {
            let bytes = layout.bytes(digest);
            let manifest = layout.manifest(digest);
            if let Some(subject) = manifest["subject"]["digest"].as_str() {
                of.entry(subject.to_owned()).or_default().push(json!({
                    "mediaType": MANIFEST, "digest": digest, "size": bytes.len(),
                    "artifactType": manifest["artifactType"], "annotations": manifest["annotations"],
                }));
            }
            self.put(repository, digest, MANIFEST, bytes);
        }
        for (subject, referrers) in of.iter().filter(|_| !self.referrers) {
            let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": referrers});
            self.put(repository, &subject.replace(':', "-"), INDEX, index.to_string().into_bytes());
        }
    }

    fn put(&self, repository: &str, reference: &str, kind: &str, bytes: Vec<u8>) {
        let put = self.client.put(self.url(repository, &format!("manifests/{reference}")));
        let answer = put.header("content-type", kind).body(bytes).send().unwrap();
        assert!(answer.status().is_success(), "{}", answer.text().unwrap());
    }

    fn get(&self, repository: &str, rest: &str) -> Value {
        let get =
            self.client.get(self.url(repository, rest)).header("accept", format!("{INDEX}, {MANIFEST}"));
        serde_json::from_slice(&get.send().unwrap().bytes().unwrap()).unwrap()
    }

    fn on(&self, repository: &str, digest: &str) -> Attached {
        let list = if self.referrers {
            self.get(repository, &format!("referrers/{digest}"))
        } else {
            self.get(repository, &format!("manifests/{}", digest.replace(':', "-")))
        };
        let entries = list["manifests"].as_array().unwrap().clone();
        let digests = entries.iter().map(|e| e["digest"].as_str().unwrap());
        digests.map(|d| of_manifest(&self.get(repository, &format!("manifests/{d}")))).collect()
    }
}

/// Votes that are enough, to be sealed, promoted and recorded in the run that is killed.
fn seals_and_records(server: Server, referrers: bool) {
    let shelf = Shelf { server, client: reqwest::blocking::Client::new(), referrers };
    let base = Place::new();
    fleet::ground(&base);
    let mirror = format!("{{plainHttp: true, mirror: \"http://{}\"}}", shelf.server.address);
    fleet::settings(&base, "./gitops.git", &mirror);
    fleet::order(
        &base,
        "shop/basket",
        "{mode: Automatic, approvals: {requiredApprovals: 1, allowedGroups: [platform]}}",
    );
    fleet::order(&base, "shop/catalog", "{mode: Automatic}");
    let digests = ["shop/basket", "shop/catalog"].map(|order| {
        let digest = fleet::prepare(&base, order, 1, &format!("scene/{order}"));
        (order, digest)
    });
    let blobs: BTreeMap<&str, BTreeSet<String>> = digests
        .iter()
        .map(|(order, _)| {
            let folder = std::fs::read_dir(base.path("registry").join(order).join("blobs/sha256")).unwrap();
            let names = folder.map(|f| format!("sha256:{}", f.unwrap().file_name().to_str().unwrap()));
            (*order, names.collect())
        })
        .collect();
    let scenes = AtomicUsize::new(0);
    let place = || {
        let mut place = local::again(&base);
        // Then one thread alone writes to the registry, and strace counts all that it does.
        place.set("TOKIO_WORKER_THREADS", "1");
        let name = format!("scene{}", scenes.fetch_add(1, Ordering::Relaxed));
        for (order, digest) in &digests {
            let layout = layout::repository(&place.path("registry"), order);
            shelf.fill(&format!("{name}/{order}"), &layout, &blobs[order]);
            fleet::preparation(&place, order, 1, &format!("{name}/{order}"), digest);
        }
        place.write("scene", name);
        // What is promoted is the target already, and that is committed: votes seal nothing else.
        place.expedite(&RUN).ok();
        fleet::approve(&place, "shop/basket", 1, &digests[0].1, Time::parse("2026-02-10T11:30:00Z").unwrap());
        place
    };
    let state = |place: &Place| {
        let (name, repository) = (place.read("scene"), place.path("gitops.git"));
        let mut text = state::shape(&repository).replace(&format!("/{name}/"), "/scene/");
        for (order, digest) in &digests {
            text +=
                &format!("{order}:\n{}", told(&shelf.on(&format!("{name}/{order}"), digest), &repository));
        }
        text
    };
    let scene = Scene { place: &place, arguments: &RUN, state: &state };
    survives(&scene);
    let whole = place();
    whole.expedite(&RUN).ok();
    let kinds = |order: &str| {
        let of = digests.iter().find(|(o, _)| *o == order).unwrap();
        told(&shelf.on(&format!("{}/{order}", whole.read("scene")), &of.1), &whole.path("gitops.git"))
            .lines()
            .count()
    };
    assert_eq!(
        (kinds("shop/basket"), kinds("shop/catalog")),
        (2, 1),
        "a seal and a promotion record; the latter"
    );
}

#[test]
fn b28_a_registry_with_the_referrers_api() {
    let Some(server) = servers::refreg() else { return };
    seals_and_records(server, true);
}

#[test]
fn b28_a_registry_without_the_referrers_api() {
    let Some(server) = servers::docker_registry() else { return };
    seals_and_records(server, false);
}
