//! `completions`: what the shell needs to complete our command line, made from the same types that parse it.

use crate::error::Failure;
use crate::report::Output;
use clap::Args;
use clap::Command;

/// Print a script that completes the command line in a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  expedite completions bash > /etc/bash_completion.d/expedite
  expedite completions zsh > ~/.zfunc/_expedite
  expedite completions fish > ~/.config/fish/completions/expedite.fish")]
pub struct Completions {
    /// For which shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: clap_complete::Shell,
}

/// Prints the script.
///
/// # Errors
/// None today; verbs share one shape.
pub fn run_completions(args: &Completions, mut command: Command, output: &mut Output) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "expedite", &mut script);
    output.write_result(&String::from_utf8_lossy(&script));
    Ok(())
}
