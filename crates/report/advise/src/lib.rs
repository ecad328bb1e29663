//! The savings and costs of compression on a server that wrote these logs.
//!
//! ```text
//! transactions → ExactMeter (one a worker) → Figures ─────────────────────────┐
//! transactions → SampleMeter → Figures, samples → Estimator ─ fills the rest ─┴→ Advice → Section → text, JSON, HTML
//! ```
//!
//! [`ExactMeter`] compresses every transaction at every level. [`SampleMeter`] keeps some of them, and chunks
//! of large ones, for [`Advice::measure_sample`]. The levels that decide come first; the figures of higher ones are measured
//! beside them ([`Advice::of_levels`]) and put after them ([`Advice::append`]). Both meters keep a few small ones in [`Commits`], whose sessions
//! compress them once more ([`Advice::measure_commits`]): times are scaled by the result.
//! [`Advice::recommendation`] says what the figures mean for an operator of the server;
//! docs/reference/advise.md describes each column.

mod commits;
mod decide;
mod estimate;
mod exact;
mod figures;
mod higher;
mod large;
mod page;
mod plan;
mod random;
mod recommend;
mod recommendation;
mod sample;
mod sampled;
mod sections;
mod spent;
mod strata;
mod summary;
mod table_walk;
mod tables;
mod unread;
mod whole_file;

use binlogz_figures::Quantiles;
use binlogz_flow::measure::MeasuredPiece;
use binlogz_payload::{CompressionLevel, ServerGeneration};

pub use commits::Commits;
pub use exact::ExactMeter;
pub use recommendation::{AdviceVerdict, READERS, Recommendation, TooLittle};
pub use sample::{DrawnSample, SampleMeter, Sampler};
pub use sampled::{SampleEnd, SampleResult};
pub use unread::BEGINNING_ENOUGH;

use commits::Slowdowns;
use figures::{AdviceFigures, ClassLevel};
use whole_file::WholeFile;

/// The levels that are looked at where none are named.
pub const LEVELS: [u8; 7] = [1, 3, 6, 9, 15, 19, 22];

/// The highest level that decides what is recommended, where any as low was measured: higher ones cost ten times as much and
/// more, in each commit.
pub const DECIDING_MAX: u8 = 9;

/// A meter's findings in a piece of a log.
#[derive(Debug)]
pub struct MeterPart(AdviceFigures);

/// The measurements, and the advice that follows from them.
#[derive(Debug)]
pub struct Advice {
    levels: Vec<CompressionLevel>,
    replicas: u32,
    generation: ServerGeneration,
    files: u64,
    bytes_read: u64,
    /// Bytes of the files for which there was no time; `None` if nobody knows how many.
    bytes_unread: Option<u64>,
    /// The part of these in logs of which too little was read to tell what the rest is like.
    bytes_unknown: Option<u64>,
    /// The time from the first commit of each log to its last, as far as it was read, in microseconds.
    spans: u64,
    /// Bytes outside of transactions with a GTID event: in the plain log, in the compressed one.
    outside: [u64; 2],
    payloads: u64,
    figures: AdviceFigures,
    /// By level; none as long as nobody looked.
    slowdowns: Vec<Slowdowns>,
    /// Set if the figures by level are estimates.
    sampled: Option<SampleResult>,
    whole_files: Vec<WholeFile>,
}

impl Advice {
    /// Nothing measured yet, for servers of this generation. `replicas` read the log.
    pub fn new(levels: &[CompressionLevel], replicas: u32, generation: ServerGeneration) -> Self {
        Advice {
            levels: levels.to_vec(),
            replicas,
            generation,
            files: 0,
            bytes_read: 0,
            bytes_unread: Some(0),
            bytes_unknown: Some(0),
            spans: 0,
            outside: [0; 2],
            payloads: 0,
            figures: AdviceFigures::default(),
            slowdowns: Vec::new(),
            sampled: None,
            whole_files: Vec::new(),
        }
    }

    /// Adds a piece of a log: measured whole, or looked at while a sample was drawn from it.
    pub fn add_piece(&mut self, piece: &MeasuredPiece<MeterPart>) {
        self.bytes_read += piece.bytes_read;
        self.payloads += piece.payloads;
        for (sum, outside) in self.outside.iter_mut().zip(piece.outside) {
            *sum += outside;
        }
        if let Some(MeterPart(figures)) = &piece.part {
            self.figures.add(figures);
        }
    }

    /// Adds what another log gave.
    pub fn add(&mut self, log: &Advice) {
        self.files += log.files.max(1);
        self.bytes_read += log.bytes_read;
        self.add_unread(log);
        self.payloads += log.payloads;
        for (sum, outside) in self.outside.iter_mut().zip(log.outside) {
            *sum += outside;
        }
        self.figures.add(&log.figures);
    }

    /// Bytes of the logs if nothing in them were compressed.
    fn plain_bytes(&self) -> u64 {
        let [outside, _] = self.outside;
        outside + self.figures.left_bytes() + self.figures.eligible_plain()
    }

    /// Bytes that a server would have written with this level: one of the levels, by its place.
    fn compressed_bytes(&self, level: usize) -> u64 {
        let [_, outside] = self.outside;
        let size = self.figures.levels.get(level).map_or(0, |level| level.size);
        outside + self.figures.left_bytes() + size
    }

    /// Whether the machine was busy with something else, so that times are less certain.
    fn is_of_busy_machine(&self) -> bool {
        match &self.sampled {
            Some(sampled) => sampled.spent.was_disturbed(),
            None => self.figures.spent.was_disturbed(),
        }
    }

    /// The possible error of the size, in bytes; `None` if it is exact.
    fn half_width(&self, level: usize) -> Option<f64> {
        Some(self.sampled.as_ref()?.half_widths.get(level)? + self.unread_bytes())
    }

    /// The possible error of the size in percent of it; `None` if it is exact.
    fn half_width_percent(&self, level: usize) -> Option<f64> {
        Some(100.0 * per(self.half_width(level)?, (self.compressed_bytes(level) as f64).max(1.0)))
    }

    /// The share of the plain log that is saved, in percent.
    fn saved_percent(&self, level: usize) -> f64 {
        saved_percent(self.plain_bytes(), self.compressed_bytes(level))
    }

    /// Seconds from the first commit to the last; `None` if they are less than [`SECONDS_MIN`] apart.
    fn seconds(&self) -> Option<f64> {
        let (first, last) = self.figures.commits?;
        let seconds = self.read_span(last.saturating_sub(first)) as f64 / 1e6;
        (seconds >= SECONDS_MIN).then_some(seconds)
    }

    /// The time that commits of a class take for each nanosecond that was measured.
    fn slowdown(&self, level: usize, class: usize) -> f64 {
        self.slowdowns.get(level).and_then(|slowdowns| slowdowns.get(class)).copied().unwrap_or(1.0)
    }

    /// Each class at a level, and its slowdown.
    fn classes(&self, level: usize) -> impl Iterator<Item = (&ClassLevel, f64)> {
        let classes = self.figures.classes.iter().enumerate();
        classes
            .filter_map(move |(number, class)| Some((class.levels.get(level)?, self.slowdown(level, number))))
    }

    /// Nanoseconds of processor time for all commits at a level.
    fn compress_time(&self, level: usize) -> f64 {
        self.classes(level).map(|(class, slowdown)| class.compress as f64 * slowdown).sum()
    }

    /// The time that each commit takes at a level.
    fn commit_times(&self, level: usize) -> Quantiles {
        let mut times = Quantiles::default();
        self.classes(level).for_each(|(class, slowdown)| times.add_slower(&class.times, slowdown));
        times
    }

    /// Seconds of processor time for compressing a gigabyte (10^9 bytes of events) at a level.
    fn compress_seconds_per_gb(&self, level: usize) -> f64 {
        per(self.compress_time(level), self.figures.inner() as f64)
    }

    /// Seconds of processor time for expanding a gigabyte (10^9 bytes of events) that was compressed at a level.
    fn expand_seconds_per_gb(&self, level: usize) -> f64 {
        let (time, bytes) = self.figures.levels.get(level).map_or((0, 0), |level| level.expand);
        per(time as f64, bytes as f64)
    }

    /// The part of one core that compressing took, in percent, at the rate of the log.
    fn core_percent(&self, level: usize) -> Option<f64> {
        Some(self.compress_time(level) / 1e9 / self.seconds()? * 100.0)
    }
}

/// A log of less is too short to tell a rate from.
const SECONDS_MIN: f64 = 10.0;

fn saved_percent(plain: u64, compressed: u64) -> f64 {
    100.0 - 100.0 * per(compressed as f64, plain as f64)
}

/// A quotient; 0 where there is nothing to divide by. Nanoseconds a byte are seconds a gigabyte.
fn per(dividend: f64, divisor: f64) -> f64 {
    if divisor > 0.0 { dividend / divisor } else { 0.0 }
}
