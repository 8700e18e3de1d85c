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
pub fn dispatch(cli: &Cli, outside: &Outside, output: &mut Output) -> u8 {
    let common = &cli.common;
    let done: Result<bool, Vec<Failure>> = match &cli.verb {
        Verb::Init(args) => init::run(common, args, outside, output).map(unchanged).map_err(one),
        Verb::Plan(args) => plan::run(common, args, outside, output),
        Verb::Run(args) => run::run(common, args, outside, output).map(unchanged),
        Verb::Render(args) => render::run(common, args, outside, output).map(unchanged),
        Verb::Promote(args) => intent::promote(common, args, outside, output).map(unchanged),
        Verb::Withdraw(args) => intent::withdraw(common, args, outside, output).map(unchanged),
        Verb::Rollback(args) => intent::rollback(common, args, outside, output).map(unchanged),
        Verb::Get(args) => get::run(common, args, outside, output).map(unchanged),
        Verb::Explain(args) => explain::run(common, args, outside, output).map(unchanged),
        Verb::Open(args) => open::run(common, args, outside, output).map(unchanged),
        Verb::Approve(args) => approve::run(common, args, outside, output).map(unchanged),
        Verb::Prepare(args) => prepare::run(common, args, outside, output).map(unchanged),
        Verb::Verify(args) => verify::run(common, args, outside, output).map(unchanged),
        Verb::VerifyHistory(args) => verify_history::run(common, args, outside, output).map(unchanged),
        Verb::Test(args) => rehearse::run(args, output).map(unchanged),
        Verb::Completions(args) => completions::run(args, output).map(unchanged).map_err(one),
        Verb::Man(args) => man::run(args, output).map(unchanged).map_err(one),
        Verb::Schema(args) => schema::run(args, output).map(unchanged).map_err(one),
        Verb::Crds(args) => crds::run(args, output).map(unchanged).map_err(one),
        Verb::Snapshot(args) => snapshot::run(common, args, outside, output).map(unchanged),
        Verb::Diff(args) => diff::run(common, args, outside, output).map(unchanged),
    };
    let changes = match done {
        Ok(changes) => changes,
        Err(failures) => {
            for failure in &failures {
                output.error(failure);
            }
            false
        }
    };
    output.status(changes)
}

/// Only `plan --detailed-exitcode` tells of changes.
fn unchanged((): ()) -> bool {
    false
}

fn one(failure: Failure) -> Vec<Failure> {
    vec![failure]
}
