//! Writes the folded log: the net changes of a segment in the order in which constraints hold, and borders as they are.
//!
//! Deletes, updates and inserts of a segment each need only those of the kind before to be committed, so a replica applies the
//! transactions of a kind side by side. Rows of tables without a known key are found by scanning: they go one after the other.

use std::io::{self, Write};
use std::num::NonZeroU64;

use binlogz_binlog::EventType;
use binlogz_binlog::event::{AnyGtidEvent, RowsFlags};
use binlogz_payload::{Spool, SpoolMemory};

use super::net::NetChange;
use crate::log::writer::LogWriter;
use crate::record::{
    FoldTableFields, LoggedImages, OrderedRow, PassedEvent, RecordReader, broken, map_of_kept,
};

/// Memory for net changes that wait for their turn.
const ORDERED_MEMORY: usize = 16 << 20;
/// Bytes of a transaction: mysqlbinlog makes one statement of the rows of a table, which has to fit into `max_allowed_packet`,
/// 16 MiB in clients, as base64.
const TRANSACTION_SIZE_MAX: u64 = 4 << 20;

/// What becomes of a folded log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FoldAim {
    /// A server applies it.
    #[default]
    Apply,
    /// It is taken back.
    TakeBack,
}

/// A table of the logs, and how its rows are written.
#[derive(Debug)]
pub(super) struct FoldedTable {
    pub(super) has_key: bool,
    /// Whether it may have foreign keys, or others may refer to it.
    pub(super) is_bound: bool,
    /// Whether its rows are folded.
    pub(super) is_chosen: bool,
    /// `database.table`.
    pub(super) shown: String,
    /// The name, for comparisons.
    pub(super) name: Vec<u8>,
    /// Whether its engine may have no transactions. With GTIDs a server refuses to change such a table together with others.
    pub(super) is_of_plain_engine: bool,
    map: Vec<u8>,
    /// A bit for each column.
    columns: Vec<u8>,
}

impl FoldedTable {
    pub(super) fn read(fields: &[u8]) -> io::Result<Self> {
        let FoldTableFields { has_key, database, table, map } = FoldTableFields::read(fields)?;
        let width = map_of_kept(map).map_err(io::Error::other)?.column_count();
        let mut columns = vec![u8::MAX; width.div_ceil(8)];
        if let (Some(last), true) = (columns.last_mut(), width % 8 > 0) {
            *last = (1 << (width % 8)) - 1;
        }
        Ok(FoldedTable {
            has_key,
            is_bound: true,
            is_chosen: true,
            shown: format!("{}.{}", String::from_utf8_lossy(database), String::from_utf8_lossy(table)),
            name: [database, b"\0", table].concat(),
            is_of_plain_engine: false,
            map: map.to_vec(),
            columns,
        })
    }
}

/// The net changes of a segment, by kind.
#[derive(Debug)]
pub(super) struct OrderedRows {
    deletes: Spool,
    updates: Spool,
    inserts: Spool,
}

impl OrderedRows {
    pub(super) fn new() -> Self {
        let memory = SpoolMemory::new(ORDERED_MEMORY);
        let [deletes, updates, inserts] = [(); 3].map(|()| Spool::new(&memory, Vec::new()));
        OrderedRows { deletes, updates, inserts }
    }

    /// By kind, in the order in which they are written.
    fn in_order(&self) -> [(&Spool, EventType); 3] {
        [
            (&self.deletes, EventType::DELETE_ROWS),
            (&self.updates, EventType::UPDATE_ROWS),
            (&self.inserts, EventType::WRITE_ROWS),
        ]
    }

    pub(super) fn take(&mut self, table: u32, change: NetChange<'_>) -> io::Result<()> {
        match change {
            NetChange::Insert(after) => OrderedRow { table, before: b"", after }.put(&mut self.inserts),
            NetChange::Update(before, after) => OrderedRow { table, before, after }.put(&mut self.updates),
            NetChange::Delete(before) => OrderedRow { table, before, after: b"" }.put(&mut self.deletes),
            NetChange::Split(before, after) => {
                self.take(table, NetChange::Delete(before))?;
                self.take(table, NetChange::Insert(after))
            }
        }
    }
}

/// Rows and transactions that were written.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WrittenCounts {
    pub(super) transactions: u64,
    pub(super) inserted: u64,
    pub(super) updated: u64,
    pub(super) deleted: u64,
}

/// Writes the folded log.
pub(super) struct SegmentWriter<'o> {
    writer: LogWriter<'o>,
    rows_max: NonZeroU64,
    aim: FoldAim,
    pub(super) counts: WrittenCounts,
}

impl<'o> SegmentWriter<'o> {
    pub(super) fn new(out: &'o mut dyn Write, (rows_max, aim): (NonZeroU64, FoldAim)) -> io::Result<Self> {
        let writer = LogWriter::new(out)?;
        Ok(SegmentWriter { writer, rows_max, aim, counts: WrittenCounts::default() })
    }

    /// Writes the net changes of a segment, whose last transaction was committed at a time in microseconds since 1970.
    pub(super) fn segment(
        &mut self,
        rows: &OrderedRows,
        tables: &[FoldedTable],
        time: u64,
    ) -> io::Result<()> {
        if self.aim == FoldAim::TakeBack {
            // Those without foreign keys come last: they are taken back first, as many at once as one likes.
            self.rows_together(rows, (tables, true), time)?;
            return self.rows_together(rows, (tables, false), time);
        }
        self.counts.deleted += self.rows((&rows.deletes, EventType::DELETE_ROWS), tables, time)?;
        self.counts.updated += self.rows((&rows.updates, EventType::UPDATE_ROWS), tables, time)?;
        self.counts.inserted += self.rows((&rows.inserts, EventType::WRITE_ROWS), tables, time)?;
        Ok(())
    }

    /// Writes all rows of the tables that may have foreign keys, or of the others, as one transaction.
    fn rows_together(
        &mut self,
        rows: &OrderedRows,
        (tables, is_bound): (&[FoldedTable], bool),
        time: u64,
    ) -> io::Result<()> {
        // As the server says of rows that foreign keys changed: they are restored unchecked, and looked through at the end.
        let flags = match is_bound {
            true => RowsFlags::NO_FOREIGN_KEY_CHECKS.0 | RowsFlags::USE_SQL_FOREIGN_KEY.0,
            false => 0,
        };
        let mut images = Vec::new();
        let mut counts = [0, 0, 0];
        for ((rows, event_type), count) in rows.in_order().into_iter().zip(&mut counts) {
            let mut reader = RecordReader::new(rows.reader(0..rows.size()));
            while let Some((_, content)) = reader.next()? {
                let row = OrderedRow::read(content)?;
                let table = tables.get(row.table as usize).ok_or_else(broken)?;
                if table.is_bound == is_bound {
                    self.row(&row, (table, event_type), &mut images, RowsFlags(flags))?;
                    *count += 1;
                }
            }
        }
        let [deleted, updated, inserted] = counts;
        self.counts.deleted += deleted;
        self.counts.updated += updated;
        self.counts.inserted += inserted;
        self.counts.transactions += u64::from(counts.iter().sum::<u64>() > 0);
        self.writer.commit(time)
    }

    /// Writes a row.
    fn row(
        &mut self,
        row: &OrderedRow<'_>,
        (table, event_type): (&FoldedTable, EventType),
        images: &mut Vec<u8>,
        flags: RowsFlags,
    ) -> io::Result<()> {
        images.clear();
        images.extend_from_slice(row.before);
        images.extend_from_slice(row.after);
        let bitmaps = match event_type {
            EventType::UPDATE_ROWS => [&*table.columns, &*table.columns].concat(),
            _ => table.columns.clone(),
        };
        let logged = LoggedImages { event_type, bitmaps: &bitmaps, images, before_size: 0 };
        self.writer.row((row.table as usize, &*table.map), &logged, flags)
    }

    /// Writes rows that are changed in the same way; their number.
    fn rows(
        &mut self,
        (rows, event_type): (&Spool, EventType),
        tables: &[FoldedTable],
        time: u64,
    ) -> io::Result<u64> {
        let barrier = self.writer.last_number();
        let mut reader = RecordReader::new(rows.reader(0..rows.size()));
        let mut images = Vec::new();
        let mut count = 0;
        let mut open = OpenTransaction::default();
        while let Some((_, content)) = reader.next()? {
            let row = OrderedRow::read(content)?;
            let table = tables.get(row.table as usize).ok_or_else(broken)?;
            let is_full = open.rows >= self.rows_max.get() || self.writer.open_size() >= TRANSACTION_SIZE_MAX;
            let is_apart = (table.is_of_plain_engine || open.is_of_plain_engine) && open.table != row.table;
            if is_full || open.rows > 0 && (is_apart || open.is_by_scan == table.has_key) {
                self.commit(&mut open, barrier, time)?;
            }
            self.row(&row, (table, event_type), &mut images, RowsFlags::NO_FOREIGN_KEY_CHECKS)?;
            open.rows += 1;
            open.is_by_scan = !table.has_key;
            open.table = row.table;
            open.is_of_plain_engine = table.is_of_plain_engine;
            count += 1;
        }
        self.commit(&mut open, barrier, time)?;
        Ok(count)
    }

    fn commit(&mut self, open: &mut OpenTransaction, barrier: i64, time: u64) -> io::Result<()> {
        if open.rows == 0 {
            return Ok(());
        }
        let last_committed = if open.is_by_scan { self.writer.last_number() } else { barrier };
        self.writer.commit_after(last_committed, time)?;
        self.counts.transactions += 1;
        *open = OpenTransaction::default();
        Ok(())
    }

    /// An event of a transaction that goes through.
    pub(super) fn pass(&mut self, event: &PassedEvent<'_>) -> io::Result<()> {
        self.writer.pass(event)
    }

    /// Ends a transaction that goes through.
    pub(super) fn pass_commit(&mut self, gtid: Option<&AnyGtidEvent<'_>>, time: u64) -> io::Result<()> {
        self.counts.transactions += 1;
        self.writer.pass_commit(gtid, time)
    }
}

/// The transaction that is being written.
#[derive(Default)]
struct OpenTransaction {
    rows: u64,
    /// Whether its rows have no key by which they are found.
    is_by_scan: bool,
    /// The table of its last row, and whether the engine of that one may have no transactions.
    table: u32,
    is_of_plain_engine: bool,
}
