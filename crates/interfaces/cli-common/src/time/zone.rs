//! The zone at the end of a time, and the moment that the time is there.

use binlogz_figures::Zone;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset};

use super::civil::is_fraction;
use super::of_day::{WrittenTime, is_bare_date, is_named_day};
use super::{LocalRule, NoTime};

/// The farthest any clock is from Greenwich, in hours.
const OFFSET_HOURS_MAX: i32 = 14;

/// The zone of a time as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WrittenZone<'t> {
    /// None: that of the process.
    Local,
    Offset(Offset),
    /// The name of the process's zone at that time.
    Named(&'t str),
}

/// Separates a time from the zone after it. MySQL has none and would take an offset's hours for
/// seconds, so a sign counts after a time with a colon, or after digits that are a whole date and time.
pub(super) fn split(text: &str) -> (&str, WrittenZone<'_>) {
    if let Some((time, name)) = text.rsplit_once(' ').filter(|(_, word)| is_name(word)) {
        let is_utc = ["UTC", "GMT"].iter().any(|utc| name.eq_ignore_ascii_case(utc));
        let zone = if is_utc { WrittenZone::Offset(Offset::UTC) } else { WrittenZone::Named(name) };
        return (time.trim_ascii_end(), zone);
    }
    if let Some(time) = text.strip_suffix(['Z', 'z']) {
        return (time.trim_ascii_end(), WrittenZone::Offset(Offset::UTC));
    }
    let sign = text.rfind(['+', '-']).unwrap_or(0);
    let (time, offset) = text.split_at(sign);
    let (digits, fraction) = time.split_once('.').unwrap_or((time, ""));
    let is_whole = digits.len() >= "YYMMDDHHMM".len()
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'T')
        && is_fraction(fraction);
    let may_have_one = time.contains(':') || is_whole || is_named_day(time.trim_ascii_end());
    match may_have_one.then(|| parse_offset(offset)).flatten() {
        Some(offset) => (time.trim_ascii_end(), WrittenZone::Offset(offset)),
        None => (text, WrittenZone::Local),
    }
}

fn is_name(word: &str) -> bool {
    word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Whether a date is followed by what may be an offset, or the hour that mysqlbinlog takes it for.
pub(super) fn is_day_before_offset(text: &str) -> bool {
    let Some((day, rest)) = text.split_at_checked("2026-11-22".len()) else { return false };
    is_bare_date(day)
        && rest.trim_ascii_start().starts_with(['+', '-'])
        && !rest.contains('.')
        && parse_offset(rest.trim_ascii_start()).is_some()
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

/// When it is, in seconds since 1970; `None` if that is later than all times.
pub(super) fn seconds(
    written: &WrittenTime,
    zone: WrittenZone<'_>,
    local: &Zone,
    rule: LocalRule,
) -> Result<Option<i64>, NoTime> {
    let time = written.time;
    match zone {
        WrittenZone::Offset(offset) => Ok(seconds_at(offset, time)),
        WrittenZone::Local if written.is_day => Ok(local.start_of_day(time.date()).map(Timestamp::as_second)),
        WrittenZone::Local if rule == LocalRule::Mysqlbinlog => Ok(local.seconds(time)),
        WrittenZone::Local => once(time, local),
        WrittenZone::Named(name) => under_name(time, name, local),
    }
}

fn seconds_at(offset: Offset, time: DateTime) -> Option<i64> {
    offset.to_timestamp(time).ok().map(Timestamp::as_second)
}

/// A local time that clocks show once.
fn once(time: DateTime, local: &Zone) -> Result<Option<i64>, NoTime> {
    match local.offsets(time) {
        AmbiguousOffset::Unambiguous { offset } => Ok(seconds_at(offset, time)),
        AmbiguousOffset::Fold { before, after } => Err(NoTime::Twice(with(time, before), with(time, after))),
        AmbiguousOffset::Gap { before, after } => {
            Err(NoTime::Never(format!("from {} to {}", in_words(before), in_words(after))))
        }
    }
}

/// A local time while the zone is called so.
fn under_name(time: DateTime, name: &str, local: &Zone) -> Result<Option<i64>, NoTime> {
    let is_called_so = |offset: Offset| {
        let timestamp = offset.to_timestamp(time).ok();
        timestamp.is_some_and(|timestamp| local.local(timestamp) == (time, name.to_owned()))
    };
    let unknown = || NoTime::ZoneName(name.to_owned());
    match local.offsets(time) {
        AmbiguousOffset::Unambiguous { offset } if is_called_so(offset) => Ok(seconds_at(offset, time)),
        AmbiguousOffset::Fold { before, after } => match (is_called_so(before), is_called_so(after)) {
            (true, false) => Ok(seconds_at(before, time)),
            (false, true) => Ok(seconds_at(after, time)),
            (true, true) => Err(NoTime::Twice(with(time, before), with(time, after))),
            (false, false) => Err(unknown()),
        },
        AmbiguousOffset::Gap { .. } => once(time, local),
        AmbiguousOffset::Unambiguous { .. } => Err(unknown()),
    }
}

/// A time with its offset, as an option takes it.
fn with(time: DateTime, offset: Offset) -> String {
    format!("{}{}", time.strftime("%Y-%m-%d %H:%M:%S"), in_words(offset))
}

/// `+01:00`.
fn in_words(offset: Offset) -> String {
    let minutes = offset.seconds() / 60;
    let sign = if minutes < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
}
