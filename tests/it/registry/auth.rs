//! Who we are to a registry, and to whom we never say it.

use super::*;
use crate::support::hostile::{Answer as Wire, Auth, Fault, Hostile};
use oci_registry::Reference;
use oci_registry::RegistryEnvironment;
use oci_registry::UnreadReason;
use serde_json::json;
use std::sync::Arc;

const REPO: &str = "shop/podinfo";
const PASSWORD: &str = "correct horse: battery ";

/// A registry that wants tokens, and knows `cook` with the password.
fn with_tokens() -> (Hostile, Digest) {
    let registry = Hostile::start();
    let digest = registry.push_artifact(REPO, &[("app.yaml", b"kind: ConfigMap\n")]);
    registry.behave(|b| b.auth = Auth::Bearer { realm: None });
    registry.store().accounts.users.insert("cook".into(), PASSWORD.into());
    (registry, digest)
}

fn encoded(user: &str, password: &str) -> String {
    base64::Engine::encode(&base64::engine::general_purpose::STANDARD, format!("{user}:{password}"))
}

/// Docker's configuration with these entries under `auths`.
struct Logins(tempfile::TempDir);

impl Logins {
    fn new(auths: serde_json::Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.json"), json!({ "auths": auths }).to_string()).unwrap();
        Self(folder)
    }

    fn cook(host: &str) -> Self {
        Self::new(json!({ host: {"auth": encoded("cook", PASSWORD)} }))
    }

    fn environment(&self) -> RegistryEnvironment {
        RegistryEnvironment {
            docker_config: Some(self.0.path().to_owned()),
            ..RegistryEnvironment::default()
        }
    }

    fn registries(&self, registry: &Hostile) -> Registries {
        Registries::new(RegistriesConfig { environment: self.environment(), ..config(registry) }).unwrap()
    }
}

fn only_cook(registry: &Hostile) {
    registry.store().accounts.grants = Arc::new(|user, _, _| user == Some("cook"));
}

#[tokio::test]
async fn an_anonymous_token_is_asked_for_without_credentials() {
    let (registry, digest) = with_tokens();
    let registries = registries(&registry);
    found(registries.fetch_manifest(&repository(&registry, REPO), &Reference::Digest(digest)).await);
    assert_eq!(
        registry.lines(),
        [
            format!("GET /v2/{REPO}/manifests/{digest}"),
            "GET /token?service=hostile&scope=repository%3Ashop%2Fpodinfo%3Apull".to_owned(),
            format!("GET /v2/{REPO}/manifests/{digest}"),
        ]
    );
    assert_eq!(registry.log()[1].request.header("authorization"), None);
    let logged = registries.collect_requests();
    assert_eq!(logged.len(), 3);
    assert_eq!(
        (logged[0].status, logged[1].url.as_str()),
        (Some(401), format!("{}/token", registry.url()).as_str())
    );
}

#[tokio::test]
async fn credentials_go_to_the_token_endpoint_and_tokens_to_the_registry() {
    for member in ["token", "access_token"] {
        let (registry, digest) = with_tokens();
        only_cook(&registry);
        registry.store().accounts.member = member;
        let logins = Logins::cook(&registry.host());
        let registries = logins.registries(&registry);
        found(registries.fetch_manifest(&repository(&registry, REPO), &Reference::Digest(digest)).await);
        let sent: Vec<_> =
            registry.log().iter().map(|s| s.request.header("authorization").map(str::to_owned)).collect();
        let basic = format!("Basic {}", encoded("cook", PASSWORD));
        assert_eq!(sent, [None, Some(basic), Some("Bearer granted-0".to_owned())]);
        let shown = format!("{registries:?}");
        for secret in [PASSWORD, &encoded("cook", PASSWORD), "granted-0"] {
            assert!(!shown.contains(secret), "Debug shows {secret}");
        }
    }
}

#[tokio::test]
async fn an_identity_token_is_posted() {
    let (registry, digest) = with_tokens();
    only_cook(&registry);
    registry.store().accounts.identities.insert("refresh&me".into(), "cook".into());
    let logins = Logins::new(json!({ registry.host(): {"identitytoken": "refresh&me"} }));
    let name = repository(&registry, REPO);
    found(logins.registries(&registry).fetch_manifest(&name, &Reference::Digest(digest)).await);
    let log = registry.log();
    assert_eq!((log[1].request.method.as_str(), log[1].request.target.as_str()), ("POST", "/token"));
    // One that is not known any more.
    registry.store().accounts.identities.clear();
    let why = unread(logins.registries(&registry).fetch_manifest(&name, &Reference::Digest(digest)).await);
    assert_eq!((why.reason, why.status), (UnreadReason::Unauthorized, Some(401)));
    assert_eq!(why.request, format!("POST {}/token", registry.url()));
    assert!(!format!("{why:?}").contains("refresh"));
}

#[tokio::test]
async fn a_registry_token_is_used_as_it_is() {
    let registry = Hostile::start();
    let digest = registry.push_artifact(REPO, &[]);
    registry.fault(
        9,
        |r| r.header("authorization") != Some("Bearer ready-made"),
        Fault::Answer(
            Wire::error(401, "UNAUTHORIZED")
                .with("WWW-Authenticate", "Bearer realm=\"http://nowhere.invalid/\""),
        ),
    );
    let logins = Logins::new(json!({ registry.host(): {"registrytoken": "ready-made"} }));
    found(
        logins
            .registries(&registry)
            .fetch_manifest(&repository(&registry, REPO), &Reference::Digest(digest))
            .await,
    );
    assert_eq!(registry.log().len(), 2);
}

#[tokio::test]
async fn one_challenge_and_one_token_serve_all_requests_of_a_repository() {
    let (registry, digest) = with_tokens();
    let other = registry.push_artifact("shop/other", &[("b.yaml", b"b")]);
    let registries = registries(&registry);
    let (a, b) = (repository(&registry, REPO), repository(&registry, "shop/other"));
    let many = (0..40).map(|_| registries.holds_manifest(&a, &digest));
    futures::future::join_all(many).await.into_iter().for_each(found);
    let many = (0..40).map(|_| registries.holds_manifest(&b, &other));
    futures::future::join_all(many).await.into_iter().for_each(found);
    let refused = registry.log().iter().filter(|s| s.status == Some(401)).count();
    let tokens = registry.lines().iter().filter(|l| l.contains("/token")).count();
    assert_eq!((refused, tokens, registry.log().len()), (1, 2, 83));
}

#[tokio::test]
async fn b35_tokens_are_per_repository_and_a_token_of_one_is_not_shown_to_another() {
    let (registry, digest) = with_tokens();
    registry.push_artifact("shop/secret", &[]);
    registry.store().accounts.grants = Arc::new(|_, repo, _| repo == REPO);
    let registries = registries(&registry);
    found(registries.holds_manifest(&repository(&registry, REPO), &digest).await);
    let why = unread(registries.holds_manifest(&repository(&registry, "shop/secret"), &digest).await);
    assert_eq!((why.reason, why.status), (UnreadReason::Unauthorized, Some(401)));
    assert!(why.why.starts_with("pull from shop/secret is denied (401)"), "{}", why.why);
    found(registries.holds_manifest(&repository(&registry, REPO), &digest).await);
}

#[tokio::test]
async fn a_token_that_is_forgotten_or_expired_is_fetched_anew() {
    let (registry, digest) = with_tokens();
    let registries = registries(&registry);
    let name = repository(&registry, REPO);
    found(registries.holds_manifest(&name, &digest).await);
    registry.store().accounts.forget_tokens();
    registry.clear_log();
    found(registries.holds_manifest(&name, &digest).await);
    assert_eq!(registry.log().len(), 3, "401, token, again");
    registry.store().accounts.expires_in = Some(0);
    registry.store().accounts.forget_tokens();
    found(registries.holds_manifest(&name, &digest).await);
    registry.clear_log();
    found(registries.holds_manifest(&name, &digest).await);
    assert_eq!(registry.log().len(), 2, "token first, no 401");
}

#[tokio::test]
async fn case_59_a_second_401_is_the_last() {
    let (registry, digest) = with_tokens();
    registry.fault(
        99,
        |r| r.path.starts_with("/v2/"),
        Fault::Answer(
            Wire::error(401, "UNAUTHORIZED")
                .with("WWW-Authenticate", format!("Bearer realm=\"{}/token\"", registry.url())),
        ),
    );
    let registries = registries(&registry);
    let name = repository(&registry, REPO);
    let why = unread(registries.fetch_manifest(&name, &Reference::Digest(digest)).await);
    assert_eq!((why.reason, why.status, why.retryable), (UnreadReason::Unauthorized, Some(401), false));
    assert_eq!(registry.log().len(), 3, "{:?}", registry.lines());
    // The token endpoint grants nothing, and then the registry denies.
    registry.heal();
    registry.fault(
        9,
        |r| r.path == "/token",
        Fault::Answer(Wire::new(200, "application/json", r#"{"token":"empty"}"#)),
    );
    registry.fault(9, |r| r.header("authorization") == Some("Bearer empty"), Fault::status(403));
    let why = self::registries(&registry).fetch_referrers(&name, &digest).await.unread.unwrap();
    assert_eq!((why.reason, why.status), (UnreadReason::Unauthorized, Some(403)));
}

#[tokio::test]
async fn what_a_token_endpoint_can_do_wrong() {
    let cases: Vec<(Fault, UnreadReason, bool)> = vec![
        (Fault::status(403), UnreadReason::Unauthorized, false),
        (Fault::status(401), UnreadReason::Unauthorized, false),
        (Fault::status(404), UnreadReason::Error, false),
        (Fault::status(500), UnreadReason::Error, true),
        (Fault::status(429), UnreadReason::RateLimited, true),
        (Fault::Answer(Wire::html(200)), UnreadReason::Error, false),
        (Fault::Answer(Wire::new(200, "", "{}")), UnreadReason::Unauthorized, false),
        (
            Fault::Answer(Wire::new(200, "", r#"{"token":"","access_token":null}"#)),
            UnreadReason::Unauthorized,
            false,
        ),
        (Fault::Answer(Wire::new(200, "", "{\"token\":\"a\\nb\"}")), UnreadReason::Unauthorized, false),
        (Fault::Endless, UnreadReason::Error, false),
        (Fault::Reset, UnreadReason::Unreachable, true),
        (Fault::Cut(3), UnreadReason::Unreachable, true),
        (Fault::redirect("http://127.0.0.1:1/token"), UnreadReason::Error, false),
        (Fault::redirect("/token"), UnreadReason::Error, false),
        (Fault::redirect("file:///etc/passwd"), UnreadReason::Error, false),
    ];
    for (n, (fault, reason, retryable)) in cases.into_iter().enumerate() {
        let (registry, digest) = with_tokens();
        registry.fault(99, |r| r.path == "/token", fault);
        let why = unread(registries(&registry).holds_manifest(&repository(&registry, REPO), &digest).await);
        assert_eq!((why.reason, why.retryable), (reason, retryable), "case {n}: {why:?}");
    }
}

#[tokio::test]
async fn case_66_a_compressed_token_is_not_unpacked() {
    let token = format!("{{\"token\":\"{}\"}}", "a".repeat(64 << 20));
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gz, token.as_bytes()).unwrap();
    let answer = Wire::new(200, "application/json", gz.finish().unwrap()).with("Content-Encoding", "gzip");
    let (registry, digest) = with_tokens();
    registry.fault(99, |r| r.path == "/token", Fault::Answer(answer));
    let registries = registries(&registry);
    let why = unread(registries.holds_manifest(&repository(&registry, REPO), &digest).await);
    assert_eq!((why.reason, why.retryable), (UnreadReason::Error, false), "{why:?}");
    assert!(registry.log().iter().all(|s| s.request.header("accept-encoding").is_none()));
    assert!(registry.log().iter().all(|s| s.request.header("authorization").is_none()));
}

#[tokio::test]
async fn a_refusal_of_the_token_endpoint_is_not_asked_for_again_by_everybody() {
    let (registry, digest) = with_tokens();
    registry.fault(99, |r| r.path == "/token", Fault::status(403));
    let mut config = config(&registry);
    config.limits.hold_off = Duration::from_secs(60);
    let registries = Registries::new(config).unwrap();
    let name = repository(&registry, REPO);
    let many = futures::future::join_all((0..20).map(|_| registries.holds_manifest(&name, &digest))).await;
    many.into_iter().for_each(|answer| assert_eq!(unread(answer).reason, UnreadReason::Unauthorized));
    assert_eq!(registry.lines().iter().filter(|l| l.contains("/token")).count(), 1);
}

#[tokio::test]
async fn a_realm_elsewhere_inside_gets_nothing() {
    let thief = Hostile::start();
    for realm in [
        format!("{}/token", thief.url()),
        "http://localhost:1/token".into(),
        "http://169.254.169.254/token".into(),
        "token".into(),
        "ftp://x/".into(),
    ] {
        let (registry, digest) = with_tokens();
        registry.behave(|b| b.auth = Auth::Bearer { realm: Some(realm.clone()) });
        let logins = Logins::cook(&registry.host());
        let why =
            unread(logins.registries(&registry).holds_manifest(&repository(&registry, REPO), &digest).await);
        assert_eq!((why.reason, why.retryable), (UnreadReason::Error, false), "{realm}");
        assert!(why.why.contains("token realm"), "{}", why.why);
    }
    assert!(thief.log().is_empty());
}

#[tokio::test]
async fn basic_is_sent_when_asked_for_and_from_then_on() {
    let registry = Hostile::start();
    let digest = registry.push_artifact(REPO, &[]);
    registry.behave(|b| b.auth = Auth::Basic);
    registry.store().accounts.users.insert("cook".into(), PASSWORD.into());
    let name = repository(&registry, REPO);
    let logins = Logins::cook(&registry.host());
    let registries = logins.registries(&registry);
    for _ in 0..3 {
        found(registries.holds_manifest(&name, &digest).await);
    }
    assert_eq!(registry.log().len(), 4);

    let anonymous = self::registries(&registry);
    let why = unread(anonymous.holds_manifest(&name, &digest).await);
    assert_eq!(why.reason, UnreadReason::Unauthorized);
    assert_eq!(why.why, format!("the registry wants a login and none is known for {}", registry.host()));

    registry.clear_log();
    let wrong = Logins::new(json!({ registry.host(): {"auth": encoded("cook", "wrong")} }));
    let why = unread(wrong.registries(&registry).holds_manifest(&name, &digest).await);
    assert_eq!((why.reason, why.status), (UnreadReason::Unauthorized, Some(401)));
    assert!(registry.log().len() <= 4, "each credential is tried once per request: {:?}", registry.lines());
    assert!(!format!("{why:?}").contains("wrong"));
}

#[tokio::test]
async fn case_71_a_helper_that_is_missing_is_an_error_that_names_it() {
    let (registry, digest) = with_tokens();
    let folder = tempfile::tempdir().unwrap();
    let content = json!({"credHelpers": { registry.host(): "of-no-such-name" }}).to_string();
    std::fs::write(folder.path().join("config.json"), content).unwrap();
    let environment = RegistryEnvironment {
        docker_config: Some(folder.path().to_owned()),
        path: Some("/usr/bin:/bin".into()),
        ..Default::default()
    };
    let registries = Registries::new(RegistriesConfig { environment, ..config(&registry) }).unwrap();
    let listed = registries.fetch_referrers(&repository(&registry, REPO), &digest).await;
    let why = listed.unread.unwrap();
    assert_eq!((why.reason, why.retryable), (UnreadReason::Unauthorized, false));
    assert!(
        why.why.starts_with("configuration: credential helper docker-credential-of-no-such-name"),
        "{}",
        why.why
    );
}

#[tokio::test]
async fn case_68_a_redirect_is_followed_without_authorization() {
    let storage = Hostile::start();
    storage.push_blob(REPO, b"evidence");
    let (registry, _) = with_tokens();
    registry.push_blob(REPO, b"evidence");
    let blob = blob_of(b"evidence");
    let target = format!("{}/v2/{REPO}/blobs/{}?X-Signature=presigned", storage.url(), blob.digest);
    registry.fault(
        9,
        |r| r.path.contains("/blobs/") && r.header("authorization").is_some(),
        Fault::redirect(target),
    );
    let logins = Logins::cook(&registry.host());
    let registries = logins.registries(&registry);
    let name = repository(&registry, REPO);
    assert_eq!(&found(registries.fetch_blob(&name, &blob, 100).await)[..], b"evidence");
    assert_eq!(storage.log().len(), 1);
    assert_eq!(storage.log()[0].request.header("authorization"), None);
    assert!(!storage.was_sent("granted") && !storage.was_sent(&encoded("cook", PASSWORD)));
    assert!(registries.collect_requests().iter().all(|r| !r.url.contains("presigned")));

    // The storage asks for credentials, on a challenge that points back at itself.
    storage.fault(
        9,
        |_| true,
        Fault::Answer(
            Wire::error(401, "UNAUTHORIZED")
                .with("WWW-Authenticate", format!("Bearer realm=\"{}/token\"", storage.url())),
        ),
    );
    let why = unread(registries.fetch_blob(&name, &blob, 100).await);
    assert_eq!((why.reason, why.status), (UnreadReason::Unauthorized, Some(401)));
    assert!(!format!("{why:?}").contains("presigned"));
    assert!(!storage.was_sent("granted") && storage.lines().iter().all(|l| !l.contains("/token")));
}

#[tokio::test]
async fn case_68_a_redirect_without_end_is_unread() {
    let (registry, digest) = with_tokens();
    registry.behave(|b| b.auth = Auth::Open);
    registry.fault(
        99,
        |_| true,
        Fault::change(|r, a| {
            a.status = 307;
            a.headers.push(("Location".into(), format!("{}?again", r.path)));
        }),
    );
    let why = unread(
        registries(&registry).fetch_manifest(&repository(&registry, REPO), &Reference::Digest(digest)).await,
    );
    assert_eq!((why.reason, why.why.as_str()), (UnreadReason::Error, "redirects without end"));
    assert_eq!(registry.log().len(), 6);
}

#[tokio::test]
async fn a_mirror_gets_its_own_credentials_and_never_the_registrys() {
    let mirror = Hostile::start();
    let digest = mirror.push_artifact(REPO, &[]);
    mirror.behave(|b| b.auth = Auth::Basic);
    mirror.store().accounts.users.insert("mirror-cook".into(), "mirror-pass".into());
    let name = OciRepository::parse(&format!("registry.shop.example:5000/{REPO}")).unwrap();
    let registries = |logins: &Logins| {
        let host = HostConfig { mirror: Some(mirror.url()), ..HostConfig::default() };
        let hosts = [("registry.shop.example:5000".to_owned(), host)].into();
        let environment = logins.environment();
        Registries::new(RegistriesConfig { hosts, limits: limits(), environment, ..Default::default() })
            .unwrap()
    };
    let own = Logins::cook("registry.shop.example:5000");
    assert_eq!(
        unread(registries(&own).holds_manifest(&name, &digest).await).reason,
        UnreadReason::Unauthorized
    );
    assert!(mirror.log().iter().all(|s| s.request.header("authorization").is_none()));
    let both = Logins::new(json!({
        "registry.shop.example:5000": {"auth": encoded("cook", PASSWORD)},
        mirror.host(): {"auth": encoded("mirror-cook", "mirror-pass")},
    }));
    found(registries(&both).holds_manifest(&name, &digest).await);
    assert!(!mirror.was_sent(&encoded("cook", PASSWORD)));
}

#[tokio::test]
async fn offline_makes_no_request() {
    let (registry, digest) = with_tokens();
    let registries = Registries::new(RegistriesConfig { offline: true, ..config(&registry) }).unwrap();
    let name = repository(&registry, REPO);
    let why = unread(registries.fetch_manifest(&name, &Reference::Digest(digest)).await);
    assert_eq!((why.reason, why.why.as_str()), (UnreadReason::Unreachable, "offline: no request is made"));
    assert!(registries.fetch_referrers(&name, &digest).await.unread.is_some());
    unread(registries.holds_blob(&name, &digest).await);
    assert!(registry.log().is_empty() && registries.collect_requests().is_empty());
}
