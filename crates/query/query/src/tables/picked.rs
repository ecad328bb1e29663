//! Columns of a user table, read straight from the columns of an archive, without putting events together. A query can be
//! answered so if it needs only columns of images and of their transaction, keys and numbers of rows. Where a transaction begins the
//! archive's directory has to tell.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use binlogz_archive::block::picked::{Pick, PickedChanges, PickedTable, PickedTransaction, RowRun};
use binlogz_archive::part::PickedLog;
use binlogz_arrow::{ValueColumn, column_place, is_same_column};
use binlogz_binlog::event::RowsKind;
use binlogz_binlog::row::{Cell, CellContent, ColumnClass, ColumnKind, ColumnSchema, TableSchema};
use binlogz_schema::HistoryPlace;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{FieldRef, Fields, SchemaRef};
use datafusion::common::Result;
use datafusion::error::DataFusionError;

use super::built_column::{BuiltColumn, ValueSource, ValueTarget, batch_of};
use super::columns::FieldValue;
use super::frame::TransactionFrame;
use super::json_object::write_object;
use super::{MadeColumn, ReadJob};
use crate::logs::Logs;
use crate::logs::wanted::{ValueCondition, WantedLogs};

/// Rows of a batch: more than of those made from events, which take longer; to pass one on takes as long whatever its size.
const ROWS_MAX: usize = 32 << 10;
/// Bytes of values after which a batch is passed on.
const BYTES_MAX: usize = 4 << 20;

/// The parts of blocks that the outputs of a query need.
#[derive(Debug, Default)]
pub(super) struct NeededOutputs {
    /// Fields of images, by their numbers.
    fields: BTreeSet<usize>,
    /// Fields of which only whether they are NULL is asked.
    bare: BTreeSet<usize>,
    /// Transaction and event header of the rows.
    around: bool,
    /// Images before the change.
    before: bool,
    /// Primary keys.
    key: bool,
    /// Numbers of rows in their events.
    numbers: bool,
    /// Where transactions begin.
    pub(super) positions: bool,
    /// The columns that an update changed: all of them are compared.
    changed: bool,
    /// Places inside payloads: a log without payloads has none.
    inside: bool,
}

impl NeededOutputs {
    /// `None`: events are needed.
    pub(super) fn of(
        outputs: &[MadeColumn],
        sources: impl Fn(MadeColumn) -> Option<ValueSource>,
        all: &Fields,
    ) -> Option<Self> {
        let mut needed = NeededOutputs::default();
        for &output in outputs {
            needed.before |= sources(output) == Some(ValueSource::Before);
            match (sources(output)?, output) {
                (ValueSource::Log | ValueSource::Operation, _) => {}
                (ValueSource::Row, _) => needed.numbers = true,
                // Of a row that is deleted, the image before has it.
                (ValueSource::Key, _) => (needed.key, needed.before) = (true, true),
                (ValueSource::Position, _) => (needed.around, needed.positions) = (true, true),
                (ValueSource::Changed, _) => (needed.changed, needed.before) = (true, true),
                (ValueSource::Inside, _) => needed.inside = true,
                (source, _) if is_around(source) => needed.around = true,
                (ValueSource::Before | ValueSource::After, MadeColumn::Field(_, field)) => {
                    needed.fields.insert(field);
                }
                (ValueSource::Before | ValueSource::After, MadeColumn::Presence(_, field)) => {
                    needed.bare.insert(field);
                }
                (ValueSource::Before | ValueSource::After, MadeColumn::Column(_)) => {
                    needed.fields.extend(0..all.len())
                }
                _ => return None,
            }
        }
        needed.bare = &needed.bare - &needed.fields;
        Some(needed)
    }

    /// Whether it is nothing but columns of images that these conditions are on.
    pub(super) fn is_of_columns(&self, conditions: &[ValueCondition], all: &Fields) -> bool {
        let NeededOutputs { fields, bare, around, before: _, key, numbers: _, positions, changed, inside: _ } =
            self;
        let mut fields = fields.union(bare).filter_map(|field| all.get(*field));
        let is_one = |name: &str| conditions.iter().any(|one| is_same_column(&one.column, name));
        !around && !key && !positions && !changed && fields.all(|field| is_one(field.name()))
    }

    /// The places of its columns in a table; `None`: a schema tells another type of one of them.
    pub(super) fn places(&self, schema: &TableSchema, logs: &Logs, all: &Fields) -> Option<Vec<usize>> {
        let (told, _) = logs.told(&Arc::new(schema.clone()), HistoryPlace::default());
        let mut places = Vec::with_capacity(self.fields.len());
        for field in self.fields.union(&self.bare).filter_map(|field| all.get(*field)) {
            let Some(place) = column_place(&told.names, field.name()) else { continue };
            let column = schema.columns().get(place)?;
            // A schema may make another type of it, as of an ENUM whose members it tells.
            let told = told.schema.columns().get(place)?;
            if binlogz_arrow::of(told) != binlogz_arrow::of(column) {
                return None;
            }
            places.push(place);
        }
        if self.changed {
            // Of hidden columns nothing is told.
            let is_told = |column: &ColumnSchema| !matches!(column.kind.class(), ColumnClass::Hidden);
            if !schema.columns().iter().all(is_told) {
                return None;
            }
            let others = (0..schema.columns().len()).filter(|place| !places.contains(place));
            places.extend(others.collect::<Vec<_>>());
        }
        for place in told.key.into_iter().filter(|_| self.key) {
            if !is_shown_alike(told.schema.columns().get(place)?, schema.columns().get(place)?) {
                return None;
            }
            if !places.contains(&place) {
                places.push(place);
            }
        }
        Some(places)
    }

    /// Whether the values of a column are needed, by its place in the table.
    fn has_values(&self, schema: &TableSchema, place: usize, (logs, all): (&Logs, &Fields)) -> bool {
        if self.bare.is_empty() || self.key || self.changed {
            return true;
        }
        // Any text is a text, whatever its bytes are; of other types some values are NULL, as days in no calendar are.
        let kind = schema.columns().get(place).map(|column| column.kind);
        if !matches!(
            kind,
            Some(ColumnKind::Char { .. } | ColumnKind::Varchar { .. } | ColumnKind::Blob { .. })
        ) {
            return true;
        }
        let (told, _) = logs.told(&Arc::new(schema.clone()), HistoryPlace::default());
        let is_it = |field: &usize| {
            let is_it = |field: &FieldRef| column_place(&told.names, field.name()) == Some(place);
            all.get(*field).is_some_and(is_it)
        };
        !self.bare.iter().any(is_it) || self.fields.iter().any(is_it)
    }
}

/// Whether values look the same in a column as it was logged and in the one that is told.
fn is_shown_alike(told: &ColumnSchema, logged: &ColumnSchema) -> bool {
    let as_told = ColumnSchema {
        name: told.name.clone(),
        visible: told.visible,
        primary_key: told.primary_key,
        nullable: told.nullable,
        ..logged.clone()
    };
    as_told == *told
}

/// Whether a column is the same for all rows of an event, and does not depend on where the event stands.
fn is_around(source: ValueSource) -> bool {
    use ValueSource::{AppliedAt, CommittedAt, Gtid, LoggedAt, ServerId};
    matches!(source, Gtid | CommittedAt | AppliedAt | LoggedAt | ServerId)
}

/// Makes batches of a log's blocks, each for itself: workers do it, several blocks at once.
pub(super) struct PickedRows<'a> {
    pub(super) job: &'a ReadJob<'a>,
    pub(super) fields: &'a Fields,
    pub(super) needed: &'a NeededOutputs,
    /// Empty columns.
    pub(super) columns: &'a (dyn Fn() -> Vec<BuiltColumn> + Sync),
}

impl PickedRows<'_> {
    /// Goes through a log; returns the bytes that were read of its archive.
    pub(super) fn read(
        &self,
        log: &PickedLog,
        (database, table): (&str, &str),
        sink: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> binlogz_archive::Result<u64> {
        let logs = self.job.logs;
        let fields = self.fields;
        let needed = self.needed;
        let columns = |schema: &TableSchema| needed.places(schema, logs, fields);
        let pick = Pick {
            database: database.as_bytes(),
            table: table.as_bytes(),
            columns: &columns,
            with_around: needed.around,
            with_values: &|schema, place| needed.has_values(schema, place, (logs, fields)),
            with_deleted: needed.before && self.job.wanted.has_kind(RowsKind::Delete),
            with_numbers: needed.numbers,
            with_positions: needed.positions,
        };
        let mut bytes_read = 0;
        let mut few = SmallBatches { schema: self.job.schema, batches: Vec::new(), rows: 0, bytes: 0 };
        log.each(&pick, self.job.workers, &|picked| self.batches(picked), &mut |bytes, batches| {
            bytes_read += bytes;
            if self.job.end.is_over() {
                return Err(left());
            }
            batches.into_iter().try_for_each(|batch| few.add(batch, sink))
        })?;
        few.pass_on(sink)?;
        Ok(bytes_read)
    }

    /// The rows of a block.
    fn batches(&self, picked: &PickedChanges) -> binlogz_archive::Result<Vec<RecordBatch>> {
        let mut maker = BlockMaker {
            job: self.job,
            columns: (self.columns)(),
            transaction: None,
            frame: TransactionFrame::default(),
            rows: 0,
            bytes: 0,
            done: Vec::new(),
            scratch: Vec::new(),
            key: KeyText::default(),
            changed: Vec::new(),
        };
        let picks = picked
            .tables
            .iter()
            .map(|table| self.picks(table))
            .collect::<binlogz_archive::Result<Vec<_>>>()?;
        for run in &picked.runs {
            let (Some(table), Some(picks)) = (picked.tables.get(run.table), picks.get(run.table)) else {
                continue;
            };
            if self.job.wanted.has_kind(run.kind) {
                maker.take(table, run, picks)?;
            }
        }
        maker.pass_on()?;
        Ok(maker.done)
    }

    /// Where a table's columns are among those that were picked.
    fn picks(&self, table: &PickedTable) -> binlogz_archive::Result<TablePicks> {
        // No statement changed it.
        let told = self.job.logs.told_of_rows(&table.schema, HistoryPlace::default()).map_err(failed)?;
        let pick_of = |place: usize| table.columns.iter().position(|column| *column == place);
        let fields =
            self.fields.iter().map(|field| column_place(&told.names, field.name()).and_then(pick_of));
        let fields = fields.collect();
        let mut all: Vec<_> = table.columns.iter().copied().zip(0..).collect();
        all.sort_unstable();
        let mut key: Vec<_> = told.key.iter().filter_map(|&place| Some((place, pick_of(place)?))).collect();
        key.sort_unstable();
        Ok(TablePicks { fields, key, all, names: told.names })
    }
}

/// Where the columns of a table are among those that were picked.
struct TablePicks {
    /// By field of an image.
    fields: Vec<Option<usize>>,
    /// The columns of its primary key: their places in the table, and among the picked columns.
    key: Vec<(usize, usize)>,
    /// All picked columns, in the order of the table: their places there, and among the picked columns.
    all: Vec<(usize, usize)>,
    /// The names of all its columns.
    names: Vec<String>,
}

/// Batches that are joined before they are passed on: a block may have few rows of a table.
struct SmallBatches<'a> {
    schema: &'a SchemaRef,
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
}

impl SmallBatches<'_> {
    fn add(
        &mut self,
        batch: RecordBatch,
        sink: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> binlogz_archive::Result<()> {
        if self.rows + batch.num_rows() > ROWS_MAX || self.bytes > BYTES_MAX {
            self.pass_on(sink)?;
        }
        self.rows += batch.num_rows();
        self.bytes += batch.get_array_memory_size();
        self.batches.push(batch);
        Ok(())
    }

    fn pass_on(&mut self, sink: &mut dyn FnMut(RecordBatch) -> bool) -> binlogz_archive::Result<()> {
        (self.rows, self.bytes) = (0, 0);
        let mut batches = std::mem::take(&mut self.batches);
        let batch = match (batches.pop(), batches.is_empty()) {
            (None, _) => return Ok(()),
            (Some(only), true) => only,
            (Some(last), false) => {
                batches.push(last);
                concat_batches(self.schema, &batches).map_err(failed)?
            }
        };
        match sink(batch) {
            true => Ok(()),
            false => Err(left()),
        }
    }
}

/// A way out.
pub(super) fn left() -> binlogz_archive::Error {
    binlogz_archive::Error::writing(std::io::ErrorKind::BrokenPipe.into())
}

fn failed(error: impl std::fmt::Display) -> binlogz_archive::Error {
    binlogz_archive::Error::writing(std::io::Error::other(error.to_string()))
}

/// Makes batches of a block.
struct BlockMaker<'a> {
    job: &'a ReadJob<'a>,
    columns: Vec<BuiltColumn>,
    /// The transaction of the last rows, and what columns have of it.
    transaction: Option<Arc<PickedTransaction>>,
    frame: TransactionFrame,
    rows: usize,
    bytes: usize,
    done: Vec<RecordBatch>,
    scratch: Vec<u8>,
    /// The last primary key.
    key: KeyText,
    /// The names of the columns that the last update changed.
    changed: Vec<String>,
}

/// A primary key as a JSON object: its bytes, and their text.
#[derive(Debug, Default)]
struct KeyText {
    bytes: Vec<u8>,
    text: String,
}

impl BlockMaker<'_> {
    fn take(&mut self, table: &PickedTable, run: &RowRun, picks: &TablePicks) -> binlogz_archive::Result<()> {
        if let Some(around) = &run.around {
            self.take_transaction(around.transaction.as_ref());
        }
        let mut left = run.rows.clone();
        while !left.is_empty() {
            let rows = left.start..self.end_of_batch(table, left.clone());
            left.start = rows.end;
            self.rows += rows.len();
            self.rows(table, run, rows, picks)?;
            if self.rows >= ROWS_MAX || self.bytes > BYTES_MAX {
                self.pass_on()?;
            }
        }
        Ok(())
    }

    /// Where the rows end that the batch has room for: at least one has.
    fn end_of_batch(&mut self, table: &PickedTable, rows: Range<usize>) -> usize {
        let end_max = rows.end.min(rows.start + ROWS_MAX - self.rows);
        if !table.has_lengths() {
            return end_max;
        }
        if let Some(size) = table.size_after(rows.start..end_max)
            && self.bytes + size <= BYTES_MAX
        {
            self.bytes += size;
            return end_max;
        }
        let is_full = |&row: &usize| {
            self.bytes += table.size(row);
            self.bytes > BYTES_MAX
        };
        (rows.start..end_max).find(is_full).map_or(end_max, |last| last + 1)
    }

    fn take_transaction(&mut self, transaction: Option<&Arc<PickedTransaction>>) {
        if self.transaction.as_ref().map(Arc::as_ptr) == transaction.map(Arc::as_ptr) {
            return;
        }
        self.transaction = transaction.cloned();
        self.frame = TransactionFrame::default();
        let Some(transaction) = transaction else { return };
        self.frame.take_times(transaction.commit_timestamps);
        self.frame.position = transaction.position;
        if self.columns.iter().any(|column| column.source == ValueSource::Gtid) {
            self.frame.gtid = transaction.gtid.as_ref().map(ToString::to_string);
        }
    }

    fn rows(
        &mut self,
        table: &PickedTable,
        run: &RowRun,
        rows: Range<usize>,
        picks: &TablePicks,
    ) -> binlogz_archive::Result<()> {
        let picked = PickedValues { table, kind: run.kind, picks };
        for BuiltColumn { source, target } in &mut self.columns {
            let is_after = *source == ValueSource::After;
            match target {
                ValueTarget::Plain(builder) if *source == ValueSource::Row => {
                    let first = run.first + rows.start.saturating_sub(run.rows.start) as u64;
                    let numbers = (first..).take(rows.len());
                    numbers.for_each(|number| builder.push(FieldValue::Number(number)));
                }
                ValueTarget::Plain(builder) if *source == ValueSource::Key => {
                    for row in rows.clone() {
                        builder.push(picked.key(row, &mut self.key, &mut self.scratch)?);
                    }
                }
                ValueTarget::Plain(builder) if *source == ValueSource::Changed => {
                    for row in rows.clone() {
                        builder.push(picked.changed(row, &mut self.changed));
                    }
                }
                ValueTarget::Plain(builder) => {
                    let value = match (*source, &run.around) {
                        (ValueSource::Log, _) => FieldValue::Text(self.job.log),
                        (ValueSource::Operation, _) => FieldValue::Text(run.kind.operation()),
                        (ValueSource::LoggedAt, Some(around)) => FieldValue::seconds(around.timestamp),
                        (ValueSource::ServerId, Some(around)) => FieldValue::Number(around.server_id.into()),
                        (ValueSource::Position, _) => FieldValue::number(self.frame.position),
                        (ValueSource::Gtid, _) => FieldValue::text(self.frame.gtid.as_deref()),
                        (ValueSource::CommittedAt, _) => FieldValue::moment(self.frame.committed_at),
                        (ValueSource::AppliedAt, _) => FieldValue::moment(self.frame.applied_at),
                        _ => FieldValue::Null,
                    };
                    builder.push_repeated(value, rows.len());
                }
                ValueTarget::Field(values, field) => {
                    picked.extend(values, rows.clone(), (is_after, *field), &mut self.scratch)?;
                }
                ValueTarget::Presence(values, field) => {
                    picked.extend_there(values, rows.clone(), (is_after, *field), &mut self.scratch)?;
                }
                ValueTarget::Image(image) => {
                    image.is_there.extend(rows.clone().map(|row| table.has_image(row, is_after)));
                    for (field, values) in image.values.iter_mut().enumerate() {
                        picked.extend(values, rows.clone(), (is_after, field), &mut self.scratch)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn pass_on(&mut self) -> binlogz_archive::Result<()> {
        self.bytes = 0;
        let rows = std::mem::take(&mut self.rows);
        if rows > 0 {
            let batch = batch_of(&mut self.columns, self.job.schema, rows).map_err(failed)?;
            self.done.push(batch);
        }
        Ok(())
    }
}

/// The values of rows of one table and kind.
struct PickedValues<'a> {
    table: &'a PickedTable,
    kind: RowsKind,
    picks: &'a TablePicks,
}

impl<'a> PickedValues<'a> {
    /// Appends a field of images, before or after the change.
    fn extend(
        &self,
        values: &mut ValueColumn,
        rows: Range<usize>,
        (is_after, field): (bool, usize),
        scratch: &mut Vec<u8>,
    ) -> binlogz_archive::Result<()> {
        let table = self.table;
        let pick = self.picks.fields.get(field).copied().flatten();
        let place = pick.and_then(|pick| Some((pick, *table.columns.get(pick)?)));
        let column = place.and_then(|(_, index)| table.schema.columns().get(index));
        let (Some((pick, index)), Some(column)) = (place, column) else {
            values.extend_nulls(rows.len());
            return Ok(());
        };
        if self.kind == if is_after { RowsKind::Delete } else { RowsKind::Write } {
            values.extend_nulls(rows.len());
            return Ok(());
        }
        if is_after && self.kind == RowsKind::PartialUpdate && column.is_json() {
            for row in rows {
                let [before, after] = [false, true].map(|is_after| self.cell(row, is_after, (index, pick)));
                values.push_changed(after, before, scratch)?;
            }
            return Ok(());
        }
        if let Some(bytes) = table.fixed_values(rows.clone(), is_after, pick, scratch)
            && values.extend_fixed(column.kind, bytes)?
        {
            return Ok(());
        }
        if let Some(texts) = table.texts(rows.clone(), is_after, pick)
            && values.extend_texts(column, texts)
        {
            return Ok(());
        }
        let contents = table.values(rows, is_after, pick);
        let cells = contents.map(|content| Some(Cell { index, column, content: content? }));
        Ok(values.extend(column.kind, cells, scratch)?)
    }

    /// Appends whether images have a field, before or after the change.
    fn extend_there(
        &self,
        values: &mut ValueColumn,
        rows: Range<usize>,
        (is_after, field): (bool, usize),
        scratch: &mut Vec<u8>,
    ) -> binlogz_archive::Result<()> {
        let pick = self.picks.fields.get(field).copied().flatten();
        let Some(pick) = pick.filter(|&pick| self.table.is_bare(pick)) else {
            return self.extend(values, rows, (is_after, field), scratch);
        };
        if self.kind == if is_after { RowsKind::Delete } else { RowsKind::Write } {
            values.extend_nulls(rows.len());
            return Ok(());
        }
        let contents = self.table.values(rows, is_after, pick);
        values.extend_there(contents.map(|content| matches!(content, Some(CellContent::Value(_)))));
        Ok(())
    }

    /// A column of a row, by its place in the table and among the picked columns.
    fn cell(&self, row: usize, is_after: bool, (index, pick): (usize, usize)) -> Option<Cell<'a>> {
        let column = self.table.schema.columns().get(index)?;
        let content = self.table.values(row..row + 1, is_after, pick).next().flatten()?;
        Some(Cell { index, column, content })
    }

    /// The names of the columns that an update changed.
    fn changed<'n>(&self, row: usize, names: &'n mut Vec<String>) -> FieldValue<'n> {
        if ![false, true].into_iter().all(|is_after| self.table.has_image(row, is_after)) {
            return FieldValue::Null;
        }
        names.clear();
        for &place in &self.picks.all {
            let [before, after] = [false, true].map(|is_after| self.cell(row, is_after, place));
            let Some(after) = after else { continue };
            if before.is_none_or(|before| before.content != after.content) {
                names.extend(self.picks.names.get(place.0).cloned());
            }
        }
        FieldValue::Texts(names)
    }

    /// The primary key of a row.
    fn key<'k>(
        &self,
        row: usize,
        key: &'k mut KeyText,
        scratch: &mut Vec<u8>,
    ) -> binlogz_archive::Result<FieldValue<'k>> {
        if self.picks.key.is_empty() {
            return Ok(FieldValue::Null);
        }
        let is_after = !self.table.has_image(row, false);
        let cells = self.picks.key.iter().filter_map(|&place| self.cell(row, is_after, place));
        write_object(&mut key.bytes, cells, &self.picks.names, scratch)?;
        key.text.clear();
        key.text.push_str(&String::from_utf8_lossy(&key.bytes));
        Ok(FieldValue::Text(&key.text))
    }
}

/// Opens a log of an archive for picking; `None`: it can't be. Counts the blocks that are read, and those that are not.
pub(super) fn open(
    logs: &Logs,
    index: usize,
    wanted: &WantedLogs,
    needed: &NeededOutputs,
    is_fit: &dyn Fn(&TableSchema) -> bool,
) -> Result<Option<(PickedLog, [usize; 2])>, DataFusionError> {
    let mut blocks = [0; 2];
    let mut known: Option<*const binlogz_archive::format::contents::ListedTable> = None;
    let log = logs.picked(index, needed.positions, &mut |run| {
        if !wanted.may_be_in(run, true, logs) {
            blocks[1] += run.block_count();
            return Some(false);
        }
        for rows in run.rows()? {
            let name: *const _ = rows.name;
            if known == Some(name) || !wanted.has_name(&rows.name.database, &rows.name.table) {
                continue;
            }
            let schema = rows.name.schema().ok().flatten()?;
            if !is_fit(&schema) {
                return None;
            }
            known = Some(name);
        }
        blocks[0] += run.block_count();
        Some(true)
    })?;
    let log = log.filter(|log| !(needed.inside && log.has_payloads()));
    Ok(log.map(|log| (log, blocks)))
}
