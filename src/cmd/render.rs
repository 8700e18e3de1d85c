//! `render`: the files that a run would commit, into a folder. No git, no registry is written.

use crate::cli::{Common, RenderFlags};
use crate::cmd::setup::{Access, Opened, Outside};
use crate::cmd::shown::{self, Shown};
use crate::cmd::wrap_failure;
use crate::error::{At, Failure, FailureKind};
use crate::files::FileChange;
use crate::report::Output;
use crate::report::view::format_count;
use crate::run::{self, Known};
use std::fs;
use std::path::Path;

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

/// A folder that is written into is new, or empty.
///
/// # Errors
/// It holds something, or cannot be read.
pub fn check_empty(folder: &Path) -> Result<(), Failure> {
    let failed = |cause: String| {
        Failure::new_input("folder", cause).with_place(At::from_file(folder.display().to_string()))
    };
    match fs::read_dir(folder) {
        Ok(mut entries) => match entries.next() {
            Some(_) => {
                Err(failed("it is not empty".into()).with_hint("name a new folder; nothing is overwritten"))
            }
            None => Ok(()),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(format!("cannot read it: {error}"))),
    }
}

/// Writes a file below the folder, and the folders above it.
///
/// # Errors
/// It cannot be written.
pub fn write_file(folder: &Path, path: &str, bytes: &[u8]) -> Result<(), Failure> {
    let file = folder.join(path);
    let done = file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&file, bytes));
    done.map_err(|error| {
        Failure::new(FailureKind::Repository, "write", format!("cannot write it: {error}"))
            .with_place(At::from_file(file.display().to_string()))
    })
}
