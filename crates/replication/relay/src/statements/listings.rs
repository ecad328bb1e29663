//! SHOW BINARY LOGS, BINARY LOG STATUS, BINLOG EVENTS and REPLICAS.

use binlogz_wire::result_set::ResultRow;
use binlogz_wire::statement::EventsWanted;

use crate::error::Result;
use crate::form::Form;
use crate::forms::Forms;
use crate::forms::file_walk::{end_of, list_events};
use crate::log::parts::{FormFile, FoundFile};
use crate::replicas::registry::RegisteredReplica;
use crate::statements::statement_answer::{StatementAnswer, cell};
use crate::statements::variables::System;

/// ER_ERROR_WHEN_EXECUTING_COMMAND.
const SHOW_EVENTS_ERROR: (u16, [u8; 5]) = (1220, *b"HY000");
/// Columns of an answer, and whether they are numbers.
const LOG_COLUMNS: [(&str, bool); 3] = [("Log_name", false), ("File_size", true), ("Encrypted", false)];
const STATUS_COLUMNS: [(&str, bool); 5] = [
    ("File", false),
    ("Position", true),
    ("Binlog_Do_DB", false),
    ("Binlog_Ignore_DB", false),
    ("Executed_Gtid_Set", false),
];
const EVENT_COLUMNS: [(&str, bool); 6] = [
    ("Log_name", false),
    ("Pos", true),
    ("Event_type", false),
    ("Server_id", true),
    ("End_log_pos", true),
    ("Info", false),
];
const REPLICA_COLUMNS: [(&str, bool); 5] =
    [("Server_Id", true), ("Host", false), ("Port", true), ("Source_Id", true), ("Replica_UUID", false)];

pub(crate) fn binary_logs(forms: Forms<'_>, form: Form) -> Result<StatementAnswer<'static>> {
    let kept = forms.kept;
    let logs = kept.store.logs()?;
    let mut rows = Vec::new();
    for (file, number) in kept.files(form)? {
        let encrypted = logs.iter().any(|log| log.number == file.file && log.encrypted);
        let encrypted = if encrypted { "Yes" } else { "No" };
        let name = kept.names.name(form, number);
        rows.push(vec![cell(name), cell(end_of(forms, form, file)?), cell(encrypted)]);
    }
    Ok(StatementAnswer::rows(&LOG_COLUMNS, rows))
}

pub(crate) fn binary_log_status(forms: Forms<'_>, form: Form) -> Result<StatementAnswer<'static>> {
    let kept = forms.kept;
    // The set is read before the position, so that it holds no transaction after it.
    let gtids = kept.durable_gtids();
    let mut rows: Vec<ResultRow> = Vec::new();
    if let Some(now) = kept.store.positions() {
        let last = kept.parts_of(form, now.durable.file)?.last();
        let file = last.unwrap_or(FormFile::first_of(now.durable.file));
        let (name, end) = (kept.name_of(form, file)?, end_of(forms, form, file)?);
        rows.push(vec![cell(name), cell(end), cell(""), cell(""), cell(gtids)]);
    }
    Ok(StatementAnswer::rows(&STATUS_COLUMNS, rows))
}

/// `form` is asked only if no file is named.
pub(crate) fn binlog_events(
    forms: Forms<'_>,
    form: impl Fn() -> Result<Form>,
    wanted: &EventsWanted,
) -> Result<StatementAnswer<'static>> {
    let kept = forms.kept;
    let found = match &wanted.file {
        Some(name) => match kept.names.parse(name) {
            Some((form, number)) => Some((form, kept.find(form, number)?)),
            None => None,
        },
        None => match kept.store.logs()?.first() {
            Some(first) => Some((form()?, FoundFile::File(FormFile::first_of(first.number)))),
            None => None,
        },
    };
    let listed = match found {
        Some((form, FoundFile::File(file))) => list_events(forms, form, file, wanted)?,
        _ => Err("Could not find target log".into()),
    };
    Ok(match listed {
        Ok(rows) => StatementAnswer::rows(&EVENT_COLUMNS, rows),
        Err(message) => {
            let message = format!("Error when executing command SHOW BINLOG EVENTS: {message}");
            StatementAnswer::refused((SHOW_EVENTS_ERROR, message))
        }
    })
}

pub(crate) fn replicas(replicas: &[RegisteredReplica], system: &System) -> StatementAnswer<'static> {
    let source_id = system.own("server_id").unwrap_or_default();
    let row = |replica: &RegisteredReplica| -> ResultRow {
        let RegisteredReplica { server_id, host, port, uuid } = replica;
        vec![cell(server_id), cell(host), cell(port), cell(source_id), cell(uuid)]
    };
    StatementAnswer::rows(&REPLICA_COLUMNS, replicas.iter().map(row).collect())
}
