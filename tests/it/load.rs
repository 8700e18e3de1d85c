//! Loading, from text on disk to objects and problems: the cases B02 to B09, sources that
//! cannot be read whole, misspellings, duplicates and isolation.

mod damaged;
mod identity;
mod kinds_of_damage;
mod misspelt;
mod observed;
mod properties;
mod repository;
mod sources;
mod values;
mod yaml;

use expedite::error::Failure;
use expedite::files::{EntryKind, FileEntry, Files, Unreadable};
use expedite::load::folder::DiskFolder;
use expedite::load::{Input, OURS, Observed, read_gitops, read_world, refine_places};
use expedite::model::id::{Namespace, OrderRef};
use expedite::model::kind::Kind;
use expedite::model::order::Mode;
use expedite::model::time::{Span, Time};
use expedite::model::world::{Holds, World};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use tempfile::TempDir;

fn folder(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        write(dir.path(), path, text.as_bytes());
    }
    dir
}

fn write(root: &Path, path: &str, bytes: &[u8]) {
    let file = root.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, bytes).unwrap();
}

fn input(files: &dyn Files) -> Input<'_> {
    Input { name: "path:objects".into(), files, kinds: None, namespaces: None, skip: &[] }
}

fn world_of(inputs: &[Input<'_>]) -> World {
    read_world(inputs, None)
}

fn load_dir(dir: &TempDir) -> World {
    let files = DiskFolder::new("objects", dir.path());
    world_of(&[input(&files)])
}

fn load(files: &[(&str, &str)]) -> World {
    load_dir(&folder(files))
}

fn one(text: &str) -> World {
    load(&[("a.yaml", text)])
}

/// Every problem as `holds | message | hints`.
fn said(world: &World) -> Vec<String> {
    world
        .problems
        .iter()
        .map(|p| {
            let holds = match &p.holds {
                Holds::Nothing => "nothing".to_owned(),
                Holds::Everything => "everything".to_owned(),
                Holds::Orders(orders) => orders.iter().map(OrderRef::to_string).collect::<Vec<_>>().join(","),
            };
            format!("{holds} | {} | {}", p.failure, p.failure.hints.join("; "))
        })
        .collect()
}

fn order_ref(text: &str) -> OrderRef {
    OrderRef::parse(text).unwrap()
}

const HEAD: &str = "apiVersion: delivery.kokumi.dev/v1alpha1\n";

fn order(name: &str, spec: &str) -> String {
    let (namespace, name) = name.split_once('/').unwrap();
    format!("{HEAD}kind: Order\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec:\n{spec}")
}

fn preparation(name: &str, order: &str, more: &str) -> String {
    let zeros = "0".repeat(64);
    format!(
        "{HEAD}kind: Preparation\nmetadata: {{name: {name}, namespace: shop{more}}}\nspec:\n  orderName: {order}\n  \
         artifact: {{ociRef: \"oci://r.example/shop/a@sha256:{zeros}\", digest: \"sha256:{zeros}\", signed: true}}\n"
    )
}

fn approval(name: &str, submitted: &str, decision: &str) -> String {
    let zeros = "0".repeat(64);
    format!(
        "{HEAD}kind: Approval\nmetadata: {{name: {name}, namespace: shop}}\nspec:\n  preparationRef: {{name: p, \
         artifactDigest: \"sha256:{zeros}\"}}\n  approver: {{issuer: i, subject: s}}\n  decision: {decision}\n  \
         submittedTime: {submitted}\n"
    )
}

const APPLICATION: &str = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: kokumi-shop-a-00000000\n  namespace: argocd\n  \
labels:\n    delivery.kokumi.dev/serving: a\n    delivery.kokumi.dev/serving-namespace: shop\nspec:\n  project: default\n  source: {repoURL: \
\"oci://r.example/a\", targetRevision: \"sha256:0\", path: .}\n  destination: {server: https://kubernetes.default.svc, namespace: shop}\n";

#[test]
fn the_shop_loads_without_a_problem() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/shop/objects");
    let files = DiskFolder::new("objects", root);
    let world = world_of(&[input(&files)]);
    assert_eq!(said(&world), Vec::<String>::new());
    assert!(world.sources[0].whole, "{:?}", world.sources[0].why);
    assert!(world.orders.len() >= 6 && world.environments.len() >= 3 && world.kitchen.is_some());
    let kitchen = world.kitchen.unwrap();
    assert!(kitchen.object.spec.trust.keys.iter().all(|k| k.public_key.is_some()));
    let origin = &world.orders[&order_ref("shop/catalog")].origin;
    assert!(origin.make_place().to_string().starts_with("objects/orders/shop.yaml:"), "{origin:?}");
}
