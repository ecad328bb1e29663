//! The command line of binlogz: `binlogz COMMAND …`, one file a command in [`cmd`].
//!
//! A command is parsed without side effects, then resolves and checks everything it was given, then
//! runs. What it finds out goes to stdout, trouble to stderr as one line each, and its answer is the
//! exit code ([`Exit`]).

mod archived;
mod cmd;
mod failure;
mod interrupt;
mod keyring;
mod log_path;
mod memory;
mod output;
mod progress;
mod report;
mod server_args;
mod time;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use failure::{Failure, complain};

/// Makes MySQL's binary log small, readable and portable.
#[derive(Debug, Parser)]
#[command(name = "binlogz", version, max_term_width = HELP_WIDTH)]
#[command(after_help = "Exit codes: 0 done, 1 a negative answer, 2 bad usage, bad input or I/O trouble.")]
struct Cli {
    #[command(subcommand)]
    command: cmd::Command,
}

/// Help is wrapped here on wider terminals: longer lines read badly.
const HELP_WIDTH: usize = 100;

/// What a command answers; of several, the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Exit {
    /// It did what it was asked.
    Done = 0,
    /// It ran, and the answer is no.
    Negative = 1,
    /// Bad usage, bad input or I/O trouble.
    Trouble = 2,
}

fn main() -> ExitCode {
    // Its command line has MySQL's rules.
    if let Some(dump) = cmd::dump::asked_for(std::env::args_os()) {
        return ExitCode::from(dump.run());
    }
    let args: Vec<_> = std::env::args_os().collect();
    if server_args::password_behind_p(&Cli::command(), &args) {
        complain(server_args::PASSWORD_HAS_VALUE);
        return ExitCode::from(Exit::Trouble as u8);
    }
    let cli = Cli::parse_from(args);
    let exit = interrupt::watch().and_then(|()| cli.command.run()).unwrap_or_else(|failure| match failure {
        Failure::ClosedPipe => Exit::Done,
        Failure::Line(line) => {
            complain(&line);
            Exit::Trouble
        }
    });
    ExitCode::from(exit as u8)
}
