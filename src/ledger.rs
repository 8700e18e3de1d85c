//! The ledger: signed statements are what happened, and everything else is derived from them.
//!
//! ```text
//!  records/<namespace>/<order>/
//!    000001-<16 hex>.json   one signed statement each: the greatest sequence is the head
//!    past.json              the fold of all statements up to the head; the head signs its SHA-256
//! ```
//!
//! A run reads two files per Order ([`head`]): the head's signature covers the hash of `past.json` and the hash of the
//! statement before it, and the run that signed it had verified that one. So one signature vouches for all below.
//! `verify-history` reads the others, too ([`chain`]).
//!
//! | file | what |
//! |---|---|
//! | [`record`], [`event`] | the bodies of the six kinds of statement |
//! | [`statement`] | a body, the artifact that it is about, and its link: to bytes and back |
//! | [`name`] | names of files in an Order's folder |
//! | [`past`] | what an Order did so far, and its canonical JSON |
//! | [`fold`] | `(Past, statement) → Past`, the only place that says what a statement means |
//! | [`head`] | folder and witness → proven, or why not |
//! | [`chain`] | every statement in a folder, verified and folded again |
//! | [`next`] | what the next statement links to |
//! | [`view`] | a Serving's status as Past has it |
//!
//! Pure: bytes come in through a function that is handed in. It knows nothing of git, registries, policies or clocks
//! (the clock's reading is handed in).

pub mod chain;
pub mod event;
pub mod fold;
pub mod head;
pub mod name;
pub mod next;
pub mod past;
pub mod record;
pub mod statement;
pub mod view;

#[cfg(test)]
#[path = "ledger/sample/tests.rs"]
mod sample;

pub use head::{Fault, Head, Proven, Trouble};
pub use past::Past;
pub use statement::{Link, Statement};

/// The version of statements and of `past.json` that this build writes.
pub const VERSION: u32 = 1;
