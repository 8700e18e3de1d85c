//! Git at the edge: repositories opened and read, transports and credentials. Knows nothing of what
//! files mean, nor of what a commit is for (`commit` writes).

pub mod around;
pub mod config;
pub mod environment;
pub mod history;
pub mod libgit2;
pub mod local;
pub mod open;
pub mod snapshot;
pub mod transport;

pub(crate) mod advance;
mod clone;
mod credentials;
pub(crate) mod http;
mod process;
pub(crate) mod remote;
mod ssh;
pub(crate) mod swap;

pub use around::{Around, find_around};
pub use config::Config;
pub use environment::Environment;
pub use history::{History, Visit};
pub use local::{Below, Local, Points};
pub use open::{Repository, RepositoryOptions, RepositoryTarget};
pub use snapshot::{ATTACHED, Snapshot};
pub use transport::{SecretText, Timeouts};

use crate::error::{Failure, FailureKind};

/// A failure of the repository, with git's own words and those of its causes.
pub(crate) fn make_failure(code: &'static str, doing: &str, error: &git2::Error) -> Failure {
    let words = error.message().trim();
    Failure::new(
        FailureKind::Repository,
        code,
        format!("{doing}: {}", if words.is_empty() { "no reason given" } else { words }),
    )
}
