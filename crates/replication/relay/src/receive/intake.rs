//! State that all of receiving shares: the log, the source, and how transactions are stored. Begins a log, syncs it,
//! and reopens it after a disk failure.

use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use binlogz_binlog::gtid::{GtidSet, ServerUuid};
use binlogz_encryption::MasterKey;
use binlogz_payload::statistics::CompressionTable;
use binlogz_relay_forms::Conversions;
use binlogz_relay_log::{Error as LogError, LineageLog, Lineages, SyncPolicy, UnsyncedRange};
use binlogz_source::Connection;
use binlogz_variables::CompressionVariables;

use crate::error::{Error, Result};
use crate::rates::{Throttles, Tickets};
use crate::receive::control::Control;
use crate::receive::question_limit::QuestionLimit;
use crate::receive::servers::Servers;
use crate::receive::source_variables::KnownVariables;
use crate::receive::start::StartAt;
use crate::replicas::acknowledgements::{Acknowledgements, WaitForReplicas, WaitResult};
use crate::telemetry::{Telemetry, complain, duties, report, say};

#[derive(Debug)]
pub(crate) struct Intake {
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) lineages: Arc<Lineages>,
    pub(crate) conversions: Arc<Conversions>,
    pub(crate) acknowledgements: Arc<Acknowledgements>,
    pub(crate) control: Control,
    pub(crate) servers: Servers,
    pub(crate) questions: Arc<QuestionLimit>,
    /// The relay's own uuid, and its server id if that isn't derived from the uuid.
    pub(crate) uuid: ServerUuid,
    pub(crate) server_id: Option<u32>,
    /// How new transactions are stored.
    pub(crate) compression: Mutex<CompressionVariables>,
    /// Sizes of the stored transactions.
    pub(crate) compression_stats: Mutex<CompressionTable>,
    /// Where the first log begins.
    pub(crate) start: StartAt,
    /// The prefix of seeded files' names.
    pub(crate) seeded: Option<String>,
    /// Whether transactions are acknowledged to the source.
    pub(crate) semi_sync: bool,
    pub(crate) wait_for_replicas: WaitForReplicas,
    pub(crate) sync_policy: SyncPolicy,
    /// The key that files are encrypted with.
    pub(crate) encrypt: Option<Arc<MasterKey>>,
    /// The log's directory, for errors.
    pub(crate) directory: PathBuf,
    pub(crate) throttles: Arc<Throttles>,
    /// Whether some written data isn't durable yet.
    pub(crate) unsynced: UnsyncedRange,
    pub(crate) source_has_gtids: Mutex<Option<bool>>,
    pub(crate) source_variables: KnownVariables,
}

impl Intake {
    /// The log for this server: the current one or a new one. `has_all`: the server was seen to have everything we
    /// store, and everything that follows.
    pub(crate) fn keep(&self, base: &str, source: ServerUuid, has_all: bool) -> Result<Arc<LineageLog>> {
        match self.lineages.last() {
            Some(kept) if kept.source == source && kept.base == base => return Ok(kept),
            Some(kept) if has_all && kept.source != source => {
                self.sync()?;
                say!(self.telemetry, &format!("the source {source} is followed instead of {}", kept.source));
            }
            Some(kept) => {
                return Err(Error::Log(LogError::Lineage(format!(
                    "{} holds {}.* of the source {}, but the source is {source} now and calls its log {base}.*: another \
                     source's log needs another directory",
                    self.directory.display(),
                    kept.base,
                    kept.source
                ))));
            }
            None => {
                if let Some(seeded) = self.seeded.as_deref().filter(|seeded| *seeded != base) {
                    return Err(Error::Log(LogError::Lineage(format!(
                        "the log was seeded with {seeded}.*, but the source calls its log {base}.*"
                    ))));
                }
            }
        }
        self.begin(base, source)
    }

    /// The source's log isn't the one we store. Ours is kept as it is, and a new one begins.
    pub(crate) fn begin_anew(&self, kept: &LineageLog, change: &str) -> Result<Arc<LineageLog>> {
        self.sync()?;
        say!(
            self.telemetry,
            &format!(
                "the source's log was reset or put back: {change}; it is kept from its beginning as another one"
            )
        );
        self.telemetry.meters.drained.store(false, Ordering::Relaxed);
        self.telemetry.lag.begin_anew(Instant::now());
        self.begin(&kept.base, kept.source)
    }

    fn begin(&self, base: &str, source: ServerUuid) -> Result<Arc<LineageLog>> {
        let (kept, report) = self.lineages.begin(base, source)?;
        say!(self.telemetry, &format!("log {base} of the source {source}: {report}"));
        Ok(kept)
    }

    /// All received GTIDs.
    pub(crate) fn written_gtids(&self) -> GtidSet {
        let mut gtids = self.lineages.one_before().map(|kept| kept.written_gtids()).unwrap_or_default();
        if let Some(kept) = self.lineages.last() {
            gtids.union(&kept.written_gtids());
        }
        gtids
    }

    /// More was written and needs a sync.
    pub(crate) fn written(&self, kept: &LineageLog, gtids: &GtidSet) {
        kept.written(gtids);
        let all = self.telemetry.meters.transactions.load(Ordering::Relaxed);
        self.unsynced.add(all - self.telemetry.meters.unsynced_from.swap(all, Ordering::Relaxed).min(all));
    }

    /// Makes everything written so far durable.
    pub(crate) fn sync(&self) -> Result<()> {
        let Some(kept) = self.lineages.last() else { return Ok(()) };
        let durable = || kept.store.positions().map(|now| now.durable);
        let before = durable();
        self.telemetry.meters.sync(|| kept.sync())?;
        if durable() > before && self.control.is_ailing() {
            self.mended();
        }
        Ok(())
    }

    /// The disk works again.
    pub(crate) fn mended(&self) {
        self.control.mended();
        say!(self.telemetry, "the disk works again: what is received is durable");
    }

    /// Reopens the logs that refuse writes since a disk failure. Returns the current log's error.
    pub(crate) fn mend(&self) -> Result<()> {
        self.mend_older();
        self.lineages.last().map_or(Ok(()), |kept| self.mend_one(&kept))
    }

    /// Reopens, after a disk failure, logs that are no longer appended to, but from which files are purged. Errors are
    /// only logged.
    pub(crate) fn mend_older(&self) {
        let last = self.lineages.last().map(|last| last.number);
        for kept in self.lineages.all().iter().filter(|kept| Some(kept.number) != last) {
            if let Err(error) = self.mend_one(kept) {
                complain!(self.telemetry, &error, &error.to_string());
            }
        }
    }

    fn mend_one(&self, kept: &LineageLog) -> Result<()> {
        let Some(first) = kept.store.refuses_since() else { return Ok(()) };
        if let Some(report) = kept.reopen()? {
            let LineageLog { base, source, .. } = kept;
            let line =
                format!("log {base} of the source {source} was recovered after an error ({first}): {report}");
            report!(self.telemetry, report.is_alarming(), &line);
        }
        Ok(())
    }

    /// Waits until enough replicas have acknowledged the durable data, before the relay acknowledges it.
    pub(crate) fn wait_for_replicas(&self) {
        let wait = self.wait_for_replicas;
        let (true, Some(kept)) = (wait.count > 0, self.lineages.last()) else { return };
        let Some(now) = kept.store.positions() else { return };
        let durable = now.durable;
        self.telemetry.lag.hold(true);
        let waited = self.acknowledgements.wait(wait, kept.number, durable, || self.control.is_wanted());
        self.telemetry.lag.hold(false);
        if waited == WaitResult::InVain {
            let error = Error::Unacknowledged { wanted: wait.count, after: wait.timeout };
            complain!(
                self.telemetry,
                &error,
                &format!("{error}; the source is told without them until they have caught up"),
            );
        }
    }

    /// Waits until more may be received after the last bytes, or receiving is to end.
    pub(crate) fn wait_for_rate(&self, tickets: &Tickets) {
        // This is no standstill.
        self.telemetry.lag.hold(true);
        let sleep = |time| self.telemetry.ending.sleep(time) && self.control.is_wanted();
        self.throttles.receive.wait(tickets, sleep);
        self.telemetry.lag.hold(false);
    }

    /// Syncs until the source is no longer wanted, at last once more.
    pub(crate) fn sync_for_ever(&self) {
        while !self.telemetry.ending.has_begun() {
            let synced = duties::attempt(duties::SYNC, || {
                self.unsynced.wait(self.sync_policy);
                self.sync()
            });
            match synced {
                Ok(()) => {}
                Err(error) if error.is_bug() => {
                    self.fail(&error);
                    // Receiving then starts with its own sync.
                    self.control.wait_until_wanted();
                }
                Err(error) => {
                    // The receiver recovers, because it knows what is on its way to the store.
                    complain!(self.telemetry, &error, &format!("{error}; what is durable is served"));
                    self.control.fail_for_now(&error.to_string());
                }
            }
        }
    }

    /// Ends receiving until it is started again, or the relay is.
    pub(crate) fn fail(&self, error: &Error) {
        let line = format!("{error}; nothing more is received, what is durable is served");
        self.control.fail(&line);
        complain!(self.telemetry, error, &line);
    }

    /// Ends receiving and syncing for good: the source is no longer wanted.
    pub(crate) fn end(&self) {
        self.telemetry.ending.begin();
        self.control.end();
        self.unsynced.end();
    }

    pub(crate) fn set_source_has_gtids(&self, has: bool) {
        *self.source_has_gtids.lock() = Some(has);
    }

    /// Learns the source's variables. Only a broken connection is an error: without them the log is received as well.
    pub(crate) fn ask_variables(&self, connection: &mut Connection) -> Result<()> {
        match self.source_variables.ask(connection) {
            Err(Error::Source(error)) if error.server_error().is_none() => Err(error.into()),
            Err(error) => {
                let line = format!("{error}; clients may be told older values of the source's variables");
                complain!(self.telemetry, &error, &line);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Whether the source last said that it has GTIDs; before the first connection, whether its stored log looks so.
    pub(crate) fn has_gtids(&self) -> bool {
        let said = *self.source_has_gtids.lock();
        said.unwrap_or_else(|| !self.written_gtids().is_empty())
    }
}
