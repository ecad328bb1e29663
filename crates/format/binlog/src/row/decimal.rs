//! DECIMAL as rows and binary JSON hold it (`bin2decimal` in the server).
//!
//! ```text
//! integer part: digits in front | groups of 9 digits      fraction: groups of 9 digits | digits after
//!
//! digits of a group  1 2 3 4 5 6 7 8 9
//! bytes, big-endian  1 1 2 2 3 3 4 4 4
//! ```
//!
//! The top bit of the first byte is the sign, set for numbers from 0 up; it is not part of the first
//! group. All bytes of a negative number are inverted.

use std::fmt;

use crate::error::{Error, Result};
use crate::row::temporal::big_endian;
use crate::row::text::ShortText;

const WHAT: &str = "decimal";
/// Digits of a whole group.
const GROUP_DIGITS: u8 = 9;
/// Bytes of a group by its digits.
const GROUP_SIZE: [u8; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/// The most digits that the server's decimals hold: nine groups. A column has 65 at most; a value in JSON
/// counts its first group whole, so one of 65 digits is stored as one of 66.
pub const PRECISION_MAX: u8 = 9 * GROUP_DIGITS;
/// The most digits after its point: 38 in MariaDB (`DECIMAL_MAX_SCALE`), 30 in MySQL.
pub(crate) const SCALE_MAX: u8 = 38;
/// Characters of the longest decimal: sign, a zero before the point, point and digits.
pub(crate) const DECIMAL_TEXT_MAX: usize = 3 + PRECISION_MAX as usize;

/// Digits in all and after the point, of a DECIMAL column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecimalFormat {
    precision: u8,
    scale: u8,
}

impl DecimalFormat {
    /// Checks the two numbers of `DECIMAL(precision, scale)`.
    pub fn new(precision: u8, scale: u8) -> Result<Self> {
        if !(1..=PRECISION_MAX).contains(&precision) {
            return Err(Error::invalid(WHAT, "precision", precision, "1 to 81"));
        }
        if scale > SCALE_MAX.min(precision) {
            return Err(Error::invalid(WHAT, "scale", scale, "at most 38 and at most the precision"));
        }
        Ok(DecimalFormat { precision, scale })
    }

    /// Digits in all.
    pub fn precision(self) -> u8 {
        self.precision
    }

    /// Digits after the point.
    pub fn scale(self) -> u8 {
        self.scale
    }

    /// Bytes of a value, at most 36.
    pub fn size(self) -> u8 {
        self.groups().map(group_size).sum()
    }

    /// The digits of a number as a value has them, those before the point and after it; `None`: it has more, or other characters.
    pub fn digits(self, whole: &str, fraction: &str) -> Option<Vec<u8>> {
        let [before, after] = [self.precision - self.scale, self.scale].map(usize::from);
        let whole = whole.trim_start_matches('0');
        if whole.len() > before || fraction.len() > after {
            return None;
        }
        // A width of 0 pads nothing.
        let text = format!("{whole:0>before$}{fraction:0<after$}");
        text.bytes().map(|byte| byte.is_ascii_digit().then(|| byte - b'0')).collect()
    }

    /// The bytes of a value with these digits, of which there are [`DecimalFormat::precision`].
    pub fn encode(self, is_negative: bool, digits: &[u8]) -> Vec<u8> {
        let mut rest = digits;
        let mut bytes = Vec::with_capacity(usize::from(self.size()));
        for count in self.groups() {
            let (group, after) = rest.split_at_checked(usize::from(count)).unwrap_or((rest, &[]));
            rest = after;
            let value = group.iter().fold(0, |value, digit| value * 10 + u64::from(*digit));
            bytes.extend(big_endian(value, usize::from(group_size(count))));
        }
        if let Some(first) = bytes.first_mut() {
            *first |= 0x80;
        }
        if is_negative {
            bytes.iter_mut().for_each(|byte| *byte = !*byte);
        }
        bytes
    }

    /// The digits of each group, in the order of their bytes. Empty groups are left out.
    fn groups(self) -> impl Iterator<Item = u8> {
        let integer = self.precision - self.scale;
        let whole = |digits: u8| std::iter::repeat_n(GROUP_DIGITS, usize::from(digits / GROUP_DIGITS));
        std::iter::once(integer % GROUP_DIGITS)
            .chain(whole(integer))
            .chain(whole(self.scale))
            .chain(std::iter::once(self.scale % GROUP_DIGITS))
            .filter(|&digits| digits > 0)
    }
}

/// A DECIMAL value, an exact number whose bytes were checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Decimal<'a> {
    bytes: &'a [u8],
    format: DecimalFormat,
}

impl<'a> Decimal<'a> {
    /// Takes the bytes of a value and checks its length and each group of digits.
    #[inline]
    pub fn new(bytes: &'a [u8], format: DecimalFormat) -> Result<Self> {
        if bytes.len() != usize::from(format.size()) {
            return Err(Error::invalid(WHAT, "size", bytes.len(), "the size that its digits need"));
        }
        let decimal = Decimal { bytes, format };
        for (digits, value) in decimal.groups() {
            if value >= 10u32.pow(u32::from(digits)) {
                return Err(Error::invalid(WHAT, "group of digits", value, "no more digits than it has"));
            }
        }
        Ok(decimal)
    }

    /// Whether it is below 0. A zero may carry the sign too.
    pub fn is_negative(self) -> bool {
        self.bytes.first().is_some_and(|byte| byte & 0x80 == 0)
    }

    /// Digits in all and after the point.
    pub fn format(self) -> DecimalFormat {
        self.format
    }

    /// The number without its point: 12.34 is 1234; `None`: it takes more than 128 bits.
    pub fn unscaled(self) -> Option<i128> {
        let digits = self.groups().try_fold(0i128, |number, (digits, value)| {
            number.checked_mul(i128::from(10u32.pow(u32::from(digits))))?.checked_add(i128::from(value))
        })?;
        Some(if self.is_negative() { -digits } else { digits })
    }

    /// The numbers of values that stand one after the other, without their points; `None`: one takes more than 128 bits.
    ///
    /// # Errors
    ///
    /// The errors of [`Decimal::new`].
    pub fn unscaled_each(values: &'a [u8], format: DecimalFormat) -> Result<Option<Vec<i128>>> {
        let size = usize::from(format.size());
        let small = SmallFormat::new(format);
        let mut numbers = Vec::with_capacity(values.len() / size);
        let mut left = values;
        while !left.is_empty() {
            let (bytes, after) = left.split_at_checked(size).unwrap_or((left, &[]));
            match small.as_ref().and_then(|small| small.unscaled(left)) {
                Some(number) => numbers.push(number.into()),
                None => match Decimal::new(bytes, format)?.unscaled() {
                    Some(number) => numbers.push(number),
                    None => return Ok(None),
                },
            }
            left = after;
        }
        Ok(Some(numbers))
    }

    /// The number as the server prints it: all digits after the point, no leading zeros.
    pub fn text(self) -> ShortText<DECIMAL_TEXT_MAX> {
        let mut text = ShortText::new();
        if self.is_negative() {
            text.push(b'-');
        }
        let mut integer_digits = self.format.precision - self.format.scale;
        let mut leading = true;
        let mut point = false;
        for (digits, value) in self.groups() {
            if let Some(left) = integer_digits.checked_sub(digits) {
                integer_digits = left;
                if !leading {
                    text.push_padded(value, usize::from(digits));
                } else if value > 0 {
                    text.push_padded(value, 1);
                    leading = false;
                }
                continue;
            }
            if !point {
                point = true;
                if leading {
                    text.push(b'0');
                }
                text.push(b'.');
            }
            text.push_padded(value, usize::from(digits));
        }
        if leading && !point {
            text.push(b'0');
        }
        text
    }

    /// The value of each group of digits, sign taken off.
    #[inline]
    fn groups(self) -> impl Iterator<Item = (u8, u32)> {
        let inverted = if self.is_negative() { 0xff } else { 0 };
        let mut rest = self.bytes;
        // The sign bit is set in what is left of a number from 0 up, whichever way it was stored.
        let mut sign = 0x80;
        self.format.groups().map(move |digits| {
            let (group, after) =
                rest.split_at_checked(usize::from(group_size(digits))).unwrap_or((rest, &[]));
            rest = after;
            let value = group.iter().fold(0, |value, &byte| {
                let byte = byte ^ inverted ^ std::mem::take(&mut sign);
                value << 8 | u32::from(byte)
            });
            (digits, value)
        })
    }
}

/// A format of at most 8 bytes, which are at most 18 digits: its values are taken as numbers of 64 bits.
#[derive(Debug)]
struct SmallFormat {
    size: usize,
    groups: Vec<Group>,
}

/// A group of digits, as bits of such a number.
#[derive(Debug)]
struct Group {
    /// Bits after it.
    shift: u32,
    mask: u64,
    /// 1 more than its largest value.
    end: u64,
}

impl SmallFormat {
    fn new(format: DecimalFormat) -> Option<Self> {
        let size = usize::from(format.size());
        let mut shift = 8 * u32::from(format.size());
        let groups = format.groups().map(|digits| {
            let bits = 8 * u32::from(group_size(digits));
            shift -= bits;
            Group { shift, mask: (1 << bits) - 1, end: 10u64.pow(digits.into()) }
        });
        (size <= size_of::<u64>()).then(|| SmallFormat { size, groups: groups.collect() })
    }

    /// The number of the value with which these bytes begin; `None`: they are too few, or it has a group of too many digits.
    #[inline]
    fn unscaled(&self, bytes: &[u8]) -> Option<i64> {
        let bits = 8 * self.size as u32;
        let value = match bytes.first_chunk() {
            Some(bytes) => u64::from_le_bytes(*bytes).swap_bytes() >> (u64::BITS - bits),
            None => bytes.get(..self.size)?.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)),
        };
        let sign = 1 << (bits - 1);
        let is_negative = value & sign == 0;
        let value = if is_negative { !value } else { value } ^ sign;
        let mut number = 0;
        for group in &self.groups {
            let of_group = value >> group.shift & group.mask;
            if of_group >= group.end {
                return None;
            }
            number = number * group.end as i64 + of_group as i64;
        }
        Some(if is_negative { -number } else { number })
    }
}

impl fmt::Display for Decimal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.text(), f)
    }
}

impl fmt::Debug for Decimal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn group_size(digits: u8) -> u8 {
    GROUP_SIZE.get(usize::from(digits)).copied().unwrap_or(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(precision: u8, scale: u8, bytes: &[u8]) -> String {
        Decimal::new(bytes, DecimalFormat::new(precision, scale).unwrap()).unwrap().to_string()
    }

    #[test]
    fn values_are_written_as_they_are_read() {
        for (precision, scale, whole, fraction) in [
            (1, 0, "7", ""),
            (1, 1, "", "7"),
            (4, 2, "12", "34"),
            (10, 0, "1234567890", ""),
            (18, 9, "123456789", "987654321"),
            (65, 30, "12345678901234567890123456789012345", "123456789012345678901234567890"),
            (31, 1, "123456789012345678901234567890", "5"),
        ] {
            let format = DecimalFormat::new(precision, scale).unwrap();
            let digits = format.digits(whole, fraction).unwrap();
            for (is_negative, sign) in [(false, ""), (true, "-")] {
                let shown = text(precision, scale, &format.encode(is_negative, &digits));
                let point = if scale > 0 { "." } else { "" };
                let whole = if whole.is_empty() { "0" } else { whole };
                assert_eq!(shown, format!("{sign}{whole}{point}{fraction}"));
            }
        }
        let format = DecimalFormat::new(4, 2).unwrap();
        assert_eq!(format.digits("0012", "3"), Some(vec![1, 2, 3, 0]));
        assert_eq!(
            (format.digits("123", ""), format.digits("1", "234"), format.digits("x", "")),
            (None, None, None)
        );
    }

    #[test]
    fn sizes_are_the_servers() {
        for (precision, scale, size) in
            [(1, 0, 1), (10, 0, 5), (10, 2, 5), (20, 5, 10), (65, 30, 30), (30, 30, 14), (18, 9, 8)]
        {
            assert_eq!(DecimalFormat::new(precision, scale).unwrap().size(), size);
        }
    }

    #[test]
    fn numbers_print_as_the_server_prints_them() {
        // The example of the server's own comment: 1234567890.1234 and its negative.
        assert_eq!(text(14, 4, &[0x81, 0x0d, 0xfb, 0x38, 0xd2, 0x04, 0xd2]), "1234567890.1234");
        assert_eq!(text(14, 4, &[0x7e, 0xf2, 0x04, 0xc7, 0x2d, 0xfb, 0x2d]), "-1234567890.1234");
        assert_eq!(text(10, 0, &[0x80, 0, 0, 0, 0]), "0");
        assert_eq!(text(10, 0, &[0x80, 0, 0, 0, 5]), "5");
        assert_eq!(text(10, 0, &[0x7f, 0xff, 0xff, 0xff, 0xfa]), "-5");
        assert_eq!(text(4, 2, &[0x80, 0x07]), "0.07");
        assert_eq!(text(2, 2, &[0x80 | 7]), "0.07");
        assert_eq!(text(2, 2, &[0x7f]), "-0.00");
        assert_eq!(text(19, 0, &[0x80 | 1, 0, 0, 0, 0, 0, 0, 0, 2]), "1000000000000000002");
    }

    #[test]
    fn numbers_without_their_point() {
        let unscaled = |precision: u8, scale: u8, bytes: &[u8]| {
            Decimal::new(bytes, DecimalFormat::new(precision, scale).unwrap()).unwrap().unscaled()
        };
        let positive = [0x81, 0x0d, 0xfb, 0x38, 0xd2, 0x04, 0xd2];
        assert_eq!(unscaled(14, 4, &positive), Some(12_345_678_901_234));
        assert_eq!(unscaled(14, 4, &positive.map(|byte| !byte)), Some(-12_345_678_901_234));
        assert_eq!(unscaled(2, 2, &[0x7f]), Some(0));

        // 38 nines are the most of one length that 128 bits hold.
        let nine = b"\x3b\x9a\xc9\xff";
        let widest = [&[0x80 | 99][..], nine, nine, nine, nine].concat();
        assert_eq!(unscaled(38, 0, &widest), Some(10i128.pow(38) - 1));
        let wider = [&b"\x83\xe7"[..], nine, nine, nine, nine].concat();
        assert_eq!(unscaled(39, 0, &wider), None);
    }

    #[test]
    fn many_numbers_are_read_as_one_is() {
        let mut state = 7u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        for (precision, scale) in
            [(1, 0), (2, 2), (10, 2), (9, 9), (18, 0), (18, 9), (17, 5), (20, 4), (40, 10)]
        {
            let format = DecimalFormat::new(precision, scale).unwrap();
            let mut good = 0;
            let mut all = (Vec::new(), Vec::new());
            for round in 0..2000 {
                // Small groups, so that many are numbers.
                let byte = |_| if round % 2 == 0 { next() as u8 } else { next() as u8 & next() as u8 & 0x83 };
                let bytes: Vec<u8> = (0..usize::from(format.size())).map(byte).collect();
                let one = Decimal::new(&bytes, format).map(Decimal::unscaled);
                let each = Decimal::unscaled_each(&bytes, format);
                assert_eq!(each.ok(), one.as_ref().ok().map(|one| one.map(|one| vec![one])), "{bytes:?}");
                if let Ok(Some(one)) = one {
                    good += 1;
                    all.0.extend(bytes);
                    all.1.push(one);
                }
            }
            assert!(good > 20, "{good} of {precision},{scale}");
            assert_eq!(Decimal::unscaled_each(&all.0, format).unwrap(), Some(all.1));
            all.0.pop();
            let is_cut = format.size() > 1;
            assert_eq!(Decimal::unscaled_each(&all.0, format).is_err(), is_cut, "{precision},{scale}");
        }
    }

    #[test]
    fn the_widest_number_fits_its_text() {
        // 35 nines, a point and 30 nines, below zero.
        let nine = b"\x3b\x9a\xc9\xff";
        let groups = [&b"\x05\xf5\xe0\xff"[..], nine, nine, nine, nine, nine, nine, b"\x03\xe7"];
        let mut bytes: Vec<u8> = groups.concat().iter().map(|byte| !byte).collect();
        bytes[0] ^= 0x80;
        let expected = format!("-{}.{}", "9".repeat(35), "9".repeat(30));
        assert_eq!(text(65, 30, &bytes), expected);
        assert_eq!(text(66, 30, &bytes), expected);
    }

    #[test]
    fn bytes_that_are_no_decimal_are_refused() {
        let format = DecimalFormat::new(10, 2).unwrap();
        assert!(Decimal::new(&[0x80, 0, 0, 0], format).is_err());
        assert!(Decimal::new(&[0x80, 0, 0, 0, 0, 0], format).is_err());
        // 100 in two digits, 1,000,000,000 in nine.
        assert!(Decimal::new(&[0x80, 0, 0, 0, 100], format).is_err());
        let whole = DecimalFormat::new(18, 0).unwrap();
        assert!(Decimal::new(&[0x80, 0, 0, 0, 0x3b, 0x9a, 0xca, 0x00], whole).is_err());
        for (precision, scale) in [(0, 0), (82, 0), (40, 39), (5, 6)] {
            assert!(DecimalFormat::new(precision, scale).is_err(), "{precision},{scale}");
        }
    }
}
