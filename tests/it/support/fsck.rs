//! Every repository that a test leaves is whole: `git fsck --strict`, whatever the test looked at itself.
//!
//! The harness's `Place` and the git servers do it when they go, and bring this file along; a test with a folder
//! of its own takes a [`Folder`].

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A temporary folder whose repositories are looked at before it goes.
pub struct Folder(tempfile::TempDir);

/// A new one.
pub fn folder() -> Folder {
    Folder(tempfile::tempdir().unwrap())
}

impl Deref for Folder {
    type Target = tempfile::TempDir;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        at_end(self.0.path());
    }
}

/// For a `Drop`: fails the test, unless it failed already.
pub fn at_end(root: &Path) {
    if !std::thread::panicking() {
        every(root);
    }
}

/// Checks every repository below `root`, and gives how many there were.
///
/// # Panics
/// One is not whole.
pub fn every(root: &Path) -> usize {
    let all = repositories(root);
    for repository in &all {
        let output = Command::new("git")
            .args(["-c", "safe.directory=*", "-C"])
            .arg(repository)
            .args(["fsck", "--strict", "--no-dangling", "--no-progress"])
            .envs([("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null"), ("LC_ALL", "C")])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git fsck: {}: {}\n{said}", repository.display(), output.status);
    }
    all.len()
}

/// Bare repositories and checkouts below `root`; not what a run keeps for itself while it lasts.
fn repositories(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut walk = walkdir::WalkDir::new(root).into_iter();
    while let Some(entry) = walk.next() {
        let Ok(entry) = entry else { continue };
        if !entry.file_type().is_dir() {
            continue;
        }
        let path = entry.path();
        let holds = |name: &str| path.join(name).exists();
        if entry.file_name().to_string_lossy().starts_with("expedite-") && entry.depth() > 0 {
            walk.skip_current_dir();
        } else if holds("HEAD") && holds("objects") && holds("refs") {
            found.push(path.to_path_buf());
            walk.skip_current_dir();
        } else if holds(".git") && path.join(".git").is_file() {
            // A work tree whose git directory lies elsewhere.
            found.push(path.to_path_buf());
        }
    }
    found
}
