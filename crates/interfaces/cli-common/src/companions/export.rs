//! `binlogz export`: options and arguments.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum, value_parser};

use super::sql_inputs::{SqlInputArgs, SqlProgressArgs};
use crate::help::{EXAMPLES_FIRST, HELP_WIDTH};

/// The default of --level.
pub const LEVEL: i32 = 3;
/// The default of --interval, in seconds.
pub const INTERVAL: u64 = 60;
/// The default of --at-once, in MiB.
pub const AT_ONCE: u64 = 512;

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
pub struct ExportArgs {
    /// Folder of the data sets, or a place in object storage; it is made, or empty, or has an earlier export
    #[arg(long, value_name = "DIR|s3://…")]
    pub to: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = ExportFormat::Parquet)]
    pub format: ExportFormat,
    /// Divide each data set by the time of the commit, in UTC [default: as before, or day]
    #[arg(long, value_enum, value_name = "UNIT")]
    pub partition: Option<ExportPartition>,
    /// Export only rows of this table; may be repeated [default: as before, or all]
    #[arg(long, value_name = "DB.TABLE", value_parser = table)]
    pub table: Vec<(String, String)>,
    /// zstd level of the files, 1 (fast) to 22 (small)
    ///
    /// Text takes an eighth less at level 9, for six times the time of compressing, and a quarter less at 19, for a hundred times. Numbers
    /// hardly gain.
    #[arg(long, default_value_t = LEVEL, value_parser = value_parser!(i32).range(1..=22))]
    pub level: i32,
    /// Only tell how much is new
    #[arg(long)]
    pub dry_run: bool,
    /// Export logs that their server encrypted, and encrypted archives, too: Parquet files are not encrypted
    #[arg(long)]
    pub plaintext: bool,
    /// Show sizes in bytes, not in KiB, MiB and so on
    #[arg(long)]
    pub bytes: bool,
    /// Leave out and mask the tables and columns that this policy names
    #[arg(long, value_name = "FILE.toml", conflicts_with = "follow")]
    pub exits: Option<PathBuf>,
    /// How the logs are read.
    #[command(flatten)]
    pub inputs: SqlInputArgs,
    /// What is told of the work.
    #[command(flatten)]
    pub progress: SqlProgressArgs,
    /// The server that is followed.
    #[command(flatten)]
    pub follow: FollowArgs,
    /// Binary logs, archives, logs in archives; - is standard input
    #[arg(value_name = "INPUT", required_unless_present = "follow")]
    pub arguments: Vec<OsString>,
}

/// The formats of data sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Parquet files, compressed with zstd
    Parquet,
}

/// The folders of a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportPartition {
    /// A folder for each day: day=2026-11-24
    Day,
    /// A folder for each month: month=2026-11
    Month,
    /// No folders
    None,
}

/// The server that is followed.
#[derive(Debug, Args)]
pub struct FollowArgs {
    /// Then export what a server or relay has that is new, and again every --interval, until a signal ends it
    ///
    /// USER@HOST:PORT, of which the host suffices, a socket or mysql://…; it needs GTIDs. Option files of MySQL's programs say more: groups client and
    /// binlogz.
    #[arg(long, value_name = "SERVER", conflicts_with = "dry_run")]
    pub follow: Option<String>,
    /// Seconds from one look at the followed server to the next
    #[arg(long, value_name = "SECONDS", default_value_t = INTERVAL, requires = "follow")]
    pub interval: u64,
    /// MiB that are received of a followed server before they are exported; a transaction is never divided
    #[arg(long, value_name = "MIB", default_value_t = AT_ONCE, requires = "follow")]
    pub at_once: u64,
}

fn table(text: &str) -> Result<(String, String), String> {
    match text.split_once('.') {
        Some((database, table)) if !database.is_empty() && !table.is_empty() => {
            Ok((database.to_owned(), table.to_owned()))
        }
        _ => Err("expected DATABASE.TABLE".to_owned()),
    }
}

impl FollowArgs {
    /// Whether a server is to be followed.
    pub fn is_asked(&self) -> bool {
        self.follow.is_some()
    }
}
