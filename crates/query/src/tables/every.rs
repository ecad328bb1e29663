//! The rows of many user tables in one reading of a log: each table has batches of its own, in the log's order.

use std::collections::HashMap;
use std::sync::Arc;

use binlogz_binlog::row::TableSchema;
use binlogz_flow::events::{self, EventBatch, Item, ReadSummary, TableEvent, Tables};
use binlogz_flow::{Error, Input};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;

use super::Reader;
use super::frame::Frame;
use super::rows::{Changes, Maker};
use super::user::Columns;
use crate::logs::Logs;
use crate::wanted::Wanted;

/// Tables whose rows are read together.
#[derive(Debug, Default)]
pub(crate) struct EveryTable {
    tables: Vec<Changes>,
    /// By the names as the log has them.
    numbers: HashMap<(String, String), usize>,
    wanted: Wanted,
}

impl EveryTable {
    /// Adds a table; its batches have its number.
    pub(crate) fn add(&mut self, database: &str, table: &str, columns: &Columns) {
        self.numbers.insert((database.to_owned(), table.to_owned()), self.tables.len());
        self.tables.push(Changes::of_table(columns));
    }

    /// The schema of a table's batches.
    pub(crate) fn schema(&self, number: usize) -> Option<SchemaRef> {
        self.tables.get(number).map(Reader::schema)
    }

    /// Reads a log; `sink` takes the number of a table with each batch.
    pub(crate) fn read(
        &self,
        input: Input,
        logs: &Logs,
        log: &str,
        workers: usize,
        sink: &mut dyn FnMut(usize, RecordBatch) -> Result<(), Error>,
    ) -> Result<ReadSummary, Error> {
        let new_worker = || {
            Ok(Worker {
                every: self,
                logs,
                log,
                tables: Tables::one_of(workers),
                makers: self.tables.iter().map(|_| None).collect(),
                last: None,
                used: Vec::new(),
            })
        };
        let work = |worker: &mut Worker<'_>, batch: &mut EventBatch<'_>| Ok(worker.batch(batch));
        let sink = |made: Vec<(usize, RecordBatch)>| {
            made.into_iter().try_for_each(|(number, batch)| sink(number, batch))
        };
        events::run(input, workers, new_worker, work, sink, &mut |_| {})
    }
}

struct Worker<'a> {
    every: &'a EveryTable,
    logs: &'a Logs,
    log: &'a str,
    tables: Tables,
    makers: Vec<Option<Maker<'a>>>,
    /// The table of the last rows, and its number; `None`: its rows are not read.
    last: Option<(Arc<TableSchema>, Option<usize>)>,
    /// The tables with rows in this batch.
    used: Vec<usize>,
}

impl Worker<'_> {
    fn batch(&mut self, batch: &mut EventBatch<'_>) -> Vec<(usize, RecordBatch)> {
        let mut made = Vec::new();
        if let Err(error) = self.events(batch).and_then(|()| self.finish(&mut made)) {
            batch.fail(error);
        }
        made
    }

    fn events(&mut self, batch: &mut EventBatch<'_>) -> Result<(), Error> {
        self.tables.begin(batch)?;
        let mut frame = Frame::begin(batch)?;
        while let Some(item) = batch.next_item() {
            let Item::Event(event) = item else { continue };
            frame.pass(&event).map_err(|error| event.error(error))?;
            let Some(TableEvent::Rows(schema, rows)) = self.tables.event(&event)? else { continue };
            let Some(number) = self.number(&schema) else { continue };
            let (Some(changes), Some(maker)) = (self.every.tables.get(number), self.makers.get_mut(number))
            else {
                continue;
            };
            let new = || Maker::new(changes, self.logs, self.log, &self.every.wanted);
            maker.get_or_insert_with(new).take(&frame, &event, schema, &rows)?;
            if !self.used.contains(&number) {
                self.used.push(number);
            }
        }
        Ok(())
    }

    fn number(&mut self, schema: &Arc<TableSchema>) -> Option<usize> {
        match &self.last {
            Some((last, number)) if Arc::ptr_eq(last, schema) => *number,
            _ => {
                let [database, table] =
                    [&schema.database, &schema.table].map(|name| String::from_utf8_lossy(name).into_owned());
                let number = self.every.numbers.get(&(database, table)).copied();
                self.last = Some((Arc::clone(schema), number));
                number
            }
        }
    }

    fn finish(&mut self, made: &mut Vec<(usize, RecordBatch)>) -> Result<(), Error> {
        for number in self.used.drain(..) {
            if let Some(Some(maker)) = self.makers.get_mut(number) {
                made.extend(maker.done()?.into_iter().map(|batch| (number, batch)));
            }
        }
        Ok(())
    }
}
