//! Plan, outcomes and snapshots → text, for the writer handed in.
//!
//! Knows nothing of how anything was done. Nothing here opens stdout or stderr.

pub mod escape;
pub mod failure;
pub mod github;
pub mod output;
pub mod table;

pub use output::{Output, Style};
