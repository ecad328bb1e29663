//! `binlogz export`: tables as Parquet data sets, run after run.

use std::ffi::OsString;
use std::path::PathBuf;
use std::thread;

use binlogz_atomic_file::remove_unfinished;
use binlogz_cli_common::help::{EXAMPLES_FIRST, HELP_WIDTH};
use binlogz_query::Error;
use binlogz_query::export::{LEVEL_DEFAULT, Partition, TableExport};
use clap::{Parser, ValueEnum, value_parser};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::follow::FollowArgs;
use crate::inputs::SqlInputArgs;
use crate::progress::ProgressArgs;
use crate::told::tell;

const COMMAND: &str = "export";

const EXAMPLES: &str = "Examples:
  binlogz export --to lake /var/lib/mysql/binlog.0*
  binlogz export --to lake s3://bucket/archive            # again: adds what is new
  binlogz export --to lake --partition month --table shop.orders archive
  binlogz export --to s3://lake/shop --follow repl@db1                # until a signal ends it
  duckdb -init lake/views.sql

Exit codes: 0 done, also if there was nothing new; 1 changes in the logs could not be read; 2 bad usage, bad input or I/O trouble.";

/// Write tables as Parquet data sets, and add what is new
///
/// Each table with row changes becomes a data set, DIR/DATABASE/TABLE, with the columns of binlogz sql, and the transactions
/// one, DIR/_transactions. A later run adds the transactions that are new, each once. Readers never see a file that isn't
/// whole, also if a run is killed.
#[derive(Debug, Parser)]
#[command(name = "binlogz-sql export", bin_name = "binlogz export", version, max_term_width = HELP_WIDTH, after_help = EXAMPLES, help_template = EXAMPLES_FIRST)]
pub(crate) struct ExportArgs {
    /// Folder of the data sets, or a place in object storage; it is made, or empty, or has an earlier export
    #[arg(long, value_name = "DIR|s3://…")]
    to: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = FormatArg::Parquet)]
    format: FormatArg,
    /// Divide each data set by the time of the commit, in UTC [default: as before, or day]
    #[arg(long, value_enum, value_name = "UNIT")]
    partition: Option<PartitionArg>,
    /// Export only rows of this table; may be repeated [default: as before, or all]
    #[arg(long, value_name = "DB.TABLE", value_parser = table)]
    table: Vec<(String, String)>,
    /// zstd level of the files, 1 (fast) to 22 (small)
    ///
    /// Text takes an eighth less at level 9, for six times the time of compressing, and a quarter less at 19, for a hundred times. Numbers
    /// hardly gain.
    #[arg(long, default_value_t = LEVEL_DEFAULT, value_parser = value_parser!(i32).range(1..=22))]
    level: i32,
    /// Only tell how much is new
    #[arg(long)]
    dry_run: bool,
    /// Export logs that their server encrypted, and encrypted archives, too: Parquet files are not encrypted
    #[arg(long)]
    plaintext: bool,
    /// Show sizes in bytes, not in KiB, MiB and so on
    #[arg(long)]
    bytes: bool,
    #[command(flatten)]
    inputs: SqlInputArgs,
    #[command(flatten)]
    progress: ProgressArgs,
    #[command(flatten)]
    follow: FollowArgs,
    /// Binary logs, archives, logs in archives; - is standard input
    #[arg(value_name = "INPUT", required_unless_present = "follow")]
    arguments: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    /// Parquet files, compressed with zstd
    Parquet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PartitionArg {
    /// A folder for each day: day=2026-11-24
    Day,
    /// A folder for each month: month=2026-11
    Month,
    /// No folders
    None,
}

/// The command line of `export`, if a whole one, program name included, asks for it.
pub(crate) fn asked_for(mut command_line: impl Iterator<Item = OsString>) -> Option<Vec<OsString>> {
    let program = command_line.next()?;
    (command_line.next()? == COMMAND).then(|| std::iter::once(program).chain(command_line).collect())
}

fn table(text: &str) -> Result<(String, String), String> {
    match text.split_once('.') {
        Some((database, table)) if !database.is_empty() && !table.is_empty() => {
            Ok((database.to_owned(), table.to_owned()))
        }
        _ => Err("expected DATABASE.TABLE".to_owned()),
    }
}

impl ExportArgs {
    pub(crate) fn run(self) -> Result<(), Error> {
        if self.to.is_file() {
            return Err(Error::Target(format!("{}: is a file, expected a folder", self.to.display())));
        }
        remove_unfinished_at_signals()?;
        let FormatArg::Parquet = self.format;
        let export = TableExport {
            to: self.to,
            partition: self.partition.map(Partition::from),
            tables: (!self.table.is_empty()).then_some(self.table),
            jobs: self.inputs.jobs(),
            is_dry: self.dry_run,
            plaintext: self.plaintext,
            level: self.level,
        };
        let schema = self.inputs.schema.open(self.follow.is_asked())?;
        if !self.arguments.is_empty() {
            let progress = self.progress.begin("exporting");
            let logs = self.inputs.logs_with(self.arguments, schema.as_ref(), export.tables.as_deref())?;
            let logs = logs.metered(progress.meter());
            let exported = export.run(&logs)?;
            progress.make_way();
            tell(&exported, export.is_dry, self.bytes)?;
        }
        match self.follow.is_asked() {
            true => self.follow.run(&export, self.bytes, &self.inputs.schema.server, schema.as_ref()),
            false => Ok(()),
        }
    }
}

/// A run that a signal ends leaves no files that don't count.
fn remove_unfinished_at_signals() -> Result<(), Error> {
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP]);
    let mut signals = signals.map_err(|error| Error::Log(format!("handle signals: {error}")))?;
    thread::spawn(move || {
        for signal in signals.forever() {
            let _none_begins = remove_unfinished();
            let _ = emulate_default_handler(signal);
        }
    });
    Ok(())
}

impl From<PartitionArg> for Partition {
    fn from(partition: PartitionArg) -> Self {
        match partition {
            PartitionArg::Day => Partition::Day,
            PartitionArg::Month => Partition::Month,
            PartitionArg::None => Partition::None,
        }
    }
}
