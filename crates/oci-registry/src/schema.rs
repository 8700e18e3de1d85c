//! How digests and repositories describe themselves in a JSON Schema: what a pattern can say of their parsers' rules.
//! A text that a parser takes matches; the other way round as far as patterns reach.

use crate::id::{Digest, OciRepository};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

impl JsonSchema for Digest {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Digest".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "maxLength": 71, "pattern": "^sha256:[a-f0-9]{64}$"})
    }
}

impl JsonSchema for OciRepository {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "OciRepository".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string", "maxLength": 261,
            "pattern": "^(oci://)?(localhost|[^/@]*[.:][^/@]*)/[^:@]+$",
        })
    }
}
