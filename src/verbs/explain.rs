//! `explain`: every gate of an Order's candidate.

use crate::error::Failure;
use crate::report::{Output, explain, json_v1};
use crate::run::{self, Known};
use crate::verbs::flags::Common;
use crate::verbs::formats::TableFormat;
use crate::verbs::setup;
use crate::verbs::setup::{Access, Opened, Outside, wrap_failure};
use crate::verbs::shown;
use crate::verbs::shown::Shown;
use crate::verbs::values::OrderArg;
use clap::Args;

/// Show every gate of an Order's candidate: what it found, and who has to do what
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  expedite explain shop/podinfo")]
pub struct Explain {
    /// NAMESPACE/NAME, or NAME
    #[arg(value_name = "ORDER", value_parser = OrderArg::parse)]
    pub order: OrderArg,
    /// How it is printed
    #[arg(short, long, value_enum, default_value_t = TableFormat::Table)]
    pub output: TableFormat,
}

/// Decides everything, and prints what concerns one Order.
///
/// # Errors
/// The settings are wrong, the repository cannot be read, or there is no such Order.
pub fn run_explain(
    common: &Common,
    args: &Explain,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let opened = Opened::new(common, outside, Access::Read)?;
    let mut setup = opened.make_setup(Access::Read, None);
    setup.explained = Some(args.order.name.clone());
    let decided = run::decide_run(&setup, &mut Known::default(), &mut |text| output.show_progress(text))
        .map_err(wrap_failure)?;
    shown::tell_details(&opened, output);
    let shown = Shown::new(decided, None);
    let view = shown.make_view();
    let order = setup::find_order(&args.order, common, view.plan.rows.iter().map(|row| &row.order))
        .map_err(wrap_failure)?;
    let Some(row) = view.plan.rows.iter().find(|row| row.order == order) else {
        return Err(wrap_failure(setup::refuse_order(&order.to_string())));
    };
    let more = shown.explain_row(row);
    output.write_result(&match args.output {
        TableFormat::Table | TableFormat::Wide => explain::format_explanation(&view, row, &more),
        TableFormat::Json => json_v1::explain::format_explanation(&view, row, &more),
    });
    for failure in view.plan.problems.iter().chain(&row.errors) {
        output.report_error(failure);
    }
    Ok(())
}
