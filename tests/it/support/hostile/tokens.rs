//! Who may do what: Basic, and Bearer with tokens per repository and action.

use super::wire::{Answer, Request};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// `(user, repository, action)`; `None`: anonymous.
pub type Grants = Arc<dyn Fn(Option<&str>, &str, &str) -> bool + Send + Sync>;

/// How it wants to know its clients.
#[derive(Clone, Default)]
pub enum Auth {
    /// Not at all.
    #[default]
    Open,
    /// `Basic` on every request.
    Basic,
    /// Tokens from `/token`, or from another realm.
    Bearer {
        /// `None`: `/token` here.
        realm: Option<String>,
    },
}

/// Accounts and issued tokens.
#[derive(Clone)]
pub struct Accounts {
    /// Password by user.
    pub users: BTreeMap<String, String>,
    /// Identity tokens: user by token.
    pub identities: BTreeMap<String, String>,
    /// Who may do what.
    pub grants: Grants,
    /// What each token allows.
    issued: BTreeMap<String, BTreeSet<(String, String)>>,
    /// Member of the token answer.
    pub member: &'static str,
    /// Of the token answer, seconds.
    pub expires_in: Option<u64>,
}

impl Default for Accounts {
    fn default() -> Self {
        Self {
            users: BTreeMap::new(),
            identities: BTreeMap::new(),
            grants: Arc::new(|_, _, _| true),
            issued: BTreeMap::new(),
            member: "token",
            expires_in: Some(300),
        }
    }
}

impl Accounts {
    /// The user of a Basic header; `Err`: a wrong one.
    fn basic(&self, request: &Request) -> Result<Option<String>, ()> {
        let Some(header) = request.header("authorization") else { return Ok(None) };
        let encoded = header.strip_prefix("Basic ").ok_or(())?;
        let pair = String::from_utf8(STANDARD.decode(encoded).map_err(|_| ())?).map_err(|_| ())?;
        let (user, password) = pair.split_once(':').ok_or(())?;
        match self.users.get(user) {
            Some(right) if right == password => Ok(Some(user.to_owned())),
            _ => Err(()),
        }
    }

    /// `None`: go on. Else the refusal.
    pub fn refusal(
        &self,
        auth: &Auth,
        base: &str,
        request: &Request,
        repo: &str,
        action: &str,
    ) -> Option<Answer> {
        match auth {
            Auth::Open => None,
            Auth::Basic => match self.basic(request) {
                Ok(Some(user)) if (self.grants)(Some(&user), repo, action) => None,
                Ok(Some(_)) => Some(Answer::error(403, "DENIED")),
                Ok(None) | Err(()) => Some(
                    Answer::error(401, "UNAUTHORIZED").with("WWW-Authenticate", r#"Basic realm="hostile""#),
                ),
            },
            Auth::Bearer { realm } => {
                let token = request.header("authorization").and_then(|h| h.strip_prefix("Bearer "));
                let allowed = token
                    .and_then(|t| self.issued.get(t))
                    .is_some_and(|scopes| scopes.contains(&(repo.to_owned(), action.to_owned())));
                if allowed {
                    return None;
                }
                let actions = if action == "push" { "pull,push" } else { "pull" };
                let realm = realm.clone().unwrap_or_else(|| format!("{base}/token"));
                let challenge = format!(
                    r#"Bearer realm="{realm}",service="hostile",scope="repository:{repo}:{actions}",error="invalid_token""#
                );
                Some(Answer::error(401, "UNAUTHORIZED").with("WWW-Authenticate", challenge))
            }
        }
    }

    /// The token endpoint.
    pub fn token(&mut self, request: &Request) -> Answer {
        let (user, scopes) = if request.method == "POST" {
            let form: BTreeMap<String, String> =
                url::form_urlencoded::parse(&request.body).into_owned().collect();
            let given = form.get("refresh_token").cloned().unwrap_or_default();
            match self.identities.get(&given) {
                Some(user) if form.get("grant_type").map(String::as_str) == Some("refresh_token") => {
                    (Some(user.clone()), form.get("scope").cloned().into_iter().collect())
                }
                _ => return Answer::error(401, "UNAUTHORIZED"),
            }
        } else {
            match self.basic(request) {
                Ok(user) => (user, request.query("scope")),
                Err(()) => return Answer::error(401, "UNAUTHORIZED"),
            }
        };
        let mut granted = BTreeSet::new();
        for scope in scopes.iter().flat_map(|s: &String| s.split(' ')) {
            let Some((repo, actions)) = scope.strip_prefix("repository:").and_then(|s| s.rsplit_once(':'))
            else {
                continue;
            };
            for action in actions.split(',') {
                if (self.grants)(user.as_deref(), repo, action) {
                    granted.insert((repo.to_owned(), action.to_owned()));
                }
            }
        }
        let token = format!("granted-{}", self.issued.len());
        self.issued.insert(token.clone(), granted);
        let mut body = serde_json::json!({ self.member: token });
        if let Some(seconds) = self.expires_in {
            body["expires_in"] = seconds.into();
        }
        Answer::new(200, "application/json", body.to_string())
    }

    /// No token is known any more.
    pub fn forget_tokens(&mut self) {
        for scopes in self.issued.values_mut() {
            scopes.clear();
        }
    }
}
