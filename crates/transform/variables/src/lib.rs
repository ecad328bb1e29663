//! The server's variables of binary logging, with its rules: values, bounds, warnings, rights, and what may not
//! be set within a transaction. Where values are stored is up to the caller: the engine stores all of them, the
//! relay the two of compression ([`CompressionVariables`]).
//!
//! ```text
//! SET SESSION of a variable that is only global    1229
//! SET GLOBAL without SYSTEM_VARIABLES_ADMIN        1227, before the value is looked at
//! a value of the wrong type                        1232
//! a value that is not in the list of allowed ones  1231
//! a number out of bounds                           becomes the nearest allowed one, warning 1292
//! SET SESSION without SESSION_VARIABLES_ADMIN      1227
//! within a transaction                             1766 (session variables, and binlog_checksum)
//! SET GLOBAL binlog_encryption                     also needs BINLOG_ENCRYPTION_ADMIN; 3794 without a key
//! ```
//!
//! in this order. DEFAULT is the built-in value for GLOBAL, the global value for SESSION. A new session
//! inherits the global values; open sessions keep theirs. (Observed on MySQL 9.7.4; the engine's
//! `tests/engine/live.rs` compares with it.)

mod compression;

use std::fmt;

pub use compression::CompressionVariables;

/// SESSION or GLOBAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableScope {
    /// The value of one session.
    Session,
    /// The value that new sessions inherit.
    Global,
}

/// A value as SQL has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum VariableValue<'a> {
    /// `DEFAULT`.
    Default,
    /// `NULL`.
    Null,
    /// A whole number; TRUE is 1, FALSE 0.
    Integer(i64),
    /// A number with a fraction.
    Decimal(f64),
    /// A string, or a word such as ON.
    Text(&'a str),
}

/// An account's rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rights {
    /// SYSTEM_VARIABLES_ADMIN: global variables, and session variables.
    pub system_variables_admin: bool,
    /// SESSION_VARIABLES_ADMIN: session variables.
    pub session_variables_admin: bool,
    /// BINLOG_ENCRYPTION_ADMIN: binlog_encryption.
    pub binlog_encryption_admin: bool,
}

impl Rights {
    /// An administrator's.
    pub const ALL: Rights =
        Rights { system_variables_admin: true, session_variables_admin: true, binlog_encryption_admin: true };
    /// An account without any.
    pub const NONE: Rights = Rights {
        system_variables_admin: false,
        session_variables_admin: false,
        binlog_encryption_admin: false,
    };
}

/// A warning: another value than the one given was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The server's number.
    pub code: u16,
    /// The server's text.
    pub message: String,
}

/// Why a variable was not set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableError {
    /// The server's number.
    pub code: u16,
    /// The server's text.
    pub message: String,
    /// A warning raised before the error.
    pub warning: Option<Warning>,
}

impl fmt::Display for VariableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (error {})", self.message, self.code)
    }
}

impl std::error::Error for VariableError {}

/// Which variable: its index in [`VARIABLES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableId {
    /// `binlog_transaction_compression`.
    Compression,
    /// `binlog_transaction_compression_level_zstd`.
    Level,
    /// `binlog_checksum`.
    Checksum,
    /// `binlog_encryption`.
    Encryption,
    /// `max_binlog_size`.
    MaxBinlogSize,
    /// `sync_binlog`.
    SyncBinlog,
    /// `binlog_group_commit_sync_delay`.
    SyncDelay,
    /// `binlog_group_commit_sync_no_delay_count`.
    SyncNoDelayCount,
    /// `flush_log_at_commit`.
    FlushLogAtCommit,
}

#[derive(Debug, Clone, Copy)]
enum VariableKind {
    /// OFF or ON.
    Switch,
    /// One of these values.
    List(&'static [&'static str]),
    /// A number; a multiple of `block`.
    Number { min: u64, max: u64, block: u64 },
}

/// A variable: its name, its allowed values, and its scopes.
#[derive(Debug)]
pub struct Variable {
    /// Which one it is.
    pub id: VariableId,
    /// The value of a server that nobody configured; of a switch 0 or 1, of a list the index of the word.
    pub default: u64,
    name: &'static str,
    has_session_value: bool,
    kind: VariableKind,
}

const fn number(min: u64, max: u64) -> VariableKind {
    VariableKind::Number { min, max, block: 1 }
}

const fn variable(
    id: VariableId,
    name: &'static str,
    has_session_value: bool,
    kind: VariableKind,
    default: u64,
) -> Variable {
    Variable { id, default, name, has_session_value, kind }
}

/// All variables. `flush_log_at_commit` alone is not the server's: it is `innodb_flush_log_at_trx_commit` for this log.
pub const VARIABLES: [Variable; 9] = [
    variable(VariableId::Compression, "binlog_transaction_compression", true, VariableKind::Switch, 0),
    variable(VariableId::Level, "binlog_transaction_compression_level_zstd", true, number(1, 22), 3),
    variable(VariableId::Checksum, "binlog_checksum", false, VariableKind::List(&["NONE", "CRC32"]), 1),
    variable(VariableId::Encryption, "binlog_encryption", false, VariableKind::Switch, 0),
    variable(
        VariableId::MaxBinlogSize,
        "max_binlog_size",
        false,
        VariableKind::Number { min: 4096, max: 1 << 30, block: 4096 },
        1 << 30,
    ),
    variable(VariableId::SyncBinlog, "sync_binlog", false, number(0, u32::MAX as u64), 1),
    variable(VariableId::SyncDelay, "binlog_group_commit_sync_delay", false, number(0, 1_000_000), 0),
    variable(
        VariableId::SyncNoDelayCount,
        "binlog_group_commit_sync_no_delay_count",
        false,
        number(0, 100_000),
        0,
    ),
    variable(VariableId::FlushLogAtCommit, "flush_log_at_commit", false, number(0, 2), 1),
];

impl Variable {
    /// The variable of this name, in any case.
    ///
    /// # Errors
    ///
    /// 1193 for an unknown name.
    pub fn find(name: &str) -> Result<&'static Variable, VariableError> {
        VARIABLES
            .iter()
            .find(|variable| variable.name.eq_ignore_ascii_case(name))
            .ok_or_else(|| error(1193, format!("Unknown system variable '{name}'")))
    }

    /// The value as `SELECT @@name` shows it.
    pub fn show(&self, value: u64) -> String {
        match self.kind {
            VariableKind::List(words) => words.get(value as usize).copied().unwrap_or_default().to_owned(),
            VariableKind::Switch | VariableKind::Number { .. } => value.to_string(),
        }
    }

    /// All checks of a SET, in the server's order. The value is `None` for DEFAULT.
    ///
    /// # Errors
    ///
    /// The server's, in its order: see the module.
    pub fn check_set(
        &self,
        scope: VariableScope,
        value: VariableValue<'_>,
        rights: Rights,
        in_transaction: bool,
    ) -> Result<(Option<u64>, Option<Warning>), VariableError> {
        match scope {
            VariableScope::Session if !self.has_session_value => {
                let message = format!(
                    "Variable '{}' is a GLOBAL variable and should be set with SET GLOBAL",
                    self.name
                );
                return Err(error(1229, message));
            }
            VariableScope::Global if !rights.system_variables_admin => {
                return Err(VariableError::denied("SUPER or SYSTEM_VARIABLES_ADMIN"));
            }
            _ => {}
        }
        let (value, warning) = self.check(value)?;
        let session = scope == VariableScope::Session;
        let refused = if session && !(rights.system_variables_admin || rights.session_variables_admin) {
            Some(VariableError::denied("SUPER, SYSTEM_VARIABLES_ADMIN or SESSION_VARIABLES_ADMIN"))
        } else if self.id == VariableId::Encryption && !rights.binlog_encryption_admin {
            Some(VariableError::denied("SUPER or BINLOG_ENCRYPTION_ADMIN"))
        } else if in_transaction && (session || self.id == VariableId::Checksum) {
            let what = "cannot be set when there is an ongoing transaction";
            Some(error(1766, format!("The system variable {} {what}.", self.name)))
        } else {
            None
        };
        match refused {
            Some(error) => Err(VariableError { warning, ..error }),
            None => Ok((value, warning)),
        }
    }

    /// The checks of a value alone.
    ///
    /// # Errors
    ///
    /// 1231 or 1232 for a value that the variable can't have.
    pub fn check(&self, value: VariableValue<'_>) -> Result<(Option<u64>, Option<Warning>), VariableError> {
        if value == VariableValue::Default {
            return Ok((None, None));
        }
        match self.kind {
            VariableKind::Switch => one_of(self, &["OFF", "ON"], value),
            VariableKind::List(words) => one_of(self, words, value),
            VariableKind::Number { min, max, block } => {
                let VariableValue::Integer(given) = value else {
                    return Err(VariableError::argument_type(self));
                };
                let clamped = u64::try_from(given).unwrap_or(0).clamp(min, max);
                let allowed = clamped - clamped % block;
                let changed = i64::try_from(allowed) != Ok(given);
                let message = format!("Truncated incorrect {} value: '{given}'", self.name);
                return Ok((Some(allowed), changed.then_some(Warning { code: 1292, message })));
            }
        }
        .map(|value| (Some(value), None))
    }
}

fn error(code: u16, message: String) -> VariableError {
    VariableError { code, message, warning: None }
}

impl VariableError {
    /// For reading the session value of a variable that has none.
    pub fn global_only(variable: &Variable) -> Self {
        error(1238, format!("Variable '{}' is a GLOBAL variable", variable.name))
    }

    /// For switching encryption on without a key.
    pub fn no_master_key() -> Self {
        error(
            3794,
            "Unable to recover binlog encryption master key, please check if keyring is loaded.".to_owned(),
        )
    }

    fn denied(needed: &str) -> Self {
        let message =
            format!("Access denied; you need (at least one of) the {needed} privilege(s) for this operation");
        error(1227, message)
    }

    fn value(variable: &Variable, shown: impl fmt::Display) -> Self {
        error(1231, format!("Variable '{}' can't be set to the value of '{shown}'", variable.name))
    }

    fn argument_type(variable: &Variable) -> Self {
        error(1232, format!("Incorrect argument type to variable '{}'", variable.name))
    }
}

/// A word, in any case, or its index.
fn one_of(variable: &Variable, words: &[&str], value: VariableValue<'_>) -> Result<u64, VariableError> {
    match value {
        VariableValue::Decimal(_) => Err(VariableError::argument_type(variable)),
        VariableValue::Integer(index) => match u64::try_from(index) {
            Ok(index) if index < words.len() as u64 => Ok(index),
            _ => Err(VariableError::value(variable, index)),
        },
        VariableValue::Text(given) => match words.iter().position(|word| word.eq_ignore_ascii_case(given)) {
            Some(index) => Ok(index as u64),
            None => Err(VariableError::value(variable, given)),
        },
        VariableValue::Null | VariableValue::Default => Err(VariableError::value(variable, "NULL")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variables_id_is_its_index() {
        for (index, variable) in VARIABLES.iter().enumerate() {
            assert_eq!(variable.id as usize, index, "{}", variable.name);
        }
    }
}
