//! Connects to an API server: with a kubeconfig's context, or with the service account of the surrounding Pod.

use crate::error::{At, Failure};
use git_commits::Environment;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Folder of the service account in a Pod.
pub const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// Longest wait for the next part of a response.
const ANSWER: Duration = Duration::from_secs(60);

/// A client for one API server.
#[derive(Clone)]
pub struct Connection {
    /// Its name in messages: `cluster <context>`.
    pub name: String,
    /// Asks.
    pub client: Client,
}

/// How to reach API servers.
#[derive(Debug, Clone)]
pub struct ClusterAccess {
    /// The environment, for `KUBECONFIG` and the home folder.
    pub environment: Environment,
    /// Base folder for relative paths in `KUBECONFIG`.
    pub working: PathBuf,
    /// Folder of the service account ([`SERVICE_ACCOUNT`]).
    pub account: PathBuf,
    /// Longest wait for the next part of a response; 60 s when absent.
    pub timeout: Option<Duration>,
}

impl ClusterAccess {
    /// Prepares a client for `context` (`None`: the current one; without any kubeconfig, the cluster around
    /// this Pod). Sends no request. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// There is no such context, neither a kubeconfig nor a Pod, or the kubeconfig cannot be read.
    pub async fn open_connection(&self, context: Option<&str>) -> Result<Connection, Failure> {
        let (name, mut config) = match (self.read_kubeconfig()?, context) {
            (Some((kubeconfig, files)), context) => {
                self.build_from_kubeconfig(kubeconfig, context, &files).await?
            }
            (None, None) if self.environment.get("KUBERNETES_SERVICE_HOST").is_some() => {
                self.build_from_pod()?
            }
            (None, context) => {
                let cause = "there is no kubeconfig, and this is not a Pod with a service account";
                let what = context.map_or("the cluster".to_owned(), |c| format!("cluster {c}"));
                return Err(Failure::new_input("no-kubeconfig", cause)
                    .with_object(what)
                    .with_hint("set KUBECONFIG, or write ~/.kube/config"));
            }
        };
        config.connect_timeout = Some(CONNECT);
        config.read_timeout = Some(self.timeout.unwrap_or(ANSWER));
        config.reset_reader_on_write = true;
        // The crate would wait as long as a server asks for, without limit; the waits of `ask` are bounded.
        config.default_retry = false;
        let name = format!("cluster {name}");
        let client = Client::try_from(config).map_err(|error| {
            Failure::new_input("kubeconfig", format_reason(&error)).with_object(name.clone())
        })?;
        Ok(Connection { name, client })
    }

    /// All files of `KUBECONFIG`, otherwise `~/.kube/config` if it exists, merged; with their names.
    fn read_kubeconfig(&self) -> Result<Option<(Kubeconfig, String)>, Failure> {
        let given = self.environment.get_path("KUBECONFIG");
        let files: Vec<PathBuf> = match &given {
            Some(list) => std::env::split_paths(list)
                .filter(|path| !path.as_os_str().is_empty())
                .map(|path| self.working.join(path))
                .collect(),
            None => {
                let home = self.environment.find_home().map(|home| home.join(".kube/config"));
                home.filter(|file| file.exists()).into_iter().collect()
            }
        };
        let mut merged: Option<Kubeconfig> = None;
        let shown: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        for (file, shown) in files.iter().zip(&shown) {
            let wrong = |error: kube::config::KubeconfigError| {
                Failure::new_input("kubeconfig", format_chain(&error))
                    .with_object("the kubeconfig")
                    .with_place(At::from_file(shown.clone()))
            };
            let one = Kubeconfig::read_from(file).map_err(wrong)?;
            merged = Some(match merged {
                Some(before) => before.merge(one).map_err(wrong)?,
                None => one,
            });
        }
        Ok(merged.map(|kubeconfig| (kubeconfig, shown.join(", "))))
    }

    async fn build_from_kubeconfig(
        &self,
        kubeconfig: Kubeconfig,
        context: Option<&str>,
        files: &str,
    ) -> Result<(String, Config), Failure> {
        let at = || At::from_file(files.to_owned());
        let Some(name) = context.map(str::to_owned).or_else(|| kubeconfig.current_context.clone()) else {
            return Err(Failure::new_input("no-context", "it has no current context")
                .with_object("the kubeconfig")
                .with_place(at())
                .with_hint("name one with --context"));
        };
        let Some(named) = kubeconfig.contexts.iter().find(|c| c.name == name) else {
            let known: Vec<&str> = kubeconfig.contexts.iter().map(|c| c.name.as_str()).collect();
            return Err(Failure::new_input("no-context", format!("it has no context {name}"))
                .with_object("the kubeconfig")
                .with_place(at())
                .with_hint(format!("it has: {}", known.join(", "))));
        };
        let cluster = named.context.as_ref().map(|c| c.cluster.clone()).unwrap_or_default();
        let own_proxy = kubeconfig.clusters.iter().find(|c| c.name == cluster).is_some_and(|c| {
            c.cluster.as_ref().and_then(|c| c.proxy_url.as_ref()).is_some_and(|p| !p.is_empty())
        });
        let options = KubeConfigOptions { context: Some(name.clone()), ..KubeConfigOptions::default() };
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| {
            Failure::new_input("kubeconfig", format_chain(&error))
                .with_object(format!("context {name}"))
                .with_place(at())
        })?;
        if !own_proxy {
            // The crate would compare the proxy's own host with NO_PROXY.
            config.proxy_url = match self.find_proxy(&config) {
                Some((variable, proxy)) => Some(
                    proxy
                        .parse()
                        .map_err(|_| Failure::new_input("proxy", "it is not a URL").with_object(variable))?,
                ),
                None => None,
            };
        }
        Ok((name, config))
    }

    /// The proxy of HTTPS_PROXY, unless NO_PROXY names the API server's host.
    fn find_proxy(&self, config: &Config) -> Option<(&'static str, &str)> {
        if config.cluster_url.scheme_str() != Some("https")
            || self.environment.bypasses_proxy(config.cluster_url.host().unwrap_or_default())
        {
            return None;
        }
        ["https_proxy", "HTTPS_PROXY"].into_iter().find_map(|name| Some((name, self.environment.get(name)?)))
    }

    /// The service account of the Pod that this runs in.
    fn build_from_pod(&self) -> Result<(String, Config), Failure> {
        let wrong = |cause: String| {
            Failure::new_input("service-account", cause).with_object("the Pod's service account")
        };
        let host = self.environment.get("KUBERNETES_SERVICE_HOST").unwrap_or_default();
        let port = self.environment.get("KUBERNETES_SERVICE_PORT").unwrap_or("443");
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let url = format!("https://{host}:{port}");
        let uri = url.parse().map_err(|_| wrong(format!("{url} is not a valid address of an API server")))?;
        let token = self.account.join("token");
        for file in [&token, &self.account.join("ca.crt")] {
            check_readable(file).map_err(&wrong)?;
        }
        let mut config = Config::new(uri);
        config.root_cert_file = Some(self.account.join("ca.crt"));
        config.auth_info = AuthInfo { token_file: Some(token.display().to_string()), ..AuthInfo::default() };
        Ok(("in-cluster".to_owned(), config))
    }
}

fn check_readable(file: &Path) -> Result<(), String> {
    match std::fs::metadata(file) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{}: {error}", file.display())),
    }
}

/// The cause of an error, without the input and the standard output of a credential plugin.
pub fn format_reason(error: &kube::Error) -> String {
    let words = format_error(error);
    // The HTTP library's message, which does not name the proxy.
    if words.contains("proxy authorization required") {
        return "the proxy (HTTPS_PROXY, or proxy-url in the kubeconfig) requires credentials, or refused \
                the given ones (HTTP 407)"
            .to_owned();
    }
    words
}

fn format_error(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => match status.message.trim() {
            "" => format!("HTTP {} {}", status.code, status.reason),
            message => format!("{message} (HTTP {})", status.code),
        },
        kube::Error::Auth(error) => format_credential_error(error),
        kube::Error::Service(error) => match error.downcast_ref::<kube::client::AuthError>() {
            Some(error) => format_credential_error(error),
            None => format_chain(error.as_ref()),
        },
        other => format_chain(other),
    }
}

fn format_credential_error(error: &kube::client::AuthError) -> String {
    match error {
        kube::client::AuthError::AuthExecRun { out, .. } => {
            let said = String::from_utf8_lossy(&out.stderr);
            let said = said.trim().lines().next_back().unwrap_or_default();
            let colon = if said.is_empty() { "" } else { ": " };
            format!("the credential plugin ended with {}{colon}{said}", out.status)
        }
        other => format_chain(other),
    }
}

/// An error with its causes, without repetition.
fn format_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let said = inner.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = inner.source();
    }
    text
}
