//! A private certificate authority, made for one test, and a server behind it.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, server};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An authority and what it signed.
pub struct Authority {
    folder: tempfile::TempDir,
    /// For a server on 127.0.0.1 and localhost.
    pub server: Arc<ServerConfig>,
}

impl Authority {
    pub fn new() -> Self {
        Self::for_names(&["127.0.0.1", "localhost"])
    }

    /// The server's certificate is for these names.
    pub fn for_names(names: &[&str]) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        // Two authorities of one name would be mistaken for each other.
        let name = format!("Shop test authority {}", hex::encode(&key.public_key_raw()[1..9]));
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let certificate = params.self_signed(&key).unwrap();
        let issuer = Issuer::new(params, key);

        let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
        let server_key = KeyPair::generate().unwrap();
        let signed = CertificateParams::new(names).unwrap().signed_by(&server_key, &issuer).unwrap();
        let server = server(signed.der().clone(), PrivateKeyDer::Pkcs8(server_key.serialize_der().into()));

        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), certificate.pem()).unwrap();
        // For servers that are programs of their own.
        std::fs::write(folder.path().join("server.pem"), signed.pem()).unwrap();
        std::fs::write(folder.path().join("server.key"), server_key.serialize_pem()).unwrap();
        Self { folder, server }
    }

    /// PEM file of the authority.
    pub fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// A folder for what else the test writes.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

fn server(
    certificate: rustls::pki_types::CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
) -> Arc<ServerConfig> {
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder: rustls::ConfigBuilder<ServerConfig, server::WantsServerCert> =
        builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    Arc::new(builder.with_single_cert(vec![certificate], key).unwrap())
}
