//! Tells the transactions of a batch.

use std::sync::Arc;

use binlogz_binlog::EventType;
use binlogz_binlog::event::{QueryEvent, RowsFlags, RowsQueryEvent};
use binlogz_binlog::statement::StatementKind;
use binlogz_flow::Error;
use binlogz_flow::events::{Event, EventBatch};
use binlogz_stats::{CutTransactions, RowCounter, TransactionCounter, TransactionEnd};

use crate::below_log::CascadeEstimates;
use crate::figures::{BatchTriage, TriageFigures, TriageWindow};
use crate::transaction::{OpenTransaction, TransactionName};

/// A worker's teller, used for all its batches.
#[derive(Debug)]
pub struct TriageCollector {
    window: TriageWindow,
    sought: Option<TransactionName>,
    /// Which of the logs is read, counted from 0.
    log: usize,
    cascades: Arc<CascadeEstimates>,
    rows: RowCounter,
}

/// Tells the transactions of a batch.
struct BatchTeller<'c> {
    rows: &'c mut RowCounter,
    whole: TriageFigures,
}

impl TriageCollector {
    /// A teller of the transactions in this window; it is one of so many workers.
    pub fn new(window: TriageWindow, workers: usize) -> Self {
        TriageCollector {
            window,
            sought: None,
            log: 0,
            cascades: Arc::default(),
            rows: RowCounter::new(workers, false),
        }
    }

    /// Looks for this transaction, too, in the log with this number.
    #[must_use]
    pub fn seeking(self, name: TransactionName, log: usize) -> Self {
        TriageCollector { sought: Some(name), log, ..self }
    }

    /// Counts what goes with deleted rows and is in no log.
    #[must_use]
    pub fn with_cascades(self, cascades: Arc<CascadeEstimates>) -> Self {
        TriageCollector { cascades, ..self }
    }

    /// Takes all events of a batch. Unreadable bytes fail the batch.
    pub fn collect(&mut self, batch: &mut EventBatch<'_>) -> BatchTriage {
        let mut whole = TriageFigures::new(self.window, Arc::clone(&self.cascades));
        whole.log = self.log;
        if let Some(name) = self.sought {
            whole.seek(name);
        }
        self.rows.begin(batch);
        let log = batch.log().number;
        let mut teller = BatchTeller { rows: &mut self.rows, whole };
        let cut = CutTransactions::of_batch(batch, &mut teller);
        BatchTriage { log, whole: teller.whole, cut }
    }
}

impl TransactionCounter for BatchTeller<'_> {
    type Transaction = OpenTransaction;

    /// Rows and statements without BEGIN are in no transaction.
    fn outside(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let mut alone = self.begin(event)?;
        self.content(&mut alone, event)?;
        if alone.has_changes() {
            self.whole.take(alone);
        }
        Ok(())
    }

    fn begin(&mut self, event: &Event<'_>) -> Result<OpenTransaction, Error> {
        OpenTransaction::begin(event).map_err(|error| event.error(error))
    }

    #[inline]
    fn later(&mut self, open: &mut OpenTransaction, event: &Event<'_>) {
        open.event(event);
    }

    fn content(&mut self, open: &mut OpenTransaction, event: &Event<'_>) -> Result<(), Error> {
        let event_type = event.header.event_type;
        if event_type == EventType::QUERY {
            let query = QueryEvent::decode(event.body).map_err(|error| event.error(error))?;
            open.session(event.body);
            match StatementKind::of(query.statement) {
                StatementKind::Other => open.query(&query),
                StatementKind::Rollback | StatementKind::XaRollback => open.transaction.is_rolled_back = true,
                StatementKind::Begin
                | StatementKind::Commit
                | StatementKind::RollbackTo
                | StatementKind::Savepoint
                | StatementKind::XaStart
                | StatementKind::XaEnd
                | StatementKind::XaPrepare
                | StatementKind::XaCommit => {}
            }
            return Ok(());
        }
        if event_type == EventType::ROWS_QUERY {
            let statement = RowsQueryEvent::decode(event.body).map_err(|error| event.error(error))?.statement;
            open.statement(statement);
            return Ok(());
        }
        if event_type == EventType::MARIADB_ANNOTATE_ROWS {
            open.statement(event.body);
            return Ok(());
        }
        if let Some((name, Some(rows))) = self.rows.event(event, |_| true)? {
            let by_foreign_key = rows.flags.contains(RowsFlags::USE_SQL_FOREIGN_KEY)
                && rows.flags.contains(RowsFlags::NO_FOREIGN_KEY_CHECKS);
            open.rows(&name, rows.kind, rows.count, by_foreign_key);
        }
        Ok(())
    }

    fn whole(&mut self, open: OpenTransaction, _: &TransactionEnd) {
        self.whole.take(open);
    }
}
