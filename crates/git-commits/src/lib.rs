//! Commits to a git repository by compare-and-swap: a snapshot is read, files are changed on top of exactly
//! that commit, and the branch moves only if it still is that commit.
//!
//! - [`Repository::open_target`] takes what a person named: a bare repository, a checkout, or a URL.
//! - [`Repository::read_snapshot`] reads the files of a branch's head; [`Repository::read_history`] its commits.
//! - [`write_changes`] commits on top of a snapshot: [`WriteOutcome`] says what became of it.
//! - [`propose_changes`] does so on a branch of its own, for a pull request.
//! - [`side`] keeps files in a reference beside the branches.
//!
//! What a file means is not known here, nor what a commit is for. Nothing is ever forced: a commit of
//! somebody else is never replaced. Every error is a [`GitError`], for a person, without secrets.
//! `unsafe` is in one file ([`libgit2`]), for the process-wide switches of libgit2.

pub mod around;
pub mod config;
pub mod environment;
pub mod history;
pub mod http;
pub mod identity;
pub mod libgit2;
pub mod local;
pub mod message;
pub mod open;
pub mod propose;
pub mod side;
pub mod sign;
pub mod snapshot;
pub mod transport;
pub mod write;

mod advance;
mod checkout;
mod clone;
mod commit_id;
mod credentials;
mod error;
mod files;
mod process;
mod push;
mod remote;
mod ssh;
mod swap;
mod tree;

pub use around::{Around, find_around};
pub use commit_id::{CommitId, CommitIdError};
pub use config::Config;
pub use environment::Environment;
pub use error::{GitError, GitErrorKind};
pub use files::{EntryKind, FileChange, FileEntry, Unreadable};
pub use history::{History, Visit};
pub use identity::{Identity, Person};
pub use local::{Below, Local, Points};
pub use message::build_message;
pub use open::{Repository, RepositoryOptions, RepositoryTarget, is_branch_name};
pub use propose::{ProposalBranch, propose_changes};
pub use sign::CommitSigner;
pub use snapshot::{ATTACHED, Snapshot};
pub use transport::{SecretText, Timeouts};
pub use write::{Proposal, WriteOutcome, find_clashes, write_changes};
