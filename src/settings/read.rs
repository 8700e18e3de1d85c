//! From the sections of the text to valid settings.

use super::section::Section;
use super::{ArgoCd, Author, Evidence, FilePath, Limits, Location, Registry, Repository, Settings, Source};
use crate::model::environment::Selector;
use crate::model::id::Namespace;
use crate::model::time::Span;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What Argo CD's repo-server unpacks unless told otherwise, the Helm chart's type aside: a chart is no
/// rendered manifest.
const LAYER_MEDIA_TYPES: [&str; 2] =
    ["application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.layer.v1.tar+gzip"];

const DAY: Span = Span::of_seconds(86_400);

/// What paths are relative to.
pub struct Folders {
    /// The settings file's.
    pub own: PathBuf,
    /// What `~/` stands for.
    pub home: Option<PathBuf>,
}

impl Folders {
    fn path(&self, written: String) -> FilePath {
        let path = match (written.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.own.join(&written),
        };
        FilePath { written, path }
    }

    fn location(&self, written: String) -> Location {
        let scp_like =
            written.split_once(':').is_some_and(|(host, _)| host.contains('@') && !host.contains('/'));
        match written.strip_prefix("file://") {
            Some(path) => Location::Path(FilePath { path: self.own.join(path), written: written.clone() }),
            None if written.contains("://") || scp_like => Location::Url(written),
            None => Location::Path(self.path(written)),
        }
    }
}

/// The one door.
pub fn read(mut root: Section<'_>, folders: &Folders) -> Settings {
    let sources = sources(&mut root, folders);
    let observed = root.take("observed").map(|p| folders.path(p));
    let repository = repository(root.section("repository"), folders);
    let registries = registries(&mut root, folders);
    let mut signing = root.section("signing");
    let signing_key_file = signing.take("keyFile").map(|p| folders.path(p));
    signing.done();
    let mut section = root.section("argocd");
    let argocd = ArgoCd {
        namespace: section.take("namespace").unwrap_or_else(argocd_namespace),
        require_observation: section.take("requireObservation").unwrap_or(false),
    };
    section.done();
    let mut section = root.section("limits");
    let limits = Limits {
        max_removals: section.take("maxRemovals"),
        max_promotions: section.take("maxPromotions"),
        max_tries: section.take("maxTries").unwrap_or(8),
    };
    if limits.max_tries == 0 {
        section.wrong("maxTries", "is 0: a run that may not try does nothing");
    }
    section.done();
    let evidence = evidence(root.section("evidence"), folders);
    root.done();
    Settings { sources, observed, repository, registries, signing_key_file, argocd, limits, evidence }
}

/// Argo CD's usual namespace.
fn argocd_namespace() -> Namespace {
    Namespace::parse("argocd").expect("a constant that keeps the rule")
}

fn sources(root: &mut Section<'_>, folders: &Folders) -> Vec<Source> {
    let mut found: Vec<Source> = Vec::new();
    for mut section in root.items("sources") {
        let path: Option<String> = section.take("path");
        let source = match (path, section.has("cluster")) {
            (Some(path), false) => {
                let source = Source::Path {
                    path: folders.path(path),
                    kinds: section.take("kinds"),
                    namespaces: section.take("namespaces"),
                };
                Some(source)
            }
            (None, true) => {
                let mut cluster = section.section("cluster");
                let source = Source::Cluster {
                    context: cluster.take("context"),
                    namespaces: cluster.take("namespaces"),
                    selector: cluster.take("selector"),
                    kinds: cluster.take("kinds"),
                    applications: cluster.take("applications").unwrap_or(true),
                };
                if let Source::Cluster { selector: Some(text), .. } = &source
                    && let Err(error) = Selector::parse(text)
                {
                    cluster.wrong("selector", error.to_string());
                }
                cluster.done();
                Some(source)
            }
            (Some(_), true) => {
                let _ = section.section("cluster");
                section.wrong("", "has path and cluster; write two sources");
                None
            }
            (None, false) => {
                section.wrong("", "has neither path nor cluster");
                None
            }
        };
        if let Some(source) = source {
            if found.iter().any(|s| s.name() == source.name()) {
                section.wrong("", "the same source stands above");
            }
            found.push(source);
        }
        section.done();
    }
    found
}

fn repository(mut section: Section<'_>, folders: &Folders) -> Repository {
    let url: Option<String> = section.take("url");
    let branch = section.take("branch").unwrap_or_else(|| "main".to_owned());
    let wrong_branch = branch.is_empty()
        || branch.starts_with(['-', '/', '.'])
        || branch.ends_with(['/', '.'])
        || branch.contains("..")
        || branch.contains(|c: char| c.is_whitespace() || c.is_control() || "~^:?*[\\".contains(c));
    if wrong_branch {
        section.wrong("branch", "is no branch name that git takes");
    }
    if url.as_deref() == Some("") {
        section.wrong("url", "is empty");
    }
    let create = section.take("create").unwrap_or(false);
    let author = section.has("author").then(|| {
        let mut author = section.section("author");
        let found = Author {
            name: author.require("name").unwrap_or_default(),
            email: author.require("email").unwrap_or_default(),
        };
        author.done();
        found
    });
    let sign_commits = section.take("signCommits").map(|p| folders.path(p));
    section.done();
    Repository { url: url.map(|u| folders.location(u)), branch, create, author, sign_commits }
}

fn registries(root: &mut Section<'_>, folders: &Folders) -> BTreeMap<String, Registry> {
    let mut found = BTreeMap::new();
    for (host, mut section) in root.entries("registries") {
        let registry = Registry {
            plain_http: section.take("plainHttp").unwrap_or(false),
            mirror: section.take("mirror"),
            layout: section.take("layout").map(|p| folders.path(p)),
            ca_file: section.take("caFile").map(|p| folders.path(p)),
            concurrency: section.take("concurrency"),
            read_only: section.take("readOnly").unwrap_or(false),
        };
        if host.is_empty() || host.contains(['/', '@', ' ']) {
            section.wrong("", "its key is no registry: write host[:port], as in ociRef, without oci://");
        }
        if let Some(mirror) = &registry.mirror {
            let right = url::Url::parse(mirror).is_ok_and(|url| {
                matches!(url.scheme(), "http" | "https")
                    && url.has_host()
                    && url.path() == "/"
                    && url.username().is_empty()
                    && url.password().is_none()
                    && url.query().is_none()
            });
            if !right {
                section
                    .wrong("mirror", "is no mirror: write http(s)://host[:port], without path or password");
            }
            if registry.layout.is_some() {
                section.wrong("mirror", "a layout is asked instead already; one of the two is wanted");
            }
        }
        section.done();
        found.insert(host, registry);
    }
    found
}

fn evidence(mut section: Section<'_>, folders: &Folders) -> Evidence {
    let types: Option<Vec<String>> = section.take("layerMediaTypes");
    for (index, kind) in types.iter().flatten().enumerate() {
        if !["tar", "tar+gzip", "tar.gzip"].iter().any(|end| kind.ends_with(end)) {
            let field = format!("layerMediaTypes[{index}]");
            section.wrong(&field, "Argo CD unpacks types that end in tar, tar+gzip or tar.gzip only");
        }
    }
    let evidence = Evidence {
        cache_dir: section.take("cacheDir").map(|p| folders.path(p)),
        rescan: section.take("rescan").unwrap_or(DAY),
        layer_media_types: types.unwrap_or_else(|| LAYER_MEDIA_TYPES.map(str::to_owned).to_vec()),
    };
    section.done();
    evidence
}
