//! A snapshot of one source of a running relay, for its page, JSON and metrics. `gather.rs` collects it from the parts,
//! `health.rs` says what is wrong in it.

mod gather;
mod health;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::housekeeping::checking::ArchiveCheckStatus;
use crate::housekeeping::scrub::ScrubStatus;
use crate::rates::RatesStatus;
use crate::receive::source_status::SourceStatus;
use crate::telemetry::duties::{ACCEPT, DutyStatus};
use crate::telemetry::meters::RememberedError;

/// A snapshot of one source of a running relay. The field names in JSON are stable.
#[derive(Debug, Clone, Serialize)]
pub struct SourceReport {
    /// binlogz's version.
    pub version: &'static str,
    /// Since the source was opened.
    pub uptime_seconds: u64,
    /// Problems that someone must look at, the gravest first; empty if the relay is healthy.
    pub troubles: Vec<String>,
    /// The relay's duties, and whether each is working.
    pub duties: Vec<DutyStatus>,
    /// The state of receiving.
    pub source: SourceStatus,
    /// The log that is served, once there is one.
    pub log: Option<LogStatus>,
    /// All stored logs, oldest first: one for each server we followed, and one for each reset of a server's log.
    pub lineages: Vec<LineageStatus>,
    /// Where closed files go, if anywhere.
    pub archive: Option<ArchiveStatus>,
    /// How far closed files were read to find damage.
    pub scrub: ScrubStatus,
    /// Limits on bytes a second.
    pub rates: RatesStatus,
    /// Free room on the disk that has the log.
    pub disk_free_bytes: Option<u64>,
    /// Damage in the served logs that the source has not repaired yet.
    pub damage: Vec<String>,
    /// Bytes since the start.
    pub bytes: StatusBytes,
    /// The replicas that read the log.
    pub replicas: Vec<ReplicaStatus>,
    /// Connections, of all sources.
    pub clients: StatusClients,
    /// SHA-256 of the certificate for clients, as openssl prints it; none without TLS.
    pub tls_fingerprint: Option<String>,
    /// Errors since the start, by kind.
    pub errors: BTreeMap<&'static str, u64>,
    /// The newest first.
    pub last_errors: Vec<RememberedError>,
}

/// A stored log.
#[derive(Debug, Clone, Serialize)]
pub struct LineageStatus {
    /// Counted from 1.
    pub lineage: u64,
    /// The server whose log it is.
    pub source_uuid: String,
    /// The folder below the relay's directory; empty: the directory itself.
    pub folder: String,
    /// The reason for its beginning.
    pub begun: LineageOrigin,
    /// How the log is used at present.
    pub state: LineageState,
    /// How many files.
    pub files: usize,
    /// Bytes of all files, on disk.
    pub bytes: u64,
    /// Where the log ends, as it is stored.
    pub end: Option<LogPosition>,
    /// The GTIDs of what is durable.
    pub gtid_executed: String,
}

/// How a log began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LineageOrigin {
    /// As the first one.
    First,
    /// Another server was followed: it continues where the one before ends.
    Failover,
    /// When the server's log was reset or put back.
    Anew,
}

/// A log's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LineageState {
    /// It is received.
    Received,
    /// It is served to replicas that lack its end.
    Served,
    /// It is only kept: the server began another log in its place.
    Abandoned,
}

/// The log.
#[derive(Debug, Clone, Serialize)]
pub struct LogStatus {
    /// The log's number among the stored logs, counted from 1.
    pub lineage: u64,
    /// The source's server uuid.
    pub source_uuid: String,
    /// How many files.
    pub files: usize,
    /// The oldest one.
    pub first_file: String,
    /// Bytes of all files, on disk.
    pub bytes: u64,
    /// The end of the source's log, as far as we know.
    pub written: LogPosition,
    /// The end of the part that survives a crash and is served.
    pub durable: LogPosition,
    /// The GTIDs of what is durable.
    pub gtid_executed: String,
}

/// The archive of a source.
#[derive(Debug, Clone, Serialize)]
pub struct ArchiveStatus {
    /// Where it is.
    pub to: String,
    /// The tables that it has, if it is a selection: its files take no place of those of the log.
    pub selection: Option<String>,
    /// The last file that is there; none until the relay has looked, after a start.
    pub last_file: Option<String>,
    /// Closed files that are not there yet.
    pub waiting_files: usize,
    /// How long none was archived though some wait; 0 if none does.
    pub still_seconds: u64,
    /// How long it has been failing; none if it isn't.
    pub failing_seconds: Option<u64>,
    /// How it was checked; none: it isn't.
    pub check: Option<ArchiveCheckStatus>,
}

/// A place in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogPosition {
    /// The file's name, as the source has it.
    pub file: String,
    /// The file's number.
    pub number: u64,
    /// Where in it.
    pub position: u64,
}

/// Bytes since the start.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct StatusBytes {
    /// Events of the source's files.
    pub received: u64,
    /// Appended to the log.
    pub stored: u64,
    /// Sent to replicas.
    pub served: u64,
    /// Transactions that came.
    pub transactions: u64,
}

/// A replica that reads the log.
#[derive(Debug, Clone, Serialize)]
pub struct ReplicaStatus {
    /// The connection's number.
    pub connection: u32,
    /// The account.
    pub user: String,
    /// From where.
    pub address: String,
    /// As the replica itself says.
    pub server_id: u32,
    /// As the replica itself says; may be empty.
    pub server_uuid: String,
    /// The form that it is served.
    pub form: &'static str,
    /// Its profile: the one of its account, or of what it says of itself.
    pub profile: &'static str,
    /// Whether clients of that profile read compressed transactions.
    pub reads_compressed: bool,
    /// Statements about accounts that it was not sent on this connection, since its profile can't run them.
    pub left_out_account_statements: u64,
    /// Events with rows that it was not sent on this connection, since its account leaves out their tables.
    pub left_out_rows_events: u64,
    /// XA transactions that are prepared, whose rows it gets when they are committed, since its profile doesn't know XA.
    pub prepared_xa_transactions: u64,
    /// XA transactions that it got as plain ones on this connection.
    pub translated_xa_transactions: u64,
    /// Which log, counted from 1.
    pub lineage: u64,
    /// The position in the stored log up to which it was sent.
    pub place: LogPosition,
    /// Whether it gets every row as the source has it; otherwise nobody waits for its acknowledgements.
    pub is_copy: bool,
    /// Whether it acknowledges the transactions it receives (semi-synchronous replication).
    pub semi_sync: bool,
    /// The last acknowledged position in the stored log.
    pub acknowledged: Option<LogPosition>,
    /// How often.
    pub acknowledgements: u64,
    /// Bytes of the stored log that it was not sent yet.
    pub lag_bytes: u64,
    /// The age of the last transaction that it was sent; 0: it was sent everything.
    pub lag_seconds: Option<u64>,
    /// Bytes sent.
    pub bytes: u64,
    /// How long it has been connected.
    pub connected_seconds: u64,
}

/// The part of a source's status that is about the whole relay.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedStatus {
    pub(crate) version: &'static str,
    pub(crate) clients: StatusClients,
    pub(crate) tls_fingerprint: Option<String>,
}

/// Connections.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct StatusClients {
    /// At present.
    pub logged_in: usize,
    /// At present.
    pub logging_in: usize,
    /// Since the start: too many, or too slow.
    pub turned_away: u64,
}

impl SourceReport {
    /// The reasons why replicas can't be served; empty: they can be.
    pub(crate) fn unreadiness(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.log.is_none() {
            wrong.push("nothing of the source's log is here yet".to_owned());
        }
        let accepting = self.duties.iter().find(|duty| duty.name == ACCEPT);
        wrong.extend(accepting.and_then(DutyStatus::trouble));
        wrong
    }

    /// Whether no person has to decide or repair anything.
    pub fn is_healthy(&self) -> bool {
        self.troubles.is_empty()
    }

    /// Bytes stored for each that was received.
    pub fn ratio(&self) -> Option<f64> {
        (self.bytes.received > 0).then(|| self.bytes.stored as f64 / self.bytes.received as f64)
    }
}
