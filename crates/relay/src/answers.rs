//! What statements are worth: the variables of the source as its log tells them, and the listings.
//!
//! Everything comes from what is kept, so that it is the same whether the source can be reached or not.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::{SystemTime, UNIX_EPOCH};

use binlogz_engine::{CompressionVariables, Rights, Value, Warning};
use binlogz_wire::ServerError;
use binlogz_wire::result_set::Row;
use binlogz_wire::session::{Column, ReplicaSession};
use binlogz_wire::statement::{Expression, Statement, TableQuery, Target, is_like};

use crate::admin;
use crate::compression_stats;
use crate::error::Result;
use crate::form::Form;
use crate::head::Head;
use crate::lineages::Kept;
use crate::relay::{Relay, lock};
use crate::replica_status::replica_status;
use crate::translate::{end_of, list_events};

/// `@name`: values that a client set.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    values: BTreeMap<String, Option<String>>,
    /// What SHOW WARNINGS lists: level, number and text.
    warnings: Vec<(&'static str, u16, String)>,
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

const NOT_SUPPORTED: (u16, [u8; 5]) = (1235, *b"42000");
const UNKNOWN_VARIABLE: (u16, [u8; 5]) = (ServerError::UNKNOWN_SYSTEM_VARIABLE, *b"HY000");
const ACCESS_DENIED: (u16, [u8; 5]) = (ServerError::SPECIFIC_ACCESS_DENIED, *b"42000");

/// ER_ERROR_WHEN_EXECUTING_COMMAND.
const SHOW_EVENTS_ERROR: (u16, [u8; 5]) = (1220, *b"HY000");
/// Of SHOW BINLOG EVENTS; whether they are numbers.
const EVENT_COLUMNS: [(&str, bool); 6] = [
    ("Log_name", false),
    ("Pos", true),
    ("Event_type", false),
    ("Server_id", true),
    ("End_log_pos", true),
    ("Info", false),
];

/// Answers a statement. `form`: what the client is served where it names no file.
pub(crate) fn answer(
    relay: &Relay,
    kept: &Kept,
    may_administer: bool,
    variables: &mut Variables,
    session: &mut ReplicaSession,
    asked: &str,
    form: &dyn Fn(&Variables) -> Result<Form>,
) -> Result<()> {
    let Some(statement) = Statement::parse(asked) else {
        refuse(session, NOT_SUPPORTED, "the relay does not know this statement".into());
        return Ok(());
    };
    let system = system_variables(relay, kept)?;
    if statement != Statement::ShowWarnings {
        variables.warnings.clear();
    }
    match statement {
        Statement::Select(items) => {
            let mut row: Row = Vec::new();
            for (expression, _) in &items {
                match value(expression, variables, &system) {
                    Ok(value) => row.push(value.map(String::into_bytes)),
                    Err((code, message)) => {
                        refuse(session, code, message);
                        return Ok(());
                    }
                }
            }
            let is_number = |value: &Option<Vec<u8>>| {
                value.as_ref().is_some_and(|text| text.iter().all(u8::is_ascii_digit))
            };
            let columns: Vec<_> = items
                .iter()
                .zip(&row)
                .map(|((_, name), value)| Column { name, is_number: is_number(value) })
                .collect();
            session.rows(&columns, std::slice::from_ref(&row));
        }
        Statement::SelectFrom(query) if compression_stats::is_named(&query.from) => {
            match compression_stats::select(&lock(&relay.compression_stats), &query) {
                Ok((columns, rows)) => {
                    let columns: Vec<_> = columns
                        .iter()
                        .map(|(name, is_number)| Column { name, is_number: *is_number })
                        .collect();
                    session.rows(&columns, &rows);
                }
                Err(error) => session.refuse(&error),
            }
        }
        Statement::SelectFrom(TableQuery { from, .. }) => {
            refuse(session, NOT_SUPPORTED, format!("the relay has no table {from}"));
        }
        Statement::Set(assignments) => {
            let rights = if may_administer { Rights::ALL } else { Rights::NONE };
            let mut compression = lock(&relay.compression);
            let mut wanted = *compression;
            match set(&mut wanted, rights, variables, &system, &assignments) {
                Ok(()) => {
                    *compression = wanted;
                    session.ok_with_warnings(variables.warnings.len() as u16);
                }
                Err((code, message)) => {
                    variables.warnings.push(("Error", code.0, message.clone()));
                    refuse(session, code, message);
                }
            }
        }
        Statement::ShowWarnings => {
            let row = |(level, code, message): &(&str, u16, String)| -> Row {
                vec![text_of(level), text_of(code), text_of(message)]
            };
            let rows: Vec<Row> = variables.warnings.iter().map(row).collect();
            session.rows(&[text("Level"), number("Code"), text("Message")], &rows);
        }
        Statement::SetNames => session.ok(),
        Statement::ShowVariables(pattern) => {
            let fits = |name: &&str| pattern.as_ref().is_none_or(|pattern| is_like(name, pattern));
            let rows: Vec<Row> = system
                .iter()
                .filter(|(name, _)| fits(name))
                .map(|(name, value)| vec![text_of(name), text_of(value)])
                .collect();
            session.rows(&[text("Variable_name"), text("Value")], &rows);
        }
        Statement::ShowBinaryLogs => {
            let mut rows = Vec::new();
            let form = form(variables)?;
            for log in kept.store.logs()? {
                let encrypted = if log.encrypted { "Yes" } else { "No" };
                let name = kept.names.name(form, log.number);
                rows.push(vec![text_of(name), text_of(end_of(kept, form, log.number)?), text_of(encrypted)]);
            }
            session.rows(&[text("Log_name"), number("File_size"), text("Encrypted")], &rows);
        }
        Statement::ShowBinaryLogStatus => status(kept, session, form(variables)?)?,
        Statement::ShowBinlogEvents(wanted) => {
            let file = match &wanted.file {
                Some(name) => kept.names.parse(name),
                None => match kept.store.logs()?.first() {
                    Some(first) => Some((form(variables)?, first.number)),
                    None => None,
                },
            };
            let known = file.filter(|(_, file)| kept.store.reader(*file, 0).is_ok());
            let listed = match known {
                Some((form, file)) => list_events(kept, form, file, &wanted)?,
                None => Err("Could not find target log".into()),
            };
            match listed {
                Ok(rows) => {
                    session.rows(&EVENT_COLUMNS.map(|(name, is_number)| Column { name, is_number }), &rows)
                }
                Err(message) => {
                    let message = format!("Error when executing command SHOW BINLOG EVENTS: {message}");
                    refuse(session, SHOW_EVENTS_ERROR, message);
                }
            }
        }
        Statement::ShowReplicaStatus => {
            let (columns, row) = replica_status(relay, kept)?;
            session.rows(&columns, std::slice::from_ref(&row));
        }
        Statement::Admin(statement) => {
            return admin::answer(relay, kept, may_administer, variables, session, &statement);
        }
        Statement::ShowReplicas => {
            let source_id = system.get("server_id").cloned().unwrap_or_default();
            let rows: Vec<Row> = relay
                .registry
                .replicas()
                .iter()
                .map(|replica| {
                    vec![
                        text_of(replica.server_id),
                        text_of(&replica.host),
                        text_of(replica.port),
                        text_of(&source_id),
                        text_of(&replica.uuid),
                    ]
                })
                .collect();
            let columns = [
                number("Server_Id"),
                text("Host"),
                number("Port"),
                number("Source_Id"),
                text("Replica_UUID"),
            ];
            session.rows(&columns, &rows);
        }
    }
    Ok(())
}

/// Where the log ends.
fn status(kept: &Kept, session: &mut ReplicaSession, form: Form) -> Result<()> {
    // First the set: it must hold nothing that stands behind the position.
    let gtids = kept.durable_gtids();
    let mut rows: Vec<Row> = Vec::new();
    if let Some(now) = kept.store.positions() {
        let file = now.durable.file;
        let (name, end) = (kept.names.name(form, file), end_of(kept, form, file)?);
        rows.push(vec![text_of(name), text_of(end), text_of(""), text_of(""), text_of(gtids)]);
    }
    let columns = [
        text("File"),
        number("Position"),
        text("Binlog_Do_DB"),
        text("Binlog_Ignore_DB"),
        text("Executed_Gtid_Set"),
    ];
    session.rows(&columns, &rows);
    Ok(())
}

/// All assignments, or an error at the first that can't be.
fn set(
    compression: &mut CompressionVariables,
    rights: Rights,
    variables: &mut Variables,
    system: &BTreeMap<&'static str, String>,
    assignments: &[(Target, Expression)],
) -> Result<(), Refusal> {
    for (target, expression) in assignments {
        let name = match target {
            Target::UserVariable(name) => name,
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

type Refusal = ((u16, [u8; 5]), String);

fn value(
    expression: &Expression,
    variables: &Variables,
    system: &BTreeMap<&'static str, String>,
) -> Result<Option<String>, Refusal> {
    Ok(match expression {
        Expression::Null => None,
        Expression::Literal(text) | Expression::Text(text) => Some(text.clone()),
        Expression::UserVariable(name) => variables.get(name).cloned().flatten(),
        // A switch is a word in SHOW VARIABLES, a number here.
        Expression::SystemVariable(name) if name == "binlog_transaction_compression" => {
            let on = system.get(name.as_str()).is_some_and(|value| value == "ON");
            Some(u8::from(on).to_string())
        }
        Expression::SystemVariable(name) => Some(
            system
                .get(name.as_str())
                .cloned()
                .ok_or_else(|| (UNKNOWN_VARIABLE, format!("Unknown system variable '{name}'")))?,
        ),
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
fn system_variables(relay: &Relay, kept: &Kept) -> Result<BTreeMap<&'static str, String>> {
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
        ("max_allowed_packet", "1073741824"),
        ("read_only", "ON"),
        ("server_id", &head.header.server_id.to_string()),
        ("server_uuid", &uuid),
        ("time_zone", "SYSTEM"),
        ("version", &head.description.server_version()),
        ("version_comment", "binlogz relay"),
    ]
    .map(|(name, value)| (name, value.to_owned()));
    Ok(fixed.into_iter().chain(compression).collect())
}

fn text(name: &str) -> Column<'_> {
    Column { name, is_number: false }
}

fn number(name: &str) -> Column<'_> {
    Column { name, is_number: true }
}

fn text_of(value: impl ToString) -> Option<Vec<u8>> {
    Some(value.to_string().into_bytes())
}

fn refuse(session: &mut ReplicaSession, (code, sqlstate): (u16, [u8; 5]), message: String) {
    session.refuse(&ServerError { code, sqlstate: Some(sqlstate), message });
}
