//! Where repositories lie and whose they are.

use super::{changes, fsck, git, identity, proposal};
use crate::support::gitserver::GitServer;
use git_commits::GitError;
use git_commits::WriteOutcome;
use git_commits::{Environment, Repository, RepositoryOptions, RepositoryTarget};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn options(variables: &[(&str, &str)]) -> RepositoryOptions {
    let path = std::env::var("PATH").unwrap();
    let environment = Environment::new([("PATH", path.as_str())].iter().chain(variables).copied());
    RepositoryOptions { environment, ..RepositoryOptions::default() }
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

/// Gives `folder` to user 1001; false where only root could.
fn give_away(folder: &Path) -> bool {
    let gave = Command::new("chown").args(["-R", "1001:1001"]).arg(folder).output().unwrap().status.success();
    if !gave {
        // No program makes up for it, so that it is no failure where peers are required.
        let _ = writeln!(std::io::stderr(), "LEFT OUT: only root can give a folder to another user");
    }
    gave
}

#[test]
fn b81_the_repository_that_is_named_is_opened_whoever_owns_it_and_no_other() {
    let dir = crate::git::folder();
    let (work, bare, guarded) =
        (dir.path().join("work"), dir.path().join("bare.git"), dir.path().join("guarded.git"));
    for path in [&work, &bare, &guarded] {
        std::fs::create_dir(path).unwrap();
    }
    git(&work, &["init", "-q", "-b", "main", "."]);
    git(&work, &["commit", "-q", "--allow-empty", "-m", "first"]);
    std::fs::create_dir(work.join("inside")).unwrap();
    for path in [&bare, &guarded] {
        git(path, &["init", "-q", "--bare", "-b", "main", "."]);
    }
    GitServer::hook(&guarded, "update", "exit 0");
    if !give_away(dir.path()) {
        return;
    }
    let home = dir.path().join("home");
    std::fs::create_dir(&home).unwrap();
    let homes: [&[(&str, &str)]; 3] = [&[], &[("HOME", "/nowhere")], &[("HOME", home.to_str().unwrap())]];
    for (n, variables) in homes.iter().enumerate() {
        for path in [&work, &bare, &guarded] {
            let repository =
                Repository::open_target(&RepositoryTarget::Path(path.clone()), options(variables)).unwrap();
            let done = write(&repository, &format!("file{n}"));
            assert!(matches!(done, Ok(WriteOutcome::Pushed(_))), "{}: {done:?}", path.display());
        }
        // At exactly that place, too, when it is the working directory.
        assert!(Repository::open_target(&RepositoryTarget::Around(work.clone()), options(variables)).is_ok());
        // Found by going up: not ours to trust.
        let around = RepositoryTarget::Around(work.join("inside"));
        let refused = Repository::open_target(&around, options(variables)).unwrap_err();
        assert_eq!(refused.code, "repository-owner");
        assert!(refused.hints[0].contains("--repo"), "{refused:?}");
    }
    let root = work.canonicalize().unwrap();
    for trusted in ["*", root.to_str().unwrap()] {
        let trust = [
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "safe.directory"),
            ("GIT_CONFIG_VALUE_0", trusted),
        ];
        assert!(
            Repository::open_target(&RepositoryTarget::Around(root.join("inside")), options(&trust)).is_ok(),
            "{trusted}"
        );
    }
    assert_eq!(home.read_dir().unwrap().count(), 0, "no file is written there");
}

#[test]
fn b82_without_any_identity_a_commit_is_made() {
    let dir = crate::git::folder();
    git(dir.path(), &["init", "-q", "--bare", "-b", "main", "."]);
    git(dir.path(), &["config", "user.name", ""]);
    let repository =
        Repository::open_target(&RepositoryTarget::Path(dir.path().into()), options(&[("HOME", "/nowhere")]))
            .unwrap();
    let none = git_commits::identity::Given::default();
    let me = git_commits::Identity::resolve(&none, &Environment::default(), &none, &repository);
    let base = repository.read_snapshot("main").unwrap();
    let done =
        git_commits::write_changes(&repository, &base, &changes([("a", Some("a"))]), proposal("a", &me))
            .unwrap();
    assert!(matches!(done, WriteOutcome::Pushed(_)));
    let shown = git(dir.path(), &["log", "-1", "--format=%an <%ae>, %cn <%ce>", "main"]);
    assert_eq!(shown, "Expedite <expedite@localhost>, Expedite <expedite@localhost>");
}

#[test]
fn hooks_of_a_bare_repository_here_are_heard() {
    let dir = crate::git::folder();
    let path: PathBuf = dir.path().join("gitops.git");
    std::fs::create_dir(&path).unwrap();
    git(&path, &["init", "-q", "--bare", "-b", "main", "."]);
    GitServer::hook(
        &path,
        "pre-receive",
        "read old new ref; echo \"$ref\" >> heard; [ ! -e closed ] || { echo 'closed today'; exit 1; }",
    );
    GitServer::hook(&path, "post-receive", "echo done >> heard");
    let repository = Repository::open_target(&RepositoryTarget::Path(path.clone()), options(&[])).unwrap();
    assert!(matches!(write(&repository, "a"), Ok(WriteOutcome::Pushed(_))));
    assert!(matches!(write(&repository, "b"), Ok(WriteOutcome::Pushed(_))));
    let stale = repository.read_snapshot("main").unwrap();
    assert!(matches!(write(&repository, "c"), Ok(WriteOutcome::Pushed(_))));
    let late = git_commits::write_changes(
        &repository,
        &stale,
        &changes([("d", Some("d"))]),
        proposal("d", &identity()),
    );
    assert_eq!(late.unwrap(), WriteOutcome::Moved);
    std::fs::write(path.join("closed"), "").unwrap();
    let WriteOutcome::Refused(words) = write(&repository, "d").unwrap() else { panic!("not refused") };
    assert!(words.contains("closed today"), "{words}");
    let heard = std::fs::read_to_string(path.join("heard")).unwrap();
    assert_eq!(heard, "refs/heads/main\ndone\n".repeat(3) + "refs/heads/main\n");
    assert_eq!(git(&path, &["log", "--format=%s", "main"]), "c\nb\na");
    assert_eq!(git(&path, &["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
    fsck(&path);
    let without = RepositoryOptions {
        environment: Environment::new([("PATH", "/nowhere")]),
        ..RepositoryOptions::default()
    };
    let repository = Repository::open_target(&RepositoryTarget::Path(path), without).unwrap();
    assert_eq!(write(&repository, "e").unwrap_err().code, "program-absent", "hooks are never passed by");
}
