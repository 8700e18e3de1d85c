//! `plan`: what `run` would do and why. Writes nothing anywhere.

use crate::cli::{Common, ExpectedPlan, PlanFlags, PlanFormat};
use crate::cmd::comment::PlanComment;
use crate::cmd::setup::{Access, Opened, Outside};
use crate::cmd::shown::{self, Shown};
use crate::cmd::{base, key, wrap_failure};
use crate::error::{Failure, FailureKind};
use crate::report::{Output, diff, github, json_v1, markdown, names, plan};
use crate::run::{self, Known, signing};

/// Decides and prints. Whether `--detailed-exitcode` was asked for and there are changes.
///
/// # Errors
/// The settings are wrong, or the repository cannot be read.
pub fn run_plan(
    common: &Common,
    args: &PlanFlags,
    outside: &Outside,
    output: &mut Output,
) -> Result<bool, Vec<Failure>> {
    show_plan(common, args, false, outside, output)
}

/// The same; with `check` hand edits are refused, as `run --check` does.
///
/// # Errors
/// The settings are wrong, or the repository cannot be read.
pub fn show_plan(
    common: &Common,
    args: &PlanFlags,
    check: bool,
    outside: &Outside,
    output: &mut Output,
) -> Result<bool, Vec<Failure>> {
    if args.expect == Some(ExpectedPlan::Commented) && args.comment.is_none() {
        let cause = "it needs --comment, which says where the comment is";
        return Err(wrap_failure(
            Failure::new(FailureKind::Usage, "no-comment", cause).with_object("--expect commented"),
        ));
    }
    let comment =
        args.comment.map(|on| PlanComment::new(on, common, outside)).transpose().map_err(wrap_failure)?;
    let (opened, mut shown) = match &args.base {
        Some(reference) => base::show_against_base(common, args, reference, outside, output)?,
        None => decide_plain(common, args, outside, output)?,
    };
    shown::tell_details(&opened, output);
    let setup = opened.make_setup(Access::Read, args.allow_removals);
    let looks = match args.output {
        PlanFormat::Markdown | PlanFormat::Diff => true,
        PlanFormat::Table | PlanFormat::Wide | PlanFormat::Json | PlanFormat::Name => {
            output.style().summary.is_some() || comment.is_some()
        }
    };
    if looks {
        output.show_progress("looking into the artifacts");
        shown.look_inside(&setup);
    }
    let view = shown.make_view();
    let colour = output.style().colour;
    let mut text = match args.output {
        PlanFormat::Table => plan::format_plan(&view, false),
        PlanFormat::Wide => plan::format_plan(&view, true),
        PlanFormat::Json => json_v1::format_plan(&view),
        PlanFormat::Markdown => markdown::format_plan(&view, github::COMMENT_BYTES),
        PlanFormat::Diff => diff::plan::format_plan(&view, colour),
        PlanFormat::Name => names::format_lines(names::ORDER, view.find_moving_orders(), &common.namespace),
    };
    match (args.output, &view.preview.fingerprint) {
        (PlanFormat::Table | PlanFormat::Wide, Some(fingerprint)) if output.style().verbosity > 0 => {
            text.push_str(&format!("fingerprint {fingerprint}\n"));
        }
        (
            PlanFormat::Table
            | PlanFormat::Wide
            | PlanFormat::Json
            | PlanFormat::Markdown
            | PlanFormat::Diff
            | PlanFormat::Name,
            _,
        ) => {}
    }
    output.write_result(&text);
    shown.tell_plan(output);
    if let Some(failure) = shown.refuse_unwritten().filter(|_| check) {
        output.report_error(&failure);
    }
    match (&args.expect, &comment) {
        (Some(ExpectedPlan::Plan(expected)), _) => shown.check_expected(expected, output),
        (Some(ExpectedPlan::Commented), Some(comment)) => match comment.fetch_fingerprint() {
            Ok(expected) => shown.check_expected(&expected, output),
            Err(failure) => output.report_error(&failure),
        },
        (Some(ExpectedPlan::Commented) | None, _) => {}
    }
    // What is expected of the comment is not put there first.
    if let Some(comment) = comment.filter(|_| args.expect != Some(ExpectedPlan::Commented)) {
        comment.post_plan(&view, output);
    }
    Ok(args.detailed_exitcode && !view.changes.is_empty())
}

/// The plan of all that is read.
fn decide_plain(
    common: &Common,
    args: &PlanFlags,
    outside: &Outside,
    output: &mut Output,
) -> Result<(Opened, Shown), Vec<Failure>> {
    let opened = Opened::new(common, outside, Access::Read)?;
    let setup = opened.make_setup(Access::Read, args.allow_removals);
    let mut decided = run::decide_run(&setup, &mut Known::default(), &mut |text| output.show_progress(text))
        .map_err(wrap_failure)?;
    drop(setup);
    let (key, lacks) = key::foresee_signer(common, &opened.settings, outside);
    decided.plan.notices.extend(lacks);
    decided.plan.notices.extend(key.and_then(|key| signing::check_key(&key, &decided)));
    Ok((opened, Shown::new(decided, None)))
}
