//! What a fleet of 10,000 Orders costs: requests, and memory.

use super::*;
use crate::support::harness::Place;
use crate::support::stubserver::{Answer, Request, Stub, ours, page};
use std::process::Stdio;
use std::sync::Mutex;

const ORDERS: usize = 10_000;

/// Most memory that a run may take, MiB. Measured: see docs/cluster.md.
const MEMORY: u64 = 900;

fn name(number: usize) -> String {
    format!("order-{number:05}")
}

fn namespace(number: usize) -> String {
    format!("team-{:02}", number % 50)
}

/// As an API server has it: with who wrote what, twice as much as the object itself.
fn stored(mut object: Value, number: usize) -> Value {
    let fields: Vec<Value> = (0..3)
        .map(|n| {
            json!({"manager": format!("controller-{n}"), "operation": "Update", "apiVersion": "delivery.kokumi.dev/v1alpha1",
                "time": "2026-03-01T12:00:00Z", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {"f:source": {"f:oci": {}, "f:version": {}}, "f:destination": {"f:oci": {}}}}})
        })
        .collect();
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.insert("uid".into(), format!("00000000-0000-4000-8000-{number:012}").into());
    metadata.insert("resourceVersion".into(), number.to_string().into());
    metadata.insert("generation".into(), 1.into());
    metadata.insert("creationTimestamp".into(), "2026-03-01T12:00:00Z".into());
    metadata.insert("managedFields".into(), fields.into());
    object
}

fn application(number: usize) -> Value {
    let source = json!({"repoURL": "oci://registry.shop.example:5000/shop/podinfo", "targetRevision": format!("sha256:{number:064x}"), "path": "."});
    let destination = json!({"server": "https://kubernetes.default.svc", "namespace": namespace(number)});
    let resource = |n: usize| {
        json!({"group": "apps", "version": "v1", "kind": "Deployment", "namespace": namespace(number),
        "name": format!("part-{n}"), "status": "Synced"})
    };
    let resources: Vec<Value> = (0..12).map(resource).collect();
    let object = json!({
        "metadata": {"name": format!("somebody-{number:05}"), "namespace": "argocd"},
        "spec": {"project": "default", "source": source, "destination": destination},
        "status": {"sync": {"status": "Synced", "revision": source["targetRevision"], "comparedTo": {"source": source, "destination": destination}},
            "health": {"status": "Healthy"}, "resources": resources, "reconciledAt": "2026-03-01T12:00:00Z"},
    });
    stored(object, number)
}

/// Lists of 10,000 Orders, Preparations and Applications, and of the Servings that `servings` holds.
fn lists(servings: std::sync::Arc<Mutex<Vec<Value>>>) -> Stub {
    let listed = |request: &Request, make: &dyn Fn(usize) -> Value| {
        let from = request.get("continue").map_or(0, |token| token.parse::<usize>().unwrap());
        let to = (from + 500).min(ORDERS);
        let items: Vec<Value> = (from..to).map(make).collect();
        page(&items, &if to == ORDERS { String::new() } else { to.to_string() })
    };
    Stub::start(move |request| {
        assert_eq!(request.method, "GET", "nothing is to be written: {}", request.target);
        match request.path.as_str() {
            "/apis/delivery.kokumi.dev/v1alpha1" => Answer::Json(200, ours()),
            "/apis/argoproj.io/v1alpha1" => {
                Answer::Json(200, json!({"resources": [{"name": "applications"}]}))
            }
            "/apis/delivery.kokumi.dev/v1alpha1/orders" => listed(request, &|n| {
                let mut object = order(&namespace(n), &name(n));
                object["spec"]["promotion"] = json!({"mode": "Automatic"});
                stored(object, n)
            }),
            "/apis/delivery.kokumi.dev/v1alpha1/preparations" => listed(request, &|n| {
                let mut object = preparation(&namespace(n), &name(n), n);
                // Not promoted: no registry is part of this.
                object["status"]["conditions"][0]["status"] = "False".into();
                stored(object, n)
            }),
            "/apis/delivery.kokumi.dev/v1alpha1/servings" => {
                let servings = servings.lock().unwrap();
                if servings.is_empty() { page(&[], "") } else { listed(request, &|n| servings[n].clone()) }
            }
            path if path.ends_with("/namespaces/argocd/applications") => listed(request, &application),
            _ => page(&[], ""),
        }
    })
}

/// Runs to the end, and the most memory it had, MiB.
fn run(place: &Place) -> u64 {
    let mut command = place.binary(&["run", "--config", "expedite.yaml", "--write-status", "--no-records"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    loop {
        // What the kernel remembers is the most there ever was; a look from time to time sees all but the end.
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        most = line.and_then(|l| l.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0).max(most);
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            return most >> 10;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn ten_thousand_orders_are_86_requests_and_bounded_memory() {
    let servings = std::sync::Arc::new(Mutex::new(Vec::new()));
    let stub = lists(servings.clone());
    let mut place = Place::new();
    let config = apiserver::kubeconfig(&stub.url(), Path::new("x"), "ann");
    place.write("kubeconfig", config.replace(",\"certificate-authority\":\"x\"", ""));
    place.set("KUBECONFIG", place.path("kubeconfig").to_str().unwrap());
    place.write("expedite.yaml", "sources: [{cluster: {}}]\nrepository: {url: ./gitops.git, create: true}\n");
    let first = run(&place);
    // Three kinds of 20 pages, one each of five others, and what is served in two groups.
    assert_eq!(stub.seen().len(), 67);

    // What git says now is what the cluster's Servings say: nothing is left to tell.
    let git = git2::Repository::open_bare(place.path("gitops.git")).unwrap();
    let tree = git.revparse_single("main^{tree}").unwrap().peel_to_tree().unwrap();
    *servings.lock().unwrap() = (0..ORDERS)
        .map(|n| {
            let path = format!("servings/{}/{}.yaml", namespace(n), name(n));
            let blob = git.find_blob(tree.get_path(Path::new(&path)).unwrap().id()).unwrap();
            stored(serde_yaml::from_slice(blob.content()).unwrap(), n)
        })
        .collect();
    let before = stub.seen().len();
    let second = run(&place);
    assert_eq!(stub.seen().len() - before, 86, "20 pages of Servings instead of one, and nothing written");
    assert!(first.max(second) < MEMORY, "{first} MiB, {second} MiB");
}
