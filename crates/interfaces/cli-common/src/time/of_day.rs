//! Dates and times of day as they are written, without their zone: a date alone, a time of today, dump's own, and mysqlbinlog's.

use jiff::civil::{Date, DateTime};

use super::civil::{civil, is_fraction, microseconds};
use super::{LocalRule, NoTime};

/// A date and a time of day, as clocks of the zone show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WrittenTime {
    /// To the second.
    pub(super) time: DateTime,
    pub(super) microseconds: i64,
    /// Whether it is a day, of which the beginning counts.
    pub(super) is_day: bool,
}

impl WrittenTime {
    /// Reads a time without its zone; `today` is the day of the zone.
    pub(super) fn read(text: &str, today: Date, rule: LocalRule) -> Result<Self, NoTime> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        if let Some(day) = named_day(word, today) {
            return match rest.trim_ascii() {
                "" => Ok(Self::of_day(day)),
                rest => clock(rest).ok_or(NoTime::Text)?.on(day),
            };
        }
        if let Some(clock) = clock(text) {
            // 10:11:12.5 is 2010-11-12 05:00 to mysqlbinlog.
            return match civil(text) {
                Ok(_) if rule == LocalRule::Mysqlbinlog => Err(NoTime::DateOrClock),
                _ => clock.on(today),
            };
        }
        if is_bare_date(text) {
            return date(text).map(Self::of_day);
        }
        if let Some((day, clock)) = as_dump_prints(word, rest) {
            return clock.on(date(&day)?);
        }
        let text = with_upper_t(text);
        let (time, microseconds) = civil(&text)?;
        Ok(WrittenTime { time, microseconds, is_day: false })
    }

    fn of_day(day: Date) -> Self {
        WrittenTime { time: day.at(0, 0, 0, 0), microseconds: 0, is_day: true }
    }
}

/// Whether a word names a day.
pub(super) fn is_named_day(word: &str) -> bool {
    named_day(word, Date::ZERO).is_some()
}

fn named_day(word: &str, today: Date) -> Option<Date> {
    match word.to_ascii_lowercase().as_str() {
        "today" => Some(today),
        // No calendar of ours begins or ends today.
        "yesterday" => Some(today.yesterday().unwrap_or(today)),
        "tomorrow" => Some(today.tomorrow().unwrap_or(today)),
        _ => None,
    }
}

/// A time of day.
#[derive(Debug, Clone, Copy)]
struct WrittenClock<'t> {
    hour: i8,
    minute: i8,
    second: i8,
    fraction: &'t str,
}

impl WrittenClock<'_> {
    fn on(self, day: Date) -> Result<WrittenTime, NoTime> {
        let time = day.at(self.hour, self.minute, self.second, 0);
        Ok(WrittenTime { time, microseconds: microseconds(self.fraction)?, is_day: false })
    }
}

/// `h:mm`, `hh:mm:ss` or `hh:mm:ss.fraction`.
fn clock(text: &str) -> Option<WrittenClock<'_>> {
    let (hour, rest) = text.split_once(':')?;
    let (minute, second) = rest.split_once(':').unwrap_or((rest, "00"));
    let (second, fraction) = second.split_once('.').unwrap_or((second, ""));
    let fields = [(hour, 23), (minute, 59), (second, 59)].map(|(field, maximum)| {
        let is_short = !field.is_empty() && field.len() <= 2 && is_fraction(field);
        field.parse::<i8>().ok().filter(|number| is_short && *number <= maximum)
    });
    let [Some(hour), Some(minute), Some(second)] = fields else { return None };
    is_fraction(fraction).then_some(WrittenClock { hour, minute, second, fraction })
}

/// `2026-11-27`.
pub(super) fn is_bare_date(text: &str) -> bool {
    let form = text.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte });
    form.eq(*b"0000-00-00")
}

fn date(text: &str) -> Result<Date, NoTime> {
    let mut fields = text.split('-').map(|field| field.parse::<u32>().unwrap_or(0));
    let [year, month, day] = [(); 3].map(|()| fields.next().unwrap_or(0));
    let of_calendar = |number: u32| i8::try_from(number).ok();
    let date = i16::try_from(year)
        .ok()
        .zip(of_calendar(month).zip(of_calendar(day)))
        .and_then(|(year, (month, day))| Date::new(year, month, day).ok());
    date.filter(|_| year > 0).ok_or(NoTime::Date { year, month, day })
}

/// The head of an event, as dump and mysqlbinlog print it: `261122  1:02:03`. The date as `2026-11-22`.
fn as_dump_prints<'t>(day: &str, rest: &'t str) -> Option<(String, WrittenClock<'t>)> {
    let day = day.strip_prefix('#').unwrap_or(day);
    let (year, date) = day.split_at_checked(2)?;
    let (month, day) = date.split_at_checked(2)?;
    let is_day = day.len() == 2 && [year, month, day].into_iter().all(is_fraction);
    let century = if year < "70" { 20 } else { 19 };
    let clock = clock(rest.trim_ascii()).filter(|_| is_day)?;
    Some((format!("{century}{year}-{month}-{day}"), clock))
}

/// RFC 3339 allows a small t.
fn with_upper_t(text: &str) -> String {
    let is_t = |(place, byte): (usize, u8)| place == "2026-11-22".len() && byte == b't';
    if text.bytes().enumerate().any(is_t) { text.replacen('t', "T", 1) } else { text.to_owned() }
}
