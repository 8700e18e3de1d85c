//! Signs commits with an SSH key, as git does (`gpg.format=ssh`). Signing that was asked for and cannot be
//! done is an error, never an unsigned commit.

use crate::error::{GitError, GitErrorKind};
use crate::{Environment, Repository};
use child_process::{Bounds, run_program};
use ssh_key::{HashAlg, LineEnding, PrivateKey};
use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Namespace of git's signatures (gitformat-signature).
const NAMESPACE: &str = "git";

/// How far `ssh-keygen` may go: a security key waits for a touch.
const BOUNDS: Bounds = Bounds { time: Duration::from_secs(60), output: 64 << 10 };

/// Signs commits.
#[derive(Clone)]
pub struct CommitSigner {
    name: String,
    how: SigningMethod,
}

#[derive(Clone)]
enum SigningMethod {
    /// A key without a passphrase, in this process.
    Key(Arc<PrivateKey>),
    /// `ssh-keygen -Y sign`: keys of an agent, with a passphrase, on a security key, RSA, of another format.
    Program { program: String, key: SshKeygenKey, environment: Environment },
}

/// The key as `ssh-keygen` is told.
#[derive(Clone)]
enum SshKeygenKey {
    File(PathBuf),
    /// A public key whose private half an agent holds.
    Public(String),
}

impl fmt::Debug for CommitSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Signer").field(&self.name).finish()
    }
}

impl PartialEq for CommitSigner {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for CommitSigner {}

impl CommitSigner {
    /// The signer that was asked for: by `setting` (a key file), else by git's configuration
    /// (`commit.gpgsign` with `gpg.format=ssh` and `user.signingkey`); `None` when neither asks for one.
    ///
    /// # Errors
    /// Signing is asked for and there is no usable key, or OpenPGP is asked for.
    pub fn resolve(
        setting: Option<&Path>,
        environment: &Environment,
        repository: &Repository,
    ) -> Result<Option<Self>, GitError> {
        if let Some(file) = setting {
            return Self::from_file(file, "repository.signCommits", environment, repository).map(Some);
        }
        if !repository.config.is_true("commit.gpgsign") {
            return Ok(None);
        }
        let off = "or let this repository do without: git config commit.gpgsign false";
        let wrong = |why: &str| {
            GitError::new(GitErrorKind::Input, "commit-signing", why).with_object("commit.gpgsign")
        };
        if !repository.find_config("gpg.format").is_some_and(|f| f.eq_ignore_ascii_case("ssh")) {
            return Err(wrong(
                "git's configuration asks for OpenPGP or X.509 signatures, and only SSH signatures are made",
            )
            .with_hint(format!("name an SSH key with repository.signCommits, {off}")));
        }
        let key =
            repository.find_config("user.signingkey").filter(|k| !k.trim().is_empty()).ok_or_else(|| {
                wrong("git's configuration asks for signed commits, and names no user.signingkey").with_hint(
                    format!("name an SSH key with user.signingkey or repository.signCommits, {off}"),
                )
            })?;
        let literal = key.strip_prefix("key::").or_else(|| Some(key).filter(|k| k.starts_with("ssh-")));
        match literal {
            Some(public) => Ok(Some(Self {
                name: "the key in user.signingkey".to_owned(),
                how: SigningMethod::from_program(
                    SshKeygenKey::Public(public.to_owned()),
                    environment,
                    repository,
                ),
            })),
            None => {
                Self::from_file(&environment.expand_path(key), "user.signingkey", environment, repository)
                    .map(Some)
            }
        }
    }

    fn from_file(
        file: &Path,
        source: &str,
        environment: &Environment,
        repository: &Repository,
    ) -> Result<Self, GitError> {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(|e| {
            GitError::new_input("commit-signing", format!("cannot read the signing key {name}: {e}"))
                .with_object(source.to_owned())
        })?;
        let how = match PrivateKey::from_openssh(&text) {
            Ok(key)
                if !key.is_encrypted() && (key.algorithm().is_ed25519() || key.algorithm().is_ecdsa()) =>
            {
                SigningMethod::Key(Arc::new(key))
            }
            // RSA, too: the crate reads such keys and does not sign with them.
            Ok(_) | Err(_) => {
                SigningMethod::from_program(SshKeygenKey::File(file.to_path_buf()), environment, repository)
            }
        };
        Ok(Self { name, how })
    }

    /// Signs the text of a commit object.
    ///
    /// # Errors
    /// The key cannot sign: it is locked, its agent is away, the program is missing.
    pub(crate) fn sign_commit(&self, commit: &[u8]) -> Result<String, GitError> {
        let failed = |why: String| {
            GitError::new(GitErrorKind::Input, "commit-signing", format!("cannot sign the commit: {why}"))
                .with_object(self.name.clone())
                .with_hint("load the key into the agent, or take away signCommits (commit.gpgsign)")
        };
        match &self.how {
            SigningMethod::Key(key) => key
                .sign(NAMESPACE, HashAlg::Sha512, commit)
                .and_then(|signature| signature.to_pem(LineEnding::LF))
                .map_err(|e| failed(e.to_string())),
            SigningMethod::Program { program, key, environment } => {
                let mut kept = None;
                let file = match key {
                    SshKeygenKey::File(file) => file.clone(),
                    SshKeygenKey::Public(text) => {
                        let mut file = tempfile::NamedTempFile::new().map_err(|e| failed(e.to_string()))?;
                        file.write_all(format!("{text}\n").as_bytes()).map_err(|e| failed(e.to_string()))?;
                        kept.insert(file).path().to_path_buf()
                    }
                };
                let mut command = Command::new(program);
                command.args(["-Y", "sign", "-n", NAMESPACE, "-f"]).arg(&file);
                if kept.is_some() {
                    // The file holds a public key: an agent has the private one.
                    command.arg("-U");
                }
                command.env_clear().envs(environment.iter());
                if environment.get("SSH_ASKPASS").is_some() {
                    command.env("SSH_ASKPASS_REQUIRE", "force");
                } else {
                    // Nobody sits there to type a passphrase.
                    command.envs([("SSH_ASKPASS_REQUIRE", "force"), ("SSH_ASKPASS", "false")]);
                }
                run_keygen(command, commit)
                    .map_err(|why| failed(why.replace(&*file.to_string_lossy(), &self.name)))
            }
        }
    }
}

impl SigningMethod {
    fn from_program(key: SshKeygenKey, environment: &Environment, repository: &Repository) -> Self {
        let program =
            repository.find_config("gpg.ssh.program").filter(|p| !p.is_empty()).unwrap_or("ssh-keygen");
        Self::Program { program: program.to_owned(), key, environment: environment.clone() }
    }
}

/// Runs `ssh-keygen` with `input`; the signature, or why there is none.
fn run_keygen(mut command: Command, input: &[u8]) -> Result<String, String> {
    command.stderr(Stdio::piped());
    let ended = run_program(command, input, BOUNDS).map_err(|fault| format!("ssh-keygen: {fault}"))?;
    let out = String::from_utf8_lossy(&ended.output);
    if ended.status.success() && out.contains("-----BEGIN SSH SIGNATURE-----") {
        return Ok(out.into_owned());
    }
    Err(if ended.words.is_empty() { "ssh-keygen gave no signature".to_owned() } else { ended.words })
}
