//! A real API server: both generations of the API, least rights, thousands of objects, and its death.

use super::*;
use crate::support::apiserver::{ADMIN, ApiServer};
use crate::support::stubserver::{Answer, Stub};
use expedite::load::cluster::snapshot;
use expedite::load::folder::DiskFolder;
use std::path::PathBuf;
use std::sync::Mutex;

/// The server's kubeconfig, in a file.
fn kubeconfig(server: &ApiServer, folder: &tempfile::TempDir) -> PathBuf {
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, server.kubeconfig(ADMIN)).unwrap();
    file
}

/// The rights of a reader.
fn reader() -> Value {
    json!([
        {"apiGroups": ["delivery.kokumi.dev"], "resources": ["*"], "verbs": ["list"]},
        {"apiGroups": ["argoproj.io"], "resources": ["applications"], "verbs": ["list"]},
    ])
}

#[test]
fn an_installation_of_august_2026_is_read_with_the_right_to_list() {
    let Some(server) = ApiServer::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = kubeconfig(&server, &folder);
    assert_eq!(server.get("/version")["gitVersion"], "v1.36.1");

    // Nothing of ours is there yet.
    let world = read(&fetch(&file, ADMIN, Selection::default()));
    let missing = problems(&world);
    assert_eq!(missing.len(), 2, "{missing:?}");
    assert!(missing[0].contains("does not serve orders.delivery.kokumi.dev in v1alpha1"), "{missing:?}");
    assert!(!world.sources[0].whole);

    server.define_published();
    for namespace in ["shop", "shop-dev"] {
        server.namespace(namespace);
        server.create(&order(namespace, "podinfo"));
        server.create(&preparation(namespace, "podinfo", 1));
    }
    let api = "delivery.kokumi.dev/v1alpha1";
    server.create(
        &json!({"apiVersion": api, "kind": "Kitchen", "metadata": {"name": "default", "namespace": "shop"},
        "spec": {"adminUser": {"enabled": true, "username": "admin"}}}),
    );
    server.create(&json!({"apiVersion": api, "kind": "Serving", "metadata": {"name": "podinfo", "namespace": "shop"},
        "spec": {"orderName": "podinfo", "preparationName": "podinfo-00001", "preparationPolicy": {"type": "Manual"}}}));
    let mut pending = preparation("shop", "podinfo", 2);
    pending.as_object_mut().unwrap().remove("status");
    server.create(&pending);
    let fetched = fetch(&file, ADMIN, in_namespaces(&["shop", "shop-dev"]));
    let world = read(&fetched);
    let dropped = "cluster admin: its definition of Orders is that of August 2026: the API server silently drops \
                   spec.promotion, so gates that are written there have no effect [holds nothing]";
    assert_eq!(problems(&world), [dropped]);
    assert!(world.sources[0].whole);
    // A snapshot says it, too.
    let parts = [snapshot::SnapshotPart { source: "cluster:test".into(), fetched }];
    for (path, text) in snapshot::build_files(&parts) {
        let path = folder.path().join("then").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let again = snapshot::read_parts(&DiskFolder::new("then", folder.path().join("then"))).unwrap();
    assert_eq!(problems(&read(&again[0].fetched)), [dropped]);
    assert_eq!((world.orders.len(), world.preparations.len()), (2, 3));
    assert!(world.applications.is_none(), "no Argo CD runs here");
    assert!(world.kitchen.is_some() && world.stray_servings.len() == 1);
    let ready = |name: &str| {
        let found = world.preparations.iter().find(|((n, p), _)| n.as_str() == "shop" && p.as_str() == name);
        expedite::policy::resolve::check_preparation(found.unwrap().1)
    };
    assert_eq!(ready("podinfo-00001"), Ok(()));
    assert_eq!(ready("podinfo-00002"), Err("it has no Ready condition".into()), "nobody rendered it yet");

    // Rights on one namespace only: the other is not taken as empty.
    server.grant("expedite", "reader", &reader(), Some("shop"));
    let shared =
        json!([{"apiGroups": ["delivery.kokumi.dev"], "resources": ["kitchens"], "verbs": ["list"]}]);
    server.grant("expedite", "shared", &shared, None);
    // What the server says of its API is for everybody who may talk to it.
    let world = read(&fetch(&file, "expedite", in_namespaces(&["shop"])));
    assert_eq!(problems(&world), [dropped.replace("cluster admin", "cluster expedite")]);
    assert_eq!(world.orders.len(), 1);
    assert!(world.sources[0].whole);
    let world = read(&fetch(&file, "expedite", in_namespaces(&["shop", "shop-dev"])));
    assert!(!world.sources[0].whole);
    assert_eq!(world.orders.len(), 1);
    let problems = problems(&world);
    assert!(
        problems
            .iter()
            .filter(|p| !p.contains("August 2026"))
            .all(|p| p.contains("in namespace shop-dev cannot be read") && p.contains("(HTTP 403)")),
        "{problems:?}"
    );
    assert_eq!(problems.len(), 4, "the generation, and Orders, Preparations, Servings: {problems:?}");
    let world = read(&fetch(&file, "bob", Selection::default()));
    assert!(world.orders.is_empty() && !world.sources[0].whole, "no rights at all");
}

#[test]
fn five_thousand_objects_are_read_whole_or_not_at_all() {
    let Some(server) = ApiServer::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = kubeconfig(&server, &folder);
    define_ours(&server);
    server.namespace("shop");
    server.create(&order("shop", "podinfo"));
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    if number >= 5000 {
                        return;
                    }
                    let mut object = preparation("shop", "podinfo", number);
                    object.as_object_mut().unwrap().remove("status");
                    object["metadata"].as_object_mut().unwrap().remove("managedFields");
                    server.create(&object);
                }
            });
        }
    });
    let fetched = fetch(&file, ADMIN, Selection::default());
    let world = read(&fetched);
    assert_eq!(problems(&world), Vec::<String>::new());
    assert_eq!(world.preparations.len(), 5000);
    let text = fetched.objects().values().next().unwrap();
    assert!(!text.contains("managedFields"), "{text}");

    // What was written is seen by the next list, whatever the watch cache has heard of by then.
    for number in 5000..5020 {
        let mut object = preparation("shop", "podinfo", number);
        object["metadata"].as_object_mut().unwrap().remove("managedFields");
        server.create(&object);
        let world = read(&fetch(&file, ADMIN, in_namespaces(&["shop"])));
        assert_eq!(world.preparations.len(), number + 1);
    }

    // It dies after two pages of ten.
    let server = Mutex::new(server);
    let stub = Stub::start(move |request| {
        let mut server = server.lock().unwrap();
        let Some((status, body)) = server.try_send(ADMIN, &request.target) else {
            return Answer::Cut(json!({"gone": true}));
        };
        let left = body["metadata"]["remainingItemCount"].as_u64();
        if request.path.ends_with("/preparations") && left.is_some_and(|left| left < 4100) {
            server.stop();
            return Answer::Cut(body);
        }
        match body {
            Value::String(text) => Answer::Text(status, text),
            body => Answer::Json(status, body),
        }
    });
    std::fs::write(
        &file,
        apiserver::kubeconfig(&stub.url(), Path::new("x"), ADMIN)
            .replace(",\"certificate-authority\":\"x\"", ""),
    )
    .unwrap();
    let world = read(&fetch(&file, ADMIN, Selection::default()));
    assert!(!world.sources[0].whole);
    assert!(world.preparations.len() < 5000, "{}", world.preparations.len());
    let problems = problems(&world);
    assert!(
        problems[0].starts_with("cluster admin: the list of preparations cannot be read: "),
        "{problems:?}"
    );
    assert!(problems.iter().all(|p| p.ends_with("[holds everything]")), "{problems:?}");
}

#[test]
fn the_service_account_of_a_pod_is_used() {
    let Some(server) = ApiServer::start() else { return };
    define_ours(&server);
    server.namespace("shop");
    // No Order has a promotion here either; the definition would keep one, and nothing is said.
    server.create(&order("shop", "podinfo"));
    server.create(&json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "expedite", "namespace": "shop"}}));
    server.grant("system:serviceaccount:shop:expedite", "reader", &reader(), None);
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let (status, answer) = server.send(
        ADMIN,
        "POST",
        "/api/v1/namespaces/shop/serviceaccounts/expedite/token",
        Some(("application/json", &request)),
    );
    assert_eq!(status, 201, "{answer}");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("token"), answer["status"]["token"].as_str().unwrap()).unwrap();
    std::fs::copy(server.ca_file(), folder.path().join("ca.crt")).unwrap();
    let (host, port) = server.url.strip_prefix("https://").unwrap().split_once(':').unwrap();
    let access = ClusterAccess {
        environment: Environment::new([("KUBERNETES_SERVICE_HOST", host), ("KUBERNETES_SERVICE_PORT", port)]),
        account: folder.path().to_owned(),
        ..access_by(&folder.path().join("none"))
    };
    let runtime = runtime();
    let connection = runtime.block_on(access.open_connection(None)).unwrap();
    assert_eq!(connection.name, "cluster in-cluster");
    let world = read(&ClusterSource::new(connection, Selection::default()).fetch_all(&runtime));
    assert_eq!((world.orders.len(), problems(&world)), (1, Vec::new()));
}

#[test]
fn a_credential_plugin_says_who_asks() {
    let Some(server) = ApiServer::start() else { return };
    define_ours(&server);
    server.namespace("shop");
    server.create(&order("shop", "podinfo"));
    server.grant("carl", "reader", &reader(), None);
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("plugin.sh");
    // It notes how often it was asked.
    std::fs::write(
        &plugin,
        "#!/bin/sh\necho once >> \"$(dirname \"$0\")/asked\"\n\
         echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\
         \"status\":{\"token\":\"carl-token\",\"expirationTimestamp\":\"2099-01-01T00:00:00Z\"}}'\n",
    )
    .unwrap();
    std::fs::set_permissions(&plugin, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut config: Value = serde_json::from_str(&server.kubeconfig("carl")).unwrap();
    for user in config["users"].as_array_mut().unwrap() {
        user["user"] = json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin.sh",
            "interactiveMode": "Never", "provideClusterInfo": false}});
    }
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, config.to_string()).unwrap();
    let world = read(&fetch(&file, "carl", in_namespaces(&["shop"])));
    assert_eq!((world.orders.len(), problems(&world)), (1, Vec::new()));
    let asked = std::fs::read_to_string(folder.path().join("asked")).unwrap();
    // Thrice for TLS and for the first header, and not once more for each of nine requests.
    assert!(asked.lines().count() < 5, "a credential that has not expired is kept: {asked}");
}
