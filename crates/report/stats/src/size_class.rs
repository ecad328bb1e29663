//! Classes of transactions by size: each four times as large as the one before.

use crate::counts::Totals;

/// The end of the first class, in bytes.
const SMALLEST: u64 = 256;

/// The number of classes.
pub const CLASSES: usize = 13;

// The last class begins where an event can't be larger.
const _: () = assert!(SMALLEST << (2 * (CLASSES - 2)) == binlogz_binlog::EVENT_SIZE_MAX as u64);

/// Transactions by size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct BySize([Totals; CLASSES]);

/// The sizes of a class, in uncompressed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeClass {
    /// The smallest size.
    pub from: u64,
    /// The first larger size; the last class has none.
    pub to: Option<u64>,
}

impl SizeClass {
    /// The class of this number, counted from 0.
    pub const fn numbered(class: usize) -> Self {
        let from = if class == 0 { 0 } else { SMALLEST << (2 * (class - 1)) };
        let to = if class + 1 < CLASSES { Some(SMALLEST << (2 * class)) } else { None };
        SizeClass { from, to }
    }
}

impl BySize {
    pub(crate) fn count(&mut self, transaction: &Totals) {
        if let Some(totals) = self.0.get_mut(class_of(transaction.uncompressed_bytes)) {
            totals.add(transaction);
        }
    }

    pub(crate) fn add(&mut self, other: &BySize) {
        for (totals, other) in self.0.iter_mut().zip(&other.0) {
            totals.add(other);
        }
    }

    /// The classes that occurred.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SizeClass, &Totals)> {
        let classes = self.0.iter().enumerate().map(|(class, totals)| (SizeClass::numbered(class), totals));
        classes.filter(|(_, totals)| totals.transactions > 0)
    }
}

/// The number of the class that holds a size.
pub fn class_of(size: u64) -> usize {
    let doublings = (size / SMALLEST).checked_ilog2();
    doublings.map_or(0, |doublings| (doublings as usize / 2 + 1).min(CLASSES - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_in_the_class_whose_bounds_hold_it() {
        for size in [0, 1, 255, 256, 1023, 1024, 1025, 4095, 65_536, (1 << 30) - 1, 1 << 30, u64::MAX] {
            let mut by_size = BySize::default();
            by_size.count(&Totals { transactions: 1, uncompressed_bytes: size, ..Totals::default() });
            let (class, _) = by_size.iter().next().unwrap();
            assert!(class.from <= size && class.to.is_none_or(|to| size < to), "{size} in {class:?}");
        }
    }
}
