//! The process's environment as git reads it: handed in once, never read from elsewhere.
//!
//! Programs that are started for git (`ssh`, credential helpers) get exactly these variables.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

/// Environment variables. `Debug` shows their names only: some of their values are secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// From pairs of name and value, as `std::env::vars_os` gives them.
    pub fn new<K: Into<OsString>, V: Into<OsString>>(pairs: impl IntoIterator<Item = (K, V)>) -> Self {
        Self(pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect())
    }

    /// The value of `name`, without surrounding white space (a variable filled from a file often ends
    /// in a newline); `None` when unset, empty or not UTF-8.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(OsStr::new(name))?.to_str().map(str::trim).filter(|v| !v.is_empty())
    }

    /// The value of `name` as a path; `None` when unset or empty.
    #[must_use]
    pub fn get_path(&self, name: &str) -> Option<PathBuf> {
        self.0.get(OsStr::new(name)).filter(|v| !v.is_empty()).map(PathBuf::from)
    }

    /// The home folder, where there is one.
    #[must_use]
    pub fn find_home(&self) -> Option<PathBuf> {
        self.get_path("HOME")
    }

    /// `~/x` resolved against the home folder; other paths as they are.
    #[must_use]
    pub fn expand_path(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), self.find_home()) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => Path::new(path).to_path_buf(),
        }
    }

    /// Whether `no_proxy` (or `NO_PROXY`) names this host: itself, a domain above it, or `*`.
    #[must_use]
    pub fn bypasses_proxy(&self, host: &str) -> bool {
        self.get("no_proxy").or_else(|| self.get("NO_PROXY")).is_some_and(|list| {
            list.split([',', ' ']).map(|e| e.trim().trim_start_matches("*.").trim_start_matches('.')).any(
                |e| {
                    let e = e.split_once(':').map_or(e, |(e, _)| e);
                    e == "*" || (!e.is_empty() && (host == e || host.ends_with(&format!(".{e}"))))
                },
            )
        })
    }

    /// Every variable, for a child process.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(k, v)| (k.as_os_str(), v.as_os_str()))
    }

    /// Configuration given by `GIT_CONFIG_COUNT`, `GIT_CONFIG_KEY_<n>` and `GIT_CONFIG_VALUE_<n>`
    /// (git-config, "Environment"), in order. libgit2 does not read these.
    #[must_use]
    pub fn collect_git_config(&self) -> Vec<(String, String)> {
        let count: usize = self.get("GIT_CONFIG_COUNT").and_then(|n| n.parse().ok()).unwrap_or(0);
        (0..count.min(1000))
            .filter_map(|n| {
                let key = self.get(&format!("GIT_CONFIG_KEY_{n}"))?.to_owned();
                let value = self.0.get(OsStr::new(&format!("GIT_CONFIG_VALUE_{n}")))?.to_str()?.to_owned();
                Some((key, value))
            })
            .collect()
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn values_end_without_a_newline_and_are_not_shown() {
        let env = Environment::new([("EXPEDITE_GIT_TOKEN", "s3cret\n"), ("EMPTY", "")]);
        assert_eq!(env.get("EXPEDITE_GIT_TOKEN"), Some("s3cret"));
        assert_eq!(env.get("EMPTY"), None);
        assert!(!format!("{env:?}").contains("s3cret"));
    }

    #[test]
    fn git_config_is_read_from_numbered_variables() {
        let env = Environment::new([
            ("GIT_CONFIG_COUNT", "2"),
            ("GIT_CONFIG_KEY_0", "safe.directory"),
            ("GIT_CONFIG_VALUE_0", "*"),
            ("GIT_CONFIG_KEY_1", "user.name"),
            ("GIT_CONFIG_VALUE_1", ""),
        ]);
        let want = [("safe.directory", "*"), ("user.name", "")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(env.collect_git_config(), want);
    }
}
