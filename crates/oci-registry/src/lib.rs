//! Registries and image layout folders behind one interface: reads manifests, blobs and referrers, and attaches records.
//!
//! An answer is found, authoritatively absent, or unread ([`Answer`]): a fault of a registry never looks like absence.
//! Content that is addressed by digest is hashed; every response has a size limit, every wait a time limit. Credentials
//! are those of docker and podman; they are sent only to the registry that they are for.
//!
//! The crate must not know what the bytes mean: no claims, no keys, no policy, no exit status. It prints nothing
//! and reads no environment variables; the caller passes everything in ([`RegistriesConfig`]).
//!
//! ```
//! use oci_registry::{Answer, HostConfig, OciRepository, Reference, Registries, RegistriesConfig};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! // An image layout in a folder is read like a registry.
//! let folder = tempfile::tempdir().unwrap();
//! let host = HostConfig { layout: Some(folder.path().to_owned()), ..HostConfig::default() };
//! let hosts = [("registry.shop.example".to_owned(), host)].into();
//! let registries = Registries::new(RegistriesConfig { hosts, ..Default::default() }).unwrap();
//!
//! let repository = OciRepository::parse("registry.shop.example/shop/podinfo").unwrap();
//! match registries.fetch_manifest(&repository, &Reference::Tag("v1".into())).await {
//!     Answer::Found(manifest) => println!("{}", manifest.digest),
//!     Answer::Absent => println!("there is no such tag"),
//!     Answer::Unread(why) => println!("not known: {}", why.why),
//! }
//! # });
//! ```

mod answer;
mod attach;
mod auth;
mod budget;
mod cache;
pub mod challenge;
mod clients;
mod config;
mod credentials;
mod fault;
mod host;
mod http;
mod id;
pub mod index;
mod index_entry;
mod layout;
mod layout_write;
pub mod link;
mod read;
mod realm;
mod referrers;
mod request_log;
mod retry;
#[cfg(feature = "schemars")]
mod schema;
mod secret;
mod token;

pub use answer::{Answer, Descriptor, EvidencePlace, Manifest, Reference, Referrers, Unread, UnreadReason};
pub use attach::{AttachError, AttachOutcome};
pub use config::{ConfigError, HostConfig, RegistriesConfig, RegistryEnvironment, RegistryLimits};
pub use id::{Artifact, Digest, OciRepository, ParseError};
pub use request_log::LoggedRequest;

use attach::AttachedRecord;
use base64::Engine;
use budget::Budget;
use bytes::Bytes;
use cache::BlobCache;
use clients::Clients;
use credentials::RegistryCredentials;
use host::Host;
use http::RegistrySession;
use layout::Layouts;
use request_log::RequestLog;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// All registries of a run: one connection pool, tokens per repository and action, and the known abilities of each
/// registry. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Registries {
    shared: Arc<Shared>,
    /// Time budget of one artifact; `None`: each operation has its own.
    budget: Option<Arc<Budget>>,
}

#[derive(Debug)]
struct Shared {
    config: RegistriesConfig,
    clients: Clients,
    credentials: Arc<RegistryCredentials>,
    cache: BlobCache,
    warnings: Mutex<BTreeSet<String>>,
    log: RequestLog,
    places: Mutex<HashMap<String, RegistryPlace>>,
}

/// The target of a registry's name.
#[derive(Debug, Clone)]
enum RegistryPlace {
    Http(Arc<Host>),
    Layouts(Arc<Layouts>),
}

impl Default for Registries {
    fn default() -> Self {
        Self::new_unchecked(RegistriesConfig::default())
    }
}

impl Registries {
    /// Takes the settings; sends no request.
    ///
    /// # Errors
    /// A mirror is not of the form `http(s)://host[:port]`, or a `caFile` cannot be read or has no certificate.
    pub fn new(config: RegistriesConfig) -> Result<Self, ConfigError> {
        for (registry, settings) in &config.hosts {
            host::resolve_base(registry, settings)?;
            if let Some(file) = &settings.ca_file {
                clients::check_ca_file(registry, file)?;
            }
        }
        Ok(Self::new_unchecked(config))
    }

    fn new_unchecked(config: RegistriesConfig) -> Self {
        let clients = Clients::new(&config);
        let credentials =
            Arc::new(RegistryCredentials::new(config.environment.clone(), config.limits.helper));
        let cache = BlobCache::new(config.cache_dir.clone());
        let log = RequestLog::default();
        let shared = Shared {
            config,
            clients,
            credentials,
            cache,
            warnings: Mutex::default(),
            log,
            places: Mutex::default(),
        };
        Self { shared: Arc::new(shared), budget: None }
    }

    /// The same registries with one time budget (`Limits::artifact`) for everything that is asked through
    /// the returned value. Waiting for a free slot does not count.
    #[must_use]
    pub fn with_artifact_budget(&self) -> Self {
        let budget = Budget::new(self.shared.config.limits.artifact);
        Self { shared: Arc::clone(&self.shared), budget: Some(budget) }
    }

    /// Every HTTP request so far, including tokens and redirects, in the order of their responses.
    #[must_use]
    pub fn collect_requests(&self) -> Vec<LoggedRequest> {
        self.shared.log.collect_requests()
    }

    /// Problems that do not affect any answer: a blob cache that cannot be written, an unexpected response after
    /// attaching. Each once, in a stable order.
    #[must_use]
    pub fn collect_warnings(&self) -> Vec<String> {
        let own = self.shared.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.cache.warnings().into_iter().chain(own.iter().cloned()).collect()
    }

    /// Whether the settings forbid writing to the registry of `repository`.
    #[must_use]
    pub fn is_read_only(&self, repository: &OciRepository) -> bool {
        self.shared.config.hosts.get(repository.registry()).is_some_and(|host| host.read_only)
    }

    /// A manifest by digest (hashed, with a size limit) or tag.
    pub async fn fetch_manifest(
        &self,
        repository: &OciRepository,
        reference: &Reference,
    ) -> Answer<Manifest> {
        match self.resolve_place(repository) {
            Ok(RegistryPlace::Http(host)) => {
                self.open_session(&host, repository, &self.resolve_budget()).fetch_manifest(reference).await
            }
            Ok(RegistryPlace::Layouts(layouts)) => layouts.read_manifest(repository, reference),
            Err(why) => Answer::Unread(why),
        }
    }

    /// Whether the registry holds this manifest (`HEAD`, repeated as `GET` to learn why it fails).
    pub async fn holds_manifest(&self, repository: &OciRepository, digest: &Digest) -> Answer<()> {
        match self.resolve_place(repository) {
            Ok(RegistryPlace::Http(host)) => {
                self.open_session(&host, repository, &self.resolve_budget()).holds_manifest(digest).await
            }
            Ok(RegistryPlace::Layouts(layouts)) => {
                match layouts.read_manifest(repository, &Reference::Digest(*digest)) {
                    Answer::Found(_) => Answer::Found(()),
                    Answer::Absent => Answer::Absent,
                    Answer::Unread(why) => Answer::Unread(why),
                }
            }
            Err(why) => Answer::Unread(why),
        }
    }

    /// Whether the registry holds this blob.
    pub async fn holds_blob(&self, repository: &OciRepository, digest: &Digest) -> Answer<()> {
        match self.resolve_place(repository) {
            Ok(RegistryPlace::Http(host)) => {
                self.open_session(&host, repository, &self.resolve_budget()).holds_blob(digest).await
            }
            Ok(RegistryPlace::Layouts(layouts)) => layouts.holds_blob(repository, digest),
            Err(why) => Answer::Unread(why),
        }
    }

    /// A blob of exactly the descriptor's size and digest, never read past `cap` bytes; embedded `data` is
    /// used (after hashing) without a request. Bytes from the cache folder are given out only while the
    /// registry holds the blob (a `HEAD`).
    pub async fn fetch_blob(&self, repository: &OciRepository, blob: &Descriptor, cap: u64) -> Answer<Bytes> {
        let line = format!("GET {repository}/blobs/{}", blob.digest);
        if let Some(why) = read::check_size(&line, blob, cap) {
            return Answer::Unread(why);
        }
        if let Some(data) = &blob.data {
            let line = format!("the data embedded in the descriptor of {}", blob.digest);
            let Ok(bytes) = base64::engine::general_purpose::STANDARD.decode(data) else {
                return Answer::Unread(fault::make_integrity_unread(&line, None, "not base64"));
            };
            return match read::check_blob(&line, None, blob, bytes.into()) {
                Ok(bytes) => Answer::Found(bytes),
                Err(why) => Answer::Unread(why),
            };
        }
        let host = match self.resolve_place(repository) {
            Ok(RegistryPlace::Http(host)) => host,
            Ok(RegistryPlace::Layouts(layouts)) => return layouts.read_blob(repository, blob),
            Err(why) => return Answer::Unread(why),
        };
        let cache = &self.shared.cache;
        let time = self.resolve_budget();
        let session = self.open_session(&host, repository, &time);
        if let Some(bytes) = cache.get(blob) {
            return match session.holds_blob(&blob.digest).await {
                Answer::Found(()) => Answer::Found(bytes),
                Answer::Absent => Answer::Absent,
                Answer::Unread(why) => Answer::Unread(why),
            };
        }
        let answer = session.fetch_blob(blob).await;
        if let Answer::Found(bytes) = &answer {
            cache.store_blob(&blob.digest, bytes);
        }
        answer
    }

    /// All referrers of `digest`: the API with every page; the fallback tag where the API is absent or lists
    /// nothing. The result names the place that was left out; [`Self::fetch_left_out_referrers`] reads it.
    pub async fn fetch_referrers(&self, repository: &OciRepository, digest: &Digest) -> Referrers {
        match self.resolve_place(repository) {
            Ok(RegistryPlace::Http(host)) => {
                self.open_session(&host, repository, &self.resolve_budget()).fetch_referrers(digest).await
            }
            Ok(RegistryPlace::Layouts(layouts)) => layouts.read_referrers(repository, digest),
            Err(why) => Referrers { unread: Some(why), ..Referrers::default() },
        }
    }

    /// `listed`, and what the place lists that was left out of it: to be asked before "missing" is said. No
    /// request when nothing was left out.
    pub async fn fetch_left_out_referrers(
        &self,
        repository: &OciRepository,
        digest: &Digest,
        listed: Referrers,
    ) -> Referrers {
        match self.resolve_place(repository) {
            Ok(RegistryPlace::Http(host)) => {
                self.open_session(&host, repository, &self.resolve_budget())
                    .fetch_left_out_referrers(digest, listed)
                    .await
            }
            Ok(RegistryPlace::Layouts(_)) | Err(_) => listed,
        }
    }

    fn resolve_budget(&self) -> Arc<Budget> {
        match &self.budget {
            Some(budget) => Arc::clone(budget),
            None => Budget::new(self.shared.config.limits.artifact),
        }
    }

    fn open_session<'a>(
        &'a self,
        host: &'a Host,
        repository: &'a OciRepository,
        budget: &'a Arc<Budget>,
    ) -> RegistrySession<'a> {
        let shared = &self.shared;
        RegistrySession {
            host,
            repository,
            limits: &shared.config.limits,
            budget,
            log: &shared.log,
            clients: &shared.clients,
            offline: shared.config.offline,
        }
    }

    fn resolve_place(&self, repository: &OciRepository) -> Result<RegistryPlace, Unread> {
        let registry = repository.registry();
        let mut places = self.shared.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = places.get(registry) {
            return Ok(place.clone());
        }
        let config = &self.shared.config;
        let settings = config.hosts.get(registry).cloned().unwrap_or_default();
        let place = match &settings.layout {
            Some(root) => RegistryPlace::Layouts(Layouts::new(root.clone(), config.limits.clone())),
            None => {
                let shared = &self.shared;
                let host =
                    Host::new(registry, &settings, &config.limits, &shared.clients, &shared.credentials);
                let host = host.map_err(|f| {
                    fault::make_broken_unread(&format!("GET {registry}"), None, f.to_string())
                })?;
                RegistryPlace::Http(Arc::new(host))
            }
        };
        places.insert(registry.to_owned(), place.clone());
        Ok(place)
    }
}

/// The right to write to registries: code without it cannot write by mistake.
#[derive(Debug, Clone)]
pub struct Writer {
    registries: Registries,
}

impl Writer {
    /// Writes with the settings, credentials and connections of `registries`.
    #[must_use]
    pub fn new(registries: &Registries) -> Self {
        Self { registries: registries.clone() }
    }

    /// Attaches a record to `subject`: its blobs, then its manifest by digest, then (if the registry does not list it by
    /// itself) the fallback index. Idempotent: an equal attached record is not changed.
    ///
    /// # Errors
    /// The record is not attached, or cannot be found; says why, and whether a retry may help.
    pub async fn attach_record(
        &self,
        repository: &OciRepository,
        subject: &Digest,
        manifest: &[u8],
        manifest_digest: &Digest,
        blobs: &[(Digest, Bytes)],
    ) -> Result<AttachOutcome, AttachError> {
        let record = AttachedRecord { subject, manifest, digest: manifest_digest, blobs };
        record.check_record()?;
        let registries = &self.registries;
        if registries.is_read_only(repository) {
            return Err(AttachError::ReadOnly(repository.registry().to_owned()));
        }
        match registries.resolve_place(repository).map_err(AttachError::Failed)? {
            RegistryPlace::Http(host) => {
                let time = registries.resolve_budget();
                let (attached, warning) =
                    registries.open_session(&host, repository, &time).attach_record(&record).await?;
                let mut warnings = registries.shared.warnings.lock().unwrap_or_else(PoisonError::into_inner);
                warnings.extend(warning);
                Ok(attached)
            }
            RegistryPlace::Layouts(layouts) => layouts.attach_record(repository, &record),
        }
    }
}
