//! Two results side by side: the medians of each step under each setting, and their ratio.

use binlogz_figures::{Section, TableCell};

use crate::report::summary::figures::{Repeats, optional};
use crate::results::{Results, StepResult};

/// A figure that is compared: its name, its decimal places, and how it is found.
type Figure = (&'static str, u8, fn(&StepResult) -> Option<f64>);

const FIGURES: [Figure; 6] = [
    ("elapsed_s", 3, |measured| Some(measured.seen.elapsed_s)),
    ("tps", 1, |measured| measured.seen.tps),
    ("p95_ms", 3, |measured| measured.seen.p95_ms),
    ("server_cpu_s", 2, |measured| measured.cost.server_cpu_s),
    ("binlog_bytes", 0, |measured| Some(measured.cost.binlog_bytes as f64)),
    ("wire_bytes", 0, |measured| measured.wire_bytes.map(|bytes| bytes as f64)),
];

/// The table that names the two results.
fn versions(one: &Results, other: &Results) -> Vec<TableCell> {
    let [a, b] = [one, other].map(|results| TableCell::from(results.server.variable("version")));
    let mut row: Vec<TableCell> = ["all", "all", "all", "server_version"].map(TableCell::from).into();
    row.extend([a, TableCell::Null, b, TableCell::Null, TableCell::Null]);
    row
}

/// The steps that both measured, in the order of the first.
pub fn compare(one: &Results, other: &Results) -> Section {
    let mut keys: Vec<(&str, &str, &str)> = Vec::new();
    for cell in &one.cells {
        for measured in &cell.steps {
            let key = (cell.experiment.as_str(), cell.setting.as_str(), measured.step.as_str());
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
    let mut rows = Vec::new();
    for (experiment, setting, step) in keys {
        for (name, places, figure) in FIGURES {
            let of = |results| Repeats::of(results, experiment, setting, step);
            let a = of(one).median(figure);
            let b = of(other).median(figure);
            let (Some(a), Some(b)) = (a, b) else { continue };
            let spread = |results| optional(of(results).spread_percent(figure), 1);
            rows.push(vec![
                experiment.into(),
                setting.into(),
                step.into(),
                name.into(),
                optional(Some(a), places),
                spread(one),
                optional(Some(b), places),
                spread(other),
                if a > 0.0 { TableCell::decimal(b / a, 3) } else { TableCell::Null },
            ]);
        }
    }
    if !rows.is_empty() {
        rows.insert(0, versions(one, other));
    }
    Section {
        name: "comparison",
        title: "Medians of both, the spread of their repeats in percent, and the second by the first",
        columns: &["experiment", "setting", "step", "figure", "a", "a_spread", "b", "b_spread", "ratio"],
        rows,
    }
}
