//! The options that choose transactions and rows, and the schema file.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::{MAGIC, MAGIC_ENCRYPTED};
use binlogz_print::met::UnmetRequest;
use binlogz_row_changes::{Condition, Operation, PassedTables, Range, RowSelection};
use clap::{Args, ValueEnum};

use super::WHOLE_LOG;
use crate::failure::{CommandFailure, Result};
use crate::time::GivenTime;

/// Which transactions and rows; all by default.
#[derive(Debug, Args)]
#[command(next_help_heading = "Choosing transactions and rows")]
pub(super) struct ChooseArgs {
    /// Only these transactions
    #[arg(long, value_name = "SET", alias = "include-gtids")]
    gtids: Option<GtidSet>,
    /// Nothing from this transaction on
    #[arg(long, value_name = "GTID", hide_short_help = true)]
    stop_before_gtid: Option<Gtid>,
    /// Only transactions that begin at this offset of the first log, or later
    #[arg(long, value_name = "POS", hide_short_help = true)]
    start_position: Option<u64>,
    /// Only transactions that begin before this offset of the last log
    #[arg(long, value_name = "POS", hide_short_help = true)]
    stop_position: Option<u64>,
    /// Only the transaction that begins at this offset of this log, as binlog.000042:4711
    #[arg(long, value_name = "LOG:POS", hide_short_help = true, conflicts_with_all = ["gtids", "start_position", "stop_position"])]
    transaction_at: Option<LogOffset>,
    /// Only transactions committed at this time or later: '2026-11-22 23:10', 23:10, 'yesterday 23:10', -1h …
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    start_datetime: Option<GivenTime>,
    /// Only transactions committed before this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, alias = "until-datetime")]
    stop_datetime: Option<GivenTime>,
    /// Only transactions of this session, as SHOW PROCESSLIST called it; may be repeated
    #[arg(long, value_name = "N", hide_short_help = true)]
    thread_id: Vec<u32>,
    /// Only rows of this table; may be repeated
    #[arg(long, value_name = "DB.TABLE", value_parser = table)]
    table: Vec<(String, String)>,
    /// Only rows that were changed so; may be repeated
    #[arg(long, value_enum, ignore_case = true)]
    operation: Vec<OperationArg>,
    /// Only rows of which one image, before or after the change, meets this SQL condition
    ///
    /// Comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL. before.x and after.x are a column in one image; @3 is the
    /// third column.
    #[arg(long, value_name = "CONDITION")]
    r#where: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OperationArg {
    Insert,
    Update,
    Delete,
}

impl ChooseArgs {
    /// The selection, in which all tables of a database may be chosen.
    pub(super) fn selection_of_databases(&self) -> Result<RowSelection> {
        let condition = self.r#where.as_deref().map(Condition::parse).transpose();
        let operation = |operation: &OperationArg| match operation {
            OperationArg::Insert => Operation::Insert,
            OperationArg::Update => Operation::Update,
            OperationArg::Delete => Operation::Delete,
        };
        Ok(RowSelection {
            gtids: self.gtids.clone(),
            start_time: self.start_datetime.map(GivenTime::microseconds),
            stop_time: self.stop_datetime.map(GivenTime::microseconds),
            stop_before_gtid: self.stop_before_gtid,
            tables: self.table.clone(),
            operations: self.operation.iter().map(operation).collect(),
            thread_ids: self.thread_id.clone(),
            passed: PassedTables::default(),
            condition: condition.map_err(|error| CommandFailure::Line(error.to_string()))?,
        })
    }

    pub(super) fn selection(&self) -> Result<RowSelection> {
        match self.table.iter().find(|(_, name)| name == RowSelection::ALL_TABLES) {
            Some((database, name)) => Err(CommandFailure::of(
                &"--table",
                format_args!(
                    "{database}.{name}, expected DB.TABLE: only undo --all takes all tables of a database"
                ),
            )),
            None => self.selection_of_databases(),
        }
    }

    /// Whether a position is given, which needs to know of which log it is.
    pub(super) fn has_position(&self) -> bool {
        self.start_position.is_some() || self.stop_position.is_some()
    }

    /// The one transaction that is chosen by its place.
    pub(super) fn transaction_at(&self) -> Option<&LogOffset> {
        self.transaction_at.as_ref()
    }

    /// The offsets of the `number`th of the logs, counted from 0, which has this name.
    pub(super) fn range(&self, (number, count): (usize, usize), name: &str) -> Range {
        match &self.transaction_at {
            // A transaction begins there, or none.
            Some(place) if place.is_in(name) => {
                Range { start: place.offset, stop: place.offset.saturating_add(1) }
            }
            Some(_) => Range { start: u64::MAX, stop: u64::MAX },
            None => self.positions(number, count),
        }
    }

    fn positions(&self, number: usize, count: usize) -> Range {
        Range {
            start: self.start_position.filter(|_| number == 0).unwrap_or(WHOLE_LOG.start),
            stop: self.stop_position.filter(|_| number + 1 == count).unwrap_or(WHOLE_LOG.stop),
        }
    }
}

impl ChooseArgs {
    /// The offsets that lie after the end of the `number`th of the logs.
    pub(super) fn unmet_positions(&self, (number, count): (usize, usize), end: u64) -> Vec<UnmetRequest> {
        let Range { start, stop } = self.positions(number, count);
        let start = (start > end).then(|| UnmetRequest::start_position(start, end));
        let stop = (stop > end && stop != WHOLE_LOG.stop).then(|| UnmetRequest::stop_position(stop, end));
        start.into_iter().chain(stop).collect()
    }
}

/// Where a transaction begins: `binlog.000042:4711`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cmd) struct LogOffset {
    /// The log, as it was given.
    pub(in crate::cmd) log: String,
    /// The offset there, in bytes.
    pub(in crate::cmd) offset: u64,
}

impl LogOffset {
    /// Whether it is in the log of this name, which has no folder.
    fn is_in(&self, name: &str) -> bool {
        self.log.rsplit('/').next() == Some(name)
    }

    /// Which of these logs it is in, counted from 0.
    pub(in crate::cmd) fn place_in(&self, names: impl Iterator<Item = String> + Clone) -> Result<usize> {
        let places = names.clone().enumerate().filter(|(_, name)| self.is_in(name));
        match &*places.map(|(place, _)| place).collect::<Vec<_>>() {
            [place] => Ok(*place),
            [] => {
                let first = names.clone().next();
                let last = names.last();
                let of = first.zip(last).map(|(first, last)| format!(", expected one of {first} to {last}"));
                let found = format!("is none of the logs{}", of.unwrap_or_default());
                Err(CommandFailure::of(&self.log, found))
            }
            [..] => Err(CommandFailure::of(&self.log, "several logs have this name, expected one")),
        }
    }
}

impl FromStr for LogOffset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let place = text.rsplit_once(':').and_then(|(log, offset)| Some((log, offset.parse().ok()?)));
        match place {
            Some((log, offset)) if !log.is_empty() => Ok(LogOffset { log: log.to_owned(), offset }),
            Some(_) | None => Err("expected LOG:POS, as binlog.000042:4711".to_owned()),
        }
    }
}

impl fmt::Display for LogOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.log, self.offset)
    }
}

/// `database.table`, each in backticks or not. A log or a folder in a table's place is an error: no row would be found of a table of that name.
pub(in crate::cmd) fn table(text: &str) -> Result<(String, String), String> {
    if is_log_or_folder(Path::new(text)) {
        let what =
            "this is a log or a folder, expected DB.TABLE here, as shop.orders, and logs after the table";
        return Err(what.to_owned());
    }
    let wrong = || "expected DB.TABLE, as shop.orders".to_owned();
    let (database, table) = text.split_once('.').ok_or_else(wrong)?;
    let bare = |name: &str| {
        name.strip_prefix('`').and_then(|name| name.strip_suffix('`')).unwrap_or(name).to_owned()
    };
    match (bare(database), bare(table)) {
        (database, table) if database.is_empty() || table.is_empty() => Err(wrong()),
        names => Ok(names),
    }
}

/// A log, or a folder that is named with its path: a file that can't be read or isn't a log, and a folder here, may have the name of a table.
fn is_log_or_folder(path: &Path) -> bool {
    let mut magic = [0; MAGIC.len()];
    if !path.is_file() {
        return path.components().count() > 1 && path.is_dir();
    }
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && [MAGIC, MAGIC_ENCRYPTED].contains(&magic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_or_a_folder_is_no_table() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("binlog.000001"), MAGIC).unwrap();
        std::fs::write(path("shop.orders"), "-- a dump of the table").unwrap();
        std::fs::create_dir(path("archive.old")).unwrap();
        let read = |name: &str| table(path(name).to_str().unwrap());
        for name in ["binlog.000001", "archive.old"] {
            assert!(read(name).unwrap_err().contains("is a log or a folder"), "{name}");
        }
        read("shop.orders").unwrap();
        assert_eq!(table("`shop`.orders").unwrap(), ("shop".to_owned(), "orders".to_owned()));
    }

    #[test]
    fn a_place_names_one_log() {
        let place: LogOffset = "/data/binlog.000042:4711".parse().unwrap();
        assert_eq!((place.offset, place.to_string().as_str()), (4711, "/data/binlog.000042:4711"));
        let names =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>().into_iter();
        let place_in = |logs: &[&str]| place.place_in(names(logs)).map_err(|error| format!("{error:?}"));
        assert_eq!(place_in(&["binlog.000041", "binlog.000042"]), Ok(1));
        let none = place_in(&["binlog.000001", "binlog.000009"]).unwrap_err();
        assert!(
            none.contains("is none of the logs, expected one of binlog.000001 to binlog.000009"),
            "{none}"
        );
        let several = place_in(&["binlog.000042", "binlog.000042"]).unwrap_err();
        assert!(several.contains("several logs have this name, expected one"), "{several}");
        for text in ["binlog.000042", "binlog.000042:", ":4711", "binlog.000042:-1"] {
            assert!(text.parse::<LogOffset>().is_err(), "{text}");
        }
    }
}
