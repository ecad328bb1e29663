//! Collects the state of each part of a running relay.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use binlogz_relay_log::LineageLog;
use binlogz_store::{Position, StoredLog};

use super::health::{Signs, troubles};
use super::{
    ArchiveStatus, LineageOrigin, LineageState, LineageStatus, LogPosition, LogStatus, ReplicaStatus,
    SharedStatus, SourceReport, StatusBytes,
};
use crate::error::Result;
use crate::housekeeping::{archiving, checking, retention};
use crate::time::now;
use crate::watch::SourceWatch;

impl SourceWatch {
    pub(crate) fn status(&self, shared: &SharedStatus) -> Result<SourceReport> {
        let (errors, last_errors) = self.telemetry.meters.errors();
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let mut logs = Vec::new();
        for kept in self.server.lineages.all() {
            logs.push((kept.store.logs()?, kept));
        }
        let control = self.intake.control.seen();
        let duties = self.telemetry.duties.seen();
        let damage = self.server.lineages.damage();
        let troubles = troubles(&Signs {
            damage: &damage,
            housekeeping: &self.housekeeping_troubles()?,
            control: &control,
            duties: &duties,
            standstill: self.telemetry.lag.standstill(Instant::now()),
            syncing: self.telemetry.meters.syncing(),
        });
        let source_time = self.telemetry.lag.source_time(now());
        Ok(SourceReport {
            version: shared.version,
            uptime_seconds: self.started.elapsed().as_secs(),
            troubles,
            duties,
            source: self.intake.status(),
            log: self.log_status()?,
            lineages: logs.iter().map(|(logs, kept)| lineage_status(kept, logs)).collect(),
            archive: self.archive_status()?,
            scrub: self.server.housekeeping.scrub.status(),
            rates: self.intake.throttles.status(),
            disk_free_bytes: self.server.lineages.free_space().ok().flatten(),
            damage,
            bytes: StatusBytes {
                received: load(&self.telemetry.meters.received_bytes),
                stored: load(&self.telemetry.meters.stored_bytes),
                served: self.server.dumps.bytes(),
                transactions: load(&self.telemetry.meters.transactions),
            },
            replicas: self
                .server
                .dumps
                .seen()
                .into_iter()
                .map(|seen| replica_status(&logs, source_time, seen))
                .collect(),
            tls_fingerprint: shared.tls_fingerprint.clone(),
            clients: shared.clients,
            errors,
            last_errors,
        })
    }

    fn archive_status(&self) -> Result<Option<ArchiveStatus>> {
        let options = self.server.housekeeping.archive.as_ref();
        let (Some(options), Some(kept)) = (options, self.server.lineages.last()) else { return Ok(None) };
        let waiting_files = archiving::waiting(&kept)?.len();
        let now = Instant::now();
        Ok(Some(ArchiveStatus {
            to: options.place_of(&kept).display().to_string(),
            selection: (!options.tables.is_all()).then(|| options.tables.to_string()),
            last_file: kept.archived.last().map(|number| options.name_of(&kept.store.names().log(number))),
            waiting_files,
            still_seconds: if waiting_files > 0 { kept.archived.still(now).as_secs() } else { 0 },
            failing_seconds: kept.archived.failing(now).map(|(long, _)| long.as_secs()),
            check: self.server.housekeeping.checks.status(options),
        }))
    }

    /// The problems with archiving, with archives and with purging, one line each.
    fn housekeeping_troubles(&self) -> Result<Vec<String>> {
        let house = &self.server.housekeeping;
        let mut troubles = Vec::new();
        if house.archive.is_some() {
            for kept in self.server.lineages.all() {
                troubles.extend(archiving::trouble(house, &kept, &archiving::waiting(&kept)?));
                troubles.extend(checking::troubles(house, &kept));
            }
        }
        troubles.extend(retention::trouble(house));
        Ok(troubles)
    }

    fn log_status(&self) -> Result<Option<LogStatus>> {
        let Some(kept) = self.server.lineages.served() else { return Ok(None) };
        let logs = kept.store.logs()?;
        // Read the set first: it must hold nothing after the position.
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

fn place(kept: &LineageLog, position: Position) -> LogPosition {
    let file = kept.store.names().log(position.file);
    LogPosition { file, number: position.file.0, position: position.offset }
}

fn lineage_status(kept: &LineageLog, logs: &[StoredLog]) -> LineageStatus {
    LineageStatus {
        lineage: kept.number,
        source_uuid: kept.source.to_string(),
        folder: kept.folder.clone().unwrap_or_default(),
        begun: match kept.is_root {
            true if kept.number == 1 => LineageOrigin::First,
            true => LineageOrigin::Anew,
            false => LineageOrigin::Failover,
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

/// The form of a dump that leaves by a policy.
const MASKED: &str = "masked";

/// How far a replica lags behind the end of the received log, through all logs in between.
fn replica_status(
    logs: &[(Vec<StoredLog>, Arc<LineageLog>)],
    source_time: u64,
    seen: crate::replicas::dumps::DumpState,
) -> ReplicaStatus {
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
        (_, last) => Some(source_time.saturating_sub(u64::from(last))),
    };
    let its = logs.iter().find(|(_, kept)| kept.number == seen.reader.lineage);
    let place_of = |at: Position| {
        its.map_or_else(
            || LogPosition { file: String::new(), number: at.file.0, position: at.offset },
            |(_, kept)| place(kept, at),
        )
    };
    ReplicaStatus {
        connection: seen.connection,
        user: seen.reader.user,
        address: seen.reader.peer.to_string(),
        server_id: seen.reader.server_id,
        server_uuid: seen.reader.uuid,
        form: if seen.reader.is_masked { MASKED } else { seen.reader.form.name() },
        profile: seen.reader.profile,
        reads_compressed: seen.reader.knows_payloads,
        left_out_account_statements: seen.left_out_account_statements,
        left_out_rows_events: seen.left_out_rows,
        prepared_xa_transactions: seen.prepared_xa,
        translated_xa_transactions: seen.translated_xa,
        lineage: seen.reader.lineage,
        place: place_of(at),
        is_copy: seen.reader.is_copy,
        semi_sync: seen.reader.semi_sync,
        acknowledged: seen.acknowledged.map(place_of),
        acknowledgements: seen.acknowledgements,
        lag_bytes,
        lag_seconds,
        bytes: seen.bytes,
        connected_seconds: seen.age.as_secs(),
    }
}
