//! Git's configuration as plain values: every file and include, then the variables that libgit2 does
//! not read. Reading only; nothing is ever written.

use crate::Environment;
use url::Url;

/// Keys with their values, in the order in which later ones win.
#[derive(Clone, Default)]
pub struct Config(Vec<(String, String)>);

impl Config {
    /// What `repository` sees (system, global, local, worktree, with conditional includes), and on top
    /// what `environment` gives by `GIT_CONFIG_COUNT`.
    ///
    /// # Errors
    /// The configuration could not be read.
    pub fn from_repository(
        repository: &git2::Repository,
        environment: &Environment,
    ) -> Result<Self, git2::Error> {
        let mut found = Vec::new();
        let config = repository.config()?.snapshot()?;
        config.entries(None)?.for_each(|entry| {
            // A key without `=` is a true; one that is not UTF-8 is none that we look for.
            if let Ok(name) = entry.name() {
                let value = if entry.has_value() { entry.value().unwrap_or_default() } else { "true" };
                found.push((entry.level() as i32, name.to_owned(), value.to_owned()));
            }
        })?;
        found.sort_by_key(|(level, _, _)| *level);
        let mut all: Vec<_> = found.into_iter().map(|(_, name, value)| (name, value)).collect();
        all.extend(
            environment.collect_git_config().into_iter().map(|(name, value)| (lowercase_key(&name), value)),
        );
        Ok(Self(all))
    }

    /// The last value of `key` (section and name in lower case). An empty value is a value.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// Whether `key` is set to one of git's words for true.
    #[must_use]
    pub fn is_true(&self, key: &str) -> bool {
        self.get(key).is_some_and(|v| matches!(v.to_ascii_lowercase().as_str(), "true" | "yes" | "on" | "1"))
    }

    /// Every value of `<section>.<name>` and of `<section>.<url>.<name>` whose URL is that of `url`, as
    /// git matches them (git-config, `http.<url>.*`): a value for a less specific URL after one for a
    /// more specific one does not count.
    #[must_use]
    pub fn collect_url_values(&self, section: &str, url: &Url, name: &str) -> Vec<&str> {
        let mut best = 0;
        let mut values = Vec::new();
        for (key, value) in &self.0 {
            let Some(pattern) = find_subsection(key, section, name) else { continue };
            let rank = match pattern {
                None => Some(0),
                Some(pattern) => rank_pattern(pattern, url),
            };
            if let Some(rank) = rank
                && rank >= best
            {
                best = rank;
                values.push(value.as_str());
            }
        }
        values
    }

    /// The value that [`Config::collect_url_values`] ends with; an empty one is a value.
    #[must_use]
    pub fn find_url_value(&self, section: &str, url: &Url, name: &str) -> Option<&str> {
        self.collect_url_values(section, url, name).last().copied()
    }

    /// `text` with the longest matching `url.<base>.insteadOf` (or `pushInsteadOf` where `push`) applied.
    #[must_use]
    pub fn rewrite_url(&self, text: &str, push: bool) -> String {
        let longest = |name: &str| {
            self.0
                .iter()
                .filter_map(|(key, value)| Some((find_subsection(key, "url", name)??, value)))
                .filter(|(_, value)| !value.is_empty() && text.starts_with(value.as_str()))
                .max_by_key(|(_, value)| value.len())
        };
        let found = if push {
            longest("pushinsteadof").or_else(|| longest("insteadof"))
        } else {
            longest("insteadof")
        };
        match found {
            Some((base, from)) => format!("{base}{}", &text[from.len()..]),
            None => text.to_owned(),
        }
    }

    /// Every value whose key begins with `prefix`, as rest of the key and value.
    pub fn list_below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.iter().filter_map(move |(key, value)| Some((key.strip_prefix(prefix)?, value.as_str())))
    }
}

impl std::fmt::Debug for Config {
    /// Keys only: values hold headers and tokens.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(key, _)| key)).finish()
    }
}

/// Section and name in lower case, the part between them as it is.
fn lowercase_key(key: &str) -> String {
    match (key.find('.'), key.rfind('.')) {
        (Some(first), Some(last)) if first < last => {
            format!(
                "{}{}{}",
                key[..first].to_ascii_lowercase(),
                &key[first..last],
                key[last..].to_ascii_lowercase()
            )
        }
        _ => key.to_ascii_lowercase(),
    }
}

/// The part of `key` between `section.` and `.name`: `None` if it is another key, `Some(None)` if there
/// is nothing between.
fn find_subsection<'a>(key: &'a str, section: &str, name: &str) -> Option<Option<&'a str>> {
    let rest = key.strip_prefix(section)?.strip_prefix('.')?;
    if rest == name {
        return Some(None);
    }
    Some(Some(rest.strip_suffix(name)?.strip_suffix('.')?))
}

/// How well `pattern` fits `url`; `None` if it does not.
fn rank_pattern(pattern: &str, url: &Url) -> Option<usize> {
    // A host may hold `*` for one whole label, which is no valid host of a URL elsewhere.
    let wild = pattern.replace('*', "expedite-any-label");
    let parsed = Url::parse(&wild).ok()?;
    if parsed.scheme() != url.scheme() || parsed.port_or_known_default() != url.port_or_known_default() {
        return None;
    }
    let (ours, theirs) = (parsed.host_str()?, url.host_str()?);
    let labels = || ours.split('.').zip(theirs.split('.'));
    let fits = ours.split('.').count() == theirs.split('.').count()
        && labels().all(|(a, b)| a == "expedite-any-label" || a.eq_ignore_ascii_case(b));
    let user = parsed.username();
    if !fits || (!user.is_empty() && user != url.username()) {
        return None;
    }
    let path = parsed.path().trim_end_matches('/');
    let rest = url.path().strip_prefix(path)?;
    if !rest.is_empty() && !rest.starts_with('/') {
        return None;
    }
    // Host before path before user, as git weighs them.
    let exact = labels().filter(|(a, b)| a.eq_ignore_ascii_case(b)).count();
    Some(1 + (exact << 24) + (path.len() << 1) + usize::from(!user.is_empty()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn config(pairs: &[(&str, &str)]) -> Config {
        Config(pairs.iter().map(|(k, v)| (lowercase_key(k), (*v).to_owned())).collect())
    }

    #[test]
    fn values_for_a_url_are_chosen_as_git_does() {
        let c = config(&[
            ("http.extraHeader", "a: 1"),
            ("http.https://git.example/.extraHeader", "b: 2"),
            ("http.https://git.example/team.extraHeader", "c: 3"),
            ("http.https://git.example/.extraheader", "late: less specific"),
            ("http.https://other.example/.extraheader", "d: 4"),
            ("http.https://*.example/.proxy", "p"),
            ("http.https://git.example:8443/.proxy", "q"),
        ]);
        let url = Url::parse("https://git.example/team/gitops.git").unwrap();
        assert_eq!(c.collect_url_values("http", &url, "extraheader"), ["a: 1", "b: 2", "c: 3"]);
        assert_eq!(c.find_url_value("http", &url, "proxy"), Some("p"));
        let teams = Url::parse("https://git.example/teams/x").unwrap();
        assert_eq!(
            c.collect_url_values("http", &teams, "extraheader"),
            ["a: 1", "b: 2", "late: less specific"],
            "team is not a part of teams"
        );
        let port = Url::parse("https://git.example:8443/x").unwrap();
        assert_eq!(c.find_url_value("http", &port, "proxy"), Some("q"));
        assert_eq!(c.collect_url_values("http", &port, "extraheader"), ["a: 1"]);
    }

    #[test]
    fn instead_of_takes_the_longest() {
        let c = config(&[
            ("url.https://git.example/.insteadOf", "gh:"),
            ("url.ssh://git@git.example/.insteadof", "gh:team/"),
            ("url.ssh://push.example/.pushInsteadOf", "gh:"),
        ]);
        assert_eq!(c.rewrite_url("gh:a/b", false), "https://git.example/a/b");
        assert_eq!(c.rewrite_url("gh:team/b", false), "ssh://git@git.example/b");
        assert_eq!(c.rewrite_url("gh:a/b", true), "ssh://push.example/a/b");
        assert_eq!(c.rewrite_url("https://x/a", true), "https://x/a");
    }

    #[test]
    fn files_includes_and_variables_are_read_and_not_shown() {
        let dir = tempfile::tempdir().unwrap();
        let git = git2::Repository::init(dir.path().join("work")).unwrap();
        let secret = dir.path().join("header.config");
        std::fs::write(&secret, "[http \"https://h/\"]\n\textraheader = AUTHORIZATION: basic s3cret\n")
            .unwrap();
        let gitdir = git.path().canonicalize().unwrap();
        let config = git.path().join("config");
        let text = std::fs::read_to_string(&config).unwrap();
        let include = format!("[includeIf \"gitdir:{}\"]\n\tpath = {}\n", gitdir.display(), secret.display());
        std::fs::write(&config, text + &include).unwrap();
        let git = git2::Repository::open(dir.path().join("work")).unwrap();
        let environment = Environment::new([
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "HTTP.proxy"),
            ("GIT_CONFIG_VALUE_0", "socks5://p"),
        ]);
        let config = Config::from_repository(&git, &environment).unwrap();
        let url = Url::parse("https://h/x").unwrap();
        assert_eq!(config.collect_url_values("http", &url, "extraheader"), ["AUTHORIZATION: basic s3cret"]);
        assert_eq!(config.get("http.proxy"), Some("socks5://p"));
        assert!(!config.is_true("core.bare"));
        assert!(!format!("{config:?}").contains("s3cret"));
    }
}
