//! The start of a program: its command line parsed, and the options that every command has.

use std::env;
use std::process::ExitCode;

use clap::{Args, Command, FromArgMatches};

use crate::Exit;
use crate::failure::complain;
use crate::progress;
use crate::server_args::{PASSWORD_HAS_VALUE, password_behind_p, with_h_alone_as_help};

/// How much a command tells of its work.
#[derive(Debug, Args)]
pub struct ReportingArgs {
    /// Show no progress; there is none where standard error is no terminal
    #[arg(long, global = true)]
    quiet: bool,
    /// Say on standard error what was done: each piece of work with its bytes and its time
    #[arg(long, short, global = true)]
    verbose: bool,
}

impl ReportingArgs {
    /// As options, for a companion that takes over.
    pub fn as_options(&self) -> impl Iterator<Item = &'static str> {
        let given = [(self.quiet, "--quiet"), (self.verbose, "--verbose")];
        given.into_iter().filter_map(|(is_given, option)| is_given.then_some(option))
    }

    /// Progress is shown and told accordingly from now on.
    pub fn heed(&self) {
        if self.quiet {
            progress::be_quiet();
        }
        if self.verbose {
            progress::be_verbose();
        }
    }
}

/// The command line of the process, by these definitions. Help that was asked for, and bad usage, end the process.
///
/// # Errors
///
/// The exit code, once it was said why a password may not stand there.
pub fn parsed<C: FromArgMatches>(mut command: Command) -> Result<C, ExitCode> {
    let args = with_h_alone_as_help(&command, env::args_os().collect());
    if password_behind_p(&command, &args) {
        complain(PASSWORD_HAS_VALUE);
        return Err(ExitCode::from(Exit::Trouble as u8));
    }
    let matches = command.clone().get_matches_from(args);
    Ok(C::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command).exit()))
}
