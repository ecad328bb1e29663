//! Values as a condition compares them: by MySQL's rules for the types that meet, as far as a log allows.
//!
//! ```text
//! numbers                 exactly, as decimals; as doubles where one of them is a double
//! text with text          by characters; without case where the collation ends in _ci; by weights.rs in utf8mb4_0900_ai_ci
//! text with a number      the number that the text begins with
//! dates and times         with text by their fields, a date without a time is midnight; with numbers as YYYYMMDDhhmmss
//! TIMESTAMP with text     the text is local time, as everywhere in binlogz
//! ```

use std::borrow::Cow;
use std::cmp::Ordering;

use binlogz_binlog::charset::{Charset, collation_name};
use binlogz_binlog::row::{Cell, Value};
use binlogz_figures::Zone;
use jiff::civil::DateTime;

use super::weights;
use crate::table::TableColumn;

/// A value that is compared.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar<'a> {
    Null,
    /// Digits with an optional sign and point.
    Number(Cow<'a, str>),
    Double(f64),
    Text {
        text: Cow<'a, str>,
        rule: TextRule,
    },
    Bytes(Cow<'a, [u8]>),
    /// Seconds since 1970, and microseconds.
    Moment(u32, u32),
    /// A DATE, DATETIME or TIME as text.
    Clock(Cow<'a, str>),
    /// A member's number, its name, and how that compares.
    Member(u64, Option<Cow<'a, str>>, TextRule),
}

/// How texts compare. Of two texts the greater rule holds: a literal has none of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TextRule {
    /// Capitals don't count; the rest is for the collation to say.
    Letters,
    /// ASCII in the order of its capitals' codes, texts filled up with spaces; other letters are for the collation to say.
    Ascii,
    /// utf8mb4_0900_ai_ci, whose weights are known for many letters.
    Weights,
    /// utf8mb4_0900_as_cs: the same weights, and of equal ones accents and capitals decide.
    Levels,
    /// Capitals count; the order is for the collation to say.
    Capitals,
    /// Texts compare by the codes of their letters, as under `_bin` collations.
    Codes,
    /// The rule of a column whose collation isn't known.
    Unknown,
}

impl TextRule {
    pub(super) fn of(collation: Option<u64>) -> Self {
        match collation.and_then(collation_name) {
            Some("utf8mb4_0900_ai_ci") => TextRule::Weights,
            Some("utf8mb4_0900_as_cs") => TextRule::Levels,
            // As their tables in the server's strings/ have it: to_upper of ctype-utf8.cc, sort_order_latin1.
            Some(
                "utf8mb4_general_ci" | "utf8mb3_general_ci" | "utf8_general_ci" | "latin1_swedish_ci"
                | "ascii_general_ci",
            ) => TextRule::Ascii,
            Some(name) if name.ends_with("_bin") => TextRule::Codes,
            Some(name) if !name.ends_with("_ci") => TextRule::Capitals,
            Some(_) => TextRule::Letters,
            None => TextRule::Unknown,
        }
    }

    /// The rule of two texts, where it tells all of their letters.
    pub(super) fn for_letters_of(self, one: &str, two: &str) -> Self {
        match self {
            TextRule::Weights | TextRule::Levels if weights::are_known(one) && weights::are_known(two) => {
                self
            }
            TextRule::Weights => TextRule::Letters,
            TextRule::Levels => TextRule::Capitals,
            TextRule::Ascii if !(one.is_ascii() && two.is_ascii()) => TextRule::Letters,
            rule => rule,
        }
    }

    /// Whether accents and capitals alone tell texts of known letters apart.
    pub(super) fn are_equal_but_for_levels(one: &str, two: &str) -> bool {
        weights::compare(one, two).is_eq()
    }

    /// The letters of a text, those that it calls equal made one.
    fn fold(self, text: &str) -> Vec<char> {
        match self {
            TextRule::Letters | TextRule::Ascii | TextRule::Unknown => text.to_lowercase().chars().collect(),
            TextRule::Weights => text.chars().map(weights::folded).collect(),
            TextRule::Levels | TextRule::Capitals | TextRule::Codes => text.chars().collect(),
        }
    }

    fn compare(self, one: &str, two: &str) -> Ordering {
        match self.for_letters_of(one, two) {
            TextRule::Letters | TextRule::Unknown => one.to_lowercase().cmp(&two.to_lowercase()),
            TextRule::Weights => weights::compare(one, two),
            TextRule::Levels => weights::compare(one, two).then(one.cmp(two)),
            TextRule::Ascii => compare_padded(one, two),
            TextRule::Capitals | TextRule::Codes => one.cmp(two),
        }
    }
}

impl<'a> Scalar<'a> {
    fn number(number: impl ToString) -> Self {
        Scalar::Number(Cow::Owned(number.to_string()))
    }

    /// The value of a column. `None`: bytes that can't be read.
    pub(super) fn of(cell: &Cell<'a>, column: Option<&TableColumn>) -> Option<Self> {
        let unsigned = column.and_then(|column| column.unsigned);
        Some(match cell.value().ok()? {
            Value::Int(value) if unsigned == Some(true) && cell.column.unsigned.is_none() => {
                Self::number(value as u64)
            }
            Value::Int(value) => Self::number(value),
            Value::Uint(value) | Value::Bit(value) => Self::number(value),
            Value::Year(value) => Self::number(value),
            Value::Decimal(value) => Self::number(value),
            // As the double that it is: 0.1 is a little more than 0.1, for the server too.
            Value::Float(value) => Scalar::Double(f64::from(value)),
            Value::Double(value) => Scalar::Double(value),
            Value::Date(value) => Scalar::Clock(Cow::Owned(value.to_string())),
            Value::Time(value) => Scalar::Clock(Cow::Owned(value.to_string())),
            Value::DateTime(value) => Scalar::Clock(Cow::Owned(value.to_string())),
            Value::Timestamp(value) => Scalar::Moment(value.seconds(), value.fraction().microseconds()),
            Value::Enum(value) => {
                let logged = cell.column.member(value).map(|name| text_of(cell, name).into_owned());
                let place = usize::from(value).checked_sub(1);
                let told = || Some(column?.members.get(place?)?.clone());
                let name = logged.or_else(told).map(Cow::Owned);
                Scalar::Member(value.into(), name, TextRule::of(cell.column.collation))
            }
            Value::Set(bits) => {
                let logged = cell.column.members.is_some().then(|| {
                    cell.column.set_members(bits).map(|name| text_of(cell, name).into_owned()).collect()
                });
                let names: Option<Vec<_>> = logged.or_else(|| {
                    let told = &column?.members;
                    let is_in = |place: &usize| *place < 64 && bits >> place & 1 == 1;
                    (!told.is_empty())
                        .then(|| (0..64).filter(is_in).map(|place| told.get(place).cloned()).collect())?
                });
                let rule = TextRule::of(cell.column.collation);
                Scalar::Member(bits, names.map(|names| Cow::Owned(names.join(","))), rule)
            }
            Value::Bytes(bytes) => match column {
                Some(column) => bytes_of(cell, column.padded(cell, bytes)),
                None => bytes_of(cell, cell.column.padded(bytes)),
            },
            Value::Geometry(bytes) => Scalar::Bytes(Cow::Borrowed(bytes)),
            Value::Vector(vector) => Scalar::Bytes(Cow::Borrowed(vector.as_bytes())),
            Value::Json(document) => {
                let mut text = Vec::new();
                document.write_text(&mut text).ok()?;
                Scalar::Text {
                    text: String::from_utf8_lossy(&text).into_owned().into(),
                    rule: TextRule::Codes,
                }
            }
            Value::Null => Scalar::Null,
            _ => return None,
        })
    }

    /// Whether clocks show it twice or never, if it is a moment or a text that is compared with one: the server then takes
    /// both moments, or one of them where it has an index.
    pub(super) fn is_repeated(&self) -> bool {
        let time = match self {
            Scalar::Moment(seconds, _) => jiff::Timestamp::from_second((*seconds).into())
                .ok()
                .map(|moment| Zone::of_process().local(moment).0),
            Scalar::Text { text, .. } | Scalar::Clock(text) => local_time(text),
            _ => None,
        };
        time.is_some_and(|time| !Zone::of_process().shows_once(time))
    }

    /// Whether the value is a date, with a time or without, that clocks can show: no month or day is 0.
    pub(super) fn is_local_time(&self) -> bool {
        matches!(self, Scalar::Clock(text) if local_time(text).is_some())
    }

    /// Whether the value is a text or bytes.
    pub(super) fn is_text(&self) -> bool {
        matches!(self, Scalar::Text { .. } | Scalar::Bytes(_))
    }

    /// Compares the value with another as a server does; `None`: the answer is unknown, as with NULL.
    pub(super) fn compare(&self, other: &Scalar<'_>) -> Option<Ordering> {
        use Scalar::{Bytes, Clock, Double, Member, Moment, Null, Number, Text};
        match (self, other) {
            (Null, _) | (_, Null) => None,
            (Number(one), Number(two)) => Some(compare_decimals(one, two)),
            (Text { text: one, rule }, Text { text: two, rule: other_rule }) => {
                Some((*rule).max(*other_rule).compare(one, two))
            }
            (Bytes(one), Bytes(two)) => Some(one.cmp(two)),
            (Bytes(one), Text { text, .. }) => Some((**one).cmp(text.as_bytes())),
            (Text { text, .. }, Bytes(two)) => Some(text.as_bytes().cmp(two)),
            (Moment(one, fraction), Moment(two, other)) => Some((one, fraction).cmp(&(two, other))),
            (Moment(seconds, micros), Text { text, .. } | Clock(text)) => {
                let (other, other_micros) = moment(text)?;
                Some((i64::from(*seconds), *micros).cmp(&(other, other_micros)))
            }
            (Text { .. } | Clock(_), Moment(..)) => other.compare(self).map(Ordering::reverse),
            (Clock(one), Clock(two)) => Some(compare_clocks(one, two)),
            (Clock(one), Text { text: two, .. }) => Some(compare_clocks(one, two)),
            (Text { text: one, .. }, Clock(two)) => Some(compare_clocks(one, two)),
            (Member(_, Some(name), rule), Text { text, rule: other_rule }) => {
                Some((*rule).max(*other_rule).compare(name, text))
            }
            (Text { .. }, Member(_, Some(_), _)) => other.compare(self).map(Ordering::reverse),
            (Member(one, ..), Member(two, ..)) => Some(one.cmp(two)),
            (Member(number, ..), Number(_) | Double(_)) => {
                Number(Cow::Owned(number.to_string())).compare(other)
            }
            (Number(_) | Double(_), Member(..)) => other.compare(self).map(Ordering::reverse),
            // A member whose name isn't known is compared by its number.
            (
                Number(_) | Double(_) | Text { .. } | Bytes(_) | Clock(_) | Moment(..) | Member(..),
                Number(_) | Double(_) | Text { .. } | Bytes(_) | Clock(_) | Moment(..) | Member(..),
            ) => self.double()?.partial_cmp(&other.double()?),
        }
    }

    /// The value as text, for LIKE.
    pub(super) fn text(&self) -> Option<(Cow<'_, str>, TextRule)> {
        Some(match self {
            Scalar::Null => return None,
            Scalar::Number(text) | Scalar::Clock(text) => (Cow::Borrowed(&**text), TextRule::Codes),
            Scalar::Double(number) => (number.to_string().into(), TextRule::Letters),
            Scalar::Text { text, rule } => (Cow::Borrowed(&**text), *rule),
            Scalar::Bytes(bytes) => (String::from_utf8_lossy(bytes), TextRule::Codes),
            Scalar::Moment(seconds, _) => (local(*seconds)?.into(), TextRule::Codes),
            Scalar::Member(number, None, rule) => (number.to_string().into(), *rule),
            Scalar::Member(_, Some(name), rule) => (Cow::Borrowed(&**name), *rule),
        })
    }

    pub(super) fn double(&self) -> Option<f64> {
        match self {
            Scalar::Number(text) => text.parse().ok(),
            Scalar::Double(number) => Some(*number),
            Scalar::Text { text, .. } => Some(leading_number(text)),
            Scalar::Bytes(bytes) => Some(leading_number(&String::from_utf8_lossy(bytes))),
            // hhmmss, YYYYMMDD or YYYYMMDDhhmmss.
            Scalar::Clock(text) => {
                let digits: String = text.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
                let number: f64 = digits.parse().ok()?;
                Some(if text.starts_with('-') { -number } else { number })
            }
            Scalar::Member(number, ..) => Some(*number as f64),
            Scalar::Moment(0, 0) => Some(0.0),
            Scalar::Moment(seconds, micros) => {
                let digits: String = local(*seconds)?.chars().filter(char::is_ascii_digit).collect();
                format!("{digits}.{micros:06}").parse().ok()
            }
            Scalar::Null => None,
        }
    }
}

/// Compares texts of ASCII by the codes of their capitals, the shorter one filled up with spaces.
fn compare_padded(one: &str, two: &str) -> Ordering {
    let size = one.len().max(two.len());
    padded(one, size).cmp(&padded(two, size))
}

/// The capitals of a text, filled up with spaces.
fn padded(text: &str, size: usize) -> Vec<u8> {
    let mut padded = text.to_ascii_uppercase().into_bytes();
    padded.resize(size, b' ');
    padded
}

fn text_of<'a>(cell: &Cell<'_>, bytes: &'a [u8]) -> Cow<'a, str> {
    let charset = cell.column.charset().filter(|charset| *charset != Charset::Binary);
    charset.and_then(|charset| charset.decode(bytes)).unwrap_or_else(|| String::from_utf8_lossy(bytes))
}

fn bytes_of<'a>(cell: &Cell<'_>, bytes: Cow<'a, [u8]>) -> Scalar<'a> {
    // Only a BINARY is filled up.
    let Cow::Borrowed(bytes) = bytes else { return Scalar::Bytes(bytes) };
    let Some(collation) = cell.column.collation else {
        return match std::str::from_utf8(bytes) {
            Ok(text) => Scalar::Text { text: Cow::Borrowed(text), rule: TextRule::Codes },
            Err(_) => Scalar::Bytes(Cow::Borrowed(bytes)),
        };
    };
    if cell.column.charset() == Some(Charset::Binary) {
        return Scalar::Bytes(Cow::Borrowed(bytes));
    }
    Scalar::Text { text: text_of(cell, bytes), rule: TextRule::of(Some(collation)) }
}

/// The number that a text begins with, as the server converts it; 0 if it begins with none.
fn leading_number(text: &str) -> f64 {
    let text = text.trim_start();
    let end = text.find(|c| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E')).unwrap_or(text.len());
    (0..=end).rev().find_map(|end| text.get(..end)?.parse().ok()).unwrap_or(0.0)
}

/// Compares numbers digit by digit.
fn compare_decimals(one: &str, two: &str) -> Ordering {
    let one = Digits::of(one);
    let two = Digits::of(two);
    match (one.is_negative(), two.is_negative()) {
        (false, true) => Ordering::Greater,
        (true, false) => Ordering::Less,
        (false, false) => one.size(&two),
        (true, true) => two.size(&one),
    }
}

struct Digits<'t> {
    sign: bool,
    whole: &'t str,
    fraction: &'t str,
}

impl<'t> Digits<'t> {
    fn of(text: &'t str) -> Self {
        let (sign, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        Digits { sign, whole: whole.trim_start_matches(['+', '0']), fraction: fraction.trim_end_matches('0') }
    }

    fn is_negative(&self) -> bool {
        self.sign && !(self.whole.is_empty() && self.fraction.is_empty())
    }

    fn size(&self, other: &Digits<'_>) -> Ordering {
        let lengths = self.whole.len().cmp(&other.whole.len());
        lengths.then(self.whole.cmp(other.whole)).then(self.fraction.cmp(other.fraction))
    }
}

/// Compares dates and times as text, each field filled up.
fn compare_clocks(one: &str, two: &str) -> Ordering {
    let one = with_time(one);
    let two = with_time(two);
    if !is_date(&one) && !is_date(&two) {
        return span(&one).cmp(&span(&two));
    }
    without_zeros(&one).cmp(without_zeros(&two))
}

/// Whether a text that stands for a date or a time has a date.
pub(super) fn is_date(text: &str) -> bool {
    text.get(1..).is_some_and(|rest| rest.contains('-'))
}

/// A date or a time, a date with a time after it.
fn with_time(text: &str) -> String {
    let text = text.trim().replacen('T', " ", 1);
    match is_date(&text) && !text.contains(':') {
        true => format!("{text} 00:00:00"),
        false => text,
    }
}

/// A clock without zeros at the end of its fraction.
fn without_zeros(clock: &str) -> &str {
    match clock.contains('.') {
        true => clock.trim_end_matches('0').trim_end_matches('.'),
        false => clock,
    }
}

/// A TIME in microseconds.
fn span(text: &str) -> i64 {
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |text| (-1, text));
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds = clock.split(':').fold(0_i64, |sum, part| sum * 60 + part.parse::<i64>().unwrap_or(0));
    let micros =
        format!("{fraction:0<6}").get(..6).and_then(|digits| digits.parse::<i64>().ok()).unwrap_or(0);
    sign * (seconds.saturating_mul(1_000_000).saturating_add(micros))
}

/// A local time.
fn local_time(text: &str) -> Option<DateTime> {
    let text = text.trim().replacen(' ', "T", 1);
    let text = if text.contains('T') { text } else { format!("{text}T00:00:00") };
    text.parse().ok()
}

/// A local time, in seconds since 1970 and microseconds.
fn moment(text: &str) -> Option<(i64, u32)> {
    let time = local_time(text)?;
    let seconds = Zone::of_process().seconds(time)?;
    Some((seconds, u32::try_from(time.subsec_nanosecond() / 1000).unwrap_or(0)))
}

fn local(seconds: u32) -> Option<String> {
    let moment = jiff::Timestamp::from_second(seconds.into()).ok()?;
    Some(Zone::of_process().local(moment).0.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// Whether a text is LIKE a pattern.
pub(super) fn is_like(text: &str, pattern: &str, escape: Option<char>, rule: TextRule) -> bool {
    let rule = rule.for_letters_of(text, pattern);
    let text = rule.fold(text);
    let pattern = rule.fold(pattern);
    // Where to go on when the rest doesn't match: the last %, and how much it took.
    let mut at = 0;
    let mut rest = 0;
    let mut retry = None;
    loop {
        match pattern.get(rest) {
            Some('%') => {
                retry = Some((rest + 1, at));
                rest += 1;
                continue;
            }
            Some('_') if at < text.len() => {
                (at, rest) = (at + 1, rest + 1);
                continue;
            }
            Some(c) => {
                let is_escaped = Some(*c) == escape && rest + 1 < pattern.len();
                let step = if is_escaped { 2 } else { 1 };
                let wanted = pattern.get(rest + step - 1);
                if wanted.is_some() && wanted == text.get(at) && (is_escaped || *c != '_') {
                    (at, rest) = (at + 1, rest + step);
                    continue;
                }
            }
            None if at == text.len() => return true,
            None => {}
        }
        match retry {
            Some((behind, from)) if from < text.len() => {
                retry = Some((behind, from + 1));
                (rest, at) = (behind, from + 1);
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_exactly() {
        for (one, two, order) in [
            ("9007199254740993", "9007199254740992", Ordering::Greater),
            ("1.10", "1.1", Ordering::Equal),
            ("-0", "0.00", Ordering::Equal),
            ("-2", "-10", Ordering::Greater),
            ("007", "7", Ordering::Equal),
            ("0.05", "0.5", Ordering::Less),
        ] {
            assert_eq!(compare_decimals(one, two), order, "{one} {two}");
        }
        assert_eq!(leading_number(" 12abc"), 12.0);
        assert_eq!(leading_number("abc"), 0.0);
    }

    #[test]
    fn dates_and_times_are_compared_by_their_fields() {
        assert_eq!(compare_clocks("2026-11-22 00:00:00", "2026-11-22"), Ordering::Equal);
        assert_eq!(compare_clocks("2026-11-22 00:00:00.500000", "2026-11-22T00:00:00.5"), Ordering::Equal);
        assert_eq!(compare_clocks("2026-11-22", "2026-11-22 00:00:01"), Ordering::Less);
        assert_eq!(compare_clocks("-10:00:00", "9:00:00"), Ordering::Less);
        assert_eq!(compare_clocks("100:00:00", "99:59:59.9"), Ordering::Greater);
    }

    #[test]
    fn patterns_match_as_in_sql() {
        for (text, pattern, is) in [
            ("paid", "p%d", true),
            ("paid", "P_ID", true),
            ("paid", "p_d", false),
            ("", "%", true),
            ("a%b", "a\\%b", true),
            ("axb", "a\\%b", false),
            ("aXbXc", "%b%c", true),
            ("abc", "%b", false),
            ("a_b", "a\\_b", true),
            ("axb", "a\\_b", false),
        ] {
            assert_eq!(is_like(text, pattern, Some('\\'), TextRule::Letters), is, "{text} {pattern}");
        }
        assert!(!is_like("paid", "PAID", None, TextRule::Codes));
        assert!(is_like("José", "jos_", None, TextRule::Weights));
        assert!(is_like("José", "%SE", None, TextRule::Weights));
        assert!(!is_like("José", "josa", None, TextRule::Weights));
    }
}
