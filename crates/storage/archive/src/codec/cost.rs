//! What a code costs: its bytes, and the time that it takes to pack them, to verify them and to give them back once. A level says how many
//! nanoseconds a byte may cost; the cheapest of several codes is taken.
//!
//! Times are constants, measured once (lab/book/archive.md, *What a coder costs*), and never those of the clock: the same input gives the same
//! bytes on every machine.

use crate::codec::Level;

/// Nanoseconds that a byte less may cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Price(u64);

/// A level of 4,000 leaves texts to PPMd, which takes 500 to 1,000 for each byte that it saves there, and takes from it what costs more:
/// on binary numbers it is 5,000 and up.
const PRICE_FAST: u64 = 500;
const PRICE_DEFAULT: u64 = 4000;

impl Price {
    /// `None`: time costs nothing.
    pub(crate) fn of(level: Level) -> Option<Price> {
        match level {
            Level::Fast => Some(Price(PRICE_FAST)),
            Level::Default => Some(Price(PRICE_DEFAULT)),
            Level::Max => None,
        }
    }

    /// The cost of a code of `packed` bytes for `size` bytes, in nanoseconds.
    pub(crate) fn cost(self, time: CodeTime, size: usize, packed: usize) -> u64 {
        let (size, packed) = (size as u64, packed as u64);
        let by_ratio = packed.saturating_mul(time.packed_byte_by_ratio) / size.max(1);
        let packed_byte = self.0 + time.packed_byte + by_ratio;
        time.start + size.saturating_mul(time.byte) + packed.saturating_mul(packed_byte)
    }
}

/// The time of a coder, in nanoseconds: to pack once and to unpack twice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CodeTime {
    /// Whatever the size: tables and models.
    start: u64,
    /// For each byte.
    byte: u64,
    /// For each byte of the code.
    packed_byte: u64,
    /// The same, times the code's share of the bytes: what is hard to predict misses the caches, too.
    packed_byte_by_ratio: u64,
}

impl CodeTime {
    /// zstd, level 3.
    pub(crate) const ZSTD_QUICK: CodeTime =
        CodeTime { start: 5_000, byte: 5, packed_byte: 0, packed_byte_by_ratio: 0 };
    /// zstd, level 9, or 12 of few bytes.
    pub(crate) const ZSTD_MEDIUM: CodeTime =
        CodeTime { start: 5_000, byte: 20, packed_byte: 0, packed_byte_by_ratio: 0 };
    /// PPMd of order 5.
    pub(crate) const PPMD: CodeTime =
        CodeTime { start: 30_000, byte: 0, packed_byte: 350, packed_byte_by_ratio: 2400 };
    /// PPMd of order 3 over phrases, and of order 2.
    pub(crate) const PPMD_PHRASES: CodeTime =
        CodeTime { start: 200_000, byte: 6, packed_byte: 370, packed_byte_by_ratio: 0 };
    pub(crate) const PPMD_PHRASES_QUICK: CodeTime =
        CodeTime { start: 200_000, byte: 6, packed_byte: 240, packed_byte_by_ratio: 0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes of a million bytes that were measured: zstd's and PPMd's of an audit line, a chat, and positions.
    #[test]
    fn texts_are_worth_their_time_and_positions_are_not() {
        let price = Price::of(Level::Default).unwrap();
        let fast = Price::of(Level::Fast).unwrap();
        for (by_zstd, by_ppmd, is_worth_it) in
            [(176_000, 116_000, true), (259_000, 153_000, true), (406_000, 352_000, false)]
        {
            let zstd = price.cost(CodeTime::ZSTD_MEDIUM, 1_000_000, by_zstd);
            let ppmd = price.cost(CodeTime::PPMD, 1_000_000, by_ppmd);
            assert_eq!(ppmd < zstd, is_worth_it, "{by_zstd} {by_ppmd}: {zstd} {ppmd}");
            let zstd = fast.cost(CodeTime::ZSTD_MEDIUM, 1_000_000, by_zstd);
            assert!(zstd < fast.cost(CodeTime::PPMD, 1_000_000, by_ppmd));
        }
        // A model takes its time to begin.
        assert!(price.cost(CodeTime::PPMD, 100, 60) > price.cost(CodeTime::ZSTD_MEDIUM, 100, 64));
        assert!(Price::of(Level::Max).is_none());
    }
}
