//! Credentials from the files and helpers of docker and podman.
//!
//! Order: `$DOCKER_CONFIG/config.json` (else `~/.docker/config.json`), `$REGISTRY_AUTH_FILE`,
//! `$XDG_RUNTIME_DIR/containers/auth.json`. In each: the registry's own helper, else the store, else what is
//! written in the file. A helper that fails is a configuration error that names it, never an anonymous read.

use crate::config::RegistryEnvironment;
use crate::secret::RegistrySecret;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use child_process::{Bounds, ProgramFault, run_program};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::OnceCell;

/// The key under which docker keeps Docker Hub's credentials.
const HUB_KEY: &str = "https://index.docker.io/v1/";
/// Largest output of a helper that is read, in bytes.
const HELPER_OUTPUT: usize = 64 << 10;

/// Known credentials for a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Credential {
    /// Nothing.
    Anonymous,
    /// User and password.
    Basic { user: String, password: RegistrySecret },
    /// A refresh token for the token endpoint.
    Identity(RegistrySecret),
    /// Used directly as Bearer token.
    Registry(RegistrySecret),
}

/// The members of one configuration file that are used.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ConfigFile {
    auths: Option<BTreeMap<String, CredentialEntry>>,
    creds_store: Option<String>,
    cred_helpers: Option<BTreeMap<String, String>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CredentialEntry {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
    registrytoken: Option<String>,
}

impl std::fmt::Debug for CredentialEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Entry(***)")
    }
}

type HelperCell = Arc<OnceCell<HelperAnswer>>;
type HelperAnswer = Result<Option<Credential>, String>;

/// The files, read once, and what helpers have answered.
#[derive(Debug)]
pub(crate) struct RegistryCredentials {
    environment: RegistryEnvironment,
    patience: Duration,
    files: OnceLock<Result<Vec<(PathBuf, ConfigFile)>, String>>,
    /// By helper and server.
    helpers: Mutex<HashMap<(String, String), HelperCell>>,
}

impl RegistryCredentials {
    pub(crate) fn new(environment: RegistryEnvironment, patience: Duration) -> Self {
        Self { environment, patience, files: OnceLock::new(), helpers: Mutex::default() }
    }

    /// The credentials for a repository of a registry.
    ///
    /// # Errors
    /// Names the file or the helper that cannot be used; never shows its content.
    pub(crate) async fn look_up_credential(&self, registry: &str, path: &str) -> Result<Credential, String> {
        let files = self.files.get_or_init(|| self.read_files()).as_ref().map_err(Clone::clone)?;
        let keys = list_keys(registry, path);
        for (file, config) in files {
            let own = keys.iter().find_map(|key| find_by_key(config.cred_helpers.as_ref()?, key));
            if let Some(helper) = own.filter(|h| !h.is_empty()) {
                // The registry's own helper speaks for it alone, as in docker.
                if let Some(known) = self.ask_helper(file, helper, registry).await? {
                    return Ok(known);
                }
                continue;
            }
            if let Some(store) = config.creds_store.as_ref().filter(|s| !s.is_empty())
                && let Some(known) = self.ask_helper(file, store, registry).await?
            {
                return Ok(known);
            }
            for key in &keys {
                let Some(entry) = config.auths.as_ref().and_then(|a| find_by_key(a, key)) else { continue };
                let wrong = |why| format!("{}: the entry of {key} {why}", file.display());
                if let Some(known) = entry.parse_credential().map_err(wrong)? {
                    return Ok(known);
                }
            }
        }
        Ok(Credential::Anonymous)
    }

    fn read_files(&self) -> Result<Vec<(PathBuf, ConfigFile)>, String> {
        let e = &self.environment;
        let docker = match (&e.docker_config, &e.home) {
            (Some(folder), _) => Some(folder.join("config.json")),
            (None, Some(home)) => Some(home.join(".docker/config.json")),
            (None, None) => None,
        };
        let runtime = e.xdg_runtime_dir.as_ref().map(|d| d.join("containers/auth.json"));
        let mut files = Vec::new();
        for path in [docker, e.registry_auth_file.clone(), runtime].into_iter().flatten() {
            match std::fs::read(&path) {
                Ok(bytes) => {
                    // serde's own message could quote a secret from the file.
                    let config = serde_json::from_slice(&bytes)
                        .map_err(|_| format!("{}: not a configuration of registry logins", path.display()))?;
                    files.push((path, config));
                }
                Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
                Err(e) => return Err(format!("{}: {}", path.display(), e.kind())),
            }
        }
        Ok(files)
    }

    /// Asks a helper once per server.
    async fn ask_helper(&self, file: &Path, helper: &str, registry: &str) -> HelperAnswer {
        let server = if is_hub(registry) { HUB_KEY } else { registry };
        let cell = {
            let mut helpers = self.helpers.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(helpers.entry((helper.to_owned(), server.to_owned())).or_default())
        };
        cell.get_or_init(|| async {
            let program = format!("docker-credential-{helper}");
            let known = self.run_helper(&program, server).await;
            known.map_err(|why| format!("credential helper {program}, named in {}, {why}", file.display()))
        })
        .await
        .clone()
    }

    async fn run_helper(&self, program: &str, server: &str) -> HelperAnswer {
        let path = self.find_program(program).ok_or("is not in PATH")?;
        let mut command = Command::new(path);
        command.arg("get").stderr(Stdio::null());
        let (input, bounds) = (server.to_owned(), Bounds { time: self.patience, output: HELPER_OUTPUT });
        let run = tokio::task::spawn_blocking(move || run_program(command, input.as_bytes(), bounds));
        let ended = run.await.map_err(|_| "cannot be waited for")?.map_err(|fault| match fault {
            ProgramFault::Late(_) => "does not answer in time".to_owned(),
            ProgramFault::Absent
            | ProgramFault::Start(_)
            | ProgramFault::TooMuch(_)
            | ProgramFault::Lost(_) => {
                format!("fails: {fault}")
            }
        })?;
        let output = ended.output;
        if !ended.status.success() {
            // In this protocol errors are on stdout.
            return match String::from_utf8_lossy(&output).contains("credentials not found") {
                true => Ok(None),
                false => Err("fails".into()),
            };
        }
        let answer: HelperOutput =
            serde_json::from_slice(&output).map_err(|_| "prints something that is no credentials")?;
        Ok(Some(match answer.username.as_str() {
            "<token>" => Credential::Identity(RegistrySecret::new(answer.secret)),
            _ => Credential::Basic { user: answer.username, password: RegistrySecret::new(answer.secret) },
        }))
    }

    fn find_program(&self, program: &str) -> Option<PathBuf> {
        if program.contains('/') {
            return None;
        }
        let path = self.environment.path.as_ref()?;
        std::env::split_paths(path).map(|folder| folder.join(program)).find(|file| file.is_file())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HelperOutput {
    username: String,
    secret: String,
}

impl CredentialEntry {
    /// `Ok(None)`: the entry exists and is empty, as a store leaves it.
    fn parse_credential(&self) -> Result<Option<Credential>, &'static str> {
        let given = |text: &Option<String>| text.clone().filter(|t| !t.is_empty());
        if let Some(token) = given(&self.registrytoken) {
            return Ok(Some(Credential::Registry(RegistrySecret::new(token))));
        }
        if let Some(token) = given(&self.identitytoken) {
            return Ok(Some(Credential::Identity(RegistrySecret::new(token))));
        }
        if let Some(auth) = given(&self.auth) {
            let lenient =
                GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
            let decoded = GeneralPurpose::new(&STANDARD, lenient).decode(auth.trim());
            let decoded = decoded
                .ok()
                .and_then(|d| String::from_utf8(d).ok())
                .ok_or("has an auth that is not base64")?;
            // Docker pads with NUL.
            let decoded = decoded.trim_end_matches('\0');
            let (user, password) = decoded.split_once(':').ok_or("has an auth without a colon")?;
            return Ok(Some(Credential::Basic {
                user: user.to_owned(),
                password: RegistrySecret::new(password),
            }));
        }
        match (given(&self.username), given(&self.password)) {
            (Some(user), Some(password)) => {
                Ok(Some(Credential::Basic { user, password: RegistrySecret::new(password) }))
            }
            _ => Ok(None),
        }
    }
}

fn is_hub(registry: &str) -> bool {
    matches!(registry, "docker.io" | "index.docker.io" | "registry-1.docker.io")
}

/// The keys under which a repository's credentials may be kept, the most exact first.
fn list_keys(registry: &str, path: &str) -> Vec<String> {
    let hosts: &[&str] = match is_hub(registry) {
        true => &[HUB_KEY, "index.docker.io", "docker.io", "registry-1.docker.io"],
        false => &[registry],
    };
    let mut keys = Vec::new();
    let mut rest = Some(path).filter(|p| !p.is_empty());
    while let Some(part) = rest {
        keys.extend(hosts.iter().filter(|h| !h.contains("://")).map(|host| format!("{host}/{part}")));
        rest = part.rsplit_once('/').map(|(parent, _)| parent);
    }
    keys.extend(hosts.iter().map(|host| (*host).to_owned()));
    keys
}

/// A value by its key: an exact match, otherwise a key that has a scheme, API path or trailing slash in addition.
fn find_by_key<'a, T>(map: &'a BTreeMap<String, T>, key: &str) -> Option<&'a T> {
    map.get(key).or_else(|| map.iter().find(|(k, _)| strip_key(k) == key).map(|(_, v)| v))
}

/// `https://r.example/v2/` → `r.example`; `r.example/team/` → `r.example/team`.
fn strip_key(key: &str) -> &str {
    match key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")) {
        // A URL's path is the API's, not a repository's.
        Some(url) => url.split('/').next().unwrap_or(url),
        None => key.trim_end_matches('/'),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    struct Home {
        folder: tempfile::TempDir,
        environment: RegistryEnvironment,
    }

    impl Home {
        fn new(config: &str) -> Self {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("config.json"), config).unwrap();
            let environment = RegistryEnvironment {
                docker_config: Some(folder.path().to_owned()),
                path: Some(
                    std::env::join_paths([folder.path(), Path::new("/usr/bin"), Path::new("/bin")]).unwrap(),
                ),
                ..RegistryEnvironment::default()
            };
            Self { folder, environment }
        }

        fn helper(&self, name: &str, script: &str) {
            let file = self.folder.path().join(format!("docker-credential-{name}"));
            std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }

        async fn ask(&self, registry: &str, path: &str) -> Result<Credential, String> {
            RegistryCredentials::new(self.environment.clone(), Duration::from_secs(5))
                .look_up_credential(registry, path)
                .await
        }
    }

    fn basic(user: &str, password: &str) -> Result<Credential, String> {
        Ok(Credential::Basic { user: user.into(), password: RegistrySecret::new(password) })
    }

    fn encode(pair: &str) -> String {
        base64::engine::general_purpose::STANDARD.encode(pair)
    }

    #[tokio::test]
    async fn b33_helper_then_store_then_inline() {
        let home = Home::new(&format!(
            r#"{{"credHelpers": {{"a.example": "own"}}, "credsStore": "store", "auths": {{
                "a.example": {{"auth": "{0}"}}, "b.example:5000": {{"auth": "{0}"}}, "c.example": {{"auth": "{0}"}},
                "https://index.docker.io/v1/": {{"auth": "{0}"}}}}}}"#,
            encode("inline:pass:with colon ")
        ));
        home.helper("own", r#"read s; echo "{\"ServerURL\":\"$s\",\"Username\":\"own\",\"Secret\":\"$s\"}""#);
        home.helper(
            "store",
            r#"read s; case $s in c.example) echo '{"Username":"<token>","Secret":"refresh"}';; *) echo "credentials not found in native keychain"; exit 1;; esac"#,
        );
        assert_eq!(home.ask("a.example", "x").await, basic("own", "a.example"));
        assert_eq!(home.ask("b.example:5000", "x").await, basic("inline", "pass:with colon "));
        assert_eq!(
            home.ask("c.example", "x").await,
            Ok(Credential::Identity(RegistrySecret::new("refresh")))
        );
        assert_eq!(home.ask("docker.io", "library/x").await, basic("inline", "pass:with colon "));
        assert_eq!(home.ask("d.example", "x").await, Ok(Credential::Anonymous));
    }

    #[tokio::test]
    async fn case_71_a_helper_that_fails_is_named_and_its_output_is_not() {
        let home = Home::new(r#"{"credHelpers": {"a.example": "h"}}"#);
        let ask = || home.ask("a.example", "x");
        assert!(ask().await.unwrap_err().contains("docker-credential-h, named in"));
        assert!(ask().await.unwrap_err().ends_with("is not in PATH"));
        for (script, end) in [
            ("echo hunter2 garbage", "prints something that is no credentials"),
            ("echo hunter2; exit 3", "fails"),
            ("echo hunter2 >&2; exit 1", "fails"),
            ("echo '{\"Username\":1,\"Secret\":\"hunter2\"}'", "prints something that is no credentials"),
            ("true", "prints something that is no credentials"),
        ] {
            home.helper("h", script);
            let error = ask().await.unwrap_err();
            assert!(error.ends_with(end), "{script}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        home.helper("h", "cat >/dev/null; sleep 60");
        let hasty = RegistryCredentials::new(home.environment.clone(), Duration::from_millis(100));
        assert!(
            hasty
                .look_up_credential("a.example", "x")
                .await
                .unwrap_err()
                .ends_with("does not answer in time")
        );
        home.helper("h", "echo credentials not found in native keychain; exit 1");
        assert_eq!(ask().await, Ok(Credential::Anonymous));
        let sneaky = Home::new(r#"{"credsStore": "../../bin/true"}"#);
        assert!(sneaky.ask("a.example", "x").await.unwrap_err().ends_with("is not in PATH"));
    }

    #[tokio::test]
    async fn a_helper_is_asked_once_per_server() {
        let home = Home::new(r#"{"credsStore": "count"}"#);
        let log = home.folder.path().join("log");
        home.helper(
            "count",
            &format!(
                "cat >> {0}; echo >> {0}; echo '{{\"Username\":\"u\",\"Secret\":\"p\"}}'",
                log.display()
            ),
        );
        let credentials = RegistryCredentials::new(home.environment.clone(), Duration::from_secs(5));
        let all = ["a", "b", "a"].map(|path| credentials.look_up_credential("r.example", path));
        assert!(futures::future::join_all(all).await.iter().all(|c| *c == basic("u", "p")));
        assert_eq!(std::fs::read_to_string(log).unwrap(), "r.example\n");
    }

    #[tokio::test]
    async fn the_longest_matching_repository_wins() {
        let auth = |user: &str| format!(r#"{{"auth": "{}"}}"#, encode(&format!("{user}:p")));
        let home = Home::new("{}");
        let podman = home.folder.path().join("auth.json");
        std::fs::write(
            &podman,
            format!(
                r#"{{"auths": {{"r.example": {}, "r.example/team": {}, "r.example/team/app": {}, "https://s.example/v2/": {}}}}}"#,
                auth("host"), auth("team"), auth("app"), auth("url")
            ),
        )
        .unwrap();
        let home = Home {
            environment: RegistryEnvironment { registry_auth_file: Some(podman), ..home.environment.clone() },
            ..home
        };
        assert_eq!(home.ask("r.example", "team/app").await, basic("app", "p"));
        assert_eq!(home.ask("r.example", "team/application").await, basic("team", "p"));
        assert_eq!(home.ask("r.example", "other").await, basic("host", "p"));
        assert_eq!(home.ask("s.example", "other").await, basic("url", "p"));
        assert_eq!(home.ask("r.example.evil", "team/app").await, Ok(Credential::Anonymous));
        assert_eq!(home.ask("r.example:5000", "team/app").await, Ok(Credential::Anonymous));
    }

    #[tokio::test]
    async fn inline_entries_in_all_their_forms() {
        let home = Home::new(&format!(
            r#"{{"auths": {{"i.example": {{"auth": "{}", "identitytoken": "refresh"}}, "t.example": {{"registrytoken": "bearer"}},
            "p.example": {{"username": "u", "password": "p "}}, "e.example": {{}}, "b.example": {{"auth": "%%%hunter2"}},
            "n.example": {{"auth": "{}"}}, "u.example": {{"auth": "dTpw"}}}}}}"#,
            encode("ignored:"),
            encode("no colon")
        ));
        assert_eq!(
            home.ask("i.example", "x").await,
            Ok(Credential::Identity(RegistrySecret::new("refresh")))
        );
        assert_eq!(home.ask("t.example", "x").await, Ok(Credential::Registry(RegistrySecret::new("bearer"))));
        assert_eq!(home.ask("p.example", "x").await, basic("u", "p "));
        assert_eq!(home.ask("e.example", "x").await, Ok(Credential::Anonymous));
        assert_eq!(home.ask("u.example", "x").await, basic("u", "p"));
        for registry in ["b.example", "n.example"] {
            let error = home.ask(registry, "x").await.unwrap_err();
            assert!(error.contains(registry) && !error.contains("hunter2"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_broken_file_is_an_error_and_a_missing_one_is_not() {
        let home = Home::new("{\"auths\": hunter2");
        let error = home.ask("r.example", "x").await.unwrap_err();
        assert!(error.ends_with("config.json: not a configuration of registry logins"), "{error}");
        let none = RegistryCredentials::new(RegistryEnvironment::default(), Duration::from_secs(1));
        assert_eq!(none.look_up_credential("r.example", "x").await, Ok(Credential::Anonymous));
        let nowhere =
            RegistryEnvironment { docker_config: Some("/nowhere".into()), ..RegistryEnvironment::default() };
        let none = RegistryCredentials::new(nowhere, Duration::from_secs(1));
        assert_eq!(none.look_up_credential("r.example", "x").await, Ok(Credential::Anonymous));
    }
}
