//! Sends requests to a forge: retries, pauses, size limits and redirects. Knows nothing of comments.

use crate::error::Failure;
use crate::forge::CommentTarget;
use crate::forge::api::{ForgeCall, Method};
use crate::forge::pace::{self, RetryPace};
use git_commits::{Environment, SecretText};
use reqwest::blocking::{Client as Inner, Response};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use std::io::Read as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use url::Url;

/// Limits of time and tries for requests to a forge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForgeLimits {
    /// Tries of one request, including the first.
    pub tries: u32,
    /// The first pause, if the forge asks for none; each later one is twice as long.
    pub backoff: Duration,
    /// Sum of all pauses: a rate limit that asks for a longer wait is an error.
    pub patience: Duration,
    /// Time for one complete response.
    pub answer: Duration,
}

impl Default for ForgeLimits {
    fn default() -> Self {
        Self {
            tries: 4,
            backoff: Duration::from_millis(500),
            patience: Duration::from_secs(180),
            answer: Duration::from_secs(60),
        }
    }
}

/// Largest page of comments: a hundred of GitLab's longest, with room for escapes.
const LARGEST: u64 = 128 << 20;

/// How much of an error's body is read, and how much of its message is shown.
const ERROR_BODY: u64 = 64 << 10;
const SHOWN: usize = 300;

/// How many redirects are followed, on the same host.
const REDIRECTS: usize = 3;

/// A success.
#[derive(Debug)]
pub(super) struct ForgeAnswer {
    /// The request in the form for messages.
    pub line: String,
    /// The `Link` header.
    pub link: Option<String>,
    pub body: Vec<u8>,
}

/// A request that did not succeed.
#[derive(Debug)]
pub(super) enum ForgeRefusal {
    /// The token has no right to it.
    Denied(Failure),
    /// The object of the change no longer exists.
    Gone(Failure),
    /// It is unknown whether a comment was created.
    Unclear(Failure),
    /// Anything else.
    Failed(Failure),
}

/// A response with any status.
struct RawAnswer {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl RawAnswer {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

pub(super) struct Client<'a> {
    target: &'a CommentTarget,
    token: SecretText,
    inner: Inner,
    headers: HeaderMap,
    limits: ForgeLimits,
    /// What is left of the limit for pauses.
    left: Duration,
}

impl<'a> Client<'a> {
    /// A client that sends the token to the target's API and nowhere else.
    pub(super) fn new(
        target: &'a CommentTarget,
        token: &SecretText,
        environment: &Environment,
        limits: &ForgeLimits,
    ) -> Result<Self, Failure> {
        let inner = git_commits::http::make_client_builder(
            &target.api,
            &git_commits::Config::default(),
            environment,
        )?
        .user_agent(concat!("expedite/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(Duration::from_secs(20).min(limits.answer))
        .timeout(limits.answer)
        .build()
        .map_err(|e| target.make_failure("http-setting", format!("cannot prepare HTTP: {e}")))?;
        let mut headers = HeaderMap::new();
        for (name, value) in target.build_headers(token.expose()) {
            let mut value = HeaderValue::from_str(&value).map_err(|_| {
                target.make_failure("token", "the token holds characters that are not allowed in a header")
            })?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
        Ok(Self { target, token: token.clone(), inner, headers, limits: *limits, left: limits.patience })
    }

    /// Waits before reading again, longer each time.
    pub(super) fn pause_round(&mut self, round: u32) {
        let wait = self.compute_backoff(round).min(self.left);
        self.left -= wait;
        std::thread::sleep(wait);
    }

    /// Sends a request until the result is final. A request that creates is sent again only if the forge certainly
    /// refused it.
    pub(super) fn send_call(&mut self, call: &ForgeCall) -> Result<ForgeAnswer, ForgeRefusal> {
        let line = self.format_line(call);
        let mut tried = 1;
        loop {
            let (failure, asked, unclear) = match self.send_once(call, &line) {
                Ok(raw) => {
                    let words = self.format_error(&raw);
                    match pace::judge_pace(raw.status, |name| raw.header(name), &words, read_clock()) {
                        RetryPace::Settled => return self.judge_answer(call, line, raw, &words),
                        RetryPace::Refused(asked) => {
                            (self.make_limit_failure(&line, raw.status, asked, &words), asked, false)
                        }
                        RetryPace::Failed(asked) => {
                            (self.make_status_failure(&line, raw.status, &words), asked, true)
                        }
                    }
                }
                Err(Broken::Settled(failure)) => return Err(ForgeRefusal::Failed(failure)),
                Err(Broken::NotSent(failure)) => (failure, None, false),
                Err(Broken::OnTheWay(failure)) => (failure, None, true),
            };
            if unclear && call.is_creation() {
                return Err(ForgeRefusal::Unclear(failure));
            }
            let wait = asked.unwrap_or_else(|| self.compute_backoff(tried));
            if tried >= self.limits.tries || wait > self.left {
                return Err(ForgeRefusal::Failed(failure));
            }
            self.left -= wait;
            std::thread::sleep(wait);
            tried += 1;
        }
    }

    fn compute_backoff(&self, tried: u32) -> Duration {
        self.limits.backoff.saturating_mul(2_u32.saturating_pow(tried.saturating_sub(1).min(10)))
    }

    /// A request in the form for messages, without the query.
    fn format_line(&self, call: &ForgeCall) -> String {
        let url = self.build_url(call);
        format!("{} {}", convert_method(call.method), format_url(&url))
    }

    fn build_url(&self, call: &ForgeCall) -> Url {
        let mut url = self.target.api.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(&call.path);
        }
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&call.query);
        }
        url
    }

    fn send_once(&self, call: &ForgeCall, line: &str) -> Result<RawAnswer, Broken> {
        let mut url = self.build_url(call);
        for _ in 0..=REDIRECTS {
            let mut request =
                self.inner.request(convert_method(call.method), url.clone()).headers(self.headers.clone());
            if let Some(body) = &call.body {
                request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
            }
            let response = request.send().map_err(|e| {
                let failure = self.make_unreachable_failure(line, &e);
                if e.is_connect() || e.is_builder() {
                    Broken::NotSent(failure)
                } else {
                    Broken::OnTheWay(failure)
                }
            })?;
            if !response.status().is_redirection() {
                return self.read_answer(line, response);
            }
            url = self.resolve_redirect(call, line, &url, &response).map_err(Broken::Settled)?;
        }
        Err(Broken::Settled(
            self.target.make_failure("redirect", format!("{line}: the forge redirects too many times")),
        ))
    }

    /// The target of a redirect: the token is sent to the configured host only.
    fn resolve_redirect(
        &self,
        call: &ForgeCall,
        line: &str,
        from: &Url,
        response: &Response,
    ) -> Result<Url, Failure> {
        let status = response.status().as_u16();
        let to =
            response.headers().get("location").and_then(|l| l.to_str().ok()).and_then(|l| from.join(l).ok());
        let refused =
            |why: String| self.target.make_failure("redirect", format!("{line}: HTTP {status}: {why}"));
        let Some(to) = to else { return Err(refused("it redirects without a valid address".to_owned())) };
        if to.origin() != from.origin() {
            let why =
                format!("it redirects to another host, {}, and the token is not sent there", format_url(&to));
            return Err(refused(why));
        }
        if call.method != Method::Get && !matches!(status, 307 | 308) {
            return Err(refused(format!("it redirects to {}", format_url(&to))));
        }
        Ok(to)
    }

    fn read_answer(&self, line: &str, mut response: Response) -> Result<RawAnswer, Broken> {
        let success = response.status().is_success();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let cap = if success { LARGEST } else { ERROR_BODY };
        let mut body = Vec::new();
        let read = response.by_ref().take(cap + 1).read_to_end(&mut body);
        match read {
            Ok(length) if success && length as u64 > cap => {
                let cause = format!("{line}: the response is longer than {cap} bytes");
                Err(Broken::Settled(self.target.make_failure("too-long", cause)))
            }
            Err(error) if success => {
                let cause = format!("{line}: the response ended early: {error}");
                Err(Broken::OnTheWay(self.target.make_failure("unreachable", cause)))
            }
            // An error body that cannot be read is not shown.
            Ok(_) | Err(_) => Ok(RawAnswer { status, headers, body }),
        }
    }

    fn judge_answer(
        &self,
        call: &ForgeCall,
        line: String,
        raw: RawAnswer,
        words: &str,
    ) -> Result<ForgeAnswer, ForgeRefusal> {
        let status = raw.status;
        if (200..300).contains(&status) {
            let link = raw.header("link").map(str::to_owned);
            return Ok(ForgeAnswer { line, link, body: raw.body });
        }
        let failure = self.make_status_failure(&line, status, words);
        Err(match status {
            404 | 410 if call.can_be_gone() => ForgeRefusal::Gone(failure),
            401 => {
                let variable = self.target.forge().token_variable();
                ForgeRefusal::Failed(
                    failure
                        .with_hint(format!("the token in {variable} is not accepted: it may have expired")),
                )
            }
            403 => ForgeRefusal::Denied(self.target.add_token_hint(failure)),
            404 => ForgeRefusal::Failed(
                failure.with_hint("there is no such pull request, or the token has no right to see it"),
            ),
            _ => ForgeRefusal::Failed(failure),
        })
    }

    fn make_status_failure(&self, line: &str, status: u16, words: &str) -> Failure {
        let words = if words.is_empty() { String::new() } else { format!(": {words}") };
        self.target.make_failure("http-status", format!("{line}: HTTP {status}{words}"))
    }

    fn make_limit_failure(&self, line: &str, status: u16, asked: Option<Duration>, words: &str) -> Failure {
        let failure = self.make_status_failure(line, status, words);
        let asks = match asked {
            Some(asked) => format!("the forge asks to wait {} s", asked.as_secs()),
            None => "the forge limits the rate of requests".to_owned(),
        };
        failure.with_hint(format!("{asks}; run it again later"))
    }

    /// The message of an error response, in one line and without the token.
    fn format_error(&self, raw: &RawAnswer) -> String {
        if (200..300).contains(&raw.status) {
            return String::new();
        }
        let text = String::from_utf8_lossy(&raw.body);
        if text.trim_start().starts_with('<') {
            return String::new();
        }
        let json: Option<serde_json::Value> = serde_json::from_str(&text).ok();
        let said = json.as_ref().and_then(|json| json.get("message").or_else(|| json.get("error")));
        let text = match said {
            Some(serde_json::Value::String(said)) => said.clone(),
            Some(other) => other.to_string(),
            None => text.trim().to_owned(),
        };
        text.replace(self.token.expose(), "***").chars().take(SHOWN).collect()
    }

    /// A failure of the connection, with every cause.
    fn make_unreachable_failure(&self, line: &str, error: &reqwest::Error) -> Failure {
        let mut words = Vec::new();
        let mut cause = std::error::Error::source(error);
        while let Some(inner) = cause {
            words.push(inner.to_string());
            cause = inner.source();
        }
        let what = if error.is_timeout() { "no answer in time" } else { "no answer" };
        words.insert(0, format!("{line}: {what}"));
        let words = words.join(": ");
        let failure = self.target.make_failure("unreachable", words.clone());
        if words.contains("certificate") || words.contains("UnknownIssuer") {
            return failure.with_hint("for a private CA, name its file with SSL_CERT_FILE");
        }
        failure
    }
}

/// A request without a complete response.
enum Broken {
    /// A retry would not help.
    Settled(Failure),
    /// The forge did not receive it.
    NotSent(Failure),
    /// The forge may have received it.
    OnTheWay(Failure),
}

fn convert_method(method: Method) -> reqwest::Method {
    match method {
        Method::Get => reqwest::Method::GET,
        Method::Post => reqwest::Method::POST,
        Method::Put => reqwest::Method::PUT,
        Method::Patch => reqwest::Method::PATCH,
        Method::Delete => reqwest::Method::DELETE,
    }
}

/// A URL in the form for messages.
fn format_url(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
}

/// Seconds since 1970: rate limits end at an instant of the real clock.
fn read_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs()).unwrap_or_default()
}
