//! Open promotions as a table.

use crate::model::plan::{OpenPromotion, PromotionStep};
use crate::report::table::Table;

/// One line per promotion, or a line that there is none.
#[must_use]
pub fn format_open_promotions(items: &[OpenPromotion]) -> String {
    if items.is_empty() {
        return "No open promotions.\n".to_owned();
    }
    let mut table = Table::new(&["NAMESPACE", "ORDER", "ENVIRONMENT", "PREPARATION", "DIGEST", "NEXT STEP"]);
    for open in items {
        let step = match &open.step {
            PromotionStep::Review => "Review".to_owned(),
            PromotionStep::Promote => "Promote".to_owned(),
            PromotionStep::Waits(message) => format!("waits for {message}"),
        };
        let environment = open.environment.as_ref().map_or("<none>", |e| e.as_str());
        table.push_row([
            open.order.namespace.as_str(),
            open.order.name.as_str(),
            environment,
            open.preparation.as_str(),
            &open.digest.format_short(),
            &step,
        ]);
    }
    table.format_table()
}
