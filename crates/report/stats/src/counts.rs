//! Numbers of rows, transactions and bytes, which are added up over the parts of a log.

use binlogz_binlog::event::RowsKind;

/// Changed rows by kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowCounts {
    /// Rows inserted.
    pub inserts: u64,
    /// Rows updated.
    pub updates: u64,
    /// Rows deleted.
    pub deletes: u64,
}

impl RowCounts {
    /// Counts rows of an event.
    #[inline]
    pub fn count(&mut self, kind: RowsKind, rows: u64) {
        match kind {
            RowsKind::Write => self.inserts += rows,
            RowsKind::Update | RowsKind::PartialUpdate => self.updates += rows,
            RowsKind::Delete => self.deletes += rows,
        }
    }

    /// Adds the rows of another count.
    pub fn add(&mut self, other: &RowCounts) {
        self.inserts += other.inserts;
        self.updates += other.updates;
        self.deletes += other.deletes;
    }

    /// All row changes.
    pub fn total(&self) -> u64 {
        self.inserts + self.updates + self.deletes
    }
}

/// Transactions that have something in common: a file, an hour, a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// The number of transactions, compressed or not.
    pub transactions: u64,
    /// The number of compressed transactions.
    pub compressed_transactions: u64,
    /// Row changes of the transactions.
    pub rows: RowCounts,
    /// Bytes of their events without compression, not counting GTID events and checksums.
    pub uncompressed_bytes: u64,
    /// Bytes of their events as they are stored, in payloads if there are any, not counting GTID events and checksums.
    pub compressed_bytes: u64,
}

impl Totals {
    pub(crate) fn add(&mut self, other: &Totals) {
        self.transactions += other.transactions;
        self.compressed_transactions += other.compressed_transactions;
        self.rows.add(&other.rows);
        self.uncompressed_bytes += other.uncompressed_bytes;
        self.compressed_bytes += other.compressed_bytes;
    }
}
