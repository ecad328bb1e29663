//! Variables: those that a client set, and the source's, as its log tells them.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::{SystemTime, UNIX_EPOCH};

use binlogz_engine::{CompressionVariables, Rights, Value, Warning};
use binlogz_wire::ServerError;
use binlogz_wire::session::COMMAND_SIZE_MAX;
use binlogz_wire::statement::{Expression, Target};

use crate::error::Result;
use crate::head::Head;
use crate::lineages::Kept;
use crate::relay::{Relay, lock};

/// `@name`: values that a client set.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    values: BTreeMap<String, Option<String>>,
    /// What SHOW WARNINGS lists: level, number and text.
    pub(crate) warnings: Vec<(&'static str, u16, String)>,
}

impl Deref for Variables {
    type Target = BTreeMap<String, Option<String>>;

    fn deref(&self) -> &Self::Target {
        &self.values
    }
}

/// At most so many, of at most so many bytes.
const VARIABLES_MAX: usize = 64;
const VALUE_SIZE_MAX: usize = 1024;
/// Characters of a user variable's name, as the server has it.
const NAME_LENGTH_MAX: usize = 64;
/// Bytes of a longer one that the server's error shows.
const NAME_SHOWN_MAX: usize = 100;

pub(crate) const NOT_SUPPORTED: (u16, [u8; 5]) = (1235, *b"42000");
const UNKNOWN_VARIABLE: (u16, [u8; 5]) = (ServerError::UNKNOWN_SYSTEM_VARIABLE, *b"HY000");
const ILLEGAL_NAME: (u16, [u8; 5]) = (3061, *b"42000");
const ACCESS_DENIED: (u16, [u8; 5]) = (ServerError::SPECIFIC_ACCESS_DENIED, *b"42000");

/// What semi-synchronous replicas ask for: from 8.0.26 on, and before.
const SEMI_SYNC: [&str; 2] = ["rpl_semi_sync_source_enabled", "rpl_semi_sync_master_enabled"];
/// Words in SHOW VARIABLES, numbers in SELECT.
const SWITCHES: [&str; 3] = ["binlog_transaction_compression", SEMI_SYNC[0], SEMI_SYNC[1]];

/// All assignments, or an error at the first that can't be.
pub(crate) fn set(
    compression: &mut CompressionVariables,
    rights: Rights,
    variables: &mut Variables,
    system: &BTreeMap<&'static str, String>,
    assignments: &[(Target, Expression)],
) -> Result<(), Refusal> {
    for (target, expression) in assignments {
        let name = match target {
            Target::UserVariable(name) => legal(name)?,
            // Nothing here depends on the session's settings.
            Target::Session(_) => continue,
            Target::Global(name) if CompressionVariables::has(name) => {
                let warning = set_global(compression, rights, name, expression, variables, system)?;
                variables.warnings.extend(warning.map(|warning| ("Warning", warning.code, warning.message)));
                continue;
            }
            Target::Global(name) => {
                return Err((ACCESS_DENIED, format!("Access denied: the relay has no global {name} to set")));
            }
            Target::Persist(name) => {
                return Err((
                    NOT_SUPPORTED,
                    format!(
                        "the relay does not keep {name}: its configuration says what holds at the next start"
                    ),
                ));
            }
        };
        let value = value(expression, variables, system)?;
        let fits = value.as_ref().is_none_or(|value| value.len() <= VALUE_SIZE_MAX);
        if !fits || (variables.len() >= VARIABLES_MAX && !variables.contains_key(name)) {
            return Err((NOT_SUPPORTED, "too many or too long variables".into()));
        }
        variables.values.insert(name.clone(), value);
    }
    Ok(())
}

/// SET GLOBAL of a variable of compression, with the server's rules.
fn set_global(
    compression: &mut CompressionVariables,
    rights: Rights,
    name: &str,
    expression: &Expression,
    variables: &Variables,
    system: &BTreeMap<&'static str, String>,
) -> Result<Option<Warning>, Refusal> {
    let text = value(expression, variables, system)?;
    let value = match (expression, text.as_deref()) {
        (_, None) => Value::Null,
        (Expression::Literal(word), _) if word.eq_ignore_ascii_case("DEFAULT") => Value::Default,
        (Expression::Literal(word), _) if word.eq_ignore_ascii_case("TRUE") => Value::Integer(1),
        (Expression::Literal(word), _) if word.eq_ignore_ascii_case("FALSE") => Value::Integer(0),
        (Expression::Literal(_) | Expression::SystemVariable(_), Some(text)) => {
            text.parse().map_or(Value::Text(text), Value::Integer)
        }
        (_, Some(text)) => Value::Text(text),
    };
    compression.set(name, value, rights).map_err(|error| {
        let sqlstate = match error.code {
            1227 | 1231 | 1232 => *b"42000",
            _ => *b"HY000",
        };
        ((error.code, sqlstate), error.message)
    })
}

/// An error's code with its SQL state, and its text.
pub(crate) type Refusal = ((u16, [u8; 5]), String);

/// The name of a user variable, if a server would let it be set.
fn legal(name: &String) -> Result<&String, Refusal> {
    if name.chars().count() <= NAME_LENGTH_MAX {
        return Ok(name);
    }
    let end = (0..=NAME_SHOWN_MAX).rev().find(|end| name.is_char_boundary(*end)).unwrap_or_default();
    let shown = name.get(..end).unwrap_or_default();
    Err((ILLEGAL_NAME, format!("User variable name '{shown}' is illegal")))
}

/// What an expression is worth.
pub(crate) fn value(
    expression: &Expression,
    variables: &Variables,
    system: &BTreeMap<&'static str, String>,
) -> Result<Option<String>, Refusal> {
    Ok(match expression {
        Expression::Null => None,
        Expression::Literal(text) | Expression::Text(text) => Some(text.clone()),
        Expression::UserVariable(name) => variables.get(name).cloned().flatten(),
        Expression::SystemVariable(name) if SWITCHES.contains(&name.as_str()) => {
            let value = system.get(name.as_str()).ok_or_else(|| unknown_variable(name))?;
            Some(u8::from(value == "ON").to_string())
        }
        Expression::SystemVariable(name) => {
            Some(system.get(name.as_str()).cloned().ok_or_else(|| unknown_variable(name))?)
        }
        Expression::Function(name) => Some(match name.as_str() {
            "unix_timestamp" => {
                SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs()).to_string()
            }
            "version" => system.get("version").cloned().unwrap_or_default(),
            "database" | "schema" => return Ok(None),
            other => return Err((NOT_SUPPORTED, format!("the relay does not know the function {other}"))),
        }),
    })
}

/// The source's, as far as anyone who reads its log asks for them.
pub(crate) fn system_variables(relay: &Relay, kept: &Kept) -> Result<BTreeMap<&'static str, String>> {
    let Some(now) = kept.store.positions() else { return Ok(BTreeMap::new()) };
    let head = Head::read(&kept.store, now.durable.file)?;
    let checksum = if head.checksum().size() > 0 { "CRC32" } else { "NONE" };
    let gtid_mode = if relay.has_gtids() { "ON" } else { "OFF" };
    let uuid = kept.source.to_string();
    let compression = *lock(&relay.compression);
    let compression = compression.shown();
    let fixed = [
        ("autocommit", "ON"),
        ("binlog_checksum", checksum),
        ("binlog_format", "ROW"),
        ("binlog_row_image", "FULL"),
        ("enforce_gtid_consistency", gtid_mode),
        ("gtid_executed", &kept.durable_gtids().to_string()),
        ("gtid_mode", gtid_mode),
        ("log_bin", "ON"),
        ("log_bin_basename", &kept.base),
        ("max_allowed_packet", &COMMAND_SIZE_MAX.to_string()),
        ("read_only", "ON"),
        ("server_id", &head.header.server_id.to_string()),
        ("server_uuid", &uuid),
        ("time_zone", "SYSTEM"),
        ("version", &head.description.server_version()),
        ("version_comment", "binlogz relay"),
    ]
    .map(|(name, value)| (name, value.to_owned()));
    // Without, there is no such variable, as at a server without the plugin.
    let semi_sync = SEMI_SYNC.iter().filter(|_| relay.options.listen_semi_sync);
    let semi_sync = semi_sync.map(|name| (*name, "ON".to_owned()));
    Ok(fixed.into_iter().chain(compression).chain(semi_sync).collect())
}

fn unknown_variable(name: &str) -> Refusal {
    (UNKNOWN_VARIABLE, format!("Unknown system variable '{name}'"))
}
