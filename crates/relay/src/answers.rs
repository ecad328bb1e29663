//! What statements are worth: listings of what is kept; `variables.rs` has the variables.
//!
//! Everything comes from what is kept, so that it is the same whether the source can be reached or not.

use binlogz_engine::Rights;
use binlogz_wire::ServerError;
use binlogz_wire::result_set::Row;
use binlogz_wire::session::{Column, ReplicaSession};
use binlogz_wire::statement::{Statement, TableQuery, is_like};

use crate::admin;
use crate::compression_stats;
use crate::error::Result;
use crate::form::Form;
use crate::lineages::Kept;
use crate::parts::{FormFile, Found};
use crate::relay::{Relay, lock};
use crate::replica_status::replica_status;
use crate::variables::{NOT_SUPPORTED, Variables, set, system_variables, value};
use crate::whole::{end_of, list_events};

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
            let logs = kept.store.logs()?;
            for (file, number) in kept.files(form)? {
                let encrypted = logs.iter().any(|log| log.number == file.file && log.encrypted);
                let encrypted = if encrypted { "Yes" } else { "No" };
                let name = kept.names.name(form, number);
                rows.push(vec![text_of(name), text_of(end_of(kept, form, file)?), text_of(encrypted)]);
            }
            session.rows(&[text("Log_name"), number("File_size"), text("Encrypted")], &rows);
        }
        Statement::ShowBinaryLogStatus => status(kept, session, form(variables)?)?,
        Statement::ShowBinlogEvents(wanted) => {
            let found = match &wanted.file {
                Some(name) => match kept.names.parse(name) {
                    Some((form, number)) => Some((form, kept.find(form, number)?)),
                    None => None,
                },
                None => match kept.store.logs()?.first() {
                    Some(first) => Some((form(variables)?, Found::File(FormFile::first_of(first.number)))),
                    None => None,
                },
            };
            let listed = match found {
                Some((form, Found::File(file))) => list_events(kept, form, file, &wanted)?,
                _ => Err("Could not find target log".into()),
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
        let last = kept.parts_of(form, now.durable.file)?.last();
        let file = last.unwrap_or(FormFile::first_of(now.durable.file));
        let (name, end) = (kept.name_of(form, file)?, end_of(kept, form, file)?);
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
