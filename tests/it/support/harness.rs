//! One hermetic way to run the real binary: its own folder and HOME, a cleared environment, UTC, no git
//! configuration but its own; stdout, stderr and status together in one text with placeholders.

use super::{clock, fsck};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder of the package.
pub fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The example installation, `fixtures/shop`.
pub fn shop() -> PathBuf {
    package().join("fixtures/shop")
}

/// A folder of its own for one test: the working directory of everything that is run in it. Gone with it.
pub struct Place {
    _folder: tempfile::TempDir,
    root: PathBuf,
    environment: Vec<(String, String)>,
}

/// What a command said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Exit status; `None`: ended by a signal.
    pub status: Option<i32>,
    /// With placeholders.
    pub stdout: String,
    /// With placeholders.
    pub stderr: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        fsck::at_end(&self.root);
    }
}

impl Place {
    /// An empty place.
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("expedite-test-").tempdir().unwrap();
        // What is printed is the resolved name, on systems whose temporary folder is a link.
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("home")).unwrap();
        Self { _folder: folder, root, environment: Vec::new() }
    }

    /// A place with a copy of the shop: settings, objects, image layouts, keys. The repository is `shop.git`, and
    /// records are attached to the copied layouts, which are nobody's checkout.
    pub fn with_shop() -> Self {
        let place = Self::new();
        for part in ["objects", "registry", "keys"] {
            copy(&shop().join(part), &place.path(part));
        }
        place.write("expedite.yaml", fs::read_to_string(shop().join("expedite.yaml")).unwrap());
        place.edit("expedite.yaml", "../../target/shop-gitops.git", "./shop.git");
        place.edit("expedite.yaml", "readOnly: true", "readOnly: false");
        place
    }

    /// The place's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `name` in this place.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Writes a file, and the folders above it.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Reads a file.
    #[track_caller]
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// Rewrites a file that must change by it.
    #[track_caller]
    pub fn edit(&self, name: &str, from: &str, to: &str) {
        let text = self.read(name);
        assert!(text.contains(from), "{name} does not hold {from:?}:\n{text}");
        self.write(name, text.replace(from, to));
    }

    /// Sets a variable for all that is run here from now on.
    pub fn set(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// A command with the hermetic environment, here.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.root)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("TMPDIR", std::env::temp_dir())
            .env("TZ", "UTC")
            .env("LC_ALL", "C.UTF-8")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_TERMINAL_PROMPT", "0")
            .stdin(Stdio::null());
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        command
    }

    /// The real binary with `arguments`.
    pub fn binary(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_expedite"));
        command
            .args(arguments)
            .envs(clock::every_run().and_then(|at| clock::variables(&at)).unwrap_or_default());
        command
    }

    /// Runs the real binary with `arguments` to its end.
    pub fn expedite(&self, arguments: &[&str]) -> Said {
        self.finish(self.binary(arguments))
    }

    /// Runs git with `arguments`, as somebody, and wants it to succeed. Gives its stdout, as it came.
    #[track_caller]
    pub fn git(&self, arguments: &[&str]) -> String {
        let mut command = self.command("git");
        command.args(["-c", "user.name=Ann", "-c", "user.email=ann@shop.example"]);
        command.args(["-c", "init.defaultBranch=main", "-c", "commit.gpgSign=false"]).args(arguments);
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {}\n{stderr}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command to its end.
    pub fn finish(&self, mut command: Command) -> Said {
        let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let text = |bytes: &[u8]| self.masked(&String::from_utf8_lossy(bytes));
        Said { status: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// `text` with what differs from place to place replaced: the place itself, commits, ports, the version.
    pub fn masked(&self, text: &str) -> String {
        let text = text.replace(self.root.to_str().unwrap(), "[PLACE]");
        let text = text.replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
        mask_ports(&mask_commits(&text))
    }

    /// Every file of `branch` in the bare repository `name`, by path; empty where there is no such branch.
    pub fn tree(&self, name: &str, branch: &str) -> Vec<(String, String)> {
        let repository = self.path(name);
        let at = repository.to_str().unwrap();
        let known =
            self.command("git").args(["-C", at, "rev-parse", "-q", "--verify", branch]).output().unwrap();
        if !known.status.success() {
            return Vec::new();
        }
        let paths = self.git(&["-C", at, "ls-tree", "-r", "-z", "--name-only", branch]);
        let paths = paths.split('\0').filter(|path| !path.is_empty());
        paths
            .map(|path| (path.to_owned(), self.git(&["-C", at, "show", &format!("{branch}:{path}")])))
            .collect()
    }
}

impl Said {
    /// All of it as one text for a snapshot.
    pub fn transcript(&self, command: &str) -> String {
        let mut text = format!("$ {command}\n");
        for (name, part) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !part.is_empty() {
                let end = if part.ends_with('\n') { "" } else { "[no newline]\n" };
                let _ = write!(text, "[{name}]\n{part}{end}");
            }
        }
        let status = self.status.map_or("by a signal".to_owned(), |s| s.to_string());
        let _ = writeln!(text, "[exit {status}]");
        text
    }

    /// Wants exit status 0 and gives stdout.
    #[track_caller]
    pub fn ok(&self) -> &str {
        self.exits(0)
    }

    /// Wants this exit status and gives stdout.
    #[track_caller]
    pub fn exits(&self, status: i32) -> &str {
        assert_eq!(self.status, Some(status), "{}", self.transcript("expedite"));
        &self.stdout
    }
}

/// 40 hex digits in a row, and no more, are a commit.
fn mask_commits(text: &str) -> String {
    let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    let mut out = String::with_capacity(text.len());
    let mut run = String::new();
    for c in text.chars().map(Some).chain([None]) {
        match c {
            Some(c) if hex(c) => run.push(c),
            other => {
                out.push_str(if run.len() == 40 { "[COMMIT]" } else { &run });
                run.clear();
                out.extend(other);
            }
        }
    }
    out
}

/// `127.0.0.1:<port>` is whatever the kernel gave.
fn mask_ports(text: &str) -> String {
    let host = "127.0.0.1:";
    let mut parts = text.split(host);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let _ = write!(out, "{host}{}{rest}", if rest.len() < part.len() { "[PORT]" } else { "" });
    }
    out
}

/// Copies a folder with all that is in it, or one file.
pub fn copy(from: &Path, to: &Path) {
    for entry in walkdir::WalkDir::new(from).sort_by_file_name() {
        let entry = entry.unwrap();
        let target = to.join(entry.path().strip_prefix(from).unwrap());
        if entry.file_type().is_dir() {
            fs::create_dir_all(&target).unwrap();
        } else {
            fs::create_dir_all(target.parent().unwrap()).unwrap();
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

/// Whether snapshots are written instead of compared.
pub fn blessing() -> bool {
    std::env::var("BLESS").is_ok_and(|v| v == "1")
}

/// Compares `text` with the file `expected`; with `BLESS=1` writes it. The error shows the difference.
///
/// # Errors
/// They differ.
pub fn same(expected: &Path, text: &str) -> Result<(), String> {
    let before = fs::read_to_string(expected).unwrap_or_default();
    if before == text {
        return Ok(());
    }
    if blessing() {
        fs::create_dir_all(expected.parent().unwrap()).unwrap();
        fs::File::create(expected).unwrap().write_all(text.as_bytes()).unwrap();
        return Ok(());
    }
    let shown = expected.strip_prefix(package()).unwrap_or(expected).display();
    let diff = similar::TextDiff::from_lines(before.as_str(), text);
    let diff = diff.unified_diff().context_radius(3).header("expected", "found").to_string();
    Err(format!("{shown} differs (BLESS=1 accepts):\n{diff}"))
}
