//! Limits the number of clients, both logged in and logging in.
//!
//! Clients that are logging in have slots of their own. When these are full, the one that was greeted first makes room
//! for the next, but only after a second, or after four times as long as recent logins took. Until then the next one
//! waits in the listener's queue. So neither ten thousand connections nor clients that send a byte a second can keep out
//! a client that knows its password, and a burst of logins on a busy machine loses none. A client that was not greeted
//! yet waits for us, not we for it.
//!
//! Clients never get the descriptors that the log needs: their number follows from the limit of the process
//! ([`Limits::within`]), and connections beyond it are not accepted until others have ended.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Descriptors of a client that is logging in: its connection, the log's head.
const DESCRIPTORS_LOGGING_IN: usize = 2;
/// Descriptors of a logged-in client: one for its connection, two for the stored file being sent, one for lookups in
/// the meantime, one for a temporary file.
const DESCRIPTORS_LOGGED_IN: usize = 5;
/// Evicted connections whose threads have not ended yet.
const LEAVING_MAX: usize = 8;
/// The relay's own descriptors: the log (directory, lock, file, index), the source's connection, listeners, HTTP
/// (17), converters' and receiver's temporary files (24), the archive, retention, standard streams.
const DESCRIPTORS_RESERVED: usize = 80 + LEAVING_MAX * DESCRIPTORS_LOGGING_IN;
/// Descriptors of each further source: its log, its connection, temporary files, the archive.
const DESCRIPTORS_OF_SOURCE: usize = 40;
/// How long a client that was greeted has before it may be sent away for another; at most, however long others take.
const GRACE: Duration = Duration::from_secs(1);
const GRACE_MAX: Duration = Duration::from_secs(5);
/// The grace in times of the longest of this many recent logins.
const GRACE_FACTOR: u32 = 4;
const RECENT: usize = 64;
/// How soon to look again while nobody was greeted.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Clients that are logging in get one in this many of the remaining descriptors.
const LOGGING_IN_SHARE: usize = 4;

/// How many clients to serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Clients logged in at a time.
    pub connections_max: usize,
    /// Connections from one address at a time; 0 means any number.
    pub per_address_max: usize,
    /// Clients logging in at a time.
    pub logging_in_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { connections_max: 1000, per_address_max: 0, logging_in_max: 128 }
    }
}

impl Limits {
    /// Lowers the limits to as many clients as this many descriptors allow, with this many sources.
    #[must_use]
    pub(super) fn within(self, descriptors: u64, sources: usize) -> Limits {
        let descriptors = usize::try_from(descriptors).unwrap_or(usize::MAX);
        if self.descriptors(sources) <= descriptors {
            return self;
        }
        let left = descriptors.saturating_sub(reserved(sources));
        let logging_in = (left / LOGGING_IN_SHARE / DESCRIPTORS_LOGGING_IN).max(1);
        let logging_in_max = self.logging_in_max.min(logging_in);
        let left = left.saturating_sub(logging_in_max.saturating_mul(DESCRIPTORS_LOGGING_IN));
        let connections_max = self.connections_max.min((left / DESCRIPTORS_LOGGED_IN).max(1));
        Limits { connections_max, logging_in_max, ..self }
    }

    /// How many descriptors the process needs for these limits and this many sources.
    pub(super) fn descriptors(&self, sources: usize) -> usize {
        let logging_in = self.logging_in_max.saturating_mul(DESCRIPTORS_LOGGING_IN);
        let logged_in = self.connections_max.saturating_mul(DESCRIPTORS_LOGGED_IN);
        logging_in.saturating_add(logged_in).saturating_add(reserved(sources))
    }

    /// Open connections at a time, including those that are about to end.
    fn open_max(&self) -> usize {
        self.logging_in_max.max(1).saturating_add(self.connections_max).saturating_add(LEAVING_MAX)
    }
}

fn reserved(sources: usize) -> usize {
    DESCRIPTORS_RESERVED + sources.saturating_sub(1).saturating_mul(DESCRIPTORS_OF_SOURCE)
}

/// The clients that are logged in or logging in.
#[derive(Debug)]
pub(crate) struct Gate {
    limits: Limits,
    inner: Mutex<AdmissionState>,
    closed: Condvar,
}

#[derive(Debug, Default)]
struct AdmissionState {
    /// Connections that hold descriptors.
    open: usize,
    /// By connection number: the oldest first.
    logging_in: BTreeMap<u32, LoggingIn>,
    /// How long the last clients took from the greeting on.
    recent: VecDeque<Duration>,
    connected: BTreeMap<u32, IpAddr>,
    logged_in: usize,
    turned_away: u64,
    /// Bytes of all clients' large commands.
    large: usize,
}

/// A client that is logging in.
#[derive(Debug)]
struct LoggingIn {
    stream: Arc<TcpStream>,
    /// When it was sent the greeting.
    greeted: Option<Instant>,
}

impl AdmissionState {
    /// How long a client has from its greeting on while others wait.
    fn grace(&self) -> Duration {
        let longest = self.recent.iter().max().copied().unwrap_or_default();
        (longest * GRACE_FACTOR).clamp(GRACE, GRACE_MAX)
    }

    /// Whether one more connection may come: there is a slot, or one has been made. Else how soon one may be.
    fn make_room(&mut self, limits: &Limits, now: Instant) -> Result<(), Duration> {
        loop {
            // Those that have no slot yet, or whose threads are about to end.
            let between = self.open.saturating_sub(self.connected.len());
            if self.logging_in.len() + between < limits.logging_in_max.max(1) {
                return Ok(());
            }
            let oldest =
                self.logging_in.iter().find_map(|(connection, one)| Some((*connection, one.greeted?)));
            let Some((connection, greeted)) = oldest else { return Err(LOOK_AGAIN) };
            let left = self.grace().saturating_sub(now.saturating_duration_since(greeted));
            if !left.is_zero() {
                return Err(left);
            }
            if let Some(oldest) = self.logging_in.remove(&connection) {
                // Its thread sees the end of the connection.
                let _ = oldest.stream.shutdown(Shutdown::Both);
                self.turned_away += 1;
            }
        }
    }
}

/// A command up to this size is free.
pub(crate) const SMALL_COMMAND: usize = 1 << 20;
/// The total for larger commands of all clients. A dump's GTID set is held as long as its connection.
const LARGE_COMMANDS_MAX: usize = 256 << 20;

/// A client's slot, until dropped.
#[derive(Debug)]
pub(crate) struct Admission<'a> {
    gate: &'a Gate,
    connection: u32,
    is_logged_in: bool,
    /// Bytes of its largest command, beyond a small one.
    large: usize,
}

/// The numbers of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClientCounts {
    pub(crate) logged_in: usize,
    pub(crate) logging_in: usize,
    pub(crate) turned_away: u64,
}

impl Gate {
    pub(crate) fn new(limits: Limits) -> Self {
        Gate { limits, inner: Mutex::default(), closed: Condvar::new() }
    }

    /// Waits until there are descriptors for one more connection, and a slot for it to log in.
    pub(crate) fn wait_for_room(&self) {
        let mut inner = self.lock();
        loop {
            if inner.open >= self.limits.open_max() {
                self.closed.wait(&mut inner);
                continue;
            }
            let Err(wait) = inner.make_room(&self.limits, Instant::now()) else { return };
            self.closed.wait_for(&mut inner, wait);
        }
    }

    pub(crate) fn opened(&self) {
        self.lock().open += 1;
    }

    pub(crate) fn closed(&self) {
        self.lock().open -= 1;
        self.closed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, AdmissionState> {
        self.inner.lock()
    }

    /// Takes a slot for a new connection; `None` if its address is at its limit.
    pub(crate) fn admit(
        &self,
        connection: u32,
        stream: &Arc<TcpStream>,
        address: IpAddr,
    ) -> Option<Admission<'_>> {
        let mut inner = self.lock();
        let most = self.limits.per_address_max;
        if most > 0 && inner.connected.values().filter(|other| **other == address).count() >= most {
            inner.turned_away += 1;
            return None;
        }
        inner.logging_in.insert(connection, LoggingIn { stream: Arc::clone(stream), greeted: None });
        inner.connected.insert(connection, address);
        Some(Admission { gate: self, connection, is_logged_in: false, large: 0 })
    }

    /// Counts a connection that was turned away elsewhere.
    pub(crate) fn turned_away(&self) {
        self.lock().turned_away += 1;
    }

    pub(crate) fn counts(&self) -> ClientCounts {
        let inner = self.lock();
        ClientCounts {
            logged_in: inner.logged_in,
            logging_in: inner.logging_in.len(),
            turned_away: inner.turned_away,
        }
    }
}

impl Admission<'_> {
    /// The client has its greeting.
    pub(crate) fn greeted(&self, now: Instant) {
        if let Some(one) = self.gate.lock().logging_in.get_mut(&self.connection) {
            one.greeted.get_or_insert(now);
        }
    }

    /// Moves to a logged-in slot; `false` if there is no room. A client that becomes another account has one.
    pub(crate) fn log_in(&mut self) -> bool {
        if self.is_logged_in {
            return true;
        }
        let mut inner = self.gate.lock();
        if let Some(LoggingIn { greeted: Some(greeted), .. }) = inner.logging_in.remove(&self.connection) {
            inner.recent.push_back(greeted.elapsed());
            if inner.recent.len() > RECENT {
                inner.recent.pop_front();
            }
        }
        self.gate.closed.notify_all();
        if inner.logged_in >= self.gate.limits.connections_max {
            inner.turned_away += 1;
            return false;
        }
        inner.logged_in += 1;
        self.is_logged_in = true;
        true
    }

    /// Whether there is memory for a command of this size. The client then owns that memory until it leaves.
    pub(crate) fn may_hold(&mut self, size: usize) -> bool {
        let more = size.saturating_sub(SMALL_COMMAND).saturating_sub(self.large);
        if more == 0 {
            return true;
        }
        let mut inner = self.gate.lock();
        if inner.large + more > LARGE_COMMANDS_MAX {
            return false;
        }
        inner.large += more;
        self.large += more;
        true
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        let mut inner = self.gate.lock();
        inner.logging_in.remove(&self.connection);
        inner.connected.remove(&self.connection);
        self.gate.closed.notify_all();
        inner.logged_in -= usize::from(self.is_logged_in);
        inner.large -= self.large;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    /// Both ends of a connection.
    fn pair() -> (Arc<TcpStream>, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (Arc::new(listener.accept().unwrap().0), client)
    }

    #[test]
    fn clients_are_no_more_than_descriptors_allow() {
        let limits = Limits::default();
        assert_eq!(limits.within(limits.descriptors(1) as u64, 1), limits);
        for descriptors in [0, 64, 120, 256, 1024, 4096, limits.descriptors(1) as u64 - 1, u64::MAX] {
            let within = limits.within(descriptors, 1);
            assert!(within.connections_max >= 1 && within.logging_in_max >= 1);
            assert!(within.connections_max <= 1000 && within.logging_in_max <= 128);
            if descriptors > 120 {
                assert!(within.descriptors(1) as u64 <= descriptors, "{descriptors}: {within:?}");
            }
        }
        let small = limits.within(256, 1);
        assert!(small.connections_max >= 16 && small.logging_in_max >= 8, "{small:?}");
        let few = Limits { connections_max: 3, per_address_max: 2, logging_in_max: 5 };
        assert_eq!(few.within(256, 1), few);
    }

    #[test]
    fn what_is_over_the_limit_waits_until_descriptors_are_closed() {
        let gate = Gate::new(Limits { connections_max: 1, per_address_max: 0, logging_in_max: 1 });
        let most = gate.limits.open_max();
        (0..most).for_each(|_| gate.opened());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.wait_for_room());
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!waiting.is_finished());
            (0..most).for_each(|_| gate.closed());
            waiting.join().unwrap();
        });
        gate.wait_for_room();
    }

    #[test]
    fn large_commands_of_all_clients_have_a_bound() {
        let gate = Gate::new(Limits::default());
        let here = IpAddr::from(Ipv4Addr::LOCALHOST);
        let (stream, _client) = pair();
        let mut places: Vec<_> = (0..6).map(|number| gate.admit(number, &stream, here).unwrap()).collect();
        let large = 64 << 20;
        let taken: Vec<bool> =
            places.iter_mut().map(|place| place.may_hold(large) && place.may_hold(large)).collect();
        assert_eq!(taken, [true, true, true, true, false, false]);
        assert!(places.iter_mut().all(|place| place.may_hold(SMALL_COMMAND)), "small ones cost nothing");
        places.remove(0);
        let taken: Vec<bool> = places.iter_mut().map(|place| place.may_hold(large)).collect();
        assert_eq!(taken, [true, true, true, true, false]);
        places.clear();
        assert_eq!(gate.lock().large, 0);
    }

    #[test]
    fn who_stands_in_the_door_longest_makes_room() {
        let gate = Gate::new(Limits { connections_max: 1, per_address_max: 3, logging_in_max: 2 });
        let here = IpAddr::from(Ipv4Addr::LOCALHOST);
        let ((first, mut slow), (second, _other), (third, _last)) = (pair(), pair(), pair());
        let now = Instant::now();
        let room = |now| gate.lock().make_room(&gate.limits, now);
        (0..3).for_each(|_| gate.opened());
        let first_place = gate.admit(1, &first, here).unwrap();
        let mut second_place = gate.admit(2, &second, here).unwrap();
        assert_eq!(room(now + GRACE_MAX), Err(LOOK_AGAIN), "nobody has a greeting that could be answered");
        first_place.greeted(now);
        second_place.greeted(now + GRACE / 2);
        assert_eq!(room(now + GRACE / 2), Err(GRACE / 2), "both may be about to log in");
        assert_eq!(room(now + GRACE), Err(GRACE / 2), "the third is on its way");
        let mut third_place = gate.admit(3, &third, here).unwrap();
        assert_eq!(slow.read(&mut [0]).unwrap(), 0, "the first was sent away");
        assert_eq!(gate.counts(), ClientCounts { logged_in: 0, logging_in: 2, turned_away: 1 });
        assert!(gate.admit(4, &third, here).is_none(), "three from one address");
        assert!(gate.admit(4, &third, "127.0.0.2".parse().unwrap()).is_some());
        assert!(second_place.log_in());
        assert!(second_place.log_in(), "it has its slot, as another account too");
        assert!(!third_place.log_in(), "one is inside");
        drop(second_place);
        assert!(third_place.log_in());
        drop(third_place);
        assert_eq!(gate.counts().logged_in, 0);
    }

    #[test]
    fn who_is_slow_where_all_are_slow_is_waited_for() {
        let mut inner = AdmissionState::default();
        assert_eq!(inner.grace(), GRACE);
        inner.recent = [3, 700, 20].into_iter().map(Duration::from_millis).collect();
        assert_eq!(inner.grace(), Duration::from_millis(2800));
        inner.recent.push_back(Duration::from_secs(9));
        assert_eq!(inner.grace(), GRACE_MAX);
    }
}
