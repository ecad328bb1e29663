//! Compresses every transaction at every level.

use std::sync::Arc;

use binlogz_flow::measure::{CompressionMeter, CpuClock, LevelCost, Measure};
use binlogz_payload::{CompressionLevel, Error, ExtractedTransaction, Ineligible, ServerGeneration};
use binlogz_stats::size_class::class_of;

use crate::figures::{AdviceFigures, CompressedFigures};
use crate::random::mixed;
use crate::table_walk::TableWalk;
use crate::{Commits, MeterPart};

/// One transaction in this many is expanded again, to measure the time that takes.
const EXPANDED: u64 = 16;

/// How seldom small transactions are timed: after the first ones, one in this many is timed and represents the others.
/// Reading the clock twice for each took a seventh of the run.
const TIMED: u64 = 4;
/// The number of transactions that a worker times completely, and the size in bytes from which each is timed.
const TIMED_FIRST: u64 = 1000;
const TIMED_SIZE: u64 = 64 << 10;

/// Measures transactions; each worker has one.
#[derive(Debug)]
pub struct ExactMeter {
    meter: CompressionMeter,
    walk: TableWalk,
    compressed: Vec<CompressedFigures>,
    figures: AdviceFigures,
    /// Transactions so far.
    seen: u64,
    clock: CpuClock,
    commits: Arc<Commits>,
}

impl ExactMeter {
    /// A meter for these levels of servers of this generation; some transactions are kept for
    /// [`crate::Advice::measure_commits`].
    ///
    /// # Errors
    ///
    /// No memory for a context; a helper program that doesn't start.
    pub fn new(
        levels: &[CompressionLevel],
        generation: ServerGeneration,
        commits: &Arc<Commits>,
    ) -> Result<Self, Error> {
        Ok(ExactMeter {
            meter: CompressionMeter::exact(levels, generation)?,
            walk: TableWalk::default(),
            compressed: Vec::new(),
            figures: AdviceFigures::default(),
            seen: 0,
            clock: CpuClock::default(),
            commits: Arc::clone(commits),
        })
    }
}

impl Measure for ExactMeter {
    type Part = MeterPart;

    fn transaction(&mut self, transaction: &mut ExtractedTransaction<'_>) -> Result<(), Error> {
        if !self.figures.count(transaction)? {
            return Ok(());
        }
        self.seen += 1;
        let mut stands_for = 1;
        let costs = match transaction.held() {
            Some(events) => {
                self.walk.push(events);
                self.commits.offer(class_of(transaction.inner_size()), mixed(transaction.offset), events);
                stands_for = timed_for(self.seen, transaction.offset, transaction.inner_size());
                let meter = &mut self.meter;
                let expand = expanded_too(transaction.offset);
                match stands_for {
                    0 => meter.held(events, false, expand)?,
                    _ => self.figures.spent.time(self.clock, || meter.held(events, true, expand))?,
                }
            }
            None => {
                let walk = &mut self.walk;
                let meter = &mut self.meter;
                self.figures.spent.time(self.clock, || {
                    meter.read(transaction.inner_size(), |sink| {
                        transaction.read(&mut |events| {
                            walk.push(events);
                            sink(events)
                        })
                    })
                })?
            }
        };
        self.compressed.clear();
        for LevelCost { payload_size: payload, compress, expand } in costs.iter().copied() {
            // A transaction too large for an event stays as it is.
            let size = transaction.compressed_size(payload)?.unwrap_or_else(|| transaction.plain_size());
            self.compressed.push(CompressedFigures { size, payload, compress, stands_for, expand });
        }
        let tables = self.walk.finish();
        self.figures.count_levels(transaction, &self.compressed, &tables)
    }

    fn without_gtid(&mut self) {
        self.figures.count_left(Ineligible::NoGtid, 0);
    }

    fn take(&mut self) -> MeterPart {
        MeterPart(std::mem::take(&mut self.figures))
    }
}

/// Whether the transaction at this offset is expanded again: the same ones in each run.
fn expanded_too(offset: u64) -> bool {
    scattered(offset).is_multiple_of(EXPANDED)
}

/// How many transactions the time of a worker's next one represents; 0 if it is not timed.
fn timed_for(seen: u64, offset: u64, size: u64) -> u64 {
    match (seen <= TIMED_FIRST || size >= TIMED_SIZE, (scattered(offset) >> 8).is_multiple_of(TIMED)) {
        (true, _) => 1,
        (false, true) => TIMED,
        (false, false) => 0,
    }
}

/// An offset as a pseudo-random number.
fn scattered(offset: u64) -> u64 {
    offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_stand_for_as_many_transactions_as_there_are() {
        let count = 100_000;
        let size = 300;
        let sum: u64 = (1..=count).map(|seen| timed_for(seen, seen * (size + 79), size)).sum();
        assert!(sum.abs_diff(count) < count / 50, "{sum}");
        assert!((1..=TIMED_FIRST).all(|seen| timed_for(seen, seen * 379, size) == 1));
        assert!((1..=count).all(|seen| timed_for(seen, seen * TIMED_SIZE, TIMED_SIZE) == 1));
        let timed = (1..=count).filter(|seen| timed_for(*seen, seen * (size + 79), size) > 0).count();
        assert!(timed < count as usize * 3 / 10, "{timed}");
    }
}
