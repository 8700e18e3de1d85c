//! A repository on a server: its heads listed, fetched, and moved by compare-and-swap.
//!
//! What became of a push is decided by comparing references, never by the server's words: libgit2 reports
//! success when a server refuses a reference, and every server words its refusals differently.

use crate::error::make_error;
use crate::error::{GitError, GitErrorKind};
use crate::http::Http;
use crate::process::Receiver;
use crate::ssh::Ssh;
use crate::transport::{ADDRESS, Wire, run_over_wire};
use crate::{Config, Environment, RepositoryOptions, Timeouts};
use git2::{AutotagOption, Direction, FetchOptions, Oid, PushOptions, RemoteCallbacks};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use url::Url;

/// A server's repository.
pub(crate) struct Remote {
    /// For messages: its URL without secrets.
    pub name: String,
    fetch: Arc<dyn Wire>,
    push: Arc<dyn Wire>,
}

/// What became of moving a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Advance {
    /// The reference is the new commit, or one that holds it.
    Done,
    /// It is neither where it was expected nor ours.
    Moved,
    /// It stayed where it was; the server's words.
    Refused(String),
}

/// Where a reference may be moved to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PushStep {
    /// To a descendant only.
    Forward,
    /// Anywhere, from the commit that is expected and from no other.
    Anywhere,
}

/// Most that is kept of a server's words, in bytes.
const WORDS: usize = 8 * 1024;

/// Where fetched references are kept, so that nothing is lost to a name of the repository's own.
const FETCHED: &str = "refs/fetched";

/// Where `reference` of the server is kept once fetched.
pub(crate) fn format_fetched_ref(reference: &str) -> String {
    format!("{FETCHED}/{}", reference.strip_prefix("refs/").unwrap_or(reference))
}

impl Remote {
    /// A remote at `url` (fetched from) and `push` (written to, where that differs).
    ///
    /// # Errors
    /// One of them is no URL that we can reach, or a setting for it is wrong.
    pub fn new(
        url: &str,
        push: Option<&str>,
        config: &Config,
        options: &RepositoryOptions,
        folder: Option<PathBuf>,
    ) -> Result<Self, GitError> {
        let rewritten = config.rewrite_url(url, false);
        let (name, fetch) = make_wire(&rewritten, config, options, folder.clone())?;
        let to = config.rewrite_url(push.unwrap_or(url), true);
        let push =
            if to == rewritten { Arc::clone(&fetch) } else { make_wire(&to, config, options, folder)?.1 };
        Ok(Self { name, fetch, push })
    }

    /// A bare repository here, spoken to as if it were a server: its hooks run.
    pub fn from_path(path: PathBuf, environment: Environment, timeouts: Timeouts) -> Self {
        let name = path.display().to_string();
        let wire: Arc<dyn Wire> =
            Arc::new(Receiver { path, environment, timeouts, running: Mutex::default() });
        Self { name, fetch: Arc::clone(&wire), push: wire }
    }

    fn run_work<T: Send>(
        &self,
        wire: &Arc<dyn Wire>,
        store: &Mutex<git2::Repository>,
        doing: &str,
        work: impl FnOnce(&git2::Repository) -> Result<T, git2::Error> + Send,
    ) -> Result<T, GitError> {
        // On a thread of its own: the HTTP client waits for its answers, which it must not do on a
        // thread that drives other people's futures.
        let done = std::thread::scope(|threads| {
            let task = threads.spawn(|| {
                let git: MutexGuard<'_, git2::Repository> =
                    store.lock().unwrap_or_else(PoisonError::into_inner);
                run_over_wire(wire, || work(&git))
            });
            task.join()
        });
        match done {
            Ok(Ok(value)) => Ok(value),
            Ok(Err((Some(failure), _))) => Err(failure),
            Ok(Err((None, e))) => Err(make_error("repository-unreachable", doing, &e)
                .with_object(format!("repository {}", self.name))),
            Err(_) => Err(GitError::new(
                GitErrorKind::Internal,
                "git-thread",
                format!("{doing}: the git thread ended early"),
            )),
        }
    }

    /// Every reference of the server.
    ///
    /// # Errors
    /// It cannot be reached or refuses us.
    pub fn fetch_heads(&self, store: &Mutex<git2::Repository>) -> Result<BTreeMap<String, Oid>, GitError> {
        self.run_work(&self.fetch, store, "cannot list the server's references", |git| {
            let mut remote = git.remote_anonymous(ADDRESS)?;
            remote.connect(Direction::Fetch)?;
            let heads = collect_heads(&remote)?;
            remote.disconnect()?;
            Ok(heads)
        })
    }

    /// The branch that the server's HEAD names, if there is one.
    ///
    /// # Errors
    /// It cannot be reached or refuses us.
    pub fn fetch_default_branch(&self, store: &Mutex<git2::Repository>) -> Result<Option<String>, GitError> {
        self.run_work(&self.fetch, store, "cannot list the server's references", |git| {
            let mut remote = git.remote_anonymous(ADDRESS)?;
            remote.connect(Direction::Fetch)?;
            let head =
                remote.list()?.iter().find(|h| h.name() == "HEAD").and_then(git2::RemoteHead::symref_target);
            let branch = head.and_then(|h| h.strip_prefix("refs/heads/")).map(str::to_owned);
            remote.disconnect()?;
            Ok(branch)
        })
    }

    /// Fetches those of `references` that the server has to [`fetched`], `depth` commits deep (0: all),
    /// and lists every reference it has.
    ///
    /// # Errors
    /// It cannot be reached or refuses us.
    pub fn fetch_references(
        &self,
        store: &Mutex<git2::Repository>,
        references: &[String],
        depth: i32,
    ) -> Result<BTreeMap<String, Oid>, GitError> {
        self.run_work(&self.fetch, store, "cannot fetch", |git| {
            let mut remote = git.remote_anonymous(ADDRESS)?;
            remote.connect(Direction::Fetch)?;
            let heads = collect_heads(&remote)?;
            let mut specs = Vec::new();
            for reference in references {
                let kept = format_fetched_ref(reference);
                match heads.get(reference) {
                    Some(oid) if git.find_commit(*oid).is_ok() => {
                        git.reference(&kept, *oid, true, "fetched")?;
                    }
                    Some(_) => specs.push(format!("+{reference}:{kept}")),
                    None => {
                        if let Ok(mut gone) = git.find_reference(&kept) {
                            gone.delete()?;
                        }
                    }
                }
            }
            if !specs.is_empty() {
                let mut options = FetchOptions::new();
                options.depth(depth).download_tags(AutotagOption::None).update_fetchhead(false);
                remote.fetch(&specs, Some(&mut options), None)?;
            }
            remote.disconnect()?;
            Ok(heads)
        })
    }

    /// Fetches the whole history of `reference`.
    ///
    /// # Errors
    /// It cannot be reached or refuses us.
    pub fn deepen_reference(&self, store: &Mutex<git2::Repository>, reference: &str) -> Result<(), GitError> {
        self.run_work(&self.fetch, store, "cannot fetch", |git| {
            let mut options = FetchOptions::new();
            let depth = if git.is_shallow() { i32::MAX } else { 0 };
            options.depth(depth).download_tags(AutotagOption::None).update_fetchhead(false);
            let spec = format!("+{reference}:{}", format_fetched_ref(reference));
            git.remote_anonymous(ADDRESS)?.fetch(&[spec], Some(&mut options), None)
        })
    }

    /// Moves `reference` from `expected` (none: it must not exist) to `new`, and reads back what it is.
    ///
    /// # Errors
    /// It cannot be reached or refuses us, and nothing of ours is there; or it broke off in the middle
    /// and cannot be read back.
    pub fn push_reference(
        &self,
        store: &Mutex<git2::Repository>,
        reference: &str,
        new: Oid,
        expected: Option<Oid>,
        step: PushStep,
    ) -> Result<Advance, GitError> {
        let sign = match step {
            PushStep::Forward => "",
            PushStep::Anywhere => "+",
        };
        let said = Mutex::new(ServerWords::default());
        let keep = |change: &dyn Fn(&mut ServerWords)| {
            change(&mut said.lock().unwrap_or_else(PoisonError::into_inner))
        };
        let pushed = self.run_work(&self.push, store, "cannot push", |git| {
            let mut callbacks = RemoteCallbacks::new();
            callbacks.push_negotiation(|updates| {
                let there = updates.iter().map(git2::PushUpdate::src).find(|oid| !oid.is_zero());
                if there == expected {
                    keep(&|s| s.sent = true);
                    return Ok(());
                }
                keep(&|s| s.moved = true);
                Err(git2::Error::from_str("the reference moved"))
            });
            callbacks.sideband_progress(|words| {
                keep(&|s| s.add_words(words));
                true
            });
            callbacks.push_update_reference(|_, status| {
                keep(&|s| s.status = Some(status.map(str::to_owned)));
                Ok(())
            });
            let mut options = PushOptions::new();
            options.remote_callbacks(callbacks);
            git.remote_anonymous(ADDRESS)?.push(&[format!("{sign}{new}:{reference}")], Some(&mut options))
        });
        let said = said.into_inner().unwrap_or_else(PoisonError::into_inner);
        if said.moved {
            return Ok(Advance::Moved);
        }
        if !said.sent && pushed.is_err() {
            return pushed.map(|()| Advance::Done);
        }
        let accepted = pushed.is_ok() && said.status == Some(None);
        self.judge_push(
            store,
            reference,
            new,
            expected,
            &Reported { pushed, accepted, words: said.format_words() },
        )
    }

    /// What became of a push, from what the server now has.
    fn judge_push(
        &self,
        store: &Mutex<git2::Repository>,
        reference: &str,
        new: Oid,
        expected: Option<Oid>,
        reported: &Reported,
    ) -> Result<Advance, GitError> {
        const TRIES: u32 = 4;
        let mut tries = 0;
        loop {
            let unknown = |f: GitError| {
                f.with_hint("the push may still arrive; the next run finds what became of it and goes on")
            };
            let there = self.fetch_heads(store).map_err(unknown)?.get(reference).copied();
            if there == Some(new) {
                return Ok(Advance::Done);
            }
            if there != expected {
                let ours = self.has_commit(store, reference, there, new).map_err(unknown)?;
                return Ok(if ours { Advance::Done } else { Advance::Moved });
            }
            // A writer that held the lock when ours was refused may be about to move it.
            if !reported.accepted && tries > 0 {
                return match &reported.pushed {
                    Err(failure) => Err(unknown(failure.clone())),
                    Ok(()) => Ok(Advance::Refused(reported.words.clone())),
                };
            }
            // A server that reads from replicas may lag behind its own word.
            tries += 1;
            if tries == TRIES {
                return Err(GitError::new(
                    GitErrorKind::Repository,
                    "push-not-seen",
                    format!("the server accepted the push, yet its {reference} is still where it was"),
                )
                .with_object(format!("repository {}", self.name)));
            }
            std::thread::sleep(Duration::from_millis(500 * u64::from(tries)));
        }
    }

    /// Whether the server's `reference`, which is `there`, holds `new` among its ancestors.
    fn has_commit(
        &self,
        store: &Mutex<git2::Repository>,
        reference: &str,
        there: Option<Oid>,
        new: Oid,
    ) -> Result<bool, GitError> {
        let Some(there) = there else { return Ok(false) };
        let lock = || store.lock().unwrap_or_else(PoisonError::into_inner);
        if lock().find_commit(there).is_err() {
            self.fetch_references(store, &[reference.to_owned()], 0)?;
        }
        lock()
            .graph_descendant_of(there, new)
            .map_err(|e| make_error("repository-unreadable", "cannot compare commits", &e))
    }
}

/// A push as it was reported.
struct Reported {
    pushed: Result<(), GitError>,
    accepted: bool,
    words: String,
}

/// What was heard during a push.
#[derive(Default)]
struct ServerWords {
    sent: bool,
    moved: bool,
    /// The reference's own status: `Some(None)` is accepted.
    status: Option<Option<String>>,
    heard: Vec<u8>,
}

impl ServerWords {
    fn add_words(&mut self, words: &[u8]) {
        let room = WORDS.saturating_sub(self.heard.len()).min(words.len());
        self.heard.extend_from_slice(&words[..room]);
    }

    /// The server's words: why it refused, then what its hooks printed.
    fn format_words(&self) -> String {
        let heard = String::from_utf8_lossy(&self.heard);
        let lines = heard.split(['\n', '\r']).map(str::trim).filter(|l| !l.is_empty());
        let status = self.status.iter().flatten().map(String::as_str);
        let words: Vec<&str> = status.chain(lines).collect();
        if words.is_empty() { "the server gave no reason".to_owned() } else { words.join("; ") }
    }
}

fn collect_heads(remote: &git2::Remote<'_>) -> Result<BTreeMap<String, Oid>, git2::Error> {
    Ok(remote.list()?.iter().map(|head| (head.name().to_owned(), head.oid())).collect())
}

/// The wire for a URL's scheme, and the URL as it may be shown.
fn make_wire(
    text: &str,
    config: &Config,
    options: &RepositoryOptions,
    folder: Option<PathBuf>,
) -> Result<(String, Arc<dyn Wire>), GitError> {
    let text = super::open::normalize_url(text).unwrap_or_else(|| text.to_owned());
    let wrong = |why: String| GitError::new_input("repository-name", why).with_object("repository");
    let url = Url::parse(&text).map_err(|e| wrong(format!("its URL cannot be read: {e}")))?;
    let mut shown = url.clone();
    // Cannot fail for URLs with a host; others are refused below.
    let _ = shown.set_password(None);
    let wire: Arc<dyn Wire> = match url.scheme() {
        "http" | "https" => {
            let _ = shown.set_username("");
            Arc::new(Http::new(&url, config, &options.environment, folder, options.timeouts)?)
        }
        "ssh" => Arc::new(Ssh::new(
            &url,
            config,
            &options.environment,
            options.known_hosts.clone(),
            options.timeouts,
        )?),
        other => return Err(wrong(format!("the scheme {other}:// is not supported"))),
    };
    Ok((shown.to_string(), wire))
}
