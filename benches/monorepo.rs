//! What a commit of three files costs in a large repository, next to the git command line doing the same
//! edit: `cargo bench --bench monorepo [-- FILES COMMITS]` (100,000 of each when none is given).
//!
//! The repository is made by `git fast-import`: folders of a hundred files, and commits that each touch
//! one. Each figure is the best of several tries, in milliseconds; every try is a real commit.

// A table on stdout is the result; a repository that cannot be built is a failed benchmark.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic)]

use expedite::files::FileChange;
use git_commits::{Environment, Repository, RepositoryOptions, RepositoryTarget};
use git_commits::{Identity, Person, Proposal, WriteOutcome};
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Tries per figure.
const TRIES: usize = 5;

fn main() {
    let sizes: Vec<usize> = std::env::args().filter_map(|word| word.replace(',', "").parse().ok()).collect();
    let (files, commits) = match sizes[..] {
        [files, commits, ..] => (files, commits),
        [files] => (files, files),
        [] => (100_000, 100_000),
    };
    let folder = tempfile::tempdir().unwrap();
    let (bare, work) = (folder.path().join("bare.git"), folder.path().join("work"));
    import(&bare, files, commits);
    git(folder.path(), &["clone", "-q", "bare.git", "work"]);
    // It is to follow nothing: only the checkout's own cost is asked for.
    git(&work, &["remote", "remove", "origin"]);
    println!("{files} files, {commits} commits; milliseconds per commit of three files");
    println!("{:<34} {:>10} {:>10}", "", "expedite", "git");
    let ours = best(|n| ours(&bare, n));
    let theirs = best(|n| plumbing(&bare, n));
    println!("{:<34} {:>10.1} {:>10.1}", "bare repository", ms(ours), ms(theirs));
    let ours = best(|n| self::ours(&work, n));
    let theirs = best(|n| porcelain(&work, n));
    println!("{:<34} {:>10.1} {:>10.1}", "checkout", ms(ours), ms(theirs));
    let listed = best(|_| list(&bare));
    let theirs = best(|_| timed(|| drop(git(&bare, &["ls-tree", "-r", "main"]))));
    println!("{:<34} {:>10.1} {:>10.1}", "listing every file", ms(listed), ms(theirs));
    git(&bare, &["fsck", "--connectivity-only"]);
    assert_eq!(git(&work, &["status", "--porcelain"]), "");
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn best(one: impl Fn(usize) -> Duration) -> Duration {
    (0..TRIES).map(one).min().unwrap()
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn open(path: &Path) -> Repository {
    let options = RepositoryOptions {
        environment: Environment::new(std::env::vars_os()),
        ..RepositoryOptions::default()
    };
    Repository::open_target(&RepositoryTarget::Path(path.to_path_buf()), options).unwrap()
}

/// Paths and contents of one commit.
fn edit(n: usize, who: &str) -> Vec<(String, String)> {
    (0..3).map(|k| (format!("folder-{}/file-0", k * 3), format!("{who} {n} {k}\n"))).collect()
}

/// Opens, reads the head, and commits.
fn ours(path: &Path, n: usize) -> Duration {
    let person = Person { name: "Bench".to_owned(), email: "bench@x".to_owned() };
    let identity = Identity { author: person.clone(), committer: person, signer: None };
    let changes: BTreeMap<String, FileChange> = edit(n, "ours")
        .into_iter()
        .map(|(path, text)| (path, FileChange::Write(text.into_bytes())))
        .collect();
    timed(|| {
        let repository = open(path);
        let base = repository.read_snapshot("main").unwrap();
        let proposal = Proposal { message: "ours\n", identity: &identity, at: 1_790_000_000 };
        let done = git_commits::write_changes(&repository, &base, &changes, proposal).unwrap();
        assert!(matches!(done, WriteOutcome::Pushed(_)));
    })
}

/// Lists every file of the head.
fn list(path: &Path) -> Duration {
    timed(|| assert!(!open(path).read_snapshot("main").unwrap().list_entries("").0.is_empty()))
}

/// The same commit by git's plumbing, without a work tree.
fn plumbing(bare: &Path, n: usize) -> Duration {
    let contents = edit(n, "git");
    timed(|| {
        let head = git(bare, &["rev-parse", "main"]);
        let index = bare.join("bench-index");
        let with_index = |arguments: &[&str]| run(bare, arguments, Some(&index), None);
        with_index(&["read-tree", "main"]);
        for (path, text) in &contents {
            let blob = run(bare, &["hash-object", "-w", "--stdin"], None, Some(text));
            with_index(&["update-index", "--cacheinfo", &format!("100644,{blob},{path}")]);
        }
        let tree = with_index(&["write-tree"]);
        let commit = git(bare, &["commit-tree", "-m", "git", "-p", &head, &tree]);
        git(bare, &["update-ref", "refs/heads/main", &commit, &head]);
    })
}

/// The same commit by git in a checkout.
fn porcelain(work: &Path, n: usize) -> Duration {
    timed(|| {
        let mut arguments = vec!["add".to_owned()];
        for (path, text) in edit(n, "git") {
            std::fs::write(work.join(&path), text).unwrap();
            arguments.push(path);
        }
        git(work, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
        git(work, &["commit", "-q", "-m", "git"]);
    })
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    run(folder, arguments, None, None)
}

fn run(folder: &Path, arguments: &[&str], index: Option<&Path>, input: Option<&str>) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=Bench", "-c", "user.email=bench@x"]).args(arguments).current_dir(folder);
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    if let Some(index) = index {
        command.env("GIT_INDEX_FILE", index);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.unwrap_or_default().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "git {arguments:?}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// A bare repository of so many files and commits.
fn import(bare: &Path, files: usize, commits: usize) {
    std::fs::create_dir(bare).unwrap();
    git(bare, &["init", "-q", "--bare", "-b", "main", "."]);
    let mut child = Command::new("git")
        .args(["fast-import", "--quiet"])
        .current_dir(bare)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = BufWriter::new(child.stdin.take().unwrap());
    let name = |n: usize| format!("folder-{}/file-{}", n / 100, n % 100);
    for n in 0..commits.max(1) {
        write!(
            to,
            "commit refs/heads/main\ncommitter Bench <bench@x> {} +0000\ndata 2\nc\n",
            1_700_000_000 + n
        )
        .unwrap();
        let touched = if n == 0 { 0..files } else { n % files..n % files + 1 };
        for file in touched {
            let text = format!("content {file} {n}\n");
            write!(to, "M 100644 inline {}\ndata {}\n{text}", name(file), text.len()).unwrap();
        }
    }
    to.flush().unwrap();
    drop(to);
    assert!(child.wait().unwrap().success());
}
