//! Transactions of logs as a stream of Arrow's: a row for each. Names and meaning of the columns are those of `binlogz sql`.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;

use arrow_array::builder::{
    ListBuilder, StringBuilder, TimestampMicrosecondBuilder, UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use binlogz_arrow::moment;
use binlogz_binlog::event::{AnyGtidEvent, QueryEvent, RowsKind, RowsQueryEvent};
use binlogz_binlog::row::count_rows;
use binlogz_binlog::statement::StatementKind;
use binlogz_binlog::{Boundary, Error as BinlogError, EventType};
use binlogz_flow::events::{self, BatchItem, Event, EventBatch, TableEvent, WorkerTables};
use binlogz_flow::{Error as FlowError, Input};
use pyo3::prelude::*;

use crate::change_frame::ChangeFrame;
use crate::feed::{BUG, log_trouble, told};
use crate::interrupt::LOOK_PERIOD;
use crate::parts::LogPart;
use crate::selection::{BlockSelection, GtidSelection};

/// Rows of a batch.
const ROWS_MAX: usize = 8192;
/// Batches that wait.
const BATCHES_WAITING: usize = 2;

/// The error of a transaction without a GTID, where offsets are GTIDs.
pub(crate) const WITHOUT_GTID: &str =
    "has no GTID, expected one of each transaction where a GTID set tells how far was read";

type MadeBatch = Result<RecordBatch, ArrowError>;

/// A transaction.
#[derive(Debug, Clone, Default)]
struct TransactionRow {
    frame: ChangeFrame,
    /// Whether it is not asked for.
    is_left_out: bool,
    logged_at: u32,
    server_id: u32,
    thread_id: Option<u32>,
    events: u64,
    bytes: u64,
    inserted: u64,
    updated: u64,
    deleted: u64,
    tables: Vec<String>,
    statement: Option<String>,
}

/// Makes rows of the events of a log. One that begins in a batch may end in a later one.
struct TransactionMaker<'s> {
    tables: WorkerTables,
    selection: &'s GtidSelection,
    offsets: Option<Range<u64>>,
    open: Option<TransactionRow>,
    done: Vec<TransactionRow>,
}

impl TransactionMaker<'_> {
    /// The transactions that ended, and the one that goes on.
    fn batch(&mut self, batch: &mut EventBatch<'_>) -> (Vec<TransactionRow>, Option<TransactionRow>) {
        if let Err(error) = self.events(batch) {
            batch.fail(error);
        }
        (std::mem::take(&mut self.done), self.open.clone())
    }

    fn events(&mut self, batch: &mut EventBatch<'_>) -> Result<(), FlowError> {
        self.tables.begin(batch)?;
        while let Some(item) = batch.next_item() {
            let event = match &item {
                BatchItem::PayloadEnd(_) => {
                    self.end();
                    continue;
                }
                BatchItem::Event(event) => event,
            };
            let rows = self.tables.event(event)?;
            self.take(event).map_err(|error| event.error(error))?;
            self.look_inside(event, rows.as_ref()).map_err(|error| event.error(error))?;
            if event.ends_transaction() {
                self.end();
            }
        }
        Ok(())
    }

    /// Ends the open transaction.
    fn end(&mut self) {
        let ended = self.open.take();
        self.done.extend(ended.filter(|ended| !ended.is_left_out));
    }

    /// Takes the event itself.
    fn take(&mut self, event: &Event<'_>) -> Result<(), BinlogError> {
        if !event.is_inside_payload() {
            match event.placement.boundary {
                Boundary::Outside => return Ok(()),
                Boundary::Begin | Boundary::BeginAgain | Boundary::Single => {
                    self.end();
                    self.open = Some(self.begun(event)?);
                }
                Boundary::Inside | Boundary::End => {}
            }
        }
        let open = self.open.get_or_insert_default();
        open.events += 1;
        if !event.is_inside_payload() {
            open.bytes += u64::from(event.header.event_size);
        }
        Ok(())
    }

    fn begun(&self, event: &Event<'_>) -> Result<TransactionRow, BinlogError> {
        let offset = event.position.offset;
        let mut row = TransactionRow {
            frame: ChangeFrame { position: Some(offset), ..ChangeFrame::default() },
            logged_at: event.header.timestamp,
            server_id: event.header.server_id,
            is_left_out: self.offsets.as_ref().is_some_and(|offsets| !offsets.contains(&offset)),
            ..TransactionRow::default()
        };
        if let Some(frame) = event.frame.filter(|frame| frame.event_type().is_gtid())
            && let Some(decoded) = AnyGtidEvent::decode_frame(&frame)?
        {
            let gtid = decoded.gtid();
            row.is_left_out |= self.selection.leaves_out(gtid.as_ref());
            let times = decoded.commit_timestamps();
            let original = times.map(|times| times.original.unwrap_or(times.immediate));
            let text = gtid.map(|gtid| gtid.to_string());
            row.frame = ChangeFrame::new(text, offset, original, times.map(|times| times.immediate));
        }
        Ok(row)
    }

    fn look_inside(&mut self, event: &Event<'_>, rows: Option<&TableEvent<'_>>) -> Result<(), BinlogError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        match event.header.event_type {
            EventType::QUERY => {
                let query = QueryEvent::decode(event.body)?;
                open.thread_id.get_or_insert(query.thread_id);
                if open.statement.is_none() && StatementKind::of(query.statement) == StatementKind::Other {
                    open.statement = Some(String::from_utf8_lossy(query.statement).into_owned());
                }
            }
            EventType::ROWS_QUERY if open.statement.is_none() => {
                let statement = RowsQueryEvent::decode(event.body)?.statement;
                open.statement = Some(String::from_utf8_lossy(statement).into_owned());
            }
            _ => {}
        }
        let Some(TableEvent::Rows(schema, rows)) = rows else { return Ok(()) };
        let [database, table] = [&schema.database, &schema.table].map(|name| String::from_utf8_lossy(name));
        let name = format!("{database}.{table}");
        if !open.tables.contains(&name) {
            open.tables.push(name);
        }
        let count = match rows.kind() {
            RowsKind::Write => &mut open.inserted,
            RowsKind::Update | RowsKind::PartialUpdate => &mut open.updated,
            RowsKind::Delete => &mut open.deleted,
        };
        match count_rows(schema, rows) {
            Ok(rows) => *count += rows,
            Err(error) => event.unread(schema, &error),
        }
        Ok(())
    }
}

/// Columns that are being built.
struct TransactionColumns {
    log: StringBuilder,
    position: UInt64Builder,
    gtid: StringBuilder,
    committed_at: TimestampMicrosecondBuilder,
    applied_at: TimestampMicrosecondBuilder,
    logged_at: TimestampMicrosecondBuilder,
    server_id: UInt32Builder,
    thread_id: UInt32Builder,
    events: UInt64Builder,
    bytes: UInt64Builder,
    inserted: UInt64Builder,
    updated: UInt64Builder,
    deleted: UInt64Builder,
    tables: ListBuilder<StringBuilder>,
    statement: StringBuilder,
    rows: usize,
}

/// The names and types of the columns.
pub(crate) fn transaction_schema() -> Schema {
    let number = DataType::UInt64;
    let columns = [
        ("log", DataType::Utf8),
        ("position", number.clone()),
        ("gtid", DataType::Utf8),
        ("committed_at", moment()),
        ("applied_at", moment()),
        ("logged_at", moment()),
        ("server_id", DataType::UInt32),
        ("thread_id", DataType::UInt32),
        ("events", number.clone()),
        ("bytes", number.clone()),
        ("inserted", number.clone()),
        ("updated", number.clone()),
        ("deleted", number),
        ("tables", DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)))),
        ("statement", DataType::Utf8),
    ];
    Schema::new(columns.map(|(name, kind)| Field::new(name, kind, true)).to_vec())
}

impl TransactionColumns {
    fn new() -> Self {
        let moments = || TimestampMicrosecondBuilder::new().with_data_type(moment());
        let number = UInt64Builder::new;
        TransactionColumns {
            log: StringBuilder::new(),
            position: number(),
            gtid: StringBuilder::new(),
            committed_at: moments(),
            applied_at: moments(),
            logged_at: moments(),
            server_id: UInt32Builder::new(),
            thread_id: UInt32Builder::new(),
            events: number(),
            bytes: number(),
            inserted: number(),
            updated: number(),
            deleted: number(),
            tables: ListBuilder::new(StringBuilder::new()),
            statement: StringBuilder::new(),
            rows: 0,
        }
    }

    fn push(&mut self, log: &str, row: &TransactionRow) {
        self.log.append_value(log);
        self.position.append_option(row.frame.position);
        self.gtid.append_option(row.frame.gtid.as_deref());
        self.committed_at.append_option(row.frame.committed_at);
        self.applied_at.append_option(row.frame.applied_at);
        let logged_at = i64::from(row.logged_at) * 1_000_000;
        self.logged_at.append_option((logged_at > 0).then_some(logged_at));
        self.server_id.append_value(row.server_id);
        self.thread_id.append_option(row.thread_id);
        self.events.append_value(row.events);
        self.bytes.append_value(row.bytes);
        self.inserted.append_value(row.inserted);
        self.updated.append_value(row.updated);
        self.deleted.append_value(row.deleted);
        row.tables.iter().for_each(|table| self.tables.values().append_value(table));
        self.tables.append(true);
        self.statement.append_option(row.statement.as_deref());
        self.rows += 1;
    }

    fn finish(&mut self, schema: &SchemaRef) -> MadeBatch {
        self.rows = 0;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.log.finish()),
            Arc::new(self.position.finish()),
            Arc::new(self.gtid.finish()),
            Arc::new(self.committed_at.finish()),
            Arc::new(self.applied_at.finish()),
            Arc::new(self.logged_at.finish()),
            Arc::new(self.server_id.finish()),
            Arc::new(self.thread_id.finish()),
            Arc::new(self.events.finish()),
            Arc::new(self.bytes.finish()),
            Arc::new(self.inserted.finish()),
            Arc::new(self.updated.finish()),
            Arc::new(self.deleted.finish()),
            Arc::new(self.tables.finish()),
            Arc::new(self.statement.finish()),
        ];
        RecordBatch::try_new(Arc::clone(schema), columns)
    }
}

/// The transactions of parts of logs; a thread reads them.
pub(crate) struct TransactionBatches {
    schema: SchemaRef,
    batches: Receiver<MadeBatch>,
}

impl TransactionBatches {
    pub(crate) fn of_parts(parts: Vec<LogPart>, blocks: BlockSelection, selection: GtidSelection) -> Self {
        let schema = Arc::new(transaction_schema());
        let (sender, batches) = sync_channel(BATCHES_WAITING);
        let reader = PartsReader { blocks, selection, schema: Arc::clone(&schema), sender };
        thread::spawn(move || {
            let read = || {
                if let Err(error) = reader.read(&parts) {
                    // If this fails, nobody reads it.
                    let _ = reader.sender.send(Err(error));
                }
            };
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).is_err() {
                let _ = reader.sender.send(Err(ArrowError::ExternalError(BUG.into())));
            }
        });
        TransactionBatches { schema, batches }
    }
}

/// Reads parts one after the other.
struct PartsReader {
    blocks: BlockSelection,
    selection: GtidSelection,
    schema: SchemaRef,
    sender: SyncSender<MadeBatch>,
}

impl PartsReader {
    fn read(&self, parts: &[LogPart]) -> Result<(), ArrowError> {
        let mut columns = TransactionColumns::new();
        let mut unread = Vec::new();
        for part in parts {
            let shown = part.path.display();
            let input = part
                .open(Some(&self.blocks))
                .map_err(|error| ArrowError::IoError(format!("{shown}: {error}"), error))?;
            self.read_part(part, input, &mut columns, &mut unread)?;
        }
        if columns.rows > 0 {
            let _ = self.sender.send(columns.finish(&self.schema));
        }
        match unread.is_empty() {
            true => Ok(()),
            false => Err(ArrowError::ParseError(unread.join("\n"))),
        }
    }

    fn read_part(
        &self,
        part: &LogPart,
        input: Input,
        columns: &mut TransactionColumns,
        unread: &mut Vec<String>,
    ) -> Result<(), ArrowError> {
        let log = part.path.file_name().unwrap_or_default().to_string_lossy();
        let maker = || {
            Ok(TransactionMaker {
                tables: WorkerTables::one_of(1),
                selection: &self.selection,
                offsets: part.offsets.clone(),
                open: None,
                done: Vec::new(),
            })
        };
        let mut open = None;
        let mut without_gtid = None;
        let take = |(done, last): (Vec<TransactionRow>, Option<TransactionRow>)| {
            open = last;
            self.push_all(&log, &done, columns, &mut without_gtid)
        };
        // One thread reads in order: the part of another task is read at the same time.
        let work = |maker: &mut TransactionMaker<'_>, batch: &mut EventBatch<'_>| Ok(maker.batch(batch));
        let ran = events::run(input, 1, maker, work, take, &mut |_| {});
        let last: Vec<_> = open.into_iter().filter(|open| !open.is_left_out).collect();
        let pushed = ran.is_ok().then(|| self.push_all(&log, &last, columns, &mut without_gtid));
        if let Some(offset) = without_gtid {
            let path = part.path.display();
            return Err(ArrowError::ParseError(format!("{path} at {offset}: a transaction {WITHOUT_GTID}")));
        }
        let summary = ran
            .and_then(|summary| pushed.unwrap_or(Ok(())).map(|()| summary))
            .map_err(|error| told(log_trouble(&part.path, error)))?;
        unread.extend(summary.unread.iter().map(|unread| format!("{} {unread}", part.path.display())));
        Ok(())
    }

    fn push_all(
        &self,
        log: &str,
        rows: &[TransactionRow],
        columns: &mut TransactionColumns,
        without_gtid: &mut Option<u64>,
    ) -> Result<(), FlowError> {
        for row in rows {
            if self.selection.only.is_some() && row.frame.gtid.is_none() {
                *without_gtid = Some(row.frame.position.unwrap_or_default());
                return Err(nobody_reads());
            }
            columns.push(log, row);
            if columns.rows == ROWS_MAX && self.sender.send(columns.finish(&self.schema)).is_err() {
                return Err(nobody_reads());
            }
        }
        Ok(())
    }
}

/// A way out of the pipeline.
fn nobody_reads() -> FlowError {
    FlowError::Output(std::io::Error::from(std::io::ErrorKind::BrokenPipe).into())
}

impl Iterator for TransactionBatches {
    type Item = MadeBatch;

    fn next(&mut self) -> Option<MadeBatch> {
        loop {
            match self.batches.recv_timeout(LOOK_PERIOD) {
                Ok(batch) => return Some(batch),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => match Python::try_attach(|py| py.check_signals()) {
                    Some(Ok(())) => {}
                    Some(Err(error)) => return Some(Err(ArrowError::ExternalError(Box::new(error)))),
                    None => return None,
                },
            }
        }
    }
}

impl RecordBatchReader for TransactionBatches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
