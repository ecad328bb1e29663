//! Times given by users, one parser for all commands: in mysqlbinlog's format, in the zone of the process, or
//! with an offset. [`shown`] is the inverse.
//!
//! ```text
//! with separators      year SEP month SEP day SEP hour [SEP minute [SEP second [. fraction]]]
//! without              YYYYMMDDHHMM[SS]    YYMMDDHHMM[SS]      a T may follow the day
//! then                 nothing: local time; Z: UTC; +hh:mm, +hhmm, +hh: that far east of Greenwich
//! otherwise            @SECONDS[.fraction] since 1970
//! ```
//!
//! Any punctuation separates; years of two digits are 1970 to 2069. A date without a time is refused, as
//! mysqlbinlog refuses it; so is a date that does not exist, which mysqlbinlog takes for another one. No fraction is
//! dropped: where only whole seconds are known, one that isn't zero is refused.

use std::fmt;

use binlogz_figures::Zone;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::Offset;

/// Year to second.
const FIELDS: usize = 6;
/// The index of the hour.
const HOUR: usize = 3;
const MAXIMA: [u32; FIELDS] = [9999, 12, 31, 23, 59, 59];

/// The farthest any clock is from Greenwich, in hours.
const OFFSET_HOURS_MAX: i32 = 14;

/// Why a text is no time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoTime {
    /// It is not written as one.
    Text,
    /// There is no such date.
    Date {
        /// The year, of four digits.
        year: u32,
        /// The month, from 1.
        month: u32,
        /// The day of the month.
        day: u32,
    },
    /// It has a fraction of a second where only whole ones are known.
    Fraction,
    /// It is finer than microseconds.
    TooFine,
}

impl fmt::Display for NoTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoTime::Text => {
                write!(f, "expected YYYY-MM-DD hh:mm:ss, local time, or with Z or an offset, as +01:00")
            }
            NoTime::Fraction => {
                write!(
                    f,
                    "expected whole seconds, which are all that is known here: a fraction would be dropped"
                )
            }
            NoTime::TooFine => write!(f, "expected at most six digits after the second"),
            NoTime::Date { year, month, day } => write!(f, "there is no {year:04}-{month:02}-{day:02}"),
        }
    }
}

/// Microseconds in a second.
const MICROSECONDS: i64 = 1_000_000;

/// The moment that a user wrote, in microseconds since 1970.
pub fn parse(text: &str) -> Result<i64, NoTime> {
    let (seconds, micros) = parts(text)?;
    Ok(seconds.saturating_mul(MICROSECONDS).saturating_add(micros))
}

/// The moment that a user wrote, in seconds since 1970, for data that has whole seconds only.
pub fn parse_seconds(text: &str) -> Result<i64, NoTime> {
    match parts(text)? {
        (seconds, 0) => Ok(seconds),
        _ => Err(NoTime::Fraction),
    }
}

/// Seconds since 1970, and microseconds.
fn parts(text: &str) -> Result<(i64, i64), NoTime> {
    let text = text.trim_ascii();
    if let Some(text) = text.strip_prefix('@') {
        let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
        let is_number = !seconds.is_empty() && is_fraction(seconds) && is_fraction(fraction);
        let seconds = seconds.parse().ok().filter(|_| is_number).ok_or(NoTime::Text)?;
        return Ok((seconds, microseconds(fraction)?));
    }
    let (text, offset) = split_offset(text);
    let (time, micros) = civil(text)?;
    let seconds = match offset {
        None => Zone::of_process().seconds(time),
        Some(offset) => offset.to_timestamp(time).ok().map(Timestamp::as_second),
    };
    // No timestamp is so late; no log either.
    Ok((seconds.unwrap_or(i64::MAX), micros))
}

/// The digits after the point.
fn microseconds(fraction: &str) -> Result<i64, NoTime> {
    let (kept, finer) = fraction.split_at_checked(6).unwrap_or((fraction, ""));
    if finer.bytes().any(|byte| byte != b'0') {
        return Err(NoTime::TooFine);
    }
    format!("{kept:0<6}").parse().map_err(|_| NoTime::Text)
}

/// Seconds since 1970 as local time: what [`parse`] takes.
pub fn shown(seconds: u32) -> String {
    let timestamp = Timestamp::from_second(seconds.into()).unwrap_or_default();
    Zone::of_process().local(timestamp).0.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Separates the time from the offset after it. MySQL has none and would take its hours for
/// seconds, so a sign counts after a time with a colon, or after digits that are a whole date and time.
fn split_offset(text: &str) -> (&str, Option<Offset>) {
    if let Some(time) = text.strip_suffix(['Z', 'z']) {
        return (time.trim_ascii_end(), Some(Offset::UTC));
    }
    let sign = text.rfind(['+', '-']).unwrap_or(0);
    let (time, offset) = text.split_at(sign);
    let (digits, fraction) = time.split_once('.').unwrap_or((time, ""));
    let is_whole = digits.len() >= "YYMMDDHHMM".len()
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'T')
        && is_fraction(fraction);
    let found = (time.contains(':') || is_whole).then(|| parse_offset(offset)).flatten();
    match found {
        Some(offset) => (time.trim_ascii_end(), Some(offset)),
        None => (text, None),
    }
}

/// `+hh`, `+hhmm` or `+hh:mm`.
fn parse_offset(text: &str) -> Option<Offset> {
    let digits = text.get(1..)?;
    let (hours, minutes) = match digits.len() {
        2 => (digits, "00"),
        4 => digits.split_at_checked(2)?,
        _ => digits.split_once(':').filter(|(hours, minutes)| (hours.len(), minutes.len()) == (2, 2))?,
    };
    if !is_fraction(hours) || !is_fraction(minutes) {
        return None;
    }
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    if hours > OFFSET_HOURS_MAX || minutes > 59 {
        return None;
    }
    let seconds = (hours * 60 + minutes) * 60;
    Offset::from_seconds(if text.starts_with('-') { -seconds } else { seconds }).ok()
}

/// Date and time of day as written, and microseconds.
fn civil(text: &str) -> Result<(DateTime, i64), NoTime> {
    let (fields, fraction) = fields(text).ok_or(NoTime::Text)?;
    let field = |index: usize| fields.get(index).copied().unwrap_or(0);
    let (year, month, day) = (field(0), field(1), field(2));
    let date = Date::new(year as i16, month as i8, day as i8).ok().filter(|_| year > 0);
    let date = date.ok_or(NoTime::Date { year, month, day })?;
    let time = date.at(field(HOUR) as i8, field(HOUR + 1) as i8, field(HOUR + 2) as i8, 0);
    Ok((time, microseconds(fraction)?))
}

/// Year, month, day, hour and what follows, each at most its maximum; and the digits after the point.
fn fields(text: &str) -> Option<(Vec<u32>, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != 'T').unwrap_or(text.len());
    let separated = text.get(digits..).is_some_and(|rest| !rest.is_empty() && !rest.starts_with('.'));
    let (fields, rest) = if separated { with_separators(text) } else { without_separators(text)? };
    let fraction = match rest.strip_prefix('.') {
        Some(fraction) if is_fraction(fraction) => fraction,
        _ if rest.is_empty() => "",
        _ => return None,
    };
    // A date without a time is not enough.
    let is_time = fields.len() > HOUR && fields.iter().zip(MAXIMA).all(|(field, maximum)| *field <= maximum);
    is_time.then_some((fields, fraction))
}

fn is_fraction(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Digits of a number that a separator ends; larger ones are out of every range.
const DIGITS_MAX: usize = 6;

/// The fields and the rest after them.
fn with_separators(text: &str) -> (Vec<u32>, &str) {
    let mut fields = Vec::new();
    let mut rest = text;
    while fields.len() < FIELDS {
        let Some((value, digits, behind)) = number(rest, DIGITS_MAX) else { break };
        fields.push(if fields.is_empty() && digits == 2 { century(value) } else { value });
        rest = behind;
        if fields.len() == FIELDS {
            break;
        }
        if fields.len() == HOUR && rest.starts_with('T') {
            rest = &rest[1..];
        } else {
            // A space may only be between date and time.
            let is_separator =
                |c: char| c.is_ascii_punctuation() || (c.is_ascii_whitespace() && fields.len() == HOUR);
            rest = rest.trim_start_matches(is_separator);
        }
    }
    (fields, rest)
}

/// The fields and the rest after them; `None`: the fields can't be told apart.
fn without_separators(text: &str) -> Option<(Vec<u32>, &str)> {
    let count = text.find('.').unwrap_or(text.len());
    let year_digits = if matches!(count, 4 | 8 | 14..) { 4 } else { 2 };
    let mut fields = Vec::new();
    let mut rest = text;
    while fields.len() < FIELDS {
        let digits_max = if fields.is_empty() { year_digits } else { 2 };
        let Some((value, _, behind)) = number(rest, digits_max) else { break };
        fields.push(if fields.is_empty() && year_digits == 2 { century(value) } else { value });
        rest = if fields.len() == HOUR { behind.strip_prefix('T').unwrap_or(behind) } else { behind };
    }
    (!fields.is_empty()).then_some((fields, rest))
}

/// A number of at most this many digits, its length, and the rest after it.
fn number(text: &str, digits_max: usize) -> Option<(u32, usize, &str)> {
    let digits = text.bytes().take(digits_max).take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(digits)?;
    Some((number.parse().ok()?, digits, rest))
}

fn century(year: u32) -> u32 {
    if year < 70 { 2000 + year } else { 1900 + year }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Option<String> {
        Some(civil(text.trim_ascii()).ok()?.0.strftime("%Y-%-m-%-d %-H:%-M:%-S").to_string())
    }

    #[test]
    fn what_mysqlbinlog_takes() {
        for (text, expected) in [
            ("2020-02-03 04:05:06", "2020-2-3 4:5:6"),
            ("2020-02-03T04:05:06.5", "2020-2-3 4:5:6"),
            ("2020-02-03 04:05:06.123456", "2020-2-3 4:5:6"),
            (" 2020-02-03  04:05:06 ", "2020-2-3 4:5:6"),
            ("2020#02#03#04#05#06", "2020-2-3 4:5:6"),
            ("2020-01-01 00:00", "2020-1-1 0:0:0"),
            ("20-1-2 3", "2020-1-2 3:0:0"),
            ("20200203040506", "2020-2-3 4:5:6"),
            ("200203040506", "2020-2-3 4:5:6"),
            ("990203040506", "1999-2-3 4:5:6"),
            ("20200203T040506", "2020-2-3 4:5:6"),
            ("2020-01-01 00:00:00.1234560", "2020-1-1 0:0:0"),
            ("2020-02-03 04.05.06", "2020-2-3 4:5:6"),
            ("2020-01-01 00:00:00.", "2020-1-1 0:0:0"),
            ("2020--001-1 :1:", "2020-1-1 1:0:0"),
            ("1-1-1 1", "0001-1-1 1:0:0"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_mysqlbinlog_refuses() {
        for text in [
            "",
            "foo",
            "2001-01-01",
            "20200203",
            "2020-13-01",
            "2020-02-03 25:05:06",
            "2020-01-01 00:00:00 x",
            "2020 02 03 04 05 06",
            "2020-1-1 1:2:3:4",
            "2020-01-01 00 00 00",
            "20200101 10",
            "20200101T10",
            "2020-01-0110",
            "12345-1-1 1",
            "2020-01-01 1 pm",
            "2020010203",
            "ä",
        ] {
            assert_eq!(shown(text), None, "{text}");
        }
    }

    #[test]
    fn dates_that_do_not_exist_are_refused() {
        for (text, date) in [
            ("2026-02-31 00:00:00", "there is no 2026-02-31"),
            ("2026-02-29 23:59:59Z", "there is no 2026-02-29"),
            ("2026-04-31 10:00:00", "there is no 2026-04-31"),
            ("20260231000000", "there is no 2026-02-31"),
            ("0000-00-00 00:00:00", "there is no 0000-00-00"),
            ("2026-00-10 00:00:00", "there is no 2026-00-10"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), date, "{text}");
        }
        assert!(parse("2028-02-29 00:00:00").is_ok());
    }

    #[test]
    fn offsets_count_from_greenwich() {
        for text in [
            "2026-11-22 01:02:03Z",
            "2026-11-22T01:02:03.5 z",
            "2026-11-22 02:02:03+01:00",
            "2026-11-22 02:02:03 +0100",
            "2026-11-21 20:02:03-05",
            "20261122063203+0530",
            "20261122T010203Z",
            "@1795309323",
        ] {
            let text = text.replace("03.5", "03.0");
            assert_eq!(parse_seconds(&text), Ok(1_795_309_323), "{text}");
            assert_eq!(parse(&text), Ok(1_795_309_323_000_000), "{text}");
        }
        assert_eq!(parse_seconds("2026-11-22 02:02+01:00"), Ok(1_795_309_320));
        for text in [
            "2026-11-22 01:02:03+15:00",
            "2026-11-22 01:02:03+1",
            "2026-11-22 01:02:03+01:60",
            "@",
            "@-1",
            "@1x",
            "Z",
        ] {
            assert_eq!(parse(text), Err(NoTime::Text), "{text}");
        }
        // Later than any log.
        assert_eq!(parse("9999-12-31 23:59:59"), Ok(i64::MAX));
    }

    #[test]
    fn no_fraction_of_a_second_is_dropped() {
        for (text, micros) in [
            ("2026-11-22 01:02:03.5Z", 500_000),
            ("2026-11-22T01:02:03.000001 Z", 1),
            ("20261122010203.25+00:00", 250_000),
            ("@1795309323.999999", 999_999),
            ("2026-11-22 01:02:03.1234560Z", 123_456),
            ("2026-11-22 01.02.03Z", 0),
        ] {
            assert_eq!(parse(text), Ok(1_795_309_323_000_000 + micros), "{text}");
            let whole = if micros == 0 { Ok(1_795_309_323) } else { Err(NoTime::Fraction) };
            assert_eq!(parse_seconds(text), whole, "{text}");
        }
        for text in ["2026-11-22 01:02:03.1234567Z", "@1.0000001"] {
            assert_eq!(parse(text), Err(NoTime::TooFine), "{text}");
        }
        assert_eq!(parse("@1.x"), Err(NoTime::Text));
    }
}
