//! Tables: how the events of logs become rows.
//!
//! ```text
//! changes, "db"."table"   rows          a row for each row change
//! transactions            transactions  a row for each transaction, from an archive's directory where that is enough
//! events                  events        a row for each event
//! all of them at once     every         transactions, and batches for each user table: what export writes
//! columns of a user table picked        those alone, from an archive; `json_object`: keys and images as documents
//! rows with some values   meeting_runs  which parts of an archived log have them: the others are not read
//! counts of rows          counts        rows by table and operation, which are not made
//! how a transaction ended endings       of rows, which stand before the end of their transaction; `held` keeps them until then
//! ```
//!
//! Each is a [`TableReader`], which goes through one log and passes on batches in the log's order. `user` finds the columns of a
//! user table; their types and values are those of `binlogz-arrow`.

mod built_column;
mod columns;
mod counts;
mod endings;
mod events;
mod every;
mod frame;
mod held;
mod json_object;
pub(crate) mod meeting_runs;
mod picked;
mod rows;
mod statement_text;
mod transactions;
pub(crate) mod user;

use std::fmt::Debug;
use std::sync::Arc;

use binlogz_archive::directory::{LogDirectory, NeededDirectory};
use binlogz_archive::format::directory::DirectoryGroups;
use binlogz_archive::part::PickedLog;
use binlogz_flow::events::RunSummary;
use binlogz_flow::{Error, Input};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;

use crate::logs::Logs;
use crate::logs::unwanted::ReadingEnd;
use crate::logs::wanted::{ValueCondition, WantedLogs};

pub(crate) use counts::{CountedTables, OpenCounts, TableRowCounts};
pub(crate) use events::EventsTable;
pub(crate) use every::{EveryPart, EveryTable};
pub(crate) use held::HeldRows;
use meeting_runs::MeetingRuns;
pub(crate) use rows::ChangesTable;
pub(crate) use transactions::TransactionsTable;

/// Rows of a batch.
pub(crate) const ROWS_MAX: usize = 8192;

/// One log to be read.
#[derive(Clone, Copy)]
pub(crate) struct ReadJob<'a> {
    /// The logs, which know the names of columns.
    pub(crate) logs: &'a Logs,
    /// Which of them it is.
    pub(crate) index: usize,
    /// The name of its file.
    pub(crate) log: &'a str,
    pub(crate) wanted: &'a WantedLogs,
    /// The columns of each batch, and their types.
    pub(crate) outputs: &'a [MadeColumn],
    pub(crate) schema: &'a SchemaRef,
    pub(crate) workers: usize,
    /// Tells when nobody wants more of it.
    pub(crate) end: &'a Arc<dyn ReadingEnd>,
}

/// A column that is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MadeColumn {
    /// A column of the table, by its number.
    Column(usize),
    /// A field of a struct: the column's number, then the field's.
    Field(usize, usize),
    /// Whether there is a field of a struct: NULL where it is NULL, otherwise any value.
    Presence(usize, usize),
}

impl MadeColumn {
    /// The number of the table's column.
    pub(crate) fn column(self) -> usize {
        match self {
            MadeColumn::Column(column) | MadeColumn::Field(column, _) | MadeColumn::Presence(column, _) => {
                column
            }
        }
    }
}

/// A column that is the same for all rows of a table and an operation in a log, or in a transaction of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountedColumn {
    Log,
    Schema,
    Table,
    Operation,
    Gtid,
    CommittedAt,
    AppliedAt,
}

impl CountedColumn {
    /// The columns of an archive's directory that tell it; `None`: it is no column of a transaction.
    pub(crate) fn group(self) -> Option<DirectoryGroups> {
        match self {
            CountedColumn::Log | CountedColumn::Schema | CountedColumn::Table | CountedColumn::Operation => {
                None
            }
            CountedColumn::Gtid => Some(DirectoryGroups::GTIDS),
            CountedColumn::CommittedAt | CountedColumn::AppliedAt => Some(DirectoryGroups::TIMES),
        }
    }
}

/// Takes batches in order; fails when nobody reads them any more.
pub(crate) type BatchSink<'a> = &'a mut dyn FnMut(RecordBatch) -> Result<(), Error>;

/// A table over logs.
pub(crate) trait TableReader: Debug + Send + Sync {
    /// All of its columns.
    fn schema(&self) -> SchemaRef;

    /// Bytes of a log that a row of it takes, about and at least: a table of larger rows has fewer.
    fn row_size(&self) -> u64;

    /// Whether it has only rows of row events: other parts of an archive need not be read.
    fn is_of_rows(&self) -> bool;

    /// Whether parts of an archived log can be read apart, and together have the rows of the whole.
    fn is_divided(&self) -> bool {
        self.is_of_rows()
    }

    /// The value of an output, if it is the same for all rows of a table and an operation in a log, or in a transaction of it.
    fn counted(&self, _: MadeColumn) -> Option<CountedColumn> {
        None
    }

    /// Opens a log of an archive for columns of a table alone; `None`: it has to be read.
    fn open_picked(
        &self,
        _log: (&Logs, usize),
        _wanted: &WantedLogs,
        _outputs: &[MadeColumn],
    ) -> datafusion::common::Result<Option<PickedPart>> {
        Ok(None)
    }

    /// Reads an opened log; `sink` says whether it wants more. Returns the bytes that were read.
    fn read_picked(
        &self,
        _part: &PickedPart,
        _job: &ReadJob<'_>,
        _sink: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> binlogz_archive::Result<u64> {
        Ok(0)
    }

    /// The parts of an archived log that have rows which meet all of these conditions; `None`: all may have, or it isn't worth it to find out.
    fn meeting_runs(
        &self,
        _job: &ReadJob<'_>,
        _conditions: &[ValueCondition],
    ) -> datafusion::common::Result<Option<MeetingRuns>> {
        Ok(None)
    }

    /// What these outputs need of an archive's directory of transactions; `None`: they need the events.
    fn needed_directory(&self, _outputs: &[MadeColumn]) -> Option<NeededDirectory> {
        None
    }

    /// Makes rows of the transactions of these blocks of a log, in order.
    fn read_directory(
        &self,
        _directory: &LogDirectory,
        _blocks: &[(usize, u32)],
        _job: &ReadJob<'_>,
        _sink: BatchSink<'_>,
    ) -> Result<(), Error> {
        Ok(())
    }

    /// Reads a log.
    fn read(&self, job: ReadJob<'_>, input: Input, sink: BatchSink<'_>) -> Result<RunSummary, Error>;
}

/// A log of an archive, opened for columns of a table alone.
#[derive(Debug)]
pub(crate) struct PickedPart {
    log: PickedLog,
    needed: picked::NeededOutputs,
    pub(crate) blocks_read: usize,
    pub(crate) blocks_skipped: usize,
}

/// An error of Arrow's in a pipeline over logs.
fn arrow_error(error: datafusion::arrow::error::ArrowError) -> Error {
    binlogz_payload::Error::from(std::io::Error::other(error)).into()
}
