//! Everything about a running relay that somebody may want to see, at one moment.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use binlogz_store::{Position, StoredLog};
use serde::Serialize;

use crate::control::Phase;
use crate::error::Result;
use crate::lineages::Kept;
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
    /// The log that is served, once there is one.
    pub log: Option<LogStatus>,
    /// All logs that are kept, the oldest first: each server's that was followed, and each that a server began anew.
    pub lineages: Vec<LineageStatus>,
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
        let counts = self.gate.counts();
        let (errors, last_errors) = self.meters.errors();
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let mut logs = Vec::new();
        for kept in self.lineages.all() {
            logs.push((kept.store.logs()?, kept));
        }
        Ok(Status {
            version: env!("CARGO_PKG_VERSION"),
            uptime_seconds: self.started.elapsed().as_secs(),
            source: self.source_status(),
            log: self.log_status()?,
            lineages: logs.iter().map(|(logs, kept)| lineage_status(kept, logs)).collect(),
            bytes: Bytes {
                received: load(&self.meters.received_bytes),
                stored: load(&self.meters.stored_bytes),
                served: self.dumps.bytes(),
                transactions: load(&self.meters.transactions),
            },
            replicas: self.dumps.seen().into_iter().map(|seen| replica_status(&logs, seen)).collect(),
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

    fn log_status(&self) -> Result<Option<LogStatus>> {
        let Some(kept) = self.kept() else { return Ok(None) };
        let logs = kept.store.logs()?;
        // First the set: it must hold nothing that stands behind the position.
        let gtid_executed = kept.durable_gtids().to_string();
        let (Some(first), Some(now)) = (logs.first(), kept.store.positions()) else { return Ok(None) };
        Ok(Some(LogStatus {
            lineage: kept.number,
            source_uuid: kept.source.to_string(),
            files: logs.len(),
            first_file: first.name.clone(),
            bytes: logs.iter().map(|log| log.size).sum(),
            written: place(&kept, now.written),
            durable: place(&kept, now.durable),
            gtid_executed,
        }))
    }
}

fn place(kept: &Kept, position: Position) -> Place {
    let file = kept.store.names().log(position.file);
    Place { file, number: position.file.0, position: position.offset }
}

fn lineage_status(kept: &Kept, logs: &[StoredLog]) -> LineageStatus {
    LineageStatus {
        lineage: kept.number,
        source_uuid: kept.source.to_string(),
        folder: kept.folder.clone().unwrap_or_default(),
        begun: match kept.is_root {
            true if kept.number == 1 => Begun::First,
            true => Begun::Anew,
            false => Begun::Failover,
        },
        state: match kept.is_retired() {
            false => LineageState::Received,
            true if kept.is_abandoned() => LineageState::Abandoned,
            true => LineageState::Served,
        },
        files: logs.len(),
        bytes: logs.iter().map(|log| log.size).sum(),
        gtid_executed: kept.durable_gtids().to_string(),
        end: kept.store.positions().map(|now| place(kept, now.durable)),
    }
}

/// How far a replica is behind the end of the log that is received: through all logs in between.
fn replica_status(logs: &[(Vec<StoredLog>, Arc<Kept>)], seen: crate::dumps::Seen) -> ReplicaStatus {
    let at = seen.place;
    let mut lag_bytes = 0;
    for (files, kept) in logs.iter().filter(|(_, kept)| kept.number >= seen.reader.lineage) {
        let begins = if kept.number == seen.reader.lineage { Some(at) } else { None };
        let Some(durable) = kept.store.positions().map(|now| now.durable) else { continue };
        let is_behind =
            |log: &&StoredLog| begins.is_none_or(|at| log.number >= at.file) && log.number < durable.file;
        let behind: u64 = files.iter().filter(is_behind).map(|log| log.size).sum();
        lag_bytes += (behind + durable.offset).saturating_sub(begins.map_or(0, |at| at.offset));
    }
    let lag_seconds = match (lag_bytes, seen.timestamp) {
        (0, _) => Some(0),
        (_, 0) => None,
        (_, last) => Some(now().saturating_sub(u64::from(last))),
    };
    let its = logs.iter().find(|(_, kept)| kept.number == seen.reader.lineage);
    ReplicaStatus {
        connection: seen.connection,
        user: seen.reader.user,
        address: seen.reader.peer.to_string(),
        server_id: seen.reader.server_id,
        server_uuid: seen.reader.uuid,
        form: seen.reader.form.name(),
        lineage: seen.reader.lineage,
        place: its.map_or_else(
            || Place { file: String::new(), number: at.file.0, position: at.offset },
            |(_, kept)| place(kept, at),
        ),
        lag_bytes,
        lag_seconds,
        bytes: seen.bytes,
        connected_seconds: seen.age.as_secs(),
    }
}
