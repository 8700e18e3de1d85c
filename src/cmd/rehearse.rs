//! `test`: a team's own cases for its gates.

use crate::cli::Test;
use crate::error::{Failure, Kind};
use crate::evidence::gather;
use crate::report::{Output, escape};
use crate::run::rehearse::rehearse;

/// Plays every case and says which differ.
///
/// # Errors
/// There is no case, or one cannot be read.
pub fn run(args: &Test, output: &mut Output) -> Result<(), Vec<Failure>> {
    let runtime = gather::runtime().map_err(super::one)?;
    let all = rehearse(&args.folder, &runtime)?;
    let mut text = String::new();
    for case in &all {
        let word = if case.differs.is_empty() { "ok  " } else { "FAIL" };
        let assumed = if case.assumed { " (evidence taken as proven)" } else { "" };
        text.push_str(&format!("{word} {}{assumed}\n", escape::line(&case.name)));
        for line in &case.differs {
            text.push_str(&format!("       {}\n", escape::line(line)));
        }
    }
    let failed = all.iter().filter(|c| !c.differs.is_empty()).count();
    text.push_str(&format!("{} passed, {failed} failed\n", all.len() - failed));
    output.result(&text);
    if failed > 0 {
        output.count(Kind::SaysNo);
    }
    Ok(())
}
