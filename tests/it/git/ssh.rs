//! A real sshd.

use super::{changes, fsck, git, identity, proposal};
use crate::support::gitserver::{self, GitServer};
use git_commits::GitError;
use git_commits::WriteOutcome;
use git_commits::{Environment, Repository, RepositoryOptions, RepositoryTarget, Timeouts};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// An ssh that knows nothing but what a test gives it, with the client key `key`.
fn command(server: &GitServer, key: &str) -> String {
    format!(
        "ssh -F /dev/null -i {} -o IdentitiesOnly=yes -o GlobalKnownHostsFile=/dev/null",
        server.etc.join(key).display()
    )
}

fn open(server: &GitServer, command: &str, variables: &[(&str, &str)]) -> Repository {
    let path = std::env::var("PATH").unwrap();
    let user = Command::new("id").arg("-un").output().unwrap().stdout;
    let user = String::from_utf8(user).unwrap();
    let fixed = [("PATH", path.as_str()), ("GIT_SSH_COMMAND", command)];
    let options = RepositoryOptions {
        environment: Environment::new(fixed.iter().chain(variables).copied()),
        timeouts: Timeouts { connect: Duration::from_secs(5), silence: Duration::from_secs(10) },
        ..RepositoryOptions::default()
    };
    let root = server.root.join("gitops.git");
    let url = format!("ssh://{}@127.0.0.1:{}{}", user.trim(), server.port, root.display());
    Repository::open_target(&RepositoryTarget::Url(url), options).unwrap()
}

fn write(repository: &Repository, file: &str) -> Result<WriteOutcome, GitError> {
    let base = repository.read_snapshot("main")?;
    git_commits::write_changes(
        repository,
        &base,
        &changes([(file, Some("x\n"))]),
        proposal(file, &identity()),
    )
}

/// A known_hosts file with these lines.
fn known(server: &GitServer, name: &str, text: &str) -> String {
    let file = server.etc.join(name);
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn commits_arrive_and_refusals_are_told() {
    let Some(server) = gitserver::ssh() else { return };
    let path = server.create("gitops.git");
    let hosts = known(&server, "known", &server.known_host());
    let repository = open(&server, &command(&server, "client"), &[("EXPEDITE_SSH_KNOWN_HOSTS", &hosts)]);
    assert!(matches!(write(&repository, "a"), Ok(WriteOutcome::Pushed(_))));
    assert!(matches!(write(&repository, "b"), Ok(WriteOutcome::Pushed(_))));
    assert_eq!(write(&repository, "b").unwrap(), WriteOutcome::Unchanged);
    assert_eq!(git(&path, &["log", "--format=%s", "main"]), "b\na");
    let stale = repository.read_snapshot("main").unwrap();
    assert!(matches!(write(&repository, "c"), Ok(WriteOutcome::Pushed(_))));
    let late = git_commits::write_changes(
        &repository,
        &stale,
        &changes([("d", Some("d"))]),
        proposal("d", &identity()),
    );
    assert_eq!(late.unwrap(), WriteOutcome::Moved);
    GitServer::hook(&path, "pre-receive", "echo 'author not allowed' >&2; exit 1");
    let WriteOutcome::Refused(words) = write(&repository, "d").unwrap() else { panic!("not refused") };
    assert!(words.contains("author not allowed"), "{words}");
    fsck(&path);
}

#[test]
fn b32_host_keys_are_found_where_ssh_finds_them_and_no_other_is_accepted() {
    let Some(server) = gitserver::ssh() else { return };
    server.create("gitops.git");
    let keygen = crate::support::peers::find("ssh-keygen").unwrap();
    let line = server.known_host();
    let good = known(&server, "known", &line);
    let plain = command(&server, "client");
    // Only in the system's file.
    let system = plain.replace("GlobalKnownHostsFile=/dev/null", &format!("GlobalKnownHostsFile={good}"));
    assert!(open(&server, &system, &[]).read_snapshot("main").is_ok());
    // Hashed.
    let hashed = known(&server, "hashed", &line);
    let done = Command::new(&keygen)
        .args(["-H", "-f", &hashed])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(done.unwrap().success());
    assert!(!std::fs::read_to_string(&hashed).unwrap().contains("127.0.0.1"));
    assert!(open(&server, &plain, &[("EXPEDITE_SSH_KNOWN_HOSTS", &hashed)]).read_snapshot("main").is_ok());
    // A key of another kind is known besides.
    gitserver::key(&keygen, &server.etc.join("other"), "ecdsa", "");
    let other = std::fs::read_to_string(server.etc.join("other.pub")).unwrap();
    let both = known(&server, "both", &format!("[127.0.0.1]:{} {other}{line}", server.port));
    assert!(open(&server, &plain, &[("EXPEDITE_SSH_KNOWN_HOSTS", &both)]).read_snapshot("main").is_ok());

    // Unknown, changed: refused, with the fingerprint.
    let shown = Command::new(&keygen).args(["-l", "-f"]).arg(server.etc.join("host.pub")).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let fingerprint = shown.split(' ').find(|w| w.starts_with("SHA256:")).unwrap();
    let none = known(&server, "none", "");
    let failed =
        open(&server, &plain, &[("EXPEDITE_SSH_KNOWN_HOSTS", &none)]).read_snapshot("main").unwrap_err();
    assert_eq!(failed.code, "host-key");
    assert!(failed.cause.contains(fingerprint) && failed.cause.contains("not known"), "{failed}");
    assert!(failed.hints[0].contains("EXPEDITE_SSH_KNOWN_HOSTS"), "{failed:?}");
    gitserver::key(&keygen, &server.etc.join("former"), "ed25519", "");
    let former = std::fs::read_to_string(server.etc.join("former.pub")).unwrap();
    let changed = known(&server, "changed", &format!("[127.0.0.1]:{} {former}", server.port));
    let failed =
        open(&server, &plain, &[("EXPEDITE_SSH_KNOWN_HOSTS", &changed)]).read_snapshot("main").unwrap_err();
    assert_eq!(failed.code, "host-key");
    assert!(failed.cause.contains("CHANGED") && failed.cause.contains(fingerprint), "{failed}");
    for file in ["none", "changed"] {
        assert!(
            !std::fs::read_to_string(server.etc.join(file)).unwrap().contains(&line),
            "{file} was written"
        );
    }
    // A configuration that would accept any key does not.
    let lax = server.etc.join("lax");
    std::fs::write(&lax, "Host *\n  StrictHostKeyChecking no\n").unwrap();
    let lax = plain.replace("-F /dev/null", &format!("-F {}", lax.display()));
    assert_eq!(
        open(&server, &lax, &[("EXPEDITE_SSH_KNOWN_HOSTS", &none)]).read_snapshot("main").unwrap_err().code,
        "host-key"
    );
}

#[test]
fn b30_keys_that_are_refused_end_within_seconds() {
    let Some(server) = gitserver::ssh() else { return };
    server.create("gitops.git");
    let hosts = known(&server, "known", &server.known_host());
    let keygen = crate::support::peers::find("ssh-keygen").unwrap();
    gitserver::key(&keygen, &server.etc.join("wrong"), "ed25519", "");
    let known = ("EXPEDITE_SSH_KNOWN_HOSTS", hosts.as_str());
    let start = Instant::now();
    let failed = open(&server, &command(&server, "wrong"), &[known]).read_snapshot("main").unwrap_err();
    assert!(failed.cause.contains("Permission denied"), "{failed}");
    assert!(failed.to_string().contains("127.0.0.1"), "{failed}");

    // An agent with ten wrong keys, then one with the right one.
    let Some(agent) = crate::support::peers::peer("ssh-agent") else { return };
    let socket = server.etc.join("agent");
    let mut running =
        Command::new(agent).args(["-D", "-a"]).arg(&socket).stdout(Stdio::null()).spawn().unwrap();
    crate::support::gitserver::appears(&socket);
    let add = |key: &Path| {
        let done = Command::new("ssh-add").arg("-q").arg(key).env("SSH_AUTH_SOCK", &socket).status().unwrap();
        assert!(done.success());
    };
    for n in 0..10 {
        let key = server.etc.join(format!("wrong{n}"));
        gitserver::key(&keygen, &key, "ed25519", "");
        add(&key);
    }
    let with_agent = "ssh -F /dev/null -o IdentityFile=none -o GlobalKnownHostsFile=/dev/null";
    let socket_text = socket.to_str().unwrap();
    let failed = open(&server, with_agent, &[known, ("SSH_AUTH_SOCK", socket_text)])
        .read_snapshot("main")
        .unwrap_err();
    assert!(failed.cause.contains("Too many authentication failures"), "{failed}");
    assert!(start.elapsed() < Duration::from_secs(15));
    let cleared = Command::new("ssh-add").args(["-q", "-D"]).env("SSH_AUTH_SOCK", &socket).status().unwrap();
    assert!(cleared.success());
    add(&server.etc.join("client"));
    assert!(
        open(&server, with_agent, &[known, ("SSH_AUTH_SOCK", socket_text)]).read_snapshot("main").is_ok()
    );
    running.kill().unwrap();
    running.wait().unwrap();
}

#[test]
fn a_passphrase_comes_from_the_program_that_was_named() {
    let Some(server) = gitserver::ssh() else { return };
    server.create("gitops.git");
    let hosts = known(&server, "known", &server.known_host());
    let keygen = crate::support::peers::find("ssh-keygen").unwrap();
    gitserver::key(&keygen, &server.etc.join("locked"), "ed25519", "open sesame");
    std::fs::copy(server.etc.join("locked.pub"), server.etc.join("authorized")).unwrap();
    let ask = |name: &str, says: &str| {
        let file = server.etc.join(name);
        let count = server.etc.join(format!("{name}.asked"));
        std::fs::write(&file, format!("#!/bin/sh\necho . >> {}\necho '{says}'\n", count.display())).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        (file.to_str().unwrap().to_owned(), count)
    };
    let known = ("EXPEDITE_SSH_KNOWN_HOSTS", hosts.as_str());
    let locked = command(&server, "locked");
    let (right, _) = ask("right", "open sesame");
    assert!(open(&server, &locked, &[known, ("SSH_ASKPASS", &right)]).read_snapshot("main").is_ok());
    let (wrong, asked) = ask("wrong", "open barley");
    assert!(open(&server, &locked, &[known, ("SSH_ASKPASS", &wrong)]).read_snapshot("main").is_err());
    assert_eq!(std::fs::read_to_string(asked).unwrap(), ".\n", "asked once");
    assert!(open(&server, &locked, &[known]).read_snapshot("main").is_err(), "nobody is asked");
}

#[test]
fn a_repository_that_is_not_there_and_a_silent_server_are_named() {
    let Some(server) = gitserver::ssh() else { return };
    let hosts = known(&server, "known", &server.known_host());
    let repository = open(&server, &command(&server, "client"), &[("EXPEDITE_SSH_KNOWN_HOSTS", &hosts)]);
    let failed = repository.read_snapshot("main").unwrap_err();
    assert!(failed.cause.contains("gitops.git"), "{failed}");

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let path = std::env::var("PATH").unwrap();
    let options = RepositoryOptions {
        environment: Environment::new([("PATH", path.as_str())]),
        timeouts: Timeouts { connect: Duration::from_secs(1), silence: Duration::from_secs(2) },
        ..RepositoryOptions::default()
    };
    let start = Instant::now();
    let silent =
        Repository::open_target(&RepositoryTarget::Url(format!("ssh://127.0.0.1:{port}/x")), options.clone())
            .unwrap();
    let failed = silent.read_snapshot("main").unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(8));
    assert_eq!(failed.code, "repository-unreachable", "{failed}");

    let bare = RepositoryOptions { environment: Environment::new([("PATH", "/nowhere")]), ..options };
    let without =
        Repository::open_target(&RepositoryTarget::Url("ssh://127.0.0.1/x".to_owned()), bare).unwrap();
    assert_eq!(without.read_snapshot("main").unwrap_err().code, "program-absent");
}
