//! The savings and costs of levels.

use binlogz_figures::{Bar, BarRow, Bars, Card, Chart, FigureUnit, Paint, Section, Series, TableCell};

use super::figures::{Repeats, optional};
use super::{ExperimentSummary, bar_row, card, percent_bars, share};
use crate::report::published::{LevelBytes, published};
use crate::results::Results;

const STEPS: [&str; 2] = ["load", "OLTP"];
/// The level that others are compared with: the server's default.
const DEFAULT: u8 = 3;

/// A level's figures for a step.
struct Figures {
    bytes: Option<f64>,
    seconds: Option<f64>,
    cpu: Option<f64>,
    zstd: Option<(u64, f64)>,
    spread: Option<f64>,
}

pub(super) fn summary(results: &Results) -> ExperimentSummary {
    let study = &published().levels;
    let mut rows = Vec::new();
    let mut plots = [Vec::new(), Vec::new()];
    let mut charts = Vec::new();
    let mut headlines = Vec::new();
    for ((place, step), plot) in STEPS.into_iter().enumerate().zip(&mut plots) {
        let plain = Repeats::of(results, "levels", "off", step).bytes();
        let mut sizes = Vec::new();
        let mut times = Vec::new();
        for published in &study.rows {
            let figures = figures(results, step, published.level);
            if figures.bytes.is_none() && figures.zstd.is_none() {
                continue;
            }
            sizes.push(sizes_of(place, published, &figures, plain));
            times.push(times_of(published.level, &figures));
            rows.push(row(step, place, published, &figures, plain));
            plot.push(vec![
                u64::from(published.level).into(),
                optional(figures.bytes, 0),
                optional(figures.zstd.map(|(bytes, _)| bytes as f64), 0),
                optional(figures.seconds, 3),
                optional(figures.cpu, 2),
            ]);
        }
        if !sizes.is_empty() {
            charts.extend([size_chart(step, sizes), time_chart(step, times)]);
        }
    }
    headlines.extend(STEPS.iter().filter_map(|step| conclusions(results, step).pop()));
    let mut conclusions: Vec<String> = STEPS.iter().flat_map(|step| conclusions(results, step)).collect();
    conclusions.push(format!("Published figures: {}. {}", study.source, study.note));
    let [load, oltp] = plots;
    ExperimentSummary {
        tables: vec![Section {
            name: "levels",
            title: "Levels: bytes of binary log and what they cost",
            columns: &[
                "step",
                "level",
                "bytes",
                "of_plain_percent",
                "spread_percent",
                "seconds",
                "server_cpu_s",
                "zstd_file_bytes",
                "zstd_file_s",
                "published_bytes",
                "published_zstd_file_bytes",
            ],
            rows,
        }],
        grids: Vec::new(),
        plots: vec![
            Section { name: "levels_load_plot", title: "Load", columns: PLOT, rows: load },
            Section { name: "levels_oltp_plot", title: "OLTP", columns: PLOT, rows: oltp },
        ],
        charts,
        headlines: headlines.into_iter().map(|line: String| line.trim_end_matches('.').to_owned()).collect(),
        conclusions,
    }
}

const PLOT: &[&str] = &["level", "bytes", "zstd_file_bytes", "seconds", "server_cpu_s"];

fn figures(results: &Results, step: &str, level: u8) -> Figures {
    let repeats = Repeats::of(results, "levels", &format!("level {level}"), step);
    Figures {
        bytes: repeats.bytes(),
        seconds: repeats.seconds(),
        cpu: repeats.cpu(),
        zstd: Repeats::of(results, "levels", "off", step).zstd(level),
        spread: repeats.spread_percent(|measured| Some(measured.cost.binlog_bytes as f64)),
    }
}

fn row(
    step: &str,
    place: usize,
    published: &LevelBytes,
    figures: &Figures,
    plain: Option<f64>,
) -> Vec<TableCell> {
    let (known, known_zstd) = match place {
        0 => (published.load, published.zstd_load),
        _ => (published.oltp, published.zstd_oltp),
    };
    let share = figures.bytes.zip(plain).map(|(bytes, plain)| bytes / plain * 100.0);
    vec![
        step.into(),
        u64::from(published.level).into(),
        optional(figures.bytes, 0),
        optional(share, 1),
        optional(figures.spread, 2),
        optional(figures.seconds, 3),
        optional(figures.cpu, 2),
        optional(figures.zstd.map(|(bytes, _)| bytes as f64), 0),
        optional(figures.zstd.map(|(_, seconds)| seconds), 3),
        known.into(),
        known_zstd.into(),
    ]
}

/// Each other level against the default one.
fn conclusions(results: &Results, step: &str) -> Vec<String> {
    let default = figures(results, step, DEFAULT);
    let mut said = Vec::new();
    for published in published().levels.rows.iter().filter(|published| published.level != DEFAULT) {
        let other = figures(results, step, published.level);
        let (Some(bytes), Some(default_bytes)) = (other.bytes, default.bytes) else { continue };
        let (Some(seconds), Some(default_seconds)) = (other.seconds, default.seconds) else { continue };
        said.push(format!(
            "{step}: level {} needs {:.1} % of the space of level {DEFAULT}, in {:.1} × the time.",
            published.level,
            bytes / default_bytes * 100.0,
            seconds / default_seconds,
        ));
    }
    said
}

/// The plain logs of the study, which are those of its measurements of space.
fn published_plain(place: usize) -> Option<f64> {
    let workload = if place == 0 { "load employees" } else { "sysbench run" };
    let row = published().space.rows.iter().find(|row| row.workload == workload);
    row.map(|row| row.plain as f64)
}

fn sizes_of(place: usize, published: &LevelBytes, figures: &Figures, plain: Option<f64>) -> BarRow {
    let known = if place == 0 { published.load } else { published.oltp };
    let zstd = figures.zstd.map(|(bytes, _)| bytes as f64);
    bar_row(
        &format!("level {}", published.level),
        "",
        [
            share(0, figures.bytes, plain, FigureUnit::Bytes),
            share(1, zstd, plain, FigureUnit::Bytes),
            share(2, Some(known as f64), published_plain(place), FigureUnit::Bytes),
        ],
    )
}

fn times_of(level: u8, figures: &Figures) -> BarRow {
    let bars = [figures.seconds, figures.cpu].into_iter().enumerate();
    bar_row(&format!("level {level}"), "", bars.map(|(series, seconds)| Some(Bar::new(series, seconds?))))
}

fn size_chart(step: &str, rows: Vec<BarRow>) -> Card {
    let series = [
        ("by the server, here", Paint::First),
        ("whole file by zstd, here", Paint::Third),
        ("by the server, published", Paint::Elsewhere),
    ];
    card(
        &format!("Levels, {step}: size in percent of the plain log"),
        "Each in percent of its own plain log. In the study's server the level had no effect.",
        percent_bars(&series, rows),
    )
}

fn time_chart(step: &str, rows: Vec<BarRow>) -> Card {
    let series =
        vec![Series::new("time it took", Paint::Second), Series::new("processor time", Paint::Fourth)];
    let bars = Bars { unit: FigureUnit::Seconds, series, rows, full: 0.0 };
    card(&format!("Levels, {step}: what they cost"), "Of the server, for the whole step.", Chart::Bars(bars))
}
