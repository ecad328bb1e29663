//! Inserts a second by connections and flush policy.

use std::collections::BTreeSet;

use binlogz_figures::{
    Card, Chart, ChartAxis, ChartLine, FigureUnit, LineChart, Paint, Section, Series, TableCell,
};

use super::figures::{Repeats, optional};
use super::{ExperimentSummary, card};
use crate::preset::{OPEN_LOOP, insert_step};
use crate::report::published::{Insert, published};
use crate::results::Results;

const SETTINGS: [&str; 6] = [
    "flush 0, sync 0",
    "flush 0, sync 1",
    "flush 1, sync 0",
    "flush 1, sync 1",
    "flush 2, sync 0",
    "flush 2, sync 1",
];

/// No client waits longer for a row than until its next one.
const WAIT_MAX_MS: f64 = 1000.0;
/// Rows come at random times: a shortfall of up to this many standard deviations is chance.
const SIGMAS: f64 = 4.0;

pub(super) fn summary(results: &Results) -> ExperimentSummary {
    let study = &published().insert;
    let mut rows = Vec::new();
    let mut plot = Vec::new();
    let tried = tried(results);
    for &threads in &tried {
        let known = study.rows.iter().find(|row| row.threads == threads);
        let medians = SETTINGS.map(|setting| tps(results, setting, threads));
        if medians.iter().all(Option::is_none) {
            continue;
        }
        for (setting, median) in SETTINGS.into_iter().zip(medians) {
            let Some(median) = median else { continue };
            let repeats = Repeats::of(results, "insert", setting, &insert_step(threads));
            rows.push(vec![
                u64::from(threads).into(),
                setting.into(),
                TableCell::decimal(median, 1),
                optional(repeats.spread_percent(|measured| measured.seen.tps), 1),
                optional(repeats.median(|measured| measured.seen.p95_ms), 3),
                optional(repeats.median(|measured| measured.seen.p99_ms), 3),
                optional(repeats.cpu(), 2),
                optional(known.and_then(|known| published_tps(known, setting)), 2),
            ]);
        }
        let mut row: Vec<TableCell> = vec![u64::from(threads).into()];
        row.extend([3, 4, 0].map(|place: usize| optional(medians.get(place).copied().flatten(), 1)));
        row.push(optional(known.and_then(|known| known.policy_1), 2));
        row.push(optional(known.and_then(|known| known.policy_2), 2));
        plot.push(row);
    }
    let mut conclusions: Vec<String> =
        SETTINGS.iter().filter_map(|setting| peak(results, &tried, setting)).collect();
    conclusions.extend(SETTINGS.iter().filter_map(|setting| open_loop(results, setting)));
    conclusions.push(format!("Published figures: {}. {}", study.source, study.note));
    ExperimentSummary {
        tables: vec![Section {
            name: "insert",
            title: "Inserts a second by connections, innodb_flush_log_at_trx_commit and sync_binlog",
            columns: &[
                "connections",
                "setting",
                "tps",
                "spread_percent",
                "p95_ms",
                "p99_ms",
                "server_cpu_s",
                "published_tps",
            ],
            rows,
        }],
        grids: Vec::new(),
        charts: chart(&plot).into_iter().collect(),
        headlines: headline(results, &tried).into_iter().collect(),
        plots: vec![Section {
            name: "insert_plot",
            title: "Inserts",
            columns: &[
                "connections",
                "flush_1_sync_1",
                "flush_2_sync_0",
                "flush_0_sync_0",
                "published_1",
                "published_2",
            ],
            rows: plot,
        }],
        conclusions,
    }
}

/// Numbers of connections, from the names of the steps.
fn tried(results: &Results) -> Vec<u32> {
    let cells = results.cells.iter().filter(|cell| cell.experiment == "insert");
    let steps = cells.flat_map(|cell| &cell.steps);
    let tried = steps.filter_map(|measured| measured.step.strip_suffix(" threads")?.parse().ok());
    tried.collect::<BTreeSet<u32>>().into_iter().collect()
}

fn tps(results: &Results, setting: &str, threads: u32) -> Option<f64> {
    Repeats::of(results, "insert", setting, &insert_step(threads)).median(|measured| measured.seen.tps)
}

/// The study does not mention `sync_binlog`: we show its figures where the binary log is synced like the redo log.
fn published_tps(known: &Insert, setting: &str) -> Option<f64> {
    match setting {
        "flush 1, sync 1" => known.policy_1,
        "flush 2, sync 0" => known.policy_2,
        _ => None,
    }
}

/// Where the rate peaks, and the result of the rule of thumb.
fn peak(results: &Results, tried: &[u32], setting: &str) -> Option<String> {
    let rates: Vec<(u32, f64)> =
        tried.iter().filter_map(|threads| Some((*threads, tps(results, setting, *threads)?))).collect();
    let (best, most) = *rates.iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
    let machine = &results.machine;
    let rule = machine.cores as u32 * 2 + machine.disks as u32;
    let (near, there) = *rates.iter().min_by_key(|(threads, _)| threads.abs_diff(rule))?;
    Some(format!(
        "Inserts with {setting}: most, {most:.0} a second, with {best} connections; cores × 2 + disks is {rule}, \
         and with {near} connections there are {there:.0} ({:.0} % of that).",
        there / most * 100.0
    ))
}

/// Whether this many clients that each insert a row a second are served.
fn open_loop(results: &Results, setting: &str) -> Option<String> {
    let repeats = Repeats::of(results, "insert", setting, OPEN_LOOP);
    let seconds = repeats.seconds()?;
    let clients = crate::preset::open_loop_clients(results.options.scale);
    if repeats.any(|measured| measured.seen.overrun) {
        return Some(format!("{clients} clients that insert a row a second each, {setting}: not held."));
    }
    let done = repeats.median(|measured| measured.seen.transactions.map(|count| count as f64))?;
    let rate = done / seconds;
    let p99 = repeats.median(|measured| measured.seen.p99_ms)?;
    let time = results.options.time_s.ceil();
    let least = f64::from(clients) - SIGMAS * (f64::from(clients) / time).sqrt();
    let held = if rate >= least && p99 < WAIT_MAX_MS { "held" } else { "not held" };
    Some(format!(
        "{clients} clients that insert a row a second each, {setting}: {held}, {rate:.0} a second, 99 % within {p99:.1} ms."
    ))
}

/// The most, of all settings.
fn headline(results: &Results, tried: &[u32]) -> Option<String> {
    let rates = SETTINGS.into_iter().flat_map(|setting| {
        tried.iter().filter_map(move |threads| Some((setting, *threads, tps(results, setting, *threads)?)))
    });
    let (setting, threads, most) = rates.max_by(|one, other| one.2.total_cmp(&other.2))?;
    let connections = if threads == 1 { "connection" } else { "connections" };
    Some(format!(
        "At most {} inserts a second, with {threads} {connections} and {setting}",
        FigureUnit::Count.text(most)
    ))
}

/// How the rate grows with connections: each line in percent of its own best, since machines differ by far more.
fn chart(plot: &[Vec<TableCell>]) -> Option<Card> {
    const LINES: [(&str, Paint); 5] = [
        ("flush 1, sync 1", Paint::First),
        ("flush 2, sync 0", Paint::Second),
        ("flush 0, sync 0", Paint::Third),
        ("published, flush 1", Paint::Elsewhere),
        ("published, flush 2", Paint::Quiet),
    ];
    let number = |cell: &TableCell| match cell {
        TableCell::Number(number) => Some(*number as f64),
        TableCell::Decimal(units, places) => Some(*units as f64 / 10f64.powi((*places).into())),
        TableCell::Text(_) | TableCell::Moment(..) | TableCell::Null => None,
    };
    let lines = LINES.into_iter().enumerate().filter_map(|(place, (label, paint))| {
        let values: Vec<Option<f64>> = plot.iter().map(|row| row.get(place + 1).and_then(number)).collect();
        let most = values.iter().flatten().copied().fold(0.0, f64::max);
        let percent = |value: f64| 100.0 * value / most;
        (most > 0.0).then(|| ChartLine {
            series: Series::new(format!("{label}: at most {}/s", FigureUnit::Count.text(most)), paint),
            values: values.into_iter().map(|value| value.map(percent)).collect(),
        })
    });
    let at = plot.iter().filter_map(|row| row.first().map(|threads| threads.for_people()));
    let lines = LineChart {
        unit: FigureUnit::Percent,
        at: ChartAxis::Names(at.collect()),
        lines: lines.collect(),
        is_filled: false,
        has_dots: true,
        full: 100.0,
    };
    (!lines.lines.is_empty()).then(|| Card {
        is_wide: true,
        ..card(
            "Inserts a second by connections, in percent of each line's best",
            "By innodb_flush_log_at_trx_commit and sync_binlog. The study had 4 cores and a hard disk: compare where the lines \
             bend, not how high they are.",
            Chart::Lines(lines),
        )
    })
}
