//! `withdraw`: a person takes a waiting promotion back.

use super::{Propose, ask_named};
use crate::error::Failure;
use crate::policy::decide::intent::Wish;
use crate::report::Output;
use crate::verbs::flags::Common;
use crate::verbs::setup::Outside;
use crate::verbs::values::OrderArg;
use clap::Args;

/// Take back a promotion that waits
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  expedite withdraw shop/podinfo
  expedite withdraw shop/podinfo --propose withdraw/podinfo    for a pull request")]
pub struct Withdraw {
    /// NAMESPACE/NAME, or NAME
    #[arg(value_name = "ORDER", value_parser = OrderArg::parse)]
    pub order: OrderArg,
    /// Where it is written
    #[command(flatten)]
    pub written: Propose,
}

/// Takes a waiting promotion back.
///
/// # Errors
/// It is refused, or the repository cannot be read or written.
pub fn run_withdraw(
    common: &Common,
    args: &Withdraw,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    ask_named(common, &args.order, &Wish::Withdraw, &args.written, outside, output)
}
