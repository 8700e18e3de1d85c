//! Programs that a test writes and runs.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// Makes a file that was written here a program. A child that another test began meanwhile may hold the file open
/// for writing until it has become its own program, and nobody can run it then ("text file busy"): so that it
/// is a copy which this process never wrote.
pub fn executable(path: &Path) {
    let copy = path.with_extension("copy");
    assert!(Command::new("cp").arg(path).arg(&copy).status().unwrap().success());
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::rename(&copy, path).unwrap();
}
