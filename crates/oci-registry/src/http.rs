//! One request and its response: redirects, limits, time-outs, retries. Knows nothing of the meaning of a response for a
//! claim.

use crate::answer::Unread;
use crate::answer::UnreadReason;
use crate::auth::{Action, RegistryAuthorization};
use crate::budget::Budget;
use crate::clients::Clients;
use crate::config::RegistryLimits;
use crate::fault::{self, RequestFault};
use crate::host::Host;
use crate::id::OciRepository;
use crate::link::is_same_origin;
use crate::request_log::RequestLog;
use crate::retry;
use bytes::{Bytes, BytesMut};
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, Response};
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Everything a request of one repository needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RegistrySession<'a> {
    pub host: &'a Host,
    pub repository: &'a OciRepository,
    pub limits: &'a RegistryLimits,
    pub budget: &'a Arc<Budget>,
    pub log: &'a RequestLog,
    pub clients: &'a Clients,
    pub offline: bool,
}

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct RegistryCall {
    pub method: Method,
    pub url: Url,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub body: Bytes,
    /// A success longer than this is refused.
    pub cap: u64,
    /// Its action on the repository.
    pub action: Action,
}

impl RegistryCall {
    pub(crate) fn new(method: Method, url: Url, cap: u64) -> Self {
        let action = if matches!(method, Method::GET | Method::HEAD) { Action::Pull } else { Action::Push };
        Self { method, url, headers: Vec::new(), body: Bytes::new(), cap, action }
    }

    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The form for reports.
    pub(crate) fn format_line(&self) -> String {
        fault::format_request_line(self.method.as_str(), &self.url)
    }
}

/// A complete response, with any status.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    /// The request in the form for reports.
    pub line: String,
    pub status: u16,
    pub headers: HeaderMap,
    /// Of an error: its beginning.
    pub body: Bytes,
    /// After redirects.
    pub url: Url,
    /// The right that it needs: `pull from shop/podinfo`.
    pub whose: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|v| v.to_str().ok())
    }

    /// Content-Type without parameters, in lower case; empty when there is none.
    pub(crate) fn media_type(&self) -> String {
        let whole = self.header(&header::CONTENT_TYPE).unwrap_or_default();
        whole.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// The meaning of this response if it is neither a success nor absence.
    pub(crate) fn make_refused_unread(&self) -> Unread {
        fault::make_refused_unread(&self.line, self.status, &self.body, &self.whose)
    }
}

/// How much of a response's body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyExtent {
    /// All of it.
    Whole,
    /// Nothing of a success: the status is enough.
    StatusOnly,
}

impl RegistrySession<'_> {
    /// `<base>v2/<repository><rest>`.
    pub(crate) fn build_url(&self, rest: &str) -> Url {
        let mut url = self.host.base.clone();
        url.set_path(&format!("/v2/{}{rest}", self.repository.path()));
        url
    }

    /// Sends until there is a final response, or no tries or no time are left.
    ///
    /// # Errors
    /// There is no response at all, or none that can be read.
    pub(crate) async fn send_call(&self, call: &RegistryCall, body: BodyExtent) -> Result<Reply, Unread> {
        let line = call.format_line();
        if self.offline {
            let why = "offline: no request is made";
            return Err(fault::make_unread(UnreadReason::Unreachable, &line, None, why, false));
        }
        let mut last = Err(RequestFault::from_silence(&line, "no time left for this artifact", false));
        for n in 1..=self.limits.tries.max(1) {
            if let Some(why) = self.host.find_hold() {
                return Err(Unread { request: line, ..why });
            }
            if self.budget.remaining().is_zero() {
                break;
            }
            last = self.attempt_call(call, &line, body).await;
            let asked = match &last {
                Ok(reply) if fault::is_transient(reply.status) => retry::parse_retry_after(&reply.headers),
                Ok(_) => break,
                Err(fault) if fault.transient => fault.retry_after,
                Err(_) => break,
            };
            let pause = retry::compute_pause(self.limits.backoff, n, asked);
            if n == self.limits.tries || pause >= self.budget.remaining() {
                if let Some(asked) = asked {
                    let why =
                        last.as_ref().map_or_else(|fault| fault.unread.clone(), Reply::make_refused_unread);
                    self.host.put_on_hold(asked, &why);
                }
                break;
            }
            let _active = self.budget.start_activity();
            tokio::time::sleep(pause).await;
        }
        last.map_err(|fault| {
            if fault.unreachable {
                self.host.put_on_hold(self.limits.hold_off, &fault.unread);
            }
            fault.unread
        })
    }

    async fn attempt_call(
        &self,
        call: &RegistryCall,
        line: &str,
        body: BodyExtent,
    ) -> Result<Reply, RequestFault> {
        let closed =
            |_| RequestFault::from_unread(fault::make_broken_unread(line, None, "the run is ending"));
        let _slot = self.host.slots.acquire().await.map_err(closed)?;
        // The first request to a registry is sent alone, so that all others can use its challenge.
        let auth = &self.host.auth;
        let first = if auth.is_unknown() { Some(auth.first.lock().await) } else { None };
        let first = first.filter(|_| auth.is_unknown());
        let _active = self.budget.start_activity();

        let mut sent = self.resolve_authorization(line, call.action, None).await?;
        let tried = self.follow_redirects(call, line, body, sent.as_ref()).await;
        if tried.is_err() {
            // There is no challenge: the other requests need not wait for it.
            auth.learn_nothing();
        }
        let mut reply = tried?;
        // The target host of a redirect gets no credentials, and nothing is learnt from it.
        let own = is_same_origin(&reply.url, &self.host.base);
        let again = own && auth.accept_challenge(&reply, self.repository.path(), call.action);
        drop(first);
        if again && sent.as_ref().is_none_or(|a| !a.fresh) {
            sent = self.resolve_authorization(line, call.action, sent.as_ref()).await?;
            reply = self.follow_redirects(call, line, body, sent.as_ref()).await?;
        }
        reply.whose = self.describe_action(call.action, sent.is_some());
        Ok(reply)
    }

    /// For the message when it is denied.
    fn describe_action(&self, action: Action, known: bool) -> String {
        let who = if known { "" } else { ", asked without credentials," };
        match action {
            Action::Pull => format!("pull from {}{who}", self.repository.path()),
            Action::Push => format!("push to {}{who}", self.repository.path()),
        }
    }

    /// One try, with its redirects.
    async fn follow_redirects(
        &self,
        call: &RegistryCall,
        line: &str,
        body: BodyExtent,
        authorization: Option<&RegistryAuthorization>,
    ) -> Result<Reply, RequestFault> {
        let mut url = call.url.clone();
        let method = &call.method;
        for _ in 0..=self.limits.redirects {
            let response = self.send_hop(call, method, &url, line, authorization).await?;
            let status = response.status().as_u16();
            let Some(target) = find_redirect_target(method, &response) else {
                let success = response.status().is_success();
                let (headers, url) = (response.headers().clone(), url.clone());
                let read = match (success, body) {
                    (true, BodyExtent::StatusOnly) => Bytes::new(),
                    (true, BodyExtent::Whole) => self.read_body(response, line, call.cap).await?,
                    (false, _) => self.read_beginning(response, line).await?,
                };
                let (line, whose) = (line.to_owned(), String::new());
                return Ok(Reply { line, status, headers, body: read, url, whose });
            };
            let target = url.join(&target).map_err(|_| {
                RequestFault::from_unread(fault::make_broken_unread(
                    line,
                    Some(status),
                    "redirects to something that is no URL",
                ))
            })?;
            if !can_follow(&url, &target) {
                let why = "redirects from https to something else, which is refused";
                return Err(RequestFault::from_unread(fault::make_broken_unread(line, Some(status), why)));
            }
            url = target;
        }
        Err(RequestFault::from_unread(fault::make_broken_unread(line, None, "redirects without end")))
    }

    async fn send_hop(
        &self,
        call: &RegistryCall,
        method: &Method,
        url: &Url,
        line: &str,
        authorization: Option<&RegistryAuthorization>,
    ) -> Result<Response, RequestFault> {
        let client = self.host.client.as_ref().map_err(|why| {
            RequestFault::from_unread(fault::make_unread(
                UnreadReason::Unreachable,
                line,
                None,
                why.clone(),
                false,
            ))
        })?;
        let mut request = client.request(method.clone(), url.clone());
        for (name, value) in &call.headers {
            request = request.header(name, value);
        }
        if !call.body.is_empty() || matches!(*method, Method::POST | Method::PUT) {
            request = request.body(call.body.clone());
        }
        let own = is_same_origin(url, &self.host.base);
        if let Some(authorization) = authorization.filter(|_| own) {
            request = request.header(header::AUTHORIZATION, authorization.header.clone());
        }
        self.exchange_request(request, method, url, line, own).await
    }

    /// Sends one request and waits for the head of its response.
    pub(crate) async fn exchange_request(
        &self,
        request: RequestBuilder,
        method: &Method,
        url: &Url,
        line: &str,
        own: bool,
    ) -> Result<Response, RequestFault> {
        let whole = self.limits.connect + self.limits.idle;
        let sent = self.run_within(whole, request.send()).await;
        let status = match &sent {
            Ok(Ok(response)) => Some(response.status().as_u16()),
            Ok(Err(_)) | Err(_) => None,
        };
        self.log.log_request(method.as_str(), fault::strip_query(url), status);
        match sent {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => {
                let mut fault = RequestFault::from_transport(line, &error);
                // If a storage host is down, the registry itself may still work.
                fault.unreachable &= own;
                Err(fault)
            }
            Err(Late) => Err(RequestFault::from_silence(line, "no answer in time", own)),
        }
    }

    pub(crate) async fn read_body(
        &self,
        mut response: Response,
        line: &str,
        cap: u64,
    ) -> Result<Bytes, RequestFault> {
        let status = Some(response.status().as_u16());
        let too_long = || {
            RequestFault::from_unread(fault::make_broken_unread(
                line,
                status,
                format!("longer than {cap} bytes"),
            ))
        };
        if response.content_length().is_some_and(|l| l > cap) {
            return Err(too_long());
        }
        let mut body = BytesMut::new();
        loop {
            match self.run_within(self.limits.idle, response.chunk()).await {
                Ok(Ok(Some(chunk))) => {
                    if (body.len() + chunk.len()) as u64 > cap {
                        return Err(too_long());
                    }
                    body.extend_from_slice(&chunk);
                }
                Ok(Ok(None)) => return Ok(body.freeze()),
                Ok(Err(error)) => {
                    return Err(RequestFault {
                        unreachable: false,
                        ..RequestFault::from_transport(line, &error)
                    });
                }
                Err(Late) => {
                    return Err(RequestFault::from_silence(line, "the answer does not end in time", false));
                }
            }
        }
    }

    /// The beginning of an error's body.
    ///
    /// # Errors
    /// It ends early, and the status alone is not enough: a 404 without its body could come from any proxy.
    pub(crate) async fn read_beginning(
        &self,
        mut response: Response,
        line: &str,
    ) -> Result<Bytes, RequestFault> {
        let status = response.status().as_u16();
        let mut body = BytesMut::new();
        let reading = async {
            while let Some(chunk) = response.chunk().await? {
                body.extend_from_slice(&chunk);
                if body.len() as u64 >= self.limits.error_body {
                    break;
                }
            }
            Ok(())
        };
        let broken_off = match self.run_within(self.limits.idle, reading).await {
            Ok(Ok(())) => return Ok(body.freeze()),
            Ok(Err(error)) => {
                RequestFault { unreachable: false, ..RequestFault::from_transport(line, &error) }
            }
            Err(Late) => RequestFault::from_silence(line, "the answer does not end in time", false),
        };
        match fault::is_transient(status) {
            true => Ok(body.freeze()),
            false => Err(broken_off),
        }
    }

    /// Waits within `limit` and within the remaining time of the artifact.
    async fn run_within<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Result<T, Late> {
        tokio::time::timeout(limit.min(self.budget.remaining()), work).await.map_err(|_| Late)
    }
}

/// It took too long.
struct Late;

/// Redirects may go anywhere, except from https to another scheme.
pub(crate) fn can_follow(from: &Url, to: &Url) -> bool {
    matches!((from.scheme(), to.scheme()), (_, "https") | ("http", "http"))
}

/// The target of a redirect; `None`: the response is not a redirect that is followed.
pub(crate) fn find_redirect_target(method: &Method, response: &Response) -> Option<String> {
    let followed = match response.status().as_u16() {
        301..=303 => matches!(*method, Method::GET | Method::HEAD),
        307 | 308 => true,
        _ => false,
    };
    let target = response.headers().get(header::LOCATION)?.to_str().ok()?;
    followed.then(|| target.to_owned())
}
