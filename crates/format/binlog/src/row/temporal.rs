//! Dates and times as rows and binary JSON hold them.
//!
//! ```text
//! DATE          3 bytes  year << 9 | month << 5 | day
//! YEAR          1 byte   year - 1900; 0 is the year 0000
//! TIME(n)       3 bytes  sign 1 | unused 1 | hours 10 | minutes 6 | seconds 6, then the fraction
//! DATETIME(n)   5 bytes  sign 1 | year * 13 + month 17 | day 5 | hours 5 | minutes 6 | seconds 6, then
//!                        the fraction
//! TIMESTAMP(n)  4 bytes  seconds since 1970, then the fraction
//! fraction      0 to 3 bytes for n = 0, 1..2, 3..4, 5..6: hundredths, ten thousandths, millionths
//! before 5.6.4  TIME 3 bytes hhmmss · DATETIME 8 bytes YYYYMMDDhhmmss · TIMESTAMP 4 bytes
//! in JSON       8 bytes  (the integer part above without offset) << 24 | microseconds; negative as a whole
//! ```
//!
//! DATE, the forms before 5.6.4 and those in JSON are little-endian; TIME(n), DATETIME(n) and
//! TIMESTAMP(n) are big-endian, so that their bytes sort. The sign bit is set for values from 0 up; a
//! negative TIME is the two's complement of integer part and fraction together.
//! (`my_time_packed_from_binary` and its siblings in the server's `my_time.cc`.)
//!
//! The server can be configured to store zero dates, `2020-00-00` and `2020-02-31`, so we don't validate
//! against the calendar: fields are returned as stored.

use std::fmt;

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::row::text::{ShortText, eight_digits, two_digits};

/// The most digits of a fraction of a second.
pub(crate) const FRACTION_DIGITS_MAX: u8 = 6;
/// Characters of the longest date, time or both.
pub(crate) const TEMPORAL_TEXT_MAX: usize = 32;

/// A date or time as text.
pub type TemporalText = ShortText<TEMPORAL_TEXT_MAX>;

// Values stay packed, in whole words: most are never unpacked, and words are copied faster.

/// DATE.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    /// year << 9 | month << 5 | day.
    packed: u32,
}

/// TIME, between -838:59:59 and 838:59:59 in valid values.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Time {
    /// negative << 31 | hours << 12 | minutes << 6 | seconds.
    packed: u32,
    fraction: Fraction,
}

/// DATETIME.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DateTime {
    /// (year * 13 + month) << 22 | day << 17 | hours << 12 | minutes << 6 | seconds.
    packed: u64,
    fraction: Fraction,
}

/// TIMESTAMP: a moment, whatever the time zone.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Timestamp {
    seconds: u32,
    fraction: Fraction,
}

/// A fraction of a second, and how many digits of it the column keeps.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fraction {
    /// digits << 24 | microseconds.
    packed: u32,
}

impl Date {
    /// Reads the three bytes of a row.
    #[inline]
    pub(crate) fn decode(cursor: &mut Cursor<'_>) -> Result<Self> {
        Ok(Date { packed: cursor.u24("date")? })
    }

    /// Decodes the three bytes of a row.
    #[inline]
    pub fn from_bytes([low, middle, high]: [u8; 3]) -> Self {
        Date { packed: u32::from_le_bytes([low, middle, high, 0]) }
    }

    /// A date of these parts, which need not be one of the calendar.
    pub fn new(year: u16, month: u8, day: u8) -> Self {
        Date { packed: u32::from(year) << 9 | u32::from(month & 15) << 5 | u32::from(day & 31) }
    }

    /// The three bytes of a row.
    pub fn encode(self) -> Vec<u8> {
        self.packed.to_le_bytes().into_iter().take(3).collect()
    }

    /// 0 to 9999 in valid values; rows hold up to 32767.
    #[inline]
    pub fn year(self) -> u16 {
        (self.packed >> 9) as u16
    }

    /// 1 to 12; 0 for no month.
    #[inline]
    pub fn month(self) -> u8 {
        (self.packed >> 5 & 15) as u8
    }

    /// 1 to 31; 0 for no day.
    #[inline]
    pub fn day(self) -> u8 {
        (self.packed & 31) as u8
    }

    /// `YYYY-MM-DD`.
    pub fn text(self) -> TemporalText {
        let mut text = ShortText::new();
        self.push(&mut text);
        text
    }

    #[inline]
    fn push(self, text: &mut TemporalText) {
        match self.digits() {
            Some([a, b, c, d, e, f, g, h]) => text.push_array(&[a, b, c, d, b'-', e, f, b'-', g, h]),
            None => {
                text.push_padded(u32::from(self.year()), 4);
                for part in [self.month(), self.day()] {
                    text.push(b'-');
                    text.push_padded(u32::from(part), 2);
                }
            }
        }
    }

    /// `YYYYMMDD`; `None` for years of more than four digits, which no server stores.
    #[inline]
    pub fn digits(self) -> Option<[u8; 8]> {
        let [[a, b], [c, d], [e, f], [g, h]] = self.digit_pairs()?.map(u16::to_le_bytes);
        Some([a, b, c, d, e, f, g, h])
    }

    /// `YY YY MM DD`, each pair in memory order, its first digit in the lower byte; `None` as for
    /// [`Date::digits`].
    #[inline]
    pub fn digit_pairs(self) -> Option<[u16; 4]> {
        let year = self.year();
        if year > 9999 {
            return None;
        }
        let century = two_digits((year / 100) as u8);
        let of_century = two_digits((year % 100) as u8);
        Some([century, of_century, two_digits(self.month()), two_digits(self.day())])
    }
}

impl Time {
    const NEGATIVE: u32 = 1 << 31;

    /// Reads the bytes of a TIME(n).
    #[inline]
    pub(crate) fn decode(cursor: &mut Cursor<'_>, fraction_digits: u8) -> Result<Self> {
        let size = fraction_size(fraction_digits);
        let bits = 8 * size as u32;
        let value = uint_be(cursor, 3 + size, "time")? as i64 - (0x80_0000 << bits);
        let magnitude = value.unsigned_abs();
        let fraction = Fraction::new(magnitude & ((1 << bits) - 1), size, fraction_digits)?;
        Ok(Time::new(value < 0, (magnitude >> bits) as u32, fraction))
    }

    /// Reads the three bytes that TIME had before 5.6.4: hhmmss as a number.
    pub(crate) fn decode_old(cursor: &mut Cursor<'_>) -> Result<Self> {
        let value = ((cursor.u24("time")? << 8) as i32) >> 8;
        let magnitude = value.unsigned_abs();
        let hours = magnitude / 10_000;
        let minutes = magnitude / 100 % 100;
        let seconds = magnitude % 100;
        if minutes > 59 || seconds > 59 {
            return Err(Error::invalid("row value", "time", value, "hhmmss"));
        }
        Ok(Time::new(value < 0, hours << 12 | minutes << 6 | seconds, Fraction::NONE))
    }

    /// Reads the packed form that binary JSON holds.
    pub(crate) fn decode_packed(packed: i64) -> Result<Self> {
        let magnitude = packed.unsigned_abs();
        let fraction = Fraction::new(magnitude & 0xff_ffff, 3, FRACTION_DIGITS_MAX)?;
        Ok(Time::new(packed < 0, (magnitude >> 24) as u32, fraction))
    }

    /// A length of time, of at most 1023 hours.
    pub fn of_seconds(is_negative: bool, seconds: u32, fraction: Fraction) -> Self {
        Time::new(is_negative, packed_clock(seconds), fraction)
    }

    /// The bytes of a TIME(n).
    pub fn encode(self) -> Vec<u8> {
        let size = fraction_size(self.fraction.digits());
        let zero = 0x80_0000_u64 << (8 * size);
        let packed = u64::from(self.packed & !Self::NEGATIVE);
        let magnitude = packed << (8 * size) | self.fraction.stored();
        big_endian(if self.is_negative() { zero - magnitude } else { zero + magnitude }, 3 + size)
    }

    /// The three bytes that TIME had before 5.6.4.
    pub fn encode_old(self) -> Vec<u8> {
        let value =
            i32::from(self.hours()) * 10_000 + i32::from(self.minutes()) * 100 + i32::from(self.seconds());
        let signed = if self.is_negative() { -value } else { value };
        signed.to_le_bytes().into_iter().take(3).collect()
    }

    #[inline]
    fn new(negative: bool, packed: u32, fraction: Fraction) -> Self {
        let sign = if negative { Self::NEGATIVE } else { 0 };
        Time { packed: sign | packed & 0x3f_ffff, fraction }
    }

    /// Whether it is below 0.
    #[inline]
    pub fn is_negative(self) -> bool {
        self.packed & Self::NEGATIVE != 0
    }

    /// Hours, 0 to 838 in valid values.
    #[inline]
    pub fn hours(self) -> u16 {
        (self.packed >> 12 & 0x3ff) as u16
    }

    /// Minutes.
    #[inline]
    pub fn minutes(self) -> u8 {
        (self.packed >> 6 & 63) as u8
    }

    /// Seconds.
    #[inline]
    pub fn seconds(self) -> u8 {
        (self.packed & 63) as u8
    }

    /// The rest of the second.
    #[inline]
    pub fn fraction(self) -> Fraction {
        self.fraction
    }

    /// `[-]hh:mm:ss[.fraction]`.
    pub fn text(self) -> TemporalText {
        let mut text = ShortText::new();
        if self.is_negative() {
            text.push(b'-');
        }
        push_clock(&mut text, self.hours(), self.minutes(), self.seconds());
        self.fraction.push(&mut text);
        text
    }
}

impl DateTime {
    /// Reads the bytes of a DATETIME(n).
    #[inline]
    pub(crate) fn decode(cursor: &mut Cursor<'_>, fraction_digits: u8) -> Result<Self> {
        let size = fraction_size(fraction_digits);
        let Some(packed) = uint_be(cursor, 5, "datetime")?.checked_sub(0x80_0000_0000) else {
            return Err(Error::invalid("row value", "datetime", "below 0", "the year 0000 or later"));
        };
        let fraction = Fraction::new(uint_be(cursor, size, "fraction")?, size, fraction_digits)?;
        Ok(DateTime { packed, fraction })
    }

    /// Reads the eight bytes that DATETIME had before 5.6.4: YYYYMMDDhhmmss as a number.
    pub(crate) fn decode_old(cursor: &mut Cursor<'_>) -> Result<Self> {
        let value = cursor.u64("datetime")?;
        let date = value / 1_000_000;
        let time = value % 1_000_000;
        let hours = time / 10_000;
        let minutes = time / 100 % 100;
        let seconds = time % 100;
        let year = date / 10_000;
        let month = date / 100 % 100;
        let day = date % 100;
        if year > 9999 || month > 12 || day > 31 || hours > 31 || minutes > 63 || seconds > 63 {
            return Err(Error::invalid("row value", "datetime", value, "YYYYMMDDhhmmss"));
        }
        let months = year * 13 + month;
        let packed = months << 22 | day << 17 | hours << 12 | minutes << 6 | seconds;
        Ok(DateTime { packed, fraction: Fraction::NONE })
    }

    /// Reads the packed form that binary JSON holds.
    pub(crate) fn decode_packed(packed: i64) -> Result<Self> {
        let Ok(magnitude) = u64::try_from(packed) else {
            return Err(Error::invalid("json value", "datetime", "below 0", "the year 0000 or later"));
        };
        let fraction = Fraction::new(magnitude & 0xff_ffff, 3, FRACTION_DIGITS_MAX)?;
        Ok(DateTime { packed: magnitude >> 24, fraction })
    }

    /// A date, and seconds since midnight.
    pub fn new(date: Date, seconds: u32, fraction: Fraction) -> Self {
        let months = u64::from(date.year()) * 13 + u64::from(date.month());
        let packed = months << 22 | u64::from(date.day()) << 17 | u64::from(packed_clock(seconds));
        DateTime { packed, fraction }
    }

    /// The bytes of a DATETIME(n).
    pub fn encode(self) -> Vec<u8> {
        let mut bytes = big_endian(self.packed + 0x80_0000_0000, 5);
        bytes.extend(self.fraction.encode());
        bytes
    }

    /// The eight bytes that DATETIME had before 5.6.4.
    pub fn encode_old(self) -> Vec<u8> {
        let date = self.date();
        let parts = [date.month(), date.day(), self.hours(), self.minutes(), self.seconds()];
        let value = parts.iter().fold(u64::from(date.year()), |value, part| value * 100 + u64::from(*part));
        value.to_le_bytes().to_vec()
    }

    /// The date.
    #[inline]
    pub fn date(self) -> Date {
        let months = self.packed >> 22;
        Date::new((months / 13) as u16, (months % 13) as u8, (self.packed >> 17 & 31) as u8)
    }

    /// Hours.
    #[inline]
    pub fn hours(self) -> u8 {
        (self.packed >> 12 & 31) as u8
    }

    /// Minutes.
    #[inline]
    pub fn minutes(self) -> u8 {
        (self.packed >> 6 & 63) as u8
    }

    /// Seconds.
    #[inline]
    pub fn seconds(self) -> u8 {
        (self.packed & 63) as u8
    }

    /// The rest of the second.
    #[inline]
    pub fn fraction(self) -> Fraction {
        self.fraction
    }

    /// `YYYY-MM-DD hh:mm:ss[.fraction]`.
    pub fn text(self) -> TemporalText {
        let mut text = ShortText::new();
        self.date().push(&mut text);
        text.push(b' ');
        push_clock(&mut text, u16::from(self.hours()), self.minutes(), self.seconds());
        self.fraction.push(&mut text);
        text
    }
}

impl Timestamp {
    /// Reads the bytes of a TIMESTAMP(n).
    #[inline]
    pub(crate) fn decode(cursor: &mut Cursor<'_>, fraction_digits: u8) -> Result<Self> {
        let size = fraction_size(fraction_digits);
        let seconds = uint_be(cursor, 4, "timestamp")? as u32;
        let fraction = Fraction::new(uint_be(cursor, size, "fraction")?, size, fraction_digits)?;
        Ok(Timestamp { seconds, fraction })
    }

    /// Reads the four bytes that TIMESTAMP had before 5.6.4.
    pub(crate) fn decode_old(cursor: &mut Cursor<'_>) -> Result<Self> {
        Ok(Timestamp { seconds: cursor.u32("timestamp")?, fraction: Fraction::NONE })
    }

    /// A moment, by seconds since 1970.
    pub fn new(seconds: u32, fraction: Fraction) -> Self {
        Timestamp { seconds, fraction }
    }

    /// The bytes of a TIMESTAMP(n).
    pub fn encode(self) -> Vec<u8> {
        let mut bytes = big_endian(self.seconds.into(), 4);
        bytes.extend(self.fraction.encode());
        bytes
    }

    /// The four bytes that TIMESTAMP had before 5.6.4.
    pub fn encode_old(self) -> Vec<u8> {
        self.seconds.to_le_bytes().to_vec()
    }

    /// Seconds since 1970; 0 is the zero date.
    #[inline]
    pub fn seconds(self) -> u32 {
        self.seconds
    }

    /// The rest of the second.
    #[inline]
    pub fn fraction(self) -> Fraction {
        self.fraction
    }

    /// Seconds since 1970, with the fraction that the column keeps.
    pub fn text(self) -> TemporalText {
        let mut text = ShortText::new();
        text.push_padded(self.seconds, 1);
        self.fraction.push(&mut text);
        text
    }
}

impl Fraction {
    /// Of a column that keeps none.
    pub const NONE: Self = Fraction { packed: 0 };

    /// A fraction of which a column keeps this many digits: more are in no byte.
    pub fn of(microseconds: u32, digits: u8) -> Self {
        let digits = digits.min(FRACTION_DIGITS_MAX);
        Fraction { packed: u32::from(digits) << 24 | microseconds.min(999_999) }
    }

    /// The fraction as its bytes have it: an even number of digits.
    fn stored(self) -> u64 {
        let left_out = 6 - 2 * fraction_size(self.digits()) as u32;
        u64::from(self.microseconds() / 10_u32.pow(left_out))
    }

    fn encode(self) -> Vec<u8> {
        big_endian(self.stored(), fraction_size(self.digits()))
    }

    /// A fraction that was stored in `size` bytes.
    #[inline]
    fn new(stored: u64, size: usize, digits: u8) -> Result<Self> {
        let (unit, limit) = match size {
            0 => (0, 1),
            1 => (10_000, 100),
            2 => (100, 10_000),
            _ => (1, 1_000_000),
        };
        if stored >= limit {
            return Err(Error::invalid("row value", "fraction", stored, "less than a second"));
        }
        Ok(Fraction { packed: (u32::from(digits) << 24) | (stored as u32 * unit) })
    }

    /// Microseconds.
    #[inline]
    pub fn microseconds(self) -> u32 {
        self.packed & 0xff_ffff
    }

    /// Digits that the column keeps: 0 to 6.
    #[inline]
    pub fn digits(self) -> u8 {
        (self.packed >> 24) as u8
    }

    fn push(self, text: &mut TemporalText) {
        text.push_fraction(self.microseconds(), self.digits());
    }
}

/// Hours, minutes and seconds in their bits.
fn packed_clock(seconds: u32) -> u32 {
    ((seconds / 3600) << 12) | ((seconds / 60 % 60) << 6) | (seconds % 60)
}

/// The lowest bytes of a number, the highest of these first.
pub fn big_endian(value: u64, size: usize) -> Vec<u8> {
    (0..size).rev().map(|place| (value >> (8 * place)) as u8).collect()
}

/// Bytes of a fraction of `digits` digits.
pub(crate) fn fraction_size(digits: u8) -> usize {
    usize::from(digits.min(FRACTION_DIGITS_MAX)).div_ceil(2)
}

/// Takes `size` bytes, the highest first.
#[inline]
fn uint_be(cursor: &mut Cursor<'_>, size: usize, field: &'static str) -> Result<u64> {
    let bytes = cursor.bytes(size, field)?;
    Ok(bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

/// Appends `hh:mm:ss`, with as many digits of the hours as they have.
#[inline]
fn push_clock(text: &mut TemporalText, hours: u16, minutes: u8, seconds: u8) {
    let clock = u32::from(hours) * 10_000 + u32::from(minutes) * 100 + u32::from(seconds);
    let [_, _, a, b, c, d, e, f] = eight_digits(clock);
    if hours < 100 {
        text.push_array(&[a, b, b':', c, d, b':', e, f]);
    } else {
        text.push_padded(u32::from(hours), 2);
        text.push_array(&[b':', c, d, b':', e, f]);
    }
}

macro_rules! shown_as_text {
    ($($type:ty),*) => {$(
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.text(), f)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}

shown_as_text!(Date, Time, DateTime, Timestamp);

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: ToString>(
        bytes: &[u8],
        decode: impl Fn(&mut Cursor<'_>) -> Result<T>,
    ) -> Result<String, Error> {
        for cut in 0..bytes.len() {
            assert!(decode(&mut Cursor::new(&bytes[..cut], "test")).is_err(), "cut at {cut}");
        }
        let mut cursor = Cursor::new(bytes, "test");
        let value = decode(&mut cursor)?;
        cursor.finish()?;
        Ok(value.to_string())
    }

    fn time(digits: u8, bytes: &[u8]) -> String {
        read(bytes, |cursor| Time::decode(cursor, digits)).unwrap()
    }

    fn datetime(digits: u8, bytes: &[u8]) -> String {
        read(bytes, |cursor| DateTime::decode(cursor, digits)).unwrap()
    }

    #[test]
    fn dates() {
        assert_eq!(read(&[0x5d, 0xc8, 0x0f], Date::decode).unwrap(), "2020-02-29");
        assert_eq!(read(&[0, 0, 0], Date::decode).unwrap(), "0000-00-00");
        assert_eq!(read(&[0x9f, 0x1f, 0x4e], Date::decode).unwrap(), "9999-12-31");
    }

    #[test]
    fn times_of_both_signs_and_every_fraction() {
        assert_eq!(time(0, &[0x80, 0, 0]), "00:00:00");
        assert_eq!(time(0, &[0x7f, 0xff, 0xff]), "-00:00:01");
        assert_eq!(time(0, &[0x4b, 0x91, 0x05]), "-838:59:59");
        // -12:34:56.789, and one thousandth below zero.
        assert_eq!(time(3, &[0x7f, 0x37, 0x47, 0xe1, 0x2e]), "-12:34:56.789");
        assert_eq!(time(3, &[0x7f, 0xff, 0xff, 0xff, 0xf6]), "-00:00:00.001");
        assert_eq!(time(1, &[0x7f, 0xff, 0xff, 0xce]), "-00:00:00.5");
        assert_eq!(time(6, &[0xb4, 0x6e, 0xfa, 0x0f, 0x42, 0x3f]), "838:59:58.999999");
    }

    #[test]
    fn datetimes_and_zero_dates() {
        assert_eq!(datetime(0, &[0xfe, 0xf3, 0xff, 0x7e, 0xfb]), "9999-12-31 23:59:59");
        assert_eq!(datetime(1, &[0x80, 0, 0, 0, 0, 0]), "0000-00-00 00:00:00.0");
        assert_eq!(datetime(2, &[0x80, 0, 0, 0, 0, 99]), "0000-00-00 00:00:00.99");
        assert!(read(&[0x7f, 0xff, 0xff, 0xff, 0xff], |cursor| DateTime::decode(cursor, 0)).is_err());
        assert!(read(&[0x80, 0, 0, 0, 0, 100], |cursor| DateTime::decode(cursor, 2)).is_err());
    }

    #[test]
    fn timestamps() {
        let text = read(&[0x7f, 0xff, 0xff, 0xff], |cursor| Timestamp::decode(cursor, 0)).unwrap();
        assert_eq!(text, "2147483647");
        let text = read(&[0x5e, 0x0d, 0x5e, 0x05, 0, 0, 1], |cursor| Timestamp::decode(cursor, 6)).unwrap();
        assert_eq!(text, "1577934341.000001");
    }

    #[test]
    fn values_are_written_as_they_are_read() {
        for (digits, bytes) in [
            (0, &[0x80, 0, 0][..]),
            (0, &[0x7f, 0xff, 0xff]),
            (0, &[0x4b, 0x91, 0x05]),
            (3, &[0x7f, 0x37, 0x47, 0xe1, 0x2e]),
            (1, &[0x7f, 0xff, 0xff, 0xce]),
            (6, &[0xb4, 0x6e, 0xfa, 0x0f, 0x42, 0x3f]),
        ] {
            let time = Time::decode(&mut Cursor::new(bytes, "test"), digits).unwrap();
            assert_eq!(time.encode(), bytes);
            let seconds =
                u32::from(time.hours()) * 3600 + u32::from(time.minutes()) * 60 + u32::from(time.seconds());
            let fraction = Fraction::of(time.fraction().microseconds(), digits);
            assert_eq!(Time::of_seconds(time.is_negative(), seconds, fraction).encode(), bytes);
        }
        for (digits, bytes) in [
            (0, &[0xfe, 0xf3, 0xff, 0x7e, 0xfb][..]),
            (2, &[0x80, 0, 0, 0, 0, 99]),
            (6, &[0x99, 0xa5, 0xba, 0xd1, 0x9d, 1, 2, 3]),
        ] {
            let datetime = DateTime::decode(&mut Cursor::new(bytes, "test"), digits).unwrap();
            assert_eq!(datetime.encode(), bytes);
            let clock = [datetime.hours(), datetime.minutes(), datetime.seconds()].map(u32::from);
            let seconds = clock.into_iter().fold(0, |seconds, part| seconds * 60 + part);
            let fraction = Fraction::of(datetime.fraction().microseconds(), digits);
            assert_eq!(DateTime::new(datetime.date(), seconds, fraction).encode(), bytes);
        }
        let bytes = [0x5e, 0x0d, 0x5e, 0x05, 0, 0, 1];
        assert_eq!(Timestamp::decode(&mut Cursor::new(&bytes, "test"), 6).unwrap().encode(), bytes);
        assert_eq!(Date::new(2020, 2, 29).encode(), [0x5d, 0xc8, 0x0f]);
        let old = (-8_385_959i32).to_le_bytes();
        assert_eq!(Time::decode_old(&mut Cursor::new(&old[..3], "test")).unwrap().encode_old(), old[..3]);
        let old = 20_200_102_030_405u64.to_le_bytes();
        assert_eq!(DateTime::decode_old(&mut Cursor::new(&old, "test")).unwrap().encode_old(), old);
    }

    #[test]
    fn the_forms_before_5_6_4() {
        assert_eq!(read(&(-8_385_959i32).to_le_bytes()[..3], Time::decode_old).unwrap(), "-838:59:59");
        assert!(read(&[0xff, 0xff, 0x7f], Time::decode_old).is_err());
        let value = 20_200_102_030_405u64;
        assert_eq!(read(&value.to_le_bytes(), DateTime::decode_old).unwrap(), "2020-01-02 03:04:05");
        assert!(read(&u64::MAX.to_le_bytes(), DateTime::decode_old).is_err());
        assert!(read(&20_201_302_030_405u64.to_le_bytes(), DateTime::decode_old).is_err());
        assert_eq!(read(&1u32.to_le_bytes(), Timestamp::decode_old).unwrap(), "1");
    }

    #[test]
    fn the_forms_in_json() {
        let packed = |hours: i64, minutes: i64, seconds: i64| (hours << 12 | minutes << 6 | seconds) << 24;
        assert_eq!(
            Time::decode_packed(-(packed(12, 34, 56) + 789_000)).unwrap().to_string(),
            "-12:34:56.789000"
        );
        let date = ((2020 * 13 + 1) << 5 | 2) << 41;
        assert_eq!(DateTime::decode_packed(date).unwrap().to_string(), "2020-01-02 00:00:00.000000");
        assert!(DateTime::decode_packed(-1).is_err());
        assert!(Time::decode_packed(0xff_ffff).is_err());
    }
}
