//! Times as mysqlbinlog writes them: in the time zone of the process.

use binlogz_figures::Zone;
use jiff::Timestamp;

use crate::number::push_unsigned;

/// The time zone, and the last result: neighbouring events share their second.
#[derive(Debug, Clone)]
pub(crate) struct LocalTime {
    zone: &'static Zone,
    short: (u32, Vec<u8>),
    long: (i64, Vec<u8>, Vec<u8>),
}

impl LocalTime {
    pub(crate) fn new() -> Self {
        let mut time =
            LocalTime { zone: Zone::of_process(), short: (0, Vec::new()), long: (0, Vec::new(), Vec::new()) };
        time.look_up_short(0);
        time.look_up_long(0);
        time
    }

    /// `261121  1:56:30`.
    #[inline]
    pub(crate) fn push_short(&mut self, out: &mut Vec<u8>, seconds: u32) {
        if self.short.0 != seconds {
            self.look_up_short(seconds);
        }
        out.extend_from_slice(&self.short.1);
    }

    /// `2026-11-21 01:56:31.144040 UTC`.
    #[inline]
    pub(crate) fn push_long(&mut self, out: &mut Vec<u8>, microseconds: u64) {
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
        let (time, _) = self.zone.local(time);
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
        let (time, name) = self.zone.local(timestamp);
        let (_, text, zone) = &mut self.long;
        *text = time.strftime("%Y-%m-%d %H:%M:%S").to_string().into_bytes();
        *zone = name.into_bytes();
        self.long.0 = seconds;
    }
}

/// Appends a number, padded to at least `width` characters.
pub(crate) fn push_padded(out: &mut Vec<u8>, number: u64, width: usize, pad: u8) {
    let mut limit = 10;
    for _ in 1..width {
        if number < limit {
            out.push(pad);
        }
        limit *= 10;
    }
    // The leading zeros are already there: this is the number itself.
    push_unsigned(out, number);
}
