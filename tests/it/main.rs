//! The tests of the library and of the binary: one module an area, what they share once in [`support`].
//!
//! One binary, because each binary links the whole of Expedite and what it depends on. A test must not change what
//! belongs to the process (its environment, its working directory): others run beside it. One that cannot do
//! without gets a binary of its own beside this one.
//!
//! `cargo test --test it gates::window` runs the tests of one module.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

mod approvals;
mod approve;
mod argocd;
mod cases;
mod chain;
mod citations;
mod cli;
mod cluster;
mod codes;
mod crash;
mod crds;
mod decide;
mod decide_properties;
mod deploy;
mod e2e;
mod emit;
mod evidence;
mod explain;
mod file_order;
mod forecast;
mod forge;
mod fuzz_corpus;
mod gates;
mod gates_reference;
mod git;
mod hours;
mod intent;
mod load;
mod names;
mod prepare;
mod preview;
mod races;
mod readme;
mod registry;
mod rehearse;
mod render;
mod render_drift;
mod render_serving;
mod schema;
mod shards;
mod shop;
mod ssh_votes;
mod stable_codes;
mod support;
mod support_files;
mod thousand;
mod verify;
mod verify_history;
mod workflows;
