//! One file per verb: flags → settings → `run` → report. No decision is made here.

mod init;

use crate::cli::{Cli, Verb};
use crate::report::Output;

/// Does what the command line says; the exit status follows from what `output` was told.
pub fn dispatch(cli: &Cli, output: &mut Output) -> u8 {
    let done = match &cli.verb {
        Verb::Init(args) => init::run(&cli.common, args, output),
    };
    if let Err(failure) = done {
        output.error(&failure);
    }
    output.status(false)
}
