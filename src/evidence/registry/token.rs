//! Asking a token endpoint (distribution's token specification; OAuth 2 for identity tokens).

use crate::evidence::registry::auth::{TOKEN_LIFETIME, Wanted, sensitive};
use crate::evidence::registry::credentials::Credential;
use crate::evidence::registry::fault::{self, Fault, broken};
use crate::evidence::registry::http::{Session, may_follow, redirect_target};
use crate::evidence::registry::link::same_origin;
use crate::evidence::registry::realm;
use crate::evidence::registry::retry;
use crate::evidence::registry::secret::Secret;
use crate::model::reason::Verified;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use reqwest::header::{self, HeaderValue};
use serde::Deserialize;
use std::time::Duration;
use url::Url;
use url::form_urlencoded::Serializer;

/// How we call ourselves to a token endpoint.
const CLIENT_ID: &str = "expedite";

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
struct Question {
    method: Method,
    url: Url,
    form: Option<String>,
    authorization: Option<HeaderValue>,
}

impl Session<'_> {
    /// A token and how long it lives.
    pub(super) async fn fetch_token(
        &self,
        wanted: &Wanted,
        credential: &Credential,
    ) -> Result<(Secret, Duration), Fault> {
        let place = Url::parse(&wanted.realm).map_err(|_| {
            let line = fault::request_line("GET", &self.host.base);
            Fault::settled(broken(&line, Some(401), "the token realm is no URL"))
        })?;
        let question = ask(&place, wanted, credential)?;
        let line = fault::request_line(question.method.as_str(), &place);
        let (status, headers, body) = self.put_question(&question, &place, &line).await?;
        let scopes = wanted.scopes.join(" ");
        if status != 200 {
            let mut unread = fault::refused(&line, status, &body, &format!("a token for {scopes}"));
            if matches!((status, credential), (400, Credential::Identity(_))) {
                // OAuth 2 says invalid_grant so.
                unread.reason = Verified::RegistryUnauthorized;
            }
            let transient = fault::is_transient(status);
            let retry_after = transient.then(|| retry::after(&headers)).flatten();
            return Err(Fault { unread, transient, unreachable: false, retry_after });
        }
        let odd =
            |why: &str| Fault::settled(broken(&line, Some(status), format!("the token endpoint {why}")));
        let granted: Granted =
            serde_json::from_slice(&body).map_err(|_| odd("answers something that is no token"))?;
        let given = |token: Option<String>| token.filter(|t| !t.is_empty());
        match given(granted.token).or_else(|| given(granted.access_token)) {
            Some(token) => {
                let lifetime = granted.expires_in.map_or(TOKEN_LIFETIME, Duration::from_secs);
                // A year is for ever in a run, and the clock can add it.
                Ok((Secret::new(token), lifetime.min(Duration::from_secs(365 * 24 * 3600))))
            }
            None => {
                let why = format!("the token endpoint grants no token for {scopes}");
                let unread = fault::unread(Verified::RegistryUnauthorized, &line, Some(status), why, false);
                Err(Fault::settled(unread))
            }
        }
    }

    /// Sends it, and follows redirects: each place is judged anew, and only the realm itself gets credentials.
    async fn put_question(
        &self,
        question: &Question,
        place: &Url,
        line: &str,
    ) -> Result<(u16, header::HeaderMap, bytes::Bytes), Fault> {
        let deep = *self.host.depth.get_or_init(|| realm::depth_of(&self.host.base)).await;
        let mut url = question.url.clone();
        for _ in 0..=self.limits.redirects {
            let reach = realm::check(&url, &self.host.base, deep)
                .map_err(|why| Fault::settled(broken(line, Some(401), why)))?;
            let client = self.clients.get(self.host.ca_file.as_deref(), reach).map_err(|why| {
                Fault::settled(fault::unread(Verified::RegistryUnreachable, line, None, why, false))
            })?;
            let mut request = client.request(question.method.clone(), url.clone());
            let home = same_origin(&url, place);
            if let Some(authorization) = question.authorization.as_ref().filter(|_| home) {
                request = request.header(header::AUTHORIZATION, authorization);
            }
            if let Some(form) = &question.form {
                if !home {
                    let why = "the token endpoint redirects to another host, which gets no identity token";
                    return Err(Fault::settled(broken(line, None, why)));
                }
                request = request
                    .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
                    .body(form.clone());
            }
            let response = self.exchange(request, &question.method, &url, line, false).await?;
            let Some(target) = redirect_target(&question.method, &response) else {
                let (status, headers) = (response.status().as_u16(), response.headers().clone());
                let body = match status {
                    200 => self.read(response, line, self.limits.token).await?,
                    _ => self.read_beginning(response, line).await?,
                };
                return Ok((status, headers, body));
            };
            let next = url.join(&target).ok().filter(|next| may_follow(&url, next));
            url = next.ok_or_else(|| {
                Fault::settled(broken(line, None, "the token endpoint redirects to where it must not"))
            })?;
        }
        Err(Fault::settled(broken(line, None, "the token endpoint redirects without end")))
    }
}

fn ask(place: &Url, wanted: &Wanted, credential: &Credential) -> Result<Question, Fault> {
    match credential {
        Credential::Identity(token) => {
            let mut form = Serializer::new(String::new());
            form.append_pair("grant_type", "refresh_token");
            form.append_pair("client_id", CLIENT_ID);
            if let Some(service) = &wanted.service {
                form.append_pair("service", service);
            }
            form.append_pair("scope", &wanted.scopes.join(" "));
            form.append_pair("refresh_token", token.reveal());
            let form = Some(form.finish());
            Ok(Question { method: Method::POST, url: place.clone(), form, authorization: None })
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
                    Some(sensitive(&format!("Basic {pair}"), &fault::request_line("GET", place))?)
                }
                Credential::Anonymous | Credential::Registry(_) | Credential::Identity(_) => None,
            };
            Ok(Question { method: Method::GET, url, form: None, authorization })
        }
    }
}
