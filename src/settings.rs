//! Settings (`expedite.yaml`): checked in one place, and all problems are reported at once.
//!
//! Everything has a default. An unknown key is an error with the nearest name, a path is relative to the folder of the
//! settings file, `~/` is the home folder. Flags override settings; the caller does this.

mod read;
mod section;

use crate::error::{At, Failure};
use crate::model::id::Namespace;
use crate::model::kind::Kind;
use crate::model::time::Span;
use kube_yaml::parse;
use read::{Folders, read_settings};
use section::{Problems, Section};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// JSON Schema of the settings file.
pub const SCHEMA: &str = include_str!("settings/schema.json");

/// The file's name in the root of the GitOps repository.
pub const FILE: &str = "expedite.yaml";

/// All settings, already valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where objects are read; empty: the GitOps repository itself.
    pub sources: Vec<SourceSettings>,
    /// A dump of Applications, if no source has them.
    pub observed: Option<FilePath>,
    /// The repository with intent and state.
    pub repository: RepositorySettings,
    /// By `host[:port]` as written in an `ociRef`.
    pub registries: BTreeMap<String, Registry>,
    /// The run's own key file; EXPEDITE_KEY is the alternative.
    pub signing_key_file: Option<FilePath>,
    /// Argo CD's namespace, and whether its Applications must be observed.
    pub argocd: ArgoCd,
    /// Limits of a run.
    pub limits: Limits,
    /// How evidence is read.
    pub evidence: EvidenceSettings,
}

/// A path as written, and its resolved form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePath {
    /// As written.
    pub written: String,
    /// Resolved against the settings file's folder and the home folder.
    pub path: PathBuf,
}

/// Where objects are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceSettings {
    /// A folder or a file.
    Path {
        /// Which.
        path: FilePath,
        /// Kinds that may come from it; `None`: all.
        kinds: Option<BTreeSet<Kind>>,
        /// Namespaces whose objects may come from it; `None`: all.
        namespaces: Option<BTreeSet<Namespace>>,
    },
    /// An API server.
    Cluster {
        /// Of the kubeconfig; `None`: the current one.
        context: Option<String>,
        /// `None`: all that may be listed.
        namespaces: Option<BTreeSet<Namespace>>,
        /// A label selector for Orders.
        selector: Option<String>,
        /// Kinds that are read, and each must exist; `None`: all existing kinds.
        kinds: Option<BTreeSet<Kind>>,
        /// Whether its Applications are observed, if Argo CD runs in it.
        applications: bool,
    },
}

impl SourceSettings {
    /// The stable name for `Serving.status.deployed.source`: `path:<as written>`, or `cluster:<context>`.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Path { path, .. } => format!("path:{}", path.written),
            Self::Cluster { context, .. } => format!("cluster:{}", context.as_deref().unwrap_or_default()),
        }
    }
}

/// The GitOps repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositorySettings {
    /// `None`: the repository around the working directory.
    pub url: Option<Location>,
    /// `main` when absent in the settings.
    pub branch: String,
    /// Whether to create an empty bare repository if the local path does not exist.
    pub create: bool,
    /// Author of commits, if neither flags nor `GIT_*` variables name one.
    pub author: Option<Author>,
    /// An SSH private key for signing commits.
    pub sign_commits: Option<FilePath>,
}

/// Location of a repository. Printing it does not show a password.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    /// On this machine.
    Path(FilePath),
    /// `https://…`, `ssh://…`, `user@host:path`.
    Url(String),
}

/// A git identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// Name.
    pub name: String,
    /// Address.
    pub email: String,
}

/// Settings of one registry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registry {
    /// `http://` instead of `https://`.
    pub plain_http: bool,
    /// Address to use instead: `http(s)://host[:port]`.
    pub mirror: Option<String>,
    /// An OCI image layout folder to use instead of the registry.
    pub layout: Option<FilePath>,
    /// PEM file of certificate authorities, trusted in addition to the system's.
    pub ca_file: Option<FilePath>,
    /// Requests at once; 16 when absent.
    pub concurrency: Option<NonZeroUsize>,
    /// Nothing is attached there: records are kept only in the GitOps repository, and every run reports the records that it
    /// did not attach.
    pub read_only: bool,
}

/// Where Argo CD is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgoCd {
    /// `argocd` when absent.
    pub namespace: Namespace,
    /// Whether promotions to a cluster require that its Applications were observed.
    pub require_observation: bool,
}

/// Limits of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Most Applications that a run removes; `None`: 5, or 10 % of ours up to 20.
    pub max_removals: Option<usize>,
    /// Most promotions in a run; `None`: any number.
    pub max_promotions: Option<usize>,
    /// How often a run decides again because the branch moved.
    pub max_tries: u32,
}

/// How evidence is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceSettings {
    /// Folder for blobs that are kept between runs.
    pub cache_dir: Option<FilePath>,
    /// Scans of deployed artifacts are read again after this time.
    pub rescan: Span,
    /// Media types of the layer that Argo CD unpacks (repo-server's `--oci-layer-media-types`).
    pub layer_media_types: Vec<String>,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => f.write_str(&path.written),
            Self::Url(url) => {
                let Some((scheme, rest)) = url.split_once("://") else { return f.write_str(url) };
                let authority = rest.split('/').next().unwrap_or_default();
                match authority.rsplit_once('@') {
                    // Over HTTP even a user name without a password may be a token.
                    Some((user, host)) if user.contains(':') || scheme.starts_with("http") => {
                        write!(f, "{scheme}://***@{host}{}", &rest[authority.len()..])
                    }
                    Some(_) | None => f.write_str(url),
                }
            }
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Location({self})")
    }
}

impl Default for Settings {
    fn default() -> Self {
        // An empty file gives every default, through the same checks.
        let here = Folders { own: PathBuf::new(), home: None };
        read_settings(Section::new(None, "", &Problems::default()), &here)
    }
}

impl Settings {
    /// Reads a settings file; `home` replaces `~/`.
    ///
    /// # Errors
    /// Everything that is wrong with it, with line and column.
    pub fn read_file(path: &Path, home: Option<&Path>) -> Result<Self, Vec<Failure>> {
        let name = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|error| {
            let text = error.to_string();
            let cause = text.split(" (os error").next().unwrap_or_default().to_lowercase();
            vec![
                Failure::new_input("unreadable", cause)
                    .with_object("the settings")
                    .with_place(At::from_file(name.clone())),
            ]
        })?;
        Self::parse(&bytes, &name, path.parent().unwrap_or(Path::new("")), home)
    }

    /// Reads settings from their text: `name` is the file's name in messages, its paths are relative to `folder`.
    ///
    /// # Errors
    /// Everything that is wrong with it, with line and column.
    pub fn parse(bytes: &[u8], name: &str, folder: &Path, home: Option<&Path>) -> Result<Self, Vec<Failure>> {
        let folders = Folders { own: folder.to_owned(), home: home.map(Path::to_owned) };
        let problems = Problems::default();
        let node = match parse::decode_text(bytes).and_then(parse::parse_one) {
            Ok(node) => Some(node),
            Err(error) if error.code == "empty" => None,
            Err(error) => return Err(vec![Failure::from_yaml(&error, name)]),
        };
        let settings = read_settings(Section::new(node.as_ref(), "", &problems), &folders);
        let failures: Vec<Failure> =
            problems.sort_errors().iter().map(|e| Failure::from_yaml(e, name)).collect();
        if failures.is_empty() { Ok(settings) } else { Err(failures) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn parse(text: &str) -> Result<Settings, Vec<String>> {
        Settings::parse(text.as_bytes(), "expedite.yaml", Path::new("/cfg"), Some(Path::new("/home/ann")))
            .map_err(|failures| failures.iter().map(|f| format!("{f} | {}", f.hints.join("; "))).collect())
    }

    #[test]
    fn nothing_is_every_default() {
        for text in ["", "# nothing\n", "---\n", "limits:\n", "limits: {}\nsources: []\n"] {
            assert_eq!(parse(text).unwrap(), Settings::default(), "{text:?}");
        }
        let settings = Settings::default();
        assert_eq!(settings.repository.branch, "main");
        assert_eq!(settings.limits, Limits { max_removals: None, max_promotions: None, max_tries: 8 });
        assert_eq!(settings.argocd.namespace.as_str(), "argocd");
        assert_eq!(settings.evidence.rescan.seconds(), 86_400);
        assert!(!settings.repository.create && !settings.argocd.require_observation);
    }

    #[test]
    fn all_of_it_is_read() {
        let settings = parse(
            "sources:\n- path: ./objects\n  kinds: [Order, Approval]\n  namespaces: [shop, on]\n- cluster: {context: prod, \
             namespaces: [shop], selector: a=b, \
             kinds: [Order], applications: false}\nobserved: ~/apps.yaml\nrepository:\n  url: ../gitops.git\n  branch: \
             release/1\n  create: true\n  author: {name: Ann, email: ann@shop.example}\n  signCommits: ~/.ssh/id\n\
             registries:\n  r.example:5000: {plainHttp: true, mirror: \"http://127.0.0.1:5000\", caFile: ca.pem, \
             concurrency: 4}\n  s.example: {layout: ./registry, readOnly: true}\nsigning: {keyFile: job.key}\nargocd: {namespace: argo, \
             requireObservation: true}\nlimits: {maxRemovals: 0, maxPromotions: 3, maxTries: 2}\nevidence: {cacheDir: \
             .cache, rescan: 12h, layerMediaTypes: [application/x.tar]}\n",
        )
        .unwrap();
        let at = |written: &str, path: &str| FilePath { written: written.into(), path: path.into() };
        assert_eq!(
            settings.sources.iter().map(SourceSettings::name).collect::<Vec<_>>(),
            ["path:./objects", "cluster:prod"]
        );
        let SourceSettings::Path { kinds: Some(kinds), namespaces: Some(namespaces), .. } =
            &settings.sources[0]
        else {
            panic!()
        };
        assert_eq!(kinds.iter().copied().collect::<Vec<_>>(), [Kind::Order, Kind::Approval]);
        assert_eq!(namespaces.len(), 2, "a namespace may be called on");
        assert_eq!(
            settings.sources[1],
            SourceSettings::Cluster {
                context: Some("prod".into()),
                namespaces: Some([Namespace::parse("shop").unwrap()].into()),
                selector: Some("a=b".into()),
                kinds: Some([Kind::Order].into()),
                applications: false,
            }
        );
        assert_eq!(settings.observed, Some(at("~/apps.yaml", "/home/ann/apps.yaml")));
        assert_eq!(settings.repository.url, Some(Location::Path(at("../gitops.git", "/cfg/../gitops.git"))));
        assert_eq!(settings.repository.sign_commits, Some(at("~/.ssh/id", "/home/ann/.ssh/id")));
        let registry = &settings.registries["r.example:5000"];
        assert!(registry.plain_http && registry.concurrency.unwrap().get() == 4);
        assert!(!registry.read_only && settings.registries["s.example"].read_only);
        assert_eq!(settings.registries["s.example"].layout, Some(at("./registry", "/cfg/./registry")));
        assert_eq!(settings.limits, Limits { max_removals: Some(0), max_promotions: Some(3), max_tries: 2 });
        assert_eq!(settings.evidence.layer_media_types, ["application/x.tar"]);
    }

    #[test]
    fn a_branch_that_git_does_not_take_is_wrong_at_its_place() {
        for name in ["a.lock", "a..b", "-x", "a b", "a/", "\"\""] {
            let wrong = parse(&format!("repository: {{branch: {name}}}\n")).unwrap_err();
            assert_eq!(wrong.len(), 1, "{wrong:?}");
            let said = &wrong[0];
            assert!(said.starts_with("expedite.yaml:1:"), "{said}");
            assert!(said.contains("repository.branch: is not a valid git branch name"), "{said}");
        }
    }

    #[test]
    fn everything_wrong_is_said_at_once() {
        let wrong = parse(
            "source:\n- path: a\nlimits: {maxRemovals: five, maxTires: 3}\nargocd: {requireObservation: yes}\n\
             evidence:\n  rescan: 86400\nregistries:\n  oci://r.example/a: {mirror: \"http://u:p@m/x\"}\n\
             sources:\n- {path: a, cluster: {}}\n- {}\n- {path: b, kinds: [Ordr]}\n- {path: b}\nrepository: [1]\n",
        )
        .unwrap_err();
        assert_eq!(
            wrong,
            [
                "expedite.yaml:1:1: source: is not a known setting | did you mean sources?",
                "expedite.yaml:3:23: limits.maxRemovals: wanted a whole number from 0 to 18446744073709551615, found five | ",
                "expedite.yaml:3:29: limits.maxTires: is not a known setting | did you mean maxTries?",
                "expedite.yaml:4:30: argocd.requireObservation: wanted true or false, found yes | write true",
                "expedite.yaml:6:11: evidence.rescan: \"86400\" is not a duration: a unit is missing; write 90m, 24h, 1h30m, 1.5h, 7d or 0 | ",
                "expedite.yaml:8:22: registries[\"oci://r.example/a\"]: its key is not a registry: write host[:port], as in ociRef, without oci:// | ",
                "expedite.yaml:8:31: registries[\"oci://r.example/a\"].mirror: is not a valid mirror: write http(s)://host[:port], without path or password | ",
                "expedite.yaml:10:3: sources[0]: has path and cluster; write two sources | ",
                "expedite.yaml:11:3: sources[1]: has neither path nor cluster | ",
                "expedite.yaml:12:21: sources[2].kinds[0]: wanted one of Order, Preparation, Approval, Serving, Environment, Cluster, Kitchen, found Ordr | did you mean Order?",
                "expedite.yaml:13:3: sources[3]: the same source is already in the list | ",
                "expedite.yaml:14:13: repository: wanted a mapping, found a list | ",
            ]
        );
        assert_eq!(
            parse("limits: {}\nlimits: {}\n").unwrap_err(),
            ["expedite.yaml:2:1: the key \"limits\" is written twice | "]
        );
        assert!(parse("- a\n").unwrap_err()[0].contains("wanted a mapping"));
    }

    #[test]
    fn no_password_is_printed() {
        let url = "https://ann:hunter2@git.example/r.git";
        let settings = parse(&format!("repository: {{url: \"{url}\"}}")).unwrap();
        assert!(!format!("{settings:?}").contains("hunter2"));
        assert_eq!(settings.repository.url, Some(Location::Url(url.into())));
        for (url, shown) in [
            (url, "https://***@git.example/r.git"),
            ("https://token@git.example/r@1.git", "https://***@git.example/r@1.git"),
            ("ssh://git@git.example:22/r.git", "ssh://git@git.example:22/r.git"),
            ("a@b://c", "a@b://c"),
        ] {
            assert_eq!(Location::Url(url.into()).to_string(), shown);
        }
        let scp = parse("repository: {url: git@git.example:shop/r.git}").unwrap().repository.url.unwrap();
        assert_eq!(scp, Location::Url("git@git.example:shop/r.git".into()));
    }
}
