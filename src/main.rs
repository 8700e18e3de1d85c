//! The `expedite` binary: parse, call, exit status. The outside (streams, environment, clock) comes in here.

use clap::Parser as _;
use clap::error::ErrorKind;
use expedite::model::time::Time;
use expedite::report::{Output, OutputStyle};
use expedite::verbs::Cli;
use expedite::verbs::flags::Colour;
use expedite::verbs::setup::Outside;
use git_commits::Environment;
use std::io::{IsTerminal as _, stderr, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let parsed = Cli::try_parse();
    let (colour, quiet, verbose, no_progress) = match &parsed {
        Ok(cli) => (cli.common.color, cli.common.quiet, cli.common.verbose, cli.common.no_progress),
        Err(_) => (Colour::Auto, false, 0, true),
    };
    let github = is_set("GITHUB_ACTIONS", "true");
    let style = OutputStyle {
        colour: needs_colour(colour, stdout().is_terminal()),
        error_colour: needs_colour(colour, stderr().is_terminal()),
        progress: !no_progress && !github && stderr().is_terminal() && !is_set("TERM", "dumb"),
        verbosity: if quiet { -1 } else { i8::try_from(verbose).unwrap_or(i8::MAX) },
        github,
        summary: std::env::var_os("GITHUB_STEP_SUMMARY").filter(|p| github && !p.is_empty()).map(Into::into),
    };
    let mut output = Output::new(Box::new(stdout()), Box::new(stderr()), style);
    ExitCode::from(match parsed {
        Ok(cli) => expedite::verbs::dispatch_command(&cli, &read_outside(), &mut output),
        Err(error) => report_usage(&error, &mut output),
    })
}

/// What only this file asks the operating system for.
fn read_outside() -> Outside {
    Outside {
        environment: Environment::new(std::env::vars_os()),
        clock: Time::read_clock(),
        working: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
    }
}

/// Help and version are results; anything else is wrong report_usage (`docs/design/command-line.md#exit-status`: 64, where clap says 2).
fn report_usage(error: &clap::Error, output: &mut Output) -> u8 {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let text = error.render();
            output.write_result(&if output.style().colour {
                text.ansi().to_string()
            } else {
                text.to_string()
            });
        }
        _ => output.report_usage(&error.render().to_string()),
    }
    output.decide_status(false)
}

fn is_set(name: &str, value: &str) -> bool {
    std::env::var(name).is_ok_and(|v| v == value)
}

/// `--color`, then NO_COLOR, CLICOLOR_FORCE and CLICOLOR (bixense.com/clicolors), then the terminal.
fn needs_colour(choice: Colour, terminal: bool) -> bool {
    let given = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    let force = given("CLICOLOR_FORCE") && !is_set("CLICOLOR_FORCE", "0");
    match choice {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto if given("NO_COLOR") => false,
        Colour::Auto if force => true,
        Colour::Auto => terminal && !is_set("CLICOLOR", "0") && !is_set("TERM", "dumb"),
    }
}
