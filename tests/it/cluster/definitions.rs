//! Our CustomResourceDefinitions on a real API server: taken as they are committed, they keep every object that the
//! product reads, refuse wrong ones in words, and `kubectl get` prints the guide's table.

use super::*;
use crate::support::apiserver::{ADMIN, ApiServer, documents, path_of};
use crate::support::harness::{Place, package, shop};

/// The committed files.
fn committed() -> String {
    let folder = package().join("deploy/crds");
    let file = |kind: Kind| std::fs::read_to_string(folder.join(format!("{}.yaml", kind.plural()))).unwrap();
    Kind::ALL.map(file).join("---\n")
}

/// A server that has them, as a user puts them there.
fn installed() -> Option<ApiServer> {
    peers::peer("kubectl")?;
    let server = ApiServer::start()?;
    let applied = server.kubectl(ADMIN, &["apply", "--server-side", "-f", "-"], &committed());
    assert!(applied.status.success(), "{applied:?}");
    assert!(!applied.stderr.contains("Warning"), "{}", applied.stderr);
    for kind in Kind::ALL {
        server.served(&expedite::model::crd::build_definition(kind));
    }
    Some(server)
}

fn delivery(kind: &str, namespace: &str, name: &str, spec: Value) -> Value {
    let mut metadata = json!({"name": name});
    if !namespace.is_empty() {
        metadata["namespace"] = namespace.into();
    }
    json!({"apiVersion": "delivery.kokumi.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec})
}

/// What of `sent` is not in `kept`, or another there.
fn lost(sent: &Value, kept: &Value, path: &str, found: &mut Vec<String>) {
    match (sent, kept) {
        (Value::Object(sent), Value::Object(kept)) => {
            for (name, value) in sent {
                lost(value, kept.get(name).unwrap_or(&Value::Null), &format!("{path}.{name}"), found);
            }
        }
        (Value::Array(sent), Value::Array(kept)) if sent.len() == kept.len() => {
            sent.iter().zip(kept).for_each(|(sent, kept)| lost(sent, kept, &format!("{path}[]"), found));
        }
        (sent, kept) if sent == kept => {}
        (sent, kept) => found.push(format!("{path}: {sent} became {kept}")),
    }
}

/// Objects in the fixtures, in the published CRDs' words and in those of the guide.
fn fixtures() -> Vec<Value> {
    let mut all = Vec::new();
    for folder in
        [shop().join("objects"), package().join("tests/data/objects"), package().join("fixtures/cases")]
    {
        for entry in walkdir::WalkDir::new(folder).sort_by_file_name() {
            let path = entry.unwrap().into_path();
            // Expected outputs hold placeholders; a test beside the verb fills them.
            let yaml = path.extension().is_some_and(|e| e == "yaml")
                && !path.components().any(|c| c.as_os_str() == "out");
            let text = if yaml { std::fs::read_to_string(&path).unwrap() } else { continue };
            // Some are broken on purpose.
            let Ok(objects) = std::panic::catch_unwind(|| documents(&text)) else { continue };
            all.extend(objects.into_iter().filter(|o| o["apiVersion"] == "delivery.kokumi.dev/v1alpha1"));
        }
    }
    all
}

#[test]
fn they_are_established_and_keep_every_object_that_is_read() {
    let Some(server) = installed() else { return };
    for kind in Kind::ALL {
        let path = format!(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}.delivery.kokumi.dev",
            kind.plural()
        );
        let definition = server.get(&path);
        let conditions = definition["status"]["conditions"].as_array().unwrap();
        let is = |name: &str| conditions.iter().find(|c| c["type"] == name).map(|c| c["status"].clone());
        assert_eq!(is("Established"), Some("True".into()), "{conditions:?}");
        assert_eq!(is("NamesAccepted"), Some("True".into()), "{conditions:?}");
        assert_eq!(is("NonStructuralSchema"), None, "{conditions:?}");
    }

    let objects = fixtures();
    assert!(objects.len() > 40, "{}", objects.len());
    let mut wrong = Vec::new();
    for object in &objects {
        let mut object = object.clone();
        // In files a Kitchen may go without.
        if object["kind"] == "Kitchen" && object["metadata"]["namespace"].is_null() {
            object["metadata"]["namespace"] = "shop".into();
        }
        if let Some(namespace) = object["metadata"]["namespace"].as_str() {
            server.namespace(namespace);
        }
        let path = path_of(&object);
        let (folder, _) = path.rsplit_once('/').unwrap();
        let body = Some(("application/json", &object));
        // Strictly: a key that would be pruned is refused.
        let (status, answer) = server.send(ADMIN, "POST", &format!("{folder}?fieldValidation=Strict"), body);
        if status != 201 {
            wrong.push(format!("{path}: {status} {}", answer["message"]));
            continue;
        }
        if let Some(status) = object.get("status") {
            server.merge(&format!("{path}/status"), &json!({"status": status}));
        }
        let kept = server.get(&path);
        for part in ["spec", "status"] {
            lost(&object[part], &kept[part], &format!("{path} {part}"), &mut wrong);
        }
        server.delete(&path);
    }
    assert_eq!(wrong, Vec::<String>::new());

    // What is misspelt arrives where it is refused by name.
    let slip = delivery(
        "Order",
        "shop",
        "slip",
        json!({"promotoin": {"mode": "Manual"}, "promotion": {"window": [1]}}),
    );
    server.create(&slip);
    let kept = server.get(&path_of(&slip));
    assert_eq!(kept["spec"]["promotoin"]["mode"], "Manual");
    assert_eq!(kept["spec"]["promotion"]["window"], json!([1]));
    // Written as in August 2026, defaults and all.
    assert_eq!(kept["spec"]["autoDeploy"], "Disabled");
}

#[test]
fn an_installation_of_august_2026_is_brought_up_to_date() {
    let (Some(_), Some(server)) = (peers::peer("kubectl"), ApiServer::start()) else { return };
    server.define_published();
    server.namespace("shop");
    let serving = delivery(
        "Serving",
        "shop",
        "podinfo",
        json!({"orderName": "podinfo", "preparationName": "podinfo-00001", "preparationPolicy": {"type": "Manual"}}),
    );
    let kitchen =
        delivery("Kitchen", "shop", "default", json!({"adminUser": {"username": "admin"}, "argoCDURL": ""}));
    let objects = [order("shop", "podinfo"), preparation("shop", "podinfo", 1), serving, kitchen];
    let mut before = Vec::new();
    for object in &objects {
        let mut object = object.clone();
        object["metadata"].as_object_mut().unwrap().remove("managedFields");
        server.create(&object);
        before.push(server.get(&path_of(&object)));
    }
    let applied = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    let applied = server.kubectl(ADMIN, &applied, &committed());
    assert!(applied.status.success(), "{applied:?}");
    for kind in Kind::ALL {
        server.served(&expedite::model::crd::build_definition(kind));
    }
    let path = path_of(&objects[0]);
    let promotion = json!({"spec": {"promotion": {"mode": "Automatic"}}});
    let start = std::time::Instant::now();
    loop {
        server.merge(&path, &promotion);
        if server.get(&path)["spec"]["promotion"]["mode"] == "Automatic" {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "promotions are still dropped");
        std::thread::sleep(Duration::from_millis(100));
    }
    for (object, before) in objects.iter().zip(&before).skip(1) {
        // What their controllers do: a label, a status.
        let path = path_of(object);
        server.merge(&path, &json!({"metadata": {"labels": {"seen": "yes"}}}));
        let condition = json!({"type": "Ready", "status": "True", "reason": "Ready", "message": "",
            "lastTransitionTime": "2026-01-15T09:30:00Z", "observedGeneration": 1});
        server.merge(&format!("{path}/status"), &json!({"status": {"conditions": [condition]}}));
        let after = server.get(&path);
        assert_eq!(after["spec"], before["spec"], "{path}");
        assert_eq!(after["status"]["conditions"][0]["observedGeneration"], 1, "{path}");
    }
}

#[test]
fn wrong_objects_are_refused_in_words() {
    let Some(server) = installed() else { return };
    server.namespace("shop");
    let digest = format!("sha256:{}", "a".repeat(64));
    let order = |promotion: Value| delivery("Order", "shop", "x", json!({"promotion": promotion}));
    let check = |more: Value| {
        let mut check = json!({"name": "c"});
        check.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        order(json!({"checks": [check]}))
    };
    let environment = |spec: Value| delivery("Environment", "", "x", spec);
    let kitchen = |spec: Value| delivery("Kitchen", "shop", "default", spec);
    let approval = |decision: &str, digest: &str| {
        delivery(
            "Approval",
            "shop",
            "x",
            json!({"preparationRef": {"name": "p", "artifactDigest": digest}, "decision": decision,
                "approver": {"issuer": "i", "subject": "s"}, "submittedTime": "2026-01-15T09:30:00Z"}),
        )
    };
    let cases = [
        (order(json!({"mode": "Auto"})), "spec.promotion.mode: Unsupported value: \"Auto\""),
        (
            order(json!({"approvals": {"requiredApprovals": 0, "allowedGroups": ["a"]}})),
            "should be greater than or equal to 1",
        ),
        (
            order(json!({"approvals": {"requiredApprovals": 33, "allowedGroups": ["a"]}})),
            "should be less than or equal to 32",
        ),
        (
            order(json!({"approvals": {"requiredApprovals": 1}})),
            "spec.promotion.approvals.allowedGroups: Required value",
        ),
        (
            order(json!({"upstream": [{"order": "shop/a", "soak": "1 day"}]})),
            "spec.promotion.upstream[0].soak",
        ),
        (
            order(json!({"upstream": [{"order": "shop/a", "soak": 86400}]})),
            "should be less than or equal to 0",
        ),
        (order(json!({"upstream": [{"order": "a/b/c"}]})), "spec.promotion.upstream[0].order"),
        (check(json!({})), "exactly one of attestation and vulnerabilities must be set"),
        (
            check(json!({"attestation": {"predicateType": "t"}, "vulnerabilities": {"maxAge": "1h"}})),
            "exactly one of attestation and vulnerabilities must be set",
        ),
        (check(json!({"vulnerabilities": {"maxCritical": 0}})), "vulnerabilities.maxAge: Required value"),
        (
            order(json!({"checks": [{"name": "c", "attestation": {"predicateType": "t"}},
                {"name": "c", "attestation": {"predicateType": "u"}}]})),
            "Duplicate value: {\"name\":\"c\"}",
        ),
        (
            order(
                json!({"windows": [{"timezone": "UTC", "days": ["Monday"], "from": "09:00", "to": "16:00"}]}),
            ),
            "windows[0].days[0]: Unsupported value: \"Monday\"",
        ),
        (order(json!({"windows": [{"timezone": "UTC", "from": "9:00", "to": "16:00"}]})), "windows[0].from"),
        (
            delivery("Order", "shop", "x", json!({"autoDeploy": "Enabled", "promotion": {"mode": "Manual"}})),
            "autoDeploy is Enabled, and promotion.mode is Manual: remove autoDeploy",
        ),
        (
            delivery("Order", "shop", "x", json!({"source": {"version": "1"}})),
            "exactly one of oci or pantryRef must be set",
        ),
        (environment(json!({"promotion": {"upstream": [{"order": "podinfo"}]}})), "write <namespace>/<name>"),
        (
            environment(
                json!({"promotion": {"freezes": [{"from": "2027-01-04T00:00:00Z", "to": "2027-01-03T00:00:00Z"}]}}),
            ),
            "to is not after from",
        ),
        (environment(json!({"clusters": ["a", "a"]})), "Duplicate value: \"a\""),
        (
            environment(json!({"clusterSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}})),
            "In and NotIn need values",
        ),
        (environment(json!({"onDelete": "Keep"})), "Unsupported value: \"Keep\""),
        (delivery("Cluster", "", "x", json!({"server": "eu-1"})), "must be an API server's URL"),
        (delivery("Cluster", "", "x", json!({"server": "https://u:p@eu-1"})), "must be an API server's URL"),
        (kitchen(json!({"trust": {"keys": [{"name": "k"}]}})), "exactly one of publicKey and publicKeyFile"),
        (
            kitchen(json!({"trust": {"keys": [{"name": "k", "publicKey": "p", "roles": ["all"]}]}})),
            "roles[0]: Unsupported value: \"all\"",
        ),
        (kitchen(json!({"reject": [{"digest": "sha256:1"}]})), "spec.reject[0].digest"),
        (approval("Maybe", &digest), "spec.decision: Unsupported value: \"Maybe\""),
        (approval("Approve", "sha512:00"), "spec.preparationRef.artifactDigest"),
        (
            delivery("Serving", "shop", "x", json!({"orderName": "x", "preparationName": "a b"})),
            "spec.preparationName",
        ),
    ];
    for (object, wanted) in &cases {
        let path = path_of(object);
        let (folder, _) = path.rsplit_once('/').unwrap();
        let (status, answer) = server.send(ADMIN, "POST", folder, Some(("application/json", object)));
        let message = answer["message"].as_str().unwrap_or_default();
        assert!(
            status == 422 && message.contains(wanted),
            "{status} {message}\n  wanted: {wanted}\n  of {object}"
        );
    }

    // A vote and a Preparation are what they are, members that nobody knows included.
    let mut vote = approval("Reject", &digest);
    vote["spec"]["annex"] = json!({"a": [1]});
    server.create(&vote);
    let preparation = preparation("shop", "podinfo", 1);
    server.create(&preparation);
    for (object, change, says) in [
        (&vote, json!({"spec": {"decision": "Approve"}}), "a vote cannot be changed"),
        (&vote, json!({"spec": {"comment": "on second thoughts"}}), "a vote cannot be changed"),
        (&preparation, json!({"spec": {"targetNamespace": "kube-system"}}), "Preparation spec is immutable"),
    ] {
        let body = Some(("application/merge-patch+json", &change));
        let (status, answer) = server.send(ADMIN, "PATCH", &path_of(object), body);
        assert!(status == 422 && answer["message"].as_str().unwrap().contains(says), "{status} {answer}");
        // Labels are not the vote.
        server.merge(&path_of(object), &json!({"metadata": {"labels": {"seen": "yes"}}}));
    }
}

#[test]
fn kubectl_prints_the_guides_table() {
    let Some(server) = installed() else { return };
    server.namespace("shop");
    let condition = |kind: &str, status: &str, reason: &str| json!({"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": "2026-01-15T09:30:00Z"});
    let mut podinfo = delivery(
        "Serving",
        "shop",
        "podinfo",
        json!({"orderName": "podinfo", "preparationName": "podinfo-1"}),
    );
    podinfo["status"] = json!({
        "targetPreparationName": "podinfo-1",
        "conditions": [condition("Ready", "True", "Deployed"), condition("Approved", "True", "ApprovalNotRequired"),
            condition("Verified", "True", "SignaturesVerified")],
        "queued": {"preparationName": "podinfo-2", "waitsFor": "Window", "message": "", "since": "2026-01-15T09:30:00Z"},
    });
    server.create(&podinfo);
    server.create(&delivery("Serving", "shop", "basket", json!({"orderName": "basket"})));
    let table = |arguments: &[&str]| -> Vec<Vec<String>> {
        let said = server.kubectl("admin", arguments, "");
        assert!(said.status.success(), "{said:?}");
        // Columns are three blanks apart; a heading may hold one.
        let cells = |line: &str| {
            line.split("   ").map(str::trim).filter(|c| !c.is_empty()).map(str::to_owned).collect()
        };
        said.stdout.lines().map(cells).collect()
    };
    let mut servings = table(&["get", "servings", "-n", "shop"]);
    assert_eq!(servings[0], ["NAME", "ORDER", "TARGET", "READY", "REASON", "APPROVED", "VERIFIED", "AGE"]);
    // Nothing is known of a Serving without a status.
    assert_eq!(servings[1][..2], ["basket", "basket"]);
    let age = servings[2].pop().unwrap();
    assert!(age.ends_with('s'), "{age}");
    let wanted =
        ["podinfo", "podinfo", "podinfo-1", "True", "Deployed", "ApprovalNotRequired", "SignaturesVerified"];
    assert_eq!(servings[2], wanted);
    let wide = table(&["get", "srv", "podinfo", "-n", "shop", "-o", "wide"]);
    assert_eq!(wide[0][8..], ["QUEUED", "WAITS FOR"]);
    assert_eq!(wide[1][8..], ["podinfo-2", "Window"]);

    server.apply(
        &std::fs::read_to_string(package().join("tests/data/objects/every-member.yaml")).unwrap().replace(
            "name: podinfo, namespace: shop}\nspec:\n  orderName",
            "name: podinfo-again, namespace: shop}\nspec:\n  orderName",
        ),
    );
    let head = |kind: &str| table(&["get", kind, "-A", "-o", "wide"])[0].join(" ");
    assert_eq!(
        head("orders"),
        "NAMESPACE NAME ENVIRONMENT MODE READY REASON LATEST PREPARATION AGE MENU SOURCE VERSION AUTO DEPLOY"
    );
    assert_eq!(head("prep"), "NAMESPACE NAME ORDER READY REASON AGE DIGEST SIGNED");
    assert_eq!(head("appr"), "NAMESPACE NAME PREPARATION DECISION APPROVER AGE COMMENT DIGEST SUBJECT");
    assert_eq!(head("env"), "NAME PROJECT CLUSTERS ON DELETE AGE");
    assert_eq!(head("clusters"), "NAME SERVER READY REASON AGE");
    assert_eq!(head("kitchens"), "NAMESPACE NAME APPROVAL TRUST READY REASON AGE ARGO CD URL");
    let all = server.kubectl("admin", &["get", "kokumi", "-A", "-o", "name"], "");
    assert!(all.stdout.contains("kitchen.delivery.kokumi.dev/default"), "{all:?}");
    assert!(all.stdout.contains("approval.delivery.kokumi.dev/ann-1"), "{all:?}");
    let explained = server.kubectl("admin", &["explain", "order.spec.promotion.upstream.soak"], "");
    assert!(explained.stdout.contains("Healthy there for this long"), "{explained:?}");
}

#[test]
fn the_shop_is_planned_from_the_cluster_as_from_its_files() {
    let Some(server) = installed() else { return };
    let place = Place::with_shop();
    let plan = |arguments: &[&str]| {
        let all =
            [&["plan", "--config", "expedite.yaml", "--at", "2026-02-10T12:00:00Z"], arguments].concat();
        place.expedite(&all).ok().to_owned()
    };
    let before = plan(&[]);
    assert!(before.contains("shop/mailer"), "{before}");
    for entry in walkdir::WalkDir::new(shop().join("objects")).sort_by_file_name() {
        let path = entry.unwrap().into_path();
        if path.extension().is_none_or(|e| e != "yaml") {
            continue;
        }
        for mut object in documents(&std::fs::read_to_string(&path).unwrap()) {
            let ready = ["Preparation", "Cluster"].iter().any(|kind| object["kind"] == *kind);
            if ready && object.get("status").is_none() {
                // What a controller says in a cluster; files go without one.
                object["status"] = json!({"conditions": [{"type": "Ready", "status": "True", "reason": "Ready",
                    "message": "", "lastTransitionTime": "2026-01-15T09:30:00Z"}]});
            }
            if object["kind"] == "Kitchen" {
                object["metadata"]["namespace"] = "shop".into();
            }
            if let Some(namespace) = object["metadata"]["namespace"].as_str() {
                server.namespace(namespace);
            }
            server.create(&object);
        }
    }
    place.write("kubeconfig", server.kubeconfig(ADMIN));
    let settings = place.read("expedite.yaml").replace("- path: ./objects", "- cluster: {context: admin}");
    assert!(settings.contains("context: admin"), "{settings}");
    place.write("expedite.yaml", settings);
    let mut place = place;
    place.set("KUBECONFIG", place.path("kubeconfig").to_str().unwrap());
    let all = ["plan", "--config", "expedite.yaml", "--at", "2026-02-10T12:00:00Z"];
    assert_eq!(place.expedite(&all).ok(), before);
}
