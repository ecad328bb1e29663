//! One bit a column, the lowest bit of the first byte for the first column: which columns a row
//! image carries, which may be NULL, which are NULL in a row.

use std::{fmt, slice};

/// A borrowed bitmap. The bits after the last column are padding, which servers don't clear.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Bitmap<'a>(pub &'a [u8]);

impl Bitmap<'_> {
    /// Bytes of a bitmap with one bit for each of `count` columns.
    pub fn size(count: u64) -> u64 {
        count.div_ceil(8)
    }

    /// Whether the bit of a column, counted from 0, is set; `false` beyond the end.
    #[inline]
    pub fn is_set(&self, column: usize) -> bool {
        self.0.get(column / 8).is_some_and(|byte| byte >> (column % 8) & 1 == 1)
    }

    /// How many of the first `columns` bits are set.
    pub fn count(&self, columns: usize) -> usize {
        let whole = self.0.get(..columns / 8).unwrap_or(self.0);
        let ones: u32 = whole.iter().map(|byte| byte.count_ones()).sum();
        let rest = (columns / 8 * 8..columns).filter(|&column| self.is_set(column)).count();
        ones as usize + rest
    }
}

impl<'a> Bitmap<'a> {
    /// The bits one after the other, for callers that need all of them.
    #[inline]
    pub(crate) fn bits(self) -> Bits<'a> {
        Bits { bytes: self.0.iter(), left: END }
    }
}

/// After the last bit of a byte.
const END: u32 = 1;

/// Bits one after the other.
pub(crate) struct Bits<'a> {
    bytes: slice::Iter<'a, u8>,
    /// The bits of the current byte that are still to be read; above them one set bit, [`END`], marks where they end.
    left: u32,
}

impl Bits<'_> {
    /// Whether the next bit is set; `false` beyond the end.
    #[inline]
    pub(crate) fn next_is_set(&mut self) -> bool {
        if self.left == END {
            self.left = END << 8 | u32::from(self.bytes.next().copied().unwrap_or(0));
        }
        let is_set = self.left & 1 == 1;
        self.left >>= 1;
        is_set
    }
}

impl fmt::Debug for Bitmap<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bits ")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_counted_up_to_the_last_column() {
        let bitmap = Bitmap(&[0b1000_0001, 0b1111_1101]);
        assert!(bitmap.is_set(0) && bitmap.is_set(7) && bitmap.is_set(8) && !bitmap.is_set(9));
        assert!(!bitmap.is_set(16));
        assert_eq!(bitmap.count(0), 0);
        assert_eq!(bitmap.count(7), 1);
        assert_eq!(bitmap.count(10), 3);
        assert_eq!(bitmap.count(16), 9);
        assert_eq!(bitmap.count(1000), 9);
    }

    #[test]
    fn bits_one_after_the_other_are_those_of_the_columns() {
        let bitmap = Bitmap(&[0b1000_0001, 0b1111_1101, 0]);
        let mut bits = bitmap.bits();
        for column in 0..40 {
            assert_eq!(bits.next_is_set(), bitmap.is_set(column), "{column}");
        }
    }

    #[test]
    fn sizes_do_not_overflow() {
        assert_eq!([0, 1, 8, 9].map(Bitmap::size), [0, 1, 1, 2]);
        assert_eq!(Bitmap::size(u64::MAX), 1 << 61);
    }
}
