//! SLSA provenance (v1 and v0.2): for which Order an artifact was built, from what, when and by whom.

use crate::evidence::envelope::clip_text;
use crate::evidence::statement::ParsedStatement;
use crate::model::evidence::{Build, Material, ProvenanceProof};
use crate::model::id::{Digest, OrderRef};
use crate::model::kitchen::ProvenanceRules;
use crate::model::renderer::Renderer;
use crate::model::time::Time;
use serde_json::Value;
use std::collections::BTreeSet;

/// Predicate type of SLSA provenance v1 (also of 1.1 and 1.2).
pub const SLSA_V1: &str = "https://slsa.dev/provenance/v1";
/// Predicate type of SLSA provenance v0.2.
pub const SLSA_V02: &str = "https://slsa.dev/provenance/v0.2";

/// Paths of the same members in the two versions.
struct ProvenanceShape {
    order: &'static str,
    finished: &'static str,
    dependencies: &'static str,
    builder: &'static str,
    build_type: &'static str,
    parameters: &'static str,
    renderer: &'static str,
    commit: &'static str,
}

const V1: ProvenanceShape = ProvenanceShape {
    order: "/buildDefinition/externalParameters/order",
    finished: "/runDetails/metadata/finishedOn",
    dependencies: "/buildDefinition/resolvedDependencies",
    builder: "/runDetails/builder/id",
    build_type: "/buildDefinition/buildType",
    parameters: "/buildDefinition/externalParameters",
    renderer: "/buildDefinition/internalParameters/renderer",
    commit: "/digest/gitCommit",
};
const V02: ProvenanceShape = ProvenanceShape {
    order: "/invocation/parameters/order",
    finished: "/metadata/buildFinishedOn",
    dependencies: "/materials",
    builder: "/builder/id",
    build_type: "/buildType",
    parameters: "/invocation/parameters",
    renderer: "/invocation/environment/renderer",
    commit: "/digest/sha1",
};

/// Content of a provenance statement for our Order.
#[derive(Debug, Clone, PartialEq)]
pub struct Provenance {
    /// When the build ended.
    pub finished_on: Option<Time>,
    /// sha256 digests among its dependencies.
    pub dependencies: BTreeSet<Digest>,
    /// Who built it.
    pub builder: Option<String>,
    /// The whole predicate.
    pub predicate: Value,
}

/// Whether this module reads statements of this type.
#[must_use]
pub fn is_provenance(predicate_type: &str) -> bool {
    predicate_type == SLSA_V1 || predicate_type == SLSA_V02
}

/// Reads provenance for `order`.
///
/// # Errors
/// Says which Order it names instead, or which rule it breaks.
pub fn parse_provenance(
    statement: &ParsedStatement,
    order: &OrderRef,
    rules: &ProvenanceRules,
) -> Result<Provenance, String> {
    let predicate = statement.parse_object()?;
    let shape = choose_shape(&statement.predicate_type);
    check_order_name(predicate.pointer(shape.order), shape.order, order)?;
    let text = |path: &str| predicate.pointer(path).and_then(Value::as_str);
    let builder = text(shape.builder);
    check_allowed("builder", "builderIds", builder, &rules.builder_ids)?;
    check_allowed("build type", "buildTypes", text(shape.build_type), &rules.build_types)?;
    let finished_on = match predicate.pointer(shape.finished) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(Time::parse(text).map_err(|e| format!("its build time: {e}"))?),
        Some(_) => return Err("its build time is not a text".into()),
    };
    let entries = predicate.pointer(shape.dependencies).and_then(Value::as_array);
    let dependencies = entries
        .into_iter()
        .flatten()
        .filter_map(|d| Digest::from_hex(d.pointer("/digest/sha256")?.as_str()?).ok())
        .collect();
    Ok(Provenance { finished_on, dependencies, builder: builder.map(str::to_owned), predicate })
}

/// Facts about the build from verified provenance, for a Preparation.
#[must_use]
pub fn extract_build(proof: &ProvenanceProof) -> Build {
    let Some(statement) = &proof.proof.statement else { return Build::default() };
    let (shape, predicate) = (choose_shape(&statement.predicate_type), &statement.predicate);
    let material = |entry: &Value| {
        let text = |path: &str| entry.pointer(path).and_then(Value::as_str);
        Material {
            uri: text("/uri").map(str::to_owned),
            sha256: text("/digest/sha256").and_then(|hex| Digest::from_hex(hex).ok()),
            commit: text(shape.commit).map(str::to_owned),
        }
    };
    let materials = predicate.pointer(shape.dependencies).and_then(Value::as_array);
    let renderer = predicate.pointer(shape.renderer).and_then(|r| serde_json::from_value(r.clone()).ok());
    Build {
        finished_on: proof.finished_on,
        materials: materials.into_iter().flatten().map(material).collect(),
        parameters: predicate.pointer(shape.parameters).cloned(),
        // In the form that the CustomResourceDefinition allows.
        renderer: renderer.filter(|r: &Renderer| r.version.len() <= 64 && Digest::parse(&r.digest).is_ok()),
    }
}

fn choose_shape(predicate_type: &str) -> &'static ProvenanceShape {
    if predicate_type == SLSA_V1 { &V1 } else { &V02 }
}

/// Both parts are compared as exact strings: one text `"shop/podinfo"`, a missing namespace, lists or deeper objects do
/// not name an Order.
fn check_order_name(found: Option<&Value>, path: &str, order: &OrderRef) -> Result<(), String> {
    let path = path.trim_start_matches('/').replace('/', ".");
    let Some(found) = found else {
        return Err(format!("it names no Order: {path} is absent"));
    };
    let part = |name: &str| found.as_object().and_then(|o| o.get(name)).and_then(Value::as_str);
    match (part("namespace"), part("name")) {
        (Some(namespace), Some(name))
            if namespace == order.namespace.as_str() && name == order.name.as_str() =>
        {
            Ok(())
        }
        (Some(namespace), Some(name)) => {
            Err(format!("it names Order {}/{}, not {order}", clip_text(namespace), clip_text(name)))
        }
        _ => Err(format!("it names no Order: {path} is not {{namespace, name}}")),
    }
}

fn check_allowed(what: &str, list: &str, found: Option<&str>, allowed: &[String]) -> Result<(), String> {
    if allowed.is_empty() || found.is_some_and(|f| allowed.iter().any(|a| a == f)) {
        return Ok(());
    }
    Err(match found {
        Some(found) => format!("its {what} {:?} is not in the Kitchen's provenance.{list}", clip_text(found)),
        None => format!("it names no {what}, but the Kitchen's provenance.{list} requires one"),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use serde_json::json;

    fn parsed(predicate_type: &str, predicate: &Value) -> ParsedStatement {
        ParsedStatement {
            predicate_type: predicate_type.into(),
            subject: None,
            about: Ok(()),
            predicate: predicate.to_string(),
        }
    }

    fn v1(order: &Value) -> ParsedStatement {
        parsed(
            SLSA_V1,
            &json!({
                "buildDefinition": {
                    "buildType": "https://b/1",
                    "externalParameters": {"order": order},
                    "resolvedDependencies": [
                        {"digest": {"sha256": Digest::hash_bytes(b"base").format_hex()}},
                        {"digest": {"sha256": "NOPE"}},
                        {"uri": "x"},
                    ],
                },
                "runDetails": {"builder": {"id": "https://builder"}, "metadata": {"finishedOn": "2026-01-02T03:04:05Z"}},
            }),
        )
    }

    #[test]
    fn both_versions_name_their_order() {
        let order = OrderRef::parse("shop/podinfo").unwrap();
        let rules = ProvenanceRules::default();
        let named = json!({"namespace": "shop", "name": "podinfo"});
        let read_v1 = parse_provenance(&v1(&named), &order, &rules).unwrap();
        assert_eq!(read_v1.finished_on.unwrap().to_string(), "2026-01-02T03:04:05Z");
        assert_eq!(read_v1.dependencies, BTreeSet::from([Digest::hash_bytes(b"base")]));
        assert_eq!(read_v1.builder.as_deref(), Some("https://builder"));
        let v02 = parsed(
            SLSA_V02,
            &json!({
                "builder": {"id": "b"}, "buildType": "t", "invocation": {"parameters": {"order": named}},
                "metadata": {"buildFinishedOn": "2026-01-02T03:04:05+02:00"},
                "materials": [{"digest": {"sha256": Digest::hash_bytes(b"base").format_hex()}}],
            }),
        );
        let v02 = parse_provenance(&v02, &order, &rules).unwrap();
        assert_eq!(v02.finished_on.unwrap().to_string(), "2026-01-02T01:04:05Z");
        assert_eq!(v02.dependencies, read_v1.dependencies);
    }

    #[test]
    fn anything_else_names_nobody() {
        let order = OrderRef::parse("shop/podinfo").unwrap();
        let why =
            |value: Value| parse_provenance(&v1(&value), &order, &ProvenanceRules::default()).unwrap_err();
        assert!(why(json!({"namespace": "other", "name": "podinfo"})).contains("names Order other/podinfo"));
        assert!(why(json!({"namespace": "shop", "name": "podinfo2"})).contains("names Order shop/podinfo2"));
        assert!(why(json!({"namespace": "podinfo", "name": "shop"})).contains("names Order podinfo/shop"));
        for value in [
            json!("shop/podinfo"),
            json!({"name": "podinfo"}),
            json!({"namespace": "shop"}),
            json!([{"namespace": "shop", "name": "podinfo"}]),
            json!({"order": {"namespace": "shop", "name": "podinfo"}}),
            json!({"namespace": ["shop"], "name": "podinfo"}),
            json!(null),
        ] {
            assert!(why(value.clone()).contains("names no Order"), "{value}");
        }
    }

    #[test]
    fn the_allow_lists_and_the_build_time_are_exact() {
        let order = OrderRef::parse("shop/podinfo").unwrap();
        let good = v1(&json!({"namespace": "shop", "name": "podinfo"}));
        let rules = |b: &str, t: &str| ProvenanceRules {
            builder_ids: vec!["x".into(), b.into()],
            build_types: vec![t.into()],
        };
        assert!(parse_provenance(&good, &order, &rules("https://builder", "https://b/1")).is_ok());
        assert!(
            parse_provenance(&good, &order, &rules("https://builder/", "https://b/1"))
                .unwrap_err()
                .contains("builderIds")
        );
        assert!(
            parse_provenance(&good, &order, &rules("https://builder", "https://b/2"))
                .unwrap_err()
                .contains("buildTypes")
        );
        let mut broken = good;
        broken.predicate = broken.predicate.replace("2026-01-02T03:04:05Z", "yesterday");
        assert!(
            parse_provenance(&broken, &order, &ProvenanceRules::default())
                .unwrap_err()
                .contains("build time")
        );
    }
}
