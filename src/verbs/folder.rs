//! A folder that a verb writes files into.

use crate::error::{At, Failure, FailureKind};
use crate::report::Output;
use std::fs;
use std::path::Path;

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

/// Writes files into a folder that is made where it is missing, over what is there.
///
/// # Errors
/// One cannot be written.
pub fn write_all(folder: &Path, files: Vec<(String, String)>, output: &mut Output) -> Result<(), Failure> {
    let wrong = |path: &Path, e: std::io::Error| {
        Failure::new(FailureKind::Internal, "not-written", format!("it cannot be written: {e}"))
            .with_object(path.display().to_string())
    };
    fs::create_dir_all(folder).map_err(|e| wrong(folder, e))?;
    for (name, text) in &files {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|e| wrong(&path, e))?;
    }
    output.write_note(&format!("wrote {} files to {}", files.len(), folder.display()));
    Ok(())
}
