//! Clusters as sources: a real kube-apiserver, and a stub that answers wrongly on purpose.

mod access;
mod definitions;
mod deploy;
mod inside;
mod lists;
mod served;
mod status;
mod telling;
mod thousands;

use crate::support::{apiserver, harness, peers, stubserver};
use expedite::load::cluster::connect::{ClusterAccess, SERVICE_ACCOUNT};
use expedite::load::cluster::{ClusterSource, Fetched, Selection};
use expedite::load::{Input, read_world};
use expedite::model::id::Namespace;
use expedite::model::kind::Kind;
use expedite::model::world::{Holds, World};
use git_commits::Environment;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The threads that a test fetches on.
fn runtime() -> tokio::runtime::Runtime {
    expedite::evidence::gather::make_runtime().unwrap()
}

/// Access by this kubeconfig, with times short enough for tests.
fn access_by(kubeconfig: &Path) -> ClusterAccess {
    ClusterAccess {
        environment: Environment::new([("KUBECONFIG", kubeconfig.as_os_str())]),
        working: kubeconfig.parent().unwrap().to_owned(),
        account: SERVICE_ACCOUNT.into(),
        timeout: Some(Duration::from_secs(20)),
    }
}

/// What a context of a kubeconfig gives.
fn fetch(kubeconfig: &Path, context: &str, selection: Selection) -> Fetched {
    let runtime = runtime();
    let connection = runtime.block_on(access_by(kubeconfig).open_connection(Some(context))).unwrap();
    ClusterSource::new(connection, selection).fetch_all(&runtime)
}

/// As the source `cluster:test`.
fn read(fetched: &Fetched) -> World {
    let source: Arc<str> = "cluster:test".into();
    let observed = fetched.build_observed(&source);
    let input = Input { name: source, files: fetched, kinds: None, namespaces: None, skip: &[] };
    read_world(&[input], &observed)
}

/// Problems as a person reads them, with what they hold.
fn problems(world: &World) -> Vec<String> {
    let holds = |holds: &Holds| match holds {
        Holds::Nothing => "nothing".to_owned(),
        Holds::Orders(orders) => orders.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        Holds::Everything => "everything".to_owned(),
    };
    world.problems.iter().map(|p| format!("{} [holds {}]", p.failure, holds(&p.holds))).collect()
}

/// Everything in these namespaces, and Applications in `argocd`.
fn in_namespaces(names: &[&str]) -> Selection {
    Selection {
        namespaces: Some(names.iter().map(|name| Namespace::parse(name).unwrap()).collect()),
        argocd: Some(Namespace::parse("argocd").unwrap()),
        ..Selection::default()
    }
}

/// An Order that an API server could hold.
fn order(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "delivery.kokumi.dev/v1alpha1", "kind": "Order",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "source": {"oci": "oci://registry.shop.example:5000/bases/podinfo", "version": "1.0.0"},
            "destination": {"oci": "oci://registry.shop.example:5000/shop/podinfo"},
            "autoDeploy": "Enabled",
        },
    })
}

/// A Preparation of it that is Ready; its artifact's digest repeats the number.
fn preparation(namespace: &str, order: &str, number: usize) -> Value {
    let digest = format!("sha256:{number:064x}");
    json!({
        "apiVersion": "delivery.kokumi.dev/v1alpha1", "kind": "Preparation",
        "metadata": {
            "name": format!("{order}-{number:05}"), "namespace": namespace,
            "managedFields": [{"manager": "kokumi", "operation": "Update"}],
        },
        "spec": {
            "orderName": order,
            "source": {"oci": "oci://registry.shop.example:5000/bases/podinfo", "baseDigest": digest},
            "renderer": {"version": "0.6.1", "digest": digest, "renderType": "Manifest"},
            "configHash": digest,
            "artifact": {
                "ociRef": format!("oci://registry.shop.example:5000/shop/podinfo@{digest}"),
                "digest": digest, "signed": true,
            },
        },
        "status": {"conditions": [{
            "type": "Ready", "status": "True", "reason": "Rendered", "message": "",
            "lastTransitionTime": "2026-01-15T09:30:00Z",
        }]},
    })
}

/// All kinds of ours, as shipped.
fn define_ours(server: &apiserver::ApiServer) {
    for kind in Kind::ALL {
        server.define(&expedite::model::crd::build_definition(kind).to_string());
    }
}
