//! `plan`: what `run` would do and why. Writes nothing anywhere.

mod base;
mod change;
pub mod comment;

use crate::error::{Failure, FailureKind};
use crate::report::{Output, diff, github, json_v1, markdown, names, plan};
use crate::run::{self, Known, signing};
use crate::verbs::flags::Common;
use crate::verbs::formats::PlanFormat;
use crate::verbs::setup::signer;
use crate::verbs::setup::{Access, Opened, Outside, wrap_failure};
use crate::verbs::shown;
use crate::verbs::shown::Shown;
use crate::verbs::values::ExpectedPlan;
use clap::Args;
use comment::{CommentOn, PlanComment};

/// Show what run would do and why; write nothing anywhere
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  expedite plan                                        what would move now, and what is held
  expedite plan --only shop/podinfo -o json
  expedite plan --from-cluster --context prod          objects and Applications as they are in a cluster
  expedite plan --detailed-exitcode                    2 when there are changes
  expedite plan -o name                                only the Orders that move, for a pipe
  expedite plan --at 2027-01-04T06:00:00Z              as of then
  expedite plan -o diff --color always | less -R       what changes inside the artifacts
  expedite plan -o markdown --base origin/main         what a pull request causes, for a comment on it
  expedite plan --base origin/main --comment github    and the comment itself, in CI
  expedite plan --expect \"$FINGERPRINT\"                5 when the world has moved since that plan
  expedite plan --base \"$BASE\" --comment github --expect commented    the same, since the comment")]
pub struct PlanFlags {
    /// How it is printed
    #[arg(short, long, value_enum, default_value_t = PlanFormat::Table)]
    pub output: PlanFormat,
    /// Only what the change between REF and the checkout causes; settings and trust are those of REF
    #[arg(long, value_name = "REF")]
    pub base: Option<String>,
    /// Exit with 5, and the difference, when this is no longer the plan of that fingerprint; `commented`: of the comment
    /// on the pull request, which then stays as it is
    #[arg(long, value_name = "FINGERPRINT", value_parser = ExpectedPlan::parse)]
    pub expect: Option<ExpectedPlan>,
    /// In CI: keep one comment with the plan on the pull request (GITHUB_TOKEN, GITLAB_TOKEN or GITEA_TOKEN)
    #[arg(long, value_name = "FORGE", value_enum)]
    pub comment: Option<CommentOn>,
    /// Exit with 2 when there are changes
    #[arg(long)]
    pub detailed_exitcode: bool,
    /// Remove up to N Applications, once
    #[arg(long, value_name = "N")]
    pub allow_removals: Option<usize>,
}

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
    let (key, lacks) = signer::foresee_signer(common, &opened.settings, outside);
    decided.plan.notices.extend(lacks);
    decided.plan.notices.extend(key.and_then(|key| signing::check_key(&key, &decided)));
    Ok((opened, Shown::new(decided, None)))
}
