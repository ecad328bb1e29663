//! SHOW REPLICA STATUS: the state of receiving in the server's columns. There is no applier here: durable transactions
//! count as executed, and the columns of filters, delays and the relay log are empty.

use crate::error::Result;
use crate::form::Form;
use crate::forms::file_walk::end_of;
use crate::log::lineage_log::LineageLog;
use crate::log::parts::FormFile;
use crate::log::stored_format::StoredHead;
use crate::receive::control::Phase;
use crate::statements::Statements;
use crate::statements::statement_answer::StatementAnswer;

/// The columns of 9.7, in its order, and whether they are numbers.
const COLUMNS: [(&str, bool); 60] = [
    ("Replica_IO_State", false),
    ("Source_Host", false),
    ("Source_User", false),
    ("Source_Port", true),
    ("Connect_Retry", true),
    ("Source_Log_File", false),
    ("Read_Source_Log_Pos", true),
    ("Relay_Log_File", false),
    ("Relay_Log_Pos", true),
    ("Relay_Source_Log_File", false),
    ("Replica_IO_Running", false),
    ("Replica_SQL_Running", false),
    ("Replicate_Do_DB", false),
    ("Replicate_Ignore_DB", false),
    ("Replicate_Do_Table", false),
    ("Replicate_Ignore_Table", false),
    ("Replicate_Wild_Do_Table", false),
    ("Replicate_Wild_Ignore_Table", false),
    ("Last_Errno", true),
    ("Last_Error", false),
    ("Skip_Counter", true),
    ("Exec_Source_Log_Pos", true),
    ("Relay_Log_Space", true),
    ("Until_Condition", false),
    ("Until_Log_File", false),
    ("Until_Log_Pos", true),
    ("Source_SSL_Allowed", false),
    ("Source_SSL_CA_File", false),
    ("Source_SSL_CA_Path", false),
    ("Source_SSL_Cert", false),
    ("Source_SSL_Cipher", false),
    ("Source_SSL_Key", false),
    ("Seconds_Behind_Source", true),
    ("Source_SSL_Verify_Server_Cert", false),
    ("Last_IO_Errno", true),
    ("Last_IO_Error", false),
    ("Last_SQL_Errno", true),
    ("Last_SQL_Error", false),
    ("Replicate_Ignore_Server_Ids", false),
    ("Source_Server_Id", true),
    ("Source_UUID", false),
    ("Source_Info_File", false),
    ("SQL_Delay", true),
    ("SQL_Remaining_Delay", true),
    ("Replica_SQL_Running_State", false),
    ("Source_Retry_Count", true),
    ("Source_Bind", false),
    ("Last_IO_Error_Timestamp", false),
    ("Last_SQL_Error_Timestamp", false),
    ("Source_SSL_Crl", false),
    ("Source_SSL_Crlpath", false),
    ("Retrieved_Gtid_Set", false),
    ("Executed_Gtid_Set", false),
    ("Auto_Position", true),
    ("Replicate_Rewrite_DB", false),
    ("Channel_Name", false),
    ("Source_TLS_Version", false),
    ("Source_public_key_path", false),
    ("Get_Source_public_key", false),
    ("Network_Namespace", false),
];

/// CR_CONNECTION_ERROR and its kind: receiving can't continue at present.
const NOT_CONNECTED: u16 = 2003;

pub(crate) fn replica_status(statements: &Statements, kept: &LineageLog) -> Result<StatementAnswer<'static>> {
    let source = statements.intake.status();
    let (host, port) = source.server.rsplit_once(':').unwrap_or((&source.server, ""));
    let phase = source.phase;
    let (io_state, running) = match phase {
        Phase::Connecting => ("Connecting to source", "Connecting"),
        Phase::Receiving => ("Waiting for source to send event", "Yes"),
        Phase::Waiting => ("Reconnecting after a failed source event read", "Connecting"),
        Phase::Stopped | Phase::Failed => ("", "No"),
    };
    let (mut file, mut position) = (String::new(), 0);
    if let Some(now) = kept.store.positions() {
        file = kept.names.name(Form::Received, now.durable.file);
        position = end_of(
            statements.intake.conversions.of(kept),
            Form::Received,
            FormFile::first_of(now.durable.file),
        )?;
    }
    let error = match phase {
        Phase::Waiting | Phase::Failed => source.error.clone(),
        _ => None,
    };
    let gtids = kept.durable_gtids().to_string();
    let source_id = match kept.store.positions() {
        Some(now) => StoredHead::read(&kept.store, now.durable.file)?.header.server_id,
        None => 0,
    };
    let bytes: u64 = kept.store.logs()?.iter().map(|log| log.size).sum();
    let value = |name: &str| -> Option<String> {
        Some(match name {
            "Replica_IO_State" => io_state.into(),
            "Source_Host" => host.into(),
            "Source_Port" => port.into(),
            "Source_Log_File" | "Relay_Source_Log_File" => file.clone(),
            "Read_Source_Log_Pos" | "Exec_Source_Log_Pos" => position.to_string(),
            "Replica_IO_Running" => running.into(),
            "Replica_SQL_Running" => "No".into(),
            "Relay_Log_Space" => bytes.to_string(),
            "Until_Condition" => "None".into(),
            "Seconds_Behind_Source" => source.lag_seconds?.to_string(),
            "Last_IO_Errno" => if error.is_some() { NOT_CONNECTED } else { 0 }.to_string(),
            "Last_IO_Error" => error.clone().unwrap_or_default(),
            "Source_Server_Id" => source_id.to_string(),
            "Source_UUID" => kept.source.to_string(),
            "SQL_Remaining_Delay" => return None,
            "Retrieved_Gtid_Set" | "Executed_Gtid_Set" => gtids.clone(),
            "Auto_Position" => u8::from(statements.intake.has_gtids()).to_string(),
            _ => return None,
        })
    };
    let row = COLUMNS
        .iter()
        .map(|(name, is_number)| match value(name) {
            Some(value) => Some(value.into_bytes()),
            None if matches!(*name, "SQL_Remaining_Delay" | "Seconds_Behind_Source") => None,
            None => Some(if *is_number { b"0".to_vec() } else { Vec::new() }),
        })
        .collect();
    Ok(StatementAnswer::rows(&COLUMNS, vec![row]))
}
