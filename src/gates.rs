//! The gates in their order; each asks for evidence, then judges. Pure.

pub mod ssh_vote;
