//! `test`: a team's own cases for its gates.

mod rehearsal;

use crate::error::{Failure, FailureKind};
use crate::evidence::gather;
use crate::report::{Output, escape};
use crate::verbs::setup::wrap_failure;
use clap::Args;
use rehearsal::rehearse_folder;
use std::path::PathBuf;

/// Play a team's own cases for its gates: objects, instant, evidence, expected verdicts
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  expedite test ./policy-tests                         every folder with a case.yaml, however deep
  expedite test ./policy-tests/freeze")]
pub struct Test {
    /// Folder of cases
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Plays every case and says which differ.
///
/// # Errors
/// There is no case, or one cannot be read.
pub fn run_test(args: &Test, output: &mut Output) -> Result<(), Vec<Failure>> {
    let runtime = gather::make_runtime().map_err(wrap_failure)?;
    let all = rehearse_folder(&args.folder, &runtime)?;
    let mut text = String::new();
    for case in &all {
        let word = if case.differs.is_empty() { "ok  " } else { "FAIL" };
        let assumed = if case.assumed { " (evidence taken as proven)" } else { "" };
        text.push_str(&format!("{word} {}{assumed}\n", escape::escape_line(&case.name)));
        for line in &case.differs {
            text.push_str(&format!("       {}\n", escape::escape_line(line)));
        }
    }
    let failed = all.iter().filter(|c| !c.differs.is_empty()).count();
    text.push_str(&format!("{} passed, {failed} failed\n", all.len() - failed));
    output.write_result(&text);
    if failed > 0 {
        output.count_kind(FailureKind::SaysNo);
    }
    Ok(())
}
