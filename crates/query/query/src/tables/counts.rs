//! Counts the rows of each table that were inserted, updated and deleted, for queries that need nothing else. The rows'
//! values are skipped.

use std::collections::HashMap;
use std::sync::Arc;

use binlogz_archive::part::BlockRun;
use binlogz_binlog::event::RowsKind;
use binlogz_binlog::row::{TableSchema, count_rows};
use binlogz_flow::events::{self, BatchItem, EventBatch, RunSummary, TableEvent, WorkerTables};
use binlogz_flow::{Error, Input};

use crate::logs::wanted::WantedLogs;

/// The kinds of changes that are counted separately.
const KINDS: [RowsKind; 3] = [RowsKind::Write, RowsKind::Update, RowsKind::Delete];

/// Rows by table and operation.
#[derive(Debug, Default)]
pub(crate) struct TableRowCounts {
    numbers: HashMap<Vec<u8>, HashMap<Vec<u8>, usize>>,
    tables: Vec<TableCounts>,
}

/// Rows of a table.
#[derive(Debug)]
struct TableCounts {
    database: Vec<u8>,
    table: Vec<u8>,
    /// As [`KINDS`].
    rows: [u64; 3],
}

/// Rows of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowCount {
    pub(crate) database: String,
    pub(crate) table: String,
    pub(crate) operation: &'static str,
    pub(crate) rows: u64,
}

impl TableRowCounts {
    /// Adds the rows of a part of an archived log that its archive tells; `false`: it doesn't.
    pub(crate) fn add_told(&mut self, run: &BlockRun<'_>) -> bool {
        let Some(told) = run.rows() else { return false };
        for rows in told {
            let counts = [rows.rows.inserted, rows.rows.updated, rows.rows.deleted];
            self.add(&rows.name.database, &rows.name.table, counts);
        }
        true
    }

    /// Adds the rows of a log.
    pub(crate) fn read(&mut self, input: Input, workers: usize) -> Result<RunSummary, Error> {
        let new_worker =
            || Ok(Worker { tables: WorkerTables::one_of(workers), counts: Self::default(), last: None });
        let work = |worker: &mut Worker, batch: &mut EventBatch<'_>| {
            if let Err(error) = worker.events(batch) {
                batch.fail(error);
            }
            worker.last = None;
            Ok(std::mem::take(&mut worker.counts))
        };
        let sink = |part: Self| {
            part.tables.iter().for_each(|table| self.add(&table.database, &table.table, table.rows));
            Ok(())
        };
        events::run(input, workers, new_worker, work, sink, &mut |_| {})
    }

    /// The counts that a query wants.
    pub(crate) fn wanted(&self, wanted: &WantedLogs) -> Vec<RowCount> {
        let tables = self.tables.iter().filter(|table| wanted.has_name(&table.database, &table.table));
        let counts = tables.flat_map(|table| {
            let kinds = KINDS.into_iter().zip(table.rows);
            let there = kinds.filter(|(kind, rows)| *rows > 0 && wanted.has_kind(*kind));
            there.map(|(kind, rows)| RowCount {
                database: String::from_utf8_lossy(&table.database).into_owned(),
                table: String::from_utf8_lossy(&table.table).into_owned(),
                operation: kind.operation(),
                rows,
            })
        });
        counts.collect()
    }

    fn add(&mut self, database: &[u8], table: &[u8], rows: [u64; 3]) {
        let number = self.number(database, table);
        if let Some(known) = self.tables.get_mut(number) {
            known.rows.iter_mut().zip(rows).for_each(|(count, more)| *count = count.saturating_add(more));
        }
    }

    fn number(&mut self, database: &[u8], table: &[u8]) -> usize {
        if let Some(&number) = self.numbers.get(database).and_then(|tables| tables.get(table)) {
            return number;
        }
        let number = self.tables.len();
        self.tables.push(TableCounts { database: database.into(), table: table.into(), rows: [0; 3] });
        self.numbers.entry(database.into()).or_default().insert(table.into(), number);
        number
    }
}

/// Counts the rows of batches of events.
struct Worker {
    tables: WorkerTables,
    counts: TableRowCounts,
    /// The table of the last rows, and its number among those that are counted.
    last: Option<(Arc<TableSchema>, usize)>,
}

impl Worker {
    fn events(&mut self, batch: &mut EventBatch<'_>) -> Result<(), Error> {
        self.tables.begin(batch)?;
        while let Some(item) = batch.next_item() {
            let BatchItem::Event(event) = item else { continue };
            if let Some(TableEvent::Rows(schema, rows)) = self.tables.event(&event)? {
                match count_rows(&schema, &rows) {
                    Ok(count) => self.add(schema, rows.kind(), count),
                    Err(error) => event.unread(&schema, &error),
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, schema: Arc<TableSchema>, kind: RowsKind, count: u64) {
        let number = match &self.last {
            Some((last, number)) if Arc::ptr_eq(last, &schema) => *number,
            _ => {
                let number = self.counts.number(&schema.database, &schema.table);
                self.last = Some((schema, number));
                number
            }
        };
        let kind = match kind {
            RowsKind::Write => 0,
            RowsKind::Update | RowsKind::PartialUpdate => 1,
            RowsKind::Delete => 2,
        };
        let known = self.counts.tables.get_mut(number).and_then(|table| table.rows.get_mut(kind));
        if let Some(known) = known {
            *known += count;
        }
    }
}
