//! From a cluster to the repository and back: the real binary, a real API server, and Applications with the
//! status that Argo CD gives them (`argo` below writes what was measured of it).

use super::*;
use crate::support::apiserver::{ADMIN, ApiServer};
use crate::support::forge::Renderer;
use crate::support::harness::{Place, Said};
use expedite::model::id::{ClusterName, OrderRef};
use expedite::model::naming::build_application_name;
use expedite::model::time::Time;
use std::collections::BTreeMap;

const APPLICATIONS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications";

/// A server with an Order `shop/podinfo` for the Clusters eu-1 and us-1, read by a user who may only list.
pub fn installed(flags: &[&str]) -> Option<(ApiServer, Place, Renderer)> {
    let server = ApiServer::start_with(flags)?;
    let renderer = Renderer::new(9);
    let mut place = Place::new();
    let keys = harness::shop().join("keys");
    server.define_shipped();
    server.define_applications();
    server.namespace("argocd");
    let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    let api = "delivery.kokumi.dev/v1alpha1";
    for name in ["eu-1", "us-1"] {
        server.create(&json!({"apiVersion": api, "kind": "Cluster", "metadata": {"name": name},
            "spec": {"server": format!("https://{name}.k8s.shop.example:6443")}, "status": ready}));
    }
    server.create(&json!({"apiVersion": api, "kind": "Environment", "metadata": {"name": "production"},
        "spec": {"clusters": ["eu-1", "us-1"]}}));
    server.namespace("kokumi-system");
    server.create(&json!({"apiVersion": api, "kind": "Kitchen",
    "metadata": {"name": "default", "namespace": "kokumi-system"},
    "spec": {"trust": {"keys": [
        {"name": "renderer", "roles": ["signature", "provenance"], "publicKey": renderer.public_key()},
        {"name": "job", "roles": ["approvals", "records"],
            "publicKey": std::fs::read_to_string(keys.join("test-job.pub")).unwrap()},
    ]}}}));
    server.namespace("shop");
    let mut order = order("shop", "podinfo");
    order["spec"]["environment"] = "production".into();
    server.create(&order);
    // Beside it, what is nobody's business.
    server.create(
        &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop"},
        "stringData": {"password": "hunter2"}}),
    );
    server.grant(
        "expedite",
        "reader",
        &json!([{"apiGroups": ["delivery.kokumi.dev"], "resources": ["*"], "verbs": ["list"]}]),
        None,
    );
    server.grant(
        "expedite",
        "observer",
        &json!([{"apiGroups": ["argoproj.io"], "resources": ["applications"], "verbs": ["list"]}]),
        Some("argocd"),
    );
    place.set("EXPEDITE_KEY", keys.join("test-job.key").to_str().unwrap());
    place.set("COSIGN_PASSWORD", "");
    // A proxy that nobody is, past which NO_PROXY leads.
    place.set("HTTPS_PROXY", "http://127.0.0.1:9");
    place.set("NO_PROXY", "localhost,127.0.0.1");
    place.write("kubeconfig", server.kubeconfig("expedite"));
    place.set("KUBECONFIG", place.path("kubeconfig").to_str().unwrap());
    place.write(
        "expedite.yaml",
        "sources:\n- cluster: {context: expedite}\nrepository: {url: ./gitops.git, create: true}\n\
         registries:\n  registry.shop.example:5000: {layout: ./registry}\n",
    );
    Some((server, place, renderer))
}

pub fn run(place: &Place) -> Said {
    place.expedite(&["run", "--config", "expedite.yaml"])
}

pub fn tree(place: &Place) -> BTreeMap<String, String> {
    place.tree("gitops.git", "main").into_iter().collect()
}

pub fn serving(place: &Place) -> Value {
    serde_yaml::from_str(&tree(place)["servings/shop/podinfo.yaml"]).unwrap()
}

#[track_caller]
pub fn ready(place: &Place) -> String {
    let serving = serving(place);
    let conditions = serving["status"]["conditions"].as_array().unwrap();
    let ready = conditions.iter().find(|c| c["type"] == "Ready").unwrap();
    format!("{} {}", ready["status"].as_str().unwrap(), ready["reason"].as_str().unwrap())
}

/// The Applications of the repository, by name.
pub fn committed(place: &Place) -> BTreeMap<String, Value> {
    let all = tree(place).into_iter().filter(|(path, _)| path.starts_with("applications/"));
    all.map(|(_, text)| serde_yaml::from_str::<Value>(&text).unwrap())
        .map(|application| (application["metadata"]["name"].as_str().unwrap().to_owned(), application))
        .collect()
}

pub fn name(cluster: &str) -> String {
    let order = OrderRef::parse("shop/podinfo").unwrap();
    build_application_name(&order, &ClusterName::parse(cluster).unwrap()).unwrap().to_string()
}

/// A Preparation of an artifact that `renderer` made and signed.
pub fn prepare(
    server: &ApiServer,
    place: &Place,
    renderer: &Renderer,
    text: &str,
    parent: Option<&str>,
) -> String {
    let built = Time::read_clock().to_string();
    let digest = renderer.prepare_at(&place.path("registry"), "shop/podinfo", text, &built);
    let mut object = preparation("shop", "podinfo", 1);
    object["metadata"] = json!({"name": format!("podinfo-{}", &digest[7..19]), "namespace": "shop"});
    object["spec"]["artifact"] = json!({
        "ociRef": format!("oci://registry.shop.example:5000/shop/podinfo@{digest}"), "digest": digest, "signed": true,
    });
    if let Some(parent) = parent {
        object["spec"]["parentDigest"] = parent.into();
    }
    server.create(&object);
    digest
}

/// What Argo CD says once it synced what is committed, with this health of the workload.
pub fn argo(server: &ApiServer, place: &Place, health: &str) {
    let now = Time::read_clock();
    for (name, application) in committed(place) {
        let source = &application["spec"]["source"];
        let digest = &source["targetRevision"];
        let mut live = application.clone();
        live["status"] = json!({
            "sync": {"status": "Synced", "revision": digest,
                "comparedTo": {"source": source, "destination": application["spec"]["destination"]}},
            "health": {"status": health, "lastTransitionTime": now},
            "operationState": {"phase": "Succeeded", "startedAt": now, "finishedAt": now, "message": "",
                "operation": {"sync": {"revision": digest}}, "syncResult": {"revision": digest, "source": source}},
            "reconciledAt": now,
            "summary": {"images": ["registry.shop.example:5000/podinfo"]},
        });
        let path = format!("{APPLICATIONS}/{name}");
        if server.send(ADMIN, "GET", &path, None).0 == 404 {
            server.create(&live);
        } else {
            server.merge(&path, &json!({"spec": live["spec"], "status": live["status"]}));
        }
    }
}

#[test]
fn health_comes_from_real_applications_and_a_snapshot_decides_the_same() {
    let Some((mut server, place, renderer)) = installed(&[]) else { return };
    let first = prepare(&server, &place, &renderer, "one", None);
    run(&place).ok();
    assert_eq!(committed(&place).len(), 2, "{:?}", tree(&place).keys());
    assert_eq!(ready(&place), "Unknown Deploying", "Argo CD has none of them yet");
    assert_eq!(serving(&place)["status"]["deployed"]["source"], "cluster:expedite");

    argo(&server, &place, "Healthy");
    // Somebody else's, with what must not leave the cluster.
    server.create(&json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "other", "namespace": "argocd"},
        "spec": {"project": "default", "destination": {"server": "https://kubernetes.default.svc", "namespace": "other"},
            "source": {"repoURL": "https://git.example/x.git", "path": ".", "helm": {"values": "password: hunter2"}}}}));
    run(&place).ok();
    assert_eq!(ready(&place), "True Deployed");
    let healthy = serving(&place)["status"]["history"][0]["firstHealthyTime"].clone();
    assert!(healthy.is_string());

    argo(&server, &place, "Degraded");
    run(&place).ok();
    assert_eq!(ready(&place), "False Degraded");
    std::thread::sleep(Duration::from_millis(1100));
    argo(&server, &place, "Healthy");
    run(&place).ok();
    assert_eq!(ready(&place), "True Deployed");
    assert_eq!(
        serving(&place)["status"]["history"].as_array().unwrap().len(),
        2,
        "a recovery is an entry of its own"
    );

    // The next one: what Argo CD says of the one before is no health of it.
    std::thread::sleep(Duration::from_millis(1100));
    let second = prepare(&server, &place, &renderer, "two", Some(&first));
    run(&place).ok();
    let pinned = committed(&place);
    assert!(pinned.values().all(|a| a["spec"]["source"]["targetRevision"] == second.as_str()));
    run(&place).ok();
    assert_eq!(ready(&place), "Unknown Deploying", "healthy with the version before is not healthy");

    // Frozen, taken away, decided again.
    std::thread::sleep(Duration::from_millis(1100));
    let at = Time::read_clock().to_string();
    let third = prepare(&server, &place, &renderer, "three", Some(&second));
    let said = place.expedite(&["snapshot", "then", "--config", "expedite.yaml"]);
    assert_eq!(said.ok(), "cluster expedite: 8 objects, 3 Applications\n");
    let replay =
        "repository: {url: ./gitops.git}\nregistries:\n  registry.shop.example:5000: {layout: ./registry}\n";
    place.write("replay.yaml", replay);
    let mut live = Vec::new();
    for format in ["table", "wide", "json", "markdown"] {
        live.push(place.expedite(&["plan", "--config", "expedite.yaml", "--at", &at, "-o", format]));
    }
    live.push(place.expedite(&["explain", "shop/podinfo", "--config", "expedite.yaml", "--at", &at]));
    assert!(live[2].ok().contains(&third), "{}", live[2].stdout);
    server.stop();
    let mut again = Vec::new();
    for format in ["table", "wide", "json", "markdown"] {
        again.push(place.expedite(&[
            "plan",
            "--from",
            "then",
            "--config",
            "replay.yaml",
            "--at",
            &at,
            "-o",
            format,
        ]));
    }
    again.push(place.expedite(&[
        "explain",
        "shop/podinfo",
        "--from",
        "then",
        "--config",
        "replay.yaml",
        "--at",
        &at,
    ]));
    assert_eq!(live, again);

    let mut files = Vec::new();
    for entry in walkdir::WalkDir::new(place.path("then")).sort_by_file_name() {
        let entry = entry.unwrap();
        if entry.file_type().is_file() {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            assert!(!text.contains("hunter2") && !text.contains("managedFields"), "{text}");
            assert!(!text.contains("kind: Secret"), "{text}");
            files.push(entry.path().strip_prefix(place.path("then")).unwrap().to_str().unwrap().to_owned());
        }
    }
    assert_eq!(files.len(), 12, "{files:?}");
    assert!(files.contains(&"expedite/orders/shop/podinfo.yaml".to_owned()), "{files:?}");
    place.expedite(&["snapshot", "then", "--config", "expedite.yaml"]).exits(1);
    let refused = place.expedite(&["run", "--from", "then", "--config", "replay.yaml"]);
    refused.exits(1);
    assert!(refused.stderr.contains("nothing is written"), "{}", refused.stderr);
    // The cluster is gone: nothing of it looks deleted.
    let dead = run(&place);
    dead.exits(1);
    assert!(dead.stderr.contains("cluster expedite: the list of orders cannot be read"), "{}", dead.stderr);
    assert_eq!(committed(&place), pinned);
}

#[test]
fn b78_only_the_exact_annotation_opens_an_application_and_only_its_cluster_is_held() {
    let Some((server, place, renderer)) = installed(&[]) else { return };
    let digest = prepare(&server, &place, &renderer, "one", None);
    let by_hand = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name("eu-1"), "namespace": "argocd"},
        "spec": {"project": "default", "source": {"repoURL": "https://git.example/x.git", "path": "."},
            "destination": {"server": "https://eu-1.k8s.shop.example:6443", "namespace": "shop"}}});
    server.create(&by_hand);
    let path = format!("{APPLICATIONS}/{}", name("eu-1"));
    for value in [None, Some("shop/podinfo-extra"), Some("shop/podinfo "), Some("shop/podinfo, shop/other")] {
        if let Some(value) = value {
            let annotations = json!({"delivery.kokumi.dev/allowed-order": value});
            server.merge(&path, &json!({"metadata": {"annotations": annotations}}));
        }
        run(&place).ok();
        let committed = committed(&place);
        assert_eq!(committed.keys().cloned().collect::<Vec<_>>(), [name("us-1")], "{value:?}");
        assert_eq!(committed[&name("us-1")]["spec"]["source"]["targetRevision"], digest.as_str());
        assert_eq!(ready(&place), "False OptInRequired", "{value:?}");
    }
    // Right in the cluster, though not in git: the annotation is where Argo CD and its owner see it.
    server.merge(
        &path,
        &json!({"metadata": {"annotations": {"delivery.kokumi.dev/allowed-order": "shop/podinfo"}}}),
    );
    run(&place).ok();
    assert_eq!(committed(&place).len(), 2);
    assert_eq!(
        committed(&place)[&name("eu-1")]["metadata"].get("finalizers"),
        None,
        "none was there, none is added"
    );
}

#[test]
fn b77_what_goes_is_ours_and_what_is_being_deleted_is_not_written() {
    let Some((server, place, renderer)) = installed(&[]) else { return };
    prepare(&server, &place, &renderer, "one", None);
    // Its name is taken by an Application that is on its way out.
    let leaving = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name("eu-1"), "namespace": "argocd",
            "annotations": {"delivery.kokumi.dev/allowed-order": "shop/podinfo"},
            "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
        "spec": {"project": "default", "source": {"repoURL": "https://git.example/x.git", "path": "."},
            "destination": {"server": "https://eu-1.k8s.shop.example:6443", "namespace": "shop"}}});
    server.create(&leaving);
    let path = format!("{APPLICATIONS}/{}", name("eu-1"));
    server.delete(&path);
    assert!(server.get(&path)["metadata"]["deletionTimestamp"].is_string());
    run(&place).ok();
    assert_eq!(committed(&place).keys().cloned().collect::<Vec<_>>(), [name("us-1")]);

    // The mode alone removes nothing.
    let order = "/apis/delivery.kokumi.dev/v1alpha1/namespaces/shop/orders/podinfo";
    let before = committed(&place);
    server.merge(order, &json!({"spec": {"autoDeploy": "Disabled"}}));
    run(&place).ok();
    assert_eq!(committed(&place), before);

    // The Order goes: ours go with it, the other one is not touched.
    server.create(&{
        let mut other = crate::cluster::order("shop", "other");
        other["spec"]["environment"] = "production".into();
        other
    });
    server.delete(order);
    let plan = place.expedite(&["plan", "--config", "expedite.yaml"]);
    assert!(plan.stdout.contains("; its workload is deleted with it"), "{}", plan.stdout);
    assert!(plan.stdout.contains(&name("us-1")) && !plan.stdout.contains(&name("eu-1")), "{}", plan.stdout);
    run(&place).ok();
    assert_eq!(committed(&place), BTreeMap::new());
    assert!(server.get(&path)["metadata"]["finalizers"].is_array());
}
