//! `run`: decide, render, commit, push; then say what was done and what runs.

use crate::cli::{Common, Plan, PlanFormat, Run, TableFormat};
use crate::cmd::setup::{Access, Opened, Outside};
use crate::cmd::shown::{self, Shown};
use crate::cmd::{get, one, plan};
use crate::error::{Failure, Kind};
use crate::notify::Outcome;
use crate::report::view::{Written, counted};
use crate::report::{self, Output, json_v1};
use crate::run::{self, Decided, Ran, Writing};

/// Does it.
///
/// # Errors
/// The settings are wrong, the repository cannot be read or written, or something stops the whole run.
pub fn run(common: &Common, args: &Run, outside: &Outside, output: &mut Output) -> Result<(), Vec<Failure>> {
    if args.dry_run {
        let format = match args.output {
            TableFormat::Table => PlanFormat::Table,
            TableFormat::Wide => PlanFormat::Wide,
            TableFormat::Json => PlanFormat::Json,
        };
        if args.write_status {
            // What a run would refuse, its dry run refuses.
            Opened::new(common, outside, Access::Read)?.tellers()?;
        }
        let check = args.check;
        let args = Plan {
            output: format,
            base: None,
            expect: None,
            comment: None,
            detailed_exitcode: false,
            allow_removals: args.allow_removals,
        };
        return plan::show(common, &args, check, outside, output).map(|_| ());
    }
    let mut opened = Opened::new(common, outside, Access::Write)?;
    let tellers = if args.write_status { opened.tellers()? } else { Vec::new() };
    opened.read_signer(common, outside).map_err(one)?;
    let setup = opened.setup(Access::Write, args.allow_removals);
    let identity = opened.identity().map_err(one)?;
    let writing =
        Writing { identity: &identity, tries: opened.settings.limits.max_tries, check: args.check, tellers };
    let ran = run::run(&setup, &writing, &mut |text| output.progress(text));
    shown::details(&opened, output);
    match ran {
        Ok(Ran { decided, commit, notified }) => {
            let written = match commit {
                Some(id) => Written::Commit { id, place: opened.place() },
                None => Written::Nothing,
            };
            print(decided, written, args.output, &opened, output);
            notified.iter().for_each(|outcome| told(outcome, output));
            Ok(())
        }
        Err((failure, None)) => Err(one(failure)),
        Err((failure, Some(decided))) => {
            // The guard's own failure is among those that the report tells.
            let told = failure.kind == Kind::Guard && decided.plan.guard.is_some();
            print(*decided, Written::Stopped, args.output, &opened, output);
            if told { Ok(()) } else { Err(one(failure)) }
        }
    }
}

/// What clusters were told; failures are among those of the plan.
fn told(outcome: &Outcome, output: &mut Output) {
    for line in &outcome.lines {
        output.detail(&format!("{}: {line}", outcome.cluster));
    }
    let statuses = counted(outcome.statuses, "status", "statuses");
    let events = counted(outcome.events, "Event", "Events");
    let wrote: Vec<String> = [(outcome.statuses, statuses), (outcome.events, events)]
        .into_iter()
        .filter_map(|(count, text)| (count > 0).then_some(text))
        .collect();
    if !wrote.is_empty() {
        output.note(&format!("{}: wrote {}", outcome.cluster, wrote.join(" and ")));
    }
}

fn print(decided: Decided, written: Written, format: TableFormat, opened: &Opened, output: &mut Output) {
    let mut shown = Shown::new(decided, Some(written));
    if output.style().summary.is_some() {
        shown.look_inside(&opened.setup(Access::Read, None));
    }
    let view = shown.view();
    let servings = || {
        let lines = match view.written {
            Some(Written::Stopped) => report::get::servings_of(view.before),
            Some(Written::Nothing | Written::Commit { .. }) | None => {
                report::get::servings_after(view.before, shown.plan())
            }
        };
        let wide = format == TableFormat::Wide;
        get::servings_text(lines, opened, false, wide)
    };
    output.result(&match format {
        TableFormat::Table | TableFormat::Wide => report::plan::run_text(&view, &servings()),
        TableFormat::Json => json_v1::plan(&view),
    });
    shown.tell(output);
}
