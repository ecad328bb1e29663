//! Times as mysqlbinlog writes them: in the time zone of the process.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::number::push_unsigned;

/// The time zone, and what was asked last: neighbours share their second.
#[derive(Debug, Clone)]
pub(super) struct LocalTime {
    zone: TimeZone,
    short: (u32, Vec<u8>),
    long: (i64, Vec<u8>, Vec<u8>),
}

impl LocalTime {
    /// `zone`: none for that of the process.
    pub(super) fn new() -> Self {
        let mut time =
            LocalTime { zone: TimeZone::system(), short: (0, Vec::new()), long: (0, Vec::new(), Vec::new()) };
        time.look_up_short(0);
        time.look_up_long(0);
        time
    }

    /// `261121  1:56:30`.
    #[inline]
    pub(super) fn push_short(&mut self, out: &mut Vec<u8>, seconds: u32) {
        if self.short.0 != seconds {
            self.look_up_short(seconds);
        }
        out.extend_from_slice(&self.short.1);
    }

    /// `2026-11-21 01:56:31.144040 UTC`.
    #[inline]
    pub(super) fn push_long(&mut self, out: &mut Vec<u8>, microseconds: u64) {
        let seconds = (microseconds / 1_000_000) as i64;
        if self.long.0 != seconds {
            self.look_up_long(seconds);
        }
        out.extend_from_slice(&self.long.1);
        out.push(b'.');
        push_padded(out, microseconds % 1_000_000, 6, b'0');
        out.push(b' ');
        out.extend_from_slice(&self.long.2);
    }

    #[cold]
    fn look_up_short(&mut self, seconds: u32) {
        let time = Timestamp::from_second(i64::from(seconds)).unwrap_or_default();
        let time = self.zone.to_datetime(time);
        let (_, text) = &mut self.short;
        text.clear();
        for (number, pad) in
            [(i64::from(time.year()) % 100, b'0'), (time.month().into(), b'0'), (time.day().into(), b'0')]
        {
            push_padded(text, number.unsigned_abs(), 2, pad);
        }
        text.push(b' ');
        push_padded(text, time.hour().unsigned_abs().into(), 2, b' ');
        for number in [time.minute(), time.second()] {
            text.push(b':');
            push_padded(text, number.unsigned_abs().into(), 2, b'0');
        }
        self.short.0 = seconds;
    }

    #[cold]
    fn look_up_long(&mut self, seconds: i64) {
        let timestamp = Timestamp::from_second(seconds).unwrap_or_default();
        let time = timestamp.to_zoned(self.zone.clone());
        let (_, text, zone) = &mut self.long;
        *text = time.strftime("%Y-%m-%d %H:%M:%S").to_string().into_bytes();
        *zone = time.strftime("%Z").to_string().into_bytes();
        self.long.0 = seconds;
    }
}

/// A local date and time in seconds since 1970. Days that a month has not are those of the next.
pub fn local_seconds([year, month, day]: [i64; 3], [hour, minute, second]: [i64; 3]) -> i64 {
    use jiff::Span;
    use jiff::civil::Date;

    let first = Date::new(year as i16, month.clamp(1, 12) as i8, 1).unwrap_or_default();
    let date = first.saturating_add(Span::new().days(day.max(1) - 1));
    let time = date.at(hour as i8, minute as i8, second as i8, 0);
    let zoned = TimeZone::system().to_ambiguous_zoned(time).compatible();
    zoned.map_or(0, |zoned| zoned.timestamp().as_second())
}

/// Appends a number in at least so many characters.
pub(super) fn push_padded(out: &mut Vec<u8>, number: u64, width: usize, pad: u8) {
    let mut limit = 10;
    for _ in 1..width {
        if number < limit {
            out.push(pad);
        }
        limit *= 10;
    }
    // The zeros in front were pushed: this is the number itself.
    push_unsigned(out, number);
}
