//! What became of more changes than people read: the first ones are shown, all are counted, by transaction.
//!
//! ```text
//! row by row → ChangeSummary: is it one of the first? → Writer
//! all logs   → "… 27,913 more: --all", then a line for each of the first transactions
//! ```

use std::io::{self, Write};

use binlogz_binlog::printable;
use binlogz_figures::{counted, grouped, moment};

use crate::choose::Operation;
use crate::pass::{FollowedTransaction, TransactionEnding};

/// The most transactions that have a line.
const TRANSACTIONS_MAX: usize = 20;

/// Counts changes, and says which of them are shown.
#[derive(Debug)]
pub(super) struct ChangeSummary {
    /// The number of changes that are shown; the rest is only counted.
    shown_max: u64,
    /// The changes so far, those of the open transaction included.
    all: ChangeCounts,
    /// Counts of the open transaction, which may still be rolled back.
    open: ChangeCounts,
    /// The transactions so far that had changes.
    transactions: u64,
    /// A line for each of the first of them.
    lines: Vec<String>,
}

/// Changed rows by operation.
#[derive(Debug, Clone, Copy, Default)]
struct ChangeCounts {
    inserted: u64,
    updated: u64,
    deleted: u64,
}

impl ChangeCounts {
    fn count(&mut self, operation: Operation) {
        match operation {
            Operation::Insert => self.inserted += 1,
            Operation::Update => self.updated += 1,
            Operation::Delete => self.deleted += 1,
        }
    }

    fn total(self) -> u64 {
        self.inserted + self.updated + self.deleted
    }

    /// `12 inserted, 3 deleted`.
    fn in_words(self) -> String {
        let counts = [(self.inserted, "inserted"), (self.updated, "updated"), (self.deleted, "deleted")];
        let words = counts.into_iter().filter(|(count, _)| *count > 0);
        words.map(|(count, word)| format!("{} {word}", grouped(count))).collect::<Vec<_>>().join(", ")
    }
}

impl ChangeSummary {
    /// Begins to count. The first `shown_max` changes will be shown.
    pub(super) fn new(shown_max: u64) -> Self {
        ChangeSummary {
            shown_max,
            all: ChangeCounts::default(),
            open: ChangeCounts::default(),
            transactions: 0,
            lines: Vec::new(),
        }
    }

    /// A summary with the same limit that has counted nothing yet, for another pass.
    pub(super) fn anew(&self) -> Self {
        ChangeSummary::new(self.shown_max)
    }

    /// Counts a change of the open transaction by its text, which begins with the operation. Returns whether it is shown.
    pub(super) fn count(&mut self, text: &[u8]) -> bool {
        let mut operations = [Operation::Insert, Operation::Update, Operation::Delete].into_iter();
        if let Some(operation) = operations.find(|operation| text.starts_with(operation.name().as_bytes())) {
            self.all.count(operation);
            self.open.count(operation);
        }
        self.all.total() <= self.shown_max
    }

    /// Ends the open transaction.
    pub(super) fn end(&mut self, transaction: &FollowedTransaction, ending: TransactionEnding) {
        let counts = std::mem::take(&mut self.open);
        if counts.total() == 0 {
            return;
        }
        self.transactions += 1;
        if self.lines.len() < TRANSACTIONS_MAX {
            self.lines.push(line(transaction, ending, counts));
        }
    }

    /// The number of changes that are counted and not shown.
    pub(super) fn hidden(&self) -> u64 {
        self.all.total().saturating_sub(self.shown_max)
    }

    /// Writes what the changes that aren't shown were; nothing if all are.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.hidden() == 0 {
            return Ok(());
        }
        writeln!(out, "\n… {} more: --all\n", grouped(self.hidden()))?;
        let [changes, transactions] = [(self.all.total(), "changes"), (self.transactions, "transactions")]
            .map(|(count, what)| counted(count, what));
        writeln!(out, "{changes} in {transactions}: {}", self.all.in_words())?;
        self.lines.iter().try_for_each(|line| writeln!(out, "  {line}"))?;
        match self.transactions.saturating_sub(self.lines.len() as u64) {
            0 => Ok(()),
            more => writeln!(out, "  … {} more", grouped(more)),
        }
    }
}

/// A transaction's line.
fn line(transaction: &FollowedTransaction, ending: TransactionEnding, counts: ChangeCounts) -> String {
    let time = moment(transaction.time);
    let name = match &transaction.gtid {
        Some(gtid) => format!("GTID {gtid}"),
        None => format!("no GTID, {} at {}", printable(&transaction.log), transaction.offset),
    };
    let doubt = match ending {
        TransactionEnding::Whole if transaction.prepared.is_some() => " (only prepared)",
        TransactionEnding::Whole => "",
        TransactionEnding::RolledBack => " (rolled back)",
        TransactionEnding::PartlyRolledBack => " (partly rolled back)",
        TransactionEnding::Cut => " (cut off by the log's end)",
    };
    format!("{time}  {name}: {}{doubt}", counts.in_words())
}
