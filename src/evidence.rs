//! Evidence: Asks → Facts. Reads registries; knows nothing of Orders' policies.

pub mod answer;
pub mod registry;
