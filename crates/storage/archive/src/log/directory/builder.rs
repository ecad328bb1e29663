//! The directory of a block while a walk goes over its events: a value in each column for each transaction.

use std::collections::HashMap;
use std::sync::Arc;

use binlogz_binlog::EventFrame;
use binlogz_binlog::event::{AnyGtidEvent, RowsKind};
use binlogz_binlog::gtid::Gtid;
use binlogz_binlog::row::TableSchema;

use super::{BlockDirectory, DirectoryTable, GtidSource, PartEnding, ShapeRows, TransactionShape, moments};

/// The most tables of a transaction that is told.
const TABLES_MAX: usize = 4096;

/// The directory of a block so far.
pub(super) struct DirectoryBuilder {
    directory: BlockDirectory,
    shapes: HashMap<TransactionShape, i64>,
    sources: HashMap<GtidSource, i64>,
    tables: HashMap<DirectoryTable, u32>,
    /// The table of the last rows, and its number.
    last_table: Option<(Arc<TableSchema>, u32)>,
    open: Option<OpenEntry>,
}

/// The transaction that has begun.
struct OpenEntry {
    shape: TransactionShape,
    bytes: u64,
    thread: Option<u32>,
}

impl OpenEntry {
    fn new() -> Self {
        let shape = TransactionShape { events: 0, overhead: 0, ending: PartEnding::Open, rows: Vec::new() };
        OpenEntry { shape, bytes: 0, thread: None }
    }
}

impl DirectoryBuilder {
    pub(super) fn new(offset: u64, continues: bool) -> Self {
        let mut builder = DirectoryBuilder {
            directory: BlockDirectory { continues, ..BlockDirectory::default() },
            shapes: HashMap::new(),
            sources: HashMap::new(),
            tables: HashMap::new(),
            last_table: None,
            open: None,
        };
        if continues {
            builder.push_begin([0; 2], [0; 2], offset, GtidSource::Missing);
        }
        builder
    }

    /// Takes the columns that a transaction's first event tells: its GTID's number and times, its header, its place.
    fn push_begin(&mut self, times: [i64; 2], header: [u32; 2], position: u64, source: GtidSource) {
        let next = self.sources.len() as i64;
        let number = *self.sources.entry(source).or_insert(next);
        if number == next {
            self.directory.sources.push(source);
        }
        let columns = &mut self.directory.columns;
        columns.source.push(number);
        columns.gno.push(0);
        let [applied_at, committed_at] = times;
        columns.applied_at.push(applied_at);
        columns.committed_at.push(committed_at);
        let [server_id, logged_at] = header;
        columns.server_id.push(server_id.into());
        columns.logged_at.push(logged_at.into());
        columns.position.push(position as i64);
        self.open = Some(OpenEntry::new());
    }

    pub(super) fn begin(&mut self, frame: &EventFrame<'_>, position: u64) -> Option<()> {
        if self.open.is_some() {
            return None;
        }
        let header = [frame.header().server_id, frame.header().timestamp];
        let Some(event) = AnyGtidEvent::decode_frame(frame).ok()? else {
            self.push_begin([0; 2], header, position, GtidSource::Missing);
            return Some(());
        };
        let gtid = event.gtid();
        self.push_begin(moments(event.commit_timestamps()), header, position, source_of(gtid));
        let gno = i64::try_from(gtid.map_or(0, |gtid| gtid.gno())).ok()?;
        *self.directory.columns.gno.last_mut()? = gno;
        Some(())
    }

    pub(super) fn add(&mut self, frame: &EventFrame<'_>) -> Option<()> {
        let open = self.open.as_mut()?;
        let size = frame.bytes().len() as u64;
        open.shape.events += 1;
        open.bytes += size;
        let is_gtid = frame.event_type().is_gtid();
        open.shape.overhead += if is_gtid { size } else { frame.checksum_size() as u64 };
        Some(())
    }

    pub(super) fn thread(&mut self, thread_id: u32) -> Option<()> {
        self.open.as_mut()?.thread.get_or_insert(thread_id);
        Some(())
    }

    pub(super) fn rows(&mut self, schema: &Arc<TableSchema>, kind: RowsKind, count: u64) -> Option<()> {
        let table = match &self.last_table {
            Some((known, number)) if Arc::ptr_eq(known, schema) => *number,
            _ => {
                let number = self.number(schema);
                self.last_table = Some((Arc::clone(schema), number));
                number
            }
        };
        let place = match kind {
            RowsKind::Write => 0,
            RowsKind::Update | RowsKind::PartialUpdate => 1,
            RowsKind::Delete => 2,
        };
        let rows = &mut self.open.as_mut()?.shape.rows;
        let known = match rows.iter().rposition(|rows| rows.table == table) {
            Some(known) => known,
            None if rows.len() >= TABLES_MAX => return None,
            None => {
                rows.push(ShapeRows { table, counts: [0; 3] });
                rows.len() - 1
            }
        };
        let known = rows.get_mut(known)?.counts.get_mut(place)?;
        *known = known.checked_add(count)?;
        Some(())
    }

    fn number(&mut self, schema: &TableSchema) -> u32 {
        let next = self.directory.tables.len() as u32;
        let name = DirectoryTable { database: schema.database.to_vec(), table: schema.table.to_vec() };
        let number = *self.tables.entry(name.clone()).or_insert(next);
        if number == next {
            self.directory.tables.push(name);
        }
        number
    }

    pub(super) fn end(&mut self, ending: PartEnding) -> Option<()> {
        let OpenEntry { mut shape, bytes, thread } = self.open.take()?;
        shape.ending = ending;
        let next = self.shapes.len() as i64;
        let columns = &mut self.directory.columns;
        match self.shapes.get(&shape) {
            Some(&number) => columns.shape.push(number),
            None => {
                columns.shape.push(next);
                self.directory.shapes.push(shape.clone());
                self.shapes.insert(shape, next);
            }
        }
        columns.bytes.push(bytes as i64);
        columns.thread.push(thread.map_or(0, |thread| i64::from(thread) + 1));
        Some(())
    }

    pub(super) fn finish(mut self) -> BlockDirectory {
        if self.open.is_some() {
            self.end(PartEnding::Open);
        }
        self.directory
    }
}

fn source_of(gtid: Option<Gtid>) -> GtidSource {
    gtid.map_or(GtidSource::Anonymous, |gtid| GtidSource::Server(gtid.tsid()))
}
