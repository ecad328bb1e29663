//! Doubles as the server writes them into JSON: the fewest digits that read back as the same number,
//! with a point or an exponent so that they stay doubles. (`my_gcvt` in the server's `dtoa.cc`.)

use std::fmt::Write as _;

use crate::row::text::ShortText;

/// Characters of the longest text.
pub(crate) const DOUBLE_TEXT_MAX: usize = 40;
/// The server's limit for digits before the point (and zeros after it) without exponent.
const PLAIN_DIGITS_MAX: i32 = 15;

/// A finite number as text.
pub(crate) fn double_text(number: f64) -> ShortText<DOUBLE_TEXT_MAX> {
    // Rust's shortest form, d.ddde-x, has the digits and the exponent wanted here.
    let mut scientific = ShortText::<DOUBLE_TEXT_MAX>::new();
    let written = write!(scientific, "{:e}", number.abs());
    debug_assert!(written.is_ok(), "a double has at most 17 digits");
    let (mantissa, exponent) = scientific.as_str().split_once('e').unwrap_or(("0", "0"));
    let mut digits = mantissa.bytes().filter(u8::is_ascii_digit);
    let count = digits.clone().count() as i32;
    // Digits before the point if written without exponent; 0 or below: zeros after it.
    let point = exponent.parse::<i32>().unwrap_or(0) + 1;

    let mut text = ShortText::new();
    if number.is_sign_negative() {
        text.push(b'-');
    }
    let plain = point > -PLAIN_DIGITS_MAX && (point <= PLAIN_DIGITS_MAX || count > point);
    if !plain {
        for part in [mantissa, "e", exponent] {
            part.bytes().for_each(|byte| text.push(byte));
        }
        return text;
    }
    if point <= 0 {
        text.push(b'0');
    }
    for _ in 0..point {
        text.push(digits.next().unwrap_or(b'0'));
    }
    text.push(b'.');
    for _ in point..0 {
        text.push(b'0');
    }
    if count <= point {
        text.push(b'0');
    }
    digits.for_each(|digit| text.push(digit));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_as_the_server_prints_them() {
        // Read off MySQL 9.7.4: SELECT CAST(CAST('…' AS DOUBLE) AS JSON).
        for (number, expected) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1.5, "-1.5"),
            (0.1, "0.1"),
            (1e15, "1e15"),
            (123456789012345.0, "123456789012345.0"),
            (1e14, "100000000000000.0"),
            (1.5e16, "1.5e16"),
            (1234567890123456.7, "1234567890123456.8"),
            (12345678901234567.0, "1.2345678901234568e16"),
            (1e22, "1e22"),
            (1e-5, "0.00001"),
            (1.234e-5, "0.00001234"),
            (1e-14, "0.00000000000001"),
            (1e-15, "0.000000000000001"),
            (1e-16, "1e-16"),
            (1.2345678901234567e-15, "0.0000000000000012345678901234568"),
            (1e100, "1e100"),
            (1e-300, "1e-300"),
            (f64::MAX, "1.7976931348623157e308"),
            (-f64::MAX, "-1.7976931348623157e308"),
            (5e-324, "5e-324"),
            (f64::from(0.1f32), "0.10000000149011612"),
        ] {
            assert_eq!(double_text(number).as_str(), expected);
        }
    }
}
