//! Compresses as much of the sample as time allows.
//!
//! First come a few units of each stratum. How much these differ decides which strata get the rest of the
//! time (Neyman's allocation). For a unit above [`LEARNT`] each worker takes some of the levels, so that all
//! cores work on it. It ends once every size is known well, or, from a moment on that the caller names, once there is an answer.

use std::cell::Cell;
use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use binlogz_flow::measure::{CompressionMeter, CpuClock, LevelCost, MARK_EVERY};
use binlogz_flow::ordered;
use binlogz_payload::{CompressionLevel, Error, Recipe, Spool};
use binlogz_stats::size_class::CLASSES;

use crate::Advice;
use crate::estimate::{Estimator, MeasuredUnit, UnitMeasurement};
use crate::large::SMALL_CLASSES;
use crate::plan::{LevelPlan, Span, Spans};
use crate::recommendation::AdviceVerdict;
use crate::sample::{DrawnSample, LargeSample, SampleUnit};
use crate::spent::MeasuringTime;
use crate::strata::BUCKETS;
use crate::table_walk::TableWalk;

/// A half-width of this fraction of the result at every level is enough. If that leaves the recommendation
/// open, the next one is tried; at last all that was drawn is compressed.
const HALF_WIDTHS_ENOUGH: [f64; 4] = [0.0075, 0.003, 0.001, 0.0];

/// Once an answer is what is waited for, the saving may be off by this much, in points of the log.
const HALF_WIDTH_FAIR: f64 = 2.0;

/// With fewer units than this, nothing can be concluded.
const UNITS_MIN: u64 = 200;

/// Units of a stratum that come first, if it has at least [`PILOT_SHARE`] of the bytes; otherwise one.
const PILOT: usize = 4;

/// The share of the bytes from which a stratum gets [`PILOT`] units first.
const PILOT_SHARE: f64 = 0.02;

/// Bytes compressed between two checks of the clock.
const STEP: usize = 64 << 10;

/// Roughly, the bytes of large transactions' beginnings that can be compressed in time. The large
/// transactions share them, and each is compressed up to at least two marks.
const BEGINNINGS: u64 = 32 << 20;

/// After this many bytes there is enough history to refer to. Larger transactions are compressed only in
/// part.
const LEARNT: u64 = 2 << 20;

/// The result of a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleResult {
    pub(crate) seed: u64,
    pub(crate) units: u64,
    pub(crate) bytes: u64,
    /// By level, in bytes.
    pub(crate) half_widths: Vec<f64>,
    /// The time of compressing it. If the machine was busy with something else, times are less certain.
    pub(crate) spent: MeasuringTime,
}

/// When a sample ends, if it is not large enough before.
#[derive(Debug, Clone, Copy)]
pub struct SampleEnd {
    /// From here on it ends as soon as there is an answer.
    pub answered: Instant,
    /// It ends here whatever is known.
    pub last: Instant,
}

/// A unit that waits: its class, and its place among those of its stratum.
struct WaitingUnit {
    class: usize,
    place: usize,
    unit: SampleUnit,
}

/// A unit at all levels, or one worker's part of a large unit, with the time for it.
struct Job<'a> {
    waiting: &'a WaitingUnit,
    part: Option<(usize, Span)>,
}

/// The clock: whether time is over, and whether another unit would still fit.
struct Watch {
    deadline: Instant,
    /// The time of the longest unit, in nanoseconds.
    longest: AtomicU64,
}

impl Watch {
    fn has_time(&self) -> bool {
        Instant::now() + Duration::from_nanos(self.longest.load(Ordering::Relaxed)) < self.deadline
    }

    fn time<T>(&self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let done = work();
        let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.longest.fetch_max(nanos, Ordering::Relaxed);
        done
    }
}

/// The compressors of a sample.
struct Run<'a> {
    levels: &'a [CompressionLevel],
    recipe: Recipe,
    workers: usize,
    watch: Watch,
    spool: &'a Spool,
    plan: LevelPlan,
    /// Bytes of each large transaction that are compressed.
    beginning: u64,
    /// Nanoseconds that measuring took: elapsed, and of processor time.
    spent: [AtomicU64; 2],
}

impl Advice {
    /// Compresses the sample until `end`, or until it is large enough, and estimates the rest.
    /// `progress` is called with the number of bytes of the sample that are done.
    ///
    /// # Errors
    ///
    /// A temporary file that can't be read, no memory for a context.
    pub fn measure_sample(
        &mut self,
        sample: &DrawnSample,
        workers: usize,
        end: SampleEnd,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), binlogz_flow::Error> {
        let DrawnSample { seed, classes, spool } = sample;
        let seed = *seed;
        let classes = classes.clone();
        let levels = self.levels.clone();
        let large: u64 =
            self.figures.classes.iter().skip(SMALL_CLASSES).map(|class| class.transactions).sum();
        let run = Run {
            levels: &levels,
            recipe: self.generation.recipe(),
            workers,
            watch: Watch { deadline: end.last, longest: AtomicU64::new(0) },
            spool,
            plan: LevelPlan::new(&levels, workers),
            beginning: (BEGINNINGS / large.max(1)).next_multiple_of(MARK_EVERY).max(2 * LEARNT),
            spent: [AtomicU64::new(0), AtomicU64::new(0)],
        };
        let mut estimator = Estimator::new(self.levels.len());
        let (pilot, mut rest) = self.pilot(classes);
        let mut rest = {
            run.measure(&pilot, &mut estimator, |_| false, progress)?;
            let weights = estimator.weights(&self.figures);
            let key = |waiting: &WaitingUnit| {
                let weight = weights.get(waiting.class).and_then(|class| class.get(waiting.unit.stratum));
                (waiting.place + 1) as f64 / weight.copied().unwrap_or(0.0)
            };
            rest.sort_by(|a, b| key(a).total_cmp(&key(b)));
            rest.as_slice()
        };
        let unsampled = self.figures.clone();
        for enough in HALF_WIDTHS_ENOUGH {
            self.figures = unsampled.clone();
            let before = estimator.units;
            if before < UNITS_MIN || !self.is_enough(&estimator, enough) {
                let is_enough = |estimator: &Estimator| {
                    self.is_enough(estimator, enough)
                        || Instant::now() >= end.answered && self.is_answered(estimator, run.spent(), seed)
                };
                run.measure(rest, &mut estimator, is_enough, progress)?;
            }
            let done = usize::try_from(estimator.units - before).unwrap_or(usize::MAX);
            rest = rest.get(done..).unwrap_or_default();
            self.estimate_by(&estimator, run.spent(), seed);
            let is_open = self.decision().is_some_and(|decision| decision.sizes_leave_open);
            if !is_open || rest.is_empty() || !run.watch.has_time() {
                break;
            }
        }
        Ok(())
    }

    /// Fills in what a sample says of the figures.
    fn estimate_by(&mut self, estimator: &Estimator, spent: MeasuringTime, seed: u64) {
        let half_widths = estimator.half_widths(&self.figures);
        estimator.fill(&mut self.figures);
        let Estimator { units, bytes, .. } = *estimator;
        self.sampled = Some(SampleResult { seed, units, bytes, half_widths, spent });
    }

    /// Whether there is an answer by what was compressed so far, with a saving that is known fairly well.
    fn is_answered(&self, estimator: &Estimator, spent: MeasuringTime, seed: u64) -> bool {
        let mut so_far = self.of_levels(&self.levels);
        so_far.slowdowns.clone_from(&self.slowdowns);
        so_far.estimate_by(estimator, spent, seed);
        let off = (0..self.levels.len()).map(|place| so_far.half_width_points(place)).fold(0.0, f64::max);
        off <= HALF_WIDTH_FAIR && so_far.recommendation().verdict != AdviceVerdict::CantTell
    }

    /// The units that come first, a few of each stratum, and the others.
    fn pilot(&self, classes: [Vec<SampleUnit>; CLASSES]) -> (Vec<WaitingUnit>, Vec<WaitingUnit>) {
        let inner = self.figures.inner() as f64;
        let mut waiting = Vec::new();
        for (class, units) in classes.into_iter().enumerate() {
            let mut places = [0; BUCKETS];
            for unit in units {
                let Some(next) = places.get_mut(unit.stratum) else { continue };
                waiting.push(WaitingUnit { class, place: *next, unit });
                *next += 1;
            }
        }
        let comes_first = |waiting: &WaitingUnit| {
            let share = self.figures.classes.get(waiting.class).map_or(0.0, |class| {
                let known = class.strata.get(waiting.unit.stratum).map_or(0, |known| known.transactions);
                class.inner as f64 * crate::per(known as f64, class.transactions as f64) / inner
            });
            waiting.place < if share < PILOT_SHARE { 1 } else { PILOT }
        };
        let (mut pilot, rest): (Vec<_>, Vec<_>) = waiting.into_iter().partition(comes_first);
        pilot.sort_by_key(|waiting| waiting.place);
        (pilot, rest)
    }

    fn is_enough(&self, estimator: &Estimator, part: f64) -> bool {
        let fixed = self.figures.left_bytes() as f64;
        let classes = self.figures.classes.iter().enumerate();
        let all_seen = classes
            .filter(|(_, class)| class.transactions > 0)
            .all(|(number, class)| estimator.units_of(number) >= class.transactions.min(PILOT as u64) as f64);
        let sizes = estimator.sizes(&self.figures);
        all_seen
            && estimator
                .half_widths(&self.figures)
                .iter()
                .zip(sizes)
                .all(|(half_width, size)| *half_width <= part * (size + fixed))
    }
}

impl Run<'_> {
    /// The time of what was compressed so far.
    fn spent(&self) -> MeasuringTime {
        let [wall, cpu] = &self.spent;
        MeasuringTime { wall: wall.load(Ordering::Relaxed), cpu: cpu.load(Ordering::Relaxed) }
    }

    /// Measures units, in this order, until time is over or `enough` says so. Returns whether it may go on.
    fn measure(
        &self,
        units: &[WaitingUnit],
        estimator: &mut Estimator,
        enough: impl Fn(&Estimator) -> bool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<bool, binlogz_flow::Error> {
        let parts = self.plan.workers.len();
        let mut jobs = units.iter().flat_map(|waiting| {
            let parts = if waiting.unit.is_in_marks() { 0..parts } else { 0..0 };
            let whole = parts.is_empty().then_some(None);
            parts.map(Some).chain(whole).map(move |part| (waiting, part))
        });
        let large = units.iter().filter(|waiting| waiting.unit.is_in_marks()).count();
        let mut spans = Spans::new(self.watch.deadline, large);
        let mut span = None;
        let mut over = false;
        let stop = AtomicBool::new(false);
        // The levels of the current unit, by their places.
        let mut so_far: Vec<(usize, UnitMeasurement)> = Vec::new();
        ordered::run(
            self.workers,
            || {
                let stopped = !self.watch.has_time() || stop.load(Ordering::Relaxed);
                let (waiting, part) = jobs.next()?;
                match part {
                    // Measure all parts of a unit, or none.
                    Some(part) if part > 0 => {}
                    _ if stopped => return None,
                    Some(_) => span = Some(spans.next()),
                    None => {}
                }
                Some(Ok(Job { waiting, part: part.zip(span) }))
            },
            (),
            || Worker::new(self.levels, self.recipe),
            |worker, job| Ok((job.waiting, worker.measure(&job, self)?)),
            |(waiting, levels): (&WaitingUnit, Option<_>)| {
                // Units after one that was not measured would no longer be a random choice.
                over |= levels.is_none();
                let Some(Levels { levels, tables }) = levels.filter(|_| !over) else { return Ok(()) };
                so_far.extend(levels);
                if so_far.len() < self.levels.len() {
                    return Ok(());
                }
                so_far.sort_by_key(|(place, _)| *place);
                let levels = so_far.drain(..).map(|(_, level)| level).collect();
                estimator.add(waiting.class, &waiting.unit.measured(levels, tables));
                progress(estimator.bytes);
                over =
                    estimator.units >= UNITS_MIN && estimator.units.is_multiple_of(16) && enough(estimator);
                stop.store(over, Ordering::Relaxed);
                Ok::<_, binlogz_flow::Error>(())
            },
        )?;
        Ok(!over && self.watch.has_time())
    }
}

impl SampleUnit {
    /// Whether only the beginning is compressed, or the whole in pieces.
    fn is_in_marks(&self) -> bool {
        self.large.as_ref().is_some_and(|large| large.inner > LEARNT)
    }

    fn measured(&self, levels: Vec<UnitMeasurement>, tables: Tables) -> MeasuredUnit {
        let (x, inner) = match &self.large {
            Some(large) => (large.fast, large.inner),
            None => (self.plain, self.size()),
        };
        MeasuredUnit { stratum: self.stratum, x, inner, levels, tables }
    }
}

type Tables = Vec<(std::sync::Arc<binlogz_stats::TableName>, u64)>;

/// The results of a unit, at some levels, by their places, or at all.
struct Levels {
    levels: Vec<(usize, UnitMeasurement)>,
    tables: Tables,
}

struct Worker {
    /// One for each level.
    meters: Vec<CompressionMeter>,
    walk: TableWalk,
    clock: CpuClock,
    events: Vec<u8>,
}

impl Worker {
    fn new(levels: &[CompressionLevel], recipe: Recipe) -> Result<Self, binlogz_flow::Error> {
        let meters =
            levels.iter().map(|level| CompressionMeter::new(&[*level], recipe)).collect::<Result<_, _>>()?;
        let walk = TableWalk::default();
        let clock = CpuClock::default();
        Ok(Worker { meters, walk, clock, events: Vec::new() })
    }

    /// Runs a job; `None` if time is over first.
    fn measure(&mut self, job: &Job<'_>, run: &Run<'_>) -> Result<Option<Levels>, Error> {
        let mut spent = MeasuringTime::default();
        let levels = spent.time(self.clock, || self.measured(job, run));
        for (spent, more) in run.spent.iter().zip([spent.wall, spent.cpu]) {
            spent.fetch_add(more, Ordering::Relaxed);
        }
        levels
    }

    fn measured(&mut self, job: &Job<'_>, run: &Run<'_>) -> Result<Option<Levels>, Error> {
        let unit = &job.waiting.unit;
        match (&unit.large, job.part) {
            (Some(large), Some((part, span))) => {
                let mut levels = Vec::new();
                for (place, end) in run.plan.workers.get(part).into_iter().flatten() {
                    match self.in_marks(unit, large, *place, span.at(*end), run)? {
                        Some(level) => levels.push((*place, level)),
                        None => return Ok(None),
                    }
                }
                Ok(Some(Levels { levels, tables: Vec::new() }))
            }
            _ if !run.watch.has_time() => Ok(None),
            _ => run.watch.time(|| self.whole(unit, run)).map(Some),
        }
    }

    fn whole(&mut self, unit: &SampleUnit, run: &Run<'_>) -> Result<Levels, Error> {
        self.events.clear();
        for range in &unit.bytes {
            run.spool.reader(range.clone()).read_to_end(&mut self.events)?;
        }
        self.walk.push(&self.events);
        let tables = self.walk.finish();
        let mut levels = Vec::with_capacity(self.meters.len());
        for (place, meter) in self.meters.iter_mut().enumerate() {
            for cost in meter.held(&self.events, true, true)? {
                levels.push((place, measured(cost, unit, 0)?));
            }
        }
        Ok(Levels { levels, tables })
    }

    /// Compresses the beginning of a large transaction, as far as time allows, at one level.
    fn in_marks(
        &mut self,
        unit: &SampleUnit,
        large: &LargeSample,
        level: usize,
        end: Instant,
        run: &Run<'_>,
    ) -> Result<Option<UnitMeasurement>, Error> {
        let Some(meter) = self.meters.get_mut(level) else { return Ok(None) };
        let events = &mut self.events;
        let at = Cell::new(0);
        let wanted = run.beginning.min(unit.size());
        let whole = wanted == large.inner;
        let mut feed = |sink: &mut dyn FnMut(&[u8]) -> Result<(), Error>| {
            for range in &unit.bytes {
                let mut reader = run.spool.reader(range.clone());
                while at.get() < wanted && Instant::now() < end {
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
        if whole {
            // If time cuts it short, it is thrown away: there is no mark to compare with.
            let costs = meter.read(large.inner, |sink| {
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
            let cost = costs?.first().copied().unwrap_or_default();
            return measured(&cost, unit, 0).map(Some);
        }
        let (costs, marks) = meter.begin(large.inner, feed)?;
        let Some((cost, marks)) = costs.first().zip(marks.first()) else { return Ok(None) };
        let Some(payload_size) = extrapolated(marks, large) else { return Ok(None) };
        let behind = payload_size - marks.last().copied().unwrap_or(0).min(payload_size);
        // A result that was cut short is less certain.
        let behind = (behind as f64 * crate::per(wanted as f64, at.get() as f64)) as u64;
        let mut level = measured(&LevelCost { payload_size, ..*cost }, unit, behind)?;
        // The time is that of the beginning: scale it up to the whole.
        level.compress = (level.compress as f64 * crate::per(large.inner as f64, at.get() as f64)) as u64;
        Ok(Some(level))
    }
}

/// Estimates the payload's size from its marks and those of the fast level. The beginning up to [`LEARNT`]
/// has nothing to refer to, so the rest is taken to be like what comes between that and the last mark; if
/// there is no more, like the whole beginning.
fn extrapolated(marks: &[u64], large: &LargeSample) -> Option<u64> {
    const LEARNT_MARK: usize = (LEARNT / MARK_EVERY) as usize - 1;
    let last = marks.len().checked_sub(1)?;
    let end = *marks.get(last)?;
    let fast_end = *large.marks.get(last)?;
    let (start, fast_start) = match last {
        0..=LEARNT_MARK => (0, 0),
        _ => (*marks.get(LEARNT_MARK)?, *large.marks.get(LEARNT_MARK)?),
    };
    let ratio = crate::per((end - start) as f64, (fast_end - fast_start) as f64);
    Some(end + (ratio * large.fast.saturating_sub(fast_end) as f64).round() as u64)
}

fn measured(cost: &LevelCost, unit: &SampleUnit, behind: u64) -> Result<UnitMeasurement, Error> {
    let LevelCost { payload_size: payload, compress, expand } = *cost;
    let size = unit.becomes.compressed(payload)?.unwrap_or(unit.plain);
    Ok(UnitMeasurement { size, behind, payload, compress, expand })
}
