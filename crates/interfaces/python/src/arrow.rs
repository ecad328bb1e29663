//! Row changes of one table, or of all, as a stream of Arrow's, by its C stream interface, which pyarrow, pandas, Polars and DuckDB
//! take without a copy. Names and types of the columns are those of `binlogz sql`.

use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Fields, SchemaRef};
use binlogz_arrow::{TableFields, column_place, is_same_column, merged};
use binlogz_binlog::event::RowsEvent;
use binlogz_binlog::row::{RowDecoder, TableSchema};
use binlogz_binlog::{Error as BinlogError, EventType};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::change_frame::ChangeFrame;
use crate::columns::{ChangeColumns, KnownTable};
use crate::definitions::{self, DefinedName};
use crate::feed::{Feed, FeedTrouble, NextBatch, told};
use crate::gather::{EventContent, GatheredEvent, GtidContent, RowsContent};
use crate::interrupt::{InterruptFlag, LOOK_PERIOD, interruptible};
use crate::parts::{AskedPart, LogPart};
use crate::selection::AskedConditions;
use crate::spark_types::{fields_of, spark_name, takes};
use crate::stream::Stream;
use crate::table::column_name;
use crate::transactions::{TransactionBatches, WITHOUT_GTID};

/// A batch is passed on when it has this many rows,
const ROWS_MAX: usize = 8192;
/// or its events this many bytes.
const BYTES_MAX: usize = 4 << 20;

/// The row changes of a table. They can be taken once.
#[pyclass(frozen, module = "binlogz")]
pub(crate) struct ArrowRows(Mutex<Option<Box<dyn RecordBatchReader + Send>>>);

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
    Ok(ArrowRows::of(opened))
}

/// The rest of a stream, as the row changes of a table with these columns, by their names and Spark's of their types; without `columns`,
/// of all tables. `has_others`: columns that it has besides are left out; otherwise one is an error. `needs_gtids`: a transaction without one
/// is an error.
#[pyfunction]
pub(crate) fn arrow_stream(
    stream: &Stream,
    table: Option<(String, String)>,
    columns: Vec<(String, String)>,
    has_others: bool,
    needs_gtids: bool,
) -> PyResult<ArrowRows> {
    let (feed, _) =
        stream.taken().ok_or_else(|| PyValueError::new_err("the log was closed, or read before"))?;
    let wanted = wanted_table(table, &columns, has_others)?;
    Ok(ArrowRows::of(Batches::of_fields(feed, wanted, needs_gtids)))
}

/// Parts of logs, as the row changes of a table or, without `columns`, of all; or as transactions.
#[pyfunction]
pub(crate) fn arrow_parts(
    parts: Vec<AskedPart>,
    are_transactions: bool,
    table: Option<(String, String)>,
    columns: Vec<(String, String)>,
    has_others: bool,
    conditions: AskedConditions,
) -> PyResult<ArrowRows> {
    let parts = parts.into_iter().map(LogPart::asked).collect();
    let selection = conditions.transactions()?;
    let needs_gtids = selection.only.is_some();
    let is_ordered = conditions.is_ordered;
    let blocks = conditions.blocks(!are_transactions)?;
    if are_transactions {
        return Ok(ArrowRows::of(TransactionBatches::of_parts(parts, blocks, selection)));
    }
    let wanted = wanted_table(table, &columns, has_others)?;
    let feed = Arc::new(Feed::of_parts(parts, Some(blocks), selection, is_ordered));
    Ok(ArrowRows::of(Batches::of_fields(feed, wanted, needs_gtids)))
}

/// The table whose rows are asked for.
struct WantedTable {
    name: DefinedName,
    /// The fields of its images.
    fields: Fields,
    /// Columns that it has besides are left out.
    has_others: bool,
}

/// The table of this name; `None`: all.
fn wanted_table(
    name: Option<(String, String)>,
    columns: &[(String, String)],
    has_others: bool,
) -> PyResult<Option<WantedTable>> {
    let Some((database, table)) = name else { return Ok(None) };
    let fields = fields_of(columns).map_err(PyValueError::new_err)?;
    Ok(Some(WantedTable { name: DefinedName { database, table }, fields, has_others }))
}

impl ArrowRows {
    fn of(batches: impl RecordBatchReader + Send + 'static) -> Self {
        ArrowRows(Mutex::new(Some(Box::new(batches))))
    }
}

#[pymethods]
impl ArrowRows {
    /// The columns of the table, by their names, with Spark's names of their types; none of all tables.
    fn spark_columns(&self) -> PyResult<Vec<(String, String)>> {
        let batches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let schema = batches.as_ref().map(|batches| batches.schema());
        let schema = schema.ok_or_else(|| PyValueError::new_err("the row changes were taken before"))?;
        let after = schema.column_with_name("after").map(|(_, field)| field.data_type());
        let Some(DataType::Struct(fields)) = after else { return Ok(Vec::new()) };
        Ok(fields.iter().map(|field| (field.name().clone(), spark_name(field.data_type()))).collect())
    }

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
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(batches), c"arrow_array_stream")
    }
}

/// Makes batches of the events of a feed.
struct Batches {
    feed: Arc<Feed>,
    /// `None`: all tables.
    wanted: Option<WantedTable>,
    /// A transaction without a GTID is an error.
    needs_gtids: bool,
    schema: SchemaRef,
    columns: ChangeColumns,
    rows: usize,
    bytes: usize,
    frame: ChangeFrame,
    decoder: RowDecoder,
    /// Tables by the addresses of their definitions, which are held.
    known: HashMap<usize, (Arc<TableSchema>, KnownTable)>,
    /// Events of the feed's last batch.
    waiting: std::vec::IntoIter<GatheredEvent>,
    /// The end of the feed, and why.
    end: Option<Option<ArrowError>>,
}

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
                        NextBatch::Batch(Err(trouble)) => break told(trouble),
                        NextBatch::End => {
                            let DefinedName { database, table } = &name;
                            return Err(format!("the logs have no row change of {database}.{table}"));
                        }
                    }
                },
            };
            return Err(why.to_string());
        }
        let waiting = events.into_iter();
        let wanted = WantedTable { name, fields: fields.fields(), has_others: false };
        Ok(Batches { waiting, end, ..Self::of_fields(feed, Some(wanted), false) })
    }

    /// Of a table whose columns are known.
    fn of_fields(feed: Arc<Feed>, wanted: Option<WantedTable>, needs_gtids: bool) -> Self {
        let fields = wanted.as_ref().map(|wanted| &wanted.fields);
        Batches {
            schema: Arc::new(ChangeColumns::schema(fields)),
            columns: ChangeColumns::new(fields),
            feed,
            wanted,
            needs_gtids,
            rows: 0,
            bytes: 0,
            frame: ChangeFrame::default(),
            decoder: RowDecoder::new(),
            known: HashMap::new(),
            waiting: Vec::new().into_iter(),
            end: None,
        }
    }

    /// Takes an event of the feed.
    fn take(&mut self, event: GatheredEvent) -> Result<(), ArrowError> {
        match event.content {
            EventContent::Gtid(gtid) => {
                let GtidContent { gtid, original, immediate, .. } = *gtid;
                self.frame = ChangeFrame::new(gtid, event.offset, original, immediate);
            }
            EventContent::Rows(ref rows) => {
                let rows = rows.clone();
                self.take_rows(&event, &rows)?;
            }
            _ if event.header.event_type == EventType::FORMAT_DESCRIPTION => {
                self.frame = ChangeFrame::default()
            }
            _ => {}
        }
        Ok(())
    }

    fn take_rows(&mut self, event: &GatheredEvent, content: &RowsContent) -> Result<(), ArrowError> {
        let address = Arc::as_ptr(&content.schema) as usize;
        if !self.known.contains_key(&address) {
            if self.known.len() == TABLES_MAX {
                self.known.clear();
            }
            let known = self.known_table(event, &content.schema)?;
            self.known.insert(address, (Arc::clone(&content.schema), known));
        }
        let Some((_, table)) = self.known.get(&address) else { return Ok(()) };
        if matches!(table, KnownTable::Other) {
            return Ok(());
        }
        if self.needs_gtids && self.frame.gtid.is_none() {
            let what = format!("{} at {}: a transaction {WITHOUT_GTID}", event.log, event.offset);
            return Err(ArrowError::ParseError(what));
        }
        let before = self.rows;
        let columns = &mut self.columns;
        let rows = &mut self.rows;
        let done = decode(&mut self.decoder, content, |row, number, word| {
            columns.push_row(table, row, number, word)?;
            *rows += 1;
            Ok(())
        });
        if let Err(error) = done {
            // Those of the event before the bad one count no more than it.
            self.rows = before;
            let error = error.at(event.offset, Some(event.header.event_type));
            return Err(ArrowError::ParseError(format!("{} {error}", event.log)));
        }
        self.columns.push_event(event, &self.frame, self.rows - before);
        self.bytes += content.body.len();
        Ok(())
    }

    /// Places of the columns that are asked for, in rows of this definition.
    fn known_table(&self, event: &GatheredEvent, schema: &TableSchema) -> Result<KnownTable, ArrowError> {
        let columns = schema.columns().iter().enumerate();
        let names: Vec<_> = columns.map(|(index, column)| column_name(index, column)).collect();
        let Some(WantedTable { name, fields, has_others }) = &self.wanted else {
            let [database, table] =
                [&schema.database, &schema.table].map(|name| String::from_utf8_lossy(name).into_owned());
            return Ok(KnownTable::Names { database, table, columns: names });
        };
        if !name.is_of(schema) {
            return Ok(KnownTable::Other);
        }
        // Definitions of logs that were read before are all known; a server's are not.
        for (name, column) in names.iter().zip(schema.columns()) {
            let field = fields.iter().find(|field| is_same_column(field.name(), name));
            let kind = binlogz_arrow::of(column);
            let is_known = field.map_or(*has_others, |field| {
                merged(field.data_type(), &kind) == *field.data_type() || takes(field.data_type(), &kind)
            });
            if !is_known {
                return Err(self.changed(event, name));
            }
        }
        Ok(KnownTable::Places(fields.iter().map(|field| column_place(&names, field.name())).collect()))
    }

    fn changed(&self, event: &GatheredEvent, column: &str) -> ArrowError {
        let table = self.wanted.as_ref().map_or_else(String::new, |wanted| wanted.name.to_string());
        let gtid = self.frame.gtid.as_deref().unwrap_or("an anonymous transaction");
        ArrowError::SchemaError(format!(
            "{} at {}: column {column} of {table} is another one from {gtid} on; begin anew there",
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
        let arrays = self.columns.finish(rows);
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
            Some(Err(told(FeedTrouble::Bug)))
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
                NextBatch::Batch(Err(trouble)) => self.fail(told(trouble)),
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
            NextBatch::Batch(Err(trouble)) => *end = Some(Some(told(trouble))),
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
