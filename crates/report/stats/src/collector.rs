//! Counts the events of a batch.

use std::sync::Arc;

use binlogz_binlog::EventType;
use binlogz_flow::Error;
use binlogz_flow::events::{Event, EventBatch};
use binlogz_payload::PayloadSizes;

use crate::figures::{StatsFigures, Writer};
use crate::filter::StatsFilter;
use crate::row_counter::RowCounter;
use crate::transaction::{CountedTransaction, TransactionEnd, size_without_checksum};
use crate::walk::{CutTransactions, TransactionCounter};

/// A worker's counter, used for all its batches.
#[derive(Debug)]
pub struct StatsCollector {
    rows: RowCounter,
    top: usize,
    filter: Arc<StatsFilter>,
}

/// The figures of a batch.
#[derive(Debug)]
pub struct BatchFigures {
    /// Which log of the input, counted from 0.
    pub(crate) log: u64,
    /// Everything that is whole.
    pub(crate) figures: StatsFigures,
    pub(crate) cut: CutTransactions<CountedTransaction>,
}

/// Counts the transactions of a batch.
struct BatchCounter<'c> {
    rows: &'c mut RowCounter,
    filter: &'c StatsFilter,
    writer: Writer,
    figures: StatsFigures,
}

impl StatsCollector {
    /// A counter that keeps the `top` largest transactions. With `values` every value of every row is
    /// decoded, to find invalid bytes. It is one of this many workers.
    pub fn new(top: usize, values: bool, workers: usize) -> Self {
        StatsCollector { rows: RowCounter::new(workers, values), top, filter: Arc::default() }
    }

    /// Counts only what this filter chooses.
    #[must_use]
    pub fn filtered(mut self, filter: &Arc<StatsFilter>) -> Self {
        self.filter = Arc::clone(filter);
        self
    }

    /// Counts all events of a batch. Unreadable bytes fail the batch.
    pub fn collect(&mut self, batch: &mut EventBatch<'_>) -> BatchFigures {
        let log = batch.log().number;
        let writer = Writer::of(batch.log());
        self.rows.begin(batch);
        let figures = StatsFigures::new(self.top);
        let mut counter = BatchCounter { rows: &mut self.rows, filter: &self.filter, writer, figures };
        let cut = CutTransactions::of_batch(batch, &mut counter);
        BatchFigures { log, figures: counter.figures, cut }
    }
}

impl TransactionCounter for BatchCounter<'_> {
    type Transaction = CountedTransaction;

    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        if !self.filter.is_active() {
            self.figures.events += 1;
        }
        if event.header.event_type == EventType::FORMAT_DESCRIPTION && !event.is_inside_payload() {
            self.figures.describe(event.log, Writer::of(event.log));
        }
    }

    /// Rows without BEGIN are in no transaction, but they are in a table.
    fn outside(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let mut stray = CountedTransaction::default();
        self.content(&mut stray, event)?;
        self.filter.count_stray(&mut self.figures, &stray);
        Ok(())
    }

    fn begin(&mut self, event: &Event<'_>) -> Result<CountedTransaction, Error> {
        CountedTransaction::begin(event).map_err(|error| event.error(error))
    }

    #[inline]
    fn later(&mut self, transaction: &mut CountedTransaction, event: &Event<'_>) {
        transaction.event(event);
    }

    #[inline]
    fn content(&mut self, transaction: &mut CountedTransaction, event: &Event<'_>) -> Result<(), Error> {
        transaction.events += 1;
        let filter = self.filter;
        if let Some((name, rows)) = self.rows.event(event, |name| filter.has_table(name))? {
            let totals = transaction.table(&name);
            totals.uncompressed_bytes += size_without_checksum(event);
            if let Some(rows) = rows {
                totals.rows.count(rows.kind, rows.count);
                transaction.rows.count(rows.kind, rows.count);
            }
        }
        if event.header.event_type == EventType::TRANSACTION_PAYLOAD && !event.is_inside_payload() {
            transaction.payload(event);
        }
        Ok(())
    }

    fn payload_end(&mut self, transaction: &mut CountedTransaction, sizes: PayloadSizes) {
        transaction.payload_end(sizes);
    }

    fn whole(&mut self, transaction: CountedTransaction, ending: &TransactionEnd) {
        self.filter.count(&mut self.figures, self.writer, &transaction, ending);
    }
}
