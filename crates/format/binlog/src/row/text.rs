//! A short ASCII text on the stack, so that decimals and times are written without allocating.

use std::fmt;

/// At most `N` bytes of ASCII.
#[derive(Clone, Copy)]
pub struct ShortText<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> ShortText<N> {
    pub(crate) fn new() -> Self {
        ShortText { bytes: [0; N], length: 0 }
    }

    /// The text's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// Appends one ASCII character. `N` is chosen so that every text of the type fits.
    #[inline]
    pub(crate) fn push(&mut self, character: u8) {
        debug_assert!(character.is_ascii() && self.length < N, "a short text is ASCII and fits");
        if let Some(slot) = self.bytes.get_mut(self.length) {
            *slot = character;
            self.length += 1;
        }
    }

    /// Appends a number of characters known at compile time: one store.
    #[inline]
    pub(crate) fn push_array<const M: usize>(&mut self, characters: &[u8; M]) {
        let room = self.bytes.get_mut(self.length..).and_then(|rest| rest.first_chunk_mut());
        debug_assert!(characters.is_ascii() && room.is_some(), "a short text is ASCII and fits");
        if let Some(slots) = room {
            *slots = *characters;
            self.length += M;
        }
    }

    /// Appends a number in at least `width` digits, padded with zeros on the left.
    #[inline]
    pub(crate) fn push_padded(&mut self, value: u32, width: usize) {
        let low_width = match value.checked_div(EIGHT_DIGITS_MAX + 1) {
            Some(0) | None if width <= 8 => width,
            high => {
                self.push_padded(high.unwrap_or(0), width.saturating_sub(8));
                8
            }
        };
        let digits = eight_digits(value % (EIGHT_DIGITS_MAX + 1));
        let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
        for &digit in digits.iter().skip(zeros.min(8 - low_width.max(1))) {
            self.push(digit);
        }
    }

    /// Appends the `digits` leading ones of the six digits of a fraction of a second, after a
    /// point; nothing for no digits.
    #[inline]
    pub(crate) fn push_fraction(&mut self, microseconds: u32, digits: u8) {
        if digits > 0 {
            self.push(b'.');
            let [_, _, fraction @ ..] = eight_digits(microseconds);
            fraction.iter().take(usize::from(digits)).for_each(|&digit| self.push(digit));
        }
    }
}

/// The largest number that [`eight_digits`] takes.
pub const EIGHT_DIGITS_MAX: u32 = 99_999_999;

/// A number below 100,000,000 in eight decimal digits.
///
/// All digits are computed at once, in the lanes of one word: first two numbers of four digits, then four of
/// two, then eight of one. A division by a constant is a multiplication and a shift, exact for numbers as
/// small as these. This is three times as fast as digit by digit, and printing rows spends much of its time
/// here.
#[inline]
pub fn eight_digits(value: u32) -> [u8; 8] {
    debug_assert!(value <= EIGHT_DIGITS_MAX, "eight digits hold it");
    let high = u64::from(value / 10_000);
    let low = u64::from(value % 10_000);
    let fours = high | low << 32;
    let hundreds = (fours * 10_486) >> 20 & 0x0000_007f_0000_007f;
    let twos = hundreds | (fours - 100 * hundreds) << 16;
    let tens = (twos * 103) >> 10 & 0x000f_000f_000f_000f;
    let ones = tens | (twos - 10 * tens) << 8;
    (ones | 0x3030_3030_3030_3030).to_le_bytes()
}

/// A number below 100,000,000 without leading zeros: the digits, and how many. The bytes after them are
/// unspecified.
#[inline(always)]
pub fn short_digits(value: u32) -> ([u8; 8], usize) {
    let count = digit_count(value).min(8);
    // Digits are in byte order; leading zeros are shifted out.
    let digits = u64::from_le_bytes(eight_digits(value)) >> (8 * (8 - count));
    (digits.to_le_bytes(), count)
}

/// How many digits a number has, without computing them: the writer then knows at once where the next byte
/// goes.
#[inline(always)]
fn digit_count(value: u32) -> usize {
    let highest = (value | 1).ilog2() as usize;
    let count = DIGIT_COUNTS.get(highest).copied().unwrap_or(0);
    ((count + u64::from(value)) >> 32) as usize
}

/// Indexed by the number's highest bit: added to the number, it puts the count of digits in the upper half.
const DIGIT_COUNTS: [u64; 32] = {
    let mut counts = [0; 32];
    let mut smallest = 1;
    let mut digits = 1;
    let mut limit = 10;
    let mut rest = counts.as_mut_slice();
    while let Some((count, others)) = rest.split_first_mut() {
        if limit <= smallest {
            digits += 1;
            limit *= 10;
        }
        // One more from the limit on.
        *count = ((digits + 1) << 32) - limit;
        (smallest, rest) = (smallest << 1, others);
    }
    counts
};

/// The digits of the numbers below 100.
const TWO_DIGITS: [u16; 100] = {
    let mut pairs = [0; 100];
    let mut number = 0;
    let mut rest = pairs.as_mut_slice();
    while let Some((pair, others)) = rest.split_first_mut() {
        *pair = u16::from_le_bytes([b'0' + number / 10, b'0' + number % 10]);
        (number, rest) = (number + 1, others);
    }
    pairs
};

/// A number below 100 in two decimal digits, the first one in the lower byte.
#[inline]
pub(crate) fn two_digits(value: u8) -> u16 {
    debug_assert!(value < 100, "two digits hold it");
    TWO_DIGITS.get(usize::from(value)).copied().unwrap_or(0)
}

impl<const N: usize> fmt::Write for ShortText<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(|character| self.push(character));
        Ok(())
    }
}

impl<const N: usize> fmt::Display for ShortText<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<const N: usize> fmt::Debug for ShortText<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_padded_and_never_cut() {
        for (value, width, expected) in [
            (7, 2, "07"),
            (0, 1, "0"),
            (0, 0, "0"),
            (12345, 4, "12345"),
            (u32::MAX, 2, "4294967295"),
            (999_999_999, 9, "999999999"),
            (5, 9, "000000005"),
            (100_000_000, 1, "100000000"),
        ] {
            let mut text = ShortText::<16>::new();
            text.push_padded(value, width);
            assert_eq!(text.as_str(), expected);
        }
    }

    #[test]
    fn eight_digits_are_right() {
        let some = (0..=EIGHT_DIGITS_MAX).step_by(9973);
        for value in some.chain([0, 9, 10, 99, 100, 9999, 10_000, 99_999_999]) {
            assert_eq!(eight_digits(value), format!("{value:08}").as_bytes());
        }
        let tens = (0..8).map(|zeros| 10u32.pow(zeros));
        let bits = (0..27).map(|bit| 1 << bit);
        for value in tens.chain(bits).flat_map(|edge| edge - 1..=edge + 1) {
            let (digits, count) = short_digits(value);
            assert_eq!(digits.get(..count), Some(value.to_string().as_bytes()));
        }
        for value in 0..100 {
            assert_eq!(two_digits(value).to_le_bytes(), format!("{value:02}").as_bytes());
        }
    }

    #[test]
    fn fractions_are_cut_to_their_digits() {
        for (digits, expected) in [(0, ""), (1, ".0"), (2, ".01"), (6, ".012345")] {
            let mut text = ShortText::<16>::new();
            text.push_fraction(12_345, digits);
            assert_eq!(text.as_str(), expected);
        }
    }
}
