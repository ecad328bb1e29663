//! What levels save and cost.

use binlogz_figures::{Cell, Chart, Section, Series};

use super::Summary;
use super::figures::{Repeats, difference_percent, optional};
use crate::report::published::{Level, published};
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

pub(super) fn summary(results: &Results) -> Summary {
    let study = &published().levels;
    let (mut rows, mut plots) = (Vec::new(), [Vec::new(), Vec::new()]);
    for ((place, step), plot) in STEPS.into_iter().enumerate().zip(&mut plots) {
        let plain = Repeats::of(results, "levels", "off", step).bytes();
        for published in &study.rows {
            let figures = figures(results, step, published.level);
            if figures.bytes.is_none() && figures.zstd.is_none() {
                continue;
            }
            rows.push(row(step, place, published, &figures, plain));
            plot.push(vec![
                u64::from(published.level).into(),
                optional(figures.bytes, 0),
                optional(figures.zstd.map(|(bytes, _)| bytes as f64), 0),
                optional(figures.seconds, 3),
                optional(figures.cpu, 2),
            ]);
        }
    }
    let mut conclusions: Vec<String> = STEPS.iter().flat_map(|step| conclusions(results, step)).collect();
    conclusions.push(format!("Published figures: {}. {}", study.source, study.note));
    let [load, oltp] = plots;
    Summary {
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
        plots: vec![
            Section { name: "levels_load_plot", title: "Load", columns: PLOT, rows: load },
            Section { name: "levels_oltp_plot", title: "OLTP", columns: PLOT, rows: oltp },
        ],
        charts: vec![chart("Levels: load", "levels_load_plot"), chart("Levels: OLTP", "levels_oltp_plot")],
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

fn row(step: &str, place: usize, published: &Level, figures: &Figures, plain: Option<f64>) -> Vec<Cell> {
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
        let change = difference_percent(bytes, default_bytes);
        let what = if change <= 0.0 { "less" } else { "more" };
        said.push(format!(
            "{step}: level {} needs {:.1} % {what} space than level {DEFAULT}, for {:.1} × the time.",
            published.level,
            change.abs(),
            seconds / default_seconds,
        ));
    }
    said
}

fn chart(title: &'static str, section: &'static str) -> Chart {
    Chart {
        title,
        note: "Bytes by the server, and of the plain file by zstd as a whole; the server's seconds."
            .to_owned(),
        section,
        level: None,
        x: &["level"],
        x_unit: None,
        axis: "",
        series: vec![
            Series::bytes("by the server", "bytes"),
            Series::bytes("whole file by zstd", "zstd_file_bytes"),
            Series::seconds(),
        ],
        top: 8,
    }
}
