//! The relay as a whole: joins its parts and starts their threads.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use binlogz_binlog::printable;
use binlogz_variables::CompressionVariables;

use crate::error::{Error, Result};
use crate::forms::conversions::Conversions;
use crate::housekeeping::retention::Retention;
use crate::housekeeping::{Housekeeping, archiving, retention};
use crate::log::brought_back::BroughtBack;
use crate::log::disk::{Directory, Disk};
use crate::log::lineages::Lineages;
use crate::log::syncing::Unsynced;
use crate::options::{ListenTls, RelayOptions, ServeOptions};
use crate::receive::control::Control;
use crate::receive::intake::Intake;
use crate::receive::source_variables::KnownVariables;
use crate::receive::sources::Sources;
use crate::receive::{identity, product, receiver, seed};
use crate::replicas::acknowledgements::Acknowledgements;
use crate::replicas::dumps::Dumps;
use crate::replicas::registry::Registry;
use crate::serve::admission::Gate;
use crate::serve::last_served::LastServed;
use crate::serve::pins::Pins;
use crate::serve::transport::ServerTls;
use crate::serve::{Server, own_certificate, server};
use crate::statements::Statements;
use crate::telemetry::{Level, Log, Telemetry, duties};
use crate::watch::http::History;
use crate::watch::{Watch, http};

/// A running relay: the parts that its threads work on.
pub struct Relay {
    pub(crate) options: RelayOptions,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) intake: Arc<Intake>,
    pub(crate) housekeeping: Arc<Housekeeping>,
    pub(crate) server: Arc<Server>,
    pub(crate) watch: Watch,
}

impl Relay {
    /// Opens the stored logs, listens, and starts receiving and serving. Serving does not wait for the source.
    ///
    /// # Errors
    ///
    /// The directory is in use or damaged, we can't listen on an address, or an account has no password. Or nothing is
    /// stored yet, and the source is a server that can't be followed.
    pub fn start(options: RelayOptions, log: Log) -> Result<Running> {
        let disk = Arc::new(Directory(options.directory.clone()));
        let relay = Relay::open(options, disk, log)?;
        if relay.intake.lineages.last().is_none() {
            // There is nothing to serve, and never will be.
            product::check_any(&relay.intake.sources)?;
        }
        let options = &relay.options;
        let (listener, address) = listen(options.listen)?;
        let http = options.http.as_ref().map(|http| listen(http.address)).transpose()?;
        let relay = Arc::new(relay);
        relay.telemetry.say(&format!("listening on {address}"));
        relay.take_up(duties::SYNC, |relay| relay.intake.sync_for_ever())?;
        relay.take_up(duties::RECEIVE, |relay| receiver::run(&relay.intake))?;
        if relay.options.retention != Retention::default() {
            relay.take_up(duties::RETAIN, |relay| retention::watch(&relay.housekeeping))?;
        }
        if let Some(archive) = relay.options.archive.clone() {
            relay.take_up(duties::ARCHIVE, move |relay| archiving::watch(&relay.housekeeping, &archive))?;
        }
        if let Some((listener, address)) = http {
            relay.telemetry.say(&format!("status on http://{address}/"));
            relay.take_up(duties::WATCH, |relay| History::watch(&relay.watch))?;
            relay.take_up(duties::HTTP, move |relay| http::serve(&relay.watch, &listener))?;
        }
        let accepting =
            relay.take_up(duties::ACCEPT, move |relay| server::accept(&relay.server, &listener))?;
        Ok(Running { address, accepting })
    }

    /// Serves closed logs, without a source: nothing is received, and replicas wait at the end.
    ///
    /// # Errors
    ///
    /// As [`Relay::start`].
    pub fn serve(options: ServeOptions, log: Log) -> Result<Running> {
        let options = RelayOptions::from(options);
        let disk = Arc::new(Directory(options.directory.clone()));
        let relay = Arc::new(Relay::open(options, disk, log)?);
        let (listener, address) = listen(relay.options.listen)?;
        relay.telemetry.say(&format!("listening on {address}"));
        relay.take_up(duties::RETAIN, |relay| archiving::sweep(&relay.housekeeping))?;
        let accepting =
            relay.take_up(duties::ACCEPT, move |relay| server::accept(&relay.server, &listener))?;
        Ok(Running { address, accepting })
    }

    /// Opens the stored logs, but starts no threads yet.
    pub(crate) fn open(options: RelayOptions, disk: Arc<dyn Disk>, log: Log) -> Result<Relay> {
        let (accounts, tls) = options.resolve()?;
        let keyring = options.keyring.clone();
        let limit = options.uncompressed_file_size;
        let lineages = Lineages::open(disk, keyring, limit, &mut |level, line| log(level, &printable(line)))?;
        let tls = match &options.listen_tls {
            ListenTls::Own => {
                let (certificate, key) = own_certificate::files(&options.directory)?;
                let tls = ServerTls::read(&certificate, &key)?;
                let shown = tls.shown_fingerprint();
                log(Level::Info, &printable(&format!("TLS with {}, SHA-256 {shown}", certificate.display())));
                Some(tls)
            }
            ListenTls::Off | ListenTls::Files { .. } => tls,
        };
        let uuid = identity::own_uuid(lineages.own().as_ref())?;
        let seeded = match lineages.last() {
            Some(_) => None,
            None => seed::seed(&options.directory, &options.seed)?,
        };
        if let Some(closed) = options.closed.as_ref().filter(|_| lineages.last().is_none()) {
            // Its replicas see a server of its own: the one that wrote the logs may be a replica here itself.
            let (_, report) = lineages.begin(closed.logs.base(), uuid)?;
            if report.is_alarming() {
                return Err(Error::DamagedLog(format!("{}: {report}", closed.logs.place())));
            }
        }
        let of_archive = options.archive.as_ref().map(|archive| archive.bring_back);
        let of_closed = options.closed.as_ref().map(|closed| closed.bring_back);
        let bring_back = of_closed.or(of_archive).unwrap_or_default();
        let pins = Pins::open(lineages.own())?;
        let served = LastServed::open(lineages.own())?;
        let telemetry = Arc::new(Telemetry::new(log));
        let (source_variables, unused) = KnownVariables::open(Arc::clone(lineages.own()));
        if let Some(error) = unused {
            telemetry.complain(&error, &error.to_string());
        }
        let lineages = Arc::new(lineages);
        let conversions = Arc::new(Conversions::new());
        let acknowledgements = Arc::<Acknowledgements>::default();
        let (dumps, registry) = (Arc::<Dumps>::default(), Arc::<Registry>::default());
        let intake = Arc::new(Intake {
            telemetry: Arc::clone(&telemetry),
            lineages: Arc::clone(&lineages),
            conversions: Arc::clone(&conversions),
            acknowledgements: Arc::clone(&acknowledgements),
            control: Control::default(),
            sources: Sources::new(options.sources.clone()),
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
            unsynced: Unsynced::default(),
            source_has_gtids: Mutex::new(None),
            source_variables,
        });
        let housekeeping = Arc::new(Housekeeping {
            telemetry: Arc::clone(&telemetry),
            lineages: Arc::clone(&lineages),
            dumps: Arc::clone(&dumps),
            brought_back: Arc::new(BroughtBack::new(bring_back)),
            archive: options.archive.clone(),
            closed: options.closed.as_ref().map(|closed| Arc::clone(&closed.logs)),
            retention: options.retention,
            directory: options.directory.clone(),
            keyring: options.keyring.clone(),
        });
        let statements = Statements {
            intake: Arc::clone(&intake),
            housekeeping: Arc::clone(&housekeeping),
            registry: Arc::clone(&registry),
            listen_semi_sync: options.listen_semi_sync,
            requires_tls: options.require_tls,
            hostname: hostname(),
        };
        let server = Arc::new(Server {
            telemetry: Arc::clone(&telemetry),
            lineages,
            conversions,
            housekeeping: Arc::clone(&housekeeping),
            statements,
            registry,
            dumps,
            acknowledgements,
            gate: Gate::new(options.limits),
            accounts,
            pins,
            served,
            tls,
            requires_tls: options.require_tls,
            native_password: options.listen_native_password,
            semi_sync: options.listen_semi_sync,
            forward: options.forward,
            form: options.form,
            only_replica: options.closed.as_ref().and_then(|closed| closed.only_replica),
        });
        let watch = Watch {
            telemetry: Arc::clone(&telemetry),
            intake: Arc::clone(&intake),
            server: Arc::clone(&server),
            history: History::default(),
            started: Instant::now(),
            http: options.http.clone(),
        };
        Ok(Relay { options, telemetry, intake, housekeeping, server, watch })
    }

    /// Runs a duty in its own thread.
    pub(crate) fn take_up(
        self: &Arc<Self>,
        name: &'static str,
        work: impl FnOnce(&Relay) + Send + 'static,
    ) -> Result<thread::JoinHandle<()>> {
        let (its, relay) = (Arc::clone(self), Arc::clone(self));
        duties::start(&self.telemetry, name, move || work(&its), move |error| relay.duty_ended(name, error))
    }

    /// A thread that should never end has ended. The relay must no longer look healthy.
    fn duty_ended(&self, name: &'static str, error: &Error) {
        self.telemetry.duties.failing(name, error.to_string());
        match name {
            duties::SYNC | duties::RECEIVE => self.intake.fail(error),
            _ => self.telemetry.complain(error, &format!("{error}; restart the relay")),
        }
    }
}

/// This machine's name, as Linux has it.
fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".into() } else { name.into() }
}

/// A listener and the address it listens on.
fn listen(at: SocketAddr) -> Result<(TcpListener, SocketAddr)> {
    let failed = || Error::io(format!("listen on {at}"));
    let listener = TcpListener::bind(at).map_err(failed())?;
    let address = listener.local_addr().map_err(failed())?;
    Ok((listener, address))
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
    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the relay stops accepting clients, which happens only after a failure. The process should then
    /// exit, so that its supervisor can restart it.
    pub fn join(self) {
        // The reason was logged when it happened.
        let _ = self.accepting.join();
    }
}
