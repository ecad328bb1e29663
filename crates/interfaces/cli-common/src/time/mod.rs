//! Moments that users give, one parser for all commands. What we print ([`binlogz_figures::moment()`]) is taken everywhere.
//!
//! ```text
//! a date and a time    as mysqlbinlog takes them (civil.rs), RFC 3339, or as dump prints them: 261122  1:02:03
//! a date               2026-11-27: its beginning
//! a time of day        10:42, 10:42:17.5: of today; after today, yesterday or tomorrow: of that day
//! then                 nothing: local time; Z or UTC; +hh:mm, +hhmm, +hh: that far east of Greenwich; CET: the
//!                      zone's own name at that time
//! otherwise            now, -1h, -1h30m, -2d: before now; @SECONDS[.fraction] since 1970
//! ```
//!
//! A local time that clocks show twice or never is an error, except where mysqlbinlog's options are taken: there it is the moment that
//! mysqlbinlog takes. No fraction is dropped.

mod civil;
mod no_time;
mod of_day;
mod zone;

use std::str::FromStr;
use std::sync::OnceLock;

use binlogz_figures::Zone;
pub use binlogz_figures::moment_of_second as shown;
use jiff::Timestamp;
use jiff::civil::Date;

pub use no_time::NoTime;
use of_day::WrittenTime;
use zone::WrittenZone;

/// Microseconds in a second.
const MICROSECONDS: i64 = 1_000_000;

/// A moment that a user gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GivenTime {
    microseconds: i64,
}

impl GivenTime {
    /// The moment that an option of mysqlbinlog's gives: of a text that mysqlbinlog takes, the one that it takes.
    ///
    /// # Errors
    ///
    /// Why the text is no moment.
    pub fn of_mysqlbinlog(text: &str) -> Result<Self, NoTime> {
        read(text, PresentMoment::of_process(), LocalRule::Mysqlbinlog)
    }

    /// A moment that may be told against now, as `-1h`, where a run may go on for days: each call has its own now.
    ///
    /// # Errors
    ///
    /// Why the text is no moment.
    pub fn against_now(text: &str) -> Result<Self, NoTime> {
        let now = PresentMoment { timestamp: Timestamp::now(), zone: Zone::of_process() };
        read(text, now, LocalRule::Exact)
    }

    /// Since 1970.
    pub fn microseconds(self) -> i64 {
        self.microseconds
    }

    fn of(seconds: Option<i64>, microseconds: i64) -> Self {
        // No timestamp is so late; no log either.
        let seconds = seconds.unwrap_or(i64::MAX);
        GivenTime { microseconds: seconds.saturating_mul(MICROSECONDS).saturating_add(microseconds) }
    }
}

impl FromStr for GivenTime {
    type Err = NoTime;

    fn from_str(text: &str) -> Result<Self, NoTime> {
        read(text, PresentMoment::of_process(), LocalRule::Exact)
    }
}

/// What a local time means that isn't one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LocalRule {
    /// An error.
    Exact,
    /// What it means to mysqlbinlog.
    Mysqlbinlog,
}

/// Now, for times such as `-1h`: the same moment for a whole run.
#[derive(Debug, Clone, Copy)]
struct PresentMoment<'z> {
    timestamp: Timestamp,
    zone: &'z Zone,
}

impl PresentMoment<'static> {
    fn of_process() -> Self {
        static NOW: OnceLock<Timestamp> = OnceLock::new();
        PresentMoment { timestamp: *NOW.get_or_init(Timestamp::now), zone: Zone::of_process() }
    }
}

impl PresentMoment<'_> {
    /// The day that calendars show there.
    fn today(&self, zone: WrittenZone<'_>) -> Date {
        match zone {
            WrittenZone::Offset(offset) => offset.to_datetime(self.timestamp).date(),
            WrittenZone::Local | WrittenZone::Named(_) => self.zone.local(self.timestamp).0.date(),
        }
    }
}

fn read(text: &str, now: PresentMoment<'_>, rule: LocalRule) -> Result<GivenTime, NoTime> {
    let text = text.trim_ascii();
    if text.eq_ignore_ascii_case("now") {
        return Ok(GivenTime { microseconds: now.timestamp.as_microsecond() });
    }
    if let Some(text) = text.strip_prefix('@') {
        return since_1970(text);
    }
    if let Some(ago) = text.strip_prefix('-') {
        let ago = binlogz_figures::duration(ago).map_err(|_| NoTime::Ago)?;
        let ago = i64::try_from(ago.as_micros()).unwrap_or(i64::MAX);
        return Ok(GivenTime { microseconds: now.timestamp.as_microsecond().saturating_sub(ago) });
    }
    if rule == LocalRule::Exact && zone::is_day_before_offset(text) {
        return Err(NoTime::HourOrOffset);
    }
    let (text, zone) = zone::split(text);
    let written = WrittenTime::read(text, now.today(zone), rule)?;
    let seconds = zone::seconds(&written, zone, now.zone, rule)?;
    Ok(GivenTime::of(seconds, written.microseconds))
}

fn since_1970(text: &str) -> Result<GivenTime, NoTime> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = !seconds.is_empty() && civil::is_fraction(seconds) && civil::is_fraction(fraction);
    let seconds = seconds.parse().ok().filter(|_| is_number).ok_or(NoTime::Text)?;
    Ok(GivenTime::of(Some(seconds), civil::microseconds(fraction)?))
}

#[cfg(test)]
mod tests;
