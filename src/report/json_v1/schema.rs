//! JSON Schemas (draft 2020-12) of every `-o json`, made from the same structs that print them.

use super::{API_VERSION, audit, explain, get, open, verify};
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};

/// Makes one schema.
pub type Make = fn() -> Schema;

/// File name of each output's schema, and what makes it.
pub const OUTPUTS: &[(&str, Make)] = &[
    ("plan-v1.json", of::<super::Plan>),
    ("explanation-v1.json", of::<explain::Explanation>),
    ("open-promotions-v1.json", of::<open::OpenPromotions<'static>>),
    ("verification-v1.json", of::<verify::Verification>),
    ("history-verification-v1.json", of::<audit::HistoryVerification<'static>>),
    ("servings-v1.json", of::<get::List<get::Serving>>),
    ("orders-v1.json", of::<get::List<get::Order>>),
    ("preparations-v1.json", of::<get::List<get::Preparation>>),
    ("history-v1.json", of::<get::List<get::HistoryEntry>>),
];

/// For what is written, not for what is read: a member that may be left out is not required.
fn of<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<T>();
    // Every document says which shape it has.
    if let Some(version) = schema.pointer_mut("/properties/apiVersion").and_then(|v| v.as_object_mut()) {
        version.insert("const".to_owned(), API_VERSION.into());
    }
    schema
}
