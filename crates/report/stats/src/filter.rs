//! Which transactions and tables are counted. Transactions are counted whole, or not at all: whether they are chosen is known once
//! they end.

use binlogz_binlog::gtid::GtidSet;

use crate::by_table::TableName;
use crate::figures::{StatsFigures, Writer};
use crate::transaction::{CountedTransaction, TransactionEnd};

/// The choice; everything by default.
#[derive(Debug, Clone, Default)]
pub struct StatsFilter {
    /// Only the rows of these tables, and transactions with some of them; all if empty.
    pub tables: Vec<TableName>,
    /// Only transactions committed at this time or later, in microseconds since 1970.
    pub start_time: Option<i64>,
    /// Only transactions committed before this time, in microseconds since 1970.
    pub stop_time: Option<i64>,
    /// Only these transactions.
    pub gtids: Option<GtidSet>,
}

impl StatsFilter {
    /// Whether anything may be left out.
    pub fn is_active(&self) -> bool {
        !self.tables.is_empty() || self.chooses_transactions()
    }

    fn chooses_transactions(&self) -> bool {
        self.start_time.is_some() || self.stop_time.is_some() || self.gtids.is_some()
    }

    /// Whether the rows of a table are counted.
    #[inline]
    pub(crate) fn has_table(&self, name: &TableName) -> bool {
        self.tables.is_empty() || self.tables.contains(name)
    }

    fn has(&self, transaction: &CountedTransaction) -> bool {
        let time = transaction.timestamp().map(|time| i64::try_from(time).unwrap_or(i64::MAX));
        let is_in_time = self.start_time.is_none_or(|start| time.is_some_and(|time| time >= start))
            && self.stop_time.is_none_or(|stop| time.is_some_and(|time| time < stop));
        let is_named =
            self.gtids.as_ref().is_none_or(|gtids| transaction.id().is_some_and(|id| gtids.contains(&id)));
        is_in_time && is_named && (self.tables.is_empty() || !transaction.tables.is_empty())
    }

    /// Counts a transaction if it is chosen.
    pub(crate) fn count(
        &self,
        figures: &mut StatsFigures,
        writer: Writer,
        transaction: &CountedTransaction,
        ending: &TransactionEnd,
    ) {
        if !self.is_active() {
            return figures.count(writer, transaction, ending);
        }
        if self.has(transaction) {
            figures.events += transaction.events;
            figures.count(writer, transaction, ending);
        }
    }

    /// Counts rows outside of transactions: nobody knows when they were committed.
    pub(crate) fn count_stray(&self, figures: &mut StatsFigures, stray: &CountedTransaction) {
        if !self.is_active() {
            return figures.stray(stray);
        }
        if !self.chooses_transactions() && !stray.tables.is_empty() {
            figures.events += stray.events;
            figures.stray(stray);
        }
    }
}
