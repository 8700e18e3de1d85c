//! `promote`: a person asks for a Preparation.

use super::{Propose, ask_named};
use crate::error::Failure;
use crate::model::id::PreparationName;
use crate::policy::decide::intent::Wish;
use crate::report::Output;
use crate::verbs::flags::Common;
use crate::verbs::setup::Outside;
use crate::verbs::values::{OrderArg, parse_preparation_arg};
use clap::Args;

/// Ask for a Preparation of a Manual Order
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  expedite promote shop/podinfo podinfo-d7ce0c46a686
  expedite promote podinfo podinfo-d7ce0c46a686 -n shop
  expedite promote shop/podinfo podinfo-d7ce0c46a686 --propose promote/podinfo    for a pull request")]
pub struct Promote {
    /// NAMESPACE/NAME, or NAME
    #[arg(value_name = "ORDER", value_parser = OrderArg::parse)]
    pub order: OrderArg,
    /// The Preparation
    #[arg(value_name = "PREPARATION", value_parser = parse_preparation_arg)]
    pub preparation: PreparationName,
    /// Where it is written
    #[command(flatten)]
    pub written: Propose,
}

/// Asks for a Preparation.
///
/// # Errors
/// It is refused, or the repository cannot be read or written.
pub fn run_promote(
    common: &Common,
    args: &Promote,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let wish = Wish::Promote(args.preparation.clone());
    ask_named(common, &args.order, &wish, &args.written, outside, output)
}
