//! `plan`: what `run` would do and why. Writes nothing anywhere.

use crate::cli::{Common, Expected, Plan, PlanFormat};
use crate::cmd::comment::Comment;
use crate::cmd::setup::{Access, Opened, Outside};
use crate::cmd::shown::{self, Shown};
use crate::cmd::{base, key, one};
use crate::error::{Failure, Kind};
use crate::report::{Output, diff, github, json_v1, markdown, names, plan};
use crate::run::{self, Known, signing};

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
    show(common, args, false, outside, output)
}

/// The same; with `check` hand edits are refused, as `run --check` does.
///
/// # Errors
/// The settings are wrong, or the repository cannot be read.
pub fn show(
    common: &Common,
    args: &Plan,
    check: bool,
    outside: &Outside,
    output: &mut Output,
) -> Result<bool, Vec<Failure>> {
    if args.expect == Some(Expected::Commented) && args.comment.is_none() {
        let cause = "it needs --comment, which says where the comment is";
        return Err(one(Failure::new(Kind::Usage, "no-comment", cause).of("--expect commented")));
    }
    let comment = args.comment.map(|on| Comment::new(on, common, outside)).transpose().map_err(one)?;
    let (opened, mut shown) = match &args.base {
        Some(reference) => base::shown(common, args, reference, outside, output)?,
        None => plain(common, args, outside, output)?,
    };
    shown::details(&opened, output);
    let setup = opened.setup(Access::Read, args.allow_removals);
    let looks = match args.output {
        PlanFormat::Markdown | PlanFormat::Diff => true,
        PlanFormat::Table | PlanFormat::Wide | PlanFormat::Json | PlanFormat::Name => {
            output.style().summary.is_some() || comment.is_some()
        }
    };
    if looks {
        output.progress("looking into the artifacts");
        shown.look_inside(&setup);
    }
    let view = shown.view();
    let colour = output.style().colour;
    let mut text = match args.output {
        PlanFormat::Table => plan::text(&view, false),
        PlanFormat::Wide => plan::text(&view, true),
        PlanFormat::Json => json_v1::plan(&view),
        PlanFormat::Markdown => markdown::plan(&view, github::COMMENT_BYTES),
        PlanFormat::Diff => diff::plan::plan(&view, colour),
        PlanFormat::Name => names::lines(names::ORDER, view.moving(), &common.namespace),
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
    output.result(&text);
    shown.tell(output);
    if let Some(failure) = shown.not_as_written().filter(|_| check) {
        output.error(&failure);
    }
    match (&args.expect, &comment) {
        (Some(Expected::Plan(expected)), _) => shown.expect(expected, output),
        (Some(Expected::Commented), Some(comment)) => match comment.fingerprint() {
            Ok(expected) => shown.expect(&expected, output),
            Err(failure) => output.error(&failure),
        },
        (Some(Expected::Commented) | None, _) => {}
    }
    // What is expected of the comment is not put there first.
    if let Some(comment) = comment.filter(|_| args.expect != Some(Expected::Commented)) {
        comment.post(&view, output);
    }
    Ok(args.detailed_exitcode && !view.changes.is_empty())
}

/// The plan of all that is read.
fn plain(
    common: &Common,
    args: &Plan,
    outside: &Outside,
    output: &mut Output,
) -> Result<(Opened, Shown), Vec<Failure>> {
    let opened = Opened::new(common, outside, Access::Read)?;
    let setup = opened.setup(Access::Read, args.allow_removals);
    let mut decided =
        run::decide(&setup, &mut Known::default(), &mut |text| output.progress(text)).map_err(one)?;
    drop(setup);
    let (key, lacks) = key::foreseen(common, &opened.settings, outside);
    decided.plan.notices.extend(lacks);
    decided.plan.notices.extend(key.and_then(|key| signing::untrusted(&key, &decided)));
    Ok((opened, Shown::new(decided, None)))
}
