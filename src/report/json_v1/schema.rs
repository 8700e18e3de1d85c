//! JSON Schemas (draft 2020-12) of every `-o json`, made from the same structs that print them.

use super::{API_VERSION, audit, explain, get, open, verify};
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};

pub type Make = fn() -> Schema;

/// File name of each output's schema, and what makes it.
pub const OUTPUTS: &[(&str, Make)] = &[
    ("plan-v1.json", make_schema::<super::PlanDocument>),
    ("explanation-v1.json", make_schema::<explain::Explanation>),
    ("open-promotions-v1.json", make_schema::<open::OpenPromotions<'static>>),
    ("verification-v1.json", make_schema::<verify::VerificationDocument>),
    ("history-verification-v1.json", make_schema::<audit::HistoryVerification<'static>>),
    ("servings-v1.json", make_schema::<get::List<get::ServingJson>>),
    ("orders-v1.json", make_schema::<get::List<get::OrderJson>>),
    ("preparations-v1.json", make_schema::<get::List<get::PreparationJson>>),
    ("history-v1.json", make_schema::<get::List<get::HistoryEntryJson>>),
];

/// The schema describes what is written: a member that may be left out is not required.
fn make_schema<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<T>();
    // Every document contains its kind and version.
    if let Some(version) = schema.pointer_mut("/properties/apiVersion").and_then(|v| v.as_object_mut()) {
        version.insert("const".to_owned(), API_VERSION.into());
    }
    schema
}
