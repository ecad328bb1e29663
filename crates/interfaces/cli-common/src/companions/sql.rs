//! `binlogz sql`: options and arguments.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use super::sql_inputs::{BaseArgs, SqlInputArgs, SqlProgressArgs};
use crate::help::{EXAMPLES_FIRST, HELP_WIDTH};
use crate::units::above_zero;

/// The default of --memory, in MiB.
pub const MEMORY: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

const EXAMPLES: &str = r#"Examples:
  binlogz sql 'SELECT schema, "table", count(*) FROM changes GROUP BY 1, 2 ORDER BY 3 DESC' binlog.0000*
  binlogz sql 'SELECT sum(after.total) FROM "shop"."orders"' s3://bucket/archive
  binlogz sql --format csv -f report.sql archive > report.csv
  binlogz sql --param id=42 'SELECT * FROM "shop"."orders" WHERE after.id = $id' archive
  binlogz sql --base db1:3306 "SELECT * FROM shop.orders AS OF '2026-11-27 10:42'" archive
  binlogz sql archive                                     # a prompt

Exit codes: 0 done, 1 changes in the logs could not be read (each is named), 2 bad usage, bad SQL, bad input or I/O trouble."#;

/// Ask MySQL's binary logs in SQL
///
/// The tables are transactions, changes and events, and each table with row changes in the logs, as in "shop"."orders".
/// The SQL is that of Apache DataFusion; statements can only read. Archives are read as they are: blocks that can't have what
/// is asked for are neither read nor unpacked. Without a statement there is a prompt, or standard input has the statements.
/// Other programs connect to binlogz sql serve.
#[derive(Debug, Parser)]
#[command(name = "binlogz-sql", bin_name = "binlogz sql", version, max_term_width = HELP_WIDTH, after_help = EXAMPLES, help_template = EXAMPLES_FIRST)]
pub struct SqlArgs {
    /// Run the statements of this file; - is standard input
    #[arg(long, short, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = SqlFormat::Table)]
    pub format: SqlFormat,
    /// Memory for reading, sorts, joins and groups, in MiB; what doesn't fit goes to temporary files
    #[arg(long, value_name = "MIB", default_value_t = MEMORY, value_parser = above_zero)]
    pub memory: NonZeroUsize,
    /// Value of a parameter, $NAME in the statement ($1, or ? for the next number); may be repeated
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parameter)]
    pub parameters: Vec<(String, String)>,
    /// How the logs are read.
    #[command(flatten)]
    pub inputs: SqlInputArgs,
    /// Where tables are known as they were.
    #[command(flatten)]
    pub base: BaseArgs,
    /// Leave out and mask the tables and columns that this policy names
    #[arg(long, value_name = "FILE.toml", conflicts_with = "base")]
    pub exits: Option<PathBuf>,
    /// What is told of the work.
    #[command(flatten)]
    pub progress: SqlProgressArgs,
    /// The statement, if it isn't elsewhere; then binary logs, archives, logs in archives; - is standard input
    #[arg(value_name = "STATEMENT|INPUT")]
    pub arguments: Vec<OsString>,
}

/// The formats of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SqlFormat {
    /// A table for people
    #[value(alias = "text")]
    Table,
    /// Comma-separated values with a heading; NULL is empty
    Csv,
    /// Tab-separated values, as mysql --batch has them
    Tsv,
    /// One JSON object a line
    Json,
    /// Arrow's IPC stream
    Arrow,
    /// A Parquet file with the rows of one statement
    Parquet,
}

/// Reads `NAME=VALUE`; the name may have its `$`.
fn parameter(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=');
    let (name, value) = parts.ok_or("expected NAME=VALUE; the statement has it as $NAME")?;
    let name = name.strip_prefix('$').unwrap_or(name);
    match !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        true => Ok((name.to_owned(), value.to_owned())),
        false => Err(format!("the name of a parameter is {name:?}, expected letters, digits and _")),
    }
}
