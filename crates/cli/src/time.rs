//! Dates with times as MySQL takes them from users: `2024-12-25 11:25:56`, `20241225112556`, `24-12-25 11`.
//!
//! ```text
//! with separators      year SEP month SEP day SEP hour [SEP minute [SEP second [. fraction]]]
//! without              YYYYMMDDHHMM[SS]    YYMMDDHHMM[SS]      a T may stand behind the day
//! ```
//!
//! Any punctuation separates; years of two digits are 1970 to 2069. A date without a time is refused, as
//! mysqlbinlog refuses it. Fractions are read and dropped.

/// A date with its time of day, in no time zone yet. It may not exist, as 30 February.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct CivilDateTime {
    pub(crate) year: u16,
    pub(crate) month: u8,
    pub(crate) day: u8,
    pub(crate) hour: u8,
    pub(crate) minute: u8,
    pub(crate) second: u8,
}

/// Year to second.
const FIELDS: usize = 6;
/// Where the hour stands.
const HOUR: usize = 3;
const MAXIMA: [u32; FIELDS] = [9999, 12, 31, 23, 59, 59];

impl CivilDateTime {
    /// Reads what a user wrote.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim_ascii();
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != 'T').unwrap_or(text.len());
        let separated = text.get(digits..).is_some_and(|rest| !rest.is_empty() && !rest.starts_with('.'));
        let (fields, rest) = if separated { with_separators(text) } else { without_separators(text)? };
        if !matches!(rest.strip_prefix('.'), Some(fraction) if is_fraction(fraction)) && !rest.is_empty() {
            return None;
        }
        // A date alone will not do.
        if fields.len() <= HOUR {
            return None;
        }
        let field = |index: usize| fields.get(index).copied().unwrap_or(0);
        if (0..FIELDS).any(|index| field(index) > MAXIMA[index]) {
            return None;
        }
        Some(CivilDateTime {
            year: field(0) as u16,
            month: field(1) as u8,
            day: field(2) as u8,
            hour: field(3) as u8,
            minute: field(4) as u8,
            second: field(5) as u8,
        })
    }
}

fn is_fraction(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Digits of a number that a separator ends; larger ones are out of every range.
const DIGITS_MAX: usize = 6;

/// The fields and what stands behind them.
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
            // A space may stand between date and time alone.
            let is_separator =
                |c: char| c.is_ascii_punctuation() || (c.is_ascii_whitespace() && fields.len() == HOUR);
            rest = rest.trim_start_matches(is_separator);
        }
    }
    (fields, rest)
}

/// The fields and what stands behind them; `None`: none that can be told apart.
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

/// A number of at most so many digits, how many it has, and what stands behind it.
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
        let CivilDateTime { year, month, day, hour, minute, second } = CivilDateTime::parse(text)?;
        Some(format!("{year}-{month}-{day} {hour}:{minute}:{second}"))
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
            ("2020-02-30 00:00:00", "2020-2-30 0:0:0"),
            ("2020-01-01 00:00:00.1234567", "2020-1-1 0:0:0"),
            ("2020-01-01 00:00:00.", "2020-1-1 0:0:0"),
            ("2020--001-1 :1:", "2020-1-1 1:0:0"),
            ("1-1-1 1", "1-1-1 1:0:0"),
            ("0000-00-00 00:00:00", "0-0-0 0:0:0"),
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
            "2020-01-01 00:00:00+03:00",
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
