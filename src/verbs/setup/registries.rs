//! The registries, as the settings describe them.

use super::Outside;
use crate::settings::Settings;
use oci_registry::{HostConfig, RegistriesConfig};
use std::path::PathBuf;

pub(super) fn configure_registries(
    settings: &Settings,
    offline: bool,
    outside: &Outside,
) -> RegistriesConfig {
    let hosts = settings.registries.iter().map(|(host, registry)| {
        let config = HostConfig {
            plain_http: registry.plain_http,
            mirror: registry.mirror.clone(),
            layout: registry.layout.as_ref().map(|p| p.path.clone()),
            ca_file: registry.ca_file.as_ref().map(|p| p.path.clone()),
            concurrency: registry.concurrency,
            read_only: registry.read_only,
        };
        (host.clone(), config)
    });
    RegistriesConfig {
        hosts: hosts.collect(),
        cache_dir: settings.evidence.cache_dir.as_ref().map(|p| p.path.clone()),
        offline,
        environment: oci_registry::RegistryEnvironment::from_vars(|name| {
            outside.environment.get_path(name).map(PathBuf::into_os_string)
        }),
        agent: concat!("expedite/", env!("CARGO_PKG_VERSION")).to_owned(),
        ..RegistriesConfig::default()
    }
}
