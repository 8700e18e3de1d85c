//! A real Argo CD syncs what a run commits, and the next run reads from it how that went.

use crate::support::apiserver::documents;
use crate::support::argocd::ArgoCd;
use crate::support::harness::Place;
use crate::support::layout::repository;
use crate::support::{apiserver, peers, servers};
use serde_json::{Value, json};

/// The Orders of the dev stage, which is the cluster that Argo CD runs in.
const ORDERS: [&str; 2] = ["shop-dev/catalog", "shop-dev/storefront"];

/// A shop of which the dev stage alone is left, its artifacts in `registry`, under that registry's own name:
/// Argo CD knows no mirrors.
fn dev_shop(registry: &str, oras: &std::path::Path) -> Place {
    let place = Place::with_shop();
    for order in ORDERS {
        let layout = repository(&place.path("registry"), order);
        for entry in layout.entries() {
            let Some(tag) = entry["annotations"]["org.opencontainers.image.ref.name"].as_str() else {
                continue;
            };
            let mut command = place.command(oras);
            command.args(["copy", "-r", "--no-tty", "--from-oci-layout", &format!("registry/{order}:{tag}")]);
            command.args(["--to-plain-http", &format!("{registry}/{order}:{tag}")]);
            place.finish(command).ok();
        }
    }
    for folder in ["orders", "preparations"] {
        for entry in std::fs::read_dir(place.path("objects").join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if !name.starts_with("shop-dev") {
                std::fs::remove_file(path).unwrap();
            } else if folder == "preparations" {
                place.edit(&format!("objects/{folder}/{name}"), "registry.shop.example:5000", registry);
            }
        }
    }
    place.edit("objects/kitchen.yaml", "registry.shop.example:5000", registry);
    place.edit(
        "objects/clusters.yaml",
        "https://dev-1.k8s.shop.example:6443",
        "https://kubernetes.default.svc",
    );
    place.edit("expedite.yaml", "registry.shop.example:5000:", &format!("\"{registry}\":"));
    place.edit("expedite.yaml", "layout: ./registry", "plainHttp: true");
    place.write("expedite.yaml", format!("{}\nobserved: ./observed.json\n", place.read("expedite.yaml")));
    place
}

/// Argo CD's word on everything, for the next run, which is made; its row for `order`.
fn next(place: &Place, argocd: &ArgoCd, order: &str) -> String {
    place.write("observed.json", argocd.applications().to_string());
    let said = place.expedite(&["run", "--config", "expedite.yaml"]);
    // One namespace is left: the table has no column for it.
    let (_, name) = order.split_once('/').unwrap();
    let table = said.ok().to_owned();
    let row = table.lines().find(|line| line.split_whitespace().next() == Some(name));
    row.unwrap_or_else(|| panic!("no row of {order}:\n{table}")).to_owned()
}

fn committed(place: &Place, path: &str) -> Option<Value> {
    let (_, text) = place.tree("shop.git", "main").into_iter().find(|(p, _)| p == path)?;
    documents(&text).pop()
}

/// Says of the catalog what a cluster with nodes would say, and waits until Argo CD has seen it.
fn settle(argocd: &ArgoCd, application: &str, available: bool) {
    let conditions = if available {
        json!([{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": ""}])
    } else {
        json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": ""}])
    };
    let path = "/apis/apps/v1/namespaces/shop-dev/deployments/catalog";
    let found = argocd.cluster.get(path);
    let (generation, replicas) = (&found["metadata"]["generation"], &found["spec"]["replicas"]);
    let status = json!({"status": {
        "observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
        "readyReplicas": replicas, "availableReplicas": replicas, "conditions": conditions,
    }});
    argocd.cluster.merge(&format!("{path}/status"), &status);
    let path = "/apis/policy/v1/namespaces/shop-dev/poddisruptionbudgets/catalog/status";
    let status = json!({"status": {
        "observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1, "disruptionsAllowed": 1,
        "conditions": [{
            "type": "DisruptionAllowed", "status": "True", "reason": "SufficientPods", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }],
    }});
    argocd.cluster.merge(path, &status);
    let wanted = if available { "Healthy" } else { "Degraded" };
    argocd.until(application, wanted, |a| a["status"]["health"]["status"] == wanted);
}

#[test]
fn what_is_committed_syncs_and_how_it_went_comes_back() {
    let Some(registry) = servers::refreg() else { return };
    let Some(oras) = peers::peer("oras") else { return };
    let Some(argocd) = ArgoCd::start(&registry.address) else { return };
    let place = dev_shop(&registry.address, &oras);

    // Somebody's own Application has the name that ours would get.
    let theirs = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "kokumi-shop-dev-storefront-0580ab73", "namespace": "argocd"},
        "spec": {
            "project": "default", "source": {"repoURL": "https://git.shop.example/by-hand.git", "path": "."},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "by-hand"},
        },
    });
    argocd.cluster.create(&theirs);
    assert!(next(&place, &argocd, "shop-dev/storefront").contains("Pending"));
    let held = committed(&place, "servings/shop-dev/storefront.yaml").unwrap();
    let ready = held["status"]["conditions"].as_array().unwrap().iter().find(|c| c["type"] == "Ready");
    let message = ready.unwrap()["message"].as_str().unwrap();
    assert!(message.contains("Opt-in") && message.contains("dev-1"), "{message}");
    let ours = "kokumi-shop-dev-catalog-c62596e3";
    let file = committed(&place, &format!("applications/shop-dev/{ours}.yaml")).unwrap();
    let digest = file["spec"]["source"]["targetRevision"].as_str().unwrap().to_owned();
    assert_eq!(committed(&place, "applications/shop-dev/kokumi-shop-dev-storefront-0580ab73.yaml"), None);

    // The root application, as `init` writes it.
    let url = format!("file://{}", place.path("shop.git").display());
    place.git(&["clone", "-q", "shop.git", "work"]);
    let init = ["init", "--repo", "work", "--url", &url, "--registry", &registry.address, "--ci", "none"];
    place.expedite(&init).ok();
    argocd.cluster.apply(&place.read("work/apps.yaml"));
    let synced = |a: &Value| {
        a["status"]["sync"]["status"] == "Synced"
            && a["status"]["sync"]["revision"] == digest.as_str()
            && a["status"]["operationState"]["phase"] == "Succeeded"
    };
    let application = argocd.until(ours, "synced", synced);
    // The API server keeps what we wrote as we wrote it (B69).
    for field in ["source", "destination", "project", "syncPolicy"] {
        assert_eq!(application["spec"][field], file["spec"][field], "{field}");
    }
    let image = &argocd.cluster.get("/apis/apps/v1/namespaces/shop-dev/deployments/catalog")["spec"]["template"]
        ["spec"]["containers"][0]["image"];
    assert_eq!(image, "registry.shop.example:5000/images/catalog:1.6.0");

    // Nothing runs there yet; then it does; then it does not; then it does again.
    assert!(next(&place, &argocd, "shop-dev/catalog").contains("Deploying"));
    settle(&argocd, ours, true);
    assert!(next(&place, &argocd, "shop-dev/catalog").contains("Deployed"));
    settle(&argocd, ours, false);
    assert!(next(&place, &argocd, "shop-dev/catalog").contains("Degraded"));
    settle(&argocd, ours, true);
    assert!(next(&place, &argocd, "shop-dev/catalog").contains("Deployed"));
    let serving = committed(&place, "servings/shop-dev/catalog.yaml").unwrap();
    let history = serving["status"]["history"].as_array().unwrap();
    assert_eq!(history.len(), 2, "recovery opens an entry of its own: {serving:#}");
    assert_eq!(history[1]["endedReason"], "Degraded");
    for entry in history {
        assert_eq!(entry["digest"], digest.as_str());
        assert!(entry["firstHealthyTime"].is_string() && entry["deploymentRecord"].is_string(), "{entry}");
    }

    // The other Order was held all the while, and its going takes nothing of theirs away.
    let orders = place.read("objects/orders/shop-dev.yaml");
    let left: Vec<&str> = orders.split("---\n").filter(|order| !order.contains("name: storefront")).collect();
    assert_eq!(left.len() + 1, orders.split("---\n").count());
    place.write("objects/orders/shop-dev.yaml", left.join("---\n"));
    std::fs::remove_file(place.path("objects/preparations/shop-dev-storefront.yaml")).unwrap();
    next(&place, &argocd, "shop-dev/catalog");
    let left = argocd.application("kokumi-shop-dev-storefront-0580ab73");
    assert_eq!(left["spec"]["source"], theirs["spec"]["source"]);
}

/// What kubectl prints of the Servings in `shop-dev`, one row each, cut into its columns.
fn kubectl(place: &Place, arguments: &[&str]) -> String {
    let mut command = place.command(peers::peer("kubectl").unwrap());
    command.args(["--kubeconfig", "kubeconfig", "--context", apiserver::ADMIN]).args(arguments);
    place.finish(command).ok().to_owned()
}

fn row(place: &Place, order: &str) -> Vec<String> {
    let table = kubectl(place, &["get", "servings", "-n", "shop-dev"]);
    let head: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(head, ["NAME", "ORDER", "TARGET", "READY", "REASON", "APPROVED", "VERIFIED", "AGE"]);
    let row = table.lines().map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    row.into_iter().find(|row| row[0] == order).unwrap_or_else(|| panic!("no row of {order}:\n{table}"))
}

/// The dev stage of the shop as objects of the cluster that Argo CD runs in.
fn into_cluster(place: &Place, argocd: &ArgoCd) {
    argocd.cluster.define_shipped();
    argocd.cluster.namespace("kokumi-system");
    let ready = json!({"conditions": [{
        "type": "Ready", "status": "True", "reason": "Rendered", "message": "", "lastTransitionTime": "2026-03-01T00:00:00Z",
    }]});
    for entry in walkdir::WalkDir::new(place.path("objects")).sort_by_file_name() {
        let entry = entry.unwrap();
        if !entry.file_type().is_file() {
            continue;
        }
        for mut object in documents(&std::fs::read_to_string(entry.path()).unwrap()) {
            match object["kind"].as_str().unwrap() {
                "Kitchen" => object["metadata"]["namespace"] = "kokumi-system".into(),
                "Preparation" | "Cluster" => object["status"] = ready.clone(),
                _ => {}
            }
            if let Some(namespace) = object["metadata"]["namespace"].as_str() {
                argocd.cluster.namespace(namespace);
            }
            argocd.cluster.create(&object);
        }
    }
    place.write("kubeconfig", argocd.cluster.kubeconfig(apiserver::ADMIN));
}

#[test]
fn the_cluster_that_it_syncs_into_is_read_and_told() {
    let Some(registry) = servers::refreg() else { return };
    let (Some(oras), Some(_)) = (peers::peer("oras"), peers::peer("kubectl")) else { return };
    let Some(argocd) = ArgoCd::start(&registry.address) else { return };
    let mut place = dev_shop(&registry.address, &oras);
    into_cluster(&place, &argocd);
    place.set("KUBECONFIG", place.path("kubeconfig").to_str().unwrap());
    place.edit("expedite.yaml", "\nobserved: ./observed.json\n", "\n");
    place.edit("expedite.yaml", "- path: ./objects\n", "- cluster: {}\n");
    let theirs = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
        "metadata": {"name": "kokumi-shop-dev-storefront-0580ab73", "namespace": "argocd"},
        "spec": {
            "project": "default", "source": {"repoURL": "https://git.shop.example/by-hand.git", "path": "."},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "by-hand"},
        },
    });
    argocd.cluster.create(&theirs);
    let next = || {
        let said = place.expedite(&["run", "--config", "expedite.yaml", "--write-status"]);
        said.ok();
        said.stderr
    };
    // Nothing is there to be told yet: Argo CD brings the Servings.
    assert!(!next().contains(": wrote "));
    let url = format!("file://{}", place.path("shop.git").display());
    place.git(&["clone", "-q", "shop.git", "work"]);
    let init = ["init", "--repo", "work", "--url", &url, "--registry", &registry.address, "--ci", "none"];
    place.expedite(&[&init[..], &["--sync-servings"]].concat()).ok();
    argocd.cluster.apply(&place.read("work/apps.yaml"));
    let ours = "kokumi-shop-dev-catalog-c62596e3";
    argocd.until(ours, "synced", |a| {
        a["status"]["sync"]["status"] == "Synced" && a["status"]["operationState"]["phase"] == "Succeeded"
    });
    let root = || argocd.application("expedite");
    argocd.until("expedite", "synced", |a| a["status"]["operationState"]["phase"] == "Succeeded");

    let said = next();
    assert!(said.contains("cluster admin: wrote 2 statuses and 1 Event\n"), "{said}");
    let says = |order: &str| row(&place, order)[3..6].join(" ");
    let told = |order: &str| {
        let path = format!("/apis/delivery.kokumi.dev/v1alpha1/namespaces/shop-dev/servings/{order}");
        let git = committed(&place, &format!("servings/shop-dev/{order}.yaml")).unwrap();
        assert_eq!(argocd.cluster.get(&path)["status"], git["status"]);
        git["status"].clone()
    };
    assert_eq!(says("catalog"), "Unknown Deploying ApprovalNotRequired");
    assert_eq!(says("storefront"), "Unknown Pending ApprovalNotRequired");
    settle(&argocd, ours, true);
    assert!(next().contains("cluster admin: wrote 1 status\n"));
    assert_eq!(says("catalog"), "True Deployed ApprovalNotRequired");
    settle(&argocd, ours, false);
    next();
    assert_eq!(says("catalog"), "False Degraded ApprovalNotRequired");
    settle(&argocd, ours, true);
    next();
    assert_eq!(says("catalog"), "True Deployed ApprovalNotRequired");
    let status = told("catalog");
    assert_eq!(
        status["history"].as_array().unwrap().len(),
        2,
        "recovery opens an entry of its own: {status:#}"
    );
    let events = kubectl(
        &place,
        &["get", "events", "-n", "shop-dev", "--field-selector", "involvedObject.kind=Serving"],
    );
    assert_eq!(events.matches("Promoted").count(), 1, "{events}");
    // Whoever looks at the Serving sees them.
    let described = kubectl(&place, &["describe", "serving", "catalog", "-n", "shop-dev"]);
    assert!(described.contains("Promoted") && described.contains("expedite"), "{described}");

    // The other one was held all the while, and its going takes nothing of theirs away.
    let held = told("storefront");
    let message = held["conditions"][0]["message"].as_str().unwrap();
    assert!(message.contains("Opt-in") && message.contains("dev-1"), "{message}");
    let folder = "/apis/delivery.kokumi.dev/v1alpha1/namespaces/shop-dev";
    argocd.cluster.delete(&format!("{folder}/orders/storefront"));
    next();
    assert_eq!(committed(&place, "servings/shop-dev/storefront.yaml"), None);
    let left = argocd.application("kokumi-shop-dev-storefront-0580ab73");
    assert_eq!(left["spec"]["source"], theirs["spec"]["source"]);
    // What a run writes into a status is nothing that Argo CD would undo.
    assert_eq!(root()["status"]["sync"]["status"], "Synced", "{:#}", root()["status"]);
    assert_eq!(says("catalog"), "True Deployed ApprovalNotRequired");
}
