//! Limits on bytes a second: token buckets, one for each source and one that all sources share. Both must allow what is taken.
//!
//! ```text
//! taken     all that was asked for; a ticket is its value after the request
//! allowed   grows by the rate, up to taken and a burst
//! a ticket may go once allowed has reached it: first come, first served
//! ```
//!
//! A request that is larger than a burst goes too: it is taken at once and paid for afterwards. The rate can change while
//! somebody waits. `Bucket` has no clock; `RateLimit` sleeps.

use parking_lot::Mutex;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

/// How much may pass at once after a pause: the bytes of this time at the rate.
const BURST: Duration = Duration::from_millis(100);
/// A sleep is no longer, so that another rate and the end of a source are noticed.
const SLICE: Duration = Duration::from_millis(100);
/// A rate counts as the reason of a lag for this long after a wait.
const RECENT: Duration = Duration::from_secs(5);

/// Bytes a second at most; `None`: any number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ByteRates {
    /// For events from the source.
    pub receive: Option<NonZeroU64>,
    /// For bytes of files that are read for the archive.
    pub archive: Option<NonZeroU64>,
}

impl ByteRates {
    /// The lowest rate. With less a server might give up before one of its writes is taken (`net_write_timeout` is 60 s).
    pub const MIN: u64 = 16 << 10;
}

/// A limit and its effect.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct RateStatus {
    /// Bytes a second at most.
    pub limit: Option<u64>,
    /// Bytes a second of all sources together at most.
    pub shared_limit: Option<u64>,
    /// How long this source has waited because of either since the start.
    pub waited_seconds: f64,
    /// Whether it waited just now.
    pub is_waiting: bool,
}

impl RateStatus {
    /// The limit that is reached first if no other source takes anything.
    pub fn lowest(&self) -> Option<u64> {
        self.limit.into_iter().chain(self.shared_limit).min()
    }
}

/// The limits of a source.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct RatesStatus {
    /// Receiving.
    pub receive: RateStatus,
    /// Archiving.
    pub archive: RateStatus,
}

/// A token bucket: how many bytes were asked for, and how many the rate has allowed so far. It has no clock of its own.
#[derive(Debug, Default)]
struct Bucket {
    per_second: Option<NonZeroU64>,
    taken: u64,
    allowed: f64,
    /// When `allowed` was last right.
    at: Option<Instant>,
}

impl Bucket {
    fn advance(&mut self, now: Instant) {
        let passed = self.at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        self.at = Some(now.max(self.at.unwrap_or(now)));
        let taken = self.taken as f64;
        self.allowed = match self.per_second {
            None => taken,
            Some(rate) => {
                let rate = rate.get() as f64;
                (self.allowed + rate * passed.as_secs_f64()).min(taken + rate * BURST.as_secs_f64())
            }
        };
    }

    fn set(&mut self, per_second: Option<NonZeroU64>, now: Instant) {
        self.advance(now);
        self.per_second = per_second;
    }

    /// Takes this many bytes; the ticket that may have to wait.
    fn take(&mut self, count: u64, now: Instant) -> u64 {
        self.advance(now);
        self.taken += count;
        self.taken
    }

    /// How long the ticket must still wait.
    fn wait(&mut self, ticket: u64, now: Instant) -> Duration {
        self.advance(now);
        let Some(rate) = self.per_second else { return Duration::ZERO };
        let missing = ticket as f64 - self.allowed;
        // Less than a byte is what rounding leaves.
        if missing < 1.0 { Duration::ZERO } else { Duration::from_secs_f64(missing / rate.get() as f64) }
    }
}

/// A limit that several threads may share.
#[derive(Debug, Default)]
pub(crate) struct RateLimit {
    /// As in the bucket; 0: none. Read without the lock.
    limit: AtomicU64,
    bucket: Mutex<Bucket>,
}

impl RateLimit {
    pub(crate) fn set(&self, per_second: Option<NonZeroU64>) {
        self.bucket.lock().set(per_second, Instant::now());
        self.limit.store(per_second.map_or(0, NonZeroU64::get), Ordering::Relaxed);
    }

    fn limit(&self) -> Option<u64> {
        Some(self.limit.load(Ordering::Relaxed)).filter(|limit| *limit > 0)
    }

    /// The ticket for this many bytes; `None`: there is no limit.
    fn take(&self, count: u64) -> Option<u64> {
        self.limit().map(|_| self.bucket.lock().take(count, Instant::now()))
    }

    fn wait(&self, ticket: Option<u64>) -> Duration {
        ticket.map_or(Duration::ZERO, |ticket| self.bucket.lock().wait(ticket, Instant::now()))
    }
}

/// The two limits that hold for one kind of work of a source.
#[derive(Debug)]
pub(crate) struct Throttle {
    pub(crate) own: RateLimit,
    shared: Arc<RateLimit>,
    waits: Mutex<Waits>,
}

#[derive(Debug, Default)]
struct Waits {
    all: Duration,
    last: Option<Instant>,
}

/// Bytes that were taken, and may have to wait.
#[derive(Debug)]
pub(crate) struct Tickets {
    own: Option<u64>,
    shared: Option<u64>,
}

impl Throttle {
    pub(crate) fn new(own: Option<NonZeroU64>, shared: &Arc<RateLimit>) -> Self {
        let throttle =
            Throttle { own: RateLimit::default(), shared: Arc::clone(shared), waits: Mutex::default() };
        throttle.own.set(own);
        throttle
    }

    /// Takes this many bytes; `None` if nobody need wait.
    pub(crate) fn take(&self, count: usize) -> Option<Tickets> {
        let count = count as u64;
        let tickets = Tickets { own: self.own.take(count), shared: self.shared.take(count) };
        (!self.left(&tickets).is_zero()).then_some(tickets)
    }

    fn left(&self, tickets: &Tickets) -> Duration {
        self.own.wait(tickets.own).max(self.shared.wait(tickets.shared))
    }

    /// Waits by `sleep`, which returns whether to go on.
    pub(crate) fn wait(&self, tickets: &Tickets, sleep: impl Fn(Duration) -> bool) {
        let mut goes_on = true;
        while goes_on {
            let left = self.left(tickets);
            if left.is_zero() {
                return;
            }
            let began = Instant::now();
            goes_on = sleep(left.min(SLICE));
            let now = Instant::now();
            let mut waits = self.waits.lock();
            waits.all += now.saturating_duration_since(began);
            waits.last = Some(now);
        }
    }

    pub(crate) fn status(&self) -> RateStatus {
        let waits = self.waits.lock();
        RateStatus {
            limit: self.own.limit(),
            shared_limit: self.shared.limit(),
            waited_seconds: waits.all.as_secs_f64(),
            is_waiting: waits.last.is_some_and(|last| last.elapsed() < RECENT),
        }
    }
}

/// The limits of a source.
#[derive(Debug)]
pub(crate) struct Throttles {
    pub(crate) receive: Throttle,
    pub(crate) archive: Throttle,
}

impl Throttles {
    pub(crate) fn new(rates: ByteRates, shared: &SharedRates) -> Arc<Throttles> {
        Arc::new(Throttles {
            receive: Throttle::new(rates.receive, &shared.receive),
            archive: Throttle::new(rates.archive, &shared.archive),
        })
    }

    pub(crate) fn set(&self, rates: ByteRates) {
        self.receive.own.set(rates.receive);
        self.archive.own.set(rates.archive);
    }

    pub(crate) fn status(&self) -> RatesStatus {
        RatesStatus { receive: self.receive.status(), archive: self.archive.status() }
    }
}

/// The limits of all sources together.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedRates {
    receive: Arc<RateLimit>,
    archive: Arc<RateLimit>,
}

impl SharedRates {
    pub(crate) fn set(&self, rates: ByteRates) {
        self.receive.set(rates.receive);
        self.archive.set(rates.archive);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(per_second: u64) -> Option<NonZeroU64> {
        NonZeroU64::new(per_second)
    }

    /// A bucket and its clock.
    struct Simulated {
        bucket: Bucket,
        now: Instant,
    }

    impl Simulated {
        fn new(per_second: u64) -> Self {
            let mut bucket = Bucket::default();
            let now = Instant::now();
            bucket.set(rate(per_second), now);
            Simulated { bucket, now }
        }

        fn after(&mut self, ms: u64) {
            self.now += Duration::from_millis(ms);
        }

        fn take(&mut self, count: u64) -> u64 {
            self.bucket.take(count, self.now)
        }

        fn wait_ms(&mut self, ticket: u64) -> u128 {
            self.bucket.wait(ticket, self.now).as_millis()
        }
    }

    #[test]
    fn an_hour_of_pieces_passes_at_the_rate_and_no_faster() {
        let mut bucket = Simulated::new(1_000_000);
        let begun = bucket.now;
        let mut passed = 0;
        // Small pieces, and now and then one that is larger than a burst.
        for at in 0.. {
            let size = if at % 50 == 0 { 3_000_000 } else { 1_000 + at % 7_000 };
            let ticket = bucket.take(size);
            let wait = bucket.bucket.wait(ticket, bucket.now);
            bucket.now += wait;
            passed += size;
            if bucket.now - begun > Duration::from_secs(3600) {
                break;
            }
        }
        let seconds = (bucket.now - begun).as_secs_f64();
        let per_second = passed as f64 / seconds;
        assert!((999_000.0..=1_000_100.0).contains(&per_second), "{per_second}");
    }

    #[test]
    fn a_pause_allows_a_burst_and_no_more() {
        let mut bucket = Simulated::new(1000);
        bucket.after(60_000);
        // A tenth of a second's bytes, whatever the pause was.
        let ticket = bucket.take(100);
        assert_eq!(bucket.wait_ms(ticket), 0);
        let ticket = bucket.take(100);
        assert_eq!(bucket.wait_ms(ticket), 100);
        bucket.after(99);
        assert_eq!(bucket.wait_ms(ticket), 1);
        bucket.after(1);
        assert_eq!(bucket.wait_ms(ticket), 0);
        let mut bucket = Simulated::new(1000);
        bucket.after(50);
        let ticket = bucket.take(100);
        assert_eq!(bucket.wait_ms(ticket), 50);
    }

    #[test]
    fn those_that_share_a_rate_go_in_the_order_of_asking() {
        let mut bucket = Simulated::new(1000);
        let large = bucket.take(10_000);
        let small = bucket.take(10);
        assert_eq!((bucket.wait_ms(large), bucket.wait_ms(small)), (10_000, 10_010));
        bucket.after(10_000);
        assert_eq!((bucket.wait_ms(large), bucket.wait_ms(small)), (0, 10));
    }

    #[test]
    fn another_rate_counts_at_once_for_those_that_wait() {
        let mut bucket = Simulated::new(1000);
        let ticket = bucket.take(10_000);
        bucket.after(1_000);
        assert_eq!(bucket.wait_ms(ticket), 9_000);
        bucket.bucket.set(rate(9_000), bucket.now);
        assert_eq!(bucket.wait_ms(ticket), 1_000);
        bucket.bucket.set(None, bucket.now);
        assert_eq!(bucket.wait_ms(ticket), 0);
        // Bytes that passed without a limit are no debt.
        bucket.take(1 << 40);
        bucket.bucket.set(rate(1000), bucket.now);
        let ticket = bucket.take(1000);
        assert_eq!(bucket.wait_ms(ticket), 1_000);
    }

    #[test]
    fn a_source_waits_for_its_own_limit_and_the_shared_one() {
        let shared = SharedRates::default();
        let [one, two] = [rate(1 << 30), None].map(|receive| {
            let rates = ByteRates { receive, archive: None };
            Throttles::new(rates, &shared)
        });
        assert!(one.receive.take(1000).is_none() && two.receive.take(1 << 40).is_none());
        shared.set(ByteRates { receive: rate(1000), archive: None });
        let first = one.receive.take(2000).unwrap();
        let second = two.receive.take(2000).unwrap();
        let slept = std::cell::Cell::new(Duration::ZERO);
        // A sleep that ends at once, and says to go on twice.
        one.receive.wait(&first, |time| {
            slept.set(slept.get() + time);
            slept.get() < SLICE * 2
        });
        assert_eq!(slept.get(), SLICE * 2);
        let first = one.receive.left(&first);
        let second = two.receive.left(&second);
        assert!(second - first > Duration::from_millis(1900), "{first:?} {second:?}");
        let status = one.status();
        assert_eq!((status.receive.limit, status.receive.shared_limit), (Some(1 << 30), Some(1000)));
        assert!(
            status.receive.is_waiting
                && !two.status().receive.is_waiting
                && one.archive.take(1 << 40).is_none()
        );
        two.set(ByteRates { receive: rate(1), archive: rate(1) });
        assert!(two.archive.take(1 << 20).is_some());
    }
}
