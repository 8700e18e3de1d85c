//! `completions`: what the shell needs to complete our command line, made from the same types that parse it.

use crate::cli::{Cli, Completions};
use crate::error::Failure;
use crate::report::Output;
use clap::CommandFactory as _;

/// Prints the script.
///
/// # Errors
/// None today; verbs share one shape.
pub fn run_completions(args: &Completions, output: &mut Output) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "expedite", &mut script);
    output.write_result(&String::from_utf8_lossy(&script));
    Ok(())
}
