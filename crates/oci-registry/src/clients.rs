//! The HTTP clients: certificate roots, proxies, time-outs. One pool per set of certificate authorities.
//!
//! These clients do not follow redirects and do not request compressed bodies: `http` decides about redirects, and a
//! limit on bytes must limit the bytes that were sent.

use crate::config::{ConfigError, RegistriesConfig, RegistryEnvironment, RegistryLimits};
use crate::realm::{Guarded, Reach};
use reqwest::{Certificate, Client, NoProxy, Proxy};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use url::Url;

/// The properties that distinguish clients: certificate authorities, and the allowed hosts.
type ClientKind = (Option<PathBuf>, Reach);

#[derive(Debug)]
pub(crate) struct Clients {
    agent: String,
    environment: RegistryEnvironment,
    limits: RegistryLimits,
    made: Mutex<HashMap<ClientKind, Result<Client, String>>>,
    /// Hosts of the proxies.
    proxies: Arc<HashSet<String>>,
}

impl Clients {
    pub(crate) fn new(config: &RegistriesConfig) -> Self {
        let (environment, limits) = (config.environment.clone(), config.limits.clone());
        let proxies = [&environment.https_proxy, &environment.http_proxy].into_iter().flatten();
        let hosts = proxies.filter_map(|p| Url::parse(p).ok()?.host_str().map(str::to_owned));
        let proxies = Arc::new(hosts.collect());
        Self { agent: config.agent().to_owned(), environment, limits, made: Mutex::default(), proxies }
    }

    /// Our name in requests to a token endpoint.
    pub(crate) fn name(&self) -> &str {
        self.agent.split('/').next().unwrap_or_default()
    }

    /// The client that trusts the system's authorities and those of `ca_file`, and goes no further than `reach`.
    ///
    /// # Errors
    /// Says which file or variable cannot be used.
    pub(crate) fn get(&self, ca_file: Option<&Path>, reach: Reach) -> Result<Client, String> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.entry((ca_file.map(Path::to_owned), reach))
            .or_insert_with(|| self.make_client(ca_file, reach))
            .clone()
    }

    fn make_client(&self, ca_file: Option<&Path>, reach: Reach) -> Result<Client, String> {
        let mut extra = Vec::new();
        if let Some(file) = ca_file {
            extra = read_certificates(file).map_err(|why| format!("caFile {}: {why}", file.display()))?;
        }
        if let Some(file) = &self.environment.ssl_cert_file {
            extra.extend(
                read_certificates(file).map_err(|why| format!("SSL_CERT_FILE {}: {why}", file.display()))?,
            );
            return self.build_client(extra, true, reach);
        }
        // A machine without any authorities (a minimal container) can still use plain HTTP.
        self.build_client(extra.clone(), false, reach).or_else(|_| self.build_client(extra, true, reach))
    }

    fn build_client(
        &self,
        certificates: Vec<Certificate>,
        only: bool,
        reach: Reach,
    ) -> Result<Client, String> {
        let builder = Client::builder()
            .user_agent(&self.agent)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .http1_only()
            .connect_timeout(self.limits.connect)
            .no_proxy();
        let mut builder = match only {
            true => builder.tls_certs_only(certificates),
            false => builder.tls_certs_merge(certificates),
        };
        if let Reach::UpTo(depth) = reach {
            builder = builder.dns_resolver(Guarded { depth, trusted: Arc::clone(&self.proxies) });
        }
        let except = self.environment.no_proxy.as_deref().and_then(NoProxy::from_string);
        if let Some(proxy) = &self.environment.https_proxy {
            let proxy = Proxy::https(proxy).map_err(|_| "HTTPS_PROXY is not a URL".to_owned())?;
            builder = builder.proxy(proxy.no_proxy(except.clone()));
        }
        if let Some(proxy) = &self.environment.http_proxy {
            let proxy = Proxy::http(proxy).map_err(|_| "HTTP_PROXY is not a URL".to_owned())?;
            builder = builder.proxy(proxy.no_proxy(except));
        }
        builder.build().map_err(|e| format!("no HTTP client: {e}"))
    }
}

/// Every certificate of a PEM file.
fn read_certificates(file: &Path) -> Result<Vec<Certificate>, String> {
    let pem = std::fs::read(file).map_err(|e| e.to_string())?;
    let list = Certificate::from_pem_bundle(&pem).map_err(|_| "not PEM certificates".to_owned())?;
    if list.is_empty() {
        return Err("holds no PEM certificate".into());
    }
    Ok(list)
}

/// Checks a `caFile` of the settings before any request.
///
/// # Errors
/// Names the file.
pub(crate) fn check_ca_file(registry: &str, file: &Path) -> Result<(), ConfigError> {
    read_certificates(file).map(|_| ()).map_err(|why| ConfigError {
        code: "registry-ca-file",
        registry: registry.to_owned(),
        field: Some("caFile"),
        cause: format!("{}: {why}", file.display()),
        hint: Some("name a PEM file with the certificate of the authority that signed the registry's"),
    })
}
