//! What the objects mean: which Preparation an Order is to run, what each gate says of it, and what follows. Pure:
//! values in, values out; it knows nothing of files, git, registries or clocks.
//!
//! Modules stand in pipeline order, and one may use those above it, never one below (`tests/layers.rs`).

pub mod resolve;
pub mod gates;
pub mod decide;
