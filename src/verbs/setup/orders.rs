//! The Order that an argument names.

use crate::error::{Failure, FailureKind};
use crate::model::id::{OrderName, OrderRef};
use crate::policy::resolve::Case;
use crate::verbs::flags::Common;
use crate::verbs::values::OrderArg;

/// The Order that an argument names.
///
/// # Errors
/// It names no namespace, and `-n` does not name one.
pub fn parse_order(order: &OrderArg, common: &Common) -> Result<OrderRef, Failure> {
    let namespace = match (&order.namespace, &common.namespace[..]) {
        (Some(namespace), _) | (None, [namespace]) => namespace.clone(),
        (None, _) => {
            return Err(Failure::new(FailureKind::Usage, "namespace", "its namespace is not given")
                .with_object(format!("Order {order}"))
                .with_hint(format!("write <namespace>/{}, or give one -n", order.name)));
        }
    };
    Ok(OrderRef { namespace, name: order.name.clone() })
}

/// The Order that an argument names; a bare name will do where only one of `known` has it.
///
/// # Errors
/// The name alone is of several Orders.
pub fn find_order<'a>(
    order: &OrderArg,
    common: &Common,
    known: impl Iterator<Item = &'a OrderRef>,
) -> Result<OrderRef, Failure> {
    if order.namespace.is_some() || !common.namespace.is_empty() {
        return parse_order(order, common);
    }
    let same = |name: &OrderName| *name == order.name;
    let mut candidates: Vec<&OrderRef> = known.filter(|k| same(&k.name)).collect();
    candidates.sort();
    candidates.dedup();
    match &candidates[..] {
        [one] => Ok((*one).clone()),
        [] => Err(refuse_order(&order.to_string())),
        many => {
            let names: Vec<String> = many.iter().map(ToString::to_string).collect();
            Err(Failure::new(FailureKind::Usage, "namespace", format!("it could be {}", names.join(" or ")))
                .with_object(format!("Order {order}")))
        }
    }
}

/// The Case of the Order that an argument names.
///
/// # Errors
/// As [`find_order`], or there is no such Order.
pub fn find_case<'a>(cases: &'a [Case], order: &OrderArg, common: &Common) -> Result<&'a Case, Failure> {
    let order = find_order(order, common, cases.iter().map(|case| &case.order))?;
    cases.iter().find(|case| case.order == order).ok_or_else(|| refuse_order(&order.to_string()))
}

/// An Order that was asked for is not there.
pub fn refuse_order(name: &str) -> Failure {
    Failure::new(FailureKind::SaysNo, "no-such-order", "there is no Order of this name")
        .with_object(format!("Order {name}"))
        .with_hint("expedite get orders lists them")
}
