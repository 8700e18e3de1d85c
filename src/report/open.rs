//! Open promotions as a table.

use crate::model::plan::{OpenPromotion, Step};
use crate::report::table::Table;

/// One line per promotion, or that there is none.
#[must_use]
pub fn text(items: &[OpenPromotion]) -> String {
    if items.is_empty() {
        return "No open promotions.\n".to_owned();
    }
    let mut table = Table::new(&["NAMESPACE", "ORDER", "ENVIRONMENT", "PREPARATION", "DIGEST", "NEXT STEP"]);
    for open in items {
        let step = match &open.step {
            Step::Review => "Review".to_owned(),
            Step::Promote => "Promote".to_owned(),
            Step::Waits(message) => format!("waits for {message}"),
        };
        let environment = open.environment.as_ref().map_or("<none>", |e| e.as_str());
        table.row([
            open.order.namespace.as_str(),
            open.order.name.as_str(),
            environment,
            open.preparation.as_str(),
            &open.digest.short(),
            &step,
        ]);
    }
    table.text()
}
