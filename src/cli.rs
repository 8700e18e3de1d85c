//! Verbs and flags as clap types; no behaviour.
