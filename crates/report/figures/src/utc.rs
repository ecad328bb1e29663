//! Times in UTC, as the server prints them, for programs. People read moments with their zone: `moment.rs`.

use jiff::Timestamp;

/// A time to the second.
pub(crate) const SECONDS: &str = "%Y-%m-%d %H:%M:%S";

/// Microseconds since 1970 as the server prints a TIMESTAMP(6), in UTC; times after the year 9999 as its last
/// moment.
pub fn utc(microseconds: u64) -> String {
    let microseconds = i64::try_from(microseconds).unwrap_or(i64::MAX);
    let time = Timestamp::from_microsecond(microseconds).unwrap_or(Timestamp::MAX);
    time.strftime("%Y-%m-%d %H:%M:%S%.6f").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_the_servers_in_utc() {
        for (microseconds, expected) in [
            (0, "1970-01-01 00:00:00.000000"),
            (951_782_399_999_999, "2000-02-28 23:59:59.999999"),
            (951_868_799_000_001, "2000-02-29 23:59:59.000001"),
            (1_763_700_000_123_456, "2025-11-21 04:40:00.123456"),
            (4_107_542_400_000_000, "2100-03-01 00:00:00.000000"),
        ] {
            assert_eq!(utc(microseconds), expected);
        }
        // No panic, whatever a log claims.
        for beyond in [u64::MAX, i64::MAX as u64, 400_000_000_000_000_000] {
            assert!(utc(beyond).starts_with("9999-12-"), "{}", utc(beyond));
        }
    }
}
