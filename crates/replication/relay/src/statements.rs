//! The relay's side of the answers to clients' statements: facts from the stored log, the counters and the settings. The
//! answers themselves are made by `binlogz_client_sql`; `serve` talks to the client. `housekeeping` purges, `receive` starts and
//! stops receiving.

use parking_lot::Mutex;
use std::sync::Arc;

use binlogz_client_sql::{
    AskedRelay, ClientVariables, ListedLog, LogStatusRow, OwnVariables, ReceiverState, RegisteredReplica,
    ReplicaStatusFacts, SourceVariables,
};
use binlogz_payload::statistics::CompressionTable;
use binlogz_relay_forms::{Forms, MaskedForm, end_of, list_events};
use binlogz_relay_log::{Form, FormFile, FoundFile, LineageLog, StoredHead};
use binlogz_variables::CompressionVariables;
use binlogz_wire::result_set::ResultRow;
use binlogz_wire::statement::EventsWanted;

use crate::error::{Error, Result};
use crate::housekeeping::{Housekeeping, retention};
use crate::receive::control::Phase;
use crate::receive::intake::Intake;
use crate::replicas::registry::Registry;
use crate::telemetry::complain;

#[derive(Debug)]
pub(crate) struct Statements {
    pub(crate) intake: Arc<Intake>,
    pub(crate) housekeeping: Arc<Housekeeping>,
    pub(crate) registry: Arc<Registry>,
    /// Whether clients are told the source's `read_only`.
    pub(crate) read_only_of_source: bool,
    /// Whether replicas may acknowledge transactions.
    pub(crate) listen_semi_sync: bool,
    /// Whether clients must use TLS.
    pub(crate) requires_tls: bool,
    /// This machine's name.
    pub(crate) hostname: String,
}

/// A stored log, asked by one client.
pub(crate) struct AskedLog<'a> {
    pub(crate) statements: &'a Statements,
    pub(crate) kept: &'a LineageLog,
    /// The form that leaves by the policy of the client's account, if it has one.
    pub(crate) exits: Option<&'a MaskedForm>,
    /// The form that the client's statements use if they name no file.
    pub(crate) form: &'a dyn Fn(&ClientVariables) -> Result<Form>,
}

impl AskedLog<'_> {
    fn forms(&self) -> Forms<'_> {
        self.statements.intake.conversions.of(self.kept).leaving(self.exits)
    }

    /// Says why something was not done, to the client, and in the log unless the client is to blame.
    fn told(&self, done: Result<()>) -> Result<(), String> {
        done.map_err(|error| {
            let message = error.to_string();
            if !error.is_refusal() {
                complain!(self.statements.intake.telemetry, &error, &message);
            }
            message
        })
    }
}

impl AskedRelay for AskedLog<'_> {
    type Error = Error;

    fn source_variables(&self) -> Option<Arc<SourceVariables>> {
        self.statements.intake.source_variables.get()
    }

    fn own_variables(&self) -> Result<Option<OwnVariables>> {
        let AskedLog { statements, kept, .. } = self;
        let Some(now) = kept.store.positions() else { return Ok(None) };
        let head = StoredHead::read(&kept.store, now.durable.file)?;
        // The purged transactions are those before the first file.
        let first = kept.store.logs()?.first().map(|log| kept.store.previous_gtids(log.number));
        Ok(Some(OwnVariables {
            hostname: statements.hostname.clone(),
            requires_tls: statements.requires_tls,
            read_only_of_source: statements.read_only_of_source,
            listen_semi_sync: statements.listen_semi_sync,
            has_gtids: statements.intake.has_gtids(),
            has_checksums: head.checksum().size() > 0,
            gtid_executed: kept.durable_gtids(),
            gtid_purged: first.and_then(Result::ok).unwrap_or_default(),
            log_base: kept.base.clone(),
            server_id: head.header.server_id,
            server_uuid: kept.source.to_string(),
            server_version: head.description.server_version().to_string(),
            compression: *statements.intake.compression.lock(),
        }))
    }

    fn compression(&self) -> &Mutex<CompressionVariables> {
        &self.statements.intake.compression
    }

    fn compression_stats(&self) -> &Mutex<CompressionTable> {
        &self.statements.intake.compression_stats
    }

    fn logs(&self, client: &ClientVariables) -> Result<Vec<ListedLog>> {
        let form = (self.form)(client)?;
        let kept = self.kept;
        let logs = kept.store.logs()?;
        let mut listed = Vec::new();
        for (file, number) in kept.files(form)? {
            listed.push(ListedLog {
                name: self.forms().name(form, number),
                size: end_of(self.forms(), form, file)?,
                is_encrypted: logs.iter().any(|log| log.number == file.file && log.encrypted),
            });
        }
        Ok(listed)
    }

    fn log_status(&self, client: &ClientVariables) -> Result<Option<LogStatusRow>> {
        let form = (self.form)(client)?;
        let kept = self.kept;
        // The set is read before the position, so that it holds no transaction after it.
        let gtids = kept.durable_gtids();
        let Some(now) = kept.store.positions() else { return Ok(None) };
        let last =
            kept.parts_of(form, now.durable.file)?.last().unwrap_or(FormFile::first_of(now.durable.file));
        let file = self.forms().name(form, kept.number_of(form, last)?);
        let position = end_of(self.forms(), form, last)?;
        Ok(Some(LogStatusRow { file, position, gtids }))
    }

    /// The form is asked only if no file is named.
    fn events(
        &self,
        client: &ClientVariables,
        wanted: &EventsWanted,
    ) -> Result<Result<Vec<ResultRow>, String>> {
        let kept = self.kept;
        if self.exits.is_some() {
            // Refuses logs that can't be masked.
            (self.form)(client)?;
        }
        let found = match &wanted.file {
            Some(name) => self.forms().find(name)?.map(|(form, _, found)| (form, found)),
            None => match kept.store.logs()?.first() {
                Some(first) => {
                    Some(((self.form)(client)?, FoundFile::File(FormFile::first_of(first.number))))
                }
                None => None,
            },
        };
        match found {
            Some((form, FoundFile::File(file))) => Ok(list_events(self.forms(), form, file, wanted)?),
            _ => Ok(Err("Could not find target log".into())),
        }
    }

    fn replicas(&self) -> Vec<RegisteredReplica> {
        self.statements.registry.replicas()
    }

    fn replica_status(&self) -> Result<ReplicaStatusFacts> {
        let AskedLog { statements, kept, .. } = self;
        let source = statements.intake.status();
        let mut file = String::new();
        let mut position = 0;
        if let Some(now) = kept.store.positions() {
            file = kept.names.name(Form::Received, now.durable.file);
            let received = statements.intake.conversions.of(kept);
            position = end_of(received, Form::Received, FormFile::first_of(now.durable.file))?;
        }
        let gtids = kept.durable_gtids();
        let source_server_id = match kept.store.positions() {
            Some(now) => StoredHead::read(&kept.store, now.durable.file)?.header.server_id,
            None => 0,
        };
        Ok(ReplicaStatusFacts {
            source: source.server,
            receiver: match source.phase {
                Phase::Connecting => ReceiverState::Connecting,
                Phase::Receiving => ReceiverState::Receiving,
                Phase::Waiting => ReceiverState::Reconnecting,
                Phase::Stopped | Phase::Failed => ReceiverState::Stopped,
            },
            error: match source.phase {
                Phase::Waiting | Phase::Failed => source.error,
                Phase::Connecting | Phase::Receiving | Phase::Stopped => None,
            },
            lag_seconds: source.lag_seconds,
            file,
            position,
            stored_bytes: kept.store.logs()?.iter().map(|log| log.size).sum(),
            source_server_id,
            source_uuid: kept.source.to_string(),
            gtids,
            has_gtids: statements.intake.has_gtids(),
        })
    }

    fn start_replica(&self) {
        self.statements.intake.control.start();
    }

    fn stop_replica(&self) {
        self.statements.intake.control.stop();
    }

    fn purge_to(&self, file: &str, force: bool) -> Result<(), String> {
        self.told(retention::purge_to(&self.statements.housekeeping, self.kept, file, force))
    }

    fn purge_before(&self, time: u64, force: bool) -> Result<(), String> {
        self.told(retention::purge_before(&self.statements.housekeeping, self.kept, time, force))
    }
}
