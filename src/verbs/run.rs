//! `run`: decide, render, commit, push; then say what was done and what runs.

use crate::error::{Failure, FailureKind};
use crate::notify::TellOutcome;
use crate::report::view::{Written, format_count};
use crate::report::{self, Output, json_v1};
use crate::run::{self, Decided, Ran, Writing};
use crate::verbs::flags::Common;
use crate::verbs::formats::{PlanFormat, TableFormat};
use crate::verbs::get;
use crate::verbs::plan;
use crate::verbs::plan::PlanFlags;
use crate::verbs::setup::{Access, Opened, Outside, wrap_failure};
use crate::verbs::shown;
use crate::verbs::shown::Shown;
use clap::Args;

/// Decide, render, commit and push; attach the signed records to the artifacts
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  expedite run --config fixtures/shop/expedite.yaml
  expedite run --from ./objects --repo ../gitops.git --key job.key
  expedite run --check                                 say no (5) to files that were edited by hand, and show how
  expedite run --check --dry-run                       the same for a pull request: nothing is written
  expedite run --from-cluster --write-status           kubectl get servings shows what is in git
  expedite run --allow-removals 12                     once, after reading the list that stopped it")]
pub struct RunFlags {
    /// How it is printed
    #[arg(short, long, value_enum, default_value_t = TableFormat::Table)]
    pub output: TableFormat,
    /// Write nothing: the same as plan
    #[arg(long)]
    pub dry_run: bool,
    /// Exit with 5 when files of ours were edited or removed by hand, or others stand in our folders
    #[arg(long)]
    pub check: bool,
    /// Remove up to N Applications, once
    #[arg(long, value_name = "N")]
    pub allow_removals: Option<usize>,
    /// After the push, write the status of Servings, and Events, to the clusters that Orders come from
    #[arg(long)]
    pub write_status: bool,
}

/// Does it.
///
/// # Errors
/// The settings are wrong, the repository cannot be read or written, or something stops the whole run.
pub fn execute_run(
    common: &Common,
    args: &RunFlags,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    if args.dry_run {
        let format = match args.output {
            TableFormat::Table => PlanFormat::Table,
            TableFormat::Wide => PlanFormat::Wide,
            TableFormat::Json => PlanFormat::Json,
        };
        if args.write_status {
            // What a run would refuse, its dry run refuses.
            Opened::new(common, outside, Access::Read)?.make_tellers()?;
        }
        let check = args.check;
        let args = PlanFlags {
            output: format,
            base: None,
            expect: None,
            comment: None,
            detailed_exitcode: false,
            allow_removals: args.allow_removals,
        };
        return plan::show_plan(common, &args, check, outside, output).map(|_| ());
    }
    let mut opened = Opened::new(common, outside, Access::Write)?;
    let tellers = if args.write_status { opened.make_tellers()? } else { Vec::new() };
    opened.read_signer(common, outside).map_err(wrap_failure)?;
    let setup = opened.make_setup(Access::Write, args.allow_removals);
    let identity = opened.resolve_identity().map_err(wrap_failure)?;
    let writing =
        Writing { identity: &identity, tries: opened.settings.limits.max_tries, check: args.check, tellers };
    let ran = run::perform_run(&setup, &writing, &mut |text| output.show_progress(text));
    shown::tell_details(&opened, output);
    match ran {
        Ok(Ran { decided, commit, notified }) => {
            let written = match commit {
                Some(id) => Written::Commit { id, place: opened.describe_place() },
                None => Written::Nothing,
            };
            print_decided(decided, written, args.output, &opened, output);
            notified.iter().for_each(|outcome| tell_outcome(outcome, output));
            Ok(())
        }
        Err((failure, None)) => Err(wrap_failure(failure)),
        Err((failure, Some(decided))) => {
            // The guard's own failure is among those that the report tells.
            let told = failure.kind == FailureKind::Guard && decided.plan.guard.is_some();
            print_decided(*decided, Written::Stopped, args.output, &opened, output);
            if told { Ok(()) } else { Err(wrap_failure(failure)) }
        }
    }
}

/// What clusters were told; failures are among those of the plan.
fn tell_outcome(outcome: &TellOutcome, output: &mut Output) {
    for line in &outcome.lines {
        output.write_detail(&format!("{}: {line}", outcome.cluster));
    }
    let statuses = format_count(outcome.statuses, "status", "statuses");
    let events = format_count(outcome.events, "Event", "Events");
    let wrote: Vec<String> = [(outcome.statuses, statuses), (outcome.events, events)]
        .into_iter()
        .filter_map(|(count, text)| (count > 0).then_some(text))
        .collect();
    if !wrote.is_empty() {
        output.write_note(&format!("{}: wrote {}", outcome.cluster, wrote.join(" and ")));
    }
}

fn print_decided(
    decided: Decided,
    written: Written,
    format: TableFormat,
    opened: &Opened,
    output: &mut Output,
) {
    let mut shown = Shown::new(decided, Some(written));
    if output.style().summary.is_some() {
        shown.look_inside(&opened.make_setup(Access::Read, None));
    }
    let view = shown.make_view();
    let servings = || {
        let lines = match view.written {
            Some(Written::Stopped) => report::get::collect_servings(view.before),
            Some(Written::Nothing | Written::Commit { .. }) | None => {
                report::get::collect_servings_after(view.before, shown.plan())
            }
        };
        let wide = format == TableFormat::Wide;
        get::format_servings(lines, opened, false, wide)
    };
    output.write_result(&match format {
        TableFormat::Table | TableFormat::Wide => report::plan::format_run(&view, &servings()),
        TableFormat::Json => json_v1::format_plan(&view),
    });
    shown.tell_plan(output);
}
