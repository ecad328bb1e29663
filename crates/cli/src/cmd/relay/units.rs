//! Sizes and times as a configuration writes them: `500G`, `7d`.

use std::time::Duration;

/// A number and its unit: K, M, G or T, powers of 1024 as in MySQL's options.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let units = [("", 1), ("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30), ("T", 1 << 40)];
    number(text, &units).ok_or_else(|| format!("size {text:?}, expected a number with K, M, G or T"))
}

/// A number and its unit: s, m, h or d.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let units = [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)];
    let seconds = number(text, &units).filter(|seconds| *seconds > 0);
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| format!("time {text:?}, expected a number with s, m, h or d"))
}

fn number(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let (_, factor) = units.iter().find(|(unit, _)| Some(*unit) == text.get(digits.len()..))?;
    digits.parse::<u64>().ok()?.checked_mul(*factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        assert_eq!(bytes("500G"), Ok(500 << 30));
        assert_eq!(bytes("4096"), Ok(4096));
        assert_eq!(time("7d"), Ok(Duration::from_secs(604_800)));
        for text in ["", "G", "5X", "-1G", "99999999999T", "1.5G"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        for text in ["", "7", "0s", "d"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
