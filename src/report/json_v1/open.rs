//! Kind `OpenPromotions`: promotions that a person can act on.

use super::{API_VERSION, format_document};
use crate::model::plan::{OpenPromotion, PromotionStep};
use crate::model::time::Time;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OpenPromotions<'a> {
    api_version: &'static str,
    kind: &'static str,
    at: String,
    /// The viewer; null: any person.
    viewer: Option<&'a str>,
    items: Vec<OpenPromotionItem<'a>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Item")]
struct OpenPromotionItem<'a> {
    namespace: &'a str,
    name: &'a str,
    environment: Option<&'a str>,
    preparation_name: &'a str,
    digest: String,
    /// `Review`, `Promote` or `Wait`.
    step: &'static str,
    /// What it waits for; of `Wait`.
    message: Option<&'a str>,
}

#[must_use]
pub fn format_open_promotions(items: &[OpenPromotion], viewer: Option<&str>, at: Time) -> String {
    format_document(&OpenPromotions {
        api_version: API_VERSION,
        kind: "OpenPromotions",
        at: at.to_string(),
        viewer,
        items: items
            .iter()
            .map(|open| {
                let (step, message) = match &open.step {
                    PromotionStep::Review => ("Review", None),
                    PromotionStep::Promote => ("Promote", None),
                    PromotionStep::Waits(message) => ("Wait", Some(message.as_str())),
                };
                OpenPromotionItem {
                    namespace: open.order.namespace.as_str(),
                    name: open.order.name.as_str(),
                    environment: open.environment.as_ref().map(|e| e.as_str()),
                    preparation_name: open.preparation.as_str(),
                    digest: open.digest.to_string(),
                    step,
                    message,
                }
            })
            .collect(),
    })
}
