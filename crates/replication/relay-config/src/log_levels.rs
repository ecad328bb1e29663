//! Which of the relay's log lines are shown, and in which format: `info`, or `info,binlogz_relay::serve=debug` with a level for a part.
//! The program that runs the relay listens to them.

use serde::Deserialize;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

/// Our own targets begin with it; a level without a target is theirs.
pub const OWN_TARGETS: &str = "binlogz";
/// Other crates that log are heard from this level on, unless they are named.
const OTHERS: LevelFilter = LevelFilter::WARN;

/// The format of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
}

/// The format of the log, and the levels that are shown.
#[derive(Debug, Clone, PartialEq)]
pub struct LogSettings {
    /// The format.
    pub format: LogFormat,
    /// The levels that are shown.
    pub levels: Targets,
}

/// The levels of a configuration that names none.
#[must_use]
pub fn default_levels() -> Targets {
    with_level(LevelFilter::INFO)
}

fn with_level(level: LevelFilter) -> Targets {
    Targets::new().with_default(level.min(OTHERS)).with_target(OWN_TARGETS, level)
}

/// Reads levels: `info`, or `info,binlogz_relay::serve=debug` with a level for a part.
///
/// # Errors
///
/// A part that is neither; the error says what was expected.
pub fn levels(text: &str) -> Result<Targets, String> {
    let unfit = |part: &str| {
        format!(
            "{part:?}, expected error, warn, info, debug, trace or off, or TARGET=LEVEL, with commas between several"
        )
    };
    let level = |name: &str, part: &str| match name.trim().to_ascii_lowercase().as_str() {
        "off" => Ok(LevelFilter::OFF),
        "error" => Ok(LevelFilter::ERROR),
        "warn" => Ok(LevelFilter::WARN),
        "info" => Ok(LevelFilter::INFO),
        "debug" => Ok(LevelFilter::DEBUG),
        "trace" => Ok(LevelFilter::TRACE),
        _ => Err(unfit(part)),
    };
    let mut own = LevelFilter::INFO;
    let mut named = Vec::new();
    for part in text.split(',') {
        match part.split_once('=') {
            None => own = level(part, part)?,
            Some((target, _)) if target.trim().is_empty() => return Err(unfit(part)),
            Some((target, name)) => named.push((target.trim().to_owned(), level(name, part)?)),
        }
    }
    Ok(with_level(own).with_targets(named))
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn levels_are_for_all_of_binlogz_and_for_parts() {
        let relay = "binlogz_relay::serve::server";
        for (text, target, level, shown) in [
            ("info", relay, Level::INFO, true),
            ("info", relay, Level::DEBUG, false),
            ("info", "reqwest::connect", Level::INFO, false),
            ("info", "reqwest::connect", Level::WARN, true),
            ("error", "reqwest::connect", Level::WARN, false),
            ("debug,binlogz_relay::serve=warn", relay, Level::INFO, false),
            ("debug,binlogz_relay::serve=warn", "binlogz_relay::receive", Level::DEBUG, true),
            ("binlogz_relay::serve=off", relay, Level::ERROR, false),
            ("WARN, reqwest = trace", "reqwest::connect", Level::TRACE, true),
            ("off", relay, Level::ERROR, false),
        ] {
            assert_eq!(levels(text).unwrap().would_enable(target, &level), shown, "{text} {target} {level}");
        }
        for text in ["", "inof", "=info", "binlogz_relay", "binlogz_relay=loud", "info,"] {
            assert!(levels(text).unwrap_err().contains("expected error, warn"), "{text}");
        }
    }
}
