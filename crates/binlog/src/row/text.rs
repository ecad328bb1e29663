//! A short ASCII text on the stack: how decimals and times write themselves without allocating.

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

    /// Appends one ASCII character. `N` is chosen so that all a type has to say fits.
    #[inline]
    pub(crate) fn push(&mut self, character: u8) {
        debug_assert!(character.is_ascii() && self.length < N, "a short text is ASCII and fits");
        if let Some(slot) = self.bytes.get_mut(self.length) {
            *slot = character;
            self.length += 1;
        }
    }

    /// Appends a number in at least `width` digits, padded with zeros on the left.
    #[inline]
    pub(crate) fn push_padded(&mut self, value: u32, width: usize) {
        let mut digits = [b'0'; 10];
        let mut rest = value;
        let mut used = 0;
        for slot in digits.iter_mut().rev() {
            *slot = b'0' + (rest % 10) as u8;
            rest /= 10;
            used += 1;
            if rest == 0 && used >= width {
                break;
            }
        }
        for &digit in digits.iter().skip(digits.len() - used) {
            self.push(digit);
        }
    }

    /// Appends the `digits` leading ones of the six digits of a fraction of a second, behind a
    /// point; nothing for no digits.
    #[inline]
    pub(crate) fn push_fraction(&mut self, microseconds: u32, digits: u8) {
        if digits > 0 {
            let dropped = 6u32.saturating_sub(u32::from(digits));
            self.push(b'.');
            self.push_padded(microseconds / 10u32.pow(dropped), usize::from(digits));
        }
    }
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
        for (value, width, expected) in
            [(7, 2, "07"), (0, 1, "0"), (0, 0, "0"), (12345, 4, "12345"), (u32::MAX, 2, "4294967295")]
        {
            let mut text = ShortText::<16>::new();
            text.push_padded(value, width);
            assert_eq!(text.as_str(), expected);
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
