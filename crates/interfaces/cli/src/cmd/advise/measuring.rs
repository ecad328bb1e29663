//! Measures logs: reads all of them, and compresses a sample of their transactions at each level, within the time
//! allowed.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use binlogz_advise::{Advice, Commits, ExactMeter, LEVELS, MeterPart, SampleMeter, Sampler};
use binlogz_encryption::Keyring;
use binlogz_flow::measure::{Measure, MeasureSummary, measure};
use binlogz_flow::{Input, ReadAt};
use binlogz_payload::{CompressionLevel, ServerGeneration};
use clap::Args;

use super::measured_log::MeasuredLog;
use super::{BUDGET, generation};
use crate::Exit;
use crate::cmd::workers;
use crate::failure::{CommandFailure, Result, complain, warn, warn_cut};
use crate::mariadb;
use crate::progress::WorkProgress;
use crate::units;

/// The levels measured, and for how long.
#[derive(Debug, Clone, Args)]
pub(super) struct LevelMeasurement {
    /// Levels to measure, 1 to 22 [default: 1,3,6,9,15,19,22]
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
    /// Time for the whole run: 30s, 5m, or a number of seconds
    #[arg(long, value_name = "TIME", default_value = BUDGET, value_parser = units::duration_or_seconds)]
    budget: Duration,
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

/// The part of the budget that may be spent on reading the logs, and on reading them and on whole files.
const SCAN_SHARE: f64 = 0.4;
const WHOLE_FILE_SHARE: f64 = 0.5;

/// The part of the budget that the sample gets at least, however long the rest took.
const SAMPLE_SHARE: f64 = 0.4;

/// The share of the time, in an exact run of the time for compressing, that is spent on finding how much longer commits
/// take; and how much of it is of any use.
const COMMITS_SHARE: f64 = 0.1;
const COMMITS_MAX: Duration = Duration::from_secs(2);

/// Bytes to keep of each class of size for each second of the budget: more than can be compressed in it.
const SAMPLE_BYTES_PER_SECOND: f64 = 2e6;

/// Bounds of the same.
const SAMPLE_BYTES: std::ops::RangeInclusive<u64> = 16 << 20..=1 << 30;

/// Any will do, as long as it is the same.
const SEED: u64 = 1;

/// One source with one replica is the smallest common set-up.
const REPLICAS: u32 = 1;

/// The parts of a run in time.
#[derive(Debug, Clone, Copy)]
struct Deadlines {
    scan: Instant,
    whole_file: Instant,
    all: Instant,
}

impl LevelMeasurement {
    /// A sample at all levels, within this time.
    pub(super) fn within(budget: Duration) -> Self {
        LevelMeasurement {
            levels: Vec::new(),
            server: None,
            exact: false,
            no_whole_files: true,
            budget,
            seed: SEED,
            replicas: REPLICAS,
            jobs: None,
        }
    }

    /// Measures the logs; `None`: none of them could be read. Logs that can't be read are reported and left out.
    pub(super) fn measure(
        mut self,
        logs: &[MeasuredLog],
        keyring: Option<&Keyring>,
        start: Instant,
    ) -> Result<(Option<Advice>, Exit)> {
        let part = |share| start + self.budget.mul_f64(share);
        let deadlines =
            Deadlines { scan: part(SCAN_SHARE), whole_file: part(WHOLE_FILE_SHARE), all: part(1.0) };
        let mut exit = Exit::Done;
        let generation = self.server.unwrap_or_else(|| generation::of_logs(logs, keyring));
        self.levels = self.levels_of(generation)?;
        let levels = self.levels.clone();
        let mut advice = Advice::new(&levels, self.replicas, generation);
        let mut measured = 0;
        let kept = (self.budget.as_secs_f64() * SAMPLE_BYTES_PER_SECOND) as u64;
        let kept = kept.clamp(*SAMPLE_BYTES.start(), *SAMPLE_BYTES.end());
        let sampler = Arc::new(Sampler::new(self.seed, kept));
        let commits = Arc::new(Commits::default());
        let mut files = Vec::new();
        for (number, log) in logs.iter().enumerate() {
            let number = number as u64;
            let of_log = match self.exact {
                true => {
                    self.log(log, keyring, &|| false, || Ok(ExactMeter::new(&levels, generation, &commits)?))
                }
                false => self.log(log, keyring, &|| Instant::now() >= deadlines.scan, || {
                    Ok(SampleMeter::new(&sampler, number, &commits)?)
                }),
            };
            match of_log {
                Ok((of_log, places)) => {
                    advice.add(&of_log);
                    measured += 1;
                    files.extend(places);
                }
                Err(CommandFailure::Line(line)) => {
                    sampler.forget(number);
                    complain(&line);
                    exit = Exit::Trouble;
                }
                Err(closed) => return Err(closed),
            }
        }
        if measured == 0 {
            return Ok((None, exit));
        }
        let all_so_far = if self.exact { start.elapsed() } else { self.budget };
        advice
            .measure_commits(&commits, !self.exact, all_so_far.mul_f64(COMMITS_SHARE).min(COMMITS_MAX))
            .map_err(|error| CommandFailure::reading(&"the sample", &error.into()))?;
        // Input from a pipe or a server can't be read again.
        let all_files = if files.len() == logs.len() { files.as_slice() } else { &[] };
        self.measure_levels(&mut advice, sampler, all_files, deadlines)
            .map_err(|error| CommandFailure::reading(&"the sample", &error))?;
        Ok((Some(advice), exit))
    }

    /// Measures the levels once all logs were read.
    fn measure_levels(
        &self,
        advice: &mut Advice,
        sampler: Arc<Sampler>,
        files: &[(Arc<dyn ReadAt>, u64)],
        deadlines: Deadlines,
    ) -> Result<(), binlogz_flow::Error> {
        let workers = workers(self.jobs);
        // An exact run has no budget: only few pieces represent whole files.
        let deadline = if self.exact { Instant::now() + EXACT_WHOLE_FILE } else { deadlines.whole_file };
        if !files.is_empty() && !self.no_whole_files {
            let _progress = WorkProgress::waiting("trying zstd on the whole files");
            advice.measure_whole_files(files, self.seed, workers, deadline)?;
        }
        if self.exact {
            return Ok(());
        }
        // The workers have ended, so this is the only owner.
        let Some(sampler) = Arc::into_inner(sampler) else { return Ok(()) };
        let deadline = deadlines.all.max(Instant::now() + self.budget.mul_f64(SAMPLE_SHARE));
        let progress = WorkProgress::until("trying levels on a sample", deadline);
        advice.measure_sample(sampler, workers, deadline, &mut |bytes| progress.at(bytes))
    }

    /// The levels asked for, each once, the lowest first; of servers that have only one, that one.
    fn levels_of(&self, generation: ServerGeneration) -> Result<Vec<CompressionLevel>> {
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
            levels.extend(LEVELS.map(|level| CompressionLevel::clamped(level.into())));
        }
        levels.sort();
        levels.dedup();
        Ok(levels)
    }

    /// Takes the transactions of a log through meters, one a worker.
    fn log<M: Measure<Part = MeterPart>>(
        &self,
        log: &MeasuredLog,
        keyring: Option<&Keyring>,
        stop: &(dyn Fn() -> bool + Sync),
        new_meter: impl Fn() -> Result<M, binlogz_flow::Error> + Sync,
    ) -> Result<(Advice, Option<RereadFile>)> {
        let size = log.size()?;
        let input = log.open(keyring)?;
        if let MeasuredLog::Path(path) = log {
            mariadb::warn_of(path);
        }
        let places = places(&input);
        let progress = WorkProgress::new(log, size);
        let input = progress.watch(input);
        let mut advice = Advice::new(&self.levels, self.replicas, ServerGeneration::default());
        let add = |piece| {
            advice.add_piece(&piece);
            Ok(())
        };
        let summary =
            measure(input, workers(self.jobs), stop, new_meter, add, &mut |bytes| progress.at(bytes));
        let summary = summary.map_err(|error| CommandFailure::reading(log, &error))?;
        if summary.stopped && summary.cut.is_none() {
            advice.leave_out(size.map(|size| size.saturating_sub(summary.bytes_read)));
        }
        Ok((advice, read_to_end(log, &summary, size, places)))
    }
}

/// A file that can be read again, and how much of it was read.
type RereadFile = (Arc<dyn ReadAt>, u64);

/// The time of an exact run for the pieces that represent whole files.
const EXACT_WHOLE_FILE: Duration = Duration::from_secs(60);

fn places(input: &Input) -> Option<Arc<dyn ReadAt>> {
    match input {
        Input::Places(places) => Some(Arc::clone(places)),
        Input::Seek { .. } | Input::Stream(_) | Input::Sparse { .. } | Input::Live(_) | Input::Pipe(_) => {
            None
        }
    }
}

/// Reports which part of a log was not read, and why.
fn read_to_end(
    log: &MeasuredLog,
    summary: &MeasureSummary,
    size: Option<u64>,
    places: Option<Arc<dyn ReadAt>>,
) -> Option<RereadFile> {
    if let Some(cut) = summary.cut {
        warn_cut(log, cut, "; they are left out");
    }
    if summary.stopped {
        let of = size.map_or_else(String::new, |size| format!(" of {size}"));
        warn(&format!(
            "{log}: the budget allowed for {}{of} bytes, the rest was not looked at",
            summary.bytes_read
        ));
    }
    Some((places?, summary.bytes_read))
}
