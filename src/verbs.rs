//! The command line: a verb is one file or folder here, with its flags and its help, what it does, and its part of
//! [`crate::run`]. Flags → settings → `run` → report; no decision is made here.
//!
//! The modules below are in order: one may use those above it, never one below (`tests/layers.rs`). First what
//! verbs share, then the verbs, one that another uses above it.

pub mod values;
pub mod formats;
pub mod flags;
pub mod setup;
mod folder;
pub mod diff;
mod shown;
mod approve;
mod completions;
mod crds;
mod explain;
mod get;
mod init;
mod intent;
mod man;
mod open;
mod plan;
mod render;
mod run;
mod schema;
mod snapshot;
mod test;
pub mod verify;
mod prepare;
mod verify_history;

use crate::error::Failure;
use crate::report::Output;
use clap::{CommandFactory as _, Parser, Subcommand};
use flags::Common;
use intent::{promote, rollback, withdraw};
use setup::{Outside, wrap_failure};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "expedite",
    version,
    about = "Promotes rendered manifests through environments, by evidence",
    long_about = "Reads Orders and Preparations, judges each promotion by its gates and its signed evidence, and \
                  commits Argo CD Applications and Servings to a GitOps repository.",
    after_help = STATUSES,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// Flags of every verb.
    #[command(flatten)]
    pub common: Common,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

const STATUSES: &str = "\
Exit status:
  0   done (a held promotion is no error)
  1   something failed; the summary says how many of how many
  2   plan --detailed-exitcode: there are changes
  3   stopped by the removal guard
  4   the repository kept moving
  5   an asked check says no (--check, verify, verify-history, a refused promote)
  64  the command line is wrong";

/// What to do. A variant takes its help from its flags: a docstring here would replace it.
#[allow(missing_docs)]
#[derive(Debug, Subcommand)]
pub enum Verb {
    Init(init::Init),
    Plan(plan::PlanFlags),
    Run(run::RunFlags),
    Render(render::RenderFlags),
    Promote(promote::Promote),
    Withdraw(withdraw::Withdraw),
    Rollback(rollback::Rollback),
    Get(get::Get),
    Explain(explain::Explain),
    Open(open::OpenFlags),
    Approve(approve::Approve),
    Prepare(prepare::Prepare),
    Diff(diff::Diff),
    Verify(verify::Verify),
    Snapshot(snapshot::SnapshotFlags),
    VerifyHistory(verify_history::VerifyHistory),
    Completions(completions::Completions),
    Man(man::Man),
    Schema(schema::Schema),
    Crds(crds::Crds),
    Test(test::Test),
}

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
        Verb::Promote(args) => promote::run_promote(common, args, outside, output).map(report_unchanged),
        Verb::Withdraw(args) => withdraw::run_withdraw(common, args, outside, output).map(report_unchanged),
        Verb::Rollback(args) => rollback::run_rollback(common, args, outside, output).map(report_unchanged),
        Verb::Get(args) => get::run_get(common, args, outside, output).map(report_unchanged),
        Verb::Explain(args) => explain::run_explain(common, args, outside, output).map(report_unchanged),
        Verb::Open(args) => open::run_open(common, args, outside, output).map(report_unchanged),
        Verb::Approve(args) => approve::run_approve(common, args, outside, output).map(report_unchanged),
        Verb::Prepare(args) => prepare::run_prepare(common, args, outside, output).map(report_unchanged),
        Verb::Verify(args) => verify::run_verify(common, args, outside, output).map(report_unchanged),
        Verb::VerifyHistory(args) => {
            verify_history::run_verify_history(common, args, outside, output).map(report_unchanged)
        }
        Verb::Test(args) => test::run_test(args, output).map(report_unchanged),
        Verb::Completions(args) => completions::run_completions(args, Cli::command(), output)
            .map(report_unchanged)
            .map_err(wrap_failure),
        Verb::Man(args) => {
            man::run_man(args, Cli::command(), output).map(report_unchanged).map_err(wrap_failure)
        }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_of_every_verb_stand_before_or_after_it() {
        let parse = |text: &str| Cli::try_parse_from(text.split(' ')).unwrap().common;
        let before = parse("expedite -n shop,dev --only shop/a -l team=web --shard 1/2 --from a:b init");
        let after = parse("expedite init -n shop,dev --only shop/a -l team=web --shard 1/2 --from a:b");
        assert_eq!(format!("{before:?}"), format!("{after:?}"));
        assert_eq!(before.namespace.len(), 2);
        assert_eq!(before.from, ["a", "b"]);
    }
}
