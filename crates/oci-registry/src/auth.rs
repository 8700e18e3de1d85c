//! Authentication at a registry: answers challenges, and keeps tokens per repository and action.
//!
//! No token is requested before a registry sends a challenge. Concurrent requests share one token: the first fetches
//! it, the others wait. Credentials are sent to the registry in the settings and to the token endpoint that it names
//! (within the rules of `realm`), never to the target of a redirect.

use crate::answer::UnreadReason;
use crate::challenge::{self, Challenge};
use crate::credentials::{Credential, RegistryCredentials};
use crate::fault::{self, RequestFault};
use crate::http::{RegistrySession, Reply};
use crate::secret::RegistrySecret;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{self, HeaderValue};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Mutex as AsyncMutex;

/// What a request does to a repository; tokens for reading and for writing are separate, so that a denied one does not
/// affect the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    Pull,
    Push,
}

impl Action {
    /// Its name in scopes (distribution's token specification).
    pub(crate) fn scope(self) -> &'static str {
        match self {
            Self::Pull => "pull",
            Self::Push => "pull,push",
        }
    }
}

/// How a registry authenticates clients, as learnt from its responses.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Scheme {
    /// No response was seen yet.
    Unknown,
    /// It responded without a challenge.
    Open,
    Basic,
    Bearer {
        realm: String,
        service: Option<String>,
    },
}

type TokenSlot = Arc<AsyncMutex<TokenState>>;

/// One token, or why there is none.
#[derive(Debug, Default)]
enum TokenState {
    #[default]
    None,
    Good {
        token: RegistrySecret,
        until: Instant,
    },
    /// No request is sent before this time.
    Refused {
        why: crate::answer::Unread,
        until: Instant,
    },
}

/// The challenges of one registry, and our tokens for it.
#[derive(Debug)]
pub(crate) struct Auth {
    /// The name for looking up credentials: the registry's, or the mirror's.
    owner: String,
    credentials: Arc<RegistryCredentials>,
    scheme: Mutex<Scheme>,
    /// Held by the first request to a registry, so that one challenge is enough.
    pub(crate) first: AsyncMutex<()>,
    tokens: Mutex<HashMap<(String, Action), TokenSlot>>,
    /// The scope of each repository's last challenge.
    scopes: Mutex<HashMap<(String, Action), String>>,
}

/// The header to send.
#[derive(Debug, Clone)]
pub(crate) struct RegistryAuthorization {
    pub header: HeaderValue,
    /// It was fetched for this request: if it is refused, another one would be refused too.
    pub fresh: bool,
}

impl Auth {
    pub(crate) fn new(owner: String, credentials: Arc<RegistryCredentials>) -> Self {
        Self {
            owner,
            credentials,
            scheme: Mutex::new(Scheme::Unknown),
            first: AsyncMutex::default(),
            tokens: Mutex::default(),
            scopes: Mutex::default(),
        }
    }

    /// Whether no response has been seen yet.
    pub(crate) fn is_unknown(&self) -> bool {
        self.scheme() == Scheme::Unknown
    }

    fn scheme(&self) -> Scheme {
        self.scheme.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn learn_scheme(&self, scheme: Scheme) {
        *self.scheme.lock().unwrap_or_else(PoisonError::into_inner) = scheme;
    }

    /// The first response was not a challenge; a later request may still get one.
    pub(crate) fn learn_nothing(&self) {
        let mut scheme = self.scheme.lock().unwrap_or_else(PoisonError::into_inner);
        if *scheme == Scheme::Unknown {
            *scheme = Scheme::Open;
        }
    }

    /// Learns from a response of the registry itself; `true`: it was a challenge that can be answered.
    pub(crate) fn accept_challenge(&self, reply: &Reply, path: &str, action: Action) -> bool {
        let headers = reply.headers.get_all(header::WWW_AUTHENTICATE);
        let challenge = match reply.status {
            401 => challenge::choose_challenge(headers.iter().filter_map(|v| v.to_str().ok())),
            _ => None,
        };
        match challenge {
            Some(Challenge::Bearer { realm, service, scope }) => {
                if let Some(scope) = scope {
                    let mut scopes = self.scopes.lock().unwrap_or_else(PoisonError::into_inner);
                    scopes.insert((path.to_owned(), action), scope);
                }
                self.learn_scheme(Scheme::Bearer { realm, service });
                true
            }
            Some(Challenge::Basic) => {
                self.learn_scheme(Scheme::Basic);
                true
            }
            None => {
                self.learn_nothing();
                false
            }
        }
    }

    /// Our own scope, and the challenge's if the registry knows the repository by another name. Never more actions than
    /// needed, because a request with a forbidden action may be refused completely.
    fn collect_scopes(&self, path: &str, action: Action) -> Vec<String> {
        let own = format!("repository:{path}:{}", action.scope());
        let scopes = self.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        let challenged = scopes.get(&(path.to_owned(), action)).cloned();
        let named = format!("repository:{path}:");
        let other = challenged.filter(|s| !s.is_empty() && !s.starts_with(&named));
        [own].into_iter().chain(other).collect()
    }

    fn find_slot(&self, path: &str, action: Action) -> TokenSlot {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(tokens.entry((path.to_owned(), action)).or_default())
    }
}

impl RegistrySession<'_> {
    /// The header for a request, from what is known of the registry. `refused`: a header that was refused before.
    pub(crate) async fn resolve_authorization(
        &self,
        line: &str,
        action: Action,
        refused: Option<&RegistryAuthorization>,
    ) -> Result<Option<RegistryAuthorization>, RequestFault> {
        let auth = &self.host.auth;
        match auth.scheme() {
            Scheme::Unknown | Scheme::Open => Ok(None),
            Scheme::Basic => {
                let denied = |why: String| {
                    RequestFault::from_unread(fault::make_unread(
                        UnreadReason::Unauthorized,
                        line,
                        Some(401),
                        why,
                        false,
                    ))
                };
                match self.resolve_credential(line).await? {
                    Credential::Basic { user, password } => {
                        let pair = STANDARD.encode(format!("{user}:{}", password.reveal()));
                        Ok(Some(RegistryAuthorization {
                            header: make_sensitive_header(&format!("Basic {pair}"), line)?,
                            fresh: true,
                        }))
                    }
                    Credential::Anonymous => Err(denied(format!(
                        "the registry wants a login and none is known for {}",
                        auth.owner
                    ))),
                    Credential::Identity(_) | Credential::Registry(_) => Err(denied(format!(
                        "the registry wants user and password, and only a token is known for {}",
                        auth.owner
                    ))),
                }
            }
            Scheme::Bearer { realm, service } => {
                let credential = self.resolve_credential(line).await?;
                if let Credential::Registry(token) = &credential {
                    return Ok(Some(RegistryAuthorization {
                        header: make_bearer_header(token, line)?,
                        fresh: true,
                    }));
                }
                let wanted = WantedToken {
                    realm,
                    service,
                    scopes: auth.collect_scopes(self.repository.path(), action),
                };
                self.resolve_bearer(line, action, wanted, credential, refused).await.map(Some)
            }
        }
    }

    async fn resolve_credential(&self, line: &str) -> Result<Credential, RequestFault> {
        let auth = &self.host.auth;
        auth.credentials.look_up_credential(&auth.owner, self.repository.path()).await.map_err(|why| {
            let why = format!("configuration: {why}");
            RequestFault::from_unread(fault::make_unread(UnreadReason::Unauthorized, line, None, why, false))
        })
    }

    /// The token of this repository and action: a kept one, or a new one that the first request fetches.
    async fn resolve_bearer(
        &self,
        line: &str,
        action: Action,
        wanted: WantedToken,
        credential: Credential,
        refused: Option<&RegistryAuthorization>,
    ) -> Result<RegistryAuthorization, RequestFault> {
        let slot = self.host.auth.find_slot(self.repository.path(), action);
        let mut state = slot.lock().await;
        match &*state {
            TokenState::Good { token, until } if *until > Instant::now() => {
                let header = make_bearer_header(token, line)?;
                if refused.is_none_or(|r| r.header != header) {
                    return Ok(RegistryAuthorization { header, fresh: false });
                }
            }
            TokenState::Refused { why, until } if *until > Instant::now() => {
                return Err(RequestFault::from_unread(why.clone()));
            }
            TokenState::Good { .. } | TokenState::Refused { .. } | TokenState::None => {}
        }
        *state = TokenState::None;
        match self.fetch_token(&wanted, &credential).await {
            Ok((token, lifetime)) => {
                let header = make_bearer_header(&token, line)?;
                // A little early, so that it does not expire on the way.
                let until = Instant::now() + lifetime.mul_f64(0.9);
                *state = TokenState::Good { token, until };
                Ok(RegistryAuthorization { header, fresh: true })
            }
            Err(fault) => {
                if !fault.transient {
                    let until = Instant::now() + self.limits.hold_off;
                    *state = TokenState::Refused { why: fault.unread.clone(), until };
                }
                Err(fault)
            }
        }
    }
}

/// The content of a token request.
#[derive(Debug)]
pub(crate) struct WantedToken {
    pub realm: String,
    pub service: Option<String>,
    pub scopes: Vec<String>,
}

fn make_bearer_header(token: &RegistrySecret, line: &str) -> Result<HeaderValue, RequestFault> {
    make_sensitive_header(&format!("Bearer {}", token.reveal()), line)
}

/// A header that the HTTP library does not print either.
pub(crate) fn make_sensitive_header(text: &str, line: &str) -> Result<HeaderValue, RequestFault> {
    let mut value = HeaderValue::from_str(text).map_err(|_| {
        let why = "configuration: a credential has characters that a header cannot carry";
        RequestFault::from_unread(fault::make_unread(UnreadReason::Unauthorized, line, None, why, false))
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// How long a token lives when its answer does not say (distribution's token specification), and at least.
pub(crate) const TOKEN_LIFETIME: Duration = Duration::from_secs(60);
