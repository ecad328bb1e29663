//! Everything about a running relay that somebody may want to see, at one moment; `gather.rs` asks its parts.

mod gather;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::control::Phase;
use crate::meters::Remembered;

/// See the module. Its names in JSON are stable.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// binlogz's version.
    pub version: &'static str,
    /// Since the start.
    pub uptime_seconds: u64,
    /// The receiving.
    pub source: SourceStatus,
    /// The log that is served, once there is one.
    pub log: Option<LogStatus>,
    /// All logs that are kept, the oldest first: each server's that was followed, and each that a server began anew.
    pub lineages: Vec<LineageStatus>,
    /// What is damaged of the logs that are served, until the source has repaired it.
    pub damage: Vec<String>,
    /// Bytes since the start.
    pub bytes: Bytes,
    /// Those who read the log.
    pub replicas: Vec<ReplicaStatus>,
    /// Connections.
    pub clients: Clients,
    /// Errors since the start, by kind.
    pub errors: BTreeMap<&'static str, u64>,
    /// The newest first.
    pub last_errors: Vec<Remembered>,
}

/// The receiving.
#[derive(Debug, Clone, Serialize)]
pub struct SourceStatus {
    /// Host and port.
    pub server: String,
    /// What the receiving does.
    pub phase: Phase,
    /// Since when.
    pub phase_seconds: u64,
    /// How old the last event is that came; 0: all that the source sent has come.
    pub lag_seconds: Option<u64>,
    /// So many replicas are waited for at present, before the relay acknowledges to the source.
    pub replicas_waited_for: usize,
}

/// A log that is kept.
#[derive(Debug, Clone, Serialize)]
pub struct LineageStatus {
    /// Counted from 1.
    pub lineage: u64,
    /// Whose log it is.
    pub source_uuid: String,
    /// Below the relay's directory; empty: that itself.
    pub folder: String,
    /// How it began.
    pub begun: Begun,
    /// What is done with it.
    pub state: LineageState,
    /// How many files.
    pub files: usize,
    /// Of all of them, on disk.
    pub bytes: u64,
    /// Its end, as it is stored.
    pub end: Option<Place>,
    /// The GTIDs of what is durable.
    pub gtid_executed: String,
}

/// How a log began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Begun {
    /// As the first one.
    First,
    /// When another server was followed: it goes on where the one before ends.
    Failover,
    /// When the server's log was reset or put back.
    Anew,
}

/// What is done with a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LineageState {
    /// It is received.
    Received,
    /// It is served to those who lack its end.
    Served,
    /// It is only kept: the server began another one in its place.
    Abandoned,
}

/// The log.
#[derive(Debug, Clone, Serialize)]
pub struct LogStatus {
    /// Which of those that are kept, counted from 1.
    pub lineage: u64,
    /// The source's server uuid.
    pub source_uuid: String,
    /// How many files.
    pub files: usize,
    /// The oldest one.
    pub first_file: String,
    /// Of all of them, on disk.
    pub bytes: u64,
    /// Up to where the source's log has come.
    pub written: Place,
    /// Up to where it survives a crash, and is served.
    pub durable: Place,
    /// The GTIDs of what is durable.
    pub gtid_executed: String,
}

/// A place in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The file's name, as the source has it.
    pub file: String,
    /// The file's number.
    pub number: u64,
    /// Where in it.
    pub position: u64,
}

/// Bytes since the start.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Bytes {
    /// Events of the source's files.
    pub received: u64,
    /// Appended to the log.
    pub stored: u64,
    /// Sent to replicas.
    pub served: u64,
    /// Transactions that came.
    pub transactions: u64,
}

/// One who reads the log.
#[derive(Debug, Clone, Serialize)]
pub struct ReplicaStatus {
    /// The connection's number.
    pub connection: u32,
    /// The account.
    pub user: String,
    /// From where.
    pub address: String,
    /// As it says itself.
    pub server_id: u32,
    /// As it says itself; may be empty.
    pub server_uuid: String,
    /// What it is served.
    pub form: &'static str,
    /// Which log, counted from 1.
    pub lineage: u64,
    /// Up to where it was sent the log, as it is stored.
    pub place: Place,
    /// Whether it acknowledges what it is sent (semi-synchronous replication).
    pub semi_sync: bool,
    /// Up to where it has, as it is stored.
    pub acknowledged: Option<Place>,
    /// How often.
    pub acknowledgements: u64,
    /// Bytes of the stored log that it was not sent yet.
    pub lag_bytes: u64,
    /// How old the last transaction is that it was sent; 0: it was sent all.
    pub lag_seconds: Option<u64>,
    /// Bytes sent.
    pub bytes: u64,
    /// How long it is connected.
    pub connected_seconds: u64,
}

/// Connections.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Clients {
    /// At present.
    pub logged_in: usize,
    /// At present.
    pub logging_in: usize,
    /// Since the start: too many, or too slow.
    pub turned_away: u64,
}

impl Status {
    /// Whether replicas can be served.
    pub fn is_ready(&self) -> bool {
        self.log.is_some()
    }

    /// Whether nobody need decide or repair anything.
    pub fn is_healthy(&self) -> bool {
        self.source.phase != Phase::Failed && self.damage.is_empty()
    }

    /// Bytes stored for each that was received.
    pub fn ratio(&self) -> Option<f64> {
        (self.bytes.received > 0).then(|| self.bytes.stored as f64 / self.bytes.received as f64)
    }
}
