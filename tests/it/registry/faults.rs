//! Registries that fail: told apart from "not there", tried again within bounds, and no longer.

use super::*;
use crate::support::hostile::{Answer as Wire, Fault, Hostile};
use oci_registry::UnreadReason;
use oci_registry::{Manifest, Reference, Referrers};
use serde_json::Value;
use std::net::TcpListener;
use std::time::Instant;

const REPO: &str = "shop/podinfo";

fn with_evidence() -> (Hostile, Digest, Digest) {
    let registry = Hostile::start();
    let subject = registry.push_artifact(REPO, &[("app.yaml", b"kind: ConfigMap\n")]);
    let referrer = registry.push_referrer(REPO, &subject, "application/x+json", b"bundle");
    (registry, subject, referrer)
}

#[tokio::test]
async fn case_62_bounded_tries_then_unread() {
    let cases: Vec<(Fault, UnreadReason, usize)> = vec![
        (Fault::status(500), UnreadReason::Error, 4),
        (Fault::status(502), UnreadReason::Error, 4),
        (Fault::status(503), UnreadReason::Error, 4),
        (Fault::status(504), UnreadReason::Error, 4),
        (Fault::Reset, UnreadReason::Unreachable, 4),
        (Fault::Close, UnreadReason::Unreachable, 4),
        (Fault::Cut(10), UnreadReason::Unreachable, 4),
    ];
    for (fault, reason, tries) in cases {
        let (registry, subject, _) = with_evidence();
        registry.fault(99, |_| true, fault);
        let listed = registries(&registry).fetch_referrers(&repository(&registry, REPO), &subject).await;
        let why = listed.unread.unwrap();
        assert_eq!((why.reason, why.retryable), (reason, true), "{why:?}");
        assert_eq!(registry.log().len(), tries, "{why:?}");
    }
}

#[tokio::test]
async fn a_fault_that_passes_is_outlived() {
    for fault in
        [Fault::status(500), Fault::status(429), Fault::Reset, Fault::Close, Fault::Cut(10), Fault::Flip]
    {
        let (registry, subject, referrer) = with_evidence();
        registry.fault(1, |_| true, fault);
        let registries = registries(&registry);
        let name = repository(&registry, REPO);
        found(registries.fetch_manifest(&name, &Reference::Digest(subject)).await);
        registry.heal();
        let listed = registries.fetch_referrers(&name, &subject).await;
        assert_eq!(listed.entries[0].1.digest, referrer);
    }
}

#[tokio::test]
async fn case_61_retry_after_is_honoured_within_the_time_there_is() {
    let busy = |after: &str| Fault::Answer(Wire::error(429, "TOOMANYREQUESTS").with("Retry-After", after));
    let (registry, subject, _) = with_evidence();
    registry.fault(1, |_| true, busy("1"));
    let start = Instant::now();
    found(registries(&registry).holds_manifest(&repository(&registry, REPO), &subject).await);
    assert!(start.elapsed() >= Duration::from_secs(1));

    // Longer than the artifact may take: no waiting, and the others do not even ask.
    for after in ["86400", "Wed, 01 Jan 2200 00:00:00 GMT"] {
        let (registry, subject, _) = with_evidence();
        registry.fault(99, |_| true, busy(after));
        let registries = registries(&registry);
        let name = repository(&registry, REPO);
        let start = Instant::now();
        for _ in 0..3 {
            let why = unread(registries.fetch_manifest(&name, &Reference::Digest(subject)).await);
            assert_eq!((why.reason, why.status, why.retryable), (UnreadReason::RateLimited, Some(429), true));
        }
        assert!(start.elapsed() < Duration::from_secs(30));
        assert_eq!(registry.log().len(), 1);
    }

    // Without: some tries.
    let (registry, subject, _) = with_evidence();
    registry.fault(99, |_| true, Fault::status(429));
    let why = unread(registries(&registry).holds_manifest(&repository(&registry, REPO), &subject).await);
    assert_eq!(why.reason, UnreadReason::RateLimited);
    assert_eq!(registry.log().len(), 8, "HEAD, then GET to learn why, each its tries");
}

#[tokio::test]
async fn case_62_a_body_that_drips_for_ever_ends_with_the_artifacts_time() {
    let (registry, subject, _) = with_evidence();
    registry.fault(99, |_| true, Fault::Drip(Duration::from_millis(20)));
    let mut config = config(&registry);
    config.limits.artifact = Duration::from_millis(400);
    let registries = Registries::new(config).unwrap();
    let name = repository(&registry, REPO);
    let start = Instant::now();
    let why = unread(registries.fetch_manifest(&name, &Reference::Digest(subject)).await);
    assert_eq!((why.reason, why.retryable), (UnreadReason::Unreachable, true));
    assert_eq!(why.why, "the answer does not end in time");
    // One artifact's time is shared by all that is asked for it.
    let one = registries.with_artifact_budget();
    let start_shared = Instant::now();
    for _ in 0..5 {
        unread(one.fetch_manifest(&name, &Reference::Digest(subject)).await);
    }
    assert!(start.elapsed() < Duration::from_secs(20));
    assert!(start_shared.elapsed() >= Duration::from_millis(400));
    let asked = registry.log().len();
    assert_eq!(
        unread(one.fetch_manifest(&name, &Reference::Digest(subject)).await).why,
        "no time left for this artifact"
    );
    assert_eq!(registry.log().len(), asked);
}

/// A 404 without the body that it announced could be anybody's.
#[tokio::test]
async fn an_absence_that_breaks_off_is_none() {
    for length in [0, 5] {
        let (registry, _, _) = with_evidence();
        registry.fault(99, |_| true, Fault::Cut(length));
        let (registries, name, gone) =
            (registries(&registry), repository(&registry, REPO), Digest::hash_bytes(b"gone"));
        for why in [
            unread(registries.fetch_manifest(&name, &Reference::Digest(gone)).await),
            unread(registries.fetch_manifest(&name, &Reference::Tag("gone".into())).await),
            unread(registries.holds_manifest(&name, &gone).await),
            unread(registries.holds_blob(&name, &gone).await),
        ] {
            assert_eq!((why.reason, why.retryable), (UnreadReason::Unreachable, true), "{why:?}");
        }
        registry.heal();
        registry.behave(|b| b.referrers_page = None);
        registry.fault(99, |_| true, Fault::Cut(length));
        assert!(registries.fetch_referrers(&name, &gone).await.unread.is_some());
    }
}

#[tokio::test]
async fn a_registry_that_says_nothing_is_unreachable() {
    let (registry, subject, _) = with_evidence();
    registry.fault(99, |_| true, Fault::Slow(Duration::from_secs(3)));
    let mut config = config(&registry);
    config.limits.idle = Duration::from_millis(50);
    config.limits.connect = Duration::from_millis(50);
    config.limits.tries = 2;
    config.limits.hold_off = Duration::from_secs(60);
    let registries = Registries::new(config).unwrap();
    let name = repository(&registry, REPO);
    let why = unread(registries.fetch_manifest(&name, &Reference::Digest(subject)).await);
    assert_eq!((why.reason, why.why.as_str()), (UnreadReason::Unreachable, "no answer in time"));
    let asked = registries.collect_requests().len();
    for _ in 0..50 {
        unread(registries.holds_manifest(&name, &subject).await);
    }
    assert_eq!(
        registries.collect_requests().len(),
        asked,
        "a registry that is down is not asked by everybody"
    );
}

#[tokio::test]
async fn case_62_nobody_listens_or_the_name_is_unknown() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let refused = OciRepository::parse(&format!("127.0.0.1:{port}/{REPO}")).unwrap();
    let unknown = OciRepository::parse(&format!("registry.invalid/{REPO}")).unwrap();
    let plain = HostConfig { plain_http: true, ..HostConfig::default() };
    let hosts =
        [(refused.registry().to_owned(), plain.clone()), ("registry.invalid".to_owned(), plain)].into();
    let registries =
        Registries::new(RegistriesConfig { hosts, limits: limits(), ..Default::default() }).unwrap();
    for (name, words) in [(refused, "connection refused"), (unknown, "host name not found")] {
        let why = unread(registries.holds_manifest(&name, &Digest::hash_bytes(b"x")).await);
        assert_eq!((why.reason, why.why.as_str(), why.retryable), (UnreadReason::Unreachable, words, true));
        assert!(why.request.contains(name.registry()));
    }
}

#[tokio::test]
async fn the_same_fault_has_the_same_words_every_time() {
    let faults = [
        Fault::status(500),
        Fault::status(403),
        Fault::Reset,
        Fault::Cut(4),
        Fault::Flip,
        Fault::Answer(Wire::html(404)),
    ];
    for fault in faults {
        let (registry, subject, _) = with_evidence();
        registry.fault(99, |_| true, fault);
        let name = repository(&registry, REPO);
        let first = unread(registries(&registry).fetch_manifest(&name, &Reference::Digest(subject)).await);
        for _ in 0..3 {
            let next = unread(registries(&registry).fetch_manifest(&name, &Reference::Digest(subject)).await);
            assert_eq!(next, first);
        }
    }
}

#[tokio::test]
async fn at_most_so_many_requests_run_at_once() {
    let (registry, subject, _) = with_evidence();
    registry.fault(999, |_| true, Fault::Slow(Duration::from_millis(50)));
    let mut config = config(&registry);
    config.hosts.get_mut(&registry.host()).unwrap().concurrency = std::num::NonZeroUsize::new(3);
    let registries = Registries::new(config).unwrap();
    let name = repository(&registry, REPO);
    found(registries.holds_manifest(&name, &subject).await);
    let start = Instant::now();
    let all = futures::future::join_all((0..9).map(|_| registries.holds_manifest(&name, &subject))).await;
    all.into_iter().for_each(found);
    assert!(
        start.elapsed() >= Duration::from_millis(150),
        "nine requests, three at a time, are three rounds"
    );
}

/// Everything that a verifier reads of one artifact.
struct Reading {
    artifact: Answer<()>,
    listed: Referrers,
    blobs: Vec<Answer<::bytes::Bytes>>,
    sig: Answer<Manifest>,
}

async fn read_all(registries: &Registries, name: &OciRepository, subject: &Digest) -> Reading {
    let artifact = registries.holds_manifest(name, subject).await;
    let mut listed = registries.fetch_referrers(name, subject).await;
    listed = registries.fetch_left_out_referrers(name, subject, listed).await;
    let mut blobs = Vec::new();
    for (_, entry) in &listed.entries {
        use Answer::{Absent, Found, Unread};
        match registries.fetch_manifest(name, &Reference::Digest(entry.digest)).await {
            Found(manifest) => {
                let body: Value = serde_json::from_slice(&manifest.bytes).unwrap();
                let layer = serde_json::from_value(body["layers"][0].clone()).unwrap();
                blobs.push(registries.fetch_blob(name, &layer, 1 << 20).await);
            }
            Absent => blobs.push(Absent),
            Unread(why) => blobs.push(Unread(why)),
        }
    }
    let sig = registries
        .fetch_manifest(name, &Reference::Tag(format!("sha256-{}.sig", subject.format_hex())))
        .await;
    Reading { artifact, listed, blobs, sig }
}

/// The registry fails at request `n` and from then on; nothing that is there is ever called absent.
#[tokio::test]
async fn failing_at_every_single_request_in_turn_never_looks_like_missing() {
    let faults: Vec<(&str, Fault)> = vec![
        ("500", Fault::status(500)),
        ("503", Fault::status(503)),
        ("429", Fault::status(429)),
        ("401", Fault::Answer(Wire::error(401, "UNAUTHORIZED").with("WWW-Authenticate", "Basic realm=x"))),
        ("403", Fault::status(403)),
        ("404 of a web server", Fault::Answer(Wire::html(404))),
        ("404 denied", Fault::Answer(Wire::error(404, "DENIED"))),
        ("web page", Fault::Answer(Wire::html(200))),
        ("nothing", Fault::Answer(Wire::new(200, "", ""))),
        ("no content", Fault::Answer(Wire::new(204, "", ""))),
        ("teapot", Fault::Answer(Wire::new(418, "", ""))),
        ("reset", Fault::Reset),
        ("close", Fault::Close),
        ("cut", Fault::Cut(7)),
        ("flip", Fault::Flip),
        ("endless", Fault::Endless),
        ("redirect to nowhere", Fault::redirect("http://127.0.0.1:1/")),
    ];
    for has_api in [true, false] {
        for (word, fault) in &faults {
            for n in 0.. {
                let (registry, subject, referrer) = with_evidence();
                let signature = registry.push_manifest(
                    REPO,
                    "application/vnd.oci.image.manifest.v1+json",
                    br#"{"layers":[]}"#,
                );
                registry.tag(REPO, &format!("sha256-{}.sig", subject.format_hex()), signature);
                if !has_api {
                    registry.behave(|b| b.referrers_page = None);
                    registry.push_fallback(REPO, &subject, &[registry.descriptor(REPO, &referrer)]);
                }
                registry.fault_after(n, usize::MAX, |_| true, fault.clone());
                let mut config = config(&registry);
                config.limits.tries = 2;
                let reading =
                    read_all(&Registries::new(config).unwrap(), &repository(&registry, REPO), &subject).await;
                let at = format!("{word} from request {n} on, API {has_api}: {:?}", registry.lines());
                use Answer::Absent;
                assert!(!matches!(reading.artifact, Absent), "{at}");
                assert!(!matches!(reading.sig, Absent), "{at}");
                assert!(reading.listed.unread.is_some() || reading.listed.entries.len() == 1, "{at}");
                assert!(reading.blobs.iter().all(|b| !matches!(b, Absent)), "{at}");
                if n >= registry.log().len() {
                    assert!(n >= 5, "{at}");
                    break;
                }
            }
        }
    }
}

#[tokio::test]
async fn a_cached_blob_is_used_only_while_the_registry_holds_it() {
    let registry = Hostile::start();
    registry.push_blob(REPO, b"evidence");
    let folder = tempfile::tempdir().unwrap();
    let config = RegistriesConfig { cache_dir: Some(folder.path().to_owned()), ..config(&registry) };
    let registries = Registries::new(config).unwrap();
    let name = repository(&registry, REPO);
    let evidence = blob_of(b"evidence");
    let ask = || registries.fetch_blob(&name, &evidence, 100);
    found(ask().await);
    assert_eq!(&found(ask().await)[..], b"evidence");
    let methods: Vec<_> = registry.log().iter().map(|s| s.request.method.clone()).collect();
    assert_eq!(methods, ["GET", "HEAD"]);
    registry.store().repository(REPO).blobs.clear();
    absent(ask().await);
    registry.fault(99, |_| true, Fault::status(500));
    unread(ask().await);
    registry.heal();
    // Poisoned: a miss, no more.
    registry.push_blob(REPO, b"evidence");
    let file = folder.path().join("sha256").join(Digest::hash_bytes(b"evidence").format_hex());
    std::fs::write(&file, b"poisoned").unwrap();
    assert_eq!(&found(ask().await)[..], b"evidence");
    assert_eq!(std::fs::read(&file).unwrap(), b"evidence");
    assert!(registries.collect_warnings().is_empty());
}
