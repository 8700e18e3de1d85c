//! The job's signing key: a file that cosign made, a PKCS#8 PEM, or a command in front of a KMS or HSM.

use super::pem;
use crate::error::{Failure, FailureKind};
use crate::evidence::envelope::decode_base64;
use crate::evidence::keys::PublicKey;
use child_process::{Bounds, run_program};
use p256::ecdsa::signature::Signer as _;
use p256::pkcs8::{DecodePrivateKey as _, EncodePublicKey as _};
use sigstore::crypto::signing_key::SigStoreKeyPair;
use std::fmt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long a signer command may take.
const COMMAND_TIME: Duration = Duration::from_secs(60);
/// Largest output of a signer command that is read, in bytes.
const COMMAND_ANSWER: usize = 64 << 10;

/// Something that signs records. Its Debug shows the public key's fingerprint only.
pub struct RecordSigner {
    public: PublicKey,
    with: With,
}

enum With {
    P256(Box<p256::ecdsa::SigningKey>),
    Ed25519(Box<ed25519_dalek::SigningKey>),
    Command(CommandLine),
}

#[derive(Clone)]
struct CommandLine {
    words: Vec<String>,
    time: Duration,
}

impl fmt::Debug for RecordSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = match &self.with {
            With::P256(_) => "P-256 ***",
            With::Ed25519(_) => "Ed25519 ***",
            With::Command(_) => "command",
        };
        write!(f, "Signer({with}, {})", self.public.fingerprint())
    }
}

fn make_key_failure(why: impl Into<String>) -> Failure {
    Failure::new_input("signing-key", why).with_object("the signing key")
}

impl RecordSigner {
    /// Reads a key file: cosign's encrypted private key (`password` is COSIGN_PASSWORD), or a PKCS#8 PEM; ECDSA
    /// P-256 or Ed25519. The line breaks may be lost or written as `\n`, and the whole may be in base64, as CI
    /// variables often keep it.
    ///
    /// # Errors
    /// Input: another kind of key or file, or a wrong password. No part of the key appears in the message.
    pub fn from_pem(pem: &str, password: Option<&str>) -> Result<Self, Failure> {
        let text = pem::unpack_text(pem).ok_or_else(|| make_key_failure("it is not a PEM key"))?;
        let label = pem::find_label(&text).ok_or_else(|| make_key_failure("it is not a PEM key"))?;
        // A block that has no end is told by its label; the parser refuses it.
        let pem = &pem::restore_lines(&text).unwrap_or_else(|| text.clone());
        match label {
            "ENCRYPTED COSIGN PRIVATE KEY" | "ENCRYPTED SIGSTORE PRIVATE KEY" => {
                let pair =
                    SigStoreKeyPair::from_encrypted_pem(pem.as_bytes(), password.unwrap_or("").as_bytes());
                let der = pair.and_then(|p| p.private_key_to_der()).map_err(|_| match password {
                    Some(_) => make_key_failure("COSIGN_PASSWORD does not decrypt it, or it is damaged"),
                    None => make_key_failure("it is encrypted and COSIGN_PASSWORD is not set"),
                })?;
                Self::from_pkcs8(&der)
            }
            "PRIVATE KEY" => {
                let (_, der) = p256::pkcs8::SecretDocument::from_pem(pem)
                    .map_err(|_| make_key_failure("its PRIVATE KEY block does not parse"))?;
                Self::from_pkcs8(der.as_bytes())
            }
            "ENCRYPTED PRIVATE KEY" => {
                Err(make_key_failure("it is an encrypted PKCS#8 file, which is not supported")
                    .with_hint("convert it with: cosign import-key-pair --key FILE"))
            }
            "EC PRIVATE KEY" => Err(make_key_failure("it is a SEC1 file, which is not supported")
                .with_hint("convert it to PKCS#8 with: openssl pkcs8 -topk8 -nocrypt -in FILE")),
            other if pem::is_known_style(other) => Err(make_key_failure(format!(
                "its first block is {other:?}, which is not a supported private key"
            ))),
            // A label of another form may be a part of the key.
            _ => Err(make_key_failure("its first block has an unknown label")),
        }
    }

    fn from_pkcs8(der: &[u8]) -> Result<Self, Failure> {
        let public = |spki: Result<p256::pkcs8::Document, p256::pkcs8::spki::Error>| {
            spki.map_err(|e| e.to_string())
                .and_then(|d| PublicKey::from_spki(d.as_bytes()))
                .map_err(make_key_failure)
        };
        if let Ok(key) = p256::ecdsa::SigningKey::from_pkcs8_der(der) {
            let public = public(key.verifying_key().to_public_key_der())?;
            return Ok(Self { public, with: With::P256(Box::new(key)) });
        }
        if let Ok(key) = ed25519_dalek::SigningKey::from_pkcs8_der(der) {
            let public = public(key.verifying_key().to_public_key_der())?;
            return Ok(Self { public, with: With::Ed25519(Box::new(key)) });
        }
        Err(make_key_failure("it is neither ECDSA P-256 nor Ed25519")
            .with_hint("use one of these key types, or a command that signs: --signer COMMAND"))
    }

    /// A command that signs. The command line is split at spaces, without a shell. `COMMAND public-key` prints the
    /// public key as PEM; `COMMAND sign` gets the bytes to sign on its standard input and prints the signature,
    /// raw or in base64 (ECDSA: ASN.1 DER over SHA-256 for P-256). Each signature is verified with the public key.
    ///
    /// # Errors
    /// Input: the command does not run, or does not print exactly one public key.
    pub fn from_command(line: &str) -> Result<Self, Failure> {
        Self::from_command_within(line, COMMAND_TIME)
    }

    fn from_command_within(line: &str, time: Duration) -> Result<Self, Failure> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let command = CommandLine { words, time };
        let pem = command.run_verb("public-key", &[])?;
        let pem = String::from_utf8_lossy(&pem);
        let mut keys = PublicKey::from_pem(&pem).map_err(|why| {
            make_key_failure(format!("`{line} public-key` did not print a public key: {why}"))
        })?;
        match (keys.pop(), keys.is_empty()) {
            (Some(public), true) => Ok(Self { public, with: With::Command(command) }),
            _ => Err(make_key_failure(format!("`{line} public-key` printed more than one key"))),
        }
    }

    /// The key that verifies what this signs.
    #[must_use]
    pub fn public_key(&self) -> &PublicKey {
        &self.public
    }

    /// Signs `message`: raw bytes, DER for ECDSA.
    ///
    /// # Errors
    /// The command fails, or its output is not a signature by its own key.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Failure> {
        let signature = match &self.with {
            With::P256(key) => {
                let signature: p256::ecdsa::DerSignature = key.sign(message);
                signature.as_bytes().to_vec()
            }
            With::Ed25519(key) => key.sign(message).to_bytes().to_vec(),
            With::Command(command) => {
                let answer = command.run_verb("sign", message)?;
                if self.public.has_signed(message, &answer) {
                    return Ok(answer);
                }
                let text = String::from_utf8_lossy(&answer);
                decode_base64(text.trim()).ok_or_else(|| {
                    make_key_failure("the output of the signer command is not a signature by its public key")
                })?
            }
        };
        if self.public.has_signed(message, &signature) {
            Ok(signature)
        } else {
            Err(make_key_failure("the new signature does not verify with the public key"))
        }
    }
}

impl CommandLine {
    fn run_verb(&self, verb: &str, input: &[u8]) -> Result<Vec<u8>, Failure> {
        let line = format!("{} {verb}", self.words.join(" "));
        let failed = |why: String| {
            Failure::new(FailureKind::Input, "signer-command", why)
                .with_object(format!("signer command `{line}`"))
        };
        let [program, arguments @ ..] = self.words.as_slice() else {
            return Err(failed("it is empty".into()));
        };
        let mut command = Command::new(program);
        // Its standard error goes to the terminal or log of our caller.
        command.args(arguments).arg(verb).stderr(Stdio::inherit());
        let bounds = Bounds { time: self.time, output: COMMAND_ANSWER };
        let ended = run_program(command, input, bounds).map_err(|fault| failed(fault.to_string()))?;
        if !ended.status.success() {
            return Err(failed(format!("it ended with {}", ended.status)));
        }
        Ok(ended.output)
    }
}
