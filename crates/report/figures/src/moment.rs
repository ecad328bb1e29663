//! Moments as people read them, always with their zone: in the zone of the process, or in UTC where a page is read anywhere. Every option
//! that takes a moment takes these texts.

use jiff::Timestamp;

use crate::Zone;
use crate::utc::{SECONDS, utc};

/// Microseconds since 1970 in the zone of the process: `2026-11-22 23:10:42.123456 CET`.
pub fn moment(microseconds: u64) -> String {
    let (text, zone) = in_zone(microseconds, Zone::of_process(), "%Y-%m-%d %H:%M:%S.%6f");
    format!("{text} {zone}")
}

/// Seconds since 1970 in the zone of the process: `2026-11-22 23:10:42 CET`.
pub fn moment_of_second(seconds: u32) -> String {
    let (text, zone) = in_zone(u64::from(seconds) * 1_000_000, Zone::of_process(), SECONDS);
    format!("{text} {zone}")
}

/// Seconds since 1970 in UTC: `2026-11-22 22:10:42 UTC`.
pub fn utc_second(seconds: u32) -> String {
    format!("{} UTC", timestamp(u64::from(seconds) * 1_000_000).strftime(SECONDS))
}

/// How much of a moment a cell shows. Programs get the same digits in UTC, without a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MomentDigits {
    /// `2026-11-22 23:10`
    Minutes,
    /// `2026-11-22 23:10:42.123456`
    Microseconds,
}

impl MomentDigits {
    /// In the zone of the process, with its name.
    pub(crate) fn local(self, microseconds: u64) -> String {
        match self {
            MomentDigits::Microseconds => moment(microseconds),
            MomentDigits::Minutes => {
                let (text, zone) = in_zone(microseconds, Zone::of_process(), "%Y-%m-%d %H:%M");
                format!("{text} {zone}")
            }
        }
    }

    /// In UTC, without a zone.
    pub fn utc(self, microseconds: u64) -> String {
        let text = utc(microseconds);
        match self {
            MomentDigits::Microseconds => text,
            MomentDigits::Minutes => text.get(.."2026-11-22 23:10".len()).unwrap_or(&text).to_owned(),
        }
    }
}

fn in_zone(microseconds: u64, zone: &Zone, form: &str) -> (String, String) {
    let (time, name) = zone.local(timestamp(microseconds));
    // A zone that isn't known is UTC, and may have no name.
    let name = if name.is_empty() { "UTC".to_owned() } else { name };
    (time.strftime(form).to_string(), name)
}

fn timestamp(microseconds: u64) -> Timestamp {
    let microseconds = i64::try_from(microseconds).unwrap_or(i64::MAX);
    Timestamp::from_microsecond(microseconds).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINTER: u64 = 1_795_235_858_123_456;

    #[test]
    fn moments_have_a_zone() {
        let unknown = Zone::named("x");
        for (zone, expected) in [
            (Zone::named("Europe/Berlin"), ("2026-11-21 05:37:38", "CET")),
            (Zone::named("Asia/Kathmandu"), ("2026-11-21 10:22:38", "+0545")),
            (unknown, ("2026-11-21 04:37:38", "UTC")),
        ] {
            let (text, name) = in_zone(WINTER, &zone, SECONDS);
            assert_eq!((text.as_str(), name.as_str()), expected);
        }
        assert_eq!(utc_second(1_795_235_858), "2026-11-21 04:37:38 UTC");
        assert_eq!(MomentDigits::Minutes.utc(WINTER), "2026-11-21 04:37");
        assert_eq!(MomentDigits::Microseconds.utc(WINTER), "2026-11-21 04:37:38.123456");
        assert!(MomentDigits::Minutes.utc(u64::MAX).starts_with("9999-12-"));
    }
}
