//! `verify-history`: the past, judged again from git and the registry alone.

use crate::cli::{Common, TableFormat, VerifyHistory};
use crate::cmd::setup::{Access, Opened, Outside};
use crate::cmd::shown;
use crate::cmd::wrap_failure;
use crate::error::{Failure, FailureKind};
use crate::report::view::format_count;
use crate::report::{self, Output, json_v1};
use crate::run::audit::{Wanted, audit_history};

/// Judges and prints.
///
/// # Errors
/// The settings or the range are wrong, the history or the Kitchen cannot be read, or the clone is too shallow.
pub fn run_verify_history(
    common: &Common,
    args: &VerifyHistory,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let opened = Opened::new(common, outside, Access::Read)?;
    let setup = opened.make_setup(Access::Read, None);
    let wanted = Wanted { range: args.range.as_deref(), offline: common.offline };
    let found =
        audit_history(&setup, wanted, &mut |text| output.show_progress(text)).map_err(wrap_failure)?;
    shown::tell_details(&opened, output);
    output.write_result(&match args.output {
        TableFormat::Table => report::audit::format_audit(&found, false),
        TableFormat::Wide => report::audit::format_audit(&found, true),
        TableFormat::Json => json_v1::audit::format_audit(&found, args.range.as_deref()),
    });
    let what = format!("the history of {}", opened.describe_place());
    if !found.unread.is_empty() {
        let cause = format!("{} could not be read", format_count(found.unread.len(), "thing", "things"));
        output.report_error(
            &Failure::new(FailureKind::Unread, "history-unread", cause)
                .with_object(what.clone())
                .with_hint("run it again when the registry answers; what was read is judged"),
        );
    }
    if !found.findings.is_empty() {
        let cause = format_count(found.findings.len(), "finding", "findings");
        let mut failure = Failure::new(FailureKind::SaysNo, "history-findings", cause).with_object(what);
        if !found.no_records && found.findings.iter().all(|f| f.code == "no-record") {
            failure = failure.with_hint("if this repository keeps no records on purpose: --no-records");
        }
        output.report_error(&failure);
    }
    Ok(())
}
