//! Turns the sections of the text into valid settings.

use super::section::Section;
use super::{
    ArgoCd, Author, EvidenceSettings, FilePath, Limits, Location, Registry, RepositorySettings, Settings,
    SourceSettings,
};
use crate::model::environment::Selector;
use crate::model::id::Namespace;
use crate::model::time::Span;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Media types that Argo CD's repo-server unpacks by default, except the type of Helm charts, because a chart is not a
/// rendered manifest.
const LAYER_MEDIA_TYPES: [&str; 2] =
    ["application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.layer.v1.tar+gzip"];

const DAY: Span = Span::from_seconds(86_400);

/// Folders that paths are relative to.
pub struct Folders {
    /// The settings file's.
    pub own: PathBuf,
    /// The home folder for `~/`.
    pub home: Option<PathBuf>,
}

impl Folders {
    fn resolve_path(&self, written: String) -> FilePath {
        let path = match (written.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.own.join(&written),
        };
        FilePath { written, path }
    }

    fn resolve_location(&self, written: String) -> Location {
        let scp_like =
            written.split_once(':').is_some_and(|(host, _)| host.contains('@') && !host.contains('/'));
        match written.strip_prefix("file://") {
            Some(path) => Location::Path(FilePath { path: self.own.join(path), written: written.clone() }),
            None if written.contains("://") || scp_like => Location::Url(written),
            None => Location::Path(self.resolve_path(written)),
        }
    }
}

/// Turns parsed YAML into valid Settings; nothing else constructs them.
pub fn read_settings(mut root: Section<'_>, folders: &Folders) -> Settings {
    let sources = read_sources(&mut root, folders);
    let observed = root.take_value("observed").map(|p| folders.resolve_path(p));
    let repository = read_repository(root.take_section("repository"), folders);
    let registries = read_registries(&mut root, folders);
    let mut signing = root.take_section("signing");
    let signing_key_file = signing.take_value("keyFile").map(|p| folders.resolve_path(p));
    signing.end_section();
    let mut section = root.take_section("argocd");
    let argocd = ArgoCd {
        namespace: section.take_value("namespace").unwrap_or_else(make_argocd_namespace),
        require_observation: section.take_value("requireObservation").unwrap_or(false),
    };
    section.end_section();
    let mut section = root.take_section("limits");
    let limits = Limits {
        max_removals: section.take_value("maxRemovals"),
        max_promotions: section.take_value("maxPromotions"),
        max_tries: section.take_value("maxTries").unwrap_or(8),
    };
    if limits.max_tries == 0 {
        section.report_wrong("maxTries", "is 0, but a run needs at least one try");
    }
    section.end_section();
    let evidence = read_evidence(root.take_section("evidence"), folders);
    root.end_section();
    Settings { sources, observed, repository, registries, signing_key_file, argocd, limits, evidence }
}

/// Argo CD's usual namespace.
fn make_argocd_namespace() -> Namespace {
    Namespace::parse("argocd").expect("a constant that keeps the rule")
}

fn read_sources(root: &mut Section<'_>, folders: &Folders) -> Vec<SourceSettings> {
    let mut found: Vec<SourceSettings> = Vec::new();
    for mut section in root.take_items("sources") {
        let path: Option<String> = section.take_value("path");
        let source = match (path, section.has_key("cluster")) {
            (Some(path), false) => {
                let source = SourceSettings::Path {
                    path: folders.resolve_path(path),
                    kinds: section.take_value("kinds"),
                    namespaces: section.take_value("namespaces"),
                };
                Some(source)
            }
            (None, true) => {
                let mut cluster = section.take_section("cluster");
                let source = SourceSettings::Cluster {
                    context: cluster.take_value("context"),
                    namespaces: cluster.take_value("namespaces"),
                    selector: cluster.take_value("selector"),
                    kinds: cluster.take_value("kinds"),
                    applications: cluster.take_value("applications").unwrap_or(true),
                };
                if let SourceSettings::Cluster { selector: Some(text), .. } = &source
                    && let Err(error) = Selector::parse(text)
                {
                    cluster.report_wrong("selector", error.to_string());
                }
                cluster.end_section();
                Some(source)
            }
            (Some(_), true) => {
                let _ = section.take_section("cluster");
                section.report_wrong("", "has path and cluster; write two sources");
                None
            }
            (None, false) => {
                section.report_wrong("", "has neither path nor cluster");
                None
            }
        };
        if let Some(source) = source {
            if found.iter().any(|s| s.name() == source.name()) {
                section.report_wrong("", "the same source is already in the list");
            }
            found.push(source);
        }
        section.end_section();
    }
    found
}

fn read_repository(mut section: Section<'_>, folders: &Folders) -> RepositorySettings {
    let url: Option<String> = section.take_value("url");
    let branch = section.take_value("branch").unwrap_or_else(|| "main".to_owned());
    if !git_commits::is_branch_name(&branch) {
        section.report_wrong("branch", "is not a valid git branch name");
    }
    if url.as_deref() == Some("") {
        section.report_wrong("url", "is empty");
    }
    let create = section.take_value("create").unwrap_or(false);
    let author = section.has_key("author").then(|| {
        let mut author = section.take_section("author");
        let found = Author {
            name: author.require_value("name").unwrap_or_default(),
            email: author.require_value("email").unwrap_or_default(),
        };
        author.end_section();
        found
    });
    let sign_commits = section.take_value("signCommits").map(|p| folders.resolve_path(p));
    section.end_section();
    RepositorySettings { url: url.map(|u| folders.resolve_location(u)), branch, create, author, sign_commits }
}

fn read_registries(root: &mut Section<'_>, folders: &Folders) -> BTreeMap<String, Registry> {
    let mut found = BTreeMap::new();
    for (host, mut section) in root.take_entries("registries") {
        let registry = Registry {
            plain_http: section.take_value("plainHttp").unwrap_or(false),
            mirror: section.take_value("mirror"),
            layout: section.take_value("layout").map(|p| folders.resolve_path(p)),
            ca_file: section.take_value("caFile").map(|p| folders.resolve_path(p)),
            concurrency: section.take_value("concurrency"),
            read_only: section.take_value("readOnly").unwrap_or(false),
        };
        if host.is_empty() || host.contains(['/', '@', ' ']) {
            section.report_wrong(
                "",
                "its key is not a registry: write host[:port], as in ociRef, without oci://",
            );
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
                section.report_wrong(
                    "mirror",
                    "is not a valid mirror: write http(s)://host[:port], without path or password",
                );
            }
            if registry.layout.is_some() {
                section.report_wrong("mirror", "is not allowed together with layout; write only one of them");
            }
        }
        section.end_section();
        found.insert(host, registry);
    }
    found
}

fn read_evidence(mut section: Section<'_>, folders: &Folders) -> EvidenceSettings {
    let types: Option<Vec<String>> = section.take_value("layerMediaTypes");
    for (index, kind) in types.iter().flatten().enumerate() {
        if !["tar", "tar+gzip", "tar.gzip"].iter().any(|end| kind.ends_with(end)) {
            let field = format!("layerMediaTypes[{index}]");
            section.report_wrong(&field, "Argo CD unpacks types that end in tar, tar+gzip or tar.gzip only");
        }
    }
    let evidence = EvidenceSettings {
        cache_dir: section.take_value("cacheDir").map(|p| folders.resolve_path(p)),
        rescan: section.take_value("rescan").unwrap_or(DAY),
        layer_media_types: types.unwrap_or_else(|| LAYER_MEDIA_TYPES.map(str::to_owned).to_vec()),
    };
    section.end_section();
    evidence
}
