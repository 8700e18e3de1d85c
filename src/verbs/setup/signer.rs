//! Where the key is that a run signs with: `--signer`, else `--key` (a file, or the PEM itself, as CI keeps it),
//! else the settings' key file.

use crate::attest::key::RecordSigner;
use crate::error::{At, Failure};
use crate::evidence::keys::PublicKey;
use crate::run::signing;
use crate::settings::Settings;
use crate::verbs::flags::Common;
use crate::verbs::setup::{Outside, format_path, strip_empty};
use std::ffi::OsStr;
use std::path::PathBuf;

/// The signer; none where none is named.
///
/// # Errors
/// One is named and cannot be used.
pub fn read_signer(
    common: &Common,
    settings: &Settings,
    outside: &Outside,
) -> Result<Option<RecordSigner>, Failure> {
    KeyAt::find_key(common, settings).map(|place| place.read_key(outside)).transpose()
}

/// For a verb that only shows what a run would do: the public key that the run would sign with, and what it
/// would lack. A signer command is not run for that, and its key not known.
#[must_use]
pub fn foresee_signer(
    common: &Common,
    settings: &Settings,
    outside: &Outside,
) -> (Option<PublicKey>, Option<Failure>) {
    if common.no_records {
        return (None, None);
    }
    let later = |failure: Failure| Some(failure.with_hint("a plan needs no key; the run will"));
    match KeyAt::find_key(common, settings) {
        None => (None, later(signing::make_no_key())),
        Some(KeyAt::Command(_)) => (None, None),
        Some(place @ (KeyAt::Pem(_) | KeyAt::File(_))) => match place.read_key(outside) {
            Ok(signer) => (Some(signer.public_key().clone()), None),
            Err(failure) => (None, later(failure)),
        },
    }
}

/// Where the signing key is.
enum KeyAt<'a> {
    /// `--signer`.
    Command(&'a str),
    /// `--key` with the PEM itself, as CI keeps it.
    Pem(&'a str),
    /// `--key`, else the settings' key file.
    File(PathBuf),
}

impl<'a> KeyAt<'a> {
    fn find_key(common: &'a Common, settings: &Settings) -> Option<Self> {
        if let Some(command) = strip_empty(common.signer.as_deref()) {
            return Some(Self::Command(command));
        }
        match (strip_empty(common.key.as_deref()), &settings.signing_key_file) {
            (Some(pem), _) if pem.trim_start().starts_with("-----BEGIN ") => Some(Self::Pem(pem)),
            (Some(path), _) => Some(Self::File(PathBuf::from(path))),
            (None, Some(path)) => Some(Self::File(path.path.clone())),
            (None, None) => None,
        }
    }

    /// # Errors
    /// It cannot be read or used.
    fn read_key(self, outside: &Outside) -> Result<RecordSigner, Failure> {
        // An empty password is a password.
        let is_password = |(name, _): &(&OsStr, &OsStr)| *name == "COSIGN_PASSWORD";
        let password = outside.environment.iter().find(is_password).and_then(|(_, value)| value.to_str());
        let path = match self {
            Self::Command(command) => return RecordSigner::from_command(command),
            Self::Pem(pem) => return RecordSigner::from_pem(pem, password),
            Self::File(path) => path,
        };
        let at = || At::from_file(format_path(&path));
        let pem = std::fs::read_to_string(&path).map_err(|error| {
            Failure::new_input("signing-key", format!("cannot read it: {error}"))
                .with_object("the signing key")
                .with_place(at())
        })?;
        RecordSigner::from_pem(&pem, password).map_err(|failure| failure.with_place(at()))
    }
}
