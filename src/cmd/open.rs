//! `open`: what somebody can do something about.

use crate::cli::{Common, ListFormat, Open};
use crate::cmd::one;
use crate::cmd::setup::{Access, Opened, Outside};
use crate::cmd::shown;
use crate::error::Failure;
use crate::policy::decide::open::open;
use crate::report::{self, Output, json_v1, names};
use crate::run::{self, Known};
use std::collections::BTreeSet;

/// Decides everything, and lists the promotions in the scope that wait for a person.
///
/// # Errors
/// The settings are wrong, or the repository cannot be read.
pub fn run(common: &Common, args: &Open, outside: &Outside, output: &mut Output) -> Result<(), Vec<Failure>> {
    let opened = Opened::new(common, outside, Access::Read)?;
    let setup = opened.setup(Access::Read, None);
    let decided =
        run::decide(&setup, &mut Known::default(), &mut |text| output.progress(text)).map_err(one)?;
    shown::details(&opened, output);
    let viewer = args.viewer.as_deref();
    let mut items = open(&decided.cases, &decided.facts, &decided.context, viewer);
    let in_scope = |order: &_| decided.plan.rows.iter().any(|row| row.order == *order);
    items.retain(|item| in_scope(&item.order));
    output.result(&match args.output {
        ListFormat::Table | ListFormat::Wide => report::open::text(&items),
        ListFormat::Json => json_v1::open::open(&items, viewer, decided.plan.at),
        ListFormat::Name => {
            // Under Manual an Order may have a candidate and a newer one: one line all the same.
            let orders: BTreeSet<_> = items.iter().map(|item| &item.order).collect();
            names::lines(names::ORDER, orders.into_iter(), &common.namespace)
        }
    });
    for failure in &decided.plan.problems {
        output.error(failure);
    }
    Ok(())
}
