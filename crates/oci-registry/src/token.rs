//! Asking a token endpoint (distribution's token specification; OAuth 2 for identity tokens).

use crate::answer::UnreadReason;
use crate::auth::{TOKEN_LIFETIME, WantedToken, make_sensitive_header};
use crate::credentials::Credential;
use crate::fault::{self, RequestFault, make_broken_unread};
use crate::http::{RegistrySession, can_follow, find_redirect_target};
use crate::link::is_same_origin;
use crate::realm;
use crate::retry;
use crate::secret::RegistrySecret;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use reqwest::header::{self, HeaderValue};
use serde::Deserialize;
use std::time::Duration;
use url::Url;
use url::form_urlencoded::Serializer;

/// What a token endpoint answers.
#[derive(Deserialize)]
struct Granted {
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    access_token: Option<String>,
    #[serde(default)]
    expires_in: Option<u64>,
}

/// What is sent, and by which method.
struct TokenRequest {
    method: Method,
    url: Url,
    form: Option<String>,
    authorization: Option<HeaderValue>,
}

impl RegistrySession<'_> {
    /// A token and how long it lives.
    pub(crate) async fn fetch_token(
        &self,
        wanted: &WantedToken,
        credential: &Credential,
    ) -> Result<(RegistrySecret, Duration), RequestFault> {
        let place = Url::parse(&wanted.realm).map_err(|_| {
            let line = fault::format_request_line("GET", &self.host.base);
            RequestFault::from_unread(make_broken_unread(&line, Some(401), "the token realm is no URL"))
        })?;
        let question = build_token_request(&place, wanted, credential, self.clients.name())?;
        let line = fault::format_request_line(question.method.as_str(), &place);
        let (status, headers, body) = self.send_token_request(&question, &place, &line).await?;
        let scopes = wanted.scopes.join(" ");
        if status != 200 {
            let mut unread =
                fault::make_refused_unread(&line, status, &body, &format!("a token for {scopes}"));
            if matches!((status, credential), (400, Credential::Identity(_))) {
                // OAuth 2 says invalid_grant so.
                unread.reason = UnreadReason::Unauthorized;
            }
            let transient = fault::is_transient(status);
            let retry_after = transient.then(|| retry::parse_retry_after(&headers)).flatten();
            return Err(RequestFault { unread, transient, unreachable: false, retry_after });
        }
        let odd = |why: &str| {
            RequestFault::from_unread(make_broken_unread(
                &line,
                Some(status),
                format!("the token endpoint {why}"),
            ))
        };
        let granted: Granted =
            serde_json::from_slice(&body).map_err(|_| odd("answers something that is no token"))?;
        let given = |token: Option<String>| token.filter(|t| !t.is_empty());
        match given(granted.token).or_else(|| given(granted.access_token)) {
            Some(token) => {
                let lifetime = granted.expires_in.map_or(TOKEN_LIFETIME, Duration::from_secs);
                // A year is for ever in a run, and the clock can add it.
                Ok((RegistrySecret::new(token), lifetime.min(Duration::from_secs(365 * 24 * 3600))))
            }
            None => {
                let why = format!("the token endpoint grants no token for {scopes}");
                let unread = fault::make_unread(UnreadReason::Unauthorized, &line, Some(status), why, false);
                Err(RequestFault::from_unread(unread))
            }
        }
    }

    /// Sends it, and follows redirects: each place is judged anew, and only the realm itself gets credentials.
    async fn send_token_request(
        &self,
        question: &TokenRequest,
        place: &Url,
        line: &str,
    ) -> Result<(u16, header::HeaderMap, bytes::Bytes), RequestFault> {
        let deep = *self.host.depth.get_or_init(|| realm::resolve_depth(&self.host.base)).await;
        let mut url = question.url.clone();
        for _ in 0..=self.limits.redirects {
            let reach = realm::check_realm(&url, &self.host.base, deep)
                .map_err(|why| RequestFault::from_unread(make_broken_unread(line, Some(401), why)))?;
            let client = self.clients.get(self.host.ca_file.as_deref(), reach).map_err(|why| {
                RequestFault::from_unread(fault::make_unread(
                    UnreadReason::Unreachable,
                    line,
                    None,
                    why,
                    false,
                ))
            })?;
            let mut request = client.request(question.method.clone(), url.clone());
            let home = is_same_origin(&url, place);
            if let Some(authorization) = question.authorization.as_ref().filter(|_| home) {
                request = request.header(header::AUTHORIZATION, authorization);
            }
            if let Some(form) = &question.form {
                if !home {
                    let why = "the token endpoint redirects to another host, which gets no identity token";
                    return Err(RequestFault::from_unread(make_broken_unread(line, None, why)));
                }
                request = request
                    .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
                    .body(form.clone());
            }
            let response = self.exchange_request(request, &question.method, &url, line, false).await?;
            let Some(target) = find_redirect_target(&question.method, &response) else {
                let (status, headers) = (response.status().as_u16(), response.headers().clone());
                let body = match status {
                    200 => self.read_body(response, line, self.limits.token).await?,
                    _ => self.read_beginning(response, line).await?,
                };
                return Ok((status, headers, body));
            };
            let next = url.join(&target).ok().filter(|next| can_follow(&url, next));
            url = next.ok_or_else(|| {
                RequestFault::from_unread(make_broken_unread(
                    line,
                    None,
                    "the token endpoint redirects to where it must not",
                ))
            })?;
        }
        Err(RequestFault::from_unread(make_broken_unread(
            line,
            None,
            "the token endpoint redirects without end",
        )))
    }
}

fn build_token_request(
    place: &Url,
    wanted: &WantedToken,
    credential: &Credential,
    client: &str,
) -> Result<TokenRequest, RequestFault> {
    match credential {
        Credential::Identity(token) => {
            let mut form = Serializer::new(String::new());
            form.append_pair("grant_type", "refresh_token");
            form.append_pair("client_id", client);
            if let Some(service) = &wanted.service {
                form.append_pair("service", service);
            }
            form.append_pair("scope", &wanted.scopes.join(" "));
            form.append_pair("refresh_token", token.reveal());
            let form = Some(form.finish());
            Ok(TokenRequest { method: Method::POST, url: place.clone(), form, authorization: None })
        }
        Credential::Basic { .. } | Credential::Anonymous | Credential::Registry(_) => {
            let mut url = place.clone();
            {
                let mut query = url.query_pairs_mut();
                if let Some(service) = &wanted.service {
                    query.append_pair("service", service);
                }
                for scope in &wanted.scopes {
                    query.append_pair("scope", scope);
                }
            }
            let authorization = match credential {
                Credential::Basic { user, password } => {
                    let pair = STANDARD.encode(format!("{user}:{}", password.reveal()));
                    Some(make_sensitive_header(
                        &format!("Basic {pair}"),
                        &fault::format_request_line("GET", place),
                    )?)
                }
                Credential::Anonymous | Credential::Registry(_) | Credential::Identity(_) => None,
            };
            Ok(TokenRequest { method: Method::GET, url, form: None, authorization })
        }
    }
}
