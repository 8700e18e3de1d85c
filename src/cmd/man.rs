//! `man`: manual pages, made from the same types that parse the command line.

use super::schema::write_all;
use crate::cli::{Cli, Man};
use crate::error::{Failure, FailureKind};
use crate::report::Output;
use clap::{Command, CommandFactory as _};
use clap_mangen::Man as Page;

/// Prints `expedite(1)`, or writes every page into a folder.
///
/// # Errors
/// The folder cannot be written.
pub fn run_man(args: &Man, output: &mut Output) -> Result<(), Failure> {
    let mut command = Cli::command();
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
