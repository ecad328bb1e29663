//! Sizes and durations as users write them in options and configurations: `500K`, `20M`, `1G`; `30s`, `5m`, `7d`.
//!
//! `binlogz-figures` reads both, for configurations too; here are the bounds of options.

use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

pub use binlogz_figures::{byte_size as size, duration};

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
    fn zero_is_no_size_where_one_is_needed() {
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
