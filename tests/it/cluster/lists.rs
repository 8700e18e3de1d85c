//! Lists that are paged, expire, break off or are odd (B76): whole, or an incomplete source, never shorter.

use super::*;
use crate::support::stubserver::{Answer, Request, Stub, failure, ours, page};
use expedite::model::kind::Kind;
use std::sync::atomic::{AtomicUsize, Ordering};

const GROUP: &str = "/apis/delivery.kokumi.dev/v1alpha1";

/// Fetches from a stub that serves one Order, and Preparations as `preparations` says; other lists are empty.
fn from_stub(preparations: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> (Fetched, Stub) {
    let stub = Stub::start(move |request| match request.path.strip_prefix(GROUP) {
        Some("") => Answer::Json(200, ours()),
        Some("/orders") => page(&[order("shop", "podinfo")], ""),
        Some("/preparations") => preparations(request),
        Some(_) => page(&[], ""),
        None => Answer::Text(404, "404 page not found".into()),
    });
    (fetch_from(&stub, Duration::from_secs(20)), stub)
}

fn fetch_from(stub: &Stub, timeout: Duration) -> Fetched {
    let argocd = Some(Namespace::parse("argocd").unwrap());
    select_from(stub, timeout, Selection { argocd, ..Selection::default() })
}

fn select_from(stub: &Stub, timeout: Duration, selection: Selection) -> Fetched {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    std::fs::write(
        &file,
        apiserver::kubeconfig(&stub.url(), Path::new("ca.pem"), "ann")
            .replace(",\"certificate-authority\":\"ca.pem\"", ""),
    )
    .unwrap();
    let runtime = runtime();
    let access = ClusterAccess { timeout: Some(timeout), ..access_by(&file) };
    let connection = runtime.block_on(access.open_connection(None)).unwrap();
    ClusterSource::new(connection, selection).fetch_all(&runtime)
}

fn whole(world: &World) -> bool {
    world.sources[0].whole
}

/// The page that a request asks for: its continuation is the number of the first object.
fn start(request: &Request) -> usize {
    request.get("continue").map_or(0, |token| token.trim_start_matches("from-").parse().unwrap())
}

#[test]
fn b76_all_pages_are_read_and_an_expired_continuation_starts_over() {
    let expired = AtomicUsize::new(0);
    let (fetched, stub) = from_stub(move |request| {
        assert_eq!(request.get("limit"), Some("500"));
        // 1,200 of them, and a page without any on the way.
        match start(request) {
            1000 if expired.fetch_add(1, Ordering::SeqCst) == 0 => {
                failure(410, "Expired", "The provided continue parameter is too old")
            }
            1000 => page(&[], "from-1001"),
            from => {
                let from = if from == 1001 { 1000 } else { from };
                let to = (from + 500).min(1200);
                let items: Vec<Value> = (from..to).map(|n| preparation("shop", "podinfo", n)).collect();
                page(&items, &if to == 1200 { String::new() } else { format!("from-{to}") })
            }
        }
    });
    let world = read(&fetched);
    assert_eq!(problems(&world), Vec::<String>::new());
    assert_eq!((world.preparations.len(), world.orders.len()), (1200, 1));
    assert!(whole(&world), "{:?}", world.sources);
    let asked = stub.seen();
    let asked: Vec<&str> =
        asked.iter().map(|r| r.target.as_str()).filter(|t| t.contains("/preparations")).collect();
    assert_eq!(asked.len(), 7, "three until it expired, four from the start: {asked:#?}");
    assert!(stub.seen().iter().all(|r| r.authorization == "Bearer ann-token"));
    assert!(stub.seen().iter().all(|r| !r.path.contains("secrets")));
}

#[test]
fn b76_a_continuation_that_expires_again_leaves_the_source_incomplete() {
    let (fetched, _stub) = from_stub(|request| match start(request) {
        0 => page(&[preparation("shop", "podinfo", 0)], "from-500"),
        _ => failure(410, "Expired", "The provided continue parameter is too old"),
    });
    let world = read(&fetched);
    assert_eq!(
        problems(&world),
        [
            "cluster ann: the list of preparations cannot be read: its continuation expired twice (410 Gone) [holds everything]"
        ]
    );
    assert!(!whole(&world));
}

#[test]
fn b76_one_broken_object_holds_its_order_and_the_others_are_read() {
    let (fetched, _stub) = from_stub(|request| {
        let from = start(request);
        let to = (from + 500).min(600);
        let mut items: Vec<Value> = (from..to).map(|n| preparation("shop", "podinfo", n)).collect();
        if from == 500 {
            items[50]["spec"]["artifact"] = "podinfo:latest".into();
        }
        page(&items, if to == 600 { "" } else { "from-500" })
    });
    let world = read(&fetched);
    assert_eq!(world.preparations.len(), 599);
    assert!(whole(&world));
    let problems = problems(&world);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0].starts_with("cluster ann: Preparation shop/podinfo-00550: spec.artifact: ")
            && problems[0].ends_with("[holds shop/podinfo]"),
        "{problems:?}"
    );
}

#[test]
fn what_is_no_object_is_never_passed_over() {
    let (fetched, _stub) = from_stub(|_| page(&[json!("text"), preparation("shop", "podinfo", 1)], ""));
    let world = read(&fetched);
    assert_eq!(world.preparations.len(), 1);
    assert!(problems(&world)[0].contains("wanted a mapping, found the text"), "{:?}", problems(&world));
}

#[test]
fn one_object_on_two_pages_is_an_error() {
    let (fetched, _stub) = from_stub(|request| {
        page(&[preparation("shop", "podinfo", 1)], if start(request) == 0 { "from-1" } else { "" })
    });
    let world = read(&fetched);
    assert_eq!(
        problems(&world),
        [
            "cluster ann: Preparation shop/podinfo-00001: is also at cluster ann; an object may exist only once [holds shop/podinfo]"
        ]
    );
}

#[test]
fn an_answer_that_is_no_list_leaves_the_source_incomplete() {
    let odd: [(Answer, &str); 5] = [
        (Answer::Text(200, "<html>Please log in</html>".into()), "the response of the server is not a list"),
        (Answer::Json(200, json!({"kind": "Status"})), "the response of the server is not a list"),
        (page(&[], "from-0"), "the same continuation"),
        (Answer::Cut(json!({"metadata": {}, "items": [preparation("shop", "podinfo", 1)]})), ""),
        (
            failure(500, "InternalError", "etcdserver: leader changed"),
            "etcdserver: leader changed (HTTP 500)",
        ),
    ];
    for (answer, says) in odd {
        let (fetched, _stub) = from_stub(move |_| answer.clone());
        let world = read(&fetched);
        assert!(!whole(&world), "{says}");
        let problems = problems(&world);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(
            problems[0].starts_with("cluster ann: the list of preparations cannot be read: ")
                && problems[0].contains(says)
                && problems[0].ends_with("[holds everything]"),
            "{problems:?}"
        );
        assert_eq!(world.orders.len(), 1, "the other lists were read");
    }
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let stub = Stub::start(|_| Answer::Silence);
    let world = read(&fetch_from(&stub, Duration::from_millis(200)));
    assert!(!whole(&world));
    let problems = problems(&world);
    assert!(problems[0].starts_with("cluster ann: the list of orders cannot be read: "), "{problems:?}");
    assert!(world.applications.is_none());
}

#[test]
fn kinds_that_a_cluster_does_not_have_are_missed_only_where_they_are_needed() {
    let stub = Stub::start(|request| match request.path.strip_prefix(GROUP) {
        // Discovery is not for everybody; then each list tells.
        Some("") => failure(403, "Forbidden", "no discovery for you"),
        Some("/orders") => page(&[order("shop", "podinfo")], ""),
        Some(_) | None => Answer::Text(404, "404 page not found".into()),
    });
    let world = read(&fetch_from(&stub, Duration::from_secs(20)));
    assert_eq!(
        problems(&world),
        [
            "cluster ann: does not serve preparations.delivery.kokumi.dev in v1alpha1; are the CustomResourceDefinitions \
          installed? [holds everything]"
        ]
    );
    assert!(!whole(&world));
    assert!(world.applications.is_none(), "there is no Argo CD, so nothing was observed");
}

#[test]
fn a_kind_that_is_served_and_not_found_leaves_the_source_incomplete() {
    for lost in ["approvals", "servings", "preparations"] {
        let stub = Stub::start(move |request| match request.path.strip_prefix(GROUP) {
            Some("") => Answer::Json(200, ours()),
            Some("/orders") => page(&[order("shop", "podinfo")], ""),
            Some(path) if path[1..] == *lost => Answer::Text(404, "404 page not found".into()),
            Some(_) => page(&[], ""),
            None => Answer::Text(404, "404 page not found".into()),
        });
        let fetched = fetch_from(&stub, Duration::from_secs(20));
        assert!(!fetched.servings().undefined, "{lost}");
        let world = read(&fetched);
        assert!(!whole(&world), "{lost}");
        assert_eq!(
            problems(&world),
            [format!(
                "cluster ann: the list of {lost} cannot be read: 404 page not found (HTTP 404) [holds everything]"
            )]
        );
    }
}

#[test]
fn applications_that_may_not_be_listed_are_not_taken_as_absent() {
    let stub = Stub::start(|request| match request.path.strip_prefix(GROUP) {
        Some("") => Answer::Json(200, ours()),
        Some("/orders") => page(&[order("shop", "podinfo")], ""),
        Some(_) => page(&[], ""),
        None if request.path == "/apis/argoproj.io/v1alpha1" => {
            Answer::Json(200, json!({"resources": [{"name": "applications"}]}))
        }
        None => failure(403, "Forbidden", "applications.argoproj.io is forbidden"),
    });
    let world = read(&fetch_from(&stub, Duration::from_secs(20)));
    assert_eq!(
        problems(&world),
        [
            "cluster ann: the observation: of it, the list of applications in namespace argocd cannot be read: \
          applications.argoproj.io is forbidden (HTTP 403) [holds everything]"
        ]
    );
    assert!(world.applications.is_none());
    assert!(whole(&world), "its objects were all read");
}

#[test]
fn only_what_is_selected_is_asked_for() {
    let stub = Stub::start(|request| match request.path.strip_prefix(GROUP) {
        Some("") => Answer::Json(200, ours()),
        Some(_) => page(&[], ""),
        None => Answer::Text(404, "404 page not found".into()),
    });
    let selection = Selection {
        kinds: Some([Kind::Order, Kind::Kitchen].into()),
        selector: Some("team in (web,api)".into()),
        ..in_namespaces(&["shop", "shop-dev"])
    };
    let selection = Selection { argocd: None, ..selection };
    let fetched = select_from(&stub, Duration::from_secs(20), selection);
    assert_eq!(fetched.failures().count(), 0);
    let asked: Vec<String> = stub.seen().iter().map(|r| r.target.replace(GROUP, "")).collect();
    let selector = "labelSelector=team+in+%28web%2Capi%29";
    assert_eq!(
        asked,
        [
            "?".to_owned(),
            format!("/namespaces/shop/orders?&{selector}&limit=500"),
            format!("/namespaces/shop-dev/orders?&{selector}&limit=500"),
            "/kitchens?&limit=500".to_owned(),
        ]
    );
}

#[test]
fn a_kind_that_was_asked_for_by_name_must_be_there() {
    let stub = Stub::start(|_| Answer::Text(404, "404 page not found".into()));
    let kinds = Some([Kind::Approval].into());
    let fetched = select_from(&stub, Duration::from_secs(20), Selection { kinds, ..Selection::default() });
    let why: Vec<&str> = fetched.failures().collect();
    assert!(why.len() == 1 && why[0].starts_with("does not serve approvals.delivery.kokumi.dev"), "{why:?}");
}

/// A cluster with Argo CD and this Application.
fn with_application(namespace: &str, name: &str) -> Stub {
    let application = json!({"metadata": {"name": name, "namespace": namespace}});
    Stub::start(move |request| match request.path.as_str() {
        "/apis/argoproj.io/v1alpha1" => Answer::Json(200, json!({"resources": [{"name": "applications"}]})),
        "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications" => {
            page(std::slice::from_ref(&application), "")
        }
        _ => Answer::Text(404, "404 page not found".into()),
    })
}

#[test]
fn objects_may_stand_in_one_cluster_and_argo_cd_in_another() {
    let (objects, _stub) = from_stub(|_| page(&[preparation("shop", "podinfo", 1)], ""));
    let argo: Vec<Stub> = [("argocd", "a"), ("argocd", "b"), ("argocd", "a")]
        .map(|(ns, name)| with_application(ns, name))
        .into();
    let selection = Selection { kinds: Some([].into()), ..in_namespaces(&[]) };
    let seen: Vec<Fetched> =
        argo.iter().map(|stub| select_from(stub, Duration::from_secs(20), selection.clone())).collect();
    let source: Arc<str> = "cluster:objects".into();
    let input = || Input { name: source.clone(), files: &objects, kinds: None, namespaces: None, skip: &[] };
    let observed = |n: usize| seen[n].build_observed(&format!("cluster:{n}").into()).unwrap();
    let both = read_world(&[input()], &[observed(0), observed(1)]);
    assert_eq!((both.orders.len(), both.applications.unwrap().len()), (1, 2));
    let twice = read_world(&[input()], &[observed(0), observed(2)]);
    assert_eq!(
        problems(&twice),
        [
            "cluster ann: Application argocd/a: is also at cluster ann; an Application may be in one dump only [holds everything]"
        ]
    );
    assert!(twice.applications.is_none(), "which of the two is meant cannot be told");
}
