//! What is known of all logs that were read: the usual, and the changes that may be none of it.

use std::mem;
use std::sync::Arc;

use binlogz_binlog::gtid::Gtid;

use crate::change::RankedChange;
use crate::figures::{BatchTriage, PassingSearch, TriageFigures, TriageWindow};
use crate::largest::{LargeChange, OperationOnTable};
use crate::transaction::{OpenTransaction, TransactionName, TriagedTransaction};

/// A transaction that was looked for.
#[derive(Debug, Clone)]
pub struct SoughtTransaction {
    /// What it changed. Whether that is unusual isn't known.
    pub change: RankedChange,
    /// The transaction before it in the logs, if that has a GTID.
    pub previous: Option<Gtid>,
}

/// The changes of logs, while they are read.
#[derive(Debug)]
pub struct Triage {
    pub(crate) window: TriageWindow,
    pub(crate) figures: TriageFigures,
    /// Which log of the input is read.
    log: u64,
    /// The transaction that the last batch left open.
    open: Option<OpenTransaction>,
    /// The number of logs that were read before.
    logs: usize,
}

impl Triage {
    /// Nothing read yet.
    pub fn new(window: TriageWindow) -> Self {
        Triage { window, figures: TriageFigures::new(window, Arc::default()), log: 0, open: None, logs: 0 }
    }

    /// Looks for this transaction alone.
    pub fn seeking(name: TransactionName) -> Self {
        let mut triage = Triage::new(TriageWindow::Between(0, 0));
        triage.figures.seek(name);
        triage
    }

    /// The transaction that is looked for, once it was read.
    pub fn sought(&self) -> Option<SoughtTransaction> {
        let PassingSearch { transaction, previous, .. } = &self.figures.sought;
        let transaction = TriagedTransaction::clone(transaction.as_deref()?);
        let change = RankedChange { transaction, reasons: Vec::new(), as_large: 1, severity: 0.0 };
        Some(SoughtTransaction { change, previous: *previous })
    }

    /// Adds the next batch, in the order of the log.
    pub fn add(&mut self, mut batch: BatchTriage) {
        if batch.log != self.log {
            self.open = None;
            self.log = batch.log;
        }
        if let Some((head, ending)) = batch.cut.head {
            self.open.get_or_insert_default().join(head);
            if ending.is_some() {
                self.end();
            }
        }
        batch.whole.set_log(self.logs);
        self.figures.join(batch.whole);
        if batch.cut.tail.is_some() {
            self.open = batch.cut.tail;
        }
    }

    /// Says that the input has ended: the next batch is of another log. A transaction that is cut off by its end is not counted,
    /// since it may not have been committed.
    pub fn end_log(&mut self) {
        self.open = None;
        self.log = 0;
        self.logs += 1;
    }

    fn end(&mut self) {
        if let Some(open) = mem::take(&mut self.open) {
            self.figures.log = self.logs;
            self.figures.take(open);
        }
    }

    /// The number of transactions in all logs that were read.
    pub fn transactions(&self) -> u64 {
        self.figures.transactions
    }

    /// The first and the last moment that is shown, in microseconds since 1970; `None`: the logs have no transaction.
    pub fn span(&self) -> Option<(u64, u64)> {
        let (first, last) = self.figures.times?;
        Some(match self.window {
            TriageWindow::Last(length) => (first.max(last.saturating_sub(length)), last),
            TriageWindow::Between(start, stop) => (start.max(first), stop.saturating_sub(1).min(last)),
        })
    }

    /// The changes of the window, as far as they are kept.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (&OperationOnTable, &LargeChange)> {
        let shown = self.span();
        self.figures.largest().filter(move |(_, change)| self.shows(shown, change.transaction.end_time()))
    }

    pub(crate) fn shows(&self, shown: Option<(u64, u64)>, time: u64) -> bool {
        shown.is_some_and(|(first, last)| (first..=last).contains(&time))
    }
}
