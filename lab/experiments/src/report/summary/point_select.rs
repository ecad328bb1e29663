//! Reads, which write no log, and writes, with compression off and on.

use binlogz_figures::{Bar, Card, Chart, DotRow, Dots, FigureUnit, Paint, Section, Series, TableCell};

use super::figures::{Repeats, optional};
use super::{ExperimentSummary, bar_row, card, percent_bars, share};
use crate::results::Results;

const SETTINGS: [&str; 2] = ["off", "level 3"];
const STEPS: [&str; 2] = ["point select", "write only"];
/// Percent of the point selects a second without compression: the study shows its tables as pictures, and this in its
/// text.
const PUBLISHED_PERCENT: Option<f64> = Some(99.0);
/// The published figure in words.
const PUBLISHED: &str = "Published (study of 2020-11, 240 threads, 120 tables of 100,000 rows, MySQL 8.0.19 and 8.0.20): \
    compression costs about 1 % of point selects a second and 1 % more processor time. A point select writes no binary \
    log: the study measured what the feature costs while it does nothing.";

pub(super) fn summary(results: &Results) -> ExperimentSummary {
    let mut rows = Vec::new();
    let mut conclusions = Vec::new();
    let mut rates = Vec::new();
    let mut times = Vec::new();
    let mut headlines = Vec::new();
    for step in STEPS {
        let of = |setting: &str| Repeats::of(results, "point-select", setting, step);
        for setting in SETTINGS {
            let repeats = of(setting);
            let Some(tps) = repeats.median(|measured| measured.seen.tps) else { continue };
            let cpu = repeats
                .median(|measured| Some(measured.cost.server_cpu_s? / measured.seen.elapsed_s * 100.0));
            let off = of("off").median(|measured| measured.seen.tps);
            rates.push(bar_row(
                &format!("{step}, {setting}"),
                "",
                [
                    share(0, Some(tps), off, FigureUnit::Count)
                        .map(|bar| Bar { more: format!("{}/s", bar.more), ..bar }),
                    PUBLISHED_PERCENT
                        .filter(|_| step == STEPS[0] && setting != "off")
                        .map(|percent| Bar::new(1, percent)),
                ],
            ));
            let milliseconds = [
                repeats.median(|measured| measured.seen.p50_ms),
                repeats.median(|measured| measured.seen.p95_ms),
                repeats.median(|measured| measured.seen.p99_ms),
            ];
            times.push(DotRow {
                label: format!("{step}, {setting}"),
                is_chosen: false,
                values: milliseconds.map(|time| time.map(|time| time / 1e3)).into(),
            });
            rows.push(vec![
                step.into(),
                setting.into(),
                results.server.variable("version").into(),
                TableCell::decimal(tps, 1),
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
            headlines.push(format!(
                "Compression leaves {:.1} % of the transactions a second of {step}",
                on / off * 100.0
            ));
            let spread = SETTINGS
                .iter()
                .filter_map(|setting| of(setting).spread_percent(|measured| measured.seen.tps))
                .fold(0.0, f64::max);
            conclusions.push(format!(
                "{step}: compression leaves {:.1} % of the transactions a second; the repeats of one setting lie up to \
                 {spread:.1} % apart.",
                on / off * 100.0
            ));
        }
    }
    conclusions.push(PUBLISHED.to_owned());
    ExperimentSummary {
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
        grids: Vec::new(),
        plots: Vec::new(),
        charts: vec![
            card(
                "Transactions a second, in percent of those without compression",
                "A point select writes no binary log.",
                percent_bars(&[("here", Paint::First), ("published", Paint::Elsewhere)], rates),
            ),
            Card {
                is_wide: true,
                ..card(
                    "How long a transaction takes",
                    "50, 95 and 99 of 100 take no longer.",
                    Chart::Dots(Dots {
                        unit: FigureUnit::Seconds,
                        series: [("p50", Paint::First), ("p95", Paint::Second), ("p99", Paint::Fourth)]
                            .map(|(label, paint)| Series::new(label, paint))
                            .into(),
                        rows: times,
                    }),
                )
            },
        ],
        headlines,
        conclusions,
    }
}
