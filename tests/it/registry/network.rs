//! Certificate authorities and proxies.

use super::*;
use crate::support::authority::Authority;
use crate::support::hostile::{Fault, Hostile};
use oci_registry::Reference;
use oci_registry::RegistryEnvironment;
use oci_registry::UnreadReason;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

const REPO: &str = "shop/podinfo";

/// A registry behind a private authority, with one artifact.
fn behind(authority: &Authority) -> (Hostile, Digest) {
    let registry = Hostile::start_tls(Arc::clone(&authority.server));
    let digest = registry.push_artifact(REPO, &[]);
    (registry, digest)
}

fn over_tls(registry: &Hostile, ca_file: Option<PathBuf>, environment: RegistryEnvironment) -> Registries {
    let host = HostConfig { ca_file, ..HostConfig::default() };
    let hosts = [(registry.host(), host)].into();
    Registries::new(RegistriesConfig { hosts, limits: limits(), environment, ..Default::default() }).unwrap()
}

#[tokio::test]
async fn b41_a_private_authority_by_file_or_by_ssl_cert_file() {
    let authority = Authority::new();
    let (registry, digest) = behind(&authority);
    let name = repository(&registry, REPO);
    let by_file = over_tls(&registry, Some(authority.ca_file()), RegistryEnvironment::default());
    found(by_file.holds_manifest(&name, &digest).await);
    let environment =
        RegistryEnvironment { ssl_cert_file: Some(authority.ca_file()), ..RegistryEnvironment::default() };
    found(over_tls(&registry, None, environment).holds_manifest(&name, &digest).await);
}

#[tokio::test]
async fn b41_case_62_a_certificate_that_is_not_trusted_is_reported_as_such() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (registry, digest) = behind(&authority);
    let name = repository(&registry, REPO);
    for ca_file in [None, Some(stranger.ca_file())] {
        let why = unread(
            over_tls(&registry, ca_file, RegistryEnvironment::default()).holds_manifest(&name, &digest).await,
        );
        assert_eq!((why.reason, why.retryable), (UnreadReason::Unreachable, false));
        assert_eq!(why.why, "TLS: invalid peer certificate: UnknownIssuer");
        assert!(why.request.contains(&registry.host()), "{}", why.request);
    }
    assert!(registry.log().is_empty());
    // The right authority, another name.
    let other = Authority::for_names(&["registry.shop.example"]);
    let (registry, digest) = behind(&other);
    let name = repository(&registry, REPO);
    let registries = over_tls(&registry, Some(other.ca_file()), RegistryEnvironment::default());
    let why = unread(registries.holds_manifest(&name, &digest).await);
    assert!(
        why.why.starts_with("TLS: invalid peer certificate: certificate not valid for name"),
        "{}",
        why.why
    );
}

#[tokio::test]
async fn an_authority_file_that_is_none_is_said_before_anything_is_asked() {
    let authority = Authority::new();
    let junk = authority.folder().join("junk.pem");
    std::fs::write(&junk, "not a certificate").unwrap();
    for file in [junk.clone(), authority.folder().join("missing.pem")] {
        let host = HostConfig { ca_file: Some(file.clone()), ..HostConfig::default() };
        let hosts = [("registry.shop.example".to_owned(), host)].into();
        let failure = Registries::new(RegistriesConfig { hosts, ..Default::default() }).unwrap_err();
        assert_eq!((failure.code, failure.field), ("registry-ca-file", Some("caFile")));
        assert!(failure.cause.contains(file.file_name().unwrap().to_str().unwrap()), "{}", failure.cause);
    }
    let (registry, digest) = behind(&authority);
    let environment = RegistryEnvironment { ssl_cert_file: Some(junk), ..RegistryEnvironment::default() };
    let registries = over_tls(&registry, None, environment);
    let why = unread(registries.holds_manifest(&repository(&registry, REPO), &digest).await);
    assert_eq!(why.reason, UnreadReason::Unreachable);
    assert!(why.why.starts_with("SSL_CERT_FILE "), "{}", why.why);
}

#[tokio::test]
async fn plain_http_where_https_is_spoken_and_the_reverse_are_unreachable() {
    let authority = Authority::new();
    let (secure, digest) = behind(&authority);
    let plain = HostConfig { plain_http: true, ..HostConfig::default() };
    let hosts = [(secure.host(), plain)].into();
    let registries =
        Registries::new(RegistriesConfig { hosts, limits: limits(), ..Default::default() }).unwrap();
    let why = unread(registries.holds_manifest(&repository(&secure, REPO), &digest).await);
    assert_eq!(why.reason, UnreadReason::Unreachable);

    let plain = Hostile::start();
    let digest = plain.push_artifact(REPO, &[]);
    let registries = over_tls(&plain, None, RegistryEnvironment::default());
    let why = unread(registries.holds_manifest(&repository(&plain, REPO), &digest).await);
    assert_eq!(why.reason, UnreadReason::Unreachable);
    assert!(why.why.starts_with("TLS: "), "{}", why.why);
}

#[tokio::test]
async fn case_68_a_redirect_from_https_to_http_is_refused() {
    let authority = Authority::new();
    let (registry, digest) = behind(&authority);
    let storage = Hostile::start();
    registry.fault(99, |_| true, Fault::redirect(format!("{}/x", storage.url())));
    let registries = over_tls(&registry, Some(authority.ca_file()), RegistryEnvironment::default());
    let name = repository(&registry, REPO);
    let why = unread(registries.fetch_manifest(&name, &Reference::Digest(digest)).await);
    assert_eq!(why.why, "redirects from https to something else, which is refused");
    assert!(registries.fetch_referrers(&name, &digest).await.unread.is_some());
    assert!(storage.log().is_empty());
}

#[tokio::test]
async fn a_realm_in_the_clear_gets_nothing_from_a_registry_over_tls() {
    use crate::support::hostile::Auth;
    let authority = Authority::new();
    let (registry, digest) = behind(&authority);
    let thief = Hostile::start();
    for realm in [format!("{}/token", thief.url()), format!("http://{}/token", registry.host())] {
        registry.behave(|b| b.auth = Auth::Bearer { realm: Some(realm) });
        let registries = over_tls(&registry, Some(authority.ca_file()), RegistryEnvironment::default());
        let why = unread(registries.holds_manifest(&repository(&registry, REPO), &digest).await);
        assert_eq!(why.why, "the token realm is plain http, the registry is not");
    }
    registry.behave(|b| b.auth = Auth::Bearer { realm: None });
    let registries = over_tls(&registry, Some(authority.ca_file()), RegistryEnvironment::default());
    found(registries.holds_manifest(&repository(&registry, REPO), &digest).await);
    assert!(thief.log().is_empty());
}

/// A proxy: tunnels and forwards, or wants credentials, or refuses.
struct Proxy {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    Serves,
    WantsCredentials,
    Refuses,
}

impl Proxy {
    fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&seen);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let log = Arc::clone(&log);
                thread::spawn(move || serve(client, manner, &log));
            }
        });
        Self { address, seen }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn serve(client: TcpStream, manner: Manner, log: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(client.try_clone().ok()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let line = head.lines().next()?.to_owned();
    log.lock().unwrap().push(line.clone());
    let refusal = match manner {
        Manner::Serves => None,
        Manner::WantsCredentials => {
            Some("407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"p\"")
        }
        Manner::Refuses => Some("403 Forbidden"),
    };
    let mut client = client;
    if let Some(refusal) = refusal {
        let answer = format!("HTTP/1.1 {refusal}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return client.write_all(answer.as_bytes()).ok();
    }
    let mut words = line.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    if method == "CONNECT" {
        let server = TcpStream::connect(target).ok()?;
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").ok()?;
        return pipe(client, server);
    }
    let url = url::Url::parse(target).ok()?;
    let mut server = TcpStream::connect((url.host_str()?, url.port()?)).ok()?;
    let rest = head.replacen(target, url.path(), 1).replacen("\r\n", "\r\nConnection: close\r\n", 1);
    server.write_all(rest.as_bytes()).ok()?;
    pipe(client, server)
}

fn pipe(client: TcpStream, server: TcpStream) -> Option<()> {
    let (mut from_client, mut to_server) = (client.try_clone().ok()?, server.try_clone().ok()?);
    thread::spawn(move || {
        let _ = std::io::copy(&mut from_client, &mut to_server);
    });
    let (mut server, mut client) = (server, client);
    let mut piece = [0; 4096];
    loop {
        let n = server.read(&mut piece).ok().filter(|n| *n > 0)?;
        client.write_all(&piece[..n]).ok()?;
    }
}

fn proxied(https: Option<&Proxy>, http: Option<&Proxy>, no_proxy: Option<&str>) -> RegistryEnvironment {
    RegistryEnvironment {
        https_proxy: https.map(Proxy::url),
        http_proxy: http.map(Proxy::url),
        no_proxy: no_proxy.map(str::to_owned),
        ..RegistryEnvironment::default()
    }
}

#[tokio::test]
async fn b41_proxies_are_used_and_no_proxy_is_honoured() {
    let authority = Authority::new();
    let (registry, digest) = behind(&authority);
    let name = repository(&registry, REPO);
    let proxy = Proxy::start(Manner::Serves);
    let ca = || Some(authority.ca_file());
    found(over_tls(&registry, ca(), proxied(Some(&proxy), None, None)).holds_manifest(&name, &digest).await);
    assert_eq!(proxy.seen(), [format!("CONNECT {} HTTP/1.1", registry.host())]);
    found(
        over_tls(&registry, ca(), proxied(Some(&proxy), None, Some("127.0.0.1")))
            .holds_manifest(&name, &digest)
            .await,
    );
    found(over_tls(&registry, ca(), proxied(None, Some(&proxy), None)).holds_manifest(&name, &digest).await);
    assert_eq!(proxy.seen().len(), 1, "neither NO_PROXY nor a proxy for the other scheme leads there");

    let plain = Hostile::start();
    let digest = plain.push_artifact(REPO, &[]);
    let name = repository(&plain, REPO);
    let environment = proxied(None, Some(&proxy), None);
    let registries = Registries::new(RegistriesConfig { environment, ..config(&plain) }).unwrap();
    found(registries.holds_manifest(&name, &digest).await);
    assert!(proxy.seen()[1].starts_with(&format!("HEAD {}/v2/", plain.url())), "{:?}", proxy.seen());
}

#[tokio::test]
async fn b41_a_proxy_that_fails_is_reported_as_the_proxy() {
    let authority = Authority::new();
    let (registry, digest) = behind(&authority);
    let name = repository(&registry, REPO);
    for (manner, words) in [
        (Manner::WantsCredentials, "the proxy wants credentials (407)"),
        (Manner::Refuses, "the proxy makes no connection"),
    ] {
        let proxy = Proxy::start(manner);
        let registries = over_tls(&registry, Some(authority.ca_file()), proxied(Some(&proxy), None, None));
        let why = unread(registries.holds_manifest(&name, &digest).await);
        assert_eq!((why.reason, why.why.as_str()), (UnreadReason::Unreachable, words));
        assert!(why.request.contains(&registry.host()));
    }
    let plain = Hostile::start();
    let digest = plain.push_artifact(REPO, &[]);
    let proxy = Proxy::start(Manner::WantsCredentials);
    let environment = proxied(None, Some(&proxy), None);
    let registries = Registries::new(RegistriesConfig { environment, ..config(&plain) }).unwrap();
    let why = unread(registries.fetch_manifest(&repository(&plain, REPO), &Reference::Digest(digest)).await);
    assert_eq!((why.reason, why.status), (UnreadReason::Unreachable, Some(407)));
    let gone = RegistryEnvironment {
        https_proxy: Some("http://127.0.0.1:1".into()),
        ..RegistryEnvironment::default()
    };
    let (registry, digest) = behind(&authority);
    let registries = over_tls(&registry, Some(authority.ca_file()), gone);
    let why = unread(registries.holds_manifest(&repository(&registry, REPO), &digest).await);
    assert_eq!((why.reason, why.why.as_str()), (UnreadReason::Unreachable, "the proxy cannot be reached"));
}
