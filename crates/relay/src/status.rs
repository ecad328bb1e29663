//! Everything about a running relay that somebody may want to see, at one moment.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use binlogz_store::{Position, StoredLog};
use serde::Serialize;

use crate::control::Phase;
use crate::error::Result;
use crate::meters::{Remembered, now};
use crate::relay::Relay;

/// See the module. Its names in JSON are stable.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// binlogz's version.
    pub version: &'static str,
    /// Since the start.
    pub uptime_seconds: u64,
    /// The receiving.
    pub source: SourceStatus,
    /// The log, once there is one.
    pub log: Option<LogStatus>,
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
}

/// The log.
#[derive(Debug, Clone, Serialize)]
pub struct LogStatus {
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
    /// Up to where it was sent the log, as it is stored.
    pub place: Place,
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
        self.source.phase != Phase::Failed
    }

    /// Bytes stored for each that was received.
    pub fn ratio(&self) -> Option<f64> {
        (self.bytes.received > 0).then(|| self.bytes.stored as f64 / self.bytes.received as f64)
    }
}

impl Relay {
    /// How it is now.
    pub(crate) fn status(&self) -> Result<Status> {
        let logs = match self.kept() {
            Some(kept) => kept.store.logs()?,
            None => Vec::new(),
        };
        let counts = self.gate.counts();
        let (errors, last_errors) = self.meters.errors();
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        Ok(Status {
            version: env!("CARGO_PKG_VERSION"),
            uptime_seconds: self.started.elapsed().as_secs(),
            source: self.source_status(),
            log: self.log_status(&logs),
            bytes: Bytes {
                received: load(&self.meters.received_bytes),
                stored: load(&self.meters.stored_bytes),
                served: self.dumps.bytes(),
                transactions: load(&self.meters.transactions),
            },
            replicas: self.replica_status(&logs),
            clients: Clients {
                logged_in: counts.logged_in,
                logging_in: counts.logging_in,
                turned_away: counts.turned_away,
            },
            errors,
            last_errors,
        })
    }

    fn source_status(&self) -> SourceStatus {
        let seen = self.control.seen();
        let last = self.meters.last_timestamp.load(Ordering::Relaxed);
        let drained = self.meters.drained.load(Ordering::Relaxed);
        let lag_seconds = match (seen.phase, last) {
            (Phase::Receiving, _) if drained => Some(0),
            (_, 0) => None,
            (_, last) => Some(now().saturating_sub(u64::from(last))),
        };
        SourceStatus {
            server: seen.server,
            phase: seen.phase,
            phase_seconds: seen.since.as_secs(),
            lag_seconds,
        }
    }

    fn log_status(&self, logs: &[StoredLog]) -> Option<LogStatus> {
        let kept = self.kept()?;
        let first = logs.first()?;
        // First the set: it must hold nothing that stands behind the position.
        let gtid_executed = kept.durable_gtids().to_string();
        let now = kept.store.positions()?;
        Some(LogStatus {
            source_uuid: kept.source.to_string(),
            files: logs.len(),
            first_file: first.name.clone(),
            bytes: logs.iter().map(|log| log.size).sum(),
            written: self.place(now.written),
            durable: self.place(now.durable),
            gtid_executed,
        })
    }

    fn place(&self, position: Position) -> Place {
        let file = self.kept().map(|kept| kept.store.names().log(position.file)).unwrap_or_default();
        Place { file, number: position.file.0, position: position.offset }
    }

    fn replica_status(&self, logs: &[StoredLog]) -> Vec<ReplicaStatus> {
        let Some(durable) = self.kept().and_then(|kept| kept.store.positions()).map(|now| now.durable) else {
            return Vec::new();
        };
        let status = |seen: crate::dumps::Seen| {
            let place = seen.place;
            let behind: u64 = logs
                .iter()
                .filter(|log| (place.file..durable.file).contains(&log.number))
                .map(|log| log.size)
                .sum();
            let lag_bytes = (behind + durable.offset).saturating_sub(place.offset);
            let lag_seconds = match (lag_bytes, seen.timestamp) {
                (0, _) => Some(0),
                (_, 0) => None,
                (_, last) => Some(now().saturating_sub(u64::from(last))),
            };
            ReplicaStatus {
                connection: seen.connection,
                user: seen.reader.user,
                address: seen.reader.peer.to_string(),
                server_id: seen.reader.server_id,
                server_uuid: seen.reader.uuid,
                form: seen.reader.form.name(),
                place: self.place(place),
                lag_bytes,
                lag_seconds,
                bytes: seen.bytes,
                connected_seconds: seen.age.as_secs(),
            }
        };
        self.dumps.seen().into_iter().map(status).collect()
    }
}
