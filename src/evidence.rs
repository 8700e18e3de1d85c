//! Evidence: Asks → Facts. Reads registries; knows nothing of Orders' policies.
//!
//! [`gather`] fetches; the code that decides whether bytes prove a claim is pure and in the other files, from the bytes
//! up: [`json`], [`envelope`] and [`simple_signing`] (what was signed, by whom), [`statement`] (about what), then one
//! file per claim, and [`judge`], which collects the results.

pub mod approvals;
pub mod archive;
pub mod artifact;
pub mod collect;
pub mod envelope;
pub mod gather;
pub mod json;
pub mod judge;
pub mod keys;
pub mod provenance;
pub mod scans;
pub mod simple_signing;
pub mod statement;
