//! Plan, outcomes and snapshots → text, for the writer handed in.
//!
//! Knows nothing of how anything was done. Nothing here opens stdout or stderr.

pub mod audit;
pub mod diff;
pub mod edit;
pub mod escape;
pub mod explain;
pub mod failure;
pub mod fingerprint;
pub mod get;
pub mod github;
pub mod json_v1;
pub mod markdown;
pub mod names;
pub mod open;
pub mod output;
pub mod plan;
pub mod preview;
pub mod pull_request;
#[cfg(test)]
mod sample;
pub mod table;
pub mod verify;
pub mod view;

pub use output::{Output, OutputStyle};
