//! Compresses the sample, as much of it as the time allows.

use std::cell::Cell;
use std::io::Read;
use std::time::Instant;

use binlogz_flow::measure::{Cost, MARK_EVERY, Meter};
use binlogz_flow::ordered;
use binlogz_payload::{CompressionLevel, Error, Spool};

use super::Advice;
use super::estimate::{Estimator, Measured};
use super::sample::{Large, Sampler, Store, Unit};
use super::table_walk::TableWalk;

/// Enough: a half-width of this part of the result at every level.
const HALF_WIDTH_ENOUGH: f64 = 0.0075;

/// Before this many units there is no telling.
const UNITS_MIN: u64 = 200;

/// Units of each class that come first, before the classes share the time by their bytes.
const UNITS_FIRST: usize = 10;

/// Bytes that are compressed between two looks at the watch.
const STEP: usize = 64 << 10;

/// Bytes of large transactions' beginnings that can be compressed in time, about. They are shared among
/// the large transactions, and at least two marks are looked at of each.
const BEGINNINGS: u64 = 32 << 20;

/// How a sample came out.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    pub(super) seed: u64,
    pub(super) units: u64,
    pub(super) bytes: u64,
    /// By level, in bytes.
    pub(super) half_widths: Vec<f64>,
}

struct Worker {
    meter: Meter,
    walk: TableWalk,
    events: Vec<u8>,
}

/// What came of a unit.
struct Done {
    class: usize,
    x: u64,
    inner: u64,
    levels: Vec<Measured>,
    tables: Vec<(std::sync::Arc<crate::stats::TableName>, u64)>,
}

impl Advice {
    /// Compresses the sample until `deadline`, or until it is large enough, and estimates the rest.
    /// `progress` is told the bytes of the sample that are done.
    ///
    /// # Errors
    ///
    /// A temporary file that can't be read, no memory for a context.
    pub fn measure_sample(
        &mut self,
        sampler: Sampler,
        workers: usize,
        deadline: Instant,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), binlogz_flow::Error> {
        let seed = sampler.seed();
        let Store { classes, spool } = sampler.into_store();
        let units = self.in_order(classes.map(|kept| kept.units.into_sorted_vec()));
        let levels = self.levels.clone();
        let mut estimator = Estimator::new(self.levels.len());
        let classes = self.figures.classes.iter().filter(|class| class.fast > 0);
        let large: u64 = classes.map(|class| class.transactions).sum();
        let beginning = (BEGINNINGS / large.max(1)).next_multiple_of(MARK_EVERY).max(2 * MARK_EVERY);
        let mut over = false;
        let enough = std::sync::atomic::AtomicBool::new(false);
        let late = || Instant::now() >= deadline;
        let mut next = units.iter();
        ordered::run(
            workers,
            || {
                let stopped = late() || enough.load(std::sync::atomic::Ordering::Relaxed);
                next.next().filter(|_| !stopped).map(Ok)
            },
            (),
            || Worker::new(&levels),
            |worker, (class, unit)| Ok(worker.measure(*class, unit, &spool, beginning, &late)?),
            |done: Option<Done>| {
                // What comes behind one that was not measured would not be drawn by chance alone.
                over |= done.is_none();
                if let Some(done) = done.filter(|_| !over) {
                    estimator.add(done.class, done.x, done.inner, &done.levels, &done.tables);
                    progress(estimator.bytes);
                    over = estimator.units >= UNITS_MIN
                        && estimator.units.is_multiple_of(16)
                        && self.is_enough(&estimator);
                    enough.store(over, std::sync::atomic::Ordering::Relaxed);
                }
                Ok::<_, binlogz_flow::Error>(())
            },
        )?;
        let half_widths = estimator.half_widths(&self.figures);
        estimator.fill(&mut self.figures);
        self.sampled = Some(Sampled { seed, units: estimator.units, bytes: estimator.bytes, half_widths });
        Ok(())
    }

    /// The units in the order in which they are measured: some of each class, then so that each class
    /// always has its share of the bytes.
    fn in_order(&self, classes: [Vec<Unit>; crate::stats::size_class::CLASSES]) -> Vec<(usize, Unit)> {
        let mut keyed = Vec::new();
        for (number, units) in classes.into_iter().enumerate() {
            let inner = self.figures.classes.get(number).map_or(0, |class| class.inner);
            let mut bytes = 0;
            for (place, unit) in units.into_iter().enumerate() {
                let key = match place < UNITS_FIRST {
                    true => place as f64 - UNITS_FIRST as f64,
                    false => bytes as f64 / inner.max(1) as f64,
                };
                bytes += unit.size();
                keyed.push((key, number, unit));
            }
        }
        keyed.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
        keyed.into_iter().map(|(_, class, unit)| (class, unit)).collect()
    }

    fn is_enough(&self, estimator: &Estimator) -> bool {
        let fixed = self.figures.left_bytes() as f64;
        let classes = self.figures.classes.iter().enumerate();
        let all_seen = classes.filter(|(_, class)| class.transactions > 0).all(|(number, class)| {
            estimator.units_of(number) >= class.transactions.min(UNITS_FIRST as u64) as f64
        });
        let sizes = estimator.sizes(&self.figures);
        all_seen
            && estimator
                .half_widths(&self.figures)
                .iter()
                .zip(sizes)
                .all(|(half_width, size)| *half_width <= HALF_WIDTH_ENOUGH * (size + fixed))
    }
}

impl Worker {
    fn new(levels: &[CompressionLevel]) -> Result<Self, binlogz_flow::Error> {
        Ok(Worker { meter: Meter::new(levels)?, walk: TableWalk::default(), events: Vec::new() })
    }

    /// Compresses a unit, of a large transaction at most the first `beginning` bytes; `None` if time is
    /// over before it is done.
    fn measure(
        &mut self,
        class: usize,
        unit: &Unit,
        spool: &Spool,
        beginning: u64,
        late: &dyn Fn() -> bool,
    ) -> Result<Option<Done>, Error> {
        if let Some(large) = unit.large.as_ref().filter(|large| large.inner > MARK_EVERY) {
            return self.large(class, unit, large, spool, beginning, late);
        }
        if late() {
            return Ok(None);
        }
        self.events.clear();
        for range in &unit.bytes {
            spool.reader(range.clone()).read_to_end(&mut self.events)?;
        }
        self.walk.push(&self.events);
        let tables = self.walk.finish();
        let costs = self.meter.held(&self.events, true)?;
        let levels = costs.iter().map(|cost| measured(cost, unit, 0)).collect::<Result<_, _>>()?;
        let x = unit.large.as_ref().map_or(unit.plain, |large| large.fast);
        Ok(Some(Done { class, x, inner: unit.size(), levels, tables }))
    }

    /// Compresses the beginning of a large transaction, as far as time allows.
    fn large(
        &mut self,
        class: usize,
        unit: &Unit,
        large: &Large,
        spool: &Spool,
        beginning: u64,
        late: &dyn Fn() -> bool,
    ) -> Result<Option<Done>, Error> {
        let events = &mut self.events;
        let (at, wanted) = (Cell::new(0), beginning.min(unit.size()));
        let whole = wanted == large.inner;
        let mut feed = |sink: &mut dyn FnMut(&[u8]) -> Result<(), Error>| {
            for range in &unit.bytes {
                let mut reader = spool.reader(range.clone());
                while at.get() < wanted && !late() {
                    events.clear();
                    let step = (STEP as u64).min(wanted - at.get());
                    if (&mut reader).take(step).read_to_end(events)? == 0 {
                        break;
                    }
                    at.set(at.get() + events.len() as u64);
                    sink(events)?;
                }
            }
            Ok(())
        };
        let done = |levels, inner| Some(Done { class, x: large.fast, inner, levels, tables: Vec::new() });
        if whole {
            // What time cuts short is thrown away: there is no mark to tell from.
            let costs = self.meter.read(large.inner, |sink| {
                feed(sink)?;
                if at.get() < wanted {
                    Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into())
                } else {
                    Ok(())
                }
            });
            if at.get() < wanted {
                return Ok(None);
            }
            let levels = costs?.iter().map(|cost| measured(cost, unit, 0)).collect::<Result<_, _>>()?;
            return Ok(done(levels, large.inner));
        }
        let (costs, marks) = self.meter.begin(large.inner, feed)?;
        let levels = costs.iter().zip(marks).map(|(cost, marks)| {
            let Some(payload_size) = extrapolated(marks, large) else { return Ok(None) };
            let behind = payload_size - marks.last().copied().unwrap_or(0).min(payload_size);
            measured(&Cost { payload_size, ..*cost }, unit, behind).map(Some)
        });
        let levels = levels.collect::<Result<Option<Vec<_>>, Error>>()?;
        // The time is that of the beginning: it counts for as many bytes.
        let scale = super::per(large.inner as f64, at.get() as f64);
        let levels = levels.map(|mut levels| {
            levels.iter_mut().for_each(|level| level.compress = (level.compress as f64 * scale) as u64);
            levels
        });
        Ok(levels.and_then(|levels| done(levels, large.inner)))
    }
}

/// How large the payload will be, from its marks and those of the fast level. The first mark is behind a
/// beginning that has nothing to refer to, so the rest is like what comes between it and the last.
fn extrapolated(marks: &[u64], large: &Large) -> Option<u64> {
    let last = marks.len().checked_sub(1)?;
    let (end, fast_end) = (*marks.get(last)?, *large.marks.get(last)?);
    let (start, fast_start) = match last {
        0 => (0, 0),
        _ => (*marks.first()?, *large.marks.first()?),
    };
    let ratio = super::per((end - start) as f64, (fast_end - fast_start) as f64);
    Some(end + (ratio * large.fast.saturating_sub(fast_end) as f64).round() as u64)
}

fn measured(cost: &Cost, unit: &Unit, behind: u64) -> Result<Measured, Error> {
    let Cost { payload_size: payload, compress, expand } = *cost;
    let size = unit.becomes.compressed(payload)?.unwrap_or(unit.plain);
    Ok(Measured { size, behind, payload, compress, expand })
}
