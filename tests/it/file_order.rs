//! The same inputs give the same bytes, whatever the files are called, which documents stand together, and in
//! what order: the plan, the messages (apart from where a thing stands) and every file that is written.

use crate::support::argo::{Argo, at};
use crate::support::sim::*;
use expedite::files::{EntryKind, FileChange, FileEntry, Files, Unreadable};
use expedite::load::{self, Input};
use expedite::policy::decide;
use expedite::render;
use expedite::report::json_v1;
use expedite::report::preview::Preview;
use expedite::report::view::View;
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Files in memory.
#[derive(Default, Clone)]
struct Tree(BTreeMap<String, Vec<u8>>);

impl Files for Tree {
    fn name(&self) -> String {
        "objects".into()
    }
    fn list_entries(&self, prefix: &str) -> (Vec<FileEntry>, Vec<Unreadable>) {
        let below = self.0.keys().filter(|path| path.starts_with(prefix));
        let entry = |path: &String| FileEntry { path: path.clone(), kind: EntryKind::File, id: None };
        (below.map(entry).collect(), Vec::new())
    }
    fn read_file(&self, path: &str) -> Result<Option<Vec<u8>>, Unreadable> {
        Ok(self.0.get(path).cloned())
    }
}

fn object(kind: &str, metadata: &str, spec: &str) -> String {
    format!(
        "apiVersion: delivery.kokumi.dev/v1alpha1\nkind: {kind}\nmetadata: {{{metadata}}}\nspec: {spec}\n"
    )
}

fn preparation_of(order: &str, version: usize, artifact: &str, more: &str) -> String {
    let (namespace, name) = order.split_once('/').unwrap();
    let digest = digest(artifact);
    object(
        "Preparation",
        &format!(
            "name: {name}-{version}, namespace: {namespace}, creationTimestamp: \"2026-11-30T0{version}:00:00Z\""
        ),
        &format!(
            "{{orderName: {name}, artifact: {{ociRef: \"oci://r.example/{order}@{digest}\", digest: \"{digest}\", signed: true}}, commitMessage: \"change {version}\"{more}}}"
        ),
    )
}

fn vote(name: &str, person: &str, of: &str, artifact: &str, decision: &str, minute: usize) -> String {
    object(
        "Approval",
        &format!("name: {name}, namespace: shop"),
        &format!(
            "{{preparationRef: {{name: {of}, artifactDigest: \"{}\"}}, approver: {{issuer: i, subject: {person}, username: {person}}}, decision: {decision}, submittedTime: \"2026-11-30T08:{minute:02}:00Z\"}}",
            digest(artifact)
        ),
    )
}

/// A fleet with every kind of gate, with what passes, waits, is rejected and is wrong.
fn documents() -> Vec<String> {
    let mut all = vec![object(
        "Kitchen",
        "name: default",
        &format!(
            "{{approvalTrust: Repository, approvers: [{{issuer: i, subject: ann, username: ann, groups: [platform]}}, {{issuer: i, subject: bob, username: bob, groups: [platform]}}], reject: [{{digest: \"{}\", reason: loses orders}}]}}",
            digest("bad")
        ),
    )];
    for name in ["dev-1", "eu-1", "us-1"] {
        all.push(object(
            "Cluster",
            &format!("name: {name}"),
            &format!("{{server: \"https://{name}.example\"}}"),
        ));
    }
    all.push(object("Environment", "name: dev", "{clusters: [dev-1]}"));
    all.push(object(
        "Environment",
        "name: production",
        "{clusters: [us-1, eu-1], promotion: {freezes: [{from: \"2026-12-20T00:00:00Z\", to: \"2027-01-04T00:00:00Z\", reason: year end}]}}",
    ));
    let order = |order: &str, spec: &str| {
        let (namespace, name) = order.split_once('/').unwrap();
        object("Order", &format!("name: {name}, namespace: {namespace}"), spec)
    };
    let production =
        |gates: &str| format!("{{environment: production, promotion: {{mode: Automatic, {gates}}}}}");
    all.push(order("staging/podinfo", "{environment: dev, promotion: {mode: Automatic}}"));
    all.push(order("shop/podinfo", &production("upstream: [{order: staging/podinfo, soak: 30m}]")));
    all.push(order(
        "shop/voted",
        &production("approvals: {requiredApprovals: 2, allowedGroups: [platform]}"),
    ));
    all.push(order(
        "shop/night",
        &production("windows: [{timezone: Europe/Zurich, from: \"20:00\", to: \"22:00\"}]"),
    ));
    all.push(order("shop/asked", "{environment: production}"));
    all.push(order("shop/bad", &production("")));
    all.push(order("shop/lost", "{environment: nowhere}"));
    all.push(order("shop/misspelt", "{environment: production, promotion: {mode: Automatic, windws: []}}"));
    all.push(order("shop/wrong", "{environment: production, promotion: {mode: Automatic, soak: 3}}"));
    all.push(order("lost/typed", "{environment: production, promotion: {windows: nine}}"));
    all.push(object("Cluster", "name: odd", "{server: 3}"));
    all.push(object("Environment", "name: odd", "{clusters: nowhere}"));
    all.push(order("ring/a", &production("upstream: [{order: ring/b}]")));
    all.push(order("ring/b", &production("upstream: [{order: ring/a}]")));
    for of in ["staging/podinfo", "shop/podinfo"] {
        all.push(preparation_of(of, 1, "same-1", ""));
        all.push(preparation_of(of, 2, "same-2", ""));
    }
    for (of, artifact) in [
        ("shop/voted", "voted"),
        ("shop/night", "night"),
        ("shop/asked", "asked"),
        ("shop/bad", "bad"),
        ("ring/a", "a"),
    ] {
        all.push(preparation_of(of, 1, artifact, ""));
    }
    all.push(vote("v1", "ann", "voted-1", "voted", "Approve", 1));
    all.push(vote("v2", "ann", "voted-1", "voted", "Reject", 2));
    all.push(vote("v3", "ann", "voted-1", "voted", "Approve", 3));
    all.push(vote("v4", "bob", "voted-1", "voted", "Approve", 4));
    all.push(vote("v5", "eve", "voted-1", "voted", "Approve", 5));
    all.push(vote("v6", "bob", "gone-1", "voted", "Approve", 6));
    all
}

/// Where a thing stands may differ, and what is listed by place; nothing else may.
fn without_places(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for place in ["file", "line", "column"] {
                members.remove(place);
            }
            members.values_mut().for_each(without_places);
            for (name, value) in members {
                if let (true, Value::Array(items)) = (["problems", "errors"].contains(&name.as_str()), value)
                {
                    items.sort_by_cached_key(Value::to_string);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_places),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Three runs over the objects as they stand in `objects`: what each plans, and what the repository holds.
fn runs(objects: &Tree) -> Vec<String> {
    let mut repository = Tree::default();
    let mut sim = Sim::default();
    let mut all = Vec::new();
    for clock in ["09:00", "09:40", "19:30"] {
        let input =
            Input { name: "path:objects".into(), files: objects, kinds: None, namespaces: None, skip: &[] };
        let observed = sim.world.applications.take();
        sim.world = load::read_world(&[input], None);
        sim.world.applications = observed;
        sim.gitops = load::read_gitops(&repository, None);
        sim.now = at(clock);
        Argo::healthy_since(at("09:00")).look(&mut sim, &[]);
        let seal = sim.plan();
        sim.seal(&seal);
        let (cases, facts, context) = sim.judged();
        let plan = decide::decide_plan(&cases, &facts, &sim.world, &sim.gitops, &context, &sim.options);
        let rendered = render::render_files(&plan, &sim.gitops, "argocd");
        assert_eq!(rendered.failures, []);
        let view = View {
            plan: &plan,
            before: &sim.gitops,
            changes: &rendered.changes,
            drift: &[],
            written: None,
            preview: &Preview::default(),
        };
        let mut json: Value = serde_json::from_str(&json_v1::format_plan(&view)).unwrap();
        without_places(&mut json);
        all.push(json.to_string());
        for (path, change) in rendered.changes {
            match change {
                FileChange::Write(bytes) => repository.0.insert(path, bytes),
                FileChange::Delete => repository.0.remove(&path),
            };
        }
        for (path, bytes) in &repository.0 {
            all.push(format!("{path}\n{}", String::from_utf8_lossy(bytes)));
        }
    }
    all
}

/// The documents in this order, cut into files of these names.
fn arranged(documents: &[String], cuts: &[usize], names: &[String]) -> Tree {
    let mut tree = Tree::default();
    let mut file: Vec<&str> = Vec::new();
    let mut number = 0;
    for (at, document) in documents.iter().enumerate() {
        file.push(document);
        if cuts.contains(&at) || at + 1 == documents.len() {
            let name = format!("{}-{number}.yaml", names[number % names.len()]);
            tree.0.insert(name, file.join("---\n").into_bytes());
            file.clear();
            number += 1;
        }
    }
    tree
}

static IN_ONE_FILE: LazyLock<Vec<String>> =
    LazyLock::new(|| runs(&arranged(&documents(), &[], &["all".into()])));

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn neither_names_nor_places_of_files_nor_the_order_of_documents_change_a_byte(
        shuffled in Just(documents()).prop_shuffle(),
        cuts in proptest::collection::vec(0usize..30, 0..30),
        names in proptest::collection::vec("[a-z]{1,3}(/[a-z0-9]{1,3}){0,2}", 1..6),
    ) {
        let there = runs(&arranged(&shuffled, &cuts, &names));
        prop_assert_eq!(&*IN_ONE_FILE, &there);
    }
}

#[test]
fn that_fleet_has_something_of_everything() {
    let all = &*IN_ONE_FILE;
    let last: Value = serde_json::from_str(all.iter().rev().find(|t| t.starts_with('{')).unwrap()).unwrap();
    let summary = &last["summary"];
    assert!(summary["failed"].as_u64() >= Some(4), "{summary}");
    assert!(summary["held"].as_u64() >= Some(1), "{summary}");
    for deployed in ["kokumi-shop-podinfo", "kokumi-shop-voted", "kokumi-staging-podinfo"] {
        assert!(all.iter().any(|file| file.contains(deployed)), "{deployed}");
    }
    assert!(!all.iter().any(|file| file.starts_with("applications/") && file.contains("kokumi-shop-bad")));
}
