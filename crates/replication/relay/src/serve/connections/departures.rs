//! Notices when the clients of dumps leave. One thread waits at all their sockets, so that the threads of idle dumps can
//! sleep: a thousand threads that each check their own socket would cost processor time.
//!
//! ```text
//! dump begins ── watch ── socket ─┐
//!                                 ├─ epoll ── the client has closed it ── flag, and a wake of the threads at its log
//! dump ends ──── drop ─── socket ─┘
//! ```
//!
//! It waits only for the end of a connection, and reports it once: a client that sends something wakes nobody.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use binlogz_relay_log::LineageLog;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

use crate::error::{Error, Result};

/// How many departures are reported at a time.
const EVENTS_MAX: usize = 256;
/// A wake is one for all that wait at a log. So we collect those who leave, instead of waking a thousand for each of a thousand.
const COLLECTED_FOR: Duration = Duration::from_millis(50);

/// The connections that are waited at.
#[derive(Debug)]
pub(crate) struct Departures {
    epoll: OwnedFd,
    watched: Mutex<BTreeMap<u32, WatchedConnection>>,
}

#[derive(Debug)]
struct WatchedConnection {
    has_left: Arc<AtomicBool>,
    /// The log at whose end its thread waits.
    kept: Arc<LineageLog>,
}

/// A connection that is waited at until this is dropped.
#[derive(Debug)]
pub(crate) struct DepartureWatch {
    departures: Arc<Departures>,
    connection: u32,
    socket: Arc<TcpStream>,
    has_left: Arc<AtomicBool>,
}

impl DepartureWatch {
    pub(crate) fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Acquire)
    }
}

impl Drop for DepartureWatch {
    fn drop(&mut self) {
        // The system forgets it by itself only when the last descriptor is closed.
        let _ = epoll::delete(&self.departures.epoll, &self.socket);
        self.departures.watched.lock().remove(&self.connection);
    }
}

impl Departures {
    pub(crate) fn new() -> Result<Departures> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)
            .map_err(|error| Error::io("wait at sockets")(error.into()))?;
        Ok(Departures { epoll, watched: Mutex::default() })
    }

    /// Waits at a socket from now on. `None` if the system can't: its thread has to look for itself.
    pub(crate) fn watch(
        self: &Arc<Self>,
        connection: u32,
        socket: &Arc<TcpStream>,
        kept: &Arc<LineageLog>,
    ) -> Option<DepartureWatch> {
        let has_left = Arc::new(AtomicBool::new(false));
        let watched = WatchedConnection { has_left: Arc::clone(&has_left), kept: Arc::clone(kept) };
        self.watched.lock().insert(connection, watched);
        // From here on it is forgotten when it is dropped.
        let watch =
            DepartureWatch { departures: Arc::clone(self), connection, socket: Arc::clone(socket), has_left };
        // ERR and HUP are told without being asked for.
        let flags = EventFlags::RDHUP | EventFlags::ONESHOT;
        epoll::add(&self.epoll, &watch.socket, EventData::new_u64(u64::from(connection)), flags).ok()?;
        Some(watch)
    }

    /// Waits for clients that leave, for ever.
    pub(crate) fn run(&self) -> Result<()> {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None) {
                Err(rustix::io::Errno::INTR) => continue,
                waited => waited.map_err(|error| Error::io("wait at sockets")(error.into()))?,
            };
            self.note(&events);
            thread::sleep(COLLECTED_FOR);
        }
    }

    fn note(&self, events: &[Event]) {
        let mut logs = BTreeMap::new();
        {
            let watched = self.watched.lock();
            let number = |event: &Event| u32::try_from(event.data.u64()).ok();
            for one in events.iter().filter_map(number).filter_map(|number| watched.get(&number)) {
                one.has_left.store(true, Ordering::Release);
                logs.insert(one.kept.id, Arc::clone(&one.kept));
            }
        }
        logs.values().for_each(|kept| kept.store.wake());
    }
}
