//! Which differences are hand edits, and that all of them are undone.

use crate::support::pins;
use crate::support::pins::{application_file, pin, pinned, plan, row, serving_file};
use expedite::files::FileChange;
use expedite::model::environment::OnDelete;
use expedite::model::naming::build_application_path;
use expedite::model::plan::{Pin, ServingPlan};
use expedite::model::world::GitOps;
use expedite::render::application::{self, BUILT_IN, Keep};
use expedite::render::{RenderedFiles, render_files};

const ORDER: &str = "shop/podinfo";

fn path(pin: &Pin) -> String {
    build_application_path(&pin.order, &pin.name)
}

fn rendering(pin: &Pin, template: Option<&str>) -> String {
    application::render_application(&application::compile_template(template).unwrap(), pin, &Keep::default())
        .unwrap()
        .text
}

/// The repository as a run left it that deployed `pin`.
fn repository(pin: &Pin, template: Option<&str>) -> GitOps {
    let serving = format!(
        "apiVersion: delivery.kokumi.dev/v1alpha1\nkind: Serving\nmetadata: {{name: podinfo, namespace: shop}}\n\
         spec: {{orderName: podinfo, preparationName: {name}}}\nstatus:\n  observedPreparationName: {name}\n  deployedDigest: {}\n  \
         deployed: {{environment: {}, repository: \"{}\", targetNamespace: {}, source: repository}}\n  clusters:\n  \
         - {{name: {}, server: \"{}\", application: {}, reason: Pinned}}\n",
        pin.artifact.digest,
        pin.environment,
        pin.artifact.repository,
        pin.target_namespace,
        pin.cluster,
        pin.server,
        pin.name,
        name = pin.preparation,
    );
    let mut gitops = GitOps { application_template: template.map(str::to_owned), ..GitOps::default() };
    gitops.servings.insert(pin.order.clone(), serving_file(ORDER, &serving));
    gitops.applications.insert(path(pin), application_file(&rendering(pin, template), Some(ORDER)));
    gitops
}

fn edit(gitops: &mut GitOps, pin: &Pin, from: &str, to: &str) {
    let text = gitops.applications[&path(pin)].text.replace(from, to);
    assert_ne!(*text, *gitops.applications[&path(pin)].text, "{from:?} is there");
    gitops.applications.insert(path(pin), application_file(&text, Some(ORDER)));
}

fn run(gitops: &GitOps, pin: &Pin) -> RenderedFiles {
    let rendered =
        render_files(&plan(vec![row(ORDER, ServingPlan::Keep, vec![pinned(pin.clone())])]), gitops, "argocd");
    assert!(rendered.failures.is_empty(), "{:?}", rendered.failures);
    let template = gitops.application_template.as_deref();
    if let Some(change) = rendered.changes.get(&path(pin)) {
        assert_eq!(
            *change,
            FileChange::Write(rendering(pin, template).into_bytes()),
            "restored to exactly its rendering"
        );
    }
    rendered
}

fn drifts(rendered: &RenderedFiles) -> Vec<&str> {
    rendered.drift.iter().map(|edit| edit.path.as_str()).collect()
}

#[test]
fn a_hand_edit_is_undone_and_named() {
    let pin = pin(ORDER, "eu-1", "a");
    for (from, to) in [
        ("    - CreateNamespace=true\n", "    - CreateNamespace=true\n    - Prune=false\n"),
        ("      prune: true\n", "      prune: false\n"),
        ("targetRevision: sha256:ca", "targetRevision: sha256:cb"),
        ("repoURL: oci://registry", "repoURL: oci://other"),
        ("server: https://eu-1", "server: https://eu-9"),
        ("    namespace: shop\n", "    namespace: kube-system\n"),
        ("kind: Application\n", "kind: Application # mine\n"),
        ("# Written by expedite", "# Written by me"),
        ("  finalizers:\n", "  finalizers:\n  - example.com/mine\n"),
        ("apiVersion", "a: 1\na: 2\napiVersion"),
    ] {
        let mut gitops = repository(&pin, None);
        edit(&mut gitops, &pin, from, to);
        let rendered = run(&gitops, &pin);
        assert_eq!(rendered.changes.len(), 1, "{to}");
        assert_eq!(drifts(&rendered), [path(&pin)], "{to}");
    }
}

#[test]
fn a_file_that_someone_removed_is_restored_and_named() {
    let pin = pin(ORDER, "eu-1", "a");
    let mut gitops = repository(&pin, None);
    gitops.applications.clear();
    let rendered = run(&gitops, &pin);
    assert_eq!((rendered.changes.len(), drifts(&rendered)), (1, vec![path(&pin).as_str()]));
    // A promotion or a Cluster that joins makes a file that was never there.
    let mut next = pins::pin(ORDER, "eu-1", "b");
    assert!(drifts(&run(&gitops, &next)).is_empty());
    next = pins::pin(ORDER, "eu-2", "a");
    assert!(drifts(&run(&gitops, &next)).is_empty());
}

#[test]
fn a_decision_is_no_hand_edit() {
    let before = pin(ORDER, "eu-1", "a");
    let gitops = repository(&before, None);
    assert!(run(&gitops, &before).changes.is_empty());
    for after in [
        pin(ORDER, "eu-1", "b"),
        Pin { project: "shop".into(), ..before.clone() },
        Pin { on_delete: OnDelete::Orphan, ..before.clone() },
        Pin { server: "https://moved.example".into(), ..before.clone() },
        Pin { target_namespace: pins::namespace("other"), ..before.clone() },
    ] {
        let rendered = run(&gitops, &after);
        assert_eq!(rendered.changes.len(), 1);
        assert!(drifts(&rendered).is_empty(), "{after:?}");
    }
    // Both at once: the edit is named although the promotion would have replaced it.
    let mut edited = repository(&before, None);
    edit(&mut edited, &before, "prune: true", "prune: false");
    assert_eq!(drifts(&run(&edited, &pin(ORDER, "eu-1", "b"))), [path(&before)]);
}

#[test]
fn a_changed_template_is_no_hand_edit() {
    let pin = pin(ORDER, "eu-1", "a");
    let one = BUILT_IN.replace("  syncPolicy:\n", "  revisionHistoryLimit: 3\n  syncPolicy:\n");
    let two = BUILT_IN.replace("  syncPolicy:\n", "  revisionHistoryLimit: 4\n  syncPolicy:\n");
    for (from, to) in [(None, Some(&one)), (Some(&one), Some(&two)), (Some(&two), None)] {
        let mut gitops = repository(&pin, from.map(String::as_str));
        gitops.application_template = to.cloned();
        let rendered = run(&gitops, &pin);
        assert_eq!(rendered.changes.len(), 1);
        assert!(drifts(&rendered).is_empty());
    }
    let mut gitops = repository(&pin, Some(&one));
    assert!(run(&gitops, &pin).changes.is_empty());
    edit(&mut gitops, &pin, "revisionHistoryLimit: 3", "revisionHistoryLimit: 5");
    assert_eq!(drifts(&run(&gitops, &pin)), [path(&pin)]);
}

#[test]
fn without_a_record_the_files_own_digest_tells() {
    let pin = pin(ORDER, "eu-1", "a");
    let mut gitops = repository(&pin, None);
    gitops.servings.clear();
    edit(&mut gitops, &pin, "prune: true", "prune: false");
    assert_eq!(drifts(&run(&gitops, &pin)), [path(&pin)]);
    assert!(drifts(&run(&gitops, &pins::pin(ORDER, "eu-1", "b"))).is_empty());
}
