//! A date with a time of day, as mysqlbinlog takes it.
//!
//! ```text
//! with separators      year SEP month SEP day SEP hour [SEP minute [SEP second [. fraction]]]
//! without              YYYYMMDDHHMM[SS]    YYMMDDHHMM[SS]      a T may follow the day
//! ```
//!
//! Any punctuation separates; years of two digits are 1970 to 2069. A date without a time is refused here, as
//! mysqlbinlog refuses it; so is a date that does not exist, which mysqlbinlog takes for another one. No fraction is
//! dropped.

use jiff::civil::{Date, DateTime};

use super::NoTime;

/// Year to second.
const FIELDS: usize = 6;
/// The index of the hour.
const HOUR: usize = 3;
const MAXIMA: [u32; FIELDS] = [9999, 12, 31, 23, 59, 59];

/// Date and time of day as written, and microseconds.
pub(super) fn civil(text: &str) -> Result<(DateTime, i64), NoTime> {
    let (fields, fraction) = fields(text).ok_or(NoTime::Text)?;
    let field = |index: usize| fields.get(index).copied().unwrap_or(0);
    let year = field(0);
    let month = field(1);
    let day = field(2);
    let date = Date::new(year as i16, month as i8, day as i8)
        .ok()
        .filter(|_| year > 0)
        .ok_or(NoTime::Date { year, month, day })?;
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

pub(super) fn is_fraction(text: &str) -> bool {
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

/// The digits after the point.
pub(super) fn microseconds(fraction: &str) -> Result<i64, NoTime> {
    let (kept, finer) = fraction.split_at_checked(6).unwrap_or((fraction, ""));
    if finer.bytes().any(|byte| byte != b'0') {
        return Err(NoTime::TooFine);
    }
    format!("{kept:0<6}").parse().map_err(|_| NoTime::Text)
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
}
