//! The table `transactions`: a row for each transaction. A batch of events may have only a part of one, so the parts are
//! joined in the order of the log.

use std::io;
use std::sync::Arc;

use binlogz_archive::directory::{LogDirectory, NeededDirectory};
use binlogz_archive::format::directory::DirectoryGroups;
use binlogz_archive::log::directory::{
    BlockDirectory, DirectoryEntry, PartEnding, ShapeRows, TransactionShape,
};
use binlogz_binlog::event::{
    CompressionType, QueryEvent, RowsKind, RowsQueryEvent, TransactionPayloadHeader,
};
use binlogz_binlog::row::{TableSchema, count_rows};
use binlogz_binlog::statement::StatementKind;
use binlogz_binlog::transaction::TransactionContent;
use binlogz_binlog::{Boundary, Error as BinlogError, EventType};
use binlogz_flow::events::{self, BatchItem, Event, EventBatch, RunSummary, TableEvent, WorkerTables};
use binlogz_flow::{Error, Input};
use binlogz_payload::transaction::eligibility;
use binlogz_payload::{Ineligible, PayloadSizes};
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Fields, Schema, SchemaRef};

use super::columns::{Builder, FieldKind, FieldValue};
use super::frame::TransactionFrame;
use super::{BatchSink, MadeColumn, ROWS_MAX, ReadJob, TableReader, arrow_error};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Log,
    Position,
    Gtid,
    CommittedAt,
    AppliedAt,
    LoggedAt,
    ServerId,
    ThreadId,
    Events,
    Bytes,
    CompressedBytes,
    UncompressedBytes,
    Compression,
    NotCompressed,
    Inserted,
    Updated,
    Deleted,
    Tables,
    Statement,
}

impl Source {
    /// The group of a directory's columns that tells it, and whether payloads change it; `None`: only the events tell it.
    fn told_in(self) -> Option<(DirectoryGroups, bool)> {
        match self {
            Source::Log | Source::Inserted | Source::Updated | Source::Deleted | Source::Tables => {
                Some((DirectoryGroups::SHAPES, false))
            }
            Source::Gtid => Some((DirectoryGroups::GTIDS, false)),
            Source::CommittedAt | Source::AppliedAt => Some((DirectoryGroups::TIMES, false)),
            Source::LoggedAt => Some((DirectoryGroups::LOGGED, false)),
            Source::ServerId => Some((DirectoryGroups::SERVERS, false)),
            Source::ThreadId => Some((DirectoryGroups::THREADS, false)),
            Source::Events | Source::Compression | Source::NotCompressed => {
                Some((DirectoryGroups::SHAPES, true))
            }
            Source::Position | Source::Bytes | Source::CompressedBytes | Source::UncompressedBytes => {
                Some((DirectoryGroups::SIZES, true))
            }
            Source::Statement => None,
        }
    }
}

const COLUMNS: [(&str, FieldKind, Source); 19] = [
    ("log", FieldKind::Text, Source::Log),
    ("position", FieldKind::Number, Source::Position),
    ("gtid", FieldKind::Text, Source::Gtid),
    ("committed_at", FieldKind::Moment, Source::CommittedAt),
    ("applied_at", FieldKind::Moment, Source::AppliedAt),
    ("logged_at", FieldKind::Moment, Source::LoggedAt),
    ("server_id", FieldKind::Small, Source::ServerId),
    ("thread_id", FieldKind::Small, Source::ThreadId),
    ("events", FieldKind::Number, Source::Events),
    ("bytes", FieldKind::Number, Source::Bytes),
    ("compressed_bytes", FieldKind::Number, Source::CompressedBytes),
    ("uncompressed_bytes", FieldKind::Number, Source::UncompressedBytes),
    ("compression", FieldKind::Text, Source::Compression),
    ("not_compressed", FieldKind::Text, Source::NotCompressed),
    ("inserted", FieldKind::Number, Source::Inserted),
    ("updated", FieldKind::Number, Source::Updated),
    ("deleted", FieldKind::Number, Source::Deleted),
    ("tables", FieldKind::Texts, Source::Tables),
    ("statement", FieldKind::Text, Source::Statement),
];

/// The reason of the server that compression was off, where nothing else was in its way.
const COMPRESSION_OFF: &str = "compression_off";

/// The table.
#[derive(Debug)]
pub(crate) struct TransactionsTable;

impl TableReader for TransactionsTable {
    fn schema(&self) -> SchemaRef {
        let fields: Fields = COLUMNS.iter().map(|(name, kind, _)| kind.field(name)).collect();
        Arc::new(Schema::new(fields))
    }

    fn row_size(&self) -> u64 {
        300
    }

    fn is_divided(&self) -> bool {
        true
    }

    fn is_of_rows(&self) -> bool {
        false
    }

    fn needed_directory(&self, outputs: &[MadeColumn]) -> Option<NeededDirectory> {
        let mut needed = NeededDirectory { groups: DirectoryGroups::SHAPES, as_logged: false };
        for (_, _, source) in outputs.iter().filter_map(|output| COLUMNS.get(output.column())) {
            let (group, as_logged) = source.told_in()?;
            needed.groups = needed.groups.with(group);
            needed.as_logged |= as_logged;
        }
        Some(needed)
    }

    fn read_directory(
        &self,
        directory: &LogDirectory,
        blocks: &[(usize, u32)],
        job: &ReadJob<'_>,
        sink: BatchSink<'_>,
    ) -> Result<(), Error> {
        let mut rows = TransactionRows::new(job.log, job.outputs, job.schema);
        for &(object, number) in blocks {
            let block = directory.block(object, number);
            let block = block.map_err(|error| Error::Input(io::Error::other(error).into()))?;
            let part = TransactionsPart::told(&block, rows.has(&[Source::Gtid]), rows.has(&[Source::Tables]));
            rows.take(part, sink)?;
        }
        rows.end(sink)
    }

    fn read(&self, job: ReadJob<'_>, input: Input, sink: BatchSink<'_>) -> Result<RunSummary, Error> {
        let ReadJob { log, outputs, schema, workers, .. } = job;
        let mut rows = TransactionRows::new(log, outputs, schema);
        let parts = rows.parts();
        let new_worker = || Ok(Worker { tables: WorkerTables::one_of(workers), parts: parts.clone() });
        let work = |worker: &mut Worker, batch: &mut EventBatch<'_>| Ok(worker.batch(batch));
        let take = |part| rows.take(part, sink);
        let ran = events::run(input, workers, new_worker, work, take, &mut |_| {})?;
        rows.end(sink)?;
        Ok(ran)
    }
}

/// Makes parts of transactions of the events of a batch.
#[derive(Debug, Clone)]
pub(super) struct PartMaker {
    /// The table of the last rows, and its name.
    table: Option<(Arc<TableSchema>, String)>,
    counts_rows: bool,
    looks_inside: bool,
}

/// A transaction, or the part of it in one batch.
#[derive(Debug, Clone, Default)]
struct Transaction {
    frame: TransactionFrame,
    logged_at: u32,
    server_id: u32,
    thread_id: Option<u32>,
    /// Whether its first event was seen.
    has_begun: bool,
    events: u64,
    bytes: u64,
    /// Bytes of the events after the GTID event, without checksums.
    event_bytes: u64,
    compression: Option<CompressionType>,
    payload: Option<PayloadSizes>,
    rows: [u64; 3],
    tables: Vec<String>,
    statement: Option<String>,
    end: Option<&'static str>,
}

/// The transactions of a batch.
#[derive(Debug, Default)]
pub(super) struct TransactionsPart {
    log: u64,
    /// The batch's transactions, in order. The first may have begun earlier, the last may end later.
    transactions: Vec<Transaction>,
    /// Whether the last one goes on after the batch.
    is_open: bool,
}

struct Worker {
    tables: WorkerTables,
    parts: PartMaker,
}

impl Worker {
    fn batch(&mut self, batch: &mut EventBatch<'_>) -> TransactionsPart {
        let mut part = TransactionsPart::of(batch);
        if let Err(error) = self.events(batch, &mut part) {
            batch.fail(error);
        }
        part
    }

    fn events(&mut self, batch: &mut EventBatch<'_>, part: &mut TransactionsPart) -> Result<(), Error> {
        self.tables.begin(batch)?;
        while let Some(item) = batch.next_item() {
            let table_event = match &item {
                BatchItem::Event(event) if self.parts.looks_inside => self.tables.event(event)?,
                _ => None,
            };
            if let Some(end) = self.parts.take(&item, table_event.as_ref(), part)? {
                part.end(batch, end);
            }
        }
        Ok(())
    }
}

impl PartMaker {
    /// Takes an item, with its rows if it has some, and returns the type of its event if it ends a transaction.
    pub(super) fn take(
        &mut self,
        item: &BatchItem<'_>,
        table_event: Option<&TableEvent<'_>>,
        part: &mut TransactionsPart,
    ) -> Result<Option<EventType>, Error> {
        let event = match item {
            BatchItem::PayloadEnd(end) => {
                part.open().payload = Some(end.sizes);
                return Ok(Some(EventType::TRANSACTION_PAYLOAD));
            }
            BatchItem::Event(event) => event,
        };
        let bad = |error: BinlogError| event.error(error);
        let event_type = event.header.event_type;
        if !event.is_inside_payload() {
            match event.placement.boundary {
                Boundary::Outside => return Ok(None),
                Boundary::Begin | Boundary::BeginAgain | Boundary::Single => {
                    part.begin(event).map_err(bad)?
                }
                Boundary::Inside | Boundary::End => {}
            }
            part.open().add(event);
        }
        let transaction = part.open();
        transaction.events += 1;
        if event_type == EventType::TRANSACTION_PAYLOAD {
            let size = u64::from(event.header.event_size);
            if let Some((fields, _)) =
                TransactionPayloadHeader::decode_front(event.body, size).map_err(bad)?
            {
                transaction.compression = Some(fields.compression_type());
            }
            // It ends with what is inside.
            return Ok(None);
        }
        if self.looks_inside {
            self.look_inside(event, table_event, transaction).map_err(bad)?;
        }
        Ok(event.ends_transaction().then_some(event_type))
    }

    fn look_inside(
        &mut self,
        event: &Event<'_>,
        table_event: Option<&TableEvent<'_>>,
        transaction: &mut Transaction,
    ) -> Result<(), BinlogError> {
        match event.header.event_type {
            EventType::QUERY => {
                let query = QueryEvent::decode(event.body)?;
                transaction.thread_id.get_or_insert(query.thread_id);
                if transaction.statement.is_none()
                    && StatementKind::of(query.statement) == StatementKind::Other
                {
                    transaction.statement = Some(String::from_utf8_lossy(query.statement).into_owned());
                }
            }
            EventType::ROWS_QUERY if transaction.statement.is_none() => {
                let statement = RowsQueryEvent::decode(event.body)?.statement;
                transaction.statement = Some(String::from_utf8_lossy(statement).into_owned());
            }
            _ => {}
        }
        let Some(TableEvent::Rows(schema, rows)) = table_event else { return Ok(()) };
        let name = match &self.table {
            Some((known, name)) if Arc::ptr_eq(known, schema) => name,
            _ => {
                let name = name_of(&schema.database, &schema.table);
                &self.table.insert((Arc::clone(schema), name)).1
            }
        };
        transaction.add_table(name);
        if self.counts_rows {
            let place = match rows.kind() {
                RowsKind::Write => 0,
                RowsKind::Update | RowsKind::PartialUpdate => 1,
                RowsKind::Delete => 2,
            };
            match count_rows(schema, rows) {
                Ok(count) => transaction.rows.get_mut(place).into_iter().for_each(|known| *known += count),
                Err(error) => event.unread(schema, &error),
            }
        }
        Ok(())
    }
}

/// Why a transaction is not compressed; empty if it is.
fn reason(content: &TransactionContent, end: EventType) -> &'static str {
    match eligibility::check(content, end) {
        Ok(()) => COMPRESSION_OFF,
        Err(reason) => name_of_reason(reason),
    }
}

fn name_of_reason(reason: Ineligible) -> &'static str {
    match reason {
        Ineligible::AlreadyCompressed => "",
        reason => reason.name(),
    }
}

fn name_of(database: &[u8], table: &[u8]) -> String {
    format!("{}.{}", String::from_utf8_lossy(database), String::from_utf8_lossy(table))
}

impl TransactionsPart {
    /// The part of a batch, before its events.
    pub(super) fn of(batch: &EventBatch<'_>) -> Self {
        TransactionsPart { log: batch.log().number, ..TransactionsPart::default() }
    }

    /// The transactions of a block as its archive tells them, with GTIDs and tables if these are asked for.
    fn told(block: &BlockDirectory, with_gtids: bool, with_tables: bool) -> Self {
        let tables = if with_tables { block.table_count() } else { 0 };
        let names = (0u32..).take(tables).map_while(|number| block.table(number));
        let names: Vec<String> = names.map(|table| name_of(&table.database, &table.table)).collect();
        let is_open = block.entries().last().is_some_and(|last| last.shape.ending == PartEnding::Open);
        let transactions =
            block.entries().map(|entry| Transaction::told(&entry, &names, with_gtids)).collect();
        TransactionsPart { log: 0, transactions, is_open }
    }

    /// Ends the open transaction. Its last event is the one that the batch has just passed.
    pub(super) fn end(&mut self, batch: &EventBatch<'_>, end: EventType) {
        self.open().end = Some(reason(batch.transaction().content(), end));
        self.is_open = false;
    }

    /// The open transaction: one that began before the batch, if none began in it.
    fn open(&mut self) -> &mut Transaction {
        if !self.is_open || self.transactions.is_empty() {
            self.transactions.push(Transaction::default());
            self.is_open = true;
        }
        let last = self.transactions.len() - 1;
        // It was pushed above if there was none.
        #[expect(clippy::indexing_slicing, reason = "the last of some")]
        &mut self.transactions[last]
    }

    fn begin(&mut self, event: &Event<'_>) -> Result<(), BinlogError> {
        let mut frame = TransactionFrame::default();
        frame.pass(event)?;
        // Where one without a GTID event begins is known too, since that event is here.
        frame.position = Some(event.position.offset);
        self.is_open = true;
        self.transactions.push(Transaction {
            frame,
            has_begun: true,
            logged_at: event.header.timestamp,
            server_id: event.header.server_id,
            ..Transaction::default()
        });
        Ok(())
    }
}

impl Transaction {
    /// A transaction as an archive tells it. `names` are those of its block's tables.
    fn told(entry: &DirectoryEntry<'_>, names: &[String], with_gtid: bool) -> Self {
        let TransactionShape { events, overhead, ending, rows } = entry.shape;
        let gtid = entry.gtid.filter(|_| with_gtid);
        let mut transaction = Transaction {
            frame: TransactionFrame {
                gtid: gtid.map(|gtid| gtid.to_string()),
                position: entry.has_begun.then_some(entry.position),
                committed_at: entry.committed_at,
                applied_at: entry.applied_at,
            },
            logged_at: entry.logged_at,
            server_id: entry.server_id,
            thread_id: entry.thread_id,
            has_begun: entry.has_begun,
            events: *events,
            bytes: entry.bytes,
            event_bytes: entry.bytes.saturating_sub(*overhead),
            end: match ending {
                PartEnding::Open => None,
                PartEnding::Compressible => Some(COMPRESSION_OFF),
                PartEnding::Plain(reason) => Some(name_of_reason(*reason)),
            },
            ..Transaction::default()
        };
        for ShapeRows { table, counts } in rows {
            transaction
                .rows
                .iter_mut()
                .zip(counts)
                .for_each(|(known, more)| *known = known.saturating_add(*more));
            if let Some(name) = names.get(*table as usize) {
                transaction.add_table(name);
            }
        }
        transaction
    }

    fn add(&mut self, event: &Event<'_>) {
        let size = u64::from(event.header.event_size);
        self.bytes += size;
        if !event.header.event_type.is_gtid() {
            self.event_bytes += size.saturating_sub(event.log.context.framing.checksum().size() as u64);
        }
    }

    fn add_table(&mut self, name: &str) {
        if !self.tables.iter().any(|known| known == name) {
            self.tables.push(name.to_owned());
        }
    }

    fn join(&mut self, later: Transaction) {
        self.events += later.events;
        self.bytes += later.bytes;
        self.event_bytes += later.event_bytes;
        self.compression = self.compression.or(later.compression);
        self.payload = self.payload.or(later.payload);
        self.thread_id = self.thread_id.or(later.thread_id);
        self.rows.iter_mut().zip(later.rows).for_each(|(count, more)| *count += more);
        later.tables.iter().for_each(|name| self.add_table(name));
        self.statement = self.statement.take().or(later.statement);
        self.end = later.end;
    }
}

/// Makes rows of transactions, in the order of the log.
pub(super) struct TransactionRows<'a> {
    log: &'a str,
    schema: SchemaRef,
    columns: Vec<(Source, Builder)>,
    rows: usize,
    /// The one that goes on in the next batch, and its log.
    open: Option<(u64, Transaction)>,
}

impl<'a> TransactionRows<'a> {
    /// None yet, with these columns.
    pub(super) fn new(log: &'a str, outputs: &[MadeColumn], schema: &SchemaRef) -> Self {
        let chosen = outputs.iter().filter_map(|output| COLUMNS.get(output.column()));
        let columns = chosen.map(|&(_, kind, source)| (source, kind.builder())).collect();
        TransactionRows { log, schema: Arc::clone(schema), columns, rows: 0, open: None }
    }

    /// Whether there is a column of one of these.
    fn has(&self, sources: &[Source]) -> bool {
        self.columns.iter().any(|(source, _)| sources.contains(source))
    }

    /// Makes the parts with everything that these columns need.
    pub(super) fn parts(&self) -> PartMaker {
        let counts_rows = self.has(&[Source::Inserted, Source::Updated, Source::Deleted]);
        let looks_inside = counts_rows || self.has(&[Source::Tables, Source::Statement, Source::ThreadId]);
        PartMaker { table: None, counts_rows, looks_inside }
    }

    /// Where the transaction begins that goes on; `None`: none does. One that began before the log begins at its start.
    pub(super) fn open_from(&self) -> Option<u64> {
        self.open.as_ref().map(|(_, open)| open.frame.position.unwrap_or_default())
    }

    /// Takes the next part.
    pub(super) fn take(&mut self, part: TransactionsPart, sink: BatchSink<'_>) -> Result<(), Error> {
        let TransactionsPart { log, transactions, is_open } = part;
        let count = transactions.len();
        for (transaction, number) in transactions.into_iter().zip(1..) {
            let mut whole = match self.open.take() {
                Some((open_log, mut open)) if open_log == log && !transaction.has_begun => {
                    open.join(transaction);
                    open
                }
                before => {
                    if let Some((_, before)) = before {
                        self.push(&before, sink)?;
                    }
                    transaction
                }
            };
            if number == count && is_open {
                self.open = Some((log, whole));
                continue;
            }
            whole.end.get_or_insert(Ineligible::Incomplete.name());
            self.push(&whole, sink)?;
        }
        Ok(())
    }

    /// Passes on all: the log has ended.
    pub(super) fn end(&mut self, sink: BatchSink<'_>) -> Result<(), Error> {
        if let Some((_, open)) = self.open.take() {
            self.push(&open, sink)?;
        }
        self.pass_on(sink)
    }

    fn push(&mut self, transaction: &Transaction, sink: BatchSink<'_>) -> Result<(), Error> {
        let Transaction { frame, payload, rows: [inserted, updated, deleted], .. } = transaction;
        let compression = transaction.compression.map(|compression| compression.to_string());
        for (source, builder) in &mut self.columns {
            builder.push(match source {
                Source::Log => FieldValue::Text(self.log),
                Source::Position => FieldValue::number(frame.position),
                Source::Gtid => FieldValue::text(frame.gtid.as_deref()),
                Source::CommittedAt => FieldValue::moment(frame.committed_at),
                Source::AppliedAt => FieldValue::moment(frame.applied_at),
                Source::LoggedAt => FieldValue::seconds(transaction.logged_at),
                Source::ServerId => FieldValue::Number(transaction.server_id.into()),
                Source::ThreadId => FieldValue::number(transaction.thread_id.map(u64::from)),
                Source::Events => FieldValue::Number(transaction.events),
                Source::Bytes => FieldValue::Number(transaction.bytes),
                Source::CompressedBytes => {
                    FieldValue::Number(payload.map_or(transaction.event_bytes, |sizes| sizes.compressed))
                }
                Source::UncompressedBytes => {
                    FieldValue::Number(payload.map_or(transaction.event_bytes, |sizes| sizes.uncompressed))
                }
                Source::Compression => FieldValue::Text(compression.as_deref().unwrap_or("NONE")),
                Source::NotCompressed => {
                    let reason = transaction.end.unwrap_or(Ineligible::Incomplete.name());
                    FieldValue::text((!reason.is_empty()).then_some(reason))
                }
                Source::Inserted => FieldValue::Number(*inserted),
                Source::Updated => FieldValue::Number(*updated),
                Source::Deleted => FieldValue::Number(*deleted),
                Source::Tables => FieldValue::Texts(&transaction.tables),
                Source::Statement => FieldValue::text(transaction.statement.as_deref()),
            });
        }
        self.rows += 1;
        if self.rows == ROWS_MAX { self.pass_on(sink) } else { Ok(()) }
    }

    /// Passes on the rows that are there.
    pub(super) fn pass_on(&mut self, sink: BatchSink<'_>) -> Result<(), Error> {
        let rows = std::mem::take(&mut self.rows);
        if rows == 0 {
            return Ok(());
        }
        let arrays = self.columns.iter_mut().map(|(_, builder)| builder.finish()).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options);
        sink(batch.map_err(arrow_error)?)
    }
}
