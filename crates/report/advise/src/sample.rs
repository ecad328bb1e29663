//! Draws a sample of transactions, only the beginnings of large ones, in one pass over a log.
//!
//! Every transaction gets a number from the seed and its GTID event, and those with the lowest numbers of their class of
//! size are kept: the result is the same for any number of workers. The bytes of the kept ones go to a temporary file.
//! Every large transaction is compressed at a fast level. Its sizes there, of the beginning and of the whole, say what
//! share of the whole the beginning stands for.

use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use binlogz_flow::measure::{MARK_EVERY, Measure};
use binlogz_payload::{
    CompressionLevel, Compressor, Error, ExtractedTransaction, Ineligible, Spool, TransactionSize,
};
use binlogz_stats::TableName;
use binlogz_stats::size_class::{CLASSES, class_of};
use parking_lot::Mutex;

use crate::figures::AdviceFigures;
use crate::large::LARGE;
use crate::random::mixed;
use crate::strata::bucket;
use crate::table_walk::TableWalk;
use crate::{Commits, MeterPart};

/// Bytes of a large transaction that are kept.
pub(crate) const BEGINNING: u64 = 24 * MARK_EVERY;

/// The level at which large transactions are compressed whole.
pub(crate) const FAST: CompressionLevel = CompressionLevel::DEFAULT;

/// Transactions kept of a class: each takes some 300 bytes of memory.
const KEPT_MAX: usize = 8000;

/// State shared by all workers.
#[derive(Debug)]
pub struct Sampler {
    seed: u64,
    /// Bytes to keep of a class.
    class_bytes: u64,
    store: Mutex<SampleStore>,
}

/// The transactions that are kept.
#[derive(Debug)]
struct SampleStore {
    classes: [KeptClass; CLASSES],
    spool: Spool,
}

/// The transactions that were drawn, in the order in which they are measured.
#[derive(Debug)]
pub struct DrawnSample {
    pub(crate) seed: u64,
    pub(crate) classes: [Vec<SampleUnit>; CLASSES],
    pub(crate) spool: Spool,
}

/// The transactions of a class of size that are kept.
#[derive(Debug)]
struct KeptClass {
    /// The one with the highest number on top.
    units: BinaryHeap<SampleUnit>,
    bytes: u64,
    /// Numbers from here on are no longer kept.
    limit: u64,
}

/// A transaction, or the beginning of a large one.
#[derive(Debug, Clone)]
pub(crate) struct SampleUnit {
    /// The unit's random number, which decides whether it is in the sample.
    number: u64,
    log: u64,
    /// The unit's stratum in its class.
    pub(crate) stratum: usize,
    /// Where its bytes are in the spool.
    pub(crate) bytes: Vec<Range<u64>>,
    /// Bytes of the transaction in the log, and its size once compressed.
    pub(crate) plain: u64,
    pub(crate) becomes: TransactionSize,
    /// Set for a large transaction.
    pub(crate) large: Option<LargeSample>,
}

/// A large transaction, as far as it is known.
#[derive(Debug, Clone, Default)]
pub(crate) struct LargeSample {
    /// Bytes that the compressor gets.
    pub(crate) inner: u64,
    /// The fast level's output size: up to each mark of its beginning, and in total.
    pub(crate) marks: Vec<u64>,
    pub(crate) fast: u64,
}

impl SampleUnit {
    pub(crate) fn size(&self) -> u64 {
        self.bytes.iter().map(|range| range.end - range.start).sum()
    }
}

impl PartialEq for SampleUnit {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for SampleUnit {}

impl PartialOrd for SampleUnit {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SampleUnit {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.number.cmp(&other.number)
    }
}

impl Sampler {
    /// An empty sampler; keeps at most `class_bytes` bytes of each class of size.
    pub fn new(seed: u64, class_bytes: u64) -> Self {
        let kept = || KeptClass { units: BinaryHeap::new(), bytes: 0, limit: u64::MAX };
        let store = SampleStore { classes: std::array::from_fn(|_| kept()), spool: Spool::on_disk() };
        Sampler { seed, class_bytes, store: Mutex::new(store) }
    }

    /// Drops the kept transactions of a log.
    pub fn forget(&self, log: u64) {
        for kept in &mut self.store.lock().classes {
            kept.units.retain(|unit| unit.log != log);
        }
    }

    /// What was drawn, once all logs were read.
    pub fn into_drawn(self) -> DrawnSample {
        let SampleStore { classes, spool } = self.store.into_inner();
        DrawnSample { seed: self.seed, classes: classes.map(|kept| kept.units.into_sorted_vec()), spool }
    }

    /// The number of the transaction with this GTID event: seed and event, mixed.
    fn number(&self, log: u64, gtid_event: &[u8]) -> u64 {
        let (eights, rest) = gtid_event.as_chunks();
        let mut last = [0; 8];
        rest.iter().zip(&mut last).for_each(|(byte, place)| *place = *byte);
        let parts = eights.iter().chain([&last]).map(|eight| u64::from_le_bytes(*eight));
        [log].into_iter().chain(parts).fold(mixed(self.seed), |number, part| mixed(number ^ part))
    }

    fn is_kept(&self, class: usize, number: u64) -> bool {
        self.store.lock().classes.get(class).is_some_and(|kept| number < kept.limit)
    }

    /// Keeps bytes of a unit.
    fn write(&self, bytes: &[u8], unit: &mut SampleUnit) -> Result<(), Error> {
        let spool = &mut self.store.lock().spool;
        let start = spool.size();
        spool.append(bytes)?;
        match unit.bytes.last_mut() {
            Some(last) if last.end == start => last.end += bytes.len() as u64,
            _ => unit.bytes.push(start..start + bytes.len() as u64),
        }
        Ok(())
    }

    fn keep(&self, class: usize, unit: SampleUnit) {
        if let Some(kept) = self.store.lock().classes.get_mut(class).filter(|kept| unit.number < kept.limit) {
            kept.bytes += unit.size();
            kept.units.push(unit);
            while kept.bytes > self.class_bytes || kept.units.len() > KEPT_MAX {
                let Some(dropped) = kept.units.pop() else { break };
                kept.bytes -= dropped.size();
                kept.limit = dropped.number;
            }
        }
    }
}

/// Counts transactions and draws the sample; each worker has one.
#[derive(Debug)]
pub struct SampleMeter {
    sampler: Arc<Sampler>,
    log: u64,
    walk: TableWalk,
    fast: Compressor,
    figures: AdviceFigures,
    commits: Arc<Commits>,
}

impl SampleMeter {
    /// A worker for the log with this number; some transactions are kept for
    /// [`crate::Advice::measure_commits`].
    ///
    /// # Errors
    ///
    /// No memory for a context.
    pub fn new(sampler: &Arc<Sampler>, log: u64, commits: &Arc<Commits>) -> Result<Self, Error> {
        Ok(SampleMeter {
            sampler: Arc::clone(sampler),
            log,
            walk: TableWalk::default(),
            fast: Compressor::new(FAST)?,
            figures: AdviceFigures::default(),
            commits: Arc::clone(commits),
        })
    }

    /// A unit of the sample, if the transaction was drawn.
    fn unit(&self, transaction: &ExtractedTransaction<'_>, class: usize, number: u64) -> Option<SampleUnit> {
        self.sampler.is_kept(class, number).then(|| SampleUnit {
            number,
            log: self.log,
            stratum: 0,
            bytes: Vec::new(),
            plain: transaction.plain_size(),
            becomes: transaction.size(),
            large: None,
        })
    }

    /// Reads all bytes of a transaction: finds the tables it changes, its known size and, if it was drawn,
    /// the unit of the sample.
    fn small(
        &mut self,
        transaction: &mut ExtractedTransaction<'_>,
        class: usize,
    ) -> Result<ObservedTransaction, Error> {
        let number = self.sampler.number(self.log, transaction.gtid_event());
        let mut unit = self.unit(transaction, class, number);
        if let Some(events) = transaction.held() {
            self.commits.offer(class, number, events);
        }
        transaction.read(&mut |events| {
            self.walk.push(events);
            unit.as_mut().map_or(Ok(()), |unit| self.sampler.write(events, unit))
        })?;
        Ok(ObservedTransaction { tables: self.walk.finish(), x: transaction.plain_size(), unit })
    }

    /// Takes a large transaction: all of it is compressed at the fast level, and its beginning may become a unit of the
    /// sample.
    fn large(
        &mut self,
        transaction: &mut ExtractedTransaction<'_>,
        class: usize,
    ) -> Result<ObservedTransaction, Error> {
        let number = self.sampler.number(self.log, transaction.gtid_event());
        let mut unit = self.unit(transaction, class, number);
        let inner = transaction.inner_size();
        let mut large = LargeSample { inner, ..LargeSample::default() };
        let mut at = 0;
        self.fast.begin(inner)?;
        transaction.read(&mut |mut events| {
            self.walk.push(events);
            while !events.is_empty() {
                let room = usize::try_from(MARK_EVERY - at % MARK_EVERY).unwrap_or(usize::MAX);
                let (front, rest) = events.split_at(room.min(events.len()));
                events = rest;
                self.fast.write(front, &mut std::io::sink())?;
                if let Some(unit) = unit.as_mut().filter(|_| at < BEGINNING) {
                    self.sampler.write(front, unit)?;
                }
                at += front.len() as u64;
                if at <= BEGINNING && at.is_multiple_of(MARK_EVERY) {
                    large.marks.push(self.fast.produced());
                }
            }
            Ok(())
        })?;
        large.fast = self.fast.finish(&mut std::io::sink())?;
        let x = large.fast;
        Ok(ObservedTransaction {
            tables: self.walk.finish(),
            x,
            unit: unit.map(|unit| SampleUnit { large: Some(large), ..unit }),
        })
    }
}

/// A transaction as it was seen.
struct ObservedTransaction {
    tables: Vec<(Arc<TableName>, u64)>,
    x: u64,
    unit: Option<SampleUnit>,
}

impl Measure for SampleMeter {
    type Part = MeterPart;

    fn transaction(&mut self, transaction: &mut ExtractedTransaction<'_>) -> Result<(), Error> {
        if !self.figures.count(transaction)? {
            return Ok(());
        }
        let inner = transaction.inner_size();
        let class = class_of(inner);
        let ObservedTransaction { tables, x, unit } = match inner >= LARGE {
            true => self.large(transaction, class)?,
            false => self.small(transaction, class)?,
        };
        let stratum = bucket(&tables);
        self.figures.count_stratum(class, stratum, x);
        if let Some(unit) = unit {
            self.sampler.keep(class, SampleUnit { stratum, ..unit });
        }
        for (name, bytes) in tables {
            self.figures.tables.count(&name, bytes, class, inner, std::iter::empty());
        }
        Ok(())
    }

    fn without_gtid(&mut self) {
        self.figures.count_left(Ineligible::NoGtid, 0);
    }

    fn take(&mut self) -> MeterPart {
        MeterPart(std::mem::take(&mut self.figures))
    }
}
