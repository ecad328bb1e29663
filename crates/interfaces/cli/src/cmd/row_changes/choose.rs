//! The options that choose transactions and rows, and the schema file.

use binlogz_binlog::gtid::{Gtid, GtidSet};
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
    pub(super) fn selection(&self) -> Result<RowSelection> {
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

    /// Whether a position is given, which needs to know of which log it is.
    pub(super) fn has_position(&self) -> bool {
        self.start_position.is_some() || self.stop_position.is_some()
    }

    /// The offsets of the `number`th of the logs, counted from 0.
    pub(super) fn range(&self, number: usize, count: usize) -> Range {
        Range {
            start: self.start_position.filter(|_| number == 0).unwrap_or(WHOLE_LOG.start),
            stop: self.stop_position.filter(|_| number + 1 == count).unwrap_or(WHOLE_LOG.stop),
        }
    }
}

impl ChooseArgs {
    /// The offsets that lie after the end of the `number`th of the logs.
    pub(super) fn unmet_positions(&self, (number, count): (usize, usize), end: u64) -> Vec<UnmetRequest> {
        let Range { start, stop } = self.range(number, count);
        let start = (start > end).then(|| UnmetRequest::start_position(start, end));
        let stop = (stop > end && stop != WHOLE_LOG.stop).then(|| UnmetRequest::stop_position(stop, end));
        start.into_iter().chain(stop).collect()
    }
}

/// `database.table`, each in backticks or not.
pub(in crate::cmd) fn table(text: &str) -> Result<(String, String), String> {
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
