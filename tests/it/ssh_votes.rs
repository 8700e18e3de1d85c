//! Votes signed by the real `ssh-keygen`, with a key file and with an agent.

use crate::support::peers;
use expedite::model::approval::Ballot;
use expedite::model::id::{Digest, Namespace, PreparationName};
use expedite::model::time::Time;
use expedite::policy::gates::ssh_vote::{NAMESPACE, build_vote_bytes, parse_key, verify_signature};
use std::fs;
use std::path::Path;
use std::process::Command;

fn vote(decision: Ballot) -> Vec<u8> {
    build_vote_bytes(
        &Namespace::parse("shop").unwrap(),
        &PreparationName::parse("podinfo-d7ce0c46a686").unwrap(),
        Digest::hash_bytes(b"manifests"),
        decision,
        Time::parse("2026-02-03T10:20:30Z").unwrap(),
    )
}

fn run(command: &mut Command) {
    let done = command.output().unwrap();
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Makes a key of the kind, signs `message` for `namespace`, and gives (public line, signature).
fn sign(
    ssh_keygen: &Path,
    folder: &Path,
    kind: &[&str],
    namespace: &str,
    message: &[u8],
) -> (String, String) {
    let key = folder.join(format!("key-{}", kind.join("-")));
    if !key.exists() {
        run(Command::new(ssh_keygen)
            .args(["-q", "-N", "", "-C", "ann", "-f"])
            .arg(&key)
            .arg("-t")
            .args(kind));
    }
    let file = folder.join("vote");
    fs::write(&file, message).unwrap();
    let _ = fs::remove_file(folder.join("vote.sig"));
    run(Command::new(ssh_keygen).args(["-q", "-Y", "sign", "-n", namespace, "-f"]).arg(&key).arg(&file));
    let public = fs::read_to_string(key.with_extension("pub")).unwrap();
    (public, fs::read_to_string(folder.join("vote.sig")).unwrap())
}

#[test]
fn every_kind_of_key_verifies_and_nothing_else_passes() {
    let Some(ssh_keygen) = peers::peer("ssh-keygen") else { return };
    let folder = tempfile::tempdir().unwrap();
    let kinds: [&[&str]; 6] = [
        &["ed25519"],
        &["ecdsa", "-b", "256"],
        &["ecdsa", "-b", "384"],
        &["ecdsa", "-b", "521"],
        &["rsa", "-b", "2048"],
        &["rsa", "-b", "4096"],
    ];
    let approve = vote(Ballot::Approve);
    for kind in kinds {
        let (public, signature) = sign(&ssh_keygen, folder.path(), kind, NAMESPACE, &approve);
        let key = parse_key(&public).unwrap();
        let by = verify_signature(&signature, &approve, std::slice::from_ref(&key))
            .unwrap_or_else(|why| panic!("{kind:?}: {why}"));
        assert!(by.starts_with("SHA256:"), "{by}");
        let flipped = verify_signature(&signature, &vote(Ballot::Reject), std::slice::from_ref(&key));
        assert!(flipped.is_err(), "{kind:?}");
        let (_, elsewhere) = sign(&ssh_keygen, folder.path(), kind, "git", &approve);
        assert!(verify_signature(&elsewhere, &approve, std::slice::from_ref(&key)).is_err(), "{kind:?}");
    }
}

#[test]
fn a_weak_key_is_refused() {
    let Some(ssh_keygen) = peers::peer("ssh-keygen") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (public, _) =
        sign(&ssh_keygen, folder.path(), &["rsa", "-b", "1024"], NAMESPACE, &vote(Ballot::Approve));
    assert_eq!(parse_key(&public).unwrap_err(), "an RSA key of 1024 bits is too weak; use 2048 or more");
}

#[test]
fn an_agent_signs_too() {
    let (Some(ssh_keygen), Some(ssh_agent), Some(ssh_add)) =
        (peers::peer("ssh-keygen"), peers::peer("ssh-agent"), peers::peer("ssh-add"))
    else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    run(Command::new(&ssh_keygen).args(["-q", "-N", "", "-t", "ed25519", "-f"]).arg(&key));
    let socket = folder.path().join("agent");
    let mut agent = Command::new(ssh_agent)
        .arg("-D")
        .arg("-a")
        .arg(&socket)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    for _ in 0..200 {
        if socket.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let added = Command::new(ssh_add).arg("-q").arg(&key).env("SSH_AUTH_SOCK", &socket).output().unwrap();
    let file = folder.path().join("vote");
    fs::write(&file, vote(Ballot::Approve)).unwrap();
    // Only the public half is left: the agent has the other.
    fs::remove_file(&key).unwrap();
    let public = key.with_extension("pub");
    let signed = Command::new(ssh_keygen)
        .args(["-q", "-Y", "sign", "-n", NAMESPACE, "-f"])
        .arg(&public)
        .arg(&file)
        .env("SSH_AUTH_SOCK", &socket)
        .output()
        .unwrap();
    agent.kill().unwrap();
    agent.wait().unwrap();
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    assert!(signed.status.success(), "{}", String::from_utf8_lossy(&signed.stderr));
    let signature = fs::read_to_string(folder.path().join("vote.sig")).unwrap();
    let keys = [parse_key(&fs::read_to_string(public).unwrap()).unwrap()];
    verify_signature(&signature, &vote(Ballot::Approve), &keys).unwrap();
}
