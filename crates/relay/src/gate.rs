//! The door: how many may be inside, and how many stand in it.
//!
//! Those who are logging in have places of their own. When these are full the one who stands there longest is sent
//! away for the next: whoever knows its password is through in milliseconds, so that neither ten thousand
//! connections nor clients who say a byte a second keep it out.

use std::collections::BTreeMap;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many clients are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Clients that are logged in, at a time.
    pub connections_max: usize,
    /// Connections from one address, at a time; 0 is any number.
    pub per_address_max: usize,
    /// Clients that are logging in, at a time.
    pub logging_in_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { connections_max: 1000, per_address_max: 0, logging_in_max: 128 }
    }
}

/// Who is inside and who stands in the door.
#[derive(Debug)]
pub(crate) struct Gate {
    limits: Limits,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// By connection number: the oldest first.
    logging_in: BTreeMap<u32, TcpStream>,
    connected: BTreeMap<u32, IpAddr>,
    logged_in: usize,
    turned_away: u64,
    /// Bytes of large commands, of all clients.
    large: usize,
}

/// A command up to this size costs a client nothing.
pub(crate) const SMALL_COMMAND: usize = 1 << 20;
/// What all clients together may have of larger ones: the set of GTIDs of a dump stays as long as its connection.
const LARGE_COMMANDS_MAX: usize = 256 << 20;

/// A client's place, until dropped.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    gate: &'a Gate,
    connection: u32,
    is_logged_in: bool,
    /// Bytes of the largest of its commands, beyond a small one.
    large: usize,
}

/// What the door sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) logged_in: usize,
    pub(crate) logging_in: usize,
    /// Since the start.
    pub(crate) turned_away: u64,
}

impl Gate {
    pub(crate) fn new(limits: Limits) -> Self {
        Gate { limits, inner: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place in the door for a new connection; `None`: its address has all it may have.
    pub(crate) fn admit(&self, connection: u32, stream: &TcpStream, address: IpAddr) -> Option<Place<'_>> {
        let mut inner = self.lock();
        let most = self.limits.per_address_max;
        if most > 0 && inner.connected.values().filter(|other| **other == address).count() >= most {
            inner.turned_away += 1;
            return None;
        }
        while inner.logging_in.len() >= self.limits.logging_in_max.max(1) {
            let Some((_, oldest)) = inner.logging_in.pop_first() else { break };
            // Its thread sees the end of the connection.
            let _ = oldest.shutdown(Shutdown::Both);
            inner.turned_away += 1;
        }
        // Without a handle of its own it can't be sent away; the time to log in is bounded all the same.
        if let Ok(handle) = stream.try_clone() {
            inner.logging_in.insert(connection, handle);
        }
        inner.connected.insert(connection, address);
        Some(Place { gate: self, connection, is_logged_in: false, large: 0 })
    }

    /// A connection was turned away elsewhere.
    pub(crate) fn turned_away(&self) {
        self.lock().turned_away += 1;
    }

    pub(crate) fn counts(&self) -> Counts {
        let inner = self.lock();
        Counts {
            logged_in: inner.logged_in,
            logging_in: inner.logging_in.len(),
            turned_away: inner.turned_away,
        }
    }
}

impl Place<'_> {
    /// Goes inside; `false`: there is no room.
    pub(crate) fn log_in(&mut self) -> bool {
        let mut inner = self.gate.lock();
        inner.logging_in.remove(&self.connection);
        if self.is_logged_in || inner.logged_in >= self.gate.limits.connections_max {
            inner.turned_away += 1;
            return false;
        }
        inner.logged_in += 1;
        self.is_logged_in = true;
        true
    }

    /// Whether there is memory for a command of this size; it then belongs to the client until it leaves.
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

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut inner = self.gate.lock();
        inner.logging_in.remove(&self.connection);
        inner.connected.remove(&self.connection);
        inner.logged_in -= usize::from(self.is_logged_in);
        inner.large -= self.large;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Read;
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    /// Both ends of a connection.
    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (listener.accept().unwrap().0, client)
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
        let _first = gate.admit(1, &first, here).unwrap();
        let mut second_place = gate.admit(2, &second, here).unwrap();
        let mut third_place = gate.admit(3, &third, here).unwrap();
        assert_eq!(slow.read(&mut [0]).unwrap(), 0, "the first is sent away");
        assert_eq!(gate.counts(), Counts { logged_in: 0, logging_in: 2, turned_away: 1 });
        assert!(gate.admit(4, &third, here).is_none(), "three from one address");
        assert!(gate.admit(4, &third, "127.0.0.2".parse().unwrap()).is_some());
        assert!(second_place.log_in());
        assert!(!third_place.log_in(), "one is inside");
        drop(second_place);
        assert!(third_place.log_in());
        drop(third_place);
        assert_eq!(gate.counts().logged_in, 0);
    }
}
