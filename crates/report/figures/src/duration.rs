//! Durations as people write them in options and configurations: `30s`, `5m`, `7d`.

use std::time::Duration;

use jiff::{Span, SpanRelativeTo};

/// Reads a duration, which is above zero and has a unit: `90s`, `1h30m`, `7d`, `250ms`.
///
/// # Errors
///
/// The text is no such duration; the error says what was expected.
pub fn duration(text: &str) -> Result<Duration, String> {
    let span = text.parse::<Span>().ok();
    let duration = span.and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()).ok());
    duration
        .and_then(|duration| Duration::try_from(duration).ok())
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| format!("{text:?}, expected a time such as 30s, 5m or 7d"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, ms) in [
            ("7d", 604_800_000),
            ("30s", 30_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("250ms", 250),
            ("0.5s", 500),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "7", "0s", "d", "-5s", "5s ago", "1y", "2mo", "NaN", "inf", "1e9d"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
