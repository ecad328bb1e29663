//! Columns of a user table, read straight from the columns of an archive, without putting events together. A query can be
//! answered so if it needs only columns of images and of their transaction, and no documents (JSON), which may be logged
//! in part.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use binlogz_archive::block::picked::{Pick, PickedChanges, PickedTable, PickedTransaction, RowRun};
use binlogz_archive::part::PickedLog;
use binlogz_arrow::{ValueColumn, column_place};
use binlogz_binlog::event::RowsKind;
use binlogz_binlog::row::{Cell, TableSchema};
use binlogz_schema::HistoryPlace;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{Fields, SchemaRef};
use datafusion::common::Result;
use datafusion::error::DataFusionError;

use super::built_column::{BuiltColumn, ValueSource, ValueTarget, batch_of};
use super::columns::FieldValue;
use super::frame::TransactionFrame;
use super::{MadeColumn, ReadJob};
use crate::logs::Logs;
use crate::logs::wanted::WantedLogs;

/// Rows of a batch: more than of those made from events, which take longer; to pass one on takes as long whatever its size.
const ROWS_MAX: usize = 32 << 10;
/// Bytes of values after which a batch is passed on.
const BYTES_MAX: usize = 4 << 20;

/// The parts of blocks that the outputs of a query need.
#[derive(Debug, Default)]
pub(super) struct NeededOutputs {
    /// Fields of images, by their numbers.
    fields: BTreeSet<usize>,
    /// Transaction and event header of the rows.
    around: bool,
    /// Images before the change.
    before: bool,
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
                (source, _) if is_around(source) => needed.around = true,
                (ValueSource::Before | ValueSource::After, MadeColumn::Field(_, field)) => {
                    needed.fields.insert(field);
                }
                (ValueSource::Before | ValueSource::After, MadeColumn::Column(_)) => {
                    needed.fields.extend(0..all.len())
                }
                _ => return None,
            }
        }
        Some(needed)
    }

    /// The places of its fields in a table; `None`: one of them is a document.
    pub(super) fn places(&self, schema: &TableSchema, logs: &Logs, all: &Fields) -> Option<Vec<usize>> {
        let (told, _) = logs.told(&Arc::new(schema.clone()), HistoryPlace::default());
        let names = told.names;
        let mut places = Vec::with_capacity(self.fields.len());
        for field in self.fields.iter().filter_map(|field| all.get(*field)) {
            let Some(place) = column_place(&names, field.name()) else { continue };
            let column = schema.columns().get(place).filter(|column| !column.is_json())?;
            // A schema may make another type of it, as of an ENUM whose members it tells.
            let told = told.schema.columns().get(place)?;
            if binlogz_arrow::of(told) != binlogz_arrow::of(column) {
                return None;
            }
            places.push(place);
        }
        Some(places)
    }
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
            with_before: needed.before,
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

    /// Which of a table's picked columns each field is.
    fn picks(&self, table: &PickedTable) -> binlogz_archive::Result<Vec<Option<usize>>> {
        // No statement changed it.
        let told = self.job.logs.told_of_rows(&table.schema, HistoryPlace::default()).map_err(failed)?;
        let picks = self.fields.iter().map(|field| {
            let place = column_place(&told.names, field.name())?;
            table.columns.iter().position(|column| *column == place)
        });
        Ok(picks.collect())
    }
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
fn left() -> binlogz_archive::Error {
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
}

impl BlockMaker<'_> {
    fn take(
        &mut self,
        table: &PickedTable,
        run: &RowRun,
        picks: &[Option<usize>],
    ) -> binlogz_archive::Result<()> {
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
        if self.columns.iter().any(|column| column.source == ValueSource::Gtid) {
            self.frame.gtid = transaction.gtid.as_ref().map(ToString::to_string);
        }
    }

    fn rows(
        &mut self,
        table: &PickedTable,
        run: &RowRun,
        rows: Range<usize>,
        picks: &[Option<usize>],
    ) -> binlogz_archive::Result<()> {
        let scratch = &mut self.scratch;
        let mut extend = |values: &mut ValueColumn, is_after: bool, field: usize| {
            let pick = picks.get(field).copied().flatten();
            let place = pick.and_then(|pick| Some((pick, *table.columns.get(pick)?)));
            let column = place.and_then(|(_, index)| table.schema.columns().get(index));
            let (Some((pick, index)), Some(column)) = (place, column) else {
                values.extend_nulls(rows.len());
                return Ok(());
            };
            if run.kind == if is_after { RowsKind::Delete } else { RowsKind::Write } {
                values.extend_nulls(rows.len());
                return Ok(());
            }
            if let Some(bytes) = table.fixed_values(rows.clone(), is_after, pick)
                && values.extend_fixed(column.kind, bytes)?
            {
                return Ok(());
            }
            let contents = table.values(rows.clone(), is_after, pick);
            let cells = contents.map(|content| Some(Cell { index, column, content: content? }));
            values.extend(column.kind, cells, scratch)
        };
        for BuiltColumn { source, target } in &mut self.columns {
            let is_after = *source == ValueSource::After;
            match target {
                ValueTarget::Plain(builder) => {
                    let value = match (*source, &run.around) {
                        (ValueSource::Log, _) => FieldValue::Text(self.job.log),
                        (ValueSource::Operation, _) => FieldValue::Text(run.kind.operation()),
                        (ValueSource::LoggedAt, Some(around)) => FieldValue::seconds(around.timestamp),
                        (ValueSource::ServerId, Some(around)) => FieldValue::Number(around.server_id.into()),
                        (ValueSource::Gtid, _) => FieldValue::text(self.frame.gtid.as_deref()),
                        (ValueSource::CommittedAt, _) => FieldValue::moment(self.frame.committed_at),
                        (ValueSource::AppliedAt, _) => FieldValue::moment(self.frame.applied_at),
                        _ => FieldValue::Null,
                    };
                    rows.clone().for_each(|_| builder.push(value));
                }
                ValueTarget::Field(values, field) => extend(values, is_after, *field)?,
                ValueTarget::Image(image) => {
                    image.is_there.extend(rows.clone().map(|row| table.has_image(row, is_after)));
                    for (field, values) in image.values.iter_mut().enumerate() {
                        extend(values, is_after, field)?;
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

/// Opens a log of an archive for picking; `None`: it can't be. Counts the blocks that are read, and those that are not.
pub(super) fn open(
    logs: &Logs,
    index: usize,
    wanted: &WantedLogs,
    is_fit: &dyn Fn(&TableSchema) -> bool,
) -> Result<Option<(PickedLog, [usize; 2])>, DataFusionError> {
    let mut blocks = [0; 2];
    let mut known: Option<*const binlogz_archive::format::contents::ListedTable> = None;
    let log = logs.picked(index, &mut |run| {
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
    Ok(log.map(|log| (log, blocks)))
}
