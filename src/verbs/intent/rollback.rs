//! `rollback`: a person asks for what was healthy before, of one Order or of a fleet.

use super::{Propose, ask_named, ask_wishes};
use crate::error::{Failure, FailureKind};
use crate::model::id::{EnvironmentName, OrderRef, PreparationName};
use crate::policy::decide::intent::Wish;
use crate::report::Output;
use crate::run;
use crate::verbs::flags::Common;
use crate::verbs::setup::{Access, Opened, Outside, wrap_failure};
use crate::verbs::values::{OrderArg, parse_preparation_arg};
use clap::Args;

/// Go back to what was healthy before; nothing is rendered again
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  expedite rollback shop/podinfo                       the newest other one that was healthy here
  expedite rollback shop/podinfo podinfo-5f3a9d1c0b7e
  expedite rollback -l team=web                        a fleet, in one commit
  expedite rollback --environment production
  expedite rollback --environment production --propose rollback/production    for a pull request")]
pub struct Rollback {
    /// NAMESPACE/NAME, or NAME
    #[arg(value_name = "ORDER", value_parser = OrderArg::parse)]
    pub order: Option<OrderArg>,
    /// To this Preparation [default: the newest other one that was healthy here]
    #[arg(value_name = "PREPARATION", value_parser = parse_preparation_arg)]
    pub preparation: Option<PreparationName>,
    /// Every Order of this Environment
    #[arg(long, value_name = "NAME", value_parser = EnvironmentName::parse, conflicts_with = "order")]
    pub environment: Option<EnvironmentName>,
    /// Where it is written
    #[command(flatten)]
    pub written: Propose,
}

/// Goes back, one Order or a fleet in one commit.
///
/// # Errors
/// One of them is refused (then nothing is written), or the repository cannot be read or written.
pub fn run_rollback(
    common: &Common,
    args: &Rollback,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let wish = Wish::Rollback(args.preparation.clone());
    if let Some(order) = &args.order {
        return ask_named(common, order, &wish, &args.written, outside, output);
    }
    if common.selector.is_none() && args.environment.is_none() {
        return Err(wrap_failure(
            Failure::new(FailureKind::Usage, "no-order", "it needs an Order, -l SELECTOR or --environment")
                .with_object("rollback")
                .with_hint("expedite rollback shop/podinfo"),
        ));
    }
    let opened = Opened::new(common, outside, Access::Write)?;
    let setup = opened.make_setup(Access::Write, None);
    let read = run::read_inputs(&setup, &mut |text| output.show_progress(text)).map_err(wrap_failure)?;
    let orders: Vec<(OrderRef, Wish)> = read
        .world
        .orders
        .iter()
        .filter(|(order, loaded)| {
            opened.scope().admits_order(order, Some(&loaded.object.metadata.labels))
                && (args.environment.is_none() || loaded.object.spec.environment == args.environment)
        })
        .map(|(order, _)| (order.clone(), wish.clone()))
        .collect();
    if orders.is_empty() {
        return Err(wrap_failure(
            Failure::new(FailureKind::SaysNo, "no-such-order", "no Order is chosen by these flags")
                .with_object("rollback")
                .with_hint("expedite get orders lists them"),
        ));
    }
    ask_wishes(&orders, &args.written, &opened, &setup, output)
}
