//! Records: signed statements that are attached to artifacts.
//!
//! [`record`] makes the bodies and [`sign`] the bundles; both are pure, except that a signer may be a command.
//! [`attach`] is the only part that talks to a registry. Nothing here knows why something was decided.

pub mod attach;
pub mod key;
pub mod pem;
pub use crate::ledger::record;
pub mod sign;

/// The published JSON Schemas of the predicates: file name, predicate type, text.
pub const SCHEMAS: &[(&str, &str, &str)] = &[
    ("approval-v1.json", record::APPROVAL, include_str!("attest/schemas/approval-v1.json")),
    ("promotion-v1.json", record::PROMOTION, include_str!("attest/schemas/promotion-v1.json")),
    ("deployment-v1.json", record::DEPLOYMENT, include_str!("attest/schemas/deployment-v1.json")),
];
