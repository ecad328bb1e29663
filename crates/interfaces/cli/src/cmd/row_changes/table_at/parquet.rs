//! `table-at --format parquet`: the rows as a binary log, of which binlogz-sql makes a Parquet file for each table.
//!
//! ```text
//! server ─ rows ─→ a log in a temporary folder of this user ─ binlogz-sql --format parquet 'SELECT …' ─→ output
//! ```
//!
//! binlogz-sql has the query engine, and with it the writer and the types. The folder is gone at the end, also after a signal; the next
//! run removes that of one which was killed.

use std::env;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use binlogz_atomic_file::{TemporaryFolder, remove_abandoned};
use binlogz_row_changes::{EmptyTables, LiveTable, PastError, PastSession};

use super::{Trouble, shown};
use crate::cmd::companion::sql_program;
use crate::failure::{CommandFailure, Result};
use crate::output::{OpenOutput, OutputTarget, create_printed};

/// How the names of temporary folders begin.
const FOLDER_PREFIX: &str = "binlogz-table-at-";

/// Writes Parquet files.
#[derive(Debug)]
pub(super) struct ParquetWriter {
    program: PathBuf,
}

impl ParquetWriter {
    /// Looks for the program.
    pub(super) fn find() -> Result<Self> {
        sql_program("--format parquet").map(|program| ParquetWriter { program })
    }

    /// Writes a file for each table. They appear when all of them are whole.
    pub(super) fn write(
        &self,
        live: &[LiveTable],
        session: &mut PastSession,
        targets: &[OutputTarget],
    ) -> Result<(), Trouble> {
        let parent = env::temp_dir();
        // What can't be removed now isn't ours to report.
        let _ = remove_abandoned(&parent, FOLDER_PREFIX);
        let folder = TemporaryFolder::begin(&parent, FOLDER_PREFIX).map_err(PastError::Temporary)?;
        let log = folder.path().join("rows.binlog");
        let mut out = BufWriter::new(create_printed(&log).map_err(PastError::Temporary)?);
        LiveTable::write_log(live, session, EmptyTables::Mapped, &mut out).map_err(|error| match error {
            PastError::Output(error) => PastError::Temporary(error),
            other => other,
        })?;
        out.flush().map_err(PastError::Temporary)?;
        drop(out);
        let written = live.iter().zip(targets).map(|(table, target)| self.of_table(table, &log, target));
        let outputs = written.collect::<Result<Vec<_>, _>>()?;
        Ok(outputs.into_iter().try_for_each(OpenOutput::finish)?)
    }

    fn of_table<'t>(
        &self,
        table: &LiveTable,
        log: &Path,
        target: &'t OutputTarget,
    ) -> Result<OpenOutput<'t>, Trouble> {
        let output = target.create_printed()?;
        let out = output.writer().map_err(PastError::Output)?;
        let mut command = Command::new(&self.program);
        command.args(["--format", "parquet", &select(table)]).arg(log);
        let ran = command.stdin(Stdio::null()).stdout(out).stderr(Stdio::piped()).output();
        let ran = ran.map_err(|error| CommandFailure::of(&self.program.display(), error))?;
        if ran.status.success() {
            return Ok(output);
        }
        let said = String::from_utf8_lossy(&ran.stderr).replace("binlogz-sql: ", "");
        let said = said.trim();
        let what = if said.is_empty() { ran.status.to_string() } else { said.to_owned() };
        let line = format!("{}: binlogz-sql makes no Parquet file of it: {what}", shown(table));
        Err(CommandFailure::Line(line).into())
    }
}

/// The statement that has the rows of a table, by its columns.
fn select(table: &LiveTable) -> String {
    let column = |name: &str| format!("after['{}'] AS {}", name.replace('\'', "''"), quoted(name));
    let columns: Vec<_> = table.stored_columns().map(column).collect();
    let (database, name) = table.asked();
    format!("SELECT {} FROM {}.{}", columns.join(", "), quoted(database), quoted(name))
}

/// A name in SQL.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
