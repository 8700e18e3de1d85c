//! `-o name`: one object a line, for a pipe into another command.
//!
//! The form is kubectl's for a custom resource, `order.delivery.kokumi.dev/podinfo`. With exactly one `-n`
//! that is the whole line, and both kubectl and Expedite accept it together with the same `-n`. Otherwise the
//! namespace precedes the name, so that the line still identifies the object; only Expedite accepts that
//! form. The flags decide between the two, never the objects. Names need no escaping: they consist of
//! letters, digits, `-` and `.`.

use crate::model::id::{Namespace, OrderRef};
use crate::model::naming::GROUP;

/// The singular of Orders.
pub const ORDER: &str = "order";
/// The singular of Preparations.
pub const PREPARATION: &str = "preparation";
/// The singular of Servings.
pub const SERVING: &str = "serving";

/// One line. `asked`: the namespaces of the flags.
///
/// ```
/// use expedite::{model::id::Namespace, report::names};
/// let shop = Namespace::parse("shop").unwrap();
/// assert_eq!(names::format_line(names::ORDER, &shop, "web", &[]), "order.delivery.kokumi.dev/shop/web\n");
/// assert_eq!(names::format_line(names::ORDER, &shop, "web", &[shop.clone()]), "order.delivery.kokumi.dev/web\n");
/// ```
#[must_use]
pub fn format_line(kind: &str, namespace: &Namespace, name: &str, asked: &[Namespace]) -> String {
    match asked {
        [_] => format!("{kind}.{GROUP}/{name}\n"),
        [..] => format!("{kind}.{GROUP}/{namespace}/{name}\n"),
    }
}

/// A line for each Order (or Serving), in their order.
#[must_use]
pub fn format_lines<'a>(kind: &str, all: impl Iterator<Item = &'a OrderRef>, asked: &[Namespace]) -> String {
    all.map(|order| format_line(kind, &order.namespace, order.name.as_str(), asked)).collect()
}
