//! Settings of the session in which statements run, so that values are stored as they are logged, whatever the server's
//! own settings are.

use crate::record::RowFlags;

/// Values are stored as they are written: zero and invalid dates too, and 0 in AUTO_INCREMENT columns.
const SQL_MODE: &str = "ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION";
/// Anything that doesn't fit is an error.
const STRICT: &str = "STRICT_ALL_TABLES,";

/// The part of a session that changes from row to row.
#[derive(Debug)]
pub(crate) struct ScriptSession {
    checks_foreign_keys: bool,
    is_strict: bool,
}

impl Default for ScriptSession {
    fn default() -> Self {
        ScriptSession { checks_foreign_keys: true, is_strict: true }
    }
}

impl ScriptSession {
    /// The statements that set it up: the character set, then the rest.
    pub(crate) fn begin(&self) -> [String; 2] {
        let settings =
            format!("SET time_zone = '+00:00', foreign_key_checks = 1, sql_mode = '{STRICT}{SQL_MODE}'");
        ["SET NAMES utf8mb4".to_owned(), settings]
    }

    /// The statements that change it for a row.
    pub(crate) fn change_for(&mut self, flags: RowFlags) -> Vec<String> {
        let mut changes = Vec::new();
        let checks = !flags.has(RowFlags::NO_FOREIGN_KEYS);
        if std::mem::replace(&mut self.checks_foreign_keys, checks) != checks {
            changes.push(format!("SET foreign_key_checks = {}", u8::from(checks)));
        }
        let is_strict = !flags.has(RowFlags::LENIENT);
        if std::mem::replace(&mut self.is_strict, is_strict) != is_strict {
            changes.push(format!("SET sql_mode = '{}{SQL_MODE}'", if is_strict { STRICT } else { "" }));
        }
        changes
    }
}
