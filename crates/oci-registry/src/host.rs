//! The connection to one registry: its address, client, number of parallel requests, and what was learnt about it.

use crate::answer::Unread;
use crate::auth::Auth;
use crate::clients::Clients;
use crate::config::{ConfigError, HostConfig, RegistryLimits};
use crate::credentials::RegistryCredentials;
use crate::realm::{Depth, Reach};
use reqwest::Client;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex as AsyncMutex, OnceCell, Semaphore};
use url::Url;

/// Docker Hub has another address than its name.
const DOCKER_HUB: &str = "registry-1.docker.io";

#[derive(Debug)]
pub(crate) struct Host {
    /// `scheme://host[:port]/`.
    pub base: Url,
    /// The client, or why there is none.
    pub client: Result<Client, String>,
    /// Our authentication at this registry.
    pub auth: Auth,
    /// Certificate authorities of this registry.
    pub ca_file: Option<PathBuf>,
    /// Its place in the network (public or private), for checking its token realm.
    pub depth: OnceCell<Depth>,
    /// Requests at once.
    pub slots: Semaphore,
    no_referrers_api: AtomicBool,
    hold: Mutex<Option<(Instant, Unread)>>,
    turns: Mutex<HashMap<String, Arc<AsyncMutex<()>>>>,
}

impl Host {
    /// The registry of this name. Its credentials are looked up under its name; a mirror's under the mirror's.
    ///
    /// # Errors
    /// As [`base`].
    pub(crate) fn new(
        registry: &str,
        config: &HostConfig,
        limits: &RegistryLimits,
        clients: &Clients,
        credentials: &Arc<RegistryCredentials>,
    ) -> Result<Self, ConfigError> {
        let base = resolve_base(registry, config)?;
        let owner = match &config.mirror {
            Some(_) => format_authority(&base),
            None => registry.to_owned(),
        };
        let slots = config.concurrency.unwrap_or(limits.concurrency).get().min(Semaphore::MAX_PERMITS);
        Ok(Self {
            client: clients.get(config.ca_file.as_deref(), Reach::Any),
            base,
            auth: Auth::new(owner, Arc::clone(credentials)),
            ca_file: config.ca_file.clone(),
            depth: OnceCell::new(),
            slots: Semaphore::new(slots),
            no_referrers_api: AtomicBool::new(false),
            hold: Mutex::default(),
            turns: Mutex::default(),
        })
    }

    /// Held while the tag of this name is read, changed and written.
    pub(crate) fn find_turn(&self, tag: &str) -> Arc<AsyncMutex<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(turns.entry(tag.to_owned()).or_default())
    }

    /// Whether an earlier answer showed that there is no referrers API here.
    pub(crate) fn has_no_referrers_api(&self) -> bool {
        self.no_referrers_api.load(Ordering::Relaxed)
    }

    /// Remembers that there is no referrers API.
    pub(crate) fn learn_no_referrers_api(&self) {
        self.no_referrers_api.store(true, Ordering::Relaxed);
    }

    /// Why no request should be sent at the moment: the registry is down, or has asked for a long pause.
    pub(crate) fn find_hold(&self) -> Option<Unread> {
        let mut hold = self.hold.lock().unwrap_or_else(PoisonError::into_inner);
        if hold.as_ref().is_some_and(|(until, _)| *until <= Instant::now()) {
            *hold = None;
        }
        hold.as_ref().map(|(_, why)| why.clone())
    }

    /// No request should be sent for this long.
    pub(crate) fn put_on_hold(&self, pause: Duration, why: &Unread) {
        // A pause beyond the range of the clock counts as endless.
        let far = Duration::from_secs(365 * 24 * 3600);
        let until = Instant::now() + pause.min(far);
        *self.hold.lock().unwrap_or_else(PoisonError::into_inner) = Some((until, why.clone()));
    }
}

/// `host[:port]`, the key of its credentials.
fn format_authority(base: &Url) -> String {
    let host = base.host_str().unwrap_or_default();
    base.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// The address of a registry.
///
/// # Errors
/// The mirror is not of the form `http(s)://host[:port]`.
pub(crate) fn resolve_base(registry: &str, config: &HostConfig) -> Result<Url, ConfigError> {
    let wrong = |field: Option<&'static str>, what: &str, why: &str| ConfigError {
        code: "registry-url",
        registry: registry.to_owned(),
        field,
        cause: format!("{what:?} {why}"),
        hint: None,
    };
    if let Some(mirror) = &config.mirror {
        let why = "must be https://host[:port] or http://host[:port], without path, user and query";
        let url = Url::parse(mirror).map_err(|_| wrong(Some("mirror"), mirror, why))?;
        let plain = matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        return if plain { Ok(url) } else { Err(wrong(Some("mirror"), mirror, why)) };
    }
    let host = match registry {
        "docker.io" | "index.docker.io" => DOCKER_HUB,
        other => other,
    };
    let scheme = if config.plain_http { "http" } else { "https" };
    Url::parse(&format!("{scheme}://{host}/")).map_err(|_| wrong(None, registry, "is no host[:port]"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_registry_is_asked_where_the_settings_say() {
        let ask = |registry: &str, plain_http, mirror: Option<&str>| {
            resolve_base(
                registry,
                &HostConfig { plain_http, mirror: mirror.map(str::to_owned), ..HostConfig::default() },
            )
            .map(String::from)
        };
        assert_eq!(ask("r.example", false, None).unwrap(), "https://r.example/");
        assert_eq!(ask("r.example:5000", true, None).unwrap(), "http://r.example:5000/");
        assert_eq!(ask("docker.io", false, None).unwrap(), "https://registry-1.docker.io/");
        assert_eq!(ask("r.example", false, Some("http://127.0.0.1:5000")).unwrap(), "http://127.0.0.1:5000/");
        for mirror in [
            "127.0.0.1:5000",
            "ftp://m.example",
            "https://m.example/v2",
            "https://u:p@m.example",
            "https://m.example/?a",
        ] {
            let failure = ask("r.example", false, Some(mirror)).unwrap_err();
            assert_eq!((failure.code, failure.field), ("registry-url", Some("mirror")), "{mirror}");
        }
    }
}
