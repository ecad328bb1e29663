//! SHOW REPLICA STATUS: the state of receiving in the server's columns. There is no applier here: durable transactions
//! count as executed, and the columns of filters, delays and the relay log are empty.

use binlogz_binlog::gtid::GtidSet;
use binlogz_wire::statement::ReplicationWords;

use crate::statement_answer::StatementAnswer;

/// The state of the thread that receives the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiverState {
    /// It connects to the source.
    Connecting,
    /// It receives.
    Receiving,
    /// It waits before it connects again.
    Reconnecting,
    /// It is stopped, or has failed for good.
    Stopped,
}

/// The facts of which SHOW REPLICA STATUS consists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaStatusFacts {
    /// The source's host and port.
    pub source: String,
    /// The receiver's state.
    pub receiver: ReceiverState,
    /// Why it is not receiving.
    pub error: Option<String>,
    /// How far the log lags behind the source; `None` if it is not known.
    pub lag_seconds: Option<u64>,
    /// The source's file in which the stored log ends; empty if nothing is stored.
    pub file: String,
    /// The durable end of the log in that file.
    pub position: u64,
    /// The bytes of all stored files.
    pub stored_bytes: u64,
    /// The source's server id, 0 if it is not known.
    pub source_server_id: u32,
    /// The source's uuid.
    pub source_uuid: String,
    /// All transactions that are durable.
    pub gtids: GtidSet,
    /// Whether the source has GTIDs.
    pub has_gtids: bool,
}

/// The columns of 9.7 in its order, their names in SHOW SLAVE STATUS of 8.0.33, and whether they are numbers.
const COLUMNS: [(&str, &str, bool); 60] = [
    ("Replica_IO_State", "Slave_IO_State", false),
    ("Source_Host", "Master_Host", false),
    ("Source_User", "Master_User", false),
    ("Source_Port", "Master_Port", true),
    ("Connect_Retry", "Connect_Retry", true),
    ("Source_Log_File", "Master_Log_File", false),
    ("Read_Source_Log_Pos", "Read_Master_Log_Pos", true),
    ("Relay_Log_File", "Relay_Log_File", false),
    ("Relay_Log_Pos", "Relay_Log_Pos", true),
    ("Relay_Source_Log_File", "Relay_Master_Log_File", false),
    ("Replica_IO_Running", "Slave_IO_Running", false),
    ("Replica_SQL_Running", "Slave_SQL_Running", false),
    ("Replicate_Do_DB", "Replicate_Do_DB", false),
    ("Replicate_Ignore_DB", "Replicate_Ignore_DB", false),
    ("Replicate_Do_Table", "Replicate_Do_Table", false),
    ("Replicate_Ignore_Table", "Replicate_Ignore_Table", false),
    ("Replicate_Wild_Do_Table", "Replicate_Wild_Do_Table", false),
    ("Replicate_Wild_Ignore_Table", "Replicate_Wild_Ignore_Table", false),
    ("Last_Errno", "Last_Errno", true),
    ("Last_Error", "Last_Error", false),
    ("Skip_Counter", "Skip_Counter", true),
    ("Exec_Source_Log_Pos", "Exec_Master_Log_Pos", true),
    ("Relay_Log_Space", "Relay_Log_Space", true),
    ("Until_Condition", "Until_Condition", false),
    ("Until_Log_File", "Until_Log_File", false),
    ("Until_Log_Pos", "Until_Log_Pos", true),
    ("Source_SSL_Allowed", "Master_SSL_Allowed", false),
    ("Source_SSL_CA_File", "Master_SSL_CA_File", false),
    ("Source_SSL_CA_Path", "Master_SSL_CA_Path", false),
    ("Source_SSL_Cert", "Master_SSL_Cert", false),
    ("Source_SSL_Cipher", "Master_SSL_Cipher", false),
    ("Source_SSL_Key", "Master_SSL_Key", false),
    ("Seconds_Behind_Source", "Seconds_Behind_Master", true),
    ("Source_SSL_Verify_Server_Cert", "Master_SSL_Verify_Server_Cert", false),
    ("Last_IO_Errno", "Last_IO_Errno", true),
    ("Last_IO_Error", "Last_IO_Error", false),
    ("Last_SQL_Errno", "Last_SQL_Errno", true),
    ("Last_SQL_Error", "Last_SQL_Error", false),
    ("Replicate_Ignore_Server_Ids", "Replicate_Ignore_Server_Ids", false),
    ("Source_Server_Id", "Master_Server_Id", true),
    ("Source_UUID", "Master_UUID", false),
    ("Source_Info_File", "Master_Info_File", false),
    ("SQL_Delay", "SQL_Delay", true),
    ("SQL_Remaining_Delay", "SQL_Remaining_Delay", true),
    ("Replica_SQL_Running_State", "Slave_SQL_Running_State", false),
    ("Source_Retry_Count", "Master_Retry_Count", true),
    ("Source_Bind", "Master_Bind", false),
    ("Last_IO_Error_Timestamp", "Last_IO_Error_Timestamp", false),
    ("Last_SQL_Error_Timestamp", "Last_SQL_Error_Timestamp", false),
    ("Source_SSL_Crl", "Master_SSL_Crl", false),
    ("Source_SSL_Crlpath", "Master_SSL_Crlpath", false),
    ("Retrieved_Gtid_Set", "Retrieved_Gtid_Set", false),
    ("Executed_Gtid_Set", "Executed_Gtid_Set", false),
    ("Auto_Position", "Auto_Position", true),
    ("Replicate_Rewrite_DB", "Replicate_Rewrite_DB", false),
    ("Channel_Name", "Channel_Name", false),
    ("Source_TLS_Version", "Master_TLS_Version", false),
    ("Source_public_key_path", "Master_public_key_path", false),
    ("Get_Source_public_key", "Get_master_public_key", false),
    ("Network_Namespace", "Network_Namespace", false),
];

/// CR_CONNECTION_ERROR and its kind: receiving can't continue at present.
const NOT_CONNECTED: u16 = 2003;

pub(crate) fn replica_status(
    facts: &ReplicaStatusFacts,
    words: ReplicationWords,
) -> StatementAnswer<'static> {
    let (host, port) = facts.source.rsplit_once(':').unwrap_or((&facts.source, ""));
    let (io_state, running) = match facts.receiver {
        ReceiverState::Connecting => ("Connecting to source", "Connecting"),
        ReceiverState::Receiving => ("Waiting for source to send event", "Yes"),
        ReceiverState::Reconnecting => ("Reconnecting after a failed source event read", "Connecting"),
        ReceiverState::Stopped => ("", "No"),
    };
    let gtids = facts.gtids.to_string();
    let value = |name: &str| -> Option<String> {
        Some(match name {
            "Replica_IO_State" => io_state.into(),
            "Source_Host" => host.into(),
            "Source_Port" => port.into(),
            "Source_Log_File" | "Relay_Source_Log_File" => facts.file.clone(),
            "Read_Source_Log_Pos" | "Exec_Source_Log_Pos" => facts.position.to_string(),
            "Replica_IO_Running" => running.into(),
            "Replica_SQL_Running" => "No".into(),
            "Relay_Log_Space" => facts.stored_bytes.to_string(),
            "Until_Condition" => "None".into(),
            "Seconds_Behind_Source" => facts.lag_seconds?.to_string(),
            "Last_IO_Errno" => if facts.error.is_some() { NOT_CONNECTED } else { 0 }.to_string(),
            "Last_IO_Error" => facts.error.clone().unwrap_or_default(),
            "Source_Server_Id" => facts.source_server_id.to_string(),
            "Source_UUID" => facts.source_uuid.clone(),
            "SQL_Remaining_Delay" => return None,
            "Retrieved_Gtid_Set" | "Executed_Gtid_Set" => gtids.clone(),
            "Auto_Position" => u8::from(facts.has_gtids).to_string(),
            _ => return None,
        })
    };
    let row = COLUMNS
        .iter()
        .map(|(name, _, is_number)| match value(name) {
            Some(value) => Some(value.into_bytes()),
            None if matches!(*name, "SQL_Remaining_Delay" | "Seconds_Behind_Source") => None,
            None => Some(if *is_number { b"0".to_vec() } else { Vec::new() }),
        })
        .collect();
    let columns = COLUMNS.map(|(name, older, is_number)| match words {
        ReplicationWords::Current => (name, is_number),
        ReplicationWords::Older => (older, is_number),
    });
    StatementAnswer::rows(&columns, vec![row])
}
