//! Expedite promotes rendered manifests through environments.
//!
//! # Architecture
//!
//! ```text
//!  load ──▶ resolve ──▶ gates.ask ──▶ evidence ──▶ gates.judge ──▶ decide ──▶ render ──▶ commit ──▶ attest ──▶ report
//!  read     pure         pure          read          pure            pure       pure       write      write      pure → out
//!    ▲                                                              │ asks for a seal?       │ moved?
//!    └────────────────────── read and decide again ◀───────────────┴── attest.seal ◀───────┘
//! ```
//!
//! Decisions depend on values that were read, never on reading while deciding. Both loops are bounded
//! and live in `run`, nowhere else. The modules below stand in pipeline order: a module may use those
//! above it, never one below (`tests/layers.rs`).

pub mod error;
pub mod model;
pub mod files;
pub mod yaml;
pub mod settings;
pub mod program;
pub mod git;
pub mod load;
pub mod resolve;
pub mod gates;
pub mod evidence;
pub mod decide;
pub mod render;
pub mod commit;
pub mod attest;
pub mod compare;
pub mod report;
pub mod run;
pub mod cli;
pub mod cmd;
