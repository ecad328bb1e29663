//! Columns of a user table as an archive keeps them: rows are made of the streams of those columns, and events are not put
//! together. So it is where a query asks for nothing that only an event tells, and not for documents, which may be logged in
//! part.

use std::collections::BTreeSet;
use std::ops::Range;

use binlogz_archive::block::picked::{Pick, Picked, PickedTable};
use binlogz_archive::part::PickedLog;
use binlogz_binlog::event::RowsKind;
use binlogz_binlog::row::{Cell, CellContent, TableSchema};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{Fields, SchemaRef};
use datafusion::common::Result;
use datafusion::error::DataFusionError;

use super::columns::Value;
use super::rows::{Column, Source, Target, batch_of};
use super::{Job, Output, ROWS_MAX};
use crate::logs::Logs;
use crate::wanted::{Wanted, operation};

/// Bytes of values after which a batch is passed on.
const BYTES_MAX: usize = 4 << 20;

/// The fields of images that outputs need, by their numbers; `None`: they need more than images.
pub(super) fn fields(
    outputs: &[Output],
    sources: impl Fn(Output) -> Option<Source>,
    all: &Fields,
) -> Option<BTreeSet<usize>> {
    let mut needed = BTreeSet::new();
    for &output in outputs {
        match (sources(output)?, output) {
            (Source::Log | Source::Operation, _) => {}
            (Source::Before | Source::After, Output::Field(_, field)) => drop(needed.insert(field)),
            (Source::Before | Source::After, Output::Column(_)) => needed.extend(0..all.len()),
            _ => return None,
        }
    }
    Some(needed)
}

/// The places of these fields in a table; `None`: one of them is a document.
pub(super) fn places(
    schema: &TableSchema,
    logs: &Logs,
    needed: &BTreeSet<usize>,
    all: &Fields,
) -> Option<Vec<usize>> {
    let (names, _) = logs.columns(schema);
    let mut places = Vec::with_capacity(needed.len());
    for field in needed.iter().filter_map(|field| all.get(*field)) {
        let Some(place) = names.iter().position(|name| name == field.name()) else { continue };
        if schema.columns().get(place).is_none_or(|column| column.is_json()) {
            return None;
        }
        places.push(place);
    }
    Some(places)
}

/// Makes batches of a log's blocks, each for itself: workers do it, several blocks at once.
pub(super) struct PickedRows<'a> {
    pub(super) job: &'a Job<'a>,
    pub(super) fields: &'a Fields,
    pub(super) needed: &'a BTreeSet<usize>,
    /// Empty columns.
    pub(super) columns: &'a (dyn Fn() -> Vec<Column> + Sync),
}

impl PickedRows<'_> {
    /// Goes through a log; returns the bytes that were read of its archive.
    pub(super) fn read(
        &self,
        log: &PickedLog,
        (database, table): (&str, &str),
        sink: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> binlogz_archive::Result<u64> {
        let (logs, fields, needed) = (self.job.logs, self.fields, self.needed);
        let columns = |schema: &TableSchema| places(schema, logs, needed, fields);
        let pick = Pick { database: database.as_bytes(), table: table.as_bytes(), columns: &columns };
        let mut bytes_read = 0;
        let mut few = Few { schema: self.job.schema, batches: Vec::new(), rows: 0, bytes: 0 };
        log.each(&pick, self.job.workers, &|picked| self.batches(picked), &mut |bytes, batches| {
            bytes_read += bytes;
            batches.into_iter().try_for_each(|batch| few.add(batch, sink))
        })?;
        few.pass_on(sink)?;
        Ok(bytes_read)
    }

    /// The rows of a block.
    fn batches(&self, picked: &Picked) -> binlogz_archive::Result<Vec<RecordBatch>> {
        let mut maker = BlockMaker {
            job: self.job,
            fields: self.fields,
            columns: (self.columns)(),
            rows: 0,
            bytes: 0,
            done: Vec::new(),
            scratch: Vec::new(),
        };
        for (number, kind, rows) in &picked.runs {
            let Some(table) = picked.tables.get(*number) else { continue };
            if self.job.wanted.has_kind(*kind) {
                maker.rows(table, *kind, rows.clone())?;
            }
        }
        maker.pass_on()?;
        Ok(maker.done)
    }
}

/// Batches that are joined before they are passed on: a block may have few rows of a table.
struct Few<'a> {
    schema: &'a SchemaRef,
    batches: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
}

impl Few<'_> {
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
            // A way out.
            false => Err(binlogz_archive::Error::writing(std::io::ErrorKind::BrokenPipe.into())),
        }
    }
}

fn failed(error: impl std::fmt::Display) -> binlogz_archive::Error {
    binlogz_archive::Error::writing(std::io::Error::other(error.to_string()))
}

/// Makes batches of a block.
struct BlockMaker<'a> {
    job: &'a Job<'a>,
    fields: &'a Fields,
    columns: Vec<Column>,
    rows: usize,
    bytes: usize,
    done: Vec<RecordBatch>,
    scratch: Vec<u8>,
}

impl BlockMaker<'_> {
    fn rows(
        &mut self,
        table: &PickedTable,
        kind: RowsKind,
        rows: Range<usize>,
    ) -> binlogz_archive::Result<()> {
        let (names, _) = self.job.logs.columns(&table.schema);
        // Which of the picked columns each field is.
        let picks = self.fields.iter().map(|field| {
            let place = names.iter().position(|name| name == field.name())?;
            table.columns.iter().position(|column| *column == place)
        });
        let picks: Vec<Option<usize>> = picks.collect();
        for row in rows {
            self.row(table, kind, row, &picks)?;
            self.rows += 1;
            if self.rows == ROWS_MAX || self.bytes > BYTES_MAX {
                self.pass_on()?;
            }
        }
        Ok(())
    }

    fn row(
        &mut self,
        table: &PickedTable,
        kind: RowsKind,
        row: usize,
        picks: &[Option<usize>],
    ) -> binlogz_archive::Result<()> {
        let (scratch, bytes) = (&mut self.scratch, &mut self.bytes);
        let mut cell = |is_after: bool, field: usize| {
            let pick = picks.get(field).copied().flatten()?;
            let index = *table.columns.get(pick)?;
            let content = table.cell(row, is_after, pick)?;
            if let CellContent::Value(value) = content {
                *bytes += value.len();
            }
            Some(Cell { index, column: table.schema.columns().get(index)?, content })
        };
        for Column { source, target } in &mut self.columns {
            let is_after = *source == Source::After;
            match target {
                Target::Plain(builder) => builder.push(match source {
                    Source::Log => Value::Text(self.job.log),
                    Source::Operation => Value::Text(operation(kind)),
                    _ => Value::Null,
                }),
                Target::Field(values, field) => {
                    values.push(cell(is_after, *field).as_ref(), None, scratch)?
                }
                Target::Image(image) => {
                    image.is_there.push(table.has_image(row, is_after));
                    for (field, values) in image.values.iter_mut().enumerate() {
                        values.push(cell(is_after, field).as_ref(), None, scratch)?;
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
    wanted: &Wanted,
    is_fit: &dyn Fn(&TableSchema) -> bool,
) -> Result<Option<(PickedLog, [usize; 2])>, DataFusionError> {
    let mut blocks = [0; 2];
    let mut known: Option<*const binlogz_archive::format::contents::TableName> = None;
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
