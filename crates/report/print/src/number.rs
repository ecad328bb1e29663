//! Numbers as C's `printf` writes them.

use std::io::Write as _;

use binlogz_binlog::row::text::{EIGHT_DIGITS_MAX, eight_digits, short_digits};

/// Appends the first `length` of `N` bytes: copying a fixed number and truncating is much faster than copying
/// a few bytes whose number is known only at run time.
#[inline]
pub(crate) fn push_front<const N: usize>(out: &mut Vec<u8>, bytes: &[u8; N], length: usize) {
    out.extend_from_slice(bytes);
    out.truncate(out.len() - N.saturating_sub(length));
}

/// Appends an unsigned number.
#[inline]
pub fn push_unsigned(out: &mut Vec<u8>, number: u64) {
    const LIMIT: u64 = EIGHT_DIGITS_MAX as u64 + 1;
    let high = number / LIMIT;
    let low = (number % LIMIT) as u32;
    if high == 0 {
        let (digits, count) = short_digits(low);
        return push_front(out, &digits, count);
    }
    push_unsigned(out, high);
    out.extend_from_slice(&eight_digits(low));
}

/// Appends a signed number.
#[inline]
pub fn push_signed(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    push_unsigned(out, number.unsigned_abs());
}

/// Appends a number as `%.*g` does: `precision` significant digits, no trailing zeros, an exponent below -4
/// and from `precision` on.
pub(crate) fn push_general(out: &mut Vec<u8>, number: f64, precision: usize) {
    if !number.is_finite() {
        return push_not_finite(out, number);
    }
    let rounded = RoundedDecimal::new(number, precision);
    let mut digits = rounded.digits();
    while let [rest @ .., b'0'] = digits {
        digits = rest;
    }
    if number.is_sign_negative() {
        out.push(b'-');
    }
    if !(-4..precision as i32).contains(&rounded.exponent) {
        push_mantissa(out, digits);
        return push_exponent(out, rounded.exponent);
    }
    if rounded.exponent < 0 {
        out.extend_from_slice(
            b"0.000".get(..1 + rounded.exponent.unsigned_abs() as usize).unwrap_or_default(),
        );
        return out.extend_from_slice(digits);
    }
    let integer_digits = rounded.exponent as usize + 1;
    match digits.split_at_checked(integer_digits) {
        Some((integer, [])) => out.extend_from_slice(integer),
        Some((integer, fraction)) => {
            out.extend_from_slice(integer);
            out.push(b'.');
            out.extend_from_slice(fraction);
        }
        None => {
            out.extend_from_slice(digits);
            out.resize(out.len() + integer_digits - digits.len(), b'0');
        }
    }
}

/// Appends a number as `%.*e` does: `decimals` digits after the point, an exponent of two or more digits.
pub(crate) fn push_scientific(out: &mut Vec<u8>, number: f64, decimals: usize) {
    if !number.is_finite() {
        return push_not_finite(out, number);
    }
    if number.is_sign_negative() {
        out.push(b'-');
    }
    let rounded = RoundedDecimal::new(number, decimals + 1);
    push_mantissa(out, rounded.digits());
    push_exponent(out, rounded.exponent);
}

/// The most digits asked for.
const PRECISION_MAX: usize = 20;
/// Digits found before the point (all of them), and after it: 20 significant ones, one to round by, and zeros
/// before them.
const INTEGER_DIGITS: usize = 24;
const FRACTION_DIGITS: usize = 40;
/// The most bits after the point: eight more digits must fit 128 bits, and a number of that many bits has at
/// most 14 zeros after the point.
const FRACTION_BITS_MAX: u32 = 100;

/// A finite number in decimal, correctly rounded, ties to the even digit: the first digit is before the
/// point.
struct RoundedDecimal {
    digits: [u8; PRECISION_MAX],
    precision: usize,
    exponent: i32,
}

impl RoundedDecimal {
    /// `precision`: significant digits, 1 to 20.
    fn new(number: f64, precision: usize) -> Self {
        Self::exact(number, precision).unwrap_or_else(|| Self::formatted(number, precision))
    }

    fn digits(&self) -> &[u8] {
        self.digits.get(..self.precision).unwrap_or_default()
    }

    /// Finds the digits in 128-bit numbers, which hold the doubles that people store; `None` for the very
    /// large and very small ones. This is ten times as fast as the standard library, whose short cut ends at
    /// 17 digits.
    fn exact(number: f64, precision: usize) -> Option<Self> {
        const MANTISSA_BITS: u32 = 52;
        const BIAS: u32 = 1023 + MANTISSA_BITS;
        let bits = number.to_bits();
        let mantissa = bits & ((1 << MANTISSA_BITS) - 1) | 1 << MANTISSA_BITS;
        // Zeros and subnormals have an exponent of 0, and far too many bits after the point.
        let exponent = (bits >> MANTISSA_BITS) as u32 & 0x7ff;
        let fraction_bits = BIAS.saturating_sub(exponent);
        let integer_bits = exponent.saturating_sub(BIAS);
        if fraction_bits > FRACTION_BITS_MAX || integer_bits > 63 - MANTISSA_BITS - 1 {
            return None;
        }
        let integer = (mantissa << integer_bits).checked_shr(fraction_bits).unwrap_or(0);
        let mask = (1u128 << fraction_bits) - 1;
        let mut fraction = u128::from(mantissa) & mask;

        let mut digits = [b'0'; INTEGER_DIGITS + FRACTION_DIGITS];
        let (eights, _) = digits.as_chunks_mut::<8>();
        let (integer_eights, fraction_eights) = eights.split_at_mut(INTEGER_DIGITS / 8);
        let mut rest = integer;
        for eight in integer_eights.iter_mut().rev() {
            *eight = eight_digits((rest % 100_000_000) as u32);
            rest /= 100_000_000;
        }
        for eight in fraction_eights {
            let product = fraction * 100_000_000;
            *eight = eight_digits((product >> fraction_bits) as u32);
            fraction = product & mask;
        }

        let first = digits.iter().position(|&digit| digit != b'0')?;
        let (wanted, behind) = digits.get(first..)?.split_at_checked(precision)?;
        let mut rounded = RoundedDecimal {
            digits: [b'0'; PRECISION_MAX],
            precision,
            exponent: INTEGER_DIGITS as i32 - 1 - first as i32,
        };
        rounded.digits.get_mut(..precision)?.copy_from_slice(wanted);
        let (&next, after) = behind.split_first()?;
        let more = fraction != 0 || after.iter().any(|&digit| digit != b'0');
        let odd = wanted.last().is_some_and(|digit| digit % 2 == 1);
        if next > b'5' || next == b'5' && (more || odd) {
            rounded.increment();
        }
        Some(rounded)
    }

    /// Adds one in the last place.
    fn increment(&mut self) {
        for digit in self.digits.iter_mut().take(self.precision).rev() {
            if *digit != b'9' {
                *digit += 1;
                return;
            }
            *digit = b'0';
        }
        // It was all nines.
        if let Some(first) = self.digits.first_mut() {
            *first = b'1';
        }
        self.exponent += 1;
    }

    /// Has the standard library find the digits.
    fn formatted(number: f64, precision: usize) -> Self {
        let text = format!("{:.*e}", precision - 1, number.abs());
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mut digits = [b'0'; PRECISION_MAX];
        for (slot, digit) in digits.iter_mut().zip(mantissa.bytes().filter(u8::is_ascii_digit)) {
            *slot = digit;
        }
        RoundedDecimal { digits, precision, exponent: exponent.parse().unwrap_or(0) }
    }
}

/// The first digit, a point and the others.
fn push_mantissa(out: &mut Vec<u8>, digits: &[u8]) {
    let Some((&first, others)) = digits.split_first() else { return out.push(b'0') };
    out.push(first);
    if !others.is_empty() {
        out.push(b'.');
        out.extend_from_slice(others);
    }
}

fn push_exponent(out: &mut Vec<u8>, exponent: i32) {
    let sign = if exponent < 0 { '-' } else { '+' };
    let written = write!(out, "e{sign}{:02}", exponent.unsigned_abs());
    debug_assert!(written.is_ok(), "a vector takes all that is written");
}

fn push_not_finite(out: &mut Vec<u8>, number: f64) {
    if number.is_sign_negative() {
        out.push(b'-');
    }
    out.extend_from_slice(if number.is_nan() { b"nan" } else { b"inf" });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(push: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        push(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integers() {
        for number in [0, 9, 10, 99, 100, 99_999_999, 100_000_000, 123_456_789_012, u64::MAX] {
            assert_eq!(text(|out| push_unsigned(out, number)), number.to_string());
        }
        for number in [i64::MIN, -1, 0, i64::MAX] {
            assert_eq!(text(|out| push_signed(out, number)), number.to_string());
        }
    }

    #[test]
    fn general_and_scientific() {
        // What C's printf gives for %.6g and %.20g.
        for (number, six, twenty) in [
            (0.0, "0", "0"),
            (-0.0, "-0", "-0"),
            (1.5, "1.5", "1.5"),
            (0.1, "0.1", "0.10000000000000000555"),
            (100_000.0, "100000", "100000"),
            (1e6, "1e+06", "1000000"),
            (999_999.5, "1e+06", "999999.5"),
            (0.0001, "0.0001", "0.00010000000000000000479"),
            (0.00001, "1e-05", "1.0000000000000000818e-05"),
            (1e20, "1e+20", "1e+20"),
            (123_456_789.123_456_79, "1.23457e+08", "123456789.12345679104"),
            (f64::MAX, "1.79769e+308", "1.7976931348623157081e+308"),
            (5e-324, "4.94066e-324", "4.9406564584124654418e-324"),
            (f64::INFINITY, "inf", "inf"),
            (f64::NEG_INFINITY, "-inf", "-inf"),
        ] {
            assert_eq!(text(|out| push_general(out, number, 6)), six);
            assert_eq!(text(|out| push_general(out, number, 20)), twenty);
        }
        assert_eq!(text(|out| push_scientific(out, -3e10, 5)), "-3.00000e+10");
        assert_eq!(text(|out| push_scientific(out, 0.1, 5)), "1.00000e-01");
    }

    #[test]
    fn short_cut_and_standard_library_agree() {
        let mut state = 1u64;
        let mut numbers = vec![0.5, 1.0, 9.5, 99.5, 0.1, 1e15, 1e23, 9e18, 1e-14, 5e-15];
        for exponent in -20..40 {
            for _ in 0..200 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                numbers.push((state >> 11) as f64 * 10f64.powi(exponent - 16));
                numbers.push((state >> 44) as f64 * 2f64.powi(exponent));
            }
        }
        let mut short_cuts = 0;
        for number in numbers {
            for precision in [1, 6, 17, 20] {
                let expected = RoundedDecimal::formatted(number, precision);
                let Some(found) = RoundedDecimal::exact(number, precision) else { continue };
                assert_eq!(
                    (found.digits(), found.exponent),
                    (expected.digits(), expected.exponent),
                    "{number:e}"
                );
                short_cuts += 1;
            }
        }
        assert!(short_cuts > 40_000, "{short_cuts}");
    }

    #[test]
    fn ties_go_to_the_even_digit() {
        // Exact halves after the last digit.
        assert_eq!(text(|out| push_general(out, 2.5, 1)), "2");
        assert_eq!(text(|out| push_general(out, 3.5, 1)), "4");
        assert_eq!(text(|out| push_general(out, 1_000_005.0, 6)), "1e+06");
        assert_eq!(text(|out| push_general(out, 1_000_015.0, 6)), "1.00002e+06");
    }
}
