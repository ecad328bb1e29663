//! Sizes and durations as users write them in options and configurations: `500K`, `20M`, `1G`; `30s`, `5m`, `7d`.
//!
//! One rule for all commands. K, M, G and T are powers of 1024, as in MySQL's own options: `max_binlog_size = 1G` means the
//! same in `my.cnf` and in `relay.toml`. (The crate bytesize reads K as 1000 and goes through `f64`.)

use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

pub use binlogz_figures::duration;

/// Reads a size in bytes: a number, alone or with K, M, G or T.
pub fn size(text: &str) -> Result<u64, String> {
    let units = [("", 1), ("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30), ("T", 1_u64 << 40)];
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = text.get(digits.len()..).unwrap_or_default();
    let factor = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).map(|(_, factor)| factor);
    // Anything but digits, such as a sign, is not a size.
    let number =
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u64>().ok()).flatten();
    number
        .zip(factor)
        .and_then(|(number, factor)| number.checked_mul(*factor))
        .ok_or_else(|| format!("{text:?}, expected a size such as 4096, 500K, 20M or 1G"))
}

/// Reads a size in bytes that is above zero.
pub fn size_above_zero(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err(format!("{text:?}, expected a size above zero")),
        size => Ok(size),
    }
}

/// Reads a number that is not zero.
pub fn above_zero(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "expected a number above 0".to_owned())
}

/// The number of worker threads: as requested, or one for each core.
pub fn workers(jobs: Option<NonZeroUsize>) -> usize {
    jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
}

/// Reads a duration as [`duration`] does, or `0`.
pub fn duration_or_zero(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { duration(text) }
}

/// Reads a duration as [`duration`] does; a number alone is seconds. Not for options that delete older data: there a user
/// may mean `7` as days.
pub fn duration_or_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match seconds.filter(|duration| !duration.is_zero()) {
        Some(duration) => Ok(duration),
        None => duration(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        for (text, bytes) in
            [("4096", 4096), ("500k", 500 << 10), ("20M", 20 << 20), ("500G", 500 << 30), ("1T", 1 << 40)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "G", "5X", "-1G", "+1G", "99999999999T", "1.5G", "1 G", "0x10", "1GG"] {
            assert!(size(text).is_err(), "{text}");
        }
        assert!(size_above_zero("0K").is_err());
        assert_eq!(size_above_zero("7"), Ok(7));
    }

    #[test]
    fn a_number_alone_may_be_seconds() {
        assert_eq!(duration_or_seconds("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration_or_seconds("2m"), Ok(Duration::from_secs(120)));
        for text in ["0", "-1", "NaN", "inf", "1e300", "x"] {
            assert!(duration_or_seconds(text).is_err(), "{text}");
        }
    }
}
