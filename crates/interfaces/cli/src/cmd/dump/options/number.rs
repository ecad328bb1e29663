//! Numbers as MySQL's options take them: `12`, `-1`, `16K`, `5G`; a number out of range is clamped.

use std::ops::RangeInclusive;

use super::{ERROR, WARNING};

/// The range of a number.
#[derive(Debug, Clone)]
pub(super) struct UnsignedLimits {
    pub(super) range: RangeInclusive<u64>,
    /// Numbers are rounded down to multiples of this.
    pub(super) block: u64,
}

/// Reads a number without a sign. Warnings are added to `told`, as `(level, text)`; `Err`: no number.
pub(super) fn unsigned(
    name: &str,
    text: &str,
    limits: &UnsignedLimits,
    told: &mut Vec<(&'static str, String)>,
) -> Result<u64, ()> {
    let min = *limits.range.start();
    let max = *limits.range.end();
    if text.trim_ascii_start().starts_with('-') {
        told.push((WARNING, format!("option '{name}': value {text} adjusted to {min}.")));
        return Ok(min);
    }
    let read = scaled(name, text).and_then(|number| {
        u64::try_from(number).map_err(|_| format!("Incorrect unsigned integer value: '{text}'."))
    });
    let number = *read.as_ref().unwrap_or(&0);
    let adjusted = (number.min(max) / limits.block * limits.block).max(min);
    if let Err(problem) = &read {
        told.push((ERROR, problem.clone()));
    }
    if number > max || adjusted > number {
        told.push((WARNING, format!("option '{name}': unsigned value {number} adjusted to {adjusted}.")));
    }
    read.map(|_| adjusted).map_err(drop)
}

/// Reads a number that may have a sign; as [`unsigned`].
pub(super) fn signed(
    name: &str,
    text: &str,
    range: &RangeInclusive<i64>,
    told: &mut Vec<(&'static str, String)>,
) -> Result<i64, ()> {
    let read = scaled(name, text)
        .and_then(|number| i64::try_from(number).map_err(|_| format!("Incorrect integer value: '{text}'.")));
    let number = *read.as_ref().unwrap_or(&0);
    let adjusted = number.clamp(*range.start(), *range.end());
    if let Err(problem) = &read {
        told.push((ERROR, problem.clone()));
    }
    if number != adjusted {
        told.push((WARNING, format!("option '{name}': signed value {number} adjusted to {adjusted}.")));
    }
    read.map(|_| adjusted).map_err(drop)
}

/// Digits and perhaps a letter that scales them; the rest after the letter is ignored.
fn scaled(name: &str, text: &str) -> Result<i128, String> {
    let trimmed = text.trim_ascii_start();
    let (negative, digits) = match trimmed.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, trimmed.strip_prefix('+').unwrap_or(trimmed)),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let (digits, suffix) = digits.split_at(end);
    // Without digits, all of the text is the suffix.
    let suffix = if digits.is_empty() { text } else { suffix };
    let number = digits
        .bytes()
        .fold(0i128, |number, digit| number.saturating_mul(10).saturating_add(i128::from(digit - b'0')));
    let shift = match suffix.chars().next() {
        None => 0,
        Some('k' | 'K') => 10,
        Some('m' | 'M') => 20,
        Some('g' | 'G') => 30,
        Some('t' | 'T') => 40,
        Some('p' | 'P') => 50,
        Some('e' | 'E') => 60,
        Some(other) => {
            return Err(format!("Unknown suffix '{other}' used for variable '{name}' (value '{text}')."));
        }
    };
    let number = number.saturating_mul(1 << shift);
    Ok(if negative { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    const POSITION: UnsignedLimits = UnsignedLimits { range: 4..=u64::MAX, block: 1 };

    /// The number and all warnings, as mysqlbinlog 9.7.4 takes `--start-position=TEXT`.
    fn position(text: &str) -> (Option<u64>, Vec<String>) {
        let mut told = Vec::new();
        let number = unsigned("start-position", text, &POSITION, &mut told).ok();
        (number, told.into_iter().map(|(_, text)| text).collect())
    }

    #[test]
    fn letters_scale() {
        for (text, number) in [
            ("12", 12),
            (" 12", 12),
            ("+5", 5),
            ("1K", 1024),
            ("1kb", 1024),
            ("1e3", 1 << 60),
            ("1P", 1 << 50),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(position(text), (Some(number), vec![]), "{text}");
        }
    }

    #[test]
    fn what_is_out_of_range_is_moved_into_it() {
        let said = |text: &str| vec![text.to_owned()];
        let warning = said("option 'start-position': unsigned value 3 adjusted to 4.");
        assert_eq!(position("3"), (Some(4), warning));
        assert_eq!(position("-x"), (Some(4), said("option 'start-position': value -x adjusted to 4.")));
        let blocks = UnsignedLimits { range: 256..=u64::MAX, block: 256 };
        assert_eq!(unsigned("n", "1000", &blocks, &mut Vec::new()), Ok(768));
        let mut told = Vec::new();
        assert_eq!(signed("port", "99999999999", &(0..=i64::from(i32::MAX)), &mut told), Ok(2147483647));
        assert_eq!(told[0].1, "option 'port': signed value 99999999999 adjusted to 2147483647.");
    }

    #[test]
    fn what_is_no_number_is_refused() {
        let adjusted = "option 'start-position': unsigned value 0 adjusted to 4.";
        for (text, problem) in [
            ("abc", "Unknown suffix 'a' used for variable 'start-position' (value 'abc')."),
            ("0x10", "Unknown suffix 'x' used for variable 'start-position' (value '0x10')."),
            ("20E", "Incorrect unsigned integer value: '20E'."),
            ("18446744073709551616", "Incorrect unsigned integer value: '18446744073709551616'."),
        ] {
            assert_eq!(position(text), (None, vec![problem.to_owned(), adjusted.to_owned()]), "{text}");
        }
    }
}
