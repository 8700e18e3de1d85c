//! Where the key is that a run signs with: `--signer`, else `--key` (a file, or the PEM itself, as CI keeps it),
//! else the settings' key file.

use crate::attest::key::Signer;
use crate::cli::Common;
use crate::cmd::setup::{Outside, given, shown};
use crate::error::{At, Failure};
use crate::evidence::keys::PublicKey;
use crate::run::signing;
use crate::settings::Settings;
use std::ffi::OsStr;
use std::path::PathBuf;

/// The signer; none where none is named.
///
/// # Errors
/// One is named and cannot be used.
pub fn signer(common: &Common, settings: &Settings, outside: &Outside) -> Result<Option<Signer>, Failure> {
    KeyAt::of(common, settings).map(|place| place.read(outside)).transpose()
}

/// For a verb that only shows what a run would do: the public key that the run would sign with, and what it
/// would lack. A signer command is not run for that, and its key not known.
#[must_use]
pub fn foreseen(
    common: &Common,
    settings: &Settings,
    outside: &Outside,
) -> (Option<PublicKey>, Option<Failure>) {
    if common.no_records {
        return (None, None);
    }
    let later = |failure: Failure| Some(failure.hint("a plan needs no key; the run will"));
    match KeyAt::of(common, settings) {
        None => (None, later(signing::no_key())),
        Some(KeyAt::Command(_)) => (None, None),
        Some(place @ (KeyAt::Pem(_) | KeyAt::File(_))) => match place.read(outside) {
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
    fn of(common: &'a Common, settings: &Settings) -> Option<Self> {
        if let Some(command) = given(common.signer.as_deref()) {
            return Some(Self::Command(command));
        }
        match (given(common.key.as_deref()), &settings.signing_key_file) {
            (Some(pem), _) if pem.trim_start().starts_with("-----BEGIN ") => Some(Self::Pem(pem)),
            (Some(path), _) => Some(Self::File(PathBuf::from(path))),
            (None, Some(path)) => Some(Self::File(path.path.clone())),
            (None, None) => None,
        }
    }

    /// # Errors
    /// It cannot be read or used.
    fn read(self, outside: &Outside) -> Result<Signer, Failure> {
        // An empty password is a password.
        let is_password = |(name, _): &(&OsStr, &OsStr)| *name == "COSIGN_PASSWORD";
        let password = outside.environment.iter().find(is_password).and_then(|(_, value)| value.to_str());
        let path = match self {
            Self::Command(command) => return Signer::from_command(command),
            Self::Pem(pem) => return Signer::from_pem(pem, password),
            Self::File(path) => path,
        };
        let at = || At::file(shown(&path));
        let pem = std::fs::read_to_string(&path).map_err(|error| {
            Failure::input("signing-key", format!("cannot read it: {error}")).of("the signing key").at(at())
        })?;
        Signer::from_pem(&pem, password).map_err(|failure| failure.at(at()))
    }
}
