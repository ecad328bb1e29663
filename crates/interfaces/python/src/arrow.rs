//! Row changes of one table as a stream of Arrow's, by its C stream interface, which pyarrow, pandas, Polars and DuckDB
//! take without a copy. Names and types of the columns are those of `binlogz sql`.

use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::builder::{StringBuilder, TimestampMicrosecondBuilder, UInt32Builder, UInt64Builder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef};
use binlogz_arrow::{ChangeSide, ImageColumn, TableFields, column_place, is_same_column, moment};
use binlogz_binlog::event::RowsEvent;
use binlogz_binlog::row::{RowDecoder, TableSchema};
use binlogz_binlog::{Error as BinlogError, EventType};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::definitions::{self, DefinedName};
use crate::feed::{BUG, Feed, FeedTrouble, NextBatch};
use crate::gather::{EventContent, GatheredEvent, GtidContent, RowsContent};
use crate::interrupt::{InterruptFlag, LOOK_PERIOD, interruptible};
use crate::stream::Stream;
use crate::table::column_name;

/// A batch is passed on when it has this many rows,
const ROWS_MAX: usize = 8192;
/// or its events this many bytes.
const BYTES_MAX: usize = 4 << 20;

/// The row changes of a table. They can be taken once.
#[pyclass(frozen, module = "binlogz")]
pub(crate) struct ArrowRows(Mutex<Option<Batches>>);

/// The rest of a stream, as the row changes of a table. It waits for the first of them if a server sends the stream.
#[pyfunction]
pub(crate) fn arrow_rows(
    py: Python<'_>,
    stream: &Stream,
    database: String,
    table: String,
) -> PyResult<ArrowRows> {
    let (feed, paths) =
        stream.taken().ok_or_else(|| PyValueError::new_err("the log was closed, or read before"))?;
    let name = DefinedName { database, table };
    let opened = interruptible(py, move |interrupted| Batches::open(feed, &paths, name, interrupted))?
        .map_err(PyValueError::new_err)?;
    Ok(ArrowRows(Mutex::new(Some(opened))))
}

#[pymethods]
impl ArrowRows {
    /// The stream, as a capsule. Its schema is the one that there is, whatever is asked for.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let batches = batches.ok_or_else(|| PyValueError::new_err("the row changes were taken before"))?;
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }
}

/// The transaction around rows, as its GTID event tells it.
#[derive(Default)]
struct Frame {
    gtid: Option<String>,
    position: Option<u64>,
    committed_at: Option<i64>,
    applied_at: Option<i64>,
}

impl Frame {
    fn new(gtid: GtidContent, position: u64) -> Self {
        // 0 is unknown: a server before 8.0.1 committed it first.
        let micros = |time: Option<u64>| i64::try_from(time?).ok().filter(|time| *time > 0);
        Frame {
            gtid: gtid.gtid,
            position: Some(position),
            committed_at: micros(gtid.original),
            applied_at: micros(gtid.immediate),
        }
    }
}

/// Columns that are being built.
struct Columns {
    log: StringBuilder,
    position: UInt64Builder,
    gtid: StringBuilder,
    committed_at: TimestampMicrosecondBuilder,
    applied_at: TimestampMicrosecondBuilder,
    logged_at: TimestampMicrosecondBuilder,
    server_id: UInt32Builder,
    offset: UInt64Builder,
    row: UInt64Builder,
    operation: StringBuilder,
    before: ImageColumn,
    after: ImageColumn,
}

impl Columns {
    fn new(fields: &Fields) -> Self {
        let moments = || TimestampMicrosecondBuilder::new().with_data_type(moment());
        Columns {
            log: StringBuilder::new(),
            position: UInt64Builder::new(),
            gtid: StringBuilder::new(),
            committed_at: moments(),
            applied_at: moments(),
            logged_at: moments(),
            server_id: UInt32Builder::new(),
            offset: UInt64Builder::new(),
            row: UInt64Builder::new(),
            operation: StringBuilder::new(),
            before: ImageColumn::new(fields),
            after: ImageColumn::new(fields),
        }
    }

    fn schema(fields: &Fields) -> Schema {
        let image = || DataType::Struct(fields.clone());
        let columns = [
            ("log", DataType::Utf8),
            ("position", DataType::UInt64),
            ("gtid", DataType::Utf8),
            ("committed_at", moment()),
            ("applied_at", moment()),
            ("logged_at", moment()),
            ("server_id", DataType::UInt32),
            ("offset", DataType::UInt64),
            ("row", DataType::UInt64),
            ("operation", DataType::Utf8),
            ("before", image()),
            ("after", image()),
        ];
        Schema::new(columns.map(|(name, kind)| Field::new(name, kind, true)).to_vec())
    }

    /// The first rows. There may be parts of others after them, of an event that can't be read.
    fn finish(&mut self, fields: &Fields, rows: usize) -> Result<Vec<ArrayRef>, ArrowError> {
        let whole: [ArrayRef; 10] = [
            Arc::new(self.log.finish()),
            Arc::new(self.position.finish()),
            Arc::new(self.gtid.finish()),
            Arc::new(self.committed_at.finish()),
            Arc::new(self.applied_at.finish()),
            Arc::new(self.logged_at.finish()),
            Arc::new(self.server_id.finish()),
            Arc::new(self.offset.finish()),
            Arc::new(self.row.finish()),
            Arc::new(self.operation.finish()),
        ];
        let mut columns: Vec<_> = whole.iter().map(|column| column.slice(0, rows)).collect();
        for image in [&mut self.before, &mut self.after] {
            let values = image.values.iter_mut().map(|values| values.finish().slice(0, rows)).collect();
            let is_there: NullBuffer = std::mem::take(&mut image.is_there).into_iter().take(rows).collect();
            columns.push(Arc::new(StructArray::try_new(fields.clone(), values, Some(is_there))?));
        }
        Ok(columns)
    }
}

/// Makes batches of the events of a feed.
struct Batches {
    feed: Arc<Feed>,
    name: DefinedName,
    schema: SchemaRef,
    fields: Fields,
    columns: Columns,
    rows: usize,
    bytes: usize,
    frame: Frame,
    decoder: RowDecoder,
    scratch: Vec<u8>,
    /// Tables by the addresses of their definitions, which are held.
    places: HashMap<usize, (Arc<TableSchema>, ColumnPlaces)>,
    /// Events of the feed's last batch.
    waiting: std::vec::IntoIter<GatheredEvent>,
    /// The end of the feed, and why.
    end: Option<Option<ArrowError>>,
}

/// Where a definition has each of the columns, if it does; `None`: it is another table's.
type ColumnPlaces = Option<Vec<Option<usize>>>;

/// Definitions that are remembered.
const TABLES_MAX: usize = 1024;

impl Batches {
    fn open(
        feed: Arc<Feed>,
        paths: &[std::path::PathBuf],
        name: DefinedName,
        interrupted: &InterruptFlag,
    ) -> Result<Self, String> {
        let mut events = Vec::new();
        let mut end = None;
        let fields = if !paths.is_empty() && definitions::can_be_read_twice(paths) {
            definitions::of_table(paths, &name, interrupted)
        } else {
            first_definition(&feed, &name, &mut events, &mut end, interrupted)
        };
        if fields.is_empty() {
            // Reading to the end says whether that is an error.
            let why = match end {
                Some(Some(error)) => error,
                _ => loop {
                    interrupted.check().map_err(|error| error.to_string())?;
                    match feed.next(LOOK_PERIOD) {
                        NextBatch::Batch(Ok(_)) | NextBatch::NotYet => {}
                        NextBatch::Batch(Err(trouble)) => break failed(trouble),
                        NextBatch::End => {
                            let DefinedName { database, table } = &name;
                            return Err(format!("the logs have no row change of {database}.{table}"));
                        }
                    }
                },
            };
            return Err(why.to_string());
        }
        let fields = fields.fields();
        Ok(Batches {
            schema: Arc::new(Columns::schema(&fields)),
            columns: Columns::new(&fields),
            fields,
            feed,
            name,
            rows: 0,
            bytes: 0,
            frame: Frame::default(),
            decoder: RowDecoder::new(),
            scratch: Vec::new(),
            places: HashMap::new(),
            waiting: events.into_iter(),
            end,
        })
    }

    /// Takes an event of the feed.
    fn take(&mut self, event: GatheredEvent) -> Result<(), ArrowError> {
        match event.content {
            EventContent::Gtid(gtid) => self.frame = Frame::new(*gtid, event.offset),
            EventContent::Rows(ref rows) => {
                let rows = rows.clone();
                self.take_rows(&event, &rows)?;
            }
            _ if event.header.event_type == EventType::FORMAT_DESCRIPTION => self.frame = Frame::default(),
            _ => {}
        }
        Ok(())
    }

    fn take_rows(&mut self, event: &GatheredEvent, content: &RowsContent) -> Result<(), ArrowError> {
        let address = Arc::as_ptr(&content.schema) as usize;
        if !self.places.contains_key(&address) {
            if self.places.len() == TABLES_MAX {
                self.places.clear();
            }
            let places = self.places_in(event, &content.schema)?;
            self.places.insert(address, (Arc::clone(&content.schema), places));
        }
        let Some((_, Some(places))) = self.places.get(&address) else { return Ok(()) };
        let before = self.rows;
        let done = decode(&mut self.decoder, content, |row, number, word| {
            let columns = &mut self.columns;
            columns.before.push(&ChangeSide { row, is_after: false }, places, &mut self.scratch)?;
            columns.after.push(&ChangeSide { row, is_after: true }, places, &mut self.scratch)?;
            columns.row.append_value(number);
            columns.operation.append_value(word);
            self.rows += 1;
            Ok(())
        });
        if let Err(error) = done {
            // Those of the event before the bad one count no more than it.
            self.rows = before;
            let error = error.at(event.offset, Some(event.header.event_type));
            return Err(ArrowError::ParseError(format!("{} {error}", event.log)));
        }
        // The same for all rows of the event.
        for _ in before..self.rows {
            let columns = &mut self.columns;
            let frame = &self.frame;
            columns.log.append_value(&event.log);
            columns.position.append_option(frame.position);
            columns.gtid.append_option(frame.gtid.as_deref());
            columns.committed_at.append_option(frame.committed_at);
            columns.applied_at.append_option(frame.applied_at);
            let logged_at = i64::from(event.header.timestamp) * 1_000_000;
            columns.logged_at.append_option((logged_at > 0).then_some(logged_at));
            columns.server_id.append_value(event.header.server_id);
            columns.offset.append_value(event.offset);
        }
        self.bytes += content.body.len();
        Ok(())
    }

    /// Where a table has the columns of the stream; `None`: it is another table.
    fn places_in(&self, event: &GatheredEvent, schema: &TableSchema) -> Result<ColumnPlaces, ArrowError> {
        if !self.name.is_of(schema) {
            return Ok(None);
        }
        let columns = schema.columns().iter().enumerate();
        let names: Vec<_> = columns.map(|(index, column)| column_name(index, column)).collect();
        // Definitions of logs that were read before are all known; a server's are not.
        for (name, column) in names.iter().zip(schema.columns()) {
            let mut known = TableFields::default();
            let Some(field) = self.fields.iter().find(|field| is_same_column(field.name(), name)) else {
                return Err(self.changed(event, name));
            };
            known.add(name.clone(), field.data_type().clone());
            known.add(name.clone(), binlogz_arrow::of(column));
            if known.fields().iter().any(|merged| merged.data_type() != field.data_type()) {
                return Err(self.changed(event, name));
            }
        }
        Ok(Some(self.fields.iter().map(|field| column_place(&names, field.name())).collect()))
    }

    fn changed(&self, event: &GatheredEvent, column: &str) -> ArrowError {
        let DefinedName { database, table } = &self.name;
        let gtid = self.frame.gtid.as_deref().unwrap_or("an anonymous transaction");
        ArrowError::SchemaError(format!(
            "{} at {}: column {column} of {database}.{table} is another one from {gtid} on; begin anew there",
            event.log, event.offset
        ))
    }

    /// The rows so far.
    fn batch(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        self.bytes = 0;
        let rows = std::mem::take(&mut self.rows);
        if rows == 0 {
            return None;
        }
        let arrays = self.columns.finish(&self.fields, rows);
        Some(arrays.and_then(|arrays| RecordBatch::try_new(Arc::clone(&self.schema), arrays)))
    }

    /// An error stands after the rows before it.
    fn fail(&mut self, error: ArrowError) {
        self.waiting = Vec::new().into_iter();
        self.end = Some(Some(error));
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    /// Arrow's interface to C calls it: a panic would end the process.
    fn next(&mut self) -> Option<Self::Item> {
        catch_unwind(AssertUnwindSafe(|| self.next_batch())).unwrap_or_else(|_| {
            self.end = Some(None);
            self.rows = 0;
            Some(Err(failed(FeedTrouble::Bug)))
        })
    }
}

impl Batches {
    fn next_batch(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        loop {
            while let Some(event) = self.waiting.next() {
                if let Err(error) = self.take(event) {
                    self.fail(error);
                }
                if self.rows >= ROWS_MAX || self.bytes >= BYTES_MAX {
                    return self.batch();
                }
            }
            if self.end.is_some() {
                let last = self.batch();
                return last.or_else(|| self.end.as_mut()?.take().map(Err));
            }
            match self.feed.next(LOOK_PERIOD) {
                NextBatch::Batch(Ok(events)) => self.waiting = events.into_iter(),
                NextBatch::Batch(Err(trouble)) => self.fail(failed(trouble)),
                NextBatch::End => self.end = Some(None),
                NextBatch::NotYet => match Python::try_attach(|py| py.check_signals()) {
                    Some(Ok(())) if self.rows == 0 => {}
                    // A program that follows a server gets its rows while nothing happens.
                    Some(Ok(())) => return self.batch(),
                    Some(Err(error)) => self.fail(ArrowError::ExternalError(Box::new(error))),
                    None => {
                        let error = io::Error::other("the interpreter ends");
                        self.fail(ArrowError::ExternalError(Box::new(error)));
                    }
                },
            }
        }
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Goes through the rows of an event.
fn decode(
    decoder: &mut RowDecoder,
    content: &RowsContent,
    mut each: impl FnMut(&binlogz_binlog::row::Row<'_, '_>, u64, &'static str) -> Result<(), BinlogError>,
) -> Result<(), BinlogError> {
    let event = RowsEvent::decode(content.event_type, &content.body, content.post_header_length)?;
    let word = event.kind().operation();
    let mut rows = decoder.rows(&content.schema, &event)?;
    let mut number = 0;
    while let Some(row) = rows.next_row()? {
        each(&row, number, word)?;
        number += 1;
    }
    Ok(())
}

/// The first definition of a table in a stream that can't be read twice; `events` get what was read.
fn first_definition(
    feed: &Feed,
    name: &DefinedName,
    events: &mut Vec<GatheredEvent>,
    end: &mut Option<Option<ArrowError>>,
    interrupted: &InterruptFlag,
) -> TableFields {
    let mut fields = TableFields::default();
    while fields.is_empty() && end.is_none() {
        // Events without rows of the table are needed no more, but for the transaction that they end in.
        let begun = events.drain(..).rfind(|event| matches!(event.content, EventContent::Gtid(_)));
        events.extend(begun);
        match feed.next(LOOK_PERIOD) {
            NextBatch::Batch(Ok(batch)) => {
                for event in &batch {
                    if let EventContent::Rows(rows) = &event.content
                        && fields.is_empty()
                        && name.is_of(&rows.schema)
                    {
                        definitions::add(&mut fields, &rows.schema);
                    }
                }
                events.extend(batch);
            }
            NextBatch::Batch(Err(trouble)) => *end = Some(Some(failed(trouble))),
            NextBatch::End => *end = Some(None),
            NextBatch::NotYet => {
                if let Err(error) = interrupted.check() {
                    *end = Some(Some(ArrowError::ExternalError(Box::new(error))));
                }
            }
        }
    }
    fields
}

fn failed(trouble: FeedTrouble) -> ArrowError {
    match trouble {
        FeedTrouble::Bad(error) | FeedTrouble::Unread(error) => ArrowError::ParseError(error),
        FeedTrouble::Broken(error) | FeedTrouble::Lost(error) => {
            ArrowError::IoError(error.clone(), io::Error::other(error))
        }
        FeedTrouble::Bug => ArrowError::ExternalError(BUG.into()),
    }
}
