//! Where the key is that a run signs with: `--signer`, or `--key` (a file, or the key itself, as CI keeps it), or
//! the settings' key file.
//!
//! The value of `--key` and of EXPEDITE_KEY may be a secret, whatever its form: it is described by its length where
//! it can be neither read nor used, and never printed.

use crate::attest::key::RecordSigner;
use crate::attest::pem;
use crate::error::{At, Failure};
use crate::evidence::keys::PublicKey;
use crate::run::signing;
use crate::settings::Settings;
use crate::verbs::flags::Common;
use crate::verbs::setup::{Outside, format_path, strip_empty};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

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
        Some(place @ (KeyAt::Pem(_) | KeyAt::Given(_) | KeyAt::File(_))) => match place.read_key(outside) {
            Ok(signer) => (Some(signer.public_key().clone()), None),
            Err(failure) => (None, later(failure)),
        },
    }
}

/// Where the signing key is.
enum KeyAt<'a> {
    /// `--signer`.
    Command(&'a str),
    /// `--key` with the key itself, as CI keeps it.
    Pem(&'a str),
    /// `--key` with something else: a path, or a key that is damaged.
    Given(&'a str),
    /// The settings' key file.
    File(PathBuf),
}

impl<'a> KeyAt<'a> {
    fn find_key(common: &'a Common, settings: &Settings) -> Option<Self> {
        if let Some(command) = strip_empty(common.signer.as_deref()) {
            return Some(Self::Command(command));
        }
        match (strip_empty(common.key.as_deref()), &settings.signing_key_file) {
            (Some(key), _) if pem::is_pem(key) => Some(Self::Pem(key)),
            (Some(path), _) => Some(Self::Given(path)),
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
            Self::Given(value) if !Path::new(value).exists() => return Err(refuse_value(value)),
            Self::Given(path) => PathBuf::from(path),
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

/// What to say of a value that is neither a key nor an existing file: it may be a secret.
fn refuse_value(value: &str) -> Failure {
    let cause = format!(
        "the value of --key (or EXPEDITE_KEY) has {} characters; it is not a PEM key, not base64 of one, and not the \
         path of an existing file",
        value.chars().count()
    );
    Failure::new_input("signing-key", cause)
        .with_object("the signing key")
        .with_hint("give the path of the key file, or the whole content of the file, from BEGIN to END")
}
