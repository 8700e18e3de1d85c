//! Rendering: from a plan to the repository's files.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "support/pins.rs"]
mod pins;

use expedite::files::Change;
use expedite::render::application::{self, Keep};
use expedite::render::files;
use pins::{pin, pinned, plan, row};

fn written(change: &Change) -> &str {
    match change {
        Change::Write(bytes) => std::str::from_utf8(bytes).unwrap(),
        Change::Delete => panic!("it is deleted"),
    }
}

const PODINFO: &str = "\
# Written by expedite: its next run undoes what is changed here by hand.
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: kokumi-shop-podinfo-9b1944a4
  namespace: argocd
  labels:
    app.kubernetes.io/managed-by: expedite
    delivery.kokumi.dev/order: podinfo
    delivery.kokumi.dev/serving: podinfo
    delivery.kokumi.dev/serving-namespace: shop
  annotations:
    delivery.kokumi.dev/allowed-order: shop/podinfo
  finalizers:
  - resources-finalizer.argocd.argoproj.io
spec:
  project: default
  source:
    repoURL: oci://registry.shop.example:5000/shop/podinfo
    targetRevision: sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb
    path: \".\"
  destination:
    server: https://eu-1.example:6443
    namespace: shop
  syncPolicy:
    automated:
      prune: true
      selfHeal: true
    syncOptions:
    - ServerSideApply=true
    - CreateNamespace=true
";

#[test]
fn the_built_in_application_byte_for_byte() {
    let template = application::template(None).unwrap();
    let pin = pin("shop/podinfo", "eu-1", "a");
    assert_eq!(application::render(&template, &pin, &Keep::default()).unwrap().text, PODINFO);
}

#[test]
fn a_second_rendering_changes_nothing() {
    let rows = || {
        vec![row(
            "shop/podinfo",
            expedite::model::plan::ServingPlan::Keep,
            vec![pinned(pin("shop/podinfo", "eu-1", "a"))],
        )]
    };
    let first = files(&plan(rows()), &pins::repository(&[]), "argocd");
    assert!(first.failures.is_empty() && first.drift.is_empty());
    let (path, change) = first.changes.iter().next().unwrap();
    assert_eq!(path, "applications/shop/kokumi-shop-podinfo-9b1944a4.yaml");
    assert_eq!(written(change), PODINFO);
    let second = files(&plan(rows()), &pins::repository(&[(path, PODINFO, Some("shop/podinfo"))]), "argocd");
    assert!(second.changes.is_empty() && second.failures.is_empty() && second.drift.is_empty());
}
