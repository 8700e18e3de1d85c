//! How names, digests and times describe themselves in a JSON Schema: what a pattern can say of their
//! parsers' rules. Every text that the parser accepts matches; a pattern may also match some texts that the
//! parser rejects.

use crate::model::id::{
    ApplicationName, ClusterName, EnvironmentName, Namespace, OrderName, PreparationName,
};
use crate::model::time::{Span, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// The name of a Preparation, or `""` for none.
#[derive(Debug)]
pub struct PreparationNameOrNone;

/// A [`CommitId`](crate::model::id::CommitId), which is a type of another crate.
#[derive(Debug)]
pub struct CommitIdText;

macro_rules! described {
    ($($name:ident: $schema:expr),+ $(,)?) => {$(
        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    )+};
}

described!(
    Namespace: json_schema!({
        "type": "string", "minLength": 1, "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    }),
    OrderName: build_subdomain_schema(),
    PreparationName: build_subdomain_schema(),
    EnvironmentName: build_subdomain_schema(),
    ClusterName: build_subdomain_schema(),
    ApplicationName: build_subdomain_schema(),
    PreparationNameOrNone: json_schema!({
        "type": "string", "maxLength": 253,
        "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$",
    }),
    CommitIdText: json_schema!({
        "type": "string", "maxLength": 64, "pattern": "^([a-f0-9]{40}|[a-f0-9]{64})$",
    }),
    Time: json_schema!({"type": "string", "format": "date-time"}),
    // A bare 0 is a number in JSON.
    Span: json_schema!({
        "x-kubernetes-int-or-string": true, "minimum": 0, "maximum": 0, "maxLength": 64,
        "pattern": r"^(0|\+?(([0-9]+\.?[0-9]*|\.[0-9]+)(d|h|m|s|ms|us|µs|μs|ns))+)$",
    }),
);

fn build_subdomain_schema() -> Schema {
    json_schema!({
        "type": "string", "minLength": 1, "maxLength": 253,
        "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::model::id::{CommitId, Digest, OciRepository};
    use proptest::prelude::*;

    /// Whether the schema of `T` accepts a text.
    fn admits<T: JsonSchema>(text: &str) -> bool {
        let schema = schemars::schema_for!(T);
        jsonschema::validator_for(schema.as_value()).unwrap().is_valid(&text.into())
    }

    proptest! {
        #[test]
        fn names_match_exactly_what_their_parsers_take(text in "[a-zA9.-]{0,6}|a{62,64}|[a.-]{252,254}") {
            prop_assert_eq!(admits::<Namespace>(&text), Namespace::parse(&text).is_ok());
            prop_assert_eq!(admits::<OrderName>(&text), OrderName::parse(&text).is_ok());
            let none = text.is_empty() || PreparationName::parse(&text).is_ok();
            prop_assert_eq!(admits::<PreparationNameOrNone>(&text), none);
        }

        #[test]
        fn digests_and_commits_match_exactly_what_their_parsers_take(text in "(sha256:)?([0-9a-g]{39,41}|[0-9a-fA]{63,65})") {
            prop_assert_eq!(admits::<Digest>(&text), Digest::parse(&text).is_ok());
            prop_assert_eq!(admits::<CommitIdText>(&text), CommitId::parse(&text).is_ok());
        }

        #[test]
        fn whatever_is_a_duration_matches(text in r"\+?(([0-9]{0,3}\.?[0-9]{0,3})(d|h|m|s|ms|us|ns|x)?){0,3}") {
            if Span::parse(&text).is_ok() {
                prop_assert!(admits::<Span>(&text), "{}", text);
            }
            // What matches but is not a duration: no whole seconds, or longer than a hundred years.
            else if admits::<Span>(&text) {
                let why = Span::parse(&text).unwrap_err().to_string();
                prop_assert!(why.contains("whole number") || why.contains("a hundred years"), "{}", why);
            }
        }

        #[test]
        fn whatever_is_a_repository_matches(text in "(oci://)?(localhost|[a-z.:5]{1,6}|[a-z]{2})/[a-z/@:._-]{0,6}") {
            if OciRepository::parse(&text).is_ok() {
                prop_assert!(admits::<OciRepository>(&text), "{}", text);
            }
        }
    }
}
