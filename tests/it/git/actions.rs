//! Checkouts as actions/checkout leaves them, version 4 to 6: the same fetch, and credentials in two layouts
//! (facts: its `git-auth-helper.ts`).

use super::{changes, git, identity, proposal};
use crate::support::gitserver::{self, GitServer, Http};
use git_commits::GitError;
use git_commits::WriteOutcome;
use git_commits::{Environment, Repository, RepositoryOptions, RepositoryTarget};
use std::path::{Path, PathBuf};

const TOKEN: &str = "s3cret";

/// A server that wants the job's token, with fifty commits on `main`.
fn server() -> Option<GitServer> {
    let server = gitserver::http(&Http { user: Some(("x-access-token", TOKEN)), ..Http::default() })?;
    let path = server.create("gitops.git");
    git(&path, &["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let tree = git(&path, &["mktree"]);
    let mut parent = git(&path, &["commit-tree", &tree, "-m", "0"]);
    for n in 1..50 {
        parent = git(&path, &["commit-tree", "-p", &parent, &tree, "-m", &n.to_string()]);
    }
    git(&path, &["update-ref", "refs/heads/main", &parent]);
    git(&path, &["update-ref", "refs/pull/5/merge", &parent]);
    Some(server)
}

fn header(password: &str) -> String {
    use base64::Engine as _;
    let basic = base64::prelude::BASE64_STANDARD.encode(format!("x-access-token:{password}"));
    format!("AUTHORIZATION: basic {basic}")
}

/// The workspace after the checkout step; `pull`: of a pull request's merge commit.
fn checkout(server: &GitServer, folder: &Path, version: u32, pull: bool) -> PathBuf {
    let work = folder.join("workspace");
    std::fs::create_dir(&work).unwrap();
    let address = format!("http://127.0.0.1:{}/", server.port);
    git(&work, &["init", "-q", "."]);
    git(&work, &["remote", "add", "origin", &format!("{address}gitops.git")]);
    git(&work, &["config", "--local", "gc.auto", "0"]);
    let key = format!("http.{address}.extraheader");
    if version < 6 {
        git(&work, &["config", "--local", &key, &header(TOKEN)]);
    } else {
        // A file in the runner's temporary folder, included for this git directory, for its worktrees, and for the
        // paths that the same places have inside a container action.
        let file = folder.join("git-credentials-4f7c.config");
        let file = file.to_str().unwrap();
        git(&work, &["config", "--file", file, &key, &header(TOKEN)]);
        let own = work.join(".git").canonicalize().unwrap();
        let (own, inside) = (own.to_str().unwrap(), "/github/runner_temp/git-credentials-4f7c.config");
        for (place, credentials) in [
            (own.to_owned(), file),
            (format!("{own}/worktrees/*"), file),
            ("/github/workspace/.git".to_owned(), inside),
            ("/github/workspace/.git/worktrees/*".to_owned(), inside),
        ] {
            git(&work, &["config", "--local", &format!("includeIf.gitdir:{place}.path"), credentials]);
        }
    }
    let tip = git(&server.root.join("gitops.git"), &["rev-parse", "main"]);
    let (kept, how): (&str, &[&str]) = if pull {
        ("refs/remotes/pull/5/merge", &["checkout", "-q", "--force", "refs/remotes/pull/5/merge"])
    } else {
        ("refs/remotes/origin/main", &["checkout", "-q", "--force", "-B", "main", "refs/remotes/origin/main"])
    };
    let wanted = format!("+{tip}:{kept}");
    let fetch =
        ["-c", "protocol.version=2", "fetch", "-q", "--no-tags", "--prune", "--no-recurse-submodules"];
    git(&work, &[&fetch[..], &["--depth=1", "origin", &wanted]].concat());
    git(&work, how);
    work
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

#[test]
fn b29_what_versions_4_to_6_leave_pushes() {
    let Some(server) = server() else { return };
    let url = RepositoryTarget::Url(format!("http://127.0.0.1:{}/gitops.git", server.port));
    let path = server.root.join("gitops.git");
    let mut count = 50;
    for version in [4, 5, 6] {
        for pull in [false, true] {
            let dir = crate::git::folder();
            let work = checkout(&server, dir.path(), version, pull);
            assert!(work.join(".git/shallow").exists(), "it is shallow");
            let options = RepositoryOptions { working: Some(work.clone()), ..RepositoryOptions::default() };
            let repository = Repository::open_target(&url, options).unwrap();
            let done = write(&repository, &format!("{version}-{pull}"));
            assert!(matches!(done, Ok(WriteOutcome::Pushed(_))), "version {version}, pull {pull}: {done:?}");
            count += 1;
            assert_eq!(
                git(&path, &["rev-list", "--count", "main"]),
                count.to_string(),
                "history stays whole"
            );
            // Nothing of the workspace is touched.
            assert_eq!(git(&work, &["status", "--porcelain"]), "");
        }
    }
    super::fsck(&path);
}

/// With `persist-credentials: false` nothing is left, and that is what is said.
#[test]
fn b29_a_checkout_that_keeps_no_credentials_is_said() {
    let Some(server) = server() else { return };
    let dir = crate::git::folder();
    let work = checkout(&server, dir.path(), 5, false);
    git(
        &work,
        &["config", "--local", "--unset", &format!("http.http://127.0.0.1:{}/.extraheader", server.port)],
    );
    let url = RepositoryTarget::Url(format!("http://127.0.0.1:{}/gitops.git", server.port));
    let open = |variables: &[(&str, &str)]| {
        let environment = Environment::new(variables.iter().copied());
        Repository::open_target(
            &url,
            RepositoryOptions { working: Some(work.clone()), environment, ..RepositoryOptions::default() },
        )
        .unwrap()
    };
    let failed = write(&open(&[]), "a").unwrap_err();
    assert_eq!(failed.code, "unauthorized");
    assert!(failed.hints[0].contains("EXPEDITE_GIT_TOKEN"), "{failed:?}");
    assert!(matches!(write(&open(&[("EXPEDITE_GIT_TOKEN", TOKEN)]), "a"), Ok(WriteOutcome::Pushed(_))));
}
