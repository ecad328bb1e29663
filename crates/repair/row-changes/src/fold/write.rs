//! Writes the folded log: the net changes of a segment in the order in which constraints hold, and borders as they are.
//!
//! Deletes, updates and inserts of a segment each need only those of the kind before to be committed, so a replica applies the
//! transactions of a kind side by side. Rows of tables without a known key are found by scanning: they go one after the other. If a log with GTIDs
//! has too few of them, transactions are larger, and the last one takes all that is left.

use std::io::{self, Write};
use std::num::NonZeroU64;

use binlogz_binlog::event::{AnyGtidEvent, RowsFlags};
use binlogz_binlog::gtid::GtidSet;
use binlogz_payload::{Spool, SpoolMemory};

use super::gtids::{GtidPlaces, SegmentGtids};
use super::net::NetChange;
use crate::choose::Operation;
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
    /// Its database and its own name.
    pub(super) fn names(&self) -> (String, String) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let place = self.name.iter().position(|byte| *byte == 0).unwrap_or(self.name.len());
        let (database, table) = self.name.split_at_checked(place).unwrap_or_default();
        (text(database), text(table.get(1..).unwrap_or_default()))
    }

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
    count: u64,
}

impl OrderedRows {
    pub(super) fn new() -> Self {
        let memory = SpoolMemory::new(ORDERED_MEMORY);
        let [deletes, updates, inserts] = [(); 3].map(|()| Spool::new(&memory, Vec::new()));
        OrderedRows { deletes, updates, inserts, count: 0 }
    }

    /// Bytes of all of them.
    fn size(&self) -> u64 {
        [&self.deletes, &self.updates, &self.inserts].map(Spool::size).iter().sum()
    }

    /// By kind, in the order in which they are written.
    fn in_order(&self) -> [(&Spool, Operation); 3] {
        [
            (&self.deletes, Operation::Delete),
            (&self.updates, Operation::Update),
            (&self.inserts, Operation::Insert),
        ]
    }

    pub(super) fn take(&mut self, table: u32, change: NetChange<'_>) -> io::Result<()> {
        self.count += 1;
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
    has_gtids: bool,
    pub(super) counts: WrittenCounts,
    /// The GTIDs of the transactions that were written.
    pub(super) given: GtidSet,
}

impl<'o> SegmentWriter<'o> {
    /// For a log with GTIDs if these came before it.
    pub(super) fn new(
        out: &'o mut dyn Write,
        (rows_max, aim): (NonZeroU64, FoldAim),
        previous: Option<GtidSet>,
    ) -> io::Result<Self> {
        let has_gtids = previous.is_some();
        let writer = match previous {
            Some(previous) => LogWriter::with_gtids(out, previous)?,
            None => LogWriter::new(out)?,
        };
        let (counts, given) = (WrittenCounts::default(), GtidSet::default());
        Ok(SegmentWriter { writer, rows_max, aim, has_gtids, counts, given })
    }

    /// Writes the net changes of a segment, whose last transaction was committed at a time in microseconds since 1970.
    pub(super) fn segment(
        &mut self,
        rows: &OrderedRows,
        tables: &[FoldedTable],
        time: u64,
        gtids: SegmentGtids,
    ) -> io::Result<()> {
        if self.aim == FoldAim::TakeBack {
            // Those without foreign keys come last: they are taken back first, as many at once as one likes.
            self.rows_together(rows, (tables, true), time)?;
            return self.rows_together(rows, (tables, false), time);
        }
        let places = self.has_gtids.then(|| gtids.places());
        let mut run = SegmentRun {
            time,
            barrier: 0,
            rows_max: self.rows_max.get().max(share(rows.count, places.as_ref())),
            size_max: TRANSACTION_SIZE_MAX.max(share(rows.size(), places.as_ref())),
            places,
            open: OpenTransaction::default(),
        };
        self.counts.deleted += self.rows((&rows.deletes, Operation::Delete), tables, &mut run)?;
        self.counts.updated += self.rows((&rows.updates, Operation::Update), tables, &mut run)?;
        self.counts.inserted += self.rows((&rows.inserts, Operation::Insert), tables, &mut run)?;
        self.commit(&mut run)
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
        for ((rows, operation), count) in rows.in_order().into_iter().zip(&mut counts) {
            let mut reader = RecordReader::new(rows.reader(0..rows.size()));
            while let Some((_, content)) = reader.next()? {
                let row = OrderedRow::read(content)?;
                let table = tables.get(row.table as usize).ok_or_else(broken)?;
                if table.is_bound == is_bound {
                    self.row(&row, (table, operation), &mut images, RowsFlags(flags))?;
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
        (table, operation): (&FoldedTable, Operation),
        images: &mut Vec<u8>,
        flags: RowsFlags,
    ) -> io::Result<()> {
        images.clear();
        images.extend_from_slice(row.before);
        images.extend_from_slice(row.after);
        let bitmaps = match operation {
            Operation::Update => [&*table.columns, &*table.columns].concat(),
            Operation::Insert | Operation::Delete => table.columns.clone(),
        };
        let event_type = operation.event_type();
        let logged = LoggedImages { event_type, bitmaps: &bitmaps, images, before_size: 0 };
        self.writer.row((row.table as usize, &*table.map), &logged, flags)
    }

    /// Writes rows that are changed in the same way; their number.
    fn rows(
        &mut self,
        (rows, operation): (&Spool, Operation),
        tables: &[FoldedTable],
        run: &mut SegmentRun,
    ) -> io::Result<u64> {
        run.barrier = self.writer.last_number();
        let mut reader = RecordReader::new(rows.reader(0..rows.size()));
        let mut images = Vec::new();
        let mut count = 0;
        while let Some((_, content)) = reader.next()? {
            let row = OrderedRow::read(content)?;
            let table = tables.get(row.table as usize).ok_or_else(broken)?;
            let open = &run.open;
            let is_full = open.rows >= run.rows_max || self.writer.open_size() >= run.size_max;
            let is_apart = (table.is_of_plain_engine || open.is_of_plain_engine) && open.table != row.table;
            if is_full || open.rows > 0 && (is_apart || open.is_by_scan == table.has_key) {
                self.commit_unless_last(run)?;
            }
            self.row(&row, (table, operation), &mut images, RowsFlags::NO_FOREIGN_KEY_CHECKS)?;
            let open = &mut run.open;
            open.rows += 1;
            open.is_by_scan = !table.has_key;
            open.table = row.table;
            open.is_of_plain_engine = table.is_of_plain_engine;
            count += 1;
        }
        self.commit_unless_last(run)?;
        Ok(count)
    }

    /// Ends the open transaction, unless it has to take all that is left.
    fn commit_unless_last(&mut self, run: &mut SegmentRun) -> io::Result<()> {
        if run.open.rows > 0 && run.places.as_ref().is_some_and(|places| places.count() <= 1) {
            run.open.is_mixed = true;
            return Ok(());
        }
        self.commit(run)
    }

    fn commit(&mut self, run: &mut SegmentRun) -> io::Result<()> {
        let open = std::mem::take(&mut run.open);
        if open.rows == 0 {
            return Ok(());
        }
        let gtid = run.places.as_mut().map(GtidPlaces::take).transpose()?;
        gtid.into_iter().for_each(|gtid| self.given.add(gtid));
        let needs_all = open.is_by_scan || open.is_mixed;
        let last_committed = if needs_all { self.writer.last_number() } else { run.barrier };
        self.writer.commit_as(gtid, last_committed, run.time)?;
        self.counts.transactions += 1;
        Ok(())
    }

    /// An event of a transaction that goes through.
    pub(super) fn pass(&mut self, event: &PassedEvent<'_>) -> io::Result<()> {
        self.writer.pass(event)
    }

    /// Ends a transaction that goes through.
    pub(super) fn pass_commit(&mut self, gtid: Option<&AnyGtidEvent<'_>>, time: u64) -> io::Result<()> {
        self.counts.transactions += 1;
        let own = gtid.and_then(AnyGtidEvent::gtid).filter(|_| self.has_gtids);
        own.into_iter().for_each(|gtid| self.given.add(gtid));
        self.writer.pass_commit(gtid, time)
    }
}

/// The share of each place; 0: there are as many as one likes.
fn share(all: u64, places: Option<&GtidPlaces>) -> u64 {
    places.map_or(0, |places| all.div_ceil(u64::try_from(places.count()).unwrap_or(u64::MAX).max(1)))
}

/// A segment that is being written.
struct SegmentRun {
    time: u64,
    /// The last transaction before those of this kind.
    barrier: i64,
    /// Rows, and bytes, from which on a transaction is full.
    rows_max: u64,
    size_max: u64,
    /// `None`: transactions are anonymous.
    places: Option<GtidPlaces>,
    open: OpenTransaction,
}

/// The transaction that is being written.
#[derive(Default)]
struct OpenTransaction {
    rows: u64,
    /// Whether its rows have no key by which they are found.
    is_by_scan: bool,
    /// Whether it has rows of several kinds, or may.
    is_mixed: bool,
    /// The table of its last row, and whether the engine of that one may have no transactions.
    table: u32,
    is_of_plain_engine: bool,
}
