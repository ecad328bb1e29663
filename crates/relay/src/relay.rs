//! The relay as a whole: what its threads share, how it starts, what it says.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use binlogz_binlog::gtid::{GtidSet, ServerUuid};
use binlogz_binlog::printable;
use binlogz_engine::CompressionVariables;
use binlogz_payload::statistics::CompressionTable;

use crate::accounts::Accounts;
use crate::acknowledgements::{Acknowledgements, Waited};
use crate::archiving;
use crate::brought_back::BroughtBack;
use crate::control::Control;
use crate::disk::{Directory, Disk};
use crate::dumps::Dumps;
use crate::duties::{self, Duties};
use crate::error::{Error, Result};
use crate::gate::Gate;
use crate::http::History;
use crate::lag::Lag;
use crate::lineages::{Kept, Lineages};
use crate::meters::Meters;
use crate::options::RelayOptions;
use crate::pins::Pins;
use crate::registry::Registry;
use crate::retention::{self, Retention};
use crate::seed;
use crate::served::Served;
use crate::sources::Sources;
use crate::syncing::Unsynced;
use crate::transport::ServerTls;
use crate::{http, identity, receiver, server};

/// Tells what happened, a line at a time.
pub type Log = Box<dyn Fn(Level, &str) + Send + Sync>;

/// Who should read a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Whoever wants to know what happened.
    Info,
    /// Whoever wants to know what went wrong.
    Error,
}

/// A relay that runs.
pub struct Relay {
    pub(crate) options: RelayOptions,
    pub(crate) accounts: Accounts,
    pub(crate) gate: Gate,
    pub(crate) control: Control,
    pub(crate) meters: Meters,
    pub(crate) duties: Duties,
    pub(crate) lag: Lag,
    pub(crate) dumps: Dumps,
    pub(crate) acknowledgements: Arc<Acknowledgements>,
    pub(crate) history: History,
    pub(crate) started: Instant,
    pub(crate) uuid: ServerUuid,
    pub(crate) registry: Registry,
    pub(crate) sources: Sources,
    pub(crate) tls: Option<ServerTls>,
    pub(crate) pins: Pins,
    pub(crate) served: Served,
    /// How transactions are stored from now on.
    pub(crate) compression: Mutex<CompressionVariables>,
    /// What was stored.
    pub(crate) compression_stats: Mutex<CompressionTable>,
    pub(crate) lineages: Lineages,
    pub(crate) brought_back: Arc<BroughtBack>,
    /// Whether more was written than is durable.
    unsynced: Unsynced,
    /// What the names of seeded files begin with.
    seeded: Option<String>,
    source_has_gtids: Mutex<Option<bool>>,
    log: Log,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Relay {
    /// Opens what is kept, listens, and begins to receive and to serve. Serving does not wait for the source.
    ///
    /// # Errors
    ///
    /// A directory that is in use or damaged, an address that can't be listened on, an account without password.
    pub fn start(options: RelayOptions, log: Log) -> Result<Running> {
        let disk = Arc::new(Directory(options.directory.clone()));
        let relay = Relay::open(options, disk, log)?;
        let listening = format!("listen on {}", relay.options.listen);
        let listener = TcpListener::bind(relay.options.listen).map_err(Error::io(listening.clone()))?;
        let address = listener.local_addr().map_err(Error::io(listening))?;
        let http = relay.options.http.as_ref().map(|http| {
            let http = http.address;
            let listening = format!("listen on {http}");
            let listener = TcpListener::bind(http).map_err(Error::io(listening.clone()))?;
            let address = listener.local_addr().map_err(Error::io(listening))?;
            Ok::<_, Error>((listener, address))
        });
        let http = http.transpose()?;
        let relay = Arc::new(relay);
        relay.say(&format!("listening on {address}"));
        duties::start(&relay, duties::SYNC, |relay| relay.sync_for_ever())?;
        duties::start(&relay, duties::RECEIVE, |relay| receiver::run(relay))?;
        if relay.options.retention != Retention::default() {
            duties::start(&relay, duties::RETAIN, |relay| retention::watch(relay))?;
        }
        if let Some(archive) = relay.options.archive.clone() {
            duties::start(&relay, duties::ARCHIVE, move |relay| archiving::watch(relay, &archive))?;
        }
        if let Some((listener, address)) = http {
            relay.say(&format!("status on http://{address}/"));
            duties::start(&relay, duties::WATCH, |relay| History::watch(relay))?;
            duties::start(&relay, duties::HTTP, move |relay| http::serve(relay, &listener))?;
        }
        let accepting = duties::start(&relay, duties::ACCEPT, move |relay| server::accept(relay, &listener))?;
        Ok(Running { address, accepting })
    }

    /// Opens what is kept: a relay that does nothing yet.
    pub(crate) fn open(options: RelayOptions, disk: Arc<dyn Disk>, log: Log) -> Result<Relay> {
        let (accounts, tls) = options.resolve()?;
        let keyring = options.keyring.clone();
        let limit = options.uncompressed_file_size;
        let lineages = Lineages::open(disk, keyring, limit, &mut |level, line| log(level, &printable(line)))?;
        let uuid = identity::own_uuid(lineages.own().as_ref())?;
        let seeded = match lineages.last() {
            Some(_) => None,
            None => seed::seed(&options.directory, &options.seed)?,
        };
        let bring_back = options.archive.as_ref().map(|archive| archive.bring_back).unwrap_or_default();
        let pins = Pins::open(lineages.own())?;
        let served = Served::open(lineages.own())?;
        Ok(Relay {
            accounts,
            gate: Gate::new(options.limits),
            control: Control::default(),
            meters: Meters::default(),
            duties: Duties::default(),
            lag: Lag::default(),
            dumps: Dumps::default(),
            acknowledgements: Arc::default(),
            history: History::default(),
            started: Instant::now(),
            uuid,
            registry: Registry::default(),
            sources: Sources::new(options.sources.clone()),
            tls,
            pins,
            served,
            compression: Mutex::new(CompressionVariables::new(options.storing.level())),
            compression_stats: Mutex::default(),
            lineages,
            brought_back: Arc::new(BroughtBack::new(bring_back)),
            unsynced: Unsynced::default(),
            seeded,
            source_has_gtids: Mutex::new(None),
            log,
            options,
        })
    }

    /// Tells what happened. What peers sent can't make lines of its own.
    pub(crate) fn say(&self, line: &str) {
        (self.log)(Level::Info, &printable(line));
    }

    /// Tells what went wrong, counts it and remembers it.
    pub(crate) fn complain(&self, error: &Error, line: &str) {
        let line = printable(line);
        self.meters.failed(error.kind(), &line);
        (self.log)(Level::Error, &line);
    }

    /// The log that is served, once there is one.
    pub(crate) fn kept(&self) -> Option<Arc<Kept>> {
        self.lineages.served()
    }

    /// The log of this server: the one that is received, or a new one. `has_all`: the server was seen to have all
    /// that is kept here, and all that comes behind it.
    pub(crate) fn keep(&self, base: &str, source: ServerUuid, has_all: bool) -> Result<Arc<Kept>> {
        match self.lineages.last() {
            Some(kept) if kept.source == source && kept.base == base => return Ok(kept),
            Some(kept) if has_all && kept.source != source => {
                self.sync()?;
                self.say(&format!("the source {source} is followed instead of {}", kept.source));
            }
            Some(kept) => {
                return Err(Error::Lineage(format!(
                    "{} holds {}.* of the source {}, but the source is {source} now and calls its log {base}.*: another \
                     source's log needs another directory",
                    self.options.directory.display(),
                    kept.base,
                    kept.source
                )));
            }
            None => {
                if let Some(seeded) = self.seeded.as_deref().filter(|seeded| *seeded != base) {
                    return Err(Error::Lineage(format!(
                        "the log was seeded with {seeded}.*, but the source calls its log {base}.*"
                    )));
                }
            }
        }
        self.begin(base, source)
    }

    /// The source's log is another one than the one that is kept: that stays as it is, and a new one begins.
    pub(crate) fn begin_anew(&self, kept: &Kept, change: &str) -> Result<Arc<Kept>> {
        self.sync()?;
        self.say(&format!(
            "the source's log was reset or put back: {change}; it is kept from its beginning as another one"
        ));
        self.meters.drained.store(false, Ordering::Relaxed);
        self.lag.begin_anew(Instant::now());
        self.begin(&kept.base, kept.source)
    }

    fn begin(&self, base: &str, source: ServerUuid) -> Result<Arc<Kept>> {
        let (kept, report) = self.lineages.begin(base, source)?;
        self.say(&format!("log {base} of the source {source}: {report}"));
        Ok(kept)
    }

    /// All GTIDs that were received.
    pub(crate) fn written_gtids(&self) -> GtidSet {
        let mut gtids = self.lineages.one_before().map(|kept| kept.written_gtids()).unwrap_or_default();
        if let Some(kept) = self.lineages.last() {
            gtids.union(&kept.written_gtids());
        }
        gtids
    }

    /// More was written: somebody should sync it.
    pub(crate) fn written(&self, kept: &Kept, gtids: &GtidSet) {
        kept.written(gtids);
        let all = self.meters.transactions.load(Ordering::Relaxed);
        self.unsynced.add(all - self.meters.unsynced_from.swap(all, Ordering::Relaxed).min(all));
    }

    /// Makes durable what was written by now.
    pub(crate) fn sync(&self) -> Result<()> {
        let Some(kept) = self.lineages.last() else { return Ok(()) };
        let durable = || kept.store.positions().map(|now| now.durable);
        let before = durable();
        self.meters.sync(|| kept.sync())?;
        if durable() > before && self.control.is_ailing() {
            self.mended();
        }
        Ok(())
    }

    /// The disk works again.
    pub(crate) fn mended(&self) {
        self.control.mended();
        self.say("the disk works again: what is received is durable");
    }

    /// Reopens the logs that refuse writes since the disk failed; an error is that of the log that is received.
    pub(crate) fn mend(&self) -> Result<()> {
        self.mend_older();
        self.lineages.last().map_or(Ok(()), |kept| self.mend_one(&kept))
    }

    /// The same for those to which nothing is added, but from which files are purged.
    pub(crate) fn mend_older(&self) {
        let last = self.lineages.last().map(|last| last.number);
        for kept in self.lineages.all().iter().filter(|kept| Some(kept.number) != last) {
            if let Err(error) = self.mend_one(kept) {
                self.complain(&error, &error.to_string());
            }
        }
    }

    fn mend_one(&self, kept: &Kept) -> Result<()> {
        let Some(first) = kept.store.refuses_since() else { return Ok(()) };
        if let Some(report) = kept.reopen()? {
            let Kept { base, source, .. } = kept;
            let level = if report.is_alarming() { Level::Error } else { Level::Info };
            let line =
                format!("log {base} of the source {source} was recovered after an error ({first}): {report}");
            (self.log)(level, &printable(&line));
        }
        Ok(())
    }

    /// Waits until as many replicas as are wanted have acknowledged what is durable, before the relay does.
    pub(crate) fn wait_for_replicas(&self) {
        let wait = self.options.wait_for_replicas;
        let (true, Some(kept)) = (wait.count > 0, self.lineages.last()) else { return };
        let Some(now) = kept.store.positions() else { return };
        let durable = now.durable;
        self.lag.hold(true);
        let waited = self.acknowledgements.wait(wait, kept.number, durable, &self.control);
        self.lag.hold(false);
        if waited == Waited::InVain {
            let error = Error::Unacknowledged { wanted: wait.count, after: wait.timeout };
            self.complain(
                &error,
                &format!("{error}; the source is told without them until they have caught up"),
            );
        }
    }

    pub(crate) fn sync_for_ever(&self) {
        loop {
            let synced = duties::attempt(duties::SYNC, || {
                self.unsynced.wait(self.options.sync);
                self.sync()
            });
            match synced {
                Ok(()) => {}
                Err(error) if error.is_bug() => {
                    self.fail(&error);
                    // Receiving then begins with a sync of its own.
                    self.control.wait_until_wanted();
                }
                Err(error) => {
                    // The receiver recovers: it knows what is on its way to the store.
                    self.complain(&error, &format!("{error}; what is durable is served"));
                    self.control.fail_for_now(&error.to_string());
                }
            }
        }
    }

    /// Receiving ends, and stays so until somebody starts it again or the relay.
    pub(crate) fn fail(&self, error: &Error) {
        let line = format!("{error}; nothing more is received, what is durable is served");
        self.control.fail(&line);
        self.complain(error, &line);
    }

    /// A thread that should never end has ended. Without it nothing may seem to be well.
    pub(crate) fn duty_ended(&self, name: &'static str, error: &Error) {
        self.duties.failing(name, error.to_string());
        match name {
            duties::SYNC | duties::RECEIVE => self.fail(error),
            _ => self.complain(error, &format!("{error}; restart the relay")),
        }
    }

    pub(crate) fn set_source_has_gtids(&self, has: bool) {
        *lock(&self.source_has_gtids) = Some(has);
    }

    /// What the source last said; before it is reached, what its log looks like.
    pub(crate) fn has_gtids(&self) -> bool {
        let said = *lock(&self.source_has_gtids);
        said.unwrap_or_else(|| !self.written_gtids().is_empty())
    }
}

impl std::fmt::Debug for Relay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Relay").field("options", &self.options).finish_non_exhaustive()
    }
}

/// A relay at work.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    accepting: thread::JoinHandle<()>,
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until it accepts no more, which is never, unless something is wrong with it: then the process should end, so
    /// that whatever watches over it starts it anew.
    pub fn join(self) {
        // Why was told when it happened.
        let _ = self.accepting.join();
    }
}
