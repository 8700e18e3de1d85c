//! Running inside a cluster, by what `deploy/` ships: rendered by kubectl, applied to a real API server, and used by
//! the real binary with the rights that are in it and no others.

use super::*;
use crate::support::apiserver::{ADMIN, ApiServer, documents, path_of};
use crate::support::harness::{Place, copy, package};

const VOTES: &str = "/apis/delivery.kokumi.dev/v1alpha1/namespaces/shop/approvals";

/// A server with our kinds, Argo CD's Application, and what an overlay over `deploy/base` renders to, with these
/// components.
fn installed(components: &[&str]) -> Option<(ApiServer, Place, Vec<Value>)> {
    peers::peer("kubectl")?;
    let server = ApiServer::start()?;
    let place = Place::new();
    copy(&package().join("deploy"), &place.path("deploy"));
    let components: Vec<String> = components.iter().map(|c| format!("../components/{c}")).collect();
    let overlay = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "resources": ["../base"], "components": components,
    });
    place.write("deploy/overlay/kustomization.yaml", overlay.to_string());
    let folder = |name: &str| place.path(name).to_str().unwrap().to_owned();
    let rendered = server.kubectl(ADMIN, &["kustomize", &folder("deploy/overlay")], "");
    assert!(rendered.status.success() && rendered.stderr.is_empty(), "{rendered:?}");
    let applied = server.kubectl(ADMIN, &["apply", "--server-side", "-k", &folder("deploy/crds")], "");
    assert!(applied.status.success(), "{applied:?}");
    server.define_applications();
    for kind in Kind::ALL {
        server.served(&expedite::model::crd::build_definition(kind));
    }
    server.namespace("argocd");
    server.namespace("shop");
    let applied = server.kubectl(ADMIN, &["apply", "--server-side", "-f", "-"], &rendered.stdout);
    assert!(applied.status.success(), "{applied:?}");
    assert!(!applied.stderr.contains("Warning"), "{}", applied.stderr);
    Some((server, place, documents(&rendered.stdout)))
}

fn find<'o>(objects: &'o [Value], kind: &str) -> &'o Value {
    objects.iter().find(|o| o["kind"] == kind).unwrap_or_else(|| panic!("there is no {kind}"))
}

/// A kubeconfig with a token of the job's ServiceAccount, as a Pod has one.
fn as_the_account(server: &ApiServer, place: &mut Place) {
    let token = server.kubectl(ADMIN, &["create", "token", "expedite", "-n", "expedite"], "");
    assert!(token.status.success(), "{token:?}");
    let mut config: Value = serde_json::from_str(&server.kubeconfig(ADMIN)).unwrap();
    config["users"] = json!([{"name": ADMIN, "user": {"token": token.stdout.trim()}}]);
    place.write("kubeconfig", config.to_string());
    place.set("KUBECONFIG", place.path("kubeconfig").to_str().unwrap());
}

/// What the API server says to the job's ServiceAccount.
fn asks(server: &ApiServer, method: &str, path: &str, body: Option<(&str, Value)>) -> (u16, String) {
    let token = server.kubectl(ADMIN, &["create", "token", "expedite", "-n", "expedite"], "");
    let (status, answer) =
        server.send_with(token.stdout.trim(), method, path, body.as_ref().map(|(t, b)| (*t, b)));
    (status, answer["message"].as_str().unwrap_or_default().to_owned())
}

/// The shipped settings, with the repository and the registry of this test.
fn settings(place: &Place) {
    place.git(&["init", "-q", "--bare", "-b", "main", "gitops.git"]);
    std::fs::create_dir(place.path("registry")).unwrap();
    let registry = "registries:\n  registry.shop.example:5000: {layout: ./registry}\n";
    place.write("expedite.yaml", place.read("deploy/base/expedite.yaml") + registry);
    place.edit("expedite.yaml", "https://git.shop.example/shop/gitops.git", "./gitops.git");
}

fn order_of(place: &str) -> Value {
    let mut order = order("shop", place);
    order["spec"]["environment"] = "production".into();
    order
}

fn fleet(server: &ApiServer) {
    let api = "delivery.kokumi.dev/v1alpha1";
    let status = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    server.create(&json!({"apiVersion": api, "kind": "Cluster", "metadata": {"name": "eu-1"},
        "spec": {"server": "https://eu-1.k8s.shop.example:6443"}, "status": status}));
    server.create(&json!({"apiVersion": api, "kind": "Environment", "metadata": {"name": "production"},
        "spec": {"clusters": ["eu-1"]}}));
    server.create(&order_of("podinfo"));
    server.create(&preparation_of("podinfo"));
}

fn preparation_of(order: &str) -> Value {
    let mut object = preparation("shop", order, 1);
    object["metadata"].as_object_mut().unwrap().remove("managedFields");
    object
}

#[test]
fn the_rights_that_are_shipped_are_enough_to_plan_and_nothing_else() {
    let Some((server, mut place, _)) = installed(&[]) else { return };
    fleet(&server);
    server.create(
        &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "expedite"},
        "stringData": {"job.key": "hunter2"}}),
    );
    as_the_account(&server, &mut place);
    settings(&place);
    let plan = place.expedite(&["plan", "--config", "expedite.yaml"]);
    plan.ok();
    assert!(plan.stdout.contains("shop/podinfo"), "{}", plan.stdout);
    // Applications were observed, and there are none.
    assert!(!plan.stderr.contains("cannot be read") && !plan.stdout.contains("not observed"), "{plan:?}");

    let ours = "/apis/delivery.kokumi.dev/v1alpha1";
    let applications = "/apis/argoproj.io/v1alpha1/namespaces";
    let patch = |change: Value| Some(("application/merge-patch+json", change));
    let created = |object: Value| Some(("application/json", object));
    let refused = [
        ("GET", "/api/v1/secrets".to_owned(), None),
        ("GET", "/api/v1/namespaces/expedite/secrets/s".into(), None),
        ("GET", "/api/v1/namespaces/expedite/configmaps".into(), None),
        ("GET", "/api/v1/nodes".into(), None),
        ("GET", format!("{ours}/namespaces/shop/orders/podinfo"), None),
        ("GET", format!("{ours}/orders?watch=true"), None),
        ("GET", format!("{applications}/shop/applications"), None),
        ("GET", "/apis/argoproj.io/v1alpha1/applications".into(), None),
        ("POST", format!("{ours}/namespaces/shop/orders"), created(order_of("other"))),
        (
            "PATCH",
            format!("{ours}/namespaces/shop/orders/podinfo"),
            patch(json!({"spec": {"environment": "dev"}})),
        ),
        ("PATCH", format!("{ours}/environments/production"), patch(json!({"spec": {"promotion": null}}))),
        ("DELETE", format!("{ours}/namespaces/shop/orders/podinfo"), None),
        ("PATCH", format!("{ours}/namespaces/shop/servings/podinfo/status"), patch(json!({"status": {}}))),
        (
            "POST",
            format!("{applications}/argocd/applications"),
            created(json!({"apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application", "metadata": {"name": "x"}, "spec": {"project": "default", "destination": {}}})),
        ),
        ("POST", "/apis/events.k8s.io/v1/namespaces/shop/events".into(), created(json!({}))),
    ];
    for (method, path, body) in refused {
        let (status, message) = asks(&server, method, &path, body);
        assert_eq!(status, 403, "{method} {path}: {message}");
    }
    for path in
        [format!("{ours}/orders"), format!("{ours}/kitchens"), format!("{applications}/argocd/applications")]
    {
        assert_eq!(asks(&server, "GET", &path, None).0, 200, "{path}");
    }
}

#[test]
fn the_component_that_writes_status_may_write_status_and_events_alone() {
    let Some((server, mut place, objects)) = installed(&["write-status"]) else { return };
    let args = &find(&objects, "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]
        ["args"];
    assert_eq!(*args, json!(["run", "--no-progress", "--write-status"]));
    fleet(&server);
    server.create(&json!({"apiVersion": "delivery.kokumi.dev/v1alpha1", "kind": "Serving",
        "metadata": {"name": "podinfo", "namespace": "shop"}, "spec": {"orderName": "podinfo"}}));
    let serving = "/apis/delivery.kokumi.dev/v1alpha1/namespaces/shop/servings/podinfo";
    let applied = |object: Value| Some(("application/apply-patch+yaml", object));
    let status = json!({"apiVersion": "delivery.kokumi.dev/v1alpha1", "kind": "Serving",
        "metadata": {"name": "podinfo", "namespace": "shop"}, "status": {"targetPreparationName": "podinfo-00001"}});
    let said = asks(&server, "PATCH", &format!("{serving}/status?fieldManager=expedite"), applied(status));
    assert_eq!(said.0, 200, "{}", said.1);
    assert_eq!(server.get(serving)["status"]["targetPreparationName"], "podinfo-00001");
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"name": "podinfo.1", "namespace": "shop"}, "eventTime": "2026-01-15T09:30:00.000000Z",
        "reportingController": "kokumi.dev/expedite", "reportingInstance": "expedite", "action": "Promote",
        "reason": "Promoted", "type": "Normal",
        "regarding": {"apiVersion": "delivery.kokumi.dev/v1alpha1", "kind": "Serving", "name": "podinfo", "namespace": "shop"}});
    let events = "/apis/events.k8s.io/v1/namespaces/shop/events";
    let said = asks(&server, "POST", events, Some(("application/json", event)));
    assert_eq!(said.0, 201, "{}", said.1);
    let intent = json!({"spec": {"preparationName": "podinfo-00002"}});
    for (method, path, body) in [
        ("PATCH", serving, Some(("application/merge-patch+json", intent.clone()))),
        ("PUT", serving, Some(("application/json", intent))),
        ("DELETE", serving, None),
        ("GET", events, None),
        ("GET", "/api/v1/secrets", None),
    ] {
        let (status, message) = asks(&server, method, path, body);
        assert_eq!(status, 403, "{method} {path}: {message}");
    }

    // The job itself, with these rights.
    as_the_account(&server, &mut place);
    settings(&place);
    let run = ["run", "--config", "expedite.yaml", "--no-records", "--write-status"];
    for _ in 0..2 {
        let said = place.expedite(&run);
        said.ok();
        assert!(!said.stderr.contains("HTTP 403"), "{}", said.stderr);
    }
    let told = server.get(serving);
    let ready =
        told["status"]["conditions"].as_array().unwrap().iter().find(|c| c["type"] == "Ready").unwrap();
    assert_eq!(ready["reason"], "Pending", "{told}");
}

#[test]
fn the_job_is_let_into_a_restricted_namespace_and_shards_share_it() {
    let Some((server, _place, objects)) = installed(&["shards"]) else { return };
    let job = find(&objects, "CronJob");
    let spec = &job["spec"]["jobTemplate"]["spec"];
    assert_eq!((&spec["completionMode"], &spec["completions"]), (&json!("Indexed"), &json!(4)));
    let environment = spec["template"]["spec"]["containers"][0]["env"].as_array().unwrap();
    assert!(environment.contains(&json!({"name": "JOB_COMPLETION_COUNT", "value": "4"})), "{environment:?}");
    // The Job that a controller makes of it, and its Pod: the API server judges both.
    let made = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "now", "namespace": "expedite"},
        "spec": spec});
    server.create(&made);
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "now", "namespace": "expedite"},
        "spec": spec["template"]["spec"]});
    let pods = "/api/v1/namespaces/expedite/pods";
    let create = |pod: &Value| {
        server.send(ADMIN, "POST", &format!("{pods}?dryRun=All"), Some(("application/json", pod)))
    };
    let (status, answer) = create(&pod);
    assert_eq!(status, 201, "{answer}");
    let mounts = answer["spec"]["containers"][0]["volumeMounts"].to_string();
    assert!(mounts.contains("serviceaccount"), "it gets its token: {mounts}");
    let container = &answer["spec"]["containers"][0]["securityContext"];
    assert_eq!(container["readOnlyRootFilesystem"], true);
    // Each of what hardens it is asked for.
    for (pointer, value) in [
        ("/spec/securityContext/runAsNonRoot", json!(false)),
        ("/spec/securityContext/seccompProfile", json!({"type": "Unconfined"})),
        ("/spec/containers/0/securityContext/allowPrivilegeEscalation", json!(true)),
        ("/spec/containers/0/securityContext/capabilities", json!({})),
    ] {
        let before = pod.pointer(pointer).unwrap().clone();
        *pod.pointer_mut(pointer).unwrap() = value;
        let (status, answer) = create(&pod);
        assert_eq!(status, 403, "{pointer}: {answer}");
        *pod.pointer_mut(pointer).unwrap() = before;
    }
    // Anything else under this name gets no token.
    let bare = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare", "namespace": "expedite"},
        "spec": {"serviceAccountName": "expedite", "securityContext": spec["template"]["spec"]["securityContext"],
            "containers": [{"name": "c", "image": "i",
                "securityContext": spec["template"]["spec"]["containers"][0]["securityContext"]}]}});
    let (status, answer) = create(&bare);
    assert_eq!(status, 201, "{answer}");
    assert!(answer["spec"]["containers"][0].get("volumeMounts").is_none(), "{answer}");
    // Nothing reaches in; what goes out is named by ports.
    let policies: Vec<&Value> = objects.iter().filter(|o| o["kind"] == "NetworkPolicy").collect();
    assert!(
        policies.iter().any(|p| p["spec"]["podSelector"] == json!({}) && p["spec"].get("egress").is_none())
    );
    assert!(policies.iter().all(|p| p["spec"].get("ingress").is_none()));
}

/// A vote as `user` writes it of themselves.
fn vote(name: &str, user: &str, groups: &[&str], decision: &str) -> Value {
    json!({
        "apiVersion": "delivery.kokumi.dev/v1alpha1", "kind": "Approval",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "preparationRef": {"name": "podinfo-00001", "artifactDigest": format!("sha256:{:064x}", 1)},
            "approver": {"issuer": "https://kubernetes.default.svc", "subject": user, "username": user, "groups": groups},
            "decision": decision,
            "submittedTime": "2026-01-15T09:30:00Z",
        },
    })
}

#[test]
fn a_vote_is_its_voters_own_and_a_veto_stays() {
    let Some((server, mut place, _)) = installed(&[]) else { return };
    // Voters, and one who may do everything: the policy speaks to all of them.
    server.grant(
        "system:authenticated",
        "voter",
        &json!([{"apiGroups": ["delivery.kokumi.dev"], "resources": ["approvals"],
            "verbs": ["create", "update", "patch", "delete", "deletecollection", "list", "get"]}]),
        None,
    );
    let group =
        json!([{"kind": "Group", "name": "system:authenticated", "apiGroup": "rbac.authorization.k8s.io"}]);
    server.merge(
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/voter-system-authenticated",
        &json!({"subjects": group}),
    );
    let ann = ["--as", "ann", "--as-group", "platform", "--as-group", "system:authenticated"];
    let says = |who: &[&str], verb: &[&str], object: &Value| {
        let said = server.kubectl(ADMIN, &[who, verb].concat(), &object.to_string());
        if said.status.success() { "taken".to_owned() } else { said.stderr }
    };
    let create = ["create", "-f", "-"];
    // The policy takes a moment until it is in force.
    let start = std::time::Instant::now();
    while says(&ann, &["create", "--dry-run=server", "-f", "-"], &vote("early", "bob", &[], "Approve"))
        == "taken"
    {
        assert!(start.elapsed() < Duration::from_secs(60), "the policy is not in force");
        std::thread::sleep(Duration::from_millis(200));
    }

    assert_eq!(says(&ann, &create, &vote("ann-1", "ann", &["platform"], "Approve")), "taken");
    assert_eq!(says(&ann, &create, &vote("ann-2", "ann", &[], "Reject")), "taken");
    let with = |path: &str, value: Value| {
        let mut object = vote("x", "ann", &["platform"], "Approve");
        let (parent, name) = path.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[name] = value;
        object
    };
    let mut nameless = with("/spec/approver/username", json!(""));
    nameless["spec"]["approver"].as_object_mut().unwrap().remove("username");
    for (object, wanted) in [
        (vote("x", "bob", &[], "Approve"), "spec.approver.subject must be ann, who is asking"),
        (with("/spec/approver/subject", json!("4711")), "spec.approver.subject must be ann"),
        (with("/spec/approver/username", json!("bob")), "spec.approver.username must be ann"),
        (nameless, "spec.approver.username must be ann"),
        // One person under two issuers would be two.
        (
            with("/spec/approver/issuer", json!("https://idp.example")),
            "spec.approver.issuer must be https://kubernetes.default.svc",
        ),
        (with("/spec/approver/groups", json!(["platform", "security"])), "names one that ann is not in"),
        (with("/spec/approver/email", json!("boss@shop.example")), "spec.approver.email is not known here"),
    ] {
        let said = says(&ann, &create, &object);
        assert!(said.contains(wanted) && said.contains("forbidden"), "{said}\n  wanted: {wanted}");
    }
    // Nobody's power is a way around it.
    let said = says(&[], &create, &vote("x", "ann", &["platform"], "Approve"));
    assert!(said.contains("must be admin, who is asking"), "{said}");

    for who in [&ann[..], &[]] {
        let edited = says(
            who,
            &["apply", "--server-side", "--force-conflicts", "-f", "-"],
            &vote("ann-2", "ann", &[], "Approve"),
        );
        assert!(edited.contains("a vote cannot be changed"), "{edited}");
        let labelled =
            says(who, &["label", "approval", "ann-2", "-n", "shop", "--overwrite", "seen=yes"], &Value::Null);
        assert_eq!(labelled, "taken", "labels are not the vote");
        let deleted = says(who, &["delete", "approval", "ann-2", "-n", "shop"], &Value::Null);
        assert!(deleted.contains("a vote is not deleted"), "{deleted}");
        let all = server.send(if who.is_empty() { ADMIN } else { "ann" }, "DELETE", VOTES, None);
        assert!(all.0 == 403 && all.1.to_string().contains("a vote is not deleted"), "{all:?}");
    }
    // Nor is an Approve, by whoever it is: it would no longer count.
    assert_eq!(says(&ann, &create, &vote("ann-3", "ann", &["platform"], "Approve")), "taken");
    for who in [&ann[..], &[]] {
        let deleted = says(who, &["delete", "approval", "ann-3", "-n", "shop"], &Value::Null);
        assert!(deleted.contains("a vote is not deleted"), "{deleted}");
    }
    for (name, decision) in [("ann-1", "Approve"), ("ann-2", "Reject"), ("ann-3", "Approve")] {
        let left = server.get(&path_of(&vote(name, "ann", &[], decision)));
        assert_eq!(left["spec"]["decision"], decision, "{name}");
    }

    // What the API server vouches for is counted, by a run that may only list.
    fleet(&server);
    let policy =
        json!({"mode": "Automatic", "approvals": {"requiredApprovals": 2, "allowedGroups": ["platform"]}});
    let order = "/apis/delivery.kokumi.dev/v1alpha1/namespaces/shop/orders/podinfo";
    server.merge(order, &json!({"spec": {"promotion": policy}}));
    server.create(&json!({"apiVersion": "delivery.kokumi.dev/v1alpha1", "kind": "Kitchen",
        "metadata": {"name": "default", "namespace": "shop"}, "spec": {"approvalTrust": "Cluster"}}));
    assert_eq!(says(&ann, &create, &vote("ann-4", "ann", &["platform"], "Approve")), "taken");
    as_the_account(&server, &mut place);
    settings(&place);
    let said = place.expedite(&["explain", "shop/podinfo", "--config", "expedite.yaml"]);
    assert!(said.stdout.contains("1 of 2 approvals from platform (by ann)"), "{said:?}");

    // A namespace that goes takes its vetoes with it.
    server.delete("/api/v1/namespaces/shop");
    assert_eq!(server.get("/api/v1/namespaces/shop")["status"]["phase"], "Terminating");
    let start = std::time::Instant::now();
    while says(&[], &["delete", "approval", "ann-2", "-n", "shop"], &Value::Null) != "taken" {
        // What the policy knows of namespaces comes to it by a watch.
        assert!(start.elapsed() < Duration::from_secs(30), "the votes hold the namespace");
        std::thread::sleep(Duration::from_millis(200));
    }
}
