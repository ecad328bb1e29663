//! The start of a program: its command line parsed, and the options that every command has.

use std::env;
use std::io::{self, Write};
use std::process::{self, ExitCode};

use clap::{Args, Command, FromArgMatches};

use crate::Exit;
use crate::failure::complain;
use crate::program::name;
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
    let matches = command.clone().try_get_matches_from(args).unwrap_or_else(|error| refuse(&error));
    Ok(C::from_arg_matches(&matches).unwrap_or_else(|error| refuse(&error.format(&mut command))))
}

/// Ends the process with the help that was asked for, or with what is wrong about the command line, under the prefix that all errors
/// have.
pub fn refuse(error: &clap::Error) -> ! {
    let text = error.render().to_string();
    match text.strip_prefix("error: ").filter(|_| error.use_stderr()) {
        Some(problem) => {
            // If even stderr is closed, the exit code must do.
            let _ = write!(io::stderr(), "{}: {problem}", name());
            process::exit(error.exit_code())
        }
        None => error.exit(),
    }
}
