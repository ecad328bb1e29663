//! Asks the parts of a running relay how they are.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use binlogz_store::{Position, StoredLog};

use super::{
    Begun, Bytes, Clients, LineageState, LineageStatus, LogStatus, Place, ReplicaStatus, SourceStatus, Status,
};
use crate::control::Phase;
use crate::error::Result;
use crate::lineages::Kept;
use crate::meters::now;
use crate::relay::Relay;

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
            damage: self.lineages.damage(),
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
            replicas_waited_for: match self.acknowledgements.are_waited_for() {
                true => self.options.wait_for_replicas.count,
                false => 0,
            },
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
    let place_of = |at: Position| {
        its.map_or_else(
            || Place { file: String::new(), number: at.file.0, position: at.offset },
            |(_, kept)| place(kept, at),
        )
    };
    ReplicaStatus {
        connection: seen.connection,
        user: seen.reader.user,
        address: seen.reader.peer.to_string(),
        server_id: seen.reader.server_id,
        server_uuid: seen.reader.uuid,
        form: seen.reader.form.name(),
        lineage: seen.reader.lineage,
        place: place_of(at),
        semi_sync: seen.reader.semi_sync,
        acknowledged: seen.acknowledged.map(place_of),
        acknowledgements: seen.acknowledgements,
        lag_bytes,
        lag_seconds,
        bytes: seen.bytes,
        connected_seconds: seen.age.as_secs(),
    }
}
