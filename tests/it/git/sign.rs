//! Signed commits, verified by git itself.

use super::{changes, fsck, git, identity, proposal};
use crate::support::gitserver::key;
use crate::support::peers::peer;
use git_commits::GitError;
use git_commits::{CommitSigner, WriteOutcome};
use git_commits::{Environment, Repository, RepositoryOptions, RepositoryTarget};
use std::path::Path;
use std::process::{Command, Stdio};

fn open(path: &Path, variables: &[(&str, &str)]) -> (Repository, Environment) {
    let environment = Environment::new(
        [("PATH", std::env::var("PATH").unwrap().as_str())].iter().chain(variables).copied(),
    );
    let options = RepositoryOptions { environment: environment.clone(), ..RepositoryOptions::default() };
    (Repository::open_target(&RepositoryTarget::Path(path.to_path_buf()), options).unwrap(), environment)
}

fn signed(
    path: &Path,
    variables: &[(&str, &str)],
    setting: Option<&Path>,
    file: &str,
) -> Result<(), GitError> {
    let (repository, environment) = open(path, variables);
    let signer = CommitSigner::resolve(setting, &environment, &repository)?;
    let me = identity().with_signer(signer);
    let base = repository.read_snapshot("main").unwrap();
    let done = git_commits::write_changes(
        &repository,
        &base,
        &changes([(file, Some("x"))]),
        proposal("signed ü\n", &me),
    )?;
    assert!(matches!(done, WriteOutcome::Pushed(_)));
    Ok(())
}

/// Whether git verifies the head by the public key of `key`.
fn verifies(path: &Path, key: &Path) -> bool {
    let public = std::fs::read_to_string(key.with_extension("pub")).unwrap();
    let allowed = path.join("allowed");
    std::fs::write(&allowed, format!("* {public}")).unwrap();
    let setting = format!("gpg.ssh.allowedSignersFile={}", allowed.display());
    let done = Command::new("git")
        .args(["-c", &setting, "verify-commit", "main"])
        .current_dir(path)
        .output()
        .unwrap();
    done.status.success()
}

fn repository() -> crate::git::Folder {
    let dir = crate::git::folder();
    git(dir.path(), &["init", "-q", "--bare", "-b", "main", "."]);
    dir
}

#[test]
fn git_verifies_what_was_signed() {
    let Some(keygen) = peer("ssh-keygen") else { return };
    let dir = repository();
    for kind in ["ed25519", "rsa", "ecdsa"] {
        let file = dir.path().join(format!("key-{kind}"));
        key(&keygen, &file, kind, "");
        signed(dir.path(), &[], Some(&file), kind).unwrap();
        assert!(verifies(dir.path(), &file), "{kind}");
    }
    assert_eq!(git(dir.path(), &["log", "-1", "--format=%B", "main"]), "signed ü");
    // By git's own configuration.
    let file = dir.path().join("key-ed25519");
    let (name, path) = (file.to_str().unwrap(), dir.path());
    let configured = [
        ("GIT_CONFIG_COUNT", "3"),
        ("GIT_CONFIG_KEY_0", "commit.gpgsign"),
        ("GIT_CONFIG_VALUE_0", "true"),
        ("GIT_CONFIG_KEY_1", "gpg.format"),
        ("GIT_CONFIG_VALUE_1", "ssh"),
        ("GIT_CONFIG_KEY_2", "user.signingkey"),
        ("GIT_CONFIG_VALUE_2", name),
    ];
    signed(path, &configured, None, "configured").unwrap();
    assert!(verifies(path, &file));
    let other = path.join("other");
    key(&keygen, &other, "ed25519", "");
    assert!(!verifies(path, &other), "another key's signature is none");
    fsck(path);
}

#[test]
fn keys_of_an_agent_and_with_a_passphrase_sign() {
    let (Some(keygen), Some(agent)) = (peer("ssh-keygen"), peer("ssh-agent")) else { return };
    let dir = repository();
    let path = dir.path();
    let file = path.join("key");
    key(&keygen, &file, "ed25519", "open sesame");
    let ask = path.join("ask");
    std::fs::write(&ask, "#!/bin/sh\necho 'open sesame'\n").unwrap();
    std::fs::set_permissions(&ask, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let ask = ask.to_str().unwrap();
    let failed = signed(path, &[], Some(&file), "locked").unwrap_err();
    assert_eq!(failed.code, "commit-signing", "{failed}");
    signed(path, &[("SSH_ASKPASS", ask)], Some(&file), "asked").unwrap();
    assert!(verifies(path, &file));

    let socket = path.join("agent");
    let mut running =
        Command::new(agent).args(["-D", "-a"]).arg(&socket).stdout(Stdio::null()).spawn().unwrap();
    crate::support::gitserver::appears(&socket);
    let added = Command::new("ssh-add")
        .arg("-q")
        .arg(&file)
        .envs([("SSH_ASKPASS", ask), ("SSH_ASKPASS_REQUIRE", "force")])
        .env("SSH_AUTH_SOCK", &socket)
        .status();
    assert!(added.unwrap().success());
    let public = format!("key::{}", std::fs::read_to_string(file.with_extension("pub")).unwrap());
    let configured = [
        ("SSH_AUTH_SOCK", socket.to_str().unwrap()),
        ("GIT_CONFIG_COUNT", "3"),
        ("GIT_CONFIG_KEY_0", "commit.gpgsign"),
        ("GIT_CONFIG_VALUE_0", "true"),
        ("GIT_CONFIG_KEY_1", "gpg.format"),
        ("GIT_CONFIG_VALUE_1", "ssh"),
        ("GIT_CONFIG_KEY_2", "user.signingkey"),
        ("GIT_CONFIG_VALUE_2", public.trim()),
    ];
    signed(path, &configured, None, "agent").unwrap();
    assert!(verifies(path, &file));
    running.kill().unwrap();
    running.wait().unwrap();
    let head = git(path, &["rev-parse", "main"]);
    assert_eq!(signed(path, &configured, None, "gone").unwrap_err().code, "commit-signing");
    assert_eq!(git(path, &["rev-parse", "main"]), head);
    fsck(path);
}

#[test]
fn b82_signing_that_cannot_be_done_is_an_error() {
    let dir = repository();
    let sign = |more: &[(&str, &str)]| {
        let mut all = vec![("GIT_CONFIG_KEY_0", "commit.gpgsign"), ("GIT_CONFIG_VALUE_0", "true")];
        all.extend(more);
        signed(dir.path(), &all, None, "x").unwrap_err()
    };
    let failed = sign(&[("GIT_CONFIG_COUNT", "1")]);
    assert!(failed.cause.contains("OpenPGP"), "{failed}");
    let failed =
        sign(&[("GIT_CONFIG_COUNT", "2"), ("GIT_CONFIG_KEY_1", "gpg.format"), ("GIT_CONFIG_VALUE_1", "ssh")]);
    assert!(failed.cause.contains("user.signingkey"), "{failed}");
    let failed = signed(dir.path(), &[], Some(Path::new("/nowhere/key")), "x").unwrap_err();
    assert!(failed.cause.contains("/nowhere/key"), "{failed}");
    assert_eq!(git(dir.path(), &["for-each-ref"]), "");
}
