//! Rendering: from a plan to the repository's files. Cases of the field by their number.

use crate::support::pins::{pin, pinned, plan, row};
use crate::support::{crd, pins, pyyaml};
use expedite::error::Failure;
use expedite::files::FileChange;
use expedite::model::environment::OnDelete;
use expedite::model::id::{EnvironmentName, OrderRef};
use expedite::model::naming;
use expedite::model::plan::{ApplicationAction, Pin, ServingPlan};
use expedite::model::time::Time;
use expedite::model::world::GitOps;
use expedite::render::application::{self, BUILT_IN, Keep};
use expedite::render::{RenderedFiles, render_files};
use serde_json::{Value, json};

fn written<'a>(rendered: &'a RenderedFiles, path: &str) -> &'a str {
    match rendered.changes.get(path).unwrap_or_else(|| panic!("{path} is not written: {rendered:?}")) {
        FileChange::Write(bytes) => std::str::from_utf8(bytes).unwrap(),
        FileChange::Delete => panic!("{path} is deleted"),
    }
}

fn run_on(gitops: &GitOps, pins: Vec<Pin>) -> RenderedFiles {
    let mut rows = Vec::new();
    for pin in pins {
        rows.push(row(&pin.order.to_string(), ServingPlan::Keep, vec![pinned(pin)]));
    }
    render_files(&plan(rows), gitops, "argocd")
}

fn run(pins: Vec<Pin>) -> RenderedFiles {
    run_on(&GitOps::default(), pins)
}

fn path(pin: &Pin) -> String {
    naming::build_application_path(&pin.order, &pin.name)
}

fn with_template(source: &str) -> GitOps {
    GitOps { application_template: Some(source.to_owned()), ..GitOps::default() }
}

/// The built-in template with one text replaced.
fn changed(from: &str, to: &str) -> String {
    assert!(BUILT_IN.contains(from), "{from:?} is in the template");
    BUILT_IN.replace(from, to)
}

/// The one Application that a template gives for shop/podinfo, or why it gives none.
fn try_template(source: &str) -> Result<Value, Failure> {
    let pin = pin("shop/podinfo", "eu-1", "a");
    let rendered = run_on(&with_template(source), vec![pin.clone()]);
    match rendered.failures.first() {
        Some((order, failure)) => {
            assert_eq!(order.to_string(), "shop/podinfo");
            assert!(rendered.changes.is_empty(), "an Order that fails writes nothing");
            Err(failure.clone())
        }
        None => Ok(serde_yaml::from_str(written(&rendered, &path(&pin))).unwrap()),
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
const PODINFO_PATH: &str = "applications/shop/kokumi-shop-podinfo-9b1944a4.yaml";

#[test]
fn the_built_in_application_byte_for_byte() {
    let rendered = run(vec![pin("shop/podinfo", "eu-1", "a")]);
    assert_eq!(written(&rendered, PODINFO_PATH), PODINFO);
    let orphan = Pin { on_delete: OnDelete::Orphan, ..pin("shop/podinfo", "eu-1", "a") };
    let without = PODINFO.replace("  finalizers:\n  - resources-finalizer.argocd.argoproj.io\n", "");
    assert_eq!(written(&run(vec![orphan]), PODINFO_PATH), without);
}

#[test]
fn b02_names_that_yaml_1_1_takes_for_booleans() {
    let order = pin("on/no", "off", "a");
    let order = Pin { environment: EnvironmentName::parse("y").unwrap(), project: "yes".into(), ..order };
    let theirs = changed(
        "spec:\n",
        "  # {{ order.name }}\nspec:\n  info: [{name: {{ environment.name }}, value: '{{ cluster.name }}'}]\n",
    );
    let texts: Vec<String> = [GitOps::default(), with_template(&theirs)]
        .iter()
        .map(|gitops| written(&run_on(gitops, vec![order.clone()]), &path(&order)).to_owned())
        .collect();
    let Some(read) = pyyaml::load(&texts) else { return };
    for application in &read {
        assert_eq!(application["metadata"]["labels"][naming::LABEL_ORDER], "no");
        assert_eq!(application["metadata"]["labels"][naming::LABEL_SERVING], "no");
        assert_eq!(application["metadata"]["labels"][naming::LABEL_SERVING_NAMESPACE], "on");
        assert_eq!(application["metadata"]["annotations"][naming::ALLOWED_ORDER], "on/no");
        assert_eq!(application["spec"]["destination"]["namespace"], "on");
        assert_eq!(application["spec"]["project"], "yes");
    }
    assert_eq!(read[1]["spec"]["info"], json!([{"name": "y", "value": "off"}]));
}

#[test]
fn b10_names_joined_by_hyphens_do_not_meet() {
    let mut pins = Vec::new();
    for (order, clusters) in
        [("foo-bar/baz", ["c", "c-d"]), ("foo/bar-baz", ["c", "c-d"]), ("foo-bar/baz-c", ["d", "e"])]
    {
        pins.extend(clusters.map(|cluster| pin(order, cluster, "a")));
    }
    let rendered = run(pins);
    assert!(rendered.failures.is_empty());
    assert_eq!(rendered.changes.len(), 6);
    let names: std::collections::BTreeSet<String> = rendered
        .changes
        .keys()
        .map(|path| {
            serde_yaml::from_str::<Value>(written(&rendered, path)).unwrap()["metadata"]["name"].to_string()
        })
        .collect();
    assert_eq!(names.len(), 6);
}

#[test]
fn b11_a_name_that_no_label_holds_is_that_orders_error() {
    let long = "o".repeat(64);
    let namespace = "n".repeat(63);
    let fits = format!("{namespace}/{}", "o".repeat(63));
    let rendered = run(vec![
        pin(&format!("shop/{long}"), "c", "a"),
        pin("shop/podinfo", "eu-1", "a"),
        pin(&fits, "c", "a"),
    ]);
    assert_eq!(rendered.changes.len(), 2, "the others go on");
    let (order, failure) = &rendered.failures[0];
    assert_eq!(order.name.as_str(), long);
    assert_eq!(failure.code, "label-too-long");
    assert!(failure.to_string().contains("64 characters"), "{failure}");
}

#[test]
fn b13_nothing_that_changes_renames_an_application() {
    let before = pin("shop/podinfo", "eu-1", "a");
    let gitops = pins::repository(&[(PODINFO_PATH, PODINFO, Some("shop/podinfo"))]);
    for after in [
        Pin { server: "https://moved.example".into(), ..before.clone() },
        Pin { project: "shop".into(), ..before.clone() },
        Pin { environment: EnvironmentName::parse("other").unwrap(), ..before.clone() },
        pin("shop/podinfo", "eu-1", "b"),
    ] {
        let rendered = run_on(&gitops, vec![after.clone(), pin("shop/podinfo", "eu-2", "b")]);
        assert!(rendered.changes.values().all(|change| matches!(change, FileChange::Write(_))));
        assert!(
            rendered.changes.keys().all(|p| p == PODINFO_PATH
                || p.ends_with(&format!("{}.yaml", pin("shop/podinfo", "eu-2", "b").name)))
        );
    }
}

#[test]
fn b21_the_same_plan_gives_the_same_bytes() {
    let pins: Vec<Pin> = (0..600).map(|n| pin(&format!("ns-{}/order-{n}", n % 7), "eu-1", "a")).collect();
    let first = run(pins.clone());
    let mut shuffled = pins.clone();
    shuffled.reverse();
    let mut later = plan(
        shuffled.into_iter().map(|p| row(&p.order.to_string(), ServingPlan::Keep, vec![pinned(p)])).collect(),
    );
    later.at = Time::from_unix(1_790_003_600);
    assert_eq!(render_files(&later, &GitOps::default(), "argocd").changes, first.changes);
    let committed: Vec<(&str, &str, Option<&str>)> = Vec::new();
    let mut gitops = pins::repository(&committed);
    for pin in &pins {
        let text = written(&first, &path(pin));
        gitops.applications.insert(path(pin), pins::application_file(text, Some(&pin.order.to_string())));
    }
    let second = render_files(&later, &gitops, "argocd");
    assert!(second.changes.is_empty() && second.drift.is_empty() && second.failures.is_empty());
}

#[test]
fn b66_a_template_of_the_user() {
    let name = "{{ application.name }}";
    for (from, to) in [
        ("name: {{ application.name }}", "name: \"{{ application.name }}\""),
        ("name: {{ application.name }}", "name: '{{ application.name }}'"),
        ("name: {{ application.name }}", "name: >-\n    {{ application.name }}"),
        (
            "delivery.kokumi.dev/order: {{ order.name }}",
            "\"{{ 'delivery.kokumi.dev' ~ '/order' }}\": {{ order.name }}",
        ),
        (
            "    - resources-finalizer.argocd.argoproj.io",
            "  - {{ 'resources-finalizer.argocd.argoproj.io' }}",
        ),
    ] {
        let value = try_template(&changed(from, to)).unwrap();
        assert_eq!(value["metadata"]["name"], "kokumi-shop-podinfo-9b1944a4", "{to}");
        assert_eq!(crd::Crd::application().errors(&value), Vec::<String>::new());
    }
    let failure = try_template(&changed(name, "{{ application.nmae }}")).unwrap_err();
    assert_eq!(
        failure.to_string(),
        "templates/application.yaml:5: Order shop/podinfo: application.nmae: does not exist"
    );
    assert_eq!(failure.hints, ["did you mean application.name?"]);
    let failure = try_template(&changed(
        "targetRevision: {{ application.digest }}",
        "targetRevision: {{ application.revision }}",
    ))
    .unwrap_err();
    assert!(failure.to_string().starts_with("templates/application.yaml:22: "), "{failure}");
    // A value with everything in it, where a template may put one.
    let hostile = Pin {
        project: "a: \"b\" #c\n- {{ d }} {% e %} 'f'\u{2028}".into(),
        ..pin("shop/podinfo", "eu-1", "a")
    };
    for template in [None, Some(changed("{{ environment.project }}", "\"{{ environment.project }}\""))] {
        let gitops = GitOps { application_template: template, ..GitOps::default() };
        let rendered = run_on(&gitops, vec![hostile.clone()]);
        let text = written(&rendered, PODINFO_PATH);
        assert!(text.ends_with("CreateNamespace=true\n"));
        let value: Value = serde_yaml::from_str(text).unwrap();
        assert_eq!(value["spec"]["project"], hostile.project);
    }
}

#[test]
fn b67_the_source_is_one_plain_oci_artifact() {
    let value = try_template(BUILT_IN).unwrap();
    assert_eq!(
        value["spec"]["source"],
        json!({
            "repoURL": "oci://registry.shop.example:5000/shop/podinfo",
            "targetRevision": "sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb",
            "path": ".",
        })
    );
    assert!(value["spec"].get("sources").is_none());
}

#[test]
fn b69_the_crd_knows_every_field_and_none_is_empty_or_a_default() {
    fn empties(value: &Value) -> usize {
        match value {
            Value::Null | Value::Bool(false) => 1,
            Value::Object(map) => usize::from(map.is_empty()) + map.values().map(empties).sum::<usize>(),
            Value::Array(list) => usize::from(list.is_empty()) + list.iter().map(empties).sum::<usize>(),
            Value::String(text) => usize::from(text.is_empty()),
            Value::Bool(true) | Value::Number(_) => 0,
        }
    }
    let additions = "  info:
    - {name: url, value: https://shop.example/{{ order.name }}}
  revisionHistoryLimit: {{ 3 }}
  ignoreDifferences:
    - group: apps
      kind: Deployment
      jsonPointers: [/spec/replicas]
  syncPolicy:
    retry: {limit: 5, refresh: true, backoff: {duration: 5s, factor: 2, maxDuration: 3m}}
";
    for source in [BUILT_IN.to_owned(), changed("  syncPolicy:\n", additions)] {
        let value = try_template(&source).unwrap();
        assert_eq!(crd::Crd::application().errors(&value), Vec::<String>::new());
        assert_eq!(empties(&value), 0, "{value}");
        assert_eq!(value["spec"]["syncPolicy"]["automated"], json!({"prune": true, "selfHeal": true}));
        assert_eq!(
            value["spec"]["syncPolicy"]["syncOptions"],
            json!(["ServerSideApply=true", "CreateNamespace=true"])
        );
    }
    // The validator itself: what the CRD does not have is found.
    let mut wrong = try_template(BUILT_IN).unwrap();
    wrong["spec"]["syncPolicy"]["prune"] = json!(true);
    wrong["spec"]["revisionHistoryLimit"] = json!("3");
    wrong["spec"].as_object_mut().unwrap().shift_remove("destination");
    assert_eq!(
        crd::Crd::application().errors(&wrong).len(),
        3,
        "{:?}",
        crd::Crd::application().errors(&wrong)
    );
}

#[test]
fn a_template_may_add_and_nothing_else() {
    let add = |to: &str| try_template(&changed("  syncPolicy:\n", &format!("{to}\n  syncPolicy:\n")));
    let policy = |to: &str| try_template(&changed("  syncPolicy:\n", &format!("  syncPolicy:\n{to}\n")));
    assert!(policy("    retry: {limit: 2}").is_ok());
    assert!(add("  info: [{name: a, value: b}]").is_ok());
    let more = try_template(&changed("  labels:\n", "  labels:\n    team: \"on\"\n")).unwrap();
    assert_eq!(more["metadata"]["labels"]["team"], "on");
    let more = try_template(&changed(
        "      - CreateNamespace=true",
        "      - CreateNamespace=true\n      - Validate=false",
    ))
    .unwrap();
    assert_eq!(more["spec"]["syncPolicy"]["syncOptions"][2], "Validate=false");

    let line = |text: &str| BUILT_IN.lines().position(|l| l.starts_with(text)).unwrap() + 1;
    let refused = |result: Result<Value, Failure>, line: usize, field: &str| {
        let failure = result.expect_err(field);
        assert_eq!(failure.code, "template-refused", "{failure}");
        let wanted = format!("templates/application.yaml:{line}: Order shop/podinfo: {field}: ");
        assert!(failure.to_string().starts_with(&wanted), "{failure}\n{wanted}");
    };
    let policy_line = line("  syncPolicy:");
    refused(add("  sources: [{repoURL: https://evil.example/x.git}]"), policy_line, "spec.sources");
    refused(add("  sourceHydrator: {}"), policy_line, "spec.sourceHydrator");
    refused(
        policy("    managedNamespaceMetadata: {labels: {a: b}}"),
        policy_line + 1,
        "spec.syncPolicy.managedNamespaceMetadata",
    );
    refused(policy("    retry: {limit: \"2\"}"), policy_line + 1, "spec.syncPolicy.retry.limit");
    refused(policy("    retry: {limitt: 2}"), policy_line + 1, "spec.syncPolicy.retry.limitt");
    refused(add("  info: [{name: a}]"), policy_line, "spec.info[0].value");
    refused(add("  info: []"), policy_line, "spec.info");
    refused(add("  revisionHistoryLimit: 1.5"), policy_line, "spec.revisionHistoryLimit");
    refused(add("  ignoreDifferences: [{group: apps}]"), policy_line, "spec.ignoreDifferences[0].kind");
    refused(
        try_template(&format!("{BUILT_IN}operation: {{sync: {{}}}}\n")),
        BUILT_IN.lines().count() + 1,
        "operation",
    );
    refused(try_template(&format!("{BUILT_IN}status: {{}}\n")), BUILT_IN.lines().count() + 1, "status");
    for (from, to, field) in [
        ("    path: .", "    path: sub", "spec.source.path"),
        ("    path: .", "    path: .\n    helm: {}", "spec.source.helm"),
        ("    path: .", "    path: .\n    plugin: {}", "spec.source.plugin"),
        (
            "    targetRevision: {{ application.digest }}",
            "    targetRevision: main",
            "spec.source.targetRevision",
        ),
        ("    targetRevision: {{ application.digest }}", "", "spec.source.targetRevision"),
        (
            "    repoURL: {{ application.repoURL }}",
            "    repoURL: {{ application.repoURL }}@{{ application.digest }}",
            "spec.source.repoURL",
        ),
        ("    server: {{ cluster.server }}", "    name: {{ cluster.name }}", "spec.destination.name"),
        (
            "    namespace: {{ preparation.targetNamespace }}",
            "    namespace: kube-system",
            "spec.destination.namespace",
        ),
        ("  project: {{ environment.project }}", "  project: admin", "spec.project"),
        ("      prune: true", "      prune: false", "spec.syncPolicy.automated.prune"),
        ("      prune: true", "      prune: yes", "spec.syncPolicy.automated.prune"),
        (
            "      prune: true",
            "      prune: true\n      allowEmpty: true",
            "spec.syncPolicy.automated.allowEmpty",
        ),
        ("      - CreateNamespace=true", "      - CreateNamespace=false", "spec.syncPolicy.syncOptions"),
        (
            "      - CreateNamespace=true",
            "      - CreateNamespace=true\n      - ServerSideApply=false",
            "spec.syncPolicy.syncOptions[2]",
        ),
        ("    - resources-finalizer.argocd.argoproj.io", "    - other", "metadata.finalizers"),
        ("  name: {{ application.name }}", "  name: mine", "metadata.name"),
        ("  namespace: {{ application.namespace }}", "  namespace: default", "metadata.namespace"),
        (
            "  namespace: {{ application.namespace }}",
            "  namespace: argocd\n  ownerReferences: []",
            "metadata.ownerReferences",
        ),
        (
            "    app.kubernetes.io/managed-by: expedite",
            "    app.kubernetes.io/managed-by: me",
            "metadata.labels.app.kubernetes.io/managed-by",
        ),
        (
            "    app.kubernetes.io/managed-by: expedite",
            "    app.kubernetes.io/managed-by: expedite\n    a: 1",
            "metadata.labels.a",
        ),
        (
            "    app.kubernetes.io/managed-by: expedite",
            "    app.kubernetes.io/managed-by: expedite\n    a: b c",
            "metadata.labels.a",
        ),
        (
            "    delivery.kokumi.dev/allowed-order: {{ order.namespace }}/{{ order.name }}",
            "    delivery.kokumi.dev/allowed-order: shop/other",
            "metadata.annotations.delivery.kokumi.dev/allowed-order",
        ),
        ("apiVersion: argoproj.io/v1alpha1", "apiVersion: argoproj.io/v1", "apiVersion"),
        ("kind: Application", "kind: ApplicationSet", "kind"),
    ] {
        let failure = try_template(&changed(from, to)).expect_err(field);
        assert_eq!((failure.code, failure.field.as_deref()), ("template-refused", Some(field)), "{failure}");
        assert!(failure.at.as_ref().is_some_and(|at| at.line.is_some()), "{failure}");
    }
    for broken in ["", "a: [", "- a\n", "---\na: 1\n---\nb: 2\n", "{{ order.name }\n", "{% if %}"] {
        let failure = try_template(broken).expect_err(broken);
        assert!(failure.to_string().starts_with("templates/application.yaml"), "{failure}");
    }
}

#[test]
fn an_order_that_fails_writes_nothing_and_the_others_do() {
    let gitops =
        with_template(&changed("spec:\n", "{% if order.name == \"bad\" %}\n  x: 1\n{% endif %}\nspec:\n"));
    let bad = vec![pinned(pin("shop/bad", "eu-1", "a")), pinned(pin("shop/bad", "eu-2", "a"))];
    let rows = vec![
        row("shop/bad", ServingPlan::Keep, bad),
        row("shop/good", ServingPlan::Keep, vec![pinned(pin("shop/good", "eu-1", "a"))]),
    ];
    let rendered = render_files(&plan(rows), &gitops, "argocd");
    assert_eq!(rendered.changes.len(), 1);
    assert_eq!(rendered.failures.len(), 1);
    assert_eq!(rendered.failures[0].0.to_string(), "shop/bad");
    assert!(
        rendered.failures[0]
            .1
            .to_string()
            .starts_with("templates/application.yaml:19: Order shop/bad: metadata.x: "),
        "{}",
        rendered.failures[0].1
    );
}

#[test]
fn what_goes_goes_and_what_is_not_ours_stays() {
    let other = "applications/shop/other.yaml";
    let gitops = pins::repository(&[(PODINFO_PATH, PODINFO, Some("shop/podinfo")), (other, PODINFO, None)]);
    let act = |path: &str, action: ApplicationAction| {
        let mut plan_of = pinned(pin("shop/podinfo", "eu-1", "a"));
        path.clone_into(&mut plan_of.path);
        plan_of.action = action;
        render_files(&plan(vec![row("shop/podinfo", ServingPlan::Keep, vec![plan_of])]), &gitops, "argocd")
    };
    let why = || "the Order is gone".to_owned();
    assert_eq!(act(PODINFO_PATH, ApplicationAction::Remove(why())).changes[PODINFO_PATH], FileChange::Delete);
    let foreign = act(other, ApplicationAction::Remove(why()));
    assert!(foreign.changes.is_empty());
    assert_eq!(foreign.failures[0].1.code, "foreign-application");
    assert!(act("applications/shop/nowhere.yaml", ApplicationAction::Remove(why())).changes.is_empty());
    let hold = ApplicationAction::Hold { reason: "OptInRequired".into(), message: String::new() };
    assert!(act(PODINFO_PATH, hold).changes.is_empty());

    let detached = act(PODINFO_PATH, ApplicationAction::Detach(why()));
    let text = written(&detached, PODINFO_PATH);
    let wanted = PODINFO.replace("  finalizers:\n  - resources-finalizer.argocd.argoproj.io\n", "").replace(
        "allowed-order: shop/podinfo\n",
        "allowed-order: shop/podinfo\n    delivery.kokumi.dev/handed-over: \"true\"\n",
    );
    assert_eq!(text, wanted);
    let again = pins::repository(&[(PODINFO_PATH, text, Some("shop/podinfo"))]);
    let mut plan_of = pinned(pin("shop/podinfo", "eu-1", "a"));
    plan_of.action = ApplicationAction::Detach(why());
    let rendered =
        render_files(&plan(vec![row("shop/podinfo", ServingPlan::Keep, vec![plan_of])]), &again, "argocd");
    assert!(rendered.changes.is_empty() && rendered.failures.is_empty());
}

/// What somebody wrote before there was an Order.
const EXISTING: &str = "\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: kokumi-shop-podinfo-9b1944a4
  namespace: argocd
  annotations:
    delivery.kokumi.dev/allowed-order: shop/podinfo
spec:
  project: default
  source:
    repoURL: oci://registry.shop.example:5000/shop/podinfo
    targetRevision: v1
    path: deploy
  destination:
    server: https://eu-1.example:6443
    namespace: shop
  syncPolicy:
    syncOptions:
    - CreateNamespace=true
";

fn take_over(text: &str) -> RenderedFiles {
    let gitops = pins::repository(&[(PODINFO_PATH, text, None)]);
    run_on(&gitops, vec![pin("shop/podinfo", "eu-1", "a")])
}

#[test]
fn b71_an_opted_in_application_is_taken_over_as_a_whole_or_not_at_all() {
    let taken = take_over(EXISTING);
    let text = written(&taken, PODINFO_PATH);
    let wanted = PODINFO.replace("  finalizers:\n  - resources-finalizer.argocd.argoproj.io\n", "").replace(
        "allowed-order: shop/podinfo\n",
        "allowed-order: shop/podinfo\n    delivery.kokumi.dev/finalizers: kept\n",
    );
    assert_eq!(text, wanted);

    for (from, to, lost) in [
        ("kind: Application\n", "kind: Application # ours since 2021\n", "the comment in line 2"),
        ("  project: default\n", "  project: shop\n", "spec.project: \"shop\""),
        (
            "  syncPolicy:\n",
            "  ignoreDifferences:\n  - {kind: Deployment}\n  syncPolicy:\n",
            "spec.ignoreDifferences",
        ),
        ("  syncPolicy:\n", "  info:\n  - {name: a, value: b}\n  syncPolicy:\n", "spec.info"),
        ("  annotations:\n", "  annotations:\n    team: a\n", "metadata.annotations.team: \"a\""),
        (
            "    path: deploy\n",
            "    path: deploy\n    kustomize: {namePrefix: a-}\n",
            "spec.source.kustomize",
        ),
        (
            "    - CreateNamespace=true\n",
            "    - CreateNamespace=true\n    - Validate=false\n",
            "spec.syncPolicy.syncOptions[1]: \"Validate=false\"",
        ),
        (
            "    server: https://eu-1.example:6443\n",
            "    server: https://other.example\n",
            "spec.destination.server",
        ),
        ("apiVersion", "x: &a b\napiVersion", "line 1 (it contains an anchor"),
    ] {
        let text = EXISTING.replace(from, to);
        assert_ne!(text, EXISTING);
        let rendered = take_over(&text);
        assert!(rendered.changes.is_empty(), "{to}");
        let failure = &rendered.failures[0].1;
        assert_eq!(failure.code, "takeover");
        assert!(failure.cause.contains(lost), "{failure}");
    }
    // A second document is never dropped: a file that is no single Application is nobody's to take.
    let two = take_over(&format!("{EXISTING}---\na: 1\n"));
    assert!(two.changes.is_empty() && two.failures.len() == 1);
}

#[test]
fn b77_finalizers_of_an_application_that_was_there_stay_as_they_are() {
    let theirs =
        "  finalizers:\n  - example.com/mine\n  - resources-finalizer.argocd.argoproj.io/background\n";
    for list in ["", theirs] {
        let existing = EXISTING.replace("spec:\n", &format!("{list}spec:\n"));
        let taken = take_over(&existing);
        let text = written(&taken, PODINFO_PATH).to_owned();
        assert!(text.contains(list) && !text.contains("argoproj.io\n  finalizers"));
        assert_eq!(text.matches("finalizer.argocd").count(), list.matches("finalizer.argocd").count());
        // And in the next promotion, when it is ours.
        let ours = pins::repository(&[(PODINFO_PATH, &text, Some("shop/podinfo"))]);
        assert!(run_on(&ours, vec![pin("shop/podinfo", "eu-1", "a")]).changes.is_empty());
        let next = run_on(&ours, vec![pin("shop/podinfo", "eu-1", "b")]);
        let next = written(&next, PODINFO_PATH);
        assert_ne!(next, text);
        assert!(next.contains(list));
        assert_eq!(next.matches("finalizer.argocd").count(), list.matches("finalizer.argocd").count());
    }
}

#[test]
fn b78_only_the_exact_order_opens_an_application() {
    for value in [
        "",
        "shop/podinfo-extra",
        "\"shop/podinfo \"",
        "shop/podinfo, shop/other",
        "Shop/podinfo",
        "\"true\"",
    ] {
        let annotation = "  annotations:\n    delivery.kokumi.dev/allowed-order: ";
        let text = match value {
            "" => EXISTING.replace(&format!("{annotation}shop/podinfo\n"), ""),
            value => {
                EXISTING.replace(&format!("{annotation}shop/podinfo\n"), &format!("{annotation}{value}\n"))
            }
        };
        let gitops = pins::repository(&[(PODINFO_PATH, &text, None)]);
        let rendered = run_on(&gitops, vec![pin("shop/podinfo", "eu-1", "a")]);
        assert!(rendered.changes.is_empty(), "{value}");
        assert_eq!(rendered.failures[0].1.code, "foreign-application");
    }
    // Another Order's Application is not this one's either.
    let gitops = pins::repository(&[(PODINFO_PATH, PODINFO, Some("shop/other"))]);
    let edited = pins::repository(&[(
        PODINFO_PATH,
        &PODINFO.replace("allowed-order: shop/podinfo", "allowed-order: shop/other"),
        Some("shop/other"),
    )]);
    assert_eq!(run_on(&edited, vec![pin("shop/podinfo", "eu-1", "a")]).failures.len(), 1);
    drop(gitops);
}

#[test]
fn every_application_of_a_fleet_fits_the_crd() {
    let template = application::compile_template(None).unwrap();
    for on_delete in [OnDelete::Cascade, OnDelete::Orphan] {
        for order in ["shop/podinfo", "on/no", "a-b/c.d", "n1/0", "n1/1e3"] {
            let pin = Pin { on_delete, ..pin(order, "eu-1", order) };
            let rendered = application::render_application(&template, &pin, &Keep::default()).unwrap();
            assert_eq!(crd::Crd::application().errors(&rendered.value), Vec::<String>::new());
            assert_eq!(serde_yaml::from_str::<Value>(&rendered.text).unwrap(), rendered.value);
            assert_eq!(OrderRef::parse(order).unwrap(), pin.order);
        }
    }
}

#[test]
fn b71_what_a_takeover_would_lose_is_known_before_anything_is_decided() {
    let commented = EXISTING.replace("kind: Application\n", "kind: Application # ours since 2021\n");
    let pin = pin("shop/podinfo", "eu-1", "a");
    let plan = plan(vec![row("shop/podinfo", ServingPlan::Keep, vec![pinned(pin)])]);
    let losses = |text: &str, owner| {
        expedite::render::collect_losses(&plan, &pins::repository(&[(PODINFO_PATH, text, owner)]))
    };
    assert_eq!(
        losses(&commented, None)[PODINFO_PATH],
        "taking it over would lose the comment in line 2; remove that from the file, or put it into templates/application.yaml"
    );
    assert!(losses(EXISTING, None).is_empty());
    assert!(
        losses(&format!("{PODINFO}# mine\n"), Some("shop/podinfo")).is_empty(),
        "ours is restored, not taken over"
    );
}

#[test]
fn b77_finalizers_of_an_application_that_only_the_cluster_has_come_into_its_file() {
    for found in [vec![], vec!["example.com/mine".to_owned()]] {
        let pin = Pin { found_finalizers: Some(found.clone()), ..pin("shop/podinfo", "eu-1", "a") };
        let rendered = run(vec![pin.clone()]);
        let text = written(&rendered, PODINFO_PATH);
        let value: Value = serde_yaml::from_str(text).unwrap();
        let finalizers = value["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        assert_eq!(finalizers, found);
        // Once it is ours, nobody looks at the cluster for them any more.
        let ours = pins::repository(&[(PODINFO_PATH, text, Some("shop/podinfo"))]);
        assert!(run_on(&ours, vec![Pin { found_finalizers: None, ..pin }]).changes.is_empty());
    }
}
