//! Values as a row has them, from the texts in which servers write them; `None`: the column can't have the value as it is written,
//! it would be rounded, cut or read as something else.

use binlogz_binlog::row::DecimalFormat;

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
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    let (scale, places) = (usize::from(format.scale()), usize::from(format.precision() - format.scale()));
    if whole.len() > places || fraction.len() > scale {
        return None;
    }
    let whole = format!("{whole:0>places$}");
    let fraction = format!("{fraction:0<scale$}");
    let mut bytes = Vec::new();
    let (first, groups) = whole.split_at_checked(places % DECIMAL_GROUP)?;
    let groups = [first].into_iter().chain(chunks(groups)).chain(chunks(&fraction));
    for group in groups.filter(|group| !group.is_empty()) {
        let size = *DECIMAL_GROUP_SIZE.get(group.len())?;
        bytes.extend(big_endian(group.parse().ok()?, size));
    }
    if is_negative {
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
    }
    *bytes.first_mut()? ^= 0x80;
    Some(bytes)
}

const DECIMAL_GROUP: usize = 9;
/// Bytes of a group by its digits.
const DECIMAL_GROUP_SIZE: [usize; DECIMAL_GROUP + 1] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/// Digits in groups; the last has the rest.
fn chunks(digits: &str) -> impl Iterator<Item = &str> {
    let count = digits.len().div_ceil(DECIMAL_GROUP);
    (0..count).filter_map(move |number| {
        let start = number * DECIMAL_GROUP;
        digits.get(start..digits.len().min(start + DECIMAL_GROUP))
    })
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

/// Year, month and day of `YYYY-MM-DD`.
fn date_parts(text: &str) -> Option<(u32, u32, u32)> {
    let mut parts = text.split('-');
    let year = parts.next()?;
    let month = parts.next()?;
    let day = parts.next()?;
    let year_is_whole = year.len() == 4 && is_digits(year) && parts.next().is_none();
    let year = year.parse().ok().filter(|_| year_is_whole)?;
    Some((year, two_digits(month, 12)?, two_digits(day, 31)?))
}

pub(crate) fn date(text: &str) -> Option<Vec<u8>> {
    let (year, month, day) = date_parts(text)?;
    number_of(u64::from(year << 9 | month << 5 | day), 3)
}

/// Hours, minutes and seconds packed, and microseconds, of `hh:mm:ss[.fraction]`.
fn clock_parts(text: &str, hours_max: u32, fraction_digits: u8) -> Option<(u64, u64)> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = clock.split(':');
    let hours = parts.next()?;
    let minutes = parts.next()?;
    let seconds = parts.next()?;
    let hours_are_whole = is_digits(hours) && (2..=3).contains(&hours.len()) && parts.next().is_none();
    let hours: u32 = hours.parse().ok().filter(|hours| hours_are_whole && *hours <= hours_max)?;
    let packed = hours << 12 | two_digits(minutes, 59)? << 6 | two_digits(seconds, 59)?;
    let kept = fraction.trim_end_matches('0');
    let microseconds: u64 = format!("{kept:0<6}").parse().ok()?;
    let fits = is_digits(fraction) && kept.len() <= usize::from(fraction_digits);
    fits.then_some((packed.into(), microseconds))
}

/// Bytes of a fraction of a second.
pub(crate) fn fraction_size(digits: u8) -> usize {
    usize::from(digits).div_ceil(2)
}

/// A fraction as its bytes have it: an even number of digits.
pub(crate) fn fraction(microseconds: u64, digits: u8) -> u64 {
    let left_out = 6 - 2 * fraction_size(digits) as u32;
    microseconds / 10_u64.pow(left_out)
}

/// The lowest bytes of a number, the highest of these first.
pub(crate) fn big_endian(number: u64, size: usize) -> Vec<u8> {
    (0..size).rev().map(|place| (number >> (8 * place)) as u8).collect()
}

pub(crate) fn time(text: &str, fraction_digits: u8) -> Option<Vec<u8>> {
    let (is_negative, clock) = match text.strip_prefix('-') {
        Some(clock) => (true, clock),
        None => (false, text),
    };
    let (packed, microseconds) = clock_parts(clock, 838, fraction_digits)?;
    let size = fraction_size(fraction_digits);
    let magnitude = (packed << (8 * size) | fraction(microseconds, fraction_digits)).cast_signed();
    let signed = if is_negative { -magnitude } else { magnitude };
    Some(big_endian((signed + (0x80_0000 << (8 * size))).cast_unsigned(), 3 + size))
}

pub(crate) fn datetime(text: &str, fraction_digits: u8) -> Option<Vec<u8>> {
    let (day, clock) = text.split_once(' ').unwrap_or((text, "00:00:00"));
    let (year, month, day) = date_parts(day)?;
    let (clock, microseconds) = clock_parts(clock, 23, fraction_digits)?;
    let packed = u64::from((year * 13 + month) << 5 | day) << 17 | clock;
    let mut bytes = big_endian(packed + 0x80_0000_0000, 5);
    bytes.extend(big_endian(fraction(microseconds, fraction_digits), fraction_size(fraction_digits)));
    Some(bytes)
}
