//! One source: receives its log, stores it, serves it and watches it. A relay has as many as its configuration names, and
//! nothing that happens to one affects another.
//!
//! ```text
//! open ─ start ─ threads: receive, sync, retain, archive, check, scrub, repair ─ close ─ threads and clients have ended
//! ```

use parking_lot::Mutex;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::housekeeping::checking::ArchiveChecks;
use crate::housekeeping::retention::Retention;
use crate::housekeeping::scrub::Scrub;
use crate::housekeeping::{Housekeeping, archiving, checking, retention, scrub};
use crate::options::SourceOptions;
use crate::rates::{ByteRates, SharedRates, Throttles};
use crate::receive::control::Control;
use crate::receive::intake::Intake;
use crate::receive::servers::Servers;
use crate::receive::source_variables::KnownVariables;
use crate::receive::{identity, product, receiver, repair, seed};
use crate::replicas::acknowledgements::Acknowledgements;
use crate::replicas::dumps::Dumps;
use crate::replicas::registry::Registry;
use crate::serve::SourceServer;
use crate::serve::connections::clients::ServedClients;
use crate::serve::remembered::last_served::LastServed;
use crate::serve::remembered::pins::Pins;
use crate::serve::upstream::ForwardOptions;
use crate::statements::Statements;
use crate::telemetry::{Telemetry, complain, duties, report};
use crate::watch::SourceWatch;
use crate::watch::http::HourHistory;

use binlogz_binlog::gtid::ServerUuid;
use binlogz_relay_forms::Conversions;
use binlogz_relay_log::{
    BroughtBack, ClosedLogs, Disk, Error as LogError, LineageLog, Lineages, UnsyncedRange,
};
use binlogz_store::Damage;
use binlogz_variables::CompressionVariables;

/// How long to wait for clients: longer than a client's thread needs to notice that its connection is closed.
const CLIENTS_PATIENCE: Duration = Duration::from_secs(30);
/// How long a source's files may stay in use after its threads have ended, by threads of clients for example.
const RELEASE_PATIENCE: Duration = Duration::from_secs(10);

/// State that all sources of a relay share.
#[derive(Clone)]
pub(crate) struct Common {
    pub(crate) conversions: Arc<Conversions>,
    /// Whether replicas may acknowledge transactions.
    pub(crate) listen_semi_sync: bool,
    /// Whether clients must use TLS.
    pub(crate) requires_tls: bool,
    pub(crate) forward: Option<ForwardOptions>,
    /// This machine's name.
    pub(crate) hostname: String,
    /// The limits of all sources together.
    pub(crate) rates: SharedRates,
}

/// A source: the parts that its threads work on.
pub(crate) struct RelaySource {
    pub(crate) options: SourceOptions,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) intake: Arc<Intake>,
    pub(crate) housekeeping: Arc<Housekeeping>,
    pub(crate) server: Arc<SourceServer>,
    pub(crate) watch: Arc<SourceWatch>,
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
}

/// Opens the logs of a source, and says which uuid the relay has for its replicas.
fn open_lineages(
    options: &SourceOptions,
    disk: Arc<dyn Disk>,
    telemetry: &Telemetry,
) -> Result<(Lineages, ServerUuid)> {
    let keyring = options.keyring.clone();
    let limit = options.uncompressed_file_size;
    let lineages = Lineages::open(disk, keyring, limit, |line, alarms| report!(telemetry, alarms, line))?;
    let uuid = identity::own_uuid(lineages.own().as_ref())?;
    Ok((lineages, uuid))
}

/// Begins the log in which closed logs are served. Its replicas see a server of its own: the one that wrote the logs may be a
/// replica here itself.
fn begin_closed(lineages: &Lineages, logs: &ClosedLogs, uuid: ServerUuid) -> Result<()> {
    let (_, report) = lineages.begin(logs.base(), uuid)?;
    match report.is_alarming() {
        true => Err(Error::Log(LogError::DamagedLog(format!("{}: {report}", logs.place())))),
        false => Ok(()),
    }
}

/// The parts of a source that several of its other parts work on.
struct SharedParts {
    telemetry: Arc<Telemetry>,
    throttles: Arc<Throttles>,
    conversions: Arc<Conversions>,
    lineages: Arc<Lineages>,
    acknowledgements: Arc<Acknowledgements>,
    dumps: Arc<Dumps>,
    registry: Arc<Registry>,
}

impl SharedParts {
    fn intake(
        &self,
        options: &SourceOptions,
        uuid: ServerUuid,
        seeded: Option<String>,
        source_variables: KnownVariables,
    ) -> Intake {
        Intake {
            telemetry: Arc::clone(&self.telemetry),
            lineages: Arc::clone(&self.lineages),
            conversions: Arc::clone(&self.conversions),
            acknowledgements: Arc::clone(&self.acknowledgements),
            control: Control::default(),
            servers: Servers::new(options.servers.clone()),
            questions: Arc::default(),
            uuid,
            server_id: options.server_id,
            compression: Mutex::new(CompressionVariables::new(options.storing.level())),
            compression_stats: Mutex::default(),
            start: options.start.clone(),
            seeded,
            semi_sync: options.semi_sync,
            wait_for_replicas: options.wait_for_replicas,
            sync_policy: options.sync,
            encrypt: options.encrypt.clone(),
            directory: options.directory.clone(),
            throttles: Arc::clone(&self.throttles),
            unsynced: UnsyncedRange::default(),
            source_has_gtids: Mutex::new(None),
            source_variables,
        }
    }

    fn housekeeping(&self, options: &SourceOptions) -> Housekeeping {
        let of_archive = options.archive.as_ref().map(|archive| archive.bring_back);
        let of_closed = options.closed.as_ref().map(|closed| closed.bring_back);
        let bring_back = of_closed.or(of_archive).unwrap_or_default();
        Housekeeping {
            telemetry: Arc::clone(&self.telemetry),
            lineages: Arc::clone(&self.lineages),
            dumps: Arc::clone(&self.dumps),
            brought_back: Arc::new(BroughtBack::new(bring_back)),
            archive: options.archive.clone(),
            checks: ArchiveChecks::default(),
            closed: options.closed.as_ref().map(|closed| Arc::clone(&closed.logs)),
            retention: options.retention,
            directory: options.directory.clone(),
            keyring: options.keyring.clone(),
            throttles: Arc::clone(&self.throttles),
            scrub: Scrub::new(options.scrub),
            ages: Mutex::default(),
        }
    }

    fn statements(
        &self,
        common: &Common,
        intake: &Arc<Intake>,
        housekeeping: &Arc<Housekeeping>,
    ) -> Statements {
        Statements {
            intake: Arc::clone(intake),
            housekeeping: Arc::clone(housekeeping),
            registry: Arc::clone(&self.registry),
            read_only_of_source: common.forward.is_some_and(|forward| forward.read_only_of_source),
            listen_semi_sync: common.listen_semi_sync,
            requires_tls: common.requires_tls,
            hostname: common.hostname.clone(),
        }
    }

    /// `remembered`: the forms and positions of clients, as files of the source have them.
    fn server(
        &self,
        options: &SourceOptions,
        common: &Common,
        statements: Statements,
        remembered: (Pins, LastServed),
    ) -> SourceServer {
        let (pins, served) = remembered;
        let closed = options.closed.as_ref();
        SourceServer {
            telemetry: Arc::clone(&self.telemetry),
            lineages: Arc::clone(&self.lineages),
            conversions: Arc::clone(&self.conversions),
            housekeeping: Arc::clone(&statements.housekeeping),
            statements,
            registry: Arc::clone(&self.registry),
            dumps: Arc::clone(&self.dumps),
            acknowledgements: Arc::clone(&self.acknowledgements),
            clients: ServedClients::default(),
            pins,
            served,
            semi_sync: common.listen_semi_sync,
            forward: common.forward,
            form: options.form,
            only_replica: closed.and_then(|closed| closed.only_replica),
            over_incidents: closed.is_some_and(|closed| closed.over_incidents),
        }
    }
}

impl RelaySource {
    /// Opens the stored logs, but starts no threads yet.
    pub(crate) fn open(
        options: SourceOptions,
        disk: Arc<dyn Disk>,
        telemetry: Arc<Telemetry>,
        common: Common,
    ) -> Result<RelaySource> {
        let (lineages, uuid) = open_lineages(&options, disk, &telemetry)?;
        let seeded = match lineages.last() {
            Some(_) => None,
            None => seed::seed(&options.directory, &options.seed)?,
        };
        if let Some(closed) = options.closed.as_ref().filter(|_| lineages.last().is_none()) {
            begin_closed(&lineages, &closed.logs, uuid)?;
        }
        let pins = Pins::open(lineages.own())?;
        let served = LastServed::open(lineages.own())?;
        let (source_variables, unused) = KnownVariables::open(Arc::clone(lineages.own()));
        if let Some(error) = unused {
            complain!(telemetry, &error, &error.to_string());
        }
        let parts = SharedParts {
            telemetry,
            throttles: Throttles::new(options.rates, &common.rates),
            conversions: Arc::clone(&common.conversions),
            lineages: Arc::new(lineages),
            acknowledgements: Arc::default(),
            dumps: Arc::default(),
            registry: Arc::default(),
        };
        let intake = Arc::new(parts.intake(&options, uuid, seeded, source_variables));
        let housekeeping = Arc::new(parts.housekeeping(&options));
        let statements = parts.statements(&common, &intake, &housekeeping);
        let server = Arc::new(parts.server(&options, &common, statements, (pins, served)));
        let watch = Arc::new(SourceWatch {
            telemetry: Arc::clone(&parts.telemetry),
            intake: Arc::clone(&intake),
            server: Arc::clone(&server),
            history: HourHistory::default(),
            started: Instant::now(),
        });
        let threads = Mutex::default();
        Ok(RelaySource { options, telemetry: parts.telemetry, intake, housekeeping, server, watch, threads })
    }

    /// Refuses a source from which nothing will ever come, if nothing of it is stored either.
    pub(crate) fn check_product(&self) -> Result<()> {
        match self.intake.lineages.last() {
            None => product::check_any(&self.intake.servers, &self.intake.start),
            Some(_) => Ok(()),
        }
    }

    /// Other limits from now on.
    pub(crate) fn set_rates(&self, rates: ByteRates) {
        self.intake.throttles.set(rates);
    }

    /// Starts its threads.
    pub(crate) fn start(self: &Arc<Self>) -> Result<()> {
        if self.options.closed.is_some() {
            return self.take_up(duties::RETAIN, |source| archiving::sweep(&source.housekeeping));
        }
        self.take_up(duties::SYNC, |source| source.intake.sync_for_ever())?;
        self.take_up(duties::RECEIVE, |source| receiver::run(&source.intake))?;
        if self.options.retention != Retention::default() {
            self.take_up(duties::RETAIN, |source| retention::watch(&source.housekeeping))?;
        }
        self.take_up(duties::REPAIR, |source| {
            let fetch =
                |kept: &LineageLog, damage: &Damage| repair::fetch_closed(&source.intake, kept, damage);
            scrub::watch_damage(&source.housekeeping, &fetch);
        })?;
        if self.options.scrub.rate.is_some() {
            self.take_up(duties::SCRUB, |source| scrub::watch(&source.housekeeping))?;
        }
        if let Some(archive) = self.options.archive.clone() {
            if let Some(interval) = archive.check {
                let archive = archive.clone();
                self.take_up(duties::CHECK, move |source| {
                    checking::watch(&source.housekeeping, &archive, interval);
                })?;
            }
            self.take_up(duties::ARCHIVE, move |source| archiving::watch(&source.housekeeping, &archive))?;
        }
        Ok(())
    }

    /// Runs a duty in its own thread.
    pub(crate) fn take_up(
        self: &Arc<Self>,
        name: &'static str,
        work: impl FnOnce(&RelaySource) + Send + 'static,
    ) -> Result<()> {
        let its = Arc::clone(self);
        let source = Arc::clone(self);
        let thread = duties::start(
            &self.telemetry,
            name,
            move || work(&its),
            move |error| source.duty_ended(name, error),
        )?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// A thread has ended. Unless the source is no longer wanted, it should not have: the source must no longer look
    /// healthy.
    pub(crate) fn duty_ended(&self, name: &'static str, error: &Error) {
        if self.telemetry.ending.has_begun() && matches!(error, Error::Ended(_)) {
            return;
        }
        self.telemetry.duties.failing(name, error.to_string());
        match name {
            duties::SYNC | duties::RECEIVE => self.intake.fail(error),
            _ => complain!(self.telemetry, error, &format!("{error}; restart the relay")),
        }
    }

    /// Waits until its threads have ended.
    pub(crate) fn join(&self) {
        for thread in std::mem::take(&mut *self.threads.lock()) {
            // A panic was told when it happened.
            let _ = thread.join();
        }
    }

    /// Ends its threads and its clients' connections, and waits until nothing uses its files any more. Stored files stay.
    /// Returns whether that was so in time.
    pub(crate) fn close(self: Arc<Self>) -> bool {
        self.intake.end();
        let left = self.server.clients.send_away(CLIENTS_PATIENCE);
        self.join();
        if left > 0 {
            report!(self.telemetry, true, &format!("{left} connections have not ended yet"));
        }
        let lineages = Arc::downgrade(&self.intake.lineages);
        drop(self);
        let until = Instant::now() + RELEASE_PATIENCE;
        while lineages.strong_count() > 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        lineages.strong_count() == 0
    }
}

impl std::fmt::Debug for RelaySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("options", &self.options).finish_non_exhaustive()
    }
}
