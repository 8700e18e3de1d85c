//! Git repositories as they are outside: other writers, checkouts, servers, credentials.

mod local;
mod actions;
mod checkout;
mod http;
mod place;
mod propose;
mod side;
mod sign;
mod ssh;

pub use fsck::{Folder, folder};

use crate::support::fsck;
use expedite::files::FileChange;
use git_commits::{Identity, Person, Proposal};
use git_commits::{Repository, RepositoryOptions, RepositoryTarget};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Changes from pairs of path and content; `None` deletes.
pub fn changes<const N: usize>(of: [(&str, Option<&str>); N]) -> BTreeMap<String, FileChange> {
    of.into_iter()
        .map(|(p, b)| {
            (p.to_owned(), b.map_or(FileChange::Delete, |b| FileChange::Write(b.as_bytes().to_vec())))
        })
        .collect()
}

/// An identity nobody has.
pub fn identity() -> Identity {
    let person = Person { name: "Expedite".to_owned(), email: "expedite@localhost".to_owned() };
    Identity { author: person.clone(), committer: person, signer: None }
}

/// A proposal at a fixed instant.
pub fn proposal<'a>(message: &'a str, identity: &'a Identity) -> Proposal<'a> {
    Proposal { message, identity, at: 1_790_000_000 }
}

/// Opens a path.
pub fn open(path: &Path) -> Repository {
    Repository::open_target(&RepositoryTarget::Path(path.to_path_buf()), RepositoryOptions::default())
        .unwrap()
}

/// Runs the `git` program without anybody's configuration; its output without the last newline.
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let out = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .envs([("GIT_AUTHOR_NAME", "Person"), ("GIT_AUTHOR_EMAIL", "person@x")])
        .envs([("GIT_COMMITTER_NAME", "Person"), ("GIT_COMMITTER_EMAIL", "person@x")])
        .output()
        .unwrap();
    assert!(out.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().trim_end().to_owned()
}

/// Every object is there and sound.
pub fn fsck(folder: &Path) {
    git(folder, &["fsck", "--strict", "--no-dangling"]);
}
