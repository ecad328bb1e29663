//! SHOW BINARY LOGS, BINARY LOG STATUS, BINLOG EVENTS and REPLICAS.

use binlogz_binlog::gtid::GtidSet;
use binlogz_wire::result_set::ResultRow;
use binlogz_wire::statement::ReplicationWords;

use crate::statement_answer::{StatementAnswer, cell};
use crate::variables::SystemVariables;

/// A file of the log, as SHOW BINARY LOGS has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedLog {
    /// The file's name.
    pub name: String,
    /// The durable part's size in bytes.
    pub size: u64,
    /// Whether it is encrypted.
    pub is_encrypted: bool,
}

/// The end of the log, as SHOW BINARY LOG STATUS has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogStatusRow {
    /// The last file's name.
    pub file: String,
    /// The durable end, as an offset.
    pub position: u64,
    /// All transactions up to there.
    pub gtids: GtidSet,
}

/// A replica's own account of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredReplica {
    /// The server id, as the replica registered it.
    pub server_id: u32,
    /// The host's name, as the replica reports it.
    pub host: String,
    /// The port, as the replica reports it.
    pub port: u16,
    /// The replica's uuid; empty if it told none.
    pub uuid: String,
}

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
/// As 8.0.33 answers SHOW SLAVE HOSTS.
const OLDER_REPLICA_COLUMNS: [(&str, bool); 5] =
    [("Server_id", true), ("Host", false), ("Port", true), ("Master_id", true), ("Slave_UUID", false)];

pub(crate) fn binary_logs(logs: &[ListedLog]) -> StatementAnswer<'static> {
    let row = |log: &ListedLog| -> ResultRow {
        vec![cell(&log.name), cell(log.size), cell(if log.is_encrypted { "Yes" } else { "No" })]
    };
    StatementAnswer::rows(&LOG_COLUMNS, logs.iter().map(row).collect())
}

pub(crate) fn binary_log_status(status: Option<LogStatusRow>) -> StatementAnswer<'static> {
    let row = |LogStatusRow { file, position, gtids }| -> ResultRow {
        vec![cell(file), cell(position), cell(""), cell(""), cell(gtids)]
    };
    StatementAnswer::rows(&STATUS_COLUMNS, status.map(row).into_iter().collect())
}

pub(crate) fn binlog_events(listed: Result<Vec<ResultRow>, String>) -> StatementAnswer<'static> {
    match listed {
        Ok(rows) => StatementAnswer::rows(&EVENT_COLUMNS, rows),
        Err(message) => {
            let message = format!("Error when executing command SHOW BINLOG EVENTS: {message}");
            StatementAnswer::refused((SHOW_EVENTS_ERROR, message))
        }
    }
}

pub(crate) fn replicas(
    replicas: &[RegisteredReplica],
    system: &SystemVariables,
    words: ReplicationWords,
) -> StatementAnswer<'static> {
    let source_id = system.own("server_id").unwrap_or_default();
    let row = |replica: &RegisteredReplica| -> ResultRow {
        let RegisteredReplica { server_id, host, port, uuid } = replica;
        vec![cell(server_id), cell(host), cell(port), cell(source_id), cell(uuid)]
    };
    let columns = match words {
        ReplicationWords::Current => &REPLICA_COLUMNS,
        ReplicationWords::Older => &OLDER_REPLICA_COLUMNS,
    };
    StatementAnswer::rows(columns, replicas.iter().map(row).collect())
}
