//! In a container as its users harden it: nothing is writable but a small folder for temporary files, there is
//! no HOME, and no other host answers than the registry and the git server.

use super::AT;
use super::evidence::over_http;
use crate::support::clock;
use crate::support::gitserver::{self, GitServer, Http};
use crate::support::harness::{Place, Said};
use crate::support::peers::{left_out, peer};
use crate::support::servers;
use std::process::{Command, Stdio};

/// Makes every file system of its own mount namespace read-only, puts memory where TMPDIR is, and
/// becomes the command. Root alone may do that.
const CONTAIN: &str = r#"
set -eu
for folder in / /tmp; do
  mount --bind "$folder" "$folder"
  mount -o remount,bind,ro "$folder"
done
mount -t tmpfs -o "$MEMORY" tmpfs "$PLACE/tmp"
cd "$PLACE"
if touch "$PLACE/written" 2>/dev/null; then echo "it is not read-only" >&2; exit 99; fi
# The clock is for the command alone.
exec env -u HOME -u MEMORY -u PLACE -u CLOCK $CLOCK "$@"
"#;

/// The binary on the shop at [`AT`], contained, with that memory for temporary files.
///
/// What is written over the network is of the clock's time and not of `--at`, and a window of the shop opens at
/// certain hours, so the clock is handed in.
fn contained(place: &Place, memory: &str) -> Command {
    let clock = clock::variables(AT).unwrap();
    let clock: Vec<String> = clock.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut command = place.command("unshare");
    command.args(["--mount", "sh", "-c", CONTAIN, "sh", env!("CARGO_BIN_EXE_expedite")]);
    command.args(["run", "--config", "expedite.yaml"]);
    let closed = "http://127.0.0.1:9";
    command
        .env("PLACE", place.root())
        .env("MEMORY", memory)
        .env("CLOCK", clock.join(" "))
        .env("TMPDIR", place.path("tmp"))
        .envs([("HTTP_PROXY", closed), ("HTTPS_PROXY", closed), ("NO_PROXY", "127.0.0.1")]);
    command
}

/// The shop with a registry and a repository that are reached over HTTP. `None`: a program is missing, which has
/// been said.
fn served() -> Option<(Place, servers::Server, GitServer)> {
    peer("unshare")?;
    clock::variables(AT)?;
    let can =
        Command::new("unshare").args(["--mount", "mount", "--bind", "/", "/"]).stderr(Stdio::null()).status();
    if !can.is_ok_and(|status| status.success()) {
        left_out("only root makes a file system read-only for one process");
        return None;
    }
    let (registry, git) = (servers::refreg()?, gitserver::http(&Http::default())?);
    let (place, said) = over_http(&registry)?;
    said.ok();
    git.create("shop.git");
    place.edit("expedite.yaml", "./shop.git", &format!("http://127.0.0.1:{}/shop.git", git.port));
    std::fs::create_dir(place.path("tmp")).unwrap();
    Some((place, registry, git))
}

#[test]
fn b84_a_read_only_container_without_a_home_promotes() {
    let Some((place, _registry, git)) = served() else { return };
    // Two at once: what one has pushed, the other finds.
    let both: Vec<Said> = std::thread::scope(|scope| {
        let runs: Vec<_> =
            (0..2).map(|_| scope.spawn(|| place.finish(contained(&place, "size=1m")))).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    for said in &both {
        said.ok();
    }
    let pushed = git.root.join("shop.git");
    let count = place.git(&["-C", pushed.to_str().unwrap(), "rev-list", "--count", "main"]);
    assert_eq!(count, "1\n");
    // What was promoted over files before is what was promoted in here.
    let files = |repository: &str| -> Vec<String> {
        let listed = place.git(&["-C", repository, "ls-tree", "-r", "--name-only", "main", "applications"]);
        listed.lines().map(str::to_owned).collect()
    };
    assert_eq!(files(pushed.to_str().unwrap()), files("shop.git"));
    assert!(!files("shop.git").is_empty());
}

#[test]
fn b84_no_room_for_temporary_files_is_said_and_is_no_missing_signature() {
    let Some((place, _registry, _git)) = served() else { return };
    for memory in ["size=4k", "ro"] {
        let said = place.finish(contained(&place, memory));
        said.exits(1);
        assert!(said.stderr.contains("[PLACE]/tmp"), "{}", said.stderr);
        assert!(said.stderr.contains("hint: "), "{}", said.stderr);
        for word in ["SignatureMissing", "SignatureInvalid", "panicked"] {
            assert!(!said.stderr.contains(word) && !said.stdout.contains(word), "{said:?}");
        }
    }
}
