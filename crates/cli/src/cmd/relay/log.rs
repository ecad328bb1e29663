//! The relay's log on standard error: a line for people, or a JSON object for machines.

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use binlogz_relay::Level;
use serde_json::json;

use super::config::LogFormat;
use crate::failure::complain;

/// Writes a line. If even that fails, there is nowhere to report it.
pub(super) fn tell(format: LogFormat, level: Level, line: &str) {
    match format {
        LogFormat::Text => complain(line),
        LogFormat::Json => {
            let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |now| now.as_secs_f64());
            let level = match level {
                Level::Info => "info",
                Level::Error => "error",
            };
            let entry = json!({ "time": (time * 1e6).round() / 1e6, "level": level, "message": line });
            let _ = writeln!(io::stderr(), "{entry}");
        }
    }
}
