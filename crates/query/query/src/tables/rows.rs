//! A row for each row change: the table `changes`, with the images as JSON, and user tables, with typed columns.

use std::io;
use std::sync::Arc;

use binlogz_arrow::{ChangeSide, column_place};
use binlogz_binlog::Error as BinlogError;
use binlogz_binlog::event::RowsEvent;
use binlogz_binlog::row::{Row, RowDecoder, RowImage, TableSchema};
use binlogz_flow::events::{self, BatchItem, Event, EventBatch, RunSummary, TableEvent, WorkerTables};
use binlogz_flow::{Error, Input};
use binlogz_schema::HistoryPlace;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};

use super::built_column::{BuiltColumn, ValueSource, ValueTarget, batch_of};
use super::columns::{FieldKind, FieldValue};
use super::endings::{BatchEndings, EndingColumns, TransactionRun};
use super::frame::TransactionFrame;
use super::json_object::write_object;
use super::meeting_runs::{MeetingRuns, meeting_runs};
use super::picked::{self, NeededOutputs, PickedRows};
use super::statement_text::StatementText;
use super::user::UserColumns;
use super::{BatchSink, CountedColumn, MadeColumn, PickedPart, ROWS_MAX, ReadJob, TableReader};
use crate::error::LogError;
use crate::logs::wanted::{ValueCondition, WantedLogs};
use crate::logs::{Logs, ToldTable};

/// Bytes of row events after which a batch is passed on.
const BYTES_MAX: usize = 4 << 20;

/// The columns that every table of row changes has.
const COMMON: [(&str, FieldKind, ValueSource); 13] = [
    ("log", FieldKind::Text, ValueSource::Log),
    ("position", FieldKind::Number, ValueSource::Position),
    ("gtid", FieldKind::Text, ValueSource::Gtid),
    ("committed_at", FieldKind::Moment, ValueSource::CommittedAt),
    ("applied_at", FieldKind::Moment, ValueSource::AppliedAt),
    ("logged_at", FieldKind::Moment, ValueSource::LoggedAt),
    ("server_id", FieldKind::Small, ValueSource::ServerId),
    ("offset", FieldKind::Number, ValueSource::Offset),
    ("inside", FieldKind::Number, ValueSource::Inside),
    ("row", FieldKind::Number, ValueSource::Row),
    ("operation", FieldKind::Text, ValueSource::Operation),
    ("key", FieldKind::Text, ValueSource::Key),
    ("changed", FieldKind::Texts, ValueSource::Changed),
];

/// The column that those have besides which are asked in SQL. An export is never asked again, and what becomes of a prepared transaction may
/// be in logs to come.
const ENDING: (&str, FieldKind, ValueSource) = ("ending", FieldKind::Text, ValueSource::Ending);

/// The columns that only `changes` has.
const OF_ALL: [(&str, FieldKind, ValueSource); 5] = [
    ("statement", FieldKind::Text, ValueSource::Statement),
    ("schema", FieldKind::Text, ValueSource::Schema),
    ("table", FieldKind::Text, ValueSource::Table),
    ("before", FieldKind::Text, ValueSource::BeforeJson),
    ("after", FieldKind::Text, ValueSource::AfterJson),
];

/// `changes`, or a user table.
#[derive(Debug)]
pub(crate) struct ChangesTable {
    sources: Vec<(ValueSource, FieldKind)>,
    schema: SchemaRef,
    /// The columns of a user table's images.
    fields: Fields,
}

impl ChangesTable {
    /// All row changes.
    pub(crate) fn all() -> Self {
        let columns = COMMON.iter().chain(std::iter::once(&ENDING)).chain(&OF_ALL);
        let fields: Fields = columns.clone().map(|(name, kind, _)| kind.field(name)).collect();
        let sources = columns.map(|(_, kind, source)| (*source, *kind)).collect();
        ChangesTable { sources, schema: Arc::new(Schema::new(fields)), fields: Fields::empty() }
    }

    /// The row changes of a table as they are exported.
    pub(crate) fn of_table(columns: &UserColumns) -> Self {
        Self::of_columns(&COMMON, columns.fields())
    }

    /// The row changes of a table with these columns.
    pub(crate) fn of_fields(fields: Fields) -> Self {
        Self::of_columns(&[&COMMON[..], &[ENDING]].concat(), fields)
    }

    fn of_columns(common: &[(&str, FieldKind, ValueSource)], fields: Fields) -> Self {
        let images = [("before", ValueSource::Before), ("after", ValueSource::After)];
        let all = common
            .iter()
            .map(|(name, kind, _)| kind.field(name))
            .chain(images.iter().map(|(name, _)| Field::new(*name, DataType::Struct(fields.clone()), true)));
        let schema = Arc::new(Schema::new(all.collect::<Fields>()));
        let sources = common.iter().map(|(_, kind, source)| (*source, *kind));
        let sources = sources.chain(images.iter().map(|(_, source)| (*source, FieldKind::Text)));
        ChangesTable { sources: sources.collect(), schema, fields }
    }
}

impl ChangesTable {
    fn columns(&self, outputs: impl Iterator<Item = MadeColumn>) -> Vec<BuiltColumn> {
        let columns = outputs.filter_map(|output| {
            let (source, kind) = self.sources.get(output.column())?;
            Some(BuiltColumn::new(*source, *kind, output, &self.fields))
        });
        columns.collect()
    }

    /// The parts of blocks that outputs need; `None`: they need events.
    fn needed(&self, outputs: &[MadeColumn]) -> Option<NeededOutputs> {
        let source = |output: MadeColumn| self.sources.get(output.column()).map(|(source, _)| *source);
        (!self.fields.is_empty()).then(|| NeededOutputs::of(outputs, source, &self.fields)).flatten()
    }

    fn maker<'a>(
        &'a self,
        logs: &'a Logs,
        (index, log): (usize, &'a str),
        wanted: &'a WantedLogs,
        outputs: impl Iterator<Item = MadeColumn>,
        schema: SchemaRef,
    ) -> Maker<'a> {
        Maker {
            logs,
            index,
            log,
            wanted,
            schema,
            fields: &self.fields,
            decoder: RowDecoder::new(),
            columns: self.columns(outputs),
            transaction: None,
            runs: Vec::new(),
            rows: 0,
            bytes: 0,
            table: None,
            done: Vec::new(),
            scratch: Scratch::default(),
        }
    }
}

impl TableReader for ChangesTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn row_size(&self) -> u64 {
        30
    }

    fn is_of_rows(&self) -> bool {
        true
    }

    fn counted(&self, output: MadeColumn) -> Option<CountedColumn> {
        let (source, _) = self.sources.get(output.column())?;
        match source {
            ValueSource::Log => Some(CountedColumn::Log),
            ValueSource::Schema => Some(CountedColumn::Schema),
            ValueSource::Table => Some(CountedColumn::Table),
            ValueSource::Operation => Some(CountedColumn::Operation),
            ValueSource::Gtid => Some(CountedColumn::Gtid),
            ValueSource::CommittedAt => Some(CountedColumn::CommittedAt),
            ValueSource::AppliedAt => Some(CountedColumn::AppliedAt),
            _ => None,
        }
    }

    fn open_picked(
        &self,
        (logs, index): (&Logs, usize),
        wanted: &WantedLogs,
        outputs: &[MadeColumn],
    ) -> datafusion::common::Result<Option<PickedPart>> {
        let needed = self.needed(outputs);
        let tables = logs.tables()?;
        let (Some(needed), Some((database, table))) = (needed, wanted.one_table()) else { return Ok(None) };
        // Columns alone don't tell their places in the log.
        if tables.is_some_and(|tables| tables.may_change(database, table)) {
            return Ok(None);
        }
        let is_fit = |schema: &TableSchema| needed.places(schema, logs, &self.fields).is_some();
        let opened = picked::open(logs, index, wanted, &needed, &is_fit)?;
        Ok(opened.map(|(log, [blocks_read, blocks_skipped])| PickedPart {
            log,
            needed,
            blocks_read,
            blocks_skipped,
        }))
    }

    fn meeting_runs(
        &self,
        job: &ReadJob<'_>,
        conditions: &[ValueCondition],
    ) -> datafusion::common::Result<Option<MeetingRuns>> {
        if self.fields.is_empty() {
            return Ok(None);
        }
        let needed = self.needed(job.outputs);
        // To unpack the columns of the conditions takes as long as to unpack all that is asked for.
        if needed.as_ref().is_some_and(|needed| needed.is_of_columns(conditions, &self.fields)) {
            return Ok(None);
        }
        meeting_runs(job, conditions, needed.is_some())
    }

    fn read_picked(
        &self,
        part: &PickedPart,
        job: &ReadJob<'_>,
        sink: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> binlogz_archive::Result<u64> {
        let Some(table) = job.wanted.one_table() else { return Ok(0) };
        let columns = || self.columns(job.outputs.iter().copied());
        let rows = PickedRows { job, fields: &self.fields, needed: &part.needed, columns: &columns };
        rows.read(&part.log, table, sink)
    }

    fn read(&self, job: ReadJob<'_>, input: Input, sink: BatchSink<'_>) -> Result<RunSummary, Error> {
        let ReadJob { logs, index, log, wanted, outputs, schema, workers, end: _ } = job;
        let has_ending = |output: &MadeColumn| {
            self.sources.get(output.column()).is_some_and(|(source, _)| *source == ValueSource::Ending)
        };
        let endings: Vec<usize> =
            (0..outputs.len()).filter(|place| outputs.get(*place).is_some_and(has_ending)).collect();
        let with_endings = !endings.is_empty();
        let new_worker = || {
            let maker = self.maker(logs, (index, log), wanted, outputs.iter().copied(), Arc::clone(schema));
            Ok(Worker { tables: WorkerTables::one_of(workers), maker, with_endings })
        };
        let work = |worker: &mut Worker<'_>, batch: &mut EventBatch<'_>| Ok(worker.batch(batch));
        let mut ending = EndingColumns::new(logs, index, endings);
        let take = |(batches, endings): MadeRows| match with_endings {
            true => ending.take(batches, endings, sink),
            false => batches.into_iter().try_for_each(|(batch, _)| sink(batch)),
        };
        let ran = events::run(input, workers, new_worker, work, take, &mut |_| {})?;
        ending.end(sink)?;
        Ok(ran)
    }
}

/// Makes rows of batches of events.
struct Worker<'a> {
    tables: WorkerTables,
    maker: Maker<'a>,
    /// Whether rows need the endings of their transactions.
    with_endings: bool,
}

/// The rows of a batch of events, and the endings of its transactions.
type MadeRows = (Vec<(RecordBatch, Vec<TransactionRun>)>, BatchEndings);

/// Makes rows of row events.
pub(super) struct Maker<'a> {
    logs: &'a Logs,
    /// Which of the logs it is, and its name.
    index: usize,
    log: &'a str,
    wanted: &'a WantedLogs,
    schema: SchemaRef,
    fields: &'a Fields,
    decoder: RowDecoder,
    columns: Vec<BuiltColumn>,
    /// The transaction of the rows that come, by its number in the batch of events; `None`: none, or nobody asks.
    transaction: Option<usize>,
    /// The transactions of the rows so far.
    runs: Vec<TransactionRun>,
    rows: usize,
    bytes: usize,
    /// The table of the last rows.
    table: Option<Table>,
    done: Vec<(RecordBatch, Vec<TransactionRun>)>,
    scratch: Scratch,
}

/// A table as a table map describes it.
struct Table {
    map: Arc<TableSchema>,
    /// The statements that came before it: after others it may have other columns.
    era: usize,
    /// The map with what it lacks.
    schema: Arc<TableSchema>,
    is_wanted: bool,
    database: String,
    name: String,
    columns: Vec<String>,
    /// The columns of its primary key, as far as it is known.
    key: Vec<usize>,
    /// Which of its columns each field of an image has.
    fields: Vec<Option<usize>>,
}

#[derive(Debug, Default)]
struct Scratch {
    bytes: Vec<u8>,
    json: Vec<u8>,
    names: Vec<String>,
    document: String,
}

/// Values that are the same for all rows of an event.
struct EventValues<'a> {
    frame: &'a TransactionFrame,
    event: &'a Event<'a>,
    operation: &'static str,
    /// The text of their statement.
    statement: Option<&'a str>,
}

impl Worker<'_> {
    /// The rows of a batch; bytes that can't be read fail it.
    fn batch(&mut self, batch: &mut EventBatch<'_>) -> MadeRows {
        let mut endings = BatchEndings::of(batch);
        if let Err(error) = self.events(batch, &mut endings).and_then(|()| self.maker.pass_on()) {
            batch.fail(error);
        }
        let wanted = self.maker.wanted;
        batch.retain_unread(|unread| {
            unread
                .table
                .is_none_or(|(database, table)| wanted.has_name(database.as_bytes(), table.as_bytes()))
        });
        (std::mem::take(&mut self.maker.done), endings)
    }

    fn events(&mut self, batch: &mut EventBatch<'_>, endings: &mut BatchEndings) -> Result<(), Error> {
        self.tables.begin(batch)?;
        let mut frame = TransactionFrame::begin(batch)?;
        let with_statement = self.maker.has(ValueSource::Statement);
        let mut statement = StatementText::begin(batch, with_statement);
        while let Some(item) = batch.next_item() {
            if let BatchItem::Event(event) = &item {
                frame.pass(event).map_err(|error| event.error(error))?;
                statement.pass(event);
                if self.with_endings {
                    endings.pass(&item).map_err(|error| event.error(error))?;
                    self.maker.transaction = endings.current();
                }
                if let Some(TableEvent::Rows(schema, rows)) = self.tables.event(event)? {
                    self.maker.take((&frame, statement.text()), event, schema, &rows)?;
                    statement.end(&rows);
                }
            }
            if self.with_endings {
                endings.end(&item);
            }
        }
        Ok(())
    }
}

impl<'a> Maker<'a> {
    /// One for all columns of a table.
    pub(super) fn new(
        changes: &'a ChangesTable,
        logs: &'a Logs,
        log: (usize, &'a str),
        wanted: &'a WantedLogs,
    ) -> Self {
        let outputs = (0..changes.sources.len()).map(MadeColumn::Column);
        changes.maker(logs, log, wanted, outputs, Arc::clone(&changes.schema))
    }

    /// Whether a column has these values.
    fn has(&self, source: ValueSource) -> bool {
        self.columns.iter().any(|column| column.source == source)
    }

    /// Takes the rows of an event: of this transaction, and of a statement with this text.
    pub(super) fn take(
        &mut self,
        (frame, statement): (&TransactionFrame, Option<&str>),
        event: &Event<'_>,
        schema: Arc<TableSchema>,
        rows: &RowsEvent<'_>,
    ) -> Result<(), Error> {
        self.take_table(schema, Logs::place(self.index, event.position.offset))?;
        if self.table.as_ref().is_some_and(|table| table.is_wanted) && self.wanted.has_kind(rows.kind()) {
            self.event((frame, statement), event, rows)?;
        }
        Ok(())
    }

    /// The batches of all rows so far.
    pub(super) fn done(&mut self) -> Result<Vec<RecordBatch>, Error> {
        self.pass_on()?;
        Ok(std::mem::take(&mut self.done).into_iter().map(|(batch, _)| batch).collect())
    }

    fn take_table(&mut self, map: Arc<TableSchema>, place: HistoryPlace) -> Result<(), Error> {
        let era = self.logs.era(place);
        if self.table.as_ref().is_some_and(|table| Arc::ptr_eq(&table.map, &map) && table.era == era) {
            return Ok(());
        }
        let table = Table::new(map, (place, era), self.logs, self.wanted, self.fields);
        let table = table.map_err(|LogError(line)| Error::Input(io::Error::other(line).into()))?;
        if table.is_wanted && self.columns.iter().any(|column| column.source.names_columns()) {
            self.logs.say_names_lacking(&table.schema);
        }
        self.table = Some(table);
        Ok(())
    }

    fn event(
        &mut self,
        (frame, statement): (&TransactionFrame, Option<&str>),
        event: &Event<'_>,
        rows: &RowsEvent<'_>,
    ) -> Result<(), Error> {
        let Some(schema) = self.table.as_ref().map(|table| Arc::clone(&table.schema)) else { return Ok(()) };
        let around = EventValues { frame, event, operation: rows.kind().operation(), statement };
        let mut decoder = std::mem::take(&mut self.decoder);
        let done = self.each_row(&around, &mut decoder, &schema, rows);
        self.decoder = decoder;
        self.bytes += event.body.len();
        done
    }

    fn each_row(
        &mut self,
        around: &EventValues<'_>,
        decoder: &mut RowDecoder,
        schema: &TableSchema,
        rows: &RowsEvent<'_>,
    ) -> Result<(), Error> {
        let bad = |error: BinlogError| around.event.error(error);
        let mut number = 0;
        let mut read = match decoder.rows(schema, rows) {
            Ok(read) => read,
            Err(error) => {
                around.event.unread(schema, &error);
                return Ok(());
            }
        };
        while let Some(row) = read.next_row().map_err(bad)? {
            self.row(around, &row, number).map_err(bad)?;
            number += 1;
            self.rows += 1;
            match self.runs.last_mut().filter(|(transaction, _)| *transaction == self.transaction) {
                Some((_, rows)) => *rows += 1,
                None => self.runs.push((self.transaction, 1)),
            }
            if self.rows == ROWS_MAX || self.bytes > BYTES_MAX {
                self.pass_on()?;
            }
        }
        Ok(())
    }

    fn row(&mut self, around: &EventValues<'_>, row: &Row<'_, '_>, number: u64) -> Result<(), BinlogError> {
        let Some(table) = &self.table else { return Ok(()) };
        for column in &mut self.columns {
            let side = ChangeSide { row, is_after: column.source == ValueSource::After };
            match &mut column.target {
                ValueTarget::Image(image) => image.push(&side, &table.fields, &mut self.scratch.bytes)?,
                ValueTarget::Field(values, field) | ValueTarget::Presence(values, field) => {
                    let place = table.fields.get(*field).copied().flatten();
                    side.push(values, place, &mut self.scratch.bytes)?;
                }
                ValueTarget::Plain(builder) => {
                    let value =
                        value_of(column.source, self.log, around, table, row, number, &mut self.scratch)?;
                    builder.push(value);
                }
            }
        }
        Ok(())
    }

    /// Passes on the rows that are there.
    fn pass_on(&mut self) -> Result<(), Error> {
        self.bytes = 0;
        let rows = std::mem::take(&mut self.rows);
        let runs = std::mem::take(&mut self.runs);
        if rows == 0 {
            return Ok(());
        }
        self.done.push((batch_of(&mut self.columns, &self.schema, rows)?, runs));
        Ok(())
    }
}

fn value_of<'v>(
    source: ValueSource,
    log: &'v str,
    around: &'v EventValues<'_>,
    table: &'v Table,
    row: &Row<'_, '_>,
    number: u64,
    scratch: &'v mut Scratch,
) -> Result<FieldValue<'v>, BinlogError> {
    let EventValues { frame, event, operation, statement } = around;
    Ok(match source {
        ValueSource::Log => FieldValue::Text(log),
        ValueSource::Position => FieldValue::number(frame.position),
        ValueSource::Gtid => FieldValue::text(frame.gtid.as_deref()),
        ValueSource::CommittedAt => FieldValue::moment(frame.committed_at),
        ValueSource::AppliedAt => FieldValue::moment(frame.applied_at),
        ValueSource::LoggedAt => FieldValue::seconds(event.header.timestamp),
        ValueSource::ServerId => FieldValue::Number(event.header.server_id.into()),
        ValueSource::Offset => FieldValue::Number(event.position.offset),
        ValueSource::Inside => FieldValue::number(event.position.inside.map(|inside| inside.index)),
        ValueSource::Row => FieldValue::Number(number),
        ValueSource::Schema => FieldValue::Text(&table.database),
        ValueSource::Table => FieldValue::Text(&table.name),
        ValueSource::Operation => FieldValue::Text(operation),
        ValueSource::Statement => FieldValue::text(*statement),
        ValueSource::Key => table.key(row, scratch)?,
        ValueSource::Changed => table.changed(row, scratch),
        ValueSource::BeforeJson => table.json(row.before.as_ref(), |_| true, scratch)?,
        ValueSource::AfterJson => table.json(row.after.as_ref(), |_| true, scratch)?,
        // The ending is known later.
        ValueSource::Before | ValueSource::After | ValueSource::Ending => FieldValue::Null,
    })
}

impl Table {
    fn new(
        map: Arc<TableSchema>,
        (place, era): (HistoryPlace, usize),
        logs: &Logs,
        wanted: &WantedLogs,
        fields: &Fields,
    ) -> Result<Self, LogError> {
        let is_wanted = wanted.has_table(&map);
        let ToldTable { schema, names: columns, key } = match is_wanted {
            true => logs.told_of_rows(&map, place)?,
            false => logs.told(&map, place).0,
        };
        Ok(Table {
            is_wanted,
            database: String::from_utf8_lossy(&schema.database).into_owned(),
            name: String::from_utf8_lossy(&schema.table).into_owned(),
            key,
            fields: fields.iter().map(|field| column_place(&columns, field.name())).collect(),
            columns,
            schema,
            map,
            era,
        })
    }

    /// The primary key of a row.
    fn key<'v>(&self, row: &Row<'_, '_>, scratch: &'v mut Scratch) -> Result<FieldValue<'v>, BinlogError> {
        if self.key.is_empty() {
            return Ok(FieldValue::Null);
        }
        self.json(row.before.as_ref().or(row.after.as_ref()), |index| self.key.contains(&index), scratch)
    }

    /// The names of the columns that an update changed.
    fn changed<'v>(&self, row: &Row<'_, '_>, scratch: &'v mut Scratch) -> FieldValue<'v> {
        let (Some(before), Some(after)) = (&row.before, &row.after) else { return FieldValue::Null };
        scratch.names.clear();
        for cell in after.cells() {
            if before.cell(cell.index).is_none_or(|before| before.content != cell.content) {
                scratch.names.extend(self.columns.get(cell.index).cloned());
            }
        }
        FieldValue::Texts(&scratch.names)
    }

    /// The chosen columns of an image as a JSON object.
    fn json<'v>(
        &self,
        image: Option<&RowImage<'_, '_>>,
        is_chosen: impl Fn(usize) -> bool,
        scratch: &'v mut Scratch,
    ) -> Result<FieldValue<'v>, BinlogError> {
        let Some(image) = image else { return Ok(FieldValue::Null) };
        let cells = image.cells().filter(|cell| is_chosen(cell.index));
        write_object(&mut scratch.json, cells, &self.columns, &mut scratch.bytes)?;
        scratch.document = String::from_utf8_lossy(&scratch.json).into_owned();
        Ok(FieldValue::Text(&scratch.document))
    }
}
