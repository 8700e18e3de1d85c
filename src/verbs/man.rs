//! `man`: manual pages, made from the same types that parse the command line.

use crate::error::{Failure, FailureKind};
use crate::report::Output;
use crate::verbs::folder::write_all;
use clap::Args;
use clap::Command;
use clap_mangen::Man as Page;
use std::path::PathBuf;

/// Print the manual page, or write one for every verb into a folder
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  expedite man | man -l -
  expedite man --dir /usr/local/share/man/man1         expedite.1, expedite-run.1, …")]
pub struct Man {
    /// Write a page for every verb into this folder
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Prints `expedite(1)`, or writes every page into a folder.
///
/// # Errors
/// The folder cannot be written.
pub fn run_man(args: &Man, mut command: Command, output: &mut Output) -> Result<(), Failure> {
    // Flags of every verb stand in every verb's page.
    command.build();
    let Some(folder) = &args.dir else {
        output.write_result(&render_page("expedite.1", command)?.1);
        return Ok(());
    };
    let verbs: Vec<Command> =
        command.get_subcommands().filter(|verb| verb.get_name() != "help").cloned().collect();
    let mut pages = vec![render_page("expedite.1", command)?];
    for verb in verbs {
        let name = format!("expedite-{}", verb.get_name());
        pages.push(render_page(&format!("{name}.1"), verb.display_name(name))?);
    }
    write_all(folder, pages, output)
}

fn render_page(file: &str, command: Command) -> Result<(String, String), Failure> {
    let mut text = Vec::new();
    let written = Page::new(command).render(&mut text);
    written.map_err(|e| {
        Failure::new(FailureKind::Internal, "man", e.to_string()).with_object(file.to_owned())
    })?;
    Ok((file.to_owned(), String::from_utf8_lossy(&text).into_owned()))
}
