//! `verify-history`: the past, judged again from git and the registry alone.

use crate::cli::{Common, TableFormat, VerifyHistory};
use crate::cmd::one;
use crate::cmd::setup::{Access, Opened, Outside};
use crate::cmd::shown;
use crate::error::{Failure, Kind};
use crate::report::view::counted;
use crate::report::{self, Output, json_v1};
use crate::run::audit::{Wanted, audit};

/// Judges and prints.
///
/// # Errors
/// The settings or the range are wrong, the history or the Kitchen cannot be read, or the clone is too shallow.
pub fn run(
    common: &Common,
    args: &VerifyHistory,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let opened = Opened::new(common, outside, Access::Read)?;
    let setup = opened.setup(Access::Read, None);
    let wanted = Wanted { range: args.range.as_deref(), offline: common.offline };
    let found = audit(&setup, wanted, &mut |text| output.progress(text)).map_err(one)?;
    shown::details(&opened, output);
    output.result(&match args.output {
        TableFormat::Table => report::audit::text(&found, false),
        TableFormat::Wide => report::audit::text(&found, true),
        TableFormat::Json => json_v1::audit::audit(&found, args.range.as_deref()),
    });
    let what = format!("the history of {}", opened.place());
    if !found.unread.is_empty() {
        let cause = format!("{} could not be read", counted(found.unread.len(), "thing", "things"));
        output.error(
            &Failure::new(Kind::Unread, "history-unread", cause)
                .of(what.clone())
                .hint("run it again when the registry answers; what was read is judged"),
        );
    }
    if !found.findings.is_empty() {
        let cause = counted(found.findings.len(), "finding", "findings");
        let mut failure = Failure::new(Kind::SaysNo, "history-findings", cause).of(what);
        if !found.no_records && found.findings.iter().all(|f| f.code == "no-record") {
            failure = failure.hint("if this repository keeps no records on purpose: --no-records");
        }
        output.error(&failure);
    }
    Ok(())
}
