//! Reads, which write no log, and writes, with compression off and on.

use binlogz_figures::{Cell, Chart, Section, Series, Unit};

use super::Summary;
use super::figures::{Repeats, difference_percent, optional};
use crate::results::Results;

const SETTINGS: [&str; 2] = ["off", "level 3"];
const STEPS: [&str; 2] = ["point select", "write only"];
/// The study shows its tables as pictures: this is the only text.
const PUBLISHED: &str = "Published (study of 2020-11, 240 threads, 120 tables of 100,000 rows, MySQL 8.0.19 and 8.0.20): \
    compression costs about 1 % of point selects a second and 1 % more processor time. A point select writes no binary \
    log: the study measured what the feature costs while it does nothing.";

pub(super) fn summary(results: &Results) -> Summary {
    let (mut rows, mut conclusions) = (Vec::new(), Vec::new());
    for step in STEPS {
        let of = |setting: &str| Repeats::of(results, "point-select", setting, step);
        for setting in SETTINGS {
            let repeats = of(setting);
            let Some(tps) = repeats.median(|measured| measured.seen.tps) else { continue };
            let cpu = repeats
                .median(|measured| Some(measured.cost.server_cpu_s? / measured.seen.elapsed_s * 100.0));
            rows.push(vec![
                step.into(),
                setting.into(),
                results.server.variable("version").into(),
                Cell::decimal(tps, 1),
                optional(repeats.spread_percent(|measured| measured.seen.tps), 1),
                optional(repeats.median(|measured| measured.seen.qps), 1),
                optional(repeats.median(|measured| measured.seen.p50_ms), 3),
                optional(repeats.median(|measured| measured.seen.p95_ms), 3),
                optional(repeats.median(|measured| measured.seen.p99_ms), 3),
                optional(cpu, 1),
                optional(repeats.bytes(), 0),
            ]);
        }
        let [off, on] = SETTINGS.map(|setting| of(setting).median(|measured| measured.seen.tps));
        if let (Some(off), Some(on)) = (off, on) {
            let spread = SETTINGS
                .iter()
                .filter_map(|setting| of(setting).spread_percent(|measured| measured.seen.tps));
            let spread = spread.fold(0.0, f64::max);
            conclusions.push(format!(
                "{step}: with compression {:+.1} % transactions a second; the repeats of one setting lie up to \
                 {spread:.1} % apart.",
                difference_percent(on, off)
            ));
        }
    }
    conclusions.push(PUBLISHED.to_owned());
    Summary {
        tables: vec![Section {
            name: "point_select",
            title: "Point selects and writes, compression off and on",
            columns: &[
                "step",
                "setting",
                "server",
                "tps",
                "spread_percent",
                "qps",
                "p50_ms",
                "p95_ms",
                "p99_ms",
                "server_cpu_percent_of_a_core",
                "binlog_bytes",
            ],
            rows,
        }],
        plots: Vec::new(),
        charts: vec![Chart {
            title: "Transactions a second, compression off and on",
            note: "A point select writes no binary log; its 95th percentile is the line.".to_owned(),
            section: "point_select",
            level: None,
            x: &["step", "setting"],
            x_unit: None,
            axis: "a second",
            series: vec![
                Series {
                    label: "a second",
                    column: "tps",
                    unit: Unit::Count,
                    line: false,
                    logarithmic: true,
                },
                Series {
                    label: "p95, ms",
                    column: "p95_ms",
                    unit: Unit::Count,
                    line: true,
                    logarithmic: false,
                },
            ],
            top: 8,
        }],
        conclusions,
    }
}
