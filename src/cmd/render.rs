//! `render`: the files that a run would commit, into a folder. No git, no registry is written.

use crate::cli::{Common, Render};
use crate::cmd::one;
use crate::cmd::setup::{Access, Opened, Outside};
use crate::cmd::shown::{self, Shown};
use crate::error::{At, Failure, Kind};
use crate::files::Change;
use crate::report::Output;
use crate::report::view::counted;
use crate::run::{self, Known};
use std::fs;
use std::path::Path;

/// Decides and writes.
///
/// # Errors
/// The settings are wrong, the repository cannot be read, the folder is not empty or cannot be written.
pub fn run(
    common: &Common,
    args: &Render,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    must_be_empty(&args.folder).map_err(one)?;
    let opened = Opened::new(common, outside, Access::Read)?;
    let mut setup = opened.setup(Access::Read, None);
    setup.skip_evidence = args.skip_evidence;
    let decided =
        run::decide(&setup, &mut Known::default(), &mut |text| output.progress(text)).map_err(one)?;
    shown::details(&opened, output);
    let shown = Shown::new(decided, None);
    let mut written = 0;
    for (path, change) in shown.view().changes {
        match change {
            Change::Write(bytes) => {
                write(&args.folder, path, bytes).map_err(one)?;
                output.result(&format!("{path}\n"));
                written += 1;
            }
            Change::Delete => output.note(&format!("a run would delete {path}")),
        }
    }
    output.note(&format!("{} written to {}", counted(written, "file", "files"), args.folder.display()));
    if args.skip_evidence {
        output.warning(
            &Failure::new(
                Kind::SaysNo,
                "not-verified",
                "NOTHING WAS VERIFIED: no signature, no provenance, no artifact was looked at",
            )
            .of("--skip-evidence")
            .hint("do not deploy these files"),
        );
    }
    shown.tell(output);
    Ok(())
}

/// A folder that is written into is new, or empty.
///
/// # Errors
/// It holds something, or cannot be read.
pub fn must_be_empty(folder: &Path) -> Result<(), Failure> {
    let failed = |cause: String| Failure::input("folder", cause).at(At::file(folder.display().to_string()));
    match fs::read_dir(folder) {
        Ok(mut entries) => match entries.next() {
            Some(_) => {
                Err(failed("it is not empty".into()).hint("name a new folder; nothing is overwritten"))
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
pub fn write(folder: &Path, path: &str, bytes: &[u8]) -> Result<(), Failure> {
    let file = folder.join(path);
    let done = file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&file, bytes));
    done.map_err(|error| {
        Failure::new(Kind::Repository, "write", format!("cannot write it: {error}"))
            .at(At::file(file.display().to_string()))
    })
}
