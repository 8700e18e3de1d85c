//! Opening a repository: what a person named becomes a repository that can be read and written.

use crate::clone::{self, GitUpstream};
use crate::error::make_error;
use crate::error::{GitError, GitErrorKind};
use crate::remote::Remote;
use crate::{Config, Environment, Timeouts, libgit2};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a person named as the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RepositoryTarget {
    /// The repository around a folder (the default: the working directory), found by going up.
    Around(PathBuf),
    /// A bare repository or a checkout at exactly this path.
    Path(PathBuf),
    /// Over the network: `https://`, `http://`, `ssh://`, or scp-like `user@host:path`.
    Url(String),
}

impl RepositoryTarget {
    /// Reads a path or URL; relative paths are taken from `base`. White space around the text is
    /// dropped. `.` is the repository around `base`.
    ///
    /// # Errors
    /// The text is empty, holds control characters, or is of a scheme that is not supported.
    pub fn parse(text: &str, base: &Path) -> Result<Self, GitError> {
        let text = text.trim();
        let wrong = |why: &str| {
            GitError::new_input("repository-name", why)
                .with_object("repository")
                .with_hint("name a path, https://…, ssh://… or user@host:path")
        };
        if text.is_empty() {
            return Err(wrong("it is empty"));
        }
        if text.chars().any(char::is_control) {
            return Err(wrong("it holds a control character"));
        }
        if text == "." {
            return Ok(Self::Around(base.to_path_buf()));
        }
        if let Some((scheme, _)) = text.split_once("://") {
            return match scheme.to_ascii_lowercase().as_str() {
                "file" => {
                    let url = url::Url::parse(text).map_err(|e| wrong(&e.to_string()))?;
                    url.to_file_path()
                        .map(Self::Path)
                        .map_err(|()| wrong("a file:// URL must name an absolute path on this machine"))
                }
                "http" | "https" | "ssh" | "git+ssh" | "ssh+git" => {
                    url::Url::parse(text).map_err(|e| wrong(&e.to_string()))?;
                    Ok(Self::Url(text.to_owned()))
                }
                other => Err(wrong(&format!("the scheme {other}:// is not supported"))),
            };
        }
        let path = base.join(text);
        // A path that exists wins, as in git.
        if !path.exists() && normalize_url(text).is_some() {
            return Ok(Self::Url(text.to_owned()));
        }
        Ok(Self::Path(path))
    }
}

/// Whether git takes `name` as that of a branch (`main`, `release/1.2`).
///
/// ```
/// use git_commits::is_branch_name;
/// assert!(is_branch_name("main") && is_branch_name("release/1.2"));
/// for name in ["", "-x", "a..b", "a b", "/a", "a/", "a.lock", ".a", "a^", "@{-1}"] {
///     assert!(!is_branch_name(name), "{name:?}");
/// }
/// ```
#[must_use]
pub fn is_branch_name(name: &str) -> bool {
    !name.starts_with('-') && git2::Reference::is_valid_name(&format!("refs/heads/{name}"))
}

/// `user@host:path` and `git+ssh://…` as the `ssh://` URL they mean; `None` for anything else. The
/// scp-like form has a colon before the first slash.
pub(crate) fn normalize_url(text: &str) -> Option<String> {
    if let Some((scheme, rest)) = text.split_once("://") {
        let alias = scheme.eq_ignore_ascii_case("git+ssh") || scheme.eq_ignore_ascii_case("ssh+git");
        return alias.then(|| format!("ssh://{rest}"));
    }
    let (host, path) = text.split_once(':')?;
    if host.is_empty() || host.contains('/') || host.starts_with('-') || path.is_empty() {
        return None;
    }
    // A relative path is below the home folder there, which ssh:// writes as /~/.
    let slash = if path.starts_with('/') { "" } else { "/~/" };
    Some(format!("ssh://{host}{slash}{path}"))
}

/// How a repository is opened.
#[derive(Debug, Clone, Default)]
pub struct RepositoryOptions {
    /// An absent local path becomes an empty bare repository.
    pub create: bool,
    /// The branch that HEAD of a created repository names; `main` where absent.
    pub branch: Option<String>,
    /// The process's environment.
    pub environment: Environment,
    /// Known hosts for SSH, besides the system's; else `EXPEDITE_SSH_KNOWN_HOSTS` names it, else the
    /// user's own file is used.
    pub known_hosts: Option<PathBuf>,
    /// The working directory: for a URL, the configuration of the repository around it counts too, as
    /// it does for the git program.
    pub working: Option<PathBuf>,
    /// For every step over the network.
    pub timeouts: Timeouts,
}

/// A repository that can be read (`snapshot`) and written (`crate::commit`).
pub struct Repository {
    pub(crate) name: String,
    pub(crate) git: Arc<Mutex<git2::Repository>>,
    pub(crate) config: Config,
    pub(crate) place: RefPlace,
    pub(crate) notes: Mutex<Vec<GitError>>,
}

/// Where a repository's references are.
pub(crate) enum RefPlace {
    /// Here: a bare repository, or a checkout that follows no other repository.
    Here,
    /// Here, a bare repository with hooks that judge what comes in: read in place, written through
    /// git's own `receive-pack`.
    Guarded(Remote),
    /// On a server. What was fetched lies in a folder that goes with this value.
    Server {
        remote: Remote,
        /// Commits that a fetch asks for (0: all that are missing).
        depth: i32,
        /// Whether anything was fetched yet.
        read: AtomicBool,
        _folder: tempfile::TempDir,
    },
    /// A checkout that follows another repository: that one is read and written, and the checkout is
    /// brought along.
    Elsewhere { upstream: Box<Repository>, remote: String },
}

impl std::fmt::Debug for Repository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Repository").field(&self.name).finish()
    }
}

impl Repository {
    /// Opens what `target` names. Nothing is asked of a server yet.
    ///
    /// A path that was named is opened whoever owns it; one found by going up must belong to whoever
    /// runs us (git's `safe.directory` rule). A checkout whose branch follows a remote (or that has an
    /// `origin`) is read from there and pushed there.
    ///
    /// # Errors
    /// [`GitErrorKind::Repository`]: there is none, it is of another owner, or it cannot be read; with a hint.
    pub fn open_target(target: &RepositoryTarget, options: RepositoryOptions) -> Result<Self, GitError> {
        match target {
            RepositoryTarget::Around(folder) => Self::open_around(folder, options),
            RepositoryTarget::Path(path) => Self::open_at(path, options),
            RepositoryTarget::Url(url) => Self::open_server(url, options),
        }
    }

    /// As the user named it, without secrets.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where commits go: the repository that a checkout follows, else this one; without secrets.
    #[must_use]
    pub fn store_name(&self) -> &str {
        &self.store().name
    }

    /// The folder of a checkout's files; `None` for a bare repository and one on a server.
    #[must_use]
    pub fn root(&self) -> Option<PathBuf> {
        self.lock_git().workdir().map(Path::to_path_buf)
    }

    /// Whether it is written on another machine.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        match &self.place {
            RefPlace::Here | RefPlace::Guarded(_) => false,
            RefPlace::Server { .. } => true,
            RefPlace::Elsewhere { upstream, .. } => upstream.is_remote(),
        }
    }

    /// A value of git's configuration as the repository sees it; variables (`GIT_CONFIG_COUNT`) win, as
    /// in git. An empty value is a value.
    #[must_use]
    pub fn find_config(&self, key: &str) -> Option<&str> {
        self.config.get(key)
    }

    /// What went wrong beside a write that stands (a checkout that could not be brought along), for a
    /// person; each is given once.
    pub fn take_notes(&self) -> Vec<GitError> {
        std::mem::take(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn add_note(&self, failure: GitError) {
        let failure = if failure.what.is_none() {
            failure.with_object(format!("repository {}", self.name))
        } else {
            failure
        };
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
    }

    /// Whether this is a clone that lacks objects on purpose.
    pub(crate) fn is_partial(&self) -> bool {
        clone::is_partial(&self.config)
    }

    /// The repository whose references count: the one that a checkout follows, or this one.
    pub(crate) fn store(&self) -> &Self {
        match &self.place {
            RefPlace::Here | RefPlace::Guarded(_) | RefPlace::Server { .. } => self,
            RefPlace::Elsewhere { upstream, .. } => upstream,
        }
    }

    pub(crate) fn lock_git(&self) -> MutexGuard<'_, git2::Repository> {
        self.git.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_around(folder: &Path, options: RepositoryOptions) -> Result<Self, GitError> {
        let opened = match libgit2::open_named(folder, &options.environment) {
            Err(e) if e.code() == git2::ErrorCode::NotFound => {
                open_trusted_around(folder, &options.environment)
            }
            found => found,
        };
        match opened {
            Ok(git) => Self::from_git(folder, git, options),
            Err(e) => Err(make_open_failure(folder, &e)),
        }
    }

    fn open_at(path: &Path, options: RepositoryOptions) -> Result<Self, GitError> {
        let empty = !path.exists() || path.read_dir().is_ok_and(|mut d| d.next().is_none());
        if options.create && empty {
            create_bare(path, options.branch.as_deref().unwrap_or("main"))?;
        }
        match libgit2::open_named(path, &options.environment) {
            Ok(git) => Self::from_git(path, git, options),
            Err(e) => Err(make_open_failure(path, &e)),
        }
    }

    fn from_git(path: &Path, git: git2::Repository, options: RepositoryOptions) -> Result<Self, GitError> {
        let name = path.display().to_string();
        let config =
            Config::from_repository(&git, &options.environment).map_err(|e| make_open_failure(path, &e))?;
        let place = match clone::find_upstream(&git, &config)? {
            None if has_guarding_hooks(&git) => {
                let (environment, timeouts) = (options.environment.clone(), options.timeouts);
                RefPlace::Guarded(Remote::from_path(git.path().to_path_buf(), environment, timeouts))
            }
            None => RefPlace::Here,
            Some(GitUpstream { remote, url, push }) => {
                let base = git.workdir().unwrap_or(path);
                let upstream = match RepositoryTarget::parse(&config.rewrite_url(&url, false), base)? {
                    RepositoryTarget::Url(_) => {
                        clone::clone_server(&url, push.as_deref(), &git, &config, options)?
                    }
                    // Never created: a remote that is not there is an error.
                    RepositoryTarget::Path(path) | RepositoryTarget::Around(path) => {
                        Self::open_at(&path, RepositoryOptions { create: false, ..options })?.strip_upstream()
                    }
                };
                RefPlace::Elsewhere { upstream: Box::new(upstream), remote }
            }
        };
        Ok(Self { name, git: Arc::new(Mutex::new(git)), config, place, notes: Mutex::default() })
    }

    /// Without what it follows itself: a remote is written where it is.
    fn strip_upstream(mut self) -> Self {
        if matches!(self.place, RefPlace::Elsewhere { .. }) {
            self.place = RefPlace::Here;
        }
        self
    }

    fn open_server(url: &str, options: RepositoryOptions) -> Result<Self, GitError> {
        let around = options.working.as_ref().and_then(|w| open_trusted_around(w, &options.environment).ok());
        match around {
            Some(git) => {
                let config = Config::from_repository(&git, &options.environment)
                    .map_err(|e| make_error("git-config", "cannot read git's configuration", &e))?;
                clone::clone_apart(url, None, Some(config), options)
            }
            None => clone::clone_apart(url, None, None, options),
        }
    }
}

/// Whether a bare repository has hooks that may refuse, or wait for, what is pushed.
fn has_guarding_hooks(git: &git2::Repository) -> bool {
    let hooks =
        ["pre-receive", "update", "proc-receive", "reference-transaction", "post-receive", "post-update"];
    let set = git.config().and_then(|c| c.get_path("core.hookspath")).map(|p| git.path().join(p));
    let folder = set.unwrap_or_else(|_| git.commondir().join("hooks"));
    let executable = |path: PathBuf| {
        std::fs::metadata(path).is_ok_and(|m| {
            m.is_file() && std::os::unix::fs::PermissionsExt::mode(&m.permissions()) & 0o111 != 0
        })
    };
    git.is_bare() && hooks.iter().any(|hook| executable(folder.join(hook)))
}

/// The repository around `folder`, if it may be trusted.
fn open_trusted_around(folder: &Path, environment: &Environment) -> Result<git2::Repository, git2::Error> {
    match libgit2::open_around(folder, environment) {
        Err(e) if e.code() == git2::ErrorCode::Owner => open_by_variables(folder, environment).ok_or(e),
        found => found,
    }
}

/// Trust given by `GIT_CONFIG_COUNT` variables, which libgit2 does not read.
fn open_by_variables(folder: &Path, environment: &Environment) -> Option<git2::Repository> {
    let root = folder.ancestors().find(|p| p.join(".git").exists() || p.join("HEAD").is_file())?;
    let trusted = environment.collect_git_config().iter().any(|(key, value)| {
        key.eq_ignore_ascii_case("safe.directory") && (value == "*" || Path::new(value) == root)
    });
    if trusted { libgit2::open_named(root, environment).ok() } else { None }
}

/// Makes an empty bare repository, whole or not at all: eight runs that start at once get one.
fn create_bare(path: &Path, branch: &str) -> Result<(), GitError> {
    let cannot = |why: String| {
        GitError::new(GitErrorKind::Repository, "repository-create", why)
            .with_object(format!("repository {}", path.display()))
    };
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent)
        .map_err(|e| cannot(format!("cannot create {}: {e}", parent.display())))?;
    let made = tempfile::Builder::new()
        .prefix(".expedite-")
        .tempdir_in(parent)
        .map_err(|e| cannot(format!("cannot create a folder in {}: {e}", parent.display())))?;
    let bare = made.path().join("bare");
    let mut how = git2::RepositoryInitOptions::new();
    how.bare(true).external_template(false).initial_head(branch);
    git2::Repository::init_opts(&bare, &how).map_err(|e| cannot(e.message().to_owned()))?;
    match std::fs::rename(&bare, path) {
        Ok(()) => Ok(()),
        // Another run was first.
        Err(_) if path.join("HEAD").is_file() => Ok(()),
        Err(e) => Err(cannot(format!("cannot create it: {e}"))),
    }
}

fn make_open_failure(path: &Path, error: &git2::Error) -> GitError {
    let of = format!("repository {}", path.display());
    let failed = match error.code() {
        git2::ErrorCode::NotFound if !path.exists() => {
            GitError::new(GitErrorKind::Repository, "repository-absent", "there is nothing at this path")
                .with_hint("create it with `git init --bare`, or set repository.create: true")
        }
        git2::ErrorCode::NotFound => {
            GitError::new(GitErrorKind::Repository, "repository-absent", "this is no git repository")
                .with_hint("name a bare repository, a checkout or a URL with --repo or repository.url")
        }
        git2::ErrorCode::Owner => GitError::new(
            GitErrorKind::Repository,
            "repository-owner",
            "the repository around this folder belongs to another user",
        )
        .with_hint("name it with --repo PATH if you trust it; no configuration is changed"),
        _ if error.message().contains("extension") => make_error(
            "repository-format",
            "cannot open it",
            error,
        )
        .with_hint(
            "the repository uses an extension that libgit2 does not know; name its URL instead of the path",
        ),
        _ => make_error("repository-unreadable", "cannot open it", error),
    };
    failed.with_object(of)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn targets_are_told_apart() {
        let base = Path::new("/base");
        let parse = |t: &str| RepositoryTarget::parse(t, base);
        assert_eq!(parse("."), Ok(RepositoryTarget::Around("/base".into())));
        assert_eq!(parse("../gitops.git\n"), Ok(RepositoryTarget::Path("/base/../gitops.git".into())));
        assert_eq!(parse("file:///srv/a.git"), Ok(RepositoryTarget::Path("/srv/a.git".into())));
        assert_eq!(parse("https://h/a.git"), Ok(RepositoryTarget::Url("https://h/a.git".into())));
        assert_eq!(parse("git@h:team/a.git"), Ok(RepositoryTarget::Url("git@h:team/a.git".into())));
        assert_eq!(normalize_url("git@h:team/a.git").as_deref(), Some("ssh://git@h/~/team/a.git"));
        assert_eq!(normalize_url("h:/srv/a.git").as_deref(), Some("ssh://h/srv/a.git"));
        assert_eq!(normalize_url("-oProxyCommand=x:y"), None, "an option for ssh is no host");
        assert!(parse("ftp://h/a").is_err());
        assert!(parse("a\nb").is_err());
        assert!(parse("").is_err());
    }

    #[test]
    fn creation_is_asked_for_and_names_the_branch() {
        let dir = tempfile::tempdir().unwrap();
        let target = RepositoryTarget::Path(dir.path().join("a/b.git"));
        let failed = Repository::open_target(&target, RepositoryOptions::default()).unwrap_err();
        assert_eq!(failed.code, "repository-absent");
        assert!(failed.hints[0].contains("create: true"), "{failed:?}");
        let options =
            RepositoryOptions { create: true, branch: Some("trunk".into()), ..RepositoryOptions::default() };
        let made = Repository::open_target(&target, options).unwrap();
        let git = made.lock_git();
        assert!(git.is_bare() && git.references().unwrap().next().is_none());
        assert_eq!(
            git.find_reference("HEAD").unwrap().symbolic_target().ok().flatten(),
            Some("refs/heads/trunk")
        );
    }

    #[test]
    fn a_folder_inside_a_checkout_is_not_the_checkout() {
        let dir = tempfile::tempdir().unwrap();
        git2::Repository::init(dir.path()).unwrap();
        let inside = dir.path().join("gitops");
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(inside.join("x"), "").unwrap();
        let failed =
            Repository::open_target(&RepositoryTarget::Path(inside.clone()), RepositoryOptions::default())
                .unwrap_err();
        assert_eq!(failed.code, "repository-absent");
        assert!(
            Repository::open_target(&RepositoryTarget::Around(inside), RepositoryOptions::default()).is_ok()
        );
    }
}
