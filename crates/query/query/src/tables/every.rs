//! The transactions and the rows of many user tables in one reading of a log: each table has batches of its own, in the log's
//! order.

use std::collections::{BTreeSet, HashMap};
use std::str::FromStr;
use std::sync::Arc;

use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::row::TableSchema;
use binlogz_flow::events::{self, BatchItem, EventBatch, RunSummary, TableEvent, WorkerTables};
use binlogz_flow::{Error, Input};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;

use super::frame::TransactionFrame;
use super::rows::{ChangesTable, Maker};
use super::transactions::{PartMaker, TransactionRows, TransactionsPart, TransactionsTable};
use super::user::UserColumns;
use super::{MadeColumn, TableReader};
use crate::logs::Logs;
use crate::logs::wanted::WantedLogs;

/// With so many tables, making batches of each takes longer than making their rows, if the batches of events are small.
const MANY_TABLES: usize = 100;

/// Tables whose rows are read together.
#[derive(Debug, Default)]
pub(crate) struct EveryTable {
    tables: Vec<ChangesTable>,
    /// By the names as the log has them.
    numbers: HashMap<(String, String), usize>,
    wanted: WantedLogs,
    /// Rows of these transactions are not made.
    without: GtidSet,
}

/// One part of the reading, in the log's order.
#[derive(Debug, Default)]
pub(crate) struct EveryPart {
    /// Transactions that have ended.
    pub(crate) transactions: Vec<RecordBatch>,
    /// Where the one begins that goes on; `None`: none does.
    pub(crate) open_from: Option<u64>,
    /// Rows, with the numbers of their tables: of transactions that have ended, and of the one that goes on.
    pub(crate) rows: Vec<(usize, RecordBatch)>,
}

impl EveryTable {
    /// No table. Of transactions in `without`, no rows will be made.
    pub(crate) fn new(without: GtidSet) -> Self {
        EveryTable { without, ..EveryTable::default() }
    }

    /// Adds a table; its batches have its number.
    pub(crate) fn add(&mut self, database: &str, table: &str, columns: &UserColumns) {
        self.numbers.insert((database.to_owned(), table.to_owned()), self.tables.len());
        self.tables.push(ChangesTable::of_table(columns));
    }

    /// The schema of a table's batches.
    pub(crate) fn schema(&self, number: usize) -> Option<SchemaRef> {
        self.tables.get(number).map(TableReader::schema)
    }

    /// Reads a log.
    pub(crate) fn read(
        &self,
        input: Input,
        logs: &Logs,
        (index, log): (usize, &str),
        workers: usize,
        sink: &mut dyn FnMut(EveryPart) -> Result<(), Error>,
    ) -> Result<RunSummary, Error> {
        let schema = TransactionsTable.schema();
        let outputs: Vec<_> = (0..schema.fields().len()).map(MadeColumn::Column).collect();
        let mut transactions = TransactionRows::new(log, &outputs, &schema);
        let parts = transactions.parts();
        let new_worker = || {
            Ok(Worker {
                every: self,
                logs,
                log: (index, log),
                tables: WorkerTables::one_of(workers),
                parts: parts.clone(),
                makers: self.tables.iter().map(|_| None).collect(),
                last: None,
                used: BTreeSet::new(),
                is_left_out: None,
            })
        };
        let work = |worker: &mut Worker<'_>, batch: &mut EventBatch<'_>| Ok(worker.batch(batch));
        let take = |(part, rows)| {
            let mut ended = Vec::new();
            let mut keep = |batch| {
                ended.push(batch);
                Ok(())
            };
            transactions.take(part, &mut keep)?;
            transactions.pass_on(&mut keep)?;
            sink(EveryPart { transactions: ended, open_from: transactions.open_from(), rows })
        };
        let ran = match self.tables.len() {
            ..MANY_TABLES => events::run(input, workers, new_worker, work, take, &mut |_| {}),
            _ => events::run_of_many_tables(input, workers, new_worker, work, take, &mut |_| {}),
        }?;
        transactions
            .end(&mut |batch| sink(EveryPart { transactions: vec![batch], ..EveryPart::default() }))?;
        Ok(ran)
    }
}

struct Worker<'a> {
    every: &'a EveryTable,
    logs: &'a Logs,
    log: (usize, &'a str),
    tables: WorkerTables,
    parts: PartMaker,
    makers: Vec<Option<Maker<'a>>>,
    /// The table of the last rows, and its number; `None`: its rows are not read.
    last: Option<(Arc<TableSchema>, Option<usize>)>,
    /// The tables with rows in this batch.
    used: BTreeSet<usize>,
    /// Whether rows are not made of the transaction that begins here.
    is_left_out: Option<(u64, bool)>,
}

impl Worker<'_> {
    fn batch(&mut self, batch: &mut EventBatch<'_>) -> (TransactionsPart, Vec<(usize, RecordBatch)>) {
        let mut part = TransactionsPart::of(batch);
        let mut made = Vec::new();
        if let Err(error) = self.events(batch, &mut part).and_then(|()| self.finish(&mut made)) {
            batch.fail(error);
        }
        (part, made)
    }

    fn events(&mut self, batch: &mut EventBatch<'_>, part: &mut TransactionsPart) -> Result<(), Error> {
        self.tables.begin(batch)?;
        self.is_left_out = None;
        let mut frame = TransactionFrame::begin(batch)?;
        while let Some(item) = batch.next_item() {
            let mut table_event = None;
            if let BatchItem::Event(event) = &item {
                frame.pass(event).map_err(|error| event.error(error))?;
                table_event = self.tables.event(event)?;
            }
            let end = self.parts.take(&item, table_event.as_ref(), part)?;
            if let (BatchItem::Event(event), Some(TableEvent::Rows(schema, rows))) = (&item, table_event)
                && !self.leaves_out(&frame)
                && let Some(number) = self.number(&schema)
                && let Some(changes) = self.every.tables.get(number)
                && let Some(maker) = self.makers.get_mut(number)
            {
                let new = || Maker::new(changes, self.logs, self.log, &self.every.wanted);
                maker.get_or_insert_with(new).take((&frame, None), event, schema, &rows)?;
                self.used.insert(number);
            }
            if let Some(end) = end {
                part.end(batch, end);
            }
        }
        Ok(())
    }

    /// Whether no rows are made of a transaction.
    fn leaves_out(&mut self, frame: &TransactionFrame) -> bool {
        let (Some(position), Some(gtid)) = (frame.position, &frame.gtid) else { return false };
        match self.is_left_out {
            Some((known, is_left_out)) if known == position => is_left_out,
            _ => {
                let is_in = |gtid: Gtid| self.every.without.contains(&gtid);
                let is_left_out = Gtid::from_str(gtid).is_ok_and(is_in);
                self.is_left_out = Some((position, is_left_out));
                is_left_out
            }
        }
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
        for number in std::mem::take(&mut self.used) {
            if let Some(Some(maker)) = self.makers.get_mut(number) {
                made.extend(maker.done()?.into_iter().map(|batch| (number, batch)));
            }
        }
        Ok(())
    }
}
