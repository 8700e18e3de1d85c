//! Telling Servings, against a server that is slow, full, changed meanwhile or of another opinion.

use super::*;
use crate::support::stubserver::{Answer, Request, Stub, failure, page};
use expedite::load::cluster::connect::Connection;
use expedite::load::cluster::told::Told;
use expedite::model::id::Digest;
use expedite::model::serving::{HistoryEntry, ServingStatus};
use expedite::model::time::Time;
use expedite::notify::{self, TellOutcome, Teller, Telling};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

const NOW: &str = "2026-03-02T12:00:00Z";

fn teller(stub: &Stub, runtime: &tokio::runtime::Runtime) -> Teller {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    std::fs::write(
        &file,
        apiserver::kubeconfig(&stub.url(), Path::new("ca.pem"), "ann")
            .replace(",\"certificate-authority\":\"ca.pem\"", ""),
    )
    .unwrap();
    let connection: Connection = runtime.block_on(access_by(&file).open_connection(None)).unwrap();
    Teller::new("cluster:ann".into(), connection)
}

/// A Serving `shop/<name>` as a list gives it, in this version.
fn listed(name: &str, version: &str, status: Value) -> Value {
    json!({"metadata": {"namespace": "shop", "name": name, "uid": "u", "resourceVersion": version}, "status": status})
}

/// That of a Serving with no status in version 1, in which something was promoted.
fn telling(name: &str) -> Telling {
    let (order, told) = Told::from_item(&listed(name, "1", Value::Null)).unwrap();
    notify::make_telling(&order, &told, None, &promoted(), Time::parse(NOW).unwrap()).unwrap()
}

fn promoted() -> ServingStatus {
    let entry: HistoryEntry = serde_json::from_value(json!({
        "preparationName": "podinfo-1", "digest": Digest::hash_bytes(b"x"), "promotedTime": "2026-03-02T11:00:00Z",
    }))
    .unwrap();
    ServingStatus {
        deployed_digest: Some(Digest::hash_bytes(b"x")),
        history: vec![entry],
        ..ServingStatus::default()
    }
}

/// Answers an apply with what was applied.
fn applied(request: &Request) -> Answer {
    let mut object = request.body.clone();
    object["metadata"]["resourceVersion"] = "9".into();
    Answer::Json(200, object)
}

fn is_event(request: &Request) -> bool {
    request.path.starts_with("/apis/events.k8s.io/v1/namespaces/shop/events")
}

fn tell(stub: &Stub, names: &[&str]) -> TellOutcome {
    let tellings: Vec<Telling> = names.iter().map(|name| telling(name)).collect();
    let runtime = runtime();
    teller(stub, &runtime).tell_all(&runtime, &tellings)
}

fn failures(outcome: &TellOutcome) -> Vec<String> {
    outcome.failures.iter().map(ToString::to_string).collect()
}

#[test]
fn the_status_is_applied_whole_after_its_events() {
    let stub = Stub::start(|request| {
        if is_event(request) { Answer::Json(201, request.body.clone()) } else { applied(request) }
    });
    let outcome = tell(&stub, &["podinfo"]);
    assert_eq!((outcome.statuses, outcome.events, failures(&outcome)), (1, 1, Vec::new()));
    assert!(outcome.notices.is_empty(), "{:?}", outcome.notices);
    let seen = stub.seen();
    assert_eq!(seen.len(), 2);
    assert_eq!((seen[0].method.as_str(), is_event(&seen[0])), ("POST", true));
    let apply = &seen[1];
    assert_eq!(apply.method, "PATCH");
    assert_eq!(apply.path, "/apis/delivery.kokumi.dev/v1alpha1/namespaces/shop/servings/podinfo/status");
    assert_eq!((apply.get("fieldManager"), apply.get("force")), (Some("expedite"), Some("true")));
    assert_eq!(apply.content_type, "application/apply-patch+yaml");
    assert_eq!(
        apply.body["metadata"],
        json!({"name": "podinfo", "namespace": "shop", "resourceVersion": "1"})
    );
    assert_eq!(apply.body["status"], serde_json::to_value(promoted()).unwrap());
}

#[test]
fn what_a_serving_says_already_is_not_told() {
    let status = serde_json::to_value(promoted()).unwrap();
    let mut more = status.clone();
    more["observedGeneration"] = 3.into();
    for status in [status, more] {
        let (order, told) = Told::from_item(&listed("podinfo", "1", status)).unwrap();
        assert!(notify::make_telling(&order, &told, None, &promoted(), Time::parse(NOW).unwrap()).is_none());
    }
}

#[test]
fn a_full_server_is_asked_again_when_it_says() {
    let asked = AtomicUsize::new(0);
    let stub = Stub::start(move |request| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => Answer::Busy(429, 1),
        1 => Answer::Json(201, request.body.clone()),
        2 => Answer::Busy(503, 1),
        3 => failure(504, "Timeout", "etcd is slow"),
        _ => applied(request),
    });
    let start = Instant::now();
    let outcome = tell(&stub, &["podinfo"]);
    assert_eq!((outcome.statuses, outcome.events, failures(&outcome)), (1, 1, Vec::new()));
    assert_eq!(stub.seen().len(), 5);
    assert!(start.elapsed() >= Duration::from_secs(2), "{:?}", start.elapsed());
}

#[test]
fn nobody_waits_for_a_day() {
    let stub = Stub::start(|_| Answer::Busy(429, 86_400));
    let start = Instant::now();
    let outcome = tell(&stub, &["podinfo"]);
    assert!(start.elapsed() < Duration::from_secs(20));
    assert_eq!(stub.seen().len(), 1);
    assert_eq!(
        failures(&outcome),
        [
            "cluster ann: the status in git was not written to all Servings: shop/podinfo: its Event Promoted: Too many requests, please \
          try again later. (HTTP 429)"
        ]
    );
    assert_eq!(outcome.failures[0].kind.exit_status(), 1);
}

#[test]
fn a_cluster_where_everything_fails_is_left_alone() {
    let stub = Stub::start(|_| failure(500, "InternalError", "no space left on device"));
    let names: Vec<String> = (0..100).map(|n| format!("podinfo-{n:02}")).collect();
    let outcome = tell(&stub, &names.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(stub.seen().len() < 20, "{} requests", stub.seen().len());
    let failures = failures(&outcome);
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(failures[0].contains("no space left on device (HTTP 500)"), "{failures:?}");
    let (tried, left) = counts(&failures[0], " more were not tried");
    assert!((5..=12).contains(&tried) && tried == stub.seen().len(), "{failures:?}");
    assert_eq!(tried + left, 100, "{failures:?}");
}

/// How many failed, and how many were left alone: at the fifth failure up to seven others are under way.
fn counts(failure: &str, ending: &str) -> (usize, usize) {
    let number = |part: &str| part.trim().parse::<usize>().unwrap_or_else(|_| panic!("{failure}"));
    let (before, more) = failure.rsplit_once("; and ").unwrap();
    assert_eq!(before.matches("(HTTP ").count(), 3, "{failure}");
    let (more, left) = more.split_once(" more; ").unwrap();
    (3 + number(more), number(left.strip_suffix(ending).unwrap()))
}

/// Tells these Orders where the server answers an apply as `refuses` says, or takes it.
fn refused(
    orders: &[String],
    refuses: impl Fn(&str) -> Option<Answer> + Send + Sync + 'static,
) -> TellOutcome {
    let stub = Stub::start(move |request| match request.method.as_str() {
        "POST" => Answer::Json(201, request.body.clone()),
        _ => refuses(&request.path).unwrap_or_else(|| applied(request)),
    });
    let tellings: Vec<Telling> = orders
        .iter()
        .map(|order| {
            let (namespace, name) = order.split_once('/').unwrap();
            let mut serving = listed(name, "1", Value::Null);
            serving["metadata"]["namespace"] = namespace.into();
            let (order, told) = Told::from_item(&serving).unwrap();
            notify::make_telling(&order, &told, None, &promoted(), Time::parse(NOW).unwrap()).unwrap()
        })
        .collect();
    let runtime = runtime();
    teller(&stub, &runtime).tell_all(&runtime, &tellings)
}

#[test]
fn a_namespace_that_refuses_keeps_no_other_from_being_told() {
    let forbidden = |path: &str| {
        path.contains("/namespaces/a/").then(|| failure(403, "Forbidden", "servings/status is forbidden"))
    };
    for count in [6, 40] {
        let mut orders: Vec<String> = (0..count).map(|n| format!("a/podinfo-{n:02}")).collect();
        orders.push("b/podinfo".into());
        let outcome = refused(&orders, forbidden);
        assert_eq!(outcome.statuses, 1, "{:?}", outcome.failures);
        assert!(outcome.lines.contains(&"b/podinfo: status written".to_owned()), "{:?}", outcome.lines);
        let failures = failures(&outcome);
        assert_eq!(failures.len(), 1, "{failures:?}");
        assert!(
            failures[0].contains("a/podinfo-00: servings/status is forbidden (HTTP 403)"),
            "{failures:?}"
        );
        if count == 6 {
            // They were all under way when the fifth was refused.
            assert!(failures[0].ends_with("; and 3 more"), "{failures:?}");
            continue;
        }
        let (tried, skipped) = counts(
            &failures[0],
            " more in namespace a were not tried because the namespace refused the previous ones",
        );
        assert!((5..=12).contains(&tried), "{failures:?}");
        assert_eq!(tried + skipped, 40, "{failures:?}");
    }
}

#[test]
fn servings_that_are_refused_one_by_one_keep_no_other_from_being_told() {
    let orders: Vec<String> = (0..30).map(|n| format!("a/podinfo-{n:02}")).collect();
    let outcome = refused(&orders, |path| {
        let bad = (0..20).any(|n| path.contains(&format!("/podinfo-{n:02}/")));
        bad.then(|| failure(422, "Invalid", "status.history: Invalid value"))
    });
    assert_eq!(outcome.statuses, 10, "{:?}", outcome.failures);
    let failures = failures(&outcome);
    assert!(failures[0].ends_with("(HTTP 422); and 17 more"), "{failures:?}");
}

#[test]
fn an_event_that_is_there_is_told_and_one_that_is_refused_holds_nothing() {
    let stub = Stub::start(|request| match is_event(request) {
        true => failure(409, "AlreadyExists", "events.events.k8s.io \"x\" already exists"),
        false => applied(request),
    });
    let outcome = tell(&stub, &["podinfo"]);
    assert_eq!((outcome.statuses, outcome.events, failures(&outcome)), (1, 1, Vec::new()));

    let stub = Stub::start(|request| match is_event(request) {
        true => failure(403, "Forbidden", "events is forbidden"),
        false => applied(request),
    });
    let outcome = tell(&stub, &["podinfo"]);
    assert_eq!((outcome.statuses, outcome.events), (1, 0));
    assert_eq!(
        failures(&outcome),
        [
            "cluster ann: the status in git was not written to all Servings: shop/podinfo: its Event Promoted: events is forbidden (HTTP 403)"
        ]
    );
    assert!(outcome.failures[0].hints[0].contains("events.k8s.io"), "{:?}", outcome.failures[0].hints);
}

/// A server on which the Serving has changed since it was listed: it is in `version`, with `status`.
fn changed(version: &'static str, status: &'static str) -> (TellOutcome, Vec<Request>) {
    let stub = Stub::start(move |request| match request.method.as_str() {
        "POST" => Answer::Json(201, request.body.clone()),
        "GET" => {
            assert_eq!(request.get("fieldSelector"), Some("metadata.name=podinfo"));
            page(&[listed("podinfo", version, serde_json::from_str(status).unwrap())], "")
        }
        _ if request.body["metadata"]["resourceVersion"] == version => applied(request),
        _ => failure(
            409,
            "Conflict",
            "the object has been modified; please apply your changes to the latest version",
        ),
    });
    (tell(&stub, &["podinfo"]), stub.seen())
}

#[test]
fn a_conflict_is_tried_again_unless_another_run_told_it() {
    // Argo CD set a label.
    let (outcome, seen) = changed("2", "null");
    assert_eq!((outcome.statuses, failures(&outcome)), (1, Vec::new()));
    assert_eq!(seen.iter().map(|r| r.method.as_str()).collect::<Vec<_>>(), ["POST", "PATCH", "GET", "PATCH"]);
    // Another run told it something else, which may be newer.
    let (outcome, seen) = changed("2", r#"{"deployedDigest": "sha256:00"}"#);
    assert_eq!((outcome.statuses, failures(&outcome)), (0, Vec::new()));
    assert!(outcome.lines[1].contains("another writer changed its status meanwhile"), "{:?}", outcome.lines);
    assert_eq!(seen.len(), 3);
}

#[test]
fn a_serving_that_others_keep_writing_to_is_given_up() {
    let version = AtomicUsize::new(1);
    let stub = Stub::start(move |request| match request.method.as_str() {
        "POST" => Answer::Json(201, request.body.clone()),
        "GET" => {
            let version = version.fetch_add(1, Ordering::SeqCst).to_string();
            page(&[listed("podinfo", &version, Value::Null)], "")
        }
        _ => failure(409, "Conflict", "the object has been modified"),
    });
    let outcome = tell(&stub, &["podinfo"]);
    assert!(
        failures(&outcome)[0].ends_with("other writers changed it during each of 5 tries"),
        "{:?}",
        failures(&outcome)
    );
    assert_eq!(stub.seen().iter().filter(|r| r.method == "PATCH").count(), 5);
}

#[test]
fn a_serving_that_went_is_no_failure_and_a_kind_that_is_not_there_is() {
    let stub = Stub::start(|request| match is_event(request) {
        true => Answer::Json(201, request.body.clone()),
        false => {
            let mut gone = json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404,
                "message": "servings.delivery.kokumi.dev \"podinfo\" not found"});
            gone["details"] = json!({"name": "podinfo", "group": "delivery.kokumi.dev", "kind": "servings"});
            Answer::Json(404, gone)
        }
    });
    let outcome = tell(&stub, &["podinfo"]);
    assert_eq!((outcome.statuses, failures(&outcome)), (0, Vec::new()));
    assert!(outcome.lines[1].contains("is gone"), "{:?}", outcome.lines);

    let stub = Stub::start(|request| match is_event(request) {
        true => Answer::Json(201, request.body.clone()),
        false => Answer::Text(404, "404 page not found".into()),
    });
    let outcome = tell(&stub, &["podinfo"]);
    assert!(failures(&outcome)[0].ends_with("404 page not found (HTTP 404)"), "{:?}", failures(&outcome));
}

#[test]
fn what_an_older_definition_drops_is_named() {
    let stub = Stub::start(|request| match is_event(request) {
        true => Answer::Json(201, request.body.clone()),
        false => {
            let mut object = request.body.clone();
            object["status"].as_object_mut().unwrap().remove("history");
            Answer::Json(200, object)
        }
    });
    let outcome = tell(&stub, &["podinfo"]);
    assert_eq!(outcome.statuses, 1);
    assert!(outcome.notices[0].to_string().ends_with("drops status.history"), "{:?}", outcome.notices);
}

#[test]
fn many_are_written_a_few_at_once_at_a_bounded_pace() {
    let (now, most) = (std::sync::Arc::new(AtomicUsize::new(0)), std::sync::Arc::new(AtomicUsize::new(0)));
    let (at_once, top) = (now.clone(), most.clone());
    let stub = Stub::start(move |request| {
        top.fetch_max(at_once.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(5));
        at_once.fetch_sub(1, Ordering::SeqCst);
        if is_event(request) { Answer::Json(201, request.body.clone()) } else { applied(request) }
    });
    let names: Vec<String> = (0..75).map(|n| format!("podinfo-{n:02}")).collect();
    let start = Instant::now();
    let outcome = tell(&stub, &names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!((outcome.statuses, outcome.events, failures(&outcome)), (75, 75, Vec::new()));
    // 50 at once, then 50 a second: 150 requests take two seconds.
    assert!(start.elapsed() >= Duration::from_secs(2), "{:?}", start.elapsed());
    let most = most.load(Ordering::SeqCst);
    assert!(most <= 8, "{most} at once");
}

#[test]
fn a_list_waits_for_a_full_server_and_asks_for_the_newest() {
    let asked = AtomicUsize::new(0);
    let stub = Stub::start(move |request| match request.path.as_str() {
        "/apis/delivery.kokumi.dev/v1alpha1" => Answer::Json(200, crate::support::stubserver::ours()),
        path if path.ends_with("/preparations") && asked.fetch_add(1, Ordering::SeqCst) < 2 => {
            Answer::Busy(429, 1)
        }
        path if path.ends_with("/orders") => page(&[order("shop", "podinfo")], ""),
        path if path.ends_with("/kitchens") => Answer::Busy(503, 86_400),
        _ => page(&[], ""),
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    let config = apiserver::kubeconfig(&stub.url(), Path::new("x"), "ann");
    std::fs::write(&file, config.replace(",\"certificate-authority\":\"x\"", "")).unwrap();
    let start = Instant::now();
    let world = read(&fetch(&file, "ann", Selection::default()));
    assert!(start.elapsed() >= Duration::from_secs(2) && start.elapsed() < Duration::from_secs(60));
    let problems = problems(&world);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0].contains("the list of kitchens cannot be read") && problems[0].contains("HTTP 503"),
        "{problems:?}"
    );
    // A list "at version 0" may be as old as the watch cache of the replica that answers; one without a version is
    // the newest.
    let seen = stub.seen();
    assert!(seen.iter().all(|r| r.get("resourceVersion").is_none()), "{seen:?}");
    assert_eq!(seen.iter().filter(|r| r.path.ends_with("/kitchens")).count(), 1, "nobody waits for a day");
}

#[test]
fn the_serving_of_an_order_from_a_folder_may_be_in_any_cluster() {
    let there = std::sync::Arc::new(std::sync::Mutex::new(Vec::<Value>::new()));
    let servings = there.clone();
    let stub = Stub::start(move |request| match request.path.as_str() {
        "/apis/delivery.kokumi.dev/v1alpha1" => Answer::Json(200, crate::support::stubserver::ours()),
        "/apis/delivery.kokumi.dev/v1alpha1/servings" => page(&servings.lock().unwrap(), ""),
        _ if is_event(request) || request.path.starts_with("/apis/events.k8s.io/") => {
            Answer::Json(201, request.body.clone())
        }
        _ if request.method == "PATCH" => applied(request),
        _ => Answer::Text(404, "404 page not found".into()),
    });
    let mut place = harness::Place::with_shop();
    let config = apiserver::kubeconfig(&stub.url(), Path::new("x"), "ann");
    place.write("kubeconfig", config.replace(",\"certificate-authority\":\"x\"", ""));
    place.set("KUBECONFIG", place.path("kubeconfig").to_str().unwrap());
    place.edit(
        "expedite.yaml",
        "- path: ./objects\n",
        "- path: ./objects\n- cluster: {context: ann, kinds: [Serving], applications: false}\n",
    );
    let run = ["run", "--config", "expedite.yaml", "--write-status", "--at", "2026-03-02T12:00:00Z"];
    let said = place.expedite(&run);
    assert!(
        !said.stderr.contains(": wrote ") && stub.seen().iter().all(|r| r.method == "GET"),
        "{}",
        said.stderr
    );
    // Only one of them is there: the others are nobody's loss.
    let (_, text) = place
        .tree("shop.git", "main")
        .into_iter()
        .find(|(path, _)| path == "servings/shop-dev/catalog.yaml")
        .unwrap();
    let mut serving: Value = serde_yaml::from_str(&text).unwrap();
    let status = serving.as_object_mut().unwrap().remove("status").unwrap();
    serving["metadata"]["resourceVersion"] = "5".into();
    there.lock().unwrap().push(serving);
    let said = place.expedite(&run);
    assert!(said.stderr.contains("cluster ann: wrote 1 status and 1 Event\n"), "{}", said.stderr);
    let writes: Vec<Request> = stub.seen().into_iter().filter(|r| r.method != "GET").collect();
    assert_eq!(writes.len(), 2);
    assert_eq!(
        writes[1].path,
        "/apis/delivery.kokumi.dev/v1alpha1/namespaces/shop-dev/servings/catalog/status"
    );
    assert_eq!(writes[1].body["status"], status);
    // Out of scope is out of reach.
    place.expedite(&[&run[..], &["-n", "shop"]].concat());
    assert_eq!(stub.seen().iter().filter(|r| r.method != "GET").count(), 2);
}
