//! Limits how fast passwords can be guessed. A login waits before its password is compared, so how long the answer takes
//! tells nothing, and a client that doesn't wait for the answer gains no time.
//!
//! ```text
//! of an address             some are free, then one comparison a second
//! of an account, from       the same, for all addresses that have not logged in to it together; so many machines guess no
//! wherever                  faster, and those who know the password are not kept out by them
//! ```
//!
//! The log names a denied address once, and once a minute the number of denials.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Between two comparisons, after the free ones.
const PAUSE: Duration = Duration::from_secs(1);
/// Logins before that: people mistype, and tools open several connections at once.
const FREE: u32 = 10;
/// Denials that were so long ago are forgotten.
const FORGOTTEN: Duration = Duration::from_secs(60);
/// A login that would have to wait for longer is refused.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Addresses and accounts that are known; the one that was quiet for longest is forgotten for another.
const KNOWN_MAX: usize = 4096;
/// How often denials of an address are logged.
const TOLD: Duration = Duration::from_secs(60);

/// The recent attempts to log in.
#[derive(Default)]
pub struct Logins {
    known: Mutex<LoginQueues>,
}

impl std::fmt::Debug for Logins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Logins").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct LoginQueues {
    queues: HashMap<Guesser, Queue>,
    /// When an account was last logged in to from an address.
    good: HashMap<(String, IpAddr), Instant>,
}

/// The client or clients that share one limit of guesses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Guesser {
    Address(IpAddr),
    /// All clients that never logged in to this account before.
    Account(String),
}

/// Logins that wait for one another.
struct Queue {
    /// Logins that were denied, or aren't compared yet: the next login doesn't wait for their results.
    denied: u32,
    /// When the next may be compared.
    next: Instant,
    used: Instant,
    told: Option<Instant>,
    /// Denials since the last line about them.
    untold: u32,
}

/// A network of IPv6 has more addresses than can be known: it's as one.
fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 => v4,
    }
}

impl Logins {
    /// When a login may be compared; `None`: too many wait.
    pub fn turn(&self, user: &str, address: IpAddr, now: Instant) -> Option<Instant> {
        let address = source(address);
        let mut known = self.known.lock();
        let is_good = known.good.contains_key(&(user.to_owned(), address));
        let account = (!is_good).then(|| Guesser::Account(user.to_owned()));
        let guessers: Vec<_> = std::iter::once(Guesser::Address(address)).chain(account).collect();
        let at = guessers.iter().map(|guesser| known.queue(guesser, now).next_turn(now)).max()?;
        if at > now + WAIT_MAX {
            return None;
        }
        for guesser in &guessers {
            let queue = known.queue(guesser, now);
            queue.used = now;
            if queue.denied >= FREE {
                queue.next = at + PAUSE;
            }
            queue.denied = queue.denied.saturating_add(1);
        }
        Some(at)
    }

    /// Notes a login.
    pub fn accepted(&self, user: &str, address: IpAddr, now: Instant) {
        let place = source(address);
        let mut known = self.known.lock();
        let key = (user.to_owned(), place);
        let account = (!known.good.contains_key(&key)).then(|| Guesser::Account(user.to_owned()));
        for guesser in std::iter::once(Guesser::Address(place)).chain(account) {
            let queue = known.queue(&guesser, now);
            queue.denied = queue.denied.saturating_sub(1);
        }
        if !known.good.contains_key(&key) {
            forget_oldest(&mut known.good, |used| *used);
        }
        known.good.insert(key, now);
    }

    /// Notes a denial; returns a line about it, unless there was one a short time ago.
    pub fn denied(&self, address: IpAddr, now: Instant) -> Option<String> {
        let mut known = self.known.lock();
        let queue = known.queue(&Guesser::Address(source(address)), now);
        if queue.told.is_some_and(|told| now < told + TOLD) {
            queue.untold += 1;
            return None;
        }
        queue.told = Some(now);
        Some(match std::mem::take(&mut queue.untold) {
            0 => format!("{address}: login denied"),
            more => format!("{address}: login denied, and {more} more since that was told last"),
        })
    }
}

impl LoginQueues {
    fn queue(&mut self, guesser: &Guesser, now: Instant) -> &mut Queue {
        if !self.queues.contains_key(guesser) {
            forget_oldest(&mut self.queues, |queue| queue.used);
        }
        let queue = self.queues.entry(guesser.clone()).or_insert(Queue {
            denied: 0,
            next: now,
            used: now,
            told: None,
            untold: 0,
        });
        if now > queue.used + FORGOTTEN && now > queue.next {
            queue.denied = 0;
        }
        queue
    }
}

impl Queue {
    fn next_turn(&self, now: Instant) -> Instant {
        if self.denied < FREE { now } else { self.next.max(now) }
    }
}

/// Makes room for one more.
fn forget_oldest<K: Clone + Eq + std::hash::Hash, V>(
    known: &mut HashMap<K, V>,
    used: impl Fn(&V) -> Instant,
) {
    if known.len() < KNOWN_MAX {
        return;
    }
    let oldest = known.iter().min_by_key(|(_, value)| used(value)).map(|(key, _)| key.clone());
    if let Some(oldest) = oldest {
        known.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const HOME: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

    /// Guesses of many addresses, all at once; how many are compared within this many seconds.
    fn compared(
        logins: &Logins,
        addresses: &[IpAddr],
        user: impl Fn(usize) -> String,
        seconds: u64,
    ) -> usize {
        let begun = Instant::now();
        let mut count = 0;
        let mut turns: Vec<Instant> = Vec::new();
        for millisecond in (0..seconds * 1000).step_by(5) {
            let now = begun + Duration::from_millis(millisecond);
            for address in addresses {
                count += 1;
                if let Some(at) = logins.turn(&user(count), *address, now) {
                    turns.push(at);
                }
                logins.denied(*address, now);
            }
        }
        turns.iter().filter(|at| **at < begun + Duration::from_secs(seconds)).count()
    }

    #[test]
    fn an_address_guesses_once_a_second_whatever_the_account() {
        let logins = Logins::default();
        let guesses = compared(&logins, &[HERE], |count| format!("user{count}"), 60);
        assert!(guesses <= 60 + FREE as usize + 1, "{guesses}");
    }

    #[test]
    fn many_addresses_guess_one_account_no_faster_and_its_owner_logs_in() {
        let logins = Logins::default();
        logins.accepted("reader", HOME, Instant::now());
        let addresses: Vec<IpAddr> = (0..200).map(|last| IpAddr::from([10, 0, 1, last])).collect();
        let guesses = compared(&logins, &addresses, |_| "reader".to_owned(), 20);
        assert!(guesses <= 20 + FREE as usize + 1, "{guesses}");
        let now = Instant::now();
        assert_eq!(logins.turn("reader", HOME, now), Some(now));
    }

    #[test]
    fn a_burst_of_denials_is_one_line_and_their_number_comes_later() {
        let logins = Logins::default();
        let begun = Instant::now();
        let lines: Vec<_> = (0..1000).filter_map(|_| logins.denied(HERE, begun)).collect();
        assert_eq!(lines, ["10.0.0.1: login denied"]);
        let line = logins.denied(HERE, begun + TOLD).unwrap();
        assert_eq!(line, "10.0.0.1: login denied, and 999 more since that was told last");
    }

    #[test]
    fn what_is_known_of_guessers_is_bounded() {
        let logins = Logins::default();
        for number in 0..KNOWN_MAX as u32 + 100 {
            logins.turn(&format!("user{number}"), IpAddr::from(Ipv4Addr::from_bits(number)), Instant::now());
            logins.accepted(&format!("user{number}"), HERE, Instant::now());
        }
        let known = logins.known.lock();
        assert!(known.queues.len() <= KNOWN_MAX && known.good.len() <= KNOWN_MAX);
    }
}
