//! `dump`: logs as mysqlbinlog prints them, from files, stdin or a server.
//!
//! [`options`] reads the command line, which follows MySQL's rules, not clap's. So [`asked_for`] examines the
//! arguments before anything else does.

mod changes;
mod exits;
mod jsonl;
mod line_run;
mod local;
mod looked_for;
mod options;
mod print_options;
mod raw;
mod remote;
pub(super) mod tables;
mod unmet;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub(crate) use options::DumpCommand;
use options::{ArgumentsOutcome, DumpFormat, DumpSettings, ParsedArguments};

use crate::failure::{CommandFailure, Result, with_way_to_password};
use crate::time;
use binlogz_archive::input as archived;
use binlogz_binlog::printable;
use binlogz_figures::Zone;

/// The name that makes this command of the whole program.
const MYSQLBINLOG: &str = "mysqlbinlog";

/// For users who write to a file as with our other commands.
const OTHER_NAME_OF_OUTPUT: &str =
    "dump has mysqlbinlog's options: --output=FILE (--result-file, -r) writes to a file, -o is --offset=N";

/// The meaning of mysqlbinlog's exit codes.
const FAILED: u8 = 1;

/// The request of a command line.
pub(crate) struct DumpCall {
    /// The name under which the program was called: messages begin with it.
    program: String,
    arguments: Vec<OsString>,
    called_mysqlbinlog: bool,
}

/// The request, if this is what a whole command line, program name included, asks for.
pub(crate) fn asked_for(mut command_line: impl Iterator<Item = OsString>) -> Option<DumpCall> {
    let program = command_line.next()?;
    let shown = program.to_string_lossy().into_owned();
    if Path::new(&program).file_name() == Some(OsStr::new(MYSQLBINLOG)) {
        let arguments = command_line.collect();
        return Some(DumpCall { program: shown, arguments, called_mysqlbinlog: true });
    }
    let command = command_line.next()?;
    (command == "dump").then(|| {
        let arguments = command_line.collect();
        DumpCall { program: format!("{shown} dump"), arguments, called_mysqlbinlog: false }
    })
}

/// Whether an argument that was refused is meant to name an output file.
fn is_for_a_file(argument: &OsStr) -> bool {
    argument.as_encoded_bytes().starts_with(b"-o")
}

impl DumpCall {
    /// Does it; the exit code is one of mysqlbinlog's.
    pub(crate) fn run(self) -> u8 {
        self.try_run().unwrap_or_else(tell)
    }

    /// Whether a summary of the help is asked for. A host that is not named is an error to mysqlbinlog. To everybody else `-h`
    /// is help.
    fn is_for_summary(&self) -> bool {
        !self.called_mysqlbinlog && self.arguments.last().is_some_and(|last| last == "-h")
    }

    fn try_run(self) -> Result<u8> {
        if self.is_for_summary() {
            show(&options::summary())?;
            return Ok(0);
        }
        let ParsedArguments { told, outcome } = options::parse(&self.program, &self.arguments);
        let _ = io::stderr().write_all(told.as_bytes());
        match outcome {
            ArgumentsOutcome::Show(text, code) => {
                show(&text)?;
                Ok(code)
            }
            ArgumentsOutcome::End(code) => {
                if !self.called_mysqlbinlog && self.arguments.iter().any(|argument| is_for_a_file(argument)) {
                    tell_line("HINT", OTHER_NAME_OF_OUTPUT);
                }
                Ok(code)
            }
            ArgumentsOutcome::Dump(mut options) => {
                options.called_mysqlbinlog = self.called_mysqlbinlog;
                if let Some(problem) = Zone::of_process().problem() {
                    tell_line("WARNING", problem);
                }
                if !options.is_remote() {
                    let logs = archived::expand(std::mem::take(&mut options.logs));
                    options.logs = logs.map_err(|error| CommandFailure::of_archive(&error))?;
                    if let Some(erased) = archived::erased(options.logs.iter().map(PathBuf::as_path)) {
                        tell_line("WARNING", &erased.in_words(time::shown));
                    }
                }
                dump(&options)
            }
        }
    }
}

fn show(text: &str) -> Result<()> {
    let shown = io::stdout().write_all(text.as_bytes());
    shown.map_err(|error| CommandFailure::writing(&"stdout", &error))
}

/// Tells of trouble on stderr, as mysqlbinlog does; the exit code.
fn tell(failure: CommandFailure) -> u8 {
    match failure {
        CommandFailure::ClosedPipe => 0,
        CommandFailure::Line(line) => {
            tell_line("ERROR", &line);
            FAILED
        }
    }
}

/// Tells on stderr; names that others chose can't write to the terminal. Where even that is closed, the exit code has to do.
fn tell_line(kind: &str, line: &str) {
    let _ = writeln!(io::stderr(), "{kind}: {}", printable(&with_way_to_password(line)));
}

fn dump(options: &DumpSettings) -> Result<u8> {
    if unmet::tell(options, &unmet::ahead(options)) {
        return Ok(FAILED);
    }
    match options {
        options if options.raw => raw::run(options),
        options if options.format == DumpFormat::Jsonl => jsonl::run(options),
        options if options.format.of_changes().is_some() => changes::run(options),
        options => local::dump(options),
    }
}
