//! Measures logs within the time allowed.
//!
//! ```text
//! read all logs, or the beginning of each → a sample → levels that decide on it → on all transactions, if that fits
//!                                                    → with details: higher levels on the sample → whole files
//! ```

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use binlogz_advise::{
    Advice, AdviceVerdict, Commits, DECIDING_MAX, DrawnSample, ExactMeter, LEVELS, MeterPart, SampleEnd,
    SampleMeter, Sampler,
};
use binlogz_encryption::Keyring;
use binlogz_flow::measure::{Measure, measure};
use binlogz_flow::{CutEvent, Input};
use binlogz_payload::{CompressionLevel, ServerGeneration};
use clap::Args;

use super::measured_log::MeasuredLog;
use super::pace::{ReadingEnds, ReadingPace};
use super::reread::{self, RereadFile};
use super::{BUDGET_TIME, generation};
use crate::Exit;
use crate::cmd::workers;
use crate::failure::{CommandFailure, Result, complain, warn, warn_cut};
use crate::mariadb;
use crate::progress::WorkProgress;
use crate::units;

/// The levels measured, and for how long.
#[derive(Debug, Clone, Args)]
pub(super) struct LevelMeasurement {
    /// Levels to measure, 1 to 22 [default: 1,3,6,9; 15,19,22 too with --details, --html and JSON]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    levels: Vec<CompressionLevel>,
    /// Predict what this server would write, such as mysql-8.0.33 [default: the one whose logs they are]
    #[arg(long = "as", value_name = "SERVER", value_parser = generation::named)]
    server: Option<ServerGeneration>,
    /// Compress every transaction, however long it takes: sizes are exact
    #[arg(long, conflicts_with_all = ["budget", "seed"])]
    exact: bool,
    /// Don't measure zstd on the whole files, which takes most of the time of an exact run of one level
    #[arg(long)]
    no_whole_files: bool,
    /// Most time for the whole run: 30s, 5m, or a number of seconds [default: 30s; 60s where only all transactions tell]
    #[arg(long, value_name = "TIME", value_parser = units::duration_or_seconds)]
    budget: Option<Duration>,
    /// Seed of the sample; the same seed draws the same sample
    #[arg(long, value_name = "N", default_value_t = SEED)]
    seed: u64,
    /// How many replicas read the log, for the network's share
    #[arg(long, value_name = "N", default_value_t = REPLICAS)]
    replicas: u32,
    /// Threads that work at once [default: one for each core]
    #[arg(long, short, value_name = "N", value_parser = units::above_zero)]
    jobs: Option<NonZeroUsize>,
}

/// How much is measured besides the levels that decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AdviceDepth {
    /// Nothing: the answer is wanted.
    Answer,
    /// Higher levels, and zstd on the whole files, in the time that is left.
    Details,
}

/// The part of the budget that may be spent on reading the logs; and the part where that lets all be read, or the beginning of each.
const SCAN_SHARE: f64 = 0.4;
const SCAN_LAST_SHARE: f64 = 0.55;

/// The part of the budget after which the levels that decide give way to higher ones, and those to whole files.
const DECIDING_SHARE: f64 = 0.6;
const HIGHER_SHARE: f64 = 0.9;

/// The part of the budget that the sample gets at least, however long the rest took.
const SAMPLE_SHARE: f64 = 0.4;

/// The share of the time, in an exact run of the time for compressing, that is spent on finding how much longer commits
/// take; and how much of it is of any use.
const COMMITS_SHARE: f64 = 0.1;
const COMMITS_MAX: Duration = Duration::from_secs(1);

/// Without --budget people wait this long for an answer that can be given: sampling ends then, and the sizes of all transactions are found
/// by then or not at all.
const ANSWER_TIME: Duration = Duration::from_secs(9);

/// With details they wait this long for the sizes of all transactions.
const EXACT_MAX: Duration = Duration::from_secs(6);

/// And this long in all where otherwise there is no answer: where a busy machine read too little of the logs, or the sample leaves it open
/// and all transactions will tell.
const OPEN_TIME: Duration = Duration::from_secs(60);

/// Compressing takes about as long as the sample said, at most this many times as long.
const EXACT_MARGIN: f64 = 1.3;

/// Bytes to keep of each class of size for each second of the budget: more than can be compressed in it.
const SAMPLE_BYTES_PER_SECOND: f64 = 2e6;

/// Bounds of the same.
const SAMPLE_BYTES: std::ops::RangeInclusive<u64> = 16 << 20..=1 << 30;

/// Any will do, as long as it is the same.
const SEED: u64 = 1;

/// One source with one replica is the smallest common set-up.
const REPLICAS: u32 = 1;

/// The budget of a run: when it began, and how long it may take.
#[derive(Debug, Clone, Copy)]
struct RunBudget {
    start: Instant,
    all: Duration,
}

impl RunBudget {
    fn at(self, share: f64) -> Instant {
        self.start + self.all.mul_f64(share)
    }
}

/// The logs of a run.
#[derive(Clone, Copy)]
struct MeasuredLogs<'l> {
    logs: &'l [MeasuredLog],
    keyring: Option<&'l Keyring>,
    generation: ServerGeneration,
}

impl LevelMeasurement {
    /// A sample at the levels that decide, within this time.
    pub(super) fn within(budget: Duration) -> Self {
        LevelMeasurement {
            levels: Vec::new(),
            server: None,
            exact: false,
            no_whole_files: true,
            budget: Some(budget),
            seed: SEED,
            replicas: REPLICAS,
            jobs: None,
        }
    }

    /// Measures the logs; `None`: none of them could be read. Logs that can't be read are reported and left out.
    pub(super) fn measure(
        &self,
        logs: &[MeasuredLog],
        keyring: Option<&Keyring>,
        start: Instant,
        depth: AdviceDepth,
    ) -> Result<(Option<Advice>, Exit)> {
        let generation = self.server.unwrap_or_else(|| generation::of_logs(logs, keyring));
        let levels = self.levels_of(generation, depth)?;
        let logs = MeasuredLogs { logs, keyring, generation };
        if self.exact {
            return self.measure_all(logs, &levels, start, depth);
        }
        let budget = RunBudget { start, all: self.budget.unwrap_or(BUDGET_TIME) };
        // The highest level that decides, or, where only higher ones were named, all of them.
        let deciding = levels.iter().take_while(|level| level.get() <= DECIDING_MAX).count();
        let (deciding, higher) = levels.split_at(if deciding > 0 { deciding } else { levels.len() });
        let commits = Arc::new(Commits::default());
        let (scanned, exit) = self.scan(logs, deciding, budget, &commits)?;
        let Some(ScannedLogs { mut advice, sampler, again }) = scanned else { return Ok((None, exit)) };
        let sampling = |error: binlogz_flow::Error| CommandFailure::reading(&"the sample", &error);
        let time = budget.all.mul_f64(COMMITS_SHARE).min(COMMITS_MAX);
        advice.measure_commits(&commits, true, time).map_err(|error| sampling(error.into()))?;
        let sample = sampler.into_drawn();
        let mut above = advice.of_levels(higher);
        let share = if higher.is_empty() { 1.0 } else { DECIDING_SHARE };
        let deadline = budget.at(share).max(Instant::now() + budget.all.mul_f64(SAMPLE_SHARE));
        let answered = match (self.budget, depth) {
            (None, AdviceDepth::Answer) => start + ANSWER_TIME,
            (Some(_), _) | (None, AdviceDepth::Details) => deadline,
        };
        self.sample(&mut advice, &sample, SampleEnd { answered, last: deadline }).map_err(sampling)?;
        // The exact pass takes memory of its own.
        let sample = (!higher.is_empty()).then_some(sample);
        if let Some(exact) = self.exactly(&advice, (logs, &again), deciding, (budget, depth)) {
            advice.take_exact(&exact);
        }
        if let Some(sample) = sample {
            let deadline = budget.at(HIGHER_SHARE);
            let end = SampleEnd { answered: deadline, last: deadline };
            self.sample(&mut above, &sample, end).map_err(sampling)?;
            advice.append(above);
        }
        self.whole_files(&mut advice, (logs.logs, &again.files), budget.at(1.0), depth).map_err(sampling)?;
        Ok((Some(advice), exit))
    }

    /// Compresses every transaction at every level.
    fn measure_all(
        &self,
        logs: MeasuredLogs<'_>,
        levels: &[CompressionLevel],
        start: Instant,
        depth: AdviceDepth,
    ) -> Result<(Option<Advice>, Exit)> {
        let commits = Arc::new(Commits::default());
        let mut advice = Advice::new(levels, self.replicas, logs.generation);
        let mut exit = Exit::Done;
        let mut measured = 0;
        let mut files = Vec::new();
        for log in logs.logs {
            let new_meter = || Ok(ExactMeter::new(levels, logs.generation, &commits)?);
            let bytes = LogBytes::open(log, logs.keyring);
            let of_log = bytes.and_then(|bytes| self.log(bytes, levels, (&|| false, &|_| ()), new_meter));
            measured += u32::from(taken((log, of_log), &mut advice, &mut files, &mut exit)?);
        }
        if measured == 0 {
            return Ok((None, exit));
        }
        let time = start.elapsed().mul_f64(COMMITS_SHARE).min(COMMITS_MAX);
        let sampling = |error: binlogz_flow::Error| CommandFailure::reading(&"the sample", &error);
        advice.measure_commits(&commits, false, time).map_err(|error| sampling(error.into()))?;
        // There is no budget: only few pieces represent whole files.
        let deadline = Instant::now() + EXACT_WHOLE_FILE;
        self.whole_files(&mut advice, (logs.logs, &files), deadline, depth).map_err(sampling)?;
        Ok((Some(advice), exit))
    }

    /// Reads the logs and draws a sample; where they can't all be read in time, the beginning of each.
    fn scan<'l>(
        &self,
        logs: MeasuredLogs<'l>,
        levels: &[CompressionLevel],
        budget: RunBudget,
        commits: &Arc<Commits>,
    ) -> Result<(Option<ScannedLogs<'l>>, Exit)> {
        let kept = (budget.all.as_secs_f64() * SAMPLE_BYTES_PER_SECOND) as u64;
        let kept = kept.clamp(*SAMPLE_BYTES.start(), *SAMPLE_BYTES.end());
        let sampler = Arc::new(Sampler::new(self.seed, kept));
        let mut advice = Advice::new(levels, self.replicas, logs.generation);
        let mut exit = Exit::Done;
        let mut again = RereadLogs { logs: Vec::new(), files: Vec::new(), seconds: 0.0 };
        let sizes = logs.logs.iter().map(|log| log.size().ok().flatten()).collect();
        let mut pace = ReadingPace::new(self.reading_ends(budget), sizes);
        for (number, log) in (0_u64..).zip(logs.logs) {
            let turn = pace.next_turn();
            let new_meter = || Ok(SampleMeter::new(&sampler, number, commits)?);
            let of_log = LogBytes::open(log, logs.keyring).and_then(|bytes| {
                self.log(bytes, levels, (&|| turn.is_over(), &|bytes| turn.has_read(bytes)), new_meter)
            });
            pace.add(&turn);
            match taken((log, of_log), &mut advice, &mut again.files, &mut exit)? {
                true => again.logs.push(log),
                false => sampler.forget(number),
            }
        }
        again.seconds = pace.seconds();
        warn_unread(&advice);
        // The workers have ended, so this is the only owner.
        let sampler = Arc::into_inner(sampler).filter(|_| !again.logs.is_empty());
        Ok((sampler.map(|sampler| ScannedLogs { advice, sampler, again }), exit))
    }

    /// Compresses the sample until it is large enough, or time is over.
    fn sample(
        &self,
        advice: &mut Advice,
        sample: &DrawnSample,
        end: SampleEnd,
    ) -> std::result::Result<(), binlogz_flow::Error> {
        let progress = WorkProgress::until("trying levels on a sample", end.answered);
        advice.measure_sample(sample, workers(self.jobs), end, &mut |bytes| progress.at(bytes))
    }

    /// Compresses all transactions at the levels that decide, if that fits into the time that is left; `None` if it doesn't, or
    /// would tell nothing new.
    fn exactly(
        &self,
        sampled: &Advice,
        (logs, again): (MeasuredLogs<'_>, &RereadLogs<'_>),
        levels: &[CompressionLevel],
        (budget, depth): (RunBudget, AdviceDepth),
    ) -> Option<Advice> {
        let (_, unread) = sampled.read_and_unread();
        if sampled.is_exact() || unread != Some(0) || again.files.len() < again.logs.len() {
            return None;
        }
        let is_open = sampled.recommendation().verdict == AdviceVerdict::CantTell;
        let end = self.exact_end(is_open, budget, depth);
        let seconds = again.seconds + sampled.exact_seconds(workers(self.jobs));
        // Without an answer, it is better to try than to be sure of the time.
        let margin = if is_open { 1.0 } else { EXACT_MARGIN };
        let needed = Duration::try_from_secs_f64(margin * seconds);
        if needed.map_or(true, |needed| Instant::now() + needed > end) {
            return None;
        }
        let mut exact = Advice::new(levels, self.replicas, logs.generation);
        for (log, file) in again.logs.iter().zip(&again.files) {
            let commits = Arc::new(Commits::default());
            let new_meter = || Ok(ExactMeter::new(levels, logs.generation, &commits)?);
            let bytes = LogBytes { log, size: Some(file.1), input: reread::again(file) };
            let of_log = self.log(bytes, levels, (&|| Instant::now() >= end, &|_| ()), new_meter);
            // A log that was read a moment ago is measured by its sample.
            exact.add(&of_log.ok()?.advice);
        }
        sampled.is_of_same_logs(&exact).then_some(exact)
    }

    /// How long logs are read.
    fn reading_ends(&self, budget: RunBudget) -> ReadingEnds {
        let whole = budget.at(SCAN_LAST_SHARE);
        let last = match self.budget {
            Some(_) => whole,
            None => RunBudget { all: OPEN_TIME, ..budget }.at(SCAN_LAST_SHARE),
        };
        ReadingEnds { usual: budget.at(SCAN_SHARE), whole, last }
    }

    /// When the sizes of all transactions have to be there. `is_open`: without them there is no answer.
    fn exact_end(&self, is_open: bool, budget: RunBudget, depth: AdviceDepth) -> Instant {
        match (self.budget, depth) {
            (Some(_), _) => budget.at(1.0),
            (None, _) if is_open => budget.start + OPEN_TIME,
            (None, AdviceDepth::Answer) => budget.start + ANSWER_TIME,
            (None, AdviceDepth::Details) => budget.at(1.0).min(Instant::now() + EXACT_MAX),
        }
    }

    /// Tries zstd on the whole files, where they can be read again and that is of interest.
    fn whole_files(
        &self,
        advice: &mut Advice,
        (logs, files): (&[MeasuredLog], &[RereadFile]),
        deadline: Instant,
        depth: AdviceDepth,
    ) -> std::result::Result<(), binlogz_flow::Error> {
        // Input from a pipe or a server can't be read again.
        if files.len() != logs.len() || self.no_whole_files || depth == AdviceDepth::Answer {
            return Ok(());
        }
        let _progress = WorkProgress::waiting("trying zstd on the whole files");
        advice.measure_whole_files(files, self.seed, workers(self.jobs), deadline)
    }

    /// The levels asked for, each once, the lowest first; of servers that have only one, that one.
    fn levels_of(&self, generation: ServerGeneration, depth: AdviceDepth) -> Result<Vec<CompressionLevel>> {
        let mut levels = self.levels.clone();
        if let Some(only) = generation.only_level() {
            return match levels.iter().find(|level| **level != only) {
                None => Ok(vec![only]),
                Some(other) => Err(CommandFailure::Line(format!(
                    "--levels has {other}, but this server always compresses at level {only}; --as mysql-9.7 predicts \
                     what a newer one would write"
                ))),
            };
        }
        if levels.is_empty() {
            let wanted =
                LEVELS.iter().filter(|level| depth == AdviceDepth::Details || **level <= DECIDING_MAX);
            levels.extend(wanted.map(|level| CompressionLevel::clamped(i64::from(*level))));
        }
        levels.sort();
        levels.dedup();
        Ok(levels)
    }

    /// Takes the transactions of a log through meters, one a worker.
    fn log<M: Measure<Part = MeterPart>>(
        &self,
        LogBytes { log, size, input }: LogBytes<'_>,
        levels: &[CompressionLevel],
        (stop, has_read): (&(dyn Fn() -> bool + Sync), &dyn Fn(u64)),
        new_meter: impl Fn() -> std::result::Result<M, binlogz_flow::Error> + Sync,
    ) -> Result<OneLog> {
        let places = reread::places(&input);
        let progress = WorkProgress::new(log, size);
        let input = progress.watch(input);
        let mut advice = Advice::new(levels, self.replicas, ServerGeneration::default());
        let add = |piece| {
            advice.add_piece(&piece);
            Ok(())
        };
        let summary = measure(input, workers(self.jobs), stop, new_meter, add, &mut |bytes| {
            has_read(bytes);
            progress.at(bytes);
        });
        let summary = summary.map_err(|error| CommandFailure::reading(log, &error))?;
        if summary.stopped && summary.cut.is_none() {
            advice.leave_out(size.map(|size| size.saturating_sub(summary.bytes_read)));
        }
        let again = places.map(|places| (places, summary.bytes_read));
        Ok(OneLog { advice, again, cut: summary.cut })
    }
}

/// A log that was read, and the file if it can be read again.
struct OneLog {
    advice: Advice,
    again: Option<RereadFile>,
    /// Where it ends inside an event.
    cut: Option<CutEvent>,
}

/// The bytes of a log.
struct LogBytes<'l> {
    log: &'l MeasuredLog,
    size: Option<u64>,
    input: Input,
}

impl<'l> LogBytes<'l> {
    fn open(log: &'l MeasuredLog, keyring: Option<&Keyring>) -> Result<Self> {
        Ok(LogBytes { log, size: log.size()?, input: log.open(keyring)? })
    }
}

/// What reading all logs gave.
struct ScannedLogs<'l> {
    advice: Advice,
    sampler: Sampler,
    again: RereadLogs<'l>,
}

/// The logs that were read, and the files of those that can be read again.
struct RereadLogs<'l> {
    logs: Vec<&'l MeasuredLog>,
    files: Vec<RereadFile>,
    /// How long reading took.
    seconds: f64,
}

/// The time of an exact run for the pieces that represent whole files.
const EXACT_WHOLE_FILE: Duration = Duration::from_secs(60);

/// Adds a log; what is wrong with it is reported. Returns whether it was read.
fn taken(
    (log, read): (&MeasuredLog, Result<OneLog>),
    advice: &mut Advice,
    files: &mut Vec<RereadFile>,
    exit: &mut Exit,
) -> Result<bool> {
    match read {
        Ok(OneLog { advice: of_log, again, cut }) => {
            if let MeasuredLog::Path(path) = log {
                mariadb::warn_of(path);
            }
            if let Some(cut) = cut {
                warn_cut(log, cut, "; they are left out");
            }
            advice.add(&of_log);
            files.extend(again);
            Ok(true)
        }
        Err(CommandFailure::Line(line)) => {
            complain(&line);
            *exit = Exit::Trouble;
            Ok(false)
        }
        Err(closed) => Err(closed),
    }
}

/// Reports how much was not read, and why.
fn warn_unread(advice: &Advice) {
    let (read, unread) = advice.read_and_unread();
    let of = match unread {
        Some(0) => return,
        Some(unread) => format!(" of {}", read + unread),
        None => String::new(),
    };
    warn(&format!("the budget allowed for {read}{of} bytes, the rest was not looked at"));
}
