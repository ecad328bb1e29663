//! Masks dates and times. `temporal.rs` in the crate of the format has the table of their bytes.
//!
//! A hash is another date between the years 1000 and 9999, or before them if the value is; of a fraction of a second, other digits.
//! A date with a month or a day of zero becomes the zero date.

use binlogz_binlog::Error as BinlogError;
use binlogz_binlog::row::{ColumnClass, ColumnKind, Date, DateTime, Fraction, Time, Timestamp, Value};

use super::calendar::CalendarDate;
use super::permutation::{permute_below, permute_digits};
use crate::secret::MaskKey;

const DAY_SECONDS: u64 = 86_400;
/// Seconds below those of the longest TIME, 838:59:59, which can't have a fraction.
const TIME_SECONDS_MAX: u64 = 3_020_399;
/// The first day that a server promises to store, and the one after the last.
const FIRST_YEAR: u16 = 1000;
const LAST: CalendarDate = CalendarDate { year: 9999, month: 12, day: 31 };

/// A date and a time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    /// `None`: the zero date.
    pub(super) date: Option<CalendarDate>,
    /// Since midnight.
    pub(super) seconds: u32,
    pub(super) microseconds: u32,
}

/// Whether values of this type have a year.
pub(super) fn has_year(kind: ColumnKind) -> bool {
    use ColumnClass as Class;
    matches!(kind.class(), Class::Year | Class::Date | Class::DateTime(_) | Class::Timestamp(_))
}

/// The first moment of a value's year; of a TIMESTAMP, in UTC. What is no date stays zero.
pub(super) fn year(value: Value<'_>, kind: ColumnKind) -> Result<Vec<u8>, BinlogError> {
    let first = |year: u16| Moment { date: CalendarDate::new(year, 1, 1), seconds: 0, microseconds: 0 };
    let moment = match value {
        Value::Year(year) => return Ok(vec![(year.saturating_sub(1900)) as u8]),
        Value::Date(date) => first(date.year()),
        Value::DateTime(datetime) => first(datetime.date().year()),
        Value::Timestamp(timestamp) => match timestamp.seconds() {
            0 => first(0),
            seconds => first(CalendarDate::of_days(i64::from(seconds) / DAY_SECONDS as i64).year),
        },
        _ => return Err(BinlogError::invalid("row value", "value", "no date", "one with a year")),
    };
    let moment = if moment.date.is_some_and(|date| date.year == 0) { first_zero() } else { moment };
    Ok(put(moment, kind))
}

fn first_zero() -> Moment {
    Moment { date: None, seconds: 0, microseconds: 0 }
}

/// The hash of a date or time.
pub(super) fn hashed(key: &MaskKey, value: Value<'_>, kind: ColumnKind) -> Result<Vec<u8>, BinlogError> {
    Ok(match value {
        Value::Date(date) => put(hashed_date(key, date), kind),
        Value::DateTime(datetime) => put(hashed_datetime(key, datetime), kind),
        Value::Timestamp(timestamp) => {
            let seconds = timestamp.seconds();
            let microseconds = hashed_fraction(key, timestamp.fraction());
            // Those after 2038, which only some servers have, among themselves.
            let signed = i32::MAX as u64;
            let permuted = match u64::from(seconds) {
                0 => 0,
                before if before <= signed => 1 + permute_below(key, "timestamp", before - 1, signed),
                after => signed + 1 + permute_below(key, "late timestamp", after - signed - 1, signed + 1),
            };
            put_timestamp(permuted, microseconds, kind)
        }
        Value::Time(time) => put_time(hashed_time(key, time), kind),
        _ => return Err(BinlogError::invalid("row value", "value", "no date or time", "one")),
    })
}

fn calendar_date(date: Date) -> Option<CalendarDate> {
    CalendarDate::new(date.year(), date.month(), date.day()).filter(|date| date.year > 0 && date.year <= 9999)
}

/// The days among which a date is permuted: the first, and how many.
fn days_around(date: CalendarDate) -> (i64, u64) {
    let first = CalendarDate { year: FIRST_YEAR, month: 1, day: 1 }.days();
    let earliest = CalendarDate { year: 1, month: 1, day: 1 }.days();
    match date.year < FIRST_YEAR {
        true => (earliest, (first - earliest) as u64),
        false => (first, (LAST.days() - first + 1) as u64),
    }
}

fn hashed_date(key: &MaskKey, date: Date) -> Moment {
    let Some(date) = calendar_date(date) else { return first_zero() };
    let (first, count) = days_around(date);
    let permuted = permute_below(key, "date", (date.days() - first) as u64, count);
    Moment { date: Some(CalendarDate::of_days(first + permuted as i64)), seconds: 0, microseconds: 0 }
}

fn hashed_datetime(key: &MaskKey, datetime: DateTime) -> Moment {
    let Some(date) = calendar_date(datetime.date()) else { return first_zero() };
    let [hours, minutes, seconds] = [datetime.hours(), datetime.minutes(), datetime.seconds()].map(u64::from);
    let of_day = (hours * 3600 + minutes * 60 + seconds).min(DAY_SECONDS - 1);
    let (first, count) = days_around(date);
    let own = (date.days() - first) as u64 * DAY_SECONDS + of_day;
    let permuted = permute_below(key, "datetime", own, count * DAY_SECONDS);
    Moment {
        date: Some(CalendarDate::of_days(first + (permuted / DAY_SECONDS) as i64)),
        seconds: (permuted % DAY_SECONDS) as u32,
        microseconds: hashed_fraction(key, datetime.fraction()),
    }
}

/// A length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Duration {
    pub(super) is_negative: bool,
    pub(super) seconds: u64,
    pub(super) microseconds: u32,
}

fn hashed_time(key: &MaskKey, time: Time) -> Duration {
    let [minutes, seconds] = [time.minutes(), time.seconds()].map(u64::from);
    let own = u64::from(time.hours()) * 3600 + minutes * 60 + seconds;
    let microseconds = hashed_fraction(key, time.fraction());
    let permuted = match own {
        0 => 0,
        own => 1 + permute_below(key, "time", own.min(TIME_SECONDS_MAX - 1) - 1, TIME_SECONDS_MAX - 1),
    };
    let is_zero = permuted == 0 && microseconds == 0;
    Duration { is_negative: time.is_negative() && !is_zero, seconds: permuted, microseconds }
}

/// The digits that the column keeps, permuted. A whole second stays one.
fn hashed_fraction(key: &MaskKey, fraction: Fraction) -> u32 {
    let count = u32::from(fraction.digits().min(6));
    let unit = 10_u32.pow(6 - count);
    let kept = fraction.microseconds() / unit;
    let mut digits: Vec<u8> = (0..count).rev().map(|place| (kept / 10_u32.pow(place) % 10) as u8).collect();
    if kept == 0 {
        return 0;
    }
    permute_digits(key, "fraction", &mut digits, 10);
    while digits.iter().all(|&digit| digit == 0) {
        permute_digits(key, "fraction", &mut digits, 10);
    }
    digits.iter().fold(0, |value, digit| value * 10 + u32::from(*digit)) * unit
}

/// The bytes of a date or a moment in a column of this type.
pub(super) fn put(moment: Moment, kind: ColumnKind) -> Vec<u8> {
    let CalendarDate { year, month, day } = moment.date.unwrap_or(CalendarDate { year: 0, month: 0, day: 0 });
    let date = Date::new(year, month, day);
    match kind.class() {
        ColumnClass::Date => date.encode(),
        ColumnClass::DateTime(Some(digits)) => {
            DateTime::new(date, moment.seconds, Fraction::of(moment.microseconds, digits)).encode()
        }
        ColumnClass::DateTime(None) => DateTime::new(date, moment.seconds, Fraction::NONE).encode_old(),
        ColumnClass::Timestamp(_) => {
            let since_1970 = match moment.date {
                None => 0,
                // The first second of 1970 is the zero date.
                Some(date) => (date.days() * DAY_SECONDS as i64 + i64::from(moment.seconds)).max(1) as u64,
            };
            put_timestamp(since_1970, moment.microseconds, kind)
        }
        ColumnClass::Year => vec![year.saturating_sub(1900) as u8],
        // A mask of dates fits none of these (`has_year`, `hash_fits`, `fixed`).
        ColumnClass::Time(_) | ColumnClass::Integer | ColumnClass::Decimal | ColumnClass::Float => Vec::new(),
        ColumnClass::Bit | ColumnClass::Member | ColumnClass::String | ColumnClass::Json => Vec::new(),
        ColumnClass::Geometry | ColumnClass::Vector | ColumnClass::Hidden => Vec::new(),
    }
}

fn put_timestamp(seconds: u64, microseconds: u32, kind: ColumnKind) -> Vec<u8> {
    match kind {
        ColumnKind::Timestamp { fraction_digits } => {
            Timestamp::new(seconds as u32, Fraction::of(microseconds, fraction_digits)).encode()
        }
        _ => Timestamp::new(seconds as u32, Fraction::NONE).encode_old(),
    }
}

/// The bytes of a length of time in a column of this type.
pub(super) fn put_time(time: Duration, kind: ColumnKind) -> Vec<u8> {
    let (is_negative, seconds) = (time.is_negative, time.seconds as u32);
    match kind {
        ColumnKind::Time { fraction_digits } => {
            Time::of_seconds(is_negative, seconds, Fraction::of(time.microseconds, fraction_digits)).encode()
        }
        _ => Time::of_seconds(is_negative, seconds, Fraction::NONE).encode_old(),
    }
}
