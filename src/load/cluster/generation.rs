//! Whether a cluster's definition of Orders keeps promotions.
//!
//! The definitions of August 2026 do not: an API server with them silently drops `spec.promotion`, and gates that are
//! written there have no effect. A reader usually has no right to read definitions, but every authenticated user may
//! read the server's OpenAPI documents (`system:discovery`).

use super::ask::send_request;
use crate::model::naming::API_VERSION;
use kube::Client;
use kube::api::ListParams;
use kube::core::Request;
use serde_json::Value;

/// Asks the server. `None`: the server does not say.
pub async fn fetch_drops_promotions(client: &Client) -> Option<bool> {
    let request =
        Request::new(format!("/openapi/v3/apis/{API_VERSION}")).list(&ListParams::default()).ok()?;
    let bytes = send_request(client, request).await.ok()?;
    parse_drops_promotions(&serde_json::from_slice(&bytes).ok()?)
}

/// Reads the same from an OpenAPI document of our group.
fn parse_drops_promotions(document: &Value) -> Option<bool> {
    let schemas = document.pointer("/components/schemas")?.as_object()?;
    let order = schemas.iter().find(|(name, _)| name.ends_with(".Order")).map(|(_, schema)| schema)?;
    let keeps = |schema: &Value| schema["x-kubernetes-preserve-unknown-fields"] == true;
    let Some(spec) = order.pointer("/properties/spec") else { return Some(!keeps(order)) };
    Some(!keeps(spec) && spec.pointer("/properties/promotion").is_none())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_neither_named_nor_kept_is_dropped() {
        let of = |order: Value| {
            parse_drops_promotions(
                &json!({"components": {"schemas": {"dev.kokumi.delivery.v1alpha1.Order": order}}}),
            )
        };
        let spec = |spec: Value| of(json!({"properties": {"spec": spec}}));
        assert_eq!(spec(json!({"properties": {"source": {}}})), Some(true));
        assert_eq!(spec(json!({"properties": {"promotion": {}}})), Some(false));
        assert_eq!(spec(json!({"x-kubernetes-preserve-unknown-fields": true})), Some(false));
        assert_eq!(of(json!({"x-kubernetes-preserve-unknown-fields": true})), Some(false));
        assert_eq!(of(json!({"type": "object"})), Some(true));
        assert_eq!(parse_drops_promotions(&json!({"components": {"schemas": {}}})), None);
        assert_eq!(parse_drops_promotions(&json!({"kind": "Status"})), None);
    }
}
