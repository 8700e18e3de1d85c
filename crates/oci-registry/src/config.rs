//! The configuration of this crate: settings per registry, limits and times, and the environment's values.
//!
//! The caller passes everything; nothing in this crate reads the process environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// The User-Agent of requests if the caller gives none.
const AGENT: &str = concat!("oci-registry/", env!("CARGO_PKG_VERSION"));

/// All that [`super::Registries`] needs to know.
#[derive(Debug, Clone, Default)]
pub struct RegistriesConfig {
    /// By `host[:port]` as written in an `ociRef`; a registry that is not listed has the defaults.
    pub hosts: BTreeMap<String, HostConfig>,
    /// Caps, time-outs, budgets.
    pub limits: RegistryLimits,
    /// Folder for blobs between runs; each is hashed again before use.
    pub cache_dir: Option<PathBuf>,
    /// Send no HTTP requests; image layout folders can still be read.
    pub offline: bool,
    /// Credentials, certificate roots and proxies, as the environment names them.
    pub environment: RegistryEnvironment,
    /// Who asks, `name/version`: the User-Agent of every request; the name is the client of a token request.
    /// Empty: this crate.
    pub agent: String,
}

/// A setting of a registry that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// Stable: `registry-url`, `registry-ca-file`.
    pub code: &'static str,
    /// The registry, as the settings name it.
    pub registry: String,
    /// The member of [`HostConfig`] as settings write it (`mirror`, `caFile`); `None`: the registry's own name.
    pub field: Option<&'static str>,
    /// Why.
    pub cause: String,
    /// What to do next.
    pub hint: Option<&'static str>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "registry {}: ", self.registry)?;
        if let Some(field) = self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.cause)
    }
}

impl std::error::Error for ConfigError {}

impl RegistriesConfig {
    /// Who asks, `name/version`.
    pub(crate) fn agent(&self) -> &str {
        if self.agent.is_empty() { AGENT } else { &self.agent }
    }
}

/// Settings of one registry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostConfig {
    /// `http://` instead of `https://`.
    pub plain_http: bool,
    /// Address to use instead: `https://host[:port]` or `http://host[:port]`. The registry's own credentials are
    /// never sent there; the mirror's (looked up under its own host) are.
    pub mirror: Option<String>,
    /// A folder to use instead of the registry: one OCI image layout per repository, in the sub-folder of its path.
    pub layout: Option<PathBuf>,
    /// PEM file of certificate authorities, trusted in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// Requests at once.
    pub concurrency: Option<NonZeroUsize>,
    /// Nothing is written there.
    pub read_only: bool,
}

/// Caps, time-outs and budgets (`docs/design/evidence.md#limits`). Tests shrink them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryLimits {
    /// Largest manifest or page of a list, bytes.
    pub manifest: u64,
    /// Largest answer of a token endpoint, bytes.
    pub token: u64,
    /// How much of an error's body is read, in bytes.
    pub error_body: u64,
    /// Referrers of one digest.
    pub candidates: usize,
    /// Pages of one list.
    pub pages: usize,
    /// Redirects of one request.
    pub redirects: usize,
    /// Longest time until a connection is established.
    pub connect: Duration,
    /// Longest time without a byte from the registry.
    pub idle: Duration,
    /// Active time of one artifact (see [`super::Registries::with_artifact_budget`]), waiting for a free slot excluded.
    pub artifact: Duration,
    /// Tries of one request.
    pub tries: u32,
    /// Pause before the second try; it doubles for each later one. `Retry-After` takes precedence.
    pub backoff: Duration,
    /// How long an unreachable registry is not tried again.
    pub hold_off: Duration,
    /// Longest time of a credential helper.
    pub helper: Duration,
    /// Requests at once, per registry.
    pub concurrency: NonZeroUsize,
    /// Tries to enter a record in a fallback index.
    pub index_tries: u32,
    /// Shortest pause before the fallback index is read back once more, to see whether another writer
    /// has overwritten it.
    pub settle: Duration,
}

/// Sixteen requests at once, per registry.
const CONCURRENCY: NonZeroUsize = match NonZeroUsize::new(16) {
    Some(n) => n,
    None => NonZeroUsize::MIN,
};

impl Default for RegistryLimits {
    fn default() -> Self {
        Self {
            manifest: 4 << 20,
            token: 1 << 20,
            error_body: 64 << 10,
            candidates: 1000,
            pages: 50,
            redirects: 5,
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(20),
            artifact: Duration::from_secs(120),
            tries: 4,
            backoff: Duration::from_millis(500),
            hold_off: Duration::from_secs(30),
            helper: Duration::from_secs(20),
            concurrency: CONCURRENCY,
            index_tries: 8,
            settle: Duration::from_millis(250),
        }
    }
}

/// The values of the environment that are used here, passed in by the caller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegistryEnvironment {
    /// `DOCKER_CONFIG`: folder of docker's `config.json`.
    pub docker_config: Option<PathBuf>,
    /// `HOME`: `~/.docker/config.json` where `DOCKER_CONFIG` is not set.
    pub home: Option<PathBuf>,
    /// `REGISTRY_AUTH_FILE`: Podman's.
    pub registry_auth_file: Option<PathBuf>,
    /// `XDG_RUNTIME_DIR`: `containers/auth.json` below it is Podman's too.
    pub xdg_runtime_dir: Option<PathBuf>,
    /// `PATH`: where credential helpers are looked for.
    pub path: Option<OsString>,
    /// `SSL_CERT_FILE`: certificate authorities instead of the system's.
    pub ssl_cert_file: Option<PathBuf>,
    /// `HTTPS_PROXY`, else `ALL_PROXY` (or lower case).
    pub https_proxy: Option<String>,
    /// `http_proxy`, else `ALL_PROXY`. Upper-case `HTTP_PROXY` counts outside CGI only.
    pub http_proxy: Option<String>,
    /// `NO_PROXY` (or lower case): comma-separated hosts, domains, addresses.
    pub no_proxy: Option<String>,
}

impl RegistryEnvironment {
    /// Picks the values that matter out of an environment. An empty value counts as not set.
    ///
    /// ```
    /// use oci_registry::RegistryEnvironment;
    /// let e = RegistryEnvironment::from_vars(|name| (name == "HOME").then(|| "/home/cook".into()));
    /// assert_eq!(e.home.as_deref(), Some(std::path::Path::new("/home/cook")));
    /// assert_eq!(e.docker_config, None);
    /// ```
    #[must_use]
    pub fn from_vars(var: impl Fn(&str) -> Option<OsString>) -> Self {
        let any = |names: &[&str]| names.iter().find_map(|n| var(n).filter(|v| !v.is_empty()));
        let path = |name: &str| any(&[name]).map(PathBuf::from);
        let text = |names: &[&str]| any(names).and_then(|v| v.into_string().ok());
        let http = if var("REQUEST_METHOD").is_some() {
            text(&["http_proxy", "all_proxy", "ALL_PROXY"])
        } else {
            text(&["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
        };
        Self {
            docker_config: path("DOCKER_CONFIG"),
            home: path("HOME"),
            registry_auth_file: path("REGISTRY_AUTH_FILE"),
            xdg_runtime_dir: path("XDG_RUNTIME_DIR"),
            path: any(&["PATH"]),
            ssl_cert_file: path("SSL_CERT_FILE"),
            https_proxy: text(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
            http_proxy: http,
            no_proxy: text(&["no_proxy", "NO_PROXY"]),
        }
    }
}
