//! System variables: those that drivers and tools ask for, with the values that are true of this server.
//!
//! A client may set those of its session. Where a value would change what statements mean, and nothing here follows it, it
//! is refused: a time zone other than UTC, a character set other than UTF-8, an SQL mode with other quotes.

use std::time::Duration;

use binlogz_wire::ServerError;

use crate::errors::{
    READ_ONLY_VARIABLE, UNKNOWN_CHARACTER_SET, UNKNOWN_COLLATION, UNKNOWN_TIME_ZONE, UNKNOWN_VARIABLE,
    WRONG_VALUE, error,
};

/// The version by which clients know what a server can do.
pub(crate) const VERSION: &str = concat!("8.4.0-binlogz-", env!("CARGO_PKG_VERSION"));
/// Bytes of a command.
pub(crate) const PACKET_MAX: usize = 2 << 20;
/// No limit, as MySQL writes it.
const NO_LIMIT: &str = "18446744073709551615";
/// Bytes of the values that a session has set.
pub(crate) const CHANGED_SIZE_MAX: usize = 64 << 10;
/// Modes that change nothing of what a SELECT means here. Others change what its text means, as `ANSI_QUOTES` does, also within
/// the names of other servers, such as `ANSI` and `ORACLE`, and by their numbers.
const KNOWN_MODES: [&str; 18] = [
    "",
    "ALLOW_INVALID_DATES",
    "ERROR_FOR_DIVISION_BY_ZERO",
    "NO_AUTO_CREATE_USER",
    "NO_AUTO_VALUE_ON_ZERO",
    "NO_DIR_IN_CREATE",
    "NO_ENGINE_SUBSTITUTION",
    "NO_FIELD_OPTIONS",
    "NO_KEY_OPTIONS",
    "NO_TABLE_OPTIONS",
    "NO_UNSIGNED_SUBTRACTION",
    "NO_ZERO_DATE",
    "NO_ZERO_IN_DATE",
    "ONLY_FULL_GROUP_BY",
    "STRICT_ALL_TABLES",
    "STRICT_TRANS_TABLES",
    "TIME_TRUNCATE_FRACTIONAL",
    "TRADITIONAL",
];

/// By name or number.
const ISOLATION_LEVELS: [&str; 8] =
    ["READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE", "0", "1", "2", "3"];

/// The kind of a variable's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VariableKind {
    /// 1 and 0, shown as ON and OFF.
    Switch,
    Number,
    Text,
}

/// Whether a client may set it, and to what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Setting {
    /// Any value of its kind: it changes nothing that is done here, or is followed.
    Session,
    /// UTC, in one of its names.
    TimeZone,
    /// UTF-8, or a part of it.
    CharacterSet,
    /// Of such a character set. Texts are compared exactly, whatever it is.
    Collation,
    /// Modes that change nothing of what a SELECT means.
    SqlMode,
    /// One of four: each transaction sees the same.
    Isolation,
    Never,
}

use Setting::{CharacterSet, Collation, Isolation, Never, Session, SqlMode, TimeZone};
use VariableKind::{Number, Switch, Text};

/// A variable's name, default, kind, and whether it can be set.
type VariableEntry = (&'static str, &'static str, VariableKind, Setting);

const VARIABLES: &[VariableEntry] = &[
    ("auto_increment_increment", "1", Number, Session),
    ("auto_increment_offset", "1", Number, Session),
    ("autocommit", "1", Switch, Session),
    ("big_tables", "0", Switch, Session),
    ("character_set_client", "utf8mb4", Text, CharacterSet),
    ("character_set_connection", "utf8mb4", Text, CharacterSet),
    ("character_set_database", "utf8mb4", Text, CharacterSet),
    ("character_set_results", "utf8mb4", Text, CharacterSet),
    ("character_set_server", "utf8mb4", Text, CharacterSet),
    ("character_set_system", "utf8mb3", Text, Never),
    ("collation_connection", "utf8mb4_general_ci", Text, Collation),
    ("collation_database", "utf8mb4_general_ci", Text, Collation),
    ("collation_server", "utf8mb4_general_ci", Text, Collation),
    ("default_storage_engine", "InnoDB", Text, Session),
    ("div_precision_increment", "4", Number, Never),
    ("event_scheduler", "OFF", Text, Never),
    ("foreign_key_checks", "1", Switch, Session),
    ("group_concat_max_len", NO_LIMIT, Number, Session),
    ("gtid_mode", "OFF", Text, Never),
    ("have_openssl", "YES", Text, Never),
    ("have_ssl", "YES", Text, Never),
    ("information_schema_stats_expiry", "86400", Number, Session),
    ("init_connect", "", Text, Never),
    ("interactive_timeout", "28800", Number, Session),
    ("lc_messages", "en_US", Text, Session),
    ("lc_time_names", "en_US", Text, Never),
    ("license", "MIT OR Apache-2.0", Text, Never),
    ("local_infile", "0", Switch, Never),
    ("lock_wait_timeout", "31536000", Number, Session),
    ("log_bin", "0", Switch, Never),
    ("lower_case_file_system", "0", Switch, Never),
    ("lower_case_table_names", "0", Number, Never),
    ("max_allowed_packet", "2097152", Number, Never),
    ("max_execution_time", "0", Number, Never),
    ("net_buffer_length", "16384", Number, Session),
    ("net_read_timeout", "30", Number, Session),
    ("net_write_timeout", "60", Number, Session),
    ("optimizer_switch", "", Text, Session),
    ("performance_schema", "0", Switch, Never),
    ("profiling", "0", Switch, Session),
    ("protocol_version", "10", Number, Never),
    ("read_only", "1", Switch, Never),
    ("server_id", "0", Number, Never),
    ("session_track_gtids", "OFF", Text, Session),
    ("session_track_schema", "0", Switch, Session),
    ("session_track_system_variables", "", Text, Session),
    ("sql_auto_is_null", "0", Switch, Session),
    ("sql_big_selects", "1", Switch, Session),
    ("sql_log_bin", "1", Switch, Session),
    (
        "sql_mode",
        "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
        Text,
        SqlMode,
    ),
    ("sql_notes", "1", Switch, Session),
    ("sql_quote_show_create", "1", Switch, Session),
    ("sql_safe_updates", "0", Switch, Session),
    ("sql_select_limit", NO_LIMIT, Number, Session),
    ("sql_warnings", "0", Switch, Session),
    ("super_read_only", "1", Switch, Never),
    ("system_time_zone", "UTC", Text, Never),
    ("time_zone", "SYSTEM", Text, TimeZone),
    ("transaction_isolation", "REPEATABLE-READ", Text, Isolation),
    ("transaction_read_only", "0", Switch, Session),
    ("tx_isolation", "REPEATABLE-READ", Text, Isolation),
    ("tx_read_only", "0", Switch, Session),
    ("unique_checks", "1", Switch, Session),
    ("version", VERSION, Text, Never),
    ("version_comment", "binlogz sql: binary logs, only to be read", Text, Never),
    ("version_compile_machine", std::env::consts::ARCH, Text, Never),
    ("version_compile_os", std::env::consts::OS, Text, Never),
    ("wait_timeout", "28800", Number, Session),
];

/// The variables of a session.
#[derive(Debug, Clone, Default)]
pub(crate) struct FrontVariables(Vec<(String, String)>);

/// A variable's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrontVariableValue<'v> {
    pub(crate) value: &'v str,
    pub(crate) kind: VariableKind,
}

impl FrontVariableValue<'_> {
    /// The value as SHOW VARIABLES has it.
    pub(crate) fn shown(&self) -> &str {
        match (self.kind, self.value) {
            (Switch, "1") => "ON",
            (Switch, _) => "OFF",
            (Number | Text, value) => value,
        }
    }
}

impl FrontVariables {
    /// The variables of a session that has set these.
    pub(crate) fn of(changed: Vec<(String, String)>) -> Self {
        FrontVariables(changed)
    }

    /// The variables that the session has set, with their values.
    pub(crate) fn changed(&self) -> &[(String, String)] {
        &self.0
    }

    /// A variable's value by its name, in any case.
    pub(crate) fn value(&self, name: &str) -> Result<FrontVariableValue<'_>, ServerError> {
        let (known, value, kind, _) = known(name)?;
        let own = self.0.iter().find(|(set, _)| set == known).map(|(_, value)| value.as_str());
        Ok(FrontVariableValue { value: own.unwrap_or(value), kind: *kind })
    }

    /// All variables, in the order of their names.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, FrontVariableValue<'_>)> {
        VARIABLES.iter().filter_map(|(name, ..)| Some((*name, self.value(name).ok()?)))
    }

    /// Sets a variable of the session; `None`: to its default.
    ///
    /// # Errors
    ///
    /// One that there isn't or that can't be set, and a value that nothing here would follow.
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), ServerError> {
        let (name, _, kind, setting) = known(name)?;
        if *setting == Never {
            return Err(error(READ_ONLY_VARIABLE, format!("Variable '{name}' is a read only variable")));
        }
        let wrong = |value: &str| {
            error(WRONG_VALUE, format!("Variable '{name}' can't be set to the value of '{value}'"))
        };
        let value = match (value, kind) {
            (None, _) => None,
            (Some(value), Switch) => Some(switch(value).ok_or_else(|| wrong(value))?.to_owned()),
            (Some(value), Number) => {
                value.parse::<u64>().map_err(|_| wrong(value))?;
                Some(value.to_owned())
            }
            (Some(value), Text) => Some(value.to_owned()),
        };
        if let Some(value) = &value {
            check(*setting, value).map_err(|refused| refused.unwrap_or_else(|| wrong(value)))?;
        }
        let others = self.0.iter().filter(|(set, _)| set != name);
        let size: usize = others.map(|(set, value)| set.len() + value.len()).sum();
        if size + value.as_ref().map_or(0, String::len) > CHANGED_SIZE_MAX {
            return Err(wrong("a text of this length"));
        }
        self.0.retain(|(set, _)| set != name);
        self.0.extend(value.map(|value| ((*name).to_owned(), value)));
        Ok(())
    }

    /// The variables of a new session, which may be idle for so long.
    pub(crate) fn of_new_session(idle: Duration) -> Self {
        let idle = idle.as_secs().to_string();
        let both = ["interactive_timeout", "wait_timeout"];
        FrontVariables(both.map(|name| (name.to_owned(), idle.clone())).to_vec())
    }

    /// How long the session may be idle.
    pub(crate) fn idle(&self) -> Duration {
        Duration::from_secs(self.number("wait_timeout").unwrap_or(u64::from(u32::MAX)))
    }

    /// The most rows of an answer.
    pub(crate) fn rows_max(&self) -> u64 {
        self.number("sql_select_limit").unwrap_or(u64::MAX)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.value(name).ok()?.value.parse().ok()
    }
}

/// The variable of this name, in any case.
fn known(name: &str) -> Result<&'static VariableEntry, ServerError> {
    let known = VARIABLES.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name));
    known.ok_or_else(|| error(UNKNOWN_VARIABLE, format!("Unknown system variable '{name}'")))
}

fn switch(value: &str) -> Option<&'static str> {
    match value.to_ascii_uppercase().as_str() {
        "1" | "ON" | "TRUE" => Some("1"),
        "0" | "OFF" | "FALSE" => Some("0"),
        _ => None,
    }
}

/// Refuses a value that would be set without being followed; the error is `None` where it is the usual one.
fn check(setting: Setting, value: &str) -> Result<(), Option<ServerError>> {
    let is_one_of = |names: &[&str], name: &str| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    match setting {
        TimeZone if !is_one_of(&["SYSTEM", "UTC", "+00:00", "+0:00", "-00:00"], value) => {
            let message = format!("Unknown or incorrect time zone: '{value}'; all times are in UTC here");
            Err(Some(error(UNKNOWN_TIME_ZONE, message)))
        }
        CharacterSet => check_character_set(value).map_err(Some),
        Collation if check_character_set(value.split('_').next().unwrap_or_default()).is_err() => {
            let message = format!("Unknown collation: '{value}'; texts are in utf8mb4 here");
            Err(Some(error(UNKNOWN_COLLATION, message)))
        }
        SqlMode if !value.split(',').all(|mode| is_one_of(&KNOWN_MODES, mode.trim())) => Err(None),
        Isolation if !is_one_of(&ISOLATION_LEVELS, value) => Err(None),
        Session | TimeZone | Collation | SqlMode | Isolation | Never => Ok(()),
    }
}

/// Refuses a character set that texts are not sent in.
pub(crate) fn check_character_set(name: &str) -> Result<(), ServerError> {
    let known = ["utf8mb4", "utf8mb3", "utf8", "ascii", "binary", "null", ""];
    if known.contains(&name.to_ascii_lowercase().as_str()) {
        return Ok(());
    }
    let message = format!("Unknown character set: '{name}'; texts are in utf8mb4 here");
    Err(error(UNKNOWN_CHARACTER_SET, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_values_of_its_own() {
        let mut variables = FrontVariables::default();
        assert_eq!(variables.value("AUTOCOMMIT").unwrap().shown(), "ON");
        variables.set("autocommit", Some("off")).unwrap();
        assert_eq!(variables.value("autocommit").unwrap().value, "0");
        variables.set("autocommit", None).unwrap();
        assert!(variables.changed().is_empty());
        variables.set("sql_select_limit", Some("7")).unwrap();
        assert_eq!(variables.rows_max(), 7);
        let new = FrontVariables::of_new_session(Duration::from_secs(60));
        assert_eq!((new.idle(), new.value("wait_timeout").unwrap().value), (Duration::from_secs(60), "60"));
    }

    #[test]
    fn what_would_not_be_followed_is_refused() {
        let mut variables = FrontVariables::default();
        for (name, value, number) in [
            ("nothing", "1", 1193),
            ("version", "9", 1238),
            ("time_zone", "Europe/Paris", 1298),
            ("character_set_results", "latin1", 1115),
            ("sql_mode", "STRICT_TRANS_TABLES, ansi_quotes", 1231),
            ("sql_mode", "4", 1231),
            ("sql_mode", "ORACLE", 1231),
            ("autocommit", "2", 1231),
            ("sql_select_limit", "many", 1231),
        ] {
            assert_eq!(variables.set(name, Some(value)).unwrap_err().code, number, "{name}");
        }
        let long = "x".repeat(CHANGED_SIZE_MAX + 1);
        assert_eq!(variables.set("optimizer_switch", Some(&long)).unwrap_err().code, 1231);
    }

    #[test]
    fn names_of_collations_and_isolation_levels_must_be_ones() {
        let mut variables = FrontVariables::default();
        for (name, value, number) in [
            ("collation_connection", "latin1_swedish_ci", 1273),
            ("collation_server", "nothing", 1273),
            ("character_set_database", "gbk", 1115),
            ("transaction_isolation", "SNAPSHOT", 1231),
        ] {
            assert_eq!(variables.set(name, Some(value)).unwrap_err().code, number, "{name}");
        }
        for (name, value) in [
            ("collation_connection", "utf8mb4_0900_ai_ci"),
            ("collation_database", "binary"),
            ("tx_isolation", "read-committed"),
        ] {
            variables.set(name, Some(value)).unwrap();
        }
    }

    #[test]
    fn the_list_is_in_order() {
        assert!(VARIABLES.is_sorted_by_key(|(name, ..)| *name));
    }
}
