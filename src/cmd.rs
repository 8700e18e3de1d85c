//! One file per verb: flags → settings → `run` → report. No decision is made here.

mod approve;
mod base;
mod comment;
mod completions;
mod crds;
mod diff;
mod explain;
mod get;
mod init;
mod key;
mod intent;
mod man;
mod open;
mod plan;
mod prepare;
mod rehearse;
mod render;
mod run;
mod schema;
pub mod setup;
mod shown;
mod verify;
mod snapshot;
mod verify_history;

use crate::cli::{Cli, Verb};
use crate::error::Failure;
use crate::report::Output;
use setup::Outside;

/// Does what the command line says; the exit status follows from what `output` was told.
pub fn dispatch_command(cli: &Cli, outside: &Outside, output: &mut Output) -> u8 {
    let common = &cli.common;
    let done: Result<bool, Vec<Failure>> = match &cli.verb {
        Verb::Init(args) => {
            init::run_init(common, args, outside, output).map(report_unchanged).map_err(wrap_failure)
        }
        Verb::Plan(args) => plan::run_plan(common, args, outside, output),
        Verb::Run(args) => run::execute_run(common, args, outside, output).map(report_unchanged),
        Verb::Render(args) => render::run_render(common, args, outside, output).map(report_unchanged),
        Verb::Promote(args) => intent::run_promote(common, args, outside, output).map(report_unchanged),
        Verb::Withdraw(args) => intent::run_withdraw(common, args, outside, output).map(report_unchanged),
        Verb::Rollback(args) => intent::run_rollback(common, args, outside, output).map(report_unchanged),
        Verb::Get(args) => get::run_get(common, args, outside, output).map(report_unchanged),
        Verb::Explain(args) => explain::run_explain(common, args, outside, output).map(report_unchanged),
        Verb::Open(args) => open::run_open(common, args, outside, output).map(report_unchanged),
        Verb::Approve(args) => approve::run_approve(common, args, outside, output).map(report_unchanged),
        Verb::Prepare(args) => prepare::run_prepare(common, args, outside, output).map(report_unchanged),
        Verb::Verify(args) => verify::run_verify(common, args, outside, output).map(report_unchanged),
        Verb::VerifyHistory(args) => {
            verify_history::run_verify_history(common, args, outside, output).map(report_unchanged)
        }
        Verb::Test(args) => rehearse::run_test(args, output).map(report_unchanged),
        Verb::Completions(args) => {
            completions::run_completions(args, output).map(report_unchanged).map_err(wrap_failure)
        }
        Verb::Man(args) => man::run_man(args, output).map(report_unchanged).map_err(wrap_failure),
        Verb::Schema(args) => schema::run_schema(args, output).map(report_unchanged).map_err(wrap_failure),
        Verb::Crds(args) => crds::run_crds(args, output).map(report_unchanged).map_err(wrap_failure),
        Verb::Snapshot(args) => snapshot::run_snapshot(common, args, outside, output).map(report_unchanged),
        Verb::Diff(args) => diff::run_diff(common, args, outside, output).map(report_unchanged),
    };
    let changes = match done {
        Ok(changes) => changes,
        Err(failures) => {
            for failure in &failures {
                output.report_error(failure);
            }
            false
        }
    };
    output.decide_status(changes)
}

/// Only `plan --detailed-exitcode` tells of changes.
fn report_unchanged((): ()) -> bool {
    false
}

fn wrap_failure(failure: Failure) -> Vec<Failure> {
    vec![failure]
}
