//! `open`: what somebody can do something about.

use crate::error::Failure;
use crate::policy::decide::open::collect_open;
use crate::report::{self, Output, json_v1, names};
use crate::run::{self, Known};
use crate::verbs::flags::Common;
use crate::verbs::formats::ListFormat;
use crate::verbs::setup::{Access, Opened, Outside, wrap_failure};
use crate::verbs::shown;
use clap::Args;
use std::collections::BTreeSet;

/// List promotions that wait for a person: review, then promote
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  expedite open                                        what anybody can do something about
  expedite open --as ann                               what Ann can: Review, then Promote
  expedite open -n shop -o json
  expedite open --as ann -o name | xargs -n1 expedite explain")]
pub struct OpenFlags {
    /// As seen by this person: username or subject of a Kitchen approver [default: anybody]
    #[arg(long = "as", value_name = "USER")]
    pub viewer: Option<String>,
    /// How it is printed
    #[arg(short, long, value_enum, default_value_t = ListFormat::Table)]
    pub output: ListFormat,
}

/// Decides everything, and lists the promotions in the scope that wait for a person.
///
/// # Errors
/// The settings are wrong, or the repository cannot be read.
pub fn run_open(
    common: &Common,
    args: &OpenFlags,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let opened = Opened::new(common, outside, Access::Read)?;
    let setup = opened.make_setup(Access::Read, None);
    let decided = run::decide_run(&setup, &mut Known::default(), &mut |text| output.show_progress(text))
        .map_err(wrap_failure)?;
    shown::tell_details(&opened, output);
    let viewer = args.viewer.as_deref();
    let mut items = collect_open(&decided.cases, &decided.facts, &decided.context, viewer);
    let in_scope = |order: &_| decided.plan.rows.iter().any(|row| row.order == *order);
    items.retain(|item| in_scope(&item.order));
    output.write_result(&match args.output {
        ListFormat::Table | ListFormat::Wide => report::open::format_open_promotions(&items),
        ListFormat::Json => json_v1::open::format_open_promotions(&items, viewer, decided.plan.at),
        ListFormat::Name => {
            // Under Manual an Order may have a candidate and a newer one: one line all the same.
            let orders: BTreeSet<_> = items.iter().map(|item| &item.order).collect();
            names::format_lines(names::ORDER, orders.into_iter(), &common.namespace)
        }
    });
    for failure in &decided.plan.problems {
        output.report_error(failure);
    }
    Ok(())
}
