//! The relay as a whole: the state that its sources share, and the threads for that.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

use binlogz_relay_forms::Conversions;
use binlogz_relay_log::Directory;

use crate::error::{Error, Result};
use crate::options::{ListenTls, RelayOptions, ServeOptions};
use crate::rates::SharedRates;
use crate::serve::connections::accounts::RelayAccounts;
use crate::serve::connections::admission::Gate;
use crate::serve::connections::door::{Door, DoorOptions};
use crate::serve::connections::listeners::{ClientListener, Listeners};
use crate::serve::connections::own_certificate;
use crate::serve::connections::transport::ServerTls;
use crate::serve::server;
use crate::source::{Common, RelaySource};
use crate::sources::{RelaySources, SourceChanges};
use crate::telemetry::{Telemetry, complain, duties, say};
use crate::watch::{WatchedRelay, http};

/// State that the sources of a relay share.
pub struct Relay {
    /// As they were last loaded.
    options: Mutex<RelayOptions>,
    telemetry: Arc<Telemetry>,
    door: Arc<Door>,
    watch: Arc<WatchedRelay>,
    sources: Arc<RelaySources>,
    address: SocketAddr,
}

/// The result of a new configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReloadResult {
    /// The changes to the sources.
    pub sources: SourceChanges,
    /// Whether other accounts may log in, or with other rights.
    pub accounts: bool,
    /// Whether other rates hold, of all sources together or of some.
    pub rates: bool,
    /// Sections of the configuration that have changed, and mean something only after a restart.
    pub after_restart: Vec<&'static str>,
}

impl Relay {
    /// Opens the stored logs, listens, and starts receiving and serving. Serving does not wait for the sources, and a
    /// source of several that can't be opened does not keep the others from being served.
    ///
    /// # Errors
    ///
    /// We can't listen on the relay's address, or an account has no password. Of an only source: its directory is in use
    /// or damaged; or nothing is stored yet, and the source is a server that can't be followed.
    pub fn start(options: RelayOptions) -> Result<RunningRelay> {
        Relay::begin(options)
    }

    /// Serves closed logs, without a source: nothing is received, and replicas wait at the end.
    ///
    /// # Errors
    ///
    /// As [`Relay::start`].
    pub fn serve(options: ServeOptions) -> Result<RunningRelay> {
        Relay::begin(RelayOptions::from(options))
    }

    fn begin(options: RelayOptions) -> Result<RunningRelay> {
        let (accounts, tls) = options.resolve()?;
        let telemetry = Arc::new(Telemetry::new(""));
        let common = Common::of(&options);
        let only = match options.sources.as_slice() {
            [source] if options.has_only_source() => {
                let disk = Arc::new(Directory(source.directory.clone()));
                let source = RelaySource::open(source.clone(), disk, Arc::clone(&telemetry), common.clone())?;
                if source.options.closed.is_none() {
                    source.check_product()?;
                }
                Some(source)
            }
            _ => {
                let directory = &options.directory;
                let failed = Error::io(format!("create {}", directory.display()));
                std::fs::create_dir_all(directory).map_err(failed)?;
                None
            }
        };
        let tls = shown_certificate(&options, tls, &telemetry)?;
        let listener = Arc::new(ClientListener::open(options.listen, None)?);
        let relay = Relay::new(options, telemetry, common, (accounts, tls), &listener)?;
        relay.run(only, &listener)
    }

    fn new(
        options: RelayOptions,
        telemetry: Arc<Telemetry>,
        common: Common,
        (accounts, tls): (RelayAccounts, Option<ServerTls>),
        listener: &Arc<ClientListener>,
    ) -> Result<Arc<Relay>> {
        let in_door = DoorOptions {
            tls,
            requires_tls: options.require_tls,
            native_password: options.listen_native_password,
        };
        let gate = Gate::new(options.limits);
        let listeners = Listeners::new(vec![Arc::clone(listener)])?;
        let door = Arc::new(Door::new(Arc::clone(&telemetry), listeners, gate, accounts, in_door)?);
        let conversions = Arc::clone(&common.conversions);
        let watch = Arc::new(WatchedRelay::new(Arc::clone(&door), conversions, options.http.clone()));
        let sources = RelaySources::new(common, Arc::clone(listener), Arc::clone(&door), Arc::clone(&watch));
        let options = Mutex::new(options);
        let address = listener.address;
        Ok(Arc::new(Relay { options, telemetry, door, watch, sources, address }))
    }

    /// Starts the threads.
    fn run(self: Arc<Self>, only: Option<RelaySource>, listener: &ClientListener) -> Result<RunningRelay> {
        let http = self.options.lock().http.clone();
        let http = http.map(|http| listen(http.address)).transpose()?;
        say!(self.telemetry, &format!("listening on {}", listener.address));
        match only {
            Some(source) => self.sources.set_only(source).start()?,
            None => {
                let sources = self.options.lock().sources.clone();
                self.sources.set(sources);
                self.take_up(duties::OPEN, |relay| relay.sources.retry())?;
            }
        }
        if let Some((listener, address)) = http {
            say!(self.telemetry, &format!("status on http://{address}/"));
            self.take_up(duties::WATCH, |relay| http::watch(&relay.watch))?;
            self.take_up(duties::HTTP, move |relay| http::serve(&relay.watch, &listener))?;
        }
        self.take_up(duties::DEPARTURES, |relay| relay.notice_departures())?;
        let accepting = self.take_up(duties::ACCEPT, |relay| server::accept(&relay.door))?;
        Ok(RunningRelay { relay: self, accepting })
    }

    /// Notices clients that leave, for ever.
    fn notice_departures(&self) {
        let failed = self.door.departures.run();
        if let Err(error) = failed {
            complain!(self.telemetry, &error, &error.to_string());
        }
    }

    /// Runs a duty in its own thread.
    fn take_up(
        self: &Arc<Self>,
        name: &'static str,
        work: impl FnOnce(&Relay) + Send + 'static,
    ) -> Result<thread::JoinHandle<()>> {
        let its = Arc::clone(self);
        let relay = Arc::clone(self);
        duties::start(
            &self.telemetry,
            name,
            move || work(&its),
            move |error| {
                relay.telemetry.duties.failing(name, error.to_string());
                complain!(relay.telemetry, error, &format!("{error}; restart the relay"));
            },
        )
    }

    /// Takes a new configuration: adds, changes and removes sources and accounts. Clients of other sources notice
    /// nothing; of a source that changes, they have to connect again. Returns what was different.
    ///
    /// # Errors
    ///
    /// The configuration is wrong; nothing was changed then.
    pub fn reload(&self, new: RelayOptions) -> Result<ReloadResult> {
        let (accounts, _) = new.resolve()?;
        // Held to the end: one after the other.
        let mut options = self.options.lock();
        if options.has_only_source() != new.has_only_source() {
            return Err(Error::Refused(
                "a relay with a [source] and one with [[source]] tables are not the same: restart it".into(),
            ));
        }
        let mut reloaded =
            ReloadResult { after_restart: options.differences(&new), ..ReloadResult::default() };
        reloaded.accounts = options.accounts != new.accounts;
        let rates = |options: &RelayOptions| {
            let of = options.sources.iter().map(|source| (source.name.clone(), source.rates));
            of.collect::<BTreeMap<_, _>>()
        };
        let before = rates(&options);
        let after = rates(&new);
        // A source that is new or gone is no other rate.
        reloaded.rates = options.rates != new.rates
            || before.iter().any(|(name, rates)| after.get(name).is_some_and(|after| after != rates));
        self.sources.set_shared_rates(new.rates);
        options.rates = new.rates;
        match new.has_only_source() {
            false => {
                reloaded.sources = self.sources.set(new.sources.clone());
                options.sources = new.sources;
            }
            true => {
                let its = new.sources.first().map(|source| source.rates).unwrap_or_default();
                self.sources.set_rates_of_only(its);
                options.sources.iter_mut().for_each(|source| source.rates = its);
            }
        }
        self.door.set_accounts(accounts);
        options.accounts = new.accounts;
        Ok(reloaded)
    }
}

impl Common {
    fn of(options: &RelayOptions) -> Common {
        let rates = SharedRates::default();
        rates.set(options.rates);
        Common {
            conversions: Arc::new(Conversions::new()),
            listen_semi_sync: options.listen_semi_sync,
            requires_tls: options.require_tls,
            forward: options.forward,
            hostname: hostname(),
            rates,
        }
    }
}

/// The certificate that clients are shown, made if it is the relay's own.
fn shown_certificate(
    options: &RelayOptions,
    given: Option<ServerTls>,
    telemetry: &Telemetry,
) -> Result<Option<ServerTls>> {
    if options.listen_tls != ListenTls::Own {
        return Ok(given);
    }
    let (certificate, key) = own_certificate::files(&options.directory)?;
    let tls = ServerTls::read(&certificate, &key)?;
    let shown = tls.shown_fingerprint();
    say!(telemetry, &format!("TLS with {}, SHA-256 {shown}", certificate.display()));
    Ok(Some(tls))
}

/// This machine's name, as Linux has it. A service may not see /proc/sys, but the file that the name comes from.
fn hostname() -> String {
    let named = |path: &str| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        Some(text.trim().to_owned()).filter(|name| !name.is_empty())
    };
    let name = named("/proc/sys/kernel/hostname").or_else(|| named("/etc/hostname"));
    name.unwrap_or_else(|| "localhost".into())
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
pub struct RunningRelay {
    relay: Arc<Relay>,
    accepting: thread::JoinHandle<()>,
}

impl RunningRelay {
    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.relay.address
    }

    /// The relay, which takes a new configuration while [`RunningRelay::join`] waits.
    pub fn relay(&self) -> Arc<Relay> {
        Arc::clone(&self.relay)
    }

    /// Waits until the relay stops accepting clients, which happens only after a failure. The process should then
    /// exit, so that its supervisor can restart it.
    pub fn join(self) {
        // The reason was logged when it happened.
        let _ = self.accepting.join();
    }
}
