//! How long logs are read: all of them where the budget has room for that, otherwise the beginning of each.
//!
//! ```text
//! begun ── turns, each a share by size ──> usual end ── all of them, if that fits ──> whole end ── their beginnings, if those fit ──> last end
//! ```
//!
//! A turn goes on after its end if all logs can be read before the whole end, at the rate so far; or if too little of this log was read
//! to tell what the rest is like, and that of all can be read before the last end. So a machine that is busy, and logs that are large, get
//! the answer for which there is time.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use binlogz_advise::BEGINNING_ENOUGH;

/// The share of a log that shows the rest, and some more: whole events are counted.
const SHOWN: f64 = 1.1 * BEGINNING_ENOUGH;

/// When reading ends, in this order.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadingEnds {
    /// Where the logs can't all be read.
    pub(super) usual: Instant,
    /// Where they can be read by then.
    pub(super) whole: Instant,
    /// In any case: without the beginning of each log there is no answer.
    pub(super) last: Instant,
}

/// The time for reading logs.
#[derive(Debug)]
pub(super) struct ReadingPace {
    begun: Instant,
    ends: ReadingEnds,
    /// Bytes that were read in earlier turns.
    read: u64,
    /// Of the logs that are still to come; `None` where nobody knows, as of a pipe.
    sizes: VecDeque<Option<u64>>,
}

/// The turn of a log.
#[derive(Debug)]
pub(super) struct ReadingTurn {
    begun: Instant,
    end: Instant,
    ends: ReadingEnds,
    read_before: u64,
    /// Bytes that were read of this log.
    read: AtomicU64,
    /// Bytes of this log, and of all later ones.
    sizes: Option<(u64, u64)>,
}

impl ReadingPace {
    /// Begins now.
    pub(super) fn new(ends: ReadingEnds, sizes: VecDeque<Option<u64>>) -> Self {
        ReadingPace { begun: Instant::now(), ends, read: 0, sizes }
    }

    /// The turn of the next log.
    pub(super) fn next_turn(&mut self) -> ReadingTurn {
        let now = Instant::now();
        let end = if now < self.ends.usual { self.ends.usual } else { self.ends.whole };
        let size = self.sizes.pop_front().flatten();
        let later: Option<u64> = self.sizes.iter().copied().sum();
        let sizes = size.zip(later);
        // Where a size isn't known, this one may take all of the time.
        let share = match sizes {
            Some((size, later)) if size + later > 0 => size as f64 / (size + later) as f64,
            Some(_) | None => 1.0,
        };
        ReadingTurn {
            begun: self.begun,
            end: now + end.saturating_duration_since(now).mul_f64(share),
            ends: self.ends,
            read_before: self.read,
            read: AtomicU64::new(0),
            sizes,
        }
    }

    /// Notes what was read in a turn.
    pub(super) fn add(&mut self, turn: &ReadingTurn) {
        self.read += turn.read.load(Ordering::Relaxed);
    }

    /// Seconds since it began.
    pub(super) fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }
}

impl ReadingTurn {
    /// Notes how many bytes of the log were read so far.
    pub(super) fn has_read(&self, bytes: u64) {
        self.read.store(bytes, Ordering::Relaxed);
    }

    /// Whether reading this log is to end.
    pub(super) fn is_over(&self) -> bool {
        self.is_over_at(Instant::now())
    }

    fn is_over_at(&self, now: Instant) -> bool {
        if now < self.end || now >= self.ends.last {
            return now >= self.ends.last;
        }
        // What is left of a pipe is worth it: it can't be read again.
        let Some((size, later)) = self.sizes else { return false };
        let read = self.read.load(Ordering::Relaxed);
        let rate = (self.read_before + read) as f64 / (now - self.begun).as_secs_f64().max(f64::MIN_POSITIVE);
        let possible_by = |end: Instant| rate * end.saturating_duration_since(now).as_secs_f64();
        let all = (size.saturating_sub(read) + later) as f64;
        let missing = SHOWN * size as f64 - read as f64;
        let beginnings = missing + SHOWN * later as f64;
        all > possible_by(self.ends.whole) && (missing <= 0.0 || beginnings > possible_by(self.ends.last))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MB: u64 = 1_000_000;

    fn pace(sizes: &[Option<u64>]) -> ReadingPace {
        let now = Instant::now();
        let [usual, whole, last] = [100, 150, 200].map(|seconds| now + Duration::from_secs(seconds));
        ReadingPace::new(ReadingEnds { usual, whole, last }, sizes.iter().copied().collect())
    }

    #[test]
    fn each_log_has_a_turn() {
        let turn = |sizes: &[Option<u64>]| {
            let mut pace = pace(sizes);
            let turn = pace.next_turn();
            turn.end.duration_since(pace.begun).as_secs_f64().round()
        };
        assert_eq!(turn(&[Some(10), Some(20), Some(70)]), 10.0);
        assert_eq!(turn(&[Some(70)]), 100.0);
        assert_eq!(turn(&[Some(10), None]), 100.0);
        assert_eq!(turn(&[Some(0)]), 100.0);
    }

    /// Whether the turn of a log is over so many seconds after the beginning, once so much of it was read.
    fn over(turn: &ReadingTurn, seconds: u64, read: u64) -> bool {
        turn.has_read(read);
        turn.is_over_at(turn.begun + Duration::from_secs(seconds))
    }

    #[test]
    fn all_is_read_where_that_fits() {
        let turn = pace(&[Some(1000 * MB), Some(1000 * MB)]).next_turn();
        // This file has 50 seconds. At 14 MB a second both are read after 143 seconds, at 13 they aren't after 150.
        assert!(!over(&turn, 49, 0) && !over(&turn, 50, 14 * 50 * MB) && over(&turn, 50, 13 * 50 * MB));
        // Later it is as it was.
        assert!(!over(&turn, 70, 14 * 70 * MB) && over(&turn, 200, 1000 * MB));
        let mut pace = pace(&[Some(1000 * MB), Some(1000 * MB)]);
        let first = pace.next_turn();
        first.has_read(1000 * MB);
        pace.add(&first);
        let second = pace.next_turn();
        assert_eq!(second.read_before, 1000 * MB);
        assert!(!over(&second, 110, 500 * MB) && over(&second, 110, 100 * MB));
    }

    #[test]
    fn the_beginning_of_each_log_is_read_if_it_can_be() {
        // 30 GB; 2.2 percent of each log are needed, 22 MB.
        let turn = pace(&[Some(1000 * MB); 30]).next_turn();
        assert!(over(&turn, 4, 30 * MB) && !over(&turn, 4, 20 * MB));
        // At 3.4 MB a second the beginnings are there after 194 seconds, at 3 they aren't after 200.
        assert!(!over(&turn, 5, 17 * MB) && over(&turn, 5, 15 * MB));
        // Nothing was read yet.
        assert!(over(&turn, 4, 0));
    }

    #[test]
    fn a_pipe_is_read_as_long_as_there_is_time() {
        let turn = pace(&[None, Some(10)]).next_turn();
        assert!(!over(&turn, 190, MB) && over(&turn, 200, MB));
    }
}
