//! The steps of a run, their order, and its approximate duration and disk space, computed beforehand.
//!
//! Estimates are for a quiet machine with two cores (AMD EPYC, MySQL 9.7.4, 2026-11-22), from the processor
//! time that the steps took there at small scales. During a run, the finished steps correct the estimate of
//! the rest.

use std::time::{Duration, Instant};

use binlogz_figures::{Section, TableCell};
use binlogz_sandbox::random::Random;
use binlogz_sandbox::workload::Workload;

use crate::load::work;
use crate::preset::experiment::{CellSetting, Experiment, Work};
use crate::preset::options::ExperimentOptions;
use crate::results::Results;

/// A cell to run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlannedCell<'a> {
    pub(crate) experiment: &'a Experiment,
    pub(crate) setting: &'a CellSetting,
    pub(crate) repeat: u32,
}

/// The estimated cost of a step or a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct CostEstimate {
    pub(crate) seconds: f64,
    /// Bytes of binary log, as if nothing were compressed.
    pub(crate) log_bytes: f64,
    /// Bytes of tables, including undo logs.
    pub(crate) data_bytes: f64,
}

/// Bytes a second that one core compresses at a level, of transactions of any size; those between are as the next
/// higher one.
const SPEEDS: [(u8, f64); 5] = [(1, 200e6), (3, 120e6), (11, 20e6), (19, 4.5e6), (22, 2.2e6)];
/// Large files as a whole are slower, since zstd's window and tables are larger.
const WHOLE_FILE: f64 = 0.6;

/// Seconds of a row of sysbench's tables that is loaded by one connection.
const ROW_S: f64 = 14e-6;
/// Bytes of such a row in a table with its index, and in the log.
const ROW_DATA: f64 = 260.0;
const ROW_LOG: f64 = 191.0;
/// Seconds until a connection is there, with one more when thousands are.
const CONNECTION_S: f64 = 0.003;
/// Seconds of a statement that is prepared before a timed step; sysbench's scripts have up to four for each table.
const PREPARED_S: f64 = 40e-6;
/// Transactions a second of a timed step (a high guess), and bytes of log and table for each.
const TPS: f64 = 20_000.0;
const TPS_BYTES: [f64; 2] = [600.0, 300.0];
/// Bytes a second of the loop of updates.
const LOOP_BYTES: f64 = 60e6;
/// The time for servers of all kinds: each is set up, waited for and removed.
const REPLICAS_S: f64 = 90.0;

/// How far the estimates are off here.
#[derive(Debug)]
pub(crate) struct EstimatePace {
    begin: Instant,
    done_s: f64,
    left_s: f64,
}

impl EstimatePace {
    pub(crate) fn new(estimates: &[CostEstimate]) -> EstimatePace {
        let left_s = estimates.iter().map(|estimate| estimate.seconds).sum();
        EstimatePace { begin: Instant::now(), done_s: 0.0, left_s }
    }

    /// A cell is done.
    pub(crate) fn done(&mut self, estimate: &CostEstimate) {
        self.done_s += estimate.seconds;
        self.left_s = (self.left_s - estimate.seconds).max(0.0);
    }

    /// The time for the cells that are not done.
    pub(crate) fn left(&self) -> Duration {
        Duration::from_secs_f64(self.left_after(self.begin.elapsed().as_secs_f64()))
    }

    fn left_after(&self, elapsed_s: f64) -> f64 {
        // Before a cell is done, the estimate is all there is.
        if self.done_s > 0.0 { self.left_s * elapsed_s / self.done_s } else { self.left_s }
    }
}

/// The time of a cell outside its steps: dropping schemas, purging logs.
const AROUND_S: f64 = 1.0;

/// Each experiment's settings in another order each time, so that none is always first.
pub(crate) fn planned<'a>(
    experiments: &'a [Experiment],
    options: &ExperimentOptions,
) -> Vec<PlannedCell<'a>> {
    let mut random = Random::new(options.seed);
    let mut planned = Vec::new();
    for experiment in experiments {
        for repeat in 1..=options.repeat {
            let mut settings: Vec<_> = experiment.settings.iter().collect();
            for end in (1..settings.len()).rev() {
                settings.swap(end, random.below(end + 1));
            }
            planned.extend(settings.into_iter().map(|setting| PlannedCell { experiment, setting, repeat }));
        }
    }
    planned
}

/// Whether a cell is complete in the results.
pub(crate) fn is_done(cell: &PlannedCell<'_>, results: &Results) -> bool {
    results.has(cell.experiment.name, &cell.setting.name, cell.repeat)
        || results.is_refused(cell.experiment.name, &cell.setting.name)
}

impl PlannedCell<'_> {
    /// The cell's cost; `prepared`: an earlier cell has made its data.
    pub(crate) fn estimate(&self, options: &ExperimentOptions, prepared: bool) -> CostEstimate {
        let mut cell = CostEstimate { seconds: AROUND_S, ..CostEstimate::default() };
        for step in &self.experiment.steps {
            let estimate = of_work(step.work, options);
            cell.data_bytes += estimate.data_bytes;
            if prepared && !step.measured {
                continue;
            }
            cell.seconds += estimate.seconds;
            cell.log_bytes += estimate.log_bytes;
            if let (true, Some(level)) = (step.measured, self.setting.level_of_compression()) {
                let timed = matches!(step.work, Work::Timed { .. } | Work::UpdateLoop);
                cell.seconds += if timed { 0.0 } else { estimate.log_bytes / speed(level) };
            }
            if step.measured && self.repeat == 1 {
                let levels = self.setting.zstd_levels.iter();
                cell.seconds +=
                    levels.map(|level| estimate.log_bytes / speed(*level) / WHOLE_FILE).sum::<f64>();
            }
        }
        cell
    }
}

/// The estimates of all cells, in their order; of cells that share their data the first one makes it.
pub(crate) fn estimates(
    planned: &[PlannedCell<'_>],
    results: Option<&Results>,
    options: &ExperimentOptions,
) -> Vec<CostEstimate> {
    let mut standing = None;
    let mut estimates = Vec::new();
    for cell in planned {
        let name = cell.experiment.name;
        if results.is_some_and(|results| is_done(cell, results)) {
            estimates.push(CostEstimate::default());
            continue;
        }
        estimates.push(cell.estimate(options, standing == Some(name)));
        standing = cell.experiment.keeps_data.then_some(name);
    }
    estimates
}

/// The plan as a table: a row for each experiment and setting, and one for replicas where they are set up.
pub(crate) fn section(
    planned: &[PlannedCell<'_>],
    replicas: bool,
    results: Option<&Results>,
    options: &ExperimentOptions,
) -> Section {
    let estimates = estimates(planned, results, options);
    let mut rows: Vec<(&str, &str, u64, u64, f64)> = Vec::new();
    for (cell, estimate) in planned.iter().zip(&estimates) {
        let key = (cell.experiment.name, cell.setting.name.as_str());
        let done = u64::from(results.is_some_and(|results| is_done(cell, results)));
        match rows.iter_mut().find(|row| (row.0, row.1) == key) {
            Some((_, _, cells, known, seconds)) => {
                (*cells, *known, *seconds) = (*cells + 1, *known + done, *seconds + estimate.seconds);
            }
            None => rows.push((key.0, key.1, 1, done, estimate.seconds)),
        }
    }
    if replicas {
        let done = results.is_some_and(|results| !results.replicas.is_empty());
        rows.push(("replicas", "all", 1, done.into(), if done { 0.0 } else { REPLICAS_S }));
    }
    let (cells, done, seconds) =
        rows.iter().fold((0, 0, 0.0), |sum, row| (sum.0 + row.2, sum.1 + row.3, sum.2 + row.4));
    rows.push(("all", "", cells, done, seconds));
    let minutes = |seconds: f64| TableCell::decimal(seconds / 60.0, 1);
    Section {
        name: "plan",
        title: "The plan: minutes are estimates for a quiet machine with two cores",
        columns: &["experiment", "setting", "cells", "done", "minutes"],
        rows: rows
            .into_iter()
            .map(|(experiment, setting, cells, done, seconds)| {
                vec![experiment.into(), setting.into(), cells.into(), done.into(), minutes(seconds)]
            })
            .collect(),
    }
}

/// Without compression.
fn of_work(work: Work, options: &ExperimentOptions) -> CostEstimate {
    let ExperimentOptions { scale, time_s, .. } = *options;
    let of = |seconds: f64, log_mb: f64, data_mb: f64| CostEstimate {
        seconds: seconds * scale,
        log_bytes: log_mb * 1e6 * scale,
        data_bytes: data_mb * 1e6 * scale,
    };
    match work {
        Work::Workload(Workload::Employees) => of(30.0, 62.0, 150.0),
        Work::Workload(Workload::BulkUpdate) => of(8.0, 75.0, 150.0),
        Work::Workload(Workload::SysbenchPrepare) => of(7.0, 76.0, 110.0),
        Work::Workload(Workload::SysbenchRun) => of(14.0, 26.0, 20.0),
        Work::Workload(Workload::Delete) => of(14.0, 47.0, 30.0),
        Work::LargeTable => of(work::LARGE_ROWS * ROW_S, 210.0, 290.0),
        Work::RowUpdates => of(1.5, 3.4, 5.0),
        Work::RangeUpdates => of(55.0, 1912.0, 300.0),
        Work::TextTable => of(10.0, 90.0, 150.0),
        Work::UpdateLoop => CostEstimate {
            seconds: time_s + 10.0 * scale,
            log_bytes: LOOP_BYTES * time_s,
            data_bytes: LOOP_BYTES * time_s,
        },
        Work::Tables(tables) => {
            let rows = f64::from(tables.count) * f64::from(tables.rows);
            CostEstimate {
                seconds: rows * ROW_S / f64::from(work::loaders(tables).min(2))
                    + f64::from(tables.count) * 0.1,
                log_bytes: rows * ROW_LOG,
                data_bytes: rows * ROW_DATA,
            }
        }
        Work::Timed { script, tables, threads, rate } => {
            let threads = f64::from(threads);
            let prepared = if script == "oltp_insert" { 0.0 } else { 4.0 * f64::from(tables.count) };
            let transactions = rate.map_or(TPS, f64::from) * time_s;
            let [log, data] = if script == "oltp_point_select" { [0.0, 0.0] } else { TPS_BYTES };
            CostEstimate {
                seconds: time_s.ceil() + 0.5 + threads * (CONNECTION_S + prepared * PREPARED_S),
                log_bytes: transactions * log,
                data_bytes: transactions * data,
            }
        }
    }
}

fn speed(level: u8) -> f64 {
    let [.., (_, slowest)] = SPEEDS;
    SPEEDS.iter().find(|(known, _)| *known >= level).map_or(slowest, |(_, speed)| *speed)
}
