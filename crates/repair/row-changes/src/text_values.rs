//! Values as a row has them, from the texts in which servers write them; `None`: the column can't have the value as it is written,
//! it would be rounded, cut or read as something else.

use binlogz_binlog::row::{Date, DateTime, DecimalFormat, Fraction, Time, Timestamp};

/// The first bytes of a number, which has no more than these.
pub(crate) fn number_of(number: u64, size: usize) -> Option<Vec<u8>> {
    let bytes = number.to_le_bytes();
    let (bytes, rest) = bytes.split_at_checked(size)?;
    rest.iter().all(|byte| *byte == 0).then(|| bytes.to_vec())
}

pub(crate) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

pub(crate) fn is_zero(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    is_digits(whole)
        && is_digits(fraction)
        && whole.bytes().chain(fraction.bytes()).all(|digit| digit == b'0')
}

pub(crate) fn integer(text: &str, bits: u32, is_unsigned: bool) -> Option<Vec<u8>> {
    if !is_digits(text.strip_prefix('-').unwrap_or(text)) {
        return None;
    }
    let number: i128 = text.parse().ok()?;
    let range = match is_unsigned {
        true => 0..1_i128 << bits,
        false => -(1_i128 << (bits - 1))..1_i128 << (bits - 1),
    };
    let bytes = number.to_le_bytes();
    range.contains(&number).then(|| bytes.get(..bits as usize / 8).unwrap_or_default().to_vec())
}

/// See `binlogz_binlog::row::Decimal` for the bytes.
pub(crate) fn decimal(text: &str, format: DecimalFormat) -> Option<Vec<u8>> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    if !is_digits(whole) || !is_digits(fraction) || is_negative && is_zero(digits) {
        return None;
    }
    let digits = format.digits(whole, fraction.trim_end_matches('0'))?;
    Some(format.encode(is_negative, &digits))
}

pub(crate) fn year(text: &str) -> Option<Vec<u8>> {
    let year: u16 = text.parse().ok().filter(|_| text.len() == 4 && is_digits(text))?;
    match year {
        0 => Some(vec![0]),
        1901..=2155 => u8::try_from(year - 1900).ok().map(|year| vec![year]),
        _ => None,
    }
}

/// A number of exactly two digits, at most `max`.
fn two_digits(text: &str, max: u32) -> Option<u32> {
    text.parse().ok().filter(|number| text.len() == 2 && is_digits(text) && *number <= max)
}

/// `YYYY-MM-DD`.
fn parsed_date(text: &str) -> Option<Date> {
    let mut parts = text.split('-');
    let year = parts.next()?;
    let month = parts.next()?;
    let day = parts.next()?;
    let year_is_whole = year.len() == 4 && is_digits(year) && parts.next().is_none();
    let year = year.parse().ok().filter(|_| year_is_whole)?;
    Some(Date::new(year, two_digits(month, 12)? as u8, two_digits(day, 31)? as u8))
}

pub(crate) fn date(text: &str) -> Option<Vec<u8>> {
    parsed_date(text).map(Date::encode)
}

/// Seconds and the rest of one, of `hh:mm:ss[.fraction]`.
fn clock_parts(text: &str, hours_max: u32, fraction_digits: u8) -> Option<(u32, Fraction)> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = clock.split(':');
    let hours = parts.next()?;
    let minutes = parts.next()?;
    let seconds = parts.next()?;
    let hours_are_whole = is_digits(hours) && (2..=3).contains(&hours.len()) && parts.next().is_none();
    let hours: u32 = hours.parse().ok().filter(|hours| hours_are_whole && *hours <= hours_max)?;
    let seconds = hours * 3600 + two_digits(minutes, 59)? * 60 + two_digits(seconds, 59)?;
    let kept = fraction.trim_end_matches('0');
    let microseconds = format!("{kept:0<6}").parse().ok()?;
    let fits = is_digits(fraction) && kept.len() <= usize::from(fraction_digits);
    fits.then(|| (seconds, Fraction::of(microseconds, fraction_digits)))
}

pub(crate) fn time(text: &str, fraction_digits: u8) -> Option<Vec<u8>> {
    let (is_negative, clock) = match text.strip_prefix('-') {
        Some(clock) => (true, clock),
        None => (false, text),
    };
    let (seconds, fraction) = clock_parts(clock, 838, fraction_digits)?;
    Some(Time::of_seconds(is_negative, seconds, fraction).encode())
}

pub(crate) fn datetime(text: &str, fraction_digits: u8) -> Option<Vec<u8>> {
    let (day, clock) = text.split_once(' ').unwrap_or((text, "00:00:00"));
    let date = parsed_date(day)?;
    let (seconds, fraction) = clock_parts(clock, 23, fraction_digits)?;
    Some(DateTime::new(date, seconds, fraction).encode())
}

/// Of seconds since 1970, with a fraction or without.
pub(crate) fn timestamp(text: &str, fraction_digits: u8) -> Option<Vec<u8>> {
    let (seconds, part) = text.split_once('.').unwrap_or((text, "0"));
    let microseconds = format!("{part:0<6}").parse().ok().filter(|_| is_digits(part) && part.len() <= 6)?;
    let fraction = Fraction::of(microseconds, fraction_digits);
    Some(Timestamp::new(seconds.parse().ok().filter(|_| is_digits(seconds))?, fraction).encode())
}
