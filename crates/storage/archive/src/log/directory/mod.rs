//! The transactions of a part of a log, by column: what an archive's directory tells of a block.
//!
//! - `walk`: finds them, event by event
//! - `builder`: their columns, as far as the walk has come
//!
//! [`crate::format::directory`] has the bytes.

mod builder;
mod walk;

use binlogz_binlog::event::CommitTimestamps;
use binlogz_binlog::gtid::{Gtid, Tsid};
use binlogz_payload::Ineligible;

pub(crate) use walk::DirectoryWalk;

/// Why transactions stay as they are: those that can be told, in the order of their numbers in the format. New ones are added at the end.
pub(crate) const REASONS: [Ineligible; 12] = [
    Ineligible::AlreadyCompressed,
    Ineligible::NotRowFormat,
    Ineligible::NoRows,
    Ineligible::NonTransactional,
    Ineligible::Incident,
    Ineligible::NoGtid,
    Ineligible::Incomplete,
    Ineligible::UnknownEvents,
    Ineligible::TooLarge,
    Ineligible::FormatDescription,
    Ineligible::Positions,
    Ineligible::TransactionLength,
];

/// Transactions of a block, in the order of the log: those that begin in it, after the one that goes on where it begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockDirectory {
    /// Whether the first transaction began in an earlier block: only what is of it in this block is told.
    pub continues: bool,
    pub(crate) tables: Vec<DirectoryTable>,
    pub(crate) sources: Vec<GtidSource>,
    pub(crate) shapes: Vec<TransactionShape>,
    pub(crate) columns: DirectoryColumns,
}

/// Names of a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DirectoryTable {
    /// Name of its database.
    pub database: Vec<u8>,
    /// Its name.
    pub table: Vec<u8>,
}

/// Where a transaction's GTID is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum GtidSource {
    /// No GTID event begins it.
    Missing,
    Anonymous,
    Server(Tsid),
}

/// What many transactions have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TransactionShape {
    /// How many events it has.
    pub events: u64,
    /// Bytes of its GTID event and of the other events' checksums.
    pub overhead: u64,
    /// How it ends.
    pub ending: PartEnding,
    /// Rows of its tables, in the order in which the tables come.
    pub rows: Vec<ShapeRows>,
}

/// Rows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShapeRows {
    /// The table's number in [`BlockDirectory::table`].
    pub table: u32,
    /// Rows inserted, updated and deleted.
    pub counts: [u64; 3],
}

/// The end of a transaction, or of the part of it that is in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PartEnding {
    /// It goes on in the next block, or the log ends.
    Open,
    /// A server with compression would have compressed it.
    Compressible,
    /// It ends, and would stay as it is.
    Plain(Ineligible),
}

/// A value for each transaction; columns that weren't asked for are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DirectoryColumns {
    pub(crate) shape: Vec<i64>,
    pub(crate) source: Vec<i64>,
    pub(crate) gno: Vec<i64>,
    pub(crate) server_id: Vec<i64>,
    /// The timestamp of its first event.
    pub(crate) logged_at: Vec<i64>,
    /// Where it begins in the log without payloads; where the block begins, if it goes on from an earlier one.
    pub(crate) position: Vec<i64>,
    pub(crate) bytes: Vec<i64>,
    /// Its number plus 1; 0: no statement tells it.
    pub(crate) thread: Vec<i64>,
    /// Microseconds since 1970; 0: unknown.
    pub(crate) applied_at: Vec<i64>,
    pub(crate) committed_at: Vec<i64>,
}

/// What is told of a transaction, or of the part of it in a block. What wasn't asked for is 0 or `None`.
#[derive(Debug, Clone, Copy)]
pub struct DirectoryEntry<'a> {
    /// Whether it begins in the block. If not, only `shape`, `bytes` and `thread_id` are told.
    pub has_begun: bool,
    /// Its shape.
    pub shape: &'a TransactionShape,
    /// Its GTID; `None`: it has none.
    pub gtid: Option<Gtid>,
    /// The server of its first event.
    pub server_id: u32,
    /// The timestamp of its first event, in seconds since 1970; 0: none.
    pub logged_at: u32,
    /// Where it begins in the log, in bytes.
    pub position: u64,
    /// Bytes of its events.
    pub bytes: u64,
    /// The thread of its first statement.
    pub thread_id: Option<u32>,
    /// When it was committed on the server that wrote the log, in microseconds since 1970.
    pub applied_at: Option<i64>,
    /// When it was committed first, in microseconds since 1970.
    pub committed_at: Option<i64>,
}

impl BlockDirectory {
    /// How many transactions there are.
    pub(crate) fn len(&self) -> usize {
        self.columns.shape.len()
    }

    /// A table by its number.
    pub fn table(&self, number: u32) -> Option<&DirectoryTable> {
        self.tables.get(number as usize)
    }

    /// How many tables have rows in the block.
    pub fn table_count(&self) -> usize {
        self.tables.len()
    }

    /// The transactions, in the order of the log.
    pub fn entries(&self) -> impl Iterator<Item = DirectoryEntry<'_>> {
        (0..self.len()).filter_map(|index| self.entry(index))
    }

    /// Which transactions have a GTID event in the block, by their numbers; their sources must have been asked for.
    pub(crate) fn gtid_events(&self) -> impl Iterator<Item = usize> {
        let has_event = |source: &i64| {
            let source = self.sources.get(*source as usize);
            source.is_some_and(|source| *source != GtidSource::Missing)
        };
        let begun = self.columns.source.iter().enumerate().skip(usize::from(self.continues));
        begun.filter(move |(_, source)| has_event(source)).map(|(index, _)| index)
    }

    /// Where the transactions begin that have a GTID event in the block.
    pub(crate) fn positions_of_gtid_events(&self) -> Vec<u64> {
        let positions = &self.columns.position;
        self.gtid_events().map(|index| positions.get(index).copied().unwrap_or_default() as u64).collect()
    }

    fn entry(&self, index: usize) -> Option<DirectoryEntry<'_>> {
        let columns = &self.columns;
        let value = |column: &[i64]| column.get(index).copied().unwrap_or_default();
        let moment = |column: &[i64]| Some(value(column)).filter(|moment| *moment > 0);
        let source = columns.source.get(index).and_then(|source| self.sources.get(*source as usize));
        let gtid = match source {
            Some(GtidSource::Server(tsid)) => Gtid::new(*tsid, value(&columns.gno) as u64).ok(),
            Some(GtidSource::Missing | GtidSource::Anonymous) | None => None,
        };
        Some(DirectoryEntry {
            has_begun: index > 0 || !self.continues,
            shape: self.shapes.get(value(&columns.shape) as usize)?,
            gtid,
            server_id: value(&columns.server_id) as u32,
            logged_at: value(&columns.logged_at) as u32,
            position: value(&columns.position) as u64,
            bytes: value(&columns.bytes) as u64,
            thread_id: value(&columns.thread).checked_sub(1).and_then(|id| u32::try_from(id).ok()),
            applied_at: moment(&columns.applied_at),
            committed_at: moment(&columns.committed_at),
        })
    }
}

/// When a transaction was committed here, and when first, in microseconds since 1970; 0: unknown.
pub(crate) fn moments(times: Option<CommitTimestamps>) -> [i64; 2] {
    let Some(CommitTimestamps { immediate, original }) = times else { return [0; 2] };
    [immediate, original.unwrap_or(immediate)].map(|time| i64::try_from(time).unwrap_or_default())
}
