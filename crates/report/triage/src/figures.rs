//! What some transactions add up to: those of a batch, or all that were read.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use binlogz_binlog::gtid::Gtid;
use binlogz_figures::Quantiles;
use binlogz_stats::{CutTransactions, TableName};

use crate::below_log::CascadeEstimates;
use crate::largest::{ChangeFrequency, LargeChange, LargestChanges, OperationOnTable};
use crate::session_loop::{EndedLoop, SessionLoops};
use crate::transaction::{OpenTransaction, TransactionName, TriagedTransaction};

/// The transactions of a batch.
#[derive(Debug)]
pub struct BatchTriage {
    /// Which log of the input, counted from 0.
    pub(crate) log: u64,
    /// Everything that is whole.
    pub(crate) whole: TriageFigures,
    pub(crate) cut: CutTransactions<OpenTransaction>,
}

/// Tables of which it is known whether they had a DELETE before.
const TABLES_MAX: usize = 20_000;

/// The transactions that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriageWindow {
    /// Those of so many microseconds before the last one of the logs.
    Last(u64),
    /// Those committed from the first time on, and before the second: microseconds since 1970.
    Between(u64, u64),
}

/// The largest changes of the window. While it isn't known when the logs end, those of times that may be in it.
#[derive(Debug, Clone)]
struct WindowChanges {
    window: TriageWindow,
    /// By time, in units of the window's length.
    spans: BTreeMap<u64, LargestChanges>,
}

impl WindowChanges {
    fn span(&self, time: u64) -> Option<u64> {
        match self.window {
            TriageWindow::Last(length) => {
                let span = time / length.max(1);
                // The window reaches into the span before the last one, and no further.
                let last = self.spans.last_key_value().map_or(0, |(last, _)| *last);
                (span + 1 >= last).then_some(span)
            }
            TriageWindow::Between(start, stop) => (start..stop).contains(&time).then_some(0),
        }
    }

    /// Adds a change, which is copied if there is room for it.
    fn add(&mut self, key: &OperationOnTable, rows: u64, transaction: &TriagedTransaction) {
        let Some(span) = self.span(transaction.end_time()) else { return };
        let changes = self.spans.entry(span).or_default();
        if changes.has_room(key, rows) {
            changes.add(key.clone(), LargeChange { rows, transaction: transaction.clone() });
        }
        self.leave_early();
    }

    fn join(&mut self, later: WindowChanges) {
        for (span, changes) in later.spans {
            self.spans.entry(span).or_default().join(changes);
        }
        self.leave_early();
    }

    fn leave_early(&mut self) {
        if let Some((last, _)) = self.spans.last_key_value().filter(|_| self.spans.len() > 2) {
            let first = last.saturating_sub(1);
            self.spans = self.spans.split_off(&first);
        }
    }
}

/// The DELETEs of a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableDeletes {
    /// The transactions that changed it before the first DELETE.
    pub(crate) earlier: u64,
    pub(crate) first: Option<Box<TriagedTransaction>>,
}

/// The one transaction that is looked for, and the one before it.
#[derive(Debug, Clone, Default)]
pub(crate) struct PassingSearch {
    name: Option<TransactionName>,
    pub(crate) transaction: Option<Box<TriagedTransaction>>,
    /// The transaction before it; until it is there, the last one.
    pub(crate) previous: Option<Gtid>,
}

impl PassingSearch {
    fn take(&mut self, transaction: &TriagedTransaction) {
        let Some(name) = self.name.filter(|_| self.transaction.is_none()) else { return };
        match name.is_of(transaction) {
            true => self.transaction = Some(Box::new(transaction.clone())),
            false => self.previous = transaction.gtid.or(self.previous),
        }
    }

    fn join(&mut self, later: PassingSearch) {
        if self.transaction.is_none() {
            self.transaction = later.transaction;
            self.previous = later.previous.or(self.previous);
        }
    }

    fn set_log(&mut self, log: usize) {
        self.transaction.iter_mut().for_each(|transaction| transaction.log = log);
    }
}

/// What some transactions add up to.
#[derive(Debug, Clone)]
pub(crate) struct TriageFigures {
    pub(crate) transactions: u64,
    /// Rows of those that have some.
    pub(crate) rows: Quantiles,
    /// The first and the last time, in microseconds since 1970.
    pub(crate) times: Option<(u64, u64)>,
    pub(crate) frequency: ChangeFrequency,
    pub(crate) deletes: HashMap<Arc<TableName>, TableDeletes>,
    changes: WindowChanges,
    loops: SessionLoops,
    pub(crate) sought: PassingSearch,
    /// Rows that foreign keys take along with deleted ones, below the log.
    cascades: Arc<CascadeEstimates>,
    /// Which of the logs they are in.
    pub(crate) log: usize,
}

impl TriageFigures {
    pub(crate) fn new(window: TriageWindow, cascades: Arc<CascadeEstimates>) -> Self {
        TriageFigures {
            transactions: 0,
            rows: Quantiles::default(),
            times: None,
            frequency: ChangeFrequency::default(),
            deletes: HashMap::new(),
            changes: WindowChanges { window, spans: BTreeMap::new() },
            loops: SessionLoops::default(),
            sought: PassingSearch::default(),
            cascades,
            log: 0,
        }
    }

    /// The largest changes of times that may be in the window.
    pub(crate) fn largest(&self) -> impl Iterator<Item = (&OperationOnTable, &LargeChange)> {
        self.changes.spans.values().flat_map(LargestChanges::iter)
    }

    /// Looks for this transaction, too.
    pub(crate) fn seek(&mut self, name: TransactionName) {
        self.sought.name = Some(name);
    }

    /// Takes a transaction that has ended, after all others.
    pub(crate) fn take(&mut self, open: OpenTransaction) {
        let Some(transaction) = open.end() else { return };
        let rows_below = self.cascades.rows_below(&transaction);
        let transaction = TriagedTransaction { log: self.log, rows_below, ..transaction };
        self.transactions += 1;
        self.sought.take(&transaction);
        let time = transaction.time;
        let (first, last) = self.times.unwrap_or((time, time));
        self.times = Some((first.min(time), last.max(time)));
        let rows = transaction.rows().total();
        if rows > 0 {
            self.rows.count(rows, 1.0);
        }
        self.take_deletes(&transaction);
        if let Some((key, rows)) = OperationOnTable::of(&transaction) {
            self.frequency.count(&key, rows);
            self.changes.add(&key, rows, &transaction);
        }
        self.loops.take(transaction);
    }

    /// Says that nothing more comes: sessions that were still at it have ended.
    pub(crate) fn end_loops(&mut self) {
        let ended = self.loops.end();
        self.take_loops(ended);
    }

    fn take_loops(&mut self, ended: Vec<EndedLoop>) {
        for EndedLoop { operation, rows, transaction } in ended {
            self.frequency.count(&operation, rows);
            self.changes.add(&operation, rows, &transaction);
        }
    }

    fn take_deletes(&mut self, transaction: &TriagedTransaction) {
        for table in &transaction.tables {
            if self.deletes.len() >= TABLES_MAX && !self.deletes.contains_key(&table.name) {
                continue;
            }
            let deletes = self.deletes.entry(Arc::clone(&table.name)).or_default();
            match (&deletes.first, table.rows.deletes) {
                (Some(_), _) => {}
                (None, 0) => deletes.earlier += 1,
                (None, _) => deletes.first = Some(Box::new(transaction.clone())),
            }
        }
    }

    /// Adds the figures of what came later.
    pub(crate) fn join(&mut self, mut later: TriageFigures) {
        self.transactions += later.transactions;
        self.rows.add(&later.rows);
        if let Some((first, last)) = later.times {
            let (known_first, known_last) = self.times.unwrap_or((first, last));
            self.times = Some((known_first.min(first), known_last.max(last)));
        }
        self.frequency.join(later.frequency);
        for (name, later) in later.deletes.drain() {
            if self.deletes.len() >= TABLES_MAX && !self.deletes.contains_key(&name) {
                continue;
            }
            let known = self.deletes.entry(name).or_default();
            if known.first.is_none() {
                known.earlier += later.earlier;
                known.first = later.first;
            }
        }
        self.changes.join(later.changes);
        let ended = self.loops.join(later.loops);
        self.take_loops(ended);
        self.sought.join(later.sought);
    }

    /// Says that all transactions are of the log with this number.
    pub(crate) fn set_log(&mut self, log: usize) {
        for deletes in self.deletes.values_mut() {
            deletes.first.iter_mut().for_each(|first| first.log = log);
        }
        for changes in self.changes.spans.values_mut() {
            changes.set_log(log);
        }
        self.loops.set_log(log);
        self.sought.set_log(log);
    }
}
