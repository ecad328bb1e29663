//! Numbers as C's `printf` writes them.

use std::io::Write as _;

use binlogz_binlog::row::text::{EIGHT_DIGITS_MAX, eight_digits};

/// Appends the first `length` of `N` bytes: copying a fixed number and cutting the end off again is
/// much faster than copying few bytes of a number known only now.
#[inline]
pub(super) fn push_front<const N: usize>(out: &mut Vec<u8>, bytes: &[u8; N], length: usize) {
    out.extend_from_slice(bytes);
    out.truncate(out.len() - N.saturating_sub(length));
}

/// Appends an unsigned number.
#[inline]
pub(super) fn push_unsigned(out: &mut Vec<u8>, number: u64) {
    const LIMIT: u64 = EIGHT_DIGITS_MAX as u64 + 1;
    if number < LIMIT {
        let digits = u64::from_le_bytes(eight_digits(number as u32));
        // Digits stand in the order of the bytes; those in front that are '0' go, but for the last.
        let zeros = ((digits ^ 0x3030_3030_3030_3030).trailing_zeros() / 8).min(7);
        push_front(out, &(digits >> (8 * zeros)).to_le_bytes(), 8 - zeros as usize);
    } else {
        push_unsigned(out, number / LIMIT);
        out.extend_from_slice(&eight_digits((number % LIMIT) as u32));
    }
}

/// Appends a signed number.
#[inline]
pub(super) fn push_signed(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    push_unsigned(out, number.unsigned_abs());
}

/// Appends a number as `%.*g` does: `precision` significant digits, no zeros behind the last, an
/// exponent below -4 and from `precision` on.
pub(super) fn push_general(out: &mut Vec<u8>, number: f64, precision: usize) {
    if !number.is_finite() {
        return push_not_finite(out, number);
    }
    let scientific = format!("{number:.*e}", precision - 1);
    let (mantissa, exponent) = split_exponent(&scientific);
    if (-4..precision as i32).contains(&exponent) {
        let decimals = (precision as i32 - 1 - exponent) as usize;
        out.extend_from_slice(without_zeros(&format!("{number:.decimals$}")).as_bytes());
    } else {
        out.extend_from_slice(without_zeros(mantissa).as_bytes());
        push_exponent(out, exponent);
    }
}

/// Appends a number as `%.*e` does: `decimals` digits behind the point, an exponent of two or more.
pub(super) fn push_scientific(out: &mut Vec<u8>, number: f64, decimals: usize) {
    if !number.is_finite() {
        return push_not_finite(out, number);
    }
    let scientific = format!("{number:.decimals$e}");
    let (mantissa, exponent) = split_exponent(&scientific);
    out.extend_from_slice(mantissa.as_bytes());
    push_exponent(out, exponent);
}

fn split_exponent(scientific: &str) -> (&str, i32) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    (mantissa, exponent.parse().unwrap_or(0))
}

fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
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
    fn ties_go_to_the_even_digit() {
        // Exact halves behind the last digit.
        assert_eq!(text(|out| push_general(out, 2.5, 1)), "2");
        assert_eq!(text(|out| push_general(out, 3.5, 1)), "4");
        assert_eq!(text(|out| push_general(out, 1_000_005.0, 6)), "1e+06");
        assert_eq!(text(|out| push_general(out, 1_000_015.0, 6)), "1.00002e+06");
    }
}
