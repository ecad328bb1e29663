//! The sources of a relay: opened, opened again where that failed, replaced when the configuration changes. Each is
//! opened and closed in a thread of its own, so that a slow disk delays nothing else.
//!
//! ```text
//! opening ─┬─ open ─── (removed, changed) ─── closing ─┬─ gone
//!    ▲     └─ failed ─┐                                └─ opening, with other settings
//!    └──── 10 s ──────┘
//! ```

use parking_lot::Mutex;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use binlogz_relay_log::Directory;

use crate::error::{Error, Result};
use crate::options::SourceOptions;
use crate::rates::ByteRates;
use crate::serve::connections::door::Door;
use crate::serve::connections::listeners::ClientListener;
use crate::serve::connections::routes::SourceRoute;
use crate::source::{Common, RelaySource};
use crate::telemetry::{Telemetry, complain, duties, say};
use crate::watch::{WatchedRelay, WatchedSource};

/// How often a source that can't be opened is tried again.
const RETRY: Duration = Duration::from_secs(10);
/// How long a start and a reload wait for sources that are opened and closed. Others go on after that.
const PATIENCE: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(5);

/// The sources of a relay: opened, opened again where that failed, replaced when the configuration changes.
pub(crate) struct RelaySources {
    slots: Mutex<Vec<Slot>>,
    /// Counters and log lines of the state that all sources share.
    telemetry: Arc<Telemetry>,
    common: Common,
    /// Where clients of all sources arrive.
    listener: Arc<ClientListener>,
    door: Arc<Door>,
    watch: Arc<WatchedRelay>,
}

/// A source that there is to be.
struct Slot {
    options: SourceOptions,
    state: SourceState,
    /// Counts the settings that the slot has had: a source that was begun under earlier settings is of no use.
    generation: u64,
    /// Why it could not be opened the last time; empty: it was not tried, or could be.
    failure: String,
}

impl Slot {
    /// Other limits from now on.
    fn set_rates(&mut self, rates: ByteRates) {
        self.options.rates = rates;
        if let SourceState::Open(source, _) = &self.state {
            source.set_rates(rates);
        }
    }
}

enum SourceState {
    Opening,
    Open(Arc<RelaySource>, Option<Arc<ClientListener>>),
    Failed,
}

impl SourceState {
    /// The state after a source's thread was begun; without a thread the source is tried again later.
    fn begun(thread: &Option<thread::JoinHandle<()>>) -> SourceState {
        if thread.is_some() { SourceState::Opening } else { SourceState::Failed }
    }
}

/// The changes that a new configuration makes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceChanges {
    /// Sources that are new.
    pub added: Vec<String>,
    /// Sources with other settings, whose replicas have to connect again.
    pub changed: Vec<String>,
    /// Sources that are followed and served no more. Their logs stay on disk.
    pub removed: Vec<String>,
}

impl RelaySources {
    pub(crate) fn new(
        common: Common,
        listener: Arc<ClientListener>,
        door: Arc<Door>,
        watch: Arc<WatchedRelay>,
    ) -> Arc<RelaySources> {
        let telemetry = Arc::clone(&door.telemetry);
        Arc::new(RelaySources { slots: Mutex::default(), telemetry, common, listener, door, watch })
    }

    /// The only source of a relay, which was opened before.
    pub(crate) fn set_only(&self, source: RelaySource) -> Arc<RelaySource> {
        let source = Arc::new(source);
        let slot = Slot {
            options: source.options.clone(),
            state: SourceState::Open(Arc::clone(&source), None),
            generation: 0,
            failure: String::new(),
        };
        *self.slots.lock() = vec![slot];
        self.publish(&self.slots.lock());
        source
    }

    /// Other limits of all sources together from now on.
    pub(crate) fn set_shared_rates(&self, rates: ByteRates) {
        self.common.rates.set(rates);
    }

    /// Other limits of the only source from now on.
    pub(crate) fn set_rates_of_only(&self, rates: ByteRates) {
        self.slots.lock().iter_mut().for_each(|slot| slot.set_rates(rates));
    }

    /// Makes the sources these ones. Sources whose settings stay are not touched.
    pub(crate) fn set(self: &Arc<Self>, wanted: Vec<SourceOptions>) -> SourceChanges {
        let mut changes = SourceChanges::default();
        let mut at_work = Vec::new();
        let mut slots = self.slots.lock();
        let mut before = std::mem::take(&mut *slots);
        for options in wanted {
            let name = options.name.clone();
            let known = before.iter().position(|slot| slot.options.name == name).map(|at| before.remove(at));
            let (generation, old) = match known {
                Some(mut slot) if slot.options.is_same(&options) => {
                    slot.set_rates(options.rates);
                    slots.push(slot);
                    continue;
                }
                Some(Slot { state, generation, .. }) => {
                    changes.changed.push(name.clone());
                    (generation + 1, Some(state))
                }
                None => {
                    changes.added.push(name.clone());
                    (0, None)
                }
            };
            // Its thread waits for the lock of the slots.
            let thread = self.open_after(old, name, generation);
            slots.push(Slot {
                options,
                state: SourceState::begun(&thread),
                generation,
                failure: String::new(),
            });
            at_work.push(thread);
        }
        for Slot { options, state, .. } in before {
            changes.removed.push(options.name.clone());
            at_work.push(self.close(state, options.name));
        }
        self.publish(&slots);
        drop(slots);
        let until = Instant::now() + PATIENCE;
        while at_work.iter().flatten().any(|thread| !thread.is_finished()) && Instant::now() < until {
            thread::sleep(TICK);
        }
        changes
    }

    /// Tries again for ever what could not be opened.
    pub(crate) fn retry(self: &Arc<Self>) {
        duties::rounds(&self.telemetry, duties::OPEN, RETRY, "it is tried again", || {
            let mut slots = self.slots.lock();
            for slot in slots.iter_mut().filter(|slot| matches!(slot.state, SourceState::Failed)) {
                let thread = self.open_after(None, slot.options.name.clone(), slot.generation);
                slot.state = SourceState::begun(&thread);
            }
            Ok(())
        });
    }

    /// Opens a source, once an earlier one in its place has closed.
    fn open_after(
        self: &Arc<Self>,
        old: Option<SourceState>,
        name: String,
        generation: u64,
    ) -> Option<thread::JoinHandle<()>> {
        let sources = Arc::clone(self);
        self.spawn("open", move || {
            if let Some(SourceState::Open(source, listener)) = old {
                // The new one may want the same port.
                drop(listener);
                source.close();
            }
            sources.open(&name, generation);
        })
    }

    fn close(self: &Arc<Self>, old: SourceState, name: String) -> Option<thread::JoinHandle<()>> {
        let sources = Arc::clone(self);
        self.spawn("close", move || {
            if let SourceState::Open(source, listener) = old {
                drop(listener);
                let in_time = source.close();
                let still = if in_time { "" } else { ", though some of its connections have not ended yet" };
                say!(sources.telemetry, &format!("source {name} was removed{still}"));
            }
        })
    }

    fn spawn(
        &self,
        name: &'static str,
        work: impl FnOnce() + Send + 'static,
    ) -> Option<thread::JoinHandle<()>> {
        let spawned = thread::Builder::new().name(name.to_owned()).spawn(work);
        // A source that is not opened now is opened later.
        spawned.map_err(|error| self.complain(&Error::thread(name)(error))).ok()
    }

    fn complain(&self, error: &Error) {
        complain!(self.telemetry, error, &error.to_string());
    }

    fn open(&self, name: &str, generation: u64) {
        let of_slot = |slot: &&mut Slot| slot.options.name == name && slot.generation == generation;
        let options = self.slots.lock().iter_mut().find(of_slot).map(|slot| slot.options.clone());
        let Some(options) = options else { return };
        // A panic too is tried again.
        let opened = duties::attempt(duties::OPEN, || self.try_open(options));
        let mut slots = self.slots.lock();
        let slot = slots.iter_mut().find(of_slot);
        match (opened, slot) {
            (Ok((source, listener)), Some(slot)) if !matches!(slot.state, SourceState::Open(..)) => {
                slot.state = SourceState::Open(source, listener);
                // They may be others meanwhile.
                slot.set_rates(slot.options.rates);
                slot.failure.clear();
            }
            // Meanwhile the configuration has changed.
            (Ok((source, _)), _) => {
                drop(slots);
                source.close();
                return;
            }
            (Err(error), Some(slot)) => {
                let why = error.to_string();
                // The same error again and again is told once.
                if slot.failure != why {
                    let again = RETRY.as_secs();
                    let line =
                        format!("source {name}: {why}; it is tried again every {again} s, the others go on");
                    complain!(self.telemetry, &error, &line);
                }
                (slot.state, slot.failure) = (SourceState::Failed, why);
            }
            (Err(_), None) => {}
        }
        self.publish(&slots);
    }

    fn try_open(&self, options: SourceOptions) -> Result<(Arc<RelaySource>, Option<Arc<ClientListener>>)> {
        let name = options.name.clone();
        let telemetry = Arc::new(Telemetry::new(&name));
        let at = options.listen;
        let listener = at.map(|at| ClientListener::open(at, Some(name))).transpose()?.map(Arc::new);
        if let Some(listener) = &listener {
            say!(telemetry, &format!("listening on {}", listener.address));
        }
        let disk = Arc::new(Directory(options.directory.clone()));
        let source = Arc::new(RelaySource::open(options, disk, telemetry, self.common.clone())?);
        if let Err(error) = source.start() {
            source.close();
            return Err(error);
        }
        Ok((source, listener))
    }

    /// Tells those who need to know which sources there are.
    fn publish(&self, slots: &[Slot]) {
        let mut listeners = vec![Arc::clone(&self.listener)];
        let mut routes = Vec::new();
        let mut watched = Vec::new();
        for Slot { options, state, failure, .. } in slots {
            let why = if failure.is_empty() { "its log is being opened" } else { failure.as_str() };
            let name = options.name.clone();
            let (server, watch) = match state {
                SourceState::Open(source, listener) => {
                    listeners.extend(listener.as_ref().map(Arc::clone));
                    (Ok(Arc::clone(&source.server)), Ok(Arc::clone(&source.watch)))
                }
                SourceState::Opening | SourceState::Failed => (Err(why.to_owned()), Err(why.to_owned())),
            };
            routes.push(SourceRoute { name: name.clone(), to: server });
            watched.push(WatchedSource { name, source: watch });
        }
        self.door.listeners.set(listeners);
        self.door.routes.set(routes);
        self.watch.set(watched);
    }
}
