//! Commands that programs of their own do: `sql` and `export` are binlogz-sql's, which has a query engine; `bench` and `demo`
//! are binlogz-bench's, which has the experiments and private servers. Without them the main program is smaller and builds
//! faster. A program is looked for beside this one, then on PATH ([`companion`]).

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use binlogz_cli_common::help::readable;
use binlogz_cli_common::program::companion;
use binlogz_cli_common::start::ReportingArgs;
use clap::Args;
use clap::builder::StyledStr;

use super::described::described;
use crate::Exit;
use crate::failure::{CommandFailure, Result};

/// Ask MySQL's binary logs in SQL
///
/// This is done by binlogz-sql, a program of its own, which lies beside binlogz or on PATH: the package binlogz-sql, or cargo install --path crates/interfaces/sql-cli.
/// Its options: binlogz sql --help.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct SqlArguments {
    /// What binlogz-sql is given
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Write tables as Parquet data sets, and add what is new
///
/// This is done by binlogz-sql, a program of its own, which lies beside binlogz or on PATH: the package binlogz-sql, or cargo install --path crates/interfaces/sql-cli.
/// Its options: binlogz export --help.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct ExportArguments {
    /// What binlogz-sql export is given
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Repeat the public experiments on this feature, beside their published figures
///
/// This is done by binlogz-bench, a program of its own, which lies beside binlogz or on PATH: the package binlogz-bench, or cargo install --path lab/bench.
/// Its presets and options: binlogz bench --help.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct BenchArguments {
    /// What binlogz-bench bench is given
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// See what binlogz does, on private servers: a replica that stops, the relay that heals it, an undo, an archive, a restore
///
/// This is done by binlogz-bench, a program of its own, which lies beside binlogz or on PATH: the package binlogz-bench, or cargo install --path lab/bench.
/// Its options: binlogz demo --help.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct DemoArguments {
    /// What binlogz-bench demo is given
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// A command that another program does.
#[derive(Debug)]
struct CompanionCommand {
    name: &'static str,
    /// The program, and its package.
    program: &'static str,
    /// Where its sources are.
    sources: &'static str,
    /// Whether the program is given the command's name: without one binlogz-sql takes SQL.
    takes_name: bool,
}

const SQL: CompanionCommand = CompanionCommand {
    name: "sql",
    program: "binlogz-sql",
    sources: "crates/interfaces/sql-cli",
    takes_name: false,
};
const EXPORT: CompanionCommand = CompanionCommand { name: "export", takes_name: true, ..SQL };
const BENCH: CompanionCommand =
    CompanionCommand { name: "bench", program: "binlogz-bench", sources: "lab/bench", takes_name: true };
const DEMO: CompanionCommand = CompanionCommand { name: "demo", ..BENCH };

/// A command and its arguments.
#[derive(Debug)]
pub(crate) struct CompanionRequest {
    command: CompanionCommand,
    arguments: Vec<OsString>,
    /// Whether `binlogz help` asks for it, which also answers without the program.
    is_for_help: bool,
}

/// The word before a command whose help is asked for.
const HELP: &str = "help";

/// The request, if a whole command line, program name included, asks for such a command or for its help: its options are the program's.
pub(crate) fn asked_for(command_line: impl Iterator<Item = OsString>) -> Option<CompanionRequest> {
    let mut command_line = command_line.skip(1).peekable();
    let is_for_help = command_line.next_if(|word| word == HELP).is_some();
    let word = command_line.next()?;
    let command = [SQL, EXPORT, BENCH, DEMO].into_iter().find(|command| word == *command.name)?;
    let mut arguments: Vec<_> = command_line.collect();
    if is_for_help {
        arguments.push("--help".into());
    }
    Some(CompanionRequest { command, arguments, is_for_help })
}

impl From<SqlArguments> for CompanionRequest {
    fn from(SqlArguments { arguments }: SqlArguments) -> Self {
        CompanionRequest { command: SQL, arguments, is_for_help: false }
    }
}

impl From<ExportArguments> for CompanionRequest {
    fn from(ExportArguments { arguments }: ExportArguments) -> Self {
        CompanionRequest { command: EXPORT, arguments, is_for_help: false }
    }
}

impl From<BenchArguments> for CompanionRequest {
    fn from(BenchArguments { arguments }: BenchArguments) -> Self {
        CompanionRequest { command: BENCH, arguments, is_for_help: false }
    }
}

impl From<DemoArguments> for CompanionRequest {
    fn from(DemoArguments { arguments }: DemoArguments) -> Self {
        CompanionRequest { command: DEMO, arguments, is_for_help: false }
    }
}

impl CompanionCommand {
    /// Why the program at this path doesn't do a thing: it can't be run.
    fn failure(&self, thing: &str, path: &Path, error: &io::Error) -> CommandFailure {
        let CompanionCommand { program, sources, .. } = self;
        match error.kind() {
            io::ErrorKind::NotFound => CommandFailure::Line(format!(
                "{thing} is done by {program}, which is neither beside binlogz nor on PATH: install the package {program}, or cargo install --path {sources}",
            )),
            _ => CommandFailure::of(&path.display(), error),
        }
    }
}

/// Where binlogz-sql is, for a command that lets it do this thing.
///
/// # Errors
///
/// It can't be run.
pub(in crate::cmd) fn sql_program(thing: &str) -> Result<PathBuf> {
    let path = companion(SQL.program);
    let mut asked = Command::new(&path);
    let ran =
        asked.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match ran {
        Ok(_) => Ok(path),
        Err(error) => Err(SQL.failure(thing, &path, &error)),
    }
}

/// The help of the command that these words lead to, as far as they do.
fn help_of(command: &mut clap::Command, words: &[&str]) -> StyledStr {
    let below = words.split_first().and_then(|(word, rest)| Some((command.find_subcommand_mut(word)?, rest)));
    if let Some((below, rest)) = below {
        return help_of(below, rest);
    }
    command.render_long_help()
}

impl CompanionRequest {
    /// The request with options that stood before the command. Before a statement binlogz-sql has no place for them.
    pub(crate) fn with(mut self, reporting: &ReportingArgs) -> Self {
        if self.command.takes_name {
            self.arguments.splice(0..0, reporting.as_options().map(OsString::from));
        }
        self
    }

    /// Becomes the program; returns only if that fails.
    pub(crate) fn run(self) -> Result<Exit> {
        let CompanionCommand { name, program, takes_name, .. } = self.command;
        let path = companion(program);
        let error = Command::new(&path).args(takes_name.then_some(name)).args(&self.arguments).exec();
        if self.is_for_help && error.kind() == io::ErrorKind::NotFound {
            return self.write_help();
        }
        Err(self.command.failure(name, &path, &error))
    }

    /// The help of the command, or of the commands below it that are named, from the definitions that the program has as well.
    fn write_help(&self) -> Result<Exit> {
        let mut all = readable(described());
        all.build();
        let words = self.arguments.iter().filter_map(|word| word.to_str());
        let words: Vec<_> = std::iter::once(self.command.name).chain(words).collect();
        let written = write!(io::stdout(), "{}", help_of(&mut all, &words));
        written.map_err(|error| CommandFailure::writing(&"standard output", &error))?;
        Ok(Exit::Done)
    }
}
