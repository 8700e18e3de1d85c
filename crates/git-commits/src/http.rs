//! Git's smart protocol over HTTP(S) (gitprotocol-http): one request per exchange.

use crate::credentials::{Authorization, Credentials};
use crate::error::{GitError, GitErrorKind};
use crate::transport::{Stream, Timeouts, Wire};
use crate::{Config, Environment};
use git2::transport::Service;
use reqwest::blocking::{Client, ClientBuilder, Response};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use reqwest::{Method, StatusCode};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use url::Url;

/// Most redirects that are followed, on the first request only.
const REDIRECTS: usize = 5;

/// Longest part of an answer shown in a message, in bytes.
const SHOWN: usize = 500;

/// A server over HTTP.
pub(crate) struct Http(Arc<Inner>);

struct Inner {
    /// For messages: without user and password.
    name: String,
    client: Client,
    /// For messages: the proxy on the way, where there is one.
    through: Option<String>,
    credentials: Credentials,
    state: Mutex<HttpState>,
}

/// What the first request found out, for those that follow.
struct HttpState {
    base: Url,
    authorization: Option<Authorization>,
}

impl Http {
    /// A wire to `url`; nothing is sent yet.
    ///
    /// # Errors
    /// A CA file, proxy or token that was configured cannot be used.
    pub fn new(
        url: &Url,
        config: &Config,
        environment: &Environment,
        folder: Option<PathBuf>,
        timeouts: Timeouts,
    ) -> Result<Self, GitError> {
        let credentials = Credentials::collect_known(url, config, environment, folder)?;
        let mut base = url.clone();
        // Neither can fail: an http URL has a host.
        let _ = base.set_password(None);
        let _ = base.set_username("");
        base.set_query(None);
        base.set_fragment(None);
        let client = build_client(&base, config, environment, timeouts)?;
        let through =
            find_proxy(&base, config, environment).map(|(name, proxy)| describe_proxy(&name, &proxy));
        let state = Mutex::new(HttpState { base: base.clone(), authorization: credentials.first() });
        Ok(Self(Arc::new(Inner { name: base.to_string(), client, through, credentials, state })))
    }
}

impl Wire for Http {
    fn is_stateless(&self) -> bool {
        true
    }

    fn open_stream(&self, service: Service) -> Result<Box<dyn Stream>, GitError> {
        let answer = match service {
            Service::UploadPackLs => Exchange::Answer(self.0.discover_server("git-upload-pack")?),
            Service::ReceivePackLs => Exchange::Answer(self.0.discover_server("git-receive-pack")?),
            Service::UploadPack => Exchange::Question("git-upload-pack", Vec::new()),
            Service::ReceivePack => Exchange::Question("git-receive-pack", Vec::new()),
        };
        Ok(Box::new(ExchangeBody { inner: Arc::clone(&self.0), exchange: answer }))
    }

    fn close_wire(&self) {}
}

impl Inner {
    fn make_error(&self, code: &'static str, why: impl Into<String>) -> GitError {
        GitError::new(GitErrorKind::Repository, code, why).with_object(format!("repository {}", self.name))
    }

    fn lock_state(&self) -> std::sync::MutexGuard<'_, HttpState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `GET …/info/refs`: finds the server, follows its redirects and settles on credentials.
    fn discover_server(&self, service: &str) -> Result<Response, GitError> {
        let mut redirects = 0;
        loop {
            let (base, authorization) = {
                let state = self.lock_state();
                (state.base.clone(), state.authorization.clone())
            };
            let mut url = join_url(&base, "info/refs");
            url.set_query(Some(&format!("service={service}")));
            let answer =
                self.send_request(Method::GET, url.clone(), service, authorization.as_ref(), None)?;
            let status = answer.status();
            if status.is_redirection() {
                redirects += 1;
                let base = self.resolve_redirect(&url, service, &answer, redirects)?;
                self.lock_state().base = base;
                continue;
            }
            if status == StatusCode::UNAUTHORIZED {
                if let Some(tried) = &authorization {
                    self.credentials.tell_helpers(tried, false);
                }
                let Some(next) = self.credentials.choose_next(authorization.as_ref())? else {
                    return Err(self.make_unauthorized_failure(authorization.as_ref()));
                };
                self.lock_state().authorization = Some(next);
                continue;
            }
            let answer = self.check_answer(answer, authorization.as_ref())?;
            let kind = format!("application/x-{service}-advertisement");
            let sent = answer.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("none");
            if sent.split(';').next().map(str::trim) != Some(kind.as_str()) {
                return Err(self
                    .make_error(
                        "not-git",
                        format!("the server answered with {sent:?}, which is not git's smart protocol"),
                    )
                    .with_hint("check the URL; a sign-in page or a proxy may have answered"));
            }
            if let Some(used) = authorization {
                self.credentials.tell_helpers(&used, true);
                self.lock_state().authorization = Some(used.forget_helper());
            }
            return Ok(answer);
        }
    }

    /// Where to go on, if that is a place where credentials may go.
    fn resolve_redirect(
        &self,
        from: &Url,
        service: &str,
        answer: &Response,
        count: usize,
    ) -> Result<Url, GitError> {
        let refused = |why: &str| self.make_error("redirect", why);
        if count > REDIRECTS {
            return Err(refused("the server redirects in circles"));
        }
        let to = answer.headers().get(LOCATION).and_then(|l| l.to_str().ok()).and_then(|l| from.join(l).ok());
        let mut to = to.ok_or_else(|| refused("the server redirects to no valid place"))?;
        let asked = to.query_pairs().any(|(k, v)| k == "service" && v == service);
        let Some(path) = to.path().strip_suffix("/info/refs").filter(|_| asked).map(str::to_owned) else {
            return Err(self.make_error(
                "redirect",
                format!("the server redirects to {}, which is no repository", format_url(&to)),
            ));
        };
        let same_host = to.host_str() == from.host_str();
        let same_port = to.port_or_known_default() == from.port_or_known_default();
        let upgraded = from.scheme() == "http" && to.scheme() == "https";
        if !same_host || !(to.scheme() == from.scheme() && same_port || upgraded) {
            return Err(self
                .make_error("redirect", format!("the server redirects to another host: {}", format_url(&to)))
                .with_hint(
                    "if that is right, use that URL: credentials are not sent to a host that was not named",
                ));
        }
        to.set_path(&path);
        to.set_query(None);
        Ok(to)
    }

    fn post_body(&self, service: &'static str, body: Vec<u8>) -> Result<Response, GitError> {
        let (base, authorization) = {
            let state = self.lock_state();
            (state.base.clone(), state.authorization.clone())
        };
        let answer = self.send_request(
            Method::POST,
            join_url(&base, service),
            service,
            authorization.as_ref(),
            Some(body),
        )?;
        if answer.status() == StatusCode::UNAUTHORIZED {
            return Err(self.make_unauthorized_failure(authorization.as_ref()));
        }
        self.check_answer(answer, authorization.as_ref())
    }

    fn send_request(
        &self,
        method: Method,
        url: Url,
        service: &str,
        authorization: Option<&Authorization>,
        body: Option<Vec<u8>>,
    ) -> Result<Response, GitError> {
        let mut request = self.client.request(method, url);
        for (name, value) in &self.credentials.headers {
            let (Ok(name), Some(value)) =
                (HeaderName::from_bytes(name.as_bytes()), make_secret_header(&value.0))
            else {
                return Err(self.make_error("http-header", "http.extraheader holds a line that is no header"));
            };
            request = request.header(name, value);
        }
        if let Some(authorization) = authorization {
            let value = make_secret_header(&authorization.value.0).ok_or_else(|| {
                self.make_error(
                    "http-header",
                    format!("{} holds characters that no header may hold", authorization.source),
                )
            })?;
            request = request.header(AUTHORIZATION, value);
        }
        if let Some(body) = body {
            request = request
                .header(CONTENT_TYPE, format!("application/x-{service}-request"))
                .header("accept", format!("application/x-{service}-result"))
                .body(body);
        }
        request.send().map_err(|e| self.make_unreachable_failure(&e))
    }

    /// What went wrong on the way, with every cause and without the URL, which may hold a secret.
    fn make_unreachable_failure(&self, error: &reqwest::Error) -> GitError {
        let mut words = Vec::new();
        let mut cause = std::error::Error::source(error);
        while let Some(inner) = cause {
            words.push(inner.to_string());
            cause = inner.source();
        }
        let mut what = if error.is_timeout() { "no answer in time" } else { "cannot be reached" }.to_owned();
        let words = words.join(": ");
        if let Some(proxy) = &self.through {
            // What an HTTP library says of a tunnel that was refused with 407.
            if words.contains("proxy auth") {
                return self.make_proxy_failure(proxy);
            }
            what.push_str(&format!(" through {proxy}"));
        }
        let failure = self.make_error(
            "repository-unreachable",
            if words.is_empty() { what } else { format!("{what}: {words}") },
        );
        if words.contains("certificate") || words.contains("UnknownIssuer") {
            return failure.with_hint(
                "for a private CA, name its file with SSL_CERT_FILE, GIT_SSL_CAINFO or http.sslCAInfo",
            );
        }
        failure
    }

    fn make_unauthorized_failure(&self, tried: Option<&Authorization>) -> GitError {
        let why = match tried {
            Some(tried) => format!("the server refused {} (HTTP 401)", tried.source),
            None => "the server wants credentials (HTTP 401), and there are none".to_owned(),
        };
        self.make_error("unauthorized", why)
            .with_hint("give a token with EXPEDITE_GIT_TOKEN or EXPEDITE_GIT_TOKEN_FILE, or set up a git credential helper")
    }

    /// The proxy lets nobody through without credentials, or not with those of its URL (HTTP 407).
    fn make_proxy_failure(&self, proxy: &str) -> GitError {
        self.make_error("proxy", format!("{proxy} wants credentials, or refuses those it got (HTTP 407)"))
            .with_hint(
                "give them in the proxy's URL: http://USER:PASSWORD@HOST:PORT, or name the host in no_proxy",
            )
    }

    /// The answer, if it is a success.
    fn check_answer(&self, answer: Response, used: Option<&Authorization>) -> Result<Response, GitError> {
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        if status == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
            return Err(self.make_proxy_failure(self.through.as_deref().unwrap_or("a proxy")));
        }
        let with = used.map_or_else(|| "no credentials".to_owned(), |u| u.source.clone());
        let mut start = Vec::new();
        // What cannot be read is not shown.
        let _ = answer.take(SHOWN as u64).read_to_end(&mut start);
        let text = String::from_utf8_lossy(&start);
        let html = text.trim_start().starts_with('<');
        let words = if html || text.trim().is_empty() { String::new() } else { format!(": {}", text.trim()) };
        let failure = self.make_error("http-status", format!("HTTP {status} with {with}{words}"));
        Err(match status {
            StatusCode::FORBIDDEN => {
                failure.with_hint("these credentials may not do this; give others with EXPEDITE_GIT_TOKEN")
            }
            StatusCode::NOT_FOUND => {
                failure.with_hint("there is no such repository, or these credentials may not see it")
            }
            StatusCode::PAYLOAD_TOO_LARGE => {
                failure.with_hint("the server or a proxy limits the size of requests")
            }
            _ => failure,
        })
    }
}

/// A URL for a message.
fn format_url(url: &Url) -> String {
    format!("{}://{}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
}

fn join_url(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url
}

fn make_secret_header(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// One exchange: what is written becomes the request when the answer is first read.
enum Exchange {
    Question(&'static str, Vec<u8>),
    Answer(Response),
    Failed,
}

struct ExchangeBody {
    inner: Arc<Inner>,
    exchange: Exchange,
}

impl Read for ExchangeBody {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if let Exchange::Question(service, body) = &mut self.exchange {
            let (service, body) = (*service, std::mem::take(body));
            self.exchange = Exchange::Failed;
            self.exchange =
                Exchange::Answer(self.inner.post_body(service, body).map_err(std::io::Error::other)?);
        }
        match &mut self.exchange {
            Exchange::Answer(answer) => answer.read(buffer).map_err(|e| {
                let why = format!("the answer broke off: {e}");
                std::io::Error::other(self.inner.make_error("repository-unreachable", why))
            }),
            Exchange::Question(..) | Exchange::Failed => Err(std::io::Error::other("there is no answer")),
        }
    }
}

impl Write for ExchangeBody {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match &mut self.exchange {
            Exchange::Question(_, body) => {
                body.extend_from_slice(bytes);
                Ok(bytes.len())
            }
            Exchange::Answer(_) | Exchange::Failed => {
                Err(std::io::Error::other("the request was sent already"))
            }
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A client with the CA and proxy that git would use for `url`.
fn build_client(
    url: &Url,
    config: &Config,
    environment: &Environment,
    timeouts: Timeouts,
) -> Result<Client, GitError> {
    let builder = make_client_builder(url, config, environment)?
        // Servers tell git from browsers by this.
        .user_agent(concat!("git/2.40.0 (expedite ", env!("CARGO_PKG_VERSION"), ")"))
        .connect_timeout(timeouts.connect)
        .timeout(timeouts.silence);
    builder.build().map_err(|e| {
        let cause = std::error::Error::source(&e).map(ToString::to_string).unwrap_or_default();
        GitError::new(GitErrorKind::Repository, "http-setting", format!("cannot prepare HTTP: {e} {cause}"))
    })
}

/// The CA and proxy of git's configuration and the environment, for `url`; redirects are not followed.
///
/// # Errors
/// A file or proxy that was configured cannot be used.
pub fn make_client_builder(
    url: &Url,
    config: &Config,
    environment: &Environment,
) -> Result<ClientBuilder, GitError> {
    let wrong = |what: String, why: String| GitError::new_input("http-setting", why).with_object(what);
    let mut builder = Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy();
    let file = environment.get_path("GIT_SSL_CAINFO").map(|p| ("GIT_SSL_CAINFO", p));
    let file = file
        .or_else(|| {
            let set = config.find_url_value("http", url, "sslcainfo").filter(|v| !v.is_empty())?;
            Some(("http.sslCAInfo", environment.expand_path(set)))
        })
        .or_else(|| environment.get_path("SSL_CERT_FILE").map(|p| ("SSL_CERT_FILE", p)));
    if let Some((name, file)) = file.filter(|_| url.scheme() == "https") {
        let what = format!("{name} {}", file.display());
        let pem = std::fs::read(&file).map_err(|e| wrong(what.clone(), format!("cannot read it: {e}")))?;
        let roots = reqwest::Certificate::from_pem_bundle(&pem)
            .ok()
            .filter(|roots| !roots.is_empty())
            .ok_or_else(|| wrong(what, "it holds no PEM certificate".to_owned()))?;
        builder = builder.tls_certs_only(roots);
    }
    if let Some((name, proxy)) = find_proxy(url, config, environment) {
        // The proxy's URL may hold a password: it is not shown.
        let made = reqwest::Proxy::all(&proxy).map_err(|_| wrong(name, "it is no proxy's URL".to_owned()))?;
        builder = builder.proxy(made);
    }
    Ok(builder)
}

/// The proxy for `url`: `http.proxy`, else the variables that curl reads, unless `no_proxy` names the
/// host.
fn find_proxy(url: &Url, config: &Config, environment: &Environment) -> Option<(String, String)> {
    let host = url.host_str()?;
    if environment.bypasses_proxy(host) {
        return None;
    }
    if let Some(set) = config.find_url_value("http", url, "proxy") {
        return (!set.is_empty()).then(|| ("http.proxy".to_owned(), set.to_owned()));
    }
    // HTTP_PROXY in capitals is not read, as in curl: a server's request header may set it.
    let names: &[&str] = if url.scheme() == "https" {
        &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    } else {
        &["http_proxy", "all_proxy", "ALL_PROXY"]
    };
    names.iter().find_map(|name| environment.get(name).map(|value| ((*name).to_owned(), value.to_owned())))
}

/// A proxy for a message: where it is and what named it, without its password.
fn describe_proxy(name: &str, proxy: &str) -> String {
    let place = proxy.rsplit_once('@').map_or(proxy, |(_, place)| place);
    let place = place.split_once("://").map_or(place, |(_, place)| place);
    format!("the proxy {} ({name})", place.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn proxies_are_those_of_curl() {
        let https = Url::parse("https://git.example/x").unwrap();
        let http = Url::parse("http://git.example/x").unwrap();
        let chosen = |url: &Url, pairs: &[(&str, &str)]| {
            find_proxy(url, &Config::default(), &Environment::new(pairs.iter().copied())).map(|(_, p)| p)
        };
        assert_eq!(chosen(&https, &[("HTTPS_PROXY", "http://p")]).as_deref(), Some("http://p"));
        assert_eq!(chosen(&http, &[("HTTP_PROXY", "http://p")]), None);
        assert_eq!(chosen(&http, &[("http_proxy", "http://p")]).as_deref(), Some("http://p"));
        for exempt in ["git.example", ".example", "*.example", "a, git.example:443", "*"] {
            assert_eq!(
                chosen(&https, &[("HTTPS_PROXY", "http://p"), ("no_proxy", exempt)]),
                None,
                "{exempt}"
            );
        }
        assert!(chosen(&https, &[("HTTPS_PROXY", "http://p"), ("no_proxy", "it.example")]).is_some());
    }
}
