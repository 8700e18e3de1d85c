//! `render`: the files that a run would commit, into a folder. No git, no registry is written.

use crate::error::{Failure, FailureKind};
use crate::files::FileChange;
use crate::report::Output;
use crate::report::view::format_count;
use crate::run::{self, Known};
use crate::verbs::flags::Common;
use crate::verbs::folder::{check_empty, write_file};
use crate::verbs::setup::{Access, Opened, Outside, wrap_failure};
use crate::verbs::shown;
use crate::verbs::shown::Shown;
use clap::Args;
use std::path::PathBuf;

/// Write the files that run would commit into a folder
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  expedite render ./out
  expedite render ./out --skip-evidence                nothing is verified: for looking at templates only")]
pub struct RenderFlags {
    /// Folder to write; it must not exist, or be empty
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Verify nothing: no registry is asked, and gates that need evidence are passed over
    #[arg(long)]
    pub skip_evidence: bool,
}

/// Decides and writes.
///
/// # Errors
/// The settings are wrong, the repository cannot be read, the folder is not empty or cannot be written.
pub fn run_render(
    common: &Common,
    args: &RenderFlags,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    check_empty(&args.folder).map_err(wrap_failure)?;
    let opened = Opened::new(common, outside, Access::Read)?;
    let mut setup = opened.make_setup(Access::Read, None);
    setup.skip_evidence = args.skip_evidence;
    let decided = run::decide_run(&setup, &mut Known::default(), &mut |text| output.show_progress(text))
        .map_err(wrap_failure)?;
    shown::tell_details(&opened, output);
    let shown = Shown::new(decided, None);
    let mut written = 0;
    for (path, change) in shown.make_view().changes {
        match change {
            FileChange::Write(bytes) => {
                write_file(&args.folder, path, bytes).map_err(wrap_failure)?;
                output.write_result(&format!("{path}\n"));
                written += 1;
            }
            FileChange::Delete => output.write_note(&format!("a run would delete {path}")),
        }
    }
    output.write_note(&format!(
        "{} written to {}",
        format_count(written, "file", "files"),
        args.folder.display()
    ));
    if args.skip_evidence {
        output.report_warning(
            &Failure::new(
                FailureKind::SaysNo,
                "not-verified",
                "NOTHING WAS VERIFIED: no signature, no provenance, no artifact was looked at",
            )
            .with_object("--skip-evidence")
            .with_hint("do not deploy these files"),
        );
    }
    shown.tell_plan(output);
    Ok(())
}
