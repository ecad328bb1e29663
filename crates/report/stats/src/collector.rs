//! Counts the events of a batch.

use std::sync::Arc;

use binlogz_binlog::event::RowsEvent;
use binlogz_binlog::row::{RowDecoder, TableSchema};
use binlogz_binlog::{Boundary, Error as BinlogError, EventType};
use binlogz_flow::Error;
use binlogz_flow::events::{BatchItem, Event, EventBatch, TableEvent, WorkerTables};

use crate::by_table::TableName;
use crate::figures::{StatsFigures, Writer};
use crate::filter::StatsFilter;
use crate::transaction::{CountedTransaction, TransactionEnd, size_without_checksum};

/// A worker's counter, used for all its batches.
#[derive(Debug)]
pub struct StatsCollector {
    tables: WorkerTables,
    decoder: RowDecoder,
    /// The table of the previous event, and its name.
    named: Option<(Arc<TableSchema>, Arc<TableName>)>,
    top: usize,
    values: bool,
    filter: Arc<StatsFilter>,
}

/// The figures of a batch.
#[derive(Debug)]
pub struct BatchFigures {
    /// Which log of the input, counted from 0.
    pub(crate) log: u64,
    /// The end, or the middle, of a transaction that began earlier, and how it ended.
    pub(crate) head: Option<(CountedTransaction, Option<TransactionEnd>)>,
    /// Everything that is whole.
    pub(crate) figures: StatsFigures,
    /// A transaction that continues after the batch.
    pub(crate) tail: Option<CountedTransaction>,
}

/// The transactions of a batch as they go by.
struct Open {
    filter: Arc<StatsFilter>,
    part: BatchFigures,
    writer: Writer,
    /// The open transaction, and whether it began before the batch.
    transaction: Option<(CountedTransaction, bool)>,
}

impl StatsCollector {
    /// A counter that keeps the `top` largest transactions. With `values` every value of every row is
    /// decoded, to find invalid bytes. It is one of this many workers.
    pub fn new(top: usize, values: bool, workers: usize) -> Self {
        StatsCollector {
            tables: WorkerTables::one_of(workers),
            decoder: RowDecoder::new(),
            named: None,
            top,
            values,
            filter: Arc::default(),
        }
    }

    /// Counts only what this filter chooses.
    #[must_use]
    pub fn filtered(mut self, filter: &Arc<StatsFilter>) -> Self {
        self.filter = Arc::clone(filter);
        self
    }

    /// Counts all events of a batch. Unreadable bytes fail the batch.
    pub fn collect(&mut self, batch: &mut EventBatch<'_>) -> BatchFigures {
        let log = batch.log();
        let figures = StatsFigures::new(self.top);
        let mut open = Open {
            filter: Arc::clone(&self.filter),
            part: BatchFigures { log: log.number, head: None, figures, tail: None },
            writer: Writer::of(log),
            transaction: None,
        };
        if let Err(error) = self.tables.begin(batch) {
            batch.fail(error);
        }
        while let Some(item) = batch.next_item() {
            let ends = match item {
                BatchItem::PayloadEnd(end) => {
                    open.transaction().payload_end(end.sizes);
                    Some(EventType::TRANSACTION_PAYLOAD)
                }
                BatchItem::Event(event) => match self.event(&event, &mut open) {
                    Ok(ends) => ends,
                    Err(error) => {
                        batch.fail(error);
                        break;
                    }
                },
            };
            if let Some(event_type) = ends {
                open.end(TransactionEnd::Whole(*batch.transaction().content(), event_type));
            }
        }
        open.finish()
    }

    /// Counts an event and returns its type if it ends a transaction.
    #[inline]
    fn event(&mut self, event: &Event<'_>, open: &mut Open) -> Result<Option<EventType>, Error> {
        let event_type = event.header.event_type;
        if !self.filter.is_active() {
            open.part.figures.events += 1;
        }
        if event.is_inside_payload() {
            open.transaction().events += 1;
            self.table_event(event, open.transaction())?;
            return Ok(None);
        }
        if event_type == EventType::FORMAT_DESCRIPTION {
            open.part.figures.describe(event.log, Writer::of(event.log));
        }
        let boundary = event.placement.boundary;
        match boundary {
            // Rows without BEGIN are in no transaction, but they are in a table.
            Boundary::Outside => {
                let mut stray = CountedTransaction::of_stray();
                self.table_event(event, &mut stray)?;
                open.filter.count_stray(&mut open.part.figures, &stray);
                return Ok(None);
            }
            Boundary::Begin | Boundary::Single => open.begin(event)?,
            Boundary::BeginAgain => {
                open.end(TransactionEnd::CutOff);
                open.begin(event)?;
            }
            Boundary::Inside | Boundary::End => open.transaction().event(event),
        }
        open.transaction().events += 1;
        self.table_event(event, open.transaction())?;
        if event_type == EventType::TRANSACTION_PAYLOAD {
            // It ends with what is inside.
            open.transaction().payload(event);
            return Ok(None);
        }
        Ok(matches!(boundary, Boundary::End | Boundary::Single).then_some(event_type))
    }

    /// Counts a table map or row event.
    #[inline]
    fn table_event(&mut self, event: &Event<'_>, transaction: &mut CountedTransaction) -> Result<(), Error> {
        let (schema, rows) = match self.tables.event(event)? {
            None => return Ok(()),
            Some(TableEvent::Map(schema)) => (schema, None),
            Some(TableEvent::Rows(schema, rows)) => (schema, Some(rows)),
        };
        let name = self.name(&schema);
        if !self.filter.has_table(&name) {
            return Ok(());
        }
        let totals = transaction.table(&name);
        totals.uncompressed_bytes += size_without_checksum(event);
        if let Some(rows) = rows {
            match self.rows(&schema, &rows) {
                Ok(count) => {
                    totals.rows.count(rows.kind(), count);
                    transaction.rows.count(rows.kind(), count);
                }
                Err(error) => event.unread(&schema, &error),
            }
        }
        Ok(())
    }

    /// The number of rows in an event.
    fn rows(&mut self, schema: &TableSchema, event: &RowsEvent<'_>) -> Result<u64, BinlogError> {
        if is_pre_ga(event.event_type) {
            return Ok(0);
        }
        if !self.values {
            return self.decoder.count(schema, event);
        }
        let mut rows = self.decoder.rows(schema, event)?;
        let mut count = 0;
        while let Some(row) = rows.next_row()? {
            count += 1;
            for cell in row.before.iter().chain(&row.after).flat_map(|image| image.cells()) {
                std::hint::black_box(cell.value()?);
            }
        }
        Ok(count)
    }

    /// A table's name; events of a table come in runs.
    fn name(&mut self, schema: &Arc<TableSchema>) -> Arc<TableName> {
        match &self.named {
            Some((known, name)) if Arc::ptr_eq(known, schema) => Arc::clone(name),
            _ => {
                let (database, table) = (schema.database.clone(), schema.table.clone());
                let name = Arc::new(TableName { database, table });
                self.named = Some((Arc::clone(schema), Arc::clone(&name)));
                name
            }
        }
    }
}

/// Whether these are rows of the 5.1 betas, which only their own server can read.
fn is_pre_ga(event_type: EventType) -> bool {
    (EventType::PRE_GA_WRITE_ROWS..=EventType::PRE_GA_DELETE_ROWS).contains(&event_type)
}

impl Open {
    /// The open transaction: one that began before the batch, if none began in it.
    #[inline]
    fn transaction(&mut self) -> &mut CountedTransaction {
        &mut self.transaction.get_or_insert_with(|| (CountedTransaction::default(), true)).0
    }

    fn begin(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let (transaction, _) = self.transaction.insert((CountedTransaction::default(), false));
        transaction.begin(event).map_err(|error| event.error(error))
    }

    /// Ends the open transaction.
    fn end(&mut self, ending: TransactionEnd) {
        match self.transaction.take() {
            Some((transaction, false)) => {
                self.filter.count(&mut self.part.figures, self.writer, &transaction, &ending);
            }
            Some((transaction, true)) => self.part.head = Some((transaction, Some(ending))),
            None => self.part.head = Some((CountedTransaction::default(), Some(ending))),
        }
    }

    fn finish(mut self) -> BatchFigures {
        match self.transaction.take() {
            Some((transaction, false)) => self.part.tail = Some(transaction),
            Some((transaction, true)) => self.part.head = Some((transaction, None)),
            None => {}
        }
        self.part
    }
}
