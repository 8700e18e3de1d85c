//! `run --write-status` on a real API server: what git says reaches `servings/status`, Events tell what is
//! news, and nothing else is written.

use super::deploy::{argo, committed, installed, prepare, ready, run, serving, tree};
use super::*;
use crate::support::apiserver::{ADMIN, ApiServer};
use crate::support::harness::{Place, Said};
use expedite::load::cluster::told::Told;
use expedite::model::id::Digest;
use expedite::model::serving::ServingStatus;
use expedite::model::time::Time;
use expedite::notify::{self, TellOutcome, Teller};
use std::collections::BTreeSet;

const SERVING: &str = "/apis/delivery.kokumi.dev/v1alpha1/namespaces/shop/servings/podinfo";
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/shop/events";

/// What a run needs besides reading.
fn may_tell(server: &ApiServer) {
    let rules = json!([
        {"apiGroups": ["delivery.kokumi.dev"], "resources": ["servings/status"], "verbs": ["patch"]},
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
    ]);
    server.grant("expedite", "teller", &rules, Some("shop"));
}

fn write_status(place: &Place) -> Said {
    place.expedite(&["run", "--config", "expedite.yaml", "--write-status"])
}

/// Argo CD brings the Serving of the repository into the cluster; the API server drops its status.
fn synced(server: &ApiServer, place: &Place) {
    let mut object = serving(place);
    object.as_object_mut().unwrap().remove("status");
    server.create(&object);
}

fn events(server: &ApiServer) -> Vec<Value> {
    server.get(EVENTS)["items"].as_array().unwrap().clone()
}

/// A server that keeps a log of who asked for what; the log's file.
fn audited() -> (tempfile::TempDir, [String; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.yaml");
    std::fs::write(
        &policy,
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n",
    )
    .unwrap();
    let flags = [
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", folder.path().join("audit.log").display()),
    ];
    (folder, flags)
}

/// What the user `expedite` asked for: verb and resource.
fn asked(folder: &tempfile::TempDir) -> Vec<String> {
    let log = std::fs::read_to_string(folder.path().join("audit.log")).unwrap();
    let all = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all.filter(|entry| entry["user"]["username"] == "expedite")
        .map(|entry| {
            let what = &entry["objectRef"];
            let path = if what.is_null() {
                text(&entry["requestURI"])
            } else {
                let parts = [&what["apiGroup"], &what["resource"], &what["subresource"]].map(text);
                parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
            };
            format!("{} {path}", text(&entry["verb"]))
        })
        .collect()
}

fn writes(folder: &tempfile::TempDir) -> usize {
    asked(folder).iter().filter(|what| !what.starts_with("list ") && !what.starts_with("get ")).count()
}

#[test]
fn the_cluster_is_told_what_git_says_and_nothing_else_is_written() {
    let (log, flags) = audited();
    let Some((server, place, renderer)) = installed(&flags.each_ref().map(String::as_str)) else { return };
    let first = prepare(&server, &place, &renderer, "one", None);

    // Without the rights the commit stands, and the run says what is missing.
    argo(&server, &place, "Healthy");
    write_status(&place).ok();
    synced(&server, &place);
    let said = write_status(&place);
    said.exits(1);
    assert!(said.stderr.contains("(HTTP 403)") && said.stderr.contains("servings/status"), "{}", said.stderr);
    assert!(said.stderr.contains("events.k8s.io"), "{}", said.stderr);
    assert_eq!(committed(&place).len(), 2);
    assert_eq!(server.get(SERVING).get("status"), None);

    may_tell(&server);
    argo(&server, &place, "Healthy");
    let said = write_status(&place);
    said.ok();
    assert!(said.stderr.contains("cluster expedite: wrote 1 status and 1 Event\n"), "{}", said.stderr);
    assert_eq!(ready(&place), "True Deployed");
    let told = server.get(SERVING);
    assert_eq!(told["status"], serving(&place)["status"]);
    let manager = told["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .find(|m| m["manager"] == "expedite")
        .unwrap();
    assert_eq!((&manager["operation"], &manager["subresource"]), (&json!("Apply"), &json!("status")));
    assert_eq!(manager["fieldsV1"].as_object().unwrap().keys().collect::<Vec<_>>(), ["f:status"]);
    let event = &events(&server)[0];
    assert_eq!((&event["type"], &event["reason"]), (&json!("Normal"), &json!("Promoted")));
    assert_eq!(event["regarding"]["uid"], told["metadata"]["uid"]);
    assert!(event["note"].as_str().unwrap().ends_with(&format!(" in production ({first})")), "{event}");

    // What was told is not told again: nothing but lists.
    let (before, all) = (writes(&log), asked(&log).len());
    run_again(&place);
    assert_eq!(writes(&log), before);
    assert!(asked(&log).len() > all);
    // A plan and a dry run write nothing, whatever there is to tell.
    argo(&server, &place, "Degraded");
    place.expedite(&["plan", "--config", "expedite.yaml"]).ok();
    place.expedite(&["run", "--config", "expedite.yaml", "--write-status", "--dry-run"]).ok();
    run(&place).ok();
    assert_eq!(writes(&log), before, "a run without the flag tells nobody");
    write_status(&place).ok();
    assert_eq!(writes(&log), before + 1, "one status, and no news");
    assert_eq!(server.get(SERVING)["status"], serving(&place)["status"]);

    // Somebody wrote it by hand: git is what is decided from, and what is told again.
    let (git, status) = (tree(&place), server.get(SERVING)["status"].clone());
    let other = format!("sha256:{}", "0".repeat(64));
    let mut lie = status.clone();
    lie["deployedDigest"] = other.as_str().into();
    lie["history"] = json!([]);
    lie["conditions"][0]["reason"] = "Deployed".into();
    server.merge(&format!("{SERVING}/status"), &json!({"status": lie}));
    let plan = place.expedite(&["plan", "--config", "expedite.yaml", "-o", "json"]);
    assert!(!plan.ok().contains(&other), "{}", plan.stdout);
    let said = write_status(&place);
    said.ok();
    assert_eq!(tree(&place), git, "nothing in git follows from what a cluster says");
    assert_eq!(server.get(SERVING)["status"], status);
    // It was news to the Serving once more, and the Event of it is the same.
    assert!(said.stderr.contains("wrote 1 status and 1 Event\n"), "{}", said.stderr);
    assert_eq!(events(&server).len(), 1);

    // The next promotion, with what the API server says of who asked for what.
    std::thread::sleep(Duration::from_millis(1100));
    prepare(&server, &place, &renderer, "two", Some(&first));
    write_status(&place).ok();
    assert_eq!(events(&server).len(), 2);
    assert_eq!(server.get(SERVING)["status"], serving(&place)["status"]);
    let verbs: BTreeSet<String> = asked(&log).into_iter().collect();
    let kinds = ["approvals", "clusters", "environments", "kitchens", "orders", "preparations", "servings"];
    let mut expected: BTreeSet<String> =
        kinds.iter().map(|kind| format!("list delivery.kokumi.dev/{kind}")).collect();
    for more in [
        "get /apis/argoproj.io/v1alpha1?",
        "get /apis/delivery.kokumi.dev/v1alpha1?",
        "get /openapi/v3/apis/delivery.kokumi.dev/v1alpha1?",
        "list argoproj.io/applications",
        "create events.k8s.io/events",
        "patch delivery.kokumi.dev/servings/status",
    ] {
        expected.insert(more.to_owned());
    }
    assert_eq!(verbs, expected);
}

/// Twice, so that nothing is left to do.
fn run_again(place: &Place) {
    write_status(place).ok();
    let said = write_status(place);
    said.ok();
    assert!(!said.stderr.contains(": wrote "), "{}", said.stderr);
}

#[test]
fn objects_in_one_cluster_and_argo_cd_in_another_are_told_in_the_first() {
    let Some((server, place, renderer)) = installed(&[]) else { return };
    may_tell(&server);
    prepare(&server, &place, &renderer, "one", None);
    let live = std::sync::Arc::new(std::sync::Mutex::new(Vec::<Value>::new()));
    let items = live.clone();
    let argo_cd = stubserver::Stub::start(move |request| match request.path.as_str() {
        "/apis/argoproj.io/v1alpha1" => {
            stubserver::Answer::Json(200, json!({"resources": [{"name": "applications"}]}))
        }
        "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications" => {
            stubserver::page(&items.lock().unwrap(), "")
        }
        _ => stubserver::Answer::Text(404, "404 page not found".into()),
    });
    let mut config: Value = serde_json::from_str(&place.read("kubeconfig")).unwrap();
    let more = json!({"name": "elsewhere", "cluster": {"server": argo_cd.url()}});
    config["clusters"].as_array_mut().unwrap().push(more);
    let more = json!({"name": "argo", "context": {"cluster": "elsewhere", "user": "expedite"}});
    config["contexts"].as_array_mut().unwrap().push(more);
    place.write("kubeconfig", config.to_string());
    place.edit(
        "expedite.yaml",
        "- cluster: {context: expedite}\n",
        "- cluster: {context: expedite, applications: false}\n- cluster: {context: argo, kinds: []}\n",
    );
    write_status(&place).ok();
    synced(&server, &place);
    argo(&server, &place, "Healthy");
    // What Argo CD's own cluster says is what counts.
    *live.lock().unwrap() = server.get("/apis/argoproj.io/v1alpha1/namespaces/argocd/applications")["items"]
        .as_array()
        .unwrap()
        .clone();
    let said = write_status(&place);
    said.ok();
    assert!(said.stderr.contains("cluster expedite: wrote 1 status and 1 Event\n"), "{}", said.stderr);
    assert_eq!(ready(&place), "True Deployed");
    assert_eq!(server.get(SERVING)["status"], serving(&place)["status"]);
    assert!(
        argo_cd.seen().iter().all(|request| request.method == "GET"),
        "nothing is written where Argo CD runs"
    );
}

#[test]
fn a_serving_that_is_not_there_is_told_later_and_never_created() {
    let Some((server, place, renderer)) = installed(&[]) else { return };
    may_tell(&server);
    prepare(&server, &place, &renderer, "one", None);
    let said = place.expedite(&["run", "--config", "expedite.yaml", "--write-status", "-v"]);
    said.ok();
    let line = "cluster expedite: shop/podinfo: its Serving is not in the cluster yet\n";
    assert!(said.stderr.contains(line), "{}", said.stderr);
    assert_eq!(server.send(ADMIN, "GET", SERVING, None).0, 404);
    assert_eq!(events(&server).len(), 0);
    // As a run that was killed behind its push would have left it.
    synced(&server, &place);
    let said = write_status(&place);
    assert!(said.ok().contains("podinfo"));
    assert_eq!(server.get(SERVING)["status"], serving(&place)["status"]);
    assert_eq!(events(&server).len(), 1);

    // The definition of August 2026 has no room for it: told, and the commit stands.
    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/servings.delivery.kokumi.dev";
    server.delete(definition);
    while [definition, SERVING].iter().any(|path| server.send(ADMIN, "GET", path, None).0 != 404) {
        std::thread::sleep(Duration::from_millis(50));
    }
    server.define(&apiserver::data("kokumi/servings.yaml"));
    server.create(&json!({"apiVersion": "delivery.kokumi.dev/v1alpha1", "kind": "Serving",
        "metadata": {"name": "podinfo", "namespace": "shop"},
        "spec": {"orderName": "podinfo", "preparationName": serving(&place)["spec"]["preparationName"],
            "preparationPolicy": {"type": "Automatic"}}}));
    let git = tree(&place);
    let said = write_status(&place);
    said.exits(1);
    assert!(said.stderr.contains("field not declared in schema (HTTP 500)"), "{}", said.stderr);
    assert!(
        said.stderr.contains("hint: its CustomResourceDefinition of Serving is older"),
        "{}",
        said.stderr
    );
    assert_eq!(tree(&place), git);
}

#[test]
fn write_status_wants_a_cluster_with_servings() {
    let place = Place::with_shop();
    for more in [&[][..], &["--dry-run"]] {
        let said = place.expedite(&[&["run", "--config", "expedite.yaml", "--write-status"], more].concat());
        said.exits(64);
        assert!(
            said.stderr.contains("--write-status: no source is a cluster with Servings"),
            "{}",
            said.stderr
        );
        assert!(said.stderr.contains("--from-cluster"), "{}", said.stderr);
    }
    assert_eq!(place.tree("shop.git", "main"), []);
    place.write(
        "kubeconfig",
        apiserver::kubeconfig("http://127.0.0.1:9", Path::new("x"), "ann")
            .replace(",\"certificate-authority\":\"x\"", ""),
    );
    let mut place = place;
    place.set("KUBECONFIG", place.path("kubeconfig").to_str().unwrap());
    place.write(
        "expedite.yaml",
        "sources:\n- cluster: {context: ann, kinds: [Order, Preparation]}\nrepository: {url: ./shop.git}\n",
    );
    let said = place.expedite(&["run", "--config", "expedite.yaml", "--write-status"]);
    said.exits(64);
    assert!(
        said.stderr.contains("cluster ann gives Orders, and its Servings are not listed"),
        "{}",
        said.stderr
    );
    assert!(said.stderr.contains("add Serving to the kinds"), "{}", said.stderr);
}

/// Tells the Serving `shop/podinfo`, listed as `item`, that git says `status`.
fn tell(
    server: &ApiServer,
    item: &Value,
    before: Option<&ServingStatus>,
    status: &ServingStatus,
) -> TellOutcome {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, server.kubeconfig("expedite")).unwrap();
    let runtime = runtime();
    let connection = runtime.block_on(access_by(&file).open_connection(None)).unwrap();
    let (order, told) = Told::from_item(item).unwrap();
    let telling = notify::make_telling(&order, &told, before, status, Time::read_clock()).unwrap();
    Teller::new("cluster:expedite".into(), connection).tell_all(&runtime, &[telling])
}

#[test]
fn a_rise_is_a_warning_and_what_others_write_meanwhile_is_no_reason_to_write_over_it() {
    let Some(server) = ApiServer::start() else { return };
    server.define_shipped();
    server.namespace("shop");
    may_tell(&server);
    let lists = json!([{"apiGroups": ["delivery.kokumi.dev"], "resources": ["servings"], "verbs": ["list"]}]);
    server.grant("expedite", "lists", &lists, Some("shop"));
    let spec = json!({"orderName": "podinfo", "preparationName": "podinfo-1"});
    server.create(&json!({"apiVersion": "delivery.kokumi.dev/v1alpha1", "kind": "Serving",
        "metadata": {"name": "podinfo", "namespace": "shop"}, "spec": spec}));
    let digest = Digest::hash_bytes(b"podinfo-1");
    let scanned = |critical: u64, by: &str| -> ServingStatus {
        let now = Time::read_clock();
        serde_json::from_value(json!({
            "observedPreparationName": "podinfo-1", "deployedDigest": digest,
            "history": [{"preparationName": "podinfo-1", "digest": digest, "promotedTime": now,
                "requestedBy": {"name": by, "signedBy": "unsigned"}}],
            "deployedVulnerabilities": {"critical": critical, "scannedTime": now, "attestation": Digest::hash_bytes(&critical.to_be_bytes())},
        }))
        .unwrap()
    };
    // Foreign text as long and as odd as it comes, in characters of three bytes.
    let first = scanned(0, &format!("\u{1b}[31m{}", "値".repeat(2000)));
    let before = server.get(SERVING);
    let outcome = tell(&server, &before, None, &first);
    assert_eq!((outcome.statuses, outcome.events, outcome.failures), (1, 1, Vec::new()));
    let second = scanned(2, "ann");
    let second = ServingStatus { history: first.history.clone(), ..second };
    let outcome = tell(&server, &server.get(SERVING), Some(&first), &second);
    assert_eq!((outcome.statuses, outcome.events, outcome.failures), (1, 1, Vec::new()));
    let events = events(&server);
    assert_eq!(events.len(), 2);
    let said = |reason: &str| events.iter().find(|event| event["reason"] == reason).unwrap();
    let note = said("Promoted")["note"].as_str().unwrap();
    assert!(note.len() > 1000 && note.len() <= 1024 && note.contains("\\u{1b}[31m値"), "{note}");
    let rise = said("VulnerabilitiesIncreased");
    assert_eq!(rise["type"], "Warning");
    let note = rise["note"].as_str().unwrap();
    assert!(
        note.starts_with("vulnerabilities of podinfo-1 rose") && note.contains("critical from 0 to 2"),
        "{note}"
    );

    // Since it was listed, Argo CD set a label: written all the same.
    let listed = server.get(SERVING);
    server.merge(SERVING, &json!({"metadata": {"labels": {"app.kubernetes.io/instance": "expedite"}}}));
    let third = ServingStatus { deployed_vulnerabilities: None, ..second.clone() };
    let outcome = tell(&server, &listed, None, &third);
    assert_eq!((outcome.statuses, outcome.failures), (1, Vec::new()));
    assert_eq!(server.get(SERVING)["status"], serde_json::to_value(&third).unwrap());
    // What was listed before that is old: a run that was slower than another does not undo what that one told.
    let outcome = tell(&server, &listed, None, &scanned(7, "bob"));
    assert_eq!((outcome.statuses, outcome.failures), (0, Vec::new()));
    assert!(
        outcome.lines.iter().any(|line| line.contains("another writer changed its status")),
        "{:?}",
        outcome.lines
    );
    assert_eq!(server.get(SERVING)["status"], serde_json::to_value(&third).unwrap());
}
