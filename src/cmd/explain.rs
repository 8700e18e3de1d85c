//! `explain`: every gate of an Order's candidate.

use crate::cli::{Common, Explain, TableFormat};
use crate::cmd::one;
use crate::cmd::setup::{self, Access, Opened, Outside};
use crate::cmd::shown::{self, Shown};
use crate::error::Failure;
use crate::report::{Output, explain, json_v1};
use crate::run::{self, Known};

/// Decides everything, and prints what concerns one Order.
///
/// # Errors
/// The settings are wrong, the repository cannot be read, or there is no such Order.
pub fn run(
    common: &Common,
    args: &Explain,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let opened = Opened::new(common, outside, Access::Read)?;
    let mut setup = opened.setup(Access::Read, None);
    setup.explained = Some(args.order.name.clone());
    let decided =
        run::decide(&setup, &mut Known::default(), &mut |text| output.progress(text)).map_err(one)?;
    shown::details(&opened, output);
    let shown = Shown::new(decided, None);
    let view = shown.view();
    let order =
        setup::found(&args.order, common, view.plan.rows.iter().map(|row| &row.order)).map_err(one)?;
    let Some(row) = view.plan.rows.iter().find(|row| row.order == order) else {
        return Err(one(setup::no_such_order(&order.to_string())));
    };
    let more = shown.explained(row);
    output.result(&match args.output {
        TableFormat::Table | TableFormat::Wide => explain::text(&view, row, &more),
        TableFormat::Json => json_v1::explain::explanation(&view, row, &more),
    });
    for failure in view.plan.problems.iter().chain(&row.errors) {
        output.error(failure);
    }
    Ok(())
}
