//! Counts the rows of each table that were inserted, updated and deleted, for queries that need nothing else. The rows'
//! values are skipped.

use std::collections::HashMap;
use std::sync::Arc;

use binlogz_archive::log::directory::{BlockDirectory, DirectoryEntry, ShapeRows};
use binlogz_archive::part::BlockRun;
use binlogz_binlog::event::RowsKind;
use binlogz_binlog::gtid::Gtid;
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

/// Counts of rows, with the names of their tables.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct CountedTables {
    /// Database and table.
    pub(crate) tables: Vec<[String; 2]>,
    pub(crate) counts: Vec<RowCount>,
}

/// Rows of one table and kind: of a log, or of one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowCount {
    /// Which of the tables.
    pub(crate) table: usize,
    pub(crate) operation: &'static str,
    pub(crate) rows: u64,
    /// The transaction; of a whole log's rows this says nothing.
    pub(crate) transaction: RowCountTransaction,
}

/// A transaction as its GTID event tells it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RowCountTransaction {
    pub(crate) gtid: Option<Gtid>,
    /// Microseconds since 1970.
    pub(crate) committed_at: Option<i64>,
    pub(crate) applied_at: Option<i64>,
}

/// Counts by transaction, block after block: a transaction may go on in the next.
#[derive(Debug, Default)]
pub(crate) struct OpenCounts(RowCountTransaction);

impl OpenCounts {
    /// The wanted counts of the next block.
    pub(crate) fn take(&mut self, block: &BlockDirectory, wanted: &WantedLogs) -> CountedTables {
        let tables = (0..).map_while(|number| block.table(number));
        let is_wanted: Vec<bool> =
            tables.clone().map(|table| wanted.has_name(&table.database, &table.table)).collect();
        let mut counted = CountedTables {
            tables: tables.map(|table| names_of(&table.database, &table.table)).collect(),
            counts: Vec::new(),
        };
        for entry in block.entries() {
            if entry.has_begun {
                let DirectoryEntry { gtid, committed_at, applied_at, .. } = entry;
                self.0 = RowCountTransaction { gtid, committed_at, applied_at };
            }
            for ShapeRows { table, counts } in &entry.shape.rows {
                let table = *table as usize;
                if is_wanted.get(table) == Some(&true) {
                    counted.add(table, *counts, wanted, self.0);
                }
            }
        }
        counted
    }
}

impl CountedTables {
    /// Adds the rows of a table, by [`KINDS`], as far as these are wanted.
    fn add(&mut self, table: usize, rows: [u64; 3], wanted: &WantedLogs, transaction: RowCountTransaction) {
        let there = KINDS.into_iter().zip(rows).filter(|(kind, rows)| *rows > 0 && wanted.has_kind(*kind));
        self.counts.extend(there.map(|(kind, rows)| RowCount {
            table,
            operation: kind.operation(),
            rows,
            transaction,
        }));
    }
}

fn names_of(database: &[u8], table: &[u8]) -> [String; 2] {
    [database, table].map(|name| String::from_utf8_lossy(name).into_owned())
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
    pub(crate) fn wanted(&self, wanted: &WantedLogs) -> CountedTables {
        let mut counted = CountedTables::default();
        for table in self.tables.iter().filter(|table| wanted.has_name(&table.database, &table.table)) {
            let number = counted.tables.len();
            counted.tables.push(names_of(&table.database, &table.table));
            counted.add(number, table.rows, wanted, RowCountTransaction::default());
        }
        counted
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
