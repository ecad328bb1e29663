//! The largest transactions.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use binlogz_binlog::gtid::Gtid;

use crate::counts::Totals;

/// A transaction that is shown individually.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LargeTransaction {
    /// Which file, counted from 0, and where it begins there.
    pub(crate) file: usize,
    pub(crate) offset: u64,
    /// `None`: anonymous.
    pub(crate) id: Option<Gtid>,
    /// Microseconds since 1970.
    pub(crate) commit_timestamp: Option<u64>,
    /// The figures of this one alone.
    pub(crate) totals: Totals,
    pub(crate) tables: u64,
}

impl LargeTransaction {
    /// The sort key: its size, then the earlier one.
    fn key(&self) -> (u64, Reverse<(usize, u64)>) {
        (self.totals.uncompressed_bytes, Reverse((self.file, self.offset)))
    }
}

impl PartialOrd for LargeTransaction {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for LargeTransaction {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// Keeps the largest of all transactions it is shown.
#[derive(Debug, Clone)]
pub(crate) struct LargestTransactions {
    count: usize,
    /// The smallest on top.
    heap: BinaryHeap<Reverse<LargeTransaction>>,
}

impl LargestTransactions {
    /// Keeps the `count` largest.
    pub(crate) fn new(count: usize) -> Self {
        LargestTransactions { count, heap: BinaryHeap::new() }
    }

    #[inline]
    pub(crate) fn show(&mut self, transaction: LargeTransaction) {
        if self.heap.len() == self.count {
            match self.heap.peek() {
                Some(Reverse(smallest)) if *smallest < transaction => drop(self.heap.pop()),
                _ => return,
            }
        }
        self.heap.push(Reverse(transaction));
    }

    pub(crate) fn add(&mut self, other: &LargestTransactions) {
        for Reverse(transaction) in &other.heap {
            self.show(*transaction);
        }
    }

    /// Says that these transactions are of the file with this number.
    pub(crate) fn set_file(&mut self, file: usize) {
        let heap = std::mem::take(&mut self.heap);
        let of_file = |Reverse(transaction)| Reverse(LargeTransaction { file, ..transaction });
        self.heap = heap.into_iter().map(of_file).collect();
    }

    /// The largest first.
    pub(crate) fn largest_first(&self) -> Vec<LargeTransaction> {
        let mut all: Vec<_> = self.heap.iter().map(|Reverse(transaction)| *transaction).collect();
        all.sort_by(|a, b| b.cmp(a));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_kept_the_earlier_of_equals() {
        let mut largest = LargestTransactions::new(3);
        for (offset, size) in [(4, 10), (5, 30), (6, 20), (7, 10), (8, 40), (9, 20)] {
            let totals = Totals { uncompressed_bytes: size, ..Totals::default() };
            let transaction =
                LargeTransaction { file: 0, offset, id: None, commit_timestamp: None, totals, tables: 0 };
            largest.show(transaction);
        }
        let offsets: Vec<_> = largest.largest_first().iter().map(|transaction| transaction.offset).collect();
        assert_eq!(offsets, [8, 5, 6]);
    }
}
