//! The command line of binlogz: `binlogz COMMAND …`, one file a command in [`cmd`].
//!
//! A command is parsed without side effects, then resolves and checks its arguments, then runs. Results go to
//! stdout, errors to stderr as one line each, and the answer is the exit code ([`Exit`]).

mod cmd;
mod log;
mod log_path;
mod mariadb;
mod memory;
mod output;
mod report;
#[cfg(feature = "otel")]
mod traces;

use std::process::ExitCode;

// Commands name what all programs share as if it stood here.
use binlogz_cli_common::help::{self, HELP_WIDTH};
use binlogz_cli_common::start::{ReportingArgs, parsed};
use binlogz_cli_common::{
    Exit, erased, failure, format, interrupt, keyring, pager, progress, server_args, similar, terminal, time,
    units,
};
use clap::{CommandFactory, Parser};

use failure::ended;

/// Makes MySQL's binary log small, readable and portable.
#[derive(Debug, Parser)]
#[command(name = "binlogz", version, max_term_width = HELP_WIDTH)]
#[command(after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: cmd::CliCommand,
    #[command(flatten)]
    reporting: ReportingArgs,
}

const EXAMPLES: &str = "Examples:
  binlogz advise /var/lib/mysql/binlog.0000*    what would compression save and cost?
  binlogz doctor -p mysql://monitor@db1         which replicas and clients would it break?
  binlogz dump -v binlog.000042                 what mysqlbinlog prints, only faster

Exit codes: 0 done, 1 a negative answer, 2 bad usage, bad input or I/O trouble.";

fn main() -> ExitCode {
    // Its command line has MySQL's rules.
    if let Some(dump) = cmd::dump::asked_for(std::env::args_os()) {
        return ExitCode::from(dump.run());
    }
    // Their options are another program's.
    if let Some(request) = cmd::companion::asked_for(std::env::args_os()) {
        return ended(request.run());
    }
    let cli: Cli = match parsed(command()) {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
    cli.reporting.heed();
    ended(interrupt::watch().and_then(|()| cli.command.run(&cli.reporting)))
}

/// The command line, with its help as users read it.
fn command() -> clap::Command {
    cmd::groups::grouped(help::readable(Cli::command()))
}
