//! `plan`: what `run` would do and why. Writes nothing anywhere.

use crate::cli::{Common, Plan, PlanFormat};
use crate::cmd::one;
use crate::cmd::setup::{Access, Opened, Outside};
use crate::cmd::shown::{self, Shown};
use crate::error::Failure;
use crate::report::{Output, github, json_v1, markdown, plan};
use crate::run::{self, Known};

/// Decides and prints. Whether `--detailed-exitcode` was asked for and there are changes.
///
/// # Errors
/// The settings are wrong, or the repository cannot be read.
pub fn run(
    common: &Common,
    args: &Plan,
    outside: &Outside,
    output: &mut Output,
) -> Result<bool, Vec<Failure>> {
    show(common, args.output, args.allow_removals, outside, output)
        .map(|changes| changes && args.detailed_exitcode)
}

/// Decides and prints; whether there are changes.
///
/// # Errors
/// The settings are wrong, or the repository cannot be read.
pub fn show(
    common: &Common,
    format: PlanFormat,
    allow_removals: Option<usize>,
    outside: &Outside,
    output: &mut Output,
) -> Result<bool, Vec<Failure>> {
    let opened = Opened::new(common, outside, Access::Read)?;
    let setup = opened.setup(Access::Read, allow_removals);
    let mut decided =
        run::decide(&setup, &mut Known::default(), &mut |text| output.progress(text)).map_err(one)?;
    let (key, lacks) = opened.signing(common, outside);
    decided.plan.notices.extend(lacks);
    decided.plan.notices.extend(key.and_then(|key| run::untrusted(&key, &decided)));
    shown::details(&opened, output);
    let shown = Shown::new(decided, None);
    let view = shown.view();
    output.result(&match format {
        PlanFormat::Table => plan::text(&view, false),
        PlanFormat::Wide => plan::text(&view, true),
        PlanFormat::Json => json_v1::plan(&view),
        PlanFormat::Markdown => markdown::plan(&view, github::COMMENT_BYTES),
    });
    shown.tell(output);
    Ok(!view.changes.is_empty())
}
