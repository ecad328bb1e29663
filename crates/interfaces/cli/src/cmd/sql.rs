//! `binlogz sql` and `binlogz export`: SQL over logs, and tables as Parquet, by a program of its own. That program has a
//! query engine; without it the main program is smaller and builds faster. It is looked for beside this program, then on
//! PATH, as git looks for its commands.

use std::convert::Infallible;
use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::Args;

use crate::failure::{CommandFailure, Result};

/// Ask binary logs and archives in SQL
///
/// This is done by binlogz-sql, a program of its own, which lies beside binlogz or on PATH: the package binlogz-sql, or cargo install --path crates/interfaces/sql-cli.
/// Its options: binlogz sql --help.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Sql {
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
pub(crate) struct ExportCommand {
    /// What binlogz-sql export is given
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Commands that the program does.
const SQL: &str = "sql";
const EXPORT: &str = "export";

/// A command and its arguments.
#[derive(Debug)]
pub(crate) struct SqlRequest {
    command: &'static str,
    arguments: Vec<OsString>,
}

/// The name of the program.
const PROGRAM: &str = "binlogz-sql";

/// The request, if a whole command line, program name included, asks for it: its options are the program's.
pub(crate) fn asked_for(command_line: impl Iterator<Item = OsString>) -> Option<SqlRequest> {
    let mut command_line = command_line.skip(1);
    let word = command_line.next()?;
    let command = [SQL, EXPORT].into_iter().find(|command| word == *command)?;
    Some(SqlRequest { command, arguments: command_line.collect() })
}

impl From<Sql> for SqlRequest {
    fn from(sql: Sql) -> Self {
        SqlRequest { command: SQL, arguments: sql.arguments }
    }
}

impl From<ExportCommand> for SqlRequest {
    fn from(export: ExportCommand) -> Self {
        SqlRequest { command: EXPORT, arguments: export.arguments }
    }
}

impl SqlRequest {
    /// Becomes the program; returns only if that fails.
    pub(crate) fn run(self) -> Result<Infallible> {
        let beside = env::current_exe().ok().and_then(|path| Some(path.parent()?.join(PROGRAM)));
        let beside = beside.filter(|path| path.is_file());
        let program = beside.map_or_else(|| PROGRAM.into(), OsString::from);
        // Without a word of its own the program takes SQL.
        let word = (self.command != SQL).then_some(self.command);
        let error = Command::new(&program).args(word).args(self.arguments).exec();
        Err(match error.kind() {
            io::ErrorKind::NotFound => CommandFailure::Line(format!(
                "{} is done by {PROGRAM}, which is neither beside binlogz nor on PATH: install the package binlogz-sql, or cargo install --path crates/interfaces/sql-cli",
                self.command
            )),
            _ => CommandFailure::of(&program.to_string_lossy(), error),
        })
    }
}
