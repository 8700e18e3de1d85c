//! `verify-history`: the past, judged again from git and the registry alone.

mod audit;

use crate::error::{Failure, FailureKind};
use crate::report::view::format_count;
use crate::report::{self, Output, json_v1};
use crate::verbs::flags::Common;
use crate::verbs::formats::TableFormat;
use crate::verbs::setup::{Access, Opened, Outside, wrap_failure};
use crate::verbs::shown;
use audit::{Wanted, audit_history};
use clap::Args;

/// Judge the past again: every promotion in the history by its record, git and the registry alone
#[derive(Debug, Args)]
#[command(after_help = "\
Judged by the keys of today's Kitchen: a retired key that signed records is kept there with the role records,
a stolen one is taken out. 5: there are findings; 1: something could not be read; --offline: git alone.

Examples:
  expedite verify-history                              the whole branch
  expedite verify-history v1.4..                       since a tag
  expedite verify-history 3f2a1bc^!                    one commit
  expedite verify-history --offline -o json")]
pub struct VerifyHistory {
    /// As git log takes it: A..B, A.., REV^! or REV [default: the whole branch]
    #[arg(value_name = "RANGE")]
    pub range: Option<String>,
    /// How it is printed
    #[arg(short, long, value_enum, default_value_t = TableFormat::Table)]
    pub output: TableFormat,
}

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
